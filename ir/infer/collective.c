/* SPDX-License-Identifier: Apache-2.0 */
/* The shape rules of operations across devices, and the checks of their device groups. */
#include <stdlib.h>

#include "ir/device_list.h"
#include "ir/infer/rules.h"

const hlo_shape *hlo_infer_DEVICE(const hlo_inference *q) {
    return hlo_shape_array(q->module, HLO_TYPE_U32, 0, NULL);
}

/* Returns the number of devices per group, or 0 if it is determined at run time or differs between
 * groups. Returns -1, with `why` set, if the groups are invalid: for example, if they do not
 * contain each of the devices 0, 1, ... exactly once. */
static int64_t group_size(const hlo_inference *q) {
    const hlo_attr *attr = hlo_infer_attr(q, HLO_ATTR_REPLICA_GROUPS);
    if (hlo_infer_int(q, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0) &&
        hlo_infer_int(q, HLO_ATTR_CHANNEL_ID, 0) <= 0) {
        hlo_infer_fail(q, "use_global_device_ids requires a channel_id");
        return -1;
    }
    if (!attr) return 0;
    const hlo_groups *groups = attr->u.groups;
    const char *value = groups->parsed.text;
    int64_t all;
    if (groups->size < 0 && !(q->op == HLO_OP_ALL_REDUCE || q->op == HLO_OP_ALL_REDUCE_START)) {
        hlo_infer_fail(q, "the groups of %s have different sizes", value);
    } else if (groups->empty) {
        hlo_infer_fail(q, "%s has an empty group", value);
    } else if (groups->misfit) {
        bool known = groups->odd >= 0 && groups->odd < groups->devices;
        hlo_infer_fail(q, "device %lld is %s in %s", (long long)groups->odd,
                       known ? "repeated" : "out of range", value);
    } else if (groups->sizes) {
        return groups->size < 0 ? 0 : groups->size;
    } else if (groups->count < 1 || groups->size < 1 ||
               __builtin_mul_overflow(groups->count, groups->size, &all) ||
               all != groups->devices) {
        hlo_infer_fail(q, "%lld groups of %lld devices do not cover the %lld devices of %s",
                       (long long)groups->count, (long long)groups->size,
                       (long long)groups->devices, value);
    } else {
        return groups->size;
    }
    return -1;
}

/* Checks that no device is the source or the target of two pairs. */
static bool check_pairs(const hlo_inference *q) {
    const hlo_groups *pairs = hlo_infer_attr(q, HLO_ATTR_SOURCE_TARGET_PAIRS)->u.groups;
    const int64_t count = pairs->count;
    int64_t *end = hlo_infer_scratch(q, (size_t)count, sizeof *end);
    for (int which = 0; which < 2; which++) {
        for (int64_t i = 0; i < count; i++) end[i] = pairs->mesh.devices.listed->v[2 * i + which];
        qsort(end, (size_t)count, sizeof *end, hlo_compare_ints);
        for (int64_t i = 0; i < count; i++) {
            if (end[i] < 0) return hlo_infer_fail(q, "invalid device %lld", (long long)end[i]);
            if (i && end[i] == end[i - 1])
                return hlo_infer_fail(q, "device %lld is the %s of two pairs in %s",
                                      (long long)end[i], which ? "target" : "source",
                                      pairs->parsed.text);
        }
    }
    return true;
}

static const hlo_shape *each_operand(const hlo_inference *q) {
    return hlo_infer_tuple(q, q->count, hlo_infer_operands(q));
}

/* Checks that the combiner works on scalars, of any type. */
static bool combines(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, q->count)) return false;
    const hlo_computation *comp = hlo_infer_attr(q, HLO_ATTR_TO_APPLY)->u.comp;
    hlo_type type = hlo_infer_operand(q, 0)->type;
    for (uint32_t i = 0; i < comp->parameter_count; i++)
        if (comp->parameters[i] && hlo_shape_is_scalar(comp->parameters[i]->shape))
            type = comp->parameters[i]->shape->type;
    return hlo_infer_combiner(q, 1, &type);
}

const hlo_shape *hlo_infer_ALL_REDUCE(const hlo_inference *q) {
    return combines(q) && group_size(q) >= 0 ? each_operand(q) : NULL;
}

/* Infers a collective-permute. With slice_sizes, the operands are the buffers to read, those to
 * write, and the start indices of both; the result has the shape of the second operand. */
const hlo_shape *hlo_infer_PERMUTE(const hlo_inference *q) {
    if (!check_pairs(q)) return NULL;
    if (!hlo_infer_attr(q, HLO_ATTR_SLICE_SIZE_LISTS)) return each_operand(q);
    if (q->count == 4) return hlo_infer_operand(q, 1);
    return hlo_infer_fail(q, "has %u operands and slice_sizes, expected 4 operands", q->count);
}

/* Infers the tuple (operands, results, elements that the backend adds). With slice_sizes, it begins
 * with the buffers to read and those to write. */
const hlo_shape *hlo_infer_PERMUTE_START(const hlo_inference *q) {
    const hlo_shape *given = hlo_infer_given(q);
    if (!given || !check_pairs(q)) return NULL;
    if (given->type != HLO_TYPE_TUPLE || given->rank < 2)
        return hlo_infer_fail(q, "the result is %s, expected a tuple of operands and results",
                              hlo_infer_text(q, given));
    const bool slices = hlo_infer_attr(q, HLO_ATTR_SLICE_SIZE_LISTS);
    if (slices && q->count != 4)
        return hlo_infer_fail(q, "has %u operands and slice_sizes, expected 4 operands", q->count);
    for (uint32_t i = 0; i < 2; i++) {
        const hlo_shape *wanted = slices ? hlo_infer_operand(q, i) : each_operand(q);
        if (!hlo_infer_fits(given->elements[i], wanted))
            return hlo_infer_fail(q, "element %u of the result is %s, expected %s", i,
                                  hlo_infer_text(q, given->elements[i]), hlo_infer_text(q, wanted));
    }
    return given;
}

/* The operands are the sent array, the receiving array, and four arrays of offsets and sizes. */
const hlo_shape *hlo_infer_RAGGED_ALL_TO_ALL(const hlo_inference *q) {
    if (group_size(q) < 0 || !hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *sent = hlo_infer_operand(q, 0), *received = hlo_infer_operand(q, 1);
    if (sent->type != received->type)
        return hlo_infer_fail_at(q, q->operands[1]->offset, "sends %s, but receives %s",
                                 hlo_types[sent->type].name, hlo_types[received->type].name);
    for (uint32_t i = 2; i < q->count; i++) {
        const hlo_shape *shape = hlo_infer_operand(q, i);
        if (!hlo_type_is_integer(shape->type))
            return hlo_infer_fail_at(q, q->operands[i]->offset,
                                     "operand %u is %s, expected integers", i,
                                     hlo_infer_text(q, shape));
        if (!hlo_infer_fits(shape, hlo_infer_operand(q, 2)))
            return hlo_infer_fail_at(
                q, q->operands[i]->offset, "operands 2 and %u must have the same shape: %s and %s",
                i, hlo_infer_text(q, hlo_infer_operand(q, 2)), hlo_infer_text(q, shape));
    }
    return received;
}

/* Infers the shape of the operands. With has_dynamic_root, the last operand is the sending device
 * of each group. */
const hlo_shape *hlo_infer_DEVICE_BROADCAST(const hlo_inference *q) {
    hlo_inference data = *q;
    if (group_size(q) < 0) return NULL;
    if (!hlo_infer_int(q, HLO_ATTR_HAS_DYNAMIC_ROOT, 0)) return each_operand(q);
    if (q->count < 2) return hlo_infer_fail(q, "has_dynamic_root requires an operand for the root");
    const hlo_instruction *root = q->operands[--data.count];
    if (root->shape->type != HLO_TYPE_S32)
        return hlo_infer_fail_at(q, root->offset, "operand %u, the root, is %s, expected type s32",
                                 data.count, hlo_infer_text(q, root->shape));
    return each_operand(&data);
}

const hlo_shape *hlo_infer_ALL_TO_ALL(const hlo_inference *q) {
    const hlo_attr *dims = hlo_infer_attr(q, HLO_ATTR_DIMENSIONS);
    int64_t group = group_size(q);
    if (group < 0 || !hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    if (dims) {
        if (!hlo_infer_one_dim(q, first)) return NULL;
        int64_t size = first->dims[dims->u.ints->v[0]];
        if (group && size >= 0 && size % group)
            return hlo_infer_fail(q, "dimension size %lld is not divisible by %lld devices",
                                  (long long)size, (long long)group);
        return first;
    }
    if (group && group != q->count)
        return hlo_infer_fail(q, "has %u operands for groups of %lld devices", q->count,
                              (long long)group);
    for (uint32_t i = 1; i < q->count; i++)
        if (!hlo_infer_fits(hlo_infer_operand(q, i), first))
            return hlo_infer_fail(q, "the operands must have the same shape");
    return hlo_infer_TUPLE(q);
}

/* True if `large` is `small` with dimension `along` multiplied by the number of devices per
 * group. */
static bool multiplies(const hlo_shape *small, const hlo_shape *large, int64_t along,
                       int64_t group) {
    if (!hlo_shape_is_array(small) || !hlo_shape_is_array(large) || small->type != large->type ||
        small->rank != large->rank)
        return false;
    for (uint32_t d = 0; d < small->rank; d++) {
        int64_t s = small->dims[d], l = large->dims[d];
        if (d != along || s < 0 || l < 0 || s == 0) {
            if (!hlo_infer_dim_fits(s, l)) return false;
        } else if (l % s || (group > 1 && l / s != group)) {
            return false;
        }
    }
    return true;
}

/* Checks the given result of an all-gather (`grows`) or reduce-scatter. The result cannot be
 * inferred if the groups are determined at run time. */
static const hlo_shape *scaled(const hlo_inference *q, const hlo_shape *result, bool grows) {
    int64_t group = group_size(q), all;
    const int64_t partitions = hlo_module_int(q->module, HLO_ATTR_NUM_PARTITIONS, 1);
    /* With a channel_id, groups contain replicas with all their partitions, unless they contain
     * global device ids. */
    if (group >= 1 && partitions >= 1 && hlo_infer_int(q, HLO_ATTR_CHANNEL_ID, 0) > 0 &&
        !hlo_infer_int(q, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0))
        group = __builtin_mul_overflow(group, partitions, &all) ? 0 : all;
    if (group < 0 || !hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_ints *along = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (along->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    bool many = result->type == HLO_TYPE_TUPLE;
    if (many ? result->rank != q->count : q->count != 1)
        return hlo_infer_fail(q, "the result must have one array per operand, but it is %s",
                              hlo_infer_text(q, result));
    for (uint32_t i = 0; i < q->count; i++) {
        const hlo_shape *from = hlo_infer_operand(q, i);
        const hlo_shape *to = many ? result->elements[i] : result;
        if (!hlo_infer_dims(q, along, from->rank, "dimension")) return NULL;
        if (!multiplies(grows ? from : to, grows ? to : from, along->v[0], group))
            return hlo_infer_fail(q, "%s and %s do not match along dimension %lld",
                                  hlo_infer_text(q, from), hlo_infer_text(q, to),
                                  (long long)along->v[0]);
    }
    return result;
}

/* Infers an all-gather. An all-gather-start has the shape (operands, results). */
const hlo_shape *hlo_infer_ALL_GATHER(const hlo_inference *q) {
    const hlo_shape *given = hlo_infer_given(q);
    if (!given) return NULL;
    if (q->op == HLO_OP_ALL_GATHER) return scaled(q, given, true);
    if (given->type != HLO_TYPE_TUPLE || given->rank < 2 ||
        !hlo_infer_fits(given->elements[0], each_operand(q)))
        return hlo_infer_fail(q, "the result must begin with the operands, but it is %s",
                              hlo_infer_text(q, given));
    return scaled(q, given->elements[1], true) ? given : NULL;
}

const hlo_shape *hlo_infer_REDUCE_SCATTER(const hlo_inference *q) {
    const hlo_shape *given = hlo_infer_given(q);
    return given && combines(q) ? scaled(q, given, false) : NULL;
}
