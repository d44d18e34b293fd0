/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of version.h. */
#include "reference.h"

#include <string.h>

#include <hlo/version.h>

hlo_status example_version(void) {
    /* [version] */
    if (strcmp(hlo_version(), HLO_VERSION) != 0)
        printf("compiled with %s, running with %s\n", HLO_VERSION, hlo_version());
    /* [version] */
    return strcmp(hlo_version(), HLO_VERSION) == 0 ? HLO_OK : HLO_INTERNAL;
}
