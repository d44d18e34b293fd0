/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of status.h. */
#include "reference.h"

#include <hlo/status.h>

/* [status] */
/* Reports a failure, and returns the exit status of the program. */
static int finish(const char *program, hlo_status status) {
    if (status != HLO_OK) fprintf(stderr, "%s: %s\n", program, hlo_status_name(status));
    return hlo_status_exit(status);
}
/* [status] */

hlo_status example_status(void) {
    return finish("reference", HLO_OK) == 0 && finish("expected failure", HLO_STOPPED) == 1
               ? HLO_OK
               : HLO_INTERNAL;
}
