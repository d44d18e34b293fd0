/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of hlo_buffer. */
#ifndef HLO_RUNTIME_EXEC_BUFFER_H
#define HLO_RUNTIME_EXEC_BUFFER_H

#include "runtime/exec/memory.h"
#include "runtime/plan/plan.h"

struct hlo_buffer {
    hlo_array array;
    hlo_shape shape;
    plan_memory *memory; /* NULL: it was donated */
};

/* Makes a buffer of an array of `shape`, with a share of `memory`, which is dropped on failure;
 * NULL when memory runs out. */
hlo_buffer *plan_buffer_new(const hlo_shape *shape, plan_memory *memory);
/* Checks that the plan is resident, and has such an input. */
hlo_status plan_buffer_check(const hlo_plan *plan, size_t input, const hlo_diag_sink *sink);
/* Returns HLO_INVALID_USAGE, after an error. */
hlo_status plan_misuse(const hlo_diag_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Lets work behind `stream` see the buffer, or waits for it if that is NULL. */
hlo_status plan_buffer_hand_over(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink);

#endif
