/* Opcodes that apply a computation to many elements: reduce, reduce-window, sort, topk. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/float/clones.h"
#include "ir/float/float.h"

enum { MAX_ARRAYS = HLO_LOOP_VIEWS / 2 };

/* --------------------------------------------------------------- reduce by one binary operation */

/* Returns the type of an accumulator: sums of floats are kept in f64, so that neither order nor
 * length affects them much. */
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

/* Computes acc[i] = acc[i] op x[i]; acc stays in place or advances. */
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

/* Returns the elements of a row as lanes of its accumulator. */
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

/* Finds the largest of some f32, or the smallest, whose order does not matter. False: one is NaN,
 * of which the first counts. */
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

/* Computes acc[r] = acc[r] op in[r][i] for each i, in order: the rows do not wait for each other.
 */
#define FOLD_ROWS(expr)                                                                            \
    for (int64_t i = 0; i < count; i++)                                                            \
        for (int r = 0; r < ROWS; r++) {                                                           \
            const double a = acc[r], b = in[r][i];                                                 \
            acc[r] = (expr);                                                                       \
        }                                                                                          \
    return

static void fold_rows_f64(hlo_op op, int64_t count, const double *const *in, double *acc) {
    if (op == HLO_OP_ADD) {
        FOLD_ROWS(a + b);
    } else {
        FOLD_ROWS(a * b);
    }
}

/* Rows of a reduce that folds each into one accumulator of f64. */
typedef struct row_folding {
    folding f;
    int64_t length, step; /* of a row; bytes between its elements */
} row_folding;

static void fold_some_rows(const row_folding *r, char *const *data, const int64_t *steps) {
    hlo_chunk buffer, wide[ROWS];
    const double *in[ROWS];
    double acc[ROWS];
    for (int i = 0; i < ROWS; i++) memcpy(&acc[i], data[1] + i * steps[1], sizeof acc[i]);
    for (int64_t done = 0; done < r->length; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(r->length - done);
        for (int i = 0; i < ROWS; i++)
            in[i] = load_row(&r->f, data[0] + i * steps[0] + done * r->step, r->step, n, &buffer,
                             &wide[i]);
        fold_rows_f64(r->f.op, n, in, acc);
    }
    for (int i = 0; i < ROWS; i++) memcpy(data[1] + i * steps[1], &acc[i], sizeof acc[i]);
}

static void fold_rows(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const row_folding *r = arg;
    bool sums = r->f.op == HLO_OP_ADD || r->f.op == HLO_OP_MULTIPLY;
    int64_t row = 0;
    char *at[] = {data[0], data[1]};
    for (; sums && row + ROWS <= count; row += ROWS) {
        fold_some_rows(r, at, steps);
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

static void fold(const hlo_eval_env *env, hlo_op op, const hlo_view *in, const hlo_view *acc) {
    folding f = {in->type, hlo_lane_of(in->type), op};
    const hlo_view *views[] = {in, acc};
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, in->rank, in->dims, 2, views);
    if (loop.rank > 0 && loop.steps[1][loop.rank - 1] == 0 &&
        (f.lane == HLO_LANE_F32 || f.lane == HLO_LANE_F64)) {
        row_folding rows = {f, loop.dims[loop.rank - 1], loop.steps[0][loop.rank - 1]};
        loop.rank--;
        hlo_strided_loop_run_parallel(env, &loop, 1, fold_rows, &rows);
    } else {
        hlo_strided_loop_run_parallel(env, &loop, 1, fold_row, &f);
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

static void reduce_by(hlo_call *call, hlo_op op) {
    const hlo_view *in = &call->operands[0], *out = &call->results[0];
    hlo_view acc = hlo_view_scratch(call->scratch, accumulator(in->type), out);
    hlo_view_convert(call->env, &call->operands[1], &acc);
    hlo_dims strides;
    bool reduced[HLO_EVAL_MAX_RANK];
    spread(call, in, &acc, &strides, reduced);
    hlo_view wide = {acc.type, in->rank, in->dims, strides.v, acc.data};
    fold(call->env, op, in, &wide);
    hlo_view_convert(call->env, &acc, out);
}

/* -------------------------------------------------------------------- reduce by any computation */

static hlo_status run_reduce(hlo_call *call) {
    hlo_computation *computation = hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY);
    uint32_t arrays = call->operand_count / 2;
    const hlo_view *in = call->operands;
    hlo_op simple = hlo_region_simple(computation);
    if (arrays == 1 && in[0].type == call->results[0].type &&
        folds(simple, hlo_lane_of(in[0].type))) {
        reduce_by(call, simple);
        return HLO_OK;
    }
    if (arrays > MAX_ARRAYS) return hlo_call_refuse(call, "a reduce has too many operands");
    const hlo_region *region = hlo_region_new(call, computation);
    if (!region) return HLO_INVALID_INPUT;
    bool reduced[HLO_EVAL_MAX_RANK];
    hlo_dims spare, outer, index = {0}, strides[MAX_ARRAYS];
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
    } while (hlo_dims_next(in->rank, outer.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_reduce = {.run = run_reduce, .error = HLO_ERROR_REDUCE};

/* -------------------------------------------------------------------------------- reduce-window */

static hlo_status run_reduce_window(hlo_call *call) {
    hlo_computation *computation = hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY);
    uint32_t arrays = call->operand_count / 2, rank = call->operands[0].rank;
    const hlo_view *in = call->operands, *out = call->results;
    if (arrays > MAX_ARRAYS) return hlo_call_refuse(call, "a reduce-window has too many operands");
    const hlo_region *region = hlo_region_new(call, computation);
    if (!region) return HLO_INVALID_INPUT;
    hlo_window windows[HLO_EVAL_MAX_RANK];
    hlo_dims sizes, index = {0};
    for (uint32_t d = 0; d < rank; d++) {
        windows[d] = hlo_window_of(call->instr, d);
        sizes.v[d] = windows[d].size;
    }
    for (uint32_t i = 0; i < arrays; i++)
        hlo_view_copy(call->env, &call->operands[arrays + i], &out[i]);
    do {
        hlo_dims in_start, in_steps, out_start, out_steps, dims;
        for (uint32_t d = 0; d < rank; d++) {
            hlo_window_reads s =
                hlo_window_reads_of(&windows[d], index.v[d], in->dims[d], out->dims[d]);
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
        hlo_region_apply(region, arrays, acc, x);
    } while (hlo_dims_next(rank, sizes.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_reduce_window = {.run = run_reduce_window, .error = HLO_ERROR_MOVED};

/* ----------------------------------------------------------------------------------------- sort */

enum { MAX_SORTED = 32 };

typedef struct sorting {
    const hlo_region *region;
    uint32_t arrays;
    char *row[MAX_SORTED];    /* start of each operand's row */
    int64_t step[MAX_SORTED]; /* bytes */
} sorting;

static bool before(const void *sorted, int64_t i, int64_t j) {
    const sorting *s = sorted;
    static const int64_t steps[2 * MAX_SORTED] = {0};
    char *in[2 * MAX_SORTED];
    bool result = false;
    char *out[] = {(char *)&result};
    for (uint32_t a = 0; a < s->arrays; a++) {
        in[2 * a] = s->row[a] + i * s->step[a];
        in[2 * a + 1] = s->row[a] + j * s->step[a];
    }
    hlo_region_run(s->region, 1, in, steps, out, steps);
    return result;
}

typedef bool comes_before(const void *sorted, int64_t i, int64_t j);

/* Sorts bottom-up and stably. Returns the one of both arrays that holds the order. */
static int64_t *merge_sort(const void *s, comes_before *is_before, int64_t count, int64_t *order,
                           int64_t *spare) {
    for (int64_t i = 0; i < count; i++) order[i] = i;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t start = 0; start < count; start += 2 * width) {
            int64_t middle = start + width < count ? start + width : count;
            int64_t end = start + 2 * width < count ? start + 2 * width : count;
            int64_t i = start, j = middle;
            for (int64_t at = start; at < end; at++) {
                bool right = i == middle || (j < end && is_before(s, order[j], order[i]));
                spare[at] = right ? order[j++] : order[i++];
            }
        }
        int64_t *swap = order;
        order = spare;
        spare = swap;
    }
    return order;
}

static hlo_status run_sort(hlo_call *call) {
    if (call->operand_count > MAX_SORTED)
        return hlo_call_refuse(call, "a sort has too many operands");
    const hlo_view *in = call->operands, *out = call->results;
    int64_t dim = hlo_instr_ints(call->instr, HLO_ATTR_DIMENSIONS)->v[0];
    sorting s = {hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY)),
                 call->operand_count,
                 {0},
                 {0}};
    if (!s.region) return HLO_INVALID_INPUT;
    int64_t length = in->dims[dim];
    int64_t *order = hlo_arena_array(call->scratch, (size_t)length, sizeof *order);
    int64_t *spare = hlo_arena_array(call->scratch, (size_t)length, sizeof *spare);
    if (hlo_view_count(in) == 0) return HLO_OK;
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[dim] = 1;
    do {
        for (uint32_t a = 0; a < s.arrays; a++) {
            s.row[a] = hlo_view_element(&in[a], index.v);
            s.step[a] = in[a].strides[dim] * hlo_types[in[a].type].bytes;
        }
        const int64_t *sorted = merge_sort(&s, before, length, order, spare);
        for (uint32_t a = 0; a < s.arrays; a++) {
            const int64_t size = hlo_types[in[a].type].bytes;
            char *to = hlo_view_element(&out[a], index.v);
            for (int64_t i = 0; i < length; i++)
                memcpy(to + i * out[a].strides[dim] * size, s.row[a] + sorted[i] * s.step[a],
                       (size_t)size);
        }
    } while (hlo_dims_next(in->rank, rows.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_sort = {.run = run_sort, .error = HLO_ERROR_SORT};

/* ---------------------------------------------------------------------------------------- top k */

/* Maps a float to an integer in the total order: -NaN, the numbers, -0 before 0, NaN. */
static int64_t float_key(double value) {
    int64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits < 0 ? bits ^ INT64_MAX : bits;
}

/* Loads a row as integers in the order of its elements. */
static void load_keys(hlo_type type, const char *row, int64_t step, int64_t count, int64_t *keys) {
    hlo_lane lane = hlo_lane_of(type);
    hlo_chunk chunk;
    for (int64_t at = 0; at < count; at += HLO_CHUNK) {
        int64_t some = hlo_chunk_size(count - at);
        hlo_lane_load(type, row + at * step, step, some, &chunk);
        for (int64_t i = 0; i < some; i++)
            keys[at + i] = lane == HLO_LANE_F32   ? float_key((double)chunk.f32[i])
                           : lane == HLO_LANE_F64 ? float_key(chunk.f64[i])
                           : lane == HLO_LANE_U64 ? (int64_t)(chunk.u64[i] ^ UINT64_C(1) << 63)
                                                  : chunk.s64[i];
    }
}

static bool is_greater(const void *keys, int64_t i, int64_t j) {
    return ((const int64_t *)keys)[i] > ((const int64_t *)keys)[j];
}

static bool is_less(const void *keys, int64_t i, int64_t j) {
    return is_greater(keys, j, i);
}

/* Finds the largest elements along the last dimension, and their positions; equal ones keep their
 * order. */
static hlo_status run_topk(hlo_call *call) {
    const hlo_view *in = call->operands, *values = &call->results[0], *places = &call->results[1];
    hlo_lane lane = hlo_lane_of(in->type);
    if (lane == HLO_LANE_C128 || lane == HLO_LANE_NONE)
        return hlo_call_refuse(call, "complex values have no order");
    uint32_t last = in->rank - 1;
    int64_t length = in->dims[last], k = values->dims[last];
    int64_t size = hlo_types[in->type].bytes;
    comes_before *order_of =
        hlo_instr_int(call->instr, HLO_ATTR_LARGEST, true) ? is_greater : is_less;
    int64_t *keys = hlo_arena_array(call->scratch, (size_t)length, sizeof *keys);
    int64_t *order = hlo_arena_array(call->scratch, (size_t)length, sizeof *order);
    int64_t *spare = hlo_arena_array(call->scratch, (size_t)length, sizeof *spare);
    if (hlo_view_count(values) == 0) return HLO_OK;
    hlo_dims rows, index = {0};
    memcpy(rows.v, in->dims, in->rank * sizeof rows.v[0]);
    rows.v[last] = 1;
    do {
        const char *row = hlo_view_element(in, index.v);
        load_keys(in->type, row, in->strides[last] * size, length, keys);
        const int64_t *sorted = merge_sort(keys, order_of, length, order, spare);
        hlo_dims to = index;
        for (int64_t i = 0; i < k; i++) {
            to.v[last] = i;
            memcpy(hlo_view_element(values, to.v), row + sorted[i] * in->strides[last] * size,
                   (size_t)size);
            hlo_number_store(places->type, hlo_view_element(places, to.v), (double)sorted[i]);
        }
    } while (hlo_dims_next(in->rank, rows.v, index.v));
    return HLO_OK;
}
const hlo_kernel hlo_eval_topk = {.run = run_topk, .error = HLO_ERROR_TOPK};
