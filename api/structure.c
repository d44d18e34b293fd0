/* SPDX-License-Identifier: Apache-2.0 */
/* Implements functions of hlo/edit.h that create, copy, move, rename and remove instructions and
 * computations as a whole. */
#include <string.h>

#include "api/edit.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/float/literal.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

/* --------------------------------------------------------------------------------- instructions */

/* A new scalar constant. */
typedef struct scalar_edit {
    edit e; /* must be first: an edit_step receives a pointer to this member */
    hlo_element_type type;
    double value;
} scalar_edit;

static hlo_status make_scalar(edit *e) {
    const scalar_edit *s = (const scalar_edit *)e;
    const hlo_status status = edit_check_before(e, e->options.before);
    if (status != HLO_OK) return status;
    if (!hlo_element_type_bits(s->type))
        return edit_refuse(e, NULL, "element type %d does not exist", (int)s->type);
    if (hlo_types[s->type].class == HLO_CLASS_COMPLEX)
        return edit_refuse(e, NULL,
                           "create a complex constant with hlo_instruction_new_constant()");
    e->made = hlo_constant_scalar(e->comp, edit_own_instr(e->options.before), s->type, s->value);
    e->made->offset = edit_place_of(e);
    return HLO_OK;
}

hlo_status hlo_instruction_new_scalar(hlo_module *module, const hlo_computation *computation,
                                      const hlo_instruction *before, hlo_element_type type,
                                      double value, const hlo_diag_sink *sink,
                                      const hlo_instruction **out_instruction) {
    scalar_edit s = {.e = {.module = module,
                           .sink = sink,
                           .comp = edit_own_comp(computation),
                           .options = {.before = before}},
                     .type = type,
                     .value = value};
    return edit_finish(&s.e, make_scalar, out_instruction);
}

/* True if `called` is before e->comp in the module. */
static bool may_call(const edit *e, const hlo_computation *called) {
    while (called && called != e->comp) called = called->next;
    return called && called == e->comp;
}

typedef struct callees {
    const edit *e;
    const hlo_computation *late; /* a computation that e->comp cannot call, or NULL */
} callees;

static void check_callee(void *user, hlo_computation *called) {
    callees *c = user;
    if (called == c->e->comp || !may_call(c->e, called)) c->late = called;
}

static hlo_status clone_instruction(edit *e) {
    const hlo_instruction *from = e->other;
    const uint32_t count = from->operand_count;
    if (!from->parent) return edit_refuse(e, NULL, "%%%s was removed", from->name);
    if (from->parent->module != e->module)
        return edit_refuse(e, NULL, "%%%s is in another module", from->name);
    if (from->op == HLO_OP_PARAMETER)
        return edit_refuse(e, from, "create a parameter with hlo_instruction_new_parameter()");
    hlo_status status = edit_check_before(e, e->options.before);
    hlo_instruction **operands = hlo_arena_array(e->scratch, count, sizeof *operands);
    for (uint32_t i = 0; status == HLO_OK && i < count; i++) {
        char role[32];
        snprintf(role, sizeof role, "operand %u", i);
        operands[i] = e->options.operands ? edit_own_instr(e->options.operands[i])
                                          : hlo_instr_operand(from, i);
        status = edit_check_operand(e, operands[i], e->options.before, role);
    }
    callees c = {.e = e};
    if (from->parent != e->comp) hlo_instr_visit_called(from, check_callee, &c);
    if (status == HLO_OK && c.late)
        return edit_refuse(e, from, "%%%s calls %%%s, which does not precede %%%s", from->name,
                           c.late->name, e->comp->name);
    if (status != HLO_OK) return status;
    e->made = hlo_instr_copy(e->comp, edit_own_instr(e->options.before), from, operands);
    /* Control predecessors are in the computation of `from`, and may follow the copy. */
    hlo_instr_drop_attr(e->made, HLO_ATTR_CONTROL_PREDECESSORS);
    status = edit_check_fault(e, e->made);
    if (status != HLO_OK) {
        hlo_name_release(e->module, HLO_NAME_INSTR, e->made->name, from->name);
        hlo_instr_remove(e->made);
    }
    return status;
}

hlo_status hlo_instruction_clone(hlo_module *module, const hlo_instruction *instruction,
                                 const hlo_computation *computation, const hlo_instruction *before,
                                 const hlo_instruction *const *operands, const hlo_diag_sink *sink,
                                 const hlo_instruction **out_instruction) {
    edit e = {.module = module,
              .sink = sink,
              .comp = edit_own_comp(computation),
              .other = edit_own_instr(instruction),
              .options = {.before = before, .operands = operands}};
    return edit_finish(&e, clone_instruction, out_instruction);
}

/* Checks that no instruction from e->instr on, in the direction of the move, depends on it or is
 * one on which it depends. */
static hlo_status check_move(edit *e, const hlo_instruction *before) {
    const hlo_instruction *moved = e->instr;
    for (uint32_t i = 0; i < moved->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(moved, i);
        if (before && (operand == before || edit_is_before(before, operand)))
            return edit_refuse(e, moved, "%%%s must be defined before %%%s", operand->name,
                               moved->name);
    }
    for (const hlo_use *use = moved->uses; use; use = use->next)
        if (!before || (use->user != before && edit_is_before(use->user, before)))
            return edit_refuse(e, moved, "%%%s must be defined before %%%s", moved->name,
                               use->user->name);
    if (!e->module->attrs_seen[HLO_ATTR_CONTROL_PREDECESSORS]) return HLO_OK;
    for (const hlo_instruction *i = e->comp->first; i; i = hlo_instr_next(i)) {
        const hlo_attr *control = hlo_instr_attr(i, HLO_ATTR_CONTROL_PREDECESSORS);
        for (uint32_t c = 0; control && c < control->u.instrs->count; c++) {
            const hlo_instruction *first = control->u.instrs->v[c];
            const bool late =
                i == moved && before && (first == before || edit_is_before(before, first));
            const bool early =
                first == moved && (!before || (i != before && edit_is_before(i, before)));
            if (late || early)
                return edit_refuse(e, moved, "%%%s is a control predecessor of %%%s", first->name,
                                   i->name);
        }
    }
    return HLO_OK;
}

static hlo_status move_instruction(edit *e) {
    const hlo_instruction *before = e->options.before;
    hlo_status status = edit_check_before(e, before);
    if (status != HLO_OK || before == e->instr) return status;
    status = check_move(e, before);
    if (status == HLO_OK) hlo_instr_move(e->instr, edit_own_instr(before));
    return status;
}

hlo_status hlo_instruction_move(hlo_module *module, const hlo_instruction *instruction,
                                const hlo_instruction *before, const hlo_diag_sink *sink) {
    edit e = {.module = module,
              .sink = sink,
              .instr = edit_own_instr(instruction),
              .options = {.before = before}};
    return edit_run(&e, move_instruction);
}

static hlo_status rename_object(edit *e) {
    const hlo_namespace space = e->instr ? HLO_NAME_INSTR : HLO_NAME_COMPUTATION;
    const char **name = e->instr ? &e->instr->name : &e->comp->name;
    if (!e->name) return edit_refuse(e, NULL, "the name must not be NULL");
    const hlo_status status = edit_check_name(e, e->name);
    if (status != HLO_OK || strcmp(*name, e->name) == 0) return status;
    const char *made = hlo_unique_name(e->module, space, hlo_intern_string(e->module, e->name));
    hlo_name_release(e->module, space, *name, *name);
    *name = made;
    return HLO_OK;
}

hlo_status hlo_instruction_rename(hlo_module *module, const hlo_instruction *instruction,
                                  const char *name, const hlo_diag_sink *sink) {
    edit e = {.module = module, .sink = sink, .instr = edit_own_instr(instruction), .name = name};
    return edit_run(&e, rename_object);
}

/* --------------------------------------------------------------------------------- computations */

static hlo_status check_place(const edit *e, const hlo_computation *before) {
    if (!before || before->module == e->module) return HLO_OK;
    return edit_refuse(e, NULL, before->module ? "%%%s is in another module" : "%%%s was removed",
                       before->name);
}

static hlo_status make_empty(edit *e) {
    hlo_status status = check_place(e, e->made_comp);
    hlo_computation *before = e->made_comp ? e->made_comp : e->module->first;
    if (status == HLO_OK) status = edit_check_name(e, e->name);
    if (status != HLO_OK) return status;
    e->made_comp = hlo_comp_new(e->module, e->name ? e->name : "computation");
    const hlo_shape *none = hlo_shape_tuple(e->module, 0, NULL);
    hlo_instruction *root = hlo_instr_new(e->made_comp, NULL, HLO_OP_TUPLE, none, 0, NULL, NULL);
    hlo_comp_set_root(e->made_comp, root);
    hlo_comp_move(e->made_comp, before);
    return HLO_OK;
}

static hlo_status finish_computation(edit *e, edit_step *step, const hlo_computation **out) {
    const hlo_status status = edit_run(e, step);
    if (out) *out = status == HLO_OK ? e->made_comp : NULL;
    return status;
}

hlo_status hlo_computation_new(hlo_module *module, const char *name, const hlo_computation *before,
                               const hlo_diag_sink *sink, const hlo_computation **out_computation) {
    edit e = {.module = module, .sink = sink, .name = name, .made_comp = edit_own_comp(before)};
    return finish_computation(&e, make_empty, out_computation);
}

static hlo_status clone_computation(edit *e) {
    const hlo_computation *from = e->comp;
    const hlo_status status = edit_check_name(e, e->name);
    if (status != HLO_OK) return status;
    hlo_computation *to = e->made_comp = hlo_comp_new(e->module, e->name ? e->name : from->name);
    hlo_comp_move(to, from->next == to ? NULL : from->next);
    hlo_instruction **copies =
        hlo_arena_array(e->scratch, e->module->next_id, sizeof *copies); /* by the original's id */
    for (const hlo_instruction *i = from->first; i; i = hlo_instr_next(i)) {
        hlo_instruction **operands =
            hlo_arena_array(e->scratch, i->operand_count, sizeof *operands);
        for (uint32_t o = 0; o < i->operand_count; o++)
            operands[o] = copies[hlo_instr_operand(i, o)->id];
        copies[i->id] = hlo_instr_copy(to, NULL, i, operands);
    }
    /* A control predecessor may follow its instruction, which hlo_module_verify() rejects. */
    for (hlo_instruction *copy = to->first; copy; copy = hlo_instr_next(copy)) {
        const hlo_attr *control = hlo_instr_attr(copy, HLO_ATTR_CONTROL_PREDECESSORS);
        if (!control) continue;
        const uint32_t count = control->u.instrs->count;
        hlo_instrs *mapped =
            hlo_arena_alloc(e->module->arena, sizeof *mapped + count * sizeof *mapped->v);
        mapped->count = count;
        for (uint32_t c = 0; c < count; c++) mapped->v[c] = copies[control->u.instrs->v[c]->id];
        hlo_instr_set_attr(copy,
                           (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = mapped});
    }
    hlo_comp_set_root(to, copies[from->root->id]);
    to->attrs = from->attrs;
    to->attr_count = from->attr_count;
    to->offset = from->offset;
    return HLO_OK;
}

hlo_status hlo_computation_clone(hlo_module *module, const hlo_computation *computation,
                                 const char *name, const hlo_diag_sink *sink,
                                 const hlo_computation **out_computation) {
    edit e = {.module = module, .sink = sink, .comp = edit_own_comp(computation), .name = name};
    return finish_computation(&e, clone_computation, out_computation);
}

/* A computation and an instruction that calls it. */
typedef struct call {
    const hlo_computation *called;
    bool found;
} call;

static void note_call(void *user, hlo_computation *called) {
    call *c = user;
    c->found |= called == c->called;
}

/* Returns an instruction that calls e->comp, or NULL. */
static const hlo_instruction *find_caller(const edit *e) {
    call c = {.called = e->comp};
    for (const hlo_computation *comp = e->comp->next; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            hlo_instr_visit_called(i, note_call, &c);
            if (c.found) return i;
        }
    return NULL;
}

static hlo_status move_computation(edit *e) {
    const hlo_status status = check_place(e, e->made_comp);
    const hlo_computation *before = e->made_comp;
    if (status != HLO_OK || before == e->comp) return status;
    bool earlier = false; /* `before` precedes e->comp */
    for (const hlo_computation *c = before; c && !earlier; c = c->next) earlier = c == e->comp;
    /* The computations between both places must neither call e->comp nor be called by it. */
    const hlo_computation *from = earlier ? before : e->comp->next;
    const hlo_computation *end = earlier ? e->comp : before;
    for (const hlo_computation *c = from; c != end; c = c->next) {
        const hlo_computation *caller = earlier ? e->comp : c, *callee = earlier ? c : e->comp;
        call of = {.called = callee};
        for (const hlo_instruction *i = caller->first; i; i = hlo_instr_next(i))
            hlo_instr_visit_called(i, note_call, &of);
        if (of.found)
            return edit_refuse(e, NULL, "%%%s calls %%%s, which must precede it", caller->name,
                               callee->name);
    }
    hlo_comp_move(e->comp, edit_own_comp(before));
    return HLO_OK;
}

hlo_status hlo_computation_move(hlo_module *module, const hlo_computation *computation,
                                const hlo_computation *before, const hlo_diag_sink *sink) {
    edit e = {.module = module,
              .sink = sink,
              .comp = edit_own_comp(computation),
              .made_comp = edit_own_comp(before)};
    return edit_run(&e, move_computation);
}

hlo_status hlo_computation_rename(hlo_module *module, const hlo_computation *computation,
                                  const char *name, const hlo_diag_sink *sink) {
    edit e = {.module = module, .sink = sink, .comp = edit_own_comp(computation), .name = name};
    return edit_run(&e, rename_object);
}

static hlo_status remove_computation(edit *e) {
    hlo_computation *comp = e->comp;
    if (comp == e->module->entry)
        return edit_refuse(e, NULL, "cannot remove %%%s: it is the entry computation", comp->name);
    const hlo_instruction *caller = find_caller(e);
    if (caller)
        return edit_refuse(e, caller, "cannot remove %%%s: %%%s calls it", comp->name,
                           caller->name);
    hlo_comp_remove(comp);
    comp->module = NULL;
    for (hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) i->parent = NULL;
    return HLO_OK;
}

hlo_status hlo_computation_remove(hlo_module *module, const hlo_computation *computation,
                                  const hlo_diag_sink *sink) {
    edit e = {.module = module, .sink = sink, .comp = edit_own_comp(computation)};
    return edit_run(&e, remove_computation);
}

/* -------------------------------------------------------------------------------------- modules */

hlo_status hlo_module_new(const char *name, const hlo_diag_sink *sink, hlo_module **out_module) {
    HLO_IN_C_LOCALE;
    const edit e = {.sink = sink};
    enum { LONGEST = 4096 };
    char text[LONGEST + 64];
    *out_module = NULL;
    if (!name || strlen(name) > LONGEST || !edit_is_name(name))
        return edit_refuse(&e, NULL, "invalid module name '%.80s'", name ? name : "");
    const int length =
        snprintf(text, sizeof text, "HloModule %s\n\nENTRY main { ROOT tuple = () tuple() }", name);
    const hlo_status status = hlo_module_parse(text, (size_t)length, "", NULL, out_module);
    if (status != HLO_INVALID_INPUT) return status;
    return edit_refuse(&e, NULL, "invalid module name '%.80s': it is a keyword of HLO text", name);
}

static hlo_status rename_module(edit *e) {
    const hlo_status status = hlo_module_new(e->name, e->sink, &e->read);
    if (status == HLO_OK) e->module->name = hlo_intern_string(e->module, e->name);
    return status;
}

hlo_status hlo_module_rename(hlo_module *module, const char *name, const hlo_diag_sink *sink) {
    edit e = {.module = module, .sink = sink, .name = name};
    return edit_run(&e, rename_module);
}
