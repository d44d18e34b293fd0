/* SPDX-License-Identifier: Apache-2.0 */
/* Rewrites operands that are fp8 values times scales. */
#include "passes/builders/scaled_operand.h"

#include <string.h>

#include "ir/eval/range.h"
#include "ir/module/known.h"
#include "passes/analysis/value.h"
#include "passes/builders/granularity.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"

enum { STEP_LIMIT = 256, MAX_LINKS = 64 };

/* A value on the path from an operand to its fp8 value: an fp8 value times factors. */
typedef struct step {
    hlo_instruction *value;
    hlo_granularity granularity; /* granularity of the factors */
    uint32_t index;              /* index of the value among the operands of its user */
    bool scaled;
    hlo_type type;      /* type of the fp8 value */
    struct step *below; /* the first operand that comes from fp8, or NULL if the value is fp8 */
    struct step *next;  /* the next operand of the user that comes from fp8 */
} step;

typedef struct plan {
    bool fp4;              /* search for f4e2m1fn values, also before conversions to fp8 */
    bool unequal;          /* parts with different factors may share a run of equal elements */
    unsigned count, depth; /* number of steps; recursion depth of the planning */
    step steps[STEP_LIMIT];
} plan;

/* ------------------------------------------------------------------------------------ comparing */

/* True if the compact form of the value has one element. */
static bool is_one(const hlo_instruction *value, const hlo_granularity *granularity) {
    for (uint32_t i = 0; i < value->shape->rank; i++)
        if (granularity->v[i] < value->shape->dims[i]) return false;
    return true;
}

static bool same_compact_dims(const hlo_instruction *x, const hlo_granularity *gx,
                              const hlo_instruction *y, const hlo_granularity *gy) {
    int64_t dx[HLO_RULE_ARGS], dy[HLO_RULE_ARGS];
    if (x->shape->rank != y->shape->rank) return false;
    hlo_granularity_dims(x->shape, gx, dx);
    hlo_granularity_dims(y->shape, gy, dy);
    return !memcmp(dx, dy, x->shape->rank * sizeof *dx);
}

static bool same_dimensions(const hlo_instruction *x, const hlo_instruction *y) {
    return hlo_ints_equal(hlo_instr_ints(x, HLO_ATTR_DIMENSIONS),
                          hlo_instr_ints(y, HLO_ATTR_DIMENSIONS));
}

/* Skips movement that does not change a compact form of one element. */
static hlo_instruction *moved_from(hlo_instruction *value, hlo_granularity *granularity) {
    hlo_granularity below;
    while (hlo_instr_moves(value) && value->op != HLO_OP_PAD &&
           hlo_granularity_of_operand(value, granularity, &below) &&
           is_one(hlo_instr_operand(value, 0), &below)) {
        value = hlo_instr_operand(value, 0);
        *granularity = below;
    }
    return value;
}

/* True if two values, which have the given granularities, have equal compact forms. */
static bool same_compact(hlo_instruction *x, hlo_granularity gx, hlo_instruction *y,
                         hlo_granularity gy, unsigned depth) {
    const bool one = is_one(x, &gx) && is_one(y, &gy);
    hlo_granularity bx, by;
    double a, b;
    if (!depth || x->shape->type != y->shape->type) return false;
    if (hlo_known_number(x, &a) && hlo_known_number(y, &b)) return a == b;
    if (one) x = moved_from(x, &gx), y = moved_from(y, &gy);
    if (!one && !same_compact_dims(x, &gx, y, &gy)) return false;
    if (hlo_same_expression(x, y)) return true;
    if (x->op != y->op || x->operand_count != y->operand_count || x->pin || y->pin) return false;
    if (hlo_op_is(x->op, HLO_ELEMENTWISE)) {
        for (uint32_t i = 0; i < x->operand_count; i++)
            if (!same_compact(hlo_instr_operand(x, i), gx, hlo_instr_operand(y, i), gy, depth - 1))
                return false;
        return hlo_attrs_equal(x->attrs, x->attr_count, y->attrs, y->attr_count);
    }
    return hlo_op_is(x->op, HLO_MOVES_DIMENSIONS) && same_dimensions(x, y) &&
           hlo_granularity_of_operand(x, &gx, &bx) && hlo_granularity_of_operand(y, &gy, &by) &&
           same_compact(hlo_instr_operand(x, 0), bx, hlo_instr_operand(y, 0), by, depth - 1);
}

/* Returns the first step, from `s` down, that changes the product of the factors. */
static const step *past_links(const step *s) {
    for (;; s = s->below) {
        const hlo_instruction *value = s->value;
        switch (value->op) {
        case HLO_OP_MULTIPLY:
        case HLO_OP_DIVIDE: return s;
        case HLO_OP_CONVERT:
        case HLO_OP_COPY:
        case HLO_OP_CUSTOM_CALL:
        case HLO_OP_SELECT:
        case HLO_OP_CLAMP:
        case HLO_OP_MAXIMUM: continue;
        case HLO_OP_CONCATENATE: { /* plan_parts() has compared the factors of the parts */
            const int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0];
            if (s->granularity.v[dim] < value->shape->dims[dim]) return s;
            continue;
        }
        default:
            if (!is_one(value, &s->granularity) || !is_one(s->below->value, &s->below->granularity))
                return s;
        }
    }
}

/* ------------------------------------------------------------------------------------- planning */

static step *plan_value(plan *p, hlo_instruction *value, const hlo_granularity *granularity);

static step *plan_operand(plan *p, step *s, uint32_t index, const hlo_granularity *granularity) {
    if (p->depth == MAX_LINKS) return NULL;
    p->depth++;
    step *below = plan_value(p, hlo_instr_operand(s->value, index), granularity);
    p->depth--;
    if (!below) return NULL;
    below->index = index;
    s->type = below->type;
    s->scaled |= below->scaled;
    return below;
}

/* True if the fp8 type represents the pad value and scales do not change the pad value. */
static bool fills(hlo_instruction *pad_value, const step *s) {
    return hlo_pad_value_moves(pad_value, s->scaled, s->type);
}

/* Plans a concatenate of several parts. If a run of equal elements crosses parts, these parts must
 * have equal factors. Some of the parts may be pad values, but not all. */
static bool plan_parts(plan *p, step *s) {
    const hlo_instruction *value = s->value;
    int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0], g = s->granularity.v[dim];
    step **end = &s->below;
    if (value->operand_count > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        hlo_instruction *operand = hlo_instr_operand(value, i);
        if (g < value->shape->dims[dim] && i + 1 < value->operand_count &&
            operand->shape->dims[dim] % g)
            return false;
        if (hlo_is_pad_value(operand)) continue;
        *end = plan_operand(p, s, i, &s->granularity);
        if (!*end || (*end)->type != s->below->type) return false;
        end = &(*end)->next;
    }
    for (uint32_t i = 0; s->below && i < value->operand_count; i++) {
        hlo_instruction *operand = hlo_instr_operand(value, i);
        if (hlo_is_pad_value(operand) && !fills(operand, s)) return false;
    }
    if (!s->below || p->unequal || g < value->shape->dims[dim]) return s->below;
    for (const step *part = s->below->next; part; part = part->next) {
        const step *a = s->below, *b = part;
        enum { SAME_DEPTH = 8 };
        for (; a->scaled && b->scaled; a = a->below, b = b->below) {
            a = past_links(a);
            b = past_links(b);
            const hlo_instruction *x = a->value, *y = b->value;
            if (x->op != y->op) return false;
            if (x->op == HLO_OP_MULTIPLY || x->op == HLO_OP_DIVIDE) {
                if (!same_compact(hlo_instr_operand(x, !a->below->index), a->granularity,
                                  hlo_instr_operand(y, !b->below->index), b->granularity,
                                  SAME_DEPTH))
                    return false;
            } else if (!hlo_op_is(x->op, HLO_MOVES_DIMENSIONS) || !same_dimensions(x, y) ||
                       !same_compact_dims(x, &a->granularity, y, &b->granularity)) {
                return false;
            }
        }
        if (a->scaled != b->scaled) return false;
    }
    return true;
}

/* True if all factors at and below the step are nonnegative. If the fp8 type has an infinity, they
 * must not be 0, because 0 times -inf is NaN, but 0 times relu(-inf) is 0. Divisors must be
 * positive. */
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

static bool plan_link(plan *p, step *s) {
    const hlo_instruction *link = s->value;
    hlo_granularity below;
    return (link->op == HLO_OP_CONVERT || hlo_instr_moves(link)) &&
           hlo_granularity_of_operand(link, &s->granularity, &below) &&
           (s->below = plan_operand(p, s, 0, &below)) &&
           (link->op != HLO_OP_PAD || fills(hlo_instr_operand(link, 1), s));
}

static step *plan_value(plan *p, hlo_instruction *value, const hlo_granularity *granularity) {
    if (p->count == STEP_LIMIT) return NULL;
    step *s = &p->steps[p->count++];
    hlo_type type = value->shape->type;
    if (!hlo_shape_is_array(value->shape) || value->shape->dynamic ||
        value->shape->rank > HLO_RULE_ARGS || hlo_shape_count(value->shape) < 1)
        return NULL;
    *s = (step){.value = value, .granularity = *granularity, .type = type};
    if (p->fp4 ? type == HLO_TYPE_F4E2M1FN : hlo_type_is_fp8_operand(type)) return s;
    if (value->pin) return NULL;
    if (p->fp4 && type == HLO_TYPE_F8E4M3FN &&
        value->operand_count) { /* a value of f4e2m1fn, possibly moved */
        const hlo_type from = hlo_instr_operand(value, 0)->shape->type;
        if (from == (value->op == HLO_OP_CONVERT ? HLO_TYPE_F4E2M1FN : HLO_TYPE_F8E4M3FN))
            return plan_link(p, s) ? s : NULL;
    }
    if (!hlo_type_is_wide(type)) return NULL;
    bool ok = false;
    switch (value->op) {
    case HLO_OP_MULTIPLY: /* the fp8 value may be either operand */
    case HLO_OP_DIVIDE:
        for (uint32_t i = 0; !ok && i < (value->op == HLO_OP_MULTIPLY ? 2 : 1); i++) {
            s->below = plan_operand(p, s, i, granularity);
            s->scaled = true;
            ok = s->below && hlo_granularity_holds(hlo_instr_operand(value, !i), granularity);
        }
        break;
    case HLO_OP_SELECT: {
        const uint32_t pad = hlo_is_pad_value(hlo_instr_operand(value, 1)) ? 1 : 2;
        hlo_instruction *pad_value = hlo_instr_operand(value, pad);
        ok = hlo_is_pad_value(pad_value) && (s->below = plan_operand(p, s, 3 - pad, granularity)) &&
             fills(pad_value, s);
        break;
    }
    case HLO_OP_CONCATENATE: ok = plan_parts(p, s); break;
    case HLO_OP_CLAMP:
    case HLO_OP_MAXIMUM: { /* relu(q * s) equals relu(q) * s */
        uint32_t index;
        ok = !p->fp4 && hlo_is_relu(value, &index) &&
             (s->below = plan_operand(p, s, index, granularity)) &&
             keeps_signs(s->below, s->type == HLO_TYPE_F8E5M2);
        break;
    }
    default: ok = plan_link(p, s); break;
    }
    return ok ? s : NULL;
}

/* Plans any value. Returns NULL if it is not an fp8 value times factors of the granularity. */
static const step *plan_any(plan *p, hlo_instruction *value, const hlo_granularity *granularity,
                            bool fp4, bool unequal) {
    p->count = p->depth = 0;
    p->fp4 = fp4;
    p->unequal = unequal;
    return plan_value(p, value, granularity);
}

/* Plans an operand of a dot, like plan_any(), with the granularity of the mode. */
static const step *plan_side(plan *p, const hlo_instruction *dot, unsigned side,
                             const hlo_scale_info *mode, bool unequal) {
    hlo_instruction *value = hlo_instr_operand(dot, side);
    const hlo_shape *shape = value->shape;
    hlo_granularity granularity;
    if (shape->rank > HLO_RULE_ARGS) return NULL;
    for (uint32_t i = 0; i < shape->rank;
         i++) { /* factors may vary per batch or be the same for all batches */
        const int64_t each = hlo_ints_contain(hlo_dot_contracting(dot, side), i) ? mode->along
                             : hlo_ints_contain(hlo_dot_batch(dot, side), i)     ? mode->across != 0
                                                                                 : mode->across;
        granularity.v[i] = each ? each : shape->dims[i];
    }
    return plan_any(p, value, &granularity, mode->type == HLO_TYPE_F8E4M3FN, unequal);
}

hlo_type hlo_scaled_operand_in_blocks(const hlo_instruction *dot, unsigned side, int64_t along) {
    plan p;
    const step *s = plan_side(&p, dot, side, &(hlo_scale_info){.across = 1, .along = along}, true);
    return s ? s->type : HLO_TYPE_INVALID;
}

/* --------------------------------------------------------------------------------------- making */

static hlo_instruction *ones(hlo_rule_env *env, uint32_t rank, const int64_t *dims) {
    return hlo_build_filled(env->build,
                            hlo_shape_array(env->context->module, HLO_TYPE_F32, rank, dims), 1);
}

static hlo_instruction *combined(hlo_builder *b, hlo_op op, hlo_instruction *x,
                                 hlo_instruction *y) {
    return x && y && hlo_shape_same_dims(x->shape, y->shape) ? hlo_build_binary(b, op, x, y) : NULL;
}

/* Builds the fp8 value, moved as planned. Returns NULL on failure. */
static hlo_instruction *make_fp8(hlo_rule_env *env, const step *s) {
    hlo_instruction *value = s->value, *operands[HLO_RULE_ARGS] = {NULL};
    if (!s->below) return value;
    for (const step *part = s->below; part; part = part->next)
        if (!(operands[part->index] = make_fp8(env, part))) return NULL;
    if (hlo_op_is(value->op, HLO_JOINS)) return hlo_join_clone_onto(env, value, operands, s->type);
    bool factor = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_DIVIDE;
    hlo_instruction *below = operands[s->below->index];
    if (hlo_is_relu(value, NULL)) return hlo_build_by_number(env->build, HLO_OP_MAXIMUM, below, 0);
    return factor ? below : hlo_link_clone_onto(env, value, below);
}

/* The product of the factors, and its type. A scale whose type is not f32 is a single array factor;
 * all other factors must be scalars. */
typedef struct factors {
    hlo_type type;
    bool scalars;            /* scalars are allowed */
    hlo_instruction *scalar; /* product of the scalars, f32[], or NULL */
} factors;

static bool multiply_by(hlo_rule_env *env, hlo_op op, hlo_instruction *factor,
                        hlo_instruction **scale) {
    if (!factor) return false;
    if (!*scale && op == HLO_OP_DIVIDE)
        *scale = ones(env, factor->shape->rank, factor->shape->dims);
    *scale = *scale ? combined(env->build, op, *scale, factor) : factor;
    return *scale != NULL;
}

/* Builds the compact product of the factors. `*out` is NULL if there are no factors. */
static bool make_scale(hlo_rule_env *env, const step *s, factors *f, hlo_instruction **out) {
    hlo_op op = s->value->op;
    *out = NULL;
    if (!s->below) return true;
    if (op == HLO_OP_CONCATENATE) {
        /* Pad values have no factors. */
        const hlo_instruction *value = s->value;
        hlo_instruction *scales[HLO_RULE_ARGS] = {NULL};
        const int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0];
        bool any = false;
        if (s->granularity.v[dim] >= value->shape->dims[dim]) /* all parts have equal factors */
            return make_scale(env, s->below, f, out) && !f->scalar;
        for (const step *part = s->below; part; part = part->next) {
            if (!make_scale(env, part, f, &scales[part->index]) || f->scalar) return false;
            any |= scales[part->index] != NULL;
        }
        if (!any) return true;
        if (f->type != HLO_TYPE_F32) return false;
        for (uint32_t i = 0; i < value->operand_count; i++) {
            if (scales[i]) continue;
            const hlo_shape *part = hlo_instr_operand(value, i)->shape;
            scales[i] = hlo_build_filled(
                env->build, hlo_granularity_shape(env, part, HLO_TYPE_F32, &s->granularity), 1);
        }
        const hlo_shape *shape =
            hlo_granularity_shape(env, value->shape, HLO_TYPE_F32, &s->granularity);
        *out = hlo_build_ints(env->build, HLO_OP_CONCATENATE, shape, value->operand_count, scales,
                              HLO_ATTR_DIMENSIONS, 1, &dim);
        return *out != NULL;
    }
    if (!make_scale(env, s->below, f, out)) return false;
    if (op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE) {
        hlo_instruction *factor = hlo_instr_operand(s->value, !s->below->index);
        factor = hlo_granularity_compact(env, factor, &s->granularity);
        if (!factor) return false;
        if (f->type == HLO_TYPE_F32)
            return multiply_by(env, op, hlo_build_convert(env->build, factor, HLO_TYPE_F32), out);
        if (*out || op == HLO_OP_DIVIDE || !hlo_block_is_narrow(factor, f->type)) {
            /* Multiply f->scalar by a factor that is equal for all elements of a value. */
            hlo_instruction *array = hlo_instr_operand(s->value, !s->below->index);
            hlo_granularity whole;
            for (uint32_t i = 0; i < array->shape->rank; i++) whole.v[i] = array->shape->dims[i];
            if (!f->scalars || !hlo_granularity_holds(array, &whole)) return false;
            hlo_builder *build = env->build;
            array = hlo_build_reshape(build, hlo_granularity_compact(env, array, &whole), 0, NULL);
            return multiply_by(env, s->value->op, hlo_build_convert(build, array, HLO_TYPE_F32),
                               &f->scalar);
        }
        *out = hlo_block_narrowed(env, factor, f->type);
        return *out != NULL;
    }
    if (!*out || op == HLO_OP_SELECT || op == HLO_OP_CONVERT || hlo_is_relu(s->value, NULL))
        return true;
    *out = hlo_granularity_carry(env, s->value, &s->granularity, *out);
    return *out != NULL;
}

/* Builds the compact scales of an operand that matches the mode. For a tiled mode, also builds the
 * product of the scalars that multiply these scales; it is NULL if there are no scalars. If
 * `out_scalar` is NULL, scalars are not allowed. */
static bool compact_scale(hlo_rule_env *env, const hlo_instruction *dot, unsigned side,
                          hlo_scale_mode mode, hlo_instruction **out_scalar,
                          hlo_instruction **out) {
    plan p;
    const step *s = plan_side(&p, dot, side, &hlo_scale_modes[mode], false);
    factors made = {.type = hlo_scale_modes[mode].type, .scalars = out_scalar != NULL};
    if (!s || !make_scale(env, s, &made, out)) return false;
    if (out_scalar) *out_scalar = made.scalar;
    return true;
}

hlo_type hlo_scaled_operand_type(const hlo_instruction *product, unsigned side,
                                 const hlo_granularity *granularity) {
    plan p;
    const step *s = plan_any(&p, hlo_instr_operand(product, side), granularity, false, false);
    return s ? s->type : HLO_TYPE_INVALID;
}

hlo_instruction *hlo_scaled_operand_value(hlo_rule_env *env, const hlo_instruction *product,
                                          unsigned side, const hlo_granularity *granularity) {
    plan p;
    const step *s = plan_any(&p, hlo_instr_operand(product, side), granularity, false, false);
    return s ? make_fp8(env, s) : NULL;
}

bool hlo_scaled_operand_factors(hlo_rule_env *env, const hlo_instruction *product, unsigned side,
                                const hlo_granularity *granularity, hlo_instruction **out) {
    plan p;
    const step *s = plan_any(&p, hlo_instr_operand(product, side), granularity, false, false);
    factors made = {.type = HLO_TYPE_F32};
    return s && make_scale(env, s, &made, out);
}

bool hlo_scaled_operand_is_scalar(const hlo_instruction *dot, unsigned side) {
    plan p;
    return plan_side(&p, dot, side, &hlo_scale_modes[HLO_SCALE_SCALAR], false) != NULL;
}

/* -------------------------------------------------------------------------------------- placing */

static bool side_of(const hlo_instruction *dot, unsigned side, hlo_scale_mode mode,
                    hlo_block_side *out) {
    *out = (hlo_block_side){.shape = hlo_instr_operand(dot, side)->shape,
                            .batch = hlo_dot_batch(dot, side),
                            .row = hlo_dot_free_dim(dot, side),
                            .mode = mode};
    if (out->row < 0 || hlo_dot_contracting(dot, side)->count != 1) return false;
    out->k = hlo_dot_contracting(dot, side)->v[0];
    return true;
}

/* True if a factor at or below the step is a block scale with element type `type`. */
static bool has_block_scale(const step *s, hlo_type type) {
    if (s->value->op == HLO_OP_MULTIPLY && s->below &&
        hlo_block_is_narrow(hlo_instr_operand(s->value, !s->below->index), type))
        return true;
    for (const step *part = s->below; part; part = part->next)
        if (has_block_scale(part, type)) return true;
    return false;
}

bool hlo_scaled_operand_tiles(hlo_rule_env *env, const hlo_instruction *dot, unsigned side,
                              hlo_scale_mode mode, hlo_instruction **out_scalar,
                              hlo_instruction **out) {
    hlo_block_side place;
    if (!hlo_scale_modes[mode].tiled || !side_of(dot, side, mode, &place) ||
        !compact_scale(env, dot, side, mode, out_scalar, out))
        return false;
    if (!*out) {
        plan p;
        const step *other = plan_side(&p, dot, !side, &hlo_scale_modes[mode], false);
        if (!other || !has_block_scale(other, hlo_scale_modes[mode].type)) return false;
        *out = hlo_block_ones(env, &place);
    }
    return (*out = hlo_block_tile(env, *out, &place)) != NULL;
}

hlo_instruction *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instruction *dot,
                                           unsigned side, hlo_scale_mode mode) {
    plan p;
    hlo_block_side place;
    const step *s = plan_side(&p, dot, side, &hlo_scale_modes[mode], false);
    hlo_instruction *values = s ? make_fp8(env, s) : NULL, *scales, *scalar;
    if (!values || !p.fp4) return values;
    return side_of(dot, side, mode, &place) && compact_scale(env, dot, side, mode, &scalar, &scales)
               ? hlo_block_signed(env, values, scales, &place)
               : NULL;
}

bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instruction *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instruction **out) {
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape;
    int64_t row = hlo_dot_free_dim(dot, side), dims[3];
    if (row < 0 || hlo_dot_contracting(dot, side)->count != 1) return false;
    int64_t k = hlo_dot_contracting(dot, side)->v[0];
    if (hlo_scale_modes[mode].tiled)
        return hlo_scaled_operand_tiles(env, dot, side, mode, NULL, out);
    if (!compact_scale(env, dot, side, mode, NULL, out)) return false;
    uint32_t rank = hlo_scale_dims(mode, 1, shape->dims[row], shape->dims[k], dims);
    if (!*out && mode == HLO_SCALE_SCALAR) return true;
    if (!*out) return (*out = ones(env, rank, dims)) != NULL;
    int64_t count = 1;
    for (uint32_t i = 0; i < hlo_dot_batch(dot, side)->count; i++)
        count *= shape->dims[hlo_dot_batch(dot, side)->v[i]];
    if (rank && count != 1) return true; /* hlo_matmul_check() rejects batched scales */
    hlo_builder *b = env->build;
    if (rank < 2) return (*out = hlo_build_reshape(b, *out, rank, dims)) != NULL;
    const bool rows_first = mode == HLO_SCALE_BLK128;
    const int64_t rows = (*out)->shape->dims[row], steps = (*out)->shape->dims[k];
    const int64_t apart[] = {row < k ? rows : steps, row < k ? steps : rows};
    *out = hlo_build_reshape(b, *out, 2, apart);
    if ((row < k) != rows_first) *out = hlo_build_transpose(b, *out, (const int64_t[]){1, 0});
    if (rows_first) *out = hlo_pad_zeros(b, *out, dims);
    return *out != NULL;
}

hlo_instruction *hlo_scaled_operand_result_scale(hlo_rule_env *env, const hlo_instruction *dot,
                                                 unsigned side) {
    const hlo_ints *batches = hlo_dot_batch(dot, side), *summed = hlo_dot_contracting(dot, side);
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape, *result = dot->shape;
    if (result->rank > HLO_RULE_ARGS) return NULL;
    /* Permute the operand's dimensions to the order that they have in the result. */
    int64_t from[HLO_RULE_ARGS], to[HLO_RULE_ARGS], kept[HLO_RULE_ARGS];
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
    hlo_instruction *value;
    if (!compact_scale(env, dot, side, HLO_SCALE_OUTER_VEC, NULL, &value) || !value) return NULL;
    hlo_builder *b = env->build;
    value = hlo_build_transpose(b, hlo_build_reshape(b, value, rest, kept), from);
    return hlo_build_broadcast(b, value, result->rank, result->dims, count, to);
}

hlo_instruction *hlo_scaled_operand_joined_scale(hlo_rule_env *env, const hlo_matmul *call,
                                                 unsigned side, hlo_instruction *factor) {
    hlo_matmul_sizes size = hlo_matmul_extents(call);
    int64_t rows = side ? size.n : size.m;
    const hlo_shape *shape = hlo_shape_array(env->context->module, HLO_TYPE_F32, 1, &rows);
    hlo_instruction *scale = side ? call->b_scale : call->a_scale;
    hlo_builder *b = env->build;
    if (scale && !scale->shape->rank) scale = hlo_build_splat(b, scale, shape);
    if (!factor) return scale ? scale : ones(env, 1, &rows);
    factor = hlo_build_convert(b, hlo_build_reshape(b, factor, 1, &rows), HLO_TYPE_F32);
    return scale ? combined(b, HLO_OP_MULTIPLY, scale, factor) : factor;
}
