/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers: arrays in device memory that outlive a run. Converts them to and from DLPack tensors,
 * and runs resident plans, whose inputs and outputs are buffers. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/buffer.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "runtime/exec/dlpack.h"
#include "runtime/exec/run.h"
#include "runtime/grow.h"
#include "runtime/plan/plan.h"

/* A freed range of memory that is kept for the next allocation of the same size. */
typedef struct plan_spare {
    void *data;
    size_t size;
    hlo_event *last, *lent; /* as in plan_memory */
} plan_spare;

/* An open device. It is closed when its plan and all its buffers are freed. */
typedef struct plan_device {
    atomic_uint users;
    const hlo_backend *backend;
    void *device;
    pthread_mutex_t lock; /* guards the members below */
    bool retired;         /* the plan was freed, so no spares are kept */
    plan_spare *spares;
    size_t count, capacity;
} plan_device;

struct hlo_event {
    atomic_uint users;
    plan_device *device;
    void *handle; /* the backend's event; NULL if all work before the event is complete */
};

/* A range of a device's memory. */
typedef struct plan_memory {
    atomic_uint users;
    plan_device *device;
    void *data;
    size_t size;
    hlo_event *last; /* the end of the last run that reads or writes the range, or NULL */
    hlo_event *lent; /* the end of other programs' work on released tensors of the range, or NULL;
                      * guarded by the device's lock */
    bool read_only;
    void (*release)(void *owner); /* returns the range to its owner; NULL if the device owns it */
    void *owner;
} plan_memory;

struct hlo_buffer {
    hlo_array array;
    hlo_shape shape;
    plan_memory *memory; /* NULL if the buffer was donated */
};

enum { MAX_SPARES = 256 };

/* -------------------------------------------------------------------------------------- devices */

plan_device *plan_device_new(const hlo_backend *backend, void *device) {
    plan_device *d = hlo_calloc(1, sizeof *d);
    if (!d || pthread_mutex_init(&d->lock, NULL)) {
        backend->close(device);
        hlo_free(d);
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
    hlo_free(device->spares);
    hlo_free(device);
}

/* Waits for the last uses of the spare ranges, and releases the ranges. The caller must hold a
 * reference to the device: otherwise, freeing the last event would close the device while its lock
 * is held. */
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

/* Creates an event that owns the handle. On failure, waits for the handle's event, frees the
 * handle and returns NULL. */
static hlo_event *new_event(plan_device *device, void *handle) {
    hlo_event *event = hlo_calloc(1, sizeof *event);
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

/* Adds a reference to the event, which may be NULL, and returns the event. */
static hlo_event *share_event(hlo_event *event) {
    if (event) atomic_fetch_add(&event->users, 1);
    return event;
}

/* Makes work queued on the device from now on wait for the event. Does nothing for NULL. */
static void queue_event(const plan_device *device, const hlo_event *event) {
    if (event && event->handle) device->backend->event_queue(device->device, event->handle);
}

hlo_status hlo_event_wait(const hlo_event *event, const hlo_diag_sink *sink) {
    if (!event || !event->handle) return HLO_OK;
    const hlo_backend *backend = event->device->backend;
    char why[256];
    const hlo_status status =
        backend->event_wait(event->device->device, event->handle, why, sizeof why);
    if (status == HLO_OK) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "the %s backend %s", backend->name,
                           why);
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
    hlo_free(event);
    drop_device(device);
}

/* --------------------------------------------------------------------------------------- ranges */

static plan_memory *new_memory(plan_device *device, void *data, size_t size) {
    plan_memory *memory = hlo_calloc(1, sizeof *memory);
    if (!memory) return NULL;
    atomic_init(&memory->users, 1);
    memory->device = share_device(device);
    memory->data = data;
    memory->size = size;
    return memory;
}

/* Allocates a range of the device's memory. The range's last use may not be complete. Returns NULL
 * if memory runs out. */
static plan_memory *allocate_memory(plan_device *device, size_t size) {
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
    hlo_free(memory);
    return NULL;
}

static plan_memory *share_memory(plan_memory *memory) {
    atomic_fetch_add(&memory->users, 1);
    return memory;
}

/* Returns a new reference to memory->lent. */
static hlo_event *share_lent(plan_memory *memory) {
    pthread_mutex_lock(&memory->device->lock);
    hlo_event *lent = share_event(memory->lent);
    pthread_mutex_unlock(&memory->device->lock);
    return lent;
}

/* Waits on the host for the last uses of the range. Returns HLO_INVALID_INPUT if a run failed. */
static hlo_status wait_for_memory(plan_memory *memory, const hlo_diag_sink *sink) {
    hlo_event *lent = share_lent(memory);
    const hlo_status others = hlo_event_wait(lent, sink);
    hlo_event_free(lent);
    return others == HLO_OK ? hlo_event_wait(memory->last, sink) : others;
}

/* Drops a reference to the range. With the last reference, keeps the range as a spare, or waits for
 * its last uses and releases it. NULL is allowed. */
static void drop_memory(plan_memory *memory) {
    if (!memory || atomic_fetch_sub(&memory->users, 1) > 1) return;
    plan_device *device = memory->device;
    const plan_spare spare = {memory->data, memory->size, memory->last, memory->lent};
    bool kept = false; /* kept as a spare, unless the device is retired or has enough spares */
    if (!memory->release) {
        pthread_mutex_lock(&device->lock);
        kept = !device->retired && device->count < MAX_SPARES &&
               hlo_heap_grow(&device->spares, device->count + 1, &device->capacity,
                             sizeof *device->spares);
        if (kept) device->spares[device->count++] = spare;
        pthread_mutex_unlock(&device->lock);
    }
    if (!kept) {
        wait_for_memory(memory, NULL);
        if (memory->release)
            memory->release(memory->owner);
        else
            device->backend->release(device->device, memory->data);
        hlo_event_free(memory->last);
        hlo_event_free(memory->lent);
    }
    hlo_free(memory);
    drop_device(device);
}

/* Makes work queued on a device from now on wait for the last uses of the range, except for the
 * event `known` (may be NULL), for which the device already waits. */
static void queue_memory(const plan_device *device, plan_memory *memory, const hlo_event *known) {
    hlo_event *lent = share_lent(memory);
    if (memory->last != known) queue_event(device, memory->last);
    queue_event(device, lent);
    hlo_event_free(lent);
}

static void use_memory(plan_memory *memory, hlo_event *event) {
    hlo_event *before = memory->last;
    memory->last = share_event(event);
    hlo_event_free(before);
}

size_t hlo_plan_input_count(const hlo_plan *plan) {
    return plan->inputs.count;
}

size_t hlo_plan_output_count(const hlo_plan *plan) {
    return plan->outputs.count;
}

size_t hlo_plan_donated_input(const hlo_plan *plan, size_t output) {
    return plan->taken && plan->taken[output] != PLAN_NONE ? plan->taken[output] : SIZE_MAX;
}

/* Checks that the plan is resident and has an input with that index. */
static hlo_status check_buffer(const hlo_plan *plan, size_t input, const hlo_diag_sink *sink) {
    if (!plan->options.resident || !plan->shared)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "the plan %s, so it does not accept buffers",
                               plan->options.target ? "is for printing only"
                                                    : "was created without `resident`");
    if (input < plan->inputs.count) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_INPUT, NULL, 0, 0,
                           "input %zu does not exist: the plan has %zu inputs", input,
                           plan->inputs.count);
}

/* ------------------------------------------------------------------------------ making, freeing */

/* One allocation contains the buffer, its dimensions and its layout. */
typedef struct held {
    hlo_buffer buffer;
    hlo_layout layout;
    int64_t numbers[]; /* dimensions; minor_to_major */
} held;

/* Creates a buffer of an array of `shape`, which takes over the caller's reference to `memory`. If
 * memory runs out, drops that reference and returns NULL. */
static hlo_buffer *new_buffer(const hlo_shape *shape, plan_memory *memory) {
    const uint32_t rank = shape->rank;
    held *h = memory ? hlo_calloc(1, sizeof *h + 2 * rank * sizeof *h->numbers) : NULL;
    if (!h) {
        drop_memory(memory);
        return NULL;
    }
    if (rank) memcpy(h->numbers, shape->dims, rank * sizeof *h->numbers);
    if (rank && shape->layout)
        memcpy(h->numbers + rank, shape->layout->minor_to_major, rank * sizeof *h->numbers);
    h->layout.minor_to_major = h->numbers + rank;
    h->buffer.shape = (hlo_shape){.type = shape->type,
                                  .rank = rank,
                                  .dims = h->numbers,
                                  .layout = shape->layout ? &h->layout : NULL};
    h->buffer.array = (hlo_array){.struct_size = sizeof h->buffer.array,
                                  .type = shape->type,
                                  .rank = rank,
                                  .dims = h->numbers,
                                  .data = memory->data,
                                  .size = memory->size,
                                  .noise = {-1, -1}};
    h->buffer.memory = memory;
    return &h->buffer;
}

static hlo_status finish(const plan_device *device, const hlo_diag_sink *sink) {
    const char *why = "failed";
    const hlo_status status = device->backend->finish(device->device, &why);
    if (status != HLO_INVALID_INPUT) return status;
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "the %s backend %s",
                           device->backend->name, why);
}

hlo_status hlo_buffer_new(hlo_plan *plan, size_t input, const hlo_array *given,
                          const hlo_diag_sink *sink, hlo_buffer **out) {
    *out = NULL;
    hlo_array own;
    const hlo_array *array = given ? &own : NULL;
    hlo_status status = check_buffer(plan, input, sink);
    if (status == HLO_OK && given && !hlo_array_take(given, &own))
        status = hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                                 "the array has an invalid struct_size or element type");
    if (status == HLO_OK && array)
        status = hlo_leaf_check(&plan->inputs, plan->module, input, array, sink);
    if (status != HLO_OK) return status;
    const hlo_shape *shape = plan->inputs.shapes[input];
    const size_t size = (size_t)hlo_shape_bytes(shape);
    const bool plain = !array || hlo_shape_is_row_major(shape);
    void *staging = plain ? NULL : hlo_malloc(size + 1);
    hlo_buffer *buffer = new_buffer(shape, allocate_memory(plan->shared, size));
    if (!buffer || (!plain && !staging)) {
        hlo_free(staging);
        hlo_buffer_free(buffer);
        return HLO_OUT_OF_MEMORY;
    }
    if (!plain) plan_to_physical(shape, hlo_types[shape->type].bytes, staging, array->data);
    queue_memory(plan->shared, buffer->memory, NULL);
    if (array)
        plan->backend->copy_in(plan->device, buffer->memory->data, plain ? array->data : staging,
                               size);
    else
        plan->backend->fill(plan->device, buffer->memory->data, 0, size);
    status = finish(plan->shared, sink);
    hlo_free(staging);
    if (status != HLO_OK) {
        hlo_buffer_free(buffer);
        return status;
    }
    *out = buffer;
    return HLO_OK;
}

void hlo_buffer_free(hlo_buffer *buffer) {
    if (!buffer) return;
    drop_memory(buffer->memory);
    hlo_free(buffer); /* frees `held`, whose first member is the buffer */
}

/* -------------------------------------------------------------------------------------- reading */

const hlo_array *hlo_buffer_array(const hlo_buffer *buffer) {
    return &buffer->array;
}

static hlo_status use_stream(const plan_device *device, void *stream, const hlo_diag_sink *sink) {
    const hlo_backend *backend = device->backend;
    const char *why = "failed";
    const hlo_status status = backend->use_stream(device->device, stream, &why);
    if (status == HLO_INVALID_USAGE)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "the %s backend %s", backend->name, why);
    if (status == HLO_OK) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "the %s backend %s", backend->name,
                           why);
}

/* Makes later work on `stream` or, if that is NULL, the host wait for the buffer's contents. */
static hlo_status hand_over(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink) {
    if (!buffer->memory)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "the buffer was donated to a run");
    const plan_device *device = buffer->memory->device;
    const hlo_backend *backend = device->backend;
    if (!stream || !backend->use_stream) return wait_for_memory(buffer->memory, sink);
    hlo_status status = use_stream(device, stream, sink);
    if (status != HLO_OK) return status;
    queue_memory(device, buffer->memory, NULL);
    return use_stream(device, NULL, sink);
}

hlo_status hlo_buffer_read(const hlo_buffer *buffer, void *out, size_t size,
                           const hlo_diag_sink *sink) {
    hlo_status status = hand_over(buffer, NULL, sink);
    if (status != HLO_OK) return status;
    if (size != buffer->array.size)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                               "the buffer has %zu bytes, but the destination has %zu",
                               buffer->array.size, size);
    const plan_device *device = buffer->memory->device;
    const bool plain = hlo_shape_is_row_major(&buffer->shape);
    void *staging = plain ? out : hlo_malloc(size + 1);
    if (!staging) return HLO_OUT_OF_MEMORY;
    device->backend->copy_out(device->device, staging, buffer->memory->data, size);
    status = finish(device, sink);
    if (!plain && status == HLO_OK)
        plan_to_row_major(&buffer->shape, hlo_types[buffer->shape.type].bytes, out, staging);
    if (!plain) hlo_free(staging);
    return status;
}

enum { NO_CODE = 0xff };

static uint8_t code_of(hlo_type type) {
    switch (type) {
#define DLPACK_TYPE(id, code)                                                                      \
    case HLO_TYPE_##id:                                                                            \
        return code;
#include "runtime/exec/dlpack.def"
#undef DLPACK_TYPE
    default: return NO_CODE;
    }
}

static uint8_t bits_of(hlo_type type) {
    return type == HLO_TYPE_PRED ? 8 : (uint8_t)hlo_types[type].bits;
}

/* True for elements that DLPack packs by default. Here, each of them occupies a byte. */
static bool is_padded(hlo_type type) {
    return bits_of(type) < 8;
}

/* ---------------------------------------------------------------------------------- buffers out */

/* A DLPack tensor of a buffer, in one allocation with its numbers. */
typedef struct lent {
    union {
        struct DLManagedTensorVersioned versioned;
        struct DLManagedTensor plain;
    } tensor;
    plan_memory *memory;
    void *stream;      /* stream of the caller's work on the tensor; NULL if unknown */
    int64_t numbers[]; /* dimensions, strides */
} lent;

static void delete_lent(lent *l) {
    plan_device *device = l->memory->device;
    const hlo_backend *backend = device->backend;
    if (l->stream && backend->event_behind) {
        /* The caller no longer uses the range, except in work that is already queued on its
         * stream. */
        pthread_mutex_lock(&device->lock);
        hlo_event *before = l->memory->lent;
        void *handle =
            backend->event_behind(device->device, l->stream, before ? before->handle : NULL);
        hlo_event *event = handle ? new_event(device, handle) : NULL;
        if (event) l->memory->lent = event;
        pthread_mutex_unlock(&device->lock);
        if (event) hlo_event_free(before);
    }
    drop_memory(l->memory);
    hlo_free(l);
}

static void delete_versioned(struct DLManagedTensorVersioned *self) {
    if (self) delete_lent(self->context);
}

static void delete_plain(struct DLManagedTensor *self) {
    if (self) delete_lent(self->context);
}

static hlo_status lend(const hlo_buffer *buffer, void *stream, bool flags,
                       const hlo_diag_sink *sink, lent **out, dlpack_tensor *out_tensor) {
    const hlo_shape *shape = &buffer->shape;
    const hlo_status status = hand_over(buffer, stream, sink);
    if (status != HLO_OK) return status;
    if (code_of(shape->type) == NO_CODE || (is_padded(shape->type) && !flags))
        return hlo_diag_misuse(
            sink, HLO_DIAG_USAGE, "DLPack does not support %s elements%s",
            hlo_types[shape->type].name,
            is_padded(shape->type) ? " stored in one byte each before version 1.1" : "");
    lent *l = hlo_calloc(1, sizeof *l + 2 * shape->rank * sizeof *l->numbers);
    if (!l) return HLO_OUT_OF_MEMORY;
    l->memory = share_memory(buffer->memory);
    l->stream = stream;
    if (shape->rank) memcpy(l->numbers, shape->dims, shape->rank * sizeof *l->numbers);
    hlo_shape_strides(shape, l->numbers + shape->rank);
    *out = l;
    *out_tensor = (dlpack_tensor){.data = buffer->array.size ? buffer->array.data : NULL,
                                  .device_type = buffer->memory->device->backend->memory_kind,
                                  .rank = (int32_t)shape->rank,
                                  .code = code_of(shape->type),
                                  .bits = bits_of(shape->type),
                                  .lanes = 1,
                                  .dims = l->numbers,
                                  .strides = l->numbers + shape->rank};
    return HLO_OK;
}

hlo_status hlo_buffer_to_dlpack(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink,
                                struct DLManagedTensorVersioned **out) {
    struct DLManagedTensorVersioned tensor = {.major = DLPACK_MAJOR, .minor = DLPACK_MINOR};
    lent *l = NULL;
    *out = NULL;
    const hlo_status status = lend(buffer, stream, true, sink, &l, &tensor.tensor);
    if (status != HLO_OK) return status;
    tensor.context = l;
    tensor.deleter = delete_versioned;
    if (is_padded(buffer->shape.type)) tensor.flags |= DLPACK_PADDED;
    if (buffer->memory->read_only) tensor.flags |= DLPACK_READ_ONLY;
    l->tensor.versioned = tensor;
    *out = &l->tensor.versioned;
    return HLO_OK;
}

hlo_status hlo_buffer_to_dlpack_unversioned(const hlo_buffer *buffer, void *stream,
                                            const hlo_diag_sink *sink,
                                            struct DLManagedTensor **out) {
    struct DLManagedTensor tensor = {.deleter = delete_plain};
    lent *l = NULL;
    *out = NULL;
    const hlo_status status = lend(buffer, stream, false, sink, &l, &tensor.tensor);
    if (status != HLO_OK) return status;
    tensor.context = l;
    l->tensor.plain = tensor;
    *out = &l->tensor.plain;
    return HLO_OK;
}

/* ----------------------------------------------------------------------------------- tensors in */

/* Returns why the tensor cannot be used as an array of this shape, or NULL. */
static const char *find_fault(const dlpack_tensor *tensor, uint64_t flags, const hlo_shape *shape) {
    const hlo_type type = shape->type;
    if (tensor->code != code_of(type) || tensor->bits != bits_of(type) || tensor->lanes != 1)
        return "has a different element type";
    if (is_padded(type) && !(flags & DLPACK_PADDED))
        return "has packed elements, which are not supported";
    if (tensor->rank != (int32_t)shape->rank ||
        (shape->rank && memcmp(tensor->dims, shape->dims, shape->rank * sizeof *shape->dims) != 0))
        return "has different dimensions";
    if (!hlo_shape_bytes(shape)) return NULL;
    if (!tensor->data) return "has a NULL data pointer";
    int64_t strides[HLO_LARGEST_RANK], row_major[HLO_LARGEST_RANK];
    const hlo_shape plain = {.rank = shape->rank, .dims = shape->dims};
    hlo_shape_strides(shape, strides);
    hlo_shape_strides(&plain, row_major);
    const int64_t *its = tensor->strides ? tensor->strides : row_major;
    for (uint32_t d = 0; d < shape->rank; d++)
        if (shape->dims[d] > 1 && its[d] != strides[d]) return "has different strides";
    return NULL;
}

static void release_nothing(void *owner) {
    (void)owner;
}

/* Checks the tensor and creates a buffer on its memory. The caller still owns the tensor. */
static hlo_status borrow(hlo_plan *plan, size_t input, const dlpack_tensor *tensor, uint64_t flags,
                         const hlo_diag_sink *sink, hlo_buffer **out) {
    *out = NULL;
    const hlo_status status = check_buffer(plan, input, sink);
    if (status != HLO_OK) return status;
    const hlo_shape *shape = plan->inputs.shapes[input];
    const hlo_backend *backend = plan->backend;
    const int32_t also =
        backend->memory_kind == DLPACK_CUDA ? DLPACK_CUDA_MANAGED : DLPACK_CUDA_HOST;
    if ((tensor->device_type != backend->memory_kind && tensor->device_type != also) ||
        tensor->device_id != 0)
        return hlo_diag_refuse(sink, HLO_DIAG_INPUT, NULL, 0, 0,
                               "the tensor for input %zu is on device %d of DLPack device type %d, "
                               "but the %s backend requires device 0 of type %d",
                               input, (int)tensor->device_id, (int)tensor->device_type,
                               backend->name, backend->memory_kind);
    const char *fault = find_fault(tensor, flags, shape);
    if (fault) {
        char expected[256];
        hlo_shape_format(shape, true, expected, sizeof expected);
        return hlo_diag_refuse(sink, HLO_DIAG_INPUT, NULL, 0, 0,
                               "the tensor for input %zu %s, expected %s", input, fault, expected);
    }
    if (((uintptr_t)tensor->data + tensor->byte_offset) % backend->alignment != 0)
        return hlo_diag_refuse(
            sink, HLO_DIAG_INPUT, NULL, 0, 0,
            "the tensor for input %zu is not aligned to %zu bytes, as the %s backend requires",
            input, backend->alignment, backend->name);
    char *data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    plan_memory *memory = new_memory(plan->shared, data, (size_t)hlo_shape_bytes(shape));
    if (memory) {
        memory->release = release_nothing;
        memory->read_only = (flags & DLPACK_READ_ONLY) != 0;
    }
    *out = new_buffer(shape, memory);
    return *out ? HLO_OK : HLO_OUT_OF_MEMORY;
}

static void release_versioned(void *owner) {
    struct DLManagedTensorVersioned *tensor = owner;
    if (tensor->deleter) tensor->deleter(tensor);
}

static void release_plain(void *owner) {
    struct DLManagedTensor *tensor = owner;
    if (tensor->deleter) tensor->deleter(tensor);
}

static void own(hlo_buffer *buffer, void (*release)(void *owner), void *owner) {
    buffer->memory->release = release;
    buffer->memory->owner = owner;
}

hlo_status hlo_buffer_from_dlpack(hlo_plan *plan, size_t input,
                                  struct DLManagedTensorVersioned *tensor,
                                  const hlo_diag_sink *sink, hlo_buffer **out) {
    *out = NULL;
    if (tensor->major != DLPACK_MAJOR)
        return hlo_diag_refuse(
            sink, HLO_DIAG_INPUT, NULL, 0, 0,
            "the tensor for input %zu has DLPack version %u.%u, expected major version %d", input,
            tensor->major, tensor->minor, DLPACK_MAJOR);
    const hlo_status status = borrow(plan, input, &tensor->tensor, tensor->flags, sink, out);
    if (status == HLO_OK) own(*out, release_versioned, tensor);
    return status;
}

hlo_status hlo_buffer_from_dlpack_unversioned(hlo_plan *plan, size_t input,
                                              struct DLManagedTensor *tensor,
                                              const hlo_diag_sink *sink, hlo_buffer **out) {
    const hlo_status status = borrow(plan, input, &tensor->tensor, 0, sink, out);
    if (status == HLO_OK) own(*out, release_plain, tensor);
    return status;
}

/* Maximum number of recordings. A recording is valid only for the same addresses of inputs and
 * outputs. Repeated runs that donate buffers alternate between a few sets of addresses. */
enum { RECORDINGS = 8 };

typedef struct recording {
    plan_place *places;          /* places of inputs, followed by those of outputs; NULL if the
                                  * recording is unused */
    plan_command_buffer *buffer; /* NULL if only one run has had these addresses */
} recording;

struct plan_resident {
    hlo_event *last; /* the end of the last run */
    recording recordings[RECORDINGS];
    size_t oldest; /* number of the recording to replace next */
};

void plan_resident_free(plan_resident *resident) {
    if (!resident) return;
    hlo_event_wait(resident->last, NULL);
    hlo_event_free(resident->last);
}

/* -------------------------------------------------------------------------------------- binding */

static size_t leaf_size(const hlo_plan *plan, const hlo_shape *shape) {
    return plan_align(plan, (size_t)hlo_shape_bytes(shape));
}

hlo_status plan_resident_bind(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan->resident = hlo_arena_zero(plan->arena, sizeof *plan->resident);
    size_t size = 0, at = 0;
    for (size_t i = 0; i < plan->inputs.count; i++) size += leaf_size(plan, plan->inputs.shapes[i]);
    for (size_t o = 0; o < plan->outputs.count; o++)
        if (!plan->in_place[o]) size += leaf_size(plan, plan->outputs.shapes[o]);
    char *memory = plan->backend->allocate(plan->device, size ? size : 1);
    if (!memory) {
        hlo_diag_refuse(sink, HLO_DIAG_MEMORY, NULL, 0, 0,
                        "out of memory: the %s backend requires %zu bytes for inputs and outputs "
                        "in addition to %zu for temporaries",
                        plan->backend->name, size, plan->memory_size);
        return HLO_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < plan->inputs.count; i++) {
        plan->arguments[i].data = memory + at;
        at += leaf_size(plan, plan->inputs.shapes[i]);
    }
    for (size_t o = 0; o < plan->outputs.count; o++) {
        plan->results[o].data =
            plan->in_place[o] ? plan->arguments[plan->taken[o]].data : memory + at;
        if (!plan->in_place[o]) at += leaf_size(plan, plan->outputs.shapes[o]);
    }
    const hlo_status status = plan_bind(plan, sink);
    plan->backend->release(plan->device, memory);
    return status;
}

/* ------------------------------------------------------------------------------------ recording */

/* Sets plan->buffer to the recording for the addresses of this run. If this is the first run with
 * these addresses, only saves the addresses. If it is the second, records the run. */
static hlo_status find_or_record(hlo_plan *plan, const hlo_diag_sink *sink) {
    plan_resident *r = plan->resident;
    const size_t inputs = plan->inputs.count * sizeof(plan_place);
    const size_t outputs = plan->outputs.count * sizeof(plan_place);
    for (size_t i = 0; i < RECORDINGS && r->recordings[i].places; i++) {
        recording *found = &r->recordings[i];
        if (memcmp(found->places, plan->arguments, inputs) != 0 ||
            memcmp(found->places + plan->inputs.count, plan->results, outputs) != 0)
            continue;
        plan->buffer = found->buffer;
        const hlo_status status = found->buffer ? HLO_OK : plan_record(plan, sink);
        found->buffer = plan->buffer;
        return status;
    }
    for (size_t tries = 0; tries < RECORDINGS; tries++) {
        recording *free = &r->recordings[r->oldest++ % RECORDINGS];
        if (free->buffer) continue;
        if (!free->places) free->places = hlo_arena_alloc(plan->arena, inputs + outputs + 1);
        memcpy(free->places, plan->arguments, inputs);
        memcpy(free->places + plan->inputs.count, plan->results, outputs);
        break;
    }
    return HLO_OK;
}

/* Sets plan->buffer to a recording for the addresses of this run, or to NULL. */
static hlo_status record_run(hlo_plan *plan, const hlo_diag_sink *sink) {
    jmp_buf recover;
    plan->buffer = NULL;
    if (!plan->backend->record) return HLO_OK;
    hlo_arena_set_recover(plan->arena, &recover);
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : find_or_record(plan, sink);
    hlo_arena_set_recover(plan->arena, NULL);
    const void *graph;
    const char *why;
    if (status == HLO_OUT_OF_MEMORY) plan->backend->recorded(plan->device, &graph, &why);
    return status;
}

/* ------------------------------------------------------------------------------------- checking */

static hlo_status check_inputs(const hlo_plan *plan, hlo_buffer *const *inputs, size_t count,
                               const hlo_diag_sink *sink) {
    if (!plan->resident)
        return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "the plan was created without `resident`");
    if (count != plan->inputs.count)
        return hlo_diag_refuse(sink, HLO_DIAG_INPUT, NULL, 0, 0,
                               "%zu inputs are given, but the entry computation has %zu", count,
                               plan->inputs.count);
    for (size_t i = 0; i < count; i++) {
        const hlo_buffer *buffer = inputs[i];
        if (!buffer || !buffer->memory)
            return hlo_diag_misuse(sink, HLO_DIAG_USAGE, "input %zu %s", i,
                                   buffer ? "was donated to an earlier run" : "is missing");
        const hlo_backend *backend = buffer->memory->device->backend;
        if (backend->memory_kind != plan->backend->memory_kind)
            return hlo_diag_refuse(
                sink, HLO_DIAG_INPUT, NULL, 0, 0,
                "input %zu is a buffer of the %s backend, but the plan uses the %s backend", i,
                backend->name, plan->backend->name);
        const hlo_status status =
            hlo_leaf_check(&plan->inputs, plan->module, i, &buffer->array, sink);
        if (status != HLO_OK) return status;
        const hlo_shape *shape = plan->inputs.shapes[i];
        if (!hlo_shape_same_memory(&buffer->shape, shape)) {
            char found[256], expected[256];
            hlo_shape_format(&buffer->shape, true, found, sizeof found);
            hlo_shape_format(shape, true, expected, sizeof expected);
            return hlo_diag_refuse(sink, HLO_DIAG_INPUT, NULL, 0, 0,
                                   "input %zu is %s, but its parameter is %s", i, found, expected);
        }
        if (plan->given[i] == PLAN_NONE) continue;
        const plan_memory *memory = buffer->memory;
        if (memory->read_only)
            return hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                                   "cannot donate input %zu: it is a read-only tensor", i);
        if (atomic_load(&memory->users) > 1)
            return hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                                   "cannot donate input %zu: a tensor shares its memory", i);
        const uintptr_t from = (uintptr_t)memory->data;
        for (size_t k = 0; k < count; k++) {
            if (k == i || !inputs[k] || !inputs[k]->memory) continue;
            const uintptr_t other = (uintptr_t)inputs[k]->memory->data;
            const size_t others = inputs[k]->memory->size;
            if (from <= other ? other - from < memory->size && others
                              : from - other < others && memory->size)
                return hlo_diag_misuse(sink, HLO_DIAG_USAGE,
                                       "cannot donate input %zu: input %zu shares its memory", i,
                                       k);
        }
    }
    return HLO_OK;
}

/* -------------------------------------------------------------------------------------- running */

/* Queues a run on the stream. The inputs must have been checked. */
static hlo_status queue_run(hlo_plan *plan, hlo_buffer *const *inputs, void *stream,
                            const hlo_diag_sink *sink, hlo_buffer **outputs,
                            hlo_event **out_event) {
    const hlo_backend *backend = plan->backend;
    const char *why = "failed";
    for (size_t o = 0; o < plan->outputs.count; o++) {
        const hlo_shape *shape = plan->outputs.shapes[o];
        const size_t size = (size_t)hlo_shape_bytes(shape);
        plan_memory *memory = plan->in_place[o] ? share_memory(inputs[plan->taken[o]]->memory)
                                                : allocate_memory(plan->shared, size);
        if (!memory)
            hlo_diag_refuse(sink, HLO_DIAG_MEMORY, NULL, 0, 0,
                            "out of memory: the %s backend requires %zu bytes for output %zu",
                            plan->backend->name, size, o);
        outputs[o] = new_buffer(shape, memory);
        if (!outputs[o]) return HLO_OUT_OF_MEMORY;
    }
    for (size_t i = 0; i < plan->inputs.count; i++)
        plan->arguments[i].data = inputs[i]->memory->data;
    for (size_t o = 0; o < plan->outputs.count; o++)
        plan->results[o].data = outputs[o]->memory->data;
    hlo_status status = record_run(plan, sink);
    if (status != HLO_OK) return status;
    if (backend->use_stream) status = use_stream(plan->shared, stream, sink);
    if (status != HLO_OK) return status;
    const hlo_event *last = plan->resident->last;
    queue_event(plan->shared, last);
    for (size_t i = 0; i < plan->inputs.count; i++)
        queue_memory(plan->shared, inputs[i]->memory, last);
    for (size_t o = 0; o < plan->outputs.count; o++)
        queue_memory(plan->shared, outputs[o]->memory, last);
    if (plan->look) plan_look_start(plan);
    status = plan_queue(plan, sink);
    void *handle = NULL;
    if (status == HLO_OK && backend->event_new)
        status = backend->event_new(plan->device, &handle, &why);
    if (status == HLO_OK && !(*out_event = new_event(plan->shared, handle)))
        status = HLO_OUT_OF_MEMORY;
    if (status == HLO_INVALID_INPUT && !plan->failure)
        hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "the %s backend %s", plan->backend->name,
                        why);
    if (status != HLO_OK) plan->backend->finish(plan->device, &why);
    if (status == HLO_OK && plan->look) status = plan_look_end(plan, sink);
    if (backend->use_stream) backend->use_stream(plan->device, NULL, &why);
    /* Record the end of the run in the memory that it uses, and clear the donated inputs. */
    hlo_event *event = *out_event;
    for (size_t i = 0; i < plan->inputs.count; i++)
        if (event) use_memory(inputs[i]->memory, event);
    for (size_t o = 0; o < plan->outputs.count; o++)
        if (event) use_memory(outputs[o]->memory, event);
    for (size_t i = 0; i < plan->inputs.count; i++) {
        if (plan->given[i] == PLAN_NONE) continue;
        plan_memory *memory = inputs[i]->memory;
        inputs[i]->memory = NULL;
        inputs[i]->array.data = NULL;
        drop_memory(memory);
    }
    hlo_event_free(plan->resident->last);
    plan->resident->last = share_event(event);
    return status;
}

hlo_status hlo_plan_run_async(hlo_plan *plan, hlo_buffer *const *inputs, size_t input_count,
                              void *stream, const hlo_diag_sink *sink, hlo_buffer **outputs,
                              hlo_event **out_event) {
    HLO_IN_C_LOCALE;
    hlo_event *event = NULL;
    if (out_event) *out_event = NULL;
    for (size_t o = 0; o < plan->outputs.count; o++) outputs[o] = NULL;
    hlo_status status = check_inputs(plan, inputs, input_count, sink);
    if (status == HLO_OK) status = queue_run(plan, inputs, stream, sink, outputs, &event);
    for (size_t o = 0; o < plan->outputs.count && status != HLO_OK; o++) {
        hlo_buffer_free(outputs[o]);
        outputs[o] = NULL;
    }
    if (out_event && status == HLO_OK)
        *out_event = event;
    else
        hlo_event_free(event);
    return status;
}
