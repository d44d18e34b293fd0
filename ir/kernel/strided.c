/* SPDX-License-Identifier: Apache-2.0 */
/* Implements loops over several strided arrays, and views of views. */
#include <string.h>

#include "ir/float/clones.h"
#include "ir/kernel/kernel.h"

/* True if the loop over dimension `a` belongs outside of the loop over `b`. */
static bool outer(const hlo_strided_loop *w, uint32_t a, uint32_t b) {
    for (uint32_t v = 0; v < w->views; v++) {
        int64_t x = w->steps[v][a] < 0 ? -w->steps[v][a] : w->steps[v][a];
        int64_t y = w->steps[v][b] < 0 ? -w->steps[v][b] : w->steps[v][b];
        if (x != y) return x > y;
    }
    return false;
}

void hlo_strided_loop_init(hlo_strided_loop *w, uint32_t views, const hlo_view *const *view) {
    const uint32_t rank = view[0]->rank;
    const int64_t *dims = view[0]->dims;
    w->views = views;
    w->rank = 0;
    w->count = 1;
    uint32_t r = 0;
    for (uint32_t v = 0; v < views; v++) w->data[v] = view[v]->data;
    for (uint32_t d = 0; d < rank; d++)
        if (!dims[d]) w->count = 0;
    if (!w->count) return; /* strides of empty arrays may overflow */
    for (uint32_t d = 0; d < rank; d++) {
        w->count *= dims[d];
        if (dims[d] == 1) continue;
        w->dims[r] = dims[d];
        for (uint32_t v = 0; v < views; v++)
            w->steps[v][r] =
                view[v]->rank == 0 ? 0 : view[v]->strides[d] * hlo_types[view[v]->type].bytes;
        r++;
    }
    for (uint32_t i = 1; i < r; i++)
        for (uint32_t j = i; j > 0 && outer(w, j, j - 1); j--) {
            const uint32_t b = j - 1;
            int64_t dim = w->dims[j];
            w->dims[j] = w->dims[b];
            w->dims[b] = dim;
            for (uint32_t v = 0; v < w->views; v++) {
                int64_t step = w->steps[v][j];
                w->steps[v][j] = w->steps[v][b];
                w->steps[v][b] = step;
            }
        }
    uint32_t kept = 0;
    for (uint32_t d = 0; d < r; d++) {
        bool merges = kept > 0;
        for (uint32_t v = 0; merges && v < views; v++)
            merges = w->steps[v][kept - 1] == w->steps[v][d] * w->dims[d];
        if (merges)
            w->dims[kept - 1] *= w->dims[d];
        else
            w->dims[kept++] = w->dims[d];
        for (uint32_t v = 0; v < views; v++) w->steps[v][kept - 1] = w->steps[v][d];
    }
    w->rank = kept;
}

static void run_here(const hlo_strided_loop *w, hlo_strided_loop_body *body, void *arg) {
    if (w->count == 0) return;
    char *data[HLO_LOOP_VIEWS];
    int64_t steps[HLO_LOOP_VIEWS] = {0}, index[HLO_EVAL_MAX_RANK] = {0};
    memcpy(data, w->data, w->views * sizeof data[0]);
    if (w->rank == 0) {
        body(arg, 1, data, steps);
        return;
    }
    uint32_t inner = w->rank - 1;
    for (uint32_t v = 0; v < w->views; v++) steps[v] = w->steps[v][inner];
    for (;;) {
        body(arg, w->dims[inner], data, steps);
        uint32_t d = inner;
        for (; d > 0; d--) {
            for (uint32_t v = 0; v < w->views; v++) data[v] += w->steps[v][d - 1];
            if (++index[d - 1] < w->dims[d - 1]) break;
            for (uint32_t v = 0; v < w->views; v++) data[v] -= w->dims[d - 1] * w->steps[v][d - 1];
            index[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

enum { WORTH_SHARING = 1 << 17 }; /* minimum elements of a loop that uses several threads */

typedef struct share {
    const hlo_strided_loop *loop;
    uint32_t dim;
    hlo_strided_loop_body *body;
    void *arg;
} share;

static void run_share(void *arg, int64_t begin, int64_t end) {
    const share *s = arg;
    hlo_strided_loop part = *s->loop;
    part.dims[s->dim] = end - begin;
    part.count = part.count / s->loop->dims[s->dim] * (end - begin);
    for (uint32_t v = 0; v < part.views; v++) part.data[v] += begin * part.steps[v][s->dim];
    run_here(&part, s->body, s->arg);
}

void hlo_strided_loop_run(const hlo_eval_env *env, const hlo_strided_loop *w, uint32_t written,
                          hlo_strided_loop_body *body, void *arg) {
    uint32_t dim = w->rank;
    if (env->parallel && w->count >= WORTH_SHARING)
        for (uint32_t d = w->rank; d-- > 0;)
            if (w->steps[written][d] != 0 && (dim == w->rank || w->dims[d] >= 16)) dim = d;
    if (dim == w->rank) {
        run_here(w, body, arg);
        return;
    }
    share s = {w, dim, body, arg};
    env->parallel(env->user, w->dims[dim], run_share, &s);
}

void hlo_views_run(const hlo_eval_env *env, uint32_t views, const hlo_view *const *view,
                   hlo_strided_loop_body *body, void *arg) {
    static const hlo_eval_env alone = {0};
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, views, view);
    hlo_strided_loop_run(env ? env : &alone, &loop, 0, body, arg);
}

int64_t hlo_view_count(const hlo_view *view) {
    int64_t count = 1;
    for (uint32_t d = 0; d < view->rank; d++) count *= view->dims[d];
    return count;
}

size_t hlo_view_bytes(const hlo_view *view) {
    return (size_t)hlo_view_count(view) * hlo_types[view->type].bytes;
}

char *hlo_view_element(const hlo_view *view, const int64_t *index) {
    int64_t offset = 0;
    for (uint32_t d = 0; d < view->rank; d++) offset += index[d] * view->strides[d];
    return hlo_view_at(view, offset);
}

bool hlo_dims_next(uint32_t rank, const int64_t *dims, int64_t *index) {
    for (uint32_t d = rank; d-- > 0;) {
        if (++index[d] < dims[d]) return true;
        index[d] = 0;
    }
    return false;
}

void hlo_view_dense(const hlo_view *view, hlo_dims *out_strides) {
    int64_t stride = 1;
    for (uint32_t d = view->rank; d-- > 0;) {
        out_strides->v[d] = stride;
        stride *= view->dims[d];
    }
}

bool hlo_view_is_dense(const hlo_view *view) {
    hlo_dims dense;
    hlo_view_dense(view, &dense);
    for (uint32_t d = 0; d < view->rank; d++)
        if (view->dims[d] != 1 && view->strides[d] != dense.v[d]) return false;
    return true;
}

hlo_view hlo_view_scratch(hlo_arena *scratch, hlo_type type, const hlo_view *like) {
    hlo_dims *strides = hlo_arena_alloc(scratch, sizeof *strides);
    hlo_view_dense(like, strides);
    return (hlo_view){
        .type = type,
        .rank = like->rank,
        .dims = like->dims,
        .strides = strides->v,
        .data = hlo_arena_array(scratch, (size_t)hlo_view_count(like), hlo_types[type].bytes)};
}

hlo_view hlo_view_part(const hlo_view *view, const int64_t *start, const int64_t *dims,
                       const int64_t *steps, hlo_dims *out_strides) {
    for (uint32_t d = 0; d < view->rank; d++)
        out_strides->v[d] = view->strides[d] * (steps && dims[d] > 1 ? steps[d] : 1);
    hlo_view part = {view->type, view->rank, dims, out_strides->v, view->data};
    if (hlo_view_count(&part)) part.data = hlo_view_element(view, start);
    return part;
}

int64_t hlo_view_integer(const hlo_view *view, int64_t offset) {
    hlo_chunk lane;
    hlo_lane_load(view->type, hlo_view_at(view, offset), 0, 1, &lane);
    if (hlo_lane_of(view->type) == HLO_LANE_U64 && lane.u64[0] > INT64_MAX) return INT64_MAX;
    return lane.s64[0];
}

hlo_view hlo_view_permute(const hlo_view *in, const int64_t *order, hlo_dims *out_dims,
                          hlo_dims *out_strides) {
    for (uint32_t d = 0; d < in->rank; d++) {
        out_dims->v[d] = in->dims[order[d]];
        out_strides->v[d] = in->strides[order[d]];
    }
    return (hlo_view){in->type, in->rank, out_dims->v, out_strides->v, in->data};
}

hlo_view hlo_view_group(const hlo_view *in, const hlo_ints *first, const hlo_ints *last,
                        hlo_dims *out_dims, hlo_dims *out_strides) {
    hlo_dims order;
    uint32_t at = 0;
    for (uint32_t i = 0; i < first->count; i++) order.v[at++] = first->v[i];
    for (uint32_t d = 0; d < in->rank; d++)
        if (!hlo_ints_contain(first, d) && !hlo_ints_contain(last, d)) order.v[at++] = d;
    for (uint32_t i = 0; i < last->count; i++) order.v[at++] = last->v[i];
    return hlo_view_permute(in, order.v, out_dims, out_strides);
}

#define FILL(bits)                                                                                 \
    HLO_CLONED static void fill_##bits(const void *in, int64_t count, void *out) {                 \
        uint##bits##_t value;                                                                      \
        memcpy(&value, in, sizeof value);                                                          \
        for (int64_t i = 0; i < count; i++) ((uint##bits##_t *)out)[i] = value;                    \
    }
FILL(8)
FILL(16)
FILL(32)
FILL(64)

void hlo_copy_row(size_t size, const char *in, int64_t in_step, int64_t count, char *out,
                  int64_t out_step) {
    bool whole = out_step == (int64_t)size;
    if (whole && in_step == (int64_t)size) {
        memcpy(out, in, (size_t)count * size);
        return;
    }
    switch (size) {
#define COPY(bits)                                                                                 \
    case bits / 8:                                                                                 \
        if (whole && in_step == 0) {                                                               \
            fill_##bits(in, count, out);                                                           \
            break;                                                                                 \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++, out += out_step, in += in_step)                        \
            memcpy(out, in, bits / 8);                                                             \
        break;
        COPY(8)
        COPY(16)
        COPY(32)
        COPY(64)
    default:
        for (int64_t i = 0; i < count; i++, out += out_step, in += in_step) memcpy(out, in, size);
    }
}

static void copy_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    hlo_copy_row(*(const size_t *)arg, data[1], steps[1], count, data[0], steps[0]);
}

/* A copy whose rows are contiguous in the output, while the input is contiguous along dimension
 * `along`. Copying tiles keeps both arrays in the cache. */
typedef struct transposition {
    hlo_strided_loop outer; /* the loop over the other dimensions */
    size_t size;
    int64_t rows, columns; /* number of elements along `along` and along the innermost dimension */
    int64_t row_steps[2], column_steps[2]; /* steps of the output and of the input, in bytes */
} transposition;

enum { TILE = 32 };

typedef struct tile_rows {
    const transposition *t;
    int64_t begin, end;
} tile_rows;

static void copy_tile_rows(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const tile_rows *r = arg;
    const transposition *t = r->t;
    size_t size = t->size;
    for (int64_t o = 0; o < count; o++)
        for (int64_t j = 0; j < t->columns; j += TILE)
            for (int64_t i = r->begin; i < r->end; i++) {
                int64_t part = t->columns - j < TILE ? t->columns - j : TILE;
                char *at[2];
                for (int v = 0; v < 2; v++)
                    at[v] = data[v] + o * steps[v] + i * t->row_steps[v] + j * t->column_steps[v];
                copy_row(&size, part, at, t->column_steps);
            }
}

/* Copies blocks of TILE rows. */
static void copy_blocks(void *arg, int64_t begin, int64_t end) {
    const transposition *t = arg;
    for (int64_t block = begin; block < end; block++) {
        int64_t last = (block + 1) * TILE < t->rows ? (block + 1) * TILE : t->rows;
        tile_rows rows = {t, block * TILE, last};
        run_here(&t->outer, copy_tile_rows, &rows);
    }
}

/* Copies tile by tile. Returns false if rows are contiguous on both sides, or the input has no
 * contiguous dimension, or one of the two dimensions is shorter than a tile. */
static bool copy_transposed(const hlo_eval_env *env, const hlo_strided_loop *w, size_t size) {
    int64_t step = (int64_t)size;
    uint32_t inner = w->rank - 1, along = 0;
    if (w->rank < 2 || w->steps[1][inner] == step) return false;
    while (along < inner && w->steps[1][along] != step) along++;
    if (along == inner || w->dims[along] < TILE || w->dims[inner] < TILE) return false;
    transposition t = {
        .outer = *w, .size = size, .rows = w->dims[along], .columns = w->dims[inner]};
    t.outer.rank = 0;
    t.outer.count = w->count / (t.rows * t.columns);
    for (uint32_t d = 0; d < w->rank; d++)
        if (d != along && d != inner) t.outer.dims[t.outer.rank++] = w->dims[d];
    for (uint32_t v = 0; v < 2; v++) {
        t.row_steps[v] = w->steps[v][along];
        t.column_steps[v] = w->steps[v][inner];
        for (uint32_t d = 0, at = 0; d < w->rank; d++)
            if (d != along && d != inner) t.outer.steps[v][at++] = w->steps[v][d];
    }
    int64_t blocks = (t.rows + TILE - 1) / TILE;
    if (env->parallel && w->count >= WORTH_SHARING)
        env->parallel(env->user, blocks, copy_blocks, &t);
    else
        copy_blocks(&t, 0, blocks);
    return true;
}

void hlo_view_copy(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out) {
    const hlo_view *views[] = {out, in};
    size_t size = hlo_types[out->type].bytes;
    hlo_strided_loop loop;
    hlo_strided_loop_init(&loop, 2, views);
    if (loop.count > 0 && copy_transposed(env, &loop, size)) return;
    hlo_strided_loop_run(env, &loop, 0, copy_row, &size);
}

/* Views `view` as a row-major array with the dimensions of `like`. Returns false if the elements of
 * `view` are not dense. */
static bool redimension(const hlo_view *view, const hlo_view *like, hlo_dims *strides,
                        hlo_view *out) {
    if (!hlo_view_is_dense(view)) return false;
    hlo_view_dense(like, strides);
    *out = (hlo_view){view->type, like->rank, like->dims, strides->v, view->data};
    return true;
}

void hlo_view_reshape(const hlo_call *call, const hlo_view *in, const hlo_view *out) {
    hlo_dims strides;
    hlo_view as;
    if (redimension(in, out, &strides, &as)) {
        hlo_view_copy(call->env, &as, out);
    } else if (redimension(out, in, &strides, &as)) {
        hlo_view_copy(call->env, in, &as);
    } else {
        hlo_view dense = hlo_view_scratch(call->scratch, in->type, in);
        hlo_view_copy(call->env, in, &dense);
        redimension(&dense, out, &strides, &as);
        hlo_view_copy(call->env, &as, out);
    }
}

hlo_view hlo_view_of(hlo_arena *arena, const hlo_shape *shape, void *data) {
    int64_t *strides = hlo_arena_array(arena, shape->rank, sizeof *strides);
    int64_t stride = 1;
    for (uint32_t i = shape->rank; i-- > 0; stride *= shape->dims[i]) strides[i] = stride;
    return (hlo_view){.type = shape->type,
                      .rank = shape->rank,
                      .dims = shape->dims,
                      .strides = strides,
                      .data = data};
}

hlo_view hlo_view_in_layout(hlo_arena *arena, const hlo_shape *shape) {
    int64_t *strides = hlo_arena_array(arena, shape->rank, sizeof *strides);
    hlo_shape_strides(shape, strides);
    return (hlo_view){shape->type, shape->rank, shape->dims, strides, NULL};
}

uint32_t hlo_call_leaves(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

hlo_status hlo_call_refuse(hlo_call *call, const char *why) {
    call->why = why;
    return HLO_INVALID_INPUT;
}

bool hlo_call_goes_on(hlo_call *call, int64_t elements) {
    enum { WATCHED = 1 << 16 };
    call->work += elements;
    if (call->work < WATCHED) return !call->stopped;
    call->work = 0;
    const hlo_watch *watch = call->env->watch;
    if (watch && !watch->goes_on(watch->user)) call->stopped = true;
    return !call->stopped;
}

void hlo_call_init(hlo_call *call, const hlo_eval_env *env, const hlo_instruction *instr,
                   const hlo_view *operands, const hlo_view *results, hlo_arena *scratch) {
    static const hlo_eval_env alone = {0};
    *call = (hlo_call){.env = env ? env : &alone,
                       .instr = instr,
                       .operands = operands,
                       .results = results,
                       .result_count = hlo_call_leaves(instr->shape),
                       .scratch = scratch};
    for (uint32_t i = 0; i < instr->operand_count; i++)
        call->operand_count += hlo_call_leaves(hlo_instr_operand(instr, i)->shape);
}
