/* Which instructions run together. */
#include "runtime/cuda/kernel_emit.h"

uint32_t cuda_kernel_group(const cuda_device *device, const hlo_instr *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups) {
    (void)device;
    (void)live;
    (void)count;
    (void)arena;
    *out_groups = NULL;
    return 0;
}
