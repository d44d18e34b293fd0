/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a report: all matmuls with their figures, in groups by layer. Every format prints
 * this model and computes no figures of its own. docs/cost.md defines the figures. */
#ifndef HLO_REPORT_MODEL_H
#define HLO_REPORT_MODEL_H

#include "hlo/dump.h"
#include "passes/verdict/report.h"

/* Times differ visibly by this factor, because reports print two digits of speedups. */
#define REPORT_VISIBLE 1.005

enum { REPORT_KINDS = HLO_VERDICT_LINT + 1 };

/* The limits on the time of a matmul. */
typedef enum report_bound {
    REPORT_UNKNOWN, /* the time is unknown */
    REPORT_COMPUTE, /* the FLOPs at the peak take longer than the bytes at the memory bandwidth */
    REPORT_MEMORY,  /* the bytes take longer */
    REPORT_LAUNCH,  /* the time is less than that of a kernel launch */
    REPORT_BOUNDS
} report_bound;

/* The figures of one matmul, or their sums over several matmuls. All sums include every execution
 * in one run of the module. */
typedef struct report_figures {
    size_t count; /* number of matmuls */
    size_t kinds[HLO_VERDICT_LINT];
    double flops, fp8_flops; /* FLOPs of all matmuls, and of the FP8 matmuls */
    double input_bytes, bytes;
    /* The following figures omit matmuls for which the time before or after rewriting is
     * unknown. */
    double wide_seconds, input_seconds, seconds;
    double compute_seconds;              /* part of `seconds`: the FLOPs at the peak */
    double timed_flops;                  /* FLOPs of the matmuls with a time */
    double bound_seconds[REPORT_BOUNDS]; /* `seconds` by what limits the matmul */
    size_t bounds[REPORT_BOUNDS];        /* number of matmuls by what limits them */
    double saving;    /* seconds that edits could still save: wide matmuls become FP8, and matmuls
                       * that FP8 makes slower become wide */
    size_t estimated; /* number of matmuls for which `saving` is known */
    size_t assumed;   /* number of matmuls whose number of executions is assumed */
} report_figures;

/* Returns what limits most of the time. */
report_bound report_bound_of(const report_figures *figures);
/* FLOPs per second; 0 if the time is unknown. */
double report_rate(const report_figures *figures);
/* The fraction of the peak, from 0 to 1; 0 if the time is unknown. */
double report_peak_fraction(const report_figures *figures);

typedef struct report_group report_group;

typedef struct report_matmul {
    const hlo_verdict *verdict;
    const hlo_report *report;
    size_t index;                      /* index of the verdict in the report */
    const hlo_matmul_history *history; /* of a dump folder; otherwise NULL */
    const char *cause; /* the reason, or "slower" if FP8 is slower than the wide matmul, or
                        * NULL */
    const char *layer; /* such as "layers_12/mlp/up (backward)" */
    bool named;        /* `layer` is from the op_name */
    report_group *group;
    double fp8_seconds; /* time of one execution if the wide matmul becomes FP8; 0 if unknown */
    report_figures figures;
} report_matmul;

/* The matmuls of one layer that have the same `shape`, the same kind and the same cause. */
struct report_group {
    const char *layer; /* the layer of its matmuls; indices in which they differ are `*` */
    const char *cause; /* as in report_matmul */
    const char *shape; /* shape of the result, and length of the contracting dimension if known,
                        * such as "bf16[16384,8192] k=28672" */
    bool named;        /* `layer` is a name or a source line, so that it does not contain `shape` */
    const char *hint;  /* the edit; NULL if `cause` is NULL */
    const hlo_verdict *first; /* the matmul with the longest time, for its source line */
    bool one_source;          /* all matmuls have the source line or HLO line of `first` */
    report_figures figures;
};

/* All matmuls with the same cause, and lints with the same reason. */
typedef struct report_edit {
    const char *cause, *text, *hint;
    const char *page; /* the description of the reason; NULL for "slower" */
    size_t lints;     /* number of lints */
    report_figures figures;
} report_edit;

/* The layer, in all directions, whose edits save most: the first groups. */
typedef struct report_start {
    const char *layer;
    size_t groups; /* 0 if no edit saves time */
    size_t count;  /* number of matmuls */
    double saving;
} report_start;

/* Matmuls of one layer of a module of a dump folder that have the same shape, and the same verdicts
 * at all stages. */
typedef struct report_timeline {
    size_t module; /* index in the dump */
    const char *layer, *shape;
    size_t first; /* index of the first matmul in the history of the module */
    size_t count;
    double flops; /* of all executions, at the first stage of each matmul */
} report_timeline;

/* Matmuls of a module of a dump folder that lost FP8 at the same stage in the same way. */
typedef struct report_loss {
    size_t module; /* index in the dump */
    const hlo_matmul_history *first;
    size_t count;
    double flops; /* as in report_timeline */
} report_loss;

/* Counts of verdicts, and the sums of all figures. */
typedef struct report_totals {
    report_figures figures;
    size_t lints, quantized; /* `quantized`: FP8 matmuls that hlo_pass_options.quantize quantized */
    size_t slower;           /* FP8 matmuls that are slower than before, by the roofline model */
    size_t reasons[REPORT_KINDS][HLO_REASON_COUNT];
} report_totals;

/* Numbers of matmuls that the time with all edits includes, and that it does not include. */
typedef struct report_plan {
    size_t to_fp8, to_wide; /* edits that save time */
    size_t unknown;         /* the saving of the edit is unknown */
    double unknown_seconds; /* time of these matmuls */
    size_t slower;          /* slower than in stock XLA, but not slower than on wide types */
} report_plan;

report_totals report_sum_up(const hlo_report *const *reports, size_t count);
/* The number of FP8 matmuls, including verdicts of kind MISSED and matmuls that --quantize
 * quantized. */
size_t report_fp8_count(const report_totals *totals);
/* True if the matmul is FP8 and, by the roofline model, slower than the original in stock XLA. */
bool report_is_slower(const hlo_verdict *v);

typedef struct report_model {
    hlo_arena *arena;         /* owns all of the model; verdicts are borrowed from the reports */
    const hlo_target *target; /* of the first report; NULL without reports */
    int cuda;
    report_matmul *matmuls; /* in text order */
    size_t count;
    const hlo_verdict **lints;
    /* By what the edits of the layer save in all directions, then by `saving`, then by `seconds`,
     * largest first. Groups without a saving are last. */
    report_group *groups;
    size_t group_count;
    report_edit *edits; /* by `saving`, largest first; lints last */
    size_t edit_count;
    report_start start;
    bool has_names; /* a matmul has an op_name or a source line */
    report_totals totals;
    /* The following members are 0 without a dump folder. */
    const hlo_dump *dump;
    const hlo_history *const *histories; /* of each module of the dump */
    size_t gone;         /* number of matmuls that the last stage does not contain */
    report_loss *losses; /* by FLOPs, largest first, and so are `timelines` */
    size_t loss_count;
    report_timeline *timelines;
    size_t timeline_count;
} report_model;

/* Creates the model of `count` reports. The caller frees *out_model with report_model_free(). */
hlo_status report_model_new(const hlo_report *const *reports, size_t count,
                            report_model **out_model);
/* Creates the model of the last stages of a dump folder, which has a history for each module. The
 * model borrows `dump` and `histories`. */
hlo_status report_model_of_dump(const hlo_dump *dump, const hlo_history *const *histories,
                                report_model **out_model);
void report_model_free(report_model *model);
report_plan report_plan_of(const report_model *model);
/* Returns the number of matmuls that lost FP8 between stages. */
size_t report_lost_count(const report_model *model);

/* --------------------------------------------------------------------------------------- layers */

/* Strings are allocated in `arena`, or are those of the verdict. */

/* Returns the layer of a matmul: its op_name without functions, transformations, control flow and
 * the primitive, and with the direction. Without such a name, its source line, and otherwise its
 * operation and shape. `out_named` is true if the layer is from the op_name. */
const char *report_layer_of(hlo_arena *arena, const hlo_verdict *v, bool *out_named);

/* Returns the length of a layer without its direction, such as " (backward)". */
size_t report_layer_length(const char *layer);

/* Returns the shape of the result, followed by the length of the contracting dimension if it is
 * known. */
const char *report_shape_of(hlo_arena *arena, const hlo_verdict *v);

/* Returns the name with `*` instead of each index. */
char *report_fold(hlo_arena *arena, const char *name);
/* Replaces the indices of `name` in which it differs from `other` by `*`. Both are equal if
 * folded. */
void report_fold_differences(char *name, const char *other);

#endif
