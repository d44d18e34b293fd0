/* SPDX-License-Identifier: Apache-2.0 */
/* Manual regions: code for each device (jax's shard_map), in a module that the partitioner has not
 * processed.
 *
 * Outside of all regions, at depth 0, a value exists once for all devices; the partitioner will
 * split it. Operands that enter a region are split already: each device has a part, and two parts
 * are equal only if the value outside was replicated, or both devices received the same part. A
 * region may contain another one, which splits further. */
#ifndef HLO_PASSES_SHARDING_MANUAL_H
#define HLO_PASSES_SHARDING_MANUAL_H

#include "ir/devices/boundary.h"

/* Depths of a module's values in manual regions, allocated in the arena. Instructions created later
 * have no depth. */
typedef struct hlo_manual hlo_manual;
/* Finds the depths. In a partitioned module, all are unknown. */
const hlo_manual *hlo_manual_find(const hlo_module *module, hlo_arena *arena);

/* True if the module has manual regions and `value` is outside all of them. */
bool hlo_manual_outside(const hlo_manual *manual, const hlo_instr *value);

#endif
