/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the builders for ragged-dots of fp8 values times factors. The builders create a
 * ragged-dot of the fp8 values, or a dense dot whose operands are 0 outside their group. The
 * factors then multiply the result. */
#include <string.h>

#include "ir/module/ragged.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/scale_range.h"
#include "passes/builders/scaled_operand.h"
#include "passes/rules/library.h"

/* The dimensions of an operand by kind. */
typedef struct kinds {
    uint32_t batch, open, summed; /* number of dimensions, without the group dimension */
    int64_t order[HLO_RULE_ARGS]; /* dimensions in the order batch, free, contracting */
    int64_t size[3];              /* product of all dimensions of each kind */
} kinds;

/* The dimensions along which factors vary: none, groups, or all dimensions that are not summed. */
typedef enum variation { SCALAR, GROUPS, ROWS, VARIATIONS } variation;

/* A ragged-dot of fp8 values times factors that can multiply the result instead. */
typedef struct product {
    const hlo_instruction *ragged;
    hlo_ragged r;
    kinds side[2];
    variation level[2]; /* the coarsest variation that describes the factors of each operand */
    hlo_type type[2];   /* types of the fp8 values */
} product;

static void add_dim(kinds *k, const hlo_shape *shape, int64_t dim, int kind, uint32_t *count) {
    k->order[(*count)++] = dim;
    k->size[kind] *= shape->dims[dim];
}

static kinds kinds_of(const hlo_instruction *ragged, unsigned side, int64_t group) {
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

static hlo_granularity granularity_of(const product *p, unsigned side, variation level) {
    const hlo_shape *shape = hlo_instr_operand(p->ragged, side)->shape;
    hlo_granularity g;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const bool summed = hlo_ints_contain(hlo_dot_contracting(p->ragged, side), i);
        const bool group = p->r.mode == HLO_RAGGED_FREE && side && i == p->r.partner;
        const bool varies = level == ROWS ? !summed : level == GROUPS && group;
        g.v[i] = varies ? 1 : shape->dims[i];
    }
    return g;
}

static bool read(const hlo_instruction *ragged, product *out) {
    out->ragged = ragged;
    if (!hlo_ragged_read(ragged, &out->r) || ragged->shape->rank >= HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < 3; i++) {
        const hlo_shape *shape = hlo_instr_operand(ragged, i)->shape;
        if (shape->dynamic || hlo_shape_count(shape) < 1 || shape->rank >= HLO_RULE_ARGS)
            return false;
    }
    const bool grouped = out->r.mode == HLO_RAGGED_FREE;
    out->side[0] = kinds_of(ragged, 0, -1);
    out->side[1] = kinds_of(ragged, 1, grouped ? out->r.partner : -1);
    for (unsigned side = 0; side < 2; side++) {
        out->type[side] = HLO_TYPE_INVALID;
        for (variation l = SCALAR; l < VARIATIONS && out->type[side] == HLO_TYPE_INVALID; l++) {
            const hlo_granularity g = granularity_of(out, side, l);
            out->level[side] = l;
            out->type[side] = hlo_scaled_operand_type(ragged, side, &g);
        }
    }
    return out->type[0] != HLO_TYPE_INVALID && out->type[1] != HLO_TYPE_INVALID;
}

/* --------------------------------------------------------------------------------------- making */

static const hlo_shape *array(const hlo_rule_env *env, hlo_type type, uint32_t rank,
                              const int64_t *dims) {
    return hlo_shape_array(env->context->module, type, rank, dims);
}

/* Shifts elements by `by` along the last dimension, and fills with zeros. */
static hlo_instruction *shifted(hlo_builder *b, hlo_instruction *value, int64_t by) {
    if (!value) return NULL;
    int64_t padding[3 * HLO_RULE_ARGS] = {0};
    const uint32_t last = 3 * (value->shape->rank - 1);
    padding[last] = by;
    padding[last + 1] = -by;
    return hlo_build_pad(b, value, hlo_build_number(b, value->shape->type, 0), value->shape,
                         padding);
}

/* The array that a mask is for: its extents, the dimensions that correspond to those of the group
 * sizes (`prefix`), the ragged dimension (`dim`) and the group dimension. */
typedef struct places {
    uint32_t rank;
    const int64_t *extents;
    int64_t prefix[HLO_RULE_ARGS], dim, group; /* if `group` is -1, the mask is for all groups */
} places;

/* Maximum number of bytes of an array of indices; arrays that are padded to complete tiles then
 * have fewer than 2^63 bytes. */
static const int64_t MASK_LIMIT = INT64_C(1) << 56;

/* Builds a mask with the array's dimensions: true where the index along the ragged dimension
 * belongs to the group or, if `group` is -1, to any group. */
static hlo_instruction *mask(hlo_rule_env *env, const hlo_instruction *ragged, const hlo_ragged *r,
                             const places *at) {
    int64_t dims[HLO_RULE_ARGS], order[HLO_RULE_ARGS], small[HLO_RULE_ARGS];
    const uint32_t count = r->prefix_count;
    /* Build the indices at which groups end. Limit each size, so that no sum overflows. */
    hlo_instruction *sizes = hlo_instr_operand(ragged, 2);
    const hlo_type from = sizes->shape->type;
    const bool is_signed = hlo_types[from].class == HLO_CLASS_SIGNED;
    const int bits = hlo_types[from].bits - is_signed;
    hlo_builder *b = env->build;
    if (bits > 31 || r->extent < INT64_C(1) << bits)
        sizes = hlo_build_by_number(b, HLO_OP_MINIMUM, sizes, (double)r->extent);
    const bool fits = r->extent <= INT32_MAX / (r->groups + 1);
    hlo_instruction *ends = hlo_build_convert(b, sizes, fits ? HLO_TYPE_S32 : HLO_TYPE_S64);
    for (int64_t by = 1; by < r->groups; by *= 2)
        ends = hlo_build_binary(b, HLO_OP_ADD, ends, shifted(b, ends, by));
    if (!ends) return NULL;
    const hlo_type type = ends->shape->type;
    hlo_instruction *index = hlo_build_iota(b, array(env, type, at->rank, at->extents), at->dim);
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
    hlo_instruction *starts = shifted(b, ends, 1), **both[] = {&starts, &ends};
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

/* Selects `value` where the mask is true, and a number elsewhere. */
static hlo_instruction *chosen(hlo_builder *b, hlo_instruction *where, hlo_instruction *value,
                               double otherwise) {
    if (!where || !value) return NULL;
    return hlo_build_select(b, where, value, hlo_build_filled(b, value->shape, otherwise));
}

/* ------------------------------------------------------------------------------------- operands */

/* Builds a masked operand of the dense dot, as [batch, free, summed]. */
static hlo_instruction *masked(hlo_rule_env *env, const product *p, unsigned side,
                               hlo_instruction *value) {
    const hlo_ragged *r = &p->r;
    const kinds *k = &p->side[side];
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
        while (hlo_dot_contracting(p->ragged, 0)->v[i] != r->dim) i++;
        at.dim = 1 + k->batch + k->open + i;
    }
    value = hlo_build_broadcast(env->build, value, at.rank, extents, count, dims);
    return chosen(env->build, mask(env, p->ragged, r, &at), value, 0);
}

/* The dense dot of matrices [m, k] and [n, k] or, if groups are summed, [k, n]. Several batches
 * become a batch dimension. */
typedef struct dense {
    const hlo_shape *operand[2], *result;
    hlo_dot_lists dims;
} dense;

/* Reads a ragged-dot whose dense form can be an FP8 call. If the ragged-dot has an fp8 type, its
 * operands are first converted to that type, so they must already have this type. Returns false,
 * possibly with a reason in env->reason. */
static bool read_fusible(hlo_rule_env *env, const hlo_instruction *ragged, product *p, dense *d) {
    const char *reason = hlo_remark_kept_wide(env->context, ragged);
    if (reason) return hlo_rule_refuse(env, reason, NULL);
    for (uint32_t side = 0; side < 2 && hlo_type_is_fp8(ragged->shape->type); side++)
        if (hlo_instr_operand(ragged, side)->shape->type != ragged->shape->type) return false;
    if (!read(ragged, p)) return false;
    /* Compute the sizes of the dense dot, unless they overflow. */
    hlo_module *module = env->context->module;
    const bool rows = p->r.mode == HLO_RAGGED_FREE;
    const int64_t groups = p->r.groups, m = p->side[0].size[1], n = p->side[1].size[1];
    int64_t batch = p->side[0].size[0], k = p->side[0].size[2];
    if (groups > INT64_MAX / (rows ? k : batch)) return hlo_rule_refuse(env, "too-large", NULL);
    if (p->r.mode == HLO_RAGGED_CONTRACTING) batch *= groups;
    if (rows) k *= groups;
    const uint32_t one = batch == 1, rank = 3 - one; /* one matrix has no batch dimension */
    const int64_t a[] = {batch, m, k}, b[] = {batch, rows ? k : n, rows ? n : k};
    const int64_t c[] = {batch, m, n}, last = rank - 1, right = rows ? last - 1 : last, first = 0;
    const hlo_type type = ragged->shape->type;
    d->operand[0] = array(env, p->type[0], rank, a + one);
    d->operand[1] = array(env, p->type[1], rank, b + one);
    d->result = array(env, hlo_type_is_fp8(type) ? type : HLO_TYPE_F32, rank, c + one);
    const hlo_ints *batches = hlo_ints_new(module, !one, &first);
    d->dims = (hlo_dot_lists){{batches, batches},
                              {hlo_ints_new(module, 1, &last), hlo_ints_new(module, 1, &right)}};
    hlo_instruction left = {.shape = d->operand[0]}, other = {.shape = d->operand[1]};
    const hlo_matmul call = {.a = &left,
                             .b = &other,
                             .d = d->result,
                             .alpha = 1,
                             .a_batch = d->dims.batch[0],
                             .b_batch = d->dims.batch[1],
                             .a_contracting = d->dims.contracting[0],
                             .b_contracting = d->dims.contracting[1]};
    reason =
        hlo_matmul_check(&call, env->context->target, env->context->cuda, env->context->scales);
    return !reason || hlo_rule_refuse(env, reason, NULL);
}

static hlo_instruction *unscaled(hlo_rule_env *env, const product *p, unsigned side) {
    const hlo_granularity g = granularity_of(p, side, p->level[side]);
    return hlo_scaled_operand_value(env, p->ragged, side, &g);
}

MAKE(ragged_dense) {
    product p;
    dense d;
    if (!read_fusible(env, args->instr, &p, &d)) return false;
    hlo_instruction *values[] = {unscaled(env, &p, 0), unscaled(env, &p, 1)};
    values[0] = masked(env, &p, 0, values[0]);
    if (p.r.mode == HLO_RAGGED_FREE) { /* the groups of the right operand are summed */
        const kinds *k = &p.side[1];
        int64_t order[HLO_RULE_ARGS];
        uint32_t n = 0;
        for (uint32_t i = 0; i < k->batch; i++) order[n++] = k->order[i];
        order[n++] = p.r.partner;
        for (uint32_t i = 0; i < k->summed; i++) order[n++] = k->order[k->batch + k->open + i];
        for (uint32_t i = 0; i < k->open; i++) order[n++] = k->order[k->batch + i];
        values[1] = hlo_build_transpose(env->build, values[1], order);
    } else {
        values[1] = masked(env, &p, 1, values[1]);
    }
    for (unsigned side = 0; side < 2; side++)
        values[side] = hlo_build_reshape(env->build, values[side], d.operand[side]->rank,
                                         d.operand[side]->dims);
    *out = hlo_build_dot(env->build, d.result, values, &d.dims);
    if (!*out) return false;
    const hlo_attr *precision = hlo_instr_attr(p.ragged, HLO_ATTR_OPERAND_PRECISION);
    if (precision) hlo_instr_set_attr(*out, *precision);
    return true;
}

MAKE(ragged_unscaled) {
    const hlo_instruction *ragged = args->instr;
    product p;
    dense d;
    if (hlo_measure_wide_ragged(env, ragged) < 2 || !read_fusible(env, ragged, &p, &d))
        return false;
    hlo_instruction *operands[] = {unscaled(env, &p, 0), unscaled(env, &p, 1),
                                   hlo_instr_operand(ragged, 2)};
    const hlo_shape *shape = hlo_shape_retype(env->context->module, ragged->shape, HLO_TYPE_F32);
    return (*out = hlo_build_clone(env->build, ragged, shape, operands)) != NULL;
}

/* -------------------------------------------------------------------------------------- factors */

/* Selects the factors of each row's group from the factors of all groups. `factors` is [batch,
 * groups, free of the right]; the result is [batch, free of the left, free of the right], with 0
 * for rows without a group. */
static hlo_instruction *by_group(hlo_rule_env *env, const product *p, hlo_instruction *factors,
                                 const int64_t *extents, uint32_t columns) {
    const uint32_t batch = p->side[0].batch, open = p->side[0].open, rows = batch + open;
    int64_t all[HLO_RULE_ARGS], dims[HLO_RULE_ARGS], group = rows;
    places at = {.rank = rows + 1 + columns, .extents = all, .dim = p->r.place, .group = rows};
    if (at.rank > HLO_RULE_ARGS) return NULL;
    for (uint32_t i = 0; i < rows; i++) all[i] = extents[i];
    all[rows] = p->r.groups;
    for (uint32_t i = 0; i < columns; i++) all[rows + 1 + i] = extents[rows + i];
    for (uint32_t i = 0; i < batch; i++) dims[i] = i;
    for (uint32_t i = 0; i <= columns; i++) dims[batch + i] = rows + i;
    for (uint32_t i = 0; i < p->r.prefix_count; i++) at.prefix[i] = i;
    factors = hlo_build_broadcast(env->build, factors, at.rank, all, batch + 1 + columns, dims);
    factors = chosen(env->build, mask(env, p->ragged, &p->r, &at), factors, 0);
    return hlo_build_reduce(env->build, HLO_OP_ADD, factors,
                            array(env, HLO_TYPE_F32, rows + columns, extents), 1, &group, NULL);
}

/* Arranges compact factors as [batch, group (if any), free] or, without `all`, as [group]. */
static hlo_instruction *arranged(hlo_rule_env *env, const product *p, unsigned side,
                                 hlo_instruction *factors, bool all) {
    const kinds *k = &p->side[side];
    const bool grouped = side && p->r.mode == HLO_RAGGED_FREE;
    int64_t order[HLO_RULE_ARGS], extents[HLO_RULE_ARGS];
    uint32_t count = 0, kept = 0;
    for (uint32_t i = 0; i < k->batch; i++) order[count++] = k->order[i];
    if (grouped) order[count++] = p->r.partner;
    for (uint32_t i = k->batch; i < k->batch + k->open + k->summed; i++)
        order[count++] = k->order[i];
    factors = hlo_build_transpose(env->build, factors, order);
    for (uint32_t i = 0; factors && i < count - k->summed; i++)
        if (all || (grouped && i == k->batch)) extents[kept++] = factors->shape->dims[i];
    return hlo_build_reshape(env->build, factors, kept, extents);
}

/* Multiplies a value, which has the result's dimensions, by the factors of an operand. The factor
 * is 1 for a row of the left operand that is in no group, and 0 for a result's row that no group of
 * the right operand multiplies. */
MAKE(ragged_scaled) {
    hlo_instruction *value = args[0].instr;
    const hlo_instruction *ragged = args[1].instr;
    const unsigned side = (unsigned)args[2].number;
    product p;
    hlo_instruction *factors;
    hlo_builder *b = env->build;
    if (!read(ragged, &p) || hlo_shape_count(value->shape) != hlo_shape_count(ragged->shape))
        return false;
    const variation level = p.level[side];
    const hlo_granularity g = granularity_of(&p, side, level);
    if (!hlo_scaled_operand_factors(env, ragged, side, &g, &factors)) return false;
    if (factors && !hlo_scale_is_moderate(env->context->scratch, factors))
        return hlo_rule_refuse(env, "scales-out-of-range", hlo_instr_operand(ragged, side));
    *out = value = hlo_build_reshape(b, value, ragged->shape->rank, ragged->shape->dims);
    if (!factors || !value) return value != NULL;
    if (level == SCALAR)
        return (*out = hlo_build_by_scalar(b, HLO_OP_MULTIPLY, value, factors)) != NULL;
    const uint32_t rank = value->shape->rank, rows = p.side[0].batch + p.side[0].open;
    const int64_t *extents = value->shape->dims;
    int64_t dims[HLO_RULE_ARGS];
    uint32_t mapped = 0;
    const bool split_sum = p.r.mode == HLO_RAGGED_CONTRACTING;
    factors = arranged(env, &p, side, factors, level == ROWS);
    if (side && p.r.mode == HLO_RAGGED_FREE) {
        const uint32_t columns = level == ROWS ? p.side[1].open : 0;
        int64_t one[HLO_RULE_ARGS];
        if (level == GROUPS) {
            for (uint32_t i = 0; i < p.side[0].batch; i++) one[i] = extents[i];
            one[p.side[0].batch] = p.r.groups;
            dims[0] = p.side[0].batch;
            factors = hlo_build_broadcast(b, factors, p.side[0].batch + 1, one, 1, dims);
        }
        factors = by_group(env, &p, factors, extents, columns);
        for (; mapped < rows + columns; mapped++) dims[mapped] = mapped;
    } else {
        const kinds *k = &p.side[side];
        for (; mapped < k->batch; mapped++) dims[mapped] = split_sum + mapped;
        for (uint32_t i = 0; i < k->open; i++)
            dims[mapped++] = split_sum + (side ? rows : k->batch) + i;
        if (factors && !split_sum) { /* rows that are in no group may be NaN */
            places at = {.rank = factors->shape->rank,
                         .extents = factors->shape->dims,
                         .dim = p.r.place,
                         .group = -1};
            for (uint32_t i = 0; i < p.r.prefix_count; i++) at.prefix[i] = i;
            factors = chosen(b, mask(env, ragged, &p.r, &at), factors, 1);
        }
    }
    factors = hlo_build_broadcast(b, factors, rank, extents, mapped, dims);
    return (*out = hlo_build_binary(b, HLO_OP_MULTIPLY, value, factors)) != NULL;
}
