/* SPDX-License-Identifier: Apache-2.0 */
/* Execution counts of computations. */
#ifndef HLO_MATMUL_COST_RUN_COUNT_H
#define HLO_MATMUL_COST_RUN_COUNT_H

#include "matmul/call.h"

/* Returns the trip count of a while loop: `known_trip_count` of its backend config, which XLA sets,
 * or the trip count determined by analysis of the loop; 1 if unknown. */
double hlo_loop_trip_count(const hlo_instr *loop);

/* Writes the number of executions of each computation, by computation id, in one execution of the
 * module. It is the sum, over all callers, of the caller's count times the trip count of a loop.
 * Each branch of a conditional counts once. 0: not reachable from the entry. `out_runs` has
 * module->next_computation_id elements. */
void hlo_run_counts(const hlo_module *module, double *out_runs);

#endif
