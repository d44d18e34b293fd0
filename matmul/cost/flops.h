/* SPDX-License-Identifier: Apache-2.0 */
/* The FLOPs of a module, counted as by XLA's cost analysis (xla/service/hlo_cost_analysis.cc), and
 * execution counts of computations. */
#ifndef HLO_MATMUL_COST_FLOPS_H
#define HLO_MATMUL_COST_FLOPS_H

#include "matmul/call.h"

/* The FLOPs of one execution, by kind. */
typedef struct hlo_flops {
    double dots, calls;  /* dots of every kind; library calls that multiply matrices */
    double convolutions; /* padding and holes counted as elements */
    double elementwise;  /* one for each element of the result */
    double reductions;   /* the computations that reductions, scatters and all-reduces apply */
    double transcendentals;
} hlo_flops;

/* Counts the FLOPs of the entry computation. `totals`: working memory of next_computation_id
 * elements, all zero. If memory runs out, jumps to the recovery point of the module's arena. */
hlo_flops hlo_flops_count(const hlo_module *module, hlo_flops *totals);

/* Writes the number of executions of each computation, by computation id, in one execution of the
 * module. It is the sum, over all callers, of the caller's count times the trip count of a loop.
 * Each branch of a conditional counts once. 0: not reachable from the entry. `out_runs` has
 * module->next_computation_id elements. */
void hlo_run_counts(const hlo_module *module, double *out_runs);

/* Returns the size of the shape in bytes; 0 if unknown. */
static inline double hlo_bytes_of(const hlo_shape *shape) {
    int64_t bytes = hlo_shape_bytes(shape);
    return bytes < 0 ? 0 : (double)bytes;
}

#endif
