/* SPDX-License-Identifier: Apache-2.0 */
/* A fake libcuda: devices, memory, events. Streams are in streams.c, kernels in kernels.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "standin.h"

/* --------------------------------------------------------------------------- device and context */

static int retained;

cuda_context *standin_context(void) {
    return (cuda_context *)&retained;
}

enum { ALLOCATIONS = 1 << 14 };

typedef struct allocation {
    char *memory;
    size_t size;
    long number;
} allocation;

static allocation allocated[ALLOCATIONS];
static long allocations, numbered;
static double passed;          /* milliseconds added to the clock */
static long recorded, awaited; /* numbers of recorded events, and of those known to be complete */

int cuInit(unsigned flags) {
    ENTER("cuInit %u", flags);
    return 0;
}

int cuDriverGetVersion(int *version) {
    ENTER("cuDriverGetVersion");
    const char *chosen = getenv("HLO_STANDIN_DRIVER");
    *version = chosen ? atoi(chosen) : 13000;
    return 0;
}

int cuDeviceGetCount(int *count) {
    ENTER("cuDeviceGetCount");
    *count = 1;
    return 0;
}

int cuDeviceGet(int *device, int ordinal) {
    ENTER("cuDeviceGet %d", ordinal);
    *device = ordinal;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device) {
    ENTER("cuDeviceGetName %d", device);
    snprintf(name, (size_t)size, "stand-in");
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER("cuDeviceGetAttribute %d of %d", attribute, device);
    switch (attribute) {
    case CUDA_ATTRIBUTE_PROCESSORS: *value = 132; break;
    case CUDA_ATTRIBUTE_L2_SIZE: *value = 1 << 20; break;
    case CUDA_ATTRIBUTE_MAJOR: *value = standin_sm() / 10; break;
    case CUDA_ATTRIBUTE_MINOR: *value = standin_sm() % 10; break;
    default: *value = 1;
    }
    return 0;
}

int cuDevicePrimaryCtxRetain(cuda_context **context, int device) {
    ENTER("cuDevicePrimaryCtxRetain %d", device);
    retained++;
    *context = (cuda_context *)&retained;
    return 0;
}

int cuDevicePrimaryCtxRelease(int device) {
    ENTER("cuDevicePrimaryCtxRelease %d", device);
    if (--retained == 0 && allocations) standin_note("leaked %ld allocations", allocations);
    return 0;
}

/* The thread's stack of contexts; the top of the stack is current. */
enum { CONTEXTS = 8 };
static _Thread_local cuda_context *current[CONTEXTS];
static _Thread_local int depth;

bool standin_has_context(void) {
    return retained && current[depth];
}

int cuCtxSetCurrent(cuda_context *context) {
    if (context && context != standin_context()) return CUDA_INVALID_HANDLE;
    current[depth] = context;
    return 0;
}

int cuCtxPushCurrent(cuda_context *context) {
    ENTER("cuCtxPushCurrent");
    if (context != standin_context() || depth + 1 == CONTEXTS) return CUDA_INVALID_HANDLE;
    current[++depth] = context;
    return 0;
}

int cuCtxPopCurrent(cuda_context **context) {
    ENTER("cuCtxPopCurrent");
    if (!standin_has_context()) return CUDA_INVALID_CONTEXT;
    if (context) *context = current[depth];
    current[depth] = NULL;
    if (depth > 0) depth--;
    return 0;
}

int cuCtxGetDevice(int *device) {
    ENTER("cuCtxGetDevice");
    *device = 0;
    return standin_has_context() ? 0 : CUDA_INVALID_CONTEXT;
}

/* --------------------------------------------------------------------------------------- memory */

int cuMemGetInfo(size_t *free_bytes, size_t *total) {
    ENTER("cuMemGetInfo");
    *free_bytes = *total = (size_t)1 << 34;
    return standin_uncaptured();
}

static const allocation *find_allocation(const void *memory) {
    for (long i = 0; i < allocations; i++) {
        const allocation *a = &allocated[i];
        if ((const char *)memory >= a->memory && (const char *)memory < a->memory + a->size)
            return a;
    }
    return NULL;
}

bool standin_allocated(const void *memory, size_t size) {
    const allocation *a = find_allocation(memory);
    return a && size <= a->size - (size_t)((const char *)memory - a->memory);
}

const char *standin_name(const void *memory, char capacity[64]) {
    const allocation *a = find_allocation(memory);
    if (!a) return NULL;
    snprintf(capacity, 64, "memory %ld+%td", a->number, (const char *)memory - a->memory);
    return capacity;
}

int cuMemAlloc(cuda_address *memory, size_t size) {
    ENTER("cuMemAlloc %zu", size);
    if (standin_uncaptured()) return CUDA_CAPTURE_UNSUPPORTED;
    if (allocations == ALLOCATIONS) return CUDA_OUT_OF_MEMORY;
    void *made = size ? aligned_alloc(512, (size + 511) / 512 * 512) : NULL;
    if (!made) return size ? CUDA_OUT_OF_MEMORY : CUDA_INVALID_VALUE;
    memset(made, 0xa5, size);
    allocated[allocations++] = (allocation){made, size, ++numbered};
    *memory = (cuda_address)(uintptr_t)made;
    return 0;
}

int cuMemFree(cuda_address memory) {
    LOCK;
    void *freed = (void *)(uintptr_t)memory;
    standin_finish_all();
    for (long i = 0; i < allocations; i++)
        if (allocated[i].memory == freed) {
            allocated[i] = allocated[--allocations];
            free(freed);
            ENTER("cuMemFree");
            return 0;
        }
    return CUDA_INVALID_VALUE;
}

typedef struct copying {
    void *to;
    const void *from;
    size_t size;
    unsigned char byte;
} copying;

static void run_host_copy(void *argument) {
    const copying *c = argument;
    memmove(c->to, c->from, c->size);
}

static void run_copy(void *argument) {
    run_host_copy(argument);
    standin_work(0.25);
}

static void run_fill(void *argument) {
    const copying *c = argument;
    memset(c->to, c->byte, c->size);
    standin_work(0.25);
}

static void *host(cuda_address memory) {
    return (void *)(uintptr_t)memory;
}

/* Copies from and to pageable host memory. The driver allows neither direction during a capture. A
 * device that can read pageable memory may do so when the stream reaches the copy. */
int cuMemcpyHtoDAsync(cuda_address to, const void *from, size_t size, cuda_stream *stream) {
    ENTER("cuMemcpyHtoDAsync %zu", size);
    if (standin_uncaptured()) return CUDA_CAPTURE_UNSUPPORTED;
    const copying c = {host(to), from, size, 0};
    return standin_later(stream, run_host_copy, &c, sizeof c);
}

int cuMemcpyDtoHAsync(void *to, cuda_address from, size_t size, cuda_stream *stream) {
    ENTER("cuMemcpyDtoHAsync %zu", size);
    if (standin_uncaptured()) return CUDA_CAPTURE_UNSUPPORTED;
    const copying c = {to, host(from), size, 0};
    return standin_later(stream, run_host_copy, &c, sizeof c);
}

int cuMemcpyDtoDAsync(cuda_address to, cuda_address from, size_t size, cuda_stream *stream) {
    ENTER("cuMemcpyDtoDAsync %zu", size);
    const copying c = {host(to), host(from), size, 0};
    return standin_enqueue(stream, STANDIN_OTHER, run_copy, &c, sizeof c);
}

int cuMemsetD8Async(cuda_address memory, unsigned char byte, size_t size, cuda_stream *stream) {
    ENTER("cuMemsetD8Async %zu", size);
    const copying c = {host(memory), NULL, size, byte};
    return standin_enqueue(stream, STANDIN_OTHER, run_fill, &c, sizeof c);
}

/* --------------------------------------------------------------------------------------- events */

struct cuda_event {
    double time;
    long order; /* sequence number of the event's last record; 0: not recorded */
    bool timed;
    standin_place place;
};

standin_place standin_place_of(const cuda_event *event) {
    return event->place;
}

void standin_pass(double milliseconds) {
    passed += milliseconds;
}

static bool has_own_clock(void) {
    return getenv("HLO_STANDIN_CLOCK") != NULL;
}

void standin_work(double milliseconds) {
    if (has_own_clock()) standin_pass(milliseconds);
}

void standin_await(void) {
    awaited = recorded;
}

int cuEventCreate(cuda_event **event, unsigned flags) {
    ENTER("cuEventCreate %u", flags);
    *event = calloc(1, sizeof **event);
    if (!*event) return CUDA_OUT_OF_MEMORY;
    (*event)->timed = !(flags & CUDA_EVENT_DISABLE_TIMING);
    return 0;
}

int cuEventRecord(cuda_event *event, cuda_stream *stream) {
    ENTER("cuEventRecord");
    event->place = standin_end_of(stream);
    struct timespec now = {0};
    if (!has_own_clock()) clock_gettime(CLOCK_MONOTONIC, &now);
    event->time = (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6 + passed;
    event->order = ++recorded;
    return 0;
}

int cuEventSynchronize(cuda_event *event) {
    ENTER("cuEventSynchronize");
    standin_finish(event->place);
    if (event->order > awaited) awaited = event->order;
    return standin_uncaptured();
}

/* If queued work before the event is not done yet, does the work and returns "not ready" once. */
int cuEventQuery(cuda_event *event) {
    ENTER("cuEventQuery");
    const bool done = standin_is_done(event->place);
    standin_finish(event->place);
    return done ? standin_uncaptured() : CUDA_NOT_READY;
}

int cuEventElapsedTime(float *milliseconds, cuda_event *start, cuda_event *end) {
    ENTER("cuEventElapsedTime");
    if (!start->timed || !end->timed || !start->order || !end->order) return CUDA_INVALID_HANDLE;
    if (start->order > awaited || end->order > awaited) return CUDA_NOT_READY;
    *milliseconds = (float)(end->time - start->time);
    return 0;
}

int cuEventDestroy(cuda_event *event) {
    free(event);
    ENTER("cuEventDestroy");
    return 0;
}

/* --------------------------------------------------------------------------------------- errors */

int cuGetErrorName(int error, const char **name) {
    static char text[32];
    snprintf(text, sizeof text, "CUDA_ERROR_%d", error);
    *name = text;
    return 0;
}

int cuGetErrorString(int error, const char **text) {
    (void)error;
    *text = "injected failure";
    return 0;
}
