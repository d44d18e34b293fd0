/* The distance by which each rewritten matmul moves the outputs of a module. */
#ifndef HLO_TOOLS_BISECT_H
#define HLO_TOOLS_BISECT_H

#include "hlo/pass.h"
#include "hlo/runtime.h"

/* Executes `module`, which no pass has changed, on `inputs`: as it is, with all matmuls rewritten
 * that `pass` rewrites, with each of them alone, and with all but it. Prints a table of the
 * distances between the outputs and those of the module as it is, largest alone first. */
hlo_status bisect(const hlo_module *module, const hlo_pass_options *pass,
                  const hlo_plan_options *plan, const hlo_arrays *inputs);

#endif
