/* SPDX-License-Identifier: Apache-2.0 */
/* The distance by which each rewritten matmul moves the outputs of a module. */
#ifndef HLO_BISECT_H
#define HLO_BISECT_H

#include "hlo/pass.h"
#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The distance of an execution from that of the original: of the output that is furthest, the norm
 * of the difference over that of the original (hlo_array_distance). */
typedef struct hlo_moved {
    double distance;
    size_t output;
} hlo_moved;

/* A rewritten matmul. All pointers are borrowed from the hlo_bisection. */
typedef struct hlo_bisected {
    const char *matmul;       /* its name in the module before */
    const char *op_name;      /* NULL: it has none */
    hlo_moved alone, without; /* with it alone rewritten, and with all but it */
} hlo_bisected;

/* The result of hlo_module_bisect(); owns everything in it. */
typedef struct hlo_bisection hlo_bisection;

/* Executes `module`, which no pass has changed, on `inputs`: as it is, with all matmuls rewritten
 * that `pass` rewrites, with each of them alone, and with all but it. `pass` NULL: the defaults; so
 * `plan`, the options of the executions of rewritten modules. On HLO_OK the caller frees
 * *out_bisection with hlo_bisection_free(). Statuses as for hlo_module_optimize(), hlo_plan_new()
 * and hlo_plan_run(), whose errors are in `sink`. */
hlo_status hlo_module_bisect(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *inputs,
                             const hlo_diag_sink *sink, hlo_bisection **out_bisection);
void hlo_bisection_free(hlo_bisection *bisection); /* NULL is allowed */
/* The number of rewritten matmuls, and the one at `index`, which must be below it: those that move
 * the outputs most alone come first. */
size_t hlo_bisection_count(const hlo_bisection *bisection);
const hlo_bisected *hlo_bisection_at(const hlo_bisection *bisection, size_t index);
/* The distance with all matmuls rewritten; and of the module as it is with its own results moved by
 * their rounding errors, which no rewrite is to blame for. */
hlo_moved hlo_bisection_all(const hlo_bisection *bisection);
hlo_moved hlo_bisection_rounding(const hlo_bisection *bisection);
/* Writes a table of all of these. Write errors show in `out` (ferror). */
void hlo_bisection_print(const hlo_bisection *bisection, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
