/* Intervals that contain the elements of a value. */
#ifndef HLO_IR_ERROR_RANGE_H
#define HLO_IR_ERROR_RANGE_H

#include "ir/eval/eval.h"

/* An interval that contains every element of a value but NaNs, however far its operands may be off;
 * infinite ends when nothing is known. Follows operands over a few instructions. */
typedef struct hlo_range {
    double low, high;
} hlo_range;
hlo_range hlo_range_of(const hlo_instr *instr);
/* The smallest and largest element of an array of real numbers; infinities when there is a NaN. */
void hlo_view_extent(const hlo_view *view, hlo_range *out_range);

#endif
