/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the wide values that are computed from fp8 values, integers or narrow floats. */
#include "passes/analysis/fp8_provenance.h"

#include "ir/module/known.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/value.h"

enum { SWEEP_LIMIT = 4, STEP_LIMIT = 256 };

/* The caller of a computation, and the operand that becomes the computation's first parameter. */
typedef struct entry {
    const hlo_instruction
        *caller; /* the first loop or conditional that calls the computation, or NULL */
    uint32_t operand;
} entry;

/* The values from which an array is computed. */
typedef struct origin {
    const hlo_instruction *narrow; /* integers or floats of fewer than 8 bits, or NULL */
    bool fp8;
} origin;

/* One origin for each array of a value, also in nested tuples. */
typedef struct facts {
    origin own, *leaves; /* `own` is used for values that are not tuples, which have one leaf */
    uint32_t count;      /* number of leaves */
    uint32_t *starts;    /* index of the first leaf of each tuple element */
} facts;

struct hlo_fp8_provenance {
    hlo_arena *arena;
    facts *of;      /* indexed by instruction id */
    entry *entries; /* indexed by computation id */
    bool changed;
};

static void mark(hlo_fp8_provenance *c, origin *to, origin from) {
    c->changed |= (from.fp8 && !to->fp8) || (from.narrow && !to->narrow);
    to->fp8 |= from.fp8;
    if (!to->narrow) to->narrow = from.narrow;
}

static uint32_t leaf_count(const hlo_shape *shape) {
    uint32_t count = 0;
    if (shape->type != HLO_TYPE_TUPLE) return 1;
    for (uint32_t i = 0; i < shape->rank; i++) count += leaf_count(shape->elements[i]);
    return count;
}

static const facts *facts_of(const hlo_fp8_provenance *c, const hlo_instruction *value) {
    facts *f = &c->of[value->id];
    const hlo_shape *shape = value->shape;
    if (f->leaves) return f;
    f->count = leaf_count(shape);
    f->leaves = shape->type == HLO_TYPE_TUPLE
                    ? hlo_arena_zero(c->arena, f->count * sizeof *f->leaves)
                    : &f->own;
    if (shape->type != HLO_TYPE_TUPLE) return f;
    f->starts = hlo_arena_array(c->arena, shape->rank + 1, sizeof *f->starts);
    *f->starts = 0;
    for (uint32_t i = 0; i < shape->rank; i++)
        f->starts[i + 1] = f->starts[i] + leaf_count(shape->elements[i]);
    return f;
}

/* Propagates the facts of `from` to the leaves of `to`, starting at leaf `start`. */
static void hand_on(hlo_fp8_provenance *c, const hlo_instruction *from, const hlo_instruction *to,
                    uint32_t start) {
    const facts *have = facts_of(c, from), *get = facts_of(c, to);
    for (uint32_t i = 0; i < have->count && start + i < get->count; i++)
        mark(c, &get->leaves[start + i], have->leaves[i]);
}

static void call(hlo_fp8_provenance *c, const hlo_instruction *caller,
                 const hlo_computation *called, uint32_t first, uint32_t count) {
    if (!called) return;
    if (caller->op != HLO_OP_CALL && !c->entries[called->id].caller)
        c->entries[called->id] = (entry){caller, first};
    for (uint32_t i = 0; i < count && i < called->parameter_count; i++)
        hand_on(c, hlo_instr_operand(caller, first + i), called->parameters[i], 0);
    if (called->root) hand_on(c, called->root, caller, 0);
}

bool hlo_fp8_provenance_has(const hlo_fp8_provenance *provenance, const hlo_instruction *value) {
    const facts *f = facts_of(provenance, value);
    for (uint32_t i = 0; i < f->count; i++)
        if (f->leaves[i].fp8) return true;
    return false;
}

const hlo_instruction *hlo_fp8_provenance_narrow(const hlo_fp8_provenance *provenance,
                                                 const hlo_instruction *value) {
    const facts *f = facts_of(provenance, value);
    for (uint32_t i = 0; i < f->count; i++)
        if (f->leaves[i].narrow) return f->leaves[i].narrow;
    return NULL;
}

/* Returns the operands whose values reach the result, as a bit set of the first 32 operands. */
static uint32_t carrying(const hlo_instruction *instr) {
    uint32_t index;
    if (hlo_is_relu(instr, &index)) return 1u << index;
    switch (instr->op) {
    case HLO_OP_CONVERT:
    case HLO_OP_DIVIDE: return 1;
    case HLO_OP_MULTIPLY: return 3;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return 3;
    case HLO_OP_SELECT: return 6;
    case HLO_OP_CONCATENATE: return UINT32_MAX;
    case HLO_OP_ADD:
    case HLO_OP_SUBTRACT:
        return (hlo_splat_source(hlo_instr_operand(instr, 1)) ? 1u : 0u) |
               (hlo_splat_source(hlo_instr_operand(instr, 0)) ? 2u : 0u);
    default: return hlo_instr_moves(instr) || hlo_op_is(instr->op, HLO_COLLECTIVE);
    }
}

/* True if the value is a broadcast or a constant, as scales and zero points are. */
static bool is_factor(const hlo_instruction *value) {
    for (unsigned step = 0; step < STEP_LIMIT; step++) {
        const hlo_instruction *from = hlo_handed_on(value, NULL);
        if (!from &&
            (value->op == HLO_OP_CONVERT || hlo_op_is(value->op, HLO_RESHAPES | HLO_REORDERS)))
            from = hlo_instr_operand(value, 0);
        if (!from) break;
        value = from;
    }
    return value->op == HLO_OP_BROADCAST || value->op == HLO_OP_CONSTANT;
}

static bool has_operand(uint32_t operands, uint32_t i) {
    return operands >> (i < 31 ? i : 31) & 1;
}

/* Returns the narrow values that reach the result through `operands`, or NULL. They do not reach a
 * product with other values, so a mask may come from integers. */
static const hlo_instruction *narrow_of(const hlo_fp8_provenance *c, const hlo_instruction *instr,
                                        uint32_t operands) {
    const bool shifts = instr->op == HLO_OP_ADD || instr->op == HLO_OP_SUBTRACT;
    const bool scales = instr->op == HLO_OP_MULTIPLY || instr->op == HLO_OP_DIVIDE;
    const bool joins = instr->op == HLO_OP_SELECT || instr->op == HLO_OP_CONCATENATE;
    const hlo_instruction *found = NULL;
    double number;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        if (!shifts && !has_operand(operands, i)) continue;
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        const hlo_instruction *narrow = hlo_fp8_provenance_narrow(c, operand);
        if (joins && !narrow && !hlo_known_number(operand, &number)) return NULL;
        if ((shifts || scales) && narrow && !is_factor(hlo_instr_operand(instr, !i))) continue;
        if (!found) found = narrow;
    }
    const hlo_type type = instr->shape->type;
    const bool is_narrow = instr->shape->rank && /* a single number is not a quantized array */
                           (hlo_type_is_integer(type) || hlo_type_fits_e4m3(type));
    /* Of several integers, report those of the smallest type, and of these the last computed. */
    const bool narrows = !found || hlo_types[type].bits < hlo_types[found->shape->type].bits +
                                                              (instr->op != HLO_OP_CONVERT);
    return is_narrow && narrows ? instr : found;
}

static void visit(hlo_fp8_provenance *c, const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_TUPLE:
        for (uint32_t i = 0; i < instr->operand_count; i++)
            hand_on(c, hlo_instr_operand(instr, i), instr, facts_of(c, instr)->starts[i]);
        return;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instruction *tuple = hlo_instr_operand(instr, 0);
        const int64_t index = hlo_instr_int(instr, HLO_ATTR_INDEX, 0);
        if (tuple->shape->type != HLO_TYPE_TUPLE || index < 0 || index >= tuple->shape->rank)
            return;
        const facts *have = facts_of(c, tuple), *element = facts_of(c, instr);
        for (uint32_t i = 0; i < element->count; i++)
            mark(c, &element->leaves[i], have->leaves[have->starts[index] + i]);
    }
        return;
    case HLO_OP_OPT_BARRIER: hand_on(c, hlo_instr_operand(instr, 0), instr, 0); return;
    case HLO_OP_WHILE: {
        const hlo_computation *condition = hlo_instr_comp(instr, HLO_ATTR_CONDITION);
        hand_on(c, hlo_instr_operand(instr, 0), instr, 0);
        call(c, instr, hlo_instr_comp(instr, HLO_ATTR_BODY), 0, 1);
        hand_on(c, instr, hlo_instr_comp(instr, HLO_ATTR_BODY)->parameters[0], 0);
        hand_on(c, instr, condition->parameters[0], 0);
        return;
    }
    case HLO_OP_CONDITIONAL:
        for (uint32_t i = 1; i < instr->operand_count; i++)
            call(c, instr, hlo_branch_of(instr, i), i, 1);
        return;
    case HLO_OP_CALL:
        call(c, instr, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), 0, instr->operand_count);
        return;
    case HLO_OP_CUSTOM_CALL:
        if (!hlo_instr_is_mark(instr)) break;
        hand_on(c, hlo_instr_operand(instr, 0), instr, 0);
        return;
    default: break;
    }
    const uint32_t operands = carrying(instr);
    const facts *f = facts_of(c, instr);
    origin made = {narrow_of(c, instr, operands), hlo_type_is_fp8_value(instr->shape->type)};
    for (uint32_t i = 0; i < instr->operand_count && !made.fp8; i++)
        made.fp8 =
            has_operand(operands, i) && hlo_fp8_provenance_has(c, hlo_instr_operand(instr, i));
    for (uint32_t i = 0; i < f->count; i++) mark(c, &f->leaves[i], made);
}

const hlo_fp8_provenance *hlo_fp8_provenance_find(const hlo_module *module, hlo_arena *arena) {
    hlo_fp8_provenance *c = hlo_arena_zero(arena, sizeof *c);
    *c = (hlo_fp8_provenance){.arena = arena, .changed = true};
    c->of = hlo_arena_zero(arena, module->next_id * sizeof *c->of);
    c->entries = hlo_arena_zero(arena, module->next_computation_id * sizeof *c->entries);
    for (unsigned sweep = 0; c->changed && sweep < SWEEP_LIMIT; sweep++) {
        c->changed = false;
        /* Visit callers before callees. */
        for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                visit(c, instr);
    }
    return c;
}

static bool holds(const hlo_instruction *at, hlo_reason *out_reason) {
    const bool held = hlo_pin_holds(at);
    if (held || hlo_pin_has_element_attrs(at))
        *out_reason = held ? hlo_pin_reason(at) : HLO_REASON_CHAIN_NOT_MOVABLE;
    return held || hlo_pin_has_element_attrs(at);
}

const hlo_instruction *hlo_fp8_provenance_blocker(const hlo_fp8_provenance *provenance,
                                                  const hlo_instruction *value,
                                                  hlo_reason *out_reason) {
    for (unsigned step = 0; step < STEP_LIMIT && !hlo_type_is_fp8(value->shape->type); step++) {
        const hlo_instruction *from = value->operand_count ? hlo_instr_operand(value, 0) : NULL;
        const hlo_instruction *held, *held_by = NULL;
        *out_reason = HLO_REASON_DEQUANTIZED_OUTSIDE;
        switch (value->op) {
        case HLO_OP_GET_TUPLE_ELEMENT:
        case HLO_OP_OPT_BARRIER:
            held = hlo_handed_on(value, &held_by);
            if (held_by) {
                from = held_by;
                break;
            }
            if (from->op == HLO_OP_PARAMETER && provenance->entries[from->parent->id].caller) {
                /* A pinned instruction may block the value where it enters a loop or a branch. */
                const entry *in = &provenance->entries[from->parent->id];
                const hlo_instruction *tuple = hlo_instr_operand(in->caller, in->operand);
                if (holds(in->caller, out_reason)) return in->caller;
                if (tuple->op == HLO_OP_TUPLE && holds(tuple, out_reason)) return tuple;
                if (holds(from, out_reason)) return from;
                if (in->caller->op == HLO_OP_WHILE && holds(from->parent->root, out_reason))
                    return from->parent->root;
            }
            if (!held) return value;
            value = held;
            continue;
        case HLO_OP_CUSTOM_CALL:
            if (hlo_instr_moves(value)) {
                value = from;
                continue;
            }
            from = value;
            break;
        case HLO_OP_ADD:
        case HLO_OP_SUBTRACT: *out_reason = HLO_REASON_DEQUANTIZE_NOT_RECOGNIZED; return value;
        case HLO_OP_WHILE:
        case HLO_OP_CONDITIONAL:
        case HLO_OP_PARAMETER: return value;
        case HLO_OP_CALL: return NULL;
        default:
            for (uint32_t i = 0; i < value->operand_count; i++)
                if (hlo_fp8_provenance_has(provenance, hlo_instr_operand(value, i))) {
                    from = hlo_instr_operand(value, i);
                    break;
                }
            if (!from) return NULL;
            value = from;
            continue;
        }
        *out_reason = HLO_REASON_CHAIN_NOT_MOVABLE;
        return from;
    }
    return NULL;
}
