/* SPDX-License-Identifier: Apache-2.0 */
/* Converts narrow values to fp8 before they are converted to a wide type. Narrow values are
 * integers and floats of fewer than 8 bits, and integers whose range (ir/eval/range.h) is within
 * [-16, 16]. f8e4m3fn represents all of them. Every rule then matches them as fp8 values:
 * convert(s4) becomes convert(convert(s4): f8e4m3fn). hlo_pass_restore_narrow() restores the values
 * that no call has fused. A dot's operand with a narrow type is also converted, if the other
 * operand is narrow or comes from fp8.
 *
 * Needs: operands before users.
 * Does not change: pinned instructions, fused computations, single elements.
 * Numerics: unchanged: both conversions are exact. Tests: testdata/passes/narrow/ */
#include "passes/analysis/dequantize.h"
#include "passes/analysis/module_facts.h"
#include "passes/passes.h"

#include "ir/eval/range.h"
#include "ir/module/build.h"
#include "ir/module/known.h"

/* E4M3_WHOLE: f8e4m3fn represents all integers up to this number. LITERAL_LIMIT: maximum number of
 * constant elements to read. */
enum { E4M3_WHOLE = 16, LITERAL_LIMIT = 1 << 22 };

/* The ranges of the values of the module's instructions before the pass. */
typedef struct facts {
    hlo_range *ranges; /* by instruction id; sources except constants set a bit */
    hlo_fp8_reach reach;
} facts;

/* True if f8e4m3fn represents every element of the value: by its type, or by its range if the value
 * is not constant. */
static bool fits(const facts *f, const hlo_instruction *value) {
    if (hlo_type_fits_e4m3(value->shape->type)) return true;
    if (value->id >= f->reach.count) return false;
    const hlo_range *r = &f->ranges[value->id];
    return r->sources && r->whole && r->low >= -E4M3_WHOLE && r->high <= E4M3_WHOLE;
}

static hlo_range read_range(void *ranges, const hlo_instruction *value) {
    return ((const hlo_range *)ranges)[value->id];
}

static bool is_converted_fp8(const hlo_instruction *value) {
    return value->op == HLO_OP_CONVERT && hlo_type_is_fp8(hlo_instr_operand(value, 0)->shape->type);
}

static hlo_instruction *converted(hlo_instruction *place, hlo_instruction *like, hlo_type type,
                                  hlo_instruction *value) {
    const hlo_shape *shape = hlo_shape_retype(place->parent->module, like->shape, type);
    hlo_builder b = {.at = place, .like = like};
    hlo_instruction *made = hlo_build(&b, HLO_OP_CONVERT, shape, 1, &value);
    hlo_instr_inherit(made, like);
    return made;
}

/* Converts a wide array to fp8 and back. Returns false if the pass does not convert the array. */
static bool quantize(hlo_pass_context *context, const facts *f, hlo_instruction *value) {
    if (value->pin || !hlo_shape_is_array(value->shape) || value->shape->dynamic ||
        hlo_shape_count(value->shape) < 2 || !hlo_type_is_wide(value->shape->type) ||
        is_converted_fp8(value))
        return false;
    const bool widens = value->op == HLO_OP_CONVERT && fits(f, hlo_instr_operand(value, 0));
    if (!widens && (!fits(f, value) || hlo_instr_moves(value))) return false;
    hlo_instruction *place = hlo_instr_next(value), *wide = NULL;
    for (hlo_use *use = value->uses, *next; use; use = next) {
        next = use->next;
        hlo_instruction *user = use->user;
        /* If the user also fits into fp8, `value` itself need not be fp8. */
        if (user->pin || (fits(f, user) && !hlo_instr_moves(user))) continue;
        if (!wide) {
            hlo_instruction *from =
                value->op == HLO_OP_CONVERT ? hlo_instr_operand(value, 0) : value;
            wide = converted(place, value, HLO_TYPE_F8E4M3FN, fits(f, from) ? from : value);
            wide = converted(place, value, value->shape->type, wide);
            context->changes++;
        }
        for (uint32_t i = 0; i < user->operand_count; i++)
            if (&user->operands[i] == use) hlo_instr_set_operand(user, i, wide);
    }
    return true;
}

/* True for a dot with a wide result whose operand `number` has a narrow type. */
static bool is_bare(const hlo_instruction *dot, uint32_t number) {
    return dot->op == HLO_OP_DOT && dot->operand_count == 2 && hlo_type_is_wide(dot->shape->type) &&
           hlo_type_fits_e4m3(hlo_instr_operand(dot, number)->shape->type);
}

/* True if an integer or narrow float is converted to a float, or a narrow value is an operand of a
 * dot. */
static bool any_source(const hlo_module *module) {
    if (!module->op_counts[HLO_OP_CONVERT] && !module->op_counts[HLO_OP_DOT]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            if (is_bare(instr, 0) || is_bare(instr, 1)) return true;
            if (instr->op != HLO_OP_CONVERT || !hlo_type_is_float(instr->shape->type)) continue;
            const hlo_type from = hlo_instr_operand(instr, 0)->shape->type;
            if (hlo_type_is_integer(from) || hlo_type_fits_e4m3(from)) return true;
        }
    return false;
}

static void restore(hlo_pass_context *context, const facts *f, hlo_instruction *value) {
    if (value->pin || !hlo_type_is_wide(value->shape->type) || !is_converted_fp8(value)) return;
    const hlo_instruction *fp8 = hlo_instr_operand(value, 0);
    if (fp8->pin || fp8->op != HLO_OP_CONVERT || fp8->shape->type != HLO_TYPE_F8E4M3FN) return;
    hlo_instruction *from = hlo_instr_operand(fp8, 0);
    if (!fits(f, from)) return;
    if (from->shape != value->shape) from = converted(value, value, value->shape->type, from);
    hlo_instr_replace_uses(value, from);
    hlo_instr_remove(value);
    context->changes++;
}

static hlo_status each(hlo_pass_context *context, bool back) {
    hlo_module *module = context->module;
    if (!any_source(module)) return HLO_OK;
    const bool *fused = hlo_facts_fused(module, context->scratch);
    const bool fp8 = context->target->fp8;
    facts f = {.reach = hlo_facts_fp8_reach(module, context->scratch)};
    f.ranges = hlo_arena_array(context->scratch, f.reach.count, sizeof *f.ranges);
    for (hlo_computation *comp = module->first; comp; comp = comp->next) {
        if (hlo_facts_has(fused, comp->id)) continue;
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            int64_t budget = LITERAL_LIMIT;
            f.ranges[instr->id] = instr->pin ? hlo_range_of_type(instr->shape->type)
                                  : instr->op == HLO_OP_CONSTANT
                                      ? hlo_range_of_constant(instr, &budget)
                                      : hlo_range_of_result(instr, read_range, f.ranges);
        }
        for (hlo_instruction *instr = comp->first, *next; instr; instr = next) {
            next = hlo_instr_next(instr);
            if (back) restore(context, &f, instr);
            if (back || quantize(context, &f, instr) || !fp8 || instr->pin) continue;
            /* Convert bare operands of a dot to fp8, and then to the other operand's wide type. */
            for (uint32_t i = 0; i < 2; i++) {
                if (!is_bare(instr, i)) continue;
                hlo_instruction *value = hlo_instr_operand(instr, i);
                const hlo_instruction *other = hlo_instr_operand(instr, 1 - i);
                const hlo_type type = other->shape->type;
                const bool narrow = hlo_type_is_fp8_operand(type) || hlo_type_fits_e4m3(type);
                if (!narrow && !(hlo_type_is_wide(type) && hlo_facts_from_fp8(&f.reach, other)))
                    continue;
                value = converted(instr, value, HLO_TYPE_F8E4M3FN, value);
                if (!narrow) value = converted(instr, value, type, value);
                hlo_instr_set_operand(instr, i, value);
                context->changes++;
            }
        }
    }
    return HLO_OK;
}

hlo_status hlo_pass_quantize_narrow(hlo_pass_context *context) {
    return each(context, false);
}

hlo_status hlo_pass_restore_narrow(hlo_pass_context *context) {
    return each(context, true);
}
