/* SPDX-License-Identifier: Apache-2.0 */
/* usage: threads THREADS ROUNDS MODEL... Each thread does everything that the library does with
 * each model, concurrently, with shared options, rules and a pass. The results must equal those of
 * one thread. Built with -fsanitize=thread, it reports races. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/edit.h"
#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/proto.h"
#include "hlo/report.h"
#include "hlo/runtime.h"
#include "hlo/text.h"
#include "unit/api/rules.h"

enum { MAX_MODELS = 16, MAX_THREADS = 64 };

/* The results for a model: concatenated text, reports, binary and values. */
typedef struct outcome {
    char *text;
    size_t size;
} outcome;

typedef struct job {
    const char *const *models;
    const outcome *expected; /* by model; NULL if not known yet */
    outcome *found;          /* by model, filled in if `expected` is NULL */
    int model_count, rounds;
    bool failed;
} job;

/* A pass that negates the root of the entry twice, which a rule reverts. */
static hlo_status negate_twice(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    const hlo_computation *entry = hlo_module_entry(module);
    const hlo_instruction *root = hlo_computation_root(entry);
    hlo_instruction_options options;
    hlo_status status = HLO_OK;
    (void)user;
    if (hlo_shape_type(hlo_instruction_shape(root)) != HLO_TYPE_F32) return HLO_OK;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_NEGATE;
    options.operands = &root;
    options.operand_count = 1;
    for (int i = 0; i < 2 && status == HLO_OK; i++)
        status = hlo_instruction_new(module, entry, &options, sink, &root);
    return status == HLO_OK ? hlo_computation_set_root(module, entry, root, sink) : status;
}

static hlo_status execute(const hlo_module *module, FILE *out) {
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_status status = hlo_plan_new(module, NULL, NULL, &plan);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 1, NULL, &inputs);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, NULL, &outputs);
    for (size_t i = 0; status == HLO_OK && i < hlo_arrays_count(outputs); i++) {
        const hlo_array *array = hlo_arrays_at(outputs, i);
        fwrite(array->data, 1, array->size, out);
    }
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return status;
}

static hlo_status rewrite(hlo_module *module, FILE *out) {
    static const hlo_user_pass pass = {
        .struct_size = sizeof pass, .name = "negate-twice", .run = negate_twice};
    static const hlo_user_pass *const passes[] = {&pass};
    hlo_pass_options options;
    hlo_report *report = NULL;
    hlo_pass_options_init(&options);
    options.passes = "negate-twice,default,clean-up";
    options.rules_text = rules;
    options.user_passes = passes;
    options.user_pass_count = 1;
    options.lint = options.surroundings = true;
    hlo_status status = hlo_module_optimize(module, &options, &report);
    const hlo_report *reports[] = {report};
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.colored = true;
    for (int f = HLO_REMARKS_TEXT; f <= HLO_REMARKS_MARKDOWN && status == HLO_OK; f++) {
        remarks.format = (hlo_remarks_format)f;
        status = hlo_reports_print(reports, 1, &remarks, hlo_file_writer(out));
    }
    if (status == HLO_OK) status = hlo_reports_page(reports, 1, NULL, hlo_file_writer(out));
    hlo_report_free(report);
    return status;
}

static hlo_status do_all(const char *model, FILE *out) {
    hlo_module *module = NULL, *before = NULL;
    char *text = NULL;
    size_t size;
    hlo_status status = hlo_module_parse_file(model, NULL, &module);
    if (status == HLO_OK) status = hlo_module_clone(module, &before);
    if (status == HLO_OK) status = rewrite(module, out);
    if (status == HLO_OK) status = hlo_module_to_text(module, NULL, &text, &size);
    if (status == HLO_OK) fwrite(text, 1, size, out);
    if (status == HLO_OK)
        status = hlo_module_print_proto(module, HLO_PROTO_BINARY, NULL, hlo_file_writer(out));
    if (status == HLO_OK) status = hlo_module_print_stats(module, hlo_file_writer(out));
    if (status == HLO_OK) status = hlo_module_diff(before, module, hlo_file_writer(out));
    if (status == HLO_OK || status == HLO_MISMATCH) status = execute(module, out);
    hlo_free(text);
    hlo_module_free(before);
    hlo_module_free(module);
    return status;
}

static void *work(void *user) {
    job *j = user;
    for (int round = 0; round < j->rounds; round++)
        for (int i = 0; i < j->model_count; i++) {
            outcome o = {.text = NULL};
            FILE *out = open_memstream(&o.text, &o.size);
            j->failed |= !out || do_all(j->models[i], out) != HLO_OK;
            if (out) fclose(out);
            if (j->expected)
                j->failed |= o.size != j->expected[i].size ||
                             memcmp(o.text, j->expected[i].text, o.size) != 0;
            if (j->expected)
                free(o.text);
            else
                j->found[i] = o;
        }
    return NULL;
}

int main(int argc, char **argv) {
    outcome expected[MAX_MODELS];
    pthread_t threads[MAX_THREADS];
    job jobs[MAX_THREADS];
    const int count = argc > 3 ? atoi(argv[1]) : 0, models = argc - 3;
    if (count < 1 || count > MAX_THREADS || models > MAX_MODELS) return 2;
    job first = {.models = (const char *const *)argv + 3,
                 .found = expected,
                 .model_count = models,
                 .rounds = 1};
    work(&first);
    bool failed = first.failed;
    for (int i = 0; i < count; i++) {
        jobs[i] = first;
        jobs[i].rounds = atoi(argv[2]);
        jobs[i].expected = expected;
        if (pthread_create(&threads[i], NULL, work, &jobs[i]) != 0) return 2;
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        failed |= jobs[i].failed;
    }
    for (int i = 0; i < models; i++) free(expected[i].text);
    if (failed) fprintf(stderr, "a thread failed, or found another result than one alone\n");
    return failed;
}
