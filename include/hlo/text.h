/* HLO text: reading a module and printing it. */
#ifndef HLO_TEXT_H
#define HLO_TEXT_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads one module from `size` bytes at `text`, which are copied. `name` is the file name that
 * diagnostics show. Syntax errors go to `sink`, several in one run where the parser can recover.
 * The module is not verified (hlo_module_verify does that).
 * On HLO_OK the caller frees *out_module; on any other status it is NULL.
 * HLO_INVALID_INPUT: the text is no HLO module. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_parse(const char *text, size_t size, const char *name,
                            const hlo_diag_sink *sink, hlo_module **out_module);

/* Reads the file at `path` ("-": standard input) and parses it as above; a file that cannot be read
 * is one error without a line. */
hlo_status hlo_module_parse_file(const char *path, const hlo_diag_sink *sink,
                                 hlo_module **out_module);

/* Prints the module in XLA's long form: what hlo_module_parse() and XLA read back as the same
 * module. HLO_INVALID_INPUT when writing to `out` fails (disk full). */
hlo_status hlo_module_print(const hlo_module *module, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
