/* SPDX-License-Identifier: Apache-2.0 */
/* Creation and properties of constant values. */
#ifndef HLO_IR_FLOAT_LITERAL_H
#define HLO_IR_FLOAT_LITERAL_H

#include "ir/ir.h"

/* Creates a literal for an array of `shape` with uninitialized elements. */
hlo_literal *hlo_literal_new(hlo_module *module, const hlo_shape *shape);
/* Creates a literal for a tuple of `shape` with uninitialized elements. */
hlo_literal *hlo_literal_tuple(hlo_module *module, const hlo_shape *shape);
/* Creates a literal whose value is elided in the text, `{...}`, or in the protobuf message. */
hlo_literal *hlo_literal_elided(hlo_module *module, const hlo_shape *shape);
/* True if all elements are equal; false for tuples, elided and empty literals. */
bool hlo_literal_is_splat(const hlo_literal *literal);
/* Sets element `index`, rounded to the type (float.h). Elements are read by hlo_known_element() and
 * hlo_known_number() (ir/module/known.h). */
void hlo_literal_set_number(hlo_literal *literal, int64_t index, double value);

#endif
