/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the model as one self-contained HTML page. The script of the page makes the rows of the
 * table from the data of data.c; it formats and computes nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "report/html/html.h"

/* Maximum numbers of different drawings, of matmuls with surroundings, of groups that are shown
 * without scripts, and of layers that changed since the baseline. */
enum { MAX_DRAWN = 100, MAX_LISTED = 200, MAX_GROUPS = 200, MAX_CHANGES = 20 };

/* Prints a reason's page: paragraphs with `code` spans, and code blocks between lines of ```. */
static void page_of_reason(FILE *out, const char *page) {
    bool block = false, paragraph = false;
    for (const char *at = page; *at;) {
        size_t length = strcspn(at, "\n");
        if (strncmp(at, "```", 3) == 0) {
            if (paragraph) fputs("</p>\n", out);
            paragraph = false;
            fputs((block = !block) ? "<pre>" : "</pre>\n", out);
        } else if (block) {
            writer_markup_part(out, at, length);
            fputc('\n', out);
        } else if (length) {
            if (!paragraph) fputs("<p>", out);
            paragraph = true;
            const char *line = at;
            bool code = false;
            for (const char *end = line + length; line < end;) {
                size_t size = strcspn(line, "`\n");
                writer_markup_part(out, line, size);
                line += size;
                if (line < end && *line++ == '`') fputs((code = !code) ? "<code>" : "</code>", out);
            }
            fputs(code ? "</code>\n" : "\n", out);
        } else if (paragraph) {
            fputs("</p>\n", out);
            paragraph = false;
        }
        at += length + (at[length] == '\n');
    }
    if (paragraph) fputs("</p>\n", out);
}

/* Prints the beginning of the page, up to the target and the command. */
static void print_head(const html_page *page) {
    FILE *out = page->out;
    const report_model *m = page->model;
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
            "style-src 'sha256-%s';script-src 'sha256-%s';base-uri 'none';form-action 'none'\">\n"
            "<title>hlo-fp8: %zu of %zu matmuls in FP8</title>\n<style>%s</style></head>\n<body>\n"
            "<h1>Which matmuls run in FP8</h1>\n",
            report_assets_sha256[REPORT_STYLE], report_assets_sha256[REPORT_SCRIPT],
            report_fp8_count(&m->totals), m->count, report_assets[REPORT_STYLE]);
    fputs("<p class=\"dim\">", out);
    if (m->target)
        fprintf(out, "Target: sm_%d (%s), CUDA %d.%d", m->target->sm, m->target->gpu,
                m->cuda / 1000, m->cuda % 1000 / 10);
    if (page->options->date) writer_element(out, m->target ? ", " : "", page->options->date, "");
    if (page->options->command)
        writer_element(out, "<br><code>", page->options->command, "</code>");
    fputs("</p>\n", out);
}

/* Prints a bar of the time, with parts by verdict. */
static void print_bar(FILE *out, const char *name, double seconds, double whole, const char *more,
                      const double *parts) {
    char number[WRITER_NUMBER];
    fprintf(out,
            "<tr><th scope=\"row\">%s</th><td><svg class=\"bar\" viewBox=\"0 0 100 1\" "
            "preserveAspectRatio=\"none\" aria-hidden=\"true\">",
            name);
    double at = 0;
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++) {
        const double width = writer_percent(parts ? parts[kind] : kind ? 0 : seconds, whole);
        if (width > 0)
            fprintf(out, "<rect class=\"%s\" x=\"%.2f\" width=\"%.2f\" height=\"1\"/>",
                    parts ? writer_kinds[kind] : "dim", at, width);
        at += width;
    }
    fprintf(out, "</svg></td><td>%s%s</td></tr>\n", writer_quantity(seconds, "s", number), more);
}

/* Prints the time of all matmuls before the rewrite, now, and after all edits. */
static void print_times(const html_page *page) {
    const report_model *m = page->model;
    const report_figures *f = &m->totals.figures;
    double parts[HLO_VERDICT_LINT] = {0};
    char more[128] = "", number[WRITER_NUMBER];
    if (!(f->seconds > 0)) return;
    const double least = f->seconds - f->saving,
                 whole = fmax(fmax(f->wide_seconds, f->input_seconds), f->seconds);
    for (size_t i = 0; i < m->group_count; i++)
        parts[m->groups[i].first->kind] += m->groups[i].figures.seconds;
    fputs("<table class=\"times\"><caption>Time of all matmuls, by the roofline model, not "
          "measured</caption>\n",
          page->out);
    print_bar(page->out, "wide types", f->wide_seconds, whole, "", NULL);
    snprintf(more, sizeof more, " (%.2fx)", f->wide_seconds / f->input_seconds);
    print_bar(page->out, "stock XLA", f->input_seconds, whole, more, NULL);
    snprintf(more, sizeof more, " (%.2fx)", f->wide_seconds / f->seconds);
    print_bar(page->out, "now", f->seconds, whole, more, parts);
    snprintf(more, sizeof more, " (%.2fx)", f->wide_seconds / least);
    print_bar(page->out, "with all edits", least, whole, more, NULL);
    fputs("</table>\n<p class=\"legend\">Now: ", page->out);
    for (int kind = 0, shown = 0; kind < HLO_VERDICT_LINT; kind++) {
        if (!(parts[kind] > 0)) continue;
        fprintf(page->out, "%s<b class=\"%s\">%s</b> %s (%.0f %%)", shown++ ? ", " : "",
                writer_kinds[kind], writer_kinds[kind], writer_quantity(parts[kind], "s", number),
                writer_percent(parts[kind], f->seconds));
    }
    char plan[256];
    fputs("</p>\n", page->out);
    if (*writer_plan(m, plan, sizeof plan)) fprintf(page->out, "<p class=\"dim\">%s.</p>\n", plan);
}

/* Prints the layer whose edits save most. */
static void print_start(const html_page *page) {
    const report_start *start = &page->model->start;
    FILE *out = page->out;
    char text[1024];
    if (writer_nameless(page->model))
        writer_element(out, "<p>", writer_nameless(page->model), ".</p>\n");
    if (!start->groups) return;
    fprintf(out, "<p>Fix first: <a href=\"#rows=%zu&amp;open=g0\"><code>", start->groups);
    writer_element(out, "", start->layer, "</code></a>");
    writer_element(out, "", writer_start(page->model, text, sizeof text), ".</p>\n");
}

static void print_summary(const html_page *page) {
    const report_totals *totals = &page->model->totals;
    const report_figures *f = &totals->figures;
    FILE *out = page->out;
    char why[512], share[WRITER_NUMBER];
    if (page->baseline) {
        char since[1024];
        writer_element(
            out, "<p class=\"worth\">",
            writer_since(page->baseline, page->model, page->options->baseline, since, sizeof since),
            ".</p>\n");
    }
    fprintf(out, "<p class=\"worth\">%s.</p>\n", writer_worth(page->model, why, sizeof why));
    print_start(page);
    if (*writer_assumed(page->model, why, sizeof why)) fprintf(out, "<p>%s.</p>\n", why);
    fprintf(out, "<ul class=\"facts\"><li><b>%zu of %zu</b>matmuls in FP8</li>",
            report_fp8_count(totals), f->count);
    if (f->flops > 0)
        writer_element(out, "<li><b>", writer_share(f->fp8_flops, f->flops, share),
                       "</b>of FLOPs in FP8</li>");
    if (totals->quantized)
        fprintf(out, "<li><b>%zu</b>quantized by --quantize</li>", totals->quantized);
    if (f->kinds[HLO_VERDICT_MISSED])
        fprintf(out, "<li><b class=\"missed\">%zu</b>of the FP8 matmuls missed</li>",
                f->kinds[HLO_VERDICT_MISSED]);
    if (f->kinds[HLO_VERDICT_WIDE])
        fprintf(out, "<li><b class=\"wide\">%zu</b>wide</li>", f->kinds[HLO_VERDICT_WIDE]);
    if (totals->slower) fprintf(out, "<li><b>%zu</b>slower than in stock XLA</li>", totals->slower);
    if (totals->lints) fprintf(out, "<li><b class=\"lint\">%zu</b>lints</li>", totals->lints);
    const size_t lost = report_lost_count(page->model);
    if (lost)
        fprintf(out,
                "<li><b class=\"wide\">%zu</b><a href=\"#stages\">lost FP8 between stages</a></li>",
                lost);
    fputs("</ul>\n", out);
    print_times(page);
}

/* Prints a row: a total in the baseline, and now. */
static void print_then_and_now(const html_page *page, const char *name, double then, double now,
                               const char *unit) {
    char before[WRITER_NUMBER], after[WRITER_NUMBER];
    if (then < 0) return;
    if (unit) {
        writer_quantity(then, unit, before);
        writer_quantity(now, unit, after);
    } else {
        snprintf(before, sizeof before, "%.0f", then);
        snprintf(after, sizeof after, "%.0f", now);
    }
    fprintf(page->out, "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td></tr>\n", name, before,
            after);
}

/* Prints the layers whose time or number of FP8 matmuls differs, largest difference first. */
static void print_changed_layers(const html_page *page) {
    const report_baseline *b = page->baseline;
    FILE *out = page->out;
    char text[512];
    if (!b->layer_count) return;
    fputs("<h3>Changed layers</h3>\n<table class=\"plain\"><thead><tr><th "
          "scope=\"col\">layer</th><th "
          "scope=\"col\">result</th><th scope=\"col\">since the baseline</th></tr></thead>\n",
          out);
    for (size_t i = 0; i < b->layer_count && i < MAX_CHANGES; i++) {
        writer_name_markup(out, "<tr><td>", b->layers[i].layer, "</td><td class=\"mono\">");
        writer_element(out, "", b->layers[i].shape, "</td><td>");
        writer_element(out, "", writer_change(&b->layers[i], text, sizeof text), "</td></tr>\n");
    }
    fputs("</table>\n", out);
    if (b->layer_count > MAX_CHANGES)
        fprintf(out, "<p>and %zu more layers</p>\n", b->layer_count - MAX_CHANGES);
}

static void print_baseline(const html_page *page) {
    const report_baseline *b = page->baseline;
    const report_totals *totals = &page->model->totals;
    const report_figures *f = &totals->figures;
    FILE *out = page->out;
    if (!b) return;
    fputs("<h2>What changed since the baseline</h2>\n", out);
    writer_element(out, "<p class=\"dim\">Baseline: <code>", page->options->baseline,
                   "</code></p>\n");
    fputs("<ul class=\"facts\">", out);
    for (int change = HLO_CHANGE_NEWLY_FP8; change < REPORT_CHANGES; change++) {
        const char *color = change == HLO_CHANGE_LOST_FP8 ? "wide" : "fp8";
        fprintf(out, "<li><b class=\"%s\">%zu</b>", b->counts[change] ? color : "dim",
                b->counts[change]);
        if (b->counts[change] && change != HLO_CHANGE_GONE)
            fprintf(out, "<a href=\"#change=%s\">%s</a></li>", html_changes[change],
                    html_changes[change]);
        else
            fprintf(out, "%s</li>", html_changes[change]);
    }
    fputs("</ul>\n<table class=\"plain\"><thead><tr><th></th><th scope=\"col\">baseline</th><th "
          "scope=\"col\">now</th></tr></thead>\n",
          out);
    const double quantized = report_baseline_total(b, "quantized");
    print_then_and_now(page, "matmuls", report_baseline_total(b, "matmuls"), (double)f->count,
                       NULL);
    print_then_and_now(page, "in FP8",
                       report_baseline_total(b, "fp8") + (quantized > 0 ? quantized : 0),
                       (double)report_fp8_count(totals), NULL);
    print_then_and_now(page, "time", report_baseline_total(b, "seconds"), f->seconds, "s");
    print_then_and_now(page, "time, stock XLA", report_baseline_total(b, "input_seconds"),
                       f->input_seconds, "s");
    print_then_and_now(page, "all edits save", report_baseline_total(b, "saving_seconds"),
                       f->saving, "s");
    fputs("</table>\n", out);
    print_changed_layers(page);
    if (b->counts[HLO_CHANGE_GONE])
        fprintf(out,
                "<details id=\"gone\" hidden><summary>%zu gone</summary><table "
                "class=\"plain mono\"><tbody></tbody></table></details>\n",
                b->counts[HLO_CHANGE_GONE]);
}

static void print_edits(const html_page *page) {
    const report_model *m = page->model;
    FILE *out = page->out;
    if (!m->edit_count) return;
    fputs("<h2>What to edit</h2>\n", out);
    for (size_t i = 0; i < m->edit_count; i++) {
        const report_edit *edit = &m->edits[i];
        const report_figures *f = &edit->figures;
        fprintf(out, "<details id=\"edit-%s\" class=\"edit\"><summary><b>%s%s</b><span>",
                edit->cause, f->saving > 0 ? "saves " : "",
                writer_figures_of(f, &m->totals.figures, f->count > 0).saves);
        if (f->count) fprintf(out, "%zu matmul%s", f->count, f->count == 1 ? "" : "s");
        if (edit->lints)
            fprintf(out, "%s%zu lint%s", f->count ? ", " : "", edit->lints,
                    edit->lints == 1 ? "" : "s");
        writer_element(out, "</span><span><code>", edit->cause, "</code>: ");
        writer_element(out, "", edit->text, "<br>");
        writer_element(out, "Edit: ", edit->hint, "</span></summary><div class=\"inside\">");
        if (f->count)
            fprintf(out,
                    "<p><a class=\"scripted\" href=\"#reason=%s\">Show only its layers</a></p>",
                    edit->cause);
        if (edit->page) page_of_reason(out, edit->page);
        fputs("</div></details>\n", out);
    }
}

/* The columns of the table, with the keys by which the script sorts. */
static const struct {
    const char *name, *key, *class;
} columns[] = {{"layer", "layer", ""},         {"saves", "saving", "number"},
               {"time", "seconds", "number"},  {"share", NULL, "number minor"},
               {"matmuls", "count", ""},       {"reason", "reason", "minor"},
               {"bound by", "bound", "minor"}, {"speed (of peak)", "rate", "number minor"}};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Prints the head of the table, with the totals. */
static void print_table_head(const html_page *page, bool sorts) {
    const report_figures *f = &page->model->totals.figures;
    const writer_figures text = writer_figures_of(f, f, true);
    FILE *out = page->out;
    fputs("<thead><tr>", out);
    for (int i = 0; i < COLUMNS; i++) {
        fprintf(out, "<th scope=\"col\" class=\"%s\">", columns[i].class);
        if (sorts && columns[i].key)
            fprintf(out, "<button type=\"button\" value=\"%s\">%s</button></th>", columns[i].key,
                    columns[i].name);
        else
            fprintf(out, "%s</th>", columns[i].name);
    }
    fprintf(out,
            "</tr>\n<tr class=\"totals\"><th scope=\"row\">all layers</th><td "
            "class=\"number\">%s</td><td class=\"number\">%s</td><td class=\"number minor\">%s</td>"
            "<td>%zu</td><td class=\"minor\"></td><td class=\"minor\">%s</td><td class=\"number "
            "minor\">%s</td></tr></thead>\n",
            text.saves, text.time, text.share, f->count,
            f->seconds > 0 ? writer_bounds[report_bound_of(f)] : "", text.speed);
}

/* Prints the groups for browsers that do not run the script. */
static void print_groups(const html_page *page) {
    const report_model *m = page->model;
    FILE *out = page->out;
    fputs("<noscript><table class=\"layers\">\n", out);
    print_table_head(page, false);
    for (size_t i = 0; i < m->group_count && i < MAX_GROUPS; i++) {
        const report_group *g = &m->groups[i];
        const writer_figures text =
            writer_figures_of(&g->figures, &m->totals.figures, g->cause != NULL);
        writer_name_markup(out, "<tr><th scope=\"row\">", g->layer, "");
        if (g->named) writer_element(out, " <span class=\"dim\">", g->shape, "</span>");
        fprintf(out,
                "</th><td class=\"number\">%s</td><td class=\"number\">%s</td><td class=\"number "
                "minor\">%s</td><td>%zu <span class=\"%s\">%s</span></td><td class=\"minor\">",
                text.saves, text.time, text.share, g->figures.count, writer_kinds[g->first->kind],
                writer_kinds[g->first->kind]);
        if (g->cause) fprintf(out, "<a href=\"#edit-%s\">%s</a>", g->cause, g->cause);
        fprintf(out, "</td><td class=\"minor\">%s</td><td class=\"number minor\">%s</td></tr>\n",
                g->figures.seconds > 0 ? writer_bounds[report_bound_of(&g->figures)] : "",
                text.speed);
    }
    fputs("</table>\n", out);
    if (m->group_count > MAX_GROUPS)
        fprintf(out, "<p>and %zu more groups</p>\n", m->group_count - MAX_GROUPS);
    fputs("<p>The list of matmuls requires JavaScript.</p></noscript>\n", out);
}

/* Prints the table without rows, which the script makes, and its filters. */
static void print_table(const html_page *page) {
    FILE *out = page->out;
    fputs(
        "<h2 id=\"layers\">Layers</h2>\n<form id=\"tools\" class=\"tools\" hidden><input "
        "name=\"words\" type=\"search\" placeholder=\"Filter: words\" aria-label=\"Filter by "
        "words\"><select name=\"verdict\" aria-label=\"Filter by verdict\"><option value=\"\">all "
        "verdicts</option>",
        out);
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++)
        fprintf(out, "<option>%s</option>", writer_kinds[kind]);
    fputs("</select><select name=\"reason\" aria-label=\"Filter by reason\"><option value=\"\">all "
          "reasons</option>",
          out);
    for (size_t i = 0; i < page->model->edit_count; i++)
        if (page->model->edits[i].figures.count)
            fprintf(out, "<option>%s</option>", page->model->edits[i].cause);
    fputs("</select>", out);
    if (page->baseline) {
        fputs("<select name=\"change\" aria-label=\"Filter by change since the baseline\"><option "
              "value=\"\">changed or not</option>",
              out);
        for (int change = HLO_CHANGE_NEWLY_FP8; change < HLO_CHANGE_GONE; change++)
            fprintf(out, "<option>%s</option>", html_changes[change]);
        fputs("</select>", out);
    }
    fputs("<button type=\"reset\">Reset</button><span id=\"shown\" role=\"status\"></span></form>\n"
          "<table id=\"table\" class=\"layers\" hidden>\n",
          out);
    print_table_head(page, true);
    fputs(
        "</table>\n<p class=\"dim\">saves: \"-\" nothing, \"?\" unknown; share: of the time of all "
        "matmuls, by the roofline model, not measured</p>\n",
        out);
    print_groups(page);
}

static void print_lints(const html_page *page) {
    const report_model *m = page->model;
    FILE *out = page->out;
    if (!m->totals.lints) return;
    fputs("<h2>Lints</h2>\n<table class=\"plain\">\n", out);
    for (size_t i = 0; i < m->totals.lints; i++) {
        const hlo_verdict *v = m->lints[i];
        fprintf(out, "<tr><td><a class=\"lint\" href=\"#edit-%s\">%s</a></td><td class=\"mono\">",
                v->reason, v->reason);
        writer_element(out, "", v->instruction, "");
        writer_element(out, " <span class=\"dim\">", v->shape, "");
        writer_element(out, "<br>", v->op_name, "</span></td><td>");
        writer_element(out, "", v->message, "<br>");
        writer_element(out, "Edit: ", v->hint, "</td><td class=\"mono\">");
        writer_markup(out, v->source_file);
        if (v->source_file) fprintf(out, ":%ld", v->source_line);
        fputs("</td></tr>\n", out);
    }
    fputs("</table>\n", out);
}

/* Explains the words of the page. docs/concepts.md defines all of them. */
static void print_words(const html_page *page) {
    static const char *const words[][2] = {
        {"wide", "not FP8: the matmul multiplies bf16, f16, f32 or f64"},
        {"missed",
         "the matmul is an FP8 call, but an operation that the call could compute is not part of "
         "it"},
        {"stock XLA", "XLA without hlo-fp8, which makes FP8 calls only of the patterns it matches"},
        {"launch bound", "the matmul takes less time than a kernel launch, so FP8 saves nothing"},
        {"with all edits", "the time if you make every edit whose saving is known"}};
    fputs("<h2>Words</h2>\n<dl class=\"words\">", page->out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        fprintf(page->out, "<dt>%s</dt><dd>%s</dd>\n", words[i][0], words[i][1]);
    fputs("</dl>\n", page->out);
    if (!page->baseline)
        fputs("<p class=\"dim\">No baseline: --baseline=FILE compares with the file of an earlier "
              "--remarks-format=json.</p>\n",
              page->out);
}

static hlo_status print_page(const html_page *page, char *const *drawings, size_t count) {
    FILE *out = page->out;
    print_head(page);
    print_summary(page);
    print_baseline(page);
    print_edits(page);
    html_stages(page);
    print_table(page);
    hlo_status status = html_roofline(page);
    html_errors(page);
    print_lints(page);
    print_words(page);
    for (size_t i = 0; i < count; i++)
        if (drawings[i])
            fprintf(out, "<template id=\"drawing%zu\">%s</template>\n", i + 1, drawings[i]);
    if (status == HLO_OK) status = html_data(page);
    fprintf(out, "<script>%s</script>\n</body></html>\n", report_assets[REPORT_SCRIPT]);
    return status;
}

/* Returns the graph in Graphviz's language; NULL if memory runs out. */
static char *format_graph(const hlo_surroundings *graph) {
    char *text = NULL;
    size_t size;
    FILE *out = hlo_text_stream(&text, &size);
    if (!out) return NULL;
    fputs("digraph {\nbgcolor=\"transparent\" nodesep=0.25 ranksep=0.3\n"
          "node [shape=box style=rounded fontname=\"monospace\" fontsize=10 height=0.3 "
          "margin=\"0.1,0.05\"]\nedge [arrowsize=0.6]\n",
          out);
    for (uint32_t j = 0; j < graph->count; j++) {
        const hlo_surrounding_instr *n = &graph->v[j];
        fprintf(out, "n%u [class=\"node%s%s\" label=\"", j, n->focus ? " here" : "",
                n->fp8 ? " f8" : "");
        for (const char *c = n->op; *c; c++)
            if (*c != '"' && *c != '\\') fputc(*c, out);
        if (*n->shape) fprintf(out, "\\n%s", n->shape);
        fputs("\"]\n", out);
        for (uint32_t o = 0; o < n->operand_count; o++)
            fprintf(out, "n%u -> n%u\n", n->operands[o], j);
    }
    fputs("}\n", out);
    if (fclose(out) == 0) return text;
    hlo_free(text);
    return NULL;
}

/* Draws the surroundings. Equal graphs, as of the layers of a model, have one drawing. */
static hlo_status draw_all(html_page *page, char **drawings, size_t *out_count) {
    char *graphs[MAX_DRAWN] = {NULL};
    size_t used = 0;
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < page->model->count && i < MAX_LISTED && status == HLO_OK; i++)
        for (int side = 0; side < 2 && status == HLO_OK; side++) {
            html_matmul *m = &page->matmuls[i];
            if (!m->surroundings[side]) continue;
            char *graph = format_graph(m->surroundings[side]);
            size_t at = 0;
            while (graph && at < used && strcmp(graphs[at], graph) != 0) at++;
            if (!graph) status = HLO_OUT_OF_MEMORY;
            if (graph && at < MAX_DRAWN) m->drawing[side] = at + 1;
            if (graph && at == used && used < MAX_DRAWN)
                graphs[used++] = graph;
            else
                hlo_free(graph);
        }
    if (status == HLO_OK && used)
        status =
            page->options->draw(page->options->user, (const char *const *)graphs, used, drawings);
    for (size_t i = 0; i < used; i++) hlo_free(graphs[i]);
    for (size_t i = 0; i < page->model->count && i < MAX_LISTED; i++)
        for (int side = 0; side < 2; side++) {
            size_t *drawing = &page->matmuls[i].drawing[side];
            if (*drawing && !drawings[*drawing - 1]) *drawing = 0;
        }
    *out_count = used;
    return status;
}

/* Compares matmuls for qsort(): longest time first. */
static int by_time(const void *a, const void *b) {
    const html_matmul *x = a, *y = b;
    const double left = x->matmul->figures.seconds, right = y->matmul->figures.seconds;
    if (left != right) return left > right ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void fill_matmuls(html_page *page) {
    const size_t count = page->model->count;
    for (size_t i = 0; i < count; i++)
        page->matmuls[i] = (html_matmul){.matmul = &page->model->matmuls[i], .index = i};
    qsort(page->matmuls, count, sizeof *page->matmuls, by_time);
    for (size_t i = 0; i < count && i < MAX_LISTED; i++) {
        const report_matmul *m = page->matmuls[i].matmul;
        if (m->report->surroundings)
            memcpy(page->matmuls[i].surroundings, m->report->surroundings[m->index].side,
                   sizeof page->matmuls[i].surroundings);
    }
}

/* Prints the page of a model, and frees the model. */
static hlo_status print_model(report_model *model, const hlo_page_options *options,
                              hlo_writer writer) {
    report_baseline baseline = {0};
    hlo_status status =
        options->baseline ? report_baseline_read(model, options->baseline, options->sink, &baseline)
                          : HLO_OK;
    html_page page = {.model = model,
                      .options = options,
                      .baseline = options->baseline ? &baseline : NULL,
                      .matmuls = hlo_calloc(model->count + 1, sizeof *page.matmuls),
                      .out = hlo_writer_open(&writer)};
    if (status == HLO_OK && !(page.matmuls && page.out)) status = HLO_OUT_OF_MEMORY;
    char *drawings[MAX_DRAWN] = {NULL};
    size_t drawing_count = 0;
    if (status == HLO_OK) fill_matmuls(&page);
    if (status == HLO_OK && options->draw) status = draw_all(&page, drawings, &drawing_count);
    if (status == HLO_OK) status = print_page(&page, drawings, drawing_count);
    for (size_t i = 0; i < drawing_count; i++) hlo_free(drawings[i]);
    hlo_free(page.matmuls);
    report_baseline_free(&baseline);
    report_model_free(model);
    return page.out ? hlo_writer_close(page.out, status) : status;
}

static hlo_status take_options(const hlo_page_options *options, hlo_page_options *out) {
    *out = (hlo_page_options){.draw = NULL};
    return hlo_options_take("hlo_page_options", out, sizeof *out, options, NULL) == HLO_OK
               ? HLO_OK
               : HLO_INVALID_USAGE;
}

hlo_status hlo_reports_page(const hlo_report *const *reports, size_t count,
                            const hlo_page_options *options, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    hlo_page_options own;
    report_model *model;
    hlo_status status = take_options(options, &own);
    if (status == HLO_OK) status = report_model_new(reports, count, &model);
    return status == HLO_OK ? print_model(model, &own, writer) : status;
}

hlo_status hlo_histories_page(const hlo_dump *dump, const hlo_history *const *histories,
                              const hlo_page_options *options, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    hlo_page_options own;
    report_model *model;
    hlo_status status = take_options(options, &own);
    if (status == HLO_OK) status = report_model_of_dump(dump, histories, &model);
    return status == HLO_OK ? print_model(model, &own, writer) : status;
}
