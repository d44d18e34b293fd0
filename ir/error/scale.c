/* Factors that other executions may apply elsewhere. */
#include "ir/error/row.h"
#include "ir/module/known.h"

static bool only_moves(const hlo_instr *value) {
    return value->op == HLO_OP_CONVERT || hlo_instr_moves(value);
}

/* True if the value is one number, or repeated along some dimension, or computed from such values
 * elementwise. Looks down to `depth`, at `*steps` instructions. */
static bool is_scale_at(const hlo_instr *value, int depth, int *steps) {
    if (--*steps < 0) return false;
    if (hlo_shape_count(value->shape) == 1 || value->op == HLO_OP_BROADCAST) return true;
    bool moves = only_moves(value);
    if (!depth || !value->operand_count || !(moves || hlo_op_is(value->op, HLO_ELEMENTWISE)))
        return false;
    for (uint32_t o = 0; o < (moves ? 1 : value->operand_count); o++)
        if (!is_scale_at(hlo_instr_operand(value, o), depth - 1, steps)) return false;
    return true;
}

static bool is_scale(const hlo_instr *value, int *steps) {
    enum { DEPTH = 8 };
    return is_scale_at(value, DEPTH, steps);
}

/* True if the value is computed from quantised values, scaled or not. */
static bool is_dequantised(const hlo_instr *value, int *steps) {
    while (!hlo_type_is_fp8(value->shape->type)) {
        if (--*steps < 0) return false;
        bool scaled = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_DIVIDE;
        if (!scaled && !only_moves(value)) return false;
        value = hlo_instr_operand(value, scaled && is_scale(hlo_instr_operand(value, 0), steps));
    }
    return true;
}

/* True if rows of the shape may have one element: scales of rows are as many as elements, then. */
static bool is_thin(const hlo_shape *shape) {
    bool thin = shape->rank == 1;
    for (uint32_t d = 0; d < shape->rank; d++) thin |= shape->dims[d] == 1;
    return thin;
}

/* True if the value is repeated, or thin, directly or after movement and scaling: one element of it
 * may then scale a row. */
static bool comes_to_rows(const hlo_instr *value, int *steps) {
    if (is_thin(value->shape)) return true;
    for (const hlo_use *use = value->uses; use && --*steps > 0; use = use->next) {
        hlo_op op = use->user->op;
        if (op == HLO_OP_BROADCAST) return true;
        bool on = only_moves(use->user) || op == HLO_OP_MULTIPLY || op == HLO_OP_DIVIDE;
        if (on && comes_to_rows(use->user, steps)) return true;
    }
    return false;
}

bool hlo_error_scales(const hlo_instr *instr, uint32_t o) {
    int uses = 64, steps = 256; /* instructions looked at, so that a chain takes linear time */
    if (instr->op != HLO_OP_MULTIPLY && (instr->op != HLO_OP_DIVIDE || o != 1)) return false;
    const hlo_instr *scale = hlo_instr_operand(instr, o), *other = hlo_instr_operand(instr, 1 - o);
    /* Of two that both come from fp8 either may be the scale. */
    return is_scale(scale, &steps) ||
           (is_dequantised(other, &steps) && comes_to_rows(instr, &uses));
}
