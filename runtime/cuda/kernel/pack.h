/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of jobs that pack 4-bit elements, two per byte. */
#ifndef HLO_RUNTIME_CUDA_KERNEL_PACK_H
#define HLO_RUNTIME_CUDA_KERNEL_PACK_H

#include "runtime/cuda/codegen/emit.h"

/* True for a job without instructions that copies 4-bit elements, one per byte, to half as many
 * bytes along one dimension, which is their fastest. */
bool cuda_packs(const hlo_job *job);
/* Writes its launch into `code`; on failure, sets e->why. */
void emit_pack(emit *e, cuda_code *code);

#endif
