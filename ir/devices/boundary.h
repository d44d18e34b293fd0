/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary of manual regions (jax's shard_map): outside, a value exists once for all devices;
 * inside, each device has a part. */
#ifndef HLO_IR_DEVICES_BOUNDARY_H
#define HLO_IR_DEVICES_BOUNDARY_H

#include "ir/devices/device_groups.h"

/* True if the entry computation has the name that XLA's partitioner assigns. */
bool hlo_boundary_spmd(const hlo_computation *entry);

/* True if `instr` passes its operands, in parts, into a region. */
bool hlo_manual_enters(const hlo_instruction *instr);

/* Groups the devices that receive the same part of operand `index` of `enters`, for any value of
 * the operand. `enters` is as in hlo_manual_enters(). Returns NULL if unknown. */
const hlo_device_groups *hlo_manual_parts(hlo_arena *arena, const hlo_instruction *enters,
                                          uint32_t index);

/* True if `instr` joins the parts of a region's result into a global value. */
bool hlo_manual_leaves(const hlo_instruction *instr);

/* Groups the devices whose parts are joined: they receive the same result. Returns NULL if unknown.
 */
const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instruction *leaves);

/* Finds each device's part of value `index` of an instruction that crosses the boundary in either
 * direction. Returns false if unknown. */
bool hlo_manual_tiling(hlo_arena *arena, const hlo_instruction *boundary, uint32_t index,
                       hlo_tiling *out);

/* True if XLA's partitioner has not run: values have tiled shardings, the entry does not have the
 * name that the partitioner assigns, and there are no collectives unless there are manual regions.
 * `*out_marked` is a value with a tiled sharding, or NULL. */
bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instruction **out_marked);

#endif
