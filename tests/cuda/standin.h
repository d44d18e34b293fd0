/* SPDX-License-Identifier: Apache-2.0 */
/* A fake of CUDA's libraries for a machine without a GPU: one shared library with the functions of
 * all three (runtime/cuda/driver/cublaslt.def). Memory is host memory, streams execute work at
 * once, and captured calls are executed when the graph is launched, in any order that its edges
 * allow. Kernels are compiled by the host's C++ compiler and run thread by thread.
 *
 * Environment:
 *   HLO_STANDIN_LOG     a file to which every call is appended, a line each
 *   HLO_STANDIN_FAIL    NAME:N=STATUS: the N-th call of the function NAME, from 1, does nothing
 *                       and returns STATUS
 *   HLO_STANDIN_FAIL_ALL  NAME: every call of this function fails with the status 1
 *   HLO_STANDIN_CONTEXT  if set, streams belong to another context
 *   HLO_STANDIN_SM      compute capability * 10 of the device; 90 if unset
 *   HLO_STANDIN_ACCUMULATE  hopper: fp8 products are summed as Hopper's tensor cores do;
 *                       otherwise in f64, like all other products
 *   HLO_STANDIN_LATE    if set, a stream executes queued work only when a call waits for it
 *   HLO_STANDIN_ORDER   which of a graph's ready nodes runs next: 0: the node recorded
 *                       first; 1 or unset: the last; otherwise the seed of a random choice
 *   HLO_STANDIN_DRIVER  the driver's CUDA version; 13000 if unset
 *   HLO_STANDIN_NVRTC   the version of NVRTC, major * 100 + minor; 1300 if unset
 *   HLO_STANDIN_CLOCK   if set, the device's clock only advances with its work: 1 ms for a
 *                       kernel, 1/4 ms for a copy or fill, and for a matmul the time of its
 *                       algorithm; if unset, the host's clock plus the times of the matmuls */
#ifndef HLO_TESTS_CUDA_STANDIN_H
#define HLO_TESTS_CUDA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/cuda/driver/library.h"

/* Declares every function with the name that the library exports. */
#define CUDA_SYMBOL(library, name, symbol, result, parameters)                                     \
    result name parameters __asm__(symbol);
#include "runtime/cuda/driver/cublaslt.def"
#undef CUDA_SYMBOL

/* Statuses that the driver returns. */
enum {
    CUDA_INVALID_VALUE = 1,
    CUDA_NO_DEVICE = 100,
    CUDA_INVALID_IMAGE = 200,
    CUDA_INVALID_CONTEXT = 201,
    CUDA_INVALID_HANDLE = 400,
    CUDA_NOT_FOUND = 500,
    CUDA_CAPTURE_UNSUPPORTED = 900
};

/* Logs a call, whose name is the first word of `format`. Returns the status with which the call
 * must fail (injected, or because it requires a current context in the thread), or 0. */
int standin_enter(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes a line to the log that is not a call. */
void standin_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Returns compute capability * 10 of the device. */
int standin_sm(void);

/* Acquire and release the lock. A thread may acquire it several times. */
int standin_lock(void);
void standin_unlock(const int *locked);

/* Holds the lock until the function returns. */
#define LOCK const int locked __attribute__((cleanup(standin_unlock), unused)) = standin_lock()
/* Acquires the lock until the function returns, and logs the call. Returns from the function if the
 * call must fail. */
#define ENTER(...)                                                                                 \
    const int entered __attribute__((cleanup(standin_unlock), unused)) = standin_lock();           \
    const int failed = standin_enter(__VA_ARGS__);                                                 \
    if (failed) return failed

typedef enum standin_kind {
    STANDIN_OTHER,
    STANDIN_KERNEL,
    STANDIN_EARLY /* a kernel that may start before its predecessor has ended */
} standin_kind;

/* Calls run(argument) in stream order: immediately or, during a capture, whenever the graph is
 * launched. `argument`, of `size` bytes, is copied. */
int standin_enqueue(cuda_stream *stream, standin_kind kind, void (*run)(void *argument),
                    const void *argument, size_t size);
/* Runs the part of a STANDIN_EARLY kernel before its wait. The argument is that of run(). */
void standin_rehearse(const void *argument);
/* queue.c: queues run(argument) on a stream that is not being captured. */
int standin_later(const cuda_stream *stream, void (*run)(void *argument), const void *argument,
                  size_t size);
/* A position in a stream's queue; all zero: empty. */
typedef struct standin_queue standin_queue;
typedef struct standin_place {
    standin_queue *queue;
    long count;
} standin_place;
standin_place standin_end_of(const cuda_stream *stream);
bool standin_is_done(standin_place place);
/* Executes the queued work before the position. */
void standin_finish(standin_place place);
void standin_finish_all(void);
/* Makes the stream wait for the position. */
int standin_wait_later(const cuda_stream *stream, standin_place place);
/* driver.c: returns the position of the event's last record. */
standin_place standin_place_of(const cuda_event *event);
/* Waiting, allocating and querying are errors during a capture. Returns that error and invalidates
 * the capture; returns 0 if there is no capture. */
int standin_uncaptured(void);
/* Returns true if the `size` bytes at `memory` are in one allocation of device memory. */
bool standin_allocated(const void *memory, size_t size);
/* Writes "memory N+offset" to `capacity` bytes, where N is the number of the allocation, from 1;
 * returns NULL if the address is in no allocation. */
const char *standin_name(const void *memory, char capacity[64]);
/* Returns the device's only context. */
cuda_context *standin_context(void);
/* Returns true if a context is current in the thread. */
bool standin_has_context(void);
/* Sets the value of a conditional handle. */
void standin_set_conditional(uint64_t handle, unsigned value);
/* Advance the device's clock, from which events get their times. standin_work() does so only
 * if HLO_STANDIN_CLOCK is set. */
void standin_pass(double milliseconds);
void standin_work(double milliseconds);
/* Marks all recorded events as complete. */
void standin_await(void);

#endif
