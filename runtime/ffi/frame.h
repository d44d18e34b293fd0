/* SPDX-License-Identifier: Apache-2.0 */
/* Call frames, which XLA passes to handlers: checked, as text, and as an instruction. */
#ifndef HLO_RUNTIME_FFI_FRAME_H
#define HLO_RUNTIME_FFI_FRAME_H

#include "ir/ir.h"
#include "runtime/ffi/abi.h"

/* `why`, here and in call.h, is a sentence that begins with a verb and follows the call's text;
 * static or in the arena. */

/* Checks the sizes and pointers of a frame, so that all of it can be read. Returns the reason if it
 * is invalid, otherwise NULL. */
const char *ffi_frame_check(const ffi_frame *frame, hlo_arena *arena);

/* Returns a checked frame as text: `(f8e4m3fn[16,32], f32[]) -> (bf16[16,48]) {beta = 0, ...}`. */
const char *ffi_frame_text(const ffi_frame *frame, hlo_arena *arena);

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
