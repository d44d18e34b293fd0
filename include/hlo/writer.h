/* SPDX-License-Identifier: Apache-2.0 */
/* Receivers of text and files that the library writes. */
#ifndef HLO_WRITER_H
#define HLO_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A receiver of bytes. The struct has no other fields in any version of the library. Functions
 * borrow `user` for the duration of the call. */
typedef struct hlo_writer {
    /* Receives `size` bytes, which are valid only during the call. `user` is the field below. The
     * library calls it on the thread of the caller, with large parts of the output. It returns true
     * to continue, and false if it cannot store the bytes; the function of the library then returns
     * HLO_INVALID_INPUT. */
    bool (*write)(void *user, const char *bytes, size_t size);
    void *user; /* Passed to `write` unchanged. */
} hlo_writer;

/* A hlo_writer.write whose `user` is a FILE. Each call flushes the FILE, so that errors such as a
 * full disk are reported. */
static inline bool hlo_file_write(void *user, const char *bytes, size_t size) {
    return fwrite(bytes, 1, size, (FILE *)user) == size && fflush((FILE *)user) == 0;
}

/* Returns a writer that writes to `file`, which is borrowed. */
static inline hlo_writer hlo_file_writer(FILE *file) {
    hlo_writer writer;
    writer.write = hlo_file_write;
    writer.user = file;
    return writer;
}

#ifdef __cplusplus
}
#endif
#endif
