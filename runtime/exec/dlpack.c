/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers as DLPack tensors, and tensors as buffers. */
#include "runtime/exec/dlpack.h"

#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"
#include "runtime/exec/buffer.h"

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

/* True if DLPack packs such elements by default, whereas they occupy one byte each here. */
static bool is_padded(hlo_type type) {
    return bits_of(type) < 8;
}

/* ---------------------------------------------------------------------------------- buffers out */

/* A tensor that was created here, in one allocation with its numbers. */
typedef struct lent {
    union {
        struct DLManagedTensorVersioned versioned;
        struct DLManagedTensor plain;
    } tensor;
    plan_memory *memory;
    void *stream;      /* stream of the caller's work on it; NULL: unknown */
    int64_t numbers[]; /* dimensions, strides */
} lent;

static void delete_lent(lent *l) {
    plan_memory_return(l->memory, l->stream);
    plan_memory_drop(l->memory);
    free(l);
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
    const hlo_status status = plan_buffer_hand_over(buffer, stream, sink);
    if (status != HLO_OK) return status;
    if (code_of(shape->type) == NO_CODE || (is_padded(shape->type) && !flags))
        return plan_misuse(sink, "DLPack does not support %s elements%s", buffer->array.type,
                           is_padded(shape->type) ? " stored in one byte each before version 1.1"
                                                  : "");
    lent *l = calloc(1, sizeof *l + 2 * shape->rank * sizeof *l->numbers);
    if (!l) return HLO_OUT_OF_MEMORY;
    l->memory = plan_memory_share(buffer->memory);
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

/* Checks the tensor and creates a buffer on its memory, without taking ownership of the tensor yet.
 */
static hlo_status borrow(hlo_plan *plan, size_t input, const dlpack_tensor *tensor, uint64_t flags,
                         const hlo_diag_sink *sink, hlo_buffer **out) {
    *out = NULL;
    const hlo_status status = plan_buffer_check(plan, input, sink);
    if (status != HLO_OK) return status;
    const hlo_shape *shape = plan->inputs.shapes[input];
    const hlo_backend *backend = plan->backend;
    const int32_t also =
        backend->memory_kind == DLPACK_CUDA ? DLPACK_CUDA_MANAGED : DLPACK_CUDA_HOST;
    if ((tensor->device_type != backend->memory_kind && tensor->device_type != also) ||
        tensor->device_id != 0)
        return hlo_diag_refuse(sink, NULL, 0, 0,
                               "the tensor for input %zu is on device %d of DLPack device type %d, "
                               "but the %s backend requires device 0 of type %d",
                               input, (int)tensor->device_id, (int)tensor->device_type,
                               backend->name, backend->memory_kind);
    const char *fault = find_fault(tensor, flags, shape);
    if (fault) {
        char expected[256];
        hlo_shape_format(shape, true, expected, sizeof expected);
        return hlo_diag_refuse(sink, NULL, 0, 0, "the tensor for input %zu %s, expected %s", input,
                               fault, expected);
    }
    if (((uintptr_t)tensor->data + tensor->byte_offset) % backend->alignment != 0)
        return hlo_diag_refuse(
            sink, NULL, 0, 0,
            "the tensor for input %zu is not aligned to %zu bytes, as the %s backend requires",
            input, backend->alignment, backend->name);
    char *data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    plan_memory *memory = plan_memory_lent(plan->shared, data, (size_t)hlo_shape_bytes(shape));
    if (memory) memory->read_only = (flags & DLPACK_READ_ONLY) != 0;
    *out = plan_buffer_new(shape, memory);
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

/* Transfers ownership of the tensor to the buffer. */
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
            sink, NULL, 0, 0,
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
