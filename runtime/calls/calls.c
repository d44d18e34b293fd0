/* SPDX-License-Identifier: Apache-2.0 */
/* Implements calls.h, and builds the opcodes of oneDNN and DUCC. */
#include "runtime/calls/calls.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/module/known.h"
#include "runtime/calls/library_call.h"

enum { MAX_FUSED = 16, NAME_SIZE = 32 };

/* The backend_config of a call of oneDNN. */
typedef struct onednn_config {
    int64_t axis;
    double epsilon, alpha;
    bool transposed[2], packed;
    const char *permuted; /* operand or result whose dimensions are permuted, or NULL */
    uint32_t fused_count;
    char fused[MAX_FUSED][NAME_SIZE];
} onednn_config;

/* True if a list of dimensions, counted from 1, is absent or in order. */
static bool in_order(const json_t *layout) {
    const json_t *list = json_object_get(json_object_get(layout, "tensor"), "dimensions");
    for (size_t i = 0; i < json_array_size(list); i++)
        if (call_index(json_array_get(list, i)) != (int64_t)i + 1) return false;
    return true;
}

static double float_of_bits(const char **wrong, const json_t *object, const char *key) {
    const int32_t bits = (int32_t)call_integer(wrong, object, key);
    float value;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* Reads the member `key` of a backend_config. Absent members have the values of proto3: zeros. XLA
 * of 2024 and earlier may write no member for a softmax, whose axis is then the last.
 * Returns false after an error. */
static bool read_config(const library_call *call, const char *key, onednn_config *out) {
    static const char *const layouts[] = {"lhs", "rhs", "result"};
    const char *wrong = NULL;
    onednn_config c = {.axis = 0};
    json_t *whole = call_config(call, key, &wrong);
    const json_t *json = call_member(&wrong, whole, key, JSON_OBJECT);
    const json_t *fusions = call_member(&wrong, json, "fusions", JSON_OBJECT);
    const json_t *ops = fusions ? call_member(&wrong, fusions, "ops", JSON_ARRAY)
                                : call_member(&wrong, json, "fused_ops", JSON_ARRAY);
    const json_t *other = call_member(&wrong, json, "optimization_config", JSON_OBJECT);
    c.axis = json ? call_integer(&wrong, json, "softmax_axis") : -1;
    c.epsilon = float_of_bits(&wrong, json, "epsilon_typecast");
    c.alpha = float_of_bits(&wrong, fusions ? fusions : json, "alpha_typecast");
    c.transposed[0] = call_flag(&wrong, json, "transpose_a");
    c.transposed[1] = call_flag(&wrong, json, "transpose_b");
    c.packed = call_flag(&wrong, json, "weights_prepacked") ||
               call_flag(&wrong, other, "weights_prepacked");
    for (int i = 0; i < 3; i++)
        if (!in_order(call_member(&wrong, json, layouts[i], JSON_OBJECT))) c.permuted = layouts[i];
    for (size_t i = 0; i < json_array_size(ops) && i < MAX_FUSED; i++) {
        const char *name = json_string_value(json_array_get(ops, i));
        if (!name) wrong = "fused_ops";
        snprintf(c.fused[c.fused_count++], NAME_SIZE, "%s", name ? name : "");
    }
    if (json_array_size(ops) > MAX_FUSED)
        snprintf(c.fused[MAX_FUSED - 1], NAME_SIZE, "number %d", MAX_FUSED);
    json_decref(whole);
    *out = c;
    return call_config_fits(call, wrong);
}

static hlo_instruction *softmax(const library_call *c) {
    onednn_config config;
    if (!read_config(c, "onednn_softmax_config", &config)) return NULL;
    if (c->b->at->operand_count != 1 || !call_is_float_array(call_operand(c, 0)->shape) ||
        !call_operand(c, 0)->shape->rank)
        return call_refuse(c, "requires an array of floats with at "
                              "least one dimension");
    hlo_instruction *x = call_widen(c, call_operand(c, 0));
    const int64_t axis = config.axis + (config.axis < 0 ? x->shape->rank : 0);
    if (axis < 0 || axis >= x->shape->rank)
        return call_refuse(c,
                           "has the axis %lld of an array with %u "
                           "dimensions",
                           (long long)config.axis, x->shape->rank);
    x = call_binary(c, HLO_OP_SUBTRACT, x, call_reduce_along(c, HLO_OP_MAXIMUM, x, 1, &axis));
    x = hlo_build_unary(c->b, HLO_OP_EXP, x);
    return call_binary(c, HLO_OP_DIVIDE, x, call_reduce_along(c, HLO_OP_ADD, x, 1, &axis));
}

static hlo_instruction *layer_norm(const library_call *c) {
    onednn_config config;
    if (!read_config(c, "onednn_layer_norm_config", &config)) return NULL;
    return call_layer_norm(c, config.epsilon);
}

/* Builds x * (1 + inner) / 2. */
static hlo_instruction *gelu(const library_call *c, hlo_instruction *x, hlo_instruction *inner) {
    hlo_instruction *half = call_with(c, HLO_OP_MULTIPLY, call_with(c, HLO_OP_ADD, inner, 1), 0.5);
    return call_binary(c, HLO_OP_MULTIPLY, x, half);
}

/* Applies one fused operation. `*next` is the operand that the next operation reads. */
static hlo_instruction *fuse(const library_call *c, const onednn_config *config, const char *name,
                             hlo_instruction *x, uint32_t *next) {
    hlo_instruction *made = call_activation(c, name, x);
    if (made) return made;
    if (!strcmp(name, "LINEAR")) return call_with(c, HLO_OP_MULTIPLY, x, config->alpha);
    if (!strcmp(name, "GELU_ERF"))
        return gelu(c, x,
                    hlo_build_unary(c->b, HLO_OP_ERF, call_with(c, HLO_OP_MULTIPLY, x, M_SQRT1_2)));
    if (!strcmp(name, "GELU_TANH")) {
        hlo_instruction *square = call_binary(c, HLO_OP_MULTIPLY, x, x);
        hlo_instruction *inner =
            call_with(c, HLO_OP_ADD, call_with(c, HLO_OP_MULTIPLY, square, 0.044715), 1);
        inner = call_with(c, HLO_OP_MULTIPLY, call_binary(c, HLO_OP_MULTIPLY, x, inner),
                          sqrt(2 / M_PI));
        return gelu(c, x, hlo_build_unary(c->b, HLO_OP_TANH, inner));
    }
    if (!strcmp(name, "BIAS") || !strcmp(name, "BINARY_ADD")) {
        if (*next == c->b->at->operand_count) return call_refuse(c, "has no operand for %s", name);
        hlo_instruction *added = call_broadcast(c, call_operand(c, *next), x->shape);
        if (!added) return call_refuse(c, ": operand %u does not fit the product", *next);
        ++*next;
        return call_binary(c, HLO_OP_ADD, x, added);
    }
    return call_refuse(c,
                       "has the fused operation %s, which is not "
                       "supported",
                       name);
}

static hlo_instruction *matmul(const library_call *c) {
    onednn_config config;
    if (!read_config(c, "onednn_matmul_config", &config)) return NULL;
    const hlo_instruction *call = c->b->at;
    const bool *turned = config.transposed;
    if (config.permuted)
        return call_refuse(c,
                           "permutes the dimensions of its %s, which "
                           "is not supported: run the module before optimizations",
                           config.permuted);
    if (config.packed)
        return call_refuse(c, "has weights in a packed format, which "
                              "is not supported: run the module before optimizations");
    hlo_instruction *ab[2];
    const uint32_t rank = call->operand_count < 2 ? 0 : call_operand(c, 0)->shape->rank;
    bool fits = rank >= 2 && rank <= HLO_LARGEST_RANK;
    for (uint32_t i = 0; i < 2 && fits; i++) {
        ab[i] = call_operand(c, i);
        fits = call_is_float_array(ab[i]->shape) && ab[i]->shape->rank == rank;
    }
    for (uint32_t d = 0; d + 2 < rank && fits; d++)
        fits = ab[0]->shape->dims[d] == ab[1]->shape->dims[d];
    int64_t batch[HLO_LARGEST_RANK], dims[HLO_LARGEST_RANK], along[2];
    along[0] = rank - 1 - turned[0];
    along[1] = (int64_t)rank - 2 + turned[1];
    if (!fits || ab[0]->shape->dims[along[0]] != ab[1]->shape->dims[along[1]])
        return call_refuse(c, "requires two arrays of floats with equal "
                              "batch and contracting dimensions");
    for (uint32_t d = 0; d + 2 < rank; d++) {
        batch[d] = d;
        dims[d] = ab[0]->shape->dims[d];
    }
    dims[rank - 2] = ab[0]->shape->dims[rank - 2 + turned[0]];
    dims[rank - 1] = ab[1]->shape->dims[rank - 1 - turned[1]];
    hlo_dot_lists lists;
    for (int i = 0; i < 2; i++) {
        lists.batch[i] = hlo_ints_new(c->x->module, rank - 2, batch);
        lists.contracting[i] = hlo_ints_new(c->x->module, 1, &along[i]);
    }
    const hlo_shape *shape =
        hlo_shape_array(c->x->module, call_computed(ab[0]->shape->type), rank, dims);
    hlo_instruction *x = hlo_build_dot(c->b, shape, ab, &lists);
    uint32_t next = 2;
    for (uint32_t i = 0; x && i < config.fused_count; i++)
        x = fuse(c, &config, config.fused[i], x, &next);
    if (x && next != call->operand_count)
        return call_refuse(c, "has %u operands, expected %u", call->operand_count, next);
    return x;
}

/* --------------------------------------------------------------------------- Fourier transforms */

/* A descriptor: a table of FlatBuffers. Numbers are little-endian. */
typedef struct descriptor {
    unsigned char bytes[512];
    uint32_t size;
} descriptor;

/* Reads a number of `width` bytes. Returns 0 beyond the end. */
static uint64_t number_at(const descriptor *d, uint64_t at, uint32_t width) {
    uint64_t value = 0;
    if (at > d->size || width > d->size - at) return 0;
    for (uint32_t i = width; i-- > 0;) value = value << 8 | d->bytes[at + i];
    return value;
}

/* Returns the position of a field of the root table, or 0 if it has its default. */
static uint64_t field_at(const descriptor *d, uint32_t field) {
    const uint64_t table = number_at(d, 0, 4);
    const int64_t fields = (int64_t)table - (int32_t)number_at(d, table, 4);
    if (fields < 0 || 6 + 2 * field > number_at(d, (uint64_t)fields, 2)) return 0;
    const uint64_t offset = number_at(d, (uint64_t)fields + 4 + 2 * field, 2);
    return offset ? table + offset : 0;
}

static uint64_t read_field(const descriptor *d, uint32_t field, uint32_t width) {
    const uint64_t at = field_at(d, field);
    return at ? number_at(d, at, width) : 0;
}

enum { C2C, C2R, R2C };

/* A transform of the last `count` dimensions. Its result is the sums times `scale`. */
typedef struct fourier {
    uint64_t kind, count;
    bool forward;
    double scale;
} fourier;

/* Reads the descriptor and the factor. Returns false after an error. */
static bool read_transform(const library_call *c, bool dynamic, fourier *f) {
    const hlo_instruction *call = c->b->at;
    descriptor d = {.size = 0};
    double number;
    *f = (fourier){.scale = 1};
    bool fits =
        dynamic ? call->operand_count == 6 || call->operand_count == 7 : call->operand_count == 2;
    const hlo_shape *bytes = fits ? call_operand(c, 0)->shape : NULL;
    fits = fits && hlo_shape_is_array(bytes) && bytes->type == HLO_TYPE_U8 && bytes->rank == 1 &&
           bytes->dims[0] >= 8 && bytes->dims[0] <= (int64_t)sizeof d.bytes;
    for (int64_t i = 0; fits && i < bytes->dims[0]; i++) {
        fits = hlo_known_element(call_operand(c, 0), i, &number);
        if (fits) d.bytes[d.size++] = (unsigned char)number;
    }
    if (fits && dynamic) fits = hlo_known_number(call_operand(c, 5), &f->scale);
    if (!fits)
        return call_refuse(c, "requires a constant descriptor that is not elided, and a constant "
                              "factor");
    f->kind = read_field(&d, dynamic ? 2 : 1, 1);
    f->forward = read_field(&d, dynamic ? 4 : 6, 1) != 0;
    if (!dynamic) {
        const uint64_t bits = read_field(&d, 7, 8);
        memcpy(&f->scale, &bits, sizeof bits);
    }
    /* The axes must be the last dimensions, in order. */
    const uint64_t axes = field_at(&d, dynamic ? 3 : 5);
    const uint64_t list = axes ? axes + number_at(&d, axes, 4) : 0;
    const hlo_shape *from = call_operand(c, 1)->shape;
    f->count = list ? number_at(&d, list, 4) : 0;
    fits = hlo_shape_is_array(from) && !from->dynamic && f->kind <= R2C &&
           (f->kind == C2C || f->forward == (f->kind == R2C)) && f->count >= 1 && f->count <= 3 &&
           f->count <= from->rank;
    for (uint64_t i = 0; i < f->count && fits; i++)
        fits = number_at(&d, list + 4 + 4 * i, 4) == from->rank - f->count + i;
    if (!fits)
        return call_refuse(c, "has a descriptor that is invalid or does not transform the last "
                              "dimensions");
    return true;
}

static hlo_instruction *transform(const library_call *c) {
    const bool dynamic = c->variant;
    static const char *const kinds[][2] = {{"IFFT", "FFT"}, {"IRFFT"}, {NULL, "RFFT"}};
    fourier f;
    if (!read_transform(c, dynamic, &f)) return NULL;
    /* Check types and dimensions: those of a complex array are half as many as of a real one. */
    const hlo_shape *from = call_operand(c, 1)->shape, *to = c->want;
    const hlo_shape *whole = f.kind == R2C ? from : to, *part = f.kind == R2C ? to : from;
    const bool wide = whole->type == HLO_TYPE_F64 || whole->type == HLO_TYPE_C128;
    const hlo_type real = wide ? HLO_TYPE_F64 : HLO_TYPE_F32;
    const hlo_type complex = wide ? HLO_TYPE_C128 : HLO_TYPE_C64;
    bool fits = hlo_shape_is_array(to) && from->rank == to->rank && part->type == complex &&
                whole->type == (f.kind == C2C ? complex : real);
    for (uint32_t i = 0; fits && i < whole->rank; i++)
        fits = part->dims[i] ==
               (f.kind != C2C && i + 1 == whole->rank ? whole->dims[i] / 2 + 1 : whole->dims[i]);
    if (!fits) return call_refuse(c, ": the operand and the result do not match");
    const int64_t *lengths = whole->dims + whole->rank - f.count;
    hlo_instruction *operands[] = {call_operand(c, 1)};
    hlo_instruction *x = hlo_build_ints(c->b, HLO_OP_FFT, to, 1, operands, HLO_ATTR_FFT_LENGTH,
                                        (uint32_t)f.count, lengths);
    hlo_instr_set_str(x, HLO_ATTR_FFT_TYPE, kinds[f.kind][f.forward]);
    /* HLO's inverse transforms divide by the number of elements. */
    double factor = f.scale;
    for (uint64_t i = 0; i < f.count && !f.forward; i++) factor *= (double)lengths[i];
    if (fabs(factor - 1) <= 0x1p-40) return x;
    hlo_instruction *factors =
        hlo_build_filled(c->b, hlo_shape_retype(c->x->module, to, real), factor);
    return call_binary(c, HLO_OP_MULTIPLY, x, hlo_build_convert(c->b, factors, to->type));
}

/* ---------------------------------------------------------------------------------- the targets */

static const struct {
    const char *target;
    hlo_instruction *(*build)(const library_call *c);
    unsigned variant;
} targets[] = {
    {"__onednn$softmax", softmax, 0},
    {"__onednn$layernorm", layer_norm, 0},
    {"__onednn$matmul", matmul, 0},
    {"ducc_fft", transform, false},
    {"dynamic_ducc_fft", transform, true},
    {"__cudnn$convForward", call_convolution, CALL_FORWARD},
    {"__cudnn$convBackwardInput", call_convolution, CALL_OF_INPUT},
    {"__cudnn$convBackwardFilter", call_convolution, CALL_OF_KERNEL},
    {"__cudnn$convBiasActivationForward", call_convolution_fused, 0},
    {"__cudnn$convForwardGraph", call_convolution_graph, 0},
    {"__cudnn$norm", call_norm, 0},
    {"__cudnn$fmhaSoftmax", call_attention, 0},
    {"__cudnn$fmhaScaleBiasSoftmax", call_attention, CALL_BIASED},
    {"__cudnn$fmhaSoftmaxBackward", call_attention, CALL_BACKWARD},
    {"__cudnn$fmhaScaleBiasSoftmaxBackward", call_attention, CALL_BIASED | CALL_BACKWARD},
};
enum { TARGETS = sizeof targets / sizeof *targets };

static int find_target(const hlo_instruction *instr) {
    if (instr->op != HLO_OP_CUSTOM_CALL) return TARGETS;
    int i = 0;
    while (i < TARGETS && !hlo_is_custom_call(instr, targets[i].target)) i++;
    return i;
}

bool hlo_calls_any(const hlo_module *module) {
    if (!module->op_counts[HLO_OP_CUSTOM_CALL]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (find_target(instr) < TARGETS) return true;
    return false;
}

/* Replaces the call at x->build->at. Elements of its result that the call does not compute are
 * working memory, which becomes zeros. Returns false after an error. */
static bool expand_call(expansion *x, int which) {
    const hlo_shape *shape = x->build->at->shape;
    const bool many = shape->type == HLO_TYPE_TUPLE && shape->rank;
    library_call c = {.x = x,
                      .b = x->build,
                      .target = targets[which].target,
                      .variant = targets[which].variant,
                      .want = many ? shape->elements[0] : shape};
    hlo_instruction *made = hlo_shape_is_array(c.want) && !c.want->dynamic
                                ? targets[which].build(&c)
                                : call_refuse(&c, "has another shape than its result");
    if (!made) return false;
    const bool several = made->shape->type == HLO_TYPE_TUPLE;
    const uint32_t count = several ? made->shape->rank : 1, rank = many ? shape->rank : 1;
    hlo_instruction **results = hlo_arena_array(x->module->arena, rank, sizeof *results);
    bool fits = count <= rank;
    for (uint32_t i = 0; i < rank && fits; i++) {
        const hlo_shape *want = many ? shape->elements[i] : shape;
        hlo_instruction *value = several ? hlo_instr_operand(made, i < count ? i : 0) : made;
        fits = hlo_shape_is_array(want) && !want->dynamic &&
               (i >= count || hlo_shape_same_dims(want, value->shape));
        if (fits)
            results[i] = i < count ? hlo_build_convert(c.b, value, want->type)
                                   : hlo_build_filled(c.b, want, 0);
    }
    if (!fits) return call_refuse(&c, "has another shape than its result");
    /* Elements that are read alone do not make the others live, such as the working memory. */
    hlo_instruction *call = x->build->at;
    for (hlo_use *use = call->uses, *later; many && use; use = later) {
        later = use->next;
        hlo_instruction *user = use->user;
        if (user->op != HLO_OP_GET_TUPLE_ELEMENT) continue;
        x->build->at = user;
        expand_replace(x, HLO_OP_COPY, user->shape, 1,
                       &results[hlo_instr_int(user, HLO_ATTR_INDEX, 0)]);
    }
    x->build->at = call;
    expand_replace(x, many ? HLO_OP_TUPLE : HLO_OP_COPY, shape, rank, results);
    return true;
}

hlo_status hlo_calls_expand(hlo_module *module, const hlo_diag_sink *sink) {
    expansion x = {.module = module, .sink = sink};
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = instr->next) {
            const int which = find_target(instr);
            if (which == TARGETS) continue;
            x.build->at = instr;
            if (!expand_call(&x, which)) return HLO_INVALID_INPUT;
            instr = x.build->at;
        }
    return HLO_OK;
}
