/* SPDX-License-Identifier: Apache-2.0 */
/* Reads every matmul call that XLA created for the models. FP8 calls round-trip in both
 * operand forms. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "matmul/call.h"

typedef struct counts {
    uint32_t fp8, wide, amax, bias, c;
} counts;

static hlo_matmul decode(const hlo_instruction *call) {
    hlo_matmul m = {0};
    const char *why = NULL;
    if (hlo_matmul_decode(call, &m, &why)) fail_msg("%s: %s", call->name, why);
    return m;
}

static void check_round_trip(hlo_instruction *call, const hlo_matmul *m) {
    for (int form = HLO_SCALES_ALL; form <= HLO_SCALES_USED; form++) {
        const hlo_target *target = hlo_target_find(90);
        const hlo_scale_form scales = (hlo_scale_form)form;
        assert_null(hlo_matmul_check(m, target, 12080, scales));
        hlo_instruction *made = hlo_matmul_encode(m, target, scales, call->parent, call, call);
        assert_ptr_equal(made->shape, call->shape);
        hlo_matmul again = decode(made);
        assert_ptr_equal(again.bias, m->bias);
        assert_ptr_equal(again.a_scale, m->a_scale);
        assert_ptr_equal(again.b_scale, m->b_scale);
        assert_ptr_equal(again.d_scale, m->d_scale);
        assert_ptr_equal(again.c, m->c);
        assert_int_equal(again.epilogue, m->epilogue);
        assert_int_equal(again.amax, m->amax);
        hlo_instr_remove(made);
    }
}

static void visit_module(const char *path, counts *all) {
    hlo_module *module;
    assert_int_equal(hlo_module_parse_file(path, NULL, &module), HLO_OK);
    jmp_buf recover;
    if (setjmp(recover)) fail();
    hlo_arena_set_recover(module->arena, &recover);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = instr->next) {
            if (hlo_matmul_is_wide_call(instr)) {
                assert_true(decode(instr).wide);
                all->wide++;
            }
            if (!hlo_matmul_is_call(instr)) continue;
            hlo_matmul m = decode(instr);
            check_round_trip(instr, &m);
            all->fp8++;
            all->amax += m.amax;
            all->bias += m.bias != NULL;
            all->c += m.c != NULL;
        }
    hlo_module_free(module);
}

static void calls_of_the_models_are_read(void **state) {
    (void)state;
    counts all = {0};
    glob_t paths;
    assert_int_equal(glob(HLO_MODELS "/*.hlo", 0, NULL, &paths), 0);
    for (size_t i = 0; i < paths.gl_pathc; i++) visit_module(paths.gl_pathv[i], &all);
    globfree(&paths);
    assert_int_equal(all.fp8, 93);
    assert_int_equal(all.wide, 19);
    assert_int_equal(all.amax, 3);
    assert_int_equal(all.bias, 11);
    assert_int_equal(all.c, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(calls_of_the_models_are_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
