/* SPDX-License-Identifier: Apache-2.0 */
/* The worklist of a phase: a list of the instructions to visit. */
#ifndef HLO_PASSES_ENGINE_WORKLIST_H
#define HLO_PASSES_ENGINE_WORKLIST_H

#include "passes/engine/engine.h"

enum { HLO_ENGINE_FIRINGS_PER_INSTR = 16 };

typedef struct hlo_rule_candidate {
    const hlo_rules *rules;
    const hlo_rule *rule;
    bool holds; /* barriers or sharding annotations may separate a result from the operations that
                 * the rule fuses with it */
    struct hlo_rule_candidate *next;
} hlo_rule_candidate;

typedef struct hlo_worklist {
    hlo_instruction **items;
    uint32_t count, capacity;
} hlo_worklist;

struct hlo_engine {
    hlo_pass_context *context;
    const char *phase;
    hlo_rule_candidate *by_op[HLO_OP_COUNT];
    uint32_t sweep;
    const bool *fused; /* by computation id: true if its instructions are not rewritten. Has no
                        * entries for computations created by rules */
    uint32_t fused_count;
    bool judges; /* at least one rule of the phase sets reasons */
    /* The part of the module that the sweep has not reached: instructions from `rest` on, then
     * computations from `later` on. */
    hlo_instruction *rest;
    hlo_computation *later;
    hlo_worklist batch;     /* instructions to visit next */
    hlo_worklist follow_up; /* instructions to visit before the rest of the batch */
    hlo_worklist dead;      /* work of hlo_engine_remove_dead() */
    uint32_t *visited;      /* by instruction id: the last search of rewrite.c that visited the
                             * instruction */
    const hlo_instruction **queue; /* the instructions that the search has reached */
    uint32_t visited_count, searches;
    uint64_t searched; /* number of instructions that all searches visited */
    uint64_t fired, fuel;
    const hlo_rule *last; /* last rule that was applied; a rule from a file has precedence */
    bool given;           /* `last` is from a file */
    hlo_status status;    /* if this is not HLO_OK, the phase ends */
};

void hlo_worklist_add(hlo_engine *e, hlo_worklist *to, hlo_instruction *instr);
/* Queues an instruction before the rest of the batch, if a rule may start at its opcode and it is
 * not queued yet. */
void hlo_engine_push_one(hlo_engine *e, hlo_instruction *instr);

#endif
