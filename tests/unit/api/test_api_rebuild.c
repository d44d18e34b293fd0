/* SPDX-License-Identifier: Apache-2.0 */
/* Rebuilds every instruction of every module of testdata from its parts. */
#include "unit/api/api_fixture.h"

#include <ftw.h>

static size_t made_count;

/* Returns the attributes of an instruction as text; the caller frees them. */
static char *attributes_of(const hlo_instruction *instr) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < hlo_instruction_attribute_count(instr); i++) {
        const char *name = hlo_instruction_attribute_name(instr, i), *value;
        assert_int_equal(hlo_instruction_attribute(instr, name, &value), HLO_OK);
        if (value) fprintf(out, "%s%s=%s", ftell(out) ? ", " : "", name, value);
    }
    fclose(out);
    return text;
}

static char *text_of_shape(const hlo_instruction *instr) {
    const hlo_shape *shape = hlo_instruction_shape(instr);
    const size_t size = hlo_shape_format(shape, true, NULL, 0) + 1;
    char *text = malloc(size);
    assert_non_null(text);
    hlo_shape_format(shape, true, text, size);
    return text;
}

static void rebuild(fixture *f, const hlo_instruction *instr) {
    const hlo_instruction *operands[256], *made;
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    char *attributes = attributes_of(instr), *shape = text_of_shape(instr);
    options.opcode = hlo_instruction_opcode(instr);
    options.attributes = attributes;
    options.shape = hlo_instruction_shape(instr);
    options.operands = operands;
    options.operand_count = hlo_instruction_operand_count(instr);
    assert_true(options.operand_count <= 256);
    for (size_t i = 0; i < options.operand_count; i++)
        operands[i] = hlo_instruction_operand(instr, i);
    const hlo_status status = hlo_instruction_new(f->module, hlo_instruction_computation(instr),
                                                  &options, &f->sink, &made);
    if (status != HLO_OK)
        fail_msg("%s %s: %s", hlo_opcode_name(options.opcode), hlo_instruction_name(instr),
                 f->said);
    char *again = attributes_of(made), *same_shape = text_of_shape(made);
    assert_string_equal(again, attributes);
    assert_string_equal(same_shape, shape);
    assert_done(f, hlo_instruction_remove(f->module, made, &f->sink));
    made_count++;
    free(attributes);
    free(again);
    free(shape);
    free(same_shape);
}

/* Returns true for instructions that hlo_instruction_new() cannot create. */
static bool is_apart(const hlo_instruction *instr) {
    const hlo_opcode opcode = hlo_instruction_opcode(instr);
    return opcode == HLO_OP_PARAMETER || opcode == HLO_OP_CONSTANT;
}

static int visit(const char *path, const struct stat *about, int type, struct FTW *place) {
    (void)about, (void)place;
    const size_t length = strlen(path);
    if (type != FTW_F || length < 4 || strcmp(path + length - 4, ".hlo") != 0) return 0;
    fixture f = {.sink = {keep, &f}};
    if (hlo_module_parse_file(path, NULL, &f.module) != HLO_OK) return 0;
    if (hlo_module_verify(f.module, NULL, NULL) == HLO_OK) {
        for (const hlo_computation *comp = hlo_module_first_computation(f.module); comp;
             comp = hlo_computation_next(comp)) {
            const hlo_instruction *last = hlo_computation_last(comp);
            for (const hlo_instruction *instr = hlo_computation_first(comp); instr;
                 instr = instr == last ? NULL : hlo_instruction_next(instr))
                if (!is_apart(instr)) rebuild(&f, instr);
        }
        assert_done(&f, hlo_module_verify(f.module, NULL, &f.sink));
    }
    hlo_module_free(f.module);
    return 0;
}

static void test_rebuild(void **state) {
    (void)state;
    assert_int_equal(nftw(HLO_MODELS "/..", visit, 16, FTW_PHYS), 0);
    assert_true(made_count > 20000);
}

int main(void) {
    const struct CMUnitTest tests[] = {TEST(test_rebuild)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
