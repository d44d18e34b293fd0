/* SPDX-License-Identifier: Apache-2.0 */
/* Tests products of matrices: sums are exact for suitable numbers, and otherwise have the same bits
 * for any division of the work among threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/eval/eval.h"
#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

static uint64_t seed = 1;

static int64_t draw(int64_t below) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)below);
}

/* Divides a loop into as many ranges as `user` specifies, and runs the last range first. */
static void divide(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                   void *arg) {
    const int64_t ranges = *(const int64_t *)user;
    for (int64_t r = ranges; r-- > 0;)
        if (count * r / ranges < count * (r + 1) / ranges)
            body(arg, count * r / ranges, count * (r + 1) / ranges);
}

/* Fills an operand of `lines` rows or columns with `terms` terms: integers of at most 3 or, if not
 * `exact`, quotients. Lines or terms are contiguous, or neither, or all lines are the same. */
static hlo_factor fill(hlo_arena *arena, hlo_type type, int64_t batches, int64_t lines,
                       int64_t terms, bool exact) {
    hlo_factor f = {.type = type, .batch = lines * terms, .line = terms, .term = 1};
    const int64_t form = draw(4), bytes = hlo_types[type].bytes;
    if (form == 1) f = (hlo_factor){.type = type, .batch = lines * terms, .line = 1, .term = lines};
    if (form == 2) f = (hlo_factor){type, NULL, lines * terms * 6, terms * 6, 3};
    if (form == 3) f = (hlo_factor){.type = type, .batch = terms, .line = 0, .term = 1};
    const int64_t count = batches * lines * terms * 6;
    char *data = hlo_arena_alloc(arena, (size_t)(count * bytes));
    for (int64_t i = 0; i < count; i++) {
        const double whole = (double)draw(7) - 3;
        hlo_number_store(type, data + i * bytes, exact ? whole : whole / (double)(1 + draw(9)));
    }
    f.data = data;
    return f;
}

static double element(const hlo_factor *f, int64_t batch, int64_t line, int64_t term) {
    const int64_t at = batch * f->batch + line * f->line + term * f->term;
    double value;
    hlo_lane_load_f64(f->type, (const char *)f->data + at * hlo_types[f->type].bytes, 0, 1, &value);
    return value;
}

static hlo_product draw_product(hlo_arena *arena, bool exact) {
    static const hlo_type types[] = {HLO_TYPE_F32, HLO_TYPE_F8E4M3FN, HLO_TYPE_BF16,
                                     HLO_TYPE_F8E5M2};
    const bool wide = draw(4) == 0;
    const int64_t most = draw(3) ? 40 : 160;
    hlo_product p = {.type = wide ? HLO_TYPE_F64 : HLO_TYPE_F32, .batches = 1 + draw(3)};
    p.m = 1 + draw(most);
    p.n = 1 + draw(most);
    p.k = draw(12) ? 1 + draw(most * 2) : 0;
    hlo_type a = types[draw(4)], b = types[draw(4)];
    p.a = fill(arena, wide && draw(2) ? HLO_TYPE_F64 : a, p.batches, p.m, p.k, exact);
    p.b = fill(arena, wide && draw(2) ? HLO_TYPE_F64 : b, p.batches, p.n, p.k, exact);
    p.c = hlo_arena_alloc(arena, (size_t)(p.batches * p.m * p.n * hlo_types[p.type].bytes));
    return p;
}

static void expect_sums(const hlo_product *p) {
    for (int64_t batch = 0; batch < p->batches; batch++)
        for (int64_t i = 0; i < p->m; i++)
            for (int64_t j = 0; j < p->n; j++) {
                double sum = 0, got;
                for (int64_t l = 0; l < p->k; l++)
                    sum += element(&p->a, batch, i, l) * element(&p->b, batch, j, l);
                const int64_t at = (batch * p->m + i) * p->n + j;
                got = p->type == HLO_TYPE_F64 ? ((const double *)p->c)[at]
                                              : (double)((const float *)p->c)[at];
                assert_true(got == sum);
            }
}

static void with_arena(void (*check)(hlo_arena *arena)) {
    jmp_buf recover;
    hlo_arena *arena = hlo_arena_new(&recover);
    assert_non_null(arena);
    if (setjmp(recover)) fail();
    check(arena);
    hlo_arena_free(arena);
}

static void check_sums(hlo_arena *arena) {
    static const hlo_eval_env alone = {0};
    for (int i = 0; i < 40; i++) {
        hlo_arena_mark mark = hlo_arena_here(arena);
        hlo_product p = draw_product(arena, true);
        hlo_product_run(&alone, &p, arena);
        expect_sums(&p);
        hlo_arena_release(arena, mark);
    }
}

static void exact_sums(void **state) {
    (void)state;
    with_arena(check_sums);
}

static void check_threads(hlo_arena *arena) {
    for (int i = 0; i < 40; i++) {
        hlo_arena_mark mark = hlo_arena_here(arena);
        hlo_product p = draw_product(arena, false);
        if (i == 0) p.m = p.n = 2100, p.k = 3, p.batches = 1; /* several blocks in each direction */
        if (i == 0) p.a = fill(arena, HLO_TYPE_BF16, 1, p.m, p.k, false);
        if (i == 0) p.b = fill(arena, HLO_TYPE_BF16, 1, p.n, p.k, false);
        const size_t size = (size_t)(p.batches * p.m * p.n * hlo_types[p.type].bytes);
        void *first = p.c = hlo_arena_alloc(arena, size);
        static const int64_t threads[] = {1, 2, 3, 5};
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
            int64_t ranges = threads[t];
            const hlo_eval_env env = {&ranges, divide, NULL};
            if (t > 0) p.c = hlo_arena_alloc(arena, size);
            hlo_product_run(&env, &p, arena);
            assert_memory_equal(p.c, first, size);
        }
        hlo_arena_release(arena, mark);
    }
}

static void threads_change_no_bit(void **state) {
    (void)state;
    with_arena(check_threads);
}

/* A row of a product does not depend on the other rows. */
static void check_rows(hlo_arena *arena) {
    static const hlo_eval_env alone = {0};
    hlo_product p = {.type = HLO_TYPE_F32, .batches = 1, .m = 37, .n = 50, .k = 600};
    p.a = fill(arena, HLO_TYPE_F32, 1, p.m, p.k, false);
    p.b = fill(arena, HLO_TYPE_F32, 1, p.n, p.k, false);
    float *all = p.c = hlo_arena_array(arena, (size_t)(p.m * p.n), sizeof *all);
    float *row = hlo_arena_array(arena, (size_t)p.n, sizeof *row);
    hlo_product_run(&alone, &p, arena);
    const char *data = p.a.data;
    for (int64_t i = 0, m = p.m; i < m; i++) {
        p.m = 1;
        p.c = row;
        p.a.data = data + i * p.a.line * (int64_t)sizeof(float);
        hlo_product_run(&alone, &p, arena);
        assert_memory_equal(row, all + i * p.n, (size_t)p.n * sizeof *row);
    }
}

static void rows_stand_alone(void **state) {
    (void)state;
    with_arena(check_rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(exact_sums),
                                       cmocka_unit_test(threads_change_no_bit),
                                       cmocka_unit_test(rows_stand_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
