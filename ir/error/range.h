/* Between which numbers the elements of a value lie. */
#ifndef HLO_IR_ERROR_RANGE_H
#define HLO_IR_ERROR_RANGE_H

#include "ir/eval/eval.h"

/* What the elements of a value are sure to be, NaN excepted; infinite ends when nothing is known.
 * Looks back over a few instructions. */
typedef struct hlo_range {
    double low, high;
} hlo_range;
hlo_range hlo_range_of(const hlo_instr *instr);
/* The smallest and largest element of an array of real numbers; infinities when there is a NaN. */
void hlo_view_extent(const hlo_view *view, hlo_range *out_range);

#endif
