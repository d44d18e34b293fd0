/* How often each computation runs. */
#ifndef HLO_MATMUL_RUNS_H
#define HLO_MATMUL_RUNS_H

#include "matmul/call.h"

/* How often a while loop goes round, as XLA has noted it (`known_trip_count` in the config) or as
 * it follows from the loop; 1 where neither tells. */
double hlo_loop_trips(const hlo_instr *loop);

/* By computation id, how often one execution of the module runs it: the product of the trips of the
 * loops round it. What is called from several places runs as often
 * as the place that runs most. `out_runs` has room for module->next_computation_id. */
void hlo_runs(const hlo_module *module, double *out_runs);

#endif
