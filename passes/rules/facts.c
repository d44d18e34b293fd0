/* Facts that tests, builders and measures share. */
#include <stdio.h>
#include <string.h>

#include "passes/rules/functions.h"

bool hlo_shape_same_order(const hlo_shape *a, const hlo_shape *b) {
    return a == b || (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b));
}

bool hlo_reduces_by_max(const hlo_instr *reduce) {
    if (reduce->op != HLO_OP_REDUCE || reduce->operand_count != 2) return false;
    const hlo_computation *f = hlo_instr_comp(reduce, HLO_ATTR_TO_APPLY);
    if (!f || !f->root || f->root->op != HLO_OP_MAXIMUM || f->parameter_count != 2) return false;
    const hlo_instr *a = hlo_instr_operand(f->root, 0), *b = hlo_instr_operand(f->root, 1);
    return a != b && a->op == HLO_OP_PARAMETER && b->op == HLO_OP_PARAMETER;
}

bool hlo_decode_call(const hlo_instr *call, hlo_matmul *out) {
    const char *reason;
    return hlo_matmul_is_call(call) && hlo_matmul_decode(call, out, &reason) == HLO_OK;
}

int64_t hlo_call_misaligned_sizes(const hlo_matmul *m) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    const int64_t each = hlo_matmul_alignment(m, false);
    return (size.m % each != 0) + (size.n % each != 0) +
           (size.k % hlo_matmul_alignment(m, true) != 0);
}

/* True if the caller gives up the parameter's memory: for parameter 2 the module header has `{0}:
 * (2,
 * {}, may-alias)`. */
static bool is_donated(const hlo_instr *parameter) {
    const hlo_module *module = parameter->parent->module;
    const hlo_aliases *aliases = NULL;
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_INPUT_OUTPUT_ALIAS)
            aliases = module->attrs[i].u.aliases;
    if (!aliases || parameter->parent != module->entry) return false;
    for (uint32_t i = 0; i < aliases->count; i++)
        if (aliases->v[i].number == parameter->u.parameter && !aliases->v[i].part->count)
            return true;
    return false;
}

bool hlo_call_overwrites_addend(const hlo_matmul *m) {
    return m->c && !m->in_place && !m->c->pin && m->c->shape == m->d &&
           hlo_instr_user_count(m->c) == 1 && m->c->op != HLO_OP_CONSTANT &&
           (m->c->op != HLO_OP_PARAMETER || is_donated(m->c));
}

bool hlo_shape_is_batch_major(const hlo_shape *shape, uint32_t batch) {
    if (shape->rank < batch) return false;
    for (uint32_t i = 0; shape->layout && i < batch; i++)
        if (shape->layout->minor_to_major[shape->rank - 1 - i] != i) return false;
    return true;
}
