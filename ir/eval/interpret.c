/* SPDX-License-Identifier: Apache-2.0 */
/* Runs applied computations that region.c does not support, because they have arrays of several
 * elements or loops: one instruction after the other, for one element at a time. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/module/known.h"

/* The leaves of a value, in row-major order. Tokens have no leaf. */
typedef void **value;

struct hlo_interpreter {
    hlo_call *call;
    const hlo_computation *applied;
    value *values; /* by instruction id. A computation never calls itself, so it is active once */
};

enum { MAX_DEPTH = 32, MAX_STEPS = 1 << 16 };

const hlo_computation *hlo_region_branch(const hlo_instruction *instr, uint32_t index) {
    const hlo_attr *list = hlo_instr_attr(instr, HLO_ATTR_BRANCH_COMPUTATIONS);
    if (instr->op != HLO_OP_CONDITIONAL || index + 1 >= instr->operand_count) return NULL;
    if (list) return list->u.comps->v[index];
    return hlo_instr_comp(instr, index ? HLO_ATTR_FALSE_COMPUTATION : HLO_ATTR_TRUE_COMPUTATION);
}

/* -------------------------------------------------------------------------------------- refusal */

static bool is_known(const hlo_literal *literal, const hlo_shape *shape) {
    for (uint32_t i = 0; shape->type == HLO_TYPE_TUPLE && i < shape->rank; i++)
        if (!is_known(literal->elements[i], shape->elements[i])) return false;
    return shape->type == HLO_TYPE_TUPLE || !literal->elided;
}

static bool is_static(const hlo_shape *shape) {
    for (uint32_t i = 0; shape->type == HLO_TYPE_TUPLE && i < shape->rank; i++)
        if (!is_static(shape->elements[i])) return false;
    return !hlo_shape_is_array(shape) ||
           (!shape->dynamic && shape->rank <= HLO_EVAL_MAX_RANK && hlo_shape_is_addressable(shape));
}

/* The state of a survey of all computations that the interpreter would run. */
typedef struct survey {
    uint32_t depth, steps;
    const hlo_instruction *blocker;
    const char *why;
} survey;

/* Returns why the instruction itself cannot run; NULL if it can. */
static const char *refusal(const hlo_instruction *instr) {
    if (!is_static(instr->shape))
        return "the applied computation has a value of dynamic shape, or one that is too large";
    switch (instr->op) {
    case HLO_OP_CONSTANT:
        return is_known(instr->u.literal, instr->shape)
                   ? NULL
                   : "the value of a constant in the applied computation is elided";
    case HLO_OP_BITCAST: {
        const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
        if (!hlo_shape_is_row_major(from) || !hlo_shape_is_row_major(instr->shape))
            return "the applied computation has a bitcast whose layouts are not row-major";
        break;
    }
    case HLO_OP_PARAMETER:
    case HLO_OP_TUPLE:
    case HLO_OP_GET_TUPLE_ELEMENT:
    case HLO_OP_AFTER_ALL:
    case HLO_OP_GET_DIMENSION_SIZE:
    case HLO_OP_CALL:
    case HLO_OP_FUSION:
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL: return NULL;
    default:
        if (hlo_hands_on(instr)) return NULL;
    }
    return hlo_kernel_refusal(instr)
               ? "the applied computation has an opcode that is not supported there"
               : NULL;
}

static void visit(void *user, hlo_computation *c) {
    survey *s = user;
    if (s->depth == MAX_DEPTH && !s->why)
        s->why = "the applied computation nests computations more than 32 levels deep";
    s->depth++;
    for (const hlo_instruction *i = c->first; i && !s->why; i = hlo_instr_next(i)) {
        s->why = refusal(i);
        if (s->why) s->blocker = i;
        s->steps += hlo_shape_leaf_count(i->shape) + 1;
        if (s->steps > MAX_STEPS && !s->why)
            s->why = "the applied computation has more than 65536 instructions and results";
        if (!s->why && i->attr_bits & HLO_ATTR_BIT_CALLS) hlo_instr_visit_called(i, visit, s);
    }
    s->depth--;
}

const char *hlo_interpreter_refusal(const hlo_computation *computation,
                                    const hlo_instruction **out_blocker) {
    survey s = {0};
    if (!computation) return "the applied computation is missing";
    visit(&s, (hlo_computation *)(uintptr_t)computation);
    *out_blocker = s.blocker;
    return s.why;
}

/* ------------------------------------------------------------------------------------ execution */

/* Calls write(user, shape) for each leaf of a shape, in order. */
static void for_each_leaf(const hlo_shape *shape, void (*write)(void *user, const hlo_shape *leaf),
                          void *user) {
    if (shape->type == HLO_TYPE_TUPLE)
        for (uint32_t i = 0; i < shape->rank; i++) for_each_leaf(shape->elements[i], write, user);
    else if (hlo_types[shape->type].bytes)
        write(user, shape);
}

/* A walk over the leaves of a value. */
typedef struct walk {
    hlo_arena *scratch;
    value at;
    hlo_view *views;
} walk;

static void allocate_leaf(void *user, const hlo_shape *leaf) {
    walk *w = user;
    *w->at++ = hlo_arena_alloc(w->scratch, (size_t)hlo_shape_bytes(leaf));
}

static void view_leaf(void *user, const hlo_shape *leaf) {
    walk *w = user;
    *w->views++ = hlo_view_of(w->scratch, leaf, *w->at++);
}

/* Two walks: over the leaves to copy, and over their destinations. */
typedef struct copying {
    void *const *from;
    void *const *to;
} copying;

static void copy_leaf(void *user, const hlo_shape *leaf) {
    copying *c = user;
    const size_t size = (size_t)hlo_shape_bytes(leaf);
    if (size) memcpy(*c->to, *c->from, size);
    c->to++;
    c->from++;
}

static value new_leaves(const hlo_interpreter *m, const hlo_shape *shape) {
    return hlo_arena_array(m->call->scratch, hlo_shape_leaf_count(shape) + 1, sizeof(void *));
}

static value new_value(const hlo_interpreter *m, const hlo_shape *shape) {
    value made = new_leaves(m, shape);
    walk w = {.scratch = m->call->scratch, .at = made};
    for_each_leaf(shape, allocate_leaf, &w);
    return made;
}

static void put_literal(const hlo_literal *literal, const hlo_shape *shape, value *at) {
    if (shape->type == HLO_TYPE_TUPLE)
        for (uint32_t i = 0; i < shape->rank; i++)
            put_literal(literal->elements[i], shape->elements[i], at);
    else
        *(*at)++ = literal->data;
}

static void run_computation(hlo_interpreter *m, const hlo_computation *c, const value *arguments,
                            value result);

static value run_while(hlo_interpreter *m, const hlo_instruction *loop, value first) {
    const hlo_computation *condition = hlo_instr_comp(loop, HLO_ATTR_CONDITION);
    const hlo_computation *body = hlo_instr_comp(loop, HLO_ATTR_BODY);
    value state = first, next = new_value(m, loop->shape), spare = new_value(m, loop->shape);
    for (;;) {
        enum { WORK = 64 }; /* of a round, in elements */
        bool more = false;
        void *test = &more;
        if (!hlo_call_goes_on(m->call, WORK)) return state;
        run_computation(m, condition, &state, &test);
        if (!more || m->call->stopped) return state;
        run_computation(m, body, &state, next);
        value free = state == first ? spare : state;
        state = next;
        next = free;
    }
}

static const hlo_computation *chosen(const hlo_instruction *instr, const void *index,
                                     uint32_t *out_branch) {
    const uint32_t count = instr->operand_count - 1;
    int32_t at;
    if (hlo_instr_operand(instr, 0)->shape->type == HLO_TYPE_PRED)
        at = !*(const bool *)index;
    else
        memcpy(&at, index, sizeof at);
    *out_branch = at < 0 || (uint32_t)at >= count ? count - 1 : (uint32_t)at;
    return hlo_region_branch(instr, *out_branch);
}

/* Runs the kernel of an instruction. */
static value run_kernel(hlo_interpreter *m, const hlo_instruction *instr) {
    hlo_arena *scratch = m->call->scratch;
    value made = new_value(m, instr->shape);
    uint32_t count = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        count += hlo_shape_leaf_count(hlo_instr_operand(instr, o)->shape);
    const hlo_arena_mark mark = hlo_arena_here(scratch);
    hlo_view *operands = hlo_arena_array(scratch, count + 1, sizeof *operands);
    hlo_view *results =
        hlo_arena_array(scratch, hlo_shape_leaf_count(instr->shape) + 1, sizeof *results);
    walk w = {.scratch = scratch, .views = operands};
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        w.at = m->values[hlo_instr_operand(instr, o)->id];
        for_each_leaf(hlo_instr_operand(instr, o)->shape, view_leaf, &w);
    }
    w.at = made;
    w.views = results;
    for_each_leaf(instr->shape, view_leaf, &w);
    hlo_call call;
    hlo_call_init(&call, m->call->env, instr, operands, results, scratch);
    call.why = NULL;
    const bool failed = hlo_kernel_of(instr->op)->run(&call) != HLO_OK || call.why;
    if (failed) m->call->why = call.why ? call.why : "failed";
    if (failed || call.stopped) m->call->stopped = true;
    hlo_arena_release(scratch, mark);
    return made;
}

static value run_instruction(hlo_interpreter *m, const hlo_instruction *i, const value *arguments) {
    value *in = hlo_arena_array(m->call->scratch, i->operand_count + 1, sizeof *in);
    for (uint32_t o = 0; o < i->operand_count; o++) in[o] = m->values[hlo_instr_operand(i, o)->id];
    if (i->op == HLO_OP_PARAMETER) return arguments[i->u.parameter];
    if (hlo_hands_on(i)) return in[0];
    switch (i->op) {
    case HLO_OP_CONSTANT: {
        value made = new_leaves(m, i->shape), at = made;
        put_literal(i->u.literal, i->shape, &at);
        return made;
    }
    case HLO_OP_TUPLE: {
        value made = new_leaves(m, i->shape), at = made;
        for (uint32_t o = 0; o < i->operand_count; o++) {
            const uint32_t count = hlo_shape_leaf_count(hlo_instr_operand(i, o)->shape);
            if (count) memcpy(at, in[o], count * sizeof *at);
            at += count;
        }
        return made;
    }
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const int64_t index = hlo_instr_int(i, HLO_ATTR_INDEX, 0);
        value at = in[0];
        for (int64_t e = 0; e < index; e++)
            at += hlo_shape_leaf_count(hlo_instr_operand(i, 0)->shape->elements[e]);
        return at;
    }
    case HLO_OP_AFTER_ALL: return new_leaves(m, i->shape);
    case HLO_OP_GET_DIMENSION_SIZE: {
        value made = new_value(m, i->shape);
        const int64_t dim = hlo_instr_ints(i, HLO_ATTR_DIMENSIONS)->v[0];
        const int32_t size = (int32_t)hlo_instr_operand(i, 0)->shape->dims[dim];
        memcpy(made[0], &size, sizeof size);
        return made;
    }
    case HLO_OP_WHILE: return run_while(m, i, in[0]);
    case HLO_OP_CALL:
    case HLO_OP_FUSION:
    case HLO_OP_CONDITIONAL: {
        value made = new_value(m, i->shape);
        uint32_t branch = 0;
        const bool chooses = i->op == HLO_OP_CONDITIONAL;
        const hlo_computation *called =
            chooses ? chosen(i, in[0][0], &branch) : hlo_instr_called(i);
        run_computation(m, called, in + (chooses ? 1 + branch : 0), made);
        return made;
    }
    default: return run_kernel(m, i);
    }
}

/* Runs a computation, and copies its result to the leaves of `result`. */
static void run_computation(hlo_interpreter *m, const hlo_computation *c, const value *arguments,
                            value result) {
    const hlo_arena_mark mark = hlo_arena_here(m->call->scratch);
    for (const hlo_instruction *i = c->first; i && !m->call->stopped; i = hlo_instr_next(i))
        m->values[i->id] = run_instruction(m, i, arguments);
    copying copy = {.to = result};
    if (!m->call->stopped) {
        copy.from = m->values[c->root->id];
        for_each_leaf(c->root->shape, copy_leaf, &copy);
    }
    hlo_arena_release(m->call->scratch, mark);
}

hlo_interpreter *hlo_interpreter_new(hlo_call *call, const hlo_computation *computation) {
    hlo_interpreter *m = hlo_arena_zero(call->scratch, sizeof *m);
    m->call = call;
    m->applied = computation;
    m->values = hlo_arena_zero(call->scratch, computation->module->next_id * sizeof *m->values);
    return m;
}

void hlo_interpreter_run(hlo_interpreter *m, char *const *in, char *const *out) {
    const hlo_computation *c = m->applied;
    hlo_arena *scratch = m->call->scratch;
    const hlo_arena_mark mark = hlo_arena_here(scratch);
    /* Copy the arguments, because an output may be an input. */
    value *arguments = hlo_arena_array(scratch, c->parameter_count + 1, sizeof *arguments);
    for (uint32_t p = 0; p < c->parameter_count; p++) {
        arguments[p] = new_value(m, c->parameters[p]->shape);
        memcpy(arguments[p][0], in[p], hlo_types[c->parameters[p]->shape->type].bytes);
    }
    const uint32_t count = hlo_shape_leaf_count(c->root->shape);
    value results = hlo_arena_array(scratch, count + 1, sizeof *results);
    for (uint32_t o = 0; o < count; o++) results[o] = out[o];
    if (!m->call->stopped) run_computation(m, c, arguments, results);
    hlo_arena_release(scratch, mark);
}
