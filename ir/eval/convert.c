/* convert, bitcast-convert, iota. */
#include <string.h>

#include "ir/eval/kernel.h"
#include "ir/float/float.h"

typedef struct types {
    hlo_type from, to;
} types;

static void test_nonzero(hlo_lane lane, const void *in, int64_t count, uint64_t *out) {
    switch (lane) {
#define TEST(lane, T)                                                                              \
    case HLO_LANE_##lane:                                                                          \
        for (int64_t i = 0; i < count; i++) out[i] = ((const T *)in)[i] != 0;                      \
        break;
        TEST(F32, float)
        TEST(F64, double)
        TEST(S64, int64_t)
        TEST(U64, uint64_t)
        TEST(C128, double _Complex)
    case HLO_LANE_NONE: break;
    }
}

static void convert_chunk(types t, const void *in, int64_t step, int64_t count, void *out,
                          int64_t out_step) {
    hlo_chunk buffer, cast;
    hlo_lane from = hlo_lane_of(t.from), to = hlo_lane_of(t.to);
    const void *lanes = hlo_lane_view(t.from, in, step, count, &buffer);
    bool from_integer = from == HLO_LANE_S64 || from == HLO_LANE_U64;
    if (t.to == HLO_TYPE_PRED) {
        test_nonzero(from, lanes, count, cast.u64);
        lanes = &cast;
    } else if (from == HLO_LANE_F64 && to == HLO_LANE_F32) {
        for (int64_t i = 0; i < count; i++)
            hlo_number_store(t.to, (char *)out + i * out_step, ((const double *)lanes)[i]);
        return;
    } else if (from != to) {
        hlo_lane_cast(from, to, lanes, count, &cast);
        if (!from_integer) hlo_lane_saturate(t.to, &cast, count);
        lanes = &cast;
    }
    hlo_lane_store(t.to, lanes, count, out, out_step);
}

static void convert_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    for (int64_t done = 0; done < count; done += HLO_CHUNK)
        convert_chunk(*(const types *)arg, data[1] + done * steps[1], steps[1],
                      hlo_chunk_size(count - done), data[0] + done * steps[0], steps[0]);
}

void hlo_view_convert(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out) {
    if (in->type == out->type) {
        hlo_view_copy(env, in, out);
        return;
    }
    const hlo_view *views[] = {out, in};
    types t = {in->type, out->type};
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, out->rank, out->dims, 2, views);
    hlo_strided_loop_run_parallel(env, &loop, 0, convert_row, &t);
}

static hlo_status run_convert(hlo_call *call) {
    hlo_view_convert(call->env, &call->operands[0], &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_convert = {.run = run_convert, .error = HLO_ERROR_CONVERT};

/* Copies elements of equal widths. Otherwise the array with the narrower elements has one more
 * dimension, the last, which numbers the parts of a wider element, low bits first. */
static hlo_status run_bitcast_convert(hlo_call *call) {
    hlo_view in = call->operands[0], out = call->results[0];
    if (in.rank == out.rank) {
        hlo_view_copy(call->env, &in, &out);
        return HLO_OK;
    }
    hlo_view *narrow = in.rank > out.rank ? &in : &out;
    hlo_view *wide = narrow == &in ? &out : &in;
    if (hlo_types[narrow->type].bits < 8)
        return hlo_call_refuse(call, "bitcast-convert between packed elements does not run here");
    uint32_t last = narrow->rank - 1;
    hlo_dims strides;
    memcpy(&strides, wide->strides, wide->rank * sizeof strides.v[0]);
    int64_t ratio = hlo_types[wide->type].bytes / hlo_types[narrow->type].bytes;
    for (uint32_t d = 0; d < wide->rank; d++) strides.v[d] *= ratio;
    strides.v[last] = 1;
    *wide = (hlo_view){narrow->type, narrow->rank, narrow->dims, strides.v, wide->data};
    hlo_view_copy(call->env, &in, &out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_bitcast_convert = {.run = run_bitcast_convert, .error = HLO_ERROR_MOVED};

static hlo_status run_iota(hlo_call *call) {
    const hlo_view *out = &call->results[0];
    int64_t dim = hlo_instr_int(call->instr, HLO_ATTR_IOTA_DIMENSION, 0);
    if (out->rank == 0) return hlo_call_refuse(call, "an iota must have a dimension");
    hlo_dims strides = {0};
    strides.v[dim] = 1;
    int64_t *numbers = hlo_arena_array(call->scratch, (size_t)out->dims[dim], sizeof *numbers);
    for (int64_t i = 0; i < out->dims[dim]; i++) numbers[i] = i;
    hlo_view in = {HLO_TYPE_S64, out->rank, out->dims, strides.v, numbers};
    hlo_view_convert(call->env, &in, out);
    return HLO_OK;
}
const hlo_kernel hlo_eval_iota = {.run = run_iota, .error = HLO_ERROR_EXACT};
