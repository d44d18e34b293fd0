/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of the caller, and events. */
#include "runtime/cuda/driver/cuda.h"
#include "runtime/cuda/driver/library.h"

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
    if (!result) result = d->lib->cuStreamWaitEvent(d->stream, event, 0);
    if (!d->failed) d->failed = result;
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
