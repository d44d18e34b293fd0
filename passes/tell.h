/* The inside of telling verdicts: what all formats share. A format is a function in a file of its
 * own; tell.c has the table of them. */
#ifndef HLO_PASSES_TELL_H
#define HLO_PASSES_TELL_H

#include "passes/report.h"

enum { TELL_KINDS = HLO_VERDICT_LINT + 1 };

/* How many verdicts there are of each kind and reason, and what they add up to. */
typedef struct tell_summary {
    size_t total; /* of matmuls */
    size_t kinds[TELL_KINDS], reasons[TELL_KINDS][HLO_WHY_COUNT];
    size_t slower; /* FP8, and slower so by roofline */
    double flops, fp8_flops;
    double input_seconds, seconds; /* of the verdicts of which both are known */
} tell_summary;

typedef struct telling {
    const hlo_report *const *reports;
    size_t count;
    hlo_remarks which;
    bool coloured;
    FILE *out;
    tell_summary sum; /* of all verdicts, whichever are told */
} telling;

extern const char *const tell_kinds[TELL_KINDS]; /* names of hlo_verdict_kind */

tell_summary tell_sum_up(const hlo_report *const *reports, size_t count);
/* Whether it is FP8 and takes longer than it took wide, by roofline. */
bool tell_is_slower(const hlo_verdict *v);
/* FP8, with or without something missed. */
size_t tell_fp8_count(const tell_summary *sum);
/* The next verdict that is told after (*report, *index), which start at 0, 0; NULL: no more. */
const hlo_verdict *tell_next(const telling *t, size_t *report, size_t *index);
/* The same for lints. */
const hlo_verdict *tell_next_lint(const telling *t, size_t *report, size_t *index);

/* The reasons that are set, as sentences with their hints. */
void tell_reasons(FILE *out, const bool has_reason[HLO_WHY_COUNT], bool coloured);

/* A JSON string, null for NULL. One that is no UTF-8 (HLO text may hold any bytes) is told byte by
 * byte, as Latin-1. */
struct json_t *tell_string(const char *text);
/* Text as XML and HTML have it, within quotes or without; nothing for NULL. There is no place in it
 * for control characters: spaces. A byte that is no part of UTF-8 is told as Latin-1. */
void tell_markup(FILE *out, const char *text);
void tell_markup_part(FILE *out, const char *text, size_t size);
/* Writes the document and frees it. HLO_OUT_OF_MEMORY: there was none for all of it, since
 * hlo_json_watch(). HLO_INVALID_INPUT: writing
 * fails. */
hlo_status tell_document(struct json_t *document, FILE *out);

/* HLO_OUT_OF_MEMORY; what fails in writing shows in `out`. */
typedef hlo_status tell_format(const telling *t);
tell_format tell_text, tell_costs, tell_json, tell_sarif, tell_junit;

#endif
