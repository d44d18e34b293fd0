/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and printing of HLO text. */
#ifndef HLO_TEXT_H
#define HLO_TEXT_H

#include <stddef.h>
#include <string.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Parses one module from `size` bytes at `text`, which need not be NUL-terminated. The module keeps
 * a copy of the text. `name` is the file name in diagnostics. Syntax errors are reported to `sink`;
 * where possible, the parser continues after an error, so a call can report several errors. The
 * module is not verified. Use hlo_module_verify() for that. The caller must free *out_module with
 * hlo_module_free().
 *
 * Returns HLO_INVALID_INPUT if the text is not an HLO module. */
hlo_status hlo_module_parse(const char *text, size_t size, const char *name,
                            const hlo_diag_sink *sink, hlo_module **out_module);

/* Parses one module from the file at `path`, or from standard input if `path` is "-". The file may
 * be compressed with gzip. Its content is parsed with hlo_module_parse(), or with
 * hlo_module_parse_proto() (proto.h) if it is not text. It is an error if the file has several
 * modules (hlo_modules_parse_file()).
 *
 * Ownership and statuses are those of hlo_module_parse(). If the file cannot be read, the function
 * reports one error without a line and returns HLO_INVALID_INPUT. */
hlo_status hlo_module_parse_file(const char *path, const hlo_diag_sink *sink,
                                 hlo_module **out_module);

/* Options of hlo_modules_parse_file(). */
typedef struct hlo_parse_options {
    size_t struct_size;  /* See status.h. */
    unsigned max_errors; /* The number of errors after which parsing stops, or 0 for
                            HLO_MAX_ERRORS. */
} hlo_parse_options;

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_parse_options_init(hlo_parse_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Parses all modules of the file at `path`, like hlo_module_parse_file(). A line that begins with
 * `// -----` separates two modules. In a file that PyTorch/XLA wrote with XLA_SAVE_TENSORS_FMT=hlo,
 * a module is between `## BEGIN_GRAPH` and `## END_GRAPH`. Parts that contain only comments are
 * skipped. The line numbers
 * in diagnostics are counted from the beginning of the file. `options` may be NULL, which selects
 * the defaults.
 *
 * On success, *out_modules is an array of *out_count modules, of which there is at least one. The
 * caller owns the array and the modules, and must free them with hlo_modules_free(). Otherwise,
 * *out_modules is NULL and *out_count is 0.
 *
 * Returns the same statuses as hlo_module_parse_file(). */
hlo_status hlo_modules_parse_file(const char *path, const hlo_parse_options *options,
                                  const hlo_diag_sink *sink, hlo_module ***out_modules,
                                  size_t *out_count);

/* Frees `count` modules and the array that holds them. `modules` may be NULL. */
void hlo_modules_free(hlo_module **modules, size_t count);

/* Options of hlo_module_print() and hlo_module_to_text(). They select the parts of a module that
 * are printed. Initialize them with hlo_print_options_init(), then change fields. */
typedef struct hlo_print_options {
    size_t struct_size; /* See status.h. */
    const hlo_diag_sink
        *sink;           /* Receives the error if the module cannot be printed. May be NULL. */
    bool percent;        /* Prints % before names. */
    bool signature;      /* Prints the parameters and the result of each computation. */
    bool operand_shapes; /* Prints the shape of each operand. */
    bool operand_index;  /* Prints a comment with its number before every fifth operand. */
    bool metadata;       /* Prints the metadata of instructions, and the tables of the header
                            that metadata refers to. */
    bool control_predecessors; /* Prints control-predecessors={...}. */
    bool backend_config;       /* Prints backend_config=... */
    bool large_constants;      /* Prints the values of constants with more than ten elements instead
                                  of {...}. */
    bool canonical;            /* Prints tmp_N in place of the names of instructions, and the bodies
                                  of called computations in place of their names. */
} hlo_print_options;

/* Predefined print options. The first three correspond to the default, ShortParsable() and
 * Canonical() options of XLA's HloPrintOptions (xla/hlo/ir/hlo_print_options.h). */
typedef enum hlo_print_form {
    HLO_PRINT_LONG,              /* XLA's default form, with large constants. */
    HLO_PRINT_SHORT,             /* Without %, signatures, metadata and control predecessors. */
    HLO_PRINT_CANONICAL,         /* Equal computations have equal texts. */
    HLO_PRINT_NO_METADATA,       /* The long form without metadata. */
    HLO_PRINT_NO_LARGE_CONSTANTS /* The long form without the values of large constants. */
} hlo_print_form;

/* Sets the fields within the first `struct_size` bytes of *options to the values of `form`. Use it
 * if the size of the struct is known only at run time; otherwise, use hlo_print_options_init(). If
 * the form does not exist, options->struct_size is 0, for which functions that print return
 * HLO_INVALID_USAGE. */
void hlo_print_options_init_sized(hlo_print_options *options, size_t struct_size,
                                  hlo_print_form form);

/* Sets `struct_size`, and all other fields to the values of `form`. */
static inline void hlo_print_options_init(hlo_print_options *options, hlo_print_form form) {
    hlo_print_options_init_sized(options, sizeof *options, form);
}

/* Writes `module` to `out` as HLO text. `options` may be NULL, which selects HLO_PRINT_LONG.
 *
 * hlo_module_parse() and XLA parse the long form as an equal module. Forms that omit parts are for
 * human readers: parsing them fails or results in a different module.
 *
 * Returns HLO_INVALID_INPUT if `out` cannot be written to, for example because the disk is full. A
 * canonical print repeats the body of a computation at each call. If it would nest more than 1000
 * bodies or contain more than 2^22 instructions, the function reports an error to options->sink and
 * returns HLO_INVALID_INPUT. */
hlo_status hlo_module_print(const hlo_module *module, const hlo_print_options *options,
                            hlo_writer out);

/* Prints `module` to a string, like hlo_module_print(). On success, *out_text is a NUL-terminated
 * string and *out_size is its size in bytes without the NUL. The caller owns the string and must
 * free it with hlo_free() (memory.h). Otherwise, *out_text is NULL.
 *
 * Returns HLO_INVALID_INPUT if a canonical print would be too large. Otherwise, returns the same
 * statuses as hlo_module_print(). */
hlo_status hlo_module_to_text(const hlo_module *module, const hlo_print_options *options,
                              char **out_text, size_t *out_size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
