/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of reduce, reduce-window and select-and-scatter. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/float/clones.h"

enum { MAX_ARRAYS = HLO_LOOP_VIEWS / 2 };

static const char *refuse_many(const hlo_instruction *instr) {
    return instr->operand_count / 2 > MAX_ARRAYS ? "it has more than 8 arrays" : NULL;
}

/* --------------------------------------------------------------- reduce by one binary operation */

/* Returns the type of an accumulator. Sums of floats are accumulated in f64, so that the order and
 * number of terms hardly affect them. */
static hlo_type accumulator(hlo_type type) {
    switch (hlo_lane_of(type)) {
    case HLO_LANE_F32:
    case HLO_LANE_F64: return HLO_TYPE_F64;
    case HLO_LANE_S64: return HLO_TYPE_S64;
    case HLO_LANE_U64: return HLO_TYPE_U64;
    case HLO_LANE_C128: return HLO_TYPE_C128;
    case HLO_LANE_NONE: break;
    }
    return HLO_TYPE_INVALID;
}

typedef struct folding {
    hlo_type type;
    hlo_lane lane;
    hlo_op op;
} folding;

/* Computes acc[i] = acc[i] op x[i]. `acc` advances with i, or is a single accumulator. */
#define FOLD(T, expr)                                                                              \
    if (step == 0) {                                                                               \
        T a = *(T *)acc;                                                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T b = ((const T *)in)[i];                                                        \
            a = (expr);                                                                            \
        }                                                                                          \
        *(T *)acc = a;                                                                             \
    } else if (step == sizeof(T)) {                                                                \
        T *to = (T *)acc;                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const T a = to[i], b = ((const T *)in)[i];                                             \
            to[i] = (expr);                                                                        \
        }                                                                                          \
    } else {                                                                                       \
        for (int64_t i = 0; i < count; i++, acc += step) {                                         \
            const T a = *(T *)acc, b = ((const T *)in)[i];                                         \
            *(T *)acc = (expr);                                                                    \
        }                                                                                          \
    }                                                                                              \
    return

HLO_CLONED static void fold_f64(hlo_op op, int64_t count, const void *in, char *acc, int64_t step) {
    switch (op) {
    case HLO_OP_ADD: FOLD(double, a + b);
    case HLO_OP_MULTIPLY: FOLD(double, a *b);
    case HLO_OP_MAXIMUM: FOLD(double, HLO_LARGER(a, b));
    case HLO_OP_MINIMUM: FOLD(double, HLO_SMALLER(a, b));
    default: return;
    }
}

static void fold_s64(hlo_op op, int64_t count, const void *in, char *acc, int64_t step) {
    switch (op) {
    case HLO_OP_MAXIMUM: FOLD(int64_t, a > b ? a : b);
    case HLO_OP_MINIMUM: FOLD(int64_t, a < b ? a : b);
    default: return;
    }
}

static void fold_u64(hlo_op op, int64_t count, const void *in, char *acc, int64_t step) {
    switch (op) {
    case HLO_OP_ADD: FOLD(uint64_t, a + b);
    case HLO_OP_MULTIPLY: FOLD(uint64_t, a * b);
    case HLO_OP_MAXIMUM: FOLD(uint64_t, a > b ? a : b);
    case HLO_OP_MINIMUM: FOLD(uint64_t, a < b ? a : b);
    case HLO_OP_AND: FOLD(uint64_t, a & b);
    case HLO_OP_OR: FOLD(uint64_t, a | b);
    case HLO_OP_XOR: FOLD(uint64_t, a ^ b);
    default: return;
    }
}

static bool folds(hlo_op op, hlo_lane lane) {
    bool ordered = op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM;
    bool bits = op == HLO_OP_AND || op == HLO_OP_OR || op == HLO_OP_XOR;
    if (lane == HLO_LANE_C128) return false;
    return op == HLO_OP_ADD || op == HLO_OP_MULTIPLY || ordered ||
           (bits && (lane == HLO_LANE_S64 || lane == HLO_LANE_U64));
}

/* Returns the elements of a row as lanes of the accumulator type. */
static const void *load_row(const folding *f, const char *in, int64_t step, int64_t count,
                            hlo_chunk *buffer, hlo_chunk *wide) {
    const void *lanes = hlo_lane_view(f->type, in, step, count, buffer);
    if (f->lane != HLO_LANE_F32) return lanes;
    hlo_lane_cast(HLO_LANE_F32, HLO_LANE_F64, lanes, count, wide);
    return wide;
}

static void fold_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const folding *f = arg;
    hlo_chunk buffer, wide;
    bool ordered = f->op == HLO_OP_MAXIMUM || f->op == HLO_OP_MINIMUM;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        const void *in = load_row(f, data[0] + done * steps[0], steps[0], n, &buffer, &wide);
        char *acc = data[1] + done * steps[1];
        if (f->lane == HLO_LANE_F32 || f->lane == HLO_LANE_F64)
            fold_f64(f->op, n, in, acc, steps[1]);
        else if (f->lane == HLO_LANE_S64 && ordered)
            fold_s64(f->op, n, in, acc, steps[1]);
        else
            fold_u64(f->op, n, in, acc, steps[1]);
    }
}

enum { LANES = 16, ROWS = 4 };

/* Finds the largest or smallest of several f32, in any order. Returns false if an element is NaN,
 * because the result is then the first NaN. */
#define EXTREME(name, CHOOSE)                                                                      \
    HLO_CLONED static bool name(const float *in, int64_t count, float *out) {                      \
        float best[LANES];                                                                         \
        int nan[LANES] = {0}, any = 0;                                                             \
        int64_t i = 0;                                                                             \
        for (int j = 0; j < LANES; j++) best[j] = in[0];                                           \
        for (; i + LANES <= count; i += LANES)                                                     \
            for (int j = 0; j < LANES; j++) {                                                      \
                const float x = in[i + j];                                                         \
                best[j] = CHOOSE(best[j], x);                                                      \
                nan[j] |= x != x;                                                                  \
            }                                                                                      \
        for (int j = 0; i < count; i++, j++) {                                                     \
            best[j] = CHOOSE(best[j], in[i]);                                                      \
            nan[j] |= in[i] != in[i];                                                              \
        }                                                                                          \
        *out = best[0];                                                                            \
        for (int j = 0; j < LANES; j++) {                                                          \
            *out = CHOOSE(*out, best[j]);                                                          \
            any |= nan[j];                                                                         \
        }                                                                                          \
        return !any;                                                                               \
    }
EXTREME(find_largest, HLO_LARGER)
EXTREME(find_smallest, HLO_SMALLER)

/* Folds a row of narrow floats into one accumulator by maximum or minimum. */
static void fold_extreme(const folding *f, const char *in, int64_t step, int64_t count,
                         double *acc) {
    hlo_chunk buffer;
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        const char *at = in + done * step;
        const float *lanes = hlo_lane_view(f->type, at, step, n, &buffer);
        float found;
        bool larger = f->op == HLO_OP_MAXIMUM;
        if ((larger ? find_largest : find_smallest)(lanes, n, &found)) {
            const double x = (double)found;
            *acc = larger ? HLO_LARGER(*acc, x) : HLO_SMALLER(*acc, x);
        } else {
            char *data[] = {(char *)(uintptr_t)at, (char *)acc};
            fold_row((void *)(uintptr_t)f, n, data, (const int64_t[]){step, 0});
        }
    }
}

/* Computes acc[k] = acc[k] op in[k][i] for i < n, in ascending order. The rows are independent. */
#define FOLD_ROWS(expr)                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                \
        for (int k = 0; k < ROWS; k++) {                                                           \
            const double a = acc[k], b = in[k][i];                                                 \
            acc[k] = (expr);                                                                       \
        }

/* Rows of a reduce that folds each row into one f64 accumulator. */
typedef struct row_folding {
    folding f;
    int64_t length, step; /* length of a row; bytes between its elements */
} row_folding;

static void fold_rows(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row_folding *r = arg;
    bool sums = r->f.op == HLO_OP_ADD || r->f.op == HLO_OP_MULTIPLY;
    int64_t row = 0;
    char *at[] = {data[0], data[1]};
    for (; sums && row + ROWS <= count; row += ROWS) {
        hlo_chunk buffer, wide[ROWS];
        const double *in[ROWS];
        double acc[ROWS];
        for (int i = 0; i < ROWS; i++) memcpy(&acc[i], at[1] + i * steps[1], sizeof acc[i]);
        for (int64_t done = 0; done < r->length; done += HLO_CHUNK) {
            int64_t n = hlo_chunk_size(r->length - done);
            for (int i = 0; i < ROWS; i++)
                in[i] = load_row(&r->f, at[0] + i * steps[0] + done * r->step, r->step, n, &buffer,
                                 &wide[i]);
            if (r->f.op == HLO_OP_ADD) {
                FOLD_ROWS(a + b);
            } else {
                FOLD_ROWS(a * b);
            }
        }
        for (int i = 0; i < ROWS; i++) memcpy(at[1] + i * steps[1], &acc[i], sizeof acc[i]);
        for (int v = 0; v < 2; v++) at[v] += ROWS * steps[v];
    }
    for (; row < count; row++) {
        if (sums || r->f.lane != HLO_LANE_F32)
            fold_row((void *)(uintptr_t)&r->f, r->length, at, (const int64_t[]){r->step, 0});
        else
            fold_extreme(&r->f, at[0], r->step, r->length, (double *)(void *)at[1]);
        for (int v = 0; v < 2; v++) at[v] += steps[v];
    }
}

static void fold(hlo_call *call, hlo_op op, const hlo_view *in, const hlo_view *acc) {
    enum { PART = 1 << 20 }; /* length of the parts of long rows; a multiple of HLO_CHUNK */
    folding f = {in->type, hlo_lane_of(in->type), op};
    const hlo_view *views[] = {in, acc};
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, 2, views);
    if (loop.rank == 0 || loop.steps[1][loop.rank - 1] != 0) {
        hlo_strided_loop_run(call->env, &loop, 1, fold_row, &f);
        return;
    }
    const uint32_t last = loop.rank - 1;
    const int64_t length = loop.dims[last], step = loop.steps[0][last], count = loop.count / length;
    const bool floats = f.lane == HLO_LANE_F32 || f.lane == HLO_LANE_F64;
    if (floats) loop.rank--;
    for (int64_t done = 0; done < length && hlo_call_goes_on(call, loop.count); done += PART) {
        loop.dims[last] = length - done < PART ? length - done : PART;
        loop.count = count * loop.dims[last];
        row_folding rows = {f, loop.dims[last], step};
        hlo_strided_loop_run(call->env, &loop, 1, floats ? fold_rows : fold_row,
                             floats ? (void *)&rows : (void *)&f);
        loop.data[0] += PART * step;
    }
}

/* Computes strides of `result` for each dimension of the input; 0 for reduced dimensions. */
static void spread(const hlo_call *call, const hlo_view *in, const hlo_view *result,
                   hlo_dims *out_strides, bool *reduced) {
    const hlo_ints *dims = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS);
    memset(reduced, 0, in->rank * sizeof *reduced);
    for (uint32_t i = 0; i < dims->count; i++) reduced[dims->v[i]] = true;
    for (uint32_t d = 0, at = 0; d < in->rank; d++)
        out_strides->v[d] = reduced[d] ? 0 : result->strides[at++];
}

static hlo_status run_reduce(hlo_call *call) {
    hlo_computation *computation = hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY);
    uint32_t arrays = call->operand_count / 2;
    const hlo_view *in = call->operands;
    hlo_op simple = hlo_region_simple(computation);
    bool reduced[HLO_EVAL_MAX_RANK];
    hlo_dims spare;
    if (arrays == 1 && in[0].type == call->results[0].type &&
        folds(simple, hlo_lane_of(in[0].type))) {
        hlo_view acc = hlo_view_scratch(call->scratch, accumulator(in->type), call->results);
        hlo_view_convert(call->env, &call->operands[1], &acc);
        spread(call, in, &acc, &spare, reduced);
        const hlo_view wide = {acc.type, in->rank, in->dims, spare.v, acc.data};
        fold(call, simple, in, &wide);
        hlo_view_convert(call->env, &acc, call->results);
        return HLO_OK;
    }
    const hlo_region *region = hlo_region_new(call, computation);
    if (!region) return HLO_INVALID_INPUT;
    hlo_dims outer, index = {0}, strides[MAX_ARRAYS];
    hlo_view x[MAX_ARRAYS];
    spread(call, in, &call->results[0], &spare, reduced);
    bool empty = false;
    for (uint32_t i = 0; i < arrays; i++) {
        hlo_view_copy(call->env, &call->operands[arrays + i], &call->results[i]);
        uint32_t at = 0;
        for (uint32_t d = 0; d < in->rank; d++)
            if (!reduced[d]) strides[i].v[at++] = in[i].strides[d];
        x[i] = (hlo_view){in[i].type, at, call->results[i].dims, strides[i].v, NULL};
    }
    for (uint32_t d = 0; d < in->rank; d++) {
        outer.v[d] = reduced[d] ? in->dims[d] : 1;
        if (in->dims[d] == 0) empty = true;
    }
    if (empty) return HLO_OK;
    do {
        for (uint32_t i = 0; i < arrays; i++) x[i].data = hlo_view_element(&in[i], index.v);
        hlo_region_apply(region, arrays, call->results, x);
    } while (!call->stopped && hlo_dims_next(in->rank, outer.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_reduce = {
    .run = run_reduce, .error = HLO_ERROR_REDUCE, .refuse = refuse_many};

static hlo_status run_reduce_window(hlo_call *call) {
    hlo_computation *computation = hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY);
    uint32_t arrays = call->operand_count / 2, rank = call->operands[0].rank;
    const hlo_view *in = call->operands, *out = call->results;
    if (!hlo_view_count(out)) return HLO_OK;
    const hlo_op simple = hlo_region_simple(computation);
    const bool by_one =
        arrays == 1 && in[0].type == out[0].type && folds(simple, hlo_lane_of(in[0].type));
    const hlo_region *region = by_one ? NULL : hlo_region_new(call, computation);
    if (!region && !by_one) return HLO_INVALID_INPUT;
    hlo_view wide = {0};
    if (by_one) {
        wide = hlo_view_scratch(call->scratch, accumulator(in->type), out);
        out = &wide;
    }
    hlo_window windows[HLO_EVAL_MAX_RANK];
    hlo_window_positions positions[HLO_EVAL_MAX_RANK];
    hlo_dims sizes, index = {0};
    bool empty = false;
    for (uint32_t d = 0; d < rank; d++) {
        windows[d] = hlo_window_of(call->instr, d);
        positions[d] =
            hlo_window_positions_of(&windows[d], in->dims[d], out->dims[d], call->scratch);
        sizes.v[d] = positions[d].count;
        empty |= !positions[d].count;
    }
    for (uint32_t i = 0; i < arrays; i++)
        hlo_view_convert(call->env, &call->operands[arrays + i], &out[i]);
    if (!empty) do {
            hlo_dims in_start, in_steps, out_start, out_steps, dims;
            for (uint32_t d = 0; d < rank; d++) {
                hlo_window_reads s = hlo_window_reads_of(&windows[d], positions[d].v[index.v[d]],
                                                         in->dims[d], out->dims[d]);
                in_start.v[d] = s.in, in_steps.v[d] = s.in_step;
                out_start.v[d] = s.out, out_steps.v[d] = s.out_step;
                dims.v[d] = s.count;
            }
            hlo_view acc[MAX_ARRAYS], x[MAX_ARRAYS];
            hlo_dims acc_strides[MAX_ARRAYS], x_strides[MAX_ARRAYS];
            for (uint32_t i = 0; i < arrays; i++) {
                acc[i] = hlo_view_part(&out[i], out_start.v, dims.v, out_steps.v, &acc_strides[i]);
                x[i] = hlo_view_part(&in[i], in_start.v, dims.v, in_steps.v, &x_strides[i]);
            }
            if (by_one)
                fold(call, simple, &x[0], &acc[0]);
            else
                hlo_region_apply(region, arrays, acc, x);
        } while (!call->stopped && hlo_dims_next(rank, sizes.v, index.v));
    if (by_one) hlo_view_convert(call->env, &wide, &call->results[0]);
    return HLO_OK;
}
const hlo_kernel hlo_eval_reduce_window = {
    .run = run_reduce_window, .error = HLO_ERROR_REDUCE, .refuse = refuse_many};

/* --------------------------------------------------------------------------- select-and-scatter */

typedef struct selecting {
    const hlo_view *in;
    hlo_window windows[HLO_EVAL_MAX_RANK];
    hlo_window_positions positions[HLO_EVAL_MAX_RANK];
    hlo_dims sizes; /* number of entries of `positions` along each dimension */
    const hlo_region *select;
    hlo_call *call;
} selecting;

/* Finds the element at the positions `offset` of the window at `place`. Returns false for padding
 * and for the gaps between dilated elements. */
static bool element_at(const selecting *s, const int64_t *place, const int64_t *offset,
                       int64_t *index) {
    for (uint32_t d = 0; d < s->in->rank; d++) {
        const hlo_window *w = &s->windows[d];
        int64_t at = place[d] * w->stride + s->positions[d].v[offset[d]] * w->dilate - w->low;
        if (at < 0 || at % w->base || at / w->base >= s->in->dims[d]) return false;
        index[d] = at / w->base;
    }
    return true;
}

/* Finds the element of a window that the computation selects over all previous elements. Returns
 * false if the window contains no element. */
static bool select_element(const selecting *s, const int64_t *place, int64_t *out_index) {
    static const int64_t steps[2] = {0};
    hlo_dims offset = {0}, index;
    bool found = false;
    do {
        if (!element_at(s, place, offset.v, index.v)) continue;
        bool keeps = false;
        if (found) {
            char *in[] = {hlo_view_element(s->in, out_index), hlo_view_element(s->in, index.v)};
            hlo_region_run(s->select, 1, in, steps, (char *[]){(char *)&keeps}, steps);
        }
        found = true;
        for (uint32_t d = 0; d < s->in->rank && !keeps; d++) out_index[d] = index.v[d];
    } while (hlo_call_goes_on(s->call, HLO_CHUNK) &&
             hlo_dims_next(s->in->rank, s->sizes.v, offset.v));
    return found;
}

static hlo_status run_select_and_scatter(hlo_call *call) {
    static const int64_t steps[2] = {0};
    const hlo_view *in = &call->operands[0], *source = &call->operands[1], *out = &call->results[0];
    selecting s = {.in = in,
                   .call = call,
                   .select = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_SELECT))};
    const hlo_region *scatter = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_SCATTER));
    if (!s.select || !scatter) return HLO_INVALID_INPUT;
    bool empty = false;
    for (uint32_t d = 0; d < in->rank; d++) {
        s.windows[d] = hlo_window_of(call->instr, d);
        s.positions[d] =
            hlo_window_positions_of(&s.windows[d], in->dims[d], source->dims[d], call->scratch);
        s.sizes.v[d] = s.positions[d].count;
        empty |= !s.sizes.v[d];
    }
    hlo_view_copy(call->env, &call->operands[2], out);
    hlo_dims place = {0}, index;
    if (empty) return HLO_OK;
    do {
        if (!select_element(&s, place.v, index.v)) continue;
        char *to = hlo_view_element(out, index.v);
        char *pair[] = {hlo_view_element(source, place.v), to};
        hlo_region_run(scatter, 1, pair, steps, &to, steps);
    } while (!call->stopped && hlo_dims_next(in->rank, source->dims, place.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_select_and_scatter = {.run = run_select_and_scatter,
                                                .error = HLO_ERROR_MOVED};
