/* Running a module: arrays, .npz files, inputs from a seed, plans, comparison.
 *
 * A plan is made once for a verified module and a backend, and run any number of times:
 *
 *     hlo_plan_new() -> hlo_plan_run() ... -> hlo_plan_free()
 *
 * Inputs are the leaves of the entry computation's parameters, in order; outputs are the leaves of
 * its result, flattened in order. */
#ifndef HLO_RUNTIME_H
#define HLO_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------------------------- arrays */

/* One array, dense and row-major, little-endian; pred and integers of fewer than 8 bits take one
 * byte each. All pointers are borrowed from the hlo_arrays that holds it. */
typedef struct hlo_array {
    const char *type; /* as in HLO text, e.g. "f8e4m3fn"; static storage */
    uint32_t rank;
    const int64_t *dims; /* rank entries */
    void *data;          /* `size` bytes; may be written to */
    size_t size;
    float *bound; /* per element, how far another legitimate execution may be from this one, as a
                     standard deviation (0: must be equal; NaN: nothing is known; of an element
                     that is not finite, a finite one above 0: it overflowed when it was rounded,
                     and so must the other); NULL when the plan did not keep it */
    /* With `bound`, how far legitimate executions were seen to be from this one
     * (hlo_arrays_sample): the root mean square of difference / bound over the elements whose bound
     * is finite and not 0; and of difference / root mean square of the elements, over those whose
     * bound is infinite, of which the analysis knows nothing. Negative: not sampled. */
    double noise[2];
} hlo_array;

/* Arrays in order; owns everything in them. */
typedef struct hlo_arrays hlo_arrays;

/* HLO_OUT_OF_MEMORY. The caller frees *out_arrays with hlo_arrays_free(). */
hlo_status hlo_arrays_new(hlo_arrays **out_arrays);
void hlo_arrays_free(hlo_arrays *arrays); /* NULL is allowed */
size_t hlo_arrays_count(const hlo_arrays *arrays);
/* The array at `index`, which must be below the count. Borrowed until the arrays are freed. */
const hlo_array *hlo_arrays_at(const hlo_arrays *arrays, size_t index);
/* Adds an array as the last one; `data` is copied, NULL gives zeros. HLO_INVALID_USAGE: no element
 * type is called `type`, or a dimension is negative. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_append(hlo_arrays *arrays, const char *type, uint32_t rank,
                             const int64_t *dims, const void *data);

/* --------------------------------------------------------------------------- inputs, .npz files */

/* What the arrays of a file are. */
typedef enum hlo_role { HLO_INPUTS, HLO_OUTPUTS } hlo_role;

/* Reads the inputs or the outputs of `module` from an .npz file, whose arrays are called 0, 1, 2
 * ..., or arr_0, arr_1 ... Element types are the module's: one that numpy does not have (bf16, fp8)
 * is taken from raw bytes of its width (`<V2`, `|V1`), as numpy stores ml_dtypes. Fortran order is
 * turned to row-major. HLO_INVALID_INPUT, with an error in `sink`: the file cannot be read or is no
 * .npz, an array is missing, or has another type or other dimensions than the module.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_read(const char *path, const hlo_module *module, hlo_role role,
                           const hlo_diag_sink *sink, hlo_arrays **out_arrays);
/* Writes an .npz file that numpy reads (numpy.load), arrays called 0, 1, 2 ..., the same bytes for
 * the same arrays. HLO_INVALID_INPUT: `out` cannot be written to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_write(const hlo_arrays *arrays, FILE *out);

/* Draws the inputs of `module` as numpy.random.default_rng(seed) draws them, bit for bit: floats
 * standard normal, rounded to f32 and then to the type, made positive where the parameter's op_name
 * says `_scale`, `amax`, `.nu` or `['scale`; integers 0 to 7; pred 0 or 1.
 * HLO_INVALID_INPUT: an input is no array. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_draw(const hlo_module *module, uint64_t seed, const hlo_diag_sink *sink,
                           hlo_arrays **out_arrays);

/* ---------------------------------------------------------------------------------------- plans */

typedef struct hlo_plan hlo_plan;

/* Initialise with hlo_plan_options_init(), then change fields. */
typedef struct hlo_plan_options {
    const char *backend; /* default "cpu" */
    bool bounds;         /* outputs carry hlo_array.bound; about twice the memory and time. Default
                            false */
    bool roundings_may_be_dropped; /* with `bounds`: they also cover a program in which roundings to
                                      a narrower type between operations were left out, as fused
                                      kernels do, or scales applied elsewhere. Default false */
    bool perturbed; /* without `bounds`: each run moves every inexact result at random by some times
                       its own rounding error, dropped roundings included if the option above says
                       so. The n-th run of a plan always draws the same numbers. Default false */
    /* Of "cuda", which keeps no bounds and is not perturbed: */
    int describe;       /* an architecture, e.g. 90: the plan is for such a device, of which none
                           need be here, and can be printed, but not run. Default 0: the plan is
                           for the first device of this machine */
    int cuda;           /* with `describe`: the toolkit, major * 100 + minor. Default 1208 */
    bool host_fallback; /* an instruction that the device cannot run is run on the host, with a
                           warning; else it is an error. Default false */
    bool graph;         /* the plan is recorded in CUDA graphs and runs replay them. Default true */
    int autotune;       /* how many of cuBLASLt's algorithms are timed for each matmul when the plan
                           is made; 0: its first choice is taken. Default 0 */
    const char *autotune_cache; /* the file in which timings are kept; borrowed while the plan is
                                   made. Default NULL: none */
    const char *kernel_cache;   /* the folder in which compiled kernels are kept; likewise */
    size_t workspace; /* bytes that each matmul may use. Default 0: what the architecture wants */
} hlo_plan_options;

void hlo_plan_options_init(hlo_plan_options *options);

/* Makes a plan for the entry computation. `module` must outlive the plan, unchanged; it is verified
 * if it has not been. Everything is looked up and allocated here. On HLO_OK the caller frees
 * *out_plan. HLO_INVALID_USAGE: no backend is called so, or it keeps no bounds. HLO_INVALID_INPUT:
 * the module does not verify, the backend is not on this machine, or does not run an instruction;
 * one error in `sink` for each, at its place in the text. HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_new(const hlo_module *module, const hlo_plan_options *options,
                        const hlo_diag_sink *sink, hlo_plan **out_plan);
void hlo_plan_free(hlo_plan *plan); /* NULL is allowed */

/* Whether `inputs` are the module's. HLO_INVALID_INPUT, with an error in `sink`: they are not, in
 * number, type or dimensions. */
hlo_status hlo_plan_check(const hlo_plan *plan, const hlo_arrays *inputs,
                          const hlo_diag_sink *sink);
/* Runs the plan on `inputs`, which are not changed. The caller frees *out_outputs. A plan runs once
 * at a time. HLO_INVALID_INPUT: the inputs are not the module's in number, type or dimensions, or
 * the device failed. HLO_INVALID_USAGE: the plan was made to be printed. HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_run(hlo_plan *plan, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs);

/* Writes steps, buffers and how the backend runs each step, as text that depends on the module, the
 * backend and the options only. */
void hlo_plan_print(const hlo_plan *plan, FILE *out);
/* Seconds that the last run took, without copying inputs and outputs; 0 before the first. */
double hlo_plan_seconds(const hlo_plan *plan);

/* ----------------------------------------------------------------------------------- comparison */

/* How one array compares with another. Every element is in one of the first four counts. */
typedef struct hlo_difference {
    int64_t equal;      /* the same value, or both NaN */
    int64_t within;     /* not the same, but within the bound */
    int64_t one_step;   /* fp8 neighbours, with a rounding boundary within the bound */
    int64_t violations; /* further apart, or infinite or NaN on one side only */
    double largest;     /* of |a - b| / bound, where the bound is not 0 and all is finite */
    double rms; /* root mean square of (a - b) / hlo_array.bound, where that is finite and not 0 */
    double noise; /* the difference in units of what legitimate executions show (hlo_array.noise)
                     and of one rounding of the type, together; 0 when there are no samples */
    double noise_limit; /* what `noise` may be at most: 2.5 + 10/sqrt(elements) */
    int64_t worst; /* row-major index of the element that is furthest beyond its bound; -1: none
                      is */
    double judge, other, bound; /* there */
} hlo_difference;

/* Compares two arrays of one type. `judge` comes from a plan with `bounds`, which say how far
 * `other` may be from it; without them the two must be equal. HLO_MISMATCH: there is a violation,
 * or `noise` exceeds its limit. HLO_INVALID_USAGE: types or dimensions differ. */
hlo_status hlo_array_compare(const hlo_array *judge, const hlo_array *other,
                             hlo_difference *out_difference);
/* Two executions and who judges them; initialise with {0}. All is borrowed. */
typedef struct hlo_comparison {
    const hlo_arrays *found, *expected;
    /* Executions with bounds. The two agree when one of them accepts all elements, and the noise of
     * all arrays, of both sides; a side may be the judge itself, which accepts it. So the answer
     * does not depend on which side is called what. None: the two must be equal. */
    const hlo_arrays *const *judges;
    size_t judge_count;
    /* For the text; NULL where unknown: the modules that computed the two, what they are called,
     * and the inputs of both, on which what made the worst element is computed again. */
    const hlo_module *found_module, *expected_module;
    const char *found_name, *expected_name;
    const hlo_arrays *inputs;
    bool all; /* a line for each output that agrees, too */
} hlo_comparison;

/* Executes `module` a few times more on `inputs` with results moved at random (`options`, but
 * perturbed and without bounds) and notes in each array of `judge`, which such a plan with bounds
 * has computed from the same, how far that moves it: hlo_array.noise. Bounds alone take errors to
 * be independent, which makes them wide where many operations follow on one another; samples do
 * not. They are taken, from 3 up to 16, until they explain both sides of `comparison`, or do not.
 * Errors as of hlo_plan_new() and hlo_plan_run(). */
hlo_status hlo_arrays_sample(hlo_arrays *judge, const hlo_comparison *comparison,
                             const hlo_module *module, const hlo_plan_options *options,
                             const hlo_arrays *inputs, const hlo_diag_sink *sink);
/* Compares all; for each output that differs it writes to `out` how many elements do, the largest
 * errors, the signal to noise ratio, and the worst element with what it is made of; then a last
 * line that begins with `compare:` and says how many agree. `out` NULL: only the answer.
 * HLO_MISMATCH: one does not, or the two differ in number, type or dimensions. HLO_OUT_OF_MEMORY.
 */
hlo_status hlo_arrays_compare_by(const hlo_comparison *comparison, FILE *out);
/* The same of `other` and `judge`, which judges it. */
hlo_status hlo_arrays_compare(const hlo_arrays *judge, const hlo_arrays *other, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
