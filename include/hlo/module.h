/* A module: HLO held in memory. Opaque; read it from text (text.h), rewrite it (pass.h), run it
 * (runtime.h).
 *
 * A module owns all that is in it, the text it was read from included; one call frees everything.
 * Two threads may work on two modules; one module belongs to one thread at a time. */
#ifndef HLO_MODULE_H
#define HLO_MODULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hlo/diag.h"
#include "hlo/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hlo_module hlo_module;

/* Frees the module and everything that was borrowed from it. NULL is allowed. */
void hlo_module_free(hlo_module *module);

/* The name after `HloModule`. Borrowed until the module is freed. */
const char *hlo_module_name(const hlo_module *module);

/* A deep copy that shares nothing with `module`; the caller frees it. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_clone(const hlo_module *module, hlo_module **out_clone);

typedef struct hlo_verify_options {
    unsigned max_errors; /* that are said; 0: HLO_MOST_ERRORS */
} hlo_verify_options;

/* Checks every rule of HLO that the library knows: shapes against operands, attributes, called
 * computations, order; and that the text has nothing that HLO's reader takes though it is wrong,
 * such as the layout {1,1}. Each violation is one error in `sink`, with a note for each other place
 * that it is about; after `max_errors`, one note says how many more there are. `options` may be
 * NULL. HLO_INVALID_INPUT if there is any violation. */
hlo_status hlo_module_verify(const hlo_module *module, const hlo_verify_options *options,
                             const hlo_diag_sink *sink);

/* Compares what two modules compute: names, ids, metadata, the order of the operands of commutative
 * operations and that of instructions do not count (the last does in a scheduled module).
 * HLO_OK: the same, and nothing is written. HLO_MISMATCH: what differs is written to `out`: the
 * matmuls, FP8 calls and dots, paired by op_name and shape; how many instructions of each opcode;
 * the first instruction of each computation, with its position in both files, and its value when it
 * is a constant. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_diff(const hlo_module *a, const hlo_module *b, FILE *out);

/* Writes counts of opcodes, element types and bytes, of which each computation counts once, and the
 * FLOPs of one execution, as aligned text. FLOPs are counted as XLA's cost analysis does: one for
 * each element of an elementwise operation, transcendental ones apart; what is called counts each
 * time, of branches the one with the most, and a loop's body as often as `"known_trip_count"` of
 * its backend config says or the loop itself shows. HLO_OUT_OF_MEMORY; what fails in writing shows
 * in `out`. */
hlo_status hlo_module_print_stats(const hlo_module *module, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
