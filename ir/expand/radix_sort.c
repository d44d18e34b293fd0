/* SPDX-License-Identifier: Apache-2.0 */
/* Expands the calls of CUB's radix sort that XLA's GPU compiler makes of sorts: to sorts. A radix
 * sort is stable, orders NaNs by their bits and does not distinguish zeros by their sign. */
#include <string.h>

#include "ir/expand/expansion.h"
#include "ir/module/known.h"

/* True for a call that sorts keys, or keys and values, along the last dimension. Its results are
 * the sorted operands and scratch memory. */
static bool is_radix_sort(const hlo_instruction *instr) {
    const uint32_t count = instr->operand_count;
    if (!hlo_is_custom_call(instr, "xla.gpu.ext.cub_sort_keys") &&
        !hlo_is_custom_call(instr, "xla.gpu.ext.cub_sort_pairs") &&
        !hlo_is_custom_call(instr, "__cub$DeviceRadixSort"))
        return false;
    if (!count || count > 2 || instr->shape->type != HLO_TYPE_TUPLE ||
        instr->shape->rank != count + 1 || !hlo_shape_is_array(instr->shape->elements[count]))
        return false;
    const hlo_shape *keys = hlo_instr_operand(instr, 0)->shape;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *shape = hlo_instr_operand(instr, i)->shape;
        if (!hlo_shape_is_array(shape) || shape->dynamic || !hlo_shape_same_dims(shape, keys) ||
            !hlo_shape_compatible(shape, instr->shape->elements[i]))
            return false;
    }
    return keys->rank && hlo_types[keys->type].class != HLO_CLASS_COMPLEX;
}

static bool is_descending(const hlo_instruction *call) {
    const char *config = hlo_instr_str(call, HLO_ATTR_BACKEND_CONFIG);
    const char *word = config ? strstr(config, "descending") : NULL;
    if (!word) return false;
    word += strlen("descending");
    word += strspn(word, "\\\" :=");
    return strncmp(word, "true", 4) == 0;
}

/* Creates the comparator of a sort whose first operand has the keys. */
static hlo_computation *comparator(expansion *x, hlo_instruction *call) {
    hlo_computation *comp = hlo_comp_new(x->module, "radix_sort");
    hlo_instruction *keys[2];
    for (uint32_t i = 0; i < 2 * call->operand_count; i++) {
        const hlo_type type = hlo_instr_operand(call, i / 2)->shape->type;
        const hlo_shape *scalar = hlo_shape_array(x->module, type, 0, NULL);
        hlo_instruction *p = hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, scalar, 0, NULL, NULL);
        hlo_instr_set_parameter(p, i);
        if (i < 2) keys[i] = p;
    }
    /* Insert new instructions before this temporary one, at the end. */
    hlo_instruction *end =
        hlo_instr_new(comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(x->module, 0, NULL), 0, NULL, NULL);
    x->build->at = end;
    const bool floats = hlo_type_is_float(keys[0]->shape->type);
    for (uint32_t i = 0; i < 2 && floats; i++) {
        hlo_instruction *zero = expand_zero(x, keys[i]->shape->type);
        hlo_instruction *is_zero = hlo_build_compare(x->build, keys[i], "EQ", zero);
        keys[i] = hlo_build_select(x->build, is_zero, zero, keys[i]);
    }
    hlo_instruction *less =
        hlo_build_compare(x->build, keys[0], is_descending(call) ? "GT" : "LT", keys[1]);
    if (floats) hlo_instr_set_str(less, HLO_ATTR_TYPE, "TOTALORDER");
    hlo_comp_set_root(comp, less);
    hlo_instr_remove(end);
    hlo_comp_move(comp, call->parent);
    x->build->at = call;
    return comp;
}

static void expand_one(expansion *x, hlo_instruction *call) {
    const uint32_t count = call->operand_count;
    hlo_instruction *parts[3];
    for (uint32_t i = 0; i < count; i++) parts[i] = hlo_instr_operand(call, i);
    const hlo_shape *shapes[] = {parts[0]->shape, parts[count - 1]->shape};
    const int64_t last = shapes[0]->rank - 1;
    hlo_computation *less = comparator(x, call);
    hlo_instruction *sorted =
        hlo_build(x->build, HLO_OP_SORT,
                  count == 1 ? shapes[0] : hlo_shape_tuple(x->module, count, shapes), count, parts);
    hlo_instr_set_ints(sorted, HLO_ATTR_DIMENSIONS, 1, &last);
    hlo_instr_set_int(sorted, HLO_ATTR_IS_STABLE, 1);
    hlo_instr_set_comp(sorted, HLO_ATTR_TO_APPLY, less);
    for (uint32_t i = 0; i < count; i++)
        parts[i] = count == 1 ? sorted : hlo_build_element(x->build, sorted, i);
    parts[count] = hlo_build_filled(x->build, call->shape->elements[count], 0);
    expand_replace(x, HLO_OP_TUPLE, call->shape, count + 1, parts);
}

bool hlo_radix_sort_any(const hlo_module *module) {
    if (!module->op_counts[HLO_OP_CUSTOM_CALL]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            if (is_radix_sort(instr)) return true;
    return false;
}

void hlo_radix_sort_expand(hlo_module *module) {
    expansion x = {.module = module};
    if (!hlo_radix_sort_any(module)) return;
    for (hlo_computation *comp = module->first; comp; comp = comp->next)
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = instr->next;
            x.build->at = instr;
            if (is_radix_sort(instr)) expand_one(&x, instr);
        }
}
