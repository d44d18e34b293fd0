/* SPDX-License-Identifier: Apache-2.0 */
/* Prints parts of a module as text. */
#ifndef HLO_IR_TEXT_PRINT_H
#define HLO_IR_TEXT_PRINT_H

#include "ir/ir.h"

/* Writes a literal without its shape, `{1, 2}`, to `out`, truncated at `size` bytes, always
 * NUL-terminated. Returns true if it was not truncated. */
bool hlo_literal_format(const hlo_literal *literal, char *out, size_t size);

#endif
