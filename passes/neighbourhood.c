#include "passes/neighbourhood.h"

#include <stdlib.h>
#include <string.h>

#include "matmul/product.h"

enum { BEFORE_MOST = 20, BEHIND_MOST = 12, STEPS_BEFORE = 6, STEPS_BEHIND = 4 };
enum { MOST = BEFORE_MOST + BEHIND_MOST + 1 };

typedef struct found {
    const hlo_instr *instr;
    int step; /* from the matmul; negative: before it */
} found;

typedef struct search {
    found v[MOST];
    uint32_t count;
} search;

static bool is_scalar(const hlo_instr *instr) {
    return instr->shape->type != HLO_TYPE_TUPLE && instr->shape->rank == 0;
}

/* What stands for the value in the picture. */
static const hlo_instr *shown(const hlo_instr *value) {
    for (;;) {
        bool splat = value->op == HLO_OP_BROADCAST && is_scalar(hlo_instr_operand(value, 0));
        if (!splat && value->op != HLO_OP_GET_TUPLE_ELEMENT) return value;
        value = hlo_instr_operand(value, 0);
    }
}

static bool is_matmul(const hlo_instr *instr) {
    return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
}

static bool add(search *s, const hlo_instr *instr, int step, uint32_t most) {
    for (uint32_t i = 0; i < s->count; i++)
        if (s->v[i].instr == instr) return false;
    if (s->count >= most) return false;
    s->v[s->count++] = (found){instr, step};
    return true;
}

static void look_before(search *s) {
    for (uint32_t i = 0; i < s->count; i++) {
        found at = s->v[i];
        bool ends = at.step < 0 && (is_matmul(at.instr) || is_scalar(at.instr));
        if (ends || at.step == -STEPS_BEFORE) continue;
        for (uint32_t o = 0; o < at.instr->operand_count; o++)
            add(s, shown(hlo_instr_operand(at.instr, o)), at.step - 1, 1 + BEFORE_MOST);
    }
}

static void add_users(search *s, const hlo_instr *value, int step) {
    for (const hlo_use *use = value->uses; use; use = use->next) {
        if (shown(use->user) == shown(value))
            add_users(s, use->user, step);
        else
            add(s, use->user, step, MOST);
    }
}

static void look_behind(search *s) {
    uint32_t first = s->count;
    add_users(s, s->v[0].instr, 1);
    for (uint32_t i = first; i < s->count; i++)
        if (s->v[i].step < STEPS_BEHIND && !is_matmul(s->v[i].instr))
            add_users(s, s->v[i].instr, s->v[i].step + 1);
}

static int by_step(const void *a, const void *b) {
    const found *x = a, *y = b;
    if (x->step != y->step) return x->step < y->step ? -1 : 1;
    return x->instr->id < y->instr->id ? -1 : x->instr->id > y->instr->id;
}

/* Operands first, whatever the steps say: an operand may be found by a shorter way. */
static void place(const search *s, uint32_t index, bool *placed, uint32_t *order, uint32_t *count) {
    if (placed[index]) return;
    placed[index] = true;
    const hlo_instr *instr = s->v[index].instr;
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        const hlo_instr *operand = shown(hlo_instr_operand(instr, o));
        for (uint32_t i = 0; i < s->count; i++)
            if (s->v[i].instr == operand) place(s, i, placed, order, count);
    }
    order[(*count)++] = index;
}

static const char *shape_of(const hlo_instr *instr, hlo_arena *arena) {
    if (instr->shape->type == HLO_TYPE_TUPLE) return "";
    size_t size = hlo_shape_format(instr->shape, false, NULL, 0) + 1;
    char *text = hlo_arena_alloc(arena, size);
    hlo_shape_format(instr->shape, false, text, size);
    return text;
}

static const char *op_of(const hlo_instr *instr, hlo_arena *arena) {
    double number;
    if (instr->op == HLO_OP_CONSTANT && is_scalar(instr) && hlo_type_is_float(instr->shape->type) &&
        hlo_known_number(instr, &number))
        return hlo_arena_format(arena, "%g", number);
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return hlo_arena_format(arena, "%s", target ? target : hlo_ops[instr->op].name);
}

static hlo_neighbour describe(const search *s, const uint32_t *order, uint32_t at,
                              hlo_arena *arena) {
    const hlo_instr *instr = s->v[order[at]].instr;
    uint32_t *operands = hlo_arena_array(arena, instr->operand_count, sizeof *operands), count = 0;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        for (uint32_t i = 0; i < at; i++)
            if (s->v[order[i]].instr == shown(hlo_instr_operand(instr, o))) operands[count++] = i;
    return (hlo_neighbour){.name = hlo_arena_format(arena, "%s", instr->name),
                           .op = op_of(instr, arena),
                           .shape = shape_of(instr, arena),
                           .focus = order[at] == 0,
                           .matmul = is_matmul(instr),
                           .fp8 = hlo_type_is_fp8(instr->shape->type),
                           .operand_count = count,
                           .operands = operands};
}

const hlo_neighbourhood *hlo_neighbourhood_of(const hlo_instr *matmul, hlo_arena *arena) {
    search s = {.v = {{matmul, 0}}, .count = 1};
    uint32_t order[MOST], count = 0, by_steps[MOST];
    bool placed[MOST] = {false};
    look_before(&s);
    look_behind(&s);
    qsort(s.v + 1, s.count - 1, sizeof s.v[0], by_step);
    for (uint32_t i = 0; i < s.count; i++) by_steps[i] = (i + 1) % s.count;
    for (uint32_t i = 0; i < s.count; i++) place(&s, by_steps[i], placed, order, &count);
    hlo_neighbour *v = hlo_arena_array(arena, count, sizeof *v);
    for (uint32_t i = 0; i < count; i++) v[i] = describe(&s, order, i, arena);
    hlo_neighbourhood *made = hlo_arena_alloc(arena, sizeof *made);
    *made = (hlo_neighbourhood){count, v};
    return made;
}
