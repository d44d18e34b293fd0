/* SPDX-License-Identifier: Apache-2.0 */
/* `negate-start(...)` and other asynchronous operations that wrap one instruction, written as its
 * opcode with a suffix, and the computation that they call. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/async.h"
#include "ir/text/print.h"

static const struct {
    const char *ending;
    hlo_op op;
} forms[] = {
    {"-start", HLO_OP_ASYNC_START}, {"-update", HLO_OP_ASYNC_UPDATE}, {"-done", HLO_OP_ASYNC_DONE}};

static bool can_be_wrapped(hlo_op op) {
    return op != HLO_OP_INVALID && op != HLO_OP_PARAMETER && op != HLO_OP_CONSTANT &&
           !hlo_op_is_async(op);
}

void hlo_text_async_suggest(hlo_text *text, hlo_suggestion *s) {
    for (int op = 0; op < HLO_OP_COUNT; op++)
        for (size_t i = 0; i < sizeof forms / sizeof *forms && can_be_wrapped((hlo_op)op); i++)
            hlo_suggest_offer(
                s, hlo_arena_format(text->scratch, "%s%s", hlo_ops[op].name, forms[i].ending));
}

hlo_op hlo_text_async_op(const char *name, hlo_op *out_wrapped) {
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t ending = strlen(forms[i].ending);
        if (length <= ending || strcmp(name + length - ending, forms[i].ending) != 0) continue;
        hlo_op wrapped = hlo_op_find(name, length - ending);
        if (!can_be_wrapped(wrapped)) return HLO_OP_INVALID;
        *out_wrapped = wrapped;
        return forms[i].op;
    }
    return HLO_OP_INVALID;
}

static void reject(hlo_text *text, hlo_frame *frame, const char *why, const char *what) {
    hlo_text_error(text, frame->op_at, why, what);
    frame->broken = true;
}

/* Finds the start of the asynchronous operation of `instr`; NULL if `instr` is neither a start nor
 * an update. */
static const hlo_instr *start_of(const hlo_text *text, const hlo_instr *instr) {
    if (instr->op == HLO_OP_ASYNC_START) return instr;
    if (instr->op != HLO_OP_ASYNC_UPDATE) return NULL;
    return ((const hlo_instr **)text->starts.items)[instr->id];
}

void hlo_text_async_updated(hlo_text *text, const hlo_instr *update) {
    const hlo_instr *start = start_of(text, hlo_instr_operand(update, 0)), *none = NULL;
    while (text->starts.used / sizeof none < update->id)
        hlo_stack_push(text, &text->starts, &none, sizeof none);
    hlo_stack_push(text, &text->starts, &start, sizeof start);
}

void hlo_text_async_thread(hlo_text *text, hlo_frame *frame) {
    if (frame->op != HLO_OP_ASYNC_UPDATE && frame->op != HLO_OP_ASYNC_DONE) return;
    const hlo_attr *here = hlo_text_given(text, frame, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    const hlo_instr *start = start_of(text, hlo_frame_operands(text, frame)[0]);
    if (!here || !start) return;
    const hlo_attr *there = hlo_instr_attr(start, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    const char *thread = there ? there->u.str : hlo_main_thread;
    if (strcmp(here->u.str, thread) != 0)
        reject(text, frame, "expected the thread of the start, '%s'", thread);
}

static void push_called(void *user, hlo_computation *called) {
    hlo_text *text = user;
    hlo_stack_push(text, &text->comps, &called, sizeof called);
}

/* Skips computations that are already on the thread: their callees are, too. */
void hlo_text_async_begun(hlo_text *text, const hlo_instr *start) {
    const hlo_attr *thread = hlo_instr_attr(start, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    hlo_computation *comp = hlo_instr_comp(start, HLO_ATTR_CALLS);
    if (!thread && !text->threads) return;
    const size_t from = text->comps.used;
    text->threads = true;
    hlo_computation_set_thread(comp, thread ? thread->u.str : NULL);
    for (bool changed = true;;) {
        for (hlo_instr *instr = changed ? comp->first : NULL; instr; instr = hlo_instr_next(instr))
            if (!hlo_op_is_async(instr->op)) hlo_instr_visit_called(instr, push_called, text);
        if (text->comps.used == from) return;
        text->comps.used -= sizeof comp;
        memcpy(&comp, text->comps.items + text->comps.used, sizeof comp);
        changed = hlo_computation_set_thread(comp, thread ? thread->u.str : NULL);
    }
}

void hlo_text_async_check(hlo_text *text, hlo_frame *frame) {
    if (frame->op == HLO_OP_ASYNC_START) {
        const hlo_shape *shape = frame->shape;
        if (shape->type != HLO_TYPE_TUPLE || shape->rank < 2 ||
            shape->elements[0]->type != HLO_TYPE_TUPLE) {
            char is[128];
            hlo_shape_format(shape, false, is, sizeof is);
            reject(
                text, frame,
                "the start of an asynchronous operation must be ((operands), result, ...), not %s",
                is);
        }
    } else {
        const hlo_instr *operand = hlo_frame_operands(text, frame)[0];
        const hlo_instr *start = start_of(text, operand);
        if (!start) {
            reject(text, frame,
                   "the operand '%s' is not the start or an update of an asynchronous operation",
                   operand->name);
            return;
        }
        const hlo_computation *comp = hlo_instr_comp(start, HLO_ATTR_CALLS);
        /* Drop the attributes that an async-update or async-done repeats from its async-start. */
        hlo_attr *attrs = hlo_frame_attrs(text, frame);
        size_t given = (text->attrs.used - frame->attrs) / sizeof *attrs, kept = 0;
        for (size_t i = 0; i < given; i++) {
            if (attrs[i].id == HLO_ATTR_CALLS && attrs[i].u.comp != comp)
                reject(text, frame, "expected the computation of the start, '%s'", comp->name);
            if (attrs[i].id != HLO_ATTR_CALLS && attrs[i].id != HLO_ATTR_ASYNC_EXECUTION_THREAD)
                attrs[kept++] = attrs[i];
        }
        text->attrs.used = frame->attrs + kept * sizeof *attrs;
        if (frame->wrapped == HLO_OP_INVALID || !comp->root) return;
        const hlo_op op = comp->root->op;
        if (op != frame->wrapped)
            reject(text, frame, "expected the operation of the start, %s", hlo_ops[op].name);
    }
}

void hlo_text_async_wrap(hlo_text *text, hlo_frame *frame) {
    hlo_module *module = text->module;
    hlo_instr **operands = hlo_frame_operands(text, frame);
    size_t count = (text->operands.used - frame->operands) / sizeof *operands;
    hlo_computation *comp = hlo_computation_new(module, "async_wrapped");
    comp->offset = frame->name_at.offset;
    comp->parameters = hlo_arena_array(module->arena, count, sizeof *comp->parameters);
    comp->parameter_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        hlo_instr *parameter =
            hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, operands[i]->shape, 0, NULL, "async_param");
        parameter->offset = frame->name_at.offset;
        parameter->u.parameter = (int64_t)i;
        comp->parameters[i] = parameter;
    }
    hlo_instr *root = hlo_instr_new(comp, NULL, frame->wrapped, frame->shape->elements[1],
                                    comp->parameter_count, comp->parameters, "async_op");
    root->offset = frame->name_at.offset;
    hlo_computation_set_root(comp, root);

    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    size_t given = (text->attrs.used - frame->attrs) / sizeof *attrs, kept = 0;
    hlo_attr *inner = hlo_arena_array(module->arena, given, sizeof *inner);
    uint32_t taken = 0;
    for (size_t i = 0; i < given; i++) {
        if (hlo_op_has(frame->wrapped, attrs[i].id))
            inner[taken++] = attrs[i];
        else
            attrs[kept++] = attrs[i];
    }
    hlo_instr_take_attrs(root, inner, taken);
    text->attrs.used = frame->attrs + kept * sizeof *attrs;
    const hlo_attr calls = {.id = HLO_ATTR_CALLS, .u.comp = comp};
    hlo_stack_push(text, &text->attrs, &calls, sizeof calls);
}
