/* How much a module computes. */
#ifndef HLO_MATMUL_FLOPS_H
#define HLO_MATMUL_FLOPS_H

#include "matmul/call.h"

/* Of one execution. */
typedef struct hlo_flops {
    double dots, calls;  /* dots of every kind; calls of libraries that multiply matrices */
    double convolutions; /* padding and holes counted as elements */
    double elementwise;  /* one for each element of the result */
    double reductions;   /* what reductions, scatters and all-reduces apply to elements */
    double transcendentals;
} hlo_flops;

/* `totals`: room by computation id, all zero. Leaves as the module's arena does where there is no
 * memory. */
hlo_flops hlo_flops_count(const hlo_module *module, hlo_flops *totals);

#endif
