/* Operands that are fp8 values times scales. */
#include "passes/builders/scaled_operand.h"

#include "ir/eval/range.h"
#include "ir/module/known.h"
#include "passes/analysis/value.h"
#include "passes/builders/granularity.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"

enum { STEP_LIMIT = 256, MOST_LINKS = 64 };

/* Returns the granularity that the mode asks of factors. Each batch has its own factors, but for a
 * scalar.
 */
static hlo_granularity wanted(const hlo_instr *dot, unsigned side, const hlo_scale_info *info) {
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape;
    hlo_granularity granularity;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t each = hlo_ints_contain(hlo_dot_contracting(dot, side), i) ? info->along
                       : hlo_ints_contain(hlo_dot_batch(dot, side), i)     ? info->across != 0
                                                                           : info->across;
        granularity.v[i] = each ? each : shape->dims[i];
    }
    return granularity;
}

/* ------------------------------------------------------------------------------------- planning */

/* A value that is an fp8 value times factors, on the way down to the fp8 value. */
typedef struct step {
    hlo_instr *value;
    hlo_granularity granularity; /* of the factors */
    uint32_t index;              /* of the value among its user's operands */
    bool scaled;
    hlo_type type;      /* of the fp8 value */
    struct step *below; /* of the first operand that comes from fp8; NULL: the value is fp8 */
    struct step *next;  /* of the user's next operand that comes from fp8 */
} step;

typedef struct plan {
    bool fp4;              /* looks for f4e2m1fn values, through fp8 */
    unsigned count, depth; /* of steps; of the one that is planned: planning is recursive */
    step steps[STEP_LIMIT];
} plan;

static step *plan_value(plan *p, hlo_instr *value, const hlo_granularity *granularity);

static step *plan_operand(plan *p, step *s, uint32_t index, const hlo_granularity *granularity) {
    if (p->depth == MOST_LINKS) return NULL;
    p->depth++;
    step *below = plan_value(p, hlo_instr_operand(s->value, index), granularity);
    p->depth--;
    if (!below) return NULL;
    below->index = index;
    s->type = below->type;
    s->scaled |= below->scaled;
    return below;
}

/* Plans a product, whose fp8 value may be on either side, or a quotient. */
static bool plan_factor(plan *p, step *s) {
    for (uint32_t i = 0; i < (s->value->op == HLO_OP_MULTIPLY ? 2 : 1); i++) {
        s->below = plan_operand(p, s, i, &s->granularity);
        s->scaled = true;
        if (s->below && hlo_granularity_holds(hlo_instr_operand(s->value, !i), &s->granularity))
            return true;
    }
    return false;
}

/* True if the fp8 type has the pad value, and scales leave the pad value as it is. */
static bool fills(hlo_instr *pad_value, const step *s) {
    return hlo_pad_value_moves(pad_value, s->scaled, s->type);
}

static bool plan_select(plan *p, step *s) {
    uint32_t pad = hlo_is_pad_value(hlo_instr_operand(s->value, 1)) ? 1 : 2;
    hlo_instr *pad_value = hlo_instr_operand(s->value, pad);
    return hlo_is_pad_value(pad_value) &&
           (s->below = plan_operand(p, s, 3 - pad, &s->granularity)) && fills(pad_value, s);
}

/* Plans a concatenate of several parts. A run of equal elements across parts needs equal factors;
 * join_scales() checks them when it makes them. Parts may be pad values, but not all. */
static bool plan_parts(plan *p, step *s) {
    const hlo_instr *value = s->value;
    int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0], g = s->granularity.v[dim];
    step **end = &s->below;
    if (value->operand_count > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        hlo_instr *operand = hlo_instr_operand(value, i);
        if (g < value->shape->dims[dim] && i + 1 < value->operand_count &&
            operand->shape->dims[dim] % g)
            return false;
        if (hlo_is_pad_value(operand)) continue;
        *end = plan_operand(p, s, i, &s->granularity);
        if (!*end || (*end)->type != s->below->type) return false;
        end = &(*end)->next;
    }
    for (uint32_t i = 0; s->below && i < value->operand_count; i++) {
        hlo_instr *operand = hlo_instr_operand(value, i);
        if (hlo_is_pad_value(operand) && !fills(operand, s)) return false;
    }
    return s->below != NULL;
}

/* True if no factor below the step may be negative, nor 0 where the fp8 type has an infinity: 0
 * times -inf is NaN, but 0 times relu(-inf) is 0. A divisor must be above 0. */
static bool keeps_signs(const step *s, bool infinity) {
    const hlo_op op = s->value->op;
    const bool divides = op == HLO_OP_DIVIDE, scales = divides || op == HLO_OP_MULTIPLY;
    if (s->below && scales) {
        const double low = hlo_range_of(hlo_instr_operand(s->value, !s->below->index)).low;
        if (infinity || divides ? low <= 0 : low < 0) return false;
    }
    for (const step *part = s->below; part; part = part->next)
        if (!keeps_signs(part, infinity)) return false;
    return true;
}

/* Plans relu(q * s) as relu(q) * s. */
static bool plan_relu(plan *p, step *s) {
    uint32_t index;
    return !p->fp4 && hlo_is_relu(s->value, &index) &&
           (s->below = plan_operand(p, s, index, &s->granularity)) &&
           keeps_signs(s->below, s->type == HLO_TYPE_F8E5M2);
}

static bool plan_link(plan *p, step *s) {
    const hlo_instr *link = s->value;
    hlo_granularity below;
    return (link->op == HLO_OP_CONVERT || hlo_instr_moves(link)) &&
           hlo_granularity_of_operand(link, &s->granularity, &below) &&
           (s->below = plan_operand(p, s, 0, &below)) &&
           (link->op != HLO_OP_PAD || fills(hlo_instr_operand(link, 1), s));
}

/* True for an fp8 value that is an f4e2m1fn one, moved or not. */
static bool is_from_fp4(const hlo_instr *value) {
    const hlo_type from =
        value->operand_count ? hlo_instr_operand(value, 0)->shape->type : HLO_TYPE_INVALID;
    return value->shape->type == HLO_TYPE_F8E4M3FN &&
           (value->op == HLO_OP_CONVERT ? from == HLO_TYPE_F4E2M1FN : from == HLO_TYPE_F8E4M3FN);
}

static step *plan_value(plan *p, hlo_instr *value, const hlo_granularity *granularity) {
    if (p->count == STEP_LIMIT) return NULL;
    step *s = &p->steps[p->count++];
    hlo_type type = value->shape->type;
    if (!hlo_shape_is_array(value->shape) || value->shape->dynamic ||
        value->shape->rank > HLO_RULE_ARGS || hlo_shape_count(value->shape) < 1)
        return NULL;
    *s = (step){.value = value, .granularity = *granularity, .type = type};
    if (p->fp4 ? type == HLO_TYPE_F4E2M1FN : hlo_type_is_fp8_operand(type)) return s;
    if (value->pin) return NULL;
    if (p->fp4 && is_from_fp4(value)) return plan_link(p, s) ? s : NULL;
    if (!hlo_type_is_wide(type)) return NULL;
    switch (value->op) {
    case HLO_OP_MULTIPLY:
    case HLO_OP_DIVIDE: return plan_factor(p, s) ? s : NULL;
    case HLO_OP_SELECT: return plan_select(p, s) ? s : NULL;
    case HLO_OP_CONCATENATE: return plan_parts(p, s) ? s : NULL;
    case HLO_OP_CLAMP:
    case HLO_OP_MAXIMUM: return plan_relu(p, s) ? s : NULL;
    default: return plan_link(p, s) ? s : NULL;
    }
}

/* Plans an operand of a dot. NULL: it is no fp8 value times factors of the mode's granularity. */
static const step *plan_side(plan *p, const hlo_instr *dot, unsigned side,
                             const hlo_scale_info *mode) {
    hlo_instr *value = hlo_instr_operand(dot, side);
    if (value->shape->rank > HLO_RULE_ARGS) return NULL;
    hlo_granularity granularity = wanted(dot, side, mode);
    p->count = p->depth = 0;
    p->fp4 = mode->type == HLO_TYPE_F8E4M3FN;
    return plan_value(p, value, &granularity);
}

hlo_type hlo_scaled_operand_in_blocks(const hlo_instr *dot, unsigned side, int64_t along) {
    plan p;
    const step *s = plan_side(&p, dot, side, &(hlo_scale_info){.across = 1, .along = along});
    return s ? s->type : HLO_TYPE_INVALID;
}

/* --------------------------------------------------------------------------------------- making */

static hlo_instr *as_f32(hlo_rule_env *env, hlo_instr *value) {
    if (!value || value->shape->type == HLO_TYPE_F32) return value;
    const hlo_shape *shape = hlo_shape_retype(env->context->module, value->shape, HLO_TYPE_F32);
    return hlo_rule_new(env, HLO_OP_CONVERT, shape, 1, &value);
}

static hlo_instr *ones(hlo_rule_env *env, uint32_t rank, const int64_t *dims) {
    hlo_module *module = env->context->module;
    return hlo_rule_splat(env, hlo_rule_number(env, HLO_TYPE_F32, 1),
                          hlo_shape_array(module, HLO_TYPE_F32, rank, dims));
}

static hlo_instr *multiplied(hlo_rule_env *env, hlo_op op, hlo_instr *x, hlo_instr *y) {
    if (!x || !y || (!hlo_shape_same_dims(x->shape, y->shape))) return NULL;
    hlo_instr *operands[] = {x, y};
    return hlo_rule_new(env, op, x->shape, 2, operands);
}

/* Makes the fp8 value, moved as planned. NULL: it cannot be made. */
static hlo_instr *make_fp8(hlo_rule_env *env, const step *s) {
    hlo_instr *value = s->value, *operands[HLO_RULE_ARGS] = {NULL};
    if (!s->below) return value;
    for (const step *part = s->below; part; part = part->next)
        if (!(operands[part->index] = make_fp8(env, part))) return NULL;
    if (hlo_op_is(value->op, HLO_JOINS)) return hlo_join_clone_onto(env, value, operands, s->type);
    bool factor = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_DIVIDE;
    hlo_instr *below = operands[s->below->index];
    if (hlo_is_relu(value, NULL)) return hlo_relu_of(env, below);
    return factor ? below : hlo_link_clone_onto(env, value, below);
}

/* The product of the factors, and its type. Beside a scale of another type than f32, which is one
 * factor alone, there may be scalars. */
typedef struct factors {
    hlo_type type;
    bool scalars;      /* allowed */
    hlo_instr *scalar; /* their product, f32[]; NULL: none */
} factors;

static bool make_scale(hlo_rule_env *env, const step *s, factors *f, hlo_instr **out);

/* Multiplies with a factor of f32, or divides by it. */
static bool multiply_by(hlo_rule_env *env, hlo_op op, hlo_instr *factor, hlo_instr **scale) {
    if (!factor) return false;
    if (!*scale && op == HLO_OP_DIVIDE)
        *scale = ones(env, factor->shape->rank, factor->shape->dims);
    *scale = *scale ? multiplied(env, op, *scale, factor) : factor;
    return *scale != NULL;
}

/* Takes a factor of all elements of a value. */
static bool take_scalar(hlo_rule_env *env, const step *s, factors *f) {
    hlo_instr *factor = hlo_instr_operand(s->value, !s->below->index);
    hlo_granularity whole;
    for (uint32_t i = 0; i < factor->shape->rank; i++) whole.v[i] = factor->shape->dims[i];
    if (!f->scalars || !hlo_granularity_holds(factor, &whole)) return false;
    factor = hlo_granularity_compact(env, factor, &whole);
    factor = as_f32(env, hlo_granularity_make(env, HLO_OP_RESHAPE, factor, 0, NULL, 0, NULL));
    return multiply_by(env, s->value->op, factor, &f->scalar);
}

static bool scale_by_factor(hlo_rule_env *env, const step *s, factors *f, hlo_instr **scale) {
    hlo_instr *factor = hlo_instr_operand(s->value, !s->below->index);
    factor = hlo_granularity_compact(env, factor, &s->granularity);
    if (!factor) return false;
    if (f->type == HLO_TYPE_F32) return multiply_by(env, s->value->op, as_f32(env, factor), scale);
    hlo_instr *narrow =
        *scale || s->value->op == HLO_OP_DIVIDE ? NULL : hlo_block_narrowed(env, factor, f->type);
    if (!narrow) return take_scalar(env, s, f);
    *scale = narrow;
    return true;
}

/* Joins the factors of the parts; pad values have none. */
static bool join_scales(hlo_rule_env *env, const step *s, factors *f, hlo_instr **out) {
    const hlo_instr *value = s->value;
    hlo_instr *scales[HLO_RULE_ARGS] = {NULL};
    int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0], extents[HLO_RULE_ARGS];
    bool apart = s->granularity.v[dim] < value->shape->dims[dim], any = false, alike = true;
    for (const step *part = s->below; part; part = part->next)
        if (!make_scale(env, part, f, &scales[part->index])) return false;
    if (f->scalar) return false;
    *out = scales[s->below->index];
    for (const step *part = s->below; part; part = part->next) {
        hlo_instr *scale = scales[part->index];
        any |= scale != NULL;
        alike &= scale && *out ? hlo_same_expression(scale, *out) : scale == *out;
    }
    if (!any || (!apart && alike)) return true;
    if (!apart || f->type != HLO_TYPE_F32) return false;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        hlo_granularity_dims(hlo_instr_operand(value, i)->shape, &s->granularity, extents);
        if (!scales[i]) scales[i] = ones(env, value->shape->rank, extents);
        if (!scales[i]) return false;
    }
    hlo_granularity_dims(value->shape, &s->granularity, extents);
    const hlo_shape *shape =
        hlo_shape_array(env->context->module, HLO_TYPE_F32, value->shape->rank, extents);
    *out = hlo_rule_new(env, HLO_OP_CONCATENATE, shape, value->operand_count, scales);
    if (*out) hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, 1, &dim);
    return *out != NULL;
}

/* Makes the compact product of the factors; `*out` NULL: there is none. */
static bool make_scale(hlo_rule_env *env, const step *s, factors *f, hlo_instr **out) {
    hlo_op op = s->value->op;
    *out = NULL;
    if (!s->below) return true;
    if (op == HLO_OP_CONCATENATE) return join_scales(env, s, f, out);
    if (!make_scale(env, s->below, f, out)) return false;
    if (op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE) return scale_by_factor(env, s, f, out);
    if (!*out || op == HLO_OP_SELECT || op == HLO_OP_CONVERT || hlo_is_relu(s->value, NULL))
        return true;
    *out = hlo_granularity_carry(env, s->value, &s->granularity, *out);
    return *out != NULL;
}

static bool compact_scale(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                          hlo_scale_mode mode, hlo_instr **out) {
    plan p;
    const step *s = plan_side(&p, dot, side, &hlo_scale_modes[mode]);
    factors made = {.type = hlo_scale_modes[mode].type};
    return s && make_scale(env, s, &made, out);
}

hlo_instr *hlo_scaled_operand_value(hlo_rule_env *env, const hlo_instr *product, unsigned side,
                                    const hlo_granularity *granularity) {
    plan p = {.count = 0};
    const step *s = plan_value(&p, hlo_instr_operand(product, side), granularity);
    return s ? make_fp8(env, s) : NULL;
}

bool hlo_scaled_operand_factors(hlo_rule_env *env, const hlo_instr *product, unsigned side,
                                const hlo_granularity *granularity, hlo_instr **out) {
    plan p = {.count = 0};
    const step *s = plan_value(&p, hlo_instr_operand(product, side), granularity);
    factors made = {.type = HLO_TYPE_F32};
    return s && make_scale(env, s, &made, out);
}

bool hlo_scaled_operand_is_scalar(hlo_rule_env *env, const hlo_instr *dot, unsigned side) {
    const hlo_rule_mark mark = hlo_rule_here(env);
    hlo_instr *packed;
    /* Making the factors shows whether those of all parts are equal. */
    bool scalar = compact_scale(env, dot, side, HLO_SCALE_SCALAR, &packed);
    hlo_rule_back(env, mark);
    return scalar;
}

hlo_instr *hlo_scaled_operand_unscaled(hlo_rule_env *env, const hlo_instr *dot, unsigned side) {
    bool scalar = hlo_scaled_operand_is_scalar(env, dot, side);
    return hlo_scaled_operand_values(env, dot, side,
                                     scalar ? HLO_SCALE_SCALAR : HLO_SCALE_OUTER_VEC);
}

/* -------------------------------------------------------------------------------------- placing */

/* Returns the free dimension of an operand; -1: none, or several. */
static int64_t free_dim(const hlo_instr *dot, unsigned side) {
    int64_t dim = -1;
    for (int64_t i = 0; i < (int64_t)hlo_instr_operand(dot, side)->shape->rank; i++) {
        if (hlo_ints_contain(hlo_dot_contracting(dot, side), i) ||
            hlo_ints_contain(hlo_dot_batch(dot, side), i))
            continue;
        if (dim >= 0) return -1;
        dim = i;
    }
    return dim;
}

/* Pads the last dimension with zeros. */
static hlo_instr *widened(hlo_rule_env *env, hlo_instr *value, const int64_t *dims) {
    int64_t padding[] = {0, 0, 0, 0, dims[1] - value->shape->dims[1], 0};
    if (!padding[4]) return value;
    hlo_module *module = env->context->module;
    hlo_instr *operands[] = {value, hlo_rule_number(env, HLO_TYPE_F32, 0)};
    hlo_instr *made =
        hlo_rule_new(env, HLO_OP_PAD, hlo_shape_array(module, HLO_TYPE_F32, 2, dims), 2, operands);
    if (made) hlo_instr_set_ints(made, HLO_ATTR_PADDING, 6, padding);
    return made;
}

/* Makes the compact scales of an operand that matches a tiled mode, and the product of the scalars
 * beside them; NULL: none. `out_scalar` NULL: there may be no scalars. */
static bool compact_tiled(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                          hlo_scale_mode mode, hlo_instr **out_scalar, hlo_instr **out) {
    plan p;
    const step *s = plan_side(&p, dot, side, &hlo_scale_modes[mode]);
    factors made = {.type = hlo_scale_modes[mode].type, .scalars = out_scalar != NULL};
    if (!s || !make_scale(env, s, &made, out)) return false;
    if (out_scalar) *out_scalar = made.scalar;
    return true;
}

static bool side_of(const hlo_instr *dot, unsigned side, hlo_scale_mode mode, hlo_block_side *out) {
    *out = (hlo_block_side){.shape = hlo_instr_operand(dot, side)->shape,
                            .batch = hlo_dot_batch(dot, side),
                            .row = free_dim(dot, side),
                            .mode = mode};
    if (out->row < 0 || hlo_dot_contracting(dot, side)->count != 1) return false;
    out->k = hlo_dot_contracting(dot, side)->v[0];
    return true;
}

/* Makes scales in tiles; an operand without them has scales of 1, if the other one has some. */
static bool tiles(hlo_rule_env *env, const hlo_instr *dot, unsigned side, hlo_scale_mode mode,
                  hlo_instr **out_scalar, hlo_instr **out) {
    hlo_block_side place;
    hlo_instr *other, *scalar;
    if (!side_of(dot, side, mode, &place) || !compact_tiled(env, dot, side, mode, out_scalar, out))
        return false;
    if (!*out) {
        const hlo_rule_mark mark = hlo_rule_here(env);
        const bool any = compact_tiled(env, dot, !side, mode, &scalar, &other) && other;
        hlo_rule_back(env, mark);
        if (!any) return false;
        *out = hlo_block_ones(env, &place);
    }
    return (*out = hlo_block_tile(env, *out, &place)) != NULL;
}

bool hlo_scaled_operand_tiles(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                              hlo_scale_mode mode, hlo_instr **out_scalar, hlo_instr **out) {
    return hlo_scale_modes[mode].tiled && tiles(env, dot, side, mode, out_scalar, out);
}

hlo_instr *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                                     hlo_scale_mode mode) {
    plan p;
    hlo_block_side place;
    const step *s = plan_side(&p, dot, side, &hlo_scale_modes[mode]);
    hlo_instr *values = s ? make_fp8(env, s) : NULL, *scales, *scalar;
    if (!values || !p.fp4) return values;
    return side_of(dot, side, mode, &place) && compact_tiled(env, dot, side, mode, &scalar, &scales)
               ? hlo_block_signed(env, values, scales, &place)
               : NULL;
}

bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instr **out) {
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape;
    int64_t row = free_dim(dot, side), dims[3];
    if (row < 0 || hlo_dot_contracting(dot, side)->count != 1) return false;
    int64_t k = hlo_dot_contracting(dot, side)->v[0];
    if (hlo_scale_modes[mode].tiled) return tiles(env, dot, side, mode, NULL, out);
    if (!compact_scale(env, dot, side, mode, out)) return false;
    uint32_t rank = hlo_scale_dims(mode, 1, shape->dims[row], shape->dims[k], dims);
    if (!*out && mode == HLO_SCALE_SCALAR) return true;
    if (!*out) return (*out = ones(env, rank, dims)) != NULL;
    int64_t count = 1;
    for (uint32_t i = 0; i < hlo_dot_batch(dot, side)->count; i++)
        count *= shape->dims[hlo_dot_batch(dot, side)->v[i]];
    if (rank && count != 1) return true; /* hlo_matmul_check() takes no scale of a batch */
    if (rank < 2) {
        return (*out = hlo_granularity_make(env, HLO_OP_RESHAPE, *out, rank, dims, 0, NULL)) !=
               NULL;
    }
    bool rows_first = mode == HLO_SCALE_BLK128;
    int64_t rows = (*out)->shape->dims[row], steps = (*out)->shape->dims[k];
    int64_t apart[] = {row < k ? rows : steps, row < k ? steps : rows};
    int64_t lie[] = {rows_first ? rows : steps, rows_first ? steps : rows};
    *out = hlo_granularity_make(env, HLO_OP_RESHAPE, *out, 2, apart, 0, NULL);
    if (*out && (row < k) != rows_first)
        *out = hlo_granularity_make(env, HLO_OP_TRANSPOSE, *out, 2, lie, 2, (int64_t[]){1, 0});
    if (*out && rows_first) *out = widened(env, *out, dims);
    return *out != NULL;
}

hlo_instr *hlo_scaled_operand_result_scale(hlo_rule_env *env, const hlo_instr *dot, unsigned side) {
    const hlo_ints *batches = hlo_dot_batch(dot, side), *summed = hlo_dot_contracting(dot, side);
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape, *result = dot->shape;
    if (result->rank > HLO_RULE_ARGS) return NULL;
    /* Permute the operand's dimensions to the order of the result's. */
    int64_t from[HLO_RULE_ARGS], to[HLO_RULE_ARGS], kept[HLO_RULE_ARGS], extents[HLO_RULE_ARGS];
    int64_t place[HLO_RULE_ARGS];
    uint32_t count = 0, rest = 0;
    for (int64_t d = 0; d < (int64_t)shape->rank; d++) {
        place[d] = rest;
        if (!hlo_ints_contain(summed, d)) kept[rest++] = shape->dims[d];
    }
    for (uint32_t i = 0; i < batches->count; i++, count++) {
        from[count] = place[batches->v[i]];
        to[count] = i;
    }
    uint32_t other = hlo_instr_operand(dot, 0)->shape->rank - hlo_dot_contracting(dot, 0)->count;
    for (int64_t d = 0, next = side ? other : batches->count; d < (int64_t)shape->rank; d++) {
        if (hlo_ints_contain(summed, d) || hlo_ints_contain(batches, d)) continue;
        from[count] = place[d];
        to[count++] = next++;
    }
    hlo_instr *value;
    if (!compact_scale(env, dot, side, HLO_SCALE_OUTER_VEC, &value) || !value) return NULL;
    for (uint32_t i = 0; i < count; i++) extents[i] = kept[from[i]];
    value = hlo_granularity_make(env, HLO_OP_RESHAPE, value, rest, kept, 0, NULL);
    value = hlo_granularity_make(env, HLO_OP_TRANSPOSE, value, count, extents, count, from);
    return hlo_granularity_make(env, HLO_OP_BROADCAST, value, result->rank, result->dims, count,
                                to);
}

hlo_instr *hlo_scaled_operand_joined_scale(hlo_rule_env *env, const hlo_matmul *call, unsigned side,
                                           hlo_instr *factor) {
    hlo_matmul_sizes size = hlo_matmul_extents(call);
    int64_t rows = side ? size.n : size.m;
    const hlo_shape *shape = hlo_shape_array(env->context->module, HLO_TYPE_F32, 1, &rows);
    hlo_instr *scale = side ? call->b_scale : call->a_scale;
    if (scale && !scale->shape->rank) scale = hlo_rule_splat(env, scale, shape);
    if (!factor) return scale ? scale : ones(env, 1, &rows);
    factor = as_f32(env, hlo_granularity_make(env, HLO_OP_RESHAPE, factor, 1, &rows, 0, NULL));
    return scale ? multiplied(env, HLO_OP_MULTIPLY, scale, factor) : factor;
}
