/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a call that XLA passes in a frame. `why` is the rest of a sentence whose subject is the
 * call's text; the string is static or in the arena. */
#ifndef HLO_RUNTIME_FFI_CALL_H
#define HLO_RUNTIME_FFI_CALL_H

#include "hlo/ffi.h"
#include "ir/ir.h"
#include "runtime/backend.h"
#include "runtime/ffi/abi.h"

/* A call that is being executed. */
typedef struct ffi_call {
    const ffi_frame *frame; /* the call's frame, which was checked */
    hlo_arena *arena;       /* freed with the call */
    jmp_buf *recover;       /* recovery point of `arena` and of the module's arena */
    hlo_module *module;     /* freed with the call; may be NULL */
    int code;               /* status of the error, if the call is invalid */
} ffi_call;

/* Executes a call. Returns HLO_INVALID_INPUT and sets *why if the call is invalid. If memory runs
 * out in the arena, or in another arena with the same recovery point, jumps to that point. */
typedef hlo_status ffi_execute(ffi_call *call, const char **why);

/* Answers XLA's query of properties, or executes the call. Returns NULL or an error for XLA. */
ffi_error *ffi_run(ffi_frame *frame, ffi_execute *execute);

/* Creates call->module with the call's instruction. Returns a backend's job for the instruction,
 * with views of all arrays, but without memory. If matmul/ does not support the call, sets *why and
 * returns NULL. */
hlo_job *ffi_call_job(ffi_call *call, const char **why);

/* Creates the instruction of a checked frame's call in the entry computation of the module, which
 * must be empty. The instruction's operands are parameters. If matmul/ does not support the call,
 * sets *why and returns NULL. */
hlo_instruction *ffi_frame_read(const ffi_frame *frame, hlo_module *module, const char **why);

/* Returns the bytes of an element of the type with XLA's number `number`; 0 if unknown. */
size_t ffi_type_bytes(int number);

/* Returns true if `error` is NULL; otherwise frees it. The frame's api->error_free must be set. */
static inline bool ffi_good(const ffi_frame *frame, ffi_error *error) {
    ffi_error_free arguments = {.size = FFI_SIZE(ffi_error_free, error), .error = error};
    if (error) frame->api->error_free(&arguments);
    return !error;
}

/* Returns operand or result `index` of a checked frame. */
static inline const ffi_buffer *ffi_buffer_at(const ffi_list *list, int64_t index) {
    return list->items[index];
}

#endif
