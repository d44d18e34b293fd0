/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces custom calls of libraries by opcodes, in a copy of the module made for a plan.
 *
 *   __onednn$softmax      x
 *   __onednn$layernorm    x, scale, shift: normalizes the last dimension
 *   __onednn$matmul       a, b, operands of fused operations
 *   __cudnn$conv*         x, kernel, or a gradient in place of one; bias, side input, or operands
 * of a graph
 *   __cudnn$norm          x, scale, shift, or x, scale, gradient, means, factors
 *   __cudnn$fmha*         q, k, v[, bias], or q, k, v, statistics, gradient[, bias], result
 *   ducc_fft              descriptor, x
 *   dynamic_ducc_fft      descriptor, x, shape, strides of x and of the result, factor[, shape]
 *
 * A call may also return working memory, which becomes zeros. Narrow floats are computed in f32 and
 * rounded once.
 *
 * Sources: XLA's onednn_config.proto and onednn_*.cc; jax's ducc_fft.fbs and ducc_fft.py; those of
 * convolution.c, attention.c and norm.c. */
#ifndef HLO_RUNTIME_CALLS_CALLS_H
#define HLO_RUNTIME_CALLS_CALLS_H

#include "hlo/diag.h"
#include "ir/ir.h"

/* Returns HLO_INVALID_INPUT, with an error in `sink`, if a call is invalid or not supported. The
 * caller may then only free the module. */
hlo_status hlo_calls_expand(hlo_module *module, const hlo_diag_sink *sink);

/* True if hlo_calls_expand() replaces an instruction or reports an error. */
bool hlo_calls_any(const hlo_module *module);

#endif
