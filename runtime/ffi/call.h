/* SPDX-License-Identifier: Apache-2.0 */
/* A call from the frame to its result, or to an error of XLA's. */
#ifndef HLO_RUNTIME_FFI_CALL_H
#define HLO_RUNTIME_FFI_CALL_H

#include "hlo/ffi.h"
#include "ir/ir.h"
#include "runtime/backend.h"
#include "runtime/ffi/frame.h"

/* A call that is being executed. */
typedef struct ffi_call {
    const ffi_frame *frame; /* checked */
    hlo_arena *arena;       /* freed with the call */
    jmp_buf *recover;       /* of the arena, for other arenas */
    hlo_module *module;     /* NULL, or freed with the call */
    int code;               /* of the error, if the call is invalid */
} ffi_call;

/* Executes a call. HLO_INVALID_INPUT: *why, a sentence that begins with a verb, is set. It may run
 * out of memory in the arena, and in other arenas that recover likewise. */
typedef hlo_status ffi_execute(ffi_call *call, const char **why);

/* Answers XLA if it asks for the function's properties, or else executes the call. Returns NULL, or
 * the error that the function returns. */
ffi_error *ffi_run(ffi_frame *frame, ffi_execute *execute);

/* Makes call->module, with the instruction that the call stands for, as the job of a backend: views
 * of all arrays, without memory. NULL: it is no call that matmul/ reads, and *why is set. */
hlo_job *ffi_call_job(ffi_call *call, const char **why);

#endif
