/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the stages of a dump folder: where matmuls lost FP8, and a timeline of each layer. */
#include "report/html/html.h"

/* Maximum numbers of rows. */
enum { MAX_LOSSES = 100, MAX_TIMELINES = 200 };

static void print_losses(const html_page *page) {
    const report_model *m = page->model;
    FILE *out = page->out;
    const bool several = hlo_dump_module_count(m->dump) > 1;
    if (!m->loss_count) {
        fputs("<p>No matmul lost FP8 between the stages.</p>\n", out);
        return;
    }
    fputs("<table class=\"plain lost\"><thead><tr><th scope=\"col\">FP8 lost in</th><th "
          "scope=\"col\">by the pass</th><th scope=\"col\">change</th><th scope=\"col\">lost "
          "at</th>",
          out);
    fputs(several ? "<th scope=\"col\">module</th></tr></thead>\n" : "</tr></thead>\n", out);
    for (size_t i = 0; i < m->loss_count && i < MAX_LOSSES; i++) {
        const report_loss *loss = &m->losses[i];
        const hlo_matmul_history *p = loss->first;
        fprintf(out, "<tr><td>%zu matmul%s</td>", loss->count, loss->count == 1 ? "" : "s");
        writer_element(out, "<td>", p->pass ? p->pass : "not dumped", "</td>");
        writer_element(out, "<td>", p->how, "</td>");
        writer_element(out, "<td class=\"mono\">", hlo_dump_stage(m->dump, loss->module, p->lost),
                       "</td>");
        if (several)
            writer_element(out, "<td class=\"mono\">", hlo_dump_module(m->dump, loss->module),
                           "</td>");
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    if (m->loss_count > MAX_LOSSES)
        fprintf(out, "<p>and %zu more</p>\n", m->loss_count - MAX_LOSSES);
}

/* Prints a bar with a part for each run of stages with equal verdicts. */
static void print_timeline(const html_page *page, const report_timeline *line) {
    const report_model *m = page->model;
    FILE *out = page->out;
    const hlo_history *h = m->histories[line->module];
    const size_t stages = hlo_dump_stage_count(m->dump, line->module);
    writer_name_markup(out, "<tr><th scope=\"row\">", line->layer, "");
    writer_element(out, " <span class=\"dim\">", line->shape, "</span>");
    fprintf(out,
            "</th><td>%zu</td><td><svg class=\"bar\" viewBox=\"0 0 %zu 1\" "
            "preserveAspectRatio=\"none\" role=\"img\"><title>verdicts by stage</title>",
            line->count, stages);
    for (size_t k = 0, next; k < stages; k = next) {
        const hlo_verdict *v = hlo_history_verdict(h, line->first, k);
        for (next = k + 1; next < stages; next++) {
            const hlo_verdict *other = hlo_history_verdict(h, line->first, next);
            if (!v != !other || (v && v->kind != other->kind)) break;
        }
        if (!v) continue;
        fprintf(out, "<rect class=\"%s\" x=\"%zu\" width=\"%zu\" height=\"1\"><title>",
                writer_kinds[v->kind], k, next - k);
        fprintf(out, "%s at ", writer_kinds[v->kind]);
        writer_markup(out, hlo_dump_stage(m->dump, line->module, k));
        if (next > k + 1)
            writer_element(out, " to ", hlo_dump_stage(m->dump, line->module, next - 1), "");
        fputs("</title></rect>", out);
    }
    const hlo_matmul_history *p = hlo_history_passage(h, line->first);
    fprintf(out, "</svg></td><td><span class=\"%s\">%s</span>",
            p->gone ? "dim" : writer_kinds[p->last->kind],
            p->gone ? "gone" : writer_kinds[p->last->kind]);
    if (p->lost != SIZE_MAX) {
        writer_element(out, ", lost by ", p->pass ? p->pass : "a pass that was not dumped", ": ");
        writer_markup(out, p->how);
    } else if (!p->gone && p->last->reason) {
        fprintf(out, ", <a href=\"#edit-%s\">%s</a>", p->last->reason, p->last->reason);
    }
    fputs("</td></tr>\n", out);
}

void html_stages(const html_page *page) {
    const report_model *m = page->model;
    FILE *out = page->out;
    if (!m->dump || !m->timeline_count) return;
    fputs("<h2 id=\"stages\">Stages</h2>\n", out);
    print_losses(page);
    fputs(
        "<p class=\"dim\">Each bar is a timeline from the first to the last stage of a module: <b "
        "class=\"fp8\">FP8</b> or convertible to FP8, <b class=\"missed\">missed</b>, <b "
        "class=\"wide\">wide</b>; where it is empty, the module does not contain the "
        "matmul.</p>\n",
        out);
    for (size_t i = 0; i < hlo_dump_module_count(m->dump); i++) {
        size_t shown = 0, found = 0;
        for (size_t j = 0; j < m->timeline_count; j++) {
            if (m->timelines[j].module != i || found++ >= MAX_TIMELINES) continue;
            if (!shown++) {
                const size_t stages = hlo_dump_stage_count(m->dump, i),
                             compilations = hlo_dump_compilation_count(m->dump, i);
                writer_element(out, "<h3>", hlo_dump_module(m->dump, i),
                               "</h3>\n<p class=\"dim\">");
                fprintf(out, "%zu stage%s", stages, stages == 1 ? "" : "s");
                if (compilations > 1) fprintf(out, ", compiled %zu times", compilations);
                writer_element(out, ": <code>", hlo_dump_stage(m->dump, i, 0), "</code>");
                if (stages > 1)
                    writer_element(out, " to <code>", hlo_dump_stage(m->dump, i, stages - 1),
                                   "</code>");
                fputs("</p>\n<table class=\"plain stages\"><thead><tr><th "
                      "scope=\"col\">layer</th><th scope=\"col\">matmuls</th><th "
                      "scope=\"col\">stages</th><th scope=\"col\">last "
                      "stage</th></tr></thead>\n",
                      out);
            }
            print_timeline(page, &m->timelines[j]);
        }
        if (shown) fputs("</table>\n", out);
        if (found > MAX_TIMELINES)
            fprintf(out, "<p>and %zu more rows</p>\n", found - MAX_TIMELINES);
    }
}
