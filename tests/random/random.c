/* SPDX-License-Identifier: Apache-2.0 */
/* random [--first=SEED] [--count=N] [--jobs=N] [--print=SEED [--inputs=FILE.npz]]
 *
 * Generates random modules, rewrites each in two ways, and compares the results on the CPU. Prints
 * how often every rule was applied and every reason was set. Fails if a rewrite is wrong (then the
 * reduced module is printed), if a rule that rewrites was never applied, or if a reason was never
 * set, except those that need_not_be_given() lists. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hlo/text.h"
#include "tests/random/check/check.h"
#include "tests/random/module/edit.h"

enum { MAX_JOBS = 64, MAX_REDUCED = 3, WAYS = 2, SEED_SECONDS = 120 };

typedef struct worker {
    census counts;
    uint64_t seed; /* seed of the module in progress */
    uint64_t failures;
} worker;

static void show(const hlo_module *module, const hlo_pass_options *options, uint64_t seed,
                 const char *why, bool reduced) {
    static const char *const forms[] = {"cublas", "ffi", "qdq", "dq"};
    printf("seed %llu: --passes=%s%s%s%s --target=%s --cuda=%s --scale-operands=%s --emit=%s "
           "order %llu\n%s\n",
           (unsigned long long)seed, options->passes, options->quantize ? " --quantize=" : "",
           options->quantize ? options->quantize : "",
           options->quantize ? " --min-gain=0.000001" : "",
           options->target ? options->target : "sm_90", options->cuda ? options->cuda : "12.8",
           options->scales_used ? "used" : "all", forms[options->emit],
           (unsigned long long)options->rule_order, why);
    hlo_module *small = reduced ? reduce_module(module, options, seed) : NULL;
    if (small) hlo_module_print(small, NULL, hlo_file_writer(stdout));
    hlo_module_free(small);
    fflush(stdout);
}

static void try_seed(const text_cases *cases, uint64_t seed, worker *w) {
    w->counts.modules++;
    hlo_module *module = draw_module(cases, seed);
    if (!module) {
        w->counts.no_case++;
        return;
    }
    dice d = {.state = ~seed};
    for (int way = 0; way < WAYS; way++) {
        hlo_pass_options options = draw_options(&d);
        char why[WHY_SIZE];
        if (check_rewrite(module, &options, seed, &w->counts, why) >= OUTCOME_NO_END)
            show(module, &options, seed, why, w->failures++ < MAX_REDUCED);
    }
    hlo_module_free(module);
}

static void add(census *sum, const census *part) {
    const uint64_t *from = (const uint64_t *)part;
    uint64_t *to = (uint64_t *)sum;
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) to[i] += from[i];
}

/* Returns true for reasons that random modules need not have. Lints are not reasons of verdicts.
 * Built-in rules do not create calls with the first three reasons or with unpaired scale modes, and
 * no option keeps a matmul wide. A scale of C is rare in a call that a module already has. Random
 * modules have no attention, no recorded amaxes, no limit on the error, and few wide ragged-dots
 * and wide dots with an algorithm or for the recipe mx. */
static bool need_not_be_given(const char *reason) {
    static const char *const names[] = {
        "operand-not-fp8",      "output-scale-not-fp8", "amax-not-fp8",  "c-scale",
        "scale-modes-unpaired", "wide-by-option",       "asked-precise", "attention",
        "partial-block",        "amax-not-recorded",    "error-budget",  "ragged-not-quantized"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(reason, names[i])) return true;
    return strncmp(reason, "lint-", 5) == 0;
}

static bool report(const census *c) {
    printf(
        "%llu modules (%llu no case), %llu rewrites compared; fp8 %llu, missed %llu, wide %llu\n",
        (unsigned long long)c->modules, (unsigned long long)c->no_case,
        (unsigned long long)c->rewrites, (unsigned long long)c->verdicts[HLO_VERDICT_FP8],
        (unsigned long long)c->verdicts[HLO_VERDICT_MISSED],
        (unsigned long long)c->verdicts[HLO_VERDICT_WIDE]);
    bool all = true;
    for (int i = 0; rule_name(i); i++) {
        bool is_remark = rule_only_remarks(i);
        printf("%10llu  rule %s%s\n", (unsigned long long)c->fired[i], rule_name(i),
               is_remark ? " (a remark)" : "");
        if (c->fired[i] || is_remark) continue;
        printf("rule %s never fired\n", rule_name(i));
        all = false;
    }
    static const char *const reasons[] = {
#define HLO_REASON(id, name, text, hint) name,
#include "passes/reason/reason.def"
#undef HLO_REASON
    };
    for (int i = 0; i < HLO_REASON_COUNT; i++) {
        printf("%10llu  reason %s\n", (unsigned long long)c->reasons[i], reasons[i]);
        if (c->reasons[i] || need_not_be_given(reasons[i])) continue;
        printf("reason %s was never given\n", reasons[i]);
        all = false;
    }
    return all;
}

static void work(const text_cases *cases, uint64_t first, uint64_t count, int job, int jobs,
                 worker *w) {
    use_processor(job);
    for (uint64_t s = first + (uint64_t)job; s < first + count; s += (uint64_t)jobs) {
        w->seed = s;
        limit_seconds(SEED_SECONDS);
        try_seed(cases, s, w);
    }
    fflush(stdout);
    _exit(0);
}

static bool run(uint64_t first, uint64_t count, int jobs) {
    worker *workers = mmap(NULL, MAX_JOBS * sizeof *workers, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (workers == MAP_FAILED) return false;
    text_cases cases;
    find_cases(&cases, HLO_GOLDEN "/*/*.hlo");
    pid_t pids[MAX_JOBS];
    fflush(stdout);
    for (int j = 0; j < jobs; j++)
        if (!(pids[j] = fork())) work(&cases, first, count, j, jobs, &workers[j]);
    bool ok = true;
    census sum = {0};
    for (int j = 0; j < jobs; j++) {
        int status;
        waitpid(pids[j], &status, 0);
        if (status)
            printf("seed %llu: crashed, or does not end\n", (unsigned long long)workers[j].seed);
        ok &= !status && !workers[j].failures;
        add(&sum, &workers[j].counts);
    }
    free_cases(&cases);
    munmap(workers, MAX_JOBS * sizeof *workers);
    return report(&sum) && ok;
}

static void write_inputs(const hlo_module *module, uint64_t seed, const char *path) {
    hlo_arrays *inputs = draw_inputs(module, seed);
    FILE *out = fopen(path, "wb");
    if (out && inputs) hlo_arrays_write(inputs, hlo_file_writer(out));
    if (out) fclose(out);
    hlo_arrays_free(inputs);
}

static int print_one(uint64_t seed, const char *inputs) {
    text_cases cases;
    find_cases(&cases, HLO_GOLDEN "/*/*.hlo");
    hlo_module *module = draw_module(&cases, seed);
    if (module) hlo_module_print(module, NULL, hlo_file_writer(stdout));
    if (module && inputs) write_inputs(module, seed, inputs);
    hlo_module_free(module);
    free_cases(&cases);
    return module ? 0 : 1;
}

int main(int argc, char **argv) {
    static const struct option options[] = {
        {"first", required_argument, NULL, 'f'},  {"count", required_argument, NULL, 'c'},
        {"jobs", required_argument, NULL, 'j'},   {"print", required_argument, NULL, 'p'},
        {"inputs", required_argument, NULL, 'i'}, {0}};
    uint64_t first = 1, count = 4000, print = 0;
    const char *inputs = NULL;
    int jobs = 2, option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'f')
            first = strtoull(optarg, NULL, 10);
        else if (option == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (option == 'j')
            jobs = atoi(optarg);
        else if (option == 'p')
            print = strtoull(optarg, NULL, 10);
        else if (option == 'i')
            inputs = optarg;
        else
            return 2;
    }
    if (jobs < 1 || jobs > MAX_JOBS) return 2;
    if (print) return print_one(print, inputs);
    return run(first, count, jobs) ? 0 : 1;
}
