/* The inside of error bounds: what the files of this folder share. */
#ifndef HLO_IR_ERROR_RULES_H
#define HLO_IR_ERROR_RULES_H

#include "ir/error/error.h"
#include "ir/error/range.h"
#include "ir/eval/kernel.h"

/* The same call with the sigma of each operand and result beside it (error.h). */
typedef struct hlo_error_call {
    hlo_call call;
    const hlo_view *operand_sigmas, *result_sigmas; /* f32; data NULL: exact */
    const hlo_error_options *options;
} hlo_error_call;

/* One function for each form of hlo_error_form. It fills the sigmas of all results. */
typedef hlo_status hlo_error_rule(const hlo_error_call *bound);
#define FORM(id, name) hlo_error_rule hlo_error_##name;
HLO_ERROR_FORMS(FORM)
#undef FORM

/* For a chunk: the sigmas of `value`, known to `sigma` and to lie in `range` (NULL: anywhere), once
 * rounded to `type`, which gave `result`. `rounds`: whether the operation rounds to the type
 * everywhere; else only what `result` differs from was rounded, such as small bf16 numbers to f16,
 * which has more bits but less range. In place. */
void hlo_error_round_chunk(hlo_type type, const double *value, const double *result, bool rounds,
                           const hlo_range *range, const hlo_error_options *options, int64_t count,
                           double *sigma);
/* Below this, f32 arithmetic may take results for zero. */
#define HLO_ERROR_FLUSHED 0x1p-126

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

/* Sigmas for every element of `value`: zeros. */
hlo_view hlo_error_zeros(const hlo_view *value);
/* `sigma`, or zeros where it has no data. */
hlo_view hlo_error_sigma_or_zeros(const hlo_view *value, const hlo_view *sigma);

typedef struct hlo_extent {
    double lowest, highest, sigma;
    hlo_type type; /* of the array that is being looked at */
} hlo_extent;

extern const hlo_extent hlo_extent_empty;
/* Widens `e` by an array of real numbers; anything where there is a NaN. */
void hlo_extent_add(hlo_extent *e, const hlo_view *value, const hlo_view *sigma);

#endif
