/* SPDX-License-Identifier: Apache-2.0 */
/* Execution counts of computations, and sizes. */
#ifndef HLO_MATMUL_COST_FLOPS_H
#define HLO_MATMUL_COST_FLOPS_H

#include "matmul/call.h"

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
