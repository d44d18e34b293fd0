/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces instructions by simpler ones, in a copy of the module made for a plan. */
#ifndef HLO_IR_EXPAND_EXPAND_H
#define HLO_IR_EXPAND_EXPAND_H

#include "hlo/diag.h"
#include "ir/ir.h"

/* Replaces dynamic shapes by static ones.
 *
 * A value of shape f32[<=8] becomes an array of its bound, f32[8], and its size, an s32[] next to
 * it. Elements from the size on are padding, whose values must not affect anything. As in XLA,
 * operations also compute the padding. Operations that would read padding into a result (sums,
 * products, concatenations ...) first replace it by an identity element. Parameters and results of
 * computations are passed with their sizes in a tuple: (value, size...). The entry's results are
 * padded with zeros.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the dynamic shape of an instruction is not
 * supported. The module may then only be freed.
 *
 * Sources: XLA's dynamic_dimension_inference.cc and dynamic_padder.cc. */
hlo_status hlo_dynamic_expand(hlo_module *module, const hlo_diag_sink *sink);

/* True if hlo_dynamic_expand() may replace an instruction. */
bool hlo_dynamic_any(const hlo_module *module);

/* Replaces scans by loops. Returns HLO_INVALID_INPUT, with an error in `sink`, if a scan is too
 * long. The module may then only be freed. */
hlo_status hlo_scan_expand(hlo_module *module, const hlo_diag_sink *sink);

/* Replaces batch-norm-training, -inference and -grad with static shapes by plain operations. */
void hlo_batch_norm_expand(hlo_module *module);

/* True if the module has such an operation. */
bool hlo_batch_norm_any(const hlo_module *module);

#endif
