/* SPDX-License-Identifier: Apache-2.0 */
/* Inspection of a module: computations, instructions, operands, uses, shapes, attributes and
 * constants. Use edit.h to change a module, and pass.h to run your code as a pass.
 *
 * The module owns all objects and strings that these functions return. They are valid until the
 * module is freed or hlo_module_optimize() succeeds for it. An instruction is also invalid after
 * it was removed, except that hlo_instruction_computation() may be called for it. In a user pass
 * (pass.h), all objects and strings are valid until the callback returns.
 *
 * Computations and instructions are const: they are handles, which only the functions of edit.h
 * change, and these require a module that is not const. A function that only has a `const
 * hlo_module *` can therefore not change the module.
 *
 * No argument may be NULL. An `index` or `number` must be less than the corresponding count. All
 * functions except hlo_instruction_attribute() always succeed. */
#ifndef HLO_IR_H
#define HLO_IR_H

#include <stddef.h>

#include "hlo/module.h"
#include "hlo/opcode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* A computation of a module. */
typedef struct hlo_computation hlo_computation;
/* An instruction of a computation. It also represents the value that it computes. */
typedef struct hlo_instruction hlo_instruction;
/* A use of a value: an operand of an instruction. */
typedef struct hlo_use hlo_use;
/* A shape: an array, a tuple, a token or an opaque value. */
typedef struct hlo_shape hlo_shape;

/* ---------------------------------------------------------------------------- module attributes */

/* Returns the number of replicas in the header of a module, or 1 if the header has none. */
int64_t hlo_module_replica_count(const hlo_module *module);

/* Returns the number of partitions in the header of a module, or 1 if the header has none. */
int64_t hlo_module_partition_count(const hlo_module *module);

/* Returns whether a module is scheduled: the instructions of a computation then run in order, and
 * passes do not change them. */
bool hlo_module_is_scheduled(const hlo_module *module);

/* Returns the shape of an entry parameter in the entry_computation_layout of the header, which has
 * the layout that callers must use. Without an entry_computation_layout, it is the shape of the
 * parameter. Returns NULL if the parameter does not exist. */
const hlo_shape *hlo_module_parameter_layout(const hlo_module *module, size_t number);

/* Returns the shape of the result in the entry_computation_layout or, without an
 * entry_computation_layout, the shape of the root of the entry computation. */
const hlo_shape *hlo_module_result_layout(const hlo_module *module);

/* A part of an entry parameter whose buffer an element of the result may or must use, from
 * input_output_alias, or any element of the result may use, from buffer_donor. Lists of indices
 * select an element in nested tuples; they are empty for an array. */
typedef struct hlo_module_alias {
    size_t struct_size; /* See status.h. */
    int64_t parameter;  /* The number of the parameter. */
    const int64_t *parameter_index;
    size_t parameter_index_size;
    const int64_t *output_index;
    size_t output_index_size;
    bool any_output; /* The alias is from buffer_donor, and `output_index` is empty. */
    bool must_alias; /* The mode is must-alias: the program depends on the alias. */
} hlo_module_alias;

/* Sets `struct_size`, and all other fields to 0, NULL or false. */
static inline void hlo_module_alias_init(hlo_module_alias *alias) {
    memset(alias, 0, sizeof *alias);
    alias->struct_size = sizeof *alias;
}

/* Returns the number of entries in the input_output_alias and the buffer_donor of the header. */
size_t hlo_module_alias_count(const hlo_module *module);

/* Stores an entry in *out_alias, which must be initialized with hlo_module_alias_init(). Its
 * pointers are borrowed from the module.
 *
 * Returns HLO_INVALID_USAGE if `index` is not less than hlo_module_alias_count() or the struct_size
 * is invalid. */
hlo_status hlo_module_alias_at(const hlo_module *module, size_t index, hlo_module_alias *out_alias);

/* --------------------------------------------------------------------------------- computations */

/* Returns the first computation of a module. Computations are ordered such that callees precede
 * their callers. */
const hlo_computation *hlo_module_first_computation(const hlo_module *module);

/* Returns the computation that follows `computation` in the module, or NULL if it is the last. */
const hlo_computation *hlo_computation_next(const hlo_computation *computation);

/* Returns the entry computation of a module. */
const hlo_computation *hlo_module_entry(const hlo_module *module);

/* Returns the computation with the given name, without `%`, or NULL if it does not exist. The time
 * is linear in the number of computations. */
const hlo_computation *hlo_module_find_computation(const hlo_module *module, const char *name);

/* Returns the name of a computation, without `%`. */
const char *hlo_computation_name(const hlo_computation *computation);

/* Returns the module that contains a computation. */
const hlo_module *hlo_computation_module(const hlo_computation *computation);

/* Returns the root instruction of a computation, whose value is the result. */
const hlo_instruction *hlo_computation_root(const hlo_computation *computation);

/* Returns the number of parameters of a computation. */
size_t hlo_computation_parameter_count(const hlo_computation *computation);

/* Returns the parameter with the given number. */
const hlo_instruction *hlo_computation_parameter(const hlo_computation *computation, size_t number);

/* Returns the first instruction of a computation. Instructions are ordered such that operands
 * precede their users. */
const hlo_instruction *hlo_computation_first(const hlo_computation *computation);

/* Returns the last instruction of a computation, which need not be the root. */
const hlo_instruction *hlo_computation_last(const hlo_computation *computation);

/* Returns the instruction that follows `instruction` in its computation, or NULL if it is the
 * last. */
const hlo_instruction *hlo_instruction_next(const hlo_instruction *instruction);

/* Returns the instruction that precedes `instruction` in its computation, or NULL if it is the
 * first. */
const hlo_instruction *hlo_instruction_previous(const hlo_instruction *instruction);

/* Returns the instruction with the given name, without `%`, in a computation, or NULL if it does
 * not exist. The time is linear in the number of instructions. */
const hlo_instruction *hlo_computation_find(const hlo_computation *computation, const char *name);

/* --------------------------------------------------------------------------------- instructions */

/* Returns the name of an instruction, without `%`. */
const char *hlo_instruction_name(const hlo_instruction *instruction);

/* Returns the opcode of an instruction. hlo_opcode_name() returns its name. */
hlo_opcode hlo_instruction_opcode(const hlo_instruction *instruction);

/* Returns whether an instruction is a matmul: one of the kinds for which hlo_module_optimize()
 * (pass.h) reports a verdict. These are dots, ragged-dots, scaled-dots and convolutions, and custom
 * calls whose target is a matmul, convolution or attention of a library. */
bool hlo_instruction_is_matmul(const hlo_instruction *instruction);

/* Returns the shape of the value of an instruction. */
const hlo_shape *hlo_instruction_shape(const hlo_instruction *instruction);

/* Returns the computation that contains an instruction, or NULL if the instruction was removed. */
const hlo_computation *hlo_instruction_computation(const hlo_instruction *instruction);

/* Returns the number of operands of an instruction. */
size_t hlo_instruction_operand_count(const hlo_instruction *instruction);

/* Returns the operand at `index`. */
const hlo_instruction *hlo_instruction_operand(const hlo_instruction *instruction, size_t index);

/* Returns the first use of a value, or NULL if it is not used. An instruction that has the value as
 * several operands has one use for each of them. The uses are in no particular order. Being the
 * root of a computation is not a use. Changes of operands invalidate uses. */
const hlo_use *hlo_instruction_first_use(const hlo_instruction *instruction);

/* Returns the next use of the same value, or NULL if there are no more. */
const hlo_use *hlo_use_next(const hlo_use *use);

/* Returns the instruction whose operand the use is. */
const hlo_instruction *hlo_use_instruction(const hlo_use *use);

/* Returns the index of the operand in the instruction. */
size_t hlo_use_index(const hlo_use *use);

/* Returns the number of uses of a value. */
size_t hlo_instruction_use_count(const hlo_instruction *instruction);

/* Returns the number of computations that an instruction calls through attributes such as to_apply,
 * calls, body and condition. */
size_t hlo_instruction_called_count(const hlo_instruction *instruction);

/* Returns a called computation. The called computations are in the order of the attributes that
 * name them (hlo_instruction_attribute_name()). */
const hlo_computation *hlo_instruction_called(const hlo_instruction *instruction, size_t index);

/* Returns the number of a parameter, or -1 if the instruction is not a parameter. */
int64_t hlo_instruction_parameter_number(const hlo_instruction *instruction);

/* Returns the elements of a constant array and stores their size in bytes in *out_size. The
 * elements are dense, little-endian and in row-major order, independent of the layout. Elements of
 * type pred and of types of fewer than 8 bits occupy one byte each. Returns NULL if the instruction
 * is not a constant, if the constant is a tuple, or if the module was parsed from text that omits
 * the elements (`{...}`). */
const void *hlo_instruction_constant(const hlo_instruction *instruction, size_t *out_size);

/* Stores the element of a constant array at a row-major index in *out_real and, for a complex type,
 * its imaginary part in *out_imaginary, which is 0 for other types and may be NULL. An integer of
 * more than 53 bits may be rounded; pred is 0 or 1. Returns false, and stores nothing, if
 * hlo_instruction_constant() returns NULL or the array has no such element. */
bool hlo_instruction_constant_number(const hlo_instruction *instruction, size_t index,
                                     double *out_real, double *out_imaginary);

/* Stores the element of a constant array of pred or integers at a row-major index in *out_value.
 * Returns false, and stores nothing, if hlo_instruction_constant() returns NULL, the array has no
 * such element, the type is not pred or an integer, or the value exceeds INT64_MAX. */
bool hlo_instruction_constant_integer(const hlo_instruction *instruction, size_t index,
                                      int64_t *out_value);

/* Returns whether all elements of a constant array have equal bits. Returns false for an array
 * without elements, and if hlo_instruction_constant() returns NULL. */
bool hlo_instruction_constant_is_splat(const hlo_instruction *instruction);

/* ----------------------------------------------------------------------------------- attributes */

/* Returns the number of attributes of an instruction. Attributes with default values are not
 * stored. */
size_t hlo_instruction_attribute_count(const hlo_instruction *instruction);

/* Returns the name of an attribute as in HLO text, or "" if the attribute is not part of HLO text
 * (proto.h). Attributes are in no particular order. */
const char *hlo_instruction_attribute_name(const hlo_instruction *instruction, size_t index);

/* Stores in *out_value the text of the attribute `name` as in HLO text, such as `{1}`, `"add"`,
 * `%add` or `{op_name="jit(f)/dot"}`, or NULL if the instruction does not have the attribute. The
 * text is borrowed from the module.
 *
 * Returns HLO_OUT_OF_MEMORY if memory cannot be allocated. Then, the module may only be freed. */
hlo_status hlo_instruction_attribute(const hlo_instruction *instruction, const char *name,
                                     const char **out_value);

/* Returns the value of an attribute that is an integer, a boolean or a list of integers, and stores
 * the number of integers in *out_count. A slice has a start, a limit and a stride for each
 * dimension; a padding has a low, a high and an interior value for each dimension. Returns NULL if
 * the instruction does not have the attribute, or if the attribute is of a different kind. */
const int64_t *hlo_instruction_integers(const hlo_instruction *instruction, const char *name,
                                        size_t *out_count);

/* Returns the op_name in the metadata of an instruction, or NULL if it has no op_name. */
const char *hlo_instruction_op_name(const hlo_instruction *instruction);

/* Returns the source file of the program from which the instruction was compiled, and stores the
 * line in *out_line, or 0 if the line is unknown. Both are those of the innermost stack frame, or
 * of the metadata if there are no stack frames. Returns NULL if the file is unknown. */
const char *hlo_instruction_source(const hlo_instruction *instruction, int64_t *out_line);

/* --------------------------------------------------------------------------------------- shapes */

/* Returns the element type of an array. For other shapes, returns HLO_TYPE_TUPLE, HLO_TYPE_TOKEN or
 * HLO_TYPE_OPAQUE. */
hlo_element_type hlo_shape_type(const hlo_shape *shape);

/* Returns the number of dimensions of an array, or 0 for other shapes. */
size_t hlo_shape_rank(const hlo_shape *shape);

/* Returns the sizes of the dimensions of an array, one for each dimension. The size of an unbounded
 * dimension is -1. */
const int64_t *hlo_shape_dims(const hlo_shape *shape);

/* Returns the layout of an array: the dimensions from the most minor to the most major, or NULL if
 * the shape has no layout. */
const int64_t *hlo_shape_minor_to_major(const hlo_shape *shape);

/* Returns the number of elements of a tuple, or 0 for other shapes. */
size_t hlo_shape_element_count(const hlo_shape *shape);

/* Returns the shape of an element of a tuple. */
const hlo_shape *hlo_shape_element(const hlo_shape *shape, size_t index);

/* Returns the number of elements of an array, which is 1 for a scalar. Returns -1 for a tuple, if a
 * dimension is unbounded, or if the number exceeds INT64_MAX. */
int64_t hlo_shape_count(const hlo_shape *shape);

/* Returns the size in bytes of the elements in memory, for a tuple summed over all arrays in it, or
 * -1 if a dimension is unbounded or the size exceeds INT64_MAX. */
int64_t hlo_shape_bytes(const hlo_shape *shape);

/* Returns whether two shapes have equal element types and dimensions. Tuples are compared element
 * by element. Layouts are ignored. The shapes may belong to different modules. */
bool hlo_shape_compatible(const hlo_shape *a, const hlo_shape *b);

/* Writes a shape to `out` as in HLO text, such as `f32[2,3]{1,0}`, or `f32[2,3]` if `layout` is
 * false. Like snprintf(), it writes at most `size` bytes including a terminating NUL, and returns
 * the length of the complete text. `out` may be NULL if `size` is 0. */
size_t hlo_shape_format(const hlo_shape *shape, bool layout, char *out, size_t size);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
