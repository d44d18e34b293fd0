/* Sinks dequantizations into the loops and branches of their matmuls: the fp8 value enters these
 * instead, with its scale beside it. Values that a loop recomputes in each iteration, permutes
 * among devices, or stacks in an array sink too.
 *
 * Needs: calls inlined.
 * Keeps: pinned instructions, but for loops and branches with effects in them; values with uses
 * other than matmuls whose other operand comes from fp8 as well; computations with several callers;
 * shardings. Numerics: exact: each value is computed from the same operands, at its use. A slice of
 * values that have a scale for each slice is scaled after slicing. Tests:
 * testdata/passes/sink-dequantize/ */
#include "passes/transform/sink_dequantize.h"
#include "passes/analysis/pin.h"
#include <string.h>

#include "ir/module/known.h"
#include "passes/passes.h"

/* --------------------------------------------------------------------------------------- making */

/* Dequantizes `fp8` by `scale`. */
static hlo_instr *dequantize(hlo_instr *before, const hlo_dequantized *from, const hlo_ints *dims,
                             hlo_instr *fp8, hlo_instr *scale) {
    const hlo_shape *wide = hlo_shape_retype(before->parent->module, fp8->shape, from->to);
    hlo_instr *value = hlo_sink_insert(before, HLO_OP_CONVERT, wide, 1, &fp8);
    if (!scale) return value;
    bool one = hlo_shape_count(scale->shape) == 1;
    if (one && scale->shape->rank) scale = hlo_sink_reshape(before, scale, 0, NULL);
    hlo_instr *operands[] = {value, hlo_sink_broadcast(before, scale, wide, one ? NULL : dims)};
    return hlo_sink_insert(before, from->op, wide, 2, operands);
}

/* Makes the scale available in a computation; NULL: there is none. */
static hlo_instr *scale_in(const hlo_sink_candidate *what, hlo_instr *before, hlo_instr *tuple) {
    hlo_instr *scale = what->from.scale;
    if (!scale || what->scale_index >= 0)
        return scale ? hlo_sink_take(before, tuple, what->scale_index) : NULL;
    double number;
    hlo_known_number(scale, &number);
    return hlo_constant_scalar(before->parent, before, scale->shape->type, number);
}

/* True if the user is a link of the chain from the element to its next value. */
static bool is_on_path_to_next(const hlo_sink_region *e, uint32_t index, const hlo_use *use) {
    if (!e->elements[index].mode->links || use != use->user->operands) return false;
    const hlo_instr *link = hlo_sink_next(e, index);
    for (; link->op != HLO_OP_GET_TUPLE_ELEMENT; link = hlo_instr_operand(link, 0))
        if (link == use->user) return true;
    return false;
}

/* True if a dynamic-slice takes one index of dimension 0, along which the scale varies, and all of
 * the other dimensions along which it varies. */
static bool slices(const hlo_sink_candidate *what, const hlo_instr *slice, const hlo_instr *value) {
    if (!what->dims || !what->dims->count || what->dims->v[0] != 0) return false;
    if (slice->op != HLO_OP_DYNAMIC_SLICE || hlo_instr_operand(slice, 0) != value ||
        hlo_instr_operand(slice, 1)->shape->rank)
        return false;
    const hlo_ints *sizes = hlo_instr_ints(slice, HLO_ATTR_DYNAMIC_SLICE_SIZES);
    for (uint32_t i = 1; i < what->dims->count; i++)
        if (sizes->v[what->dims->v[i]] != value->shape->dims[what->dims->v[i]]) return false;
    return sizes->v[0] == 1;
}

/* Retypes a slice of the value, with the corresponding slice of the scale. */
static void become_sliced(const hlo_sink_region *e, uint32_t index, hlo_instr *slice,
                          hlo_instr *tuple);

/* Retypes a wide value to fp8, and dequantizes it for all users but the loop's next state and the
 * links of the chain to it. `tuple` holds the scale. */
static void become_fp8(const hlo_sink_region *e, uint32_t index, hlo_instr *value, hlo_instr *tuple,
                       hlo_instr *scale, const hlo_ints *dims) {
    const hlo_sink_candidate *what = &e->elements[index];
    hlo_instr *wide = NULL, *before = scale ? scale->next : value->next;
    uint32_t first_made = e->context->module->next_id;
    hlo_sink_retype(what, value);
    for (hlo_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        if (use->user->id >= first_made || hlo_sink_is_next(e, use, index)) continue;
        if (is_on_path_to_next(e, index, use)) {
            become_fp8(e, index, use->user, tuple, NULL, dims);
            continue;
        }
        if (!scale && slices(what, use->user, value)) {
            become_sliced(e, index, use->user, tuple);
            continue;
        }
        if (!wide) {
            hlo_instr *whole = scale ? scale : scale_in(what, before, tuple);
            wide = dequantize(before, &what->from, dims, value, whole);
        }
        hlo_instr_set_operand(use->user, (uint32_t)(use - use->user->operands), wide);
    }
}

/* True for a reshape that removes dimension 0, of one element. */
static bool is_squeeze(const hlo_instr *instr) {
    const hlo_shape *from = hlo_instr_operand(instr, 0)->shape, *to = instr->shape;
    if (instr->op != HLO_OP_RESHAPE || to->rank + 1 != from->rank) return false;
    return !memcmp(from->dims + 1, to->dims, to->rank * sizeof *to->dims);
}

static const hlo_ints *squeezed_dims(const hlo_sink_region *e, const hlo_ints *dims) {
    hlo_ints *left =
        hlo_arena_zero(e->context->scratch, sizeof *left + dims->count * sizeof dims->v[0]);
    for (uint32_t i = 1; i < dims->count; i++) left->v[left->count++] = dims->v[i] - 1;
    return left;
}

static void become_sliced(const hlo_sink_region *e, uint32_t index, hlo_instr *slice,
                          hlo_instr *tuple) {
    const hlo_sink_candidate *what = &e->elements[index];
    hlo_instr *operands[1 + HLO_RULE_ARGS];
    int64_t sizes[HLO_RULE_ARGS];
    hlo_instr *scale = scale_in(what, slice->next, tuple), *after = scale->next;
    uint32_t rank = what->dims->count;
    operands[0] = scale;
    for (uint32_t i = 0; i < rank; i++) {
        operands[1 + i] = hlo_instr_operand(slice, 1 + (uint32_t)what->dims->v[i]);
        sizes[i] = i ? scale->shape->dims[i] : 1;
    }
    const hlo_shape *one = hlo_shape_array(e->context->module, scale->shape->type, rank, sizes);
    scale = hlo_sink_insert(after, HLO_OP_DYNAMIC_SLICE, one, 1 + rank, operands);
    hlo_instr_set_ints(scale, HLO_ATTR_DYNAMIC_SLICE_SIZES, rank, sizes);
    hlo_instr *squeeze = slice->uses ? slice->uses->user : NULL;
    if (rank == 1 || slice->use_count != 1 || !is_squeeze(squeeze)) {
        become_fp8(e, index, slice, tuple, scale, what->dims);
        return;
    }
    hlo_sink_retype(what, slice);
    scale = hlo_sink_reshape(squeeze->next, scale, rank - 1, sizes + 1);
    become_fp8(e, index, squeeze, tuple, scale, squeezed_dims(e, what->dims));
}

static void sink_in(const hlo_sink_region *e, hlo_computation *comp) {
    hlo_instr *parameter = comp->parameters[0];
    for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
        int64_t index = instr->id < e->count_before ? hlo_sink_index(instr, parameter) : -1;
        if (index >= 0 && e->elements[index].sinks)
            become_fp8(e, (uint32_t)index, instr, parameter, NULL, e->elements[index].dims);
    }
}

/* Makes the tuple with fp8 values, and appends the scales. */
static hlo_instr *make_tuple(hlo_sink_region *e) {
    hlo_arena *arena = e->context->scratch;
    hlo_instr **operands = hlo_arena_array(arena, 2 * e->count, sizeof *operands);
    const hlo_shape **shapes = hlo_arena_array(arena, 2 * e->count, sizeof *shapes);
    uint32_t count = e->count;
    for (uint32_t i = 0; i < e->count; i++) {
        hlo_sink_candidate *what = &e->elements[i];
        hlo_instr *wide = hlo_instr_operand(e->tuple, i);
        hlo_instr *scale;
        operands[i] = what->sinks ? what->mode->first(e, what, wide, &scale) : wide;
        if (!what->sinks || !what->carries_scale) continue;
        what->scale_index = count;
        operands[count++] = scale;
    }
    for (uint32_t i = 0; i < count; i++) shapes[i] = operands[i]->shape;
    const hlo_shape *shape = hlo_shape_tuple(e->context->module, count, shapes);
    return hlo_sink_insert(e->user, HLO_OP_TUPLE, shape, count, operands);
}

/* Appends the scales to the loop's next state. After the loop, an invariant element is replaced by
 * its value before the loop; any other is fp8, and is dequantized. */
static void finish_loop(const hlo_sink_region *e, const hlo_instr *tuple) {
    hlo_instr *root = e->called[0]->root;
    for (uint32_t i = 0; i < e->count; i++) {
        hlo_instr *scale = e->elements[i].sinks ? e->elements[i].mode->next(e, i) : NULL;
        if (scale) hlo_instr_append_operand(root, scale);
    }
    root->shape = e->user->shape = tuple->shape;
    for (hlo_use *use = e->user->uses; use; use = use->next) {
        int64_t index = use->user->id < e->count_before ? hlo_sink_index(use->user, e->user) : -1;
        if (index < 0 || !e->elements[index].sinks) continue;
        if (e->elements[index].mode->lasts) {
            hlo_instr_replace_uses(use->user, hlo_instr_operand(e->tuple, (uint32_t)index));
            use->user->shape = tuple->shape->elements[index];
        } else {
            become_fp8(e, (uint32_t)index, use->user, e->user, NULL, e->elements[index].dims);
        }
    }
}

static void sink(hlo_sink_region *e) {
    e->count_before = e->context->module->next_id;
    hlo_instr *tuple = make_tuple(e);
    for (uint32_t i = 0; i < e->called_count; i++) {
        e->called[i]->parameters[0]->shape = tuple->shape;
        sink_in(e, e->called[i]);
    }
    if (e->user->op == HLO_OP_WHILE) finish_loop(e, tuple);
    hlo_instr_set_operand(e->user, e->operand, tuple);
    if (!hlo_instr_user_count(e->tuple)) hlo_instr_remove(e->tuple);
    e->context->agreement = NULL; /* it describes the tuples before the rewrite */
    e->context->changes++;
}

/* ------------------------------------------------------------------------------------- the pass */

typedef struct sinker {
    hlo_pass_context *context;
    const hlo_fp8_provenance *provenance;
    uint32_t known;      /* instructions of the input have lower ids */
    hlo_instr **callers; /* by computation id: the only caller; NULL: there is none, or several */
    bool *called;        /* by computation id */
    hlo_instr *caller;   /* the instruction being visited */
} sinker;

static void note_called(void *user, hlo_computation *called) {
    sinker *s = user;
    s->callers[called->id] = s->called[called->id] ? NULL : s->caller;
    s->called[called->id] = true;
}

/* True if all users of a tuple of `count` elements are unpinned get-tuple-elements. */
static bool only_elements_used(const hlo_instr *tuple, uint32_t count) {
    if (tuple == tuple->parent->root || tuple->shape->type != HLO_TYPE_TUPLE ||
        tuple->shape->rank != count)
        return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        int64_t index = hlo_sink_index(use->user, tuple);
        if (index < 0 || index >= count || hlo_pin_holds(use->user)) return false;
    }
    return true;
}

static bool add_called(const sinker *s, hlo_sink_region *e, hlo_computation *comp) {
    if (!comp || !s->callers[comp->id] || comp->parameter_count != 1 || !comp->root) return false;
    const hlo_instr *parameter = comp->parameters[0];
    if (!only_elements_used(parameter, e->count) || hlo_pin_has_element_attrs(parameter) ||
        hlo_pin_holds(parameter))
        return false;
    e->called[e->called_count++] = comp;
    return true;
}

static void sink_region(hlo_sink_region *e) {
    hlo_arena_mark mark = hlo_arena_here(e->context->scratch);
    if (e->tuple->op == HLO_OP_TUPLE && e->count && !hlo_pin_holds(e->tuple) &&
        !hlo_pin_holds(e->user) && !hlo_pin_has_element_attrs(e->tuple) &&
        !hlo_pin_has_element_attrs(e->user)) {
        e->elements = hlo_arena_array(e->context->scratch, e->count, sizeof *e->elements);
        if (hlo_sink_choose(e)) sink(e);
    }
    hlo_arena_release(e->context->scratch, mark);
}

static hlo_sink_region region_of(const sinker *s, hlo_instr *user, uint32_t operand) {
    hlo_instr *tuple = hlo_instr_operand(user, operand);
    return (hlo_sink_region){.context = s->context,
                             .provenance = s->provenance,
                             .callers = s->callers,
                             .known = s->known,
                             .user = user,
                             .operand = operand,
                             .tuple = tuple,
                             .count = tuple->operand_count};
}

static void visit_loop(const sinker *s, hlo_instr *loop) {
    hlo_sink_region e = region_of(s, loop, 0);
    hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    if (!add_called(s, &e, body) || !add_called(s, &e, hlo_instr_comp(loop, HLO_ATTR_CONDITION)))
        return;
    if (body->root->op == HLO_OP_TUPLE && hlo_instr_user_count(body->root) == 1 &&
        !hlo_pin_has_element_attrs(body->root) && !hlo_pin_holds(body->root) &&
        only_elements_used(loop, e.count) && body->root->operand_count == e.count)
        sink_region(&e);
}

static void visit_branches(const sinker *s, hlo_instr *conditional) {
    const hlo_attr *list = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    for (uint32_t i = 1; i < conditional->operand_count; i++) {
        hlo_sink_region e = region_of(s, conditional, i);
        hlo_computation *branch =
            list ? (i <= list->u.comps->count ? list->u.comps->v[i - 1] : NULL)
                 : hlo_instr_comp(conditional,
                                  i == 1 ? HLO_ATTR_TRUE_COMPUTATION : HLO_ATTR_FALSE_COMPUTATION);
        if (add_called(s, &e, branch)) sink_region(&e);
    }
}

hlo_status hlo_pass_sink(hlo_pass_context *context) {
    hlo_module *module = context->module;
    if (!hlo_target_find(context->target.sm)->fp8) return HLO_OK;
    if (!module->op_counts[HLO_OP_WHILE] && !module->op_counts[HLO_OP_CONDITIONAL]) return HLO_OK;
    sinker s = {.context = context, .known = module->next_id};
    s.provenance = hlo_fp8_provenance_find(module, context->scratch);
    s.callers = hlo_arena_zero(context->scratch, module->next_computation_id * sizeof *s.callers);
    s.called = hlo_arena_zero(context->scratch, module->next_computation_id * sizeof *s.called);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            s.caller = instr;
            hlo_instr_visit_called(instr, note_called, &s);
        }
    /* Callers before callees. */
    for (hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            if (instr->op == HLO_OP_WHILE) visit_loop(&s, instr);
            if (instr->op == HLO_OP_CONDITIONAL) visit_branches(&s, instr);
        }
    return HLO_OK;
}
