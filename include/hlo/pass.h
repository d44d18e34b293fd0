/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that rewrite the matmuls of a module to FP8, and return a verdict on each matmul.
 *
 *     hlo_pass_options_init() -> hlo_module_optimize() -> hlo_report_verdict() ...
 *                                                      -> hlo_report_free() */
#ifndef HLO_PASS_H
#define HLO_PASS_H

#include <stddef.h>
#include <string.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* -------------------------------------------------------------------------------------- options */

/* The default of hlo_pass_options.framework_files: globs for installed packages, for text that MLIR
 * read from no file (`-`), for operations of TensorFlow without a source line (`dummy_file_name`),
 * and, for HLO without folder names, for the files of Flax and JAX that call matmuls. */
#define HLO_FRAMEWORK_FILES                                                                        \
    "*/site-packages/*,*/dist-packages/*,<*,-,dummy_file_name,fp8_ops.py,linear.py,linen/"         \
    "*,dtypes.py,"                                                                                 \
    "transform.py,axes_scan.py,module.py,attention.py,lax_numpy.py"

/* The output form of FP8 matmuls (docs/emit.md). */
typedef enum hlo_emit_form {
    HLO_EMIT_CUBLAS, /* Custom calls `__cublas$lt$matmul$f8`. */
    HLO_EMIT_FFI,    /* Typed custom calls `hlofp8.matmul`, which XLA runs with the handlers of
                        ffi.h. */
    HLO_EMIT_QDQ,    /* Plain HLO that XLA's GPU compiler converts to FP8 calls. */
    HLO_EMIT_DQ      /* Plain HLO on dequantized values, for any platform. */
} hlo_emit_form;

/* The lowering of ragged-dots with FP8 operands. */
typedef enum hlo_ragged_form {
    HLO_RAGGED_AUTO, /* The fastest form on the target. This is HLO_RAGGED_DENSE, because no library
                        supports groups in FP8. */
    HLO_RAGGED_DENSE, /* FP8 calls for dense products, with zeros outside of each group. */
    HLO_RAGGED_KEEP /* Ragged-dots on FP8 operands, for compilers and runtimes that support them. */
} hlo_ragged_form;

/* A pass that the caller implements. Initialize it with hlo_user_pass_init(), then set `name` and
 * `run`. */
typedef struct hlo_user_pass {
    size_t struct_size; /* See status.h. */
    /* The name by which hlo_pass_options.passes and print_after refer to the pass. It must not be
     * "all" or the name of another pass, and must not contain a comma. */
    const char *name;
    /* A description in one line for hlo_passes_print(), or NULL. */
    const char *help;
    /* Changes the module with the functions of edit.h. `user` is the next field, and `sink` is
     * hlo_pass_options.sink. The function is called on the thread that called
     * hlo_module_optimize(). If the function changed the module, the module is verified after the
     * call, unless hlo_pass_options.verify_none is set. Instructions and other objects of the
     * module are valid until the function returns. If the function does not return HLO_OK,
     * hlo_module_optimize() stops and returns its status. The function must not free the module,
     * run passes over it, or leave by longjmp(). */
    hlo_status (*run)(void *user, hlo_module *module, const hlo_diag_sink *sink);
    void *user; /* Passed to `run` unchanged. */
} hlo_user_pass;

/* Sets `struct_size`, and all other fields to NULL. */
static inline void hlo_user_pass_init(hlo_user_pass *pass) {
    memset(pass, 0, sizeof *pass);
    pass->struct_size = sizeof *pass;
}

/* The progress of a run of passes. */
typedef struct hlo_pass_progress {
    size_t struct_size; /* See status.h. */
    double seconds;     /* The time since the start of the run. */
    const char *pass;   /* The name of the current pass, valid during the callback. */
    uint64_t changes;   /* The number of changes of the module so far. */
} hlo_pass_progress;

/* Options of hlo_module_optimize(). Initialize them with hlo_pass_options_init(), then change
 * fields. All pointers are borrowed for the duration of the call. */
typedef struct hlo_pass_options {
    size_t struct_size; /* See status.h. */
    /* Receives diagnostics. May be NULL. */
    const hlo_diag_sink *sink;

    /* The passes. */

    /* The names of the passes to run, separated by commas, in order. The empty string runs no pass.
     * Default: "default". */
    const char *passes;
    /* An array of `user_pass_count` user passes. A user pass runs where `passes` names it, and
     * possibly several times if `min_gain`, `wide` or `quantize` is set. To run it between two
     * passes of a sequence, name the passes of the sequence (hlo_pass_sequence()) in `passes`
     * instead of the sequence. If a user pass replaces a matmul by a new one
     * (hlo_instruction_options.like, hlo_instruction_replace()), the new matmul inherits the
     * verdict. Default: NULL. */
    const hlo_user_pass *const *user_passes;
    size_t user_pass_count;
    /* The path of a file with additional rewrite rules (docs/rules.md), or NULL. The rules run
     * after the built-in rules of their phase. A note reports each rule that changed nothing,
     * unless it only emits remarks. Default: NULL. */
    const char *rules;
    /* The text of a rules file, or NULL. If it is set, the file `rules` is not read, and `rules` is
     * only the file name in diagnostics. Default: NULL. */
    const char *rules_text;
    /* The order in which the rules of a phase visit instructions: 0 for text order, 1 for reverse
     * order, and any other number as the seed of a random order. The result does not depend on the
     * order. Default: 0. */
    uint64_t rule_order;

    /* The target and the form of the output. */

    /* The target architecture, such as "sm_90". `hlo-fp8-opt --help` lists the valid values.
     * Default: NULL, which selects "sm_90". */
    const char *target;
    /* The version of the target CUDA toolkit, which provides cuBLASLt, such as "12.8": two numbers
     * of at most two digits, the first of which is at least 1. The library does not check that such
     * a version was released. From "12.9" on, calls for sm_90 use scales per row and per block, in
     * a form that XLA does not support. Default: NULL, which selects "12.8". */
    const char *cuda;
    /* The output form of FP8 matmuls, including FP8 calls of the input. Verdicts refer to the
     * calls. Default: HLO_EMIT_CUBLAS. */
    hlo_emit_form emit;
    /* Omit the scale operands that an FP8 call does not use, instead of passing all four. Ignored
     * if `emit` selects plain HLO. Default: false. */
    bool scales_used;
    /* The lowering of ragged-dots on FP8 operands. Default: HLO_RAGGED_AUTO. */
    hlo_ragged_form ragged;

    /* The matmuls to convert. */

    /* Convert a matmul only if its time decreases by at least this factor (see
     * hlo_verdict.seconds). Default: 0, which converts all matmuls that can be converted. A matmul
     * that `quantize` selects must decrease the time of the module by this factor, or by 1.05 if
     * `min_gain` is 0. */
    double min_gain;
    /* Quantize the operands of wide dots, so that they become FP8 calls (docs/quantize.md). The
     * module then computes other results. Scales are computed from the operands: "current" uses one
     * scale per tensor; "rows" one per row of the left and column of the right operand; "mx" one
     * f8e8m0fnu scale per 32 elements along the contracting dimension, for targets from sm_100 on.
     * "static" uses one constant scale per tensor, from `amaxes`. Matmuls of attention stay wide,
     * unless ",attention" follows. `passes` must run the pass "quantize-wide". NULL quantizes
     * nothing. Default: NULL. */
    const char *quantize;
    /* The path of a file that hlo_module_record_amaxes() wrote for the same module, which
     * `quantize` "static" requires. Default: NULL. */
    const char *amaxes;
    /* The text of such a file, or NULL. If it is set, the file `amaxes` is not read, and `amaxes`
     * is only the file name in diagnostics. Default: NULL. */
    const char *amaxes_text;
    /* Parameters of the entry computation for hlo_module_split(). Quantizing a value that depends
     * only on these parameters costs no time in the prediction that `quantize` uses. A word that
     * matches no parameter is ignored. Default: NULL. */
    const char *ahead;
    /* Matmuls that are not converted, separated by commas: names of instructions of the input
     * (hlo_verdict.input_instruction), op_names, source lines (`model.py:12`, which is compared
     * with the end of hlo_verdict.source_file), shapes of results (`8192x4096xbf16`), or globs
     * (fnmatch(3)) of these. `%NAME` is the name of an instruction of the input, and matches
     * nothing else. Any other word that matches no matmul is compared with the names of FP8 calls
     * that a run without such words produces (hlo_verdict.instruction). A word that matches neither
     * is an error, except `*`. Default: NULL, which means no words, like "". */
    const char *wide;
    /* Accept words of `wide` that match no matmul. Use it for several modules, and check the words
     * for all of them with hlo_reports_check_wide(). Default: false. */
    bool wide_unmatched;
    /* Allow rounding an f32 bias to bf16, so that the FP8 call can add it. Otherwise, the bias is
     * added after the call in f32. Default: false. */
    bool allow_bias_rounding;
    /* Merge dots that share an operand and whose other operands have the same scale. Default:
     * false. */
    bool merge_dots;

    /* The report. */

    /* Globs (fnmatch(3)) of framework source files, separated by commas. The source location of a
     * verdict is the innermost stack frame whose complete file name matches none of them, or the
     * innermost frame if all frames match. A file that the HLO names without a stack frame is
     * omitted if it matches. Default: HLO_FRAMEWORK_FILES. */
    const char *framework_files;
    /* Keep the instructions around each matmul in the report, for hlo_reports_page(). Default:
     * false. */
    bool surroundings;
    /* Look for likely mistakes with scales, amaxes and conversions. Default: false. */
    bool lint;
    /* Record times for hlo_report_print_times(). Default: false. */
    bool time_passes;

    /* Verification and debugging. */

    /* Verify the module after each pass, not only after the last one. Default: false. */
    bool verify_each;
    /* Do not verify the module after the last pass. The input is still verified, unless no pass
     * runs and no report is requested. Default: false. */
    bool verify_none;
    /* The maximum number of errors to report for a module or a rules file, or 0 for
     * HLO_MAX_ERRORS. Default: 0. */
    unsigned max_errors;
    /* The name of a pass, or "all": write the module to `dump` after the pass. Default: NULL. */
    const char *print_after;
    /* The writer for `print_after`. dump.write must not be NULL if `print_after` is set. Default:
     * NULL. */
    hlo_writer dump;

    /* Progress. */

    /* A callback that is called at the first pass of a run, and then at most ten times per second:
     * before passes, and within passes that apply rules. It is called on the thread of the caller.
     * It returns true to continue, and false to stop the run, which then returns HLO_STOPPED and
     * restores the module. `user` is `progress_user`. Default: NULL, which means no callback. */
    bool (*progress)(void *user, const hlo_pass_progress *progress);
    /* Passed to `progress` unchanged. */
    void *progress_user;
} hlo_pass_options;

/* Sets the fields within the first `struct_size` bytes of *options to their default values. Use it
 * if the size of the struct is known only at run time; otherwise, use hlo_pass_options_init(). */
void hlo_pass_options_init_sized(hlo_pass_options *options, size_t struct_size);

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_pass_options_init(hlo_pass_options *options) {
    hlo_pass_options_init_sized(options, sizeof *options);
}

/* Checks options. `options` may be NULL, which selects the defaults.
 *
 * Returns HLO_INVALID_USAGE, with one error without a location in options->sink, if an option is
 * invalid: for example, if a pass or the target does not exist. */
hlo_status hlo_pass_options_check(const hlo_pass_options *options);

/* ----------------------------------------------------------------------------------- optimizing */

/* The kind of a verdict. */
typedef enum hlo_verdict_kind {
    HLO_VERDICT_FP8,    /* The matmul is an FP8 call, or a call or kernel of a library that
                           multiplies fp8 values. */
    HLO_VERDICT_MISSED, /* The matmul is an FP8 call, but not fully converted. `reason` explains
                           what is missing. */
    HLO_VERDICT_WIDE,   /* The matmul is not FP8. `reason` explains why. */
    HLO_VERDICT_LINT    /* The verdict is not on a matmul, but on a likely mistake with a scale, an
                           amax or a conversion. */
} hlo_verdict_kind;

/* The verdict on a matmul, or a lint. The report owns all strings. A string may be NULL only if its
 * comment says so. */
typedef struct hlo_verdict {
    size_t struct_size; /* See status.h. */
    hlo_verdict_kind kind;
    /* The name of the FP8 call in the output. If the matmul is wide, the same as
     * `input_instruction`. */
    const char *instruction;
    /* The name of the matmul in the input. NULL for a lint. */
    const char *input_instruction;
    /* The shape of the result in the output, such as "bf16[32,64]". */
    const char *shape;
    /* The shape of the result in the input. NULL for a lint. */
    const char *input_shape;
    /* The shapes of the operands, such as "f8e4m3fn[32,64] f8e4m3fn[64,128]". "" for a lint. */
    const char *operands;
    /* The opcode of the matmul in the input, such as "dot" or "convolution", or the target of a
     * custom call, such as "__cublas$lt$matmul". */
    const char *operation;
    /* The kind of the fusion that contains the matmul in the output, such as "a Triton fusion".
     * NULL if it is not in a fusion. */
    const char *fusion;
    /* The epilogue of the FP8 call, such as "RELU", followed by " +matrix" if it adds a matrix C,
     * by a word such as " +row-scales" or " +block-scales" if the scales are not scalars, and by "
     * +amax" and " +fp8-output". For a matmul in a fusion, a description such as "in a Triton
     * fusion". "" if the matmul is wide. */
    const char *epilogue;
    /* The identifier of the reason, such as "not-quantized". It does not change between versions of
     * the library. NULL if there is no reason. */
    const char *reason;
    /* The description of the reason. NULL if there is no reason. */
    const char *message;
    /* The smallest change to the program that removes the reason. NULL if there is no reason. */
    const char *hint;
    /* The name of the instruction that prevents the conversion. NULL if it is unknown. */
    const char *blocker;
    /* The op_name in the metadata of the matmul or linted instruction, or NULL. */
    const char *op_name;
    /* The source file of the matmul in the program that was compiled (see
     * hlo_pass_options.framework_files). NULL if it is unknown. */
    const char *source_file;
    /* The line in `source_file`, or 0 if it is unknown. */
    long source_line;
    /* The file of the HLO text. NULL if it is unknown. */
    const char *file;
    /* The position of the matmul in `file`, or 0 if it is unknown. */
    uint32_t line, column;
    /* The number of executions in one run of the module. A loop with an unknown trip count counts
     * as one iteration, and each branch of a conditional as executed. */
    double runs;
    /* True if `runs` depends on such a loop or conditional. */
    bool runs_assumed;
    /* The number of floating-point operations of one execution, which is 2*batch*m*n*k for a
     * matmul, or 0 if it is unknown. */
    double flops;
    /* The bytes that one execution of the matmul reads and writes, and its time in seconds by a
     * roofline model of the target (docs/cost.md), or 0 if unknown. Bytes and times include the
     * kernels around the matmul that quantize, dequantize, transpose and pad. input_bytes and
     * input_seconds apply to the module before rewriting, bytes and seconds to the module after
     * rewriting. */
    double input_bytes, bytes;
    double input_seconds, seconds;
    /* The time in seconds of the matmul on wide types: `input_seconds`, except for a dot of fp8
     * operands, which stock XLA multiplies in FP8. */
    double wide_seconds;
    /* The time in seconds of the floating-point operations alone, at the peak of the target, after
     * rewriting; 0 if `seconds` is 0. `compute_seconds` / `seconds` is the fraction of the peak. */
    double compute_seconds;
    /* If the matmul is wide, its time in seconds in FP8, including quantization. Otherwise 0. */
    double fp8_seconds;
    /* The number of groups of a ragged-dot in the input. Otherwise 0. */
    int64_t groups;
    /* The scale modes of both operands of the FP8 call in cuBLASLt, such as "VEC32_UE8M0
     * VEC32_UE8M0". NULL if the scales are scalars. */
    const char *scale_modes;
    /* The number of elements along the contracting dimension that share a scale, or 0 if all
     * elements share one. */
    int64_t block_size;
    /* The recipe of hlo_pass_options.quantize by which the operands were quantized, such as
     * "current". NULL if that option did not quantize them. */
    const char *quantized;
    /* If `quantized` is set, the predicted speedup, or 0 if it is unknown. It includes the time to
     * quantize the operands, which matmuls that use the same operand share. Otherwise 0. */
    double predicted_gain;
    /* If `quantized` is set, the predicted number of seconds that quantization saves in one run of
     * the module, or 0 if it is unknown. Matmuls that use the same operand share the time to
     * quantize it. Otherwise 0. */
    double predicted_saving;
    /* True if hlo_module_budget() (bisect.h) measured the effect of quantizing only this matmul.
     * `quantized` and the predicted fields are then also set for matmuls that it left wide. */
    bool measured;
    /* If `measured`, the signal-to-noise ratio of the result of the matmul in dB, infinite if the
     * result does not change, or NaN if it is unknown. Otherwise 0. */
    double snr_db;
    /* If `measured`, the relative change of the most affected output of the module
     * (hlo_array_distance()). Otherwise 0. */
    double output_distance;
} hlo_verdict;

/* The verdicts of one run of hlo_module_optimize(). A report does not borrow anything from the
 * module. */
typedef struct hlo_report hlo_report;

/* Runs the passes options->passes over `module`. The module is changed in place. `options` may be
 * NULL, which selects the defaults. If options->passes is a sequence with passes that convert
 * matmuls, such as "default", and none of these passes changes the module, the changes of the other
 * passes are undone: for example, dead code is not removed.
 *
 * The caller must free *out_report with hlo_report_free(). `out_report` may be NULL if the report
 * is not needed. If the function fails, the module is as it was before the call, also if memory
 * cannot be allocated, and all pointers to its instructions are valid.
 *
 * Returns HLO_INVALID_INPUT if the module is not valid, if the operands, results and backend config
 * of a cuBLASLt matmul call contradict each other (hlo_module_verify() does not check custom
 * calls), if a rule is invalid, or if a word of options->wide matches no matmul. Returns
 * HLO_INVALID_USAGE if the options are invalid, as in hlo_pass_options_check(). Returns
 * HLO_INTERNAL if a built-in pass or rule fails, which is a bug of the library. Returns
 * HLO_INVALID_INPUT if a user pass or a rule of options->rules makes the module invalid, and the
 * status of a user pass that fails. */
hlo_status hlo_module_optimize(hlo_module *module, const hlo_pass_options *options,
                               hlo_report **out_report);

/* Reduces `module` to one matmul. `name` is the name of a matmul in any computation, or the name of
 * an FP8 call (hlo_verdict.instruction) into which hlo_module_optimize() with the options `pass`
 * converts a matmul. `pass` may be NULL, which selects the defaults.
 *
 * The result consists of the matmul, the instructions that quantize and dequantize its operands,
 * the computation of its scales from scalars, and the elementwise operations, data movements and
 * reductions that use its result, up to the next matmul, quantized value or instruction of another
 * kind. All other values that these instructions read become parameters. A parameter has the name
 * of the instruction that it replaces, so that the values of a run (hlo_plan_values()) can be
 * inputs of the result.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the module is not valid or there is no
 * such matmul, HLO_INVALID_USAGE if `pass` is invalid, and HLO_OUT_OF_MEMORY if memory cannot be
 * allocated. Then, the module is as it was before the call. */
hlo_status hlo_module_extract(hlo_module *module, const char *name, const hlo_pass_options *pass,
                              const hlo_diag_sink *sink);

/* Splits `module` in two modules, so that values that depend only on certain parameters, such as
 * weights, are computed once for many executions. `parameters` selects these parameters of the
 * entry computation: names or globs (fnmatch(3)), separated by commas.
 *
 * On success, the caller owns *out_ahead and must free it with hlo_module_free(). Its parameters
 * are the selected ones, in order, and its result is a tuple of arrays. `module` then has the other
 * parameters, in order, followed by one parameter for each element of this tuple. Together, both
 * modules compute the same bits as the original module. The elements are the values that the other
 * instructions use; docs/quantize.md describes which ones. A selected parameter that these
 * instructions use is also an element.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if a word of `parameters` matches no
 * parameter, if a selected parameter is donated, has a dynamic size, a control dependency or
 * another memory space, or is a tuple that is used as a whole, or if the module is invalid or
 * scheduled, and HLO_OUT_OF_MEMORY if memory cannot be allocated. Then, the module is as it was
 * before the call. */
hlo_status hlo_module_split(hlo_module *module, const char *parameters, const hlo_diag_sink *sink,
                            hlo_module **out_ahead);

/* Quantizes the operands that hlo_module_optimize() with the same options quantizes because of
 * options->quantize, but converts no matmul to FP8. Compare the result of hlo_module_optimize()
 * with this module: both compute the same values, bit for bit, except where an FP8 call omits
 * roundings in an epilogue or sums each block separately ("mx"). The function also runs the
 * passes before "quantize-wide". `options` may be NULL. Without options->quantize, the module is
 * not changed.
 *
 * Returns the same statuses as hlo_module_optimize(). */
hlo_status hlo_module_quantize(hlo_module *module, const hlo_pass_options *options);

/* Frees a report. `report` may be NULL. */
void hlo_report_free(hlo_report *report);

/* Returns the number of verdicts. There is one for each matmul of the input that the entry
 * computation reaches, in text order. Matmuls are dots, ragged-dots, scaled-dots, convolutions and
 * custom calls of libraries. */
size_t hlo_report_count(const hlo_report *report);

/* Returns a verdict, borrowed from the report. `index` must be less than hlo_report_count(). */
const hlo_verdict *hlo_report_verdict(const hlo_report *report, size_t index);

/* Returns the number of lints of a run with hlo_pass_options.lint. Otherwise, returns 0. */
size_t hlo_report_lint_count(const hlo_report *report);

/* Returns a lint, borrowed from the report. Lints are in text order. `index` must be less than
 * hlo_report_lint_count(). `reason` and `message` describe the mistake, and `instruction` is the
 * instruction. Fields that apply only to matmuls are NULL, "" or 0. */
const hlo_verdict *hlo_report_lint(const hlo_report *report, size_t index);

/* Checks whether each word of `wide` (see hlo_pass_options.wide) matches a matmul of one of `count`
 * reports. `wide` may be NULL, which means no words. `file` is the file name in diagnostics, and
 * may be NULL.
 *
 * Returns HLO_INVALID_INPUT, with one error in `sink` for each word that matches no matmul. */
hlo_status hlo_reports_check_wide(const hlo_report *const *reports, size_t count, const char *wide,
                                  const char *file, const hlo_diag_sink *sink);

/* --------------------------------------------------------------------------- reasons and passes */

/* Returns the number of reasons that verdicts can have. The order of the reasons is fixed
 * within a version of the library. */
size_t hlo_reason_count(void);

/* Returns the identifier of a reason. `index` must be less than hlo_reason_count(). The string is
 * static. */
const char *hlo_reason_name(size_t index);

/* Returns the description of a reason, without a full stop. `index` must be less than
 * hlo_reason_count(). The string is static. */
const char *hlo_reason_text(size_t index);

/* Returns a short description of the smallest change to the program that fixes a reason. `index`
 * must be less than hlo_reason_count(). The string is static. */
const char *hlo_reason_hint(size_t index);

/* Returns the documentation of a reason in Markdown: its meaning, the fix, and a module before and
 * after the fix. `index` must be less than hlo_reason_count(). The string is static. */
const char *hlo_reason_page(size_t index);

/* Writes how often each rule was applied, and, if the passes ran with hlo_pass_options.time_passes,
 * the time of each pass in milliseconds. */
hlo_status hlo_report_print_times(const hlo_report *report, hlo_writer out);

/* Returns the number of built-in passes. */
size_t hlo_pass_count(void);

/* Returns the name of a built-in pass. `index` must be less than hlo_pass_count(). The string is
 * static. */
const char *hlo_pass_name(size_t index);

/* Returns a description of a built-in pass in one line. `index` must be less than hlo_pass_count().
 * The string is static. */
const char *hlo_pass_help(size_t index);

/* Writes a line with name and description for each pass that options->passes may name: the built-in
 * passes, then options->user_passes. `options` may be NULL, which means no user passes.
 *
 * Returns the same statuses as hlo_pass_options_check(). */
hlo_status hlo_passes_print(const hlo_pass_options *options, hlo_writer out);

/* Returns the passes that a sequence runs, separated by commas, or NULL if the pass is not a
 * sequence. `index` must be less than hlo_pass_count(). The string is static. */
const char *hlo_pass_sequence(size_t index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
