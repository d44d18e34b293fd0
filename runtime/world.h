/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices that run one module: a thread each. They meet at collectives. */
#ifndef HLO_RUNTIME_WORLD_H
#define HLO_RUNTIME_WORLD_H

#include "hlo/status.h"
#include "ir/ir.h"

typedef struct hlo_world hlo_world;

/* Returns a world of replicas * partitions devices; NULL when memory runs out. */
hlo_world *hlo_world_new(uint32_t replicas, uint32_t partitions);
void hlo_world_free(hlo_world *world); /* NULL is allowed */

/* A device of a world. */
typedef struct hlo_seat {
    hlo_world *world; /* NULL: the device is alone */
    uint32_t replica, partition, replicas, partitions;
} hlo_seat;
hlo_seat hlo_world_seat(hlo_world *world, uint32_t device);
/* Returns the number of a device: replica * partitions + partition. */
uint32_t hlo_seat_number(const hlo_seat *seat);

/* Calls body(arg, device) for every device, each on a thread of its own, and returns when all are
 * done. Meanwhile calls watch(arg) about ten times a second, unless it is NULL; once it has
 * returned false, hlo_world_goes_on() is false and no device waits any longer. HLO_OUT_OF_MEMORY:
 * the system refuses a thread; nothing was called. */
hlo_status hlo_world_run(hlo_world *world, void (*body)(void *arg, uint32_t device),
                         bool (*watch)(void *arg), void *arg);
/* On any thread: false if the last run was stopped. `world` is a hlo_world. */
bool hlo_world_goes_on(void *world);

/* A meeting of a group, once all members have come: brought[i] is what members[i] brought. */
typedef hlo_status hlo_meeting(void *const *brought, uint32_t count, const char **why);
/* The `why` of devices that wait in vain. */
extern const char hlo_world_stuck[];
/* Waits until all members of a group, `seat` among them, have come to `place`; the last to come
 * calls `meet` for all, and all return its status and `why`. HLO_INVALID_INPUT, with `why`: a
 * member waits elsewhere, or is done, and nobody is left to wake it. */
hlo_status hlo_world_meet(const hlo_seat *seat, const void *place, const hlo_ints *members,
                          void *brought, hlo_meeting *meet, const char **why);

#endif
