/* SPDX-License-Identifier: Apache-2.0 */
/* The sigmas of any operation from its kernel, run on moved operands; sigmas of movement. Helpers
 * for whole arrays. The method is in docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"
#include "ir/eval/apply.h"
#include "ir/float/float.h"

#define LAMBDA HLO_ERROR_LAMBDA

/* --------------------------------------------------------------------------------- whole arrays */

static const float zero_f32 = 0;
static const hlo_dims no_strides = {{0}};

hlo_view hlo_error_sigma_or_zeros(const hlo_view *value, const hlo_view *sigma) {
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

void hlo_extent_add(hlo_extent *e, const hlo_view *value, const hlo_view *sigma) {
    hlo_view s = hlo_error_sigma_or_zeros(value, sigma);
    const hlo_view *views[] = {value, &s};
    hlo_strided_loop loop;
    e->type = value->type;
    hlo_strided_loop_init(&loop, value->rank, value->dims, 2, views);
    hlo_strided_loop_run(&loop, extend_row, e);
}

const hlo_extent hlo_extent_empty = {.lowest = (double)INFINITY, .highest = -(double)INFINITY};

hlo_extent hlo_view_extent(const hlo_view *view) {
    hlo_view exact = {.data = NULL};
    hlo_extent e = hlo_extent_empty;
    hlo_extent_add(&e, view, &exact);
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
    hlo_strided_loop loop;
    bool positive = false;
    if (!sigma->data) return true;
    hlo_strided_loop_init(&loop, sigma->rank, sigma->dims, 1, &sigma);
    hlo_strided_loop_run(&loop, find_positive_row, &positive);
    return !positive;
}

bool hlo_error_all_exact(const hlo_error_call *b) {
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
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, value->rank, value->dims, 2, views);
    hlo_strided_loop_run(&loop, overflow_row, &found);
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

hlo_status hlo_error_rerun(const hlo_error_call *b, const hlo_view *operands,
                           const hlo_view *results) {
    hlo_call call = b->call;
    call.operands = operands;
    call.results = results;
    return hlo_kernel_of(call.instr->op)->run(&call);
}

hlo_view *hlo_error_operands_copy(const hlo_error_call *b) {
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
    const hlo_view from = hlo_error_sigma_or_zeros(value, sigma);
    return hlo_error_as_f64(b, &from);
}

hlo_view hlo_error_constant(const hlo_error_call *b, const hlo_view *like, double value) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, like);
    double *v = out.data;
    for (int64_t i = 0; i < hlo_view_count(&out); i++) v[i] = value;
    return out;
}

hlo_view hlo_error_moved_copy(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma,
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

void hlo_error_add_change(const hlo_view *value, const hlo_view *a, const hlo_view *c,
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
    hlo_view *operands = hlo_error_operands_copy(b), results[MAX_RESULTS];
    for (uint32_t o = 0; o < b->call.operand_count; o++)
        if (o == which && b->operand_sigmas[o].data)
            operands[o] = hlo_error_moved_copy(b, &operands[o], &b->operand_sigmas[o], sign,
                                               operands[o].type);
    for (uint32_t r = 0; r < b->call.result_count; r++)
        results[r] =
            hlo_view_scratch(b->call.scratch, b->call.results[r].type, &b->call.results[r]);
    hlo_status status = hlo_error_rerun(b, operands, results);
    for (uint32_t r = 0; r < b->call.result_count; r++)
        out_results[r] = hlo_error_as_f64(b, &results[r]);
    return status;
}

hlo_status hlo_error_moved(const hlo_error_call *b) {
    uint32_t count = b->call.result_count;
    if (count > MAX_RESULTS || hlo_error_is_complex(&b->call.results[0]))
        return hlo_error_fill_all(b, hlo_error_all_exact(b) ? 0 : (double)INFINITY);
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
            hlo_error_add_change(&value, &up[r], &down[r], variance[r]);
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
    /* A single accumulator: the largest of its terms and its value, and the position at which that
     * is cut. */
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
        /* Hash columns; 0 for a column without errors. */
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

/* Returns the number of operands of `op` with elements; the operands after them are indices. */
static uint32_t elements(const hlo_instr *instr) {
    if (hlo_op_is(instr->op, HLO_TAKES_PART)) return 1;
    return instr->op == HLO_OP_DYNAMIC_UPDATE_SLICE ? 2 : instr->operand_count;
}

hlo_status hlo_error_move(const hlo_error_call *b) {
    hlo_view *operands = hlo_error_operands_copy(b);
    uint32_t count = elements(b->call.instr);
    for (uint32_t o = 0; o < count; o++)
        operands[o] = hlo_error_sigma_or_zeros(&b->call.operands[o], &b->operand_sigmas[o]);
    /* Padding is scaled together with the operand. */
    bool pads = b->call.instr->op == HLO_OP_PAD;
    if (pads && hlo_error_find_overflows(&b->call.operands[0], &b->operand_sigmas[0]).anything)
        operands[1].data = (void *)&anything_f32;
    return hlo_error_rerun(b, operands, b->result_sigmas);
}

hlo_status hlo_error_indexed(const hlo_error_call *b) {
    uint32_t count = elements(b->call.instr);
    bool certain = true; /* the positions */
    for (uint32_t o = count; certain && o < b->call.operand_count; o++)
        certain = hlo_error_is_exact(&b->operand_sigmas[o]);
    if (certain) return hlo_error_move(b);
    if (hlo_error_any_overflow(b)) return hlo_error_fill_all(b, HLO_ERROR_ANYTHING);
    if (hlo_error_is_complex(&b->call.results[0])) return hlo_error_fill_all(b, (double)INFINITY);
    hlo_extent e = hlo_extent_empty;
    for (uint32_t o = 0; o < count; o++)
        hlo_extent_add(&e, &b->call.operands[o], &b->operand_sigmas[o]);
    return hlo_error_fill_all(b, spread_of(&e));
}

/* Sorting one array moves no sorted element by more than the largest move of an element. Elements
 * of arrays sorted along with it may be anywhere. */
hlo_status hlo_error_sort(const hlo_error_call *b) {
    if (hlo_error_all_exact(b)) return hlo_error_fill_all(b, 0);
    for (uint32_t o = 0; o < b->call.operand_count; o++) {
        hlo_extent e = hlo_extent_empty;
        hlo_extent_add(&e, &b->call.operands[o], &b->operand_sigmas[o]);
        double sigma = b->call.operand_count == 1 ? e.sigma : spread_of(&e);
        hlo_error_fill(b, &b->result_sigmas[o], sigma);
    }
    return HLO_OK;
}

/* Bounds the first elements of a sorted array; their indices are unbounded. */
hlo_status hlo_error_topk(const hlo_error_call *b) {
    if (hlo_error_all_exact(b)) return hlo_error_fill_all(b, 0);
    const hlo_view *in = b->call.operands;
    hlo_extent e = hlo_extent_empty;
    hlo_extent_add(&e, in, &b->operand_sigmas[0]);
    hlo_error_fill(b, &b->result_sigmas[0], e.sigma);
    hlo_error_fill(b, &b->result_sigmas[1], (double)in->dims[in->rank - 1]);
    return HLO_OK;
}
