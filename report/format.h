/* The inside of telling verdicts: what all formats share. A format is a function in a file of its
 * own; format.c has the table of them. */
#ifndef HLO_PASSES_TELL_H
#define HLO_PASSES_TELL_H

#include "passes/verdict/report.h"

enum { TELL_KINDS = HLO_VERDICT_LINT + 1 };

/* How many verdicts there are of each kind and reason, and what they add up to. */
typedef struct writer_summary {
    size_t total; /* of matmuls */
    size_t kinds[TELL_KINDS], reasons[TELL_KINDS][HLO_REASON_COUNT];
    size_t slower; /* FP8, and slower so by roofline */
    double flops, fp8_flops;
    double input_seconds, seconds; /* of the verdicts of which both are known */
} writer_summary;

typedef struct report_writer {
    const hlo_report *const *reports;
    size_t count;
    hlo_remarks which;
    bool coloured;
    FILE *out;
    writer_summary sum; /* of all verdicts, whichever are told */
} report_writer;

extern const char *const writer_kinds[TELL_KINDS]; /* names of hlo_verdict_kind */

writer_summary writer_sum_up(const hlo_report *const *reports, size_t count);
/* Whether it is FP8 and takes longer than it took wide, by roofline. */
bool writer_is_slower(const hlo_verdict *v);
/* FP8, with or without something missed. */
size_t writer_fp8_count(const writer_summary *sum);
/* The next verdict that is told after (*report, *index), which start at 0, 0; NULL: no more. */
const hlo_verdict *writer_next(const report_writer *t, size_t *report, size_t *index);
/* The same for lints. */
const hlo_verdict *writer_next_lint(const report_writer *t, size_t *report, size_t *index);

/* The reasons that are set, as sentences with their hints. */
void writer_reasons(FILE *out, const bool has_reason[HLO_REASON_COUNT], bool coloured);

/* A JSON string, null for NULL. One that is no UTF-8 (HLO text may hold any bytes) is told byte by
 * byte, as Latin-1. */
struct json_t *writer_string(const char *text);
/* Text as XML and HTML have it, within quotes or without; nothing for NULL. There is no place in it
 * for control characters: spaces. A byte that is no part of UTF-8 is told as Latin-1. */
void writer_markup(FILE *out, const char *text);
void writer_markup_part(FILE *out, const char *text, size_t size);
/* Writes the document and frees it. HLO_OUT_OF_MEMORY: there was none for all of it, since
 * hlo_json_watch(). HLO_INVALID_INPUT: writing
 * fails. */
hlo_status writer_document(struct json_t *document, FILE *out);

/* The texts of style.css and script.js; cmake/embed.cmake makes them. */
enum { REPORT_STYLE, REPORT_SCRIPT };
extern const char *const report_assets[];

/* HLO_OUT_OF_MEMORY; what fails in writing shows in `out`. */
typedef hlo_status writer_format(const report_writer *t);
writer_format writer_text, writer_costs, writer_json, writer_sarif, writer_junit;

#endif
