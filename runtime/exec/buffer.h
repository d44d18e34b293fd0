/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of hlo_buffer. */
#ifndef HLO_RUNTIME_EXEC_BUFFER_H
#define HLO_RUNTIME_EXEC_BUFFER_H

#include "runtime/exec/memory.h"
#include "runtime/plan/plan.h"

struct hlo_buffer {
    hlo_array array;
    hlo_shape shape;
    plan_memory *memory; /* NULL: it was donated */
};

/* Creates a buffer of an array of `shape`, with a reference to `memory`, which is dropped on
 * failure; NULL if memory runs out. */
hlo_buffer *plan_buffer_new(const hlo_shape *shape, plan_memory *memory);
/* Checks that the plan is resident, and has such an input. */
hlo_status plan_buffer_check(const hlo_plan *plan, size_t input, const hlo_diag_sink *sink);
/* Emits an error and returns HLO_INVALID_USAGE. */
hlo_status plan_misuse(const hlo_diag_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Makes later work on `stream` see the buffer; NULL: waits for the buffer. */
hlo_status plan_buffer_hand_over(const hlo_buffer *buffer, void *stream, const hlo_diag_sink *sink);

#endif
