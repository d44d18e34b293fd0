/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of fp8 values as the tensor cores of Hopper compute them: docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"

/* STEP: products that one instruction adds to the accumulator. FRACTION_BITS: fraction bits of the
 * largest product that it keeps. PROMOTED: products after which the accumulator is added to a sum
 * in f32. */
enum { STEP = 32, FRACTION_BITS = 13, PROMOTED = 128 };

typedef struct sums {
    const float *a, *b; /* [batch, m, k] and [batch, n, k] */
    float *c;           /* [batch, m, n] */
    int64_t m, n, k;
    int64_t promoted; /* terms per accumulator */
} sums;

/* Adds up to STEP products to the accumulator: all are truncated toward zero at the last kept bit
 * of the largest. */
static float add_step(float sum, const float *a, const float *b, int64_t count) {
    float terms[STEP + 1], largest = 0;
    terms[STEP] = sum;
    for (int64_t i = 0; i < STEP; i++) terms[i] = i < count ? a[i] * b[i] : 0;
    for (int64_t i = 0; i <= STEP; i++)
        largest = fabsf(terms[i]) > largest ? fabsf(terms[i]) : largest;
    float plain = 0;
    for (int64_t i = 0; i <= STEP; i++) plain += terms[i];
    if (!isfinite(plain) || largest == 0) return plain;
    const double unit = ldexp(1, ilogbf(largest) - FRACTION_BITS);
    double kept = 0;
    for (int64_t i = 0; i <= STEP; i++) kept += trunc((double)terms[i] / unit);
    return (float)(kept * unit);
}

static float sum_of(const sums *s, const float *a, const float *b) {
    float all = 0;
    for (int64_t from = 0; from < s->k; from += s->promoted) {
        const int64_t end = s->k - from < s->promoted ? s->k : from + s->promoted;
        float sum = 0;
        for (int64_t at = from; at < end; at += STEP)
            sum = add_step(sum, a + at, b + at, end - at < STEP ? end - at : STEP);
        all += sum;
    }
    return all;
}

static void make_rows(void *arg, int64_t begin, int64_t end) {
    const sums *s = arg;
    for (int64_t row = begin; row < end; row++)
        for (int64_t j = 0; j < s->n; j++)
            s->c[row * s->n + j] =
                sum_of(s, s->a + row * s->k, s->b + (row / s->m * s->n + j) * s->k);
}

/* Returns an operand as [batch, free dimensions, contracting dimension], f32 and dense. */
static const float *arrange(const cpu_device *cpu, const hlo_view *view, const hlo_ints *batch,
                            const hlo_ints *contracting) {
    hlo_dims dims, strides;
    const hlo_view grouped = hlo_view_group(view, batch, contracting, &dims, &strides);
    hlo_view wide = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, &grouped);
    hlo_view_convert(&cpu->env, &grouped, &wide);
    return wide.data;
}

void cpu_accumulate_narrow(const cpu_device *cpu, hlo_dot_dims dims, hlo_matmul_sizes size,
                           const hlo_view *a, const hlo_view *b, bool fast, float *out) {
    const hlo_arena_mark mark = hlo_arena_here(cpu->scratch);
    sums s = {.a = arrange(cpu, a, dims.lhs_batch, dims.lhs_contracting),
              .b = arrange(cpu, b, dims.rhs_batch, dims.rhs_contracting),
              .c = out,
              .m = size.m,
              .n = size.n,
              .k = size.k,
              .promoted = fast ? size.k + 1 : PROMOTED};
    cpu->env.parallel(cpu->env.user, size.batch * size.m, make_rows, &s);
    hlo_arena_release(cpu->scratch, mark);
}

/* True if a rewrite can find a converted and scaled fp8 value in the value. Either such operations,
 * and those that rewrites move across a scale, lead to a value of at most 8 bits (fp8 represents
 * all values of the narrower types). Or the value enters a computation, or leaves a loop or a
 * branch, where rewrites also keep fp8 values. After *steps values, returns true. */
static bool may_be_dequantized(const hlo_instr *value, int *steps) {
    if (!hlo_shape_is_array(value->shape)) return false;
    if ((*steps)-- == 0) return true;
    if (hlo_types[value->shape->type].bytes == 1) return true;
    switch (value->op) {
    case HLO_OP_PARAMETER: return value->parent != value->parent->module->entry;
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL: return true;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instr *tuple = hlo_instr_operand(value, 0);
        if (tuple->op != HLO_OP_TUPLE) return tuple->op != HLO_OP_CUSTOM_CALL;
        const int64_t index = hlo_instr_int(value, HLO_ATTR_INDEX, 0);
        return may_be_dequantized(hlo_instr_operand(tuple, (uint32_t)index), steps);
    }
    case HLO_OP_ABS:
    case HLO_OP_ADD:
    case HLO_OP_CALL:
    case HLO_OP_CLAMP:
    case HLO_OP_CONVERT:
    case HLO_OP_DIVIDE:
    case HLO_OP_FUSION:
    case HLO_OP_MAXIMUM:
    case HLO_OP_MINIMUM:
    case HLO_OP_MULTIPLY:
    case HLO_OP_NEGATE:
    case HLO_OP_SUBTRACT: break;
    case HLO_OP_CUSTOM_CALL: /* of one operand: for example a sharding annotation */
        if (value->operand_count == 1) break;
        return false;
    default:
        if (!hlo_op_is(value->op, HLO_MOVEMENT | HLO_JOINS)) return false;
    }
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (may_be_dequantized(hlo_instr_operand(value, i), steps)) return true;
    return false;
}

hlo_error_options cpu_error_options(const hlo_job *job) {
    hlo_error_options options = {.roundings_may_be_dropped = job->roundings_may_be_dropped};
    hlo_matmul m;
    const char *why;
    if (job->accumulate != HLO_ACCUMULATE_HOPPER || !job->instr) return options;
    if (job->instr->op == HLO_OP_DOT || job->instr->op == HLO_OP_CONVOLUTION ||
        job->instr->op == HLO_OP_RAGGED_DOT) {
        /* If both operands of a product can be dequantized values, the product may become an FP8
         * call, which uses fast accumulation unless an operand requests higher precision. */
        enum { STEPS = 256 };
        for (uint32_t i = 0; i < 2; i++)
            if (!may_be_dequantized(hlo_instr_operand(job->instr, i), &(int){STEPS}))
                return options;
        hlo_matmul_from_dot(job->instr, &m);
        options.sums =
            hlo_matmul_accumulates_fast(&m) ? HLO_ERROR_SUMS_FAST : HLO_ERROR_SUMS_PROMOTED;
    } else if (hlo_matmul_is_call(job->instr) &&
               hlo_matmul_decode(job->instr, &m, &why) == HLO_OK) {
        options.sums =
            hlo_matmul_accumulates_fast(&m) ? HLO_ERROR_SUMS_FAST : HLO_ERROR_SUMS_PROMOTED;
    }
    return options;
}
