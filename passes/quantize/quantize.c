/* SPDX-License-Identifier: Apache-2.0 */
/* Quantizes the operands of wide dots to f8e4m3fn, with one scale per tensor that is computed from
 * the tensor itself (`--quantize=current`). Each operand is replaced by its quantized and
 * dequantized value, which the following passes convert to an FP8 call:
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
 * An operand is followed through movement and conversions to the value that it moves. This value is
 * quantized once for all dots that use it. The cost model selects the dots (select.c). A dot that
 * does not become a call stays wide in the next run of the passes (passes/verdict/).
 *
 * Needs: calls inlined. Runs only with hlo_pass_options.quantize.
 * Keeps: pinned instructions, fused computations, single elements; dots that request a precision or
 * an algorithm; dots of integers, f64, complex and dynamic shapes; partitioned modules and manual
 * regions, where an amax would cover only a part of the tensor; operands that come from fp8.
 * Numerics: each operand is rounded to 4 significant bits: about 31 dB. Tests:
 * testdata/passes/quantize/ */
#include "ir/devices/boundary.h"
#include "ir/module/build.h"
#include "ir/module/known.h"
#include "matmul/cost/run_count.h"
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/fp8_provenance.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/value.h"
#include "passes/passes.h"
#include "passes/quantize/select.h"
#include "passes/sharding/devices.h"
#include "passes/sharding/manual.h"
#include "passes/verdict/remark.h"

#include <string.h>

typedef struct quantizer {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance;
    const unsigned char *fp8; /* by instruction id: hlo_facts_fp8_reach() */
    const bool *fused;        /* by computation id: hlo_facts_fused() */
    const hlo_manual *manual; /* NULL: no manual regions */
    bool partitioned;
    hlo_selection selection;
    uint32_t *value_of; /* by instruction id: index of its value plus one, or 0 */
    uint32_t known;     /* ids of the module before insertion are below it */
    /* By instruction id: for a value, its dequantized value; for a link between a value and a dot,
     * its copy on the dequantized value. */
    hlo_instr **dequantized;
    hlo_computation *max[HLO_TYPE_COUNT]; /* combiners of the reductions, by element type */
} quantizer;

/* ------------------------------------------------------------------------------------- operands */

/* True if `link` moves all elements of operand 0, or converts them to a type in which a dequantized
 * value is exact. */
static bool is_link(const hlo_instr *link) {
    if (link->pin || !link->operand_count) return false;
    const hlo_shape *from = hlo_instr_operand(link, 0)->shape;
    if (link->op == HLO_OP_CONVERT)
        return hlo_type_is_wide(link->shape->type) && hlo_type_is_wide(from->type) &&
               (link->shape->type != HLO_TYPE_F16 || from->type == HLO_TYPE_F16);
    return hlo_instr_moves_by(link, HLO_MOVES_DIMENSIONS | HLO_REVERSES) &&
           hlo_shape_count(from) > 1;
}

static hlo_instr *source_of(hlo_instr *operand) {
    for (unsigned step = 0; step < HLO_CHAIN_LIMIT && is_link(operand); step++)
        operand = hlo_instr_operand(operand, 0);
    return operand;
}

/* True if `value` comes from an integer or a narrow float by movement, conversion and scaling. The
 * pass quantize-narrow may convert it to fp8. */
static bool is_from_narrow(const hlo_instr *value) {
    for (unsigned step = 0; step < HLO_CHAIN_LIMIT; step++) {
        const hlo_type type = value->shape->type;
        if (hlo_type_is_integer(type) || hlo_type_fits_e4m3(type)) return true;
        const bool scaled = value->op == HLO_OP_MULTIPLY || value->op == HLO_OP_SUBTRACT ||
                            value->op == HLO_OP_DIVIDE;
        if (!value->operand_count || (!scaled && value->op != HLO_OP_CONVERT &&
                                      !hlo_op_is(value->op, HLO_MOVEMENT)))
            return false;
        value = hlo_instr_operand(value, 0);
    }
    return false;
}

static bool is_quantized(const quantizer *z, const hlo_instr *operand) {
    return z->fp8[operand->id] || hlo_fp8_provenance_has(z->provenance, operand) ||
           is_from_narrow(operand);
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
        const hlo_instr *operand = hlo_instr_operand(dot, i),
                        *source = source_of(hlo_instr_operand(dot, i));
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
    if (z->partitioned || (z->manual && !hlo_manual_outside(z->manual, dot)))
        return HLO_REASON_SHARDED_AMAX;
    return HLO_REASON_COUNT;
}

/* Returns the index of the value among those of the selection. */
static uint32_t value_of(quantizer *z, hlo_instr *source, const double *runs) {
    uint32_t *index = &z->value_of[source->id];
    if (!*index)
        *index = hlo_selection_value(&z->selection, source, runs[source->parent->id],
                                     z->context->target) +
                 1;
    return *index - 1;
}

/* Adds the dot to the selection if it may be quantized. */
static void consider(quantizer *z, hlo_instr *dot, const double *runs) {
    uint32_t values[2];
    for (uint32_t i = 0; i < 2; i++) {
        const hlo_instr *operand = hlo_instr_operand(dot, i);
        const bool wide = hlo_type_is_wide(operand->shape->type) && !is_quantized(z, operand);
        if (!wide && !is_quantized(z, operand)) return;
        values[i] = wide ? 0 : HLO_SELECTION_NONE;
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
            values[i] = value_of(z, source_of(hlo_instr_operand(dot, i)), runs);
    hlo_selection_dot(&z->selection, dot, values, runs[dot->parent->id], z->context->target);
}

/* ------------------------------------------------------------------------------------ insertion */

/* Builds the scale of `x` and `*out_limit`, the largest quantized value. */
static hlo_instr *build_scale(quantizer *z, hlo_builder *b, hlo_instr *x, hlo_instr **out_limit) {
    enum { INFINITE = 0x7f800000, ROUND_UP = 0x1fffff };
    hlo_module *module = z->context->module;
    const hlo_type type = x->shape->type;
    const bool half = type == HLO_TYPE_F16;
    const hlo_shape *f32 = hlo_shape_array(module, HLO_TYPE_F32, 0, NULL),
                    *s32 = hlo_shape_array(module, HLO_TYPE_S32, 0, NULL);
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t i = 0; i < x->shape->rank; i++) dims[i] = i;
    hlo_instr *at = hlo_build_reduce(b, HLO_OP_MAXIMUM, hlo_build_unary(b, HLO_OP_ABS, x), 0,
                                     hlo_shape_array(module, type, 0, NULL), x->shape->rank, dims,
                                     &z->max[type]);
    at = hlo_build_convert(b, at, HLO_TYPE_F32);
    at = hlo_build_by_number(b, HLO_OP_MAXIMUM, at, half ? 0x1p-16 : 0x1p-100);
    at = hlo_build_by_number(b, HLO_OP_MULTIPLY, at, 0x1p-8);
    at = hlo_build(b, HLO_OP_BITCAST_CONVERT, s32, 1, &at);
    at = hlo_build_by_number(b, HLO_OP_MINIMUM, at, INFINITE); /* the bits of a NaN are larger */
    at = hlo_build_by_number(b, HLO_OP_ADD, at, ROUND_UP);
    at = hlo_build_by_number(b, HLO_OP_AND, at, INFINITE);
    hlo_instr *scale = hlo_build(b, HLO_OP_BITCAST_CONVERT, f32, 1, &at);
    at = hlo_build_number(b, HLO_TYPE_F32, half ? 0x1.ep15 : 0x1.ep127);
    at = hlo_build_binary(b, HLO_OP_DIVIDE, at, scale);
    *out_limit = hlo_build_by_number(b, HLO_OP_MINIMUM, at, 448);
    return scale;
}

/* Builds the dequantized value of `x` after it, with its sharding. */
static hlo_instr *dequantized(quantizer *z, hlo_instr *x) {
    hlo_instr *limit, *after = hlo_instr_next(x);
    hlo_builder b = {.at = after, .like = x};
    hlo_instr *scale = build_scale(z, &b, x, &limit);
    hlo_instr *at =
        hlo_build_by_scalar(&b, HLO_OP_DIVIDE, hlo_build_convert(&b, x, HLO_TYPE_F32), scale);
    hlo_instr *bounded[] = {
        hlo_build_splat(&b, hlo_build_unary(&b, HLO_OP_NEGATE, limit), at->shape), at,
        hlo_build_splat(&b, limit, at->shape)};
    at = hlo_build(&b, HLO_OP_CLAMP, at->shape, 3, bounded);
    at = hlo_build_convert(&b, at, HLO_TYPE_F8E4M3FN);
    at = hlo_build_convert(&b, at, x->shape->type);
    at = hlo_build_by_scalar(&b, HLO_OP_MULTIPLY, at, scale);
    const hlo_attr *sharding = hlo_instr_attr(x, HLO_ATTR_SHARDING);
    for (hlo_instr *made = hlo_instr_next(x); sharding && made != after;
         made = hlo_instr_next(made))
        if (hlo_shape_same_dims(made->shape, x->shape)) hlo_instr_set_attr(made, *sharding);
    return at;
}

/* Returns the operand computed from the dequantized value instead of the value. */
static hlo_instr *replacement(quantizer *z, hlo_instr *operand) {
    hlo_instr *links[HLO_CHAIN_LIMIT], *source = source_of(operand), *at = operand;
    unsigned count = 0;
    for (; at != source && !z->dequantized[at->id]; at = hlo_instr_operand(at, 0))
        links[count++] = at;
    hlo_instr **known = &z->dequantized[at->id];
    if (!*known) *known = dequantized(z, at);
    hlo_instr *made = *known;
    while (count) {
        hlo_instr *link = links[--count], *operands[1 + HLO_CHAIN_LIMIT] = {made};
        hlo_builder b = {.at = hlo_instr_next(link), .like = link};
        made = hlo_build_clone(&b, link, link->shape, operands);
        hlo_instr_drop_attr(made, HLO_ATTR_ORIGIN);
        z->dequantized[link->id] = made;
    }
    return made;
}

/* ------------------------------------------------------------------------------------- the pass */

/* Adds all dots that may be quantized to the selection. */
static void consider_all(quantizer *z) {
    hlo_module *module = z->context->module;
    hlo_arena *scratch = z->context->scratch;
    const bool *reached = hlo_facts_reached(module, scratch);
    const hlo_instr *marked;
    bool manual = false;
    double *runs = hlo_arena_array(scratch, module->next_computation_id, sizeof *runs);
    hlo_run_counts(module, runs);
    z->fused = hlo_facts_fused(module, scratch);
    z->fp8 = hlo_facts_fp8_reach(module, scratch);
    z->provenance = hlo_fp8_provenance_find(module, scratch);
    z->partitioned =
        (hlo_devices_partitions(module) > 1 || hlo_boundary_spmd(module->entry)) &&
        !hlo_devices_unpartitioned(module, &marked);
    for (const hlo_computation *comp = module->first; comp && !manual; comp = comp->next)
        for (const hlo_instr *i = comp->first; i && !manual; i = hlo_instr_next(i))
            manual = hlo_manual_enters(i);
    if (manual) z->manual = hlo_manual_find(module, scratch);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = reached[comp->id] ? comp->first : NULL; instr; instr = hlo_instr_next(instr))
            if (instr->op == HLO_OP_DOT && instr->operand_count == 2) consider(z, instr, runs);
}

hlo_status hlo_pass_quantize(hlo_pass_context *context) {
    const hlo_pass_options *options = context->options;
    const hlo_module *module = context->module;
    if (!options->quantize || !module->op_counts[HLO_OP_DOT]) return HLO_OK;
    quantizer z = {.context = context, .known = module->next_id};
    z.selection.arena = context->scratch;
    z.value_of = hlo_arena_zero(context->scratch, z.known * sizeof *z.value_of);
    hlo_remark_begin(context);
    consider_all(&z);
    if (!z.selection.dot_count) return HLO_OK;
    hlo_pass_record_costs(context); /* of the wide dots */
    hlo_select(&z.selection, options->min_gain > 0 ? options->min_gain : HLO_QUANTIZE_MIN_GAIN);
    z.dequantized = hlo_arena_zero(context->scratch, z.known * sizeof *z.dequantized);
    for (uint32_t i = 0; i < z.selection.dot_count; i++) {
        const hlo_selectable *s = &z.selection.dots[i];
        if (!s->selected) {
            hlo_remark_reason(context, s->dot, HLO_REASON_GAIN_BELOW_MINIMUM, NULL);
            continue;
        }
        for (uint32_t o = 0; o < 2; o++)
            if (s->quantizes[o])
                hlo_instr_set_operand(s->dot, o, replacement(&z, hlo_instr_operand(s->dot, o)));
        hlo_remark_quantized(context, s->dot, s->gain);
        context->changes++;
    }
    return HLO_OK;
}
