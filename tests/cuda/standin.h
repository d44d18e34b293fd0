/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for CUDA's libraries on a machine without a GPU: one shared library with the functions
 * of all three (runtime/cuda/driver/cublaslt.def). Memory is the host's, streams do things at once,
 * what is captured is kept and done when the graph is launched, in any order that its edges allow,
 * kernels are compiled by the host's C++ compiler and run thread by thread.
 *
 * Environment:
 *   HLO_STANDIN_LOG     a file to which every call is appended, a line each
 *   HLO_STANDIN_FAIL    NAME:N=STATUS: the N-th call of that function, from 1, does nothing and
 *                       returns STATUS
 *   HLO_STANDIN_FAIL_ALL  NAME: every call of that function fails with the status 1
 *   HLO_STANDIN_CONTEXT  if set, streams are of another context
 *   HLO_STANDIN_SM      compute capability * 10 of the device; 90 if unset
 *   HLO_STANDIN_ACCUMULATE  hopper: products of fp8 values are summed as tensor cores of Hopper do;
 *                       otherwise, as all others, in f64
 *   HLO_STANDIN_LATE    if set, a stream does what is queued when something waits for it
 *   HLO_STANDIN_ORDER   of the nodes of a graph that could be next, which is: 0: the one recorded
 *                       first; 1, or unset: last; otherwise the seed of a random choice
 *   HLO_STANDIN_DRIVER  the version of CUDA that the driver has; 13000 if unset
 *   HLO_STANDIN_NVRTC   the version of NVRTC, major * 100 + minor; 1300 if unset
 *   HLO_STANDIN_CLOCK   if set, the device's clock stands still but for its work: 1 ms for a
 *                       kernel, 1/4 ms for a copy or fill, and a matmul as its algorithm takes;
 *                       otherwise it is the host's, and goes forward by the matmuls' times */
#ifndef HLO_TESTS_CUDA_STANDIN_H
#define HLO_TESTS_CUDA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/cuda/driver/library.h"

/* Every function under the name by which the library exports it. */
#define CUDA_SYMBOL(library, name, symbol, result, parameters)                                     \
    result name parameters __asm__(symbol);
#include "runtime/cuda/driver/cublaslt.def"
#undef CUDA_SYMBOL

/* Statuses of the driver. */
enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_CAPTURE_UNSUPPORTED = 900
};

/* Logs a call, whose name is the first word of `format`. Returns the status with which it is to
 * fail, or 0: what was made to fail, and what works in the thread's current context where there is
 * none. */
int standin_enter(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A line of the log that is no call. */
void standin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns compute capability * 10 of the device. */
int standin_sm(void);

/* Keep the other threads out, and let them in; within each other as often as wished. */
int standin_lock(void);
void standin_unlock(const int *locked);

/* Keeps the other threads out until the function returns. */
#define LOCK const int locked __attribute__((cleanup(standin_unlock), unused)) = standin_lock()
/* Logs a call in its function, which has the lock from there on, and returns where the call is made
 * to fail. */
#define ENTER(...)                                                                                 \
    const int entered __attribute__((cleanup(standin_unlock), unused)) = standin_lock();           \
    const int failed = standin_enter(__VA_ARGS__);                                                 \
    if (failed) return failed

typedef enum standin_kind {
    STANDIN_OTHER,
    STANDIN_KERNEL,
    STANDIN_EARLY /* a kernel that may start before the kernel that it depends on has ended */
} standin_kind;

/* Does run(argument) in the stream's turn: now, or whenever the graph is launched that is being
 * captured. `argument`, of `size` bytes, is copied. */
int standin_enqueue(cuda_stream *stream, standin_kind kind, void (*run)(void *argument),
                    const void *argument, size_t size);
/* Runs what a STANDIN_EARLY kernel does before it waits. The argument is run()'s. */
void standin_rehearse(const void *argument);
/* queue.c: queues run(argument) on a stream that is not captured. */
int standin_later(const cuda_stream *stream, void (*run)(void *argument), const void *argument,
                  size_t size);
/* A place in what was queued on a stream; all zero: nothing was. */
typedef struct standin_queue standin_queue;
typedef struct standin_place {
    standin_queue *queue;
    long count;
} standin_place;
standin_place standin_end_of(const cuda_stream *stream);
bool standin_is_done(standin_place place);
/* Does what is queued before the place. */
void standin_finish(standin_place place);
void standin_finish_all(void);
/* Makes the stream wait for the place. */
int standin_wait_later(const cuda_stream *stream, standin_place place);
/* driver.c: returns where the event was recorded last. */
standin_place standin_place_of(const cuda_event *event);
/* Waiting, allocating and asking are errors while a stream is captured: returns that error and
 * invalidates the capture, or 0 when nothing is captured. */
int standin_uncaptured(void);
/* True if these bytes lie in one allocation of the device's memory. */
bool standin_allocated(const void *memory, size_t size);
/* "memory N+offset", N being the number of the allocation, from 1; NULL when it is in none.
 * Written to `capacity`. */
const char *standin_name(const void *memory, char capacity[64]);
/* Returns the one context. */
cuda_context *standin_context(void);
/* True if a context is current in the thread. */
bool standin_has_context(void);
/* Sets the value of a conditional handle. */
void standin_set_conditional(uint64_t handle, unsigned value);
/* Makes time pass on the device's clock, which events read; standin_work() under HLO_STANDIN_CLOCK
 * alone. */
void standin_pass(double milliseconds);
void standin_work(double milliseconds);
/* Notes that all events that were recorded are over. */
void standin_await(void);

#endif
