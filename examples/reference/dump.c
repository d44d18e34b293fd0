/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of dump.h. */
#include "reference.h"

#include <stdlib.h>

#include <hlo/dump.h>

/* [dump] */
/* Lists the modules and stages of a folder that XLA wrote with --xla_dump_to. */
static hlo_status list(const char *folder) {
    hlo_dump *dump = NULL;
    hlo_status status = hlo_dump_open(folder, &sink, &dump);
    size_t m, s;
    if (status == HLO_OK && hlo_dump_keep(dump, "jit_*") == 0) status = HLO_INVALID_INPUT;
    for (m = 0; status == HLO_OK && m < hlo_dump_module_count(dump); m++) {
        const char *target = hlo_dump_target(dump, m);
        printf("%s for %s, compiled %u times\n", hlo_dump_module(dump, m),
               target ? target : "unknown", (unsigned)hlo_dump_compilation_count(dump, m));
        for (s = 0; s < hlo_dump_stage_count(dump, m); s++)
            printf("  %s is at %s\n", hlo_dump_stage(dump, m, s), hlo_dump_path(dump, m, s));
    }
    hlo_dump_free(dump);
    return status;
}
/* [dump] */

/* [history] */
/* Prints the pass after which each matmul of a module could no longer become FP8. */
static hlo_status print_losses(const hlo_dump *dump, size_t module) {
    hlo_history *history = NULL;
    hlo_status status = hlo_history_new(dump, module, NULL, &history);
    size_t i;
    for (i = 0; status == HLO_OK && i < hlo_history_count(history); i++) {
        const hlo_matmul_history *matmul = hlo_history_passage(history, i);
        if (matmul->lost == SIZE_MAX) continue;
        printf("%s: lost by %s: %s\n", matmul->first->input_instruction,
               matmul->pass ? matmul->pass : "unknown", matmul->how);
    }
    if (status == HLO_OK)
        printf("%u matmuls at the first stage, %u at the last\n",
               (unsigned)hlo_report_count(hlo_history_stage_report(history, 0)),
               (unsigned)hlo_report_count(hlo_history_report(history)));
    hlo_history_free(history);
    return status;
}
/* [history] */

/* [stages] */
/* Prints the number of stages at which a matmul is FP8 or can become FP8. */
static void count_fp8(const hlo_dump *dump, size_t module, const hlo_history *history,
                      size_t index) {
    unsigned count = 0;
    size_t s;
    for (s = 0; s < hlo_dump_stage_count(dump, module); s++) {
        const hlo_verdict *verdict = hlo_history_verdict(history, index, s);
        count += verdict && verdict->kind != HLO_VERDICT_WIDE;
    }
    printf("FP8 at %u stages\n", count);
}
/* [stages] */

/* [page] */
/* Writes an HTML page about a dump with one module. */
static hlo_status write_page(const hlo_dump *dump, const hlo_history *history, const char *path) {
    hlo_status status;
    FILE *file = fopen(path, "w");
    if (!file) return HLO_INVALID_INPUT;
    status = hlo_histories_page(dump, &history, NULL, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [page] */

/* [histories] */
/* Prints the histories of all modules of a dump. */
static hlo_status print_all(const hlo_dump *dump) {
    const size_t count = hlo_dump_module_count(dump);
    hlo_history **histories = calloc(count, sizeof *histories);
    hlo_status status = histories ? HLO_OK : HLO_OUT_OF_MEMORY;
    size_t m;
    for (m = 0; status == HLO_OK && m < count; m++)
        status = hlo_history_new(dump, m, NULL, &histories[m]);
    if (status == HLO_OK)
        status = hlo_histories_print(dump, (const hlo_history *const *)histories, NULL,
                                     hlo_file_writer(stdout));
    for (m = 0; histories && m < count; m++) hlo_history_free(histories[m]);
    free(histories);
    return status;
}
/* [histories] */

hlo_status example_dump(const char *folder) {
    hlo_dump *dump = NULL;
    hlo_history *history = NULL;
    hlo_status status = list(folder);
    if (status == HLO_OK) status = hlo_dump_open(folder, &sink, &dump);
    if (status == HLO_OK) status = hlo_history_new(dump, 0, NULL, &history);
    if (status == HLO_OK) {
        count_fp8(dump, 0, history, 0);
        status = write_page(dump, history, "dump.html");
    }
    hlo_history_free(history);
    if (status == HLO_OK) status = print_losses(dump, 0);
    if (status == HLO_OK) status = print_all(dump);
    hlo_dump_free(dump);
    return status;
}
