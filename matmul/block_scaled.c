/* SPDX-License-Identifier: Apache-2.0 */
/* Reads, checks and expands block-scaled notation; also checks the matmul calls of a module. */
#include "matmul/block_scaled.h"

#include <math.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/module/build.h"
#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "matmul/config.h"
#include "matmul/json.h"

static const struct {
    const char *target;
    hlo_block_kind kind;
} targets[] = {{"__op$block_scaled_dot", HLO_BLOCK_OP_DOT},
               {"__cudnn$blockScaledDot", HLO_BLOCK_CUDNN_DOT},
               {hlo_matmul_mx_target, HLO_BLOCK_HIPBLAS_DOT},
               {"__op$quantize", HLO_BLOCK_QUANTIZE},
               {"__op$dequantize", HLO_BLOCK_DEQUANTIZE}};

/* True if the config of a call specifies one scale per block of 32, as XLA does for AMD's GPUs. */
static bool has_block_scales(const hlo_instruction *call) {
    enum { SCALE_MODE_BLOCKS = 2 };
    if (call->operand_count != 4) return false;
    json_t *json = hlo_json_config(call), *gemm = json_object_get(json, "gemm_backend_config");
    const json_t *mode = json_object_get(gemm, "scale_mode");
    const bool has = json_is_integer(mode) && json_integer_value(mode) == SCALE_MODE_BLOCKS &&
                     !json_object_get(gemm, "lhs_scale_mode");
    json_decref(json);
    return has;
}

hlo_block_kind hlo_block_kind_of(const hlo_instruction *instr) {
    if (instr->op == HLO_OP_SCALED_DOT) return HLO_BLOCK_SCALED_DOT;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (hlo_is_custom_call(instr, targets[i].target))
            return targets[i].kind == HLO_BLOCK_HIPBLAS_DOT && !has_block_scales(instr)
                       ? HLO_BLOCK_NONE
                       : targets[i].kind;
    return HLO_BLOCK_NONE;
}

bool hlo_block_any(const hlo_module *module) {
    if (module->op_counts[HLO_OP_SCALED_DOT]) return true;
    if (!module->op_counts[HLO_OP_CUSTOM_CALL]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (hlo_block_kind_of(instr)) return true;
    return false;
}

static bool is_float_array(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && hlo_type_is_float(shape->type) && !shape->dynamic &&
           hlo_shape_count(shape) > 0;
}

/* True for the element types of operands of calls with tiled scales. */
static bool is_narrow(hlo_type type) {
    return type == HLO_TYPE_F8E4M3FN || type == HLO_TYPE_F8E5M2 || type == HLO_TYPE_F4E2M1FN;
}

/* Checks the scale of an operand with the dimensions [batch,] rows, contracting. Returns the error,
 * or NULL. */
static const char *check_scale(const hlo_block_dot *dot, const hlo_instruction *operand,
                               const hlo_instruction *scale) {
    const hlo_shape *x = operand->shape, *s = scale->shape;
    const uint32_t k = x->rank - 1;
    if (!is_float_array(s) || s->rank != x->rank)
        return "a scale and its operand have different ranks";
    if (x->rank == 3 && s->dims[0] != x->dims[0])
        return "a scale and its operand have different batch dimensions";
    if (s->dims[k - 1] < x->dims[k - 1]) return "a scale has fewer rows than its operand";
    if (dot->tiled && (s->dims[k - 1] % 128 || s->dims[k] % 4))
        return "a scale does not consist of complete tiles of 128 by 4";
    if (dot->block)
        return s->dims[k] < ((x->dims[k] - 1) / dot->block + 1)
                   ? "a scale has fewer columns than its operand has blocks"
                   : NULL;
    return x->dims[k] % s->dims[k] ? "the contracting dimension is not a multiple of the scale "
                                     "dimension, and block_size is missing"
                                   : NULL;
}

static const hlo_ints *one_dim(const hlo_instruction *instr, bool there, int64_t dim) {
    return hlo_ints_new(instr->parent->module, there, &dim);
}

/* True if a result is a tuple of the product and possibly an unused workspace. */
static bool has_workspace(const hlo_shape *result) {
    return result->type == HLO_TYPE_TUPLE &&
           (result->rank == 1 || (result->rank == 2 && hlo_shape_is_array(result->elements[1]) &&
                                  !result->elements[1]->dynamic));
}

static const char *read_call(const hlo_instruction *call, hlo_block_dot *dot) {
    const bool cudnn = hlo_block_kind_of(call) == HLO_BLOCK_CUDNN_DOT;
    const uint32_t count = call->operand_count;
    if (count < 3u + cudnn || count > 5)
        return cudnn ? "expected 4 or 5 operands" : "expected 3 to 5 operands";
    *dot = (hlo_block_dot){.a = hlo_instr_operand(call, 0),
                           .b = hlo_instr_operand(call, 1),
                           .a_scale = hlo_instr_operand(call, 2),
                           .b_scale = count > 3 ? hlo_instr_operand(call, 3) : NULL,
                           .global_scale = count > 4 ? hlo_instr_operand(call, 4) : NULL,
                           .tiled = cudnn,
                           .rows_padded = true,
                           .d = call->shape};
    if (cudnn && has_workspace(dot->d)) dot->d = dot->d->elements[0];
    const hlo_shape *a = dot->a->shape, *b = dot->b->shape;
    if (!is_float_array(a) || !is_float_array(b) || !is_float_array(dot->d))
        return "an operand or the result is not a non-empty array of floats";
    if (a->rank != b->rank || a->rank < 2 || a->rank > 3)
        return "the operands must be two matrices, or two batches of matrices";
    if (cudnn) {
        dot->block = dot->a_scale->shape->type == HLO_TYPE_F8E8M0FNU ? 32 : 16;
    } else { /* like XLA, ignore other keys of the config, such as the keys that JAX writes */
        json_t *json = hlo_json_config(call);
        const json_t *size =
            json_object_get(json_object_get(json, "block_scaled_dot_backend_config"), "block_size");
        if (size) dot->block = json_is_integer(size) ? (int64_t)json_integer_value(size) : -1;
        json_decref(json);
    }
    if (dot->block < 0) return "block_size is not a positive integer";
    const hlo_shape *d = dot->d;
    const uint32_t rank = a->rank;
    if (a->dims[rank - 1] != b->dims[rank - 1])
        return "the contracting dimensions of the operands have different sizes";
    if (rank == 3 && a->dims[0] != b->dims[0])
        return "the batch dimensions of the operands have different sizes";
    if (d->rank != rank || (rank == 3 && d->dims[0] != a->dims[0]) ||
        d->dims[rank - 2] != a->dims[rank - 2] || d->dims[rank - 1] != b->dims[rank - 2])
        return "the dimensions of the result do not match the operands";
    const char *wrong = check_scale(dot, dot->a, dot->a_scale);
    if (!wrong && dot->b_scale) wrong = check_scale(dot, dot->b, dot->b_scale);
    if (!wrong && dot->global_scale &&
        (dot->global_scale->shape->type != dot->d->type ||
         !hlo_shape_is_scalar(dot->global_scale->shape)))
        wrong = "the global scale is not a scalar of the result type";
    dot->a_batch = dot->b_batch = one_dim(call, rank == 3, 0);
    dot->a_contracting = dot->b_contracting = one_dim(call, true, rank - 1);
    return wrong;
}

/* Returns the scale of an operand of scaled-dot. Returns NULL for a scale without dimensions, which
 * counts as 1, regardless of its value. */
static hlo_instruction *scale_of(const hlo_instruction *dot, uint32_t operand) {
    hlo_instruction *scale = hlo_instr_operand(dot, operand);
    return scale->shape->rank ? scale : NULL;
}

static const hlo_ints *dims_of(const hlo_instruction *instr, const hlo_config_dims *dims) {
    return hlo_ints_new(instr->parent->module, dims->count, dims->v);
}

/* Checks that each dimension of the operand is a multiple of the same dimension of the scale. */
static const char *check_parts(const hlo_instruction *operand, const hlo_instruction *scale) {
    const hlo_shape *x = operand->shape, *s = scale->shape;
    if (!is_float_array(x) || !is_float_array(s) || x->rank != s->rank)
        return "a scale and its operand have different ranks";
    for (uint32_t i = 0; i < x->rank; i++)
        if (x->dims[i] % s->dims[i])
            return "a dimension of an operand is not a multiple of the scale dimension";
    return NULL;
}

static const char *read_hipblas(const hlo_instruction *call, hlo_block_dot *dot) {
    hlo_config config;
    const char *wrong = hlo_config_read(
        call->parent->module->arena, hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG), false, &config);
    if (wrong) return wrong;
    *dot = (hlo_block_dot){.a = hlo_instr_operand(call, 0),
                           .b = hlo_instr_operand(call, 1),
                           .a_scale = hlo_instr_operand(call, 2),
                           .b_scale = hlo_instr_operand(call, 3),
                           .a_batch = dims_of(call, &config.a_batch),
                           .a_contracting = dims_of(call, &config.a_contracting),
                           .b_batch = dims_of(call, &config.b_batch),
                           .b_contracting = dims_of(call, &config.b_contracting),
                           .d = call->shape};
    if (has_workspace(dot->d)) dot->d = dot->d->elements[0];
    if (config.alpha != 1 || config.beta != 0 || config.epilogue != HLO_EPILOGUE_DEFAULT)
        return "alpha, beta and epilogues are not supported";
    if (config.a_contracting.count != 1 || config.b_contracting.count != 1)
        return "expected exactly one contracting dimension";
    if (!is_float_array(dot->d)) return "the result is not a non-empty array of floats";
    const hlo_matmul m = {.a = dot->a,
                          .b = dot->b,
                          .d = dot->d,
                          .a_batch = dot->a_batch,
                          .a_contracting = dot->a_contracting,
                          .b_batch = dot->b_batch,
                          .b_contracting = dot->b_contracting};
    wrong = check_parts(dot->a, dot->a_scale);
    if (!wrong) wrong = hlo_matmul_dimension_fault(&m);
    if (!wrong) wrong = check_parts(dot->b, dot->b_scale);
    return wrong;
}

const char *hlo_block_dot_read(const hlo_instruction *instr, hlo_block_dot *out_dot) {
    switch (hlo_block_kind_of(instr)) {
    case HLO_BLOCK_SCALED_DOT: {
        /* Check what hlo_infer_SCALED_DOT() does not check. */
        *out_dot =
            (hlo_block_dot){.a = hlo_instr_operand(instr, 0),
                            .b = hlo_instr_operand(instr, 1),
                            .a_scale = scale_of(instr, 2),
                            .b_scale = scale_of(instr, 3),
                            .a_batch = hlo_instr_ints(instr, HLO_ATTR_LHS_BATCH_DIMS),
                            .a_contracting = hlo_instr_ints(instr, HLO_ATTR_LHS_CONTRACTING_DIMS),
                            .b_batch = hlo_instr_ints(instr, HLO_ATTR_RHS_BATCH_DIMS),
                            .b_contracting = hlo_instr_ints(instr, HLO_ATTR_RHS_CONTRACTING_DIMS),
                            .d = instr->shape};
        for (uint32_t i = 0; i < 4; i++)
            if (!is_float_array(hlo_instr_operand(instr, i)->shape))
                return "an operand is not a non-empty array of floats";
        if (out_dot->a_contracting->count != 1) return "expected exactly one contracting dimension";
        return is_float_array(out_dot->d) ? NULL : "the result is not a non-empty array of floats";
    }
    case HLO_BLOCK_OP_DOT:
    case HLO_BLOCK_CUDNN_DOT: return read_call(instr, out_dot);
    case HLO_BLOCK_HIPBLAS_DOT: return read_hipblas(instr, out_dot);
    default: return "it does not multiply operands with scales per block";
    }
}

hlo_instruction *hlo_block_values(hlo_instruction *operand) {
    if (operand->op != HLO_OP_CONVERT || operand->pin) return operand;
    hlo_instruction *from = hlo_instr_operand(operand, 0);
    const hlo_type type = from->shape->type, to = operand->shape->type;
    const bool wide = to == HLO_TYPE_F32 || to == HLO_TYPE_BF16 || to == HLO_TYPE_F16;
    return wide && is_narrow(type) ? from : operand;
}

hlo_instruction *hlo_block_scale(const hlo_block_dot *dot, bool b) {
    hlo_instruction *scale = b ? dot->b_scale : dot->a_scale;
    double number;
    return scale && hlo_known_number(scale, &number) && number == 1 ? NULL : scale;
}

/* Returns the reason why an operand does not have scales of this mode. Returns NULL if the operand
 * has such scales, or if its scales are 1. */
static const char *side_misfit(const hlo_block_dot *dot, bool b, hlo_scale_mode mode) {
    const hlo_scale_info *info = &hlo_scale_modes[mode];
    const hlo_instruction *scale = hlo_block_scale(dot, b);
    const hlo_shape *x = hlo_block_values(b ? dot->b : dot->a)->shape;
    const hlo_ints *batch = b ? dot->b_batch : dot->a_batch;
    const int64_t k = (b ? dot->b_contracting : dot->a_contracting)->v[0], size = x->dims[k];
    if (!is_narrow(x->type)) return "block-operand-wide";
    if (mode == HLO_SCALE_VEC16 && x->type != HLO_TYPE_F4E2M1FN) return "block-scale-types";
    if (x->rank != batch->count + 2) return "not-one-free-dimension";
    if (!scale) return NULL;
    if (scale->shape->type != info->type) return "block-scale-types";
    const int64_t each = dot->block ? dot->block : size / scale->shape->dims[k];
    return each < size && each % info->along ? "block-size" : NULL;
}

hlo_scale_mode hlo_block_dot_mode(const hlo_block_dot *dot, const char **why) {
    const hlo_instruction *a = hlo_block_scale(dot, false), *b = hlo_block_scale(dot, true);
    const bool e4m3 =
        (a && a->shape->type == HLO_TYPE_F8E4M3FN) || (b && b->shape->type == HLO_TYPE_F8E4M3FN);
    const hlo_scale_mode mode = e4m3 ? HLO_SCALE_VEC16 : HLO_SCALE_VEC32;
    *why = side_misfit(dot, false, mode);
    if (!*why) *why = side_misfit(dot, true, mode);
    /* A custom call dequantizes to the type of its result. f16 cannot represent every scale. */
    if (!*why && dot->rows_padded && dot->d->type == HLO_TYPE_F16 && mode == HLO_SCALE_VEC32)
        *why = "block-scales-f16";
    return *why ? HLO_SCALE_MODE_COUNT : mode;
}

/* Checks the shapes of values, of their scales (one per block of the last dimension) and of the
 * dequantized values. */
static const char *check_blocks(const hlo_shape *wide, const hlo_shape *values,
                                const hlo_shape *scales) {
    if (!is_float_array(wide) || !is_float_array(values) || !is_float_array(scales))
        return "an operand or result is not a non-empty array of floats";
    if (!wide->rank || !hlo_shape_same_dims(wide, values))
        return "quantized and original shapes differ";
    if (scales->rank != values->rank) return "scales and values have different ranks";
    for (uint32_t i = 0; i + 1 < values->rank; i++)
        if (scales->dims[i] != values->dims[i])
            return "scales and values have different numbers of rows";
    return values->dims[values->rank - 1] % scales->dims[scales->rank - 1]
               ? "the last dimension is not a multiple of that of the scales"
               : NULL;
}

const char *hlo_block_fault(const hlo_instruction *instr) {
    hlo_block_dot dot;
    const hlo_shape *shape = instr->shape;
    switch (hlo_block_kind_of(instr)) {
    case HLO_BLOCK_NONE: return NULL;
    case HLO_BLOCK_SCALED_DOT:
    case HLO_BLOCK_OP_DOT:
    case HLO_BLOCK_CUDNN_DOT:
    case HLO_BLOCK_HIPBLAS_DOT: return hlo_block_dot_read(instr, &dot);
    case HLO_BLOCK_QUANTIZE:
        if (instr->operand_count != 1) return "expected 1 operand";
        if (shape->type != HLO_TYPE_TUPLE || shape->rank != 2)
            return "the result is not a tuple of values and scales";
        return check_blocks(hlo_instr_operand(instr, 0)->shape, shape->elements[0],
                            shape->elements[1]);
    case HLO_BLOCK_DEQUANTIZE:
        if (instr->operand_count != 2) return "expected 2 operands";
        return check_blocks(shape, hlo_instr_operand(instr, 0)->shape,
                            hlo_instr_operand(instr, 1)->shape);
    }
    return NULL;
}

/* Returns hlo_block_fault() of a custom call whose arrays have fixed sizes and elements. Returns
 * NULL for other calls and for scaled-dot, which may be valid even if they cannot be read. */
static const char *call_fault(const hlo_instruction *instr) {
    if (instr->op == HLO_OP_SCALED_DOT) return NULL;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_shape *shape = hlo_instr_operand(instr, i)->shape;
        if (shape->dynamic || !hlo_shape_is_array(shape) || hlo_shape_count(shape) < 1) return NULL;
    }
    return hlo_block_fault(instr);
}

hlo_status hlo_matmul_verify(const hlo_module *module, unsigned max_errors,
                             const hlo_diag_sink *sink) {
    hlo_error_budget errors = hlo_error_budget_new(max_errors);
    if (!module->op_counts[HLO_OP_CUSTOM_CALL] && !module->op_counts[HLO_OP_SCALED_DOT])
        return HLO_OK;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            if (instr->op != HLO_OP_CUSTOM_CALL && instr->op != HLO_OP_SCALED_DOT) continue;
            hlo_matmul matmul;
            const char *why = NULL;
            const bool call = hlo_matmul_is_call(instr) || hlo_matmul_is_wide_call(instr);
            if (call)
                hlo_matmul_decode(instr, &matmul, &why);
            else
                why = call_fault(instr);
            if (!why || !hlo_error_budget_take(&errors, instr->offset)) continue;
            hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_VERIFY, instr->offset,
                          strlen(instr->name) + 1, "'%s' is not a valid %s: %s", instr->name,
                          call ? "matmul call" : "block-scaled operation", why);
        }
    return hlo_error_budget_end(&errors, module, sink);
}

/* ----------------------------------------------------------------------- expansion to plain HLO */

static const hlo_shape *array(const hlo_builder *b, hlo_type type, uint32_t rank,
                              const int64_t *dims) {
    return hlo_shape_array(b->at->parent->module, type, rank, dims);
}

static hlo_instruction *prefix(hlo_builder *b, hlo_instruction *x, const int64_t *dims) {
    return hlo_build_prefix(b, x, array(b, x->shape->type, x->shape->rank, dims));
}

/* Repeats each element of `x` ratio[i] times along each dimension i. */
static hlo_instruction *repeat(hlo_builder *b, hlo_instruction *x, const int64_t *ratio) {
    int64_t wide[2 * HLO_LARGEST_RANK], from[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    uint32_t count = 0;
    for (uint32_t i = 0; i < rank; i++) {
        from[i] = count;
        wide[count++] = x->shape->dims[i];
        if (ratio[i] > 1) wide[count++] = ratio[i];
        dims[i] = x->shape->dims[i] * ratio[i];
    }
    x = hlo_build_broadcast(b, x, count, wide, rank, from);
    return hlo_build_reshape(b, x, rank, dims);
}

/* Multiplies values by scales, both converted to `type`. A scale applies to ratio[i] values along
 * each dimension i. Scales beyond the values are dropped. */
static hlo_instruction *dequantize(hlo_builder *b, hlo_instruction *x, hlo_instruction *scale,
                                   const int64_t *ratio, hlo_type type) {
    hlo_instruction *scales = repeat(b, hlo_build_convert(b, scale, type), ratio);
    scales = prefix(b, scales, x->shape->dims);
    return hlo_build_binary(b, HLO_OP_MULTIPLY, hlo_build_convert(b, x, type), scales);
}

static hlo_instruction *operand(hlo_builder *b, const hlo_block_dot *dot, bool right,
                                hlo_type type) {
    hlo_instruction *x = right ? dot->b : dot->a, *scale = right ? dot->b_scale : dot->a_scale;
    int64_t ratio[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK];
    const uint32_t rank = x->shape->rank;
    if (!scale) return hlo_build_convert(b, x, type);
    if (dot->tiled) {
        /* Reorder scales from tiles of 128 by 4 to rows and columns. */
        const uint32_t scale_rank = scale->shape->rank, row = scale_rank - 2;
        const int64_t rows = scale->shape->dims[row], columns = scale->shape->dims[row + 1];
        int64_t tiles[] = {row ? scale->shape->dims[0] : 1, rows / 128, columns / 4, 32, 4, 4};
        hlo_instruction *apart = hlo_build_reshape(b, scale, 6, tiles);
        apart = hlo_build_transpose(b, apart, (int64_t[]){0, 1, 4, 3, 2, 5});
        scale = hlo_build_reshape(b, apart, scale_rank, scale->shape->dims);
    }
    for (uint32_t i = 0; i < rank; i++) {
        const bool padded = dot->rows_padded && i + 2 == rank;
        dims[i] = padded ? x->shape->dims[i] : scale->shape->dims[i];
        ratio[i] = padded ? 1 : x->shape->dims[i] / dims[i];
    }
    if (dot->block) {
        const int64_t size = x->shape->dims[rank - 1];
        ratio[rank - 1] = dot->block < size ? dot->block : size;
        dims[rank - 1] = (size - 1) / dot->block + 1;
    }
    return dequantize(b, x, prefix(b, scale, dims), ratio, type);
}

/* Returns the type that an operand of scaled-dot is dequantized to. */
static hlo_type scaled_type(const hlo_instruction *x, const hlo_instruction *scale) {
    const hlo_type type = x->shape->type, other = scale ? scale->shape->type : type;
    const int bits = hlo_types[type].bits, other_bits = hlo_types[other].bits;
    if (bits < 16 && other_bits < 16) return HLO_TYPE_BF16;
    if (bits == other_bits) return type == other ? type : HLO_TYPE_F32;
    return bits > other_bits ? type : other;
}

/* Returns the wider of two types, or f32 for different types of equal width. */
static hlo_type wider(hlo_type x, hlo_type y) {
    if (x == y) return x;
    if (hlo_types[x].bits == hlo_types[y].bits) return HLO_TYPE_F32;
    return hlo_types[x].bits > hlo_types[y].bits ? x : y;
}

static hlo_instruction *expand_dot(hlo_builder *b) {
    hlo_block_dot dot;
    if (hlo_block_dot_read(b->at, &dot)) return NULL;
    hlo_type type = dot.d->type, a_type = type, b_type = type, result = type;
    if (b->at->op == HLO_OP_SCALED_DOT) {
        a_type = scaled_type(dot.a, dot.a_scale);
        b_type = scaled_type(dot.b, dot.b_scale);
        type = wider(a_type, b_type);
        result = wider(type, result);
    }
    if (hlo_block_kind_of(b->at) == HLO_BLOCK_HIPBLAS_DOT)
        a_type = b_type = type = result = HLO_TYPE_F32;
    hlo_instruction *operands[] = {hlo_build_convert(b, operand(b, &dot, false, a_type), type),
                                   hlo_build_convert(b, operand(b, &dot, true, b_type), type)};
    hlo_module *module = b->at->parent->module;
    const hlo_dot_lists dims = {{dot.a_batch, dot.b_batch}, {dot.a_contracting, dot.b_contracting}};
    hlo_instruction *made =
        hlo_build_dot(b, hlo_shape_retype(module, dot.d, result), operands, &dims);
    made = hlo_build_convert(b, made, dot.d->type);
    if (!dot.global_scale) return made;
    return hlo_build_by_scalar(b, HLO_OP_MULTIPLY, made, dot.global_scale);
}

hlo_instruction *hlo_block_expand_dot(hlo_instruction *product) {
    return expand_dot(&(hlo_builder){.at = product});
}

/* Builds the plain HLO of `instr`. Returns NULL if `instr` is not block-scaled notation or is
 * invalid. */
static hlo_instruction *expand(hlo_instruction *instr, hlo_computation **maximum) {
    hlo_builder b = {.at = instr};
    if (hlo_block_fault(instr)) return NULL;
    switch (hlo_block_kind_of(instr)) {
    case HLO_BLOCK_NONE: return NULL;
    case HLO_BLOCK_SCALED_DOT:
    case HLO_BLOCK_OP_DOT: return expand_dot(&b);
    case HLO_BLOCK_CUDNN_DOT:
    case HLO_BLOCK_HIPBLAS_DOT: {
        /* The call returns a tuple with a workspace that no instruction reads. */
        hlo_instruction *product = expand_dot(&b);
        const hlo_shape *shape = b.at->shape;
        hlo_instruction *results[2] = {product};
        if (shape->type != HLO_TYPE_TUPLE) return product;
        if (shape->rank == 2) results[1] = hlo_build_filled(&b, shape->elements[1], 0);
        return hlo_build(&b, HLO_OP_TUPLE, shape, shape->rank, results);
    }
    case HLO_BLOCK_QUANTIZE: {
        /* Quantize blocks as XLA does: the scale is the amax divided by the largest power of two
         * that the type represents. */
        hlo_instruction *x = hlo_instr_operand(b.at, 0);
        const hlo_shape *values = b.at->shape->elements[0], *scales = b.at->shape->elements[1];
        const hlo_type type = x->shape->type;
        const uint32_t rank = values->rank;
        int64_t apart[HLO_LARGEST_RANK + 1], ratio[HLO_LARGEST_RANK], last = rank;
        for (uint32_t i = 0; i < rank; i++) {
            apart[i] = scales->dims[i];
            ratio[i] = values->dims[i] / scales->dims[i];
        }
        apart[rank] = ratio[rank - 1];
        hlo_instruction *sizes =
            hlo_build_unary(&b, HLO_OP_ABS, hlo_build_reshape(&b, x, rank + 1, apart));
        hlo_instruction *amax = hlo_build_reduce(
            &b, HLO_OP_MAXIMUM, sizes, array(&b, type, rank, scales->dims), 1, &last, maximum);
        const double power = ldexp(1, ilogb(hlo_float_max(values->type)));
        hlo_instruction *scale = hlo_build_by_number(&b, HLO_OP_DIVIDE, amax, power);
        scale = hlo_build(&b, HLO_OP_CONVERT, scales, 1, &scale);
        hlo_instruction *factor = repeat(&b, hlo_build_convert(&b, scale, type), ratio);
        hlo_instruction *scaled = hlo_build_binary(&b, HLO_OP_DIVIDE, x, factor);
        hlo_instruction *results[] = {hlo_build(&b, HLO_OP_CONVERT, values, 1, &scaled), scale};
        return hlo_build(&b, HLO_OP_TUPLE, b.at->shape, 2, results);
    }
    case HLO_BLOCK_DEQUANTIZE: {
        hlo_instruction *x = hlo_instr_operand(b.at, 0), *scale = hlo_instr_operand(b.at, 1);
        int64_t ratio[HLO_LARGEST_RANK];
        for (uint32_t i = 0; i < x->shape->rank; i++)
            ratio[i] = x->shape->dims[i] / scale->shape->dims[i];
        return dequantize(&b, x, scale, ratio, b.at->shape->type);
    }
    }
    return NULL;
}

void hlo_block_expand(hlo_module *module) {
    hlo_computation *maximum = NULL;
    uint32_t last = module->next_computation_id;
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        if (comp->id >= last) continue;
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            hlo_instruction *made = expand(instr, &maximum);
            if (!made) continue;
            hlo_instr_replace_uses(instr, made);
            hlo_instr_inherit(made, instr);
            hlo_instr_remove(instr);
        }
    }
}
