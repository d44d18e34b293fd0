/* The value of every instruction, computed on the CPU: one kernel per opcode over strided arrays.
 *
 * Constant folding and the CPU backend both use this; it knows neither files nor plans. Tuples are
 * taken apart by the caller: a kernel gets the leaves of its operands and writes the leaves of its
 * result, each in memory that the caller has allocated.
 *
 * Arithmetic on floats of at most 32 bits is done in f32 and rounded to the type after every
 * instruction, f64 in f64. Sums of floats (dot, reduce) are accumulated in f32 or wider and rounded
 * once. Integers wrap. Results do not depend on the number of threads. */
#ifndef HLO_IR_EVAL_EVAL_H
#define HLO_IR_EVAL_EVAL_H

#include "ir/ir.h"

/* An array in memory: element (i0, i1, ...) is at data + (i0*strides[0] + i1*strides[1] + ...) *
 * hlo_types[type].bytes. Elements are held as in hlo_literal. Owns nothing. */
typedef struct hlo_view {
    hlo_type type;
    uint32_t rank;
    const int64_t *dims;
    const int64_t *strides; /* in elements; 0 repeats an element */
    void *data;
} hlo_view;

/* Views elements of `shape` that lie in row-major order. Owns nothing: strides are in `arena`. */
hlo_view hlo_view_of(hlo_arena *arena, const hlo_shape *shape, void *data);
/* Views elements in the order of the shape's layout, without data. */
hlo_view hlo_view_in_layout(hlo_arena *arena, const hlo_shape *shape);

/* Dimensions that an array may have here. */
enum { HLO_EVAL_MAX_RANK = 24 };

/* A product of matrices of f32, or all three of f64: c[i*n + j] = sum over l of
 * a[i*a_row + l*a_col] * b[l*b_row + j*b_col] for i < m, j < n, l < k. Of a_row and a_col one is 1,
 * likewise of b_row and b_col. */
typedef struct hlo_product {
    hlo_type type;
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col;
    const void *b;
    int64_t b_row, b_col;
    void *c;
} hlo_product;

/* Functions that the host lends to kernels. A NULL env, or a NULL member: the kernel does without.
 */
typedef struct hlo_eval_env hlo_eval_env;
struct hlo_eval_env {
    void *user; /* passed to parallel() */
    /* Calls body(arg, begin, end) on disjoint ranges that cover [0, count), on any threads, and
     * returns when all are done. */
    void (*parallel)(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                     void *arg);
    void (*gemm)(const hlo_eval_env *env, const hlo_product *product);
};

/* True if the CPU can run this instruction; false: `why`, which may be NULL, is set to a static
 * sentence. */
bool hlo_eval_supports(const hlo_instr *instr, const char **why);

/* Computes the result of `instr` from its operands. `operands` are the leaves of all operands in
 * order, `results` the leaves of the result; they are dense in any layout or strided. A result may
 * be the very view of an operand for elementwise opcodes, and that of an operand that is updated
 * for dynamic-update-slice and scatter; otherwise it overlaps no operand.
 * Opcodes that call computations on whole arrays (call, fusion, while, conditional) and tuple
 * plumbing are not evaluated here: the caller runs them. Those that call scalar ones (reduce,
 * scatter, sort, map, reduce-window) are.
 * `scratch` is used for working memory and given back before the call returns; it runs out of
 * memory as arena.h says. HLO_OK; HLO_INVALID_INPUT, with `why` set to a static sentence, for what
 * is not supported. */
hlo_status hlo_eval(const hlo_eval_env *env, const hlo_instr *instr, const hlo_view *operands,
                    const hlo_view *results, hlo_arena *scratch, const char **why);

/* Dimension numbers of a dot: lists of equal length per pair. */
typedef struct hlo_dot_dims {
    const hlo_ints *lhs_batch, *lhs_contracting, *rhs_batch, *rhs_contracting;
} hlo_dot_dims;
hlo_dot_dims hlo_dot_dims_of(const hlo_instr *dot);

/* Computes result[batch.., m.., n..] = lhs x rhs. Narrow floats are multiplied and accumulated in
 * f32; the result is rounded to its type, which need not be the operands'. */
hlo_status hlo_eval_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                              const hlo_view *rhs, const hlo_view *result, hlo_arena *scratch,
                              const char **why);

#endif
