/* SPDX-License-Identifier: Apache-2.0 */
/* Rewriting a module, and the verdict on each of its matmuls. */
#ifndef HLO_PASS_H
#define HLO_PASS_H

#include <stddef.h>
#include <string.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Globs of framework files: installed packages, and, where the HLO has no folders, the files of
 * Flax and JAX that multiply matrices. */
#define HLO_FRAMEWORK_FILES                                                                        \
    "*/site-packages/*,*/dist-packages/*,<*,fp8_ops.py,linear.py,linen/*,dtypes.py,"               \
    "transform.py,axes_scan.py,module.py,attention.py,lax_numpy.py"

/* The form in which a rewritten module has its FP8 matmuls (docs/emit.md). */
typedef enum hlo_emit_form {
    HLO_EMIT_CUBLAS, /* calls of `__cublas$lt$matmul$f8` */
    HLO_EMIT_FFI,    /* the same calls as typed calls of `hlofp8.matmul`, which XLA executes by the
                        functions of ffi.h */
    HLO_EMIT_QDQ,    /* plain HLO that XLA's GPU compiler makes FP8 calls of */
    HLO_EMIT_DQ      /* plain HLO on wide values, for any platform */
} hlo_emit_form;

/* A pass of one's own. Initialize with hlo_user_pass_init(), then set `name` and `run`. */
typedef struct hlo_user_pass {
    size_t struct_size; /* see status.h */
    const char *name;   /* that hlo_pass_options.passes may have: no built-in one, without commas */
    /* Changes the module by the functions of edit.h, on the thread that runs the passes; `user` is
     * the member below, `sink` that of the options. The module is verified before and, if it was
     * changed, after it. Handles (ir.h) are valid until it returns. A status other than HLO_OK ends
     * the run, which returns it. It does not free the module, run passes over it, or jump out. */
    hlo_status (*run)(void *user, hlo_module *module, const hlo_diag_sink *sink);
    void *user;       /* handed to `run` as it is */
    const char *help; /* what it does, in one line, for hlo_passes_print(); NULL: none */
} hlo_user_pass;

/* Sets every field to NULL. */
static inline void hlo_user_pass_init(hlo_user_pass *pass) {
    memset(pass, 0, sizeof *pass);
    pass->struct_size = sizeof *pass;
}

/* The form in which a rewritten module has its ragged-dots of fp8 values. */
typedef enum hlo_ragged_form {
    HLO_RAGGED_AUTO,  /* what is fastest on the target: dense, as no library has groups in FP8 */
    HLO_RAGGED_DENSE, /* FP8 calls of dense products, with zeros outside each group */
    HLO_RAGGED_KEEP   /* ragged-dots of the fp8 values, for compilers and runtimes that have them */
} hlo_ragged_form;

/* Options of a run of passes. Initialize with hlo_pass_options_init(), then change fields. All
 * pointers are borrowed for the duration of the run. */
typedef struct hlo_pass_options {
    size_t struct_size;        /* see status.h */
    const hlo_diag_sink *sink; /* receives diagnostics; may be NULL */
    const char *passes; /* names separated by commas, in order; "" for none; default "default" */
    int target;         /* compute capability * 10: 80, 89, 90, 100 or 120; default 90 */
    int cuda_major, cuda_minor; /* of the CUDA toolkit whose cuBLASLt will run it; default 12.8.
                                   From 12.9 on, scales per row and per block go into calls for
                                   sm_90, in a form that XLA refuses to read */
    bool scales_used;    /* --scale-operands=used: only the scale operands that have a meaning;
                            default false: all four. It has no effect on plain HLO (emit) */
    hlo_emit_form emit;  /* form of every FP8 call of the output, also of those that the input has;
                            default HLO_EMIT_CUBLAS. Verdicts tell of the calls */
    double min_gain;     /* a matmul whose time shrinks by less than this factor (hlo_verdict) stays
                            wide; 0: all become FP8 that can. Default 0 */
    const char *rules;   /* a file of further rewrite rules (docs/rules.md): they run after the
                            built-in rules of their phase, and each that did not fire is a note;
                            NULL: none */
    uint64_t rule_order; /* the order in which a phase's rules visit instructions: 0 as in the text,
                            1 backwards, any other number a seed to shuffle by. The result does not
                            depend on it */
    bool allow_bias_rounding; /* an f32 bias may be rounded to bf16, so that the call adds it;
                                 default false: it is added after the call, in f32 */
    bool merge_dots; /* dots that share an operand, and whose other operands have one scale, become
                        one; default false */
    /* Globs (fnmatch(3)) of the source files of frameworks, separated by commas. A verdict's place
     * in the source is the innermost frame whose whole file name matches none of them, or the
     * innermost frame of all if each matches one. Default HLO_FRAMEWORK_FILES */
    const char *framework_files;
    unsigned max_errors;     /* errors reported for a module or a file of rules; 0:
                                HLO_MOST_ERRORS */
    bool verify_each;        /* verify after every pass, not only at the end */
    bool verify_none;        /* not even at the end; the input is verified all the same */
    bool surroundings;       /* keep the instructions around each matmul for hlo_reports_page() */
    bool lint;               /* look for likely faults of scales, amaxes and conversions */
    bool time_passes;        /* record times for hlo_report_print_times() */
    const char *print_after; /* a pass's name, or "all": print the module to `dump` after it */
    FILE *dump;              /* where `print_after` prints; must not be NULL with it */
    const char *rules_text;  /* further rewrite rules, as of a file; NULL: none. Diagnostics name
                                its file as `rules` does, which is not read then */
    /* Passes of one's own, which `passes` and `print_after` may name beside the built-in ones; they
     * run where `passes` has them, with min_gain more than once. To run one between two passes of
     * a sequence, `passes` has the sequence's parts (hlo_pass_sequence()). A matmul that replaces
     * another one (hlo_instruction_options.like, hlo_instruction_replace()) inherits its verdict.
     */
    const hlo_user_pass *const *user_passes;
    size_t user_pass_count;
    hlo_ragged_form ragged; /* default HLO_RAGGED_AUTO */
    /* Matmuls that stay wide, separated by commas: names of instructions of the input
     * (hlo_verdict.input_instr), op_names, source lines (`model.py:12`, of hlo_verdict.source_file
     * at least its last part), or globs of these (fnmatch(3)). A word that selects no matmul so may
     * be the name, or a glob, of FP8 calls in the output of a run without such words
     * (hlo_verdict.instr). A word that selects no matmul at all is an error. Default NULL: no
     * matmul */
    const char *wide;
    bool wide_unmatched; /* accept words of `wide` that select no matmul. For several modules, which
                            hlo_reports_check_wide() checks together */
} hlo_pass_options;

/* Sets the first `struct_size` bytes of *options to the defaults. */
void hlo_pass_options_init_sized(hlo_pass_options *options, size_t struct_size);
/* Sets every field to its default. */
static inline void hlo_pass_options_init(hlo_pass_options *options) {
    hlo_pass_options_init_sized(options, sizeof *options);
}

/* Checks the options; NULL: the defaults. HLO_INVALID_USAGE: a pass, a form, the target, the CUDA
 * version or the struct_size does not exist; one diagnostic in options->sink, without a place,
 * names it. */
hlo_status hlo_pass_options_check(const hlo_pass_options *options);

/* The kind of a verdict. */
typedef enum hlo_verdict_kind {
    HLO_VERDICT_FP8, /* a fused FP8 call, or a library's call or kernel that multiplies fp8 values
                      */
    HLO_VERDICT_MISSED, /* a fused FP8 call; a cheaper form of it was missed, `reason` says why */
    HLO_VERDICT_WIDE,   /* not FP8; `reason` says why */
    HLO_VERDICT_LINT    /* no matmul: a likely fault of a scale, an amax or a conversion */
} hlo_verdict_kind;

/* The verdict on one matmul. Strings are borrowed from the report. */
typedef struct hlo_verdict {
    hlo_verdict_kind kind;
    const char *instr;       /* name of the FP8 call in the output; of a wide matmul, input_instr */
    const char *input_instr; /* name of the matmul in the input */
    const char *shape;       /* of the result, e.g. "bf16[32,64]" */
    const char *input_shape; /* of the result of the matmul as it was in the input */
    const char *operands;    /* their shapes, e.g. "f8e4m3fn[32,64] f8e4m3fn[64,128]" */
    const char *operation;   /* as it was in the input: "dot", "ragged-dot", "convolution", or the
                                target of a call,
                                "__cublas$lt$matmul" */
    const char *fusion;      /* the fusion that has it at the end, "a Triton fusion"; NULL: none */
    const char
        *epilogue;           /* of the call: "RELU", with " +matrix" if it adds a matrix C, "
                                +row-scales" or    " +block-scales", " +amax" and " +fp8-output", or the
                                place of the multiplication, "in a Triton    fusion"; "" when wide */
    const char *reason;      /* a stable id, e.g. "not-quantized"; NULL when there is none */
    const char *message;     /* the reason as a sentence; NULL when there is none */
    const char *hint;        /* the smallest edit that mends it; NULL when there is no reason */
    const char *blocker;     /* name of the instruction that blocked it; NULL when there is none */
    const char *op_name;     /* from its metadata; NULL when there is none */
    const char *source_file; /* of the program that was compiled, through the stack frames; NULL */
    long source_line;        /* 0 when unknown */
    const char *file;        /* of the HLO text */
    uint32_t line, column;   /* of the dot there */
    double runs;  /* runs of it in one execution of the module; loops of unknown trip count count
                     once */
    double flops; /* floating-point operations of one execution: of a matmul 2*batch*m*n*k; 0: not
                     known */
    /* Bytes read and written by one execution of the matmul and of the kernels around it that
     * quantize, dequantize, transpose, pad and the like, and their seconds by a roofline for the
     * target (docs/cost.md): before the passes (input_*), and after them. 0 seconds: not known. */
    double input_bytes, bytes;
    double input_seconds, seconds;
    double fp8_seconds; /* wide: the seconds it would take in FP8, quantizing included; else 0 */
    int64_t groups;     /* of a ragged-dot, as it was in the input; 0: it was none */
    const char *scale_modes; /* of both operands of a call, cuBLASLt's names, where they are not
                                scalars: "VEC32_UE8M0 VEC32_UE8M0"; NULL: they are */
    int64_t block_size; /* elements along the contracting dimension that share a scale; 0: all */
} hlo_verdict;

/* The verdicts of one run of passes. It borrows nothing from the module. */
typedef struct hlo_report hlo_report;

/* Runs options->passes over the module, in place; `options` NULL: the defaults. A run in which no
 * rule fires and no dot is fused leaves the module unchanged, dead code included. On HLO_OK, and
 * only then, the caller frees *out_report with hlo_report_free(); with `out_report` NULL no report
 * is made (and nothing is done at all without passes and with verify_none). HLO_INVALID_INPUT: the
 * module, which is verified if it has not been, does not verify; or operands, results and config of
 * a cuBLASLt matmul call contradict each other (hlo_module_verify() does not look inside custom
 * calls); or a rule of options->rules is wrong, or a word of
 * options->wide selects no matmul. HLO_INVALID_USAGE as
 * for hlo_pass_options_check(). HLO_INTERNAL: the result failed to verify, a bug of the library
 * (after a pass of one's own, HLO_INVALID_INPUT); diagnostics give the place. HLO_OUT_OF_MEMORY. On
 * failure the module may only be freed. */
hlo_status hlo_module_optimize(hlo_module *module, const hlo_pass_options *options,
                               hlo_report **out_report);

/* Reduces the module to one matmul, the instruction `name` of any computation. The result also has
 * the instructions that quantize and dequantize its operands, its scales if they are computed from
 * scalars, and the elementwise operations, movements and reductions that use it, up to the next
 * matmul, quantized value or instruction of another kind. Other values that it reads become its
 * parameters, with the names of the instructions, so that values kept of a run (hlo_plan_values)
 * are its inputs. If no matmul of the module has that name, `name` is the name of an FP8 call
 * (hlo_verdict.instr) that hlo_module_optimize() with `pass` makes of a matmul; NULL: the defaults.
 * HLO_INVALID_INPUT, with an error in `sink`: there is no such matmul. HLO_OUT_OF_MEMORY; the
 * module may only be freed then. */
hlo_status hlo_module_extract(hlo_module *module, const char *name, const hlo_pass_options *pass,
                              const hlo_diag_sink *sink);

void hlo_report_free(hlo_report *report); /* NULL is allowed */

/* The verdicts, in text order: one for each instruction of the input that multiplies matrices and
 * that the entry reaches: dots, ragged and scaled dots, convolutions, calls of libraries. Borrowed
 * from the report; `index` must be below the count. */
size_t hlo_report_count(const hlo_report *report);
const hlo_verdict *hlo_report_verdict(const hlo_report *report, size_t index);

/* The lints of a run with `lint`, in text order: `reason` and `message` describe the fault, `instr`
 * is the instruction; fields that only a matmul has are NULL or 0. Borrowed from the report. */
size_t hlo_report_lint_count(const hlo_report *report);
const hlo_verdict *hlo_report_lint(const hlo_report *report, size_t index);

/* The verdicts to write: those with a reason, those without one, or all. */
typedef enum hlo_remarks { HLO_REMARKS_MISSED, HLO_REMARKS_PASSED, HLO_REMARKS_ALL } hlo_remarks;
typedef enum hlo_remarks_format {
    HLO_REMARKS_TEXT,  /* an aligned line per verdict, then the reasons with their hints and a
                          summary */
    HLO_REMARKS_JSON,  /* one object, docs/remarks.schema.json */
    HLO_REMARKS_SARIF, /* SARIF 2.1.0: a result per verdict that has a reason, a rule per reason */
    HLO_REMARKS_JUNIT, /* JUnit XML: a case per verdict, a failure where it has a reason */
    HLO_REMARKS_COSTS, /* a line per verdict of FLOPs, bytes and times, by descending time, then the
                          sum */
    HLO_REMARKS_COLORED /* the text for a terminal that knows ANSI colors */
} hlo_remarks_format;
/* Writes the verdicts that `which` selects from `count` reports as one document; its summary counts
 * all verdicts. HLO_INVALID_USAGE: there is no such format. HLO_INVALID_INPUT: `out` cannot be
 * written to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count, hlo_remarks which,
                             hlo_remarks_format format, FILE *out);

/* A callback that draws `count` graphs in Graphviz's language. It sets out_drawings[i], NULL at
 * first, to an SVG element allocated with malloc(), which the library frees, or leaves it NULL
 * where it cannot draw. It returns HLO_OK or HLO_OUT_OF_MEMORY. */
typedef hlo_status hlo_drawer(void *user, const char *const *graphs, size_t count,
                              char **out_drawings);
/* The contents of a page beside the verdicts. Initialize with hlo_page_options_init(). Each pointer
 * may be NULL; all are borrowed for the call. */
typedef struct hlo_page_options {
    size_t struct_size; /* see status.h */
    hlo_drawer *draw; /* draws the surroundings of the 50 matmuls that take longest; NULL: they are
                         tables */
    void *user;       /* for `draw` */
    const char *command, *date; /* for the page's head: the command that made it, and its date */
} hlo_page_options;

/* Sets every field to its default. */
static inline void hlo_page_options_init(hlo_page_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Writes one page of HTML about `count` reports, which needs no network: target and options, a
 * summary, the matmuls by cost with verdict, source and, if the passes ran with `surroundings`, the
 * instructions around them before and after, the lints, and the pages of the reasons. A script in
 * the page sorts and filters the matmuls; without scripts the page has the same contents.
 * `options` NULL: the defaults. HLO_INVALID_USAGE: options->struct_size. HLO_INVALID_INPUT: `out`
 * cannot be written to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_page(const hlo_report *const *reports, size_t count,
                            const hlo_page_options *options, FILE *out);

/* Checks the verdicts of `count` reports against the requirements of a build.
 *   expect   "N", "N%" or "all": at least this number or percentage of the matmuls is FP8; NULL: no
 *            requirement
 *   fail_on  "": no verdict has a reason; reason ids separated by commas: no verdict has one of
 *            them; NULL: no requirement
 * A report without matmuls, or no report, violates both unless `allow_empty` is true. HLO_OK when
 * both hold. HLO_MISMATCH: one line in `why` (`why_size` bytes, always NUL-terminated; 0: it may be
 * NULL) names the violated one. HLO_INVALID_USAGE: `expect` or `fail_on` has another form; `why`
 * has the fault. */
hlo_status hlo_reports_gate(const hlo_report *const *reports, size_t count, const char *expect,
                            const char *fail_on, bool allow_empty, char *why, size_t why_size);

/* Checks that every matmul that was FP8 in an earlier run is FP8 now: each FP8 verdict in the file
 * at `path`, which HLO_REMARKS_JSON of all or passed verdicts wrote, has an FP8 verdict of its own
 * with an equal op_name and input_shape. A report or a file without matmuls fails unless
 * `allow_empty` is true. HLO_MISMATCH: one line in `why` (`why_size` bytes, always
 * NUL-terminated; 0: it may be NULL) names a matmul that has none. HLO_INVALID_INPUT, with an error
 * in `sink`: the file cannot be read or has another form. HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                bool allow_empty, const hlo_diag_sink *sink, char *why,
                                size_t why_size);

/* Checks that each word of `wide` (see hlo_pass_options.wide; NULL: no words) selects a matmul of
 * one of `count` reports. HLO_INVALID_INPUT: one does not; errors go to `sink` and name `file`,
 * which may be NULL. */
hlo_status hlo_reports_check_wide(const hlo_report *const *reports, size_t count, const char *wide,
                                  const char *file, const hlo_diag_sink *sink);

/* The reasons that verdicts may have, in a fixed order; strings are static, `index` must be below
 * the count. hlo_reason_name() is the id. */
size_t hlo_reason_count(void);
const char *hlo_reason_name(size_t index);
const char *hlo_reason_text(size_t index); /* as a sentence without a full stop */
const char *hlo_reason_hint(size_t index); /* the smallest edit that mends it, a short phrase */
/* The reason's page, in Markdown: its meaning, the edit, and a module before and after the edit. */
const char *hlo_reason_page(size_t index);

/* Writes the number of times that each rule fired and, after a run with `time_passes`, the
 * milliseconds of each pass. Write errors show in `out` (ferror). */
void hlo_report_print_times(const hlo_report *report, FILE *out);

/* The passes that hlo_pass_options.passes may name; strings are static, `index` must be below the
 * count. */
size_t hlo_pass_count(void);
const char *hlo_pass_name(size_t index);
const char *hlo_pass_help(size_t index); /* one line */
/* Writes the passes that options->passes may name, with their help, a line each: the built-in ones,
 * then those of options->user_passes; `options` NULL: the built-in ones alone. Statuses are those
 * of hlo_pass_options_check(). Write errors show in `out` (ferror). */
hlo_status hlo_passes_print(const hlo_pass_options *options, FILE *out);
/* The passes that a sequence runs, separated by commas; NULL: the pass is no sequence. */
const char *hlo_pass_sequence(size_t index);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
