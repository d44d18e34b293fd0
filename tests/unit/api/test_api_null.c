/* SPDX-License-Identifier: Apache-2.0 */
/* Passes NULL where the public headers allow it: no sink, default options, unused results. Each
 * exported function has a row in the table. */
#include <glob.h>
#include <math.h>

#include "hlo/bisect.h"
#include "hlo/buffer.h"
#include "hlo/dump.h"
#include "hlo/memory.h"
#include "hlo/pjrt.h"
#include "hlo/proto.h"
#include "hlo/runtime.h"
#include "unit/api/api_fixture.h"

static const char WRONG[] = "ENTRY e {\n  ROOT a = f32[2] negate(b)\n}\n";
static const char MISSING[] = "/nowhere/none.hlo";

static hlo_arrays *inputs_of(const fixture *f) {
    hlo_arrays *inputs;
    assert_int_equal(hlo_arrays_draw(f->module, 1, NULL, &inputs), HLO_OK);
    return inputs;
}

static hlo_plan *plan_of(const fixture *f) {
    hlo_plan *plan;
    assert_int_equal(hlo_plan_new(f->module, NULL, NULL, &plan), HLO_OK);
    return plan;
}

/* Adds an operand of the wrong shape to the callee, which hlo_module_verify() detects. */
static void break_module(fixture *f) {
    assert_done(f, hlo_instruction_new_parameter(f->module, f->add, shape_of(f->module, "f32[]"),
                                                 "extra", NULL, NULL));
}

/* -------------------------------------------------------------------------------------- modules */

static void free_nothing(fixture *f) {
    hlo_module_free(NULL);
    hlo_modules_free(NULL, 0);
    hlo_report_free(NULL);
    hlo_dump_free(NULL);
    hlo_history_free(NULL);
    hlo_arrays_free(NULL);
    hlo_bisection_free(NULL);
    hlo_plan_free(NULL);
    hlo_pjrt_free(NULL);
    hlo_buffer_free(NULL);
    hlo_event_free(NULL);
    hlo_free(NULL);
    hlo_module_free(f->module); /* objects of the old allocator must not exist */
    f->module = NULL;
    assert_int_equal(hlo_set_allocator(NULL), HLO_OK);
}

static void structure(fixture *f) {
    hlo_module *m = f->module, *made;
    const hlo_shape *shape;
    const hlo_computation *extra;
    assert_int_equal(hlo_module_new("m", NULL, &made), HLO_OK);
    hlo_module_free(made);
    assert_int_equal(hlo_module_new("", NULL, &made), HLO_INVALID_USAGE);
    assert_done(f, hlo_shape_new_array(m, HLO_TYPE_F32, 0, NULL, NULL, NULL, &shape));
    assert_done(f, hlo_shape_new_tuple(m, 0, NULL, NULL, &shape));
    assert_done(f, hlo_shape_parse(m, "f32[2]", NULL, &shape));
    assert_int_equal(hlo_shape_parse(m, "f32", NULL, &shape), HLO_INVALID_INPUT);
    assert_done(f, hlo_instruction_new_scalar(m, f->main, NULL, HLO_TYPE_F32, 1, NULL, NULL));
    assert_done(f, hlo_instruction_clone(m, f->d, f->main, NULL, NULL, NULL, NULL));
    assert_done(f, hlo_instruction_move(m, f->late, NULL, NULL));
    assert_done(f, hlo_instruction_rename(m, f->late, "later", NULL));
    assert_done(f, hlo_computation_new(m, NULL, NULL, NULL, NULL));
    assert_done(f, hlo_computation_clone(m, f->add, NULL, NULL, NULL));
    assert_done(f, hlo_computation_new(m, "extra", NULL, NULL, &extra));
    assert_done(f, hlo_computation_move(m, extra, NULL, NULL));
    assert_done(f, hlo_computation_rename(m, extra, "other", NULL));
    assert_done(f, hlo_computation_remove(m, extra, NULL));
    assert_int_equal(hlo_computation_remove(m, extra, NULL), HLO_INVALID_USAGE);
}

static void read_constant(fixture *f) {
    double value;
    assert_true(hlo_instruction_constant_number(f->c, 0, &value, NULL));
    assert_true(value == 3);
}

static void print_diag(fixture *f) {
    (void)f;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hlo_diag_print(&(hlo_diag){.severity = HLO_ERROR, .message = "none"}, 0, hlo_file_writer(out));
    fclose(out);
    assert_string_equal(text, "error: none\n");
    free(text);
}

static void parse_text(fixture *f) {
    hlo_module *made = f->module;
    assert_int_equal(hlo_module_parse(WRONG, strlen(WRONG), "w.hlo", NULL, &made),
                     HLO_INVALID_INPUT);
    assert_null(made);
    made = f->module;
    assert_int_equal(hlo_module_parse(NULL, 0, "w.hlo", NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
}

static void parse_file(fixture *f) {
    hlo_module *made = f->module, **all = &made;
    size_t count = 7;
    assert_int_equal(hlo_module_parse_file(MISSING, NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
    assert_int_equal(hlo_modules_parse_file(MISSING, NULL, NULL, &all, &count), HLO_INVALID_INPUT);
    assert_null(all);
    assert_int_equal(count, 0);
}

static void parse_proto(fixture *f) {
    hlo_module *made = f->module;
    assert_int_equal(hlo_module_parse_proto("\xff", 1, "w.pb", NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
    assert_false(hlo_proto_recognize(NULL, 0));
}

static void print_module(fixture *f) {
    hlo_print_options options;
    char *text, *wanted;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hlo_print_options_init(&options, HLO_PRINT_LONG);
    assert_done(f, hlo_module_print(f->module, NULL, hlo_file_writer(out)));
    fclose(out);
    assert_done(f, hlo_module_to_text(f->module, &options, &wanted, &size));
    assert_string_equal(text, wanted);
    free(text);
    hlo_free(wanted);
    assert_done(f, hlo_module_to_text(f->module, NULL, &wanted, &size));
    hlo_free(wanted);
    out = fopen("/dev/null", "r");
    assert_int_equal(hlo_module_print(f->module, &options, hlo_file_writer(out)),
                     HLO_INVALID_INPUT);
    assert_int_equal(
        hlo_module_print_proto(f->module, HLO_PROTO_BINARY, NULL, hlo_file_writer(out)),
        HLO_INVALID_INPUT);
    fclose(out);
}

static void verify_module(fixture *f) {
    assert_done(f, hlo_module_verify(f->module, NULL, NULL));
    break_module(f);
    assert_int_equal(hlo_module_verify(f->module, NULL, NULL), HLO_INVALID_INPUT);
}

static void format_shape(fixture *f) {
    const hlo_shape *shape = hlo_instruction_shape(f->a);
    assert_int_equal(hlo_shape_format(shape, true, NULL, 0), strlen("f32[4,8]{1,0}"));
}

/* ---------------------------------------------------------------------------------------- edits */

static void new_instruction(fixture *f) {
    hlo_instruction_options options;
    const hlo_instruction *made = f->a;
    hlo_instruction_options_init(&options);
    assert_int_equal(hlo_instruction_new(f->module, f->main, &options, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_null(made);
    options.opcode = HLO_OP_AFTER_ALL;
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, NULL, NULL));
    assert_done(f, hlo_instruction_new(f->module, f->main, &options, NULL, &made));
    assert_string_equal(hlo_instruction_name(made), "after-all.1");
    options.opcode = HLO_OP_ADD;
    assert_int_equal(hlo_instruction_new(f->module, f->main, &options, NULL, &made),
                     HLO_INVALID_INPUT);
    assert_null(made);
}

static void new_constant(fixture *f) {
    const hlo_instruction *made;
    size_t size;
    const int64_t wrong = -1;
    assert_done(f, hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 0, NULL,
                                                NULL, NULL, &made));
    assert_int_equal(*(const float *)hlo_instruction_constant(made, &size), 0);
    assert_done(f, hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 0, NULL,
                                                NULL, NULL, NULL));
    assert_int_equal(hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_F32, 1, &wrong,
                                                  NULL, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_null(made);
    assert_int_equal(hlo_instruction_new_constant(f->module, f->main, NULL, HLO_TYPE_INVALID, 0,
                                                  NULL, NULL, NULL, NULL),
                     HLO_INVALID_USAGE);
}

static void new_parameter(fixture *f) {
    const hlo_instruction *made;
    assert_done(f, hlo_instruction_new_parameter(f->module, f->main, shape_of(f->module, "f32[]"),
                                                 NULL, NULL, &made));
    assert_string_equal(hlo_instruction_name(made), "parameter");
    assert_done(f, hlo_instruction_new_parameter(f->module, f->main, shape_of(f->module, "f32[]"),
                                                 NULL, NULL, NULL));
}

static void new_text(fixture *f) {
    static const char max[] = "ENTRY max {\n  a = f32[] parameter(0)\n  b = f32[] parameter(1)\n"
                              "  ROOT m = f32[] maximum(a, b)\n}\n";
    const hlo_computation *made = f->add;
    assert_done(f, hlo_computation_new_text(f->module, max, strlen(max), NULL, NULL));
    assert_int_equal(hlo_computation_new_text(f->module, WRONG, strlen(WRONG), NULL, &made),
                     HLO_INVALID_INPUT);
    assert_null(made);
}

static void change(fixture *f) {
    assert_int_equal(hlo_instruction_replace(f->module, f->a, f->b, NULL), HLO_INVALID_INPUT);
    assert_int_equal(hlo_instruction_set_operand(f->module, f->d, 0, f->b, NULL),
                     HLO_INVALID_INPUT);
    assert_int_equal(hlo_instruction_set_operand(f->module, f->d, 9, f->b, NULL),
                     HLO_INVALID_USAGE);
    assert_int_equal(
        hlo_computation_set_root(f->module, f->main, hlo_computation_root(f->add), NULL),
        HLO_INVALID_USAGE);
    assert_int_equal(hlo_instruction_remove(f->module, f->a, NULL), HLO_INVALID_USAGE);
    assert_int_equal(hlo_instruction_set_attribute(f->module, f->n, "dimensions", "{0}", NULL),
                     HLO_INVALID_INPUT);
    const char *value;
    assert_done(f, hlo_instruction_attribute(f->n, "metadata", &value));
    assert_non_null(value);
    assert_done(f, hlo_instruction_set_attribute(f->module, f->n, "metadata", NULL, NULL));
    assert_done(f, hlo_instruction_attribute(f->n, "metadata", &value));
    assert_null(value);
    assert_done(f, hlo_instruction_set_attribute(f->module, f->n, "metadata", NULL, NULL));
}

/* --------------------------------------------------------------------------------------- passes */

static void optimize(fixture *f) {
    hlo_pass_options options;
    hlo_report *report = NULL;
    assert_done(f, hlo_module_optimize(f->module, NULL, NULL));
    assert_done(f, hlo_module_optimize(f->module, NULL, &report));
    hlo_report_free(report);
    hlo_pass_options_init(&options);
    options.rules_text = "rule {";
    assert_done(f, hlo_pass_options_check(&options));
    report = (hlo_report *)f;
    assert_int_equal(hlo_module_optimize(f->module, &options, &report), HLO_INVALID_INPUT);
    assert_null(report);
    assert_done(f, hlo_pass_options_check(NULL));
    FILE *out = fopen("/dev/null", "w");
    assert_done(f, hlo_passes_print(NULL, hlo_file_writer(out)));
    fclose(out);
    options.passes = "none";
    report = (hlo_report *)f;
    assert_int_equal(hlo_module_optimize(f->module, &options, &report), HLO_INVALID_USAGE);
    assert_null(report);
    assert_int_equal(hlo_pass_options_check(&options), HLO_INVALID_USAGE);
}

static void quantize(fixture *f) {
    assert_done(f, hlo_module_quantize(f->module, NULL));
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.quantize = "none";
    assert_int_equal(hlo_module_quantize(f->module, &options), HLO_INVALID_USAGE);
}

static void extract(fixture *f) {
    assert_int_equal(hlo_module_extract(f->module, "none", NULL, NULL), HLO_INVALID_INPUT);
}

static void split(fixture *f) {
    hlo_module *ahead = f->module;
    assert_int_equal(hlo_module_split(f->module, "none", NULL, &ahead), HLO_INVALID_INPUT);
    assert_null(ahead);
    assert_int_equal(hlo_module_split(f->module, "", NULL, &ahead), HLO_INVALID_INPUT);
}

static void report(fixture *f) {
    hlo_report *made;
    hlo_page_options page;
    hlo_page_options_init(&page);
    FILE *out = fopen("/dev/null", "w");
    assert_done(f, hlo_module_optimize(f->module, NULL, &made));
    const hlo_report *const all[] = {made};
    assert_done(f, hlo_reports_page(all, 1, NULL, hlo_file_writer(out)));
    assert_done(f, hlo_reports_page(all, 1, &page, hlo_file_writer(out)));
    page.baseline = "/nonexistent";
    assert_int_equal(hlo_reports_page(all, 1, &page, hlo_file_writer(out)), HLO_INVALID_INPUT);
    assert_done(f, hlo_reports_gate(all, 1, NULL, NULL, false, NULL, 0));
    assert_int_equal(hlo_reports_gate(all, 1, "all", "", false, NULL, 0), HLO_MISMATCH);
    assert_int_equal(hlo_reports_gate(all, 1, "some", NULL, false, NULL, 0), HLO_INVALID_USAGE);
    assert_int_equal(hlo_reports_gate(all, 1, NULL, "none", false, NULL, 0), HLO_INVALID_USAGE);
    assert_done(f, hlo_reports_check_wide(all, 1, NULL, NULL, NULL));
    assert_int_equal(hlo_reports_check_wide(all, 1, "none", NULL, NULL), HLO_INVALID_INPUT);
    assert_int_equal(hlo_reports_baseline(all, 1, MISSING, false, NULL, NULL, 0),
                     HLO_INVALID_INPUT);
    fclose(out);
    hlo_report_free(made);
}

static void dump(fixture *f) {
    char folder[] = "/tmp/hlo-null-XXXXXX", path[64];
    hlo_dump *made;
    hlo_history *history;
    assert_int_equal(hlo_dump_open(MISSING, NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/module_0000.m.before_optimizations.txt", folder);
    FILE *out = fopen(path, "w");
    assert_done(f, hlo_module_print(f->module, NULL, hlo_file_writer(out)));
    fclose(out);
    assert_done(f, hlo_dump_open(folder, NULL, &made));
    assert_done(f, hlo_history_new(made, 0, NULL, &history));
    hlo_history_free(history);
    remove(path);
    remove(folder);
    assert_int_equal(hlo_history_new(made, 0, NULL, &history), HLO_INVALID_INPUT);
    assert_null(history);
    hlo_dump_free(made);
}

/* ----------------------------------------------------------------------------------------- runs */

static void append(fixture *f) {
    hlo_arrays *arrays;
    assert_done(f, hlo_arrays_new(&arrays));
    assert_done(f, hlo_arrays_append(arrays, HLO_TYPE_F32, 0, NULL, NULL));
    assert_int_equal(*(const float *)hlo_arrays_at(arrays, 0)->data, 0);
    hlo_arrays_free(arrays);
}

static void read_arrays(fixture *f) {
    hlo_arrays *arrays = (hlo_arrays *)f;
    assert_int_equal(hlo_arrays_read(MISSING, f->module, HLO_INPUTS, NULL, &arrays),
                     HLO_INVALID_INPUT);
    assert_null(arrays);
    arrays = (hlo_arrays *)f;
    assert_int_equal(hlo_arrays_read_each(MISSING, f->module, HLO_INPUTS, 2, NULL, &arrays),
                     HLO_INVALID_INPUT);
    assert_null(arrays);
    arrays = (hlo_arrays *)f;
    assert_int_equal(hlo_arrays_recorded(f->module, HLO_INPUTS, 2, NULL, &arrays), HLO_OK);
    assert_null(arrays);
}

static void draw(fixture *f) {
    hlo_module *module = parse("ENTRY e {\n  ROOT t = f32[?] parameter(0)\n}\n");
    hlo_arrays *arrays = (hlo_arrays *)f;
    assert_int_equal(hlo_arrays_draw(module, 1, NULL, &arrays), HLO_INVALID_INPUT);
    assert_null(arrays);
    arrays = (hlo_arrays *)f;
    assert_int_equal(hlo_arrays_draw_each(module, HLO_DRAW_REALISTIC, 1, 2, NULL, &arrays),
                     HLO_INVALID_INPUT);
    assert_null(arrays);
    hlo_module_free(module);
}

static void plan(fixture *f) {
    hlo_arrays *none, *inputs = inputs_of(f), *outputs = inputs;
    hlo_plan *made = plan_of(f);
    double seconds;
    assert_done(f, hlo_arrays_new(&none));
    assert_int_equal(hlo_plan_check(made, none, NULL), HLO_INVALID_INPUT);
    assert_int_equal(hlo_plan_run(made, none, NULL, &outputs), HLO_INVALID_INPUT);
    assert_null(outputs);
    assert_int_equal(hlo_plan_time(made, 1, NULL, &seconds), HLO_INVALID_USAGE);
    assert_done(f, hlo_plan_run(made, inputs, NULL, &outputs));
    assert_done(f, hlo_plan_time(made, 1, NULL, &seconds));
    assert_null(hlo_plan_values(made));
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_arrays_free(none);
    hlo_plan_free(made);
    break_module(f);
    assert_int_equal(hlo_plan_new(f->module, NULL, NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
}

static void record_amaxes(fixture *f) {
    FILE *out = fopen("/dev/null", "w");
    assert_int_equal(hlo_module_record_amaxes(f->module, NULL, 0, NULL, hlo_file_writer(out)),
                     HLO_OK);
    fclose(out);
}

static void bisect(fixture *f) {
    hlo_bisection *made;
    hlo_arrays *none, *inputs = inputs_of(f);
    assert_done(f, hlo_arrays_new(&none));
    made = (hlo_bisection *)f;
    assert_int_equal(hlo_module_bisect(f->module, NULL, NULL, none, NULL, &made),
                     HLO_INVALID_INPUT);
    assert_null(made);
    assert_done(f, hlo_module_bisect(f->module, NULL, NULL, inputs, NULL, &made));
    FILE *out = fopen("/dev/null", "w");
    hlo_bisection_print(made, hlo_file_writer(out));
    fclose(out);
    hlo_bisection_free(made);
    hlo_arrays_free(inputs);
    hlo_arrays_free(none);
}

static void budget(fixture *f) {
    hlo_bisection *made = (hlo_bisection *)f;
    hlo_arrays *none, *inputs = inputs_of(f);
    const hlo_arrays *sets[] = {inputs};
    hlo_pass_options pass;
    hlo_pass_options_init(&pass);
    assert_int_equal(hlo_module_budget(f->module, NULL, NULL, sets, 1, 1, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_null(made);
    pass.quantize = "current";
    assert_int_equal(hlo_module_budget(f->module, &pass, NULL, NULL, 0, 1, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_int_equal(hlo_module_budget(f->module, &pass, NULL, sets, 1, -1, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_int_equal(hlo_module_budget(f->module, &pass, NULL, sets, 1, (double)NAN, NULL, &made),
                     HLO_INVALID_USAGE);
    assert_done(f, hlo_arrays_new(&none));
    assert_int_equal(
        hlo_module_budget(f->module, &pass, NULL, (const hlo_arrays *[]){none}, 1, 1, NULL, &made),
        HLO_INVALID_INPUT);
    assert_null(made);
    assert_done(f, hlo_module_budget(f->module, &pass, NULL, sets, 1, 1, NULL, &made));
    const hlo_budget *selection = hlo_bisection_budget(made);
    assert_non_null(selection->report);
    assert_string_equal(selection->wide, "");
    hlo_bisection_free(made);
    assert_done(f, hlo_module_bisect(f->module, NULL, NULL, inputs, NULL, &made));
    assert_null(hlo_bisection_budget(made));
    hlo_bisection_free(made);
    hlo_arrays_free(inputs);
    hlo_arrays_free(none);
}

static void print_backend(fixture *f) {
    (void)f;
    assert_int_equal(hlo_backend_print("none", NULL, hlo_file_writer(stderr)), HLO_INVALID_USAGE);
    assert_int_equal(hlo_backend_print("cuda", NULL, hlo_file_writer(stderr)), HLO_INVALID_INPUT);
}

static void compare(fixture *f) {
    hlo_comparison comparison;
    hlo_arrays *one = inputs_of(f), *other;
    assert_done(f, hlo_arrays_draw(f->module, 2, NULL, &other));
    assert_done(f, hlo_arrays_compare(one, one, (hlo_writer){0}));
    assert_int_equal(hlo_arrays_compare(one, other, (hlo_writer){0}), HLO_MISMATCH);
    hlo_comparison_init(&comparison);
    comparison.found = one;
    comparison.expected = other;
    assert_int_equal(hlo_arrays_compare_by(&comparison, (hlo_writer){0}), HLO_MISMATCH);
    FILE *out = fopen("/dev/null", "w");
    assert_int_equal(hlo_arrays_compare_by(&comparison, hlo_file_writer(out)), HLO_MISMATCH);
    fclose(out);
    hlo_arrays_free(one);
    hlo_arrays_free(other);
}

static void sample(fixture *f) {
    hlo_plan_options options;
    hlo_comparison comparison;
    hlo_arrays *none, *inputs = inputs_of(f), *outputs;
    hlo_plan *made;
    hlo_plan_options_init(&options);
    options.bounds = true;
    assert_done(f, hlo_plan_new(f->module, &options, NULL, &made));
    assert_done(f, hlo_plan_run(made, inputs, NULL, &outputs));
    hlo_comparison_init(&comparison);
    comparison.found = comparison.expected = outputs;
    assert_done(f, hlo_arrays_sample(outputs, &comparison, f->module, NULL, inputs, NULL));
    assert_done(f, hlo_arrays_new(&none));
    assert_int_equal(hlo_arrays_sample(outputs, &comparison, f->module, NULL, none, NULL),
                     HLO_INVALID_INPUT);
    hlo_arrays_free(none);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(made);
}

static void buffers(fixture *f) {
    hlo_plan_options options;
    hlo_plan *made;
    hlo_buffer *in[2], *out[1], *none = (hlo_buffer *)f;
    hlo_event *event;
    struct DLManagedTensorVersioned *tensor;
    struct DLManagedTensor *older;
    char byte;
    hlo_plan_options_init(&options);
    options.resident = true;
    assert_done(f, hlo_plan_new(f->module, &options, NULL, &made));
    assert_int_equal(hlo_buffer_new(made, 9, NULL, NULL, &none), HLO_INVALID_INPUT);
    assert_null(none);
    for (size_t i = 0; i < 2; i++) assert_done(f, hlo_buffer_new(made, i, NULL, NULL, &in[i]));
    assert_int_equal(hlo_plan_run_async(made, in, 1, NULL, NULL, out, NULL), HLO_INVALID_INPUT);
    assert_done(f, hlo_plan_run_async(made, in, 2, NULL, NULL, out, NULL));
    hlo_buffer_free(out[0]);
    assert_done(f, hlo_plan_run_async(made, in, 2, NULL, NULL, out, &event));
    assert_done(f, hlo_event_wait(event, NULL));
    hlo_event_free(event);
    assert_int_equal(hlo_buffer_read(out[0], &byte, 1, NULL), HLO_INVALID_USAGE);
    assert_done(f, hlo_buffer_to_dlpack(in[0], NULL, NULL, &tensor));
    none = (hlo_buffer *)f;
    assert_int_equal(hlo_buffer_from_dlpack(made, 1, tensor, NULL, &none), HLO_INVALID_INPUT);
    assert_null(none);
    assert_done(f, hlo_buffer_from_dlpack(made, 0, tensor, NULL, &none));
    hlo_buffer_free(none);
    assert_done(f, hlo_buffer_to_dlpack_unversioned(in[0], NULL, NULL, &older));
    assert_done(f, hlo_buffer_from_dlpack_unversioned(made, 0, older, NULL, &none));
    hlo_buffer_free(none);
    for (size_t i = 0; i < 2; i++) hlo_buffer_free(in[i]);
    hlo_buffer_free(out[0]);
    hlo_plan_free(made);
}

static void pjrt(fixture *f) {
    hlo_pjrt_options options;
    hlo_pjrt *made = (hlo_pjrt *)f;
    assert_int_equal(hlo_pjrt_new(f->module, NULL, NULL, &made), HLO_INVALID_USAGE);
    assert_null(made);
    hlo_pjrt_options_init(&options);
    options.plugin = MISSING;
    assert_int_equal(hlo_pjrt_new(f->module, &options, NULL, &made), HLO_INVALID_INPUT);
    assert_null(made);
}

/* ------------------------------------------------------------------------------------ the table */

/* Each exported function, with the case that passes NULL for its optional pointers; NULL if the
 * function has no optional pointer. */
static const struct row {
    const char *function;
    void (*call)(fixture *f);
} rows[] = {
#define FUNCTION(name, call) {#name, call},
#include "unit/api/function.def"
#undef FUNCTION
};

static char *read_files(const char *pattern) {
    glob_t found;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        FILE *in = fopen(found.gl_pathv[i], "r");
        assert_non_null(in);
        for (int c; (c = getc(in)) != EOF;) putc(c, out);
        fclose(in);
    }
    globfree(&found);
    fclose(out);
    return text;
}

static void test_table(void **state) {
    (void)state;
    char *listed = read_files(HLO_MODELS "/../../tests/embed/exports.txt");
    char *headers = read_files(HLO_MODELS "/../../include/hlo/*.h"), pattern[128];
    size_t count = 0;
    for (const char *at = listed; (at = strchr(at, '\n')); at++) count++;
    assert_int_equal(count, sizeof rows / sizeof *rows);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *end = listed;
        for (; end && *end; end += *end == '\n') {
            const size_t length = strcspn(end, "\n");
            if (length == strlen(rows[i].function) && !strncmp(end, rows[i].function, length))
                break;
            end += length;
        }
        if (!*end) fail_msg("%s is not exported", rows[i].function);
        if (rows[i].call) continue;
        snprintf(pattern, sizeof pattern, "%s(", rows[i].function);
        char *declared = strstr(headers, pattern);
        /* Skip comments that name the function, as `name()`. */
        while (declared && declared[strlen(pattern)] == ')')
            declared = strstr(declared + 1, pattern);
        assert_non_null(declared);
        declared = strndup(declared, strcspn(declared, ";"));
        if (strstr(declared, "hlo_diag_sink") || strstr(declared, "const hlo_pass_options") ||
            strstr(declared, "const hlo_plan_options"))
            fail_msg("%s has a pointer that may be NULL, and no case", rows[i].function);
        free(declared);
    }
    free(listed);
    free(headers);
}

static void test_cases(void **state) {
    (void)state;
    void (*last)(fixture * f) = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        void *own = NULL;
        if (!rows[i].call || rows[i].call == last) continue;
        last = rows[i].call;
        assert_int_equal(set_up(&own), 0);
        last(own);
        tear_down(&own);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_cases)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
