/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from a seed that resemble those of a trained model: weights as layers initialize them,
 * scales that fit the quantized values, data around 0 of size 1. */
#include <math.h>
#include <string.h>
#include <strings.h>

#include "runtime/io/draw.h"

/* A value derived from a parameter: an element of a tuple, or an array. */
typedef struct visit {
    const hlo_instr *instr;
    int64_t element; /* element index; -1: an array */
} visit;

enum { VISITS_MOST = 512 };

typedef struct search {
    visit visits[VISITS_MOST];
    uint32_t count;
    const hlo_instr *dot; /* the first dot in the text */
    double contracted;    /* number of terms of its sums */
} search;

static void add(search *s, const hlo_instr *instr, int64_t element) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->visits[i].instr == instr && s->visits[i].element == element) return;
    if (s->count < VISITS_MOST) s->visits[s->count++] = (visit){instr, element};
}

static void follow_call(search *s, const hlo_computation *called, uint32_t operand) {
    if (called && operand < called->parameter_count &&
        hlo_shape_is_array(called->parameters[operand]->shape))
        add(s, called->parameters[operand], -1);
}

/* Follows a value to one of its users. */
static void follow(search *s, visit from, const hlo_instr *user, uint32_t operand) {
    switch (user->op) {
    case HLO_OP_DOT: {
        if (s->dot && s->dot->offset <= user->offset) return;
        const hlo_ints *dims = hlo_instr_ints(user, operand ? HLO_ATTR_RHS_CONTRACTING_DIMS
                                                            : HLO_ATTR_LHS_CONTRACTING_DIMS);
        const hlo_shape *shape = hlo_instr_operand(user, operand)->shape;
        s->dot = user;
        s->contracted = 1;
        for (uint32_t i = 0; i < dims->count; i++) s->contracted *= (double)shape->dims[dims->v[i]];
        return;
    }
    case HLO_OP_TUPLE:
        if (from.element < 0) add(s, user, operand);
        return;
    case HLO_OP_GET_TUPLE_ELEMENT:
        if (from.element == hlo_instr_int(user, HLO_ATTR_INDEX, 0)) add(s, user, -1);
        return;
    case HLO_OP_WHILE:
        add(s, hlo_instr_comp(user, HLO_ATTR_BODY)->parameters[0], from.element);
        return;
    case HLO_OP_OPT_BARRIER: add(s, user, from.element); return;
    case HLO_OP_CALL: follow_call(s, hlo_instr_comp(user, HLO_ATTR_TO_APPLY), operand); return;
    case HLO_OP_FUSION: follow_call(s, hlo_instr_comp(user, HLO_ATTR_CALLS), operand); return;
    default: break;
    }
    const bool moves = hlo_op_is(user->op, HLO_MOVEMENT) || user->op == HLO_OP_DYNAMIC_SLICE;
    const bool scales = user->op == HLO_OP_MULTIPLY || user->op == HLO_OP_DIVIDE ||
                        user->op == HLO_OP_CONVERT || user->op == HLO_OP_CLAMP ||
                        user->op == HLO_OP_MAXIMUM || user->op == HLO_OP_MINIMUM;
    if (from.element < 0 && ((moves && operand == 0) || scales)) add(s, user, -1);
}

/* Returns the number of terms of the sums in which a weight is a factor; 0 if no dot uses it. */
static double terms_of(const hlo_instr *parameter) {
    search s = {.count = 0};
    if (!hlo_shape_is_array(parameter->shape)) return 0;
    add(&s, parameter, -1);
    for (uint32_t at = 0; at < s.count; at++) {
        const visit from = s.visits[at];
        for (const hlo_use *use = from.instr->uses; use; use = use->next)
            follow(&s, from, use->user, (uint32_t)(use - use->user->operands));
        if (from.instr == from.instr->parent->root && from.element < 0) {
            /* Continue with the callers of the computation that returns a value. */
            const hlo_module *module = from.instr->parent->module;
            for (const hlo_computation *c = module->first; c; c = c->next)
                for (const hlo_instr *i = c->first; i; i = hlo_instr_next(i))
                    if (i->op == HLO_OP_CALL &&
                        hlo_instr_comp(i, HLO_ATTR_TO_APPLY) == from.instr->parent)
                        add(&s, i, -1);
        }
    }
    return s.dot ? s.contracted : 0;
}

static bool has(const char *name, const char *word) {
    return strcasestr(name, word) != NULL;
}

/* Returns the expected largest absolute value for a scale or an amax: that of data of size 1, or
 * of weights of 64 terms. Gradients are at most that large, and f8e5m2 represents much smaller
 * values. */
static double amax_of(const char *name) {
    return has(name, "kernel") || has(name, "weight") || has(name, "rhs") ? 0.5 : 4;
}

hlo_draw_role hlo_draw_realistic(const hlo_instr *parameter, const hlo_shape *shape) {
    const char *op_name = hlo_instr_op_name(parameter);
    const char *name = op_name ? op_name : parameter->name;
    if (has(name, "amax")) return (hlo_draw_role){amax_of(name), 0, true};
    if (has(name, "_scale"))
        return (hlo_draw_role){amax_of(name) / (has(name, "grad") ? 57344 : 448), 0, true};
    if (has(name, "['scale") || has(name, "____scale__")) return (hlo_draw_role){1, 0.1, true};
    if (has(name, ".nu")) return (hlo_draw_role){0x1p-12, 0x1p-14, true};
    if (has(name, ".mu")) return (hlo_draw_role){0, 0x1p-7, false};
    if (has(name, "bias")) return (hlo_draw_role){0, 0.1, false};
    if (hlo_type_is_fp8(shape->type)) return (hlo_draw_role){0, 64, false};
    if (has(name, "embedding"))
        return (hlo_draw_role){0, 1 / sqrt((double)shape->dims[shape->rank - 1]), false};
    const double terms = shape->rank > 1 ? terms_of(parameter) : 0;
    const bool weight = has(name, "kernel") || has(name, "weight") || has(name, "param");
    return (hlo_draw_role){0, weight && terms > 0 ? 1 / sqrt(terms) : 1, false};
}
