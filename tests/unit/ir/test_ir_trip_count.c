/* SPDX-License-Identifier: Apache-2.0 */
/* Compares trip counts found by analysis with execution of the loop: every way to count, to compare
 * and to end, for counters of several types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"
#include "ir/ir.h"
#include "ir/module/known.h"

typedef struct counter {
    const char *type;
    int64_t least, most;
} counter;

static const counter counters[] = {{"s8", INT8_MIN, INT8_MAX},
                                   {"u8", 0, UINT8_MAX},
                                   {"s32", INT32_MIN, INT32_MAX},
                                   {"s64", INT64_MIN, INT64_MAX}};

/* A loop that counts from `start` by `step`, while the comparison of counter and limit is true. */
typedef struct loop {
    counter counter;
    const char *update, *direction;
    bool limit_first, limit_carried;
    int64_t start, step, limit;
} loop;

enum { MAX_TRIPS = 1 << 20 };

static bool holds(const char *direction, int64_t a, int64_t b) {
    const bool equal = a == b, less = a < b;
    return strcmp(direction, "EQ") == 0   ? equal
           : strcmp(direction, "NE") == 0 ? !equal
           : strcmp(direction, "LT") == 0 ? less
           : strcmp(direction, "LE") == 0 ? less || equal
           : strcmp(direction, "GT") == 0 ? !less && !equal
                                          : !less;
}

/* Executes the loop. A counter that wraps around, or counts for too long, has no trip count. */
static uint64_t carried_out(const loop *l) {
    const bool down = strstr(l->update, "subtract") != NULL;
    int64_t at = l->start;
    for (uint64_t count = 0; count < MAX_TRIPS; count++) {
        const int64_t a = l->limit_first ? l->limit : at, b = l->limit_first ? at : l->limit;
        if (!holds(l->direction, a, b)) return count;
        if (down ? __builtin_sub_overflow(at, l->step, &at)
                 : __builtin_add_overflow(at, l->step, &at))
            return HLO_TRIP_COUNT_UNKNOWN;
        if (at < l->counter.least || at > l->counter.most) return HLO_TRIP_COUNT_UNKNOWN;
    }
    return HLO_TRIP_COUNT_UNKNOWN;
}

static uint64_t shown(const loop *l) {
    char text[1536];
    const char *t = l->counter.type;
    snprintf(text, sizeof text,
             "HloModule m\nbody {\n  s = (%s[], %s[]) parameter(0)\n"
             "  i = %s[] get-tuple-element(s), index=0\n  n = %s[] get-tuple-element(s), index=1\n"
             "  c = %s[] constant(%lld)\n  j = %s[] %s\n  ROOT t = (%s[], %s[]) tuple(j, n)\n}\n"
             "condition {\n  s = (%s[], %s[]) parameter(0)\n"
             "  i = %s[] get-tuple-element(s), index=0\n  n = %s[] get-tuple-element(s), index=1\n"
             "  k = %s[] constant(%lld)\n  ROOT m = pred[] compare(%s, %s), direction=%s\n}\n"
             "ENTRY e {\n  a = %s[] constant(%lld)\n  b = %s[] constant(%lld)\n"
             "  t = (%s[], %s[]) tuple(a, b)\n"
             "  ROOT w = (%s[], %s[]) while(t), condition=condition, body=body\n}\n",
             t, t, t, t, t, (long long)l->step, t, l->update, t, t, t, t, t, t, t,
             (long long)l->limit, l->limit_first ? (l->limit_carried ? "n" : "k") : "i",
             l->limit_first ? "i" : (l->limit_carried ? "n" : "k"), l->direction, t,
             (long long)l->start, t, (long long)l->limit, t, t, t, t);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "loop", NULL, &module), HLO_OK);
    assert_int_equal(hlo_module_verify(module, NULL, NULL), HLO_OK);
    const uint64_t count = hlo_while_trip_count(module->entry->root);
    hlo_module_free(module);
    return count;
}

static void compare(const loop *l) {
    const uint64_t expected = carried_out(l), count = shown(l);
    if (count != expected)
        fail_msg("%s from %lld, %s %lld while %s%s %lld%s: %llu, not %llu", l->counter.type,
                 (long long)l->start, l->update, (long long)l->step,
                 l->limit_first ? "limit first " : "", l->direction, (long long)l->limit,
                 l->limit_carried ? " (carried)" : "", (unsigned long long)count,
                 (unsigned long long)expected);
}

static void counts_are_those_of_the_loop(void **state) {
    (void)state;
    static const char *const updates[] = {"add(i, c)", "add(c, i)", "subtract(i, c)"};
    static const char *const directions[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    for (size_t t = 0; t < sizeof counters / sizeof *counters; t++) {
        const counter c = counters[t];
        const int64_t values[] = {0, 1, 7, 100, c.least, c.most};
        const int64_t steps[] = {1, 2, 3};
        for (size_t u = 0; u < sizeof updates / sizeof *updates; u++)
            for (size_t d = 0; d < sizeof directions / sizeof *directions; d++)
                for (size_t i = 0; i < 36; i++) {
                    /* For 64 bits, the limits of the type are beyond the counted range. */
                    const bool far = strcmp(c.type, "s64") == 0 && (i % 6 >= 4 || i / 6 >= 4);
                    if (far) continue;
                    const loop l = {.counter = c,
                                    .update = updates[u],
                                    .direction = directions[d],
                                    .limit_first = (i + u) % 2,
                                    .limit_carried = (i + d) % 3 == 0,
                                    .start = values[i / 6],
                                    .step = steps[(i + t) % 3],
                                    .limit = values[i % 6]};
                    compare(&l);
                }
    }
}

/* Tests trip counts just below and above the analysis' limit. */
static void long_loops_have_no_count(void **state) {
    (void)state;
    for (int64_t limit = MAX_TRIPS - 2; limit <= MAX_TRIPS + 1; limit++) {
        const loop l = {counters[2], "add(i, c)", "LT", false, false, 0, 1, limit};
        compare(&l);
    }
}

/* Loops with numbers of more than 32 bits, or whose counter is subtracted or multiplied, are not
 * analyzed. */
static void what_is_not_counted_with_is_unknown(void **state) {
    (void)state;
    const int64_t large = INT64_C(1) << 32;
    const loop loops[] = {{counters[3], "add(i, c)", "LT", false, false, 0, large, 3 * large},
                          {counters[3], "subtract(c, i)", "GT", false, false, 5, 1, 3},
                          {counters[3], "multiply(i, c)", "LT", false, false, 1, 2, 3}};
    for (size_t i = 0; i < sizeof loops / sizeof *loops; i++)
        assert_int_equal(shown(&loops[i]), HLO_TRIP_COUNT_UNKNOWN);
}

/* Visiting each operand of each addition would take 2^60 steps. */
static void chains_of_sums_end(void **state) {
    (void)state;
    enum { SUMS = 60 };
    char text[4096], *at = text;
    at += sprintf(at, "HloModule m\nbody {\n  ROOT s = (s32[]) parameter(0)\n}\n"
                      "condition {\n  s = (s32[]) parameter(0)\n"
                      "  x0 = s32[] get-tuple-element(s), index=0\n");
    for (int i = 0; i < SUMS; i++) at += sprintf(at, "  x%d = s32[] add(x%d, x%d)\n", i + 1, i, i);
    sprintf(at,
            "  k = s32[] constant(9)\n  ROOT m = pred[] compare(x%d, k), direction=LT\n}\n"
            "ENTRY e {\n  a = s32[] constant(1)\n  t = (s32[]) tuple(a)\n"
            "  ROOT w = (s32[]) while(t), condition=condition, body=body\n}\n",
            SUMS);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "loop", NULL, &module), HLO_OK);
    assert_int_equal(hlo_while_trip_count(module->entry->root), HLO_TRIP_COUNT_UNKNOWN);
    hlo_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_loop),
        cmocka_unit_test(long_loops_have_no_count),
        cmocka_unit_test(what_is_not_counted_with_is_unknown),
        cmocka_unit_test(chains_of_sums_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
