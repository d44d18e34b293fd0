/* A file that appears whole or not at all. */
#ifndef HLO_TOOLS_OUTPUT_H
#define HLO_TOOLS_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    FILE *file;       /* to write to */
    const char *name; /* as messages call it */
    char *final;      /* where it is renamed to; NULL: written in place */
    char *temporary;  /* beside it */
} output;

/* Opens `path` for writing; NULL is standard output. What is written goes to a temporary file
 * beside it, except where `path` is there and no regular file. On failure errno tells why. */
bool output_open(output *out, const char *path);
/* Ends writing: with `keep` puts the file in its place, otherwise leaves no trace of it. False when
 * anything since output_open() could not be written; errno tells why. */
bool output_close(output *out, bool keep);

#endif
