/* Builders for ragged-dots of fp8 values times factors: on the fp8 values, as a ragged-dot or as a
 * dense dot whose operands are 0 outside their group, with the factors behind it. */
#include <string.h>

#include "ir/module/ragged.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/scale_range.h"
#include "passes/builders/scaled_operand.h"
#include "passes/rules/functions.h"

/* An operand's dimensions by what they are for. */
typedef struct kinds {
    uint32_t batch, open, summed; /* how many there are of each; the group dimension is none */
    int64_t order[HLO_RULE_ARGS]; /* batch, free, contracting */
    int64_t size[3];              /* of each kind, all its dimensions */
} kinds;

typedef struct shape_of {
    hlo_ragged r;
    kinds side[2];
} shape_of;

static void add_dim(kinds *k, const hlo_shape *shape, int64_t dim, int kind, uint32_t *count) {
    k->order[(*count)++] = dim;
    k->size[kind] *= shape->dims[dim];
}

static kinds kinds_of(const hlo_instr *ragged, unsigned side, int64_t group) {
    const hlo_shape *shape = hlo_instr_operand(ragged, side)->shape;
    const hlo_ints *batch = hlo_dot_batch(ragged, side),
                   *summed = hlo_dot_contracting(ragged, side);
    kinds k = {.batch = batch->count, .summed = summed->count, .size = {1, 1, 1}};
    uint32_t count = 0;
    for (uint32_t i = 0; i < batch->count; i++) add_dim(&k, shape, batch->v[i], 0, &count);
    for (int64_t d = 0; d < (int64_t)shape->rank; d++) {
        if (d == group || hlo_ints_contain(batch, d) || hlo_ints_contain(summed, d)) continue;
        add_dim(&k, shape, d, 1, &count);
        k.open++;
    }
    for (uint32_t i = 0; i < summed->count; i++) add_dim(&k, shape, summed->v[i], 2, &count);
    return k;
}

static bool read(const hlo_instr *ragged, shape_of *out) {
    if (!hlo_ragged_read(ragged, &out->r) || ragged->shape->rank >= HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < 3; i++) {
        const hlo_shape *shape = hlo_instr_operand(ragged, i)->shape;
        if (shape->dynamic || hlo_shape_count(shape) < 1 || shape->rank >= HLO_RULE_ARGS)
            return false;
    }
    const bool grouped = out->r.mode == HLO_RAGGED_FREE;
    out->side[0] = kinds_of(ragged, 0, -1);
    out->side[1] = kinds_of(ragged, 1, grouped ? out->r.partner : -1);
    return true;
}

/* --------------------------------------------------------------------------------------- making */

static const hlo_shape *array(hlo_rule_env *env, hlo_type type, uint32_t rank,
                              const int64_t *dims) {
    return hlo_shape_array(env->context->module, type, rank, dims);
}

/* Moves elements up by `by` along the last dimension; zeros come in. */
static hlo_instr *shifted(hlo_builder *b, hlo_instr *value, int64_t by) {
    if (!value) return NULL;
    int64_t padding[3 * HLO_RULE_ARGS] = {0};
    const uint32_t last = 3 * (value->shape->rank - 1);
    padding[last] = by;
    padding[last + 1] = -by;
    return hlo_build_pad(b, value, hlo_build_number(b, value->shape->type, 0), value->shape,
                         padding);
}

/* Makes the places where groups end, at most the extent in each step, so that no sum overflows. */
static hlo_instr *ends_of(hlo_rule_env *env, const hlo_instr *ragged, const hlo_ragged *r) {
    hlo_instr *sizes = hlo_instr_operand(ragged, 2);
    const hlo_type from = sizes->shape->type;
    const bool is_signed = hlo_types[from].class == HLO_CLASS_SIGNED;
    const int bits = hlo_types[from].bits - is_signed;
    hlo_builder *b = env->build;
    if (bits > 31 || r->extent < INT64_C(1) << bits)
        sizes = hlo_build_binary(b, HLO_OP_MINIMUM, sizes,
                                 hlo_build_filled(b, sizes->shape, (double)r->extent));
    const bool fits = r->extent <= INT32_MAX / (r->groups + 1);
    sizes = hlo_build_convert(b, sizes, fits ? HLO_TYPE_S32 : HLO_TYPE_S64);
    for (int64_t by = 1; by < r->groups; by *= 2)
        sizes = hlo_build_binary(b, HLO_OP_ADD, sizes, shifted(b, sizes, by));
    return sizes;
}

/* Lists where the dimensions of the group sizes, and the ragged one, are in some array. */
typedef struct places {
    uint32_t rank;
    const int64_t *extents;
    int64_t prefix[HLO_RULE_ARGS], dim, group; /* group -1: any group */
} places;

/* Most bytes that an array of indices has; what is padded to whole tiles then has fewer than 2^63.
 */
static const int64_t MASK_LIMIT = INT64_C(1) << 56;

/* Makes a mask in the array's dimensions: true where the index along the ragged dimension is the
 * group's, or any group's. */
static hlo_instr *mask(hlo_rule_env *env, const hlo_instr *ragged, const hlo_ragged *r,
                       const places *at) {
    int64_t dims[HLO_RULE_ARGS], order[HLO_RULE_ARGS], small[HLO_RULE_ARGS];
    const uint32_t count = r->prefix_count;
    hlo_instr *ends = ends_of(env, ragged, r);
    if (!ends) return NULL;
    const hlo_type type = ends->shape->type;
    hlo_builder *b = env->build;
    hlo_instr *index = hlo_build_iota(b, array(env, type, at->rank, at->extents), at->dim);
    const int64_t bytes = index ? hlo_shape_bytes(index->shape) : -1;
    if (bytes < 0 || bytes > MASK_LIMIT) return NULL;
    for (uint32_t i = 0; i < count; i++) {
        dims[i] = at->prefix[i];
        order[i] = i;
        small[i] = ends->shape->dims[i];
    }
    if (at->group < 0) {
        int64_t slice[3 * HLO_RULE_ARGS];
        for (uint32_t i = 0; i <= count; i++) {
            slice[3 * i] = i == count ? r->groups - 1 : 0;
            slice[3 * i + 1] = ends->shape->dims[i];
            slice[3 * i + 2] = 1;
        }
        small[count] = 1;
        ends = hlo_build_slice(b, ends, array(env, type, count + 1, small), slice);
        ends = hlo_build_reshape(b, ends, count, small);
        ends = hlo_build_broadcast(b, ends, at->rank, at->extents, count, dims);
        return hlo_build_compare(b, index, "LT", ends);
    }
    hlo_instr *starts = shifted(b, ends, 1), **both[] = {&starts, &ends};
    const bool first = at->group == 0 && count;
    dims[count] = at->group;
    if (first) {
        memmove(order + 1, order, count * sizeof *order);
        memmove(dims + 1, dims, count * sizeof *dims);
        order[0] = count;
        dims[0] = 0;
    }
    for (int i = 0; i < 2; i++) {
        if (first) *both[i] = hlo_build_transpose(b, *both[i], order);
        *both[i] = hlo_build_broadcast(b, *both[i], at->rank, at->extents, count + 1, dims);
    }
    ends = hlo_build_compare(b, index, "LT", ends);
    return hlo_build_binary(b, HLO_OP_AND, hlo_build_compare(b, starts, "LE", index), ends);
}

/* Makes `value` where the mask holds, else a number. */
static hlo_instr *chosen(hlo_builder *b, hlo_instr *where, hlo_instr *value, double otherwise) {
    if (!where || !value) return NULL;
    return hlo_build_select(b, where, value, hlo_build_filled(b, value->shape, otherwise));
}

/* ------------------------------------------------------------------------------------- operands */

enum { SCALAR, GROUPS, ROWS, LEVELS };

/* Returns the granularity of factors that can go past the sum: one for all, one for each group, or
 * one for each index of every dimension that is not summed. */
static hlo_granularity granularity_of(const hlo_instr *ragged, unsigned side, const shape_of *s,
                                      int level) {
    const hlo_shape *shape = hlo_instr_operand(ragged, side)->shape;
    hlo_granularity g;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const bool summed = hlo_ints_contain(hlo_dot_contracting(ragged, side), i);
        const bool group = s->r.mode == HLO_RAGGED_FREE && side && i == s->r.partner;
        const bool varies = level == ROWS ? !summed : level == GROUPS && group;
        g.v[i] = varies ? 1 : shape->dims[i];
    }
    return g;
}

/* Finds the coarsest level that the factors of an operand have, and makes them; LEVELS: none. */
static int factors_of(hlo_rule_env *env, const hlo_instr *ragged, unsigned side, const shape_of *s,
                      hlo_instr **out_factors) {
    for (int level = SCALAR; level < LEVELS; level++) {
        const hlo_rule_mark mark = hlo_rule_here(env);
        const hlo_granularity g = granularity_of(ragged, side, s, level);
        if (hlo_scaled_operand_factors(env, ragged, side, &g, out_factors)) return level;
        hlo_rule_back(env, mark);
    }
    return LEVELS;
}

/* Makes the fp8 values of both operands. */
static bool values_of(hlo_rule_env *env, const hlo_instr *ragged, const shape_of *s,
                      hlo_instr *out[2]) {
    for (unsigned side = 0; side < 2; side++) {
        const hlo_rule_mark mark = hlo_rule_here(env);
        hlo_instr *factors;
        const int level = factors_of(env, ragged, side, s, &factors);
        const bool fits =
            level < LEVELS && (!factors || hlo_scale_is_moderate(env->context->scratch, factors));
        hlo_rule_back(env, mark);
        if (level == LEVELS) return false;
        if (!fits)
            return hlo_rule_refuse(env, "scales-out-of-range", hlo_instr_operand(ragged, side));
        const hlo_granularity g = granularity_of(ragged, side, s, level);
        if (!(out[side] = hlo_scaled_operand_value(env, ragged, side, &g))) return false;
    }
    return true;
}

/* Makes an operand of the dense dot: masked, as [batch, free, summed]. */
static hlo_instr *masked(hlo_rule_env *env, const hlo_instr *ragged, const shape_of *s,
                         unsigned side, hlo_instr *value) {
    const hlo_ragged *r = &s->r;
    const kinds *k = &s->side[side];
    const bool split_sum = r->mode == HLO_RAGGED_CONTRACTING, grouped = r->mode == HLO_RAGGED_FREE;
    const uint32_t count = k->batch + k->open + k->summed;
    int64_t extents[HLO_RULE_ARGS], dims[HLO_RULE_ARGS];
    if (count + 1 > HLO_RULE_ARGS) return NULL;
    value = hlo_build_transpose(env->build, value, k->order);
    places at = {.rank = count + !(r->mode == HLO_RAGGED_BATCH), .extents = extents, .group = -1};
    if (split_sum) at.group = 0;
    if (grouped) at.group = k->batch + k->open;
    for (uint32_t i = 0; value && i < count; i++) {
        dims[i] = i + (at.group >= 0 && i >= at.group);
        extents[dims[i]] = value->shape->dims[i];
    }
    if (at.group >= 0) extents[at.group] = r->groups;
    for (uint32_t i = 0; i < r->prefix_count; i++)
        at.prefix[i] = split_sum + i + (split_sum && i >= r->batch_count ? k->open : 0);
    at.dim = r->place;
    if (split_sum) {
        uint32_t i = 0;
        while (hlo_dot_contracting(ragged, 0)->v[i] != r->dim) i++;
        at.dim = 1 + k->batch + k->open + i;
    }
    value = hlo_build_broadcast(env->build, value, at.rank, extents, count, dims);
    return chosen(env->build, mask(env, ragged, r, &at), value, 0);
}

/* Makes the right operand where its groups are summed over. */
static hlo_instr *stacked(hlo_rule_env *env, const shape_of *s, hlo_instr *value) {
    const kinds *k = &s->side[1];
    int64_t order[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < k->batch; i++) order[count++] = k->order[i];
    order[count++] = s->r.partner;
    for (uint32_t i = 0; i < k->summed; i++) order[count++] = k->order[k->batch + k->open + i];
    for (uint32_t i = 0; i < k->open; i++) order[count++] = k->order[k->batch + i];
    return hlo_build_transpose(env->build, value, order);
}

/* Makes a dot of matrices, of the ragged-dot's type if that is fp8, else f32; one for each batch:
 * [batch, m, k] and [batch, n, k], or with `rows` [batch, k, n]. */
static hlo_instr *dot_of(hlo_rule_env *env, const hlo_instr *ragged, hlo_instr *const values[2],
                         const int64_t size[4], bool rows) {
    const bool batched = size[0] != 1;
    const int64_t a[] = {size[0], size[1], size[3]};
    const int64_t b[] = {size[0], rows ? size[3] : size[2], rows ? size[2] : size[3]};
    const int64_t batch = 0, left = batched + 1, right = rows ? batched : batched + 1;
    hlo_builder *build = env->build;
    hlo_instr *operands[] = {hlo_build_reshape(build, values[0], 2 + batched, a + !batched),
                             hlo_build_reshape(build, values[1], 2 + batched, b + !batched)};
    const hlo_type type = hlo_type_is_fp8(ragged->shape->type) ? ragged->shape->type : HLO_TYPE_F32;
    const hlo_shape *shape = array(env, type, 2 + batched, size + !batched);
    hlo_instr *dot = hlo_build(build, HLO_OP_DOT, shape, 2, operands);
    if (!dot) return NULL;
    if (batched) hlo_instr_set_ints(dot, HLO_ATTR_LHS_BATCH_DIMS, 1, &batch);
    hlo_instr_set_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS, 1, &left);
    if (batched) hlo_instr_set_ints(dot, HLO_ATTR_RHS_BATCH_DIMS, 1, &batch);
    hlo_instr_set_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS, 1, &right);
    const hlo_attr *precision = hlo_instr_attr(ragged, HLO_ATTR_OPERAND_PRECISION);
    if (precision) hlo_instr_set_attr(dot, *precision);
    return dot;
}

/* Makes the dense dot of fp8 values, if it can be an FP8 call. */
static hlo_instr *densified(hlo_rule_env *env, const hlo_instr *ragged, const shape_of *s,
                            hlo_instr *const values[2]) {
    const bool grouped = s->r.mode == HLO_RAGGED_FREE;
    hlo_instr *parts[] = {masked(env, ragged, s, 0, values[0]),
                          grouped ? stacked(env, s, values[1])
                                  : masked(env, ragged, s, 1, values[1])};
    const int64_t size[] = {
        s->side[0].size[0] * (s->r.mode == HLO_RAGGED_CONTRACTING ? s->r.groups : 1),
        s->side[0].size[1], s->side[1].size[1], s->side[0].size[2] * (grouped ? s->r.groups : 1)};
    hlo_instr *dot = dot_of(env, ragged, parts, size, grouped);
    hlo_matmul m;
    if (!dot) return NULL;
    hlo_matmul_from_dot(dot, &m);
    const char *reason = hlo_matmul_check(&m, &env->context->target);
    return reason ? hlo_rule_refuse(env, reason, NULL), NULL : dot;
}

/* True if both operands are fp8 values times factors that can go past the sum, and may become FP8.
 * Operands of a ragged-dot that is fp8 are converted to its type first: they must be of it. */
static bool is_taken_apart(hlo_rule_env *env, const hlo_instr *ragged, shape_of *s,
                           hlo_instr *values[2]) {
    const char *kept = hlo_remark_kept_wide(env->context, ragged);
    if (kept) return hlo_rule_refuse(env, kept, NULL);
    for (uint32_t side = 0; side < 2 && hlo_type_is_fp8(ragged->shape->type); side++)
        if (hlo_instr_operand(ragged, side)->shape->type != ragged->shape->type) return false;
    return read(ragged, s) && values_of(env, ragged, s, values);
}

MAKE(ragged_dense) {
    shape_of s;
    hlo_instr *values[2];
    *out = is_taken_apart(env, args->instr, &s, values) ? densified(env, args->instr, &s, values)
                                                        : NULL;
    return *out != NULL;
}

MAKE(ragged_unscaled) {
    const hlo_instr *ragged = args->instr;
    shape_of s;
    hlo_instr *operands[3];
    if (hlo_measure_wide_ragged(env, ragged) < 2 || !is_taken_apart(env, ragged, &s, operands))
        return false;
    const hlo_rule_mark mark = hlo_rule_here(env);
    const bool fits = densified(env, ragged, &s, operands) != NULL;
    hlo_rule_back(env, mark);
    operands[2] = hlo_instr_operand(ragged, 2);
    const hlo_shape *shape = hlo_shape_retype(env->context->module, ragged->shape, HLO_TYPE_F32);
    *out = fits ? hlo_build_clone(env->build, ragged, shape, operands) : NULL;
    return *out != NULL;
}

/* -------------------------------------------------------------------------------------- factors */

/* Makes the factors of each row's group, [batch, free of the left, free of the right], from those
 * of all groups, [batch, groups, free of the right]; 0 where a row has no group. */
static hlo_instr *by_group(hlo_rule_env *env, const hlo_instr *ragged, const shape_of *s,
                           hlo_instr *factors, const int64_t *extents, uint32_t columns) {
    const uint32_t batch = s->side[0].batch, open = s->side[0].open, rows = batch + open;
    int64_t all[HLO_RULE_ARGS], dims[HLO_RULE_ARGS], group = rows;
    places at = {.rank = rows + 1 + columns, .extents = all, .dim = s->r.place, .group = rows};
    if (at.rank > HLO_RULE_ARGS) return NULL;
    for (uint32_t i = 0; i < rows; i++) all[i] = extents[i];
    all[rows] = s->r.groups;
    for (uint32_t i = 0; i < columns; i++) all[rows + 1 + i] = extents[rows + i];
    for (uint32_t i = 0; i < batch; i++) dims[i] = i;
    for (uint32_t i = 0; i <= columns; i++) dims[batch + i] = rows + i;
    for (uint32_t i = 0; i < s->r.prefix_count; i++) at.prefix[i] = i;
    factors = hlo_build_broadcast(env->build, factors, at.rank, all, batch + 1 + columns, dims);
    factors = chosen(env->build, mask(env, ragged, &s->r, &at), factors, 0);
    return hlo_build_reduce(env->build, HLO_OP_ADD, factors, 0,
                            array(env, HLO_TYPE_F32, rows + columns, extents), 1, &group, NULL);
}

/* Arranges compact factors as [batch, group if there is one, free]; only with `varied` are the free
 * and batch dimensions there. */
static hlo_instr *arranged(hlo_rule_env *env, const shape_of *s, unsigned side, hlo_instr *factors,
                           bool all) {
    const kinds *k = &s->side[side];
    const bool grouped = side && s->r.mode == HLO_RAGGED_FREE;
    int64_t order[HLO_RULE_ARGS], extents[HLO_RULE_ARGS];
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < k->batch; i++) order[count++] = k->order[i];
    if (grouped) order[count++] = s->r.partner;
    for (uint32_t i = k->batch; i < k->batch + k->open + k->summed; i++)
        order[count++] = k->order[i];
    factors = hlo_build_transpose(env->build, factors, order);
    for (uint32_t i = 0; factors && i < count - k->summed; i++)
        if (all || (grouped && i == k->batch)) extents[kept++] = factors->shape->dims[i];
    return hlo_build_reshape(env->build, factors, kept, extents);
}

/* Multiplies `value`, in the dimensions of the result, with the factors of operand `side`. A factor
 * whose row or batch is in no group counts as 1 or 0. */
static hlo_instr *scaled(hlo_rule_env *env, hlo_instr *value, const hlo_instr *ragged,
                         unsigned side) {
    shape_of s;
    hlo_instr *factors;
    if (!read(ragged, &s) || hlo_shape_count(value->shape) != hlo_shape_count(ragged->shape))
        return NULL;
    hlo_builder *b = env->build;
    value = hlo_build_reshape(b, value, ragged->shape->rank, ragged->shape->dims);
    if (!value) return NULL;
    const int level = factors_of(env, ragged, side, &s, &factors);
    if (level == LEVELS || !factors) return level == LEVELS ? NULL : value;
    const uint32_t rank = value->shape->rank, rows = s.side[0].batch + s.side[0].open;
    const int64_t *extents = value->shape->dims;
    if (level == SCALAR)
        return hlo_build_binary(b, HLO_OP_MULTIPLY, value,
                                hlo_build_splat(b, factors, value->shape));
    int64_t dims[HLO_RULE_ARGS];
    uint32_t count = 0;
    const bool split_sum = s.r.mode == HLO_RAGGED_CONTRACTING;
    factors = arranged(env, &s, side, factors, level == ROWS);
    if (side && s.r.mode == HLO_RAGGED_FREE) {
        const uint32_t columns = level == ROWS ? s.side[1].open : 0;
        int64_t one[HLO_RULE_ARGS];
        if (level == GROUPS) {
            for (uint32_t i = 0; i < s.side[0].batch; i++) one[i] = extents[i];
            one[s.side[0].batch] = s.r.groups;
            dims[0] = s.side[0].batch;
            factors = hlo_build_broadcast(b, factors, s.side[0].batch + 1, one, 1, dims);
        }
        factors = by_group(env, ragged, &s, factors, extents, columns);
        for (; count < rows + columns; count++) dims[count] = count;
        factors = hlo_build_broadcast(b, factors, rank, extents, count, dims);
        return hlo_build_binary(b, HLO_OP_MULTIPLY, value, factors);
    }
    const kinds *k = &s.side[side];
    for (; count < k->batch; count++) dims[count] = split_sum + count;
    for (uint32_t i = 0; i < k->open; i++) dims[count++] = split_sum + (side ? rows : k->batch) + i;
    if (factors && !split_sum) { /* what belongs to no group may be no number */
        places at = {.rank = factors->shape->rank,
                     .extents = factors->shape->dims,
                     .dim = s.r.place,
                     .group = -1};
        for (uint32_t i = 0; i < s.r.prefix_count; i++) at.prefix[i] = i;
        factors = chosen(b, mask(env, ragged, &s.r, &at), factors, 1);
    }
    factors = hlo_build_broadcast(b, factors, rank, extents, count, dims);
    return hlo_build_binary(b, HLO_OP_MULTIPLY, value, factors);
}

MAKE(ragged_scaled) {
    *out = scaled(env, args[0].instr, args[1].instr, (unsigned)args[2].number);
    return *out != NULL;
}
