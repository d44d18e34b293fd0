/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of fp8 values: their scales, and quantization before a collective. */
#ifndef HLO_PASSES_BUILDERS_COLLECTIVE_H
#define HLO_PASSES_BUILDERS_COLLECTIVE_H

#include "passes/engine/engine.h"

/* Builds the factor of the result of `collective` (of one operand) in the result's dimensions. Its
 * operand, `chain`, starts at an fp8 value times `scale`. The compact form of the scale is sent by
 * a separate collective. If it is proved to be replicated and does not vary along the dimension
 * that grows, it is only expanded. Returns NULL if it cannot be built, or is too large to send. */
hlo_instr *hlo_collective_scale(hlo_rule_env *env, const hlo_instr *collective,
                                const hlo_binding *chain, hlo_instr *scale);

/* Clones the collective of wide values whose result `convert`, to fp8, quantizes by scalars and
 * clamps (each with one user) onto its quantized operand. Returns NULL if there is no such
 * collective, or a scalar may differ between devices. */
hlo_instr *hlo_collective_quantized(hlo_rule_env *env, const hlo_instr *convert);

/* Termination measure: 1 for a collective of wide values, or 2 if the values are joined from
 * branches; 1 for a convert that quantizes the result of a collective. */
int64_t hlo_collective_wide(const hlo_instr *value);

#endif
