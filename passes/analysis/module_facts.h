/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a whole module, found in one linear walk, or without one if the counts of opcodes and
 * attributes rule them out. They are tables by instruction id, valid until the module changes, in
 * the arena given. */
#ifndef HLO_PASSES_ANALYSIS_MODULE_FACTS_H
#define HLO_PASSES_ANALYSIS_MODULE_FACTS_H

#include "ir/ir.h"

/* True if a table has `true` at an id. A table may be NULL: `false` everywhere. */
static inline bool hlo_facts_has(const bool *table, uint32_t id) {
    return table && table[id];
}

/* Finds instructions that have control predecessors, or are control predecessors. */
bool *hlo_facts_control_deps(const hlo_module *module, hlo_arena *arena);

/* Instructions with side effects or random results: by op.def and attributes, or through a
 * computation that they call. */
typedef struct hlo_effects {
    bool *side;   /* must run as often and in the order given */
    bool *random; /* must not be merged with an equal one */
} hlo_effects;
/* Finds instructions with effects; both tables are NULL in a module that cannot have any. */
hlo_effects hlo_facts_side_effects(const hlo_module *module, hlo_arena *arena);

/* Finds live instructions of computations that run: roots, parameters, effects, and the operands
 * and control predecessors of live ones. */
bool *hlo_facts_live(const hlo_module *module, hlo_arena *arena);

/* Finds, by computation id, computations that the entry calls, directly or not. */
bool *hlo_facts_reached(const hlo_module *module, hlo_arena *arena);

/* Sources of a value through movement, conversion, scaling and relu alone: f8e4m3fn or f8e5m2, so
 * that a matmul of it may become an FP8 one, or another float of 8 bits. */
enum { HLO_FROM_FP8 = 1, HLO_FROM_OTHER_FP8 = 2 };

/* Finds the set of sources, by instruction id. */
unsigned char *hlo_facts_fp8_reach(const hlo_module *module, hlo_arena *arena);

/* Finds, by computation id, bodies of fusions, computations that are applied to elements, and the
 * callees of both. They are parts of one kernel, which calls no other: they stay as they are. */
bool *hlo_facts_fused(const hlo_module *module, hlo_arena *arena);

#endif
