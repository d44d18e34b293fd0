/* SPDX-License-Identifier: Apache-2.0 */
/* XLA FFI handlers that execute custom calls `hlofp8.matmul` within XLA. `hlo-fp8-opt --emit=ffi`
 * writes such calls. XLA calls the handler that is registered for the target and the platform.
 *
 * The handlers are in the shared library HLO_FFI_LIBRARY, which exports nothing else, and in the
 * static library. Register them with JAX before compiling a function that contains such calls:
 *
 *     library = ctypes.CDLL("libhlofp8_ffi.so")
 *     jax.ffi.register_ffi_target("hlofp8.matmul",
 *                                 jax.ffi.pycapsule(library.hlofp8_ffi_matmul_cpu), platform="cpu")
 *
 * In C, pass a handler as `execute` of the bundle to XLA_FFI_Handler_Register(), which is declared
 * in XLA's xla/ffi/api/c_api.h. c_api.h also defines the structs that are declared below. */
#ifndef HLO_FFI_H
#define HLO_FFI_H

#ifdef __cplusplus
extern "C" {
#endif

/* The file name of the shared library with the handlers. */
#define HLO_FFI_LIBRARY "libhlofp8_ffi.so"

/* The target of the custom calls. */
#define HLO_FFI_TARGET "hlofp8.matmul"

struct XLA_FFI_CallFrame;
struct XLA_FFI_Error;

/* Properties of both handlers:
 *
 * A handler returns NULL on success. Otherwise, it returns an error that XLA owns and frees. The
 * message contains the call and the reason. The error code is INVALID_ARGUMENT, except
 * RESOURCE_EXHAUSTED if memory cannot be allocated, and FAILED_PRECONDITION if the CUDA handler
 * fails after the frame was checked, for example because there is no stream, a library is not
 * available, or cuBLASLt rejects the call.
 *
 * If XLA queries the metadata extension, a handler returns the API version and no traits.
 * Therefore, XLA does not record the calls in command buffers.
 *
 * A handler checks the contents of a frame. Pointers that are not NULL must be valid. If the frame
 * does not provide XLA's function to create errors, the handler does nothing.
 *
 * A handler may be called by several threads at the same time. */

/* Executes a call on the CPU. The results are bitwise identical to those of the cpu backend of
 * hlo-fp8-run. The work is divided among XLA's threads. The workspace is not used. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cpu(struct XLA_FFI_CallFrame *frame);

/* Enqueues a call on XLA's CUDA stream. The call is executed by cuBLASLt, in the memory of its
 * workspace result. A call for which cuBLASLt would need copies, for example because the
 * architecture does not support the layout of an operand, is an error. Plans are cached until the
 * process ends. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cuda(struct XLA_FFI_CallFrame *frame);

#ifdef __cplusplus
}
#endif
#endif
