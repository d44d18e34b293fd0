/* What matmuls cost on a GPU: bytes moved and a roofline time, by counting.
 *
 * Values that only elementwise and movement instructions lie between are taken to be computed by
 * one kernel, as a fusing compiler makes it: each value that something else needs in memory is one
 * kernel, which reads the values in memory that it comes from, once each, and writes its own. A
 * reduction is one kernel together with what it reduces. A matmul reads its operands and writes its
 * results, amax and workspace aside; on wide types it takes an operand transposed as it lies.
 *
 *   time of a matmul   max(2*batch*m*n*k / peak of its type, bytes / peak bandwidth)
 *   time of a kernel   bytes / peak bandwidth
 *
 * The peaks are target.def's. f32 products run at half the rate of bf16 (TF32, as XLA lets them by
 * default; NVIDIA's datasheets give it half throughout). Source of the method: S. Williams et al.,
 * "Roofline: an insightful visual performance model", CACM 52(4), 2009. */
#ifndef HLO_MATMUL_COST_H
#define HLO_MATMUL_COST_H

#include "matmul/call.h"

typedef struct hlo_cost {
    double bytes;   /* read and written */
    double seconds; /* 0: the target's peak for the type is not known */
} hlo_cost;

/* The costs of all matmuls of a module, by instruction id. */
typedef struct hlo_costs hlo_costs;

/* Weighs what multiplies matrices (product.h) in a module. `needed`: by instruction
 * id, what runs at all. Linear in the size of the module; lives in `arena`, and leaves in `scratch`
 * (which may be the same) what is not needed afterwards. */
hlo_costs *hlo_costs_record(const hlo_module *module, const bool *needed,
                            const hlo_target_info *target, hlo_arena *arena, hlo_arena *scratch);

/* The cost of the matmul with that id: itself, the kernels that make its operands (shared evenly by
 * the matmuls that read them), and of the kernels that read its results those that `other`, the
 * costs of the same module before or after some passes, has not or not alike. No such matmul, or
 * one that does not run: zero. */
hlo_cost hlo_costs_of(const hlo_costs *costs, const hlo_costs *other, uint32_t id);

/* What a wide matmul and the kernels that make its operands would take in FP8, where the operands
 * must be quantised first: by the kernels that make them, or by kernels of their own. 0 where that
 * is not known. */
double hlo_costs_in_fp8(const hlo_costs *costs, const hlo_instr *matmul);

#endif
