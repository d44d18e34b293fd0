/* SPDX-License-Identifier: Apache-2.0 */
/* The backends of this build. */
#include "runtime/cpu/cpu.h"
#include "runtime/cuda/driver/cuda.h"

const hlo_backend *const hlo_backends[] = {&cpu_backend, &cuda_backend, NULL};
