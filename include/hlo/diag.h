/* SPDX-License-Identifier: Apache-2.0 */
/* Diagnostics: errors, warnings and notes about a module, a file or an option.
 *
 * The library does not print diagnostics. A function that reports diagnostics has a sink as an
 * argument or as a field of its options. The function calls the callback of the sink once for each
 * diagnostic, on the thread of the caller, before it returns. Diagnostics arrive in the order in
 * which they are found. */
#ifndef HLO_DIAG_H
#define HLO_DIAG_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The severity of a diagnostic. A note gives details about the error or warning before it. */
typedef enum hlo_severity { HLO_NOTE, HLO_WARNING, HLO_ERROR } hlo_severity;

/* A diagnostic. All pointers are borrowed, and valid only during the callback that receives it. */
typedef struct hlo_diag {
    hlo_severity severity;
    const char *message; /* One line, without a full stop or line end. */
    const char *file;    /* The name of the file, or NULL or "" if it is unknown. */
    uint32_t line;       /* The line, counted from 1, or 0 if it is unknown. */
    uint32_t column;     /* The column in bytes, counted from 1, or 0 if it is unknown. */
    const char *source;  /* The text of the line, not NUL-terminated, or NULL if it is unknown. */
    size_t source_size;  /* The size of `source` in bytes, without the line end. */
    size_t length;       /* The number of bytes from `column` on that the diagnostic refers to. */
} hlo_diag;

/* A receiver of diagnostics. Functions borrow it for the duration of the call. */
typedef struct hlo_diag_sink {
    /* Receives a diagnostic. `user` is the field below. */
    void (*emit)(void *user, const hlo_diag *diag);
    /* Passed to `emit` unchanged. */
    void *user;
} hlo_diag_sink;

/* The default limit on the number of errors that are reported for a module or a rules file. */
enum { HLO_MAX_ERRORS = 20 };

/* Writes `diag` to `out`: a line `file:line:col: error: message`, then, if the source line is
 * known, that line and a line with a caret below the column. The source line is clipped to `width`
 * bytes around the caret, or not clipped if `width` is at most 20. */
void hlo_diag_print(FILE *out, const hlo_diag *diag, unsigned width);

/* Writes formatted text like fprintf(), but replaces what a terminal cannot safely display. A tab
 * becomes a space. Other control characters, line ends, invisible and combining characters,
 * characters that change the direction of text, and invalid UTF-8 become one `?` for each byte. A
 * line end at the end of `format` is kept. Use it to write
 * names, metadata, file names and options to a terminal or a log, so that they cannot contain
 * control sequences. */
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
