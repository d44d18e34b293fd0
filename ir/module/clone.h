/* Copying parts of one module to another. */
#ifndef HLO_IR_MODULE_CLONE_H
#define HLO_IR_MODULE_CLONE_H

#include "ir/ir.h"

/* The objects of a module and their copies in another one. */
typedef struct hlo_copier {
    hlo_module *to;
    hlo_instr **instrs;      /* copies by the original's id */
    hlo_computation **comps; /* copies by the original's id */
} hlo_copier;

/* Makes a copier without copies, in `scratch`. */
hlo_copier hlo_copier_new(hlo_module *to, const hlo_module *from, hlo_arena *scratch);
const hlo_shape *hlo_copy_shape(hlo_copier *c, const hlo_shape *shape);
/* Copies attributes; the computations and instructions that they name have copies. */
const hlo_attr *hlo_copy_attrs(hlo_copier *c, const hlo_attr *attrs, uint32_t count);
/* Copies all computations, behind those of c->to. */
void hlo_copy_computations(hlo_copier *c, const hlo_module *from);

#endif
