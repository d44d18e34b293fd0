/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that outlives a run. */
#include "runtime/exec/memory.h"

#include <stdlib.h>

#include "ir/text/diag.h"

enum { MOST_SPARES = 256 };

/* -------------------------------------------------------------------------------------- devices */

plan_device *plan_device_new(const hlo_backend *backend, void *device) {
    plan_device *d = calloc(1, sizeof *d);
    if (!d || pthread_mutex_init(&d->lock, NULL)) {
        backend->close(device);
        free(d);
        return NULL;
    }
    atomic_init(&d->users, 1);
    d->backend = backend;
    d->device = device;
    return d;
}

static plan_device *share_device(plan_device *device) {
    atomic_fetch_add(&device->users, 1);
    return device;
}

static void drop_device(plan_device *device) {
    if (atomic_fetch_sub(&device->users, 1) > 1) return;
    device->backend->close(device->device);
    pthread_mutex_destroy(&device->lock);
    free(device->spares);
    free(device);
}

/* Frees the spare ranges and their events. The caller must have a reference to the device:
 * otherwise freeing its last event would close the device while its lock is held. */
static void free_spares(plan_device *device) {
    pthread_mutex_lock(&device->lock);
    while (device->count) {
        const plan_spare spare = device->spares[--device->count];
        hlo_event_wait(spare.last, NULL);
        hlo_event_wait(spare.lent, NULL);
        device->backend->release(device->device, spare.data);
        hlo_event_free(spare.last);
        hlo_event_free(spare.lent);
    }
    pthread_mutex_unlock(&device->lock);
}

void plan_device_retire(plan_device *device) {
    pthread_mutex_lock(&device->lock);
    device->retired = true;
    pthread_mutex_unlock(&device->lock);
    free_spares(device);
    drop_device(device);
}

/* --------------------------------------------------------------------------------------- events */

/* Creates an event that owns the handle. NULL: memory ran out; all work before the handle is
 * complete then. */
static hlo_event *new_event(plan_device *device, void *handle) {
    hlo_event *event = calloc(1, sizeof *event);
    if (!event) {
        char why[256];
        if (handle) device->backend->event_wait(device->device, handle, why, sizeof why);
        if (handle) device->backend->event_free(device->device, handle);
        return NULL;
    }
    atomic_init(&event->users, 1);
    event->device = share_device(device);
    event->handle = handle;
    return event;
}

hlo_status plan_event_new(plan_device *device, hlo_event **out_event, const char **why) {
    void *handle = NULL;
    *out_event = NULL;
    hlo_status status = HLO_OK;
    if (device->backend->event_new)
        status = device->backend->event_new(device->device, &handle, why);
    if (status == HLO_OK && !(*out_event = new_event(device, handle))) return HLO_OUT_OF_MEMORY;
    return status;
}

hlo_event *plan_event_share(hlo_event *event) {
    if (event) atomic_fetch_add(&event->users, 1);
    return event;
}

void plan_event_queue(const plan_device *device, const hlo_event *event) {
    if (event && event->handle) device->backend->event_queue(device->device, event->handle);
}

hlo_status hlo_event_wait(const hlo_event *event, const hlo_diag_sink *sink) {
    if (!event || !event->handle) return HLO_OK;
    const hlo_backend *backend = event->device->backend;
    char why[256];
    const hlo_status status =
        backend->event_wait(event->device->device, event->handle, why, sizeof why);
    if (status == HLO_OK) return HLO_OK;
    return hlo_diag_refuse(sink, NULL, 0, 0, "the %s backend %s", backend->name, why);
}

bool hlo_event_is_done(const hlo_event *event) {
    return !event->handle ||
           event->device->backend->event_done(event->device->device, event->handle);
}

void *hlo_event_handle(const hlo_event *event) {
    return event->handle;
}

void hlo_event_free(hlo_event *event) {
    if (!event || atomic_fetch_sub(&event->users, 1) > 1) return;
    plan_device *device = event->device;
    if (event->handle) device->backend->event_free(device->device, event->handle);
    free(event);
    drop_device(device);
}

/* --------------------------------------------------------------------------------------- ranges */

static plan_memory *new_memory(plan_device *device, void *data, size_t size) {
    plan_memory *memory = calloc(1, sizeof *memory);
    if (!memory) return NULL;
    atomic_init(&memory->users, 1);
    memory->device = share_device(device);
    memory->data = data;
    memory->size = size;
    return memory;
}

plan_memory *plan_memory_new(plan_device *device, size_t size) {
    plan_memory *memory = new_memory(device, NULL, size);
    plan_spare spare = {0};
    if (!memory) return NULL;
    bool found = false;
    pthread_mutex_lock(&device->lock);
    for (size_t i = device->count; i-- > 0 && !found;)
        if ((found = device->spares[i].size == size)) {
            spare = device->spares[i];
            device->spares[i] = device->spares[--device->count];
        }
    pthread_mutex_unlock(&device->lock);
    if (!found) {
        const hlo_backend *backend = device->backend;
        spare.data = backend->allocate(device->device, size ? size : 1);
        if (!spare.data) {
            free_spares(device);
            spare.data = backend->allocate(device->device, size ? size : 1);
        }
    }
    memory->data = spare.data;
    memory->last = spare.last;
    memory->lent = spare.lent;
    if (memory->data) return memory;
    drop_device(memory->device);
    free(memory);
    return NULL;
}

static void release_nothing(void *owner) {
    (void)owner;
}

plan_memory *plan_memory_lent(plan_device *device, void *data, size_t size) {
    plan_memory *memory = new_memory(device, data, size);
    if (memory) memory->release = release_nothing;
    return memory;
}

plan_memory *plan_memory_share(plan_memory *memory) {
    atomic_fetch_add(&memory->users, 1);
    return memory;
}

void plan_memory_drop(plan_memory *memory) {
    if (!memory || atomic_fetch_sub(&memory->users, 1) > 1) return;
    plan_device *device = memory->device;
    const plan_spare spare = {memory->data, memory->size, memory->last, memory->lent};
    bool kept = false; /* as a spare: not if the device is being closed or has enough spares */
    if (!memory->release) {
        pthread_mutex_lock(&device->lock);
        kept = !device->retired && device->count < MOST_SPARES;
        if (kept && device->count == device->capacity) {
            const size_t capacity = device->capacity ? 2 * device->capacity : 16;
            plan_spare *spares = realloc(device->spares, capacity * sizeof *spares);
            kept = spares != NULL;
            if (kept) {
                device->spares = spares;
                device->capacity = capacity;
            }
        }
        if (kept) device->spares[device->count++] = spare;
        pthread_mutex_unlock(&device->lock);
    }
    if (!kept) {
        plan_memory_wait(memory, NULL);
        if (memory->release)
            memory->release(memory->owner);
        else
            device->backend->release(device->device, memory->data);
        hlo_event_free(memory->last);
        hlo_event_free(memory->lent);
    }
    free(memory);
    drop_device(device);
}

/* Returns a reference to the event of others' use. */
static hlo_event *share_lent(plan_memory *memory) {
    pthread_mutex_lock(&memory->device->lock);
    hlo_event *lent = plan_event_share(memory->lent);
    pthread_mutex_unlock(&memory->device->lock);
    return lent;
}

void plan_memory_queue(const plan_device *device, plan_memory *memory, const hlo_event *known) {
    hlo_event *lent = share_lent(memory);
    if (memory->last != known) plan_event_queue(device, memory->last);
    plan_event_queue(device, lent);
    hlo_event_free(lent);
}

hlo_status plan_memory_wait(plan_memory *memory, const hlo_diag_sink *sink) {
    hlo_event *lent = share_lent(memory);
    const hlo_status others = hlo_event_wait(lent, sink);
    hlo_event_free(lent);
    return others == HLO_OK ? hlo_event_wait(memory->last, sink) : others;
}

void plan_memory_return(plan_memory *memory, void *stream) {
    plan_device *device = memory->device;
    const hlo_backend *backend = device->backend;
    if (!stream || !backend->event_behind) return;
    pthread_mutex_lock(&device->lock);
    hlo_event *before = memory->lent;
    void *handle = backend->event_behind(device->device, stream, before ? before->handle : NULL);
    hlo_event *event = handle ? new_event(device, handle) : NULL;
    if (event) memory->lent = event;
    pthread_mutex_unlock(&device->lock);
    if (event) hlo_event_free(before);
}

void plan_memory_use(plan_memory *memory, hlo_event *event) {
    hlo_event *before = memory->last;
    memory->last = plan_event_share(event);
    hlo_event_free(before);
}
