/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the matmuls of a report with those of an earlier report, the baseline: each matmul, and
 * the sums of layers. */
#ifndef HLO_REPORT_BASELINE_H
#define HLO_REPORT_BASELINE_H

#include "report/model.h"

enum { REPORT_CHANGES = HLO_CHANGE_GONE + 1 };

typedef enum report_origin { REPORT_PROGRAM, REPORT_QUANTIZE, REPORT_WIDE } report_origin;

/* A matmul of the baseline or of the report. */
typedef struct report_entry {
    const char *op_name, *shape; /* identify the matmul; op_name may be "" */
    const char *layer;           /* NULL if unknown */
    const char *instr;           /* name for messages if op_name is "" */
    double seconds;              /* of all executions */
    const char *reason;          /* NULL if the verdict has none */
    bool missed;
    report_origin origin; /* what made the matmul FP8, or that it is wide */
    hlo_change change;
    bool paired;                /* the other side has this matmul */
    const hlo_verdict *verdict; /* in the report: of this matmul or its pair; may be NULL */
    size_t index;               /* number of matmuls of the same side before this one */
} report_entry;

/* The matmuls of a layer that have equal result shapes, in the baseline and in the report. */
typedef struct report_layer_change {
    const char *layer, *shape;
    size_t count[2], fp8[2], missed[2]; /* numbers of matmuls, of FP8 and of missed matmuls */
    const char *reason[2];              /* of the first matmul that has one, or NULL */
    double seconds[2];
    const report_entry *lost; /* the first matmul that lost FP8, or NULL */
} report_layer_change;

typedef struct report_baseline {
    struct json_t *document; /* owns strings of `old` */
    hlo_arena *arena;        /* owns all of the following */
    report_entry *old;       /* matmuls of the baseline, by op_name and shape */
    size_t old_count, old_fp8;
    hlo_change *changes; /* by matmul, in the order of the model */
    size_t counts[REPORT_CHANGES];
    /* Layers in which the time, the number of matmuls or of FP8 matmuls differs: those that lost
     * FP8, then those that became FP8; largest difference of the time first. */
    report_layer_change *layers;
    size_t layer_count;
    bool has_layers;         /* the baseline has layers */
    const hlo_verdict *lost; /* the first matmul that lost FP8, or NULL */
    const char *lost_layer;
} report_baseline;

/* Reads the JSON remarks in the file `path`, and compares the model with them. If the file is not a
 * complete JSON report, prints an error to `sink`, which may be NULL, and returns
 * HLO_INVALID_INPUT. The caller frees *out, also on failure. The model must outlive it. */
hlo_status report_baseline_read(const report_model *model, const char *path,
                                const hlo_diag_sink *sink, report_baseline *out);
void report_baseline_free(report_baseline *baseline);

/* Returns a total of the baseline, such as "seconds", or -1 if the baseline does not have it. */
double report_baseline_total(const report_baseline *baseline, const char *name);

#endif
