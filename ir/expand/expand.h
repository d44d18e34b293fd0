/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces instructions by simpler ones, in a copy of the module made for a plan. */
#ifndef HLO_IR_EXPAND_EXPAND_H
#define HLO_IR_EXPAND_EXPAND_H

#include "hlo/diag.h"
#include "ir/ir.h"

/* Replaces dynamic shapes by static ones.
 *
 * A value of shape f32[<=8] becomes an array of the bound, f32[8], with its size next to it, an
 * s32[]. Elements at and after the size are padding, whose values must not affect results. As in
 * XLA, operations also compute values for the padding. Operations that would read padding into a
 * result (sums, products, concatenations ...) first replace it by an identity element. Parameters
 * and results of computations are passed with their sizes in a tuple: (value, size...). The entry's
 * results are padded with zeros.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the dynamic shape of an instruction is not
 * supported. The caller may then only free the module.
 *
 * Sources: XLA's dynamic_dimension_inference.cc and dynamic_padder.cc. */
hlo_status hlo_dynamic_expand(hlo_module *module, const hlo_diag_sink *sink);

/* True if hlo_dynamic_expand() may replace an instruction. */
bool hlo_dynamic_any(const hlo_module *module);

/* Replaces scans by loops. Returns HLO_INVALID_INPUT, with an error in `sink`, if a scan is too
 * long. The caller may then only free the module. */
hlo_status hlo_scan_expand(hlo_module *module, const hlo_diag_sink *sink);

/* Replaces batch-norm-training, -inference and -grad with static shapes by plain operations. */
void hlo_batch_norm_expand(hlo_module *module);

/* True if hlo_batch_norm_expand() may replace an instruction. */
bool hlo_batch_norm_any(const hlo_module *module);

/* Inserts conversions to f16 before conversions from f32 and f64 to the FP8 types that XLA's CPU
 * backend before jaxlib 0.8 rounds twice: f8e4m3fn, f8e5m2 and f8e4m3b11fnuz. As there, f64 is
 * first rounded to f32. */
void hlo_fp8_round_via_f16(hlo_module *module);

/* Replaces calls of CUB's radix sort by sorts. */
void hlo_radix_sort_expand(hlo_module *module);

/* True if hlo_radix_sort_expand() may replace an instruction. */
bool hlo_radix_sort_any(const hlo_module *module);

#endif
