/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the jobs of a module's computations without matmuls, as a plan does. */
#ifndef HLO_TESTS_UNIT_CUDA_CUDA_JOBS_H
#define HLO_TESTS_UNIT_CUDA_CUDA_JOBS_H

#include <math.h>

#include "runtime/cuda/codegen/kernel.h"

typedef struct jobs {
    hlo_job **v;
    uint32_t count;
} jobs;

static uint32_t jobs_leaves(const hlo_instruction *const *instrs, uint32_t count) {
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < count; i++)
        leaves += instrs[i]->shape->type == HLO_TYPE_TUPLE ? instrs[i]->shape->rank : 1;
    return leaves;
}

static hlo_view *jobs_views(hlo_arena *arena, const hlo_instruction *const *instrs,
                            uint32_t count) {
    hlo_view *views = hlo_arena_array(arena, jobs_leaves(instrs, count) + 1, sizeof *views);
    uint32_t at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *shape = instrs[i]->shape;
        bool tuple = shape->type == HLO_TYPE_TUPLE;
        for (uint32_t l = 0; l < (tuple ? shape->rank : 1); l++) {
            const hlo_shape *leaf = tuple ? shape->elements[l] : shape;
            int64_t *strides = hlo_arena_array(arena, leaf->rank + 1, sizeof *strides);
            hlo_shape_strides(leaf, strides);
            views[at++] = (hlo_view){leaf->type, leaf->rank, leaf->dims, strides, NULL};
        }
    }
    return views;
}

static void jobs_add(jobs *all, hlo_arena *arena, const hlo_group *group) {
    hlo_job *job = hlo_arena_zero(arena, sizeof *job);
    job->group = *group;
    uint32_t most = 0;
    for (uint32_t i = 0; i < group->instr_count; i++) most += group->instrs[i]->operand_count;
    job->group.inputs = hlo_arena_array(arena, most + 1, sizeof *job->group.inputs);
    job->group.input_count = 0;
    for (uint32_t i = 0; i < group->instr_count; i++)
        for (uint32_t o = 0; o < group->instrs[i]->operand_count; o++) {
            const hlo_instruction *operand = hlo_instr_operand(group->instrs[i], o);
            bool known = false;
            for (uint32_t k = 0; k < group->instr_count; k++) known |= group->instrs[k] == operand;
            for (uint32_t k = 0; k < job->group.input_count && group->instr_count > 1; k++)
                known |= job->group.inputs[k] == operand;
            if (!known) job->group.inputs[job->group.input_count++] = operand;
        }
    job->instr = group->instrs[group->instr_count - 1];
    job->operands = jobs_views(arena, job->group.inputs, job->group.input_count);
    job->results = jobs_views(arena, group->results, group->result_count);
    job->operand_count = jobs_leaves(job->group.inputs, job->group.input_count);
    job->result_count = jobs_leaves(group->results, group->result_count);
    all->v[all->count++] = job;
}

static void jobs_call(void *user, hlo_computation *called) {
    ((bool *)user)[called->id] = true;
}

/* Returns true for instructions whose computations have jobs, instead of being part of a job. */
static bool jobs_is_call(hlo_op op) {
    return op == HLO_OP_CALL || op == HLO_OP_FUSION || op == HLO_OP_WHILE ||
           op == HLO_OP_CONDITIONAL;
}

static void jobs_of_computation(jobs *all, const hlo_computation *c, const cuda_device *device,
                                hlo_arena *arena) {
    const hlo_instruction **live = hlo_arena_array(arena, c->instr_count, sizeof *live);
    bool *made = hlo_arena_zero(arena, c->module->next_id);
    bool *wanted = hlo_arena_zero(arena, c->module->next_id);
    uint32_t count = 0;
    for (const hlo_instruction *i = c->first; i; i = i->next) live[count++] = i;
    hlo_group *groups;
    uint32_t group_count = cuda_kernel_group((void *)device, live, count, arena, &groups);
    wanted[c->root->id] = true;
    for (uint32_t g = 0; g < group_count; g++) {
        jobs_add(all, arena, &groups[g]);
        const hlo_group *group = &all->v[all->count - 1]->group;
        for (uint32_t i = 0; i < group->result_count; i++) made[group->results[i]->id] = true;
        for (uint32_t i = 0; i < group->input_count; i++) wanted[group->inputs[i]->id] = true;
    }
    for (const hlo_instruction *i = c->last; i; i = i->prev) {
        if (made[i->id] || (!wanted[i->id] && !hlo_op_is(i->op, HLO_SIDE_EFFECT))) continue;
        for (uint32_t o = 0; o < i->operand_count; o++) wanted[hlo_instr_operand(i, o)->id] = true;
        if (i->op == HLO_OP_CONSTANT || i->op == HLO_OP_PARAMETER || cuda_kernel_refusal(i))
            continue;
        const hlo_instruction **one = hlo_arena_copy(arena, &i, sizeof i);
        hlo_group group = {.instr_count = 1, .result_count = 1, .instrs = one, .results = one};
        jobs_add(all, arena, &group);
    }
}

static jobs jobs_of_module(const hlo_module *m, const cuda_device *device, hlo_arena *arena) {
    bool *wanted = hlo_arena_zero(arena, m->next_computation_id);
    jobs all = {hlo_arena_array(arena, m->next_id, sizeof *all.v), 0};
    wanted[m->entry->id] = true;
    for (const hlo_computation *c = m->last; c; c = c->prev)
        for (const hlo_instruction *i = c->first; i && wanted[c->id]; i = i->next)
            if (jobs_is_call(i->op)) hlo_instr_visit_called(i, jobs_call, wanted);
    for (const hlo_computation *c = m->first; c; c = c->next)
        if (wanted[c->id]) jobs_of_computation(&all, c, device, arena);
    return all;
}

#endif
