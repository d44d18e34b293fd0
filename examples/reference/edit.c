/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of edit.h. */
#include "reference.h"

#include <string.h>

#include <hlo/edit.h>

/* [new] */
/* Inserts `-value` after a value, and replaces all uses of the value by it. */
static hlo_status negate(hlo_module *module, const hlo_instruction *value) {
    hlo_instruction_options options;
    const hlo_instruction *negated = NULL;
    hlo_status status;

    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_NEGATE; /* the shape is inferred */
    options.operands = &value;
    options.operand_count = 1;
    options.before = hlo_instruction_next(value);
    options.like = value; /* with the same metadata */
    status =
        hlo_instruction_new(module, hlo_instruction_computation(value), &options, &sink, &negated);
    if (status == HLO_OK) status = hlo_instruction_replace(module, value, negated, &sink);
    return status;
}
/* [new] */

/* [constant] */
/* Creates an f32[2] constant before an instruction. */
static hlo_status new_pair(hlo_module *module, const hlo_instruction *before,
                           const hlo_instruction **out) {
    static const float elements[] = {1, 2};
    static const int64_t dims[] = {2};
    return hlo_instruction_new_constant(module, hlo_instruction_computation(before), before,
                                        HLO_TYPE_F32, 1, dims, elements, &sink, out);
}
/* [constant] */

/* [parameter] */
/* Replaces an operand of an instruction of the entry computation by a new parameter. */
static hlo_status make_input(hlo_module *module, const hlo_instruction *instruction, size_t index) {
    const hlo_shape *shape = hlo_instruction_shape(hlo_instruction_operand(instruction, index));
    const hlo_instruction *parameter = NULL;
    hlo_status status = hlo_instruction_new_parameter(module, hlo_module_entry(module), shape,
                                                      "input", &sink, &parameter);
    if (status == HLO_OK)
        status = hlo_instruction_set_operand(module, instruction, index, parameter, &sink);
    return status;
}
/* [parameter] */

/* [module] */
/* Creates a module that returns twice its input, an f32[2]. */
static hlo_status new_module(hlo_module **out_module) {
    const hlo_instruction *input = NULL, *factor = NULL, *splat = NULL, *product = NULL, *root;
    const hlo_instruction *factors[2];
    const hlo_computation *entry;
    const hlo_shape *shape = NULL;
    hlo_instruction_options options;
    hlo_module *module = NULL;
    hlo_status status = hlo_module_new("twice", &sink, &module);
    *out_module = module;
    if (status != HLO_OK) return status;
    entry = hlo_module_entry(module);
    root = hlo_computation_root(entry); /* an empty tuple */
    status = hlo_shape_parse(module, "f32[2]", &sink, &shape);
    if (status == HLO_OK)
        status = hlo_instruction_new_parameter(module, entry, shape, "x", &sink, &input);
    if (status == HLO_OK)
        status = hlo_instruction_new_scalar(module, entry, NULL, HLO_TYPE_F32, 2, &sink, &factor);
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_BROADCAST;
    options.shape = shape;
    options.attributes = "dimensions={}";
    options.operands = &factor;
    options.operand_count = 1;
    if (status == HLO_OK) status = hlo_instruction_new(module, entry, &options, &sink, &splat);
    factors[0] = input;
    factors[1] = splat;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_MULTIPLY;
    options.operands = factors;
    options.operand_count = 2;
    if (status == HLO_OK) status = hlo_instruction_new(module, entry, &options, &sink, &product);
    if (status == HLO_OK) status = hlo_computation_set_root(module, entry, product, &sink);
    if (status == HLO_OK) status = hlo_instruction_remove(module, root, &sink);
    return status;
}
/* [module] */

/* [clone] */
/* Copies an instruction after itself, gives the copy a name, and moves it to the end. */
static hlo_status duplicate(hlo_module *module, const hlo_instruction *value, const char *name) {
    const hlo_instruction *copy = NULL;
    hlo_status status = hlo_instruction_clone(module, value, hlo_instruction_computation(value),
                                              hlo_instruction_next(value), NULL, &sink, &copy);
    if (status == HLO_OK) status = hlo_instruction_rename(module, copy, name, &sink);
    if (status == HLO_OK) status = hlo_instruction_move(module, copy, NULL, &sink);
    return status;
}
/* [clone] */

/* [computations] */
/* Copies a computation, moves the copy before the original, and removes it again. */
static hlo_status copy_and_remove(hlo_module *module, const hlo_computation *computation) {
    const hlo_computation *copy = NULL;
    hlo_status status = hlo_computation_clone(module, computation, "copy", &sink, &copy);
    if (status == HLO_OK) status = hlo_computation_rename(module, copy, "first", &sink);
    if (status == HLO_OK) status = hlo_computation_move(module, copy, computation, &sink);
    if (status == HLO_OK) status = hlo_computation_remove(module, copy, &sink);
    return status;
}
/* [computations] */

/* [new-computation] */
/* Creates a computation that returns its parameter, an s32. */
static hlo_status new_identity(hlo_module *module, const hlo_computation **out) {
    const hlo_instruction *input = NULL, *root;
    const hlo_shape *shape = NULL;
    hlo_status status = hlo_computation_new(module, "identity", NULL, &sink, out);
    if (status != HLO_OK) return status;
    root = hlo_computation_root(*out); /* an empty tuple */
    status = hlo_shape_parse(module, "s32[]", &sink, &shape);
    if (status == HLO_OK)
        status = hlo_instruction_new_parameter(module, *out, shape, NULL, &sink, &input);
    if (status == HLO_OK) status = hlo_computation_set_root(module, *out, input, &sink);
    if (status == HLO_OK) status = hlo_instruction_remove(module, root, &sink);
    return status;
}
/* [new-computation] */

/* [shapes] */
/* Creates the shape (f32[2,3]{1,0}, s32[]) from its parts. */
static hlo_status new_pair_shape(hlo_module *module, const hlo_shape **out) {
    static const int64_t dims[] = {2, 3};
    const hlo_shape *elements[2] = {NULL, NULL};
    hlo_status status =
        hlo_shape_new_array(module, HLO_TYPE_F32, 2, dims, NULL, &sink, &elements[0]);
    if (status == HLO_OK) status = hlo_shape_parse(module, "s32[]", &sink, &elements[1]);
    if (status == HLO_OK) status = hlo_shape_new_tuple(module, 2, elements, &sink, out);
    return status;
}
/* [shapes] */

/* [text] */
/* Adds a computation that returns the larger of two numbers, for reduce. */
static hlo_status new_maximum(hlo_module *module, const hlo_computation **out) {
    static const char text[] = "ENTRY larger { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
                               "  ROOT m = f32[] maximum(a, b) }";
    return hlo_computation_new_text(module, text, strlen(text), &sink, out);
}
/* [text] */

/* [attribute] */
/* Requests the highest precision for a dot. */
static hlo_status be_precise(hlo_module *module, const hlo_instruction *dot) {
    return hlo_instruction_set_attribute(module, dot, "operand_precision", "{highest,highest}",
                                         &sink);
}
/* [attribute] */

/* [header] */
/* Marks a module for four partitions, and donates its first parameter to the result. */
static hlo_status partition(hlo_module *module) {
    hlo_status status = hlo_module_rename(module, "partitioned", &sink);
    if (status == HLO_OK) status = hlo_module_set_attribute(module, "num_partitions", "4", &sink);
    if (status == HLO_OK)
        status = hlo_module_set_attribute(module, "input_output_alias", "{ {}: (0, {}) }", &sink);
    return status;
}
/* [header] */

/* [root] */
/* Makes an instruction the result of its computation, and removes the old root. */
static hlo_status return_only(hlo_module *module, const hlo_instruction *result) {
    const hlo_computation *computation = hlo_instruction_computation(result);
    const hlo_instruction *root = hlo_computation_root(computation);
    hlo_status status = hlo_computation_set_root(module, computation, result, &sink);
    if (status == HLO_OK) status = hlo_instruction_remove(module, root, &sink);
    return status;
}
/* [root] */

hlo_status example_edit(void) {
    const hlo_instruction *dot, *pair = NULL;
    const hlo_computation *larger = NULL, *identity = NULL;
    const hlo_shape *shape = NULL;
    hlo_module *module = NULL, *twice = NULL;
    hlo_status status = read_text(scaled, &module);
    if (status != HLO_OK) return status;
    dot = hlo_computation_find(hlo_module_entry(module), "d");
    status = negate(module, dot);
    if (status == HLO_OK) status = new_pair(module, dot, &pair);
    if (status == HLO_OK) status = new_pair_shape(module, &shape);
    if (status == HLO_OK && hlo_shape_element_count(shape) != 2) status = HLO_INTERNAL;
    if (status == HLO_OK) status = make_input(module, dot, 1);
    if (status == HLO_OK) status = new_maximum(module, &larger);
    if (status == HLO_OK) status = copy_and_remove(module, larger);
    if (status == HLO_OK) status = new_identity(module, &identity);
    if (status == HLO_OK) status = duplicate(module, dot, "again");
    if (status == HLO_OK) status = be_precise(module, dot);
    if (status == HLO_OK) status = return_only(module, dot);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, &sink);
    if (status == HLO_OK) status = new_module(&twice);
    if (status == HLO_OK) status = partition(twice);
    if (status == HLO_OK) status = hlo_module_verify(twice, NULL, &sink);
    hlo_module_free(twice);
    hlo_module_free(module);
    return status;
}
