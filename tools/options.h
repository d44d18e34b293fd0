/* The command line of both programs, by the table options.def. */
#ifndef HLO_TOOLS_OPTIONS_H
#define HLO_TOOLS_OPTIONS_H

#include <stdbool.h>

#include "hlo/pass.h"

typedef enum option_id {
#define OPTION(id, modes, letter, name, kind, argument, fallback, help) OPTION_##id,
#include "options.def"
    OPTION_COUNT
} option_id;

/* Modes of a program: hlo-fp8-opt rewrites modules, reports on a folder of dumps or compares two
 * modules; hlo-fp8-run executes a module or prints its plan, and may run the passes first, compare
 * outputs, and do this on a GPU, or in a plugin, or without one and look into the run. */
typedef enum program_mode {
    MODE_MODULES = 1,
    MODE_FOLDER = 2,
    MODE_DIFF = 4,
    MODE_EXECUTE = 8,
    MODE_PLAN = 16,
    MODE_OPTIMIZE = 32,
    MODE_COMPARE = 64,
    MODE_DEVICE = 128,
    MODE_PLUGIN = 256,
    MODE_LOOK = 512
} program_mode;

typedef enum program_id {
    PROGRAM_OPT = MODE_MODULES | MODE_FOLDER | MODE_DIFF,
    PROGRAM_RUN = MODE_EXECUTE | MODE_PLAN | MODE_OPTIMIZE | MODE_COMPARE | MODE_DEVICE |
                  MODE_PLUGIN | MODE_LOOK
} program_id;

/* The words of options.def's columns. */
typedef enum option_kind {
    FLAG,
    TEXT,
    MAYBE,
    CHOICE,
    NUMBER,
    COUNT,
    TARGET,
    VERSION,
    FACTOR
} option_kind;
enum {
    MODULES = MODE_MODULES,
    FOLDER = MODE_FOLDER,
    DIFF = MODE_DIFF,
    EXECUTE = MODE_EXECUTE,
    PLAN = MODE_PLAN,
    OPTIMIZE = MODE_OPTIMIZE,
    COMPARING = MODE_COMPARE,
    DEVICE = MODE_DEVICE,
    PLUGIN = MODE_PLUGIN,
    LOOK = MODE_LOOK,
    OPT = PROGRAM_OPT,
    RUN = PROGRAM_RUN,
    BOTH = OPT | RUN
};

typedef struct option_value {
    bool given;       /* on the command line */
    const char *text; /* the argument, or the fallback; NULL: neither */
    double factor;    /* of a FACTOR */
    long number; /* of a NUMBER, COUNT, TARGET or VERSION; of a CHOICE: its index among the words */
} option_value;

typedef struct options {
    option_value values[OPTION_COUNT];
    char **files; /* arguments that are no options; at the end of argv */
    int file_count;
} options;

/* Reads the command line. Returns true when the program is to go on. Otherwise all is said already
 * and *out_status is the exit status: 0 after --help and --version (on standard output), 2 after
 * wrong usage (one line on standard error; usage and examples when there are no arguments at all).
 */
bool options_parse(program_id program, int argc, char **argv, options *out, int *out_status);

/* The long name of an option; NULL: it has none. */
const char *options_name(option_id id);

/* Reports an argument that only the library can check, and returns 2. */
int options_refuse(program_id program, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reports that `what` could not be done to `name`, with errno's reason. Returns HLO_INVALID_INPUT;
 * or HLO_OUT_OF_MEMORY, which is reported at the program's end. */
hlo_status options_complain(program_id program, const char *what, const char *name);

/* Ends standard output, and returns the exit status of the program. A failed write to a standard
 * stream is an error. */
int options_end(program_id program, hlo_status status);

/* True if every option given has a place in one of `modes`; otherwise prints a line about one that
 * has not. */
bool options_suit(program_id program, const options *from, int modes);

/* Sets the passes' options. Returns false, with an error printed and *out_status set, if the
 * library has no such pass, target or version. */
bool options_pass(program_id program, const options *from, hlo_pass_options *out, int *out_status);

/* A sink that prints diagnostics to standard error; a warning once for each file. */
extern const hlo_diag_sink options_sink;

#endif
