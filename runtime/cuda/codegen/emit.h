/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the code generator: the text of one kernel during generation.
 *
 * A kernel iterates over an index space. The value of an instruction at an index is pulled: its
 * operands are pulled at the indices at which it reads them, and so on, up to arrays in memory. A
 * value that was pulled before is in a variable. Every line that only sets a variable records which
 * one; at the end, lines whose variable is never read are dropped. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_EMIT_H
#define HLO_RUNTIME_CUDA_CODEGEN_EMIT_H

#include "ir/module/index_map.h"
#include "runtime/cuda/codegen/kernel.h"

typedef struct cuda_type {
    const char *cell, *compute;
} cuda_type;
extern const cuda_type cuda_types[HLO_TYPE_COUNT]; /* members NULL: not supported in kernels */

enum { CUDA_BLOCK = 256 }; /* threads */

/* ---------------------------------------------------------------------------------------- lines */

typedef struct emit_line {
    const char *target; /* the variable that the line sets, without other effects; NULL: the line is
                         * always kept */
    const char *text;
} emit_line;

typedef struct emit_lines {
    emit_line *v;
    uint32_t count, capacity;
} emit_lines;

/* -------------------------------------------------------------------------------------- indices */

/* A position in an array: for each dimension a variable or a number. Interned: equal positions have
 * the same pointer. */
typedef struct emit_index {
    uint32_t rank;
    const int64_t *dims;
    const char **at;
    const char *linear;            /* sum over at[d] * linear_strides[d]; NULL: unknown */
    const int64_t *linear_strides; /* dense */
} emit_index;

/* ------------------------------------------------------------------------------------ the state */

/* How a kernel reads an operand or writes a result. */
typedef struct emit_access {
    const char *address;   /* of an element; NULL: no access */
    bool elsewhere;        /* it is also accessed at another address */
    uint32_t first, after; /* range of the numbers of accesses to single elements; 0: all accesses
                            * are to packs, and all reads come before all writes */
} emit_access;

/* An operand or a result of the job in a kernel. */
typedef struct emit_array {
    bool occurs; /* it is used in the text */
    bool turned; /* outside of tiles: a thread's elements are not contiguous in it, but those of the
                  * space's dimension `turned_dim` are */
    emit_access access;
} emit_array;

typedef struct emit_memo {
    const hlo_instr *instr;
    const emit_index *index;
    bool cell;
    const char *name;
    uint32_t scope;
} emit_memo;

/* A reduce of the group whose result every thread of the block has in a variable, which replaces
 * pulling. */
typedef struct emit_known {
    const hlo_instr *instr;
    const char *name;
    bool cell; /* `name` is its form in memory */
} emit_known;

typedef struct emit {
    const cuda_device *device;
    const hlo_job *job;
    hlo_arena *arena;
    const char *why;            /* the first reason to fail, or NULL */
    const char *offset;         /* "int" or "int64": the type of indices */
    emit_lines *out;            /* destination of lines */
    emit_lines *around, *inner; /* around the loop over a thread's elements, and inside it */
    emit_lines before, after;   /* loads and stores around the loop over a thread's elements, */
    emit_lines declared;        /* and variables of loads before the loop around that one */
    uint32_t next_name;

    uint32_t scope, next_scope; /* the innermost open scope; numbers are not reused */
    uint32_t open[64], open_count;
    emit_memo *memos;
    uint32_t memo_count, memo_capacity;
    const emit_index **indices;
    uint32_t index_count, index_capacity;
    struct {
        const char *text, *name;
        uint32_t scope;
    } * sums; /* index arithmetic */
    uint32_t sum_count, sum_capacity;

    emit_known *known;
    uint32_t known_count;

    /* Each thread has `width` contiguous elements, at linear indices `base` + u, in the variable
     * `linear`; `base` is a multiple of width. If `minor` is not NULL, they are also at
     * `minor_base` + u in that dimension. `outer` are variables that are equal for all of them. */
    int width;
    const char *linear, *base, *minor, *minor_base;
    const char **outer;
    uint32_t outer_count;
    const char **derived; /* indices that depend only on these */
    uint32_t derived_count, derived_capacity;
    struct {
        const char *name, *first;
    } * moved; /* indices that are multiples of the width after `minor` */
    uint32_t moved_count, moved_capacity;
    struct {
        const char *name, *address;
    } * packs;
    uint32_t pack_count, pack_capacity;
    uint32_t pack_depth; /* scope in which every element runs */
    /* The unrolled loop around that loop: its variable (may be NULL), its trip count, and its first
     * line in `out`. Its first loads are executed for all iterations before anything else. */
    const char *repeat;
    int repeat_count;
    uint32_t repeat_from;

    /* In a tile (loop.c) with `height` rows, starting at `row_base` in the variable `row` (NULL: no
     * tile). `turned`, by result leaf: the packs that collect its cells across the thread's rows,
     * or NULL. `across`: loads of packs across the rows, before the loop over them. */
    const char *row, *row_base;
    int height;
    const char **turned;
    emit_lines across;
    int64_t turned_dim; /* of operands that are `turned`, or -1 */

    emit_array *operands, *results; /* by leaf */
    uint32_t array_count;           /* number of used arrays */
    uint32_t accesses;              /* number of accesses to single elements */
    hlo_overwrites overwrites;      /* pointers of the kernel that may be equal */
} emit;

void emit_init(emit *e, const cuda_device *device, const hlo_job *job, hlo_arena *arena);
/* Begins a kernel: lines go to `lines`, no variable is known, and no array is used. */
void emit_restart(emit *e, emit_lines *lines);
/* Fails, with a reason for cuda_part's `why`. Returns "0". */
const char *emit_refuse(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a line that is always kept. */
#define emit_text(e, ...) emit_set(e, NULL, __VA_ARGS__)
/* Writes a line that is dropped unless `target` is read after it; NULL: it is kept. */
void emit_set(emit *e, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes `const <type> <name> = <value>;` and returns the new name, which starts with `prefix`. */
const char *emit_value(emit *e, const char *prefix, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *emit_name(emit *e, const char *prefix);
/* Opens a block with that line, which ends in `{`. Variables set in the block are forgotten at its
 * end. */
void emit_open(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens an unrolled loop in which `name` counts to `count`. */
void emit_open_unrolled(emit *e, const char *name, int count);
void emit_close(emit *e);
/* Closes a block with that line, which begins with `}`. */
void emit_close_as(emit *e, const char *line);
/* Returns the text of the lines that are not dropped as a kernel body, which begins with a wait for
 * the previous kernels (cuda_launch_kernel()). */
const char *emit_finish(const emit *e, const emit_lines *lines);

/* Returns the variable of an earlier emit_pull() that is in scope, or NULL. */
const char *emit_remembered(const emit *e, const hlo_instr *instr, const emit_index *index,
                            bool cell);
void emit_remember(emit *e, const hlo_instr *instr, const emit_index *index, bool cell,
                   const char *name);

/* Returns the index plus `count` elements. */
const char *emit_behind(emit *e, const char *at, int64_t count);
/* Creates an index variable for the text; numbers and names are returned unchanged. */
const char *emit_offset(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
const emit_index *emit_index_new(emit *e, uint32_t rank, const int64_t *dims, const char *const *at,
                                 const char *linear, const int64_t *linear_strides);
/* Returns the index `at` in an array of the shape. */
const emit_index *emit_index_in(emit *e, const hlo_shape *shape, const char *const *at);
/* Returns the index with the same row-major number in an array of `dims`. */
const emit_index *emit_reshape(emit *e, const emit_index *from, uint32_t rank, const int64_t *dims);
/* Writes the sum over at[d] * strides[d]. */
const char *emit_dot(emit *e, const emit_index *index, const int64_t *strides);
/* Splits a linear index over the dimensions in `order`, the last of which varies slowest. */
void emit_split(emit *e, const char *linear, const int64_t *dims, const uint32_t *order,
                uint32_t count, const char **out_at);

/* --------------------------------------------------------------------------------------- values */

/* Returns the value at an index, or with `cell` its form in memory: a variable or a literal. */
const char *emit_pull(emit *e, const hlo_instr *instr, const emit_index *index, bool cell);
const char *emit_pull_scalar(emit *e, const hlo_instr *instr, bool cell);
/* Writes the element that is a start at run time, clamped, for the result's elements at `index`. */
const char *emit_start(emit *e, const hlo_index_map *map, const hlo_index *x,
                       const emit_index *index);
/* Loads element `k` of the index vector at `place`, which has an index for every dimension of
 * `indices` except `vector`. */
const char *emit_index_element(emit *e, const hlo_instr *indices, int64_t vector, int64_t k,
                               const char *const *place);
/* Load an element of an operand of the job, and of a result, in its form in memory. */
const char *emit_load(emit *e, uint32_t operand, const emit_index *index);
const char *emit_load_result(emit *e, uint32_t result, const emit_index *index);
/* Return the pointer to an operand or a result, `p0` and `q0`, and make it a parameter of the
 * kernel. */
const char *emit_operand(emit *e, uint32_t leaf);
const char *emit_result(emit *e, uint32_t leaf);
/* True if the instruction is in the group; otherwise *out_operand is the leaf of its value. */
bool emit_is_member(const emit *e, const hlo_instr *instr);
uint32_t emit_leaf(const emit *e, const hlo_instr *instr);

/* Stores a cell to a result. */
void emit_store(emit *e, uint32_t result, const emit_index *index, const char *cell);
/* Opens an unrolled loop around the code for each element of a thread: `name` counts to `count`.
 * emit_close() closes it. */
void emit_open_repeat(emit *e, const char *name, int count);
/* Begin and end the code for each element of a thread. Values that are the same for all elements
 * are computed before it, and before the unrolled loop if they are the same there. */
void emit_elements_begin(emit *e, emit_lines *inner);
void emit_elements_end(emit *e);
/* Records the start of a slice or window, an index, if it is the same for all elements of a thread:
 * such indices are derived, and elements from there on may be in packs. */
void emit_note_start(emit *e, const char *name);

/* Evaluates a computation on scalars: `in` are its parameters, `out` receives the leaves of its
 * root: values, or cells. */
void emit_region(emit *e, const hlo_computation *region, const char *const *in, bool in_cells,
                 const char **out, bool out_cells);
/* True if a computation selects, orders or forwards its arguments: it needs cells, in which a NaN
 * keeps its sign. */
bool emit_region_moves(const hlo_computation *region);
/* Returns the expression of an elementwise instruction, before rounding to its type. */
const char *emit_operation(emit *e, const hlo_instr *instr, const char *const *in);
/* Converts `in`, computed as `from`, like HLO's convert. `within`: it cannot exceed the other
 * type's range. */
const char *emit_cast(emit *e, hlo_type from, hlo_type to, bool within, const char *in, bool cell);
/* Rounds an expression to the type. */
const char *emit_round(emit *e, hlo_type type, const char *expression, bool cell);
bool emit_is_wide(hlo_type type); /* cells are values */
const char *emit_cell(emit *e, hlo_type type, const char *value);
const char *emit_decoded(emit *e, hlo_type type, const char *cell);
/* Converts a cell or a value to the requested form. */
const char *emit_as(emit *e, hlo_type type, const char *it, bool is_cell, bool cell);

/* Returns why a computation cannot be a region, or NULL. */
const char *cuda_region_refusal(const hlo_computation *region);
const char *cuda_reduce_refusal(const hlo_instr *instr);
/* True if the reduced dimensions have one element, so that each result is computed from one
 * element, like that of any other instruction. */
bool cuda_reduce_is_single(const hlo_instr *instr);
/* Returns why the instruction cannot be pulled, for cuda_part's `why`, or NULL. */
const char *cuda_pull_refusal(const hlo_instr *instr);
/* ---------------------------------------------------------------------------------------- forms */

/* An index space, with dimensions from the fastest to the slowest in memory. */
typedef struct emit_space {
    uint32_t rank;
    const int64_t *dims;
    int64_t strides[HLO_EVAL_MAX_RANK];
    uint32_t order[HLO_EVAL_MAX_RANK];
    int64_t count;
} emit_space;
emit_space emit_space_of(const hlo_view *view);
enum { EMIT_ACCESS = 16 }; /* maximum bytes of a load or a store */
/* Returns how many elements a pack should have for arrays with these element sizes: as many of the
 * narrowest as one access covers, unless the widest would need more than two accesses. */
int emit_pack_width(int narrowest, int widest);
/* Returns the number of contiguous elements per thread, for a space in which `side` elements are
 * contiguous in memory. */
int emit_width(const emit *e, const emit_space *space, int64_t side);
/* Returns "int" or "int64": the type that can represent `count` and the indices of all leaves and
 * members. */
const char *emit_offset_type(const emit *e, int64_t count);

/* Adds the launch of the kernel whose body is `lines`. Its scratch is t<i>, i < `scratch_count`, of
 * these types and at these offsets. */
typedef struct emit_scratch {
    const char *type;
    size_t offset;
    bool number; /* t<i> is the offset itself, not an address */
} emit_scratch;
cuda_launch emit_launch(emit *e, const char *form, const emit_lines *lines, int64_t blocks,
                        uint32_t scratch_count, const emit_scratch *scratch);

void emit_add_launch(emit *e, cuda_code *code, cuda_launch launch);
/* Adds the launch that copies an operand to a result of the same layout. Returns false if the
 * layouts differ. */
bool emit_copy(emit *e, cuda_code *code, uint32_t from, uint32_t to);
/* Adds the launch of a kernel that copies an operand to a result of another layout. */
void emit_relayout(emit *e, cuda_code *code, uint32_t from, uint32_t to);
/* Returns the index at which a result, with as many elements as the space of `index`, stores the
 * element. If the result transposes an array of the space's dimensions, it is the transposed index;
 * otherwise it has the same row-major number. */
const emit_index *emit_result_index(emit *e, const emit_index *index, const hlo_instr *result);

/* A thread's elements as a rectangle, so that both arrays in the space's order and transposed ones
 * have contiguous elements. */
typedef struct emit_tile {
    uint32_t row, column; /* dimensions of the space: the fastest of the transposed arrays, and of
                           * the space */
    int width, height;    /* number of columns and rows */
    int64_t count;        /* number of tiles in the space */
    const char *row_base, *column_base;
    const char *at[HLO_EVAL_MAX_RANK];
} emit_tile;
/* Finds a tile. Returns false if no result or operand (`turned_dim`) is transposed, or sizes do not
 * allow a tile. */
bool emit_find_tile(emit *e, const emit_space *space, emit_tile *out_tile);
/* Begin and end the code for each element of tile number `number`; NULL: of the tile at `at`,
 * `row_base` and `column_base`. */
const emit_index *emit_tile_begin(emit *e, const emit_space *space, emit_tile *tile,
                                  const char *number, emit_lines *inner);
void emit_tile_end(emit *e, const emit_space *space, const emit_tile *tile);

/* Write the launches of the group into `code`; on failure, set e->why. */
void emit_loop(emit *e, cuda_code *code);
int64_t emit_blocks(const emit *e, int64_t count);
/* Returns the index of a thread's elements, inside the loop over them, to which lines are then
 * written. */
const emit_index *emit_loop_index(emit *e, const emit_space *space, emit_lines *inner);
void emit_loop_end(emit *e, const emit_space *space);
/* Writes an in-place update. Returns false, without writing, if the update is not in place. */
bool emit_update(emit *e, cuda_code *code);
/* Writes each operand of a concatenate by a separate kernel. Returns false, without writing, if one
 * kernel can handle all operands. */
bool emit_parts(emit *e, cuda_code *code);
void emit_reduce(emit *e, cuda_code *code);
void emit_ragged(emit *e, cuda_code *code);
void emit_sort(emit *e, cuda_code *code);
void emit_scatter(emit *e, cuda_code *code);
/* Return why kernels do not support a ragged-dot; a scatter or a sort; or NULL. */
const char *cuda_ragged_refusal(const hlo_instr *instr);
const char *cuda_applied_refusal(const hlo_instr *instr);
/* True if rows are so few and long that several blocks share each row. */
bool cuda_reduce_is_chunked(const hlo_instr *reduce);

/* Texts of device.cuh, ir/float/encode.h, element.cuh, opcodes.cuh and sort.cuh, terminated by
 * NULL; cmake/embed.cmake generates them. */
extern const char *const cuda_helpers[];

#endif
