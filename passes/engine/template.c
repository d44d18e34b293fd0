/* Templates to instructions. */
#include "ir/infer/infer.h"
#include "passes/engine/rewrite.h"

hlo_instr *hlo_rule_build(hlo_rule_env *env, uint32_t term);

hlo_instr *hlo_rule_build_slot(hlo_rule_env *env, int16_t index) {
    hlo_binding *slot = &env->slots[index];
    if (slot->kind == HLO_BOUND_TERM) {
        uint32_t term = slot->term;
        slot->kind = HLO_BOUND_NOT;
        hlo_instr *value = hlo_rule_build(env, term);
        *slot = (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
    }
    return slot->kind == HLO_BOUND_VALUE || slot->kind == HLO_BOUND_CHAIN ? slot->instr : NULL;
}

static const hlo_shape *slot_shape(hlo_rule_env *env, uint16_t slot) {
    hlo_instr *value = hlo_rule_build_slot(env, (int16_t)slot);
    return value ? value->shape : NULL;
}

static void set_attrs(hlo_rule_env *env, const hlo_rule_term *t, hlo_instr *instr) {
    for (uint32_t i = 0; i < t->attr_count; i++) {
        const hlo_rule_attr *a = &env->rules->attrs[t->first_attr + i];
        switch ((hlo_rule_attr_kind)a->kind) {
        case HLO_RULE_INT: hlo_instr_set_int(instr, a->id, a->number); break;
        case HLO_RULE_WORD: hlo_instr_set_str(instr, a->id, a->word); break;
        case HLO_RULE_INTS:
            hlo_instr_set_ints(instr, a->id, a->int_count, env->rules->ints + a->first_int);
            break;
        case HLO_RULE_SLOT:
            if (env->slots[a->slot].attr) {
                hlo_attr attr = *env->slots[a->slot].attr;
                attr.id = a->id;
                hlo_instr_set_attr(instr, attr);
            }
            break;
        case HLO_RULE_FROM: {
            const hlo_instr *from = env->slots[a->slot].instr;
            if (from) hlo_instr_copy_attrs(instr, from);
            break;
        }
        }
    }
}

static hlo_instr *build_op(hlo_rule_env *env, const hlo_rule_term *t) {
    hlo_instr *operands[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < t->arg_count; i++) {
        operands[i] = hlo_rule_build(env, env->rules->args[t->first_arg + i]);
        if (!operands[i]) return hlo_rule_refuse(env, NULL, NULL), NULL;
    }
    hlo_module *module = env->context->module;
    const bool is_like = t->shape_kind == HLO_SHAPE_LIKE;
    const hlo_shape *like = is_like ? slot_shape(env, t->shape_code) : NULL;
    if (is_like && !like) return hlo_rule_refuse(env, NULL, NULL), NULL;
    hlo_instr *instr =
        hlo_build(env->build, t->code, like ? like : operands[0]->shape, t->arg_count, operands);
    if (!instr) return NULL;
    set_attrs(env, t, instr);
    if (like) return instr;
    const hlo_shape *shape = hlo_infer(module, t->code, t->arg_count, operands, instr->attr_count,
                                       instr->attrs, NULL, 0);
    if (t->shape_kind == HLO_SHAPE_TYPE) {
        const hlo_shape *dims = shape ? shape : operands[0]->shape;
        shape = hlo_shape_is_array(dims) ? hlo_shape_retype(module, dims, t->shape_code) : NULL;
    }
    if (!shape) return hlo_rule_refuse(env, NULL, NULL), NULL;
    if (!hlo_rule_shape_fits(env, shape)) return NULL;
    instr->shape = shape;
    return instr;
}

static hlo_instr *build_constant(hlo_rule_env *env, const hlo_rule_term *t) {
    const hlo_shape *shape = slot_shape(env, t->shape_code);
    if (!shape || !(hlo_type_is_float(shape->type) || hlo_type_is_integer(shape->type)))
        return hlo_rule_refuse(env, NULL, NULL), NULL;
    return hlo_build_filled(env->build, shape, t->number);
}

static hlo_instr *build_function(hlo_rule_env *env, const hlo_rule_term *t) {
    hlo_binding args[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < t->arg_count; i++) {
        uint32_t index = env->rules->args[t->first_arg + i];
        const hlo_rule_term *arg = hlo_rule_term_at(env, index);
        if (arg->kind == HLO_TERM_VAR) hlo_rule_build_slot(env, arg->slot);
        if (arg->kind == HLO_TERM_OP || arg->kind == HLO_TERM_FUNCTION ||
            arg->kind == HLO_TERM_CONSTANT || arg->kind == HLO_TERM_SPLAT ||
            arg->kind == HLO_TERM_RESULT) {
            hlo_instr *value = hlo_rule_build(env, index);
            args[i] =
                (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
        } else {
            args[i] = hlo_rule_argument(env, arg);
        }
        if (env->unbuildable) return NULL;
    }
    hlo_instr *out = NULL;
    if (!hlo_rule_fits(env, t->code, args, t->arg_count) ||
        !env->context->library->functions[t->code].make(env, args, t->arg_count, &out)) {
        env->unbuildable = true;
        return NULL;
    }
    return out;
}

hlo_instr *hlo_rule_build(hlo_rule_env *env, uint32_t term) {
    const hlo_rule_term *t = hlo_rule_term_at(env, term);
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_VAR: return hlo_rule_build_slot(env, t->slot);
    case HLO_TERM_RESULT: {
        hlo_instr *call = hlo_rule_build_slot(env, t->slot);
        int index = call ? hlo_rule_result_index(call, t->code) : -1;
        return index < 0 ? NULL : hlo_matmul_result(call, index);
    }
    case HLO_TERM_OP: return build_op(env, t);
    case HLO_TERM_CONSTANT: return build_constant(env, t);
    case HLO_TERM_SPLAT: {
        hlo_instr *value = hlo_rule_build(env, env->rules->args[t->first_arg]);
        const hlo_shape *shape = slot_shape(env, t->shape_code);
        value = shape ? hlo_build_splat(env->build, value, shape) : NULL;
        if (!value) hlo_rule_refuse(env, NULL, NULL);
        return value;
    }
    case HLO_TERM_FUNCTION: return build_function(env, t);
    default: return NULL;
    }
}
