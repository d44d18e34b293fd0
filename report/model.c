/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the model of a report: figures of each matmul, layers, groups and edits. */
#include "report/model.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/baseline.h"

/* -------------------------------------------------------------------------------------- figures */

/* Times differ visibly by this factor, because reports print two digits of speedups. */
#define VISIBLE 1.005

/* Ignores matmuls that --quantize quantized: unlike the predicted gain, their times do not take
 * into account that loops and other matmuls share the quantization. */
bool report_is_slower(const hlo_verdict *v) {
    return v->kind != HLO_VERDICT_WIDE && !v->quantized && v->input_seconds > 0 &&
           v->seconds > VISIBLE * v->input_seconds;
}

/* Returns the seconds that become free if a matmul takes `after` instead of `before`; 0 if the
 * difference is not visible. A matmul takes at least the time of a launch. */
static double saved(double before, double after) {
    before = fmax(before, HLO_LAUNCH_SECONDS);
    after = fmax(after, HLO_LAUNCH_SECONDS);
    return before > VISIBLE * after ? before - after : 0;
}

static report_figures figures_of(const hlo_verdict *v, const hlo_target *target) {
    const bool wide = v->kind == HLO_VERDICT_WIDE;
    report_figures f = {.count = 1,
                        .flops = v->runs * v->flops,
                        .input_bytes = v->runs * v->input_bytes,
                        .bytes = v->runs * v->bytes};
    f.kinds[v->kind] = 1;
    if (!wide) f.fp8_flops = f.flops;
    report_bound bound = REPORT_UNKNOWN;
    if (v->seconds > 0 && v->input_seconds > 0) {
        bound = v->seconds < HLO_LAUNCH_SECONDS                               ? REPORT_LAUNCH
                : v->compute_seconds >= v->bytes / (1e9 * target->memory_gbs) ? REPORT_COMPUTE
                                                                              : REPORT_MEMORY;
        f.input_seconds = v->runs * v->input_seconds;
        f.seconds = f.bound_seconds[bound] = v->runs * v->seconds;
        f.compute_seconds = v->runs * v->compute_seconds;
        f.timed_flops = f.flops;
        f.estimated = wide && v->fp8_seconds > 0;
        if (f.estimated) f.saving = v->runs * saved(v->seconds, v->fp8_seconds);
    }
    f.bounds[bound] = 1;
    return f;
}

static void add_figures(report_figures *sum, const report_figures *f) {
    sum->count += f->count;
    for (int kind = 0; kind < HLO_VERDICT_LINT; kind++) sum->kinds[kind] += f->kinds[kind];
    sum->flops += f->flops;
    sum->fp8_flops += f->fp8_flops;
    sum->input_bytes += f->input_bytes;
    sum->bytes += f->bytes;
    sum->input_seconds += f->input_seconds;
    sum->seconds += f->seconds;
    sum->compute_seconds += f->compute_seconds;
    sum->timed_flops += f->timed_flops;
    for (int bound = 0; bound < REPORT_BOUNDS; bound++) {
        sum->bound_seconds[bound] += f->bound_seconds[bound];
        sum->bounds[bound] += f->bounds[bound];
    }
    sum->saving += f->saving;
    sum->estimated += f->estimated;
}

report_bound report_bound_of(const report_figures *f) {
    report_bound most = REPORT_UNKNOWN;
    for (int bound = 0; bound < REPORT_BOUNDS; bound++)
        if (f->bound_seconds[bound] > f->bound_seconds[most]) most = (report_bound)bound;
    return most;
}

double report_rate(const report_figures *f) {
    return f->seconds > 0 ? f->timed_flops / f->seconds : 0;
}

double report_peak_fraction(const report_figures *f) {
    return f->seconds > 0 ? f->compute_seconds / f->seconds : 0;
}

static void count_verdict(report_totals *totals, const hlo_verdict *v, const report_figures *f) {
    if (v->reason) totals->reasons[v->kind][hlo_reason_find(v->reason)]++;
    if (v->kind == HLO_VERDICT_LINT) {
        totals->lints++;
        return;
    }
    totals->slower += report_is_slower(v);
    totals->quantized += v->kind != HLO_VERDICT_WIDE && v->quantized;
    add_figures(&totals->figures, f);
}

report_totals report_sum_up(const hlo_report *const *reports, size_t count) {
    report_totals totals = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < reports[i]->verdict_count; j++) {
            const report_figures f = figures_of(&reports[i]->verdicts[j], reports[i]->target);
            count_verdict(&totals, &reports[i]->verdicts[j], &f);
        }
        for (size_t j = 0; j < reports[i]->lint_count; j++)
            count_verdict(&totals, &reports[i]->lints[j].verdict, NULL);
    }
    return totals;
}

size_t report_fp8_count(const report_totals *totals) {
    const size_t *kinds = totals->figures.kinds;
    return kinds[HLO_VERDICT_FP8] + kinds[HLO_VERDICT_MISSED];
}

/* --------------------------------------------------------------------------------------- layers */

/* True if `text` has the form `word`, in which `#` is a number, and `*` at the end is any text. */
static bool has_form(const char *word, const char *text, size_t length) {
    const char *end = text + length;
    for (; *word && *word != '*'; word++) {
        const char *start = text;
        while (*word == '#' && text < end && *text >= '0' && *text <= '9') text++;
        if (*word != '#') text += text < end && *text == *word;
        if (text == start) return false;
    }
    return *word || text == end;
}

/* Returns the index of the form of `text` in `words`, or -1. */
static int find_word(const char *const *words, size_t count, const char *text, size_t length) {
    for (size_t i = 0; i < count; i++)
        if (has_form(words[i], text, length)) return (int)i;
    return -1;
}

#define FIND_WORD(words, text, length) find_word(words, sizeof words / sizeof *words, text, length)

/* Components NAME(INNER) of an op_name: functions, which are not layers, and transformations of
 * INNER. */
static const char *const functions[] = {"jit", "pjit", "pmap", "xla_pmap", "xmap"};
static const char *const transformations[] = {"transpose", "jvp",        "vmap",       "checkpoint",
                                              "remat",     "custom_jvp", "custom_vjp", "shard_map"};
enum { TRANSPOSE, JVP };

/* Components that are not layers: recomputation, TensorFlow's gradients, control flow, calls, and
 * wrappers of a matmul. */
static const char *const wrappers[] = {"rematted_computation",
                                       "gradient_tape",
                                       "gradients",
                                       "gradients_#",
                                       "while",
                                       "branch_#_fun",
                                       "scan",
                                       "checkpoint",
                                       "remat",
                                       "remat#",
                                       "closed_call",
                                       "core_call",
                                       "named_call",
                                       "pjit",
                                       "shard_map",
                                       "custom_jvp_call*",
                                       "custom_vjp_call*",
                                       "xla_call",
                                       "PartitionedCall",
                                       "PartitionedCall_#",
                                       "StatefulPartitionedCall",
                                       "StatefulPartitionedCall_#",
                                       "Fp8DotGeneral*"};
enum { RECOMPUTED, FIRST_GRADIENT, LAST_GRADIENT = FIRST_GRADIENT + 2, LOOP };

/* Operations, which are the last component. */
static const char *const primitives[] = {"dot_general", "dot",         "conv_general_dilated",
                                         "convolution", "ragged_dot*", "scaled_dot*",
                                         "einsum",      "matmul",      "transpose",
                                         "reshape",     "bmm",         "mm",
                                         "addmm",       "MatMul",      "BatchMatMul*",
                                         "Einsum",      "Conv2D*",     "convert_element_type",
                                         "aten__*",     "aten.*"};

/* Returns the length of the component at `at`: up to a `/` outside of parentheses. */
static size_t component(const char *at) {
    const char *end = at;
    for (long depth = 0; *end && (depth > 0 || *end != '/'); end++)
        depth += *end == '(' ? 1 : *end == ')' ? -1 : 0;
    return (size_t)(end - at);
}

/* Returns the layer in an op_name, or NULL if it names none, and in either case the direction. */
static char *layer_of_name(hlo_arena *arena, const char *op_name, const char **out_direction) {
    bool seen[LAST_GRADIENT + 1] = {false}, transformed[JVP + 1] = {false};
    char *layer = hlo_arena_alloc(arena, strlen(op_name) + 1), *to = layer;
    bool loop = false; /* the component before is `while` */
    for (const char *at = op_name; *at;) {
        const size_t size = component(at);
        const char *text = at, *end = at + size;
        at = end + (*end == '/');
        for (const char *open;
             text < end && end[-1] == ')' && (open = memchr(text, '(', (size_t)(end - text)));) {
            const size_t length = (size_t)(open - text);
            if (FIND_WORD(functions, text, length) >= 0) end = text;
            const int found = FIND_WORD(transformations, text, length);
            if (end == text || found < 0) break;
            if (found <= JVP) transformed[found] = true;
            text = open + 1;
            end--;
        }
        const size_t length = (size_t)(end - text);
        int wrapper = FIND_WORD(wrappers, text, length);
        /* In JAX's names, `body` and `cond` are parts of a loop, and `cond` is a conditional. */
        if ((loop && (has_form("body", text, length) || has_form("cond", text, length))) ||
            (has_form("cond", text, length) && has_form("branch_#_fun", at, component(at))))
            wrapper = LOOP;
        loop = wrapper == LOOP && has_form("while", text, length);
        if (wrapper >= 0 && wrapper <= LAST_GRADIENT) seen[wrapper] = true;
        if (!length || wrapper >= 0 || (!*at && FIND_WORD(primitives, text, length) >= 0)) continue;
        if (to != layer) *to++ = '/';
        memcpy(to, text, length);
        to += length;
    }
    *to = '\0';
    *out_direction = seen[RECOMPUTED] ? " (recomputed)"
                     : seen[FIRST_GRADIENT] || seen[LAST_GRADIENT] || transformed[TRANSPOSE]
                         ? " (backward)"
                     : transformed[JVP] ? " (forward)"
                                        : "";
    return *layer ? layer : NULL;
}

/* Returns the shape of the result, followed by the length of the contracting dimension if it is
 * known. */
static const char *shape_of(hlo_arena *arena, const hlo_verdict *v) {
    const char *dims = strchr(v->input_shape, '[');
    if (!dims || !strstr(v->operation, "dot") || v->flops == 0) return v->input_shape;
    double elements = 2;
    for (char *end; *dims && *dims != ']'; dims = end) {
        elements *= strtod(dims + 1, &end);
        if (end == dims + 1) break;
    }
    const double length = elements > 0 ? v->flops / elements : 0;
    if (*dims != ']' || length < 1 || length != floor(length)) return v->input_shape;
    return hlo_arena_format(arena, "%s k=%.0f", v->input_shape, length);
}

/* Returns the layer of a matmul: its op_name without functions, transformations, control flow and
 * the primitive, and with the direction. Without such a name, its source line, and otherwise its
 * operation and shape. */
static const char *layer_of(hlo_arena *arena, const hlo_verdict *v, bool *out_named) {
    const char *direction = "";
    const char *name = v->op_name ? layer_of_name(arena, v->op_name, &direction) : NULL;
    *out_named = name;
    if (name) return hlo_arena_format(arena, "%s%s", name, direction);
    if (!v->source_file)
        return hlo_arena_format(arena, "%s %s%s", v->operation, shape_of(arena, v), direction);
    return hlo_arena_format(arena, "%s:%ld%s", v->source_file, v->source_line, direction);
}

/* ---------------------------------------------------------------------------------------- model */

static size_t index_length(const char *text) {
    return *text == '*' ? 1 : strspn(text, "0123456789");
}

/* Returns the name with `*` instead of each index. */
static char *fold(hlo_arena *arena, const char *name) {
    char *folded = hlo_arena_format(arena, "%s", name), *to = folded;
    for (const char *at = folded; *at;) {
        const size_t length = index_length(at);
        *to++ = length ? '*' : *at;
        at += length ? length : 1;
    }
    *to = '\0';
    return folded;
}

/* Replaces the indices of `name` in which it differs from `other` by `*`. Both are equal if
 * folded. */
static void fold_differences(char *name, const char *other) {
    char *to = name;
    for (const char *at = name; *at;) {
        size_t length = index_length(at), size = index_length(other);
        if (length && (length != size || memcmp(at, other, size) != 0)) {
            *to++ = '*';
        } else {
            if (!length) length = size = 1;
            memmove(to, at, length);
            to += length;
        }
        at += length;
        other += size;
    }
    *to = '\0';
}

/* A matmul with the text that it shares with the other matmuls of its group. */
typedef struct keyed {
    const char *key;
    report_matmul *matmul;
} keyed;

static int by_key(const void *a, const void *b) {
    const keyed *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order) return order;
    return x->matmul < y->matmul ? -1 : x->matmul > y->matmul;
}

typedef struct ranked {
    report_group group;
    report_matmul *first; /* in text order */
    report_matmul **matmuls;
    size_t count;
} ranked;

static int by_figures(const report_figures *x, const report_figures *y) {
    if (x->saving != y->saving) return x->saving > y->saving ? -1 : 1;
    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

static int by_saving(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    const int order = by_figures(&x->group.figures, &y->group.figures);
    if (order) return order;
    return x->first < y->first ? -1 : x->first > y->first;
}

static int by_edit(const void *a, const void *b) {
    const report_edit *x = a, *y = b;
    const int order = by_figures(&x->figures, &y->figures);
    if (order) return order;
    return (int)hlo_reason_find(x->cause) - (int)hlo_reason_find(y->cause);
}

static const char slower_text[] =
    "the FP8 matmul is slower than the original as stock XLA compiles it, by the roofline model",
                  slower_hint[] = "compare with --min-gain=1, which keeps such matmuls wide";

static void add_matmul(report_model *m, const hlo_verdict *v, const hlo_report *report,
                       size_t index, const hlo_matmul_history *passage) {
    report_matmul *made = &m->matmuls[m->count++];
    *made = (report_matmul){.verdict = v,
                            .report = report,
                            .index = index,
                            .passage = passage,
                            .cause = v->reason             ? v->reason
                                     : report_is_slower(v) ? "slower"
                                                           : NULL,
                            .figures = figures_of(v, report->target)};
    count_verdict(&m->totals, v, &made->figures);
}

static void group_matmuls(report_model *m) {
    hlo_arena *arena = m->arena;
    keyed *keys = hlo_arena_array(arena, m->count, sizeof *keys);
    report_matmul **members = hlo_arena_array(arena, m->count, sizeof *members);
    for (size_t i = 0; i < m->count; i++) {
        report_matmul *at = &m->matmuls[i];
        at->layer = layer_of(arena, at->verdict, &at->named);
        keys[i] = (keyed){hlo_arena_format(arena, "%s\n%d %s\n%s",
                                           at->named ? fold(arena, at->layer) : at->layer,
                                           at->verdict->kind, at->cause ? at->cause : "",
                                           shape_of(arena, at->verdict)),
                          at};
    }
    if (m->count) qsort(keys, m->count, sizeof *keys, by_key);
    ranked *groups = hlo_arena_zero(arena, (m->count + 1) * sizeof *groups);
    for (size_t i = 0; i < m->count; i++) {
        report_matmul *at = members[i] = keys[i].matmul;
        const hlo_verdict *v = at->verdict;
        const bool first = !i || strcmp(keys[i - 1].key, keys[i].key) != 0;
        ranked *open = &groups[first ? m->group_count++ : m->group_count - 1];
        if (first)
            *open = (ranked){.group = {.layer = hlo_arena_format(arena, "%s", at->layer),
                                       .cause = at->cause,
                                       .shape = shape_of(arena, v),
                                       .named = !strstr(at->layer, shape_of(arena, v)),
                                       .hint = v->reason   ? v->hint
                                               : at->cause ? slower_hint
                                                           : NULL,
                                       .first = v,
                                       .one_source = true},
                             .first = at,
                             .matmuls = &members[i]};
        report_group *group = &open->group;
        /* Layers that are not names are equal to each other, and are not changed. */
        fold_differences((char *)group->layer, at->layer);
        group->one_source &= group->first->source_line == v->source_line &&
                             (group->first->source_file == v->source_file ||
                              (group->first->source_file && v->source_file &&
                               strcmp(group->first->source_file, v->source_file) == 0));
        if (v->runs * v->seconds > group->first->runs * group->first->seconds) group->first = v;
        add_figures(&group->figures, &at->figures);
        open->count++;
    }
    if (m->group_count) qsort(groups, m->group_count, sizeof *groups, by_saving);
    m->groups = hlo_arena_array(arena, m->group_count, sizeof *m->groups);
    for (size_t i = 0; i < m->group_count; i++) {
        m->groups[i] = groups[i].group;
        for (size_t j = 0; j < groups[i].count; j++) groups[i].matmuls[j]->group = &m->groups[i];
    }
}

static void list_edits(report_model *m) {
    report_edit *all = hlo_arena_zero(m->arena, (HLO_REASON_COUNT + 1) * sizeof *all);
    for (size_t i = 0; i < m->count; i++)
        if (m->matmuls[i].cause) {
            const hlo_verdict *v = m->matmuls[i].verdict;
            add_figures(&all[v->reason ? hlo_reason_find(v->reason) : HLO_REASON_COUNT].figures,
                        &m->matmuls[i].figures);
        }
    m->edits = all;
    for (size_t i = 0; i <= HLO_REASON_COUNT; i++) {
        report_edit edit = all[i];
        const bool reason = i < HLO_REASON_COUNT;
        edit.lints = reason ? m->totals.reasons[HLO_VERDICT_LINT][i] : 0;
        if (!edit.lints && !edit.figures.count) continue;
        edit.cause = reason ? hlo_reason_name(i) : "slower";
        edit.text = reason ? hlo_reason_text(i) : slower_text;
        edit.hint = reason ? hlo_reason_hint(i) : slower_hint;
        edit.page = reason ? hlo_reason_page(i) : NULL;
        m->edits[m->edit_count++] = edit;
    }
    if (m->edit_count) qsort(m->edits, m->edit_count, sizeof *m->edits, by_edit);
}

static hlo_status fill(report_model **out, const hlo_report *const *reports,
                       const hlo_history *const *histories, size_t count) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_arena *arena;
    report_model *m = *out = hlo_arena_new_with(&recover, sizeof *m, &arena);
    if (!m) return HLO_OUT_OF_MEMORY;
    m->arena = arena;
    size_t matmuls = 0, lints = 0;
    for (size_t i = 0; i < count; i++) {
        const hlo_report *r = histories ? hlo_history_report(histories[i]) : reports[i];
        matmuls += histories ? hlo_history_count(histories[i]) : r->verdict_count;
        lints += r->lint_count;
        if (i) continue;
        m->target = r->target;
        m->cuda = r->cuda;
    }
    m->matmuls = hlo_arena_array(arena, matmuls, sizeof *m->matmuls);
    m->lints = hlo_arena_array(arena, lints, sizeof(hlo_verdict *));
    for (size_t i = 0; i < count; i++) {
        const hlo_report *r = histories ? hlo_history_report(histories[i]) : reports[i];
        const size_t most = histories ? hlo_history_count(histories[i]) : r->verdict_count;
        for (size_t j = 0; j < most; j++) {
            const hlo_matmul_history *p = histories ? hlo_history_passage(histories[i], j) : NULL;
            if (p && p->gone)
                m->gone++;
            else
                add_matmul(m, p ? p->last : &r->verdicts[j], r, j, p);
        }
        for (size_t j = 0; j < r->lint_count; j++) {
            m->lints[m->totals.lints] = &r->lints[j].verdict;
            count_verdict(&m->totals, &r->lints[j].verdict, NULL);
        }
    }
    group_matmuls(m);
    list_edits(m);
    hlo_arena_set_recover(arena, NULL);
    return HLO_OK;
}

hlo_status report_model_new(const hlo_report *const *reports, const hlo_history *const *histories,
                            size_t count, report_model **out_model) {
    *out_model = NULL;
    const hlo_status status = fill(out_model, reports, histories, count);
    if (status == HLO_OK) return HLO_OK;
    report_model_free(*out_model);
    *out_model = NULL;
    return status;
}

void report_model_free(report_model *model) {
    if (model) hlo_arena_free(model->arena);
}

/* -------------------------------------------------------------------------------------- changes */

/* A matmul of an earlier report (side 0) or of the model (side 1). */
typedef struct compared {
    const char *key, *layer, *shape;
    int side;
    bool fp8;
    double seconds;
} compared;

static int by_compared_key(const void *a, const void *b) {
    const compared *x = a, *y = b;
    const int order = strcmp(x->key, y->key);
    if (order) return order;
    return x->side - y->side;
}

static int by_difference(const void *a, const void *b) {
    const report_change *x = a, *y = b;
    const double left = fabs(x->seconds[1] - x->seconds[0]),
                 right = fabs(y->seconds[1] - y->seconds[0]);
    if (left != right) return left > right ? -1 : 1;
    const int order = strcmp(x->layer, y->layer);
    return order ? order : strcmp(x->shape, y->shape);
}

static compared compare_as(hlo_arena *arena, const char *layer, const char *shape) {
    return (compared){
        .key = hlo_arena_format(arena, "%s\n%s", fold(arena, layer), shape),
        .layer = hlo_arena_format(arena, "%s", layer),
        .shape = hlo_arena_format(arena, "%s", shape),
    };
}

static hlo_status fill_changes(report_model *m, const json_t *document) {
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_arena_set_recover(m->arena, &recover);
    const json_t *dots = json_object_get(document, "dots");
    size_t count = 0, index;
    compared *all = hlo_arena_array(m->arena, json_array_size(dots) + m->count + 1, sizeof *all);
    const json_t *dot;
    json_array_foreach(dots, index, dot) {
        const char *layer = json_string_value(json_object_get(dot, "layer"));
        const char *shape = json_string_value(json_object_get(dot, "input_shape"));
        const char *verdict = json_string_value(json_object_get(dot, "verdict"));
        if (!layer || !shape || !verdict) break;
        all[count] = compare_as(m->arena, layer, shape);
        all[count].fp8 = strcmp(verdict, "wide") != 0;
        all[count].seconds = json_number_value(json_object_get(dot, "runs")) *
                             json_number_value(json_object_get(dot, "seconds"));
        count++;
    }
    if (!json_is_array(dots) || count < json_array_size(dots)) {
        hlo_arena_set_recover(m->arena, NULL);
        return HLO_OK;
    }
    m->earlier_seconds =
        json_number_value(json_object_get(json_object_get(document, "summary"), "seconds"));
    for (size_t i = 0; i < m->count; i++) {
        const report_matmul *at = &m->matmuls[i];
        all[count] = compare_as(m->arena, at->layer, at->verdict->input_shape);
        all[count].side = 1;
        all[count].fp8 = at->verdict->kind != HLO_VERDICT_WIDE;
        all[count++].seconds = at->verdict->runs * at->verdict->seconds;
    }
    qsort(all, count, sizeof *all, by_compared_key);
    m->changes = hlo_arena_array(m->arena, count, sizeof *m->changes);
    for (size_t i = 0, next; i < count; i = next) {
        report_change change = {.layer = all[i].layer, .shape = all[i].shape};
        for (next = i; next < count && strcmp(all[i].key, all[next].key) == 0; next++) {
            const compared *at = &all[next];
            fold_differences((char *)change.layer, at->layer);
            change.count[at->side]++;
            change.fp8[at->side] += at->fp8;
            change.seconds[at->side] += at->seconds;
        }
        const double *seconds = change.seconds;
        const double least = fmin(seconds[0], seconds[1]), most = fmax(seconds[0], seconds[1]);
        if (change.count[0] != change.count[1] || change.fp8[0] != change.fp8[1] ||
            most > VISIBLE * least)
            m->changes[m->change_count++] = change;
    }
    if (m->change_count) qsort(m->changes, m->change_count, sizeof *m->changes, by_difference);
    hlo_arena_set_recover(m->arena, NULL);
    return HLO_OK;
}

hlo_status report_model_compare(report_model *m, const char *path) {
    json_t *document = NULL;
    hlo_status status = report_baseline_open(path, NULL, &document);
    if (status == HLO_OK) status = fill_changes(m, document);
    json_decref(document);
    return status;
}
