/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the computation of one element of an output: its instruction and the values of its
 * operands, from an execution of the module up to that instruction. */
#include <setjmp.h>
#include <string.h>

#include "hlo/diag.h"
#include "ir/float/float.h"
#include "runtime/io/arrays.h"

/* Returns the instruction of the entry computation that computes leaf `leaf` of its result. */
static hlo_instr *maker(const hlo_module *module, size_t leaf) {
    hlo_instr *instr = module->entry->root;
    while (instr->op == HLO_OP_TUPLE) {
        uint32_t o = 0;
        for (; o < instr->operand_count; o++) {
            size_t leaves = hlo_shape_leaf_count(hlo_instr_operand(instr, o)->shape);
            if (leaf < leaves) break;
            leaf -= leaves;
        }
        if (o == instr->operand_count) return NULL;
        instr = hlo_instr_operand(instr, o);
    }
    return instr->op == HLO_OP_GET_TUPLE_ELEMENT ? hlo_instr_operand(instr, 0) : instr;
}

enum { MOST_OPERANDS = 8 };

/* Computes all operands of the instruction of an output. Returns NULL if that is impossible, for
 * example because an operand is not an array or cannot be executed separately.
 * HLO_OUT_OF_MEMORY. */
static hlo_status operands_of(const hlo_module *module, size_t output, const hlo_arrays *inputs,
                              hlo_arrays **out) {
    hlo_module *copy;
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    *out = NULL;
    hlo_instr *instr = maker(module, output);
    if (!instr->operand_count || instr->operand_count > MOST_OPERANDS) return HLO_OK;
    for (uint32_t o = 0; o < instr->operand_count; o++)
        if (!hlo_shape_is_array(hlo_instr_operand(instr, o)->shape)) return HLO_OK;
    hlo_status status = hlo_module_clone(module, &copy);
    if (status != HLO_OK) return status;
    hlo_plan_options_init(&options);
    /* Make the operands the result of the copy. */
    instr = maker(copy, output);
    hlo_instr *operands[MOST_OPERANDS];
    const hlo_shape *shapes[MOST_OPERANDS];
    uint32_t count = instr->operand_count;
    jmp_buf recover;
    for (uint32_t o = 0; o < count; o++) {
        operands[o] = hlo_instr_operand(instr, o);
        shapes[o] = operands[o]->shape;
    }
    hlo_arena_set_recover(copy->arena, &recover);
    bool made = !setjmp(recover);
    if (made)
        hlo_computation_set_root(copy->entry, hlo_instr_new(copy->entry, NULL, HLO_OP_TUPLE,
                                                            hlo_shape_tuple(copy, count, shapes),
                                                            count, operands, NULL));
    hlo_arena_set_recover(copy->arena, NULL);
    status = made ? HLO_OK : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_plan_new(copy, &options, NULL, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, NULL, out);
    hlo_plan_free(plan);
    hlo_module_free(copy);
    return status == HLO_OUT_OF_MEMORY ? status : HLO_OK;
}

/* True if the arrays differ, and only in ways explained by rounding `values` to f16 before rounding
 * to the fp8 type of the second one. */
static bool rounds_by_f16(const hlo_array *values, const hlo_array *const *sides) {
    const hlo_type type = hlo_type_find(sides[1]->type, strlen(sides[1]->type));
    if (!hlo_type_is_fp8(type) ||
        hlo_type_find(values->type, strlen(values->type)) != HLO_TYPE_F32 ||
        values->size != sides[1]->size * sizeof(float))
        return false;
    for (size_t i = 0; i < sides[1]->size; i++) {
        const uint8_t found = ((const uint8_t *)sides[0]->data)[i],
                      expected = ((const uint8_t *)sides[1]->data)[i];
        const uint64_t half =
            hlo_float_encode(HLO_TYPE_F16, (double)((const float *)values->data)[i]);
        if (found != expected &&
            hlo_float_encode(type, hlo_float_decode(HLO_TYPE_F16, half)) != expected)
            return false;
    }
    return memcmp(sides[0]->data, sides[1]->data, sides[1]->size) != 0;
}

hlo_status hlo_print_element_origin(const hlo_module *module, const char *name,
                                    const hlo_arrays *inputs, size_t output, int64_t element,
                                    const hlo_array *const *sides, FILE *out) {
    hlo_instr *instr = module ? maker(module, output) : NULL;
    hlo_arrays *values = NULL;
    if (!instr) return HLO_OK;
    hlo_status status = inputs ? operands_of(module, output, inputs, &values) : HLO_OK;
    if (status != HLO_OK) return status;
    hlo_print_plain(out, "  %s: %%%s = %s(", name ? name : "computed by", instr->name,
                    hlo_ops[instr->op].name);
    const hlo_shape *result = instr->shape;
    if (result->type == HLO_TYPE_TUPLE && result->rank) result = result->elements[0];
    for (uint32_t o = 0; o < instr->operand_count; o++) {
        hlo_print_plain(out, o ? ", %%%s" : "%%%s", hlo_instr_operand(instr, o)->name);
        if (!values) continue;
        /* Its only element, or the element at the same index. */
        const hlo_array *operand = hlo_arrays_at(values, o);
        const hlo_type type = hlo_type_find(operand->type, strlen(operand->type));
        const size_t width = hlo_types[type].bytes;
        const bool one = operand->size == width;
        if (!one && (operand->rank != result->rank ||
                     (result->rank && memcmp(operand->dims, result->dims,
                                             result->rank * sizeof *result->dims) != 0)))
            continue;
        fputs(" = ", out);
        hlo_print_number(type, (const char *)operand->data + (one ? 0 : (size_t)element * width),
                         out);
    }
    fputs(")\n", out);
    if (sides && values && instr->op == HLO_OP_CONVERT &&
        rounds_by_f16(hlo_arrays_at(values, 0), sides))
        fputs("  hint: all differences are explained by rounding to f16 before FP8, as XLA's CPU "
              "backend does before jaxlib 0.8\n",
              out);
    hlo_arrays_free(values);
    return HLO_OK;
}
