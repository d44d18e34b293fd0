/* SPDX-License-Identifier: Apache-2.0 */
#include "hlo/version.h"

const char *hlo_version(void) {
    return HLO_VERSION;
}
