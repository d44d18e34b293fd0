/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a device that outlives a run: devices shared by plans and buffers, events, ranges. */
#ifndef HLO_RUNTIME_EXEC_MEMORY_H
#define HLO_RUNTIME_EXEC_MEMORY_H

#include <pthread.h>
#include <stdatomic.h>

#include "hlo/buffer.h"
#include "runtime/backend.h"

/* A range that was freed, kept for the next one of its size. */
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
    pthread_mutex_t lock; /* of what follows */
    bool retired;         /* its plan was freed: nothing is kept any more */
    plan_spare *spares;
    size_t count, capacity;
} plan_device;

struct hlo_event {
    atomic_uint users;
    plan_device *device;
    void *handle; /* NULL: everything before it is done */
};

/* A range of a device's memory. */
typedef struct plan_memory {
    atomic_uint users;
    plan_device *device;
    void *data;
    size_t size;
    hlo_event *last; /* the end of the last run that reads or writes it; NULL: none */
    hlo_event *lent; /* the end of what others did with tensors of it that are gone; NULL: nothing;
                        guarded by the device's lock */
    bool read_only;
    void (*release)(void *owner); /* gives the range back to whom it belongs; NULL: the device */
    void *owner;
} plan_memory;

/* Shares a device that was opened, which is closed on failure; NULL when memory runs out. */
plan_device *plan_device_new(const hlo_backend *backend, void *device);
/* Drops the plan's share. */
void plan_device_retire(plan_device *device);

/* Makes the event of the end of everything queued on the device; HLO_INVALID_INPUT, with `why` as
 * in hlo_backend: that failed. */
hlo_status plan_event_new(plan_device *device, hlo_event **out_event, const char **why);
hlo_event *plan_event_share(hlo_event *event); /* NULL is allowed */
/* Makes what is queued on the device from now on wait for the event; NULL: for nothing. */
void plan_event_queue(const plan_device *device, const hlo_event *event);

/* Takes a range of the device's memory, whose last use may not be over; NULL when memory runs out.
 */
plan_memory *plan_memory_new(plan_device *device, size_t size);
/* Makes a range of another owner's memory, which does nothing to release it; NULL when memory runs
 * out. */
plan_memory *plan_memory_lent(plan_device *device, void *data, size_t size);
plan_memory *plan_memory_share(plan_memory *memory);
/* Drops a share; with the last one the range is free, once its last use is over. NULL is allowed.
 */
void plan_memory_drop(plan_memory *memory);
/* Makes what is queued on a device from now on wait for the last uses of the range; `known` is
 * waited for already, or NULL. */
void plan_memory_queue(const plan_device *device, plan_memory *memory, const hlo_event *known);
/* Waits for the last uses of the range, on the host. HLO_INVALID_INPUT: a run failed. */
hlo_status plan_memory_wait(plan_memory *memory, const hlo_diag_sink *sink);
/* Notes that what is queued on the caller's stream may use the range, but nothing behind it. On any
 * thread. */
void plan_memory_return(plan_memory *memory, void *stream);
/* Notes the last use of the range. */
void plan_memory_use(plan_memory *memory, hlo_event *event);

#endif
