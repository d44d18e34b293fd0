/* SPDX-License-Identifier: Apache-2.0 */
/* Selects the dots to quantize by their predicted times (matmul/cost/cost.h): the set of dots that
 * saves the most time over the whole module. Dots that use the same value share the cost of
 * quantizing it. */
#ifndef HLO_PASSES_QUANTIZE_SELECT_H
#define HLO_PASSES_QUANTIZE_SELECT_H

#include "matmul/call.h"

/* The minimum gain if the options do not set one. */
#define HLO_QUANTIZE_MIN_GAIN 1.05

/* Index that stands for an operand that is already quantized. */
#define HLO_SELECTION_NONE UINT32_MAX

typedef struct hlo_selectable {
    hlo_instruction *dot;
    bool quantizes[2];  /* by operand: true if the operand must be quantized */
    uint32_t values[2]; /* indices of the distinct values of its operands, or HLO_SELECTION_NONE */
    double wide, fp8;   /* seconds of the dot alone in all its executions; 0 if unknown */
    bool selected;
    double gain;      /* if selected: predicted speedup, including the costs that the dot pays; 0 if
                       * unknown */
    double saving;    /* if selected: predicted seconds that FP8 saves, less the costs that the dot
                       * pays; 0 if unknown */
    double unpaid;    /* the part of the profit that is not spent yet (select.c) */
    double paid[2];   /* seconds that the dot pays for each of its values */
    uint32_t next[2]; /* for each operand: the next dot of its value, or HLO_SELECTION_NONE */
} hlo_selectable;

typedef struct hlo_selectable_value {
    double seconds; /* seconds for quantizing the value in all executions */
    double unpaid;  /* the part of the cost that is not paid yet (select.c) */
    uint32_t first; /* first dot that uses the value, or HLO_SELECTION_NONE */
    uint32_t users; /* number of dots that use the value */
    uint32_t from;  /* the dot from which the search reached the value */
    bool reached;   /* the search reached the value */
} hlo_selectable_value;

typedef struct hlo_selection {
    hlo_arena *arena;
    hlo_selectable *dots;
    hlo_selectable_value *values;
    uint32_t dot_count, dot_capacity, value_count, value_capacity;
} hlo_selection;

/* Adds a value whose quantization runs `runs` times, and returns its index. With `fixed_scale`, the
 * scale is a constant. */
uint32_t hlo_selection_value(hlo_selection *s, const hlo_instruction *value, double runs,
                             bool fixed_scale, const hlo_target *target);
/* Adds a dot that runs `runs` times. `scales_after` is true if a kernel after the FP8 call applies
 * the scales to an f32 result. */
void hlo_selection_dot(hlo_selection *s, hlo_instruction *dot, const uint32_t *values, double runs,
                       bool scales_after, const hlo_target *target);

/* Sets `selected` and `gain` of each dot. Together, the selected dots take at least `min_gain`
 * times as long in wide types as in FP8. The same holds for each part of the selection that could
 * be left out. Dots whose times are unknown are selected. */
void hlo_select(hlo_selection *s, double min_gain);

#endif
