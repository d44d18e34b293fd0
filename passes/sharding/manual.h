/* SPDX-License-Identifier: Apache-2.0 */
/* Manual regions: code for each device (jax's shard_map), in a module that the partitioner has
 * not processed.
 *
 * Outside of all regions, at depth 0, a value exists once for all devices; the partitioner will
 * split it. Operands that enter a region are split already: each device has a part, and two
 * parts are equal only if the value outside was replicated, or both devices were given one part
 * of it. A region may contain another one, which splits further. */
#ifndef HLO_PASSES_SHARDING_MANUAL_H
#define HLO_PASSES_SHARDING_MANUAL_H

#include "ir/devices/boundary.h"

/* Depths of a module's values in manual regions. Lives in the arena that it was made in.
 * Instructions made later have no depth. */
typedef struct hlo_manual hlo_manual;
/* Finds the depths, in the arena; all are unknown in a partitioned module. */
const hlo_manual *hlo_manual_find(const hlo_module *module, hlo_arena *arena);

/* True if `value` is outside of all regions, in a module that has some. */
bool hlo_manual_outside(const hlo_manual *manual, const hlo_instr *value);

#endif
