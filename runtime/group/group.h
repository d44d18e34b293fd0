/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which instructions of a computation run together as one job. All backends use the same
 * search, with different rules. */
#ifndef HLO_RUNTIME_GROUP_GROUP_H
#define HLO_RUNTIME_GROUP_GROUP_H

#include "runtime/backend.h"

enum {
    GROUP_SPAN = 2048,  /* maximum distance between the first and the last instruction of a group */
    GROUP_RESULTS = 12, /* maximum results of a group */
    GROUP_INPUTS = 44,  /* maximum inputs of a group */
    GROUP_MEMBERS = 400,   /* maximum members of a group */
    GROUP_COPIES = 4,      /* maximum number of times that an instruction is written in one job */
    GROUP_SMALL = 1 << 10, /* maximum elements of instructions that join a group that they share
                            * nothing with */
    GROUP_TIMES = 8,       /* a slow instruction may be inlined if each element is then computed at
                            * most this often */
    GROUP_SLOW = 1 << 20   /* it may also be inlined if all elements together are then computed at
                            * most this often */
};

typedef enum group_class {
    GROUP_OTHER, /* is not in any group */
    GROUP_CHEAP, /* is computed wherever it is read */
    GROUP_ALIAS, /* has the same bytes as its operand, and costs nothing */
    GROUP_PULL,
    GROUP_REDUCE,
    GROUP_ALONE /* is the only result of its group */
} group_class;

/* A backend's rules. */
typedef struct group_rules {
    group_class (*class_of)(const hlo_instruction *instr);
    /* True if `user` must read the operand from memory. May be NULL if this is never the case. */
    bool (*reads_memory)(const hlo_instruction *user, const hlo_instruction *operand);
    /* True if no job can both compute the reduce and read its result for whole rows. May be NULL if
     * this is never the case. */
    bool (*is_chunked)(const hlo_instruction *reduce);
    /* True if computing an element takes longer than loading it. Such an element is not recomputed
     * for each element to which it is broadcast (GROUP_TIMES, GROUP_SLOW). May be NULL if no
     * instruction is slow. */
    bool (*is_slow)(const hlo_instruction *instr);
    /* Groups recompute values if that moves fewer bytes. */
    bool recomputes;
} group_rules;

/* Groups a computation's live instructions, in order; see hlo_backend.group. */
uint32_t group_instrs(const group_rules *rules, const hlo_instruction *const *live, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups);

#endif
