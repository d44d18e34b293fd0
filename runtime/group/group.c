/* SPDX-License-Identifier: Apache-2.0 */
/* Groups the instructions that run together in one job.
 *
 * An instruction is inlined if only one job reads its value, or if computing the value is nearly
 * free. It is then a member of the group of each reader. All other instructions are computed once,
 * and are assigned to groups in the order of the computation. An instruction joins a group with the
 * same number of elements if it reads a member's value or shares an input with the group. No path
 * may lead from the group to the instruction through an instruction outside the group. A value that
 * is read only inside its own group is not a result.
 *
 * The space of a group that contains a reduce is divided into rows, each of which is reduced to one
 * element. An instruction that reads a reduce of its own group must read it row by row. Every
 * instruction on the path from the reduce has one element per element of the space, in the same
 * order ("full"), or one element per row ("row"). */
#include <stdlib.h>
#include <string.h>

#include "ir/module/index_map.h"
#include "runtime/group/group.h"

#define GROUP_NONE UINT32_MAX

enum {
    GROUP_CANDIDATES = 64, /* maximum number of groups that are tried for an instruction */
    GROUP_NEWEST = 16      /* number of newest groups that are tried even if they share nothing with
                            * the instruction */
};

/* Relation of an instruction's elements to the space of a group; APART if they do not match. */
typedef enum group_relation { GROUP_APART, GROUP_ROW, GROUP_FULL } group_relation;

typedef struct group_reader {
    struct group_reader *next;
    uint32_t group;
} group_reader;

/* The state of an instruction. */
typedef struct group_node {
    group_class class;
    bool computed;        /* computed once, in one group, and not inlined */
    bool outside;         /* an instruction outside its group reads it */
    bool again;           /* inlined because each group that reads it recomputes it */
    bool stored;          /* never inlined, because an instruction must read it from memory */
    uint32_t owner;       /* the computed instruction that reads it, directly or through inlined
                           * instructions; GROUP_NONE for several */
    uint32_t index_class; /* instructions with equal numbers are read at the same index */
    uint32_t weight;      /* number of times that the code of the owner's job contains it */
    int64_t times;        /* number of times that an element is computed if the instruction is
                           * inlined, because of broadcasts */
    uint32_t reads;       /* upper bound of the inputs of a computed instruction, including those of
                           * instructions inlined in it */
    uint32_t inlined;     /* number of instructions that are inlined in it */
    uint32_t group;       /* group of a computed instruction */
    uint32_t read;        /* the last group that reads it from memory, plus 1 */
    struct group_reader *readers; /* the groups that read it from memory, newest first */
} group_node;

typedef struct group {
    uint32_t first, last; /* indices of the first and the last computed instruction */
    uint32_t computed, members, inputs;
    const hlo_shape *shape;        /* shape of the space */
    const hlo_instruction *reduce; /* the first reduce, or NULL */
    int64_t kept, reduced;         /* rows; elements per row, 1 without a reduce */
    bool trailing;                 /* the reduced dimensions are the last ones */
    bool alone;
} group;

/* Marks of searches through the instructions. A mark contains the number of the attempt that set
 * it, so that later attempts ignore it. */
typedef struct group_search {
    uint32_t attempt;
    struct {
        uint32_t visited, relations;
        uint32_t depends; /* set if the instruction depends on the group through an instruction
                           * outside the group */
    } * nodes;
    uint32_t *groups; /* like `depends`, for groups */
} group_search;

typedef struct grouping {
    const group_rules *rules;
    hlo_arena *arena;
    const hlo_instruction *const *instrs;
    uint32_t count, first_id, last_id;
    uint32_t *place; /* by id - first_id: index of the instruction in `instrs`, or GROUP_NONE */
    group_node *nodes;
    group *groups;
    uint32_t group_count;
    uint32_t *closed, closed_count;
    uint32_t candidates[GROUP_CANDIDATES], candidate_count; /* groups, newest first */
} grouping;

/* Returns the index in `instrs` of the instruction with the id of `instr`, or GROUP_NONE. */
static inline uint32_t group_place(const grouping *g, const hlo_instruction *instr) {
    return g->place[instr->id - g->first_id];
}

/* True if `instrs` contains the instruction. */
static inline bool group_is_live(const grouping *g, const hlo_instruction *instr) {
    return instr->id >= g->first_id && instr->id <= g->last_id &&
           group_place(g, instr) != GROUP_NONE;
}

/* True if the instruction is inlined in the groups that read it. */
static inline bool group_is_inlined(const group_node *n) {
    return n->class == GROUP_CHEAP ? !n->stored : n->class != GROUP_OTHER && !n->computed;
}

static inline bool group_is_elementwise(const hlo_instruction *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE);
}

/* --------------------------------------------------------------------------------- the relation */

/* True if a broadcast to the group's space copies each element of its operand to all elements of
 * one row, in the order of the rows. */
__attribute__((noinline)) static bool repeats_rows(const group *to,
                                                   const hlo_instruction *broadcast) {
    const hlo_shape *out = broadcast->shape, *in = hlo_instr_operand(broadcast, 0)->shape;
    bool mapped[HLO_LARGEST_RANK] = {false};
    hlo_index_map map;
    int64_t rows = 1, last = -1, dim;
    if (!to->reduce || hlo_shape_count(in) != to->kept || !hlo_index_map_first(broadcast, &map))
        return false;
    for (uint32_t k = 0; k < in->rank; k++) {
        if (!hlo_index_dim(&map, k, &dim) || (dim >= 0 && dim < last)) return false;
        if (dim < 0) continue;
        mapped[dim] = true;
        last = dim;
    }
    const hlo_ints *reduced = hlo_instr_ints(to->reduce, HLO_ATTR_DIMENSIONS);
    bool same = hlo_shape_same_dims(out, to->shape);
    for (uint32_t d = 0; d < out->rank && same; d++)
        same = out->dims[d] == 1 || mapped[d] != hlo_ints_contain(reduced, d);
    if (same || !to->trailing) return same;
    for (uint32_t d = 0; d < out->rank && rows < to->kept; d++) {
        if (out->dims[d] != 1 && !mapped[d]) return false;
        rows *= out->dims[d];
    }
    return rows == to->kept;
}

static group_relation relation_of_operand(const group *to, const hlo_instruction *instr,
                                          const hlo_instruction *operand, group_relation relation) {
    if (relation == GROUP_APART) return GROUP_APART;
    if (group_is_elementwise(instr))
        return operand->shape->rank == instr->shape->rank ? relation : GROUP_APART;
    if (instr->op == HLO_OP_REDUCE) return relation == GROUP_ROW ? GROUP_FULL : GROUP_APART;
    if (!hlo_op_is(instr->op, HLO_KEEPS_ORDER | HLO_REPEATS)) return GROUP_APART;
    if (hlo_index_keeps_order(instr)) return relation;
    const bool rows = relation == GROUP_FULL && hlo_op_is(instr->op, HLO_REPEATS) &&
                      hlo_shape_count(operand->shape) != hlo_shape_count(instr->shape);
    return rows && repeats_rows(to, instr) ? GROUP_ROW : GROUP_APART;
}

typedef struct trial {
    const grouping *g;
    group_search *search;
    uint32_t number;  /* number of the group that the instruction may join */
    const group *to;  /* the group after joining */
    uint32_t members; /* number of visited members */
    bool tainted;     /* a reduce of the group was reached */
    bool shares;      /* a member or an input of the group was reached */
    bool good;
} trial;

static void visit(trial *t, const hlo_instruction *instr, group_relation relation, bool first) {
    if (!group_is_live(t->g, instr)) return;
    uint32_t i = group_place(t->g, instr);
    const group_node *n = &t->g->nodes[i];
    bool mine = n->computed && n->group == t->number && !first;
    if (!mine && !group_is_inlined(n) && !first) {
        t->shares |= n->read == t->number + 1 && relation == GROUP_FULL &&
                     hlo_shape_count(instr->shape) == t->to->kept * t->to->reduced;
        return;
    }
    group_search *search = t->search;
    const bool seen = search->nodes[i].visited == search->attempt;
    if (seen && search->nodes[i].relations & 1u << relation) return;
    if (!seen) search->nodes[i].relations = 0;
    search->nodes[i].visited = search->attempt;
    search->nodes[i].relations |= 1u << relation;
    t->members++;
    if (mine) {
        t->shares = true;
        if (relation == GROUP_APART) t->good = false;
        if (n->class == GROUP_REDUCE) {
            t->tainted = true;
            if (relation != GROUP_ROW && t->to->reduced != 1) t->good = false;
            return;
        }
    }
    for (uint32_t o = 0; o < instr->operand_count && t->good; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        group_relation its = relation_of_operand(t->to, instr, operand, relation);
        if (instr->op == HLO_OP_REDUCE && n->class == GROUP_PULL) its = relation;
        if (instr->op == HLO_OP_REDUCE && o >= instr->operand_count / 2) its = GROUP_APART;
        visit(t, operand, its, false);
    }
}

/* -------------------------------------------------------------------------------------- circles */

/* True if a path leads from the group, through an instruction outside, to instruction `m`. `m` and
 * the instructions that are inlined in it must have been visited in this attempt. */
static bool makes_circle(trial *t, uint32_t m) {
    const uint32_t attempt = t->search->attempt;
    uint32_t low = t->to->first > GROUP_SPAN ? t->to->first - GROUP_SPAN : 0;
    /* Mark the instructions from `low` to `m` that depend on the group and are not in it. If a
     * member of another group depends on the group, all members of that other group do. If the
     * other group begins before the instruction that is being marked, repeat the loop from `low`.
     * No other instruction before the group's first member depends on the group. */
    bool again = true;
    for (uint32_t from = t->to->first; again; from = low) {
        again = false;
        for (uint32_t i = from; i < m; i++) {
            const group_node *n = &t->g->nodes[i];
            if (t->search->nodes[i].depends == attempt || (n->computed && n->group == t->number))
                continue;
            bool placed = n->computed && n->group != GROUP_NONE;
            bool depends = placed && t->search->groups[n->group] == attempt;
            for (uint32_t o = 0; o < t->g->instrs[i]->operand_count && !depends; o++) {
                const hlo_instruction *operand = hlo_instr_operand(t->g->instrs[i], o);
                if (!group_is_live(t->g, operand) || group_place(t->g, operand) < low) continue;
                uint32_t p = group_place(t->g, operand);
                const group_node *its = &t->g->nodes[p];
                depends = t->search->nodes[p].depends == attempt ||
                          (its->computed && its->group == t->number);
            }
            if (!depends) continue;
            t->search->nodes[i].depends = attempt;
            if (!placed || t->search->groups[n->group] == attempt) continue;
            t->search->groups[n->group] = attempt;
            again |= t->g->groups[n->group].first < i;
        }
    }
    for (uint32_t i = low; i <= m; i++) {
        const hlo_instruction *instr = t->g->instrs[i];
        if (i != m &&
            (t->search->nodes[i].visited != attempt || !group_is_inlined(&t->g->nodes[i])))
            continue;
        for (uint32_t o = 0; o < instr->operand_count; o++) {
            const hlo_instruction *operand = hlo_instr_operand(instr, o);
            if (!group_is_live(t->g, operand)) continue;
            uint32_t at = group_place(t->g, operand);
            const group_node *from = &t->g->nodes[at];
            bool inside = group_is_inlined(from) || (from->computed && from->group == t->number);
            if (!inside && t->search->nodes[at].depends == attempt) return true;
        }
    }
    return false;
}

/* -------------------------------------------------------------------------------------- joining */

/* Sets the group's rows to those of `reduce`, its first reduce. */
static void set_reduce(group *to, const hlo_instruction *reduce) {
    to->reduce = reduce;
    to->shape = hlo_instr_operand(reduce, 0)->shape;
    const hlo_ints *dims = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
    to->reduced = 1;
    for (uint32_t i = 0; i < dims->count; i++) to->reduced *= to->shape->dims[dims->v[i]];
    to->kept = to->reduced ? hlo_shape_count(to->shape) / to->reduced : 0;
    to->trailing = true;
    bool kept = false;
    for (uint32_t d = to->shape->rank; d-- > 0;) {
        if (to->shape->dims[d] == 1) continue;
        if (!hlo_ints_contain(dims, d))
            kept = true;
        else if (kept)
            to->trailing = false;
    }
}

static bool is_transposed(const grouping *g, const group *to, const hlo_instruction *instr) {
    if (instr->op != HLO_OP_TRANSPOSE) return false;
    const hlo_instruction *operand = hlo_instr_operand(instr, 0);
    return group_is_live(g, operand) && hlo_shape_same_dims(operand->shape, to->shape);
}

/* Returns the relation of the elements of `instr` to the group's space. */
static group_relation relation_to(const grouping *g, const group *to,
                                  const hlo_instruction *instr) {
    int64_t count = hlo_shape_count(instr->shape);
    if (count == to->kept * to->reduced) {
        bool same = hlo_shape_same_dims(instr->shape, to->shape) ||
                    (hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(to->shape));
        return same || is_transposed(g, to, instr) ? GROUP_FULL : GROUP_APART;
    }
    return to->reduce && count == to->kept ? GROUP_ROW : GROUP_APART;
}

/* Sets the rows of `to` to those of a reduce that may join. Returns false if they differ. */
static bool join_rows(const grouping *g, group *to, const hlo_instruction *reduce) {
    if (reduce->shape->type == HLO_TYPE_TUPLE) return false;
    if (to->reduce) {
        group x = {0}, y = {0};
        set_reduce(&x, to->reduce);
        set_reduce(&y, reduce);
        if (x.kept != y.kept || x.reduced != y.reduced) return false;
        if (x.trailing && y.trailing) return true;
        const hlo_ints *p = hlo_instr_ints(to->reduce, HLO_ATTR_DIMENSIONS);
        const hlo_ints *q = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
        bool same = hlo_shape_same_dims(x.shape, y.shape) && p->count == q->count;
        for (uint32_t i = 0; i < p->count && same; i++) same = hlo_ints_contain(q, p->v[i]);
        return same;
    }
    if (relation_to(g, to, hlo_instr_operand(reduce, 0)) != GROUP_FULL) return false;
    set_reduce(to, reduce);
    return true;
}

/* True if instruction `m` can join group `number`. *out_joined is then the group after joining.
 * Changes only the marks of `search`. */
static bool can_join(const grouping *g, group_search *search, uint32_t number, uint32_t m,
                     group *out_joined) {
    group to = g->groups[number];
    const hlo_instruction *instr = g->instrs[m];
    bool reduces = g->nodes[m].class == GROUP_REDUCE;
    if (to.alone || to.computed >= GROUP_RESULTS || m - to.first > GROUP_SPAN) return false;
    group_relation relation = reduces ? GROUP_ROW : relation_to(g, &to, instr);
    if (relation == GROUP_APART || (reduces && !join_rows(g, &to, instr))) return false;
    search->attempt++;
    trial t = {.g = g, .search = search, .number = number, .to = &to, .good = true};
    /* A transpose's operand keeps its position in the space, so visit the operand. */
    if (relation == GROUP_FULL && is_transposed(g, &to, instr)) {
        visit(&t, hlo_instr_operand(instr, 0), GROUP_FULL, false);
        search->nodes[m].visited = search->attempt;
    } else {
        visit(&t, instr, relation, true);
    }
    bool small = to.kept * to.reduced <= GROUP_SMALL && !to.reduce &&
                 hlo_shape_same_dims(instr->shape, to.shape);
    if (!t.good || !(t.shares || small) || to.members + t.members > GROUP_MEMBERS) return false;
    /* Long rows are divided among blocks, so no block can read the result of a reduce. */
    bool whole = reduces || relation == GROUP_FULL;
    bool chunked = t.tainted && whole && g->rules->is_chunked && g->rules->is_chunked(to.reduce);
    if (chunked || makes_circle(&t, m)) return false;
    to.members += t.members;
    *out_joined = to;
    return true;
}

/* ---------------------------------------------------------------------------------- recomputing */

/* Each group that reads a value recomputes the value if that moves fewer bytes than writing the
 * value once. Examples are the exponentials of a softmax, and a normalized array that is computed
 * from a narrower array.
 *
 * The values are chosen from the groups of a first search. A value qualifies if few elementwise
 * operations compute it from arrays that are in memory anyway and are together hardly larger than
 * the value. A second search inlines these values. */
enum {
    LEAVES = 16,
    MEMBERS = 64,         /* maximum instructions from the leaves to a value */
    WORK = 40,            /* maximum operations from the leaves to a value */
    TRANSCENDENTAL = 8,   /* number of operations that a transcendental operation counts as */
    WORTHWHILE = 1 << 12, /* minimum bytes saved */
    LAUNCH = 1 << 22,     /* cost of a launch: bytes that a device moves in the same time */
    LARGER_BY = 8         /* leaves may exceed the value by 1/LARGER_BY of its size, to allow for
                           * values per row */
};

/* The state of tracing a value to its leaves. */
typedef struct recomputing {
    grouping *g;
    group_search *search;
    uint32_t leaves[LEAVES], leaf_count; /* instructions that are read from memory */
    uint32_t members[MEMBERS], member_count;
    uint32_t work;
    bool possible;
} recomputing;

/* Adds an instruction and the instructions that are recomputed with it: counts their operations,
 * and lists them and their leaves. */
static void trace(recomputing *r, uint32_t member) {
    const hlo_instruction *instr = r->g->instrs[member];
    r->work +=
        hlo_op_is(instr->op, HLO_TRANSCENDENTAL) ? TRANSCENDENTAL : group_is_elementwise(instr);
    const bool simple = group_is_elementwise(instr) || instr->op == HLO_OP_CONSTANT ||
                        instr->op == HLO_OP_IOTA || instr->op == HLO_OP_BROADCAST ||
                        instr->op == HLO_OP_RESHAPE || instr->op == HLO_OP_BITCAST;
    r->possible = r->possible && simple && r->work <= WORK && r->member_count < MEMBERS;
    if (!r->possible) return;
    r->members[r->member_count++] = member;
    for (uint32_t o = 0; o < instr->operand_count && r->possible; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        if (!group_is_live(r->g, operand)) continue;
        const uint32_t i = group_place(r->g, operand);
        if (r->search->nodes[i].visited == r->search->attempt) continue;
        r->search->nodes[i].visited = r->search->attempt;
        /* Recomputing a reader also recomputes its operand, unless that is in memory. */
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

/* Sets `again` of the values that each group that reads them should recompute. Returns true if
 * there are such values. */
static bool find_recomputed(grouping *g, group_search *search) {
    bool any = false;
    for (uint32_t i = 0; i < g->count; i++) {
        /* Skip a value that an instruction outside all groups reads. */
        const hlo_instruction *instr = g->instrs[i];
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
        int64_t all = 0, read = 0; /* bytes of the leaves, and bytes that groups read in addition */
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

/* Returns the bytes that all groups move, plus the cost of their launches in bytes, or INT64_MAX if
 * a group has too many inputs. */
static int64_t cost_of(const grouping *g, group_search *search) {
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

/* --------------------------------------------------------------------------------- instructions */

/* Returns the number of different operands that are not constants. */
static uint32_t reads_of(const hlo_instruction *instr) {
    uint32_t reads = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        bool counts = operand->op != HLO_OP_CONSTANT;
        for (uint32_t p = 0; p < o && o < GROUP_INPUTS; p++)
            counts &= hlo_instr_operand(instr, p) != operand;
        reads += counts;
    }
    return reads;
}

/* Counts the instruction as inlined in its owner. Returns false, without counting it, if the owner
 * would have too many inputs or members. */
static bool fits_owner(grouping *g, const group_node *n, const hlo_instruction *instr) {
    if (n->owner == GROUP_NONE) return true;
    group_node *owner = &g->nodes[n->owner];
    uint32_t reads = owner->reads + reads_of(instr);
    if (reads > GROUP_INPUTS + 1 || owner->inlined >= GROUP_MEMBERS) return false;
    owner->reads = reads ? reads - 1 : 0;
    owner->inlined++;
    return true;
}

/* Finds the instruction's owner and decides whether it is computed or inlined. Its users must have
 * been processed before. */
static void find_owner(grouping *g, uint32_t i) {
    const hlo_instruction *instr = g->instrs[i];
    group_node *n = &g->nodes[i];
    bool many = false;
    uint32_t weight = 0, class_id = GROUP_NONE;
    n->outside = instr == instr->parent->root;
    n->owner = GROUP_NONE;
    for (const hlo_use *use = instr->uses; use; use = use->next) {
        if (!group_is_live(g, use->user)) continue;
        uint32_t user = group_place(g, use->user);
        const group_node *u = &g->nodes[user];
        if (u->class == GROUP_OTHER) {
            n->outside = true;
            continue;
        }
        if (g->rules->reads_memory && g->rules->reads_memory(use->user, instr)) {
            n->outside = n->stored = true;
            continue;
        }
        uint32_t owner = u->computed ? user : u->owner;
        int64_t times = u->computed ? 1 : u->times;
        if (use->user->op == HLO_OP_BROADCAST && hlo_shape_count(instr->shape) != 0)
            times *= hlo_shape_count(use->user->shape) / hlo_shape_count(instr->shape);
        if (times > n->times) n->times = times;
        if (owner == GROUP_NONE) many = true;
        if (n->owner == GROUP_NONE) n->owner = owner;
        many |= n->owner != owner;
        bool same = group_is_elementwise(use->user);
        uint32_t its = same ? u->index_class : user + g->count;
        if (same && its == class_id) continue;
        weight += u->computed ? 1 : u->weight;
        class_id = class_id == GROUP_NONE ? its : i;
    }
    n->index_class = class_id == GROUP_NONE ? i : class_id;
    n->weight = weight ? weight : 1;
    if (n->class == GROUP_OTHER) return;
    if (n->class == GROUP_ALIAS && n->outside) {
        n->class = GROUP_OTHER;
        return;
    }
    bool reads_all = n->class == GROUP_REDUCE || n->class == GROUP_ALONE;
    n->computed = n->outside || reads_all || many || weight > GROUP_COPIES;
    if (n->again && !n->outside) n->computed = false;
    /* If a slow instruction would compute its elements often, compute and store it once. */
    if (g->rules->is_slow && n->class == GROUP_PULL && n->times > GROUP_TIMES &&
        n->times * hlo_shape_count(instr->shape) > GROUP_SLOW && g->rules->is_slow(instr))
        n->computed = true;
    if (n->class == GROUP_CHEAP) n->computed = n->outside && instr->op != HLO_OP_CONSTANT;
    if (n->class == GROUP_ALIAS) n->computed = false;
    if (many) n->owner = GROUP_NONE;
    if (n->class == GROUP_PULL && !n->computed) n->computed = !fits_owner(g, n, instr);
    if (n->class == GROUP_ALIAS && !fits_owner(g, n, instr)) n->class = GROUP_OTHER;
    if (n->computed) {
        n->reads = reads_of(instr);
        n->weight = 1;
        n->index_class = i;
    }
}

/* --------------------------------------------------------------------------------------- groups */

/* Appends the members that compute `instr` to `closed`, and sets `read` of their inputs. */
static void close_over(grouping *g, group_search *search, uint32_t number,
                       const hlo_instruction *instr, bool first) {
    if (!group_is_live(g, instr)) return;
    uint32_t i = group_place(g, instr);
    group_node *n = &g->nodes[i];
    bool mine = n->computed && n->group == number;
    if (!mine && !group_is_inlined(n) && !first) {
        if (n->read != number + 1) {
            g->groups[number].inputs++;
            group_reader *reader = hlo_arena_alloc(g->arena, sizeof *reader);
            *reader = (group_reader){n->readers, number};
            n->readers = reader;
        }
        n->read = number + 1;
        if (n->computed) n->outside = true;
        return;
    }
    if (search->nodes[i].visited == search->attempt) return;
    search->nodes[i].visited = search->attempt;
    g->closed[g->closed_count++] = i;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        close_over(g, search, number, hlo_instr_operand(instr, o), false);
}

/* Adds a group to the candidates, which are sorted from the newest to the oldest. If there are too
 * many, drops the oldest. */
static void add_candidate(grouping *g, uint32_t number) {
    uint32_t at = g->candidate_count;
    while (at > 0 && g->candidates[at - 1] < number) at--;
    if (at == GROUP_CANDIDATES || (at > 0 && g->candidates[at - 1] == number)) return;
    g->candidate_count += g->candidate_count < GROUP_CANDIDATES;
    memmove(g->candidates + at + 1, g->candidates + at,
            (g->candidate_count - at - 1) * sizeof *g->candidates);
    g->candidates[at] = number;
}

/* Adds to the candidates the groups that compute or read an operand of the instruction. */
static void add_sharing(grouping *g, group_search *search, const hlo_instruction *instr) {
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        if (!group_is_live(g, operand)) continue;
        uint32_t i = group_place(g, operand), count = 0;
        const group_node *n = &g->nodes[i];
        if (search->nodes[i].visited == search->attempt) continue;
        search->nodes[i].visited = search->attempt;
        if (group_is_inlined(n)) add_sharing(g, search, operand);
        if (n->computed && n->group != GROUP_NONE) add_candidate(g, n->group);
        for (const group_reader *r = n->readers; r && count < GROUP_NEWEST; r = r->next, count++)
            add_candidate(g, r->group);
    }
}

/* Adds a computed instruction to the newest group that it can join, or to a new one. */
static void place(grouping *g, group_search *search, uint32_t m) {
    group_node *n = &g->nodes[m];
    uint32_t number = GROUP_NONE;
    g->candidate_count = 0;
    search->attempt++;
    if (n->class != GROUP_ALONE) {
        add_sharing(g, search, g->instrs[m]);
        for (uint32_t h = g->group_count; h-- > 0 && g->group_count - h <= GROUP_NEWEST;)
            add_candidate(g, h);
    }
    for (uint32_t c = 0; c < g->candidate_count && number == GROUP_NONE; c++) {
        const uint32_t h = g->candidates[c];
        group joined;
        if (g->groups[h].inputs + n->reads > GROUP_INPUTS || !can_join(g, search, h, m, &joined))
            continue;
        g->groups[h] = joined;
        number = h;
    }
    if (number == GROUP_NONE) {
        const hlo_shape *shape = g->instrs[m]->shape;
        number = g->group_count++;
        group *to = &g->groups[number];
        *to = (group){.first = m, .shape = shape, .reduced = 1};
        to->alone = n->class == GROUP_ALONE || shape->type == HLO_TYPE_TUPLE;
        if (n->class == GROUP_REDUCE)
            set_reduce(to, g->instrs[m]);
        else
            to->kept = hlo_shape_count(shape);
    }
    n->group = number;
    g->groups[number].computed++;
    g->groups[number].last = m;
    search->attempt++;
    g->closed_count = 0;
    bool outside = n->outside;
    close_over(g, search, number, g->instrs[m], true);
    n->outside = outside;
}

static int by_place(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static hlo_group write_group(grouping *g, group_search *search, uint32_t number) {
    const group *from = &g->groups[number];
    hlo_group out = {0};
    search->attempt++;
    g->closed_count = 0;
    out.results = hlo_arena_array(g->arena, from->computed, sizeof *out.results);
    for (uint32_t i = from->first; i <= from->last; i++) {
        const group_node *n = &g->nodes[i];
        if (!n->computed || n->group != number) continue;
        close_over(g, search, number, g->instrs[i], true);
        if (n->outside) out.results[out.result_count++] = g->instrs[i];
    }
    qsort(g->closed, g->closed_count, sizeof *g->closed, by_place);
    out.instr_count = g->closed_count;
    out.instrs = hlo_arena_array(g->arena, out.instr_count, sizeof *out.instrs);
    for (uint32_t i = 0; i < out.instr_count; i++) out.instrs[i] = g->instrs[g->closed[i]];
    return out;
}

/* Searches for groups. Inlines the values that an earlier search (may be NULL) marked. */
static void search_groups(grouping *g, group_search *search, const grouping *again) {
    g->nodes = hlo_arena_zero(g->arena, g->count * sizeof *g->nodes);
    g->groups = hlo_arena_array(g->arena, g->count, sizeof *g->groups);
    g->closed = hlo_arena_array(g->arena, g->count, sizeof *g->closed);
    *search = (group_search){.nodes = hlo_arena_zero(g->arena, g->count * sizeof *search->nodes),
                             .groups = hlo_arena_zero(g->arena, g->count * sizeof *search->groups)};
    for (uint32_t i = 0; i < g->count; i++) {
        g->nodes[i].class = g->rules->class_of(g->instrs[i]);
        g->nodes[i].group = GROUP_NONE;
        g->nodes[i].again = again && again->nodes[i].again;
    }
    for (uint32_t i = g->count; i-- > 0;) find_owner(g, i);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->nodes[i].computed) place(g, search, i);
}

uint32_t group_instrs(const group_rules *rules, const hlo_instruction *const *live, uint32_t count,
                      hlo_arena *arena, hlo_group **out_groups) {
    grouping g = {.rules = rules, .arena = arena, .instrs = live, .count = count};
    group_search search;
    *out_groups = NULL;
    if (count == 0) return 0;
    g.first_id = UINT32_MAX;
    for (uint32_t i = 0; i < g.count; i++) {
        if (g.instrs[i]->id < g.first_id) g.first_id = g.instrs[i]->id;
        if (g.instrs[i]->id > g.last_id) g.last_id = g.instrs[i]->id;
    }
    size_t ids = g.last_id - g.first_id + 1;
    g.place = hlo_arena_array(g.arena, ids, sizeof *g.place);
    memset(g.place, 0xff, ids * sizeof *g.place);
    for (uint32_t i = 0; i < g.count; i++) g.place[g.instrs[i]->id - g.first_id] = i;
    grouping other = g;
    search_groups(&g, &search, NULL);
    if (rules->recomputes && find_recomputed(&g, &search)) {
        group_search others;
        search_groups(&other, &others, &g);
        if (cost_of(&other, &others) < cost_of(&g, &search)) {
            g = other;
            search = others;
        }
    }
    /* Write the groups twice. Writing a group marks the values that it reads as results of earlier
     * groups; the second time, all these marks are set. */
    hlo_group *groups = hlo_arena_array(arena, g.group_count + 1, sizeof *groups);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, &search, h);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, &search, h);
    *out_groups = groups;
    return g.group_count;
}
