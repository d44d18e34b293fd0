/* SPDX-License-Identifier: Apache-2.0 */
/* Sinks dequantizations into the loops and branches that contain their matmuls. The tuple that
 * enters a loop or branch then has the fp8 value, and the scale as an additional element. This
 * includes values that a loop recomputes in each iteration, moves between devices, or stacks in an
 * array.
 *
 * Needs: calls inlined.
 * Does not change: pinned instructions, except loops and conditionals that are pinned because of
 * effects in them; values with uses other than matmuls whose other operand also comes from fp8;
 * computations with several callers; shardings. Numerics: exact, because each value is computed
 * from the same operands, at its use. If each slice of a value has its own scale, a slice is scaled
 * after slicing. Tests: testdata/passes/sink-dequantize/ */
#include <string.h>

#include "ir/module/build.h"
#include "ir/module/known.h"
#include "passes/analysis/fp8_provenance.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/scale_range.h"
#include "passes/analysis/value.h"
#include "passes/builders/granularity.h"
#include "passes/builders/move_chain.h"
#include "passes/passes.h"
#include "passes/sharding/devices.h"

enum { CALLED_LIMIT = 2, DEPTH_LIMIT = 64, STEP_LIMIT = 1024 };

/* How a loop carries an element to its next iteration. */
typedef enum mode {
    STACKED,   /* an array that is 0 before the loop and into which each iteration writes a
                * dequantized slice; dots use the array after the loop */
    INVARIANT, /* one value for all iterations, or an element that enters a branch */
    PERMUTED,  /* a value that each iteration moves or receives from another device */
    RECOMPUTED /* a new dequantized value in each iteration */
} mode;

/* A dequantized element of the tuple. */
typedef struct candidate {
    bool sinks;
    bool carries_scale; /* the tuple contains the scale; false if the scale is a constant number or
                         * absent */
    mode mode;
    hlo_dequantized from; /* the value before the first iteration; if stacked, a slice */
    const hlo_ints
        *dims; /* dimensions of the value along which the scale varies; NULL for a scalar */
    hlo_dequantized next; /* for a recomputed element: the value of the next iteration */
    int64_t scale_index;  /* index of the scale in the tuple, or -1 */
} candidate;

typedef struct sinker {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance; /* covers instructions whose id is below `known` */
    uint32_t known;
    hlo_instruction **callers; /* by computation id: the only caller, or NULL */
    bool *called;              /* by computation id: true if the computation is called */
    hlo_instruction *caller;   /* the instruction being visited */
} sinker;

/* A tuple that is the parameter of a loop or a branch. */
typedef struct region {
    const sinker *s;
    hlo_instruction *user; /* the loop or conditional */
    uint32_t operand;      /* index of the tuple among the operands of `user` */
    hlo_instruction *tuple;
    hlo_computation *called[CALLED_LIMIT]; /* a loop's body and condition, or a branch */
    uint32_t called_count, count;
    uint32_t count_before; /* number of instruction ids before the pass */
    candidate *elements;
} region;

/* Returns the index of `value` among the elements of `tuple`, or -1. */
static int64_t index_of(const hlo_instruction *value, const hlo_instruction *tuple) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_operand(value, 0) != tuple) return -1;
    return hlo_instr_int(value, HLO_ATTR_INDEX, -1);
}

static hlo_instruction *next_of(const region *e, uint32_t index) {
    return hlo_instr_operand(e->called[0]->root, index);
}

/* True if by this use the value becomes element `index` of the state of the next iteration. */
static bool is_next(const region *e, const hlo_use *use, uint32_t index) {
    const hlo_instruction *root = e->called[0]->root;
    return e->user->op == HLO_OP_WHILE && use->user == root && use == root->operands + index;
}

static void retype(const candidate *what, hlo_instruction *value) {
    value->shape = hlo_shape_retype(value->parent->module, value->shape, what->from.from);
}

/* --------------------------------------------------------------------------------------- chains */

/* True for movement that can be cloned without other new instructions. */
static bool is_plain(const hlo_instruction *link) {
    return !link->pin && hlo_instr_moves_by(link, HLO_REARRANGES);
}

static bool is_collective(const hlo_instruction *instr) {
    return instr->operand_count == 1 && !instr->pin &&
           (instr->op == HLO_OP_ALL_GATHER || instr->op == HLO_OP_ALL_TO_ALL ||
            instr->op == HLO_OP_COLLECTIVE_PERMUTE);
}

/* Returns the start of a chain of movement and collectives that ends at `value`. */
static const hlo_instruction *moved_from(const hlo_instruction *value) {
    for (unsigned depth = 0; depth < DEPTH_LIMIT && value->operand_count; depth++) {
        if (!is_plain(value) && !is_collective(value)) break;
        value = hlo_instr_operand(value, 0);
    }
    return value;
}

static bool read_moved(hlo_instruction *value, hlo_dequantized *out) {
    for (unsigned depth = 0; depth < DEPTH_LIMIT && is_plain(value); depth++)
        value = hlo_instr_operand(value, 0);
    return hlo_dequantized_read(value, out);
}

/* Clones the chain of links from `link` down to the dequantized value onto the fp8 value. */
static hlo_instruction *carry(const candidate *what, hlo_instruction *link, hlo_instruction *at) {
    hlo_dequantized made;
    if (hlo_dequantized_read(link, &made)) return made.fp8;
    hlo_instruction *operands[1 + HLO_RULE_ARGS] = {carry(what, hlo_instr_operand(link, 0), at)};
    for (uint32_t i = 1; i < link->operand_count; i++) operands[i] = hlo_instr_operand(link, i);
    hlo_instruction *copy = hlo_instr_copy(at->parent, at, link, operands);
    retype(what, copy);
    return copy;
}

/* ---------------------------------------------------------------------------------------- modes */

static mode mode_of(const region *e, uint32_t index) {
    if (e->user->op != HLO_OP_WHILE) return INVARIANT;
    double number;
    const hlo_instruction *value = hlo_instr_operand(e->tuple, index), *next = next_of(e, index);
    const hlo_instruction *state = e->called[0]->parameters[0];
    if (hlo_type_is_wide(value->shape->type) && hlo_known_number(value, &number) && number == 0)
        return STACKED;
    if (index_of(next, state) == index) return INVARIANT;
    return index_of(moved_from(next), state) == index ? PERMUTED : RECOMPUTED;
}

/* Reads the dequantized values of an element with a mode. Returns false if it cannot sink. */
static bool read_element(const region *e, uint32_t index, candidate *out) {
    hlo_instruction *value = hlo_instr_operand(e->tuple, index);
    if (out->mode != STACKED) {
        if (!read_moved(value, &out->from) &&
            !hlo_dequantized_read_rows(value, &out->from, &out->dims))
            return false;
        if (out->mode == INVARIANT) return true;
        if (out->dims) return false;
        return out->mode == PERMUTED || (read_moved(next_of(e, index), &out->next) &&
                                         hlo_dequantized_same_form(&out->from, &out->next));
    }
    /* A dynamic-update-slice writes a dequantized slice along dimension 0. */
    const hlo_instruction *update = next_of(e, index);
    if (update->op != HLO_OP_DYNAMIC_UPDATE_SLICE || update->pin || update->use_count != 1)
        return false;
    const hlo_instruction *state = hlo_instr_operand(update, 0);
    hlo_instruction *slice = hlo_instr_operand(update, 1);
    const hlo_shape *all = update->shape, *one = slice->shape;
    if (state->pin || state->use_count != 1 ||
        index_of(state, e->called[0]->parameters[0]) != index || !all->rank || one->dims[0] != 1 ||
        hlo_instr_operand(update, 2)->shape->rank)
        return false;
    for (uint32_t i = 1; i < all->rank; i++)
        if (one->dims[i] != all->dims[i]) return false;
    if (!read_moved(slice, &out->from)) return false;
    if (out->from.scale) out->dims = hlo_ints_new(e->s->context->module, 1, (int64_t[]){0});
    return true;
}

/* Builds the fp8 value before the first iteration, and its scale if it has a scale. */
static hlo_instruction *first_value(const region *e, const candidate *what, hlo_instruction *wide,
                                    hlo_instruction **out_scale) {
    if (what->mode != STACKED) {
        *out_scale = what->from.scale;
        return what->dims ? what->from.fp8 : carry(what, wide, e->user);
    }
    /* Build an array of zeros, and a scale of 1 for each slice. */
    hlo_module *module = e->s->context->module;
    hlo_builder b = {.at = e->user};
    hlo_instruction *all =
        hlo_build_filled(&b, hlo_shape_retype(module, wide->shape, what->from.from), 0);
    if (!what->from.scale) return all;
    const hlo_type type = what->from.scale->shape->type;
    *out_scale = hlo_build_filled(&b, hlo_shape_array(module, type, 1, wide->shape->dims), 1);
    return all;
}

/* Builds the fp8 value of the next iteration, unless the existing value can be used, and returns
 * its scale. Returns NULL if the state has no scale. */
static hlo_instruction *next_value(const region *e, uint32_t index) {
    const candidate *what = &e->elements[index];
    hlo_instruction *root = e->called[0]->root, *state = e->called[0]->parameters[0];
    if (what->mode == INVARIANT || what->mode == PERMUTED) { /* all iterations share the scale */
        hlo_builder b = {.at = root};
        return what->scale_index < 0 ? NULL : hlo_build_element(&b, state, what->scale_index);
    }
    hlo_instruction *next = next_of(e, index);
    if (what->mode == RECOMPUTED) {
        hlo_instr_set_operand(root, index, carry(what, next, root));
        return what->next.scale;
    }
    /* Stack the fp8 slice in one array and its scale in another. */
    hlo_builder b = {.at = next};
    hlo_instr_set_operand(next, 1, carry(what, hlo_instr_operand(next, 1), next));
    if (!what->from.scale) return NULL;
    hlo_instruction *all = hlo_build_element(&b, state, what->scale_index);
    hlo_instruction *operands[] = {all,
                                   hlo_build_reshape(&b, what->from.scale, 1, (const int64_t[]){1}),
                                   hlo_instr_operand(next, 2)};
    return hlo_build(&b, HLO_OP_DYNAMIC_UPDATE_SLICE, all->shape, 3, operands);
}

/* ------------------------------------------------------------------------------------- legality */

/* If an element sinks, all its uses are movement and collectives, followed by matmuls whose other
 * operand comes from fp8. Uses in nested loops and branches are included. */

/* The path of movement from an element to its use, last link first. */
typedef struct path {
    const struct path *before;
    const hlo_instruction *link;
} path;

typedef struct walk {
    const region *e;
    const candidate *what;
    uint32_t index;
    unsigned fuel;
    bool matmul; /* a dot uses the value */
} walk;

static bool comes_from_fp8(const walk *w, hlo_instruction *value) {
    hlo_dequantized made;
    if (value->id < w->e->s->known && hlo_fp8_provenance_has(w->e->s->provenance, value))
        return true;
    for (unsigned depth = 0; depth < DEPTH_LIMIT && hlo_chain_link(value); depth++)
        value = hlo_instr_operand(value, 0);
    return hlo_dequantized_read(value, &made);
}

/* True if `value` is an element that was a candidate and does not sink. */
static bool stays_wide(const region *e, const hlo_instruction *value) {
    for (uint32_t i = 0; i < e->called_count; i++) {
        int64_t index = index_of(moved_from(value), e->called[i]->parameters[0]);
        if (index >= 0 && index < e->count) return !e->elements[index].sinks;
    }
    return false;
}

static bool agrees(const walk *w, const hlo_instruction *collective) {
    const candidate *what = w->what;
    if (!what->from.scale) return true;
    if (!hlo_devices_replicated(w->e->s->context, what->from.scale, collective)) return false;
    if (what->mode == INVARIANT || what->mode == PERMUTED) return true;
    const hlo_instruction *varies_with =
        what->mode == STACKED ? hlo_instr_operand(next_of(w->e, w->index), 2) : what->next.scale;
    return hlo_devices_replicated(w->e->s->context, varies_with, collective);
}

/* Finds the granularity of a collective's operand. Returns false if the scale may differ between
 * devices whose parts the collective joins. */
static bool granularity_below_collective(const walk *w, const hlo_instruction *collective,
                                         const hlo_granularity *granularity, hlo_granularity *out) {
    *out = *granularity;
    if (collective->op == HLO_OP_COLLECTIVE_PERMUTE) return true;
    if (collective->op != HLO_OP_ALL_GATHER) return false;
    int64_t along = hlo_instr_ints(collective, HLO_ATTR_DIMENSIONS)->v[0];
    if (granularity->v[along] == 1) return true;
    out->v[along] = hlo_instr_operand(collective, 0)->shape->dims[along];
    return granularity->v[along] >= collective->shape->dims[along] && agrees(w, collective);
}

/* True if the scale does not vary along the contracting dimensions of the dot, or is an f8e8m0fnu
 * scale that varies there as calls for the target require. */
static bool scale_passes(const walk *w, const hlo_instruction *dot, bool right, const path *last) {
    if (!w->what->from.scale || !w->what->dims) return true;
    hlo_granularity granularity, below;
    const hlo_shape *shape = hlo_instr_operand(dot, right)->shape;
    const hlo_ints *contracted = hlo_dot_contracting(dot, right);
    const hlo_scale_info *info = &hlo_scale_modes[HLO_SCALE_VEC32];
    const bool blocks =
        w->what->from.scale->shape->type == info->type && w->e->s->context->target->block_scales;
    if (shape->rank > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < shape->rank; i++) granularity.v[i] = 1;
    for (uint32_t i = 0; contracted && i < contracted->count; i++)
        granularity.v[contracted->v[i]] = !blocks ? shape->dims[contracted->v[i]]
                                          : i + 1 == contracted->count ? info->along
                                                                       : 1;
    for (; last; last = last->before, granularity = below)
        if (hlo_op_is(last->link->op, HLO_COLLECTIVE)
                ? !granularity_below_collective(w, last->link, &granularity, &below)
                : !hlo_granularity_of_operand(last->link, &granularity, &below))
            return false;
    for (uint32_t i = 0; i < w->what->dims->count; i++)
        if (granularity.v[w->what->dims->v[i]] != 1) return false;
    return true;
}

static bool are_uses_legal(walk *w, const hlo_instruction *value, const path *last);

/* Checks the uses of the element `index` of `tuple`. */
static bool are_element_uses_legal(walk *w, const hlo_instruction *tuple, int64_t index,
                                   const path *last) {
    if (tuple == tuple->parent->root) return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        if (use->user->op != HLO_OP_GET_TUPLE_ELEMENT || use->user->pin) return false;
        if (index_of(use->user, tuple) == index && !are_uses_legal(w, use->user, last))
            return false;
    }
    return true;
}

static bool is_callee_legal(walk *w, const hlo_computation *comp, int64_t index, const path *last) {
    return comp && comp->parameter_count == 1 && !comp->parameters[0]->pin &&
           w->e->s->callers[comp->id] &&
           are_element_uses_legal(w, comp->parameters[0], index, last);
}

/* Checks the loops and branches whose parameter is a tuple with the value at `index`. */
static bool are_tuple_uses_legal(walk *w, const hlo_instruction *tuple, int64_t index,
                                 const path *last) {
    if (tuple == tuple->parent->root) return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        if (user->op != HLO_OP_WHILE && user->op != HLO_OP_CONDITIONAL) return false;
        if (hlo_pin_holds(user)) return false;
        if (user->op == HLO_OP_WHILE) { /* the loop must return the element unchanged */
            const hlo_computation *body = hlo_instr_comp(user, HLO_ATTR_BODY);
            if (body->root->op != HLO_OP_TUPLE || body->root->pin || body->parameter_count != 1 ||
                index_of(hlo_instr_operand(body->root, (uint32_t)index), body->parameters[0]) !=
                    index ||
                !is_callee_legal(w, body, index, last) ||
                !is_callee_legal(w, hlo_instr_comp(user, HLO_ATTR_CONDITION), index, last) ||
                !are_element_uses_legal(w, user, index, last))
                return false;
            continue;
        }
        const uint32_t operand = (uint32_t)(use - user->operands);
        if (!is_callee_legal(w, hlo_branch_of(user, operand), index, last)) return false;
    }
    return true;
}

static bool is_legal_use(walk *w, const hlo_use *use, const path *last) {
    const hlo_instruction *user = use->user, *value = use->def;
    if (hlo_pin_holds(user)) return false;
    if (user == user->parent->root && user->op == HLO_OP_TUPLE) {
        if (is_next(w->e, use, w->index)) return true;
        /* The body of an inner loop must return the element unchanged. */
        const hlo_instruction *caller = w->e->s->callers[user->parent->id];
        return caller && caller != w->e->user && caller->op == HLO_OP_WHILE &&
               index_of(value, user->parent->parameters[0]) == use - user->operands;
    }
    if (user->op == HLO_OP_TUPLE) return are_tuple_uses_legal(w, user, use - user->operands, last);
    if (user->op == HLO_OP_DOT) {
        if (user->operand_count != 2) return false;
        uint32_t number = (uint32_t)(use - user->operands);
        hlo_instruction *other = hlo_instr_operand(user, !number);
        w->matmul = true;
        return comes_from_fp8(w, other) && !stays_wide(w->e, other) &&
               scale_passes(w, user, number, last);
    }
    bool moves =
        hlo_chain_link(user) && use == user->operands && hlo_link_moves(user, &w->what->from);
    const bool sends = is_collective(user) && (w->what->dims || agrees(w, user));
    if (!moves && !sends) return false;
    return are_uses_legal(w, user, &(path){last, user});
}

/* True if the fp8 value can replace the wide value in every use. */
static bool are_uses_legal(walk *w, const hlo_instruction *value, const path *last) {
    if (value == value->parent->root) return false;
    for (const hlo_use *use = value->uses; use; use = use->next) {
        if (!w->fuel) return false;
        w->fuel--;
        if (!is_legal_use(w, use, last)) return false;
    }
    return true;
}

/* Sets `sinks` of each element. Iterates to a fixpoint, because an element may sink only if other
 * elements do. Returns true if an element sinks. */
static bool choose(region *e) {
    bool any = false, changes = true;
    for (uint32_t i = 0; i < e->count; i++) {
        candidate *what = &e->elements[i];
        *what = (candidate){.scale_index = -1, .mode = mode_of(e, i)};
        what->sinks = read_element(e, i, what);
        double number;
        hlo_instruction *scale = what->sinks ? what->from.scale : NULL;
        what->carries_scale = scale && (what->mode == STACKED || what->mode == RECOMPUTED ||
                                        what->dims || scale->op != HLO_OP_CONSTANT);
        if (what->carries_scale)
            what->sinks = hlo_scale_is_moderate(e->s->context->scratch, scale) &&
                          (!what->next.scale ||
                           hlo_scale_is_moderate(e->s->context->scratch, what->next.scale));
        if (scale && !what->carries_scale) /* a constant scale is copied to each use */
            what->sinks = hlo_known_number(scale, &number);
        any |= e->elements[i].sinks;
    }
    while (any && changes) {
        any = changes = false;
        for (uint32_t i = 0; i < e->count; i++) {
            candidate *what = &e->elements[i];
            if (!what->sinks) continue;
            walk w = {e, what, i, STEP_LIMIT, false};
            bool legal = true;
            if (what->mode == STACKED) legal = are_element_uses_legal(&w, e->user, i, NULL);
            for (uint32_t c = 0; legal && what->mode != STACKED && c < e->called_count; c++)
                legal = are_element_uses_legal(&w, e->called[c]->parameters[0], i, NULL);
            what->sinks = legal && w.matmul;
            any |= what->sinks;
            changes |= !what->sinks;
        }
    }
    return any;
}

/* --------------------------------------------------------------------------------------- making */

/* Returns the scale in a computation, built before `at`. Returns NULL if there is no scale. */
static hlo_instruction *scale_in(const candidate *what, hlo_instruction *at,
                                 hlo_instruction *tuple) {
    hlo_instruction *scale = what->from.scale;
    hlo_builder b = {.at = at};
    double number;
    if (!scale) return NULL;
    if (what->scale_index >= 0) return hlo_build_element(&b, tuple, what->scale_index);
    hlo_known_number(scale, &number);
    return hlo_build_number(&b, scale->shape->type, number);
}

/* True if the user is a link of the chain from the element to its next value. */
static bool is_on_path_to_next(const region *e, uint32_t index, const hlo_use *use) {
    const candidate *what = &e->elements[index];
    if ((what->mode != STACKED && what->mode != PERMUTED) || use != use->user->operands)
        return false;
    const hlo_instruction *link = next_of(e, index);
    for (; link->op != HLO_OP_GET_TUPLE_ELEMENT; link = hlo_instr_operand(link, 0))
        if (link == use->user) return true;
    return false;
}

/* True if the scale varies along dimension 0 and a dynamic-slice selects one index of dimension 0,
 * and all indices of the other dimensions along which the scale varies. */
static bool slices(const candidate *what, const hlo_instruction *slice,
                   const hlo_instruction *value) {
    if (!what->dims || !what->dims->count || what->dims->v[0] != 0) return false;
    if (slice->op != HLO_OP_DYNAMIC_SLICE || hlo_instr_operand(slice, 0) != value ||
        hlo_instr_operand(slice, 1)->shape->rank)
        return false;
    const hlo_ints *sizes = hlo_instr_ints(slice, HLO_ATTR_DYNAMIC_SLICE_SIZES);
    for (uint32_t i = 1; i < what->dims->count; i++)
        if (sizes->v[what->dims->v[i]] != value->shape->dims[what->dims->v[i]]) return false;
    return sizes->v[0] == 1;
}

/* Changes the type of a slice of the value to fp8, and slices the scale accordingly. */
static void become_sliced(const region *e, uint32_t index, hlo_instruction *slice,
                          hlo_instruction *tuple);

/* Changes the type of a wide value to fp8. Dequantizes the value for all users except the next
 * state of the loop and the links of the chain to this state. `tuple` contains the scale. */
static void become_fp8(const region *e, uint32_t index, hlo_instruction *value,
                       hlo_instruction *tuple, hlo_instruction *scale, const hlo_ints *dims) {
    const candidate *what = &e->elements[index];
    hlo_instruction *wide = NULL, *at = scale ? scale->next : value->next;
    uint32_t first_made = e->s->context->module->next_id;
    retype(what, value);
    for (hlo_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        if (use->user->id >= first_made || is_next(e, use, index)) continue;
        if (is_on_path_to_next(e, index, use)) {
            become_fp8(e, index, use->user, tuple, NULL, dims);
            continue;
        }
        if (!scale && slices(what, use->user, value)) {
            become_sliced(e, index, use->user, tuple);
            continue;
        }
        if (!wide) {
            hlo_instruction *whole = scale ? scale : scale_in(what, at, tuple);
            hlo_builder b = {.at = at};
            wide = hlo_build_convert(&b, value, what->from.to);
            if (whole) {
                whole =
                    hlo_shape_count(whole->shape) == 1
                        ? hlo_build_splat(&b, whole, wide->shape)
                        : hlo_build_broadcast_like(&b, whole, wide->shape, dims->count, dims->v);
                whole = hlo_build_convert(&b, whole, what->from.to);
                wide = hlo_build_binary(&b, what->from.op, wide, whole);
            }
        }
        hlo_instr_set_operand(use->user, (uint32_t)(use - use->user->operands), wide);
    }
}

static void become_sliced(const region *e, uint32_t index, hlo_instruction *slice,
                          hlo_instruction *tuple) {
    const candidate *what = &e->elements[index];
    hlo_instruction *operands[1 + HLO_RULE_ARGS];
    int64_t sizes[HLO_RULE_ARGS];
    hlo_instruction *scale = scale_in(what, slice->next, tuple), *after = scale->next;
    uint32_t rank = what->dims->count;
    operands[0] = scale;
    for (uint32_t i = 0; i < rank; i++) {
        operands[1 + i] = hlo_instr_operand(slice, 1 + (uint32_t)what->dims->v[i]);
        sizes[i] = i ? scale->shape->dims[i] : 1;
    }
    const hlo_shape *one = hlo_shape_array(e->s->context->module, scale->shape->type, rank, sizes);
    hlo_builder b = {.at = after};
    scale = hlo_build_ints(&b, HLO_OP_DYNAMIC_SLICE, one, 1 + rank, operands,
                           HLO_ATTR_DYNAMIC_SLICE_SIZES, rank, sizes);
    /* A reshape that removes dimension 0 of size 1 is also applied to the scale. */
    hlo_instruction *squeeze = slice->use_count == 1 ? slice->uses->user : NULL;
    const hlo_shape *from = slice->shape, *to = squeeze ? squeeze->shape : NULL;
    if (rank == 1 || !squeeze || squeeze->op != HLO_OP_RESHAPE || to->rank + 1 != from->rank ||
        memcmp(from->dims + 1, to->dims, to->rank * sizeof *to->dims) != 0) {
        become_fp8(e, index, slice, tuple, scale, what->dims);
        return;
    }
    retype(what, slice);
    b.at = squeeze->next;
    scale = hlo_build_reshape(&b, scale, rank - 1, sizes + 1);
    hlo_ints *dims =
        hlo_arena_alloc(e->s->context->scratch, sizeof *dims + rank * sizeof dims->v[0]);
    dims->count = rank - 1;
    for (uint32_t i = 1; i < rank; i++) dims->v[i - 1] = what->dims->v[i] - 1;
    become_fp8(e, index, squeeze, tuple, scale, dims);
}

/* Builds the tuple with fp8 values and their scales, and sinks the dequantization. */
static void sink(region *e) {
    e->count_before = e->s->context->module->next_id;
    hlo_instruction **operands =
        hlo_arena_array(e->s->context->scratch, 2 * e->count, sizeof *operands);
    uint32_t count = e->count;
    for (uint32_t i = 0; i < e->count; i++) {
        candidate *what = &e->elements[i];
        hlo_instruction *wide = hlo_instr_operand(e->tuple, i);
        hlo_instruction *scale = NULL;
        operands[i] = what->sinks ? first_value(e, what, wide, &scale) : wide;
        if (!what->sinks || !what->carries_scale) continue;
        what->scale_index = count;
        operands[count++] = scale;
    }
    hlo_builder b = {.at = e->user};
    hlo_instruction *tuple = hlo_build_tuple(&b, count, operands);
    for (uint32_t i = 0; i < e->called_count; i++) {
        hlo_instruction *parameter = e->called[i]->parameters[0];
        parameter->shape = tuple->shape;
        for (hlo_instruction *instr = e->called[i]->first; instr; instr = hlo_instr_next(instr)) {
            const int64_t index = instr->id < e->count_before ? index_of(instr, parameter) : -1;
            if (index >= 0 && e->elements[index].sinks)
                become_fp8(e, (uint32_t)index, instr, parameter, NULL, e->elements[index].dims);
        }
    }
    if (e->user->op == HLO_OP_WHILE) {
        /* Append the scales to the next state of the loop. After the loop, replace an invariant
         * element by its value before the loop, and dequantize any other element, which is now
         * fp8. */
        hlo_instruction *root = e->called[0]->root;
        for (uint32_t i = 0; i < e->count; i++) {
            hlo_instruction *scale = e->elements[i].sinks ? next_value(e, i) : NULL;
            if (scale) hlo_instr_append_operand(root, scale);
        }
        root->shape = e->user->shape = tuple->shape;
        for (hlo_use *use = e->user->uses; use; use = use->next) {
            int64_t index = use->user->id < e->count_before ? index_of(use->user, e->user) : -1;
            if (index < 0 || !e->elements[index].sinks) continue;
            if (e->elements[index].mode == INVARIANT) {
                hlo_instr_replace_uses(use->user, hlo_instr_operand(e->tuple, (uint32_t)index));
                use->user->shape = tuple->shape->elements[index];
            } else {
                become_fp8(e, (uint32_t)index, use->user, e->user, NULL, e->elements[index].dims);
            }
        }
    }
    hlo_instr_set_operand(e->user, e->operand, tuple);
    if (!hlo_instr_user_count(e->tuple)) hlo_instr_remove(e->tuple);
    e->s->context->agreement = NULL; /* the cache describes the tuples before the rewrite */
    e->s->context->changes++;
}

/* ------------------------------------------------------------------------------------- the pass */

static void note_called(void *user, hlo_computation *called) {
    sinker *s = user;
    s->callers[called->id] = s->called[called->id] ? NULL : s->caller;
    s->called[called->id] = true;
}

/* True if all users of a tuple of `count` elements are unpinned get-tuple-elements. */
static bool only_elements_used(const hlo_instruction *tuple, uint32_t count) {
    if (tuple == tuple->parent->root || tuple->shape->type != HLO_TYPE_TUPLE ||
        tuple->shape->rank != count)
        return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        int64_t index = index_of(use->user, tuple);
        if (index < 0 || index >= count || hlo_pin_holds(use->user)) return false;
    }
    return true;
}

static bool add_called(const sinker *s, region *e, hlo_computation *comp) {
    if (!comp || !s->callers[comp->id] || comp->parameter_count != 1 || !comp->root) return false;
    const hlo_instruction *parameter = comp->parameters[0];
    if (!only_elements_used(parameter, e->count) || hlo_pin_has_element_attrs(parameter) ||
        hlo_pin_holds(parameter))
        return false;
    e->called[e->called_count++] = comp;
    return true;
}

static void sink_region(region *e) {
    hlo_arena_mark mark = hlo_arena_here(e->s->context->scratch);
    if (e->tuple->op == HLO_OP_TUPLE && e->count && !hlo_pin_holds(e->tuple) &&
        !hlo_pin_holds(e->user) && !hlo_pin_has_element_attrs(e->tuple) &&
        !hlo_pin_has_element_attrs(e->user)) {
        e->elements = hlo_arena_array(e->s->context->scratch, e->count, sizeof *e->elements);
        if (choose(e)) sink(e);
    }
    hlo_arena_release(e->s->context->scratch, mark);
}

static region region_of(const sinker *s, hlo_instruction *user, uint32_t operand) {
    hlo_instruction *tuple = hlo_instr_operand(user, operand);
    return (region){s, .user = user, .operand = operand, .tuple = tuple,
                    .count = tuple->operand_count};
}

hlo_status hlo_pass_sink(hlo_pass_context *context) {
    hlo_module *module = context->module;
    if (!context->target->fp8) return HLO_OK;
    if (!module->op_counts[HLO_OP_WHILE] && !module->op_counts[HLO_OP_CONDITIONAL]) return HLO_OK;
    sinker s = {.context = context, .known = module->next_id};
    s.provenance = hlo_fp8_provenance_find(module, context->scratch);
    s.callers = hlo_arena_zero(context->scratch, module->next_computation_id * sizeof *s.callers);
    s.called = hlo_arena_zero(context->scratch, module->next_computation_id * sizeof *s.called);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            s.caller = instr;
            hlo_instr_visit_called(instr, note_called, &s);
        }
    /* Visit callers before callees. */
    for (hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            if (instr->op == HLO_OP_WHILE) {
                region e = region_of(&s, instr, 0);
                const hlo_instruction *root = hlo_instr_comp(instr, HLO_ATTR_BODY)->root;
                if (add_called(&s, &e, hlo_instr_comp(instr, HLO_ATTR_BODY)) &&
                    add_called(&s, &e, hlo_instr_comp(instr, HLO_ATTR_CONDITION)) &&
                    root->op == HLO_OP_TUPLE && hlo_instr_user_count(root) == 1 &&
                    !hlo_pin_has_element_attrs(root) && !hlo_pin_holds(root) &&
                    only_elements_used(instr, e.count) && root->operand_count == e.count)
                    sink_region(&e);
            }
            for (uint32_t i = 1; instr->op == HLO_OP_CONDITIONAL && i < instr->operand_count; i++) {
                region e = region_of(&s, instr, i);
                if (add_called(&s, &e, hlo_branch_of(instr, i))) sink_region(&e);
            }
        }
    return HLO_OK;
}
