/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <search.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hlo/argument.h"
#include "hlo/suggest.h"
#include "output.h"

/* The words of --target and of --remarks-format, which come from tables. */
static const char options_targets[] =
#define HLO_TARGET(sm, ...) "|sm_" #sm
#include "../matmul/table/target.def"
#undef HLO_TARGET
    ;
static const char options_formats[] =
#define HLO_REMARKS_FORMAT(id, name) "|" #name
#include "../report/format.def"
#undef HLO_REMARKS_FORMAT
    ;
#define TARGET_WORDS (&options_targets[1])
#define REMARKS_FORMAT_WORDS (&options_formats[1])

const option_row option_rows[OPTION_COUNT] = {
#define OPTION(id, modes, letter, name, kind, argument, fallback, help)                            \
    [OPTION_##id] = {modes, letter, name, kind, argument, fallback, help},
#include "options.def"
};

/* getopt_long() returns option ids plus this offset, to distinguish the ids from letters. */
enum { FIRST_LONG = UCHAR_MAX + 1 };

const program_row *program_of(program_id program) {
    static const program_row programs[] = {
#define PROGRAM(id, name, operands, brief, more) [PROGRAM_##id] = {name, operands, brief, more},
#include "program.def"
    };
    return &programs[program];
}

static void print_usage(program_id program, FILE *out) {
    const program_row *p = program_of(program);
    fprintf(out, "usage: %s [options] %s\n", p->name, p->operands);
}

static unsigned terminal_width(int fd, unsigned otherwise) {
    struct winsize size;
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : otherwise;
}

static void print_examples(program_id program, FILE *out) {
    fputs("Examples:\n", out);
#define EXAMPLE(of, line, meaning)                                                                 \
    if (PROGRAM_##of == program) fprintf(out, "  %s\n      %s\n", line, meaning);
#include "program.def"
}

enum { HELP_COLUMN = 30, HELP_WIDTH = 100, HELP_WIDTH_LEAST = 60 };

/* Prints words from `column` on, wrapped to `width`. Returns the column after the last word. */
static size_t put_words(FILE *out, size_t column, size_t width, const char *text) {
    while (*text) {
        size_t size = strcspn(text, " ");
        /* Split a list that is longer than a line after a comma. */
        for (size_t cut = width - HELP_COLUMN; size > width - HELP_COLUMN && cut > 0; cut--)
            if (text[cut - 1] == ',') size = cut;
        bool fits = column + (column > HELP_COLUMN) + size <= width;
        if (column > HELP_COLUMN) fprintf(out, fits ? " " : "\n%*s", HELP_COLUMN, "");
        column = fits ? column + (column > HELP_COLUMN) : HELP_COLUMN;
        fwrite(text, 1, size, out);
        column += size;
        text += size + strspn(text + size, " ");
    }
    return column;
}

static void print_option(const option_row *r, size_t width, FILE *out) {
    char left[128], fallback[512] = "";
    int at = snprintf(left, sizeof left, r->letter ? "  -%c" : "  ", r->letter);
    if (r->name) {
        const char *lead = r->letter ? ", --" : "--";
        at += snprintf(left + at, sizeof left - (size_t)at, "%s%s", lead, r->name);
    }
    if (r->argument)
        snprintf(left + at, sizeof left - (size_t)at,
                 r->kind == MAYBE ? "[=%s]"
                 : r->name        ? "=%s"
                                  : " %s",
                 r->argument);
    if (r->fallback) snprintf(fallback, sizeof fallback, "(default: %s)", r->fallback);
    if (strlen(left) > HELP_COLUMN - 2) {
        fprintf(out, "%s\n", left);
        *left = '\0';
    }
    fprintf(out, "%-*s", HELP_COLUMN, left);
    put_words(out, put_words(out, HELP_COLUMN, width, r->help), width, fallback);
    fputc('\n', out);
}

static void print_help(program_id program, FILE *out) {
    size_t width = terminal_width(fileno(out), HELP_WIDTH);
    if (width < HELP_WIDTH_LEAST) width = HELP_WIDTH_LEAST;
    print_usage(program, out);
    const program_row *p = program_of(program);
    fprintf(out, "%c%s.\n%s\n", toupper((unsigned char)*p->brief), p->brief + 1, p->more);
#define GROUP(group_modes, title)                                                                  \
    if ((group_modes) & (int)program) fprintf(out, "\n%s:\n", title);
#define OPTION(id, option_modes, letter, name, kind, argument, fallback, help)                     \
    if ((option_modes) & (int)program) print_option(&option_rows[OPTION_##id], width, out);
#include "options.def"
    fputc('\n', out);
    print_examples(program, out);
    fputs("\nExit status:\n", out);
#define STATUS(code, meaning) fprintf(out, "  %d  %s\n", code, meaning);
#include "program.def"
}

int options_refuse(program_id program, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char what[4096];
    vsnprintf(what, sizeof what, format, args);
    const char *name = program_of(program)->name;
    hlo_print_plain(stderr, "%s: error: %s (see %s --help)\n", name, what, name);
    va_end(args);
    return 2;
}

hlo_status options_complain(program_id program, const char *what, const char *name) {
    if (errno == ENOMEM) return HLO_OUT_OF_MEMORY;
    hlo_print_plain(stderr, "%s: error: cannot %s %s: %s\n", program_of(program)->name, what, name,
                    strerror(errno));
    return HLO_INVALID_INPUT;
}

int options_end(program_id program, hlo_status status) {
    output standard = {.file = stdout, .name = "standard output"};
    const bool written = output_end(&standard);
    const bool complete = status == HLO_OK || status == HLO_MISMATCH;
    if (complete && !written) status = options_complain(program, "write", standard.name);
    if (complete && written && ferror(stderr)) status = HLO_INVALID_INPUT;
    if (status == HLO_OUT_OF_MEMORY)
        fprintf(stderr, "%s: error: %s\n", program_of(program)->name, hlo_status_name(status));
    return hlo_status_exit(status);
}

/* Parses a non-negative integer that is followed by `end`. */
static bool parse_number(const char *text, char end, const char **out_end, long *out) {
    if (*text < '0' || *text > '9') return false;
    char *stop;
    errno = 0;
    *out = strtol(text, &stop, 10);
    if (out_end) *out_end = stop + 1;
    return errno == 0 && *stop == end;
}

/* Returns the index of `text` among words separated by `|`, or -1. A word such as `a:B` matches
 * `a:` followed by any text. */
static long find_word(const char *words, const char *text, size_t length) {
    for (long index = 0;; index++) {
        const size_t size = strcspn(words, "|"), fixed = strcspn(words, ":|") + 1;
        if (size == length && memcmp(words, text, length) == 0) return index;
        if (fixed < size && length > fixed && memcmp(words, text, fixed) == 0) return index;
        if (!words[size]) return -1;
        words += size + 1;
    }
}

static bool read_value(const option_row *r, const char *text, option_value *out) {
    out->text = text;
    switch (r->kind) {
    case FLAG:
    case MAYBE: return true;
    case TEXT: return *text || (strncmp(r->argument, "FILE", 4) != 0 && strcmp(r->argument, "DIR"));
    case CHOICE: return (out->number = find_word(r->argument, text, strlen(text))) >= 0;
    case NUMBER: return parse_number(text, '\0', NULL, &out->number);
    case COUNT: return parse_number(text, '\0', NULL, &out->number) && out->number > 0;
    case FACTOR: {
        const char *end = hlo_read_decimal(text, &out->factor);
        return end && !*end && isfinite(out->factor);
    }
    case LIMIT: {
        const char *end = hlo_read_decimal(text, &out->factor);
        if (strcmp(text, "inf") == 0) {
            out->factor = (double)INFINITY;
            return true;
        }
        if (end && (*end == 'e' || *end == 'E')) {
            end += end[1] == '-' || end[1] == '+' ? 2 : 1;
            const size_t digits = strspn(end, "0123456789");
            end = digits ? end + digits : NULL;
        }
        return end && !*end && isfinite(out->factor);
    }
    case TARGET: {
        char word[16];
        const char *digits = strncmp(text, "sm_", 3) == 0 ? text + 3 : text;
        int size = snprintf(word, sizeof word, "sm_%s", digits);
        return size < (int)sizeof word && find_word(r->argument, word, (size_t)size) >= 0 &&
               parse_number(digits, '\0', NULL, &out->number);
    }
    case VERSION: {
        const char *rest;
        long major, minor;
        if (!parse_number(text, '.', &rest, &major) || !parse_number(rest, '\0', NULL, &minor))
            return false;
        out->number = major * 1000 + minor * 10;
        return major > 0 && major < 100 && minor < 100;
    }
    }
    return false;
}

/* True if `text` may abbreviate `word`: a prefix of `word`, ignoring case, or for a target, `sm`
 * and the target's number. */
static bool stands_for(option_kind kind, const char *text, const char *word) {
    if (kind != TARGET) return *text && strncasecmp(word, text, strlen(text)) == 0;
    const char digits[] = "0123456789", *number = word + strcspn(word, digits);
    if (strncasecmp(text, "sm", 2) != 0) return false;
    text += strcspn(text, digits);
    return strspn(text, digits) == strlen(number) && strncmp(text, number, strlen(number)) == 0;
}

/* Returns the word of the option that means what `text` means in other programs; NULL if
 * unknown. */
static const char *synonym(const option_row *r, const char *text) {
    static const char *const known[][2] = {{"gpu", "cuda"}, {"nvidia", "cuda"}, {"host", "cpu"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(text, known[i][0]) == 0 &&
            find_word(r->argument, known[i][1], strlen(known[i][1])) >= 0)
            return known[i][1];
    return NULL;
}

/* Returns the part of the library that the option requires and that was not built, or NULL. */
static const char *missing_part(const option_row *r, const char *text) {
    (void)r, (void)text;
#ifndef HLO_WITH_NPZ
    if (r->argument && strcmp(r->argument, "FILE.npz") == 0) return "npz";
#endif
#ifndef HLO_WITH_CUDA
    if (r == &option_rows[OPTION_BACKEND] && strcmp(text, "cuda") == 0) return "cuda";
#endif
#ifndef HLO_WITH_PJRT
    if (r == &option_rows[OPTION_BACKEND] && strncmp(text, "pjrt:", 5) == 0) return "pjrt";
#endif
    return NULL;
}

/* Stores an option with its argument. `text` is NULL for a flag. */
static bool take(program_id program, const option_row *r, const char *text, option_value *out) {
    /* Reject an option that is given twice, because the second gate, file or list would silently
     * replace the first. */
    if (out->given && r->kind != FLAG) {
        const char letter[] = {r->letter, '\0'};
        options_refuse(program, "option '%s%s' is given twice", r->name ? "--" : "-",
                       r->name ? r->name : letter);
        return false;
    }
    out->given = true;
    const char *missing = missing_part(r, text);
    if (missing) {
        options_refuse(program, "invalid option '--%s=%s': this build has no %s", r->name, text,
                       missing);
        return false;
    }
    if (!text || read_value(r, text, out)) return true;
    char words[128], *rest = words;
    snprintf(words, sizeof words, "%s", r->argument);
    hlo_suggestion near = hlo_suggest(r->kind == CHOICE ? text : "");
    const char *meant = NULL;
    for (const char *word; (word = strsep(&rest, "|"));) {
        hlo_suggest_offer(&near, word);
        if ((r->kind == CHOICE || r->kind == TARGET) && stands_for(r->kind, text, word))
            meant = meant ? "" : word;
    }
    if (meant && *meant) near.best = meant;
    if (r->kind == CHOICE && synonym(r, text)) near.best = synonym(r, text);
    static const char *const expected[] = {[NUMBER] = "a non-negative integer",
                                           [COUNT] = "a positive integer",
                                           [FACTOR] = "a non-negative decimal number",
                                           [LIMIT] = "a non-negative number or inf",
                                           [VERSION] = "MAJOR.MINOR, for example 12.8"};
    const char *what =
        (size_t)r->kind < sizeof expected / sizeof *expected ? expected[r->kind] : NULL;
    const bool words_only = r->kind == CHOICE || r->kind == TARGET;
    const char *one_of = words_only && strchr(r->argument, '|') ? "one of " : "";
    const char name[] = {'-', r->name ? '-' : r->letter, '\0'};
    options_refuse(program, "invalid value '%s' for %s%s: expected %s%s%s", text, name,
                   r->name ? r->name : "", what ? what : one_of, what ? "" : r->argument,
                   hlo_suggest_meant(&near));
    return false;
}

static int find_letter(int letter) {
    for (int id = 0; id < OPTION_COUNT; id++)
        if (option_rows[id].letter && option_rows[id].letter == letter) return id;
    return OPTION_COUNT;
}

static void refuse_unknown(program_id program, const char *word) {
    enum { ROOM = 40 };
    char typed[2 * ROOM], names[OPTION_COUNT][ROOM];
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(word, "="), word);
    const program_id second = program == PROGRAM_OPT ? PROGRAM_RUN : PROGRAM_OPT;
    const char *name = typed + strspn(typed, "-"), *other = NULL;
    hlo_suggestion s = hlo_suggest(typed);
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (option_rows[id].name && strcmp(option_rows[id].name, name) == 0 &&
            option_rows[id].modes & (int)second)
            other = program_of(second)->name;
        if (!option_rows[id].name || !(option_rows[id].modes & (int)program)) continue;
        snprintf(names[id], ROOM, "--%s", option_rows[id].name);
        hlo_suggest_offer(&s, names[id]);
    }
    if (other)
        options_refuse(program, "unknown option '%s'; it is an option of %s", word, other);
    else
        options_refuse(program, "unknown option '%s'%s", word, hlo_suggest_meant(&s));
}

/* If the argument is @FILE, replaces it by the names in the file, which are separated by commas or
 * line breaks. Prints an error and returns false if the file cannot be read. */
static bool read_names(program_id program, option_value *value, int *out_status) {
    if (!value->text || *value->text != '@') return true;
    static char *names;
    size_t size = 0;
    const char *path = value->text + 1;
    FILE *in = fopen(path, "r");
    bool read = in;
    errno = in ? 0 : errno;
    const ssize_t length_read = in ? getdelim(&names, &size, '\0', in) : 0;
    if (length_read > 0 && !names[length_read - 1]) {
        size_t line = 1, column = 1;
        for (const char *at = names; *at; at++) {
            column = *at == '\n' ? 1 : column + 1;
            line += *at == '\n';
        }
        fclose(in);
        fprintf(stderr, "%s:%zu:%zu: error: the list of names contains a NUL byte\n", path, line,
                column);
        *out_status = options_end(program, HLO_INVALID_INPUT);
        return false;
    }
    if (length_read < 0) {
        read = feof(in) && !ferror(in); /* an empty file */
        free(names);
        names = read ? calloc(1, 1) : NULL;
        read = read && names;
    }
    if (in) fclose(in);
    if (!read) {
        *out_status = options_end(program, options_complain(program, "read", path));
        return false;
    }
    char *to = names;
    for (const char *at = names; *at;) {
        at += strspn(at, ",\r\n");
        const size_t length = strcspn(at, ",\r\n");
        if (to > names && length) *to++ = ',';
        memmove(to, at, length);
        to += length;
        at += length;
    }
    *to = '\0';
    value->text = *names ? names : NULL;
    return true;
}

bool options_parse(program_id program, int argc, char **argv, options *out, int *out_status) {
    *out = (options){0};
    *out_status = 2;
    struct option longs[OPTION_COUNT + 1] = {0};
    char letters[2 * OPTION_COUNT + 2] = ":";
    int count = 0;
    for (int id = 0; id < OPTION_COUNT; id++) {
        const option_row *r = &option_rows[id];
        if (!(r->modes & (int)program)) continue;
        if (r->fallback) read_value(r, r->fallback, &out->values[id]);
        int argument = r->kind == FLAG    ? no_argument
                       : r->kind == MAYBE ? optional_argument
                                          : required_argument;
        if (r->name) longs[count++] = (struct option){r->name, argument, NULL, FIRST_LONG + id};
        if (r->letter) strcat(letters, (char[]){r->letter, argument ? ':' : '\0', '\0'});
    }
    if (argc < 2) {
        print_usage(program, stderr);
        print_examples(program, stderr);
        fprintf(stderr, "run %s --help for a list of options\n", program_of(program)->name);
        return false;
    }
    opterr = 0;
    optind = 1;
    for (int code; (code = getopt_long(argc, argv, letters, longs, NULL)) != -1;) {
        if (code == '?' || code == ':') {
            int id = optopt >= FIRST_LONG ? optopt - FIRST_LONG : find_letter(optopt);
            const char *word = argv[optind - 1]; /* if letters are bundled, this is the whole
                                                  * word */
            if (id == OPTION_COUNT && optopt)
                options_refuse(program, "unknown option '-%c'", optopt);
            else if (id == OPTION_COUNT || !(option_rows[id].modes & (int)program))
                refuse_unknown(program, word);
            else
                options_refuse(program, "option '%s' %s argument", word,
                               code == ':' ? "requires an" : "does not take an");
            return false;
        }
        int id = code >= FIRST_LONG ? code - FIRST_LONG : find_letter(code);
        if (!take(program, &option_rows[id], optarg, &out->values[id])) return false;
    }
    out->files = argv + optind;
    out->file_count = argc - optind;
    bool standard = false;
    for (int i = 0; i < out->file_count; i++) {
        const bool dash = strcmp(out->files[i], "-") == 0;
        if (*out->files[i] && !(dash && standard)) {
            standard |= dash;
            continue;
        }
        options_refuse(program, dash ? "standard input (-) can be given only once"
                                     : "empty input file name");
        return false;
    }
    if (!out->values[OPTION_HELP].given && !out->values[OPTION_VERSION].given &&
        !read_names(program, &out->values[OPTION_WIDE], out_status))
        return false;
    if (out->values[OPTION_HELP].given)
        print_help(program, stdout);
    else if (out->values[OPTION_VERSION].given)
        printf("%s %s\n", program_of(program)->name, HLO_VERSION);
    else
        return true;
    *out_status = options_end(program, HLO_OK);
    return false;
}

bool options_suit(program_id program, const options *from, int modes) {
    for (int id = 0; id < OPTION_COUNT; id++) {
        if (!from->values[id].given || option_rows[id].modes & modes) continue;
        const int wanted = option_rows[id].modes;
        const bool plugin = modes & PLUGIN;
        options_refuse(program, "--%s %s", option_rows[id].name,
                       (wanted & (int)PROGRAM_RUN) == OPTIMIZE ? "requires --optimize"
                       : modes & RECORD ? "cannot be combined with --record-amaxes"
                       : program == PROGRAM_RUN && (wanted & (int)PROGRAM_RUN) == BUDGET
                           ? "requires --max-error"
                       : modes & BUDGET      ? "cannot be combined with --max-error"
                       : wanted == COMPARING ? "requires --compare"
                       : wanted == DEVICE    ? "requires --backend=cuda"
                       : wanted == PLUGIN    ? "requires --backend=pjrt:PLUGIN"
                       : wanted == LOOK && modes & EXECUTE
                           ? "cannot be combined with --backend=pjrt:PLUGIN"
                       : modes & FOLDER         ? "cannot be used with a dump folder"
                       : modes & DIFF           ? "cannot be combined with --diff"
                       : modes & PLAN && plugin ? "cannot be combined with --compile-only"
                       : modes & PLAN           ? "cannot be combined with --plan"
                                                : "applies only to dump folders");
        return false;
    }
    return true;
}

static void refuse_diag(void *program, const hlo_diag *diag) {
    options_refuse(*(const program_id *)program, "%s", diag->message);
}

bool options_pass(program_id program, const options *from, hlo_pass_options *out, int *out_status) {
    const option_value *values = from->values;
    hlo_pass_options_init(out);
    out->passes = values[OPTION_PASSES].text;
    out->target = (int)values[OPTION_TARGET].number;
    out->cuda = (int)values[OPTION_CUDA].number;
    out->surroundings = values[OPTION_REPORT].given;
    out->lint = values[OPTION_LINT].given;
    long most = values[OPTION_MAX_ERRORS].number;
    out->max_errors = most > 0 && most < UINT_MAX ? (unsigned)most : UINT_MAX;
    out->min_gain = values[OPTION_MIN_GAIN].factor;
    out->wide = values[OPTION_WIDE].text;
    out->quantize = values[OPTION_QUANTIZE].text;
    out->amaxes = values[OPTION_AMAXES].text;
    out->ahead = values[OPTION_AHEAD].text;
    out->wide_unmatched = program == PROGRAM_OPT; /* hlo-fp8-opt checks the words of --wide for all
                                                   * modules together */
    out->rules = values[OPTION_RULES].text;
    out->scales_used = strcmp(values[OPTION_SCALE_OPERANDS].text, "used") == 0;
    out->emit = (hlo_emit_form)values[OPTION_EMIT].number;
    out->allow_bias_rounding = values[OPTION_ALLOW_BIAS_ROUNDING].given;
    out->merge_dots = values[OPTION_MERGE_DOTS].given;
    out->ragged = (hlo_ragged_form)values[OPTION_RAGGED].number;
    out->framework_files =
        program == PROGRAM_OPT ? values[OPTION_FRAMEWORK_FILES].text : out->framework_files;
    out->verify_each = values[OPTION_VERIFY_EACH].given;
    out->verify_none = values[OPTION_NO_VERIFY].given;
    out->time_passes = values[OPTION_TIME_PASSES].given;
    out->print_after = values[OPTION_PRINT_AFTER].text;
    out->dump = stderr;
    const hlo_diag_sink sink = {.emit = refuse_diag, .user = &program};
    out->sink = &sink;
    hlo_status status = hlo_pass_options_check(out);
    out->sink = &options_sink;
    *out_status = hlo_status_exit(status);
    return status == HLO_OK;
}

/* Source lines are clipped to this width if standard error is not a terminal. */
enum { DIAG_WIDTH = 400 };

static int compare_texts(const void *a, const void *b) {
    return strcmp(a, b);
}

static void print_diag(void *user, const hlo_diag *diag) {
    static void *printed; /* search tree of the warnings printed so far */
    static bool quiet;    /* the last warning was suppressed, so suppress its notes */
    (void)user;
    if (diag->severity != HLO_NOTE) quiet = false;
    char *text;
    if (diag->severity == HLO_WARNING &&
        asprintf(&text, "%s: %s", diag->file ? diag->file : "", diag->message) >= 0) {
        char **found = tsearch(text, &printed, compare_texts);
        quiet = found && *found != text;
        if (quiet || !found) free(text);
    }
    if (!quiet) hlo_diag_print(stderr, diag, terminal_width(STDERR_FILENO, DIAG_WIDTH));
}

const hlo_diag_sink options_sink = {.emit = print_diag};

hlo_remarks_options options_remarks(const options *from, FILE *out) {
    const bool terminal = isatty(fileno(out));
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.which = (hlo_remarks)from->values[OPTION_REMARKS].number;
    remarks.format = (hlo_remarks_format)from->values[OPTION_REMARKS_FORMAT].number;
    remarks.colored = terminal && !getenv("NO_COLOR");
    remarks.baseline = from->values[OPTION_BASELINE].text;
    remarks.width = terminal ? terminal_width(fileno(out), 0) : 0;
    return remarks;
}
