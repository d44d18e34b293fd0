/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in memory as kernels receive them, and the host services that kernels use. */
#ifndef HLO_IR_KERNEL_VIEW_H
#define HLO_IR_KERNEL_VIEW_H

#include "ir/ir.h"

/* An array in memory: element (i0, i1, ...) is at data + (i0*strides[0] + i1*strides[1] + ...) *
 * hlo_types[type].bytes. Elements are represented as in hlo_literal. Owns nothing. */
typedef struct hlo_view {
    hlo_type type;
    uint32_t rank;
    const int64_t *dims;
    const int64_t *strides; /* in elements; 0 repeats an element */
    void *data;
} hlo_view;

/* Views elements of `shape` in row-major order. The view owns nothing; its strides are in `arena`.
 */
hlo_view hlo_view_of(hlo_arena *arena, const hlo_shape *shape, void *data);
/* Views elements in the order of the shape's layout, without data. */
hlo_view hlo_view_in_layout(hlo_arena *arena, const hlo_shape *shape);

/* Maximum number of dimensions of an array in kernels. */
enum { HLO_EVAL_MAX_RANK = 24 };

/* Called between the parts of long work. The work stops if it returns false. */
typedef struct hlo_watch {
    bool (*goes_on)(void *user);
    void *user;
} hlo_watch;

/* The host's threads for kernels. With a NULL env or a NULL `parallel`, the kernel uses only the
 * calling thread. */
typedef struct hlo_eval_env {
    void *user; /* passed to parallel() */
    /* Calls body(arg, begin, end) on disjoint ranges that cover [0, count), on any threads. Returns
     * after all calls have returned. */
    void (*parallel)(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                     void *arg);
    /* Called on the thread that runs the kernel, or NULL. If it stops the kernel, the results are
     * undefined. */
    const hlo_watch *watch;
} hlo_eval_env;

/* Dimension numbers of a dot. The lists of both operands have equal lengths. */
typedef struct hlo_dot_dims {
    const hlo_ints *lhs_batch, *lhs_contracting, *rhs_batch, *rhs_contracting;
} hlo_dot_dims;
hlo_dot_dims hlo_dot_dims_of(const hlo_instruction *dot);

/* Computes result[batch.., m.., n..] = lhs x rhs. Narrow floats are multiplied and accumulated in
 * f32. The result is rounded to its type, which may differ from the operands'. */
hlo_status hlo_eval_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                              const hlo_view *rhs, const hlo_view *result, hlo_arena *scratch,
                              const char **why);

#endif
