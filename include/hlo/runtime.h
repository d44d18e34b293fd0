/* SPDX-License-Identifier: Apache-2.0 */
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
#include <string.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --------------------------------------------------------------------------------------- arrays */

/* One array, dense and row-major, little-endian; pred and integers of fewer than 8 bits take one
 * byte each. All pointers are borrowed from the hlo_arrays that holds it. */
typedef struct hlo_array {
    const char *type; /* as in HLO text, e.g. "f8e4m3fn"; static storage */
    uint32_t rank;
    const int64_t *dims; /* rank entries */
    void *data;          /* `size` bytes; may be written to */
    size_t size;
    float *bound; /* the error bound of each element: the distance to other legitimate executions,
                     as a standard deviation (docs/numerics.md). 0: must be equal; NaN: nothing is
                     known; finite and above 0 for an element that is not finite: the element
                     overflowed when it was rounded, and must overflow in the other execution. NULL
                     when the plan kept no bounds */
    /* With `bound`, the distance of sampled executions from this one (hlo_arrays_sample): the root
     * mean square of difference / bound over the elements whose bound is finite and not 0; and of
     * difference / root mean square of the elements, over the elements whose bound is infinite.
     * Negative: not sampled. */
    double noise[2];
    const char *name; /* of a value that a plan kept (hlo_plan_values); NULL: it has none */
} hlo_array;

/* A list of arrays; owns everything in them. */
typedef struct hlo_arrays hlo_arrays;

/* Makes an empty list. On HLO_OK the caller frees *out_arrays with hlo_arrays_free().
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_new(hlo_arrays **out_arrays);
void hlo_arrays_free(hlo_arrays *arrays); /* NULL is allowed */
size_t hlo_arrays_count(const hlo_arrays *arrays);
/* The array at `index`, which must be below the count. Borrowed until the arrays are freed. */
const hlo_array *hlo_arrays_at(const hlo_arrays *arrays, size_t index);
/* Appends an array of `rank` dimensions; `data`, dense and row-major, is copied, NULL gives zeros.
 * HLO_INVALID_USAGE: there is no element type of that name, or a dimension is negative.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_append(hlo_arrays *arrays, const char *type, uint32_t rank,
                             const int64_t *dims, const void *data);

/* --------------------------------------------------------------------------- inputs, .npz files */

/* The role of the arrays of a file. */
typedef enum hlo_role { HLO_INPUTS, HLO_OUTPUTS } hlo_role;

/* Reads the inputs or the outputs of `module` from an .npz file, whose arrays are called 0, 1, 2
 * ..., or arr_0, arr_1 ..., or, inputs, as the parameters (hlo_plan_values). Element types are the
 * module's: one that numpy does not have (bf16, fp8) is read from raw bytes of its width (`<V2`,
 * `|V1`), as numpy stores ml_dtypes. Fortran order is converted to row-major. On HLO_OK the caller
 * frees *out_arrays with hlo_arrays_free(). HLO_INVALID_INPUT, with an error in `sink`: the file
 * cannot be read or is no .npz, an array is missing or has no place in the module, or its type or
 * dimensions are not the module's. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_read(const char *path, const hlo_module *module, hlo_role role,
                           const hlo_diag_sink *sink, hlo_arrays **out_arrays);
/* Reads those of several devices, device after device. Of inputs, those of one device are enough:
 * every device gets them. `devices` 1: as hlo_arrays_read(). */
hlo_status hlo_arrays_read_each(const char *path, const hlo_module *module, hlo_role role,
                                uint32_t devices, const hlo_diag_sink *sink,
                                hlo_arrays **out_arrays);
/* Writes an .npz file that numpy reads (numpy.load), arrays called by their names, those without
 * one 0, 1, 2 ... by their index; the same bytes for the same arrays. HLO_INVALID_INPUT: `out`
 * cannot be written to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_write(const hlo_arrays *arrays, FILE *out);

/* Draws the inputs of `module` with the generator of numpy.random.default_rng(seed) (PCG64,
 * ziggurat normals), bit for bit: floats standard normal, rounded to f32 and then to the type, made
 * positive where the parameter's op_name has `_scale`, `amax`, `.nu` or `['scale`; integers 0 to 7;
 * pred 0 or 1. On HLO_OK the caller frees *out_arrays with hlo_arrays_free(). HLO_INVALID_INPUT,
 * with an error in `sink`: an input is complex, or has an unbounded dimension. HLO_OUT_OF_MEMORY.
 */
hlo_status hlo_arrays_draw(const hlo_module *module, uint64_t seed, const hlo_diag_sink *sink,
                           hlo_arrays **out_arrays);

/* The kinds of inputs that are drawn. HLO_DRAW_REALISTIC: as of a model in use: weights divided by
 * the square root of the number of terms that the first dot sums with them, norms around 1, biases
 * and moments small, scales and amaxes that fit what they are of; else as HLO_DRAW_NORMAL, which is
 * hlo_arrays_draw(). What a parameter is of, its op_name tells, or its name where it has none:
 * `kernel`, `weight`, `param`, `embedding`, `bias`, `_scale`, `amax`, `['scale`, `.mu`, `.nu`. */
typedef enum hlo_draw { HLO_DRAW_NORMAL, HLO_DRAW_REALISTIC } hlo_draw;
/* Draws the inputs of several devices, device after device: those of device d with the seed `seed`
 * + d, but a parameter's are equal on devices that have equal parts of it by its sharding, or if it
 * has none, or if the module is not partitioned. `devices` 1: those of one. */
hlo_status hlo_arrays_draw_each(const hlo_module *module, hlo_draw kind, uint64_t seed,
                                uint32_t devices, const hlo_diag_sink *sink,
                                hlo_arrays **out_arrays);

/* ---------------------------------------------------------------------------------------- plans */

/* The largest number of devices that are simulated. */
enum { HLO_MOST_DEVICES = 1024 };

/* A module prepared for a backend. It borrows the module. */
typedef struct hlo_plan hlo_plan;

/* The accumulation of products of fp8 values: in f32, or as the tensor cores of Ada and Hopper do,
 * with 13 fraction bits (docs/numerics.md). */
typedef enum hlo_accumulate { HLO_ACCUMULATE_F32, HLO_ACCUMULATE_HOPPER } hlo_accumulate;

/* The progress of a run. */
typedef struct hlo_progress {
    double seconds;          /* since the run began */
    double done, total;      /* instructions executed, and those of the whole run; total 0: not
                                known, as a loop's trip count is not */
    const char *instruction; /* the name of the one that runs; borrowed from the module */
} hlo_progress;

/* An input whose memory an output takes (buffer.h). */
typedef struct hlo_donation {
    size_t input, output;
} hlo_donation;

/* Options of a plan. Initialize with hlo_plan_options_init(), then change fields. */
typedef struct hlo_plan_options {
    size_t struct_size;  /* see status.h */
    const char *backend; /* default "cpu" */
    bool bounds;         /* outputs carry hlo_array.bound; about twice the memory and time. Default
                            false */
    bool roundings_may_be_dropped; /* with `bounds`: they also cover a program in which roundings to
                                      a narrower type between operations were left out, as fused
                                      kernels do, or scales applied elsewhere. Default false */
    bool perturbed; /* without `bounds`: each run moves every inexact result at random by a multiple
                       of its own rounding error, dropped roundings included if the option above is
                       set. The n-th run of a plan always draws equal numbers. Default false */
    /* For "cuda", which keeps no bounds and is not perturbed: */
    int describe;       /* an architecture, e.g. 90: the plan is for such a device, of which none
                           need be here, and can be printed, but not run. Default 0: the plan is
                           for the first device of this machine */
    int cuda;           /* with `describe`: the toolkit, major * 100 + minor. Default 1208 */
    bool host_fallback; /* an instruction that the device cannot run is run on the host, with a
                           warning; else it is an error. Default false */
    bool graph;         /* the plan is recorded in CUDA graphs and runs replay them. Default true */
    int autotune; /* the number of cuBLASLt's algorithms timed for each matmul when the plan is
                     made; 0: cuBLASLt's first choice is taken. Default 0 */
    const char *autotune_cache; /* the file that keeps timings; borrowed while the plan is made.
                                   Default NULL: none */
    const char *kernel_cache;   /* the folder of compiled kernels, with a warning if it cannot keep
                                   them; borrowed while the plan is made. Default NULL: none */
    size_t workspace;           /* bytes that each matmul may use. Default 0: by the architecture */
    /* For any backend. With `values` or `check_finite` each instruction is executed by itself, in
     * no group and no CUDA graph, with equal results; with `profile` or `progress` in no graph. */
    const char *values; /* names of instructions, or globs (fnmatch(3)), separated by commas: runs
                           keep their values (hlo_plan_values). Borrowed while the plan is made.
                           Default NULL: none */
    bool check_finite;  /* runs look for the first instruction that makes a NaN, and for the first
                           that makes an infinity (hlo_plan_nonfinite). Default false */
    bool profile; /* runs take the time of every step (hlo_plan_print_profile). Default false */
    /* Called at the first instruction of a run, then about ten times a second, on the thread that
     * called the run, with `progress_user`. Returns true to continue; false stops the run, which
     * returns HLO_STOPPED. The plan stays valid. The cpu backend also calls it within an
     * instruction whose work it divides among threads, such as a matmul. Default NULL: not called
     */
    bool (*progress)(void *user, const hlo_progress *progress);
    void *progress_user;
    /* For "cpu": */
    uint32_t devices; /* simulated devices, a thread each, on which collectives are executed: as
                         many as the module's header has replicas and partitions. With more than
                         one, a run takes the inputs of each, device after device, or those of one
                         for all, and returns outputs device after device; `values` are called
                         NAME@DEVICE, `profile` and hlo_progress are of device 0. Default 1 */
    hlo_accumulate accumulate; /* the FP8 calls of the cpu backend; with `bounds`, these cover such
                                  executions, also where a dot is replaced by a call. Default
                                  HLO_ACCUMULATE_F32 */
    /* For any backend, without `bounds` and `perturbed`, for one device: */
    bool resident; /* runs are those of hlo_plan_run_async() (buffer.h), whose inputs and outputs
                      are memory of the device; there are no others. Inputs are donated as the
                      module's input_output_alias has it. Default false */
    const hlo_donation *donations; /* with `resident`: further inputs that are donated, each to an
                                      output of its type, dimensions and layout. Borrowed while the
                                      plan is made. Default NULL: none */
    size_t donation_count;
    /* For any backend, without `resident`, `bounds` and `perturbed`: */
    bool overwrites_inputs; /* outputs may take the memory of the device's copies of inputs that
                               nothing reads behind them: there is no hlo_plan_time(). Default
                               false */
} hlo_plan_options;

/* Sets the first `struct_size` bytes of *options to the defaults. */
void hlo_plan_options_init_sized(hlo_plan_options *options, size_t struct_size);
/* Sets every field to its default. */
static inline void hlo_plan_options_init(hlo_plan_options *options) {
    hlo_plan_options_init_sized(options, sizeof *options);
}

/* Opens the backend's device and writes what it is, with the versions of the libraries that it
 * uses, a line each. HLO_INVALID_USAGE: there is no backend of that name. HLO_INVALID_INPUT, with
 * an error in `sink`: it is not available on this machine. HLO_OUT_OF_MEMORY. */
hlo_status hlo_backend_print(const char *backend, const hlo_diag_sink *sink, FILE *out);

/* Makes a plan for the entry computation, with all allocation and look-up that its runs need.
 * `module` must outlive the plan, unchanged; it is verified if it has not been. `options`
 * NULL: the defaults. On HLO_OK the caller frees *out_plan with hlo_plan_free(). HLO_INVALID_USAGE:
 * options->struct_size, or there is no backend of that name, or it keeps no bounds; or `devices` is
 * 0 or above HLO_MOST_DEVICES, or above 1 with a backend that simulates none, or with `resident`;
 * or there are `donation_count` donations at NULL. HLO_INVALID_INPUT: the module does not verify,
 * or is for another number of devices than `devices`, the backend is not available on this machine,
 * no toolkit has the number `cuda`, or it does not run an instruction, with one error in `sink` for
 * each, at its place in the text; or a name in `values` is that of no instruction that runs; or a
 * donation has no such input or output, or of another type, other dimensions or another layout, or
 * one is donated or taken twice. HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_new(const hlo_module *module, const hlo_plan_options *options,
                        const hlo_diag_sink *sink, hlo_plan **out_plan);
void hlo_plan_free(hlo_plan *plan); /* NULL is allowed */

/* Checks `inputs` against the module's inputs. HLO_INVALID_INPUT, with an error in `sink`: their
 * number, or a type or the dimensions of one, differ. */
hlo_status hlo_plan_check(const hlo_plan *plan, const hlo_arrays *inputs,
                          const hlo_diag_sink *sink);
/* Runs the plan on `inputs`, which are not changed. A plan has one run at a time. On HLO_OK the
 * caller frees *out_outputs with hlo_arrays_free(). HLO_INVALID_INPUT: the inputs fail
 * hlo_plan_check(), or the device failed. HLO_INVALID_USAGE: the plan was made with `describe` or
 * `resident`. HLO_STOPPED: options.progress returned false. HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_run(hlo_plan *plan, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs);

/* The largest number of runs that are timed. */
enum { HLO_MOST_RUNS = 1 << 30 };

/* Repeats the last run `count` times on its inputs, each run queued behind the one before, and
 * writes the seconds of each to out_seconds, without copies of inputs and outputs. The outputs of a
 * plan that is not `perturbed` are those of the last run. HLO_INVALID_USAGE: there has been no run,
 * the plan was made with `overwrites_inputs`, or `count` is above HLO_MOST_RUNS.
 * HLO_INVALID_INPUT: the device failed. HLO_STOPPED, HLO_OUT_OF_MEMORY. */
hlo_status hlo_plan_time(hlo_plan *plan, size_t count, const hlo_diag_sink *sink,
                         double *out_seconds);

/* Writes the steps, the buffers, and the backend's description of each step, as text that depends
 * only on the module, the backend and the options. Write errors show in `out` (ferror). */
void hlo_plan_print(const hlo_plan *plan, FILE *out);
/* The seconds of the last run, without copies of inputs and outputs; 0 before the first run. */
double hlo_plan_seconds(const hlo_plan *plan);

/* The values that hlo_plan_options.values names, of the last run, in the order in which they were
 * first computed: hlo_array.name is the instruction's name; an element of a tuple is called
 * `NAME{0}`, `NAME{1}`..., its leaves counted through all tuples. An instruction that ran several
 * times, in a loop or through several calls, has the value of the last time; one that did not run,
 * in a branch not taken, has none, and the run gave a warning about it. Borrowed until the next run
 * or until the plan is freed; NULL: no values were asked for, or none was run. */
const hlo_arrays *hlo_plan_values(const hlo_plan *plan);
/* After a run with `check_finite`: the number of its warnings. One is about the first instruction,
 * in the order of execution, that made a NaN of operands without one; another about the first that
 * made an infinity of operands that are all finite; each names the element and its operands. An
 * input with a NaN counts as made by its parameter. */
unsigned hlo_plan_nonfinite(const hlo_plan *plan);
/* Writes the time and the bytes of all runs with `profile`, as two tables: by instruction and by
 * op_name, in descending order of time. On a GPU it is the device's time, of steps that are queued
 * one behind the other; of what the host does, the host's. HLO_OUT_OF_MEMORY. Write errors show in
 * `out` (ferror). */
hlo_status hlo_plan_print_profile(const hlo_plan *plan, FILE *out);
/* Writes the first million steps of these runs as JSON in the Trace Event Format, which Perfetto
 * and chrome://tracing open. Write errors show in `out` (ferror). */
void hlo_plan_print_trace(const hlo_plan *plan, FILE *out);

/* ----------------------------------------------------------------------------------- comparison */

/* The difference of two arrays. Every element is in one of the first four counts. */
typedef struct hlo_difference {
    int64_t equal;      /* equal values, or both NaN */
    int64_t within;     /* unequal, but within the bound */
    int64_t one_step;   /* fp8 neighbors, with a rounding boundary within the bound */
    int64_t violations; /* further apart, or infinite or NaN on one side only */
    double largest;     /* of |a - b| / bound, where the bound is not 0 and all is finite */
    double rms; /* root mean square of (a - b) / hlo_array.bound, where that is finite and not 0 */
    double noise;       /* the difference in units of hlo_array.noise and one rounding of the type
                           together; 0 when there are no samples */
    double noise_limit; /* the largest accepted `noise`: 2.5 + 10/sqrt(elements) */
    int64_t worst; /* row-major index of the element that is furthest beyond its bound; -1: none
                      is */
    double judge, other, bound; /* of the worst element */
} hlo_difference;

/* Compares two arrays of one type. `judge` comes from a plan with `bounds`, and `other` must be
 * within them; without bounds the two must be equal. HLO_MISMATCH: there is a violation, or `noise`
 * exceeds its limit. HLO_INVALID_USAGE: types or dimensions differ. */
hlo_status hlo_array_compare(const hlo_array *judge, const hlo_array *other,
                             hlo_difference *out_difference);
/* Computes the distance of two arrays of one type: the norm of the difference over that of `from`;
 * 0 if they are equal, infinity if one has an infinity or a NaN where the other has not, or if
 * `from` is 0. HLO_INVALID_USAGE: types or dimensions differ. */
hlo_status hlo_array_distance(const hlo_array *from, const hlo_array *to, double *out_distance);
/* Two executions and the judges between them. Initialize with hlo_comparison_init(), then set
 * `found` and `expected`. All pointers are borrowed. */
typedef struct hlo_comparison {
    size_t struct_size; /* see status.h */
    const hlo_arrays *found, *expected;
    /* Executions with bounds. The two sides agree when one judge accepts all elements, and the
     * noise of all arrays, of both sides; a judge that is a side accepts itself. So the answer does
     * not depend on the order of the sides. No judges: the two must be equal. */
    const hlo_arrays *const *judges;
    size_t judge_count;
    /* For the text; NULL where unknown: the modules that computed the two sides, their names, and
     * the inputs of both, on which the operands of the worst element are computed again. */
    const hlo_module *found_module, *expected_module;
    const char *found_name, *expected_name;
    const hlo_arrays *inputs;
    bool all; /* a line for each output that agrees, too */
    /* Only the last judge drops roundings to bf16 and f16, as XLA may. An output that the other
     * judges reject agrees if at least as many elements differ as a dropped rounding moves, and the
     * last judge accepts it with a lower limit for the noise. Set it before hlo_arrays_sample()
     * samples the last judge. */
    bool last_drops;
    /* Takes a note for each output that agrees although elements differ, because neither a bound
     * nor noise judges any of these. NULL: none. */
    const hlo_diag_sink *sink;
} hlo_comparison;

/* Sets every field to NULL, 0 or false. */
static inline void hlo_comparison_init(hlo_comparison *comparison) {
    memset(comparison, 0, sizeof *comparison);
    comparison->struct_size = sizeof *comparison;
}

/* Measures the noise of an execution (docs/numerics.md). Executes `module` on `inputs` 3 to 16 more
 * times, with `options` (NULL: the defaults), but perturbed and without bounds, and sets
 * hlo_array.noise of each array of `judge`, which a plan with bounds has computed from equal
 * inputs. Bounds alone take errors to be independent, which makes them wide in long chains of
 * operations; samples do not. Sampling stops when the samples explain both sides of `comparison`.
 * Statuses as for hlo_plan_new() and hlo_plan_run(). */
hlo_status hlo_arrays_sample(hlo_arrays *judge, const hlo_comparison *comparison,
                             const hlo_module *module, const hlo_plan_options *options,
                             const hlo_arrays *inputs, const hlo_diag_sink *sink);
/* Compares all outputs. For each output that differs, or has differing elements that neither a
 * bound nor noise judges, it writes to `out` the number of differing elements, the largest
 * errors, the signal to noise ratio, and the worst element with its operands; the last line begins
 * with `compare:` and has the number of outputs that agree. `out` NULL: nothing is written.
 * HLO_MISMATCH: an output differs, or the two sides differ in number, type or dimensions.
 * HLO_INVALID_USAGE: comparison->struct_size. HLO_OUT_OF_MEMORY. */
hlo_status hlo_arrays_compare_by(const hlo_comparison *comparison, FILE *out);
/* Compares `other` with `judge`, which is the only judge, as hlo_arrays_compare_by() does. */
hlo_status hlo_arrays_compare(const hlo_arrays *judge, const hlo_arrays *other, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
