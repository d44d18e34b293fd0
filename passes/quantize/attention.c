/* SPDX-License-Identifier: Apache-2.0 */
/* A softmax is an exponential that is summed, of scores, which come from a batched dot. Scores and
 * softmaxes are followed through all instructions but dots, and through the state of loops. A
 * batched dot belongs to attention if it multiplies values of a softmax, or if its result is
 * combined with them or enters their exponential. */
#include "passes/quantize/attention.h"

#include "ir/module/known.h"
#include "passes/analysis/value.h"

enum {
    SCORES = 1,  /* comes from a batched dot, without another dot in between */
    SOFTMAX = 2, /* comes from a softmax of such scores */
    WANTED = 4   /* scores that reach a softmax, or are combined with one */
};
enum { SWEEP_LIMIT = 4 };

typedef struct search {
    const hlo_module *module;
    hlo_instr *const *callers;
    unsigned char *flags;  /* by instruction id */
    unsigned char **state; /* by instruction id of a loop: flags of its elements */
    hlo_arena *arena;
    bool changed;
} search;

static bool is_batched(const hlo_instr *dot) {
    const hlo_ints *batch = hlo_dot_batch(dot, 0);
    for (uint32_t i = 0; i < batch->count; i++)
        if (hlo_instr_operand(dot, 0)->shape->dims[batch->v[i]] > 1) return true;
    return false;
}

/* True if a sum uses the value, possibly after up to `converts` conversions. */
static bool is_summed(const hlo_instr *value, unsigned converts) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        const hlo_instr *user = use->user;
        if (user->op == HLO_OP_REDUCE &&
            hlo_instr_comp(user, HLO_ATTR_TO_APPLY)->root->op == HLO_OP_ADD)
            return true;
        if (converts && user->op == HLO_OP_CONVERT && is_summed(user, converts - 1)) return true;
    }
    return false;
}

static unsigned char *state_of(search *s, const hlo_instr *loop) {
    unsigned char **state = &s->state[loop->id];
    if (!*state) *state = hlo_arena_zero(s->arena, loop->shape->rank + 1);
    return *state;
}

/* Returns the flags of an element of a tuple. */
static unsigned char element_flags(search *s, const hlo_instr *element) {
    const hlo_instr *tuple = hlo_instr_operand(element, 0);
    const uint32_t index = (uint32_t)hlo_instr_int(element, HLO_ATTR_INDEX, 0);
    const hlo_instr *loop = tuple->op == HLO_OP_WHILE       ? tuple
                            : tuple->op == HLO_OP_PARAMETER ? s->callers[tuple->parent->id]
                                                            : NULL;
    if (loop && loop->op == HLO_OP_WHILE) return state_of(s, loop)[index];
    if (tuple->op == HLO_OP_OPT_BARRIER) tuple = hlo_instr_operand(tuple, 0);
    return s->flags[tuple->op == HLO_OP_TUPLE ? hlo_instr_operand(tuple, index)->id : tuple->id];
}

static unsigned char flags_of(search *s, const hlo_instr *instr) {
    unsigned char flags = 0;
    if (instr->op == HLO_OP_DOT) return is_batched(instr) ? SCORES : 0;
    if (instr->op == HLO_OP_GET_TUPLE_ELEMENT) return element_flags(s, instr);
    for (uint32_t i = 0; i < instr->operand_count; i++)
        flags |= s->flags[hlo_instr_operand(instr, i)->id];
    if (instr->op == HLO_OP_EXP && flags & SCORES && is_summed(instr, 1)) flags |= SOFTMAX;
    return flags;
}

/* Propagates the flags of a tuple to the state of the loop. */
static void enter(search *s, const hlo_instr *loop, const hlo_instr *tuple) {
    unsigned char *state = state_of(s, loop);
    if (tuple->op != HLO_OP_TUPLE) return;
    for (uint32_t i = 0; i < tuple->operand_count && i < loop->shape->rank; i++) {
        const unsigned char flags = s->flags[hlo_instr_operand(tuple, i)->id];
        s->changed |= flags & ~state[i];
        state[i] |= flags;
    }
}

static void sweep(search *s) {
    for (const hlo_computation *comp = s->module->last; comp; comp = comp->prev) {
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            s->flags[instr->id] |= flags_of(s, instr);
            if (instr->op == HLO_OP_WHILE) enter(s, instr, hlo_instr_operand(instr, 0));
        }
        const hlo_instr *caller = s->callers[comp->id];
        if (caller && caller->op == HLO_OP_WHILE && hlo_instr_comp(caller, HLO_ATTR_BODY) == comp)
            enter(s, caller, comp->root);
    }
}

/* Finds the scores that `instr` combines with a softmax, or that enter it. */
static void want(search *s, const hlo_instr *instr) {
    const unsigned char own = s->flags[instr->id];
    const bool softmax = own & SOFTMAX && hlo_op_is(instr->op, HLO_ELEMENTWISE);
    for (uint32_t i = 0; (softmax || own & WANTED) && i < instr->operand_count; i++) {
        unsigned char *flags = &s->flags[hlo_instr_operand(instr, i)->id];
        if (*flags & SCORES) *flags |= WANTED;
    }
}

const bool *hlo_attention_find(const hlo_module *module, hlo_instr *const *callers,
                               hlo_arena *arena) {
    bool *found = hlo_arena_zero(arena, module->next_id);
    if (!module->op_counts[HLO_OP_EXP]) return found;
    search s = {.module = module,
                .callers = callers,
                .flags = hlo_arena_zero(arena, module->next_id),
                .state = hlo_arena_zero(arena, module->next_id * sizeof *s.state),
                .arena = arena,
                .changed = true};
    for (unsigned i = 0; i < SWEEP_LIMIT && s.changed; i++) {
        s.changed = false;
        sweep(&s);
    }
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (const hlo_instr *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (instr->op != HLO_OP_DOT) {
                want(&s, instr);
                continue;
            }
            unsigned char flags = s.flags[instr->id] & WANTED;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                flags |= s.flags[hlo_instr_operand(instr, i)->id] & SOFTMAX;
            found[instr->id] = flags && is_batched(instr);
        }
    return found;
}
