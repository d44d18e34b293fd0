/* SPDX-License-Identifier: Apache-2.0 */
/* Analyzes the devices of a module and the groups that its collectives connect. */
#include "passes/sharding/devices.h"

#include <string.h>

#include "ir/device_list.h"
#include "ir/devices/boundary.h"
#include "ir/ir.h"
#include "ir/module/known.h"

static int64_t header_int(const hlo_module *module, hlo_attr_id id) {
    int64_t count = hlo_module_int(module, id, 1);
    return count > 1 ? count : 1;
}

int64_t hlo_devices_partitions(const hlo_module *module) {
    return header_int(module, HLO_ATTR_NUM_PARTITIONS);
}

int64_t hlo_devices_replicas(const hlo_module *module) {
    return header_int(module, HLO_ATTR_REPLICA_COUNT);
}

const hlo_instruction *hlo_devices_sender(const hlo_instruction *instr) {
    while (hlo_op_async_pair(HLO_OP_INVALID, instr->op) && instr->operand_count)
        instr = hlo_instr_operand(instr, 0);
    if (instr->op != HLO_OP_ASYNC_START) return instr;
    const hlo_computation *called = hlo_instr_comp(instr, HLO_ATTR_CALLS);
    const hlo_instruction *wrapped = called ? hlo_async_wrapped(called) : NULL;
    return wrapped ? wrapped : instr;
}

/* Returns the groups of devices that a collective, or the start of one, connects; NULL if unknown.
 * Some collectives have an attribute by which their groups contain partitions or devices. All other
 * collectives name replicas. Their groups span all partitions if the collective has a channel,
 * otherwise one partition. If the header does not have the number of devices, the named devices
 * count as all devices; the number of partitions is then unknown for collectives with channels. */
static const hlo_device_groups *groups_among(hlo_arena *arena, const hlo_instruction *collective) {
    collective = hlo_devices_sender(collective);
    const hlo_module *module = collective->parent->module;
    int64_t partitions = hlo_devices_partitions(module), replicas = hlo_devices_replicas(module);
    const hlo_groups *groups = hlo_instr_groups(collective, HLO_ATTR_REPLICA_GROUPS);
    bool channel = hlo_instr_attr(collective, HLO_ATTR_CHANNEL_ID);
    bool global = hlo_instr_int(collective, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0);
    bool told = partitions > 1 || replicas > 1;
    bool several = told ? partitions > 1 : module->attrs_seen[HLO_ATTR_CHANNEL_ID];
    if (several && !global && (!channel || replicas > 1)) return NULL;
    if (several && !global &&
        !(collective->op == HLO_OP_ALL_TO_ALL || collective->op == HLO_OP_COLLECTIVE_PERMUTE ||
          collective->op == HLO_OP_COLLECTIVE_PERMUTE_START))
        return told || !groups || groups->devices < 2 ? &hlo_device_groups_whole : NULL;
    int64_t devices = partitions * replicas > 1 ? partitions * replicas : 0;
    const hlo_groups *pairs = hlo_instr_groups(collective, HLO_ATTR_SOURCE_TARGET_PAIRS);
    if (pairs) return hlo_device_groups_of_pairs(arena, pairs, devices);
    return hlo_device_groups_of_lists(arena, groups, devices);
}

int64_t hlo_devices_free_channel(const hlo_module *module) {
    int64_t most = 0;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            int64_t channel = hlo_instr_int(i, HLO_ATTR_CHANNEL_ID, 0);
            if (channel > most) most = channel;
        }
    return most + 1;
}

/* --------------------------------------------------------------------------------------- depths */

/* Manual regions are code for a single device (jax's shard_map) in a module that the partitioner
 * has not processed.
 *
 * Outside of all regions, at depth 0, a value exists once for all devices, and the partitioner will
 * split it. An operand that enters a region is already split into one part for each device. Two
 * parts are equal only if the value outside was replicated, or both devices received the same part.
 * A region may contain another region, which splits values further.
 *
 * The analysis finds the depths of values, and the operands that enter and leave regions.
 *
 * The depth of an instruction is derived from its operands. An instruction that enters a region is
 * one deeper than its operands, and an instruction that leaves a region is one less deep. Any other
 * instruction has the same depth. A computation has the depth of its callers. Sets of depths only
 * grow: a value with several possible depths is not analyzed. */

/* Bit n of a set stands for depth n; the bit DEEPEST also stands for every greater depth. Constants
 * and other values that belong to every depth have an empty set. */
enum { OUTSIDE = 1, DEEPEST = 0x40, DEPTHS = 0x7f, BY_DEVICE = 0x80, ANYWHERE = 0xff };

enum { DEPTH_ROUND_LIMIT = 16 };

typedef struct hlo_manual {
    uint32_t count;   /* size of `depths` */
    uint8_t *depths;  /* by instruction id; BY_DEVICE if devices differ */
    uint8_t *entered; /* by computation id: depths of the operands of its callers */
    bool *reached;    /* by computation id: true if the computation is reached */
    bool changes, any;
} hlo_manual;

/* Returns the depths of the instruction `leaves`, which leaves a region. Shardy's custom call
 * leaves one region. XLA's older custom call may leave several regions; the sharding of its result
 * shows whether the result is still in a region. */
static uint8_t less_deep(const hlo_instruction *leaves, uint8_t depths) {
    const hlo_sharding *sharding = hlo_instr_sharding(leaves);
    bool older = hlo_is_custom_call(leaves, "SPMDShardToFullShape");
    if (older && sharding && !hlo_sharding_has(sharding, HLO_SHARDING_MANUAL)) return OUTSIDE;
    if (!(depths & DEPTHS)) return BY_DEVICE; /* the region has no operand */
    uint8_t left = (uint8_t)((depths & DEPTHS) >> 1 | (depths & DEEPEST));
    bool fits = left && !(depths & OUTSIDE) && !(older && left & OUTSIDE);
    return fits ? left : ANYWHERE;
}

typedef struct visit {
    hlo_manual *m;
    uint8_t depths; /* depths of the caller's operands */
} visit;

static void grow(hlo_manual *m, uint8_t *depths, uint8_t by) {
    m->changes |= (*depths | by) != *depths;
    *depths |= by;
}

/* Enters a callee at the depths of the call. The results of the call also have these depths, or any
 * depth if the callee's root has another depth. */
static void visit_called(void *user, hlo_computation *called) {
    visit *v = user;
    hlo_manual *m = v->m;
    m->changes |= !m->reached[called->id];
    m->reached[called->id] = true;
    grow(m, &m->entered[called->id], v->depths);
    uint8_t root = m->depths[called->root->id];
    if (root & DEPTHS & ~m->entered[called->id]) v->depths = ANYWHERE;
    v->depths |= root & BY_DEVICE;
}

static uint8_t depths_of(hlo_manual *m, const hlo_instruction *instr) {
    visit v = {.m = m};
    if (instr->op == HLO_OP_PARAMETER) return m->entered[instr->parent->id];
    if (instr->op == HLO_OP_PARTITION_ID || instr->op == HLO_OP_REPLICA_ID) return BY_DEVICE;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        v.depths |= m->depths[hlo_instr_operand(instr, i)->id];
    hlo_instr_visit_called(instr, visit_called, &v);
    m->any |= hlo_manual_enters(instr);
    return hlo_manual_enters(instr)
               ? (uint8_t)((v.depths << 1 & DEPTHS) | (v.depths & (DEEPEST | BY_DEVICE)))
           : hlo_manual_leaves(instr) ? less_deep(instr, v.depths)
                                      : v.depths;
}

/* Finds the depths. All depths are unknown in a partitioned module. They are also unknown if a
 * collective is outside of all regions, because devices do not exchange global values. */
static const hlo_manual *find_depths(const hlo_module *module, hlo_arena *arena) {
    hlo_manual *m = hlo_arena_zero(arena, sizeof *m);
    /* Analyze only a module that, by its header and names, may not be partitioned yet. */
    if (!(hlo_devices_replicas(module) == 1 && !hlo_boundary_spmd(module->entry) &&
          module->attrs_seen[HLO_ATTR_CUSTOM_CALL_TARGET]))
        return m;
    m->depths = hlo_arena_zero(arena, module->next_id);
    m->entered = hlo_arena_zero(arena, module->next_computation_id);
    m->reached = hlo_arena_zero(arena, module->next_computation_id * sizeof *m->reached);
    m->reached[module->entry->id] = true;
    m->entered[module->entry->id] = OUTSIDE;
    m->changes = true;
    for (unsigned round = 0; m->changes && round < DEPTH_ROUND_LIMIT; round++) {
        m->changes = false;
        for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
            for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
                if (m->reached[comp->id]) grow(m, &m->depths[i->id], depths_of(m, i));
    }
    bool understood = !m->changes && m->any;
    for (const hlo_computation *comp = module->first; comp && understood; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
            if (hlo_op_is(i->op, HLO_COLLECTIVE) && m->reached[comp->id])
                understood &= !(m->depths[i->id] & OUTSIDE);
    m->count = understood ? module->next_id : 0;
    return m;
}

const bool *hlo_devices_outside(const hlo_module *module, hlo_arena *arena) {
    bool any = false;
    for (const hlo_computation *comp = module->first; comp && !any; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i && !any; i = hlo_instr_next(i))
            any = hlo_manual_enters(i);
    if (!any) return NULL;
    const hlo_manual *m = find_depths(module, arena);
    bool *outside = hlo_arena_zero(arena, module->next_id);
    for (uint32_t id = 0; id < m->count; id++) outside[id] = m->depths[id] == OUTSIDE;
    return outside;
}

/* ---------------------------------------------------------------------------------- replication */

/* Replicated values are equal on all devices of a group.
 *
 * Given a partition of the devices into groups, the analysis decides whether a value is equal
 * within each group, in every execution. It proves replication in the cases below, and assumes
 * otherwise that the value may differ. A value is replicated:
 *   - outside all manual regions of a module with manual regions, because the value exists once;
 *   - as a parameter of the entry of another module: if its sharding gives all devices of a group
 *     the same part;
 *   - as a constant or an iota;
 *   - as a parameter of a called computation: if the argument is replicated in all calls;
 *   - as the result of an all-reduce or all-gather: if each group is inside a group of that
 *     collective;
 *   - entering a manual region: if the operand is replicated, and all devices of a group get the
 *     same part of it;
 *   - leaving a region: on the devices whose parts are joined;
 *   - as the result of a loop: if it is replicated before the loop and after each iteration, and
 *     the trip count is equal on all devices; or if the loop carries it unchanged;
 *   - as the result of a call: if the root of the callee is replicated; also through tuples;
 *   - as the result of an opcode that depends only on its operands: if the operands are replicated.
 *
 * Parameters are analyzed for the whole module, as a greatest fixpoint: all parameters are assumed
 * to be replicated, and assumptions that prove wrong are withdrawn until none is left. */

enum { STEP_LIMIT = 256, ROUND_LIMIT = 32, DIVISION_LIMIT = 8 };

/* Replication of the parameters of a computation, or of their elements. */
typedef struct facts {
    bool reached; /* the computation has a caller */
    bool lasting; /* for the body of a loop: the trip count is the same on all devices */
    bool **same;  /* by parameter and tuple element; an array has one element */
} facts;

typedef struct hlo_replication {
    hlo_arena *arena;
    const hlo_device_groups *among; /* groups within which the facts hold */
    const hlo_manual *manual;
    struct hlo_replication *next;
    uint32_t count; /* number of computations in `of`, which is indexed by computation id */
    facts *of;
    bool finding; /* the fixpoint is not reached yet, so no fact is certain */
    bool changed; /* a fact was withdrawn, or another computation was reached */
} hlo_replication;

/* Index of a whole value, not of an element of a tuple. */
static const int64_t whole = -1;

static bool agree(const hlo_replication *a, const hlo_instruction *value, int64_t index,
                  unsigned *steps);

static bool holds(const hlo_replication *a, const hlo_instruction *value, int64_t index) {
    unsigned steps = 0;
    return agree(a, value, index, &steps);
}

static const facts *facts_of(const hlo_replication *a, const hlo_computation *comp) {
    return comp && comp->id < a->count && a->of[comp->id].reached ? &a->of[comp->id] : NULL;
}

static uint32_t element_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

/* True if `parts` (NULL: unknown) puts devices that must agree into the same part. Releases the
 * memory of `parts`, which was allocated since `mark`. */
static bool keep_together(const hlo_replication *a, const hlo_device_groups *parts,
                          hlo_arena_mark mark) {
    bool together = parts && hlo_device_groups_refine(a->among, parts);
    hlo_arena_release(a->arena, mark);
    return together;
}

/* True if the loop carries the element unchanged. */
static bool passes_through(const hlo_computation *body, int64_t index) {
    if (body->root->op != HLO_OP_TUPLE || index < 0) return false;
    const hlo_instruction *next = hlo_instr_operand(body->root, (uint32_t)index);
    return next->op == HLO_OP_GET_TUPLE_ELEMENT &&
           hlo_instr_operand(next, 0) == body->parameters[0] &&
           hlo_instr_int(next, HLO_ATTR_INDEX, whole) == index;
}

static bool agree_all(const hlo_replication *a, const hlo_instruction *value, unsigned *steps) {
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!agree(a, hlo_instr_operand(value, i), whole, steps)) return false;
    return value->operand_count > 0;
}

/* True if the computation that the instruction applies gives the same result for the same operands
 * on every device. */
static bool is_plain(const hlo_instruction *instr) {
    const hlo_computation *apply = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
    for (const hlo_instruction *i = apply ? apply->first : NULL; i; i = hlo_instr_next(i)) {
        bool handed = i->op == HLO_OP_PARAMETER || i->op == HLO_OP_CONSTANT ||
                      i->op == HLO_OP_TUPLE || i->op == HLO_OP_GET_TUPLE_ELEMENT ||
                      hlo_instr_is_mark(i);
        if (!handed && !hlo_op_is(i->op, HLO_ELEMENTWISE | HLO_MOVEMENT)) return false;
    }
    return true;
}

static bool agree(const hlo_replication *a, const hlo_instruction *value, int64_t index,
                  unsigned *steps) {
    if ((*steps)++ >= STEP_LIMIT) return false;
    /* A value outside all manual regions is replicated. New values are not in the table. */
    if (value->id < a->manual->count && a->manual->depths[value->id] == OUTSIDE) return true;
    switch (value->op) {
    case HLO_OP_CONSTANT:
    case HLO_OP_IOTA: return true;
    case HLO_OP_PARAMETER: {
        const hlo_computation *comp = value->parent;
        if (comp == comp->module->entry) {
            /* Devices to which the sharding gives the same part have the same value. */
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
               keep_together(a, groups_among(a->arena, value), mark);
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

static void bind(hlo_replication *a, const hlo_computation *comp, uint32_t number,
                 const hlo_instruction *value) {
    facts *f = reach(a, comp);
    const hlo_shape *shape = comp->parameters[number]->shape;
    bool tuple = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; i < element_count(shape); i++)
        if (f->same[number][i])
            rollback(a, &f->same[number][i], holds(a, value, tuple ? (int64_t)i : whole));
}

/* Binds the parameters of the computation to unknown values. */
static void forget(void *user, hlo_computation *comp) {
    facts *f = reach(user, comp);
    rollback(user, &f->lasting, false);
    for (uint32_t p = 0; p < comp->parameter_count; p++)
        for (uint32_t i = 0; i < element_count(comp->parameters[p]->shape); i++)
            rollback(user, &f->same[p][i], false);
}

static void enter(hlo_replication *a, const hlo_instruction *instr) {
    const hlo_computation *called = NULL;
    switch (instr->op) {
    case HLO_OP_WHILE: {
        const hlo_computation *body = hlo_instr_comp(instr, HLO_ATTR_BODY);
        const hlo_computation *condition = hlo_instr_comp(instr, HLO_ATTR_CONDITION);
        const hlo_instruction *start = hlo_instr_operand(instr, 0);
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
    if (called && called->parameter_count != instr->operand_count) { /* later async-updates bind
                                                                      * other parameters */
        forget(a, (hlo_computation *)(uintptr_t)called);
        return;
    }
    for (uint32_t i = 0; called && i < called->parameter_count; i++)
        bind(a, called, i, hlo_instr_operand(instr, i));
}

/* Returns the facts for the groups of a collective, or the facts for all devices if too many
 * different groups occur. */
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
    a->manual = a->next ? a->next->manual : find_depths(module, a->arena);
    a->count = module->next_computation_id;
    a->of = hlo_arena_zero(a->arena, a->count * sizeof *a->of);
    a->finding = a->changed = true;
    for (unsigned round = 0; a->changed && round < ROUND_LIMIT; round++) {
        a->changed = false;
        for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
            for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
                if (comp == module->entry || a->of[comp->id].reached) enter(a, i);
    }
    a->finding = false;
    for (hlo_computation *comp = a->changed ? module->first : NULL; comp; comp = comp->next)
        if (a->of[comp->id].reached) forget(a, comp);
    return context->agreement = a;
}

bool hlo_devices_replicated(hlo_pass_context *context, const hlo_instruction *value,
                            const hlo_instruction *collective) {
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    const hlo_device_groups *among = groups_among(context->scratch, collective);
    const hlo_replication *known = context->agreement,
                          *a = agreement_of(context, among ? among : &hlo_device_groups_whole);
    bool agrees = holds(a, value, whole);
    if (known == context->agreement) hlo_arena_release(context->scratch, mark);
    return agrees;
}
