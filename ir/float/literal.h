/* Constant values. */
#ifndef HLO_IR_FLOAT_LITERAL_H
#define HLO_IR_FLOAT_LITERAL_H

#include "ir/ir.h"

/* A literal for an array of `shape`; its elements are uninitialised. */
hlo_literal *hlo_literal_new(hlo_module *module, const hlo_shape *shape);
/* True if all elements have one value; false for tuples, elided and empty literals. */
bool hlo_literal_is_splat(const hlo_literal *literal);
/* Element `index` of a real or integer array as a double. For values of a module, ask
 * hlo_known_element() and hlo_known_number() (ir/module/known.h). */
double hlo_literal_number(const hlo_literal *literal, int64_t index);
/* Sets element `index`, rounded to the type (float.h). */
void hlo_literal_set_number(hlo_literal *literal, int64_t index, double value);

#endif
