/* SPDX-License-Identifier: Apache-2.0 */
/* Reads whole files.
 *
 * A path must name a regular file. A directory, a device, a socket or a FIFO in the file system is
 * rejected, because reading it may never end. Files that the caller has opened may be of any kind.
 * Their paths are `-` (standard input), /dev/stdin, and /dev/fd/N, which a shell passes for
 * `<(command)`. */
#ifndef HLO_IR_TEXT_FILE_H
#define HLO_IR_TEXT_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "hlo/diag.h"
#include "hlo/status.h"
#include "ir/arena.h"

typedef struct hlo_content {
    char *bytes; /* from hlo_malloc(), not NUL-terminated */
    size_t size, capacity;
} hlo_content;

/* Doubles the capacity. Returns false if memory runs out. */
bool hlo_content_grow(hlo_content *content);

/* Moves the bytes, followed by two NULs, to the arena. If the capacity has space for the NULs, as
 * for a regular file, makes no copy and sets content->bytes to NULL. */
char *hlo_content_take(hlo_content *content, hlo_arena *arena);

/* Reads the whole file. The caller always frees out->bytes. Returns HLO_OK; HLO_INVALID_INPUT, with
 * one error in `sink` that names the path; or HLO_OUT_OF_MEMORY. */
hlo_status hlo_file_read(const char *path, const hlo_diag_sink *sink, hlo_content *out);

/* Checks that hlo_file_read() could open the file, for files that other libraries read. Returns the
 * same statuses as hlo_file_read(). */
hlo_status hlo_file_check(const char *path, const hlo_diag_sink *sink);

/* Emits the error "cannot read file: why". Returns HLO_INVALID_INPUT. */
hlo_status hlo_file_refuse(const char *path, const hlo_diag_sink *sink, const char *why);

#endif
