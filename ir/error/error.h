/* How far two legitimate executions of a module may be apart: running error analysis.
 *
 * Two executions are legitimate when both follow HLO, and differ only in what HLO leaves open: the
 * order and the width of accumulation, contraction into fused multiply-adds, the last places of
 * transcendental functions, subnormals taken for zero and, by option, whether an intermediate bf16
 * or f16 rounding happens. With each array of values goes an f32 array `sigma` of the same
 * dimensions: the size, like a standard deviation, of the difference between the two at that
 * element. A difference is accepted up to HLO_BOUND_LAMBDA * sigma. Sigma 0 says that the element
 * must be equal, infinity that it may be any number or infinite, and NaN where it is a number here;
 * NaN that nothing is known: of an infinity that may be NaN elsewhere, or a NaN that may be an
 * infinity, and of what is made of those. What is a number here only because it is one in this
 * execution has an infinite sigma, and is judged by its noise (below). An element that is not
 * finite and has a finite sigma above 0 overflowed when it was rounded to its type: sigma is then
 * its size before that, or 2^119 if that is less, and what does not round there may go on with this
 * number, or one that is larger.
 *
 * Method. Rounding errors are taken to be independent, with mean zero and at most the unit
 * roundoff u of the type: then they add up in quadrature, and a sum of K terms is off by about
 * sqrt(K)*u instead of K*u, with a probability of failure that falls exponentially in lambda^2
 * (N. J. Higham and T. Mary, A new approach to probabilistic rounding error analysis, SIAM J. Sci.
 * Comput. 41(5), 2019; Sharper probabilistic backward error analysis for basic linear algebra
 * kernels with random data, 42(5), 2020). "Running" means that the bound is made of the values of
 * this very execution (J. H. Wilkinson, Error analysis revisited, IMA Bulletin 22, 1986).
 *
 * Elementwise: let d_i(k) be the larger change of the exact result when operand i alone is moved
 * by +k*sigma_i and by -k*sigma_i, and e_i the larger of d_i(1) and d_i(lambda)/lambda, which are
 * equal where the operation is linear. Then sigma^2 = sum e_i^2 + (ulps*u*|result|)^2, ulps being
 * a column of the table of operations (elementwise.c), 0 for exact ones. A compare may differ
 * where the difference of its operands is within its own bound; so may what a select chooses.
 *
 * Comparing. Numbers may differ by lambda * sigma, those of 16 bits by half a last place of each
 * more. Of two fp8 values that were rounded from x and y, |x - y| <= lambda * s, s being sigma
 * before that rounding, each is half a step or less from what it was rounded from: what lies
 * between their halves must be at most lambda * s. The sigma of a flip, which stands for one random
 * step, says too little there: x and y two of their sigmas apart, on either side of a step, become
 * numbers that are two steps apart.
 *
 * Rounding to fp8, and to every narrow type unless roundings may be dropped: sigma becomes
 * sqrt(sigma^2 + (step/f)^2), but at most the distance of round(r -+ lambda*sigma) to the result,
 * divided by f, r being the value before rounding: 0 where no rounding boundary lies within the
 * bound. f is HLO_BOUND_FLIP, and HLO_BOUND_FLIP_TIE of ties, as sums of quantised values often
 * are. Where roundings to bf16 and f16 may be dropped, each adds a uniform error on either side:
 * sigma^2 += 2*ulp^2/12.
 *
 * An operation on one value twice, other than at a pole (x / x): that value moved is moved in both
 * places. A square thus has 2*|x|*sigma + lambda*sigma^2; as a product of two it would have 0 at 0.
 * Factors of other products may depend on each other as well: sigma^2 += (lambda * sa * sb)^2, what
 * lambda sigmas of one add to those of the other.
 *
 * Dot: sigma^2 = a^2*sb^2 + sa^2*b^2 + sa^2*sb^2, as matrix products of squares, + the error of
 * accumulating. That of K terms p_l is u^2 * (K/6 * sum p_l^2 + K/9 * (sum p_l)^2): the expected
 * sum of u^2/3 * (partial sum)^2 if the terms are centred, and if they are all of one size and
 * sign. Equal terms do not err independently: while the partial sums have one exponent, what is
 * lost of the term is the same in each addition, and K of them are off by up to u * K/2 * |sum|,
 * which is beyond lambda * sigma from K = 30 on. But what this execution is off by is no matter of
 * chance: the sum is computed in f64 as well, and a lambda-th of the distance e between the two is
 * added to sigma, so that |difference| <= e + lambda * (sigma without it), the second term being
 * for the other execution. Sum by reduce or scatter: the same with sigma^2 = sum sigma_l^2, and u
 * that of the type, as HLO's reducer rounds every partial sum; here they are summed in f64. What
 * the sigmas of the terms give is that of independent errors. One that all terms share, as that of
 * a scale which was rounded, moves the sum S by its part of S: linearly in K where the terms are of
 * one sign. But it is one rounding, at most sqrt(6) of its sigma and not lambda. So the variance
 * from the terms is multiplied by max(1, 6/lambda^2 * S^2 / sum p_l^2), with which lambda * sigma
 * is no less than a shared error. Terms that have the same values and sigmas in each sum, as
 * columns that are repeated do, are one error: a class of them with factors w gives sigma^2 * (sum
 * w)^2 if it is that, sigma^2 * sum w^2 if only the numbers are the same. The variance is no less
 * than the sum over the classes of the larger of the two.
 *
 * Largest and smallest element, and logical sums: the results with every element moved up, and
 * down.
 *
 * A dot whose result is fp8 may be rounded to f16 on the way: sigma^2 += (2^-11 * result)^2. XLA's
 * CPU also converts both operands to the result's type first; where that is the narrower one (e4m3
 * times e5m2 to e5m2), each adds u^2/3 * sum p_l^2, with its u.
 *
 * Movement: sigma moves with the elements. Places that are uncertain make the whole result
 * uncertain by the range of what they choose from. Anything else: the results with each operand as
 * a whole moved up, and down.
 *
 * Nothing is moved further than what the instructions before make sure (range.c): a clamp's ends,
 * 0 for what is squared, 1 for a softmax; no sigma exceeds half of that range.
 *
 * Sampling. Errors are not independent: those of a scale or of a row's mean are the same for all
 * that it scales, and where operations follow on one another sigma is far too large for what
 * happens. So a second judgement goes beside that of each element, in the manner of stochastic
 * arithmetic (D. S. Parker, Monte Carlo arithmetic, UCLA CSD-970002, 1997; J. Vignes, A stochastic
 * arithmetic for reliable scientific computation, Math. Comput. Simul. 35, 1993): the module is
 * executed again with each result moved at random by its own error, the sigma that it has when its
 * operands are taken for exact. What is exact stays, quantised values flip when what they are made
 * of crosses a boundary. The root mean square over an array of how far that moves it, in units of
 * sigma, is the noise that a difference is measured by; where sigma is infinite, in units of the
 * array's size.
 *
 * Overflow. Where roundings may be dropped, a result that its rounding made infinite may go on as
 * the number that it was: nothing is known of what is made of it, but that it is infinite as well
 * where that number is still too large. A product with a scale that is infinite or NaN, or a
 * quotient by one below 2^-126, is NaN for zeros, and where the scale is moved these are other
 * zeros (of padding, of masks): nothing is known of it, nor of the whole dot. So do zeros have the
 * sign of what is scaled after them: sigma is as far as the other sign changes the result, and
 * nothing is known of an infinity whose sign it is, as that of 1/0. A dot of fp8 type
 * that overflows may be the largest number, as a call saturates.
 *
 * Integers and predicates have sigmas, too: where they are not 0, the element may differ.
 * Of complex arrays only whether they are exact is known: sigma is 0, rounding, or infinity. */
#ifndef HLO_IR_EVAL_BOUND_H
#define HLO_IR_EVAL_BOUND_H

#include <math.h>

#include "ir/eval/eval.h"

/* How many sigmas are accepted. By the theorem cited above one element in 10^13 or so would exceed
 * them if the analysis were sharp; it is not, as errors are not Gaussian and operands not
 * independent, so this leaves room for both. */
#define HLO_BOUND_LAMBDA 8.0

/* A change of one step by rounding, or from one choice of a select to the other, counts as this
 * many sigmas. Whether it happens is a matter of where the value lies between boundaries; on
 * average over that, and while sigma is at most half a step, its variance is at most that of
 * (step/4)^2 for all elements with a boundary within lambda*sigma. */
#define HLO_BOUND_FLIP 4.0

/* Values need not lie anywhere: with exact arithmetic many are ties. At a distance of d sigmas from
 * a boundary the probability to cross it is that of a normal number above d, and the variance is
 * that part of step^2: a half at the boundary, a sixteenth at 1.534 sigmas. So much it counts where
 * a boundary is nearer than that, if sigma is so small that of values anywhere only one in 64 had
 * one within lambda*sigma. */
#define HLO_BOUND_FLIP_TIE 1.4142135623730951
#define HLO_BOUND_NEAR 1.534
#define HLO_BOUND_FINE 1024.0

/* By how many times its own sigma a perturbed execution moves every result. Rare events, such as
 * the one fp8 value among thousands that falls to the other side of its boundary, are as many times
 * more frequent in a sample than in the pair that it judges. */
#define HLO_BOUND_AMPLITUDE 2.0

/* How many times the noise the compared execution may be away, noise being the largest root mean
 * square that samples show, divided by the amplitude: HLO_BOUND_NOISE + HLO_BOUND_NOISE_FEW /
 * sqrt(n) for n elements, as a root mean square of few says less. Samples show the amplitude times
 * the noise where errors are small enough to add up, and just the noise where flips of fp8 values
 * feed on one another. Both are measured: over 40 models before and after, with inputs from several
 * seeds, the most was 2.4 over many elements, and 6.3 over three (abs-maxima of gradients,
 * whose logarithms are what varies evenly); against XLA it was 1.0. */
#define HLO_BOUND_NOISE 2.5
#define HLO_BOUND_NOISE_FEW 10.0

/* Nothing is known of the element; it may be NaN. */
#define HLO_BOUND_ANYTHING ((double)NAN)

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
hlo_status hlo_eval_bound(const hlo_eval_env *env, const hlo_instr *instr, const hlo_view *operands,
                          const hlo_view *operand_sigmas, const hlo_view *results,
                          const hlo_view *result_sigmas, const hlo_error_options *options,
                          hlo_arena *scratch, const char **why);

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
 * hlo_eval_bound() gives for exact operands; where it is infinite, as of products of complex
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
