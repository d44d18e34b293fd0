/* SPDX-License-Identifier: Apache-2.0 */
/* Decides which instruction can join which group: the relation of its elements to the group's
 * space, and whether a path leads from the group to it through an instruction outside. */
#include <string.h>

#include "ir/module/index_map.h"
#include "runtime/group/search.h"

/* --------------------------------------------------------------------------------- the relation */

/* True if a broadcast into the group's space repeats rows: it copies each element of its operand to
 * all elements of one row, in order. */
__attribute__((noinline)) static bool repeats_rows(const group *to, const hlo_instr *broadcast) {
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

static group_relation relation_of_operand(const group *to, const hlo_instr *instr,
                                          const hlo_instr *operand, group_relation relation) {
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
    uint32_t number;  /* number of the group */
    const group *to;  /* the group after joining */
    uint32_t members; /* number of visited members */
    bool tainted;     /* a reduce of the group was reached */
    bool shares;      /* a member or an input of the group was reached */
    bool good;
} trial;

static void visit(trial *t, const hlo_instr *instr, group_relation relation, bool first) {
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
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        group_relation its = relation_of_operand(t->to, instr, operand, relation);
        if (instr->op == HLO_OP_REDUCE && n->class == GROUP_PULL) its = relation;
        if (instr->op == HLO_OP_REDUCE && o >= instr->operand_count / 2) its = GROUP_APART;
        visit(t, operand, its, false);
    }
}

/* -------------------------------------------------------------------------------------- circles */

static bool has_dependent_operand(const trial *t, const hlo_instr *instr, uint32_t low) {
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        if (!group_is_live(t->g, operand) || group_place(t->g, operand) < low) continue;
        uint32_t i = group_place(t->g, operand);
        const group_node *from = &t->g->nodes[i];
        if (t->search->nodes[i].depends == t->search->attempt ||
            (from->computed && from->group == t->number))
            return true;
    }
    return false;
}

/* True if a path leads from the group through an instruction outside to `m`, which was visited in
 * this attempt together with the instructions that are inlined in it. */
static bool makes_circle(trial *t, uint32_t m) {
    const uint32_t attempt = t->search->attempt;
    uint32_t low = t->to->first > GROUP_SPAN ? t->to->first - GROUP_SPAN : 0;
    /* Mark the instructions from `low` to `m` that depend on the group and are not in it. A group
     * depends on every dependency of its members, so a marked group with an earlier member requires
     * a restart. Nothing else before the group's first member depends on it. */
    bool again = true;
    for (uint32_t from = t->to->first; again; from = low) {
        again = false;
        for (uint32_t i = from; i < m; i++) {
            const group_node *n = &t->g->nodes[i];
            if (t->search->nodes[i].depends == attempt || (n->computed && n->group == t->number))
                continue;
            bool placed = n->computed && n->group != GROUP_NONE;
            if (!(placed && t->search->groups[n->group] == attempt) &&
                !has_dependent_operand(t, t->g->instrs[i], low))
                continue;
            t->search->nodes[i].depends = attempt;
            if (!placed || t->search->groups[n->group] == attempt) continue;
            t->search->groups[n->group] = attempt;
            again |= t->g->groups[n->group].first < i;
        }
    }
    for (uint32_t i = low; i <= m; i++) {
        const hlo_instr *instr = t->g->instrs[i];
        if (i != m &&
            (t->search->nodes[i].visited != attempt || !group_is_inlined(&t->g->nodes[i])))
            continue;
        for (uint32_t o = 0; o < instr->operand_count; o++) {
            const hlo_instr *operand = hlo_instr_operand(instr, o);
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

void group_set_reduce(group *to, const hlo_instr *reduce) {
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

static bool is_transposed(const grouping *g, const group *to, const hlo_instr *instr) {
    if (instr->op != HLO_OP_TRANSPOSE) return false;
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    return group_is_live(g, operand) && hlo_shape_same_dims(operand->shape, to->shape);
}

/* Returns the relation of the elements of `instr` to the group's space; GROUP_APART if there is
 * none. */
static group_relation relation_to(const grouping *g, const group *to, const hlo_instr *instr) {
    int64_t count = hlo_shape_count(instr->shape);
    if (count == to->kept * to->reduced) {
        bool same = hlo_shape_same_dims(instr->shape, to->shape) ||
                    (hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(to->shape));
        return same || is_transposed(g, to, instr) ? GROUP_FULL : GROUP_APART;
    }
    return to->reduce && count == to->kept ? GROUP_ROW : GROUP_APART;
}

/* Sets the rows of `to` to those of a reduce that joins it. Returns false if it has others. */
static bool join_rows(const grouping *g, group *to, const hlo_instr *reduce) {
    if (reduce->shape->type == HLO_TYPE_TUPLE) return false;
    if (to->reduce) {
        group x = {0}, y = {0};
        group_set_reduce(&x, to->reduce);
        group_set_reduce(&y, reduce);
        if (x.kept != y.kept || x.reduced != y.reduced) return false;
        if (x.trailing && y.trailing) return true;
        const hlo_ints *p = hlo_instr_ints(to->reduce, HLO_ATTR_DIMENSIONS);
        const hlo_ints *q = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
        bool same = hlo_shape_same_dims(x.shape, y.shape) && p->count == q->count;
        for (uint32_t i = 0; i < p->count && same; i++) same = hlo_ints_contain(q, p->v[i]);
        return same;
    }
    if (relation_to(g, to, hlo_instr_operand(reduce, 0)) != GROUP_FULL) return false;
    group_set_reduce(to, reduce);
    return true;
}

bool group_can_join(const grouping *g, group_search *search, uint32_t number, uint32_t m,
                    group *out_joined) {
    group to = g->groups[number];
    const hlo_instr *instr = g->instrs[m];
    bool reduces = g->nodes[m].class == GROUP_REDUCE;
    if (to.alone || to.computed >= GROUP_RESULTS || m - to.first > GROUP_SPAN) return false;
    group_relation relation = reduces ? GROUP_ROW : relation_to(g, &to, instr);
    if (relation == GROUP_APART || (reduces && !join_rows(g, &to, instr))) return false;
    search->attempt++;
    trial t = {.g = g, .search = search, .number = number, .to = &to, .good = true};
    /* A transpose's operand is not written where it is read. */
    if (relation == GROUP_FULL && is_transposed(g, &to, instr)) {
        visit(&t, hlo_instr_operand(instr, 0), GROUP_FULL, false);
        search->nodes[m].visited = search->attempt;
    } else {
        visit(&t, instr, relation, true);
    }
    bool small = to.kept * to.reduced <= GROUP_SMALL && !to.reduce &&
                 hlo_shape_same_dims(instr->shape, to.shape);
    if (!t.good || !(t.shares || small) || to.members + t.members > GROUP_MEMBERS) return false;
    /* A row is in one block only up to some length. */
    bool whole = reduces || relation == GROUP_FULL;
    bool chunked = t.tainted && whole && g->rules->is_chunked && g->rules->is_chunked(to.reduce);
    if (chunked || makes_circle(&t, m)) return false;
    to.members += t.members;
    *out_joined = to;
    return true;
}
