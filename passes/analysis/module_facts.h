/* Questions about a whole module that several passes ask, answered in one linear walk, or without
 * one where the module's opcodes and attributes tell that there is nothing to find. The answers are
 * tables by instruction id, valid until the module changes; they live in the arena given. */
#ifndef HLO_PASSES_WALK_H
#define HLO_PASSES_WALK_H

#include "ir/ir.h"

/* Whether a table has `true` at an id. Of controlled, side, random and fused there may be none:
 * NULL, which is `false` everywhere. */
static inline bool hlo_facts_has(const bool *table, uint32_t id) {
    return table && table[id];
}

/* Whether an instruction takes part in a control dependency: names predecessors, or is named as
 * one. */
bool *hlo_facts_control_deps(const hlo_module *module, hlo_arena *arena);

/* Whether an instruction does something besides computing its result, or gives another result each
 * time: alone by op.def and attributes, or through a computation that it calls. */
typedef struct hlo_effects {
    bool *side;   /* must run, exactly as often and in that order */
    bool *random; /* must not be merged with an equal one */
} hlo_effects;
hlo_effects hlo_facts_side_effects(const hlo_module *module, hlo_arena *arena);

/* Whether an instruction is in a computation that runs, and its result or its effect is needed: as
 * a root, a parameter, an effect, or an input or control predecessor of what is needed. */
bool *hlo_facts_live(const hlo_module *module, hlo_arena *arena);

/* By computation id: whether the entry, or what it calls, calls it by any attribute. */
bool *hlo_facts_reached(const hlo_module *module, hlo_arena *arena);

/* What a value comes from by movement, conversion and scaling alone: f8e4m3fn or f8e5m2, so that a
 * matmul of it may become an FP8 one, or another float of 8 bits. */
enum { HLO_FROM_FP8 = 1, HLO_FROM_OTHER_FP8 = 2 };

/* The set of these, by instruction id. */
unsigned char *hlo_facts_fp8_reach(const hlo_module *module, hlo_arena *arena);

/* By computation id: whether it is the body of a fusion, or called by one. A compiler has made one
 * kernel of it: it stays as it is. */
bool *hlo_facts_fused(const hlo_module *module, hlo_arena *arena);

#endif
