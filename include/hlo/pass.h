/* Rewriting a module, and the verdict on each of its matmuls. */
#ifndef HLO_PASS_H
#define HLO_PASS_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is installed, and the files of Flax and JAX that multiply, where the HLO has no folders. */
#define HLO_FRAMEWORK_FILES                                                                        \
    "*/site-packages/*,*/dist-packages/*,<*,fp8_ops.py,linear.py,linen/*,dtypes.py,"               \
    "transform.py,axes_scan.py,module.py,attention.py,lax_numpy.py"

/* How a run of passes is to go. Initialise with hlo_pass_options_init(), then change fields. All
 * pointers are borrowed for the duration of the run. */
typedef struct hlo_pass_options {
    const char *passes; /* names separated by commas, in order; "" for none; default "default" */
    int target;         /* compute capability * 10: 80, 89, 90, 100 or 120; default 90 */
    int cuda_major, cuda_minor; /* of the CUDA toolkit whose cuBLASLt will run it; default 12.8.
                                   From 12.9 on, scales per row and per block go into calls for
                                   sm_90, in a form that XLA refuses to read */
    bool scales_used;    /* --scale-operands=used: only the scale operands that have a meaning;
                            default false: all four */
    double min_gain;     /* a matmul whose time shrinks by less than this factor (hlo_verdict) stays
                            wide; 0: all become FP8 that can. Default 0 */
    const char *rules;   /* a file of more rewrite rules (docs/rules.md): those of a phase run after
                            the built-in ones of that phase, and what of them did not fire is a note;
                            NULL:   none */
    uint64_t rule_order; /* in which order a phase's rules look at instructions: 0 as in the text, 1
                            backwards, any other number shuffled by it. The result is the same */
    bool allow_bias_rounding; /* an f32 bias may be rounded to bf16, so that the call adds it;
                                 default false: it is added after the call, in f32 */
    bool merge_dots; /* dots that share an operand, and whose other operands have one scale, become
                        one; default false */
    /* Globs, as fnmatch(3) has them, separated by commas: the source files of frameworks. The place
     * that a verdict gives in the source is the innermost frame whose file none of them matches
     * as a whole, the innermost of all where there is none. Default HLO_FRAMEWORK_FILES */
    const char *framework_files;
    unsigned max_errors;     /* that are said of a module or a file of rules; 0: HLO_MOST_ERRORS */
    bool verify_each;        /* verify after every pass, not only at the end */
    bool verify_none;        /* not even at the end; what comes in is verified all the same */
    bool surroundings;       /* keep what is around each matmul for hlo_reports_page() */
    bool lint;               /* look for what is likely wrong with scales */
    bool time_passes;        /* record times for hlo_report_print_times() */
    const char *print_after; /* a pass's name, or "all": print the module to `dump` after it */
    FILE *dump;              /* where `print_after` prints; must not be NULL with it */
    const hlo_diag_sink *sink; /* receives diagnostics; may be NULL */
} hlo_pass_options;

void hlo_pass_options_init(hlo_pass_options *options);

/* Whether a run could begin: HLO_INVALID_USAGE when there is no such pass, target or version; one
 * diagnostic, without a place, says which. */
hlo_status hlo_pass_options_check(const hlo_pass_options *options);

/* What became of one matmul. Strings are borrowed from the report. */
typedef enum hlo_verdict_kind {
    HLO_VERDICT_FP8, /* a fused FP8 call, or a library's call or kernel that multiplies fp8 values
                      */
    HLO_VERDICT_MISSED, /* a fused FP8 call; a cheaper form of it was missed, `reason` says why */
    HLO_VERDICT_WIDE,   /* not FP8; `reason` says why */
    HLO_VERDICT_LINT    /* no matmul: what is likely wrong with a scale, an amax or a conversion */
} hlo_verdict_kind;

typedef struct hlo_verdict {
    hlo_verdict_kind kind;
    const char *instr;       /* name of the dot as it was, or of the call as it is */
    const char *input_instr; /* name of the matmul as it was in the input */
    const char *shape;       /* of the result, e.g. "bf16[32,64]" */
    const char *input_shape; /* of the result of the matmul as it was in the input */
    const char *operands;    /* their shapes, e.g. "f8e4m3fn[32,64] f8e4m3fn[64,128]" */
    const char *operation;   /* as it was in the input: "dot", "ragged-dot", "convolution", or the
                                target of a call,
                                "__cublas$lt$matmul" */
    const char *fusion;      /* where it lies at the end, "a Triton fusion"; NULL: in no fusion */
    const char *epilogue; /* of the call: "RELU", with " +row-scales" or " +block-scales", " +amax"
                             and " +fp8-output", or where else it is multiplied, "in a Triton
                             fusion"; "" when wide */
    const char *reason;   /* a stable id, e.g. "not-quantised"; NULL when there is none */
    const char *message;  /* the reason as a sentence; NULL when there is none */
    const char *hint;     /* the smallest edit that mends it; NULL when there is no reason */
    const char *blocker;  /* name of the instruction that blocked it; NULL when there is none */
    const char *op_name;  /* from its metadata; NULL when there is none */
    const char *source_file; /* of the program that was compiled, through the stack frames; NULL */
    long source_line;        /* 0 when unknown */
    const char *file;        /* of the HLO text */
    uint32_t line, column;   /* of the dot there */
    double runs;  /* how often one execution of the module runs it; loops of unknown length count
                     once */
    double flops; /* floating-point operations of one execution: of a matmul 2*batch*m*n*k; 0: not
                     known */
    /* Bytes read and written by one execution and the seconds that it takes by a roofline for the
     * target, with the kernels around it that quantise, dequantise, transpose, pad and the like
     * (docs/cost.md): before the rewriter ran, and after all. 0 seconds: not known. */
    double input_bytes, bytes;
    double input_seconds, seconds;
    double fp8_seconds; /* wide: what it would take in FP8, with quantising its operands; 0 else */
} hlo_verdict;

typedef struct hlo_report hlo_report;

/* Runs options->passes over the module, in place; a run in which no rule fires and no dot is fused
 * leaves it as it was, dead code included. On HLO_OK, and only then, the caller frees *out_report
 * (out_report NULL: it is not wanted, and not made; without passes, and with verify_none, nothing
 * is done then). HLO_INVALID_INPUT: the module, which is verified if it has not been, does not
 * verify; a cuBLASLt matmul call in it has operands, results or a config that do not fit each other
 * (hlo_module_verify() does not look inside custom calls); or a rule of options->rules is at fault.
 * HLO_INVALID_USAGE as hlo_pass_options_check() has it. HLO_INTERNAL: the result failed to verify,
 * a bug of the library; diagnostics say where. HLO_OUT_OF_MEMORY. On failure the module may only be
 * freed. */
hlo_status hlo_module_optimize(hlo_module *module, const hlo_pass_options *options,
                               hlo_report **out_report);

void hlo_report_free(hlo_report *report); /* NULL is allowed */

/* One verdict for everything that multiplies matrices in the module as it was and that its entry
 * reaches, in text order: dots, ragged and scaled ones, convolutions, calls of libraries. */
size_t hlo_report_count(const hlo_report *report);
const hlo_verdict *hlo_report_verdict(const hlo_report *report, size_t index);

/* What --lint has found, in text order: `reason` and `message` say what, `instr` is where. Fields
 * that a matmul has alone are NULL or 0. */
size_t hlo_report_lint_count(const hlo_report *report);
const hlo_verdict *hlo_report_lint(const hlo_report *report, size_t index);

typedef enum hlo_remarks { HLO_REMARKS_MISSED, HLO_REMARKS_PASSED, HLO_REMARKS_ALL } hlo_remarks;
typedef enum hlo_remarks_format {
    HLO_REMARKS_TEXT,  /* an aligned line per verdict, then the reasons with their hints and a
                          summary */
    HLO_REMARKS_JSON,  /* one object, docs/diagnostics.md has its schema */
    HLO_REMARKS_SARIF, /* SARIF 2.1.0: a result per verdict that has a reason, a rule per reason */
    HLO_REMARKS_JUNIT, /* JUnit XML: a case per verdict, a failure where it has a reason */
    HLO_REMARKS_COSTS, /* a line per verdict of FLOPs, bytes and times, those that take longest
                          first, then their sum */
    HLO_REMARKS_COLOURED /* the text for a terminal that knows ANSI colours */
} hlo_remarks_format;
/* Tells the chosen verdicts of `count` reports as one document; its summary counts all of them.
 * HLO_INVALID_INPUT when writing to `out` fails, HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count, hlo_remarks which,
                             hlo_remarks_format format, FILE *out);

/* Draws `count` graphs in Graphviz's language: out_drawings[i], NULL at first, is an SVG element
 * that free() takes, or stays NULL where nothing can be drawn. HLO_OUT_OF_MEMORY. */
typedef hlo_status hlo_drawer(void *user, const char *const *graphs, size_t count,
                              char **out_drawings);
/* What a page says beside the verdicts; any of it may be NULL. All is borrowed for the call. */
typedef struct hlo_page_options {
    hlo_drawer *draw; /* draws the surroundings of the 50 matmuls that take longest; NULL: they are
                         tables */
    void *user;       /* for `draw` */
    const char *command, *date; /* that the page was made by, and when, as its head tells them */
} hlo_page_options;

/* Writes one page of HTML about `count` reports that needs no network: for what it was made, a
 * summary, the matmuls by cost with verdict, source and, if the passes ran with `surroundings`,
 * what is around them before and after, the lints, and the pages of the reasons. A script in it
 * sorts and filters the matmuls; without scripts it is the same page. HLO_INVALID_INPUT when
 * writing to `out` fails, HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_page(const hlo_report *const *reports, size_t count,
                            const hlo_page_options *options, FILE *out);

/* Whether the verdicts of `count` reports are what a build wants them to be.
 *   expect   "N", "N%" or "all": so many matmuls, or percent of them, are FP8 (at least); NULL: any
 *   fail_on  "" or reason ids separated by commas: no verdict has a reason, or one of these; NULL:
 *            any may
 * HLO_OK when both hold. HLO_MISMATCH: one line in `why`, always NUL-terminated, says what does
 * not. HLO_INVALID_USAGE: `expect` or `fail_on` is not of that form; `why` says how. */
hlo_status hlo_reports_gate(const hlo_report *const *reports, size_t count, const char *expect,
                            const char *fail_on, char *why, size_t why_size);

/* Whether every matmul that was FP8 in an earlier run is so still: for each FP8 verdict of the file
 * at `path`, which HLO_REMARKS_JSON of all or passed verdicts wrote, there is an FP8 verdict of its
 * own with the same op_name and input_shape. HLO_MISMATCH: one line in `why`, always
 * NUL-terminated, says what is not. HLO_INVALID_INPUT, with an error in `sink`: the file cannot be
 * read or is no such file. HLO_OUT_OF_MEMORY. */
hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                const hlo_diag_sink *sink, char *why, size_t why_size);

/* The reason ids that verdicts may have, in a fixed order. */
size_t hlo_reason_count(void);
const char *hlo_reason_name(size_t index);
const char *hlo_reason_text(size_t index); /* as a sentence without a full stop */
const char *hlo_reason_hint(size_t index); /* the smallest edit that mends it, a short phrase */
/* Markdown: what it means, the edit, and a module before and after it. */
const char *hlo_reason_page(size_t index);

/* Writes how often each rule fired and, of a run with `time_passes`, the milliseconds that each
 * pass took. */
void hlo_report_print_times(const hlo_report *report, FILE *out);

/* The passes that `passes` may name. */
size_t hlo_pass_count(void);
const char *hlo_pass_name(size_t index);
const char *hlo_pass_help(size_t index); /* one line */

#ifdef __cplusplus
}
#endif
#endif
