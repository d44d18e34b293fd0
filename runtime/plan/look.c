/* SPDX-License-Identifier: Apache-2.0 */
/* The instructions whose values a run saves or checks, and the steps that inspect them. */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "ir/text/diag.h"
#include "runtime/plan/build.h"

bool plan_find_kept(hlo_plan *plan, const bool *runs, const hlo_diag_sink *sink) {
    const char *at = plan->options.values, *word;
    const hlo_module *module = plan->module;
    bool good = true;
    size_t length;
    if (at) plan->kept = hlo_arena_zero(plan->arena, module->next_id * sizeof *plan->kept);
    while ((word = hlo_next_word(&at, &length))) {
        const char *name = hlo_arena_format(plan->arena, "%.*s", (int)length, word);
        if (*name == '%') name++;
        uint32_t found = 0;
        hlo_suggestion near = hlo_suggest(name);
        /* Mark the matching instructions in computations that are executed directly. `elsewhere` is
         * one in another computation, or one whose value has no array, or NULL. */
        const hlo_instr *elsewhere = NULL;
        const bool glob = strpbrk(name, "*?[") != NULL;
        for (const hlo_computation *c = plan->module->first; c; c = c->next)
            for (const hlo_instr *i = c->first; i; i = hlo_instr_next(i)) {
                if (glob ? fnmatch(name, i->name, 0) != 0 : strcmp(name, i->name) != 0) {
                    if (runs[c->id]) hlo_suggest_offer(&near, i->name);
                    continue;
                }
                if (runs[c->id] && build_is_static(i->shape) && hlo_shape_leaf_count(i->shape)) {
                    plan->kept[i->id] = true;
                    ++found;
                } else {
                    elsewhere = i;
                }
            }
        if (found) continue;
        good = false;
        if (elsewhere && !glob)
            hlo_diag_emit(module, sink, HLO_ERROR, elsewhere->offset, strlen(name),
                          runs[elsewhere->parent->id]
                              ? "`%s` has no array value to save"
                              : "`%s` has no value to save: its computation runs per element, is "
                                "fused into an instruction, or never runs",
                          name);
        else
            hlo_diag_refuse(sink, module->file, 0, 0, "no executed instruction is named `%s`%s",
                            name, hlo_suggest_meant(&near));
    }
    return good;
}

void build_look(build *b, const hlo_instr *instr) {
    const hlo_plan *plan = b->plan;
    const plan_comp *comp = b->comp;
    const plan_step *last = comp->step_count ? &comp->steps[comp->step_count - 1] : NULL;
    const bool keeps = plan_keeps(plan, instr);
    const bool computed = last && last->kind == STEP_JOB && last->job->instr == instr &&
                          last->job->group.instr_count == 1;
    const bool input =
        instr->op == HLO_OP_PARAMETER && instr->parent == instr->parent->module->entry;
    const bool checks = plan->options.check_finite && (computed || input);
    if (b->failed || (!keeps && !checks)) return;
    const build_value own = *build_value_of(b, instr);
    const build_value others = checks ? build_operands(b, instr) : build_new_value(b, 0);
    const int untouched = computed ? last->job->untouched : -1;
    build_value all = build_new_value(b, own.count + others.count);
    memcpy(all.slots, own.slots, own.count * sizeof *all.slots);
    memcpy(all.slots + own.count, others.slots, others.count * sizeof *all.slots);
    if (untouched >= 0 && !keeps) all.slots[untouched] = PLAN_NONE;
    plan_step *step = build_step(b, STEP_LOOK, instr, all, build_new_value(b, 0));
    const hlo_shape **end = step->shapes =
        hlo_arena_array(plan->arena, all.count + 1, sizeof *step->shapes);
    build_leaf_shapes(instr->shape, &end);
    for (uint32_t i = 0; checks && i < instr->operand_count; i++)
        build_leaf_shapes(hlo_instr_operand(instr, i)->shape, &end);
    step->own = own.count;
    step->keeps = keeps;
    step->checks = checks;
}
