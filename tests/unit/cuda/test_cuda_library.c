/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the real libcublasLt, if available (no GPU is needed): attributes have the sizes in
 * attribute.def, attributes set by a call can be read back, and the numbers here equal those of
 * NVIDIA's headers, if available. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "runtime/cuda/cublaslt/matmul.h"

#if __has_include(<cublasLt.h>) && __has_include(<library_types.h>)
#pragma GCC diagnostic ignored "-Wpedantic"
#include <cublasLt.h>
#define HEADERS
#endif

static cuda_library library; /* the real library; the tests do not change it */
static char why_not[512];

static void keep(void *user, const hlo_diag *diag) {
    (void)user;
    snprintf(why_not, sizeof why_not, "%s", diag->message);
}
static const hlo_diag_sink sink = {.emit = keep};

static void need_library(void) {
    unsetenv("HLO_CUDA_CUBLASLT");
    if (cuda_library_load(&library, CUDA_CUBLASLT, &sink) == HLO_OK) return;
    print_message("skipped: %s\n", why_not);
    skip();
}

/* ---------------------------------------------------------------------------------------- sizes */

typedef struct row {
    lt_object object;
    const char *name;
    int number;
    size_t bytes;
} row;

static const row rows[] = {
#define LT_ATTRIBUTE(object, name, number, bytes, kind) {LT_##object, #name, number, bytes},
#include "runtime/cuda/cublaslt/attribute.def"
#undef LT_ATTRIBUTE
};

static void test_sizes(void **state) {
    (void)state;
    need_library();
    lt_desc *desc;
    lt_layout *layout;
    lt_preference *preference;
    assert_int_equal(library.cublasLtMatmulDescCreate(&desc, LT_COMPUTE_32F, LT_TYPE_32F), 0);
    assert_int_equal(library.cublasLtMatrixLayoutCreate(&layout, LT_TYPE_8F_E4M3, 16, 16, 16), 0);
    assert_int_equal(library.cublasLtMatmulPreferenceCreate(&preference), 0);
    bool new_enough = library.cublasLtGetVersion() >= 120900; /* scale modes exist from 12.9 on */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        if (!new_enough && strstr(r->name, "SCALE_MODE")) continue;
        size_t bytes = 0;
        int status =
            r->object == LT_DESC
                ? library.cublasLtMatmulDescGetAttribute(desc, r->number, NULL, 0, &bytes)
            : r->object == LT_LAYOUT
                ? library.cublasLtMatrixLayoutGetAttribute(layout, r->number, NULL, 0, &bytes)
                : library.cublasLtMatmulPreferenceGetAttribute(preference, r->number, NULL, 0,
                                                               &bytes);
        if (status || bytes != r->bytes)
            fail_msg("%s: %zu bytes and not %zu, status %d", r->name, bytes, r->bytes, status);
    }
    library.cublasLtMatmulPreferenceDestroy(preference);
    library.cublasLtMatrixLayoutDestroy(layout);
    library.cublasLtMatmulDescDestroy(desc);
}

/* ------------------------------------------------------------------------------------ read back */

static size_t set_count;
static size_t block_modes[2]; /* counts of calls with 8-bit scales, per block of 32 and of 16 */

static void compare(int status, const char *object, int attribute, const void *value,
                    const unsigned char *read, size_t size, size_t written) {
    if (status || written != size || memcmp(value, read, size) != 0)
        fail_msg("%s attribute %d of %zu bytes does not read back: status %d", object, attribute,
                 size, status);
    set_count++;
}

static int set_desc(lt_desc *desc, int attribute, const void *value, size_t size) {
    unsigned char read[16];
    size_t written = 0;
    int status = library.cublasLtMatmulDescSetAttribute(desc, attribute, value, size);
    if (!status)
        status = library.cublasLtMatmulDescGetAttribute(desc, attribute, read, size, &written);
    compare(status, "desc", attribute, value, read, size, written);
    if (attribute != LT_DESC_A_SCALE_MODE && attribute != LT_DESC_B_SCALE_MODE) return status;
    block_modes[0] += read[0] == hlo_scale_modes[HLO_SCALE_VEC32].value;
    block_modes[1] += read[0] == hlo_scale_modes[HLO_SCALE_VEC16].value;
    return status;
}

static int set_layout(lt_layout *layout, int attribute, const void *value, size_t size) {
    unsigned char read[16];
    size_t written = 0;
    int status = library.cublasLtMatrixLayoutSetAttribute(layout, attribute, value, size);
    if (!status)
        status = library.cublasLtMatrixLayoutGetAttribute(layout, attribute, read, size, &written);
    compare(status, "layout", attribute, value, read, size, written);
    return status;
}

static int set_preference(lt_preference *preference, int attribute, const void *value,
                          size_t size) {
    unsigned char read[16];
    size_t written = 0;
    int status = library.cublasLtMatmulPreferenceSetAttribute(preference, attribute, value, size);
    if (!status)
        status = library.cublasLtMatmulPreferenceGetAttribute(preference, attribute, read, size,
                                                              &written);
    compare(status, "preference", attribute, value, read, size, written);
    return status;
}

/* Creates a call without memory for every matmul of the module, for the first of two targets that
 * supports the matmul. Without a handle no algorithm is found, and the library's name for that
 * error is reported. */
static size_t make_calls(const hlo_module *module, hlo_arena *arena, const cuda_device *device) {
    const cuda_matmul_options targets[] = {
        {.target = hlo_target_find(90), .cuda = 13010, .workspace = 1 << 20, .alignment = 256},
        {.target = hlo_target_find(100), .cuda = 13010, .workspace = 1 << 20, .alignment = 256}};
    size_t made = 0;
    void *addresses[LT_PART_COUNT];
    for (int part = 0; part < LT_PART_COUNT; part++)
        addresses[part] = (void *)((uintptr_t)(part + 1) << 20);
    for (const hlo_instruction *i = module->entry->first; i; i = i->next) {
        cuda_matmul matmul;
        cuda_call *call;
        lt_heuristic found;
        uint32_t count;
        const char *refusal;
        char why[512];
        if (!cuda_matmul_plan(i, &targets[0], arena, &matmul, &refusal) &&
            !cuda_matmul_plan(i, &targets[1], arena, &matmul, &refusal))
            continue;
        assert_int_equal(cuda_call_new(device, &matmul, addresses, why, sizeof why, &call), HLO_OK);
        if (!made) {
            hlo_status status = cuda_call_heuristic(call, 1, &found, &count, why, sizeof why);
            assert_int_equal(status, HLO_INVALID_INPUT);
            assert_non_null(strstr(why, "cublasLtMatmulAlgoGetHeuristic: CUBLAS_STATUS_"));
        }
        cuda_call_free(call);
        made++;
    }
    return made;
}

static void test_read_back(void **state) {
    (void)state;
    need_library();
    if (library.cublasLtGetVersion() < 120900) skip();
    cuda_library told = library;
    told.cublasLtMatmulDescSetAttribute = set_desc;
    told.cublasLtMatrixLayoutSetAttribute = set_layout;
    told.cublasLtMatmulPreferenceSetAttribute = set_preference;
    const cuda_device device = {.lib = &told};
    glob_t files;
    assert_int_equal(glob(HLO_MODELS "/../cublaslt/*.hlo", 0, NULL, &files), 0);
    jmp_buf recover;
    hlo_arena *arena = hlo_arena_new(&recover);
    assert_non_null(arena);
    if (setjmp(recover)) fail_msg("out of memory");
    size_t made = 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        hlo_module *module;
        assert_int_equal(hlo_module_parse_file(files.gl_pathv[i], NULL, &module), HLO_OK);
        made += make_calls(module, arena, &device);
        hlo_module_free(module);
    }
    globfree(&files);
    hlo_arena_free(arena);
    print_message("%zu calls, %zu attributes read back, cuBLASLt %zu\n", made, set_count,
                  library.cublasLtGetVersion());
    assert_true(made > 100 && set_count > 10 * made);
    assert_true(block_modes[0] >= 8 && block_modes[1] >= 12);
}

/* -------------------------------------------------------------------------------------- headers */

static void test_headers(void **state) {
    (void)state;
#ifdef HEADERS
#define LT_DESC_HEADER(name) CUBLASLT_MATMUL_DESC_##name
#define LT_LAYOUT_HEADER(name) CUBLASLT_MATRIX_LAYOUT_##name
#define LT_PREFERENCE_HEADER(name) CUBLASLT_MATMUL_PREF_##name
#define LT_ATTRIBUTE(object, name, number, bytes, kind)                                            \
    assert_int_equal(number, LT_##object##_HEADER(name));
#include "runtime/cuda/cublaslt/attribute.def"
#undef LT_ATTRIBUTE
#define LT_TYPE_HEADER(name) CUDA_R_##name
#define LT_COMPUTE_HEADER(name) CUBLAS_COMPUTE_##name
#define LT_OPERATION_HEADER(name) CUBLAS_OP_##name
#define LT_EPILOGUE_HEADER(name) CUBLASLT_EPILOGUE_##name
#define LT_REDUCTION_HEADER(name) CUBLASLT_REDUCTION_SCHEME_##name
#define LT_WORD(kind, name, number) assert_int_equal(number, LT_##kind##_HEADER(name));
#include "runtime/cuda/cublaslt/word.def"
#undef LT_WORD
    assert_int_equal(hlo_scale_modes[HLO_SCALE_OUTER_VEC].value,
                     CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    assert_int_equal(hlo_scale_modes[HLO_SCALE_VEC128].value,
                     CUBLASLT_MATMUL_MATRIX_SCALE_VEC128_32F);
    assert_int_equal(hlo_scale_modes[HLO_SCALE_BLK128].value,
                     CUBLASLT_MATMUL_MATRIX_SCALE_BLK128x128_32F);
#if CUBLAS_VERSION >= 120800
    assert_int_equal(hlo_scale_modes[HLO_SCALE_VEC32].value,
                     CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0);
    assert_int_equal(hlo_scale_modes[HLO_SCALE_VEC16].value,
                     CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
#endif
    assert_int_equal(sizeof(lt_algo), sizeof(cublasLtMatmulAlgo_t));
    assert_int_equal(sizeof(lt_heuristic), sizeof(cublasLtMatmulHeuristicResult_t));
    assert_int_equal(offsetof(lt_heuristic, workspace),
                     offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
    assert_int_equal(offsetof(lt_heuristic, state),
                     offsetof(cublasLtMatmulHeuristicResult_t, state));
    assert_int_equal(offsetof(lt_heuristic, waves),
                     offsetof(cublasLtMatmulHeuristicResult_t, wavesCount));
#else
    print_message("skipped: no cublasLt.h on this machine\n");
    skip();
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_headers),
    };
    return cmocka_run_group_tests_name("cuda library", tests, NULL, NULL);
}
