/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the code generator: the state and functions that write the text of one kernel.
 *
 * A kernel iterates over an index space. To pull the value of an instruction at an index, the
 * generator first pulls the operands at the indices at which the instruction reads them, and so on,
 * up to arrays in memory. A pulled value is kept in a variable. Each line that only sets a variable
 * records the variable. At the end, lines whose variable is never read are dropped. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_EMIT_H
#define HLO_RUNTIME_CUDA_CODEGEN_EMIT_H

#include "ir/module/index_map.h"
#include "runtime/cuda/codegen/kernel.h"

typedef struct cuda_type {
    const char *cell, *compute;
} cuda_type;
extern const cuda_type cuda_types[HLO_TYPE_COUNT]; /* NULL for unsupported types */

enum { CUDA_BLOCK = 256 }; /* threads per block */

/* ---------------------------------------------------------------------------------------- lines */

typedef struct emit_line {
    const char *target; /* the variable that the line only sets, or NULL */
    const char *text;
} emit_line;

typedef struct emit_lines {
    emit_line *v;
    uint32_t count, capacity;
} emit_lines;

/* -------------------------------------------------------------------------------------- indices */

/* A position in an array: for each dimension a variable or a number. Positions are interned: equal
 * positions have the same pointer. */
typedef struct emit_index {
    uint32_t rank;
    const int64_t *dims;
    const char **at;
    const char *linear;            /* the sum over at[d] * linear_strides[d], or NULL */
    const int64_t *linear_strides; /* strides of a dense array */
} emit_index;

/* ------------------------------------------------------------------------------------ the state */

/* How a kernel reads an operand or writes a result. */
typedef struct emit_access {
    const char *address;   /* address of the last accessed element; NULL if there is no access */
    bool elsewhere;        /* an element is also accessed at another address */
    uint32_t first, after; /* first number, and last number plus 1, of accesses to single
                            * elements. 0 if all accesses are to packs; all reads of packs come
                            * before all writes */
} emit_access;

/* An operand or a result of the job in a kernel. */
typedef struct emit_array {
    bool occurs; /* the kernel's text uses the array */
    bool turned; /* outside of tiles: the array's contiguous elements are along the space's
                  * dimension `turned_dim`, not along the thread's elements */
    emit_access access;
} emit_array;

typedef struct emit_memo {
    const hlo_instruction *instr;
    const emit_index *index;
    bool cell;
    const char *name;
    uint32_t scope;
} emit_memo;

/* A reduce of the group whose result is in a variable of every thread of the block. Pulling the
 * reduce returns this variable. */
typedef struct emit_known {
    const hlo_instruction *instr;
    const char *name;
    bool cell; /* `name` has the form in memory */
} emit_known;

typedef struct emit {
    const cuda_device *device;
    const hlo_job *job;
    hlo_arena *arena;
    const char *why;            /* the first reason to fail, or NULL */
    const char *offset;         /* "int" or "int64": the type of indices */
    emit_lines *out;            /* list to which lines are added */
    emit_lines *around, *inner; /* lines around the loop over a thread's elements, and inside it */
    emit_lines before, after;   /* loads before and stores after the loop over elements */
    emit_lines declared;        /* variables of loads, declared before the unrolled loop */
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
    } * sums; /* variables of index arithmetic, for reuse */
    uint32_t sum_count, sum_capacity;

    emit_known *known;
    uint32_t known_count;

    /* Each thread has `width` contiguous elements. Element u has the linear index `base` + u, in
     * the variable `linear`; `base` is a multiple of width. If `minor` is not NULL, it is the
     * variable with the element's index along one dimension, `minor_base` + u. `outer` lists
     * indices that are equal for all elements. */
    int width;
    const char *linear, *base, *minor, *minor_base;
    const char **outer;
    uint32_t outer_count;
    const char **derived; /* indices that depend only on `outer` */
    uint32_t derived_count, derived_capacity;
    struct {
        const char *name, *first;
    } * moved; /* indices that differ from `minor` by a multiple of the width */
    uint32_t moved_count, moved_capacity;
    struct {
        const char *name, *address;
    } * packs;
    uint32_t pack_count, pack_capacity;
    uint32_t pack_depth; /* depth of the scope that runs for each of a thread's elements */
    /* The unrolled loop around the loop over a thread's elements: its variable (NULL if there is no
     * such loop), its trip count, and its first line in `out`. The first loads of all iterations
     * are executed before the loop. */
    const char *repeat;
    int repeat_count;
    uint32_t repeat_from;

    /* For a tile (loop.c) with `height` rows: `row` is the variable with the index of the row,
     * which starts at `row_base`; NULL outside of tiles. `turned` has, for each result leaf, the
     * packs that collect its cells across the thread's rows, or NULL. `across` has loads of packs
     * across the rows, before the loop over the rows. */
    const char *row, *row_base;
    int height;
    const char **turned;
    emit_lines across;
    int64_t turned_dim; /* contiguous dimension of `turned` operands, or -1 */

    emit_array *operands, *results; /* indexed by leaf */
    uint32_t array_count;           /* number of used arrays */
    uint32_t accesses;              /* number of accesses to single elements */
    hlo_overwrites overwrites;      /* pairs of the kernel's pointers that may be equal */
} emit;

void emit_init(emit *e, const cuda_device *device, const hlo_job *job, hlo_arena *arena);
/* Begins a kernel whose lines go to `lines`. Forgets all variables and used arrays. */
void emit_restart(emit *e, emit_lines *lines);
/* Makes the generation fail with `why`, as in cuda_part, unless it failed before. Returns "0". */
const char *emit_refuse(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes a line that is always kept. */
#define emit_text(e, ...) emit_set(e, NULL, __VA_ARGS__)
/* Writes a line that is dropped unless a later line reads `target`; NULL: always kept. */
void emit_set(emit *e, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Writes `const <type> <name> = <value>;` with a new name, which starts with `prefix`. */
const char *emit_value(emit *e, const char *prefix, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *emit_name(emit *e, const char *prefix);
/* Writes a line that ends in `{` and opens a block, at whose end its variables are forgotten. */
void emit_open(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Opens an unrolled loop in which `name` counts to `count`. */
void emit_open_unrolled(emit *e, const char *name, int count);
void emit_close(emit *e);
/* Writes a line that begins with `}` and closes a block. */
void emit_close_as(emit *e, const char *line);
/* Drops unused lines, and returns the remaining lines as the body of a kernel. The body begins with
 * a wait for the previous kernels (cuda_launch_kernel()). */
const char *emit_finish(const emit *e, const emit_lines *lines);

/* Returns the variable of an earlier equal emit_pull() that is in scope, or NULL. */
const char *emit_remembered(const emit *e, const hlo_instruction *instr, const emit_index *index,
                            bool cell);
void emit_remember(emit *e, const hlo_instruction *instr, const emit_index *index, bool cell,
                   const char *name);

/* Returns the index plus `count` elements. */
const char *emit_behind(emit *e, const char *at, int64_t count);
/* Creates an index variable for the text; returns the text itself for a number or a name. */
const char *emit_offset(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
const emit_index *emit_index_new(emit *e, uint32_t rank, const int64_t *dims, const char *const *at,
                                 const char *linear, const int64_t *linear_strides);
/* Returns the index `at` in an array of the shape. */
const emit_index *emit_index_in(emit *e, const hlo_shape *shape, const char *const *at);
/* Returns the index in an array of `dims` that has the row-major number of `from`. */
const emit_index *emit_reshape(emit *e, const emit_index *from, uint32_t rank, const int64_t *dims);
/* Writes the sum over at[d] * strides[d]. */
const char *emit_dot(emit *e, const emit_index *index, const int64_t *strides);
/* Splits a linear index into indices of the dimensions in `order`, fastest first. */
void emit_split(emit *e, const char *linear, const int64_t *dims, const uint32_t *order,
                uint32_t count, const char **out_at);

/* --------------------------------------------------------------------------------------- values */

/* Returns a variable or literal with the value or, if `cell`, the cell of `instr` at an index. */
const char *emit_pull(emit *e, const hlo_instruction *instr, const emit_index *index, bool cell);
const char *emit_pull_scalar(emit *e, const hlo_instruction *instr, bool cell);
/* Loads and clamps the start of a slice or window that is known only at run time, for the result's
 * element at `index`. Returns the index variable of the start. */
const char *emit_start(emit *e, const hlo_index_map *map, const hlo_index *x,
                       const emit_index *index);
/* Loads element `k` of the index vector at `place`. `place` has an index for every dimension of
 * `indices` except `vector`. */
const char *emit_index_element(emit *e, const hlo_instruction *indices, int64_t vector, int64_t k,
                               const char *const *place);
/* Load an element of an operand or of a result of the job, in its form in memory. */
const char *emit_load(emit *e, uint32_t operand, const emit_index *index);
const char *emit_load_result(emit *e, uint32_t result, const emit_index *index);
/* Return the name of the pointer to an operand (`p0`) or a result (`q0`), and make the pointer a
 * parameter of the kernel. */
const char *emit_operand(emit *e, uint32_t leaf);
const char *emit_result(emit *e, uint32_t leaf);
/* emit_is_member() returns true if the instruction is in the group. For an instruction outside,
 * emit_leaf() returns the operand leaf of its value. */
bool emit_is_member(const emit *e, const hlo_instruction *instr);
uint32_t emit_leaf(const emit *e, const hlo_instruction *instr);

void emit_store(emit *e, uint32_t result, const emit_index *index, const char *cell);
/* Opens an unrolled loop around a thread's elements; `name` counts to `count`. See emit_close(). */
void emit_open_repeat(emit *e, const char *name, int count);
/* Begin and end the code for each element of a thread. Values that are equal for all elements are
 * computed before that code. Values that are also equal in all iterations of the unrolled loop are
 * computed before that loop. */
void emit_elements_begin(emit *e, emit_lines *inner);
void emit_elements_end(emit *e);
/* Records `name`, the index variable of the start of a slice or window, as derived if it is equal
 * for all elements of a thread. Elements at offsets from the start may then be in packs. */
void emit_note_start(emit *e, const char *name);

/* Evaluates a computation on scalars. `in` are its parameters, as values or cells; `out` receives
 * the leaves of its root, as values or cells. */
void emit_region(emit *e, const hlo_computation *region, const char *const *in, bool in_cells,
                 const char **out, bool out_cells);
/* True if a computation selects, orders or forwards its arguments. Such a computation needs cells,
 * in which a NaN keeps its sign. */
bool emit_region_moves(const hlo_computation *region);
/* Returns the expression of an elementwise instruction, before rounding to its type. */
const char *emit_operation(emit *e, const hlo_instruction *instr, const char *const *in);
/* Converts `in`, computed as `from`, like HLO's convert. `within`: `in` is in the range of `to`. */
const char *emit_cast(emit *e, hlo_type from, hlo_type to, bool within, const char *in, bool cell);
/* Rounds an expression to the type. */
const char *emit_round(emit *e, hlo_type type, const char *expression, bool cell);
bool emit_is_wide(hlo_type type); /* true if the type's cells are also its values */
const char *emit_cell(emit *e, hlo_type type, const char *value);
const char *emit_decoded(emit *e, hlo_type type, const char *cell);
/* Converts `it`, a cell or a value, to a cell if `cell`, otherwise to a value. */
const char *emit_as(emit *e, hlo_type type, const char *it, bool is_cell, bool cell);

/* Returns why kernels cannot evaluate a computation as a region, or NULL. */
const char *cuda_region_refusal(const hlo_computation *region);
const char *cuda_reduce_refusal(const hlo_instruction *instr);
/* True if the reduced dimensions have only one element. Each result is then computed from one
 * element, like an elementwise instruction's. */
bool cuda_reduce_is_single(const hlo_instruction *instr);
/* Returns why the instruction cannot be pulled, for cuda_part's `why`, or NULL. */
const char *cuda_pull_refusal(const hlo_instruction *instr);
/* ---------------------------------------------------------------------------------------- forms */

/* The index space of a kernel. `order` has its dimensions from fastest to slowest in memory. */
typedef struct emit_space {
    uint32_t rank;
    const int64_t *dims;
    int64_t strides[HLO_EVAL_MAX_RANK];
    uint32_t order[HLO_EVAL_MAX_RANK];
    int64_t count;
} emit_space;
emit_space emit_space_of(const hlo_view *view);
enum { EMIT_ACCESS = 16 }; /* maximum bytes of a load or a store */
/* Returns how many elements a pack should have for arrays with these element sizes in bytes. One
 * access covers a pack of the narrowest elements, unless a pack of the widest elements would then
 * need more than two accesses. */
int emit_pack_width(int narrowest, int widest);
/* Returns the number of contiguous elements per thread, for a space in which runs of `side`
 * elements are contiguous in memory. */
int emit_width(const emit *e, const emit_space *space, int64_t side);
/* Returns "int" or "int64": the type that represents `count` and the indices of all arrays. */
const char *emit_offset_type(const emit *e, int64_t count);

/* A scratch array of a kernel, t<i>. */
typedef struct emit_scratch {
    const char *type;
    size_t offset;
    bool number; /* t<i> is the offset itself, not an address */
} emit_scratch;
/* Returns the launch of a kernel whose body is `lines`. */
cuda_launch emit_launch(emit *e, const char *form, const emit_lines *lines, int64_t blocks,
                        uint32_t scratch_count, const emit_scratch *scratch);

void emit_add_launch(emit *e, cuda_code *code, cuda_launch launch);
/* Adds the launch that copies an operand to a result. Returns false if their layouts differ. */
bool emit_copy(emit *e, cuda_code *code, uint32_t from, uint32_t to);
/* Adds the launch of a kernel that copies an operand to a result in another layout. */
void emit_relayout(emit *e, cuda_code *code, uint32_t from, uint32_t to);
/* Returns the index at which a result stores the element at `index` of the space. The result and
 * the space have the same number of elements. If the result transposes an array of the space's
 * dimensions, returns the transposed index, otherwise the index with the same row-major number. */
const emit_index *emit_result_index(emit *e, const emit_index *index,
                                    const hlo_instruction *result);

/* A rectangle of elements that one thread computes: the elements are contiguous both in arrays of
 * the space's memory order and in transposed arrays. */
typedef struct emit_tile {
    uint32_t row, column; /* the fastest dimension of the transposed arrays, and that of the space,
                           * both as dimensions of the space */
    int width, height;    /* number of columns and rows */
    int64_t count;        /* number of tiles in the space */
    const char *row_base, *column_base;
    const char *at[HLO_EVAL_MAX_RANK];
} emit_tile;
/* Finds a tile. Returns false if neither a result nor an operand (`turned_dim`) is transposed, or
 * if the sizes do not allow a tile. */
bool emit_find_tile(emit *e, const emit_space *space, emit_tile *out_tile);
/* Begin and end the code for each element of a tile: the tile with number `number` or, if that is
 * NULL, the tile at tile->at, row_base and column_base. */
const emit_index *emit_tile_begin(emit *e, const emit_space *space, emit_tile *tile,
                                  const char *number, emit_lines *inner);
void emit_tile_end(emit *e, const emit_space *space, const emit_tile *tile);

/* Write the launches of the group into `code`; on failure, set e->why. */
void emit_loop(emit *e, cuda_code *code);
int64_t emit_blocks(const emit *e, int64_t count);
/* Opens the loop over a thread's elements, to which later lines are written, and returns the index
 * of the loop's element. */
const emit_index *emit_loop_index(emit *e, const emit_space *space, emit_lines *inner);
void emit_loop_end(emit *e, const emit_space *space);
/* Writes the launches of a dynamic-update-slice in place. Returns false, without adding launches,
 * if the update cannot be in place. */
bool emit_update(emit *e, cuda_code *code);
/* Writes a separate kernel for each operand of a concatenate. Returns false, without writing, if
 * one kernel can handle all operands. */
bool emit_parts(emit *e, cuda_code *code);
void emit_reduce(emit *e, cuda_code *code);
void emit_ragged(emit *e, cuda_code *code);
void emit_sort(emit *e, cuda_code *code);
void emit_scatter(emit *e, cuda_code *code);
/* Return why kernels do not support a ragged-dot, or a scatter or sort, or NULL. */
const char *cuda_ragged_refusal(const hlo_instruction *instr);
const char *cuda_applied_refusal(const hlo_instruction *instr);
/* True if the reduce has so few and long rows that several blocks share each row. */
bool cuda_reduce_is_chunked(const hlo_instruction *reduce);

/* Texts of device.cuh, ir/float/encode.h, element.cuh, opcodes.cuh and sort.cuh, terminated by
 * NULL. cmake/embed.cmake generates the array. */
extern const char *const cuda_helpers[];

#endif
