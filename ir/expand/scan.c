/* SPDX-License-Identifier: Apache-2.0 */
/* Expands scans to loops: each iteration reads a slice of each input and writes a slice of each
 * result. */
#include "ir/expand/expansion.h"

/* The loop's state: the number of iterations so far, the inputs, the partial results, the
 * carries. */
typedef struct scan {
    uint32_t inputs, outputs, carries;
    int64_t dim, turns;
    bool reverse;
    hlo_computation *step; /* maps (input slices, carries) to (output slices, carries) */
    const hlo_shape *state;
    const hlo_shape *const *parts; /* shapes of the parts of the loop's state */
} scan;

/* Creates, before the scan's computation, a computation whose parameter is the loop's state. Moves
 * x->build->at into the new computation. */
static hlo_instruction *open_computation(expansion *x, const scan *s, const char *name) {
    hlo_computation *caller = x->build->at->parent, *comp = hlo_comp_new(x->module, name);
    const uint32_t offset = x->build->at->offset;
    hlo_instruction *state = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, s->state, 0, NULL, NULL);
    hlo_instr_set_parameter(state, 0);
    x->build->at =
        hlo_instr_new(comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(x->module, 0, NULL), 0, NULL, NULL);
    state->offset = x->build->at->offset = offset;
    hlo_comp_move(comp, caller);
    return state;
}

/* Sets the root of the computation, and restores the insertion point `at`. */
static hlo_computation *close_computation(expansion *x, hlo_instruction *root,
                                          hlo_instruction *at) {
    hlo_computation *comp = root->parent;
    hlo_instruction *end = x->build->at;
    hlo_comp_set_root(comp, root);
    hlo_instr_remove(end);
    x->build->at = at;
    return comp;
}

/* Builds the operands of the dynamic-slice or dynamic-update-slice of an array in an iteration. */
static uint32_t place_at(expansion *x, const scan *s, hlo_instruction *array,
                         hlo_instruction *slice, hlo_instruction *place, hlo_instruction **out) {
    hlo_instruction *zero = expand_number(x, 0);
    uint32_t count = 0;
    out[count++] = array;
    if (slice) out[count++] = slice;
    for (uint32_t d = 0; d < array->shape->rank; d++) out[count++] = d == s->dim ? place : zero;
    return count;
}

/* Returns the shape of a slice: one element along the scan's dimension. */
static const hlo_shape *slice_shape(const expansion *x, const scan *s, const hlo_shape *of) {
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t d = 0; d < of->rank; d++) dims[d] = d == s->dim ? 1 : of->dims[d];
    return hlo_shape_array(x->module, of->type, of->rank, dims);
}

static hlo_computation *make_body(expansion *x, const scan *s) {
    hlo_instruction *at = x->build->at, *state = open_computation(x, s, "scan_body");
    const uint32_t count = 1 + s->inputs + s->outputs + s->carries;
    hlo_instruction **next = hlo_arena_array(x->module->arena, count, sizeof(hlo_instruction *));
    hlo_instruction **given = hlo_arena_array(x->module->arena, count, sizeof(hlo_instruction *));
    hlo_instruction *operands[2 + HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < count; i++) next[i] = hlo_build_element(x->build, state, i);
    hlo_instruction *place = next[0];
    if (s->reverse)
        place = hlo_build_binary(x->build, HLO_OP_SUBTRACT, expand_number(x, s->turns - 1), place);
    next[0] = hlo_build_binary(x->build, HLO_OP_ADD, next[0], expand_number(x, 1));
    for (uint32_t i = 0; i < s->inputs; i++) {
        const hlo_shape *shape = slice_shape(x, s, next[1 + i]->shape);
        const uint32_t n = place_at(x, s, next[1 + i], NULL, place, operands);
        hlo_instruction *slice = hlo_build(x->build, HLO_OP_DYNAMIC_SLICE, shape, n, operands);
        hlo_instr_set_ints(slice, HLO_ATTR_DYNAMIC_SLICE_SIZES, shape->rank, shape->dims);
        given[i] = hlo_build(x->build, HLO_OP_RESHAPE, s->step->parameters[i]->shape, 1, &slice);
    }
    hlo_instruction **made = next + 1 + s->inputs, **carried = made + s->outputs;
    for (uint32_t i = 0; i < s->carries; i++) given[s->inputs + i] = carried[i];
    const hlo_shape *results = s->step->root->shape;
    hlo_instruction *call =
        hlo_build(x->build, HLO_OP_CALL, results, s->inputs + s->carries, given);
    hlo_instr_set_comp(call, HLO_ATTR_TO_APPLY, s->step);
    for (uint32_t i = 0; i < s->outputs + s->carries; i++) {
        hlo_instruction *result =
            results->type == HLO_TYPE_TUPLE ? hlo_build_element(x->build, call, i) : call;
        if (i < s->outputs) {
            hlo_instruction *slice =
                hlo_build(x->build, HLO_OP_RESHAPE, slice_shape(x, s, made[i]->shape), 1, &result);
            const uint32_t n = place_at(x, s, made[i], slice, place, operands);
            result = hlo_build(x->build, HLO_OP_DYNAMIC_UPDATE_SLICE, made[i]->shape, n, operands);
        }
        made[i] = result;
    }
    return close_computation(x, hlo_build(x->build, HLO_OP_TUPLE, s->state, count, next), at);
}

/* Replaces the scan at x->build->at by a loop. Returns false after an error. */
static bool expand_scan(expansion *x) {
    hlo_instruction *instr = x->build->at;
    const hlo_shape *result = instr->shape;
    const bool many = result->type == HLO_TYPE_TUPLE;
    const hlo_shape **part = hlo_arena_array(
        x->module->arena, instr->operand_count + (many ? result->rank : 1) + 1, sizeof *part);
    scan s = {.carries = (uint32_t)hlo_instr_int(instr, HLO_ATTR_NUM_CARRIES, 0),
              .dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0],
              .reverse = hlo_instr_int(instr, HLO_ATTR_IS_REVERSE, 0) != 0,
              .step = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY),
              .parts = part};
    s.inputs = instr->operand_count - s.carries;
    s.outputs = (many ? result->rank : 1) - s.carries;
    s.turns = hlo_instr_operand(instr, 0)->shape->dims[s.dim];
    *part++ = hlo_shape_array(x->module, HLO_TYPE_S32, 0, NULL);
    for (uint32_t i = 0; i < s.inputs; i++) *part++ = hlo_instr_operand(instr, i)->shape;
    for (uint32_t i = 0; i < s.outputs; i++) *part++ = many ? result->elements[i] : result;
    for (uint32_t i = 0; i < s.carries; i++)
        *part++ = hlo_instr_operand(instr, s.inputs + i)->shape;
    s.state = hlo_shape_tuple(x->module, 1 + s.inputs + s.outputs + s.carries, s.parts);
    for (uint32_t i = 0; i < s.inputs; i++)
        if (dynamic_declares(hlo_instr_operand(instr, i)->shape, s.dim))
            return expand_refuse(x, "iterates over a dynamic dimension, which is not supported");
    if (s.turns > INT32_MAX) return expand_refuse(x, "has more than 2^31-1 iterations");
    const uint32_t first = 1 + s.inputs, results = s.outputs + s.carries;
    hlo_instruction **parts =
        hlo_arena_array(x->module->arena, first + results, sizeof(hlo_instruction *));
    parts[0] = expand_number(x, 0);
    for (uint32_t i = 0; i < s.inputs; i++) parts[1 + i] = hlo_instr_operand(instr, i);
    for (uint32_t i = 0; i < s.outputs; i++)
        parts[first + i] =
            expand_splat(x, expand_zero(x, s.parts[first + i]->type), s.parts[first + i]);
    for (uint32_t i = 0; i < s.carries; i++)
        parts[first + s.outputs + i] = hlo_instr_operand(instr, s.inputs + i);
    if (s.turns > 0) {
        hlo_instruction *start = hlo_build(x->build, HLO_OP_TUPLE, s.state, first + results, parts);
        hlo_instruction *loop = hlo_build(x->build, HLO_OP_WHILE, s.state, 1, &start);
        hlo_instruction *at = x->build->at, *state = open_computation(x, &s, "scan_condition");
        hlo_instruction *turn = hlo_build_element(x->build, state, 0);
        hlo_instr_set_comp(
            loop, HLO_ATTR_CONDITION,
            close_computation(x, hlo_build_compare(x->build, turn, "LT", expand_number(x, s.turns)),
                              at));
        hlo_instr_set_comp(loop, HLO_ATTR_BODY, make_body(x, &s));
        for (uint32_t i = 0; i < results; i++)
            parts[first + i] = hlo_build_element(x->build, loop, first + i);
    }
    expand_replace(x, instr->shape->type == HLO_TYPE_TUPLE ? HLO_OP_TUPLE : HLO_OP_COPY,
                   instr->shape, results, parts + first);
    return true;
}

hlo_status hlo_scan_expand(hlo_module *module, const hlo_diag_sink *sink) {
    expansion x = {.module = module, .sink = sink};
    if (!module->op_counts[HLO_OP_SCAN]) return HLO_OK;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            if (instr->op != HLO_OP_SCAN) continue;
            x.build->at = instr;
            if (!expand_scan(&x)) return HLO_INVALID_INPUT;
        }
    return HLO_OK;
}
