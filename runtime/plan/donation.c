/* Donated inputs: which output gets the memory of which, and whether in place. */
#include "ir/ir.h"
#include "ir/text/diag.h"
#include "runtime/plan/plan.h"

/* Finds the leaf at the end of a path into a shape; false: there is no array. `*index` advances by
 * the leaves before it. */
static bool find_leaf(const hlo_shape *shape, const hlo_ints *path, size_t *index) {
    for (uint32_t k = 0; path && k < path->count; k++) {
        for (int64_t e = 0; e < path->v[k]; e++) *index += hlo_shape_leaf_count(shape->elements[e]);
        shape = shape->elements[path->v[k]];
    }
    return hlo_shape_is_array(shape);
}

static size_t find_input(const hlo_plan *plan, const hlo_alias *alias) {
    size_t index = 0;
    const hlo_computation *entry = plan->module->entry;
    for (int64_t p = 0; p < alias->number; p++)
        index += hlo_shape_leaf_count(entry->parameters[p]->shape);
    return find_leaf(entry->parameters[alias->number]->shape, alias->part, &index) ? index
                                                                                   : PLAN_NONE;
}

/* Takes the aliases and donors of the module's header, which verified: sizes are equal. */
static void take_aliases(hlo_plan *plan, const hlo_attr *attr) {
    for (uint32_t i = 0; i < attr->u.aliases->count; i++) {
        const hlo_alias *alias = &attr->u.aliases->v[i];
        size_t input = find_input(plan, alias), output = 0;
        if (input == PLAN_NONE) continue;
        if (alias->output && !find_leaf(plan->module->entry->root->shape, alias->output, &output))
            continue;
        plan->given[input] = alias->output ? (uint32_t)output : PLAN_ANY;
        if (alias->output) plan->taken[output] = (uint32_t)input;
    }
}

static hlo_status take_option(hlo_plan *plan, const hlo_donation *d, const hlo_diag_sink *sink) {
    const char *fault = NULL;
    if (d->input >= plan->inputs.count)
        fault = "there is no such input";
    else if (d->output >= plan->outputs.count)
        fault = "there is no such output";
    else if (plan->given[d->input] != PLAN_NONE && plan->given[d->input] != d->output)
        fault = "the input is donated already";
    else if (plan->taken[d->output] != PLAN_NONE && plan->taken[d->output] != d->input)
        fault = "the output has a donated input already";
    else if (plan->inputs.shapes[d->input]->type != plan->outputs.shapes[d->output]->type ||
             !hlo_shape_same_dims(plan->inputs.shapes[d->input], plan->outputs.shapes[d->output]) ||
             !hlo_shape_same_memory(plan->inputs.shapes[d->input], plan->outputs.shapes[d->output]))
        fault = "they have different types, dimensions or layouts";
    if (fault)
        return hlo_diag_refuse(sink, NULL, 0, 0, "cannot donate input %zu to output %zu: %s",
                               d->input, d->output, fault);
    plan->given[d->input] = (uint32_t)d->output;
    plan->taken[d->output] = (uint32_t)d->input;
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- in place */

static uint32_t find_argument(const plan_comp *comp, uint32_t input) {
    for (uint32_t s = 0; s < comp->slot_count; s++)
        if (comp->slots[s].kind == SLOT_ARGUMENT && comp->slots[s].index == input) return s;
    return PLAN_NONE;
}

static uint32_t count_uses(const uint32_t *slots, uint32_t count, uint32_t slot) {
    uint32_t uses = 0;
    for (uint32_t i = 0; i < count; i++) uses += slots[i] == slot;
    return uses;
}

/* True if the step may write `result` over `argument`, which it reads. */
static bool overwrites(const plan_comp *comp, const plan_step *step, uint32_t result,
                       uint32_t argument) {
    const hlo_overwrites *o = step->job ? &step->job->overwrites : NULL;
    bool found = false;
    for (uint32_t i = 0; o && i < o->count; i++)
        found |=
            step->results[o->v[i].result] == result && step->operands[o->v[i].operand] == argument;
    return found && count_uses(step->operands, step->operand_count, argument) == 1 &&
           comp->slots[argument].size == comp->slots[result].size;
}

bool plan_is_in_place(const plan_comp *comp, uint32_t output, uint32_t input) {
    const uint32_t argument = find_argument(comp, input), result = comp->results[output];
    bool written = false;
    if (argument == PLAN_NONE) return plan_makes_result(comp, output);
    for (uint32_t o = 0; o < comp->result_count; o++)
        if (o != output && comp->results[o] == argument) return false; /* copied in the end */
    if (result == argument) return true;
    if (!plan_makes_result(comp, output)) return false;
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        const bool writes = count_uses(step->results, step->result_count, result) > 0;
        const bool reads = count_uses(step->operands, step->operand_count, argument) > 0;
        written |= writes;
        if (written && reads && !(writes && overwrites(comp, step, result, argument))) return false;
    }
    return true;
}

/* ---------------------------------------------------------------------------------------- plans */

static uint32_t *none(hlo_plan *plan, size_t count) {
    uint32_t *v = hlo_arena_array(plan->arena, count + 1, sizeof *v);
    for (size_t i = 0; i < count; i++) v[i] = PLAN_NONE;
    return v;
}

/* True if nothing reads the argument once the result is begun, but the step that writes it over the
 * argument. */
static bool is_free(const plan_comp *comp, uint32_t argument, uint32_t result) {
    const plan_slot *from = &comp->slots[argument], *to = &comp->slots[result];
    if (from->size != to->size || to->first == PLAN_NONE) return false;
    if (from->first == PLAN_NONE || from->last < to->first) return true;
    return from->last == to->first && overwrites(comp, &comp->steps[to->first], result, argument);
}

void plan_reuse_inputs(hlo_plan *plan, const plan_comp *entry) {
    if (plan->options.resident || plan->options.bounds || plan->options.perturbed) return;
    plan->given = none(plan, plan->inputs.count);
    plan->taken = none(plan, plan->outputs.count);
    plan->in_place = hlo_arena_zero(plan->arena, plan->outputs.count + 1);
    uint32_t *arguments = none(plan, plan->inputs.count);
    for (uint32_t s = 0; s < entry->slot_count; s++)
        if (entry->slots[s].kind == SLOT_ARGUMENT) arguments[entry->slots[s].index] = s;
    for (uint32_t o = 0; o < entry->result_count; o++) /* copied in the end */
        if (entry->slots[entry->results[o]].kind == SLOT_ARGUMENT)
            arguments[entry->slots[entry->results[o]].index] = PLAN_NONE;
    for (uint32_t o = 0; o < entry->result_count; o++) {
        if (!plan_makes_result(entry, o) || !entry->slots[entry->results[o]].size) continue;
        for (uint32_t i = 0; i < plan->inputs.count && !plan->in_place[o]; i++) {
            if (plan->given[i] != PLAN_NONE || arguments[i] == PLAN_NONE ||
                !is_free(entry, arguments[i], entry->results[o]))
                continue;
            plan->given[i] = o;
            plan->taken[o] = i;
            plan->in_place[o] = true;
        }
    }
}

hlo_status plan_find_donations(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan->given = none(plan, plan->inputs.count);
    plan->taken = none(plan, plan->outputs.count);
    plan->in_place = hlo_arena_zero(plan->arena, plan->outputs.count + 1);
    for (uint32_t i = 0; i < plan->module->attr_count; i++) {
        const hlo_attr *attr = &plan->module->attrs[i];
        if (attr->id == HLO_ATTR_INPUT_OUTPUT_ALIAS || attr->id == HLO_ATTR_BUFFER_DONOR)
            take_aliases(plan, attr);
    }
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < plan->options.donation_count && status == HLO_OK; i++)
        status = take_option(plan, &plan->options.donations[i], sink);
    for (uint32_t o = 0; o < plan->outputs.count; o++)
        if (plan->taken[o] != PLAN_NONE)
            plan->in_place[o] = plan_is_in_place(plan->entry, o, plan->taken[o]);
    return status;
}
