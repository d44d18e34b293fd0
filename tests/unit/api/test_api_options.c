/* SPDX-License-Identifier: Apache-2.0 */
/* Option structs of older, smaller sizes are accepted; other sizes are rejected with an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/dump.h"
#include "hlo/memory.h"
#include "hlo/pjrt.h"
#include "hlo/runtime.h"
#include "hlo/text.h"
#include "unit/api/rules.h"

static const char TEXT[] = "HloModule m\n\n"
                           "ENTRY %main (p: f32[4]) -> f32[4] {\n"
                           "  %p = f32[4]{0} parameter(0)\n"
                           "  %m = f32[4]{0} negate(%p)\n"
                           "  ROOT %n = f32[4]{0} negate(%m)\n"
                           "}\n";

typedef struct told {
    char text[256];
    unsigned count;
} told;

static void keep(void *user, const hlo_diag *diag) {
    told *t = user;
    t->count++;
    snprintf(t->text, sizeof t->text, "%s", diag->message);
}

typedef struct fixture {
    hlo_module *module;
    hlo_arrays *arrays;
    told told;
    hlo_diag_sink sink;
} fixture;

static int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return 1;
    f->sink = (hlo_diag_sink){keep, &f->told};
    const hlo_status status = hlo_module_parse(TEXT, strlen(TEXT), "t.hlo", NULL, &f->module);
    if (status != HLO_OK || hlo_arrays_new(&f->arrays) != HLO_OK) return 1;
    *state = f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    hlo_arrays_free(f->arrays);
    hlo_module_free(f->module);
    free(f);
    return 0;
}

/* Calls a function with options of `struct_size` bytes. */
typedef hlo_status caller(fixture *f, size_t struct_size);

static hlo_status call_verify(fixture *f, size_t struct_size) {
    hlo_verify_options options;
    hlo_verify_options_init(&options);
    options.struct_size = struct_size;
    return hlo_module_verify(f->module, &options, &f->sink);
}

static hlo_status call_parse(fixture *f, size_t struct_size) {
    hlo_parse_options options;
    hlo_module **modules;
    size_t count;
    hlo_parse_options_init(&options);
    options.struct_size = struct_size;
    return hlo_modules_parse_file(HLO_MODELS, &options, &f->sink, &modules, &count);
}

static hlo_status call_print(fixture *f, size_t struct_size) {
    hlo_print_options options;
    char *text;
    size_t size;
    hlo_print_options_init(&options, HLO_PRINT_SHORT);
    options.struct_size = struct_size;
    options.sink = &f->sink;
    hlo_status status = hlo_module_to_text(f->module, &options, &text, &size);
    hlo_free(text);
    return status;
}

static hlo_status call_optimize(fixture *f, size_t struct_size) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.struct_size = struct_size;
    options.sink = &f->sink;
    return hlo_module_optimize(f->module, &options, NULL);
}

static hlo_status call_check(fixture *f, size_t struct_size) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.struct_size = struct_size;
    options.sink = &f->sink;
    return hlo_pass_options_check(&options);
}

static hlo_status call_list(fixture *f, size_t struct_size) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.struct_size = struct_size;
    options.sink = &f->sink;
    return hlo_passes_print(&options, hlo_file_writer(stdout));
}

static hlo_status call_history(fixture *f, size_t struct_size) {
    hlo_pass_options options;
    hlo_dump *dump;
    hlo_history *history;
    hlo_pass_options_init(&options);
    options.struct_size = struct_size;
    options.sink = &f->sink;
    char folder[] = "/tmp/hlo-size-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/module_0000.m.before_optimizations.txt", folder);
    fclose(fopen(path, "w"));
    assert_int_equal(hlo_dump_open(folder, NULL, &dump), HLO_OK);
    const hlo_status status = hlo_history_new(dump, 0, &options, &history);
    hlo_dump_free(dump);
    remove(path);
    remove(folder);
    return status;
}

static hlo_status call_plan(fixture *f, size_t struct_size) {
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_plan_options_init(&options);
    options.struct_size = struct_size;
    return hlo_plan_new(f->module, &options, &f->sink, &plan);
}

static hlo_status call_sample(fixture *f, size_t struct_size) {
    hlo_comparison comparison;
    hlo_comparison_init(&comparison);
    comparison.struct_size = struct_size;
    comparison.found = comparison.expected = f->arrays;
    return hlo_arrays_sample(f->arrays, &comparison, f->module, NULL, f->arrays, &f->sink);
}

static hlo_status call_pjrt(fixture *f, size_t struct_size) {
    hlo_pjrt_options options;
    hlo_pjrt *pjrt;
    hlo_pjrt_options_init(&options);
    options.struct_size = struct_size;
    options.plugin = "none.so";
    return hlo_pjrt_new(f->module, &options, &f->sink, &pjrt);
}

static void test_wrong_sizes(void **state) {
    static const struct {
        const char *type;
        caller *call;
        size_t size;
        bool has_sink; /* the two smallest sizes do not include the sink */
    } rows[] = {
        {"hlo_verify_options", call_verify, sizeof(hlo_verify_options), false},
        {"hlo_parse_options", call_parse, sizeof(hlo_parse_options), false},
        {"hlo_print_options", call_print, sizeof(hlo_print_options), true},
        {"hlo_pass_options", call_optimize, sizeof(hlo_pass_options), true},
        {"hlo_pass_options", call_check, sizeof(hlo_pass_options), true},
        {"hlo_pass_options", call_list, sizeof(hlo_pass_options), true},
        {"hlo_pass_options", call_history, sizeof(hlo_pass_options), true},
        {"hlo_plan_options", call_plan, sizeof(hlo_plan_options), false},
        {"hlo_comparison", call_sample, sizeof(hlo_comparison), false},
        {"hlo_pjrt_options", call_pjrt, sizeof(hlo_pjrt_options), false},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const size_t wrong[] = {0, 4, rows[i].size - 4, rows[i].size + 8, SIZE_MAX};
        for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
            f->told = (told){.count = 0};
            assert_int_equal(rows[i].call(f, wrong[w]), HLO_INVALID_USAGE);
            if (rows[i].has_sink && wrong[w] < 2 * sizeof(size_t)) {
                assert_int_equal(f->told.count, 0);
                continue;
            }
            assert_int_equal(f->told.count, 1);
            assert_non_null(strstr(f->told.text, rows[i].type));
            assert_non_null(strstr(f->told.text, "struct_size"));
        }
    }
}

/* Calls functions without a sink. */
static void test_sizes_without_sink(void **state) {
    fixture *f = *state;
    hlo_page_options page;
    hlo_page_options_init(&page);
    page.struct_size--;
    assert_int_equal(hlo_reports_page(NULL, 0, &page, hlo_file_writer(stderr)), HLO_INVALID_USAGE);
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.struct_size--;
    assert_int_equal(hlo_reports_print(NULL, 0, &remarks, hlo_file_writer(stderr)),
                     HLO_INVALID_USAGE);
    hlo_comparison comparison;
    hlo_comparison_init(&comparison);
    comparison.found = comparison.expected = f->arrays;
    assert_int_equal(hlo_arrays_compare_by(&comparison, (hlo_writer){0}), HLO_OK);
    comparison.struct_size++;
    assert_int_equal(hlo_arrays_compare_by(&comparison, (hlo_writer){0}), HLO_INVALID_USAGE);
}

/* A program that was compiled against an older patch release has a smaller struct. */
static void test_older_size(void **state) {
    fixture *f = *state;
    const size_t older = offsetof(hlo_pass_options, framework_files);
    hlo_pass_options options;
    memset(&options, 0xa5, sizeof options);
    hlo_pass_options_init_sized(&options, older);
    unsigned char behind[sizeof options - offsetof(hlo_pass_options, framework_files)];
    memset(behind, 0xa5, sizeof behind);
    assert_memory_equal((char *)&options + older, behind, sizeof behind);
    assert_int_equal(options.struct_size, older);
    assert_null(options.target);
    assert_int_equal(hlo_pass_options_check(&options), HLO_OK);
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_OK);
    hlo_pass_options_init_sized(&options, sizeof(size_t));
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_OK);
    assert_int_equal(hlo_module_optimize(f->module, NULL, NULL), HLO_OK);
    hlo_comparison comparison;
    hlo_comparison_init(&comparison);
    comparison.struct_size = sizeof(size_t);
    assert_int_equal(hlo_arrays_compare_by(&comparison, (hlo_writer){0}), HLO_INVALID_USAGE);
}

static void test_rules_text(void **state) {
    fixture *f = *state;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "algebra,dce";
    options.sink = &f->sink;
    options.rules_text = rules;
    char *text;
    size_t size;
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_OK);
    assert_int_equal(hlo_module_to_text(f->module, NULL, &text, &size), HLO_OK);
    assert_null(strstr(text, "negate"));
    hlo_free(text);
    options.rules_text = "rule";
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_INVALID_INPUT);
    assert_true(f->told.count > 0);
}

/* Checks that the values in `options` are rejected, with an error that contains `part`. */
static void assert_wrong(fixture *f, hlo_pass_options options, const char *part) {
    options.sink = &f->sink;
    f->told.count = 0;
    assert_int_equal(hlo_pass_options_check(&options), HLO_INVALID_USAGE);
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_INVALID_USAGE);
    assert_int_equal(f->told.count, 2);
    if (!strstr(f->told.text, part)) fail_msg("'%s' does not have '%s'", f->told.text, part);
}

static void test_wrong_fields(void **state) {
    fixture *f = *state;
    hlo_pass_options options, wrong;
    hlo_pass_options_init(&options);
    wrong = options;
    wrong.passes = NULL;
    assert_wrong(f, wrong, "passes must not be NULL");
    wrong = options;
    static const char *const no_versions[] = {"", "12", "12.", ".8", "0.1", "12.8.1", "112.8"};
    for (size_t i = 0; i < sizeof no_versions / sizeof *no_versions; i++) {
        wrong.cuda = no_versions[i];
        assert_wrong(f, wrong, "invalid CUDA version '");
    }
    wrong = options;
    static const char *const no_targets[] = {"", "90", "sm_9", "sm_901", "sm_90a", "9.0"};
    for (size_t i = 0; i < sizeof no_targets / sizeof *no_targets; i++) {
        wrong.target = no_targets[i];
        assert_wrong(f, wrong, "unknown target '");
    }
    wrong = options;
    wrong.emit = (hlo_emit_form)(HLO_EMIT_DQ + 1);
    assert_wrong(f, wrong, "invalid value 4 for emit");
    wrong = options;
    wrong.ragged = (hlo_ragged_form)(HLO_RAGGED_KEEP + 1);
    assert_wrong(f, wrong, "invalid value 3 for ragged");
    wrong = options;
    wrong.quantize = "row";
    assert_wrong(f, wrong, "invalid value 'row' for quantize");
    wrong.quantize = "rows,";
    assert_wrong(f, wrong, "invalid value 'rows,' for quantize");
    wrong.quantize = "mx,attention,attention";
    assert_wrong(f, wrong, "invalid value 'mx,attention,attention' for quantize");
    wrong.quantize = "static";
    assert_wrong(f, wrong, "quantize=static requires amaxes");
    wrong.quantize = "current";
    wrong.amaxes = "amaxes.json";
    assert_wrong(f, wrong, "amaxes requires quantize=static");
    wrong.amaxes = NULL;
    wrong.passes = "cse";
    assert_wrong(f, wrong, "quantize requires the pass quantize-wide in passes");
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.format = (hlo_remarks_format)(HLO_REMARKS_MARKDOWN + 1);
    assert_int_equal(hlo_reports_print(NULL, 0, &remarks, hlo_file_writer(stdout)),
                     HLO_INVALID_USAGE);
    hlo_remarks_options_init(&remarks);
    remarks.which = (hlo_remarks)(HLO_REMARKS_SUMMARY + 1);
    assert_int_equal(hlo_reports_print(NULL, 0, &remarks, hlo_file_writer(stdout)),
                     HLO_INVALID_USAGE);
}

static void test_wrong_plan(void **state) {
    fixture *f = *state;
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_plan_options_init(&options);
    options.backend = "cuda";
    options.target = "sm_10";
    assert_int_equal(hlo_plan_new(f->module, &options, &f->sink, &plan), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->told.text, "unknown target 'sm_10'"));
    options.target = "sm_90";
    options.cuda = "1208";
    assert_int_equal(hlo_plan_new(f->module, &options, &f->sink, &plan), HLO_INVALID_USAGE);
    assert_non_null(strstr(f->told.text, "invalid CUDA version '1208'"));
}

static void test_wrong_form(void **state) {
    fixture *f = *state;
    hlo_print_options options;
    char *text;
    size_t size;
    hlo_print_options_init(&options, (hlo_print_form)44);
    assert_int_equal(hlo_module_to_text(f->module, &options, &text, &size), HLO_INVALID_USAGE);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_wrong_sizes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_sizes_without_sink, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_older_size, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_rules_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_fields, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_wrong_form, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
