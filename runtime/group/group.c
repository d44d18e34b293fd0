/* SPDX-License-Identifier: Apache-2.0 */
/* Groups the instructions that run together in one job.
 *
 * An instruction is inlined if one job reads its value, or if it is nearly free: it is then a
 * member of the group of each reader. All others are computed once, and grouped in the order of the
 * computation. An instruction joins a group with the same number of elements if it reads from the
 * group or shares an input with it, and if no path leads from the group to it through an
 * instruction outside (join.c). A value that is read only inside its own group is not a result.
 *
 * A group that reduces has rows. An instruction that reads a reduce of its own group must read it
 * row by row: every instruction on the path has an element for each element of the space, in the
 * same order ("full"), or one for each row ("row"). */
#include <stdlib.h>
#include <string.h>

#include "runtime/group/search.h"

/* --------------------------------------------------------------------------------- instructions */

/* Counts the different operands that are not written as numbers. */
static uint32_t reads_of(const hlo_instr *instr) {
    uint32_t reads = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        bool counts = operand->op != HLO_OP_CONSTANT;
        for (uint32_t p = 0; p < o && o < GROUP_INPUTS; p++)
            counts &= hlo_instr_operand(instr, p) != operand;
        reads += counts;
    }
    return reads;
}

/* Inlines the instruction in its owner. Returns false if the owner would have too many inputs or
 * members. */
static bool fits_owner(grouping *g, const group_node *n, const hlo_instr *instr) {
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
    const hlo_instr *instr = g->instrs[i];
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
        if (its == class_id) continue;
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
    /* The instruction is slow, and its elements are read so often that storing them is better. */
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

/* Lists the members that compute `instr` in the group, in `closed`, and marks their inputs with
 * `read`. */
static void close_over(grouping *g, group_search *search, uint32_t number, const hlo_instr *instr,
                       bool first) {
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

/* Adds a group to the candidates, which are sorted. If there are too many, the oldest is
 * dropped. */
static void add_candidate(grouping *g, uint32_t number) {
    uint32_t at = g->candidate_count;
    while (at > 0 && g->candidates[at - 1] < number) at--;
    if (at == GROUP_CANDIDATES || (at > 0 && g->candidates[at - 1] == number)) return;
    g->candidate_count += g->candidate_count < GROUP_CANDIDATES;
    memmove(g->candidates + at + 1, g->candidates + at,
            (g->candidate_count - at - 1) * sizeof *g->candidates);
    g->candidates[at] = number;
}

/* Adds the groups that compute values that the instruction reads, or that also read them. */
static void add_sharing(grouping *g, group_search *search, const hlo_instr *instr) {
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
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
        if (g->groups[h].inputs + n->reads > GROUP_INPUTS ||
            !group_can_join(g, search, h, m, &joined))
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
            group_set_reduce(to, g->instrs[m]);
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

/* Searches for groups. `again`: inlines values that an earlier search has marked; may be NULL. */
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

uint32_t group_instrs(const group_rules *rules, const hlo_instr *const *live, uint32_t count,
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
    if (rules->recomputes && group_find_again(&g, &search)) {
        group_search others;
        search_groups(&other, &others, &g);
        if (group_cost(&other, &others) < group_cost(&g, &search)) {
            g = other;
            search = others;
        }
    }
    /* A value that a later group reads is a result of an earlier one, so the groups are written
     * twice; the second time all inputs are marked. */
    hlo_group *groups = hlo_arena_array(arena, g.group_count + 1, sizeof *groups);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, &search, h);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, &search, h);
    *out_groups = groups;
    return g.group_count;
}
