/* Values that are the same on all devices of a group.
 *
 * What is known is of one division of the devices into groups. Within a computation a value is
 * followed up to parameters. What is known of these is found once, for the whole module, callers
 * before what they call: of each parameter, or of each element when it is a tuple. A loop's state
 * is supposed to stay the same where it begins so, until its body says otherwise. */
#include <string.h>

#include "passes/devices.h"

enum { STEP_LIMIT = 256, ROUND_LIMIT = 8, DIVISION_LIMIT = 8 };

/* Of a computation: what each parameter, or element of it, is on the devices. */
typedef struct facts {
    bool reached; /* something calls it */
    bool lasting; /* of a loop's body: it runs equally often on all devices */
    bool **same;  /* by parameter and element; an array has one element */
} facts;

typedef struct hlo_agreement {
    hlo_arena *arena;
    const hlo_division *among; /* what is known is true within its groups */
    struct hlo_agreement *next;
    uint32_t count; /* of `of`, by the computation's id */
    facts *of;
} hlo_agreement;

/* All of a value, not an element of a tuple. */
static const int64_t whole = -1;

static bool agree(const hlo_agreement *a, const hlo_instr *value, int64_t index, unsigned *steps);

static bool holds(const hlo_agreement *a, const hlo_instr *value, int64_t index) {
    unsigned steps = 0;
    return agree(a, value, index, &steps);
}

static const facts *facts_of(const hlo_agreement *a, const hlo_computation *comp) {
    return comp && comp->id < a->count && a->of[comp->id].reached ? &a->of[comp->id] : NULL;
}

static uint32_t element_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

/* ----------------------------------------------------------------------------------- parameters */

/* Of a tuple's `{{replicated}, {devices=[4]<=[4]}}` element `index`, which ends somewhere. */
static const char *sharding_of(const char *sharding, int64_t index) {
    if (index < 0 || sharding[0] != '{' || sharding[1] != '{') return sharding;
    int depth = 0;
    for (sharding++; *sharding && (index || depth); sharding++) {
        depth += (*sharding == '{') - (*sharding == '}');
        index -= *sharding == ',' && !depth;
    }
    return sharding + strspn(sharding, " ");
}

/* Whether parts (NULL: not known) that are made since `mark`, and given back, keep all that must
 * agree together. */
static bool keep_together(const hlo_agreement *a, const hlo_division *parts, hlo_arena_mark mark) {
    bool together = parts && hlo_division_within(a->among, parts);
    hlo_arena_release(a->arena, mark);
    return together;
}

static bool handed_alike(const hlo_agreement *a, const char *sharding) {
    hlo_arena_mark mark = hlo_arena_here(a->arena);
    return keep_together(a, hlo_division_of_sharding(a->arena, sharding), mark);
}

static bool agree_parameter(const hlo_agreement *a, const hlo_instr *parameter, int64_t index) {
    const hlo_computation *comp = parameter->parent;
    if (comp == comp->module->entry) {
        const char *sharding = hlo_instr_str(parameter, HLO_ATTR_SHARDING);
        return hlo_devices_replicas(comp->module) == 1 && sharding &&
               handed_alike(a, sharding_of(sharding, index));
    }
    const facts *f = facts_of(a, comp);
    if (!f) return false;
    const bool *same = f->same[parameter->u.parameter];
    uint32_t count = element_count(parameter->shape);
    if (index >= 0) return same[index];
    for (uint32_t i = 0; i < count; i++)
        if (!same[i]) return false;
    return true;
}

/* --------------------------------------------------------------------------------------- values */

/* Whether the loop hands on that element as it came in. */
static bool passes_through(const hlo_computation *body, int64_t index) {
    if (body->root->op != HLO_OP_TUPLE || index < 0) return false;
    const hlo_instr *next = hlo_instr_operand(body->root, (uint32_t)index);
    return next->op == HLO_OP_GET_TUPLE_ELEMENT &&
           hlo_instr_operand(next, 0) == body->parameters[0] &&
           hlo_instr_int(next, HLO_ATTR_INDEX, whole) == index;
}

static bool agree_loop(const hlo_agreement *a, const hlo_instr *loop, int64_t index,
                       unsigned *steps) {
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    if (passes_through(body, index)) return agree(a, hlo_instr_operand(loop, 0), index, steps);
    const facts *f = facts_of(a, body);
    return f && f->lasting && index >= 0 && f->same[0][index];
}

/* What is not split on its way to the devices: there is one value of it for all of them. */
static bool comes_whole(const hlo_instr *value, int64_t index) {
    if (!hlo_devices_manual(value)) return false;
    bool tuple = value->shape->type == HLO_TYPE_TUPLE;
    if (tuple ? index < 0 || index >= value->operand_count : value->operand_count != 1)
        return false;
    const hlo_instr *from = hlo_instr_operand(value, tuple ? (uint32_t)index : 0);
    return hlo_shape_compatible(tuple ? value->shape->elements[index] : value->shape, from->shape);
}

static bool evened_out(const hlo_agreement *a, const hlo_instr *collective) {
    hlo_arena_mark mark = hlo_arena_here(a->arena);
    return keep_together(a, hlo_devices_among(a->arena, collective), mark);
}

static bool agree_all(const hlo_agreement *a, const hlo_instr *value, unsigned *steps) {
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!agree(a, hlo_instr_operand(value, i), whole, steps)) return false;
    return value->operand_count > 0;
}

static bool agree(const hlo_agreement *a, const hlo_instr *value, int64_t index, unsigned *steps) {
    if ((*steps)++ >= STEP_LIMIT) return false;
    switch (value->op) {
    case HLO_OP_CONSTANT:
    case HLO_OP_IOTA: return true;
    case HLO_OP_PARAMETER: return agree_parameter(a, value, index);
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_GATHER_START:
    case HLO_OP_ALL_REDUCE_START: return evened_out(a, value);
    case HLO_OP_ALL_GATHER_DONE:
    case HLO_OP_ALL_REDUCE_DONE:
    case HLO_OP_OPT_BARRIER: return agree(a, hlo_instr_operand(value, 0), index, steps);
    case HLO_OP_TUPLE:
        if (index < 0) return agree_all(a, value, steps);
        return agree(a, hlo_instr_operand(value, (uint32_t)index), whole, steps);
    case HLO_OP_GET_TUPLE_ELEMENT:
        return agree(a, hlo_instr_operand(value, 0), hlo_instr_int(value, HLO_ATTR_INDEX, whole),
                     steps);
    case HLO_OP_WHILE: return agree_loop(a, value, index, steps);
    case HLO_OP_CALL: {
        const hlo_computation *called = hlo_instr_comp(value, HLO_ATTR_TO_APPLY);
        return facts_of(a, called) && agree(a, called->root, index, steps);
    }
    case HLO_OP_CUSTOM_CALL: return comes_whole(value, index);
    case HLO_OP_CONCATENATE:
    case HLO_OP_DOT:
    case HLO_OP_DYNAMIC_UPDATE_SLICE:
    case HLO_OP_REDUCE:
    case HLO_OP_REDUCE_WINDOW:
    case HLO_OP_SORT: return agree_all(a, value, steps);
    default:
        return hlo_ops[value->op].flags & (HLO_ELEMENTWISE | HLO_MOVEMENT) &&
               agree_all(a, value, steps);
    }
}

/* ------------------------------------------------------------------------- what calls hand over */

/* One call more. */
static facts *reach(hlo_agreement *a, const hlo_computation *comp) {
    facts *f = &a->of[comp->id];
    if (f->reached) return f;
    f->reached = f->lasting = true;
    f->same = hlo_arena_array(a->arena, comp->parameter_count, sizeof *f->same);
    for (uint32_t p = 0; p < comp->parameter_count; p++) {
        uint32_t count = element_count(comp->parameters[p]->shape);
        f->same[p] = hlo_arena_array(a->arena, count, sizeof **f->same);
        memset(f->same[p], true, count);
    }
    return f;
}

/* That the parameter is `value` in this call. */
static void bind(hlo_agreement *a, const hlo_computation *comp, uint32_t number,
                 const hlo_instr *value) {
    facts *f = reach(a, comp);
    const hlo_shape *shape = comp->parameters[number]->shape;
    bool tuple = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; i < element_count(shape); i++)
        f->same[number][i] &= holds(a, value, tuple ? (int64_t)i : whole);
}

/* That it is called with anything. */
static void forget(void *user, hlo_computation *comp) {
    facts *f = reach(user, comp);
    for (uint32_t p = 0; p < comp->parameter_count; p++)
        memset(f->same[p], false, element_count(comp->parameters[p]->shape));
}

static void enter_loop(hlo_agreement *a, const hlo_instr *loop) {
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    const hlo_computation *condition = hlo_instr_comp(loop, HLO_ATTR_CONDITION);
    const hlo_instr *start = hlo_instr_operand(loop, 0);
    if (start->shape->type != HLO_TYPE_TUPLE) {
        hlo_instr_visit_called(loop, forget, a);
        return;
    }
    bind(a, body, 0, start);
    facts *f = &a->of[body->id];
    bool changes = true;
    for (unsigned round = 0; changes; round++) {
        changes = false;
        for (uint32_t i = 0; i < start->shape->rank; i++) {
            if (!f->same[0][i] || passes_through(body, i)) continue;
            f->same[0][i] = round < ROUND_LIMIT && holds(a, body->root, i);
            changes |= !f->same[0][i];
        }
    }
    bind(a, condition, 0, start);
    bool *same = a->of[condition->id].same[0];
    for (uint32_t i = 0; i < start->shape->rank; i++) same[i] &= f->same[0][i];
    f->lasting &= holds(a, condition->root, whole);
}

static void enter(hlo_agreement *a, const hlo_instr *instr) {
    const hlo_computation *called = NULL;
    switch (instr->op) {
    case HLO_OP_WHILE: enter_loop(a, instr); return;
    case HLO_OP_CALL: called = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY); break;
    case HLO_OP_FUSION:
    case HLO_OP_ASYNC_START: called = hlo_instr_comp(instr, HLO_ATTR_CALLS); break;
    case HLO_OP_CONDITIONAL: {
        const hlo_attr *branches = hlo_instr_attr(instr, HLO_ATTR_BRANCH_COMPUTATIONS);
        const hlo_computation *yes = hlo_instr_comp(instr, HLO_ATTR_TRUE_COMPUTATION);
        const hlo_computation *no = hlo_instr_comp(instr, HLO_ATTR_FALSE_COMPUTATION);
        for (uint32_t i = 0; branches && i < branches->u.comps->count; i++)
            bind(a, branches->u.comps->v[i], 0, hlo_instr_operand(instr, i + 1));
        if (yes) bind(a, yes, 0, hlo_instr_operand(instr, 1));
        if (no) bind(a, no, 0, hlo_instr_operand(instr, 2));
        return;
    }
    case HLO_OP_ASYNC_UPDATE:
    case HLO_OP_ASYNC_DONE: return;
    default: hlo_instr_visit_called(instr, forget, a); return;
    }
    if (called && called->parameter_count != instr->operand_count) { /* some are bound later */
        forget(a, (hlo_computation *)(uintptr_t)called);
        return;
    }
    for (uint32_t i = 0; called && i < called->parameter_count; i++)
        bind(a, called, i, hlo_instr_operand(instr, i));
}

static hlo_agreement *find_agreement(const hlo_pass_context *context, const hlo_division *among) {
    const hlo_module *module = context->module;
    hlo_agreement *a = hlo_arena_zero(context->scratch, sizeof *a);
    a->arena = context->scratch;
    a->among = among;
    a->next = context->agreement;
    a->count = module->next_computation_id;
    a->of = hlo_arena_zero(a->arena, a->count * sizeof *a->of);
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i))
            if (comp == module->entry || a->of[comp->id].reached) enter(a, i);
    return a;
}

/* What is known of that division; of all devices together, when there are too many. */
static const hlo_agreement *agreement_of(hlo_pass_context *context, const hlo_division *among) {
    unsigned count = 0;
    for (const hlo_agreement *a = context->agreement; a; a = a->next, count++)
        if (hlo_division_within(a->among, among) && hlo_division_within(among, a->among)) return a;
    if (count >= DIVISION_LIMIT && among->count) return agreement_of(context, &hlo_division_whole);
    return context->agreement = find_agreement(context, among);
}

bool hlo_devices_agree(hlo_pass_context *context, const hlo_instr *value,
                       const hlo_instr *collective) {
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    const hlo_division *among = hlo_devices_among(context->scratch, collective);
    const hlo_agreement *known = context->agreement,
                        *a = agreement_of(context, among ? among : &hlo_division_whole);
    bool agrees = holds(a, value, whole);
    if (known == context->agreement) hlo_arena_release(context->scratch, mark);
    return agrees;
}
