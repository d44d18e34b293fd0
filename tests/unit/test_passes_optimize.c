/* hlo_module_optimize(): its defaults, what it refuses, and what it leaves alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/pass.h"
#include "hlo/text.h"
#include "ir/ir.h"

static const char TEXT[] =
    "HloModule m\n\n"
    "%f (x: bf16[16,16]) -> bf16[16,16] {\n"
    "  %x = bf16[16,16]{1,0} parameter(0)\n"
    "  %dead = bf16[16,16]{1,0} negate(%x)\n"
    "  ROOT %d = bf16[16,16]{1,0} dot(%x, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "}\n\n"
    "ENTRY %main (p: bf16[16,16]) -> bf16[16,16] {\n"
    "  %p = bf16[16,16]{1,0} parameter(0)\n"
    "  ROOT %c = bf16[16,16]{1,0} call(%p), to_apply=%f\n"
    "}\n";

static hlo_module *parse(void) {
    hlo_module *module;
    assert_int_equal(hlo_module_parse(TEXT, strlen(TEXT), "t.hlo", NULL, &module), HLO_OK);
    return module;
}

/* The caller frees the text. */
static char *print(const hlo_module *module) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_int_equal(hlo_module_print(module, out), HLO_OK);
    fclose(out);
    return text;
}

static void test_nothing_fires(void **state) {
    (void)state;
    hlo_module *module = parse();
    char *before = print(module);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    hlo_report *report;
    assert_int_equal(hlo_module_optimize(module, &options, &report), HLO_OK);
    assert_int_equal(hlo_report_count(report), 1);
    assert_string_equal(hlo_report_verdict(report, 0)->reason, "not-quantised");
    assert_string_equal(hlo_report_verdict(report, 0)->instr, "d");
    char *after = print(module);
    assert_string_equal(before, after);
    /* The module that came back can be rewritten again, and the report does not need it. */
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    hlo_module_free(module);
    assert_string_equal(hlo_report_verdict(report, 0)->shape, "bf16[16,16]");
    hlo_report_free(report);
    free(before);
    free(after);
}

static void test_named_pass_stays(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "inline,dce";
    options.verify_each = true;
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    assert_ptr_equal(module->first, module->entry);
    assert_int_equal(module->entry->instr_count, 2);
    hlo_module_free(module);
}

static void count_errors(void *user, const hlo_diag *diag) {
    assert_int_equal(diag->severity, HLO_ERROR);
    ++*(int *)user;
}

static void test_refusals(void **state) {
    (void)state;
    int errors = 0;
    const hlo_diag_sink sink = {.emit = count_errors, .user = &errors};
    hlo_pass_options good;
    hlo_pass_options_init(&good);
    good.sink = &sink;
    assert_int_equal(hlo_pass_options_check(&good), HLO_OK);
    hlo_pass_options bad[5] = {good, good, good, good, good};
    bad[0].passes = "dce,nonsense";
    bad[1].target = 70;
    bad[2].cuda_minor = -1;
    bad[3].print_after = "nonsense";
    bad[3].dump = stderr;
    bad[4].print_after = "all";
    hlo_module *module = parse();
    for (int i = 0; i < 5; i++)
        assert_int_equal(hlo_module_optimize(module, &bad[i], NULL), HLO_INVALID_USAGE);
    assert_int_equal(errors, 5);
    hlo_module_free(module);
}

static void test_passes_are_told(void **state) {
    (void)state;
    assert_string_equal(hlo_pass_name(0), "default");
    for (size_t i = 0; i < hlo_pass_count(); i++) {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        options.passes = hlo_pass_name(i);
        assert_int_equal(hlo_pass_options_check(&options), HLO_OK);
        assert_true(strlen(hlo_pass_help(i)) > 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_fires),
        cmocka_unit_test(test_named_pass_stays),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_passes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
