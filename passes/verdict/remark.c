/* SPDX-License-Identifier: Apache-2.0 */
/* Manages slots. A slot has the current instruction and the facts of a matmul of the original
 * module. */
#include "passes/verdict/remark.h"

#include <string.h>

#include "ir/module/undo.h"
#include "passes/analysis/module_facts.h"
#include "passes/verdict/report.h"

static slot *find_slot(const hlo_report *report, const hlo_instruction *instr) {
    uint32_t found = instr->id < report->ids ? report->slot_of[instr->id] : 0;
    return found ? &report->slots[found - 1] : NULL;
}

static void grow_ids(hlo_report *report, uint32_t id) {
    const uint32_t ids = 2 * id + 64;
    uint32_t *grown = hlo_arena_zero(report->arena, ids * sizeof *grown);
    if (report->ids) memcpy(grown, report->slot_of, report->ids * sizeof *grown);
    report->slot_of = grown;
    report->ids = ids;
}

static void bind(hlo_report *report, uint32_t index, const hlo_instruction *instr) {
    if (instr->id >= report->ids) grow_ids(report, instr->id);
    report->slot_of[instr->id] = index + 1;
    report->slots[index].instr = instr;
    report->slots[index].judged = 0;
}

static slot *add_slot(hlo_report *report, const hlo_instruction *instr) {
    hlo_arena_grow(report->arena, &report->slots, report->count, &report->capacity,
                   sizeof *report->slots);
    uint32_t index = report->count++;
    report->slots[index] = (slot){.reason = HLO_REASON_COUNT, .offset = instr->offset};
    bind(report, index, instr);
    return &report->slots[index];
}

hlo_report *hlo_report_new(const char *frameworks, jmp_buf *recover) {
    hlo_arena *arena;
    hlo_report *report = hlo_arena_new_with(recover, sizeof *report, &arena);
    if (!report) return NULL;
    report->arena = arena;
    report->frameworks = frameworks;
    report->judging = 1;
    return report;
}

bool hlo_report_needs_rerun(const hlo_report *report) {
    return report->any_new;
}

void hlo_report_again(hlo_report *report, const hlo_report *closed) {
    report->kept_count = closed->keep_count;
    report->kept =
        hlo_arena_copy(report->arena, closed->keep, closed->keep_count * sizeof *closed->keep);
    if (closed->output_words)
        report->output_words = hlo_arena_format(report->arena, "%s", closed->output_words);
}

void hlo_remark_follow(hlo_pass_context *context, const hlo_instruction *from,
                       const hlo_instruction *to) {
    hlo_report *report = context->report;
    slot *left = find_slot(report, from), *other = find_slot(report, to);
    if (!left || left == other) return;
    if (other) {
        left->same_as = (uint32_t)(other - report->slots) + 1;
        other->wide |= left->wide;
    } else
        bind(report, (uint32_t)(left - report->slots), to);
}

void hlo_remark_relocated(hlo_pass_context *context, hlo_instruction *const *relocated) {
    slot *slots = context->report->slots;
    for (uint32_t i = 0; i < context->report->count; i++)
        if (relocated[slots[i].instr->id]) slots[i].instr = relocated[slots[i].instr->id];
}

static bool is_wide(const hlo_pass_context *context, const hlo_verdict *was) {
    return context->options->wide && hlo_wide_selects(context->options->wide, was);
}

void hlo_remark_copy(hlo_pass_context *context, const hlo_instruction *from,
                     const hlo_instruction *to) {
    hlo_report *report = context->report;
    slot *original = find_slot(report, from);
    if (!original) return;
    original->copied = true;
    uint32_t origin = (uint32_t)(original - report->slots);
    slot *made = add_slot(report, to); /* add_slot() may reallocate the slots */
    original = &report->slots[origin];
    made->origin = origin + 1;
    made->reason = original->reason;
    made->blocker = original->blocker;
    made->quantized = original->quantized;
    made->gain = original->gain;
    made->saving = original->saving;
    made->surroundings = original->surroundings;
    made->was = hlo_report_describe(report, to);
    made->was.instruction = original->was.instruction;
    made->wide = original->wide || is_wide(context, &made->was);
}

void hlo_remark_begin(hlo_pass_context *context) {
    context->report->judging++;
}

void hlo_remark_reason(hlo_pass_context *context, const hlo_instruction *matmul, hlo_reason reason,
                       const hlo_instruction *blocker) {
    slot *found = find_slot(context->report, matmul);
    if (!found || found->judged == context->report->judging) return;
    if (found->quantized && blocker && reason == hlo_reason_find("clamp-not-extremes")) {
        /* Computed bounds are those of a quantization that a pass inserted for another matmul. */
        const hlo_instruction *clamp = hlo_instr_operand(blocker, 0);
        const hlo_instruction *low = clamp->op == HLO_OP_CLAMP ? hlo_instr_operand(clamp, 0) : NULL;
        if (low && low->op == HLO_OP_BROADCAST) low = hlo_instr_operand(low, 0);
        if (low && low->op != HLO_OP_CONSTANT) return;
    }
    found->judged = context->report->judging;
    found->reason = reason;
    found->blocker = blocker ? hlo_report_input_name(context->report, blocker) : NULL;
}

void hlo_remark_clear(hlo_pass_context *context, const hlo_instruction *matmul) {
    slot *found = find_slot(context->report, matmul);
    if (!found) return;
    found->reason = HLO_REASON_COUNT;
    found->blocker = NULL;
}

void hlo_remark_quantized(hlo_pass_context *context, const hlo_instruction *dot, bool both,
                          double gain, double saving) {
    slot *found = find_slot(context->report, dot);
    if (!found) return;
    context->report->completes |= !both;
    found->quantized = true;
    found->gain = gain;
    found->saving = saving;
}

const char *hlo_remark_kept_wide(const hlo_pass_context *context, const hlo_instruction *dot) {
    const hlo_report *report = context->report;
    const slot *found = report->kept || context->options->wide ? find_slot(report, dot) : NULL;
    if (!found) return NULL;
    const uint32_t index = (uint32_t)(found - report->slots);
    if (found->wide) return "wide-by-option";
    return index < report->kept_count ? report->kept[index] : NULL;
}

static tally *find_tally(hlo_arena *arena, tallies *list, const char *name) {
    for (tally *t = list->first; t; t = t->next)
        if (strcmp(t->name, name) == 0) return t;
    tally *made = hlo_arena_zero(arena, sizeof *made);
    made->name = hlo_arena_format(arena, "%s", name);
    *(list->last ? &list->last->next : &list->first) = made;
    return list->last = made;
}

void hlo_remark_fired(hlo_pass_context *context, const char *rule) {
    find_tally(context->report->arena, &context->report->rules, rule)->times++;
}

void hlo_remark_time(hlo_pass_context *context, const char *pass, double seconds) {
    tally *t = find_tally(context->report->arena, &context->report->passes, pass);
    t->times++;
    t->seconds += seconds;
}

/* Opens a report. Allocates arrays once, because growing would leave old ones in the arena. */
void hlo_report_open(hlo_pass_context *context) {
    hlo_report *report = context->report;
    report->target = context->target;
    report->cuda = context->cuda;
    grow_ids(report, context->module->next_id);
    report->capacity = context->module->op_counts[HLO_OP_DOT] + 64;
    report->slots = hlo_arena_array(report->arena, report->capacity, sizeof *report->slots);
    if (context->options->lint || hlo_product_most(context->module))
        hlo_report_note_names(report, context->module);
    if (!hlo_product_most(context->module)) return;
    const bool *reached = hlo_facts_reached(context->module, context->scratch);
    for (hlo_computation *comp = context->module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = reached[comp->id] ? comp->first : NULL; instr;
             instr = hlo_instr_next(instr)) {
            if (hlo_product_kind_of(instr) == HLO_PRODUCT_NONE) continue;
            slot *made = add_slot(report, instr);
            made->was = hlo_report_describe(report, instr);
            made->wide = is_wide(context, &made->was);
            if (context->options->surroundings)
                made->surroundings = hlo_surroundings_of(instr, report->arena);
        }
}

struct hlo_attempt {
    const hlo_snapshot *module;
    slot *slots;
    uint32_t count;
    uint64_t changes;
};

const hlo_attempt *hlo_attempt_begin(hlo_pass_context *context) {
    const hlo_report *report = context->report;
    hlo_arena *scratch = context->scratch;
    hlo_attempt *attempt = hlo_arena_alloc(scratch, sizeof *attempt);
    *attempt = (hlo_attempt){
        .module = hlo_snapshot_take(context->module, scratch),
        .slots = hlo_arena_copy(scratch, report->slots, report->count * sizeof *report->slots),
        .count = report->count,
        .changes = context->changes};
    return attempt;
}

void hlo_attempt_undo(hlo_pass_context *context, const hlo_attempt *attempt) {
    hlo_snapshot_restore(context->module, attempt->module);
    context->order = NULL;
    context->changes = attempt->changes;
    hlo_report *report = context->report;
    /* Visit slots backwards: a copy of a copy passes on its reason before its origin does. */
    for (uint32_t i = report->count; i-- > 0;) {
        const slot *from = &report->slots[i];
        slot *to = i < attempt->count ? &attempt->slots[i] : &report->slots[from->origin - 1];
        to->reason = from->reason;
        to->blocker = from->blocker;
    }
    report->count = attempt->count;
    report->input_costs = NULL; /* the costs describe an intermediate module */
    if (report->ids) memset(report->slot_of, 0, report->ids * sizeof *report->slot_of);
    if (attempt->count)
        memcpy(report->slots, attempt->slots, attempt->count * sizeof *attempt->slots);
    for (uint32_t i = 0; i < attempt->count; i++) bind(report, i, report->slots[i].instr);
}
