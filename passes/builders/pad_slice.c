/* See pad_slice.h. */
#include "passes/builders/pad_slice.h"

#include "ir/module/known.h"

int64_t hlo_size_aligned(int64_t size, int64_t to) {
    return (size + to - 1) / to * to;
}

bool hlo_pad_zeros(hlo_rule_env *env, hlo_instr *value, const int64_t *dims, hlo_instr **out) {
    hlo_module *module = env->context->module;
    const hlo_shape *old = value->shape;
    int64_t padding[3 * HLO_RULE_ARGS] = {0};
    bool same = true;
    for (uint32_t i = 0; i < old->rank; i++) {
        padding[3 * i + 1] = dims[i] - old->dims[i];
        same &= dims[i] == old->dims[i];
    }
    *out = value;
    if (same) return true;
    const double least = old->type == HLO_TYPE_F8E8M0FNU ? 0x1p-127 : 0;
    hlo_instr *operands[] = {value, hlo_rule_number(env, old->type, least)};
    const hlo_shape *shape = hlo_shape_with_layout(
        module, old->type, old->rank, dims, old->layout ? old->layout->minor_to_major : NULL);
    *out = hlo_rule_new(env, HLO_OP_PAD, shape, 2, operands);
    if (*out) hlo_instr_set_ints(*out, HLO_ATTR_PADDING, 3 * old->rank, padding);
    return *out != NULL;
}

static const hlo_shape *with_size(hlo_rule_env *env, const hlo_shape *shape, uint32_t dim,
                                  int64_t size) {
    int64_t dims[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < shape->rank; i++) dims[i] = i == dim ? size : shape->dims[i];
    return hlo_shape_with_layout(env->context->module, shape->type, shape->rank, dims,
                                 shape->layout ? shape->layout->minor_to_major : NULL);
}

/* Concatenates copies of the value along `dim`, up to the size. */
static hlo_instr *repeated(hlo_rule_env *env, hlo_instr *value, uint32_t dim, int64_t size) {
    hlo_instr *parts[HLO_MATMUL_ALIGNMENT], *rest = value;
    int64_t each = value->shape->dims[dim], d = dim;
    if (size == each) return value;
    int64_t count = (size + each - 1) / each;
    if (size % each &&
        !hlo_slice_prefix(env, value, with_size(env, value->shape, dim, size % each), &rest))
        return NULL;
    for (int64_t i = 0; i < count; i++) parts[i] = i + 1 < count ? value : rest;
    const hlo_shape *shape = with_size(env, value->shape, dim, size);
    hlo_instr *made = hlo_rule_new(env, HLO_OP_CONCATENATE, shape, (uint32_t)count, parts);
    if (made) hlo_instr_set_ints(made, HLO_ATTR_DIMENSIONS, 1, &d);
    return made;
}

bool hlo_pad_repeating(hlo_rule_env *env, hlo_instr *value, const hlo_ints *batch,
                       const hlo_ints *zeros, hlo_instr **out) {
    const hlo_shape *old = value->shape;
    int64_t dims[HLO_RULE_ARGS];
    if (old->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < old->rank; i++) {
        bool padded = zeros && hlo_ints_contain(zeros, i);
        dims[i] = padded ? hlo_size_aligned(old->dims[i], HLO_MATMUL_ALIGNMENT) : old->dims[i];
    }
    if (!hlo_pad_zeros(env, value, dims, out)) return false;
    for (uint32_t i = 0; *out && i < old->rank; i++)
        if (!(batch && hlo_ints_contain(batch, i)))
            *out = repeated(env, *out, i,
                            hlo_size_aligned((*out)->shape->dims[i], HLO_MATMUL_ALIGNMENT));
    return *out != NULL;
}

bool hlo_join_batch(hlo_rule_env *env, hlo_instr *value, uint32_t batch, hlo_instr **out) {
    *out = value;
    if (!value) return true;
    const hlo_shape *old = value->shape;
    uint32_t rank = old->rank - batch + 1;
    int64_t dims[HLO_RULE_ARGS] = {1}, order[HLO_RULE_ARGS] = {0};
    if (old->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < batch; i++) dims[0] *= old->dims[i];
    for (uint32_t i = 1; i < rank; i++) {
        dims[i] = old->dims[batch - 1 + i];
        if (old->layout) order[i - 1] = old->layout->minor_to_major[i - 1] - batch + 1;
    }
    order[rank - 1] = 0;
    const hlo_shape *shape = hlo_shape_with_layout(env->context->module, old->type, rank, dims,
                                                   old->layout ? order : NULL);
    *out = hlo_rule_new(env, HLO_OP_RESHAPE, shape, 1, &value);
    return *out != NULL;
}

bool hlo_slice_prefix(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape,
                      hlo_instr **out) {
    int64_t slices[3 * HLO_RULE_ARGS];
    if (shape->rank > HLO_RULE_ARGS || shape->rank != value->shape->rank) return false;
    for (uint32_t i = 0; i < shape->rank; i++) {
        slices[3 * i] = 0;
        slices[3 * i + 1] = shape->dims[i];
        slices[3 * i + 2] = 1;
    }
    *out = value;
    if (hlo_shape_same_dims(value->shape, shape)) return true;
    *out = hlo_rule_new(env, HLO_OP_SLICE, shape, 1, &value);
    if (*out) hlo_instr_set_ints(*out, HLO_ATTR_SLICE, 3 * shape->rank, slices);
    return *out != NULL;
}

static bool reshape_to(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape,
                       hlo_instr **out) {
    *out = hlo_shape_same_dims(value->shape, shape)
               ? value
               : hlo_rule_new(env, HLO_OP_RESHAPE, shape, 1, &value);
    return *out != NULL;
}

bool hlo_to_shape(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape, hlo_instr **out) {
    int64_t have = hlo_shape_count(value->shape), want = hlo_shape_count(shape);
    if (have == want) return reshape_to(env, value, shape, out);
    if (shape->rank > HLO_RULE_ARGS || shape->rank != value->shape->rank) return false;
    return have > want ? hlo_slice_prefix(env, value, shape, out)
                       : hlo_pad_zeros(env, value, shape->dims, out);
}

bool hlo_apply_view(hlo_rule_env *env, hlo_instr *value, const hlo_instr *view,
                    const hlo_shape *shape, hlo_instr **out) {
    const hlo_shape *part = shape;
    if (!hlo_shape_same_dims(shape, view->shape))
        part = hlo_shape_retype(env->context->module, view->shape, shape->type);
    if (hlo_instr_is_mark(view)) {
        if (!hlo_apply_view(env, value, hlo_instr_operand(view, 0), part, &value)) return false;
        *out = hlo_rule_clone(env, view, value->shape, &value);
        return *out && reshape_to(env, *out, shape, out);
    }
    if (view->op != HLO_OP_SLICE) return hlo_to_shape(env, value, shape, out);
    const hlo_ints *slices = hlo_instr_ints(view, HLO_ATTR_SLICE);
    *out = hlo_rule_new(env, HLO_OP_SLICE, part, 1, &value);
    if (!*out) return false;
    hlo_instr_set_ints(*out, HLO_ATTR_SLICE, slices->count, slices->v);
    return part == shape || reshape_to(env, *out, shape, out);
}
