/* SPDX-License-Identifier: Apache-2.0 */
/* See edit.h. */
#include "tests/random/module/edit.h"

#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/literal.h"
#include "passes/rules/library.h"
#include "tests/random/check/check.h"
#include "tests/random/module/gen.h"
#include "tests/random/module/places.h"

static void add_case(text_cases *list, const char *name, const char *text, const char *head) {
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 64;
        list->v = realloc(list->v, list->capacity * sizeof *list->v);
        if (!list->v) abort();
    }
    dice d = {0};
    for (const char *c = text; *c; c++) d.state = dice_next(&d) ^ (unsigned char)*c;
    list->v[list->count++] = (text_case){
        .name = strdup(name), .text = strdup(text), .head = strdup(head), .key = dice_next(&d)};
}

static char *read_all(const char *path) {
    FILE *in = fopen(path, "rb");
    if (!in) return NULL;
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, in) < 0) {
        free(text);
        text = NULL;
    }
    fclose(in);
    return text;
}

/* Adds each module of a file. Lines that begin with `// -----` separate modules. */
static void add_file(text_cases *out, const char *path) {
    char *text = read_all(path), *from = text;
    while (from) {
        char *end = strstr(from, "\n// -----");
        if (end) *end++ = 0;
        add_case(out, strrchr(path, '/') + 1, from, text);
        from = end ? strchr(end, '\n') : NULL;
    }
    free(text);
}

void find_cases(text_cases *out, const char *pattern) {
    *out = (text_cases){0};
    for (uint32_t i = 0; i < hlo_rules_builtin_count; i++)
        for (uint32_t r = 0; r < hlo_rules_builtin[i]->rule_count; r++)
            if (hlo_rules_builtin[i]->rules[r].example)
                add_case(out, hlo_rules_builtin[i]->rules[r].name,
                         hlo_rules_builtin[i]->rules[r].example, "--cuda=12.9");
    glob_t found;
    if (glob(pattern, 0, NULL, &found)) return;
    for (size_t i = 0; i < found.gl_pathc; i++) add_file(out, found.gl_pathv[i]);
    globfree(&found);
}

void free_cases(text_cases *cases) {
    for (size_t i = 0; i < cases->count; i++) {
        free(cases->v[i].name);
        free(cases->v[i].text);
        free(cases->v[i].head);
    }
    free(cases->v);
}

/* ----------------------------------------------------------------------------------------- text */

/* Replaces `old` as a whole word by `new`, everywhere or at random (`percent`). */
static char *replace_words(const char *text, const char *old, const char *new, int percent,
                           dice *d) {
    char *out = NULL;
    size_t size, length = strlen(old);
    FILE *f = open_memstream(&out, &size);
    for (const char *at = text; *at;) {
        bool starts = at == text || !(isalnum((unsigned char)at[-1]) || strchr("_.%-", at[-1]));
        bool here = starts && !strncmp(at, old, length) && !isalnum((unsigned char)at[length]) &&
                    !strchr("_.", at[length] ? at[length] : ' ');
        if (here && dice_chance(d, percent)) {
            fputs(new, f);
            at += length;
        } else {
            fputc(*at++, f);
        }
    }
    fclose(f);
    return out;
}

static char *edit_size(const char *text, dice *d) {
    static const char *const old[] = {"16", "32", "48", "64", "30", "62", "126", "128"};
    static const char *const new[] = {"16", "32", "48", "17", "30", "64", "8"};
    const char *from = DICE_PICK(d, old), *to = DICE_PICK(d, new);
    return replace_words(text, from, to, 100, d);
}

/* Changes element types and sizes. The caller frees the result. */
static char *edit_text(const char *text, dice *d) {
    static const char *const wide[] = {"f32", "bf16", "f16"};
    char *out = strdup(text);
    for (int i = dice_below(d, 3); i > 0; i--) {
        char *next;
        if (dice_chance(d, 50))
            next = edit_size(out, d);
        else if (dice_chance(d, 70))
            next = replace_words(out, DICE_PICK(d, wide), DICE_PICK(d, wide), 100, d);
        else if (dice_chance(d, 50))
            next = replace_words(out, "f8e4m3fn", "f8e5m2", 50, d);
        else
            next = replace_words(out, DICE_PICK(d, wide), DICE_PICK(d, wide), 40, d);
        free(out);
        out = next;
    }
    return out;
}

/* --------------------------------------------------------------------------------------- module */

static hlo_instruction *any_instr(const hlo_computation *comp, dice *d) {
    hlo_instruction *i = comp->first;
    for (int n = dice_below(d, comp->instr_count); n > 0; n--) i = i->next;
    return i;
}

static bool stands_before(const hlo_instruction *a, const hlo_instruction *b) {
    for (; a; a = a->next)
        if (a == b) return true;
    return false;
}

/* Replaces an operand by another value of its shape that comes before the user. */
static void edit_operand(hlo_computation *comp, dice *d) {
    hlo_instruction *user = any_instr(comp, d), *value = any_instr(comp, d);
    if (!user->operand_count || value == user || !stands_before(value, user)) return;
    for (uint32_t i = 0; i < user->operand_count; i++)
        if (hlo_shape_compatible(hlo_instr_operand(user, i)->shape, value->shape) &&
            hlo_instr_operand(user, i) != value) {
            hlo_instr_set_operand(user, i, value);
            return;
        }
}

static void swap_operands(hlo_computation *comp, dice *d) {
    hlo_instruction *i = any_instr(comp, d);
    if (i->operand_count < 2) return;
    hlo_instruction *a = hlo_instr_operand(i, 0), *b = hlo_instr_operand(i, 1);
    hlo_instr_set_operand(i, 0, b);
    hlo_instr_set_operand(i, 1, a);
}

static void edit_opcode(hlo_computation *comp, dice *d) {
    static const hlo_op binary[] = {HLO_OP_ADD,    HLO_OP_SUBTRACT, HLO_OP_MULTIPLY,
                                    HLO_OP_DIVIDE, HLO_OP_MAXIMUM,  HLO_OP_MINIMUM};
    hlo_instruction *i = any_instr(comp, d);
    for (size_t k = 0; k < sizeof binary / sizeof *binary; k++)
        if (i->op == binary[k]) {
            i->op = DICE_PICK(d, binary);
            return;
        }
}

static void edit_constant(hlo_computation *comp, dice *d) {
    static const double numbers[] = {0, 1, -1, 0.5, 2, 448, -448, 57344, -57344, 240, 3};
    for (int tries = 0; tries < 8; tries++) {
        hlo_instruction *i = any_instr(comp, d);
        if (i->op != HLO_OP_CONSTANT || !hlo_shape_is_array(i->shape) || i->shape->rank ||
            !hlo_type_is_float(i->shape->type))
            continue;
        hlo_literal *literal = hlo_literal_new(comp->module, i->shape);
        hlo_literal_set_number(literal, 0, DICE_PICK(d, numbers));
        i->u.literal = literal;
        return;
    }
}

/* Makes another value a result of the module. */
static void add_result(hlo_computation *comp, dice *d) {
    hlo_instruction *value = any_instr(comp, d), *root = comp->root;
    if (!hlo_shape_is_array(value->shape) || value == root) return;
    if (root->op == HLO_OP_TUPLE) {
        const hlo_shape *shapes[64];
        if (root->operand_count > 60 || !stands_before(value, root)) return;
        for (uint32_t i = 0; i < root->operand_count; i++)
            shapes[i] = hlo_instr_operand(root, i)->shape;
        shapes[root->operand_count] = value->shape;
        hlo_instr_append_operand(root, value);
        root->shape = hlo_shape_tuple(comp->module, root->operand_count, shapes);
        return;
    }
    hlo_instruction *both[] = {root, value};
    const hlo_shape *shapes[] = {root->shape, value->shape};
    hlo_instruction *tuple = hlo_instr_new(comp, NULL, HLO_OP_TUPLE,
                                           hlo_shape_tuple(comp->module, 2, shapes), 2, both, NULL);
    hlo_comp_set_root(comp, tuple);
}

/* Inserts an instruction between a value and one of its users. */
static void insert_link(hlo_computation *comp, dice *d) {
    static const hlo_op ops[] = {HLO_OP_NEGATE, HLO_OP_ABS,     HLO_OP_COPY,
                                 HLO_OP_COPY,   HLO_OP_RESHAPE, HLO_OP_CONVERT};
    hlo_instruction *value = any_instr(comp, d);
    if (!hlo_shape_is_array(value->shape) || !value->use_count || !value->next ||
        !hlo_type_is_float(value->shape->type))
        return;
    hlo_op op = DICE_PICK(d, ops);
    hlo_instruction *first = value->next, *use = value->uses->user;
    hlo_instruction *link = hlo_instr_new(comp, first, op, value->shape, 1, &value, NULL);
    for (uint32_t i = 0; i < use->operand_count; i++)
        if (hlo_instr_operand(use, i) == value) hlo_instr_set_operand(use, i, link);
}

static void edit_layout(hlo_computation *comp, dice *d) {
    hlo_instruction *i = any_instr(comp, d);
    int64_t order[HLO_RULE_ARGS];
    if (!hlo_shape_is_array(i->shape) || i->shape->rank < 2 || i->shape->rank > HLO_RULE_ARGS ||
        i->shape->dynamic)
        return;
    for (uint32_t k = 0; k < i->shape->rank; k++) order[k] = k;
    int64_t last = order[i->shape->rank - 1];
    int other = dice_below(d, i->shape->rank);
    order[i->shape->rank - 1] = order[other];
    order[other] = last;
    i->shape =
        hlo_shape_with_layout(comp->module, i->shape->type, i->shape->rank, i->shape->dims, order);
}

/* Changes one number of a list attribute, or exchanges two. */
static void edit_dimensions(hlo_computation *comp, dice *d) {
    static const hlo_attr_id ids[] = {HLO_ATTR_DIMENSIONS, HLO_ATTR_PADDING, HLO_ATTR_SLICE};
    hlo_instruction *i = any_instr(comp, d);
    hlo_attr_id id = DICE_PICK(d, ids);
    const hlo_ints *old = hlo_instr_ints(i, id);
    int64_t v[64];
    if (!old->count || old->count > 64) return;
    memcpy(v, old->v, old->count * sizeof v[0]);
    int a = dice_below(d, old->count), b = dice_below(d, old->count);
    int64_t taken = v[a];
    v[a] = dice_chance(d, 50) ? v[b] : v[a] + dice_below(d, 3) - 1;
    if (v[a] == v[b] && a != b) v[b] = taken;
    hlo_instr_set_ints(i, id, old->count, v);
}

/* Changes operands, opcodes, constants, results, layouts, dimensions. The result may be invalid. */
static void edit_module(hlo_module *module, dice *d) {
    static void (*const edits[])(hlo_computation *, dice *) = {
        edit_operand, edit_operand, swap_operands, edit_opcode, edit_constant,  edit_constant,
        add_result,   add_result,   insert_link,   edit_layout, edit_dimensions};
    static const int lengths[] = {0, 1, 1, 1, 2, 2, 3};
    for (int n = DICE_PICK(d, lengths); n > 0; n--) {
        hlo_computation *comp = module->entry;
        if (dice_chance(d, 10)) comp = module->first;
        DICE_PICK(d, edits)(comp, d);
    }
}

/* Selects a case for each seed, so that a new case takes only its share of seeds from the
 * other cases. */
static const text_case *pick_case(const text_cases *cases, uint64_t seed) {
    const text_case *best = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < cases->count; i++) {
        dice d = {.state = seed ^ cases->v[i].key};
        uint64_t lot = dice_next(&d);
        if (best && lot <= most) continue;
        best = &cases->v[i];
        most = lot;
    }
    return best;
}

static void add_runs(void *sum, hlo_computation *called) {
    uint64_t *runs = sum;
    runs[0] += runs[1 + called->id];
}

/* Returns true if computations call each other so often that the entry would run for seconds. */
static bool calls_many(const hlo_module *module) {
    const uint64_t MAX = 100000;
    uint64_t *runs = calloc(1 + module->next_computation_id, sizeof *runs);
    if (!runs) abort();
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        runs[0] = 1;
        for (hlo_instruction *i = comp->first; i; i = i->next)
            hlo_instr_visit_called(i, add_runs, runs);
        runs[1 + comp->id] = runs[0] < MAX ? runs[0] : MAX;
    }
    const bool many = runs[1 + module->entry->id] == MAX;
    free(runs);
    return many;
}

hlo_module *draw_module(const text_cases *cases, uint64_t seed) {
    char name[32];
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    dice d = {.state = seed}, other = {.state = seed * UINT64_C(0x2545f4914f6cdd1d)};
    char *text = seed % 2 ? random_module(seed) : edit_text(pick_case(cases, seed)->text, &d);
    hlo_module *module = text ? read_module(text, name) : NULL;
    free(text);
    if (!module) return NULL;
    if (seed % 2 == 0) edit_module(module, &d);
    if (dice_chance(&other, 12)) edit_places(module, &other);
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK && !calls_many(module)) return module;
    hlo_module_free(module);
    return NULL;
}
