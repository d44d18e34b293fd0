/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dots of attention: batched dots before and after a softmax, and the dots of its
 * gradient. Quantization between these dots prevents compilers from fusing attention, and costs
 * more accuracy than elsewhere. */
#ifndef HLO_PASSES_QUANTIZE_ATTENTION_H
#define HLO_PASSES_QUANTIZE_ATTENTION_H

#include "ir/ir.h"

/* Finds the dots of attention. Returns an array by instruction id, allocated in the arena. */
const bool *hlo_attention_find(const hlo_module *module, hlo_arena *arena);

#endif
