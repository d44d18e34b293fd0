/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the evaluator: the kernels named in op.def's `eval` column, and their building
 * blocks.
 *
 * Lanes are the few C types in which elements are computed: arithmetic is implemented per lane, not
 * per element type. A kernel loads a chunk of a strided row into a lane buffer, works on contiguous
 * memory, and stores the chunk. The store rounds or wraps to the element type. */
#ifndef HLO_IR_KERNEL_KERNEL_H
#define HLO_IR_KERNEL_KERNEL_H

#include <math.h>

#include "ir/kernel/view.h"
#include "ir/module/ragged.h"

/* ------------------------------------------------------------------------------------ the table */

typedef struct hlo_call {
    const hlo_eval_env *env; /* never NULL */
    const hlo_instruction *instr;
    const hlo_view *operands, *results;
    uint32_t operand_count, result_count;
    hlo_arena *scratch;
    const char *why;
    int64_t work; /* see hlo_call_goes_on() */
    bool stopped;
} hlo_call;

typedef enum hlo_lane {
    HLO_LANE_F32, /* floats of at most 32 bits */
    HLO_LANE_F64,
    HLO_LANE_S64,  /* signed integers, sign extended */
    HLO_LANE_U64,  /* unsigned integers and pred (0 or 1), zero extended */
    HLO_LANE_C128, /* both complex types */
    HLO_LANE_COUNT,
    HLO_LANE_NONE = HLO_LANE_COUNT
} hlo_lane;

/* One run of an elementwise loop. */
typedef struct hlo_lanes {
    int64_t count;
    const void *in[3];
    void *out;
    int bits;                     /* number of bits of the element type */
    uint64_t sign;                /* sign bit of a float whose code is in the lanes; otherwise 0 */
    bool signed_zero;             /* the float type has -0; otherwise the code of -0 is its NaN */
    const hlo_instruction *instr; /* the instruction, for its attributes */
} hlo_lanes;
typedef void hlo_loop(const hlo_lanes *lanes);

typedef enum hlo_out { HLO_OUT_SAME, HLO_OUT_PRED, HLO_OUT_REAL, HLO_OUT_COMPLEX } hlo_out;

/* An elementwise operation: a loop for every lane that the operation supports. The lane of the last
 * operand selects the loop; only operand 0 of select has a different lane. Operations that read or
 * move bits work on codes, which are floats loaded as unsigned integers. */
typedef struct hlo_elementwise {
    uint8_t arity;
    uint8_t out;   /* an hlo_out: the lane of the result is that of the operands, U64, F64 or
                    * C128 */
    float ulps;    /* the error of a good implementation, in units of roundoff of the computed type;
                    * 0 if the result is exact or not rounded */
    uint8_t codes; /* floats of at most this width in bits are loaded and stored as their codes */
    hlo_loop *loop[HLO_LANE_COUNT];
} hlo_elementwise;

/* FORM(id, name, overflows): the forms of error propagation from operands to results (ir/error/).
 * `overflows`: the rule handles operands that overflowed. */
#define HLO_ERROR_FORMS(FORM)                                                                      \
    FORM(EXACT, exact, true)                                                                       \
    FORM(ELEMENTWISE, elementwise, true)                                                           \
    FORM(COMPARE_OP, compare_op, true)                                                             \
    FORM(CONVERT, convert, true)                                                                   \
    FORM(MOVE, move, true)                                                                         \
    FORM(DOT, dot, true)                                                                           \
    FORM(CONVOLUTION, convolution, false)                                                          \
    FORM(RAGGED_DOT, ragged_dot, true)                                                             \
    FORM(REDUCE, reduce, false)                                                                    \
    FORM(SCATTER, scatter, false)                                                                  \
    FORM(FFT, fft, false)                                                                          \
    FORM(INDEXED, indexed, true)                                                                   \
    FORM(SORT, sort, false)                                                                        \
    FORM(TOPK, topk, false)                                                                        \
    FORM(MOVED, moved, false)
typedef enum hlo_error_form {
#define FORM(id, name, overflows) HLO_ERROR_##id,
    HLO_ERROR_FORMS(FORM)
#undef FORM
} hlo_error_form;

/* A kernel. The kernel of an opcode is hlo_eval_<eval>, by the `eval` column of op.def. */
typedef struct hlo_kernel {
    hlo_status (*run)(hlo_call *call);
    hlo_error_form error;
    const hlo_elementwise *ops;                /* the operations of an elementwise opcode */
    int (*pick)(const hlo_instruction *instr); /* returns the index in `ops`, or -1 if no element
                                                * fits; NULL: `ops` has one element */
    const char *(*refuse)(
        const hlo_instruction *instr); /* returns why the kernel does not support `instr`; NULL: the
                                        * kernel supports all that the shape rule allows */
} hlo_kernel;

#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    extern const hlo_kernel hlo_eval_##eval;
#include "ir/table/op.def"
#undef HLO_OP

/* Sets call->why and returns HLO_INVALID_INPUT. */
hlo_status hlo_call_refuse(hlo_call *call, const char *why);
/* Adds the number of elements that the kernel has computed since the last call, and calls the watch
 * when enough have been added. Returns false if the kernel should return, whatever its results are.
 * Must be called on the thread of the kernel, outside of parallel(). */
bool hlo_call_goes_on(hlo_call *call, int64_t elements);

/* ---------------------------------------------------------------------------------------- lanes */

enum { HLO_CHUNK = 256 }; /* maximum number of elements in a chunk */

static inline int64_t hlo_chunk_size(int64_t left) {
    return left < HLO_CHUNK ? left : HLO_CHUNK;
}

/* A chunk in any lane. */
typedef union hlo_chunk {
    float f32[HLO_CHUNK];
    double f64[HLO_CHUNK];
    int64_t s64[HLO_CHUNK];
    uint64_t u64[HLO_CHUNK];
    double _Complex c128[HLO_CHUNK];
} hlo_chunk;

hlo_lane hlo_lane_of(hlo_type type); /* returns HLO_LANE_NONE for types without elements */
size_t hlo_lane_size(hlo_lane lane);
bool hlo_type_is_lane(hlo_type type); /* true if elements in memory are lanes */
/* Load or store `count` elements, `step` bytes apart, in the lane of the type. The store rounds
 * floats to nearest even and wraps integers. */
void hlo_lane_load(hlo_type type, const void *in, int64_t step, int64_t count, void *out_lanes);
void hlo_lane_store(hlo_type type, const void *lanes, int64_t count, void *out, int64_t step);
/* Return the larger or smaller of two floats, or NaN if one is NaN. -0 is below 0. */
#define HLO_LARGER(x, y) (((x) > (y)) | ((x) != (x)) | (((x) == (y)) & !signbit(x)) ? (x) : (y))
#define HLO_SMALLER(x, y) (((x) < (y)) | ((x) != (x)) | (((x) == (y)) & !!signbit(x)) ? (x) : (y))
/* Casts between lanes as C does, except that NaN and out-of-range numbers are cast to integers as
 * HLO's convert does. */
void hlo_lane_cast(hlo_lane from, hlo_lane to, const void *in, int64_t count, void *out);
void hlo_lane_saturate(hlo_type type, void *lanes, int64_t count);
/* Returns the lanes of a row: the row itself if its elements are contiguous lanes, otherwise
 * `buffer`, after filling it. */
const void *hlo_lane_view(hlo_type type, const void *in, int64_t step, int64_t count,
                          hlo_chunk *buffer);
void hlo_lane_load_f64(hlo_type type, const void *in, int64_t step, int64_t count, double *out);

typedef struct hlo_lane_op {
    const hlo_instruction *instr;
    hlo_loop *loop;
    uint32_t arity;
    uint64_t sign; /* see hlo_lanes */
    bool signed_zero;
    hlo_type types[3], result; /* types in which elements are loaded and stored */
    hlo_lane produced;
} hlo_lane_op;
/* Finds the loop of `instr` for elements of these types. Returns the reason if there is no such
 * loop, otherwise NULL. */
const char *hlo_lane_op_init(hlo_lane_op *op, const hlo_instruction *instr,
                             const hlo_type *operands, hlo_type result);
/* Computes `count` lanes without rounding or wrapping them to the result's type. `out` may be one
 * of `in`. */
void hlo_lane_op_run(const hlo_lane_op *op, int64_t count, const void *const *in, void *out);
/* Converts `count` lanes of elements of type `from` and stores them as `to`, as HLO's convert does.
 */
void hlo_lane_convert(hlo_type from, hlo_type to, const void *lanes, int64_t count, void *out,
                      int64_t step);

/* ---------------------------------------------------------------------------------------- loops */

enum { HLO_LOOP_VIEWS = 16 };

/* A loop over several views of equal dimensions. Dimensions of size 1 are dropped; the others are
 * ordered by the strides of view 0 (then 1, ...) and merged if all views allow it. */
typedef struct hlo_strided_loop {
    uint32_t rank, views;
    int64_t dims[HLO_EVAL_MAX_RANK];
    int64_t steps[HLO_LOOP_VIEWS][HLO_EVAL_MAX_RANK]; /* in bytes */
    char *data[HLO_LOOP_VIEWS];
    int64_t count; /* total number of elements of a view */
} hlo_strided_loop;

/* A row: `count` elements of each view, starting at data[v], steps[v] bytes apart. */
typedef void hlo_strided_loop_body(void *arg, int64_t count, char *const *data,
                                   const int64_t *steps);

/* Plans the loop. Each view has the dimensions of view 0, or has rank 0, so that its element is
 * repeated. */
void hlo_strided_loop_init(hlo_strided_loop *loop, uint32_t views, const hlo_view *const *view);
/* Runs the loop; if it is long, on several threads, each with a range of one dimension along which
 * view `written` has a nonzero stride. */
void hlo_strided_loop_run(const hlo_eval_env *env, const hlo_strided_loop *loop, uint32_t written,
                          hlo_strided_loop_body *body, void *arg);
/* Plans and runs a loop that writes view 0. If `env` is NULL, runs it on the calling thread. */
void hlo_views_run(const hlo_eval_env *env, uint32_t views, const hlo_view *const *view,
                   hlo_strided_loop_body *body, void *arg);

/* Copies `count` elements of `size` bytes, `in_step` and `out_step` bytes apart. */
void hlo_copy_row(size_t size, const char *in, int64_t in_step, int64_t count, char *out,
                  int64_t out_step);

/* ---------------------------------------------------------------------------------------- views */

typedef struct hlo_dims {
    int64_t v[HLO_EVAL_MAX_RANK];
} hlo_dims;

int64_t hlo_view_count(const hlo_view *view);
size_t hlo_view_bytes(const hlo_view *view);
char *hlo_view_element(const hlo_view *view, const int64_t *index);
/* Moves to the next index below `dims`, in row-major order. After the last one, returns false and
 * resets to the first. */
bool hlo_dims_next(uint32_t rank, const int64_t *dims, int64_t *index);
void hlo_view_dense(const hlo_view *view, hlo_dims *out_strides);
/* True if the array has row-major strides. The stride of a dimension of one element may be any. */
bool hlo_view_is_dense(const hlo_view *view);
/* Loads an element of an array of integers. `offset` counts elements. */
int64_t hlo_view_integer(const hlo_view *view, int64_t offset);
/* Allocates a row-major array in scratch memory, with the dimensions of `like`. */
hlo_view hlo_view_scratch(hlo_arena *scratch, hlo_type type, const hlo_view *like);
/* Returns the view of a part: `dims` elements along each dimension, starting at `start`, `steps`
 * apart (NULL: 1). The arrays must outlive the result. */
hlo_view hlo_view_part(const hlo_view *view, const int64_t *start, const int64_t *dims,
                       const int64_t *steps, hlo_dims *out_strides);
/* Copies elements of equal size; `in` may be a scalar. */
void hlo_view_copy(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out);
/* Copies and converts elements, as HLO's convert does. */
void hlo_view_convert(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out);
/* Copies in row-major order between arrays with equal numbers of elements. */
void hlo_view_reshape(const hlo_call *call, const hlo_view *in, const hlo_view *out);
/* Converts the representation of elements that were copied from an array of type `from`, which has
 * the same width as the view's type. Below 8 bits, only signed elements are sign extended. */
void hlo_view_retype(const hlo_view *view, hlo_type from);
/* Returns a view of `in` with out.dims[i] = in.dims[order[i]]. */
hlo_view hlo_view_permute(const hlo_view *in, const int64_t *order, hlo_dims *out_dims,
                          hlo_dims *out_strides);
/* Returns a view of `in` as [first, the other dimensions in order, last]. */
hlo_view hlo_view_group(const hlo_view *in, const hlo_ints *first, const hlo_ints *last,
                        hlo_dims *out_dims, hlo_dims *out_strides);
static inline char *hlo_view_at(const hlo_view *view, int64_t offset) {
    return (char *)view->data + offset * hlo_types[view->type].bytes;
}

/* ------------------------------------------------------------------------------------- products */

/* An operand of a product: lines (rows of the left operand, columns of the right one) of terms.
 * Distances are in elements. */
typedef struct hlo_factor {
    hlo_type type;
    const void *data;
    int64_t batch, line, term; /* distance from one batch, line or term to the next */
} hlo_factor;

/* Products of matrices: c[i][j] = sum over l of a.data[i * a.line + l * a.term] * b.data[j * b.line
 * + l * b.term], for i < m, j < n, l < k, in each batch. c is dense, of `type`: f32 for floats of
 * at most 32 bits, or f64. */
typedef struct hlo_product {
    hlo_type type;
    int64_t batches, m, n, k;
    hlo_factor a, b;
    void *c;
} hlo_product;
/* Returns the name of the processor level of the selected inner loop. */
const char *hlo_product_processor(void);
void hlo_product_run(const hlo_eval_env *env, const hlo_product *product, hlo_arena *scratch);

/* bits.c: computes Philox-4x32 with 10 rounds. The counter has its low word first. */
void hlo_philox(const uint64_t counter[2], uint64_t key, uint32_t out[4]);

/* -------------------------------------------------------------------------------------- windows */

/* One dimension of a window, from `window={size=.. stride=.. ...}`. The kernel of a convolution
 * with `convolution_kind=dgrad` is also reversed: XLA removes the reversal of the kernel when it
 * sets this kind. */
typedef struct hlo_window {
    int64_t size, stride, low, high, base, dilate;
    bool reversed;
} hlo_window;
hlo_window hlo_window_of(const hlo_instruction *instr, uint32_t dim);

/* Results that read an element of the input through position `at` of the window: results `out` + i
 * * `out_step` read elements `in` + i * `in_step`, for i < `count`. */
typedef struct hlo_window_reads {
    int64_t out, out_step, in, in_step, count;
} hlo_window_reads;
hlo_window_reads hlo_window_reads_of(const hlo_window *window, int64_t at, int64_t in_dim,
                                     int64_t out_dim);

/* The positions of a window at which a result reads an element, in ascending order. Other positions
 * are not listed, because windows may be far larger than the input. */
typedef struct hlo_window_positions {
    const int64_t *v;
    int64_t count;
} hlo_window_positions;
hlo_window_positions hlo_window_positions_of(const hlo_window *window, int64_t in_dim,
                                             int64_t out_dim, hlo_arena *arena);

/* A convolution as products of matrices, one for each group of features or batches. The operands
 * are [group, batch, position.., window.., features] and [group, window.., features, output
 * features]. The result is [group, batch, position.., output features]. */
typedef struct hlo_convolution {
    const hlo_instruction *instr;
    uint32_t spatial; /* number of spatial dimensions */
    int64_t groups;
    bool batches;                     /* the groups divide the batches, not the features */
    const int64_t *in, *kernel, *out; /* dimension numbers: hlo_dim_labels_read() */
    hlo_dot_dims dims;
} hlo_convolution;
/* Reads a convolution. Allocates from scratch. Returns why the convolution is not supported, or
 * NULL. */
const char *hlo_convolution_read(const hlo_call *call, hlo_convolution *out);
/* Copies the input's elements to the positions of the product's left operand, with zeros
 * elsewhere. */
hlo_view hlo_convolution_lhs(const hlo_convolution *c, const hlo_call *call, const hlo_view *in);
/* Views the kernel or the result as the product's right operand or result. */
hlo_view hlo_convolution_rhs(const hlo_convolution *c, const hlo_view *kernel, hlo_dims *dims,
                             hlo_dims *strides);
hlo_view hlo_convolution_result(const hlo_convolution *c, const hlo_view *result, hlo_dims *dims,
                                hlo_dims *strides);

/* ----------------------------------------------------------------------------------- ragged-dot */

/* A ragged-dot consists of dots of its parts. There is a part for each group and each index of the
 * dimensions of the group sizes before the last one. A part is empty if its group is. */

/* The iteration over the parts. If contracting dimensions precede the ragged one in the group
 * sizes, the groups differ between the indices of these dimensions. A part then consists of several
 * concatenated pieces. */
typedef struct hlo_ragged_parts {
    hlo_ragged dims;
    hlo_dot_dims dot; /* dimension numbers of the dot of a part */
    const hlo_eval_env *env;
    hlo_arena *scratch;
    const int64_t *ends;                /* [kept, pieces, groups]: where each group ends */
    int64_t pieces, parts;              /* pieces per part; total number of parts */
    int64_t at;                         /* number of the current part */
    int64_t sizes[HLO_RAGGED_MAX_RANK]; /* sizes of the dimensions of the group sizes before the
                                         * last one */
    const hlo_ints *rhs_batch;
} hlo_ragged_parts;

/* Starts at the first part. Returns NULL, or why the instruction is not a ragged-dot of arrays. */
const char *hlo_ragged_begin(hlo_ragged_parts *parts, const hlo_call *call);
/* Returns the number of terms, rows or batches of the part. */
int64_t hlo_ragged_size(const hlo_ragged_parts *parts);
/* Return the part of an operand (`side` 0 or 1), or of a result, for the dot of the current part.
 * Both functions allocate from scratch. */
hlo_view hlo_ragged_operand(const hlo_ragged_parts *parts, unsigned side, const hlo_view *whole);
hlo_view hlo_ragged_result(const hlo_ragged_parts *parts, const hlo_view *whole);
/* Converts an operand to the result's type if the result's type is narrower, as the definition of
 * ragged-dot requires. */
hlo_view hlo_ragged_narrowed(const hlo_call *call, unsigned side);

/* ---------------------------------------------------------------------------------------- calls */

/* Counts the arrays that a value consists of; tuples are not nested in the operands of kernels. */
uint32_t hlo_call_leaves(const hlo_shape *shape);
void hlo_call_init(hlo_call *call, const hlo_eval_env *env, const hlo_instruction *instr,
                   const hlo_view *operands, const hlo_view *results, hlo_arena *scratch);

#endif
