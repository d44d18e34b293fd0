/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that outlives a run: devices shared by plans and buffers, events, ranges. */
#ifndef HLO_RUNTIME_EXEC_MEMORY_H
#define HLO_RUNTIME_EXEC_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include "hlo/buffer.h"
#include "runtime/backend.h"

/* A range that was freed, kept for the next allocation of its size. */
typedef struct plan_spare {
    void *data;
    size_t size;
    hlo_event *last, *lent; /* as in plan_memory */
} plan_spare;

/* An open device, closed when neither its plan nor a buffer is left. */
typedef struct plan_device {
    atomic_uint users;
    const hlo_backend *backend;
    void *device;
    pthread_mutex_t lock; /* guards the members below */
    bool retired;         /* its plan was freed: no spares are kept */
    plan_spare *spares;
    size_t count, capacity;
} plan_device;

struct hlo_event {
    atomic_uint users;
    plan_device *device;
    void *handle; /* NULL: all work before it is complete */
};

/* A range of a device's memory. */
typedef struct plan_memory {
    atomic_uint users;
    plan_device *device;
    void *data;
    size_t size;
    hlo_event *last; /* the end of the last run that reads or writes it, or NULL */
    hlo_event *lent; /* the end of others' work on its released tensors, or NULL; guarded by the
                      * device's lock */
    bool read_only;
    void (*release)(void *owner); /* returns the range to its owner; NULL: the device */
    void *owner;
} plan_memory;

/* Creates a shared handle of an open device, which is closed on failure; NULL if memory runs
 * out. */
plan_device *plan_device_new(const hlo_backend *backend, void *device);
/* Drops the plan's reference. */
void plan_device_retire(plan_device *device);

/* Creates the event of the completion of all work queued on the device. HLO_INVALID_INPUT on
 * failure, with `why` as in hlo_backend. */
hlo_status plan_event_new(plan_device *device, hlo_event **out_event, const char **why);
hlo_event *plan_event_share(hlo_event *event); /* NULL is allowed */
/* Makes work queued on the device from now on wait for the event; NULL: does nothing. */
void plan_event_queue(const plan_device *device, const hlo_event *event);

/* Allocates a range of the device's memory, whose last use may not be complete; NULL if memory runs
 * out. */
plan_memory *plan_memory_new(plan_device *device, size_t size);
/* Creates a range of another owner's memory, which is not released; NULL if memory runs out. */
plan_memory *plan_memory_lent(plan_device *device, void *data, size_t size);
plan_memory *plan_memory_share(plan_memory *memory);
/* Drops a reference. After the last one, the range is free once its last use is complete. NULL is
 * allowed. */
void plan_memory_drop(plan_memory *memory);
/* Makes work queued on a device from now on wait for the last uses of the range. `known` is already
 * waited for, or NULL. */
void plan_memory_queue(const plan_device *device, plan_memory *memory, const hlo_event *known);
/* Waits on the host for the last uses of the range. HLO_INVALID_INPUT: a run failed. */
hlo_status plan_memory_wait(plan_memory *memory, const hlo_diag_sink *sink);
/* Records that work queued so far on the caller's stream may use the range, but no later work.
 * Thread-safe. */
void plan_memory_return(plan_memory *memory, void *stream);
/* Records the last use of the range. */
void plan_memory_use(plan_memory *memory, hlo_event *event);

#endif
