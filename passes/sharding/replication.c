/* SPDX-License-Identifier: Apache-2.0 */
/* Replication: values that are equal on all devices of a group.
 *
 * Given a partition of the devices into groups, the analysis decides whether a value is equal
 * within each group, in every execution. It proves replication in the cases below, and assumes "may
 * differ" otherwise. A value is replicated:
 *   - outside all manual regions of a module that has some (manual.h): it exists once;
 *   - as a parameter of the entry, elsewhere: if its sharding gives the devices of each group
 *     one part;
 *   - as a constant or an iota;
 *   - as a parameter of a called computation: if its argument is replicated in all calls;
 *   - as the result of an all-reduce or all-gather whose own groups contain the groups;
 *   - entering a manual region: if the operand is replicated, and the devices of each group get
 *     one part of it;
 *   - leaving a region: on the devices whose parts are joined;
 *   - as the result of a loop: if it is replicated before the loop and after each iteration, and
 *     the trip count is equal on all devices; or if the loop carries it unchanged;
 *   - as the result of a call: if the callee's root is; through tuples;
 *   - computed from replicated operands by an opcode that depends on nothing else. Parameters are
 *   analyzed for the whole module, as a greatest fixpoint: all are assumed to be replicated, and
 *   facts that contradict the assumption are withdrawn until no contradiction is left. */
#include <string.h>

#include "ir/module/known.h"
#include "passes/sharding/devices.h"
#include "passes/sharding/manual.h"

enum { STEP_LIMIT = 256, ROUND_LIMIT = 32, DIVISION_LIMIT = 8 };

/* Replication of the parameters of a computation, or of their elements. */
typedef struct facts {
    bool reached; /* the computation has a caller */
    bool lasting; /* for a loop's body: its trip count is the same on all devices */
    bool **same;  /* by parameter and element; an array has one element */
} facts;

typedef struct hlo_replication {
    hlo_arena *arena;
    const hlo_device_groups *among; /* groups within which the facts hold */
    const hlo_manual *manual;
    struct hlo_replication *next;
    uint32_t count; /* number of computations in `of`, which is indexed by computation id */
    facts *of;
    bool finding; /* the fixpoint is not reached: no fact is certain */
    bool changed; /* a fact was withdrawn, or a computation newly reached */
} hlo_replication;

/* Index of a whole value, not of an element of a tuple. */
static const int64_t whole = -1;

static bool agree(const hlo_replication *a, const hlo_instr *value, int64_t index, unsigned *steps);

static bool holds(const hlo_replication *a, const hlo_instr *value, int64_t index) {
    unsigned steps = 0;
    return agree(a, value, index, &steps);
}

static const facts *facts_of(const hlo_replication *a, const hlo_computation *comp) {
    return comp && comp->id < a->count && a->of[comp->id].reached ? &a->of[comp->id] : NULL;
}

static uint32_t element_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

/* ----------------------------------------------------------------------------------- parameters */

/* True if `parts` (NULL: unknown) puts devices that must agree into the same part. Releases the
 * parts, allocated since `mark`. */
static bool keep_together(const hlo_replication *a, const hlo_device_groups *parts,
                          hlo_arena_mark mark) {
    bool together = parts && hlo_device_groups_refine(a->among, parts);
    hlo_arena_release(a->arena, mark);
    return together;
}

/* --------------------------------------------------------------------------------------- values */

/* True if the loop carries the element unchanged. */
static bool passes_through(const hlo_computation *body, int64_t index) {
    if (body->root->op != HLO_OP_TUPLE || index < 0) return false;
    const hlo_instr *next = hlo_instr_operand(body->root, (uint32_t)index);
    return next->op == HLO_OP_GET_TUPLE_ELEMENT &&
           hlo_instr_operand(next, 0) == body->parameters[0] &&
           hlo_instr_int(next, HLO_ATTR_INDEX, whole) == index;
}

static bool agree_all(const hlo_replication *a, const hlo_instr *value, unsigned *steps) {
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!agree(a, hlo_instr_operand(value, i), whole, steps)) return false;
    return value->operand_count > 0;
}

/* True if the callee depends only on its operands, not on its device. */
static bool is_plain(const hlo_instr *instr) {
    const hlo_computation *apply = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
    for (const hlo_instr *i = apply ? apply->first : NULL; i; i = hlo_instr_next(i)) {
        bool handed = i->op == HLO_OP_PARAMETER || i->op == HLO_OP_CONSTANT ||
                      i->op == HLO_OP_TUPLE || i->op == HLO_OP_GET_TUPLE_ELEMENT ||
                      hlo_instr_is_mark(i);
        if (!handed && !hlo_op_is(i->op, HLO_ELEMENTWISE | HLO_MOVEMENT)) return false;
    }
    return true;
}

static bool agree(const hlo_replication *a, const hlo_instr *value, int64_t index,
                  unsigned *steps) {
    if ((*steps)++ >= STEP_LIMIT) return false;
    if (hlo_manual_outside(a->manual, value)) return true;
    switch (value->op) {
    case HLO_OP_CONSTANT:
    case HLO_OP_IOTA: return true;
    case HLO_OP_PARAMETER: {
        const hlo_computation *comp = value->parent;
        if (comp == comp->module->entry) {
            /* The parameter holds the same value on devices that its sharding gives the same part.
             */
            const hlo_sharding *whole_of = hlo_instr_sharding(value);
            const hlo_sharding *part =
                !whole_of || index < 0 || whole_of->kind != HLO_SHARDING_TUPLE ? whole_of
                : index < whole_of->count                                      ? whole_of->v[index]
                                                                               : NULL;
            const hlo_arena_mark mark = hlo_arena_here(a->arena);
            return hlo_devices_replicas(comp->module) == 1 && part &&
                   keep_together(a, hlo_device_groups_of_sharding(a->arena, part, HLO_HAVE), mark);
        }
        const facts *f = facts_of(a, comp);
        if (!f) return a->finding;
        const bool *same = f->same[value->u.parameter];
        uint32_t count = element_count(value->shape);
        if (index >= 0) return same[index];
        for (uint32_t i = 0; i < count; i++)
            if (!same[i]) return false;
        return true;
    }
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_GATHER_DONE:
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_DONE: {
        const hlo_arena_mark mark = hlo_arena_here(a->arena);
        return is_plain(hlo_devices_sender(value)) &&
               keep_together(a, hlo_devices_among(a->arena, value), mark);
    }
    case HLO_OP_OPT_BARRIER: return agree(a, hlo_instr_operand(value, 0), index, steps);
    case HLO_OP_TUPLE:
        if (index < 0) return agree_all(a, value, steps);
        return agree(a, hlo_instr_operand(value, (uint32_t)index), whole, steps);
    case HLO_OP_GET_TUPLE_ELEMENT:
        return agree(a, hlo_instr_operand(value, 0), hlo_instr_int(value, HLO_ATTR_INDEX, whole),
                     steps);
    case HLO_OP_WHILE: {
        const hlo_computation *body = hlo_instr_comp(value, HLO_ATTR_BODY);
        if (passes_through(body, index)) return agree(a, hlo_instr_operand(value, 0), index, steps);
        const facts *f = facts_of(a, body);
        if (!f) return a->finding;
        return f->lasting && index >= 0 && f->same[0][index];
    }
    case HLO_OP_CALL: {
        const hlo_computation *called = hlo_instr_comp(value, HLO_ATTR_TO_APPLY);
        return (facts_of(a, called) || a->finding) && agree(a, called->root, index, steps);
    }
    case HLO_OP_CUSTOM_CALL: {
        if (hlo_instr_is_mark(value)) return agree_all(a, value, steps);
        hlo_arena_mark mark = hlo_arena_here(a->arena);
        if (hlo_manual_leaves(value))
            return keep_together(a, hlo_manual_joined(a->arena, value), mark);
        bool tuple = value->shape->type == HLO_TYPE_TUPLE;
        if (!hlo_manual_enters(value) || tuple != (index >= 0)) return false;
        if (tuple ? index >= value->operand_count : value->operand_count != 1) return false;
        uint32_t number = tuple ? (uint32_t)index : 0;
        return agree(a, hlo_instr_operand(value, number), whole, steps) &&
               keep_together(a, hlo_manual_parts(a->arena, value, number), mark);
    }
    case HLO_OP_CONCATENATE:
    case HLO_OP_DOT:
    case HLO_OP_DYNAMIC_UPDATE_SLICE:
    case HLO_OP_REDUCE:
    case HLO_OP_REDUCE_WINDOW:
    case HLO_OP_SORT: return is_plain(value) && agree_all(a, value, steps);
    default:
        return hlo_op_is(value->op, HLO_ELEMENTWISE | HLO_MOVEMENT) && agree_all(a, value, steps);
    }
}

/* ---------------------------------------------------------------------------------------- calls */

static facts *reach(hlo_replication *a, const hlo_computation *comp) {
    facts *f = &a->of[comp->id];
    if (f->reached) return f;
    a->changed = f->reached = f->lasting = true;
    f->same = hlo_arena_array(a->arena, comp->parameter_count, sizeof *f->same);
    for (uint32_t p = 0; p < comp->parameter_count; p++) {
        uint32_t count = element_count(comp->parameters[p]->shape);
        f->same[p] = hlo_arena_array(a->arena, count, sizeof **f->same);
        memset(f->same[p], true, count);
    }
    return f;
}

static void rollback(hlo_replication *a, bool *supposed, bool holds) {
    a->changed |= *supposed && !holds;
    *supposed &= holds;
}

/* Binds the parameter to `value` in this call. */
static void bind(hlo_replication *a, const hlo_computation *comp, uint32_t number,
                 const hlo_instr *value) {
    facts *f = reach(a, comp);
    const hlo_shape *shape = comp->parameters[number]->shape;
    bool tuple = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; i < element_count(shape); i++)
        if (f->same[number][i])
            rollback(a, &f->same[number][i], holds(a, value, tuple ? (int64_t)i : whole));
}

/* Binds the parameters to unknown values. */
static void forget(void *user, hlo_computation *comp) {
    facts *f = reach(user, comp);
    rollback(user, &f->lasting, false);
    for (uint32_t p = 0; p < comp->parameter_count; p++)
        for (uint32_t i = 0; i < element_count(comp->parameters[p]->shape); i++)
            rollback(user, &f->same[p][i], false);
}

static void enter(hlo_replication *a, const hlo_instr *instr) {
    const hlo_computation *called = NULL;
    switch (instr->op) {
    case HLO_OP_WHILE: {
        const hlo_computation *body = hlo_instr_comp(instr, HLO_ATTR_BODY);
        const hlo_computation *condition = hlo_instr_comp(instr, HLO_ATTR_CONDITION);
        const hlo_instr *start = hlo_instr_operand(instr, 0);
        if (start->shape->type != HLO_TYPE_TUPLE) {
            hlo_instr_visit_called(instr, forget, a);
            return;
        }
        bind(a, body, 0, start);
        facts *f = &a->of[body->id], *asked = reach(a, condition);
        for (uint32_t i = 0; i < start->shape->rank; i++) {
            if (f->same[0][i] && !passes_through(body, i))
                rollback(a, &f->same[0][i], holds(a, body->root, i));
            rollback(a, &asked->same[0][i], f->same[0][i]);
        }
        rollback(a, &f->lasting, holds(a, condition->root, whole));
    }
        return;
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
    if (called && called->parameter_count != instr->operand_count) { /* later updates bind others */
        forget(a, (hlo_computation *)(uintptr_t)called);
        return;
    }
    for (uint32_t i = 0; called && i < called->parameter_count; i++)
        bind(a, called, i, hlo_instr_operand(instr, i));
}

/* Returns the facts for the groups, or the facts for all devices if there are too many groups. */
static const hlo_replication *agreement_of(hlo_pass_context *context,
                                           const hlo_device_groups *among) {
    unsigned count = 0;
    for (const hlo_replication *a = context->agreement; a; a = a->next, count++)
        if (hlo_device_groups_refine(a->among, among) && hlo_device_groups_refine(among, a->among))
            return a;
    if (count >= DIVISION_LIMIT && among->count)
        return agreement_of(context, &hlo_device_groups_whole);
    const hlo_module *module = context->module;
    hlo_replication *a = hlo_arena_zero(context->scratch, sizeof *a);
    a->arena = context->scratch;
    a->among = among;
    a->next = context->agreement;
    a->manual = a->next ? a->next->manual : hlo_manual_find(module, a->arena);
    a->count = module->next_computation_id;
    a->of = hlo_arena_zero(a->arena, a->count * sizeof *a->of);
    a->finding = a->changed = true;
    for (unsigned round = 0; a->changed && round < ROUND_LIMIT; round++) {
        a->changed = false;
        for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
            for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i))
                if (comp == module->entry || a->of[comp->id].reached) enter(a, i);
    }
    a->finding = false;
    for (hlo_computation *comp = a->changed ? module->first : NULL; comp; comp = comp->next)
        if (a->of[comp->id].reached) forget(a, comp);
    return context->agreement = a;
}

bool hlo_devices_replicated(hlo_pass_context *context, const hlo_instr *value,
                            const hlo_instr *collective) {
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    const hlo_device_groups *among = hlo_devices_among(context->scratch, collective);
    const hlo_replication *known = context->agreement,
                          *a = agreement_of(context, among ? among : &hlo_device_groups_whole);
    bool agrees = holds(a, value, whole);
    if (known == context->agreement) hlo_arena_release(context->scratch, mark);
    return agrees;
}
