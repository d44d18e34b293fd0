/* Templates to instructions.
 *
 * Everything new is made before one place, the first of the roots that are replaced. A needed value
 * that stands behind that place (a scale defined after the matmul's first user) is moved before it,
 * which is possible exactly when it does not depend on what is replaced.
 *
 * A firing is planned, checked, and then carried out. Until then nothing that was there has
 * changed: what is to be moved is only noted, what is made has no users but what is made later, and
 * if a check fails it is unmade, without a trace. */
#include <string.h>

#include "passes/analysis/pin.h"
#include "passes/analysis/scale_range.h"
#include "passes/engine/engine.h"

enum { MOVE_LIMIT = 256, DEPEND_LIMIT = 1024 };

static hlo_instr *build(hlo_rule_env *env, uint32_t term);

static const hlo_rule_term *term_at(const hlo_rule_env *env, uint32_t index) {
    return &env->rules->terms[index];
}

bool hlo_rule_refuse(hlo_rule_env *env, const char *reason, const hlo_instr *blocker) {
    env->unbuildable = true;
    if (env->reason != HLO_REASON_COUNT || !reason) return false;
    env->reason = hlo_reason_find(reason);
    env->blocker = blocker;
    return false;
}

/* --------------------------------------------------------------------------------------- places */

typedef struct hlo_rule_move {
    hlo_instr *instr, *place;
    hlo_instr *after; /* what stood right before the place then; NULL: nothing */
} hlo_rule_move;

hlo_rule_mark hlo_rule_here(const hlo_rule_env *env) {
    return (hlo_rule_mark){hlo_journal_count(env->context->module), env->move_count};
}

void hlo_rule_back(hlo_rule_env *env, hlo_rule_mark mark) {
    hlo_journal_back(env->context->module, mark.made);
    env->move_count = mark.moves;
}

static const hlo_rule_move *find_move(const hlo_rule_env *env, const hlo_instr *value) {
    for (uint32_t i = 0; i < env->move_count; i++)
        if (env->moves[i].instr == value) return &env->moves[i];
    return NULL;
}

/* Whether `value` stands before the place, or will. */
static bool is_brought(const hlo_rule_env *env, const hlo_instr *value) {
    if (value == env->before) return false;
    if (hlo_engine_before(env->engine, value, env->before)) return true;
    const hlo_rule_move *move = find_move(env, value);
    return move &&
           (move->place == env->before || hlo_engine_before(env->engine, move->place, env->before));
}

static void grow_moves(hlo_rule_env *env) {
    env->move_capacity = 2 * env->move_capacity + 8;
    hlo_rule_move *grown =
        hlo_arena_array(env->context->scratch, env->move_capacity, sizeof *env->moves);
    if (env->move_count) memcpy(grown, env->moves, env->move_count * sizeof *grown);
    env->moves = grown;
}

/* Plans to move `value`, with what it is computed from, before the place, and after it the `users`
 * on the way to what was asked for. */
static bool bring_for(hlo_rule_env *env, hlo_instr *value, uint32_t users) {
    if (is_brought(env, value)) return true;
    if (value == env->before || env->move_count + users >= MOVE_LIMIT || find_move(env, value))
        return hlo_rule_refuse(env, "depends-on-result", value);
    if (value->pin)
        return hlo_rule_refuse(env, hlo_reason_name((size_t)hlo_pin_reason(value)), value);
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!bring_for(env, hlo_instr_operand(value, i), users + 1)) return false;
    if (env->move_count + users >= MOVE_LIMIT)
        return hlo_rule_refuse(env, "depends-on-result", value);
    if (env->move_count == env->move_capacity) grow_moves(env);
    env->moves[env->move_count++] = (hlo_rule_move){value, env->before, env->before->prev};
    return true;
}

static bool hoist_before(hlo_rule_env *env, hlo_instr *value) {
    return bring_for(env, value, 0);
}

/* Each goes where new instructions were being made when it was planned. */
static void move_all(hlo_rule_env *env) {
    for (uint32_t i = 0; i < env->move_count; i++) {
        const hlo_rule_move *m = &env->moves[i], *last = i ? m - 1 : NULL;
        const bool again = last && last->after == m->after && last->place == m->place;
        hlo_instr *after = again ? last->instr : m->after;
        hlo_engine_move(env->engine, m->instr, after ? after->next : m->place->parent->first);
    }
}

hlo_instr *hlo_rule_new(hlo_rule_env *env, hlo_op op, const hlo_shape *shape, uint32_t count,
                        hlo_instr *const *operands) {
    for (uint32_t i = 0; i < count; i++)
        if (!hoist_before(env, operands[i])) return NULL;
    hlo_instr *instr =
        hlo_instr_new(env->before->parent, env->before, op, shape, count, operands, NULL);
    instr->offset = env->like->offset;
    const hlo_attr *metadata = hlo_instr_attr(env->like, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(instr, *metadata);
    return instr;
}

/* Whether `value` is computed from `from`, which stands in the same computation. Nothing that
 * stands before `from` is looked at; too much to look at counts as yes. */
static bool depends(hlo_rule_env *env, const hlo_instr *value, const hlo_instr *from,
                    uint32_t *budget) {
    if (value == from) return true;
    if (hlo_engine_before(env->engine, value, from)) return false;
    if (!*budget) return true;
    --*budget;
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (depends(env, hlo_instr_operand(value, i), from, budget)) return true;
    return false;
}

/* ------------------------------------------------------------------------------------- building */

/* A term used twice is made once. */
static hlo_instr *build_slot(hlo_rule_env *env, int16_t index) {
    hlo_binding *slot = &env->slots[index];
    if (slot->kind == HLO_BOUND_TERM) {
        uint32_t term = slot->term;
        slot->kind = HLO_BOUND_NOT;
        hlo_instr *value = build(env, term);
        *slot = (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
    }
    return slot->kind == HLO_BOUND_VALUE || slot->kind == HLO_BOUND_CHAIN ? slot->instr : NULL;
}

static const hlo_shape *slot_shape(hlo_rule_env *env, uint16_t slot) {
    hlo_instr *value = build_slot(env, (int16_t)slot);
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
        operands[i] = build(env, env->rules->args[t->first_arg + i]);
        if (!operands[i]) return hlo_rule_refuse(env, NULL, NULL), NULL;
    }
    hlo_module *module = env->context->module;
    const bool is_like = t->shape_kind == HLO_SHAPE_LIKE;
    const hlo_shape *like = is_like ? slot_shape(env, t->shape_code) : NULL;
    if (is_like && !like) return hlo_rule_refuse(env, NULL, NULL), NULL;
    hlo_instr *instr =
        hlo_rule_new(env, t->code, like ? like : operands[0]->shape, t->arg_count, operands);
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
    instr->shape = shape;
    return instr;
}

hlo_instr *hlo_rule_number(hlo_rule_env *env, hlo_type type, double number) {
    hlo_module *module = env->context->module;
    hlo_literal *one = hlo_literal_new(module, hlo_shape_array(module, type, 0, NULL));
    hlo_literal_set_number(one, 0, number);
    hlo_instr *constant = hlo_rule_new(env, HLO_OP_CONSTANT, one->shape, 0, NULL);
    constant->u.literal = one;
    return constant;
}

hlo_instr *hlo_rule_splat(hlo_rule_env *env, hlo_instr *value, const hlo_shape *shape) {
    hlo_module *module = env->context->module;
    hlo_type type = shape->type;
    if (!hlo_shape_is_array(shape) || !hlo_shape_is_array(value->shape)) return NULL;
    if (hlo_shape_count(value->shape) != 1) {
        double number;
        if (!hlo_known_number(value, &number)) return NULL;
        value = hlo_rule_number(env, value->shape->type, number);
    }
    if (value->shape->rank)
        value = hlo_rule_new(env, HLO_OP_RESHAPE,
                             hlo_shape_array(module, value->shape->type, 0, NULL), 1, &value);
    if (value && value->shape->type != type)
        value =
            hlo_rule_new(env, HLO_OP_CONVERT, hlo_shape_array(module, type, 0, NULL), 1, &value);
    if (!value || !shape->rank) return value;
    value = hlo_rule_new(env, HLO_OP_BROADCAST, shape, 1, &value);
    if (value) hlo_instr_set_ints(value, HLO_ATTR_DIMENSIONS, 0, NULL);
    return value;
}

static hlo_instr *build_constant(hlo_rule_env *env, const hlo_rule_term *t) {
    const hlo_shape *shape = slot_shape(env, t->shape_code);
    if (!shape || !(hlo_type_is_float(shape->type) || hlo_type_is_integer(shape->type)))
        return hlo_rule_refuse(env, NULL, NULL), NULL;
    return hlo_rule_splat(env, hlo_rule_number(env, shape->type, t->number), shape);
}

static hlo_instr *build_function(hlo_rule_env *env, const hlo_rule_term *t) {
    hlo_binding args[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < t->arg_count; i++) {
        uint32_t index = env->rules->args[t->first_arg + i];
        const hlo_rule_term *arg = term_at(env, index);
        if (arg->kind == HLO_TERM_VAR) build_slot(env, arg->slot);
        if (arg->kind == HLO_TERM_OP || arg->kind == HLO_TERM_FUNCTION ||
            arg->kind == HLO_TERM_CONSTANT || arg->kind == HLO_TERM_SPLAT ||
            arg->kind == HLO_TERM_RESULT) {
            hlo_instr *value = build(env, index);
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

/* NULL: the value is absent, or env->unbuildable is set. */
static hlo_instr *build(hlo_rule_env *env, uint32_t term) {
    const hlo_rule_term *t = term_at(env, term);
    switch ((hlo_term_kind)t->kind) {
    case HLO_TERM_VAR: return build_slot(env, t->slot);
    case HLO_TERM_RESULT: {
        hlo_instr *call = build_slot(env, t->slot);
        int index = call ? hlo_rule_result_index(call, t->code) : -1;
        return index < 0 ? NULL : hlo_matmul_result(call, index);
    }
    case HLO_TERM_OP: return build_op(env, t);
    case HLO_TERM_CONSTANT: return build_constant(env, t);
    case HLO_TERM_SPLAT: {
        hlo_instr *value = build(env, env->rules->args[t->first_arg]);
        const hlo_shape *shape = slot_shape(env, t->shape_code);
        value = value && shape ? hlo_rule_splat(env, value, shape) : NULL;
        if (!value) hlo_rule_refuse(env, NULL, NULL);
        return value;
    }
    case HLO_TERM_FUNCTION: return build_function(env, t);
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

static bool set_epilogue(hlo_rule_env *env, const hlo_rule_set *set, hlo_epilogue *epilogue,
                         const hlo_instr *source) {
    const char *word = term_at(env, set->term)->word;
    hlo_epilogue value = word ? hlo_epilogue_find(word) : HLO_EPILOGUE_COUNT;
    if (set->add && value != HLO_EPILOGUE_COUNT) value = hlo_epilogue_add(*epilogue, value);
    if (value == HLO_EPILOGUE_COUNT) return hlo_rule_refuse(env, "epilogue-taken", source);
    *epilogue = value;
    return true;
}

/* What the numbers in `list` are called when of the first dimensions, `gone` and one more, only one
 * is left. Their count. */
static uint32_t join_dims(uint32_t count, const int64_t *list, int64_t gone, int64_t *out) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!list[i] || list[i] > gone) out[kept++] = list[i] ? list[i] - gone : 0;
    return kept;
}

static bool all_below(const hlo_ints *dims, uint32_t rank) {
    for (uint32_t i = 0; i < dims->count; i++)
        if (dims->v[i] < 0 || dims->v[i] >= rank) return false;
    return true;
}

/* `first`, `last` or `joined` of an operand with one contracting and one free dimension; `beneath`
 * of one that is a transpose. */
static bool set_dims(hlo_rule_env *env, const hlo_rule_set *set, const hlo_ints **member,
                     const hlo_matmul *m) {
    const char *word = term_at(env, set->term)->word;
    uint32_t rank = m->a_batch->count + 2, count = (*member)->count;
    int64_t dims[HLO_RULE_ARGS];
    if (!word || count > HLO_RULE_ARGS) return hlo_rule_refuse(env, NULL, NULL);
    if (strcmp(word, "beneath") == 0) {
        const hlo_instr *turned =
            member == &m->a_batch || member == &m->a_contracting ? m->a : m->b;
        if ((turned->op != HLO_OP_TRANSPOSE && turned->op != HLO_OP_COPY) ||
            !all_below(*member, turned->shape->rank))
            return hlo_rule_refuse(env, NULL, NULL);
        *member = hlo_matmul_dims_beneath(turned, *member);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) dims[i] = strcmp(word, "last") ? i : rank - count + i;
    if (strcmp(word, "joined") == 0)
        count = join_dims(count, (*member)->v, (int64_t)m->d->rank - m->a->shape->rank, dims);
    *member = hlo_ints_new(env->context->module, count, dims);
    return true;
}

static bool set_value(hlo_rule_env *env, hlo_instr **member, hlo_instr *value,
                      const hlo_instr *source) {
    if (value && value != *member) {
        if (!hlo_shape_is_array(value->shape)) return hlo_rule_refuse(env, NULL, NULL);
        uint32_t budget = DEPEND_LIMIT;
        if (depends(env, value, source, &budget))
            return hlo_rule_refuse(env, "depends-on-result", value);
        if (!hoist_before(env, value)) return false;
    }
    *member = value;
    return true;
}

static bool set_mode(hlo_rule_env *env, const char *word, hlo_scale_mode *member) {
    hlo_scale_mode mode = word ? hlo_scale_mode_find(word) : HLO_SCALE_MODE_COUNT;
    if (mode == HLO_SCALE_MODE_COUNT) return hlo_rule_refuse(env, NULL, NULL);
    *member = mode;
    return true;
}

/* The same dimensions with elements of the type that is called so. */
static bool set_type(hlo_rule_env *env, const char *word, void *member) {
    const hlo_shape **shape = member;
    hlo_type type = hlo_type_find(word, strlen(word));
    if (type == HLO_TYPE_INVALID || !hlo_types[type].bits || !*shape)
        return hlo_rule_refuse(env, NULL, NULL);
    *shape = hlo_shape_retype(env->context->module, *shape, type);
    return true;
}

static bool set_field(hlo_rule_env *env, const hlo_rule_set *set, hlo_matmul *m,
                      const hlo_instr *source) {
    const field_row *row = &fields[set->field];
    char *member = (char *)m + row->offset;
    const hlo_rule_term *t = term_at(env, set->term);
    if (row->kind == EPILOGUE)
        return set_epilogue(env, set, (hlo_epilogue *)(void *)member, source);
    if (row->kind == MODE) return set_mode(env, t->word, (hlo_scale_mode *)(void *)member);
    if (row->kind == DIMS) return set_dims(env, set, (const hlo_ints **)(void *)member, m);
    if (row->kind == TYPE && t->kind == HLO_TERM_WORD) return set_type(env, t->word, member);
    if (row->kind == NUMBER && t->kind == HLO_TERM_NUMBER) {
        *(double *)(void *)member = t->number;
        return true;
    }
    hlo_instr *value = build(env, set->term);
    if (env->unbuildable) return false;
    switch (row->kind) {
    case VALUE: return set_value(env, (hlo_instr **)(void *)member, value, source);
    case FLAG: *(bool *)member = value != NULL; return true;
    case TYPE:
        if (!value) break;
        if (!hlo_shape_is_array(value->shape)) break;
        if (!hlo_shape_same_dims(value->shape, m->d)) /* a view of the result */
            return set_type(env, hlo_types[value->shape->type].name, member);
        *(const hlo_shape **)(void *)member = value->shape;
        return true;
    case NUMBER:
        if (!value || !hlo_known_number(value, (double *)(void *)member)) break;
        return true;
    default: break;
    }
    return hlo_rule_refuse(env, NULL, NULL);
}

/* The dimensions of D, and of the auxiliary result, follow from the operands'; layouts stay. */
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
        if (layout) join_dims(d->rank, layout->minor_to_major, d->rank - rank, order);
        *results[i] = hlo_shape_with_layout(env->context->module, (*results[i])->type, rank, dims,
                                            layout ? order : NULL);
    }
}

static hlo_instr *build_call(hlo_rule_env *env, const hlo_rule_action *action) {
    hlo_instr *source = build_slot(env, action->operand);
    hlo_matmul m, before;
    const char *why;
    if (!source) return hlo_rule_refuse(env, NULL, NULL), NULL;
    if (source->op == HLO_OP_DOT && hlo_remark_kept_wide(env->context, source))
        return hlo_rule_refuse(env, "gain-below-minimum", NULL), NULL;
    if (source->op == HLO_OP_DOT)
        hlo_matmul_from_dot(source, &m);
    else if (!hlo_matmul_is_call(source) || hlo_matmul_decode(source, &m, &why) != HLO_OK)
        return hlo_rule_refuse(env, NULL, NULL), NULL;
    before = m;
    for (uint32_t i = 0; i < action->set_count; i++)
        if (!set_field(env, &env->rules->sets[action->first_set + i], &m, source)) return NULL;
    env->fault = hlo_matmul_incomplete(&m);
    if (env->fault) return hlo_rule_refuse(env, NULL, NULL), NULL;
    resize_results(env, &m);
    why = hlo_scales_fit(source, &before, &m) ? hlo_matmul_check(&m, &env->context->target)
                                              : "scales-out-of-range";
    if (why) return hlo_rule_refuse(env, why, NULL), NULL;
    return hlo_matmul_encode(&m, &env->context->target, source->parent, env->before, source);
}

/* -------------------------------------------------------------------------------------- actions */

typedef struct change {
    hlo_instr *from, *to; /* replaced */
    bool follow;          /* the verdict of `from` goes to `to` */
} change;

/* What a bare `call %mm with ..` puts in the place of the root. */
static hlo_instr *call_replacement(hlo_rule_env *env, hlo_instr *call) {
    if (env->root->op == HLO_OP_CUSTOM_CALL && env->root->shape == call->shape) return call;
    return hlo_matmul_result(call, 0);
}

static bool says_the_same(const hlo_instr *from, const hlo_instr *to, hlo_attr_id id) {
    const char *text = hlo_instr_str(from, id), *other = hlo_instr_str(to, id);
    return !text || text == other;
}

/* Whether what `from` says beside what it computes would be lost with it: `to` was there before,
 * and says something else. */
static bool loses(const hlo_rule_env *env, const hlo_instr *from, const hlo_instr *to) {
    return to->id < env->first_id && (!says_the_same(from, to, HLO_ATTR_FRONTEND_ATTRIBUTES) ||
                                      !says_the_same(from, to, HLO_ATTR_SHARDING));
}

static bool add_change(hlo_rule_env *env, change *changes, uint32_t *count, hlo_instr *from,
                       hlo_instr *to) {
    if (!from) return true; /* an optional root that was not found */
    if (!to || from == to || loses(env, from, to) ||
        (to->shape != from->shape && !hlo_shape_compatible(from->shape, to->shape)))
        return hlo_rule_refuse(env, NULL, NULL);
    if (to != env->before && !hoist_before(env, to)) return false;
    if (from == env->root) env->replacement = to;
    changes[(*count)++] = (change){.from = from, .to = to};
    return true;
}

/* The first, in the list, of what the actions replace. */
static void find_place(hlo_rule_env *env) {
    const hlo_rule *rule = env->rule;
    env->before = env->root;
    for (uint32_t i = 0; i < rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[rule->first_action + i];
        if (a->slot < 0 || (a->kind != HLO_ACTION_REPLACE && a->kind != HLO_ACTION_OPERAND))
            continue;
        hlo_instr *instr = env->slots[a->slot].instr;
        if (env->slots[a->slot].kind == HLO_BOUND_VALUE && instr != env->before &&
            hlo_engine_before(env->engine, instr, env->before))
            env->before = instr;
    }
    const hlo_instr *subject = rule->subject < 0 ? NULL : env->slots[rule->subject].instr;
    env->like = subject ? subject : env->root;
}

static void replace_operand(hlo_instr *user, const hlo_instr *from, hlo_instr *to) {
    for (uint32_t i = 0; i < user->operand_count; i++)
        if (hlo_instr_operand(user, i) == from) hlo_instr_set_operand(user, i, to);
}

/* A dot that is made stands for those that the rule replaces. */
static void follow_replaced(const hlo_rule_env *env, hlo_instr *dot, change *changes,
                            uint32_t *count) {
    for (uint32_t i = 0; i < env->rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[env->rule->first_action + i];
        if (a->kind != HLO_ACTION_REPLACE || env->slots[a->slot].kind != HLO_BOUND_VALUE) continue;
        hlo_instr *from = env->slots[a->slot].instr;
        if (from->op == HLO_OP_DOT)
            changes[(*count)++] = (change){.from = from, .to = dot, .follow = true};
    }
}

typedef struct operand_change {
    hlo_instr *user, *from, *to;
} operand_change;

static bool prepare(hlo_rule_env *env, change *changes, uint32_t *change_count,
                    operand_change *operands, uint32_t *operand_count) {
    const hlo_rule *rule = env->rule;
    for (uint32_t i = 0; i < rule->action_count; i++) {
        const hlo_rule_action *a = &env->rules->actions[rule->first_action + i];
        hlo_instr *value = NULL;
        if (a->kind == HLO_ACTION_REPLACE && env->slots[a->slot].kind != HLO_BOUND_VALUE) continue;
        if (a->kind == HLO_ACTION_CALL)
            value = build_call(env, a);
        else
            value = build(env, a->term);
        if (env->unbuildable) return false;
        hlo_instr *target = a->slot < 0 ? NULL : env->slots[a->slot].instr;
        switch ((hlo_rule_action_kind)a->kind) {
        case HLO_ACTION_CALL: {
            hlo_instr *source = env->slots[a->operand].instr;
            if (a->slot >= 0)
                env->slots[a->slot] = (hlo_binding){.kind = HLO_BOUND_VALUE, .instr = value};
            else if (!add_change(env, changes, change_count, env->root,
                                 call_replacement(env, value)))
                return false;
            changes[(*change_count)++] = (change){.from = source, .to = value, .follow = true};
            break;
        }
        case HLO_ACTION_LET:
            env->slots[a->slot] =
                (hlo_binding){.kind = value ? HLO_BOUND_VALUE : HLO_BOUND_ABSENT, .instr = value};
            if (value && value->op == HLO_OP_DOT)
                follow_replaced(env, value, changes, change_count);
            break;
        case HLO_ACTION_REPLACE:
            if (!add_change(env, changes, change_count, target, value)) return false;
            break;
        default:
            if (!value || !target) return hlo_rule_refuse(env, NULL, NULL);
            operands[(*operand_count)++] =
                (operand_change){.user = target, .from = env->slots[a->operand].instr, .to = value};
            if (target == env->root) env->replacement = target;
            break;
        }
    }
    return true;
}

/* A dot becomes a call, of which no reason holds why the dot was wide. */
static bool is_fused(const change *c) {
    return c->from->op == HLO_OP_DOT && hlo_matmul_is_call(c->to);
}

static const char *fault_of(const hlo_instr *instr, hlo_arena *scratch) {
    const char *why = hlo_instr_fault(instr, scratch);
    hlo_matmul m;
    if (!why && hlo_matmul_is_call(instr) && hlo_matmul_decode(instr, &m, &why) == HLO_OK)
        why = NULL;
    return why;
}

/* What a rule of a file makes is looked at, at once and in full: all else that is done to a module
 * counts on one that verifies. What stands around it is the same, or is looked at after the phase
 * (phase.c). */
static void check_made(hlo_rule_env *env, const hlo_instr *mark, const operand_change *operands,
                       uint32_t operand_count) {
    hlo_arena *scratch = env->context->scratch;
    for (const hlo_instr *i = env->before->prev; i != mark && !env->fault; i = i->prev)
        if (i->id >= env->first_id) env->fault = fault_of(i, scratch);
    for (uint32_t i = 0; i < operand_count && !env->fault; i++)
        if (operands[i].user->parent) env->fault = fault_of(operands[i].user, scratch);
}

/* What is said of matmuls goes with them. */
static void follow(hlo_rule_env *env, const change *c) {
    hlo_remark_follow(env->context, c->from, c->to);
    if (hlo_engine_judges(env->engine) || is_fused(c)) hlo_remark_clear(env->context, c->to);
    hlo_instr_inherit(c->to, c->from);
}

static void replace(hlo_rule_env *env, const change *c) {
    hlo_engine_push(env->engine, c->to);
    for (hlo_use *use = c->from->uses; use; use = use->next)
        hlo_engine_push(env->engine, use->user);
    if (c->to->id >= env->first_id) hlo_instr_inherit(c->to, c->from);
    hlo_instr_replace_uses(c->from, c->to);
}

bool hlo_rule_rewrite(hlo_rule_env *env) {
    change changes[2 * HLO_RULE_ARGS];
    operand_change operands[HLO_RULE_ARGS];
    uint32_t change_count = 0, operand_count = 0;
    hlo_module *module = env->context->module;
    env->first_id = module->next_id;
    find_place(env);
    const hlo_instr *mark = env->before->prev;
    env->unbuildable = false;
    env->replacement = NULL;
    env->fault = NULL;
    env->move_count = 0;
    hlo_journal_open(env->journal, module);
    bool whole = prepare(env, changes, &change_count, operands, &operand_count);
    if (!whole) hlo_journal_back(module, 0);
    hlo_journal_close(module);
    if (!whole) return false;
    move_all(env);
    for (uint32_t i = 0; i < change_count; i++)
        if (changes[i].follow) follow(env, &changes[i]);
    for (hlo_instr *i = env->before->prev; i != mark; i = i->prev) hlo_engine_push(env->engine, i);
    for (uint32_t i = 0; i < change_count; i++)
        if (!changes[i].follow) replace(env, &changes[i]);
    for (uint32_t i = 0; i < operand_count; i++) {
        replace_operand(operands[i].user, operands[i].from, operands[i].to);
        hlo_engine_push(env->engine, operands[i].user);
        hlo_engine_remove_dead(env->engine, operands[i].from);
    }
    if (env->rules == env->context->rules) check_made(env, mark, operands, operand_count);
    for (uint32_t i = 0; i < change_count; i++)
        if (!changes[i].follow) hlo_engine_remove_dead(env->engine, changes[i].from);
    return true;
}
