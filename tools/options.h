/* The command line of both programs, by the table options.def. */
#ifndef HLO_TOOLS_OPTIONS_H
#define HLO_TOOLS_OPTIONS_H

#include <stdbool.h>

#include "hlo/pass.h"

typedef enum option_id {
#define OPTION(id, programs, letter, name, kind, argument, fallback, help) OPTION_##id,
#include "options.def"
#undef OPTION
    OPTION_COUNT
} option_id;

typedef enum program_id { PROGRAM_OPT = 1, PROGRAM_RUN = 2 } program_id;

typedef struct option_value {
    bool given;       /* on the command line */
    const char *text; /* the argument, or the fallback; NULL when there is neither */
    double factor;    /* of a FACTOR */
    long number;      /* of a NUMBER, TARGET or VERSION; of a CHOICE: its index among the words */
} option_value;

typedef struct options {
    option_value values[OPTION_COUNT];
    char **files; /* the arguments that are no options; at the end of argv */
    int file_count;
} options;

/* Reads the command line. Returns true when the program is to go on. Otherwise all is said already
 * and *out_status is the exit status: 0 after --help and --version (on standard output), 2 after
 * wrong usage (one line on standard error; the whole usage when there are no arguments at all). */
bool options_parse(program_id program, int argc, char **argv, options *out, int *out_status);

/* Says what is wrong with an argument that only the library can judge, and returns 2. */
int options_refuse(program_id program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* What the options say to the passes. Returns false, with all said and *out_status the exit status,
 * when the library has no such pass, target or version. */
bool options_pass(program_id program, const options *from, hlo_pass_options *out, int *out_status);

/* A sink that prints diagnostics to standard error. */
extern const hlo_diag_sink options_sink;

#endif
