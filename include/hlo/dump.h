/* SPDX-License-Identifier: Apache-2.0 */
/* Folders that XLA writes with --xla_dump_to: the stages of each module, and the stage at which a
 * matmul lost its FP8 form. */
#ifndef HLO_DUMP_H
#define HLO_DUMP_H

#include "hlo/pass.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The modules of a folder, each with its stages in the order in which XLA went through them. */
typedef struct hlo_dump hlo_dump;

/* Lists the folder; no file is read. The name of a file tells its stage:
 *     MODULE.before_optimizations.txt
 *     MODULE.NNNN.PIPELINE.after_PASS.before_PASS.txt   (--xla_dump_hlo_pass_re)
 *     MODULE.after_spmd_partitioner.txt
 *     MODULE.TARGET_after_optimizations.txt
 * where MODULE is module_NNNN.NAME, and `.hlo.pb`, `.txt.gz` or `.hlo` may replace `.txt` (of two
 * forms of one stage the text is taken); other files are ignored. On HLO_OK the caller frees
 * *out_dump with hlo_dump_free(). HLO_INVALID_INPUT, with an error in `sink`: the folder cannot be
 * read, or holds no stage. HLO_OUT_OF_MEMORY. */
hlo_status hlo_dump_open(const char *folder, const hlo_diag_sink *sink, hlo_dump **out_dump);
void hlo_dump_free(hlo_dump *dump); /* NULL is allowed */

/* The strings below are borrowed from the dump. Indices must be below the respective count. */
size_t hlo_dump_module_count(const hlo_dump *dump);
const char *hlo_dump_module(const hlo_dump *dump, size_t module); /* "module_0000.jit_f" */
/* The target that the module was compiled for, from the name of its last stage: "sm_9.0a_gpu" or
 * "cpu"; NULL if the dump has no such stage. */
const char *hlo_dump_target(const hlo_dump *dump, size_t module);
/* Drops all modules but those whose name, with or without the number before it, matches a glob
 * (fnmatch(3)). Returns the number of modules kept. Indices and borrowed strings of before are
 * invalid afterwards. */
size_t hlo_dump_keep(hlo_dump *dump, const char *glob);
size_t hlo_dump_stage_count(const hlo_dump *dump, size_t module);
/* The name of the stage's file without MODULE, and the path of that file. */
const char *hlo_dump_stage(const hlo_dump *dump, size_t module, size_t stage);
const char *hlo_dump_path(const hlo_dump *dump, size_t module, size_t stage);

/* One matmul across the stages. Its op_name and source line identify it; matmuls that share both
 * are told apart by their order. Strings are borrowed from the history. */
typedef struct hlo_passage {
    hlo_verdict first; /* the verdict at the first stage that has the matmul */
    hlo_verdict last;  /* the verdict at the last stage that has it */
    bool gone;         /* the last stage of all does not have it */
    /* The stages between which FP8 was lost: the matmul was FP8, or could become FP8, at stage
     * `kept`, and neither at `lost` nor later. Both SIZE_MAX: it was not lost, or never FP8. */
    size_t kept, lost;
    /* The pass that ran last before `lost`, "dot-merger"; NULL: a pass that was not dumped. */
    const char *pass;
    const char *how; /* the state of the matmul at `lost`, a phrase */
} hlo_passage;

/* The matmuls of one module across its stages. */
typedef struct hlo_history hlo_history;

/* Reads every stage of one module of the dump and runs the passes of `options` over each. `dump`
 * and `options` (NULL: the defaults) are borrowed for the call. On HLO_OK the caller frees
 * *out_history with hlo_history_free(). HLO_INVALID_INPUT: a stage cannot be read, a
 * rule is wrong, or a word of options->wide selects no matmul of any stage; errors go to
 * options->sink. HLO_INVALID_USAGE, HLO_INTERNAL, HLO_OUT_OF_MEMORY as for hlo_module_optimize().
 */
hlo_status hlo_history_new(const hlo_dump *dump, size_t module, const hlo_pass_options *options,
                           hlo_history **out_history);
void hlo_history_free(hlo_history *history); /* NULL is allowed */
/* The number of matmuls, and matmul `index`, which must be below it. Borrowed from the history. */
size_t hlo_history_count(const hlo_history *history);
const hlo_passage *hlo_history_passage(const hlo_history *history, size_t index);
/* The report of a stage, which must be below hlo_dump_stage_count(). Borrowed from the history. */
const hlo_report *hlo_history_stage_report(const hlo_history *history, size_t stage);
/* The report of the last stage, borrowed from the history. */
const hlo_report *hlo_history_report(const hlo_history *history);

/* Writes histories of modules of one dump, one for each module of the dump, as text or as JSON
 * (docs/history.schema.json). The module with most FLOPs comes first; the text counts modules
 * without matmuls in one line and ends in totals. `which` selects matmuls by their last verdict;
 * HLO_REMARKS_MISSED selects matmuls that are gone, too. HLO_INVALID_USAGE: another format.
 * HLO_INVALID_INPUT: `out` cannot be written to. HLO_OUT_OF_MEMORY. */
hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               hlo_remarks which, hlo_remarks_format format, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
