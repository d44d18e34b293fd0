/* SPDX-License-Identifier: Apache-2.0 */
/* Computes products of matrices, summed in f32 or f64.
 *
 * Blocks of both operands are converted to the type of the sums and packed in the order in which
 * the inner loop reads them: rows of a, and panels of columns of b. A panel contains the first
 * terms of its columns, then their second terms, and so on. The inner loop keeps a tile of the
 * result in registers.
 *
 * A sum adds its terms in order, in blocks of DEPTH terms, which are then added in order. The
 * result does not depend on the number of threads, nor on other rows and columns. If the processor
 * has a fused multiply-add, it rounds each product together with the sum: this file allows
 * contraction. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/clones.h"
#include "ir/kernel/kernel.h"
#include "ir/memory.h"

enum {
    DEPTH = 256, /* number of terms per block */
    PITCH =
        256 + 16, /* elements from one row of `a` to the next: rows begin in different cache sets */
    ROWS = 2048,  /* maximum rows of `a` per block */
    COLUMNS = 2048, /* maximum columns of `b` per block */
    TURNED = 8,     /* number of rows and columns that are transposed at once */
    TILES = 8       /* number of tiles per task, along each side */
};

/* The inner loop for one type and one processor level. */
typedef struct kernel {
    const char *processor;
    size_t size;           /* bytes of an element */
    int64_t rows, columns; /* size of a tile */
    /* Computes a tile of c, whose rows are `c_row` elements apart. `add`: adds the tile to the
     * existing values. */
    void (*multiply)(int64_t depth, const void *a, const void *b, void *c, int64_t c_row, bool add);
    /* Transposes a matrix of TURNED rows and columns; the distances between rows are in
     * elements. */
    void (*turn)(const void *in, int64_t in_row, void *out, int64_t out_row);
} kernel;

#define UNROLLED _Pragma("GCC unroll 8")
#define TILE_LOOP UNROLLED for (int i = 0; i < R; i++) UNROLLED for (int j = 0; j < 2; j++)

/* Defines the inner loop for tiles of `rows` rows and two vectors of columns. */
#define KERNEL(name, processor, attribute, T, vector_bytes, rows_of_tile)                          \
    typedef T name##_vector __attribute__((vector_size(vector_bytes), aligned(sizeof(T))));        \
    typedef T name##_row __attribute__((vector_size(TURNED * sizeof(T)), aligned(sizeof(T))));     \
    attribute HLO_UNCHECKED static void multiply_##name(int64_t depth, const void *a_data,         \
                                                        const void *b_data, void *c_data,          \
                                                        int64_t c_row, bool add) {                 \
        enum { R = (rows_of_tile), W = (vector_bytes) / sizeof(T) };                               \
        const T *a = a_data, *b = b_data;                                                          \
        T *c = c_data;                                                                             \
        name##_vector sum[R][2], zero = {0};                                                       \
        TILE_LOOP sum[i][j] = zero;                                                                \
        for (int64_t l = 0; l < depth; l++, b += 2 * W) {                                          \
            const name##_vector *in = (const name##_vector *)b;                                    \
            const name##_vector x[2] = {in[0], in[1]};                                             \
            TILE_LOOP sum[i][j] += a[i * PITCH + l] * x[j];                                        \
        }                                                                                          \
        TILE_LOOP {                                                                                \
            name##_vector *out = (name##_vector *)(c + i * c_row) + j;                             \
            *out = add ? *out + sum[i][j] : sum[i][j];                                             \
        }                                                                                          \
    }                                                                                              \
    /* Each of three steps interleaves rows of the upper half with rows of the lower half.         \
     */                                                                                            \
    attribute static void turn_##name(const void *in, int64_t in_row, void *out,                   \
                                      int64_t out_row) {                                           \
        name##_row from[TURNED], to[TURNED];                                                       \
        UNROLLED for (int i = 0; i < TURNED; i++) {                                                \
            from[i] = *(const name##_row *)((const T *)in + i * in_row);                           \
        }                                                                                          \
        UNROLLED for (int round = 0; round < 3; round++) {                                         \
            UNROLLED for (int i = 0; i < TURNED / 2; i++) {                                        \
                const name##_row x = from[i], y = from[i + TURNED / 2];                            \
                to[2 * i] = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);               \
                to[2 * i + 1] = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);         \
            }                                                                                      \
            UNROLLED for (int i = 0; i < TURNED; i++) from[i] = to[i];                             \
        }                                                                                          \
        UNROLLED for (int i = 0; i < TURNED; i++) {                                                \
            *(name##_row *)((T *)out + i * out_row) = from[i];                                     \
        }                                                                                          \
    }                                                                                              \
    static const kernel kernel_##name = {processor,       sizeof(T),                               \
                                         rows_of_tile,    2 * (vector_bytes) / sizeof(T),          \
                                         multiply_##name, turn_##name};

KERNEL(f32, "any processor", , float, 16, 6)
KERNEL(f64, "any processor", , double, 16, 6)
#ifdef HLO_LEVEL
KERNEL(f32_v3, "x86-64-v3", HLO_LEVEL(v3), float, 32, 6)
KERNEL(f64_v3, "x86-64-v3", HLO_LEVEL(v3), double, 32, 6)
KERNEL(f32_v4, "x86-64-v4", HLO_LEVEL(v4), float, 64, 8)
KERNEL(f64_v4, "x86-64-v4", HLO_LEVEL(v4), double, 64, 8)
#endif
enum { TILE_BYTES = 8 * 2 * 64 }; /* bytes of the largest tile */

static const kernel *kernel_of(hlo_type type) {
    const bool wide = type == HLO_TYPE_F64;
#ifdef HLO_LEVEL
    if (__builtin_cpu_supports("x86-64-v4")) return wide ? &kernel_f64_v4 : &kernel_f32_v4;
    if (__builtin_cpu_supports("x86-64-v3")) return wide ? &kernel_f64_v3 : &kernel_f32_v3;
#endif
    return wide ? &kernel_f64 : &kernel_f32;
}

const char *hlo_product_processor(void) {
    return kernel_of(HLO_TYPE_F32)->processor;
}

/* -------------------------------------------------------------------------------------- packing */

/* A block of the product. Each thread has a copy. If the block were on another thread's stack,
 * writes next to it would evict it from this thread's cache. */
typedef struct block {
    const hlo_product *product;
    const kernel *k;
    const char *a_data, *b_data; /* data of the operands of the batch */
    char *c_data;
    int64_t row, rows, column, columns, term, terms;
    char *a, *b; /* packed blocks of the operands */
} block;

/* Lines of an operand (rows of a or columns of b), starting at line `line` and term `term`. */
typedef struct lines {
    const hlo_factor *of;
    const char *data;
    const kernel *k;
    int64_t terms;
} lines;

static lines lines_at(const block *b, const hlo_factor *of, const char *data, int64_t line) {
    const int64_t element = line * of->line + b->term * of->term;
    return (lines){of, data + element * hlo_types[of->type].bytes, b->k, b->terms};
}

static bool is_native(const lines *s) {
    return hlo_types[s->of->type].bytes == s->k->size && hlo_type_is_float(s->of->type);
}

static void load(const lines *s, const char *in, int64_t step, int64_t count, void *out) {
    const int64_t bytes = hlo_types[s->of->type].bytes;
    if (is_native(s))
        hlo_copy_row(s->k->size, in, step * bytes, count, out, bytes);
    else if (s->k->size == sizeof(double))
        hlo_lane_load_f64(s->of->type, in, step * bytes, count, out);
    else
        hlo_lane_load(s->of->type, in, step * bytes, count, out);
}

/* Writes `count` <= TURNED lines of `length` elements as columns. */
static void write_turned(const kernel *k, const char *in, int64_t in_row, int64_t count,
                         int64_t length, char *out, int64_t out_row) {
    const int64_t size = (int64_t)k->size;
    int64_t done = 0;
    for (; count == TURNED && done + TURNED <= length; done += TURNED)
        k->turn(in + done * size, in_row, out + done * out_row * size, out_row);
    for (int64_t i = 0; i < count; i++)
        hlo_copy_row(k->size, in + (i * in_row + done) * size, size, length - done,
                     out + (i + done * out_row) * size, out_row * size);
}

/* Copies and transposes `count` lines of `length` contiguous elements. The lines are `step`
 * elements of the operand apart. Element e of line i goes to out[e * out_row + i]. */
static void load_turned(const lines *s, const char *in, int64_t step, int64_t count, int64_t length,
                        char *out, int64_t out_row) {
    _Alignas(64) double buffer[TURNED * DEPTH];
    const int64_t size = (int64_t)s->k->size, bytes = hlo_types[s->of->type].bytes;
    for (int64_t i = 0; i < count; i += TURNED)
        for (int64_t e = 0; e < length; e += DEPTH) {
            const int64_t n = count - i < TURNED ? count - i : TURNED;
            const int64_t part = length - e < DEPTH ? length - e : DEPTH;
            const char *from = in + (i * step + e) * bytes;
            char *to = out + (e * out_row + i) * size;
            if (is_native(s)) {
                write_turned(s->k, from, step, n, part, to, out_row);
                continue;
            }
            for (int64_t r = 0; r < n; r++)
                load(s, from + r * step * bytes, 1, part, (char *)buffer + r * DEPTH * size);
            write_turned(s->k, (const char *)buffer, DEPTH, n, part, to, out_row);
        }
}

static void pack_rows(const block *b, int64_t first, int64_t last) {
    const hlo_factor *of = &b->product->a;
    const int64_t size = (int64_t)b->k->size, row_size = PITCH * size;
    const int64_t end = last < b->rows ? last : b->rows;
    const lines s = lines_at(b, of, b->a_data, b->row + first);
    char *out = b->a + first * row_size;
    if (of->line == 1 && of->term != 1)
        load_turned(&s, s.data, of->term, b->terms, end - first, out, PITCH);
    else
        for (int64_t i = 0; i < end - first; i++)
            load(&s, s.data + i * of->line * hlo_types[of->type].bytes, of->term, b->terms,
                 out + i * row_size);
    for (int64_t i = end; i < last; i++) memset(b->a + i * row_size, 0, (size_t)(b->terms * size));
}

/* Packs columns of b, if the elements of each term are contiguous, into panels starting at
 * `out`. */
static void pack_across(const lines *s, int64_t count, char *out) {
    _Alignas(64) double buffer[DEPTH];
    const int64_t size = (int64_t)s->k->size, width = s->k->columns;
    const int64_t bytes = hlo_types[s->of->type].bytes;
    for (int64_t done = 0; done < count; done += DEPTH) {
        const int64_t n = count - done < DEPTH ? count - done : DEPTH;
        for (int64_t l = 0; l < s->terms; l++) {
            const char *in = s->data + (l * s->of->term + done) * bytes, *from = in;
            if (!is_native(s)) {
                load(s, in, 1, n, buffer);
                from = (const char *)buffer;
            }
            for (int64_t j = 0; j < n; j += width) {
                char *to = out + ((done + j) * s->terms + l * width) * size;
                const int64_t part = n - j < width ? n - j : width;
                memcpy(to, from + j * size, (size_t)(part * size));
            }
        }
    }
}

/* Packs columns of b into whole panels; the last panel is padded with zeros. */
static void pack_columns(const block *b, int64_t first, int64_t last) {
    const hlo_factor *of = &b->product->b;
    const int64_t size = (int64_t)b->k->size, width = b->k->columns;
    const int64_t end = last < b->columns ? last : b->columns, panel = width * b->terms * size;
    const lines s = lines_at(b, of, b->b_data, b->column + first);
    char *out = b->b + first / width * panel;
    if (end < last) memset(out + (end - first) / width * panel, 0, (size_t)panel);
    if (of->line == 1) {
        pack_across(&s, end - first, out);
        return;
    }
    const int64_t line = of->line * hlo_types[of->type].bytes;
    for (int64_t j = 0; j < end - first; j += width, out += panel) {
        const int64_t n = end - first - j < width ? end - first - j : width;
        const char *in = s.data + j * line;
        if (of->term == 1)
            load_turned(&s, in, of->line, n, b->terms, out, width);
        else
            for (int64_t l = 0; l < b->terms; l++)
                load(&s, in + l * of->term * hlo_types[of->type].bytes, of->line, n,
                     out + l * width * size);
    }
}

static int64_t blocks_of(int64_t count, int64_t size) {
    return (count + size - 1) / size;
}

/* Packs parts of both operands; a part has the rows or the columns of a task. */
static void pack_parts(void *arg, int64_t begin, int64_t end) {
    const block own = *(const block *)arg, *b = &own;
    const int64_t rows = TILES * b->k->rows, columns = TILES * b->k->columns;
    const int64_t row_parts = blocks_of(b->rows, rows);
    const int64_t all_rows = blocks_of(b->rows, b->k->rows) * b->k->rows;
    const int64_t all_columns = blocks_of(b->columns, b->k->columns) * b->k->columns;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i * rows, column = (i - row_parts) * columns;
        if (i < row_parts)
            pack_rows(b, row, row + rows < all_rows ? row + rows : all_rows);
        else
            pack_columns(b, column,
                         column + columns < all_columns ? column + columns : all_columns);
    }
}

static void copy_tile(const char *in, int64_t in_row, char *out, int64_t out_row, int64_t rows,
                      int64_t row_size) {
    for (int64_t i = 0; i < rows; i++) memcpy(out + i * out_row, in + i * in_row, (size_t)row_size);
}

static void multiply_tile(const block *b, int64_t row, int64_t column) {
    const kernel *k = b->k;
    const int64_t size = (int64_t)k->size, n = b->product->n;
    const int64_t rows = b->rows - row < k->rows ? b->rows - row : k->rows;
    const int64_t columns = b->columns - column < k->columns ? b->columns - column : k->columns;
    const char *from_a = b->a + row * PITCH * size, *from_b = b->b + column * b->terms * size;
    char *c = b->c_data + ((b->row + row) * n + b->column + column) * size;
    if (rows == k->rows && columns == k->columns) {
        k->multiply(b->terms, from_a, from_b, c, n, b->term > 0);
        return;
    }
    _Alignas(64) char tile[TILE_BYTES] = {0};
    const int64_t tile_row = k->columns * size;
    if (b->term > 0) copy_tile(c, n * size, tile, tile_row, rows, columns * size);
    k->multiply(b->terms, from_a, from_b, tile, k->columns, b->term > 0);
    copy_tile(tile, tile_row, c, n * size, rows, columns * size);
}

/* Multiplies parts of the product in column order, so that a thread reuses the columns that it has
 * read. */
static void multiply_tiles(void *arg, int64_t begin, int64_t end) {
    const block own = *(const block *)arg, *b = &own;
    const int64_t rows = TILES * b->k->rows, columns = TILES * b->k->columns;
    const int64_t down = blocks_of(b->rows, rows);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % down * rows, column = i / down * columns;
        for (int64_t y = column; y < column + columns && y < b->columns; y += b->k->columns)
            for (int64_t x = row; x < row + rows && x < b->rows; x += b->k->rows)
                multiply_tile(b, x, y);
    }
}

static void share(const hlo_eval_env *env, int64_t count, void (*body)(void *, int64_t, int64_t),
                  block *b) {
    if (env && count > 1)
        env->parallel(env->user, count, body, b);
    else
        body(b, 0, count);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

typedef struct packing {
    const hlo_product *product;
    const kernel *k;
    size_t a, b;         /* bytes of the packed block of a, and of b */
    atomic_bool starved; /* a thread ran out of memory */
} packing;

/* Multiplies one batch, with the threads of `env`; env may be NULL. */
static void multiply_in(const hlo_eval_env *env, const packing *with, char *memory, int64_t batch) {
    const hlo_product *p = with->product;
    block b = {.product = p, .k = with->k, .a = memory, .b = memory + with->a};
    b.a_data = (const char *)p->a.data + batch * p->a.batch * hlo_types[p->a.type].bytes;
    b.b_data = (const char *)p->b.data + batch * p->b.batch * hlo_types[p->b.type].bytes;
    b.c_data = (char *)p->c + batch * p->m * p->n * (int64_t)b.k->size;
    const int64_t rows = TILES * b.k->rows, columns = TILES * b.k->columns;
    for (b.column = 0; b.column < p->n; b.column += COLUMNS)
        for (b.term = 0; b.term < p->k; b.term += DEPTH)
            for (b.row = 0; b.row < p->m; b.row += ROWS) {
                b.rows = least(p->m - b.row, ROWS);
                b.columns = least(p->n - b.column, COLUMNS);
                b.terms = least(p->k - b.term, DEPTH);
                const int64_t down = blocks_of(b.rows, rows);
                const int64_t across = blocks_of(b.columns, columns);
                share(env, b.row ? down : down + across, pack_parts, &b);
                share(env, down * across, multiply_tiles, &b);
            }
}

enum { SMALL = 128 << 10 /* maximum bytes that one thread packs */, LINE = 64 };

/* Allocates memory for the packed blocks, because they may exceed the stack of a thread. */
static void multiply_small(void *arg, int64_t begin, int64_t end) {
    packing *with = arg;
    char *memory = hlo_aligned_alloc(LINE, (with->a + with->b + LINE - 1) / LINE * LINE);
    if (!memory) atomic_store(&with->starved, true);
    for (int64_t batch = begin; memory && batch < end; batch++)
        multiply_in(NULL, with, memory, batch);
    hlo_free(memory);
}

void hlo_product_run(const hlo_eval_env *env, const hlo_product *p, hlo_arena *scratch) {
    enum { WORTH_SHARING = 1 << 19 };
    const kernel *k = kernel_of(p->type);
    const int64_t rows = blocks_of(least(p->m, ROWS), k->rows) * k->rows;
    const int64_t columns = blocks_of(least(p->n, COLUMNS), k->columns) * k->columns;
    packing with = {p, k, (size_t)(rows * PITCH) * k->size,
                    (size_t)(columns * least(p->k, DEPTH)) * k->size, false};
    const double size = (double)p->m * (double)p->n * (double)p->k;
    if (size == 0) {
        const size_t bytes = (size_t)(p->batches * p->m * p->n) * with.k->size;
        if (bytes) memset(p->c, 0, bytes);
        return;
    }
    const bool shares = env->parallel && size * (double)p->batches >= WORTH_SHARING;
    if (with.a + with.b <= SMALL && p->batches > 1 && shares) {
        env->parallel(env->user, p->batches, multiply_small, &with);
        if (with.starved) hlo_arena_exhausted(scratch);
        return;
    }
    hlo_arena_mark mark = hlo_arena_here(scratch);
    char *memory = hlo_arena_alloc(scratch, with.a + with.b + LINE);
    memory += (LINE - (uintptr_t)memory % LINE) % LINE;
    for (int64_t batch = 0; batch < p->batches; batch++)
        multiply_in(shares && size >= WORTH_SHARING ? env : NULL, &with, memory, batch);
    hlo_arena_release(scratch, mark);
}
