/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/pin.h"

#include <string.h>

#include "ir/device_list.h"
#include "ir/module/known.h"
#include "passes/analysis/module_facts.h"

static bool is_entry(const hlo_value_pair *pair, const char *name, const char *value) {
    const size_t size = strlen(value);
    return hlo_value_is_named(pair, name) && (size_t)(pair->end - pair->value) == size + 2 &&
           *pair->value == '"' && !strncmp(pair->value + 1, value, size);
}

static bool says_host(const hlo_instruction *instr) {
    const char *at = hlo_instr_str(instr, HLO_ATTR_FRONTEND_ATTRIBUTES);
    hlo_value_pair pair;
    while (at && hlo_value_next_entry(&at, &pair))
        if (is_entry(&pair, "_xla_compute_type", "host")) return true;
    return false;
}

static bool in_space(const hlo_shape *shape) {
    return shape->layout && shape->layout->memory_space;
}

/* True if the instruction reads from or writes to another memory space. Tuples, and instructions
 * that forward them, access no memory. */
static bool crosses_space(const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_CALL:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_TUPLE:
    case HLO_OP_WHILE: return false;
    default: break;
    }
    if (in_space(instr->shape)) return true;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (in_space(hlo_instr_operand(instr, i)->shape)) return true;
    return false;
}

/* Finds the computations that run on another thread than the entry, and their callees, by id.
 * Returns NULL if all computations run on the entry's thread. */
static const bool *find_threads(const hlo_module *module, hlo_arena *scratch) {
    bool any =
        module->op_counts[HLO_OP_ASYNC_START] || module->attrs_seen[HLO_ATTR_FRONTEND_ATTRIBUTES];
    for (const hlo_computation *comp = module->first; comp && !any; comp = comp->next)
        any = comp->attr_count;
    if (!any) return NULL;
    bool *threads = hlo_arena_zero(scratch, module->next_computation_id);
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev) {
        for (uint32_t i = 0; i < comp->attr_count; i++)
            threads[comp->id] |= comp->attrs[i].id == HLO_ATTR_EXECUTION_THREAD &&
                                 strcmp(comp->attrs[i].u.str, "main") != 0;
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
            if (threads[comp->id] || i->op == HLO_OP_ASYNC_START || says_host(i))
                hlo_instr_visit_called(i, hlo_mark_called, threads);
    }
    return threads;
}

void hlo_pin_module(hlo_module *module, hlo_arena *scratch) {
    const bool *effects = hlo_facts_side_effects(module, scratch).side;
    const bool *controlled = hlo_facts_control_deps(module, scratch);
    const bool *threads = find_threads(module, scratch);
    if (!effects && !controlled && !threads && !module->spaces_seen) return;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            const hlo_instruction *start = i->operand_count ? hlo_instr_operand(i, 0) : NULL;
            const bool ends = start && hlo_op_async_pair(start->op, i->op);
            i->pin = hlo_facts_has(threads, comp->id) || says_host(i) ? HLO_PIN_THREAD
                     : hlo_facts_has(controlled, i->id)               ? HLO_PIN_CONTROL
                     : module->spaces_seen && crosses_space(i)        ? HLO_PIN_SPACE
                     : hlo_facts_has(effects, i->id)                  ? HLO_PIN_EFFECT
                     : ends                                           ? start->pin
                                                                      : HLO_PIN_NONE;
        }
}

hlo_reason hlo_pin_reason(const hlo_instruction *pinned) {
    switch (pinned->pin) {
    case HLO_PIN_THREAD: return HLO_REASON_OTHER_THREAD;
    case HLO_PIN_CONTROL: return HLO_REASON_CONTROL_DEPENDENCY;
    case HLO_PIN_SPACE: return HLO_REASON_MEMORY_SPACE;
    default: return HLO_REASON_SIDE_EFFECT;
    }
}

enum { STEP_LIMIT = 256 };

static const hlo_instruction *pinned_below(const hlo_instruction *value, unsigned *steps) {
    if (!*steps || hlo_type_is_fp8(value->shape->type)) return NULL;
    --*steps;
    const bool scaled = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_DIVIDE;
    const bool joins = hlo_op_is(value->op, HLO_JOINS);
    if (!scaled && !joins && value->op != HLO_OP_CONVERT &&
        !hlo_op_is(value->op, HLO_MOVEMENT | HLO_COLLECTIVE) && !hlo_instr_is_mark(value))
        return NULL;
    if (value->pin) return value;
    for (uint32_t i = 0; i < (scaled || joins ? value->operand_count : value->operand_count > 0);
         i++) {
        const hlo_instruction *found = pinned_below(hlo_instr_operand(value, i), steps);
        if (found) return found;
    }
    return NULL;
}

const hlo_instruction *hlo_pin_of_dot(const hlo_instruction *dot) {
    unsigned steps = STEP_LIMIT;
    /* If the dot itself crosses memory spaces, find the operand that is in the other space. */
    const hlo_instruction *found = dot->pin && dot->pin != HLO_PIN_SPACE ? dot : NULL;
    for (uint32_t i = 0; i < dot->operand_count && !found; i++)
        found = pinned_below(hlo_instr_operand(dot, i), &steps);
    return found || !dot->pin ? found : dot;
}

bool hlo_pin_lets_inline(const hlo_instruction *call) {
    const hlo_computation *called = hlo_instr_comp(call, HLO_ATTR_TO_APPLY);
    const char *frontend = hlo_instr_str(call, HLO_ATTR_FRONTEND_ATTRIBUTES);
    hlo_value_pair pair;
    /* Inlining would lose frontend attributes other than `inlineable`. */
    while (frontend && hlo_value_next_entry(&frontend, &pair))
        if (!is_entry(&pair, "inlineable", "true")) return false;
    /* Shardy creates computations with these names for manual regions. */
    return (!call->pin || call->pin == HLO_PIN_EFFECT) && called &&
           !strstr(called->name, "shmap_body") &&
           !strstr(called->name, "xla.sdy.manual_computation_body") &&
           !hlo_instr_int(call, HLO_ATTR_IS_COMPOSITE, 0) &&
           !hlo_instr_attr(call, HLO_ATTR_BACKEND_CONFIG) &&
           !hlo_instr_attr(call, HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING);
}

bool hlo_pin_is_scheduled(const hlo_module *module) {
    return hlo_module_int(module, HLO_ATTR_IS_SCHEDULED, 0);
}

bool hlo_pin_holds(const hlo_instruction *instr) {
    bool calls = instr->op == HLO_OP_WHILE || instr->op == HLO_OP_CONDITIONAL;
    return instr->pin && !(instr->pin == HLO_PIN_EFFECT && calls);
}

bool hlo_pin_has_element_attrs(const hlo_instruction *instr) {
    return hlo_instr_attr(instr, HLO_ATTR_SHARDING) || hlo_instr_attr(instr, HLO_ATTR_ORIGIN);
}
