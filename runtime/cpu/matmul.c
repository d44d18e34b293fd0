/* SPDX-License-Identifier: Apache-2.0 */
/* Computes cuBLASLt matmul calls on the CPU: D = d_scale * epilogue(alpha * a_scale * b_scale * (A
 * x B) + beta * c_scale * C + bias), accumulated and scaled in f32 (matmul/call.h). */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ir/error/error.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "matmul/call.h"
#include "runtime/cpu/cpu.h"

/* ---------------------------------------------------------------------------------- activations */

/* Each activation has functions in f32 and f64, and the error bound of the f32 function. */

static float value_RELU(float x) {
    return x < 0 ? 0 : x;
}

static double exact_RELU(double x) {
    return x < 0 ? 0 : x;
}

static double rounding_RELU(double x, double y) {
    (void)x, (void)y;
    return 0;
}

static float value_GELU(float x) {
    const float root = 0.7978845608028654f; /* sqrt(2 / pi) */
    return 0.5f * x * (1 + tanhf(root * (x + 0.044715f * x * x * x)));
}

static double exact_GELU(double x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
}

/* Returns the rounding error: 1 + tanh is rounded like a number near 1, even if small. */
static double rounding_GELU(double x, double y) {
    return 0x1p-24 * fmax(8 * fabs(y), fabs(x) / 2);
}

const cpu_activation cpu_activations[HLO_ACTIVATION_COUNT] = {
    {NULL, NULL, NULL},
#define HLO_ACTIVATION(id, homogeneous, never_negative) {value_##id, exact_##id, rounding_##id},
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION
};

/* --------------------------------------------------------------------------------------- scales */

/* Scales of matmul operands per row and per block. If scales vary along the contracting dimension,
 * the product of each range with constant scales is multiplied by the scales before the products
 * are summed, all in f32. */

/* The scales of a and b, in any scale modes. Arrays are dense. A NULL scale is 1; a NULL sigma
 * means that the scale is exact. */
typedef struct cpu_scales {
    const float *a, *b, *a_sigma, *b_sigma;
    hlo_scale_mode a_mode, b_mode;
    hlo_matmul_sizes size;
} cpu_scales;

/* The factor by which scales multiply one term of one element of the product. */
typedef struct cpu_scale {
    double value; /* product of both scales, rounded to f32; exact for 8-bit scales */
    double sigma; /* sigma of both scales, without the rounding of `value` */
} cpu_scale;

static bool are_scalar(const cpu_scales *s) {
    return s->a_mode == HLO_SCALE_SCALAR && s->b_mode == HLO_SCALE_SCALAR;
}

/* True if a scale varies along the contracting dimension. */
static bool vary_inside(const cpu_scales *s) {
    return hlo_scale_modes[s->a_mode].along || hlo_scale_modes[s->b_mode].along;
}

static float at(const float *values, int64_t index, float absent) {
    return values ? values[index] : absent;
}

/* Returns the factor of term `along` of element `element` (row-major) of the product. */
static cpu_scale scale_at(const cpu_scales *s, int64_t element, int64_t along) {
    int64_t a = hlo_scale_index(s->a_mode, s->size.m, s->size.k, element / s->size.n, along);
    int64_t column = element / (s->size.m * s->size.n) * s->size.n + element % s->size.n;
    int64_t b = hlo_scale_index(s->b_mode, s->size.n, s->size.k, column, along);
    double x = (double)at(s->a, a, 1), y = (double)at(s->b, b, 1);
    double x_sigma = (double)at(s->a_sigma, a, 0), y_sigma = (double)at(s->b_sigma, b, 0);
    const bool narrow =
        hlo_scale_modes[s->a_mode].type != HLO_TYPE_F32; /* 8-bit scales, whose signs are ignored */
    return (cpu_scale){.value = narrow ? fabs(x * y) : (double)((float)x * (float)y),
                       .sigma = hypot(x_sigma * y, y_sigma * x)};
}

/* A range of the contracting dimension with constant scales. */
typedef struct stretch {
    const cpu_scales *scales;
    int64_t start;
    const float *part, *part_sigma; /* product of the range, and its sigmas */
    float *product;
    double *variance; /* sums of squared sigmas; NULL if not requested */
} stretch;

static void add_stretch(void *arg, int64_t begin, int64_t end) {
    const stretch *s = arg;
    const double unit = 0x1p-24;
    for (int64_t i = begin; i < end; i++) {
        cpu_scale scale = scale_at(s->scales, i, s->start);
        float term = (float)(scale.value * (double)s->part[i]);
        s->product[i] += term;
        if (!s->variance) continue;
        double errors[] = {scale.value * (double)s->part_sigma[i], scale.sigma * (double)s->part[i],
                           2 * unit * (double)term, unit * (double)s->product[i]};
        for (int e = 0; e < 4; e++) s->variance[i] += errors[e] * errors[e];
    }
}

/* Returns a view of `count` elements, starting at `start`, along dimension `dim`. */
static hlo_view part_of(const hlo_view *view, int64_t dim, int64_t start, int64_t count,
                        hlo_dims *dims, hlo_dims *strides) {
    hlo_dims from = {{0}};
    for (uint32_t d = 0; d < view->rank; d++) dims->v[d] = view->dims[d];
    from.v[dim] = start;
    dims->v[dim] = count;
    return hlo_view_part(view, from.v, dims->v, NULL, strides);
}

typedef struct side {
    const hlo_view *value, *sigma;
    int64_t dim; /* the contracting dimension */
    hlo_view part, part_sigma;
    hlo_dims dims, strides, sigma_strides;
} side;

static void take(side *s, int64_t start, int64_t count) {
    s->part = part_of(s->value, s->dim, start, count, &s->dims, &s->strides);
    s->part_sigma = (hlo_view){.data = NULL};
    if (s->sigma && s->sigma->data)
        s->part_sigma = part_of(s->sigma, s->dim, start, count, &s->dims, &s->sigma_strides);
}

/* Computes the scaled product of operands with one contracting dimension each, as dense f32. Unless
 * `variance` is NULL, also computes the squares of the product's sigmas. */
static hlo_status multiply_ranges(const cpu_device *cpu, const cpu_scales *scales,
                                  hlo_dot_dims dims, const hlo_view *a, const hlo_view *a_sigma,
                                  const hlo_view *b, const hlo_view *b_sigma,
                                  const hlo_view *product, double *variance,
                                  const hlo_error_options *options, const char **why) {
    const int64_t a_step = hlo_scale_modes[scales->a_mode].along;
    const int64_t step = a_step ? a_step : hlo_scale_modes[scales->b_mode].along;
    int64_t count = hlo_view_count(product), k = scales->size.k;
    side left = {.value = a, .sigma = a_sigma, .dim = dims.lhs_contracting->v[0]};
    side right = {.value = b, .sigma = b_sigma, .dim = dims.rhs_contracting->v[0]};
    stretch s = {.scales = scales, .product = product->data, .variance = variance};
    for (int64_t i = 0; i < count; i++) s.product[i] = 0;
    for (int64_t i = 0; variance && i < count; i++) variance[i] = 0;
    hlo_status status = HLO_OK;
    for (s.start = 0; s.start < k && status == HLO_OK; s.start += step) {
        hlo_arena_mark mark = hlo_arena_here(cpu->scratch);
        hlo_view part = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, product), sigma = part;
        take(&left, s.start, k - s.start < step ? k - s.start : step);
        take(&right, s.start, k - s.start < step ? k - s.start : step);
        status =
            hlo_eval_dot_views(&cpu->env, dims, &left.part, &right.part, &part, cpu->scratch, why);
        if (status == HLO_OK && variance) {
            sigma = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, product);
            status =
                hlo_error_dot_views(&cpu->env, dims, &left.part, &left.part_sigma, &right.part,
                                    &right.part_sigma, &part, &sigma, options, cpu->scratch, why);
        }
        s.part = part.data;
        s.part_sigma = sigma.data;
        if (status == HLO_OK) cpu->env.parallel(cpu->env.user, count, add_stretch, &s);
        hlo_arena_release(cpu->scratch, mark);
    }
    return status;
}

/* --------------------------------------------------------------------------------- accumulation */

/* Sums of products of fp8 values as the tensor cores of Hopper compute them: docs/numerics.md. */

/* STEP: number of products that one instruction adds to the accumulator. FRACTION_BITS: number of
 * fraction bits of the largest product that are kept. PROMOTED: number of products after which the
 * accumulator is added to a sum in f32. */
enum { STEP = 32, FRACTION_BITS = 13, PROMOTED = 128 };

typedef struct sums {
    const float *a, *b; /* [batch, m, k] and [batch, n, k] */
    float *c;           /* [batch, m, n] */
    int64_t m, n, k;
    int64_t promoted; /* terms per accumulator */
} sums;

static float sum_of(const sums *s, const float *a, const float *b) {
    float all = 0;
    for (int64_t from = 0; from < s->k; from += s->promoted) {
        const int64_t end = s->k - from < s->promoted ? s->k : from + s->promoted;
        float sum = 0;
        for (int64_t at = from; at < end; at += STEP) {
            /* Add up to STEP products to the accumulator. Each term is truncated toward zero at the
             * last bit that is kept of the largest term. */
            float terms[STEP + 1], largest = 0, plain = 0;
            terms[STEP] = sum;
            for (int64_t i = 0; i < STEP; i++) terms[i] = at + i < end ? a[at + i] * b[at + i] : 0;
            for (int64_t i = 0; i <= STEP; i++) {
                largest = fabsf(terms[i]) > largest ? fabsf(terms[i]) : largest;
                plain += terms[i];
            }
            sum = plain;
            if (!isfinite(plain) || largest == 0) continue;
            const double unit = ldexp(1, ilogbf(largest) - FRACTION_BITS);
            double kept = 0;
            for (int64_t i = 0; i <= STEP; i++) kept += trunc((double)terms[i] / unit);
            sum = (float)(kept * unit);
        }
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

/* True if a rewrite may replace the value by an fp8 value and a scale: if the value is computed
 * from a value of at most 8 bits only by conversions, scalings and operations that rewrites move
 * across a scale. (fp8 represents all values of the narrower types.) A value that enters a
 * computation or leaves a loop or branch also qualifies, because rewrites pass fp8 values there.
 * Returns true after *steps values. */
static bool may_be_dequantized(const hlo_instruction *value, int *steps) {
    if (!hlo_shape_is_array(value->shape)) return false;
    if ((*steps)-- == 0) return true;
    if (hlo_types[value->shape->type].bytes == 1) return true;
    switch (value->op) {
    case HLO_OP_PARAMETER: return value->parent != value->parent->module->entry;
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL: return true;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instruction *tuple = hlo_instr_operand(value, 0);
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
    case HLO_OP_CUSTOM_CALL: /* a call with one operand, for example a sharding annotation */
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
        /* If both operands of a product may be dequantized values, a rewrite may turn the product
         * into an FP8 call. Such a call uses fast accumulation unless an operand requests higher
         * precision. */
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

/* ------------------------------------------------------------------------------------- epilogue */

/* The operand or result index of each part of the call, or -1. */
typedef struct parts {
    hlo_matmul matmul;
    int a, b, c, a_scale, b_scale, c_scale, d_scale, bias;
    int aux, amax, workspace; /* indices of results */
    int64_t n;
} parts;

bool cpu_matmul_supports(const hlo_instruction *call, hlo_arena *arena, const char **why) {
    hlo_matmul m;
    const char *reason;
    if (hlo_matmul_decode(call, &m, &reason) != HLO_OK) {
        *why = hlo_arena_format(arena, "is not a valid matmul call: %s", reason);
        return false;
    }
    const hlo_type types[] = {m.a->shape->type, m.b->shape->type, m.d->type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!hlo_type_is_float(types[i]) || types[i] == HLO_TYPE_F64) {
            *why = hlo_arena_format(arena, "on %s is not supported by the cpu backend",
                                    hlo_types[types[i]].name);
            return false;
        }
    return true;
}

static int operand_index(const hlo_instruction *call, const hlo_instruction *operand) {
    for (uint32_t i = 0; operand && i < call->operand_count; i++)
        if (hlo_instr_operand(call, i) == operand) return (int)i;
    return -1;
}

void cpu_matmul_prepare(hlo_job *job, hlo_arena *arena) {
    const char *why;
    parts *p = hlo_arena_zero(arena, sizeof *p);
    hlo_matmul *m = &p->matmul;
    hlo_matmul_decode(job->instr, m, &why);
    p->a = operand_index(job->instr, m->a);
    p->b = operand_index(job->instr, m->b);
    p->c = operand_index(job->instr, m->c);
    p->a_scale = operand_index(job->instr, m->a_scale);
    p->b_scale = operand_index(job->instr, m->b_scale);
    p->c_scale = operand_index(job->instr, m->c_scale);
    p->d_scale = operand_index(job->instr, m->d_scale);
    p->bias = operand_index(job->instr, m->bias);
    p->aux = hlo_matmul_aux_index(m);
    p->amax = hlo_matmul_amax_index(m);
    int known = 1 + (p->aux >= 0) + (p->amax >= 0);
    p->workspace = (int)job->result_count > known ? known : -1;
    p->n = hlo_matmul_extents(m).n;
    job->untouched = p->workspace;
    job->scratch_size = (size_t)hlo_shape_count(m->d) * sizeof(float);
    job->state = p;
}

static float scalar_of(const hlo_job *job, int operand) {
    return operand < 0 ? 1.0f : *(const float *)job->operands[operand].data;
}

/* The state of the epilogue, which replaces each element of the product by the element of D. */
typedef struct epilogue {
    float *d;          /* row-major */
    const float *c;    /* row-major, or NULL */
    const float *bias; /* n elements, or NULL */
    float *aux;        /* row-major, or NULL */
    int64_t n;
    const cpu_scales *scales; /* scales per row and column of the product, or NULL */
    float product_scale, c_scale, d_scale;
    float limit; /* largest finite value of D's type; infinity: D does not saturate */
    const cpu_activation *activation;
    bool amax_wanted;
    atomic_uint
        amax; /* the amax so far, as the bits of a float: compared as integers, NaN is largest */
} epilogue;

/* Evaluates both comparisons for every x, so that compilers vectorize the loop. */
static inline float saturate(float x, float limit) {
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

/* True if the call reads A, B and their scales. With alpha 0, the call ignores them, so that their
 * infinities and NaNs do not reach D. */
static bool multiplies(const hlo_matmul *m) {
    return m->alpha != 0;
}

static double factor(const epilogue *e, int64_t i) {
    float scale = e->scales ? (float)scale_at(e->scales, i, 0).value : 1;
    return (double)(e->product_scale * scale);
}

HLO_CLONED static void scale_range(float *d, int64_t count, float scale, float d_scale,
                                   float limit) {
    for (int64_t i = 0; i < count; i++) d[i] = saturate(scale * d[i] * d_scale, limit);
}

static void finish_range(void *arg, int64_t begin, int64_t end) {
    epilogue *e = arg;
    float amax = 0;
    /* Handle the most common epilogue, which only scales, separately. */
    if (!e->scales && !e->c && !e->bias && !e->aux && !e->activation->value && !e->amax_wanted) {
        scale_range(e->d + begin, end - begin, e->product_scale, e->d_scale, e->limit);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        float x = (float)factor(e, i) * e->d[i];
        if (e->c) x += e->c_scale * e->c[i];
        if (e->bias) x += e->bias[i % e->n];
        if (e->aux) e->aux[i] = x;
        if (e->activation->value) x = e->activation->value(x);
        float size = fabsf(x);
        if (size > amax || isnan(size)) amax = isnan(amax) ? amax : size;
        e->d[i] = saturate(x * e->d_scale, e->limit);
    }
    unsigned bits;
    memcpy(&bits, &amax, sizeof bits);
    unsigned before = atomic_load(&e->amax);
    while (bits > before && !atomic_compare_exchange_weak(&e->amax, &before, bits)) continue;
}

/* Returns an array as dense f32, or NULL if the array has no data. */
static const float *densify(const cpu_device *cpu, const hlo_view *from) {
    if (!from->data) return NULL;
    hlo_view wide = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, from);
    hlo_view_convert(&cpu->env, from, &wide);
    return wide.data;
}

/* Return an operand, or its sigmas, as dense f32; NULL if the call has none. */
static const float *widen(const cpu_device *cpu, const hlo_job *job, int operand) {
    return operand < 0 ? NULL : densify(cpu, &job->operands[operand]);
}

static const float *dense_sigma(const cpu_device *cpu, const hlo_job *job, int operand) {
    return operand < 0 ? NULL : densify(cpu, &job->operand_sigmas[operand]);
}

static hlo_view dense_f32(const hlo_view *like, void *data, hlo_dims *strides) {
    hlo_view_dense(like, strides);
    return (hlo_view){HLO_TYPE_F32, like->rank, like->dims, strides->v, data};
}

static void write_result(const cpu_device *cpu, float *values, const hlo_view *out) {
    hlo_dims strides;
    hlo_view view = dense_f32(out, values, &strides);
    hlo_view_convert(&cpu->env, &view, out);
}

/* -------------------------------------------------------------------------------------- product */

/* The product A x B, and its sigmas for the epilogue's bounds. */
typedef struct product {
    cpu_scales scales;
    const float *copy;  /* copy of the product; NULL without bounds */
    const float *sigma; /* sigmas (ir/error/error.h); NULL if bounds are not requested */
} product;

static hlo_status multiply(const cpu_device *cpu, const hlo_job *job, product *out,
                           const char **why) {
    static const hlo_view exact = {.data = NULL};
    const parts *p = job->state;
    const hlo_matmul *m = &p->matmul;
    const hlo_dot_dims dims = {m->a_batch, m->a_contracting, m->b_batch, m->b_contracting};
    const hlo_view *d = &job->results[0], *a = &job->operands[p->a], *b = &job->operands[p->b];
    const hlo_view *a_sigma = job->bounded ? &job->operand_sigmas[p->a] : &exact;
    const hlo_view *b_sigma = job->bounded ? &job->operand_sigmas[p->b] : &exact;
    const hlo_error_options options = cpu_error_options(job);
    size_t count = (size_t)hlo_view_count(d);
    hlo_dims strides;
    hlo_view values = dense_f32(d, job->scratch, &strides);
    *out = (product){.scales = {.size = hlo_matmul_extents(m)}};
    cpu_scales *scales = &out->scales;
    if (!multiplies(m)) { /* zeros, exact */
        memset(job->scratch, 0, count * sizeof(float));
        if (job->bounded)
            out->sigma = out->copy = hlo_arena_zero(cpu->scratch, count * sizeof(float));
        return HLO_OK;
    }
    scales->a_mode = m->a_mode;
    scales->b_mode = m->b_mode;
    if (!are_scalar(scales)) {
        scales->a = widen(cpu, job, p->a_scale);
        scales->b = widen(cpu, job, p->b_scale);
        if (job->bounded) scales->a_sigma = dense_sigma(cpu, job, p->a_scale);
        if (job->bounded) scales->b_sigma = dense_sigma(cpu, job, p->b_scale);
    }
    bool inside = vary_inside(scales);
    double *variance = NULL;
    if (inside && job->bounded) variance = hlo_arena_array(cpu->scratch, count, sizeof *variance);
    hlo_status status = HLO_OK;
    if (inside) {
        status = multiply_ranges(cpu, scales, dims, a, a_sigma, b, b_sigma, &values, variance,
                                 &options, why);
    } else if (job->accumulate == HLO_ACCUMULATE_HOPPER && hlo_type_is_fp8(a->type) &&
               hlo_type_is_fp8(b->type)) {
        const hlo_arena_mark mark = hlo_arena_here(cpu->scratch);
        const hlo_matmul_sizes size = scales->size;
        sums s = {.a = arrange(cpu, a, dims.lhs_batch, dims.lhs_contracting),
                  .b = arrange(cpu, b, dims.rhs_batch, dims.rhs_contracting),
                  .c = values.data,
                  .m = size.m,
                  .n = size.n,
                  .k = size.k,
                  .promoted = hlo_matmul_accumulates_fast(m) ? size.k + 1 : PROMOTED};
        cpu->env.parallel(cpu->env.user, size.batch * size.m, make_rows, &s);
        hlo_arena_release(cpu->scratch, mark);
    } else
        status = hlo_eval_dot_views(&cpu->env, dims, a, b, &values, cpu->scratch, why);
    if (status != HLO_OK || !job->bounded) return status;
    out->copy = hlo_arena_copy(cpu->scratch, values.data, count * sizeof(float));
    if (variance) {
        float *roots = hlo_arena_array(cpu->scratch, count, sizeof *roots);
        for (size_t i = 0; i < count; i++) roots[i] = (float)sqrt(variance[i]);
        out->sigma = roots;
        return HLO_OK;
    }
    hlo_view sigma = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, d);
    out->sigma = sigma.data;
    return hlo_error_dot_views(&cpu->env, dims, a, a_sigma, b, b_sigma, &values, &sigma, &options,
                               cpu->scratch, why);
}

/* --------------------------------------------------------------------------------------- bounds */

/* The state for computing the sigmas (ir/error/error.h) of the epilogue's elements. */
typedef struct bounds {
    const epilogue *e;
    const float *product, *product_sigma; /* A x B, before the epilogue overwrote it */
    const float *c_sigma, *bias_sigma;    /* dense; NULL if exact */
    double product_scale_sigma, c_scale_sigma, d_scale_sigma;
    hlo_type type, aux_type;
    const hlo_error_options *options;
    float *d, *aux;      /* sigmas of D and of the auxiliary result; NULL if not requested */
    bool anything;       /* an element may be NaN, and therefore also the amax */
    double above, below; /* the amax if all elements are increased, or decreased, by their sigmas */
} bounds;

static double squared(double x) {
    return x * x;
}

static double activate(const epilogue *e, double x) {
    return e->activation->exact ? e->activation->exact(x) : x;
}

static double addend_variance(float value, float sigma) {
    bool overflowed = hlo_error_overflowed((double)value, (double)sigma);
    return overflowed ? HLO_ERROR_ANYTHING : squared((double)sigma);
}

/* True if the results are arbitrary, because the scale turns zeros into NaNs and the results are
 * compared with those of a module that may pad with zeros at other positions. */
static bool spoils_zeros(const bounds *b, double scale) {
    return b->options->roundings_may_be_dropped && !isfinite(scale);
}

static void bound_element(bounds *b, int64_t i) {
    const epilogue *e = b->e;
    const double unit = 0x1p-24;
    double scale = factor(e, i), scale_sigma = b->product_scale_sigma;
    if (e->scales)
        scale_sigma =
            hypot((double)e->product_scale * scale_at(e->scales, i, 0).sigma, 2 * unit * scale);
    double x = scale * b->product[i];
    double variance = squared(scale * (double)b->product_sigma[i]) +
                      squared(scale_sigma * b->product[i]) + squared(unit * x);
    if (e->c) {
        double term = (double)e->c_scale * e->c[i];
        variance += squared(b->c_scale_sigma * e->c[i]) + squared(unit * term);
        if (b->c_sigma) variance += squared(e->c_scale) * addend_variance(e->c[i], b->c_sigma[i]);
        x += term;
        variance += squared(unit * x);
    }
    if (e->bias) {
        x += e->bias[i % e->n];
        variance += squared(unit * x);
        if (b->bias_sigma) variance += addend_variance(e->bias[i % e->n], b->bias_sigma[i % e->n]);
    }
    if (spoils_zeros(b, scale) || spoils_zeros(b, (double)e->d_scale) || isnan(variance)) {
        b->anything = true;
        b->d[i] = (float)HLO_ERROR_ANYTHING;
        if (b->aux) b->aux[i] = (float)HLO_ERROR_ANYTHING;
        return;
    }
    double sigma = sqrt(variance), move = HLO_ERROR_LAMBDA * sigma;
    if (b->aux) b->aux[i] = (float)hlo_error_rounded(b->aux_type, x, sigma, INFINITY, b->options);
    double y = activate(e, x), up = activate(e, x + move), down = activate(e, x - move);
    sigma = fmax(fabs(up - y), fabs(down - y)) / HLO_ERROR_LAMBDA;
    if (e->activation->rounding) sigma = hypot(sigma, e->activation->rounding(x, y));
    move = HLO_ERROR_LAMBDA * sigma;
    b->above = fmax(b->above, fabs(y) + move);
    b->below = fmax(b->below, fabs(y) - move);
    double value = y * e->d_scale;
    sigma =
        sqrt(squared(sigma * e->d_scale) + squared(b->d_scale_sigma * y) + squared(unit * value));
    b->d[i] = (float)hlo_error_rounded(b->type, value, sigma, e->limit, b->options);
}

static double scale_sigma(const hlo_job *job, int operand) {
    if (operand < 0 || !job->operand_sigmas[operand].data) return 0;
    return *(const float *)job->operand_sigmas[operand].data;
}

static hlo_status bound_all(const cpu_device *cpu, const hlo_job *job, const epilogue *e,
                            const product *made) {
    const parts *p = job->state;
    const hlo_matmul *m = &p->matmul;
    const hlo_view *d = &job->results[0];
    size_t count = (size_t)hlo_view_count(d);
    const hlo_error_options options = cpu_error_options(job);
    double product_scale_sigma = multiplies(m) ? 0x1p-24 * fabs(m->alpha) : 0;
    if (are_scalar(&made->scales) && multiplies(m)) {
        /* Compute the sigma of the product of both scales. */
        const double x = scalar_of(job, p->a_scale), y = scalar_of(job, p->b_scale);
        product_scale_sigma = fabs(m->alpha) * sqrt(squared(scale_sigma(job, p->a_scale) * y) +
                                                    squared(scale_sigma(job, p->b_scale) * x) +
                                                    squared(0x1p-23 * x * y));
    }
    bounds b = {
        .e = e,
        .product = made->copy,
        .product_sigma = made->sigma,
        .c_sigma = dense_sigma(cpu, job, p->c),
        .bias_sigma = dense_sigma(cpu, job, p->bias),
        .product_scale_sigma = product_scale_sigma,
        .c_scale_sigma = fabs(m->beta) * scale_sigma(job, p->c_scale),
        .d_scale_sigma = scale_sigma(job, p->d_scale),
        .type = d->type,
        .options = &options,
        .d = hlo_arena_array(cpu->scratch, count, sizeof(float)),
    };
    if (p->aux >= 0) {
        b.aux = hlo_arena_array(cpu->scratch, count, sizeof(float));
        b.aux_type = job->results[p->aux].type;
    }
    for (size_t i = 0; i < count; i++) bound_element(&b, (int64_t)i);
    write_result(cpu, b.d, &job->result_sigmas[0]);
    if (b.aux) write_result(cpu, b.aux, &job->result_sigmas[p->aux]);
    if (p->amax >= 0) {
        double amax = *(const float *)job->results[p->amax].data;
        *(float *)job->result_sigmas[p->amax].data =
            (float)(b.anything ? HLO_ERROR_ANYTHING
                               : fmax(b.above - amax, amax - b.below) / HLO_ERROR_LAMBDA);
    }
    return HLO_OK;
}

/* ---------------------------------------------------------------------------------------- calls */

hlo_status cpu_matmul_execute(const cpu_device *cpu, const hlo_job *job, const char **why) {
    const parts *p = job->state;
    const hlo_matmul *m = &p->matmul;
    const hlo_view *d = &job->results[0];
    product made;
    hlo_status status = multiply(cpu, job, &made, why);
    if (status != HLO_OK) return status;
    bool scalar = are_scalar(&made.scales);
    epilogue e = {
        .d = job->scratch,
        .c = widen(cpu, job, p->c),
        .bias = widen(cpu, job, p->bias),
        .n = p->n,
        .scales = scalar || vary_inside(&made.scales) ? NULL : &made.scales,
        .product_scale = (float)m->alpha,
        .c_scale = (float)m->beta * scalar_of(job, p->c_scale),
        .d_scale = scalar_of(job, p->d_scale),
        .limit = hlo_type_is_fp8(d->type) ? (float)hlo_float_max(d->type) : INFINITY,
        .activation = &cpu_activations[hlo_epilogues[m->epilogue].activation],
        .amax_wanted = p->amax >= 0,
    };
    if (scalar && multiplies(m))
        e.product_scale = e.product_scale * scalar_of(job, p->a_scale) * scalar_of(job, p->b_scale);
    int64_t count = hlo_view_count(d);
    if (p->aux >= 0) e.aux = hlo_arena_array(cpu->scratch, (size_t)count, sizeof(float));
    cpu->env.parallel(cpu->env.user, count, finish_range, &e);
    write_result(cpu, e.d, d);
    if (p->aux >= 0) write_result(cpu, e.aux, &job->results[p->aux]);
    if (p->amax >= 0) {
        unsigned bits = atomic_load(&e.amax);
        memcpy(job->results[p->amax].data, &bits, sizeof bits);
    }
    if (p->workspace >= 0 && job->results[p->workspace].data) { /* the program returns the
                                                                 * workspace */
        size_t size = (size_t)hlo_view_count(&job->results[p->workspace]);
        memset(job->results[p->workspace].data, 0, size);
        if (job->result_sigmas[p->workspace].data)
            memset(job->result_sigmas[p->workspace].data, 0, size * sizeof(float));
    }
    return job->bounded ? bound_all(cpu, job, &e, &made) : HLO_OK;
}
