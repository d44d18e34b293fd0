/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the constraints that a rewrite must preserve: see check.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text.h"
#include "tests/random/check/check.h"

typedef struct kept {
    char *why;
    size_t size;
} kept;

static bool lost(const kept *k, const char *what, const char *name) {
    snprintf(k->why, k->size, "%s: %s", name, what);
    return false;
}

static char *text_of(const hlo_module *module) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    hlo_module_print(module, NULL, hlo_file_writer(out));
    fclose(out);
    return text;
}

static bool same_text(const kept *k, const hlo_module *before, const hlo_module *after) {
    char *a = text_of(before), *b = text_of(after);
    bool same = a && b && !strcmp(a, b);
    free(a);
    free(b);
    return same || lost(k, "is scheduled, and has changed", "the module");
}

static bool is_scheduled(const hlo_module *module) {
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_IS_SCHEDULED) return module->attrs[i].u.i;
    return false;
}

static const hlo_computation *find_computation(const hlo_module *module, const char *name) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        if (!strcmp(comp->name, name)) return comp;
    return NULL;
}

static const hlo_instruction *find_instr(const hlo_computation *comp, const char *name) {
    for (const hlo_instruction *i = comp->first; i; i = i->next)
        if (!strcmp(i->name, name)) return i;
    return NULL;
}

/* ----------------------------------------------------------------------------------- what stays */

static bool is_elsewhere(const hlo_instruction *i) {
    return hlo_shape_is_array(i->shape) && i->shape->layout && i->shape->layout->memory_space;
}

static bool crosses(const hlo_instruction *i) {
    if (i->op == HLO_OP_TUPLE || i->op == HLO_OP_CALL || i->op == HLO_OP_WHILE ||
        i->op == HLO_OP_CONDITIONAL || i->op == HLO_OP_OPT_BARRIER)
        return false;
    bool yes = is_elsewhere(i);
    for (uint32_t o = 0; o < i->operand_count; o++) yes |= is_elsewhere(hlo_instr_operand(i, o));
    return yes;
}

static bool is_named(const hlo_instruction *named) {
    for (const hlo_instruction *i = named->parent->first; i; i = i->next) {
        const hlo_attr *control = hlo_instr_attr(i, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t c = 0; control && c < control->u.instrs->count; c++)
            if (control->u.instrs->v[c] == named) return true;
    }
    return false;
}

static bool is_end(const hlo_instruction *i) {
    return hlo_instr_attr(i, HLO_ATTR_CONTROL_PREDECESSORS) || is_named(i);
}

static bool names(const hlo_instruction *i, const char *predecessor) {
    const hlo_attr *control = hlo_instr_attr(i, HLO_ATTR_CONTROL_PREDECESSORS);
    for (uint32_t c = 0; control && c < control->u.instrs->count; c++)
        if (!strcmp(control->u.instrs->v[c]->name, predecessor)) return true;
    return false;
}

static bool stays(const kept *k, const hlo_instruction *was, const hlo_computation *in) {
    const hlo_instruction *is = find_instr(in, was->name);
    if (!is) return lost(k, "had to stay, and is gone", was->name);
    if (is->op != was->op || !hlo_shape_compatible(is->shape, was->shape) ||
        is_elsewhere(is) != is_elsewhere(was))
        return lost(k, "had to stay as it was", was->name);
    const hlo_attr *control = hlo_instr_attr(was, HLO_ATTR_CONTROL_PREDECESSORS);
    for (uint32_t c = 0; control && c < control->u.instrs->count; c++)
        if (!names(is, control->u.instrs->v[c]->name))
            return lost(k, "has lost a control predecessor", was->name);
    return true;
}

/* --------------------------------------------------------------------------------------- orders */

/* Marks all instructions that must run before `from`, by id. */
static void mark_before(const hlo_instruction *from, bool *marks) {
    if (marks[from->id]) return;
    marks[from->id] = true;
    for (uint32_t i = 0; i < from->operand_count; i++)
        mark_before(hlo_instr_operand(from, i), marks);
    const hlo_attr *control = hlo_instr_attr(from, HLO_ATTR_CONTROL_PREDECESSORS);
    for (uint32_t c = 0; control && c < control->u.instrs->count; c++)
        mark_before(control->u.instrs->v[c], marks);
}

/* Returns true for values that exist before execution. */
static bool is_given(const hlo_instruction *instr) {
    return instr->op == HLO_OP_PARAMETER || instr->op == HLO_OP_CONSTANT;
}

/* Checks that an end of a control dependency still runs after all ends that it had to run after. */
static bool same_order(const kept *k, const hlo_instruction *was, const hlo_computation *in) {
    const hlo_instruction *is = find_instr(in, was->name);
    bool *old = calloc(was->parent->module->next_id, 1), *new = calloc(in->module->next_id, 1);
    bool same = old && new;
    if (same) mark_before(was, old);
    if (same) mark_before(is, new);
    for (const hlo_instruction *i = was->parent->first; i && same; i = i->next) {
        if (!old[i->id] || !is_end(i) || is_given(i)) continue;
        const hlo_instruction *still = find_instr(in, i->name);
        same = still && new[still->id];
    }
    free(old);
    free(new);
    return same || lost(k, "no longer runs after what it ran after", was->name);
}

/* -------------------------------------------------------------------------------------- threads */

static bool same_instrs(const kept *k, const hlo_computation *was, const hlo_computation *is) {
    const hlo_instruction *a = was->first, *b = is->first;
    for (; a && b; a = a->next, b = b->next) {
        bool same = a->op == b->op && !strcmp(a->name, b->name) &&
                    hlo_shape_compatible(a->shape, b->shape) &&
                    a->operand_count == b->operand_count;
        for (uint32_t i = 0; same && i < a->operand_count; i++)
            same = !strcmp(hlo_instr_operand(a, i)->name, hlo_instr_operand(b, i)->name);
        if (!same) return lost(k, "is another thread's, and has changed", was->name);
    }
    return (!a && !b) || lost(k, "is another thread's, and has changed", was->name);
}

/* Returns true if the instruction runs on another thread. A collective runs on the module's thread:
 * it may have become synchronous. */
static bool is_host(const hlo_instruction *i) {
    const char *text = hlo_instr_str(i, HLO_ATTR_FRONTEND_ATTRIBUTES);
    const hlo_computation *called =
        i->op == HLO_OP_ASYNC_START ? hlo_instr_comp(i, HLO_ATTR_CALLS) : NULL;
    return (called && !hlo_op_is(called->root->op, HLO_COLLECTIVE)) ||
           (text && strstr(text, "_xla_compute_type=\"host\""));
}

typedef struct threads {
    kept k;
    const hlo_module *after;
    bool same;
} threads;

static void check_called(void *user, hlo_computation *called) {
    threads *t = user;
    const hlo_computation *is = find_computation(t->after, called->name);
    if (!t->same) return;
    t->same = is ? same_instrs(&t->k, called, is)
                 : lost(&t->k, "is another thread's, and is gone", called->name);
    for (const hlo_instruction *i = called->first; i && t->same; i = i->next)
        hlo_instr_visit_called(i, check_called, t);
}

static bool check_computation(const kept *k, const hlo_computation *was, const hlo_module *after) {
    const hlo_computation *is = find_computation(after, was->name);
    threads t = {.k = *k, .after = after, .same = true};
    for (const hlo_instruction *i = is ? was->first : NULL; i && t.same; i = i->next) {
        const bool end = is_end(i);
        const bool must = end || crosses(i) || is_host(i) || i->op == HLO_OP_OUTFEED ||
                          hlo_instr_int(i, HLO_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, 0);
        t.same = (!must || stays(k, i, is)) && (!end || same_order(k, i, is));
        if (t.same && is_host(i)) hlo_instr_visit_called(i, check_called, &t);
    }
    return t.same;
}

bool places_kept(const hlo_module *before, const hlo_module *after, char *why, size_t size) {
    const kept k = {why, size};
    if (is_scheduled(before)) return same_text(&k, before, after);
    for (const hlo_computation *comp = before->first; comp; comp = comp->next)
        if (!check_computation(&k, comp, after)) return false;
    return true;
}
