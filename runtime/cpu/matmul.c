/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt matmul calls on the CPU: D = d_scale * epilogue(alpha * a_scale * b_scale * (A x B) +
 * beta * c_scale * C + bias), accumulated and scaled in f32 (matmul/call.h). */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ir/error/error.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "matmul/call.h"
#include "runtime/cpu/cpu.h"

/* Operand number of each part of the call, or -1. */
typedef struct parts {
    hlo_matmul matmul;
    int a, b, c, a_scale, b_scale, c_scale, d_scale, bias;
    int aux, amax, workspace; /* results */
    int64_t n;
} parts;

bool cpu_matmul_supports(const hlo_instr *call, hlo_arena *arena, const char **why) {
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

static int operand_index(const hlo_instr *call, const hlo_instr *operand) {
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

static float scale(const hlo_job *job, int operand) {
    return operand < 0 ? 1.0f : *(const float *)job->operands[operand].data;
}

/* The epilogue's state. The epilogue computes every element before the output scale, in place. */
typedef struct epilogue {
    float *d;          /* row-major */
    const float *c;    /* row-major, or NULL */
    const float *bias; /* n elements, or NULL */
    float *aux;        /* row-major, or NULL */
    int64_t n;
    const cpu_scales *scales; /* scales for the product's rows and columns, or NULL */
    float product_scale, c_scale, d_scale;
    float limit; /* largest finite value of D's type; infinity: D does not saturate */
    const cpu_activation *activation;
    bool amax_wanted;
    atomic_uint
        amax; /* bits of a nonnegative float: they compare like integers, and NaN is largest */
} epilogue;

/* All comparisons are evaluated for every x, so that compilers vectorize them. */
static inline float saturate(float x, float limit) {
    x = x > limit ? limit : x;
    return x < -limit ? -limit : x;
}

/* True if the call reads A, B and their scales. If alpha is 0, it does not, so that their
 * infinities and NaNs do not reach D. */
static bool multiplies(const hlo_matmul *m) {
    return m->alpha != 0;
}

static double factor(const epilogue *e, int64_t i) {
    float scale = e->scales ? (float)cpu_scale_at(e->scales, i, 0).value : 1;
    return (double)(e->product_scale * scale);
}

HLO_CLONED static void scale_range(float *d, int64_t count, float scale, float d_scale,
                                   float limit) {
    for (int64_t i = 0; i < count; i++) d[i] = saturate(scale * d[i] * d_scale, limit);
}

static void finish_range(void *arg, int64_t begin, int64_t end) {
    epilogue *e = arg;
    float amax = 0;
    /* The most common epilogue only scales. */
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

/* Returns an operand as dense f32, or NULL. */
static const float *widen(const cpu_device *cpu, const hlo_job *job, int operand) {
    if (operand < 0) return NULL;
    const hlo_view *from = &job->operands[operand];
    hlo_view wide = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, from);
    hlo_view_convert(&cpu->env, from, &wide);
    return wide.data;
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

/* Returns the sigmas of an operand as dense f32; NULL: exact. */
static const float *dense_sigma(const cpu_device *cpu, const hlo_job *job, int operand) {
    if (operand < 0 || !job->operand_sigmas[operand].data) return NULL;
    const hlo_view *from = &job->operand_sigmas[operand];
    hlo_view dense = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, from);
    hlo_view_copy(&cpu->env, from, &dense);
    return dense.data;
}

/* -------------------------------------------------------------------------------------- product */

/* A x B, and its sigmas for the epilogue. */
typedef struct product {
    cpu_scales scales;
    const float *copy;  /* copy of the product, which the epilogue overwrites; both only if bounds
                         * are requested */
    const float *sigma; /* ir/error/error.h */
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
    if (!cpu_scales_scalar(scales)) {
        scales->a = widen(cpu, job, p->a_scale);
        scales->b = widen(cpu, job, p->b_scale);
        if (job->bounded) scales->a_sigma = dense_sigma(cpu, job, p->a_scale);
        if (job->bounded) scales->b_sigma = dense_sigma(cpu, job, p->b_scale);
    }
    bool inside = cpu_scales_inside(scales);
    double *variance = NULL;
    if (inside && job->bounded) variance = hlo_arena_array(cpu->scratch, count, sizeof *variance);
    hlo_status status = HLO_OK;
    if (inside)
        status = cpu_scales_multiply(cpu, scales, dims, a, a_sigma, b, b_sigma, &values, variance,
                                     &options, why);
    else if (job->accumulate == HLO_ACCUMULATE_HOPPER && hlo_type_is_fp8(a->type) &&
             hlo_type_is_fp8(b->type))
        cpu_accumulate_narrow(cpu, dims, scales->size, a, b, hlo_matmul_accumulates_fast(m),
                              values.data);
    else
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

/* Sigmas (ir/error/error.h) of the epilogue, by element. */
typedef struct bounds {
    const epilogue *e;
    const float *product, *product_sigma; /* A x B, before the epilogue overwrote it */
    const float *c_sigma, *bias_sigma;    /* dense; NULL: exact */
    double product_scale_sigma, c_scale_sigma, d_scale_sigma;
    hlo_type type, aux_type;
    const hlo_error_options *options;
    float *d, *aux;      /* results; NULL: not requested */
    bool anything;       /* an element may be NaN, and therefore also the amax */
    double above, below; /* the amax with all elements moved up, and moved down */
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

/* True if such a scale changes zeros, including those of padding, which may be elsewhere in another
 * module. */
static bool spoils_zeros(const bounds *b, double scale) {
    return b->options->roundings_may_be_dropped && !isfinite(scale);
}

static void bound_element(bounds *b, int64_t i) {
    const epilogue *e = b->e;
    const double unit = 0x1p-24;
    double scale = factor(e, i), scale_sigma = b->product_scale_sigma;
    if (e->scales)
        scale_sigma =
            hypot((double)e->product_scale * cpu_scale_at(e->scales, i, 0).sigma, 2 * unit * scale);
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

/* Returns the sigma of the product of both scales, from their sigmas and its own rounding. */
static double product_scale_sigma(const hlo_job *job, const parts *p) {
    double a = scale(job, p->a_scale), b = scale(job, p->b_scale), alpha = p->matmul.alpha;
    if (!multiplies(&p->matmul)) return 0;
    return fabs(alpha) * sqrt(squared(scale_sigma(job, p->a_scale) * b) +
                              squared(scale_sigma(job, p->b_scale) * a) + squared(0x1p-23 * a * b));
}

static hlo_status bound_all(const cpu_device *cpu, const hlo_job *job, const epilogue *e,
                            const product *made) {
    const parts *p = job->state;
    const hlo_matmul *m = &p->matmul;
    const hlo_view *d = &job->results[0];
    size_t count = (size_t)hlo_view_count(d);
    const hlo_error_options options = cpu_error_options(job);
    bool scalar = cpu_scales_scalar(&made->scales);
    bounds b = {
        .e = e,
        .product = made->copy,
        .product_sigma = made->sigma,
        .c_sigma = dense_sigma(cpu, job, p->c),
        .bias_sigma = dense_sigma(cpu, job, p->bias),
        .product_scale_sigma = scalar ? product_scale_sigma(job, p) : 0x1p-24 * fabs(m->alpha),
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
    bool scalar = cpu_scales_scalar(&made.scales);
    epilogue e = {
        .d = job->scratch,
        .c = widen(cpu, job, p->c),
        .bias = widen(cpu, job, p->bias),
        .n = p->n,
        .scales = scalar || cpu_scales_inside(&made.scales) ? NULL : &made.scales,
        .product_scale = (float)m->alpha,
        .c_scale = (float)m->beta * scale(job, p->c_scale),
        .d_scale = scale(job, p->d_scale),
        .limit = hlo_type_is_fp8(d->type) ? (float)hlo_float_max(d->type) : INFINITY,
        .activation = &cpu_activations[hlo_epilogues[m->epilogue].activation],
        .amax_wanted = p->amax >= 0,
    };
    if (scalar && multiplies(m))
        e.product_scale = e.product_scale * scale(job, p->a_scale) * scale(job, p->b_scale);
    int64_t count = hlo_view_count(d);
    if (p->aux >= 0) e.aux = hlo_arena_array(cpu->scratch, (size_t)count, sizeof(float));
    cpu->env.parallel(cpu->env.user, count, finish_range, &e);
    write_result(cpu, e.d, d);
    if (p->aux >= 0) write_result(cpu, e.aux, &job->results[p->aux]);
    if (p->amax >= 0) {
        unsigned bits = atomic_load(&e.amax);
        memcpy(job->results[p->amax].data, &bits, sizeof bits);
    }
    if (p->workspace >= 0 && job->results[p->workspace].data) { /* returned by the program */
        size_t size = (size_t)hlo_view_count(&job->results[p->workspace]);
        memset(job->results[p->workspace].data, 0, size);
        if (job->result_sigmas[p->workspace].data)
            memset(job->result_sigmas[p->workspace].data, 0, size * sizeof(float));
    }
    return job->bounded ? bound_all(cpu, job, &e, &made) : HLO_OK;
}
