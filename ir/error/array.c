/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sigmas of data movement, sums, extremes, logical sums and fft, and those of any
 * operation by running its kernel on operands that are moved by their sigmas. Contains helpers for
 * whole arrays. The method is in docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/eval/apply.h"
#include "ir/float/float.h"

#define LAMBDA HLO_ERROR_LAMBDA

/* --------------------------------------------------------------------------------- whole arrays */

static const float zero_f32 = 0;
static const hlo_dims no_strides = {{0}};

static hlo_view sigma_or_zeros(const hlo_view *value, const hlo_view *sigma) {
    if (sigma->data) return *sigma;
    return (hlo_view){HLO_TYPE_F32, value->rank, value->dims, no_strides.v, (void *)&zero_f32};
}

static void extend_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    hlo_extent *e = arg;
    double x[HLO_CHUNK], s[HLO_CHUNK];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_lane_load_f64(e->type, data[0] + done * steps[0], steps[0], n, x);
        hlo_lane_load_f64(HLO_TYPE_F32, data[1] + done * steps[1], steps[1], n, s);
        for (int64_t i = 0; i < n; i++) {
            const double below = isnan(x[i]) ? -(double)INFINITY : x[i],
                         above = isnan(x[i]) ? (double)INFINITY : x[i];
            e->lowest = below < e->lowest ? below : e->lowest;
            e->highest = above > e->highest ? above : e->highest;
            e->sigma = s[i] > e->sigma ? s[i] : e->sigma;
        }
    }
}

/* Widens `e` to contain an array of real numbers. A NaN makes `e` unbounded. */
static void add_extent(hlo_extent *e, const hlo_view *value, const hlo_view *sigma) {
    hlo_view s = sigma_or_zeros(value, sigma);
    const hlo_view *views[] = {value, &s};
    e->type = value->type;
    hlo_views_run(NULL, 2, views, extend_row, e);
}

static const hlo_extent empty_extent = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};

hlo_extent hlo_view_extent(const hlo_view *view) {
    hlo_view exact = {.data = NULL};
    hlo_extent e = empty_extent;
    add_extent(&e, view, &exact);
    return e;
}

static void find_positive_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    int64_t positive = 0;
    if (steps[0] == sizeof(float))
        for (int64_t i = 0; i < count; i++) positive |= !(((const float *)(void *)data[0])[i] <= 0);
    else
        for (int64_t i = 0; i < count; i++)
            positive |= !(*(const float *)(void *)(data[0] + i * steps[0]) <= 0);
    *(bool *)arg |= positive;
}

bool hlo_error_is_exact(const hlo_view *sigma) {
    bool positive = false;
    if (!sigma->data) return true;
    hlo_views_run(NULL, 1, &sigma, find_positive_row, &positive);
    return !positive;
}

static bool all_exact(const hlo_error_call *b) {
    for (uint32_t o = 0; o < b->call.operand_count; o++)
        if (!hlo_error_is_exact(&b->operand_sigmas[o])) return false;
    return true;
}

void hlo_error_fill(const hlo_error_call *b, const hlo_view *sigma, double value) {
    float element = (float)value;
    hlo_view scalar = {HLO_TYPE_F32, 0, NULL, NULL, &element};
    hlo_view_copy(b->call.env, &scalar, sigma);
}

hlo_status hlo_error_fill_all(const hlo_error_call *b, double value) {
    for (uint32_t r = 0; r < b->call.result_count; r++)
        hlo_error_fill(b, &b->result_sigmas[r], value);
    return HLO_OK;
}

hlo_status hlo_error_exact(const hlo_error_call *b) {
    return hlo_error_fill_all(b, 0);
}

static void overflow_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    hlo_error_overflows *o = arg;
    double x[HLO_CHUNK];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        hlo_lane_load_f64(o->type, data[0] + done * steps[0], steps[0], n, x);
        for (int64_t i = 0; i < n; i++) {
            float sigma = *(const float *)(data[1] + (done + i) * steps[1]);
            o->anything |= isnan(sigma);
            o->some |= hlo_error_overflowed(x[i], (double)sigma);
        }
    }
}

hlo_error_overflows hlo_error_find_overflows(const hlo_view *value, const hlo_view *sigma) {
    hlo_error_overflows found = {.type = value->type};
    if (!sigma->data || !hlo_type_is_float(value->type)) return found;
    const hlo_view *views[] = {value, sigma};
    hlo_views_run(NULL, 2, views, overflow_row, &found);
    return found;
}

bool hlo_error_any_overflow(const hlo_error_call *b) {
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_error_overflows found =
            hlo_error_find_overflows(&b->call.operands[o], &b->operand_sigmas[o]);
        if (found.some || found.anything) return true;
    }
    return false;
}

/* Runs the kernel of the call with other operands and results. */
static hlo_status rerun(const hlo_error_call *b, const hlo_view *operands,
                        const hlo_view *results) {
    hlo_call call = b->call;
    call.operands = operands;
    call.results = results;
    return hlo_kernel_of(call.instr->op)->run(&call);
}

/* Returns a copy of the operand views in scratch. The caller modifies the copy for rerun(). */
static hlo_view *operands_copy(const hlo_error_call *b) {
    return hlo_arena_copy(b->call.scratch, b->call.operands,
                          b->call.operand_count * sizeof *b->call.operands);
}

/* -------------------------------------------------------------------------- moving whole arrays */

hlo_view hlo_error_as_f64(const hlo_error_call *b, const hlo_view *value) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, value);
    hlo_view_convert(b->call.env, value, &out);
    return out;
}

hlo_view hlo_error_sigma_as_f64(const hlo_error_call *b, const hlo_view *value,
                                const hlo_view *sigma) {
    const hlo_view from = sigma_or_zeros(value, sigma);
    return hlo_error_as_f64(b, &from);
}

hlo_view hlo_error_constant(const hlo_error_call *b, const hlo_view *like, double value) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, like);
    double *v = out.data;
    for (int64_t i = 0; i < hlo_view_count(&out); i++) v[i] = value;
    return out;
}

/* Copies `value`, converted to `type`, with each element moved by `sign` * lambda * sigma. An
 * element with infinite sigma becomes infinite, even if it is a NaN: another execution may have any
 * number there. */
static hlo_view moved_copy(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma,
                           double sign, hlo_type type) {
    hlo_view x = hlo_error_as_f64(b, value), s = hlo_error_sigma_as_f64(b, value, sigma);
    double *at = x.data, *by = s.data;
    int64_t count = hlo_view_count(value);
    for (int64_t i = 0; i < count; i++) {
        if (!(by[i] > 0)) continue;
        at[i] = value->type == HLO_TYPE_PRED ? (double)(sign > 0)
                : isinf(by[i])               ? sign * by[i]
                                             : at[i] + sign * LAMBDA * by[i];
    }
    if (type == HLO_TYPE_F64) return x;
    hlo_view out = hlo_view_scratch(b->call.scratch, type, value);
    hlo_view_convert(b->call.env, &x, &out);
    return out;
}

/* Adds (change / lambda)^2 to `variance`. The change is the larger of the distances of `a` and `c`
 * from `value`. All arrays are dense f64. */
static void add_change(const hlo_view *value, const hlo_view *a, const hlo_view *c,
                       double *variance) {
    int64_t count = hlo_view_count(value);
    const double *v = value->data, *x = a->data, *y = c->data;
    for (int64_t i = 0; i < count; i++) {
        double up = x[i] == v[i] ? 0 : fabs(x[i] - v[i]);
        double down = y[i] == v[i] ? 0 : fabs(y[i] - v[i]);
        double change = isnan(up) || isnan(down) ? (double)INFINITY : fmax(up, down);
        if (isnan(v[i]) && isnan(x[i]) && isnan(y[i])) change = 0;
        variance[i] += change / LAMBDA * (change / LAMBDA);
    }
}

void hlo_error_finish(const hlo_error_call *b, uint32_t result, const double *variance,
                      const double *unrounded, bool rounds) {
    const hlo_view *value = &b->call.results[result];
    hlo_view exact = hlo_error_as_f64(b, value);
    hlo_view sigma = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, value);
    double *s = sigma.data;
    const double *rounded = exact.data, *v = unrounded ? unrounded : rounded;
    int64_t count = hlo_view_count(value);
    for (int64_t i = 0; i < count; i++) s[i] = isnan(variance[i]) ? INFINITY : sqrt(variance[i]);
    if (hlo_type_is_float(value->type))
        for (int64_t done = 0; done < count; done += HLO_CHUNK)
            hlo_error_round_chunk(value->type, v + done, rounded + done, rounds, NULL, b->options,
                                  hlo_chunk_size(count - done), s + done);
    for (int64_t i = 0; i < count; i++)
        if (!isfinite(variance[i]) && (isinf(v[i]) || (rounds && isnan(v[i]))))
            s[i] = HLO_ERROR_ANYTHING;
    hlo_view_convert(b->call.env, &sigma, &b->result_sigmas[result]);
}

double *hlo_error_variance_new(const hlo_error_call *b, uint32_t result) {
    return hlo_error_constant(b, &b->call.results[result], 0).data;
}

enum { MAX_RESULTS = 32 };

/* Computes the results in f64 with the operands of `which` moved (operand_count: all operands). */
static hlo_status rerun_moved(const hlo_error_call *b, uint32_t which, double sign,
                              hlo_view *out_results) {
    hlo_view *operands = operands_copy(b), results[MAX_RESULTS];
    for (uint32_t o = 0; o < b->call.operand_count; o++)
        if (o == which && b->operand_sigmas[o].data)
            operands[o] =
                moved_copy(b, &operands[o], &b->operand_sigmas[o], sign, operands[o].type);
    for (uint32_t r = 0; r < b->call.result_count; r++)
        results[r] =
            hlo_view_scratch(b->call.scratch, b->call.results[r].type, &b->call.results[r]);
    hlo_status status = rerun(b, operands, results);
    for (uint32_t r = 0; r < b->call.result_count; r++)
        out_results[r] = hlo_error_as_f64(b, &results[r]);
    return status;
}

hlo_status hlo_error_moved(const hlo_error_call *b) {
    uint32_t count = b->call.result_count;
    if (count > MAX_RESULTS || hlo_error_is_complex(&b->call.results[0]))
        return hlo_error_fill_all(b, all_exact(b) ? 0 : (double)INFINITY);
    double *variance[MAX_RESULTS];
    for (uint32_t r = 0; r < count; r++) {
        variance[r] = hlo_error_variance_new(b, r);
        hlo_view value = hlo_error_as_f64(b, &b->call.results[r]);
        double own = hlo_type_is_float(b->call.results[r].type)
                         ? 4 * hlo_error_roundoff(b->call.results[r].type)
                         : 0;
        for (int64_t i = 0; i < hlo_view_count(&value); i++) {
            double v = own * ((const double *)value.data)[i];
            variance[r][i] = isfinite(v) ? v * v : 0;
        }
    }
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_view up[MAX_RESULTS], down[MAX_RESULTS];
        if (hlo_error_is_exact(&b->operand_sigmas[o])) continue;
        hlo_status status = rerun_moved(b, o, 1, up);
        if (status == HLO_OK) status = rerun_moved(b, o, -1, down);
        if (status != HLO_OK) return status;
        for (uint32_t r = 0; r < count; r++) {
            hlo_view value = hlo_error_as_f64(b, &b->call.results[r]);
            add_change(&value, &up[r], &down[r], variance[r]);
        }
    }
    for (uint32_t r = 0; r < count; r++) hlo_error_finish(b, r, variance[r], NULL, false);
    return HLO_OK;
}

/* ---------------------------------------------------------------------------- sums and extremes */

hlo_view hlo_error_squares(const hlo_error_call *b, const hlo_view *view, double instead) {
    hlo_view out = hlo_error_as_f64(b, view);
    double *v = out.data;
    int64_t count = hlo_view_count(&out);
    for (int64_t i = 0; i < count; i++) v[i] = isfinite(v[i]) ? v[i] * v[i] : instead;
    return out;
}

double hlo_error_accumulation(double u, double terms, double sum_of_squares, double sum) {
    if (!isfinite(sum) || terms <= 1) return 0;
    double subnormal =
        sum != 0 && fabs(sum) < 2 * HLO_ERROR_FLUSHED ? HLO_ERROR_FLUSHED / LAMBDA : 0;
    return u * u * (terms / 6 * sum_of_squares + terms / 9 * sum * sum) + subnormal * subnormal;
}

double hlo_error_narrow_sums(hlo_error_sums sums, double terms, double sum_of_squares, double sum) {
    enum { STEP = 32, INTERVAL = 128 };
    if (sums == HLO_ERROR_SUMS_F32 || !isfinite(sum) || !isfinite(sum_of_squares)) return 0;
    const double intervals = sums == HLO_ERROR_SUMS_FAST ? 1 : ceil(terms / INTERVAL);
    const double steps = ceil(terms / intervals / STEP);
    /* `largest` is an estimate, for one accumulator, of the largest magnitude of its terms and its
     * value. `unit` is the unit to which the accumulator is truncated. */
    const double largest =
        fmax(fabs(sum) / intervals, sqrt(sum_of_squares / fmin(intervals, terms)));
    const double unit = 0x1p-13 * largest;
    const double random = intervals * steps * (STEP + 1) / 3 * unit * unit;
    const double biased = intervals * steps * (STEP + 1) / 2 * 0x1p-13 * fabs(sum) / intervals;
    return random + biased * biased / 16;
}

double hlo_error_coherence(double sum_of_squares, double sum) {
    double flip = HLO_ERROR_FLIP / LAMBDA * sum, linear = flip * flip / sum_of_squares;
    return isfinite(linear) ? 1 + linear : 1;
}

/* ------------------------------------------------------------------------------- repeated terms */

/* An array as [batch, free, along]: each group of dimensions merged into one. */
typedef struct grouped {
    hlo_dims dims, strides;
    hlo_view view;
    int64_t batch, open, along;
} grouped;

static int64_t size_of(const hlo_view *view, const hlo_ints *list) {
    int64_t size = 1;
    for (uint32_t i = 0; i < list->count; i++) size *= view->dims[list->v[i]];
    return size;
}

static void group(grouped *g, const hlo_view *view, const hlo_ints *batch, const hlo_ints *along) {
    g->view = hlo_view_group(view, batch, along, &g->dims, &g->strides);
    g->batch = size_of(view, batch);
    g->along = size_of(view, along);
    int64_t each = g->batch * g->along;
    g->open = each ? hlo_view_count(view) / each : 0;
}

/* The columns of a matrix of values, and of a matrix of their variances. */
typedef struct columns {
    const double *values, *variances;
    int64_t rows, count;
} columns;

static uint64_t mixed(uint64_t hash, double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static bool same_column(const columns *c, int64_t a, int64_t b) {
    for (int64_t row = 0; row < c->rows; row++, a += c->count, b += c->count)
        if (!hlo_error_same(c->values[a], c->values[b]) || c->variances[a] != c->variances[b])
            return false;
    return true;
}

const int64_t *hlo_error_repeats(const hlo_error_call *b, const hlo_view *value,
                                 const hlo_view *variance, const hlo_ints *batch,
                                 const hlo_ints *along) {
    hlo_arena *scratch = b->call.scratch;
    grouped v, s;
    group(&v, value, batch, along);
    group(&s, variance, batch, along);
    if (!v.open || v.along < 2) return NULL;
    int64_t size = 4, *first = hlo_arena_array(scratch, (size_t)(v.batch * v.along), sizeof *first);
    while (size < 2 * v.along) size *= 2;
    int64_t *table = hlo_arena_array(scratch, (size_t)size, sizeof *table);
    uint64_t *hashes = hlo_arena_array(scratch, (size_t)v.along, sizeof *hashes);
    columns c = {hlo_error_as_f64(b, &v.view).data, hlo_error_as_f64(b, &s.view).data, v.open,
                 v.along};
    bool some = false;
    for (int64_t i = 0; i < v.batch; i++) {
        /* Hash columns. A column without errors has hash 0. */
        double most[HLO_CHUNK];
        for (int64_t from = 0; from < c.count; from += HLO_CHUNK) {
            int64_t n = hlo_chunk_size(c.count - from);
            memset(hashes + from, 0, (size_t)n * sizeof *hashes);
            memset(most, 0, sizeof most);
            for (int64_t row = 0; row < c.rows; row++)
                for (int64_t j = 0; j < n; j++) {
                    int64_t at = row * c.count + from + j;
                    uint64_t hash = mixed(hashes[from + j], c.values[at]);
                    hashes[from + j] = mixed(hash, c.variances[at]) | 1;
                    most[j] = fmax(most[j], c.variances[at]);
                }
            for (int64_t j = 0; j < n; j++)
                if (!(most[j] > 0)) hashes[from + j] = 0;
        }
        /* Find the first of each set of equal columns in a hash table, whose size is a power of two
         * above the number of columns. */
        int64_t *firsts = first + i * v.along;
        for (int64_t j = 0; j < size; j++) table[j] = -1;
        for (int64_t j = 0; j < c.count; j++) {
            firsts[j] = j;
            if (!hashes[j]) continue;
            int64_t slot = (int64_t)(hashes[j] >> 1) & (size - 1);
            while (table[slot] >= 0 &&
                   !(hashes[table[slot]] == hashes[j] && same_column(&c, table[slot], j)))
                slot = (slot + 1) & (size - 1);
            if (table[slot] < 0) table[slot] = j;
            firsts[j] = table[slot];
            some |= firsts[j] != j;
        }
        c.values += v.open * v.along;
        c.variances += v.open * v.along;
    }
    return some ? first : NULL;
}

hlo_view hlo_error_joined(const hlo_error_call *b, const int64_t *first, const hlo_view *factors,
                          const hlo_ints *batch, const hlo_ints *along) {
    grouped from, to;
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, factors);
    group(&from, factors, batch, along);
    group(&to, &out, batch, along);
    double *rows = hlo_error_as_f64(b, &from.view).data, *row = rows;
    double *squares = hlo_arena_array(b->call.scratch, (size_t)from.along, sizeof *squares);
    for (int64_t i = 0; i < from.batch * from.open; i++, row += from.along) {
        const int64_t *firsts = first + i / from.open * from.along;
        for (int64_t j = 0; j < from.along; j++) {
            double factor = isfinite(row[j]) ? row[j] : 0;
            squares[j] = factor * factor;
            row[j] = factor;
            if (firsts[j] == j) continue;
            row[firsts[j]] += factor;
            squares[firsts[j]] += factor * factor;
            row[j] = squares[j] = 0;
        }
        for (int64_t j = 0; j < from.along; j++) row[j] = fmax(squares[j], row[j] * row[j]);
    }
    hlo_dims strides;
    hlo_view joined = to.view;
    joined.type = HLO_TYPE_F64;
    joined.data = rows;
    hlo_view_dense(&joined, &strides);
    joined.strides = strides.v;
    hlo_view_copy(b->call.env, &joined, &to.view);
    return out;
}

/* ------------------------------------------------------------------------------------- movement */

static const float anything_f32 = (float)HLO_ERROR_ANYTHING;

/* Returns the sigma of an element that may be any element of an array. */
static double spread_of(const hlo_extent *e) {
    return e->highest > e->lowest ? (e->highest - e->lowest) / LAMBDA + e->sigma : e->sigma;
}

/* Returns the number of operands that have elements of the result; operands after these are
 * indices. */
static uint32_t elements(const hlo_instruction *instr) {
    if (hlo_op_is(instr->op, HLO_TAKES_PART)) return 1;
    return instr->op == HLO_OP_DYNAMIC_UPDATE_SLICE ? 2 : instr->operand_count;
}

hlo_status hlo_error_move(const hlo_error_call *b) {
    hlo_view *operands = operands_copy(b);
    uint32_t count = elements(b->call.instr);
    for (uint32_t o = 0; o < count; o++)
        operands[o] = sigma_or_zeros(&b->call.operands[o], &b->operand_sigmas[o]);
    /* If other executions apply the operand's scale elsewhere, the scale also applies to the
     * padding. */
    bool pads = b->call.instr->op == HLO_OP_PAD;
    if (pads && hlo_error_find_overflows(&b->call.operands[0], &b->operand_sigmas[0]).anything)
        operands[1].data = (void *)&anything_f32;
    return rerun(b, operands, b->result_sigmas);
}

hlo_status hlo_error_indexed(const hlo_error_call *b) {
    uint32_t count = elements(b->call.instr);
    bool certain = true; /* the indices of elements are exact */
    for (uint32_t o = count; certain && o < b->call.operand_count; o++)
        certain = hlo_error_is_exact(&b->operand_sigmas[o]);
    if (certain) return hlo_error_move(b);
    if (hlo_error_any_overflow(b)) return hlo_error_fill_all(b, HLO_ERROR_ANYTHING);
    if (hlo_error_is_complex(&b->call.results[0])) return hlo_error_fill_all(b, (double)INFINITY);
    hlo_extent e = empty_extent;
    for (uint32_t o = 0; o < count; o++)
        add_extent(&e, &b->call.operands[o], &b->operand_sigmas[o]);
    return hlo_error_fill_all(b, spread_of(&e));
}

/* Sorting one array moves no sorted element by more than the largest move of an element. Elements
 * of arrays sorted along with it may be anywhere. */
hlo_status hlo_error_sort(const hlo_error_call *b) {
    if (all_exact(b)) return hlo_error_fill_all(b, 0);
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_extent e = empty_extent;
        add_extent(&e, &b->call.operands[o], &b->operand_sigmas[o]);
        double sigma = b->call.operand_count == 1 ? e.sigma : spread_of(&e);
        hlo_error_fill(b, &b->result_sigmas[o], sigma);
    }
    return HLO_OK;
}

/* Bounds the first elements of a sorted array. Each index may be that of any element. */
hlo_status hlo_error_topk(const hlo_error_call *b) {
    if (all_exact(b)) return hlo_error_fill_all(b, 0);
    const hlo_view *in = b->call.operands;
    hlo_extent e = empty_extent;
    add_extent(&e, in, &b->operand_sigmas[0]);
    hlo_error_fill(b, &b->result_sigmas[0], e.sigma);
    hlo_error_fill(b, &b->result_sigmas[1], (double)in->dims[in->rank - 1]);
    return HLO_OK;
}

/* ------------------------------------------------------------------------- reduce, scatter, fft */

/* Returns the operands of a reduce in which the variances of repeated terms are joined, or NULL if
 * no term is repeated. `variances`: the operands with the variance of each term. */
static const hlo_view *joined_terms(const hlo_error_call *b, const hlo_view *variances) {
    static const hlo_ints no_batch = {0};
    const hlo_view *value = &b->call.operands[0];
    if (b->call.instr->op != HLO_OP_REDUCE || hlo_error_is_exact(&b->operand_sigmas[0]))
        return NULL;
    const hlo_ints *along = hlo_instr_ints(b->call.instr, HLO_ATTR_DIMENSIONS);
    const int64_t *first = hlo_error_repeats(b, value, variances, &no_batch, along);
    if (!first) return NULL;
    hlo_view each = hlo_error_constant(b, value, 1),
             factors = hlo_error_joined(b, first, &each, &no_batch, along);
    double *joined = factors.data;
    const double *variance = variances->data;
    for (int64_t i = 0; i < hlo_view_count(value); i++)
        joined[i] = joined[i] > 0 ? joined[i] * variance[i] : 0;
    hlo_view *operands =
        hlo_arena_copy(b->call.scratch, variances, b->call.operand_count * sizeof *variances);
    operands[0] = factors;
    return operands;
}

/* Bounds a kernel that adds elements. Its results on sigma^2, on value^2 and on ones determine the
 * variance of each sum. The kernel receives operand `indices` unchanged: the indices of
 * a scatter, or none if it is operand_count. */
static hlo_status bound_sum(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_view *s = operands_copy(b), *x = operands_copy(b), *n = operands_copy(b);
    bool scatter = call->instr->op == HLO_OP_SCATTER;
    for (uint32_t o = 0; o < call->operand_count; o++) {
        if (o == indices) continue;
        hlo_view sigma = sigma_or_zeros(&call->operands[o], &b->operand_sigmas[o]);
        bool start = scatter ? o < indices : o >= call->operand_count / 2;
        s[o] = hlo_error_squares(b, &sigma, (double)INFINITY);
        x[o] = hlo_error_squares(b, &call->operands[o], 0);
        n[o] = hlo_error_constant(b, &call->operands[o], !start || scatter);
    }
    hlo_view sums[4];
    const hlo_view *from[] = {s, x, n, joined_terms(b, s)};
    for (int i = 0; i < 4; i++) {
        if (!from[i]) break;
        sums[i] = hlo_view_scratch(call->scratch, HLO_TYPE_F64, &call->results[0]);
        hlo_status status = rerun(b, from[i], &sums[i]);
        if (status != HLO_OK) return status;
    }
    hlo_view value = hlo_error_as_f64(b, &call->results[0]);
    bool real = hlo_type_is_float(call->results[0].type);
    /* HLO's reducer adds in its own type, and XLA's CPU backend rounds after each step. A sum in
     * f32 that is rounded once is also legitimate. */
    double own = real ? ldexp(1, -hlo_float_precision(call->results[0].type)) : 0;
    double *variance = sums[0].data, u = fmax(own, hlo_error_roundoff(call->results[0].type));
    const double *squared = sums[1].data, *terms = sums[2].data, *v = value.data;
    const double *joined = from[3] ? sums[3].data : NULL;
    for (int64_t i = 0; real && i < hlo_view_count(&value); i++) {
        variance[i] *= hlo_error_coherence(squared[i], v[i]);
        if (joined) variance[i] = hlo_error_larger(variance[i], joined[i]);
        variance[i] += hlo_error_accumulation(u, terms[i], squared[i], v[i]);
    }
    hlo_error_finish(b, 0, variance, NULL, true);
    return HLO_OK;
}

/* Bounds a reduce or scatter of one array by a single operation. `indices` is as in bound_sum(). On
 * predicates, `and` is the minimum and `or` the maximum. */
static hlo_status bound_combination(const hlo_error_call *b, uint32_t indices) {
    const hlo_call *call = &b->call;
    hlo_op op = hlo_region_simple(hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY));
    bool pred = call->results[0].type == HLO_TYPE_PRED;
    if (call->result_count != 1 || hlo_error_is_complex(&call->results[0]))
        return hlo_error_moved(b);
    bool sum = op == HLO_OP_ADD && !pred;
    bool monotone = op == HLO_OP_MAXIMUM || op == HLO_OP_MINIMUM ||
                    (pred && (op == HLO_OP_AND || op == HLO_OP_OR));
    if (!hlo_type_is_float(call->results[0].type) && all_exact(b)) return hlo_error_fill_all(b, 0);
    if (monotone && all_exact(b)) return hlo_error_fill_all(b, 0);
    if (sum) return bound_sum(b, indices);
    if (monotone) {
        /* The kernel is monotone in every element. */
        hlo_view *up = operands_copy(b), *down = operands_copy(b);
        const hlo_view *result = &b->call.results[0];
        hlo_type type = result->type == HLO_TYPE_PRED ? HLO_TYPE_PRED : HLO_TYPE_F64;
        for (uint32_t o = 0; o < b->call.operand_count; o++) {
            if (o == indices) continue;
            up[o] = moved_copy(b, &b->call.operands[o], &b->operand_sigmas[o], 1, type);
            down[o] = moved_copy(b, &b->call.operands[o], &b->operand_sigmas[o], -1, type);
        }
        hlo_view high = hlo_view_scratch(b->call.scratch, type, result);
        hlo_view low = hlo_view_scratch(b->call.scratch, type, result);
        hlo_status status = rerun(b, up, &high);
        if (status == HLO_OK) status = rerun(b, down, &low);
        if (status != HLO_OK) return status;
        high = hlo_error_as_f64(b, &high);
        low = hlo_error_as_f64(b, &low);
        hlo_view value = hlo_error_as_f64(b, &b->call.results[0]);
        double *variance = hlo_error_variance_new(b, 0);
        add_change(&value, &high, &low, variance);
        hlo_error_finish(b, 0, variance, NULL, false);
        return HLO_OK;
    }
    return hlo_error_moved(b);
}

hlo_status hlo_error_reduce(const hlo_error_call *b) {
    return bound_combination(b, b->call.operand_count);
}

hlo_status hlo_error_scatter(const hlo_error_call *b) {
    uint32_t indices = b->call.operand_count / 2;
    if (!hlo_error_is_exact(&b->operand_sigmas[indices]))
        return hlo_error_fill_all(b, (double)INFINITY);
    hlo_op op = hlo_region_simple(hlo_instr_comp(b->call.instr, HLO_ATTR_TO_APPLY));
    if (op != HLO_OP_PARAMETER || b->call.result_count != 1) return bound_combination(b, indices);
    hlo_view *operands = operands_copy(b);
    operands[0] = sigma_or_zeros(&b->call.operands[0], &b->operand_sigmas[0]);
    operands[2] = sigma_or_zeros(&b->call.operands[2], &b->operand_sigmas[2]);
    return rerun(b, operands, b->result_sigmas);
}

hlo_status hlo_error_fft(const hlo_error_call *b) {
    const char *kind = hlo_instr_attr(b->call.instr, HLO_ATTR_FFT_TYPE)->u.str;
    const hlo_ints *length = hlo_instr_ints(b->call.instr, HLO_ATTR_FFT_LENGTH);
    const hlo_view *in = b->call.operands, *out = b->call.results;
    hlo_view x = hlo_view_scratch(b->call.scratch, HLO_TYPE_C128, in);
    hlo_view s = hlo_error_sigma_as_f64(b, in, b->operand_sigmas);
    hlo_view sigma = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, out);
    double stages = 0, size = 1;
    int64_t in_size = 1, out_size = 1;
    hlo_view_convert(b->call.env, in, &x);
    for (uint32_t i = 0; i < length->count; i++) {
        /* Unless n is a power of two, a fast transform of n numbers consists of three transforms of
         * up to 4n and the products between them (Bluestein). */
        const int64_t n = length->v[i];
        const double one = ceil(log2((double)n));
        stages += n > 1 && (n & (n - 1)) ? 3 * (one + 3) : one;
        size *= (double)length->v[i];
        in_size *= in->dims[in->rank - 1 - i];
        out_size *= out->dims[out->rank - 1 - i];
    }
    /* The operand of an IRFFT omits half of the numbers, because they are conjugates of the
     * others. */
    const double halves = strcmp(kind, "IRFFT") == 0 ? sqrt(2) : 1;
    const double scale = kind[0] == 'I' ? halves / size : 1;
    const double u = hlo_error_roundoff(out->type);
    const int64_t transforms = out_size ? hlo_view_count(out) / out_size : 0;
    const double *v = x.data, *own = s.data;
    double *result = sigma.data;
    for (int64_t t = 0; t < transforms; t++) {
        double squares = 0, errors = 0;
        for (int64_t i = 0; i < in_size; i++)
            squares += v[2 * i] * v[2 * i] + v[2 * i + 1] * v[2 * i + 1];
        for (int64_t i = 0; i < in_size; i++) errors += own[i] * own[i];
        const double variance = errors + 4.0 / 3 * u * u * stages * squares;
        for (int64_t i = 0; i < out_size; i++)
            result[i] = isfinite(squares) ? scale * sqrt(variance) : HLO_ERROR_ANYTHING;
        v += 2 * in_size;
        own += in_size;
        result += out_size;
    }
    hlo_view_convert(b->call.env, &sigma, b->result_sigmas);
    return HLO_OK;
}
