/* The functions that execute `hlofp8.matmul` calls inside XLA: `hlo-fp8-opt --emit=ffi` writes such
 * calls, and XLA hands each to the function that is registered for its target and platform.
 *
 * They are in the shared library HLO_FFI_LIBRARY, which exports nothing else, and in the static
 * library. With JAX:
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

/* Executes a call on the CPU, as the cpu backend of hlo-fp8-run does, to the bit. Any number of
 * calls may run at a time; XLA's threads share the work of each. Returns NULL, or an error that XLA
 * frees: it has the call and what is wrong with it. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cpu(struct XLA_FFI_CallFrame *frame);

/* Enqueues a call on XLA's CUDA stream, by cuBLASLt, in the memory of the call's workspace result.
 * Errors as above. */
struct XLA_FFI_Error *hlofp8_ffi_matmul_cuda(struct XLA_FFI_CallFrame *frame);

#ifdef __cplusplus
}
#endif
#endif
