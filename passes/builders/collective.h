/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the scales of fp8 values that collectives send, and quantizes before collectives. */
#ifndef HLO_PASSES_BUILDERS_COLLECTIVE_H
#define HLO_PASSES_BUILDERS_COLLECTIVE_H

#include "passes/engine/engine.h"

/* `chain`, the only operand of `collective`, is an fp8 value times `scale`, after movement. Builds
 * the factor of the result of `collective`, with the result's dimensions. A separate collective
 * sends the compact form of the scale. A scale is not sent if it is proved to be replicated and
 * does not vary along the dimension that grows. Returns NULL if the factor cannot be built, or is
 * too large to send. */
hlo_instr *hlo_collective_scale(hlo_rule_env *env, const hlo_instr *collective,
                                const hlo_binding *chain, hlo_instr *scale);

/* `convert` converts the result of a collective of wide values to fp8, after scaling by scalars and
 * clamping; each of these values has one user. Quantizes the operand of the collective instead, and
 * clones the collective onto it. Returns NULL if there is no such collective, or if a scalar may
 * differ between devices. */
hlo_instr *hlo_collective_quantized(hlo_rule_env *env, const hlo_instr *convert);

/* Returns the termination measure of an instruction. A collective of wide values has 1, or 2 if
 * several values are joined before it. A convert that quantizes the result of a collective has 1.
 * Other instructions have 0. */
int64_t hlo_collective_wide(const hlo_instr *value);

#endif
