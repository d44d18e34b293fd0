/* SPDX-License-Identifier: Apache-2.0 */
/* Trip counts of while loops that increment one element of their state from a constant, by a
 * constant, to a constant. */
#include <limits.h>

#include "ir/ir.h"
#include "ir/module/known.h"
#include "ir/module/trip_count.h"

/* A scalar integer as a constant, or as an element of the loop's state plus a constant. */
typedef struct affine {
    enum { UNKNOWN, CONSTANT, ELEMENT } kind;
    int64_t element; /* index in the state */
    int64_t plus;
} affine;

/* A computation being analyzed and its caller. Its parameters are the caller's operands, or the
 * loop's state if it has no caller. */
typedef struct scope {
    const struct scope *outer;
    const hlo_instr *caller;
    unsigned *steps; /* instructions that the analysis of the loop may still visit */
} scope;

/* Maximum length of a chain of copies and calls, and number of instructions to visit: both operands
 * of a chain of additions may be the same. */
enum { DEPTH = 64, STEPS = 1 << 10 };
/* Largest trip count that is computed. */
enum { LARGEST_TRIP_COUNT = 1 << 20 };

static affine affine_of(const hlo_instr *i, const scope *s, int depth);

static affine unknown(void) {
    return (affine){.kind = UNKNOWN};
}

static affine shifted(affine a, affine b, int sign) {
    if (a.kind == CONSTANT && b.kind == ELEMENT && sign > 0) return shifted(b, a, sign);
    if (a.kind == UNKNOWN || b.kind != CONSTANT) return unknown();
    int64_t by = sign * b.plus;
    if (a.plus > INT_MAX || a.plus < INT_MIN || by > INT_MAX || by < INT_MIN) return unknown();
    a.plus += by;
    return a;
}

/* Analyzes an operand; in an unverified module it may be missing. */
static affine affine_of_operand(const hlo_instr *i, int64_t index, const scope *s, int depth) {
    if (index < 0 || index >= i->operand_count) return unknown();
    return affine_of(hlo_instr_operand(i, (uint32_t)index), s, depth);
}

static affine affine_of_call(const hlo_instr *i, hlo_attr_id attr, const scope *s, int depth) {
    const scope inner = {s, i, s->steps};
    return affine_of(hlo_instr_comp(i, attr)->root, &inner, depth);
}

static affine affine_of(const hlo_instr *i, const scope *s, int depth) {
    double number;
    if (!depth-- || !*s->steps || !hlo_shape_is_array(i->shape) || hlo_shape_count(i->shape) != 1 ||
        !hlo_type_is_integer(i->shape->type))
        return unknown();
    --*s->steps;
    if (hlo_known_number(i, &number) && number < (double)INT64_MAX)
        return (affine){CONSTANT, 0, (int64_t)number};
    switch (i->op) {
    case HLO_OP_PARAMETER:
        return s->caller ? affine_of_operand(s->caller, i->u.parameter, s->outer, depth)
                         : unknown();
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instr *tuple = hlo_instr_operand(i, 0);
        int64_t index = hlo_instr_int(i, HLO_ATTR_INDEX, 0);
        if (tuple->op == HLO_OP_TUPLE) return affine_of_operand(tuple, index, s, depth);
        if (tuple->op == HLO_OP_PARAMETER && !s->caller) return (affine){ELEMENT, index, 0};
        return unknown();
    }
    case HLO_OP_CALL: return affine_of_call(i, HLO_ATTR_TO_APPLY, s, depth);
    case HLO_OP_FUSION: return affine_of_call(i, HLO_ATTR_CALLS, s, depth);
    case HLO_OP_ADD:
    case HLO_OP_SUBTRACT:
        return shifted(affine_of(hlo_instr_operand(i, 0), s, depth),
                       affine_of(hlo_instr_operand(i, 1), s, depth), i->op == HLO_OP_ADD ? 1 : -1);
    default:
        return hlo_instr_moves_by(i, HLO_KEEPS_ORDER) ? affine_of(hlo_instr_operand(i, 0), s, depth)
                                                      : unknown();
    }
}

/* Analyzes element `index` of the tuple that a computation returns, or of a loop's initial
 * state. */
static affine affine_of_part(const hlo_instr *tuple, int64_t index, const scope *s) {
    if (tuple->op != HLO_OP_TUPLE) return unknown();
    return affine_of_operand(tuple, index, s, DEPTH);
}

/* Finds the counter's initial value and its step. Returns false if it has another form. */
static bool resolve(const hlo_instr *loop, affine f, unsigned *steps, int64_t *out_start,
                    int64_t *out_step) {
    const scope none = {.steps = steps};
    *out_start = f.plus;
    *out_step = 0;
    if (f.kind != ELEMENT) return f.kind == CONSTANT;
    affine start = affine_of_part(hlo_instr_operand(loop, 0), f.element, &none);
    affine next = affine_of_part(hlo_instr_comp(loop, HLO_ATTR_BODY)->root, f.element, &none);
    if (start.kind != CONSTANT || next.kind != ELEMENT || next.element != f.element) return false;
    *out_start += start.plus;
    *out_step = next.plus;
    return true;
}

static bool holds(const char *direction, int64_t a, int64_t b) {
    switch (direction[0] * 256 + direction[1]) {
    case 'L' * 256 + 'T': return a < b;
    case 'L' * 256 + 'E': return a <= b;
    case 'G' * 256 + 'T': return a > b;
    case 'G' * 256 + 'E': return a >= b;
    case 'N' * 256 + 'E': return a != b;
    default: return a == b;
    }
}

/* True if the counter's type represents the value: a counter that wraps around has another trip
 * count. */
static bool fits(hlo_type type, int64_t value) {
    int bits = hlo_types[type].bits;
    if (hlo_types[type].class == HLO_CLASS_UNSIGNED)
        return value >= 0 && (bits > 62 || value < (INT64_C(1) << bits));
    return bits > 62 ||
           (value < (INT64_C(1) << (bits - 1)) && value >= -(INT64_C(1) << (bits - 1)));
}

uint64_t hlo_while_trip_count(const hlo_instr *loop) {
    scope scopes[DEPTH];
    /* Find the comparison that the condition returns, and its scope. */
    const hlo_instr *compare = hlo_instr_comp(loop, HLO_ATTR_CONDITION)->root;
    int depth = 0;
    unsigned steps = STEPS;
    scopes[0] = (scope){.steps = &steps};
    for (; depth + 1 < DEPTH && compare->op != HLO_OP_COMPARE; depth++) {
        if (compare->op != HLO_OP_CALL && compare->op != HLO_OP_FUSION)
            return HLO_TRIP_COUNT_UNKNOWN;
        scopes[depth + 1] = (scope){&scopes[depth], compare, &steps};
        compare =
            hlo_instr_comp(compare, compare->op == HLO_OP_CALL ? HLO_ATTR_TO_APPLY : HLO_ATTR_CALLS)
                ->root;
    }
    if (depth + 1 == DEPTH) return HLO_TRIP_COUNT_UNKNOWN;
    const scope *s = &scopes[depth];
    const char *direction = hlo_instr_str(compare, HLO_ATTR_DIRECTION);
    hlo_type type = hlo_instr_operand(compare, 0)->shape->type;
    int64_t a, a_step, b, b_step;
    if (!direction ||
        !resolve(loop, affine_of(hlo_instr_operand(compare, 0), s, DEPTH), &steps, &a, &a_step))
        return HLO_TRIP_COUNT_UNKNOWN;
    if (!resolve(loop, affine_of(hlo_instr_operand(compare, 1), s, DEPTH), &steps, &b, &b_step))
        return HLO_TRIP_COUNT_UNKNOWN;
    for (uint64_t count = 0; count < LARGEST_TRIP_COUNT && fits(type, a) && fits(type, b);
         count++) {
        if (!holds(direction, a, b)) return count;
        a += a_step;
        b += b_step;
    }
    return HLO_TRIP_COUNT_UNKNOWN;
}
