/* SPDX-License-Identifier: Apache-2.0 */
/* Repeated terms of a sum, which have fully correlated errors. The method is in
 * docs/numerics.md. */
#include <math.h>
#include <string.h>

#include "ir/error/rules.h"

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

static double *dense(const hlo_error_call *b, const grouped *g) {
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, &g->view);
    hlo_view_convert(b->call.env, &g->view, &out);
    return out.data;
}

/* ----------------------------------------------------------------------------------- same terms */

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
    columns c = {dense(b, &v), dense(b, &s), v.open, v.along};
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

/* -------------------------------------------------------------------------------------- factors */

hlo_view hlo_error_joined(const hlo_error_call *b, const int64_t *first, const hlo_view *factors,
                          const hlo_ints *batch, const hlo_ints *along) {
    grouped from, to;
    hlo_view out = hlo_view_scratch(b->call.scratch, HLO_TYPE_F64, factors);
    group(&from, factors, batch, along);
    group(&to, &out, batch, along);
    double *rows = dense(b, &from), *row = rows;
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
