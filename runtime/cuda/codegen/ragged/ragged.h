/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for ragged-dots. */
#ifndef HLO_RUNTIME_CUDA_CODEGEN_RAGGED_RAGGED_H
#define HLO_RUNTIME_CUDA_CODEGEN_RAGGED_RAGGED_H

#include "runtime/cuda/codegen/emit.h"

void emit_ragged(emit *e, cuda_code *code);
/* Returns why kernels do not support the ragged-dot, or NULL. */
const char *cuda_ragged_refusal(const hlo_instr *instr);

#endif
