/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of ir.h. */
#include "reference.h"

#include <string.h>

#include <hlo/ir.h>

/* [computations] */
/* Prints the computations of a module, callees first. */
static void list_computations(const hlo_module *module) {
    const hlo_computation *c;
    for (c = hlo_module_first_computation(module); c; c = hlo_computation_next(c))
        printf("%s%s: %u parameters, result %s\n", hlo_computation_name(c),
               c == hlo_module_entry(module) ? " (entry)" : "",
               (unsigned)hlo_computation_parameter_count(c),
               hlo_instruction_name(hlo_computation_root(c)));
}
/* [computations] */

/* [instructions] */
/* Prints the instructions of a computation in order, and counts them in reverse order. */
static unsigned list_instructions(const hlo_computation *computation) {
    const hlo_instruction *i;
    unsigned count = 0;
    for (i = hlo_computation_first(computation); i; i = hlo_instruction_next(i)) {
        printf("%s = %s", hlo_instruction_name(i), hlo_opcode_name(hlo_instruction_opcode(i)));
        if (hlo_instruction_parameter_number(i) >= 0)
            printf(" %d", (int)hlo_instruction_parameter_number(i));
        putchar('\n');
    }
    for (i = hlo_computation_last(computation); i; i = hlo_instruction_previous(i)) count++;
    return count;
}
/* [instructions] */

/* [matmuls] */
/* Counts the matmuls of a computation. */
static unsigned count_matmuls(const hlo_computation *computation) {
    const hlo_instruction *i;
    unsigned matmuls = 0;
    for (i = hlo_computation_first(computation); i; i = hlo_instruction_next(i))
        if (hlo_instruction_is_matmul(i)) matmuls++;
    return matmuls;
}
/* [matmuls] */

/* [find] */
/* Returns an instruction by name, such as %d in %main. */
static const hlo_instruction *find(const hlo_module *module, const char *computation,
                                   const char *name) {
    const hlo_computation *c = hlo_module_find_computation(module, computation);
    return c ? hlo_computation_find(c, name) : NULL;
}
/* [find] */

/* [operands] */
/* Prints the operands of an instruction, and the computations that it calls. */
static void list_operands(const hlo_instruction *instruction) {
    size_t i;
    for (i = 0; i < hlo_instruction_operand_count(instruction); i++)
        printf("operand %s\n", hlo_instruction_name(hlo_instruction_operand(instruction, i)));
    for (i = 0; i < hlo_instruction_called_count(instruction); i++)
        printf("calls %s\n", hlo_computation_name(hlo_instruction_called(instruction, i)));
}
/* [operands] */

/* [uses] */
/* Prints the users of a value. */
static void list_uses(const hlo_instruction *value) {
    const hlo_use *use;
    printf("%s has %u uses\n", hlo_instruction_name(value),
           (unsigned)hlo_instruction_use_count(value));
    for (use = hlo_instruction_first_use(value); use; use = hlo_use_next(use))
        printf("operand %u of %s\n", (unsigned)hlo_use_index(use),
               hlo_instruction_name(hlo_use_instruction(use)));
}
/* [uses] */

/* [owner] */
/* Returns whether an instruction belongs to the entry computation of its module. */
static bool is_in_entry(const hlo_instruction *instruction) {
    const hlo_computation *c = hlo_instruction_computation(instruction);
    return c && c == hlo_module_entry(hlo_computation_module(c));
}
/* [owner] */

/* [parameter] */
static const hlo_instruction *first_input(const hlo_module *module) {
    return hlo_computation_parameter(hlo_module_entry(module), 0);
}
/* [parameter] */

/* [constant] */
/* Returns whether an instruction is an f32 scalar constant with the given value. */
static bool is_scalar(const hlo_instruction *instruction, float wanted) {
    size_t size;
    const void *elements = hlo_instruction_constant(instruction, &size);
    float value;
    if (!elements || size != sizeof value ||
        hlo_shape_type(hlo_instruction_shape(instruction)) != HLO_TYPE_F32)
        return false;
    memcpy(&value, elements, sizeof value);
    return value == wanted;
}
/* [constant] */

/* [constant-elements] */
/* Prints the elements of a constant. */
static void print_elements(const hlo_instruction *constant) {
    double real, imaginary;
    int64_t integer;
    size_t i;
    if (hlo_instruction_constant_is_splat(constant)) puts("all elements are equal");
    for (i = 0; hlo_instruction_constant_number(constant, i, &real, &imaginary); i++)
        if (hlo_instruction_constant_integer(constant, i, &integer))
            printf("%ld\n", (long)integer);
        else
            printf("%g\n", real);
}
/* [constant-elements] */

/* [module] */
/* Prints the header of a module. */
static void print_header(const hlo_module *module) {
    hlo_module_alias alias;
    const hlo_shape *result = hlo_module_result_layout(module);
    const hlo_shape *first = hlo_module_parameter_layout(module, 0);
    char text[128];
    size_t i;
    printf("%d replicas, %d partitions%s\n", (int)hlo_module_replica_count(module),
           (int)hlo_module_partition_count(module),
           hlo_module_is_scheduled(module) ? ", scheduled" : "");
    if (first && hlo_shape_format(first, true, text, sizeof text)) printf("first: %s\n", text);
    if (hlo_shape_format(result, true, text, sizeof text)) printf("result: %s\n", text);
    hlo_module_alias_init(&alias);
    for (i = 0; i < hlo_module_alias_count(module); i++)
        if (hlo_module_alias_at(module, i, &alias) == HLO_OK)
            printf("parameter %d %s be reused\n", (int)alias.parameter,
                   alias.must_alias ? "must" : "may");
}
/* [module] */

/* [attributes] */
/* Prints the attributes of an instruction as in HLO text. */
static hlo_status list_attributes(const hlo_instruction *instruction) {
    size_t i;
    for (i = 0; i < hlo_instruction_attribute_count(instruction); i++) {
        const char *name = hlo_instruction_attribute_name(instruction, i), *value = NULL;
        const hlo_status status = hlo_instruction_attribute(instruction, name, &value);
        if (status != HLO_OK) return status;
        if (value) printf("%s=%s\n", name, value);
    }
    return HLO_OK;
}
/* [attributes] */

/* [integers] */
/* Returns the only contracting dimension of the left operand of a dot, or -1. */
static int64_t contracting_dimension(const hlo_instruction *dot) {
    size_t count;
    const int64_t *dims = hlo_instruction_integers(dot, "lhs_contracting_dims", &count);
    return dims && count == 1 ? dims[0] : -1;
}
/* [integers] */

/* [metadata] */
/* Prints the place in the program from which an instruction was compiled. */
static void print_source(const hlo_instruction *instruction) {
    int64_t line;
    const char *file = hlo_instruction_source(instruction, &line);
    const char *name = hlo_instruction_op_name(instruction);
    printf("%s at %s:%d\n", name ? name : "unknown", file ? file : "unknown", (int)line);
}
/* [metadata] */

/* [shape] */
/* Prints a shape: arrays with their dimensions, tuples with their elements. */
static void print_shape(const hlo_shape *shape) {
    char text[128];
    size_t i;
    hlo_shape_format(shape, false, text, sizeof text);
    printf("%s: %d bytes\n", text, (int)hlo_shape_bytes(shape));
    for (i = 0; i < hlo_shape_rank(shape); i++)
        printf("dimension %u: %d\n", (unsigned)i, (int)hlo_shape_dims(shape)[i]);
    for (i = 0; i < hlo_shape_element_count(shape); i++) print_shape(hlo_shape_element(shape, i));
}
/* [shape] */

/* [layout] */
/* Returns whether an array is a matrix in row-major order. */
static bool is_row_major_matrix(const hlo_shape *shape) {
    const int64_t *minor_to_major = hlo_shape_minor_to_major(shape);
    return hlo_shape_rank(shape) == 2 && minor_to_major && minor_to_major[0] == 1;
}
/* [layout] */

/* [compatible] */
/* Returns whether one value can replace another. */
static bool can_replace(const hlo_instruction *a, const hlo_instruction *b) {
    return hlo_shape_compatible(hlo_instruction_shape(a), hlo_instruction_shape(b));
}
/* [compatible] */

/* [count] */
static bool is_large(const hlo_shape *shape) {
    const int64_t count = hlo_shape_count(shape); /* -1 for a tuple */
    return count < 0 || count > 1 << 20;
}
/* [count] */

/* A module whose result reuses the memory of its parameter. */
static const char donated[] = "HloModule donated, input_output_alias={ {}: (0, {}, must-alias) },"
                              " entry_computation_layout={(f32[2]{0})->f32[2]{0}}\n"
                              "ENTRY e {\n"
                              "  p = f32[2]{0} parameter(0)\n"
                              "  ROOT n = f32[2]{0} negate(p)\n"
                              "}\n";

static hlo_status example_header(void) {
    hlo_module *module = NULL;
    hlo_status status = read_text(donated, &module);
    if (status == HLO_OK) print_header(module);
    if (status == HLO_OK && hlo_module_alias_count(module) != 1) status = HLO_INTERNAL;
    hlo_module_free(module);
    return status;
}

hlo_status example_ir(void) {
    hlo_module *module = NULL;
    const hlo_instruction *dot, *zero;
    const hlo_shape *shape;
    hlo_status status = read_text(scaled, &module);
    if (status != HLO_OK) return status;
    list_computations(module);
    dot = find(module, "main", "d");
    zero = find(module, "main", "zero");
    if (!dot || !zero || list_instructions(hlo_module_entry(module)) != 11 ||
        count_matmuls(hlo_module_entry(module)) != 1)
        status = HLO_INTERNAL;
    if (status == HLO_OK) {
        shape = hlo_instruction_shape(dot);
        print_elements(zero);
        list_operands(dot);
        list_operands(find(module, "main", "amax"));
        list_uses(dot);
        print_source(dot);
        print_shape(hlo_instruction_shape(find(module, "main", "out")));
        if (!is_in_entry(dot) || contracting_dimension(dot) != 1 || !is_scalar(zero, 0) ||
            !is_row_major_matrix(shape) || is_large(shape) || !can_replace(dot, dot) ||
            hlo_instruction_parameter_number(first_input(module)) != 0)
            status = HLO_INTERNAL;
    }
    if (status == HLO_OK) status = list_attributes(dot);
    if (status == HLO_OK) status = example_header();
    hlo_module_free(module);
    return status;
}
