/* SPDX-License-Identifier: Apache-2.0 */
/* See key.h. */
#include "runtime/ffi/key.h"

#include <string.h>

void ffi_key_append(ffi_key *key, const void *bytes, size_t size) {
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

static void append_number(ffi_key *key, int64_t number) {
    ffi_key_append(key, &number, sizeof number);
}

uint32_t ffi_alignment(const void *address) {
    enum { MOST = 256 };
    const uintptr_t bits = (uintptr_t)address | MOST;
    return (uint32_t)(bits & (~bits + 1));
}

static void append_list(ffi_key *key, const ffi_list *list) {
    append_number(key, list->count);
    for (int64_t i = 0; i < list->count; i++) {
        const ffi_buffer *buffer = ffi_buffer_at(list, i);
        append_number(key, buffer->type);
        append_number(key, ffi_alignment(buffer->data));
        append_number(key, buffer->rank);
        ffi_key_append(key, buffer->dims, (size_t)buffer->rank * sizeof *buffer->dims);
    }
}

static void append_span(ffi_key *key, const ffi_span *span) {
    append_number(key, (int64_t)span->size);
    ffi_key_append(key, span->bytes, span->size);
}

void ffi_key_append_frame(ffi_key *key, const ffi_frame *frame) {
    append_list(key, &frame->operands);
    append_list(key, &frame->results);
    for (int64_t i = 0; i < frame->attrs.count; i++) {
        append_span(key, frame->attrs.names[i]);
        /* In the form that attribute.c reads: calls with other values have no plan. */
        append_number(key, frame->attrs.kinds[i]);
        if (frame->attrs.kinds[i] == FFI_ATTR_STRING) append_span(key, frame->attrs.values[i]);
        if (frame->attrs.kinds[i] == FFI_ATTR_SCALAR) {
            const ffi_scalar *scalar = frame->attrs.values[i];
            append_number(key, scalar->type);
            ffi_key_append(key, scalar->value, ffi_type_bytes(scalar->type));
        }
        if (frame->attrs.kinds[i] == FFI_ATTR_ARRAY) {
            const ffi_array *array = frame->attrs.values[i];
            append_number(key, array->type);
            append_number(key, (int64_t)array->count);
            ffi_key_append(key, array->values, array->count * ffi_type_bytes(array->type));
        }
    }
}
