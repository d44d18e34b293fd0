/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the device, and implements memory, time, streams of the caller, and events. */
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "ir/text/diag.h"
#include "matmul/call.h"
#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"
#include "runtime/grow.h"

enum { FIRST_DRIVER = 11080 }; /* the first driver version whose cuBLASLt supports FP8 */

typedef struct cuda_owned {
    struct cuda_owned *next;
    void *object;
    void (*release)(cuda_device *device, void *object);
} cuda_owned;

bool cuda_own(cuda_device *device, void *object,
              void (*release)(cuda_device *device, void *object)) {
    cuda_owned *owned = hlo_malloc(sizeof *owned);
    if (!owned) {
        release(device, object);
        return false;
    }
    *owned = (cuda_owned){device->owned, object, release};
    device->owned = owned;
    return true;
}

hlo_status cuda_fails(cuda_device *device, const char *what, int result, const char **why) {
    char capacity[160];
    snprintf(device->message, sizeof device->message, "cannot %s: %s", what,
             cuda_error_text(device->lib, result, capacity, sizeof capacity));
    *why = device->message;
    return HLO_INVALID_INPUT;
}

static hlo_status refuse(const cuda_device *device, const hlo_diag_sink *sink, const char *what,
                         int result) {
    char capacity[160];
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "%s: %s", what,
                           cuda_error_text(device->lib, result, capacity, sizeof capacity));
}

/* Queries the properties of device `ordinal`; `result` is the status of finding it. */
static hlo_status ask_device(cuda_device *device, int result, const hlo_diag_sink *sink) {
    const cuda_library *lib = device->lib;
    int major = 0, minor = 0, l2 = 0;
    if (!result)
        result = lib->cuDeviceGetName(device->name, (int)sizeof device->name, device->ordinal);
    if (!result) result = lib->cuDeviceGetAttribute(&major, CUDA_ATTRIBUTE_MAJOR, device->ordinal);
    if (!result) result = lib->cuDeviceGetAttribute(&minor, CUDA_ATTRIBUTE_MINOR, device->ordinal);
    if (!result) result = lib->cuDeviceGetAttribute(&l2, CUDA_ATTRIBUTE_L2_SIZE, device->ordinal);
    if (!result)
        result = lib->cuDeviceGetAttribute(&device->processors, CUDA_ATTRIBUTE_PROCESSORS,
                                           device->ordinal);
    if (result) return refuse(device, sink, "failed to query the CUDA device", result);
    device->sm = major * 10 + minor;
    device->l2_size = (size_t)l2;
    return HLO_OK;
}

static hlo_status start_cublaslt(cuda_device *device, const hlo_diag_sink *sink) {
    const cuda_library *lib = device->lib;
    lt_handle *lt = NULL;
    int result = lib->cublasLtCreate(&lt);
    device->lt = lt;
    device->cublaslt = (int)lib->cublasLtGetVersion();
    if (!result) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "failed to initialize cuBLASLt: %s",
                           lib->cublasLtGetStatusName(result));
}

/* Creates the event of a mark unless the event exists. Returns 0 or a CUresult. */
static int make_mark(cuda_device *d, uint32_t index) {
    const size_t before = d->mark_capacity;
    if (!hlo_heap_grow(&d->marks, (size_t)index + 1, &d->mark_capacity, sizeof *d->marks))
        return CUDA_OUT_OF_MEMORY;
    if (d->mark_capacity > before)
        memset(d->marks + before, 0, (d->mark_capacity - before) * sizeof *d->marks);
    return d->marks[index] ? 0 : d->lib->cuEventCreate(&d->marks[index], 0);
}

/* Loads the libraries, and opens the first device. */
static hlo_status open_device(cuda_device *device, const hlo_diag_sink *sink) {
    cuda_library *lib = hlo_calloc(1, sizeof *lib);
    if (!lib) return HLO_OUT_OF_MEMORY;
    device->lib = lib;
    hlo_status status = cuda_library_load(lib, CUDA_DRIVER, sink);
    int version = 0, count = 0;
    if (status == HLO_OK && !lib->cuDriverGetVersion(&version) && version < FIRST_DRIVER)
        status = hlo_diag_refuse(
            sink, HLO_DIAG_DEVICE, NULL, 0, 0,
            "the CUDA driver supports CUDA %d.%d, but %d.%d or later is required", version / 1000,
            version % 1000 / 10, FIRST_DRIVER / 1000, FIRST_DRIVER % 1000 / 10);
    for (int id = 0; id < CUDA_LIBRARY_COUNT && status == HLO_OK; id++)
        status = cuda_library_load(lib, (cuda_library_id)id, sink);
    if (status != HLO_OK) return status;
    int result = lib->cuInit(0);
    if (result) return refuse(device, sink, "failed to initialize the CUDA driver", result);
    result = lib->cuDeviceGetCount(&count);
    if (result) return refuse(device, sink, "failed to enumerate CUDA devices", result);
    if (count == 0)
        return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0, "no CUDA device found");
    status = ask_device(device, lib->cuDeviceGet(&device->ordinal, 0), sink);
    if (status != HLO_OK) return status;
    cuda_context *context = NULL;
    cuda_stream *stream = NULL;
    result = lib->cuDevicePrimaryCtxRetain(&context, device->ordinal);
    device->context = context;
    if (!result) result = lib->cuCtxSetCurrent(context);
    if (!result) result = lib->cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
    device->stream = device->own_stream = stream;
    for (uint32_t i = 0; i < 2 && !result; i++) result = make_mark(device, i);
    if (result)
        return refuse(device, sink, "failed to create a context on the CUDA device", result);
    return start_cublaslt(device, sink);
}

static hlo_status find_target(cuda_device *device, const hlo_diag_sink *sink) {
    device->target = hlo_target_nearest(device->sm);
    if (device->target) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, NULL, 0, 0,
                           "%s has compute capability %d.%d, which is not supported", device->name,
                           device->sm / 10, device->sm % 10);
}

hlo_status cuda_device_borrow(const cuda_library *lib, const hlo_diag_sink *sink,
                              cuda_device *out_device) {
    *out_device = (cuda_device){.lib = lib};
    hlo_status status = ask_device(out_device, lib->cuCtxGetDevice(&out_device->ordinal), sink);
    if (status == HLO_OK) status = find_target(out_device, sink);
    return status == HLO_OK ? start_cublaslt(out_device, sink) : status;
}

hlo_status cuda_device_open(const hlo_plan_options *options, const hlo_diag_sink *sink,
                            cuda_device **out) {
    *out = NULL;
    cuda_device *device = hlo_calloc(1, sizeof *device);
    if (!device) return HLO_OUT_OF_MEMORY;
    device->graph = options->graph;
    device->host_fallback = options->host_fallback;
    device->autotune = options->autotune;
    device->autotune_cache = options->autotune_cache;
    device->kernel_cache = options->kernel_cache;
    device->sink = sink;
    hlo_status status = HLO_OK;
    if (options->target && !hlo_target_parse(options->target)) {
        status = hlo_diag_misuse(sink, HLO_DIAG_OPTION, "unknown target '%s'", options->target);
    } else if (options->target && !hlo_cuda_parse(options->cuda)) {
        status = hlo_diag_misuse(sink, HLO_DIAG_OPTION, HLO_CUDA_INVALID, options->cuda);
    } else if (options->target) { /* describes a device without opening it */
        device->sm = hlo_target_parse(options->target)->sm;
        device->processors = CUDA_PROCESSORS;
        device->cublaslt = hlo_cuda_parse(options->cuda) * 10;
        snprintf(device->name, sizeof device->name, "sm_%d", device->sm);
    } else {
        status = open_device(device, sink);
    }
    if (status == HLO_OK) status = find_target(device, sink);
    if (status == HLO_OK)
        device->workspace =
            options->workspace ? options->workspace : (size_t)device->target->workspace;
    if (status != HLO_OK) {
        cuda_device_close(device);
        return status;
    }
    *out = device;
    return HLO_OK;
}

void cuda_device_close(void *closed) {
    cuda_device *device = closed;
    const cuda_library *lib = device->lib;
    if (device->context) lib->cuCtxSetCurrent(device->context);
    while (device->owned) {
        cuda_owned *owned = device->owned;
        device->owned = owned->next;
        owned->release(device, owned->object);
        hlo_free(owned);
    }
    if (device->lt) lib->cublasLtDestroy(device->lt);
    for (size_t i = 0; i < device->mark_capacity; i++)
        if (device->marks[i]) lib->cuEventDestroy(device->marks[i]);
    hlo_free(device->marks);
    if (device->own_stream) lib->cuStreamDestroy(device->own_stream);
    if (device->context) lib->cuDevicePrimaryCtxRelease(device->ordinal);
    if (lib) cuda_library_unload((cuda_library *)lib);
    hlo_free((void *)lib);
    hlo_free(device);
}

void *cuda_allocate(void *device, size_t size) {
    const cuda_device *d = device;
    cuda_address memory = 0;
    if (d->lib->cuCtxSetCurrent(d->context) || d->lib->cuMemAlloc(&memory, size)) return NULL;
    return (void *)(uintptr_t)memory;
}

void cuda_release(void *device, void *memory) {
    const cuda_device *d = device;
    d->lib->cuCtxSetCurrent(d->context);
    d->lib->cuMemFree(cuda_address_of(memory));
}

bool cuda_available(void *device, size_t *out_bytes) {
    const cuda_device *d = device;
    size_t total;
    return !d->lib->cuCtxSetCurrent(d->context) && !d->lib->cuMemGetInfo(out_bytes, &total);
}

void cuda_identify(void *device, FILE *out) {
    const cuda_device *d = device;
    size_t available = 0, total = 0;
    int driver = 0, major = 0, minor = 0;
    const bool known = !d->lib->cuMemGetInfo(&available, &total);
    fprintf(out, "device: %s, sm_%d", d->name, d->sm);
    if (known) fprintf(out, ", %zu of %zu MiB free", available >> 20, total >> 20);
    fputc('\n', out);
    if (!d->lib->cuDriverGetVersion(&driver))
        fprintf(out, "CUDA driver: %d.%d\n", driver / 1000, driver % 1000 / 10);
    fprintf(out, "cuBLASLt: %d\n", d->cublaslt);
    if (!d->lib->nvrtcVersion(&major, &minor)) fprintf(out, "NVRTC: %d.%d\n", major, minor);
}

static void release_import(cuda_device *device, void *memory) {
    cuda_release(device, memory);
}

const void *cuda_import(void *device, const void *bytes, size_t size) {
    cuda_device *d = device;
    if (!d->lib) return bytes;
    void *memory = cuda_allocate(device, size ? size : 1);
    if (!memory || !cuda_own(d, memory, release_import)) return NULL;
    cuda_copy_in(device, memory, bytes, size);
    return memory;
}

/* Waits until the host's memory may be reused: if the device reads pageable memory directly, the
 * driver's function returns before the copy is complete. */
void cuda_copy_in(void *device, void *to, const void *host, size_t size) {
    cuda_device *d = device;
    cuda_note(d, d->lib->cuCtxSetCurrent(d->context));
    if (size) cuda_note(d, d->lib->cuMemcpyHtoDAsync(cuda_address_of(to), host, size, d->stream));
    cuda_note(d, d->lib->cuStreamSynchronize(d->stream));
}

void cuda_copy_out(void *device, void *host, const void *from, size_t size) {
    cuda_device *d = device;
    cuda_note(d, d->lib->cuCtxSetCurrent(d->context));
    if (size) cuda_note(d, d->lib->cuMemcpyDtoHAsync(host, cuda_address_of(from), size, d->stream));
    cuda_note(d, d->lib->cuStreamSynchronize(d->stream));
}

void cuda_mark(void *device, uint32_t index) {
    cuda_device *d = device;
    cuda_note(d, d->lib->cuCtxSetCurrent(d->context));
    const int result = make_mark(d, index);
    cuda_note(d, result ? result : d->lib->cuEventRecord(d->marks[index], d->stream));
}

hlo_status cuda_seconds_between(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                const char **why) {
    cuda_device *d = device;
    float milliseconds = 0;
    const int result = d->lib->cuEventElapsedTime(&milliseconds, d->marks[from], d->marks[to]);
    *out_seconds = milliseconds * 1e-3;
    return result ? cuda_fails(d, "measure the time", result, why) : HLO_OK;
}

hlo_status cuda_finish(void *device, const char **why) {
    cuda_device *d = device;
    cuda_note(d, d->lib->cuCtxSetCurrent(d->context));
    cuda_note(d, d->lib->cuStreamSynchronize(d->stream));
    int failed = d->failed;
    d->failed = 0;
    return failed ? cuda_fails(d, "finish", failed, why) : HLO_OK;
}

hlo_status cuda_use_stream(void *device, void *stream, const char **why) {
    cuda_device *d = device;
    cuda_context *context = NULL;
    int result = d->lib->cuCtxSetCurrent(d->context);
    d->stream = d->own_stream;
    if (!stream) {
        if (!result) result = d->failed;
        d->failed = 0;
        return result ? cuda_fails(d, "queue the work", result, why) : HLO_OK;
    }
    if (!result) result = d->lib->cuStreamGetCtx(stream, &context);
    if (result) return cuda_fails(d, "use the stream", result, why);
    if (context != d->context) {
        *why =
            "cannot use the stream: it does not belong to the primary context of the plan's device";
        return HLO_INVALID_USAGE;
    }
    d->stream = stream;
    return HLO_OK;
}

hlo_status cuda_event_new(void *device, void **out_event, const char **why) {
    cuda_device *d = device;
    cuda_event *event = NULL;
    int result = d->failed;
    d->failed = 0;
    if (!result) result = d->lib->cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING);
    if (!result) result = d->lib->cuEventRecord(event, d->stream);
    if (result && event) d->lib->cuEventDestroy(event);
    *out_event = result ? NULL : event;
    return result ? cuda_fails(d, "queue the run", result, why) : HLO_OK;
}

void *cuda_event_behind(void *device, void *stream, void *after) {
    const cuda_device *d = device;
    cuda_event *event = NULL;
    int result = d->lib->cuCtxSetCurrent(d->context);
    if (!result && after) result = d->lib->cuStreamWaitEvent(stream, after, 0);
    if (!result) result = d->lib->cuEventCreate(&event, CUDA_EVENT_DISABLE_TIMING);
    if (!result) result = d->lib->cuEventRecord(event, stream);
    if (!result) return event;
    if (event) d->lib->cuEventDestroy(event);
    d->lib->cuStreamSynchronize(stream);
    return NULL;
}

void cuda_event_free(void *device, void *event) {
    const cuda_device *d = device;
    d->lib->cuCtxSetCurrent(d->context);
    d->lib->cuEventDestroy(event);
}

void cuda_event_queue(void *device, void *event) {
    cuda_device *d = device;
    int result = d->lib->cuCtxSetCurrent(d->context);
    cuda_note(d, result ? result : d->lib->cuStreamWaitEvent(d->stream, event, 0));
}

hlo_status cuda_event_wait(void *device, void *event, char *why, size_t size) {
    const cuda_device *d = device;
    char text[160];
    int result = d->lib->cuCtxSetCurrent(d->context);
    if (!result) result = d->lib->cuEventSynchronize(event);
    if (!result) return HLO_OK;
    snprintf(why, size, "cannot finish: %s", cuda_error_text(d->lib, result, text, sizeof text));
    return HLO_INVALID_INPUT;
}

bool cuda_event_done(void *device, void *event) {
    const cuda_device *d = device;
    return d->lib->cuCtxSetCurrent(d->context) || d->lib->cuEventQuery(event) != CUDA_NOT_READY;
}
