/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of documents about reports. */
#include "reference.h"

#include <stdlib.h>

#include <hlo/report.h>

/* [remarks] */
/* Writes all verdicts as JSON. */
static hlo_status write_json(const hlo_report *report, const char *path) {
    hlo_remarks_options options;
    hlo_status status;
    FILE *file = fopen(path, "w");
    if (!file) return HLO_INVALID_INPUT;
    hlo_remarks_options_init(&options);
    options.which = HLO_REMARKS_ALL;
    options.format = HLO_REMARKS_JSON;
    status = hlo_reports_print(&report, 1, &options, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [remarks] */

/* [page] */
/* Writes an HTML page. */
static hlo_status write_page(const hlo_report *report, const char *path) {
    hlo_page_options options;
    hlo_status status;
    FILE *file = fopen(path, "w");
    if (!file) return HLO_INVALID_INPUT;
    hlo_page_options_init(&options);
    options.date = "2026-01-31";
    options.sink = &sink;
    status = hlo_reports_page(&report, 1, &options, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [page] */

/* [gate] */
/* Requires that all matmuls are FP8, and that none became wide since the JSON remarks at `path`. */
static hlo_status check(const hlo_report *report, const char *path) {
    char why[256];
    hlo_status status = hlo_reports_gate(&report, 1, "all", NULL, false, why, sizeof why);
    if (status == HLO_OK)
        status = hlo_reports_baseline(&report, 1, path, false, &sink, why, sizeof why);
    if (status == HLO_MISMATCH) printf("%s\n", why);
    return status;
}
/* [gate] */

/* [compare] */
/* Counts the matmuls that were FP8 before and are not after. */
static size_t count_lost(const hlo_report *before, const hlo_report *after) {
    hlo_change *old = calloc(hlo_report_count(before), sizeof *old);
    hlo_change *new = calloc(hlo_report_count(after), sizeof *new);
    size_t i, lost = 0;
    if (old && new &&hlo_reports_compare(&before, 1, &after, 1, old, new) == HLO_OK)
        for (i = 0; i < hlo_report_count(before); i++) lost += old[i] == HLO_CHANGE_LOST_FP8;
    free(old);
    free(new);
    return lost;
}
/* [compare] */

hlo_status example_report(void) {
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status = read_text(scaled, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, NULL, &report);
    if (status == HLO_OK) status = write_json(report, "remarks.json");
    if (status == HLO_OK) status = write_page(report, "page.html");
    if (status == HLO_OK) status = check(report, "remarks.json");
    if (status == HLO_OK && count_lost(report, report) != 0) status = HLO_INTERNAL;
    hlo_report_free(report);
    hlo_module_free(module);
    return status;
}
