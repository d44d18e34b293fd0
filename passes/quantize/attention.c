/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the dots of attention. A softmax is an exponential of scores that is summed; scores are
 * computed from the result of a batched dot. The search follows scores and softmax values through
 * all instructions except dots, and into and out of loops and conditionals. A batched dot belongs
 * to attention if it multiplies softmax values, or if its result is combined with softmax values or
 * enters their exponential. */
#include "passes/quantize/attention.h"

#include "ir/module/known.h"
#include "passes/analysis/value.h"

enum {
    SCORES = 1,  /* the value comes from a batched dot, without another dot in between */
    SOFTMAX = 2, /* the value comes from a softmax of such scores */
    WANTED = 4,  /* the value is scores that reach a softmax or are combined with softmax values */
    SUMMED = 8   /* a sum uses the value, possibly after conversions, masks and movement */
};
/* ROUND_LIMIT: maximum number of times that all instructions are visited in both orders. */
enum { ROUND_LIMIT = 8, BACK = WANTED | SUMMED };

typedef struct search {
    const hlo_module *module;
    unsigned char *flags;     /* by instruction id */
    unsigned char **elements; /* by instruction id of a tuple: flags of its elements */
    hlo_arena *arena;
    bool changed;
} search;

static bool is_batched(const hlo_instruction *dot) {
    const hlo_ints *batch = hlo_dot_batch(dot, 0);
    for (uint32_t i = 0; i < batch->count; i++)
        if (hlo_instr_operand(dot, 0)->shape->dims[batch->v[i]] > 1) return true;
    return false;
}

static unsigned char *elements_of(search *s, const hlo_instruction *tuple) {
    unsigned char **elements = &s->elements[tuple->id];
    if (!*elements) *elements = hlo_arena_zero(s->arena, tuple->shape->rank + 1);
    return *elements;
}

static void mark(search *s, unsigned char *flags, unsigned added) {
    s->changed |= (added & ~*flags) != 0;
    *flags |= (unsigned char)added;
}

/* Propagates flags between a value and a value that is computed from it: SCORES and SOFTMAX to the
 * result, and the flags in `back` from the result to scores. */
static void flow(search *s, unsigned char *from, unsigned char *to, unsigned back) {
    mark(s, to, *from & (SCORES | SOFTMAX));
    if (*from & SCORES) mark(s, from, *to & back);
}

/* Propagates flags between a value, or the elements of a tuple, and the same value elsewhere. */
static void pass(search *s, const hlo_instruction *from, const hlo_instruction *to) {
    if (hlo_shape_is_array(from->shape) || hlo_shape_is_array(to->shape)) {
        flow(s, &s->flags[from->id], &s->flags[to->id], BACK);
        return;
    }
    unsigned char *source = elements_of(s, from), *target = elements_of(s, to);
    for (uint32_t i = 0; i < from->shape->rank && i < to->shape->rank; i++)
        flow(s, &source[i], &target[i], BACK);
}

static void visit(search *s, const hlo_instruction *instr) {
    unsigned char *own = &s->flags[instr->id];
    bool joins = false; /* the flags of a tuple are those of its elements, not the reverse */
    switch (instr->op) {
    case HLO_OP_DOT:
        if (is_batched(instr)) mark(s, own, SCORES);
        return;
    case HLO_OP_GET_TUPLE_ELEMENT: {
        const hlo_instruction *tuple = hlo_instr_operand(instr, 0);
        flow(s, &elements_of(s, tuple)[hlo_instr_int(instr, HLO_ATTR_INDEX, 0)], own, BACK);
        break;
    }
    case HLO_OP_WHILE: {
        const hlo_computation *body = hlo_instr_comp(instr, HLO_ATTR_BODY);
        pass(s, hlo_instr_operand(instr, 0), instr);
        pass(s, body->root, instr);
        pass(s, instr, body->parameters[0]);
        pass(s, instr, hlo_instr_comp(instr, HLO_ATTR_CONDITION)->parameters[0]);
        joins = true;
        break;
    }
    case HLO_OP_CONDITIONAL:
        for (uint32_t i = 1; i < instr->operand_count; i++) {
            const hlo_computation *branch = hlo_branch_of(instr, i);
            pass(s, hlo_instr_operand(instr, i), branch->parameters[0]);
            pass(s, branch->root, instr);
        }
        joins = true;
        break;
    case HLO_OP_OPT_BARRIER: pass(s, hlo_instr_operand(instr, 0), instr); /* fallthrough */
    case HLO_OP_PARAMETER: joins = true; break;
    case HLO_OP_TUPLE:
        for (uint32_t i = 0; i < instr->operand_count; i++)
            flow(s, &s->flags[hlo_instr_operand(instr, i)->id], &elements_of(s, instr)[i], BACK);
        joins = true;
        break;
    default: {
        const bool sums = instr->op == HLO_OP_REDUCE &&
                          hlo_instr_comp(instr, HLO_ATTR_TO_APPLY)->root->op == HLO_OP_ADD;
        const bool moves = instr->op == HLO_OP_CONVERT || instr->op == HLO_OP_SELECT ||
                           hlo_op_is(instr->op, HLO_COPIES | HLO_RESHAPES | HLO_TRANSPOSES);
        const bool combines = *own & SOFTMAX && hlo_op_is(instr->op, HLO_ELEMENTWISE);
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            unsigned char *operand = &s->flags[hlo_instr_operand(instr, i)->id];
            if (*operand & SCORES) mark(s, operand, (combines ? WANTED : 0) | (sums ? SUMMED : 0));
            flow(s, operand, own, moves ? BACK : WANTED);
        }
        if (instr->op == HLO_OP_EXP && *own & SCORES && *own & SUMMED) mark(s, own, SOFTMAX);
    }
    }
    for (uint32_t i = 0; !hlo_shape_is_array(instr->shape) && i < instr->shape->rank; i++) {
        unsigned char *element = &elements_of(s, instr)[i];
        flow(s, joins ? element : own, joins ? own : element, BACK);
    }
}

/* Visits all instructions, each after its operands, or each before them. */
static void sweep(search *s, bool reverse) {
    for (const hlo_computation *comp = reverse ? s->module->first : s->module->last; comp;
         comp = reverse ? comp->next : comp->prev)
        for (const hlo_instruction *instr = reverse ? comp->last : comp->first; instr;
             instr = reverse ? hlo_instr_prev(instr) : hlo_instr_next(instr))
            visit(s, instr);
}

const bool *hlo_attention_find(const hlo_module *module, hlo_arena *arena) {
    bool *found = hlo_arena_zero(arena, module->next_id);
    if (!module->op_counts[HLO_OP_EXP]) return found;
    search s = {.module = module,
                .flags = hlo_arena_zero(arena, module->next_id),
                .elements = hlo_arena_zero(arena, module->next_id * sizeof *s.elements),
                .arena = arena,
                .changed = true};
    for (unsigned i = 0; i < ROUND_LIMIT && s.changed; i++) {
        s.changed = false;
        sweep(&s, false);
        sweep(&s, true);
    }
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            if (instr->op != HLO_OP_DOT || !is_batched(instr)) continue;
            unsigned char flags = s.flags[instr->id] & WANTED;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                flags |= s.flags[hlo_instr_operand(instr, i)->id] & SOFTMAX;
            found[instr->id] = flags;
        }
    return found;
}
