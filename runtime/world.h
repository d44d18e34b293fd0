/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices that run one module, one thread each. They meet at collectives. */
#ifndef HLO_RUNTIME_WORLD_H
#define HLO_RUNTIME_WORLD_H

#include "hlo/status.h"
#include "ir/ir.h"

typedef struct hlo_world hlo_world;

/* Creates a world of replicas * partitions devices; NULL if memory runs out. */
hlo_world *hlo_world_new(uint32_t replicas, uint32_t partitions);
void hlo_world_free(hlo_world *world); /* NULL is allowed */

/* A device of a world. */
typedef struct hlo_seat {
    hlo_world *world; /* NULL: there is only one device */
    uint32_t replica, partition, replicas, partitions;
} hlo_seat;
hlo_seat hlo_world_seat(hlo_world *world, uint32_t device);
/* Returns the number of a device: replica * partitions + partition. */
uint32_t hlo_seat_number(const hlo_seat *seat);

/* Calls body(arg, device) for every device, each on a separate thread, and returns when all are
 * done. Meanwhile calls watch(arg) about ten times a second, unless it is NULL. After watch has
 * returned false, hlo_world_goes_on() is false and no device waits any longer. HLO_OUT_OF_MEMORY: a
 * thread could not be created; nothing was called. */
hlo_status hlo_world_run(hlo_world *world, void (*body)(void *arg, uint32_t device),
                         bool (*watch)(void *arg), void *arg);
/* Thread-safe. Returns false if the last run was stopped. `world` is an hlo_world. */
bool hlo_world_goes_on(void *world);

/* A rendezvous of a group, after all members have arrived: brought[i] is the data of members[i]. */
typedef hlo_status hlo_meeting(void *const *brought, uint32_t count, const char **why);
/* The `why` of deadlocked devices. */
extern const char hlo_world_stuck[];
/* Waits until all members of a group, including `seat`, have arrived at `place`. The last to arrive
 * calls `meet` for all, and all return its status and `why`. HLO_INVALID_INPUT, with `why`: a
 * member waits elsewhere, or is done, and no device is left to wake it. */
hlo_status hlo_world_meet(const hlo_seat *seat, const void *place, const hlo_ints *members,
                          void *brought, hlo_meeting *meet, const char **why);

#endif
