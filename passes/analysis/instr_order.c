/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/instr_order.h"

#include <string.h>

/* Gap between the keys of instructions that are numbered together. */
static const uint64_t key_gap = UINT64_C(1) << 40;

struct hlo_order {
    hlo_arena *arena;
    uint64_t *keys; /* by instruction id; 0: not numbered */
    uint32_t capacity;
};

static void grow(hlo_order *order, uint32_t ids) {
    const uint32_t capacity = ids + ids / 2 + 256;
    uint64_t *keys = hlo_arena_array(order->arena, capacity, sizeof *keys);
    if (order->capacity) memcpy(keys, order->keys, order->capacity * sizeof *keys);
    memset(keys + order->capacity, 0, (capacity - order->capacity) * sizeof *keys);
    order->keys = keys;
    order->capacity = capacity;
}

/* Returns the address of the key of `instr`, growing the table if needed. */
static uint64_t *at(hlo_order *order, const hlo_instr *instr) {
    if (instr->id >= order->capacity) grow(order, instr->id);
    return &order->keys[instr->id];
}

static void number(hlo_order *order, const hlo_computation *comp) {
    uint64_t key = 0;
    for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i)) *at(order, i) = key += key_gap;
}

hlo_order *hlo_order_new(const hlo_module *module, hlo_arena *arena) {
    hlo_order *order = hlo_arena_zero(arena, sizeof *order);
    order->arena = arena;
    grow(order, module->next_id);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) number(order, comp);
    return order;
}

/* Assigns new keys to `instr` and its unnumbered neighbors, between the keys of the nearest
 * numbered instructions. If there is no room, renumbers the computation. */
static uint64_t key_of(hlo_order *order, const hlo_instr *instr) {
    if (*at(order, instr)) return *at(order, instr);
    const hlo_instr *first = instr, *end = instr->next;
    while (first->prev && !*at(order, first->prev)) first = first->prev;
    while (end && !*at(order, end)) end = end->next;
    const uint64_t low = first->prev ? *at(order, first->prev) : 0;
    const uint64_t high = end ? *at(order, end) : low + key_gap;
    uint64_t count = 1;
    for (const hlo_instr *i = first; i != end; i = i->next) count++;
    const uint64_t step = (high - low) / 16 / count;
    if ((!first->prev && !end) || !step) {
        number(order, instr->parent);
        return *at(order, instr);
    }
    uint64_t key = low;
    for (const hlo_instr *i = first; i != end; i = i->next) *at(order, i) = key += step;
    return *at(order, instr);
}

bool hlo_order_before(hlo_order *order, const hlo_instr *a, const hlo_instr *b) {
    (void)key_of(order, a); /* may renumber `b`, so both keys are read afterwards */
    const uint64_t other = key_of(order, b);
    return key_of(order, a) < other;
}

void hlo_order_moved(hlo_order *order, const hlo_instr *instr) {
    *at(order, instr) = 0;
}
