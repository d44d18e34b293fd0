/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the words of every table as a dictionary for libFuzzer: one quoted word per line. */
#include <stdio.h>
#include <string.h>

#include "ir/ir.h"

static const char *const words[] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) name "(",
#include "ir/table/op.def"
#undef HLO_OP
#define HLO_TYPE(id, name, bits, class) name "[",
#include "ir/table/type.def"
#undef HLO_TYPE
#define HLO_ATTR(id, name, kind) name "=",
#include "ir/table/attr.def"
#undef HLO_ATTR
#define HLO_REASON(id, name, text, hint) name,
#include "passes/reason/reason.def"
#undef HLO_REASON
#define HLO_FIELD(name, member, kind) name,
#include "matmul/table/field.def"
#undef HLO_FIELD
#define HLO_TEST(name, params) #name "(",
#define HLO_MAKE(name, params) #name "(",
#define HLO_MEASURE(name, params) #name,
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE
};

/* The words that the rows of attr_value.def list, each with a space before it. */
static const char *const lists[] = {
#define HLO_ATTR_VALUES(attr, op, words) words,
#include "ir/table/attr_value.def"
#undef HLO_ATTR_VALUES
};

/* The punctuation and words that the grammars contain literally. */
static const char *const signs[] = {
    "HloModule",
    "ENTRY ",
    "ROOT ",
    "// -----",
    "/*index=5*/",
    " = ",
    "->",
    "{...}",
    "%",
    "<=",
    "?",
    "b(",
    ":T(8)",
    "E(4)",
    "S(1)",
    "nan",
    "-inf",
    "mesh",
    "last_tile_dim_replicate",
    "devices=",
    "replicated",
    "maximal",
    "manual",
    "let ",
    "phase ",
    "measure ",
    "rule ",
    " for ",
    " where ",
    " else ",
    " at ",
    " => ",
    " with ",
    "like ",
    "chain(",
    "chain+(",
    "splat(",
    "also? ",
    "remark ",
    "example\\x0A",
    "end\\x0A",
};

static void put_list(const char *list) {
    while (*list) {
        size_t length = strcspn(++list, " ");
        printf("\"%.*s\"\n", (int)length, list);
        list += length;
    }
}

int main(void) {
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) printf("\"%s\"\n", words[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) put_list(lists[i]);
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) printf("\"%s\"\n", signs[i]);
    return 0;
}
