/* Scales past a matmul.
 *
 * Sets of dimensions are masks, a bit each. */
#include "passes/rows.h"

enum { RANK_LIMIT = 64, STEP_LIMIT = 256 };

static uint64_t bit(int64_t dim) {
    return UINT64_C(1) << dim;
}

static uint64_t mask_of(const hlo_ints *dims) {
    uint64_t mask = 0;
    for (uint32_t i = 0; i < dims->count; i++) mask |= bit(dims->v[i]);
    return mask;
}

static const hlo_ints *contracting(const hlo_instr *dot, unsigned side) {
    return hlo_instr_ints(dot,
                          side ? HLO_ATTR_RHS_CONTRACTING_DIMS : HLO_ATTR_LHS_CONTRACTING_DIMS);
}

static const hlo_ints *batch(const hlo_instr *dot, unsigned side) {
    return hlo_instr_ints(dot, side ? HLO_ATTR_RHS_BATCH_DIMS : HLO_ATTR_LHS_BATCH_DIMS);
}

/* Without the dimensions along which there is one element only. */
static uint64_t proper(const hlo_shape *shape, uint64_t mask) {
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] == 1) mask &= ~bit(i);
    return mask;
}

/* ------------------------------------------------------------------------------- through one step
 */

static uint64_t below_broadcast(const hlo_instr *broadcast, uint64_t mask) {
    const hlo_ints *dims = hlo_instr_ints(broadcast, HLO_ATTR_DIMENSIONS);
    uint64_t below = 0;
    for (uint32_t i = 0; i < dims->count; i++)
        if (mask & bit(dims->v[i])) below |= bit(i);
    return below;
}

static uint64_t below_transpose(const hlo_instr *transpose, uint64_t mask) {
    const hlo_ints *dims = hlo_instr_ints(transpose, HLO_ATTR_DIMENSIONS);
    uint64_t below = 0;
    for (uint32_t i = 0; i < dims->count; i++)
        if (mask & bit(i)) below |= bit(dims->v[i]);
    return below;
}

/* A reshape takes runs of dimensions to runs of as many elements. Of a run that the mask has a part
 * of, all that it comes from. `*out_whole`: the mask has all of every such run. */
static uint64_t below_reshape(const hlo_shape *to, const hlo_shape *from, uint64_t mask,
                              bool *out_whole) {
    uint64_t below = 0;
    uint32_t i = 0, j = 0;
    *out_whole = true;
    mask = proper(to, mask);
    while (i < from->rank || j < to->rank) {
        uint32_t first_from = i, first_to = j;
        int64_t size = i < from->rank ? from->dims[i++] : 1;
        int64_t other = j < to->rank ? to->dims[j++] : 1;
        while (size != other) {
            if (size < other)
                size *= from->dims[i++];
            else
                other *= to->dims[j++];
        }
        uint64_t run = 0;
        for (uint32_t d = first_to; d < j; d++) run |= bit(d);
        if (!(mask & run)) continue;
        *out_whole &= (mask & run) == proper(to, run);
        for (uint32_t d = first_from; d < i; d++) below |= bit(d);
    }
    return below;
}

/* A bitcast that is a reshape: of the same type, row-major on both sides. */
static bool is_reshape(const hlo_instr *instr) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
    return instr->op == HLO_OP_RESHAPE ||
           (instr->op == HLO_OP_BITCAST && instr->shape->type == from->type &&
            hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(from));
}

/* -------------------------------------------------------------------------------------- constancy
 */

static bool constant_along(hlo_instr *value, uint64_t mask, const hlo_binding *chain,
                           hlo_instr *scale, unsigned *steps) {
    bool whole;
    while ((*steps)++ < STEP_LIMIT) {
        if (chain && value == chain->inner) {
            value = scale;
            chain = NULL;
        }
        if (!hlo_shape_is_array(value->shape) || value->shape->rank > RANK_LIMIT) return false;
        if (hlo_shape_count(value->shape) < 1) return false;
        if (!(mask = proper(value->shape, mask))) return true;
        switch (value->op) {
        case HLO_OP_BROADCAST: mask = below_broadcast(value, mask); break;
        case HLO_OP_TRANSPOSE: mask = below_transpose(value, mask); break;
        case HLO_OP_COPY:
        case HLO_OP_CONVERT:
        case HLO_OP_SLICE:
        case HLO_OP_DYNAMIC_SLICE:
        case HLO_OP_REVERSE: break;
        case HLO_OP_RESHAPE:
        case HLO_OP_BITCAST:
            if (!is_reshape(value)) return false;
            mask = below_reshape(value->shape, hlo_instr_operand(value, 0)->shape, mask, &whole);
            break;
        case HLO_OP_CONSTANT: return !chain && hlo_literal_is_splat(value->u.literal);
        default:
            if (chain || !(hlo_ops[value->op].flags & HLO_ELEMENTWISE) || !value->operand_count)
                return false;
            for (uint32_t i = 0; i < value->operand_count; i++) {
                hlo_instr *operand = hlo_instr_operand(value, i);
                if (!constant_along(operand, operand->shape->rank ? mask : 0, NULL, NULL, steps))
                    return false;
            }
            return true;
        }
        value = hlo_instr_operand(value, 0);
    }
    return false;
}

/* Links on which a scale can be made as well as the values that it scales. */
static bool links_move(const hlo_binding *chain) {
    for (const hlo_instr *l = chain->instr; l != chain->inner; l = hlo_instr_operand(l, 0))
        switch (l->op) {
        case HLO_OP_BROADCAST:
        case HLO_OP_CONVERT:
        case HLO_OP_COPY:
        case HLO_OP_DYNAMIC_SLICE:
        case HLO_OP_RESHAPE:
        case HLO_OP_REVERSE:
        case HLO_OP_SLICE:
        case HLO_OP_TRANSPOSE: break;
        case HLO_OP_BITCAST:
            if (is_reshape(l)) break;
            return false;
        default: return false;
        }
    return true;
}

bool hlo_rows_constant(const hlo_instr *dot, unsigned side, const hlo_binding *chain,
                       hlo_instr *scale) {
    unsigned steps = 0;
    return links_move(chain) && chain->instr->shape->rank <= RANK_LIMIT &&
           constant_along(chain->instr, mask_of(contracting(dot, side)), chain, scale, &steps);
}

/* ------------------------------------------------------------------------------------- projection
 */

/* The dimensions that the mask leaves: their extents, and where each of the old ones is now. */
typedef struct rest {
    uint32_t rank;
    int64_t dims[HLO_RULE_ARGS], place[HLO_RULE_ARGS];
} rest;

static rest without(const hlo_shape *shape, uint64_t mask) {
    rest r = {0};
    for (uint32_t i = 0; i < shape->rank; i++) {
        r.place[i] = r.rank;
        if (!(mask & bit(i))) r.dims[r.rank++] = shape->dims[i];
    }
    return r;
}

static hlo_instr *drop(hlo_rule_env *env, hlo_instr *value, uint64_t mask);

static const hlo_shape *rest_shape(hlo_rule_env *env, const hlo_instr *value, const rest *r) {
    return hlo_shape_array(env->context->module, value->shape->type, r->rank, r->dims);
}

/* `opcode` of `from` with that shape and those dimensions, or `from` if that changes nothing. */
static hlo_instr *make(hlo_rule_env *env, hlo_op op, const hlo_shape *shape, hlo_instr *from,
                       uint32_t count, const int64_t *dims) {
    bool same = hlo_shape_compatible(shape, from->shape);
    for (uint32_t i = 0; i < count; i++) same &= dims[i] == i;
    if (same) return from;
    hlo_instr *made = hlo_rule_new(env, op, shape, 1, &from);
    if (made && op != HLO_OP_RESHAPE) hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, count, dims);
    return made;
}

static hlo_instr *drop_dims(hlo_rule_env *env, const hlo_instr *value, uint64_t mask) {
    hlo_instr *from = hlo_instr_operand(value, 0);
    bool broadcast = value->op == HLO_OP_BROADCAST;
    uint64_t below = broadcast ? below_broadcast(value, mask) : below_transpose(value, mask);
    const hlo_ints *dims = hlo_instr_ints(value, HLO_ATTR_DIMENSIONS);
    rest kept = without(value->shape, mask), source = without(from->shape, below);
    int64_t order[HLO_RULE_ARGS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < dims->count; i++) {
        if (broadcast && !(below & bit(i))) order[count++] = kept.place[dims->v[i]];
        if (!broadcast && !(mask & bit(i))) order[count++] = source.place[dims->v[i]];
    }
    from = drop(env, from, below);
    return from ? make(env, value->op, rest_shape(env, value, &kept), from, count, order) : NULL;
}

/* The first element along the dimensions of the mask. */
static hlo_instr *first_of(hlo_rule_env *env, hlo_instr *value, uint64_t mask) {
    const hlo_shape *shape = value->shape;
    int64_t dims[HLO_RULE_ARGS], slices[3 * HLO_RULE_ARGS];
    for (uint32_t i = 0; i < shape->rank; i++) {
        dims[i] = mask & bit(i) ? 1 : shape->dims[i];
        slices[3 * i] = 0;
        slices[3 * i + 1] = dims[i];
        slices[3 * i + 2] = 1;
    }
    const hlo_shape *one = hlo_shape_array(env->context->module, shape->type, shape->rank, dims);
    if (hlo_shape_same_dims(one, shape)) return value;
    hlo_instr *slice = hlo_rule_new(env, HLO_OP_SLICE, one, 1, &value);
    if (slice) hlo_instr_set_ints(slice, HLO_ATTR_SLICE, 3 * shape->rank, slices);
    return slice;
}

/* `value`, which is constant along the dimensions of the mask, without them. */
static hlo_instr *drop(hlo_rule_env *env, hlo_instr *value, uint64_t mask) {
    if (!value || !mask) return value;
    if (value->shape->rank > HLO_RULE_ARGS) return NULL;
    if (value->op == HLO_OP_BROADCAST || value->op == HLO_OP_TRANSPOSE)
        return drop_dims(env, value, mask);
    rest kept = without(value->shape, mask);
    const hlo_shape *shape = rest_shape(env, value, &kept);
    bool whole;
    if (value->op == HLO_OP_RESHAPE) {
        hlo_instr *from = hlo_instr_operand(value, 0);
        uint64_t below = below_reshape(value->shape, from->shape, mask, &whole);
        if (whole) {
            from = drop(env, from, below);
            return from ? make(env, HLO_OP_RESHAPE, shape, from, 0, NULL) : NULL;
        }
    }
    value = first_of(env, value, mask);
    return value ? make(env, HLO_OP_RESHAPE, shape, value, 0, NULL) : NULL;
}

hlo_instr *hlo_rows_beside(hlo_rule_env *env, const hlo_instr *dot, unsigned side,
                           hlo_instr *scale) {
    const hlo_ints *batches = batch(dot, side), *summed = contracting(dot, side);
    const hlo_shape *shape = scale->shape;
    if (shape->rank > HLO_RULE_ARGS || dot->shape->rank > HLO_RULE_ARGS) return NULL;
    int64_t order[HLO_RULE_ARGS];
    uint32_t count = 0, other = hlo_instr_operand(dot, 0)->shape->rank;
    int64_t next = side ? (int64_t)(other - contracting(dot, 0)->count) : (int64_t)batches->count;
    for (int64_t d = 0; d < (int64_t)shape->rank; d++) {
        if (hlo_ints_contain(summed, d)) continue;
        order[count] = -1;
        for (uint32_t i = 0; i < batches->count; i++)
            if (batches->v[i] == d) order[count] = i;
        if (order[count] < 0) order[count] = next++;
        if (count && order[count] < order[count - 1]) return NULL;
        count++;
    }
    hlo_module *module = env->context->module;
    hlo_instr *value = drop(env, scale, mask_of(summed));
    if (value && value->shape->type != HLO_TYPE_F32) {
        const hlo_shape *f32 = hlo_shape_retype(module, value->shape, HLO_TYPE_F32);
        value = hlo_rule_new(env, HLO_OP_CONVERT, f32, 1, &value);
    }
    if (!value) return NULL;
    const hlo_shape *result =
        hlo_shape_array(module, HLO_TYPE_F32, dot->shape->rank, dot->shape->dims);
    value = make(env, HLO_OP_BROADCAST, result, value, count, order);
    if (!scale->use_count && scale != value) hlo_engine_bury(env->engine, scale);
    return value;
}
