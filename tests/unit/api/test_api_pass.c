/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined passes run among the built-in passes. */
#include "unit/api/api_fixture.h"

#include "hlo/memory.h"
#include "hlo/pass.h"

static hlo_user_pass pass_of(const char *name,
                             hlo_status (*run)(void *, hlo_module *, const hlo_diag_sink *),
                             void *user) {
    hlo_user_pass pass;
    hlo_user_pass_init(&pass);
    pass.name = name;
    pass.run = run;
    pass.user = user;
    return pass;
}

static hlo_status count_runs(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    (void)module, (void)sink;
    ++*(int *)user;
    return HLO_OK;
}

static hlo_status give_status(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    (void)module, (void)sink;
    return *(hlo_status *)user;
}

/* Makes a caller lack an operand, which is only detected when the pass ends. */
static hlo_status break_module(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    (void)user;
    const hlo_computation *add = hlo_module_find_computation(module, "add");
    return hlo_instruction_new_parameter(module, add, shape_of(module, "f32[]"), "extra", sink,
                                         NULL);
}

/* Replaces dot(negate(a), b) by negate(dot(a, b)). */
static hlo_status sink_negate(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    (void)user;
    const hlo_computation *main = hlo_module_entry(module);
    const hlo_instruction *d = hlo_computation_find(main, "d"), *made;
    const hlo_instruction *operands[] = {hlo_instruction_operand(hlo_instruction_operand(d, 0), 0),
                                         hlo_instruction_operand(d, 1)};
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_DOT;
    options.operands = operands;
    options.operand_count = 2;
    options.attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    options.before = d;
    options.like = d;
    options.name = "made";
    hlo_status status = hlo_instruction_new(module, main, &options, sink, &made);
    if (status != HLO_OK) return status;
    options.opcode = HLO_OP_NEGATE;
    options.operands = &made;
    options.operand_count = 1;
    options.attributes = NULL;
    options.like = NULL;
    status = hlo_instruction_new(module, main, &options, sink, &made);
    if (status == HLO_OK) status = hlo_instruction_replace(module, d, made, sink);
    return status == HLO_OK ? hlo_instruction_remove(module, d, sink) : status;
}

static hlo_status optimize(fixture *f, const hlo_user_pass *pass, const char *passes,
                           hlo_report **out_report) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.sink = &f->sink;
    options.passes = passes;
    options.user_passes = &pass;
    options.user_pass_count = 1;
    return hlo_module_optimize(f->module, &options, out_report);
}

/* The matmuls are the instructions that have a verdict. */
static void test_matmuls(void **state) {
    static const char matmuls[] =
        "ENTRY e {\n"
        "  a = f32[1,16,16] parameter(0)\n"
        "  b = f32[1,16,16] parameter(1)\n"
        "  d = f32[1,16,16] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, "
        "lhs_contracting_dims={2}, rhs_contracting_dims={1}\n"
        "  v = f32[1,16,16] convolution(d, b), window={size=1}, dim_labels=b0f_0io->b0f\n"
        "  g = f32[1,16,16] custom-call(v, b), custom_call_target=\"__onednn$matmul\"\n"
        "  l = f32[1,16,16] custom-call(g, b), custom_call_target=\"te_gemm_ffi\"\n"
        "  other = f32[1,16,16] custom-call(l, b), custom_call_target=\"gemm\"\n"
        "  ROOT s = f32[1,16,16] add(other, d)\n"
        "}\n";
    hlo_module *module = parse(matmuls);
    hlo_report *report;
    (void)state;
    const hlo_instruction *at = hlo_computation_first(hlo_module_entry(module));
    char found[64] = "", expected[64] = "";
    for (; at; at = hlo_instruction_next(at))
        if (hlo_instruction_is_matmul(at)) strcat(found, hlo_instruction_name(at));
    assert_int_equal(hlo_module_optimize(module, NULL, &report), HLO_OK);
    for (size_t i = 0; i < hlo_report_count(report); i++)
        strcat(expected, hlo_report_verdict(report, i)->input_instruction);
    assert_string_equal(found, expected);
    assert_string_equal(found, "dvgl");
    hlo_report_free(report);
    hlo_module_free(module);
}

static void test_runs(void **state) {
    fixture *f = *state;
    int runs = 0;
    const hlo_user_pass pass = pass_of("counting", count_runs, &runs);
    assert_done(f, optimize(f, &pass, "counting,dce,counting", NULL));
    assert_int_equal(runs, 2);
    assert_done(f, optimize(f, &pass, "default", NULL));
    assert_int_equal(runs, 2);
    assert_int_equal(optimize(f, &pass, "countin", NULL), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "did you mean 'counting'"));
}

static void test_faults(void **state) {
    fixture *f = *state;
    int runs = 0;
    hlo_user_pass pass = pass_of(NULL, count_runs, &runs);
    assert_int_equal(optimize(f, &pass, "", NULL), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "user_passes[0] '' must have a name"));
    pass.name = "a,b";
    assert_int_equal(optimize(f, &pass, "", NULL), HLO_INVALID_USAGE);
    pass.name = "dce";
    assert_int_equal(optimize(f, &pass, "", NULL), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "'dce' has the name of a built-in pass"));
    pass = pass_of("mine", NULL, NULL);
    assert_int_equal(optimize(f, &pass, "", NULL), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "has no run function"));
    pass = pass_of("mine", count_runs, &runs);
    pass.struct_size++;
    assert_int_equal(optimize(f, &pass, "mine", NULL), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "struct_size"));
    assert_int_equal(optimize(f, NULL, "", NULL), HLO_INVALID_USAGE);
    pass.struct_size--;
    const hlo_user_pass *twice[] = {&pass, &pass};
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.sink = &f->sink;
    options.user_passes = twice;
    options.user_pass_count = 2;
    assert_int_equal(hlo_pass_options_check(&options), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->said, "user_passes[1] 'mine' has the name of an earlier user pass"));
    assert_int_equal(runs, 0);
}

/* Changes names, and fails. */
static hlo_status rename_all(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    (void)user;
    const hlo_computation *entry = hlo_module_entry(module);
    hlo_status status = hlo_computation_rename(module, entry, "other", sink);
    if (status == HLO_OK)
        status = hlo_instruction_rename(module, hlo_computation_root(entry), "other", sink);
    return status == HLO_OK ? HLO_MISMATCH : status;
}

static void test_failing(void **state) {
    fixture *f = *state;
    const hlo_user_pass renaming = pass_of("renaming", rename_all, NULL);
    assert_int_equal(optimize(f, &renaming, "renaming", NULL), HLO_MISMATCH);
    assert_string_equal(hlo_computation_name(f->main), "main");
    assert_string_equal(hlo_instruction_name(f->e), "e");
    assert_ptr_equal(hlo_computation_find(f->main, "e"), f->e);
    assert_null(hlo_module_find_computation(f->module, "other"));
    hlo_status given = HLO_MISMATCH;
    hlo_user_pass pass = pass_of("failing", give_status, &given);
    assert_int_equal(optimize(f, &pass, "failing", NULL), HLO_MISMATCH);
    assert_string_equal(f->said, "pass 'failing' failed: mismatch");
    pass = pass_of("breaking", break_module, NULL);
    assert_int_equal(optimize(f, &pass, "breaking,dce", NULL), HLO_INVALID_INPUT);
    assert_string_equal(f->said, "module fails verification after 'breaking': the "
                                 "user-defined pass produced invalid HLO");
}

/* Renames, moves and adds objects of the module in each way that hlo/edit.h has. */
static hlo_status edit_all(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    const hlo_computation *main = hlo_module_entry(module), *made;
    const hlo_computation *add = hlo_module_find_computation(module, "add");
    const hlo_instruction *a = hlo_computation_parameter(main, 0), *constant;
    const hlo_instruction *n = hlo_computation_find(main, "n"), *e = hlo_computation_root(main);
    const hlo_instruction *r = hlo_computation_find(main, "r");
    const hlo_shape *const shape = hlo_instruction_shape(a);
    char name[64];
    snprintf(name, sizeof name, "%s_x", hlo_instruction_name(a));
    assert_int_equal(hlo_instruction_rename(module, a, name, sink), HLO_OK);
    assert_int_equal(hlo_instruction_rename(module, e, "a", sink), HLO_OK);
    assert_int_equal(hlo_computation_rename(module, add, "add_x", sink), HLO_OK);
    assert_int_equal(hlo_computation_rename(module, main, "add", sink), HLO_OK);
    assert_int_equal(hlo_computation_clone(module, add, NULL, sink, &made), HLO_OK);
    assert_int_equal(hlo_computation_move(module, made, add, sink), HLO_OK);
    assert_int_equal(hlo_instruction_new_parameter(module, main, shape, "p", sink, NULL), HLO_OK);
    assert_int_equal(hlo_instruction_new_scalar(module, main, a, HLO_TYPE_F32, 1, sink, &constant),
                     HLO_OK);
    assert_int_equal(hlo_instruction_move(module, constant, n, sink), HLO_OK);
    assert_int_equal(hlo_instruction_set_operand(module, r, 1, constant, sink), HLO_OK);
    assert_int_equal(hlo_instruction_set_attribute(module, n, "metadata", NULL, sink), HLO_OK);
    assert_int_equal(hlo_computation_set_root(module, main, r, sink), HLO_OK);
    assert_int_equal(hlo_instruction_remove(module, e, sink), HLO_OK);
    return *(hlo_status *)user;
}

/* A failed run restores all that a pass changed, and each restart begins with the original. */
static void test_restored(void **state) {
    fixture *f = *state;
    char *before, *after;
    size_t size;
    hlo_status given = HLO_STOPPED;
    const hlo_user_pass pass = pass_of("editing", edit_all, &given);
    assert_int_equal(hlo_module_to_text(f->module, NULL, &before, &size), HLO_OK);
    for (int times = 0; times < 2; times++) {
        assert_int_equal(optimize(f, &pass, "editing", NULL), HLO_STOPPED);
        assert_int_equal(hlo_module_to_text(f->module, NULL, &after, &size), HLO_OK);
        assert_string_equal(after, before);
        hlo_free(after);
        assert_ptr_equal(hlo_module_find_computation(f->module, "add"), f->add);
        assert_ptr_equal(hlo_computation_find(f->main, "a"), f->a);
    }
    hlo_free(before);
    given = HLO_OK;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.sink = &f->sink;
    options.passes = "editing";
    const hlo_user_pass *passes = &pass;
    options.user_passes = &passes;
    options.user_pass_count = 1;
    options.wide = "d";
    assert_done(f, hlo_module_optimize(f->module, &options, NULL));
    assert_string_equal(
        hlo_instruction_name(hlo_computation_parameter(hlo_module_entry(f->module), 0)), "a_x");
}

/* If a pass replaces a dot by a dot that it creates with the option `like` set to the old dot, the
 * new dot has the verdict of the old dot. */
static void test_verdict(void **state) {
    fixture *f = *state;
    hlo_report *report;
    const hlo_user_pass pass = pass_of("sink-negate", sink_negate, NULL);
    assert_done(f, optimize(f, &pass, "sink-negate,default", &report));
    assert_int_equal(hlo_report_count(report), 1);
    const hlo_verdict *verdict = hlo_report_verdict(report, 0);
    assert_string_equal(verdict->input_instruction, "d");
    assert_string_equal(verdict->reason, "not-quantized");
    hlo_report_free(report);
    assert_sound(f, "negate(%made)");
}

static void test_print_after(void **state) {
    fixture *f = *state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const hlo_user_pass pass = pass_of("sink-negate", sink_negate, NULL), *passes = &pass;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "dce,sink-negate";
    options.user_passes = &passes;
    options.user_pass_count = 1;
    options.print_after = "sink-negate";
    options.dump = hlo_file_writer(out);
    options.time_passes = true;
    hlo_report *report;
    assert_done(f, hlo_module_optimize(f->module, &options, &report));
    hlo_report_print_times(report, hlo_file_writer(out));
    fclose(out);
    assert_ptr_equal(strstr(text, "// ----- after"), text);
    assert_ptr_equal(strstr(text, "sink-negate\n"), text + strlen("// ----- after "));
    assert_non_null(strstr(text, "negate(%made)"));
    assert_non_null(strstr(strstr(text, "negate(%made)"), "sink-negate"));
    free(text);
    hlo_report_free(report);
}

/* The list of passes contains the built-in passes, then the user-defined ones, with or without
 * help. */
static void test_list(void **state) {
    fixture *f = *state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hlo_user_pass told = pass_of("sink-negate", sink_negate, NULL);
    told.help = "negates the product";
    hlo_user_pass plain = pass_of("plain", sink_negate, NULL);
    plain.struct_size = offsetof(hlo_user_pass, user); /* the size in an older header */
    const hlo_user_pass *passes[] = {&told, &plain};
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.sink = &f->sink;
    options.user_passes = passes;
    options.user_pass_count = 2;
    assert_done(f, hlo_passes_print(&options, hlo_file_writer(out)));
    passes[1] = &told; /* the same pass twice */
    assert_int_equal(hlo_passes_print(&options, hlo_file_writer(out)), HLO_INVALID_USAGE);
    fclose(out);
    assert_ptr_equal(strstr(text, "default "), text);
    static const char last[] = "\nsink-negate               negates the product\nplain\n";
    assert_string_equal(text + size - strlen(last), last);
    free(text);
}

/* Every sequence of passes is accepted as the `passes` of the options. */
static void test_sequences(void **state) {
    fixture *f = *state;
    size_t sequences = 0;
    for (size_t i = 0; i < hlo_pass_count(); i++) {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        options.sink = &f->sink;
        options.passes = hlo_pass_sequence(i);
        if (!options.passes) continue;
        sequences++;
        assert_done(f, hlo_pass_options_check(&options));
    }
    assert_true(sequences > 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmuls),
        TEST(test_runs),
        TEST(test_faults),
        TEST(test_failing),
        TEST(test_verdict),
        TEST(test_print_after),
        TEST(test_sequences),
        TEST(test_list),
        TEST(test_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
