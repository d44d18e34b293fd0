/* SPDX-License-Identifier: Apache-2.0 */
/* See places.h. */
#include "tests/random/module/places.h"
#include "ir/intern.h"

#include <string.h>

static hlo_instruction *any_instr(const hlo_computation *comp, dice *d) {
    hlo_instruction *i = comp->first;
    for (int n = dice_below(d, comp->instr_count); n > 0; n--) i = i->next;
    return i;
}

static hlo_computation *any_computation(const hlo_module *module, dice *d) {
    uint32_t count = 0;
    for (hlo_computation *comp = module->first; comp; comp = comp->next) count++;
    hlo_computation *comp = module->first;
    if (dice_chance(d, 75)) return module->entry;
    for (int n = dice_below(d, count); n > 0; n--) comp = comp->next;
    return comp;
}

static void add_control(hlo_instruction *before, hlo_instruction *after) {
    const hlo_attr *old = hlo_instr_attr(after, HLO_ATTR_CONTROL_PREDECESSORS);
    const uint32_t count = old ? old->u.instrs->count : 0;
    hlo_arena *arena = after->parent->module->arena;
    hlo_instrs *list = hlo_arena_zero(arena, sizeof *list + (count + 1) * sizeof *list->v);
    for (; list->count < count; list->count++) {
        list->v[list->count] = old->u.instrs->v[list->count];
        if (list->v[list->count] == before) return;
    }
    list->v[list->count++] = before;
    hlo_instr_set_attr(after, (hlo_attr){.id = HLO_ATTR_CONTROL_PREDECESSORS, .u.instrs = list});
}

static void control(hlo_module *module, dice *d) {
    for (int n = 1 + dice_below(d, 4); n > 0; n--) {
        hlo_computation *comp = any_computation(module, d);
        hlo_instruction *a = any_instr(comp, d), *b = any_instr(comp, d);
        const hlo_instruction *at = a;
        while (at && at != b) at = at->next;
        hlo_instruction *first = at ? a : b, *second = at ? b : a;
        if (a != b && second->op != HLO_OP_PARAMETER) add_control(first, second);
    }
}

static void add_header(hlo_module *module, hlo_attr attr) {
    hlo_attr *attrs = hlo_arena_zero(module->arena, (module->attr_count + 1) * sizeof *attrs);
    if (module->attr_count) memcpy(attrs, module->attrs, module->attr_count * sizeof *attrs);
    attrs[module->attr_count++] = attr;
    module->attrs = attrs;
}

static void schedule(hlo_module *module, dice *d) {
    (void)d;
    add_header(module, (hlo_attr){.id = HLO_ATTR_IS_SCHEDULED, .u.i = true});
}

static const hlo_shape *in_space(hlo_module *module, const hlo_shape *shape, int64_t space) {
    if (!shape->rank) return shape;
    if (!shape->layout)
        shape = hlo_shape_with_layout(module, shape->type, shape->rank, shape->dims, NULL);
    hlo_shape moved = *shape;
    hlo_layout layout = *shape->layout;
    layout.memory_space = space;
    moved.layout = &layout;
    return hlo_shape_intern(module, &moved);
}

static hlo_instruction *copy_to(hlo_instruction *value, hlo_instruction *before,
                                const hlo_shape *shape) {
    return hlo_instr_new(value->parent, before, HLO_OP_COPY, shape, 1, &value, "copied");
}

/* Moves a value to another memory space and back, for one user; or computes the value there, and
 * may copy it back. */
static void space(hlo_module *module, dice *d) {
    static const int64_t spaces[] = {5, 5, 1};
    hlo_instruction *value = any_instr(any_computation(module, d), d);
    if (!hlo_shape_is_array(value->shape) || !value->shape->rank || value->shape->dynamic ||
        !value->uses || !value->next)
        return;
    const hlo_shape *here = value->shape;
    const hlo_shape *there = in_space(module, here, DICE_PICK(d, spaces));
    hlo_use *use = value->uses;
    hlo_instruction *user = use->user, *next = value->next;
    const uint32_t index = (uint32_t)(use - user->operands);
    if (dice_chance(d, 60)) {
        value = copy_to(value, next, there);
    } else {
        if (value->op == HLO_OP_PARAMETER && value->parent != module->entry) return;
        value->shape = there;
        if (dice_chance(d, 40)) return;
    }
    hlo_instr_set_operand(user, index, copy_to(value, next, here));
}

/* Returns a scalar with users, as scales are. After eight attempts, returns any instruction. */
static hlo_instruction *any_scalar(hlo_module *module, dice *d) {
    hlo_instruction *value = NULL;
    for (int tries = 0; tries < 8; tries++) {
        value = any_instr(any_computation(module, d), d);
        if (hlo_shape_is_scalar(value->shape) && value->uses) return value;
    }
    return value;
}

/* Sends a value to the host. */
static void send_to_host(hlo_instruction *value) {
    hlo_module *module = value->parent->module;
    const hlo_shape *token = hlo_shape_intern(module, &(hlo_shape){.type = HLO_TYPE_TOKEN});
    hlo_instruction *after = value->next, *operands[] = {value, NULL};
    operands[1] = hlo_instr_new(value->parent, after, HLO_OP_AFTER_ALL, token, 0, NULL, "first");
    hlo_instr_new(value->parent, after, HLO_OP_OUTFEED, token, 2, operands, "sent");
}

/* Adds a side effect that reads a value. Its result may replace the value, and may then come right
 * before the user. */
static void effect(hlo_module *module, dice *d) {
    hlo_instruction *value = any_scalar(module, d);
    if (!hlo_shape_is_array(value->shape) || !value->next) return;
    if (dice_chance(d, 50)) {
        send_to_host(value);
        return;
    }
    const bool through = dice_chance(d, 70) && value->uses;
    hlo_use *use = value->uses;
    hlo_instruction *user = through ? use->user : NULL;
    const uint32_t index = through ? (uint32_t)(use - user->operands) : 0;
    hlo_instruction *call = hlo_instr_new(value->parent, user ? user : value->next,
                                          HLO_OP_CUSTOM_CALL, value->shape, 1, &value, "watched");
    hlo_instr_set_str(call, HLO_ATTR_CUSTOM_CALL_TARGET, "watch");
    hlo_instr_set_int(call, HLO_ATTR_CUSTOM_CALL_HAS_SIDE_EFFECT, true);
    if (through) hlo_instr_set_operand(user, index, call);
}

static hlo_instruction *find_call(const hlo_module *module) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *i = comp->first; i; i = i->next)
            if (i->op == HLO_OP_CALL) return i;
    return NULL;
}

static void keep_call(hlo_module *module, dice *d) {
    static const char *const texts[] = {"{inlineable=\"false\"}", "{_xla_compute_type=\"host\"}",
                                        "{MUST_FUSE=\"\"}",
                                        "{a=\"{b=,\\\"}\",_xla_compute_type=\"host\"}"};
    hlo_instruction *call = find_call(module);
    if (call) hlo_instr_set_str(call, HLO_ATTR_FRONTEND_ATTRIBUTES, DICE_PICK(d, texts));
}

static void set_thread(hlo_computation *comp) {
    const char *name = hlo_intern_string(comp->module, "host");
    hlo_attr *attr = hlo_arena_zero(comp->module->arena, sizeof *attr);
    *attr = (hlo_attr){.id = HLO_ATTR_EXECUTION_THREAD, .u.str = name};
    comp->attrs = attr;
    comp->attr_count = 1;
}

/* Makes a call asynchronous, usually in another thread. */
static void start_call(hlo_module *module, dice *d) {
    enum { MAX = 64 };
    hlo_instruction *call = find_call(module), *operands[MAX], *inner[MAX];
    if (!call || call->operand_count > MAX || !call->operand_count) return;
    hlo_computation *caller = call->parent, *called = hlo_instr_comp(call, HLO_ATTR_TO_APPLY);
    hlo_computation *wrap = hlo_comp_new(module, "wrap");
    const hlo_shape *shapes[MAX];
    for (uint32_t i = 0; i < call->operand_count; i++) {
        operands[i] = hlo_instr_operand(call, i);
        shapes[i] = operands[i]->shape;
        inner[i] = hlo_instr_new(wrap, NULL, HLO_OP_PARAMETER, shapes[i], 0, NULL, "given");
        hlo_instr_set_parameter(inner[i], i);
    }
    hlo_comp_set_root(wrap, hlo_instr_copy(wrap, NULL, call, inner));
    hlo_comp_move(wrap, caller);
    const hlo_shape *whole[] = {hlo_shape_tuple(module, call->operand_count, shapes), call->shape,
                                hlo_shape_array(module, HLO_TYPE_U32, 0, NULL)};
    hlo_instruction *start =
        hlo_instr_new(call->parent, call, HLO_OP_ASYNC_START, hlo_shape_tuple(module, 3, whole),
                      call->operand_count, operands, "started");
    hlo_instr_set_comp(start, HLO_ATTR_CALLS, wrap);
    hlo_instruction *done =
        hlo_instr_new(call->parent, call, HLO_OP_ASYNC_DONE, call->shape, 1, &start, "done");
    if (dice_chance(d, 70)) {
        hlo_instr_set_str(start, HLO_ATTR_ASYNC_EXECUTION_THREAD, "host");
        set_thread(wrap);
        set_thread(called);
    }
    hlo_instr_replace_uses(call, done);
    hlo_instr_remove(call);
}

void edit_places(hlo_module *module, dice *d) {
    static void (*const edits[])(hlo_module *, dice *) = {control, control,  control, space,
                                                          space,   schedule, effect};
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_NUM_PARTITIONS) return;
    if (find_call(module) && dice_chance(d, 85))
        (dice_chance(d, 50) ? keep_call : start_call)(module, d);
    for (int n = 1 + dice_below(d, 3); n > 0; n--) DICE_PICK(d, edits)(module, d);
}
