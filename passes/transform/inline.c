/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces each call by the instructions of its callee, recursively. Calls in a computation that
 * only inlined calls reference are not inlined, because the computation is dead.
 *
 * Needs: callees before callers.
 * Does not inline: pinned instructions, and calls whose attributes forbid inlining (pin.h); calls
 * of computations that contain fusions, or whose parameters have control dependencies. Dead code
 * elimination removes the called computations. Metadata is changed as by XLA's inliner: `op_name`
 * becomes caller/callee. The stack frame remains the frame of the callee, where the user wrote the
 * operation; if the callee has no frame, the frame of the caller is used.
 * Numerics: unchanged.
 * Tests: testdata/passes/inline/ */
#include <string.h>

#include "ir/intern.h"
#include "ir/text/diag.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/pin.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

/* Maximum number of instructions that inlining copies, because nested calls can grow a module
 * exponentially. The copies of a call are counted before the first copy. If a call exceeds the
 * budget, the pass warns and does not inline the call or the calls in its callee. */
enum { BUDGET = 1 << 20 };

typedef struct inliner {
    hlo_pass_context *context;
    bool *fixed; /* by id of a computation: true if it has a fusion or an asynchronous start and so
                  * must not be copied (fusions and starts must be the only callers of their
                  * computations); may be NULL */
    uint64_t *sizes; /* by id of a computation: number of its instructions after inlining */
    bool *stays;     /* by computation id: something other than inlined calls refers to it */
    hlo_instruction **copies; /* by id of the callee's instruction: its copy */
    uint32_t capacity;        /* size of `copies` */
    hlo_instruction **operands;
    uint32_t operand_capacity;
    uint64_t budget;
    bool warned;
    bool unpins; /* an instruction of a computation that also runs on another thread was copied */
} inliner;

/* Returns the computation that replaces the call; NULL if the call is not inlined. */
static hlo_computation *callee_of(const inliner *in, const hlo_instruction *instr) {
    if (instr->op != HLO_OP_CALL || !hlo_pin_lets_inline(instr)) return NULL;
    hlo_computation *callee = hlo_instr_comp(instr, HLO_ATTR_TO_APPLY);
    if (callee->attr_count || hlo_facts_has(in->fixed, callee->id)) return NULL;
    if (callee->parameter_count != instr->operand_count) return NULL; /* only if unverified */
    for (uint32_t i = 0; i < callee->parameter_count; i++)
        if (callee->parameters[i]->pin == HLO_PIN_CONTROL) return NULL;
    return callee;
}

static const hlo_attrs *nest_metadata(hlo_module *module, const hlo_attrs *caller,
                                      const hlo_attrs *callee) {
    size_t capacity = sizeof *callee + (callee->count + 1) * sizeof *callee->v;
    hlo_attrs *nested = hlo_arena_alloc(module->arena, capacity);
    nested->count = 0;
    const hlo_attr *outer = hlo_attrs_find(caller->v, caller->count, HLO_ATTR_OP_NAME);
    for (uint32_t i = 0; i < callee->count; i++) {
        hlo_attr attr = callee->v[i];
        if (attr.id == HLO_ATTR_OP_NAME && outer) {
            size_t length = hlo_intern_length(attr.u.str), lead = hlo_intern_length(outer->u.str);
            char *name = hlo_arena_alloc(module->arena, lead + length + 1);
            memcpy(name, outer->u.str, lead);
            name[lead] = '/';
            memcpy(name + lead + 1, attr.u.str, length);
            attr.u.str = hlo_intern(module, name, lead + length + 1);
        }
        nested->v[nested->count++] = attr;
    }
    const hlo_attr *frame = hlo_attrs_find(caller->v, caller->count, HLO_ATTR_STACK_FRAME_ID);
    if (frame && !hlo_attrs_find(callee->v, callee->count, HLO_ATTR_STACK_FRAME_ID) &&
        !hlo_attrs_find(callee->v, callee->count, HLO_ATTR_SOURCE_FILE))
        nested->v[nested->count++] = *frame;
    return nested;
}

static hlo_instruction *copy_instr(inliner *in, hlo_instruction *call,
                                   const hlo_instruction *from) {
    if (in->operand_capacity < from->operand_count) {
        in->operand_capacity = 2 * from->operand_count;
        in->operands =
            hlo_arena_array(in->context->scratch, in->operand_capacity, sizeof *in->operands);
    }
    for (uint32_t i = 0; i < from->operand_count; i++)
        in->operands[i] = in->copies[hlo_instr_operand(from, i)->id];
    hlo_instruction *copy = hlo_instr_copy(call->parent, call, from, in->operands);
    hlo_module *module = copy->parent->module;
    const hlo_attr *outer = hlo_instr_attr(call, HLO_ATTR_METADATA),
                   *inner = hlo_instr_attr(copy, HLO_ATTR_METADATA),
                   *control = hlo_instr_attr(copy, HLO_ATTR_CONTROL_PREDECESSORS);
    if (outer && copy->op != HLO_OP_CONSTANT) {
        hlo_attr attr = *outer;
        if (inner) attr.u.attrs = nest_metadata(module, outer->u.attrs, inner->u.attrs);
        hlo_instr_set_attr(copy, attr);
    }
    if (control) { /* all predecessors are in the callee, so they have copies */
        const hlo_instrs *old = control->u.instrs;
        hlo_instrs *list =
            hlo_arena_copy(module->arena, old, sizeof *old + old->count * sizeof *old->v);
        for (uint32_t i = 0; i < list->count; i++) list->v[i] = in->copies[old->v[i]->id];
        hlo_instr_set_attr(copy, (hlo_attr){.id = control->id, .u.instrs = list});
    }
    hlo_remark_copy(in->context, from, copy);
    in->unpins |= copy->pin == HLO_PIN_THREAD;
    return copy;
}

static void inline_calls(inliner *in, hlo_computation *comp) {
    const hlo_instruction *end = NULL; /* the budget for all calls before `end` is reserved */
    bool reserved = false;
    for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
        if (instr == end) reserved = false;
        next = hlo_instr_next(instr);
        hlo_computation *callee = callee_of(in, instr);
        if (!callee) continue;
        if (!reserved) { /* reserve budget for the copies, including calls in the callee */
            const uint64_t size = in->sizes[callee->id];
            if (size > in->budget) {
                if (!in->warned)
                    hlo_diag_emit(in->context->module, in->context->sink, HLO_WARNING,
                                  HLO_DIAG_LIMIT, instr->offset, hlo_intern_length(instr->name),
                                  "this call and possibly later ones are not inlined: inlining "
                                  "copies at most %d instructions",
                                  (int)BUDGET);
                in->warned = true;
                continue;
            }
            in->budget -= size;
            end = next;
            reserved = true;
        }
        hlo_instruction *before = instr->prev;
        hlo_module *module = callee->module;
        const uint32_t first_made = module->next_id;
        if (in->capacity < module->next_id) {
            in->capacity = 2 * module->next_id;
            in->copies = hlo_arena_array(in->context->scratch, in->capacity, sizeof *in->copies);
        }
        for (const hlo_instruction *from = callee->first; from; from = from->next)
            in->copies[from->id] = from->op == HLO_OP_PARAMETER
                                       ? hlo_instr_operand(instr, (uint32_t)from->u.parameter)
                                       : copy_instr(in, instr, from);
        hlo_instruction *result = in->copies[callee->root->id];
        if (result->shape != instr->shape && hlo_shape_is_array(instr->shape))
            result =
                hlo_instr_new(instr->parent, instr, HLO_OP_COPY, instr->shape, 1, &result, NULL);
        const hlo_attr *sharding = hlo_instr_attr(instr, HLO_ATTR_SHARDING);
        if (sharding && result->id >= first_made && !hlo_instr_attr(result, HLO_ATTR_SHARDING))
            hlo_instr_set_attr(result, *sharding);
        hlo_instr_replace_uses(instr, result);
        hlo_instr_remove(instr);
        in->context->changes++;
        next = before ? hlo_instr_next(before) : comp->first;
    }
}

hlo_status hlo_pass_inline(hlo_pass_context *context) {
    hlo_module *module = context->module;
    if (!module->op_counts[HLO_OP_CALL]) return HLO_OK;
    inliner in = {.context = context, .budget = BUDGET};
    if (module->op_counts[HLO_OP_FUSION] || module->op_counts[HLO_OP_ASYNC_START]) {
        in.fixed = hlo_arena_zero(context->scratch, module->next_computation_id);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                in.fixed[comp->id] |= hlo_op_is(instr->op, HLO_SOLE_CALLER);
    }
    do {
        in.unpins = false;
        /* Find the computations that are still referenced after inlining, and the sizes of all
         * computations after inlining. */
        const uint32_t count = module->next_computation_id;
        in.sizes = hlo_arena_zero(context->scratch, count * sizeof *in.sizes);
        in.stays = hlo_arena_zero(context->scratch, count * sizeof *in.stays);
        in.stays[module->entry->id] = true;
        for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
            uint64_t size = comp->instr_count;
            for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
                const hlo_computation *callee = callee_of(&in, instr);
                if (!callee)
                    hlo_instr_visit_called(instr, hlo_mark_called, in.stays);
                else if (size <= BUDGET)
                    size += in.sizes[callee->id];
            }
            in.sizes[comp->id] = size;
        }
        for (hlo_computation *comp = module->first; comp; comp = comp->next)
            if (in.stays[comp->id]) inline_calls(&in, comp);
        if (in.unpins) hlo_pin_module(module, context->scratch);
    } while (in.unpins);
    return HLO_OK;
}
