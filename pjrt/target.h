/* The description of a GPU that --topology reads. */
#ifndef HLO_PJRT_TARGET_H
#define HLO_PJRT_TARGET_H

#include <stddef.h>

/* Returns the first field that a GpuTargetConfigProto in text format lacks, of those that plugins
 * divide by or require; NULL: it has all of them. `text` need not end in NUL. */
const char *pjrt_missing_field(const char *text, size_t size);

#endif
