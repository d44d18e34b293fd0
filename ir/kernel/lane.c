/* SPDX-License-Identifier: Apache-2.0 */
/* Converts between elements in memory and lanes. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "ir/float/clones.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

hlo_lane hlo_lane_of(hlo_type type) {
    if (type >= HLO_TYPE_COUNT) return HLO_LANE_NONE;
    switch ((hlo_type_class)hlo_types[type].class) {
    case HLO_CLASS_PRED:
    case HLO_CLASS_UNSIGNED: return HLO_LANE_U64;
    case HLO_CLASS_SIGNED: return HLO_LANE_S64;
    case HLO_CLASS_FLOAT: return type == HLO_TYPE_F64 ? HLO_LANE_F64 : HLO_LANE_F32;
    case HLO_CLASS_COMPLEX: return HLO_LANE_C128;
    case HLO_CLASS_NONE: break;
    }
    return HLO_LANE_NONE;
}

bool hlo_type_is_lane(hlo_type type) {
    return type == HLO_TYPE_F32 || type == HLO_TYPE_F64 || type == HLO_TYPE_S64 ||
           type == HLO_TYPE_U64 || type == HLO_TYPE_C128;
}

size_t hlo_lane_size(hlo_lane lane) {
    return lane == HLO_LANE_F32 ? 4 : lane == HLO_LANE_C128 ? 16 : 8;
}

/* Lists the cells that contain elements in memory, and the lanes that they are widened to.
 * WHOLE_CELLS has the types that fill their cell; PART_CELLS has the types that use the low bits of
 * their cell. */
#define WHOLE_CELLS(X)                                                                             \
    X(S8, int8_t, int64_t)                                                                         \
    X(S16, int16_t, int64_t)                                                                       \
    X(S32, int32_t, int64_t)                                                                       \
    X(S64, int64_t, int64_t)                                                                       \
    X(U8, uint8_t, uint64_t)                                                                       \
    X(U16, uint16_t, uint64_t)                                                                     \
    X(U32, uint32_t, uint64_t)                                                                     \
    X(U64, uint64_t, uint64_t)                                                                     \
    X(F32, float, float)                                                                           \
    X(F64, double, double)                                                                         \
    X(C64, float _Complex, double _Complex)                                                        \
    X(C128, double _Complex, double _Complex)
#define PART_CELLS(X)                                                                              \
    X(S1, int8_t, int64_t)                                                                         \
    X(S2, int8_t, int64_t)                                                                         \
    X(S4, int8_t, int64_t)                                                                         \
    X(U1, uint8_t, uint64_t)                                                                       \
    X(U2, uint8_t, uint64_t)                                                                       \
    X(U4, uint8_t, uint64_t)

static HLO_CLONED void load_lanes(hlo_type type, const void *in, int64_t step, int64_t count,
                                  void *out_lanes) {
    const char *at = in;
    switch (type) {
#define LOAD(id, cell, lane)                                                                       \
    case HLO_TYPE_##id:                                                                            \
        if (step == (int64_t)sizeof(cell)) {                                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                ((lane *)out_lanes)[i] = (lane)((const cell *)in)[i];                              \
        } else if (step == 0 && count > 0) {                                                       \
            const lane value = (lane) * (const cell *)in;                                          \
            for (int64_t i = 0; i < count; i++) ((lane *)out_lanes)[i] = value;                    \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++, at += step)                                        \
                ((lane *)out_lanes)[i] = (lane) * (const cell *)at;                                \
        }                                                                                          \
        break;
        LOAD(PRED, uint8_t, uint64_t)
        WHOLE_CELLS(LOAD)
        PART_CELLS(LOAD)
    default: hlo_float_decode_row(type, in, step, count, out_lanes); break;
    }
}

void hlo_lane_load(hlo_type type, const void *in, int64_t step, int64_t count, void *out_lanes) {
    load_lanes(type, in, step, count, out_lanes);
}

/* Returns the low bits of a lane, extended by the lane's signedness. */
static int64_t low_int64_t(int64_t value, int bits) {
    return (int64_t)((uint64_t)value << (64 - bits)) >> (64 - bits);
}

static uint64_t low_uint64_t(uint64_t value, int bits) {
    return value << (64 - bits) >> (64 - bits);
}

static HLO_CLONED void store_lanes(hlo_type type, const void *lanes, int64_t count, void *out,
                                   int64_t step) {
    char *at = out;
    int bits = hlo_types[type].bits;
    switch (type) {
#define STORE_AS(as, id, cell, lane)                                                               \
    case HLO_TYPE_##id:                                                                            \
        if (step == (int64_t)sizeof(cell)) {                                                       \
            for (int64_t i = 0; i < count; i++)                                                    \
                ((cell *)out)[i] = (cell)as(((const lane *)lanes)[i]);                             \
        } else {                                                                                   \
            for (int64_t i = 0; i < count; i++, at += step)                                        \
                *(cell *)at = (cell)as(((const lane *)lanes)[i]);                                  \
        }                                                                                          \
        break;
#define STORE(id, cell, lane) STORE_AS(, id, cell, lane)
#define STORE_LOW(id, cell, lane)                                                                  \
    case HLO_TYPE_##id:                                                                            \
        for (int64_t i = 0; i < count; i++, at += step)                                            \
            *(cell *)at = (cell)low_##lane(((const lane *)lanes)[i], bits);                        \
        break;
        STORE_AS(0 !=, PRED, uint8_t, uint64_t)
        WHOLE_CELLS(STORE)
        PART_CELLS(STORE_LOW)
    default: hlo_float_encode_row(type, lanes, count, out, step); break;
    }
}

void hlo_lane_store(hlo_type type, const void *lanes, int64_t count, void *out, int64_t step) {
    store_lanes(type, lanes, count, out, step);
}

static int64_t to_int64_t(double value) {
    return isnan(value)      ? 0
           : value >= 0x1p63 ? INT64_MAX
           : value < -0x1p63 ? INT64_MIN
                             : (int64_t)value;
}

static uint64_t to_uint64_t(double value) {
    return !(value > 0) ? 0 : value >= 0x1p64 ? UINT64_MAX : (uint64_t)value;
}

#define AS_IS(x) (x)
#define REAL(x) creal(x)
#define REAL_S64(x) to_int64_t(creal(x))
#define REAL_U64(x) to_uint64_t(creal(x))

static HLO_CLONED void cast_lanes(hlo_lane from, hlo_lane to, const void *in, int64_t count,
                                  void *out) {
    switch ((int)from * HLO_LANE_COUNT + (int)to) {
#define CAST(from, a, to, b, how)                                                                  \
    case HLO_LANE_##from *HLO_LANE_COUNT + HLO_LANE_##to:                                          \
        for (int64_t i = 0; i < count; i++) ((b *)out)[i] = (b)how(((const a *)in)[i]);            \
        break;
        CAST(F32, float, F64, double, AS_IS)
        CAST(F32, float, S64, int64_t, to_int64_t)
        CAST(F32, float, U64, uint64_t, to_uint64_t)
        CAST(F32, float, C128, double _Complex, AS_IS)
        CAST(F64, double, F32, float, AS_IS)
        CAST(F64, double, S64, int64_t, to_int64_t)
        CAST(F64, double, U64, uint64_t, to_uint64_t)
        CAST(F64, double, C128, double _Complex, AS_IS)
        CAST(S64, int64_t, F32, float, AS_IS)
        CAST(S64, int64_t, F64, double, AS_IS)
        CAST(S64, int64_t, U64, uint64_t, AS_IS)
        CAST(S64, int64_t, C128, double _Complex, (double))
        CAST(U64, uint64_t, F32, float, AS_IS)
        CAST(U64, uint64_t, F64, double, AS_IS)
        CAST(U64, uint64_t, S64, int64_t, AS_IS)
        CAST(U64, uint64_t, C128, double _Complex, (double))
        CAST(C128, double _Complex, F32, float, REAL)
        CAST(C128, double _Complex, F64, double, REAL)
        CAST(C128, double _Complex, S64, int64_t, REAL_S64)
        CAST(C128, double _Complex, U64, uint64_t, REAL_U64)
    default: memcpy(out, in, (size_t)count * hlo_lane_size(to)); break;
    }
}

void hlo_lane_cast(hlo_lane from, hlo_lane to, const void *in, int64_t count, void *out) {
    cast_lanes(from, to, in, count, out);
}

void hlo_lane_saturate(hlo_type type, void *lanes, int64_t count) {
    int bits = hlo_types[type].bits;
    if (bits == 64) return;
    if (hlo_lane_of(type) == HLO_LANE_S64) {
        int64_t limit = (INT64_C(1) << (bits - 1)) - 1, *v = lanes;
        for (int64_t i = 0; i < count; i++)
            v[i] = v[i] > limit ? limit : v[i] < -limit - 1 ? -limit - 1 : v[i];
    } else if (hlo_lane_of(type) == HLO_LANE_U64) {
        uint64_t limit = (UINT64_C(1) << bits) - 1, *v = lanes;
        for (int64_t i = 0; i < count; i++) v[i] = v[i] > limit ? limit : v[i];
    }
}

const void *hlo_lane_view(hlo_type type, const void *in, int64_t step, int64_t count,
                          hlo_chunk *buffer) {
    if (hlo_type_is_lane(type) && step == hlo_types[type].bytes) return in;
    hlo_lane_load(type, in, step, count, buffer);
    return buffer;
}

void hlo_lane_load_f64(hlo_type type, const void *in, int64_t step, int64_t count, double *out) {
    hlo_chunk buffer;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_lane_load(type, (const char *)in + done * step, step, n, &buffer);
        hlo_lane_cast(hlo_lane_of(type), HLO_LANE_F64, &buffer, n, out + done);
    }
}
