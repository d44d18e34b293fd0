/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that XLA writes with --xla_dump_to: the compilation stages of each module, and the stage
 * at which a matmul lost its FP8 form. */
#ifndef HLO_DUMP_H
#define HLO_DUMP_H

#include "hlo/report.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* ---------------------------------------------------------------------------------------- dumps */

/* The modules of a folder, each with its stages in compilation order. */
typedef struct hlo_dump hlo_dump;

/* Lists the stages in a folder. The name of a file determines its stage:
 *
 *     MODULE.before_optimizations.txt
 *     MODULE.NNNN.PIPELINE.after_PASS.before_PASS.txt   (--xla_dump_hlo_pass_re)
 *     MODULE.after_spmd_partitioner.txt
 *     MODULE.TARGET_after_optimizations.txt
 *
 * MODULE is module_NNNN.NAME, or module_NNNN if NAME is long; a time stamp and a dot may precede
 * it. The extension may also be `.hlo.pb`, `.hlo.pb.gz`, `.txt.gz` or `.hlo`; if a stage has
 * several files, text is preferred. All other files are ignored. Modules that have the same NAME
 * and equal files are listed once. The caller must free *out_dump with hlo_dump_free().
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the folder cannot be read or does not
 * contain stages. */
hlo_status hlo_dump_open(const char *folder, const hlo_diag_sink *sink, hlo_dump **out_dump);

/* Frees a dump. `dump` may be NULL. */
void hlo_dump_free(hlo_dump *dump);

/* The strings that the following functions return are borrowed from the dump. The indices `module`
 * and `stage` must be less than hlo_dump_module_count() and hlo_dump_stage_count(). */

/* Returns the number of modules. */
size_t hlo_dump_module_count(const hlo_dump *dump);

/* Returns the name of a module, such as "module_0000.jit_f". */
const char *hlo_dump_module(const hlo_dump *dump, size_t module);

/* Returns how often a module was compiled: the number of modules with the same NAME and files. */
size_t hlo_dump_compilation_count(const hlo_dump *dump, size_t module);

/* Returns the target for which a module was compiled, which is part of the file name of its last
 * stage, such as "sm_9.0a_gpu" or "cpu". Returns NULL if the dump does not contain this stage. */
const char *hlo_dump_target(const hlo_dump *dump, size_t module);

/* Removes from the dump all modules whose name does not match `glob` (fnmatch(3)). The prefix
 * `module_NNNN.` of the name, and the time stamp before it, may be omitted in `glob`. Returns the
 * number of remaining modules. Indices and strings that were obtained before become invalid. */
size_t hlo_dump_keep(hlo_dump *dump, const char *glob);

/* Returns the number of stages of a module. */
size_t hlo_dump_stage_count(const hlo_dump *dump, size_t module);

/* Returns the name of a stage: its file name without MODULE. */
const char *hlo_dump_stage(const hlo_dump *dump, size_t module, size_t stage);

/* Returns the path of the file of a stage. */
const char *hlo_dump_path(const hlo_dump *dump, size_t module, size_t stage);

/* ------------------------------------------------------------------------------------ histories */

/* The history of a matmul across stages. A matmul is identified by its op_name and source line.
 * Matmuls for which both are equal are distinguished by their order in the module. Strings are
 * borrowed from the history. */
typedef struct hlo_matmul_history {
    hlo_verdict first; /* The verdict at the first stage that contains the matmul. */
    hlo_verdict last;  /* The verdict at the last stage that contains the matmul. */
    bool gone;         /* The last stage of the module does not contain the matmul. */
    /* The stages between which the FP8 form was lost: at stage `kept`, the matmul was FP8 or could
     * be converted to FP8; from stage `lost` on, it is neither. If the FP8 form never existed, or
     * exists at the last stage, both are SIZE_MAX, and the next two fields are not valid. */
    size_t kept, lost;
    /* The last pass before the stage `lost`, such as "dot-merger", or NULL if the name of the
     * stage does not contain it. */
    const char *pass;
    const char *how; /* A description of the change at stage `lost`. */
} hlo_matmul_history;

/* The matmuls of one module across its stages. */
typedef struct hlo_history hlo_history;

/* Parses all stages of a module and runs the passes of `options` over each of them. `options` may
 * be NULL, which selects the defaults. `dump` and `options` are borrowed for the duration of the
 * call. The caller must free *out_history with hlo_history_free().
 *
 * Returns HLO_INVALID_INPUT, with errors in options->sink, if a stage cannot be read or is not a
 * valid module, if a rule is invalid, or if a word of options->wide matches no matmul of any stage
 * and options->wide_unmatched is false. Returns
 * HLO_INVALID_USAGE, HLO_INTERNAL and HLO_OUT_OF_MEMORY like hlo_module_optimize(). */
hlo_status hlo_history_new(const hlo_dump *dump, size_t module, const hlo_pass_options *options,
                           hlo_history **out_history);

/* Frees a history. `history` may be NULL. */
void hlo_history_free(hlo_history *history);

/* Returns the number of matmuls. */
size_t hlo_history_count(const hlo_history *history);

/* Returns the history of a matmul, borrowed from `history`. `index` must be less than
 * hlo_history_count(). */
const hlo_matmul_history *hlo_history_passage(const hlo_history *history, size_t index);

/* Returns the verdict of a matmul at a stage, borrowed from `history`, or NULL if the stage does
 * not contain the matmul. `stage` must be less than hlo_dump_stage_count(). */
const hlo_verdict *hlo_history_verdict(const hlo_history *history, size_t index, size_t stage);

/* Returns the report of a stage, borrowed from `history`. `stage` must be less than
 * hlo_dump_stage_count(). */
const hlo_report *hlo_history_stage_report(const hlo_history *history, size_t stage);

/* Returns the report of the last stage, borrowed from `history`. Its lints are those of the first
 * stage. */
const hlo_report *hlo_history_report(const hlo_history *history);

/* Writes the histories of all modules of a dump. `histories` is an array with one history for each
 * module of the dump, in the order of the modules. options->which selects matmuls by their last
 * verdict; HLO_REMARKS_MISSED also selects matmuls that the last stage does not contain. JSON
 * (docs/history.schema.json) and text, except the summary, list the history of each matmul, the
 * module with the most FLOPs first. The other formats report the last stage, as
 * hlo_reports_print() does. `options` may be NULL, which selects the defaults.
 *
 * Returns HLO_INVALID_USAGE if `options` is invalid, and HLO_INVALID_INPUT if `out` cannot be
 * written to. */
hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               const hlo_remarks_options *options, FILE *out);

/* Writes an HTML page about the last stages of a dump, as hlo_reports_page() does, which also shows
 * the verdict of each matmul at every stage. `histories` and the result are as for
 * hlo_histories_print() and hlo_reports_page(). */
hlo_status hlo_histories_page(const hlo_dump *dump, const hlo_history *const *histories,
                              const hlo_page_options *options, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
