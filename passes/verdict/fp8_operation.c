/* SPDX-License-Identifier: Apache-2.0 */
/* Operations between a dequantization and a matmul. */
#include "passes/verdict/fp8_operation.h"

#include <math.h>

#include "ir/eval/range.h"
#include "ir/module/known.h"
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/value.h"

enum { STEP_LIMIT = 256, CALL_LIMIT = 16 };

/* Sources of a value by data, that is, by arrays with more than one element. */
enum {
    ON_FP8 = 1,
    ON_OTHERS = 2, /* the result of a matmul, or unknown instructions */
    ON_MORE = ON_FP8 | ON_OTHERS,
    ON_PARAMETERS = 4 /* parameters of its computation, which is called */
};

struct hlo_fp8_operations {
    const hlo_fp8_provenance *provenance;
    unsigned char *depends; /* by instruction id */
    bool *called;           /* by computation id: it is called by a call, not a loop or a branch */
};

/* Returns a bit set of the operands whose elements reach the result, for the first 32 operands. */
static uint32_t data_operands(const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_SELECT: return 6;
    case HLO_OP_GATHER:
    case HLO_OP_DYNAMIC_SLICE: return 1;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return 3;
    default: return UINT32_MAX;
    }
}

static bool is_single(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && hlo_shape_count(shape) == 1;
}

static unsigned char of_operands(const hlo_fp8_operations *f, const hlo_instr *instr) {
    const uint32_t data = data_operands(instr);
    unsigned char depends = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        if (data >> (i < 31 ? i : 31) & 1 &&
            (!is_single(operand->shape) || is_single(instr->shape)))
            depends |= f->depends[operand->id];
    }
    return depends;
}

/* True for an instruction whose result other computations compute, or that no operand reaches. */
static bool is_unknown(const hlo_fp8_operations *f, const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_FUSION:
    case HLO_OP_SCAN:
    case HLO_OP_INFEED:
    case HLO_OP_RECV: return true;
    case HLO_OP_PARAMETER:
        return instr->parent != instr->parent->module->entry && !f->called[instr->parent->id];
    default: return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
    }
}

static unsigned char depends_on(const hlo_fp8_operations *f, const hlo_instr *instr) {
    if (hlo_type_is_fp8_value(instr->shape->type)) return ON_FP8;
    const hlo_instr *from = hlo_handed_on(instr, NULL);
    if (from) return f->depends[from->id];
    if (instr->op == HLO_OP_PARAMETER && f->called[instr->parent->id]) return ON_PARAMETERS;
    if (!is_unknown(f, instr)) {
        const hlo_computation *called =
            instr->op == HLO_OP_CALL ? hlo_instr_comp(instr, HLO_ATTR_TO_APPLY) : NULL;
        unsigned char depends = called ? f->depends[called->root->id] : of_operands(f, instr);
        if (called && depends & ON_PARAMETERS)
            depends = (depends & ON_MORE) | of_operands(f, instr);
        /* For a tuple that another computation computes, the provenance knows each element. */
        if (instr->op != HLO_OP_GET_TUPLE_ELEMENT || !(depends & ON_OTHERS)) return depends;
    }
    const bool matmul = hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
    const bool known = !matmul && instr->shape->type != HLO_TYPE_TUPLE &&
                       hlo_fp8_provenance_has(f->provenance, instr);
    return known ? ON_FP8 : ON_OTHERS;
}

hlo_fp8_operations *hlo_fp8_operations_find(const hlo_module *module,
                                            const hlo_fp8_provenance *provenance,
                                            hlo_arena *arena) {
    hlo_fp8_operations *f = hlo_arena_zero(arena, sizeof *f);
    f->provenance = provenance;
    f->depends = hlo_arena_zero(arena, module->next_id);
    f->called = hlo_arena_zero(arena, module->next_computation_id);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_CALL)
                f->called[hlo_instr_comp(instr, HLO_ATTR_TO_APPLY)->id] = true;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            f->depends[instr->id] = depends_on(f, instr);
    return f;
}

/* True if the value is computed from fp8 values only. In a called computation, they may be
 * parameters. */
static bool is_computed(const hlo_fp8_operations *f, const hlo_instr *value) {
    const unsigned char depends = f->depends[value->id];
    return depends && !(depends & ON_OTHERS);
}

/* True if the factor is an array that repeats fewer elements: such a factor is a scale. */
static bool repeats_fewer(const hlo_instr *factor) {
    const int64_t count = hlo_shape_count(factor->shape);
    for (unsigned step = 0; step < HLO_CHAIN_LIMIT; step++) {
        if (hlo_shape_count(factor->shape) < count || factor->op == HLO_OP_CONSTANT) return true;
        if (!factor->operand_count || (!hlo_chain_link(factor) && factor->op != HLO_OP_CONVERT))
            return false;
        factor = hlo_instr_operand(factor, 0);
    }
    return false;
}

/* Returns the operand of a product or quotient that the other operand scales; NULL if it is not a
 * scaling. */
static const hlo_instr *scaled_operand(const hlo_fp8_operations *f, const hlo_instr *value,
                                       const hlo_instr **out_factor) {
    const uint32_t count = value->op == HLO_OP_MULTIPLY ? 2 : value->op == HLO_OP_DIVIDE;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instr *operand = hlo_instr_operand(value, i);
        *out_factor = hlo_instr_operand(value, !i);
        if (is_computed(f, operand) && (!is_computed(f, *out_factor) || repeats_fewer(*out_factor)))
            return operand;
    }
    return NULL;
}

/* Returns the operand that the instruction moves or converts, or NULL. */
static const hlo_instr *moved_operand(const hlo_fp8_operations *f, const hlo_instr *value) {
    const hlo_instr *from = value->operand_count ? hlo_instr_operand(value, 0) : NULL;
    if (hlo_hands_on(value) || hlo_instr_moves(value)) return from;
    if (value->op == HLO_OP_CONVERT)
        return hlo_type_is_float(value->shape->type) && hlo_type_is_float(from->shape->type) ? from
                                                                                             : NULL;
    if (hlo_op_is(value->op, HLO_JOINS) || value->op == HLO_OP_DYNAMIC_UPDATE_SLICE) {
        const bool update = value->op == HLO_OP_DYNAMIC_UPDATE_SLICE;
        const uint32_t first = value->op == HLO_OP_SELECT,
                       count = update ? 2 : value->operand_count;
        const hlo_instr *found = NULL;
        for (uint32_t i = first; i < count; i++) {
            const hlo_instr *branch = hlo_instr_operand(value, i);
            double number;
            /* A branch joins fp8 values if it comes from fp8, or is 0 or NaN. */
            if (!(is_computed(f, branch) ||
                  (hlo_known_number(branch, &number) && (number == 0 || isnan(number)))))
                return NULL;
            if (!found && is_computed(f, branch)) found = branch;
        }
        return found;
    }
    const hlo_computation *reduction = hlo_instr_comp(value, HLO_ATTR_TO_APPLY);
    return hlo_op_is(value->op, HLO_COLLECTIVE) && !reduction ? from : NULL;
}

/* True for q - z if q is a converted fp8 value and z is the same for all elements. */
static bool shifts(const hlo_instr *value) {
    if (value->op != HLO_OP_SUBTRACT) return false;
    const hlo_instr *left = hlo_instr_operand(value, 0);
    return left->op == HLO_OP_CONVERT && hlo_type_is_fp8(hlo_instr_operand(left, 0)->shape->type) &&
           hlo_splat_source(hlo_instr_operand(value, 1));
}

/* True for an instruction that passes an array to or from another computation. */
static bool is_boundary(const hlo_instr *value) {
    if (value->op == HLO_OP_GET_TUPLE_ELEMENT) {
        const hlo_op from = hlo_instr_operand(value, 0)->op;
        return from == HLO_OP_PARAMETER || from == HLO_OP_WHILE || from == HLO_OP_CONDITIONAL;
    }
    return value->op == HLO_OP_PARAMETER || value->op == HLO_OP_WHILE ||
           value->op == HLO_OP_CONDITIONAL || value->op == HLO_OP_FUSION;
}

/* The calls that contain the current position of a walk. */
typedef struct calls {
    const hlo_instr *v[CALL_LIMIT];
    unsigned count;
} calls;

/* Enters or leaves a call. Returns NULL if `value` is neither a call nor its parameter. */
static const hlo_instr *step_across(calls *inside, const hlo_instr *value) {
    if (value->op == HLO_OP_CALL && inside->count < CALL_LIMIT) {
        inside->v[inside->count++] = value;
        return hlo_instr_comp(value, HLO_ATTR_TO_APPLY)->root;
    }
    if (value->op != HLO_OP_PARAMETER || !inside->count) return NULL;
    return hlo_instr_operand(inside->v[--inside->count], (uint32_t)value->u.parameter);
}

/* The instructions on the path from a matmul to fp8 values. */
typedef struct passed {
    calls inside;
    const hlo_instr *relu;   /* the relu nearest to the matmul */
    const hlo_instr *array;  /* the factor nearest to the matmul with a value for each element */
    const hlo_instr *barred; /* the gate or update nearest to the matmul, through which FP8 never
                              * passes */
    const hlo_instr *join;   /* the join nearest to the matmul */
    bool scaled;             /* any factor */
    double factor, divisor;  /* lower bounds of the factors below the relu, and of the divisors */
} passed;

static void pass_factor(passed *p, const hlo_instr *scaling, const hlo_instr *factor) {
    p->scaled = true;
    if (!repeats_fewer(factor)) {
        if (!p->array) p->array = factor;
        const hlo_instr *from = factor;
        while (from->op == HLO_OP_CONVERT || hlo_instr_moves(from))
            from = hlo_instr_operand(from, 0);
        if (!p->barred && from->operand_count && !is_boundary(from)) p->barred = scaling;
    }
    if (!p->relu) return;
    double *least = scaling->op == HLO_OP_DIVIDE ? &p->divisor : &p->factor;
    *least = fmin(*least, hlo_range_of(factor).low);
}

/* Returns the value that `value` moves, converts, scales or rectifies, or NULL. */
static const hlo_instr *step_below(const hlo_fp8_operations *f, passed *p, const hlo_instr *value) {
    uint32_t index;
    const hlo_instr *factor, *from = hlo_handed_on(value, NULL);
    if (from) return from;
    if (hlo_is_relu(value, &index)) {
        if (!p->relu) p->relu = value;
        return hlo_instr_operand(value, index);
    }
    from = scaled_operand(f, value, &factor);
    if (from) pass_factor(p, value, factor);
    if (from) return from;
    from = moved_operand(f, value);
    if (from && value->op == HLO_OP_DYNAMIC_UPDATE_SLICE && !p->barred) p->barred = value;
    if (from && hlo_op_is(value->op, HLO_JOINS) && !p->join) p->join = value;
    return from;
}

const hlo_instr *hlo_fp8_operation(const hlo_fp8_operations *f, const hlo_instr *value,
                                   hlo_fp8_obstacle *out_obstacle) {
    passed p = {.factor = (double)INFINITY, .divisor = (double)INFINITY};
    if (f->depends[value->id] != ON_FP8) return NULL;
    for (unsigned step = 0; step < STEP_LIMIT; step++) {
        const hlo_instr *from = step_across(&p.inside, value);
        if (hlo_type_is_fp8(value->shape->type) || (!from && is_boundary(value))) break;
        if (!from) from = step_below(f, &p, value);
        if (!from || !is_computed(f, from)) {
            const bool zero_point = p.scaled && shifts(value);
            *out_obstacle = zero_point ? HLO_OBSTACLE_ZERO_POINT : HLO_OBSTACLE_OPERATION;
            return value;
        }
        value = from;
    }
    /* The signs of the factors stop fp8 values at a relu; see passes/builders/scaled_operand.c. */
    const bool signs =
        p.relu &&
        !(p.divisor > 0 && (value->shape->type == HLO_TYPE_F8E5M2 ? p.factor > 0 : p.factor >= 0));
    const hlo_instr *found = p.barred ? p.barred : signs ? p.relu : p.array ? p.array : p.join;
    const bool updates = p.barred && p.barred->op == HLO_OP_DYNAMIC_UPDATE_SLICE;
    *out_obstacle = updates    ? HLO_OBSTACLE_UPDATE
                    : p.barred ? HLO_OBSTACLE_OPERATION
                    : signs    ? HLO_OBSTACLE_RELU
                    : p.array  ? HLO_OBSTACLE_FACTOR
                               : HLO_OBSTACLE_JOIN;
    return found;
}
