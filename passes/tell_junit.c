/* Verdicts as JUnit XML. */
#include "passes/tell.h"

/* XML 1.0 has no place for control characters; bytes that are not ASCII are told as Latin-1. */
static void xml(FILE *out, const char *text) {
    for (; text && *text; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '&' || c == '<' || c == '>' || c == '"' || c >= 0x7f)
            fprintf(out, "&#%d;", c);
        else
            fputc(c < 0x20 ? ' ' : c, out);
    }
}

static void tell_case(FILE *out, const hlo_verdict *v) {
    fputs("  <testcase classname=\"", out);
    xml(out, v->file);
    fputs("\" name=\"", out);
    xml(out, v->op_name ? v->op_name : v->instr);
    fprintf(out, "\" line=\"%u\"", v->line);
    if (!v->reason) {
        fputs("/>\n", out);
        return;
    }
    fputs(">\n    <failure type=\"", out);
    xml(out, v->reason);
    fputs("\" message=\"", out);
    xml(out, v->message);
    fputs("\">", out);
    xml(out, v->instr);
    fputc(' ', out);
    xml(out, v->shape);
    if (v->source_file) {
        fputs(", from ", out);
        xml(out, v->source_file);
        fprintf(out, ":%ld", v->source_line);
    }
    fputs("</failure>\n  </testcase>\n", out);
}

hlo_status tell_junit(const telling *t) {
    size_t told = 0, failures = 0, report = 0, index = 0;
    for (const hlo_verdict *v; (v = tell_next(t, &report, &index)); told++)
        failures += v->reason != NULL;
    told += t->sum.kinds[HLO_VERDICT_LINT];
    failures += t->sum.kinds[HLO_VERDICT_LINT];
    fprintf(t->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n <testsuite name=\"hlo-fp8\" tests=\"%zu\" failures=\"%zu\">\n",
            told, failures);
    report = index = 0;
    for (const hlo_verdict *v; (v = tell_next(t, &report, &index));) tell_case(t->out, v);
    report = index = 0;
    for (const hlo_verdict *v; (v = tell_next_lint(t, &report, &index));) tell_case(t->out, v);
    fputs(" </testsuite>\n</testsuites>\n", t->out);
    return HLO_OK;
}
