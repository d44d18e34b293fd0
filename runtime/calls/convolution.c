/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of cuDNN. The window, dim_labels and feature groups of a call describe the forward
 * convolution y = x * w. The gradients of x and of w are convolutions, too:
 *
 *   x  y dilated by the stride * w with its window reversed and its features exchanged
 *   w  x with batch and features exchanged * y as the window, dilated by the stride
 *
 * Sources: XLA's conv_rewriter.cc, cudnn_fused_conv_rewriter.cc, backend_configs.proto and
 * dnn.proto. */
#include <ctype.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/infer/infer.h"
#include "ir/kernel/kernel.h"
#include "runtime/calls/library_call.h"

enum { GRAPH_SIZE = 4096, MAX_NODES = 64, MAX_RANK = HLO_EVAL_MAX_RANK / 2 };

typedef struct convolution_config {
    double scale, side_scale, alpha;
    const char *activation;
    bool fused; /* the scales and the activation apply */
    char graph[GRAPH_SIZE];
} convolution_config;

static bool read_config(const library_call *c, convolution_config *out) {
    static const char *const activations[] = {"kNone",      "kSigmoid",  "kRelu",     "kRelu6",
                                              "kReluX",     "kTanh",     "kBandPass", "kElu",
                                              "kLeakyRelu", "kGeluExact"};
    static const char key[] = "cudnn_conv_backend_config";
    const char *wrong = NULL;
    json_t *whole = call_config(c, key, &wrong);
    /* XLA of 2023 and earlier has no object for each kind of call. */
    const bool nested = json_object_get(whole, key);
    const json_t *json = nested ? call_member(&wrong, whole, key, JSON_OBJECT) : whole;
    out->scale = json_object_size(json) ? call_number(&wrong, json, "conv_result_scale") : 1;
    out->side_scale = call_number(&wrong, json, "side_input_scale");
    out->alpha = call_number(&wrong, json, "leakyrelu_alpha");
    out->activation = activations[call_choice(
        &wrong, json, "activation_mode", sizeof activations / sizeof *activations, activations)];
    const bool reordered = call_flag(&wrong, json, "reordered_int8_nchw_vect");
    const char *graph =
        json_string_value(call_member(&wrong, json, "serialized_graph", JSON_STRING));
    if (snprintf(out->graph, sizeof out->graph, "%s", graph ? graph : "") >= GRAPH_SIZE)
        wrong = "serialized_graph";
    json_decref(whole);
    if (!call_config_fits(c, wrong)) return false;
    if (reordered)
        return call_refuse(c,
                           "has a kernel in a packed format (reordered_int8_nchw_vect), which is "
                           "not supported: run the module before optimizations");
    if (!out->fused && out->scale != 1)
        return call_refuse(c, "has conv_result_scale %g, expected 1", out->scale);
    return true;
}

/* The dimensions of the input, the kernel and the output of a convolution: batch (kernel: input
 * features), features (kernel: output features), spatial dimensions. */
typedef struct labels {
    uint32_t rank;
    int64_t in[MAX_RANK], kernel[MAX_RANK], out[MAX_RANK];
} labels;

static void print_part(char *text, const char *letters, uint32_t rank, const int64_t *dims) {
    for (uint32_t i = 0; i < rank; i++)
        text[dims[i]] = (char)(i < 2 ? letters[i] : '0' + (int)i - 2);
}

static const char *print_labels(hlo_module *module, const labels *l) {
    char *text = hlo_arena_zero(module->arena, 3 * l->rank + 4);
    print_part(text, "bf", l->rank, l->in);
    text[l->rank] = '_';
    print_part(text + l->rank + 1, "io", l->rank, l->kernel);
    memcpy(text + 2 * l->rank + 1, "->", 2);
    print_part(text + 2 * l->rank + 3, "bf", l->rank, l->out);
    return text;
}

static void exchange(int64_t *x, int64_t *y) {
    const int64_t old = *x;
    *x = *y, *y = old;
}

/* Exchanges the features of the kernel of a grouped convolution, whose input features are those of
 * one group: the groups move from the output features to the input features. */
static hlo_instruction *exchange_groups(const library_call *c, hlo_instruction *w, const labels *l,
                                        int64_t groups) {
    const int64_t in = l->kernel[0], out = l->kernel[1];
    int64_t dims[MAX_RANK + 1], order[MAX_RANK + 1], merged[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t d = 0; d < l->rank; d++) {
        if (d == out) dims[count++] = groups;
        dims[count++] = d == out ? w->shape->dims[d] / groups : w->shape->dims[d];
        merged[d] = dims[count - 1] * (d == in ? groups : 1);
    }
    uint32_t at = 0;
    for (uint32_t d = 0; d < l->rank; d++) {
        if (d == in) order[at++] = out;
        order[at++] = d + (d >= out);
    }
    w = hlo_build_transpose(c->b, hlo_build_reshape(c->b, w, count, dims), order);
    return hlo_build_reshape(c->b, w, l->rank, merged);
}

/* Returns the extent of `count` elements with a distance of `step`. */
static int64_t extent(int64_t count, int64_t step) {
    return count ? (count - 1) * step + 1 : 0;
}

/* Replaces the window of the forward convolution along a dimension by that of a gradient. n, k and
 * o are the sizes of the input, the kernel and the output of the forward convolution. */
static hlo_window gradient_window(call_gradient of, const hlo_window *w, int64_t n, int64_t k,
                                  int64_t o) {
    if (of == CALL_OF_INPUT) {
        const int64_t low = extent(k, w->dilate) - 1 - w->low;
        return (hlo_window){.size = k,
                            .stride = w->base,
                            .low = low,
                            .high = (n - 1) * w->base + extent(k, w->dilate) - low -
                                    extent(o, w->stride),
                            .base = w->stride,
                            .dilate = w->dilate,
                            .reversed = !w->reversed};
    }
    return (hlo_window){.size = o,
                        .stride = w->dilate,
                        .low = w->low,
                        .high = (k - 1) * w->dilate + extent(o, w->stride) - w->low -
                                extent(n, w->base),
                        .base = w->base,
                        .dilate = w->stride};
}

static hlo_attr print_window(hlo_module *module, uint32_t spatial, const hlo_window *windows) {
    static const hlo_attr_id ids[] = {HLO_ATTR_SIZE,       HLO_ATTR_STRIDE,
                                      HLO_ATTR_PAD,        HLO_ATTR_LHS_DILATE,
                                      HLO_ATTR_RHS_DILATE, HLO_ATTR_RHS_REVERSAL};
    enum { WORDS = sizeof ids / sizeof *ids };
    hlo_attrs *list = hlo_arena_alloc(module->arena, sizeof *list + WORDS * sizeof *list->v);
    hlo_ints *numbers[WORDS];
    list->count = spatial ? WORDS : 0;
    for (uint32_t i = 0; i < WORDS; i++) {
        numbers[i] = hlo_ints_new(module, ids[i] == HLO_ATTR_PAD ? 2 * spatial : spatial, NULL);
        list->v[i] = (hlo_attr){.id = ids[i], .u.ints = numbers[i]};
    }
    for (uint32_t i = 0; i < spatial; i++) {
        const hlo_window *w = &windows[i];
        numbers[0]->v[i] = w->size;
        numbers[1]->v[i] = w->stride;
        numbers[2]->v[2 * i] = w->low;
        numbers[2]->v[2 * i + 1] = w->high;
        numbers[3]->v[i] = w->base;
        numbers[4]->v[i] = w->dilate;
        numbers[5]->v[i] = w->reversed;
    }
    return (hlo_attr){.id = HLO_ATTR_WINDOW, .u.attrs = list};
}

/* Builds the convolution of a call, or the gradient of one. The result of floats has the type
 * `type`; that of integers is s32. Sets `out_features` to the dimension of the output features. */
static hlo_instruction *convolve(const library_call *c, call_gradient of, hlo_type type,
                                 int64_t *out_features) {
    hlo_module *module = c->x->module;
    const hlo_instruction *call = c->b->at;
    bool fits = call->operand_count >= 2, floats = true;
    for (uint32_t i = 0; i < 2 && fits; i++) {
        const hlo_shape *shape = call_operand(c, i)->shape;
        floats = hlo_shape_is_array(shape) && hlo_type_is_float(shape->type);
        fits = hlo_shape_is_array(shape) && !shape->dynamic &&
               (floats || hlo_type_is_integer(shape->type)) &&
               floats == hlo_type_is_float(call_operand(c, 0)->shape->type);
    }
    if (!fits || (floats && !hlo_type_is_float(type)))
        return call_refuse(c, "requires two arrays of floats or two arrays of integers");
    if (call_operand(c, 0)->shape->rank > MAX_RANK)
        return call_refuse(c, "is a convolution with more than %d dimensions", MAX_RANK);
    hlo_instruction *operands[] = {call_operand(c, 0), call_operand(c, 1)};
    const char *text = hlo_instr_str(call, HLO_ATTR_DIM_LABELS);
    int64_t named[3 * MAX_RANK];
    const uint32_t rank = operands[0]->shape->rank;
    if (text && (strchr(text, '?') || (rank > 3 && hlo_dim_labels_read(text, rank - 1, named))))
        return call_refuse(
            c,
            "has vectors of features (dim_labels=%s), which is not supported: run the "
            "module before optimizations",
            text);

    /* Check the call as a forward convolution of x and w with the result y. */
    hlo_instruction absent = {.shape = c->want, .offset = call->offset};
    hlo_instruction *forward[] = {of == CALL_OF_INPUT ? &absent : operands[0],
                                  of == CALL_OF_KERNEL ? &absent : operands[1]};
    const hlo_shape *x = forward[0]->shape, *w = forward[1]->shape;
    const hlo_shape *y = of == CALL_FORWARD ? c->want : operands[of == CALL_OF_KERNEL]->shape;
    char why[160];
    const hlo_shape *inferred = hlo_infer(module, HLO_OP_CONVOLUTION, 2, forward, call->attr_count,
                                          call->attrs, why, sizeof why);
    if (!inferred) return call_refuse(c, "is an invalid convolution: %s", why);
    if (!hlo_shape_same_dims(inferred, y))
        return call_refuse(c, "has operands and a result that do not match");
    labels l = {.rank = x->rank};
    hlo_dim_labels_read(text, l.rank, named);
    memcpy(l.in, named, l.rank * sizeof *named);
    memcpy(l.kernel, named + l.rank, l.rank * sizeof *named);
    memcpy(l.out, named + 2 * (size_t)l.rank, l.rank * sizeof *named);
    *out_features = l.out[1];

    const int64_t groups = hlo_instr_int(call, HLO_ATTR_FEATURE_GROUP_COUNT, 1);
    int64_t batch_groups = hlo_instr_int(call, HLO_ATTR_BATCH_GROUP_COUNT, 1);
    if (of != CALL_FORWARD && batch_groups != 1)
        return call_refuse(c, "has batch_group_count %lld, expected 1", (long long)batch_groups);
    hlo_window windows[MAX_RANK];
    bool reversed[MAX_RANK];
    for (uint32_t i = 0; i + 2 < l.rank; i++) {
        const hlo_window window = windows[i] = hlo_window_of(call, i);
        reversed[i] = window.reversed;
        if (of != CALL_FORWARD)
            windows[i] = gradient_window(of, &window, x->dims[l.in[2 + i]],
                                         w->dims[l.kernel[2 + i]], y->dims[l.out[2 + i]]);
    }
    labels to = l;
    if (of == CALL_OF_INPUT) {
        memcpy(to.in, l.out, sizeof to.in);
        memcpy(to.out, l.in, sizeof to.out);
        if (groups > 1) operands[1] = exchange_groups(c, operands[1], &l, groups);
        exchange(&to.kernel[0], &to.kernel[1]);
    } else if (of == CALL_OF_KERNEL) {
        exchange(&to.in[0], &to.in[1]);
        memcpy(to.kernel, l.out, sizeof to.kernel);
        memcpy(to.out, l.kernel, sizeof to.out);
        batch_groups = groups;
    }
    const hlo_shape *shape =
        hlo_shape_array(module, floats ? type : HLO_TYPE_S32, l.rank, c->want->dims);
    hlo_instruction *made = hlo_build(c->b, HLO_OP_CONVOLUTION, shape, 2, operands);
    hlo_instr_set_attr(made, print_window(module, l.rank - 2, windows));
    hlo_instr_set_str(made, HLO_ATTR_DIM_LABELS, print_labels(module, &to));
    hlo_instr_set_int(made, HLO_ATTR_FEATURE_GROUP_COUNT, of == CALL_OF_KERNEL ? 1 : groups);
    hlo_instr_set_int(made, HLO_ATTR_BATCH_GROUP_COUNT, batch_groups);
    uint32_t blamed;
    if (!hlo_infer_check(made, module->arena, why, sizeof why, &blamed))
        return call_refuse(c, "is an invalid convolution: %s", why);
    /* The gradient of a reversed kernel is reversed. */
    int64_t dims[MAX_RANK];
    uint32_t count = 0;
    for (uint32_t i = 0; i + 2 < l.rank && of == CALL_OF_KERNEL; i++)
        if (reversed[i]) dims[count++] = l.kernel[2 + i];
    return count ? hlo_build_ints(c->b, HLO_OP_REVERSE, made->shape, 1, &made, HLO_ATTR_DIMENSIONS,
                                  count, dims)
                 : made;
}

/* Converts x to `type`. Values beyond the range of an integer of 8 bits or fewer, or of an fp8
 * type, become its limits. */
static hlo_instruction *saturate(const library_call *c, hlo_instruction *x, hlo_type type) {
    const bool narrow = hlo_types[type].bits <= 8;
    if (x->shape->type == type || !narrow || !hlo_type_is_float(x->shape->type))
        return hlo_build_convert(c->b, x, type);
    const bool is_signed = hlo_types[type].class == HLO_CLASS_SIGNED;
    double low = 0, high = 0;
    if (hlo_type_is_float(type)) {
        high = hlo_float_max(type);
        low = -high;
    } else {
        high = (double)((1 << (hlo_types[type].bits - is_signed)) - 1);
        low = is_signed ? -high - 1 : 0;
    }
    x = call_with(c, HLO_OP_MINIMUM, call_with(c, HLO_OP_MAXIMUM, x, low), high);
    return hlo_build_convert(c->b, x, type);
}

hlo_instruction *call_convolution(const library_call *c) {
    convolution_config config = {.fused = false};
    int64_t features;
    if (!read_config(c, &config)) return NULL;
    if (c->b->at->operand_count != 2)
        return call_refuse(c, "takes 2 operands, found %u", c->b->at->operand_count);
    hlo_instruction *y = convolve(c, (call_gradient)c->variant, c->want->type, &features);
    if (!y || y->shape->type == c->want->type) return y;
    return saturate(c, call_widen(c, y), c->want->type);
}

/* Computes activation(conv_result_scale * (x * w) + side_input_scale * side + bias). */
hlo_instruction *call_convolution_fused(const library_call *c) {
    convolution_config config = {.fused = true};
    if (!read_config(c, &config)) return NULL;
    const uint32_t count = c->b->at->operand_count;
    if (count != 3 && count != 4) return call_refuse(c, "takes 3 or 4 operands, found %u", count);
    if (count == 3 && config.side_scale != 0)
        return call_refuse(c, "has side_input_scale %g, but no side input", config.side_scale);
    const hlo_type wide = call_computed(call_operand(c, 0)->shape->type);
    int64_t features;
    hlo_instruction *y = convolve(c, CALL_FORWARD, wide, &features), *bias = call_operand(c, 2);
    if (!y) return NULL;
    if (!call_is_float_array(bias->shape) || bias->shape->rank != 1 ||
        bias->shape->dims[0] != y->shape->dims[features])
        return call_refuse(c, "requires a bias of one float for each output feature");
    y = hlo_build_convert(c->b, y, wide);
    if (config.scale != 1) y = call_with(c, HLO_OP_MULTIPLY, y, config.scale);
    if (config.side_scale != 0) {
        hlo_instruction *side = call_operand(c, 3);
        if (!hlo_shape_is_array(side->shape) || side->shape->dynamic ||
            !hlo_shape_same_dims(side->shape, y->shape))
            return call_refuse(c, "requires a side input with the dimensions of the result");
        side = hlo_build_convert(c->b, side, wide);
        if (config.side_scale != 1) side = call_with(c, HLO_OP_MULTIPLY, side, config.side_scale);
        y = call_binary(c, HLO_OP_ADD, y, side);
    }
    bias = hlo_build_convert(c->b, bias, wide);
    y = call_binary(c, HLO_OP_ADD, y, hlo_build_broadcast_like(c->b, bias, y->shape, 1, &features));
    if (strcmp(config.activation, "kLeakyRelu") == 0) {
        hlo_instruction *zero = hlo_build_filled(c->b, y->shape, 0);
        y = hlo_build_select(c->b, hlo_build_compare(c->b, y, "GT", zero), y,
                             call_with(c, HLO_OP_MULTIPLY, y, config.alpha));
    } else if (strcmp(config.activation, "kNone") != 0) {
        y = call_activation(c, config.activation + 1, y);
        if (!y)
            return call_refuse(c, "has the activation %s, which is not supported",
                               config.activation);
    }
    return saturate(c, y, c->want->type);
}

/* --------------------------------------------------------------------------------------- graphs */

/* An operation of a serialized graph, such as 12:[f32]add(10,11); */
typedef struct node {
    uint64_t id;
    hlo_type type;
    char name[16];
    uint32_t input_count;
    hlo_instruction *inputs[2], *value;
} node;

/* Operations of serialized graphs. An input that is not in the graph is the next operand of the
 * call. */
static const struct {
    const char *name;
    hlo_op op;
} binaries[] = {{"add", HLO_OP_ADD},
                {"scale", HLO_OP_MULTIPLY},
                {"invscale", HLO_OP_DIVIDE},
                {"min", HLO_OP_MINIMUM},
                {"max", HLO_OP_MAXIMUM}};

/* Reads a decimal number. */
static bool read_id(const char **at, uint64_t *out) {
    *out = 0;
    const char *from = *at;
    for (; isdigit((unsigned char)**at); ++*at) *out = *out * 10 + (uint64_t)(**at - '0');
    return *at != from;
}

static bool read_node(const char **at, const node *nodes, uint32_t count, node *out) {
    *out = (node){.input_count = 0};
    if (!read_id(at, &out->id) || strncmp(*at, ":[", 2) != 0) return false;
    *at += 2;
    size_t length = strcspn(*at, "]");
    out->type = hlo_type_find(*at, length);
    if (!hlo_type_is_float(out->type) || (*at)[length] != ']') return false;
    *at += length + 1;
    length = strcspn(*at, "(");
    if (length >= sizeof out->name || (*at)[length] != '(') return false;
    memcpy(out->name, *at, length);
    *at += length + 1;
    while (**at != ')') {
        uint64_t id;
        uint32_t i = 0;
        if (out->input_count == 2 || !read_id(at, &id)) return false;
        while (i < count && nodes[i].id != id) i++;
        if (i == count) return false;
        out->inputs[out->input_count++] = nodes[i].value;
        if (**at == ',') ++*at;
    }
    if (strncmp(*at, ");", 2) != 0) return false;
    *at += 2;
    return true;
}

/* Builds the operation of a node. `y` is the convolution and `*next` the next operand of the call.
 */
static hlo_instruction *build_node(const library_call *c, node *n, hlo_instruction *y,
                                   uint32_t *next) {
    hlo_instruction *x = n->input_count ? call_widen(c, n->inputs[0]) : NULL;
    hlo_op op = HLO_OP_COUNT;
    for (size_t i = 0; i < sizeof binaries / sizeof *binaries; i++)
        if (strcmp(n->name, binaries[i].name) == 0) op = binaries[i].op;
    if (op != HLO_OP_COUNT && x) {
        hlo_instruction *other = n->inputs[1];
        if (!other) {
            other = *next < c->b->at->operand_count ? call_operand(c, *next) : NULL;
            if (!other || !call_is_float_array(other->shape))
                return call_refuse(c, "has no operand for the operation %s", n->name);
            ++*next;
        }
        other = hlo_build_convert(c->b, other, x->shape->type);
        if (!hlo_shape_same_dims(other->shape, x->shape)) {
            if (hlo_shape_count(other->shape) != 1)
                return call_refuse(c, ": the operand of the operation %s does not fit the result",
                                   n->name);
            other = hlo_build_reshape(c->b, other, 0, NULL);
            other = hlo_build_broadcast_like(c->b, other, x->shape, 0, NULL);
        }
        return call_binary(c, op, x, other);
    }
    if (strcmp(n->name, "amax") == 0 && n->input_count == 1) {
        int64_t dims[MAX_RANK];
        for (uint32_t i = 0; i < x->shape->rank; i++) dims[i] = i;
        return call_reduce(c, HLO_OP_MAXIMUM, hlo_build_unary(c->b, HLO_OP_ABS, x), x->shape->rank,
                           dims);
    }
    hlo_instruction *made = n->input_count == 1 ? call_activation(c, n->name, x) : NULL;
    if (made || (strcmp(n->name, "conv") == 0 && !n->input_count)) return made ? made : y;
    return call_refuse(c, "has the operation %s in its graph, which is not supported", n->name);
}

/* Computes a graph of a convolution and operations on its result. The results of the call are the
 * last value of the graph, and the largest magnitudes that `amax` operations compute. */
hlo_instruction *call_convolution_graph(const library_call *c) {
    convolution_config config = {.fused = false};
    if (!read_config(c, &config)) return NULL;
    int64_t features;
    node nodes[MAX_NODES];
    hlo_instruction *results[MAX_NODES] = {NULL};
    uint32_t count = 0, result_count = 1, next = 2;
    const hlo_type wide =
        c->b->at->operand_count ? call_computed(call_operand(c, 0)->shape->type) : HLO_TYPE_F32;
    hlo_instruction *y = convolve(c, CALL_FORWARD, wide, &features);
    if (!y) return NULL;
    if (!hlo_type_is_float(y->shape->type)) return call_refuse(c, "requires arrays of floats");
    for (const char *at = config.graph; *at || !count; count++) {
        node *n = &nodes[count];
        if (count == MAX_NODES || !read_node(&at, nodes, count, n) ||
            (strcmp(n->name, "conv") == 0) != !count)
            return call_refuse(c, "has an invalid serialized_graph");
        hlo_instruction *made = build_node(c, n, y, &next);
        if (!made) return NULL;
        n->value = saturate(c, made, n->type);
        if (strcmp(n->name, "amax") == 0)
            results[result_count++] = n->value;
        else
            results[0] = n->value;
    }
    if (next != c->b->at->operand_count)
        return call_refuse(c, "takes %u operands, found %u", next, c->b->at->operand_count);
    return result_count == 1 ? results[0] : hlo_build_tuple(c->b, result_count, results);
}
