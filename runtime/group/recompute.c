/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are recomputed in each group that reads them, if that moves fewer bytes than writing
 * them once: for example the exponentials of a softmax from its rows, or a normalized array from
 * the narrow one that it is computed from.
 *
 * Decided on the groups of a first search. A value qualifies if it is computed elementwise from
 * arrays that are in memory anyway and together are no larger, with few operations. A second search
 * follows with these values inlined. */

#include "runtime/group/search.h"

enum {
    LEAVES = 16,
    MEMBERS = 64,         /* maximum instructions from the leaves to a value, */
    WORK = 40,            /* and maximum operations, */
    TRANSCENDENTAL = 8,   /* where a transcendental operation counts as this many */
    WORTHWHILE = 1 << 12, /* minimum bytes saved */
    LAUNCH = 1 << 22,     /* bytes that a device moves in the time of a launch */
    LARGER_BY = 8         /* leaves may exceed the value by one part in this many: values of rows */
};

/* A value traced to its leaves. */
typedef struct recomputing {
    grouping *g;
    group_search *search;
    uint32_t leaves[LEAVES], leaf_count; /* instructions that are read from memory */
    uint32_t members[MEMBERS], member_count;
    uint32_t work;
    bool possible;
} recomputing;

static bool is_simple(const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_CONSTANT:
    case HLO_OP_IOTA:
    case HLO_OP_BROADCAST:
    case HLO_OP_RESHAPE:
    case HLO_OP_BITCAST: return true;
    default: return group_is_elementwise(instr);
    }
}

/* Counts the operations of an instruction and of those inlined in it, and lists them and their
 * leaves. */
static void trace(recomputing *r, uint32_t member) {
    const hlo_instr *instr = r->g->instrs[member];
    r->work +=
        hlo_op_is(instr->op, HLO_TRANSCENDENTAL) ? TRANSCENDENTAL : group_is_elementwise(instr);
    r->possible = r->possible && is_simple(instr) && r->work <= WORK && r->member_count < MEMBERS;
    if (!r->possible) return;
    r->members[r->member_count++] = member;
    for (uint32_t o = 0; o < instr->operand_count && r->possible; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        if (!group_is_live(r->g, operand)) continue;
        const uint32_t i = group_place(r->g, operand);
        if (r->search->nodes[i].visited == r->search->attempt) continue;
        r->search->nodes[i].visited = r->search->attempt;
        /* True if groups that recompute its readers also recompute the value: it is not in memory.
         */
        const group_node *n = &r->g->nodes[i];
        if (n->again || group_is_inlined(n) || (n->class == GROUP_PULL && !n->outside))
            trace(r, i);
        else if (r->leaf_count == LEAVES)
            r->possible = false;
        else
            r->leaves[r->leaf_count++] = i;
    }
}

/* Marks the groups that read a value from memory, and returns their number. */
static uint32_t mark_readers(const grouping *g, group_search *search, uint32_t i) {
    uint32_t count = 0;
    search->attempt++;
    for (const group_reader *r = g->nodes[i].readers; r; r = r->next) {
        count += search->groups[r->group] != search->attempt;
        search->groups[r->group] = search->attempt;
    }
    return count;
}

bool group_find_again(grouping *g, group_search *search) {
    bool any = false;
    for (uint32_t i = 0; i < g->count; i++) {
        /* Only groups may read the value, in full. */
        const hlo_instr *instr = g->instrs[i];
        const group_node *n = &g->nodes[i];
        if (!n->computed || !n->outside || n->stored || n->class != GROUP_PULL ||
            instr == instr->parent->root || hlo_shape_bytes(instr->shape) < WORTHWHILE)
            continue;
        bool grouped = true;
        for (const hlo_use *use = instr->uses; use && grouped; use = use->next)
            grouped = !group_is_live(g, use->user) ||
                      g->nodes[group_place(g, use->user)].class != GROUP_OTHER;
        if (!grouped) continue;
        recomputing r = {.g = g, .search = search, .possible = true};
        search->attempt++;
        trace(&r, i);
        if (!r.possible) continue;
        const int64_t own = hlo_shape_bytes(instr->shape);
        const int64_t saved = (mark_readers(g, search, i) + 1) * own;
        int64_t all = 0, read = 0; /* bytes of the leaves; bytes that groups read additionally */
        for (uint32_t l = 0; l < r.leaf_count; l++) {
            const uint32_t leaf = r.leaves[l];
            const int64_t bytes = hlo_shape_bytes(g->instrs[leaf]->shape);
            int64_t times = g->nodes[leaf].computed && !g->nodes[leaf].outside;
            mark_readers(g, search, leaf);
            for (const group_reader *to = n->readers; to; to = to->next) {
                times += search->groups[to->group] != search->attempt;
                search->groups[to->group] = search->attempt;
            }
            all += bytes;
            read += times * bytes;
        }
        if (all > own + own / LARGER_BY || saved < read + WORTHWHILE) continue;
        for (uint32_t m = 0; m < r.member_count; m++) g->nodes[r.members[m]].again = true;
        any = true;
    }
    return any;
}

int64_t group_cost(const grouping *g, group_search *search) {
    int64_t cost = (int64_t)g->group_count * LAUNCH;
    for (uint32_t h = 0; h < g->group_count; h++)
        if (g->groups[h].inputs > GROUP_INPUTS) return INT64_MAX;
    for (uint32_t i = 0; i < g->count; i++) {
        const group_node *n = &g->nodes[i];
        if (!hlo_shape_is_array(g->instrs[i]->shape)) continue;
        const int64_t times = mark_readers(g, search, i) + (n->computed && n->outside);
        cost += times * hlo_shape_bytes(g->instrs[i]->shape);
    }
    return cost;
}
