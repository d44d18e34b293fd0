/* Takes dequantisations into the loops and branches that their matmuls are in. What is handed in is
 * the fp8 value then, and its scale beside it.
 *
 * Needs: calls inlined.
 * Keeps: what a loop changes; what is used for anything but matmuls whose other operand comes from
 *        fp8 as well; computations with several callers; shardings.
 * Numerics: exact: the same is computed, where it is used. A slice of values that have a scale for
 *           each slice is scaled after slicing.
 * Tests: testdata/passes/sink-dequantise/ */
#include "passes/movement.h"
#include "passes/passes.h"
#include "passes/walk.h"

enum { DEPTH_LIMIT = 64, CALLED_LIMIT = 2 };

/* An element that is handed in dequantised. */
typedef struct element {
    bool sinks;
    bool slices; /* the scale has one element for each slice along dimension 0 */
    bool used, fails;
    hlo_dequantised from;
    int64_t scale_index; /* where it is handed in; -1: a constant, or none */
} element;

/* A tuple that is handed to computations of which it is the parameter. */
typedef struct entrance {
    hlo_pass_context *context;
    const unsigned char *fp8; /* by id, of what was there when the pass began */
    uint32_t known;           /* ids below are */
    hlo_instr *user;          /* the loop, or the conditional */
    uint32_t operand;         /* of it */
    hlo_instr *tuple;
    hlo_computation *called[CALLED_LIMIT];
    uint32_t called_count, count;
    uint32_t count_before; /* ids from here on are of what was made */
    element *elements;
} entrance;

/* -------------------------------------------------------------------------------------- reading */

/* Times or over a vector, one for each slice along dimension 0. */
static bool reads_slices(hlo_instr *value, hlo_dequantised *out) {
    if (value->op != HLO_OP_MULTIPLY && value->op != HLO_OP_DIVIDE) return false;
    for (uint32_t i = 0; i < (value->op == HLO_OP_MULTIPLY ? 2 : 1); i++) {
        hlo_instr *factor = hlo_instr_operand(value, !i);
        if (factor->op != HLO_OP_BROADCAST || hlo_instr_operand(factor, 0)->shape->rank != 1 ||
            hlo_instr_ints(factor, HLO_ATTR_DIMENSIONS)->v[0] != 0 ||
            !hlo_dequantised_read(hlo_instr_operand(value, i), out) || out->scale)
            continue;
        out->scale = hlo_instr_operand(factor, 0);
        out->op = value->op;
        return true;
    }
    return false;
}

/* It is made where it is used, rather than handed in. */
static bool is_constant(const hlo_instr *scale) {
    return scale && scale->op == HLO_OP_CONSTANT;
}

static void read_element(element *e, hlo_instr *value) {
    double number;
    *e = (element){.scale_index = -1};
    e->sinks = hlo_dequantised_read(value, &e->from);
    if (!e->sinks) e->sinks = e->slices = reads_slices(value, &e->from);
    if (e->sinks && is_constant(e->from.scale))
        e->sinks = !e->slices && hlo_constant_number(e->from.scale, &number);
}

static int64_t index_of(const hlo_instr *value, const hlo_instr *tuple) {
    if (value->op != HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_operand(value, 0) != tuple) return -1;
    return hlo_instr_int(value, HLO_ATTR_INDEX, -1);
}

static bool is_body(const entrance *e, const hlo_computation *comp) {
    return e->user->op == HLO_OP_WHILE && comp == e->called[0];
}

/* Comes from fp8 in the computation, or from an element that sinks. */
static bool from_fp8(const entrance *e, hlo_instr *value) {
    hlo_dequantised made;
    if (value->id < e->known && e->fp8[value->id] & HLO_FROM_FP8) return true;
    for (unsigned depth = 0; depth < DEPTH_LIMIT && hlo_chain_link(value); depth++)
        value = hlo_instr_operand(value, 0);
    if (hlo_dequantised_read(value, &made)) return true;
    for (uint32_t i = 0; i < e->called_count; i++) {
        int64_t index = index_of(value, e->called[i]->parameters[0]);
        if (index >= 0) return e->elements[index].sinks;
    }
    return false;
}

static bool takes_a_slice(const hlo_instr *user, const hlo_instr *value) {
    return user->op == HLO_OP_DYNAMIC_SLICE && hlo_instr_operand(user, 0) == value &&
           !hlo_instr_operand(user, 1)->shape->rank &&
           hlo_instr_ints(user, HLO_ATTR_DYNAMIC_SLICE_SIZES)->v[0] == 1;
}

/* Whether movement, at once or after a slice, and then matmuls with something else from fp8 are all
 * that uses the value. */
static bool serves(const entrance *e, const element *what, const hlo_instr *value, bool whole,
                   unsigned depth) {
    if (!depth || value == value->parent->root) return false;
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instr *user = use->user;
        if (user == value->parent->root && is_body(e, value->parent)) continue;
        bool slice = whole && what->slices;
        if (slice && !takes_a_slice(user, value)) return false;
        if (user->op == HLO_OP_DOT) {
            if (user->operand_count != 2 || !from_fp8(e, hlo_instr_operand(user, 0)) ||
                !from_fp8(e, hlo_instr_operand(user, 1)))
                return false;
        } else if (!hlo_chain_link(user) || hlo_instr_operand(user, 0) != value ||
                   user->operands + 0 != use || !hlo_link_moves(user, &what->from) ||
                   !serves(e, what, user, false, depth - 1)) {
            return false;
        }
    }
    return true;
}

/* Of a loop: the body hands it on as it came in. */
static bool stays(const entrance *e, uint32_t index) {
    if (e->user->op != HLO_OP_WHILE) return true;
    const hlo_instr *root = e->called[0]->root;
    return index_of(hlo_instr_operand(root, index), e->called[0]->parameters[0]) == index;
}

/* Takes back what does not serve in a computation, and notes what is used. */
static void judge(entrance *e, uint32_t which) {
    const hlo_instr *parameter = e->called[which]->parameters[0];
    bool body = is_body(e, e->called[which]);
    for (const hlo_use *use = parameter->uses; use; use = use->next) {
        element *what = &e->elements[index_of(use->user, parameter)];
        if (!what->sinks) continue;
        what->used |= use->user->use_count > body;
        what->fails |= !serves(e, what, use->user, true, DEPTH_LIMIT);
    }
}

/* Which elements sink: each may count on the others, until one of them does not. */
static bool choose(entrance *e) {
    bool any = false, changes = true;
    for (uint32_t i = 0; i < e->count; i++) {
        read_element(&e->elements[i], hlo_instr_operand(e->tuple, i));
        e->elements[i].sinks &= stays(e, i);
        any |= e->elements[i].sinks;
    }
    while (any && changes) {
        any = changes = false;
        for (uint32_t i = 0; i < e->called_count; i++) judge(e, i);
        for (uint32_t i = 0; i < e->count; i++) {
            element *what = &e->elements[i];
            if (!what->sinks) continue;
            what->sinks = what->used && !what->fails;
            any |= what->sinks;
            changes |= !what->sinks;
        }
    }
    return any;
}

/* --------------------------------------------------------------------------------------- making */

static hlo_instr *insert(hlo_instr *before, hlo_op op, const hlo_shape *shape, uint32_t count,
                         hlo_instr *const *operands) {
    hlo_instr *made = hlo_instr_new(before->parent, before, op, shape, count, operands, NULL);
    made->offset = before->offset;
    return made;
}

static hlo_instr *take(hlo_instr *before, hlo_instr *tuple, int64_t index, const hlo_shape *shape) {
    hlo_instr *made = insert(before, HLO_OP_GET_TUPLE_ELEMENT, shape, 1, &tuple);
    hlo_instr_set_attr(made, (hlo_attr){.id = HLO_ATTR_INDEX, .u.i = index});
    return made;
}

/* `fp8` dequantised, with what of the scale is for it. */
static hlo_instr *dequantise(hlo_instr *before, const hlo_dequantised *from, hlo_instr *fp8,
                             hlo_instr *scale) {
    hlo_module *module = before->parent->module;
    const hlo_shape *wide = hlo_shape_retype(module, fp8->shape, from->to);
    hlo_instr *value = insert(before, HLO_OP_CONVERT, wide, 1, &fp8);
    if (!scale) return value;
    if (scale->shape->rank)
        scale = insert(before, HLO_OP_RESHAPE, hlo_shape_array(module, scale->shape->type, 0, NULL),
                       1, &scale);
    hlo_instr *operands[] = {value, insert(before, HLO_OP_BROADCAST, wide, 1, &scale)};
    hlo_instr_set_ints(operands[1], HLO_ATTR_DIMENSIONS, 0, NULL);
    return insert(before, from->op, wide, 2, operands);
}

/* The scale in a computation; NULL: none. */
static hlo_instr *scale_in(const element *what, hlo_instr *before, hlo_instr *parameter) {
    hlo_instr *scale = what->from.scale;
    if (!scale || what->scale_index >= 0)
        return scale ? take(before, parameter, what->scale_index, scale->shape) : NULL;
    double number;
    hlo_constant_number(scale, &number);
    return hlo_constant_scalar(before->parent, before, scale->shape->type, number);
}

/* `value`, which was wide, is fp8 from here on: everything but the loop's next state uses what it
 * is dequantised to. */
static void become_fp8(const entrance *e, const element *what, hlo_instr *value, hlo_instr *scale) {
    hlo_instr *before = scale ? scale->next : value->next;
    value->shape = hlo_shape_retype(value->parent->module, value->shape, what->from.from);
    hlo_instr *wide = dequantise(before, &what->from, value, scale);
    for (hlo_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        hlo_instr *user = use->user;
        bool state = user == user->parent->root && is_body(e, user->parent);
        if (state || (user->op == HLO_OP_CONVERT && user->id >= e->count_before)) continue;
        for (uint32_t i = 0; i < user->operand_count; i++)
            if (&user->operands[i] == use) hlo_instr_set_operand(user, i, wide);
    }
}

/* The scale's slices are taken where the value's are. */
static void sink_slices(const entrance *e, const element *what, hlo_instr *value) {
    value->shape = hlo_shape_retype(e->context->module, value->shape, what->from.from);
    for (hlo_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        hlo_instr *slice = use->user;
        if (slice->op != HLO_OP_DYNAMIC_SLICE) continue;
        hlo_instr *scale = scale_in(what, slice->next, hlo_instr_operand(value, 0));
        hlo_instr *operands[] = {scale, hlo_instr_operand(slice, 1)};
        const hlo_shape *one =
            hlo_shape_array(e->context->module, scale->shape->type, 1, (int64_t[]){1});
        scale = insert(scale->next, HLO_OP_DYNAMIC_SLICE, one, 2, operands);
        hlo_instr_set_ints(scale, HLO_ATTR_DYNAMIC_SLICE_SIZES, 1, (int64_t[]){1});
        become_fp8(e, what, slice, scale);
    }
}

static void sink_in(const entrance *e, hlo_computation *comp) {
    hlo_instr *parameter = comp->parameters[0];
    for (hlo_instr *instr = comp->first; instr; instr = instr->next) {
        int64_t index = instr->id < e->count_before ? index_of(instr, parameter) : -1;
        if (index < 0 || !e->elements[index].sinks) continue;
        const element *what = &e->elements[index];
        if (!hlo_instr_user_count(instr))
            instr->shape = what->from.fp8->shape;
        else if (what->slices)
            sink_slices(e, what, instr);
        else
            become_fp8(e, what, instr, scale_in(what, instr->next, parameter));
    }
}

/* The tuple with fp8 values, and scales behind. */
static hlo_instr *make_tuple(entrance *e) {
    hlo_arena *arena = e->context->scratch;
    hlo_instr **operands = hlo_arena_array(arena, 2 * e->count, sizeof *operands);
    const hlo_shape **shapes = hlo_arena_array(arena, 2 * e->count, sizeof *shapes);
    uint32_t count = e->count;
    for (uint32_t i = 0; i < e->count; i++) {
        element *what = &e->elements[i];
        operands[i] = what->sinks ? what->from.fp8 : hlo_instr_operand(e->tuple, i);
        if (!what->sinks || !what->from.scale || is_constant(what->from.scale)) continue;
        what->scale_index = count;
        operands[count++] = what->from.scale;
    }
    for (uint32_t i = 0; i < count; i++) shapes[i] = operands[i]->shape;
    const hlo_shape *shape = hlo_shape_tuple(e->context->module, count, shapes);
    return insert(e->user, HLO_OP_TUPLE, shape, count, operands);
}

/* The loop's next state has the scales, too, and after it there is what went in. */
static void finish_loop(const entrance *e, const hlo_instr *tuple) {
    hlo_instr *root = e->called[0]->root, *parameter = e->called[0]->parameters[0];
    for (uint32_t i = e->count; i < tuple->operand_count; i++)
        hlo_instr_append_operand(root, take(root, parameter, i, tuple->shape->elements[i]));
    root->shape = e->user->shape = tuple->shape;
    for (hlo_use *use = e->user->uses; use; use = use->next) {
        int64_t index = index_of(use->user, e->user);
        if (!e->elements[index].sinks) continue;
        hlo_instr_replace_uses(use->user, hlo_instr_operand(e->tuple, (uint32_t)index));
        use->user->shape = tuple->shape->elements[index];
    }
}

static void sink(entrance *e) {
    e->count_before = e->context->module->next_id;
    hlo_instr *tuple = make_tuple(e);
    for (uint32_t i = 0; i < e->called_count; i++) {
        e->called[i]->parameters[0]->shape = tuple->shape;
        sink_in(e, e->called[i]);
    }
    if (e->user->op == HLO_OP_WHILE) finish_loop(e, tuple);
    hlo_instr_set_operand(e->user, e->operand, tuple);
    if (!hlo_instr_user_count(e->tuple)) hlo_instr_remove(e->tuple);
    e->context->changes++;
}

/* ------------------------------------------------------------------------------------- the pass */

typedef struct sinker {
    hlo_pass_context *context;
    const unsigned char *fp8; /* by id, below `known` */
    uint32_t known;
    uint32_t *callers; /* by computation id */
} sinker;

static void count_caller(void *user, hlo_computation *called) {
    ((uint32_t *)user)[called->id]++;
}

/* An attribute that speaks of each element of a tuple. */
static bool speaks_of_elements(const hlo_instr *instr) {
    return hlo_instr_attr(instr, HLO_ATTR_SHARDING) || hlo_instr_attr(instr, HLO_ATTR_ORIGIN);
}

/* Of a tuple of `count` elements, which a module that was not verified need not be. */
static bool only_elements_used(const hlo_instr *tuple, uint32_t count) {
    if (tuple == tuple->parent->root || tuple->shape->type != HLO_TYPE_TUPLE ||
        tuple->shape->rank != count)
        return false;
    for (const hlo_use *use = tuple->uses; use; use = use->next) {
        int64_t index = index_of(use->user, tuple);
        if (index < 0 || index >= count) return false;
    }
    return true;
}

static bool add_called(const sinker *s, entrance *e, hlo_computation *comp) {
    if (!comp || s->callers[comp->id] != 1 || comp->parameter_count != 1 || !comp->root)
        return false;
    const hlo_instr *parameter = comp->parameters[0];
    if (!only_elements_used(parameter, e->count) || speaks_of_elements(parameter)) return false;
    e->called[e->called_count++] = comp;
    return true;
}

static void enter(entrance *e) {
    hlo_arena_mark mark = hlo_arena_here(e->context->scratch);
    if (e->tuple->op == HLO_OP_TUPLE && e->count && !speaks_of_elements(e->tuple) &&
        !speaks_of_elements(e->user)) {
        e->elements = hlo_arena_array(e->context->scratch, e->count, sizeof *e->elements);
        if (choose(e)) sink(e);
    }
    hlo_arena_release(e->context->scratch, mark);
}

static entrance entrance_of(const sinker *s, hlo_instr *user, uint32_t operand) {
    hlo_instr *tuple = hlo_instr_operand(user, operand);
    return (entrance){.context = s->context,
                      .fp8 = s->fp8,
                      .known = s->known,
                      .user = user,
                      .operand = operand,
                      .tuple = tuple,
                      .count = tuple->operand_count};
}

static void visit_loop(const sinker *s, hlo_instr *loop) {
    entrance e = entrance_of(s, loop, 0);
    hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    if (!add_called(s, &e, body) || !add_called(s, &e, hlo_instr_comp(loop, HLO_ATTR_CONDITION)))
        return;
    if (body->root->op == HLO_OP_TUPLE && hlo_instr_user_count(body->root) == 1 &&
        !speaks_of_elements(body->root) && only_elements_used(loop, e.count) &&
        body->root->operand_count == e.count)
        enter(&e);
}

static void visit_branches(const sinker *s, hlo_instr *conditional) {
    const hlo_attr *list = hlo_instr_attr(conditional, HLO_ATTR_BRANCH_COMPUTATIONS);
    for (uint32_t i = 1; i < conditional->operand_count; i++) {
        entrance e = entrance_of(s, conditional, i);
        hlo_computation *branch =
            list ? (i <= list->u.comps->count ? list->u.comps->v[i - 1] : NULL)
                 : hlo_instr_comp(conditional,
                                  i == 1 ? HLO_ATTR_TRUE_COMPUTATION : HLO_ATTR_FALSE_COMPUTATION);
        if (add_called(s, &e, branch)) enter(&e);
    }
}

hlo_status hlo_pass_sink(hlo_pass_context *context) {
    hlo_module *module = context->module;
    if (!hlo_target_find(context->target.sm)->fp8) return HLO_OK;
    if (!module->op_counts[HLO_OP_WHILE] && !module->op_counts[HLO_OP_CONDITIONAL]) return HLO_OK;
    sinker s = {.context = context, .known = module->next_id};
    s.fp8 = hlo_walk_fp8(module, context->scratch);
    s.callers = hlo_arena_zero(context->scratch, module->next_computation_id * sizeof *s.callers);
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instr *instr = comp->first; instr; instr = instr->next)
            hlo_instr_visit_called(instr, count_caller, s.callers);
    /* Callers before what they call. */
    for (hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (hlo_instr *instr = comp->first; instr; instr = instr->next) {
            if (instr->op == HLO_OP_WHILE) visit_loop(&s, instr);
            if (instr->op == HLO_OP_CONDITIONAL) visit_branches(&s, instr);
        }
    return HLO_OK;
}
