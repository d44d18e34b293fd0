/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of error bounds: calls, rules and their helpers. */
#ifndef HLO_IR_ERROR_RULES_H
#define HLO_IR_ERROR_RULES_H

#include "ir/error/error.h"
#include "ir/eval/range.h"
#include "ir/kernel/kernel.h"

/* A call of a kernel with the sigma of each operand and result (error.h). */
typedef struct hlo_error_call {
    hlo_call call;
    const hlo_view *operand_sigmas, *result_sigmas; /* f32; data NULL: exact */
    const hlo_error_options *options;
} hlo_error_call;

/* The rule of one hlo_error_form. It sets the sigmas of all results. */
typedef hlo_status hlo_error_rule(const hlo_error_call *bound);
#define FORM(id, name) hlo_error_rule hlo_error_##name;
HLO_ERROR_FORMS(FORM)
#undef FORM

/* Updates the sigmas of a chunk for rounding `value`, whose range is `range` (NULL: unbounded), to
 * `type`, with result `result`. `rounds`: the operation rounds every element to the type. Otherwise
 * only elements where `result` differs from `value` were rounded, such as small bf16 numbers
 * converted to f16, which has more precision but less range. */
void hlo_error_round_chunk(hlo_type type, const double *value, const double *result, bool rounds,
                           const hlo_range *range, const hlo_error_options *options, int64_t count,
                           double *sigma);
/* The numbers of sigmas by which an operand is moved to measure the change of the result. Lambda is
 * last. The 3 in between covers functions that jump or level off, for which one sigma and lambda do
 * not suffice. */
enum { HLO_ERROR_TIMES = 6 };
extern const double hlo_error_times[HLO_ERROR_TIMES];

/* Below this size, f32 arithmetic may flush results to zero. */
#define HLO_ERROR_FLUSHED 0x1p-126

/* True if the numbers are equal, or both NaN. */
static inline bool hlo_error_same(double a, double b) {
    return (a == b) | ((a != a) & (b != b));
}
/* Rounds `value` to a float type. */
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

/* Finds repeated terms of a sum along dimensions of `value`: for each batch and term, the first
 * term with equal elements and variances, which is the term itself if it is not repeated. Returns
 * NULL if no term is repeated. In scratch. */
const int64_t *hlo_error_repeats(const hlo_error_call *bound, const hlo_view *value,
                                 const hlo_view *variance, const hlo_ints *batch,
                                 const hlo_ints *along);
/* Computes the weights of the variances of repeated terms with factors: at the first of equal
 * terms, the larger of the sum of the factors' squares and the square of their sum; at the others,
 * 0. An f64 array of the factors' dimensions, in scratch. */
hlo_view hlo_error_joined(const hlo_error_call *bound, const int64_t *first,
                          const hlo_view *factors, const hlo_ints *batch, const hlo_ints *along);

/* Returns `sigma`, or zeros of the dimensions of `value` if it has no data. */
hlo_view hlo_error_sigma_or_zeros(const hlo_view *value, const hlo_view *sigma);

typedef struct hlo_extent {
    double lowest, highest, sigma;
    hlo_type type; /* type of the array being read */
} hlo_extent;

extern const hlo_extent hlo_extent_empty;
/* Widens `e` by an array of real numbers; a NaN makes it unbounded. */
void hlo_extent_add(hlo_extent *e, const hlo_view *value, const hlo_view *sigma);
/* Returns the smallest and largest element of an array of real numbers; infinities if an element is
 * NaN. */
hlo_extent hlo_view_extent(const hlo_view *view);

#endif
