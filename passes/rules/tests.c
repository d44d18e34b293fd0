/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the tests and measures of builder.def, and functions that builders also use. */
#include <math.h>
#include <string.h>

#include "ir/eval/range.h"
#include "ir/float/float.h"
#include "ir/ir.h"
#include "ir/module/known.h"
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"
#include "passes/rules/library.h"
#include "passes/sharding/devices.h"

bool hlo_shape_same_order(const hlo_shape *a, const hlo_shape *b) {
    return a == b || (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b));
}

bool hlo_reduces_by_max(const hlo_instruction *reduce) {
    if (reduce->op != HLO_OP_REDUCE || reduce->operand_count != 2) return false;
    const hlo_computation *f = hlo_instr_comp(reduce, HLO_ATTR_TO_APPLY);
    if (!f || !f->root || f->root->op != HLO_OP_MAXIMUM || f->parameter_count != 2) return false;
    const hlo_instruction *a = hlo_instr_operand(f->root, 0), *b = hlo_instr_operand(f->root, 1);
    return a != b && a->op == HLO_OP_PARAMETER && b->op == HLO_OP_PARAMETER;
}

bool hlo_decode_call(const hlo_instruction *call, hlo_matmul *out) {
    const char *reason;
    return hlo_matmul_is_call(call) && hlo_matmul_decode(call, out, &reason) == HLO_OK;
}

/* Counts the sizes among m, n and k of a call that are not multiples of hlo_matmul_alignment(). */
static int64_t misaligned_sizes(const hlo_matmul *m) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    const int64_t each = hlo_matmul_alignment(m, false);
    return (size.m % each != 0) + (size.n % each != 0) +
           (size.k % hlo_matmul_alignment(m, true) != 0);
}

/* True if the call can overwrite its addend with the result: the addend has no other user and, if
 * it is a parameter, its memory is donated (for parameter 2, the module header has `{0}: (2, {},
 * may-alias)`). */
static bool overwrites_addend(const hlo_matmul *m) {
    const hlo_instruction *c = m->c;
    if (!c || m->in_place || c->pin || c->shape != m->d || hlo_instr_user_count(c) != 1 ||
        c->op == HLO_OP_CONSTANT)
        return false;
    if (c->op != HLO_OP_PARAMETER) return true;
    const hlo_module *module = c->parent->module;
    const hlo_aliases *aliases = NULL;
    for (uint32_t i = 0; c->parent == module->entry && i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_INPUT_OUTPUT_ALIAS)
            aliases = module->attrs[i].u.aliases;
    for (uint32_t i = 0; aliases && i < aliases->count; i++)
        if (aliases->v[i].number == c->u.parameter && !aliases->v[i].part->count) return true;
    return false;
}

bool hlo_shape_is_batch_major(const hlo_shape *shape, uint32_t batch) {
    if (shape->rank < batch) return false;
    for (uint32_t i = 0; shape->layout && i < batch; i++)
        if (shape->layout->minor_to_major[shape->rank - 1 - i] != i) return false;
    return true;
}

static const hlo_shape *shape_of(const hlo_binding *arg) {
    return hlo_shape_is_array(arg->instr->shape) ? arg->instr->shape : NULL;
}

/* ----------------------------------------------------------------------------- types and shapes */

TEST(fp8) {
    const hlo_shape *s = shape_of(args);
    return s && !s->dynamic && hlo_type_is_fp8_operand(s->type);
}

TEST(wide) {
    const hlo_shape *s = shape_of(args);
    return s && hlo_type_is_wide(s->type);
}

TEST(scalar) {
    const hlo_shape *s = shape_of(args);
    return s && !s->rank;
}

TEST(single) {
    return hlo_shape_count(args->instr->shape) == 1;
}

TEST(same_shape) {
    const hlo_shape *a = args[0].instr->shape, *b = args[1].instr->shape;
    return hlo_shape_compatible(a, b) && hlo_shape_same_order(a, b);
}

TEST(same_type) {
    return args[0].instr->shape->type == args[1].instr->shape->type;
}

TEST(exact) {
    static const struct {
        hlo_type from, to;
    } rows[] = {
        {HLO_TYPE_F8E4M3FN, HLO_TYPE_BF16}, {HLO_TYPE_F8E4M3FN, HLO_TYPE_F16},
        {HLO_TYPE_F8E4M3FN, HLO_TYPE_F32},  {HLO_TYPE_F8E5M2, HLO_TYPE_BF16},
        {HLO_TYPE_F8E5M2, HLO_TYPE_F16},    {HLO_TYPE_F8E5M2, HLO_TYPE_F32},
        {HLO_TYPE_BF16, HLO_TYPE_F32},      {HLO_TYPE_F16, HLO_TYPE_F32},
        {HLO_TYPE_F32, HLO_TYPE_F64},       {HLO_TYPE_BF16, HLO_TYPE_F64},
        {HLO_TYPE_F16, HLO_TYPE_F64},
    };
    const hlo_type from = args[0].instr->shape->type, to = args[1].instr->shape->type;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].from == from && rows[i].to == to) return true;
    return from == to;
}

static bool counts_up(const hlo_ints *list, uint32_t count) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->v[i] != i) return false;
    return list->count == count;
}

TEST(identity) {
    const hlo_instruction *i = args->instr;
    const hlo_shape *s = i->shape;
    if (!i->operand_count || hlo_instr_operand(i, 0)->shape != s) return false;
    if (hlo_op_is(i->op, HLO_TRANSPOSES | HLO_REPEATS))
        return counts_up(hlo_instr_ints(i, HLO_ATTR_DIMENSIONS), s->rank);
    return hlo_op_is(i->op, HLO_KEEPS_ORDER) || i->op == HLO_OP_CONVERT || i->op == HLO_OP_SLICE;
}

/* ---------------------------------------------------------------------------------------- users */

/* Counts users, up to two, and looks through barriers and sharding annotations. If `index` is not
 * negative, counts users of this element of a tuple. A nested tuple counts as one user. */
static uint32_t users_past(const hlo_instruction *value, int64_t index, unsigned depth) {
    uint32_t count = value->parent->root == value;
    for (const hlo_use *use = value->uses; use && count < 2; use = use->next) {
        const hlo_instruction *user = use->user;
        const bool takes = index >= 0 && user->op == HLO_OP_GET_TUPLE_ELEMENT;
        if (takes && hlo_instr_int(user, HLO_ATTR_INDEX, -1) != index) continue;
        const bool puts = index < 0 && user->op == HLO_OP_TUPLE;
        const int64_t next = takes ? -1 : puts ? use - user->operands : index;
        count +=
            depth && (takes || puts || hlo_hands_on(user)) ? users_past(user, next, depth - 1) : 1;
    }
    return count;
}

TEST(one_use) {
    enum { DEPTH = 8 };
    return (env->looks_past ? users_past(args->instr, -1, DEPTH)
                            : hlo_instr_user_count(args->instr)) == 1;
}

static bool is_user(const hlo_binding *args, uint32_t count, const hlo_instruction *user) {
    for (uint32_t i = 0; i < count; i++)
        if (hlo_has_instr(&args[i]) && args[i].instr == user) return true;
    return false;
}

TEST(only_uses) {
    if (!hlo_has_instr(args)) return true;
    if (args->instr->parent->root == args->instr) return false;
    for (const hlo_use *use = args->instr->uses; use; use = use->next)
        if (!is_user(args + 1, count - 1, use->user)) return false;
    return true;
}

/* True if all paths from `value` to results of the module pass through `ends`. */
static bool ends_in(const hlo_instruction *value, const hlo_binding *ends, uint32_t count,
                    uint32_t *budget) {
    if (value->parent->root == value || !value->uses) return false;
    for (const hlo_use *use = value->uses; use; use = use->next)
        if (!is_user(ends, count, use->user) &&
            (!(*budget)-- || !ends_in(use->user, ends, count, budget)))
            return false;
    return true;
}

TEST(used_only_by) {
    uint32_t budget = 64; /* larger than the size of any pattern */
    return ends_in(args->instr, args + 1, count - 1, &budget);
}

/* --------------------------------------------------------------------------------------- values */

TEST(allowed) {
    const hlo_pass_options *options = env->context->options;
    return (!strcmp(args->word, "bias-rounding") && options->allow_bias_rounding) ||
           (!strcmp(args->word, "merge-dots") && options->merge_dots) ||
           (!strcmp(args->word, "dense-ragged") && options->ragged != HLO_RAGGED_KEEP);
}

TEST(mark) {
    return hlo_instr_is_mark(args->instr) && hlo_instr_moves_by(args->instr, HLO_COPIES);
}

TEST(is) {
    return !strcmp(hlo_ops[args->instr->op].name, args[1].word);
}

TEST(repeats) {
    return hlo_splat_source(args->instr) != NULL;
}

TEST(sends) {
    const hlo_instruction *start = args->instr;
    if (start->op != HLO_OP_ASYNC_START || start->operand_count != 1) return false;
    const hlo_computation *called = hlo_instr_comp(start, HLO_ATTR_CALLS);
    const hlo_instruction *wrapped = called ? hlo_async_wrapped(called) : NULL;
    return wrapped && (wrapped->op == HLO_OP_ALL_GATHER || wrapped->op == HLO_OP_ALL_TO_ALL ||
                       wrapped->op == HLO_OP_COLLECTIVE_PERMUTE);
}

TEST(covers_all_devices) {
    hlo_op op = hlo_devices_sender(args->instr)->op;
    return op != HLO_OP_COLLECTIVE_PERMUTE && op != HLO_OP_COLLECTIVE_PERMUTE_START;
}

TEST(agreed) {
    const hlo_instruction *sender = hlo_devices_sender(args[1].instr);
    return hlo_op_is(sender->op, HLO_COLLECTIVE) &&
           hlo_devices_replicated(env->context, args[0].instr, args[1].instr);
}

TEST(at_most) {
    double number;
    return !hlo_has_instr(args) ||
           (hlo_known_number(args->instr, &number) && number <= args[1].number);
}

TEST(finite_range) {
    double low, high;
    const hlo_type type = args[2].instr->shape->type;
    if (!hlo_type_is_float(type) || !hlo_known_number(args[0].instr, &low) ||
        !hlo_known_number(args[1].instr, &high))
        return false;
    const double largest = hlo_float_max(type);
    return low == -largest && high == largest;
}

TEST(max) {
    return hlo_reduces_by_max(args->instr);
}

TEST(max_of_all) {
    return hlo_reduces_by_max(args->instr) &&
           hlo_instr_ints(args->instr, HLO_ATTR_DIMENSIONS)->count ==
               hlo_instr_operand(args->instr, 0)->shape->rank;
}

/* The amax of a nonnegative value is its maximum. */
TEST(amax_of) {
    hlo_matmul m;
    if (!hlo_has_instr(args) || hlo_has_instr(args + 1)) return true;
    return hlo_decode_call(args[2].instr, &m) &&
           hlo_activations[hlo_epilogues[m.epilogue].activation].never_negative;
}

TEST(broadcasts_column) {
    const hlo_instruction *broadcast = args->instr;
    const hlo_shape *d = args[1].instr->shape;
    if (broadcast->op != HLO_OP_BROADCAST || !d->rank) return false;
    const hlo_ints *dims = hlo_instr_ints(broadcast, HLO_ATTR_DIMENSIONS);
    int64_t rows = hlo_shape_count(hlo_instr_operand(broadcast, 0)->shape);
    return counts_up(dims, dims->count) && rows * d->dims[d->rank - 1] == hlo_shape_count(d);
}

TEST(single_use_slice) {
    return args->instr->op == HLO_OP_SLICE &&
           hlo_instr_user_count(hlo_instr_operand(args->instr, 0)) == 1;
}

TEST(prefix_slice) {
    if (!hlo_test_single_use_slice(env, args, count, out_blocker)) return false;
    const hlo_ints *slices = hlo_instr_ints(args->instr, HLO_ATTR_SLICE);
    for (uint32_t i = 0; i < slices->count; i += 3)
        if (slices->v[i] != 0 || slices->v[i + 2] != 1) return false;
    return true;
}

TEST(only_view) {
    const hlo_instruction *view = args[0].instr, *from = args[1].instr;
    if (view->op == HLO_OP_BITCAST &&
        (view->shape->type != from->shape->type || !hlo_shape_same_order(view->shape, from->shape)))
        return false;
    if (view == from) return true;
    if (from->parent->root == from) return false;
    for (const hlo_use *use = from->uses; use; use = use->next)
        if (use->user != view && !is_user(args + 2, count - 2, use->user)) return false;
    return true;
}

/* -------------------------------------------------------------------------------------- matmuls */

TEST(matmul) {
    return hlo_matmul_is_call(args->instr);
}

TEST(aligned) {
    hlo_matmul m;
    return hlo_decode_call(args->instr, &m) && !misaligned_sizes(&m);
}

TEST(block_dot) {
    hlo_matmul m;
    return hlo_matmul_from_block(args->instr, &m);
}

TEST(linear) {
    hlo_matmul m;
    if (!hlo_decode_call(args->instr, &m)) return false;
    return !m.c && !hlo_epilogues[m.epilogue].activation;
}

/* Reads a call of only the product times `alpha` and scales, and a homogeneous activation. */
static bool decode_product(const hlo_binding *arg, hlo_matmul *m) {
    if (!hlo_decode_call(arg->instr, m) || m->c || hlo_type_is_fp8(m->d->type)) return false;
    const hlo_epilogue_info *epilogue = &hlo_epilogues[m->epilogue];
    return !epilogue->bias && !epilogue->aux && hlo_activations[epilogue->activation].homogeneous;
}

TEST(supports_result_type) {
    hlo_matmul m;
    if (!hlo_decode_call(args->instr, &m) || hlo_epilogues[m.epilogue].aux) return false;
    m.d = hlo_shape_retype(env->context->module, m.d, args[1].instr->shape->type);
    return !hlo_matmul_check(&m, env->context->target, env->context->cuda, env->context->scales);
}

TEST(alpha_free) {
    hlo_matmul m;
    return decode_product(args, &m) && m.alpha == 1;
}

TEST(nonzero) {
    double number;
    return !hlo_known_number_pinned(args->instr, &number) || (float)number != 0;
}

TEST(positive_zero) {
    double number;
    return hlo_known_number(args->instr, &number) && number == 0 && !signbit(number);
}

TEST(dividing) {
    double number;
    return !hlo_known_number_pinned(args->instr, &number) || (float)(1 / number) != 0;
}

TEST(a_scale_free) {
    hlo_matmul m;
    return decode_product(args, &m) && !m.a_scale;
}

TEST(rows_free) {
    hlo_matmul m;
    if (!decode_product(args, &m) || hlo_scale_modes[m.a_mode].along ||
        hlo_scale_modes[m.b_mode].along)
        return false;
    m.a_mode = m.b_mode = HLO_SCALE_OUTER_VEC;
    return !hlo_matmul_check(&m, env->context->target, env->context->cuda, env->context->scales);
}

/* True if a factor or divisor commutes with the relu of `call`, if any: it is not negative and,
 * with `positive`, not 0. A constant factor must be positive and finite: relu(-inf) * 0 is 0, but
 * relu(-inf * 0) is NaN; relu(-1) * inf is NaN, but relu(-1 * inf) is 0. */
static bool commutes_with_relu(const hlo_rule_env *env, hlo_instruction *factor,
                               const hlo_binding *call, bool positive) {
    hlo_matmul m;
    bool is_positive = true;
    if (!decode_product(call, &m)) return false;
    if (m.epilogue == HLO_EPILOGUE_DEFAULT) return true;
    int64_t count;
    hlo_arena *scratch = env->context->scratch;
    const hlo_arena_mark mark = hlo_arena_here(scratch);
    const double *numbers = hlo_fixed_elements(scratch, factor, &count);
    for (int64_t i = 0; numbers && i < count; i++)
        is_positive &= numbers[i] > 0 && isfinite(numbers[i]);
    hlo_arena_release(scratch, mark);
    if (numbers) return is_positive;
    const double low = hlo_range_of(factor).low;
    return positive ? low > 0 : low >= 0;
}

TEST(passes_relu) {
    return commutes_with_relu(env, args->instr, args + 1, false);
}

TEST(divides_relu) {
    return commutes_with_relu(env, args->instr, args + 1, true);
}

TEST(overwritable) {
    hlo_matmul m;
    return hlo_decode_call(args->instr, &m) && overwrites_addend(&m);
}

TEST(amax_of_part) {
    return hlo_has_instr(args) && args[1].instr->op == HLO_OP_SLICE;
}

TEST(placed) {
    hlo_matmul m;
    return !hlo_decode_call(args->instr, &m) ||
           !hlo_operand_layout_is_missing(env, &m, args[1].number != 0);
}

TEST(turned) {
    hlo_matmul m;
    return hlo_decode_call(args->instr, &m) &&
           hlo_redundant_transposes(env, &m, args[1].number != 0) > 0;
}

TEST(several_batches) {
    hlo_matmul m;
    const hlo_target *target = env->context->target;
    if (!hlo_decode_call(args->instr, &m) || m.a_batch->count < 2) return false;
    uint32_t batch = m.a_batch->count;
    return hlo_matmul_layout_ok(&m, target, false) && hlo_matmul_layout_ok(&m, target, true) &&
           hlo_shape_is_batch_major(m.d, batch) &&
           (!m.c || hlo_shape_is_batch_major(m.c->shape, batch)) &&
           (!m.aux || hlo_shape_is_batch_major(m.aux, batch));
}

TEST(movable) {
    hlo_dequantized below;
    if (!hlo_dequantized_read(args->inner, &below) &&
        !hlo_dequantized_read_scaled(args->inner, &below))
        return false;
    for (const hlo_instruction *link = args->instr; link != args->inner;
         link = hlo_instr_operand(link, 0))
        if (!hlo_link_moves(link, &below)) {
            *out_blocker = link;
            return false;
        }
    return true;
}

TEST(branches_dequantized) {
    hlo_dequantized leaf;
    return hlo_tree_moves(args->instr, false, &leaf);
}

TEST(branches_alike) {
    hlo_dequantized leaf;
    return hlo_tree_moves(args->instr, true, &leaf);
}

/* ------------------------------------------------------------------------------------- measures */

static int64_t size_of(const hlo_rule_env *env, const hlo_instruction *value, unsigned depth) {
    bool leaf = !depth || !value->operand_count || value->op == HLO_OP_CUSTOM_CALL;
    for (uint32_t i = 0; i < env->rule->slot_count && !leaf; i++)
        leaf = env->slots[i].leaf && env->slots[i].kind == HLO_BOUND_VALUE &&
               env->slots[i].instr == value;
    if (leaf) return 1;
    int64_t size = 2;
    if (value->op == HLO_OP_DOT) size = 16;
    if (hlo_op_is(value->op, HLO_REORDERS)) size = 4;
    if (value->op == HLO_OP_BROADCAST && hlo_instr_operand(value, 0)->shape->rank) size = 8;
    if (value->op == HLO_OP_CONVERT)
        for (const hlo_instruction *v = hlo_instr_operand(value, 0); v->op == HLO_OP_BROADCAST;
             v = hlo_instr_operand(v, 0))
            size++;
    for (uint32_t i = 0; i < value->operand_count; i++)
        size += size_of(env, hlo_instr_operand(value, i), depth - 1);
    return size;
}

MEASURE(expression_size) {
    enum { DEPTH = 10 };
    return size_of(env, value, DEPTH);
}

MEASURE(dots) {
    hlo_matmul m;
    return value->op == HLO_OP_DOT || hlo_matmul_from_block(value, &m);
}

MEASURE(wide_ragged) {
    if (value->op != HLO_OP_RAGGED_DOT) return 0;
    return 2 - (hlo_type_is_fp8_operand(hlo_instr_operand(value, 0)->shape->type) &&
                hlo_type_is_fp8_operand(hlo_instr_operand(value, 1)->shape->type));
}

/* Counts the links that move wide values, down to the first with several branches. */
MEASURE(wide_links) {
    int64_t links = 0;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        const hlo_instruction *v = hlo_instr_operand(value, i);
        for (; hlo_chain_link(v); v = hlo_instr_operand(v, 0))
            links += v->op != HLO_OP_CONVERT && hlo_types[v->shape->type].bits > 8;
        links += hlo_op_is(v->op, HLO_JOINS);
    }
    return links;
}

MEASURE(fp8_operands) {
    int64_t operands = 0;
    for (uint32_t i = 0; i < value->operand_count; i++)
        operands += hlo_type_is_fp8(hlo_instr_operand(value, i)->shape->type);
    return operands;
}

/* A misaligned size has a larger weight than the overwritable addend that padding creates. */
MEASURE(misplaced_operands) {
    while (value->op == HLO_OP_SLICE || value->op == HLO_OP_RESHAPE ||
           value->op == HLO_OP_GET_TUPLE_ELEMENT)
        value = hlo_instr_operand(value, 0);
    hlo_matmul m;
    if (!hlo_decode_call(value, &m)) return 0;
    int64_t misplaced =
        2 * misaligned_sizes(&m) + 2 * (m.a_batch->count > 1) + overwrites_addend(&m);
    for (int b = 0; b < 2; b++)
        misplaced +=
            hlo_redundant_transposes(env, &m, b) + hlo_operand_layout_is_missing(env, &m, b);
    return misplaced;
}
