/* SPDX-License-Identifier: Apache-2.0 */
/* HLO modules.
 *
 * An hlo_module is an opaque object that holds an HLO module in memory. Parse it from text (text.h)
 * or from protobuf (proto.h), inspect and edit it (ir.h, edit.h), rewrite it (pass.h), and run it
 * (runtime.h).
 *
 * A module owns its computations, instructions and strings, and a copy of the text from which it
 * was parsed. hlo_module_free() frees all of them. Different threads may use different modules at
 * the same time, but only one thread at a time may use a module. */
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

/* A module. */
typedef struct hlo_module hlo_module;

/* Frees `module` and everything that it owns. Pointers that were borrowed from the module become
 * invalid. `module` may be NULL. */
void hlo_module_free(hlo_module *module);

/* Returns the name of the module, which follows `HloModule` in text. The string is borrowed from
 * the module. */
const char *hlo_module_name(const hlo_module *module);

/* Creates a deep copy of `module` that shares nothing with it. The caller must free *out_clone with
 * hlo_module_free(). */
hlo_status hlo_module_clone(const hlo_module *module, hlo_module **out_clone);

/* Options of hlo_module_verify(). */
typedef struct hlo_verify_options {
    size_t struct_size;  /* See status.h. */
    unsigned max_errors; /* The maximum number of errors to report, or 0 for HLO_MAX_ERRORS. */
} hlo_verify_options;

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_verify_options_init(hlo_verify_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Checks whether `module` is valid HLO: the shapes of instructions and operands, attributes, called
 * computations, and the order of instructions. It also rejects invalid HLO that XLA's parser
 * accepts, such as the layout {1,1}.
 *
 * Each violation is reported to `sink` as one error, followed by a note for each other location
 * that is involved. After `max_errors` errors, one note contains the number of errors that are not
 * reported. `options` may be NULL, which selects the defaults.
 *
 * Returns HLO_INVALID_INPUT if the module is not valid. */
hlo_status hlo_module_verify(const hlo_module *module, const hlo_verify_options *options,
                             const hlo_diag_sink *sink);

/* Compares the computations and the headers of two modules. The comparison ignores names, ids,
 * metadata, the order of the operands of commutative operations, and, unless a module is scheduled,
 * the order of instructions.
 *
 * If the modules differ, the differences are written to `out`: the matmuls, which are cuBLASLt
 * calls and dots, matched by op_name and shape; the number of instructions of each opcode; the
 * attributes of the header; and the first instruction that differs in each computation, with its
 * position in both files and, for a constant, its value. If the modules are equal, nothing is
 * written.
 *
 * Returns HLO_OK if the modules are equal, and HLO_MISMATCH if they differ. */
hlo_status hlo_module_diff(const hlo_module *a, const hlo_module *b, hlo_writer out);

/* Compares only the matmuls of two modules, and writes the differences and the number of unchanged
 * matmuls to `out`.
 *
 * Returns HLO_OK if all matmuls are unchanged, and HLO_MISMATCH if one differs. */
hlo_status hlo_module_diff_matmuls(const hlo_module *a, const hlo_module *b, hlo_writer out);

/* Writes statistics of `module` to `out` as an aligned table: the sizes in bytes of parameters,
 * constants and results, and the numbers of instructions by opcode and by element type, with each
 * computation counted once; and the FLOPs of one execution.
 *
 * FLOPs are counted like in XLA's cost analysis (xla/service/hlo_cost_analysis.cc). An elementwise
 * operation counts as one FLOP for each element; transcendental operations are counted separately.
 * A called computation counts once for each call. A conditional counts as its most expensive
 * branch. A loop body counts as often as `"known_trip_count"` in the backend config states, as
 * often as the trip count that is derived from the loop, or once if neither is known. */
hlo_status hlo_module_print_stats(const hlo_module *module, hlo_writer out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
