/* SPDX-License-Identifier: Apache-2.0 */
/* See target.h. */
#include "runtime/pjrt/target.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"

/* Returns the first field that is missing or 0, or NULL. */
static const char *missing_field(const char *text, size_t text_size) {
    static const char *const fields[] = {"gpu_device_info",   "threads_per_block_limit",
                                         "threads_per_warp",  "threads_per_core_limit",
                                         "core_count",        "fpus_per_core",
                                         "block_dim_limit_x", "block_dim_limit_y",
                                         "block_dim_limit_z", "memory_bandwidth",
                                         "clock_rate_ghz"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t size = strlen(fields[i]);
        const char *at = text, *end = at + text_size, *found;
        double value = 0;
        while (!(value > 0) && (found = memmem(at, (size_t)(end - at), fields[i], size))) {
            at = found + size;
            while (at < end && (isspace((unsigned char)*at) || *at == ':')) at++;
            char number[32] = "";
            memcpy(number, at,
                   (size_t)(end - at) < sizeof number ? (size_t)(end - at) : sizeof number - 1);
            value = *number == '{' ? 1 : strtod(number, NULL);
        }
        if (!(value > 0)) return fields[i];
    }
    return NULL;
}

hlo_status pjrt_target_check(const char *path, const hlo_content *text, const hlo_diag_sink *sink) {
    const char *missing = missing_field(text->bytes, text->size);
    if (!missing) return HLO_OK;
    return hlo_diag_refuse(sink, path, 0, 0,
                           "cannot read the target: expected a GpuTargetConfigProto as text, but "
                           "`%s` is missing or 0",
                           missing);
}
