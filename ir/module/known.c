/* SPDX-License-Identifier: Apache-2.0 */
/* Finds elements that are known without evaluation: those of constants and iotas, also after
 * movement and conversion. Finds trip counts of while loops.
 *
 * Invariant: an element is traced to its source one instruction at a time. If a step is uncertain,
 * the element is unknown. */
#include <limits.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/float/literal.h"
#include "ir/ir.h"
#include "ir/module/index_map.h"
#include "ir/module/known.h"

enum { STEP_LIMIT = 128, COUNT_LIMIT = 1 << 12 };

/* An element in the bytes of a literal. */
typedef struct cell {
    hlo_type type;
    uint64_t bits;
} cell;

/* State of a search for an element. */
typedef struct search {
    bool through_pins;
    unsigned steps;
} search;

static bool element(const hlo_instruction *value, int64_t at, search *s, cell *out);

/* True at a pinned instruction, unless the search may pass through pins. */
static bool stops(const hlo_instruction *value, search *s) {
    return s->steps++ >= STEP_LIMIT || (value->pin && !s->through_pins);
}

static bool is_real(hlo_type type) {
    return hlo_type_is_float(type) || hlo_type_is_integer(type) || type == HLO_TYPE_PRED;
}

static bool same_cell(cell a, cell b) {
    return a.type == b.type && a.bits == b.bits;
}

bool hlo_instr_is_mark(const hlo_instruction *instr) {
    return hlo_is_custom_call(instr, "Sharding") && instr->operand_count == 1;
}

bool hlo_instr_is_annotation(const hlo_instruction *instr) {
    static const char *const targets[] = {"Sharding",
                                          "ShardBarrierFrom",
                                          "ShardBarrierTo",
                                          "xla.sdy.FuncResultSharding",
                                          "xla.sdy.PropagationBarrier",
                                          "LayoutConstraint",
                                          "MoveToHost",
                                          "MoveToDevice",
                                          "PinToDevice",
                                          "PinToDeviceSram",
                                          "annotate_device_placement"};
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (hlo_is_custom_call(instr, targets[i])) return instr->operand_count == 1;
    return false;
}

const hlo_computation *hlo_instr_called(const hlo_instruction *instr) {
    if (instr->op == HLO_OP_CALL) return hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
    if (instr->op == HLO_OP_FUSION) return hlo_instr_comp(instr, HLO_ATTR_CALLS);
    return NULL;
}

bool hlo_hands_on(const hlo_instruction *value) {
    return value->op == HLO_OP_OPT_BARRIER || value->op == HLO_OP_DOMAIN ||
           value->op == HLO_OP_ADD_DEPENDENCY ||
           (hlo_instr_is_mark(value) &&
            hlo_shape_compatible(value->shape, hlo_instr_operand(value, 0)->shape));
}

hlo_instruction *hlo_handed_on(const hlo_instruction *value, const hlo_instruction **out_holder) {
    enum { TUPLE_DEPTH = 8 };
    int64_t path[TUPLE_DEPTH];
    unsigned depth = 0;
    const hlo_instruction *holder = NULL;
    hlo_instruction *found = NULL;
    for (const hlo_instruction *at = value;;) {
        uint32_t next = 0;
        if (at->op == HLO_OP_GET_TUPLE_ELEMENT && depth < TUPLE_DEPTH)
            path[depth++] = hlo_instr_int(at, HLO_ATTR_INDEX, 0);
        else if (at->op == HLO_OP_TUPLE && depth)
            next = (uint32_t)path[--depth];
        else if (!hlo_hands_on(at))
            return found;
        else if (!holder)
            holder = at;
        hlo_instruction *from = hlo_instr_operand(at, next);
        if (!depth) found = from;
        if (!depth && out_holder) *out_holder = holder;
        at = from;
    }
}

/* True for a sharding annotation that copies its operand and whose attributes remain valid with
 * another element type. False for annotations of arguments and results of manual regions, which
 * must remain next to the region. */
static bool copies(const hlo_instruction *instr) {
    static const hlo_attr_id ids[] = {HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS,
                                      HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING, HLO_ATTR_LITERAL,
                                      HLO_ATTR_TO_APPLY, HLO_ATTR_CALLED_COMPUTATIONS};
    if (!hlo_instr_is_mark(instr)) return false;
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (hlo_instr_attr(instr, ids[i])) return false;
    const char *sharding = hlo_instr_str(instr, HLO_ATTR_SHARDING);
    return !(sharding && strstr(sharding, "manual")) && hlo_shape_is_array(instr->shape) &&
           hlo_shape_same_dims(instr->shape, hlo_instr_operand(instr, 0)->shape);
}

bool hlo_instr_moves_by(const hlo_instruction *instr, unsigned kinds) {
    return (hlo_op_is(instr->op, kinds) || (kinds & HLO_COPIES && copies(instr))) &&
           instr->operand_count && instr->shape->type == hlo_instr_operand(instr, 0)->shape->type;
}

bool hlo_instr_moves(const hlo_instruction *instr) {
    return hlo_instr_moves_by(instr, HLO_MOVEMENT);
}

/* -------------------------------------------------------------------------------------- numbers */

/* Converts an element to a double. Returns false if no double equals it. */
static bool number_of(cell c, double *out) {
    if (!is_real(c.type)) return false;
    *out = hlo_number_load(c.type, &c.bits);
    cell again = {.type = c.type};
    hlo_number_store(c.type, &again.bits, *out);
    return hlo_type_is_float(c.type) || same_cell(c, again);
}

static bool cell_of(hlo_type type, double number, cell *out) {
    *out = (cell){.type = type};
    if (!is_real(type)) return false;
    hlo_number_store(type, &out->bits, number);
    return true;
}

/* Converts an element like HLO's convert. Also returns false if an integer is truncated. */
static bool converted(hlo_type type, cell *c) {
    double number, result;
    if (c->type == type) return true;
    bool whole = !hlo_type_is_float(c->type) && hlo_type_is_integer(type);
    return number_of(*c, &number) && cell_of(type, number, c) &&
           (!whole || (number_of(*c, &result) && result == number));
}

/* --------------------------------------------------------------------------------------- places */

typedef struct place {
    int64_t v[HLO_LARGEST_RANK];
} place;

static void unravel(const hlo_shape *shape, int64_t at, place *out) {
    for (uint32_t i = shape->rank; i-- > 0; at /= shape->dims[i]) out->v[i] = at % shape->dims[i];
}

static int64_t ravel(const hlo_shape *shape, const place *p) {
    int64_t at = 0;
    for (uint32_t i = 0; i < shape->rank; i++) at = at * shape->dims[i] + p->v[i];
    return at;
}

/* Finds the element of `from` at the memory position of an element of `to`. Returns false if it is
 * unknown, for example because of tiles in a layout. Not inlined; see find_source(). */
__attribute__((noinline)) static bool across_bitcast(const hlo_shape *from, const hlo_shape *to,
                                                     int64_t *at) {
    int64_t strides[HLO_LARGEST_RANK], offset = 0;
    const hlo_shape *both[] = {from, to};
    if (!hlo_shape_is_array(from) || from->dynamic || from->rank > HLO_LARGEST_RANK ||
        hlo_shape_count(from) != hlo_shape_count(to))
        return false;
    for (int i = 0; i < 2; i++)
        if ((both[i]->layout && both[i]->layout->rest) || !hlo_shape_is_ordered(both[i]))
            return false;
    place p;
    unravel(to, *at, &p);
    hlo_shape_strides(to, strides);
    for (uint32_t i = 0; i < to->rank; i++) offset += p.v[i] * strides[i];
    hlo_shape_strides(from, strides);
    for (uint32_t i = 0; i < from->rank; i++) p.v[i] = offset / strides[i] % from->dims[i];
    *at = ravel(from, &p);
    return true;
}

/* ------------------------------------------------------------------------------------- elements */

/* Finds the element of the operand that element `at` of the result equals. Sets `*out_inside` to
 * false if element `at` does not come from this operand. Returns false if the source is unknown.
 * Not inlined: moved_element() recurses, and its frame must be small. */
__attribute__((noinline)) static bool find_source(const hlo_index_map *map, int64_t at, search *s,
                                                  int64_t *out_at, bool *out_inside) {
    place here, there;
    unravel(map->instr->shape, at, &here);
    const hlo_shape *from = map->from->shape;
    hlo_index x;
    *out_inside = true;
    for (uint32_t d = 0; d < from->rank; d++) {
        if (!hlo_index_along(map, d, &x)) return false;
        if (x.at) {
            cell c;
            double start;
            if (x.varies || !element(hlo_instr_operand(map->instr, x.at), x.element, s, &c) ||
                !number_of(c, &start))
                return false;
            const double last = (double)x.last;
            x.start += (int64_t)(start > last ? last : start < 0 ? 0 : start);
        }
        const int64_t index = x.of < 0 ? 0 : here.v[x.of], off = index - x.start;
        there.v[d] = map->form == HLO_INDEX_PART ? x.start + x.stride * index : off / x.stride;
        if (map->form != HLO_INDEX_PART)
            *out_inside &= off >= 0 && off % x.stride == 0 && there.v[d] < from->dims[d];
    }
    if (*out_inside) *out_at = ravel(map->from->shape, &there);
    return true;
}

static bool moved_element(const hlo_instruction *value, int64_t at, search *s, cell *out) {
    const hlo_shape *shape = value->shape;
    hlo_index_map map;
    int64_t source;
    bool inside;
    if (!hlo_index_map_first(value, &map)) return false;
    do {
        switch (map.form) {
        case HLO_INDEX_ORDER: return element(map.from, at, s, out);
        case HLO_INDEX_MEMORY:
            if (!(map.from->shape->type == shape->type ||
                  (hlo_types[map.from->shape->type].bits == hlo_types[shape->type].bits &&
                   hlo_types[shape->type].bits >= 8 && map.from->shape->type != HLO_TYPE_PRED &&
                   shape->type != HLO_TYPE_PRED)) ||
                !across_bitcast(map.from->shape, shape, &at) || !element(map.from, at, s, out))
                return false;
            out->type = shape->type;
            return true;
        case HLO_INDEX_PART:
        case HLO_INDEX_PLACED:
        case HLO_INDEX_JOINED:
            if (!find_source(&map, at, s, &source, &inside)) return false;
            if (inside) return element(map.from, source, s, out);
        }
    } while (hlo_index_map_next(&map));
    return false;
}

static bool literal_element(const hlo_literal *literal, int64_t at, cell *out) {
    size_t size = hlo_types[literal->shape->type].bytes;
    *out = (cell){.type = literal->shape->type};
    if (!literal->data || size > sizeof out->bits) return false;
    memcpy(&out->bits, (const char *)literal->data + (size_t)at * size, size);
    return true;
}

/* Finds element `at` of `value`, in row-major order. */
static bool element(const hlo_instruction *value, int64_t at, search *s, cell *out) {
    const hlo_shape *shape = value->shape;
    if (stops(value, s) || !hlo_shape_is_array(shape) || shape->dynamic ||
        shape->rank > HLO_LARGEST_RANK || at < 0 || at >= hlo_shape_count(shape))
        return false;
    const hlo_instruction *from = value->operand_count ? hlo_instr_operand(value, 0) : NULL;
    const int64_t dim = hlo_instr_int(value, HLO_ATTR_IOTA_DIMENSION, -1);
    switch (value->op) {
    case HLO_OP_CONSTANT: return literal_element(value->u.literal, at, out);
    case HLO_OP_IOTA:
        if (dim < 0 || dim >= shape->rank) return false;
        for (uint32_t d = shape->rank; d-- > dim + 1;) at /= shape->dims[d];
        return cell_of(shape->type, (double)(at % shape->dims[dim]), out);
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instruction *tuple = hlo_instr_operand(value, 0);
        int64_t index = hlo_instr_int(value, HLO_ATTR_INDEX, -1);
        bool there = tuple->op == HLO_OP_TUPLE && index >= 0 && index < tuple->operand_count;
        from = there ? hlo_instr_operand(tuple, (uint32_t)index) : NULL;
        return from && hlo_shape_compatible(from->shape, shape) && element(from, at, s, out);
    }
    case HLO_OP_CONVERT: return element(from, at, s, out) && converted(shape->type, out);
    default: return moved_element(value, at, s, out);
    }
}

/* Finds the value that all elements have, from the opcode of the instruction, without visiting
 * equal elements one by one. Returns false if the array is empty, or if the elements are not known
 * to be equal. */
static bool one_all_over(const hlo_instruction *value, search *s, cell *out) {
    int64_t count = hlo_shape_is_array(value->shape) ? hlo_shape_count(value->shape) : 0;
    if (count < 1 || stops(value, s)) return false;
    if (count == 1) return element(value, 0, s, out);
    cell part;
    switch (value->op) {
    case HLO_OP_CONSTANT:
        return hlo_literal_is_splat(value->u.literal) && literal_element(value->u.literal, 0, out);
    case HLO_OP_CONVERT:
        return one_all_over(hlo_instr_operand(value, 0), s, out) &&
               converted(value->shape->type, out);
    case HLO_OP_PAD:
    case HLO_OP_CONCATENATE:
        for (uint32_t i = 0; i < value->operand_count; i++) {
            if (!one_all_over(hlo_instr_operand(value, i), s, i ? &part : out)) return false;
            if (i && !same_cell(part, *out)) return false;
        }
        return true;
    default: return hlo_instr_moves(value) && one_all_over(hlo_instr_operand(value, 0), s, out);
    }
}

/* -------------------------------------------------------------------------------- known numbers */

/* True if neither the value nor any of its direct and indirect operands is pinned. This includes
 * operands that the search did not read: an instruction that uses the number instead of the value
 * no longer runs after these operands. */
static bool is_unordered(const hlo_instruction *value, unsigned *steps) {
    if (value->pin || (*steps)++ >= STEP_LIMIT) return false;
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!is_unordered(hlo_instr_operand(value, i), steps)) return false;
    return true;
}

/* Converts the element that was found for a value to a number. Returns false if the value depends
 * on a pinned instruction, or no double equals the element. */
static bool answer(const hlo_instruction *value, cell found, bool through_pins,
                   double *out_number) {
    unsigned steps = 0;
    return (through_pins || is_unordered(value, &steps)) && number_of(found, out_number);
}

static bool known_number(const hlo_instruction *value, bool through_pins, double *out_number) {
    cell c, next;
    search s = {.through_pins = through_pins};
    bool known = one_all_over(value, &s, &c);
    if (!known && value->op != HLO_OP_CONSTANT && hlo_shape_is_array(value->shape)) {
        /* Read each element, up to a limit. */
        const int64_t count = hlo_shape_count(value->shape);
        known = count >= 1 && count <= COUNT_LIMIT;
        for (int64_t i = 0; known && i < count; i++) {
            search each = {.through_pins = through_pins};
            known = element(value, i, &each, i ? &next : &c) && (!i || same_cell(next, c));
        }
    }
    return known && answer(value, c, through_pins, out_number);
}

bool hlo_known_number(const hlo_instruction *value, double *out_number) {
    return known_number(value, false, out_number);
}

bool hlo_known_number_pinned(const hlo_instruction *value, double *out_number) {
    return known_number(value, true, out_number);
}

bool hlo_known_element(const hlo_instruction *value, int64_t index, double *out_number) {
    cell c;
    search s = {0};
    return element(value, index, &s, &c) && answer(value, c, false, out_number);
}

/* ---------------------------------------------------------------------------------- trip counts */

/* A scalar integer: a constant, or the sum of an element of the loop's state and a constant. */
typedef struct affine {
    enum { UNKNOWN, CONSTANT, ELEMENT } kind;
    int64_t element; /* ELEMENT: index of the element in the state */
    int64_t plus;
} affine;

/* A computation being analyzed and its caller. The parameters of the computation are the caller's
 * operands or, without a caller, the loop's state. */
typedef struct scope {
    const struct scope *outer;
    const hlo_instruction *caller;
    unsigned *steps; /* number of instructions that the analysis of the loop may still visit */
} scope;

/* Maximum length of a chain of copies and calls, and maximum number of instructions to visit. The
 * second limit is for chains of additions whose operands are the same instruction. */
enum { DEPTH = 64, STEPS = 1 << 10 };
enum { LARGEST_TRIP_COUNT = 1 << 20 };

static affine affine_of(const hlo_instruction *i, const scope *s, int depth);

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
static affine affine_of_operand(const hlo_instruction *i, int64_t index, const scope *s,
                                int depth) {
    if (index < 0 || index >= i->operand_count) return unknown();
    return affine_of(hlo_instr_operand(i, (uint32_t)index), s, depth);
}

static affine affine_of(const hlo_instruction *i, const scope *s, int depth) {
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
        const hlo_instruction *tuple = hlo_instr_operand(i, 0);
        int64_t index = hlo_instr_int(i, HLO_ATTR_INDEX, 0);
        if (tuple->op == HLO_OP_TUPLE) return affine_of_operand(tuple, index, s, depth);
        if (tuple->op == HLO_OP_PARAMETER && !s->caller) return (affine){ELEMENT, index, 0};
        return unknown();
    }
    case HLO_OP_CALL:
    case HLO_OP_FUSION:
        return affine_of(hlo_instr_called(i)->root, &(scope){s, i, s->steps}, depth);
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
static affine affine_of_part(const hlo_instruction *tuple, int64_t index, const scope *s) {
    if (tuple->op != HLO_OP_TUPLE) return unknown();
    return affine_of_operand(tuple, index, s, DEPTH);
}

/* Finds the initial value and the step of the counter. Returns false if the counter has another
 * form. */
static bool resolve(const hlo_instruction *loop, affine f, unsigned *steps, int64_t *out_start,
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

/* True if the counter's type can represent the value. If the counter wraps around, the trip count
 * is different. */
static bool fits(hlo_type type, int64_t value) {
    int bits = hlo_types[type].bits;
    if (hlo_types[type].class == HLO_CLASS_UNSIGNED)
        return value >= 0 && (bits > 62 || value < (INT64_C(1) << bits));
    return bits > 62 ||
           (value < (INT64_C(1) << (bits - 1)) && value >= -(INT64_C(1) << (bits - 1)));
}

uint64_t hlo_while_trip_count(const hlo_instruction *loop) {
    scope scopes[DEPTH];
    /* Find the comparison that the condition returns, and its scope. */
    const hlo_instruction *compare = hlo_instr_comp(loop, HLO_ATTR_CONDITION)->root;
    int depth = 0;
    unsigned steps = STEPS;
    scopes[0] = (scope){.steps = &steps};
    for (; depth + 1 < DEPTH && compare->op != HLO_OP_COMPARE; depth++) {
        const hlo_computation *called = hlo_instr_called(compare);
        if (!called) return HLO_TRIP_COUNT_UNKNOWN;
        scopes[depth + 1] = (scope){&scopes[depth], compare, &steps};
        compare = called->root;
    }
    if (depth + 1 == DEPTH) return HLO_TRIP_COUNT_UNKNOWN;
    const scope *s = &scopes[depth];
    const char *direction = hlo_instr_str(compare, HLO_ATTR_DIRECTION);
    hlo_type type = hlo_instr_operand(compare, 0)->shape->type;
    int64_t a, a_step, b, b_step;
    if (!direction ||
        !resolve(loop, affine_of(hlo_instr_operand(compare, 0), s, DEPTH), &steps, &a, &a_step) ||
        !resolve(loop, affine_of(hlo_instr_operand(compare, 1), s, DEPTH), &steps, &b, &b_step))
        return HLO_TRIP_COUNT_UNKNOWN;
    for (uint64_t count = 0; count < LARGEST_TRIP_COUNT && fits(type, a) && fits(type, b);
         count++) {
        if (!holds(direction, a, b)) return count;
        a += a_step;
        b += b_step;
    }
    return HLO_TRIP_COUNT_UNKNOWN;
}
