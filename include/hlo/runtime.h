/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run modules: arrays, .npz files, random inputs, plans, and comparison of outputs.
 *
 * A plan is created once for a verified module and a backend, and can be run many times:
 *
 *     hlo_plan_new() -> hlo_plan_run() ... -> hlo_plan_free()
 *
 * The inputs of a run are the arrays in the parameters of the entry computation, and the outputs
 * are the arrays in its result. Tuples are flattened in order. */
#ifndef HLO_RUNTIME_H
#define HLO_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hlo/module.h"
#include "hlo/opcode.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* --------------------------------------------------------------------------------------- arrays */

/* A dense array in row-major order, with little-endian elements. Elements of type pred and of types
 * of fewer than 8 bits occupy one byte each. The hlo_arrays that contains the array owns all
 * pointers. */
typedef struct hlo_array {
    size_t struct_size;    /* See status.h. */
    hlo_element_type type; /* The element type. */
    uint32_t rank;         /* The number of dimensions. */
    const int64_t *dims;   /* The sizes of `rank` dimensions. */
    void *data;            /* The elements. They may be changed. */
    size_t size;           /* The size of `data` in bytes. */
    /* The error bound of each element, or NULL if the plan does not compute bounds. A bound is a
     * standard deviation: how far the element is expected to be from that of another correct
     * execution (docs/numerics.md). If the bound is 0, the two elements must be equal. If it is
     * NaN, nothing is known about the error. If it is finite and positive, but the element is not
     * finite, the element overflowed when it was rounded, and must also overflow in the other
     * execution. */
    float *bound;
    /* If there are bounds, the difference between this execution and sampled executions
     * (hlo_arrays_sample()), or negative if there are no samples. noise[0] is the root mean square
     * of difference / bound over the elements whose bound is finite and positive. noise[1] is the
     * root mean square of the difference over the elements whose bound is infinite, divided by the
     * root mean square of these elements. Both are maxima over all samples, divided by 2, the
     * amplitude of the perturbation. */
    double noise[2];
    /* The name of a value that a plan kept (hlo_plan_values()), or that a run sent to the host
     * (hlo_plan_run()), or NULL. */
    const char *name;
} hlo_array;

/* Sets `struct_size`, `type` to HLO_TYPE_INVALID, and all other fields to 0 or NULL. Use it for an
 * array that the caller owns. */
static inline void hlo_array_init(hlo_array *array) {
    memset(array, 0, sizeof *array);
    array->struct_size = sizeof *array;
    array->type = HLO_TYPE_INVALID;
}

/* A list of arrays. It owns the arrays and all their contents. */
typedef struct hlo_arrays hlo_arrays;

/* Creates an empty list. The caller must free *out_arrays with hlo_arrays_free(). */
hlo_status hlo_arrays_new(hlo_arrays **out_arrays);

/* Frees a list and its arrays. `arrays` may be NULL. */
void hlo_arrays_free(hlo_arrays *arrays);

/* Returns the number of arrays. */
size_t hlo_arrays_count(const hlo_arrays *arrays);

/* Returns an array, borrowed from `arrays`. `index` must be less than hlo_arrays_count(). */
const hlo_array *hlo_arrays_at(const hlo_arrays *arrays, size_t index);

/* Appends an array of element type `type` with `rank` dimensions of sizes `dims`. `data` are the
 * elements in the format of hlo_array; they are copied. If `data` is NULL, all elements are zero.
 *
 * Returns HLO_INVALID_USAGE if the element type does not exist or a size is negative. */
hlo_status hlo_arrays_append(hlo_arrays *arrays, hlo_element_type type, uint32_t rank,
                             const int64_t *dims, const void *data);

/* --------------------------------------------------------------------------- inputs, .npz files */

/* The role of the arrays in a file. */
typedef enum hlo_role { HLO_INPUTS, HLO_OUTPUTS } hlo_role;

/* Reads the inputs or outputs of `module` from the .npz file at `path`. The arrays in the file must
 * be named 0, 1, 2, ... or arr_0, arr_1, ...; inputs may also have the names of the parameters
 * (hlo_plan_values()). Outputs include the arrays with names of values that a run sent to the host
 * (hlo_plan_run()), in the order of the file. The element types are those of the module. For types
 * that NumPy lacks, such as bf16 and fp8, the file contains raw bytes of the same size (`<V2`,
 * `|V1`), which NumPy writes for types of ml_dtypes. Arrays in Fortran order are converted to
 * row-major order. The caller must free *out_arrays with hlo_arrays_free().
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the file cannot be read or is not an .npz
 * file, if an array is missing, if there is an additional numbered array, if the type or the
 * dimensions of an array do not match the module, or if the library was built without
 * HLOFP8_WITH_NPZ. Returns the same status if the module sends values of several types that NumPy
 * lacks and that have the same size, and the file has such a value. */
hlo_status hlo_arrays_read(const char *path, const hlo_module *module, hlo_role role,
                           const hlo_diag_sink *sink, hlo_arrays **out_arrays);

/* Reads the inputs or outputs of `devices` devices, in the order of the devices, like
 * hlo_arrays_read(). A file with the inputs of one device is also accepted; the list then contains
 * only these, and a run uses them for all devices. */
hlo_status hlo_arrays_read_each(const char *path, const hlo_module *module, hlo_role role,
                                uint32_t devices, const hlo_diag_sink *sink,
                                hlo_arrays **out_arrays);

/* Returns the inputs or outputs that were recorded with `module`, if it was read from an
 * HloSnapshot or HloUnoptimizedSnapshot (hlo/proto.h) or is a clone of such a module. An
 * HloUnoptimizedSnapshot has the inputs of one or more devices, and no outputs. With the inputs of
 * one device, a run uses them for all `devices`. The caller must free *out_arrays with
 * hlo_arrays_free(). *out_arrays is NULL if nothing was recorded.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the number of arrays, their types or their
 * dimensions do not match the module, or if the inputs are those of another number of devices. */
hlo_status hlo_arrays_recorded(const hlo_module *module, hlo_role role, uint32_t devices,
                               const hlo_diag_sink *sink, hlo_arrays **out_arrays);

/* Writes arrays to `out` as an .npz file for numpy.load(). Each array has its own name, or its
 * index as the name if it has none. Equal arrays result in identical files.
 *
 * Returns HLO_INVALID_INPUT if `out` cannot be written to, or if the library was built without
 * HLOFP8_WITH_NPZ. */
hlo_status hlo_arrays_write(const hlo_arrays *arrays, hlo_writer out);

/* Generates random inputs for `module`. The random numbers are bitwise identical to those of
 * numpy.random.default_rng(seed), which are PCG64 and ziggurat normals. Floating-point elements are
 * standard normal, rounded to f32 and then to the element type. All elements of a parameter are
 * positive if its op_name contains `_scale`, `amax`, `.nu` or `['scale`. Integers of at least 8
 * bits are between 0 and 7; smaller ones are drawn like floating-point elements. Elements of type
 * pred are 0 or 1. A run on these inputs also derives from `seed` the values that the module reads
 * from the host (hlo_plan_run()). The caller must free *out_arrays with hlo_arrays_free().
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if an input is complex or has an unbounded
 * dimension. */
hlo_status hlo_arrays_draw(const hlo_module *module, uint64_t seed, const hlo_diag_sink *sink,
                           hlo_arrays **out_arrays);

/* The distribution of random inputs. */
typedef enum hlo_draw {
    /* The distribution of hlo_arrays_draw(). */
    HLO_DRAW_NORMAL,
    /* Values as in a trained model. Weights are divided by the square root of the number of terms
     * that their first dot sums, fp8 values are multiplied by 64, norms are around 1, biases and
     * moments are small, and scales and amaxes match their values. All other inputs are as in
     * HLO_DRAW_NORMAL. The purpose of a parameter is derived from its op_name, or from its name if
     * it has no op_name: `kernel`, `weight`, `param`, `embedding`, `bias`, `_scale`, `amax`,
     * `['scale`, `.mu`, `.nu`. */
    HLO_DRAW_REALISTIC
} hlo_draw;

/* Generates random inputs for `devices` devices, in the order of the devices, like
 * hlo_arrays_draw(). Device d uses the seed `seed` + d. Devices get equal arrays for a parameter if
 * its sharding assigns the same part to them, if it has no sharding, or if the module is not
 * partitioned. */
hlo_status hlo_arrays_draw_each(const hlo_module *module, hlo_draw kind, uint64_t seed,
                                uint32_t devices, const hlo_diag_sink *sink,
                                hlo_arrays **out_arrays);

/* ---------------------------------------------------------------------------------------- plans */

/* The maximum number of simulated devices. */
enum { HLO_MAX_DEVICES = 1024 };

/* A module that is prepared for execution by a backend. It borrows the module. */
typedef struct hlo_plan hlo_plan;

/* The accumulation of matmuls of fp8 values on the cpu backend (docs/numerics.md). */
typedef enum hlo_accumulate {
    HLO_ACCUMULATE_F32,   /* Accumulation in f32. */
    HLO_ACCUMULATE_HOPPER /* Accumulation with 13 fraction bits, like the tensor cores of Ada and
                             Hopper. */
} hlo_accumulate;

/* The rounding of conversions from f32 and f64 to FP8 types. */
typedef enum hlo_fp8_rounding {
    HLO_FP8_ROUNDING_ONCE,   /* One rounding to nearest even, as HLO specifies. */
    HLO_FP8_ROUNDING_VIA_F16 /* A rounding to f16, and then to f8e4m3fn, f8e5m2 or f8e4m3b11fnuz, as
                                in XLA's CPU backend before jaxlib 0.8. Other types round once. */
} hlo_fp8_rounding;

/* The progress of a run. */
typedef struct hlo_progress {
    size_t struct_size;      /* See status.h. */
    double seconds;          /* The time since the start of the run. */
    double done;             /* The number of executed instructions. */
    double total;            /* The number of instructions of the run, or 0 if it is unknown, for
                                example because the trip count of a loop is unknown. */
    const char *instruction; /* The name of the current instruction, borrowed from the module. */
} hlo_progress;

/* The donation of an input: its memory is reused for an output (buffer.h). The struct has no other
 * fields in any version of the library. */
typedef struct hlo_donation {
    size_t input;  /* The index of the input. */
    size_t output; /* The index of the output. */
} hlo_donation;

/* Options of hlo_plan_new(). Initialize them with hlo_plan_options_init(), then change fields. All
 * pointers are borrowed for the duration of the call, except `progress_user`. */
typedef struct hlo_plan_options {
    size_t struct_size; /* See status.h. */
    /* The backend: "cpu" or "cuda". Default: "cpu". */
    const char *backend;

    /* The following fields apply to the cpu backend. */

    /* The number of simulated devices, which execute collectives. If it is greater than 1, each
     * device uses a thread, and the number must equal the number of replicas times the number of
     * partitions in the module header; without these, all devices are partitions. A run accepts the
     * inputs of all devices, in the order of the devices, or the inputs of one device, which all
     * devices then use. It returns the outputs of all devices. The names of `values` are
     * NAME@DEVICE. `profile` and hlo_progress apply to device 0. Default: 1. */
    uint32_t devices;
    /* The accumulation of FP8 calls. If `bounds` is set, the bounds also apply to executions with
     * this accumulation, including those in which a call replaces a dot. Default:
     * HLO_ACCUMULATE_F32. */
    hlo_accumulate accumulate;
    /* Compute error bounds of the outputs (hlo_array.bound). Computing bounds approximately doubles
     * memory and time. Default: false. */
    bool bounds;
    /* If `bounds` is set: the bounds also apply to executions that omit roundings to a narrower
     * type between operations, as fused kernels do, or that apply scales at a different place.
     * Default: false. */
    bool roundings_may_be_dropped;
    /* If `bounds` is not set: each run changes every inexact result by a random multiple of its
     * rounding error. If `roundings_may_be_dropped` is set, this includes omitted roundings. Equal
     * plans use the same random numbers in their n-th run. Default: false. */
    bool perturbed;
    /* The maximum number of threads that execute an instruction, including the thread that started
     * the run. Ignored if `devices` exceeds 1 or `parallel_for` is set. Default: 0, which selects
     * one thread for each processor that the process may use. */
    uint32_t threads;
    /* A callback that executes a loop on the threads of the caller, or NULL. It must call `body`
     * with `arg` for ranges [begin, end) that together contain each index from 0 to count - 1 once,
     * on any threads and in any order, and return when all calls have returned. It is called on the
     * thread that started the run, and must not fail. The plan then has no threads, and calls
     * `progress` only between instructions. The results do not depend on the ranges. Ignored if
     * `devices` exceeds 1. `user` is `parallel_user`. Default: NULL. */
    void (*parallel_for)(void *user, int64_t count,
                         void (*body)(void *arg, int64_t begin, int64_t end), void *arg);
    /* Passed to `parallel_for` unchanged. */
    void *parallel_user;

    /* The following fields apply to the cuda backend. */

    /* The target architecture, such as "sm_90" (hlo_pass_options.target). If it is set, the plan
     * can only be printed. It describes the execution on a device with this architecture, which
     * need not be available. Default: NULL, which selects the first GPU of this machine. */
    const char *target;
    /* If `target` is set: the version of the CUDA toolkit, such as "12.8" (hlo_pass_options.cuda).
     * Default: NULL, which selects "12.8". */
    const char *cuda;
    /* Record the plan in CUDA graphs, and replay them in runs. Default: true. */
    bool graph;
    /* Run instructions that the device does not support on the CPU, with a warning. Otherwise, they
     * are an error. Default: false. */
    bool host_fallback;
    /* The number of cuBLASLt algorithms that are timed for each matmul when the plan is created, or
     * 0 to use the first algorithm that cuBLASLt proposes. Default: 0. */
    int autotune;
    /* The path of a file that caches the results of autotuning, or NULL. Default: NULL. */
    const char *autotune_cache;
    /* The path of a folder that caches compiled kernels, or NULL. If kernels cannot be stored,
     * there is a warning. Default: NULL. */
    const char *kernel_cache;
    /* The workspace that each matmul may use, in bytes, or 0 for the default of the architecture.
     * Default: 0. */
    size_t workspace;

    /* The following fields apply to all backends. With `values` or `check_finite`, each instruction
     * is executed separately, without fusion and CUDA graphs; the results are the same. With
     * `profile` or `progress`, CUDA graphs are not used. */

    /* The names of instructions or globs (fnmatch(3)), separated by commas, whose values runs keep
     * (hlo_plan_values()), or NULL. Default: NULL. */
    const char *values;
    /* Look for the first instruction that produces a NaN and the first that produces an infinity
     * (hlo_plan_nonfinite()). Default: false. */
    bool check_finite;
    /* Measure the time of each step (hlo_plan_print_profile()). Default: false. */
    bool profile;
    /* A callback that is called at the first instruction of a run, and then about ten times per
     * second, on the thread that started the run. It returns true to continue, and false to stop
     * the run, which then returns HLO_STOPPED; the plan remains valid. `user` is `progress_user`.
     * The cpu backend also calls it within instructions. Default: NULL, which means no callback. */
    bool (*progress)(void *user, const hlo_progress *progress);
    /* Passed to `progress` unchanged. */
    void *progress_user;

    /* The following fields apply to all backends. `resident` cannot be combined with `bounds`,
     * `perturbed` or several `devices`. `overwrites_inputs` has no effect on a plan with
     * `resident`, `bounds` or `perturbed`, except on hlo_plan_time(). */

    /* Runs use hlo_plan_run_async() (buffer.h), with inputs and outputs in memory of the device.
     * Other runs are not possible, and modules that transfer values with the host are rejected.
     * Inputs are donated according to the input_output_alias of the
     * module. Default: false. */
    bool resident;
    /* If `resident` is set: an array of `donation_count` additional donations. The input and the
     * output of a donation must have equal types, dimensions and layouts. Default: NULL. */
    const hlo_donation *donations;
    size_t donation_count;
    /* Outputs may overwrite the plan's copies of inputs that are no longer read. hlo_plan_time() is
     * not available. Default: false. */
    bool overwrites_inputs;
    /* The rounding of `convert` instructions to FP8. It does not apply to the FP8 results of
     * matmul calls. Default: HLO_FP8_ROUNDING_ONCE. */
    hlo_fp8_rounding fp8_rounding;
} hlo_plan_options;

/* Sets the fields within the first `struct_size` bytes of *options to their default values. Use it
 * if the size of the struct is known only at run time; otherwise, use hlo_plan_options_init(). */
void hlo_plan_options_init_sized(hlo_plan_options *options, size_t struct_size);

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_plan_options_init(hlo_plan_options *options) {
    hlo_plan_options_init_sized(options, sizeof *options);
}

/* Opens the device of a backend, and writes its properties and the versions of the libraries that
 * it uses to `out`, one per line.
 *
 * Returns HLO_INVALID_USAGE if the backend does not exist, and HLO_INVALID_INPUT if it is not
 * available on this machine, in both cases with an error in `sink`. */
hlo_status hlo_backend_print(const char *backend, const hlo_diag_sink *sink, hlo_writer out);

/* Creates a plan for the entry computation of `module`. All allocations and lookups that runs need
 * happen here. The module is verified first, unless it was verified before. It must outlive the
 * plan, and must not be changed. `options` may be NULL, which selects the defaults. The caller must
 * free *out_plan with hlo_plan_free().
 *
 * Returns HLO_INVALID_USAGE, with an error in `sink`, if options->struct_size or the value of an
 * enumeration is invalid, if the backend or `target` does not exist, if `cuda` is not a version, if
 * the backend does not support `bounds` or `perturbed`, if `resident` is combined with one of
 * these, if `devices` is 0 or exceeds HLO_MAX_DEVICES, if `devices` exceeds 1 with `resident` or
 * with a backend that does not simulate devices, or if `resident` is set, `donations` is NULL and
 * `donation_count` is not 0.
 *
 * Returns HLO_INVALID_INPUT, with errors in `sink`, if the module is not valid or requires a
 * different number of devices, if the backend is not available on this machine, or if a name in
 * `values` matches no instruction that can run. Returns the same status if the input or output of a
 * donation does not exist or is already part of another donation, or if the input does not match
 * the output. Returns the same status if the backend does not support an instruction, with one
 * error for each instruction that it does not support. */
hlo_status hlo_plan_new(const hlo_module *module, const hlo_plan_options *options,
                        const hlo_diag_sink *sink, hlo_plan **out_plan);

/* Frees a plan. `plan` may be NULL. */
void hlo_plan_free(hlo_plan *plan);

/* Checks whether `inputs` match the parameters of the module.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if their number, a type or dimensions differ.
 */
hlo_status hlo_plan_check(const hlo_plan *plan, const hlo_arrays *inputs,
                          const hlo_diag_sink *sink);

/* Runs the plan on `inputs`, which are not changed, and waits until the run is complete. A plan can
 * only execute one run at a time. The caller must free *out_outputs with hlo_arrays_free().
 *
 * The run draws the values that the module reads from the host, with infeed or recv instructions,
 * from the seed and the distribution with which `inputs` were generated (hlo_arrays_draw_each()),
 * or from seed 0. The outputs of all devices are followed by the values that the module sent to the
 * host, with outfeed or send instructions, in order. These have a name (hlo_array.name):
 * `outfeed.N` or `send.CHANNEL.N`, where N counts from 0, followed by `{I}` for element I of a
 * tuple, and by `@DEVICE` if there are several devices. Their number may depend on the inputs.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the inputs do not match (hlo_plan_check())
 * or the device fails. Returns HLO_INVALID_USAGE, with an error in `sink`, if the plan was created
 * with `target` or `resident`, and HLO_STOPPED if hlo_plan_options.progress returned false. */
hlo_status hlo_plan_run(hlo_plan *plan, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs);

/* The maximum number of runs that can be timed. */
enum { HLO_MAX_RUNS = 1 << 30 };

/* Repeats the last run `count` times on the same inputs, without waiting between runs. Stores the
 * duration of each run in seconds, excluding copies of inputs and outputs, in `out_seconds`, an
 * array of `count` elements. Unless the plan is `perturbed`, the outputs are the same as those of
 * the last run.
 *
 * Returns HLO_INVALID_USAGE, with an error in `sink`, if there was no run, if the plan was created
 * with `overwrites_inputs`, or if `count` exceeds HLO_MAX_RUNS. Returns HLO_INVALID_INPUT, with an
 * error in `sink`, if the device fails, and HLO_STOPPED if hlo_plan_options.progress returned
 * false. */
hlo_status hlo_plan_time(hlo_plan *plan, size_t count, const hlo_diag_sink *sink,
                         double *out_seconds);

/* Writes the steps and buffers of a plan to `out`, with the description of each step by the
 * backend. The text depends only on the module, the backend and the options. */
hlo_status hlo_plan_print(const hlo_plan *plan, hlo_writer out);

/* Returns the duration of the last run in seconds, without copies of inputs and outputs, or 0 if
 * there was no run. */
double hlo_plan_seconds(const hlo_plan *plan);

/* Returns the values that the last run kept for hlo_plan_options.values, in the order of their
 * computation. They are borrowed from the plan until the next run. Returns NULL if no values were
 * requested, or if there was no run.
 *
 * hlo_array.name is the name of the instruction. If the value is a tuple, its arrays have the names
 * `NAME{0}`, `NAME{1}`, ..., which count the arrays in all nested tuples. If an instruction was
 * executed several times, in a loop or by several calls, its last value is kept. If it was not
 * executed, because its branch was not taken, it is missing, which the run reports as a warning. */
const hlo_arrays *hlo_plan_values(const hlo_plan *plan);

/* Returns the number of warnings that the last run reported because of
 * hlo_plan_options.check_finite. For each device, there is at most one warning about the first
 * executed instruction that produced a NaN although its operands have none, and one about the first
 * that produced an infinity although its operands are finite. A warning contains the element and
 * its operands. A NaN in an input is attributed to the parameter; an infinity in an input is not
 * reported. */
unsigned hlo_plan_nonfinite(const hlo_plan *plan);

/* Writes to `out` two tables with the times and the bytes per run of a plan with
 * hlo_plan_options.profile, by instruction and by op_name, longest time first. The first run counts
 * only if it is the only one, because it is slower than later runs. On a GPU, the times
 * are measured on the device while steps are executed sequentially, except for steps on the CPU,
 * which the CPU measures. */
hlo_status hlo_plan_print_profile(const hlo_plan *plan, hlo_writer out);

/* Writes to `out` the steps of all runs of a plan with hlo_plan_options.profile, at most the first
 * million, as JSON in the Trace Event Format, which Perfetto and chrome://tracing can display. */
hlo_status hlo_plan_print_trace(const hlo_plan *plan, hlo_writer out);

/* ----------------------------------------------------------------------------------- comparison */

/* The difference of two arrays. Each element is counted in exactly one of the first four fields. */
typedef struct hlo_difference {
    size_t struct_size; /* See status.h. */
    int64_t equal;      /* The number of elements that are equal, or NaN in both arrays. */
    int64_t within;     /* The number of unequal elements whose difference is within the bound. */
    int64_t one_step;   /* The number of elements whose two fp8 values are adjacent, with a rounding
                           boundary within the bound. */
    int64_t violations; /* The number of elements whose difference exceeds the bound, or that are
                           infinite or NaN in only one array. */
    double largest; /* The maximum of |a - b| / bound over finite elements with a nonzero bound. */
    double rms;     /* The root mean square of (a - b) / bound over elements with a finite, nonzero
                       bound. */
    double noise;   /* The difference divided by the combined size of hlo_array.noise and one
                       rounding of the element type, or 0 if there are no samples. */
    double noise_limit; /* The largest accepted `noise`: 2.5 + 10/sqrt(elements). */
    int64_t worst; /* The row-major index of the element that exceeds its bound the most, or -1 if
                      none does. */
    double judge;  /* The value of the element `worst` in the array with bounds. */
    double other;  /* The value of this element in the other array. */
    double bound;  /* The bound of this element. */
} hlo_difference;

/* Sets `struct_size`, and all other fields to 0. */
static inline void hlo_difference_init(hlo_difference *difference) {
    memset(difference, 0, sizeof *difference);
    difference->struct_size = sizeof *difference;
}

/* Compares two arrays of the same type and dimensions. `judge` is an output of a plan with
 * `bounds`, and the elements of `other` must be within its bounds. If `judge` has no bounds, the
 * elements must be equal. *out_difference must be initialized with hlo_difference_init().
 *
 * Returns HLO_MISMATCH if there are violations, or if `noise` exceeds its limit, and
 * HLO_INVALID_USAGE if types or dimensions differ or a `struct_size` is invalid. */
hlo_status hlo_array_compare(const hlo_array *judge, const hlo_array *other,
                             hlo_difference *out_difference);

/* Computes the relative distance of two arrays of the same type and dimensions: the norm of their
 * difference divided by the norm of `from`. It is 0 if they are equal. Otherwise, it is infinite if
 * an element that differs is infinite or NaN, or if all finite elements of `from` are 0.
 *
 * Returns HLO_INVALID_USAGE if types or dimensions differ or a `struct_size` is invalid. */
hlo_status hlo_array_distance(const hlo_array *from, const hlo_array *to, double *out_distance);

/* Two executions, and the executions with bounds that judge their difference. Initialize it with
 * hlo_comparison_init(), then set `found` and `expected`. All pointers are borrowed, and must
 * remain valid while the comparison is used. */
typedef struct hlo_comparison {
    size_t struct_size; /* See status.h. */
    /* The outputs of the two executions. */
    const hlo_arrays *found, *expected;
    /* An array of `judge_count` outputs of executions with bounds. The executions agree if one
     * judge accepts all elements and the noise of all arrays of both executions. A judge that is
     * one of the executions accepts itself, so the result does not depend on the order of the
     * executions. Without judges, the outputs must be equal. */
    const hlo_arrays *const *judges;
    size_t judge_count;
    /* Only the last judge omits roundings to bf16 and f16, as XLA may do. An output that all other
     * judges reject agrees if the last judge accepts it with a lower limit for the noise, and if at
     * least as many elements differ as an omitted rounding changes. Set this field before
     * hlo_arrays_sample() samples the last judge. */
    bool last_drops;
    /* Only for the text: the modules that computed the outputs and their names, or NULL if they are
     * unknown. */
    const hlo_module *found_module, *expected_module;
    const char *found_name, *expected_name;
    /* Only for the text: the inputs of both executions, with which the operands of the worst
     * element are computed again, or NULL if they are unknown. */
    const hlo_arrays *inputs;
    /* Also print a line for each output that agrees. */
    bool all;
    /* Receives a note for each output that agrees although elements differ, because neither bounds
     * nor noise apply to any of these elements. May be NULL. */
    const hlo_diag_sink *sink;
    /* One execution is quantized and the other is not, so their outputs are expected to differ.
     * Outputs agree only if they are equal, and the text reports the signal-to-noise ratio of an
     * output that differs instead of its violations. */
    bool quantized;
} hlo_comparison;

/* Sets `struct_size`, and all other fields to NULL, 0 or false. */
static inline void hlo_comparison_init(hlo_comparison *comparison) {
    memset(comparison, 0, sizeof *comparison);
    comparison->struct_size = sizeof *comparison;
}

/* Measures the rounding noise of an execution (docs/numerics.md). It executes `module` 3 to 16
 * times on `inputs`, with `options`, but with perturbed results and without bounds. `options` may
 * be NULL, which selects the defaults. It sets hlo_array.noise of each array of `judge`, which
 * must be the outputs of a plan with bounds for the same module and inputs. Sampling stops when the
 * samples explain the outputs of both executions in `comparison`.
 *
 * Bounds assume that errors are independent, and are therefore large for long chains of operations.
 * Samples do not have this limitation.
 *
 * Returns HLO_INVALID_USAGE if `comparison` is invalid (hlo_arrays_compare_by()). Otherwise,
 * returns the same statuses as hlo_plan_new() and hlo_plan_run(). */
hlo_status hlo_arrays_sample(hlo_arrays *judge, const hlo_comparison *comparison,
                             const hlo_module *module, const hlo_plan_options *options,
                             const hlo_arrays *inputs, const hlo_diag_sink *sink);

/* Compares all outputs of two executions. For each output that differs, or that has different
 * elements to which neither bounds nor noise apply, it writes to `out` the number of different
 * elements, the largest errors, the signal-to-noise ratio, and the worst element with its operands.
 * The last line begins with `compare:` and contains the number of outputs that differ or, if none
 * differs, that agree. If out.write is NULL, nothing is written.
 *
 * Returns HLO_MISMATCH if an output differs, or if the executions have different numbers of
 * outputs, types or dimensions. Returns HLO_INVALID_USAGE if comparison->struct_size is invalid or
 * `found` or `expected` is NULL. */
hlo_status hlo_arrays_compare_by(const hlo_comparison *comparison, hlo_writer out);

/* Compares `other` with `judge` like hlo_arrays_compare_by(). `judge` is the only judge. */
hlo_status hlo_arrays_compare(const hlo_arrays *judge, const hlo_arrays *other, hlo_writer out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
