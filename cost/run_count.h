/* How often each computation runs. */
#ifndef HLO_MATMUL_RUNS_H
#define HLO_MATMUL_RUNS_H

#include "matmul/call.h"

/* How often a while loop goes round, as XLA has noted it (`known_trip_count` in the config) or as
 * it follows from the loop; 1 where neither tells. */
double hlo_loop_trip_count(const hlo_instr *loop);

/* By computation id, how often one execution of the module runs it: for each place that calls it,
 * as often as that runs, times the trips of a loop; every branch of a conditional once; 0: the
 * entry does not reach it. `out_runs` has room for module->next_computation_id. */
void hlo_run_counts(const hlo_module *module, double *out_runs);

#endif
