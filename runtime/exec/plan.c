/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, prints and frees plans, and transfers their inputs and outputs. */
#include "ir/expand/expand.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "ir/verify/verify.h"
#include "matmul/block_scaled.h"
#include "runtime/calls/calls.h"
#include "runtime/exec/run.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/* Plans all computations that are executed: finds them and the layouts of their arguments and
 * results from callers to callees, then plans callees before callers. A loop's state has the layout
 * of the body's parameter. All branches of a conditional return the conditional's layout. */
static bool build_all(hlo_plan *plan, const hlo_diag_sink *sink) {
    const hlo_module *module = plan->module;
    size_t comps = module->next_computation_id;
    bool *wanted = hlo_arena_zero(plan->arena, comps);
    plan->comps = hlo_arena_zero(plan->arena, comps * sizeof *plan->comps);
    plan->arguments_like = hlo_arena_zero(plan->arena, comps * sizeof *plan->arguments_like);
    plan->results_like = hlo_arena_zero(plan->arena, comps * sizeof *plan->results_like);
    wanted[module->entry->id] = true;
    for (const hlo_computation *c = module->last; c; c = c->prev)
        for (const hlo_instruction *i = c->first; i && wanted[c->id]; i = hlo_instr_next(i))
            switch (i->op) {
            case HLO_OP_CALL: wanted[hlo_instr_comp(i, HLO_ATTR_TO_APPLY)->id] = true; break;
            case HLO_OP_ASYNC_START:
            case HLO_OP_FUSION: wanted[hlo_instr_comp(i, HLO_ATTR_CALLS)->id] = true; break;
            case HLO_OP_WHILE: {
                const hlo_computation *condition = hlo_instr_comp(i, HLO_ATTR_CONDITION);
                const hlo_computation *body = hlo_instr_comp(i, HLO_ATTR_BODY);
                wanted[condition->id] = wanted[body->id] = true;
                plan->arguments_like[condition->id] = body->parameters[0]->shape;
                plan->results_like[body->id] = body->parameters[0]->shape;
                break;
            }
            case HLO_OP_CONDITIONAL:
                for (uint32_t k = 0; k < plan_branch_count(i); k++) {
                    wanted[plan_branch(i, k)->id] = true;
                    plan->results_like[plan_branch(i, k)->id] = i->shape;
                }
                break;
            default: break;
            }
    if (!plan_find_kept(plan, wanted, sink)) return false;
    plan_find_transfers(plan);
    bool good = true;
    for (const hlo_computation *c = module->first; c; c = c->next) {
        if (!wanted[c->id]) continue;
        plan_comp *comp = hlo_arena_zero(plan->arena, sizeof *comp);
        comp->comp = c;
        plan->comps[c->id] = comp;
        if (!plan_build(plan, comp, sink)) {
            good = false;
            continue;
        }
        if (c == module->entry && plan->options.overwrites_inputs) plan_reuse_inputs(plan, comp);
        plan_place_buffers(plan, comp);
    }
    plan->entry = plan->comps[module->entry->id];
    return good;
}

/* Returns the bytes of a leaf and, if `bounded` and the plan has sigmas, of its sigmas. */
static size_t leaf_size(const hlo_plan *plan, const hlo_shape *shape, bool bounded) {
    size_t size = (size_t)hlo_shape_bytes(shape), all = plan_align(plan, size);
    if (bounded && plan->options.bounds)
        all += plan_align(plan, size / hlo_types[shape->type].bytes * sizeof(float));
    return all;
}

/* Places a leaf and its sigmas at `*at` bytes after `base`; advances `*at`. */
static plan_place place_leaf(const hlo_plan *plan, const hlo_shape *shape, bool bounded, char *base,
                             size_t *at) {
    plan_place place = {base + *at, NULL};
    if (bounded && plan->options.bounds)
        place.bound = (float *)(void *)(base + *at + leaf_size(plan, shape, false));
    *at += leaf_size(plan, shape, bounded);
    return place;
}

static bool is_in_frame(const hlo_plan *plan, size_t output) {
    return plan_places_results(plan, plan->entry) && !plan_is_over_input(plan, output) &&
           plan_makes_result(plan->entry, (uint32_t)output);
}

enum { LARGEST = 8 };

/* An array in memory, and what it is for. */
typedef struct need {
    const hlo_instruction *instr;
    size_t size;
    const char *what;
} need;

/* Inserts an array into the list of the largest arrays, in descending order of size. */
static void add_need(need *largest, need added) {
    for (int i = 0; i < LARGEST; i++)
        if (added.size > largest[i].size) {
            const need next = largest[i];
            largest[i] = added;
            added = next;
        }
}

/* Reports the memory that the plan requires and, if the backend knows it, the free memory. Adds a
 * note about each of the entry computation's largest arrays: inputs, outputs, results of steps and
 * working memory of steps. */
static hlo_status refuse_memory(const hlo_plan *plan, const hlo_diag_sink *sink) {
    size_t inputs = 0, outputs = 0, available = 0;
    char there[64] = "";
    for (size_t i = 0; i < plan->inputs.count; i++)
        inputs += leaf_size(plan, plan->inputs.shapes[i], false);
    for (size_t i = 0; i < plan->outputs.count; i++)
        if (!plan_is_over_input(plan, i)) outputs += leaf_size(plan, plan->outputs.shapes[i], true);
    if (plan->backend->available && plan->backend->available(plan->device, &available))
        snprintf(there, sizeof there, ", but only %zu are free", available);
    hlo_diag_emit(
        plan->module, sink, HLO_ERROR, HLO_DIAG_MEMORY, plan->module->entry->offset, 1,
        "out of memory: the %s backend requires %zu bytes%s (inputs %zu, outputs %zu, temporaries "
        "%zu)",
        plan->backend->name, plan->memory_size, there, inputs, outputs,
        plan->options.resident ? plan->entry->frame_size : plan->memory_size - inputs - outputs);
    /* List the largest arrays, which may exceed the total: steps reuse memory of dead results. */
    need largest[LARGEST] = {{0}};
    const hlo_computation *entry = plan->module->entry;
    for (size_t i = 0; i < plan->inputs.count; i++)
        add_need(largest, (need){entry->parameters[plan->inputs.owners[i]],
                                 leaf_size(plan, plan->inputs.shapes[i], false), "an input"});
    for (size_t i = 0; i < plan->outputs.count; i++)
        add_need(largest,
                 (need){entry->root, leaf_size(plan, plan->outputs.shapes[i], true), "an output"});
    for (uint32_t s = 0; s < plan->entry->step_count; s++) {
        const plan_step *step = &plan->entry->steps[s];
        const plan_slot *slots = plan->entry->slots;
        for (uint32_t i = 0; i < step->result_count; i++)
            if (step->results[i] != PLAN_NONE && slots[step->results[i]].kind == SLOT_BUFFER)
                add_need(largest,
                         (need){step->instr,
                                slots[step->results[i]].size + slots[step->results[i]].bound_size,
                                "a result"});
        if (step->work != PLAN_NONE)
            add_need(largest, (need){step->instr, slots[step->work].size,
                                     step->job ? "working memory" : "a called computation"});
    }
    for (int i = 0; i < LARGEST && largest[i].size; i++)
        hlo_diag_emit(plan->module, sink, HLO_NOTE, HLO_DIAG_MEMORY, largest[i].instr->offset,
                      strlen(largest[i].instr->name), "%zu bytes for %s of `%s`", largest[i].size,
                      largest[i].what, hlo_ops[largest[i].instr->op].name);
    return HLO_OUT_OF_MEMORY;
}

/* If the module has block-scaled notation, calls of CPU libraries, scans, batch normalization,
 * dynamic shapes or calls, or if conversions to FP8 round twice, replaces it by a copy in which
 * these are expanded. Does not inline calls if bounds or noise are computed per computation, if
 * values are inspected, which are identified by their place in the text, or if there are several
 * simulated devices, which must meet at the same instructions. */
static hlo_status expand(hlo_plan *plan, jmp_buf *recover, const hlo_diag_sink *sink) {
    const hlo_plan_options *o = &plan->options;
    const bool blocks = hlo_block_any(plan->module);
    const bool calls = plan->backend->rearranges && plan->module->op_counts[HLO_OP_CALL] &&
                       !o->bounds && !o->perturbed && !o->values && !o->check_finite &&
                       !plan->seat.world;
    const bool twice = o->fp8_rounding == HLO_FP8_ROUNDING_VIA_F16;
    if (!blocks && !calls && !twice && !hlo_dynamic_any(plan->module) &&
        !plan->module->op_counts[HLO_OP_SCAN] && !hlo_batch_norm_any(plan->module) &&
        !hlo_calls_any(plan->module) && !hlo_radix_sort_any(plan->module))
        return HLO_OK;
    hlo_status status = blocks ? hlo_matmul_verify(plan->module, 0, sink) : HLO_OK;
    if (status == HLO_OK) status = hlo_module_clone(plan->module, &plan->expanded);
    if (status != HLO_OK) return status;
    hlo_arena_set_recover(plan->expanded->arena, recover);
    if (twice) hlo_fp8_round_via_f16(plan->expanded);
    status = hlo_calls_expand(plan->expanded, sink);
    if (status == HLO_OK) status = hlo_scan_expand(plan->expanded, sink);
    if (status == HLO_OK) hlo_batch_norm_expand(plan->expanded);
    if (status == HLO_OK) hlo_radix_sort_expand(plan->expanded);
    if (status == HLO_OK) status = hlo_dynamic_expand(plan->expanded, sink);
    if (status == HLO_OK) hlo_block_expand(plan->expanded);
    if (status == HLO_OK && calls) plan_inline_calls(plan->expanded, plan->arena);
    plan->module = plan->expanded;
    return status;
}

static hlo_status make(hlo_plan *plan, jmp_buf *recover, const hlo_diag_sink *sink) {
    hlo_status status = expand(plan, recover, sink);
    if (status == HLO_OK)
        status = plan->backend->open(&plan->options, &plan->seat, sink, &plan->device);
    if (status == HLO_OK && !(plan->shared = plan_device_new(plan->backend, plan->device)))
        status = HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_leaves_of(plan->module, HLO_INPUTS, &plan->inputs);
    if (status == HLO_OK) status = hlo_leaves_of(plan->module, HLO_OUTPUTS, &plan->outputs);
    if (status == HLO_OK && !build_all(plan, sink)) status = HLO_INVALID_INPUT;
    if (status == HLO_OK && plan->options.resident) status = plan_find_donations(plan, sink);
    if (status != HLO_OK) return status;
    /* Compute the size of the memory of a run. One allocation contains the entry's frame, the
     * inputs and the outputs outside the frame, in this order; for a resident plan, only the
     * frame. */
    plan->memory_size = plan->entry->frame_size;
    for (size_t i = 0; i < plan->inputs.count && !plan->options.resident; i++)
        plan->memory_size += leaf_size(plan, plan->inputs.shapes[i], false);
    for (size_t i = 0; i < plan->outputs.count && !plan->options.resident; i++)
        if (!is_in_frame(plan, i) && !plan_is_over_input(plan, i))
            plan->memory_size += leaf_size(plan, plan->outputs.shapes[i], true);
    if (plan->options.target) return HLO_OK;
    plan->memory = plan->backend->allocate(plan->device, plan->memory_size ? plan->memory_size : 1);
    if (!plan->memory) return refuse_memory(plan, sink);
    plan->arguments = hlo_arena_zero(plan->arena, (plan->inputs.count + 1) * sizeof(plan_place));
    plan->results = hlo_arena_zero(plan->arena, (plan->outputs.count + 1) * sizeof(plan_place));
    size_t at = plan->entry->frame_size;
    for (size_t i = 0; i < plan->inputs.count && !plan->options.resident; i++)
        plan->arguments[i] = place_leaf(plan, plan->inputs.shapes[i], false, plan->memory, &at);
    for (size_t i = 0; i < plan->outputs.count && !plan->options.resident; i++) {
        size_t own = plan->entry->slots[plan->entry->results[i]].offset;
        plan->results[i] = plan_is_over_input(plan, i)
                               ? plan->arguments[plan->taken[i]]
                               : place_leaf(plan, plan->outputs.shapes[i], true, plan->memory,
                                            is_in_frame(plan, i) ? &own : &at);
    }
    if (plan_looks(plan)) status = plan_look_new(plan);
    if (status == HLO_OK && plan->options.profile) status = plan_trace_new(plan);
    if (status == HLO_OK && plan->options.resident) return plan_resident_bind(plan, sink);
    if (status == HLO_OK) status = plan_bind(plan, sink);
    return status == HLO_OK ? plan_record(plan, sink) : status;
}

hlo_status plan_new(const hlo_module *module, const hlo_backend *backend,
                    const hlo_plan_options *options, const hlo_seat *seat,
                    const hlo_diag_sink *sink, hlo_plan **out) {
    jmp_buf recover;
    hlo_plan *plan = hlo_calloc(1, sizeof *plan);
    if (!plan || !(plan->arena = hlo_arena_new(&recover))) {
        hlo_free(plan);
        return HLO_OUT_OF_MEMORY;
    }
    plan->module = module;
    plan->backend = backend;
    plan->options = *options;
    plan->seat = *seat;
    plan->self = plan;
    plan->devices = &plan->self;
    plan->device_count = 1;
    plan->watch =
        seat->world ? (hlo_watch){hlo_world_goes_on, seat->world} : (hlo_watch){plan_goes_on, plan};
    /* Decoding a call caches its config in the module's arena, which may run out of memory. */
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : make(plan, &recover, sink);
    hlo_arena_set_recover(plan->arena, NULL);
    if (plan->expanded) hlo_arena_set_recover(plan->expanded->arena, NULL);
    hlo_arena_set_recover(module->arena, before);
    if (status != HLO_OK) {
        plan_free(plan);
        return status;
    }
    *out = plan;
    return HLO_OK;
}

void plan_free(hlo_plan *plan) {
    plan_resident_free(plan->resident);
    if (plan->memory) plan->backend->release(plan->device, plan->memory);
    if (plan->shared) plan_device_retire(plan->shared);
    hlo_free(plan->values.items);
    plan_look_free(plan->look);
    plan_trace_free(plan->trace);
    hlo_arrays_clear(&plan->sent);
    hlo_leaves_free(&plan->inputs);
    hlo_leaves_free(&plan->outputs);
    hlo_module_free(plan->expanded);
    hlo_arena_free(plan->arena);
    hlo_free(plan);
}

void plan_put_input(hlo_plan *plan, size_t i, const hlo_array *array, void *staging) {
    const hlo_shape *shape = plan->inputs.shapes[i];
    const void *host = array->data;
    if (!hlo_shape_is_row_major(shape)) {
        plan_to_physical(shape, hlo_types[shape->type].bytes, staging, host);
        host = staging;
    }
    plan->backend->copy_in(plan->device, plan->arguments[i].data, host, array->size);
}

hlo_status plan_fetch_outputs(hlo_plan *plan, const hlo_diag_sink *sink, hlo_arrays *out,
                              void *staging) {
    for (size_t i = 0; i < plan->outputs.count; i++) {
        const hlo_shape *shape = plan->outputs.shapes[i];
        plan_place place = plan->results[i];
        hlo_array *array =
            hlo_arrays_add(out, shape->type, shape->rank, shape->dims, place.bound != NULL);
        if (!array) return HLO_OUT_OF_MEMORY;
        size_t width = hlo_types[shape->type].bytes;
        plan_fetch(plan, shape, width, array->data, place.data, array->size, staging);
        if (array->bound)
            plan_fetch(plan, shape, sizeof(float), array->bound, place.bound,
                       array->size / width * sizeof(float), staging);
    }
    return plan_finish(plan, sink);
}

size_t plan_staging_size(const hlo_plan *plan) {
    size_t most = 1;
    for (size_t i = 0; i < plan->inputs.count + plan->outputs.count; i++) {
        const hlo_shape *shape = i < plan->inputs.count
                                     ? plan->inputs.shapes[i]
                                     : plan->outputs.shapes[i - plan->inputs.count];
        const size_t size = leaf_size(plan, shape, true);
        if (size > most) most = size;
    }
    return most;
}

static void print_slot(const plan_comp *comp, uint32_t index, FILE *out) {
    if (index == PLAN_NONE) {
        fputs("-", out);
        return;
    }
    const plan_slot *slot = &comp->slots[index];
    switch (slot->kind) {
    case SLOT_BUFFER: fprintf(out, "[%zu+%zu]", slot->offset, slot->size); break;
    case SLOT_ARGUMENT: fprintf(out, "arg%u", slot->index); break;
    case SLOT_RESULT: fprintf(out, "out%u", slot->index); break;
    case SLOT_CONSTANT: fputs("const", out); break;
    case SLOT_NOWHERE: fputs("-", out); break;
    }
}

static void print_slots(const plan_comp *comp, const uint32_t *slots, uint32_t count, FILE *out) {
    for (uint32_t i = 0; i < count; i++) {
        if (i) fputs(", ", out);
        print_slot(comp, slots[i], out);
    }
}

hlo_status hlo_plan_print(const hlo_plan *plan, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    hlo_print_plain(out, "plan of %s for %s: %zu bytes\n", plan->module->name, plan->backend->name,
                    plan->memory_size);
    for (uint32_t i = 0; plan->given && i < plan->inputs.count; i++) {
        const uint32_t output = plan->given[i];
        if (output == PLAN_ANY) fprintf(out, "arg%u is donated\n", i);
        if (output < PLAN_ANY)
            fprintf(out, "arg%u is donated to out%u%s\n", i, output,
                    plan->in_place[output] ? ", in place" : "");
    }
    for (const hlo_computation *c = plan->module->first; c; c = c->next) {
        const plan_comp *comp = plan->comps[c->id];
        if (!comp) continue;
        hlo_print_plain(out, "%%%s: %u arguments, %u results, %u steps, frame of %zu bytes\n",
                        comp->comp->name, comp->argument_count, comp->result_count,
                        comp->step_count, comp->frame_size);
        for (uint32_t s = 0; s < comp->step_count; s++) {
            const plan_step *step = &comp->steps[s];
            fputs("  ", out);
            print_slots(comp, step->results, step->result_count, out);
            fputs(" = ", out);
            if (step->job && step->job->group.instr_count == 0)
                fputs("copy", out);
            else if (step->kind == STEP_LOOK)
                fputs("inspect", out);
            else if (step->job && step->job->group.instr_count > 1)
                fprintf(out, "group of %u", step->job->group.instr_count);
            else
                fputs(hlo_ops[step->instr->op].name, out);
            fputs("(", out);
            print_slots(comp, step->operands, step->operand_count, out);
            fputs(")", out);
            for (uint32_t i = 0; i < step->called_count; i++)
                hlo_print_plain(out, "%s%%%s", i ? ", " : " runs ", step->called[i]->comp->name);
            if (step->spare && step->trip_count != HLO_TRIP_COUNT_UNKNOWN)
                fprintf(out, ", %llu times", (unsigned long long)step->trip_count);
            if (step->spare) {
                fputs(", next state ", out);
                print_slots(comp, step->spare, step->result_count, out);
            }
            if (step->work != PLAN_NONE && comp->slots[step->work].size) {
                fputs(", work ", out);
                print_slot(comp, step->work, out);
            }
            hlo_print_plain(out, "  %%%s\n", step->instr->name);
            if (step->job && plan->backend->describe)
                plan->backend->describe(plan->device, step->job, out);
        }
        fputs("  returns ", out);
        print_slots(comp, comp->results, comp->result_count, out);
        fputs("\n", out);
    }
    if (plan->backend->describe_shared) plan->backend->describe_shared(plan->device, out);
    return hlo_writer_close(out, HLO_OK);
}
