/* SPDX-License-Identifier: Apache-2.0 */
/* Fused attention of cuDNN (flash attention):
 *
 *   scores  s = scale * q k' + bias, where k' is k transposed; masked scores are -infinity
 *   result  o = p v, where p = softmax(s)
 *   stats   log(sum(exp(s))), for the backward pass, which computes p = exp(s - stats)
 *
 * and, for the gradient g of o,
 *
 *   dv = p' g,  ds = p * (g v' - sum(g * o)),  dq = scale * ds k,  dk = scale * ds' q,  dbias = ds
 *
 * Queries may have several heads for each head of keys and values. The arrays are computed as
 * q [batch, heads, group, rows, features] and k, v [batch, heads, columns, features], in f32.
 *
 * Sources: XLA's cudnn_custom_call_compiler.cc and backend_configs.proto; jax's
 * cudnn/fused_attention_stablehlo.py; cuDNN's documentation of scaled dot product attention. */
#include <math.h>
#include <string.h>

#include "runtime/calls/library_call.h"

enum { BATCH, HEADS, GROUP, ROWS, COLUMNS, RANK, FEATURES = COLUMNS, QKV_RANK = 4 };

/* The dimensions of an operand, from the dot of which it is a factor. */
typedef struct factor {
    int64_t batch[2], contracting;
} factor;

typedef struct attention_config {
    double scale;
    int64_t window; /* a row sees this many columns up to its own; 0: all */
    bool causal;
    factor q, k, v, g;
} attention_config;

/* The call's operands and their sizes. */
typedef struct attention {
    const library_call *c;
    attention_config config;
    int64_t size[RANK], qk_features, v_features;
    hlo_instruction *q, *k, *v, *g, *o;
    const hlo_shape *scores;
} attention;

static factor read_factor(const char **wrong, const json_t *json, const char *dot, bool lhs) {
    const json_t *dims = call_member(wrong, json, dot, JSON_OBJECT);
    const json_t *batch =
        json_object_get(dims, lhs ? "lhs_batch_dimensions" : "rhs_batch_dimensions");
    const json_t *contracting =
        json_object_get(dims, lhs ? "lhs_contracting_dimensions" : "rhs_contracting_dimensions");
    factor f = {{call_index(json_array_get(batch, 0)), call_index(json_array_get(batch, 1))},
                call_index(json_array_get(contracting, 0))};
    const int64_t last = QKV_RANK - 1;
    if (json_array_size(batch) != 2 || json_array_size(contracting) != 1 || f.batch[0] < 0 ||
        f.batch[1] < 0 || f.contracting < 0 || f.batch[0] > last || f.batch[1] > last ||
        f.contracting > last || f.batch[0] == f.batch[1] || f.batch[0] == f.contracting ||
        f.batch[1] == f.contracting)
        *wrong = dot;
    return f;
}

static bool read_config(const library_call *c, bool backward, attention_config *out) {
    static const char *const masks[] = {"NO_MASK", "PADDING", "CAUSAL", "PADDING_CAUSAL", "ALIBI"};
    static const char key[] = "cudnn_fmha_backend_config";
    const char *wrong = NULL;
    json_t *whole = call_config(c, key, &wrong);
    const json_t *json = call_member(&wrong, whole, key, JSON_OBJECT);
    if (!json) wrong = key;
    const uint32_t mask =
        call_choice(&wrong, json, "mask_type", sizeof masks / sizeof *masks, masks);
    *out = (attention_config){.scale = call_number(&wrong, json, "fmha_scale"),
                              .window = call_integer(&wrong, json, "sliding_window_length"),
                              .causal = mask == 2 || call_flag(&wrong, json, "is_causal_mask")};
    if (backward) {
        out->q = read_factor(&wrong, json, "bmm1_grad_gemm1_dot_dimension_numbers", false);
        out->k = read_factor(&wrong, json, "bmm1_grad_gemm2_dot_dimension_numbers", false);
        out->v = read_factor(&wrong, json, "bmm2_grad_gemm2_dot_dimension_numbers", false);
        out->g = read_factor(&wrong, json, "bmm2_grad_gemm1_dot_dimension_numbers", false);
    } else {
        out->q = read_factor(&wrong, json, "bmm1_dot_dimension_numbers", true);
        out->k = read_factor(&wrong, json, "bmm1_dot_dimension_numbers", false);
        out->v = read_factor(&wrong, json, "bmm2_dot_dimension_numbers", false);
    }
    const char *unsupported = NULL;
    if (mask == 1 || mask == 3) unsupported = "has sequence lengths";
    if (mask == 4) unsupported = "has an ALiBi mask";
    if (call_number(&wrong, json, "dropout_rate") != 0) unsupported = "has dropout";
    if (call_integer(&wrong, json, "max_seg_per_batch") > 1) unsupported = "has packed sequences";
    if (call_flag(&wrong, json, "is_paged_attention")) unsupported = "has paged keys and values";
    if (!call_flag(&wrong, json, "is_flash_attention")) unsupported = "is not flash attention";
    if (out->window > 0 && !out->causal) unsupported = "has a sliding window without a causal mask";
    json_decref(whole);
    if (!call_config_fits(c, wrong)) return false;
    return !unsupported || call_refuse(c, "%s, which is not supported", unsupported);
}

/* Returns an operand as [batch, heads, rows or columns, features], or NULL if it is not an array of
 * floats with 4 dimensions. `features` is true if its dot contracts the features. */
static hlo_instruction *canonical(const library_call *c, uint32_t index, const factor *f,
                                  bool features) {
    if (index >= c->b->at->operand_count) return NULL;
    hlo_instruction *x = call_operand(c, index);
    if (!call_is_float_array(x->shape) || x->shape->rank != QKV_RANK) return NULL;
    const int64_t other = 6 - f->batch[0] - f->batch[1] - f->contracting;
    const int64_t order[] = {f->batch[0], f->batch[1], features ? other : f->contracting,
                             features ? f->contracting : other};
    return hlo_build_convert(c->b, hlo_build_transpose(c->b, x, order), HLO_TYPE_F32);
}

/* Returns [batch, heads * group, ..] as [batch, heads, group, ..]. */
static hlo_instruction *grouped(const attention *a, hlo_instruction *x) {
    int64_t dims[RANK];
    for (uint32_t i = 0; i <= x->shape->rank; i++)
        dims[i] = i < ROWS ? a->size[i] : x->shape->dims[i - 1];
    return hlo_build_reshape(a->c->b, x, x->shape->rank + 1, dims);
}

static hlo_instruction *ungrouped(const attention *a, hlo_instruction *x) {
    int64_t dims[RANK] = {a->size[BATCH], a->size[HEADS] * a->size[GROUP]};
    for (uint32_t i = GROUP; i + 1 < x->shape->rank; i++) dims[i] = x->shape->dims[i + 1];
    return hlo_build_reshape(a->c->b, x, x->shape->rank - 1, dims);
}

/* Multiplies x and y, whose first two dimensions are batches. The result has the free dimensions of
 * x, then those of y. */
static hlo_instruction *multiply(const attention *a, hlo_instruction *x, hlo_instruction *y,
                                 uint32_t count, const int64_t *x_dims, const int64_t *y_dims) {
    hlo_module *module = a->c->x->module;
    const int64_t batch[] = {BATCH, HEADS};
    const hlo_dot_lists lists = {
        .batch = {hlo_ints_new(module, 2, batch), hlo_ints_new(module, 2, batch)},
        .contracting = {hlo_ints_new(module, count, x_dims), hlo_ints_new(module, count, y_dims)}};
    int64_t dims[2 * RANK];
    uint32_t rank = 0;
    for (uint32_t i = 0; i < x->shape->rank; i++)
        if (i < GROUP || !hlo_ints_contain(lists.contracting[0], i))
            dims[rank++] = x->shape->dims[i];
    for (uint32_t i = GROUP; i < y->shape->rank; i++)
        if (!hlo_ints_contain(lists.contracting[1], i)) dims[rank++] = y->shape->dims[i];
    return hlo_build_dot(a->c->b, hlo_shape_array(module, HLO_TYPE_F32, rank, dims),
                         (hlo_instruction *[]){x, y}, &lists);
}

/* Broadcasts a value of each row to the scores. */
static hlo_instruction *along_rows(const attention *a, hlo_instruction *x) {
    return hlo_build_broadcast_like(a->c->b, x, a->scores, COLUMNS,
                                    (int64_t[]){BATCH, HEADS, GROUP, ROWS});
}

static hlo_instruction *compare_indices(const attention *a, const char *direction, int64_t shift) {
    hlo_builder *b = a->c->b;
    const hlo_shape *shape = hlo_shape_retype(a->c->x->module, a->scores, HLO_TYPE_S64);
    hlo_instruction *row = hlo_build_iota(b, shape, ROWS);
    hlo_instruction *column = hlo_build_iota(b, shape, COLUMNS);
    return hlo_build_compare(
        b, call_binary(a->c, HLO_OP_ADD, column, hlo_build_filled(b, shape, (double)shift)),
        direction, row);
}

/* Reads the operands and builds the scores, or returns NULL after an error. */
static hlo_instruction *build_scores(attention *a, const library_call *c, bool backward,
                                     bool biased) {
    *a = (attention){.c = c};
    attention_config *config = &a->config;
    if (!read_config(c, backward, config)) return NULL;
    const uint32_t count = 3u + 3 * backward + biased;
    if (c->b->at->operand_count != count)
        return call_refuse(c, "takes %u operands, found %u", count, c->b->at->operand_count);
    a->q = canonical(c, 0, &config->q, !backward);
    a->k = canonical(c, 1, &config->k, !backward);
    a->v = canonical(c, 2, &config->v, backward);
    if (backward) {
        a->g = canonical(c, 4, &config->g, false);
        a->o = canonical(c, count - 1, &config->g, false);
    }
    if (!a->q || !a->k || !a->v || (backward && (!a->g || !a->o)))
        return call_refuse(c, "requires arrays of floats with 4 dimensions");
    const int64_t *q = a->q->shape->dims, *k = a->k->shape->dims, *v = a->v->shape->dims;
    const int64_t o[] = {q[0], q[1], q[2], v[3]};
    bool fits = q[0] == k[0] && q[0] == v[0] && k[1] == v[1] && k[1] > 0 && q[1] % k[1] == 0 &&
                k[2] == v[2] && q[3] == k[3];
    for (uint32_t i = 0; i < QKV_RANK && backward; i++)
        fits = fits && a->g->shape->dims[i] == o[i] && a->o->shape->dims[i] == o[i];
    if (!fits)
        return call_refuse(c,
                           "has operands whose batches, heads, sequences or features do not match");
    if (k[2] == 0 || (config->window > 0 && q[2] - k[2] >= config->window))
        return call_refuse(c, "has queries without keys, which is not supported");
    const int64_t size[RANK] = {q[0], k[1], q[1] / k[1], q[2], k[2]};
    memcpy(a->size, size, sizeof size);
    a->scores = hlo_shape_array(c->x->module, HLO_TYPE_F32, RANK, size);
    a->q = grouped(a, a->q);
    if (backward) {
        a->g = grouped(a, a->g);
        a->o = grouped(a, a->o);
    }
    hlo_instruction *s = multiply(a, a->q, a->k, 1, (int64_t[]){FEATURES}, (int64_t[]){3});
    s = call_with(c, HLO_OP_MULTIPLY, s, config->scale);
    if (biased) {
        const int64_t dims[] = {q[0], q[1], q[2], k[2]};
        hlo_instruction *bias = call_operand(c, backward ? 5 : 3);
        bias = call_broadcast(c, bias, hlo_shape_array(c->x->module, HLO_TYPE_F32, QKV_RANK, dims));
        if (!bias) return call_refuse(c, "has a bias that does not fit the scores");
        s = call_binary(c, HLO_OP_ADD, s, grouped(a, bias));
    }
    hlo_instruction *masked = hlo_build_filled(c->b, a->scores, -(double)INFINITY);
    if (config->causal) s = hlo_build_select(c->b, compare_indices(a, "LE", 0), s, masked);
    if (config->window > 0 && config->window < k[2])
        s = hlo_build_select(c->b, compare_indices(a, "GT", config->window), s, masked);
    return s;
}

static hlo_instruction *forward(const library_call *c, bool biased) {
    attention a;
    hlo_instruction *s = build_scores(&a, c, false, biased);
    if (!s) return NULL;
    const int64_t columns = COLUMNS;
    hlo_instruction *most = call_reduce(c, HLO_OP_MAXIMUM, s, 1, &columns);
    hlo_instruction *p = call_binary(c, HLO_OP_SUBTRACT, s, along_rows(&a, most));
    p = hlo_build_unary(c->b, HLO_OP_EXP, p);
    hlo_instruction *sum = call_reduce(c, HLO_OP_ADD, p, 1, &columns);
    p = call_binary(c, HLO_OP_DIVIDE, p, along_rows(&a, sum));
    hlo_instruction *results[] = {
        ungrouped(&a, multiply(&a, p, a.v, 1, (int64_t[]){COLUMNS}, (int64_t[]){2})),
        ungrouped(&a, call_binary(c, HLO_OP_ADD, most, hlo_build_unary(c->b, HLO_OP_LOG, sum)))};
    const hlo_shape *shape = c->b->at->shape;
    const bool stats = shape->type == HLO_TYPE_TUPLE && shape->rank > 2;
    return stats ? hlo_build_tuple(c->b, 2, results) : results[0];
}

static hlo_instruction *backward(const library_call *c, bool biased) {
    attention a;
    hlo_instruction *s = build_scores(&a, c, true, biased);
    if (!s) return NULL;
    hlo_instruction *stats = call_operand(c, 3);
    const int64_t *size = a.size, columns = COLUMNS;
    const int64_t dims[] = {size[BATCH], size[HEADS] * size[GROUP], size[ROWS]};
    if (!call_is_float_array(stats->shape) ||
        !hlo_shape_same_dims(stats->shape, hlo_shape_array(c->x->module, HLO_TYPE_F32, 3, dims)))
        return call_refuse(c, "requires the statistics of each row in operand 3");
    stats = grouped(&a, hlo_build_convert(c->b, stats, HLO_TYPE_F32));
    hlo_instruction *p = call_binary(c, HLO_OP_SUBTRACT, s, along_rows(&a, stats));
    p = hlo_build_unary(c->b, HLO_OP_EXP, p);
    const int64_t rows[] = {GROUP, ROWS};
    hlo_instruction *dv = multiply(&a, p, a.g, 2, rows, rows);
    hlo_instruction *ds = multiply(&a, a.g, a.v, 1, (int64_t[]){FEATURES}, (int64_t[]){3});
    hlo_instruction *sum = call_binary(c, HLO_OP_MULTIPLY, a.g, a.o);
    sum = call_reduce(c, HLO_OP_ADD, sum, 1, &columns);
    ds = call_binary(c, HLO_OP_SUBTRACT, ds, along_rows(&a, sum));
    ds = call_binary(c, HLO_OP_MULTIPLY, p, ds);
    hlo_instruction *scaled = call_with(c, HLO_OP_MULTIPLY, ds, a.config.scale);
    hlo_instruction *dq = multiply(&a, scaled, a.k, 1, (int64_t[]){COLUMNS}, (int64_t[]){2});
    hlo_instruction *results[] = {ungrouped(&a, dq), multiply(&a, scaled, a.q, 2, rows, rows), dv,
                                  NULL};
    const hlo_shape *shape = c->b->at->shape;
    if (!biased || shape->type != HLO_TYPE_TUPLE || shape->rank < 5)
        return hlo_build_tuple(c->b, 3, results);
    /* The bias may have one batch or head for all. */
    const hlo_shape *bias = call_operand(c, 5)->shape;
    int64_t summed[QKV_RANK];
    uint32_t count = 0;
    ds = ungrouped(&a, ds);
    for (uint32_t i = 0; i < QKV_RANK; i++)
        if (i + bias->rank < QKV_RANK ||
            bias->dims[i + bias->rank - QKV_RANK] != ds->shape->dims[i])
            summed[count++] = i;
    if (count) ds = call_reduce(c, HLO_OP_ADD, ds, count, summed);
    results[3] = hlo_build_reshape(c->b, ds, bias->rank, bias->dims);
    return hlo_build_tuple(c->b, 4, results);
}

hlo_instruction *call_attention(const library_call *c) {
    const bool biased = c->variant & CALL_BIASED;
    return c->variant & CALL_BACKWARD ? backward(c, biased) : forward(c, biased);
}
