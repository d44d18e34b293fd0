/* SPDX-License-Identifier: Apache-2.0 */
/* Builds matmul calls from struct hlo_matmul. */
#include <stddef.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/module/known.h"
#include "matmul/call.h"
#include "matmul/config.h"

static uint32_t put_operands(const hlo_matmul *m, hlo_scale_form form, hlo_computation *comp,
                             hlo_instr **operands) {
    bool all = form == HLO_SCALES_ALL, d_fp8 = hlo_type_is_fp8(m->d->type);
    hlo_instr *one = NULL;
    if (!m->a_scale || !m->b_scale || (all && (!m->c_scale || !m->d_scale)) ||
        (d_fp8 && !m->d_scale)) {
        /* A computation shares one f32[] constant(1). It is the first instruction, so that it is
         * found in O(1) and comes before every call. */
        double number;
        one = comp->first;
        if (!one || one->shape->type != HLO_TYPE_F32 || !hlo_shape_is_scalar(one->shape) ||
            !hlo_known_number_pinned(one, &number) || number != 1)
            one = hlo_constant_scalar(comp, one, HLO_TYPE_F32, 1);
    }
    uint32_t count = 0;
    operands[count++] = m->a;
    operands[count++] = m->b;
    if (m->beta != 0) operands[count++] = m->c;
    operands[count++] = m->a_scale ? m->a_scale : one;
    operands[count++] = m->b_scale ? m->b_scale : one;
    if (all) {
        operands[count++] = m->c_scale ? m->c_scale : one;
        operands[count++] = m->d_scale ? m->d_scale : one;
    }
    if (m->bias) operands[count++] = m->bias;
    if (!all && d_fp8) operands[count++] = m->d_scale ? m->d_scale : one;
    return count;
}

/* The input of a config's text. Compared bytewise, so it has no padding. */
typedef struct config_key {
    char tag[8]; /* distinct from the start of any config */
    double alpha, beta;
    int64_t a_stride, b_stride;
    const char *precision, *algorithm;
    uint32_t epilogue, amax, a_mode, b_mode, form;
    uint32_t counts[4], count; /* number of dimension numbers, by list and in total */
    int64_t dims[2 * HLO_CONFIG_DIMS];
} config_key;

/* Returns the interned config. A module has few different configs, and formatting a config takes
 * longer than the rest of a call, so each is cached by its input. */
static const char *config_of(hlo_module *module, const hlo_matmul *m, hlo_scale_form form) {
    const hlo_matmul_sizes size = hlo_matmul_extents(m);
    const hlo_ints *lists[] = {m->a_contracting, m->b_contracting, m->a_batch, m->b_batch};
    config_key key = {.tag = "made of",
                      .alpha = m->alpha,
                      .beta = m->beta,
                      .a_stride = size.m * size.k,
                      .b_stride = size.n * size.k,
                      .precision = m->precision,
                      .algorithm = m->algorithm,
                      .epilogue = m->epilogue,
                      .amax = m->amax,
                      .a_mode = m->a_mode,
                      .b_mode = m->b_mode,
                      .form = form};
    for (int i = 0; i < 4; i++) {
        key.counts[i] = lists[i]->count;
        for (uint32_t d = 0; d < lists[i]->count && key.count < 2 * HLO_CONFIG_DIMS; d++)
            key.dims[key.count++] = lists[i]->v[d];
    }
    const size_t length = offsetof(config_key, dims) + key.count * sizeof *key.dims;
    hlo_string_cache *cache =
        hlo_intern_cache(module, hlo_intern(module, (const char *)&key, length));
    if (!cache->config || key.count == 2 * HLO_CONFIG_DIMS)
        cache->config = hlo_intern_string(
            module, hlo_config_format(module->arena, m, form, key.a_stride, key.b_stride));
    return cache->config;
}

hlo_instr *hlo_matmul_encode(const hlo_matmul *matmul, const hlo_target *target,
                             hlo_scale_form scales, hlo_computation *comp, hlo_instr *before,
                             const hlo_instr *like) {
    hlo_module *module = comp->module;
    hlo_instr *operands[8];
    const bool tiled = hlo_matmul_is_tiled(matmul); /* tiled scales have only one form */
    const hlo_scale_form form = tiled ? HLO_SCALES_USED : scales;
    uint32_t operand_count = put_operands(matmul, form, comp, operands);

    const hlo_shape *results[4];
    uint32_t result_count = 0;
    results[result_count++] = matmul->d;
    if (hlo_epilogues[matmul->epilogue].aux) results[result_count++] = matmul->aux;
    if (matmul->amax) results[result_count++] = hlo_shape_array(module, HLO_TYPE_F32, 0, NULL);
    results[result_count++] = hlo_shape_array(module, HLO_TYPE_S8, 1, &target->workspace);

    hlo_instr *call = hlo_instr_new(comp, before, HLO_OP_CUSTOM_CALL,
                                    hlo_shape_tuple(module, result_count, results), operand_count,
                                    operands, "cublas-gemm");
    call->offset = like->offset;
    hlo_instr_set_str(call, HLO_ATTR_CUSTOM_CALL_TARGET,
                      tiled ? hlo_matmul_mx_target : hlo_matmul_fp8_target);
    if (matmul->in_place && matmul->beta != 0 && matmul->c->shape == matmul->d)
        hlo_instr_set_str(call, HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING, "{{0}: (2, {})}");
    const hlo_attr *metadata = hlo_instr_attr(like, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(call, *metadata);
    const char *config = config_of(module, matmul, form);
    hlo_instr_set_attr(call, (hlo_attr){.id = HLO_ATTR_BACKEND_CONFIG, .u.str = config});
    return call;
}

/* Appends the layout of an array, or of each array of a tuple. Returns true if all are row-major.
 */
static bool append_layouts(const hlo_shape *shape, hlo_config_layouts *layouts) {
    bool plain = true;
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            plain &= append_layouts(shape->elements[i], layouts);
        return plain;
    }
    for (uint32_t i = 0; i < shape->rank; i++)
        layouts->v[layouts->count++] =
            shape->layout ? shape->layout->minor_to_major[i] : shape->rank - 1 - i;
    return hlo_shape_is_row_major(shape);
}

bool hlo_matmul_set_typed(hlo_instr *call, bool typed, hlo_scale_form form) {
    hlo_matmul m;
    const char *why;
    const char *target = typed ? hlo_matmul_typed_target : hlo_matmul_fp8_target;
    if (hlo_matmul_decode(call, &m, &why) != HLO_OK || hlo_matmul_is_tiled(&m)) return false;
    const bool fp8 = hlo_type_is_fp8(m.d->type);
    if (m.c_scale || (m.d_scale && !fp8)) form = HLO_SCALES_ALL;
    const uint32_t wanted = form == HLO_SCALES_ALL ? 4 : 2 + fp8;
    const uint32_t scales = call->operand_count - 2 - (m.c != NULL) - (m.bias != NULL);
    if (strcmp(hlo_instr_str(call, HLO_ATTR_CUSTOM_CALL_TARGET), target) == 0 &&
        (!typed || scales == wanted))
        return false;
    hlo_module *module = call->parent->module;
    if (scales != wanted) { /* a constant scale of 1 remains an operand */
        hlo_matmul full = m;
        hlo_instr *operands[8];
        const uint32_t at = 2u + (m.c != NULL);
        full.a_scale = hlo_instr_operand(call, at);
        full.b_scale = hlo_instr_operand(call, at + 1);
        if (scales == 4) full.d_scale = hlo_instr_operand(call, at + 3);
        if (scales == 3) full.d_scale = hlo_instr_operand(call, call->operand_count - 1);
        const uint32_t count = put_operands(&full, form, call->parent, operands);
        hlo_instr_set_operands(call, count, operands);
    }
    hlo_instr_set_str(call, HLO_ATTR_CUSTOM_CALL_TARGET, target);
    if (typed) {
        hlo_config_layouts operands = {.count = 0}, results = {.count = 0};
        const uint32_t count = call->operand_count;
        hlo_shapes *shapes =
            hlo_arena_alloc(module->arena, sizeof *shapes + count * sizeof *shapes->v);
        shapes->count = count;
        bool plain = true;
        for (uint32_t i = 0; i < count; i++) {
            const hlo_shape *shape = hlo_instr_operand(call, i)->shape;
            shapes->v[i] = shape->layout
                               ? shape
                               : hlo_shape_array(module, shape->type, shape->rank, shape->dims);
            plain &= append_layouts(shape, &operands);
        }
        if (plain) operands.count = 0;
        if (append_layouts(call->shape, &results)) results.count = 0;
        hlo_instr_set_attr(
            call, (hlo_attr){.id = HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS, .u.shapes = shapes});
        hlo_instr_set_str(call, HLO_ATTR_API_VERSION, "API_VERSION_TYPED_FFI");
        hlo_instr_set_str(call, HLO_ATTR_BACKEND_CONFIG,
                          hlo_config_format_typed(module->arena, &m, &operands, &results));
        return true;
    }
    hlo_instr_drop_attr(call, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    hlo_instr_drop_attr(call, HLO_ATTR_API_VERSION);
    const char *config = config_of(module, &m, form);
    hlo_instr_set_attr(call, (hlo_attr){.id = HLO_ATTR_BACKEND_CONFIG, .u.str = config});
    return true;
}

hlo_instr *hlo_matmul_result(hlo_instr *call, int index) {
    if (call->shape->type != HLO_TYPE_TUPLE) return call;
    for (hlo_use *use = call->uses; use; use = use->next)
        if (use->user->op == HLO_OP_GET_TUPLE_ELEMENT &&
            hlo_instr_int(use->user, HLO_ATTR_INDEX, -1) == index)
            return use->user;
    hlo_instr *element = hlo_instr_new(call->parent, call->next, HLO_OP_GET_TUPLE_ELEMENT,
                                       call->shape->elements[index], 1, &call, "get-tuple-element");
    hlo_instr_set_int(element, HLO_ATTR_INDEX, index);
    const hlo_attr *metadata = hlo_instr_attr(call, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(element, *metadata);
    element->offset = call->offset;
    return element;
}
