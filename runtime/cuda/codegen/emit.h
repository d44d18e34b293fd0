/* The inside of the code generator: the text of one kernel as it is written.
 *
 * A kernel runs through an index space. The value of an instruction at an index is pulled: its
 * operands are pulled at the indices that it reads them at, and so on, up to arrays in memory.
 * What was pulled already is a variable. Every line that only sets a variable knows which one; in
 * the end those that nobody reads are left out. */
#ifndef HLO_RUNTIME_CUDA_KERNEL_EMIT_H
#define HLO_RUNTIME_CUDA_KERNEL_EMIT_H

#include "runtime/cuda/codegen/kernel.h"

typedef struct cuda_type {
    const char *cell, *compute;
} cuda_type;
extern const cuda_type cuda_types[HLO_TYPE_COUNT]; /* members NULL: no kernels */

enum { CUDA_BLOCK = 256 }; /* threads */

/* ---------------------------------------------------------------------------------------- lines */

typedef struct emit_line {
    const char *target; /* the variable that it sets and that is all it does; NULL: stays */
    const char *text;
} emit_line;

typedef struct emit_lines {
    emit_line *v;
    uint32_t count, capacity;
} emit_lines;

/* -------------------------------------------------------------------------------------- indices */

/* Where in an array: for each dimension a variable or a number. Interned: equal ones are the same
 * pointer. */
typedef struct emit_index {
    uint32_t rank;
    const int64_t *dims;
    const char **at;
    const char *linear;            /* sum over at[d] * linear_strides[d]; NULL: not known */
    const int64_t *linear_strides; /* dense */
} emit_index;

/* ------------------------------------------------------------------------------------ the state */

typedef struct emit_memo {
    const hlo_instr *instr;
    const emit_index *index;
    bool cell;
    const char *name;
    uint32_t scope;
} emit_memo;

/* A reduce in the group whose value the whole block knows: it is this variable, in place of what
 * pulling would give. */
typedef struct emit_known {
    const hlo_instr *instr;
    const char *name;
} emit_known;

typedef struct emit {
    const cuda_device *device;
    const hlo_job *job;
    hlo_arena *arena;
    const char *why;            /* the first reason to give up; NULL: none */
    const char *offset;         /* "int" or "int64": the type of indices */
    emit_lines *out;            /* where lines go */
    emit_lines *around, *inner; /* of the elements of a thread */
    emit_lines before, after;   /* loads and stores around the loop over a thread's elements */
    uint32_t next_name;

    uint32_t scope, next_scope; /* the innermost open one; numbers are not used again */
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

    /* Each thread has `width` elements side by side: those at a linear index `base` + u, where
     * `linear` is the variable of it; `base` is a multiple of width. In the dimension `minor`, when
     * it is not NULL, they are at `minor_base` + u as well. `outer` are variables that are the same
     * for all of them. */
    int width;
    const char *linear, *base, *minor, *minor_base;
    const char **outer;
    uint32_t outer_count;
    struct {
        const char *name, *address;
    } * packs;
    uint32_t pack_count, pack_capacity;
    uint32_t pack_depth; /* of the scope that every element runs through */

    /* In a tile (tile.c), by result leaf: the packs that its cells are put into across the
     * thread's rows; NULL, or an element NULL: none. */
    const char **turned;

    bool uses[2][256]; /* operand and result leaves that the text names */
} emit;

void emit_init(emit *e, const cuda_device *device, const hlo_job *job, hlo_arena *arena);
/* A kernel begins: lines go there, and no variable is known. */
void emit_restart(emit *e, emit_lines *lines);
/* Gives up, for a reason as cuda_part has it. Returns "0". */
const char *emit_refuse(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line that stays. */
void emit_text(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line that matters only when `target` is read behind it. */
void emit_set(emit *e, const char *target, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `const <type> <name> = <value>;`; returns the new name, which starts with `prefix`. */
const char *emit_value(emit *e, const char *prefix, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
const char *emit_name(emit *e, const char *prefix);
/* Opens a block with that line, which ends in `{`; what is set in it is forgotten at its end. */
void emit_open(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
void emit_close(emit *e);
/* The text of what is left of the lines. */
const char *emit_finish(const emit *e, const emit_lines *lines);

/* What emit_pull() gave before, where that can still be used; NULL: nothing. */
const char *emit_remembered(const emit *e, const hlo_instr *instr, const emit_index *index,
                            bool cell);
void emit_remember(emit *e, const hlo_instr *instr, const emit_index *index, bool cell,
                   const char *name);

/* `name` as an index variable that is `text`; numbers and names stay what they are. */
const char *emit_offset(emit *e, const char *format, ...) __attribute__((format(printf, 2, 3)));
const emit_index *emit_index_new(emit *e, uint32_t rank, const int64_t *dims, const char *const *at,
                                 const char *linear, const int64_t *linear_strides);
/* The index at which the same element, counted in row-major order, is in an array of `dims`. */
const emit_index *emit_reshape(emit *e, const emit_index *from, uint32_t rank, const int64_t *dims);
/* sum over at[d] * strides[d]. */
const char *emit_dot(emit *e, const emit_index *index, const int64_t *strides);
/* The dimensions' variables from a linear index over those that `chosen` (NULL: all) picks, the
 * last of `order` (minor to major) slowest. */
void emit_split(emit *e, const char *linear, const int64_t *dims, const uint32_t *order,
                uint32_t count, const char **out_at);

/* --------------------------------------------------------------------------------------- values */

/* The value at an index, or what it is in memory (`cell`): a variable or a literal. */
const char *emit_pull(emit *e, const hlo_instr *instr, const emit_index *index, bool cell);
const char *emit_pull_scalar(emit *e, const hlo_instr *instr);
/* Where a dynamic slice starts, for each dimension: operand `first` and those behind it, or the
 * vector that it is; brought into bounds. */
void emit_starts(emit *e, const hlo_instr *instr, uint32_t first, uint32_t rank,
                 const int64_t *dims, const int64_t *sizes, const char **out_start);
/* Element `k` of the index vector at `place`, which has an index for every dimension of `indices`
 * but `vector`. */
const char *emit_index_element(emit *e, const hlo_instr *indices, int64_t vector, int64_t k,
                               const char *const *place);
/* An element of a leaf of the job. */
const char *emit_load(emit *e, uint32_t operand, const emit_index *index, bool cell);
/* `q0`: the pointer to a result, which becomes a parameter of the kernel. */
const char *emit_result(emit *e, uint32_t leaf);
/* Whether the instruction is one of the group; if not, the leaf where its value is. */
bool emit_is_member(const emit *e, const hlo_instr *instr);
uint32_t emit_leaf(const emit *e, const hlo_instr *instr);

/* Writes a cell to a result. */
void emit_store(emit *e, uint32_t result, const emit_index *index, const char *cell);
/* Around what is done for each of a thread's elements. */
void emit_elements_begin(emit *e, emit_lines *inner);
void emit_elements_end(emit *e);

/* The result of a computation on scalars: `in` are its parameters' values, `out` gets the values
 * of the leaves of its root. */
void emit_region(emit *e, const hlo_computation *region, const char *const *in, const char **out);
/* Whether an elementwise instruction looks at its operands' cells, and not at their values. */
bool emit_takes_codes(const hlo_instr *instr);
/* The expression of one elementwise instruction, not yet rounded to its type. */
const char *emit_operation(emit *e, const hlo_instr *instr, const char *const *in);
/* The same as a variable, rounded: a value or a cell. */
const char *emit_elementwise(emit *e, const hlo_instr *instr, const char *const *in, bool cell);
/* `in`, computed as `from` is, as HLO's convert makes it the other type; `within`: it is sure not
 * to be too large for that. */
const char *emit_cast(emit *e, hlo_type from, hlo_type to, bool within, const char *in, bool cell);
/* Rounds an expression to the type. */
const char *emit_round(emit *e, hlo_type type, const char *expression, bool cell);
bool emit_is_wide(hlo_type type); /* cells are values */
const char *emit_cell(emit *e, hlo_type type, const char *value);
const char *emit_decoded(emit *e, hlo_type type, const char *cell);
/* An element of a constant, as a value. */
const char *emit_literal(emit *e, const hlo_literal *literal, int64_t index);

/* NULL when a computation can be a region. */
const char *cuda_region_refusal(const hlo_computation *region);
const char *cuda_reduce_refusal(const hlo_instr *instr);
const char *cuda_elementwise_refusal(const hlo_instr *instr);
/* NULL when the instruction can be pulled; else why not, as cuda_part has it. */
const char *cuda_pull_refusal(const hlo_instr *instr);
/* ---------------------------------------------------------------------------------------- forms */

/* A number of elements of an array, counted through its dimensions from the fastest in memory to
 * the slowest. */
typedef struct emit_space {
    uint32_t rank;
    const int64_t *dims;
    int64_t strides[HLO_EVAL_MAX_RANK];
    uint32_t order[HLO_EVAL_MAX_RANK];
    int64_t count;
} emit_space;
emit_space emit_space_of(const hlo_view *view);
/* How many elements one thread should have side by side when that many are run through in all and
 * `side` of them are side by side in memory. */
int emit_width(const emit *e, const emit_space *space, int64_t side);
/* "int" or "int64": what can count the elements of all leaves, and `count`. */
const char *emit_offset_type(const emit *e, int64_t count);

/* The launch of the kernel whose body is `lines`. The scratch that it uses is t<i>, i below
 * `scratch_count`, of the types and at the offsets given. */
typedef struct emit_scratch {
    const char *type;
    size_t offset;
} emit_scratch;
cuda_launch emit_launch(emit *e, const char *form, const emit_lines *lines, int64_t blocks,
                        uint32_t scratch_count, const emit_scratch *scratch);

void emit_add_launch(emit *e, cuda_code *code, cuda_launch launch);
/* The launch that copies an operand to a result of the same layout; false: it has another. */
bool emit_copy(emit *e, cuda_code *code, uint32_t from, uint32_t to);
/* The index at which a result, which has as many elements as the space that `index` is in, is
 * written with the element there. What transposes an array of the space's dimensions writes the
 * same element; else it is the one of the same number. */
const emit_index *emit_result_index(emit *e, const emit_index *index, const hlo_instr *result);

/* A thread's elements as a square, so that what is written in the order of the space and what is
 * written transposed both lie side by side in memory. */
typedef struct emit_tile {
    uint32_t row, column; /* dimensions of the space: the fastest of the transposed results, and the
                             space's own */
    int width;            /* rows, and columns */
    int64_t count;        /* squares in the space */
    const char *row_base, *column_base;
    const char *at[HLO_EVAL_MAX_RANK];
    int64_t strides[HLO_EVAL_MAX_RANK];
} emit_tile;
/* False: no result is transposed, or sizes do not allow it. */
bool emit_find_tile(emit *e, const emit_space *space, emit_tile *out_tile);
/* Around what is done for each element of square number `square`. */
const emit_index *emit_tile_begin(emit *e, const emit_space *space, emit_tile *tile,
                                  const char *square, emit_lines *inner);
void emit_tile_end(emit *e, const emit_space *space, const emit_tile *tile);

/* Each writes the launches of the group into `code`; e->why says when it cannot. */
void emit_loop(emit *e, cuda_code *code);
int64_t emit_blocks(const emit *e, int64_t count);
/* The index of a thread's elements, inside the loop over them, where lines then go. */
const emit_index *emit_loop_index(emit *e, const emit_space *space, emit_lines *inner);
/* False, and nothing is written: the update is not in place. */
bool emit_update(emit *e, cuda_code *code);
void emit_reduce(emit *e, cuda_code *code);
/* Whether rows are so few and long that several blocks share each. */
bool cuda_reduce_is_chunked(const hlo_instr *reduce);
void emit_scatter(emit *e, cuda_code *code);
void emit_sort(emit *e, cuda_code *code);
/* NULL when they can. */
const char *cuda_scatter_refusal(const hlo_instr *instr);
const char *cuda_sort_refusal(const hlo_instr *instr);

/* The texts of device.cuh, ir/float/encode.h, element.cuh and opcodes.cuh, ended by NULL;
 * cmake/embed.cmake makes them. */
extern const char *const cuda_helpers[];

#endif
