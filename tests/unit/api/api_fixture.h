/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture of test_api_*.c: a module, its instructions, and the last error about the module. */
#ifndef HLO_TESTS_UNIT_API_API_FIXTURE_H
#define HLO_TESTS_UNIT_API_API_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/edit.h"
#include "hlo/memory.h"
#include "hlo/text.h"

static const char TEXT[] =
    "HloModule m, entry_computation_layout={(f32[4,8]{1,0}, f32[8,2]{1,0})->f32[4,2]{1,0}}\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%x, %y)\n"
    "}\n\n"
    "ENTRY %main (a: f32[4,8], b: f32[8,2]) -> f32[4,2] {\n"
    "  %a = f32[4,8]{1,0} parameter(0)\n"
    "  %b = f32[8,2]{1,0} parameter(1)\n"
    "  %c = f32[] constant(3)\n"
    "  %n = f32[4,8]{1,0} negate(%a), metadata={op_name=\"jit(f)/neg\"}\n"
    "  %d = f32[4,2]{1,0} dot(%n, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    "  %late = f32[4,2]{1,0} abs(%d)\n"
    "  %r = f32[4]{0} reduce(%d, %c), dimensions={1}, to_apply=%add\n"
    "  ROOT %e = f32[4,2]{1,0} add(%d, %d)\n"
    "}\n";

typedef struct fixture {
    hlo_module *module;
    const hlo_computation *add, *main;
    const hlo_instruction *a, *b, *c, *n, *d, *late, *r, *e;
    hlo_diag_sink sink;
    unsigned errors;
    char said[512]; /* message of the last error */
    char source[512];
    char place[32]; /* location of the last error: line:column+length */
} fixture;

static void keep(void *user, const hlo_diag *diag) {
    fixture *f = user;
    if (diag->severity != HLO_ERROR) return;
    f->errors++;
    snprintf(f->said, sizeof f->said, "%s", diag->message);
    snprintf(f->source, sizeof f->source, "%.*s", (int)diag->source_size,
             diag->source ? diag->source : "");
    snprintf(f->place, sizeof f->place, "%u:%u+%zu", (unsigned)diag->line, (unsigned)diag->column,
             diag->length);
}

static hlo_module *parse(const char *text) {
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "t.hlo", NULL, &module), HLO_OK);
    return module;
}

static inline int set_up(void **state) {
    fixture *f = calloc(1, sizeof *f);
    if (!f) return 1;
    f->sink = (hlo_diag_sink){keep, f};
    f->module = parse(TEXT);
    f->add = hlo_module_find_computation(f->module, "add");
    f->main = hlo_module_entry(f->module);
    const hlo_instruction **all[] = {&f->a, &f->b, &f->c, &f->n, &f->d, &f->late, &f->r, &f->e};
    const hlo_instruction *at = hlo_computation_first(f->main);
    for (size_t i = 0; i < 8; i++, at = hlo_instruction_next(at)) *all[i] = at;
    *state = f;
    return 0;
}

static inline int tear_down(void **state) {
    fixture *f = *state;
    hlo_module_free(f->module);
    free(f);
    return 0;
}

/* Returns the shape of a text. */
static inline const hlo_shape *shape_of(hlo_module *module, const char *text) {
    const hlo_shape *shape;
    assert_int_equal(hlo_shape_parse(module, text, NULL, &shape), HLO_OK);
    return shape;
}

static void assert_done(const fixture *f, hlo_status status) {
    if (status != HLO_OK) fail_msg("%s: %s", hlo_status_name(status), f->said);
}

/* Checks that the module verifies, that its text parses and prints identically, and that the text
 * contains `part`. */
static inline void assert_sound(fixture *f, const char *part) {
    char *text, *again;
    size_t size;
    assert_int_equal(f->errors, 0);
    assert_done(f, hlo_module_verify(f->module, NULL, &f->sink));
    assert_int_equal(hlo_module_to_text(f->module, NULL, &text, &size), HLO_OK);
    if (!strstr(text, part)) fail_msg("%s\ndoes not have %s", text, part);
    hlo_module *read = parse(text);
    assert_int_equal(hlo_module_to_text(read, NULL, &again, &size), HLO_OK);
    assert_string_equal(again, text);
    hlo_module_free(read);
    hlo_free(text);
    hlo_free(again);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
