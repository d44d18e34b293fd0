/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes the operands of wide dots to f8e4m3fn. The scales are computed from the operands
 * themselves: one scale per tensor (`--quantize=current`), one per row of the left and column of
 * the right operand (`rows`), or one f8e8m0fnu scale per 32 elements along the contracting
 * dimension (`mx`). With `static`, the scale of a tensor is a constant that follows from an amax of
 * earlier runs (amaxes.h). Each operand is quantized and dequantized, so that the following passes
 * convert the dot to an FP8 call:
 *
 *   amax  = f32[] convert(reduce max(abs(x)))
 *   bits  = s32[] bitcast-convert(maximum(amax, least) * 2^-8)
 *   scale = f32[] bitcast-convert(and(minimum(bits, infinity) + 0x1fffff, 0x7f800000))
 *   q     = f8e4m3fn[...] convert(clamp(-most, f32 convert(x), most) / scale)
 *   x'    = convert(q) * scale, in the type of x
 *
 * If a tensor has several scales, amax, bits and scale are arrays; for blocks, x is first
 * reshaped so that each block is a dimension, and f16 values are dequantized to f32.
 *
 * The scale is the power of two that is at least amax / 448. Division and multiplication by it are
 * exact, so the rewrite of the dot to a call changes no bit. `least` is so large that x' is a
 * normal number, and `most` so small that x' does not overflow. A NaN or an infinity in x makes the
 * scale infinite (in f8e8m0fnu: NaN), and all elements of x' with this scale NaN. A constant scale
 * is computed in the same way from the recorded amax times MARGIN: clamping costs much accuracy,
 * and a margin costs none.
 *
 * An operand is followed through movement, conversions and the state of loops to the value that it
 * moves. This value is quantized once for all dots that use it with the same scales: outside of
 * loops that do not change it, and where it is computed if a loop stacks it. If loops use slices of
 * a value, the value has scales for each slice. Dequantized values are appended to the state of a
 * loop, and the pass sink-dequantize replaces them by fp8 values and scales; it does not do this
 * for stacked values with several scales, so these are quantized where they are used. The cost
 * model selects the dots (select.c). A dot that does not become a call stays wide in the next run
 * of the passes (passes/verdict/).
 *
 * Needs: calls inlined. Runs only with hlo_pass_options.quantize.
 * Does not change: pinned instructions, fused computations, single elements; dots of attention,
 * unless requested; dots that request a precision or an algorithm (except requests_f32_sums() in
 * attention); dots of integers, f64, complex and dynamic shapes; partitioned modules and manual
 * regions, where an amax would cover only a part of the tensor; operands that come from fp8.
 * Numerics: each operand is rounded to 4 significant bits: about 31 dB. Tests:
 * testdata/passes/quantize/ */
#include "ir/devices/boundary.h"
#include "ir/float/literal.h"
#include "ir/module/build.h"
#include "ir/module/known.h"
#include "matmul/cost/flops.h"
#include "matmul/json.h"
#include "matmul/product.h"
#include "passes/analysis/ahead.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/fp8_provenance.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/value.h"
#include "passes/builders/granularity.h"
#include "passes/passes.h"
#include "passes/quantize/amaxes.h"
#include "passes/quantize/attention.h"
#include "passes/quantize/select.h"
#include "passes/sharding/devices.h"
#include "passes/verdict/judge.h"
#include "passes/verdict/remark.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* PATH_LIMIT: maximum number of steps from a dot to the value to quantize. Rules follow a chain of
 * HLO_CHAIN_LIMIT steps, which also contains the steps of the scale. BLOCK: number of elements
 * along the contracting dimension that share a scale in the recipe `mx`. MARGIN: factor between a
 * recorded amax and the largest value that its scale represents. */
enum { PATH_LIMIT = HLO_CHAIN_LIMIT / 2, BLOCK = 32, MARGIN = 16 };

/* The recipe `static` is CURRENT with hlo_pass_context.amaxes. */
typedef enum recipe { CURRENT, ROWS, MX } recipe;

/* A value on the path from a dot to the value to quantize. */
typedef struct place {
    hlo_instruction *instr;
    hlo_granularity each; /* by dimension: number of elements that share a scale */
    bool entered; /* the path has left a loop or a branch, and the scales vary: movement outside is
                   * not followed, because sink-dequantize does not */
} place;

/* A place that was visited. */
typedef struct visited {
    struct visited *next; /* the next place with the same instruction */
    place at;
    uint32_t value;               /* index of the value in the selection plus one, or 0 */
    hlo_instruction *dequantized; /* the dequantized value, in the type of its source, or NULL */
} visited;

typedef struct quantizer {
    hlo_pass_context *context;
    recipe recipe;
    const hlo_fp8_provenance *provenance;
    const unsigned char *ahead; /* by instruction id: hlo_ahead_find(); NULL without
                                 * options->ahead */
    const unsigned char *fp8;   /* by instruction id: hlo_facts_fp8_reach() */
    const bool *fused;          /* by computation id: hlo_facts_fused() */
    const bool *outside;        /* by instruction id: hlo_devices_outside() */
    const bool *attention;      /* by instruction id: hlo_attention_find() */
    bool takes_attention;       /* quantize the dots of attention */
    bool partitioned;
    hlo_instruction **callers; /* by computation id: the only caller of the computation, or NULL */
    hlo_instruction **loop_of_body; /* by computation id: the loop with this body if its state can
                                     * be extended, otherwise NULL */
    uint32_t *operand_of_branch; /* by computation id: number of the operand of the conditional with
                                  * this branch if the operand can be extended, otherwise 0 */
    hlo_selection selection;
    visited **visited;                    /* by instruction id */
    hlo_computation *max[HLO_TYPE_COUNT]; /* combiners of the reductions, by element type */
} quantizer;

/* -------------------------------------------------------------------------------------- sources */

/* How a value on the path is computed from the value below it. */
typedef enum step {
    SOURCE,  /* the search ends here: this is the value to quantize */
    MOVE,    /* its elements are elements of operand 0, and have the same scales there */
    CONVERT, /* it converts operand 0 to a type in which the dequantized value is exact */
    ENTER,   /* in a loop's body, it is an element of the state that no iteration changes */
    BRANCH,  /* it is an element of the operand of a branch */
    PASS,    /* it is an element as in ENTER, after the loop; or a tuple or a barrier passes it */
    SLICE,   /* it is a slice of an element as in ENTER, which has scales for each slice */
    STACK    /* a loop stacks it: each slice is a value of one iteration */
} step;

/* True if the value has only one scale. */
static bool has_one_scale(const place *at) {
    for (uint32_t i = 0; i < at->instr->shape->rank; i++)
        if (at->each.v[i] < at->instr->shape->dims[i]) return false;
    return true;
}

/* Returns the place of a value with one scale. */
static place with_one_scale(hlo_instruction *value) {
    place at = {.instr = value};
    for (uint32_t i = 0; i < value->shape->rank; i++) at.each.v[i] = value->shape->dims[i];
    return at;
}

/* Returns the place of an operand of a dot. `completes` is true if the other operand is already
 * quantized; it may have one scale, which no call combines with scales per block. */
static place place_of(const quantizer *z, const hlo_instruction *dot, uint32_t number,
                      bool completes) {
    place at = with_one_scale(hlo_instr_operand(dot, number));
    const hlo_ints *contracted = hlo_dot_contracting(dot, number);
    if (z->recipe == CURRENT || (z->recipe == MX && completes)) return at;
    for (uint32_t i = 0; i < at.instr->shape->rank; i++)
        if (z->recipe == MX || !hlo_ints_contain(contracted, i)) at.each.v[i] = 1;
    if (z->recipe == MX && contracted->count)
        at.each.v[contracted->v[contracted->count - 1]] = BLOCK;
    return at;
}

static int64_t scale_count(const place *at) {
    int64_t dims[HLO_RULE_ARGS], count = 1;
    hlo_granularity_dims(at->instr->shape, &at->each, dims);
    for (uint32_t i = 0; i < at->instr->shape->rank; i++) count *= dims[i];
    return count;
}

/* Finds the scales of operand 0 of `link` so that the value of `link`, which moves it, has the
 * scales of `at`. Returns false if the operand would need fewer scales. */
static bool scales_below(const hlo_instruction *link, const place *at, place *out) {
    *out = (place){.instr = hlo_instr_operand(link, 0)};
    if (out->instr->shape->rank > HLO_RULE_ARGS) return false;
    if (has_one_scale(at)) {
        *out = with_one_scale(out->instr);
        return true;
    }
    if (!hlo_granularity_of_operand(link, &at->each, &out->each)) return false;
    for (uint32_t i = 0; i < out->instr->shape->rank; i++) {
        const int64_t size = out->instr->shape->dims[i];
        if (out->each.v[i] > size) out->each.v[i] = size;
        if (size % out->each.v[i]) return false;
    }
    return hlo_op_is(link->op, HLO_REPEATS | HLO_TAKES_PART) || scale_count(out) == scale_count(at);
}

static int64_t index_of(const hlo_instruction *value, const hlo_instruction *tuple) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_operand(value, 0) != tuple) return -1;
    return hlo_instr_int(value, HLO_ATTR_INDEX, -1);
}

static bool only_elements_used(const hlo_instruction *tuple) {
    for (const hlo_use *use = tuple->uses; use; use = use->next)
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT) return false;
    return tuple != tuple->parent->root && !hlo_pin_has_element_attrs(tuple) &&
           !hlo_pin_holds(tuple);
}

/* True if elements can be appended to the state of the loop. */
static bool can_grow(const quantizer *z, const hlo_instruction *loop) {
    const hlo_computation *called[] = {hlo_instr_comp(loop, HLO_ATTR_BODY),
                                       hlo_instr_comp(loop, HLO_ATTR_CONDITION)};
    const hlo_instruction *tuple = hlo_instr_operand(loop, 0);
    for (int i = 0; i < 2; i++)
        if (!called[i] || z->callers[called[i]->id] != loop || called[i]->parameter_count != 1 ||
            !only_elements_used(called[i]->parameters[0]))
            return false;
    const hlo_instruction *root = called[0]->root;
    return tuple->op == HLO_OP_TUPLE && !hlo_pin_holds(tuple) &&
           !hlo_pin_has_element_attrs(tuple) && root->op == HLO_OP_TUPLE &&
           hlo_instr_user_count(root) == 1 && !hlo_pin_holds(root) &&
           !hlo_pin_has_element_attrs(root) && only_elements_used(loop);
}

/* True if elements can be appended to the operand `number` of the conditional, which a branch
 * receives. */
static bool can_extend(const quantizer *z, const hlo_instruction *conditional, uint32_t number) {
    const hlo_computation *branch = hlo_branch_of(conditional, number);
    const hlo_instruction *tuple = hlo_instr_operand(conditional, number);
    return branch && z->callers[branch->id] == conditional && branch->parameter_count == 1 &&
           only_elements_used(branch->parameters[0]) && tuple->op == HLO_OP_TUPLE &&
           !hlo_pin_holds(tuple) && !hlo_pin_has_element_attrs(tuple) &&
           !hlo_pin_holds(conditional) && !hlo_pin_has_element_attrs(conditional);
}

/* If `value` is an element of a branch's parameter, returns the value that the conditional passes
 * to it. Otherwise returns NULL. */
static hlo_instruction *outside_branch(const quantizer *z, const hlo_instruction *value) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || value->pin) return NULL;
    const hlo_instruction *tuple = hlo_instr_operand(value, 0);
    const uint32_t number =
        tuple->op == HLO_OP_PARAMETER ? z->operand_of_branch[tuple->parent->id] : 0;
    return number ? hlo_instr_operand(hlo_instr_operand(z->callers[tuple->parent->id], number),
                                      (uint32_t)hlo_instr_int(value, HLO_ATTR_INDEX, 0))
                  : NULL;
}

/* Returns the loop whose state contains `value`, in the body of the loop or after the loop. Returns
 * NULL if the state cannot be extended. */
static hlo_instruction *loop_of(const quantizer *z, const hlo_instruction *value) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || value->pin) return NULL;
    const hlo_instruction *tuple = hlo_instr_operand(value, 0);
    const hlo_computation *body = tuple->op == HLO_OP_PARAMETER ? tuple->parent
                                  : tuple->op == HLO_OP_WHILE ? hlo_instr_comp(tuple, HLO_ATTR_BODY)
                                                              : NULL;
    return body ? z->loop_of_body[body->id] : NULL;
}

/* Returns the value of the element in the state of the next iteration. */
static hlo_instruction *next_of(const hlo_instruction *loop, const hlo_instruction *element) {
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    return hlo_instr_operand(body->root, (uint32_t)hlo_instr_int(element, HLO_ATTR_INDEX, 0));
}

static const hlo_instruction *state_of(const hlo_instruction *loop) {
    return hlo_instr_comp(loop, HLO_ATTR_BODY)->parameters[0];
}

static bool is_invariant(const hlo_instruction *loop, const hlo_instruction *element) {
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
static bool is_stacked(const hlo_instruction *loop, const hlo_instruction *element) {
    const uint32_t index = (uint32_t)hlo_instr_int(element, HLO_ATTR_INDEX, 0);
    const hlo_instruction *update = next_of(loop, element);
    double number;
    if (update->op != HLO_OP_DYNAMIC_UPDATE_SLICE || update->pin || update->use_count != 1 ||
        !hlo_known_number(hlo_instr_operand(hlo_instr_operand(loop, 0), index), &number) ||
        number != 0)
        return false;
    const hlo_instruction *state = hlo_instr_operand(update, 0);
    return !state->pin && state->use_count == 1 && index_of(state, state_of(loop)) == index &&
           is_one_slice(hlo_instr_operand(update, 1)->shape, update->shape) &&
           !hlo_instr_operand(update, 2)->shape->rank;
}

/* Returns the value that a tuple or a barrier passes to `value`, or NULL. Users of `value` may
 * bypass the barrier and use a value that is quantized before it: like the operands of the barrier,
 * that value stays in memory for them. */
static hlo_instruction *passed_by(const hlo_instruction *value) {
    if (value->op == HLO_OP_OPT_BARRIER && hlo_shape_is_array(value->shape))
        return hlo_instr_operand(value, 0);
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT) return NULL;
    const hlo_instruction *tuple = hlo_instr_operand(value, 0);
    if (tuple->op == HLO_OP_OPT_BARRIER && !tuple->pin) tuple = hlo_instr_operand(tuple, 0);
    return tuple->op == HLO_OP_TUPLE && !tuple->pin
               ? hlo_instr_operand(tuple, (uint32_t)hlo_instr_int(value, HLO_ATTR_INDEX, 0))
               : NULL;
}

/* True if the value comes from outside of a loop. A value that a branch uses is quantized outside
 * of the branch only if it is also outside of a loop, because branches may be executed rarely. */
static bool leaves_loop(const quantizer *z, place at);

/* Finds the value from which `at` is computed, and how. With `leaves_branches`, the path leaves
 * every branch. */
static step step_in(const quantizer *z, place at, bool leaves_branches, place *out) {
    const hlo_instruction *value = at.instr;
    *out = at;
    if (value->pin || !value->operand_count) return SOURCE;
    hlo_instruction *from = hlo_instr_operand(value, 0), *loop = loop_of(z, value);
    out->instr = passed_by(value);
    if (out->instr) return PASS;
    out->instr = outside_branch(z, value);
    if (out->instr) {
        out->entered |= !has_one_scale(&at);
        return leaves_branches || leaves_loop(z, *out) ? BRANCH : SOURCE;
    }
    if (loop && is_invariant(loop, value)) {
        const uint32_t index = (uint32_t)hlo_instr_int(value, HLO_ATTR_INDEX, 0);
        out->instr = hlo_instr_operand(hlo_instr_operand(loop, 0), index);
        if (from == loop) return PASS;
        out->entered |= !has_one_scale(&at);
        return ENTER;
    }
    if (loop && loop == from && z->recipe == CURRENT && at.entered && is_stacked(loop, value)) {
        *out = with_one_scale(hlo_instr_operand(next_of(loop, value), 1));
        return STACK;
    }
    out->instr = from;
    if (value->op == HLO_OP_CONVERT) /* except to f16 from a type with a larger range */
        return hlo_type_is_wide(value->shape->type) && hlo_type_is_wide(from->shape->type) &&
                       (value->shape->type != HLO_TYPE_F16 || from->shape->type == HLO_TYPE_F16)
                   ? CONVERT
                   : SOURCE;
    if (at.entered) return SOURCE;
    if (value->op == HLO_OP_DYNAMIC_SLICE && is_one_slice(value->shape, from->shape) &&
        value->operand_count == 1 + from->shape->rank) {
        hlo_instruction *outer = loop_of(z, from);
        out->entered = true; /* the slices along dimension 0 keep their scales */
        return outer && outer != hlo_instr_operand(from, 0) && is_invariant(outer, from) ? SLICE
                                                                                         : SOURCE;
    }
    return hlo_instr_moves_by(value, HLO_MOVES_DIMENSIONS | HLO_REVERSES) &&
                   hlo_shape_count(from->shape) > 1 && scales_below(value, &at, out)
               ? MOVE
               : SOURCE;
}

static bool leaves_loop(const quantizer *z, place at) {
    place below;
    for (unsigned i = 0; i < PATH_LIMIT; i++, at = below) {
        const step kind = step_in(z, at, true, &below);
        if (kind == ENTER || kind == SLICE) return true;
        if (kind == SOURCE) return false;
    }
    return false;
}

static step step_below(const quantizer *z, place at, place *out) {
    return step_in(z, at, false, out);
}

static place source_of(const quantizer *z, place at) {
    place below;
    for (unsigned i = 0; i < PATH_LIMIT && step_below(z, at, &below) != SOURCE; i++) at = below;
    return at;
}

/* True for f64 and complex types. */
static bool is_precise(hlo_type type) {
    return type == HLO_TYPE_F64 || type == HLO_TYPE_C64 || type == HLO_TYPE_C128;
}

static bool is_wide_or_precise(hlo_type type) {
    return hlo_type_is_wide(type) || is_precise(type);
}

/* True if the dot requests products of bf16 or f16 values, summed up in f32. An FP8 call with
 * operand_precision HIGHEST sums up in f32, too. */
static bool requests_f32_sums(const hlo_instruction *dot) {
    const char *algorithm = hlo_instr_str(dot, HLO_ATTR_ALGORITHM);
    return algorithm && (strcmp(algorithm, "dot_bf16_bf16_f32") == 0 ||
                         strcmp(algorithm, "dot_f16_f16_f32") == 0);
}

/* True for a value that a pinned instruction computes from values in another memory space, or
 * copies from there. The quantization follows the instruction. */
static bool is_in_device_memory(const hlo_instruction *pinned) {
    const hlo_layout *layout = pinned->shape->layout;
    return pinned->pin == HLO_PIN_SPACE && !(layout && layout->memory_space);
}

/* Returns the reason why the dot must not be quantized, or HLO_REASON_COUNT. */
static hlo_reason reason_against(const quantizer *z, const hlo_instruction *dot, bool completes,
                                 const hlo_instruction **out_blocker) {
    const char *kept = hlo_remark_kept_wide(z->context, dot);
    const char *precision = hlo_instr_str(dot, HLO_ATTR_OPERAND_PRECISION);
    if (kept) return hlo_reason_find(kept);
    if (!z->context->target->fp8) return HLO_REASON_TARGET_WITHOUT_FP8;
    if (hlo_facts_has(z->fused, dot->parent->id)) return HLO_REASON_INSIDE_FUSION;
    if (dot->pin) return hlo_pin_reason(dot);
    for (uint32_t i = 0; i < 2; i++) {
        hlo_instruction *operand = hlo_instr_operand(dot, i);
        const hlo_instruction *source = source_of(z, place_of(z, dot, i, completes)).instr;
        *out_blocker = source;
        if (source->pin && !is_in_device_memory(source)) return hlo_pin_reason(source);
        if (operand->shape->dynamic || source->shape->dynamic ||
            hlo_shape_count(operand->shape) < 0)
            return HLO_REASON_DYNAMIC_DIMENSION;
        *out_blocker = NULL;
        if (!hlo_shape_count(operand->shape)) return HLO_REASON_EMPTY;
    }
    if (dot->shape->dynamic) return HLO_REASON_DYNAMIC_DIMENSION;
    const bool attention = hlo_facts_has(z->attention, dot->id);
    if ((hlo_instr_attr(dot, HLO_ATTR_ALGORITHM) && !(attention && requests_f32_sums(dot))) ||
        (precision && strcmp(precision, "{default,default}") != 0) ||
        is_precise(dot->shape->type) || is_precise(hlo_instr_operand(dot, 0)->shape->type) ||
        is_precise(hlo_instr_operand(dot, 1)->shape->type))
        return HLO_REASON_ASKED_PRECISE;
    if (attention && !z->takes_attention) return HLO_REASON_ATTENTION;
    const hlo_ints *contracted = hlo_dot_contracting(dot, 0);
    if (!contracted->count) return HLO_REASON_NOT_ONE_CONTRACTING_DIMENSION;
    if (z->recipe == MX && !completes) {
        if (!z->context->target->block_scales) return HLO_REASON_BLOCK_SCALED;
        if (z->context->cuda < 12080) return HLO_REASON_BLOCK_SCALES_BEFORE_CUDA_12_8;
        if (hlo_instr_operand(dot, 0)->shape->dims[contracted->v[contracted->count - 1]] % BLOCK)
            return HLO_REASON_PARTIAL_BLOCK;
    }
    if (z->partitioned || (z->outside && !z->outside[dot->id])) return HLO_REASON_SHARDED_AMAX;
    return HLO_REASON_COUNT;
}

static visited *visit(quantizer *z, const place *at) {
    visited **list = &z->visited[at->instr->id];
    const size_t size = at->instr->shape->rank * sizeof *at->each.v;
    for (visited *v = *list; v; v = v->next)
        if (v->at.entered == at->entered && memcmp(v->at.each.v, at->each.v, size) == 0) return v;
    visited *made = hlo_arena_zero(z->context->scratch, sizeof *made);
    *made = (visited){.next = *list, .at = *at};
    return *list = made;
}

/* Returns the index of the value in the selection; adds the value if needed. */
static uint32_t value_of(quantizer *z, place source, const double *runs) {
    uint32_t *index = &visit(z, &source)->value;
    if (!*index)
        *index = hlo_selection_value(&z->selection, source.instr,
                                     z->ahead && z->ahead[source.instr->id] == HLO_AHEAD_YES
                                         ? 0
                                         : runs[source.instr->parent->id],
                                     z->context->amaxes, z->context->target) +
                 1;
    return *index - 1;
}

/* Finds the recorded amaxes of the value, in scratch memory. Returns NULL if there are none. */
static double *amaxes_of(const quantizer *z, const place *x) {
    const uint32_t count = has_one_scale(x) ? 0 : (uint32_t)scale_count(x);
    double *found = hlo_arena_array(z->context->scratch, count + 1, sizeof *found);
    return hlo_amaxes_find(z->context->amaxes, x->instr->name, count, found) ? found : NULL;
}

/* Adds the dot to the selection if it may be quantized. */
static void consider(quantizer *z, hlo_instruction *dot, const double *runs) {
    uint32_t values[2];
    for (uint32_t i = 0; i < 2; i++) {
        const hlo_instruction *operand = hlo_instr_operand(dot, i),
                              *narrow = hlo_fp8_provenance_narrow(z->provenance, operand);
        const bool quantized = z->fp8[operand->id] ||
                               hlo_fp8_provenance_has(z->provenance, operand) ||
                               hlo_straight_through(z->provenance, operand) || narrow;
        if (narrow && hlo_type_is_integer(narrow->shape->type) &&
            hlo_types[narrow->shape->type].bits > 8)
            hlo_remark_reason(z->context, dot, HLO_REASON_INTEGER_OPERAND, narrow);
        if (!quantized && !is_wide_or_precise(operand->shape->type)) return;
        if (operand->shape->rank > HLO_RULE_ARGS) return;
        values[i] = quantized ? HLO_SELECTION_NONE : 0;
    }
    if ((values[0] & values[1]) == HLO_SELECTION_NONE || !is_wide_or_precise(dot->shape->type))
        return;
    const hlo_instruction *blocker = NULL;
    const bool completes = values[0] != values[1]; /* one operand is already quantized */
    const hlo_reason reason = reason_against(z, dot, completes, &blocker);
    if (reason != HLO_REASON_COUNT) {
        hlo_remark_reason(z->context, dot, reason, blocker);
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        const place source = source_of(z, place_of(z, dot, i, completes));
        if (values[i] == HLO_SELECTION_NONE || !z->context->amaxes || amaxes_of(z, &source))
            continue;
        hlo_remark_reason(z->context, dot, HLO_REASON_AMAX_NOT_RECORDED, source.instr);
        return;
    }
    for (uint32_t i = 0; i < 2; i++)
        if (values[i] != HLO_SELECTION_NONE)
            values[i] = value_of(z, source_of(z, place_of(z, dot, i, completes)), runs);
    /* Calls that cannot have scales per row (matmul/table/limit.def) scale the result instead. */
    const bool fit = z->context->target->scale_arrays && z->context->cuda >= 12090 &&
                     !hlo_dot_batch(dot, 0)->count;
    const bool after = z->recipe == ROWS && !fit;
    hlo_selection_dot(&z->selection, dot, values, runs[dot->parent->id], after, z->context->target);
}

/* ------------------------------------------------------------------------------------ insertion */

/* The shape of a value in which each block of elements that share a scale is a range of whole
 * dimensions. */
typedef struct blocked {
    const hlo_shape *shape;
    uint32_t rank, kept_count, shared_count;
    int64_t dims[2 * HLO_RULE_ARGS], kept[HLO_RULE_ARGS], shared[2 * HLO_RULE_ARGS];
} blocked;

static blocked block(hlo_module *module, const place *x) {
    blocked b = {.rank = 0};
    for (uint32_t i = 0; i < x->instr->shape->rank; i++) {
        const int64_t size = x->instr->shape->dims[i], each = x->each.v[i];
        if (each < size) {
            b.kept[b.kept_count++] = b.rank;
            b.dims[b.rank++] = size / each;
        }
        if (each == 1 && each < size) continue;
        b.shared[b.shared_count++] = b.rank;
        b.dims[b.rank++] = each;
    }
    b.shape = b.rank == x->instr->shape->rank
                  ? x->instr->shape
                  : hlo_shape_array(module, x->instr->shape->type, b.rank, b.dims);
    return b;
}

/* Broadcasts scales to the blocked shape, in the element type `type`. */
static hlo_instruction *spread(hlo_builder *b, hlo_instruction *scale, const blocked *to,
                               hlo_type type) {
    if (scale->shape->type != HLO_TYPE_F8E8M0FNU) scale = hlo_build_convert(b, scale, type);
    const hlo_shape *shape = hlo_shape_retype(b->at->parent->module, to->shape, type);
    if (!to->kept_count) return hlo_build_splat(b, scale, shape);
    scale = hlo_build_broadcast_like(b, scale, shape, to->kept_count, to->kept);
    return hlo_build_convert(b, scale, type);
}

/* The constants of a type for scales (see the head of this file). */
typedef struct range {
    double least, most, largest_scale;
} range;
static range range_of(hlo_type type) {
    return type == HLO_TYPE_F16 ? (range){0x1p-16, 0x1.ep15, 0x1p7}
                                : (range){0x1p-100, 0x1.ep127, 0x1p119};
}

/* Returns the shape of the scales, in an element type. */
static const hlo_shape *shape_of_scales(hlo_module *module, const blocked *as, hlo_type type) {
    int64_t dims[HLO_RULE_ARGS];
    for (uint32_t i = 0; i < as->kept_count; i++) dims[i] = as->dims[as->kept[i]];
    return hlo_shape_array(module, type, as->kept_count, dims);
}

/* Builds the amaxes of `x`, which has the blocked shape. */
static hlo_instruction *build_amax(quantizer *z, hlo_builder *b, hlo_instruction *x,
                                   const blocked *as) {
    const hlo_type type = x->shape->type;
    const hlo_layout *layout = x->shape->layout;
    if (z->context->dequantizes && layout && !as->kept_count &&
        !hlo_instr_attr(x, HLO_ATTR_SHARDING)) { /* XLA's CPU compiler would copy x to the default
                                                  * layout */
        int64_t order[HLO_RULE_ARGS];
        for (uint32_t i = 0; i < as->rank; i++) order[i] = layout->minor_to_major[as->rank - 1 - i];
        x = hlo_build_transpose(b, x, order);
    }
    hlo_instruction *at = hlo_build_reduce(b, HLO_OP_MAXIMUM, hlo_build_unary(b, HLO_OP_ABS, x),
                                           shape_of_scales(z->context->module, as, type),
                                           as->shared_count, as->shared, &z->max[type]);
    return hlo_build_convert(b, at, HLO_TYPE_F32);
}

/* Builds the scales of `x`, which has the blocked shape, or their inverses. */
static hlo_instruction *build_scale(quantizer *z, hlo_builder *b, hlo_instruction *x,
                                    const blocked *as, bool inverse) {
    enum { INFINITE = 0x7f800000, ROUND_UP = 0x1fffff, ROUND_DOWN = 0x7f600000 };
    hlo_instruction *at = build_amax(z, b, x, as);
    const hlo_shape *f32 = at->shape,
                    *s32 = hlo_shape_retype(z->context->module, f32, HLO_TYPE_S32);
    at = hlo_build_by_number(b, HLO_OP_MAXIMUM, at, range_of(x->shape->type).least);
    at = hlo_build_by_number(b, HLO_OP_MULTIPLY, at, 0x1p-8);
    at = hlo_build(b, HLO_OP_BITCAST_CONVERT, s32, 1, &at);
    at = hlo_build_by_number(b, HLO_OP_MINIMUM, at, INFINITE); /* the bits of a NaN, as an integer,
                                                                * are larger than those of
                                                                * infinity */
    at = inverse ? hlo_build_binary(b, HLO_OP_SUBTRACT, hlo_build_filled(b, s32, ROUND_DOWN), at)
                 : hlo_build_by_number(b, HLO_OP_ADD, at, ROUND_UP);
    at = hlo_build_by_number(b, HLO_OP_AND, at, INFINITE);
    return hlo_build(b, HLO_OP_BITCAST_CONVERT, f32, 1, &at);
}

/* Builds the constant scales of `x`. The largest scale is so small that no dequantized value
 * overflows. */
static hlo_instruction *build_static_scale(quantizer *z, hlo_builder *b, const place *x,
                                           const blocked *as) {
    const range r = range_of(x->instr->shape->type);
    hlo_module *module = z->context->module;
    hlo_literal *literal = hlo_literal_new(module, shape_of_scales(module, as, HLO_TYPE_F32));
    const double *amaxes = amaxes_of(z, x);
    for (int64_t i = 0; i < hlo_shape_count(literal->shape); i++) {
        int exponent;
        const double part =
            frexp(fmax(MARGIN * fmin(amaxes[i], FLT_MAX), r.least) / 448, &exponent);
        const double scale = ldexp(part == 0.5 ? 0.5 : 1, exponent);
        hlo_literal_set_number(literal, i, fmin(scale, r.largest_scale));
    }
    return hlo_constant_new(b->at->parent, b->at, literal);
}

static hlo_instruction *build_clamp(hlo_builder *b, hlo_instruction *x, double limit) {
    hlo_instruction *bounded[] = {hlo_build_filled(b, x->shape, -limit), x,
                                  hlo_build_filled(b, x->shape, limit)};
    return hlo_build(b, HLO_OP_CLAMP, x->shape, 3, bounded);
}

/* Builds the dequantized value of a source after the source, with the same sharding. */
static hlo_instruction *dequantize(quantizer *z, place source) {
    hlo_instruction *x = source.instr, *after = hlo_instr_next(x);
    hlo_builder b = {.at = after, .like = x};
    const blocked as = block(z->context->module, &source);
    hlo_instruction *at = hlo_build_reshape(&b, x, as.rank, as.dims);
    const bool fixed = z->context->amaxes, blocks = z->recipe == MX && as.kept_count,
               inverse = z->context->dequantizes && !fixed && !blocks;
    hlo_type wide = x->shape->type;
    /* f16 cannot represent all scales. */
    if (inverse || (blocks && wide == HLO_TYPE_F16)) wide = HLO_TYPE_F32;
    hlo_instruction *scale =
        fixed ? build_static_scale(z, &b, &source, &as) : build_scale(z, &b, at, &as, inverse);
    at = hlo_build_convert(&b, at, HLO_TYPE_F32);
    /* Computed scales fit x, so only values that x' could not represent are clamped. XLA compiles
     * fewer kernels for constant bounds than for bounds that depend on the scale. */
    if (!fixed) at = build_clamp(&b, at, range_of(x->shape->type).most);
    at = hlo_build_binary(&b, inverse ? HLO_OP_MULTIPLY : HLO_OP_DIVIDE, at,
                          spread(&b, scale, &as, HLO_TYPE_F32));
    if (fixed) at = build_clamp(&b, at, 448);
    at = hlo_build_convert(&b, at, HLO_TYPE_F8E4M3FN);
    if (blocks) scale = hlo_build_convert(&b, scale, HLO_TYPE_F8E8M0FNU);
    at = hlo_build_convert(&b, at, wide);
    /* XLA's CPU compiler recomputes cheap operations in each kernel that uses the result, but not a
     * division. It replaces divisions by one broadcast by multiplications. */
    at = hlo_build_binary(&b, inverse ? HLO_OP_DIVIDE : HLO_OP_MULTIPLY, at,
                          spread(&b, scale, &as, wide));
    if (inverse) at = hlo_build_convert(&b, at, x->shape->type);
    at = hlo_build_reshape(&b, at, x->shape->rank, x->shape->dims);
    const hlo_attr *sharding = hlo_instr_attr(x, HLO_ATTR_SHARDING);
    for (hlo_instruction *made = hlo_instr_next(x); sharding && made != after;
         made = hlo_instr_next(made))
        if (hlo_shape_same_dims(made->shape, x->shape)) hlo_instr_set_attr(made, *sharding);
    return at;
}

/* Appends `added` to the tuple that is operand `number` of a loop or conditional. For a loop, does
 * not append it to the root of the body. Returns its index. */
static int64_t append(quantizer *z, hlo_instruction *user, uint32_t number,
                      hlo_instruction *added) {
    hlo_instruction *tuple = hlo_instr_operand(user, number);
    const uint32_t count = tuple->operand_count;
    const hlo_shape **shapes = hlo_arena_array(z->context->scratch, count + 1, sizeof *shapes);
    memcpy(shapes, tuple->shape->elements, count * sizeof *shapes);
    shapes[count] = added->shape;
    const hlo_shape *shape = hlo_shape_tuple(z->context->module, count + 1, shapes);
    if (tuple->use_count > 1) { /* another user needs the unchanged tuple */
        hlo_instruction **operands =
            hlo_arena_array(z->context->scratch, count + 1, sizeof *operands);
        for (uint32_t i = 0; i < count; i++) operands[i] = hlo_instr_operand(tuple, i);
        tuple = hlo_instr_copy(user->parent, user, tuple, operands);
        hlo_instr_set_operand(user, number, tuple);
    }
    hlo_instr_append_operand(tuple, added);
    tuple->shape = shape;
    if (user->op == HLO_OP_WHILE) {
        const hlo_computation *body = hlo_instr_comp(user, HLO_ATTR_BODY),
                              *condition = hlo_instr_comp(user, HLO_ATTR_CONDITION);
        user->shape = body->root->shape = shape;
        body->parameters[0]->shape = condition->parameters[0]->shape = shape;
    } else {
        hlo_branch_of(user, number)->parameters[0]->shape = shape;
    }
    return count;
}

/* Returns element `index` of the parameter of a body or branch, inserted after the parameter if
 * needed. */
static hlo_instruction *element_in(hlo_instruction *parameter, int64_t index) {
    hlo_builder b = {.at = hlo_instr_next(parameter), .like = parameter};
    return hlo_build_element(&b, parameter, index);
}

/* Builds the dequantized value of `at` from `made`, the dequantized value one step below. */
static hlo_instruction *build_step(quantizer *z, step kind, hlo_instruction *at,
                                   hlo_instruction *made) {
    hlo_module *module = z->context->module;
    hlo_builder b = {.at = hlo_instr_next(at), .like = at};
    hlo_instruction *loop = loop_of(z, at), *operands[2 + HLO_LARGEST_RANK] = {made};
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
    case BRANCH: { /* sink-dequantize recognizes blocks before they are reshaped to rows */
        hlo_instruction *parameter = hlo_instr_operand(at, 0);
        const uint32_t comp = parameter->parent->id;
        if (z->recipe == MX && made->op == HLO_OP_RESHAPE) made = hlo_instr_operand(made, 0);
        index = kind == ENTER ? append(z, loop, 0, made)
                              : append(z, z->callers[comp], z->operand_of_branch[comp], made);
        made = element_in(parameter, index);
        if (kind == ENTER)
            hlo_instr_append_operand(hlo_instr_comp(loop, HLO_ATTR_BODY)->root, made);
        b.at = hlo_instr_next(made);
        return hlo_build_reshape(&b, made, at->shape->rank, at->shape->dims);
    }
    case STACK: {
        const hlo_instruction *update = next_of(loop, at);
        hlo_builder before = {.at = hlo_instr_operand(loop, 0), .like = loop},
                    in_body = {.at = hlo_instr_next(update), .like = update};
        index = append(z, loop, 0,
                       hlo_build_filled(
                           &before, hlo_shape_retype(module, update->shape, made->shape->type), 0));
        operands[0] = element_in(hlo_instr_comp(loop, HLO_ATTR_BODY)->parameters[0], index);
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
static hlo_instruction *replacement(quantizer *z, hlo_instruction *dot, uint32_t number,
                                    bool completes) {
    struct {
        visited *at;
        step kind;
    } path[PATH_LIMIT];
    hlo_instruction *operand = hlo_instr_operand(dot, number);
    place at = place_of(z, dot, number, completes), below;
    unsigned count = 0;
    visited *v;
    while (!(v = visit(z, &at))->dequantized) {
        const step kind = count < PATH_LIMIT ? step_below(z, at, &below) : SOURCE;
        if (kind == SOURCE) {
            v->dequantized = dequantize(z, at);
            break;
        }
        path[count].at = v;
        path[count++].kind = kind;
        at = below;
    }
    hlo_instruction *made = v->dequantized;
    while (count--) {
        made = build_step(z, path[count].kind, path[count].at->at.instr, made);
        path[count].at->dequantized = made;
    }
    hlo_builder b = {.at = dot, .like = operand};
    return hlo_build_convert(&b, made, operand->shape->type);
}

/* ------------------------------------------------------------------------------------- the pass */

typedef struct calls {
    hlo_instruction **callers, *caller;
    bool *called; /* by computation id: true if the computation is called */
} calls;

static void note_called(void *user, hlo_computation *called) {
    const calls *c = user;
    c->callers[called->id] = c->called[called->id] ? NULL : c->caller;
    c->called[called->id] = true;
}

/* Finds the loops and branches to whose parameters elements can be appended. */
static void find_loops(quantizer *z) {
    const hlo_module *module = z->context->module;
    hlo_arena *scratch = z->context->scratch;
    const uint32_t count = module->next_computation_id;
    calls c = {.callers = hlo_arena_zero(scratch, count * sizeof *c.callers),
               .called = hlo_arena_zero(scratch, count)};
    z->loop_of_body = hlo_arena_zero(scratch, count * sizeof *z->loop_of_body);
    z->operand_of_branch = hlo_arena_zero(scratch, count * sizeof *z->operand_of_branch);
    z->callers = c.callers;
    if (!module->op_counts[HLO_OP_WHILE]) return;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (c.caller = comp->first; c.caller; c.caller = hlo_instr_next(c.caller))
            hlo_instr_visit_called(c.caller, note_called, &c);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_WHILE && can_grow(z, instr)) {
                z->loop_of_body[hlo_instr_comp(instr, HLO_ATTR_BODY)->id] = instr;
            } else if (instr->op == HLO_OP_CONDITIONAL) {
                for (uint32_t i = 1; i < instr->operand_count; i++)
                    if (can_extend(z, instr, i))
                        z->operand_of_branch[hlo_branch_of(instr, i)->id] = i;
            }
}

/* Adds all dots that may be quantized to the selection. */
static void consider_all(quantizer *z) {
    hlo_module *module = z->context->module;
    hlo_arena *scratch = z->context->scratch;
    const bool *reached = hlo_facts_reached(module, scratch);
    const hlo_instruction *marked;
    double *runs = hlo_arena_array(scratch, module->next_computation_id, sizeof *runs);
    hlo_run_counts(module, runs, NULL);
    find_loops(z);
    z->takes_attention = strstr(z->context->options->quantize, ",attention");
    z->attention = hlo_attention_find(module, scratch);
    z->fused = hlo_facts_fused(module, scratch);
    z->fp8 = hlo_facts_fp8_reach(module, scratch).of;
    z->provenance = hlo_fp8_provenance_find(module, scratch);
    z->partitioned = (hlo_devices_partitions(module) > 1 || hlo_boundary_spmd(module->entry)) &&
                     !hlo_devices_unpartitioned(module, &marked);
    z->outside = hlo_devices_outside(module, scratch);
    if (z->context->options->ahead)
        z->ahead = hlo_ahead_find(module, z->context->options->ahead, scratch);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = reached[comp->id] ? comp->first : NULL; instr;
             instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_DOT && instr->operand_count == 2) consider(z, instr, runs);
}

/* Inserts the amaxes of each value that may be quantized, and adds its name to context->records. If
 * dots use the whole value and others use slices of it, inserts the amaxes of slices. */
static hlo_status insert_amaxes(quantizer *z, uint32_t ids) {
    for (hlo_computation *comp = z->context->module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = hlo_instr_next(instr);
            const visited *chosen = NULL;
            for (const visited *v = instr->id < ids ? z->visited[instr->id] : NULL; v; v = v->next)
                if (v->value && (!chosen || has_one_scale(&chosen->at))) chosen = v;
            if (!chosen) continue;
            hlo_builder b = {.at = next, .like = instr};
            const blocked as = block(z->context->module, &chosen->at);
            hlo_instruction *x = hlo_build_reshape(&b, instr, as.rank, as.dims);
            const hlo_instruction *amax = build_amax(z, &b, x, &as);
            json_object_set_new(z->context->records, instr->name, json_string(amax->name));
        }
    return hlo_json_starved() ? HLO_OUT_OF_MEMORY : HLO_OK;
}

hlo_status hlo_pass_quantize(hlo_pass_context *context) {
    const hlo_pass_options *options = context->options;
    const hlo_module *module = context->module;
    if (!options->quantize || !module->op_counts[HLO_OP_DOT]) return HLO_OK;
    quantizer z = {.context = context,
                   .recipe = *options->quantize == 'r'   ? ROWS
                             : *options->quantize == 'm' ? MX
                                                         : CURRENT,
                   .selection = {.arena = context->scratch}};
    const uint32_t ids = module->next_id;
    z.visited = hlo_arena_zero(context->scratch, ids * sizeof *z.visited);
    hlo_remark_begin(context);
    consider_all(&z);
    if (context->records) return insert_amaxes(&z, ids);
    if (!z.selection.dot_count) return HLO_OK;
    hlo_pass_record_costs(context); /* record the costs of the wide dots */
    hlo_select(&z.selection, options->min_gain > 0 ? options->min_gain : HLO_QUANTIZE_MIN_GAIN);
    for (uint32_t i = 0; i < z.selection.dot_count; i++) {
        const hlo_selectable *s = &z.selection.dots[i];
        if (!s->selected) {
            hlo_remark_reason(context, s->dot, HLO_REASON_GAIN_BELOW_MINIMUM, NULL);
            continue;
        }
        for (uint32_t o = 0; o < 2; o++)
            if (s->quantizes[o])
                hlo_instr_set_operand(
                    s->dot, o, replacement(&z, s->dot, o, s->quantizes[0] != s->quantizes[1]));
        if (hlo_instr_attr(s->dot, HLO_ATTR_ALGORITHM)) {
            hlo_instr_drop_attr(s->dot, HLO_ATTR_ALGORITHM);
            hlo_instr_set_str(s->dot, HLO_ATTR_OPERAND_PRECISION, "{highest,highest}");
        }
        hlo_remark_quantized(context, s->dot, s->quantizes[0] == s->quantizes[1], s->gain,
                             s->saving);
        context->changes++;
    }
    return HLO_OK;
}
