/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/verdict/surroundings.h"

#include <stdlib.h>
#include <string.h>

#include "ir/module/known.h"
#include "ir/text/printer.h"
#include "matmul/product.h"

enum { MAX_BEFORE = 20, MAX_BEHIND = 12, STEPS_BEFORE = 6, STEPS_BEHIND = 4 };
enum { MAX = MAX_BEFORE + MAX_BEHIND + 1 };
/* LOOKED_AT limits the operands and the users that are visited for each instruction. All matmuls of
 * a module may share an operand or a user, and the time must be linear in the number of matmuls. */
enum { LOOKED_AT = 32, MAX_OPERANDS = LOOKED_AT + MAX };

typedef struct found {
    const hlo_instruction *instr;
    int step;                       /* distance from the matmul; negative before it */
    uint8_t operands[MAX_OPERANDS]; /* indices of the found instructions that represent its
                                     * operands (see shown()) */
    uint32_t operand_count;
} found;

typedef struct search {
    found v[MAX];
    uint32_t count;
} search;

static bool is_scalar(const hlo_instruction *instr) {
    return instr->shape->type != HLO_TYPE_TUPLE && instr->shape->rank == 0;
}

/* Returns the instruction that represents `value` in the graph. */
static const hlo_instruction *shown(const hlo_instruction *value) {
    for (;;) {
        bool splat = value->op == HLO_OP_BROADCAST && is_scalar(hlo_instr_operand(value, 0));
        if (!splat && value->op != HLO_OP_GET_TUPLE_ELEMENT) return value;
        value = hlo_instr_operand(value, 0);
    }
}

static bool is_matmul(const hlo_instruction *instr) {
    return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
}

static bool add(search *s, const hlo_instruction *instr, int step, uint32_t most) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->v[i].instr == instr) return false;
    if (s->count >= most) return false;
    s->v[s->count++] = (found){.instr = instr, .step = step};
    return true;
}

static uint32_t looked_at(const hlo_instruction *instr) {
    return instr->operand_count < LOOKED_AT ? instr->operand_count : LOOKED_AT;
}

/* The users of a value of the graph: the first users of each instruction that the value represents,
 * including splats and tuple elements. */
typedef struct users {
    const hlo_instruction *v[LOOKED_AT];
    uint32_t count, looks;
} users;

static void find_users(const hlo_instruction *value, const hlo_instruction *as, users *out) {
    for (const hlo_use *use = value->uses; use && out->looks < LOOKED_AT; use = use->next) {
        out->looks++;
        if (shown(use->user) == as)
            find_users(use->user, as, out);
        else
            out->v[out->count++] = use->user;
    }
}

static void add_users(search *s, const hlo_instruction *value, int step) {
    users list = {.count = 0};
    find_users(value, shown(value), &list);
    for (uint32_t i = 0; i < list.count; i++) add(s, list.v[i], step, MAX);
}

static uint32_t index_of(const search *s, const hlo_instruction *instr) {
    uint32_t i = 0;
    while (i < s->count && s->v[i].instr != instr) i++;
    return i;
}

static int by_step(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return x->instr->id < y->instr->id ? -1 : x->instr->id > y->instr->id;
}

/* Orders operands before users. The distance does not determine this order, because an operand may
 * be found on a shorter path. */
static void place(const search *s, uint32_t index, bool *placed, uint32_t *order, uint32_t *count) {
    if (placed[index]) return;
    placed[index] = true;
    for (uint32_t o = 0; o < s->v[index].operand_count; o++)
        place(s, s->v[index].operands[o], placed, order, count);
    order[(*count)++] = index;
}

const hlo_surroundings *hlo_surroundings_of(const hlo_instruction *matmul, hlo_arena *arena) {
    search s = {.v = {{.instr = matmul}}, .count = 1};
    uint32_t order[MAX], places[MAX], count = 0, by_steps[MAX];
    bool placed[MAX] = {false};
    for (uint32_t i = 0; i < s.count; i++) {
        const hlo_instruction *instr = s.v[i].instr;
        int step = s.v[i].step;
        bool ends = step < 0 && (is_matmul(instr) || is_scalar(instr));
        if (ends || step == -STEPS_BEFORE) continue;
        for (uint32_t o = 0; o < looked_at(instr); o++)
            add(&s, shown(hlo_instr_operand(instr, o)), step - 1, 1 + MAX_BEFORE);
    }
    uint32_t first = s.count;
    add_users(&s, s.v[0].instr, 1);
    for (uint32_t i = first; i < s.count; i++)
        if (s.v[i].step < STEPS_BEHIND && !is_matmul(s.v[i].instr))
            add_users(&s, s.v[i].instr, s.v[i].step + 1);
    qsort(s.v + 1, s.count - 1, sizeof s.v[0], by_step);
    /* Find each edge at its end, or at its start if the end has too many operands. */
    for (uint32_t i = 0; i < s.count; i++)
        for (uint32_t o = 0; o < looked_at(s.v[i].instr); o++) {
            uint32_t from = index_of(&s, shown(hlo_instr_operand(s.v[i].instr, o)));
            if (from < s.count) s.v[i].operands[s.v[i].operand_count++] = (uint8_t)from;
        }
    for (uint32_t from = 0; from < s.count; from++) {
        users list = {.count = 0};
        find_users(s.v[from].instr, s.v[from].instr, &list);
        for (uint32_t u = 0; u < list.count; u++) {
            uint32_t to = index_of(&s, list.v[u]);
            found *end = &s.v[to];
            if (to < s.count && end->instr->operand_count > LOOKED_AT &&
                !memchr(end->operands, (uint8_t)from, end->operand_count))
                end->operands[end->operand_count++] = (uint8_t)from;
        }
    }
    for (uint32_t i = 0; i < s.count; i++) by_steps[i] = (i + 1) % s.count;
    for (uint32_t i = 0; i < s.count; i++) place(&s, by_steps[i], placed, order, &count);
    for (uint32_t i = 0; i < count; i++) places[order[i]] = i;
    hlo_surrounding_instr *v = hlo_arena_array(arena, count, sizeof *v);
    for (uint32_t i = 0; i < count; i++) {
        const found *at = &s.v[order[i]];
        const hlo_instruction *instr = at->instr;
        uint32_t *operands = hlo_arena_array(arena, at->operand_count, sizeof *operands),
                 operand_count = 0;
        for (uint32_t o = 0; o < at->operand_count; o++)
            if (places[at->operands[o]] < places[order[i]])
                operands[operand_count++] = places[at->operands[o]];
        double number; /* shown instead of `constant` */
        const bool known = instr->op == HLO_OP_CONSTANT && is_scalar(instr) &&
                           hlo_type_is_float(instr->shape->type) &&
                           hlo_known_number(instr, &number);
        const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
        const char *op = target ? target : hlo_ops[instr->op].name;
        v[i] = (hlo_surrounding_instr){
            .name = hlo_arena_format(arena, "%s", instr->name),
            .op = known ? hlo_arena_format(arena, "%g", number) : hlo_arena_format(arena, "%s", op),
            .shape = instr->shape->type == HLO_TYPE_TUPLE
                         ? ""
                         : hlo_shape_copy_text(arena, instr->shape, false),
            .focus = order[i] == 0,
            .matmul = is_matmul(instr),
            .fp8 = hlo_type_is_fp8(instr->shape->type),
            .operand_count = operand_count,
            .operands = operands};
    }
    hlo_surroundings *made = hlo_arena_alloc(arena, sizeof *made);
    *made = (hlo_surroundings){count, v};
    return made;
}
