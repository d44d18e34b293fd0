/* SPDX-License-Identifier: Apache-2.0 */
/* The plots of the HTML page, as SVG. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "report/html/html.h"

enum { WIDTH = 720, HEIGHT = 360, LEFT = 100, TOP = 12, RIGHT = 24, BOTTOM = 44 };

/* The range of an axis. */
typedef struct axis {
    double least, most;
} axis;

static double place_x(axis x, double value) {
    return LEFT + (WIDTH - LEFT - RIGHT) * (value - x.least) / (x.most - x.least);
}

static double place_y(axis y, double value) {
    return TOP + (HEIGHT - TOP - BOTTOM) * (y.most - value) / (y.most - y.least);
}

static void open_plot(FILE *out, const char *id, const char *label) {
    fprintf(out,
            "<svg id=\"%s\" class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"%s\"><title></title>\n",
            id, WIDTH, HEIGHT, label);
}

static void print_tick_x(FILE *out, axis x, double value, const char *text) {
    fprintf(out,
            "<path d=\"M%.1f %dv%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
            place_x(x, value), TOP, HEIGHT - TOP - BOTTOM, place_x(x, value), HEIGHT - BOTTOM + 18,
            text);
}

static void print_tick_y(FILE *out, axis y, double value, const char *text) {
    fprintf(out,
            "<path d=\"M%d %.1fh%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            LEFT, place_y(y, value), WIDTH - LEFT - RIGHT, LEFT - 6, place_y(y, value) + 4, text);
}

static void print_title_x(FILE *out, const char *text) {
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", WIDTH - RIGHT,
            HEIGHT - 6, text);
}

/* ------------------------------------------------------------------------------------- roofline */

/* A matmul in pixels: `x` and `y` after the rewrite, `was_x` and `was_y` before it. */
typedef struct dot {
    double x, y, was_x, was_y;
    const report_matmul *matmul;
} dot;

static int by_group_and_place(const void *a, const void *b) {
    const dot *x = a, *y = b;
    if (x->matmul->group != y->matmul->group) return x->matmul->group < y->matmul->group ? -1 : 1;
    if (x->x != y->x) return x->x < y->x ? -1 : 1;
    if (x->y != y->y) return x->y < y->y ? -1 : 1;
    if (x->was_x != y->was_x) return x->was_x < y->was_x ? -1 : 1;
    return (x->was_y > y->was_y) - (x->was_y < y->was_y);
}

/* Matmuls without FLOPs or bytes are not in the plot. */
static bool is_plotted(const report_figures *f) {
    return f->seconds > 0 && f->flops > 0 && f->bytes > 0 && f->input_bytes > 0;
}

static void widen(axis *to, double value) {
    to->least = fmin(to->least, floor(log10(value)));
    to->most = fmax(to->most, ceil(log10(value)));
}

static void print_roof(FILE *out, axis x, axis y, const hlo_target *target, int tflops) {
    if (!tflops) return;
    const double bandwidth = log10(1e9 * target->memory_gbs), top = log10(1e12 * tflops);
    const double ridge = fmin(fmax(top - bandwidth, x.least), x.most);
    const double first = fmax(x.least, y.least - bandwidth);
    fprintf(out, "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fH%d\"/>", place_x(x, first),
            place_y(y, fmin(first + bandwidth, top)), place_x(x, ridge), place_y(y, top),
            WIDTH - RIGHT);
}

/* Labels a roof above its line. Dots must be printed before. */
static void print_roof_label(FILE *out, axis y, int tflops, const char *type) {
    char peak[WRITER_NUMBER];
    if (!tflops) return;
    fprintf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s: %s</text>\n", WIDTH - RIGHT,
            place_y(y, log10(1e12 * tflops)) - 7, type,
            writer_quantity(1e12 * tflops, "FLOP/s", peak));
}

static double tenths(double pixels) {
    return round(10 * pixels) / 10;
}

/* Prints each dot once: equal layers have equal dots. All dots of a verdict are one path, because
 * thousands of elements make a page slow. `data-groups` has the group of each dot for the script.
 */
static void print_dots(const html_page *page, dot *dots, size_t count) {
    FILE *out = page->out;
    qsort(dots, count, sizeof *dots, by_group_and_place);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!kept || by_group_and_place(&dots[kept - 1], &dots[i]) != 0) dots[kept++] = dots[i];
    fputs("<path class=\"move\" d=\"", out);
    for (size_t i = 0; i < kept; i++)
        if (dots[i].x != dots[i].was_x || dots[i].y != dots[i].was_y)
            fprintf(out, "M%.1f %.1fL%.1f %.1f", dots[i].was_x, dots[i].was_y, dots[i].x,
                    dots[i].y);
    fputs("\"/>\n<path class=\"was\" d=\"", out);
    for (size_t i = 0; i < kept; i++)
        if (dots[i].x != dots[i].was_x || dots[i].y != dots[i].was_y)
            fprintf(out, "M%.1f %.1fh0", dots[i].was_x, dots[i].was_y);
    fputs("\"/>\n", out);
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++) {
        fprintf(out, "<path class=\"dots %s\" d=\"", writer_kinds[kind]);
        for (size_t i = 0; i < kept; i++)
            if ((int)dots[i].matmul->verdict->kind == kind)
                fprintf(out, "M%.1f %.1fh0", dots[i].x, dots[i].y);
        fputs("\" data-groups=\"", out);
        for (size_t i = 0; i < kept; i++)
            if ((int)dots[i].matmul->verdict->kind == kind)
                fprintf(out, "%zu ", (size_t)(dots[i].matmul->group - page->model->groups));
        fputs("\"/>\n", out);
    }
}

hlo_status html_roofline(const html_page *page) {
    const report_model *m = page->model;
    const hlo_target *target = m->target;
    if (!target || !target->memory_gbs) return HLO_OK;
    axis x = {(double)INFINITY, -(double)INFINITY}, y = x;
    size_t count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const report_figures *f = &m->matmuls[i].figures;
        if (!is_plotted(f)) continue;
        count++;
        widen(&x, f->flops / f->bytes);
        widen(&x, f->flops / f->input_bytes);
        widen(&y, f->flops / f->seconds);
        widen(&y, f->flops / f->input_seconds);
    }
    if (!count) return HLO_OK;
    const int peak = target->fp8_tflops ? target->fp8_tflops : target->bf16_tflops;
    if (peak) widen(&x, 1e3 * peak / target->memory_gbs);
    if (peak) widen(&y, 1e12 * peak);
    dot *dots = hlo_malloc(count * sizeof *dots);
    if (!dots) return HLO_OUT_OF_MEMORY;
    count = 0;
    for (size_t i = 0; i < m->count; i++) {
        const report_figures *f = &m->matmuls[i].figures;
        if (!is_plotted(f)) continue;
        dots[count++] =
            (dot){tenths(place_x(x, log10(f->flops / f->bytes))),
                  tenths(place_y(y, log10(f->flops / f->seconds))),
                  tenths(place_x(x, log10(f->flops / f->input_bytes))),
                  tenths(place_y(y, log10(f->flops / f->input_seconds))), &m->matmuls[i]};
    }
    FILE *out = page->out;
    char text[WRITER_NUMBER];
    fputs("<h2>Roofline</h2>\n<p class=\"dim\">Each dot is a matmul: <b class=\"fp8\">FP8</b>, <b "
          "class=\"missed\">missed</b> or <b class=\"wide\">wide</b>. A gray dot is the matmul "
          "before rewriting. On the slope, memory limits the speed; on a flat line, the tensor "
          "cores do. Select a dot to open its layer.</p>\n",
          out);
    open_plot(out, "roofline", "Speed of each matmul by its FLOPs per byte");
    for (double decade = x.least; decade <= x.most; decade++) {
        snprintf(text, sizeof text, "%g", pow(10, decade));
        print_tick_x(out, x, decade, text);
    }
    for (double decade = y.least; decade <= y.most; decade++)
        print_tick_y(out, y, decade, writer_quantity(pow(10, decade), "FLOP/s", text));
    print_title_x(out, "FLOPs per byte");
    print_roof(out, x, y, target, target->fp8_tflops);
    print_roof(out, x, y, target, target->bf16_tflops);
    print_dots(page, dots, count);
    print_roof_label(out, y, target->fp8_tflops, "FP8");
    print_roof_label(out, y, target->bf16_tflops, "bf16");
    fputs("</svg>\n", out);
    hlo_free(dots);
    return HLO_OK;
}

/* --------------------------------------------------------------------------------------- errors */

void html_errors(const html_page *page) {
    axis x = {0, 0}, y = {(double)INFINITY, -(double)INFINITY};
    const report_model *m = page->model;
    for (size_t i = 0; i < m->count; i++) {
        const hlo_verdict *v = m->matmuls[i].verdict;
        if (!v->measured) continue;
        x.least = fmin(x.least, v->predicted_saving);
        x.most = fmax(x.most, v->predicted_saving);
        if (v->output_distance > 0 && isfinite(v->output_distance)) widen(&y, v->output_distance);
    }
    if (x.least == x.most || !(y.least <= y.most)) return;
    if (y.most == y.least) y.least--;
    FILE *out = page->out;
    char text[WRITER_NUMBER];
    fputs("<h2>Time saved and error</h2>\n<p class=\"dim\">Each dot is a matmul: the time that "
          "quantizing it saves, as predicted, and the change of the most affected output if only "
          "this matmul is quantized.</p>\n",
          out);
    open_plot(out, "errors", "Time saved and error of each matmul");
    for (double decade = y.least; decade <= y.most; decade++) {
        snprintf(text, sizeof text, "%g", pow(10, decade));
        print_tick_y(out, y, decade, text);
    }
    const double ticks[] = {x.least, 0, x.most};
    for (int i = 0; i < 3; i++) {
        if (i != 1 && ticks[i] == 0) continue;
        char number[WRITER_NUMBER];
        snprintf(text, sizeof text, "%s%s", ticks[i] < 0 ? "-" : "",
                 writer_quantity(fabs(ticks[i]), "s", number));
        print_tick_x(out, x, ticks[i], text);
    }
    print_title_x(out, "time saved");
    for (size_t i = 0; i < m->count; i++) {
        const hlo_verdict *v = m->matmuls[i].verdict;
        if (!v->measured) continue;
        const double error = fmin(fmax(log10(v->output_distance), y.least), y.most);
        fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"><title>",
                writer_kinds[v->kind], place_x(x, v->predicted_saving), place_y(y, error));
        writer_element(out, "", v->input_instruction, "");
        if (v->op_name) writer_element(out, " ", v->op_name, "");
        fprintf(out, ": %s%s, error %.3g, %s</title></circle>\n",
                v->predicted_saving < 0 ? "-" : "",
                writer_quantity(fabs(v->predicted_saving), "s", text), v->output_distance,
                writer_kinds[v->kind]);
    }
    fputs("</svg>\n", out);
}
