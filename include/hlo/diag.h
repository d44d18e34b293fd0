/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: the place that each points at, and the sink that receives it.
 *
 * The library never prints. Every function that can find fault with its input takes a sink; the
 * sink's callback is called once for each diagnostic, in the order in which they are found, on the
 * thread that made the call. A NULL sink drops diagnostics. */
#ifndef HLO_DIAG_H
#define HLO_DIAG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef enum hlo_severity { HLO_NOTE, HLO_WARNING, HLO_ERROR } hlo_severity;

/* One diagnostic. All pointers are borrowed and valid only during the callback. */
typedef struct hlo_diag {
    hlo_severity severity;
    const char *message; /* one line, no trailing full stop or newline */
    const char *file;    /* NULL when the diagnostic has no place in a file */
    uint32_t line;       /* from 1; 0 when unknown */
    uint32_t column;     /* in bytes, from 1; 0 when unknown */
    const char *source;  /* the text of that line, not NUL-terminated; NULL when unknown */
    size_t source_size;  /* bytes in `source`, without the line end */
    size_t length;       /* bytes of `source`, from the column on, that the diagnostic is about */
} hlo_diag;

/* A receiver of diagnostics, borrowed for the call that it is passed to. */
typedef struct hlo_diag_sink {
    void (*emit)(void *user, const hlo_diag *diag);
    void *user; /* handed to `emit` as it is */
} hlo_diag_sink;

/* The default limit of errors reported for one module or one file of rules. */
enum { HLO_MOST_ERRORS = 20 };

/* Writes `diag` to `out` as `file:line:col: error: message`, then the source line clipped to
 * `width` columns around the caret (0: not clipped), and a line with the caret. Write errors show
 * in `out` (ferror). */
void hlo_diag_print(FILE *out, const hlo_diag *diag, unsigned width);

/* Writes as fprintf() does, for a terminal or a log, but replaces each byte that is not part of a
 * visible character by `?`: control characters, line ends, characters that change the direction of
 * text, and invalid UTF-8. A line end at the end of `format` is kept. So names and metadata of a
 * module, file names and options cannot send control sequences to the terminal. Write errors show
 * in `out` (ferror). */
void hlo_print_plain(FILE *out, const char *format, ...)
#ifdef __GNUC__
    __attribute__((format(printf, 2, 3)))
#endif
    ;

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
