/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of devices that a collective connects, or that have equal parts according to a
 * sharding. */
#ifndef HLO_IR_DEVICES_DEVICE_GROUPS_H
#define HLO_IR_DEVICES_DEVICE_GROUPS_H

#include "ir/device_list.h"

/* A partition of the devices into groups, allocated in the given arena. */
typedef struct hlo_device_groups {
    uint32_t count;     /* number of elements of `of`; each further device is a separate group; 0:
                         * all devices are one group */
    const uint32_t *of; /* indexed by device: the representative of the device's group */
} hlo_device_groups;

extern const hlo_device_groups hlo_device_groups_whole;

/* Creates the groups of replica_groups. NULL and `{}` are one group of all devices. `devices`: the
 * number of devices; 0: the number of named devices. Returns NULL if there are too many devices, or
 * an id is out of range. */
const hlo_device_groups *hlo_device_groups_of_lists(hlo_arena *arena, const hlo_groups *groups,
                                                    int64_t devices);

/* Lists the group of `device` in the order of its members. Returns NULL if no group contains it, or
 * the notation names too many devices. */
const hlo_ints *hlo_device_group_of(hlo_arena *arena, const hlo_groups *groups, int64_t device);

/* Finds the devices that source_target_pairs connect. Returns NULL like
 * hlo_device_groups_of_lists(). */
const hlo_device_groups *hlo_device_groups_of_pairs(hlo_arena *arena, const hlo_groups *pairs,
                                                    int64_t devices);

/* How to group devices along manual dimensions, where each device has a separate array. HLO_HAVE
 * groups devices whose arrays are equal. HLO_GET groups devices that would receive equal parts of a
 * single array. */
typedef enum hlo_handed { HLO_HAVE, HLO_GET } hlo_handed;
/* Groups devices that have equal parts according to a sharding of an array. Returns NULL like
 * hlo_device_groups_of_lists(). */
const hlo_device_groups *
hlo_device_groups_of_sharding(hlo_arena *arena, const hlo_sharding *sharding, hlo_handed asked);

/* The tiles of a sharded array. */
typedef struct hlo_tiling {
    int64_t devices; /* number of devices that have a tile; 0: each device has the whole array */
    const int64_t *counts; /* number of tiles along each dimension of the array */
    const int64_t
        *places; /* position of each device's tile along each dimension, device by device */
} hlo_tiling;

/* Finds the tile of each device from the sharding of an array of `rank` dimensions; NULL is a
 * replicated array. Allocates from the arena. Returns false for other kinds of shardings, or if the
 * sharding names too many devices. */
bool hlo_tiling_of_sharding(hlo_arena *arena, const hlo_sharding *sharding, uint32_t rank,
                            hlo_tiling *out);

/* True if each group of `a` is within a group of `b`. */
bool hlo_device_groups_refine(const hlo_device_groups *a, const hlo_device_groups *b);

#endif
