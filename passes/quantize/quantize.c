/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes the operands of wide dots to f8e4m3fn, with one scale per tensor that is computed from
 * the tensor itself (`--quantize=current`). Each operand is quantized and dequantized, so that the
 * following passes convert the dot to an FP8 call:
 *
 *   amax  = f32[] convert(reduce max(abs(x)))
 *   bits  = s32[] bitcast-convert(maximum(amax, least) * 2^-8)
 *   scale = f32[] bitcast-convert(and(minimum(bits, infinity) + 0x1fffff, 0x7f800000))
 *   limit = f32[] minimum(448, most / scale)
 *   q     = f8e4m3fn[...] convert(clamp(-limit, f32 convert(x) / scale, limit))
 *   x'    = convert(q) * scale, in the type of x
 *
 * The scale is the power of two that is at least amax / 448. Division and multiplication by it are
 * exact, so the rewrite of the dot to a call changes no bit. `least` is so large that x' is a
 * normal number, and `most` so small that x' does not overflow. A NaN or an infinity in x makes the
 * scale infinite, and all elements of x' NaN.
 *
 * An operand is followed through movement, conversions and the state of loops to the value that it
 * moves. This value is quantized once for all dots that use it: outside of loops that do not change
 * it, and where it is computed if a loop stacks it. If loops use slices of a value, the value has
 * one scale for each slice. Dequantized values are appended to the state of a loop, and the pass
 * sink-dequantize replaces them by fp8 values and scales. The cost model selects the dots
 * (select.c). A dot that does not become a call stays wide in the next run of the passes
 * (passes/verdict/).
 *
 * Needs: calls inlined. Runs only with hlo_pass_options.quantize.
 * Does not change: pinned instructions, fused computations, single elements; dots of attention,
 * unless requested; dots that request a precision or an algorithm; dots of integers, f64, complex
 * and dynamic shapes; partitioned modules and manual regions, where an amax would cover only a part
 * of the tensor; operands that come from fp8. Numerics: each operand is rounded to 4 significant
 * bits: about 31 dB. Tests: testdata/passes/quantize/ */
#include "ir/devices/boundary.h"
#include "ir/module/build.h"
#include "ir/module/known.h"
#include "matmul/cost/flops.h"
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/fp8_provenance.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/pin.h"
#include "passes/passes.h"
#include "passes/quantize/attention.h"
#include "passes/quantize/select.h"
#include "passes/sharding/devices.h"
#include "passes/verdict/judge.h"
#include "passes/verdict/remark.h"

#include <string.h>

/* Maximum number of steps from a dot to the value to quantize. */
enum { PATH_LIMIT = 64 };

typedef struct quantizer {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance;
    const unsigned char *fp8; /* by instruction id: hlo_facts_fp8_reach() */
    const bool *fused;        /* by computation id: hlo_facts_fused() */
    const bool *outside;      /* by instruction id: hlo_devices_outside() */
    const bool *attention;    /* by instruction id: true for dots that stay wide; NULL if there are
                               * none */
    bool partitioned;
    hlo_instr **callers;      /* by computation id: the only caller of the computation, or NULL */
    hlo_instr **loop_of_body; /* by computation id: the loop with this body if its state can be
                               * extended, otherwise NULL */
    hlo_selection selection;
    /* By `sliced` and instruction id. value_of: the index of the value plus one, or 0; dequantized:
     * the dequantized value, in the type of its source. */
    uint32_t *value_of[2];
    hlo_instr **dequantized[2];
    hlo_computation *max[HLO_TYPE_COUNT]; /* combiners of the reductions, by element type */
} quantizer;

/* -------------------------------------------------------------------------------------- sources */

/* How a value on the path is computed from the value below it. */
typedef enum step {
    SOURCE,  /* the search ends here: this is the value to quantize */
    MOVE,    /* its elements are elements of operand 0 */
    CONVERT, /* it converts operand 0 to a type in which the dequantized value is exact */
    ENTER,   /* it is an element of a loop's state that no iteration changes */
    PASS,    /* it is such an element after the loop, or a tuple or a barrier passes it */
    SLICE,   /* it is a slice of such an element; the element has one scale for each slice */
    STACK    /* a loop stacks it: each slice is a value of one iteration */
} step;

/* A value on the path from a dot to a source. */
typedef struct place {
    hlo_instr *instr;
    bool sliced; /* only slices of the value along dimension 0 are used */
} place;

static int64_t index_of(const hlo_instr *value, const hlo_instr *tuple) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_operand(value, 0) != tuple) return -1;
    return hlo_instr_int(value, HLO_ATTR_INDEX, -1);
}

static bool only_elements_used(const hlo_instr *tuple) {
    for (const hlo_use *use = tuple->uses; use; use = use->next)
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT) return false;
    return tuple != tuple->parent->root && !hlo_pin_has_element_attrs(tuple) &&
           !hlo_pin_holds(tuple);
}

/* True if elements can be appended to the state of the loop. */
static bool can_grow(const quantizer *z, const hlo_instr *loop) {
    const hlo_computation *called[] = {hlo_instr_comp(loop, HLO_ATTR_BODY),
                                       hlo_instr_comp(loop, HLO_ATTR_CONDITION)};
    const hlo_instr *tuple = hlo_instr_operand(loop, 0);
    for (int i = 0; i < 2; i++)
        if (!called[i] || z->callers[called[i]->id] != loop || called[i]->parameter_count != 1 ||
            !only_elements_used(called[i]->parameters[0]))
            return false;
    const hlo_instr *root = called[0]->root;
    return tuple->op == HLO_OP_TUPLE && !hlo_pin_holds(tuple) &&
           !hlo_pin_has_element_attrs(tuple) && root->op == HLO_OP_TUPLE &&
           hlo_instr_user_count(root) == 1 && !hlo_pin_holds(root) &&
           !hlo_pin_has_element_attrs(root) && only_elements_used(loop);
}

/* Returns the loop whose state contains `value`, in the body of the loop or after the loop. Returns
 * NULL if the state cannot be extended. */
static hlo_instr *loop_of(const quantizer *z, const hlo_instr *value) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || value->pin) return NULL;
    const hlo_instr *tuple = hlo_instr_operand(value, 0);
    const hlo_computation *body = tuple->op == HLO_OP_PARAMETER ? tuple->parent
                                  : tuple->op == HLO_OP_WHILE ? hlo_instr_comp(tuple, HLO_ATTR_BODY)
                                                              : NULL;
    return body ? z->loop_of_body[body->id] : NULL;
}

/* Returns the value of the element in the state of the next iteration. */
static hlo_instr *next_of(const hlo_instr *loop, const hlo_instr *element) {
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    return hlo_instr_operand(body->root, (uint32_t)hlo_instr_int(element, HLO_ATTR_INDEX, 0));
}

static const hlo_instr *state_of(const hlo_instr *loop) {
    return hlo_instr_comp(loop, HLO_ATTR_BODY)->parameters[0];
}

static bool is_invariant(const hlo_instr *loop, const hlo_instr *element) {
    return index_of(next_of(loop, element), state_of(loop)) ==
           hlo_instr_int(element, HLO_ATTR_INDEX, 0);
}

/* True if the slice has size 1 along dimension 0 and is complete along all other dimensions. */
static bool is_one_slice(const hlo_shape *slice, const hlo_shape *all) {
    return all->rank > 1 && slice->rank == all->rank && slice->dims[0] == 1 &&
           memcmp(slice->dims + 1, all->dims + 1, (all->rank - 1) * sizeof *all->dims) == 0;
}

/* True if each iteration writes one slice of the element and the element is 0 before the loop.
 * Dequantized slices can then be stacked in the same way (passes/transform/sink_dequantize.c). */
static bool is_stacked(const hlo_instr *loop, const hlo_instr *element) {
    const uint32_t index = (uint32_t)hlo_instr_int(element, HLO_ATTR_INDEX, 0);
    const hlo_instr *update = next_of(loop, element);
    double number;
    if (update->op != HLO_OP_DYNAMIC_UPDATE_SLICE || update->pin || update->use_count != 1 ||
        !hlo_known_number(hlo_instr_operand(hlo_instr_operand(loop, 0), index), &number) ||
        number != 0)
        return false;
    const hlo_instr *state = hlo_instr_operand(update, 0);
    return !state->pin && state->use_count == 1 && index_of(state, state_of(loop)) == index &&
           is_one_slice(hlo_instr_operand(update, 1)->shape, update->shape) &&
           !hlo_instr_operand(update, 2)->shape->rank;
}

/* Returns the value that a tuple or a barrier passes to `value`, or NULL. Users of `value` may use
 * a value that is quantized before the barrier, because it stays in memory for them like the
 * operands of the barrier. */
static hlo_instr *passed_by(const hlo_instr *value) {
    if (value->op == HLO_OP_OPT_BARRIER && hlo_shape_is_array(value->shape))
        return hlo_instr_operand(value, 0);
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT) return NULL;
    const hlo_instr *tuple = hlo_instr_operand(value, 0);
    if (tuple->op == HLO_OP_OPT_BARRIER && !tuple->pin) tuple = hlo_instr_operand(tuple, 0);
    return tuple->op == HLO_OP_TUPLE && !tuple->pin
               ? hlo_instr_operand(tuple, (uint32_t)hlo_instr_int(value, HLO_ATTR_INDEX, 0))
               : NULL;
}

/* Finds the value from which `at` is computed, and how. */
static step step_below(const quantizer *z, place at, place *out) {
    const hlo_instr *value = at.instr;
    *out = at;
    if (value->pin || !value->operand_count) return SOURCE;
    hlo_instr *from = hlo_instr_operand(value, 0), *loop = loop_of(z, value);
    out->instr = passed_by(value);
    if (out->instr) return PASS;
    out->instr = from;
    if (loop && is_invariant(loop, value)) {
        const uint32_t index = (uint32_t)hlo_instr_int(value, HLO_ATTR_INDEX, 0);
        out->instr = hlo_instr_operand(hlo_instr_operand(loop, 0), index);
        return from == loop ? PASS : ENTER;
    }
    if (loop && loop == from && at.sliced && is_stacked(loop, value)) {
        *out = (place){.instr = hlo_instr_operand(next_of(loop, value), 1)};
        return STACK;
    }
    if (value->op == HLO_OP_CONVERT) /* except to f16 from a type with a larger range */
        return hlo_type_is_wide(value->shape->type) && hlo_type_is_wide(from->shape->type) &&
                       (value->shape->type != HLO_TYPE_F16 || from->shape->type == HLO_TYPE_F16)
                   ? CONVERT
                   : SOURCE;
    if (at.sliced) return SOURCE;
    if (value->op == HLO_OP_DYNAMIC_SLICE && is_one_slice(value->shape, from->shape) &&
        value->operand_count == 1 + from->shape->rank) {
        hlo_instr *outer = loop_of(z, from);
        out->sliced = true;
        return outer && outer != hlo_instr_operand(from, 0) && is_invariant(outer, from) ? SLICE
                                                                                         : SOURCE;
    }
    return hlo_instr_moves_by(value, HLO_MOVES_DIMENSIONS | HLO_REVERSES) &&
                   hlo_shape_count(from->shape) > 1
               ? MOVE
               : SOURCE;
}

static place source_of(const quantizer *z, hlo_instr *operand) {
    place at = {.instr = operand}, below;
    for (unsigned i = 0; i < PATH_LIMIT && step_below(z, at, &below) != SOURCE; i++) at = below;
    return at;
}

/* True if `value` comes from an integer or a narrow float by movement, conversion and scaling. The
 * pass quantize-narrow may convert it to fp8. */
static bool is_from_narrow(const hlo_instr *value) {
    for (unsigned i = 0; i < PATH_LIMIT; i++) {
        const hlo_type type = value->shape->type;
        if (hlo_type_is_integer(type) || hlo_type_fits_e4m3(type)) return true;
        const bool scaled = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_SUBTRACT ||
                            value->op == HLO_OP_DIVIDE;
        if (!value->operand_count ||
            (!scaled && value->op != HLO_OP_CONVERT && !hlo_op_is(value->op, HLO_MOVEMENT)))
            return false;
        value = hlo_instr_operand(value, 0);
    }
    return false;
}

static bool is_quantized(const quantizer *z, const hlo_instr *operand) {
    return z->fp8[operand->id] || hlo_fp8_provenance_has(z->provenance, operand) ||
           hlo_straight_through(z->provenance, operand) || is_from_narrow(operand);
}

/* Returns the reason why the dot must not be quantized, or HLO_REASON_COUNT. */
static hlo_reason reason_against(const quantizer *z, const hlo_instr *dot,
                                 const hlo_instr **out_blocker) {
    const char *kept = hlo_remark_kept_wide(z->context, dot);
    const char *precision = hlo_instr_str(dot, HLO_ATTR_OPERAND_PRECISION);
    if (kept) return hlo_reason_find(kept);
    if (!z->context->target->fp8) return HLO_REASON_TARGET_WITHOUT_FP8;
    if (hlo_facts_has(z->fused, dot->parent->id)) return HLO_REASON_INSIDE_FUSION;
    if (dot->pin) return hlo_pin_reason(dot);
    for (uint32_t i = 0; i < 2; i++) {
        hlo_instr *operand = hlo_instr_operand(dot, i);
        const hlo_instr *source = source_of(z, operand).instr;
        *out_blocker = source;
        if (source->pin) return hlo_pin_reason(source);
        if (operand->shape->dynamic || source->shape->dynamic ||
            hlo_shape_count(operand->shape) < 0)
            return HLO_REASON_DYNAMIC_DIMENSION;
        *out_blocker = NULL;
        if (!hlo_shape_count(operand->shape)) return HLO_REASON_EMPTY;
    }
    if (dot->shape->dynamic) return HLO_REASON_DYNAMIC_DIMENSION;
    if (hlo_instr_attr(dot, HLO_ATTR_ALGORITHM) ||
        (precision && strcmp(precision, "{default,default}") != 0))
        return HLO_REASON_ASKED_PRECISE;
    if (hlo_facts_has(z->attention, dot->id)) return HLO_REASON_ATTENTION;
    if (z->partitioned || (z->outside && !z->outside[dot->id])) return HLO_REASON_SHARDED_AMAX;
    return HLO_REASON_COUNT;
}

/* Returns the index of the value in the selection; adds the value if needed. */
static uint32_t value_of(quantizer *z, place source, const double *runs) {
    uint32_t *index = &z->value_of[source.sliced][source.instr->id];
    if (!*index)
        *index = hlo_selection_value(&z->selection, source.instr, runs[source.instr->parent->id],
                                     z->context->target) +
                 1;
    return *index - 1;
}

/* Adds the dot to the selection if it may be quantized. */
static void consider(quantizer *z, hlo_instr *dot, const double *runs) {
    uint32_t values[2];
    for (uint32_t i = 0; i < 2; i++) {
        const hlo_instr *operand = hlo_instr_operand(dot, i);
        const bool quantized = is_quantized(z, operand);
        if (!quantized && !hlo_type_is_wide(operand->shape->type)) return;
        values[i] = quantized ? HLO_SELECTION_NONE : 0;
    }
    if ((values[0] & values[1]) == HLO_SELECTION_NONE || !hlo_type_is_wide(dot->shape->type))
        return;
    const hlo_instr *blocker = NULL;
    const hlo_reason reason = reason_against(z, dot, &blocker);
    if (reason != HLO_REASON_COUNT) {
        hlo_remark_reason(z->context, dot, reason, blocker);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (values[i] != HLO_SELECTION_NONE)
            values[i] = value_of(z, source_of(z, hlo_instr_operand(dot, i)), runs);
    hlo_selection_dot(&z->selection, dot, values, runs[dot->parent->id], z->context->target);
}

/* ------------------------------------------------------------------------------------ insertion */

/* Broadcasts a scale, or one scale for each slice along dimension 0, to `shape`. */
static hlo_instr *spread(hlo_builder *b, hlo_instr *scale, const hlo_shape *shape) {
    scale = hlo_build_convert(b, scale, shape->type);
    return scale->shape->rank ? hlo_build_broadcast_like(b, scale, shape, 1, (int64_t[]){0})
                              : hlo_build_splat(b, scale, shape);
}

/* Builds the scale of `x`. Sets `*out_limit` to the largest quantized value. */
static hlo_instr *build_scale(quantizer *z, hlo_builder *b, place x, hlo_instr **out_limit) {
    enum { INFINITE = 0x7f800000, ROUND_UP = 0x1fffff };
    hlo_module *module = z->context->module;
    const hlo_shape *shape = x.instr->shape;
    const bool half = shape->type == HLO_TYPE_F16;
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = x.sliced; i < shape->rank; i++) dims[i - x.sliced] = i;
    hlo_instr *at = hlo_build_reduce(b, HLO_OP_MAXIMUM, hlo_build_unary(b, HLO_OP_ABS, x.instr),
                                     hlo_shape_array(module, shape->type, x.sliced, shape->dims),
                                     shape->rank - x.sliced, dims, &z->max[shape->type]);
    at = hlo_build_convert(b, at, HLO_TYPE_F32);
    const hlo_shape *f32 = at->shape, *s32 = hlo_shape_retype(module, f32, HLO_TYPE_S32);
    at = hlo_build_by_number(b, HLO_OP_MAXIMUM, at, half ? 0x1p-16 : 0x1p-100);
    at = hlo_build_by_number(b, HLO_OP_MULTIPLY, at, 0x1p-8);
    at = hlo_build(b, HLO_OP_BITCAST_CONVERT, s32, 1, &at);
    at = hlo_build_by_number(b, HLO_OP_MINIMUM, at, INFINITE); /* the bits of a NaN, as an integer,
                                                                * are larger than those of
                                                                * infinity */
    at = hlo_build_by_number(b, HLO_OP_ADD, at, ROUND_UP);
    at = hlo_build_by_number(b, HLO_OP_AND, at, INFINITE);
    hlo_instr *scale = hlo_build(b, HLO_OP_BITCAST_CONVERT, f32, 1, &at);
    at = hlo_build_filled(b, f32, half ? 0x1.ep15 : 0x1.ep127);
    at = hlo_build_binary(b, HLO_OP_DIVIDE, at, scale);
    *out_limit = hlo_build_by_number(b, HLO_OP_MINIMUM, at, 448);
    return scale;
}

/* Builds the dequantized value of a source after the source, with the same sharding. */
static hlo_instr *dequantize(quantizer *z, place source) {
    hlo_instr *limit, *x = source.instr, *after = hlo_instr_next(x);
    hlo_builder b = {.at = after, .like = x};
    hlo_instr *scale = build_scale(z, &b, source, &limit);
    hlo_instr *at = hlo_build_convert(&b, x, HLO_TYPE_F32);
    const hlo_shape *f32 = at->shape;
    at = hlo_build_binary(&b, HLO_OP_DIVIDE, at, spread(&b, scale, f32));
    hlo_instr *bounded[] = {spread(&b, hlo_build_unary(&b, HLO_OP_NEGATE, limit), f32), at,
                            spread(&b, limit, f32)};
    at = hlo_build(&b, HLO_OP_CLAMP, f32, 3, bounded);
    at = hlo_build_convert(&b, at, HLO_TYPE_F8E4M3FN);
    at = hlo_build_convert(&b, at, x->shape->type);
    at = hlo_build_binary(&b, HLO_OP_MULTIPLY, at, spread(&b, scale, at->shape));
    const hlo_attr *sharding = hlo_instr_attr(x, HLO_ATTR_SHARDING);
    for (hlo_instr *made = hlo_instr_next(x); sharding && made != after;
         made = hlo_instr_next(made))
        if (hlo_shape_same_dims(made->shape, x->shape)) hlo_instr_set_attr(made, *sharding);
    return at;
}

/* Appends an element with the initial value `init` to the state of the loop, but not to the root of
 * its body. Returns its index. */
static int64_t append(quantizer *z, hlo_instr *loop, hlo_instr *init) {
    hlo_instr *tuple = hlo_instr_operand(loop, 0);
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY),
                          *condition = hlo_instr_comp(loop, HLO_ATTR_CONDITION);
    const uint32_t count = tuple->operand_count;
    const hlo_shape **shapes = hlo_arena_array(z->context->scratch, count + 1, sizeof *shapes);
    memcpy(shapes, tuple->shape->elements, count * sizeof *shapes);
    shapes[count] = init->shape;
    const hlo_shape *shape = hlo_shape_tuple(z->context->module, count + 1, shapes);
    if (tuple->use_count > 1) { /* another user needs the unchanged tuple */
        hlo_instr **operands = hlo_arena_array(z->context->scratch, count + 1, sizeof *operands);
        for (uint32_t i = 0; i < count; i++) operands[i] = hlo_instr_operand(tuple, i);
        tuple = hlo_instr_copy(loop->parent, loop, tuple, operands);
        hlo_instr_set_operand(loop, 0, tuple);
    }
    hlo_instr_append_operand(tuple, init);
    tuple->shape = loop->shape = body->root->shape = shape;
    body->parameters[0]->shape = condition->parameters[0]->shape = shape;
    return count;
}

/* Returns element `index` of the state in the loop's body, inserted after the parameter if
 * needed. */
static hlo_instr *element_in(const hlo_instr *loop, int64_t index) {
    hlo_instr *state = hlo_instr_comp(loop, HLO_ATTR_BODY)->parameters[0];
    hlo_builder b = {.at = hlo_instr_next(state), .like = state};
    return hlo_build_element(&b, state, index);
}

/* Builds the dequantized value of `at` from `made`, the dequantized value one step below. */
static hlo_instr *build_step(quantizer *z, step kind, hlo_instr *at, hlo_instr *made) {
    hlo_module *module = z->context->module;
    hlo_builder b = {.at = hlo_instr_next(at), .like = at};
    hlo_instr *loop = loop_of(z, at), *operands[2 + HLO_LARGEST_RANK] = {made};
    int64_t index;
    switch (kind) {
    case MOVE:
    case SLICE:
        for (uint32_t i = 1; i < at->operand_count; i++) operands[i] = hlo_instr_operand(at, i);
        made = hlo_build_clone(&b, at, hlo_shape_retype(module, at->shape, made->shape->type),
                               operands);
        hlo_instr_drop_attr(made, HLO_ATTR_ORIGIN);
        return made;
    case ENTER:
        index = append(z, loop, made);
        made = element_in(loop, index);
        hlo_instr_append_operand(hlo_instr_comp(loop, HLO_ATTR_BODY)->root, made);
        return made;
    case STACK: {
        const hlo_instr *update = next_of(loop, at);
        hlo_builder before = {.at = hlo_instr_operand(loop, 0), .like = loop},
                    in_body = {.at = hlo_instr_next(update), .like = update};
        index = append(z, loop,
                       hlo_build_filled(
                           &before, hlo_shape_retype(module, update->shape, made->shape->type), 0));
        operands[0] = element_in(loop, index);
        operands[1] = made;
        for (uint32_t i = 2; i < update->operand_count; i++)
            operands[i] = hlo_instr_operand(update, i);
        hlo_instr_append_operand(hlo_instr_comp(loop, HLO_ATTR_BODY)->root,
                                 hlo_build_clone(&in_body, update, operands[0]->shape, operands));
        return hlo_build_element(&b, loop, index);
    }
    default: return made; /* the conversion to the dot's type is the last step */
    }
}

/* Builds an operand of the dot from the dequantized value of its source. */
static hlo_instr *replacement(quantizer *z, hlo_instr *dot, uint32_t number) {
    struct {
        place at;
        step kind;
    } path[PATH_LIMIT];
    hlo_instr *operand = hlo_instr_operand(dot, number);
    place at = {.instr = operand}, below;
    unsigned count = 0;
    while (!z->dequantized[at.sliced][at.instr->id]) {
        const step kind = count < PATH_LIMIT ? step_below(z, at, &below) : SOURCE;
        if (kind == SOURCE) {
            z->dequantized[at.sliced][at.instr->id] = dequantize(z, at);
            break;
        }
        path[count].at = at;
        path[count++].kind = kind;
        at = below;
    }
    hlo_instr *made = z->dequantized[at.sliced][at.instr->id];
    while (count--) {
        at = path[count].at;
        made = build_step(z, path[count].kind, at.instr, made);
        z->dequantized[at.sliced][at.instr->id] = made;
    }
    hlo_builder b = {.at = dot, .like = operand};
    return hlo_build_convert(&b, made, operand->shape->type);
}

/* ------------------------------------------------------------------------------------- the pass */

typedef struct calls {
    hlo_instr **callers, *caller;
    bool *called; /* by computation id: true if the computation is called */
} calls;

static void note_called(void *user, hlo_computation *called) {
    const calls *c = user;
    c->callers[called->id] = c->called[called->id] ? NULL : c->caller;
    c->called[called->id] = true;
}

/* Finds the loops to whose state elements can be appended. */
static void find_loops(quantizer *z) {
    const hlo_module *module = z->context->module;
    hlo_arena *scratch = z->context->scratch;
    const uint32_t count = module->next_computation_id;
    calls c = {.callers = hlo_arena_zero(scratch, count * sizeof *c.callers),
               .called = hlo_arena_zero(scratch, count)};
    z->loop_of_body = hlo_arena_zero(scratch, count * sizeof *z->loop_of_body);
    z->callers = c.callers;
    if (!module->op_counts[HLO_OP_WHILE]) return;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (c.caller = comp->first; c.caller; c.caller = hlo_instr_next(c.caller))
            hlo_instr_visit_called(c.caller, note_called, &c);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_WHILE && can_grow(z, instr))
                z->loop_of_body[hlo_instr_comp(instr, HLO_ATTR_BODY)->id] = instr;
}

/* Adds all dots that may be quantized to the selection. */
static void consider_all(quantizer *z) {
    hlo_module *module = z->context->module;
    hlo_arena *scratch = z->context->scratch;
    const bool *reached = hlo_facts_reached(module, scratch);
    const hlo_instr *marked;
    double *runs = hlo_arena_array(scratch, module->next_computation_id, sizeof *runs);
    hlo_run_counts(module, runs);
    find_loops(z);
    if (!strstr(z->context->options->quantize, ",attention"))
        z->attention = hlo_attention_find(module, z->callers, scratch);
    z->fused = hlo_facts_fused(module, scratch);
    z->fp8 = hlo_facts_fp8_reach(module, scratch).of;
    z->provenance = hlo_fp8_provenance_find(module, scratch);
    z->partitioned = (hlo_devices_partitions(module) > 1 || hlo_boundary_spmd(module->entry)) &&
                     !hlo_devices_unpartitioned(module, &marked);
    z->outside = hlo_devices_outside(module, scratch);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = reached[comp->id] ? comp->first : NULL; instr;
             instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_DOT && instr->operand_count == 2) consider(z, instr, runs);
}

hlo_status hlo_pass_quantize(hlo_pass_context *context) {
    const hlo_pass_options *options = context->options;
    const hlo_module *module = context->module;
    if (!options->quantize || !module->op_counts[HLO_OP_DOT]) return HLO_OK;
    quantizer z = {.context = context, .selection = {.arena = context->scratch}};
    const size_t ids = module->next_id;
    for (int i = 0; i < 2; i++)
        z.value_of[i] = hlo_arena_zero(context->scratch, ids * sizeof *z.value_of[i]);
    hlo_remark_begin(context);
    consider_all(&z);
    if (!z.selection.dot_count) return HLO_OK;
    hlo_pass_record_costs(context); /* record the costs of the wide dots */
    hlo_select(&z.selection, options->min_gain > 0 ? options->min_gain : HLO_QUANTIZE_MIN_GAIN);
    for (int i = 0; i < 2; i++)
        z.dequantized[i] = hlo_arena_zero(context->scratch, ids * sizeof *z.dequantized[i]);
    for (uint32_t i = 0; i < z.selection.dot_count; i++) {
        const hlo_selectable *s = &z.selection.dots[i];
        if (!s->selected) {
            hlo_remark_reason(context, s->dot, HLO_REASON_GAIN_BELOW_MINIMUM, NULL);
            continue;
        }
        for (uint32_t o = 0; o < 2; o++)
            if (s->quantizes[o]) hlo_instr_set_operand(s->dot, o, replacement(&z, s->dot, o));
        hlo_remark_quantized(context, s->dot, s->gain, s->saving);
        context->changes++;
    }
    return HLO_OK;
}
