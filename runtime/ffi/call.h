/* SPDX-License-Identifier: Apache-2.0 */
/* Executes a call from its frame to its result, or to an XLA error. `why` is a sentence that begins
 * with a verb and follows the call's text; static or in the arena. */
#ifndef HLO_RUNTIME_FFI_CALL_H
#define HLO_RUNTIME_FFI_CALL_H

#include "hlo/ffi.h"
#include "ir/ir.h"
#include "runtime/backend.h"
#include "runtime/ffi/abi.h"

/* A call that is being executed. */
typedef struct ffi_call {
    const ffi_frame *frame; /* checked */
    hlo_arena *arena;       /* freed with the call */
    jmp_buf *recover;       /* recovery point of the arena, for other arenas */
    hlo_module *module;     /* freed with the call; may be NULL */
    int code;               /* status of the error, if the call is invalid */
} ffi_call;

/* Executes a call. HLO_INVALID_INPUT, with *why set to a sentence that begins with a verb. It may
 * run out of memory in the arena, and in other arenas with the same recovery point. */
typedef hlo_status ffi_execute(ffi_call *call, const char **why);

/* Answers XLA's query for the function's properties, or executes the call. Returns NULL, or the
 * error for XLA. */
ffi_error *ffi_run(ffi_frame *frame, ffi_execute *execute);

/* Creates call->module with the call's instruction as the job of a backend: views of all arrays,
 * without memory. Returns NULL, with *why set, if matmul/ does not support the call. */
hlo_job *ffi_call_job(ffi_call *call, const char **why);

/* Builds the call of a checked frame as an instruction in the entry of the module, which must be
 * empty; its operands are parameters. Returns NULL, with *why set, if matmul/ does not support the
 * call. */
hlo_instr *ffi_frame_read(const ffi_frame *frame, hlo_module *module, const char **why);

/* Returns the bytes of an element; 0 if the type is unknown. */
size_t ffi_type_bytes(int number);

/* Returns operand or result `index` of a checked frame. */
static inline const ffi_buffer *ffi_buffer_at(const ffi_list *list, int64_t index) {
    return list->items[index];
}

#endif
