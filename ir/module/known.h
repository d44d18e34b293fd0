/* SPDX-License-Identifier: Apache-2.0 */
/* Elements known without running anything. */
#ifndef HLO_IR_MODULE_KNOWN_H
#define HLO_IR_MODULE_KNOWN_H

#include "ir/ir.h"

/* True for a custom call that only marks its operand with a sharding. */
bool hlo_instr_is_mark(const hlo_instr *instr);
/* True for a barrier, a mark of a sharding, and the like: the result is operand 0's. */
bool hlo_hands_on(const hlo_instr *value);
/* Returns the instruction whose result `value` is, bit for bit, passed on only by barriers, marks
 * of shardings, and tuples and reads of their elements; NULL: `value` is computed itself.
 * `out_holder`, which may be NULL: the last barrier or mark that passes it on; NULL: only tuples
 * do. */
hlo_instr *hlo_handed_on(const hlo_instr *value, const hlo_instr **out_holder);
/* True if each element of the result is an element of operand 0, or of a pad's padding value, bit
 * for bit and of one type: opcodes that move elements, but no bitcast to another type; and marks.
 */
bool hlo_instr_moves(const hlo_instr *instr);
/* True if the instruction moves elements, in a way that `kinds` has of HLO_MOVEMENT. */
bool hlo_instr_moves_by(const hlo_instr *instr, unsigned kinds);
/* Finds the number that element `index`, in row-major order of the dimensions, has for all inputs:
 * of constants and iotas, also moved, concatenated and converted, each convert rounding. False: the
 * element is not known, or no double equals it. */
bool hlo_known_element(const hlo_instr *value, int64_t index, double *out_number);
/* Finds the number that all elements have, bit for bit: 0 and -0 differ. */
bool hlo_known_number(const hlo_instr *value, double *out_number);
/* Finds that number also through pinned instructions (passes/analysis/pin.h), through which passes
 * do not read: for decoding a call, which means the same before and after pinning, and for
 * questions whose answer can only forbid something. */
bool hlo_known_number_pinned(const hlo_instr *value, double *out_number);

#endif
