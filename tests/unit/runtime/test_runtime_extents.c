/* SPDX-License-Identifier: Apache-2.0 */
/* Tests pads, slices and windows whose numbers are near the limits of int64: each module is
 * rejected or runs. The sanitized build reports overflows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/infer/infer.h"
#include "ir/ir.h"

static uint64_t state;

static uint64_t draw(uint64_t count) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z ^ (z >> 31)) % count;
}

/* Usually draws a small number, otherwise one near a power of two or a limit. */
static int64_t draw_number(int64_t least) {
    static const int64_t edges[] = {INT64_MAX,        INT64_MIN,        INT64_C(1) << 62,
                                    INT64_C(1) << 61, INT64_C(1) << 60, INT64_C(1) << 32,
                                    INT64_C(1) << 31, INT64_MAX / 3,    INT64_MAX / 2};
    const int64_t shift = (int64_t)draw(9) - 4, edge = edges[draw(sizeof edges / sizeof *edges)];
    int64_t number;
    if (draw(3)) return (int64_t)draw(4) + least;
    if (__builtin_add_overflow(edge, shift, &number)) number = edge;
    return draw(2) || number == INT64_MIN ? number : -number;
}

static int64_t draw_positive(void) {
    const int64_t number = draw_number(1);
    return number < 1 && draw(8) ? 1 : number;
}

typedef struct text {
    char v[4096];
    size_t size;
} text;

static void __attribute__((format(printf, 2, 3))) put(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    t->size += (size_t)vsnprintf(t->v + t->size, sizeof t->v - t->size, format, args);
    va_end(args);
    assert_true(t->size < sizeof t->v);
}

static void put_pad(text *t) {
    put(t, "pad(a, z), padding=");
    for (int i = 0; i < 2; i++) {
        const long long low = draw_number(-1);
        /* Often, as many elements are removed at one end as are added at the other. */
        const long long high = draw(2) && low != INT64_MIN ? -low : draw_number(-1);
        put(t, "%s%lld_%lld", i ? "x" : "", low, high);
        if (draw(2)) put(t, "_%lld", (long long)draw_number(0));
    }
}

static void put_slice(text *t) {
    put(t, "slice(a), slice={");
    for (int i = 0; i < 2; i++)
        put(t, "%s[%lld:%lld:%lld]", i ? ", " : "", (long long)draw_number(0),
            (long long)draw_number(1), (long long)draw_positive());
    put(t, "}");
}

/* Draws a window with random attributes. */
static void put_window(text *t) {
    static const char *const words[] = {"size", "stride", "lhs_dilate", "rhs_dilate"};
    put(t, ", window={");
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        if (w && draw(2)) continue;
        put(t, "%s%s=%lldx%lld", w ? " " : "", words[w], (long long)draw_positive(),
            (long long)draw_positive());
    }
    if (draw(2)) {
        put(t, " pad=");
        for (int i = 0; i < 2; i++) {
            const long long low = draw_number(-1);
            const long long high = draw(2) && low != INT64_MIN ? -low : draw_number(-1);
            put(t, "%s%lld_%lld", i ? "x" : "", low, high);
        }
    }
    put(t, "}");
}

static void put_reduce_window(text *t) {
    put(t, "reduce-window(a, z)");
    put_window(t);
    put(t, ", to_apply=add");
}

static void put_convolution(text *t) {
    put(t, "convolution(k, f)");
    put_window(t);
    put(t, ", dim_labels=b01f_01io->b01f");
}

static void put_dynamic_slice(text *t) {
    put(t, "dynamic-slice(a, i, j), dynamic_slice_sizes={%lld,%lld}", (long long)draw_positive(),
        (long long)draw_positive());
}

static void put_dynamic_update_slice(text *t) {
    put(t, "dynamic-update-slice(a, u, i, j)");
}

/* Writes a module; hlo_infer() later finds the dimensions of its result. */
static void write_module(text *t, uint64_t seed) {
    static void (*const kinds[])(text *) = {
        put_pad,           put_pad,         put_slice,         put_reduce_window,
        put_reduce_window, put_convolution, put_dynamic_slice, put_dynamic_update_slice};
    t->size = 0;
    state = seed;
    const int rows = (int)draw(4), columns = 1 + (int)draw(4);
    put(t,
        "HloModule m\nadd {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n"
        "  ROOT s = f32[] add(x, y)\n}\nENTRY e {\n  a = f32[%d,%d] parameter(0)\n"
        "  k = f32[1,%d,%d,1] parameter(1)\n  f = f32[2,1,1,1] parameter(2)\n"
        "  u = f32[%d,1] parameter(3)\n  z = f32[] constant(1)\n",
        rows, columns, rows, columns, rows ? 1 : 0);
    put(t, "  i = s64[] constant(%lld)\n", (long long)draw_number(0));
    put(t, "  j = s64[] constant(%lld)\n", (long long)draw_number(0));
    const size_t kind = (size_t)draw(sizeof kinds / sizeof *kinds);
    put(t, "  ROOT r = f32[%s] ", kinds[kind] == put_convolution ? "1,1,1,1" : "1,1");
    kinds[kind](t);
    put(t, "\n}\n");
}

enum { MODULES = 20000, MAX_BYTES = 1 << 20, LEAST_RUNS = MODULES / 100 };

static bool runs(hlo_module *module) {
    hlo_instruction *root = module->entry->root;
    hlo_instruction *operands[8];
    for (uint32_t i = 0; i < root->operand_count; i++) operands[i] = hlo_instr_operand(root, i);
    const hlo_shape *shape = hlo_infer(module, root->op, root->operand_count, operands,
                                       root->attr_count, root->attrs, NULL, 0);
    if (!shape) {
        assert_int_not_equal(hlo_module_verify(module, NULL, NULL), HLO_OK);
        return false;
    }
    root->shape = shape;
    if (hlo_module_verify(module, NULL, NULL) != HLO_OK) return false;
    hlo_plan *plan;
    const int64_t bytes = hlo_shape_bytes(shape);
    if (bytes > MAX_BYTES || hlo_plan_new(module, NULL, NULL, &plan) != HLO_OK) return false;
    hlo_arrays *inputs, *outputs;
    assert_int_equal(hlo_arrays_draw(module, 0, NULL, &inputs), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, NULL, &outputs), HLO_OK);
    assert_int_equal(hlo_arrays_at(outputs, 0)->size, bytes);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return true;
}

static void large_extents_are_refused_or_run(void **unused) {
    (void)unused;
    int count = 0, read = 0;
    for (uint64_t seed = 0; seed < MODULES; seed++) {
        text t;
        hlo_module *module;
        write_module(&t, seed);
        if (hlo_module_parse(t.v, t.size, "m.hlo", NULL, &module) != HLO_OK) continue;
        read++;
        count += runs(module);
        hlo_module_free(module);
    }
    print_message("%d modules read, %d run\n", read, count);
    assert_true(count > LEAST_RUNS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_extents_are_refused_or_run)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
