/* SPDX-License-Identifier: Apache-2.0 */
/* generate FORM PROGRAM: generates the bash, zsh or fish completion or the manual page of
 * hlo-fp8-opt or hlo-fp8-run from options.def and program.def, and prints it. Runs during the
 * build. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "hlo/version.h"
#include "options.h"

/* A parsed form of an argument in options.def. */
enum { WORDS_CAPACITY = 8192 };

typedef struct choice {
    char words[WORDS_CAPACITY]; /* literal words, separated by spaces */
    bool list;                  /* the argument is a list, separated by commas */
    bool folders, files;
    char ending[16]; /* suffix of file names; "" for any file */
} choice;

static void add_word(choice *c, const char *word, size_t length) {
    const size_t used = strlen(c->words);
    snprintf(c->words + used, sizeof c->words - used, "%s%.*s", used ? " " : "", (int)length, word);
}

static bool is_word(const char *form, size_t length, const char *word) {
    return length == strlen(word) && memcmp(form, word, length) == 0;
}

static choice choice_of(const char *argument) {
    static const char more[] = ",...";
    choice made = {.words = ""};
    for (const char *form = argument ? argument : ""; *form;) {
        const size_t size = strcspn(form, "|"), many = sizeof more - 1;
        const bool list = size > many && memcmp(form + size - many, more, many) == 0;
        const size_t length = list ? size - many : size;
        made.list |= list;
        if (is_word(form, length, "PASS")) {
            for (size_t i = 0; i < hlo_pass_count(); i++)
                add_word(&made, hlo_pass_name(i), strlen(hlo_pass_name(i)));
        } else if (is_word(form, length, "REASON")) {
            for (size_t i = 0; i < hlo_reason_count(); i++)
                add_word(&made, hlo_reason_name(i), strlen(hlo_reason_name(i)));
        } else if (is_word(form, length, "DIR")) {
            made.folders = true;
        } else if (strncmp(form, "FILE", 4) == 0) {
            made.files = true;
            snprintf(made.ending, sizeof made.ending, "%.*s", (int)length - 4, form + 4);
        } else if (!isupper((unsigned char)*form)) {
            add_word(&made, form, length);
        }
        form += size + (form[size] == '|');
    }
    made.list &= *made.words != '\0';
    return made;
}

/* Prints the names of all options or, with `takers`, of the options that need an argument. */
static void bash_options(program_id program, bool takers) {
    const char *lead = "", *between = takers ? "|" : " ";
    for (const option_row *r = option_rows; r < option_rows + OPTION_COUNT; r++) {
        if (!(r->modes & (int)program)) continue;
        if (takers && (r->kind == FLAG || r->kind == MAYBE)) continue;
        if (r->letter) printf("%s-%c", lead, r->letter);
        if (r->name)
            printf("%s--%s%s", r->letter ? between : lead, r->name,
                   takers || r->kind == FLAG ? "" : "=");
        lead = between;
    }
}

static void print_bash(program_id program, const char *name) {
    printf("# Completes the command line of %s in bash.\n_%s() {\n", name, name);
    fputs("    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local option= before= words= list= files=\n"
          "    COMPREPLY=()\n"
          "    # Bash splits a word at `=` by default.\n"
          "    if [[ $word == --*=* ]]; then\n"
          "        option=${word%%=*} before=${word%%=*}= word=${word#*=}\n"
          "    elif [[ $word == = ]]; then\n"
          "        option=$last word=\n"
          "    elif [[ $last == = ]]; then\n"
          "        option=${COMP_WORDS[COMP_CWORD - 2]}\n"
          "    else\n"
          "        case $last in\n"
          "        ",
          stdout);
    bash_options(program, true);
    fputs(") option=$last ;;\n"
          "        esac\n"
          "    fi\n"
          "    case $option in\n",
          stdout);
    for (const option_row *r = option_rows; r < option_rows + OPTION_COUNT; r++) {
        if (!(r->modes & (int)program) || !r->argument) continue;
        const choice c = choice_of(r->argument);
        if (!*c.words && !c.folders && !c.files) continue;
        const char letter[] = {r->letter ? r->letter : '-', '\0'};
        printf("    -%s%s) ", letter, r->name ? r->name : "");
        if (*c.words) printf("words='%s' ", c.words);
        if (c.list) fputs("list=yes ", stdout);
        if (c.folders) fputs("files=/ ", stdout);
        if (c.files) printf("files='*%s' ", c.ending);
        puts(";;");
    }
    fputs("    '') if [[ $word == -* ]]; then words='", stdout);
    bash_options(program, false);
    fputs("'; else files='*'; fi ;;\n"
          "    esac\n"
          "    if [[ $list && $word == *,* ]]; then\n"
          "        before+=${word%,*}, word=${word##*,}\n"
          "    fi\n"
          "    mapfile -t COMPREPLY < <(\n"
          "        [[ $words ]] && compgen -W \"$words\" -- \"$word\"\n"
          "        [[ $files ]] && compgen -d -- \"$word\"\n"
          "        [[ $files == [*]* ]] && compgen -f -X \"!$files\" -- \"$word\"\n"
          "    )\n"
          "    COMPREPLY=(\"${COMPREPLY[@]/#/\"$before\"}\")\n"
          "    [[ $files ]] && compopt -o filenames 2>/dev/null\n"
          "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
          "    return 0\n"
          "}\n",
          stdout);
    printf("complete -F _%s %s\n", name, name);
}

static void zsh_option(const option_row *r, bool letter) {
    fputs(" \\\n    '", stdout);
    if (letter)
        printf("-%c%s[", r->letter, r->argument ? "+" : "");
    else
        printf("--%s%s[", r->name, !r->argument ? "" : r->kind == MAYBE ? "=-" : "=");
    for (const char *text = r->help; *text; text++) /* escape the help text in the brackets of a
                                                     * specification */
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf(*text == ']' || *text == '[' || *text == '\\' ? "\\%c" : "%c", *text);
    putchar(']');
    if (r->argument) {
        const choice c = choice_of(r->argument);
        printf("%s:%s:", r->kind == MAYBE ? ":" : "", r->argument);
        if (c.list)
            printf("_sequence compadd - %s", c.words);
        else if (c.files && *c.words)
            printf("{compadd - %s; _files}", c.words);
        else if (c.files)
            printf(*c.ending ? "_files -g \"*%s\"" : "_files", c.ending);
        else if (c.folders)
            fputs("_files -/", stdout);
        else
            printf(*c.words ? "(%s)" : " ", c.words);
    }
    putchar('\'');
}

static void print_zsh(program_id program, const char *name) {
    printf("#compdef %s\n_arguments -s :", name);
    for (const option_row *r = option_rows; r < option_rows + OPTION_COUNT; r++) {
        if (!(r->modes & (int)program)) continue;
        if (r->letter) zsh_option(r, true);
        if (r->name) zsh_option(r, false);
    }
    puts(" \\\n    '*:FILE:_files'");
}

static void print_fish(program_id program, const char *name) {
    for (const option_row *r = option_rows; r < option_rows + OPTION_COUNT; r++) {
        if (!(r->modes & (int)program)) continue;
        const choice c = choice_of(r->argument);
        printf("complete -c %s", name);
        if (r->letter) printf(" -s %c", r->letter);
        if (r->name) printf(" -l %s", r->name);
        if (r->argument) {
            if (r->kind != MAYBE) fputs(c.files && !*c.ending ? " -r -F" : " -x", stdout);
            if (c.list)
                printf(" -a '(__fish_complete_list , \"string split \\\" \\\" \\\"%s\\\"\")'",
                       c.words);
            else if (*c.words)
                printf(" -a '%s'", c.words);
            else if (*c.ending)
                printf(" -a '(__fish_complete_suffix %s)'", c.ending);
            else if (c.folders)
                fputs(" -a '(__fish_complete_directories)'", stdout);
        }
        fputs(" -d '", stdout);
        for (const char *at = r->help; *at; at++) printf(*at == '\'' ? "\\%c" : "%c", *at);
        puts("'");
    }
}

/* Prints text in the notation of man(7). A minus can be copied, no line starts with a request, and
 * lists of words can be broken into lines. */
static void put_text(const char *text) {
    if (*text == '.' || *text == '\'') fputs("\\&", stdout);
    for (; *text; text++) {
        if (*text == '-' || *text == '\\') putchar('\\');
        putchar(*text == '\\' ? 'e' : *text);
        if (*text == '|' || *text == ',') fputs("\\:", stdout);
    }
}

static void put_option(const option_row *r) {
    fputs(".TP\n\\fB", stdout);
    if (r->letter) printf("\\-%c%s", r->letter, r->name ? "\\fR, \\fB" : "");
    if (r->name) {
        fputs("\\-\\-", stdout);
        put_text(r->name);
    }
    fputs("\\fR", stdout);
    if (r->argument) {
        fputs(r->kind == MAYBE ? "[=\\fI" : r->name ? "=\\fI" : " \\fI", stdout);
        put_text(r->argument);
        fputs(r->kind == MAYBE ? "\\fR]" : "\\fR", stdout);
    }
    putchar('\n');
    put_text(r->help);
    if (r->fallback) {
        fputs(" (default: ", stdout);
        put_text(r->fallback);
        putchar(')');
    }
    putchar('\n');
}

static void print_man(program_id program, const char *name) {
    const program_row *p = program_of(program);
    printf(".TH %s 1 \"\" \"hlo-fp8 %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n[options] ",
           name, HLO_VERSION, name, p->brief, name);
    put_text(p->operands);
    fputs("\n.SH DESCRIPTION\n", stdout);
    put_text(p->more);
    fputs("\n.SH OPTIONS\n", stdout);
#define GROUP(modes, title)                                                                        \
    if ((modes) & (int)program) {                                                                  \
        fputs(".SS ", stdout);                                                                     \
        put_text(title);                                                                           \
        putchar('\n');                                                                             \
    }
#define OPTION(id, modes, letter, name, kind, argument, fallback, help)                            \
    if ((modes) & (int)program) put_option(&option_rows[OPTION_##id]);
#include "options.def"
    fputs(".SH EXAMPLES\n", stdout);
#define EXAMPLE(of, line, meaning)                                                                 \
    if (PROGRAM_##of == program) {                                                                 \
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
}

int main(int argc, char **argv) {
    static const struct {
        const char *form;
        void (*print)(program_id program, const char *name);
    } forms[] = {
        {"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}, {"man", print_man}};
    static const program_id programs[] = {PROGRAM_OPT, PROGRAM_RUN};
    for (size_t i = 0; i < sizeof forms / sizeof *forms && argc == 3; i++)
        for (int p = 0; p < 2; p++) {
            const char *name = program_of(programs[p])->name;
            if (strcmp(argv[1], forms[i].form) != 0 || strcmp(argv[2], name) != 0) continue;
            forms[i].print(programs[p], name);
            return fflush(stdout) != 0 ? 2 : 0;
        }
    fputs("usage: generate bash|zsh|fish|man hlo-fp8-opt|hlo-fp8-run\n", stderr);
    return 2;
}
