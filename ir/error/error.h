/* How far two legitimate executions of a module may be apart: running error analysis.
 *
 * Two executions are legitimate when both follow HLO, and differ only in what HLO leaves open: the
 * order and the width of accumulation, contraction into fused multiply-adds, the last places of
 * transcendental functions, subnormals taken for zero and, by option, whether an intermediate bf16
 * or f16 rounding happens. With each array of values goes an f32 array `sigma` of the same
 * dimensions: the size, like a standard deviation, of the difference between the two at that
 * element. A difference is accepted up to HLO_ERROR_LAMBDA * sigma. Sigma 0 says that the element
 * must be equal, infinity that it may be any number or infinite, and NaN where it is a number here;
 * NaN that nothing is known: of an infinity that may be NaN elsewhere, or a NaN that may be an
 * infinity, and of what is made of those. What is a number here only because it is one in this
 * execution has an infinite sigma, and is judged by its noise (HLO_ERROR_NOISE). An element that is
 * not finite and has a finite sigma above 0 overflowed when it was rounded to its type: sigma is
 * then its size before that, or 2^119 if that is less, and what does not round there may go on with
 * this number, or one that is larger.
 *
 * The derivation, and its sources, are in docs/numerics.md, "How sigmas are derived".
 *
 * Integers and predicates have sigmas, too: where they are not 0, the element may differ.
 * Of complex arrays only whether they are exact is known: sigma is 0, rounding, or infinity. */
#ifndef HLO_IR_ERROR_ERROR_H
#define HLO_IR_ERROR_ERROR_H

#include <math.h>

#include "ir/eval/eval.h"

/* How many sigmas are accepted. By Higham and Mary's theorem one element in 10^13 or so would
 * exceed them if the analysis were sharp; it is not, as errors are not Gaussian and operands not
 * independent, so this leaves room for both. */
#define HLO_ERROR_LAMBDA 8.0

/* A change of one step by rounding, or from one choice of a select to the other, counts as this
 * many sigmas. Whether it happens is a matter of where the value lies between boundaries; on
 * average over that, and while sigma is at most half a step, its variance is at most that of
 * (step/4)^2 for all elements with a boundary within lambda*sigma. */
#define HLO_ERROR_FLIP 4.0

/* Values need not lie anywhere: with exact arithmetic many are ties. At a distance of d sigmas from
 * a boundary the probability to cross it is that of a normal number above d, and the variance is
 * that part of step^2: a half at the boundary, a sixteenth at 1.534 sigmas. So much it counts where
 * a boundary is nearer than that, if sigma is so small that of values anywhere only one in 64 had
 * one within lambda*sigma. */
#define HLO_ERROR_FLIP_TIE 1.4142135623730951
#define HLO_ERROR_NEAR 1.534
#define HLO_ERROR_FINE 1024.0

/* By how many times its own sigma a perturbed execution moves every result. Rare events, such as
 * the one fp8 value among thousands that falls to the other side of its boundary, are as many times
 * more frequent in a sample than in the pair that it judges. */
#define HLO_ERROR_AMPLITUDE 2.0

/* How many times the noise the compared execution may be away, noise being the largest root mean
 * square that samples show, divided by the amplitude: HLO_ERROR_NOISE + HLO_ERROR_NOISE_FEW /
 * sqrt(n) for n elements, as a root mean square of few says less. Samples show the amplitude times
 * the noise where errors are small enough to add up, and just the noise where flips of fp8 values
 * feed on one another. Both are measured: over 40 models before and after, with inputs from several
 * seeds, the most was 2.4 over many elements, and 6.3 over three (amaxes of gradients,
 * whose logarithms are what varies evenly); against XLA it was 1.0. */
#define HLO_ERROR_NOISE 2.5
#define HLO_ERROR_NOISE_FEW 10.0

/* Nothing is known of the element; it may be NaN. */
#define HLO_ERROR_ANYTHING ((double)NAN)

/* Whether an element of that sigma overflowed in its rounding. */
static inline bool hlo_error_overflowed(double value, double sigma) {
    return !isfinite(value) && sigma > 0 && sigma < 0x1p120;
}

/* The larger of two variances; NaN, which says that nothing is known, is larger than any. */
static inline double hlo_error_larger(double a, double b) {
    return a >= b || isnan(a) ? a : b;
}

typedef struct hlo_error_options {
    bool roundings_may_be_dropped; /* of intermediate bf16 and f16 results, as when one of the two
                                      executions fuses operations; never those to fp8. Scales may
                                      be applied elsewhere, too */
} hlo_error_options;

/* Computes the sigmas of the results of `instr`. `operands` and `results` are as for hlo_eval(),
 * which has computed the results before; with each goes a view of its sigmas: f32, of the same
 * dimensions; an operand's with data NULL is exact. Supports what hlo_eval_supports() does. Sigmas
 * of results overlap nothing. Memory, `why` and status as for hlo_eval(). */
hlo_status hlo_error_sigmas(const hlo_eval_env *env, const hlo_instr *instr,
                            const hlo_view *operands, const hlo_view *operand_sigmas,
                            const hlo_view *results, const hlo_view *result_sigmas,
                            const hlo_error_options *options, hlo_arena *scratch, const char **why);

/* The same for hlo_eval_dot_views(). A sigma view with data NULL is exact. */
hlo_status hlo_error_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                               const hlo_view *lhs_sigma, const hlo_view *rhs,
                               const hlo_view *rhs_sigma, const hlo_view *result,
                               const hlo_view *result_sigma, const hlo_error_options *options,
                               hlo_arena *scratch, const char **why);

/* The sigma of `value`, known to `sigma`, once it is clamped to +-limit (infinity: not at all) and
 * rounded to `type`. */
double hlo_error_rounded(hlo_type type, double value, double sigma, double limit,
                         const hlo_error_options *options);

/* Moves the elements of a result that one instruction has computed by `times` its own rounding
 * errors: by times * sigma[i] * g, g being a number of mean 0 and variance 1 that depends on
 * `stream` and i alone, rounded to the type again. `sigma` is dense and row-major, what
 * hlo_error_sigmas() gives for exact operands; where it is infinite, as of products of complex
 * numbers, 2^-20 of the value. What is not finite, and no number with a fraction, stays. */
void hlo_error_perturb(const hlo_view *value, const float *sigma, double times, uint64_t stream);

/* What comparing two arrays found. Every element is in one of the first four counts. */
typedef struct hlo_error_comparison {
    int64_t equal;      /* the same value, or both NaN */
    int64_t within;     /* not the same, but within lambda*sigma */
    int64_t steps;      /* fp8: neighbours, with a rounding boundary within the bound */
    int64_t violations; /* further apart */
    int64_t nonfinite;  /* of the violations: infinite or NaN on one side only */
    double largest;     /* of |a - b| / (lambda*sigma), where sigma > 0 and all is finite */
    /* The element that is furthest beyond its bound; index -1 without a violation. */
    int64_t worst_index; /* row-major */
    double worst_a, worst_b, worst_bound;
} hlo_error_comparison;

/* For each element, row-major, how far it is from what the bound accepts: 0 the same, or anything
 * is; at most 1 within it, |a - b| / bound; more: beyond, infinity if one of the two is not finite.
 */
void hlo_error_excess(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                      float *out_excess);

/* Compares arrays of one type and dimensions; `sigma` NULL, or its data NULL: must be equal. */
void hlo_error_compare(const hlo_view *a, const hlo_view *b, const hlo_view *sigma,
                       hlo_error_comparison *out_comparison);

#endif
