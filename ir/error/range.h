/* Intervals that contain the elements of a value. */
#ifndef HLO_IR_ERROR_RANGE_H
#define HLO_IR_ERROR_RANGE_H

#include "ir/eval/eval.h"

/* An interval that contains every element of a value but NaNs, for any errors of its operands;
 * infinite ends: unknown. Follows operands over a few instructions. */
typedef struct hlo_range {
    double low, high;
} hlo_range;
hlo_range hlo_range_of(const hlo_instr *instr);
/* Finds the smallest and largest element of an array of real numbers; infinities if there is a NaN.
 */
void hlo_view_extent(const hlo_view *view, hlo_range *out_range);

#endif
