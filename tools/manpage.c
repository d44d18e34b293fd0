/* SPDX-License-Identifier: Apache-2.0 */
/* manpage PROGRAM: prints the manual page of hlo-fp8-opt or hlo-fp8-run, generated from options.def
 * and program.def. Runs during the build. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

/* Prints text as man(7) requires: a minus that can be copied, no request at the start of a line,
 * and line breaks allowed in lists of words. */
static void put_text(const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') putchar('\\');
        putchar(*text == '\\' ? 'e' : *text);
        if (*text == '|' || *text == ',') fputs("\\:", stdout);
    }
}

static void put_option(char letter, const char *name, option_kind kind, const char *argument,
                       const char *fallback, const char *help) {
    fputs(".TP\n\\fB", stdout);
    if (letter) printf("\\-%c%s", letter, name ? "\\fR, \\fB" : "");
    if (name) {
        fputs("\\-\\-", stdout);
        put_text(name);
    }
    fputs("\\fR", stdout);
    if (argument) {
        fputs(kind == MAYBE ? "[=\\fI" : name ? "=\\fI" : " \\fI", stdout);
        put_text(argument);
        fputs(kind == MAYBE ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    put_text(help);
    if (fallback) {
        fputs(" (default: ", stdout);
        put_text(fallback);
        putchar(')');
    }
    putchar('\n');
}

static void put_options(program_id program) {
#define GROUP(modes, title)                                                                        \
    if ((modes) & (int)program) {                                                                  \
        fputs(".SS ", stdout);                                                                     \
        put_text(title);                                                                           \
        putchar('\n');                                                                             \
    }
#define OPTION(id, modes, letter, name, kind, argument, fallback, help)                            \
    if ((modes) & (int)program) put_option(letter, name, kind, argument, fallback, help);
#include "options.def"
}

static void put_example(const char *line, const char *meaning) {
    fputs(".TP\n\\fB", stdout);
    put_text(line);
    fputs("\\fR\n", stdout);
    put_text(meaning);
    putchar('\n');
}

static void put_examples(program_id program) {
#define EXAMPLE(of, line, meaning)                                                                 \
    if (PROGRAM_##of == program) put_example(line, meaning);
#include "program.def"
}

static void put_page(program_id program, const char *name, const char *operands, const char *brief,
                     const char *more) {
    printf(".TH %s 1 \"\" \"hlo-fp8 %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n[options] ",
           name, HLO_VERSION, name, brief, name);
    put_text(operands);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(more);
    fputs("\n.SH OPTIONS\n", stdout);
    put_options(program);
    fputs(".SH EXAMPLES\n", stdout);
    put_examples(program);
    fputs(".SH EXIT STATUS\n", stdout);
#define STATUS(code, meaning) printf(".TP\n%d\n%s\n", code, meaning);
#include "program.def"
}

int main(int argc, char **argv) {
    bool found = false;
#define PROGRAM(id, name, operands, brief, more)                                                   \
    if (argc == 2 && strcmp(argv[1], name) == 0) {                                                 \
        put_page(PROGRAM_##id, name, operands, brief, more);                                       \
        found = true;                                                                              \
    }
#include "program.def"
    if (!found) fputs("usage: manpage hlo-fp8-opt|hlo-fp8-run\n", stderr);
    return !found || fflush(stdout) != 0 ? 2 : 0;
}
