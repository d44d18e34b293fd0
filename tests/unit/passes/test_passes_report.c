/* SPDX-License-Identifier: Apache-2.0 */
/* Tests verdicts: slots follow the changes of the passes, and every matmul has a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "passes/analysis/module_facts.h"
#include "passes/verdict/remark.h"

typedef struct fixture {
    hlo_pass_options options;
    hlo_pass_context context;
    jmp_buf recover;
} fixture;

static void open_text(fixture *f, const char *text) {
    *f = (fixture){.context = {.target = hlo_target_find(90), .options = &f->options}};
    hlo_pass_options_init(&f->options);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "t.hlo", NULL, &module), HLO_OK);
    if (setjmp(f->recover)) fail_msg("out of memory");
    hlo_arena_set_recover(module->arena, &f->recover);
    f->context.module = module;
    f->context.scratch = hlo_arena_new(&f->recover);
    f->context.report = hlo_report_new(HLO_FRAMEWORK_FILES, &f->recover);
    hlo_report_open(&f->context);
}

static void close_all(fixture *f) {
    hlo_report_free(f->context.report);
    hlo_arena_free(f->context.scratch);
    hlo_module_free(f->context.module);
}

static hlo_instruction *find(const fixture *f, const char *name) {
    for (hlo_computation *comp = f->context.module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = instr->next)
            if (strcmp(instr->name, name) == 0) return instr;
    fail_msg("no %s", name);
    return NULL;
}

static hlo_instruction *copy_of(const hlo_instruction *instr) {
    hlo_instruction *operands[] = {hlo_instr_operand(instr, 0), hlo_instr_operand(instr, 1)};
    return hlo_instr_copy(instr->parent, instr->next, instr, operands);
}

static const char TEXT[] = "HloModule m\n\n"
                           "ENTRY %main (p: bf16[16,16]) -> (bf16[16,16], bf16[16,16]) {\n"
                           "  %p = bf16[16,16]{1,0} parameter(0)\n"
                           "  %a = bf16[16,16]{1,0} dot(%p, %p), lhs_contracting_dims={1}, "
                           "rhs_contracting_dims={0}\n"
                           "  %b = bf16[16,16]{1,0} dot(%p, %p), lhs_contracting_dims={0}, "
                           "rhs_contracting_dims={0}\n"
                           "  ROOT %t = (bf16[16,16]{1,0}, bf16[16,16]{1,0}) tuple(%a, %b)\n"
                           "}\n";

static const hlo_verdict *verdict(const fixture *f, size_t index) {
    return hlo_report_verdict(f->context.report, index);
}

static void test_untouched(void **state) {
    (void)state;
    fixture f;
    open_text(&f, TEXT);
    hlo_report_close(&f.context);
    assert_int_equal(hlo_report_count(f.context.report), 2);
    assert_int_equal(verdict(&f, 0)->kind, HLO_VERDICT_WIDE);
    assert_string_equal(verdict(&f, 0)->instruction, "a");
    assert_string_equal(verdict(&f, 0)->shape, "bf16[16,16]");
    assert_string_equal(verdict(&f, 0)->operands, "bf16[16,16] bf16[16,16]");
    assert_string_equal(verdict(&f, 0)->reason, "not-quantized");
    assert_null(verdict(&f, 0)->op_name);
    assert_null(verdict(&f, 0)->source_file);
    assert_string_equal(verdict(&f, 1)->instruction, "b");
    assert_string_equal(verdict(&f, 1)->file, "t.hlo");
    assert_int_equal(verdict(&f, 1)->line, 6);
    assert_int_equal(verdict(&f, 1)->column, 3);
    close_all(&f);
}

static void test_follow_and_reason(void **state) {
    (void)state;
    fixture f;
    open_text(&f, TEXT);
    hlo_instruction *a = find(&f, "a"), *b = find(&f, "b");
    hlo_remark_reason(&f.context, b, HLO_REASON_SCALE_NOT_SCALAR, a);
    hlo_remark_reason(&f.context, a, HLO_REASON_SCALE_NOT_SCALAR, NULL);
    hlo_remark_clear(&f.context, a);
    hlo_instruction *moved = copy_of(a);
    hlo_remark_follow(&f.context, a, moved);
    hlo_instr_replace_uses(a, moved);
    hlo_instr_remove(a);
    hlo_remark_reason(&f.context, moved, HLO_REASON_CHAIN_NOT_MOVABLE, find(&f, "p"));
    hlo_report_close(&f.context);
    assert_string_equal(verdict(&f, 0)->instruction, "a");
    assert_string_equal(verdict(&f, 0)->reason, "chain-not-movable");
    assert_string_equal(verdict(&f, 0)->blocker, "p");
    assert_string_equal(verdict(&f, 1)->reason, "scale-not-scalar");
    assert_string_equal(verdict(&f, 1)->blocker, "a");
    close_all(&f);
}

static void test_merged_copied_unused(void **state) {
    (void)state;
    fixture f;
    open_text(&f, TEXT);
    hlo_instruction *a = find(&f, "a"), *b = find(&f, "b");
    hlo_instruction *copy = copy_of(a);
    hlo_remark_copy(&f.context, a, copy);
    hlo_remark_follow(&f.context, b, a); /* as if b were equal to a */
    hlo_instr_replace_uses(b, a);
    hlo_instr_remove(b);
    hlo_instr_remove(copy);
    hlo_remark_reason(&f.context, a, HLO_REASON_EPILOGUE_TAKEN, NULL);
    hlo_report_close(&f.context);
    assert_int_equal(hlo_report_count(f.context.report), 3);
    assert_string_equal(verdict(&f, 0)->reason, "epilogue-taken");
    assert_string_equal(verdict(&f, 1)->instruction, "a");
    assert_string_equal(verdict(&f, 1)->reason, "unused");
    assert_string_equal(verdict(&f, 2)->instruction, "b");
    assert_string_equal(verdict(&f, 2)->reason, "epilogue-taken");
    close_all(&f);
}

static void test_back(void **state) {
    (void)state;
    fixture f;
    open_text(&f, TEXT);
    const hlo_attempt *attempt = hlo_attempt_begin(&f.context);
    hlo_instruction *copy = copy_of(find(&f, "a"));
    hlo_remark_copy(&f.context, find(&f, "a"), copy);
    hlo_remark_reason(&f.context, copy, HLO_REASON_SCALE_NOT_SCALAR, NULL);
    hlo_attempt_undo(&f.context, attempt);
    hlo_remark_reason(&f.context, find(&f, "b"), HLO_REASON_AMAX_INIT, NULL);
    hlo_report_close(&f.context);
    assert_int_equal(hlo_report_count(f.context.report), 2);
    assert_string_equal(verdict(&f, 0)->reason, "scale-not-scalar");
    assert_string_equal(verdict(&f, 1)->reason, "amax-init");
    close_all(&f);
}

static void test_reasons_by_name(void **state) {
    (void)state;
    assert_int_equal(hlo_reason_find("not-quantized"), HLO_REASON_NOT_QUANTIZED);
    assert_int_equal(hlo_reason_find("no such reason"), HLO_REASON_COUNT);
}

static void test_limits_have_sentences(void **state) {
    (void)state;
    static const char *const names[] = {
#define HLO_LIMIT(name, test) name,
#include "matmul/table/limit.def"
#undef HLO_LIMIT
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_not_equal(hlo_reason_find(names[i]), HLO_REASON_COUNT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_follow_and_reason),
        cmocka_unit_test(test_merged_copied_unused),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_reasons_by_name),
        cmocka_unit_test(test_limits_have_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
