/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the functions that send scales through collectives, and quantize values before
 * collectives. */
#include "passes/builders/granularity.h"
#include "passes/builders/move_chain.h"
#include "passes/rules/library.h"
#include "passes/sharding/devices.h"

/* Minimum number of values per scale: with fewer, f32 scales cost more bytes than fp8 saves. */
enum { LEAST_VALUES = 8 };

typedef struct path {
    const hlo_instruction
        *links[HLO_CHAIN_LIMIT]; /* links from the collective's operand to the scale */
    hlo_granularity granularity[HLO_CHAIN_LIMIT + 1]; /* of each link and of the scale */
    uint32_t length;
} path;

/* True if the scale has `granularity[0]` after the movement by the links. */
static bool holds(path *p, hlo_instruction *scale) {
    for (uint32_t i = 0; i < p->length; i++)
        if (!hlo_granularity_of_operand(p->links[i], &p->granularity[i], &p->granularity[i + 1]))
            return false;
    return hlo_granularity_holds(scale, &p->granularity[p->length]);
}

/* Finds the granularity of the scale along each dimension: the whole dimension, BLOCK or 1; always
 * 1 along `fixed`. */
static bool coarsen(path *p, const hlo_shape *shape, int64_t fixed, hlo_instruction *scale) {
    enum { BLOCK = 128 };
    for (uint32_t i = 0; i < shape->rank; i++) p->granularity[0].v[i] = 1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (i == fixed) continue;
        p->granularity[0].v[i] = shape->dims[i];
        if (holds(p, scale)) continue;
        p->granularity[0].v[i] = BLOCK < shape->dims[i] ? BLOCK : 1;
        if (!holds(p, scale)) p->granularity[0].v[i] = 1;
    }
    return holds(p, scale);
}

/* Returns the synchronous opcode for an asynchronous start. */
static hlo_op op_at_once(hlo_op op) {
    if (op == HLO_OP_ALL_GATHER_START) return HLO_OP_ALL_GATHER;
    return op == HLO_OP_COLLECTIVE_PERMUTE_START ? HLO_OP_COLLECTIVE_PERMUTE : op;
}

/* Clones the collective onto a compact scale without its dimensions of size 1, and restores these
 * dimensions in the result. `along` is the dimension along which devices differ, or -1. */
static hlo_instruction *send(hlo_rule_env *env, const hlo_instruction *collective,
                             const hlo_shape *all, const hlo_shape *each, int64_t along,
                             hlo_instruction *packed) {
    hlo_module *module = env->context->module;
    int64_t kept[HLO_RULE_ARGS], grown[HLO_RULE_ARGS], whole[HLO_RULE_ARGS], place = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->rank; i++) {
        whole[i] = i == along ? all->dims[i] / each->dims[i] * packed->shape->dims[i]
                              : packed->shape->dims[i];
        if (packed->shape->dims[i] == 1 && i != along) continue;
        if (i == along) place = count;
        kept[count] = packed->shape->dims[i];
        grown[count++] = whole[i];
    }
    packed = hlo_build_reshape(env->build, packed, count, kept);
    if (!packed) return NULL;
    const hlo_shape *shape = hlo_shape_array(module, packed->shape->type, count, grown);
    hlo_instruction *sent = hlo_build(env->build, op_at_once(collective->op), shape, 1, &packed);
    if (!sent) return NULL;
    hlo_instr_drop_attr(sent, HLO_ATTR_METADATA);
    hlo_instr_copy_attrs(sent, collective);
    hlo_instr_drop_attr(sent, HLO_ATTR_SHARDING); /* the sharding describes the values, which have
                                                   * more dimensions than the scale */
    if (along >= 0) hlo_instr_set_ints(sent, HLO_ATTR_DIMENSIONS, 1, &place);
    if (hlo_instr_attr(collective, HLO_ATTR_CHANNEL_ID))
        hlo_instr_set_int(sent, HLO_ATTR_CHANNEL_ID, hlo_devices_free_channel(module));
    return hlo_build_reshape(env->build, sent, all->rank, whole);
}

/* Builds the factor with the dimensions of the collective's result. A separate collective sends the
 * compact form of the scale, unless that is too large. A scale is not sent if it is proved to be
 * replicated and does not vary along the dimension that grows. */
MAKE(sent_scale) {
    const hlo_instruction *collective = args[0].instr;
    const hlo_binding *chain = args + 1;
    hlo_instruction *scale = args[2].instr;
    const hlo_shape *each = chain->instr->shape, *all = collective->shape;
    const hlo_instruction *sender = hlo_devices_sender(collective);
    const hlo_ints *dims = hlo_instr_ints(sender, HLO_ATTR_DIMENSIONS);
    bool moves_anywhere = op_at_once(sender->op) == HLO_OP_COLLECTIVE_PERMUTE;
    int64_t along = moves_anywhere ? -1 : dims->count == 1 ? dims->v[0] : -2;
    path p = {.length = 0};
    if (!hlo_op_is(sender->op, HLO_COLLECTIVE) || along < -1 || each->rank > HLO_RULE_ARGS ||
        each->rank != all->rank || !hlo_shape_count(each))
        return false;
    for (const hlo_instruction *l = chain->instr; l != chain->inner; l = hlo_instr_operand(l, 0))
        p.links[p.length++] = l;
    /* The scale and the indices that move it must be replicated. */
    bool agree = hlo_devices_replicated(env->context, scale, collective);
    for (uint32_t i = 0; i < p.length; i++)
        for (uint32_t o = 1; agree && o < p.links[i]->operand_count; o++)
            agree =
                hlo_devices_replicated(env->context, hlo_instr_operand(p.links[i], o), collective);
    agree = agree && coarsen(&p, each, -1, scale) &&
            (along < 0 || p.granularity[0].v[along] >= each->dims[along]);
    if (!agree && !coarsen(&p, each, along, scale)) return false;
    hlo_instruction *packed = hlo_granularity_compact(env, scale, &p.granularity[p.length]);
    for (uint32_t i = p.length; packed && i-- > 0;)
        if (p.links[i]->op != HLO_OP_CONVERT)
            packed = hlo_granularity_carry(env, p.links[i], &p.granularity[i], packed);
    if (!packed || hlo_shape_count(packed->shape) > hlo_shape_count(each) / LEAST_VALUES)
        return false;
    if (!agree) packed = send(env, sender, all, each, along, packed);
    hlo_granularity granularity = p.granularity[0];
    if (agree && along >= 0) granularity.v[along] = all->dims[along];
    *out = packed ? hlo_granularity_expand(env, packed, all, &granularity) : NULL;
    return *out != NULL;
}

/* Returns the number of the operand that the other operands scale or clamp, if these are splats; -1
 * if there is no such operand. */
static int scaled_operand(const hlo_instruction *instr) {
    int found = -1;
    if (instr->pin) return -1;
    switch (instr->op) {
    case HLO_OP_CONVERT: return hlo_type_is_float(instr->shape->type) ? 0 : -1;
    case HLO_OP_CLAMP:
    case HLO_OP_DIVIDE:
    case HLO_OP_MAXIMUM:
    case HLO_OP_MINIMUM:
    case HLO_OP_MULTIPLY: break;
    default: return -1;
    }
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        if (hlo_splat_source(hlo_instr_operand(instr, i))) continue;
        if (found >= 0) return -1;
        found = (int)i;
    }
    bool quotient = instr->op == HLO_OP_DIVIDE && found != 0;
    return quotient || (instr->op == HLO_OP_CLAMP && found != 1) ? -1 : found;
}

enum { STEP_LIMIT = 8 };

/* Returns the collective of wide values whose result `convert` converts to fp8, after scaling by
 * scalars and clamping; each of these values has one user. Returns NULL if not found. */
static hlo_instruction *quantized_collective(const hlo_instruction *convert) {
    const hlo_instruction *v = convert;
    for (unsigned step = 0; step < STEP_LIMIT; step++) {
        int which = scaled_operand(v);
        if (which < 0) return NULL;
        v = hlo_instr_operand(v, (uint32_t)which);
        if (hlo_instr_user_count(v) != 1 || !hlo_shape_is_array(v->shape) || v->pin) return NULL;
        if (v->op == HLO_OP_ALL_GATHER || v->op == HLO_OP_ALL_TO_ALL)
            return v->operand_count == 1 && hlo_types[v->shape->type].bits > 8
                       ? (hlo_instruction *)v
                       : NULL;
    }
    return NULL;
}

/* Quantizes the operand of the collective. Returns NULL if a scalar may differ between devices. */
static hlo_instruction *quantize(hlo_rule_env *env, const hlo_instruction *like,
                                 hlo_instruction *collective) {
    if (like == collective) return hlo_instr_operand(collective, 0);
    hlo_instruction *operands[HLO_RULE_ARGS];
    uint32_t which = (uint32_t)scaled_operand(like);
    hlo_instruction *value = quantize(env, hlo_instr_operand(like, which), collective);
    if (!value) return NULL;
    for (uint32_t i = 0; i < like->operand_count; i++) {
        hlo_instruction *number = i == which ? NULL : hlo_splat_source(hlo_instr_operand(like, i));
        if (number && !hlo_devices_replicated(env->context, number, collective)) return NULL;
        operands[i] = number ? hlo_build_splat(env->build, number, value->shape) : value;
        if (!operands[i]) return NULL;
    }
    const hlo_shape *shape =
        hlo_shape_retype(env->context->module, value->shape, like->shape->type);
    return hlo_build(env->build, like->op, shape, like->operand_count, operands);
}

MAKE(sent_quantized) {
    hlo_instruction *collective = quantized_collective(args->instr);
    hlo_instruction *value = collective ? quantize(env, args->instr, collective) : NULL;
    return value && (*out = hlo_link_clone_onto(env, collective, value));
}

MEASURE(wide_collectives) {
    if (value->op == HLO_OP_CONVERT) return quantized_collective(value) != NULL;
    bool sends = hlo_op_is(value->op, HLO_COLLECTIVE) || value->op == HLO_OP_ASYNC_DONE;
    if (!sends || hlo_types[value->shape->type].bits <= 8) return 0;
    const hlo_instruction *v = value;
    while (hlo_op_async_pair(HLO_OP_INVALID, v->op) && v->operand_count)
        v = hlo_instr_operand(v, 0);
    v = v->operand_count ? hlo_instr_operand(v, 0) : v;
    while (hlo_chain_link(v)) v = hlo_instr_operand(v, 0);
    return 1 + hlo_op_is(v->op, HLO_JOINS);
}
