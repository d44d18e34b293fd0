/* SPDX-License-Identifier: Apache-2.0 */
/* A module: HLO held in memory. Opaque; read it from text (text.h) or from protobuf (proto.h),
 * rewrite it (pass.h), run it (runtime.h).
 *
 * A module owns everything in it, the text it was read from included; one call frees it. Two
 * threads may work on two modules; one module belongs to one thread at a time. */
#ifndef HLO_MODULE_H
#define HLO_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hlo/diag.h"
#include "hlo/status.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

typedef struct hlo_module hlo_module;

/* Frees the module; everything borrowed from it is invalid afterwards. NULL is allowed. */
void hlo_module_free(hlo_module *module);

/* The name after `HloModule`. Borrowed until the module is freed. */
const char *hlo_module_name(const hlo_module *module);

/* Makes a deep copy that shares nothing with `module`. On HLO_OK the caller frees *out_clone with
 * hlo_module_free(). HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_clone(const hlo_module *module, hlo_module **out_clone);

typedef struct hlo_verify_options {
    size_t struct_size;  /* see status.h */
    unsigned max_errors; /* errors reported; 0: HLO_MOST_ERRORS */
} hlo_verify_options;

/* Sets every field to its default. */
static inline void hlo_verify_options_init(hlo_verify_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Checks every rule of HLO that the library knows: shapes against operands, attributes, called
 * computations, order; and invalid text that HLO's reader accepts, such as the layout {1,1}. Each
 * violation is one error in `sink`, with a note for each other place involved; after `max_errors`
 * errors, one note has the number of the others. `options` may be NULL. HLO_INVALID_INPUT if there
 * is any violation. HLO_INVALID_USAGE: options->struct_size. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_verify(const hlo_module *module, const hlo_verify_options *options,
                             const hlo_diag_sink *sink);

/* Compares the computation of two modules. Names, ids, metadata, the operand order of commutative
 * operations and the order of instructions are ignored (the last counts in a scheduled module).
 * HLO_OK: the modules are equal, and nothing is written. HLO_MISMATCH: the differences are written
 * to `out`: the matmuls, FP8 calls and dots, paired by op_name and shape; the number of
 * instructions of each opcode; the first differing instruction of each computation, with its
 * position in both files, and its value if it is a constant. HLO_OUT_OF_MEMORY. Write errors show
 * in `out` (ferror). */
hlo_status hlo_module_diff(const hlo_module *a, const hlo_module *b, FILE *out);
/* Compares the matmuls alone, and writes how many are as before, with the differences. HLO_OK: all
 * are as before. Statuses otherwise as for hlo_module_diff(). */
hlo_status hlo_module_diff_matmuls(const hlo_module *a, const hlo_module *b, FILE *out);

/* Writes, as aligned text, the counts of opcodes, element types and bytes, each computation counted
 * once, and the FLOPs of one execution. FLOPs are counted as by XLA's cost analysis
 * (xla/service/hlo_cost_analysis.cc): one for each element of an elementwise operation,
 * transcendental ones apart; a called computation at each call, of branches the one with most
 * FLOPs, a loop's body by the `"known_trip_count"` of its backend config or the trip count that the
 * loop itself shows. HLO_OUT_OF_MEMORY. Write errors show in `out` (ferror). */
hlo_status hlo_module_print_stats(const hlo_module *module, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
