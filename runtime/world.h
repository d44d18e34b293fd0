/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated devices that run one module, one thread each. They synchronize at collectives. */
#ifndef HLO_RUNTIME_WORLD_H
#define HLO_RUNTIME_WORLD_H

#include "hlo/status.h"
#include "ir/kernel/view.h"

typedef struct hlo_world hlo_world;

/* Creates a world of replicas * partitions devices. Returns NULL if memory runs out. */
hlo_world *hlo_world_new(uint32_t replicas, uint32_t partitions);
void hlo_world_free(hlo_world *world); /* NULL is allowed */

/* Identifies a device of a world. */
typedef struct hlo_seat {
    hlo_world *world; /* NULL if there is only one device */
    uint32_t replica, partition, replicas, partitions;
} hlo_seat;
hlo_seat hlo_world_seat(hlo_world *world, uint32_t device);
/* Returns the number of a device: replica * partitions + partition. */
uint32_t hlo_seat_number(const hlo_seat *seat);

/* Calls body(arg, device) for every device, each on a separate thread, and returns when all are
 * done. Meanwhile, calls watch(arg) about ten times a second, unless `watch` is NULL. After watch()
 * has returned false, hlo_world_goes_on() returns false and no device waits any longer. Returns
 * HLO_OUT_OF_MEMORY, without calling body(), if a thread could not be created. */
hlo_status hlo_world_run(hlo_world *world, void (*body)(void *arg, uint32_t device),
                         bool (*watch)(void *arg), void *arg);
/* Thread-safe. Returns false if the last run was stopped. `world` is an hlo_world. */
bool hlo_world_goes_on(void *world);

/* A function that runs after all members of a group have arrived at a rendezvous. brought[i] is the
 * data of members[i]. */
typedef hlo_status hlo_meeting(void *const *brought, uint32_t count, const char **why);
/* The reason that hlo_world_meet() returns to deadlocked devices. */
extern const char hlo_world_stuck[];
/* Waits until all members of a group, including `seat`, have arrived at `place`. The last member to
 * arrive calls `meet` for all members, and all members return its status and `why`. If the devices
 * deadlock because a member is done or waits elsewhere, sets `why` and returns
 * HLO_INVALID_INPUT. */
hlo_status hlo_world_meet(const hlo_seat *seat, const void *place, const hlo_ints *members,
                          void *brought, hlo_meeting *meet, const char **why);

/* A message from one device to another. It lies in an arena of its own. */
typedef struct hlo_message {
    hlo_arena *arena;
    int64_t channel;
    uint32_t from, to;         /* numbers of devices */
    struct hlo_message *next;  /* set by the world */
    hlo_view *values, *sigmas; /* `count` arrays, with or without sigmas */
    uint32_t count;
} hlo_message;
/* Sends a message, which the world then owns, without waiting for its receiver. */
void hlo_world_send(hlo_world *world, hlo_message *message);
/* Waits for a message on `channel` from the device `from`, and removes it. Messages of one channel
 * and sender arrive in order. The caller frees the message's arena. If the devices deadlock because
 * no device can still send it, sets `why` and returns HLO_INVALID_INPUT. */
hlo_status hlo_world_receive(const hlo_seat *seat, int64_t channel, uint32_t from,
                             hlo_message **out_message, const char **why);

#endif
