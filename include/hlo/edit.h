/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that change a module: they create instructions, parameters and computations, replace
 * operands, uses, attributes and roots, and remove instructions.
 *
 * The first argument of each function is the module that is changed; all instructions and
 * computations in the other arguments must belong to it. The module owns all objects that are
 * created here. Every function checks its arguments, and whether the new or changed instruction is
 * valid HLO by itself. Pointers are not checked: they must be valid, and may be NULL only where a
 * comment allows it. If a check fails, the function does not change the module, reports at least
 * one error to `sink`, and returns a status:
 *
 * HLO_INVALID_USAGE if an argument is not as the function requires. For example, an instruction was
 * removed, belongs to a different computation or module, does not precede its users, or is still
 * used, or an opcode or an element type does not exist.
 *
 * HLO_INVALID_INPUT if the instruction would not be valid HLO, because shapes do not match, or
 * because an attribute is missing or cannot be parsed.
 *
 * If memory cannot be allocated, the function returns HLO_OUT_OF_MEMORY without an error in `sink`.
 * Then, the module may only be freed.
 *
 * Properties that involve several instructions are not checked. Call hlo_module_verify() (module.h)
 * after the last change to check them. hlo_module_optimize() and hlo_plan_new() do this themselves.
 *
 * `sink` may be NULL. `out_instruction` and `out_computation` may be NULL if the caller does not
 * need the object.
 *
 * The name of a module, a computation or an instruction consists of letters, digits, `_`, `.` and
 * `-`. It begins with a letter or `_`, but not with `__`, except for `__xla_`. It must not be an
 * element type, such as `f32`. The name of a module must also not be a keyword of HLO text, such as
 * `ENTRY` or `true`. */
#ifndef HLO_EDIT_H
#define HLO_EDIT_H

#include <string.h>

#include "hlo/ir.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* -------------------------------------------------------------------------------------- modules */

/* Creates a module whose entry computation "main" has one instruction, its root, an empty tuple.
 * `name` is the name of the module. The caller must free *out_module with hlo_module_free(). */
hlo_status hlo_module_new(const char *name, const hlo_diag_sink *sink, hlo_module **out_module);

/* Renames a module. */
hlo_status hlo_module_rename(hlo_module *module, const char *name, const hlo_diag_sink *sink);

/* Sets the attribute with the given name in the header of a module to `value`, which is the text
 * that follows the `=` in HLO text and must be a single value. If `value` is NULL, the attribute is
 * removed if it exists. Examples are `num_partitions` and `4`, `input_output_alias` and
 * `{ {}: (0, {}, must-alias) }`, and `frontend_attributes` and `{key="value"}`. Whether the value
 * fits the parameters and the result of the module is not checked. */
hlo_status hlo_module_set_attribute(hlo_module *module, const char *name, const char *value,
                                    const hlo_diag_sink *sink);

/* --------------------------------------------------------------------------------------- shapes */

/* Creates the shape of an array of `rank` dimensions of the sizes `dims`. `minor_to_major` is the
 * layout: the dimensions from the most minor to the most major, or NULL for the default layout,
 * {rank-1,...,1,0}. The shape is borrowed from the module. */
hlo_status hlo_shape_new_array(hlo_module *module, hlo_element_type type, size_t rank,
                               const int64_t *dims, const int64_t *minor_to_major,
                               const hlo_diag_sink *sink, const hlo_shape **out_shape);

/* Creates the shape of a tuple of `count` elements, whose shapes may belong to any module. The
 * shape is borrowed from the module. Tuples may be nested 200 times, and may have at most 1048576
 * arrays and tuples. */
hlo_status hlo_shape_new_tuple(hlo_module *module, size_t count, const hlo_shape *const *elements,
                               const hlo_diag_sink *sink, const hlo_shape **out_shape);

/* Parses a shape in the notation of HLO text, such as "f32[2,<=3]{1,0}", "(f32[], s32[2])" or
 * "token[]". An array without a layout gets the default layout. The shape is borrowed from the
 * module. */
hlo_status hlo_shape_parse(hlo_module *module, const char *text, const hlo_diag_sink *sink,
                           const hlo_shape **out_shape);

/* --------------------------------------------------------------------------------- instructions */

/* The properties of a new instruction. Initialize them with hlo_instruction_options_init(), then
 * set fields. All pointers are borrowed for the duration of the call. */
typedef struct hlo_instruction_options {
    size_t struct_size; /* See status.h. */
    hlo_opcode opcode;  /* Required. */
    /* An array of `operand_count` operands. */
    const hlo_instruction *const *operands;
    size_t operand_count;
    /* Attributes as in HLO text, such as `lhs_contracting_dims={1}, rhs_contracting_dims={0}`, or
     * NULL for none. The computations that they name must precede the computation of the new
     * instruction in the module. */
    const char *attributes;
    /* The shape, which may belong to any module, or NULL to infer it from the operands and the
     * attributes. Inference is not possible for some opcodes, such as broadcast, reshape and
     * custom-call. */
    const hlo_shape *shape;
    /* The name without `%`, or NULL to use the opcode. A number is appended if the name is already
     * used. */
    const char *name;
    /* The instruction before which the new instruction is inserted, or NULL to append it to the
     * computation. */
    const hlo_instruction *before;
    /* The instruction that the new instruction will replace, or NULL. The new instruction inherits
     * the metadata and frontend attributes of `like`, and its sharding if the dimensions are equal,
     * except for attributes that `attributes` contains. */
    const hlo_instruction *like;
} hlo_instruction_options;

/* Sets `struct_size`, `opcode` to HLO_OP_INVALID, and all other fields to NULL or 0. */
static inline void hlo_instruction_options_init(hlo_instruction_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->opcode = HLO_OP_INVALID;
}

/* Creates an instruction in `computation`.
 *
 * Parameters and constants must be created with the functions below. The notation
 * `negate-start(...)` of asynchronous operations is only available in text; create an async-start
 * with the computation that it calls, which no other instruction may call.
 *
 * Unless `attributes` names control predecessors, the time depends on the number of computations in
 * the module, and on the distance between the operands and `before`, but not on the number of
 * instructions. */
hlo_status hlo_instruction_new(hlo_module *module, const hlo_computation *computation,
                               const hlo_instruction_options *options, const hlo_diag_sink *sink,
                               const hlo_instruction **out_instruction);

/* Creates a constant array in `computation` before the instruction `before`, or at the end if
 * `before` is NULL. `dims` are the sizes
 * of `rank` dimensions. `data` are the elements in the format of hlo_instruction_constant(); they
 * are copied. If `data` is NULL, all elements are zero. */
hlo_status hlo_instruction_new_constant(hlo_module *module, const hlo_computation *computation,
                                        const hlo_instruction *before, hlo_element_type type,
                                        size_t rank, const int64_t *dims, const void *data,
                                        const hlo_diag_sink *sink,
                                        const hlo_instruction **out_instruction);

/* Creates a scalar constant in `computation` before the instruction `before`, or at the end if
 * `before` is NULL. `value` is rounded to the element type. Complex types are not supported. */
hlo_status hlo_instruction_new_scalar(hlo_module *module, const hlo_computation *computation,
                                      const hlo_instruction *before, hlo_element_type type,
                                      double value, const hlo_diag_sink *sink,
                                      const hlo_instruction **out_instruction);

/* Copies an instruction of the module, with its attributes except control predecessors, to
 * `computation`, before the instruction `before`, or to the end if `before` is NULL. `operands` is
 * an array with an operand for each operand of `instruction`, or NULL to use the same operands. The
 * shape of the copy is that of `instruction`. Parameters cannot be copied. Computations that
 * `instruction` calls must precede `computation`. */
hlo_status hlo_instruction_clone(hlo_module *module, const hlo_instruction *instruction,
                                 const hlo_computation *computation, const hlo_instruction *before,
                                 const hlo_instruction *const *operands, const hlo_diag_sink *sink,
                                 const hlo_instruction **out_instruction);

/* Moves an instruction within its computation, before the instruction `before`, or to the end if
 * `before` is NULL. It must still follow its operands and control predecessors, and precede its
 * users and the instructions of which it is a control predecessor. */
hlo_status hlo_instruction_move(hlo_module *module, const hlo_instruction *instruction,
                                const hlo_instruction *before, const hlo_diag_sink *sink);

/* Renames an instruction. `name` is a name as in hlo_instruction_options: a number is appended if
 * it is already used. */
hlo_status hlo_instruction_rename(hlo_module *module, const hlo_instruction *instruction,
                                  const char *name, const hlo_diag_sink *sink);

/* Adds a parameter to `computation` after its other parameters. `shape` may belong to any
 * module. `name` is a name as in hlo_instruction_options, or NULL for "parameter".
 *
 * If the computation is the entry, its layout is extended. Otherwise, each caller of the
 * computation needs an additional operand. Until all callers have it, hlo_module_verify() rejects
 * the module. */
hlo_status hlo_instruction_new_parameter(hlo_module *module, const hlo_computation *computation,
                                         const hlo_shape *shape, const char *name,
                                         const hlo_diag_sink *sink,
                                         const hlo_instruction **out_instruction);

/* Removes a computation that no instruction calls and that is not the entry computation.
 * Afterwards, hlo_instruction_computation() returns NULL for its instructions, and the functions of
 * this header reject them and the computation with HLO_INVALID_USAGE. */
hlo_status hlo_computation_remove(hlo_module *module, const hlo_computation *computation,
                                  const hlo_diag_sink *sink);

/* Creates a computation whose only instruction is its root, an empty tuple, before the computation
 * `before`, or before all others if `before` is NULL. Add instructions, call
 * hlo_computation_set_root(), and remove the tuple. `name` is a name as in hlo_instruction_options,
 * or NULL for "computation". */
hlo_status hlo_computation_new(hlo_module *module, const char *name, const hlo_computation *before,
                               const hlo_diag_sink *sink, const hlo_computation **out_computation);

/* Copies a computation. The copy follows the original, and calls the same computations. `name` is a
 * name as in hlo_instruction_options, or NULL to use that of the original. */
hlo_status hlo_computation_clone(hlo_module *module, const hlo_computation *computation,
                                 const char *name, const hlo_diag_sink *sink,
                                 const hlo_computation **out_computation);

/* Moves a computation before the computation `before`, or to the end if `before` is NULL. It must
 * still follow the computations that it calls, and precede those that call it. */
hlo_status hlo_computation_move(hlo_module *module, const hlo_computation *computation,
                                const hlo_computation *before, const hlo_diag_sink *sink);

/* Renames a computation. `name` is a name as in hlo_instruction_options: a number is appended if it
 * is already used. */
hlo_status hlo_computation_rename(hlo_module *module, const hlo_computation *computation,
                                  const char *name, const hlo_diag_sink *sink);

/* Adds the computations of a module that is given as `size` bytes of HLO text. They are inserted
 * before all other computations of `module`, which may therefore call them. Their names are changed
 * if they are already used. *out_computation is the entry computation of the text. The text must
 * not contain tables of stack frames. */
hlo_status hlo_computation_new_text(hlo_module *module, const char *text, size_t size,
                                    const hlo_diag_sink *sink,
                                    const hlo_computation **out_computation);

/* Replaces all uses of `from` by `to`, except uses in `to` itself. If `from` is the root of the
 * computation, `to` becomes the root. Both must belong to the same computation and have compatible
 * shapes (hlo_shape_compatible()), and `to` must precede all users of `from`. `from` remains in the
 * computation without uses. */
hlo_status hlo_instruction_replace(hlo_module *module, const hlo_instruction *from,
                                   const hlo_instruction *to, const hlo_diag_sink *sink);

/* Replaces the operand of `instruction` at `index`, which must be less than the number of operands.
 * `operand` must precede `instruction`. */
hlo_status hlo_instruction_set_operand(hlo_module *module, const hlo_instruction *instruction,
                                       size_t index, const hlo_instruction *operand,
                                       const hlo_diag_sink *sink);

/* Sets the attribute with the given name to `value`, which is the text that follows the `=` in HLO
 * text and must be a single value. If `value` is NULL, the attribute is removed if it exists. */
hlo_status hlo_instruction_set_attribute(hlo_module *module, const hlo_instruction *instruction,
                                         const char *name, const char *value,
                                         const hlo_diag_sink *sink);

/* Makes `root`, an instruction of `computation`, the root of the computation. If the computation is
 * the entry, its layout is updated. */
hlo_status hlo_computation_set_root(hlo_module *module, const hlo_computation *computation,
                                    const hlo_instruction *root, const hlo_diag_sink *sink);

/* Removes an instruction from its computation. The instruction must not be used, and must not be a
 * root, a parameter or a control predecessor. Afterwards, hlo_instruction_computation() returns
 * NULL for it, and the functions above reject it with HLO_INVALID_USAGE. */
hlo_status hlo_instruction_remove(hlo_module *module, const hlo_instruction *instruction,
                                  const hlo_diag_sink *sink);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
