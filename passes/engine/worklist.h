/* The inside of the engine: the instructions of a phase that are still to be looked at. */
#ifndef HLO_PASSES_ENGINE_WORKLIST_H
#define HLO_PASSES_ENGINE_WORKLIST_H

#include "passes/engine/engine.h"

enum {
    HLO_ENGINE_BATCH = 1024
}; /* instructions that are looked through at a time: as many as caches hold */

typedef struct hlo_rule_candidate {
    const hlo_rules *rules;
    const hlo_rule *rule;
    struct hlo_rule_candidate *next;
} hlo_rule_candidate;

typedef struct hlo_worklist {
    hlo_instr **items;
    size_t count, capacity;
} hlo_worklist;

struct hlo_engine {
    hlo_pass_context *context;
    const char *phase;
    hlo_rule_candidate *by_op[HLO_OP_COUNT];
    uint32_t sweep;
    const bool *fused; /* by computation id: left as it is; not of those that rules make */
    uint32_t fused_count;
    bool judges; /* some rule of the phase gives reasons */
    /* What the sweep has not yet come to: from `rest` on, then the computations from `later` on. */
    hlo_instr *rest;
    hlo_computation *later;
    hlo_worklist batch;     /* next to be looked at */
    hlo_worklist follow_up; /* to be looked at before what is left of the batch */
    uint64_t fired, fuel;
    const hlo_rule *last; /* that fired; of a file, where one of these has */
    bool given;           /* it is of a file */
    hlo_status status;    /* nothing more is done when it is not HLO_OK */
};

enum { HLO_ENGINE_FIRINGS_PER_INSTR = 16 };

/* Puts `instr` last. */
void hlo_worklist_add(hlo_engine *e, hlo_worklist *to, hlo_instr *instr);
/* Puts `instr` in front of the batch, if some rule has its opcode and it is not queued. */
void hlo_engine_push_one(hlo_engine *e, hlo_instr *instr);

#endif
