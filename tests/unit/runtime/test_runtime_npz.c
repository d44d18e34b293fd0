/* SPDX-License-Identifier: Apache-2.0 */
/* Tests arrays in files: a written .npz is read back, and other contents of a file are reported. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
// clang-format off
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hlo/runtime.h"
#include "ir/ir.h"

static jmp_buf recover;

/* Returns an entry computation with a parameter of each shape, and their tuple as its root. */
static hlo_module *make_module(uint32_t count, const hlo_type *types, uint32_t rank,
                               const int64_t *dims) {
    hlo_module *m = hlo_module_make(&recover);
    hlo_computation *comp = hlo_comp_new(m, "main");
    m->entry = comp;
    hlo_instruction *parameters[8];
    const hlo_shape *shapes[8];
    for (uint32_t i = 0; i < count; i++) {
        shapes[i] = hlo_shape_array(m, types[i], rank, dims);
        parameters[i] = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, shapes[i], 0, NULL, NULL);
        hlo_instr_set_parameter(parameters[i], i);
    }
    hlo_comp_set_root(comp,
                      hlo_instr_new(comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(m, count, shapes),
                                    count, parameters, NULL));
    return m;
}

typedef struct messages {
    char text[1024];
    int count;
} messages;

static void keep(void *user, const hlo_diag *diag) {
    messages *m = user;
    snprintf(m->text, sizeof m->text, "%s", diag->message);
    m->count++;
}

static char *write_file(const hlo_arrays *arrays) {
    char *path = strdup("/tmp/hlo-npz-XXXXXX");
    FILE *file = fdopen(mkstemp(path), "wb");
    assert_int_equal(hlo_arrays_write(arrays, hlo_file_writer(file)), HLO_OK);
    fclose(file);
    return path;
}

static const hlo_type every[] = {HLO_TYPE_F32, HLO_TYPE_BF16, HLO_TYPE_F8E4M3FN, HLO_TYPE_PRED,
                                 HLO_TYPE_S32, HLO_TYPE_C64,  HLO_TYPE_F8E5M2,   HLO_TYPE_S4};
enum { EVERY = sizeof every / sizeof *every };

static void written_is_read(void **state) {
    (void)state;
    if (setjmp(recover)) fail();
    const int64_t dims[] = {3, 5};
    hlo_module *m = make_module(EVERY, every, 2, dims);
    hlo_arrays *arrays;
    assert_int_equal(hlo_arrays_new(&arrays), HLO_OK);
    for (int i = 0; i < EVERY; i++) {
        unsigned char bytes[3 * 5 * 8];
        for (size_t b = 0; b < sizeof bytes; b++) bytes[b] = (unsigned char)(b * 7 + (size_t)i);
        assert_int_equal(hlo_arrays_append(arrays, every[i], 2, dims, bytes), 0);
    }
    char *path = write_file(arrays);
    hlo_arrays *back;
    assert_int_equal(hlo_arrays_read(path, m, HLO_INPUTS, NULL, &back), HLO_OK);
    assert_int_equal(hlo_arrays_count(back), EVERY);
    for (size_t i = 0; i < EVERY; i++) {
        const hlo_array *a = hlo_arrays_at(arrays, i), *b = hlo_arrays_at(back, i);
        assert_int_equal(a->type, b->type);
        assert_int_equal(a->size, b->size);
        assert_memory_equal(a->data, b->data, a->size);
    }
    hlo_arrays *outputs;
    assert_int_equal(hlo_arrays_read(path, m, HLO_OUTPUTS, NULL, &outputs), HLO_OK);
    assert_int_equal(hlo_arrays_count(outputs), EVERY);
    hlo_arrays_free(outputs);
    assert_int_equal(hlo_arrays_read_each(path, m, HLO_OUTPUTS, 2, NULL, &outputs),
                     HLO_INVALID_INPUT);
    unlink(path);
    free(path);
    hlo_arrays_free(back);
    hlo_arrays_free(arrays);
    hlo_module_free(m);
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    if (setjmp(recover)) fail();
    const int64_t dims[] = {2, 3}, other[] = {3, 2};
    hlo_arrays *arrays;
    hlo_arrays_new(&arrays);
    hlo_arrays_append(arrays, HLO_TYPE_F32, 2, dims, NULL);
    char *path = write_file(arrays);
    messages got = {0};
    const hlo_diag_sink sink = {keep, &got};
    const struct {
        uint32_t count;
        hlo_type types[2];
        const int64_t *dims;
        const char *message;
    } cases[] = {
        {1, {HLO_TYPE_S32}, dims, "does not match the expected s32[2,3]"},
        {1, {HLO_TYPE_BF16}, dims, "does not match the expected bf16[2,3]"},
        {1, {HLO_TYPE_F32}, other, "do not match the expected f32[3,2]"},
        {2, {HLO_TYPE_F32, HLO_TYPE_F32}, dims, "array 1 (parameter 1)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        hlo_module *m = make_module(cases[i].count, cases[i].types, 2, cases[i].dims);
        hlo_arrays *back;
        got.count = 0;
        assert_int_equal(hlo_arrays_read(path, m, HLO_INPUTS, &sink, &back), HLO_INVALID_INPUT);
        assert_null(back);
        assert_int_equal(got.count, 1);
        assert_non_null(strstr(got.text, cases[i].message));
        hlo_module_free(m);
    }
    truncate(path, 40);
    hlo_module *m = make_module(1, cases[0].types, 2, dims);
    hlo_arrays *back;
    assert_int_equal(hlo_arrays_read(path, m, HLO_INPUTS, &sink, &back), HLO_INVALID_INPUT);
    assert_int_equal(hlo_arrays_read("/nowhere.npz", m, HLO_INPUTS, &sink, &back),
                     HLO_INVALID_INPUT);
    hlo_module_free(m);
    unlink(path);
    free(path);
    hlo_arrays_free(arrays);
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* A file that is changed or truncated at any byte is rejected or has the same
 * values. */
static void damaged_files_are_refused(void **state) {
    (void)state;
    if (setjmp(recover)) fail();
    static const hlo_type types[] = {HLO_TYPE_F32, HLO_TYPE_S8};
    static const unsigned char changes[] = {0x01, 0x08, 0x80, 0xff};
    const int64_t dims[] = {2, 3};
    const unsigned char values[6 * 4] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    hlo_arrays *arrays, *back;
    hlo_arrays_new(&arrays);
    for (int i = 0; i < 2; i++) hlo_arrays_append(arrays, types[i], 2, dims, values);
    char *path = write_file(arrays), bytes[2048];
    FILE *file = fopen(path, "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 0 && size < sizeof bytes);
    hlo_module *m = make_module(2, types, 2, dims);
    int accepted = 0;
    for (size_t at = 0; at < size; at++)
        for (size_t c = 0; c <= sizeof changes; c++) {
            const char whole = bytes[at];
            if (c < sizeof changes) bytes[at] = (char)(bytes[at] ^ changes[c]);
            write_bytes(path, bytes, c < sizeof changes ? size : at);
            bytes[at] = whole;
            const hlo_status status = hlo_arrays_read(path, m, HLO_INPUTS, NULL, &back);
            if (status == HLO_INVALID_INPUT) continue;
            assert_int_equal(status, HLO_OK);
            accepted++;
            for (size_t i = 0; i < 2; i++)
                assert_memory_equal(hlo_arrays_at(back, i)->data, hlo_arrays_at(arrays, i)->data,
                                    hlo_arrays_at(arrays, i)->size);
            hlo_arrays_free(back);
        }
    assert_in_range(accepted, 1, size); /* a changed date is accepted, for example */
    hlo_module_free(m);
    unlink(path);
    free(path);
    hlo_arrays_free(arrays);
}

/* The results of numpy.random.default_rng(42): standard_normal(5), integers(0, 8, 5), integers(0,
 * 2, 5). */
static void draws_are_numpys(void **state) {
    (void)state;
    if (setjmp(recover)) fail();
    const int64_t dims[] = {5};
    const hlo_type types[] = {HLO_TYPE_F32, HLO_TYPE_S32, HLO_TYPE_PRED};
    hlo_module *m = make_module(3, types, 1, dims);
    hlo_arrays *drawn;
    assert_int_equal(hlo_arrays_draw(m, 42, NULL, &drawn), HLO_OK);
    const float floats[] = {0x1.3807c20000000p-2f, -0x1.0a3c660000000p+0f, 0x1.803b240000000p-1f,
                            0x1.e191b20000000p-1f, -0x1.f3770a0000000p+0f};
    const int32_t integers[] = {4, 7, 5, 6, 5};
    const unsigned char coins[] = {1, 1, 0, 1, 0};
    assert_memory_equal(hlo_arrays_at(drawn, 0)->data, floats, sizeof floats);
    assert_memory_equal(hlo_arrays_at(drawn, 1)->data, integers, sizeof integers);
    assert_memory_equal(hlo_arrays_at(drawn, 2)->data, coins, sizeof coins);
    hlo_arrays_free(drawn);
    hlo_module_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(damaged_files_are_refused),
        cmocka_unit_test(draws_are_numpys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
