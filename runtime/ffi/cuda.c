/* SPDX-License-Identifier: Apache-2.0 */
/* Executes calls on a CUDA device, as cuBLASLt problems on XLA's stream and in XLA's memory.
 *
 * XLA has one handler for all calls of a process and keeps no state between calls, so plans are
 * cached here until the process ends. A plan does not contain addresses: it serves all calls in one
 * context that have the same types, dimensions, attributes and alignments. The library is queried
 * only when a plan is created. Later calls only set pointers and are enqueued. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "runtime/cuda/cublaslt/matmul.h"
#include "runtime/ffi/call.h"

/* A CUDA context in which calls are executed. */
typedef struct site {
    struct site *next;
    cuda_context *context;
    cuda_device device;
} site;

typedef struct plan {
    struct plan *next;
    cuda_device device; /* the site's device, with the stream of the launch */
    hlo_module *module; /* owns the objects that the problem refers to */
    cuda_matmul problem;
    cuda_call *call;
    lt_heuristic chosen;
    size_t key_size;
    unsigned char key[];
} plan;

enum { BUCKETS = 1024 };

typedef struct store {
    pthread_mutex_t lock; /* guards the members below, and launches, because they set a plan's
                           * pointers */
    cuda_library lib;
    site *sites;
    plan *plans[BUCKETS];
    char why[1024];
} store;

/* A key of a call: bytes that are equal for calls that share a plan. */
typedef struct plan_key {
    unsigned char *bytes; /* in the arena */
    size_t size, capacity;
    hlo_arena *arena;
} plan_key;

static void key_append(plan_key *key, const void *bytes, size_t size) {
    if (size > key->capacity - key->size) {
        const size_t capacity = 2 * key->capacity + size + 1024;
        unsigned char *grown = hlo_arena_alloc(key->arena, capacity);
        if (key->size) memcpy(grown, key->bytes, key->size);
        key->bytes = grown;
        key->capacity = capacity;
    }
    if (size) memcpy(key->bytes + key->size, bytes, size);
    key->size += size;
}

static void append_number(plan_key *key, int64_t number) {
    key_append(key, &number, sizeof number);
}

static void append_list(plan_key *key, const ffi_list *list) {
    append_number(key, list->count);
    for (int64_t i = 0; i < list->count; i++) {
        const ffi_buffer *buffer = ffi_buffer_at(list, i);
        append_number(key, buffer->type);
        append_number(key, cuda_alignment_of(buffer->data));
        append_number(key, buffer->rank);
        key_append(key, buffer->dims, (size_t)buffer->rank * sizeof *buffer->dims);
    }
}

static void append_span(plan_key *key, const ffi_span *span) {
    append_number(key, (int64_t)span->size);
    key_append(key, span->bytes, span->size);
}

/* A sink that keeps the first error as the reason. */
static void keep_error(void *user, const hlo_diag *diag) {
    store *s = user;
    if (!*s->why) snprintf(s->why, sizeof s->why, "cannot be run: %s", diag->message);
}

/* The memory for scratch: the last result, a byte vector, from its first aligned address on. */
typedef struct workspace {
    char *memory;
    size_t size;
} workspace;

static workspace find_workspace(const ffi_frame *frame) {
    enum { ALIGN = 256 };
    if (frame->results.count < 2) return (workspace){0};
    const ffi_buffer *last = ffi_buffer_at(&frame->results, frame->results.count - 1);
    if (last->type != FFI_TYPE_S8 || last->rank != 1) return (workspace){0};
    const size_t size = (size_t)last->dims[0], skipped = -(uintptr_t)last->data % ALIGN;
    if (skipped >= size) return (workspace){0};
    return (workspace){(char *)last->data + skipped, size - skipped};
}

/* Returns the smallest alignment of the arrays of a list, except scalars and the workspace. */
static uint32_t least_alignment(const ffi_list *list, uint32_t least) {
    for (int64_t i = 0; i < list->count; i++) {
        const ffi_buffer *buffer = ffi_buffer_at(list, i);
        const uint32_t alignment = cuda_alignment_of(buffer->data);
        if (buffer->rank && buffer->type != FFI_TYPE_S8 && alignment < least) least = alignment;
    }
    return least;
}

static void find_addresses(const ffi_frame *frame, const cuda_matmul *problem,
                           void *out_addresses[LT_PART_COUNT]) {
    for (int part = 0; part < LT_PART_COUNT; part++) {
        const cuda_pointer *at = &problem->places[part];
        out_addresses[part] = NULL;
        if (!(problem->present >> part & 1)) continue;
        if (at->kind == CUDA_SCRATCH)
            out_addresses[part] = find_workspace(frame).memory + at->offset;
        else
            out_addresses[part] =
                ffi_buffer_at(at->kind == CUDA_OPERAND ? &frame->operands : &frame->results,
                              at->index)
                    ->data;
    }
}

/* Creates the plan's problem and its call. If memory runs out, jumps to `recover`. */
static hlo_status build(store *s, plan *p, const ffi_frame *frame, jmp_buf *recover) {
    p->module = hlo_module_make(recover);
    if (!p->module) return HLO_OUT_OF_MEMORY;
    hlo_arena *arena = p->module->arena;
    const char *why = NULL;
    const hlo_instruction *instr = ffi_frame_read(frame, p->module, &why);
    const cuda_matmul_options options = {
        .target = p->device.target,
        .cuda = cuda_cublaslt_version(&p->device),
        .workspace = find_workspace(frame).size,
        .alignment =
            least_alignment(&frame->results, least_alignment(&frame->operands, UINT32_C(256))),
    };
    if (instr && cuda_matmul_plan(instr, &options, arena, &p->problem, &why) &&
        p->problem.copy_count)
        why = hlo_arena_format(arena, "has %s in a layout that cuBLASLt does not support (%s)",
                               lt_part_name(p->problem.copies[0].part), p->problem.copies[0].why);
    hlo_arena_set_recover(arena, NULL);
    if (why) {
        snprintf(s->why, sizeof s->why, "%s", why);
        return HLO_INVALID_INPUT;
    }
    void *addresses[LT_PART_COUNT];
    uint32_t found;
    find_addresses(frame, &p->problem, addresses);
    hlo_status status =
        cuda_call_new(&p->device, &p->problem, addresses, s->why, sizeof s->why, &p->call);
    if (status != HLO_OK) return status;
    return cuda_call_heuristic(p->call, 1, &p->chosen, &found, s->why, sizeof s->why);
}

static hlo_status find_plan(store *s, const site *at, const ffi_frame *frame, const plan_key *key,
                            plan **out_plan) {
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < key->size; i++) hash = (hash ^ key->bytes[i]) * UINT64_C(1099511628211);
    plan **const bucket = &s->plans[hash % BUCKETS];
    for (plan *p = *bucket; p; p = p->next)
        if (p->key_size == key->size && memcmp(p->key, key->bytes, key->size) == 0) {
            *out_plan = p;
            return HLO_OK;
        }
    jmp_buf recover;
    plan *const new = hlo_calloc(1, sizeof *new + key->size);
    if (!new) return HLO_OUT_OF_MEMORY;
    new->device = at->device;
    new->key_size = key->size;
    memcpy(new->key, key->bytes, key->size);
    const hlo_status status = setjmp(recover) ? HLO_OUT_OF_MEMORY : build(s, new, frame, &recover);
    if (status != HLO_OK) {
        cuda_call_free(new->call);
        hlo_module_free(new->module);
        hlo_free(new);
        return status;
    }
    new->next = *bucket;
    *bucket = *out_plan = new;
    return HLO_OK;
}

/* Enqueues the call. The store must be locked. Allocates nothing in the call's arena, so that it
 * never jumps out while the lock is held. */
static hlo_status enqueue(store *s, void *stream, const ffi_frame *frame, plan_key *key) {
    *s->why = '\0';
    const hlo_diag_sink sink = {keep_error, s};
    hlo_status status = cuda_library_load(&s->lib, CUDA_DRIVER, &sink);
    if (status == HLO_OK) status = cuda_library_load(&s->lib, CUDA_CUBLASLT, &sink);
    if (status != HLO_OK) return status;
    cuda_context *context = NULL, *before = NULL;
    int result = s->lib.cuStreamGetCtx(stream, &context);
    if (!result) result = s->lib.cuCtxPushCurrent(context);
    if (result) {
        char capacity[160];
        snprintf(s->why, sizeof s->why, "cannot use its stream: %s",
                 cuda_error_text(&s->lib, result, capacity, sizeof capacity));
        return HLO_INVALID_INPUT;
    }
    memcpy(key->bytes, &context, sizeof context);
    /* Find or create the context's site. */
    plan *p = NULL;
    site *at = s->sites;
    while (at && at->context != context) at = at->next;
    if (!at) {
        site *made = hlo_calloc(1, sizeof *made);
        status = made ? cuda_device_borrow(&s->lib, &sink, &made->device) : HLO_OUT_OF_MEMORY;
        if (status == HLO_OK) {
            made->context = context;
            made->next = s->sites;
            at = s->sites = made;
        } else
            hlo_free(made);
    }
    if (status == HLO_OK) status = find_plan(s, at, frame, key, &p);
    if (status == HLO_OK) {
        void *addresses[LT_PART_COUNT];
        find_addresses(frame, &p->problem, addresses);
        p->device.stream = stream;
        status = cuda_call_launch(p->call, &p->chosen, addresses, s->why, sizeof s->why);
    }
    s->lib.cuCtxPopCurrent(&before);
    return status;
}

static hlo_status execute(ffi_call *call, const char **why) {
    static store only = {.lock = PTHREAD_MUTEX_INITIALIZER}; /* the only store of the process */
    store *s = &only;
    const ffi_frame *frame = call->frame;
    const ffi_api *api = frame->api;
    cuda_context *none = NULL; /* reserves the position of the context in the key */
    plan_key key = {.arena = call->arena};
    char said[sizeof s->why];
    call->code = FFI_FAILED_PRECONDITION;
    *why = "has no stream; it may be registered for a platform other than CUDA";
    if (!FFI_HAS(api, ffi_api, stream_get) || !api->stream_get || !api->error_free)
        return HLO_INVALID_INPUT;
    ffi_stream_get get = {.size = FFI_SIZE(ffi_stream_get, stream), .context = frame->context};
    if (!ffi_good(frame, api->stream_get(&get))) return HLO_INVALID_INPUT;
    const size_t size = find_workspace(frame).size;
    key_append(&key, &none, sizeof none);
    key_append(&key, &size, sizeof size);
    append_list(&key, &frame->operands);
    append_list(&key, &frame->results);
    for (int64_t i = 0; i < frame->attrs.count; i++) {
        append_span(&key, frame->attrs.names[i]);
        /* Append the attributes as call.c reads them. Calls with other values have no plan. */
        append_number(&key, frame->attrs.kinds[i]);
        if (frame->attrs.kinds[i] == FFI_ATTR_STRING) append_span(&key, frame->attrs.values[i]);
        if (frame->attrs.kinds[i] == FFI_ATTR_SCALAR) {
            const ffi_scalar *scalar = frame->attrs.values[i];
            append_number(&key, scalar->type);
            key_append(&key, scalar->value, ffi_type_bytes(scalar->type));
        }
        if (frame->attrs.kinds[i] == FFI_ATTR_ARRAY) {
            const ffi_array *array = frame->attrs.values[i];
            append_number(&key, array->type);
            append_number(&key, (int64_t)array->count);
            key_append(&key, array->values, array->count * ffi_type_bytes(array->type));
        }
    }
    pthread_mutex_lock(&s->lock);
    const hlo_status status = enqueue(s, get.stream, frame, &key);
    memcpy(said, s->why, sizeof said);
    pthread_mutex_unlock(&s->lock);
    *why = status == HLO_OK ? NULL : hlo_arena_format(call->arena, "%s", said);
    return status;
}

__attribute__((visibility("default"))) ffi_error *hlofp8_ffi_matmul_cuda(ffi_frame *frame) {
    return ffi_run(frame, execute);
}
