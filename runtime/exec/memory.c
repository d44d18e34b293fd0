/* Memory of a device that outlives a run. */
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

/* Frees the events of spares: one that is the last user of a device would close it. */
static void free_spares(plan_device *device) {
    pthread_mutex_lock(&device->lock);
    while (device->count) {
        const plan_spare spare = device->spares[--device->count];
        hlo_event_wait(spare.last, NULL);
        device->backend->release(device->device, spare.data);
        hlo_event_free(spare.last);
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

hlo_status plan_event_new(plan_device *device, hlo_event **out_event, const char **why) {
    hlo_event *event = calloc(1, sizeof *event);
    *out_event = NULL;
    if (!event) return HLO_OUT_OF_MEMORY;
    hlo_status status = HLO_OK;
    if (device->backend->event_new)
        status = device->backend->event_new(device->device, &event->handle, why);
    if (status != HLO_OK) {
        free(event);
        return status;
    }
    atomic_init(&event->users, 1);
    event->device = share_device(device);
    *out_event = event;
    return HLO_OK;
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

/* Takes a spare range of this size; false: there is none. */
static bool take_spare(plan_device *device, size_t size, plan_spare *out) {
    bool found = false;
    pthread_mutex_lock(&device->lock);
    for (size_t i = device->count; i-- > 0 && !found;)
        if ((found = device->spares[i].size == size)) {
            *out = device->spares[i];
            device->spares[i] = device->spares[--device->count];
        }
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* Keeps a range; false: its device is to be closed, or has enough. */
static bool keep_spare(plan_device *device, plan_spare spare) {
    pthread_mutex_lock(&device->lock);
    bool kept = !device->retired && device->count < MOST_SPARES;
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
    return kept;
}

plan_memory *plan_memory_new(plan_device *device, size_t size) {
    plan_memory *memory = new_memory(device, NULL, size);
    plan_spare spare = {0};
    if (!memory) return NULL;
    if (!take_spare(device, size, &spare)) {
        const hlo_backend *backend = device->backend;
        spare.data = backend->allocate(device->device, size ? size : 1);
        if (!spare.data) {
            free_spares(device);
            spare.data = backend->allocate(device->device, size ? size : 1);
        }
    }
    memory->data = spare.data;
    memory->last = spare.last;
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
    const plan_spare spare = {memory->data, memory->size, memory->last};
    if (memory->release || !keep_spare(device, spare)) {
        hlo_event_wait(memory->last, NULL);
        if (memory->release)
            memory->release(memory->owner);
        else
            device->backend->release(device->device, memory->data);
        hlo_event_free(memory->last);
    }
    free(memory);
    drop_device(device);
}

void plan_memory_use(plan_memory *memory, hlo_event *event) {
    hlo_event *before = memory->last;
    memory->last = plan_event_share(event);
    hlo_event_free(before);
}
