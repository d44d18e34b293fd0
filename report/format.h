/* SPDX-License-Identifier: Apache-2.0 */
/* The state and the functions that the writers of all formats share. Each format is a function in
 * its own file; format.def has the table of formats. */
#ifndef HLO_REPORT_FORMAT_H
#define HLO_REPORT_FORMAT_H

#include "passes/verdict/report.h"

enum { WRITER_KINDS = HLO_VERDICT_LINT + 1 };

/* Totals of all verdicts: counts by kind and by reason, FLOPs, and time. */
typedef struct writer_summary {
    size_t total; /* number of matmuls */
    size_t kinds[WRITER_KINDS], reasons[WRITER_KINDS][HLO_REASON_COUNT];
    size_t quantized; /* number of FP8 matmuls that hlo_pass_options.quantize quantized */
    size_t slower; /* number of FP8 matmuls that are slower than before in wide types, according to
                    * the roofline model */
    double flops, fp8_flops;
    double input_seconds, seconds; /* sums of the times before and after, over the verdicts that
                                    * have both times */
} writer_summary;

typedef struct report_writer {
    const hlo_report *const *reports;
    size_t count;
    hlo_remarks which;
    bool colored;
    FILE *out;
    writer_summary sum; /* totals of all verdicts, including those that `which` excludes */
} report_writer;

extern const char *const writer_kinds[WRITER_KINDS]; /* names of the values of hlo_verdict_kind */

enum { WRITER_NAME = 256 };
/* Formats the name of a matmul in the input and, if different, the name of its FP8 call in the
 * output, as in "dot.5 -> cublas-gemm.6". For a lint, formats the name of its instruction. Returns
 * `out`. */
const char *writer_name(const hlo_verdict *v, char out[WRITER_NAME]);
/* Returns the name of the FP8 call. Returns NULL if it equals the name of the matmul in the input,
 * or if the matmul is not an FP8 call. */
const char *writer_output_name(const hlo_verdict *v);
writer_summary writer_sum_up(const hlo_report *const *reports, size_t count);
/* True if the matmul is FP8 and, according to the roofline model, slower than before in wide
 * types. */
bool writer_is_slower(const hlo_verdict *v);
/* Returns the number of FP8 matmuls, including verdicts of kind MISSED and matmuls that --quantize
 * quantized. */
size_t writer_fp8_count(const writer_summary *sum);
/* The position in a traversal of all verdicts and then all lints. All zeros at the start. */
typedef struct writer_cursor {
    size_t report, index;
    bool lints;
} writer_cursor;

/* Returns the next verdict that `which` selects or, after the last one, the next lint. Returns NULL
 * at the end. */
const hlo_verdict *writer_next(const report_writer *t, writer_cursor *at);
typedef struct writer_ranked {
    const hlo_verdict *verdict;
    size_t place;
} writer_ranked;

/* Compares two ranked verdicts for qsort(): longest time first. */
int writer_by_time(const void *a, const void *b);

/* Prints the sentence and the hint of each reason that is set. */
void writer_reasons(FILE *out, const bool has_reason[HLO_REASON_COUNT], bool colored);

/* Creates a JSON string, or null if `text` is NULL. Text that is not UTF-8 (HLO text may contain
 * any bytes) is read as Latin-1. */
struct json_t *writer_string(const char *text);
/* Prints text escaped for XML and HTML, inside or outside of quotes. Prints nothing if `text` is
 * NULL. Control characters become spaces. A byte that is not part of valid UTF-8 is read as
 * Latin-1. */
void writer_markup(FILE *out, const char *text);
void writer_element(FILE *out, const char *open, const char *text, const char *close);
void writer_markup_part(FILE *out, const char *text, size_t size);
/* Writes the document and frees it. Returns HLO_OUT_OF_MEMORY if an allocation has failed since
 * hlo_json_watch(), and HLO_INVALID_INPUT if `out` cannot be written to. */
hlo_status writer_document(struct json_t *document, FILE *out);

/* The texts of style.css and script.js, which cmake/embed.cmake embeds. */
enum { REPORT_STYLE, REPORT_SCRIPT };
extern const char *const report_assets[];

/* Writes a report in one format. Returns HLO_OUT_OF_MEMORY if memory runs out. The caller detects
 * write errors by ferror(out). */
typedef hlo_status writer_format(const report_writer *t);
#define HLO_REMARKS_FORMAT(id, name) writer_format writer_##name;
#include "report/format.def"
#undef HLO_REMARKS_FORMAT

#endif
