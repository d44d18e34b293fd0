/* The command line of hlo-fp8-run as a whole: what options mean, and which suit each other. */
#ifndef HLO_TOOLS_USAGE_H
#define HLO_TOOLS_USAGE_H

#include <stdint.h>

#include "options.h"

/* The options that name files that an execution writes. */
enum { USAGE_WRITTEN = 4 };
extern const option_id usage_written[USAGE_WRITTEN];

/* Returns the plugin that --backend names; NULL: it names none. */
const char *usage_plugin(const option_value *values);
/* Returns the number of simulated devices. */
uint32_t usage_devices(const options *given);
/* Returns the number of simulated devices that a comparison executes on: those of a plugin's
 * partitioned module, too. */
uint32_t usage_judged_devices(const options *given);
/* True if the options suit each other; otherwise complains. */
bool usage_is_right(const options *given);

#endif
