/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are read as a whole.
 *
 * A path names a regular file. A directory, a device, a socket or a FIFO in the file system is
 * refused: reading one may never end. Files that the caller has opened are read whatever they are:
 * `-` (standard input), /dev/stdin, and /dev/fd/N, which a shell passes for `<(command)`. */
#ifndef HLO_IR_TEXT_FILE_H
#define HLO_IR_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "hlo/diag.h"
#include "hlo/status.h"
#include "ir/arena.h"

typedef struct hlo_content {
    char *bytes; /* malloc()ed, not NUL-terminated */
    size_t size, capacity;
} hlo_content;

/* Doubles the capacity; false when there is no memory. */
bool hlo_content_grow(hlo_content *content);

/* Moves the bytes, followed by two NULs, to the arena: without a copy if the capacity allows, as it
 * does for a regular file, and content->bytes is NULL then; otherwise as a copy. */
char *hlo_content_take(hlo_content *content, hlo_arena *arena);

/* Reads the whole file. The caller frees out->bytes whatever the status. HLO_INVALID_INPUT: one
 * error in `sink`, with the path as its file. HLO_OUT_OF_MEMORY. */
hlo_status hlo_file_read(const char *path, const hlo_diag_sink *sink, hlo_content *out);

/* Checks that hlo_file_read() would open the file, for files that other libraries read. Statuses as
 * for hlo_file_read(). */
hlo_status hlo_file_check(const char *path, const hlo_diag_sink *sink);

/* Emits the error "cannot read the file: why". Returns HLO_INVALID_INPUT. */
hlo_status hlo_file_refuse(const char *path, const hlo_diag_sink *sink, const char *why);

#endif
