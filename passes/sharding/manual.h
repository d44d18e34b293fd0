/* Manual regions: what was written for each device (jax's shard_map), in a module that the
 * partitioner has not seen yet.
 *
 * Outside of them, at depth 0, a value is there once, for all devices; it is the partitioner that
 * will split it. Into a region go values that are split already: there is one for each device, and
 * two are alike only where what stands outside was, and both were handed the same part of it. In a
 * region another may be entered, which splits more. */
#ifndef HLO_PASSES_MANUAL_H
#define HLO_PASSES_MANUAL_H

#include "passes/sharding/device_groups.h"

/* What is known of the depths at which a module's values stand. Lives in the arena that it was made
 * in. What is made later stands nowhere. */
typedef struct hlo_manual hlo_manual;
const hlo_manual *hlo_manual_find(const hlo_module *module, hlo_arena *arena);

/* Whether `value` stands outside all regions for sure, in a module that has some. */
bool hlo_manual_outside(const hlo_manual *manual, const hlo_instr *value);

/* Whether `instr` hands its operands, in parts, to a region. */
bool hlo_manual_enters(const hlo_instr *instr);

/* Those devices to which an instruction that enters hands the same part of operand `index`,
 * whatever that is. NULL: it is not known. */
const hlo_device_groups *hlo_manual_parts(hlo_arena *arena, const hlo_instr *enters,
                                          uint32_t index);

/* Whether `instr` hands what a region made to what stands around it, put together. */
bool hlo_manual_leaves(const hlo_instr *instr);

/* Those devices between which what leaves is put together: all of them get the same. NULL: it is
 * not known. */
const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instr *leaves);

/* Whether the entry may be seen by the partitioner yet, which hands each of several devices parts
 * of its values: nothing in its header or name says otherwise. */
bool hlo_devices_may_be_global(const hlo_module *module);

/* Whether XLA's partitioner has not split the module yet: values are marked as sharded, but nothing
 * goes from device to device, or only in what was written for each. `*out_marked` is such a value.
 */
bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked);

#endif
