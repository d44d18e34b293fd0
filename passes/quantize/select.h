/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the dots to quantize by their predicted times (matmul/cost/cost.h): those that save the
 * most time over the whole module. Dots that use the same value share the cost of quantizing it. */
#ifndef HLO_PASSES_QUANTIZE_SELECT_H
#define HLO_PASSES_QUANTIZE_SELECT_H

#include "matmul/call.h"

/* The least gain if the options do not set one. */
#define HLO_QUANTIZE_MIN_GAIN 1.05

/* Index of the value of an operand that is quantized already. */
#define HLO_SELECTION_NONE UINT32_MAX

typedef struct hlo_selectable {
    hlo_instr *dot;
    bool quantizes[2];  /* by operand */
    uint32_t values[2]; /* indices of the distinct values of its operands, or HLO_SELECTION_NONE */
    double wide, fp8;   /* seconds of the dot alone in all its executions; 0: unknown */
    bool selected;
    double gain;      /* if selected: predicted speedup, including what the dot pays; 0: unknown */
    double unpaid;    /* rest of the profit (select.c) */
    double paid[2];   /* what it pays for each of its values */
    uint32_t next[2]; /* for each operand: the next dot of its value, or HLO_SELECTION_NONE */
} hlo_selectable;

typedef struct hlo_selectable_value {
    double seconds; /* quantizing it in all executions */
    double unpaid;  /* rest of the cost (select.c) */
    uint32_t first; /* a dot that uses it, or HLO_SELECTION_NONE */
    uint32_t users; /* number of dots that use it */
    uint32_t from;  /* the dot by which the search reached it */
    bool reached;   /* by the search */
} hlo_selectable_value;

typedef struct hlo_selection {
    hlo_arena *arena;
    hlo_selectable *dots;
    hlo_selectable_value *values;
    uint32_t dot_count, dot_capacity, value_count, value_capacity;
} hlo_selection;

/* Adds a value that is quantized `runs` times, and returns its index. */
uint32_t hlo_selection_value(hlo_selection *s, const hlo_instr *value, double runs,
                             const hlo_target *target);
/* Adds a dot that runs `runs` times. */
void hlo_selection_dot(hlo_selection *s, hlo_instr *dot, const uint32_t *values, double runs,
                       const hlo_target *target);

/* Sets `selected` and `gain` of each dot. The selected dots take at least `min_gain` times as long
 * in wide types as in FP8, together, and so does each part of them that could be left out. Dots
 * whose times are unknown are selected. */
void hlo_select(hlo_selection *s, double min_gain);

#endif
