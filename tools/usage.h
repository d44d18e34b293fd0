/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of hlo-fp8-run as a whole: values derived from several options, and checks of
 * their combinations. */
#ifndef HLO_TOOLS_USAGE_H
#define HLO_TOOLS_USAGE_H

#include <stdint.h>

#include "options.h"

/* The options that name output files of an execution. */
enum { USAGE_WRITTEN = 4 };
extern const option_id usage_written[USAGE_WRITTEN];

/* Returns the plugin that --backend names; NULL if it names another backend. */
const char *usage_plugin(const option_value *values);
/* Returns the number of simulated devices. */
uint32_t usage_devices(const options *given);
/* Returns the number of simulated devices for a comparison, which also executes a plugin's
 * partitioned module. */
uint32_t usage_judged_devices(const options *given);
/* True if the combination of options is valid; otherwise prints an error. */
bool usage_is_right(const options *given);

#endif
