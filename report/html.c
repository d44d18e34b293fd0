/* SPDX-License-Identifier: Apache-2.0 */
/* Prints verdicts as one self-contained HTML page. The script of the page only sorts and
 * filters. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/text/options.h"
#include "passes/verdict/surroundings.h"
#include "report/format.h"

/* Maximum numbers of matmuls, longest time first, whose surroundings are drawn or listed. */
enum { DRAWN_MOST = 50, LISTED_MOST = 200 };

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

typedef struct place {
    const report_matmul *matmul;
    const hlo_surroundings *surroundings[2]; /* surroundings before and after the run; NULL if not
                                              * recorded */
    char *drawing[2];
} place;

static void print_head(FILE *out, const hlo_verdict *v) {
    fprintf(out, "<summary><span class=\"%s\">%s</span><span class=\"mono\">",
            writer_kinds[v->kind], writer_kinds[v->kind]);
    writer_element(out, "", v->input_instr, "");
    if (writer_output_name(v))
        writer_element(out, " <span class=\"dim\">→ ", writer_output_name(v), "</span>");
    writer_element(out, " <span class=\"dim\">", v->input_shape, "</span>");
    if (v->op_name) writer_element(out, "<br><span class=\"dim\">", v->op_name, "</span>");
    writer_element(out, "</span><span>", v->epilogue, "");
    if (v->reason) writer_element(out, *v->epilogue ? ", " : "", v->reason, "");
    fputs("</span><span class=\"mono dim\">", out);
    if (v->source_file) {
        writer_markup(out, v->source_file);
        fprintf(out, ":%ld", v->source_line);
    }
    fputs("</span><span class=\"time\">", out);
    if (v->runs != 1) fprintf(out, "%g × ", v->runs);
    if (v->seconds == 0)
        fputs("time unknown", out);
    else if (v->kind == HLO_VERDICT_WIDE && v->fp8_seconds > 0)
        fprintf(out, "%.3g µs <span class=\"dim\">(FP8: %.3g)</span>", 1e6 * v->seconds,
                1e6 * v->fp8_seconds);
    else
        fprintf(out, "%.3g → %.3g µs", 1e6 * v->input_seconds, 1e6 * v->seconds);
    fputs("</span></summary>\n", out);
}

static void print_fact(FILE *out, const char *name, const char *value) {
    if (!value || !*value) return;
    fprintf(out, "<tr><th>%s</th><td class=\"mono\">", name);
    writer_element(out, "", value, "</td></tr>\n");
}

static void print_quantization(FILE *out, const hlo_verdict *v) {
    char text[128];
    if (!v->quantized) return;
    snprintf(text, sizeof text, "%s, %.2fx predicted", v->quantized, v->predicted_gain);
    print_fact(out, v->kind == HLO_VERDICT_WIDE ? "if quantized" : "quantized here", text);
    if (!v->measured) return;
    if (isfinite(v->snr_db)) {
        snprintf(text, sizeof text, "%.1f dB", v->snr_db);
        print_fact(out, "signal to noise", text);
    }
    snprintf(text, sizeof text, "%.3g", v->output_distance);
    print_fact(out, "change of an output", text);
}

static void print_place(FILE *out, const place *p) {
    const hlo_verdict *v = p->matmul->verdict;
    fprintf(out, "<details data-kind=\"%s\" data-time=\"%.9g\" data-flops=\"%.9g\"",
            writer_kinds[v->kind], v->runs * v->seconds, v->runs * v->flops);
    writer_element(out, " data-reason=\"", v->reason, "\"");
    writer_element(out, " data-source=\"", v->source_file, "\"");
    writer_element(out, " data-name=\"", v->op_name ? v->op_name : v->input_instr, "\">");
    print_head(out, v);
    fputs("<div class=\"inside\">", out);
    if (v->reason) {
        writer_element(out, "<p>", v->message, "");
        if (v->blocker) writer_element(out, ", at <code>", v->blocker, "</code>");
        writer_element(out, ".<br>Fix: ", v->hint, "");
        fprintf(out, " (<a href=\"#%s\">more</a>).</p>\n", v->reason);
    }
    char text[128];
    fputs("<table>", out);
    print_fact(out, "operands", v->operands);
    print_fact(out, "result", v->shape);
    print_quantization(out, v);
    if (v->groups) {
        snprintf(text, sizeof text, "%" PRId64, v->groups);
        print_fact(out, "groups", text);
    }
    if (v->scale_modes) print_fact(out, "scale modes", v->scale_modes);
    print_fact(out, "op_name", v->op_name);
    snprintf(text, sizeof text, ":%u:%u", v->line, v->column);
    writer_element(out, "<tr><th>HLO</th><td class=\"mono\">", v->file, v->line ? text : "");
    fputs("</td></tr>\n", out);
    snprintf(text, sizeof text, "%.4g GFLOP, %.4g MB before, %.4g MB after", v->flops / 1e9,
             v->input_bytes / 1e6, v->bytes / 1e6);
    print_fact(out, "cost", text);
    fputs("</table>\n", out);
    if (p->surroundings[0] || p->surroundings[1]) {
        static const char *const titles[] = {"Before", "After"};
        fputs("<div class=\"sides\">", out);
        for (int side = 0; side < 2; side++) {
            if (!p->surroundings[side]) continue;
            fprintf(out, "<div class=\"side\"><h3>%s</h3>\n", titles[side]);
            if (p->drawing[side]) {
                fputs(p->drawing[side], out);
            } else {
                const hlo_surroundings *graph = p->surroundings[side];
                fputs("<table class=\"mono\">", out);
                for (uint32_t i = 0; i < graph->count; i++) {
                    const hlo_surrounding_instr *n = &graph->v[i];
                    writer_element(out, n->focus ? "<tr class=\"here\"><td>" : "<tr><td>", n->name,
                                   "</td>");
                    writer_element(out, "<td>", n->op, "</td>");
                    writer_element(out, "<td>", n->shape, "</td><td class=\"dim\">");
                    for (uint32_t o = 0; o < n->operand_count; o++)
                        writer_element(out, o ? ", " : "", graph->v[n->operands[o]].name, "");
                    fputs("</td></tr>\n", out);
                }
                fputs("</table>\n", out);
            }
            fputs("</div>\n", out);
        }
        fputs("</div>\n", out);
    }
    fputs("</div></details>\n", out);
}

/* Plots the error that each measured matmul causes alone against the time that its quantization
 * saves. Prints nothing if no matmul was measured, or if no time is known. */
static void print_plot(const report_writer *t) {
    enum { WIDTH = 640, HEIGHT = 320, LEFT = 60, TOP = 12, RIGHT = 16, BOTTOM = 40 };
    const double width = WIDTH - LEFT - RIGHT, height = HEIGHT - TOP - BOTTOM;
    double least = 0, most = 0, low = (double)INFINITY, high = -(double)INFINITY;
    const report_model *m = t->model;
    for (size_t i = 0; i < m->count; i++) {
        const hlo_verdict *v = m->matmuls[i].verdict;
        if (!v->measured) continue;
        least = fmin(least, v->predicted_saving);
        most = fmax(most, v->predicted_saving);
        if (!(v->output_distance > 0) || !isfinite(v->output_distance)) continue;
        low = fmin(low, floor(log10(v->output_distance)));
        high = fmax(high, ceil(log10(v->output_distance)));
    }
    if (least == most || !(low <= high)) return;
    if (low == high) low--;
    FILE *out = t->out;
    fprintf(out,
            "<h2>Time saved and error</h2>\n<p class=\"dim\">Each point is a matmul: the time "
            "that quantizing it saves, as predicted, and the change of the most affected output "
            "if only this matmul is quantized.</p>\n<svg class=\"plot\" viewBox=\"0 0 %d %d\" "
            "role=\"img\" aria-label=\"Time saved and error of each matmul\">\n",
            WIDTH, HEIGHT);
    for (double decade = low; decade <= high; decade++) {
        const double y = TOP + height * (high - decade) / (high - low);
        fprintf(out,
                "<path d=\"M%d %.1fh%.1f\"/><text x=\"%d\" y=\"%.1f\" "
                "text-anchor=\"end\">%g</text>\n",
                LEFT, y, width, LEFT - 6, y + 4, pow(10, decade));
    }
    const double ticks[] = {least, 0, most};
    for (int i = 0; i < 3; i++) {
        if (i != 1 && ticks[i] == 0) continue;
        const double x = LEFT + width * (ticks[i] - least) / (most - least);
        fprintf(out,
                "<path d=\"M%.1f %dv%.1f\"/><text x=\"%.1f\" y=\"%d\" "
                "text-anchor=\"middle\">%.3g µs</text>\n",
                x, TOP, height, x, HEIGHT - BOTTOM + 18, 1e6 * ticks[i]);
    }
    for (size_t i = 0; i < m->count; i++) {
        const hlo_verdict *v = m->matmuls[i].verdict;
        if (!v->measured) continue;
        const double error = fmin(fmax(log10(v->output_distance), low), high);
        fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>",
                writer_kinds[v->kind],
                LEFT + width * (v->predicted_saving - least) / (most - least),
                TOP + height * (high - error) / (high - low));
        writer_element(out, "", v->input_instr, "");
        if (v->op_name) writer_element(out, " ", v->op_name, "");
        fprintf(out, ": %.3g µs, error %.3g, %s</title></circle>\n", 1e6 * v->predicted_saving,
                v->output_distance, writer_kinds[v->kind]);
    }
    fputs("</svg>\n", out);
}

static void print_summary(const report_writer *t) {
    const report_totals *totals = &t->model->totals;
    const report_figures *f = &totals->figures;
    FILE *out = t->out;
    fprintf(out, "<ul class=\"facts\"><li><b>%zu of %zu</b>matmuls in FP8</li>",
            report_fp8_count(totals), f->count);
    if (f->flops > 0)
        fprintf(out, "<li><b>%.0f %%</b>of FLOPs</li>", 100 * f->fp8_flops / f->flops);
    if (f->seconds > 0)
        fprintf(out, "<li><b>%.3g → %.3g µs</b>by roofline (%.2fx)</li>", 1e6 * f->input_seconds,
                1e6 * f->seconds, f->input_seconds / f->seconds);
    if (f->kinds[HLO_VERDICT_MISSED])
        fprintf(out, "<li><b class=\"missed\">%zu</b>missed</li>", f->kinds[HLO_VERDICT_MISSED]);
    if (f->kinds[HLO_VERDICT_WIDE])
        fprintf(out, "<li><b class=\"wide\">%zu</b>wide</li>", f->kinds[HLO_VERDICT_WIDE]);
    if (totals->lints) fprintf(out, "<li><b class=\"lint\">%zu</b>lints</li>", totals->lints);
    fputs("</ul>\n", out);
}

static void print_tools(FILE *out) {
    static const char *const keys[][2] = {{"time", "time"},     {"flops", "FLOPs"},
                                          {"kind", "verdict"},  {"name", "op_name"},
                                          {"reason", "reason"}, {"source", "source"}};
    fputs("<form id=\"tools\" class=\"tools\" hidden><input name=\"words\" type=\"search\" "
          "placeholder=\"Filter: words\" aria-label=\"Filter by words\"><select name=\"kind\" "
          "aria-label=\"Filter by verdict\"><option value=\"\">all verdicts</option>",
          out);
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++)
        fprintf(out, "<option>%s</option>", writer_kinds[kind]);
    fputs("</select>", out);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        fprintf(out, "<button type=\"button\" value=\"%s\">by %s</button>", keys[i][0], keys[i][1]);
    fputs("<span id=\"shown\"></span></form>\n", out);
}

static void print_page(const report_writer *t, const hlo_page_options *options, const place *places,
                       size_t count) {
    FILE *out = t->out;
    fprintf(out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
            "style-src 'unsafe-inline';script-src 'unsafe-inline'\">\n"
            "<title>hlo-fp8: %zu of %zu matmuls in FP8</title>\n<style>%s</style></head>\n<body>\n"
            "<h1>Which matmuls run in FP8</h1>\n",
            report_fp8_count(&t->model->totals), t->model->count, report_assets[REPORT_STYLE]);
    fputs("<p class=\"dim\">", out);
    const report_model *m = t->model;
    if (m->target)
        fprintf(out, "Target: sm_%d, CUDA %d.%d", m->target->sm, m->cuda / 1000,
                m->cuda % 1000 / 10);
    if (options->date) writer_element(out, m->target ? ", " : "", options->date, "");
    if (options->command) writer_element(out, "<br><code>", options->command, "</code>");
    fputs("</p>\n", out);
    print_summary(t);
    print_plot(t);
    fputs("<h2>Matmuls</h2>\n<p class=\"dim\">Sorted by time, longest first. Open a matmul to see "
          "its surroundings before and after rewriting.</p>\n",
          out);
    print_tools(out);
    fputs("<div id=\"matmuls\">\n", out);
    for (size_t i = 0; i < count; i++) print_place(out, &places[i]);
    fputs("</div>\n", out);
    if (m->totals.lints) {
        fputs("<h2>Lints</h2>\n", out);
        for (size_t i = 0; i < m->totals.lints; i++) {
            const hlo_verdict *v = m->lints[i];
            writer_element(
                out, "<details><summary><span class=\"lint\">lint</span><span class=\"mono\">",
                v->instr, "");
            writer_element(out, " <span class=\"dim\">", v->shape, "</span></span><span>");
            writer_element(out, "", v->reason, "</span></summary><div class=\"inside\"><p>");
            writer_markup(out, v->message);
            writer_element(out, ".<br>Fix: ", v->hint, "");
            fprintf(out, " (<a href=\"#%s\">more</a>).</p>\n<table>", v->reason);
            print_fact(out, "op_name", v->op_name);
            print_fact(out, "source", v->source_file);
            fputs("</table></div></details>\n", out);
        }
    }
    fputs("<h2>Reasons</h2>\n", out);
    for (size_t i = 0; i < m->edit_count; i++) {
        const report_edit *edit = &m->edits[i];
        if (!edit->page) continue;
        fprintf(out, "<details id=\"%s\"><summary><span>%zu</span><span>%s</span><span>",
                edit->cause, edit->figures.count + edit->lints, edit->cause);
        writer_element(out, "", edit->text, "</span></summary><div class=\"inside\">");
        page_of_reason(out, edit->page);
        fputs("</div></details>\n", out);
    }
    fprintf(out, "<script>%s</script>\n</body></html>\n", report_assets[REPORT_SCRIPT]);
}

/* Formats the graphs in Graphviz's language, and draws them by `draw`. A graph that cannot be drawn
 * is printed as a table. */
static hlo_status draw_all(place *places, size_t count, hlo_drawer *draw, void *user) {
    char *graphs[2 * DRAWN_MOST] = {NULL}, *drawings[2 * DRAWN_MOST] = {NULL};
    char **to[2 * DRAWN_MOST];
    size_t used = 0, size;
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < count && i < DRAWN_MOST; i++)
        for (int side = 0; side < 2 && status == HLO_OK; side++) {
            if (!places[i].surroundings[side]) continue;
            FILE *out = open_memstream(&graphs[used], &size);
            if (!out) {
                status = HLO_OUT_OF_MEMORY;
                break;
            }
            /* Make ids unique within the page. */
            const hlo_surroundings *graph = places[i].surroundings[side];
            fprintf(out,
                    "digraph g%zu {\nid=\"g%zu\" bgcolor=\"transparent\" nodesep=0.25 ranksep=0.3\n"
                    "node [shape=box style=rounded fontname=\"monospace\" fontsize=10 height=0.3 "
                    "margin=\"0.1,0.05\"]\nedge [arrowsize=0.6]\n",
                    used, used);
            for (uint32_t j = 0; j < graph->count; j++) {
                const hlo_surrounding_instr *n = &graph->v[j];
                fprintf(out, "n%u [id=\"g%zun%u\" class=\"node%s%s\" label=\"", j, used, j,
                        n->focus ? " here" : "", n->fp8 ? " f8" : "");
                for (const char *text = n->op; *text; text++)
                    if (*text != '"' && *text != '\\') fputc(*text, out);
                if (*n->shape) fprintf(out, "\\n%s", n->shape);
                fputs("\"]\n", out);
                for (uint32_t o = 0; o < n->operand_count; o++)
                    fprintf(out, "n%u -> n%u [id=\"g%zue%u_%u\"]\n", n->operands[o], j, used, j, o);
            }
            fputs("}\n", out);
            to[used++] = &places[i].drawing[side];
            if (fclose(out) != 0 || !graphs[used - 1]) status = HLO_OUT_OF_MEMORY;
        }
    if (status == HLO_OK && used) status = draw(user, (const char *const *)graphs, used, drawings);
    for (size_t i = 0; i < used; i++) {
        *to[i] = drawings[i];
        free(graphs[i]);
    }
    return status;
}

/* Compares places for qsort(): longest time first. */
static int by_time(const void *a, const void *b) {
    const report_matmul *x = ((const place *)a)->matmul, *y = ((const place *)b)->matmul;
    const double left = x->figures.seconds, right = y->figures.seconds;
    if (left != right) return left > right ? -1 : 1;
    return x < y ? -1 : x > y;
}

hlo_status hlo_reports_page(const hlo_report *const *reports, size_t count,
                            const hlo_page_options *options, FILE *out) {
    HLO_IN_C_LOCALE;
    hlo_page_options own = {.draw = NULL};
    if (hlo_options_take("hlo_page_options", &own, sizeof own, options, NULL) != HLO_OK)
        return HLO_INVALID_USAGE;
    report_model *model;
    hlo_status status = report_model_new(reports, NULL, count, &model);
    if (status != HLO_OK) return status;
    const report_writer t = {.model = model, .out = out};
    const size_t total = model->count;
    place *places = calloc(total + 1, sizeof *places);
    if (!places) status = HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < total && places; i++) places[i].matmul = &model->matmuls[i];
    if (places) qsort(places, total, sizeof *places, by_time);
    for (size_t i = 0; i < total && i < LISTED_MOST && places; i++) {
        const report_matmul *m = places[i].matmul;
        const surroundings *kept =
            m->report->surroundings ? &m->report->surroundings[m->index] : NULL;
        if (kept) memcpy(places[i].surroundings, kept->side, sizeof kept->side);
    }
    if (status == HLO_OK && own.draw) status = draw_all(places, total, own.draw, own.user);
    if (status == HLO_OK) print_page(&t, &own, places, total);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    for (size_t i = 0; i < total && places; i++)
        for (int side = 0; side < 2; side++) free(places[i].drawing[side]);
    free(places);
    report_model_free(model);
    return status;
}
