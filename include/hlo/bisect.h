/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that measure how much each rewritten matmul changes the outputs of a module. */
#ifndef HLO_BISECT_H
#define HLO_BISECT_H

#include "hlo/pass.h"
#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The difference between the outputs of a rewritten module and those of the original module. */
typedef struct hlo_moved {
    double distance; /* The relative change of the most affected output: the norm of the difference
                        divided by the norm of the original output (hlo_array_distance()). */
    size_t output;   /* The index of the most affected output. */
} hlo_moved;

/* The effect of one rewritten matmul. All pointers are borrowed from the hlo_bisection. */
typedef struct hlo_bisected {
    const char *matmul;  /* The name of the matmul in the original module. */
    const char *op_name; /* The op_name in its metadata, or NULL. */
    hlo_moved alone;     /* The change if only this matmul is rewritten. */
    hlo_moved without;   /* The change if all other matmuls are rewritten. */
} hlo_bisected;

/* The result of hlo_module_bisect(). */
typedef struct hlo_bisection hlo_bisection;

/* Executes `module` on `inputs` in several forms: the original module, the module with all matmuls
 * rewritten, and for each rewritten matmul, the module with only this matmul rewritten and the
 * module with all other matmuls rewritten. `module` must be the original module, and is not
 * changed. `pass` contains the options of the rewrite, and `plan` those of executing the rewritten
 * modules. Both may be NULL, which selects the defaults. The caller must free *out_bisection with
 * hlo_bisection_free().
 *
 * Returns the same statuses as hlo_module_optimize(), hlo_plan_new() and hlo_plan_run(). Their
 * errors are reported to `sink`. */
hlo_status hlo_module_bisect(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *inputs,
                             const hlo_diag_sink *sink, hlo_bisection **out_bisection);

/* Frees a bisection. `bisection` may be NULL. */
void hlo_bisection_free(hlo_bisection *bisection);

/* Returns the number of rewritten matmuls. */
size_t hlo_bisection_count(const hlo_bisection *bisection);

/* Returns the effect of a rewritten matmul, borrowed from the bisection. The matmul with the
 * largest change `alone` is the first. `index` must be less than hlo_bisection_count(). */
const hlo_bisected *hlo_bisection_at(const hlo_bisection *bisection, size_t index);

/* Returns the change if all matmuls are rewritten. */
hlo_moved hlo_bisection_all(const hlo_bisection *bisection);

/* Returns the change that rounding alone causes. To measure it, the original module is executed
 * with each result changed at random by its rounding error. Rewriting need not be the cause of
 * changes of this size. */
hlo_moved hlo_bisection_rounding(const hlo_bisection *bisection);

/* Writes a table of all changes to `out`. */
void hlo_bisection_print(const hlo_bisection *bisection, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
