/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU description that --topology reads. */
#ifndef HLO_RUNTIME_PJRT_TARGET_H
#define HLO_RUNTIME_PJRT_TARGET_H

#include "ir/text/file.h"

/* Checks that a GpuTargetConfigProto in text format, read from `path`, has the fields that plugins
 * divide by or require. HLO_INVALID_INPUT, with an error in `sink`. */
hlo_status pjrt_target_check(const char *path, const hlo_content *text, const hlo_diag_sink *sink);

#endif
