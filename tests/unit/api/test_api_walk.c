/* SPDX-License-Identifier: Apache-2.0 */
/* Traverses a module through the public API. */
#include "unit/api/api_fixture.h"

static void test_walk(void **state) {
    const fixture *f = *state;
    assert_ptr_equal(hlo_module_first_computation(f->module), f->add);
    assert_ptr_equal(hlo_computation_next(f->add), f->main);
    assert_null(hlo_computation_next(f->main));
    assert_null(hlo_module_find_computation(f->module, "sub"));
    assert_string_equal(hlo_computation_name(f->main), "main");
    assert_ptr_equal(hlo_computation_module(f->main), f->module);
    assert_ptr_equal(hlo_computation_root(f->main), f->e);
    assert_int_equal(hlo_computation_parameter_count(f->main), 2);
    assert_ptr_equal(hlo_computation_parameter(f->main, 1), f->b);
    assert_ptr_equal(hlo_computation_last(f->main), f->e);
    assert_ptr_equal(hlo_instruction_previous(f->b), f->a);
    assert_null(hlo_instruction_previous(f->a));
    assert_ptr_equal(hlo_computation_find(f->main, "r"), f->r);
    assert_null(hlo_computation_find(f->main, "x"));
    assert_string_equal(hlo_instruction_name(f->d), "d");
    assert_int_equal(hlo_instruction_opcode(f->d), HLO_OP_DOT);
    assert_ptr_equal(hlo_instruction_computation(f->d), f->main);
    assert_int_equal(hlo_instruction_operand_count(f->d), 2);
    assert_ptr_equal(hlo_instruction_operand(f->d, 1), f->b);
    assert_int_equal(hlo_instruction_parameter_number(f->b), 1);
    assert_int_equal(hlo_instruction_parameter_number(f->d), -1);
    assert_int_equal(hlo_instruction_called_count(f->r), 1);
    assert_ptr_equal(hlo_instruction_called(f->r, 0), f->add);
    assert_int_equal(hlo_instruction_called_count(f->d), 0);
}

static void test_names(void **state) {
    (void)state;
    assert_string_equal(hlo_opcode_name(HLO_OP_DOT), "dot");
    assert_null(hlo_opcode_name(HLO_OP_COUNT));
    assert_null(hlo_opcode_name(HLO_OP_INVALID));
    assert_int_equal(hlo_opcode_parse("dots"), HLO_OP_INVALID);
    assert_int_equal(hlo_opcode_parse(""), HLO_OP_INVALID);
    for (int i = 0; i < HLO_OP_COUNT; i++)
        assert_int_equal(hlo_opcode_parse(hlo_opcode_name((hlo_opcode)i)), i);
    assert_string_equal(hlo_element_type_name(HLO_TYPE_F8E4M3FN), "f8e4m3fn");
    assert_null(hlo_element_type_name(HLO_TYPE_COUNT));
    assert_null(hlo_element_type_name(HLO_TYPE_INVALID));
    assert_int_equal(hlo_element_type_parse("f33"), HLO_TYPE_INVALID);
    for (int i = 0; i < HLO_TYPE_COUNT; i++)
        assert_int_equal(hlo_element_type_parse(hlo_element_type_name((hlo_element_type)i)), i);
    assert_int_equal(hlo_element_type_bits(HLO_TYPE_S4), 4);
    assert_int_equal(hlo_element_type_bits(HLO_TYPE_C128), 128);
    assert_int_equal(hlo_element_type_bits(HLO_TYPE_TUPLE), 0);
    assert_int_equal(hlo_element_type_bits(HLO_TYPE_INVALID), 0);
}

static void test_uses(void **state) {
    const fixture *f = *state;
    size_t seen = 0, indices = 0;
    for (const hlo_use *use = hlo_instruction_first_use(f->d); use; use = hlo_use_next(use)) {
        seen++;
        if (hlo_use_instruction(use) == f->e) indices += 1 + hlo_use_index(use);
    }
    assert_int_equal(seen, 4);
    assert_int_equal(hlo_instruction_use_count(f->d), 4);
    assert_int_equal(indices, 3);
    assert_null(hlo_instruction_first_use(f->e));
}

/* Frame 1 calls frame 2, which has no file. Frames 3 and 4 call each other. */
static const char FRAMES[] =
    "HloModule m\n\nFileNames\n1 \"step.py\"\n\nFunctionNames\n1 \"f\"\n\nFileLocations\n"
    "1 {file_name_id=1 function_name_id=1 line=7 end_line=7 column=1 end_column=2}\n\n"
    "StackFrames\n1 {file_location_id=1 parent_frame_id=1}\n2 {parent_frame_id=2}\n"
    "3 {parent_frame_id=5}\n4 {parent_frame_id=4}\n\n"
    "ENTRY e {\n"
    "  a = f32[] parameter(0), metadata={stack_frame_id=1}\n"
    "  b = f32[] abs(a), metadata={stack_frame_id=2 source_file=\"x.py\"}\n"
    "  c = f32[] abs(b), metadata={stack_frame_id=3 source_file=\"x.py\" source_line=5}\n"
    "  d = f32[] abs(c), metadata={op_name=\"d\" source_file=\"y.py\"}\n"
    "  ROOT g = f32[] abs(d)\n}\n";

static void test_sources(void **state) {
    static const struct {
        const char *name, *file;
        int64_t line;
    } wanted[] = {{"a", "step.py", 7}, {"b", "step.py", 7}, {"c", "x.py", 5}, {"d", "y.py", 0}};
    (void)state;
    hlo_module *module = parse(FRAMES);
    const hlo_computation *entry = hlo_module_entry(module);
    int64_t line = 9;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        const hlo_instruction *at = hlo_computation_find(entry, wanted[i].name);
        assert_string_equal(hlo_instruction_source(at, &line), wanted[i].file);
        assert_int_equal(line, wanted[i].line);
    }
    assert_null(hlo_instruction_source(hlo_computation_root(entry), &line));
    assert_int_equal(line, 0);
    hlo_module_free(module);
}

static void test_attributes(void **state) {
    const fixture *f = *state;
    const char *value;
    size_t count;
    assert_int_equal(hlo_instruction_attribute_count(f->r), 2);
    bool named = false;
    for (size_t i = 0; i < 2; i++)
        named |= !strcmp(hlo_instruction_attribute_name(f->r, i), "to_apply");
    assert_true(named);
    assert_done(f, hlo_instruction_attribute(f->r, "to_apply", &value));
    assert_string_equal(value, "%add");
    assert_done(f, hlo_instruction_attribute(f->r, "dimensions", &value));
    assert_string_equal(value, "{1}");
    assert_done(f, hlo_instruction_attribute(f->n, "metadata", &value));
    assert_string_equal(value, "{op_name=\"jit(f)/neg\"}");
    assert_done(f, hlo_instruction_attribute(f->n, "dimensions", &value));
    assert_null(value);
    assert_done(f, hlo_instruction_attribute(f->n, "no_such", &value));
    assert_null(value);
    assert_string_equal(hlo_instruction_op_name(f->n), "jit(f)/neg");
    assert_null(hlo_instruction_op_name(f->d));
    const int64_t *dims = hlo_instruction_integers(f->r, "dimensions", &count);
    assert_int_equal(count, 1);
    assert_int_equal(dims[0], 1);
    assert_null(hlo_instruction_integers(f->r, "to_apply", &count));
    assert_int_equal(count, 0);
    const float *data = hlo_instruction_constant(f->c, &count);
    assert_int_equal(count, sizeof *data);
    assert_float_equal(*data, 3, 0);
    assert_null(hlo_instruction_constant(f->d, &count));
}

static void test_shapes(void **state) {
    const fixture *f = *state;
    const hlo_shape *shape = hlo_instruction_shape(f->a);
    char text[32];
    assert_int_equal(hlo_shape_type(shape), HLO_TYPE_F32);
    assert_int_equal(hlo_shape_rank(shape), 2);
    assert_int_equal(hlo_shape_dims(shape)[1], 8);
    assert_int_equal(hlo_shape_minor_to_major(shape)[0], 1);
    assert_int_equal(hlo_shape_element_count(shape), 0);
    assert_int_equal(hlo_shape_count(shape), 32);
    assert_int_equal(hlo_shape_bytes(shape), 128);
    assert_int_equal(hlo_shape_format(shape, true, text, sizeof text), 13);
    assert_string_equal(text, "f32[4,8]{1,0}");
    assert_true(hlo_shape_compatible(shape, hlo_instruction_shape(f->n)));
    assert_false(hlo_shape_compatible(shape, hlo_instruction_shape(f->b)));
    hlo_module *module = parse("ENTRY e { ROOT p = (f32[2], s8[3]) parameter(0) }");
    shape = hlo_instruction_shape(hlo_computation_root(hlo_module_entry(module)));
    assert_int_equal(hlo_shape_type(shape), HLO_TYPE_TUPLE);
    assert_int_equal(hlo_shape_rank(shape), 0);
    assert_int_equal(hlo_shape_element_count(shape), 2);
    assert_int_equal(hlo_shape_type(hlo_shape_element(shape, 1)), HLO_TYPE_S8);
    hlo_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_walk),       TEST(test_names),   TEST(test_uses),
        TEST(test_attributes), TEST(test_sources), TEST(test_shapes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
