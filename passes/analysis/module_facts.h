/* SPDX-License-Identifier: Apache-2.0 */
/* Finds facts about a whole module in one linear walk, or without a walk if the counts of
 * opcodes and attributes show that a fact holds nowhere. Results are tables by instruction id,
 * unless stated otherwise. The tables are allocated in the given arena and valid until the
 * module changes. */
#ifndef HLO_PASSES_ANALYSIS_MODULE_FACTS_H
#define HLO_PASSES_ANALYSIS_MODULE_FACTS_H

#include "ir/ir.h"

/* Returns the entry of a table. If the table is NULL, all entries are false. */
static inline bool hlo_facts_has(const bool *table, uint32_t id) {
    return table && table[id];
}

/* Finds instructions that have, or are, control predecessors. */
bool *hlo_facts_control_deps(const hlo_module *module, hlo_arena *arena);

/* Instructions with side effects or random results, according to op.def, their attributes, or a
 * computation that they call. */
typedef struct hlo_effects {
    bool *side;   /* instructions that must run as often as in the input, and in the same order */
    bool *random; /* instructions that must not be merged with equal ones */
} hlo_effects;
/* Finds instructions with effects. Both tables are NULL if the module has none. */
hlo_effects hlo_facts_side_effects(const hlo_module *module, hlo_arena *arena);

/* Finds the live instructions of reachable computations: roots, parameters, instructions with
 * effects, and the operands and control predecessors of live instructions. */
bool *hlo_facts_live(const hlo_module *module, hlo_arena *arena);

/* Finds, by computation id, computations that the entry calls directly or indirectly. */
bool *hlo_facts_reached(const hlo_module *module, hlo_arena *arena);

/* The kinds of fp8 values from which a value is computed by only movement, conversion, scaling and
 * relu. HLO_FROM_FP8: f8e4m3fn or f8e5m2, so that a matmul of the value may become an FP8 call.
 * HLO_FROM_OTHER_FP8: another 8-bit float. */
enum { HLO_FROM_FP8 = 1, HLO_FROM_OTHER_FP8 = 2 };

/* The set of HLO_FROM_... bits of each instruction that existed when the sets were computed, by
 * instruction id. */
typedef struct hlo_fp8_reach {
    unsigned char *of; /* NULL if not computed yet */
    uint32_t count;
} hlo_fp8_reach;
hlo_fp8_reach hlo_facts_fp8_reach(const hlo_module *module, hlo_arena *arena);
/* True if a value comes from f8e4m3fn or f8e5m2, or is an fp8 value newer than the analysis. */
bool hlo_facts_from_fp8(const hlo_fp8_reach *reach, const hlo_instruction *value);

/* Finds, by computation id, bodies of fusions, computations that are applied to elements, and the
 * callees of both. Passes do not change these computations, because each is a part of one kernel,
 * which cannot call another kernel. */
bool *hlo_facts_fused(const hlo_module *module, hlo_arena *arena);

#endif
