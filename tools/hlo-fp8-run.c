/* SPDX-License-Identifier: Apache-2.0 */
/* hlo-fp8-run: executes the entry computation of an HLO module, and compares its outputs. Selects
 * the matmuls to quantize by their errors. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hlo/bisect.h"
#include "hlo/pjrt.h"
#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/text/diag.h"
#include "options.h"
#include "output.h"

typedef struct progress_line {
    double next; /* time of the next update, in seconds */
    bool shown;
} progress_line;

typedef struct run_job {
    options options;
    hlo_pass_options pass;
    hlo_module *module; /* the executed module */
    hlo_module *before; /* copy of `module` before --optimize, with the quantization of --quantize.
                         * Without --optimize, also made for --compare=before, and for any
                         * comparison on another backend than cpu */
    hlo_module *wide;   /* with --quantize: `module` before --optimize and without the
                         * quantization */
    bool quantized;     /* --quantize has quantized a matmul of `module` */
    hlo_module *reference;       /* the module that --compare specifies */
    hlo_module *made;            /* the module into which the plugin compiled `module` */
    hlo_plan *plan, *judge_plan; /* `plan` is NULL with a plugin */
    hlo_pjrt *pjrt;
    hlo_arrays *inputs, *outputs, *expected;
    hlo_arrays **sets; /* with --max-error or --record-amaxes: the sets of inputs */
    size_t set_count;
    hlo_bisection *selection; /* the result of --max-error */
    progress_line progress;
    hlo_arrays *judges[2]; /* results that provide error bounds; owned unless equal to `expected` or
                            * `outputs`; NULL if unused */
} run_job;

/* ----------------------------------------------------------------------------- the command line */

/* Prints a usage error; returns false. */
#define refuse(...) (options_refuse(PROGRAM_RUN, __VA_ARGS__), false)

/* Options whose arguments are output files of an execution. */
enum { USAGE_WRITTEN = 8 };
static const option_id usage_written[USAGE_WRITTEN] = {
    OPTION_OUTPUTS,   OPTION_VALUES, OPTION_TRACE,        OPTION_OPTIMIZED,
    OPTION_WIDE_FILE, OPTION_REPORT, OPTION_REMARKS_FILE, OPTION_RECORD_AMAXES};

/* Returns the plugin that --backend specifies; NULL for another backend. */
static const char *usage_plugin(const option_value *values) {
    static const char word[] = "pjrt:";
    const char *backend = values[OPTION_BACKEND].text;
    return strncmp(backend, word, sizeof word - 1) ? NULL : backend + sizeof word - 1;
}

static uint32_t usage_devices(const options *given) {
    const option_value *values = given->values;
    return usage_plugin(values) ? 1 : (uint32_t)values[OPTION_DEVICES].number;
}

/* Returns the number of simulated devices for a comparison, which also executes a plugin's
 * partitioned module. */
static uint32_t usage_judged_devices(const options *given) {
    const option_value *values = given->values;
    return values[OPTION_PARTITIONED].given ? (uint32_t)values[OPTION_DEVICES].number
                                            : usage_devices(given);
}

/* Returns the modes (program_mode) that the options select. */
static int usage_modes(const option_value *values) {
    if (values[OPTION_RECORD_AMAXES].given) return RECORD;
    const bool executes = !values[OPTION_PLAN].given && !values[OPTION_COMPILE_ONLY].given;
    int modes = values[OPTION_MAX_ERROR].given ? BUDGET | OPTIMIZE : executes ? EXECUTE : PLAN;
    if (values[OPTION_OPTIMIZE].given) modes |= OPTIMIZE;
    if (values[OPTION_COMPARE].given) modes |= COMPARING;
    if (usage_plugin(values))
        modes |= PLUGIN;
    else if (values[OPTION_BACKEND].number)
        modes |= DEVICE;
    return modes & EXECUTE && !(modes & PLUGIN) ? modes | LOOK : modes;
}

static bool is_recorded(const char *path) {
    return strcmp(path, "snapshot") == 0;
}

/* True if the combination of options is valid; otherwise prints an error. */
static bool usage_is_right(const options *given) {
    if (given->file_count != 1)
        return given->file_count ? refuse("expected one input file, found %d", given->file_count)
                                 : refuse("no input file");
    const option_value *values = given->values;
    const int modes = usage_modes(values);
    if (!options_suit(PROGRAM_RUN, given, modes)) return false;
    if (modes & BUDGET && modes & PLUGIN)
        return refuse("--max-error cannot be combined with --backend=pjrt:PLUGIN");
    if (modes & BUDGET && !values[OPTION_QUANTIZE].given)
        return refuse("--max-error requires --quantize");
    if (usage_plugin(values) && values[OPTION_PLAN].given)
        return refuse("--plan cannot be combined with --backend=pjrt:PLUGIN");
    const bool simulates =
        !usage_plugin(values) || (values[OPTION_PARTITIONED].given && values[OPTION_COMPARE].given);
    const int most = simulates ? HLO_MAX_DEVICES : HLO_PJRT_MAX_DEVICES;
    if (values[OPTION_DEVICES].number > most)
        return refuse("invalid value '%s' for --devices: expected a number from 1 to %d",
                      values[OPTION_DEVICES].text, most);
    if (values[OPTION_DEVICES].given && modes & DEVICE)
        return refuse("--devices cannot be combined with --backend=cuda");
    if (values[OPTION_TIME].number > HLO_MAX_RUNS)
        return refuse("invalid value '%s' for --time: expected a number from 0 to %d",
                      values[OPTION_TIME].text, HLO_MAX_RUNS);
    if (values[OPTION_TOPOLOGY].given && !values[OPTION_COMPILE_ONLY].given)
        return refuse("--topology requires --compile-only");
    for (const char *at = values[OPTION_XLA].text; at && *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length && !memchr(at, '=', length))
            return refuse("invalid value '%.*s' for --xla: expected KEY=VALUE", (int)length, at);
    }
    const char *compare_with = values[OPTION_COMPARE].text;
    if (compare_with && strcmp(compare_with, "before") == 0 && !values[OPTION_OPTIMIZE].given &&
        strcmp(values[OPTION_BACKEND].text, "cpu") == 0)
        return refuse("--compare=before requires --optimize or --backend=cuda");
    if (compare_with && is_recorded(compare_with) && usage_judged_devices(given) > 1)
        return refuse("--compare=snapshot cannot be combined with --devices");
    if (values[OPTION_DUMP_VALUES].given != values[OPTION_VALUES].given)
        return refuse(values[OPTION_VALUES].given ? "--values requires --dump-values=NAME,..."
                                                  : "--dump-values requires --values=FILE.npz");
    if (values[OPTION_BISECT].given && !values[OPTION_OPTIMIZE].given)
        return refuse("--bisect requires --optimize");
    const char *inputs[] = {given->files[0],
                            values[OPTION_INPUTS].text,
                            values[OPTION_COMPARE].text,
                            values[OPTION_RULES].text,
                            values[OPTION_TOPOLOGY].text,
                            values[OPTION_AUTOTUNE_CACHE].text,
                            values[OPTION_AMAXES].text,
                            usage_plugin(values)};
    for (int w = 0; w < USAGE_WRITTEN; w++) {
        const char *path = values[usage_written[w]].text;
        if (path && output_is_standard(path))
            return refuse("--%s cannot write to standard output, which the program prints to",
                          option_rows[usage_written[w]].name);
        for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
            if (!output_spares(path, inputs[i]))
                return refuse("output %s would overwrite input %s", path, inputs[i]);
    }
    if (values[OPTION_INPUTS].given && values[OPTION_SEED].given)
        return refuse("--seed cannot be combined with --inputs");
    if (values[OPTION_INPUTS].given && values[OPTION_DRAW].given)
        return refuse("--draw cannot be combined with --inputs");
    return true;
}

/* -------------------------------------------------------------------------------------- the run */

static bool is_npz(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npz") == 0;
}

static bool draws(const option_value *values) {
    return values[OPTION_SEED].given || values[OPTION_DRAW].given;
}

static hlo_status load(const char *path, hlo_module **out) {
    hlo_status status = hlo_module_parse_file(path, &options_sink, out);
    return status == HLO_OK ? hlo_module_verify(*out, NULL, &options_sink) : status;
}

/* Returns the module whose execution provides the first error bounds. Returns NULL if nothing is
 * compared, or if the run of `module` itself provides the bounds. */
static const hlo_module *first_judge(const run_job *job) {
    return job->reference ? job->reference : job->before;
}

static bool show_progress(void *user, const hlo_progress *progress) {
    progress_line *line = user;
    if (progress->done == 0) line->next = 1;
    if (progress->seconds < line->next) return true;
    line->next = progress->seconds + 0.1;
    line->shown = true;
    fprintf(stderr, "\r\033[K%.1f s", progress->seconds);
    if (progress->total > 0) fprintf(stderr, ", %.0f %%", 100 * progress->done / progress->total);
    hlo_print_plain(stderr, ": %.60s", progress->instruction);
    fflush(stderr);
    return true;
}

static void clear_progress(const run_job *job) {
    if (job->progress.shown) fputs("\r\033[K", stderr);
    fflush(stderr);
}

/* Returns the number of runs after the first one. A profile needs one, since it skips the first. */
static size_t timed_runs(const option_value *values) {
    return values[OPTION_TIME].given ? (size_t)values[OPTION_TIME].number
                                     : values[OPTION_PROFILE].given;
}

/* Returns the options of the executed plan. This plan records error bounds only on the cpu backend,
 * for a comparison with arrays. */
static hlo_plan_options plan_options(run_job *job) {
    const option_value *values = job->options.values;
    hlo_plan_options plan;
    hlo_plan_options_init(&plan);
    plan.backend = values[OPTION_BACKEND].text;
    plan.bounds = values[OPTION_COMPARE].given && !first_judge(job) && !values[OPTION_PLAN].given;
    if (values[OPTION_PLAN].given && values[OPTION_TARGET].given)
        plan.target = values[OPTION_TARGET].text;
    plan.cuda = values[OPTION_CUDA].text;
    plan.host_fallback = values[OPTION_FALLBACK].given;
    plan.graph = values[OPTION_GRAPH].number != 0;
    const long algorithms = values[OPTION_AUTOTUNE].number;
    plan.autotune = algorithms < INT_MAX ? (int)algorithms : INT_MAX;
    plan.autotune_cache = values[OPTION_AUTOTUNE_CACHE].text;
    plan.kernel_cache = values[OPTION_KERNEL_CACHE].text;
    plan.workspace = (size_t)values[OPTION_WORKSPACE].number;
    plan.accumulate = (hlo_accumulate)values[OPTION_ACCUMULATE].number;
    plan.fp8_rounding = (hlo_fp8_rounding)values[OPTION_FP8_ROUNDING].number;
    plan.overwrites_inputs = !timed_runs(values);
    plan.values = values[OPTION_DUMP_VALUES].text;
    plan.check_finite = values[OPTION_CHECK_NAN].given;
    plan.profile = values[OPTION_PROFILE].given || values[OPTION_TRACE].given;
    if (!values[OPTION_PLAN].given && isatty(STDERR_FILENO)) plan.progress = show_progress;
    plan.progress_user = &job->progress;
    plan.devices = usage_devices(&job->options);
    return plan;
}

/* Returns the options of the plan that computes error bounds. This plan always uses the cpu
 * backend. */
static hlo_plan_options judge_options(const run_job *job) {
    hlo_plan_options plan;
    hlo_plan_options_init(&plan);
    plan.bounds = true;
    plan.devices = usage_judged_devices(&job->options);
    plan.roundings_may_be_dropped = true; /* the passes or XLA may drop roundings */
    plan.fp8_rounding = (hlo_fp8_rounding)job->options.values[OPTION_FP8_ROUNDING].number;
    const option_value *accumulate = &job->options.values[OPTION_ACCUMULATE];
    const bool on_gpu = strcmp(job->options.values[OPTION_BACKEND].text, "cuda") == 0;
    plan.accumulate =
        on_gpu && !accumulate->given ? HLO_ACCUMULATE_HOPPER : (hlo_accumulate)accumulate->number;
    return plan;
}

/* The program has checked the options, so they are only invalid if this build lacks the backend. */
static hlo_status make_plan(const hlo_module *module, const hlo_plan_options *how, hlo_plan **out) {
    const hlo_status status = hlo_plan_new(module, how, &options_sink, out);
    return status == HLO_INVALID_USAGE ? HLO_INVALID_INPUT : status;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static hlo_status run_once(run_job *job) {
    if (job->pjrt) return hlo_pjrt_run(job->pjrt, job->inputs, &options_sink, &job->outputs);
    return hlo_plan_run(job->plan, job->inputs, &options_sink, &job->outputs);
}

/* Loads the expected arrays and builds the plans, so that all input errors are reported before
 * anything runs. */
static hlo_status prepare(run_job *job) {
    const option_value *values = job->options.values;
    const char *path = values[OPTION_COMPARE].text, *inputs = values[OPTION_INPUTS].text;
    const uint32_t devices = usage_devices(&job->options);
    hlo_plan_options how = judge_options(job);
    hlo_status status = HLO_OK;
    if (inputs)
        status = hlo_arrays_read_each(inputs, job->module, HLO_INPUTS, devices, &options_sink,
                                      &job->inputs);
    else if (!draws(values))
        status = hlo_arrays_recorded(job->module, HLO_INPUTS, devices, &options_sink, &job->inputs);
    if (status == HLO_OK && !job->inputs) {
        /* Draw inputs for the module before --optimize, because realistic weights depend on the
         * dots that read them. */
        const hlo_module *drawn = job->wide ? job->wide : job->before ? job->before : job->module;
        status = hlo_arrays_draw_each(drawn, (hlo_draw)values[OPTION_DRAW].number,
                                      (uint64_t)values[OPTION_SEED].number, devices, &options_sink,
                                      &job->inputs);
    }
    if (status != HLO_OK || !path) return status;
    if (is_npz(path))
        status = hlo_arrays_read_each(path, job->module, HLO_OUTPUTS,
                                      usage_judged_devices(&job->options), &options_sink,
                                      &job->expected);
    if (status != HLO_OK || !first_judge(job)) return status;
    status = make_plan(first_judge(job), &how, &job->judge_plan);
    return status == HLO_OK ? hlo_plan_check(job->judge_plan, job->inputs, &options_sink) : status;
}

/* Loads or draws the inputs of --max-error and --record-amaxes. */
static hlo_status prepare_sets(run_job *job) {
    const option_value *values = job->options.values;
    const char *given = values[OPTION_INPUTS].text;
    const uint32_t devices = usage_devices(&job->options);
    char *text = strdup(given ? given : ""), *rest = text;
    job->sets = calloc(strlen(given ? given : "") + 1, sizeof *job->sets);
    hlo_status status = text && job->sets ? HLO_OK : HLO_OUT_OF_MEMORY;
    for (char *path; status == HLO_OK && (path = strsep(&rest, ","));) {
        hlo_arrays **set = &job->sets[job->set_count++];
        if (given)
            status =
                hlo_arrays_read_each(path, job->module, HLO_INPUTS, devices, &options_sink, set);
        else if (!draws(values))
            status = hlo_arrays_recorded(job->module, HLO_INPUTS, devices, &options_sink, set);
        if (status == HLO_OK && !*set)
            status = hlo_arrays_draw_each(job->module, (hlo_draw)values[OPTION_DRAW].number,
                                          (uint64_t)values[OPTION_SEED].number, devices,
                                          &options_sink, set);
    }
    free(text);
    return status;
}

/* Prints the remarks of --max-error. */
static hlo_status print_remarks(const run_job *job, FILE *out) {
    const hlo_report *report = hlo_bisection_budget(job->selection)->report;
    const hlo_remarks_options printed = options_remarks(&job->options, out);
    return hlo_reports_print(&report, 1, &printed, hlo_file_writer(out));
}

/* Selects the matmuls to quantize. */
static hlo_status select_matmuls(run_job *job) {
    const option_value *values = job->options.values;
    const hlo_plan_options how = plan_options(job);
    hlo_status status = hlo_module_budget(
        job->module, &job->pass, &how, (const hlo_arrays *const *)job->sets, job->set_count,
        values[OPTION_MAX_ERROR].factor, &options_sink, &job->selection);
    clear_progress(job);
    if (status != HLO_OK) return status;
    const hlo_budget *budget = hlo_bisection_budget(job->selection);
    status = hlo_bisection_print(job->selection, hlo_file_writer(stdout));
    if (status == HLO_OK && (values[OPTION_REMARKS].given || values[OPTION_REMARKS_FORMAT].given) &&
        !values[OPTION_REMARKS_FILE].given)
        status = print_remarks(job, stderr);
    const bool exceeds = budget->measured.distance > budget->max_error;
    return status == HLO_OK && exceeds ? HLO_MISMATCH : status;
}

static hlo_status print_page(const run_job *job, FILE *out) {
    const hlo_report *report = hlo_bisection_budget(job->selection)->report;
    hlo_page_options page;
    hlo_page_options_init(&page);
    return hlo_reports_page(&report, 1, &page, hlo_file_writer(out));
}

/* Writes a name per line, or an empty line. */
static void print_names(const char *names, FILE *out) {
    for (; *names; names++) fputc(*names == ',' ? '\n' : *names, out);
    fputc('\n', out);
}

/* Executes the module that provides error bounds, and samples the noise of its rounding in a few
 * more runs. */
static hlo_status sit(run_job *job, const hlo_module *module, hlo_plan *plan,
                      hlo_comparison *comparison) {
    hlo_plan_options how = judge_options(job);
    how.roundings_may_be_dropped = plan; /* if `plan` is NULL, the executed plan provides the
                                          * bounds; it drops no rounding */
    hlo_arrays **judge = &job->judges[comparison->judge_count];
    hlo_status status = HLO_OK;
    if (!plan)
        *judge = job->outputs;
    else
        status = hlo_plan_run(plan, job->inputs, &options_sink, judge);
    if (status != HLO_OK) return status;
    if (!comparison->expected) comparison->expected = job->expected = *judge;
    comparison->judge_count++;
    return hlo_arrays_sample(*judge, comparison, module, &how, job->inputs, &options_sink);
}

static hlo_status compare(run_job *job) {
    const char *path = job->options.values[OPTION_COMPARE].text;
    if (!path) return HLO_OK;
    const hlo_module *judge = first_judge(job);
    const bool alone = usage_judged_devices(&job->options) ==
                       1; /* with several devices, the origin of a difference is not computed */
    hlo_comparison comparison = {.struct_size = sizeof comparison,
                                 .found = job->outputs,
                                 .expected = job->expected,
                                 .judges = (const hlo_arrays *const *)job->judges,
                                 .found_module = alone ? job->module : NULL,
                                 .expected_module =
                                     is_npz(path) || is_recorded(path) || !alone ? NULL : judge,
                                 .found_name = job->options.files[0],
                                 .expected_name = path,
                                 .inputs = job->inputs,
                                 .quantized = job->quantized && strcmp(path, "before") != 0,
                                 .all = job->options.values[OPTION_ALL_OUTPUTS].given,
                                 .sink = &options_sink};
    hlo_status status = sit(job, judge ? judge : job->module, job->judge_plan, &comparison);
    if (status == HLO_OK && (job->reference || !judge)) {
        status = hlo_arrays_compare_by(&comparison, (hlo_writer){0});
        comparison.last_drops = !judge && status == HLO_MISMATCH;
        if (status == HLO_MISMATCH) {
            /* Execute one more module for additional error bounds. If two modules are compared,
             * this is the second of them, because either may have dropped roundings. Otherwise it
             * is the executed module, whose first bounds assumed that no rounding was dropped. */
            const hlo_module *other = job->before ? job->before : job->module;
            hlo_plan_options how = judge_options(job);
            hlo_plan *plan = NULL;
            status = make_plan(other, &how, &plan);
            if (status == HLO_OK) {
                status = sit(job, other, plan, &comparison);
                hlo_plan_free(plan);
            }
        }
    }
    return status == HLO_OK ? hlo_arrays_compare_by(&comparison, hlo_file_writer(stdout)) : status;
}

/* Prints the number of arrays, in `format`, and their names and shapes. */
static void print_arrays(const run_job *job, const char *format, size_t first, size_t count) {
    enum { LISTED = 8 }; /* maximum number of arrays whose shapes are always printed */
    const bool listed = count <= LISTED || job->options.values[OPTION_ALL_OUTPUTS].given;
    printf(format, count);
    for (size_t i = 0; listed && i < count; i++) {
        const hlo_array *array = hlo_arrays_at(job->outputs, first + i);
        printf("%s%s%s%s[", i ? ", " : ": ", array->name ? array->name : "", array->name ? " " : "",
               hlo_element_type_name(array->type));
        for (uint32_t j = 0; j < array->rank; j++)
            printf(j ? ",%lld" : "%lld", (long long)array->dims[j]);
        putchar(']');
    }
    putchar('\n');
}

static hlo_status execute_all(run_job *job) {
    const option_value *values = job->options.values;
    if (values[OPTION_MAX_ERROR].given) return select_matmuls(job);
    if (values[OPTION_COMPILE_ONLY].given) {
        const hlo_status status =
            hlo_module_diff_matmuls(job->module, job->made, hlo_file_writer(stdout));
        return status == HLO_MISMATCH ? HLO_OK : status; /* with --compile-only, a difference is not
                                                          * an error */
    }
    const size_t count = timed_runs(values);
    double *seconds = calloc(count + 1, sizeof *seconds);
    hlo_status status = seconds ? run_once(job) : HLO_OUT_OF_MEMORY;
    /* Time `count` more runs, after the warm-up run. */
    if (status == HLO_OK && count && job->plan)
        status = hlo_plan_time(job->plan, count, &options_sink, seconds);
    for (size_t i = 0; i < count && !job->plan && status == HLO_OK; i++) {
        hlo_arrays_free(job->outputs);
        job->outputs = NULL;
        status = run_once(job);
        if (status == HLO_OK) seconds[i] = hlo_pjrt_seconds(job->pjrt);
    }
    clear_progress(job);
    if (status == HLO_OK) {
        const size_t all = hlo_arrays_count(job->outputs);
        size_t outputs = 0; /* the arrays that the run sent to the host have names, and follow */
        while (outputs < all && !hlo_arrays_at(job->outputs, outputs)->name) outputs++;
        print_arrays(job, outputs == 1 ? "%zu output" : "%zu outputs", 0, outputs);
        if (all > outputs)
            print_arrays(job,
                         all - outputs == 1 ? "%zu array sent to the host"
                                            : "%zu arrays sent to the host",
                         outputs, all - outputs);
        if (count && values[OPTION_TIME].given) {
            qsort(seconds, count, sizeof *seconds, by_size);
            const double median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
            int digits = 3; /* after the point; more for times below a millisecond */
            for (double at = 1e3 * median; at < 1 && digits < 6; at *= 10) digits++;
            printf("run: median %.*f ms of %zu runs after the first, from %.*f to %.*f ms\n",
                   digits, 1e3 * median, count, digits, 1e3 * seconds[0], digits,
                   1e3 * seconds[count - 1]);
        }
    }
    free(seconds);
    if (status == HLO_OK && values[OPTION_PROFILE].given)
        status = hlo_plan_print_profile(job->plan, hlo_file_writer(stdout));
    if (status == HLO_OK && values[OPTION_BISECT].given) {
        hlo_plan_options how = plan_options(job);
        how.values = NULL;
        how.check_finite = how.profile = how.bounds = false;
        how.progress = NULL;
        hlo_bisection *moved = NULL;
        status = hlo_module_bisect(job->wide ? job->wide : job->before, &job->pass, &how,
                                   job->inputs, &options_sink, &moved);
        if (status == HLO_OK) status = hlo_bisection_print(moved, hlo_file_writer(stdout));
        hlo_bisection_free(moved);
    }
    if (status == HLO_OK) status = compare(job);
    const bool found = job->plan && hlo_plan_nonfinite(job->plan);
    return status == HLO_OK && found ? HLO_MISMATCH : status;
}

/* Opens all files before execution, so that an unwritable file is reported first. Writes either all
 * files or none. */
static hlo_status execute_to(run_job *job) {
    enum { STANDARD = USAGE_WRITTEN };
    output files[USAGE_WRITTEN + 1] = {[STANDARD] = {.file = stdout, .name = "standard output"}};
    const char *names[USAGE_WRITTEN];
    hlo_status status = HLO_OK, ended = HLO_OK;
    for (int i = 0; i < USAGE_WRITTEN; i++) {
        names[i] = job->options.values[usage_written[i]].text;
        if (names[i] && status == HLO_OK && !output_open(&files[i], names[i], stdout))
            status = options_complain(PROGRAM_RUN, "open", names[i]);
    }
    const char *shared = status == HLO_OK ? output_shared(files, USAGE_WRITTEN + 1) : NULL;
    if (shared) {
        options_refuse(PROGRAM_RUN, "two outputs would be written to the same file %s", shared);
        status = HLO_INVALID_USAGE;
    }
    const int recorded = USAGE_WRITTEN - 1;
    if (status == HLO_OK)
        status = names[recorded]
                     ? hlo_module_record_amaxes(job->module, (const hlo_arrays *const *)job->sets,
                                                job->set_count, &options_sink,
                                                hlo_file_writer(files[recorded].file))
                     : execute_all(job);
    bool keep = status == HLO_OK || status == HLO_MISMATCH;
    if (keep && !output_end(&files[STANDARD])) {
        ended = options_complain(PROGRAM_RUN, "write", files[STANDARD].name);
        keep = false;
    }
    for (int i = 0; i < USAGE_WRITTEN && keep; i++) {
        if (!names[i]) continue;
        FILE *out = files[i].file;
        switch (usage_written[i]) {
        case OPTION_OUTPUTS: ended = hlo_arrays_write(job->outputs, hlo_file_writer(out)); break;
        case OPTION_VALUES:
            ended = hlo_arrays_write(hlo_plan_values(job->plan), hlo_file_writer(out));
            break;
        case OPTION_RECORD_AMAXES: break; /* record() has written it */
        case OPTION_OPTIMIZED:
            ended = hlo_module_print(job->made, NULL, hlo_file_writer(out));
            break;
        case OPTION_WIDE_FILE: print_names(hlo_bisection_budget(job->selection)->wide, out); break;
        case OPTION_REPORT: ended = print_page(job, out); break;
        case OPTION_REMARKS_FILE: ended = print_remarks(job, out); break;
        default: ended = hlo_plan_print_trace(job->plan, hlo_file_writer(out));
        }
        if (ended == HLO_INVALID_INPUT || (ended == HLO_OK && !output_end(&files[i])))
            ended = options_complain(PROGRAM_RUN, "write", names[i]);
        keep = ended == HLO_OK;
    }
    for (int i = 0; i < USAGE_WRITTEN; i++)
        if (names[i] && files[i].name && !output_close(&files[i], keep) && keep)
            ended = options_complain(PROGRAM_RUN, "write", names[i]);
    return ended == HLO_OK ? status : ended;
}

/* Loads the expected arrays of --compare=snapshot, which is the default for a snapshot with a
 * result, unless the inputs are not those of the snapshot. */
static hlo_status expect_recorded(run_job *job) {
    option_value *values = job->options.values, *compare_with = &values[OPTION_COMPARE];
    const bool wanted = compare_with->given && is_recorded(compare_with->text);
    const bool executes = !values[OPTION_PLAN].given && !values[OPTION_COMPILE_ONLY].given;
    const bool other_inputs = draws(values) || values[OPTION_INPUTS].given;
    const bool alone = usage_judged_devices(&job->options) == 1;
    if (!wanted && (compare_with->given || !executes || other_inputs || !alone)) return HLO_OK;
    hlo_status status =
        hlo_arrays_recorded(job->module, HLO_OUTPUTS, usage_judged_devices(&job->options),
                            &options_sink, &job->expected);
    if (job->expected) *compare_with = (option_value){.given = true, .text = "snapshot"};
    if (status != HLO_OK || job->expected || !wanted) return status;
    hlo_print_plain(stderr, "hlo-fp8-run: error: %s has no result for --compare=snapshot\n",
                    job->options.files[0]);
    return HLO_INVALID_INPUT;
}

static hlo_status run(run_job *job) {
    const option_value *values = job->options.values;
    const char *plugin = usage_plugin(values);
    const bool other = strcmp(values[OPTION_BACKEND].text, "cpu") != 0;
    hlo_status status = load(job->options.files[0], &job->module);
    if (values[OPTION_MAX_ERROR].given || values[OPTION_RECORD_AMAXES].given) {
        if (status == HLO_OK) status = prepare_sets(job);
        return status == HLO_OK ? execute_to(job) : status;
    }
    if (status == HLO_OK) status = expect_recorded(job);
    const char *compared = values[OPTION_COMPARE].text;
    const bool with_before = compared && strcmp(compared, "before") == 0;
    if (status == HLO_OK && (values[OPTION_OPTIMIZE].given || (compared && (with_before || other))))
        status = hlo_module_clone(job->module, &job->before);
    if (status == HLO_OK && job->pass.quantize) {
        status = hlo_module_clone(job->module, &job->wide);
        if (status == HLO_OK) status = hlo_module_quantize(job->before, &job->pass);
    }
    if (status == HLO_OK && compared && !with_before && !is_npz(compared) && !job->expected)
        status = load(compared, &job->reference);
    if (status == HLO_OK && values[OPTION_OPTIMIZE].given) {
        hlo_report *report = NULL;
        status = hlo_module_optimize(job->module, &job->pass, &report);
        for (size_t i = 0; status == HLO_OK && i < hlo_report_count(report); i++)
            job->quantized |= hlo_report_verdict(report, i)->quantized != NULL;
        hlo_report_free(report);
    }
    if (status == HLO_OK && plugin) {
        const char *given = values[OPTION_XLA].given ? values[OPTION_XLA].text : "";
        char *text = strdup(given);
        const char **settings = calloc(strlen(given) + 1, sizeof *settings);
        status = HLO_OUT_OF_MEMORY;
        if (text && settings) {
            hlo_pjrt_options how;
            hlo_pjrt_options_init(&how);
            how.plugin = plugin;
            how.target = values[OPTION_TOPOLOGY].text;
            how.devices = (uint32_t)values[OPTION_DEVICES].number;
            how.partitioned = values[OPTION_PARTITIONED].given;
            how.settings = settings;
            for (char *rest = text, *word; (word = strsep(&rest, " "));)
                if (*word) settings[how.setting_count++] = word;
            status = hlo_pjrt_new(job->module, &how, &options_sink, &job->pjrt);
        }
        free(settings);
        free(text);
    } else if (status == HLO_OK) {
        const hlo_plan_options how = plan_options(job);
        status = make_plan(job->module, &how, &job->plan);
    }
    if (status == HLO_OK && (values[OPTION_OPTIMIZED].given || values[OPTION_COMPILE_ONLY].given))
        status = hlo_pjrt_optimized(job->pjrt, &options_sink, &job->made);
    if (status == HLO_OK && values[OPTION_PLAN].given)
        return hlo_plan_print(job->plan, hlo_file_writer(stdout));
    if (status == HLO_OK && !values[OPTION_COMPILE_ONLY].given) status = prepare(job);
    return status == HLO_OK ? execute_to(job) : status;
}

int main(int argc, char **argv) {
    run_job job = {0};
    int exit_status;
    output_hold_standard();
    if (!options_parse(PROGRAM_RUN, argc, argv, &job.options, &exit_status)) {
        const option_value *values = job.options.values;
        if (exit_status || !values[OPTION_VERSION].given || !values[OPTION_BACKEND].given ||
            usage_plugin(values))
            return exit_status;
        return options_end(PROGRAM_RUN, hlo_backend_print(values[OPTION_BACKEND].text,
                                                          &options_sink, hlo_file_writer(stdout)));
    }
    if (!usage_is_right(&job.options)) return 2;
    if (!options_pass(PROGRAM_RUN, &job.options, &job.pass, &exit_status)) return exit_status;
    hlo_status status = run(&job);
    for (int i = 0; i < 2; i++)
        if (job.judges[i] != job.outputs && job.judges[i] != job.expected)
            hlo_arrays_free(job.judges[i]);
    for (size_t i = 0; i < job.set_count; i++) hlo_arrays_free(job.sets[i]);
    free(job.sets);
    hlo_bisection_free(job.selection);
    hlo_arrays_free(job.inputs);
    hlo_arrays_free(job.outputs);
    hlo_arrays_free(job.expected);
    hlo_plan_free(job.plan);
    hlo_plan_free(job.judge_plan);
    hlo_pjrt_free(job.pjrt);
    hlo_module_free(job.made);
    hlo_module_free(job.reference);
    hlo_module_free(job.before);
    hlo_module_free(job.wide);
    hlo_module_free(job.module);
    return options_end(PROGRAM_RUN, status);
}
