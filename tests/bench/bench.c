/* SPDX-License-Identifier: Apache-2.0 */
/* bench FILE N: prints the best of N times, in seconds, to parse, verify, print and optimize the
 * module in FILE. Prints one line each: name, seconds. The last line is `memory` and the additional
 * bytes of the process while it holds the module and its text. Temporary memory is returned to the
 * system before that measurement.
 *
 * Freed memory stays with the process until it ends, so that the times exclude the kernel, which
 * clears every page that it allocates. */
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/text.h"

enum { PARSE, VERIFY, PRINT, OPTIMIZE, STEPS };
static const char *const names[STEPS] = {"parse", "verify", "print", "optimize"};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static char *read_all(const char *path, size_t *out_size) {
    FILE *in = fopen(path, "rb");
    if (!in || fseek(in, 0, SEEK_END)) return NULL;
    const long size = ftell(in);
    char *text = size < 0 ? NULL : malloc((size_t)size + 1);
    rewind(in);
    if (text && fread(text, 1, (size_t)size, in) != (size_t)size) {
        free(text);
        text = NULL;
    }
    fclose(in);
    *out_size = (size_t)size;
    return text;
}

/* Returns resident memory without file mappings such as the program; 0 if the system does not
 * report it. */
static size_t memory_now(void) {
    size_t all = 0, resident = 0, of_files = 0;
    malloc_trim(0);
    FILE *in = fopen("/proc/self/statm", "r");
    if (!in || fscanf(in, "%zu %zu %zu", &all, &resident, &of_files) != 3) resident = of_files = 0;
    if (in) fclose(in);
    return (resident - of_files) * (size_t)sysconf(_SC_PAGESIZE);
}

static hlo_status print_to_memory(const hlo_module *module) {
    char *text;
    size_t size;
    const hlo_status status = hlo_module_to_text(module, NULL, &text, &size);
    hlo_free(text);
    return status;
}

/* Measures only the module: one-time allocations were made for the first module. */
static size_t measure_memory(const char *path, const char *text, size_t size) {
    static const char first[] = "HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n";
    hlo_module *module = NULL;
    hlo_module_parse(first, sizeof first - 1, "first", NULL, &module);
    hlo_module_free(module);
    const size_t before = memory_now();
    hlo_module_parse(text, size, path, NULL, &module);
    const size_t after = memory_now();
    hlo_module_free(module);
    return after > before ? after - before : 0;
}

static hlo_status measure(const char *path, const char *text, size_t size, double *best) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    hlo_module *module = NULL;
    double at[STEPS + 1];
    at[PARSE] = now();
    hlo_status status = hlo_module_parse(text, size, path, NULL, &module);
    at[VERIFY] = now();
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, NULL);
    at[PRINT] = now();
    if (status == HLO_OK) status = print_to_memory(module);
    at[OPTIMIZE] = now();
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    at[STEPS] = now();
    hlo_module_free(module);
    for (int step = 0; step < STEPS; step++)
        if (at[step + 1] - at[step] < best[step]) best[step] = at[step + 1] - at[step];
    return status;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: bench FILE N\n");
        return 2;
    }
    size_t size;
    char *text = read_all(argv[1], &size);
    if (!text) {
        fprintf(stderr, "bench: cannot read %s\n", argv[1]);
        return 1;
    }
    const size_t memory = measure_memory(argv[1], text, size);
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    double best[STEPS] = {1e9, 1e9, 1e9, 1e9};
    hlo_status status = HLO_OK;
    for (int i = 0; i < atoi(argv[2]) && status == HLO_OK; i++)
        status = measure(argv[1], text, size, best);
    free(text);
    if (status != HLO_OK) {
        fprintf(stderr, "bench: %s: %s\n", argv[1], hlo_status_name(status));
        return hlo_status_exit(status);
    }
    for (int step = 0; step < STEPS; step++) printf("%s %.9f\n", names[step], best[step]);
    printf("memory %zu\n", memory);
    return 0;
}
