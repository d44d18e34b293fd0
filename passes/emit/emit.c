/* SPDX-License-Identifier: Apache-2.0 */
/* Converts FP8 calls to the form that --emit selects. docs/emit.md lists the forms that XLA's
 * rewriter converts to calls. */
#include "passes/passes.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "ir/intern.h"
#include "ir/module/build.h"
#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/value.h"

typedef struct emitter {
    hlo_pass_context *context;
    uint32_t first_id;                        /* id of the first new instruction */
    hlo_computation *maximum[HLO_TYPE_COUNT]; /* computations of reductions, created on demand */
} emitter;

/* -------------------------------------------------------------------------------- lowered calls */

/* The lowering of a call to plain HLO. With `fusible`, the result is a dot of fp8 values with an
 * epilogue in the type of the result, which XLA's GPU compiler converts to an FP8 call. Otherwise,
 * the result is a dot of wide values with an epilogue in f32. */
typedef struct lowering {
    emitter *e;
    hlo_builder build[1];
    hlo_module *module;
    hlo_instruction *call;
    hlo_matmul m; /* the call; its operands may be results of a barrier */
    bool fusible;
    hlo_type type;                   /* the wide type in which the epilogue is computed */
    hlo_instruction *factor;         /* f32[] factor of the product; NULL for 1 */
    hlo_instruction *d, *aux, *amax; /* the results; aux and amax may be NULL */
} lowering;

static bool has_scalar_scales(const hlo_matmul *m) {
    return m->a_mode == HLO_SCALE_SCALAR && m->b_mode == HLO_SCALE_SCALAR;
}

/* True if a wide result is scaled, which XLA's calls do not support. */
static bool scales_wide(const hlo_matmul *m) {
    return m->d_scale && !hlo_type_is_fp8(m->d->type);
}

/* Returns why XLA's GPU compiler does not convert the plain HLO of the matmul to an FP8 call; NULL
 * if it does. */
static const char *why_unfused(const hlo_matmul *m) {
    if (hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along)
        return "its scales are per block";
    const hlo_matmul_sizes size = hlo_matmul_extents(m);
    if (size.m == 1 || size.n == 1) return "it has one row or one column";
    return m->alpha == 0 ? "its alpha is 0" : isfinite(m->alpha) ? NULL : "its alpha is infinite";
}

/* Returns why a part of the call is not in the FP8 call that XLA creates; NULL if the FP8 call
 * contains all parts. */
static const char *why_outside(const hlo_matmul *m) {
    if (hlo_epilogues[m->epilogue].aux) return "it has an auxiliary output";
    if (!has_scalar_scales(m)) return "its scales are per row or column";
    if (scales_wide(m)) return "its result is wide and has a scale";
    if (m->bias && !hlo_shape_is_row_major(m->d))
        return "it has a bias, and its result is not row-major";
    if (m->bias && m->bias->shape->type == HLO_TYPE_F16) return "its bias is f16";
    if (m->c && m->c->shape->type == HLO_TYPE_F16 && hlo_type_is_fp8(m->d->type))
        return "its addend is f16 and its result fp8";
    return NULL;
}

/* Multiplies x by an f32 scalar that is first rounded to x's type. Returns x if `scale` is NULL. */
static hlo_instruction *times(lowering *l, hlo_instruction *x, hlo_instruction *scale) {
    return scale ? hlo_build_by_scalar(l->build, HLO_OP_MULTIPLY, x, scale) : x;
}

/* Builds an operand, in f32 unless l->fusible is true. f32 represents every fp8 value, and XLA's
 * CPU backend does not support transposed dots of bf16 to f32. */
static hlo_instruction *operand(lowering *l, bool b) {
    const hlo_matmul *m = &l->m;
    hlo_instruction *x = b ? m->b : m->a;
    if (l->fusible) return x;
    x = hlo_build_convert(l->build, x, HLO_TYPE_F32);
    const hlo_scale_mode mode = b ? m->b_mode : m->a_mode;
    if (!hlo_scale_modes[mode].along) return x;
    const hlo_matmul_sizes size = hlo_matmul_extents(m);
    /* Expand block scales to one scale for each element of the operand: f32[batch,size,k], or
     * f32[size,k] for a single matrix. */
    hlo_instruction *blocks = b ? m->b_scale : m->a_scale;
    hlo_builder *build = l->build;
    const int64_t across = hlo_scale_modes[mode].across, along = hlo_scale_modes[mode].along;
    int64_t steps = blocks->shape->dims[blocks->shape->rank - 1],
            rows = hlo_shape_count(blocks->shape) / steps;
    if (hlo_scale_modes[mode].tiled) { /* reorder tiles to rows and blocks along k, with all
                                        * matrices as one */
        const bool any_sign = mode == HLO_SCALE_VEC16 && !(hlo_range_of(blocks).low >= 0);
        const int64_t tiles[] = {rows / 128, steps / 4, 32, 4, 4};
        blocks = hlo_build_reshape(build, blocks, 5, tiles);
        blocks = hlo_build_transpose(build, blocks, (const int64_t[]){0, 3, 2, 1, 4});
        blocks = hlo_build_reshape(build, blocks, 2, (const int64_t[]){rows, steps});
        blocks = hlo_build_convert(build, blocks, HLO_TYPE_F32);
        if (any_sign) blocks = hlo_build_unary(build, HLO_OP_ABS, blocks);
    } else if (across == 1) { /* the scales have the dimensions [k/along, size] */
        blocks = hlo_build_transpose(build, blocks, (const int64_t[]){1, 0});
    }
    rows = blocks->shape->dims[0], steps = blocks->shape->dims[1];
    const int64_t each[] = {rows, across, steps, along}, all[] = {rows * across, steps * along};
    blocks = hlo_build_broadcast(build, blocks, 4, each, 2, (const int64_t[]){0, 2});
    const uint32_t one = size.batch == 1; /* a single matrix has no batch dimension */
    const int64_t apart[] = {size.batch, all[0] / size.batch, all[1]},
                  kept[] = {size.batch, b ? size.n : size.m, size.k};
    blocks =
        hlo_build_reshape(build, hlo_build_reshape(build, blocks, 2, all), 3 - one, apart + one);
    hlo_instruction *scale = hlo_build_prefix(
        build, blocks, hlo_shape_array(l->module, HLO_TYPE_F32, 3 - one, kept + one));
    /* Reshape the scales to the dimensions of the operand. */
    const hlo_ints *batch = b ? m->b_batch : m->a_batch;
    const int64_t k = (b ? m->b_contracting : m->a_contracting)->v[0];
    int64_t dims[HLO_LARGEST_RANK], order[HLO_LARGEST_RANK];
    uint32_t count = 0;
    for (; count < batch->count; count++) order[batch->v[count]] = count;
    for (uint32_t i = 0; i < x->shape->rank; i++)
        if (i != k && !hlo_ints_contain(batch, i)) order[i] = count++;
    order[k] = count;
    for (uint32_t i = 0; i < x->shape->rank; i++) dims[order[i]] = x->shape->dims[i];
    scale = hlo_build_reshape(l->build, scale, x->shape->rank, dims);
    scale = hlo_build_transpose(l->build, scale, order);
    return hlo_build_binary(l->build, HLO_OP_MULTIPLY, x, scale);
}

/* Multiplies x by the scales of A's rows or B's columns, if the operand has such scales. */
static hlo_instruction *times_rows(lowering *l, hlo_instruction *x, bool b) {
    const hlo_matmul *m = &l->m;
    if ((b ? m->b_mode : m->a_mode) != HLO_SCALE_OUTER_VEC) return x;
    const uint32_t b_free = m->b->shape->rank - m->b_batch->count - m->b_contracting->count;
    const uint32_t first = b ? x->shape->rank - b_free : m->a_batch->count;
    const uint32_t end = b ? x->shape->rank : x->shape->rank - b_free;
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = first; i < end; i++) dims[i - first] = i;
    hlo_instruction *scale = hlo_build_reshape(l->build, b ? m->b_scale : m->a_scale, end - first,
                                               x->shape->dims + first);
    scale = hlo_build_broadcast_like(l->build, scale, x->shape, end - first, dims);
    return hlo_build_binary(l->build, HLO_OP_MULTIPLY, x, scale);
}

static hlo_instruction *product(lowering *l) {
    const hlo_matmul *m = &l->m;
    const hlo_shape *shape = hlo_shape_retype(l->module, m->d, l->type);
    if (m->alpha == 0) /* with alpha = 0 the call does not read A and B, so an infinity in them does
                        * not produce NaN */
        return hlo_build_filled(l->build, shape, 0);
    hlo_instruction *operands[] = {operand(l, false), operand(l, true)};
    const hlo_dot_lists dims = {{m->a_batch, m->b_batch}, {m->a_contracting, m->b_contracting}};
    hlo_instruction *dot = hlo_build_dot(l->build, shape, operands, &dims);
    if (l->fusible) /* other backends do not support a dot with this algorithm */
        hlo_instr_set_str(dot, HLO_ATTR_ALGORITHM,
                          m->algorithm   ? m->algorithm
                          : m->precision ? "dot_any_f8_any_f8_f32"
                                         : "dot_any_f8_any_f8_f32_fast_accum");
    else if (m->precision)
        hlo_instr_set_str(dot, HLO_ATTR_OPERAND_PRECISION, m->precision);
    return times_rows(l, times_rows(l, times(l, dot, l->factor), false), true);
}

/* Adds the bias and C. XLA's calls can add a bf16 vector to f32, but not an f16 vector. The scales
 * of C and D may exceed the range of f16. C is added after the bias, where XLA's rewriter expects
 * it. Without l->fusible, C is added in its own type, unless C has a scale. An output scale may
 * exceed the range of that type. */
static hlo_instruction *plus_terms(lowering *l, hlo_instruction *x) {
    const hlo_matmul *m = &l->m;
    if (m->bias) {
        if (l->fusible && m->bias->shape->type == HLO_TYPE_F16)
            x = hlo_build_convert(l->build, x, HLO_TYPE_F16);
        const hlo_shape *shape = x->shape;
        const uint32_t b_free = m->b->shape->rank - m->b_batch->count - m->b_contracting->count;
        int64_t dims[HLO_LARGEST_RANK];
        for (uint32_t i = 0; i < b_free; i++) dims[i] = shape->rank - b_free + i;
        hlo_instruction *bias = hlo_build_convert(l->build, m->bias, shape->type);
        bias = hlo_build_reshape(l->build, bias, b_free, shape->dims + (shape->rank - b_free));
        bias = hlo_build_broadcast_like(l->build, bias, shape, b_free, dims);
        x = hlo_build_binary(l->build, HLO_OP_ADD, x, bias);
        if (m->c_scale || m->d_scale) x = hlo_build_convert(l->build, x, l->type);
    }
    if (!m->c || m->beta == 0) return x;
    if (!l->fusible && !m->c_scale) x = hlo_build_convert(l->build, x, m->c->shape->type);
    hlo_instruction *c = times(l, hlo_build_convert(l->build, m->c, x->shape->type), m->c_scale);
    if (m->beta != 1) c = hlo_build_by_number(l->build, HLO_OP_MULTIPLY, c, m->beta);
    x = hlo_build_binary(l->build, HLO_OP_ADD, x, c);
    return l->fusible || !m->d_scale ? x : hlo_build_convert(l->build, x, HLO_TYPE_F32);
}

/* Builds the gelu of x. With `apart`, uses a form that XLA does not fuse: x(1 + cx^2) instead of x
 * + cx^3. */
static hlo_instruction *gelu(lowering *l, hlo_instruction *x, bool apart) {
    hlo_builder *b = l->build;
    hlo_instruction *square = hlo_build_binary(b, HLO_OP_MULTIPLY, x, x), *inner;
    if (apart) {
        hlo_instruction *one = hlo_build_filled(b, x->shape, 1);
        inner = hlo_build_by_number(b, HLO_OP_MULTIPLY, square, 0.044715);
        inner = hlo_build_binary(b, HLO_OP_ADD, inner, one);
        inner = hlo_build_binary(b, HLO_OP_MULTIPLY, x, inner);
    } else {
        inner = hlo_build_binary(b, HLO_OP_MULTIPLY, square, x);
        inner = hlo_build_by_number(b, HLO_OP_MULTIPLY, inner, 0.044715);
        inner = hlo_build_binary(b, HLO_OP_ADD, x, inner);
    }
    inner = hlo_build_by_number(b, HLO_OP_MULTIPLY, inner, 0.7978845608028654);
    hlo_instruction *factor = hlo_build_unary(b, HLO_OP_TANH, inner);
    factor = hlo_build_by_number(b, HLO_OP_ADD, factor, 1);
    factor = hlo_build_by_number(b, HLO_OP_MULTIPLY, factor, 0.5);
    return hlo_build_binary(b, HLO_OP_MULTIPLY, x, factor);
}

/* True if another matmul reads one of the operands, if an operand has too many users to check, or
 * if the product of another matmul may have the same factor. XLA merges equal factors, and does not
 * fuse a factor that two products share. */
static bool is_shared(const lowering *l) {
    const hlo_matmul *m = &l->m;
    int left = 64;
    for (int i = 0; i < 2; i++)
        for (const hlo_use *use = (i ? m->b : m->a)->uses; use; use = use->next) {
            if (left-- == 0) return true;
            if (use->user != l->call &&
                (use->user->op == HLO_OP_DOT || hlo_matmul_is_call(use->user)))
                return true;
        }
    for (int i = 0; i < 2; i++) {
        const hlo_instruction *scale = i ? m->b_scale : m->a_scale;
        if (scale && scale->op != HLO_OP_CONSTANT && hlo_instr_user_count(scale) < 2) return false;
    }
    return m->a_scale || m->b_scale || m->alpha != 1;
}

/* True if XLA replaces the bias by another value and then does not recognize it. Examples are a
 * constant of another type and a repeated number. */
static bool dissolves(const hlo_instruction *bias) {
    for (int depth = 8; bias && depth > 0; depth--) {
        if (bias->op == HLO_OP_CONSTANT || bias->op == HLO_OP_BROADCAST) return true;
        if (bias->op != HLO_OP_CONVERT && !hlo_op_is(bias->op, HLO_MOVEMENT | HLO_JOINS))
            return false;
        bias = hlo_instr_operand(bias, 0);
    }
    return false;
}

/* Returns the barrier through which an earlier matmul reads the same operands, or NULL. `left` is
 * the maximum number of users to check. */
static hlo_instruction *barrier_of(const lowering *l, const hlo_instruction *a,
                                   const hlo_instruction *b, int *left) {
    for (const hlo_use *use = a->uses; use && --*left > 0; use = use->next) {
        const hlo_instruction *pair = use->user;
        if (pair->op == HLO_OP_TUPLE && pair->id >= l->e->first_id && pair->operand_count >= 2 &&
            hlo_instr_operand(pair, 0) == a && hlo_instr_operand(pair, 1) == b && pair->uses &&
            pair->uses->user->op == HLO_OP_OPT_BARRIER)
            return pair->uses->user;
    }
    return NULL;
}

/* Inserts a barrier after the operands, the factor and the bias, so that XLA neither merges this
 * dot with others that share an operand nor this factor with others. If the same two operands
 * already have barriers, applies the new barrier to the results of these, because XLA merges equal
 * barriers. Returns false if an operand has too many users. */
static bool hold(lowering *l) {
    hlo_matmul *m = &l->m;
    hlo_instruction **const values[] = {&m->a, &m->b, &l->factor, &m->bias};
    int left = 256;
    for (hlo_instruction *outer; (outer = barrier_of(l, m->a, m->b, &left));)
        for (const hlo_use *use = outer->uses; use; use = use->next) {
            const int64_t index = hlo_instr_int(use->user, HLO_ATTR_INDEX, 2);
            if (use->user->op == HLO_OP_GET_TUPLE_ELEMENT && index < 2) *values[index] = use->user;
        }
    if (left <= 0) return false;
    hlo_instruction *held[4];
    uint32_t count = 0;
    for (int i = 0; i < 4; i++)
        if (*values[i]) held[count++] = *values[i];
    hlo_instruction *all = hlo_build_tuple(l->build, count, held);
    all = hlo_build_unary(l->build, HLO_OP_OPT_BARRIER, all);
    count = 0;
    for (int i = 0; i < 4; i++)
        if (*values[i]) *values[i] = hlo_build_element(l->build, all, count++);
    return true;
}

/* ---------------------------------------------------------------------------------------- forms */

/* True if `user` multiplies or divides by a constant that is infinite or NaN, or divides by a
 * constant whose reciprocal XLA treats as infinite. */
static bool is_endless(const hlo_instruction *user) {
    const bool divides = user->op == HLO_OP_DIVIDE;
    double number;
    if (user->op != HLO_OP_MULTIPLY && !divides) return false;
    for (uint32_t i = 0; i < 2; i++)
        if (hlo_known_number(hlo_instr_operand(user, i), &number) &&
            (!isfinite(number) || (divides && fabs(number) < FLT_MIN)))
            return true;
    return false;
}

/* True if a tanh uses the value through movement and arithmetic of at most `depth` instructions, or
 * if the value has more than `budget` users. */
static bool reaches_tanh(const hlo_instruction *value, int depth, int *budget) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_op op = use->user->op;
        if (op == HLO_OP_TANH || --*budget < 0) return true;
        if ((op == HLO_OP_MULTIPLY || op == HLO_OP_ADD || op == HLO_OP_POWER ||
             op == HLO_OP_CONVERT || hlo_op_is(op, HLO_MOVEMENT)) &&
            depth > 0 && reaches_tanh(use->user, depth - 1, budget))
            return true;
    }
    return false;
}

/* True if an amax or an infinite factor uses the value through at most `depth` instructions that
 * convert or move it, or if the value has more than `budget` users. */
static bool is_measured(const hlo_instruction *value, int depth, int *budget) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        if (user->op == HLO_OP_ABS || user->op == HLO_OP_REDUCE || is_endless(user) ||
            --*budget < 0)
            return true;
        if ((user->op == HLO_OP_CONVERT || hlo_op_is(user->op, HLO_MOVEMENT)) && depth > 0 &&
            is_measured(user, depth - 1, budget))
            return true;
    }
    return false;
}

/* True if XLA's rewriter fails on a wide result without a barrier. It fails on a scale that is
 * computed from the magnitudes of the scaled value, on an infinite scale, and on a gelu whose
 * operand has other uses and is not an auxiliary result of the call. */
static bool needs_barrier(const hlo_instruction *result) {
    int measured = 48, reached = 48;
    return is_measured(result, 4, &measured) || reaches_tanh(result, 8, &reached);
}

/* Returns the lowered value of element `index` of the call's tuple. The workspace becomes zeros. */
static hlo_instruction *result_at(lowering *l, int index) {
    if (index == 0) return l->d;
    if (index == hlo_matmul_aux_index(&l->m)) return l->aux;
    if (index == hlo_matmul_amax_index(&l->m)) return l->amax;
    return hlo_build_filled(l->build, l->call->shape->elements[index], 0);
}

static void put(hlo_instruction *old, hlo_instruction *value) {
    hlo_instr_inherit(value, old);
    hlo_instr_replace_uses(old, value);
}

/* The operands of a call before the rewrite. */
typedef struct operands {
    hlo_instruction *v[8];
    uint32_t count;
} operands;

static operands operands_of(const hlo_instruction *call) {
    operands all = {.count = call->operand_count};
    for (uint32_t i = 0; i < all.count; i++) all.v[i] = hlo_instr_operand(call, i);
    return all;
}

/* Removes constants without users, such as scales of 1. */
static void drop_unused(const operands *all) {
    for (uint32_t i = 0; i < all->count; i++)
        if (all->v[i]->op == HLO_OP_CONSTANT && all->v[i]->parent &&
            all->v[i]->pin == HLO_PIN_NONE && !hlo_instr_user_count(all->v[i]))
            hlo_instr_remove(all->v[i]);
}

/* Removes a call without users. */
static void drop(hlo_instruction *call) {
    const operands all = operands_of(call);
    hlo_instr_remove(call);
    drop_unused(&all);
}

static void put_results(lowering *l) {
    hlo_instruction *call = l->call;
    if (call->shape->type != HLO_TYPE_TUPLE) {
        put(call, l->d);
        drop(call);
        return;
    }
    for (hlo_use *use = call->uses, *next; use; use = next) {
        next = use->next;
        hlo_instruction *element = use->user;
        if (element->op != HLO_OP_GET_TUPLE_ELEMENT) continue;
        put(element, result_at(l, (int)hlo_instr_int(element, HLO_ATTR_INDEX, 0)));
        hlo_instr_remove(element);
    }
    if (hlo_instr_user_count(call)) {
        hlo_instruction *results[4];
        const uint32_t count = call->shape->rank;
        for (uint32_t i = 0; i < count; i++) results[i] = result_at(l, (int)i);
        hlo_instr_replace_uses(call,
                               hlo_build(l->build, HLO_OP_TUPLE, call->shape, count, results));
    }
    drop(call);
}

static hlo_instruction *activated(lowering *l, hlo_instruction *x,
                                  const hlo_epilogue_info *epilogue, bool apart) {
    switch (epilogue->activation) {
    case HLO_ACTIVATION_GELU:
        if (apart || epilogue->aux)
            x = hlo_build_convert(l->build, x, HLO_TYPE_F32); /* the call converts, too */
        return gelu(l, x, apart);
    case HLO_ACTIVATION_RELU: return hlo_build_by_number(l->build, HLO_OP_MAXIMUM, x, 0);
    case HLO_ACTIVATION_NONE:
    case HLO_ACTIVATION_COUNT: break;
    }
    return x;
}

static int make_plain(hlo_instruction *call, const hlo_matmul *matmul, emitter *e, bool fusible) {
    bool pinned = call->pin != HLO_PIN_NONE;
    for (const hlo_use *use = call->uses; use; use = use->next)
        pinned |= use->user->pin != HLO_PIN_NONE;
    if (pinned) return -1;
    lowering l = {.e = e,
                  .build = {{.at = call}},
                  .module = e->context->module,
                  .call = call,
                  .m = *matmul,
                  .fusible = fusible && !why_unfused(matmul)};
    hlo_builder *b = l.build;
    const hlo_matmul *m = &l.m;
    const hlo_epilogue_info *epilogue = &hlo_epilogues[m->epilogue];
    const bool gelus = epilogue->activation == HLO_ACTIVATION_GELU;
    const hlo_type type = m->d->type;
    /* An f16 value may overflow before it is scaled, and scales per row are f32. */
    const hlo_type wide = hlo_type_is_fp8(type) && m->c ? m->c->shape->type : type;
    const bool narrow = l.fusible && has_scalar_scales(m) && !scales_wide(m);
    l.type = narrow && wide == HLO_TYPE_BF16 ? wide : HLO_TYPE_F32;
    hlo_instruction *scale = m->a_mode == HLO_SCALE_SCALAR ? m->a_scale : NULL,
                    *b_scale = m->b_mode == HLO_SCALE_SCALAR ? m->b_scale : NULL;
    if (m->alpha != 0) {
        if (b_scale) scale = scale ? hlo_build_binary(b, HLO_OP_MULTIPLY, scale, b_scale) : b_scale;
        l.factor = scale;
        if (m->alpha != 1) {
            l.factor = hlo_build_number(b, HLO_TYPE_F32, m->alpha);
            if (scale) l.factor = hlo_build_binary(b, HLO_OP_MULTIPLY, scale, l.factor);
        }
    }
    /* If XLA merges the dot of a call with another dot, only the product remains in an FP8 call. */
    const bool more = has_scalar_scales(m) && (m->epilogue != HLO_EPILOGUE_DEFAULT || m->c ||
                                               m->amax || hlo_type_is_fp8(type));
    const bool held =
        l.fusible && more && (gelus || dissolves(m->bias) || is_shared(&l)) && hold(&l);
    /* If the operand of a gelu has another use, XLA creates a call with an auxiliary result and
     * fails. */
    const bool apart = l.fusible && gelus && (epilogue->aux || !held);
    hlo_instruction *x = plus_terms(&l, product(&l));
    if (epilogue->aux) x = l.aux = hlo_build_convert(b, x, m->aux->type);
    x = activated(&l, x, epilogue, apart);
    if (m->amax) {
        const hlo_shape *scalar = hlo_shape_array(l.module, x->shape->type, 0, NULL);
        int64_t dims[HLO_LARGEST_RANK];
        for (uint32_t i = 0; i < x->shape->rank; i++) dims[i] = i;
        l.amax = hlo_build_unary(b, HLO_OP_ABS, x);
        l.amax = hlo_build_reduce(b, HLO_OP_MAXIMUM, l.amax, scalar, x->shape->rank, dims,
                                  &l.e->maximum[scalar->type]);
        l.amax = hlo_build_convert(b, l.amax, HLO_TYPE_F32);
    }
    x = times(&l, x, m->d_scale);
    if (hlo_type_is_fp8(type)) {
        const double most = hlo_float_max(type);
        hlo_instruction *bounds[] = {hlo_build_filled(b, x->shape, -most), x,
                                     hlo_build_filled(b, x->shape, most)};
        x = hlo_build(b, HLO_OP_CLAMP, x->shape, 3, bounds);
    }
    l.d = hlo_build_convert(b, x, type);
    bool barrier = call->shape->type != HLO_TYPE_TUPLE && needs_barrier(call);
    for (const hlo_use *use = call->uses; use; use = use->next)
        barrier |= hlo_instr_int(use->user, HLO_ATTR_INDEX, -1) == 0 && needs_barrier(use->user);
    if (fusible && barrier && !hlo_type_is_fp8(matmul->d->type))
        l.d = hlo_build_unary(l.build, HLO_OP_OPT_BARRIER, l.d);
    put_results(&l);
    return 1;
}

/* Converts a call to the form options->emit. Returns the number of changes, or -1 if the call is
 * pinned. */
static int convert(hlo_instruction *call, const hlo_matmul *matmul, emitter *e) {
    const hlo_pass_options *options = e->context->options;
    const char *unfused, *outside;
    operands all;
    bool made;
    switch (options->emit) {
    case HLO_EMIT_CUBLAS:
        return hlo_matmul_set_typed(call, false,
                                    options->scales_used ? HLO_SCALES_USED : HLO_SCALES_ALL);
    case HLO_EMIT_FFI: /* omit scales of 1, because XLA passes only the addresses of scales to the
                        * library */
        all = operands_of(call);
        made = hlo_matmul_set_typed(call, true, HLO_SCALES_USED);
        if (made) drop_unused(&all);
        return made;
    case HLO_EMIT_QDQ:
        unfused = why_unfused(matmul), outside = why_outside(matmul);
        if (unfused || outside)
            hlo_diag_emit(e->context->module, e->context->sink, HLO_WARNING, HLO_DIAG_UNSUPPORTED,
                          call->offset, hlo_intern_length(call->name),
                          unfused ? "XLA will not turn '%s' into an FP8 call: %s"
                                  : "XLA computes part of '%s' outside its FP8 call: %s",
                          call->name, unfused ? unfused : outside);
        return make_plain(call, matmul, e, true);
    case HLO_EMIT_DQ: break;
    }
    return make_plain(call, matmul, e, false);
}

static hlo_status refuse(const hlo_pass_context *context, const hlo_instruction *call,
                         const char *why) {
    hlo_diag_emit(context->module, context->sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, call->offset,
                  hlo_intern_length(call->name), "cannot emit call '%s' in the selected form: %s",
                  call->name, why);
    return HLO_INVALID_INPUT;
}

/* A constant of a computation, and its position in the computation. */
typedef struct constant {
    const hlo_instruction *instr;
    uint64_t hash;
    uint32_t place;
} constant;

static int by_hash(const void *a, const void *b) {
    const constant *x = a, *y = b;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* Returns the first constant that has or is a control predecessor, and that equals another constant
 * of its computation; NULL if not found. XLA merges the two constants, and then aborts because
 * of the control dependency. */
static const hlo_instruction *find_held_constant(const hlo_computation *comp, hlo_arena *scratch) {
    uint32_t count = 0;
    bool any = false;
    for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
        count += i->op == HLO_OP_CONSTANT;
        any |= i->op == HLO_OP_CONSTANT && i->pin == HLO_PIN_CONTROL;
    }
    if (!any) return NULL;
    constant *all = hlo_arena_array(scratch, count, sizeof *all), *first = NULL;
    count = 0;
    for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
        if (i->op == HLO_OP_CONSTANT) {
            all[count] = (constant){i, hlo_literal_hash(i->u.literal, (uintptr_t)i->shape), count};
            count++;
        }
    qsort(all, count, sizeof *all, by_hash);
    for (uint32_t i = 0, alike = 0; i < count; i++) { /* `alike` is the index of the first constant
                                                       * with this hash */
        if (all[i].hash != all[alike].hash) alike = i;
        if (all[i].instr->pin != HLO_PIN_CONTROL || (first && first->place < all[i].place))
            continue;
        for (uint32_t j = alike; j < count && all[j].hash == all[i].hash; j++)
            if (j != i && hlo_literal_equal(all[j].instr->u.literal, all[i].instr->u.literal)) {
                first = &all[i];
                break;
            }
    }
    return first ? first->instr : NULL;
}

hlo_status hlo_emit(hlo_pass_context *context) {
    hlo_module *module = context->module;
    const bool scheduled = hlo_pin_is_scheduled(module);
    if (scheduled && context->options->emit == HLO_EMIT_CUBLAS) return HLO_OK;
    const uint32_t most = module->op_counts[HLO_OP_CUSTOM_CALL];
    hlo_instruction **calls = hlo_arena_array(context->scratch, most, sizeof *calls);
    emitter e = {.context = context, .first_id = module->next_id};
    uint32_t count = 0;
    for (hlo_computation *comp = most ? module->first : NULL; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (hlo_matmul_is_call(instr)) calls[count++] = instr;
    for (uint32_t i = 0; i < count; i++) {
        hlo_matmul matmul;
        const char *why;
        if (hlo_matmul_decode(calls[i], &matmul, &why) != HLO_OK) continue;
        if (scheduled) return refuse(context, calls[i], "the module is scheduled");
        int changes = convert(calls[i], &matmul, &e);
        if (changes < 0)
            return refuse(context, calls[i],
                          "a control dependency, memory space or execution thread pins it");
        context->changes += (uint64_t)changes;
    }
    const bool inserted = context->options->quantize && context->changes;
    if (context->options->emit == HLO_EMIT_CUBLAS || !(count || inserted)) return HLO_OK;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        const hlo_instruction *held = find_held_constant(comp, context->scratch);
        if (!held) continue;
        hlo_diag_emit(module, context->sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, held->offset,
                      hlo_intern_length(held->name),
                      "XLA crashes on constant '%s': it has a control dependency, and its "
                      "computation has an equal constant",
                      held->name);
        return HLO_INVALID_INPUT;
    }
    return HLO_OK;
}
