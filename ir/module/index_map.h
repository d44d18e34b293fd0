/* SPDX-License-Identifier: Apache-2.0 */
/* Index maps. A map determines, for each element of a result, the equal element of an operand. The
 * table in index_map.c is the only list of the opcodes that have such maps. If an opcode has a
 * movement flag in op.def but no row in the table, the library does not compile. */
#ifndef HLO_IR_MODULE_INDEX_MAP_H
#define HLO_IR_MODULE_INDEX_MAP_H

#include "ir/ir.h"

/* The relation between the indices of a result and those of an operand. */
typedef enum hlo_index_form {
    HLO_INDEX_PART,   /* result index i reads operand index start + stride * i (hlo_index) */
    HLO_INDEX_PLACED, /* operand index i is at result index start + stride * i; other elements come
                       * from the next operand of hlo_index_map_next() */
    HLO_INDEX_JOINED, /* like PLACED; elements before `start` come from the previous operands */
    HLO_INDEX_ORDER,  /* elements are in the same row-major order */
    HLO_INDEX_MEMORY  /* elements are in the same order in memory */
} hlo_index_form;

typedef struct hlo_index_map hlo_index_map;
typedef struct hlo_index hlo_index;
typedef bool hlo_index_rule(const hlo_index_map *map, uint32_t dim, hlo_index *out);

struct hlo_index_map {
    const hlo_instruction *instr, *from; /* `from`: the operand */
    uint32_t operand;                    /* number of the operand */
    hlo_index_form form;
    hlo_index_rule *rule;
    const hlo_ints *list; /* the attribute that the rule reads */
    int64_t joined;       /* number of elements of the previous operands along a JOINED dimension */
};

/* Finds the map of the operand that the result's elements come from. If there are several such
 * operands, finds the map of the first one to try. Returns false if elements are computed. In
 * unverified modules, the functions of this file also return false if attributes or operands are
 * missing. */
bool hlo_index_map_first(const hlo_instruction *instr, hlo_index_map *out_map);
/* Advances to the next operand to try. Returns false after the last one. */
bool hlo_index_map_next(hlo_index_map *map);

/* The map of one dimension of an operand. If `at` is not 0, an element of operand `at`, clamped to
 * [0, last], is added to `start` at run time. */
struct hlo_index {
    int64_t of; /* the dimension of the result; -1: the index is `start` for all elements */
    int64_t start, stride;
    int64_t last, element; /* upper bound of the added element; its index in the operand, or in an
                            * index vector of a gather */
    uint32_t at;           /* number of the operand that has the added element; 0: no element is
                            * added */
    bool varies;           /* each index along the result's dimensions other than offset dimensions
                            * has its own index vector, so the added element varies */
};
/* Finds the index along dimension `dim` of the operand of a PART, PLACED or JOINED map. */
bool hlo_index_along(const hlo_index_map *map, uint32_t dim, hlo_index *out);

/* Finds the dimension of the result that corresponds to dimension `dim` of the operand, in a map
 * that moves whole dimensions, or adds and removes dimensions of one element. Sets *out_dim to -1
 * if `dim` has one element. Returns false if dimensions are split or merged, or only parts of them
 * move. */
bool hlo_index_dim(const hlo_index_map *map, uint32_t dim, int64_t *out_dim);
/* True if the result has the elements of its only operand in the same row-major order. */
bool hlo_index_keeps_order(const hlo_instruction *instr);

#endif
