/* SPDX-License-Identifier: Apache-2.0 */
/* The boundary of manual regions (jax's shard_map): outside a value exists once for all devices,
 * inside each device has a part. */
#ifndef HLO_IR_DEVICES_BOUNDARY_H
#define HLO_IR_DEVICES_BOUNDARY_H

#include "ir/devices/device_groups.h"

/* True for a custom call of that target. */
bool hlo_boundary_calls(const hlo_instr *instr, const char *target);
/* True for an entry with the name that XLA's partitioner gives. */
bool hlo_boundary_spmd(const hlo_computation *entry);

/* True if `instr` passes its operands, in parts, into a region. */
bool hlo_manual_enters(const hlo_instr *instr);

/* Groups the devices to which an instruction that enters a region passes the same part of operand
 * `index`, whatever its value. NULL: not known. */
const hlo_device_groups *hlo_manual_parts(hlo_arena *arena, const hlo_instr *enters,
                                          uint32_t index);

/* True if `instr` joins the parts of a region's result into a value outside. */
bool hlo_manual_leaves(const hlo_instr *instr);

/* Groups the devices whose parts are joined: all of them get one result. NULL: not known. */
const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instr *leaves);

/* Finds each device's part of value `index` that an instruction passes over the boundary, in either
 * direction. False: not known. */
bool hlo_manual_tiling(hlo_arena *arena, const hlo_instr *boundary, uint32_t index,
                       hlo_tiling *out);

/* True if XLA's partitioner has not run: values are marked as sharded, but there is no collective,
 * or only in manual regions. `*out_marked` is a marked value. */
bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked);

#endif
