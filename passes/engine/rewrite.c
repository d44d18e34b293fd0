/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a rule. An application is planned, checked, and then committed. Until the commit,
 * existing instructions do not change: moves are only recorded, and only new instructions use new
 * instructions. If a check fails, the new instructions are removed.
 *
 * All new instructions are inserted at one position, before the first of the replaced instructions.
 * An operand that is after this position (such as a scale defined after the matmul's first user) is
 * moved before it. The move is possible exactly if the operand does not depend on a replaced
 * root. */
#include <string.h>

#include "ir/infer/infer.h"
#include "ir/module/known.h"
#include "ir/module/undo.h"
#include "ir/verify/verify.h"
#include "matmul/product.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/scale_range.h"
#include "passes/engine/worklist.h"

/* MOVE_LIMIT: maximum number of moves of an application. SEARCH_LIMIT: maximum number of
 * instructions that the searches of a phase visit, per instruction of the module. An application
 * that exceeds a limit is rejected without a reason. */
enum { MOVE_LIMIT = 256, SEARCH_LIMIT = 256 };

bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instruction *blocker) {
    env->unbuildable = true;
    if (env->reason != HLO_REASON_COUNT || !reason) return false;
    env->reason = hlo_reason_find(reason);
    env->blocker = blocker;
    return false;
}

/* --------------------------------------------------------------------------------------- places */

typedef struct hlo_rule_move {
    hlo_instruction *instr, *place;
    hlo_instruction
        *after; /* the instruction before the position when the move was planned, or NULL */
} hlo_rule_move;

/* Plans to move `value`, operands first, before env->build->at. If `value` depends on the replaced
 * root or is pinned, sets env->reason and returns false. `users` is the number of values that move
 * after `value`: the values on the path from the value whose move was requested, or 0 for that
 * value itself. */
static bool hoist(hlo_rule_env *env, hlo_instruction *value, uint32_t users) {
    const hlo_instruction *at = env->build->at;
    const hlo_rule_move *move = NULL;
    for (uint32_t i = 0; i < env->move_count && !move; i++)
        if (env->moves[i].instr == value) move = &env->moves[i];
    if (value != at &&
        (hlo_engine_before(env->engine, value, at) ||
         (move && (move->place == at || hlo_engine_before(env->engine, move->place, at)))))
        return true;
    if (value == at || move) return hlo_rule_refuse(env, "depends-on-result", value);
    if (env->move_count + users >= MOVE_LIMIT) return hlo_rule_refuse(env, NULL, NULL);
    if (value->pin)
        return hlo_rule_refuse(env, hlo_reason_name((size_t)hlo_pin_reason(value)), value);
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!hoist(env, hlo_instr_operand(value, i), users + 1)) return false;
    if (env->move_count + users >= MOVE_LIMIT) return hlo_rule_refuse(env, NULL, NULL);
    hlo_arena_grow(env->context->scratch, &env->moves, env->move_count, &env->move_capacity,
                   sizeof *env->moves);
    env->moves[env->move_count++] = (hlo_rule_move){value, env->build->at, env->build->at->prev};
    return true;
}

/* True if arrays of the shape have fewer than 2^63 bytes or unknown sizes. */
static bool shape_fits(hlo_rule_env *env, const hlo_shape *shape) {
    if (!hlo_shape_is_array(shape) || hlo_shape_bytes(shape) >= 0) return true;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0) return true;
    return hlo_rule_refuse(env, "too-large", NULL);
}

/* Implements hlo_builder.admits: rejects shapes that are too large, and plans operand moves. */
static bool admits(hlo_builder *b, const hlo_shape *shape, uint32_t count,
                   hlo_instruction *const *operands) {
    hlo_rule_env *env = (hlo_rule_env *)b; /* the builder is the first member of the struct */
    if (!shape_fits(env, shape)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (!hoist(env, operands[i], 0)) return false;
    return true;
}

/* Rejects the application if `value` depends on `from`, which is in the same computation. The
 * search does not continue at instructions before `from`. */
static bool check_independent(hlo_rule_env *env, hlo_instruction *value,
                              const hlo_instruction *from) {
    hlo_engine *e = env->engine;
    const uint32_t ids = env->context->module->next_id;
    if (e->visited_count < ids) {
        e->visited_count = ids + ids / 2;
        e->visited = hlo_arena_zero(env->context->scratch, e->visited_count * sizeof *e->visited);
        e->queue = hlo_arena_array(env->context->scratch, e->visited_count, sizeof *e->queue);
    }
    uint32_t count = 0;
    e->searches++;
    if (!hlo_engine_before(e, value, from)) e->queue[count++] = value;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instruction *at = e->queue[i];
        if (at == from) return hlo_rule_refuse(env, "depends-on-result", value);
        if (e->searched++ / SEARCH_LIMIT >= ids) return hlo_rule_refuse(env, NULL, NULL);
        for (uint32_t o = 0; o < at->operand_count; o++) {
            const hlo_instruction *operand = hlo_instr_operand(at, o);
            if (e->visited[operand->id] == e->searches || hlo_engine_before(e, operand, from))
                continue;
            e->visited[operand->id] = e->searches;
            e->queue[count++] = operand;
        }
    }
    return true;
}

/* ------------------------------------------------------------------------------------ templates */

/* Builds a template. Returns NULL if the value is absent, or after setting env->unbuildable. */
static hlo_instruction *build(hlo_rule_env *env, uint32_t term);

/* Returns the instruction of a slot, built at the first use, or NULL like build(). */
static hlo_instruction *build_slot(hlo_rule_env *env, int16_t index) {
    hlo_binding *slot = &env->slots[index];
    if (slot->kind == HLO_BOUND_TERM) {
        uint32_t term = slot->term;
        slot->kind = HLO_BOUND_NOT;
        hlo_instruction *value = build(env, term);
        *slot = (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
    }
    return slot->kind == HLO_BOUND_VALUE || slot->kind == HLO_BOUND_CHAIN ? slot->instr : NULL;
}

static const hlo_shape *slot_shape(hlo_rule_env *env, uint16_t slot) {
    hlo_instruction *value = build_slot(env, (int16_t)slot);
    return value ? value->shape : NULL;
}

static hlo_instruction *build_op(hlo_rule_env *env, const hlo_rule_term *t) {
    hlo_instruction *operands[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < t->arg_count; i++) {
        operands[i] = build(env, env->rules->args[t->first_arg + i]);
        if (!operands[i]) return hlo_rule_refuse(env, NULL, NULL), NULL;
    }
    hlo_module *module = env->context->module;
    const bool is_like = t->shape_kind == HLO_SHAPE_LIKE;
    const hlo_shape *like = is_like ? slot_shape(env, t->shape_code) : NULL;
    if (is_like && !like) return hlo_rule_refuse(env, NULL, NULL), NULL;
    hlo_instruction *instr =
        hlo_build(env->build, t->code, like ? like : operands[0]->shape, t->arg_count, operands);
    if (!instr) return NULL;
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
            const hlo_instruction *from = env->slots[a->slot].instr;
            if (from) hlo_instr_copy_attrs(instr, from);
            break;
        }
        }
    }
    if (like) return instr;
    const hlo_shape *shape = hlo_infer(module, t->code, t->arg_count, operands, instr->attr_count,
                                       instr->attrs, NULL, 0);
    if (t->shape_kind == HLO_SHAPE_TYPE) {
        const hlo_shape *dims = shape ? shape : operands[0]->shape;
        shape = hlo_shape_is_array(dims) ? hlo_shape_retype(module, dims, t->shape_code) : NULL;
    }
    if (!shape) return hlo_rule_refuse(env, NULL, NULL), NULL;
    if (!shape_fits(env, shape)) return NULL;
    instr->shape = shape;
    return instr;
}

static hlo_instruction *build(hlo_rule_env *env, uint32_t term) {
    const hlo_rule_term *t = hlo_rule_term_at(env, term);
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_VAR: return build_slot(env, t->slot);
    case HLO_TERM_RESULT: {
        hlo_instruction *call = build_slot(env, t->slot);
        int index = call ? hlo_rule_result_index(call, t->code) : -1;
        return index < 0 ? NULL : hlo_matmul_result(call, index);
    }
    case HLO_TERM_OP: return build_op(env, t);
    case HLO_TERM_CONSTANT: {
        const hlo_shape *shape = slot_shape(env, t->shape_code);
        if (!shape || !(hlo_type_is_float(shape->type) || hlo_type_is_integer(shape->type)))
            return hlo_rule_refuse(env, NULL, NULL), NULL;
        return hlo_build_filled(env->build, shape, t->number);
    }
    case HLO_TERM_SPLAT: {
        hlo_instruction *value = build(env, env->rules->args[t->first_arg]);
        const hlo_shape *shape = slot_shape(env, t->shape_code);
        value = shape ? hlo_build_splat(env->build, value, shape) : NULL;
        if (!value) hlo_rule_refuse(env, NULL, NULL);
        return value;
    }
    case HLO_TERM_FUNCTION: {
        hlo_binding args[HLO_RULE_ARGS];
        for (uint32_t i = 0; i < t->arg_count; i++) {
            uint32_t index = env->rules->args[t->first_arg + i];
            const hlo_rule_term *arg = hlo_rule_term_at(env, index);
            if (arg->kind == HLO_TERM_VAR) build_slot(env, arg->slot);
            if (arg->kind == HLO_TERM_OP || arg->kind == HLO_TERM_FUNCTION ||
                arg->kind == HLO_TERM_CONSTANT || arg->kind == HLO_TERM_SPLAT ||
                arg->kind == HLO_TERM_RESULT) {
                hlo_instruction *value = build(env, index);
                args[i] = (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT,
                                        .instr = value};
            } else {
                args[i] = hlo_rule_argument(env, arg);
            }
            if (env->unbuildable) return NULL;
        }
        hlo_instruction *out = NULL;
        if (!hlo_rule_fits(env, t->code, args, t->arg_count) ||
            !env->context->library->functions[t->code].make(env, args, t->arg_count, &out)) {
            env->unbuildable = true;
            return NULL;
        }
        return out;
    }
    default: return NULL;
    }
}

/* ---------------------------------------------------------------------------------------- calls */

typedef enum field_kind { VALUE, NUMBER, MODE, EPILOGUE, FLAG, TYPE, DIMS } field_kind;

typedef struct field_row {
    field_kind kind;
    size_t offset;
} field_row;

static const field_row fields[] = {
#define HLO_FIELD(name, member, kind) {kind, offsetof(hlo_matmul, member)},
#include "matmul/table/field.def"
#undef HLO_FIELD
};

/* Renumbers a list of dimensions after the first `gone + 1` dimensions are collapsed into one.
 * Returns the length of the new list. */
static uint32_t collapse_dims(uint32_t count, const int64_t *list, int64_t gone, int64_t *out) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!list[i] || list[i] > gone) out[kept++] = list[i] ? list[i] - gone : 0;
    return kept;
}

/* Sets a list of dimensions of an operand by a word: `first`, `last` or `joined` for an operand
 * with one contracting and one free dimension, or `beneath` for an operand that is a transpose. */
static bool set_dims(hlo_rule_env *env, const hlo_rule_set *set, const hlo_ints **member,
                     const hlo_matmul *m) {
    const char *word = hlo_rule_term_at(env, set->term)->word;
    uint32_t rank = m->a_batch->count + 2, count = (*member)->count;
    int64_t dims[HLO_RULE_ARGS];
    if (!word || count > HLO_RULE_ARGS) return hlo_rule_refuse(env, NULL, NULL);
    if (strcmp(word, "beneath") == 0) {
        const hlo_instruction *transposed =
            member == &m->a_batch || member == &m->a_contracting ? m->a : m->b;
        bool fits = hlo_op_is(transposed->op, HLO_REORDERS);
        for (uint32_t i = 0; i < count; i++)
            fits &= (*member)->v[i] >= 0 && (*member)->v[i] < transposed->shape->rank;
        if (!fits) return hlo_rule_refuse(env, NULL, NULL);
        *member = hlo_matmul_dims_beneath(transposed, *member);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) dims[i] = strcmp(word, "last") ? i : rank - count + i;
    if (strcmp(word, "joined") == 0)
        count = collapse_dims(count, (*member)->v, (int64_t)m->d->rank - m->a->shape->rank, dims);
    *member = hlo_ints_new(env->context->module, count, dims);
    return true;
}

static bool set_type(hlo_rule_env *env, const char *word, const hlo_shape **shape) {
    hlo_type type = hlo_type_find(word, strlen(word));
    if (type == HLO_TYPE_INVALID || !hlo_types[type].bits || !*shape)
        return hlo_rule_refuse(env, NULL, NULL);
    *shape = hlo_shape_retype(env->context->module, *shape, type);
    return true;
}

static bool set_field(hlo_rule_env *env, const hlo_rule_set *set, hlo_matmul *m,
                      const hlo_instruction *source) {
    const field_row *row = &fields[set->field];
    void *member = (char *)m + row->offset;
    const hlo_rule_term *t = hlo_rule_term_at(env, set->term);
    if (row->kind == EPILOGUE) {
        hlo_epilogue *epilogue = member;
        hlo_epilogue value = t->word ? hlo_epilogue_find(t->word) : HLO_EPILOGUE_COUNT;
        if (set->add && value != HLO_EPILOGUE_COUNT) value = hlo_epilogue_add(*epilogue, value);
        if (value == HLO_EPILOGUE_COUNT) return hlo_rule_refuse(env, "epilogue-taken", NULL);
        *epilogue = value;
        return true;
    }
    if (row->kind == MODE) {
        const hlo_scale_mode mode = t->word ? hlo_scale_mode_find(t->word) : HLO_SCALE_MODE_COUNT;
        if (mode == HLO_SCALE_MODE_COUNT) return hlo_rule_refuse(env, NULL, NULL);
        *(hlo_scale_mode *)member = mode;
        return true;
    }
    if (row->kind == DIMS) return set_dims(env, set, member, m);
    if (row->kind == TYPE && t->kind == HLO_TERM_WORD) return set_type(env, t->word, member);
    if (row->kind == NUMBER && t->kind == HLO_TERM_NUMBER) {
        *(double *)member = t->number;
        return true;
    }
    hlo_instruction *value = build(env, set->term);
    if (env->unbuildable) return false;
    switch (row->kind) {
    case VALUE: {
        if (value && value != *(hlo_instruction **)member) {
            if (!hlo_shape_is_array(value->shape)) return hlo_rule_refuse(env, NULL, NULL);
            if (!check_independent(env, value, source) || !hoist(env, value, 0)) return false;
        }
        *(hlo_instruction **)member = value;
        return true;
    }
    case FLAG: *(bool *)member = value != NULL; return true;
    case TYPE:
        if (!value || !hlo_shape_is_array(value->shape)) break;
        if (!hlo_shape_same_dims(value->shape, m->d)) /* the value is a view of the result */
            return set_type(env, hlo_types[value->shape->type].name, member);
        *(const hlo_shape **)member = value->shape;
        return true;
    case NUMBER:
        if (!value || !hlo_known_number(value, member)) break;
        return true;
    default: break;
    }
    return hlo_rule_refuse(env, NULL, NULL);
}

/* Infers the dimensions of D and of the auxiliary result from those of the operands. Keeps the
 * order of dimensions in memory. */
static void resize_results(hlo_rule_env *env, hlo_matmul *m) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    const hlo_shape *d = m->d;
    uint32_t batch = m->a_batch->count, rank = batch + 2;
    bool joined = batch == 1 && d->rank > rank;
    if (d->rank > HLO_RULE_ARGS || (d->rank != rank && !joined) ||
        (d->rank == rank && d->dims[batch] == size.m && d->dims[batch + 1] == size.n))
        return;
    int64_t dims[HLO_RULE_ARGS], order[HLO_RULE_ARGS];
    memcpy(dims, d->dims, batch * sizeof dims[0]);
    if (joined) dims[0] = size.batch;
    dims[batch] = size.m;
    dims[batch + 1] = size.n;
    const hlo_shape **results[] = {&m->d, &m->aux};
    for (int i = 0; i < 1 + (m->aux != NULL); i++) {
        const hlo_layout *layout = (*results[i])->layout;
        if (layout) collapse_dims(d->rank, layout->minor_to_major, d->rank - rank, order);
        *results[i] = hlo_shape_with_layout(env->context->module, (*results[i])->type, rank, dims,
                                            layout ? order : NULL);
    }
}

/* Builds the fused call of an action. Returns NULL, possibly with a reason, if it is rejected. */
static hlo_instruction *build_call(hlo_rule_env *env, const hlo_rule_action *action) {
    hlo_instruction *source = build_slot(env, action->operand);
    hlo_matmul m, before;
    const char *reason;
    if (!source) return hlo_rule_refuse(env, NULL, NULL), NULL;
    const bool block = hlo_matmul_from_block(source, &m);
    reason = block || source->op == HLO_OP_DOT ? hlo_remark_kept_wide(env->context, source) : NULL;
    if (reason) return hlo_rule_refuse(env, reason, NULL), NULL;
    if (source->op == HLO_OP_DOT)
        hlo_matmul_from_dot(source, &m);
    else if (!block &&
             (!hlo_matmul_is_call(source) || hlo_matmul_decode(source, &m, &reason) != HLO_OK))
        return hlo_rule_refuse(env, NULL, NULL), NULL;
    before = m;
    for (uint32_t i = 0; i < action->set_count; i++)
        if (!set_field(env, &env->rules->sets[action->first_set + i], &m, source)) return NULL;
    env->fault = hlo_matmul_incomplete(&m);
    if (env->fault) return hlo_rule_refuse(env, NULL, NULL), NULL;
    resize_results(env, &m);
    const hlo_pass_context *context = env->context;
    reason = hlo_scales_fit(context->scratch, source, &before, &m)
                 ? hlo_matmul_check(&m, context->target, context->cuda, context->scales)
                 : "scales-out-of-range";
    if (reason) return hlo_rule_refuse(env, reason, NULL), NULL;
    return hlo_matmul_encode(&m, context->target, context->scales, source->parent, env->build->at,
                             source);
}

/* -------------------------------------------------------------------------------------- actions */

typedef struct change {
    hlo_instruction *from, *to; /* `to` replaces `from` */
    bool follow;                /* only transfer the verdict of `from` to `to` */
} change;

typedef struct operand_change {
    hlo_instruction *user, *from, *to;
} operand_change;

/* The changes of an application, which are made only if all of them are possible. */
typedef struct plan {
    change changes[2 * HLO_RULE_ARGS];
    operand_change operands[HLO_RULE_ARGS];
    uint32_t change_count, operand_count;
} plan;

static bool keeps_attr(const hlo_instruction *from, const hlo_instruction *to, hlo_attr_id id) {
    const char *text = hlo_instr_str(from, id), *other = hlo_instr_str(to, id);
    return !text || text == other;
}

static bool add_change(hlo_rule_env *env, plan *p, hlo_instruction *from, hlo_instruction *to) {
    if (!from) return true; /* `from` is an optional root that was not found */
    /* If `to` is an older instruction, it must have the frontend attributes and the sharding of
     * `from`, which would otherwise be lost. */
    const bool loses = to && to->id < env->first_id &&
                       (!keeps_attr(from, to, HLO_ATTR_FRONTEND_ATTRIBUTES) ||
                        !keeps_attr(from, to, HLO_ATTR_SHARDING));
    if (!to || from == to || loses ||
        (to->shape != from->shape && !hlo_shape_compatible(from->shape, to->shape)))
        return hlo_rule_refuse(env, NULL, NULL);
    if (to != env->build->at && !hoist(env, to, 0)) return false;
    if (from == env->root) env->replacement = to;
    p->changes[p->change_count++] = (change){.from = from, .to = to};
    return true;
}

static bool is_dot(const hlo_instruction *instr) {
    return instr->op == HLO_OP_DOT || instr->op == HLO_OP_RAGGED_DOT;
}

/* Plans one action. Returns false if the action is rejected. */
static bool plan_action(hlo_rule_env *env, const hlo_rule_action *a, plan *p) {
    if (a->kind == HLO_ACTION_REPLACE && env->slots[a->slot].kind != HLO_BOUND_VALUE) return true;
    hlo_instruction *value = a->kind == HLO_ACTION_CALL ? build_call(env, a) : build(env, a->term);
    if (env->unbuildable) return false;
    hlo_binding *slot = a->slot < 0 ? NULL : &env->slots[a->slot];
    hlo_instruction *target = slot ? slot->instr : NULL;
    switch ((hlo_rule_action_kind)a->kind) {
    case HLO_ACTION_CALL: {
        hlo_instruction *source = env->slots[a->operand].instr;
        if (slot)
            *slot = (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = value};
        else { /* the call, or a result of the call, replaces the root */
            const bool whole =
                env->root->op == HLO_OP_CUSTOM_CALL && env->root->shape == value->shape;
            if (!add_change(env, p, env->root, whole ? value : hlo_matmul_result(value, 0)))
                return false;
        }
        p->changes[p->change_count++] = (change){.from = source, .to = value, .follow = true};
        return true;
    }
    case HLO_ACTION_LET:
        env->slots[a->slot] =
            (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
        /* A new dot gets the verdicts of the dots that the rule replaces. */
        for (uint32_t i = 0; value && is_dot(value) && i < env->rule->action_count; i++) {
            const hlo_rule_action *b = &env->rules->actions[env->rule->first_action + i];
            hlo_instruction *from =
                b->kind == HLO_ACTION_REPLACE ? env->slots[b->slot].instr : NULL;
            if (from && env->slots[b->slot].kind == HLO_BOUND_VALUE && is_dot(from))
                p->changes[p->change_count++] = (change){.from = from, .to = value, .follow = true};
        }
        return true;
    case HLO_ACTION_REPLACE: return add_change(env, p, target, value);
    default:
        if (!value || !target) return hlo_rule_refuse(env, NULL, NULL);
        p->operands[p->operand_count++] =
            (operand_change){.user = target, .from = env->slots[a->operand].instr, .to = value};
        if (target == env->root) env->replacement = target;
        return true;
    }
}

static const char *fault_of(const hlo_instruction *instr, hlo_arena *scratch) {
    const char *fault = hlo_instr_fault(instr, scratch);
    hlo_matmul m;
    if (!fault && hlo_matmul_is_call(instr) && hlo_matmul_decode(instr, &m, &fault) == HLO_OK)
        fault = NULL;
    return fault;
}

/* Commits the plan. `mark` is the last instruction before the new ones. */
static void commit(hlo_rule_env *env, const hlo_instruction *mark, const plan *p) {
    hlo_engine *engine = env->engine;
    /* Move each value to the position that new instructions had when the move was planned. */
    for (uint32_t i = 0; i < env->move_count; i++) {
        const hlo_rule_move *m = &env->moves[i], *last = i ? m - 1 : NULL;
        const bool again = last && last->after == m->after && last->place == m->place;
        hlo_instruction *after = again ? last->instr : m->after;
        hlo_engine_move(engine, m->instr, after ? after->next : m->place->parent->first);
    }
    for (uint32_t i = 0; i < p->change_count; i++) {
        const change *c = &p->changes[i];
        if (!c->follow) continue;
        /* A dot that becomes a call loses the reason why it was wide. */
        const bool fused = c->from->op == HLO_OP_DOT && hlo_matmul_is_call(c->to);
        hlo_remark_follow(env->context, c->from, c->to);
        if (fused || hlo_engine_judges(engine)) hlo_remark_clear(env->context, c->to);
        hlo_instr_inherit(c->to, c->from);
    }
    for (hlo_instruction *i = env->build->at->prev; i != mark; i = i->prev)
        hlo_engine_push(engine, i);
    for (uint32_t i = 0; i < p->change_count; i++) {
        const change *c = &p->changes[i];
        if (c->follow) continue;
        hlo_engine_push(engine, c->to);
        for (hlo_use *use = c->from->uses; use; use = use->next) hlo_engine_push(engine, use->user);
        if (c->to->id >= env->first_id) hlo_instr_inherit(c->to, c->from);
        hlo_instr_replace_uses(c->from, c->to);
    }
    for (uint32_t i = 0; i < p->operand_count; i++) {
        const operand_change *o = &p->operands[i];
        for (uint32_t k = 0; k < o->user->operand_count; k++)
            if (hlo_instr_operand(o->user, k) == o->from) hlo_instr_set_operand(o->user, k, o->to);
        hlo_engine_push(engine, o->user);
        hlo_engine_remove_dead(engine, o->from);
    }
    if (env->rules == env->context->rules) {
        /* Verify all instructions that a rule from a file created, because the rest of the run
         * relies on a valid module. phase.c verifies the users of these instructions after the
         * phase. */
        hlo_arena *scratch = env->context->scratch;
        for (const hlo_instruction *i = env->build->at->prev; i != mark && !env->fault; i = i->prev)
            if (i->id >= env->first_id) env->fault = fault_of(i, scratch);
        for (uint32_t i = 0; i < p->operand_count && !env->fault; i++)
            if (p->operands[i].user->parent) env->fault = fault_of(p->operands[i].user, scratch);
    }
    for (uint32_t i = 0; i < p->change_count; i++)
        if (!p->changes[i].follow) hlo_engine_remove_dead(engine, p->changes[i].from);
}

bool hlo_rule_rewrite(hlo_rule_env *env) {
    plan p;
    p.change_count = p.operand_count = 0;
    hlo_module *module = env->context->module;
    const hlo_rule_action *actions = env->rules->actions + env->rule->first_action;
    env->first_id = module->next_id;
    /* Insert new instructions before the first instruction that the actions replace. */
    const hlo_rule *rule = env->rule;
    *env->build = (hlo_builder){.at = env->root, .admits = admits};
    for (uint32_t i = 0; i < rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[rule->first_action + i];
        if (a->slot < 0 || (a->kind != HLO_ACTION_REPLACE && a->kind != HLO_ACTION_OPERAND))
            continue;
        hlo_instruction *instr = env->slots[a->slot].instr;
        if (env->slots[a->slot].kind == HLO_BOUND_VALUE && instr != env->build->at &&
            hlo_engine_before(env->engine, instr, env->build->at))
            env->build->at = instr;
    }
    const hlo_instruction *subject = rule->subject < 0 ? NULL : env->slots[rule->subject].instr;
    env->build->like = subject ? subject : env->root;
    const hlo_instruction *mark = env->build->at->prev;
    env->unbuildable = false;
    env->replacement = NULL;
    env->fault = NULL;
    env->move_count = 0;
    hlo_journal_open(env->journal, module);
    bool whole = true;
    for (uint32_t i = 0; whole && i < env->rule->action_count; i++)
        whole = plan_action(env, &actions[i], &p);
    if (!whole) hlo_journal_undo(module);
    hlo_journal_close(module);
    if (whole) commit(env, mark, &p);
    return whole;
}
