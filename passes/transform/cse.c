/* SPDX-License-Identifier: Apache-2.0 */
/* Merges instructions that compute the same value: they have the same opcode, operands, shape with
 * layout, and attributes other than metadata. The first instruction, with its metadata, replaces
 * the others.
 *
 * Needs: operands before users.
 * Does not change: pinned instructions, random numbers, collectives with a channel. Numerics:
 * unchanged.
 * Tests: testdata/passes/cse/ */
#include <xxhash.h>

#include "passes/analysis/module_facts.h"
#include "passes/analysis/value.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

static bool same_value(const hlo_instruction *a, const hlo_instruction *b) {
    if (a->op != b->op || a->shape != b->shape || a->operand_count != b->operand_count)
        return false;
    for (uint32_t i = 0; i < a->operand_count; i++)
        if (hlo_instr_operand(a, i) != hlo_instr_operand(b, i)) return false;
    if (a->op == HLO_OP_CONSTANT && !hlo_literal_equal(a->u.literal, b->u.literal)) return false;
    return hlo_attrs_equal(a->attrs, a->attr_count, b->attrs, b->attr_count);
}

/* The hash table uses open addressing and is at most half full. The hash is stored next to the
 * pointer, so that neither probing nor growing reads the instruction. */
typedef struct slot {
    hlo_instruction *instr; /* NULL in a free slot */
    uint64_t hash;
} slot;

typedef struct table {
    hlo_arena *arena;
    slot *slots;
    size_t mask, count;
} table;

/* Returns the first instruction equal to `instr`, which may be `instr` itself. */
static hlo_instruction *find_or_add(table *seen, hlo_instruction *instr) {
    if (2 * seen->count >= seen->mask) {
        const table old = *seen;
        seen->mask = old.slots ? 4 * old.mask + 3 : 63;
        seen->slots = hlo_arena_zero(seen->arena, (seen->mask + 1) * sizeof *seen->slots);
        for (size_t i = 0; old.slots && i <= old.mask; i++) {
            if (!old.slots[i].instr) continue;
            size_t to = old.slots[i].hash & seen->mask;
            while (seen->slots[to].instr) to = (to + 1) & seen->mask;
            seen->slots[to] = old.slots[i];
        }
    }
    uint64_t hash = XXH3_64bits_withSeed(&instr->shape, sizeof instr->shape, instr->op);
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        hash = XXH3_64bits_withSeed(&operand, sizeof operand, hash);
    }
    if (instr->op == HLO_OP_CONSTANT) hash = hlo_literal_hash(instr->u.literal, hash);
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        size_t size;
        const void *value = hlo_attr_value(&instr->attrs[i], &size);
        if (value) hash = XXH3_64bits_withSeed(value, size, hash);
    }
    size_t at = hash & seen->mask;
    for (slot *s; (s = &seen->slots[at])->instr; at = (at + 1) & seen->mask)
        if (s->hash == hash && same_value(s->instr, instr)) return s->instr;
    seen->count++;
    seen->slots[at] = (slot){instr, hash};
    return instr;
}

hlo_status hlo_pass_cse(hlo_pass_context *context) {
    hlo_arena *scratch = context->scratch;
    const hlo_effects effects = hlo_facts_side_effects(context->module, scratch);
    /* By id: true if an operand of the instruction has no other use. No other instruction has equal
     * operands until this operand is merged, so the instruction is not in the table before then. */
    bool *alone = hlo_arena_zero(scratch, context->module->next_id);
    for (hlo_computation *comp = context->module->first; comp; comp = comp->next) {
        const hlo_arena_mark mark = hlo_arena_here(scratch);
        table seen = {.arena = scratch};
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = hlo_instr_next(instr);
            if (instr->op == HLO_OP_PARAMETER || instr->pin ||
                hlo_facts_has(effects.random, instr->id) ||
                hlo_op_async_pair(instr->op, HLO_OP_INVALID))
                continue;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                alone[instr->id] |= hlo_instr_operand(instr, i)->use_count == 1;
            if (alone[instr->id]) continue;
            hlo_instruction *first = find_or_add(&seen, instr);
            if (first == instr) continue;
            if (first->use_count == 1 && alone[first->uses->user->id])
                find_or_add(&seen, first->uses->user);
            hlo_remark_follow(context, instr, first);
            hlo_instr_replace_uses(instr, first);
            hlo_instr_remove(instr);
            context->changes++;
        }
        hlo_arena_release(scratch, mark);
    }
    return HLO_OK;
}
