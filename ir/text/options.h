/* Structs of options, which begin with the size that the caller's header gave them. */
#ifndef HLO_IR_TEXT_OPTIONS_H
#define HLO_IR_TEXT_OPTIONS_H

#include <string.h>

#include "hlo/status.h"
#include "ir/text/diag.h"

/* The first members of options that have a sink. */
typedef struct hlo_options_head {
    size_t struct_size;
    const hlo_diag_sink *sink;
} hlo_options_head;

/* Writes the defaults, a struct of `size` bytes, to the caller's struct of `struct_size` bytes;
 * fields that the library does not know are zeroed. */
static inline void hlo_options_fill(void *options, size_t struct_size, const void *defaults,
                                    size_t size) {
    memset(options, 0, struct_size);
    memcpy(options, defaults, struct_size < size ? struct_size : size);
    if (struct_size >= sizeof struct_size) memcpy(options, &struct_size, sizeof struct_size);
}

/* Overwrites *out, the defaults, by the caller's options; NULL: the defaults stay. `size`: of the
 * struct of this release, `least`: of that of the first one. HLO_INVALID_USAGE, with an error that
 * names `type`, unless options->struct_size lies between them. */
static inline hlo_status hlo_options_take(const char *type, void *out, size_t size, size_t least,
                                          const void *options, const hlo_diag_sink *sink) {
    if (!options) return HLO_OK;
    size_t given;
    memcpy(&given, options, sizeof given);
    if (given < least || given > size) {
        hlo_diag_refuse(sink, NULL, 0, 0,
                        "%s.struct_size is %zu, which must be between %zu and %zu: initialize the "
                        "options with their _init function",
                        type, given, least, size);
        return HLO_INVALID_USAGE;
    }
    memcpy(out, options, given);
    memcpy(out, &size, sizeof size);
    return HLO_OK;
}

/* Returns the sink of options that have it as their second member; NULL: they have none, or are too
 * small. */
static inline const hlo_diag_sink *hlo_options_sink(const void *options) {
    hlo_options_head known = {.sink = NULL};
    if (options) memcpy(&known.struct_size, options, sizeof known.struct_size);
    if (known.struct_size < sizeof known) return NULL;
    memcpy(&known, options, sizeof known);
    return known.sink;
}

#endif
