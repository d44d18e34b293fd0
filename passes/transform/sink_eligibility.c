/* Legality of fp8 elements of a tuple: all their uses, through nested loops and branches, are
 * movement, collectives, and then matmuls whose other operand comes from fp8. */
#include "ir/module/known.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/scale_range.h"
#include "passes/builders/granularity.h"
#include "passes/sharding/devices.h"
#include "passes/transform/sink_dequantize.h"

enum { STEP_LIMIT = 1024 };

static void read_element(const hlo_sink_region *e, uint32_t index) {
    static const hlo_sink_mode *const modes[] = {&hlo_sink_stacked, &hlo_sink_invariant,
                                                 &hlo_sink_permuted, &hlo_sink_recomputed};
    const hlo_sink_mode *const *mode = modes;
    hlo_sink_candidate *what = &e->elements[index];
    while ((*mode)->matches && !(*mode)->matches(e, index)) mode++;
    *what = (hlo_sink_candidate){.scale_index = -1, .mode = *mode};
    what->sinks = (*mode)->read(e, index, what);
    double number;
    hlo_instr *scale = what->sinks ? what->from.scale : NULL;
    what->carries_scale = scale && ((*mode)->varies_with || scale->op != HLO_OP_CONSTANT);
    if (what->carries_scale)
        what->sinks =
            hlo_scale_is_moderate(e->context->scratch, scale) &&
            (!what->next.scale || hlo_scale_is_moderate(e->context->scratch, what->next.scale));
    if (scale && !what->carries_scale) /* each use gets a constant of its own */
        what->sinks = !what->dims && hlo_known_number(scale, &number);
}

/* Path of movement from an element to its use; the last link first. */
typedef struct path {
    const struct path *before;
    const hlo_instr *link;
} path;

typedef struct walk {
    const hlo_sink_region *e;
    const hlo_sink_candidate *what;
    uint32_t index;
    unsigned fuel;
    bool matmul; /* a dot uses the value */
} walk;

static bool comes_from_fp8(const walk *w, hlo_instr *value) {
    hlo_dequantized made;
    if (value->id < w->e->known && hlo_fp8_provenance_has(w->e->provenance, value)) return true;
    for (unsigned depth = 0; depth < HLO_SINK_DEPTH_LIMIT && hlo_chain_link(value); depth++)
        value = hlo_instr_operand(value, 0);
    return hlo_dequantized_read(value, &made);
}

/* True if `value` is an element that was a candidate and stays wide. */
static bool stays_wide(const hlo_sink_region *e, const hlo_instr *value) {
    for (uint32_t i = 0; i < e->called_count; i++) {
        int64_t index = hlo_sink_index(hlo_sink_moved_from(value), e->called[i]->parameters[0]);
        if (index >= 0 && index < e->count) return !e->elements[index].sinks;
    }
    return false;
}

static bool agrees(const walk *w, const hlo_instr *collective) {
    const hlo_sink_candidate *what = w->what;
    if (!what->from.scale) return true;
    if (!hlo_devices_replicated(w->e->context, what->from.scale, collective)) return false;
    return !what->mode->varies_with ||
           hlo_devices_replicated(w->e->context, what->mode->varies_with(w->e, w->index),
                                  collective);
}

/* Finds the granularity of a collective's operand. False: the scale may differ among the devices
 * whose parts it joins. */
static bool granularity_below_collective(const walk *w, const hlo_instr *collective,
                                         const hlo_granularity *granularity, hlo_granularity *out) {
    *out = *granularity;
    if (collective->op == HLO_OP_COLLECTIVE_PERMUTE) return true;
    if (collective->op != HLO_OP_ALL_GATHER) return false;
    int64_t along = hlo_instr_ints(collective, HLO_ATTR_DIMENSIONS)->v[0];
    if (granularity->v[along] == 1) return true;
    out->v[along] = hlo_instr_operand(collective, 0)->shape->dims[along];
    return granularity->v[along] >= collective->shape->dims[along] && agrees(w, collective);
}

/* True if the scale does not vary along the contracting dimensions of the dot. */
static bool scale_passes(const walk *w, const hlo_instr *dot, bool right, const path *last) {
    if (!w->what->from.scale || !w->what->dims) return true;
    hlo_granularity granularity, below;
    const hlo_shape *shape = hlo_instr_operand(dot, right)->shape;
    const hlo_ints *contracted = hlo_dot_contracting(dot, right);
    if (shape->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < shape->rank; i++) granularity.v[i] = 1;
    for (uint32_t i = 0; contracted && i < contracted->count; i++)
        granularity.v[contracted->v[i]] = shape->dims[contracted->v[i]];
    for (; last; last = last->before, granularity = below)
        if (hlo_op_is(last->link->op, HLO_COLLECTIVE)
                ? !granularity_below_collective(w, last->link, &granularity, &below)
                : !hlo_granularity_of_operand(last->link, &granularity, &below))
            return false;
    for (uint32_t i = 0; i < w->what->dims->count; i++)
        if (granularity.v[w->what->dims->v[i]] != 1) return false;
    return true;
}

static bool is_legal_collective(const walk *w, const hlo_instr *user) {
    return hlo_sink_is_collective(user) && (w->what->dims || agrees(w, user));
}

static bool are_uses_legal(walk *w, const hlo_instr *value, const path *last);

/* Checks the uses of the element `index` of `tuple`. */
static bool are_element_uses_legal(walk *w, const hlo_instr *tuple, int64_t index,
                                   const path *last) {
    if (tuple == tuple->parent->root) return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT || use->user->pin) return false;
        if (hlo_sink_index(use->user, tuple) == index && !are_uses_legal(w, use->user, last))
            return false;
    }
    return true;
}

static bool is_callee_legal(walk *w, const hlo_computation *comp, int64_t index, const path *last) {
    return comp && comp->parameter_count == 1 && !comp->parameters[0]->pin &&
           w->e->callers[comp->id] && are_element_uses_legal(w, comp->parameters[0], index, last);
}

static bool is_loop_legal(walk *w, const hlo_instr *loop, int64_t index, const path *last) {
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    if (body->root->op != HLO_OP_TUPLE || body->root->pin || body->parameter_count != 1 ||
        hlo_sink_index(hlo_instr_operand(body->root, (uint32_t)index), body->parameters[0]) !=
            index)
        return false;
    return is_callee_legal(w, body, index, last) &&
           is_callee_legal(w, hlo_instr_comp(loop, HLO_ATTR_CONDITION), index, last) &&
           are_element_uses_legal(w, loop, index, last);
}

static bool is_branch_legal(walk *w, const hlo_instr *conditional, uint32_t operand, int64_t index,
                            const path *last) {
    const hlo_attr *list = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    if (!operand || (list && operand > list->u.comps->count)) return false;
    const hlo_computation *branch =
        list ? list->u.comps->v[operand - 1]
             : hlo_instr_comp(conditional, operand == 1 ? HLO_ATTR_TRUE_COMPUTATION
                                                        : HLO_ATTR_FALSE_COMPUTATION);
    return is_callee_legal(w, branch, index, last);
}

/* Checks the loops and branches that take a tuple with the value at `index`. */
static bool are_tuple_uses_legal(walk *w, const hlo_instr *tuple, int64_t index, const path *last) {
    if (tuple == tuple->parent->root) return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        const hlo_instr *user = use->user;
        if (user->op != HLO_OP_WHILE && user->op != HLO_OP_CONDITIONAL) return false;
        if (hlo_pin_holds(user)) return false;
        if (user->op == HLO_OP_WHILE
                ? !is_loop_legal(w, user, index, last)
                : !is_branch_legal(w, user, (uint32_t)(use - user->operands), index, last))
            return false;
    }
    return true;
}

static bool is_dot_legal(walk *w, const hlo_use *use, const path *last) {
    const hlo_instr *dot = use->user;
    if (dot->operand_count != 2) return false;
    uint32_t number = (uint32_t)(use - dot->operands);
    hlo_instr *other = hlo_instr_operand(dot, !number);
    w->matmul = true;
    return comes_from_fp8(w, other) && !stays_wide(w->e, other) &&
           scale_passes(w, dot, number, last);
}

static bool is_legal_use(walk *w, const hlo_use *use, const path *last) {
    const hlo_instr *user = use->user, *value = use->def;
    if (hlo_pin_holds(user)) return false;
    if (user == user->parent->root && user->op == HLO_OP_TUPLE) {
        if (hlo_sink_is_next(w->e, use, w->index)) return true;
        /* The body of an inner loop returns the element unchanged. */
        const hlo_instr *caller = w->e->callers[user->parent->id];
        return caller && caller != w->e->user && caller->op == HLO_OP_WHILE &&
               hlo_sink_index(value, user->parent->parameters[0]) == use - user->operands;
    }
    if (user->op == HLO_OP_TUPLE) return are_tuple_uses_legal(w, user, use - user->operands, last);
    if (user->op == HLO_OP_DOT) return is_dot_legal(w, use, last);
    bool moves =
        hlo_chain_link(user) && use == user->operands && hlo_link_moves(user, &w->what->from);
    if (!moves && !is_legal_collective(w, user)) return false;
    return are_uses_legal(w, user, &(path){last, user});
}

/* True if every use can take the fp8 value. */
static bool are_uses_legal(walk *w, const hlo_instr *value, const path *last) {
    if (value == value->parent->root) return false;
    for (const hlo_use *use = value->uses; use; use = use->next) {
        if (!w->fuel) return false;
        w->fuel--;
        if (!is_legal_use(w, use, last)) return false;
    }
    return true;
}

/* Clears `sinks` for a candidate with an illegal use, or without a matmul. */
static void check_candidate(const hlo_sink_region *e, uint32_t index) {
    hlo_sink_candidate *what = &e->elements[index];
    walk w = {e, what, index, STEP_LIMIT, false};
    bool eligible = true;
    if (what->mode->after)
        eligible = are_element_uses_legal(&w, e->user, index, NULL);
    else
        for (uint32_t i = 0; eligible && i < e->called_count; i++)
            eligible = are_element_uses_legal(&w, e->called[i]->parameters[0], index, NULL);
    what->sinks = eligible && w.matmul;
}

bool hlo_sink_choose(hlo_sink_region *e) {
    bool any = false, changes = true;
    for (uint32_t i = 0; i < e->count; i++) {
        read_element(e, i);
        any |= e->elements[i].sinks;
    }
    while (any && changes) {
        any = changes = false;
        for (uint32_t i = 0; i < e->count; i++) {
            if (!e->elements[i].sinks) continue;
            check_candidate(e, i);
            any |= e->elements[i].sinks;
            changes |= !e->elements[i].sinks;
        }
    }
    return any;
}
