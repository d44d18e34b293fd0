/* Parts of a module as text. */
#ifndef HLO_IR_TEXT_PRINT_H
#define HLO_IR_TEXT_PRINT_H

#include "ir/ir.h"

/* Writes `f32[2,3]{1,0}` (`layout`: with the layout) to `out`, cut off at `size` bytes, always
 * NUL-terminated. Returns the length of the whole text, as snprintf() does. */
size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *out, size_t size);
/* Writes a literal without its shape, `{1, 2}`, to `out`, cut off at `size` bytes, always
 * NUL-terminated. True: nothing was cut off. */
bool hlo_literal_format(const hlo_literal *literal, char *out, size_t size);

#endif
