/* SPDX-License-Identifier: Apache-2.0 */
/* See worklist.h. */
#include "passes/engine/worklist.h"

#include "passes/analysis/instr_order.h"

enum { USERS_ABOVE = 2 };

void hlo_worklist_add(hlo_engine *e, hlo_worklist *to, hlo_instr *instr) {
    hlo_arena_grow(e->context->scratch, &to->items, to->count, &to->capacity, sizeof *to->items);
    instr->queued = true;
    to->items[to->count++] = instr;
}

bool hlo_engine_before(hlo_engine *engine, const hlo_instr *a, const hlo_instr *b) {
    hlo_pass_context *context = engine->context;
    if (!context->order) context->order = hlo_order_new(context->module, context->lasting);
    return hlo_order_before(context->order, a, b);
}

void hlo_engine_move(hlo_engine *engine, hlo_instr *instr, hlo_instr *before) {
    if (engine->rest == instr) engine->rest = instr->next;
    hlo_instr_move(instr, before);
    if (engine->context->order) hlo_order_moved(engine->context->order, instr);
}

void hlo_engine_push_one(hlo_engine *e, hlo_instr *instr) {
    if (!instr->queued && e->by_op[instr->op]) hlo_worklist_add(e, &e->follow_up, instr);
}

static void push_users(hlo_engine *e, hlo_instr *instr, unsigned above) {
    hlo_engine_push_one(e, instr);
    if (!above || instr->use_count > HLO_ENGINE_FIRINGS_PER_INSTR) return;
    for (hlo_use *use = instr->uses; use; use = use->next) push_users(e, use->user, above - 1);
}

void hlo_engine_push(hlo_engine *engine, hlo_instr *instr) {
    push_users(engine, instr, USERS_ABOVE);
}

/* Not recursive: a chain may be as long as the module. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instr *instr) {
    hlo_worklist *list = &engine->dead;
    for (;; instr = list->items[--list->count]) {
        if (instr->parent && !instr->use_count && instr->parent->root != instr &&
            instr->op != HLO_OP_PARAMETER && !instr->pin) {
            for (uint32_t i = instr->operand_count; i-- > 0;) {
                hlo_arena_grow(engine->context->scratch, &list->items, list->count, &list->capacity,
                               sizeof *list->items);
                list->items[list->count++] = hlo_instr_operand(instr, i);
            }
            if (engine->rest == instr) engine->rest = instr->next;
            hlo_instr_remove(instr);
        }
        if (!list->count) return;
    }
}

bool hlo_engine_judges(const hlo_engine *engine) {
    return engine->judges;
}
