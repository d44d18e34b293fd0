/* How often each computation runs. */
#ifndef HLO_MATMUL_RUNS_H
#define HLO_MATMUL_RUNS_H

#include "matmul/call.h"

/* By computation id, how often one execution of the module runs it: the product of the trips of the
 * loops round it, as XLA has noted them (`known_trip_count` in the config) or as they follow from
 * the loop; a loop of unknown length counts once. What is called from several places runs as often
 * as the place that runs most. `out_runs` has room for module->next_computation_id. */
void hlo_runs(const hlo_module *module, double *out_runs);

#endif
