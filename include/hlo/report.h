/* SPDX-License-Identifier: Apache-2.0 */
/* Documents about reports: remarks, HTML pages, and gates that fail a build. */
#ifndef HLO_REPORT_H
#define HLO_REPORT_H

#include <string.h>

#include "hlo/pass.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ------------------------------------------------------------------------------------- printing */

/* The verdicts to print: all except HLO_VERDICT_FP8, all except HLO_VERDICT_WIDE, or all.
 * HLO_REMARKS_SUMMARY is the same as HLO_REMARKS_ALL, except in HLO_REMARKS_TEXT. */
typedef enum hlo_remarks {
    HLO_REMARKS_MISSED,
    HLO_REMARKS_PASSED,
    HLO_REMARKS_ALL,
    HLO_REMARKS_SUMMARY
} hlo_remarks;

/* The format of a document with verdicts (docs/diagnostics.md). */
typedef enum hlo_remarks_format {
    HLO_REMARKS_TEXT,  /* For HLO_REMARKS_SUMMARY, totals and the matmuls by layer, sorted by the
                          time that could be saved. Otherwise, one line for each verdict. Then the
                          reasons with their hints, and a line of totals. */
    HLO_REMARKS_JSON,  /* One JSON object (docs/remarks.schema.json). */
    HLO_REMARKS_SARIF, /* SARIF 2.1.0, with one result for each verdict that has a reason, and one
                          rule for each of these reasons. */
    HLO_REMARKS_JUNIT, /* JUnit XML, with one test case for each verdict, which fails if the verdict
                          has a reason. */
    HLO_REMARKS_GITHUB,  /* Workflow commands of GitHub Actions, which annotate source lines. */
    HLO_REMARKS_GITLAB,  /* A Code Quality report of GitLab. */
    HLO_REMARKS_MARKDOWN /* A summary for a page of GitHub or GitLab. */
} hlo_remarks_format;

/* Options of hlo_reports_print() and hlo_histories_print(). Initialize them with
 * hlo_remarks_options_init(), then set fields. */
typedef struct hlo_remarks_options {
    size_t struct_size; /* See status.h. */
    /* The verdicts to print. Totals count all verdicts. Default: HLO_REMARKS_SUMMARY. */
    hlo_remarks which;
    hlo_remarks_format format; /* Default: HLO_REMARKS_TEXT. */
    /* Add ANSI colors for terminals to HLO_REMARKS_TEXT. Default: false. */
    bool colored;
    /* The width of the terminal in columns: HLO_REMARKS_TEXT omits columns of tables, and shortens
     * names, so that lines fit. Default: 0, which does not limit lines. */
    unsigned width;
    /* The path of JSON remarks of an earlier run, or NULL. HLO_REMARKS_TEXT, for
     * HLO_REMARKS_SUMMARY, and HLO_REMARKS_MARKDOWN list the layers in which the number of matmuls,
     * of FP8 matmuls or the time differs. Default: NULL. */
    const char *baseline;
} hlo_remarks_options;

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_remarks_options_init(hlo_remarks_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
    options->which = HLO_REMARKS_SUMMARY;
}

/* Writes a document with verdicts of `count` reports. `options` may be NULL, which selects the
 * defaults.
 *
 * Returns HLO_INVALID_USAGE if `options` is invalid, and HLO_INVALID_INPUT if `out` cannot be
 * written to or options->baseline cannot be read. */
hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count,
                             const hlo_remarks_options *options, hlo_writer out);

/* A callback that draws `count` graphs, which are given in the language of Graphviz. It stores an
 * SVG element in out_drawings[i], or leaves the initial NULL if it cannot draw graph i. The SVG
 * element must be allocated with hlo_malloc() (memory.h), and the library frees it. `user` is
 * hlo_page_options.user. The callback returns HLO_OK or HLO_OUT_OF_MEMORY. */
typedef hlo_status hlo_graph_renderer(void *user, const char *const *graphs, size_t count,
                                      char **out_drawings);

/* Options of hlo_reports_page(). Initialize them with hlo_page_options_init(), then set fields. All
 * pointers may be NULL, and are borrowed for the duration of the call. */
typedef struct hlo_page_options {
    size_t struct_size;       /* See status.h. */
    hlo_graph_renderer *draw; /* Draws up to 100 different surroundings, those of the most expensive
                         matmuls first. All other surroundings are tables, also if it is NULL. */
    void *user;               /* Passed to `draw` unchanged. */
    const char *command;      /* The command line to show at the beginning of the page. */
    const char *date;         /* The date to show at the beginning of the page. */
    const char *baseline; /* A file as for hlo_reports_baseline(). The page shows how the reports
                             differ from it. */
    const hlo_diag_sink *sink; /* Receives errors about `baseline`. */
} hlo_page_options;

/* Sets `struct_size`, and all other fields to NULL. */
static inline void hlo_page_options_init(hlo_page_options *options) {
    memset(options, 0, sizeof *options);
    options->struct_size = sizeof *options;
}

/* Writes an HTML page about `count` reports. The page does not access the network. It consists of
 * the target, the CUDA version, a summary, the differences from the baseline, the reasons by the
 * time that their edits save, the matmuls by layer, plots, and the lints. If the passes ran with
 * hlo_pass_options.surroundings, it also shows the instructions around the 200 most expensive
 * matmuls before and after rewriting. A script shows, sorts and filters the matmuls; without
 * scripts, the page only lists up to 200 layers. `options` may be NULL, which selects the defaults.
 *
 * Returns HLO_INVALID_INPUT if `out` cannot be written to, or, with an error in options->sink, if
 * the baseline cannot be read or is not such a document. */
hlo_status hlo_reports_page(const hlo_report *const *reports, size_t count,
                            const hlo_page_options *options, hlo_writer out);

/* ---------------------------------------------------------------------------------------- gates */

/* Checks whether the verdicts of `count` reports satisfy the requirements of a build.
 *
 * `expect` is the required number of FP8 matmuls, including those with hlo_verdict.quantized: "N"
 * for at least N matmuls, "N%" for at least N percent of the matmuls, "all" for all matmuls, or
 * NULL for no requirement. `fail_on` lists reasons that no verdict may have, separated by commas;
 * "" stands for all reasons, and NULL for no requirement. If there is no report, or a report has no
 * matmuls, both requirements fail, unless `allow_empty` is true.
 *
 * Returns HLO_OK if the requirements are satisfied, and HLO_MISMATCH if one of them fails,
 * which is described by one line in `why`. Returns HLO_INVALID_USAGE if `expect` or `fail_on`
 * is invalid, which is described in `why`. `why` is an array of `why_size` bytes; the text is
 * truncated if necessary, and NUL-terminated. `why` may be NULL if `why_size` is 0. */
hlo_status hlo_reports_gate(const hlo_report *const *reports, size_t count, const char *expect,
                            const char *fail_on, bool allow_empty, char *why, size_t why_size);

/* Checks whether all matmuls that were FP8 in an earlier run are still FP8. The file at `path` is
 * the output of hlo_reports_print() for HLO_REMARKS_JSON, and HLO_REMARKS_ALL or
 * HLO_REMARKS_PASSED. For each FP8 verdict in it, there must be a different FP8 verdict with an
 * equal op_name and an equal input_shape in the `count` reports. The latter may have
 * hlo_verdict.quantized only if the former has it. The check fails if a report or the
 * file has no matmuls, unless `allow_empty` is true.
 *
 * Returns HLO_MISMATCH if the check fails, which is described by one line in `why`, an array as for
 * hlo_reports_gate(). Returns HLO_INVALID_INPUT, with an error in `sink`, if the
 * file cannot be read or is not such a document. */
hlo_status hlo_reports_baseline(const hlo_report *const *reports, size_t count, const char *path,
                                bool allow_empty, const hlo_diag_sink *sink, char *why,
                                size_t why_size);

/* How a matmul differs between two runs. */
typedef enum hlo_change {
    HLO_CHANGE_SAME,      /* FP8 in both runs, or wide in both. */
    HLO_CHANGE_NEWLY_FP8, /* Wide in the earlier run, FP8 in the later one. */
    HLO_CHANGE_LOST_FP8,  /* FP8 in the earlier run. In the later one wide, or FP8 only because of
                             hlo_pass_options.quantize. */
    HLO_CHANGE_NEW,       /* Only the later run has the matmul. */
    HLO_CHANGE_GONE       /* Only the earlier run has the matmul. */
} hlo_change;

/* Compares the reports `before` of an earlier run with the reports `after` of a later one. Matmuls
 * with an equal op_name and an equal input_shape are paired in the order of the reports: those that
 * did not change first.
 *
 * Stores the change of each matmul of `before` in `out_before` and of `after` in `out_after`, which
 * have an element for each verdict, in the order of the reports. */
hlo_status hlo_reports_compare(const hlo_report *const *before, size_t before_count,
                               const hlo_report *const *after, size_t after_count,
                               hlo_change *out_before, hlo_change *out_after);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
