/* Which instructions run together.
 *
 * An instruction is inlined when one kernel reads its value, or when it costs next to nothing: it
 * is then a member of the group of each reader. All others are in memory, or would be; of these,
 * groups are made in the order of the computation: one joins a group that runs through as many
 * elements and that it reads from, or reads the same array as, when no path leads from the group to
 * it through something outside. What turns out to be read inside its own group only is no result.
 *
 * A group that reduces has rows (kernel_reduce.c). What reads a reduce of its own group must read
 * it row by row: every instruction on the way has an element for each element of the space, in the
 * same order ("full"), or one for each row ("row"). */
#include "runtime/cuda/kernel/fusion.h"

#include <stdlib.h>
#include <string.h>

enum {
    SPAN = 2048,    /* instructions between the first and the last of a group */
    RESULTS = 12,   /* of a group */
    INPUTS = 44,    /* likewise; with the results, and a few places of scratch memory, no more than
                       CUDA_POINTERS */
    MEMBERS = 400,  /* likewise */
    COPIES = 4,     /* how often an instruction may be written out in one kernel */
    SMALL = 1 << 10 /* elements: groups are joined to have fewer of them */
};

/* --------------------------------------------------------------------------------- instructions */

static uint32_t at(const grouping *g, const hlo_instr *instr) {
    return g->place[instr->id - g->first_id];
}

static bool is_live(const grouping *g, const hlo_instr *instr) {
    return instr->id >= g->first_id && instr->id <= g->last_id && at(g, instr) != GROUP_NONE;
}

static bool same_bytes(const hlo_shape *a, const hlo_shape *b) {
    if (a->type != b->type) return false;
    if (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b)) return true;
    return a->layout && b->layout && hlo_shape_same_dims(a, b) &&
           memcmp(a->layout->minor_to_major, b->layout->minor_to_major,
                  a->rank * sizeof *a->layout->minor_to_major) == 0;
}

static group_class class_of(const hlo_instr *instr) {
    if (instr->op == HLO_OP_PARAMETER || cuda_kernel_refusal(instr)) return GROUP_OTHER;
    if (instr->op == HLO_OP_CONSTANT)
        return instr->u.literal->data && (hlo_shape_count(instr->shape) == 1 ||
                                          hlo_literal_is_splat(instr->u.literal))
                   ? GROUP_CHEAP
                   : GROUP_OTHER;
    if (hlo_shape_is_array(instr->shape) && hlo_shape_count(instr->shape) == 0) return GROUP_OTHER;
    switch (instr->op) {
    case HLO_OP_IOTA:
    case HLO_OP_BROADCAST: return GROUP_CHEAP;
    case HLO_OP_BITCAST: return GROUP_ALIAS;
    case HLO_OP_RESHAPE:
    case HLO_OP_COPY:
        return same_bytes(instr->shape, hlo_instr_operand(instr, 0)->shape) ? GROUP_ALIAS
                                                                            : GROUP_PULL;
    case HLO_OP_REDUCE: return GROUP_REDUCE;
    case HLO_OP_DYNAMIC_UPDATE_SLICE: return GROUP_ALONE;
    case HLO_OP_REDUCE_WINDOW:
    case HLO_OP_SORT:
    case HLO_OP_SCATTER: return GROUP_OTHER;
    default: return GROUP_PULL;
    }
}

/* Computed wherever it is read. */
static bool is_inlined(const group_node *n) {
    return n->class == GROUP_CHEAP || (n->class != GROUP_OTHER && !n->made);
}

static bool is_elementwise(const hlo_instr *instr) {
    return (hlo_ops[instr->op].flags & HLO_ELEMENTWISE) != 0;
}

/* How many different operands it has that are not written out as numbers. */
static uint32_t reads_of(const hlo_instr *instr) {
    uint32_t reads = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        bool counts = operand->op != HLO_OP_CONSTANT;
        for (uint32_t p = 0; p < o && o < INPUTS; p++)
            counts &= hlo_instr_operand(instr, p) != operand;
        reads += counts;
    }
    return reads;
}

/* Whether what owns it can have it as well, and read what it reads; it does then. */
static bool fits_owner(grouping *g, const group_node *n, const hlo_instr *instr) {
    if (n->owner == GROUP_NONE) return true;
    group_node *owner = &g->nodes[n->owner];
    uint32_t reads = owner->reads + reads_of(instr);
    if (reads > INPUTS + 1 || owner->inlined >= MEMBERS) return false;
    owner->reads = reads ? reads - 1 : 0;
    owner->inlined++;
    return true;
}

/* From the last to the first: who reads it, and through how many different indices. */
static void find_owner(grouping *g, uint32_t i) {
    const hlo_instr *instr = g->instrs[i];
    group_node *n = &g->nodes[i];
    bool many = false;
    uint32_t weight = 0, class_id = GROUP_NONE;
    n->outside = instr == instr->parent->root;
    n->owner = GROUP_NONE;
    for (const hlo_use *use = instr->uses; use; use = use->next) {
        if (!is_live(g, use->user)) continue;
        uint32_t user = at(g, use->user);
        const group_node *u = &g->nodes[user];
        if (u->class == GROUP_OTHER) {
            n->outside = true;
            continue;
        }
        uint32_t owner = u->made ? user : u->owner;
        if (owner == GROUP_NONE) many = true;
        if (n->owner == GROUP_NONE) n->owner = owner;
        many |= n->owner != owner;
        bool same = is_elementwise(use->user);
        uint32_t its = same ? u->index_class : user + g->count;
        if (its == class_id) continue;
        weight += u->made ? 1 : u->weight;
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
    n->made = n->outside || reads_all || many || weight > COPIES;
    if (n->class == GROUP_CHEAP) n->made = n->outside && instr->op != HLO_OP_CONSTANT;
    if (n->class == GROUP_ALIAS) n->made = false;
    if (many) n->owner = GROUP_NONE;
    if (n->class == GROUP_PULL && !n->made) n->made = !fits_owner(g, n, instr);
    if (n->class == GROUP_ALIAS && !fits_owner(g, n, instr)) n->class = GROUP_OTHER;
    if (n->made) {
        n->reads = reads_of(instr);
        n->weight = 1;
        n->index_class = i;
    }
}

/* --------------------------------------------------------------------------------- the relation */

/* Whether a broadcast whose result is full repeats rows: that is, whether each element of its
 * operand goes to all elements of one row, in order. */
static bool repeats_rows(const group *to, const hlo_instr *broadcast) {
    const hlo_shape *out = broadcast->shape, *in = hlo_instr_operand(broadcast, 0)->shape;
    const hlo_ints *dims = hlo_instr_ints(broadcast, HLO_ATTR_DIMENSIONS);
    if (!to->reduce || hlo_shape_count(in) != to->kept) return false;
    if (hlo_shape_same_dims(out, to->shape)) {
        const hlo_ints *reduced = hlo_instr_ints(to->reduce, HLO_ATTR_DIMENSIONS);
        uint32_t k = 0;
        bool exact = in->rank + reduced->count == out->rank;
        for (uint32_t d = 0; d < out->rank && exact; d++)
            if (!hlo_ints_contain(reduced, d))
                exact = k < in->rank && dims->v[k] == d && in->dims[k] == out->dims[d], k++;
        if (exact) return true;
    }
    if (!to->trailing) return false;
    int64_t rows = 1, last = -1;
    for (uint32_t k = 0; k < in->rank; k++) {
        if (dims->v[k] <= last || (in->dims[k] != 1 && in->dims[k] != out->dims[dims->v[k]]))
            return false;
        last = dims->v[k];
    }
    for (uint32_t d = 0; d < out->rank && rows < to->kept; d++) {
        if (out->dims[d] == 1) continue;
        bool mapped = false;
        for (uint32_t k = 0; k < in->rank; k++) mapped |= dims->v[k] == d && in->dims[k] != 1;
        if (!mapped) return false;
        rows *= out->dims[d];
    }
    return rows == to->kept;
}

static group_relation relation_of_operand(const group *to, const hlo_instr *instr,
                                          const hlo_instr *operand, group_relation relation) {
    if (relation == GROUP_APART) return GROUP_APART;
    if (is_elementwise(instr))
        return operand->shape->rank == instr->shape->rank ? relation : GROUP_APART;
    switch (instr->op) {
    case HLO_OP_COPY:
    case HLO_OP_RESHAPE: return relation;
    case HLO_OP_BITCAST:
        return hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(operand->shape)
                   ? relation
                   : GROUP_APART;
    case HLO_OP_BROADCAST:
        if (hlo_shape_count(operand->shape) == hlo_shape_count(instr->shape)) {
            const hlo_ints *dims = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS);
            for (uint32_t k = 1; k < dims->count; k++)
                if (dims->v[k] < dims->v[k - 1]) return GROUP_APART;
            return relation;
        }
        return relation == GROUP_FULL && repeats_rows(to, instr) ? GROUP_ROW : GROUP_APART;
    case HLO_OP_REDUCE: return relation == GROUP_ROW ? GROUP_FULL : GROUP_APART;
    default: return GROUP_APART;
    }
}

typedef struct walk {
    grouping *g;
    uint32_t to;      /* the group */
    uint32_t members; /* that are seen */
    bool tainted;     /* a reduce of the group was reached */
    bool shares;      /* something that the group has or reads was reached */
    bool good;
} walk;

static void visit(walk *w, const hlo_instr *instr, group_relation relation, bool first);

static void visit_operands(walk *w, const hlo_instr *instr, group_relation relation) {
    const group *to = &w->g->groups[w->to];
    for (uint32_t o = 0; o < instr->operand_count && w->good; o++) {
        const hlo_instr *operand = hlo_instr_operand(instr, o);
        group_relation its = relation_of_operand(to, instr, operand, relation);
        if (instr->op == HLO_OP_REDUCE && o >= instr->operand_count / 2) its = GROUP_APART;
        visit(w, operand, its, false);
    }
}

static void visit(walk *w, const hlo_instr *instr, group_relation relation, bool first) {
    grouping *g = w->g;
    if (!is_live(g, instr)) return;
    group_node *n = &g->nodes[at(g, instr)];
    const group *to = &g->groups[w->to];
    bool mine = n->made && n->group == w->to && !first;
    bool inlined = is_inlined(n);
    if (!mine && !inlined && !first) {
        if (n->read == w->to + 1 && hlo_shape_count(instr->shape) == to->kept * to->reduced &&
            relation == GROUP_FULL)
            w->shares = true;
        return;
    }
    if (n->visited == g->attempt && n->relations & 1u << relation) return;
    if (n->visited != g->attempt) n->relations = 0;
    n->visited = g->attempt;
    n->relations |= 1u << relation;
    w->members++;
    if (mine) {
        w->shares = true;
        if (relation == GROUP_APART) w->good = false;
        if (n->class == GROUP_REDUCE) {
            w->tainted = true;
            if (relation != GROUP_ROW && to->reduced != 1) w->good = false;
            return;
        }
    }
    visit_operands(w, instr, relation);
}

/* -------------------------------------------------------------------------------------- circles */

/* Marks what depends on the group through something that is not in it. A group depends on what any
 * of its members does. */
static void mark_behind(grouping *g, uint32_t to, uint32_t low, uint32_t m) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = low; i < m; i++) {
            group_node *n = &g->nodes[i];
            const hlo_instr *instr = g->instrs[i];
            if (n->behind == g->attempt || (n->made && n->group == to)) continue;
            bool placed = n->made && n->group != GROUP_NONE;
            bool behind = placed && g->groups[n->group].behind == g->attempt;
            for (uint32_t o = 0; o < instr->operand_count && !behind; o++) {
                const hlo_instr *operand = hlo_instr_operand(instr, o);
                if (!is_live(g, operand) || at(g, operand) < low) continue;
                const group_node *from = &g->nodes[at(g, operand)];
                behind = from->behind == g->attempt || (from->made && from->group == to);
            }
            if (!behind) continue;
            n->behind = g->attempt;
            changed = true;
            if (placed) g->groups[n->group].behind = g->attempt;
        }
    }
}

/* Whether a path leads from the group through something else to `m`, which with what is inlined in
 * it was visited in this attempt. */
static bool makes_circle(grouping *g, uint32_t to, uint32_t m) {
    uint32_t low = g->groups[to].first > SPAN ? g->groups[to].first - SPAN : 0;
    mark_behind(g, to, low, m);
    for (uint32_t i = low; i <= m; i++) {
        const group_node *n = &g->nodes[i];
        if (i != m && (n->visited != g->attempt || !is_inlined(n))) continue;
        for (uint32_t o = 0; o < g->instrs[i]->operand_count; o++) {
            const hlo_instr *operand = hlo_instr_operand(g->instrs[i], o);
            if (!is_live(g, operand)) continue;
            const group_node *from = &g->nodes[at(g, operand)];
            bool inside = is_inlined(from) || (from->made && from->group == to);
            if (!inside && from->behind == g->attempt) return true;
        }
    }
    return false;
}

/* -------------------------------------------------------------------------------------- joining */

static bool is_trailing(const hlo_instr *reduce) {
    const hlo_shape *shape = hlo_instr_operand(reduce, 0)->shape;
    const hlo_ints *dims = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
    bool kept = false;
    for (uint32_t d = shape->rank; d-- > 0;) {
        if (shape->dims[d] == 1) continue;
        if (hlo_ints_contain(dims, d) && kept) return false;
        if (!hlo_ints_contain(dims, d)) kept = true;
    }
    return true;
}

static void set_reduce(group *to, const hlo_instr *reduce) {
    to->reduce = reduce;
    to->shape = hlo_instr_operand(reduce, 0)->shape;
    const hlo_ints *dims = hlo_instr_ints(reduce, HLO_ATTR_DIMENSIONS);
    to->reduced = 1;
    for (uint32_t i = 0; i < dims->count; i++) to->reduced *= to->shape->dims[dims->v[i]];
    to->kept = to->reduced ? hlo_shape_count(to->shape) / to->reduced : 0;
    to->trailing = is_trailing(reduce);
}

/* Whether two reduces have the same rows. */
static bool same_rows(const hlo_instr *a, const hlo_instr *b) {
    group x = {0}, y = {0};
    set_reduce(&x, a);
    set_reduce(&y, b);
    if (x.kept != y.kept || x.reduced != y.reduced) return false;
    if (x.trailing && y.trailing) return true;
    const hlo_ints *p = hlo_instr_ints(a, HLO_ATTR_DIMENSIONS);
    const hlo_ints *q = hlo_instr_ints(b, HLO_ATTR_DIMENSIONS);
    bool same = hlo_shape_same_dims(x.shape, y.shape) && p->count == q->count;
    for (uint32_t i = 0; i < p->count && same; i++) same = hlo_ints_contain(q, p->v[i]);
    return same;
}

static bool is_transposed(const grouping *g, const group *to, const hlo_instr *instr) {
    if (instr->op != HLO_OP_TRANSPOSE) return false;
    const hlo_instr *operand = hlo_instr_operand(instr, 0);
    return is_live(g, operand) && hlo_shape_same_dims(operand->shape, to->shape);
}

/* How the elements of `instr` lie in the group's space; GROUP_APART: they do not. */
static group_relation relation_to(const grouping *g, const group *to, const hlo_instr *instr) {
    int64_t count = hlo_shape_count(instr->shape);
    if (count == to->kept * to->reduced) {
        bool same = hlo_shape_same_dims(instr->shape, to->shape) ||
                    (hlo_shape_is_row_major(instr->shape) && hlo_shape_is_row_major(to->shape));
        return same || is_transposed(g, to, instr) ? GROUP_FULL : GROUP_APART;
    }
    return to->reduce && count == to->kept ? GROUP_ROW : GROUP_APART;
}

static bool can_join(grouping *g, uint32_t number, uint32_t m) {
    const group *to = &g->groups[number];
    const hlo_instr *instr = g->instrs[m];
    bool reduces = g->nodes[m].class == GROUP_REDUCE;
    if (to->alone || to->made >= RESULTS || m - to->first > SPAN) return false;
    if (reduces && instr->shape->type == HLO_TYPE_TUPLE) return false;
    group trial = *to;
    group_relation relation = GROUP_ROW;
    if (reduces) {
        if (to->reduce && !same_rows(to->reduce, instr)) return false;
        if (!to->reduce) {
            if (relation_to(g, to, hlo_instr_operand(instr, 0)) != GROUP_FULL) return false;
            set_reduce(&g->groups[number], instr);
        }
    } else {
        relation = relation_to(g, to, instr);
        if (relation == GROUP_APART) return false;
    }
    g->attempt++;
    walk w = {.g = g, .to = number, .good = true};
    /* What a transpose reads is not where it is written. */
    if (relation == GROUP_FULL && is_transposed(g, to, instr)) {
        visit(&w, hlo_instr_operand(instr, 0), GROUP_FULL, false);
        g->nodes[m].visited = g->attempt;
    } else {
        visit(&w, instr, relation, true);
    }
    const group *now = &g->groups[number];
    bool small = now->kept * now->reduced <= SMALL && !now->reduce &&
                 hlo_shape_same_dims(instr->shape, now->shape);
    bool good = w.good && (w.shares || small) && now->members + w.members <= MEMBERS;
    /* A row is whole in one block only up to some length. */
    bool whole = reduces || relation == GROUP_FULL;
    if (good && w.tainted && whole && cuda_reduce_is_chunked(now->reduce)) good = false;
    if (good && makes_circle(g, number, m)) good = false;
    if (good)
        g->groups[number].members += w.members;
    else
        g->groups[number] = trial;
    return good;
}

/* --------------------------------------------------------------------------------------- groups */

/* Lists what computes `instr` in the group, in `closed`; what it reads from memory gets `read`. */
static void close_over(grouping *g, uint32_t number, const hlo_instr *instr, bool first) {
    if (!is_live(g, instr)) return;
    group_node *n = &g->nodes[at(g, instr)];
    bool mine = n->made && n->group == number;
    bool inlined = is_inlined(n);
    if (!mine && !inlined && !first) {
        if (n->read != number + 1) g->groups[number].inputs++;
        n->read = number + 1;
        if (n->made) n->outside = true;
        return;
    }
    if (n->visited == g->attempt) return;
    n->visited = g->attempt;
    g->closed[g->closed_count++] = at(g, instr);
    for (uint32_t o = 0; o < instr->operand_count; o++)
        close_over(g, number, hlo_instr_operand(instr, o), false);
}

static uint32_t new_group(grouping *g, uint32_t m) {
    const hlo_instr *instr = g->instrs[m];
    group *to = &g->groups[g->group_count];
    *to = (group){.first = m, .shape = instr->shape, .reduced = 1};
    to->alone = g->nodes[m].class == GROUP_ALONE || instr->shape->type == HLO_TYPE_TUPLE;
    if (g->nodes[m].class == GROUP_REDUCE)
        set_reduce(to, instr);
    else
        to->kept = hlo_shape_count(instr->shape);
    return g->group_count++;
}

static void place(grouping *g, uint32_t m) {
    group_node *n = &g->nodes[m];
    uint32_t tried = 0, number = GROUP_NONE;
    if (n->class != GROUP_ALONE)
        for (uint32_t h = g->group_count; h-- > 0 && tried < 16 && number == GROUP_NONE;) {
            if (g->groups[h].inputs + n->reads > INPUTS) continue;
            tried++;
            if (can_join(g, h, m)) number = h;
        }
    if (number == GROUP_NONE) number = new_group(g, m);
    n->group = number;
    g->groups[number].made++;
    g->groups[number].last = m;
    g->attempt++;
    g->closed_count = 0;
    bool outside = n->outside;
    close_over(g, number, g->instrs[m], true);
    n->outside = outside;
}

static int by_place(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static hlo_group write_group(grouping *g, uint32_t number) {
    const group *from = &g->groups[number];
    hlo_group out = {0};
    g->attempt++;
    g->closed_count = 0;
    out.results = hlo_arena_array(g->arena, from->made, sizeof *out.results);
    for (uint32_t i = from->first; i <= from->last; i++) {
        const group_node *n = &g->nodes[i];
        if (!n->made || n->group != number) continue;
        close_over(g, number, g->instrs[i], true);
        if (n->outside) out.results[out.result_count++] = g->instrs[i];
    }
    qsort(g->closed, g->closed_count, sizeof *g->closed, by_place);
    out.instr_count = g->closed_count;
    out.instrs = hlo_arena_array(g->arena, out.instr_count, sizeof *out.instrs);
    for (uint32_t i = 0; i < out.instr_count; i++) out.instrs[i] = g->instrs[g->closed[i]];
    return out;
}

static void number_instrs(grouping *g) {
    g->first_id = UINT32_MAX;
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->instrs[i]->id < g->first_id) g->first_id = g->instrs[i]->id;
        if (g->instrs[i]->id > g->last_id) g->last_id = g->instrs[i]->id;
    }
    size_t ids = g->last_id - g->first_id + 1;
    g->place = hlo_arena_array(g->arena, ids, sizeof *g->place);
    memset(g->place, 0xff, ids * sizeof *g->place);
    for (uint32_t i = 0; i < g->count; i++) g->place[g->instrs[i]->id - g->first_id] = i;
}

uint32_t cuda_kernel_group(const cuda_device *device, const hlo_instr *const *live, uint32_t count,
                           hlo_arena *arena, hlo_group **out_groups) {
    (void)device;
    grouping g = {.arena = arena, .instrs = live, .count = count};
    *out_groups = NULL;
    if (count == 0) return 0;
    number_instrs(&g);
    g.nodes = hlo_arena_zero(arena, count * sizeof *g.nodes);
    g.groups = hlo_arena_array(arena, count, sizeof *g.groups);
    g.closed = hlo_arena_array(arena, count, sizeof *g.closed);
    for (uint32_t i = 0; i < count; i++) {
        g.nodes[i].class = class_of(live[i]);
        g.nodes[i].group = GROUP_NONE;
    }
    for (uint32_t i = count; i-- > 0;) find_owner(&g, i);
    for (uint32_t i = 0; i < count; i++)
        if (g.nodes[i].made) place(&g, i);
    /* What a later group reads is a result of an earlier one: all are closed once before any is
     * written. */
    hlo_group *groups = hlo_arena_array(arena, g.group_count + 1, sizeof *groups);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, h);
    for (uint32_t h = 0; h < g.group_count; h++) groups[h] = write_group(&g, h);
    *out_groups = groups;
    return g.group_count;
}
