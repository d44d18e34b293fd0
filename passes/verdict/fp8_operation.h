/* SPDX-License-Identifier: Apache-2.0 */
/* Operations between a dequantization and a matmul through which FP8 does not pass. */
#ifndef HLO_PASSES_VERDICT_FP8_OPERATION_H
#define HLO_PASSES_VERDICT_FP8_OPERATION_H

#include "passes/analysis/fp8_provenance.h"

typedef struct hlo_fp8_operations hlo_fp8_operations;

/* Analyzes the whole module. The result is in `arena`, borrows `provenance`, and is valid until the
 * module changes. */
hlo_fp8_operations *hlo_fp8_operations_find(const hlo_module *module,
                                            const hlo_fp8_provenance *provenance, hlo_arena *arena);

/* Kinds of operations through which FP8 does not pass. */
typedef enum hlo_fp8_obstacle {
    HLO_OBSTACLE_OPERATION, /* it computes something else from dequantized values */
    HLO_OBSTACLE_RELU,      /* it is a relu, and a scale below it is not known to be positive */
    HLO_OBSTACLE_FACTOR,    /* it is a factor with a value for each element */
    HLO_OBSTACLE_UPDATE,    /* it updates a slice of dequantized values */
    HLO_OBSTACLE_JOIN, /* it selects or concatenates them; FP8 passes through supported forms */
    HLO_OBSTACLE_ZERO_POINT, /* it shifts fp8 values before they are scaled */
} hlo_fp8_obstacle;

/* Finds the operation nearest to `value`, or `value` itself, that is applied to dequantized values
 * and neither moves, converts nor scales them. `value` depends on fp8 values, and not on a matmul.
 * Returns NULL if not found. */
const hlo_instr *hlo_fp8_operation(const hlo_fp8_operations *operations, const hlo_instr *value,
                                   hlo_fp8_obstacle *out_obstacle);

#endif
