/* SPDX-License-Identifier: Apache-2.0 */
/* The distribution of an input's numbers. */
#ifndef HLO_RUNTIME_IO_DRAW_H
#define HLO_RUNTIME_IO_DRAW_H

#include "ir/ir.h"

/* Floats: normal numbers, or their absolute values. */
typedef struct hlo_draw_role {
    double mean, deviation;
    bool positive;
} hlo_draw_role;

/* Returns the role of a parameter, or of an array in it with that shape, in a trained model, from
 * its name and from the dots that use it. */
hlo_draw_role hlo_draw_realistic(const hlo_instr *parameter, const hlo_shape *shape);

#endif
