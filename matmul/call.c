/* Matmul calls and struct hlo_matmul, in both directions. */
#include "matmul/call.h"

#include <stddef.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/module/known.h"
#include "ir/text/diag.h"
#include "matmul/config.h"

static const char fp8_target[] = "__cublas$lt$matmul$f8", wide_target[] = "__cublas$lt$matmul",
                  gemm_target[] = "__cublas$gemm";

static bool calls(const hlo_instr *instr, const char *target) {
    if (instr->op != HLO_OP_CUSTOM_CALL) return false;
    const char *name = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return name && strcmp(name, target) == 0;
}

bool hlo_matmul_is_call(const hlo_instr *instr) {
    return calls(instr, fp8_target);
}

bool hlo_matmul_is_wide_call(const hlo_instr *instr) {
    return calls(instr, wide_target) || calls(instr, gemm_target);
}

int hlo_matmul_aux_index(const hlo_matmul *matmul) {
    return hlo_epilogues[matmul->epilogue].aux ? 1 : -1;
}

int hlo_matmul_amax_index(const hlo_matmul *matmul) {
    if (!matmul->amax) return -1;
    return hlo_epilogues[matmul->epilogue].aux ? 2 : 1;
}

/* ----------------------------------------------------------------------------------- dimensions */

/* What `--no-verify` has let through need be no dimensions. */
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

hlo_matmul_sizes hlo_matmul_extents(const hlo_matmul *matmul) {
    const hlo_shape *a = matmul->a->shape, *b = matmul->b->shape;
    return (hlo_matmul_sizes){
        .batch = product(a, matmul->a_batch),
        .m = free_product(a, matmul->a_batch, matmul->a_contracting),
        .n = free_product(b, matmul->b_batch, matmul->b_contracting),
        .k = product(a, matmul->a_contracting),
    };
}

/* Each number names another dimension of `shape`. */
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

/* Whether the dimensions of `shape` that are not in the lists stand in D from `*at` on. */
static bool free_dims_stand(const hlo_shape *shape, const hlo_ints *batch,
                            const hlo_ints *contracting, const hlo_shape *d, uint32_t *at) {
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (hlo_ints_contain(batch, i) || hlo_ints_contain(contracting, i)) continue;
        if (*at >= d->rank || d->dims[(*at)++] != shape->dims[i]) return false;
    }
    return true;
}

static const char *check_dimensions(const hlo_matmul *m) {
    const hlo_shape *a = m->a->shape, *b = m->b->shape, *d = m->d;
    if (!dims_valid(a, m->a_batch, m->a_contracting) ||
        !dims_valid(b, m->b_batch, m->b_contracting))
        return "the dimension numbers do not fit the operands";
    if (!sizes_agree(a, m->a_batch, b, m->b_batch))
        return "the batch dimensions of the operands differ";
    if (!sizes_agree(a, m->a_contracting, b, m->b_contracting))
        return "the contracting dimensions of the operands differ";
    uint32_t at = m->a_batch->count;
    bool fits = d->rank >= at;
    for (uint32_t i = 0; fits && i < at; i++) fits = d->dims[i] == a->dims[m->a_batch->v[i]];
    if (!fits || !free_dims_stand(a, m->a_batch, m->a_contracting, d, &at) ||
        !free_dims_stand(b, m->b_batch, m->b_contracting, d, &at) || at != d->rank)
        return "the result's dimensions do not follow from the operands'";
    return NULL;
}

/* -------------------------------------------------------------------------------------- reading */

static bool is_f32_scalar(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_F32 && hlo_shape_is_scalar(shape);
}

static bool is_one(const hlo_instr *instr) {
    double number;
    return hlo_known_number_pinned(instr, &number) && number == 1;
}

/* The next operand as a scale; false when there is none or it is no scalar. What a mode wants
 * instead is looked at when the sizes are known. */
static bool take_scale(const hlo_instr *call, uint32_t *at, hlo_scale_mode mode,
                       hlo_instr **out_scale) {
    if (*at >= call->operand_count) return false;
    hlo_instr *scale = hlo_instr_operand(call, (*at)++);
    *out_scale = scale;
    if (mode != HLO_SCALE_SCALAR) return true;
    if (!is_f32_scalar(scale->shape)) return false;
    *out_scale = is_one(scale) ? NULL : scale;
    return true;
}

/* XLA leaves the output scale of an fp8 result out where no operand is scaled either, and then
 * takes the last operand for it: so there must be one, or the last must be a scale of 1. */
static const char *take_fp8_operands(const hlo_instr *call, hlo_matmul *m, uint32_t at) {
    bool bias = hlo_epilogues[m->epilogue].bias, d_fp8 = hlo_type_is_fp8(m->d->type);
    uint32_t rest = call->operand_count - at;
    bool all = rest == 4u + bias, d_scaled = rest == 2u + bias + d_fp8;
    if (!all && !d_scaled && rest != 2u + bias) return "the number of operands fits neither form";
    if (!hlo_type_is_fp8(m->a->shape->type) || !hlo_type_is_fp8(m->b->shape->type))
        return "a or b is not fp8";
    const hlo_scale_mode one = HLO_SCALE_SCALAR;
    if (!take_scale(call, &at, m->a_mode, &m->a_scale) ||
        !take_scale(call, &at, m->b_mode, &m->b_scale))
        return "a scale is not f32[]";
    if (all &&
        (!take_scale(call, &at, one, &m->c_scale) || !take_scale(call, &at, one, &m->d_scale)))
        return "a scale is not f32[]";
    if (bias) m->bias = hlo_instr_operand(call, at++);
    if (all || !d_fp8) return NULL;
    if (d_scaled) return take_scale(call, &at, one, &m->d_scale) ? NULL : "a scale is not f32[]";
    return bias || m->b_scale ? "an fp8 result has no output scale" : NULL;
}

static const char *take_operands(const hlo_instr *call, hlo_matmul *m) {
    uint32_t at = 2;
    if (call->operand_count < 2) return "it has fewer than two operands";
    m->a = hlo_instr_operand(call, 0);
    m->b = hlo_instr_operand(call, 1);
    if (!hlo_shape_is_array(m->a->shape) || !hlo_shape_is_array(m->b->shape))
        return "a or b is not an array";
    if (m->beta != 0) {
        if (call->operand_count == at) return "beta is not 0 and there is no c";
        m->c = hlo_instr_operand(call, at++);
        if (!hlo_shape_is_array(m->c->shape) || !hlo_shape_same_dims(m->c->shape, m->d))
            return "c does not have the result's dimensions";
    }
    if (!m->wide) return take_fp8_operands(call, m, at);
    bool bias = hlo_epilogues[m->epilogue].bias;
    if (call->operand_count != at + bias) return "the number of operands does not fit the config";
    if (bias) m->bias = hlo_instr_operand(call, at);
    return NULL;
}

static const char *check_bias(const hlo_matmul *m) {
    if (!m->bias) return NULL;
    const hlo_shape *bias = m->bias->shape;
    if (hlo_shape_is_array(bias) && bias->rank == 1 && bias->dims[0] == hlo_matmul_extents(m).n)
        return NULL;
    return "the bias is not a vector along n";
}

static bool scales_fit(const hlo_instr *scale, hlo_scale_mode mode, int64_t size, int64_t k) {
    int64_t dims[2];
    uint32_t rank = hlo_scale_dims(mode, size, k, dims);
    if (!rank) return true;
    const hlo_shape *shape = scale->shape;
    return shape->type == HLO_TYPE_F32 && shape->rank == rank && hlo_shape_is_row_major(shape) &&
           memcmp(shape->dims, dims, rank * sizeof *dims) == 0;
}

static const char *check_scales(const hlo_matmul *m) {
    if (m->a_mode == HLO_SCALE_SCALAR && m->b_mode == HLO_SCALE_SCALAR) return NULL;
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    if (m->wide) return "a matmul of wider types has no scales";
    bool inside = hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along;
    if (inside && m->a_contracting->count != 1)
        return "scales per block are for one contracting dimension";
    if (size.batch != 1) return "scales that are no scalar are for one matrix, not for a batch";
    if (!scales_fit(m->a_scale, m->a_mode, size.m, size.k) ||
        !scales_fit(m->b_scale, m->b_mode, size.n, size.k))
        return "a scale is not as its scale mode says";
    return NULL;
}

/* D, then what the config promises, then perhaps the workspace. */
static const char *take_results(const hlo_instr *call, hlo_matmul *m) {
    static const char wrong[] = "the results do not fit the config";
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
            return "the auxiliary result does not have the result's dimensions";
    }
    if (amax > 0 && !is_f32_scalar(shape->elements[amax])) return "the abs-max is not f32[]";
    if (given == promised) return NULL;
    const hlo_shape *workspace = shape->elements[given - 1];
    return workspace->type == HLO_TYPE_S8 && workspace->rank == 1
               ? NULL
               : "the workspace is not a vector of s8";
}

static const hlo_ints *keep_dims(hlo_module *module, const hlo_config_dims *dims) {
    return hlo_ints_new(module, dims->count, dims->v);
}

typedef struct known_config {
    const char *wrong; /* why it cannot be read; NULL: it can */
    hlo_matmul matmul; /* the members that it tells */
} known_config;

static void keep_config(hlo_module *module, const hlo_config *config, hlo_matmul *m) {
    m->alpha = config->alpha;
    m->beta = config->beta;
    m->epilogue = config->epilogue;
    m->amax = config->amax;
    m->a_mode = config->a_mode;
    m->b_mode = config->b_mode;
    m->a_batch = keep_dims(module, &config->a_batch);
    m->a_contracting = keep_dims(module, &config->a_contracting);
    m->b_batch = keep_dims(module, &config->b_batch);
    m->b_contracting = keep_dims(module, &config->b_contracting);
    if (strcmp(config->precision[0], "default") != 0 ||
        strcmp(config->precision[1], "default") != 0)
        m->precision =
            hlo_arena_format(module->arena, "{%s,%s}", config->precision[0], config->precision[1]);
    if (*config->algorithm) m->algorithm = hlo_intern_string(module, config->algorithm);
}

/* Calls are read many times, so what a config says is kept with its text, once all of it is read:
 * memory may run out before that, and the call be read again. */
static const known_config *read_config(hlo_module *module, const char *text) {
    hlo_string_cache *cache = text ? hlo_intern_cache(module, text) : NULL;
    if (cache && cache->config) return cache->config;
    known_config *known = hlo_arena_zero(module->arena, sizeof *known);
    hlo_config config;
    known->wrong = hlo_config_read(module->arena, text, &config);
    if (!known->wrong) keep_config(module, &config, &known->matmul);
    if (cache) cache->config = known;
    return known;
}

bool hlo_matmul_read_results(const hlo_instr *call, hlo_matmul *out_matmul) {
    const known_config *known =
        read_config(call->parent->module, hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG));
    *out_matmul = known->matmul;
    return !known->wrong && !take_results(call, out_matmul);
}

hlo_status hlo_matmul_decode(const hlo_instr *call, hlo_matmul *out_matmul, const char **why) {
    const known_config *known =
        read_config(call->parent->module, hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG));
    *why = known->wrong;
    if (*why) return HLO_INVALID_INPUT;
    hlo_matmul m = known->matmul;
    m.wide = hlo_matmul_is_wide_call(call);
    *why = take_results(call, &m);
    if (!*why) *why = take_operands(call, &m);
    m.in_place = m.c && hlo_instr_attr(call, HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING);
    if (!*why) *why = check_dimensions(&m);
    if (!*why) *why = check_bias(&m);
    if (!*why) *why = check_scales(&m);
    if (*why) return HLO_INVALID_INPUT;
    *out_matmul = m;
    return HLO_OK;
}

hlo_status hlo_matmul_verify(const hlo_module *module, unsigned max_errors,
                             const hlo_diag_sink *sink) {
    hlo_error_budget errors = hlo_error_budget_new(max_errors);
    if (!module->op_counts[HLO_OP_CUSTOM_CALL]) return HLO_OK;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_matmul matmul;
            const char *why;
            if (!hlo_matmul_is_call(instr) && !hlo_matmul_is_wide_call(instr)) continue;
            if (hlo_matmul_decode(instr, &matmul, &why) == HLO_OK) continue;
            if (!hlo_error_budget_take(&errors, instr->offset)) continue;
            hlo_diag_emit(module, sink, HLO_ERROR, instr->offset, strlen(instr->name) + 1,
                          "'%s' is no matmul call: %s", instr->name, why);
        }
    return hlo_error_budget_end(&errors, module, sink);
}

const char *hlo_matmul_incomplete(const hlo_matmul *m) {
    if (!m->a || !m->b) return "a matmul has two operands";
    if (!m->c != (m->beta == 0)) return "c and a beta that is not 0 go together";
    if (!m->bias == hlo_epilogues[m->epilogue].bias)
        return "a bias and an epilogue that adds one go together";
    if ((!m->a_scale && m->a_mode != HLO_SCALE_SCALAR) ||
        (!m->b_scale && m->b_mode != HLO_SCALE_SCALAR))
        return "a scale mode needs its scales";
    return NULL;
}

void hlo_matmul_from_dot(const hlo_instr *dot, hlo_matmul *out_matmul) {
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

/* The computation's shared f32[] constant(1): its first instruction, so that it is found in O(1)
 * and stands before every call. */
static hlo_instr *shared_one(hlo_computation *comp) {
    hlo_instr *first = comp->first;
    if (first && is_f32_scalar(first->shape) && is_one(first)) return first;
    return hlo_constant_scalar(comp, first, HLO_TYPE_F32, 1);
}

static uint32_t put_operands(const hlo_matmul *m, hlo_scale_form form, hlo_computation *comp,
                             hlo_instr **operands) {
    bool all = form == HLO_SCALES_ALL, d_fp8 = hlo_type_is_fp8(m->d->type);
    hlo_instr *one = NULL;
    if (!m->a_scale || !m->b_scale || (all && (!m->c_scale || !m->d_scale)) ||
        (d_fp8 && !m->d_scale))
        one = shared_one(comp);
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

/* What a config is written from. Its bytes are compared, so it has no padding. */
typedef struct config_key {
    char tag[8]; /* no config begins so */
    double alpha, beta;
    int64_t a_stride, b_stride;
    const char *precision, *algorithm;
    uint32_t epilogue, amax, a_mode, b_mode, form;
    uint32_t counts[4], count; /* of dimension numbers, by list and in all */
    int64_t dims[2 * HLO_CONFIG_DIMS];
} config_key;

/* The config, interned. A module has few that differ, and writing one takes longer than all else
 * about a call, so each is kept with what it was made from. */
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
                             hlo_computation *comp, hlo_instr *before, const hlo_instr *like) {
    hlo_module *module = comp->module;
    hlo_instr *operands[8];
    uint32_t operand_count = put_operands(matmul, target->scales, comp, operands);

    const hlo_shape *results[4];
    uint32_t result_count = 0;
    results[result_count++] = matmul->d;
    if (hlo_epilogues[matmul->epilogue].aux) results[result_count++] = matmul->aux;
    if (matmul->amax) results[result_count++] = hlo_shape_array(module, HLO_TYPE_F32, 0, NULL);
    int64_t workspace = hlo_target_find(target->sm)->workspace;
    results[result_count++] = hlo_shape_array(module, HLO_TYPE_S8, 1, &workspace);

    hlo_instr *call = hlo_instr_new(comp, before, HLO_OP_CUSTOM_CALL,
                                    hlo_shape_tuple(module, result_count, results), operand_count,
                                    operands, "cublas-gemm");
    call->offset = like->offset;
    hlo_instr_set_str(call, HLO_ATTR_CUSTOM_CALL_TARGET, fp8_target);
    if (matmul->in_place && matmul->beta != 0 && matmul->c->shape == matmul->d)
        hlo_instr_set_str(call, HLO_ATTR_OUTPUT_TO_OPERAND_ALIASING, "{{0}: (2, {})}");
    const hlo_attr *metadata = hlo_instr_attr(like, HLO_ATTR_METADATA);
    if (metadata) hlo_instr_set_attr(call, *metadata);
    const char *config = config_of(module, matmul, target->scales);
    hlo_instr_set_attr(call, (hlo_attr){.id = HLO_ATTR_BACKEND_CONFIG, .u.str = config});
    return call;
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
