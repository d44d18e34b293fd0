/* SPDX-License-Identifier: Apache-2.0 */
/* Tests hlo_module_optimize(): defaults, errors, and the parts of a module that do not change. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/edit.h"
#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/text.h"
#include "ir/ir.h"
#include "matmul/call.h"

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

/* Prints a module. The caller frees the text. */
static char *print(const hlo_module *module) {
    char *text;
    size_t size;
    assert_int_equal(hlo_module_to_text(module, NULL, &text, &size), HLO_OK);
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
    assert_string_equal(hlo_report_verdict(report, 0)->reason, "not-quantized");
    assert_string_equal(hlo_report_verdict(report, 0)->instruction, "d");
    char *after = print(module);
    assert_string_equal(before, after);
    /* The resulting module can be rewritten again, and freed; the first report remains valid. */
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    hlo_module_free(module);
    assert_string_equal(hlo_report_verdict(report, 0)->shape, "bf16[16,16]");
    hlo_report_free(report);
    hlo_free(before);
    hlo_free(after);
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

/* The report has the inlined copy of a matmul instead of the original, whose computation is no
 * longer called. */
static void test_one_verdict_per_copy(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "inline";
    hlo_report *report;
    assert_int_equal(hlo_module_optimize(module, &options, &report), HLO_OK);
    assert_int_equal(hlo_report_count(report), 1);
    assert_string_equal(hlo_report_verdict(report, 0)->reason, "not-quantized");
    hlo_report_free(report);
    hlo_module_free(module);
}

/* Lints are listed separately from matmuls, in the order of the text. */
static void test_lints(void **state) {
    (void)state;
    static const char text[] = "ENTRY e {\n"
                               "  x = bf16[16,32] parameter(0)\n"
                               "  y = bf16[16,32] parameter(1)\n"
                               "  a = f8e4m3fn[16,32] convert(x)\n"
                               "  b = f8e4m3fn[16,32] convert(y)\n"
                               "  ROOT t = (f8e4m3fn[16,32], f8e4m3fn[16,32]) tuple(b, a)\n"
                               "}\n";
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "t.hlo", NULL, &module), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.lint = true;
    hlo_report *report;
    assert_int_equal(hlo_module_optimize(module, &options, &report), HLO_OK);
    assert_int_equal(hlo_report_count(report), 0);
    assert_int_equal(hlo_report_lint_count(report), 2);
    for (size_t i = 0; i < 2; i++) {
        const hlo_verdict *lint = hlo_report_lint(report, i);
        assert_int_equal(lint->kind, HLO_VERDICT_LINT);
        assert_string_equal(lint->reason, "lint-no-clamp");
        assert_string_equal(lint->instruction, i ? "b" : "a");
        assert_int_equal(lint->line, 4 + i);
        assert_null(lint->input_shape);
    }
    hlo_report_free(report);
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
    bad[1].target = "sm_70";
    bad[2].cuda = "12";
    bad[3].print_after = "nonsense";
    bad[3].dump = hlo_file_writer(stderr);
    bad[4].print_after = "all";
    hlo_module *module = parse();
    for (int i = 0; i < 5; i++)
        assert_int_equal(hlo_module_optimize(module, &bad[i], NULL), HLO_INVALID_USAGE);
    assert_int_equal(errors, 5);
    hlo_module_free(module);
}

/* Returns the text of a module and checks that the module is valid. The caller frees the text. */
static char *text_of(const hlo_module *module) {
    char *text;
    size_t size;
    assert_int_equal(hlo_module_verify(module, NULL, NULL), HLO_OK);
    assert_int_equal(hlo_module_to_text(module, NULL, &text, &size), HLO_OK);
    return text;
}

/* Checks that a failed run left the module as it was, and that another run gives the same result as
 * on a new module. Frees the module. */
static void assert_restored(hlo_module *module, const hlo_pass_options *options) {
    hlo_module *fresh = parse();
    char *expected = text_of(fresh), *found = text_of(module);
    assert_string_equal(found, expected);
    hlo_free(expected);
    hlo_free(found);
    hlo_pass_options again = *options;
    again.user_pass_count = 0;
    again.progress = NULL;
    again.passes = "inline,canonicalize,default";
    assert_int_equal(hlo_module_optimize(fresh, &again, NULL), HLO_OK);
    assert_int_equal(hlo_module_optimize(module, &again, NULL), HLO_OK);
    expected = text_of(fresh);
    found = text_of(module);
    assert_string_equal(found, expected);
    hlo_free(expected);
    hlo_free(found);
    hlo_module_free(fresh);
    hlo_module_free(module);
}

/* If memory runs out anywhere, the run returns HLO_OUT_OF_MEMORY and the module is as before. */
static void test_out_of_memory(void **state) {
    (void)state;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "inline,canonicalize,default";
    hlo_status status = HLO_OUT_OF_MEMORY;
    int failures = 0;
    for (size_t capacity = 0; status != HLO_OK; capacity += 64 + capacity / 8, failures++) {
        hlo_module *module = parse();
        hlo_arena_set_limit(module->arena, hlo_arena_used(module->arena) + capacity + 1);
        hlo_report *report = NULL;
        status = hlo_module_optimize(module, &options, &report);
        assert_true(status == HLO_OK || (status == HLO_OUT_OF_MEMORY && !report));
        hlo_report_free(report);
        hlo_arena_set_limit(module->arena, 0);
        if (status != HLO_OK)
            assert_restored(module, &options);
        else
            hlo_module_free(module);
    }
    assert_true(failures > 3);
}

/* Adds a computation, an instruction and a parameter, renames nothing, and removes an instruction;
 * then fails. */
static hlo_status change_and_fail(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    static const char text[] = "ENTRY extra { a = f32[] parameter(0) ROOT n = f32[] negate(a) }";
    const hlo_computation *entry = hlo_module_entry(module);
    const hlo_instruction *root = hlo_computation_root(entry), *made;
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_COPY;
    options.operands = &root;
    options.operand_count = 1;
    assert_int_equal(hlo_computation_new_text(module, text, strlen(text), sink, NULL), HLO_OK);
    assert_int_equal(hlo_instruction_new(module, entry, &options, sink, &made), HLO_OK);
    assert_int_equal(hlo_computation_set_root(module, entry, made, sink), HLO_OK);
    assert_int_equal(
        hlo_instruction_new_parameter(module, entry, hlo_instruction_shape(root), NULL, sink, NULL),
        HLO_OK);
    return *(const hlo_status *)user;
}

/* If a user pass fails, or produces invalid HLO, the module is as before. */
static void test_failed_pass(void **state) {
    (void)state;
    static const hlo_status statuses[] = {HLO_INVALID_INPUT, HLO_MISMATCH, HLO_STOPPED};
    hlo_user_pass pass;
    const hlo_user_pass *passes = &pass;
    hlo_pass_options options;
    hlo_user_pass_init(&pass);
    pass.name = "fail";
    pass.run = change_and_fail;
    hlo_pass_options_init(&options);
    options.user_passes = &passes;
    options.user_pass_count = 1;
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        hlo_module *module = parse();
        const hlo_instruction *root = hlo_computation_root(hlo_module_entry(module));
        pass.user = (void *)(uintptr_t)&statuses[i];
        options.passes = "default,fail";
        hlo_report *report = (hlo_report *)&options;
        assert_int_equal(hlo_module_optimize(module, &options, &report), statuses[i]);
        assert_null(report);
        assert_ptr_equal(hlo_computation_root(hlo_module_entry(module)), root);
        assert_restored(module, &options);
    }
}

typedef struct countdown {
    int left;
    char passes[64][32];
} countdown;

static bool count_down(void *user, const hlo_pass_progress *progress) {
    countdown *c = user;
    assert_int_equal(progress->struct_size, sizeof *progress);
    assert_true(progress->seconds >= 0);
    snprintf(c->passes[c->left & 63], sizeof *c->passes, "%s", progress->pass);
    return c->left-- > 0;
}

/* A callback stops the run, and the module is as before. */
static void test_progress(void **state) {
    (void)state;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "inline,canonicalize,default";
    options.progress = count_down;
    countdown c = {.left = 0};
    options.progress_user = &c;
    hlo_module *module = parse();
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_STOPPED);
    assert_string_equal(c.passes[0], "inline");
    assert_restored(module, &options);
    c.left = 50;
    module = parse();
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    assert_true(c.left < 50);
    hlo_module_free(module);
}

static void count_warnings(void *user, const hlo_diag *diag) {
    assert_int_equal(diag->severity, HLO_WARNING);
    ++*(int *)user;
}

/* Nested calls that would double the module at every level are inlined up to a limit. */
static void test_inlining_is_bounded(void **state) {
    (void)state;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs("HloModule m\n\n%f0 (x: f32[]) -> f32[] {\n  ROOT %x = f32[] parameter(0)\n}\n\n", out);
    for (int level = 1; level <= 40; level++)
        fprintf(out,
                "%sf%d (y%d: f32[]) -> f32[] {\n  %%y%d = f32[] parameter(0)\n"
                "  %%a%d = f32[] call(%%y%d), to_apply=%%f%d\n"
                "  %%n%d = f32[] negate(%%a%d)\n"
                "  ROOT %%b%d = f32[] call(%%n%d), to_apply=%%f%d\n}\n\n",
                level == 40 ? "ENTRY %" : "%", level, level, level, level, level, level - 1, level,
                level, level, level, level - 1);
    fclose(out);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, size, "t.hlo", NULL, &module), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "inline";
    options.verify_none = true;
    int warnings = 0;
    const hlo_diag_sink sink = {.emit = count_warnings, .user = &warnings};
    options.sink = &sink;
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    assert_true(module->next_id < 2u << 20);
    assert_int_equal(warnings, 1);
    hlo_module_free(module);
    free(text);
}

static void test_tidied_once(const char *name, const char *pass) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", HLO_MODELS, name);
    hlo_module *module;
    assert_int_equal(hlo_module_parse_file(path, NULL, &module), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = pass;
    char *texts[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
        texts[i] = print(module);
    }
    if (strcmp(texts[0], texts[1])) fail_msg("%s: a second %s changes it again", name, pass);
    for (int i = 0; i < 2; i++) hlo_free(texts[i]);
    hlo_module_free(module);
}

/* A second run of a cleanup pass changes nothing, as the pass manager assumes. */
static void test_tidying_ends(void **state) {
    (void)state;
    static const char *const tidy[] = {"algebra", "dce", "cse", "constant-folding"};
    DIR *folder = opendir(HLO_MODELS);
    assert_non_null(folder);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder));) {
        const size_t length = strlen(entry->d_name);
        if (length < 4 || strcmp(entry->d_name + length - 4, ".hlo")) continue;
        for (size_t i = 0; i < sizeof tidy / sizeof *tidy; i++)
            test_tidied_once(entry->d_name, tidy[i]);
        count++;
    }
    closedir(folder);
    assert_true(count > 40);
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

/* The defaults in the programs' option table are those of the library. */
static void test_defaults_of_programs(void **state) {
    (void)state;
    static const struct {
        const char *name, *fallback;
    } rows[] = {
#define OPTION(id, programs, letter, name, kind, argument, fallback, help) {#id, fallback},
#include "tools/options.def"
    };
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    assert_null(options.target);
    assert_null(options.cuda);
    char cuda[32], target[32];
    const int version = hlo_cuda_parse(NULL);
    snprintf(cuda, sizeof cuda, "%d.%d", version / 1000, version % 1000 / 10);
    snprintf(target, sizeof target, "sm_%d", hlo_target_parse(NULL)->sm);
    int found = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = rows[i].name;
        const char *meant =
            strcmp(name, "PASSES") == 0           ? options.passes
            : strcmp(name, "TARGET") == 0         ? target
            : strcmp(name, "CUDA") == 0           ? cuda
            : strcmp(name, "SCALE_OPERANDS") == 0 ? options.scales_used ? "used" : "all"
            : strcmp(name, "EMIT") == 0           ? options.emit == HLO_EMIT_CUBLAS ? "cublas" : "?"
                                                  : NULL;
        if (!meant) continue;
        assert_string_equal(rows[i].fallback, meant);
        found++;
    }
    assert_int_equal(found, 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lints),
        cmocka_unit_test(test_nothing_fires),
        cmocka_unit_test(test_named_pass_stays),
        cmocka_unit_test(test_one_verdict_per_copy),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_failed_pass),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_inlining_is_bounded),
        cmocka_unit_test(test_tidying_ends),
        cmocka_unit_test(test_passes_are_told),
        cmocka_unit_test(test_defaults_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
