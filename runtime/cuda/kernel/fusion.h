/* The inside of kernel_group.c. */
#ifndef HLO_RUNTIME_CUDA_KERNEL_GROUP_H
#define HLO_RUNTIME_CUDA_KERNEL_GROUP_H

#include "runtime/cuda/codegen/emit.h"

#define GROUP_NONE UINT32_MAX

typedef enum group_class {
    GROUP_OTHER, /* not in any group */
    GROUP_CHEAP, /* computed wherever it is read */
    GROUP_ALIAS, /* the same bytes as its operand: costs nothing by itself */
    GROUP_PULL,
    GROUP_REDUCE,
    GROUP_ALONE /* the only result of its group */
} group_class;

typedef enum group_relation { GROUP_APART, GROUP_ROW, GROUP_FULL } group_relation;

/* An instruction. */
typedef struct group_node {
    group_class class;
    bool made;            /* in memory, or a member of the same group as all that read it */
    bool outside;         /* read by what is not in its group */
    uint32_t owner;       /* the made instruction that reads it, itself or through what is inlined;
                             GROUP_NONE: several */
    uint32_t index_class; /* equal ones are read at the same index */
    uint32_t weight;      /* how often it is written out in its owner's kernel */
    uint32_t reads;       /* of what is made: at most so many inputs, with what is inlined */
    uint32_t inlined;     /* how many instructions are inlined in it */
    uint32_t group;       /* of what is made */
    uint32_t read;        /* the last group that reads it from memory, plus 1 */
    uint32_t visited, relations;
    uint32_t
        behind; /* the last attempt in which it was found to depend on the group to be joined */
} group_node;

typedef struct group {
    uint32_t first, last; /* instructions that it makes */
    uint32_t made, members, inputs;
    const hlo_shape *shape;  /* of the space */
    const hlo_instr *reduce; /* the first; NULL: none */
    int64_t kept, reduced;   /* rows, and elements of each; without a reduce, `reduced` is 1 */
    bool trailing;           /* what is reduced are the last dimensions */
    bool alone;
    uint32_t behind; /* likewise */
} group;

typedef struct grouping {
    hlo_arena *arena;
    const hlo_instr *const *instrs;
    uint32_t count, first_id, last_id;
    uint32_t *place; /* of an instruction in `instrs`, by id - first_id; GROUP_NONE: not there */
    group_node *nodes;
    group *groups;
    uint32_t group_count, attempt;
    uint32_t *closed, closed_count;
} grouping;

#endif
