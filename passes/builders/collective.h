/* Scales that go from device to device beside the fp8 values that they are for, and quantising
 * before that. */
#ifndef HLO_PASSES_SEND_H
#define HLO_PASSES_SEND_H

#include "passes/engine/engine.h"

/* What the result of `collective` (of one operand) is to be multiplied with, when its operand,
 * `chain`, is made of the fp8 value that chain->inner multiplies with `scale`, in the dimensions of
 * the result: what the devices have of it, without repetitions, sent as the value is; or just
 * repeated, where it is proved to be the same on all of them and does not change along the
 * dimension that grows. NULL: it cannot be made, or would be too much to send. */
hlo_instr *hlo_collective_scale(hlo_rule_env *env, const hlo_instr *collective,
                                const hlo_binding *chain, hlo_instr *scale);

/* The collective, of wide values, that brings what `convert`, to fp8, is made of: by scaling and
 * limiting it, each with one number, and by nothing that is used elsewhere. NULL: it is not so. */
hlo_instr *hlo_collective_quantises(const hlo_instr *convert);

/* The same, quantised first and then sent. NULL: it is not so, or a number may be another one on
 * another device. */
hlo_instr *hlo_collective_quantised(hlo_rule_env *env, const hlo_instr *convert);

/* What is left to do about sending: 1 for a collective of wide values, 2 where these are put
 * together from branches; 1 for what is quantised behind one. */
int64_t hlo_collective_wide(const hlo_instr *value);

#endif
