/* SPDX-License-Identifier: Apache-2.0 */
/* The dots of attention: batched dots before and after a softmax, and those of its gradient.
 * Quantization between them keeps compilers from fusing attention, and costs the most accuracy. */
#ifndef HLO_PASSES_QUANTIZE_ATTENTION_H
#define HLO_PASSES_QUANTIZE_ATTENTION_H

#include "ir/ir.h"

/* Finds these dots, by instruction id, in the arena. `callers`: the only caller of each
 * computation, or NULL. */
const bool *hlo_attention_find(const hlo_module *module, hlo_instr *const *callers,
                               hlo_arena *arena);

#endif
