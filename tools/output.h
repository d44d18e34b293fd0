/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic output files: a file appears complete or not at all, even if the program is terminated by
 * a signal that can be caught. */
#ifndef HLO_TOOLS_OUTPUT_H
#define HLO_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    FILE *file;       /* the stream to write to; NULL after output_end() */
    const char *name; /* name for messages */
    char *final;      /* target of the final rename; NULL if the file is written in place */
    char *temporary;  /* path of the temporary file in the same folder */
} output;

/* Must be called first. Reserves the descriptors of closed standard streams, so that no other file
 * reuses them. Buffers stderr by line. */
void output_hold_standard(void);
/* Returns false if writing to `path` would overwrite the file `input`. Both may be NULL. */
bool output_spares(const char *path, const char *input);
bool output_is_standard(const char *path);
/* Opens `path` for writing. "-" and "/dev/stdout" are standard output; NULL is `standard`, which is
 * stdout or stderr. Data is
 * written to a temporary file in the same folder, unless `path` exists and is not a regular file. A
 * symbolic link is followed, even if its target does not exist yet. On failure, returns false with
 * errno set, and only `name` is valid. */
bool output_open(output *out, const char *path, FILE *standard);
/* Returns the name of an output in `files` that is the same file as another output in `files`; NULL
 * if all are distinct. The outputs are open or have no `file`. Devices may be shared, and standard
 * output may be the same file as standard error. */
const char *output_shared(const output *files, size_t count);
/* Ends writing, without renaming the temporary file. Returns false with errno set if a write since
 * output_open() failed. */
bool output_end(output *out);
/* Ends writing if output_end() was not called. Then renames the file to its final name or, if
 * `keep` is false, removes it. If a step fails, removes the file, sets errno and returns false. */
bool output_close(output *out, bool keep);

#endif
