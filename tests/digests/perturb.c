/* SPDX-License-Identifier: Apache-2.0 */
#include "perturb.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Returns true for a word of a message that contains an object or a value. */
static bool is_value(const char *word, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (isdigit((unsigned char)word[i]) || strchr("'%`\"=[{", word[i])) return true;
    return false;
}

void print_diag(void *user, const hlo_diag *diag) {
    static const char severities[] = {'n', 'w', 'e'};
    fprintf(user, " %c%u+%zu", severities[diag->severity], diag->column, diag->length);
    for (const char *at = diag->message; *at;) {
        const size_t length = strcspn(at, " ");
        if (is_value(at, length)) fprintf(user, " %.*s", (int)length, at);
        at += length + (at[length] == ' ');
    }
}

typedef struct perturbed {
    const char *text; /* the mutated text */
    FILE *out;
    void (*outcome)(const char *text, FILE *out);
} perturbed;

/* Replaces the `length` bytes at `at` by `by`. */
static void replace(const perturbed *p, size_t at, size_t length, const char *by) {
    const size_t size = strlen(p->text), more = strlen(by);
    char *changed = malloc(size - length + more + 1);
    if (!changed) abort();
    memcpy(changed, p->text, at);
    memcpy(changed + at, by, more);
    strcpy(changed + at + more, p->text + at + length);
    fprintf(p->out, "%zu %.*s -> %s:", at, (int)length, p->text + at, by);
    p->outcome(changed, p->out);
    fputc('\n', p->out);
    free(changed);
}

static void change_number(const perturbed *p, size_t at, size_t length) {
    char text[32];
    const long long number = strtoll(p->text + at, NULL, 10);
    const long long others[] = {number == INT64_MAX ? INT64_MIN : number + 1,
                                number == INT64_MIN ? INT64_MAX : number - 1, -1, 0, INT64_MAX};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        bool again = others[i] == number;
        for (size_t j = 0; j < i; j++) again |= others[j] == others[i];
        snprintf(text, sizeof text, "%lld", others[i]);
        if (!again) replace(p, at, length, text);
    }
}

/* Element types; each type is replaced by the next. */
static const char *const types[] = {"f32", "s32", "pred", "bf16", "u8", "c64", "f8e4m3fn", "f32"};

static void change_word(const perturbed *p, size_t at, size_t length) {
    const char *by = NULL;
    for (size_t i = 0; i + 1 < sizeof types / sizeof *types; i++)
        if (strlen(types[i]) == length && !memcmp(p->text + at, types[i], length))
            by = types[i + 1];
    if (length == 4 && !memcmp(p->text + at, "true", 4)) by = "false";
    if (length == 5 && !memcmp(p->text + at, "false", 5)) by = "true";
    if (by) {
        replace(p, at, length, by);
        return;
    }
    replace(p, at, length, "");
    if (p->text[at + length] != '=') return; /* omit the whole attribute */
    size_t end = at + length + 1, open = 0;
    for (; p->text[end] && p->text[end] != '\n'; end++) {
        open += (p->text[end] == '{') - (size_t)(p->text[end] == '}');
        if (!open && (p->text[end] == ',' || p->text[end] == '}' || p->text[end] == ' ')) break;
    }
    if (p->text[end] == '}') end++;
    while (at > 0 && strchr(", ", p->text[at - 1])) at--;
    replace(p, at, end - at, "");
}

static bool in_word(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.' || c == '%';
}

void perturb_words(const char *text, void (*outcome)(const char *text, FILE *out), FILE *out) {
    const perturbed p = {text, out, outcome};
    for (size_t at = 0, length; text[at]; at += length) {
        const bool negative = text[at] == '-' && isdigit((unsigned char)text[at + 1]);
        length = 1;
        if (!strncmp(text + at, "//", 2) || text[at] == '#') {
            length = strcspn(text + at, "\n");
        } else if (text[at] == '"') {
            length = 1 + strcspn(text + at + 1, "\"\n");
            replace(&p, at, length, "");
        } else if (isdigit((unsigned char)text[at]) || negative) {
            length = negative + strspn(text + at + negative, "0123456789");
            change_number(&p, at, length);
        } else if (in_word(text[at])) {
            while (in_word(text[at + length])) length++;
            change_word(&p, at, length);
        } else if (!isspace((unsigned char)text[at])) {
            const char twice[] = {text[at], text[at], '\0'};
            replace(&p, at, 1, "");
            replace(&p, at, 1, twice);
        }
    }
}

void perturb_bytes(const char *bytes, size_t size,
                   void (*outcome)(const char *bytes, size_t size, FILE *out), FILE *out) {
    char *changed = malloc(size + 1);
    if (!changed) abort();
    memcpy(changed, bytes, size);
    for (size_t at = 0; at < size; at++) {
        static const char others[] = {1, 2, 8, (char)0x80};
        for (size_t i = 0; i < sizeof others; i++) {
            changed[at] = (char)(bytes[at] ^ others[i]);
            fprintf(out, "%zu ^ %d:", at, others[i]);
            outcome(changed, size, out);
            fputc('\n', out);
        }
        changed[at] = bytes[at];
        fprintf(out, "to %zu:", at);
        outcome(bytes, at, out);
        fputc('\n', out);
    }
    free(changed);
}
