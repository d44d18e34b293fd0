/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions replaced by plainer ones, in a copy of the module that a plan is made for. */
#ifndef HLO_IR_EXPAND_EXPAND_H
#define HLO_IR_EXPAND_EXPAND_H

#include "hlo/diag.h"
#include "ir/ir.h"

/* Replaces dynamic shapes by static ones.
 *
 * A value of shape f32[<=8] is an array of its bound, f32[8], and beside it its size, an s32[] of
 * the program: elements from the size on are padding, whose values nothing may depend on. As in
 * XLA, operations compute the padding, too; what would let it into a result (sums, products,
 * concatenations ...) puts neutral elements there first. Sizes of parameters and results of
 * computations go with them in a tuple: (value, size...). The entry's results get zeros as padding.
 *
 * HLO_INVALID_INPUT, with an error in `sink`: an instruction has a dynamic shape that is not
 * understood; the module may only be freed.
 *
 * Sources: XLA's dynamic_dimension_inference.cc and dynamic_padder.cc. */
hlo_status hlo_dynamic_expand(hlo_module *module, const hlo_diag_sink *sink);

/* Returns true if hlo_dynamic_expand() may replace an instruction. */
bool hlo_dynamic_any(const hlo_module *module);

/* Replaces scans by loops. HLO_INVALID_INPUT, with an error in `sink`: one is too long; the module
 * may only be freed. */
hlo_status hlo_scan_expand(hlo_module *module, const hlo_diag_sink *sink);

/* Replaces batch-norm-training, -inference and -grad of static shapes by plain operations. */
void hlo_batch_norm_expand(hlo_module *module);

/* Returns true if the module has such an operation. */
bool hlo_batch_norm_any(const hlo_module *module);

#endif
