/* SPDX-License-Identifier: Apache-2.0 */
/* Tests edits of a module through the public API; edits that make it invalid are rejected. */
#include "hlo/memory.h"
#include "unit/api/api_fixture.h"

/* Checks that an edit was rejected with this status, with one error that contains `part`, and
 * without a change of the module. */
static void assert_refused(fixture *f, const char *part, hlo_status found, hlo_status expected) {
    char *before, *after;
    size_t size;
    assert_int_equal(found, expected);
    assert_int_equal(f->errors, 1);
    if (!strstr(f->said, part)) fail_msg("'%s' does not say '%s'", f->said, part);
    f->errors = 0;
    hlo_module *fresh = parse(TEXT);
    assert_int_equal(hlo_module_to_text(fresh, NULL, &before, &size), HLO_OK);
    assert_int_equal(hlo_module_to_text(f->module, NULL, &after, &size), HLO_OK);
    assert_string_equal(after, before);
    assert_done(f, hlo_module_verify(f->module, NULL, NULL));
    hlo_module_free(fresh);
    hlo_free(before);
    hlo_free(after);
}

static hlo_instruction_options build(hlo_opcode opcode, const hlo_instruction *const *operands,
                                     size_t count, const char *attributes) {
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    options.opcode = opcode;
    options.operands = operands;
    options.operand_count = count;
    options.attributes = attributes;
    return options;
}

/* ------------------------------------------------------------------------------------- building */

static void test_new(void **state) {
    fixture *f = *state;
    const hlo_instruction *operands[] = {f->n, f->b}, *made;
    hlo_instruction_options options =
        build(HLO_OP_DOT, operands, 2, "lhs_contracting_dims={1}, rhs_contracting_dims={0}");
    options.before = f->d;
    options.like = f->n;
    options.name = "d";
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    assert_string_equal(hlo_instruction_name(made), "d.1");
    assert_ptr_equal(hlo_instruction_next(made), f->d);
    assert_string_equal(hlo_instruction_op_name(made), "jit(f)/neg");
    assert_done(f, hlo_instruction_replace(f->module, f->d, made, &f->sink));
    assert_int_equal(hlo_instruction_use_count(f->d), 0);
    assert_done(f, hlo_instruction_remove(f->module, f->d, &f->sink));
    assert_null(hlo_instruction_computation(f->d));
    assert_sound(f, "add(%d.1, %d.1)");
}

/* Creates instructions that have the same operand twice, call a computation, have a given shape, or
 * have no operand. */
static void test_new_forms(void **state) {
    fixture *f = *state;
    const hlo_instruction *twice[] = {f->n, f->n}, *reduced[] = {f->n, f->c}, *made;
    hlo_instruction_options options = build(HLO_OP_MULTIPLY, twice, 2, NULL);
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    options = build(HLO_OP_REDUCE, reduced, 2,
                    "dimensions={0,1}, to_apply=%add, metadata={op_name=\"main %e \\\" x\"}");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    assert_ptr_equal(hlo_instruction_called(made, 0), f->add);
    options = build(HLO_OP_BROADCAST, &made, 1, "dimensions={}");
    options.shape = shape_of(f->module, "f32[5,5]{0,1}");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    options = build(HLO_OP_IOTA, NULL, 0, "iota_dimension=0");
    options.shape = shape_of(f->module, "s32[7]");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, NULL, NULL));
    options = build(HLO_OP_CUSTOM_CALL, twice, 2,
                    "custom_call_target=\"f\", control-predecessors={%late}");
    options.shape = shape_of(f->module, "(f32[2]{0}, token[])");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    assert_sound(f, "control-predecessors={%late}");
    assert_int_equal(hlo_instruction_remove(f->module, f->late, &f->sink), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "control predecessor of %custom-call"));
}

/* The text of an edit may name instructions, which are resolved. */
static void test_names(void **state) {
    fixture *f = *state;
    static const char text[] = "HloModule m\nENTRY new.instruction {\n  x = f32[] parameter(0)\n"
                               "  y = f32[] parameter(1)\n  new.instruction = f32[] abs(x)\n"
                               "  ROOT s = f32[] add(new.instruction, y)\n}\n";
    const hlo_instruction *operands[2], *made;
    assert_done(f, hlo_computation_new_text(f->module, text, strlen(text), &f->sink, NULL));
    hlo_instruction_options options = build(HLO_OP_NEGATE, &f->n, 1, NULL);
    options.name = "new.instruction";
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &operands[0]));
    operands[1] = operands[0];
    options = build(HLO_OP_ADD, operands, 2, "metadata={op_name=\"a\"}");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    operands[1] = f->c;
    options = build(HLO_OP_REDUCE, operands, 2, "dimensions={0,1}, to_apply=%new.instruction");
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    assert_done(f, hlo_instruction_set_attribute(f->module, operands[0], "metadata",
                                                 "{op_name=\"n\"}", &f->sink));
    assert_sound(f, "to_apply=%new.instruction");
}

static void test_constants(void **state) {
    fixture *f = *state;
    const float values[] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {3, 2}, negative[] = {-1}, huge[] = {INT64_MAX, INT64_MAX};
    const int8_t nibbles[] = {7, -8, 8};
    const hlo_instruction *made;
    hlo_status s = hlo_instruction_new_constant(f->module, f->main, f->d, HLO_TYPE_INVALID, 0, NULL,
                                                NULL, &f->sink, NULL);
    assert_refused(f, "element type 255 does not exist", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, f->d, HLO_TYPE_TUPLE, 0, NULL, NULL,
                                     &f->sink, NULL);
    assert_refused(f, "element type 34 does not exist", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 1, negative, NULL,
                                     &f->sink, NULL);
    assert_refused(f, "dimension 0 is -1", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 2, huge, NULL,
                                     &f->sink, NULL);
    assert_refused(f, "too large", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 99, NULL, NULL,
                                     &f->sink, NULL);
    assert_refused(f, "99 dimensions", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_S4, 1, dims, nibbles,
                                     &f->sink, NULL);
    assert_refused(f, "element 2 is not a valid s4", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new_constant(f->module, f->main, f->d, HLO_TYPE_F32, 2, dims, values,
                                     &f->sink, &made);
    assert_done(f, s);
    assert_ptr_equal(hlo_instruction_next(made), f->d);
    s = hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_PRED, 0, NULL, NULL,
                                     &f->sink, &made);
    assert_done(f, s);
    assert_sound(f, "constant({ { 1, 2 }, { 3, 4 }, { 5, 6 } })");
}

static void test_parameters(void **state) {
    fixture *f = *state;
    const hlo_instruction *made;
    hlo_status s = hlo_instruction_new_parameter(
        f->module, f->main, shape_of(f->module, "f32[4,2]"), "scale", &f->sink, &made);
    assert_done(f, s);
    assert_int_equal(hlo_instruction_parameter_number(made), 2);
    assert_done(f, hlo_instruction_set_operand(f->module, f->e, 1, made, &f->sink));
    assert_sound(f, "{(f32[4,8]{1,0}, f32[8,2]{1,0}, f32[4,2]{1,0})->f32[4,2]{1,0}}");
    /* A caller of the computation now lacks an operand. */
    assert_done(f, hlo_instruction_new_parameter(f->module, f->add, shape_of(f->module, "f32[]"),
                                                 NULL, &f->sink, NULL));
    assert_int_equal(hlo_module_verify(f->module, NULL, &f->sink), HLO_INVALID_INPUT);
}

static void test_computations(void **state) {
    static const char text[] = "helper { x = f32[] parameter(0) ROOT y = f32[] negate(x) }\n"
                               "ENTRY add { x = f32[] parameter(0) y = f32[] parameter(1)\n"
                               " z = f32[] call(y), to_apply=helper ROOT s = f32[] maximum(x, z) }";
    fixture *f = *state;
    const hlo_computation *made;
    hlo_status s = hlo_computation_new_text(f->module, "ENTRY x {", 9, &f->sink, &made);
    assert_int_equal(s, HLO_INVALID_INPUT);
    assert_null(made);
    f->errors = 0;
    s = hlo_computation_new_text(f->module, text, strlen(text), &f->sink, &made);
    assert_done(f, s);
    assert_string_equal(hlo_computation_name(made), "add.1");
    assert_done(f, hlo_instruction_set_attribute(f->module, f->r, "to_apply", "%add.1", &f->sink));
    assert_ptr_equal(hlo_instruction_called(f->r, 0), made);
    assert_sound(f, "to_apply=%add.1");
}

/* ------------------------------------------------------------------------------------- refusals */

static void test_refused_new(void **state) {
    fixture *f = *state;
    const hlo_instruction *x = hlo_computation_find(f->add, "x"), *made = f->a;
    hlo_module *other = parse(TEXT);
    const hlo_instruction *foreign = hlo_computation_first(hlo_module_entry(other));
    const hlo_instruction *pair[] = {f->n, f->b}, *odd[] = {f->n, x}, *far[] = {f->n, foreign},
                          *none[] = {f->n, NULL}, *later[] = {f->n, f->late};
    const struct {
        hlo_instruction_options options;
        const char *part;
        hlo_status status;
    } rows[] = {
        {build(HLO_OP_INVALID, NULL, 0, NULL), "opcode 255 does not exist", HLO_INVALID_USAGE},
        {build(HLO_OP_CONSTANT, NULL, 0, NULL), "hlo_instruction_new_constant", HLO_INVALID_USAGE},
        {build(HLO_OP_ADD, NULL, 2, NULL), "operands must not be NULL", HLO_INVALID_USAGE},
        {build(HLO_OP_ADD, odd, 2, NULL), "is in computation %add, not in %main",
         HLO_INVALID_USAGE},
        {build(HLO_OP_ADD, far, 2, NULL), "in another module", HLO_INVALID_USAGE},
        {build(HLO_OP_ADD, none, 2, NULL), "operand 1 must not be NULL", HLO_INVALID_USAGE},
        {build(HLO_OP_ADD, pair, 2, NULL), "f32[4,8]", HLO_INVALID_INPUT},
        {build(HLO_OP_ADD, pair, 1, NULL), "takes 2 operands", HLO_INVALID_INPUT},
        {build(HLO_OP_DOT, pair, 2, "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
         "contract", HLO_INVALID_INPUT},
        {build(HLO_OP_NEGATE, pair, 1, "dimensions={0}"), "dimensions", HLO_INVALID_INPUT},
        {build(HLO_OP_NEGATE, pair, 1, "no_such=3"), "no_such", HLO_INVALID_INPUT},
        {build(HLO_OP_REDUCE, pair, 2, "dimensions={0}, to_apply=%nothing"), "nothing",
         HLO_INVALID_INPUT},
        {build(HLO_OP_CALL, pair, 1, "to_apply=%main"), "main", HLO_INVALID_INPUT},
        {build(HLO_OP_NEGATE, pair, 1, "metadata={}\n ROOT %q = f32[4,8] negate(%n)"), "two roots",
         HLO_INVALID_INPUT},
        {build(HLO_OP_NEGATE, pair, 1, "metadata={}\n %q = f32[4,8] negate(%n)"),
         "must form exactly one instruction", HLO_INVALID_INPUT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const hlo_status s =
            hlo_instruction_new(f->module, f->main, &rows[i].options, &f->sink, &made);
        assert_refused(f, rows[i].part, s, rows[i].status);
        assert_null(made);
    }
    hlo_instruction_options options = build(HLO_OP_ADD, later, 2, NULL);
    options.before = f->d;
    hlo_status s = hlo_instruction_new(f->module, f->main, &options, &f->sink, &made);
    assert_refused(f, "must be defined before %d", s, HLO_INVALID_USAGE);
    options.before = x;
    s = hlo_instruction_new(f->module, f->main, &options, &f->sink, &made);
    assert_refused(f, "is in computation %add, not in %main", s, HLO_INVALID_USAGE);
    options = build(HLO_OP_NEGATE, pair, 1, NULL);
    options.like = foreign;
    s = hlo_instruction_new(f->module, f->main, &options, &f->sink, &made);
    assert_refused(f, "another module", s, HLO_INVALID_USAGE);
    options = build(HLO_OP_NEGATE, pair, 1, NULL);
    static const char *const names[] = {"",    "a b", "%a",        "1",
                                        "__x", "f32", "x=f32[] y", "\xc3\xa9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        options.name = names[i];
        s = hlo_instruction_new(f->module, f->main, &options, &f->sink, &made);
        assert_refused(f, "invalid name '", s, HLO_INVALID_USAGE);
        s = hlo_instruction_new_parameter(f->module, f->main, shape_of(f->module, "f32[]"),
                                          names[i], &f->sink, &made);
        assert_refused(f, "invalid name '", s, HLO_INVALID_USAGE);
    }
    options.struct_size++;
    s = hlo_instruction_new(f->module, f->main, &options, &f->sink, &made);
    assert_refused(f, "hlo_instruction_options.struct_size", s, HLO_INVALID_USAGE);
    s = hlo_instruction_new(f->module, f->main, &options, NULL,
                            &made); /* rejected also without a sink */
    assert_int_equal(s, HLO_INVALID_USAGE);
    hlo_module_free(other);
}

static void test_refused_changes(void **state) {
    fixture *f = *state;
    const hlo_instruction *x = hlo_computation_find(f->add, "x");
    const hlo_diag_sink *sink = &f->sink;
    hlo_status s = hlo_instruction_replace(f->module, f->n, f->b, sink);
    assert_refused(f, "%n, which it replaces, is f32[4,8]", s, HLO_INVALID_INPUT);
    s = hlo_instruction_replace(f->module, f->d, f->e, sink);
    assert_refused(f, "%e must be defined before %late, which uses %d", s, HLO_INVALID_USAGE);
    s = hlo_instruction_replace(f->module, f->d, x, sink);
    assert_refused(f, "is in computation %add, not in %main", s, HLO_INVALID_USAGE);
    s = hlo_instruction_replace(f->module, f->d, NULL, sink);
    assert_refused(f, "must not be NULL", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_operand(f->module, f->n, 0, f->d,
                                    sink); /* would be a cycle of operands */
    assert_refused(f, "%d, must be defined before %n", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_operand(f->module, f->n, 0, f->n, sink);
    assert_refused(f, "%n, must be defined before %n", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_operand(f->module, f->d, 1, f->a, sink);
    assert_refused(f, "dot of f32[4,8] and f32[4,8]", s, HLO_INVALID_INPUT);
    s = hlo_instruction_set_operand(f->module, f->n, 1, f->a, sink);
    assert_refused(f, "index 1 is out of range", s, HLO_INVALID_USAGE);
    s = hlo_instruction_remove(f->module, f->d, sink);
    assert_refused(f, "%e uses it", s, HLO_INVALID_USAGE);
    assert_string_equal(f->place, "14:3+1"); /* the location is the name of %d */
    s = hlo_instruction_remove(f->module, f->e, sink);
    assert_refused(f, "is the root", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_attribute(f->module, f->d, "lhs_contracting_dims", "{0}", sink);
    assert_refused(f, "dot of", s, HLO_INVALID_INPUT);
    s = hlo_instruction_set_attribute(f->module, f->d, "lhs_contracting_dims", NULL, sink);
    assert_refused(f, "contracting dimensions: 0 and 1", s, HLO_INVALID_INPUT);
    s = hlo_instruction_set_attribute(f->module, f->d, "lhs_contract", "{0}", sink);
    assert_refused(f, "unknown attribute 'lhs_contract'", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_attribute(f->module, f->r, "to_apply", "%main", sink);
    assert_refused(f, "main", s, HLO_INVALID_INPUT);
    s = hlo_computation_set_root(f->module, f->main, x, sink);
    assert_refused(f, "is in computation %add, not in %main", s, HLO_INVALID_USAGE);
    s = hlo_instruction_set_attribute(f->module, f->n, "dimensions", NULL,
                                      sink); /* the attribute is absent */
    assert_done(f, s);
}

/* The text of an attribute is one value: it neither adds nor hides other attributes. */
static void test_value_is_whole(void **state) {
    fixture *f = *state;
    static const char *const wrong[][2] = {
        {"frontend_attributes", "{a=\"1\"}, sharding={replicated}, metadata={op_name=\"evil\"}"},
        {"frontend_attributes", "{a=\"1\"}, sharding={replicated}"},
        {"frontend_attributes", "{a=\"1\"} //"},
        {"frontend_attributes", "{a=\"1\"} /*"},
        {"frontend_attributes", "{a=\"1\""},
        {"metadata", "{op_name=\"a\"}, sharding={replicated}"},
        {"sharding", "{replicated}\n  second = f32[4,8] negate(%a)"},
        {"sharding", ""},
    };
    char *before, *after;
    size_t size;
    assert_int_equal(hlo_module_to_text(f->module, NULL, &before, &size), HLO_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        f->errors = 0;
        const hlo_status s =
            hlo_instruction_set_attribute(f->module, f->n, wrong[i][0], wrong[i][1], &f->sink);
        if (s != HLO_INVALID_INPUT || !f->errors) fail_msg("%s is accepted", wrong[i][1]);
    }
    assert_int_equal(hlo_module_to_text(f->module, NULL, &after, &size), HLO_OK);
    assert_string_equal(after, before);
    hlo_free(before);
    hlo_free(after);
    f->errors = 0;
    assert_done(f, hlo_instruction_set_attribute(f->module, f->n, "frontend_attributes",
                                                 "{a=\"//'/*\"} /* closed */", &f->sink));
    assert_sound(f, "frontend_attributes={a=\"//\\'/*\"}, metadata={op_name=\"jit(f)/neg\"}");
}

/* A removed instruction is rejected as an argument of every function that edits a module. */
static void test_removed(void **state) {
    fixture *f = *state;
    const hlo_instruction *late = f->late, *operands[] = {f->late};
    const hlo_diag_sink *sink = &f->sink;
    assert_done(f, hlo_instruction_remove(f->module, late, sink));
    assert_sound(f, "ENTRY");
    hlo_instruction_options options = build(HLO_OP_NEGATE, operands, 1, NULL), before = options;
    before.operands = &f->a;
    before.before = late;
    const hlo_status statuses[] = {
        hlo_instruction_remove(f->module, late, sink),
        hlo_instruction_replace(f->module, late, f->d, sink),
        hlo_instruction_replace(f->module, f->d, late, sink),
        hlo_instruction_set_operand(f->module, late, 0, f->d, sink),
        hlo_instruction_set_operand(f->module, f->e, 0, late, sink),
        hlo_instruction_set_attribute(f->module, late, "dimensions", "{}", sink),
        hlo_computation_set_root(f->module, f->main, late, sink),
        hlo_instruction_new(f->module, f->main, &options, sink, NULL),
        hlo_instruction_new(f->module, f->main, &before, sink, NULL),
        hlo_instruction_new_constant(f->module, f->main, late, HLO_TYPE_F32, 0, NULL, NULL, sink,
                                     NULL),
    };
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++)
        assert_int_equal(statuses[i], HLO_INVALID_USAGE);
    assert_int_equal(f->errors, sizeof statuses / sizeof *statuses);
    assert_non_null(strstr(f->said, "was removed"));
}

/* ------------------------------------------------------------------------------------- changing */

static void test_changes(void **state) {
    fixture *f = *state;
    const hlo_diag_sink *sink = &f->sink;
    assert_done(f, hlo_instruction_set_operand(f->module, f->d, 0, f->a, sink));
    assert_done(f, hlo_computation_set_root(f->module, f->main, f->r, sink));
    assert_done(f, hlo_instruction_remove(f->module, f->e, sink));
    assert_sound(f, "->f32[4]{0}}");
    assert_done(
        f, hlo_instruction_set_attribute(f->module, f->d, "metadata", "{op_name=\"new\"}", sink));
    assert_done(f,
                hlo_instruction_set_attribute(f->module, f->a, "sharding", "{replicated}", sink));
    assert_done(
        f, hlo_instruction_set_attribute(f->module, f->c, "metadata", "{op_name=\"c\"}", sink));
    assert_string_equal(hlo_instruction_op_name(f->c), "c");
    assert_done(f, hlo_instruction_set_attribute(f->module, f->n, "metadata", NULL, sink));
    assert_null(hlo_instruction_op_name(f->n));
    assert_sound(f, "sharding={replicated}");
    assert_sound(f, "constant(3), metadata={op_name=\"c\"}");
    assert_int_equal(hlo_instruction_remove(f->module, f->b, sink), HLO_INVALID_USAGE);
}

/* An error in the text of an edit shows the instruction as a source line. */
static void test_place(void **state) {
    fixture *f = *state;
    const hlo_instruction_options options =
        build(HLO_OP_NEGATE, &f->a, 1, "metadata={op_nam=\"x\"}");
    assert_int_equal(hlo_instruction_new(f->module, f->main, &options, &f->sink, NULL),
                     HLO_INVALID_INPUT);
    assert_string_equal(f->source, "ROOT %new.instruction = negate(%a), metadata={op_nam=\"x\"}");
}

/* Adds an operation on `operand`; `shape` may be NULL. */
static const hlo_instruction *add_async(fixture *f, hlo_opcode opcode, const char *shape,
                                        const hlo_instruction *const *operands, size_t count,
                                        const char *attributes) {
    const hlo_instruction *made;
    hlo_instruction_options options = build(opcode, operands, count, attributes);
    if (shape) options.shape = shape_of(f->module, shape);
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    return made;
}

/* Builds an asynchronous operation step by step; its second operand is bound later. */
static void test_async(void **state) {
    fixture *f = *state;
    const hlo_instruction *made,
        *start =
            add_async(f, HLO_OP_ASYNC_START, "((f32[]), f32[], u32[])", &f->c, 1, "calls=%add");
    const hlo_instruction *both[] = {start, f->c};
    const hlo_instruction *update =
        add_async(f, HLO_OP_ASYNC_UPDATE, "((f32[], f32[]), f32[], u32[])", both, 2, NULL);
    const hlo_instruction *later = add_async(f, HLO_OP_ASYNC_UPDATE, NULL, &update, 1, NULL);
    hlo_instruction_options options =
        build(HLO_OP_ASYNC_DONE, &later, 1, "control-predecessors={%async-update.1}");
    options.name = "sum";
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, &f->sink, &made));
    const hlo_instruction *const ended[] = {made, f->c};
    for (int i = 0; i < 2; i++) {
        options = build(HLO_OP_ASYNC_DONE, &ended[i], 1, NULL);
        assert_int_equal(hlo_instruction_new(f->module, f->main, &options, &f->sink, &made),
                         HLO_INVALID_INPUT);
        assert_true(f->errors > 0);
    }
    f->errors = 0;
    assert_sound(
        f, "%sum = f32[] async-done(%async-update.1), control-predecessors={%async-update.1}");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_new),         TEST(test_new_forms),       TEST(test_names),
        TEST(test_constants),   TEST(test_parameters),      TEST(test_computations),
        TEST(test_refused_new), TEST(test_refused_changes), TEST(test_value_is_whole),
        TEST(test_removed),     TEST(test_changes),         TEST(test_place),
        TEST(test_async),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
