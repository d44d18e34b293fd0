/* SPDX-License-Identifier: Apache-2.0 */
/* Which instructions of a computation run together as one job: the same search for every backend,
 * by the backend's rules. */
#ifndef HLO_RUNTIME_GROUP_GROUP_H
#define HLO_RUNTIME_GROUP_GROUP_H

#include "runtime/backend.h"

enum {
    GROUP_SPAN = 2048,     /* instructions between the first and the last of a group */
    GROUP_RESULTS = 12,    /* results of a group */
    GROUP_INPUTS = 44,     /* inputs of a group */
    GROUP_MEMBERS = 400,   /* members of a group */
    GROUP_COPIES = 4,      /* times that an instruction may be written out in one job */
    GROUP_SMALL = 1 << 10, /* elements: groups are joined to have fewer of them */
    GROUP_TIMES = 8,       /* times that a slow instruction may be computed for one element, */
    GROUP_SLOW = 1 << 20   /* or for all of them, where it is inlined */
};

typedef enum group_class {
    GROUP_OTHER, /* not in any group */
    GROUP_CHEAP, /* computed wherever it is read */
    GROUP_ALIAS, /* the same bytes as its operand: costs nothing by itself */
    GROUP_PULL,
    GROUP_REDUCE,
    GROUP_ALONE /* the only result of its group */
} group_class;

/* A backend's rules. */
typedef struct group_rules {
    group_class (*class_of)(const hlo_instr *instr);
    /* True if an operand is not computed where `user` reads it. NULL: every one may be. */
    bool (*reads_memory)(const hlo_instr *user, const hlo_instr *operand);
    /* True if no job both computes the reduce and reads it for whole rows. NULL: none is such. */
    bool (*is_chunked)(const hlo_instr *reduce);
    /* True if an element takes longer to compute than to load: it is not computed for each element
     * that it is broadcast to (GROUP_TIMES, GROUP_SLOW). NULL: none does. */
    bool (*is_slow)(const hlo_instr *instr);
    /* Values are computed again where that moves fewer bytes (recompute.c). */
    bool recomputes;
} group_rules;

/* Groups a computation's live instructions, in order; see hlo_backend.group. */
uint32_t group_instrs(const group_rules *rules, const hlo_instr *const *live, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);

#endif
