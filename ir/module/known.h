/* SPDX-License-Identifier: Apache-2.0 */
/* Finds elements that are known without evaluation. */
#ifndef HLO_IR_MODULE_KNOWN_H
#define HLO_IR_MODULE_KNOWN_H

#include "ir/ir.h"

/* True for a custom call that only annotates its operand with a sharding. */
bool hlo_instr_is_mark(const hlo_instruction *instr);
/* True for a custom call that only annotates its operand for XLA's passes: its value is the
 * operand.
 */
bool hlo_instr_is_annotation(const hlo_instruction *instr);
/* Returns the computation that a call or fusion calls; NULL for other opcodes. */
const hlo_computation *hlo_instr_called(const hlo_instruction *instr);
/* True for a barrier, a sharding annotation, and similar instructions whose result is operand 0. */
bool hlo_hands_on(const hlo_instruction *value);
/* Follows `value` through barriers, sharding annotations, tuples and get-tuple-elements to the
 * instruction whose result it equals bit for bit. Returns NULL if `value` itself is computed. Sets
 * *out_holder (`out_holder` may be NULL) to the barrier or annotation on the path that is nearest
 * to `value`; NULL if there are only tuples. */
hlo_instruction *hlo_handed_on(const hlo_instruction *value, const hlo_instruction **out_holder);
/* True if each element of the result is, bit for bit and with the same type, an element of operand
 * 0 or the padding value of a pad. True for opcodes that move elements, except bitcasts to another
 * type, and for sharding annotations of arrays, except those at manual regions. */
bool hlo_instr_moves(const hlo_instruction *instr);
/* True if the instruction moves elements in one of the ways in `kinds`, a subset of
 * HLO_MOVEMENT. */
bool hlo_instr_moves_by(const hlo_instruction *instr, unsigned kinds);
/* Finds the number that element `index`, in row-major order, has for all inputs. Elements are known
 * from constants and iotas, also after movement, concatenation and conversion (each convert
 * rounds). Returns false if the element is unknown, or no double equals it. */
bool hlo_known_element(const hlo_instruction *value, int64_t index, double *out_number);
/* Finds the number that all elements equal bit for bit. 0 and -0 differ. */
bool hlo_known_number(const hlo_instruction *value, double *out_number);
/* Like hlo_known_number(), but also through pinned instructions (passes/analysis/pin.h), which
 * passes do not look through. Use it to decode a call, whose meaning does not depend on pins, and
 * for checks that can only forbid a rewrite. */
bool hlo_known_number_pinned(const hlo_instruction *value, double *out_number);

/* Returns the trip count of a while loop if its condition and body determine it, otherwise
 * HLO_TRIP_COUNT_UNKNOWN. The condition must compare two integers, each of which is a constant, or
 * starts at a constant and changes by a constant in each iteration. The trip count must be less
 * than 2^20. */
#define HLO_TRIP_COUNT_UNKNOWN UINT64_MAX
uint64_t hlo_while_trip_count(const hlo_instruction *loop);

#endif
