/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a search for groups. */
#ifndef HLO_RUNTIME_GROUP_SEARCH_H
#define HLO_RUNTIME_GROUP_SEARCH_H

#include "runtime/group/group.h"

#define GROUP_NONE UINT32_MAX

enum {
    GROUP_CANDIDATES = 64, /* maximum number of groups that an instruction is tried with */
    GROUP_NEWEST = 16      /* number of those that need not share anything with it */
};

/* Relation of an instruction's elements to the space of a group. */
typedef enum group_relation { GROUP_APART, GROUP_ROW, GROUP_FULL } group_relation;

typedef struct group_reader {
    struct group_reader *next;
    uint32_t group;
} group_reader;

/* An instruction. */
typedef struct group_node {
    group_class class;
    bool computed;        /* computed once, in one group: not inlined */
    bool outside;         /* read by an instruction outside its group */
    bool again;           /* recomputed in each group that reads it: inlined */
    bool stored;          /* an instruction reads it from memory: it is never inlined */
    uint32_t owner;       /* the computed instruction that reads it, directly or through inlined
                           * ones; GROUP_NONE: several */
    uint32_t index_class; /* equal values are read at the same index */
    uint32_t weight;      /* number of times that it is written in its owner's job */
    int64_t times;        /* number of times that an element is computed if the instruction is
                           * inlined, because of broadcasts */
    uint32_t reads;       /* upper bound of a computed instruction's inputs, including those of
                           * inlined ones */
    uint32_t inlined;     /* number of instructions that are inlined in it */
    uint32_t group;       /* group of a computed instruction */
    uint32_t read;        /* the last group that reads it from memory, plus 1 */
    struct group_reader *readers; /* the groups that read it from memory, newest first */
} group_node;

typedef struct group {
    uint32_t first, last; /* computed instructions */
    uint32_t computed, members, inputs;
    const hlo_shape *shape;  /* shape of the space */
    const hlo_instr *reduce; /* the first reduce, or NULL */
    int64_t kept, reduced;   /* number of rows, and elements of each; without a reduce, `reduced` is
                              * 1 */
    bool trailing;           /* the reduced dimensions are the last ones */
    bool alone;
} group;

/* Marks of one search through the instructions. Marks of an earlier attempt are ignored, so that no
 * search reads those of another. */
typedef struct group_search {
    uint32_t attempt;
    struct {
        uint32_t visited, relations;
        uint32_t depends; /* depends on the group to be joined, through an instruction outside */
    } * nodes;
    uint32_t *groups; /* `depends`, for groups */
} group_search;

typedef struct grouping {
    const group_rules *rules;
    hlo_arena *arena;
    const hlo_instr *const *instrs;
    uint32_t count, first_id, last_id;
    uint32_t *place; /* index of an instruction in `instrs`, by id - first_id, or GROUP_NONE */
    group_node *nodes;
    group *groups;
    uint32_t group_count;
    uint32_t *closed, closed_count;
    uint32_t candidates[GROUP_CANDIDATES], candidate_count; /* groups, newest first */
} grouping;

/* Returns the index of `instr` in `instrs`, which must contain it or an instruction with its id. */
static inline uint32_t group_place(const grouping *g, const hlo_instr *instr) {
    return g->place[instr->id - g->first_id];
}

/* True if `instrs` has the instruction. */
static inline bool group_is_live(const grouping *g, const hlo_instr *instr) {
    return instr->id >= g->first_id && instr->id <= g->last_id &&
           group_place(g, instr) != GROUP_NONE;
}

/* True if the instruction is computed wherever it is read. */
static inline bool group_is_inlined(const group_node *n) {
    return n->class == GROUP_CHEAP ? !n->stored : n->class != GROUP_OTHER && !n->computed;
}

static inline bool group_is_elementwise(const hlo_instr *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE);
}

/* Sets the rows of the group to those of its first reduce. */
void group_set_reduce(group *to, const hlo_instr *reduce);

/* Marks as `again` the values that are better recomputed by each group that reads them. Returns
 * true if there are any. */
bool group_find_again(grouping *g, group_search *search);
/* Returns the bytes that groups move, plus the cost of their launches in bytes; INT64_MAX if a
 * group has too many inputs. */
int64_t group_cost(const grouping *g, group_search *search);

/* True if instruction `m` can join group `number`; *out_joined is then the group with the rows and
 * members after joining. Changes only the marks of `search`. */
bool group_can_join(const grouping *g, group_search *search, uint32_t number, uint32_t m,
                    group *out_joined);

#endif
