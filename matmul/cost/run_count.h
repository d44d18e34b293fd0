/* SPDX-License-Identifier: Apache-2.0 */
/* The number of runs of each computation. */
#ifndef HLO_MATMUL_COST_RUN_COUNT_H
#define HLO_MATMUL_COST_RUN_COUNT_H

#include "matmul/call.h"

/* Returns the trip count of a while loop: `known_trip_count` of its backend config, which XLA sets,
 * or the one that the loop itself determines; 1 if neither is known. */
double hlo_loop_trip_count(const hlo_instr *loop);

/* Writes, by computation id, the runs of each computation in one execution of the module: the sum,
 * over its callers, of the caller's runs times the trip count of a loop; every branch of a
 * conditional once; 0: the entry does not reach it. `out_runs` has module->next_computation_id
 * elements. */
void hlo_run_counts(const hlo_module *module, double *out_runs);

#endif
