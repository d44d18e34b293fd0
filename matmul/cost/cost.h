/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of matmuls on a GPU: bytes moved and a roofline time, by counting.
 *
 * Chains of elementwise and movement instructions are assumed to be fused: each value that another
 * instruction needs in memory is one kernel, which reads the values in memory that it depends on,
 * once each, and writes its result. A reduction and the producers of its operand are one kernel. A
 * matmul reads its operands and writes its results, without workspace; on wide types it reads a
 * transposed operand in place. Dots are costed as stock XLA compiles them (docs/cost.md).
 *
 *   time of a matmul   max(2*batch*m*n*k / peak of its type, bytes / peak bandwidth)
 *   time of a kernel   bytes / peak bandwidth
 *
 * The peaks are target.def's. f32 products run at half the rate of bf16 (TF32, XLA's default; half
 * the rate in all of NVIDIA's datasheets). Source of the method: S. Williams et al., "Roofline: an
 * insightful visual performance model", CACM 52(4), 2009. */
#ifndef HLO_MATMUL_COST_COST_H
#define HLO_MATMUL_COST_COST_H

#include "matmul/call.h"

typedef struct hlo_cost {
    double bytes;   /* bytes read and written */
    double seconds; /* 0: the target's peak for the type is unknown */
} hlo_cost;

/* The costs of all matmuls of a module, by instruction id. */
typedef struct hlo_costs hlo_costs;

/* Records the costs of the products (matmul/product.h) of a module. `needed`: true, by instruction
 * id, for instructions that are executed. Linear in the size of the module. The result is in
 * `arena`, working memory in `scratch`; both may be the same arena. */
hlo_costs *hlo_costs_record(const hlo_module *module, const bool *needed, const hlo_target *target,
                            hlo_arena *arena, hlo_arena *scratch);

/* Returns the cost of the matmul with that id. It consists of the matmul, the kernels that compute
 * its operands (divided evenly among the matmuls that read them), and those kernels that read its
 * results and differ from or are absent in `other`, the costs of the module before or after some
 * passes. Zero if there is no such matmul or it is not executed. */
hlo_cost hlo_costs_of(const hlo_costs *costs, const hlo_costs *other, uint32_t id);

/* Returns the seconds that a wide matmul and the kernels that compute its operands would take in
 * FP8, with the operands quantized in these kernels or in separate ones. 0: unknown. */
double hlo_costs_in_fp8(const hlo_costs *costs, const hlo_instr *matmul);

/* Return the seconds that a dot takes without the kernels that compute its operands, on its
 * operands or on fp8 values in their place; and the seconds that it takes to compute the amax of a
 * value, its scale, and its fp8 values. Unlike the functions above, they count launches, which
 * dominate small matmuls. 0: unknown. */
double hlo_cost_of_dot(const hlo_instr *dot, bool fp8, const hlo_target *target);
double hlo_cost_of_quantizing(const hlo_shape *value, const hlo_target *target);

/* Returns the speedup from splitting a matmul along its contracting dimension into `blocks` FP8
 * matmuls: the time on operands that kernels dequantize to 16 bits, divided by the time of the FP8
 * matmuls, of transposing `transposed` operand elements, and of a kernel that adds the f32 results.
 * 0: unknown. */
double hlo_cost_gain_of_blocks(hlo_matmul_sizes size, int64_t blocks, double transposed,
                               const hlo_target *target);

#endif
