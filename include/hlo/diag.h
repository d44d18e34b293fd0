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

#include "hlo/status.h"
#include "hlo/writer.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The severity of a diagnostic. A note gives details about the error or warning before it. */
typedef enum hlo_severity { HLO_NOTE, HLO_WARNING, HLO_ERROR } hlo_severity;

/* The kind of problem that a diagnostic reports. A note has the code of the error or warning before
 * it. Codes keep their values; a later version may add codes. */
typedef enum hlo_diag_code {
    HLO_DIAG_SYNTAX = 1,   /* Text or a protobuf message is not a module. */
    HLO_DIAG_VERIFY = 2,   /* A module is not valid HLO. */
    HLO_DIAG_EDIT = 3,     /* A function of edit.h rejects an edit. */
    HLO_DIAG_FILE = 4,     /* A file or a folder cannot be read or written. */
    HLO_DIAG_DOCUMENT = 5, /* A file of amaxes or a baseline is not valid for these modules. */
    HLO_DIAG_OPTION = 6,   /* The value of an option is not valid. */
    HLO_DIAG_USAGE = 7,    /* An argument is not as the function requires. */
    HLO_DIAG_NAME = 8,     /* A name or a glob matches nothing that can be selected. */
    /* A rule of a rules file is not valid, does not terminate or did not change anything. */
    HLO_DIAG_RULE = 9,
    HLO_DIAG_PASS = 10, /* A user pass failed. */
    /* The library, the backend or XLA does not support an instruction or a property of the
     * module. */
    HLO_DIAG_UNSUPPORTED = 11,
    HLO_DIAG_LIMIT = 12,        /* A documented limit is exceeded. */
    HLO_DIAG_INPUT = 13,        /* An array or a buffer does not match the module. */
    HLO_DIAG_DEVICE_COUNT = 14, /* The number of devices does not match the module. */
    /* A value is NaN or infinite, or elements cannot be compared because of that. */
    HLO_DIAG_NONFINITE = 15,
    HLO_DIAG_RUN = 16,    /* An instruction fails when it runs. */
    HLO_DIAG_DEVICE = 17, /* A device, a driver, a library or a plugin is not available or fails. */
    HLO_DIAG_MEMORY = 18, /* The device has too little memory. */
    HLO_DIAG_INTERNAL = 19 /* A built-in pass or rule fails, which is a bug of the library. */
} hlo_diag_code;

/* Returns the name of a code, such as "syntax", or NULL if the code does not exist. Names are
 * stable between versions (docs/diagnostics.md). The string is static. */
const char *hlo_diag_code_name(hlo_diag_code code);

/* A diagnostic. All pointers are borrowed, and valid only during the callback that receives it. */
typedef struct hlo_diag {
    size_t struct_size; /* See status.h. */
    hlo_severity severity;
    hlo_diag_code code;
    const char *message; /* One line, without a full stop or line end. */
    const char *file;    /* The name of the file, or NULL or "" if it is unknown. */
    uint32_t line;       /* The line, counted from 1, or 0 if it is unknown. */
    uint32_t column;     /* The column in bytes, counted from 1, or 0 if it is unknown. */
    const char *source;  /* The text of the line, not NUL-terminated, or NULL if it is unknown. */
    size_t source_size;  /* The size of `source` in bytes, without the line end. */
    size_t length;       /* The number of bytes from `column` on that the diagnostic refers to. */
} hlo_diag;

/* A receiver of diagnostics. Functions borrow it for the duration of the call. The struct has no
 * other fields in any version of the library. */
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
 * bytes around the caret, or not clipped if `width` is at most 20. Control characters, characters
 * that change the direction of text and invalid UTF-8 are replaced, so that a terminal can display
 * the output safely. The function does not allocate memory. */
hlo_status hlo_diag_print(const hlo_diag *diag, unsigned width, hlo_writer out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
