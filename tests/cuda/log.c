/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the log of the fake's calls, and injects failures. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

enum { COUNTED = 128 };

static struct {
    const char *name;
    long count;
} calls[COUNTED];

/* Function names are the first words of `format` strings. */
static bool same_name(const char *a, const char *b) {
    size_t length = strcspn(a, " ");
    return length == strcspn(b, " ") && memcmp(a, b, length) == 0;
}

static long count_call(const char *name) {
    for (int i = 0; i < COUNTED; i++) {
        if (!calls[i].name) calls[i].name = name;
        if (same_name(calls[i].name, name)) return ++calls[i].count;
    }
    return 0;
}

static void write_line(const char *format, va_list args) {
    const char *path = getenv("HLO_STANDIN_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    vfprintf(log, format, args);
    fputc('\n', log);
    fclose(log);
}

/* Returns true if the function requires a current context in its thread. */
static bool needs_context(const char *name) {
    static const char *const free[] = {"cuInit", "cuDriver", "cuDevice", "cuCtx", "cuStreamGetCtx"},
                             *const bound[] = {"cublasLtCreate", "cublasLtMatmul ",
                                               "cublasLtMatmulAlgoGetHeuristic"};
    if (strncmp(name, "nvrtc", 5) == 0) return false;
    for (size_t i = 0; i < sizeof free / sizeof *free; i++)
        if (strncmp(name, free[i], strlen(free[i])) == 0) return false;
    if (strncmp(name, "cublasLt", 8) != 0) return true;
    for (size_t i = 0; i < sizeof bound / sizeof *bound; i++)
        if (strncmp(name, bound[i], strlen(bound[i])) == 0) return true;
    return false;
}

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

int standin_lock(void) {
    return pthread_mutex_lock(&mutex);
}

void standin_unlock(const int *locked) {
    (void)locked;
    pthread_mutex_unlock(&mutex);
}

int standin_enter(const char *format, ...) {
    LOCK;
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
    long number = count_call(format);
    const char *fail = getenv("HLO_STANDIN_FAIL"), *all = getenv("HLO_STANDIN_FAIL_ALL");
    size_t length = strcspn(format, " ");
    if (needs_context(format) && !standin_has_context()) {
        standin_note("no context is current");
        return CUDA_INVALID_CONTEXT;
    }
    if (all && strlen(all) == length && memcmp(all, format, length) == 0) return 1;
    if (!fail || strncmp(fail, format, length) != 0 || fail[length] != ':') return 0;
    char *end;
    long at = strtol(fail + length + 1, &end, 10);
    return at == number && *end == '=' ? atoi(end + 1) : 0;
}

void standin_note(const char *format, ...) {
    va_list args;
    va_start(args, format);
    write_line(format, args);
    va_end(args);
}

int standin_sm(void) {
    const char *sm = getenv("HLO_STANDIN_SM");
    return sm ? atoi(sm) : 90;
}
