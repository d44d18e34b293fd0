/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the units of a computation that run, and their order. */
#include <string.h>

#include "ir/text/diag.h"
#include "runtime/plan/build.h"

void build_refuse(build *b, const hlo_instruction *instr, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(b->plan->module, b->sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, instr->offset,
                   strlen(instr->name), format, args);
    va_end(args);
    b->failed = true;
}

bool build_is_static(const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            if (!build_is_static(shape->elements[i])) return false;
        return true;
    }
    return !shape->dynamic && shape->rank <= HLO_EVAL_MAX_RANK &&
           (!hlo_types[shape->type].bytes || hlo_shape_is_addressable(shape));
}

/* Units are numbered: a single instruction has the number of its position in the computation; a
 * group has the number of instructions plus the group's index. */
typedef struct order {
    const build *b;
    uint32_t instr_count, unit_count;
    const hlo_instruction **instrs; /* indexed by position */
    hlo_group *groups;
    uint32_t *maker;   /* by position of an instruction: the unit that computes its value */
    bool *wanted;      /* by unit: true if the unit runs */
    uint8_t *state;    /* by unit: UNSEEN, OPEN or MADE */
    uint32_t *waiting; /* a stack of units */
    uint32_t *next;    /* parallel to `waiting`: number of inputs that were scheduled */
    uint32_t *made;    /* units in execution order */
    uint32_t count;
} order;

enum { UNSEEN, OPEN, MADE };

static uint32_t place_of(const order *o, const hlo_instruction *instr) {
    return o->b->place[instr->id - o->b->first_id];
}

static build_unit unit_at(const order *o, uint32_t unit) {
    if (unit < o->instr_count) return (build_unit){.instr = o->instrs[unit]};
    const hlo_group *group = &o->groups[unit - o->instr_count];
    return (build_unit){.instr = group->instrs[group->instr_count - 1], .group = group};
}

static uint32_t input_count(build_unit unit) {
    return unit.group ? unit.group->input_count : unit.instr->operand_count;
}

static uint32_t maker_of_input(const order *o, build_unit unit, uint32_t index) {
    const hlo_instruction *input =
        unit.group ? unit.group->inputs[index] : hlo_instr_operand(unit.instr, index);
    return o->maker[place_of(o, input)];
}

/* True if the instruction runs even if nothing reads its value. */
static bool is_wanted(const hlo_plan *plan, const hlo_instruction *instr) {
    return plan_effects_of(plan, instr) || plan_keeps(plan, instr);
}

/* Returns an array by position, which is true for instructions on which the root, a side effect or
 * a saved value depends. */
static bool *find_live(const order *o) {
    bool *live = hlo_arena_zero(o->b->plan->arena, o->instr_count);
    const hlo_computation *comp = o->b->comp->comp;
    live[place_of(o, comp->root)] = true;
    for (const hlo_instruction *i = comp->last; i; i = i->prev) {
        uint32_t place = place_of(o, i);
        if (is_wanted(o->b->plan, i)) live[place] = true;
        if (!live[place]) continue;
        for (uint32_t k = 0; k < i->operand_count; k++)
            live[place_of(o, hlo_instr_operand(i, k))] = true;
    }
    return live;
}

static void want(order *o, uint32_t unit, uint32_t *waiting) {
    if (o->wanted[unit]) return;
    o->wanted[unit] = true;
    o->waiting[(*waiting)++] = unit;
}

/* Schedules a unit after those that it depends on. Returns false if it depends on itself. */
static bool make(order *o, uint32_t unit) {
    uint32_t depth = 0;
    if (o->state[unit] == MADE) return true;
    o->state[unit] = OPEN;
    o->next[depth] = 0;
    o->waiting[depth++] = unit;
    while (depth) {
        uint32_t top = o->waiting[depth - 1];
        build_unit u = unit_at(o, top);
        if (o->next[depth - 1] == input_count(u)) {
            o->state[top] = MADE;
            o->made[o->count++] = top;
            depth--;
            continue;
        }
        uint32_t input = maker_of_input(o, u, o->next[depth - 1]++);
        if (o->state[input] == OPEN) return false;
        if (o->state[input] == MADE) continue;
        o->state[input] = OPEN;
        o->next[depth] = 0;
        o->waiting[depth++] = input;
    }
    return true;
}

enum { FEW_INPUTS = 64 };

/* The state of a second ordering, in which a unit that frees more bytes than it allocates runs as
 * soon as its inputs are available. */
typedef struct hastening {
    order *o;
    uint32_t *first_user,
        *users;       /* by unit: index in `users` of its first user, plus one entry for the end */
    uint32_t *unread; /* by unit: number of reads of the unit's values by units that are not
                       * scheduled */
    uint32_t *waits;  /* by unit: number of the unit's inputs that are not scheduled */
    bool *done;
    uint32_t *stack, depth, *out, count;
} hastening;

/* Returns the bytes of the memory that a unit's results occupy, or 0 if they have no memory of
 * their own. With `surely`, also returns 0 if it is uncertain that they have memory of their
 * own. */
static int64_t bytes_of(const order *o, uint32_t unit, bool surely) {
    const build_unit u = unit_at(o, unit);
    int64_t bytes = 0;
    for (uint32_t i = 0; u.group && i < u.group->result_count; i++)
        bytes += hlo_shape_bytes(u.group->results[i]->shape);
    const hlo_op op = u.instr->op;
    if (u.group || op == HLO_OP_PARAMETER || op == HLO_OP_CONSTANT ||
        !hlo_shape_is_array(u.instr->shape) || op == HLO_OP_GET_TUPLE_ELEMENT ||
        (surely && hlo_op_is(op, HLO_MOVES_DIMENSIONS)))
        return bytes;
    return hlo_shape_bytes(u.instr->shape);
}

/* True if the unit may run earlier: only its inputs determine its order, and it has few inputs. */
static bool may_move(const order *o, uint32_t unit) {
    const build_unit u = unit_at(o, unit);
    if (input_count(u) > FEW_INPUTS) return false;
    if (u.group) return true;
    if (!hlo_shape_is_array(u.instr->shape) || plan_looks(o->b->plan)) return false;
    switch (u.instr->op) {
    case HLO_OP_CALL:
    case HLO_OP_FUSION:
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_CUSTOM_CALL:
    case HLO_OP_GET_TUPLE_ELEMENT: return false;
    default:
        return !hlo_op_is(u.instr->op, HLO_SIDE_EFFECT | HLO_NONDET | HLO_COLLECTIVE) &&
               !hlo_op_is(u.instr->op, HLO_SOLE_CALLER);
    }
}

/* Pushes the unit onto the stack if it can run now and frees more bytes than it allocates. */
static void consider(hastening *h, uint32_t unit) {
    if (h->done[unit] || h->waits[unit] || !may_move(h->o, unit)) return;
    const build_unit u = unit_at(h->o, unit);
    int64_t gain = -bytes_of(h->o, unit, false);
    for (uint32_t i = 0; i < input_count(u); i++) {
        const uint32_t maker = maker_of_input(h->o, u, i);
        uint32_t reads = 0, before = 0;
        for (uint32_t k = 0; k < input_count(u); k++) {
            reads += maker_of_input(h->o, u, k) == maker;
            before += k < i && maker_of_input(h->o, u, k) == maker;
        }
        if (!before && reads == h->unread[maker]) gain += bytes_of(h->o, maker, true);
    }
    if (gain > 0) {
        h->done[unit] = true;
        h->stack[h->depth++] = unit;
    }
}

/* Appends a unit to the order, and pushes units that should follow immediately onto the stack. */
static void append(hastening *h, uint32_t unit) {
    const build_unit u = unit_at(h->o, unit);
    h->done[unit] = true;
    h->out[h->count++] = unit;
    for (uint32_t k = h->first_user[unit]; k < h->first_user[unit + 1]; k++)
        h->waits[h->users[k]]--;
    for (uint32_t i = 0; i < input_count(u); i++) h->unread[maker_of_input(h->o, u, i)]--;
    for (uint32_t k = h->first_user[unit]; k < h->first_user[unit + 1]; k++)
        consider(h, h->users[k]);
    for (uint32_t i = 0; i < input_count(u); i++) {
        const uint32_t maker = maker_of_input(h->o, u, i);
        for (uint32_t k = h->first_user[maker];
             h->unread[maker] == 1 && k < h->first_user[maker + 1]; k++)
            consider(h, h->users[k]);
    }
}

static void hasten(order *o) {
    hlo_arena *arena = o->b->plan->arena;
    const size_t size = (o->unit_count + 1) * sizeof(uint32_t);
    hastening h = {.o = o,
                   .first_user = hlo_arena_zero(arena, size),
                   .unread = hlo_arena_zero(arena, size),
                   .waits = hlo_arena_zero(arena, size),
                   .done = hlo_arena_zero(arena, o->unit_count),
                   .stack = hlo_arena_alloc(arena, size),
                   .out = hlo_arena_alloc(arena, size)};
    uint32_t *fill = hlo_arena_zero(arena, size);
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t m = 0; m < o->count; m++) {
            const build_unit u = unit_at(o, o->made[m]);
            for (uint32_t i = 0; i < input_count(u); i++) {
                const uint32_t maker = maker_of_input(o, u, i);
                if (pass) {
                    h.users[fill[maker]++] = o->made[m];
                    h.waits[o->made[m]]++;
                } else {
                    h.unread[maker]++;
                }
            }
        }
        for (uint32_t unit = 0; !pass && unit < o->unit_count; unit++)
            h.first_user[unit + 1] = fill[unit + 1] = h.first_user[unit] + h.unread[unit];
        if (!pass) h.users = hlo_arena_array(arena, h.first_user[o->unit_count], sizeof *h.users);
    }
    h.unread[o->maker[place_of(o, o->b->comp->comp->root)]]++; /* the caller reads the root */
    for (uint32_t m = 0; m < o->count; m++) {
        if (h.done[o->made[m]]) continue;
        append(&h, o->made[m]);
        while (h.depth) append(&h, h.stack[--h.depth]);
    }
    o->made = h.out;
}

build_unit *build_order(build *b, uint32_t *out_count) {
    const hlo_plan *plan = b->plan;
    hlo_arena *arena = plan->arena;
    const hlo_computation *comp = b->comp->comp;
    order o = {.b = b, .instr_count = comp->instr_count};
    o.instrs = hlo_arena_array(arena, o.instr_count, sizeof *o.instrs);
    for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
        o.instrs[place_of(&o, i)] = i;
    const bool *live = find_live(&o);
    const hlo_instruction **instrs = hlo_arena_array(arena, o.instr_count, sizeof *instrs);
    uint32_t live_count = 0;
    for (uint32_t i = 0; i < o.instr_count; i++)
        if (live[i] && build_is_static(o.instrs[i]->shape)) instrs[live_count++] = o.instrs[i];
    const hlo_backend *backend = plan->backend;
    /* A group could need a transfer that comes after another one, on which it depends, too. */
    const bool groupable = !plan_looks(plan) && !(plan->effects[comp->id] & PLAN_TRANSFER);
    uint32_t groups = backend->group && groupable
                          ? backend->group(plan->device, instrs, live_count, arena, &o.groups)
                          : 0;
    uint32_t *seen = hlo_arena_zero(arena, o.instr_count * sizeof *seen);
    o.unit_count = o.instr_count + groups;
    o.maker = hlo_arena_array(arena, o.instr_count, sizeof *o.maker);
    for (uint32_t i = 0; i < o.instr_count; i++) o.maker[i] = i;
    for (uint32_t g = 0; g < groups; g++) {
        /* Set the group's inputs: the operands of members that are not members, each once. */
        hlo_group *group = &o.groups[g];
        const uint32_t mark = g + 1;
        uint32_t most = 0;
        for (uint32_t i = 0; i < group->instr_count; i++) {
            seen[place_of(&o, group->instrs[i])] = mark;
            most += group->instrs[i]->operand_count;
        }
        group->inputs = hlo_arena_array(arena, most, sizeof *group->inputs);
        group->input_count = 0;
        for (uint32_t i = 0; i < group->instr_count; i++)
            for (uint32_t k = 0; k < group->instrs[i]->operand_count; k++) {
                const hlo_instruction *operand = hlo_instr_operand(group->instrs[i], k);
                uint32_t *mine = &seen[place_of(&o, operand)];
                if (*mine != mark) group->inputs[group->input_count++] = operand;
                *mine = mark;
            }
        for (uint32_t i = 0; i < group->result_count; i++)
            o.maker[place_of(&o, group->results[i])] = o.instr_count + g;
    }
    o.wanted = hlo_arena_zero(arena, o.unit_count);
    o.state = hlo_arena_zero(arena, o.unit_count);
    o.waiting = hlo_arena_array(arena, o.unit_count, sizeof *o.waiting);
    o.next = hlo_arena_array(arena, o.unit_count, sizeof *o.next);
    o.made = hlo_arena_array(arena, o.unit_count, sizeof *o.made);
    /* Mark the units to run. An instruction that is only a member of groups is not a unit. */
    uint32_t waiting = 0;
    want(&o, o.maker[place_of(&o, comp->root)], &waiting);
    for (uint32_t i = 0; i < o.instr_count; i++)
        if (is_wanted(plan, o.instrs[i])) want(&o, o.maker[i], &waiting);
    while (waiting) {
        build_unit unit = unit_at(&o, o.waiting[--waiting]);
        for (uint32_t i = 0; i < input_count(unit); i++)
            want(&o, maker_of_input(&o, unit, i), &waiting);
    }
    for (uint32_t i = 0; i < o.instr_count; i++)
        if (o.wanted[o.maker[i]] && !make(&o, o.maker[i]))
            build_refuse(b, o.instrs[i], "`%s` is in a group that depends on itself",
                         hlo_ops[o.instrs[i]->op].name);
    if (plan->backend->rearranges && !plan->options.perturbed && !b->failed) hasten(&o);
    build_unit *units = hlo_arena_array(arena, o.count, sizeof *units);
    for (uint32_t m = 0; m < o.count; m++) units[m] = unit_at(&o, o.made[m]);
    *out_count = o.count;
    return units;
}
