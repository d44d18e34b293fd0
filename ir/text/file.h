/* Files that are read as a whole.
 *
 * A path names a regular file. A directory, a device, a socket or a FIFO in the file system is
 * refused: reading one may never end. What the caller has opened itself is read whatever it is: `-`
 * (standard input), /dev/stdin, and /dev/fd/N, as which a shell hands over `<(command)`. */
#ifndef HLO_IR_FILE_H
#define HLO_IR_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "hlo/diag.h"
#include "hlo/status.h"
#include "ir/arena.h"

typedef struct hlo_content {
    char *bytes; /* malloc'ed, without a NUL behind */
    size_t size, capacity;
} hlo_content;

/* Makes room for as much again. */
bool hlo_content_grow(hlo_content *content);

/* The bytes, with two NULs behind them, as memory of the arena: themselves where there is room, as
 * there is behind a regular file, and then content->bytes is NULL; else a copy. */
char *hlo_content_take(hlo_content *content, hlo_arena *arena);

/* Reads all of it. The caller frees out->bytes whatever the status. HLO_INVALID_INPUT: one error in
 * `sink`, with the path as its file. HLO_OUT_OF_MEMORY. */
hlo_status hlo_file_read(const char *path, const hlo_diag_sink *sink, hlo_content *out);

/* Whether hlo_file_read() would begin to read, for what is read by others; the same statuses. */
hlo_status hlo_file_check(const char *path, const hlo_diag_sink *sink);

/* The error "cannot read the file: why". Returns HLO_INVALID_INPUT. */
hlo_status hlo_file_refuse(const char *path, const hlo_diag_sink *sink, const char *why);

#endif
