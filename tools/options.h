/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of both programs, as options.def defines it. */
#ifndef HLO_TOOLS_OPTIONS_H
#define HLO_TOOLS_OPTIONS_H

#include <stdbool.h>

#include "hlo/report.h"

typedef enum option_id {
#define OPTION(id, modes, letter, name, kind, argument, fallback, help) OPTION_##id,
#include "options.def"
    OPTION_COUNT
} option_id;

/* Modes of a program. hlo-fp8-opt has one of MODULES, FOLDER and DIFF; hlo-fp8-run has RECORD, or
 * EXECUTE, PLAN or BUDGET, combined with further modes that its options select. Options that
 * inspect the run require LOOK. */
typedef enum program_mode {
    MODULES = 1,
    FOLDER = 2,
    DIFF = 4,
    EXECUTE = 8,
    PLAN = 16,
    OPTIMIZE = 32,
    COMPARING = 64,
    DEVICE = 128,
    PLUGIN = 256,
    LOOK = 512,
    BUDGET = 1024,
    RECORD = 2048,
    OPT = MODULES | FOLDER | DIFF,
    RUN = EXECUTE | PLAN | OPTIMIZE | COMPARING | DEVICE | PLUGIN | LOOK | BUDGET,
    BOTH = OPT | RUN
} program_mode;

typedef enum program_id { PROGRAM_OPT = OPT, PROGRAM_RUN = RUN } program_id;

typedef enum option_kind {
    FLAG,
    TEXT,
    MAYBE,
    CHOICE,
    NUMBER,
    COUNT,
    TARGET,
    VERSION,
    FACTOR,
    LIMIT
} option_kind;
typedef struct option_row {
    int modes;
    char letter;
    const char *name;
    option_kind kind;
    const char *argument, *fallback, *help;
} option_row;
extern const option_row option_rows[OPTION_COUNT];

typedef struct program_row {
    const char *name, *operands, *brief, *more;
} program_row;
const program_row *program_of(program_id program);

typedef struct option_value {
    bool given;       /* the option is on the command line */
    const char *text; /* the argument or, if absent, the fallback; NULL if the option has neither.
                         For --wide=@FILE, the names in the file, or NULL if it has none */
    double factor;    /* value of a FACTOR or LIMIT */
    long number;      /* value of a NUMBER, COUNT, TARGET or VERSION; word index of a CHOICE */
} option_value;

typedef struct options {
    option_value values[OPTION_COUNT];
    char **files; /* the operands, at the end of argv */
    int file_count;
} options;

/* Parses the command line. Returns true if the program must continue. Otherwise prints the help,
 * the version or an error, and sets *out_status to the exit status: 0 after --help and --version, 2
 * after invalid usage, and that of options_end() if the file of --wide=@FILE cannot be read. For
 * invalid usage, prints one line to standard error, or usage and examples if there are no
 * arguments. */
bool options_parse(program_id program, int argc, char **argv, options *out, int *out_status);

/* Prints a usage error, and returns 2. */
int options_refuse(program_id program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints `cannot WHAT NAME` with the text of errno, and returns HLO_INVALID_INPUT. If memory ran
 * out, prints nothing and returns HLO_OUT_OF_MEMORY, because options_end() reports this error. */
hlo_status options_complain(program_id program, const char *what, const char *name);

/* Flushes standard output, and returns the exit status of the program. A failed write to a standard
 * stream is an error. */
int options_end(program_id program, hlo_status status);

/* True if `modes` accept all given options. Otherwise prints an error about the first rejected
 * option. */
bool options_suit(program_id program, const options *from, int modes);

/* Sets the options of the passes from the command line. If an option is invalid, prints an error,
 * sets *out_status and returns false. */
bool options_pass(program_id program, const options *from, hlo_pass_options *out, int *out_status);

/* Returns the options for printing remarks to `out`: on a terminal, in color and in its width. */
hlo_remarks_options options_remarks(const options *from, FILE *out);

/* A sink that prints diagnostics to standard error, and prints each warning only once per file. */
extern const hlo_diag_sink options_sink;

#endif
