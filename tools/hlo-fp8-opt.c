/* SPDX-License-Identifier: Apache-2.0 */
/* hlo-fp8-opt: parses HLO modules, rewrites their matmuls to fused FP8 calls, and prints them. */
#include <errno.h>
#include <malloc.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hlo/dump.h"
#include "hlo/ir.h"
#include "hlo/proto.h"
#include "hlo/text.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/suggest.h"
#include "options.h"
#include "output.h"

extern char **environ;

typedef struct opt_job {
    int argc;
    char **argv;
    options options;
    hlo_pass_options pass;
    hlo_module **modules; /* modules of all inputs, in order */
    hlo_module *ahead;    /* the module that --ahead splits off, or NULL */
    hlo_report **reports; /* report of each module; NULL if no report is requested */
    size_t count;
    hlo_dump *dump;          /* the dump folder, or NULL */
    hlo_history **histories; /* histories of the modules of a dump folder, or NULL. With histories,
                              * `reports` borrows from them and `count` is 0 */
} opt_job;

static bool wants_remarks(const option_value *values) {
    return values[OPTION_REMARKS].given || values[OPTION_REMARKS_FORMAT].given ||
           values[OPTION_REMARKS_FILE].given || values[OPTION_LINT].given;
}

static hlo_status read_file(opt_job *job, const char *path) {
    const hlo_parse_options reading = {.struct_size = sizeof reading,
                                       .max_errors = job->pass.max_errors};
    hlo_module **read;
    size_t count;
    hlo_status status = hlo_modules_parse_file(path, &reading, &options_sink, &read, &count);
    if (status != HLO_OK) return status;
    hlo_module **all = realloc(job->modules, (job->count + count) * sizeof *all);
    if (all) job->modules = all;
    hlo_report **reports = realloc(job->reports, (job->count + count) * sizeof *reports);
    if (reports) job->reports = reports;
    if (!all || !reports) {
        hlo_modules_free(read, count);
        return HLO_OUT_OF_MEMORY;
    }
    memcpy(all + job->count, read, count * sizeof *all);
    memset(reports + job->count, 0, count * sizeof *reports);
    job->count += count;
    free(read);
    const option_value *values = job->options.values;
    const hlo_verify_options verifying = {.struct_size = sizeof verifying,
                                          .max_errors = job->pass.max_errors};
    /* Build a report only if needed, because this takes longer than parsing a module. */
    const bool reported = wants_remarks(values) || values[OPTION_REPORT].given ||
                          values[OPTION_TIME_PASSES].given || values[OPTION_EXPECT_FP8].given ||
                          values[OPTION_FAIL_ON_MISSED].given || values[OPTION_BASELINE].given ||
                          values[OPTION_WIDE].given;
    for (size_t i = job->count - count; i < job->count && status == HLO_OK; i++) {
        hlo_module *module = all[i];
        if (!values[OPTION_NO_VERIFY].given)
            status = hlo_module_verify(module, &verifying, &options_sink);
        if (status != HLO_OK || values[OPTION_DIFF].given) continue;
        if (values[OPTION_EXTRACT].given) {
            const char *name = values[OPTION_EXTRACT].text;
            status = hlo_module_extract(module, name, &job->pass, &options_sink);
            if (status != HLO_OK) break;
            const hlo_computation *entry = hlo_module_entry(module);
            fputs("to capture its inputs, run: hlo-fp8-run MODULE --values=in.npz --dump-values=",
                  stderr);
            for (size_t p = 0; p < hlo_computation_parameter_count(entry); p++)
                hlo_print_plain(stderr, p ? ",%s" : "%s",
                                hlo_instruction_name(hlo_computation_parameter(entry, p)));
            fputc('\n', stderr);
        }
        status = hlo_module_optimize(module, &job->pass, reported ? &reports[i] : NULL);
        if (status != HLO_OK) break;
        if (values[OPTION_TIME_PASSES].given)
            status = hlo_report_print_times(reports[i], hlo_file_writer(stderr));
        if (status == HLO_OK && values[OPTION_STATS].given)
            status = hlo_module_print_stats(module, hlo_file_writer(stderr));
    }
    return status;
}

/* --------------------------------------------------------------------------- products and gates */

/* An output of the program: its path (NULL for the stream `standard`) and the function that prints
 * it. */
typedef struct product {
    const char *path;
    FILE *standard;
    hlo_status (*print)(const opt_job *job, FILE *out);
} product;

enum { MAX_PRODUCTS = 4 };

/* Writes all products or none. */
static hlo_status write_products(const opt_job *job, const product *products, size_t count) {
    output files[MAX_PRODUCTS];
    size_t opened = 0;
    for (; opened < count; opened++)
        if (!output_open(&files[opened], products[opened].path, products[opened].standard)) break;
    /* A failed write to standard error is an error, because diagnostics are lost. */
    hlo_status status = ferror(stderr) ? HLO_INVALID_INPUT : HLO_OK;
    const char *shared = opened < count ? NULL : output_shared(files, count);
    if (opened < count) {
        status = options_complain(PROGRAM_OPT, "open", files[opened].name);
    } else if (shared) {
        options_refuse(PROGRAM_OPT, "two outputs would be written to the same file %s", shared);
        status = HLO_INVALID_USAGE;
    }
    for (size_t i = 0; i < count && status == HLO_OK; i++) {
        status = products[i].print(job, files[i].file);
        if (!output_end(&files[i])) status = options_complain(PROGRAM_OPT, "write", files[i].name);
    }
    bool keep = status == HLO_OK || status == HLO_MISMATCH;
    for (size_t i = 0; i < opened; i++)
        if (!output_close(&files[i], keep))
            status = options_complain(PROGRAM_OPT, "write", files[i].name);
    return status;
}

static hlo_status print_list(const opt_job *job, hlo_module *const *modules, size_t count,
                             FILE *out) {
    const char *format = job->options.values[OPTION_FORMAT].text;
    const bool text = strcmp(format, "text") == 0;
    const hlo_proto_format proto = strcmp(format, "pb") == 0 ? HLO_PROTO_BINARY : HLO_PROTO_TEXT;
    hlo_print_options shown;
    hlo_print_options_init(&shown, (hlo_print_form)job->options.values[OPTION_PRINT].number);
    shown.sink = &options_sink;
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < count && status == HLO_OK; i++) {
        if (i) fputs("// -----\n", out);
        status =
            text ? hlo_module_print(modules[i], &shown, hlo_file_writer(out))
                 : hlo_module_print_proto(modules[i], proto, &options_sink, hlo_file_writer(out));
    }
    return status;
}

static hlo_status print_modules(const opt_job *job, FILE *out) {
    return print_list(job, job->modules, job->count, out);
}

static hlo_status print_ahead(const opt_job *job, FILE *out) {
    return print_list(job, &job->ahead, 1, out);
}

static hlo_status print_difference(const opt_job *job, FILE *out) {
    return hlo_module_diff(job->modules[0], job->modules[1], hlo_file_writer(out));
}

static hlo_status print_remarks(const opt_job *job, FILE *out) {
    const hlo_remarks_options printed = options_remarks(&job->options, out);
    return hlo_reports_print((const hlo_report *const *)job->reports, job->count, &printed,
                             hlo_file_writer(out));
}

/* Runs the program `dot` with input `in` and output `out`. Returns false on failure. */
static bool run_dot(FILE *in, FILE *out) {
    posix_spawn_file_actions_t actions;
    char *const argv[] = {"dot", "-Tsvg", NULL};
    pid_t child;
    int status = 1;
    if (posix_spawn_file_actions_init(&actions) != 0) return false;
    bool started =
        posix_spawn_file_actions_adddup2(&actions, fileno(in), STDIN_FILENO) == 0 &&
        posix_spawn_file_actions_adddup2(&actions, fileno(out), STDOUT_FILENO) == 0 &&
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0) == 0 &&
        posix_spawnp(&child, argv[0], &actions, NULL, argv, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    return started && waitpid(child, &status, 0) == child && status == 0;
}

/* Implements hlo_graph_renderer: passes all graphs to one run of `dot -Tsvg`. If `dot` is missing
 * or fails, draws nothing and returns no error. */
static hlo_status draw(void *user, const char *const *graphs, size_t count, char **out_drawings) {
    (void)user;
    hlo_status status = HLO_OK;
    FILE *in = tmpfile(), *out = tmpfile();
    for (size_t i = 0; in && i < count; i++) fputs(graphs[i], in);
    if (in && out && fflush(in) == 0 && lseek(fileno(in), 0, SEEK_SET) == 0 && run_dot(in, out)) {
        static const char end[] = "</svg>";
        long size = fseek(out, 0, SEEK_END) == 0 ? ftell(out) : -1;
        char *text = size >= 0 ? malloc((size_t)size + 1) : NULL, *to = text;
        if (!text) status = HLO_OUT_OF_MEMORY;
        rewind(out);
        if (text) text[fread(text, 1, (size_t)size, out)] = '\0';
        /* Each drawing extends from `<svg` to `</svg>`. */
        for (size_t i = 0; to && i < count && status == HLO_OK; i++) {
            const char *from = strstr(to, "<svg");
            to = from ? strstr(from, end) : NULL;
            if (!to) break;
            to += strlen(end);
            out_drawings[i] = hlo_strndup(from, (size_t)(to - from));
            if (!out_drawings[i]) status = HLO_OUT_OF_MEMORY;
        }
        free(text);
    }
    if (in) fclose(in);
    if (out) fclose(out);
    return status;
}

static hlo_status print_page(const opt_job *job, FILE *out) {
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.,/:%+";
    char date[64], *command = NULL; /* the command line, quoted for a shell */
    size_t size;
    FILE *line = open_memstream(&command, &size);
    if (!line) return HLO_OUT_OF_MEMORY;
    fputs("hlo-fp8-opt", line);
    for (int i = 1; i < job->argc; i++) {
        const char *word = job->argv[i];
        bool quoted = !*word || word[strspn(word, plain)];
        fputs(quoted ? " '" : " ", line);
        for (; *word; word++) fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, line);
        if (quoted) fputc('\'', line);
    }
    if (fclose(line) != 0) {
        free(command);
        return HLO_OUT_OF_MEMORY;
    }
    /* SOURCE_DATE_EPOCH is the time to use in a reproducible build (reproducible-builds.org). */
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t now = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    struct tm parts;
    if (!gmtime_r(&now, &parts) || !strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &parts))
        *date = '\0';
    const hlo_page_options page = {.struct_size = sizeof page,
                                   .draw = draw,
                                   .command = command,
                                   .date = date,
                                   .baseline = job->options.values[OPTION_BASELINE].text,
                                   .sink = &options_sink};
    hlo_status status =
        job->histories ? hlo_histories_page(job->dump, (const hlo_history *const *)job->histories,
                                            &page, hlo_file_writer(out))
                       : hlo_reports_page((const hlo_report *const *)job->reports, job->count,
                                          &page, hlo_file_writer(out));
    free(command);
    return status;
}

static hlo_status print_histories(const opt_job *job, FILE *out) {
    const hlo_remarks_options printed = options_remarks(&job->options, out);
    return hlo_histories_print(job->dump, (const hlo_history *const *)job->histories, &printed,
                               hlo_file_writer(out));
}

static hlo_status check_gates(const opt_job *job, size_t count, char *why, size_t why_size) {
    const option_value *values = job->options.values;
    const hlo_report *const *reports = (const hlo_report *const *)job->reports;
    const bool allow_empty = values[OPTION_ALLOW_EMPTY].given;
    const char *reasons = values[OPTION_FAIL_ON_MISSED].text;
    const char *baseline = values[OPTION_BASELINE].text;
    if (!values[OPTION_EXPECT_FP8].given && !values[OPTION_FAIL_ON_MISSED].given && !baseline)
        return HLO_OK;
    hlo_status status = hlo_reports_gate(
        reports, count, values[OPTION_EXPECT_FP8].text,
        values[OPTION_FAIL_ON_MISSED].given && !reasons ? "" : reasons, allow_empty, why, why_size);
    if (status == HLO_INVALID_USAGE) options_refuse(PROGRAM_OPT, "%s", why);
    if (!baseline || status == HLO_INVALID_USAGE || (status == HLO_MISMATCH && count))
        return status;
    return hlo_reports_baseline(reports, count, baseline, allow_empty, &options_sink, why,
                                why_size);
}

/* Writes the products, then prints the result of the gates. Writes nothing if a gate cannot be
 * evaluated. */
static hlo_status write_judged(const opt_job *job, size_t reports, const product *products,
                               size_t count) {
    char why[1024];
    /* Evaluate the gates before writing, because a product may overwrite the baseline. */
    hlo_status gates = check_gates(job, reports, why, sizeof why);
    if (gates != HLO_OK && gates != HLO_MISMATCH) return gates;
    hlo_status written = write_products(job, products, count);
    if (written != HLO_OK) return written;
    if (gates == HLO_MISMATCH) hlo_print_plain(stderr, "hlo-fp8-opt: %s\n", why);
    return gates;
}

/* ---------------------------------------------------------------------------------------- modes */

/* True if no product overwrites an input, except that a module may be rewritten in place. */
static bool spares_inputs(const options *given) {
    const option_value *values = given->values;
    const char *modules = values[OPTION_DIFF].given ? NULL : values[OPTION_OUTPUT].text;
    const char *outputs[] = {values[OPTION_OUTPUT].text, values[OPTION_REMARKS_FILE].text,
                             values[OPTION_REPORT].text, values[OPTION_AHEAD_OUTPUT].text};
    const char *read[] = {values[OPTION_RULES].text, values[OPTION_BASELINE].text,
                          values[OPTION_AMAXES].text};
    for (size_t i = 0; i < sizeof outputs / sizeof *outputs; i++) {
        const char *lost = NULL;
        for (size_t j = 0; j < sizeof read / sizeof *read; j++)
            if (!output_spares(outputs[i], read[j])) lost = read[j];
        for (int j = 0; j < given->file_count && outputs[i] != modules; j++)
            if (!output_spares(outputs[i], given->files[j])) lost = given->files[j];
        if (!lost) continue;
        options_refuse(PROGRAM_OPT, "output %s would overwrite input %s", outputs[i], lost);
        return false;
    }
    return true;
}

/* Processes an XLA dump folder: reports on the stages without rewriting them. Gates apply to the
 * last stage. */
static hlo_status run_folder(opt_job *job) {
    const option_value *values = job->options.values;
    if (job->options.file_count > 1) {
        options_refuse(PROGRAM_OPT, "a dump folder cannot be combined with other inputs");
        return HLO_INVALID_USAGE;
    }
    hlo_status status = hlo_dump_open(job->options.files[0], &options_sink, &job->dump);
    if (status != HLO_OK) return status;
    for (size_t i = 0; i < hlo_dump_module_count(job->dump); i++)
        for (size_t k = 0; k < hlo_dump_stage_count(job->dump, i); k++) {
            const char *paths[] = {values[OPTION_OUTPUT].text, values[OPTION_REPORT].text};
            const char *stage = hlo_dump_path(job->dump, i, k);
            const char *lost = !output_spares(paths[0], stage)   ? paths[0]
                               : !output_spares(paths[1], stage) ? paths[1]
                                                                 : NULL;
            if (!lost) continue;
            options_refuse(PROGRAM_OPT, "output %s would overwrite input %s", lost, stage);
            return HLO_INVALID_USAGE;
        }
    const char *glob = values[OPTION_MODULE].text;
    size_t count = glob ? hlo_dump_keep(job->dump, glob) : hlo_dump_module_count(job->dump);
    if (!count) {
        hlo_print_plain(stderr, "hlo-fp8-opt: error: no module in %s matches --module='%s'\n",
                        job->options.files[0], glob);
        return HLO_INVALID_INPUT;
    }
    job->histories = calloc(count, sizeof(hlo_history *));
    job->reports = calloc(count, sizeof(hlo_report *));
    if (!job->histories || !job->reports) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < count && status == HLO_OK; i++)
        status = hlo_history_new(job->dump, i, &job->pass, &job->histories[i]);
    if (status != HLO_OK) return status;
    /* Each word of --wide must select a matmul of some stage. */
    size_t total = 0;
    for (size_t i = 0; i < count; i++) total += hlo_dump_stage_count(job->dump, i);
    const hlo_report **all = calloc(total + 1, sizeof *all);
    if (!all) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0, at = 0; i < count; i++)
        for (size_t k = 0; k < hlo_dump_stage_count(job->dump, i); k++)
            all[at++] = hlo_history_stage_report(job->histories[i], k);
    status = hlo_reports_check_wide(all, total, values[OPTION_WIDE].text, job->options.files[0],
                                    &options_sink);
    free(all);
    if (status != HLO_OK) return status;
    size_t kept = 0; /* gates on a folder ignore reports without matmuls */
    for (size_t i = 0; i < count; i++) {
        const hlo_report *last = hlo_history_report(job->histories[i]);
        if (hlo_report_count(last)) job->reports[kept++] = (hlo_report *)last;
    }
    const product products[] = {{values[OPTION_OUTPUT].text, stdout, print_histories},
                                {values[OPTION_REPORT].text, NULL, print_page}};
    return write_judged(job, kept, products, values[OPTION_REPORT].given ? 2 : 1);
}

static hlo_status run_modules(opt_job *job) {
    hlo_status status = HLO_OK;
    for (int i = 0; i < job->options.file_count && status == HLO_OK; i++)
        status = read_file(job, job->options.files[i]);
    const option_value *values = job->options.values;
    if (status != HLO_OK) return status;
    if (values[OPTION_DIFF].given) {
        const product difference = {values[OPTION_OUTPUT].text, stdout, print_difference};
        if (job->count == 2) return write_products(job, &difference, 1);
        fprintf(stderr, "hlo-fp8-opt: error: --diff compares two modules, but the input has %zu\n",
                job->count);
        return HLO_INVALID_USAGE;
    }
    status = hlo_reports_check_wide(
        (const hlo_report *const *)job->reports, job->count, values[OPTION_WIDE].text,
        job->options.file_count == 1 ? job->options.files[0] : NULL, &options_sink);
    if (status != HLO_OK) return status;
    if (job->count > 1 && strcmp(values[OPTION_FORMAT].text, "text") != 0) {
        options_refuse(PROGRAM_OPT, "--format=%s can write only one module, but the input has %zu",
                       values[OPTION_FORMAT].text, job->count);
        return HLO_INVALID_USAGE;
    }
    if (values[OPTION_AHEAD].given && job->count != 1) {
        options_refuse(PROGRAM_OPT, "--ahead splits one module, but the input has %zu", job->count);
        return HLO_INVALID_USAGE;
    }
    if (values[OPTION_AHEAD].given)
        status = hlo_module_split(job->modules[0], values[OPTION_AHEAD].text, &options_sink,
                                  &job->ahead);
    if (status != HLO_OK) return status;
    product products[MAX_PRODUCTS];
    size_t count = 0;
    if (wants_remarks(values))
        products[count++] = (product){values[OPTION_REMARKS_FILE].text, stderr, print_remarks};
    if (values[OPTION_REPORT].given)
        products[count++] = (product){values[OPTION_REPORT].text, stdout, print_page};
    if (job->ahead)
        products[count++] = (product){values[OPTION_AHEAD_OUTPUT].text, stdout, print_ahead};
    products[count++] = (product){values[OPTION_OUTPUT].text, stdout, print_modules};
    return write_judged(job, job->count, products, count);
}

/* Sizes for use_large_pages(), in bytes. For allocations larger than MAX_HEAP, ir/arena.c requests
 * large pages itself. */
enum { LARGE_PAGE = 2 << 20, HEAP_FIRST = 24 << 20, MAX_HEAP = 32 << 20 };

/* An allocation that fills the space before the first large page, so that no other allocation is
 * placed there. */
__attribute__((used)) static void *filler;

/* Makes malloc() allocate from the system's large pages if available. Freed memory is not returned
 * to the system. A short run spends most of its time in the kernel clearing pages, and clearing
 * memory in large pages takes a tenth of the time. */
static void use_large_pages(void) {
    mallopt(M_MMAP_THRESHOLD, MAX_HEAP);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    char *capacity = malloc(HEAP_FIRST);
    if (!capacity) return;
    const size_t before = LARGE_PAGE - (uintptr_t)capacity % LARGE_PAGE;
    madvise(capacity + before, (HEAP_FIRST - before) / LARGE_PAGE * LARGE_PAGE, MADV_HUGEPAGE);
    free(capacity);
    filler = malloc(before);
}

int main(int argc, char **argv) {
    opt_job job = {.argc = argc, .argv = argv};
    int exit_status;
    output_hold_standard();
    use_large_pages();
    if (!options_parse(PROGRAM_OPT, argc, argv, &job.options, &exit_status)) return exit_status;
    const option_value *values = job.options.values;
    if (values[OPTION_LIST_PASSES].given)
        return options_end(PROGRAM_OPT, hlo_passes_print(NULL, hlo_file_writer(stdout)));
    if (values[OPTION_EXPLAIN].given) {
        const char *name = values[OPTION_EXPLAIN].text;
        bool all = strcmp(name, "all") == 0, found = false;
        for (size_t i = 0; i < hlo_reason_count(); i++) {
            if (!all && strcmp(name, hlo_reason_name(i)) != 0) continue;
            printf("%s## %s\nMeaning: %s.\nFix: %s.\n\n%s", found ? "\n" : "", hlo_reason_name(i),
                   hlo_reason_text(i), hlo_reason_hint(i), hlo_reason_page(i));
            found = true;
        }
        if (!found) {
            hlo_suggestion near = hlo_suggest(name);
            for (size_t i = 0; i < hlo_reason_count(); i++)
                hlo_suggest_offer(&near, hlo_reason_name(i));
            return options_refuse(PROGRAM_OPT, "unknown reason '%s'%s", name,
                                  near.best ? hlo_suggest_meant(&near)
                                            : "; --explain=all lists all reasons");
        }
        return options_end(PROGRAM_OPT, HLO_OK);
    }
    if (job.options.file_count == 0) return options_refuse(PROGRAM_OPT, "no input file");
    if (!options_pass(PROGRAM_OPT, &job.options, &job.pass, &exit_status)) return exit_status;
    if (values[OPTION_EXTRACT].given && !values[OPTION_PASSES].given) job.pass.passes = "";
    int mode = values[OPTION_DIFF].given ? DIFF : MODULES;
    struct stat about;
    for (int i = 0; i < job.options.file_count; i++)
        if (stat(job.options.files[i], &about) == 0 && S_ISDIR(about.st_mode)) mode = FOLDER;
    if (!options_suit(PROGRAM_OPT, &job.options, mode) || !spares_inputs(&job.options)) return 2;
    if (values[OPTION_AHEAD].given != values[OPTION_AHEAD_OUTPUT].given)
        return options_refuse(PROGRAM_OPT, values[OPTION_AHEAD].given
                                               ? "--ahead requires --ahead-output=FILE"
                                               : "--ahead-output requires --ahead=PARAMETER,...");
    /* Evaluate the gates without reports, to reject invalid gates before any work. */
    char why[1024];
    hlo_status status = check_gates(&job, 0, why, sizeof why);
    if (status == HLO_OK || status == HLO_MISMATCH)
        status = mode == FOLDER ? run_folder(&job) : run_modules(&job);
    for (size_t i = 0; job.histories && i < hlo_dump_module_count(job.dump); i++)
        hlo_history_free(job.histories[i]);
    for (size_t i = 0; i < job.count; i++) hlo_report_free(job.reports[i]);
    free(job.histories);
    free(job.reports);
    hlo_dump_free(job.dump);
    hlo_module_free(job.ahead);
    hlo_modules_free(job.modules, job.count);
    return options_end(PROGRAM_OPT, status);
}
