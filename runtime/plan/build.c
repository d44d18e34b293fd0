/* SPDX-License-Identifier: Apache-2.0 */
/* Values, slots and errors, for the functions that create steps. */
#include "runtime/plan/build.h"
#include "ir/text/diag.h"

#include <string.h>

void build_warn(const build *b, const hlo_instr *instr, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(b->plan->module, b->sink, HLO_WARNING, instr->offset, strlen(instr->name),
                   format, args);
    va_end(args);
}

void build_refuse(build *b, const hlo_instr *instr, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(b->plan->module, b->sink, HLO_ERROR, instr->offset, strlen(instr->name), format,
                   args);
    va_end(args);
    b->failed = true;
}

build_value *build_value_of(const build *b, const hlo_instr *instr) {
    return &b->values[b->place[instr->id - b->first_id]];
}

void build_leaf_shapes(const hlo_shape *shape, const hlo_shape ***out) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) build_leaf_shapes(shape->elements[i], out);
    } else if (hlo_types[shape->type].bytes) {
        *(*out)++ = shape;
    }
}

const hlo_shape **build_leaves(const build *b, const hlo_shape *shape) {
    const hlo_shape **shapes =
        hlo_arena_array(b->plan->arena, hlo_shape_leaf_count(shape) + 1, sizeof *shapes);
    const hlo_shape **end = shapes;
    build_leaf_shapes(shape, &end);
    return shapes;
}

uint32_t build_slot(build *b, plan_slot_kind kind, const hlo_shape *shape) {
    plan_comp *comp = b->comp;
    hlo_arena_grow(b->plan->arena, &comp->slots, comp->slot_count, &comp->slot_capacity,
                   sizeof *comp->slots);
    plan_slot *slot = &comp->slots[comp->slot_count];
    *slot = (plan_slot){.kind = kind, .type = HLO_TYPE_INVALID};
    if (shape) {
        slot->type = shape->type;
        slot->size = (size_t)hlo_shape_bytes(shape);
        if (b->plan->options.bounds)
            slot->bound_size = slot->size / hlo_types[shape->type].bytes * sizeof(float);
    }
    return comp->slot_count++;
}

uint32_t build_work(build *b, size_t size) {
    uint32_t slot = build_slot(b, SLOT_BUFFER, NULL);
    b->comp->slots[slot].size = size;
    return slot;
}

build_value build_new_value(const build *b, uint32_t count) {
    return (build_value){hlo_arena_array(b->plan->arena, count, sizeof(uint32_t)), count};
}

build_value build_new_slots(build *b, plan_slot_kind kind, const hlo_shape *shape) {
    const hlo_shape **shapes = build_leaves(b, shape);
    build_value v = build_new_value(b, hlo_shape_leaf_count(shape));
    for (uint32_t i = 0; i < v.count; i++) v.slots[i] = build_slot(b, kind, shapes[i]);
    return v;
}

build_value build_operands(const build *b, const hlo_instr *instr) {
    uint32_t count = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        count += build_value_of(b, hlo_instr_operand(instr, i))->count;
    build_value v = build_new_value(b, count);
    uint32_t at = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const build_value *operand = build_value_of(b, hlo_instr_operand(instr, i));
        memcpy(v.slots + at, operand->slots, operand->count * sizeof *v.slots);
        at += operand->count;
    }
    return v;
}

plan_step *build_step(build *b, plan_step_kind kind, const hlo_instr *instr, build_value operands,
                      build_value results) {
    plan_comp *comp = b->comp;
    hlo_arena_grow(b->plan->arena, &comp->steps, comp->step_count, &comp->step_capacity,
                   sizeof *comp->steps);
    plan_step *step = &comp->steps[comp->step_count++];
    *step = (plan_step){.kind = kind,
                        .instr = instr,
                        .operand_count = operands.count,
                        .result_count = results.count,
                        .operands = operands.slots,
                        .results = results.slots,
                        .work = PLAN_NONE,
                        .predicate = PLAN_NONE};
    return step;
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

bool plan_makes_result(const plan_comp *comp, uint32_t index) {
    const plan_slot *slot = &comp->slots[comp->results[index]];
    return slot->kind == SLOT_RESULT && slot->index == index;
}
