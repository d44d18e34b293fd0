/* SPDX-License-Identifier: Apache-2.0 */
/* Selects dots. The selection is a maximum closure (J.-C. Picard, "Maximal closure of a graph and
 * applications to combinatorial problems", Management Science 22(11), 1976): each dot has a profit,
 * and each value that the dot requires has a cost. The set with the largest difference of profit
 * and cost is the source side of a minimum cut. The maximum flow is found by augmenting paths: each
 * dot pays for its values from its profit. A dot can take its payment for a value back if another
 * dot pays instead. A dot that cannot spend all of its profit is selected, together with all dots
 * and values that the search from this dot reaches. */
#include "passes/quantize/select.h"

#include <math.h>

#include "matmul/cost/cost.h"

uint32_t hlo_selection_value(hlo_selection *s, const hlo_instruction *value, double runs,
                             bool fixed_scale, const hlo_target *target) {
    hlo_arena_grow(s->arena, &s->values, s->value_count, &s->value_capacity, sizeof *s->values);
    s->values[s->value_count] = (hlo_selectable_value){
        .seconds = runs * hlo_cost_of_quantizing(value->shape, fixed_scale, target),
        .first = HLO_SELECTION_NONE};
    return s->value_count++;
}

void hlo_selection_dot(hlo_selection *s, hlo_instruction *dot, const uint32_t *values, double runs,
                       bool scales_after, const hlo_target *target) {
    hlo_arena_grow(s->arena, &s->dots, s->dot_count, &s->dot_capacity, sizeof *s->dots);
    hlo_selectable *made = &s->dots[s->dot_count];
    *made = (hlo_selectable){
        .dot = dot,
        .quantizes = {values[0] != HLO_SELECTION_NONE, values[1] != HLO_SELECTION_NONE},
        .values = {values[0], values[1]},
        .wide = runs * hlo_cost_of_dot(dot, HLO_COST_WIDE, target),
        .fp8 = runs * hlo_cost_of_dot(dot, scales_after ? HLO_COST_FP8_SCALED_AFTER : HLO_COST_FP8,
                                      target)};
    if (values[0] == values[1]) made->values[1] = HLO_SELECTION_NONE;
    for (int o = 0; o < 2; o++) {
        if (made->values[o] == HLO_SELECTION_NONE) continue;
        hlo_selectable_value *v = &s->values[made->values[o]];
        made->next[o] = v->first;
        v->first = s->dot_count;
    }
    s->dot_count++;
}

/* Returns the index of the operand of `dot` that has the value. */
static int operand_of(const hlo_selectable *dot, uint32_t value) {
    return dot->values[1] == value;
}

/* Moves up to the unspent profit of dot `start` along the path that ends at `value`. */
static void pay(hlo_selection *s, uint32_t start, const uint32_t *came_from, uint32_t value) {
    double amount = fmin(s->values[value].unpaid, s->dots[start].unpaid);
    for (uint32_t v = value, d; (d = s->values[v].from) != start; v = came_from[d])
        amount = fmin(amount, s->dots[d].paid[operand_of(&s->dots[d], came_from[d])]);
    s->values[value].unpaid -= amount;
    s->dots[start].unpaid -= amount;
    for (uint32_t v = value;;) {
        const uint32_t d = s->values[v].from;
        hlo_selectable *dot = &s->dots[d];
        dot->paid[operand_of(dot, v)] += amount;
        if (d == start) return;
        dot->paid[operand_of(dot, came_from[d])] -= amount;
        v = came_from[d];
    }
}

typedef struct search {
    uint32_t *queue;     /* values to visit */
    uint32_t *came_from; /* by dot: the value from which the search reached the dot */
    bool *reached;       /* by dot: true if the search reached the dot */
    uint32_t *dots;      /* the dots that the search reached */
    uint32_t begin, end, dot_count;
} search;

static void enter_dot(hlo_selection *s, search *q, uint32_t dot) {
    q->reached[dot] = true;
    q->dots[q->dot_count++] = dot;
    for (int o = 0; o < 2; o++) {
        const uint32_t value = s->dots[dot].values[o];
        if (value == HLO_SELECTION_NONE || s->values[value].reached) continue;
        s->values[value].reached = true;
        s->values[value].from = dot;
        q->queue[q->end++] = value;
    }
}

/* Spends the profit of the dot. If profit remains, all dots and values that the search reached stay
 * marked. */
static void spend(hlo_selection *s, search *q, uint32_t start) {
    while (s->dots[start].unpaid > 0) {
        uint32_t found = HLO_SELECTION_NONE;
        q->begin = q->end = q->dot_count = 0;
        enter_dot(s, q, start);
        while (q->begin < q->end && found == HLO_SELECTION_NONE) {
            const uint32_t value = q->queue[q->begin++];
            if (s->values[value].unpaid > 0) found = value;
            for (uint32_t d = s->values[value].first; d != HLO_SELECTION_NONE;) {
                const hlo_selectable *dot = &s->dots[d];
                const int o = operand_of(dot, value);
                if (!q->reached[d] && dot->paid[o] > 0) {
                    q->came_from[d] = value;
                    enter_dot(s, q, d);
                }
                d = dot->next[o];
            }
        }
        if (found == HLO_SELECTION_NONE) return;
        pay(s, start, q->came_from, found);
        for (uint32_t i = 0; i < q->end; i++) s->values[q->queue[i]].reached = false;
        for (uint32_t i = 0; i < q->dot_count; i++) q->reached[q->dots[i]] = false;
    }
}

void hlo_select(hlo_selection *s, double min_gain) {
    search q = {.queue = hlo_arena_array(s->arena, s->value_count + 1, sizeof *q.queue),
                .came_from = hlo_arena_array(s->arena, s->dot_count, sizeof *q.came_from),
                .dots = hlo_arena_array(s->arena, s->dot_count, sizeof *q.dots),
                .reached = hlo_arena_zero(s->arena, s->dot_count * sizeof *q.reached)};
    for (uint32_t v = 0; v < s->value_count; v++)
        s->values[v].unpaid = min_gain * s->values[v].seconds;
    for (uint32_t d = 0; d < s->dot_count; d++) {
        hlo_selectable *dot = &s->dots[d];
        const bool known = dot->wide > 0 && dot->fp8 > 0;
        for (int o = 0; o < 2; o++)
            if (dot->values[o] != HLO_SELECTION_NONE) s->values[dot->values[o]].users++;
        dot->unpaid = known ? fmax(0, dot->wide - min_gain * dot->fp8) : (double)INFINITY;
    }
    /* Start with equal payments by all dots of a value, if these dots can afford them. */
    for (uint32_t d = 0; d < s->dot_count; d++) {
        hlo_selectable *dot = &s->dots[d];
        for (int o = 0; o < 2; o++) {
            if (dot->values[o] == HLO_SELECTION_NONE) continue;
            hlo_selectable_value *v = &s->values[dot->values[o]];
            dot->paid[o] = fmin(fmin(dot->unpaid, v->unpaid), min_gain * v->seconds / v->users);
            dot->unpaid -= dot->paid[o];
            v->unpaid -= dot->paid[o];
        }
    }
    for (uint32_t d = 0; d < s->dot_count; d++)
        if (!q.reached[d]) spend(s, &q, d);
    for (uint32_t d = 0; d < s->dot_count; d++) {
        hlo_selectable *dot = &s->dots[d];
        dot->selected = q.reached[d];
        if (dot->wide > 0 && dot->fp8 > 0) {
            const double fp8 = dot->fp8 + (dot->paid[0] + dot->paid[1]) / min_gain;
            dot->gain = dot->wide / fp8;
            dot->saving = dot->wide - fp8;
        }
    }
}
