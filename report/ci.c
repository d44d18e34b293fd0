/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a report for CI systems: SARIF 2.1.0, JUnit XML, annotations of GitHub Actions, GitLab's
 * Code Quality report, and a Markdown summary. */
#define XXH_INLINE_ALL
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "hlo/version.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/writer.h"
#include "matmul/json.h"
#include "report/format.h"

/* ------------------------------------------------------------------------------------- findings */

/* A verdict that has a reason, or a lint. */
typedef struct finding {
    const hlo_verdict *verdict;
    const report_matmul *matmul; /* NULL for a lint */
    uint64_t identity;           /* hash of what remains if instructions and lines are renumbered */
    size_t ordinal;              /* index among the findings with this identity */
} finding;

static uint64_t hash_text(const char *text, uint64_t seed) {
    return text ? XXH3_64bits_withSeed(text, strlen(text), seed) : seed;
}

static uint64_t identity_of(const hlo_verdict *v) {
    uint64_t hash = hash_text(v->reason, 0);
    hash = hash_text(v->op_name, hash);
    hash = hash_text(v->source_file, hash);
    hash = hash_text(v->operation, hash);
    return hash_text(v->input_shape ? v->input_shape : v->shape, hash);
}

static int by_identity(const void *a, const void *b) {
    const finding *const *x = a, *const *y = b;
    if ((*x)->identity != (*y)->identity) return (*x)->identity < (*y)->identity ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* Lists the selected findings in text order, then the lints. The caller frees *out. */
static hlo_status list_findings(const report_writer *t, finding **out, size_t *out_count) {
    const report_model *m = t->model;
    const size_t most = m->count + m->totals.lints + 1;
    finding *all = *out = hlo_malloc(most * sizeof *all),
            **sorted = hlo_malloc(most * sizeof *sorted);
    size_t count = 0;
    for (size_t i = 0; i < m->count && all; i++) {
        const report_matmul *at = &m->matmuls[i];
        if (at->verdict->reason && writer_selects(t, at->verdict->kind))
            all[count++] = (finding){at->verdict, at, identity_of(at->verdict), 0};
    }
    for (size_t i = 0; i < m->totals.lints && all; i++)
        all[count++] = (finding){m->lints[i], NULL, identity_of(m->lints[i]), 0};
    for (size_t i = 0; i < count && sorted; i++) sorted[i] = &all[i];
    if (sorted && count) qsort(sorted, count, sizeof *sorted, by_identity);
    for (size_t i = 1; i < count && sorted; i++)
        if (sorted[i]->identity == sorted[i - 1]->identity)
            sorted[i]->ordinal = sorted[i - 1]->ordinal + 1;
    const bool done = all && sorted;
    hlo_free(sorted);
    if (done) {
        *out_count = count;
        return HLO_OK;
    }
    hlo_free(all);
    return HLO_OUT_OF_MEMORY;
}

static const char *const kind_texts[] = {[HLO_VERDICT_FP8] = "",
                                         [HLO_VERDICT_MISSED] = " (FP8, but not fully converted)",
                                         [HLO_VERDICT_WIDE] = " (wide)",
                                         [HLO_VERDICT_LINT] = ""};

/* Returns a description of a finding, which the caller frees, or NULL if memory runs out. */
static char *describe(const finding *at) {
    const hlo_verdict *v = at->verdict;
    const report_matmul *m = at->matmul;
    char name[WRITER_NAME], number[WRITER_NUMBER], *text = NULL;
    size_t size;
    FILE *out = hlo_text_stream(&text, &size);
    if (!out) return NULL;
    if (m) fprintf(out, "%s: ", m->layer);
    fprintf(out, "%s %s%s: %s%s%s. Fix: %s.", writer_name(v, name), v->shape, kind_texts[v->kind],
            v->message, v->blocker ? ", at " : "", v->blocker ? v->blocker : "", v->hint);
    if (m && m->figures.saving > 0)
        fprintf(out, " FP8 would save %s.", writer_quantity(m->figures.saving, "s", number));
    if (m && m->history && m->history->lost != SIZE_MAX)
        fprintf(out, " FP8 was lost at %s: %s.",
                m->history->pass ? m->history->pass : "a pass that was not dumped",
                m->history->how);
    if (fclose(out) == 0) return text;
    hlo_free(text);
    return NULL;
}

/* The place to show for a verdict: its source line, or if that is unknown, its place in the HLO. */
typedef struct place {
    const char *file;
    long line, column; /* 0 if unknown */
} place;

static place place_of(const hlo_verdict *v) {
    return v->source_file ? (place){v->source_file, v->source_line, 0}
                          : (place){v->file, v->line, v->column};
}

/* ---------------------------------------------------------------------------------------- SARIF */

static json_t *sarif_location(place at) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~/!$&'()*+,;=@";
    json_malloc_t take; /* an allocator that records failed allocations */
    json_free_t give;
    json_get_alloc_funcs(&take, &give);
    /* Escape each byte of the file name, in any encoding, to a URI reference (RFC 3986) without a
     * scheme. */
    json_t *uri = at.file ? NULL : json_null();
    char *text = at.file ? take(3 * strlen(at.file) + 1) : NULL, *to = text;
    for (const char *from = at.file; text && *from; from++)
        to += sprintf(to, strchr(plain, *from) ? "%c" : "%%%02X", (unsigned char)*from);
    if (text) {
        *to = '\0';
        uri = json_string(text);
        give(text);
    }
    /* GitHub requires a line. */
    json_t *region = json_pack("{s:I}", "startLine", (json_int_t)(at.line ? at.line : 1));
    if (at.column) json_object_set_new(region, "startColumn", json_integer(at.column));
    return json_pack("{s:{s:{s:o}, s:o}}", "physicalLocation", "artifactLocation", "uri", uri,
                     "region", region);
}

hlo_status writer_sarif(const report_writer *t) {
    enum { MAX_RESULTS = 25000 }; /* GitHub rejects a run with more results */
    finding *findings;
    size_t count;
    const hlo_status status = list_findings(t, &findings, &count);
    if (status != HLO_OK) return status;
    if (count > MAX_RESULTS) count = MAX_RESULTS;
    json_t *rules = json_array(), *results = json_array();
    const char *home = *HLO_HOMEPAGE ? HLO_HOMEPAGE : NULL; /* URIs are optional in SARIF */
    json_int_t indices[HLO_REASON_COUNT];
    for (int reason = 0; reason < HLO_REASON_COUNT; reason++) indices[reason] = -1;
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        const hlo_verdict *v = findings[i].verdict;
        const hlo_reason reason = hlo_reason_find(v->reason);
        char uri[256], full[1024], fingerprint[64], *text = describe(&findings[i]);
        failed |= !text;
        if (indices[reason] < 0) {
            indices[reason] = (json_int_t)json_array_size(rules);
            snprintf(uri, sizeof uri, "%s#%s", home ? home : "", v->reason);
            snprintf(full, sizeof full, "%s. Fix: %s.", hlo_reason_text(reason), v->hint);
            json_array_append_new(rules, json_pack("{s:s, s:{s:s}, s:{s:s}, s:s*, s:{s:s, s:s}}",
                                                   "id", v->reason, "shortDescription", "text",
                                                   hlo_reason_text(reason), "fullDescription",
                                                   "text", full, "helpUri", home ? uri : NULL,
                                                   "help", "text", hlo_reason_page(reason),
                                                   "markdown", hlo_reason_page(reason)));
        }
        snprintf(fingerprint, sizeof fingerprint, "%016llx:%zu",
                 (unsigned long long)findings[i].identity, findings[i].ordinal);
        json_t *result =
            json_pack("{s:s, s:I, s:s, s:{s:o}, s:[o], s:{s:s}}", "ruleId", v->reason, "ruleIndex",
                      indices[reason], "level", v->kind == HLO_VERDICT_MISSED ? "note" : "warning",
                      "message", "text", writer_string(text), "locations",
                      sarif_location(place_of(v)), "partialFingerprints", "hloFp8/v1", fingerprint);
        hlo_free(text);
        if (v->source_file && v->file) {
            json_t *related = sarif_location((place){v->file, v->line, v->column});
            json_object_set_new(
                related, "message",
                json_pack("{s:o}", "text", writer_string(v->op_name ? v->op_name : "in the HLO")));
            json_object_set_new(result, "relatedLocations", json_pack("[o]", related));
        }
        json_array_append_new(results, result);
    }
    hlo_free(findings);
    const hlo_status written =
        writer_document(json_pack("{s:s, s:s, s:[{s:{s:{s:s, s:s, s:s*, s:o}}, s:s, s:o}]}",
                                  "$schema", "https://json.schemastore.org/sarif-2.1.0.json",
                                  "version", "2.1.0", "runs", "tool", "driver", "name", "hlo-fp8",
                                  "semanticVersion", HLO_VERSION, "informationUri", home, "rules",
                                  rules, "columnKind", "unicodeCodePoints", "results", results),
                        t->out);
    return failed ? HLO_OUT_OF_MEMORY : written;
}

/* ---------------------------------------------------------------------------------------- JUnit */

static hlo_status print_case(FILE *out, const finding *at) {
    const hlo_verdict *v = at->verdict;
    const place where = place_of(v);
    /* The name does not depend on the verdict. The name of the instruction changes most often, so
     * it comes last. */
    writer_element(out, "  <testcase classname=\"", v->file, "\" name=\"");
    writer_markup(out, at->matmul ? at->matmul->layer : v->op_name ? v->op_name : "lint");
    if (v->source_file && !(at->matmul && strstr(at->matmul->layer, v->source_file))) {
        writer_element(out, " ", v->source_file, "");
        fprintf(out, ":%ld", v->source_line);
    }
    writer_element(out, " ", v->input_instruction ? v->input_instruction : v->instruction, "");
    writer_element(out, "\" file=\"", where.file, "");
    fprintf(out, v->reason ? "\" line=\"%ld\">\n" : "\" line=\"%ld\"/>\n", where.line);
    if (!v->reason) return HLO_OK;
    char *text = describe(at);
    writer_element(out, "    <failure type=\"", v->reason, "\" message=\"");
    writer_element(out, "", v->message, "\">");
    writer_element(out, "", text, "</failure>\n  </testcase>\n");
    hlo_free(text);
    return text ? HLO_OK : HLO_OUT_OF_MEMORY;
}

hlo_status writer_junit(const report_writer *t) {
    const report_model *m = t->model;
    size_t cases = m->totals.lints, failures = m->totals.lints;
    for (size_t i = 0; i < m->count; i++)
        if (writer_selects(t, m->matmuls[i].verdict->kind)) {
            cases++;
            failures += m->matmuls[i].verdict->reason != NULL;
        }
    fprintf(t->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<testsuites>\n <testsuite name=\"hlo-fp8\" tests=\"%zu\" failures=\"%zu\">\n",
            cases, failures);
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < m->count && status == HLO_OK; i++)
        if (writer_selects(t, m->matmuls[i].verdict->kind))
            status = print_case(t->out, &(finding){m->matmuls[i].verdict, &m->matmuls[i], 0, 0});
    for (size_t i = 0; i < m->totals.lints && status == HLO_OK; i++)
        status = print_case(t->out, &(finding){m->lints[i], NULL, 0, 0});
    fputs(" </testsuite>\n</testsuites>\n", t->out);
    return status;
}

/* -------------------------------------------------------------------------- GitLab Code Quality */

hlo_status writer_gitlab(const report_writer *t) {
    finding *findings;
    size_t count;
    const hlo_status status = list_findings(t, &findings, &count);
    if (status != HLO_OK) return status;
    json_t *issues = json_array();
    bool failed = false;
    for (size_t i = 0; i < count; i++) {
        const hlo_verdict *v = findings[i].verdict;
        const place where = place_of(v);
        char fingerprint[64], *text = describe(&findings[i]);
        failed |= !text;
        snprintf(fingerprint, sizeof fingerprint, "%016llx-%zu",
                 (unsigned long long)findings[i].identity, findings[i].ordinal);
        json_array_append_new(
            issues,
            json_pack("{s:o, s:s, s:s, s:s, s:{s:o, s:{s:I}}}", "description", writer_string(text),
                      "check_name", v->reason, "fingerprint", fingerprint, "severity",
                      v->kind == HLO_VERDICT_MISSED ? "info"
                      : v->kind == HLO_VERDICT_WIDE ? "minor"
                                                    : "major",
                      "location", "path", writer_string(where.file ? where.file : ""), "lines",
                      "begin", (json_int_t)(where.line ? where.line : 1)));
        hlo_free(text);
    }
    hlo_free(findings);
    const hlo_status written = writer_document(issues, t->out);
    return failed ? HLO_OUT_OF_MEMORY : written;
}

/* -------------------------------------------------------------------------- GitHub and Markdown */

/* Prints text with an escape for each character of `special`: `escape` followed by the character
 * or, if `coded`, by its code in hexadecimal. Control characters are replaced. */
static void put_escaped(FILE *out, const char *text, const char *special, char escape, bool coded) {
    uint32_t code;
    for (size_t size = text ? strlen(text) : 0, used; size; size -= used, text += used) {
        used = hlo_utf8_decode(text, size, &code);
        if (!used) used = 1;
        if (!strchr(special, *text)) {
            hlo_print_plain(out, "%.*s", (int)used, text);
        } else {
            fputc(escape, out);
            fprintf(out, coded ? "%02X" : "%c", (unsigned char)*text);
        }
    }
}

/* Escapes of workflow commands (https://docs.github.com, "Workflow commands for GitHub Actions").
 */
static void put_property(FILE *out, const char *text) {
    put_escaped(out, text, "%\r\n:,", '%', true);
}

static void put_message(FILE *out, const char *text) {
    put_escaped(out, text, "%\r\n", '%', true);
}

static void put_command(FILE *out, const char *command, place at, const char *title) {
    fprintf(out, "::%s ", command);
    if (at.file) {
        fputs("file=", out);
        put_property(out, at.file);
        fprintf(out, ",line=%ld,", at.line ? at.line : 1);
    }
    fputs("title=", out);
    put_property(out, title);
    fputs("::", out);
}

/* Text in a cell of a table. A character that Markdown or GitHub may interpret has a backslash. */
static void put_markdown(FILE *out, const char *text) {
    put_escaped(out, text, "\\`*_{}[]<>()#!|~&$@:", '\\', false);
}

/* Prints the totals of the report in sentences. */
static void print_totals(const report_writer *t) {
    const report_model *m = t->model;
    char totals[WRITER_TOTALS], text[1024];
    fprintf(t->out, "%s.", writer_totals(m, totals));
    if (*writer_gain(m, text, sizeof text)) fprintf(t->out, " %s.", text);
    fprintf(t->out, " %s.", writer_worth(m, text, sizeof text));
    if (*writer_plan(m, text, sizeof text)) fprintf(t->out, " %s.", text);
}

/* Prints which passes of a dump folder lost FP8. */
static void put_losses(const report_writer *t) {
    enum { MAX_LOSSES = 20 };
    const report_model *m = t->model;
    for (size_t i = 0; i < m->loss_count && i < MAX_LOSSES; i++) {
        char text[1024];
        if (!i) fputs("\nFP8 was lost by:\n", t->out);
        fputs("- ", t->out);
        put_markdown(t->out, writer_loss(m, &m->losses[i], text, sizeof text));
        fputc('\n', t->out);
    }
    if (m->loss_count > MAX_LOSSES) fprintf(t->out, "- and %zu more\n", m->loss_count - MAX_LOSSES);
}

/* GitHub shows ten warnings of a step, so that the warnings are of groups, largest saving first. */
hlo_status writer_github(const report_writer *t) {
    enum { MAX_WARNINGS = 10 };
    const report_model *m = t->model;
    FILE *out = t->out;
    size_t shown = 0, found = m->totals.lints;
    for (size_t i = 0; i < m->totals.lints && shown < MAX_WARNINGS; i++, shown++) {
        const hlo_verdict *v = m->lints[i];
        put_command(out, "warning", place_of(v), v->reason);
        put_message(out, v->message);
        fputs(". Fix: ", out);
        put_message(out, v->hint);
        fputs(".\n", out);
    }
    for (size_t i = 0; i < m->group_count; i++) {
        const report_group *g = &m->groups[i];
        const report_figures *f = &g->figures;
        char number[WRITER_NUMBER];
        if (!g->cause || !writer_selects(t, g->first->kind)) continue;
        found++;
        if (shown >= MAX_WARNINGS) continue;
        shown++;
        put_command(out, "warning", place_of(g->first), g->cause);
        put_message(out, g->layer);
        fprintf(out, ": %zu matmul%s", f->count, f->count == 1 ? "" : "s");
        if (f->seconds > 0)
            fprintf(out, ", %.1f %%25 of the time",
                    writer_percent(f->seconds, m->totals.figures.seconds));
        if (f->saving > 0) fprintf(out, ", saves %s", writer_quantity(f->saving, "s", number));
        fputs(". Fix: ", out);
        put_message(out, g->hint);
        fputs(".\n", out);
    }
    put_command(out, "notice", (place){NULL, 0, 0}, "hlo-fp8");
    char *text = NULL;
    size_t size;
    FILE *totals = hlo_text_stream(&text, &size);
    if (!totals) return HLO_OUT_OF_MEMORY;
    print_totals(&(report_writer){.model = m, .options = t->options, .out = totals});
    if (found > shown) fprintf(totals, " %zu more findings are not shown.", found - shown);
    const bool done = fclose(totals) == 0 && text;
    put_message(out, text);
    fputc('\n', out);
    hlo_free(text);
    return done ? HLO_OK : HLO_OUT_OF_MEMORY;
}

/* Prints the layers that changed since the baseline. */
static void put_changes(const report_writer *t) {
    enum { MAX_CHANGES = 20 };
    const size_t changed = t->baseline ? t->baseline->layer_count : 0;
    for (size_t i = 0; i < changed && i < MAX_CHANGES; i++) {
        const report_layer_change *at = &t->baseline->layers[i];
        char change[512];
        if (!i) fputs("\n| layer | result | since the baseline |\n|---|---|---|\n", t->out);
        fputs("| ", t->out);
        put_markdown(t->out, at->layer);
        fputs(" | ", t->out);
        put_markdown(t->out, at->shape);
        fputs(" | ", t->out);
        put_markdown(t->out, writer_change(at, change, sizeof change));
        fputs(" |\n", t->out);
    }
    if (changed > MAX_CHANGES)
        fprintf(t->out, "\n%zu more changed layers are not shown.\n", changed - MAX_CHANGES);
}

hlo_status writer_markdown(const report_writer *t) {
    enum { MAX_GROUPS = 20 };
    const report_model *m = t->model;
    FILE *out = t->out;
    char number[WRITER_NUMBER], text[1024], source[WRITER_NAME];
    fputs("### FP8 matmuls\n\n", out);
    if (t->baseline) {
        put_markdown(out, writer_since(t->baseline, m, t->options.baseline, text, sizeof text));
        fputs(".\n\n", out);
    }
    print_totals(t);
    if (writer_nameless(m)) fputs("\n\n", out);
    put_markdown(out, writer_nameless(m));
    if (m->start.groups) {
        fputs("\n\nFix first: ", out);
        put_markdown(out, m->start.layer);
        put_markdown(out, writer_start(m, text, sizeof text));
        fputc('.', out);
    }
    size_t shown = 0, found = 0;
    for (size_t i = 0; i < m->group_count; i++) {
        const report_group *g = &m->groups[i];
        const report_figures *f = &g->figures;
        if (!writer_selects(t, g->first->kind)) continue;
        found++;
        if (shown == MAX_GROUPS) continue;
        if (!shown++)
            fputs("\n\n| layer | result | matmuls | time | share | bound by | saves | reason | "
                  "source |\n|---|---|--:|--:|--:|---|--:|---|---|\n",
                  out);
        fputs("| ", out);
        put_markdown(out, g->layer);
        fputs(" | ", out);
        put_markdown(out, g->named ? g->shape : "");
        fprintf(out, " | %zu %s | %s | %.1f %% | %s | ", f->count, writer_kinds[g->first->kind],
                f->seconds > 0 ? writer_quantity(f->seconds, "s", number) : "?",
                writer_percent(f->seconds, m->totals.figures.seconds),
                writer_bounds[report_bound_of(f)]);
        fputs(writer_figures_of(f, &m->totals.figures, g->cause != NULL).saves, out);
        fprintf(out, " | %s | ", g->cause ? g->cause : "");
        put_markdown(out, writer_place(g->first, source));
        fputs(" |\n", out);
    }
    if (found > shown) fprintf(out, "\n%zu more groups are not shown.\n", found - shown);
    if (shown)
        fputs("\nsaves: \"-\" nothing, \"?\" unknown; share: of the time of all matmuls.\n", out);
    put_losses(t);
    put_changes(t);
    if (*writer_assumed(m, text, sizeof text)) fprintf(out, "\n\n%s.", text);
    bool listed = false;
    for (size_t i = 0; i < m->edit_count; i++) {
        const report_edit *edit = &m->edits[i];
        if (!writer_selects_edit(t, edit)) continue;
        if (!listed) fputs("\n\n", out);
        listed = true;
        fprintf(out, "- **%s** (%zu", edit->cause, edit->figures.count + edit->lints);
        if (edit->figures.saving > 0)
            fprintf(out, ", saves %s", writer_quantity(edit->figures.saving, "s", number));
        fputs("): ", out);
        put_markdown(out, edit->text);
        fputs(". Fix: ", out);
        put_markdown(out, edit->hint);
        fputs(".\n", out);
    }
    if (!listed) fputc('\n', out);
    return HLO_OK;
}
