/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of convert, stochastic-convert, bitcast-convert and iota. */
#include <string.h>

#include "ir/float/clones.h"
#include "ir/kernel/kernel.h"

typedef struct types {
    hlo_type from, to;
} types;

/* Rounds to f32. Inexact values are rounded to the neighbor with an odd code, so that rounding the
 * f32 to fewer bits has the same result as rounding the double. */
HLO_CLONED static void round_to_odd(const double *in, int64_t count, float *out) {
    for (int64_t i = 0; i < count; i++) {
        const float near = (float)in[i];
        const double size = fabs(in[i]), rounded = fabs((double)near);
        const bool up = rounded > size, inexact = up | (rounded < size);
        uint32_t code;
        memcpy(&code, &near, sizeof code);
        code = (code - up) | inexact;
        memcpy(&out[i], &code, sizeof code);
    }
}

void hlo_lane_convert(hlo_type from_type, hlo_type to_type, const void *lanes, int64_t count,
                      void *out, int64_t step) {
    hlo_chunk cast;
    hlo_lane from = hlo_lane_of(from_type), to = hlo_lane_of(to_type);
    bool from_integer = from == HLO_LANE_S64 || from == HLO_LANE_U64;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        const char *in = (const char *)lanes + done * (int64_t)hlo_lane_size(from);
        char *at = (char *)out + done * step;
        if (to_type == HLO_TYPE_PRED) {
            switch (from) {
#define TEST(from, T)                                                                              \
    case HLO_LANE_##from:                                                                          \
        for (int64_t i = 0; i < n; i++) cast.u64[i] = ((const T *)in)[i] != 0;                     \
        break;
                TEST(F32, float)
                TEST(F64, double)
                TEST(S64, int64_t)
                TEST(U64, uint64_t)
                TEST(C128, double _Complex)
            case HLO_LANE_NONE: break;
            }
            hlo_lane_store(to_type, &cast, n, at, step);
        } else if (from == HLO_LANE_F64 && to == HLO_LANE_F32 && to_type != HLO_TYPE_F32) {
            round_to_odd((const void *)in, n, cast.f32);
            hlo_lane_store(to_type, &cast, n, at, step);
        } else if (from != to) {
            hlo_lane_cast(from, to, in, n, &cast);
            if (!from_integer) hlo_lane_saturate(to_type, &cast, n);
            hlo_lane_store(to_type, &cast, n, at, step);
        } else {
            hlo_lane_store(to_type, in, n, at, step);
        }
    }
}

static void convert_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const types *t = arg;
    hlo_chunk buffer;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        const void *lanes = hlo_lane_view(t->from, data[1] + done * steps[1], steps[1], n, &buffer);
        hlo_lane_convert(t->from, t->to, lanes, n, data[0] + done * steps[0], steps[0]);
    }
}

void hlo_view_convert(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out) {
    if (in->type == out->type) {
        hlo_view_copy(env, in, out);
        return;
    }
    const hlo_view *views[] = {out, in};
    types t = {in->type, out->type};
    hlo_views_run(env, 2, views, convert_row, &t);
}

static hlo_status run_convert(hlo_call *call) {
    hlo_view_convert(call->env, &call->operands[0], &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_convert = {.run = run_convert, .error = HLO_ERROR_CONVERT};

/* Rounds a float to a neighboring integer: away from 0 if the random bits, as a fraction of 1, are
 * below the float's own fraction. Values beyond the type's range become its limits. */
static int64_t round_stochastically(hlo_type to, double x, uint64_t random, int random_bits) {
    double limit = ldexp(1, hlo_types[to].bits - 1), whole = floor(fabs(x));
    if (isnan(x)) return 0;
    if (x <= -limit) return (int64_t)-limit;
    if (x >= limit - 1) return (int64_t)((UINT64_C(1) << (hlo_types[to].bits - 1)) - 1);
    bool up = random < (uint64_t)ldexp(fabs(x) - whole, random_bits);
    int64_t result = (int64_t)whole + up;
    return x < 0 ? -result : result;
}

static void stochastic_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const hlo_instruction *instr = arg;
    hlo_type from = hlo_instr_operand(instr, 0)->shape->type;
    hlo_type random = hlo_instr_operand(instr, 1)->shape->type, to = instr->shape->type;
    double x[HLO_CHUNK];
    hlo_chunk bits, out;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_lane_load_f64(from, data[1] + done * steps[1], steps[1], n, x);
        hlo_lane_load(random, data[2] + done * steps[2], steps[2], n, &bits);
        for (int64_t i = 0; i < n; i++)
            out.s64[i] = round_stochastically(to, x[i], bits.u64[i], hlo_types[random].bits);
        hlo_lane_store(to, &out, n, data[0] + done * steps[0], steps[0]);
    }
}

static const char *refuse_stochastic(const hlo_instruction *instr) {
    return hlo_types[instr->shape->type].class == HLO_CLASS_SIGNED
               ? NULL
               : "stochastic rounding requires a signed integer result";
}

static hlo_status run_stochastic_convert(hlo_call *call) {
    const hlo_view *views[] = {&call->results[0], &call->operands[0], &call->operands[1]};
    hlo_views_run(call->env, 3, views, stochastic_row, (void *)call->instr);
    return HLO_OK;
}
const hlo_kernel hlo_eval_stochastic_convert = {
    .run = run_stochastic_convert, .error = HLO_ERROR_MOVED, .refuse = refuse_stochastic};

/* Loads or stores the bits of an element as an integer of the same number of bytes. */
static uint64_t load_bits(hlo_type type, const char *at) {
    uint64_t bits = 0;
    memcpy(&bits, at, (size_t)hlo_types[type].bytes);
    return bits & (UINT64_MAX >> (64 - hlo_types[type].bits));
}

static void store_bits(hlo_type type, uint64_t bits, char *at) {
    const int spare = 64 - hlo_types[type].bits;
    bits <<= spare;
    if (hlo_types[type].class == HLO_CLASS_SIGNED)
        bits = (uint64_t)((int64_t)bits >> spare);
    else
        bits >>= spare;
    memcpy(at, &bits, (size_t)hlo_types[type].bytes);
}

void hlo_view_retype(const hlo_view *view, hlo_type from) {
    const hlo_type to = view->type;
    hlo_dims index = {{0}};
    if (hlo_types[to].bits >= 8 || hlo_types[to].class == hlo_types[from].class ||
        from == HLO_TYPE_PRED || to == HLO_TYPE_PRED || !hlo_view_count(view))
        return;
    do {
        char *at = hlo_view_element(view, index.v);
        store_bits(to, load_bits(to, at), at);
    } while (hlo_dims_next(view->rank, view->dims, index.v));
}

static const char *refuse_bitcast_convert(const hlo_instruction *instr) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape, *to = instr->shape;
    const hlo_shape *narrow = from->rank > to->rank ? from : to, *wide = narrow == to ? from : to;
    if (from->rank == to->rank || hlo_types[narrow->type].bits >= 8) return NULL;
    return hlo_types[wide->type].bytes <= 8 && narrow->type != HLO_TYPE_PRED
               ? NULL
               : "elements of this type cannot be split into parts of fewer than 8 bits";
}

/* Copies elements of equal widths. Otherwise the array with the narrower elements has one more
 * dimension, the last, which indexes the parts of a wider element, low bits first. */
static hlo_status run_bitcast_convert(hlo_call *call) {
    hlo_view in = call->operands[0], out = call->results[0];
    if (in.rank == out.rank) {
        hlo_view_copy(call->env, &in, &out);
        hlo_view_retype(&out, in.type);
        return HLO_OK;
    }
    hlo_view *narrow = in.rank > out.rank ? &in : &out;
    hlo_view *wide = narrow == &in ? &out : &in;
    uint32_t last = narrow->rank - 1;
    if (hlo_types[narrow->type].bits < 8) {
        /* Split wide elements into elements of fewer than 8 bits, or join narrow elements into wide
         * elements. */
        const bool apart = narrow == &out;
        const int bits = hlo_types[narrow->type].bits;
        const int64_t parts = narrow->dims[last];
        hlo_dims index = {{0}};
        if (!hlo_view_count(narrow)) return HLO_OK;
        do {
            char *whole = hlo_view_element(wide, index.v);
            uint64_t all = apart ? load_bits(wide->type, whole) : 0;
            for (int64_t i = 0; i < parts; i++) {
                index.v[last] = i;
                char *part = hlo_view_element(narrow, index.v);
                if (apart)
                    store_bits(narrow->type, all >> (i * bits), part);
                else
                    all |= load_bits(narrow->type, part) << (i * bits);
            }
            if (!apart) store_bits(wide->type, all, whole);
        } while (hlo_dims_next(wide->rank, wide->dims, index.v));
        return HLO_OK;
    }
    hlo_dims strides;
    memcpy(&strides, wide->strides, wide->rank * sizeof strides.v[0]);
    int64_t ratio = hlo_types[wide->type].bytes / hlo_types[narrow->type].bytes;
    for (uint32_t d = 0; d < wide->rank; d++) strides.v[d] *= ratio;
    strides.v[last] = 1;
    *wide = (hlo_view){narrow->type, narrow->rank, narrow->dims, strides.v, wide->data};
    hlo_view_copy(call->env, &in, &out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_bitcast_convert = {
    .run = run_bitcast_convert, .error = HLO_ERROR_MOVED, .refuse = refuse_bitcast_convert};

static hlo_status run_iota(hlo_call *call) {
    const hlo_view *out = &call->results[0];
    int64_t dim = hlo_instr_int(call->instr, HLO_ATTR_IOTA_DIMENSION, 0);
    if (out->rank == 0) return hlo_call_refuse(call, "an iota must have at least one dimension");
    hlo_dims strides = {0};
    strides.v[dim] = 1;
    int64_t *numbers = hlo_arena_array(call->scratch, (size_t)out->dims[dim], sizeof *numbers);
    for (int64_t i = 0; i < out->dims[dim]; i++) numbers[i] = i;
    hlo_view in = {HLO_TYPE_S64, out->rank, out->dims, strides.v, numbers};
    hlo_view_convert(call->env, &in, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_iota = {.run = run_iota, .error = HLO_ERROR_EXACT};
