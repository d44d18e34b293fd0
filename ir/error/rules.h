/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of error bounds: calls of kernels, rules, and the helpers of rules. */
#ifndef HLO_IR_ERROR_RULES_H
#define HLO_IR_ERROR_RULES_H

#include "ir/error/error.h"
#include "ir/eval/range.h"
#include "ir/kernel/kernel.h"

/* A call of a kernel with the sigma of each operand and result (error.h). */
typedef struct hlo_error_call {
    hlo_call call;
    const hlo_view *operand_sigmas, *result_sigmas; /* f32; if data is NULL, the array is exact */
    const hlo_error_options *options;
} hlo_error_call;

/* The rule of one hlo_error_form. It sets the sigmas of all results. */
typedef hlo_status hlo_error_rule(const hlo_error_call *bound);
#define FORM(id, name, overflows) hlo_error_rule hlo_error_##name;
HLO_ERROR_FORMS(FORM)
#undef FORM

/* Updates the sigmas of a chunk for rounding `value`, whose range is `range` (NULL: unbounded), to
 * `type`, with result `result`. `rounds`: the operation rounds every element to the type. Otherwise
 * only elements where `result` differs from `value` were rounded, such as small bf16 numbers
 * converted to f16, which has more precision but less range. */
void hlo_error_round_chunk(hlo_type type, const double *value, const double *result, bool rounds,
                           const hlo_range *range, const hlo_error_options *options, int64_t count,
                           double *sigma);
/* Below this size, f32 arithmetic may flush results to zero. */
#define HLO_ERROR_FLUSHED 0x1p-126

/* True if the numbers are equal, or both NaN. */
static inline bool hlo_error_same(double a, double b) {
    return (a == b) | ((a != a) & (b != b));
}
double hlo_error_round(hlo_type type, double value);
/* Returns the sigma of an element that overflowed when `value` was rounded. */
double hlo_error_overflow(double value);
/* Returns the distance between the numbers of `type` around `value`. */
double hlo_error_last_place(hlo_type type, double value);
/* Returns the distance from a number of a narrow type to its neighbor away from zero or, if it is
 * the largest, to the other neighbor. */
double hlo_error_step(hlo_type type, double number);
/* Returns the neighbor of a number of a narrow type on the side of `toward`. */
double hlo_error_neighbor(hlo_type type, double number, double toward);
/* Returns the unit roundoff of the arithmetic for `type`: of f64 for f64, otherwise of f32. */
double hlo_error_roundoff(hlo_type type);
/* True if no element of the sigma view is above zero. */
bool hlo_error_is_exact(const hlo_view *sigma);

/* Finds repeated terms of a sum along dimensions of `value`. Returns, for each batch and term, the
 * first term with equal elements and variances: the term itself unless it is a repetition. Returns
 * NULL if no term is repeated. Allocates from scratch. */
const int64_t *hlo_error_repeats(const hlo_error_call *bound, const hlo_view *value,
                                 const hlo_view *variance, const hlo_ints *batch,
                                 const hlo_ints *along);
/* Computes the weights of the variances of repeated terms with factors. At the first of equal
 * terms, the weight is the larger of the sum of the factors' squares and the square of their sum;
 * at the other terms, it is 0. Returns an f64 array with the dimensions of the factors, in scratch.
 */
hlo_view hlo_error_joined(const hlo_error_call *bound, const int64_t *first,
                          const hlo_view *factors, const hlo_ints *batch, const hlo_ints *along);

/* Elements of an operand that overflowed when rounded (error.h). */
typedef struct hlo_error_overflows {
    hlo_type type;
    bool some, anything; /* some: an element overflowed; anything: an element is unbounded */
} hlo_error_overflows;
hlo_error_overflows hlo_error_find_overflows(const hlo_view *value, const hlo_view *sigma);

/* True if an operand has an element that overflowed or is unbounded. */
bool hlo_error_any_overflow(const hlo_error_call *b);

static inline bool hlo_error_is_complex(const hlo_view *view) {
    return hlo_lane_of(view->type) == HLO_LANE_C128;
}
/* Sets the sigmas of one result or of all results. The second function returns HLO_OK. */
void hlo_error_fill(const hlo_error_call *b, const hlo_view *sigma, double value);
hlo_status hlo_error_fill_all(const hlo_error_call *b, double value);

hlo_view hlo_error_as_f64(const hlo_error_call *b, const hlo_view *value);
/* Creates a dense f64 copy of `sigma`; an array of zeros if `sigma` has no data. */
hlo_view hlo_error_sigma_as_f64(const hlo_error_call *b, const hlo_view *value,
                                const hlo_view *sigma);
/* Creates a dense f64 array of the dimensions of `like`. */
hlo_view hlo_error_constant(const hlo_error_call *b, const hlo_view *like, double value);
/* Creates a dense f64 copy of the squares of `view`, with `instead` for elements that are not
 * finite. */
hlo_view hlo_error_squares(const hlo_error_call *b, const hlo_view *view, double instead);

/* Allocates an array with a zero for each element of a result. */
double *hlo_error_variance_new(const hlo_error_call *b, uint32_t result);
/* Returns the variance that accumulating `terms` terms in unspecified order adds
 * (docs/numerics.md). */
double hlo_error_accumulation(double u, double terms, double sum_of_squares, double sum);
/* Returns the additional variance of sums of kind `sums`, for example due to few fraction bits. */
double hlo_error_narrow_sums(hlo_error_sums sums, double terms, double sum_of_squares, double sum);
/* Returns the factor by which the variance of a sum exceeds the sum of its terms' variances,
 * because terms may share an error of HLO_ERROR_FLIP sigmas (docs/numerics.md). */
double hlo_error_coherence(double sum_of_squares, double sum);
/* Rounds a result to its type and writes its sigmas. `variance` and `unrounded` are dense.
 * `unrounded` is the result before rounding, or NULL if only the rounded result is known. An
 * infinity with an infinite variance has sigma HLO_ERROR_ANYTHING, because its operands may produce
 * a NaN. If the operation rounds (`rounds`), a NaN with an infinite variance has this sigma, too,
 * because it is the result of a sum. */
void hlo_error_finish(const hlo_error_call *b, uint32_t result, const double *variance,
                      const double *unrounded, bool rounds);

typedef struct hlo_extent {
    double lowest, highest, sigma;
    hlo_type type; /* type of the array being read */
} hlo_extent;

/* Returns the smallest and the largest element of an array of real numbers; -inf and inf if an
 * element is NaN. */
hlo_extent hlo_view_extent(const hlo_view *view);

#endif
