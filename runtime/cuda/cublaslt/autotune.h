/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest of cuBLASLt's algorithms for a call, found by timing them on the device.
 *
 * The operands' memory is filled with numbers for the time of the search and gets its contents
 * back: what it holds when a plan is made means nothing, and NaNs would make every result equal.
 * Each of the heuristic's first algorithms computes the call once, and is dropped, with a warning
 * that names it, when it fails or its result differs from the first one's by more than a rounding
 * of the result's type and a share of its root mean square that no right sum reaches. The others
 * are timed, the median of several launches, each with the L2 cache emptied before.
 *
 * Timings may be kept in a file: a JSON object that has, for a device's name, a version of cuBLASLt
 * and a problem, the algorithm, how many were tried and how long it took. The file is replaced at
 * once by a whole one. A file that is no such object is an error, and stays as it is. */
#ifndef HLO_RUNTIME_CUDA_CUBLASLT_AUTOTUNE_H
#define HLO_RUNTIME_CUDA_CUBLASLT_AUTOTUNE_H

#include "runtime/cuda/cublaslt/matmul.h"

/* Chooses among at most device->autotune algorithms. The job and the addresses are those of the
 * call, its copies are not run. Warnings and what was found go to device->sink, at the
 * instruction's place. HLO_INVALID_INPUT, with `why` of `size` bytes filled: no algorithm is left,
 * the cache cannot be read or written, the device failed. */
hlo_status cuda_autotune(cuda_device *device, const hlo_job *job, const cuda_matmul *matmul,
                         cuda_call *call, void *const addresses[LT_PART_COUNT],
                         lt_heuristic *out_chosen, char *why, size_t size);

/* autotune_cache.c: choices by key, in memory and, if device->autotune_cache, in that file. */

/* Returns "NAME, cuBLASLt VERSION: PROBLEM", in the arena. */
const char *cuda_tuned_key(const cuda_device *device, const cuda_matmul *matmul, hlo_arena *arena);
/* Finds a choice among at least `tried` algorithms; reads the file before the first.
 * HLO_INVALID_INPUT: the file is no cache. HLO_OUT_OF_MEMORY. */
hlo_status cuda_tuned_find(cuda_device *device, const char *key, uint32_t tried, bool *out_known,
                           lt_heuristic *out_chosen, char *why, size_t size);
/* Keeps a choice, and replaces the file. HLO_INVALID_INPUT: it cannot be written. */
hlo_status cuda_tuned_add(cuda_device *device, const char *key, uint32_t tried, double milliseconds,
                          const lt_heuristic *chosen, char *why, size_t size);

#endif
