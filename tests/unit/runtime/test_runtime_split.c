/* SPDX-License-Identifier: Apache-2.0 */
/* hlo_module_record_amaxes(hlo_file_writer()) and hlo_module_split(): a module with static scales,
 * and the two modules into which it is split, compute the same bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/bisect.h"
#include "hlo/ir.h"
#include "hlo/text.h"

static const char TEXT[] =
    "HloModule m\n"
    "ENTRY e {\n"
    "  w = bf16[32,48] parameter(0)\n"
    "  x = bf16[16,32] parameter(1)\n"
    "  v = bf16[48,16] parameter(2)\n"
    "  a = bf16[16,48] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  t = bf16[16,48] tanh(a)\n"
    "  b = bf16[16,16] dot(t, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  ROOT r = (bf16[16,16], bf16[48,16]) tuple(b, v)\n"
    "}\n";

static hlo_arrays *run(const hlo_module *module, const hlo_arrays *inputs) {
    hlo_plan *plan;
    hlo_arrays *outputs;
    assert_int_equal(hlo_plan_new(module, NULL, NULL, &plan), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, NULL, &outputs), HLO_OK);
    hlo_plan_free(plan);
    return outputs;
}

static void append(hlo_arrays *to, const hlo_array *array) {
    assert_int_equal(hlo_arrays_append(to, array->type, array->rank, array->dims, array->data),
                     HLO_OK);
}

static void test_split(void **state) {
    (void)state;
    hlo_module *module, *ahead;
    hlo_arrays *inputs[2], *first, *second, *results, *expected, *found;
    hlo_report *report;
    char *amaxes;
    size_t size;
    assert_int_equal(hlo_module_parse(TEXT, strlen(TEXT), "t.hlo", NULL, &module), HLO_OK);
    for (uint64_t i = 0; i < 2; i++)
        assert_int_equal(hlo_arrays_draw_each(module, HLO_DRAW_NORMAL, i, 1, NULL, &inputs[i]),
                         HLO_OK);
    FILE *out = open_memstream(&amaxes, &size);
    assert_int_equal(hlo_module_record_amaxes(module, (const hlo_arrays *const *)inputs, 2, NULL,
                                              hlo_file_writer(out)),
                     HLO_OK);
    fclose(out);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.quantize = "static";
    options.amaxes_text = amaxes;
    options.ahead = "w,v";
    options.min_gain = 0.001;
    assert_int_equal(hlo_module_optimize(module, &options, &report), HLO_OK);
    for (size_t i = 0; i < 2; i++)
        assert_string_equal(hlo_report_verdict(report, i)->quantized, "static");
    hlo_report_free(report);
    expected = run(module, inputs[0]);
    assert_int_equal(hlo_module_split(module, "w,v", NULL, &ahead), HLO_OK);
    assert_int_equal(hlo_computation_parameter_count(hlo_module_entry(ahead)), 2);
    /* The results are both weights in fp8, and v itself, which is an output. */
    assert_int_equal(hlo_computation_parameter_count(hlo_module_entry(module)), 1 + 3);
    assert_int_equal(hlo_arrays_new(&first), HLO_OK);
    append(first, hlo_arrays_at(inputs[0], 0));
    append(first, hlo_arrays_at(inputs[0], 2));
    results = run(ahead, first);
    assert_int_equal(hlo_arrays_count(results), 3);
    assert_int_equal(hlo_arrays_new(&second), HLO_OK);
    append(second, hlo_arrays_at(inputs[0], 1));
    for (size_t i = 0; i < 3; i++) append(second, hlo_arrays_at(results, i));
    found = run(module, second);
    assert_int_equal(hlo_arrays_count(found), hlo_arrays_count(expected));
    for (size_t i = 0; i < hlo_arrays_count(found); i++) {
        const hlo_array *a = hlo_arrays_at(found, i), *b = hlo_arrays_at(expected, i);
        assert_int_equal(a->size, b->size);
        assert_memory_equal(a->data, b->data, a->size);
    }
    hlo_arrays *all[] = {inputs[0], inputs[1], first, second, results, expected, found};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hlo_arrays_free(all[i]);
    hlo_module_free(module);
    hlo_module_free(ahead);
    free(amaxes);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_split)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
