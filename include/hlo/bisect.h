/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that execute a module to measure its matmuls: how much each rewritten matmul changes
 * the outputs, and the largest values of the operands. They also select the matmuls to quantize
 * within a limit on the change. */
#ifndef HLO_BISECT_H
#define HLO_BISECT_H

#include "hlo/pass.h"
#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The difference between the outputs of a rewritten module and those of the original module. The
 * struct has no other fields in any version of the library. */
typedef struct hlo_output_change {
    double distance; /* The relative change of the most affected output: the norm of the difference
                        divided by the norm of the original output (hlo_array_distance()). */
    size_t output;   /* The index of the most affected output. */
} hlo_output_change;

/* The effect of one rewritten matmul, or of several matmuls that become one FP8 call or have the
 * same name. All pointers are borrowed from the hlo_bisection. */
typedef struct hlo_matmul_effect {
    size_t struct_size;        /* See status.h. */
    const char *matmul;        /* The name of the matmul in the original module. */
    const char *op_name;       /* The op_name in its metadata, or NULL. */
    hlo_output_change alone;   /* The change if only this matmul is rewritten. */
    hlo_output_change without; /* The change if all other matmuls are rewritten. Not set by
                          hlo_module_budget(). */
    /* The following fields are set by hlo_module_budget(). */
    bool chosen;             /* The matmul is quantized. */
    double predicted_saving; /* The sum of hlo_verdict.predicted_saving over its FP8 calls. */
    double snr_db;           /* hlo_verdict.snr_db. */
} hlo_matmul_effect;

/* The result of hlo_module_bisect() or hlo_module_budget(). */
typedef struct hlo_bisection hlo_bisection;

/* The selection of hlo_module_budget(). All pointers are borrowed from the hlo_bisection. */
typedef struct hlo_budget {
    size_t struct_size;         /* See status.h. */
    double max_error;           /* The limit. */
    double predicted;           /* The predicted change if the selected matmuls are quantized. */
    hlo_output_change measured; /* The measured change if the selected matmuls are quantized. It may
                        exceed the limit. */
    /* The matmuls that stay wide, as a value of hlo_pass_options.wide: those that
     * hlo_pass_options.wide selected before, and those that were not selected. With this value,
     * hlo_module_optimize() quantizes exactly the selected matmuls. "" if there are none. */
    const char *wide;
    /* The predicted seconds that the selected matmuls save in one run of the module, or 0 if they
     * are unknown. */
    double predicted_saving;
    /* The number of executions of modules. */
    size_t runs;
    /* The verdicts if the selected matmuls are quantized. The measured fields are set for all
     * measured matmuls, including those that were not selected. */
    const hlo_report *report;
} hlo_budget;

/* Executes `module` on `inputs` in several forms: the original module, the module with all matmuls
 * rewritten, and for each rewritten matmul, the module with only this matmul rewritten and the
 * module with all other matmuls rewritten. `module` must be the original module, and is not
 * changed. `pass` contains the options of the rewrite, and `plan` those of executing the rewritten
 * modules. Both may be NULL, which selects the defaults. If pass->quantize is set, the module with
 * only one quantized matmul contains the quantization, but no FP8 call, as after
 * hlo_module_quantize(). The caller must free *out_bisection with hlo_bisection_free().
 *
 * Returns the same statuses as hlo_module_optimize(), hlo_plan_new() and hlo_plan_run(). Errors of
 * the rewrite are reported to pass->sink, or to `sink` if `pass` is NULL; all other errors are
 * reported to `sink`. */
hlo_status hlo_module_bisect(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *inputs,
                             const hlo_diag_sink *sink, hlo_bisection **out_bisection);

/* Selects the matmuls that pass->quantize quantizes, so that the outputs change by at most
 * `max_error` (hlo_output_change.distance), and as much time as possible is saved.
 *
 * Executes the original module, the module with all matmuls quantized, and for each quantized
 * matmul, the module with only this matmul quantized. Matmuls that the program quantizes are not
 * converted in these modules. Predicts the change of an output as the square root of the sum of
 * the squared changes of the selected matmuls. If the measured change with all matmuls quantized is
 * larger than predicted, increases all predictions for this output by that ratio. Tries the matmuls
 * in the order of predicted seconds saved per squared change, and selects those with which each
 * output is predicted to stay within the limit. Seconds are those of hlo_verdict.predicted_saving,
 * or FLOPs if these are unknown. If the outputs stay within the limit with all matmuls, selects
 * all. Then executes the module with the selected matmuls quantized, unless this module has been
 * executed before. For N quantized matmuls, there are at most N + 3 executions for each element of
 * `inputs`. `inputs` is an array of `input_count` sets of inputs. With several sets, the largest
 * change of each output counts.
 *
 * `max_error` must not be negative or NaN; it may be infinite. The other parameters and statuses
 * are those of hlo_module_bisect(). In addition, returns HLO_INVALID_USAGE, with an error in
 * `sink`, if `max_error` is invalid, if pass->quantize is NULL, or if `input_count` is 0. */
hlo_status hlo_module_budget(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *const *inputs,
                             size_t input_count, double max_error, const hlo_diag_sink *sink,
                             hlo_bisection **out_bisection);

/* Returns the selection of hlo_module_budget(), borrowed from the bisection, or NULL for a result
 * of hlo_module_bisect(). */
const hlo_budget *hlo_bisection_budget(const hlo_bisection *bisection);

/* Frees a bisection. `bisection` may be NULL. */
void hlo_bisection_free(hlo_bisection *bisection);

/* Returns the number of rewritten matmuls. */
size_t hlo_bisection_count(const hlo_bisection *bisection);

/* Returns the effect of a rewritten matmul, borrowed from the bisection. The matmul with the
 * largest change `alone` is the first. `index` must be less than hlo_bisection_count(). */
const hlo_matmul_effect *hlo_bisection_at(const hlo_bisection *bisection, size_t index);

/* Returns the change if all matmuls are rewritten, borrowed from the bisection. */
const hlo_output_change *hlo_bisection_all(const hlo_bisection *bisection);

/* For a result of hlo_module_bisect(), returns the change that rounding alone causes, borrowed from
 * the bisection. To measure it, the original module is executed with each result changed at random
 * by its rounding error. Rewriting need not be the cause of changes of this size. */
const hlo_output_change *hlo_bisection_rounding(const hlo_bisection *bisection);

/* Writes to `out` a table of all changes and, for a result of hlo_module_budget(), the selection.
 */
hlo_status hlo_bisection_print(const hlo_bisection *bisection, hlo_writer out);

/* Executes `module` on each of `count` inputs on the CPU, and writes to `out`, as JSON for
 * hlo_pass_options.amaxes, the amax, which is the largest absolute value, of each operand that
 * hlo_pass_options.quantize may quantize. The amax of a value that is computed several times is the
 * maximum. A value of which a loop uses slices has an amax for each slice. `module` is not changed.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if an operand has a NaN or an infinity, and
 * the same statuses as hlo_module_optimize(), hlo_plan_new() and hlo_plan_run(). */
hlo_status hlo_module_record_amaxes(const hlo_module *module, const hlo_arrays *const *inputs,
                                    size_t count, const hlo_diag_sink *sink, hlo_writer out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
