/* SPDX-License-Identifier: Apache-2.0 */
/* The internals of a report. It has slots while passes run (remark.c), and verdicts afterwards
 * (report.c). */
#ifndef HLO_PASSES_VERDICT_REPORT_H
#define HLO_PASSES_VERDICT_REPORT_H

#include "matmul/cost/cost.h"
#include "matmul/product.h"
#include "passes/verdict/remark.h"
#include "passes/verdict/surroundings.h"

typedef struct slot {
    const hlo_instruction *instr; /* the current or last instruction of the matmul */
    uint32_t same_as; /* index of another slot with the same instruction, plus one, or 0 */
    uint32_t origin;  /* index of the slot of which this slot is a copy, plus one, or 0 */
    bool copied;      /* other slots are copies of this slot */
    bool wide;        /* options->wide selects it, or an equal matmul */
    bool quantized;   /* selected by options->quantize, with this `gain` and `saving` */
    double gain, saving;
    hlo_reason reason; /* reason why the matmul is wide, or HLO_REASON_COUNT */
    uint64_t judged;   /* value of report->judging when the reason of `instr` was set */
    const char *blocker;
    uint32_t offset;                      /* offset in the module's source */
    const hlo_surroundings *surroundings; /* in the original module; may be NULL */
    uint32_t costed_id; /* id of the matmul's instruction when report->input_costs were recorded */
    const char *output; /* name of the FP8 call in the output; NULL before the report is closed */
    hlo_verdict was;    /* facts of the original matmul; kind, reason and position are not set */
} slot;

/* Surroundings before and after the run. NULL: not recorded, or the matmul no longer exists. */
typedef struct surroundings {
    const hlo_surroundings *side[2];
} surroundings;

/* The name and offset of an instruction of the input. Copies have the same offset. */
typedef struct input_name {
    uint32_t offset;
    const char *name;
} input_name;

typedef struct lint {
    hlo_verdict verdict;
    hlo_reason reason;
    uint32_t offset; /* offset in the module's source */
} lint;

typedef struct tally tally;
struct tally {
    tally *next;
    const char *name;
    double seconds;
    uint64_t times;
};

typedef struct tallies {
    tally *first, *last;
} tallies;

struct hlo_report {
    hlo_arena *arena;              /* owns all following members, including strings */
    const char *frameworks;        /* globs of framework source files */
    const hlo_stack_frame *frames; /* the frames of `places` */
    int64_t *places[2];            /* by frame: results of find_frame(), or 0 */
    const hlo_target *target;      /* target of the rewritten module */
    int cuda;                      /* version of the CUDA toolkit */
    const char *module, *file;     /* name of the module and of its file; file may be NULL */
    slot *slots;
    uint32_t count, capacity;
    uint32_t *slot_of;       /* by instruction id: index of its slot plus one, or 0 */
    uint32_t ids;            /* capacity of slot_of */
    const input_name *names; /* instructions of the input, by offset */
    uint32_t name_count;
    uint64_t judging;             /* number of calls of hlo_remark_begin(), plus one */
    const hlo_costs *input_costs; /* costs before the rewriter; NULL if the rewriter did not run */
    const char *const *kept;      /* by slot: why the matmul must stay wide; may be NULL */
    uint32_t kept_count;
    const char **keep;        /* the values of `kept` for the next run */
    uint32_t keep_count;      /* size of `keep`: runs may differ in slots */
    bool completes;           /* options->quantize selected a matmul with an fp8 operand */
    bool any_new;             /* `keep` has a matmul that is not in `kept` */
    const char *output_words; /* words of options->wide that name output calls, or NULL */
    hlo_verdict *verdicts;
    size_t verdict_count;
    surroundings *surroundings; /* by verdict; NULL if not recorded */
    lint *lints;
    uint32_t lint_count, lint_capacity;
    tallies passes, rules;
};

/* Records the names of all instructions of the input. */
void hlo_report_note_names(hlo_report *report, const hlo_module *module);
/* Returns the name of an instruction in the input: for a copy, the name of its original; for an
 * instruction that a pass created, the name of the instruction that it replaces. */
const char *hlo_report_input_name(const hlo_report *report, const hlo_instruction *instr);

/* Describes a matmul for a verdict: name, shape, operands, epilogue, op_name, source. */
hlo_verdict hlo_report_describe(hlo_report *report, const hlo_instruction *matmul);
/* True if a word of `list` (hlo_pass_options.wide) selects the matmul. */
/* Sets the reason of a verdict, and its texts. */
void hlo_verdict_set_reason(hlo_verdict *verdict, hlo_reason reason);
bool hlo_wide_selects(const char *list, const hlo_verdict *matmul);

#endif
