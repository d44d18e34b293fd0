/* Ranges of values that are whole numbers: integers of few bits, clamped, masked or shifted ones,
 * and what is computed from these. f8e4m3fn holds every whole number up to 16. */
#ifndef HLO_PASSES_NARROW_WHOLE_RANGE_H
#define HLO_PASSES_NARROW_WHOLE_RANGE_H

#include "ir/ir.h"

typedef struct hlo_whole_range {
    int64_t low, high;
    bool known; /* every element is a whole number from `low` to `high` */
    bool input; /* an element depends on more than constants */
} hlo_whole_range;

/* Finds the range of each instruction of a computation, whose operands stand before it, into
 * `ranges`, by id. */
void hlo_whole_ranges_find(const hlo_computation *comp, hlo_whole_range *ranges);

/* True if f8e4m3fn has every value of the range. */
bool hlo_whole_range_fits_e4m3(const hlo_whole_range *range);

#endif
