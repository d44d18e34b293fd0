/* SPDX-License-Identifier: Apache-2.0 */
/* Layer norms of oneDNN and cuDNN. With the mean m of x along the normalized dimensions and the
 * factor f = rsqrt(variance + epsilon),
 *
 *   y = u * scale + shift, where u = (x - m) * f
 *
 * and, for the gradient g of y and h = g * scale,
 *
 *   dx = f * (h - mean(h) - u * mean(h * u)),  dscale = sum(g * u),  dshift = sum(g)
 *
 * Sources: XLA's onednn_config.proto, cudnn_norm_rewriter.cc and backend_configs.proto. */
#include <string.h>

#include "runtime/calls/library_call.h"

/* The normalized dimensions: all from `first`. */
typedef struct norm {
    const library_call *c;
    hlo_instruction *x;
    uint32_t first, count;
    int64_t dims[HLO_LARGEST_RANK];
} norm;

/* Reads operand 0. Returns false if it is not an array of floats. */
static bool begin(norm *n, const library_call *c, bool last_only) {
    const hlo_shape *shape = c->b->at->operand_count ? call_operand(c, 0)->shape : NULL;
    if (!shape || !call_is_float_array(shape) || !shape->rank || shape->rank > HLO_LARGEST_RANK)
        return false;
    *n = (norm){.c = c, .first = last_only ? shape->rank - 1 : 1};
    for (uint32_t d = n->first; d < shape->rank; d++) n->dims[n->count++] = d;
    n->x = call_widen(c, call_operand(c, 0));
    return true;
}

static hlo_instruction *mean(const norm *n, hlo_instruction *x) {
    double count = 1;
    for (uint32_t d = n->first; d < x->shape->rank; d++) count *= (double)x->shape->dims[d];
    x = call_reduce_along(n->c, HLO_OP_ADD, x, n->count, n->dims);
    return call_with(n->c, HLO_OP_DIVIDE, x, count);
}

/* Broadcasts an operand with an element for each element of the normalized dimensions, or for each
 * element of the others, to the shape of x. Returns NULL if it is another array. */
static hlo_instruction *spread(const norm *n, uint32_t index, bool normalized) {
    const uint32_t first = normalized ? n->first : 0;
    const uint32_t count = normalized ? n->count : n->first;
    const hlo_shape *like = n->x->shape;
    if (index >= n->c->b->at->operand_count) return NULL;
    hlo_instruction *value = call_operand(n->c, index);
    const hlo_shape *shape =
        hlo_shape_array(n->c->x->module, HLO_TYPE_F32, count, like->dims + first);
    if (!call_is_float_array(value->shape) ||
        hlo_shape_count(value->shape) != hlo_shape_count(shape))
        return NULL;
    int64_t to[HLO_LARGEST_RANK];
    for (uint32_t d = 0; d < count; d++) to[d] = first + d;
    value = hlo_build_convert(n->c->b, value, like->type);
    value = hlo_build_reshape(n->c->b, value, count, like->dims + first);
    return hlo_build_broadcast_like(n->c->b, value, like, count, to);
}

/* Returns the first element of each of the normalized dimensions. */
static hlo_instruction *first_of(const norm *n, hlo_instruction *x) {
    int64_t dims[HLO_LARGEST_RANK];
    for (uint32_t d = 0; d < x->shape->rank; d++) dims[d] = d < n->first ? x->shape->dims[d] : 1;
    return hlo_build_prefix(n->c->b, x,
                            hlo_shape_array(n->c->x->module, x->shape->type, x->shape->rank, dims));
}

static hlo_instruction *multiply(const norm *n, hlo_instruction *x, hlo_instruction *y) {
    return call_binary(n->c, HLO_OP_MULTIPLY, x, y);
}

/* Returns the result, or a tuple of it, the means and the factors if `train`. */
static hlo_instruction *forward(const library_call *c, bool last_only, double epsilon, bool train) {
    norm n;
    hlo_instruction *scale = NULL, *shift = NULL;
    if (c->b->at->operand_count == 3 && begin(&n, c, last_only)) {
        scale = spread(&n, 1, true);
        shift = spread(&n, 2, true);
    }
    if (!scale || !shift)
        return call_refuse(c,
                           "requires an array of floats, and a scale and a shift for each "
                           "element of its last dimension%s",
                           last_only ? "" : "s");
    hlo_instruction *m = mean(&n, n.x), *apart = call_binary(c, HLO_OP_SUBTRACT, n.x, m);
    hlo_instruction *f = call_with(c, HLO_OP_ADD, mean(&n, multiply(&n, apart, apart)), epsilon);
    f = hlo_build_unary(c->b, HLO_OP_RSQRT, f);
    hlo_instruction *y = multiply(&n, multiply(&n, apart, f), scale);
    y = call_binary(c, HLO_OP_ADD, y, shift);
    if (!train) return y;
    return hlo_build_tuple(c->b, 3, (hlo_instruction *[]){y, first_of(&n, m), first_of(&n, f)});
}

static hlo_instruction *gradient(const library_call *c) {
    norm n;
    hlo_instruction *scale = NULL, *m = NULL, *f = NULL, *g = NULL;
    if (c->b->at->operand_count == 5 && begin(&n, c, false) &&
        hlo_shape_same_dims(call_operand(c, 2)->shape, n.x->shape) &&
        call_is_float_array(call_operand(c, 2)->shape)) {
        scale = spread(&n, 1, true);
        g = hlo_build_convert(c->b, call_operand(c, 2), n.x->shape->type);
        m = spread(&n, 3, false);
        f = spread(&n, 4, false);
    }
    if (!scale || !m || !f)
        return call_refuse(c,
                           "requires arrays of floats: x, a scale, a gradient, means and factors");
    hlo_instruction *u = multiply(&n, call_binary(c, HLO_OP_SUBTRACT, n.x, m), f);
    hlo_instruction *h = multiply(&n, g, scale);
    hlo_instruction *dx = call_binary(c, HLO_OP_SUBTRACT, h, mean(&n, h));
    dx = call_binary(c, HLO_OP_SUBTRACT, dx, multiply(&n, u, mean(&n, multiply(&n, h, u))));
    hlo_instruction *results[] = {multiply(&n, f, dx), multiply(&n, g, u), g};
    for (uint32_t i = 1; i < 3; i++) {
        int64_t dims[HLO_LARGEST_RANK];
        memcpy(dims, n.x->shape->dims, n.x->shape->rank * sizeof *dims);
        dims[0] = 1;
        results[i] = call_reduce(c, HLO_OP_ADD, results[i], 1, (int64_t[]){0});
        results[i] = hlo_build_reshape(c->b, results[i], n.x->shape->rank, dims);
    }
    return hlo_build_tuple(c->b, 3, results);
}

hlo_instruction *call_layer_norm(const library_call *c, double epsilon) {
    return forward(c, true, epsilon, false);
}

hlo_instruction *call_norm(const library_call *c) {
    static const char *const kinds[] = {"LAYER_FWD_INFER", "LAYER_FWD_TRAIN", "LAYER_BWD"};
    static const char key[] = "cudnn_norm_backend_config";
    const char *wrong = NULL;
    json_t *whole = call_config(c, key, &wrong);
    const json_t *json = call_member(&wrong, whole, key, JSON_OBJECT);
    const double epsilon = call_number(&wrong, json, "epsilon");
    const uint32_t kind = call_choice(&wrong, json, "kind", sizeof kinds / sizeof *kinds, kinds);
    if (!json) wrong = key;
    json_decref(whole);
    if (!call_config_fits(c, wrong)) return NULL;
    return kind == 2 ? gradient(c) : forward(c, false, epsilon, kind == 1);
}
