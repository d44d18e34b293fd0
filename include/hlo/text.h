/* SPDX-License-Identifier: Apache-2.0 */
/* HLO text: reading a module and printing it. */
#ifndef HLO_TEXT_H
#define HLO_TEXT_H

#include <stddef.h>
#include <string.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Reads one module from `size` bytes at `text`, which are copied. `name` is the file name that
 * diagnostics show. Syntax errors go to `sink`, several in one run where the parser can recover.
 * The module is not verified; see hlo_module_verify(). On HLO_OK the caller frees *out_module with
 * hlo_module_free(); on any other status it is NULL. HLO_INVALID_INPUT: the text is no HLO module.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_parse(const char *text, size_t size, const char *name,
                            const hlo_diag_sink *sink, hlo_module **out_module);

/* Reads the file at `path` ("-": standard input), which may be gz-compressed, and parses it with
 * hlo_module_parse(), or, when its bytes are no text, with hlo_module_parse_proto() (proto.h).
 * Ownership and statuses are those of hlo_module_parse(). A file that cannot be read is
 * HLO_INVALID_INPUT, with one error without a line. */
hlo_status hlo_module_parse_file(const char *path, const hlo_diag_sink *sink,
                                 hlo_module **out_module);

typedef struct hlo_parse_options {
    size_t struct_size;  /* see status.h */
    unsigned max_errors; /* reading stops after this many errors; 0: HLO_MOST_ERRORS */
} hlo_parse_options;

/* Sets every field to its default. */
static inline void hlo_parse_options_init(hlo_parse_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Reads every module of the file at `path`, which may be gz-compressed: a line that begins with
 * `// -----` separates two modules; parts of nothing but comments are skipped. Diagnostics count
 * lines from the beginning of the file. `options` may be NULL. On HLO_OK there is at least one
 * module, and the caller frees them with hlo_modules_free(); on any other status *out_modules is
 * NULL and *out_count 0. Statuses are those of hlo_module_parse_file(); HLO_INVALID_USAGE:
 * options->struct_size. */
hlo_status hlo_modules_parse_file(const char *path, const hlo_parse_options *options,
                                  const hlo_diag_sink *sink, hlo_module ***out_modules,
                                  size_t *out_count);
/* Frees `count` modules and the array that holds them. NULL is allowed. */
void hlo_modules_free(hlo_module **modules, size_t count);

/* The parts of a module that a print shows. The forms are those of XLA's HloPrintOptions
 * (xla/hlo/ir/hlo_print_options.h) of like name. */
typedef struct hlo_print_options {
    size_t struct_size;        /* see status.h */
    const hlo_diag_sink *sink; /* is told why a module is not printed; NULL: nobody is */
    bool percent;              /* % in front of names */
    bool signature;            /* of each computation: parameters and result */
    bool operand_shapes;       /* in front of each operand */
    bool operand_index;        /* number every fifth operand in a comment */
    bool metadata;             /* of instructions, and the header's tables */
    bool control_predecessors; /* control-predecessors={...} */
    bool backend_config;       /* backend_config=... */
    bool large_constants;      /* values of more than ten elements; else {...} */
    bool canonical;            /* tmp_N as names of instructions; called computations in place of
                                  their names */
} hlo_print_options;

typedef enum hlo_print_form {
    HLO_PRINT_LONG, /* everything: XLA's default, with large constants */
    HLO_PRINT_SHORT,
    HLO_PRINT_CANONICAL,
    HLO_PRINT_NO_METADATA,
    HLO_PRINT_NO_LARGE_CONSTANTS
} hlo_print_form;

/* Sets the first `struct_size` bytes of *options to the values of the form. */
void hlo_print_options_init_sized(hlo_print_options *options, size_t struct_size,
                                  hlo_print_form form);
/* Sets every field to its value in the form. */
static inline void hlo_print_options_init(hlo_print_options *options, hlo_print_form form) {
    hlo_print_options_init_sized(options, sizeof *options, form);
}

/* Prints the module to `out`. `options` NULL: in XLA's long form, which hlo_module_parse() and XLA
 * read back as an equal module. Forms that omit parts are for people, and read back as another
 * module or not at all. HLO_INVALID_INPUT: `out` cannot be written to (disk full); or a canonical
 * print, which repeats a body at each call, would nest more than 1000 bodies or hold more than 2^22
 * instructions, of which the sink is told. HLO_INVALID_USAGE: options->struct_size.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_print(const hlo_module *module, const hlo_print_options *options, FILE *out);

/* Prints the module, as hlo_module_print() does, to a string of *out_size bytes and a NUL. On
 * HLO_OK the caller frees *out_text with free(). On HLO_INVALID_INPUT, a canonical print that is
 * too large, and HLO_OUT_OF_MEMORY *out_text is NULL. */
hlo_status hlo_module_to_text(const hlo_module *module, const hlo_print_options *options,
                              char **out_text, size_t *out_size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
