/* Sign analysis. */
#include "ir/module/known.h"
#include "passes/analysis/value.h"

enum { SIGN_LIMIT = 128 };

/* Returns the sign of `value`; `budget`: instructions that may still be visited. */
static hlo_sign sign_of(hlo_instr *value, unsigned *budget);

static hlo_sign least(hlo_sign a, hlo_sign b) {
    return a < b ? a : b;
}

static hlo_sign most(hlo_sign a, hlo_sign b) {
    return a > b ? a : b;
}

/* Returns the sign of a product or quotient: of two positive numbers it may underflow to 0. A
 * divisor must be above 0: 1 / -0 is -inf, and a maximum may make another negative number of that.
 */
static hlo_sign product(const hlo_instr *value, hlo_sign a, hlo_sign b) {
    if (value->op == HLO_OP_DIVIDE)
        return b == HLO_SIGN_PLUS ? least(a, HLO_SIGN_ZERO) : HLO_SIGN_ANY;
    bool square = hlo_instr_operand(value, 0) == hlo_instr_operand(value, 1);
    return square ? HLO_SIGN_ZERO : least(least(a, b), HLO_SIGN_ZERO);
}

static hlo_sign reduced(const hlo_instr *value, unsigned *budget) {
    const hlo_computation *f = hlo_instr_comp(value, HLO_ATTR_TO_APPLY);
    if (value->operand_count != 2 || !f || !f->root || f->parameter_count != 2 ||
        f->instr_count != 3 || f->root->operand_count != 2 ||
        hlo_instr_operand(f->root, 0) == hlo_instr_operand(f->root, 1))
        return HLO_SIGN_ANY;
    hlo_sign from = sign_of(hlo_instr_operand(value, 0), budget);
    hlo_sign init = sign_of(hlo_instr_operand(value, 1), budget);
    switch (f->root->op) {
    case HLO_OP_MAXIMUM:
        return hlo_shape_count(hlo_instr_operand(value, 0)->shape) > 0 ? most(from, init) : init;
    case HLO_OP_ADD: return least(from, init);
    case HLO_OP_MULTIPLY: return least(least(from, init), HLO_SIGN_ZERO);
    default: return HLO_SIGN_ANY;
    }
}

static hlo_sign sign_of(hlo_instr *value, unsigned *budget) {
    double number;
    const hlo_instr *from = hlo_handed_on(value, NULL);
    if (from) return *budget ? (--*budget, sign_of((hlo_instr *)from, budget)) : HLO_SIGN_ANY;
    if (hlo_known_number(value, &number))
        return number > 0 ? HLO_SIGN_PLUS : number == 0 ? HLO_SIGN_ZERO : HLO_SIGN_ANY;
    if (value->shape->type == HLO_TYPE_F8E8M0FNU) return HLO_SIGN_PLUS;
    if (!*budget || !hlo_shape_is_array(value->shape) || !hlo_type_is_float(value->shape->type))
        return HLO_SIGN_ANY;
    --*budget;
    hlo_sign s[3] = {HLO_SIGN_ANY, HLO_SIGN_ANY, HLO_SIGN_ANY};
    bool inside = hlo_op_is(value->op, HLO_ELEMENTWISE | HLO_MOVEMENT);
    for (uint32_t i = 0; inside && i < value->operand_count && i < 3; i++)
        s[i] = sign_of(hlo_instr_operand(value, i), budget);
    switch (value->op) {
    case HLO_OP_ABS:
    case HLO_OP_EXP:
    case HLO_OP_SQRT:
    case HLO_OP_LOGISTIC: return HLO_SIGN_ZERO;
    case HLO_OP_MAXIMUM: return most(s[0], s[1]);
    case HLO_OP_MINIMUM: return least(s[0], s[1]);
    case HLO_OP_ADD: return least(s[0], s[1]) == HLO_SIGN_ANY ? HLO_SIGN_ANY : most(s[0], s[1]);
    case HLO_OP_CLAMP: return least(s[0], s[2]);
    case HLO_OP_SELECT: return least(s[1], s[2]);
    case HLO_OP_MULTIPLY:
    case HLO_OP_DIVIDE: return product(value, s[0], s[1]);
    case HLO_OP_CONVERT: return least(s[0], HLO_SIGN_ZERO);
    case HLO_OP_BROADCAST:
    case HLO_OP_COPY:
    case HLO_OP_RESHAPE:
    case HLO_OP_SLICE:
    case HLO_OP_TRANSPOSE: return s[0];
    case HLO_OP_PAD: return least(s[0], s[1]);
    case HLO_OP_REDUCE: return reduced(value, budget);
    default: return HLO_SIGN_ANY;
    }
}

hlo_sign hlo_sign_least(hlo_instr *value) {
    unsigned budget = SIGN_LIMIT;
    return sign_of(value, &budget);
}
