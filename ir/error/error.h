/* SPDX-License-Identifier: Apache-2.0 */
/* The error bound of a module: running error analysis of two legitimate executions.
 *
 * Two executions are legitimate when both follow HLO, and differ only in what HLO leaves open: the
 * order and the width of accumulation, contraction into fused multiply-adds, the last places of
 * transcendental functions, subnormals taken for zero and, by option, whether an intermediate bf16
 * or f16 rounding happens.
 *
 * Each array of values has an f32 array `sigma` of the same dimensions: the size, like a standard
 * deviation, of the difference between the two executions at that element. A difference is accepted
 * up to HLO_ERROR_LAMBDA * sigma. Sigma 0: the element must be equal; infinity: it may be any
 * number or infinite, and NaN where it is a number here; NaN: nothing is known, as of an infinity
 * that may be NaN elsewhere, of a NaN that may be an infinity, and of results of these. An element
 * that is a number by chance of this execution has an infinite sigma, and is compared by its noise
 * (HLO_ERROR_NOISE).
 *
 * An element that is not finite and has a finite sigma above 0 overflowed when it was rounded to
 * its type: sigma is then its size before rounding, or 2^119 if that is less, and an execution that
 * does not round there continues with this number, or a larger one.
 *
 * The derivation, and its sources, are in docs/numerics.md, "How sigmas are derived".
 *
 * Integers and predicates have sigmas, too: where they are not 0, the element may differ. The
 * sigma of a complex number is that of the modulus of the difference. */
#ifndef HLO_IR_ERROR_ERROR_H
#define HLO_IR_ERROR_ERROR_H

#include <math.h>

#include "ir/eval/eval.h"

/* Sigmas that are accepted. By Higham and Mary's theorem one element in 10^13 or so would exceed
 * them if the analysis were sharp; it is not, as errors are not Gaussian and operands not
 * independent, so that the factor leaves room for both. */
#define HLO_ERROR_LAMBDA 8.0

/* Sigmas that a change of one step by rounding counts for, or a change of a select's choice. A
 * change depends on the distance of the value from a boundary; averaged over distances, and while
 * sigma is at most half a step, its variance is at most that of (step/4)^2 for all elements with a
 * boundary within lambda*sigma. */
#define HLO_ERROR_FLIP 4.0

/* Sigmas for a probable tie: distances are not uniform, as with exact arithmetic many values are
 * ties. At d sigmas from a boundary the probability to cross it is that of a normal number above d,
 * and the variance is that fraction of step^2: a half at the boundary, a sixteenth at 1.534 sigmas.
 * The larger constant applies nearer than that, if sigma is so small that only one in 64 uniform
 * values had a boundary within lambda*sigma. */
#define HLO_ERROR_FLIP_TIE 1.4142135623730951
#define HLO_ERROR_NEAR 1.534
#define HLO_ERROR_FINE 1024.0

/* Factor by which a perturbed execution moves every result, in sigmas. Rare events, such as one fp8
 * value among thousands that falls to the other side of its boundary, are that much more frequent
 * in a sample than in the pair compared. */
#define HLO_ERROR_AMPLITUDE 2.0

/* Noise that is accepted: the root mean square of the difference between the executions may be
 * HLO_ERROR_NOISE + HLO_ERROR_NOISE_FEW / sqrt(n) times the noise for n elements, as a root mean
 * square of few elements varies more. The noise is the largest root mean square that samples show,
 * divided by the amplitude. Samples show the amplitude times the noise where errors are small
 * enough to add up, and the noise alone where flips of fp8 values cause one another. Both constants
 * are measured: over 40 models before and after, with inputs from several seeds, the largest ratio
 * was 2.4 over many elements, and 6.3 over three (amaxes of gradients, whose logarithms vary
 * evenly); against XLA it was 1.0. */
#define HLO_ERROR_NOISE 2.5
#define HLO_ERROR_NOISE_FEW 10.0

/* The sigma of an element that is unbounded and may be NaN. */
#define HLO_ERROR_ANYTHING ((double)NAN)

/* True if an element of that sigma overflowed in its rounding. */
static inline bool hlo_error_overflowed(double value, double sigma) {
    return !isfinite(value) && sigma > 0 && sigma < 0x1p120;
}

/* Returns the larger of two variances; NaN, an unbounded one, exceeds all others. */
static inline double hlo_error_larger(double a, double b) {
    return a >= b || isnan(a) ? a : b;
}

/* The way in which an execution may sum products of fp8 values. */
typedef enum hlo_error_sums {
    HLO_ERROR_SUMS_F32,
    HLO_ERROR_SUMS_PROMOTED, /* with 13 fraction bits, added in f32 after each 128 terms */
    HLO_ERROR_SUMS_FAST      /* with 13 fraction bits */
} hlo_error_sums;

typedef struct hlo_error_options {
    bool roundings_may_be_dropped; /* Intermediate roundings to bf16 and f16 may be missing in one
                                      execution, as in a fusion; roundings to fp8 may not. Scales
                                      may be applied elsewhere, too. */
    hlo_error_sums sums;           /* of a dot */
} hlo_error_options;

/* Computes the sigmas of the results of `instr`. `operands` and `results` are as for hlo_eval(),
 * which has computed the results before; with each goes a view of its sigmas: f32, of the same
 * dimensions; an operand's with data NULL is exact. Supports what hlo_eval_supports() does. Sigmas
 * of results overlap nothing. Memory, `why` and status as for hlo_eval(). */
hlo_status hlo_error_sigmas(const hlo_eval_env *env, const hlo_instr *instr,
                            const hlo_view *operands, const hlo_view *operand_sigmas,
                            const hlo_view *results, const hlo_view *result_sigmas,
                            const hlo_error_options *options, hlo_arena *scratch, const char **why);

/* Computes the sigmas of hlo_eval_dot_views(). A sigma view with data NULL is exact. */
hlo_status hlo_error_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                               const hlo_view *lhs_sigma, const hlo_view *rhs,
                               const hlo_view *rhs_sigma, const hlo_view *result,
                               const hlo_view *result_sigma, const hlo_error_options *options,
                               hlo_arena *scratch, const char **why);

/* Returns the sigma of `value`, of sigma `sigma`, once it is clamped to +-limit (infinity: not
 * clamped) and rounded to `type`. */
double hlo_error_rounded(hlo_type type, double value, double sigma, double limit,
                         const hlo_error_options *options);

/* Moves the elements of an instruction's result by `times` its own rounding errors: by times *
 * sigma[i] * g, where g has mean 0 and variance 1 and depends on `stream` and i alone, and rounds
 * to the type again. `sigma` is dense and row-major, from hlo_error_sigmas() on exact operands; an
 * infinite sigma, as of complex products, counts as 2^-20 of the value. Elements that are not
 * finite or of integer type stay. `by_value`: g depends on the value of a real element in place of
 * i, as equal elements have equal errors. */
void hlo_error_perturb(const hlo_view *value, const float *sigma, double times, uint64_t stream,
                       bool by_value);

/* The result of comparing two arrays. Every element is in one of the first four counts. */
typedef struct hlo_error_comparison {
    int64_t equal;      /* equal, or both NaN */
    int64_t within;     /* different, but within lambda*sigma */
    int64_t steps;      /* fp8: neighbors, with a rounding boundary within the bound */
    int64_t violations; /* further apart */
    int64_t nonfinite;  /* of the violations: infinite or NaN on one side only */
    double largest;     /* of |a - b| / (lambda*sigma), where sigma > 0 and all is finite */
    /* The element furthest beyond its bound, the part of it that differs more if it is complex;
     * index -1: no violation. */
    int64_t worst_index; /* row-major */
    double worst_a, worst_b, worst_bound;
} hlo_error_comparison;

/* Returns the distance of two elements of a type: 0 if they are equal or both NaN, and only then.
 * That of integers is exact before it is rounded; that of complex numbers is the modulus of their
 * difference. */
double hlo_error_distance(hlo_type type, const void *a, const void *b);

/* Computes each element's excess, row-major: 0 for equal or unbounded elements; up to 1 within the
 * bound, |a - b| / bound; more beyond it, infinity if only one is finite. */
void hlo_error_excess(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                      float *out_excess);

/* Compares arrays of one type and of equal dimensions; `sigma` NULL, or its data NULL: they must be
 * equal. */
void hlo_error_compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                       hlo_error_comparison *out_comparison);

#endif
