/* SPDX-License-Identifier: Apache-2.0 */
/* Infers the shape of an instruction from its operands and attributes, or checks it. */
#ifndef HLO_IR_INFER_INFER_H
#define HLO_IR_INFER_INFER_H

#include "ir/ir.h"

/* Infers the result shape of an instruction of opcode `op` by the rule in op.def. The shape has the
 * default layout, except where XLA's inference keeps the operand's layout: for elementwise opcodes,
 * and for transpose, whose result then has the operand's bytes. Returns NULL if operands and
 * attributes do not determine the shape (GIVEN, broadcast) or violate the rule. */
const hlo_shape *hlo_infer(hlo_module *module, hlo_op op, uint32_t operand_count,
                           hlo_instruction *const *operands, uint32_t attr_count,
                           const hlo_attr *attrs, char *why, size_t why_size);
/* True if an instruction satisfies the rule of its opcode for operands, attributes, called
 * computations and shape. Layouts are not compared. If not, `why` is the reason, and *out_blamed is
 * the offset in the source of the invalid operand, or of the invalid parameter of a called
 * computation. *out_blamed is HLO_NOWHERE if the instruction itself is invalid. Allocates from
 * `scratch`, and interns shapes in the module. */
#define HLO_NOWHERE UINT32_MAX
bool hlo_infer_check(const hlo_instruction *instr, hlo_arena *scratch, char *why, size_t why_size,
                     uint32_t *out_blamed);

#endif
