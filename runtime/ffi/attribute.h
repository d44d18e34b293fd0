/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of a call as text. */
#ifndef HLO_RUNTIME_FFI_ATTRIBUTE_H
#define HLO_RUNTIME_FFI_ATTRIBUTE_H

#include "ir/arena.h"
#include "runtime/ffi/abi.h"

typedef enum ffi_reader {
    FFI_FOR_READING, /* as matmul/mlir.h reads them: floats by their bits, in any locale */
    FFI_FOR_PEOPLE   /* floats in decimals, unknown values as `?`, no text of great length */
} ffi_reader;

/* Returns checked attributes as text, in their order, with commas between them. NULL: one has a
 * kind of value that matmul/mlir.h does not read, and *why, a sentence that begins with a verb, is
 * set; `why` may be NULL for people. */
const char *ffi_attributes_format(const ffi_attrs *attrs, hlo_arena *arena, ffi_reader reader,
                                  const char **why);

#endif
