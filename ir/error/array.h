/* SPDX-License-Identifier: Apache-2.0 */
/* Error bounds of whole arrays: kernels are run again on other operands. */
#ifndef HLO_IR_ERROR_ARRAY_H
#define HLO_IR_ERROR_ARRAY_H

#include "ir/error/rules.h"

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
/* True if every operand is exact. */
bool hlo_error_all_exact(const hlo_error_call *b);
/* Sets the sigmas of one result or of all results. The second function returns HLO_OK. */
void hlo_error_fill(const hlo_error_call *b, const hlo_view *sigma, double value);
hlo_status hlo_error_fill_all(const hlo_error_call *b, double value);

/* Runs the kernel of the call on other operands, into other results. */
hlo_status hlo_error_rerun(const hlo_error_call *b, const hlo_view *operands,
                           const hlo_view *results);
/* Copies the operand views in scratch, to be modified for hlo_error_rerun(). */
hlo_view *hlo_error_operands_copy(const hlo_error_call *b);
/* Copies `value` in `type`, with each element moved by `sign` * lambda * sigma. An element with
 * infinite sigma becomes infinite, even if it is a NaN: another execution may have any number
 * there. */
hlo_view hlo_error_moved_copy(const hlo_error_call *b, const hlo_view *value, const hlo_view *sigma,
                              double sign, hlo_type type);
/* Creates a dense f64 copy of `value`. */
hlo_view hlo_error_as_f64(const hlo_error_call *b, const hlo_view *value);
/* Creates a dense f64 copy of the squares of `view`, with `instead` for elements that are not
 * finite. */
hlo_view hlo_error_squares(const hlo_error_call *b, const hlo_view *view, double instead);

/* Allocates zeros, one for each element of a result. */
double *hlo_error_variance_new(const hlo_error_call *b, uint32_t result);
/* Adds (change / lambda)^2 to `variance`. The change is the larger of the distances of `a` and `c`
 * from `value`. All arrays are dense f64. */
void hlo_error_add_change(const hlo_view *value, const hlo_view *a, const hlo_view *c,
                          double *variance);
/* Returns the variance that accumulating `terms` terms in unspecified order adds
 * (docs/numerics.md). */
double hlo_error_accumulation(double u, double terms, double sum_of_squares, double sum);
/* Returns the additional variance of that kind of sums. */
double hlo_error_narrow_sums(hlo_error_sums sums, double terms, double sum_of_squares, double sum);
/* Returns the factor by which the variance of a sum exceeds the sum of its terms' variances,
 * because terms may share an error of HLO_ERROR_FLIP sigmas (docs/numerics.md). */
double hlo_error_coherence(double sum_of_squares, double sum);
/* Rounds a result to its type and writes its sigmas. `variance` is dense, and so is `unrounded`,
 * the result before rounding, which is NULL if only the rounded result is known. The sigma of an
 * infinity with an infinite variance is HLO_ERROR_ANYTHING, because its operands may produce a NaN.
 * So is the sigma of a NaN that is a sum, if `rounds` shows that the operation rounds. */
void hlo_error_finish(const hlo_error_call *b, uint32_t result, const double *variance,
                      const double *unrounded, bool rounds);

#endif
