/* Printing parts of a module, in the form that hlo_module_print() gives them. */
#ifndef HLO_IR_PRINT_H
#define HLO_IR_PRINT_H

#include "ir/ir.h"

/* `%name = shape opcode(operands), attributes`, without a line end. */
hlo_status hlo_instr_print(const hlo_instr *instr, FILE *out);
/* `name=value`. */
hlo_status hlo_attr_print(const hlo_attr *attr, FILE *out);

#endif
