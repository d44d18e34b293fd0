/* SPDX-License-Identifier: Apache-2.0 */
/* Brings dots into the form of a matmul: at most one batch and one contracting dimension, and one
 * free dimension on each side. A reshape of an operand merges several dimensions of a kind, after a
 * transpose if they are not adjacent. A vector becomes a matrix with one row. A reshape of the
 * result restores its dimensions. If the only user of the result is a transpose that exchanges the
 * free dimensions of the operands, the pass removes the transpose and exchanges the operands. A
 * bias, for example, then follows the dot directly.
 *
 * Needs: nothing.
 * Does not change: pinned instructions; dots already in that form; dots that can never be FP8
 * calls, because an operand does not come from fp8 values; sparse dots; dynamic and unbounded
 * dimensions. Numerics: unchanged, except for the order in which products are summed. Tests:
 * testdata/passes/collapse-dots/ */
#include "ir/module/build.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/value.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

typedef struct group {
    uint32_t count;
    int64_t *dims; /* dimensions of the operand, in the order in which they are merged; the list of
                    * FREE has room for the free dimensions of both operands */
} group;

enum { BATCH, FREE, CONTRACTING, KINDS };

typedef struct side {
    hlo_instruction *operand;
    group groups[KINDS];
    uint32_t at[KINDS]; /* number of the merged dimension, after collapse_side() */
    int64_t extents[KINDS];
} side;

static group listed(hlo_arena *arena, const hlo_ints *dims) {
    return (group){dims->count, hlo_arena_copy(arena, dims->v, dims->count * sizeof *dims->v)};
}

static side read_side(hlo_arena *arena, const hlo_instruction *dot, bool right) {
    side s = {.operand = hlo_instr_operand(dot, right)};
    const hlo_ints *batch = hlo_dot_batch(dot, right),
                   *contracting = hlo_dot_contracting(dot, right);
    uint32_t rank = s.operand->shape->rank;
    s.groups[BATCH] = listed(arena, batch);
    s.groups[CONTRACTING] = listed(arena, contracting);
    group *rest = &s.groups[FREE];
    rest->dims = hlo_arena_array(arena, 2 * rank, sizeof *rest->dims);
    for (uint32_t i = 0; i < rank; i++)
        if (!hlo_ints_contain(batch, i) && !hlo_ints_contain(contracting, i))
            rest->dims[rest->count++] = i;
    return s;
}

/* True for a vector or a batch of vectors, to which a free dimension must be added. */
static bool is_vector(const side *s) {
    return !s->groups[FREE].count && s->groups[CONTRACTING].count;
}

static bool is_collapsed(const side *s) {
    if (is_vector(s)) return false;
    for (int kind = 0; kind < KINDS; kind++)
        if (s->groups[kind].count > 1) return false;
    return true;
}

/* Collapses an operand: transposes it to batch, free, contracting if the dimensions of a kind are
 * not adjacent, and then merges them. */
static void collapse_side(hlo_arena *arena, hlo_builder *b, side *s) {
    bool adjacent = true;
    for (int kind = 0; kind < KINDS; kind++)
        for (uint32_t i = 1; i < s->groups[kind].count; i++)
            adjacent &= s->groups[kind].dims[i] == s->groups[kind].dims[0] + i;
    if (!adjacent) {
        int64_t *order = hlo_arena_array(arena, s->operand->shape->rank, sizeof *order);
        uint32_t count = 0;
        for (int kind = 0; kind < KINDS; kind++)
            for (uint32_t i = 0; i < s->groups[kind].count; i++) {
                order[count] = s->groups[kind].dims[i];
                s->groups[kind].dims[i] = count++;
            }
        s->operand = hlo_build_transpose(b, s->operand, order);
    }
    const hlo_shape *shape = s->operand->shape;
    int64_t dims[KINDS];
    uint32_t rank = 0;
    for (int64_t i = 0; i < shape->rank;)
        for (int kind = 0; kind < KINDS; kind++) {
            const group *g = &s->groups[kind];
            if (g->count == 0 || g->dims[0] != i) continue;
            if (kind == CONTRACTING && is_vector(s)) {
                s->at[FREE] = rank;
                s->extents[FREE] = dims[rank++] = 1;
            }
            s->at[kind] = rank;
            dims[rank] = 1;
            for (uint32_t j = 0; j < g->count; j++) dims[rank] *= shape->dims[i + j];
            s->extents[kind] = dims[rank++];
            i += g->count;
            break;
        }
    if (!is_collapsed(s)) s->operand = hlo_build_reshape(b, s->operand, rank, dims);
}

static void set_dim(hlo_instruction *dot, hlo_attr_id id, const side *s, int kind) {
    if (s->groups[kind].count)
        hlo_instr_set_ints(dot, id, 1, &(int64_t){s->at[kind]});
    else
        hlo_instr_drop_attr(dot, id);
}

/* Returns the transpose that is the dot's only user, if it puts the free dimensions of the right
 * operand before those of the left operand. Also sorts the free dimensions of both sides in the
 * order of the transpose. */
static hlo_instruction *turned(const hlo_instruction *dot, side *left, side *right) {
    group *l = &left->groups[FREE], *r = &right->groups[FREE];
    int64_t first = left->groups[BATCH].count, at = 0;
    if (!l->count || !r->count || hlo_instr_user_count(dot) != 1 || dot == dot->parent->root ||
        hlo_instr_attr(dot, HLO_ATTR_OPERAND_PRECISION))
        return NULL;
    hlo_instruction *transpose = dot->uses->user;
    if (transpose->op != HLO_OP_TRANSPOSE || transpose->pin) return NULL;
    const int64_t *order = hlo_instr_ints(transpose, HLO_ATTR_DIMENSIONS)->v;
    for (; at < first; at++)
        if (order[at] != at) return NULL;
    for (; at < first + r->count; at++)
        if (order[at] < first + l->count) return NULL;
    const group was[] = {*l, *r};
    l->dims = was[0].dims + l->count;
    r->dims = was[1].dims + r->count;
    for (uint32_t i = 0; i < r->count; i++)
        r->dims[i] = was[1].dims[order[first + i] - first - l->count];
    for (uint32_t i = 0; i < l->count; i++)
        l->dims[i] = was[0].dims[order[first + r->count + i] - first];
    return transpose;
}

/* Replaces `result` by the collapsed dot. `result` is the dot or its only user. */
static void collapse(hlo_pass_context *context, hlo_instruction *dot, hlo_instruction *result,
                     side *left, side *right) {
    hlo_arena *arena = context->scratch;
    /* Sort the contracting dimensions, so that the left operand needs no transpose. */
    for (uint32_t i = 1; i < left->groups[CONTRACTING].count; i++)
        for (uint32_t j = i;
             j > 0 && left->groups[CONTRACTING].dims[j - 1] > left->groups[CONTRACTING].dims[j];
             j--) {
            int64_t l = left->groups[CONTRACTING].dims[j], r = right->groups[CONTRACTING].dims[j];
            left->groups[CONTRACTING].dims[j] = left->groups[CONTRACTING].dims[j - 1];
            right->groups[CONTRACTING].dims[j] = right->groups[CONTRACTING].dims[j - 1];
            left->groups[CONTRACTING].dims[j - 1] = l;
            right->groups[CONTRACTING].dims[j - 1] = r;
        }
    hlo_builder b = {.at = dot};
    collapse_side(arena, &b, left);
    collapse_side(arena, &b, right);
    int64_t dims[KINDS];
    uint32_t rank = 0;
    if (left->groups[BATCH].count) dims[rank++] = left->extents[BATCH];
    if (left->groups[FREE].count || is_vector(left)) dims[rank++] = left->extents[FREE];
    if (right->groups[FREE].count || is_vector(right)) dims[rank++] = right->extents[FREE];
    hlo_module *module = context->module;
    const hlo_shape *shape = hlo_shape_array(module, dot->shape->type, rank, dims);
    hlo_instruction *operands[] = {left->operand, right->operand};
    hlo_instruction *made =
        hlo_instr_new(dot->parent, dot, HLO_OP_DOT, shape, 2, operands, dot->name);
    made->offset = dot->offset;
    hlo_instr_copy_attrs(made, dot);
    set_dim(made, HLO_ATTR_LHS_BATCH_DIMS, left, BATCH);
    set_dim(made, HLO_ATTR_LHS_CONTRACTING_DIMS, left, CONTRACTING);
    set_dim(made, HLO_ATTR_RHS_BATCH_DIMS, right, BATCH);
    set_dim(made, HLO_ATTR_RHS_CONTRACTING_DIMS, right, CONTRACTING);
    if (!hlo_shape_same_dims(dot->shape, shape)) hlo_instr_drop_attr(made, HLO_ATTR_SHARDING);
    hlo_remark_follow(context, dot, made);
    const hlo_shape *want = result->shape;
    hlo_instruction *value = made;
    if (result == dot && !hlo_shape_same_dims(shape, want))
        value = hlo_build(&b, HLO_OP_RESHAPE, want, 1, &made);
    else
        value = hlo_build_reshape(&b, made, want->rank, want->dims);
    if (result == result->parent->root && value->shape != want && result != dot)
        value = hlo_build(&b, HLO_OP_COPY, want, 1, &value);
    hlo_instr_inherit(value, result);
    hlo_instr_replace_uses(result, value);
    if (result != dot) hlo_instr_remove(result);
    hlo_instr_remove(dot);
    context->changes++;
}

/* True if the operand is a matrix or a batch of matrices without additional dimensions. */
static bool is_plain(const hlo_instruction *dot, bool right) {
    const uint32_t batches = hlo_dot_batch(dot, right)->count;
    return batches <= 1 && hlo_dot_contracting(dot, right)->count == 1 &&
           hlo_instr_operand(dot, right)->shape->rank == batches + 2;
}

/* True if all sizes are static: merging dynamic dimensions would lose their bounds. */
static bool is_static(const hlo_instruction *instr) {
    return !instr->shape->dynamic && hlo_shape_count(instr->shape) >= 0;
}

hlo_status hlo_pass_collapse(hlo_pass_context *context) {
    if (!context->module->op_counts[HLO_OP_DOT]) return HLO_OK;
    hlo_fp8_reach reach = {0}; /* computed when the first dot needs it */
    const bool *fused = hlo_facts_fused(context->module, context->scratch);
    for (hlo_computation *comp = context->module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = hlo_facts_has(fused, comp->id) ? NULL : comp->first, *next;
             instr; instr = next) {
            next = hlo_instr_next(instr);
            /* Skip the transpose, which may be removed with the dot. */
            if (next && next->op == HLO_OP_TRANSPOSE && hlo_instr_operand(next, 0) == instr)
                next = next->next;
            if (instr->op != HLO_OP_DOT || instr->operand_count != 2 || instr->pin) continue;
            hlo_instruction *left = hlo_instr_operand(instr, 0),
                            *right = hlo_instr_operand(instr, 1);
            if (is_plain(instr, false) && is_plain(instr, true) &&
                (instr->use_count != 1 || instr->uses->user->op != HLO_OP_TRANSPOSE))
                continue;
            if (!reach.of) reach = hlo_facts_fp8_reach(context->module, context->scratch);
            if (!hlo_facts_from_fp8(&reach, left) || !hlo_facts_from_fp8(&reach, right)) continue;
            if (!is_static(left) || !is_static(right) || !is_static(instr)) continue;
            hlo_arena *arena = context->scratch;
            hlo_arena_mark mark = hlo_arena_here(arena);
            side m = read_side(arena, instr, false), n = read_side(arena, instr, true);
            hlo_instruction *transpose = turned(instr, &m, &n);
            if (transpose)
                collapse(context, instr, transpose, &n, &m);
            else if (!is_collapsed(&m) || !is_collapsed(&n))
                collapse(context, instr, instr, &m, &n);
            hlo_arena_release(arena, mark);
        }
    return HLO_OK;
}
