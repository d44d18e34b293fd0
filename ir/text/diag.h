/* SPDX-License-Identifier: Apache-2.0 */
/* Emits diagnostics about locations in a module's source. */
#ifndef HLO_IR_TEXT_DIAG_H
#define HLO_IR_TEXT_DIAG_H

#include <stdarg.h>

#include "hlo/diag.h"
#include "ir/ir.h"

/* Emits one diagnostic about `length` bytes at `offset` of the module's source. */
void hlo_diag_emit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                   hlo_diag_code code, size_t offset, size_t length, const char *format, ...)
    __attribute__((format(printf, 7, 8)));
void hlo_diag_vemit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                    hlo_diag_code code, size_t offset, size_t length, const char *format,
                    va_list args);

/* Emits an error about a file, at a line and a column (0: none). If `file` is NULL, the error names
 * no file. Returns HLO_INVALID_INPUT. */
hlo_status hlo_diag_refuse(const hlo_diag_sink *sink, hlo_diag_code code, const char *file,
                           int line, int column, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Emits an error without a file, and returns HLO_INVALID_USAGE. */
hlo_status hlo_diag_misuse(const hlo_diag_sink *sink, hlo_diag_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Passes `diag`, whose struct_size need not be set, to `sink`, unless that is NULL. */
void hlo_diag_send(const hlo_diag_sink *sink, hlo_diag diag);

/* The errors found by a check, of which only the first ones are reported. */
typedef struct hlo_error_budget {
    unsigned most; /* maximum number of reported errors */
    unsigned found;
    uint32_t first_hidden; /* offset of the first error that was not reported */
} hlo_error_budget;

/* Creates a budget of `most` errors; 0: HLO_MAX_ERRORS. */
hlo_error_budget hlo_error_budget_new(unsigned most);
/* Counts an error at `offset` of the source. Returns true if it should be reported. */
bool hlo_error_budget_take(hlo_error_budget *budget, uint32_t offset);
/* Emits one note with the number of errors that were not reported. Returns HLO_INVALID_INPUT if
 * there were any errors. */
hlo_status hlo_error_budget_end(const hlo_error_budget *budget, const hlo_module *module,
                                const hlo_diag_sink *sink);

/* Writes formatted text like fprintf(), but replaces what a terminal cannot safely display. A tab
 * becomes a space. Other control characters, line ends, invisible and combining characters,
 * characters that change the direction of text, and invalid UTF-8 become one `?` for each byte. A
 * line end at the end of `format` is kept. Use it for names, metadata, file names and options. */
void hlo_print_plain(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Decodes the UTF-8 character at `text`, of which `size` bytes are readable, and returns its length
 * in bytes. If the character is invalid, returns 0 and does not set *out_code. */
size_t hlo_utf8_decode(const char *text, size_t size, uint32_t *out_code);

#endif
