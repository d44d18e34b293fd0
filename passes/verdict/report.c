/* SPDX-License-Identifier: Apache-2.0 */
/* Creates verdicts from the slots after the last pass. Also matches the words of the option
 * `wide`. */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/module/ragged.h"
#include "ir/text/argument.h"
#include "ir/text/diag.h"
#include "ir/text/printer.h"
#include "ir/text/suggest.h"
#include "ir/text/writer.h"
#include "matmul/cost/flops.h"
#include "passes/analysis/module_facts.h"
#include "passes/verdict/judge.h"
#include "passes/verdict/report.h"

/* ---------------------------------------------------------------------------- facts of a matmul */

static const char *copy_text(hlo_arena *arena, const char *text) {
    return text ? hlo_arena_format(arena, "%s", text) : NULL;
}

static bool is_framework_file(const hlo_report *report, const char *file) {
    size_t length;
    for (const char *at = report->frameworks, *glob; (glob = hlo_next_word(&at, &length));) {
        char text[256];
        snprintf(text, sizeof text, "%.*s", (int)length, glob);
        if (fnmatch(text, file, 0) == 0) return true;
    }
    return false;
}

/* Finds the innermost frame, starting at `frame`, that has a file; with `own`, the file must be the
 * user's. Returns 0 if not found. Caches the results of all frames on the way, so that each frame
 * is visited once. */
static int64_t find_frame(hlo_report *report, const hlo_tables *tables, int64_t frame, bool own) {
    enum { NOWHERE = -1 };
    int64_t *places = report->places[own], end = frame, found = 0;
    while (hlo_tables_frame(tables, end) && !places[end]) {
        const char *file = hlo_frame_file(tables, end);
        const bool here = file && !(own && is_framework_file(report, file));
        places[end] = here ? end : NOWHERE; /* also ends the search at a cycle of frames */
        if (!here) end = hlo_frame_parent(tables, end);
    }
    if (hlo_tables_frame(tables, end) && places[end] != NOWHERE) found = places[end];
    for (; found && frame != end; frame = hlo_frame_parent(tables, frame)) places[frame] = found;
    return found;
}

hlo_verdict hlo_report_describe(hlo_report *report, const hlo_instruction *instr) {
    hlo_arena *arena = report->arena;
    hlo_verdict verdict = {.struct_size = sizeof verdict,
                           .instruction = copy_text(arena, instr->name),
                           .epilogue = "",
                           .operands = ""};
    hlo_matmul matmul;
    hlo_product product;
    verdict.shape = hlo_shape_copy_text(arena, instr->shape, false);
    verdict.operation = hlo_ops[instr->op].name;
    if (hlo_product_read(instr, &product)) {
        verdict.shape = hlo_shape_copy_text(arena, product.d, false);
        verdict.operands =
            hlo_arena_format(arena, "%s %s", hlo_shape_copy_text(arena, product.a->shape, false),
                             hlo_shape_copy_text(arena, product.b->shape, false));
        verdict.flops = product.flops;
        hlo_ragged ragged;
        if (hlo_ragged_read(instr, &ragged)) verdict.groups = ragged.groups;
        if (instr->op == HLO_OP_CUSTOM_CALL)
            verdict.operation = copy_text(arena, hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET));
        if (instr->op != HLO_OP_DOT && hlo_product_matmul(instr, &matmul)) {
            const hlo_scale_info *a = &hlo_scale_modes[matmul.a_mode];
            const hlo_scale_info *b = &hlo_scale_modes[matmul.b_mode];
            const char *scales = matmul.a_mode == HLO_SCALE_VEC32   ? " +mxfp8-scales"
                                 : matmul.a_mode == HLO_SCALE_VEC16 ? " +nvfp4-scales"
                                 : a->along || b->along             ? " +block-scales"
                                 : a->across || b->across           ? " +row-scales"
                                                                    : "";
            verdict.epilogue = hlo_arena_format(
                arena, "%s%s%s%s%s", hlo_epilogues[matmul.epilogue].name,
                matmul.beta != 0 ? " +matrix" : "", scales, matmul.amax ? " +amax" : "",
                hlo_type_is_fp8(matmul.d->type) ? " +fp8-output" : "");
            if (a->across || b->across)
                verdict.scale_modes = hlo_arena_format(arena, "%s %s", a->name, b->name);
            verdict.block_size = a->along ? a->along : b->along;
        }
    }
    verdict.op_name = copy_text(arena, hlo_instr_op_name(instr));
    const hlo_tables *tables = &instr->parent->module->tables;
    const hlo_attr *id = hlo_instr_metadata(instr, HLO_ATTR_STACK_FRAME_ID);
    const hlo_attr *file = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_FILE);
    const hlo_attr *line = hlo_instr_metadata(instr, HLO_ATTR_SOURCE_LINE);
    if (id && (report->frames != tables->frames || !report->frames)) {
        report->frames = tables->frames;
        for (unsigned own = 0; own < 2; own++)
            report->places[own] =
                hlo_arena_zero(arena, (tables->frame_count + 1) * sizeof *report->places[own]);
    }
    /* The innermost frame in a user's file, otherwise the innermost frame; 0 if unknown. */
    int64_t frame = id ? find_frame(report, tables, id->u.i, true) : 0;
    if (id && !frame) frame = find_frame(report, tables, id->u.i, false);
    if (frame) {
        verdict.source_file = hlo_frame_file(tables, frame);
        verdict.source_line = (long)hlo_frame_location(tables, frame)->line;
    } else if (file && !is_framework_file(report, file->u.str)) {
        verdict.source_file = file->u.str;
        verdict.source_line = line ? (long)line->u.i : 0;
    }
    if (verdict.source_line < 0) verdict.source_line = 0; /* negative numbers count as unknown */
    verdict.source_file = copy_text(report->arena, verdict.source_file);
    return verdict;
}

/* ------------------------------------------------------------------------------ lints and costs */

void hlo_verdict_set_reason(hlo_verdict *verdict, hlo_reason reason) {
    verdict->reason = hlo_reason_name(reason);
    verdict->message = hlo_reason_text(reason);
    verdict->hint = hlo_reason_hint(reason);
}

void hlo_remark_lint(hlo_pass_context *context, hlo_reason reason, const hlo_instruction *at,
                     const char *format, ...) {
    hlo_report *report = context->report;
    hlo_arena *arena = report->arena;
    hlo_arena_grow(arena, &report->lints, report->lint_count, &report->lint_capacity,
                   sizeof *report->lints);
    lint *made = &report->lints[report->lint_count++];
    *made = (lint){hlo_report_describe(report, at), reason, at->offset};
    made->verdict.instruction = hlo_report_input_name(report, at);
    made->verdict.kind = HLO_VERDICT_LINT;
    hlo_verdict_set_reason(&made->verdict, reason);
    if (!format) return;
    char particulars[256];
    va_list args;
    va_start(args, format);
    vsnprintf(particulars, sizeof particulars, format, args);
    va_end(args);
    made->verdict.message = hlo_arena_format(arena, "%s: %s", made->verdict.message, particulars);
}

static int lint_order(const void *a, const void *b) {
    const lint *x = a, *y = b;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->reason != y->reason) return x->reason < y->reason ? -1 : 1;
    return x->verdict.instruction == y->verdict.instruction
               ? 0
               : strcmp(x->verdict.instruction, y->verdict.instruction);
}

/* Records the current costs as the costs of the input. */
static const hlo_costs *note_costs(hlo_pass_context *context, const bool *needed) {
    hlo_report *report = context->report;
    report->input_costs =
        hlo_costs_record(context->module, needed, context->target, report->arena, context->scratch);
    for (uint32_t i = 0; i < report->count; i++)
        report->slots[i].costed_id = report->slots[i].instr->id;
    return report->input_costs;
}

hlo_status hlo_pass_record_costs(hlo_pass_context *context) {
    if (context->report->slots && !context->report->input_costs)
        note_costs(context, hlo_facts_live(context->module, context->scratch));
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- verdicts */

typedef struct closing {
    hlo_report *report;
    const hlo_costs *costs;
    const double *runs;  /* by computation id: execution counts */
    const bool *assumed; /* by computation id: the count is assumed */
    double min_gain;
    const char *recipe;  /* the recipe of options->quantize */
    bool committed;      /* as in hlo_pass_context */
    const bool *present; /* by instruction id: true if the instruction is needed */
    hlo_judge_context *judging;
    const hlo_module *module;
    const hlo_instruction **callers; /* by computation id: the call, if there is one */
    uint32_t line, line_start;       /* line number of the last position, and offset of this line */
    const char *file;
} closing;

/* Sets line and column. Verdicts are visited in text order, and so are lints, so that the lines
 * between two positions are counted once. */
static void set_position(closing *c, hlo_verdict *verdict, uint32_t offset) {
    verdict->file = c->file;
    if (!c->module->source_size) return;
    if (!c->line || offset < c->line_start) {
        c->line = c->module->source_line;
        c->line_start = 0;
    }
    const char *source = c->module->source, *at = source + c->line_start;
    for (const char *end; (end = memchr(at, '\n', (size_t)(source + offset - at))); at = end + 1)
        c->line++;
    c->line_start = (uint32_t)(at - source);
    verdict->line = c->line;
    verdict->column = offset - c->line_start + 1;
}

static const slot *current_slot(const hlo_report *report, const slot *s) {
    while (s->same_as) s = &report->slots[s->same_as - 1];
    return s;
}

/* Keeps the matmul of a slot wide in the next run. `reason` is a static text. Only a matmul that
 * was an FP8 call in the input is still one in the next run. */
static void keep_wide(hlo_report *report, const slot *s, const char *reason) {
    const char **first = &report->keep[s - report->slots],
               **last = &report->keep[current_slot(report, s) - report->slots];
    report->any_new |= !*first || !*last;
    if (!*first) *first = reason;
    if (!*last) *last = reason;
}

/* Finds the call of each computation that one call refers to. */
static const hlo_instruction **find_callers(const hlo_module *module, hlo_arena *arena) {
    const hlo_instruction **callers =
        hlo_arena_zero(arena, module->next_computation_id * sizeof(hlo_instruction *));
    bool *called = hlo_arena_zero(arena, module->next_computation_id * sizeof *called);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            const hlo_computation *callee =
                i->op == HLO_OP_CALL ? hlo_instr_comp(i, HLO_ATTR_TO_APPLY) : NULL;
            if (!callee) continue;
            callers[callee->id] = called[callee->id] ? NULL : i;
            called[callee->id] = true;
        }
    return callers;
}

/* Returns the op_name that inlining the calls around a matmul would produce. The names of the input
 * depend on the caller, and whether the passes inline depends on whether they convert a matmul. */
static const char *op_name_of(const closing *c, const hlo_instruction *matmul,
                              const char *op_name) {
    enum { MAX_CALLS = 64 };
    const hlo_instruction *caller = c->callers[matmul->parent->id];
    for (int calls = 0; op_name && caller && calls < MAX_CALLS; calls++) {
        const char *outer = hlo_instr_op_name(caller);
        if (outer) op_name = hlo_arena_format(c->report->arena, "%s/%s", outer, op_name);
        caller = c->callers[caller->parent->id];
    }
    return op_name;
}

static hlo_verdict judge(closing *c, slot *s) {
    hlo_report *report = c->report;
    hlo_verdict verdict = s->was;
    verdict.input_instruction = s->was.instruction;
    verdict.input_shape = s->was.shape;
    verdict.kind = HLO_VERDICT_WIDE;
    const slot *now = current_slot(report, s);
    const bool present = c->present[now->instr->id];
    if (present) verdict.op_name = op_name_of(c, now->instr, verdict.op_name);
    hlo_reason reason = now->reason;
    const char *blocker = now->blocker;
    if (!present) {
        reason = HLO_REASON_UNUSED;
        blocker = NULL;
    } else if (hlo_matmul_is_call(now->instr)) {
        hlo_verdict call = hlo_report_describe(report, now->instr);
        verdict.instruction = s->output = call.instruction;
        verdict.shape = call.shape;
        verdict.operands = call.operands;
        verdict.epilogue = call.epilogue;
        verdict.scale_modes = call.scale_modes;
        verdict.block_size = call.block_size;
        verdict.kind = reason == HLO_REASON_COUNT ? HLO_VERDICT_FP8 : HLO_VERDICT_MISSED;
    } else {
        /* The matmul is not an FP8 call of this project or of XLA. */
        const hlo_judgment judgment = hlo_judge(c->judging, now->instr, reason);
        verdict.kind = judgment.kind;
        verdict.fusion = judgment.fusion;
        if (judgment.kind == HLO_VERDICT_FP8)
            verdict.epilogue = *judgment.epilogue ? judgment.epilogue : verdict.operation;
        if (judgment.reason != reason || judgment.blocker)
            blocker = judgment.blocker ? hlo_report_input_name(report, judgment.blocker) : NULL;
        reason = judgment.reason;
    }
    if (reason != HLO_REASON_COUNT) {
        hlo_verdict_set_reason(&verdict, reason);
        verdict.blocker = copy_text(report->arena, blocker);
    }
    if (report->surroundings && verdict.kind != HLO_VERDICT_WIDE)
        report->surroundings[report->verdict_count].side[1] =
            hlo_surroundings_of(now->instr, report->arena);
    if (report->surroundings) report->surroundings[report->verdict_count].side[0] = s->surroundings;
    if (present) {
        const hlo_costs *input = c->report->input_costs;
        hlo_cost as_it_was = hlo_costs_of(input, c->costs, s->costed_id);
        hlo_cost as_it_is = hlo_costs_of(c->costs, input, now->instr->id);
        verdict.input_bytes = as_it_was.bytes;
        verdict.input_seconds = as_it_was.seconds;
        verdict.wide_seconds = as_it_was.wide_seconds;
        verdict.bytes = as_it_is.bytes;
        verdict.seconds = as_it_is.seconds;
        verdict.compute_seconds = as_it_is.compute_seconds;
        if (verdict.kind == HLO_VERDICT_WIDE)
            verdict.fp8_seconds = hlo_costs_in_fp8(c->costs, now->instr);
        else if (!now->quantized && as_it_was.wide_seconds > 0 &&
                 as_it_was.wide_seconds < c->min_gain * as_it_is.seconds)
            keep_wide(c->report, s, "gain-below-minimum");
    }
    if (now->quantized) {
        verdict.quantized = c->recipe;
        verdict.predicted_gain = now->gain;
        verdict.predicted_saving = now->saving;
        if (verdict.kind == HLO_VERDICT_WIDE && c->committed) keep_wide(report, s, verdict.reason);
    }
    verdict.runs = present ? c->runs[now->instr->parent->id] : 1;
    verdict.runs_assumed = present && c->assumed[now->instr->parent->id];
    set_position(c, &verdict, s->offset);
    return verdict;
}

static int by_position(const void *a, const void *b) {
    const slot *const *x = a, *const *y = b;
    if ((*x)->offset != (*y)->offset) return (*x)->offset < (*y)->offset ? -1 : 1;
    return *x < *y ? -1 : *x > *y;
}

/* Returns the recipe in the option `quantize`, without the words after it. */
static const char *recipe_of(hlo_arena *arena, const char *quantize) {
    return quantize ? hlo_arena_format(arena, "%.*s", (int)strcspn(quantize, ","), quantize) : NULL;
}

void hlo_report_close(hlo_pass_context *context) {
    hlo_report *report = context->report;
    const hlo_module *module = context->module;
    closing c = {.report = report,
                 .judging = hlo_judge_context_new(context),
                 .module = module,
                 .min_gain = context->options->min_gain,
                 .recipe = recipe_of(report->arena, context->options->quantize),
                 .committed = context->committed,
                 .file = copy_text(report->arena, module->file)};
    report->module = copy_text(report->arena, module->name);
    report->file = c.file;
    c.present = hlo_facts_live(module, context->scratch);
    /* If the rewriter did not run, the costs are the costs of the input. */
    c.costs = report->input_costs ? hlo_costs_record(module, c.present, context->target,
                                                     context->scratch, context->scratch)
                                  : note_costs(context, c.present);
    report->keep_count = report->count > report->kept_count ? report->count : report->kept_count;
    report->keep = hlo_arena_zero(report->arena, report->keep_count * sizeof *report->keep);
    if (report->kept) memcpy(report->keep, report->kept, report->kept_count * sizeof *report->kept);
    slot **order = hlo_arena_array(context->scratch, report->count, sizeof *order);
    size_t count = 0;
    for (uint32_t i = 0; i < report->count; i++) {
        slot *s = &report->slots[i];
        if (!s->copied || c.present[s->instr->id]) order[count++] = s;
    }
    if (count) qsort(order, count, sizeof *order, by_position);
    double *runs = hlo_arena_array(context->scratch, module->next_computation_id, sizeof *runs);
    bool *assumed = hlo_arena_array(context->scratch, module->next_computation_id, sizeof *assumed);
    hlo_run_counts(module, runs, assumed);
    c.runs = runs;
    c.assumed = assumed;
    c.callers = find_callers(module, context->scratch);
    report->verdicts = hlo_arena_array(report->arena, count, sizeof *report->verdicts);
    if (context->options->surroundings)
        report->surroundings =
            hlo_arena_zero(report->arena, (count + 1) * sizeof *report->surroundings);
    for (; report->verdict_count < count; report->verdict_count++)
        report->verdicts[report->verdict_count] = judge(&c, order[report->verdict_count]);
    /* Sort lints in text order, and keep one for all copies made by inlining. */
    uint32_t kept = 0;
    if (report->lint_count)
        qsort(report->lints, report->lint_count, sizeof *report->lints, lint_order);
    for (uint32_t i = 0; i < report->lint_count; i++) {
        lint *at = &report->lints[i], *last = kept ? &report->lints[kept - 1] : NULL;
        if (last && module->source_size && last->offset == at->offset && last->reason == at->reason)
            continue;
        set_position(&c, &at->verdict, at->offset);
        report->lints[kept++] = *at;
    }
    report->lint_count = kept;
}

void hlo_report_free(hlo_report *report) {
    if (report) hlo_arena_free(report->arena);
}

bool hlo_report_is_quantized(const hlo_report *report) {
    bool any = false;
    for (size_t i = 0; i < report->verdict_count; i++) {
        const hlo_verdict *v = &report->verdicts[i];
        if (v->kind == HLO_VERDICT_WIDE) continue;
        if (!v->quantized) return false;
        any = true;
    }
    return any && !report->completes;
}

size_t hlo_report_lint_count(const hlo_report *report) {
    return report->lint_count;
}

const hlo_verdict *hlo_report_lint(const hlo_report *report, size_t index) {
    return &report->lints[index].verdict;
}

size_t hlo_report_count(const hlo_report *report) {
    return report->verdict_count;
}

const hlo_verdict *hlo_report_verdict(const hlo_report *report, size_t index) {
    return &report->verdicts[index];
}

hlo_status hlo_report_print_times(const hlo_report *report, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    for (const tally *t = report->passes.first; t; t = t->next)
        fprintf(out, "%10.3f ms  %4llu x  %s\n", 1e3 * t->seconds, (unsigned long long)t->times,
                t->name);
    for (const tally *t = report->rules.first; t; t = t->next)
        fprintf(out, "%10s     %4llu x  rule %s\n", "", (unsigned long long)t->times, t->name);
    return hlo_writer_close(out, HLO_OK);
}

static int name_order(const void *a, const void *b) {
    const input_name *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void hlo_report_note_names(hlo_report *report, const hlo_module *module) {
    input_name *names = hlo_arena_array(report->arena, module->next_id, sizeof *names);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            names[report->name_count++] =
                (input_name){instr->offset, hlo_arena_format(report->arena, "%s", instr->name)};
    if (report->name_count) qsort(names, report->name_count, sizeof *names, name_order);
    report->names = names;
}

const char *hlo_report_input_name(const hlo_report *report, const hlo_instruction *instr) {
    const input_name key = {instr->offset, NULL}, *found = NULL;
    if (report->name_count)
        found = bsearch(&key, report->names, report->name_count, sizeof key, name_order);
    /* Instructions that the caller added have no own offset. */
    const input_name *end = report->names + report->name_count;
    const bool unique = found && (found == report->names || found[-1].offset != found->offset) &&
                        (found + 1 == end || found[1].offset != found->offset);
    return unique ? found->name : hlo_arena_format(report->arena, "%s", instr->name);
}

/* ------------------------------------------------------------------------------ the wide option */

/* Words of hlo_pass_options.wide are instruction names, op_names, lines, shapes, and globs. A word
 * that starts with `%` is an instruction name, and not a glob. */
enum { WORD_SIZE = 1024, SHOWN = 3 };

/* Compares the texts before matching a glob, because an op_name may contain brackets. */
static bool matches(const char *word, const char *name) {
    return name && (strcmp(word, name) == 0 || fnmatch(word, name, 0) == 0);
}

/* Copies the next word of a list. Returns false at the end. */
static bool take_word(const char **list, char *out) {
    size_t length;
    const char *at = hlo_next_word(list, &length);
    if (at) snprintf(out, WORD_SIZE, "%.*s", (int)length, at);
    return at;
}

static const char *name_of(const hlo_verdict *v) {
    return v->input_instruction ? v->input_instruction : v->instruction;
}

/* True if the word matches the shape of the result in the input, written as 8192x4096xbf16: the
 * notation of HLO contains commas, which separate words, and brackets, which globs interpret. */
static bool matches_shape(const char *word, const hlo_verdict *v) {
    const char *shape = v->input_shape ? v->input_shape : v->shape;
    const char *dims = shape ? strchr(shape, '[') : NULL;
    char text[WORD_SIZE];
    if (!dims || *shape == '(' || strlen(shape) + 1 >= sizeof text) return false;
    char *out = text;
    for (const char *at = dims + 1; *at && *at != ']'; at++) *out++ = *at == ',' ? 'x' : *at;
    if (out != text) *out++ = 'x';
    snprintf(out, sizeof text - (size_t)(out - text), "%.*s", (int)(dims - shape), shape);
    return matches(word, text);
}

/* True if the word selects the verdict by a name, the shape, or FOLDER/FILE:LINE or its part after
 * a slash. */
static bool selects(const char *word, const hlo_verdict *v) {
    if (*word == '%') return strcmp(word + 1, name_of(v)) == 0;
    if (matches(word, name_of(v)) || matches(word, v->op_name) || matches_shape(word, v))
        return true;
    if (!v->source_file || !v->source_line) return false;
    char place[WORD_SIZE];
    snprintf(place, sizeof place, "%s:%ld", v->source_file, v->source_line);
    const char *at = place;
    while (!matches(word, at) && (at = strchr(at, '/'))) at++;
    return at != NULL;
}

bool hlo_wide_selects(const char *list, const hlo_verdict *v) {
    for (char word[WORD_SIZE]; take_word(&list, word);)
        if (selects(word, v)) return true;
    return false;
}

void hlo_report_keep_outputs(hlo_report *report, const char *wide) {
    for (char word[WORD_SIZE]; take_word(&wide, word);) {
        bool in_input = false, in_output = false;
        for (uint32_t i = 0; i < report->count && !in_input; i++)
            in_input = selects(word, &report->slots[i].was);
        for (uint32_t i = 0; i < report->count && !in_input; i++) {
            const slot *s = &report->slots[i];
            if (!s->output || !matches(word, s->output)) continue;
            keep_wide(report, s, "wide-by-option");
            in_output = true;
        }
        if (in_output)
            report->output_words =
                report->output_words
                    ? hlo_arena_format(report->arena, "%s,%s", report->output_words, word)
                    : hlo_arena_format(report->arena, "%s", word);
    }
}

hlo_status hlo_reports_check_wide(const hlo_report *const *reports, size_t count, const char *wide,
                                  const char *file, const hlo_diag_sink *sink) {
    hlo_status status = HLO_OK;
    for (char word[WORD_SIZE]; take_word(&wide, word);) {
        hlo_suggestion near = hlo_suggest(word);
        bool found = strcmp(word, "*") == 0; /* every matmul, also of a module without matmuls */
        for (size_t r = 0; r < count && !found; r++) {
            /* Accept a word for which hlo_report_keep_outputs() has found a call. */
            const char *list = reports[r]->output_words;
            for (char listed[WORD_SIZE]; !found && list && take_word(&list, listed);)
                found = strcmp(listed, word) == 0;
            for (size_t i = 0; i < reports[r]->verdict_count && !found; i++) {
                const hlo_verdict *v = &reports[r]->verdicts[i];
                found = selects(word, v);
                hlo_suggest_offer(&near, name_of(v));
                hlo_suggest_offer(&near, v->instruction);
                if (v->op_name) hlo_suggest_offer(&near, v->op_name);
            }
        }
        if (found) continue;
        char names[512] = "; the input has ";
        const size_t used = strlen(names);
        /* List the first matmuls by names that the option `wide` accepts. */
        char *out = names + used;
        const size_t size = sizeof names - used;
        size_t total = 0, shown = 0;
        for (size_t r = 0; r < count; r++)
            for (size_t i = 0; i < reports[r]->verdict_count && shown < size; i++) {
                const hlo_verdict *v = &reports[r]->verdicts[i];
                if (total++ >= SHOWN) continue;
                shown += (size_t)snprintf(out + shown, size - shown, "%s%s", total > 1 ? ", " : "",
                                          name_of(v));
                if (v->source_file && v->source_line && shown < size) {
                    const char *slash = strrchr(v->source_file, '/');
                    shown += (size_t)snprintf(out + shown, size - shown, " (%s:%ld)",
                                              slash ? slash + 1 : v->source_file, v->source_line);
                }
            }
        if (!total) snprintf(out, size, "no matmuls");
        if (total > SHOWN && shown < size)
            snprintf(out + shown, size - shown, " and %zu more", total - SHOWN);
        status =
            hlo_diag_refuse(sink, HLO_DIAG_NAME, file, 0, 0, "no matmul matches '%s' in wide%s",
                            word, near.best ? hlo_suggest_meant(&near) : names);
    }
    return status;
}
