/* SPDX-License-Identifier: Apache-2.0 */
/* The error bound of a module: running error analysis of two legitimate executions.
 *
 * Two executions are legitimate if both follow HLO and differ only where HLO allows it. They may
 * differ in the order and width of accumulation, contraction into fused multiply-adds, the last
 * digits of transcendental functions, and flushing of subnormals to zero. By option, they may also
 * differ in intermediate roundings to bf16 or f16.
 *
 * Each array of values has an f32 array `sigma` of the same dimensions: the size, like a standard
 * deviation, of the difference between the two executions at that element. A difference of up to
 * HLO_ERROR_LAMBDA * sigma is accepted. Sigma 0: the element must be equal. Infinity: in the other
 * execution, the element may be any number or infinite, and may be NaN if it is a number in this
 * execution. NaN: nothing is known. Sigma is NaN for an infinity that may be NaN in the other
 * execution, a NaN that may be an infinity, and results computed from either. If an element merely
 * happens to be finite in this execution, its sigma is infinite and it is compared by its noise
 * (HLO_ERROR_NOISE).
 *
 * An element that is not finite and has a finite sigma above 0 overflowed when it was rounded to
 * its type. Sigma is then the element's magnitude before rounding, or 2^119 if the magnitude is
 * smaller. An execution that does not round there continues with this magnitude or a larger one.
 *
 * The derivation and its sources are in docs/numerics.md, "How sigmas are derived".
 *
 * Integers and predicates also have sigmas: an element may differ unless its sigma is 0. The sigma
 * of a complex number is that of the modulus of the difference. */
#ifndef HLO_IR_ERROR_ERROR_H
#define HLO_IR_ERROR_ERROR_H

#include <math.h>

#include "ir/eval/eval.h"

/* Number of sigmas that are accepted. By Higham and Mary's theorem, about one element in 10^13
 * would exceed this number if the analysis were sharp. The analysis is not sharp: errors are not
 * Gaussian and operands are not independent. The factor leaves room for both. */
#define HLO_ERROR_LAMBDA 8.0

/* A change of one step by rounding, or a change of a select's choice, counts as this number of
 * sigmas. Whether the change occurs depends on the distance of the value from a rounding boundary.
 * Averaged over distances, and while sigma is at most half a step, the variance of the change is at
 * most (step/4)^2 for all elements with a boundary within lambda*sigma. */
#define HLO_ERROR_FLIP 4.0

/* The number of sigmas for a change at a probable tie. Distances from a boundary are not uniform,
 * because with exact arithmetic many values are ties. At d sigmas from a boundary, a value crosses
 * it with the probability that a standard normal number exceeds d. The variance is this fraction of
 * step^2: a half at the boundary, a sixteenth at 1.534 sigmas. The constant applies to values
 * nearer than 1.534 sigmas, if sigma is so small that only one in 64 uniform values would have a
 * boundary within lambda*sigma. */
#define HLO_ERROR_FLIP_TIE 1.4142135623730951
#define HLO_ERROR_NEAR 1.534
#define HLO_ERROR_FINE 1024.0

/* Number of sigmas by which a perturbed execution moves every result. Rare events, such as one fp8
 * value among thousands that crosses a rounding boundary, are accordingly more frequent in a sample
 * than in the compared pair. */
#define HLO_ERROR_AMPLITUDE 2.0

/* Accepted noise: the root mean square of the difference between the executions may be
 * HLO_ERROR_NOISE + HLO_ERROR_NOISE_FEW / sqrt(n) times the noise. n is the number of elements: a
 * root mean square of few elements varies more. The noise is the largest root mean square of the
 * samples, divided by the amplitude. Samples show the amplitude times the noise if errors are small
 * enough to add up, and only the noise if flips of fp8 values cause one another. Both constants are
 * measured. 40 models were compared before and after rewriting, with inputs from several seeds. The
 * largest ratio was 2.4 for many elements, and 6.3 for three (amaxes of gradients, whose logarithms
 * vary evenly). In comparisons with XLA, the largest ratio was 1.0. */
#define HLO_ERROR_NOISE 2.5
#define HLO_ERROR_NOISE_FEW 10.0

/* The sigma of an element that is unbounded and may be NaN. */
#define HLO_ERROR_ANYTHING ((double)NAN)

/* True if an element with this value and sigma overflowed when it was rounded. */
static inline bool hlo_error_overflowed(double value, double sigma) {
    return !isfinite(value) && sigma > 0 && sigma < 0x1p120;
}

/* Returns the larger of two variances. NaN, which is unbounded, exceeds all others. */
static inline double hlo_error_larger(double a, double b) {
    return a >= b || isnan(a) ? a : b;
}

/* The ways in which an execution may sum products of fp8 values. */
typedef enum hlo_error_sums {
    HLO_ERROR_SUMS_F32,
    HLO_ERROR_SUMS_PROMOTED, /* accumulated with 13 fraction bits, and added to an f32 sum after
                              * each 128 terms */
    HLO_ERROR_SUMS_FAST      /* with 13 fraction bits */
} hlo_error_sums;

typedef struct hlo_error_options {
    bool roundings_may_be_dropped; /* One execution, for example a fusion, may omit intermediate
                                    * roundings to bf16 and f16, but not to fp8. It may also apply
                                    * scales elsewhere. */
    hlo_error_sums sums;           /* how dots are summed */
} hlo_error_options;

/* Computes the sigmas of the results of `instr`. `operands` and `results` are as for hlo_eval(),
 * which must have computed the results before. Each array has a view of its sigmas, in f32 and with
 * the same dimensions. If the data of an operand's sigma view is NULL, the operand is exact.
 * Supports the same instructions as hlo_eval_supports(). Sigmas of results must not overlap
 * anything. Memory, `why` and status are as for hlo_eval(). */
hlo_status hlo_error_sigmas(const hlo_eval_env *env, const hlo_instruction *instr,
                            const hlo_view *operands, const hlo_view *operand_sigmas,
                            const hlo_view *results, const hlo_view *result_sigmas,
                            const hlo_error_options *options, hlo_arena *scratch, const char **why);

/* Computes the sigmas of hlo_eval_dot_views(). If the data of a sigma view is NULL, the operand is
 * exact. */
hlo_status hlo_error_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                               const hlo_view *lhs_sigma, const hlo_view *rhs,
                               const hlo_view *rhs_sigma, const hlo_view *result,
                               const hlo_view *result_sigma, const hlo_error_options *options,
                               hlo_arena *scratch, const char **why);

/* Returns the sigma of `value`, whose sigma is `sigma`, after clamping to +-limit (infinity: no
 * clamp) and rounding to `type`. */
double hlo_error_rounded(hlo_type type, double value, double sigma, double limit,
                         const hlo_error_options *options);

/* Perturbs the elements of an instruction's result by `times` the rounding errors of the
 * instruction itself. Adds times * sigma[i] * g, where g has mean 0 and variance 1 and depends only
 * on `stream` and i. Rounds the result to the type again. `sigma` is dense and row-major, from
 * hlo_error_sigmas() on exact operands; an infinite sigma, as of complex products, counts as 2^-20
 * of the value. Elements that are not finite or of integer type are unchanged. `by_value`: g
 * depends on the value of a real element instead of i, because equal elements have equal errors. */
void hlo_error_perturb(const hlo_view *value, const float *sigma, double times, uint64_t stream,
                       bool by_value);

/* The result of comparing two arrays. Every element is counted in one of the first four members. */
typedef struct hlo_error_comparison {
    int64_t equal;      /* equal, or both NaN */
    int64_t within;     /* different, but within lambda*sigma */
    int64_t steps;      /* fp8: neighbors, with a rounding boundary within the bound */
    int64_t violations; /* elements with a larger difference */
    int64_t nonfinite;  /* number of violations that are infinite or NaN on one side only */
    double largest;     /* largest |a - b| / (lambda*sigma), over elements with sigma > 0 that are
                         * finite on both sides */
    /* The element farthest beyond its bound; for a complex element, the part that differs more.
     * index -1: no violation. */
    int64_t worst_index; /* row-major */
    double worst_a, worst_b, worst_bound;
} hlo_error_comparison;

/* Returns the distance of two elements of a type; 0 exactly if they are equal or both NaN. The
 * distance of integers is computed exactly and then rounded. That of complex numbers is the modulus
 * of their difference. */
double hlo_error_distance(hlo_type type, const void *a, const void *b);

/* Computes the excess of each element, row-major: 0 for equal or unbounded elements, otherwise |a -
 * b| / bound. The excess is at most 1 within the bound, and infinity if only one element is finite.
 */
void hlo_error_excess(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                      float *out_excess);

/* Compares arrays of one type and equal dimensions. If `sigma` or its data is NULL, the arrays must
 * be equal. */
void hlo_error_compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                       hlo_error_comparison *out_comparison);

#endif
