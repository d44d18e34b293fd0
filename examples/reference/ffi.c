/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of ffi.h. */
#include "reference.h"

#include <string.h>

#include <hlo/ffi.h>

/* [handlers] */
typedef struct XLA_FFI_Error *handler(struct XLA_FFI_CallFrame *frame);

/* A function of the caller that passes a handler to XLA_FFI_Handler_Register(). */
typedef bool register_handler(const char *target, const char *platform, handler *execute);

/* Registers the handlers of the typed custom calls with XLA. */
static bool register_handlers(register_handler *add) {
    return add(HLO_FFI_TARGET, "Host", hlofp8_ffi_matmul_cpu) &&
           add(HLO_FFI_TARGET, "CUDA", hlofp8_ffi_matmul_cuda);
}
/* [handlers] */

/* Accepts the handlers without registering them, because the example does not contain XLA. */
static bool accept(const char *target, const char *platform, handler *execute) {
    printf("%s on %s\n", target, platform);
    return execute != NULL;
}

hlo_status example_ffi(void) {
    return register_handlers(accept) ? HLO_OK : HLO_INTERNAL;
}
