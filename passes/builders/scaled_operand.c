/* Operands that are fp8 values times scales. */
#include "passes/builders/scaled_operand.h"

#include <string.h>

#include "ir/module/known.h"
#include "passes/builders/granularity.h"
#include "passes/builders/move_chain.h"

enum { STEP_LIMIT = 256, SAME_DEPTH = 8 };

static const hlo_ints *contracting(const hlo_instr *dot, unsigned side) {
    return hlo_instr_ints(dot,
                          side ? HLO_ATTR_RHS_CONTRACTING_DIMS : HLO_ATTR_LHS_CONTRACTING_DIMS);
}

static const hlo_ints *batch(const hlo_instr *dot, unsigned side) {
    return hlo_instr_ints(dot, side ? HLO_ATTR_RHS_BATCH_DIMS : HLO_ATTR_LHS_BATCH_DIMS);
}

/* Returns the granularity that the mode asks of factors. Each batch has its own, but for a scalar.
 */
static hlo_granularity wanted(const hlo_instr *dot, unsigned side, hlo_scale_mode mode) {
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape;
    const hlo_scale_info *info = &hlo_scale_modes[mode];
    hlo_granularity granularity;
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t each = hlo_ints_contain(contracting(dot, side), i) ? info->along
                       : hlo_ints_contain(batch(dot, side), i)     ? info->across != 0
                                                                   : info->across;
        granularity.v[i] = each ? each : shape->dims[i];
    }
    return granularity;
}

/* -------------------------------------------------------------------------------------- reading */

typedef struct reader {
    unsigned steps;
    const hlo_instr *bad; /* a factor that changes where it must not */
} reader;

/* Facts of a value that is fp8 times factors. */
typedef struct facts {
    bool scaled;
    hlo_type type; /* of the fp8 value */
} facts;

static bool reads(reader *r, hlo_instr *value, const hlo_granularity *granularity, facts *out);

/* Reads a product, whose fp8 value may be on either side, or a quotient. */
static bool reads_factor(reader *r, const hlo_instr *value, const hlo_granularity *granularity,
                         facts *out) {
    for (uint32_t i = 0; i < (value->op == HLO_OP_MULTIPLY ? 2 : 1); i++) {
        hlo_instr *factor = hlo_instr_operand(value, !i);
        if (!reads(r, hlo_instr_operand(value, i), granularity, out)) continue;
        out->scaled = true;
        if (hlo_granularity_holds(factor, granularity)) return true;
        r->bad = factor;
    }
    return false;
}

/* True if a pad value is 0, or NaN, or an unscaled value of the fp8 type. */
static bool fills(hlo_instr *pad_value, const facts *f) {
    return hlo_pad_value_moves(pad_value, f->scaled, f->type);
}

static bool is_pad_value(hlo_instr *value) {
    double number;
    return hlo_known_number(value, &number);
}

static bool reads_select(reader *r, const hlo_instr *value, const hlo_granularity *granularity,
                         facts *out) {
    hlo_instr *on = hlo_instr_operand(value, 1), *off = hlo_instr_operand(value, 2);
    bool second = is_pad_value(on);
    hlo_instr *pad_value = second ? on : off;
    return is_pad_value(pad_value) && reads(r, second ? off : on, granularity, out) &&
           fills(pad_value, out);
}

/* Where a run of equal elements lies in several parts, their factors must be the same; that is seen
 * when they are made. Parts may be fillers, but not all. */
static bool reads_parts(reader *r, const hlo_instr *value, const hlo_granularity *granularity,
                        facts *out) {
    int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0], g = granularity->v[dim];
    bool any = false;
    if (value->operand_count > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        facts part;
        hlo_instr *operand = hlo_instr_operand(value, i);
        if (g < value->shape->dims[dim] && i + 1 < value->operand_count &&
            operand->shape->dims[dim] % g)
            return false;
        if (is_pad_value(operand)) continue;
        if (!reads(r, operand, granularity, &part)) return false;
        if (any && part.type != out->type) return false;
        part.scaled |= any && out->scaled;
        *out = part;
        any = true;
    }
    for (uint32_t i = 0; any && i < value->operand_count; i++) {
        hlo_instr *operand = hlo_instr_operand(value, i);
        if (is_pad_value(operand) && !fills(operand, out)) return false;
    }
    return any;
}

static bool reads(reader *r, hlo_instr *value, const hlo_granularity *granularity, facts *out) {
    if (r->steps++ >= STEP_LIMIT || !hlo_shape_is_array(value->shape) || value->shape->dynamic ||
        value->shape->rank > HLO_RULE_ARGS || hlo_shape_count(value->shape) < 1)
        return false;
    hlo_granularity below;
    if (hlo_type_is_fp8_operand(value->shape->type)) {
        *out = (facts){.type = value->shape->type};
        return true;
    }
    if (!hlo_type_is_wide(value->shape->type) || value->pin) return false;
    switch (value->op) {
    case HLO_OP_MULTIPLY:
    case HLO_OP_DIVIDE: return reads_factor(r, value, granularity, out);
    case HLO_OP_SELECT: return reads_select(r, value, granularity, out);
    case HLO_OP_CONCATENATE: return reads_parts(r, value, granularity, out);
    default: break;
    }
    if (value->op != HLO_OP_CONVERT && !hlo_instr_moves(value)) return false;
    return hlo_granularity_of_operand(value, granularity, &below) &&
           reads(r, hlo_instr_operand(value, 0), &below, out) &&
           (value->op != HLO_OP_PAD || fills(hlo_instr_operand(value, 1), out));
}

bool hlo_scaled_operand_matches(const hlo_instr *dot, unsigned side, hlo_scale_mode mode,
                                const hlo_instr **out_bad) {
    reader r = {0};
    facts found;
    hlo_instr *value = hlo_instr_operand(dot, side);
    if (value->shape->rank > HLO_RULE_ARGS) return false;
    hlo_granularity granularity = wanted(dot, side, mode);
    bool readable = reads(&r, value, &granularity, &found);
    *out_bad = readable ? NULL : r.bad;
    return readable;
}

/* --------------------------------------------------------------------------------------- making */

/* An fp8 value and its compact factor; NULL: none, or not requested. */
typedef struct pieces {
    hlo_instr *fp8, *scale;
} pieces;

typedef struct maker {
    hlo_rule_env *env;
    bool fp8; /* which of the two is made */
} maker;

static bool make(const maker *k, hlo_instr *value, const hlo_granularity *granularity, pieces *out);

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

static bool make_factor(const maker *k, const hlo_instr *value, const hlo_granularity *granularity,
                        pieces *out) {
    for (uint32_t i = 0; i < (value->op == HLO_OP_MULTIPLY ? 2 : 1); i++) {
        reader r = {0};
        facts found;
        hlo_instr *from = hlo_instr_operand(value, i), *factor = hlo_instr_operand(value, !i);
        if (!reads(&r, from, granularity, &found) || !hlo_granularity_holds(factor, granularity))
            continue;
        if (!make(k, from, granularity, out)) return false;
        if (k->fp8) return true;
        hlo_instr *packed = as_f32(k->env, hlo_granularity_compact(k->env, factor, granularity));
        if (!packed) return false;
        if (!out->scale && value->op == HLO_OP_DIVIDE)
            out->scale = ones(k->env, packed->shape->rank, packed->shape->dims);
        out->scale = out->scale ? multiplied(k->env, value->op, out->scale, packed) : packed;
        return out->scale != NULL;
    }
    return false;
}

/* True if opcode, shape, operands and `dimensions` alone determine the value. */
static bool is_plain(const hlo_instr *value) {
    for (uint32_t i = 0; i < value->attr_count; i++)
        if (value->attrs[i].id != HLO_ATTR_METADATA && value->attrs[i].id != HLO_ATTR_DIMENSIONS)
            return false;
    return value->operand_count > 0;
}

static bool same_dimensions(const hlo_instr *x, const hlo_instr *y) {
    const hlo_ints *a = hlo_instr_ints(x, HLO_ATTR_DIMENSIONS);
    const hlo_ints *b = hlo_instr_ints(y, HLO_ATTR_DIMENSIONS);
    return a == b ||
           (a && b && a->count == b->count && !memcmp(a->v, b->v, a->count * sizeof *a->v));
}

/* True if both are one expression of one set of values. */
static bool same(hlo_instr *x, hlo_instr *y, unsigned depth) {
    double a, b;
    if (x == y) return true;
    if (!depth || x->op != y->op || x->operand_count != y->operand_count ||
        !hlo_shape_compatible(x->shape, y->shape))
        return false;
    if (hlo_known_number(x, &a) && hlo_known_number(y, &b)) return a == b;
    if (!is_plain(x) || !is_plain(y) || !same_dimensions(x, y)) return false;
    for (uint32_t i = 0; i < x->operand_count; i++)
        if (!same(hlo_instr_operand(x, i), hlo_instr_operand(y, i), depth - 1)) return false;
    return true;
}

/* Clones the link onto fp8 operands. */
static hlo_instr *again(hlo_rule_env *env, const hlo_instr *link, hlo_instr *const *operands,
                        hlo_type type) {
    const hlo_shape *shape = hlo_shape_retype(env->context->module, link->shape, type);
    hlo_instr *copy = hlo_rule_new(env, link->op, shape, link->operand_count, operands);
    if (!copy) return NULL;
    hlo_instr_drop_attr(copy, HLO_ATTR_METADATA);
    hlo_instr_copy_attrs(copy, link);
    return copy;
}

static bool make_select(const maker *k, const hlo_instr *value, const hlo_granularity *granularity,
                        pieces *out) {
    hlo_instr *operands[] = {hlo_instr_operand(value, 0), hlo_instr_operand(value, 1),
                             hlo_instr_operand(value, 2)};
    uint32_t at = is_pad_value(operands[1]) ? 2 : 1;
    if (!make(k, operands[at], granularity, out)) return false;
    if (!k->fp8) return true;
    hlo_type type = out->fp8->shape->type;
    operands[at] = out->fp8;
    operands[3 - at] = hlo_pad_value_clone_onto(k->env, operands[3 - at], type);
    out->fp8 = operands[3 - at] ? again(k->env, value, operands, type) : NULL;
    return out->fp8 != NULL;
}

/* Joins the factors of the parts, `scales`; pad values have none. */
static bool join_scales(const maker *k, const hlo_instr *value, const hlo_granularity *granularity,
                        hlo_instr **scales, pieces *out) {
    int64_t dim = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS)->v[0], extents[HLO_RULE_ARGS];
    bool apart = granularity->v[dim] < value->shape->dims[dim], any = false, alike = true;
    for (uint32_t i = 0, parts = 0; i < value->operand_count; i++) {
        if (is_pad_value(hlo_instr_operand(value, i))) continue;
        if (!parts++) out->scale = scales[i];
        any |= scales[i] != NULL;
        alike &= scales[i] && out->scale ? same(scales[i], out->scale, SAME_DEPTH)
                                         : scales[i] == out->scale;
    }
    if (!any || (!apart && alike)) return true;
    if (!apart) return false;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        hlo_granularity_dims(hlo_instr_operand(value, i)->shape, granularity, extents);
        if (!scales[i]) scales[i] = ones(k->env, value->shape->rank, extents);
        if (!scales[i]) return false;
    }
    hlo_granularity_dims(value->shape, granularity, extents);
    const hlo_shape *shape =
        hlo_shape_array(k->env->context->module, HLO_TYPE_F32, value->shape->rank, extents);
    out->scale = hlo_rule_new(k->env, HLO_OP_CONCATENATE, shape, value->operand_count, scales);
    if (out->scale) hlo_instr_set_ints(out->scale, HLO_ATTR_DIMENSIONS, 1, &dim);
    return out->scale != NULL;
}

static bool make_parts(const maker *k, const hlo_instr *value, const hlo_granularity *granularity,
                       pieces *out) {
    hlo_instr *fp8[HLO_RULE_ARGS], *scales[HLO_RULE_ARGS] = {NULL};
    hlo_type type = HLO_TYPE_INVALID;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        pieces part = {0};
        if (is_pad_value(hlo_instr_operand(value, i))) continue;
        if (!make(k, hlo_instr_operand(value, i), granularity, &part)) return false;
        fp8[i] = part.fp8;
        scales[i] = part.scale;
        if (k->fp8) type = part.fp8->shape->type;
    }
    if (!k->fp8) return join_scales(k, value, granularity, scales, out);
    for (uint32_t i = 0; i < value->operand_count; i++) {
        hlo_instr *part = hlo_instr_operand(value, i);
        if (is_pad_value(part)) fp8[i] = hlo_pad_value_clone_onto(k->env, part, type);
        if (!fp8[i]) return false;
    }
    out->fp8 = again(k->env, value, fp8, type);
    return out->fp8 != NULL;
}

/* Makes the fp8 value or the factor, in the order of reads(). */
static bool make(const maker *k, hlo_instr *value, const hlo_granularity *granularity,
                 pieces *out) {
    hlo_granularity below;
    *out = (pieces){.fp8 = value};
    if (hlo_type_is_fp8_operand(value->shape->type)) return true;
    switch (value->op) {
    case HLO_OP_MULTIPLY:
    case HLO_OP_DIVIDE: return make_factor(k, value, granularity, out);
    case HLO_OP_SELECT: return make_select(k, value, granularity, out);
    case HLO_OP_CONCATENATE: return make_parts(k, value, granularity, out);
    default: break;
    }
    if (!hlo_granularity_of_operand(value, granularity, &below) ||
        !make(k, hlo_instr_operand(value, 0), &below, out))
        return false;
    if (k->fp8) {
        out->fp8 = hlo_link_clone_onto(k->env, value, out->fp8);
        return out->fp8 != NULL;
    }
    if (out->scale && value->op != HLO_OP_CONVERT)
        out->scale = hlo_granularity_carry(k->env, value, granularity, out->scale);
    else
        return true;
    return out->scale != NULL;
}

hlo_instr *hlo_scaled_operand_values(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                                     hlo_scale_mode mode) {
    hlo_granularity granularity = wanted(dot, side, mode);
    maker k = {.env = env, .fp8 = true};
    pieces out;
    return make(&k, hlo_instr_operand(dot, side), &granularity, &out) ? out.fp8 : NULL;
}

static bool compact_scale(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                          hlo_scale_mode mode, hlo_instr **out) {
    hlo_granularity granularity = wanted(dot, side, mode);
    maker k = {.env = env};
    pieces made;
    if (!make(&k, hlo_instr_operand(dot, side), &granularity, &made)) return false;
    *out = made.scale;
    return true;
}

bool hlo_scaled_operand_is_scalar(hlo_rule_env *env, const hlo_instr *dot, unsigned side) {
    const hlo_instr *bad;
    const hlo_rule_mark mark = hlo_rule_here(env);
    hlo_instr *packed;
    if (!hlo_scaled_operand_matches(dot, side, HLO_SCALE_SCALAR, &bad)) return false;
    /* Making the factors shows whether those of all parts are equal. */
    bool scalar = compact_scale(env, dot, side, HLO_SCALE_SCALAR, &packed);
    hlo_rule_back(env, mark);
    return scalar;
}

hlo_instr *hlo_scaled_operand_unscaled(hlo_rule_env *env, const hlo_instr *dot, unsigned side) {
    const hlo_instr *bad;
    bool scalar = hlo_scaled_operand_is_scalar(env, dot, side);
    hlo_scale_mode mode = scalar ? HLO_SCALE_SCALAR : HLO_SCALE_OUTER_VEC;
    return hlo_scaled_operand_matches(dot, side, mode, &bad)
               ? hlo_scaled_operand_values(env, dot, side, mode)
               : NULL;
}

/* -------------------------------------------------------------------------------------- placing */

/* Returns the free dimension of an operand; -1: none, or several. */
static int64_t free_dim(const hlo_instr *dot, unsigned side) {
    int64_t dim = -1;
    for (int64_t i = 0; i < (int64_t)hlo_instr_operand(dot, side)->shape->rank; i++) {
        if (hlo_ints_contain(contracting(dot, side), i) || hlo_ints_contain(batch(dot, side), i))
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

bool hlo_scaled_operand_scales(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                               hlo_scale_mode mode, hlo_instr **out) {
    const hlo_shape *shape = hlo_instr_operand(dot, side)->shape;
    int64_t row = free_dim(dot, side), dims[2];
    if (row < 0 || contracting(dot, side)->count != 1) return false;
    int64_t k = contracting(dot, side)->v[0];
    if (!compact_scale(env, dot, side, mode, out)) return false;
    uint32_t rank = hlo_scale_dims(mode, shape->dims[row], shape->dims[k], dims);
    if (!*out && mode == HLO_SCALE_SCALAR) return true;
    if (!*out) return (*out = ones(env, rank, dims)) != NULL;
    int64_t count = 1;
    for (uint32_t i = 0; i < batch(dot, side)->count; i++)
        count *= shape->dims[batch(dot, side)->v[i]];
    if (rank && count != 1) return true; /* hlo_matmul_check() takes none of a batch */
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
    const hlo_ints *batches = batch(dot, side), *summed = contracting(dot, side);
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
    uint32_t other = hlo_instr_operand(dot, 0)->shape->rank - contracting(dot, 0)->count;
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
