/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the cost of matmuls on a GPU: the bytes moved, and a time by the roofline model.
 *
 * Chains of elementwise and movement instructions are assumed to be fused: one kernel computes each
 * value that another instruction needs in memory. The kernel reads each value in memory that it
 * depends on once, and writes its result. A reduction and the producers of its operand are one
 * kernel. A matmul reads its operands and writes its results; its workspace is not counted. A wide
 * matmul reads a transposed operand in place. Dots are costed as stock XLA compiles them
 * (docs/cost.md).
 *
 *   time of a matmul   max(2*batch*m*n*k / peak of its type, bytes / peak bandwidth)
 *   time of a kernel   bytes / peak bandwidth
 *
 * target.def has the peaks. f32 products run at half the rate of bf16: XLA's default is TF32, which
 * has half the rate of bf16 in all of NVIDIA's datasheets. Source of the method: S. Williams et
 * al., "Roofline: an insightful visual performance model", CACM 52(4), 2009. */
#ifndef HLO_MATMUL_COST_COST_H
#define HLO_MATMUL_COST_COST_H

#include "matmul/call.h"

typedef struct hlo_cost {
    double bytes;           /* bytes read and written */
    double seconds;         /* 0 if the target's peak for the type is unknown */
    double compute_seconds; /* the FLOPs divided by the peak; 0 if `seconds` is 0 */
    double wide_seconds;    /* as `seconds`, but without FP8 for dots that stock XLA multiplies in
                             * FP8: it converts their operands */
} hlo_cost;

/* The time of a kernel launch, below which no matmul runs. */
#define HLO_LAUNCH_SECONDS 2e-6

/* The costs of all matmuls of a module, by instruction id. */
typedef struct hlo_costs hlo_costs;

/* Records the costs of the products (matmul/product.h) of a module. `needed` is true, by
 * instruction id, for instructions that are executed. The time is linear in the size of the module.
 * The result is allocated in `arena`, working memory in `scratch`; both may be the same arena. */
hlo_costs *hlo_costs_record(const hlo_module *module, const bool *needed, const hlo_target *target,
                            hlo_arena *arena, hlo_arena *scratch);

/* Returns the cost of the matmul with that id. The cost covers the matmul and the kernels that
 * compute its operands, divided evenly among the matmuls that read these operands. It also covers
 * each kernel that reads results of the matmul, unless `other` has an equal kernel. `other` has the
 * costs of the module before or after some passes. Returns zero if the matmul does not exist or is
 * not executed. */
hlo_cost hlo_costs_of(const hlo_costs *costs, const hlo_costs *other, uint32_t id);

/* Returns the seconds that a wide matmul and the kernels that compute its operands would take in
 * FP8, if these kernels, or additional kernels, quantized the operands. Returns 0 if unknown. */
double hlo_costs_in_fp8(const hlo_costs *costs, const hlo_instruction *matmul);

typedef enum hlo_cost_form {
    HLO_COST_WIDE,            /* on the operands of the dot */
    HLO_COST_FP8,             /* on fp8 values in their place */
    HLO_COST_FP8_SCALED_AFTER /* on fp8 values; a kernel after the call scales an f32 result */
} hlo_cost_form;

/* The first function returns the seconds that a dot takes; the kernels that compute the operands
 * are not counted. The second returns the seconds for computing the amax of a value, its scale, and
 * its fp8 values; with `fixed_scale`, for the fp8 values alone. Unlike the functions above, both
 * count launches, which dominate small matmuls. The first returns 0 if unknown. */
double hlo_cost_of_dot(const hlo_instruction *dot, hlo_cost_form form, const hlo_target *target);
double hlo_cost_of_quantizing(const hlo_shape *value, bool fixed_scale, const hlo_target *target);

/* Returns the speedup from splitting a matmul along its contracting dimension into `blocks` FP8
 * matmuls. The time before is the time of one matmul on operands that kernels dequantize to 16
 * bits. The time after covers the FP8 matmuls, the transpose of `transposed` operand elements, and
 * a kernel that adds the f32 results. Returns 0 if unknown. */
double hlo_cost_gain_of_blocks(hlo_matmul_sizes size, int64_t blocks, double transposed,
                               const hlo_target *target);

#endif
