/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of type.def, attr.def and op.def as data, and lookup by name. */
#include <assert.h>
#include <string.h>

#include "ir/ir.h"

#define HLO_TYPE(id, name, bits, class)                                                            \
    static_assert(HLO_TYPE_ROW_##id == (int)HLO_TYPE_##id, "hlo/opcode.h has the rows' "           \
                                                           "positions");
#include "ir/table/type.def"
#undef HLO_TYPE
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    static_assert(HLO_OP_ROW_##id == (int)HLO_OP_##id, "hlo/opcode.h has the rows' positions");
#include "ir/table/op.def"
#undef HLO_OP

static_assert(HLO_TYPE_ROW_COUNT == (int)HLO_TYPE_COUNT, "hlo/opcode.h has all rows");
static_assert(HLO_OP_ROW_COUNT == (int)HLO_OP_COUNT, "hlo/opcode.h has all rows");

const hlo_type_info hlo_types[HLO_TYPE_COUNT] = {
#define HLO_TYPE(id, name, bits, class)                                                            \
    [HLO_TYPE_##id] = {name, bits, (bits + 7) / 8, HLO_CLASS_##class},
#include "ir/table/type.def"
#undef HLO_TYPE
};

const hlo_attr_info hlo_attrs_info[HLO_ATTR_COUNT] = {
#define HLO_ATTR(id, name, kind) [HLO_ATTR_##id] = {name, HLO_KIND_##kind},
#include "ir/table/attr.def"
#undef HLO_ATTR
};

#define ANY HLO_ANY
#define NONE
#define A(id) HLO_ATTR_##id,
const hlo_op_info hlo_ops[HLO_OP_COUNT] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    [HLO_OP_##id] = {name,                                                                         \
                     min,                                                                          \
                     max,                                                                          \
                     flags,                                                                        \
                     (const uint8_t[]){required HLO_ATTR_COUNT},                                   \
                     (const uint8_t[]){allowed HLO_ATTR_COUNT}},
#include "ir/table/op.def"
#undef HLO_OP
};
const uint8_t hlo_common_attrs[] = {A(PARAMETER_REPLICATION) A(SHARDING) A(FRONTEND_ATTRIBUTES)
                                        A(STATISTICS) A(ORIGIN) A(CONTROL_PREDECESSORS) A(METADATA)
                                            A(BACKEND_CONFIG) A(UNMAPPED) A(STRAYS) HLO_ATTR_COUNT};
#undef A
#undef NONE
#undef ANY

_Static_assert(HLO_ATTR_COUNT < 256, "attribute ids are held in bytes");

static bool has(const uint8_t *ids, hlo_attr_id id) {
    while (*ids != HLO_ATTR_COUNT)
        if (*ids++ == id) return true;
    return false;
}

bool hlo_op_has(hlo_op op, hlo_attr_id attr) {
    return has(hlo_ops[op].required, attr) || has(hlo_ops[op].allowed, attr);
}

bool hlo_op_allows(hlo_op op, hlo_attr_id attr) {
    return hlo_op_has(op, attr) || has(hlo_common_attrs, attr);
}

static bool same(const char *entry, const char *name, size_t length) {
    return length && *entry == *name && strncmp(entry, name, length) == 0 && !entry[length];
}

hlo_type hlo_type_find(const char *name, size_t length) {
    for (int t = 0; t < HLO_TYPE_COUNT; t++)
        if (same(hlo_types[t].name, name, length)) return (hlo_type)t;
    return HLO_TYPE_INVALID;
}

hlo_attr_id hlo_attr_find(const char *name, size_t length) {
    for (int a = 0; a < HLO_ATTR_COUNT; a++)
        if (same(hlo_attrs_info[a].name, name, length)) return (hlo_attr_id)a;
    return HLO_ATTR_INVALID;
}

hlo_attr_id hlo_attr_find_of(hlo_op op, const char *name) {
    const hlo_attr_id id = hlo_attr_find(name, strlen(name));
    const bool lists = id == HLO_ATTR_SLICE_SIZES && hlo_op_has(op, HLO_ATTR_SLICE_SIZE_LISTS);
    return lists ? HLO_ATTR_SLICE_SIZE_LISTS : id;
}

hlo_op hlo_op_find(const char *name, size_t length) {
    for (int o = 0; o < HLO_OP_COUNT; o++)
        if (same(hlo_ops[o].name, name, length)) return (hlo_op)o;
    return HLO_OP_INVALID;
}

const char *hlo_attr_values(hlo_op op, hlo_attr_id attr) {
    static const struct {
        hlo_attr_id attr;
        hlo_op op;
        const char *words;
    } rows[] = {
#define HLO_OP_ANY HLO_OP_COUNT
#define HLO_ATTR_VALUES(attr, op, words) {HLO_ATTR_##attr, HLO_OP_##op, words},
#include "ir/table/attr_value.def"
#undef HLO_ATTR_VALUES
#undef HLO_OP_ANY
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].attr == attr && (rows[i].op == op || rows[i].op == HLO_OP_COUNT))
            return rows[i].words;
    return NULL;
}

bool hlo_word_in(const char *words, const char *word, size_t length) {
    for (const char *at = words; (at = strchr(at, ' ')) && at[1]; at++)
        if (strncmp(at + 1, word, length) == 0 && strchr(" ", at[1 + length])) return true;
    return false;
}

bool hlo_op_async_pair(hlo_op start, hlo_op next) {
    static const struct {
        uint8_t start, next;
    } pairs[] = {
#define HLO_ASYNC_PAIR(start, next) {HLO_OP_##start, HLO_OP_##next},
#include "ir/table/async_pair.def"
#undef HLO_ASYNC_PAIR
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((start == HLO_OP_INVALID || pairs[i].start == start) &&
            (next == HLO_OP_INVALID || pairs[i].next == next))
            return true;
    return false;
}

bool hlo_type_is_float(hlo_type type) {
    return type < HLO_TYPE_COUNT && hlo_types[type].class == HLO_CLASS_FLOAT;
}

bool hlo_type_is_integer(hlo_type type) {
    return type < HLO_TYPE_COUNT && (hlo_types[type].class == HLO_CLASS_SIGNED ||
                                     hlo_types[type].class == HLO_CLASS_UNSIGNED);
}

bool hlo_type_is_fp8(hlo_type type) {
    return hlo_type_is_float(type) && hlo_types[type].bits == 8;
}

const char *hlo_opcode_name(hlo_opcode opcode) {
    return (unsigned)opcode < HLO_OP_COUNT ? hlo_ops[opcode].name : NULL;
}

hlo_opcode hlo_opcode_parse(const char *name) {
    return hlo_op_find(name, strlen(name));
}

const char *hlo_element_type_name(hlo_element_type type) {
    return (unsigned)type < HLO_TYPE_COUNT ? hlo_types[type].name : NULL;
}

hlo_element_type hlo_element_type_parse(const char *name) {
    return hlo_type_find(name, strlen(name));
}

size_t hlo_element_type_bits(hlo_element_type type) {
    return (unsigned)type < HLO_TYPE_COUNT ? hlo_types[type].bits : 0;
}
