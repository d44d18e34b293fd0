/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that reduce: "row" if the reduced elements are contiguous in memory, otherwise "column".
 *
 * All reduces of the group iterate over one space, whose kept dimensions form `kept` rows of
 * `reduced` elements. A block reduces a few rows, each with several threads ("lanes"). A reduce
 * that needs the result of another reduce is in a later phase; each phase iterates over the row
 * again. Results with an element per element of the space are written in the first phase in which
 * their inputs are known. Results with an element per row are written at the end. If rows are few
 * and long, several blocks share a row, each with one part ("chunk"): each block writes its
 * accumulators to scratch memory, and a second launch combines them. */
#include <math.h>
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/kernel/kernel.h"
#include "ir/module/known.h"
#include "runtime/cuda/codegen/emit.h"

typedef struct reducing {
    const hlo_instruction *instr;
    const hlo_computation *region;
    hlo_op simple;          /* the region's only operation, if that has an identity, or INVALID */
    bool cells;             /* accumulators are cells, not values */
    uint32_t arrays, phase; /* number of reduced arrays; number of the phase, from 0 */
    const char **acc;       /* a thread's accumulators, or those of all lanes */
    const char **shared;    /* arrays in shared memory that hold the accumulators of warps */
    const char **total;     /* the reduce's values, after the row is reduced */
} reducing;

typedef struct reduction {
    emit *e;
    cuda_code *code;
    reducing *reduces;
    uint32_t count, phases;
    uint32_t *levels;       /* by member: longest chain of reduces before it */
    const hlo_shape *shape; /* shape of the space */
    bool row;
    uint32_t kept_order[HLO_EVAL_MAX_RANK], kept_count, order[HLO_EVAL_MAX_RANK], order_count;
    int64_t kept_dims[HLO_EVAL_MAX_RANK]; /* sizes of only the kept dimensions */
    int64_t kept, reduced, chunk;
    int64_t chunks;
    emit_space space;
    emit_tile tile;  /* tile of a thread; width 0 if there are no tiles */
    int lanes, rows; /* lanes per row, and rows per block; lanes * rows = CUDA_BLOCK */
    int paired;      /* number of a thread's steps whose loads start together */
    int each;        /* contiguous columns of a thread, each with accumulators */
    const char *at[HLO_EVAL_MAX_RANK];
    const char *lane, *mine, *k, *live, *begin, *end, *part;
} reduction;

/* Returns the type of an accumulator of array `array` of the reduce. */
static const char *compute_type(const reducing *r, uint32_t array) {
    const cuda_type *type = &cuda_types[hlo_instr_operand(r->instr, array)->shape->type];
    return r->cells ? type->cell : type->compute;
}

enum { WARP = 32 }; /* threads per warp */

/* Kinds of types with the same identities: the columns of the table. */
enum { PRED, F32, F64, S32, S64, U32, U64, KINDS };

static const char *const identities[][KINDS] = {
    [HLO_OP_ADD] = {"false", "(-0.0f)", "(-0.0)", "0", "0ll", "0u", "0ull"},
    [HLO_OP_OR] = {"false", NULL, NULL, "0", "0ll", "0u", "0ull"},
    [HLO_OP_XOR] = {"false", NULL, NULL, "0", "0ll", "0u", "0ull"},
    [HLO_OP_AND] = {"true", NULL, NULL, "-1", "-1ll", "~0u", "~0ull"},
    [HLO_OP_MULTIPLY] = {"true", "1.0f", "1.0", "1", "1ll", "1u", "1ull"},
    [HLO_OP_MAXIMUM] = {"false", "(-float_inf())", "((double)-float_inf())", "(-0x7fffffff - 1)",
                        "(-0x7fffffffffffffffll - 1)", "0u", "0ull"},
    [HLO_OP_MINIMUM] = {"true", "(float_inf())", "((double)float_inf())", "0x7fffffff",
                        "0x7fffffffffffffffll", "~0u", "~0ull"},
};

/* Returns the text of the identity of an operation on a type, or NULL. */
static const char *identity(hlo_op op, hlo_type type) {
    const bool wide = hlo_types[type].bits == 64;
    const int kind = type == HLO_TYPE_PRED                       ? PRED
                     : hlo_type_is_float(type)                   ? F32 + wide
                     : hlo_types[type].class == HLO_CLASS_SIGNED ? S32 + wide
                                                                 : U32 + wide;
    return (size_t)op < sizeof identities / sizeof *identities ? identities[op][kind] : NULL;
}

/* Returns the text of the initial value of a simple reduce's accumulators: the identity. The
 * identity of a float sum is -0. If the reduce's initial value is 0, returns 0, which a sum may
 * include any number of times. */
static const char *start_of(const reducing *r) {
    const hlo_type type = hlo_instr_operand(r->instr, 0)->shape->type;
    double number;
    if (r->simple == HLO_OP_ADD && hlo_type_is_float(type) &&
        hlo_known_number(hlo_instr_operand(r->instr, 1), &number) && number == 0 &&
        !signbit(number))
        return hlo_types[type].bits == 64 ? "0.0" : "0.0f";
    return identity(r->simple, type);
}

/* Applies the reduce's region to a[i] and b[i], and writes the variables of the results to out[i].
 * A simple operation's result is not rounded. */
static void combine(emit *e, const reducing *r, const char *const *a, const char *const *b,
                    const char **out) {
    if (r->simple != HLO_OP_INVALID) {
        const char *in[] = {a[0], b[0]};
        out[0] =
            emit_value(e, "v", compute_type(r, 0), "%s", emit_operation(e, r->region->root, in));
        return;
    }
    const char **in = hlo_arena_array(e->arena, 2 * r->arrays, sizeof *in);
    memcpy(in, a, r->arrays * sizeof *in);
    memcpy(in + r->arrays, b, r->arrays * sizeof *in);
    emit_region(e, r->region, in, r->cells, out, r->cells);
}

/* Opens a loop over a thread's columns, with counter u, if the thread has several columns. */
static void open_columns(reduction *s) {
    if (s->each == 1) return;
    emit_open_unrolled(s->e, "u", s->each);
}

static void close_columns(reduction *s) {
    if (s->each > 1) emit_close(s->e);
}

/* Declares a variable for each column of a thread. Returns the current column's variable. */
static const char *declare_each(reduction *s, const char *storage, const char *type,
                                const char *prefix, const char *dims) {
    emit *e = s->e;
    const char *name = emit_name(e, prefix);
    if (s->each == 1) {
        emit_text(e, "%s%s %s%s;", storage, type, name, dims);
        return name;
    }
    emit_text(e, "%s%s %s[%d]%s;", storage, type, name, s->each, dims);
    return hlo_arena_format(e->arena, "%s[u]", name);
}

/* Declares a thread's accumulators. They start with the identity or, if the region has none, with
 * the reduce's initial value, which HLO allows to be combined any number of times. */
static void declare(reduction *s, reducing *r) {
    emit *e = s->e;
    r->acc = hlo_arena_array(e->arena, r->arrays, sizeof *r->acc);
    r->shared = hlo_arena_array(e->arena, r->arrays, sizeof *r->shared);
    for (uint32_t i = 0; i < r->arrays; i++) {
        const char *start =
            r->simple != HLO_OP_INVALID
                ? start_of(r)
                : emit_pull_scalar(e, hlo_instr_operand(r->instr, r->arrays + i), r->cells);
        r->acc[i] = declare_each(s, "", compute_type(r, i), "a", "");
        open_columns(s);
        emit_text(e, "%s = %s;", r->acc[i], start);
        close_columns(s);
    }
    r->total = hlo_arena_copy(e->arena, r->acc, r->arrays * sizeof *r->acc);
}

static void accumulate(reduction *s, const reducing *r, const char *const *x) {
    const char **sum = hlo_arena_array(s->e->arena, r->arrays, sizeof *sum);
    combine(s->e, r, r->acc, x, sum);
    for (uint32_t i = 0; i < r->arrays; i++) emit_text(s->e, "%s = %s;", r->acc[i], sum[i]);
}

/* The accumulators of another thread. `format` makes their text from `which` and the name of this
 * thread's accumulator or, with `shared`, of its shared array. */
typedef struct other {
    const char *format, *which;
    bool shared;
} other;

/* Sets or, with `combines`, combines this thread's accumulators with another thread's. */
static void take(reduction *s, uint32_t phase, other from, bool combines) {
    emit *e = s->e;
    open_columns(s);
    for (uint32_t i = 0; i < s->count; i++) {
        const reducing *r = &s->reduces[i];
        if (r->phase != phase) continue;
        const char **x = hlo_arena_array(e->arena, r->arrays, sizeof *x);
        for (uint32_t a = 0; a < r->arrays; a++) {
            const char *of = from.shared ? r->shared[a] : r->acc[a];
            const char *text = hlo_arena_format(e->arena, from.format, of, from.which);
            x[a] = emit_value(e, "v", compute_type(r, a), "%s", text);
        }
        for (uint32_t a = 0; a < r->arrays && !combines; a++)
            emit_text(e, "%s = %s;", r->acc[a], x[a]);
        if (combines) accumulate(s, r, x);
    }
    close_columns(s);
}

/* Combines the accumulators of a row's lanes. In each warp, repeatedly combines the upper half of
 * the lanes into the lower half, until one lane is left; then combines the accumulators of the
 * warps. The result is in the first lane or, if there is another phase, in all lanes. */
static void gather_lanes(reduction *s, uint32_t phase) {
    emit *e = s->e;
    bool any = false;
    for (uint32_t i = 0; i < s->count; i++) any |= s->reduces[i].phase == phase;
    if (!any || s->lanes == 1) return;
    const int apart = s->row ? 1 : s->rows; /* distance in threads from one lane to the next */
    const int most = apart < WARP ? WARP / apart : 1, lanes = s->lanes < most ? s->lanes : most;
    if (lanes > 1) {
        const char *step = emit_name(e, "i");
        emit_text(e, "#pragma unroll");
        emit_open(e, "for (int %s = %d; %s >= %d; %s /= 2) {", step, lanes / 2 * apart, step, apart,
                  step);
        take(s, phase, (other){"shuffled_down(%s, %s)", step, false}, true);
        emit_close(e);
    }
    if (s->lanes > lanes) {
        /* Combine the accumulators of a row's warps, in order, through shared memory. The first
         * lane of each warp already has the combined accumulators of its warp. */
        for (uint32_t i = 0; i < s->count; i++) {
            reducing *r = &s->reduces[i];
            for (uint32_t a = 0; a < r->arrays && r->phase == phase; a++)
                r->shared[a] = declare_each(s, "__shared__ ", compute_type(r, a), "s",
                                            hlo_arena_format(e->arena, "[%d]", CUDA_BLOCK / lanes));
        }
        const char *mine = emit_offset(e, "%s / %d * %d + %s", s->lane, lanes, s->rows, s->mine);
        emit_open(e, "if (%s %% %d == 0) {", s->lane, lanes);
        open_columns(s);
        for (uint32_t i = 0; i < s->count; i++) {
            const reducing *r = &s->reduces[i];
            for (uint32_t a = 0; a < r->arrays && r->phase == phase; a++)
                emit_text(e, "%s[%s] = %s;", r->shared[a], mine, r->acc[a]);
        }
        close_columns(s);
        emit_close(e);
        emit_text(e, "__syncthreads();");
        take(s, phase, (other){"%s[%s]", s->mine, true}, false);
        const char *warp = emit_name(e, "i");
        emit_text(e, "#pragma unroll");
        emit_open(e, "for (int %s = 1; %s < %d; %s++) {", warp, warp, s->lanes / lanes, warp);
        const char *next = emit_offset(e, "%s * %d + %s", warp, s->rows, s->mine);
        take(s, phase, (other){"%s[%s]", next, true}, true);
        emit_close(e);
    } else if (s->phases > 1)
        take(s, phase,
             (other){"shuffled_from(%s, %s)", emit_offset(e, "(int)threadIdx.x - %s", s->lane),
                     false},
             false);
}

enum {
    LONG = 1 << 14,       /* maximum elements of a row that one block reduces */
    CHUNK = 1 << 12,      /* minimum elements of a chunk of a contiguous row */
    TALL = 64,            /* minimum elements of a chunk of a column */
    BLOCKS = 4,           /* number of blocks that fill a multiprocessor */
    PAIRED = 2,           /* steps whose loads are started together: a pair */
    MANY_PAIRS = 4,       /* minimum number of pairs per chunk for which chunks are rounded to
                           * whole pairs */
    SHARED = 1 << 15,     /* maximum bytes of shared memory for accumulators of columns */
    ACROSS = 32,          /* threads along the columns of a block */
    MAX_SHARED = 48 << 10 /* bytes of shared memory that a kernel has by default */
};

/* ------------------------------------------------------------------- several columns per thread */

/* Returns the dimension in which a thread's columns are contiguous. */
static uint32_t column_dim(const reduction *s) {
    for (uint32_t i = 0; i < s->kept_count; i++)
        if (s->shape->dims[s->kept_order[i]] > 1) return s->kept_order[i];
    return 0;
}

/* Opens the loop over a thread's columns, to which later lines are written, and returns the index
 * of the current column's element. `step` is the element's position in the column, or that of a
 * tile's first row. */
static const emit_index *columns_index(reduction *s, const char *step, emit_lines *inner) {
    emit *e = s->e;
    const char *at[HLO_EVAL_MAX_RANK];
    const uint32_t minor = column_dim(s);
    memcpy(at, s->at, s->shape->rank * sizeof *at);
    emit_split(e, step, s->shape->dims, s->order, s->order_count, at);
    if (s->tile.width) {
        memcpy(s->tile.at, at, s->shape->rank * sizeof *at);
        s->tile.row_base = at[s->tile.row];
        s->tile.column_base = at[minor];
        return emit_tile_begin(e, &s->space, &s->tile, NULL, inner);
    }
    e->base = e->linear = NULL;
    e->minor_base = at[minor];
    e->outer = hlo_arena_copy(e->arena, at, s->shape->rank * sizeof *at);
    e->outer_count = s->shape->rank;
    emit_elements_begin(e, inner);
    at[minor] = e->minor = emit_offset(e, "%s + u", e->minor_base);
    return emit_index_in(e, s->shape, at);
}

/* Returns the number of contiguous columns per thread: as many as one memory access covers, limited
 * by the shared memory for their accumulators. Sets a tile of these columns if a result is
 * transposed. */
static int find_columns(reduction *s) {
    if (s->row || s->phases != 1 || !s->reduced ||
        s->e->job->group.result_count != s->e->job->result_count)
        return 1;
    int each = emit_width(s->e, &s->space, s->shape->dims[column_dim(s)]);
    int64_t bytes = 0;
    for (uint32_t i = 0; i < s->count; i++) bytes += (int64_t)s->reduces[i].arrays * 8 * CUDA_BLOCK;
    while (each > 1 && each * bytes > SHARED) each /= 2;
    /* A tile consists of a thread's columns and of rows that are contiguous in the columns. */
    emit_tile tile;
    uint32_t fastest = 0;
    for (uint32_t i = s->order_count; i-- > 0;)
        if (s->shape->dims[s->order[i]] > 1) fastest = s->order[i];
    if (!emit_find_tile(s->e, &s->space, &tile) || tile.column != column_dim(s) ||
        tile.row != fastest || tile.width > each)
        return each;
    s->tile = tile;
    return tile.width;
}

/* -------------------------------------------------------------------------------------- results */

/* Computes the rounded value of each reduce of a phase from accumulator and initial value. */
static void finish(reduction *s, uint32_t phase) {
    emit *e = s->e;
    for (uint32_t i = 0; i < s->count; i++) {
        reducing *r = &s->reduces[i];
        if (r->phase != phase) continue;
        if (r->simple != HLO_OP_INVALID) {
            hlo_type type = hlo_instr_operand(r->instr, 0)->shape->type;
            const char *start = emit_pull_scalar(e, hlo_instr_operand(r->instr, 1), false);
            if (strcmp(start, start_of(r)) != 0) combine(e, r, &start, r->total, r->total);
            r->total[0] = emit_round(e, type, r->total[0], false);
        }
        if (r->arrays == 1)
            e->known[e->known_count++] = (emit_known){r->instr, r->total[0], r->cells};
    }
}

static bool is_row_result(const reduction *s, const hlo_instruction *result) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->reduces[i].instr == result) return true;
    return hlo_shape_count(result->shape) != s->kept * s->reduced;
}

static void write_rows(reduction *s) {
    emit *e = s->e;
    const hlo_group *group = &e->job->group;
    const char *kept_at[HLO_EVAL_MAX_RANK];
    uint32_t kept_rank = 0;
    for (uint32_t d = 0; d < s->shape->rank; d++) {
        bool kept = false;
        for (uint32_t i = 0; i < s->kept_count; i++) kept |= s->kept_order[i] == d;
        if (kept) kept_at[kept_rank++] = s->at[d];
    }
    const emit_index *index = emit_index_new(s->e, kept_rank, s->kept_dims, kept_at, NULL, NULL);
    emit_open(e, "if (%s == 0%s) {", s->lane, s->live);
    for (uint32_t i = 0, leaf = 0; i < group->result_count; i++) {
        const hlo_instruction *result = group->results[i];
        bool tuple = result->shape->type == HLO_TYPE_TUPLE;
        const reducing *r = NULL;
        for (uint32_t j = 0; j < s->count; j++)
            if (s->reduces[j].instr == result) r = &s->reduces[j];
        for (uint32_t a = 0; r && tuple && a < r->arrays; a++) {
            hlo_type type = e->job->results[leaf + a].type;
            emit_store(e, leaf + a, index, emit_as(e, type, r->total[a], r->cells, true));
        }
        if (!tuple && is_row_result(s, result)) {
            const emit_index *at = emit_reshape(e, index, result->shape->rank, result->shape->dims);
            emit_store(e, leaf, at, emit_pull(e, result, at, true));
        }
        leaf += tuple ? result->shape->rank : 1;
    }
    emit_close(e);
}

static uint32_t level_of(const reduction *s, const hlo_instruction *instr) {
    const hlo_group *group = &s->e->job->group;
    for (uint32_t i = 0; i < group->instr_count; i++)
        if (group->instrs[i] == instr) return s->levels[i];
    return 0;
}

/* ---------------------------------------------------------------------------------- one element */

/* Opens the loop over a thread's elements, to which later lines are written, and returns the index
 * of the current element. `step` is the position of the first element in the row. */
static const emit_index *element_index(reduction *s, const char *step, emit_lines *inner) {
    emit *e = s->e;
    if (s->each > 1) return columns_index(s, step, inner);
    int64_t row_major[HLO_EVAL_MAX_RANK];
    const char *at[HLO_EVAL_MAX_RANK], *minor_base = NULL;
    uint32_t minor = 0;
    hlo_shape_strides(s->shape, row_major);
    memcpy(at, s->at, s->shape->rank * sizeof *at);
    for (uint32_t i = s->order_count; i-- > 0;)
        if (s->shape->dims[s->order[i]] > 1) minor = s->order[i];
    bool aligned = e->width > 1 && s->shape->dims[minor] % e->width == 0;
    /* If the reduced dimensions are the fastest, the row-major number is the offset in memory. */
    bool dense = s->row && (s->order_count == 0 || row_major[s->order[0]] == 1);
    int64_t inside = 1;
    for (uint32_t i = 0; i < s->order_count; i++) {
        dense = dense && (s->shape->dims[s->order[i]] == 1 || row_major[s->order[i]] == inside);
        inside *= s->shape->dims[s->order[i]];
    }
    e->base = e->linear = e->minor = NULL;
    if (e->width == 1 || aligned) {
        emit_split(e, step, s->shape->dims, s->order, s->order_count, at);
        e->outer = hlo_arena_copy(e->arena, at, s->shape->rank * sizeof *at);
        e->outer_count = s->shape->rank;
        if (aligned) minor_base = at[minor];
    }
    if (dense)
        e->base = s->kept == 1
                      ? step
                      : emit_offset(e, "%s * %lld + %s", s->k, (long long)s->reduced, step);
    emit_elements_begin(e, inner);
    if (e->width > 1 && !aligned) {
        const char *c = emit_offset(e, "%s + u", step);
        emit_split(e, c, s->shape->dims, s->order, s->order_count, at);
    }
    if (aligned) {
        at[minor] = e->minor = emit_offset(e, "%s + u", minor_base);
        e->minor_base = minor_base;
    }
    if (dense) e->linear = e->width > 1 ? emit_offset(e, "%s + u", e->base) : e->base;
    return emit_index_new(e, s->shape->rank, s->shape->dims, at, e->linear, row_major);
}

/* Returns the number of blocks that fill the device. */
static int64_t full_blocks(const reduction *s) {
    return (int64_t)BLOCKS * s->e->device->processors;
}

/* Returns how many positions of a row a thread processes at once: elements, or tile rows. */
static int along(const reduction *s) {
    if (s->each == 1) return s->e->width;
    return s->tile.width ? s->tile.height : 1;
}

static void run_phase(reduction *s, uint32_t phase) {
    emit *e = s->e;
    const hlo_group *group = &e->job->group;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->reduces[i].phase == phase) declare(s, &s->reduces[i]);
    const int64_t stride = (int64_t)s->lanes * along(s);
    const char *step = emit_name(e, "i");
    emit_open(e, "for (%s %s = %s; %s < %s; %s += %lld) {", e->offset, step, s->part, step, s->end,
              step, (long long)(stride * s->paired));
    if (s->paired > 1) {
        emit_open_repeat(e, "j", s->paired);
        step = emit_offset(e, "%s + j * %lld", step, (long long)stride);
    }
    emit_lines inner;
    const emit_index *index = s->tile.width && s->each == 1
                                  ? emit_tile_begin(e, &s->space, &s->tile, step, &inner)
                                  : element_index(s, step, &inner);
    for (uint32_t i = 0; i < group->result_count; i++) {
        const hlo_instruction *result = group->results[i];
        if (is_row_result(s, result) || level_of(s, result) != phase) continue;
        const emit_index *at = emit_result_index(e, index, result);
        emit_store(e, i, at, emit_pull(e, result, at, true));
    }
    for (uint32_t i = 0; i < s->count; i++) {
        reducing *r = &s->reduces[i];
        if (r->phase != phase) continue;
        const char **x = hlo_arena_array(e->arena, r->arrays, sizeof *x);
        for (uint32_t a = 0; a < r->arrays; a++) {
            const hlo_instruction *operand = hlo_instr_operand(r->instr, a);
            x[a] = emit_pull(e, operand,
                             emit_reshape(e, index, operand->shape->rank, operand->shape->dims),
                             r->cells);
        }
        accumulate(s, r, x);
    }
    if (s->tile.width)
        emit_tile_end(e, &s->space, &s->tile);
    else
        emit_elements_end(e);
    if (s->paired > 1) emit_close(e);
    emit_close(e);
}

/* -------------------------------------------------------------------------------------- kernels */

/* Divides a block's threads into rows and lanes. A row has `count` elements, of which a lane
 * processes `width` at once. */
static void divide(reduction *s, int64_t count, int width) {
    int64_t parts = (count + width - 1) / width;
    int most = CUDA_BLOCK, lanes = 1;
    if (!s->row) {
        int across = 1;
        while (across < ACROSS && across < s->kept / s->each) across *= 2;
        most = CUDA_BLOCK / across;
    }
    /* With enough rows to fill the device, use fewer lanes: a thread then starts several loads. */
    if (s->row && s->kept * parts / (PAIRED * CUDA_BLOCK) >= full_blocks(s))
        parts = (parts + PAIRED - 1) / PAIRED;
    while (lanes < most && lanes < parts) lanes *= 2;
    s->lanes = lanes;
    s->rows = CUDA_BLOCK / lanes;
}

/* Begins a kernel: computes the thread's row and lane, and the part of the row that it reduces. A
 * row has `count` elements. */
static void begin_kernel(reduction *s, int64_t chunks, int64_t chunk, int64_t count) {
    emit *e = s->e;
    int across = s->row ? s->lanes : s->rows;
    const char *low = emit_offset(e, across > 1 ? "(int)threadIdx.x %% %d" : "0", across);
    const char *high = emit_offset(e, "(int)threadIdx.x / %d", across);
    const char *mine = s->row ? high : low;
    s->lane = s->row ? low : high;
    if (s->rows == 1) mine = "0";
    s->mine = mine;
    const char *block = "blockIdx.x", *which = "0";
    if (chunks > 1) {
        block = emit_offset(e, "blockIdx.x / %lld", (long long)chunks);
        which = emit_offset(e, "blockIdx.x %% %lld", (long long)chunks);
    }
    s->k = s->kept == 1 ? "0" : emit_offset(e, "(%s)%s * %d + %s", e->offset, block, s->rows, mine);
    if (s->each > 1) s->k = emit_offset(e, "%s * %d", s->k, s->each);
    s->begin = chunks > 1 ? emit_offset(e, "%s * %lld", which, (long long)chunk) : "0";
    s->end = hlo_arena_format(e->arena, "%lld", (long long)count);
    if (chunks > 1)
        s->end = emit_offset(e, "%s + %lld < %lld ? %s + %lld : %lld", s->begin, (long long)chunk,
                             (long long)count, s->begin, (long long)chunk, (long long)count);
    s->live = "";
    if (s->kept == 1 && s->rows > 1) {
        s->live = hlo_arena_format(e->arena, " && %s == 0", mine);
        s->end = emit_offset(e, "%s == 0 ? %s : 0", mine, s->end);
    } else if (s->kept % (s->rows * s->each) != 0) {
        s->live = hlo_arena_format(e->arena, " && %s < %lld", s->k, (long long)s->kept);
        s->end = emit_offset(e, "%s < %lld ? %s : 0", s->k, (long long)s->kept, s->end);
    }
    s->part =
        emit_offset(e, along(s) > 1 ? "%s + %s * %d" : "%s + %s", s->begin, s->lane, along(s));
    for (uint32_t d = 0; d < s->shape->rank; d++) s->at[d] = "0";
    emit_split(e, s->k, s->shape->dims, s->kept_order, s->kept_count, s->at);
}

static int64_t row_blocks(const reduction *s) {
    const int64_t rows = (int64_t)s->rows * s->each;
    return (s->kept + rows - 1) / rows;
}

/* Allocates scratch memory for the accumulators of all chunks, and writes their stores. */
static emit_scratch *write_partials(reduction *s, uint32_t *out_count) {
    emit *e = s->e;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) count += s->reduces[i].arrays;
    emit_scratch *scratch = hlo_arena_array(s->e->arena, count, sizeof *scratch);
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t a = 0; a < s->reduces[i].arrays; a++) {
            scratch[at++] =
                (emit_scratch){compute_type(&s->reduces[i], a), s->code->scratch_size, false};
            s->code->scratch_size += (size_t)(s->kept * s->chunks * 8 + 255) / 256 * 256;
        }
    uint32_t t = 0;
    emit_open(e, "if (%s == 0%s) {", s->lane, s->live);
    const char *place = emit_offset(e, "%s * %lld + blockIdx.x %% %lld", s->k, (long long)s->chunks,
                                    (long long)s->chunks);
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t a = 0; a < s->reduces[i].arrays; a++)
            emit_text(e, "t%u[%s] = %s;", t++, place, s->reduces[i].total[a]);
    emit_close(e);
    *out_count = count;
    return scratch;
}

/* Adds the second launch, whose elements are the accumulators of the chunks. */
static void join_chunks(reduction *s, uint32_t scratch_count, const emit_scratch *scratch) {
    emit *e = s->e;
    emit_lines lines = {0};
    emit_restart(e, &lines);
    e->width = 1;
    s->row = true;
    s->each = 1;
    divide(s, s->chunks, 1);
    begin_kernel(s, 1, s->chunks, s->chunks);
    for (uint32_t i = 0; i < s->count; i++) declare(s, &s->reduces[i]);
    const char *step = emit_name(e, "i");
    emit_open(e, "for (%s %s = %s; %s < %s; %s += %d) {", e->offset, step, s->part, step, s->end,
              step, s->lanes);
    const char *place = emit_offset(e, "%s * %lld + %s", s->k, (long long)s->chunks, step);
    for (uint32_t i = 0, t = 0; i < s->count; i++) {
        reducing *r = &s->reduces[i];
        const char **x = hlo_arena_array(e->arena, r->arrays, sizeof *x);
        for (uint32_t a = 0; a < r->arrays; a++)
            x[a] = emit_value(e, "v", compute_type(r, a), "t%u[%s]", t++, place);
        accumulate(s, r, x);
    }
    emit_close(e);
    gather_lanes(s, 0);
    finish(s, 0);
    write_rows(s);
    emit_add_launch(e, s->code,
                    emit_launch(e, "row", &lines, row_blocks(s), scratch_count, scratch));
}

/* --------------------------------------------------------------------------------------- set-up */

static void find_reduces(reduction *s) {
    emit *e = s->e;
    const hlo_group *group = &e->job->group;
    s->reduces = hlo_arena_zero(e->arena, (group->instr_count + 1) * sizeof *s->reduces);
    s->levels = hlo_arena_zero(e->arena, (group->instr_count + 1) * sizeof *s->levels);
    e->known = hlo_arena_array(e->arena, group->instr_count + 1, sizeof *e->known);
    for (uint32_t i = 0; i < group->instr_count; i++) {
        const hlo_instruction *instr = group->instrs[i];
        for (uint32_t o = 0; o < instr->operand_count; o++) {
            uint32_t level = level_of(s, hlo_instr_operand(instr, o));
            if (level > s->levels[i]) s->levels[i] = level;
        }
        if (instr->op != HLO_OP_REDUCE || cuda_reduce_is_single(instr)) continue;
        const char *why = cuda_reduce_refusal(instr);
        if (why) emit_refuse(e, "%s", why);
        const hlo_computation *region = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
        /* A simple reduce has one array, and one operation with an identity. */
        const hlo_type type = hlo_instr_operand(instr, 0)->shape->type;
        hlo_op simple = hlo_region_simple(region);
        if (instr->operand_count != 2 || instr->shape->type != type || simple >= HLO_OP_COUNT ||
            !identity(simple, type))
            simple = HLO_OP_INVALID;
        s->reduces[s->count++] =
            (reducing){.instr = instr,
                       .region = region,
                       .simple = simple,
                       .cells = simple == HLO_OP_INVALID && emit_region_moves(region),
                       .arrays = instr->operand_count / 2,
                       .phase = s->levels[i]++};
    }
}

static void find_rows(reduction *s, const hlo_instruction *first) {
    const hlo_ints *dims = hlo_instr_ints(first, HLO_ATTR_DIMENSIONS);
    s->shape = hlo_instr_operand(first, 0)->shape;
    s->kept = s->reduced = 1;
    bool minor_found = false;
    for (uint32_t i = 0, rank = s->shape->rank; i < rank; i++) {
        uint32_t d =
            s->shape->layout ? (uint32_t)s->shape->layout->minor_to_major[i] : rank - 1 - i;
        bool reduced = hlo_ints_contain(dims, d);
        if (reduced) {
            s->order[s->order_count++] = d;
            s->reduced *= s->shape->dims[d];
        } else {
            s->kept_order[s->kept_count++] = d;
            s->kept *= s->shape->dims[d];
        }
        if (!minor_found && s->shape->dims[d] > 1) s->row = reduced, minor_found = true;
    }
    if (!minor_found || s->kept == 1) s->row = true;
    for (uint32_t d = 0, k = 0; d < s->shape->rank; d++)
        if (!hlo_ints_contain(dims, d)) s->kept_dims[k++] = s->shape->dims[d];
}

/* Returns the number of blocks that share a row, if `full` blocks fill the device. */
static int64_t chunks_of(const reduction *s, int64_t full) {
    int64_t blocks = s->row ? s->kept : (s->kept / s->each + 31) / 32;
    int64_t most = s->row ? (s->reduced > LONG ? s->reduced / CHUNK : 1) : s->reduced / TALL;
    int64_t chunks = blocks ? full / blocks : 1;
    return chunks < 1 || most < 1 ? 1 : chunks < most ? chunks : most;
}

bool cuda_reduce_is_chunked(const hlo_instruction *reduce) {
    reduction s = {.each = 1, .paired = 1};
    find_rows(&s, reduce);
    return chunks_of(&s, (int64_t)BLOCKS * CUDA_PROCESSORS) > 1;
}

const char *cuda_reduce_refusal(const hlo_instruction *instr) {
    uint32_t arrays = instr->operand_count / 2, bytes = 0;
    for (uint32_t i = 0; i < arrays; i++) {
        const hlo_type type = hlo_instr_operand(instr, i)->shape->type;
        if (!cuda_types[type].cell) return "has no CUDA kernel for its element type";
        bytes += CUDA_BLOCK * (hlo_types[type].bits > 32 ? 8U : 4U);
    }
    if (bytes > MAX_SHARED) return "has no CUDA kernel for accumulators that exceed shared memory";
    const hlo_shape *result = instr->shape;
    for (uint32_t i = 0; i < arrays; i++) {
        hlo_type type = result->type == HLO_TYPE_TUPLE ? result->elements[i]->type : result->type;
        if (type != hlo_instr_operand(instr, i)->shape->type)
            return "has no CUDA kernel for a result type that differs from the operand type";
    }
    return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
}

/* Decides whether threads process tiles or elements, and returns their number per row. */
static int64_t find_elements(reduction *s) {
    emit *e = s->e;
    if (s->kept == 1 && s->phases == 1 && s->reduced > 1 &&
        e->job->group.result_count == e->job->result_count &&
        emit_find_tile(e, &s->space, &s->tile)) {
        s->chunks = s->chunks > 1 ? full_blocks(s) : 1;
        while (s->chunks > 1 && s->tile.count / s->chunks < CUDA_BLOCK) s->chunks /= 2;
        return s->tile.count;
    }
    e->width = s->row && s->reduced ? emit_width(e, &s->space, s->reduced) : s->each;
    return s->reduced;
}

void emit_reduce(emit *e, cuda_code *code) {
    reduction s = {.e = e, .code = code, .each = 1, .paired = 1};
    find_reduces(&s);
    if (e->why) return;
    find_rows(&s, s.reduces[0].instr);
    /* Count the phases. A phase follows the last reduce's phase only if a result with an element
     * per element of the space reads this reduce. */
    const hlo_group *group = &s.e->job->group;
    for (uint32_t i = 0; i < s.count; i++)
        if (s.reduces[i].phase + 1 > s.phases) s.phases = s.reduces[i].phase + 1;
    for (uint32_t i = 0; i < group->result_count; i++) {
        const hlo_instruction *result = group->results[i];
        uint32_t level = level_of(&s, result);
        if (!is_row_result(&s, result) && level + 1 > s.phases) s.phases = level + 1;
    }
    if (s.kept == 0) return;
    emit_lines lines = {0};
    emit_restart(e, &lines);
    e->offset = emit_offset_type(e, s.kept * s.reduced);
    const hlo_view view = hlo_view_in_layout(e->arena, s.shape);
    s.space = emit_space_of(&view);
    s.each = find_columns(&s);
    s.chunks = s.phases > 1 ? 1 : chunks_of(&s, full_blocks(&s));
    int64_t count = find_elements(&s);
    const int64_t pairs = (int64_t)along(&s) * PAIRED * (s.row ? CUDA_BLOCK : CUDA_BLOCK / ACROSS);
    const int64_t granularity =
        count % pairs == 0 && count / s.chunks >= MANY_PAIRS * pairs ? pairs : along(&s);
    s.chunk = ((count + s.chunks - 1) / s.chunks + granularity - 1) / granularity * granularity;
    if (count) s.chunks = (count + s.chunk - 1) / s.chunk;
    divide(&s, s.chunk, along(&s));
    const int64_t pair = (int64_t)PAIRED * s.lanes * along(&s);
    s.paired = !s.tile.width && s.chunk % pair == 0 && count % pair == 0 ? PAIRED : 1;
    begin_kernel(&s, s.chunks, s.chunk, count);
    for (uint32_t phase = 0; phase < s.phases; phase++) {
        run_phase(&s, phase);
        gather_lanes(&s, phase);
        if (s.each > 1) { /* write the results of a thread's columns in a loop */
            const uint32_t d = column_dim(&s);
            open_columns(&s);
            s.k = emit_offset(e, "%s + u", s.k);
            s.at[d] = emit_offset(e, "%s + u", s.at[d]);
        }
        if (s.chunks == 1) finish(&s, phase);
    }
    uint32_t scratch_count = 0;
    emit_scratch *scratch = NULL;
    int64_t blocks = row_blocks(&s) * s.chunks;
    if (s.chunks > 1) {
        scratch = write_partials(&s, &scratch_count);
    } else {
        write_rows(&s);
    }
    close_columns(&s);
    const char *form = !s.row ? "column" : s.tile.width ? "tile" : "row";
    emit_add_launch(e, code, emit_launch(e, form, &lines, blocks, scratch_count, scratch));
    if (s.chunks > 1) join_chunks(&s, scratch_count, scratch);
}
