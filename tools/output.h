/* Files that appear whole or not at all, also if a signal that a handler can delay ends the
 * program, as it does by default. */
#ifndef HLO_TOOLS_OUTPUT_H
#define HLO_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    FILE *file;       /* to write to; NULL once writing has ended */
    const char *name; /* name for messages */
    char *final;      /* target of the final rename; NULL: written in place */
    char *temporary;  /* the temporary file beside it */
} output;

/* Called first: gives standard streams that the caller has closed to no other file. */
void output_hold_standard(void);
/* False if writing `path` would replace the file `input`; either may be NULL. */
bool output_spares(const char *path, const char *input);
/* True for paths of standard output: "-" and "/dev/stdout". */
bool output_is_standard(const char *path);
/* Opens `path` for writing; NULL is `standard`, standard output or standard error. What is written
 * goes to a temporary file beside it, except where `path` is there and no regular file. A symbolic
 * link stays, and what it leads to is written, also where that is not there yet. On failure errno
 * tells why, and only `name` is set. */
bool output_open(output *out, const char *path, FILE *standard);
/* Returns the name of an output that would replace or mix with another one of `files`, which are
 * open or have no `file`; NULL: all are distinct. Devices, and standard output next to standard
 * error, may be shared. */
const char *output_shared(const output *files, size_t count);
/* Ends writing, and leaves the file in place. False: a write since output_open() failed; errno has
 * the reason. */
bool output_end(output *out);
/* Ends writing, if that has not been done: with `keep` puts the file in its place, otherwise leaves
 * no trace of it. False when anything could not be done; errno tells why, and no trace is left. */
bool output_close(output *out, bool keep);

#endif
