/* See spell.h. docs/emit.md has the forms that XLA's rewriter makes calls of. */
#include "passes/emit/spell.h"

#include <math.h>

#include "ir/float/float.h"
#include "ir/intern.h"
#include "passes/analysis/value.h"

typedef struct speller {
    hlo_module *module;
    hlo_instr *call;
    const hlo_matmul *m;
    hlo_spell_made *made;
    bool fusible;
    hlo_type type;     /* of what is computed; wide */
    hlo_instr *factor; /* f32[], multiplies the product; NULL: 1 */
} speller;

static hlo_instr *make(speller *s, hlo_op op, const hlo_shape *shape, uint32_t count,
                       hlo_instr *const *operands) {
    hlo_instr *instr = hlo_instr_new(s->call->parent, s->call, op, shape, count, operands, NULL);
    instr->offset = s->call->offset;
    const hlo_attr *metadata = hlo_instr_attr(s->call, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(instr, *metadata);
    return instr;
}

static hlo_instr *unary(speller *s, hlo_op op, hlo_instr *x) {
    return make(s, op, x->shape, 1, &x);
}

static hlo_instr *binary(speller *s, hlo_op op, hlo_instr *x, hlo_instr *y) {
    return make(s, op, x->shape, 2, (hlo_instr *[]){x, y});
}

static hlo_instr *converted(speller *s, hlo_instr *x, hlo_type type) {
    if (x->shape->type == type) return x;
    return make(s, HLO_OP_CONVERT, hlo_shape_retype(s->module, x->shape, type), 1, &x);
}

/* Broadcasts `x`, whose dimensions are the dimensions `dims` of the result. */
static hlo_instr *spread(speller *s, hlo_instr *x, const hlo_shape *shape, uint32_t count,
                         const int64_t *dims) {
    hlo_instr *wide =
        make(s, HLO_OP_BROADCAST, hlo_shape_retype(s->module, shape, x->shape->type), 1, &x);
    hlo_instr_set_ints(wide, HLO_ATTR_DIMENSIONS, count, dims);
    return wide;
}

static hlo_instr *splat(speller *s, hlo_instr *scalar, const hlo_shape *shape) {
    return spread(s, scalar, shape, 0, NULL);
}

static hlo_instr *number(speller *s, hlo_type type, double value) {
    return hlo_constant_scalar(s->call->parent, s->call, type, value);
}

/* Makes an array of x's shape whose elements are all `value`. */
static hlo_instr *numbers(speller *s, const hlo_instr *x, double value) {
    return splat(s, number(s, x->shape->type, value), x->shape);
}

static hlo_instr *times_number(speller *s, hlo_instr *x, double value) {
    return value == 1 ? x : binary(s, HLO_OP_MULTIPLY, x, numbers(s, x, value));
}

/* Multiplies x by a scalar of f32, which is rounded to x's type first; NULL: 1. */
static hlo_instr *times(speller *s, hlo_instr *x, hlo_instr *scale) {
    if (!scale) return x;
    hlo_instr *typed = converted(s, scale, x->shape->type);
    return binary(s, HLO_OP_MULTIPLY, x, splat(s, typed, x->shape));
}

static hlo_instr *reshaped(speller *s, hlo_instr *x, uint32_t rank, const int64_t *dims) {
    const hlo_shape *shape = hlo_shape_array(s->module, x->shape->type, rank, dims);
    return shape == x->shape ? x : make(s, HLO_OP_RESHAPE, shape, 1, &x);
}

/* ------------------------------------------------------------------------------------- operands */

/* Puts tiled scales in the order of rows and steps, those of a batch one below the other. */
static hlo_instr *lines(speller *s, hlo_instr *scale) {
    const int64_t steps = scale->shape->dims[scale->shape->rank - 1],
                  rows = hlo_shape_count(scale->shape) / steps;
    const int64_t tiles[] = {rows / 128, steps / 4, 32, 4, 4};
    const int64_t turned[] = {rows / 128, 4, 32, steps / 4, 4};
    hlo_instr *apart = reshaped(s, scale, 5, tiles);
    hlo_instr *made = make(s, HLO_OP_TRANSPOSE,
                           hlo_shape_array(s->module, scale->shape->type, 5, turned), 1, &apart);
    hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, 5, (const int64_t[]){0, 3, 2, 1, 4});
    return reshaped(s, made, 2, (const int64_t[]){rows, steps});
}

/* Repeats the scales of blocks for each element of the operand as matrices: f32[batch,size,k], or
 * f32[size,k] of one. */
static hlo_instr *every_scale(speller *s, hlo_instr *scale, hlo_scale_mode mode, int64_t batch,
                              int64_t size, int64_t k) {
    const int64_t across = hlo_scale_modes[mode].across, along = hlo_scale_modes[mode].along;
    if (hlo_scale_modes[mode].tiled) {
        const bool any_sign = mode == HLO_SCALE_VEC16 && hlo_sign_least(scale) == HLO_SIGN_ANY;
        scale = converted(s, lines(s, scale), HLO_TYPE_F32);
        if (any_sign) scale = unary(s, HLO_OP_ABS, scale);
    } else if (across == 1) { /* [k/along, size] */
        const int64_t turned[] = {scale->shape->dims[1], scale->shape->dims[0]};
        scale = make(s, HLO_OP_TRANSPOSE, hlo_shape_array(s->module, HLO_TYPE_F32, 2, turned), 1,
                     &scale);
        hlo_instr_set_ints(scale, HLO_ATTR_DIMENSIONS, 2, (const int64_t[]){1, 0});
    }
    const int64_t rows = scale->shape->dims[0], steps = scale->shape->dims[1];
    const int64_t each[] = {rows, across, steps, along}, all[] = {rows * across, steps * along};
    scale = spread(s, scale, hlo_shape_array(s->module, HLO_TYPE_F32, 4, each), 2,
                   (const int64_t[]){0, 2});
    const uint32_t one = batch == 1; /* matrix, without a batch dimension */
    const int64_t apart[] = {batch, all[0] / batch, all[1]}, kept[] = {batch, size, k};
    const int64_t cut[] = {0, batch, 1, 0, size, 1, 0, k, 1};
    scale = reshaped(s, reshaped(s, scale, 2, all), 3 - one, apart + one);
    if (apart[1] == size && apart[2] == k) return scale;
    const hlo_shape *shape = hlo_shape_array(s->module, HLO_TYPE_F32, 3 - one, kept + one);
    scale = make(s, HLO_OP_SLICE, shape, 1, &scale);
    hlo_instr_set_ints(scale, HLO_ATTR_SLICE, 9 - 3 * one, cut + 3 * one);
    return scale;
}

/* Gives matrices [batch,size,k], or one, the dimensions of the operand, of which `at` is the
 * contracting one. */
static hlo_instr *placed(speller *s, hlo_instr *matrices, const hlo_shape *like,
                         const hlo_ints *batch, int64_t at) {
    int64_t dims[HLO_LARGEST_RANK], order[HLO_LARGEST_RANK];
    uint32_t count = 0;
    bool same = true;
    for (; count < batch->count; count++) order[batch->v[count]] = count;
    for (uint32_t i = 0; i < like->rank; i++)
        if (i != at && !hlo_ints_contain(batch, i)) order[i] = count++;
    order[at] = count;
    for (uint32_t i = 0; i < like->rank; i++) {
        dims[order[i]] = like->dims[i];
        same &= order[i] == i;
    }
    matrices = reshaped(s, matrices, like->rank, dims);
    if (same) return matrices;
    matrices = make(s, HLO_OP_TRANSPOSE,
                    hlo_shape_array(s->module, HLO_TYPE_F32, like->rank, like->dims), 1, &matrices);
    hlo_instr_set_ints(matrices, HLO_ATTR_DIMENSIONS, like->rank, order);
    return matrices;
}

/* f32 has every fp8 value; XLA's CPU backend executes no transposed dot of bf16 to f32. */
static hlo_instr *operand(speller *s, bool b) {
    const hlo_matmul *m = s->m;
    hlo_instr *x = b ? m->b : m->a;
    if (s->fusible) return x;
    x = converted(s, x, HLO_TYPE_F32);
    const hlo_scale_mode mode = b ? m->b_mode : m->a_mode;
    if (!hlo_scale_modes[mode].along) return x;
    const hlo_matmul_sizes size = hlo_matmul_extents(m);
    hlo_instr *scale =
        every_scale(s, b ? m->b_scale : m->a_scale, mode, size.batch, b ? size.n : size.m, size.k);
    const int64_t at = (b ? m->b_contracting : m->a_contracting)->v[0];
    scale = placed(s, scale, x->shape, b ? m->b_batch : m->a_batch, at);
    return binary(s, HLO_OP_MULTIPLY, x, scale);
}

/* ---------------------------------------------------------------------------------- the product */

static hlo_instr *dot(speller *s) {
    const hlo_matmul *m = s->m;
    hlo_instr *operands[] = {operand(s, false), operand(s, true)};
    hlo_instr *result =
        make(s, HLO_OP_DOT, hlo_shape_retype(s->module, m->d, s->type), 2, operands);
    const struct {
        hlo_attr_id id;
        const hlo_ints *dims;
    } lists[] = {{HLO_ATTR_LHS_BATCH_DIMS, m->a_batch},
                 {HLO_ATTR_LHS_CONTRACTING_DIMS, m->a_contracting},
                 {HLO_ATTR_RHS_BATCH_DIMS, m->b_batch},
                 {HLO_ATTR_RHS_CONTRACTING_DIMS, m->b_contracting}};
    for (int i = 0; i < 4; i++)
        if (lists[i].dims->count)
            hlo_instr_set_ints(result, lists[i].id, lists[i].dims->count, lists[i].dims->v);
    if (s->fusible) /* an algorithm keeps other backends from taking the dot */
        hlo_instr_set_str(result, HLO_ATTR_ALGORITHM,
                          m->algorithm   ? m->algorithm
                          : m->precision ? "dot_any_f8_any_f8_f32"
                                         : "dot_any_f8_any_f8_f32_fast_accum");
    else if (m->precision)
        hlo_instr_set_str(result, HLO_ATTR_OPERAND_PRECISION, m->precision);
    return result;
}

/* Multiplies the scalar factors of the product, f32[]; NULL: 1. */
static hlo_instr *scalar_factor(speller *s) {
    const hlo_matmul *m = s->m;
    hlo_instr *a = m->a_mode == HLO_SCALE_SCALAR ? m->a_scale : NULL;
    hlo_instr *b = m->b_mode == HLO_SCALE_SCALAR ? m->b_scale : NULL;
    hlo_instr *both = a && b ? binary(s, HLO_OP_MULTIPLY, a, b) : a ? a : b;
    if (m->alpha == 1) return both;
    hlo_instr *alpha = number(s, HLO_TYPE_F32, m->alpha);
    return both ? binary(s, HLO_OP_MULTIPLY, both, alpha) : alpha;
}

/* Multiplies x by the scales of A's rows or of B's columns, if the operand has such scales. */
static hlo_instr *times_rows(speller *s, hlo_instr *x, bool b) {
    const hlo_matmul *m = s->m;
    if ((b ? m->b_mode : m->a_mode) != HLO_SCALE_OUTER_VEC) return x;
    const uint32_t b_free = m->b->shape->rank - m->b_batch->count - m->b_contracting->count;
    const uint32_t first = b ? x->shape->rank - b_free : m->a_batch->count;
    const uint32_t end = b ? x->shape->rank : x->shape->rank - b_free;
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = first; i < end; i++) dims[i - first] = i;
    hlo_instr *scale =
        reshaped(s, b ? m->b_scale : m->a_scale, end - first, x->shape->dims + first);
    return binary(s, HLO_OP_MULTIPLY, x, spread(s, scale, x->shape, end - first, dims));
}

static hlo_instr *product(speller *s) {
    const hlo_matmul *m = s->m;
    if (m->alpha == 0) { /* A and B are not read: an infinity in them makes no NaN */
        const hlo_shape *shape = hlo_shape_retype(s->module, m->d, s->type);
        return splat(s, number(s, s->type, 0), shape);
    }
    hlo_instr *x = times(s, dot(s), s->factor);
    return times_rows(s, times_rows(s, x, false), true);
}

/* --------------------------------------------------------------------------------- the epilogue */

/* Adds the bias. XLA has calls that add a vector of bf16 to f32, but none that add one of f16. The
 * scale of C or of D may be beyond f16. */
static hlo_instr *plus_bias(speller *s, hlo_instr *x) {
    if (!s->m->bias) return x;
    const bool scaled = s->m->c_scale || s->m->d_scale;
    if (s->fusible && s->m->bias->shape->type == HLO_TYPE_F16) x = converted(s, x, HLO_TYPE_F16);
    const hlo_shape *shape = x->shape;
    const uint32_t b_free =
        s->m->b->shape->rank - s->m->b_batch->count - s->m->b_contracting->count;
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < b_free; i++) dims[i] = shape->rank - b_free + i;
    hlo_instr *bias = converted(s, s->m->bias, shape->type);
    bias = reshaped(s, bias, b_free, shape->dims + (shape->rank - b_free));
    x = binary(s, HLO_OP_ADD, x, spread(s, bias, shape, b_free, dims));
    return scaled ? converted(s, x, s->type) : x;
}

/* Adds C in its own type, which is D's, unless C has a scale; behind the bias, where XLA's rewriter
 * looks for it. An output scale may be beyond that type. */
static hlo_instr *plus_addend(speller *s, hlo_instr *x) {
    hlo_instr *c = s->m->c;
    if (!c || s->m->beta == 0) return x;
    if (!s->fusible && !s->m->c_scale) x = converted(s, x, c->shape->type);
    c = times_number(s, times(s, converted(s, c, x->shape->type), s->m->c_scale), s->m->beta);
    x = binary(s, HLO_OP_ADD, x, c);
    return s->fusible || !s->m->d_scale ? x : converted(s, x, HLO_TYPE_F32);
}

/* `apart`: in a form that XLA does not fuse, x(1 + cx^2) in place of x + cx^3. */
static hlo_instr *gelu(speller *s, hlo_instr *x, bool apart) {
    hlo_instr *square = binary(s, HLO_OP_MULTIPLY, x, x), *inner;
    if (apart) {
        inner = binary(s, HLO_OP_ADD, times_number(s, square, 0.044715), numbers(s, x, 1));
        inner = binary(s, HLO_OP_MULTIPLY, x, inner);
    } else {
        hlo_instr *cube = binary(s, HLO_OP_MULTIPLY, square, x);
        inner = binary(s, HLO_OP_ADD, x, times_number(s, cube, 0.044715));
    }
    hlo_instr *tanh = unary(s, HLO_OP_TANH, times_number(s, inner, 0.7978845608028654));
    hlo_instr *factor = binary(s, HLO_OP_ADD, tanh, numbers(s, tanh, 1));
    return binary(s, HLO_OP_MULTIPLY, x, times_number(s, factor, 0.5));
}

/* True if another matmul has one of the operands, or if an operand has too many users to tell. */
static bool shares_operand(const speller *s) {
    int left = 64;
    for (int i = 0; i < 2; i++)
        for (const hlo_use *use = (i ? s->m->b : s->m->a)->uses; use; use = use->next) {
            if (left-- == 0) return true;
            if (use->user != s->call &&
                (use->user->op == HLO_OP_DOT || hlo_matmul_is_call(use->user)))
                return true;
        }
    return false;
}

/* True if the product of another matmul may have the same factor: XLA makes one value of both, and
 * takes no factor into a call that another one has. */
static bool shares_factor(const speller *s) {
    const hlo_matmul *m = s->m;
    for (int i = 0; i < 2; i++) {
        const hlo_instr *scale = i ? m->b_scale : m->a_scale;
        if (scale && scale->op != HLO_OP_CONSTANT && hlo_instr_user_count(scale) < 2) return false;
    }
    return m->a_scale || m->b_scale || m->alpha != 1;
}

/* True if XLA makes another value of the bias, such as constants of another type or one number that
 * is repeated, and finds no bias then. */
static bool dissolves(const hlo_instr *bias) {
    for (int depth = 8; bias && depth > 0; depth--) {
        if (bias->op == HLO_OP_CONSTANT || bias->op == HLO_OP_BROADCAST) return true;
        if (bias->op != HLO_OP_CONVERT && !hlo_op_is(bias->op, HLO_MOVEMENT | HLO_JOINS))
            return false;
        bias = hlo_instr_operand(bias, 0);
    }
    return false;
}

/* Returns the barrier that the pair has been put behind for an earlier matmul, or NULL. `left`:
 * users to look at. */
static hlo_instr *barrier_of(const speller *s, const hlo_instr *a, const hlo_instr *b, int *left) {
    for (const hlo_use *use = a->uses; use && --*left > 0; use = use->next) {
        const hlo_instr *pair = use->user;
        if (pair->op == HLO_OP_TUPLE && pair->id >= s->made->first_id && pair->operand_count >= 2 &&
            hlo_instr_operand(pair, 0) == a && hlo_instr_operand(pair, 1) == b && pair->uses &&
            pair->uses->user->op == HLO_OP_OPT_BARRIER)
            return pair->uses->user;
    }
    return NULL;
}

/* Puts the operands, the factor and the bias behind a barrier, so that XLA does not merge this dot
 * with others that share an operand, or this factor with others; behind one more than those of the
 * same two operands, since XLA makes one of barriers that are equal. Returns false if an operand
 * has too many users. */
static bool hold(speller *s, hlo_matmul *m) {
    hlo_instr **const values[] = {&m->a, &m->b, &s->factor, &m->bias};
    int left = 256;
    for (hlo_instr *outer; (outer = barrier_of(s, m->a, m->b, &left));)
        for (const hlo_use *use = outer->uses; use; use = use->next) {
            const int64_t index = hlo_instr_int(use->user, HLO_ATTR_INDEX, 2);
            if (use->user->op == HLO_OP_GET_TUPLE_ELEMENT && index < 2) *values[index] = use->user;
        }
    if (left <= 0) return false;
    hlo_instr *held[4];
    const hlo_shape *shapes[4];
    uint32_t count = 0;
    for (int i = 0; i < 4; i++)
        if (*values[i]) shapes[count] = (*values[i])->shape, held[count++] = *values[i];
    hlo_instr *all = make(s, HLO_OP_TUPLE, hlo_shape_tuple(s->module, count, shapes), count, held);
    all = unary(s, HLO_OP_OPT_BARRIER, all);
    count = 0;
    for (int i = 0; i < 4; i++) {
        if (!*values[i]) continue;
        *values[i] = make(s, HLO_OP_GET_TUPLE_ELEMENT, shapes[count], 1, &all);
        hlo_instr_set_int(*values[i], HLO_ATTR_INDEX, count++);
    }
    return true;
}

static hlo_instr *activated(speller *s, hlo_instr *x, bool apart) {
    switch (hlo_epilogues[s->m->epilogue].activation) {
    case HLO_ACTIVATION_RELU: return binary(s, HLO_OP_MAXIMUM, x, numbers(s, x, 0));
    case HLO_ACTIVATION_GELU: return gelu(s, x, apart);
    default: return x;
    }
}

static hlo_computation *greater(speller *s, hlo_type type) {
    hlo_computation **kept = &s->made->greater[type];
    const char *thread = hlo_computation_thread(s->call->parent);
    if (!*kept || hlo_computation_thread(*kept) != thread)
        *kept = hlo_combiner_new(s->call->parent, HLO_OP_MAXIMUM, type, "max");
    return *kept;
}

static hlo_instr *greatest(speller *s, hlo_instr *x) {
    const hlo_shape *scalar = hlo_shape_array(s->module, x->shape->type, 0, NULL);
    hlo_instr *operands[] = {unary(s, HLO_OP_ABS, x), number(s, x->shape->type, 0)};
    hlo_instr *amax = make(s, HLO_OP_REDUCE, scalar, 2, operands);
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < x->shape->rank; i++) dims[i] = i;
    hlo_instr_set_ints(amax, HLO_ATTR_DIMENSIONS, x->shape->rank, dims);
    hlo_instr_set_comp(amax, HLO_ATTR_TO_APPLY, greater(s, x->shape->type));
    return converted(s, amax, HLO_TYPE_F32);
}

static hlo_instr *narrowed(speller *s, hlo_instr *x) {
    const hlo_type type = s->m->d->type;
    x = times(s, x, s->m->d_scale);
    if (!hlo_type_is_fp8(type)) return converted(s, x, type);
    const double most = hlo_float_max(type);
    hlo_instr *bounds[] = {numbers(s, x, -most), x, numbers(s, x, most)};
    return converted(s, make(s, HLO_OP_CLAMP, x->shape, 3, bounds), type);
}

static bool has_scalar_scales(const hlo_matmul *m) {
    return m->a_mode == HLO_SCALE_SCALAR && m->b_mode == HLO_SCALE_SCALAR;
}

/* True if XLA's call includes more than a product. XLA loses the rest if it merges the dot. */
static bool has_more(const hlo_matmul *m) {
    return has_scalar_scales(m) &&
           (m->epilogue != HLO_EPILOGUE_DEFAULT || m->c || m->amax || hlo_type_is_fp8(m->d->type));
}

/* True if a wide result is scaled, which XLA's calls do not support. */
static bool scales_wide(const hlo_matmul *m) {
    return m->d_scale && !hlo_type_is_fp8(m->d->type);
}

/* Chooses the type of the product and the epilogue: f16 may overflow before it is scaled, and
 * scales per row are f32. */
static hlo_type type_of(const hlo_matmul *m, bool fusible) {
    hlo_type type = m->d->type;
    if (hlo_type_is_fp8(type)) type = m->c ? m->c->shape->type : HLO_TYPE_F32;
    const bool narrow = fusible && has_scalar_scales(m) && !scales_wide(m);
    return narrow && type == HLO_TYPE_BF16 ? type : HLO_TYPE_F32;
}

const char *hlo_spell_unfused(const hlo_matmul *m) {
    if (hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along)
        return "its scales are per block";
    const hlo_matmul_sizes size = hlo_matmul_extents(m);
    if (size.m == 1 || size.n == 1) return "it has one row or one column";
    return m->alpha == 0 ? "its alpha is 0" : isfinite(m->alpha) ? NULL : "its alpha is infinite";
}

const char *hlo_spell_outside(const hlo_matmul *m) {
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

hlo_spelled hlo_spell(hlo_instr *call, const hlo_matmul *matmul, bool fusible,
                      hlo_spell_made *made) {
    speller s = {.module = call->parent->module,
                 .call = call,
                 .m = matmul,
                 .made = made,
                 .fusible = fusible && !hlo_spell_unfused(matmul)};
    s.type = type_of(matmul, s.fusible);
    hlo_spelled out = {0};
    hlo_matmul alone = *matmul;
    const hlo_epilogue_info *epilogue = &hlo_epilogues[matmul->epilogue];
    const bool is_gelu = epilogue->activation == HLO_ACTIVATION_GELU;
    if (matmul->alpha != 0) s.factor = scalar_factor(&s);
    bool held = s.fusible && has_more(matmul) &&
                (is_gelu || dissolves(matmul->bias) || shares_operand(&s) || shares_factor(&s));
    if (held) held = hold(&s, &alone);
    /* XLA makes a call with an auxiliary result of a gelu whose operand has another use, and fails.
     */
    const bool apart = s.fusible && is_gelu && (epilogue->aux || !held);
    s.m = &alone;
    hlo_instr *x = plus_addend(&s, plus_bias(&s, product(&s)));
    if (epilogue->aux) x = out.aux = converted(&s, x, matmul->aux->type);
    if (is_gelu && (apart || epilogue->aux))
        x = converted(&s, x, HLO_TYPE_F32); /* as in the call */
    x = activated(&s, x, apart);
    if (matmul->amax) out.amax = greatest(&s, x);
    out.d = narrowed(&s, x);
    return out;
}
