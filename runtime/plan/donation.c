/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which output reuses the memory of which donated input, and whether in place. */
#include <stdlib.h>

#include "ir/ir.h"
#include "ir/text/diag.h"
#include "runtime/plan/plan.h"

/* Finds the leaf at the end of a path into a shape. Increases *index by the number of leaves before
 * it. Returns false if the path does not lead to an array. */
static bool find_leaf(const hlo_shape *shape, const hlo_ints *path, size_t *index) {
    for (uint32_t k = 0; path && k < path->count; k++) {
        for (int64_t e = 0; e < path->v[k]; e++) *index += hlo_shape_leaf_count(shape->elements[e]);
        shape = shape->elements[path->v[k]];
    }
    return hlo_shape_is_array(shape);
}

/* True if no step reads the argument after the first step of the result. The first step may read
 * the argument only if the step's job may overwrite it. */
static bool dies_before(const plan_comp *comp, uint32_t argument, uint32_t result) {
    const plan_slot *from = &comp->slots[argument], *to = &comp->slots[result];
    if (from->first == PLAN_NONE || to->first == PLAN_NONE || from->last < to->first) return true;
    if (from->last != to->first || from->size != to->size) return false;
    const plan_step *step = &comp->steps[to->first];
    const hlo_overwrites *o = step->job ? &step->job->overwrites : NULL;
    bool overwrites = false;
    for (uint32_t i = 0; o && i < o->count; i++)
        overwrites |=
            step->results[o->v[i].result] == result && step->operands[o->v[i].operand] == argument;
    uint32_t uses = 0;
    for (uint32_t i = 0; i < step->operand_count; i++) uses += step->operands[i] == argument;
    return overwrites && uses == 1;
}

bool plan_is_in_place(const plan_comp *comp, uint32_t output, uint32_t input) {
    const uint32_t argument = comp->arguments[input], result = comp->results[output];
    if (argument == PLAN_NONE) return plan_makes_result(comp, output);
    /* If another output equals the argument, the argument is read at the end of the run, when that
     * output is copied. */
    if (comp->slots[argument].results > (result == argument)) return false;
    if (result == argument) return true;
    return plan_makes_result(comp, output) && dies_before(comp, argument, result);
}

static uint32_t *none(hlo_plan *plan, size_t count) {
    uint32_t *v = hlo_arena_array(plan->arena, count + 1, sizeof *v);
    for (size_t i = 0; i < count; i++) v[i] = PLAN_NONE;
    return v;
}

/* An input that may be overwritten. */
typedef struct candidate {
    size_t size;
    uint32_t input; /* index of the plan's input */
} candidate;

/* Inputs, sorted by size and then by index. `dies` is a binary tree with the root at 1. Its leaves,
 * from `width` on, contain the number of the step after the input's last reader. Inner nodes
 * contain the minimum of their children. */
typedef struct candidates {
    candidate *list;
    uint32_t count, width, *dies;
} candidates;

static int compare_candidates(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? -1 : 1;
    return x->input < y->input ? -1 : x->input > y->input;
}

static void set_death(candidates *c, uint32_t place, uint32_t step) {
    uint32_t at = c->width + place;
    c->dies[at] = step;
    for (at /= 2; at; at /= 2)
        c->dies[at] = c->dies[2 * at] < c->dies[2 * at + 1] ? c->dies[2 * at] : c->dies[2 * at + 1];
}

/* Returns the position of a candidate in the list, or where it would be inserted. */
static uint32_t place_of(const candidates *c, candidate wanted) {
    uint32_t low = 0, high = c->count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (compare_candidates(&c->list[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the first position, from `place` on, of an input that neither step `step` nor a later
 * step reads, or `count`. */
static uint32_t next_dead(const candidates *c, uint32_t place, uint32_t step) {
    uint32_t at = c->width + place;
    if (place >= c->count) return c->count;
    do {
        while (at % 2 == 0) at /= 2;
        if (c->dies[at] <= step) {
            while (at < c->width) {
                at *= 2;
                at += c->dies[at] > step;
            }
            return at - c->width;
        }
        at++;
    } while (at & (at - 1));
    return c->count;
}

void plan_reuse_inputs(hlo_plan *plan, const plan_comp *entry) {
    if (plan->options.resident || plan->options.bounds || plan->options.perturbed) return;
    plan->given = none(plan, plan->inputs.count);
    plan->taken = none(plan, plan->outputs.count);
    plan->in_place = hlo_arena_zero(plan->arena, plan->outputs.count + 1);
    candidates c = {.list = hlo_arena_array(plan->arena, plan->inputs.count + 1, sizeof *c.list),
                    .width = 1};
    for (uint32_t i = 0; i < plan->inputs.count; i++) {
        const uint32_t slot = entry->arguments[i];
        if (slot == PLAN_NONE || entry->slots[slot].results) continue; /* unused, or an output */
        c.list[c.count++] = (candidate){entry->slots[slot].size, i};
    }
    qsort(c.list, c.count, sizeof *c.list, compare_candidates);
    while (c.width < c.count) c.width *= 2;
    c.dies = none(plan, 2 * (size_t)c.width);
    for (uint32_t k = 0; k < c.count; k++) {
        const plan_slot *slot = &entry->slots[entry->arguments[c.list[k].input]];
        set_death(&c, k, slot->first == PLAN_NONE ? 0 : slot->last + 1);
    }
    for (uint32_t o = 0; o < entry->result_count; o++) {
        const uint32_t result = entry->results[o];
        const plan_slot *to = &entry->slots[result];
        if (!plan_makes_result(entry, o) || !to->size || to->first == PLAN_NONE) continue;
        /* Choose the first free input whose memory the output can reuse. */
        const uint32_t dead = next_dead(&c, place_of(&c, (candidate){to->size, 0}), to->first);
        uint32_t chosen =
            dead < c.count && c.list[dead].size == to->size ? c.list[dead].input : PLAN_NONE;
        const plan_step *step = &entry->steps[to->first];
        for (uint32_t k = 0; step->job && k < step->operand_count; k++) {
            const plan_slot *from = &entry->slots[step->operands[k]];
            if (from->kind == SLOT_ARGUMENT && from->index < chosen && !from->results &&
                plan->given[from->index] == PLAN_NONE && from->size == to->size &&
                dies_before(entry, step->operands[k], result))
                chosen = from->index;
        }
        if (chosen == PLAN_NONE) continue;
        set_death(&c, place_of(&c, (candidate){to->size, chosen}), PLAN_NONE);
        plan->given[chosen] = o;
        plan->taken[o] = chosen;
        plan->in_place[o] = true;
    }
}

hlo_status plan_find_donations(hlo_plan *plan, const hlo_diag_sink *sink) {
    const hlo_computation *entry = plan->module->entry;
    plan->given = none(plan, plan->inputs.count);
    plan->taken = none(plan, plan->outputs.count);
    plan->in_place = hlo_arena_zero(plan->arena, plan->outputs.count + 1);
    for (uint32_t i = 0; i < plan->module->attr_count; i++) {
        const hlo_attr *attr = &plan->module->attrs[i];
        if (attr->id != HLO_ATTR_INPUT_OUTPUT_ALIAS && attr->id != HLO_ATTR_BUFFER_DONOR) continue;
        /* The verifier has checked that the sizes of an input and its output are equal. */
        for (uint32_t k = 0; k < attr->u.aliases->count; k++) {
            const hlo_alias *alias = &attr->u.aliases->v[k];
            size_t input = 0, output = 0;
            for (int64_t p = 0; p < alias->number; p++)
                input += hlo_shape_leaf_count(entry->parameters[p]->shape);
            if (!find_leaf(entry->parameters[alias->number]->shape, alias->part, &input) ||
                (alias->output && !find_leaf(entry->root->shape, alias->output, &output)))
                continue;
            plan->given[input] = alias->output ? (uint32_t)output : PLAN_ANY;
            if (alias->output) plan->taken[output] = (uint32_t)input;
        }
    }
    for (size_t i = 0; i < plan->options.donation_count; i++) {
        const hlo_donation *d = &plan->options.donations[i];
        const char *fault = NULL;
        char types[600];
        if (d->input >= plan->inputs.count)
            fault = "the input does not exist";
        else if (d->output >= plan->outputs.count)
            fault = "the output does not exist";
        else if (plan->given[d->input] != PLAN_NONE && plan->given[d->input] != d->output)
            fault = "the input is already donated";
        else if (plan->taken[d->output] != PLAN_NONE && plan->taken[d->output] != d->input)
            fault = "the output already has a donated input";
        else if (plan->inputs.shapes[d->input]->type != plan->outputs.shapes[d->output]->type ||
                 !hlo_shape_same_dims(plan->inputs.shapes[d->input],
                                      plan->outputs.shapes[d->output]) ||
                 !hlo_shape_same_memory(plan->inputs.shapes[d->input],
                                        plan->outputs.shapes[d->output])) {
            char input[256], output[256];
            hlo_shape_format(plan->inputs.shapes[d->input], true, input, sizeof input);
            hlo_shape_format(plan->outputs.shapes[d->output], true, output, sizeof output);
            snprintf(types, sizeof types, "the input is %s, but the output is %s", input, output);
            fault = types;
        }
        if (fault)
            return hlo_diag_refuse(sink, HLO_DIAG_OPTION, NULL, 0, 0,
                                   "cannot donate input %zu to output %zu: %s", d->input, d->output,
                                   fault);
        plan->given[d->input] = (uint32_t)d->output;
        plan->taken[d->output] = (uint32_t)d->input;
    }
    for (uint32_t o = 0; o < plan->outputs.count; o++)
        if (plan->taken[o] != PLAN_NONE)
            plan->in_place[o] = plan_is_in_place(plan->entry, o, plan->taken[o]);
    return HLO_OK;
}
