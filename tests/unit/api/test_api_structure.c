/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the functions that create, copy, move, rename and remove instructions and computations, and
 * the getters of module attributes and constants. */
#include "hlo/pass.h"
#include "unit/api/api_fixture.h"

/* Checks that an edit was rejected with an error that contains `part`. */
static void assert_refused(fixture *f, hlo_status found, const char *part) {
    assert_int_equal(found, HLO_INVALID_USAGE);
    assert_int_equal(f->errors, 1);
    if (!strstr(f->said, part)) fail_msg("'%s' does not say '%s'", f->said, part);
    f->errors = 0;
}

/* Builds `main(p) = add(p, p)` and a caller of it without any text. */
static void test_build(void **state) {
    fixture *f = *state;
    hlo_module *module;
    const hlo_computation *main, *twice;
    const hlo_instruction *p, *sum, *call, *scalar, *tuple;
    const hlo_shape *shape;
    const int64_t dims[] = {2, 3}, order[] = {0, 1};
    assert_done(f, hlo_module_new("built", &f->sink, &module));
    assert_string_equal(hlo_module_name(module), "built");
    main = hlo_module_entry(module);
    tuple = hlo_computation_root(main);
    assert_int_equal(hlo_instruction_opcode(tuple), HLO_OP_TUPLE);
    assert_done(f, hlo_shape_new_array(module, HLO_TYPE_F32, 2, dims, order, &f->sink, &shape));
    assert_done(f, hlo_computation_new(module, "twice", NULL, &f->sink, &twice));
    assert_ptr_equal(hlo_module_first_computation(module), twice);
    assert_done(f, hlo_instruction_new_parameter(module, twice, shape, "p", &f->sink, &p));
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    const hlo_instruction *pair[] = {p, p};
    options.opcode = HLO_OP_ADD;
    options.operands = pair;
    options.operand_count = 2;
    assert_done(f, hlo_instruction_new(module, twice, &options, &f->sink, &sum));
    const hlo_instruction *unused = hlo_computation_root(twice);
    assert_done(f, hlo_computation_set_root(module, twice, sum, &f->sink));
    assert_done(f, hlo_instruction_remove(module, unused, &f->sink));
    assert_done(f, hlo_instruction_new_parameter(module, main, shape, "a", &f->sink, &p));
    options.opcode = HLO_OP_CALL;
    options.operands = &p;
    options.operand_count = 1;
    options.attributes = "to_apply=%twice";
    assert_done(f, hlo_instruction_new(module, main, &options, &f->sink, &call));
    assert_done(
        f, hlo_instruction_new_scalar(module, main, NULL, HLO_TYPE_BF16, 1.5, &f->sink, &scalar));
    assert_done(f, hlo_computation_set_root(module, main, call, &f->sink));
    assert_done(f, hlo_instruction_remove(module, tuple, &f->sink));
    assert_done(f, hlo_module_verify(module, NULL, &f->sink));
    double value;
    assert_true(hlo_instruction_constant_number(scalar, 0, &value, NULL));
    assert_float_equal(value, 1.5, 0);
    assert_int_equal(hlo_module_optimize(module, NULL, NULL), HLO_OK);
    hlo_module_free(module);
    assert_refused(f, hlo_module_new("a b", &f->sink, &module), "invalid module name 'a b'");
    assert_null(module);
    assert_refused(f, hlo_module_new(NULL, &f->sink, &module), "invalid module name ''");
    assert_refused(f, hlo_computation_new(f->module, "f32", NULL, &f->sink, NULL), "invalid name");
    assert_refused(
        f, hlo_instruction_new_scalar(f->module, f->main, NULL, HLO_TYPE_C64, 1, &f->sink, NULL),
        "complex");
    assert_refused(
        f, hlo_instruction_new_scalar(f->module, f->main, NULL, HLO_TYPE_TOKEN, 1, &f->sink, NULL),
        "does not exist");
}

static void test_shapes(void **state) {
    fixture *f = *state;
    const int64_t dims[] = {2, 3}, wrong[] = {-1, 3}, order[] = {0, 0};
    const hlo_shape *shape, *parts[3];
    char text[64];
    assert_done(f, hlo_shape_new_array(f->module, HLO_TYPE_S4, 0, NULL, NULL, NULL, &parts[0]));
    assert_done(f, hlo_shape_parse(f->module, "token[]", NULL, &parts[1]));
    parts[2] = hlo_instruction_shape(f->a);
    assert_done(f, hlo_shape_new_tuple(f->module, 3, parts, NULL, &shape));
    hlo_shape_format(shape, true, text, sizeof text);
    assert_string_equal(text, "(s4[], token[], f32[4,8]{1,0})");
    assert_ptr_equal(shape_of(f->module, text), shape);
    hlo_module *other = parse(TEXT);
    assert_done(f, hlo_shape_new_tuple(other, 3, parts, NULL, &shape));
    assert_done(f, hlo_shape_new_tuple(other, 0, NULL, NULL, &shape));
    assert_int_equal(hlo_shape_element_count(shape), 0);
    hlo_module_free(other);
    assert_refused(f,
                   hlo_shape_new_array(f->module, HLO_TYPE_TUPLE, 0, NULL, NULL, &f->sink, &shape),
                   "does not exist");
    assert_null(shape);
    assert_refused(f,
                   hlo_shape_new_array(f->module, HLO_TYPE_F32, 2, wrong, NULL, &f->sink, &shape),
                   "dimension 0 is -1");
    assert_refused(f,
                   hlo_shape_new_array(f->module, HLO_TYPE_F32, 2, dims, order, &f->sink, &shape),
                   "not a permutation");
    assert_refused(f,
                   hlo_shape_new_array(f->module, HLO_TYPE_F32, 99, dims, NULL, &f->sink, &shape),
                   "99 dimensions");
    assert_refused(f, hlo_shape_new_array(f->module, HLO_TYPE_F32, 2, NULL, NULL, &f->sink, &shape),
                   "must not be NULL");
    parts[1] = NULL;
    assert_refused(f, hlo_shape_new_tuple(f->module, 3, parts, &f->sink, &shape), "element 1");
    static const char *const malformed[][2] = {
        {"", "invalid shape ''"},
        {"f32[", "invalid shape 'f32[': this '[' is never closed"},
        {"f33[2]", "invalid shape 'f33[2]': unknown element type 'f33'; did you mean 'f32'?"},
        {"f32[2] x", "invalid shape 'f32[2] x'"},
        {"f32[2]//", "invalid shape 'f32[2]//'"},
        {"f32[2] parameter(0), sharding={replicated} //",
         "invalid shape 'f32[2] parameter(0), sharding={replicated} //'"},
        {"f32[2] parameter(0), metadata={op_name=\"", NULL},
        {"f32[2] parameter(0) /*", NULL},
        {"f32[] constant(1) b = f32[]", NULL},
    };
    for (size_t i = 0; i < sizeof malformed / sizeof *malformed; i++) {
        assert_int_equal(hlo_shape_parse(f->module, malformed[i][0], &f->sink, &shape),
                         HLO_INVALID_INPUT);
        assert_null(shape);
        if (malformed[i][1]) assert_string_equal(f->said, malformed[i][1]);
    }
    f->errors = 0;
    assert_done(f, hlo_shape_parse(f->module, "(f32[2], /*index=1*/f32[])", &f->sink, &shape));
    assert_int_equal(f->errors, 0);
    for (int i = 0; i < 250; i++)
        if (hlo_shape_new_tuple(f->module, 1, &parts[0], NULL, &parts[0]) != HLO_OK) return;
    fail_msg("tuples nest without a limit");
}

/* A tuple that repeats its elements would grow exponentially. */
static void test_shared_elements(void **state) {
    fixture *f = *state;
    const hlo_shape *shape = hlo_instruction_shape(f->a);
    hlo_status status = HLO_OK;
    int levels = 0;
    for (; levels < 40 && status == HLO_OK; levels++) {
        const hlo_shape *pair[] = {shape, shape};
        status = hlo_shape_new_tuple(f->module, 2, pair, &f->sink, &shape);
    }
    assert_int_equal(levels, 20); /* 2^20 - 1 arrays and tuples are the most */
    assert_refused(f, status, "the tuple has more than 1048576 arrays and tuples");
}

static void test_header(void **state) {
    fixture *f = *state;
    static const char *const set[][2] = {
        {"num_partitions", "4"},
        {"replica_count", "2"},
        {"input_output_alias", "{ {}: (0, {}, may-alias) }"},
        {"buffer_donor", "{ (1, {}) }"},
        {"frontend_attributes", "{key=\"// a value\"}"},
        {"entry_computation_layout", "{(f32[4,8]{0,1}, f32[8,2]{1,0})->f32[4,8]{0,1}}"},
        {"is_scheduled", "true"},
    };
    static const struct {
        const char *name, *value, *says;
        hlo_status status;
    } refused[] = {
        {"num_partition", "4", "unknown attribute 'num_partition'; did you mean 'num_partitions'?",
         HLO_INVALID_USAGE},
        {"num_partitions", "x", "invalid value of 'num_partitions': ", HLO_INVALID_INPUT},
        {"num_partitions", "", "invalid value of 'num_partitions'", HLO_INVALID_INPUT},
        {"num_partitions", "4, replica_count=2", "invalid value of 'num_partitions'",
         HLO_INVALID_INPUT},
        {"num_partitions", "4 //", "invalid value of 'num_partitions'", HLO_INVALID_INPUT},
        {"num_partitions", "4\n\nc { p = f32[] parameter(0) }", "invalid value", HLO_INVALID_INPUT},
        {"num_partitions", "4\n\nFileNames\n1 \"f\"\n", "invalid value", HLO_INVALID_INPUT},
        {"num_partitions", "4\n\nHloModule n, num_partitions=3", "invalid value",
         HLO_INVALID_INPUT},
        {"dimensions", "{0}", "invalid value of 'dimensions'", HLO_INVALID_INPUT},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        f->errors = 0;
        assert_int_equal(
            hlo_module_set_attribute(f->module, refused[i].name, refused[i].value, &f->sink),
            refused[i].status);
        assert_int_equal(f->errors, 1);
        if (!strstr(f->said, refused[i].says)) fail_msg("%s", f->said);
    }
    f->errors = 0;
    assert_int_equal(hlo_module_partition_count(f->module), 1);
    assert_done(f, hlo_computation_set_root(f->module, f->main, f->n, &f->sink));
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        char text[128];
        assert_done(f, hlo_module_set_attribute(f->module, set[i][0], set[i][1], &f->sink));
        snprintf(text, sizeof text, "%s=%s", set[i][0], set[i][1]);
        assert_sound(f, text);
    }
    assert_int_equal(hlo_module_partition_count(f->module), 4);
    assert_int_equal(hlo_module_replica_count(f->module), 2);
    assert_int_equal(hlo_module_alias_count(f->module), 2);
    assert_true(hlo_module_is_scheduled(f->module));
    assert_int_equal(hlo_shape_minor_to_major(hlo_module_parameter_layout(f->module, 0))[0], 0);
    assert_done(f, hlo_module_set_attribute(f->module, "num_partitions", "1", &f->sink));
    assert_done(f, hlo_module_set_attribute(f->module, "is_scheduled", NULL, &f->sink));
    assert_done(f, hlo_module_set_attribute(f->module, "is_scheduled", NULL, &f->sink));
    assert_int_equal(hlo_module_partition_count(f->module), 1);
    assert_false(hlo_module_is_scheduled(f->module));
    assert_sound(f, "replica_count=2");
    /* hlo_module_verify() checks whether a value fits the module. */
    assert_done(
        f, hlo_module_set_attribute(f->module, "input_output_alias", "{ {}: (9, {}) }", &f->sink));
    assert_int_equal(hlo_module_verify(f->module, NULL, &f->sink), HLO_INVALID_INPUT);
}

static void test_module_names(void **state) {
    fixture *f = *state;
    static const char *const keywords[] = {"ENTRY", "ROOT",   "HloModule", "true",
                                           "nan",   "manual", "FileNames"};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        hlo_module *module = f->module;
        assert_refused(f, hlo_module_new(keywords[i], &f->sink, &module), "a keyword of HLO text");
        assert_null(module);
        assert_refused(f, hlo_module_rename(f->module, keywords[i], &f->sink),
                       "a keyword of HLO text");
        assert_done(f, hlo_instruction_rename(f->module, f->a, keywords[i], &f->sink));
        assert_sound(f, keywords[i]); /* printed after `%` */
    }
    assert_refused(f, hlo_module_rename(f->module, "f32", &f->sink), "invalid module name 'f32'");
    assert_refused(f, hlo_module_rename(f->module, NULL, &f->sink), "invalid module name ''");
    assert_done(f, hlo_module_rename(f->module, "renamed.1", &f->sink));
    assert_sound(f, "HloModule renamed.1, ");
}

static void test_clone(void **state) {
    fixture *f = *state;
    const hlo_instruction *made, *operands[] = {f->n, f->n};
    const hlo_computation *copy;
    assert_done(f, hlo_instruction_clone(f->module, f->d, f->main, f->late, NULL, &f->sink, &made));
    assert_ptr_equal(hlo_instruction_next(made), f->late);
    assert_string_equal(hlo_instruction_name(made), "d.1");
    assert_ptr_equal(hlo_instruction_operand(made, 1), f->b);
    assert_done(f, hlo_computation_clone(f->module, f->main, NULL, &f->sink, &copy));
    assert_string_equal(hlo_computation_name(copy), "main.1");
    assert_ptr_equal(hlo_computation_next(f->main), copy);
    assert_ptr_equal(hlo_instruction_called(hlo_computation_find(copy, "r.1"), 0), f->add);
    const hlo_instruction *first = hlo_computation_parameter(copy, 0);
    assert_done(f, hlo_instruction_clone(f->module, f->n, copy, NULL, &first, &f->sink, &made));
    assert_string_equal(hlo_instruction_op_name(made), "jit(f)/neg");
    assert_sound(f, "%main.1 (a.1: f32[4,8], b.1: f32[8,2])");
    /* The shape of the copy does not fit its operands. */
    assert_int_equal(
        hlo_instruction_clone(f->module, f->d, f->main, NULL, operands, &f->sink, &made),
        HLO_INVALID_INPUT);
    assert_null(made);
    f->errors = 0;
    assert_refused(f, hlo_instruction_clone(f->module, f->a, f->main, NULL, NULL, &f->sink, NULL),
                   "new_parameter");
    assert_refused(f, hlo_instruction_clone(f->module, f->d, f->main, f->n, NULL, &f->sink, NULL),
                   "must be defined before");
    assert_refused(f, hlo_instruction_clone(f->module, f->d, f->add, NULL, NULL, &f->sink, NULL),
                   "is in computation %main, not in %add");
    const hlo_instruction *x = hlo_computation_parameter(f->add, 0), *both[] = {x, x};
    assert_refused(f, hlo_instruction_clone(f->module, f->r, f->add, NULL, both, &f->sink, NULL),
                   "does not precede");
}

/* A module that hlo_module_verify() rejects: an instruction precedes its control predecessor. */
static void test_clone_late_control(void **state) {
    fixture *f = *state;
    const hlo_computation *copy;
    const char *value;
    assert_done(f, hlo_instruction_set_attribute(f->module, f->n, "control-predecessors", "{%late}",
                                                 &f->sink));
    assert_done(f, hlo_computation_clone(f->module, f->main, NULL, &f->sink, &copy));
    const hlo_instruction *n = hlo_computation_find(copy, "n.1");
    assert_int_equal(hlo_instruction_attribute(n, "control-predecessors", &value), HLO_OK);
    assert_string_equal(value, "{%late.1}");
}

/* A callee may have the name of the entry of the text from which attributes are parsed. */
static void test_reserved_name(void **state) {
    fixture *f = *state;
    assert_done(f, hlo_computation_rename(f->module, f->add, "__xla_fragment", &f->sink));
    assert_done(
        f, hlo_instruction_set_attribute(f->module, f->r, "metadata", "{op_name=\"r\"}", &f->sink));
    assert_sound(f, "to_apply=%__xla_fragment, metadata={op_name=\"r\"}");
}

static void test_move(void **state) {
    fixture *f = *state;
    assert_done(f, hlo_instruction_move(f->module, f->c, f->late, &f->sink));
    assert_ptr_equal(hlo_instruction_previous(f->late), f->c);
    assert_done(f, hlo_instruction_move(f->module, f->late, NULL, &f->sink));
    assert_ptr_equal(hlo_computation_last(f->main), f->late);
    assert_done(f, hlo_instruction_move(f->module, f->late, f->late, &f->sink));
    assert_sound(f, "%c = f32[] constant(3)\n  %r");
    assert_refused(f, hlo_instruction_move(f->module, f->d, f->n, &f->sink),
                   "%n must be defined before %d");
    assert_refused(f, hlo_instruction_move(f->module, f->n, NULL, &f->sink),
                   "%n must be defined before %d");
    assert_refused(f, hlo_instruction_move(f->module, f->n, f->e, &f->sink),
                   "%n must be defined before %d");
    assert_done(f, hlo_instruction_set_attribute(f->module, f->e, "control-predecessors", "{%r}",
                                                 &f->sink));
    assert_refused(f, hlo_instruction_move(f->module, f->r, f->late, &f->sink),
                   "%r is a control predecessor of %e");
    assert_refused(f, hlo_instruction_move(f->module, f->e, f->r, &f->sink),
                   "%r is a control predecessor of %e");
    const hlo_computation *made;
    assert_done(f, hlo_computation_new(f->module, "extra", NULL, &f->sink, &made));
    assert_done(f, hlo_computation_move(f->module, made, NULL, &f->sink));
    assert_null(hlo_computation_next(made));
    assert_done(f, hlo_computation_move(f->module, made, f->add, &f->sink));
    assert_ptr_equal(hlo_computation_next(made), f->add);
    assert_done(f, hlo_computation_move(f->module, made, made, &f->sink));
    assert_refused(f, hlo_computation_move(f->module, f->main, f->add, &f->sink),
                   "%main calls %add");
    assert_refused(f, hlo_computation_move(f->module, f->add, NULL, &f->sink), "%main calls %add");
    assert_sound(f, "%extra () -> ()");
}

static void test_rename_and_remove(void **state) {
    fixture *f = *state;
    const hlo_computation *extra;
    assert_done(f, hlo_instruction_rename(f->module, f->d, "product", &f->sink));
    assert_done(f, hlo_instruction_rename(f->module, f->d, "product", &f->sink));
    assert_string_equal(hlo_instruction_name(f->d), "product");
    assert_done(f, hlo_instruction_rename(f->module, f->late, "product", &f->sink));
    assert_string_equal(hlo_instruction_name(f->late), "product.1");
    assert_done(f, hlo_instruction_rename(f->module, f->r, "d", &f->sink)); /* the name is free */
    assert_string_equal(hlo_instruction_name(f->r), "d");
    assert_done(f, hlo_computation_rename(f->module, f->add, "sum", &f->sink));
    assert_sound(f, "to_apply=%sum");
    assert_refused(f, hlo_instruction_rename(f->module, f->d, "a b", &f->sink), "invalid name");
    assert_refused(f, hlo_instruction_rename(f->module, f->d, NULL, &f->sink), "NULL");
    assert_refused(f, hlo_computation_rename(f->module, f->add, "", &f->sink), "invalid name");
    assert_refused(f, hlo_computation_remove(f->module, f->main, &f->sink), "entry computation");
    assert_refused(f, hlo_computation_remove(f->module, f->add, &f->sink), "%d calls it");
    assert_done(f, hlo_computation_clone(f->module, f->add, "extra", &f->sink, &extra));
    const hlo_instruction *root = hlo_computation_root(extra);
    assert_done(f, hlo_computation_remove(f->module, extra, &f->sink));
    assert_null(hlo_instruction_computation(root));
    assert_null(hlo_module_find_computation(f->module, "extra"));
    assert_refused(f, hlo_computation_remove(f->module, extra, &f->sink), "%extra was removed");
    assert_refused(f, hlo_instruction_remove(f->module, root, &f->sink), "was removed");
    assert_refused(f, hlo_computation_move(f->module, f->add, extra, &f->sink), "was removed");
    hlo_module *other = parse(TEXT);
    assert_refused(f, hlo_instruction_remove(other, f->late, &f->sink), "is in another module");
    assert_refused(f, hlo_computation_remove(other, f->add, &f->sink), "is in another module");
    assert_refused(f, hlo_computation_new(other, NULL, f->add, &f->sink, NULL), "another module");
    hlo_module_free(other);
    assert_sound(f, "to_apply=%sum");
}

static void test_module_attributes(void **state) {
    (void)state;
    hlo_module *module =
        parse("HloModule m, is_scheduled=true, input_output_alias={ {1}: (0, {}, may-alias), {0}: "
              "(1, {2}, must-alias) }, buffer_donor={ (1, {0}) }, "
              "entry_computation_layout={(f32[2]{0}, (f32[1]{0}, s32[], f32[3]{0}))->(f32[3]{0}, "
              "f32[2]{0})}, replica_count=2, num_partitions=4\n"
              "ENTRY e {\n  a = f32[2]{0} parameter(0)\n"
              "  b = (f32[1]{0}, s32[], f32[3]{0}) parameter(1)\n"
              "  c = f32[3]{0} get-tuple-element(b), index=2\n"
              "  ROOT t = (f32[3]{0}, f32[2]{0}) tuple(c, a)\n}\n");
    hlo_module_alias alias;
    hlo_module_alias_init(&alias);
    assert_int_equal(hlo_module_replica_count(module), 2);
    assert_int_equal(hlo_module_partition_count(module), 4);
    assert_true(hlo_module_is_scheduled(module));
    assert_int_equal(hlo_shape_dims(hlo_module_parameter_layout(module, 0))[0], 2);
    assert_int_equal(hlo_shape_element_count(hlo_module_parameter_layout(module, 1)), 3);
    assert_null(hlo_module_parameter_layout(module, 2));
    assert_int_equal(hlo_shape_element_count(hlo_module_result_layout(module)), 2);
    assert_int_equal(hlo_module_alias_count(module), 3);
    int found = 0;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(hlo_module_alias_at(module, i, &alias), HLO_OK);
        if (alias.any_output) {
            assert_int_equal(i, 2);
            assert_int_equal(alias.parameter, 1);
            assert_int_equal(alias.parameter_index_size, 1);
            assert_int_equal(alias.output_index_size, 0);
        } else if (alias.parameter == 0) {
            assert_false(alias.must_alias);
            assert_int_equal(alias.parameter_index_size, 0);
            assert_int_equal(alias.output_index_size, 1);
            assert_int_equal(alias.output_index[0], 1);
            found++;
        } else {
            assert_true(alias.must_alias);
            assert_int_equal(alias.parameter_index[0], 2);
            assert_int_equal(alias.output_index[0], 0);
            found++;
        }
    }
    assert_int_equal(found, 2);
    assert_int_equal(hlo_module_alias_at(module, 3, &alias), HLO_INVALID_USAGE);
    alias.struct_size = 0;
    assert_int_equal(hlo_module_alias_at(module, 0, &alias), HLO_INVALID_USAGE);
    hlo_module_free(module);
    module = parse("ENTRY e { ROOT a = f32[2] parameter(0) }");
    assert_int_equal(hlo_module_replica_count(module), 1);
    assert_int_equal(hlo_module_partition_count(module), 1);
    assert_false(hlo_module_is_scheduled(module));
    assert_int_equal(hlo_module_alias_count(module), 0);
    hlo_module_free(module);
}

static bool drop(void *user, const char *bytes, size_t size) {
    (void)user, (void)bytes, (void)size;
    return true;
}

/* A module without entry_computation_layout has the layouts of its entry, and equals the module
 * that is parsed from its printed text. */
static void test_absent_layout(void **state) {
    fixture *f = *state;
    const hlo_writer out = {drop, NULL};
    hlo_module *module = parse("HloModule m\nENTRY e {\n  a = f32[2,3]{0,1} parameter(0)\n"
                               "  ROOT n = f32[2,3]{0,1} negate(a)\n}\n");
    hlo_module *other = parse("HloModule m, entry_computation_layout={(f32[2,3]{1,0})->"
                              "f32[2,3]{0,1}}\nENTRY e {\n  a = f32[2,3]{0,1} parameter(0)\n"
                              "  ROOT n = f32[2,3]{0,1} negate(a)\n}\n");
    const hlo_instruction *a = hlo_computation_parameter(hlo_module_entry(module), 0);
    assert_ptr_equal(hlo_module_parameter_layout(module, 0), hlo_instruction_shape(a));
    assert_null(hlo_module_parameter_layout(module, 1));
    assert_ptr_equal(hlo_module_result_layout(module),
                     hlo_instruction_shape(hlo_computation_root(hlo_module_entry(module))));
    char *text;
    size_t size;
    assert_done(f, hlo_module_to_text(module, NULL, &text, &size));
    hlo_module *again = parse(text);
    hlo_free(text);
    assert_int_equal(hlo_module_diff(module, again, out), HLO_OK);
    assert_int_equal(hlo_module_diff(again, module, out), HLO_OK);
    assert_int_equal(hlo_module_diff(module, other, out), HLO_MISMATCH);
    assert_int_equal(hlo_module_diff(other, module, out), HLO_MISMATCH);
    hlo_module_free(again);
    hlo_module_free(other);
    hlo_module_free(module);
}

static void test_constants(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t index;
        double real, imaginary;
        int64_t integer;
        bool is_integer, is_splat;
    } rows[] = {
        {"f32[2] constant({1.5, -2})", 1, -2, 0, 0, false, false},
        {"bf16[2] constant({3, 3})", 0, 3, 0, 0, false, true},
        {"f8e4m3fn[] constant(448)", 0, 448, 0, 0, false, true},
        {"f4e2m1fn[2] constant({1.5, 6})", 1, 6, 0, 0, false, false},
        {"c64[2] constant({(1, 2), (3, -4)})", 1, 3, -4, 0, false, false},
        {"c128[] constant((0.5, -1))", 0, 0.5, -1, 0, false, true},
        {"pred[2] constant({0, 1})", 1, 1, 0, 1, true, false},
        {"s4[2] constant({-8, 7})", 0, -8, 0, -8, true, false},
        {"u4[] constant(15)", 0, 15, 0, 15, true, true},
        {"s8[1] constant({-128})", 0, -128, 0, -128, true, true},
        {"u32[] constant(4294967295)", 0, 4294967295.0, 0, 4294967295, true, true},
        {"s64[] constant(-9223372036854775808)", 0, -0x1p63, 0, INT64_MIN, true, true},
        {"u64[] constant(18446744073709551615)", 0, 0x1p64, 0, 0, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[256];
        snprintf(text, sizeof text, "ENTRY e { ROOT c = %s }", rows[i].text);
        hlo_module *module = parse(text);
        const hlo_instruction *c = hlo_computation_root(hlo_module_entry(module));
        double real, imaginary;
        int64_t integer;
        assert_true(hlo_instruction_constant_number(c, rows[i].index, &real, &imaginary));
        assert_true(real == rows[i].real && imaginary == rows[i].imaginary);
        const bool is_integer = hlo_instruction_constant_integer(c, rows[i].index, &integer);
        assert_int_equal(is_integer, rows[i].is_integer);
        if (is_integer) assert_true(integer == rows[i].integer);
        assert_int_equal(hlo_instruction_constant_is_splat(c), rows[i].is_splat);
        assert_false(hlo_instruction_constant_number(c, 2, &real, NULL));
        assert_false(hlo_instruction_constant_integer(c, 2, &integer));
        hlo_module_free(module);
    }
    hlo_module *module = parse("ENTRY e { ROOT c = f32[0] constant({}) }");
    const hlo_instruction *c = hlo_computation_root(hlo_module_entry(module));
    double real;
    assert_false(hlo_instruction_constant_number(c, 0, &real, NULL));
    assert_false(hlo_instruction_constant_is_splat(c));
    hlo_module_free(module);
    module = parse("ENTRY e { ROOT c = f32[] parameter(0) }");
    c = hlo_computation_root(hlo_module_entry(module));
    assert_false(hlo_instruction_constant_number(c, 0, &real, NULL));
    assert_false(hlo_instruction_constant_is_splat(c));
    hlo_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_build),
        TEST(test_shapes),
        TEST(test_shared_elements),
        TEST(test_header),
        TEST(test_module_names),
        TEST(test_clone),
        TEST(test_clone_late_control),
        TEST(test_reserved_name),
        TEST(test_move),
        TEST(test_rename_and_remove),
        TEST(test_module_attributes),
        TEST(test_absent_layout),
        TEST(test_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
