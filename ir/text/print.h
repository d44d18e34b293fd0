/* SPDX-License-Identifier: Apache-2.0 */
/* Prints parts of a module as text. */
#ifndef HLO_IR_TEXT_PRINT_H
#define HLO_IR_TEXT_PRINT_H

#include "ir/ir.h"

/* Writes a literal without its shape, `{1, 2}`, to `out`, truncated at `size` bytes, always
 * NUL-terminated. Returns true if it was not truncated. */
bool hlo_literal_format(const hlo_literal *literal, char *out, size_t size);

/* Returns the text of a shape, as hlo_shape_format() writes it, in the arena. */
const char *hlo_shape_copy_text(hlo_arena *arena, const hlo_shape *shape, bool layout);

#endif
