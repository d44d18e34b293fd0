/* SPDX-License-Identifier: Apache-2.0 */
/* Changing a module: new instructions, parameters and computations; operands, attributes and roots
 * replaced; instructions removed.
 *
 * Everything made belongs to the module. Every function checks its arguments, and the changed
 * instruction by the rules of HLO that concern it alone. Where it refuses, the module is as before,
 * and one error or more are in the sink:
 *   HLO_INVALID_USAGE  an instruction was removed, is of another computation or module, comes after
 *                      its user, or is still used; a name that does not exist; a struct_size
 *   HLO_INVALID_INPUT  an instruction that HLO does not allow: shapes that do not fit, an attribute
 *                      that is missing, unknown or cannot be read
 *   HLO_OUT_OF_MEMORY  without an error; the module may only be freed then, unless said otherwise
 * What concerns more than one instruction is for hlo_module_verify() (module.h), which is due after
 * the last change, and which hlo_module_optimize() and hlo_plan_new() do by themselves.
 *
 * May be NULL: `sink`, and `out_...`, for a caller that needs no handle. */
#ifndef HLO_EDIT_H
#define HLO_EDIT_H

#include <string.h>

#include "hlo/ir.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A new instruction. Initialize with hlo_instruction_options_init(), then set fields. All pointers
 * are borrowed for the call. */
typedef struct hlo_instruction_options {
    size_t struct_size; /* see status.h */
    const char *opcode; /* as in text, "dot"; must be set */
    hlo_instruction *const *operands;
    size_t operand_count;
    const char *attributes; /* as in text, `lhs_contracting_dims={1}, rhs_contracting_dims={0}`.
                               Computations that they name stand before this one in the module.
                               NULL:  none */
    const char *shape;      /* as in text, "f32[2,3]{1,0}"; NULL: inferred from operands and
                               attributes, which is not possible for some opcodes (broadcast, reshape,
                               custom-call, ...) */
    const char *name; /* letters, digits, `_`, `.` and `-`, without `%`; made unique by a number.
                         NULL: the opcode */
    hlo_instruction *before; /* the instruction that the new one comes before; NULL: at the end */
    const hlo_instruction *like; /* the instruction that it replaces: metadata and frontend
                                    attributes are taken from it, and the sharding if dimensions are
                                    equal, each unless `attributes` has its own; NULL: none */
} hlo_instruction_options;

/* Sets every field to NULL or 0. */
static inline void hlo_instruction_options_init(hlo_instruction_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Makes an instruction in a computation. Parameters and constants have functions of their own,
 * below; forms like negate-start(...) are read from text alone: an async-start is made with the
 * computation that it `calls`, which no other one does. The time that it takes does not depend on
 * the size of the module, but on the distance in the computation between operands and `before`. */
hlo_status hlo_instruction_new(hlo_computation *computation, const hlo_instruction_options *options,
                               const hlo_diag_sink *sink, hlo_instruction **out_instruction);

/* Makes a constant array before `before` (NULL: at the end) of `rank` dimensions. `type` is as in
 * text, "f32"; `data` as hlo_instruction_constant() returns it, copied; NULL: zeros. */
hlo_status hlo_instruction_new_constant(hlo_computation *computation, hlo_instruction *before,
                                        const char *type, size_t rank, const int64_t *dims,
                                        const void *data, const hlo_diag_sink *sink,
                                        hlo_instruction **out_instruction);

/* Makes a parameter of a computation, behind its other ones in number. `shape` is as in text,
 * `name` as in hlo_instruction_options (NULL: "parameter"). The entry's layout gets it as well. Of
 * another computation, the instructions that call it need another operand, which
 * hlo_module_verify() demands. */
hlo_status hlo_instruction_new_parameter(hlo_computation *computation, const char *shape,
                                         const char *name, const hlo_diag_sink *sink,
                                         hlo_instruction **out_instruction);

/* Reads computations from a text, a module of its own, and adds them in front of the others, so
 * that all of these may call them. *out_computation is the one that `ENTRY` marks there; names are
 * made unique. The text has no tables of stack frames. */
hlo_status hlo_computation_new_text(hlo_module *module, const char *text, size_t size,
                                    const hlo_diag_sink *sink, hlo_computation **out_computation);

/* Replaces every use of `from` by `to`, and the root if it is `from`; uses by `to` itself stay.
 * Both are of one computation and have compatible shapes (hlo_shape_compatible()), and `to` comes
 * before the users of `from`. `from` stays where it is, without uses. */
hlo_status hlo_instruction_replace(hlo_instruction *from, hlo_instruction *to,
                                   const hlo_diag_sink *sink);

/* Replaces the operand at `index`. `operand` comes before the instruction. */
hlo_status hlo_instruction_set_operand(hlo_instruction *instruction, size_t index,
                                       hlo_instruction *operand, const hlo_diag_sink *sink);

/* Sets or replaces an attribute; `value` as it stands in text behind the `=`; NULL: the attribute
 * is removed, if it is there. */
hlo_status hlo_instruction_set_attribute(hlo_instruction *instruction, const char *name,
                                         const char *value, const hlo_diag_sink *sink);

/* Makes another instruction of the computation its root. The entry's layout gets its shape. */
hlo_status hlo_computation_replace_root(hlo_computation *computation, hlo_instruction *root,
                                        const hlo_diag_sink *sink);

/* Removes an instruction that nothing uses, that is no root, no parameter and no control
 * predecessor. The handle stays good for hlo_instruction_computation(), which is NULL then, and for
 * being refused by the functions above. */
hlo_status hlo_instruction_remove(hlo_instruction *instruction, const hlo_diag_sink *sink);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
