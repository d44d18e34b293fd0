/* SPDX-License-Identifier: Apache-2.0 */
/* Compares reports with the JSON remarks of an earlier run, the baseline. */
#ifndef HLO_REPORT_BASELINE_H
#define HLO_REPORT_BASELINE_H

#include "report/model.h"

enum { REPORT_CHANGES = HLO_CHANGE_GONE + 1 };

typedef enum report_origin { REPORT_PROGRAM, REPORT_QUANTIZE, REPORT_WIDE } report_origin;

/* A matmul of the baseline or of the reports. */
typedef struct report_entry {
    const char *op_name, *shape; /* identify the matmul; op_name may be "" */
    const char *instr;           /* name for messages if op_name is "" */
    report_origin origin;        /* what made the matmul FP8, or that it is wide */
    hlo_change change;
    bool paired;                /* the other side has this matmul */
    const hlo_verdict *verdict; /* in the reports: of this matmul or its pair; may be NULL */
    size_t index;               /* in the reports: number of matmuls before this one */
} report_entry;

typedef struct report_baseline {
    struct json_t *document; /* owns all strings of `old` */
    report_entry *old;       /* matmuls of the baseline, by op_name and shape */
    size_t old_count, old_fp8;
    hlo_change *changes; /* by matmul, in the order of the reports */
    size_t counts[REPORT_CHANGES];
} report_baseline;

/* Reads the baseline and compares the reports with it. If the file is not a complete JSON report,
 * prints an error to `sink` and returns HLO_INVALID_INPUT. The caller frees *out, also on
 * failure. */
hlo_status report_baseline_read(const hlo_report *const *reports, size_t count, const char *path,
                                const hlo_diag_sink *sink, report_baseline *out);
void report_baseline_free(report_baseline *baseline);

/* Returns a total of the baseline, such as "seconds", or -1 if the baseline does not have it. */
double report_baseline_total(const report_baseline *baseline, const char *name);

#endif
