/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles generated kernels with the real NVRTC: those of every model, before and after
 * optimization, for one architecture, and those of some models for the other architectures. With
 * --long, compiles those of all models for all architectures that have FP8. Equal kernels are
 * compiled once. Without NVRTC, the test is skipped with a message. Also tests that cached cubins
 * are found again. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/text.h"
#include "runtime/cuda/codegen/kernel.h"
#include "runtime/cuda/driver/library.h"
#include "unit/cuda/cuda_jobs.h"

static bool is_long;
static cuda_library nvrtc;

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}
static const hlo_diag_sink sink = {show, NULL};

/* Adds the module's kernels to the program. */
static void add_kernels(const hlo_module *m, cuda_program *program) {
    hlo_arena *arena = hlo_arena_new(NULL);
    jmp_buf recover;
    if (setjmp(recover)) fail_msg("no memory");
    hlo_arena_set_recover(arena, &recover);
    const cuda_device device = {.sm = 90, .processors = CUDA_PROCESSORS};
    jobs all = jobs_of_module(m, &device, arena);
    for (uint32_t i = 0; i < all.count; i++) {
        const char *why = NULL;
        const cuda_code *code = cuda_code_new(&device, all.v[i], arena, &why);
        if (!code) fail_msg("%s: %%%s %s", m->name, all.v[i]->instr->name, why);
        for (uint32_t l = 0; l < code->launch_count; l++)
            if (code->launches[l].text) cuda_program_add(program, &code->launches[l]);
    }
    hlo_arena_free(arena);
}

static void add_model(const char *name, cuda_program *program) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", HLO_MODELS, name);
    hlo_module *m;
    assert_int_equal(hlo_module_parse_file(path, &sink, &m), HLO_OK);
    assert_int_equal(hlo_module_verify(m, NULL, &sink), HLO_OK);
    add_kernels(m, program);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    if (!strstr(name, ".xla.") && hlo_module_optimize(m, &options, NULL) == HLO_OK)
        add_kernels(m, program);
    hlo_module_free(m);
}

static void compile(const cuda_program *program, int sm) {
    char *source = cuda_program_source(program);
    cuda_image image;
    if (cuda_image_compile(&nvrtc, source, sm, &image) != HLO_OK)
        fail_msg("sm_%d: %s", sm, image.log ? image.log : "");
    assert_true(image.size > 0);
    cuda_image_free(&image);
    hlo_free(source);
}

static void test_models(void **state) {
    (void)state;
    if (!nvrtc.nvrtcCompileProgram) skip();
    cuda_program *all = cuda_program_new();
    DIR *folder = opendir(HLO_MODELS);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".hlo") == 0) add_model(entry->d_name, all);
    }
    closedir(folder);
    add_model("../programs/qwix_moe_train.hlo", all);
    add_model("../run/ragged-cuda.hlo", all);
    add_model("../run/packed.hlo", all);
    add_model("../run/sort-cuda.hlo", all);
    compile(all, 90);
    cuda_program *some = cuda_program_new();
    add_model("encoder_qdq_train.hlo", some);
    add_model("scan_layers.hlo", some);
    add_model("../programs/qwix_moe_train.hlo", some);
    cuda_program *few = cuda_program_new();
    add_model("../run/ragged-cuda.hlo", few);
    add_model("../run/ragged-cuda.hlo", some);
    add_model("../run/sort-cuda.hlo", few);
    add_model("../run/sort-cuda.hlo", some);
    cuda_program *narrow =
        cuda_program_new(); /* has FP8 conversions, for which sm_80 has no instructions */
    add_model("../run/cuda-tiles.hlo", narrow);
    static const struct {
        int sm;
        bool fp8;
    } targets[] = {
#define HLO_TARGET(sm, fp8, ...) {sm, fp8},
#include "matmul/table/target.def"
#undef HLO_TARGET
    };
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
        if (targets[i].sm != 90)
            compile(!targets[i].fp8        ? narrow
                    : is_long              ? all
                    : targets[i].sm <= 100 ? some
                                           : few,
                    targets[i].sm);
    cuda_program_free(narrow);
    cuda_program_free(some);
    cuda_program_free(few);
    cuda_program_free(all);
}

/* Compiles kernels that pack 4-bit elements, from rows and from columns. */
static void test_packed(void **state) {
    (void)state;
    if (!nvrtc.nvrtcCompileProgram) skip();
    hlo_arena *arena = hlo_arena_new(NULL);
    jmp_buf recover;
    if (setjmp(recover)) fail_msg("no memory");
    hlo_arena_set_recover(arena, &recover);
    const cuda_device device = {.sm = 100, .processors = CUDA_PROCESSORS};
    const int64_t dims[] = {48, 96}, bytes[] = {48, 48}, to[] = {48, 1};
    const int64_t from[][2] = {{96, 1}, {1, 48}};
    cuda_program *program = cuda_program_new();
    for (int i = 0; i < 2; i++) {
        hlo_view operand = {HLO_TYPE_F4E2M1FN, 2, dims, from[i], NULL};
        hlo_view result = {HLO_TYPE_U8, 2, bytes, to, NULL};
        const hlo_job job = {
            .operand_count = 1, .result_count = 1, .operands = &operand, .results = &result};
        const char *why = NULL;
        const cuda_code *code = cuda_code_new(&device, &job, arena, &why);
        assert_non_null(code);
        assert_string_equal(code->launches[0].form, "pack");
        cuda_program_add(program, &code->launches[0]);
    }
    compile(program, 100);
    cuda_program_free(program);
    hlo_arena_free(arena);
}

/* Compiles the helper functions alone, without kernels. */
static void test_helpers(void **state) {
    (void)state;
    if (!nvrtc.nvrtcCompileProgram) skip();
    for (int sm = 89; sm <= 100; sm += sm == 89 ? 1 : 10) {
        cuda_program *none = cuda_program_new();
        compile(none, sm);
        cuda_program_free(none);
    }
}

static void test_kept(void **state) {
    (void)state;
    if (!nvrtc.nvrtcCompileProgram) skip();
    char folder[] = "/tmp/hlo-kept-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const char *source = "extern \"C\" __global__ void k(float *p) { p[threadIdx.x] = 1; }\n";
    cuda_image first, second;
    assert_int_equal(cuda_image_find(&nvrtc, folder, source, 90, &first), HLO_OK);
    assert_non_null(first.log);
    assert_int_equal(cuda_image_find(&nvrtc, folder, source, 90, &second), HLO_OK);
    assert_null(second.log); /* the compiler was not called */
    assert_int_equal(first.size, second.size);
    assert_memory_equal(first.bytes, second.bytes, first.size);
    cuda_image_free(&second);
    assert_int_equal(cuda_image_find(&nvrtc, folder, source, 89, &second), HLO_OK);
    assert_non_null(second.log);
    cuda_image_free(&second);
    assert_int_equal(cuda_image_compile(&nvrtc, source, 99, &second), HLO_OK); /* 90 is used */
    assert_memory_equal(first.bytes, second.bytes, first.size);
    cuda_image_free(&second);
    assert_int_equal(cuda_image_find(&nvrtc, folder, "not C", 90, &second), HLO_INVALID_INPUT);
    assert_non_null(strstr(second.log, "error"));
    cuda_image_free(&first);
    cuda_image_free(&second);
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(int argc, char **argv) {
    is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    /* CUDA's toolkit is installed in a folder that the dynamic linker does not search. */
    if (access("/usr/local/cuda/lib64/libnvrtc.so", R_OK) == 0)
        setenv("HLO_CUDA_NVRTC", "/usr/local/cuda/lib64/libnvrtc.so", 0);
    if (cuda_library_load(&nvrtc, CUDA_NVRTC, NULL) != HLO_OK)
        fprintf(stderr, "skipped: there is no NVRTC on this machine\n");
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_helpers), cmocka_unit_test(test_kept),
                                       cmocka_unit_test(test_packed),
                                       cmocka_unit_test(test_models)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cuda_library_unload(&nvrtc);
    return failed;
}
