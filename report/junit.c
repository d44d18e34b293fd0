/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts as JUnit XML. */
#include "report/format.h"

static void writer_case(FILE *out, const hlo_verdict *v) {
    char name[WRITER_NAME];
    fputs("  <testcase classname=\"", out);
    writer_markup(out, v->file);
    fputs("\" name=\"", out);
    writer_markup(out, v->op_name ? v->op_name : v->input_instr ? v->input_instr : v->instr);
    fprintf(out, "\" line=\"%u\"", v->line);
    if (!v->reason) {
        fputs("/>\n", out);
        return;
    }
    fputs(">\n    <failure type=\"", out);
    writer_markup(out, v->reason);
    fputs("\" message=\"", out);
    writer_markup(out, v->message);
    fputs("\">", out);
    writer_markup(out, writer_name(v, name));
    fputc(' ', out);
    writer_markup(out, v->shape);
    if (v->source_file) {
        fputs(", from ", out);
        writer_markup(out, v->source_file);
        fprintf(out, ":%ld", v->source_line);
    }
    fputs("</failure>\n  </testcase>\n", out);
}

hlo_status writer_junit(const report_writer *t) {
    size_t told = t->sum.kinds[HLO_VERDICT_LINT], failures = told;
    writer_cursor counted = {0}, at = {0}, lint_at = {0};
    for (const hlo_verdict *v; (v = writer_next(t, &counted)); told++)
        failures += v->reason != NULL;
    fprintf(t->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n <testsuite name=\"hlo-fp8\" tests=\"%zu\" failures=\"%zu\">\n",
            told, failures);
    for (const hlo_verdict *v; (v = writer_next(t, &at));) writer_case(t->out, v);
    for (const hlo_verdict *v; (v = writer_next_lint(t, &lint_at));) writer_case(t->out, v);
    fputs(" </testsuite>\n</testsuites>\n", t->out);
    return HLO_OK;
}
