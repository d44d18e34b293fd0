/* SPDX-License-Identifier: Apache-2.0 */
/* A call as bytes that are equal for calls that share a plan. */
#ifndef HLO_RUNTIME_FFI_KEY_H
#define HLO_RUNTIME_FFI_KEY_H

#include "runtime/ffi/frame.h"

typedef struct ffi_key {
    unsigned char *bytes; /* in the arena */
    size_t size, capacity;
    hlo_arena *arena;
} ffi_key;

/* Appends bytes. */
void ffi_key_append(ffi_key *key, const void *bytes, size_t size);
/* Appends types, dimensions and attributes of a checked frame, and the alignments of its memory. */
void ffi_key_append_frame(ffi_key *key, const ffi_frame *frame);

/* Returns the alignment of an address, at most 256. */
uint32_t ffi_alignment(const void *address);

#endif
