/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/ahead.h"

#include <fnmatch.h>
#include <string.h>

#include "ir/text/argument.h"
#include "passes/analysis/module_facts.h"
#include "passes/sharding/devices.h"

bool hlo_ahead_selects(const char *names, const hlo_instruction *parameter) {
    size_t length;
    for (const char *word; (word = hlo_next_word(&names, &length));) {
        char name[512];
        if (*word == '%') word++, length--;
        if (length >= sizeof name) continue;
        memcpy(name, word, length);
        name[length] = '\0';
        if (strcmp(name, parameter->name) == 0 || fnmatch(name, parameter->name, 0) == 0)
            return true;
    }
    return false;
}

/* True if devices may compute different values from equal operands, or communicate. */
static bool is_of_devices(const hlo_instruction *instr) {
    return hlo_op_is(instr->op, HLO_COLLECTIVE) || hlo_op_is_async(instr->op) ||
           instr->op == HLO_OP_PARTITION_ID || instr->op == HLO_OP_REPLICA_ID;
}

typedef struct callees {
    const bool *marked; /* by computation id */
    bool found;
} callees;

static void look_up(void *user, hlo_computation *called) {
    callees *c = user;
    c->found |= c->marked[called->id];
}

/* Finds, by id, computations with such instructions, also through calls. Callees come first. */
static const bool *find_computations_of_devices(const hlo_module *module, hlo_arena *arena) {
    bool *marked = hlo_arena_zero(arena, module->next_computation_id);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        callees c = {.marked = marked};
        for (const hlo_instruction *i = comp->first; i && !c.found; i = hlo_instr_next(i)) {
            c.found = is_of_devices(i);
            hlo_instr_visit_called(i, look_up, &c);
        }
        marked[comp->id] = c.found;
    }
    return marked;
}

static bool is_static(const hlo_shape *shape) {
    if (hlo_shape_is_array(shape)) return !shape->dynamic && hlo_shape_is_addressable(shape);
    bool all = shape->type == HLO_TYPE_TUPLE;
    for (uint32_t i = 0; all && i < shape->rank; i++) all = is_static(shape->elements[i]);
    return all;
}

static bool is_used_whole(const hlo_instruction *tuple) {
    for (const hlo_use *use = tuple->uses; use; use = use->next)
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT) return true;
    return tuple == tuple->parent->root;
}

const unsigned char *hlo_ahead_find(const hlo_module *module, const char *names, hlo_arena *arena) {
    unsigned char *state = hlo_arena_zero(arena, module->next_id);
    const hlo_effects effects = hlo_facts_side_effects(module, arena);
    const bool *outside = hlo_devices_outside(module, arena);
    const bool *of_devices = find_computations_of_devices(module, arena);
    for (const hlo_instruction *i = module->entry->first; i; i = hlo_instr_next(i)) {
        callees c = {.marked = of_devices, .found = is_of_devices(i)};
        hlo_instr_visit_called(i, look_up, &c);
        const bool whole =
            !hlo_shape_is_array(i->shape) && i->op != HLO_OP_TUPLE && is_used_whole(i);
        if (c.found || whole || i->pin || hlo_facts_has(effects.side, i->id) ||
            hlo_facts_has(effects.random, i->id) || (outside && !outside[i->id]) ||
            i->op == HLO_OP_DOMAIN || !is_static(i->shape))
            continue;
        if (i->op == HLO_OP_PARAMETER) {
            state[i->id] = hlo_ahead_selects(names, i) ? HLO_AHEAD_YES : HLO_AHEAD_NO;
            continue;
        }
        unsigned char least = HLO_AHEAD_YES, most = HLO_AHEAD_CONSTANT;
        for (uint32_t o = 0; o < i->operand_count; o++) {
            const unsigned char operand = state[hlo_instr_operand(i, o)->id];
            if (operand < least) least = operand;
            if (operand > most) most = operand;
        }
        state[i->id] = least == HLO_AHEAD_NO ? HLO_AHEAD_NO : most;
    }
    return state;
}
