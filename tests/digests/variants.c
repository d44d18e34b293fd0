/* SPDX-License-Identifier: Apache-2.0 */
#include "variants.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/memory.h"
#include "hlo/text.h"
#include "ir/ir.h"

typedef struct variants {
    const char *text;
    unsigned share, count;
    void (*print)(const hlo_module *variant, FILE *out);
    FILE *out;
} variants;

static bool is_chosen(variants *v) {
    return v->count++ % v->share == 0;
}

static void print_text(variants *v, const char *what, const char *text) {
    hlo_module *module;
    if (hlo_module_parse(text, strlen(text), "variant", NULL, &module) != HLO_OK) return;
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK) {
        fprintf(v->out, "variant: %s\n", what);
        v->print(module, v->out);
    }
    hlo_module_free(module);
}

static char *room_for(const variants *v, size_t more) {
    char *text = malloc(strlen(v->text) + more + 1);
    if (!text) abort();
    return text;
}

/* Replaces the `length` bytes at `at` by `by`. */
static void replace(variants *v, size_t at, size_t length, const char *by) {
    char what[96];
    if (!is_chosen(v)) return;
    char *text = room_for(v, strlen(by));
    sprintf(text, "%.*s%s%s", (int)at, v->text, by, v->text + at + length);
    snprintf(what, sizeof what, "%.*s -> %s", (int)length, v->text + at, by);
    print_text(v, what, text);
    free(text);
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '%';
}

/* Replaces each `word` by `by`; a size is replaced only in brackets. */
static void replace_all(variants *v, const char *word, const char *by, bool sizes) {
    const size_t length = strlen(word);
    char what[64], *text, *to;
    bool found = false, inside = false;
    if (!strstr(v->text, word) || !is_chosen(v)) return;
    text = to = room_for(v, strlen(v->text) * (strlen(by) + 1));
    for (const char *at = v->text; *at;) {
        const bool begins = at == v->text || !in_word(at[-1]);
        if (*at == '[') inside = true;
        if (*at == ']') inside = false;
        if (begins && strncmp(at, word, length) == 0 && !in_word(at[length]) &&
            (inside || !sizes)) {
            to += sprintf(to, "%s", by);
            at += length;
            found = true;
        } else {
            *to++ = *at++;
        }
    }
    *to = '\0';
    snprintf(what, sizeof what, "every %s -> %s", word, by);
    if (found) print_text(v, what, text);
    free(text);
}

/* Exchanges the first two operands in the list at `at`. */
static void exchange(variants *v, size_t at) {
    const char *text = v->text + at;
    const size_t first = strcspn(text, ",)");
    if (text[first] != ',' || text[first + 1] != ' ') return;
    const size_t second = strcspn(text + first + 2, ",)(");
    char by[256];
    if (first + second > 200 || text[first + 2 + second] == '(' || memchr(text, '(', first)) return;
    snprintf(by, sizeof by, "%.*s, %.*s", (int)second, text + first + 2, (int)first, text);
    replace(v, at, first + 2 + second, by);
}

/* Opcodes; each opcode is replaced by the next. */
static const char *const opcodes[] = {"add(",    "subtract(", "add(",     "multiply(",
                                      "divide(", "maximum(",  "minimum(", "maximum(",
                                      "abs(",    "negate(",   "abs("};

static void change_words(variants *v) {
    for (const char *at = strchr(v->text, '\n'); at && *at; at++) {
        const size_t place = (size_t)(at - v->text);
        if (at[0] != '(' || !isalpha((unsigned char)at[-1])) continue;
        size_t length = 1;
        while (isalpha((unsigned char)at[-1 - (long)length]) || at[-1 - (long)length] == '-')
            length++;
        const char *opcode = at - length;
        if (opcode[-1] != ' ') continue;
        for (size_t i = 0; i + 1 < sizeof opcodes / sizeof *opcodes; i++)
            if (strncmp(opcode, opcodes[i], length + 1) == 0) {
                replace(v, place - length, length + 1, opcodes[i + 1]);
                break;
            }
        if (strncmp(opcode, "constant(", 9) == 0 && at[1] != '{') {
            static const char *const values[] = {"0", "1", "-1", "nan", "inf", "0.1", "-0"};
            for (size_t i = 0; i < sizeof values / sizeof *values; i++)
                replace(v, place + 1, strcspn(at + 1, ")"), values[i]);
        } else if (strncmp(opcode, "parameter(", 10) != 0) {
            exchange(v, place + 1);
        }
    }
}

static void change_everywhere(variants *v) {
    static const char *const types[][2] = {
        {"f32", "bf16"},        {"bf16", "f32"},        {"bf16", "f16"},
        {"f16", "bf16"},        {"f32", "f64"},         {"f8e4m3fn", "f8e5m2"},
        {"f8e5m2", "f8e4m3fn"}, {"f8e4m3fn", "f8e4m3"}, {"f8e4m3fn", "f8e4m3fnuz"},
        {"s32", "s64"},         {"s32", "u8"},          {"f32", "c64"}};
    static const char *const layouts[][2] = {{"{1,0}", "{0,1}"},
                                             {"{2,1,0}", "{0,1,2}"},
                                             {"{2,1,0}", "{1,2,0}"},
                                             {"{3,2,1,0}", "{2,0,3,1}"}};
    static const char *const sizes[][2] = {{"16", "15"}, {"16", "1"},   {"32", "31"}, {"32", "1"},
                                           {"48", "50"}, {"64", "128"}, {"8", "1"},   {"4", "3"},
                                           {"2", "1"},   {"3", "2"},    {"5", "1"}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        replace_all(v, types[i][0], types[i][1], false);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        replace_all(v, sizes[i][0], sizes[i][1], true);
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        replace_all(v, layouts[i][0], layouts[i][1], false);
}

/* Creates variants that add an array of the entry to the result. */
static void use_elsewhere(variants *v, const hlo_module *module) {
    uint32_t index = 0;
    for (const hlo_instruction *i = module->entry->first; i; i = hlo_instr_next(i), index++) {
        hlo_module *copy;
        if (i == module->entry->root || !hlo_shape_is_array(i->shape) || !is_chosen(v)) continue;
        if (hlo_module_clone(module, &copy) != HLO_OK) abort();
        hlo_computation *entry = copy->entry;
        hlo_instruction *used = entry->first;
        for (uint32_t n = 0; n < index; n++) used = hlo_instr_next(used);
        hlo_instruction *both[] = {entry->root, used};
        const hlo_shape *shapes[] = {entry->root->shape, used->shape};
        const hlo_shape *tuple = hlo_shape_tuple(copy, 2, shapes);
        hlo_comp_set_root(entry, hlo_instr_new(entry, NULL, HLO_OP_TUPLE, tuple, 2, both, NULL));
        copy->verified = false;
        if (hlo_module_verify(copy, NULL, NULL) == HLO_OK) {
            fprintf(v->out, "variant: %s is used\n", i->name);
            v->print(copy, v->out);
        }
        hlo_module_free(copy);
    }
}

void variants_of_module(const hlo_module *module, unsigned share,
                        void (*print)(const hlo_module *variant, FILE *out), FILE *out) {
    char *text = NULL;
    size_t size;
    hlo_print_options options;
    hlo_print_options_init(&options, HLO_PRINT_LONG);
    options.signature = options.percent = false;
    if (hlo_module_to_text(module, &options, &text, &size) != HLO_OK) abort();
    variants v = {text, share, 0, print, out};
    change_words(&v);
    change_everywhere(&v);
    use_elsewhere(&v, module);
    hlo_free(text);
}
