/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the devices that run a module, and the values that are replicated among these devices. */
#ifndef HLO_PASSES_SHARDING_DEVICES_H
#define HLO_PASSES_SHARDING_DEVICES_H

#include "ir/devices/device_groups.h"
#include "passes/context.h"

/* Returns the number of replicas in the module header; 1 if absent. */
int64_t hlo_devices_replicas(const hlo_module *module);
/* Returns the number of partitions in the module header; 1 if absent. */
int64_t hlo_devices_partitions(const hlo_module *module);

/* Returns the collective that an instruction belongs to: the instruction itself, its start, or the
 * collective that its start wraps. */
const hlo_instruction *hlo_devices_sender(const hlo_instruction *instr);

/* True if `value` is proved to be replicated within each group of `collective`, in every execution.
 * Returns false if this is unknown (see devices.c). */
bool hlo_devices_replicated(hlo_pass_context *context, const hlo_instruction *value,
                            const hlo_instruction *collective);

/* Returns an array by instruction id: true if the value is known to be outside all manual regions.
 * Returns NULL if the module has no region. */
const bool *hlo_devices_outside(const hlo_module *module, hlo_arena *arena);

int64_t hlo_devices_free_channel(const hlo_module *module);

#endif
