/* SPDX-License-Identifier: Apache-2.0 */
#include "bounds.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "digest.h"
#include "hlo/text.h"
#include "ir/error/error.h"
#include "ir/float/float.h"

/* ------------------------------------------------------------------------------ what is made up */

typedef struct number {
    double value, sigma;
} number;

/* Returns element `i` of parameter `index`, in the given type. */
typedef number make_up(hlo_type type, uint32_t index, int64_t i);

static double uniform(uint64_t seed) {
    seed = (seed + 1) * 0x9e3779b97f4a7c15;
    seed = (seed ^ seed >> 29) * 0xbf58476d1ce4e5b9;
    return (double)(seed >> 11) * 0x1p-53;
}

static bool is_real(hlo_type type) {
    return hlo_type_is_float(type) || hlo_types[type].class == HLO_CLASS_COMPLEX;
}

/* Parameters are numbers on both sides of 0, each with a separate sigma. Integers are exact
 * indices. */
static number ordinary(hlo_type type, uint32_t index, int64_t i) {
    const uint64_t seed = (uint64_t)i * 64 + index;
    const double u = uniform(seed);
    if (type == HLO_TYPE_PRED) return (number){u < 0.5, 0};
    if (!is_real(type)) return (number){floor(4 * u), 0};
    return (number){4 * u - 2, 0.001 * uniform(~seed)};
}

/* Parameters are repeated numbers with one sigma, which is 0 for every second parameter. */
static number repeated(hlo_type type, uint32_t index, int64_t i) {
    static const double values[] = {1, -1, 2, 0, 1, 17};
    const double value = values[i % 6];
    if (type == HLO_TYPE_PRED) return (number){value > 0, i % 7 == 3};
    if (!is_real(type)) return (number){fabs(value), 0};
    return (number){value, index % 2 ? 0 : 0.002};
}

/* Like ordinary(), but some numbers are large, zero, infinite or NaN, or have a large sigma. */
static number extreme(hlo_type type, uint32_t index, int64_t i) {
    static const number all[] = {{INFINITY, 0},   {1, INFINITY}, {3e38, 1e37}, {NAN, 0},
                                 {0, 0},          {1, NAN},      {0, 0.1},     {-INFINITY, 3},
                                 {NAN, INFINITY}, {1e-40, 1e-41}};
    const int64_t at = i + 5 * index;
    if (!is_real(type)) return (number){(double)(i % 3), i % 5 == 4 && index};
    if (at % 3) return ordinary(type, index, i);
    return all[at / 3 % (int64_t)(sizeof all / sizeof *all)];
}

/* The parameters have all combinations of these numbers and sigmas. */
static const double float_values[] = {0,   -0.0,  1,    -1.5,      0.1,      3,
                                      300, 1e-40, 3e38, -INFINITY, INFINITY, NAN};
static const double float_sigmas[] = {0, 0.01, 1, 1e30, INFINITY, NAN};
enum { VALUES = 12, SIGMAS = 6, NUMBERS = VALUES * SIGMAS };

static number crossed(hlo_type type, uint32_t index, int64_t i) {
    static const double whole[] = {0, 1, -3, 7, 127, -128}, off[] = {0, 1, 2.5};
    for (uint32_t o = 0; o < index; o++) i = o < 1 ? i / NUMBERS : i * 31;
    const int64_t value = i % NUMBERS / SIGMAS, sigma = i % SIGMAS;
    if (type == HLO_TYPE_PRED) return (number){(double)(value % 2), (double)(sigma % 2)};
    if (!is_real(type)) return (number){whole[value % 6], off[sigma % 3]};
    const double x = float_values[value], s = float_sigmas[sigma];
    const bool relative = s == 0.01 && x != 0 && isfinite(x);
    return (number){x, relative ? s * fabs(x) : s};
}

/* ----------------------------------------------------------------------------- what is computed */

/* Results with more elements are not computed. */
enum { MAX_ELEMENTS = 1 << 16 };

/* The leaves of each instruction's result, by its id. */
typedef struct state {
    hlo_arena *arena;
    make_up *made;
    hlo_view **values, **sigmas;
    int64_t printed; /* number of elements printed of an array */
} state;

static uint32_t leaf_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

static const hlo_shape *leaf_of(const hlo_shape *shape, uint32_t i) {
    return shape->type == HLO_TYPE_TUPLE ? shape->elements[i] : shape;
}

static hlo_view new_view(hlo_arena *arena, hlo_type type, const hlo_shape *shape) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dims[d]) strides[d] = stride;
    const size_t size = (size_t)hlo_shape_count(shape) * hlo_types[type].bytes;
    return (hlo_view){type, shape->rank, shape->dims, strides, hlo_arena_zero(arena, size + 1)};
}

static void set(const hlo_view *view, int64_t i, double value) {
    char *at = (char *)view->data + i * hlo_types[view->type].bytes;
    if (hlo_types[view->type].class != HLO_CLASS_COMPLEX) {
        hlo_number_store(view->type, at, value);
        return;
    }
    const hlo_type part = view->type == HLO_TYPE_C64 ? HLO_TYPE_F32 : HLO_TYPE_F64;
    hlo_number_store(part, at, value);
    hlo_number_store(part, at + hlo_types[part].bytes, i % 3 ? 0.5 : value);
}

/* Creates the leaves of a result. Returns false if one is not an array, is dynamic or is large. */
static bool make_leaves(state *s, const hlo_instruction *instr) {
    const uint32_t count = leaf_count(instr->shape);
    hlo_view *values = hlo_arena_array(s->arena, count, sizeof *values),
             *sigmas = hlo_arena_array(s->arena, count, sizeof *sigmas);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *leaf = leaf_of(instr->shape, i);
        if (!hlo_shape_is_array(leaf) || leaf->dynamic) return false;
        if (hlo_shape_count(leaf) < 0 || hlo_shape_count(leaf) > MAX_ELEMENTS) return false;
        values[i] = new_view(s->arena, leaf->type, leaf);
        sigmas[i] = new_view(s->arena, HLO_TYPE_F32, leaf);
    }
    s->values[instr->id] = values;
    s->sigmas[instr->id] = sigmas;
    return true;
}

static void make_up_leaves(state *s, const hlo_instruction *instr) {
    const uint32_t first = instr->op == HLO_OP_PARAMETER ? (uint32_t)instr->u.parameter : 0;
    for (uint32_t l = 0; l < leaf_count(instr->shape); l++) {
        const hlo_view *value = &s->values[instr->id][l], *sigma = &s->sigmas[instr->id][l];
        const int64_t count = hlo_shape_count(leaf_of(instr->shape, l));
        for (int64_t i = 0; i < count; i++) {
            const number n = s->made(value->type, first + l, i);
            set(value, i, n.value);
            set(sigma, i, n.sigma);
        }
    }
}

/* Computes the leaves of an instruction. Returns false if it cannot be computed separately. */
static bool compute(state *s, const hlo_instruction *instr, const hlo_error_options *options) {
    uint32_t count = 0;
    const char *why;
    if (!hlo_eval_supports(instr, &why)) return false;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        count += leaf_count(hlo_instr_operand(instr, o)->shape);
    hlo_view *operands = hlo_arena_array(s->arena, count + 1, sizeof *operands),
             *sigmas = hlo_arena_array(s->arena, count + 1, sizeof *sigmas);
    count = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        const uint32_t leaves = leaf_count(operand->shape);
        if (!s->values[operand->id]) return false;
        memcpy(operands + count, s->values[operand->id], leaves * sizeof *operands);
        memcpy(sigmas + count, s->sigmas[operand->id], leaves * sizeof *sigmas);
        count += leaves;
    }
    return hlo_eval(NULL, instr, operands, s->values[instr->id], s->arena, &why) == HLO_OK &&
           hlo_error_sigmas(NULL, instr, operands, sigmas, s->values[instr->id],
                            s->sigmas[instr->id], options, s->arena, &why) == HLO_OK;
}

/* Prints the first elements' sigmas, as bf16 codes: digits that do not depend on the math
 * library. */
static void print_sigmas(const state *s, const hlo_instruction *instr, FILE *out) {
    fprintf(out, "%s:", instr->name);
    for (uint32_t l = 0; l < leaf_count(instr->shape); l++) {
        const float *sigma = s->sigmas[instr->id][l].data;
        const int64_t count = hlo_shape_count(leaf_of(instr->shape, l));
        for (int64_t i = 0; i < count && i < s->printed; i++) {
            const unsigned code = isnan(sigma[i])
                                      ? 0x7fc0
                                      : (unsigned)hlo_float_encode(HLO_TYPE_BF16, (double)sigma[i]);
            for (int place = 12; place >= 0; place -= 4)
                putc_unlocked("0123456789abcdef"[code >> place & 15], out);
            putc_unlocked(' ', out);
        }
    }
    fputc('\n', out);
}

static void print_bounds(const hlo_module *module, make_up *made, const hlo_error_options *options,
                         FILE *out) {
    jmp_buf recover;
    hlo_arena *arena = hlo_arena_new(NULL);
    if (!arena || setjmp(recover)) abort();
    hlo_arena_set_recover(arena, &recover);
    state s = {arena, made, hlo_arena_zero(arena, module->next_id * sizeof(hlo_view *)),
               hlo_arena_zero(arena, module->next_id * sizeof(hlo_view *)),
               made == crossed ? NUMBERS * NUMBERS : 256};
    for (const hlo_instruction *i = module->entry->first; i; i = hlo_instr_next(i)) {
        if (i->op == HLO_OP_GET_TUPLE_ELEMENT) {
            const uint32_t from = hlo_instr_operand(i, 0)->id;
            const int64_t index = hlo_instr_int(i, HLO_ATTR_INDEX, 0);
            if (s.values[from] && hlo_shape_is_array(i->shape)) {
                s.values[i->id] = s.values[from] + index;
                s.sigmas[i->id] = s.sigmas[from] + index;
            }
            continue;
        }
        if (!make_leaves(&s, i)) continue;
        if (i->op == HLO_OP_CONSTANT && i->u.literal->data)
            s.values[i->id]->data = i->u.literal->data;
        else if (i->op == HLO_OP_PARAMETER || !compute(&s, i, options))
            make_up_leaves(&s, i);
        else
            print_sigmas(&s, i, out);
    }
    hlo_arena_free(arena);
}

void bounds_of_module(const hlo_module *module, FILE *out) {
    make_up *const ways[] = {ordinary, repeated, extreme};
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++)
        for (int dropped = 0; dropped < 2; dropped++) {
            const hlo_error_options options = {
                .roundings_may_be_dropped = dropped,
                .sums = (hlo_error_sums)((dropped + (int)way) % (HLO_ERROR_SUMS_FAST + 1))};
            print_bounds(module, ways[way], &options, out);
        }
}

/* ----------------------------------------------------------------------------------- operations */

/* Prints the row of a module of one instruction, if it is valid. */
static void operation(const char *name, const char *type, const char *result, unsigned arity,
                      const char *end, const char *shown, FILE *out) {
    char text[1024], row[64];
    const int count = arity == 1 ? NUMBERS : NUMBERS * NUMBERS;
    const bool select = strcmp(name, "select") == 0;
    hlo_module *module;
    snprintf(row, sizeof row, "%s%s%s/%s/%s", name, *end ? "/" : "", *end ? end + 12 : "", type,
             result);
    for (char *at = row; *at; at++)
        if (*at == ' ' || *at == ',') *at = '-';
    if (shown && strcmp(shown, row) != 0) return;
    const char *first = select ? "pred" : type;
    snprintf(text, sizeof text,
             "HloModule m\nENTRY e {\n  a = %s[%d] parameter(0)\n  b = %s[%d] parameter(1)\n"
             "  c = %s[%d] parameter(2)\n  r = %s[%d] %s(a%s)%s\n"
             "  ROOT t = %s[%d] %s(a%s)%s\n}\n",
             first, count, type, count, type, count, result, count, name,
             arity == 1   ? ""
             : arity == 2 ? ", b"
                          : ", b, c",
             end, result, count, name,
             arity == 1   ? ""
             : arity == 2 ? ", a"
                          : ", b, b",
             end);
    if (hlo_module_parse(text, strlen(text), row, NULL, &module) != HLO_OK) return;
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK) {
        char *bounds = NULL;
        size_t size;
        FILE *to = open_memstream(&bounds, &size);
        if (!to) abort();
        for (int dropped = 0; dropped < 2; dropped++) {
            const hlo_error_options options = {.roundings_may_be_dropped = dropped};
            print_bounds(module, crossed, &options, to);
        }
        fclose(to);
        if (shown)
            fwrite(bounds, 1, size, out);
        else if (size)
            fprintf(out, "operations/%s %06x\n", row, digest_of(bounds, size));
        free(bounds);
    }
    hlo_module_free(module);
}

void bounds_of_operations(const char *shown, FILE *out) {
    static const struct {
        const char *name;
        bool is_wide; /* results of C library functions are rounded to this type once */
    } types[] = {{"f32", true},     {"bf16", false}, {"f16", false}, {"f8e4m3fn", false},
                 {"f8e5m2", false}, {"f64", true},   {"s32", true},  {"u8", true},
                 {"pred", true},    {"c64", true}};
    static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    enum { TYPES = sizeof types / sizeof *types };
    for (size_t t = 0; t < TYPES; t++) {
        const char *type = types[t].name;
        for (int op = 0; op < HLO_OP_COUNT; op++) {
            const hlo_op_info *info = &hlo_ops[op];
            if (!(info->flags & HLO_ELEMENTWISE)) continue;
            if (info->flags & HLO_TRANSCENDENTAL && !types[t].is_wide) continue;
            operation(info->name, type, type, info->max_operands, "", shown, out);
            if (strcmp(type, "pred") != 0)
                operation(info->name, type, "pred", info->max_operands, "", shown, out);
            if (strcmp(type, "c64") == 0)
                operation(info->name, type, "f32", info->max_operands, "", shown, out);
        }
        for (size_t d = 0; d < sizeof directions / sizeof *directions; d++) {
            char end[32];
            snprintf(end, sizeof end, ", direction=%s", directions[d]);
            operation("compare", type, "pred", 2, end, shown, out);
        }
        for (size_t to = 0; to < TYPES; to++)
            operation("convert", type, types[to].name, 1, "", shown, out);
    }
}
