/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the worklist of a phase, and determines the order of instructions. */
#include "passes/engine/worklist.h"

#include <string.h>

/* Determines the order of two instructions of a computation in O(1), by sort keys with gaps for new
 * instructions. Keys remain valid from pass to pass. */

/* Gap between the keys of instructions that get keys at the same time. */
static const uint64_t key_gap = UINT64_C(1) << 40;

typedef struct hlo_order {
    hlo_arena *arena;
    uint64_t *keys; /* by instruction id; 0 for an instruction without a key */
    uint32_t capacity;
} hlo_order;

static void grow(hlo_order *order, uint32_t ids) {
    const uint32_t capacity = ids + ids / 2 + 256;
    uint64_t *keys = hlo_arena_array(order->arena, capacity, sizeof *keys);
    if (order->capacity) memcpy(keys, order->keys, order->capacity * sizeof *keys);
    memset(keys + order->capacity, 0, (capacity - order->capacity) * sizeof *keys);
    order->keys = keys;
    order->capacity = capacity;
}

/* Returns the address of the key of `instr`, growing the table if needed. */
static uint64_t *at(hlo_order *order, const hlo_instruction *instr) {
    if (instr->id >= order->capacity) grow(order, instr->id);
    return &order->keys[instr->id];
}

static void number(hlo_order *order, const hlo_computation *comp) {
    uint64_t key = 0;
    for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i))
        *at(order, i) = key += key_gap;
}

/* Returns the key of `instr`. If it has none, assigns keys to `instr` and its neighbors without
 * keys, between the keys of the nearest other instructions. If the gap is too small, renumbers the
 * computation. */
static uint64_t key_of(hlo_order *order, const hlo_instruction *instr) {
    if (*at(order, instr)) return *at(order, instr);
    const hlo_instruction *first = instr, *end = instr->next;
    while (first->prev && !*at(order, first->prev)) first = first->prev;
    while (end && !*at(order, end)) end = end->next;
    const uint64_t low = first->prev ? *at(order, first->prev) : 0;
    const uint64_t high = end ? *at(order, end) : low + key_gap;
    uint64_t count = 1;
    for (const hlo_instruction *i = first; i != end; i = i->next) count++;
    const uint64_t step = (high - low) / 16 / count;
    if ((!first->prev && !end) || !step) {
        number(order, instr->parent);
        return *at(order, instr);
    }
    uint64_t key = low;
    for (const hlo_instruction *i = first; i != end; i = i->next) *at(order, i) = key += step;
    return *at(order, instr);
}

bool hlo_engine_before(hlo_engine *engine, const hlo_instruction *a, const hlo_instruction *b) {
    hlo_pass_context *context = engine->context;
    hlo_order *order = context->order;
    if (!order) {
        order = context->order = hlo_arena_zero(context->lasting, sizeof *order);
        order->arena = context->lasting;
        grow(order, context->module->next_id);
        for (const hlo_computation *comp = context->module->first; comp; comp = comp->next)
            number(order, comp);
    }
    (void)key_of(order, a); /* may renumber `b`, so read both keys afterwards */
    const uint64_t other = key_of(order, b);
    return key_of(order, a) < other;
}

void hlo_worklist_add(hlo_engine *e, hlo_worklist *to, hlo_instruction *instr) {
    hlo_arena_grow(e->context->scratch, &to->items, to->count, &to->capacity, sizeof *to->items);
    instr->queued = true;
    to->items[to->count++] = instr;
}

void hlo_engine_move(hlo_engine *engine, hlo_instruction *instr, hlo_instruction *before) {
    if (engine->rest == instr) engine->rest = instr->next;
    hlo_instr_move(instr, before);
    if (engine->context->order) *at(engine->context->order, instr) = 0;
}

void hlo_engine_push_one(hlo_engine *e, hlo_instruction *instr) {
    if (!instr->queued && e->by_op[instr->op]) hlo_worklist_add(e, &e->follow_up, instr);
}

enum { USERS_ABOVE = 2 };

static void push_users(hlo_engine *e, hlo_instruction *instr, unsigned above) {
    hlo_engine_push_one(e, instr);
    if (!above || instr->use_count > HLO_ENGINE_FIRINGS_PER_INSTR) return;
    for (hlo_use *use = instr->uses; use; use = use->next) push_users(e, use->user, above - 1);
}

void hlo_engine_push(hlo_engine *engine, hlo_instruction *instr) {
    push_users(engine, instr, USERS_ABOVE);
}

/* Not recursive, because a chain of dead instructions may be as long as the module. */
void hlo_engine_remove_dead(hlo_engine *engine, hlo_instruction *instr) {
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
