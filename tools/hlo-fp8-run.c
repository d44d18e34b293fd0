/* hlo-fp8-run: executes the entry computation of an HLO module, and compares its outputs. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "options.h"
#include "output.h"

typedef struct run_job {
    options options;
    hlo_pass_options pass;
    /* The executed module; its form before --optimize for the cpu backend, if another form is
     * executed or it is compared with; the module that --compare names. */
    hlo_module *module, *before, *reference;
    hlo_plan *plan, *judge_plan;
    hlo_arrays *inputs, *outputs, *expected;
    hlo_arrays *judges[2]; /* NULL, or expected or outputs: borrowed */
} run_job;

static hlo_status complain(const char *what, const char *name) {
    return options_complain(PROGRAM_RUN, what, name);
}

static bool is_npz(const char *path) {
    size_t length = strlen(path);
    return length >= 4 && strcmp(path + length - 4, ".npz") == 0;
}

static hlo_status load(const char *path, hlo_module **out) {
    hlo_status status = hlo_module_parse_file(path, &options_sink, out);
    return status == HLO_OK ? hlo_module_verify(*out, NULL, &options_sink) : status;
}

/* Reads the module, and the modules that it is compared with. */
static hlo_status load_modules(run_job *job) {
    const option_value *values = job->options.values;
    const char *compare = values[OPTION_COMPARE].text;
    bool with_before = compare && strcmp(compare, "before") == 0;
    bool other = values[OPTION_OPTIMIZE].given || strcmp(values[OPTION_BACKEND].text, "cpu") != 0;
    hlo_status status = load(job->options.files[0], &job->module);
    if (status == HLO_OK && compare && (with_before || other))
        status = hlo_module_clone(job->module, &job->before);
    if (status == HLO_OK && compare && !with_before && !is_npz(compare))
        status = load(compare, &job->reference);
    if (status == HLO_OK && values[OPTION_OPTIMIZE].given)
        status = hlo_module_optimize(job->module, &job->pass, NULL);
    return status;
}

/* Returns the module whose execution gives the first bounds; NULL: nothing is compared, or the
 * executed module's own run gives them. */
static const hlo_module *first_judge(const run_job *job) {
    return job->reference ? job->reference : job->before;
}

/* Returns the options of the executed plan. Only the cpu backend keeps bounds, for an array to be
 * compared with. */
static hlo_plan_options plan_options(const run_job *job) {
    const option_value *values = job->options.values;
    hlo_plan_options plan;
    hlo_plan_options_init(&plan);
    plan.backend = values[OPTION_BACKEND].text;
    plan.bounds = values[OPTION_COMPARE].given && !first_judge(job) && !values[OPTION_PLAN].given;
    if (values[OPTION_PLAN].given && values[OPTION_TARGET].given)
        plan.describe = (int)values[OPTION_TARGET].number;
    plan.cuda = (int)values[OPTION_CUDA].number;
    plan.host_fallback = values[OPTION_FALLBACK].given;
    plan.graph = values[OPTION_GRAPH].number != 0;
    const long algorithms = values[OPTION_AUTOTUNE].number;
    plan.autotune = algorithms < INT_MAX ? (int)algorithms : INT_MAX;
    plan.autotune_cache = values[OPTION_AUTOTUNE_CACHE].text;
    plan.kernel_cache = values[OPTION_KERNEL_CACHE].text;
    plan.workspace = (size_t)values[OPTION_WORKSPACE].number;
    return plan;
}

/* Returns the options of the plan that gives bounds: the cpu backend, for any executed plan. */
static hlo_plan_options judge_options(const run_job *job) {
    hlo_plan_options plan;
    hlo_plan_options_init(&plan);
    plan.bounds = true;
    plan.roundings_may_be_dropped = first_judge(job) != NULL;
    return plan;
}

static hlo_status make_plan(const hlo_module *module, const hlo_plan_options *how, hlo_plan **out) {
    hlo_status status = hlo_plan_new(module, how, &options_sink, out);
    if (status != HLO_INVALID_USAGE) return status;
    fprintf(stderr, "hlo-fp8-run: error: this build has no %s backend\n", how->backend);
    return HLO_INVALID_INPUT;
}

static hlo_status get_inputs(run_job *job) {
    const option_value *values = job->options.values;
    const char *path = values[OPTION_INPUTS].text;
    if (path) return hlo_arrays_read(path, job->module, HLO_INPUTS, &options_sink, &job->inputs);
    return hlo_arrays_draw(job->module, (uint64_t)values[OPTION_SEED].number, &options_sink,
                           &job->inputs);
}

static void print_array(const hlo_array *array) {
    printf("%s[", array->type);
    for (uint32_t i = 0; i < array->rank; i++)
        printf(i ? ",%lld" : "%lld", (long long)array->dims[i]);
    putchar(']');
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Prints the times of `count` runs; sorts them in place. */
static void print_times(double *seconds, size_t count) {
    qsort(seconds, count, sizeof *seconds, by_size);
    double median = (seconds[(count - 1) / 2] + seconds[count / 2]) / 2;
    printf("run: min %.9f s, median %.9f s, spread %.9f s\n", seconds[0], median,
           seconds[count - 1] - seconds[0]);
}

static hlo_status run_times(run_job *job, double *seconds, size_t count) {
    for (size_t i = 0; i < count; i++) {
        hlo_arrays_free(job->outputs);
        job->outputs = NULL;
        hlo_status status = hlo_plan_run(job->plan, job->inputs, &options_sink, &job->outputs);
        if (status != HLO_OK) return status;
        seconds[i] = hlo_plan_seconds(job->plan);
    }
    return HLO_OK;
}

static hlo_status execute(run_job *job) {
    const option_value *time = &job->options.values[OPTION_TIME];
    size_t count = time->given ? (size_t)time->number : 1;
    double *seconds = calloc(count, sizeof *seconds);
    hlo_status status = seconds ? run_times(job, seconds, count) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) {
        printf("%zu outputs:", hlo_arrays_count(job->outputs));
        for (size_t i = 0; i < hlo_arrays_count(job->outputs); i++) {
            fputs(i ? ", " : " ", stdout);
            print_array(hlo_arrays_at(job->outputs, i));
        }
        putchar('\n');
        if (time->given) print_times(seconds, count);
    }
    free(seconds);
    return status;
}

/* Loads the comparison and makes the plans: everything that can be refused, before anything runs.
 */
static hlo_status prepare(run_job *job) {
    const char *path = job->options.values[OPTION_COMPARE].text;
    hlo_plan_options how = judge_options(job);
    hlo_status status = get_inputs(job);
    if (status != HLO_OK || !path) return status;
    if (is_npz(path))
        status = hlo_arrays_read(path, job->module, HLO_OUTPUTS, &options_sink, &job->expected);
    if (status != HLO_OK || !first_judge(job)) return status;
    status = make_plan(first_judge(job), &how, &job->judge_plan);
    return status == HLO_OK ? hlo_plan_check(job->judge_plan, job->inputs, &options_sink) : status;
}

/* Executes the module that gives bounds, and samples its noise by a few more runs. */
static hlo_status sit(run_job *job, const hlo_module *module, hlo_plan *plan,
                      hlo_comparison *comparison) {
    hlo_plan_options how = judge_options(job);
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

/* Executes the other module for its bounds as well, if two are compared: either may have omitted
 * roundings. */
static hlo_status ask_other(run_job *job, hlo_comparison *comparison) {
    const hlo_module *module = job->before ? job->before : job->module;
    hlo_plan_options how = judge_options(job);
    hlo_plan *plan;
    hlo_status status = make_plan(module, &how, &plan);
    if (status != HLO_OK) return status;
    status = sit(job, module, plan, comparison);
    hlo_plan_free(plan);
    return status;
}

static hlo_status compare(run_job *job) {
    const char *path = job->options.values[OPTION_COMPARE].text;
    if (!path) return HLO_OK;
    const hlo_module *judge = first_judge(job);
    hlo_comparison comparison = {.found = job->outputs,
                                 .expected = job->expected,
                                 .judges = (const hlo_arrays *const *)job->judges,
                                 .found_module = job->module,
                                 .expected_module = is_npz(path) ? NULL : judge,
                                 .found_name = job->options.files[0],
                                 .expected_name = path,
                                 .inputs = job->inputs,
                                 .all = job->options.values[OPTION_ALL_OUTPUTS].given};
    hlo_status status = sit(job, judge ? judge : job->module, job->judge_plan, &comparison);
    if (status == HLO_OK && job->reference) {
        status = hlo_arrays_compare_by(&comparison, NULL);
        if (status == HLO_MISMATCH) status = ask_other(job, &comparison);
    }
    return status == HLO_OK ? hlo_arrays_compare_by(&comparison, stdout) : status;
}

/* Opens the output first: a file that cannot be written is refused before anything runs. */
static hlo_status execute_to(run_job *job, const char *path) {
    output out = {.name = path};
    if (path && !output_open(&out, path, stdout)) return complain("open", path);
    hlo_status status = execute(job), written = HLO_OK;
    if (status == HLO_OK) status = compare(job);
    bool keep = status == HLO_OK || status == HLO_MISMATCH;
    if (path && keep) written = hlo_arrays_write(job->outputs, out.file);
    keep &= written == HLO_OK;
    if (path && !output_close(&out, keep) && keep) written = complain("write", path);
    return written == HLO_OK ? status : written;
}

static hlo_status run(run_job *job) {
    const option_value *values = job->options.values;
    hlo_status status = load_modules(job);
    hlo_plan_options how = plan_options(job);
    if (status == HLO_OK) status = make_plan(job->module, &how, &job->plan);
    if (status == HLO_OK && values[OPTION_PLAN].given) {
        hlo_plan_print(job->plan, stdout);
        return HLO_OK;
    }
    if (status == HLO_OK) status = prepare(job);
    return status == HLO_OK ? execute_to(job, values[OPTION_OUTPUTS].text) : status;
}

static void free_all(run_job *job) {
    for (int i = 0; i < 2; i++)
        if (job->judges[i] != job->outputs && job->judges[i] != job->expected)
            hlo_arrays_free(job->judges[i]);
    hlo_arrays_free(job->inputs);
    hlo_arrays_free(job->outputs);
    hlo_arrays_free(job->expected);
    hlo_plan_free(job->plan);
    hlo_plan_free(job->judge_plan);
    hlo_module_free(job->reference);
    hlo_module_free(job->before);
    hlo_module_free(job->module);
}

int main(int argc, char **argv) {
    run_job job = {0};
    int exit_status;
    output_hold_standard();
    setvbuf(stderr, NULL, _IOLBF, BUFSIZ); /* one write for each line, not for each character of
                                              a caret line */
    if (!options_parse(PROGRAM_RUN, argc, argv, &job.options, &exit_status)) return exit_status;
    if (job.options.file_count != 1)
        return options_refuse(PROGRAM_RUN, job.options.file_count ? "more than one input file"
                                                                  : "no input file");
    const option_value *values = job.options.values;
    int modes = values[OPTION_PLAN].given ? MODE_PLAN : MODE_EXECUTE;
    if (values[OPTION_OPTIMIZE].given) modes |= MODE_OPTIMIZE;
    if (values[OPTION_COMPARE].given) modes |= MODE_COMPARE;
    if (values[OPTION_BACKEND].number) modes |= MODE_DEVICE;
    if (!options_suit(PROGRAM_RUN, &job.options, modes)) return 2;
    const char *compare_with = values[OPTION_COMPARE].text, *outputs = values[OPTION_OUTPUTS].text;
    if (compare_with && strcmp(compare_with, "before") == 0 && !values[OPTION_OPTIMIZE].given &&
        strcmp(values[OPTION_BACKEND].text, "cpu") == 0)
        return options_refuse(PROGRAM_RUN, "--compare=before has no use without --optimize or "
                                           "--backend=cuda");
    if (outputs && output_is_standard(outputs))
        return options_refuse(PROGRAM_RUN, "--outputs takes a file; standard output has the text");
    const char *inputs[] = {job.options.files[0], values[OPTION_INPUTS].text, compare_with,
                            values[OPTION_RULES].text};
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (!output_spares(outputs, inputs[i]))
            return options_refuse(PROGRAM_RUN, "the output %s would replace the input %s", outputs,
                                  inputs[i]);
    if (values[OPTION_INPUTS].given && values[OPTION_SEED].given)
        return options_refuse(PROGRAM_RUN, "--seed has no use with --inputs");
    if (!options_pass(PROGRAM_RUN, &job.options, &job.pass, &exit_status)) return exit_status;
    hlo_status status = run(&job);
    if (status == HLO_OUT_OF_MEMORY)
        fprintf(stderr, "hlo-fp8-run: error: %s\n", hlo_status_name(status));
    free_all(&job);
    if (fflush(stdout) != 0 && status == HLO_OK) status = complain("write", "standard output");
    return hlo_status_exit(status);
}
