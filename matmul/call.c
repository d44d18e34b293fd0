/* SPDX-License-Identifier: Apache-2.0 */
/* Reads matmul calls into struct hlo_matmul, and builds calls from this struct. */
#include "matmul/call.h"

#include <stddef.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/module/known.h"
#include "matmul/config.h"

bool hlo_matmul_is_call(const hlo_instruction *instr) {
    if (hlo_is_custom_call(instr, hlo_matmul_fp8_target) ||
        hlo_is_custom_call(instr, hlo_matmul_typed_target))
        return true;
    const char *config = hlo_is_custom_call(instr, hlo_matmul_mx_target)
                             ? hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG)
                             : NULL;
    return config && strstr(config, "lhs_scale_mode"); /* true for a call with tiled scales */
}

bool hlo_matmul_is_wide_call(const hlo_instruction *instr) {
    return hlo_is_custom_call(instr, "__cublas$lt$matmul") ||
           hlo_is_custom_call(instr, "__cublas$gemm");
}

int hlo_matmul_aux_index(const hlo_matmul *matmul) {
    return hlo_epilogues[matmul->epilogue].aux ? 1 : -1;
}

int hlo_matmul_amax_index(const hlo_matmul *matmul) {
    if (!matmul->amax) return -1;
    return hlo_epilogues[matmul->epilogue].aux ? 2 : 1;
}

/* ----------------------------------------------------------------------------------- dimensions */

/* Returns the product of the sizes of the listed dimensions. After `--no-verify`, a dimension
 * number may be out of range. */
static int64_t product(const hlo_shape *shape, const hlo_ints *dims) {
    int64_t size = 1;
    for (uint32_t i = 0; i < dims->count; i++)
        if (dims->v[i] >= 0 && dims->v[i] < shape->rank) size *= shape->dims[dims->v[i]];
    return size;
}

static int64_t free_product(const hlo_shape *shape, const hlo_ints *batch,
                            const hlo_ints *contracting) {
    int64_t size = 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!hlo_ints_contain(batch, i) && !hlo_ints_contain(contracting, i))
            size *= shape->dims[i];
    return size;
}

/* True if the lists contain different, valid dimension numbers of `shape`. */
static bool dims_valid(const hlo_shape *shape, const hlo_ints *batch, const hlo_ints *contracting) {
    uint64_t seen = 0;
    const hlo_ints *lists[] = {batch, contracting};
    for (int l = 0; l < 2; l++)
        for (uint32_t i = 0; i < lists[l]->count; i++) {
            int64_t dim = lists[l]->v[i];
            if (dim < 0 || dim >= shape->rank || dim >= 64 || (seen >> dim & 1)) return false;
            seen |= UINT64_C(1) << dim;
        }
    return true;
}

static bool sizes_agree(const hlo_shape *a, const hlo_ints *a_dims, const hlo_shape *b,
                        const hlo_ints *b_dims) {
    if (a_dims->count != b_dims->count) return false;
    for (uint32_t i = 0; i < a_dims->count; i++)
        if (a->dims[a_dims->v[i]] != b->dims[b_dims->v[i]]) return false;
    return true;
}

/* True if the sizes of the dimensions of D from `*at` on equal the sizes of those dimensions of
 * `shape` that are in neither list. */
static bool free_dims_stand(const hlo_shape *shape, const hlo_ints *batch,
                            const hlo_ints *contracting, const hlo_shape *d, uint32_t *at) {
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (hlo_ints_contain(batch, i) || hlo_ints_contain(contracting, i)) continue;
        if (*at >= d->rank || d->dims[(*at)++] != shape->dims[i]) return false;
    }
    return true;
}

const char *hlo_matmul_dimension_fault(const hlo_matmul *matmul) {
    const hlo_matmul *m = matmul;
    const hlo_shape *a = m->a->shape, *b = m->b->shape, *d = m->d;
    if (!dims_valid(a, m->a_batch, m->a_contracting) ||
        !dims_valid(b, m->b_batch, m->b_contracting))
        return "the dimension numbers are invalid for the operands";
    if (!sizes_agree(a, m->a_batch, b, m->b_batch))
        return "the batch dimensions of the operands have different sizes";
    if (!sizes_agree(a, m->a_contracting, b, m->b_contracting))
        return "the contracting dimensions of the operands have different sizes";
    uint32_t at = m->a_batch->count;
    bool fits = d->rank >= at;
    for (uint32_t i = 0; fits && i < at; i++) fits = d->dims[i] == a->dims[m->a_batch->v[i]];
    if (!fits || !free_dims_stand(a, m->a_batch, m->a_contracting, d, &at) ||
        !free_dims_stand(b, m->b_batch, m->b_contracting, d, &at) || at != d->rank)
        return "the dimensions of the result do not match the operands";
    return NULL;
}

bool hlo_matmul_accumulates_fast(const hlo_matmul *m) {
    if (hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along) return false;
    return m->algorithm ? strstr(m->algorithm, "_fast_accum") != NULL : !m->precision;
}

hlo_matmul_sizes hlo_matmul_extents(const hlo_matmul *matmul) {
    const hlo_shape *a = matmul->a->shape, *b = matmul->b->shape;
    return (hlo_matmul_sizes){
        .batch = product(a, matmul->a_batch),
        .m = free_product(a, matmul->a_batch, matmul->a_contracting),
        .n = free_product(b, matmul->b_batch, matmul->b_contracting),
        .k = product(a, matmul->a_contracting),
    };
}

/* -------------------------------------------------------------------------------------- reading */

static bool is_f32_scalar(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_F32 && hlo_shape_is_scalar(shape);
}

/* Reads the next operand as a scale. Returns false if the operand is missing, or is not a scalar in
 * scalar mode. The dimensions of other modes are checked later, when the sizes are known. */
static bool take_scale(const hlo_instruction *call, uint32_t *at, hlo_scale_mode mode,
                       hlo_instruction **out_scale) {
    if (*at >= call->operand_count) return false;
    hlo_instruction *scale = hlo_instr_operand(call, (*at)++);
    *out_scale = scale;
    if (mode != HLO_SCALE_SCALAR) return true;
    if (!is_f32_scalar(scale->shape)) return false;
    double number;
    *out_scale = hlo_known_number_pinned(scale, &number) && number == 1 ? NULL : scale;
    return true;
}

static bool is_factor(const hlo_instruction *factor, bool fp4) {
    const hlo_type type = factor->shape->type;
    return fp4 ? type == HLO_TYPE_F4E2M1FN : hlo_type_is_fp8(type);
}

static const char *take_operands(const hlo_instruction *call, hlo_matmul *m) {
    uint32_t at = 2;
    if (call->operand_count < 2) return "expected at least two operands";
    m->a = hlo_instr_operand(call, 0);
    m->b = hlo_instr_operand(call, 1);
    if (!hlo_shape_is_array(m->a->shape) || !hlo_shape_is_array(m->b->shape))
        return "a or b is not an array";
    if (m->beta != 0) {
        if (call->operand_count == at) return "beta is not 0, but operand c is missing";
        m->c = hlo_instr_operand(call, at++);
        if (!hlo_shape_is_array(m->c->shape) || !hlo_shape_same_dims(m->c->shape, m->d))
            return "c and the result have different dimensions";
    }
    if (!m->wide) {
        /* XLA omits the output scale of an fp8 result if neither operand is scaled, and then reads
         * the last operand as the output scale. If the output scale is absent, the last operand
         * must therefore be a scale of 1. */
        bool bias = hlo_epilogues[m->epilogue].bias, d_fp8 = hlo_type_is_fp8(m->d->type);
        uint32_t rest = call->operand_count - at;
        bool all = rest == 4u + bias, d_scaled = rest == 2u + bias + d_fp8;
        if (!all && !d_scaled && rest != 2u + bias)
            return "the number of operands matches neither form of the call";
        if (hlo_matmul_is_tiled(m) && rest != 2u + bias + d_fp8)
            return "the number of operands does not match tiled scales";
        const bool fp4 = m->a_mode == HLO_SCALE_VEC16;
        if (!is_factor(m->a, fp4) || !is_factor(m->b, fp4))
            return fp4 ? "a or b is not f4e2m1fn" : "a or b is not fp8";
        const hlo_scale_mode one = HLO_SCALE_SCALAR;
        if (!take_scale(call, &at, m->a_mode, &m->a_scale) ||
            !take_scale(call, &at, m->b_mode, &m->b_scale))
            return "a scale is not f32[]";
        if (all &&
            (!take_scale(call, &at, one, &m->c_scale) || !take_scale(call, &at, one, &m->d_scale)))
            return "a scale is not f32[]";
        if (bias) m->bias = hlo_instr_operand(call, at++);
        if (all || !d_fp8) return NULL;
        if (d_scaled)
            return take_scale(call, &at, one, &m->d_scale) ? NULL : "a scale is not f32[]";
        return bias || m->b_scale ? "an fp8 result requires an output scale" : NULL;
    }
    bool bias = hlo_epilogues[m->epilogue].bias;
    if (call->operand_count != at + bias) return "the number of operands does not match the config";
    if (bias) m->bias = hlo_instr_operand(call, at);
    return NULL;
}

static bool scales_fit(const hlo_instruction *scale, hlo_scale_mode mode, int64_t batch,
                       int64_t size, int64_t k) {
    int64_t dims[3];
    uint32_t rank = hlo_scale_dims(mode, batch, size, k, dims);
    if (!rank) return true;
    const hlo_shape *shape = scale->shape;
    return shape->type == hlo_scale_modes[mode].type && shape->rank == rank &&
           hlo_shape_is_row_major(shape) && memcmp(shape->dims, dims, rank * sizeof *dims) == 0;
}

static const char *check_scales(const hlo_matmul *m) {
    if (m->a_mode == HLO_SCALE_SCALAR && m->b_mode == HLO_SCALE_SCALAR) return NULL;
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    if (m->wide) return "a matmul of wide types cannot have scales";
    bool inside = hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along;
    if (inside && m->a_contracting->count != 1)
        return "block scales require exactly one contracting dimension";
    if (hlo_matmul_is_tiled(m) && m->a_mode != m->b_mode)
        return "tiled scales require the same mode for both operands";
    if (size.batch != 1 && !hlo_matmul_is_tiled(m))
        return "non-scalar scales are not supported for batches";
    if (!scales_fit(m->a_scale, m->a_mode, size.batch, size.m, size.k) ||
        !scales_fit(m->b_scale, m->b_mode, size.batch, size.n, size.k))
        return "a scale does not have the shape or type of its scale mode";
    return NULL;
}

/* Reads the results: D, then the results that the config requires, then an optional workspace. */
static const char *take_results(const hlo_instruction *call, hlo_matmul *m) {
    static const char wrong[] = "the number of results does not match the config";
    const hlo_shape *shape = call->shape;
    bool tuple = shape->type == HLO_TYPE_TUPLE;
    if (tuple && !shape->rank) return wrong;
    m->d = tuple ? shape->elements[0] : shape;
    if (!hlo_shape_is_array(m->d)) return "result 0 is not an array";
    uint32_t promised = 1u + hlo_epilogues[m->epilogue].aux + m->amax;
    uint32_t given = tuple ? shape->rank : 1;
    if (given != promised && given != promised + 1) return wrong;
    int aux = hlo_matmul_aux_index(m), amax = hlo_matmul_amax_index(m);
    if (aux > 0) {
        m->aux = shape->elements[aux];
        if (!hlo_shape_is_array(m->aux) || !hlo_shape_same_dims(m->aux, m->d))
            return "the auxiliary output and the result have different dimensions";
    }
    if (amax > 0 && !is_f32_scalar(shape->elements[amax])) return "the amax is not f32[]";
    if (given == promised) return NULL;
    const hlo_shape *workspace = shape->elements[given - 1];
    return workspace->type == HLO_TYPE_S8 && workspace->rank == 1
               ? NULL
               : "the workspace is not a vector of s8";
}

typedef struct known_config {
    bool typed;
    const char *wrong; /* the error in the config, or NULL */
    hlo_matmul matmul; /* the members that the config sets */
    const hlo_config_layouts *operand_layouts, *result_layouts;
} known_config;

static const hlo_config_layouts *keep_layouts(hlo_arena *arena, const hlo_config_layouts *from) {
    const size_t size = offsetof(hlo_config_layouts, v) + from->count * sizeof *from->v;
    return hlo_arena_copy(arena, from, size);
}

/* Checks the layout of an array, or of all arrays in a tuple. Returns false if a layout differs
 * from the config. */
static bool take_layouts(const hlo_config_layouts *layouts, uint32_t *at, const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            if (!take_layouts(layouts, at, shape->elements[i])) return false;
        return true;
    }
    if (!layouts->count) return hlo_shape_is_row_major(shape);
    for (uint32_t i = 0; i < shape->rank; i++, ++*at)
        if (*at >= layouts->count ||
            layouts->v[*at] !=
                (shape->layout ? shape->layout->minor_to_major[i] : shape->rank - 1 - i))
            return false;
    return true;
}

/* Checks the layouts of a typed call, whose handler receives layouts only in the config. */
static const char *check_layouts(const hlo_instruction *call, const known_config *known) {
    uint32_t at = 0;
    if (!known->typed) return NULL;
    for (uint32_t i = 0; i < call->operand_count; i++)
        if (!take_layouts(known->operand_layouts, &at, hlo_instr_operand(call, i)->shape))
            return "operand_layouts do not match the layouts of the operands";
    if (at != known->operand_layouts->count) return "operand_layouts has extra elements";
    at = 0;
    if (!take_layouts(known->result_layouts, &at, call->shape))
        return "result_layouts do not match the layouts of the results";
    return at == known->result_layouts->count ? NULL : "result_layouts has extra elements";
}

/* Reads a config. Each text is read once and cached, because calls are read many times. The cache
 * is filled last, so that a config is read again if memory ran out the first time. */
static const known_config *read_config(const hlo_instruction *call) {
    hlo_module *module = call->parent->module;
    const char *text = hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG);
    const bool typed = hlo_is_custom_call(call, hlo_matmul_typed_target);
    hlo_string_cache *cache = text ? hlo_intern_cache(module, text) : NULL;
    const known_config *last = cache ? cache->config : NULL;
    if (last && last->typed == typed) return last;
    known_config *known = hlo_arena_zero(module->arena, sizeof *known);
    known->typed = typed;
    hlo_config config;
    known->wrong = hlo_config_read(module->arena, text, typed, &config);
    if (!known->wrong) {
/* Copy every key except the layouts, which are stored next to the matmul. */
#define KEEP_ZERO(member)
#define KEEP_STRIDE(member)
#define KEEP_FALSE(member)
#define KEEP_LAYOUTS(member)
#define KEEP_NUMBER(member) known->matmul.member = config.member;
#define KEEP_EPILOGUE KEEP_NUMBER
#define KEEP_FLAG KEEP_NUMBER
#define KEEP_MODE KEEP_NUMBER
#define KEEP_DIMS(member)                                                                          \
    known->matmul.member = hlo_ints_new(module, config.member.count, config.member.v);
#define KEEP_WORDS(member) /* as a dot's text; NULL for the default */                             \
    if (strcmp(config.member[0], "default") || strcmp(config.member[1], "default"))                \
        known->matmul.member =                                                                     \
            hlo_arena_format(module->arena, "{%s,%s}", config.member[0], config.member[1]);
#define KEEP_ALGORITHM(member)                                                                     \
    known->matmul.member = *config.member ? hlo_intern_string(module, config.member) : NULL;
#define HLO_CONFIG(group, key, kind, member) KEEP_##kind(member)
#include "matmul/table/config.def"
#undef HLO_CONFIG
    }
    known->operand_layouts = keep_layouts(module->arena, &config.operand_layouts);
    known->result_layouts = keep_layouts(module->arena, &config.result_layouts);
    if (cache) cache->config = known;
    return known;
}

bool hlo_matmul_read_results(const hlo_instruction *call, hlo_matmul *out_matmul) {
    const known_config *known = read_config(call);
    *out_matmul = known->matmul;
    return !known->wrong && !take_results(call, out_matmul);
}

hlo_status hlo_matmul_decode(const hlo_instruction *call, hlo_matmul *out_matmul,
                             const char **why) {
    const known_config *known = read_config(call);
    *why = known->wrong;
    if (*why) return HLO_INVALID_INPUT;
    hlo_matmul m = known->matmul;
    m.wide = hlo_matmul_is_wide_call(call);
    *why = take_results(call, &m);
    if (!*why && hlo_matmul_is_tiled(&m) != hlo_is_custom_call(call, hlo_matmul_mx_target))
        *why = "the scale modes do not match the call target";
    if (!*why) *why = take_operands(call, &m);
    m.in_place = m.c && hlo_instr_attr(call, HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING);
    if (!*why) *why = hlo_matmul_dimension_fault(&m);
    const hlo_shape *bias = m.bias ? m.bias->shape : NULL;
    if (!*why && bias &&
        (!hlo_shape_is_array(bias) || bias->rank != 1 || bias->dims[0] != hlo_matmul_extents(&m).n))
        *why = "the bias is not a vector along n";
    if (!*why) *why = check_scales(&m);
    if (!*why) *why = check_layouts(call, known);
    if (*why) return HLO_INVALID_INPUT;
    *out_matmul = m;
    return HLO_OK;
}

const char *hlo_matmul_incomplete(const hlo_matmul *m) {
    if (!m->a || !m->b) return "a matmul requires two operands";
    if (!m->c != (m->beta == 0)) return "c requires a nonzero beta, and a nonzero beta requires c";
    if (!m->bias == hlo_epilogues[m->epilogue].bias)
        return "a bias requires an epilogue that adds it, and such an epilogue requires a bias";
    if ((!m->a_scale && m->a_mode != HLO_SCALE_SCALAR) ||
        (!m->b_scale && m->b_mode != HLO_SCALE_SCALAR))
        return "a scale mode requires scales";
    return NULL;
}

void hlo_matmul_from_dot(const hlo_instruction *dot, hlo_matmul *out_matmul) {
    const char *precision = hlo_instr_str(dot, HLO_ATTR_OPERAND_PRECISION);
    if (precision && strcmp(precision, "{default,default}") == 0) precision = NULL;
    *out_matmul = (hlo_matmul){
        .a = hlo_instr_operand(dot, 0),
        .b = hlo_instr_operand(dot, 1),
        .alpha = 1,
        .a_batch = hlo_instr_ints(dot, HLO_ATTR_LHS_BATCH_DIMS),
        .a_contracting = hlo_instr_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS),
        .b_batch = hlo_instr_ints(dot, HLO_ATTR_RHS_BATCH_DIMS),
        .b_contracting = hlo_instr_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS),
        .precision = precision,
        .algorithm = hlo_instr_str(dot, HLO_ATTR_ALGORITHM),
        .d = dot->shape,
    };
}

/* -------------------------------------------------------------------------------------- writing */

static uint32_t put_operands(const hlo_matmul *m, hlo_scale_form form, hlo_computation *comp,
                             hlo_instruction **operands) {
    bool all = form == HLO_SCALES_ALL, d_fp8 = hlo_type_is_fp8(m->d->type);
    hlo_instruction *one = NULL;
    if (!m->a_scale || !m->b_scale || (all && (!m->c_scale || !m->d_scale)) ||
        (d_fp8 && !m->d_scale)) {
        /* All calls of a computation share one f32[] constant(1). It is the first instruction, so
         * that it is found in O(1) and comes before every call. */
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

/* The values that determine a config's text. Keys are compared bytewise, so the struct has no
 * padding. */
typedef struct config_key {
    char tag[8]; /* differs from the first bytes of any config */
    double alpha, beta;
    int64_t a_stride, b_stride;
    const char *precision, *algorithm;
    uint32_t epilogue, amax, a_mode, b_mode, form;
    uint32_t counts[4], count; /* numbers of dimension numbers, in each list and in total */
    int64_t dims[2 * HLO_CONFIG_DIMS];
} config_key;

/* Returns the interned config. Configs are cached by key, because a module has few different
 * configs and formatting one takes longer than building the rest of the call. */
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

hlo_instruction *hlo_matmul_encode(const hlo_matmul *matmul, const hlo_target *target,
                                   hlo_scale_form scales, hlo_computation *comp,
                                   hlo_instruction *before, const hlo_instruction *like) {
    hlo_module *module = comp->module;
    hlo_instruction *operands[8];
    const bool tiled = hlo_matmul_is_tiled(matmul); /* tiled scales have only one form */
    const hlo_scale_form form = tiled ? HLO_SCALES_USED : scales;
    uint32_t operand_count = put_operands(matmul, form, comp, operands);

    const hlo_shape *results[4];
    uint32_t result_count = 0;
    results[result_count++] = matmul->d;
    if (hlo_epilogues[matmul->epilogue].aux) results[result_count++] = matmul->aux;
    if (matmul->amax) results[result_count++] = hlo_shape_array(module, HLO_TYPE_F32, 0, NULL);
    results[result_count++] = hlo_shape_array(module, HLO_TYPE_S8, 1, &target->workspace);

    hlo_instruction *call = hlo_instr_new(comp, before, HLO_OP_CUSTOM_CALL,
                                          hlo_shape_tuple(module, result_count, results),
                                          operand_count, operands, "cublas-gemm");
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

/* Appends the layout of an array, or of each array of a tuple. Returns true if all these layouts
 * are row-major. */
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

bool hlo_matmul_set_typed(hlo_instruction *call, bool typed, hlo_scale_form form) {
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
    if (scales != wanted) { /* a constant scale of 1 still has to be an operand */
        hlo_matmul full = m;
        hlo_instruction *operands[8];
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

hlo_instruction *hlo_matmul_result(hlo_instruction *call, int index) {
    if (call->shape->type != HLO_TYPE_TUPLE) return call;
    for (hlo_use *use = call->uses; use; use = use->next)
        if (use->user->op == HLO_OP_GET_TUPLE_ELEMENT &&
            hlo_instr_int(use->user, HLO_ATTR_INDEX, -1) == index)
            return use->user;
    hlo_instruction *element =
        hlo_instr_new(call->parent, call->next, HLO_OP_GET_TUPLE_ELEMENT,
                      call->shape->elements[index], 1, &call, "get-tuple-element");
    hlo_instr_set_int(element, HLO_ATTR_INDEX, index);
    const hlo_attr *metadata = hlo_instr_attr(call, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(element, *metadata);
    element->offset = call->offset;
    return element;
}
