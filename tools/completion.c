/* SPDX-License-Identifier: Apache-2.0 */
/* completion SHELL PROGRAM: prints the bash, zsh or fish completion of hlo-fp8-opt or hlo-fp8-run,
 * generated from options.def. Runs during the build. */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hlo/pass.h"
#include "options.h"

typedef struct row {
    int modes;
    char letter;
    const char *name;
    option_kind kind;
    const char *argument, *help;
} row;

static const row rows[] = {
#define OPTION(id, modes, letter, name, kind, argument, fallback, help)                            \
    {modes, letter, name, kind, argument, help},
#include "options.def"
};

enum { ROW_COUNT = sizeof rows / sizeof *rows, WORDS_CAPACITY = 8192 };

/* --------------------------------------------------------------------------- forms of arguments */

/* The forms of arguments in options.def. */
typedef struct choice {
    char words[WORDS_CAPACITY]; /* separated by spaces */
    bool list;                  /* of words, separated by commas */
    bool folders, files;
    char ending[16]; /* suffix of file names; "" for any */
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

/* ----------------------------------------------------------------------------------------- bash */

/* Prints the names of options: all, or with `takers` those that need an argument. */
static void bash_options(program_id program, bool takers) {
    const char *lead = "", *between = takers ? "|" : " ";
    for (const row *r = rows; r < rows + ROW_COUNT; r++) {
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
    for (const row *r = rows; r < rows + ROW_COUNT; r++) {
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

/* ------------------------------------------------------------------------------------------ zsh */

static void zsh_option(const row *r, bool letter) {
    fputs(" \\\n    '", stdout);
    if (letter)
        printf("-%c%s[", r->letter, r->argument ? "+" : "");
    else
        printf("--%s%s[", r->name, !r->argument ? "" : r->kind == MAYBE ? "=-" : "=");
    for (const char *text = r->help; *text; text++) /* in the brackets of a specification */
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
    for (const row *r = rows; r < rows + ROW_COUNT; r++) {
        if (!(r->modes & (int)program)) continue;
        if (r->letter) zsh_option(r, true);
        if (r->name) zsh_option(r, false);
    }
    puts(" \\\n    '*:FILE:_files'");
}

/* ----------------------------------------------------------------------------------------- fish */

static void print_fish(program_id program, const char *name) {
    for (const row *r = rows; r < rows + ROW_COUNT; r++) {
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

int main(int argc, char **argv) {
    static const struct {
        const char *shell;
        void (*print)(program_id program, const char *name);
    } shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    bool found = false;
#define PROGRAM(id, name, operands, brief, more)                                                   \
    for (size_t i = 0; i < sizeof shells / sizeof *shells && argc == 3; i++)                       \
        if (strcmp(argv[1], shells[i].shell) == 0 && strcmp(argv[2], name) == 0) {                 \
            shells[i].print(PROGRAM_##id, name);                                                   \
            found = true;                                                                          \
        }
#include "program.def"
    if (!found) fputs("usage: completion bash|zsh|fish hlo-fp8-opt|hlo-fp8-run\n", stderr);
    return !found || fflush(stdout) != 0 ? 2 : 0;
}
