/* SPDX-License-Identifier: Apache-2.0 */
/* The state and the functions that the writers of all formats share. Each format is a function that
 * prints the model of model.h; format.def has the table of formats. */
#ifndef HLO_REPORT_FORMAT_H
#define HLO_REPORT_FORMAT_H

#include "report/baseline.h"

typedef struct report_writer {
    const report_model *model;
    const report_baseline *baseline; /* NULL without a baseline */
    hlo_remarks_options options;
    FILE *out;
} report_writer;

/* True if the options select matmuls with verdicts of this kind. */
bool writer_selects(const report_writer *t, hlo_verdict_kind kind);

extern const char *const writer_kinds[REPORT_KINDS];   /* names of the values of hlo_verdict_kind */
extern const char *const writer_bounds[REPORT_BOUNDS]; /* names of the values of report_bound */

/* WRITER_TOTALS is more than the names of all reasons of all kinds. */
enum { WRITER_NAME = 256, WRITER_NUMBER = 32, WRITER_TOTALS = 16384 };
/* Formats the name of a matmul in the input and, if different, the name of its FP8 call in the
 * output, as in "dot.5 -> cublas-gemm.6". For a lint, formats the name of its instruction. Returns
 * `out`. */
const char *writer_name(const hlo_verdict *v, char out[WRITER_NAME]);
/* Returns the name of the FP8 call. Returns NULL if it equals the name of the matmul in the input,
 * or if the matmul is not an FP8 call. */
const char *writer_output_name(const hlo_verdict *v);
/* Formats a quantity with three digits and a prefix of its unit, such as "34.8 ms" or "1.2 µs", and
 * a long time in hours, days or years. Returns `out`. */
const char *writer_quantity(double value, const char *unit, char out[WRITER_NUMBER]);

/* True if the options select the matmuls, or the lints, of an edit. */
bool writer_selects_edit(const report_writer *t, const report_edit *edit);

double writer_percent(double part, double whole);

/* The figures of a matmul or a group as text. */
typedef struct writer_figures {
    char saves[WRITER_NUMBER];     /* "-" if an edit saves nothing, "?" if that is unknown */
    char time[WRITER_NUMBER];      /* "?" if unknown; then `share` and `speed` are "" */
    char share[WRITER_NUMBER];     /* of the time of `all` */
    char speed[2 * WRITER_NUMBER]; /* with the fraction of the peak */
} writer_figures;

/* Formats figures; `edited` is true if there is an edit. */
writer_figures writer_figures_of(const report_figures *figures, const report_figures *all,
                                 bool edited);
/* Formats a sentence on whether FP8 is worth it: whether the predicted speedup of all matmuls over
 * wide types, or the saving of all edits, is 5 % or more, and how many matmuls are launch bound.
 * Returns `out`. */
const char *writer_worth(const report_model *model, char *out, size_t size);
/* Formats what the time with all edits includes, or "" if it includes all edits and they all make
 * wide matmuls FP8. Returns `out`. */
const char *writer_plan(const report_model *model, char *out, size_t size);
/* Formats the source line of a matmul or, without one, the file name and line of its HLO, or "".
 * Returns `out`. */
const char *writer_place(const hlo_verdict *v, char out[WRITER_NAME]);
/* Returns a sentence on how to get op_names and source lines, or NULL if the input has them. */
const char *writer_nameless(const report_model *model);
/* Formats a percentage without decimals; "<1 %" if it is small, but not 0. Returns `out`. */
const char *writer_share(double part, double whole, char out[WRITER_NUMBER]);
/* Formats the numbers of matmuls by verdict and reason. Returns `text`. */
const char *writer_totals(const report_model *model, char text[WRITER_TOTALS]);
/* Formats the times of all matmuls, or "" if they are unknown. Returns `out`. */
const char *writer_gain(const report_model *model, char *out, size_t size);
/* Formats a pass that lost FP8, and in how many matmuls. Returns `out`. */
const char *writer_loss(const report_model *model, const report_loss *loss, char *out, size_t size);
/* Formats the place and the edits of the layer to fix first, without the name of the layer, or ""
 * if no edit saves time. Returns `out`. */
const char *writer_start(const report_model *model, char *out, size_t size);
/* Formats a sentence on how many matmuls have an assumed number of executions, or "" if there are
 * none. Returns `out`. */
const char *writer_assumed(const report_model *model, char *out, size_t size);
/* Formats the comparison with the baseline at `path`: the time, the numbers of changed matmuls, and
 * where FP8 was lost first. Returns `out`. */
const char *writer_since(const report_baseline *baseline, const report_model *model,
                         const char *path, char *out, size_t size);
/* Formats a change, such as "30 of 32 -> 2 of 32 in FP8, 1.2 ms -> 1.9 ms (+58 %); first lost:
 * layers_3/up". If the number of FP8 matmuls did not change, formats what else changed. Returns
 * `out`. */
const char *writer_change(const report_layer_change *change, char *out, size_t size);

/* Creates a JSON string, or null if `text` is NULL. Text that is not UTF-8 (HLO text may contain
 * any bytes) is read as Latin-1. */
struct json_t *writer_string(const char *text);
/* Prints text escaped for XML and HTML, inside or outside of quotes. Prints nothing if `text` is
 * NULL. Control characters become spaces. A byte that is not part of valid UTF-8 is read as
 * Latin-1. */
void writer_markup(FILE *out, const char *text);
void writer_element(FILE *out, const char *open, const char *text, const char *close);
/* Prints a name for HTML that may be broken after `/` and `_`, between `open` and `close`. */
void writer_name_markup(FILE *out, const char *open, const char *name, const char *close);
void writer_markup_part(FILE *out, const char *text, size_t size);
/* Writes the document and frees it. Returns HLO_OUT_OF_MEMORY if an allocation has failed since
 * hlo_json_watch(), and HLO_INVALID_INPUT if `out` cannot be written to. */
hlo_status writer_document(struct json_t *document, FILE *out);

/* Prints a line about a module of a dump folder. `matmuls` is its number of matmuls. */
void writer_module(const hlo_dump *dump, size_t module, size_t matmuls, FILE *out);
/* Writes a report in one format. Returns HLO_OUT_OF_MEMORY if memory runs out. The caller detects
 * write errors by ferror(out). */
typedef hlo_status writer_format(const report_writer *t);
#define HLO_REMARKS_FORMAT(id, name) writer_format writer_##name;
#include "report/format.def"
#undef HLO_REMARKS_FORMAT

/* Reads `options`, which may be NULL. Returns HLO_INVALID_USAGE if they are invalid. */
hlo_status writer_take_options(const hlo_remarks_options *options, hlo_remarks_options *out);
/* Prints the model in the format that the options select. Returns HLO_INVALID_INPUT if `out` cannot
 * be written to, or if the baseline cannot be read. */
hlo_status writer_print(const report_model *model, const hlo_remarks_options *options, FILE *out);

#endif
