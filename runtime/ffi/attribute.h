/* SPDX-License-Identifier: Apache-2.0 */
/* Formats the attributes of a call as text. */
#ifndef HLO_RUNTIME_FFI_ATTRIBUTE_H
#define HLO_RUNTIME_FFI_ATTRIBUTE_H

#include "ir/arena.h"
#include "runtime/ffi/abi.h"

typedef enum ffi_reader {
    FFI_FOR_READING, /* as matmul/json.h parses them: floats as bits, in any locale */
    FFI_FOR_PEOPLE   /* floats in decimal, unknown values as `?`, truncated texts */
} ffi_reader;

/* Returns checked attributes as text, in order, separated by commas. Returns NULL, with *why set to
 * a sentence that begins with a verb, if one has a kind of value that matmul/json.h does not
 * support. `why` may be NULL with FFI_FOR_PEOPLE. */
const char *ffi_attributes_format(const ffi_attrs *attrs, hlo_arena *arena, ffi_reader reader,
                                  const char **why);

#endif
