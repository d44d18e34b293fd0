/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of jobs that pack elements of 4 bits two to a byte. */
#ifndef HLO_RUNTIME_CUDA_KERNEL_PACK_H
#define HLO_RUNTIME_CUDA_KERNEL_PACK_H

#include "runtime/cuda/codegen/emit.h"

/* True for a job without instructions that copies elements of 4 bits, one to a byte, to half as
 * many bytes along one dimension, which is their fastest. */
bool cuda_packs(const hlo_job *job);
/* Writes its launch into `code`; e->why: it cannot. */
void emit_pack(emit *e, cuda_code *code);

#endif
