/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: instructions and computations, beyond the shape rules of ir/infer. */
#include "ir/verify/verify.h"
#include "ir/float/c_locale.h"
#include "ir/infer/infer.h"
#include "ir/intern.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/verify/context.h"

#include <string.h>

/* --------------------------------------------------------------------- computations, one by one */

/* Checks that `def` is in the same computation as `user` and before it. `how` is its role, for the
 * message. */
static bool check_order(verifier *v, const hlo_instr *user, const hlo_instr *def, const char *how) {
    if (!def->parent)
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s was removed", how, def->name,
                         user->name);
    else if (def->parent != user->parent)
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s is in another computation, %%%s", how,
                         def->name, user->name, def->parent->name);
    else if (!v->passed[def->id])
        hlo_verify_error(v, user->offset, "%s %%%s of %%%s must be defined before it", how,
                         def->name, user->name);
    else
        return true;
    if (def->parent) hlo_verify_note(v, def->offset, "%%%s is declared here", def->name);
    return false;
}

/* ----------------------------------------------------------------------------- starts and dones */

static void note_operand(verifier *v, const hlo_instr *instr, uint32_t number) {
    const hlo_instr *operand = hlo_instr_operand(instr, number);
    if (operand->offset == instr->offset) return;
    for (uint32_t i = 0; i < number; i++)
        if (hlo_instr_operand(instr, i) == operand) return;
    hlo_verify_note(v, operand->offset, "operand %u, %%%s, is %s", number, operand->name,
                    hlo_verify_text(v, operand->shape));
}

/* Checks that a start has one user, a done or an update, and that the operand of a done or an
 * update is a matching start. A start that is checked in isolation may not have a user yet. */
static void check_async(verifier *v, const hlo_instr *instr) {
    const uint32_t users = hlo_instr_user_count(instr);
    if (hlo_op_async_pair(instr->op, HLO_OP_INVALID) && (v->passed || users)) {
        const hlo_instr *user = instr->uses ? instr->uses->user : NULL;
        if (users != 1) {
            hlo_verify_error(v, instr->offset, "%s %%%s has %u users, expected one that ends it",
                             hlo_ops[instr->op].name, instr->name, users);
            for (const hlo_use *use = instr->uses; use; use = use->next)
                hlo_verify_note(v, use->user->offset, "%%%s uses it here", use->user->name);
        } else if (!user) {
            hlo_verify_error(v, instr->offset, "%s %%%s is the root, so nothing ends it",
                             hlo_ops[instr->op].name, instr->name);
        } else if (!hlo_op_async_pair(instr->op, user->op)) {
            hlo_verify_error(v, instr->offset, "%s %%%s is used by %s %%%s, which does not end it",
                             hlo_ops[instr->op].name, instr->name, hlo_ops[user->op].name,
                             user->name);
            hlo_verify_note(v, user->offset, "%%%s is declared here", user->name);
        }
    }
    const hlo_instr *start = instr->operand_count ? hlo_instr_operand(instr, 0) : NULL;
    if (start && hlo_op_async_pair(HLO_OP_INVALID, instr->op) &&
        !hlo_op_async_pair(start->op, instr->op)) {
        hlo_verify_error(v, instr->offset, "%s: operand %%%s is %s, expected a matching start",
                         hlo_ops[instr->op].name, start->name, hlo_ops[start->op].name);
        hlo_verify_note(v, start->offset, "%%%s is declared here", start->name);
    }
}

/* Checks an instruction in isolation. `sound`: its operands are defined before it. */
static void check_itself(verifier *v, const hlo_instr *instr, bool sound) {
    hlo_verify_shape(v, instr->offset, instr->shape, "shape");
    bool given[HLO_ATTR_COUNT] = {false};
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        const hlo_attr *attr = &instr->attrs[i];
        const char *name = hlo_attrs_info[attr->id].name;
        if (!hlo_op_allows(instr->op, attr->id))
            hlo_verify_error(v, instr->offset, "%s has no attribute '%s'", hlo_ops[instr->op].name,
                             name);
        if (given[attr->id]) hlo_verify_error(v, instr->offset, "attribute '%s' is repeated", name);
        given[attr->id] = true;
        const char *words = hlo_attr_values(instr->op, attr->id);
        if (words && !hlo_word_in(words, attr->u.str, strlen(attr->u.str)))
            hlo_verify_error(v, instr->offset, "%s: invalid %s '%s', expected one of%s",
                             hlo_ops[instr->op].name, name, attr->u.str, words);
    }
    hlo_verify_attrs(v, instr);
    check_async(v, instr);
    if (instr->op == HLO_OP_PARAMETER) {
        const hlo_computation *comp = instr->parent;
        int64_t number = instr->u.parameter;
        if (number < 0 || number >= comp->parameter_count || comp->parameters[number] != instr)
            hlo_verify_error(v, instr->offset,
                             "%%%s: parameter number %lld of %%%s is invalid or used twice",
                             instr->name, (long long)number, comp->name);
    }
    if (instr->op == HLO_OP_CONSTANT) {
        const hlo_literal *literal = instr->u.literal;
        if (!literal)
            hlo_verify_error(v, instr->offset, "%%%s has no value", instr->name);
        else if (!hlo_shape_compatible(literal->shape, instr->shape))
            hlo_verify_error(v, instr->offset, "the value of %%%s is %s, but its shape is %s",
                             instr->name, hlo_verify_text(v, literal->shape),
                             hlo_verify_text(v, instr->shape));
    }
    char why[HLO_VERIFY_TEXT];
    uint32_t blamed;
    if (!sound || hlo_infer_check(instr, v->scratch, why, sizeof why, &blamed)) return;
    hlo_verify_error(v, instr->offset, "%s", why);
    /* Add notes about the operands; `blamed` is the operand at fault. */
    enum { MOST = 4 };
    uint32_t first = 0, count = instr->operand_count;
    while (first < count && hlo_instr_operand(instr, first)->offset != blamed) first++;
    if (first < count)
        note_operand(v, instr, first);
    else if (blamed != HLO_NOWHERE && blamed != instr->offset)
        hlo_verify_note(v, blamed, "declared here");
    for (uint32_t i = 0; i < count && i < MOST; i++)
        if (i != first) note_operand(v, instr, i);
}

static void keep_first(void *message, const hlo_diag *diag) {
    char *first = message;
    if (diag->severity == HLO_ERROR && !*first)
        snprintf(first, HLO_VERIFY_TEXT, "%s", diag->message);
}

const char *hlo_instr_fault(const hlo_instr *instr, hlo_arena *scratch) {
    char *first = hlo_arena_zero(scratch, HLO_VERIFY_TEXT);
    const hlo_diag_sink sink = {.emit = keep_first, .user = first};
    verifier v = {.module = instr->parent->module,
                  .sink = &sink,
                  .scratch = scratch,
                  .errors = hlo_error_budget_new(1)};
    check_itself(&v, instr, true);
    return *first ? first : NULL;
}

static void count_call(void *count, hlo_computation *called) {
    (void)called;
    ++*(size_t *)count;
}

/* ----------------------------------------------------------------------------- the whole module */

hlo_status hlo_module_verify(const hlo_module *module, const hlo_verify_options *options,
                             const hlo_diag_sink *sink) {
    HLO_IN_C_LOCALE;
    hlo_verify_options own = {.max_errors = 0};
    if (hlo_options_take("hlo_verify_options", &own, sizeof own, options, sink) != HLO_OK)
        return HLO_INVALID_USAGE;
    jmp_buf recover;
    hlo_arena *scratch = hlo_arena_new(&recover);
    if (!scratch) return HLO_OUT_OF_MEMORY;
    /* Inference interns shapes in the module. It changes nothing else. */
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    verifier v = {.module = module,
                  .sink = sink,
                  .scratch = scratch,
                  .errors = hlo_error_budget_new(own.max_errors)};
    if (setjmp(recover)) {
        hlo_arena_set_recover(module->arena, before);
        hlo_arena_free(scratch);
        return HLO_OUT_OF_MEMORY;
    }
    v.passed = hlo_arena_zero(scratch, module->next_id);
    v.calls = hlo_arena_zero(scratch, module->next_computation_id * sizeof *v.calls);
    /* Report deferred errors, in the order of the text. */
    size_t count = 0;
    for (const hlo_deferred_error *d = module->deferred; d; d = d->next) count++;
    const hlo_deferred_error **all = hlo_arena_array(v.scratch, count, sizeof *all);
    size_t left = count;
    for (const hlo_deferred_error *d = module->deferred; d; d = d->next) all[--left] = d;
    for (size_t i = 0; i < count; i++)
        hlo_verify_error_about(&v, all[i]->offset, all[i]->length, "%s", all[i]->message);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        for (uint32_t i = 0; i < comp->parameter_count; i++)
            if (!comp->parameters[i] || comp->parameters[i]->parent != comp)
                hlo_verify_error(&v, comp->offset, "%%%s has %u parameters, but no parameter %u",
                                 comp->name, comp->parameter_count, i);
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_arena_mark mark = hlo_arena_here(v.scratch);
            bool sound = true;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                sound &= check_order(&v, instr, hlo_instr_operand(instr, i), "operand");
            const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
                check_order(&v, instr, control->u.instrs->v[i], "control predecessor");
            check_itself(&v, instr, sound);
            hlo_arena_release(v.scratch, mark);
            v.passed[instr->id] = instr->parent == comp;
            /* Collect facts for hlo_verify_module(). */
            hlo_instr_visit_called(instr, count_call, &v.calls[instr->parent->id]);
            v.host_transfers += hlo_verify_is_host_transfer(instr);
            hlo_intern_bind(instr->name, (hlo_symbol_binding){.instr = (hlo_instr *)instr});
        }
        if (!comp->root)
            hlo_verify_error(&v, comp->offset, "%%%s has no root", comp->name);
        else if (comp->root->parent != comp)
            hlo_verify_error(&v, comp->offset, "the root %%%s of %%%s is in another computation",
                             comp->root->name, comp->name);
    }
    hlo_verify_module(&v);
    hlo_status status = hlo_error_budget_end(&v.errors, module, sink);
    hlo_arena_set_recover(module->arena, before);
    hlo_arena_free(scratch);
    ((hlo_module *)module)->verified =
        status == HLO_OK; /* the only member that changes in a const module */
    return status;
}

hlo_status hlo_module_ensure_verified(const hlo_module *module, unsigned max_errors,
                                      const hlo_diag_sink *sink) {
    const hlo_verify_options options = {.struct_size = sizeof options, .max_errors = max_errors};
    return module->verified ? HLO_OK : hlo_module_verify(module, &options, sink);
}
