/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and fills option structs. Their first member is the size of the struct in the header with
 * which the caller was compiled. */
#ifndef HLO_IR_TEXT_OPTIONS_H
#define HLO_IR_TEXT_OPTIONS_H

#include <string.h>

#include "hlo/status.h"
#include "ir/text/diag.h"

/* The first members of options with a sink. */
typedef struct hlo_options_head {
    size_t struct_size;
    const hlo_diag_sink *sink;
} hlo_options_head;

/* Copies the defaults, a struct of `size` bytes, to the caller's struct of `struct_size` bytes.
 * Zeroes fields that the library does not know. */
static inline void hlo_options_fill(void *options, size_t struct_size, const void *defaults,
                                    size_t size) {
    memset(options, 0, struct_size);
    memcpy(options, defaults, struct_size < size ? struct_size : size);
    if (struct_size >= sizeof struct_size) memcpy(options, &struct_size, sizeof struct_size);
}

/* Overwrites the defaults in *out, a struct of `size` bytes, by the caller's options, unless
 * `options` is NULL. A smaller struct overwrites the fields that it covers. Returns
 * HLO_INVALID_USAGE, with an error that names `type`, if the struct is larger, or if its size
 * cannot be that of a struct that begins with a size_t. */
static inline hlo_status hlo_options_take(const char *type, void *out, size_t size,
                                          const void *options, const hlo_diag_sink *sink) {
    if (!options) return HLO_OK;
    size_t given;
    memcpy(&given, options, sizeof given);
    if (!given || given > size || given % sizeof given) {
        hlo_diag_refuse(sink, HLO_DIAG_OPTION, NULL, 0, 0,
                        "%s.struct_size is %zu, expected %zu: initialize the options with their "
                        "_init function",
                        type, given, size);
        return HLO_INVALID_USAGE;
    }
    memcpy(out, options, given);
    memcpy(out, &size, sizeof size);
    return HLO_OK;
}

/* Returns the sink of options whose second member is a sink; NULL if the sink is not set or the
 * struct is too small. */
static inline const hlo_diag_sink *hlo_options_sink(const void *options) {
    hlo_options_head known = {.sink = NULL};
    if (options) memcpy(&known.struct_size, options, sizeof known.struct_size);
    if (known.struct_size < sizeof known) return NULL;
    memcpy(&known, options, sizeof known);
    return known.sink;
}

#endif
