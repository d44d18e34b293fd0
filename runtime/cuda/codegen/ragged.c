/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for ragged-dots. A block computes a tile of the result, and reads from the group sizes
 * where groups begin and end. The block sums only the groups of its rows, or only the terms of its
 * group. The grid depends only on shapes, so that a graph can contain the launch. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "ir/module/ragged.h"
#include "runtime/cuda/codegen/emit.h"
#include "runtime/cuda/driver/library.h"

/* SIDE: a block has SIDE * SIDE threads. DEPTH: terms in shared memory at once. */
enum { SIDE = 16, DEPTH = 16 };
/* Dimensions of an operand that are merged to one. */
typedef struct ragged_dims {
    uint32_t count, order[HLO_EVAL_MAX_RANK]; /* from the fastest to the slowest */
    int64_t size;
} ragged_dims;

/* One side of the tile: its rows, or its columns. */
typedef struct ragged_side {
    const hlo_instruction *operand;
    const hlo_ints *summed;
    int64_t to[HLO_EVAL_MAX_RANK], after; /* `to`: for each dimension of the operand, the dimension
                                           * of the result, or -1; `after`: the next dimension of
                                           * the result */
    ragged_dims open;                     /* dimensions that the tile divides */
    int each;                             /* number of rows or columns per thread */
    const char *base;                     /* the tile's first row or column */
    const char *shared; /* the operand's part in shared memory, [DEPTH][each * SIDE] */
    const char *at[HLO_EVAL_MAX_RANK];
} ragged_side;

typedef struct ragging {
    emit *e;
    const hlo_instruction *instr;
    hlo_ragged r;
    hlo_type type;
    const char *sum_type; /* type of sums; integers wrap */
    ragged_side side[2];
    ragged_dims summed; /* dimensions of the left operand that one loop iterates over */
    ragged_dims apart;  /* in mode CONTRACTING: the contracting dimensions that are not ragged */
    const char *sums;   /* sums of a thread, [rows][columns] */
    const char *result[HLO_EVAL_MAX_RANK];
    bool on_tensor_cores;
} ragging;

/* The part of the operands that is in shared memory at once: terms from `step` to `end`, and rows
 * in [first, last) of the left operand. Other elements of the tile are 0. */
typedef struct ragged_part {
    const char *step, *end, *first, *last;
} ragged_part;

/* Elements that a thread copies to shared memory. */
typedef struct ragged_place {
    const char *term, *row; /* term and row of the first of these elements in the tile */
    const char *k, *at;     /* term and row of the same element in the operand */
    const char *first, *last, *end;
    bool by_terms; /* the elements belong to one row; otherwise to one term */
} ragged_place;

/* On the tensor cores, a block computes a square of the result. Each warp computes 16 rows and 32
 * columns of the square, and each thread the sums [r][c] of its warp's part. */
enum { RAGGED_MMA_SIDE = 64, RAGGED_MMA_ROWS = 2, RAGGED_MMA_COLUMNS = 8 };
#define RAGGED_MMA_ROW "threadIdx.x / 64 * 16 + threadIdx.x % 32 / 4 + r * 8"
#define RAGGED_MMA_COLUMN "threadIdx.x / 32 % 2 * 32 + c / 2 * 8 + threadIdx.x % 4 * 2 + c % 2"

_Static_assert(SIDE *SIDE == CUDA_BLOCK, "a thread for each position in the square");

/* ----------------------------------------------------------------------------------- supporting */

const char *cuda_ragged_refusal(const hlo_instruction *instr) {
    hlo_ragged r;
    if (!hlo_ragged_read(instr, &r)) return "has no CUDA kernel";
    const hlo_type type = instr->shape->type;
    for (uint32_t i = 0; i < 3; i++) {
        const hlo_type of = hlo_instr_operand(instr, i)->shape->type;
        if (!cuda_types[of].cell) return "has no CUDA kernel for its element type";
        if (i == 2 ? !hlo_type_is_integer(of) : hlo_type_is_float(of) != hlo_type_is_float(type))
            return "has no CUDA kernel for this combination of operand types";
    }
    return cuda_types[type].cell && type != HLO_TYPE_PRED
               ? NULL
               : "has no CUDA kernel for its element type";
}

/* Merges the `chosen` dimensions, in memory order, starting with the fastest. */
static ragged_dims joined(const hlo_shape *shape, const bool *chosen) {
    ragged_dims d = {.size = 1};
    for (uint32_t i = 0, rank = shape->rank; i < rank; i++) {
        const uint32_t dim =
            shape->layout ? (uint32_t)shape->layout->minor_to_major[i] : rank - 1 - i;
        if (!chosen[dim]) continue;
        d.order[d.count++] = dim;
        d.size *= shape->dims[dim];
    }
    return d;
}

/* Sets the result's dimension for each dimension of an operand, and finds the operand's dimensions
 * that the tile divides. */
static void read_side(ragging *g, unsigned number) {
    const hlo_ragged *r = &g->r;
    ragged_side *s = &g->side[number];
    const hlo_dot_dims dot = hlo_dot_dims_of(g->instr);
    const hlo_ints *batch = number ? dot.rhs_batch : dot.lhs_batch;
    const int64_t first = r->mode == HLO_RAGGED_CONTRACTING;
    int64_t next = number ? g->side[0].after : first + batch->count;
    bool open[HLO_EVAL_MAX_RANK] = {0};
    s->operand = hlo_instr_operand(g->instr, number);
    s->summed = number ? dot.rhs_contracting : dot.lhs_contracting;
    for (uint32_t d = 0; d < s->operand->shape->rank; d++) {
        s->to[d] = -1;
        for (uint32_t i = 0; i < batch->count; i++)
            if (batch->v[i] == d) s->to[d] = first + i;
        const bool rows = r->mode == HLO_RAGGED_FREE;
        if (s->to[d] >= 0 || hlo_ints_contain(s->summed, d) || (number && rows && d == r->partner))
            continue;
        s->to[d] = next++;
        open[d] = number || !rows || d == r->dim;
    }
    s->after = next;
    s->open = joined(s->operand->shape, open);
    int64_t typical = s->open.size;
    if (!number && r->mode == HLO_RAGGED_FREE && r->groups) typical /= r->groups;
    for (s->each = 1; s->each < 4 && s->each * SIDE < typical;) s->each *= 2;
}

/* -------------------------------------------------------------------------------------- indices */

/* Splits a linear index over the dimensions `d` of an operand. */
static void split_index(ragging *g, const char *linear, const ragged_side *s, const ragged_dims *d,
                        const char **at) {
    emit_split(g->e, linear, s->operand->shape->dims, d->order, d->count, at);
}

/* Opens the loop in which threads copy a tile of `width` rows with `terms` terms each to shared
 * memory, `run` elements at once. Neighboring threads of a warp copy neighboring elements in
 * memory. */
static ragged_place open_tile(ragging *g, unsigned number, const ragged_part *part, int width,
                              int terms, int run) {
    emit *e = g->e;
    const ragged_side *s = &g->side[number];
    ragged_place p = {.end = part->end,
                      .first = number ? "0" : part->first,
                      .last = number ? hlo_arena_format(e->arena, "%lld", (long long)s->open.size)
                                     : part->last};
    int64_t strides[HLO_EVAL_MAX_RANK];
    hlo_shape_strides(s->operand->shape, strides);
    p.by_terms = !s->open.count || strides[s->open.order[0]] != 1;
    const char *t = emit_name(e, "i");
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int %s = threadIdx.x; %s < %d; %s += %d) {", t, t, width * terms / run, t,
              CUDA_BLOCK);
    const int runs = (p.by_terms ? terms : width) / run;
    const char *low = run == 1 ? emit_offset(e, "%s %% %d", t, runs)
                               : emit_offset(e, "%s %% %d * %d", t, runs, run),
               *high = emit_offset(e, "%s / %d", t, runs);
    p.term = p.by_terms ? low : high;
    p.row = p.by_terms ? high : low;
    p.k = emit_offset(e, "%s + %s", part->step, p.term);
    p.at = emit_offset(e, "%s + %s", s->base, p.row);
    return p;
}

/* Opens the condition that elements are in the part, and sets the index of the first one. */
static void open_inside(ragging *g, unsigned number, const ragged_place *p) {
    ragged_side *s = &g->side[number];
    emit_open(g->e, "if (%s < %s && %s >= %s && %s < %s) {", p->k, p->end, p->at, p->first, p->at,
              p->last);
    split_index(g, p->at, s, &s->open, s->at);
    split_index(g, p->k, &g->side[0], &g->summed, g->side[0].at);
    /* Set the right operand's indices of contracting dimensions to the left operand's. */
    for (uint32_t i = 0; i < g->side[0].summed->count; i++)
        g->side[1].at[g->side[1].summed->v[i]] = g->side[0].at[g->side[0].summed->v[i]];
}

static bool is_open(const ragged_side *s, uint32_t dim) {
    for (uint32_t i = 0; i < s->open.count; i++)
        if (s->open.order[i] == dim) return true;
    return false;
}

/* Computes the position of the block: the position of its tile, and the index of each dimension
 * that no tile divides. Returns the number of blocks. */
static int64_t find_place(ragging *g) {
    emit *e = g->e;
    const uint32_t rank = g->instr->shape->rank;
    int64_t dims[HLO_EVAL_MAX_RANK + 2], blocks = 1;
    uint32_t order[HLO_EVAL_MAX_RANK + 2];
    const char *at[HLO_EVAL_MAX_RANK + 2];
    bool divided[HLO_EVAL_MAX_RANK] = {0};
    for (uint32_t i = 0; i < 2; i++) {
        const ragged_side *s = &g->side[i];
        const int64_t width = (int64_t)s->each * SIDE;
        dims[!i] = (s->open.size + width - 1) / width;
        for (uint32_t d = 0; d < s->operand->shape->rank; d++)
            if (is_open(s, d)) divided[s->to[d]] = true;
    }
    for (uint32_t d = 0; d < rank; d++) dims[2 + d] = divided[d] ? 1 : g->instr->shape->dims[d];
    for (uint32_t i = 0; i < rank + 2; i++) {
        order[i] = i;
        blocks *= dims[i];
    }
    emit_split(e, "(int)blockIdx.x", dims, order, rank + 2, at);
    memcpy(g->result, at + 2, rank * sizeof *at);
    for (uint32_t i = 0; i < 2; i++) {
        ragged_side *s = &g->side[i];
        s->base = emit_offset(e, "%s * %d", at[!i], s->each * SIDE);
        for (uint32_t d = 0; d < s->operand->shape->rank; d++)
            if (s->to[d] >= 0 && !is_open(s, d)) s->at[d] = g->result[s->to[d]];
    }
    return blocks;
}

/* Opens a loop over groups. After the loop's first line, [start, end) is the range of the group. */
static void open_groups(ragging *g, const char *below, const char *which, const char *start,
                        const char *end) {
    emit *e = g->e;
    const hlo_instruction *sizes = hlo_instr_operand(g->instr, 2);
    const char *at[HLO_EVAL_MAX_RANK];
    emit_text(e, "%s %s = 0, %s = 0;", e->offset, start, end);
    emit_open(e, "for (%s %s = 0; %s < %s; %s++) {", e->offset, which, which, below, which);
    for (uint32_t i = 0; i < g->r.prefix_count; i++) at[i] = g->side[0].at[g->r.prefix[i]];
    at[sizes->shape->rank - 1] = which;
    const char *size = emit_pull(e, sizes, emit_index_in(e, sizes->shape, at), false);
    emit_text(e, "%s = %s;", start, end);
    emit_text(e, "%s = (%s)place(%s + place(%s, %lld), %lld);", end, e->offset, start, size,
              (long long)g->r.extent, (long long)g->r.extent);
}

/* ------------------------------------------------------------------------- sums on tensor cores */

/* Sums of a ragged-dot of FP8 values on the tensor cores (mma.sync, from sm_89 on). Tiles of both
 * operands are in shared memory with contiguous terms, as the instruction requires. On some
 * devices, the instruction's sums have fewer bits than f32, so they are added in f32 after each
 * tile. */
/* TERMS: terms in shared memory at once. PITCH: bytes from one row to the next in shared memory.
 * STEP: terms per instruction. RUN: bytes that a thread loads at once. */
enum { TERMS = 64, PITCH = TERMS + 16, STEP = 32, RUN = 16 };
enum { FIRST_SM = 89, FIRST_NVRTC = 1204 }; /* first versions that support the instruction */

static bool is_mma_type(hlo_type type) {
    return type == HLO_TYPE_F8E4M3FN || type == HLO_TYPE_F8E5M2;
}

/* Returns the operand's fastest dimension in memory if a thread can load RUN bytes along this
 * dimension at once. Such a run starts at a multiple of RUN and is entirely inside or outside the
 * group. Returns -1 if the operand must be loaded byte by byte. */
static int64_t run_dim(const ragging *g, unsigned number) {
    const ragged_side *s = &g->side[number];
    const hlo_shape *shape = s->operand->shape;
    const hlo_view *view = &g->e->job->operands[emit_leaf(g->e, s->operand)];
    int64_t fast = -1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        if (view->strides[d] == 1)
            fast = d;
        else if (view->strides[d] % RUN)
            return -1;
    }
    if (emit_is_member(g->e, s->operand) || fast < 0 || shape->dims[fast] % RUN) return -1;
    if (s->open.count && s->open.order[0] == fast)
        return number || g->r.mode != HLO_RAGGED_FREE ? fast : -1;
    const ragged_side *left = &g->side[0];
    const bool term = !number
                          ? g->summed.count && g->summed.order[0] == fast
                          : g->summed.count && left->summed->count == 1 && s->summed->v[0] == fast;
    return term && g->r.mode != HLO_RAGGED_CONTRACTING ? fast : -1;
}

/* Returns the arguments of one instruction that load a thread's registers: those of 16 rows
 * (operand 0) or of 8 columns (operand 1). */
static const char *registers(ragging *g, unsigned number, const char *row) {
    const char *text = "";
    for (int i = 0; i < (number ? 2 : 4); i++)
        text = hlo_arena_format(
            g->e->arena, "%s, ((const uint *)%s[%s + %d])[%d + k / 4 + lane %% 4]", text,
            g->side[number].shared, row, number ? 0 : i % 2 * 8, (number ? i : i / 2) * 4);
    return text;
}

/* Writes the code that adds the terms from `start` to `end` to the sums of rows in [first, last).
 * Sums of other rows do not change. */
static void mma_terms(ragging *g, const char *start, const char *end, const char *first,
                      const char *last) {
    emit *e = g->e;
    const char *step = emit_name(e, "i"), *sums = emit_name(e, "a");
    const ragged_part part = {step, end, first, last};
    emit_open(e, "for (%s %s = %s; %s < %s; %s += %d) {", e->offset, step, start, step, end, step,
              TERMS);
    emit_text(e, "__syncthreads();");
    for (unsigned i = 0; i < 2; i++) {
        /* Copy TERMS terms of an operand to shared memory. */
        const ragged_side *s = &g->side[i];
        const int run = run_dim(g, i) >= 0 ? RUN : 1;
        const ragged_place p = open_tile(g, i, &part, RAGGED_MMA_SIDE, TERMS, run);
        const char *value = emit_name(e, "w");
        emit_text(e, "pack<uchar, %d> %s = {};", run, value);
        open_inside(g, i, &p);
        const emit_index *index = emit_index_in(e, s->operand->shape, s->at);
        if (run == 1) {
            emit_text(e, "%s.v[0] = %s;", value, emit_pull(e, s->operand, index, true));
        } else {
            const uint32_t leaf = emit_leaf(e, s->operand);
            const char *at = emit_dot(e, index, e->job->operands[leaf].strides);
            emit_text(e, "%s = *(const pack<uchar, %d> *)(%s + (%s));", value, run,
                      emit_operand(e, leaf), at);
        }
        emit_close(e);
        if (p.by_terms && run == RUN)
            emit_text(e, "%s[%s][%s / %d] = %s;", s->shared, p.row, p.term, RUN, value);
        else
            emit_text(
                e,
                "for (int u = 0; u < %d; u++) ((uchar *)%s[%s + u * %d])[%s + u * %d] = %s.v[u];",
                run, s->shared, p.row, !p.by_terms, p.term, p.by_terms, value);
        emit_close(e);
    }
    emit_text(e, "__syncthreads();");
    emit_text(e, "const int lane = threadIdx.x %% 32;");
    emit_text(e, "float %s[%d][%d] = {};", sums, RAGGED_MMA_ROWS, RAGGED_MMA_COLUMNS);
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int k = 0; k < %d; k += %d) {", TERMS, STEP);
    emit_open_unrolled(e, "n", RAGGED_MMA_COLUMNS / 2);
    emit_text(e, "mma_%s_%s(%s[0][2 * n], %s[0][2 * n + 1], %s[1][2 * n], %s[1][2 * n + 1]%s%s);",
              hlo_types[g->side[0].operand->shape->type].name,
              hlo_types[g->side[1].operand->shape->type].name, sums, sums, sums, sums,
              registers(g, 0, "threadIdx.x / 64 * 16 + lane / 4"),
              registers(g, 1, "threadIdx.x / 32 % 2 * 32 + n * 8 + lane / 4"));
    emit_close(e);
    emit_close(e);
    emit_open_unrolled(e, "r", RAGGED_MMA_ROWS);
    const char *row = emit_value(e, "i", e->offset, "%s + %s", g->side[0].base, RAGGED_MMA_ROW);
    emit_text(e, "if (%s < %s || %s >= %s) continue;", row, first, row, last);
    emit_text(e, "#pragma unroll");
    emit_text(e, "for (int c = 0; c < %d; c++) %s[r][c] += %s[r][c];", RAGGED_MMA_COLUMNS, g->sums,
              sums);
    emit_close(e);
    emit_close(e);
}

/* ----------------------------------------------------------------------------------------- sums */

/* Writes the code that adds the terms from `start` to `end` to the sums of rows in [first, last).
 * `guarded`: sums of other rows do not change, even if the right operand has infinities or NaNs. */
static void add_terms(ragging *g, const char *start, const char *end, const char *first,
                      const char *last, bool guarded) {
    emit *e = g->e;
    if (g->on_tensor_cores) {
        mma_terms(g, start, end, first, last);
        return;
    }
    const int rows = g->side[0].each, columns = g->side[1].each;
    const char *step = emit_name(e, "i");
    const ragged_part part = {step, end, first, last};
    emit_open(e, "for (%s %s = %s; %s < %s; %s += %d) {", e->offset, step, start, step, end, step,
              DEPTH);
    emit_text(e, "__syncthreads();");
    for (unsigned i = 0; i < 2; i++) {
        /* Copy DEPTH terms of an operand to shared memory. */
        const ragged_side *s = &g->side[i];
        const ragged_place p = open_tile(g, i, &part, s->each * SIDE, DEPTH, 1);
        const char *value = emit_name(e, "v");
        emit_text(e, "%s %s = 0;", g->sum_type, value);
        open_inside(g, i, &p);
        const hlo_shape *shape = s->operand->shape;
        const char *pulled = emit_pull(e, s->operand, emit_index_in(e, shape, s->at), false);
        const bool same = hlo_type_is_float(shape->type) && hlo_types[shape->type].bits == 8 &&
                          hlo_types[g->type].bits >= 16;
        emit_text(e, "%s = (%s)%s;", value, g->sum_type,
                  same ? pulled : emit_cast(e, shape->type, g->type, false, pulled, false));
        emit_close(e);
        emit_text(e, "%s[%s][%s] = %s;", s->shared, p.term, p.row, value);
        emit_close(e);
    }
    emit_text(e, "__syncthreads();");
    emit_open_unrolled(e, "k", DEPTH);
    emit_open_unrolled(e, "r", rows);
    emit_text(e, "const int row = threadIdx.x / %d + r * %d;", SIDE, SIDE);
    if (guarded)
        emit_text(e, "if (%s + row < %s || %s + row >= %s) continue;", g->side[0].base, first,
                  g->side[0].base, last);
    emit_text(e, "#pragma unroll");
    emit_text(e, "for (int c = 0; c < %d; c++)", columns);
    emit_text(e, "  %s[r][c] += %s[k][row] * %s[k][threadIdx.x %% %d + c * %d];", g->sums,
              g->side[0].shared, g->side[1].shared, SIDE, SIDE);
    emit_close(e);
    emit_close(e);
    emit_close(e);
}

static const char *count_text(ragging *g, int64_t count) {
    return hlo_arena_format(g->e->arena, "%lld", (long long)count);
}

/* Writes the code that computes the sums of the block's tile. If a free dimension is ragged, each
 * group with a row in the tile adds terms. If a contracting dimension is ragged, the tile sums the
 * terms of its group. If a batch dimension is ragged, the tile is summed only if its batch item is
 * in a group. */
static void write_sums(ragging *g) {
    emit *e = g->e;
    const ragged_side *s = &g->side[0];
    const char *groups = count_text(g, g->r.groups), *terms = count_text(g, g->summed.size);
    const char *apart = g->r.mode == HLO_RAGGED_CONTRACTING ? emit_name(e, "i") : NULL;
    const char *which = emit_name(e, "i"), *start = emit_name(e, "i"), *end = emit_name(e, "i");
    switch (g->r.mode) {
    case HLO_RAGGED_FREE:
        open_groups(g, groups, which, start, end);
        emit_text(e, "if (%s >= %s + %d) break;", start, s->base, s->each * SIDE);
        emit_text(e, "if (%s <= %s || %s >= %s) continue;", end, s->base, start, end);
        g->side[1].at[g->r.partner] = which;
        add_terms(g, "0", terms, start, end, true);
        break;
    case HLO_RAGGED_CONTRACTING: {
        const char *below = emit_offset(e, "%s + 1", g->result[g->r.place]);
        emit_open(e, "for (%s %s = 0; %s < %lld; %s++) {", e->offset, apart, apart,
                  (long long)g->apart.size, apart);
        split_index(g, apart, s, &g->apart, g->side[0].at);
        open_groups(g, below, which, start, end);
        emit_close(e);
        add_terms(g, start, end, "0", count_text(g, s->open.size), false);
        break;
    }
    case HLO_RAGGED_BATCH:
        open_groups(g, groups, which, start, end);
        emit_close(e);
        emit_open(e, "if (%s < %s) {", g->result[g->r.place], end);
        add_terms(g, "0", terms, "0", count_text(g, s->open.size), false);
        break;
    }
    emit_close(e);
}

/* ---------------------------------------------------------------------------------- the results */

/* The row (or column) of a thread's sum r (or c) in the tile, and the number of a thread's rows (or
 * columns). */
typedef struct sum_place {
    const char *text;
    int count;
} sum_place;

static sum_place place_of_sum(const ragging *g, int number) {
    static const char *const in_square[] = {"threadIdx.x / 16 + r * 16",
                                            "threadIdx.x % 16 + c * 16"};
    if (!g->on_tensor_cores) return (sum_place){in_square[number], g->side[number].each};
    return number ? (sum_place){RAGGED_MMA_COLUMN, RAGGED_MMA_COLUMNS}
                  : (sum_place){RAGGED_MMA_ROW, RAGGED_MMA_ROWS};
}

static void store_sums(ragging *g) {
    emit *e = g->e;
    const hlo_shape *shape = g->instr->shape;
    const char *names[] = {"r", "c"}, *index[2];
    for (int i = 0; i < 2; i++) {
        ragged_side *s = &g->side[i];
        const sum_place place = place_of_sum(g, i);
        emit_open_unrolled(e, names[i], place.count);
        index[i] = emit_value(e, "i", e->offset, "%s + %s", s->base, place.text);
        emit_text(e, "if (%s >= %lld) continue;", index[i], (long long)s->open.size);
        split_index(g, index[i], s, &s->open, s->at);
        for (uint32_t d = 0; d < s->operand->shape->rank; d++)
            if (is_open(s, d)) g->result[s->to[d]] = s->at[d];
    }
    const char *sum = emit_value(e, "v", cuda_types[g->type].compute, "(%s)%s[r][c]",
                                 cuda_types[g->type].compute, g->sums);
    emit_store(e, 0, emit_index_in(e, shape, g->result), emit_cell(e, g->type, sum));
    emit_close(e);
    emit_close(e);
}

void emit_ragged(emit *e, cuda_code *code) {
    ragging g = {.e = e, .instr = e->job->group.results[0]};
    const char *why = cuda_ragged_refusal(g.instr);
    if (why) {
        emit_refuse(e, "%s", why);
        return;
    }
    hlo_ragged_read(g.instr, &g.r);
    g.type = g.instr->shape->type;
    const char *compute = cuda_types[g.type].compute;
    g.sum_type = hlo_type_is_float(g.type)      ? compute
                 : hlo_types[g.type].bits == 64 ? "uint64"
                                                : "uint";
    if (hlo_shape_count(g.instr->shape) == 0) return;
    emit_lines lines = {0};
    emit_restart(e, &lines);
    e->width = 1;
    for (unsigned i = 0; i < 2; i++) read_side(&g, i);
    const ragged_side *s = &g.side[0];
    bool one[HLO_EVAL_MAX_RANK] = {0}, other[HLO_EVAL_MAX_RANK] = {0};
    for (uint32_t i = 0; i < s->summed->count; i++) {
        const int64_t d = s->summed->v[i];
        *(g.r.mode == HLO_RAGGED_CONTRACTING && d != g.r.dim ? &other[d] : &one[d]) = true;
    }
    g.summed = joined(s->operand->shape, one);
    g.apart = joined(s->operand->shape, other);
    e->offset = emit_offset_type(e, g.summed.size);
    /* Use tensor cores if both operands have FP8 types. Without an open device, the version of the
     * compiler does not matter. */
    const cuda_library *lib = e->device->lib;
    int major, minor;
    g.on_tensor_cores =
        e->device->sm >= FIRST_SM && is_mma_type(g.side[0].operand->shape->type) &&
        is_mma_type(g.side[1].operand->shape->type) &&
        (g.type == HLO_TYPE_F32 || g.type == HLO_TYPE_BF16 || g.type == HLO_TYPE_F16) &&
        (!lib || lib->nvrtcVersion(&major, &minor) || major * 100 + minor >= FIRST_NVRTC);
    for (int i = 0; i < 2 && g.on_tensor_cores; i++) g.side[i].each = RAGGED_MMA_SIDE / SIDE;
    const int64_t blocks = find_place(&g);
    g.sums = emit_name(e, "a");
    emit_text(e, "%s %s[%d][%d] = {};", g.sum_type, g.sums, place_of_sum(&g, 0).count,
              place_of_sum(&g, 1).count);
    for (int i = 0; i < 2; i++) {
        g.side[i].shared = emit_name(e, "s");
        if (g.on_tensor_cores)
            emit_text(e, "__shared__ pack<uchar, %d> %s[%d][%d];", RUN, g.side[i].shared,
                      RAGGED_MMA_SIDE, PITCH / RUN);
        else
            emit_text(e, "__shared__ %s %s[%d][%d];", g.sum_type, g.side[i].shared, DEPTH,
                      g.side[i].each * SIDE + 1);
    }
    write_sums(&g);
    store_sums(&g);
    emit_add_launch(e, code, emit_launch(e, "ragged", &lines, blocks, 0, NULL));
}
