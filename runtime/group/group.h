/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which instructions of a computation run together as one job, with the same search for
 * every backend and the backend's rules. */
#ifndef HLO_RUNTIME_GROUP_GROUP_H
#define HLO_RUNTIME_GROUP_GROUP_H

#include "runtime/backend.h"

enum {
    GROUP_SPAN = 2048,  /* maximum distance between the first and the last instruction of a group */
    GROUP_RESULTS = 12, /* maximum results of a group */
    GROUP_INPUTS = 44,  /* maximum inputs of a group */
    GROUP_MEMBERS = 400,   /* maximum members of a group */
    GROUP_COPIES = 4,      /* maximum number of times that an instruction is written in one job */
    GROUP_SMALL = 1 << 10, /* elements up to which groups are joined to reduce their number */
    GROUP_TIMES = 8,       /* maximum number of times that a slow instruction is computed for one
                            * element, */
    GROUP_SLOW = 1 << 20   /* or for all elements, if it is inlined */
};

typedef enum group_class {
    GROUP_OTHER, /* not in any group */
    GROUP_CHEAP, /* computed wherever it is read */
    GROUP_ALIAS, /* the same bytes as its operand: free */
    GROUP_PULL,
    GROUP_REDUCE,
    GROUP_ALONE /* the only result of its group */
} group_class;

/* A backend's rules. */
typedef struct group_rules {
    group_class (*class_of)(const hlo_instr *instr);
    /* True if an operand must not be computed where `user` reads it. NULL: never. */
    bool (*reads_memory)(const hlo_instr *user, const hlo_instr *operand);
    /* True if no job can both compute the reduce and read it for whole rows. NULL: never. */
    bool (*is_chunked)(const hlo_instr *reduce);
    /* True if an element takes longer to compute than to load: it is not recomputed for each
     * element that it is broadcast to (GROUP_TIMES, GROUP_SLOW). NULL: never. */
    bool (*is_slow)(const hlo_instr *instr);
    /* Values are recomputed if that moves fewer bytes. */
    bool recomputes;
} group_rules;

/* Groups a computation's live instructions, in order; see hlo_backend.group. */
uint32_t group_instrs(const group_rules *rules, const hlo_instr *const *live, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);

#endif
