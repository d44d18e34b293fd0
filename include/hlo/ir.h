/* SPDX-License-Identifier: Apache-2.0 */
/* Walking a module: computations, instructions, operands, users, shapes, attributes, constants.
 * edit.h changes what is found here; pass.h runs such code among the built-in passes.
 *
 * The module owns everything that these functions return: computations, instructions, uses, shapes
 * and strings are borrowed. They are valid until the module is freed or hlo_module_optimize() runs
 * over it; an instruction, until it is removed. In a pass of one's own (pass.h) they are valid
 * until the callback returns. No argument is NULL. Nothing here fails, but
 * hlo_instruction_attribute(). */
#ifndef HLO_IR_H
#define HLO_IR_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct hlo_computation hlo_computation;
typedef struct hlo_instr hlo_instruction;
/* One operand of one instruction, seen from the value that is the operand. */
typedef struct hlo_use hlo_use;
typedef struct hlo_shape hlo_shape;

/* --------------------------------------------------------------------------------- computations */

/* The computations of a module, callees before callers: the first one, and the one after; NULL
 * after the last. */
hlo_computation *hlo_module_first_computation(const hlo_module *module);
hlo_computation *hlo_computation_next(const hlo_computation *computation);
/* The computation that `ENTRY` marks. */
hlo_computation *hlo_module_entry(const hlo_module *module);
/* The computation of that name, without `%`; NULL: there is none. Visits all computations. */
hlo_computation *hlo_module_find_computation(const hlo_module *module, const char *name);

const char *hlo_computation_name(const hlo_computation *computation); /* without `%` */
hlo_module *hlo_computation_module(const hlo_computation *computation);
hlo_instruction *hlo_computation_root(const hlo_computation *computation);
size_t hlo_computation_parameter_count(const hlo_computation *computation);
/* The parameter of that number, which must be below the count. */
hlo_instruction *hlo_computation_parameter(const hlo_computation *computation, size_t number);

/* The instructions of a computation, operands before their users: the first and the last one, the
 * one after and the one before another; NULL behind either end. */
hlo_instruction *hlo_computation_first(const hlo_computation *computation);
hlo_instruction *hlo_computation_last(const hlo_computation *computation);
hlo_instruction *hlo_instruction_next(const hlo_instruction *instruction);
hlo_instruction *hlo_instruction_previous(const hlo_instruction *instruction);
/* The instruction of that name, without `%`; NULL: there is none. Visits all instructions. */
hlo_instruction *hlo_computation_find(const hlo_computation *computation, const char *name);

/* --------------------------------------------------------------------------------- instructions */

const char *hlo_instruction_name(const hlo_instruction *instruction); /* without `%` */
/* The opcode as it stands in text, "dot"; static storage. hlo_opcode_name() lists all: `index` must
 * be below the count. */
const char *hlo_instruction_opcode(const hlo_instruction *instruction);
size_t hlo_opcode_count(void);
const char *hlo_opcode_name(size_t index);
const hlo_shape *hlo_instruction_shape(const hlo_instruction *instruction);
/* The computation that has the instruction; NULL: it was removed. */
hlo_computation *hlo_instruction_computation(const hlo_instruction *instruction);

size_t hlo_instruction_operand_count(const hlo_instruction *instruction);
/* The operand at `index`, which must be below the count. */
hlo_instruction *hlo_instruction_operand(const hlo_instruction *instruction, size_t index);

/* The uses of a value as an operand, in no fixed order: one for each operand that it is. A root has
 * no use for being one. An edit of an operand invalidates uses. NULL after the last. */
const hlo_use *hlo_instruction_first_use(const hlo_instruction *instruction);
const hlo_use *hlo_use_next(const hlo_use *use);
hlo_instruction *hlo_use_instruction(const hlo_use *use); /* that has the operand */
size_t hlo_use_index(const hlo_use *use);                 /* of the operand there */
size_t hlo_instruction_use_count(const hlo_instruction *instruction);

/* The computations that an instruction calls: to_apply, calls, body, condition and the like, in the
 * order of its attributes; `index` must be below the count. */
size_t hlo_instruction_called_count(const hlo_instruction *instruction);
hlo_computation *hlo_instruction_called(const hlo_instruction *instruction, size_t index);

/* The number of a parameter; -1: the instruction is none. */
int64_t hlo_instruction_parameter_number(const hlo_instruction *instruction);
/* The elements of a constant array, dense and row-major whatever its layout, little-endian; pred
 * and integers of fewer than 8 bits take one byte each. NULL: the instruction is no constant, or a
 * tuple, or the text omits its values (`{...}`). */
const void *hlo_instruction_constant(const hlo_instruction *instruction, size_t *out_size);

/* ----------------------------------------------------------------------------------- attributes */

/* The attributes of an instruction: their names as in text, in no fixed order; `index` must be
 * below the count. An attribute that equals its default is not there. */
size_t hlo_instruction_attribute_count(const hlo_instruction *instruction);
const char *hlo_instruction_attribute_name(const hlo_instruction *instruction, size_t index);
/* Prints the value of an attribute as it stands in text behind the `=`: `{1}`, `"add"`, `%add`,
 * `{op_name="jit(f)/dot"}`. *out_value is NULL if the instruction does not have it.
 * HLO_OUT_OF_MEMORY; the module may only be freed then. */
hlo_status hlo_instruction_attribute(const hlo_instruction *instruction, const char *name,
                                     const char **out_value);
/* The numbers of an attribute that is an integer, a boolean or a list of integers: dimensions={},
 * index, slice={} (start, limit and stride of each dimension), padding (low, high and interior).
 * NULL: the instruction does not have it, or it is another kind of attribute. */
const int64_t *hlo_instruction_integers(const hlo_instruction *instruction, const char *name,
                                        size_t *out_count);
/* The op_name of the metadata; NULL: there is none. */
const char *hlo_instruction_op_name(const hlo_instruction *instruction);
/* The source file of the compiled program, and *out_line there (0: not known): of the innermost
 * stack frame, else as the metadata has them. NULL: not known. */
const char *hlo_instruction_source(const hlo_instruction *instruction, int64_t *out_line);

/* --------------------------------------------------------------------------------------- shapes */

/* The element type as it stands in text, "f8e4m3fn"; "tuple", "token" or "opaque". Static storage.
 */
const char *hlo_shape_type(const hlo_shape *shape);
/* The number of dimensions of an array; 0 for other shapes. */
size_t hlo_shape_rank(const hlo_shape *shape);
/* The dimensions of an array, `rank` of them; -1: unbounded. */
const int64_t *hlo_shape_dims(const hlo_shape *shape);
/* The physical order of the dimensions, the fastest one first, `rank` of them; NULL: none given. */
const int64_t *hlo_shape_minor_to_major(const hlo_shape *shape);
/* The elements of a tuple; 0 for other shapes. `index` must be below the count. */
size_t hlo_shape_element_count(const hlo_shape *shape);
const hlo_shape *hlo_shape_element(const hlo_shape *shape, size_t index);
/* Returns the number of elements of an array (1 for a scalar). Returns -1 for a tuple, if a
 * dimension is unbounded, and on overflow. */
int64_t hlo_shape_count(const hlo_shape *shape);
/* Sums the bytes of the elements in memory, over the leaves of a tuple; -1 on overflow. */
int64_t hlo_shape_bytes(const hlo_shape *shape);
/* True if types and dimensions are equal (through tuples); layouts are ignored. The shapes may be
 * of two modules. */
bool hlo_shape_compatible(const hlo_shape *a, const hlo_shape *b);
/* Writes `f32[2,3]{1,0}` (`layout`: with the layout) to `out`, cut off at `size` bytes, always
 * NUL-terminated (0: `out` may be NULL). Returns the length of the whole text, as snprintf() does.
 */
size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *out, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
