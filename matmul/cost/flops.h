/* SPDX-License-Identifier: Apache-2.0 */
/* Computes execution counts of computations, and sizes of shapes. */
#ifndef HLO_MATMUL_COST_FLOPS_H
#define HLO_MATMUL_COST_FLOPS_H

#include "matmul/call.h"

/* Writes the number of executions of each computation, by computation id, in one execution of the
 * module. The number is the sum, over all callers, of the caller's count, multiplied by the trip
 * count if the caller is a loop. A loop with an unknown trip count counts as one iteration, and
 * each branch of a conditional as executed once; `out_assumed`, which may be NULL, is true if the
 * number depends on one of these. The number is 0 for computations that are not reachable from the
 * entry. The arrays have module->next_computation_id elements. */
void hlo_run_counts(const hlo_module *module, double *out_runs, bool *out_assumed);

/* Returns the size of the shape in bytes; 0 if unknown. */
static inline double hlo_bytes_of(const hlo_shape *shape) {
    int64_t bytes = hlo_shape_bytes(shape);
    return bytes < 0 ? 0 : (double)bytes;
}

#endif
