/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the fastest of cuBLASLt's algorithms for a call by timing them on the device.
 *
 * During the search, the operands' memory is filled with numbers, and its contents are restored
 * afterwards: they are meaningless when a plan is created, and NaNs would make every result equal.
 * Each of the heuristic's first algorithms computes the call once. It is dropped, with a warning
 * that names it, if it fails or if its result differs from the first one's by more than a rounding
 * of the result's type and a fraction of its root mean square that no correct sum reaches. The
 * others are timed: the median of several launches, each after clearing the L2 cache.
 *
 * Timings may be cached in a file: a JSON object that maps a device name, a cuBLASLt version and a
 * problem to the algorithm, the number of algorithms tried and the time. The file is replaced
 * atomically. A file that is not such an object is an error and is left unchanged. */
#ifndef HLO_RUNTIME_CUDA_CUBLASLT_AUTOTUNE_H
#define HLO_RUNTIME_CUDA_CUBLASLT_AUTOTUNE_H

#include "runtime/cuda/cublaslt/matmul.h"

/* Chooses among at most device->autotune algorithms. The job and the addresses are those of the
 * call; its copies are not run. Warnings and results are emitted to device->sink, at the
 * instruction's location. HLO_INVALID_INPUT, with `why` of `size` bytes filled: no algorithm is
 * left, the cache cannot be read or written, or the device failed. */
hlo_status cuda_autotune(cuda_device *device, const hlo_job *job, const cuda_matmul *matmul,
                         cuda_call *call, void *const addresses[LT_PART_COUNT],
                         lt_heuristic *out_chosen, char *why, size_t size);

/* autotune_cache.c: choices by key, in memory and, if device->autotune_cache is set, in that
 * file. */

/* Returns "NAME, cuBLASLt VERSION: PROBLEM", in the arena. */
const char *cuda_tuned_key(const cuda_device *device, const cuda_matmul *matmul, hlo_arena *arena);
/* Finds a choice among at least `tried` algorithms; the first call reads the file.
 * HLO_INVALID_INPUT: the file is not a cache. HLO_OUT_OF_MEMORY. */
hlo_status cuda_tuned_find(cuda_device *device, const char *key, uint32_t tried, bool *out_known,
                           lt_heuristic *out_chosen, char *why, size_t size);
/* Stores a choice, and replaces the file. HLO_INVALID_INPUT: the file cannot be written. */
hlo_status cuda_tuned_add(cuda_device *device, const char *key, uint32_t tried, double milliseconds,
                          const lt_heuristic *chosen, char *why, size_t size);

#endif
