/* Merges instructions that compute the same value: same opcode, operands, shape with its layout,
 * and attributes other than metadata. The first one stays.
 *
 * Needs: operands before users.
 * Keeps: pinned instructions, random numbers, collectives with a channel; metadata of the first.
 * Numerics: unchanged.
 * Tests: testdata/passes/cse/ */
#include <xxhash.h>

#include "passes/analysis/module_facts.h"
#include "passes/passes.h"
#include "passes/verdict/remark.h"

static bool same_value(const hlo_instr *a, const hlo_instr *b) {
    if (a->op != b->op || a->shape != b->shape || a->operand_count != b->operand_count)
        return false;
    for (uint32_t i = 0; i < a->operand_count; i++)
        if (hlo_instr_operand(a, i) != hlo_instr_operand(b, i)) return false;
    if (a->op == HLO_OP_CONSTANT && !hlo_literal_equal(a->u.literal, b->u.literal)) return false;
    return hlo_attrs_equal(a->attrs, a->attr_count, b->attrs, b->attr_count);
}

static uint64_t hash_literal(const hlo_literal *literal, uint64_t hash) {
    if (literal->data)
        return XXH3_64bits_withSeed(literal->data, (size_t)hlo_shape_bytes(literal->shape), hash);
    for (uint32_t i = 0; i < literal->shape->rank && !literal->elided; i++)
        hash = hash_literal(literal->elements[i], hash);
    return hash;
}

/* Hashes cheap properties that tell most instructions apart; same_value() compares the rest. */
static uint64_t hash_value(const hlo_instr *instr) {
    uint64_t hash = XXH3_64bits_withSeed(&instr->shape, sizeof instr->shape, instr->op);
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        hash = XXH3_64bits_withSeed(&operand, sizeof operand, hash);
    }
    if (instr->op == HLO_OP_CONSTANT) hash = hash_literal(instr->u.literal, hash);
    for (uint32_t i = 0; i < instr->attr_count; i++) {
        size_t size;
        const void *value = hlo_attr_value(&instr->attrs[i], &size);
        if (value) hash = XXH3_64bits_withSeed(value, size, hash);
    }
    return hash;
}

/* Open addressing, at most half full. The hash stands beside the instruction, so that neither
 * probing nor growing touches it. */
typedef struct slot {
    hlo_instr *instr; /* NULL: free */
    uint64_t hash;
} slot;

typedef struct table {
    hlo_arena *arena;
    slot *slots;
    size_t mask, count;
    bool *alone; /* by instruction id: not entered in the table, see is_alone() */
} table;

static void grow(table *seen) {
    const table old = *seen;
    seen->mask = old.slots ? 4 * old.mask + 3 : 63;
    seen->slots = hlo_arena_zero(seen->arena, (seen->mask + 1) * sizeof *seen->slots);
    for (size_t i = 0; old.slots && i <= old.mask; i++) {
        if (!old.slots[i].instr) continue;
        size_t at = old.slots[i].hash & seen->mask;
        while (seen->slots[at].instr) at = (at + 1) & seen->mask;
        seen->slots[at] = old.slots[i];
    }
}

/* Returns the first instruction equal to `instr`, which may be `instr` itself. */
static hlo_instr *find_or_add(table *seen, hlo_instr *instr) {
    if (2 * seen->count >= seen->mask) grow(seen);
    const uint64_t hash = hash_value(instr);
    size_t at = hash & seen->mask;
    for (slot *s; (s = &seen->slots[at])->instr; at = (at + 1) & seen->mask)
        if (s->hash == hash && same_value(s->instr, instr)) return s->instr;
    seen->count++;
    seen->slots[at] = (slot){instr, hash};
    return instr;
}

/* True if an operand has no other use: no other instruction has equal operands then, until the
 * operand is merged with another one. */
static bool is_alone(const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (hlo_instr_operand(instr, i)->use_count == 1) return true;
    return false;
}

static void merge(hlo_pass_context *context, table *seen, hlo_instr *instr, hlo_instr *first) {
    if (first->use_count == 1 && seen->alone[first->uses->user->id])
        find_or_add(seen, first->uses->user);
    hlo_remark_follow(context, instr, first);
    hlo_instr_replace_uses(instr, first);
    hlo_instr_remove(instr);
    context->changes++;
}

static void merge_computation(hlo_pass_context *context, hlo_computation *comp, bool *alone,
                              const hlo_effects *effects) {
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    table seen = {.arena = context->scratch, .alone = alone};
    for (hlo_instr *instr = comp->first, *next; instr; instr = next) {
        next = hlo_instr_next(instr);
        if (instr->op == HLO_OP_PARAMETER || instr->pin ||
            hlo_facts_has(effects->random, instr->id) ||
            hlo_op_async_pair(instr->op, HLO_OP_INVALID))
            continue;
        alone[instr->id] = is_alone(instr);
        if (alone[instr->id]) continue;
        hlo_instr *first = find_or_add(&seen, instr);
        if (first != instr) merge(context, &seen, instr, first);
    }
    hlo_arena_release(context->scratch, mark);
}

hlo_status hlo_pass_cse(hlo_pass_context *context) {
    hlo_effects effects = hlo_facts_side_effects(context->module, context->scratch);
    bool *alone = hlo_arena_zero(context->scratch, context->module->next_id);
    for (hlo_computation *comp = context->module->first; comp; comp = comp->next)
        merge_computation(context, comp, alone, &effects);
    return HLO_OK;
}
