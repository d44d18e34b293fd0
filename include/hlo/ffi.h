/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that execute `hlofp8.matmul` calls inside XLA: `hlo-fp8-opt --emit=ffi` writes such
 * calls, and XLA hands each to the function that is registered for its target and platform.
 *
 * They are in the shared library HLO_FFI_LIBRARY, which exports nothing else, and in the static
 * library. With JAX, before the call is compiled:
 *     library = ctypes.CDLL("libhlofp8_ffi.so")
 *     jax.ffi.register_ffi_target("hlofp8.matmul",
 *                                 jax.ffi.pycapsule(library.hlofp8_ffi_matmul_cpu), platform="cpu")
 * From C: XLA_FFI_Handler_Register() of XLA's xla/ffi/api/c_api.h, as `execute` of the bundle. That
 * header also has the two types that are declared here. */
#ifndef HLO_FFI_H
#define HLO_FFI_H

#ifdef __cplusplus
extern "C" {
#endif

#define HLO_FFI_LIBRARY "libhlofp8_ffi.so"
#define HLO_FFI_TARGET "hlofp8.matmul"

struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

/* Both answer XLA when it asks for their properties (the metadata extension): the version of the
 * interface, and no traits; so XLA does not record calls in command buffers.
 *
 * Both return NULL, or an error that XLA frees, whose message has the call and what is wrong with
 * it: INVALID_ARGUMENT, FAILED_PRECONDITION (no stream, no library, refused by cuBLASLt) or
 * RESOURCE_EXHAUSTED. Whatever a frame holds, as long as its sizes and pointers are true, nothing
 * else happens. (A frame without XLA's function that makes errors is not executed.)
 *
 * Any number of calls may run at a time. */

/* Executes a call on the CPU, as the cpu backend of hlo-fp8-run does, to the bit; XLA's threads
 * share the work. The workspace is not written to. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cpu(struct XLA_FFI_CallFrame *frame);

/* Enqueues a call on XLA's CUDA stream, by cuBLASLt, which works in the memory of the call's
 * workspace result. What cuBLASLt would need copies for, such as an operand with another layout
 * than the architecture takes, is an error. Plans are kept for the life of the process. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cuda(struct XLA_FFI_CallFrame *frame);

#ifdef __cplusplus
}
#endif
#endif
