/* Folders that XLA writes with --xla_dump_to: the stages of each module, and at which of them a
 * matmul stopped being one that can run in FP8. */
#ifndef HLO_DUMP_H
#define HLO_DUMP_H

#include "hlo/pass.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The modules of a folder, each with its stages in the order in which XLA went through them. */
typedef struct hlo_dump hlo_dump;

/* Lists the folder; no file is read. A file is a stage by its name,
 *     MODULE.before_optimizations.txt
 *     MODULE.NNNN.PIPELINE.after_PASS.before_PASS.txt   (--xla_dump_hlo_pass_re)
 *     MODULE.after_spmd_partitioner.txt
 *     MODULE.TARGET_after_optimizations.txt
 * where MODULE is module_NNNN.NAME, and `.hlo.pb`, `.txt.gz` or `.hlo` may stand for `.txt` (of two
 * forms of one stage the text is taken); what else is there is passed over. On HLO_OK the caller
 * frees *out_dump. HLO_INVALID_INPUT, with an error in `sink`: the folder cannot be read, or holds
 * no stage. HLO_OUT_OF_MEMORY. */
hlo_status hlo_dump_open(const char *folder, const hlo_diag_sink *sink, hlo_dump **out_dump);
void hlo_dump_free(hlo_dump *dump); /* NULL is allowed */

/* All below is borrowed from the dump. */
size_t hlo_dump_module_count(const hlo_dump *dump);
const char *hlo_dump_module(const hlo_dump *dump, size_t module); /* "module_0000.jit_f" */
/* What it was compiled for, as the name of its last stage has it, "sm_9.0a_gpu" or "cpu"; NULL:
 * that stage is not there. */
const char *hlo_dump_target(const hlo_dump *dump, size_t module);
/* Leaves in the dump the modules whose name, with or without the number before it, a glob matches
 * (fnmatch(3)), and returns how many these are. */
size_t hlo_dump_keep(hlo_dump *dump, const char *glob);
size_t hlo_dump_stage_count(const hlo_dump *dump, size_t module);
const char *hlo_dump_stage(const hlo_dump *dump, size_t module, size_t stage); /* MODULE left out */
const char *hlo_dump_path(const hlo_dump *dump, size_t module, size_t stage);

/* One matmul on its way through the stages. A matmul is known by its op_name and the line of the
 * source, several that share these by their order. Strings are borrowed from the history. */
typedef struct hlo_passage {
    hlo_verdict first; /* at the stage where it is first seen: what it could be from there on */
    hlo_verdict last;  /* at the last stage; where it is not seen there, at the last where it is */
    bool gone;         /* it is not seen at the last stage */
    /* Where FP8 was lost: it was FP8, or could become so, at stage `kept`, and neither at `lost`
     * nor after it. Both SIZE_MAX: it was not lost, or never there. */
    size_t kept, lost;
    const char
        *pass; /* that ran last before `lost`, "dot-merger"; NULL: passes that are not dumped */
    const char *how; /* what has become of it there, a phrase */
} hlo_passage;

typedef struct hlo_history hlo_history;

/* Reads every stage of one module of the dump and runs `options` over each. On HLO_OK the caller
 * frees *out_history. HLO_INVALID_INPUT: a stage cannot be read; errors in options->sink.
 * HLO_INVALID_USAGE, HLO_INTERNAL, HLO_OUT_OF_MEMORY as hlo_module_optimize() has them. */
hlo_status hlo_history_new(const hlo_dump *dump, size_t module, const hlo_pass_options *options,
                           hlo_history **out_history);
void hlo_history_free(hlo_history *history); /* NULL is allowed */
size_t hlo_history_count(const hlo_history *history);
const hlo_passage *hlo_history_passage(const hlo_history *history, size_t index);
/* The verdicts of the last stage. Borrowed. */
const hlo_report *hlo_history_report(const hlo_history *history);

/* Tells histories of modules of one dump, the one with most FLOPs first, as text, where those
 * without matmuls are one count and totals stand at the end, or as JSON (docs/history.schema.json);
 * those matmuls that `which` wants by their last verdict, and with HLO_REMARKS_MISSED what is gone
 * too. HLO_INVALID_USAGE: another format. HLO_INVALID_INPUT when writing to `out` fails.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_histories_print(const hlo_dump *dump, const hlo_history *const *histories,
                               hlo_remarks which, hlo_remarks_format format, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
