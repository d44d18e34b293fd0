/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the dependencies between a graph's nodes with those of all pairs of nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cuda/driver/order.h"

/* ---------------------------------------------------------------------------------------- order */

enum { NODES = 200, RANGES = 5, MEMORY = 64 };

typedef struct tried {
    cuda_range ranges[RANGES];
    uint32_t range_count, before[CUDA_LANES];
    int before_count;
    bool barrier;
    bool after[NODES]; /* nodes that must run before this node */
} tried;

static uint64_t random_state;

static uint32_t random_below(uint32_t end) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(random_state >> 33) % end;
}

/* Returns an address of memory that need not exist, since only the address is used. */
static const void *address(uintptr_t at) {
    return (const void *)(4096 + at);
}

static bool overlap(const cuda_range *a, const cuda_range *b) {
    const uintptr_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;
    return (a->written || b->written) && x < y + b->size && y < x + a->size && a->size && b->size;
}

static bool conflict(const tried *a, const tried *b) {
    bool found = a->barrier || b->barrier;
    for (uint32_t i = 0; i < a->range_count && !found; i++)
        for (uint32_t k = 0; k < b->range_count && !found; k++)
            found = overlap(&a->ranges[i], &b->ranges[k]);
    return found;
}

static void draw(tried *t, uint32_t widest) {
    t->range_count = random_below(RANGES);
    for (uint32_t i = 0; i < t->range_count; i++) {
        const uint32_t size = random_below(widest + 1);
        t->ranges[i] =
            (cuda_range){address(random_below(MEMORY - size + 1)), size, random_below(3) == 0};
    }
}

static void add(cuda_order *order, tried *nodes, uint32_t n) {
    tried *t = &nodes[n];
    if (t->barrier) {
        assert_true(cuda_order_add_barrier(order));
        memset(t->after, true, n * sizeof *t->after);
        return;
    }
    t->before_count = cuda_order_add(order, t->ranges, t->range_count, t->before);
    assert_in_range(t->before_count, 0, CUDA_LANES);
    for (int i = 0; i < t->before_count; i++) {
        assert_true(t->before[i] < n);
        t->after[t->before[i]] = true;
        for (uint32_t k = 0; k < n; k++) t->after[k] |= nodes[t->before[i]].after[k];
    }
    for (int i = 0; i < t->before_count; i++)
        for (int k = 0; k < t->before_count; k++)
            assert_false(nodes[t->before[i]].after[t->before[k]]); /* no redundant edges */
}

/* Checks that the final nodes of the order are those without successors, and returns their
 * number. */
static int count_ends(const cuda_order *order, const tried *nodes, uint32_t count) {
    uint32_t ends[CUDA_LANES];
    const int found = cuda_order_ends(order, ends);
    int wanted = 0;
    for (uint32_t n = 0; n < count; n++) {
        bool is_end = true, listed = false;
        for (uint32_t k = n + 1; k < count; k++) is_end &= !nodes[k].after[n];
        for (int i = 0; i < found; i++) listed |= ends[i] == n;
        assert_int_equal(listed, is_end);
        wanted += is_end;
    }
    assert_int_equal(found, wanted);
    return found;
}

static void test_pairs(void **state) {
    (void)state;
    tried *nodes = calloc(NODES, sizeof *nodes);
    size_t beside = 0;
    assert_non_null(nodes);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        cuda_order *order = cuda_order_new();
        assert_non_null(order);
        random_state = seed;
        memset(nodes, 0, NODES * sizeof *nodes);
        for (uint32_t n = 0; n < NODES; n++) {
            nodes[n].barrier = seed % 3 == 0 && random_below(20) == 0;
            draw(&nodes[n], seed % 2 ? 4 : 20);
            add(order, nodes, n);
            for (uint32_t k = 0; k < n; k++) {
                if (conflict(&nodes[k], &nodes[n]) && !nodes[n].after[k])
                    fail_msg("seed %d: node %u is not after %u", (int)seed, n, k);
                beside += !nodes[n].after[k];
            }
            assert_in_range(count_ends(order, nodes, n + 1), 1, CUDA_LANES);
        }
        cuda_order_free(order);
    }
    free(nodes);
    assert_true(beside > 10000); /* many pairs of nodes are not ordered */
}

/* Adds a node, and checks that its direct predecessors are `first` and `second`, or only the first
 * `count` of these. */
static void check(cuda_order *order, cuda_range range, int count, uint32_t first, uint32_t second) {
    uint32_t before[CUDA_LANES] = {0};
    assert_int_equal(cuda_order_add(order, &range, 1, before), count);
    const int last = count > 1 && before[1] > before[0];
    if (count > 0) assert_int_equal(before[count > 1 && !last], first);
    if (count > 1) assert_int_equal(before[last], second);
}

/* Tests each kind of dependency separately. */
static void test_kinds(void **state) {
    (void)state;
    cuda_order *order = cuda_order_new();
    check(order, (cuda_range){address(0), 8, true}, 0, 0, 0);   /* 0 */
    check(order, (cuda_range){address(8), 8, true}, 0, 0, 0);   /* 1: adjacent to node 0's */
    check(order, (cuda_range){address(4), 8, false}, 2, 0, 1);  /* 2: reads what 0, 1 wrote */
    check(order, (cuda_range){address(4), 4, false}, 1, 0, 0);  /* 3: need not follow reader 2 */
    check(order, (cuda_range){address(6), 1, true}, 2, 2, 3);   /* 4: writes what 2, 3 read */
    check(order, (cuda_range){address(0), 7, true}, 1, 4, 0);   /* 5: overwrites all of these */
    check(order, (cuda_range){address(20), 0, true}, 0, 0, 0);  /* 6: an empty range */
    check(order, (cuda_range){address(12), 4, false}, 1, 1, 0); /* 7: reads what 1 wrote */
    assert_true(cuda_order_add_barrier(order));                 /* 8: a barrier */
    check(order, (cuda_range){address(40), 4, false}, 1, 8, 0);
    cuda_order_free(order);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_kinds),
    };
    return cmocka_run_group_tests_name("cuda order", tests, NULL, NULL);
}
