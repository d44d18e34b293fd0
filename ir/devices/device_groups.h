/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of devices that a collective connects, or that have equal parts by a sharding. */
#ifndef HLO_IR_DEVICES_DEVICE_GROUPS_H
#define HLO_IR_DEVICES_DEVICE_GROUPS_H

#include "ir/device_list.h"

/* A partition of the devices into groups; lives in the arena that it was made in. */
typedef struct hlo_device_groups {
    uint32_t count; /* of listed devices; any other is a group of its own; 0: all are one group */
    const uint32_t *of; /* by device: the representative of its group */
} hlo_device_groups;

/* All devices as one group. */
extern const hlo_device_groups hlo_device_groups_whole;

/* Makes the groups of replica_groups; NULL and `{}` are all devices. `devices`: their number; 0: as
 * many as are named. NULL: too many, or out of range. */
const hlo_device_groups *hlo_device_groups_of_lists(hlo_arena *arena, const hlo_groups *groups,
                                                    int64_t devices);

/* Lists the group of `device` in the order in which its members come. NULL: no group has it, or the
 * notation names too many devices. */
const hlo_ints *hlo_device_group_of(hlo_arena *arena, const hlo_groups *groups, int64_t device);

/* Finds the devices that source_target_pairs connect. NULL as above. */
const hlo_device_groups *hlo_device_groups_of_pairs(hlo_arena *arena, const hlo_groups *pairs,
                                                    int64_t devices);

/* Meaning of manual dimensions, where each device has an array of its own: devices with equal
 * arrays (HLO_HAVE), or devices that would have equal parts, if the arrays were one (HLO_GET). */
typedef enum hlo_handed { HLO_HAVE, HLO_GET } hlo_handed;
/* Groups devices that have equal parts by a sharding of an array. NULL as above. */
const hlo_device_groups *
hlo_device_groups_of_sharding(hlo_arena *arena, const hlo_sharding *sharding, hlo_handed asked);

/* Groups devices, HLO_GET, by sharding `number` in Shardy's `#sdy.sharding_per_value<[...]>`.
 * `meshes`: the module's attribute, `{mesh = #sdy.mesh<["x"=2]>}`. NULL as above. */
const hlo_device_groups *hlo_device_groups_of_shardy(hlo_arena *arena, hlo_module *module,
                                                     const char *meshes, const char *shardings,
                                                     uint32_t number);

/* Groups devices along the axes `#sdy<manual_axes{"x"}>` of the mesh that `shardings` name first.
 * NULL as above. */
const hlo_device_groups *hlo_device_groups_of_axes(hlo_arena *arena, hlo_module *module,
                                                   const char *meshes, const char *shardings,
                                                   const char *axes);

/* The tiles of a sharded array. */
typedef struct hlo_tiling {
    int64_t devices;       /* that have one; 0: each device has all of the array */
    const int64_t *counts; /* of tiles, along each dimension of the array */
    const int64_t *places; /* of a device's tile along each dimension, device after device */
} hlo_tiling;

/* Finds the tile of each device, in the arena, by the sharding of an array of `rank` dimensions;
 * NULL is replicated. False: the sharding is of another kind, or names too many devices. */
bool hlo_tiling_of_sharding(hlo_arena *arena, const hlo_sharding *sharding, uint32_t rank,
                            hlo_tiling *out);

/* Finds the tiles along the axes `#sdy<manual_axes{"x"}>` alone, by sharding `number` in Shardy's
 * notation, of an array of `rank` dimensions. False as above. */
bool hlo_tiling_of_shardy(hlo_arena *arena, hlo_module *module, const char *meshes,
                          const char *shardings, uint32_t number, const char *axes, uint32_t rank,
                          hlo_tiling *out);

/* True if each group of `a` is within a group of `b`. */
bool hlo_device_groups_refine(const hlo_device_groups *a, const hlo_device_groups *b);

#endif
