/* The inside of the evaluator: what op.def's `eval` column names, and what kernels are made of.
 *
 * Lanes: arithmetic is not written per element type but per lane, the few C types in which elements
 * are computed. A kernel loads a chunk of a strided row into a lane buffer, works on contiguous
 * memory, and stores the chunk, rounding or wrapping to the element type. */
#ifndef HLO_IR_EVAL_KERNEL_H
#define HLO_IR_EVAL_KERNEL_H

#include "ir/error/error.h"
#include "ir/eval/eval.h"

/* ------------------------------------------------------------------------------------ the table */

typedef struct hlo_call {
    const hlo_eval_env *env; /* never NULL */
    const hlo_instr *instr;
    const hlo_view *operands, *results;
    uint32_t operand_count, result_count;
    hlo_arena *scratch;
    const char *why;
} hlo_call;

/* The same call with the sigma of each operand and result beside it (bound.h). */
typedef struct hlo_error_call {
    hlo_call call;
    const hlo_view *operand_sigmas, *result_sigmas; /* f32; data NULL: exact */
    const hlo_error_options *options;
} hlo_error_call;

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
    int bits;               /* of the element type */
    uint64_t sign;          /* its sign bit, where it is a float whose code is in the lanes; or 0 */
    bool signed_zero;       /* such a float has -0; else that code is its NaN */
    const hlo_instr *instr; /* for attributes */
} hlo_lanes;
typedef void hlo_loop(const hlo_lanes *lanes);

typedef enum hlo_out { HLO_OUT_SAME, HLO_OUT_PRED, HLO_OUT_REAL, HLO_OUT_COMPLEX } hlo_out;

/* An elementwise operation: a loop for every lane that it has a meaning for. The lane is that of
 * the last operand; operand 0 of select alone has a lane of its own. What looks at bits, or only
 * moves them, works on codes: floats loaded as the unsigned integers in the same bytes. */
typedef struct hlo_elementwise {
    uint8_t arity;
    uint8_t out;   /* hlo_out: lane of the result: that of the operands, U64, F64, C128 */
    float ulps;    /* what the error of two good implementations may be, in units of roundoff of the
                      type computed in; 0 when the result is exact or has no rounding */
    uint8_t codes; /* floats of at most so many bits are loaded, and stored, as their codes */
    hlo_loop *loop[HLO_LANE_COUNT];
} hlo_elementwise;

/* What an opcode's `eval` column names: hlo_eval_<eval>. */
typedef struct hlo_kernel {
    hlo_status (*run)(hlo_call *call);
    hlo_status (*bound)(const hlo_error_call *bound);
    const hlo_elementwise *ops;          /* of elementwise opcodes */
    int (*pick)(const hlo_instr *instr); /* which of `ops`; NULL: the only one; -1: none */
} hlo_kernel;

#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    extern const hlo_kernel hlo_eval_##eval;
#include "ir/table/op.def"
#undef HLO_OP

/* NULL when the CPU does not run the opcode. */
const hlo_kernel *hlo_kernel_of(hlo_op op);
/* Sets the reason and fails. */
hlo_status hlo_call_refuse(hlo_call *call, const char *why);
/* The type whose bits reduce-precision counts for elements of `type`: as XLA has it, f16 for all of
 * at most 8 bits that it holds. */
hlo_type hlo_reduced_type(hlo_type type);
/* Which of the kernel's operations `instr` is; NULL when none. */
const hlo_elementwise *hlo_kernel_elementwise(const hlo_instr *instr);
/* The type as which `op` loads elements of `type`. */
hlo_type hlo_elementwise_type(const hlo_elementwise *op, hlo_type type);
/* The loop of `op` on elements of `type`; NULL when it has no meaning for them. */
hlo_loop *hlo_elementwise_loop(const hlo_elementwise *op, hlo_type type);

/* ---------------------------------------------------------------------------------------- lanes */

enum { HLO_CHUNK = 256 }; /* elements */

/* A chunk in any lane. */
typedef union hlo_chunk {
    float f32[HLO_CHUNK];
    double f64[HLO_CHUNK];
    int64_t s64[HLO_CHUNK];
    uint64_t u64[HLO_CHUNK];
    double _Complex c128[HLO_CHUNK];
} hlo_chunk;

hlo_lane hlo_lane_of(hlo_type type); /* HLO_LANE_NONE: no elements */
size_t hlo_lane_size(hlo_lane lane);
/* `count` elements, `step` bytes apart, to or from the type's own lane. The store rounds floats to
 * nearest even and wraps integers. */
void hlo_lane_load(hlo_type type, const void *in, int64_t step, int64_t count, void *out_lanes);
void hlo_lane_store(hlo_type type, const void *lanes, int64_t count, void *out, int64_t step);
/* Of two floats: NaN when either is; -0 is below 0. */
#define HLO_LARGER(x, y) (((x) > (y)) | ((x) != (x)) | (((x) == (y)) & !signbit(x)) ? (x) : (y))
#define HLO_SMALLER(x, y) (((x) < (y)) | ((x) != (x)) | (((x) == (y)) & !!signbit(x)) ? (x) : (y))
/* From one lane to another as a C cast does, but NaN and out of range to integers as HLO converts.
 */
void hlo_lane_cast(hlo_lane from, hlo_lane to, const void *in, int64_t count, void *out);
/* Clips integer lanes to the range of `type`. */
void hlo_lane_saturate(hlo_type type, void *lanes, int64_t count);
/* The lanes of a row: where they are when the elements already are contiguous lanes, else `buffer`,
 * filled. */
const void *hlo_lane_view(hlo_type type, const void *in, int64_t step, int64_t count,
                          hlo_chunk *buffer);
/* Any real type as doubles. */
void hlo_lane_load_f64(hlo_type type, const void *in, int64_t step, int64_t count, double *out);

/* ---------------------------------------------------------------------------------------- walks */

enum { HLO_WALK_VIEWS = 8 };

/* Several views of the same dimensions, run through together. Dimensions of one are dropped, the
 * others ordered by the strides of view 0 (then 1, ...) and merged where all views allow it. */
typedef struct hlo_strided_loop {
    uint32_t rank, views;
    int64_t dims[HLO_EVAL_MAX_RANK];
    int64_t steps[HLO_WALK_VIEWS][HLO_EVAL_MAX_RANK]; /* bytes */
    char *data[HLO_WALK_VIEWS];
    int64_t count; /* elements */
} hlo_strided_loop;

/* A row: `count` elements of each view, from data[v] on, steps[v] bytes apart. */
typedef void hlo_strided_loop_body(void *arg, int64_t count, char *const *data,
                                   const int64_t *steps);

/* `views` all have rank `rank` and dimensions `dims`, a rank of 0 excepted, which is repeated. */
void hlo_strided_loop_init(hlo_strided_loop *walk, uint32_t rank, const int64_t *dims,
                           uint32_t views, const hlo_view *const *view);
/* Serial. */
void hlo_strided_loop_run(const hlo_strided_loop *walk, hlo_strided_loop_body *body, void *arg);
/* Rows may run on several threads at once; the rows of one thread are those of part of one
 * dimension along which view `written` moves. */
void hlo_strided_loop_run_parallel(const hlo_eval_env *env, const hlo_strided_loop *walk,
                                   uint32_t written, hlo_strided_loop_body *body, void *arg);

/* ---------------------------------------------------------------------------------------- views */

typedef struct hlo_dims {
    int64_t v[HLO_EVAL_MAX_RANK];
} hlo_dims;

int64_t hlo_view_count(const hlo_view *view);
/* Row-major strides of `view->dims`. */
void hlo_view_dense(const hlo_view *view, hlo_dims *out_strides);
/* A row-major array in scratch memory of the same dimensions as `like`. */
hlo_view hlo_view_scratch(hlo_arena *scratch, hlo_type type, const hlo_view *like);
/* A part: `start`, and `dims` elements of it along each dimension, `steps` apart (NULL: 1). The
 * arrays must outlive the result. */
hlo_view hlo_view_part(const hlo_view *view, const int64_t *start, const int64_t *dims,
                       const int64_t *steps, hlo_dims *out_strides);
/* Copies elements of the same size; `in` may be a scalar. */
void hlo_view_copy(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out);
/* Copies, converting as HLO's convert does. */
void hlo_view_convert(const hlo_eval_env *env, const hlo_view *in, const hlo_view *out);
/* Copies in row-major order between arrays of the same number of elements. */
void hlo_view_reshape(const hlo_call *call, const hlo_view *in, const hlo_view *out);
/* A new view of `in` with out.dims[i] = in.dims[order[i]]. */
hlo_view hlo_view_permute(const hlo_view *in, const int64_t *order, hlo_dims *out_dims,
                          hlo_dims *out_strides);
static inline char *hlo_view_at(const hlo_view *view, int64_t offset) {
    return (char *)view->data + offset * hlo_types[view->type].bytes;
}

/* -------------------------------------------------------------------------------------- regions */

/* A computation on scalars (a to_apply), run for many elements at a time. */
typedef struct hlo_region hlo_region;

/* NULL when it holds an opcode that regions do not run; then call->why says so. In scratch. */
hlo_region *hlo_region_new(hlo_call *call, hlo_computation *computation);
/* Runs the region for `count` (at most HLO_CHUNK) elements. in[i] is parameter i's elements,
 * in_steps[i] bytes apart; out[i] likewise of the root's leaves. An output may be an input. */
void hlo_region_run(const hlo_region *region, int64_t count, char *const *in,
                    const int64_t *in_steps, char *const *out, const int64_t *out_steps);
/* acc[..] = region(acc[..], x[..]) element by element, for that many arrays of the same dimensions,
 * at most HLO_WALK_VIEWS / 2. */
void hlo_region_apply(const hlo_region *region, uint32_t arrays, const hlo_view *acc,
                      const hlo_view *x);
/* Why a computation cannot be a region; NULL when it can. */
const char *hlo_region_refusal(const hlo_computation *computation);
/* The opcode when the region is just one binary elementwise operation on its two parameters, in
 * either order when the opcode commutes; PARAMETER when the root is parameter 1 (an assignment);
 * else HLO_OP_INVALID. */
hlo_op hlo_region_simple(const hlo_computation *computation);

/* One dimension of a window, as `window={size=.. stride=.. ...}` has it; of pairs the first. */
typedef struct hlo_window {
    int64_t size, stride, low, base, dilate;
} hlo_window;
hlo_window hlo_window_of(const hlo_instr *instr, uint32_t dim);

/* ---------------------------------------------------------------------- kernels used by kernels */

hlo_status hlo_elementwise_run(hlo_call *call);

void hlo_call_init(hlo_call *call, const hlo_eval_env *env, const hlo_instr *instr,
                   const hlo_view *operands, const hlo_view *results, hlo_arena *scratch);
/* Why hlo_eval() would not run `instr`; NULL when it does. */
const char *hlo_call_refusal(const hlo_instr *instr);

/* Where sigmas come from (bound.c, bound_array.c). Each fills the sigmas of all results. */
hlo_status hlo_error_exact(const hlo_error_call *bound);
hlo_status hlo_error_elementwise(const hlo_error_call *bound);
hlo_status hlo_error_compare_op(const hlo_error_call *bound);
hlo_status hlo_error_convert(const hlo_error_call *bound);
hlo_status hlo_error_move(const hlo_error_call *bound);
hlo_status hlo_error_dot(const hlo_error_call *bound);
hlo_status hlo_error_reduce(const hlo_error_call *bound);
hlo_status hlo_error_scatter(const hlo_error_call *bound);
hlo_status hlo_error_indexed(const hlo_error_call *bound);
hlo_status hlo_error_sort(const hlo_error_call *bound);
hlo_status hlo_error_topk(const hlo_error_call *bound);
hlo_status hlo_error_moved(const hlo_error_call *bound);

/* What the elements of a value are sure to be, NaN excepted; infinite ends when nothing is known.
 * Looks back over a few instructions. */
typedef struct hlo_range {
    double low, high;
} hlo_range;
hlo_range hlo_range_of(const hlo_instr *instr);
/* The smallest and largest element of an array of real numbers; infinities when there is a NaN. */
void hlo_view_extent(const hlo_view *view, hlo_range *out_range);

/* For a chunk: the sigmas of `value`, known to `sigma` and to lie in `range` (NULL: anywhere), once
 * rounded to `type`, which gave `result`. `rounds`: whether the operation rounds to the type
 * everywhere; else only what `result` differs from was rounded, such as small bf16 numbers to f16,
 * which has more bits but less range. In place. */
void hlo_error_round_chunk(hlo_type type, const double *value, const double *result, bool rounds,
                           const hlo_range *range, const hlo_error_options *options, int64_t count,
                           double *sigma);
/* Below this, f32 arithmetic may take results for zero. */
#define HLO_BOUND_FLUSHED 0x1p-126

/* The same number, or both NaN. */
bool hlo_error_same(double a, double b);
/* `value` as a number of that float type. */
double hlo_error_round(hlo_type type, double value);
/* The sigma of what overflowed when `value` was rounded. */
double hlo_error_overflow(double value);
/* The difference of neighbours of `type` round `value`. */
double hlo_error_last_place(hlo_type type, double value);
/* From a number of a narrow type to its neighbour away from zero, or to the other if there is none.
 */
double hlo_error_step(hlo_type type, double number);
/* The neighbour of a number of a narrow type on the side of `toward`. */
double hlo_error_neighbour(hlo_type type, double number, double toward);
/* The unit roundoff of what `type` is computed in: f32, but f64 for f64. */
double hlo_error_roundoff(hlo_type type);
/* Sets all sigmas of a view. */
void hlo_error_fill(const hlo_error_call *bound, const hlo_view *sigma, double value);
/* Whether no element of the sigma view is above zero. */
bool hlo_error_is_exact(const hlo_view *sigma);

/* The terms of a sum along dimensions of `value`: for each batch and term the first one that has
 * the same elements with the same variances, wherever it has, itself if no other has. NULL: none
 * have. In scratch. */
const int64_t *hlo_error_repeats(const hlo_error_call *bound, const hlo_view *value,
                                 const hlo_view *variance, const hlo_ints *batch,
                                 const hlo_ints *along);
/* What the variances of such terms are multiplied with, each having a factor: at the first of those
 * that are the same the larger of the sum of the factors' squares and the square of their sum, at
 * the others 0. Of the factors' dimensions, in f64. In scratch. */
hlo_view hlo_error_joined(const hlo_error_call *bound, const int64_t *first,
                          const hlo_view *factors, const hlo_ints *batch, const hlo_ints *along);

#endif
