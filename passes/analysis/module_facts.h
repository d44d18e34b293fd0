/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about a whole module, found in one linear walk, or without a walk if the counts of opcodes
 * and attributes exclude them. They are tables by instruction id, in the given arena, valid until
 * the module changes. */
#ifndef HLO_PASSES_ANALYSIS_MODULE_FACTS_H
#define HLO_PASSES_ANALYSIS_MODULE_FACTS_H

#include "ir/ir.h"

/* Returns the entry of a table. The table may be NULL: all false. */
static inline bool hlo_facts_has(const bool *table, uint32_t id) {
    return table && table[id];
}

/* Finds instructions that have control predecessors, or are control predecessors. */
bool *hlo_facts_control_deps(const hlo_module *module, hlo_arena *arena);

/* Instructions with side effects or random results, according to op.def, their attributes, or a
 * computation that they call. */
typedef struct hlo_effects {
    bool *side;   /* must run as often as in the input, and in the same order */
    bool *random; /* must not be merged with an equal one */
} hlo_effects;
/* Finds instructions with effects; both tables are NULL in a module that cannot have any. */
hlo_effects hlo_facts_side_effects(const hlo_module *module, hlo_arena *arena);

/* Finds the live instructions of reachable computations: roots, parameters, instructions with
 * effects, and the operands and control predecessors of live instructions. */
bool *hlo_facts_live(const hlo_module *module, hlo_arena *arena);

/* Finds, by computation id, computations that the entry calls directly or indirectly. */
bool *hlo_facts_reached(const hlo_module *module, hlo_arena *arena);

/* Sources of a value through only movement, conversion, scaling and relu. HLO_FROM_FP8: f8e4m3fn or
 * f8e5m2, so that a matmul of the value may become an FP8 call. HLO_FROM_OTHER_FP8: another 8-bit
 * float. */
enum { HLO_FROM_FP8 = 1, HLO_FROM_OTHER_FP8 = 2 };

/* The sets of sources, by id, of the instructions that existed when they were found. */
typedef struct hlo_fp8_reach {
    unsigned char *of; /* NULL: not found yet */
    uint32_t count;
} hlo_fp8_reach;
hlo_fp8_reach hlo_facts_fp8_reach(const hlo_module *module, hlo_arena *arena);
/* True if a value comes from f8e4m3fn or f8e5m2, or is a new fp8 value. */
bool hlo_facts_from_fp8(const hlo_fp8_reach *reach, const hlo_instr *value);

/* Finds, by computation id, bodies of fusions, computations that are applied to elements, and the
 * callees of both. They are parts of one kernel, which cannot call another kernel, so passes do not
 * change them. */
bool *hlo_facts_fused(const hlo_module *module, hlo_arena *arena);

#endif
