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

int main(int argc, char **argv) {
    static const struct {
        program_id key;
        const char *name, *operands, *brief, *more;
    } programs[] = {
#define PROGRAM(id, name, operands, brief, more) {PROGRAM_##id, name, operands, brief, more},
#include "program.def"
    };
    enum { PROGRAMS = sizeof programs / sizeof *programs };
    size_t p = 0;
    while (argc == 2 && p < PROGRAMS && strcmp(argv[1], programs[p].name) != 0) p++;
    if (argc != 2 || p == PROGRAMS) {
        fputs("usage: manpage hlo-fp8-opt|hlo-fp8-run\n", stderr);
        return 2;
    }
    const char *name = programs[p].name;
    printf(".TH %s 1 \"\" \"hlo-fp8 %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n[options] ",
           name, HLO_VERSION, name, programs[p].brief, name);
    put_text(programs[p].operands);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(programs[p].more);
    fputs("\n.SH OPTIONS\n", stdout);
#define GROUP(modes, title)                                                                        \
    if ((modes) & (int)programs[p].key) {                                                          \
        fputs(".SS ", stdout);                                                                     \
        put_text(title);                                                                           \
        putchar('\n');                                                                             \
    }
#define OPTION(id, modes, letter, name, kind, argument, fallback, help)                            \
    if ((modes) & (int)programs[p].key) put_option(letter, name, kind, argument, fallback, help);
#include "options.def"
    fputs(".SH EXAMPLES\n", stdout);
#define EXAMPLE(of, line, meaning)                                                                 \
    if (PROGRAM_##of == programs[p].key) {                                                         \
        fputs(".TP\n\\fB", stdout);                                                                \
        put_text(line);                                                                            \
        fputs("\\fR\n", stdout);                                                                   \
        put_text(meaning);                                                                         \
        putchar('\n');                                                                             \
    }
#include "program.def"
    fputs(".SH EXIT STATUS\n", stdout);
#define STATUS(code, meaning) printf(".TP\n%d\n%s\n", code, meaning);
#include "program.def"
    return fflush(stdout) != 0 ? 2 : 0;
}
