/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/text/print_order.h"

#include <stdlib.h>

enum { BEGUN = -1, NOT_SEEN = -2 };

typedef struct postorder {
    uint32_t *numbers;
    const hlo_instr **stack, **order;
    size_t depth;
    uint32_t count;
} postorder;

static bool is_placed(const postorder *w, const hlo_instr *instr) {
    return w->numbers[instr->id] < (uint32_t)NOT_SEEN;
}

static void push(postorder *w, const hlo_instr *instr) {
    if (!is_placed(w, instr)) w->stack[w->depth++] = instr;
}

static void place_all(postorder *w, const hlo_instr *from) {
    push(w, from);
    while (w->depth) {
        const hlo_instr *instr = w->stack[w->depth - 1];
        uint32_t *number = &w->numbers[instr->id];
        if (*number == (uint32_t)NOT_SEEN) {
            *number = (uint32_t)BEGUN;
            for (uint32_t i = instr->operand_count; i > 0; i--)
                push(w, hlo_instr_operand(instr, i - 1));
            const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
            for (uint32_t i = 0; control && i < control->u.instrs->count; i++)
                push(w, control->u.instrs->v[i]);
            continue;
        }
        w->depth--;
        if (is_placed(w, instr)) continue;
        *number = w->count;
        w->order[w->count++] = instr;
    }
}

const hlo_instr **hlo_print_order(const hlo_computation *comp, uint32_t *numbers) {
    size_t most = 1; /* entries on the stack: an instruction once per user */
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
        const hlo_attr *control = hlo_instr_attr(instr, HLO_ATTR_CONTROL_PREDECESSORS);
        most += 1 + instr->operand_count + (control ? control->u.instrs->count : 0);
        numbers[instr->id] = (uint32_t)NOT_SEEN;
    }
    const hlo_instr **order = malloc((comp->instr_count + most) * sizeof *order);
    if (!order) return NULL;
    postorder w = {.numbers = numbers, .order = order, .stack = order + comp->instr_count};
    for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
        if (!instr->uses) place_all(&w, instr);
    return order;
}
