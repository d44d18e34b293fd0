/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: accumulators of threads, and their combination. */
#include <math.h>
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/module/known.h"
#include "runtime/cuda/codegen/reduce.h"

enum { WARP = 32 }; /* threads */

/* Kinds of types by their identities, the columns of the table. */
enum { PRED, F32, F64, S32, S64, U32, U64, KINDS };

static const char *const identities[][KINDS] = {
    [HLO_OP_ADD] = {"false", "(-0.0f)", "(-0.0)", "0", "0ll", "0u", "0ull"},
    [HLO_OP_OR] = {"false", NULL, NULL, "0", "0ll", "0u", "0ull"},
    [HLO_OP_XOR] = {"false", NULL, NULL, "0", "0ll", "0u", "0ull"},
    [HLO_OP_AND] = {"true", NULL, NULL, "-1", "-1ll", "~0u", "~0ull"},
    [HLO_OP_MULTIPLY] = {"true", "1.0f", "1.0", "1", "1ll", "1u", "1ull"},
    [HLO_OP_MAXIMUM] = {"false", "(-float_inf())", "((double)-float_inf())", "(-0x7fffffff - 1)",
                        "(-0x7fffffffffffffffll - 1)", "0u", "0ull"},
    [HLO_OP_MINIMUM] = {"true", "(float_inf())", "((double)float_inf())", "0x7fffffff",
                        "0x7fffffffffffffffll", "~0u", "~0ull"},
};

/* Returns the text of the identity of an operation on a type, or NULL. */
static const char *identity(hlo_op op, hlo_type type) {
    const bool wide = hlo_types[type].bits == 64;
    const int kind = type == HLO_TYPE_PRED                       ? PRED
                     : hlo_type_is_float(type)                   ? F32 + wide
                     : hlo_types[type].class == HLO_CLASS_SIGNED ? S32 + wide
                                                                 : U32 + wide;
    return (size_t)op < sizeof identities / sizeof *identities ? identities[op][kind] : NULL;
}

hlo_op reduce_simple(const hlo_instr *instr) {
    hlo_op op = hlo_region_simple(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    hlo_type type = hlo_instr_operand(instr, 0)->shape->type;
    if (instr->operand_count != 2 || instr->shape->type != type) return HLO_OP_INVALID;
    return op < HLO_OP_COUNT && identity(op, type) ? op : HLO_OP_INVALID;
}

const char *reduce_start(const reducing *r) {
    const hlo_type type = hlo_instr_operand(r->instr, 0)->shape->type;
    double number;
    if (r->simple == HLO_OP_ADD && hlo_type_is_float(type) &&
        hlo_known_number(hlo_instr_operand(r->instr, 1), &number) && number == 0 &&
        !signbit(number))
        return hlo_types[type].bits == 64 ? "0.0" : "0.0f";
    return identity(r->simple, type);
}

void reduce_combine(emit *e, const reducing *r, const char *const *a, const char *const *b,
                    const char **out) {
    if (r->simple != HLO_OP_INVALID) {
        const char *in[] = {a[0], b[0]};
        out[0] =
            emit_value(e, "v", reduce_compute(r, 0), "%s", emit_operation(e, r->region->root, in));
        return;
    }
    const char **in = hlo_arena_array(e->arena, 2 * r->arrays, sizeof *in);
    memcpy(in, a, r->arrays * sizeof *in);
    memcpy(in + r->arrays, b, r->arrays * sizeof *in);
    emit_region(e, r->region, in, r->cells, out, r->cells);
}

void reduce_open_columns(reduction *s) {
    if (s->each == 1) return;
    emit_text(s->e, "#pragma unroll");
    emit_open(s->e, "for (int u = 0; u < %d; u++) {", s->each);
}

void reduce_close_columns(reduction *s) {
    if (s->each > 1) emit_close(s->e);
}

/* Declares a variable for each column of a thread, and returns its text. */
static const char *declare_each(reduction *s, const char *storage, const char *type,
                                const char *prefix, const char *dims) {
    emit *e = s->e;
    const char *name = emit_name(e, prefix);
    if (s->each == 1) {
        emit_text(e, "%s%s %s%s;", storage, type, name, dims);
        return name;
    }
    emit_text(e, "%s%s %s[%d]%s;", storage, type, name, s->each, dims);
    return hlo_arena_format(e->arena, "%s[u]", name);
}

/* Declares a thread's accumulators. They start with the identity, if there is one, otherwise with
 * the initial value, which HLO allows to be combined any number of times. */
void reduce_declare(reduction *s, reducing *r) {
    emit *e = s->e;
    r->acc = hlo_arena_array(e->arena, r->arrays, sizeof *r->acc);
    r->shared = hlo_arena_array(e->arena, r->arrays, sizeof *r->shared);
    for (uint32_t i = 0; i < r->arrays; i++) {
        const char *start =
            r->simple != HLO_OP_INVALID
                ? reduce_start(r)
                : emit_pull_scalar(e, hlo_instr_operand(r->instr, r->arrays + i), r->cells);
        r->acc[i] = declare_each(s, "", reduce_compute(r, i), "a", "");
        reduce_open_columns(s);
        emit_text(e, "%s = %s;", r->acc[i], start);
        reduce_close_columns(s);
    }
    r->total = hlo_arena_copy(e->arena, r->acc, r->arrays * sizeof *r->acc);
}

void reduce_accumulate(reduction *s, const reducing *r, const char *const *x) {
    const char **sum = hlo_arena_array(s->e->arena, r->arrays, sizeof *sum);
    reduce_combine(s->e, r, r->acc, x, sum);
    for (uint32_t i = 0; i < r->arrays; i++) emit_text(s->e, "%s = %s;", r->acc[i], sum[i]);
}

/* Accumulators of other threads: `format` converts the name of an accumulator of this thread, or of
 * its shared array, and `which`. */
typedef struct other {
    const char *format, *which;
    bool shared;
} other;

/* Sets the accumulators of a phase to those of another thread, or combines them with these. */
static void take(reduction *s, uint32_t phase, other from, bool combines) {
    emit *e = s->e;
    reduce_open_columns(s);
    for (uint32_t i = 0; i < s->count; i++) {
        const reducing *r = &s->reduces[i];
        if (r->phase != phase) continue;
        const char **x = hlo_arena_array(e->arena, r->arrays, sizeof *x);
        for (uint32_t a = 0; a < r->arrays; a++) {
            const char *of = from.shared ? r->shared[a] : r->acc[a];
            const char *text = hlo_arena_format(e->arena, from.format, of, from.which);
            x[a] = emit_value(e, "v", reduce_compute(r, a), "%s", text);
        }
        for (uint32_t a = 0; a < r->arrays && !combines; a++)
            emit_text(e, "%s = %s;", r->acc[a], x[a]);
        if (combines) reduce_accumulate(s, r, x);
    }
    reduce_close_columns(s);
}

void reduce_gather_lanes(reduction *s, uint32_t phase) {
    emit *e = s->e;
    bool any = false;
    for (uint32_t i = 0; i < s->count; i++) any |= s->reduces[i].phase == phase;
    if (!any || s->lanes == 1) return;
    const int apart = s->row ? 1 : s->rows; /* distance in threads from one lane to the next */
    const int most = apart < WARP ? WARP / apart : 1, lanes = s->lanes < most ? s->lanes : most;
    if (lanes > 1) {
        const char *step = emit_name(e, "i");
        emit_text(e, "#pragma unroll");
        emit_open(e, "for (int %s = %d; %s >= %d; %s /= 2) {", step, lanes / 2 * apart, step, apart,
                  step);
        take(s, phase, (other){"shuffled_down(%s, %s)", step, false}, true);
        emit_close(e);
    }
    if (s->lanes > lanes) {
        /* Combines the accumulators of a row's warps, in order, through shared memory: the first of
         * `lanes` in each warp already has the combined accumulators of its warp. */
        for (uint32_t i = 0; i < s->count; i++) {
            reducing *r = &s->reduces[i];
            for (uint32_t a = 0; a < r->arrays && r->phase == phase; a++)
                r->shared[a] = declare_each(s, "__shared__ ", reduce_compute(r, a), "s",
                                            hlo_arena_format(e->arena, "[%d]", CUDA_BLOCK / lanes));
        }
        const char *mine = emit_offset(e, "%s / %d * %d + %s", s->lane, lanes, s->rows, s->mine);
        emit_open(e, "if (%s %% %d == 0) {", s->lane, lanes);
        reduce_open_columns(s);
        for (uint32_t i = 0; i < s->count; i++) {
            const reducing *r = &s->reduces[i];
            for (uint32_t a = 0; a < r->arrays && r->phase == phase; a++)
                emit_text(e, "%s[%s] = %s;", r->shared[a], mine, r->acc[a]);
        }
        reduce_close_columns(s);
        emit_close(e);
        emit_text(e, "__syncthreads();");
        take(s, phase, (other){"%s[%s]", s->mine, true}, false);
        const char *warp = emit_name(e, "i");
        emit_text(e, "#pragma unroll");
        emit_open(e, "for (int %s = 1; %s < %d; %s++) {", warp, warp, s->lanes / lanes, warp);
        const char *next = emit_offset(e, "%s * %d + %s", warp, s->rows, s->mine);
        take(s, phase, (other){"%s[%s]", next, true}, true);
        emit_close(e);
    } else if (s->phases > 1)
        take(s, phase,
             (other){"shuffled_from(%s, %s)", emit_offset(e, "(int)threadIdx.x - %s", s->lane),
                     false},
             false);
}
