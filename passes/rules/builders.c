/* The functions of builder.def. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "ir/float/float.h"
#include "passes/builders/bias.h"
#include "passes/builders/collective.h"
#include "passes/builders/merge_dots.h"
#include "passes/builders/move_chain.h"
#include "passes/builders/operand_layout.h"
#include "passes/builders/pad_slice.h"
#include "passes/builders/scaled_operand.h"
#include "passes/rules/library.h"
#include "passes/rules/vocabulary.h"
#include "passes/sharding/devices.h"

#define UNUSED(x) ((void)(x))
#define TEST(name)                                                                                 \
    static bool test_##name(hlo_rule_env *env, const hlo_binding *args, uint32_t count)
#define MAKE(name)                                                                                 \
    static bool make_##name(hlo_rule_env *env, const hlo_binding *args, uint32_t count,            \
                            hlo_instr **out)
#define MEASURE(name) static int64_t measure_##name(const hlo_rule_env *env, const hlo_instr *value)

static bool has_instr(const hlo_binding *arg) {
    return arg->kind == HLO_BOUND_VALUE || arg->kind == HLO_BOUND_CHAIN;
}

static const hlo_shape *shape_of(const hlo_binding *arg) {
    return has_instr(arg) && hlo_shape_is_array(arg->instr->shape) ? arg->instr->shape : NULL;
}

/* ----------------------------------------------------------------------------- types and shapes */

TEST(fp8) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *s = shape_of(args);
    return s && !s->dynamic && (s->type == HLO_TYPE_F8E4M3FN || s->type == HLO_TYPE_F8E5M2);
}

TEST(wide) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *s = shape_of(args);
    return s && (s->type == HLO_TYPE_F32 || s->type == HLO_TYPE_BF16 || s->type == HLO_TYPE_F16);
}

TEST(scalar) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *s = shape_of(args);
    return s && !s->rank;
}

TEST(single) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *s = shape_of(args);
    return s && hlo_shape_count(s) == 1;
}

/* Two shapes of the same dimensions: whether their elements lie in the same order. */
static bool same_order(const hlo_shape *a, const hlo_shape *b) {
    return a == b || (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b));
}

TEST(same_shape) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *a = shape_of(args), *b = shape_of(args + 1);
    return a && b && hlo_shape_compatible(a, b) && same_order(a, b);
}

TEST(same_type) {
    UNUSED(env), UNUSED(count);
    const hlo_shape *a = shape_of(args), *b = shape_of(args + 1);
    return a && b && a->type == b->type;
}

typedef struct exact_row {
    hlo_type from, to;
} exact_row;

TEST(exact) {
    UNUSED(env), UNUSED(count);
    static const exact_row rows[] = {
        {HLO_TYPE_F8E4M3FN, HLO_TYPE_BF16}, {HLO_TYPE_F8E4M3FN, HLO_TYPE_F16},
        {HLO_TYPE_F8E4M3FN, HLO_TYPE_F32},  {HLO_TYPE_F8E5M2, HLO_TYPE_BF16},
        {HLO_TYPE_F8E5M2, HLO_TYPE_F16},    {HLO_TYPE_F8E5M2, HLO_TYPE_F32},
        {HLO_TYPE_BF16, HLO_TYPE_F32},      {HLO_TYPE_F16, HLO_TYPE_F32},
        {HLO_TYPE_F32, HLO_TYPE_F64},       {HLO_TYPE_BF16, HLO_TYPE_F64},
        {HLO_TYPE_F16, HLO_TYPE_F64},
    };
    const hlo_shape *a = shape_of(args), *b = shape_of(args + 1);
    for (size_t i = 0; a && b && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].from == a->type && rows[i].to == b->type) return true;
    return a && b && a->type == b->type;
}

static bool counts_up(const hlo_ints *list, uint32_t count) {
    for (uint32_t i = 0; i < list->count; i++)
        if (list->v[i] != i) return false;
    return list->count == count;
}

TEST(identity) {
    UNUSED(env), UNUSED(count);
    const hlo_instr *i = args->instr;
    const hlo_shape *s = shape_of(args);
    if (!s || !i->operand_count || hlo_instr_operand(i, 0)->shape != s) return false;
    switch (i->op) {
    case HLO_OP_TRANSPOSE:
    case HLO_OP_BROADCAST: return counts_up(hlo_instr_ints(i, HLO_ATTR_DIMENSIONS), s->rank);
    case HLO_OP_COPY:
    case HLO_OP_RESHAPE:
    case HLO_OP_BITCAST:
    case HLO_OP_CONVERT:
    case HLO_OP_SLICE: return true;
    default: return false;
    }
}

/* ---------------------------------------------------------------------------------------- users */

TEST(one_use) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && hlo_instr_user_count(args->instr) == 1;
}

static bool is_user(const hlo_binding *args, uint32_t count, const hlo_instr *user) {
    for (uint32_t i = 0; i < count; i++)
        if (has_instr(&args[i]) && args[i].instr == user) return true;
    return false;
}

TEST(only_uses) {
    UNUSED(env);
    if (!has_instr(args)) return true;
    if (args->instr->parent->root == args->instr) return false;
    for (const hlo_use *use = args->instr->uses; use; use = use->next)
        if (!is_user(args + 1, count - 1, use->user)) return false;
    return true;
}

static bool ends_in(const hlo_instr *value, const hlo_binding *ends, uint32_t count,
                    uint32_t *budget) {
    if (value->parent->root == value || !value->uses) return false;
    for (const hlo_use *use = value->uses; use; use = use->next)
        if (!is_user(ends, count, use->user) &&
            (!(*budget)-- || !ends_in(use->user, ends, count, budget)))
            return false;
    return true;
}

TEST(leads_to) {
    UNUSED(env);
    uint32_t budget = 64; /* no pattern has as many instructions */
    return has_instr(args) && ends_in(args->instr, args + 1, count - 1, &budget);
}

/* --------------------------------------------------------------------------------------- values */

TEST(allowed) {
    UNUSED(count);
    const hlo_pass_options *options = env->context->options;
    return (!strcmp(args->word, "bias-rounding") && options->allow_bias_rounding) ||
           (!strcmp(args->word, "merge-dots") && options->merge_dots);
}

TEST(is) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && !strcmp(hlo_ops[args->instr->op].name, args[1].word);
}

TEST(repeats) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && hlo_splat_source(args->instr) != NULL;
}

TEST(sends) {
    UNUSED(env), UNUSED(count);
    const hlo_instr *start = args->instr;
    if (start->op != HLO_OP_ASYNC_START || start->operand_count != 1) return false;
    const hlo_computation *called = hlo_instr_comp(start, HLO_ATTR_CALLS);
    const hlo_instr *wrapped = called ? hlo_async_wrapped(called) : NULL;
    return wrapped && (wrapped->op == HLO_OP_ALL_GATHER || wrapped->op == HLO_OP_ALL_TO_ALL ||
                       wrapped->op == HLO_OP_COLLECTIVE_PERMUTE);
}

TEST(arrives) {
    UNUSED(env), UNUSED(count);
    hlo_op op = hlo_devices_sender(args->instr)->op;
    return op != HLO_OP_COLLECTIVE_PERMUTE && op != HLO_OP_COLLECTIVE_PERMUTE_START;
}

TEST(agreed) {
    UNUSED(count);
    const hlo_instr *sender = hlo_devices_sender(args[1].instr);
    return hlo_ops[sender->op].flags & HLO_COLLECTIVE &&
           hlo_devices_replicated(env->context, args[0].instr, args[1].instr);
}

TEST(at_most) {
    UNUSED(env), UNUSED(count);
    double number;
    return !has_instr(args) || (hlo_known_number(args->instr, &number) && number <= args[1].number);
}

TEST(extremes) {
    UNUSED(env), UNUSED(count);
    double low, high;
    const hlo_shape *s = shape_of(args + 2);
    if (!s || !hlo_type_is_float(s->type) || !hlo_known_number(args[0].instr, &low) ||
        !hlo_known_number(args[1].instr, &high))
        return false;
    double most = hlo_float_max(s->type);
    return low == -most && high == most;
}

static bool is_max(const hlo_instr *reduce) {
    if (reduce->op != HLO_OP_REDUCE || reduce->operand_count != 2) return false;
    const hlo_computation *f = hlo_instr_comp(reduce, HLO_ATTR_TO_APPLY);
    if (!f || !f->root || f->root->op != HLO_OP_MAXIMUM || f->parameter_count != 2) return false;
    const hlo_instr *a = hlo_instr_operand(f->root, 0), *b = hlo_instr_operand(f->root, 1);
    return a != b && a->op == HLO_OP_PARAMETER && b->op == HLO_OP_PARAMETER;
}

TEST(max) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && is_max(args->instr);
}

TEST(max_of_all) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && is_max(args->instr) &&
           hlo_instr_ints(args->instr, HLO_ATTR_DIMENSIONS)->count ==
               hlo_instr_operand(args->instr, 0)->shape->rank;
}

static bool decode(const hlo_instr *call, hlo_matmul *out) {
    const char *why;
    return hlo_matmul_is_call(call) && hlo_matmul_decode(call, out, &why) == HLO_OK;
}

/* The abs-max of a value is its max when the value is not negative. */
TEST(amax_of) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    if (!has_instr(args) || has_instr(args + 1)) return true;
    return decode(args[2].instr, &m) && hlo_epilogues[m.epilogue].relu;
}

TEST(along_n) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && has_instr(args + 1) && has_instr(args + 2) &&
           hlo_bias_repeats(args[0].instr, args[1].instr, args[2].instr);
}

TEST(fits_bf16) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && hlo_bias_fits(args->instr, HLO_TYPE_BF16);
}

TEST(along_m) {
    UNUSED(env), UNUSED(count);
    const hlo_instr *broadcast = args->instr;
    const hlo_shape *d = shape_of(args + 1);
    if (!has_instr(args) || broadcast->op != HLO_OP_BROADCAST || !d || !d->rank) return false;
    const hlo_ints *dims = hlo_instr_ints(broadcast, HLO_ATTR_DIMENSIONS);
    int64_t rows = hlo_shape_count(hlo_instr_operand(broadcast, 0)->shape);
    return counts_up(dims, dims->count) && rows * d->dims[d->rank - 1] == hlo_shape_count(d);
}

TEST(lone_slice) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && args->instr->op == HLO_OP_SLICE &&
           hlo_instr_user_count(hlo_instr_operand(args->instr, 0)) == 1;
}

TEST(beginning) {
    if (!test_lone_slice(env, args, count)) return false;
    const hlo_ints *slices = hlo_instr_ints(args->instr, HLO_ATTR_SLICE);
    for (uint32_t i = 0; i < slices->count; i += 3)
        if (slices->v[i] != 0 || slices->v[i + 2] != 1) return false;
    return true;
}

TEST(sole_view) {
    UNUSED(env);
    const hlo_shape *view = shape_of(args), *from = shape_of(args + 1);
    if (!view || !from) return false;
    if (args[0].instr->op == HLO_OP_BITCAST &&
        (view->type != from->type || !same_order(view, from)))
        return false;
    if (args[0].instr == args[1].instr) return true;
    if (args[1].instr->parent->root == args[1].instr) return false;
    for (const hlo_use *use = args[1].instr->uses; use; use = use->next)
        if (use->user != args[0].instr && !is_user(args + 2, count - 2, use->user)) return false;
    return true;
}

/* -------------------------------------------------------------------------------------- matmuls */

TEST(matmul) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && hlo_matmul_is_call(args->instr);
}

static int64_t misaligned(const hlo_matmul *m) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    return (size.m % HLO_MATMUL_ALIGNMENT != 0) + (size.n % HLO_MATMUL_ALIGNMENT != 0) +
           (size.k % HLO_MATMUL_ALIGNMENT != 0);
}

/* Whether the caller gives up the memory of that parameter: the header has `{0}: (2, {},
 * may-alias)`. */
static bool is_donated(const hlo_instr *parameter) {
    const hlo_module *module = parameter->parent->module;
    const char *aliases = NULL;
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == HLO_ATTR_INPUT_OUTPUT_ALIAS) aliases = module->attrs[i].u.str;
    if (!aliases || parameter->parent != module->entry) return false;
    for (const char *at = strchr(aliases, '('); at; at = strchr(at + 1, '(')) {
        long long number;
        char end;
        if (sscanf(at, "(%lld , { %c", &number, &end) == 2 && end == '}' &&
            number == parameter->u.parameter)
            return true;
    }
    return false;
}

/* The addend dies here, and is neither somebody else's nor written anywhere else. */
static bool may_overwrite(const hlo_matmul *m) {
    return m->c && !m->in_place && !m->c->pin && m->c->shape == m->d &&
           hlo_instr_user_count(m->c) == 1 && m->c->op != HLO_OP_CONSTANT &&
           (m->c->op != HLO_OP_PARAMETER || is_donated(m->c));
}

TEST(aligned) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    return has_instr(args) && decode(args->instr, &m) && !misaligned(&m);
}

TEST(linear) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    if (!has_instr(args) || !decode(args->instr, &m)) return false;
    return !m.c && !hlo_epilogues[m.epilogue].relu && !hlo_epilogues[m.epilogue].gelu;
}

/* What `alpha` and a_scale multiply is all that the result is made of, but for a relu. */
static bool decode_product(const hlo_binding *arg, hlo_matmul *m) {
    return has_instr(arg) && decode(arg->instr, m) && !m->c && !hlo_type_is_fp8(m->d->type) &&
           (m->epilogue == HLO_EPILOGUE_DEFAULT || m->epilogue == HLO_EPILOGUE_RELU);
}

TEST(may_give) {
    UNUSED(count);
    hlo_matmul m;
    if (!decode(args->instr, &m) || hlo_epilogues[m.epilogue].aux) return false;
    m.d = hlo_shape_retype(env->context->module, m.d, args[1].instr->shape->type);
    return !hlo_matmul_check(&m, &env->context->target);
}

TEST(alpha_free) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    return decode_product(args, &m) && m.alpha == 1;
}

TEST(nonzero) {
    UNUSED(env), UNUSED(count);
    double number;
    return has_instr(args) && (!hlo_known_number(args->instr, &number) || (float)number != 0);
}

TEST(dividing) {
    UNUSED(env), UNUSED(count);
    double number;
    return has_instr(args) && (!hlo_known_number(args->instr, &number) || (float)(1 / number) != 0);
}

TEST(a_scale_free) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    return decode_product(args, &m) && !m.a_scale;
}

TEST(rows_free) {
    UNUSED(count);
    hlo_matmul m;
    if (!decode_product(args, &m) || hlo_scale_modes[m.a_mode].along ||
        hlo_scale_modes[m.b_mode].along)
        return false;
    m.a_mode = m.b_mode = HLO_SCALE_OUTER_VEC;
    return !hlo_matmul_check(&m, &env->context->target);
}

/* Whether a factor or divisor of that sign or more may stand before a relu as well as behind it. Of
 * one that is known it is asked of infinities, too: relu(-inf) * 0 is 0, relu(-1) * inf is NaN. */
static bool commutes_with_relu(hlo_instr *factor, const hlo_binding *call, hlo_sign least) {
    hlo_matmul m;
    double number;
    if (!decode_product(call, &m)) return false;
    if (m.epilogue == HLO_EPILOGUE_DEFAULT) return true;
    if (hlo_known_number(factor, &number)) return number > 0 && isfinite(number);
    return hlo_sign_least(factor) >= least;
}

TEST(passes_relu) {
    UNUSED(env), UNUSED(count);
    return commutes_with_relu(args->instr, args + 1, HLO_SIGN_ZERO);
}

TEST(divides_relu) {
    UNUSED(env), UNUSED(count);
    return commutes_with_relu(args->instr, args + 1, HLO_SIGN_PLUS);
}

TEST(overwritable) {
    UNUSED(env), UNUSED(count);
    hlo_matmul m;
    return has_instr(args) && decode(args->instr, &m) && may_overwrite(&m);
}

TEST(amax_of_part) {
    UNUSED(env), UNUSED(count);
    return has_instr(args) && args[1].instr->op == HLO_OP_SLICE;
}

TEST(placed_a) {
    UNUSED(count);
    hlo_matmul m;
    return !decode(args->instr, &m) || !hlo_operand_layout_is_missing(env, &m, false);
}

TEST(placed_b) {
    UNUSED(count);
    hlo_matmul m;
    return !decode(args->instr, &m) || !hlo_operand_layout_is_missing(env, &m, true);
}

TEST(turned_a) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_redundant_transposes(env, &m, false) > 0;
}

TEST(turned_b) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_redundant_transposes(env, &m, true) > 0;
}

/* The first `batch` dimensions come first in memory, too, in their order. */
static bool batch_major(const hlo_shape *shape, uint32_t batch) {
    if (shape->rank < batch) return false;
    for (uint32_t i = 0; shape->layout && i < batch; i++)
        if (shape->layout->minor_to_major[shape->rank - 1 - i] != i) return false;
    return true;
}

TEST(several_batches) {
    UNUSED(count);
    hlo_matmul m;
    const hlo_target *target = &env->context->target;
    if (!has_instr(args) || !decode(args->instr, &m) || m.a_batch->count < 2) return false;
    uint32_t batch = m.a_batch->count;
    return hlo_matmul_layout_ok(&m, target, false) && hlo_matmul_layout_ok(&m, target, true) &&
           batch_major(m.d, batch) && (!m.c || batch_major(m.c->shape, batch)) &&
           (!m.aux || batch_major(m.aux, batch));
}

TEST(movable) {
    UNUSED(count);
    hlo_dequantised below;
    if (!hlo_dequantised_read(args->inner, &below) && !hlo_scaled_read(args->inner, &below))
        return false;
    for (const hlo_instr *link = args->instr; link != args->inner;
         link = hlo_instr_operand(link, 0))
        if (!hlo_link_moves(link, &below)) {
            env->blocker = link;
            return false;
        }
    return true;
}

TEST(branches_dequantised) {
    UNUSED(env), UNUSED(count);
    hlo_dequantised leaf;
    return has_instr(args) && hlo_tree_moves(args->instr, false, &leaf);
}

TEST(branches_alike) {
    UNUSED(env), UNUSED(count);
    hlo_dequantised leaf;
    return has_instr(args) && hlo_tree_moves(args->instr, true, &leaf);
}

TEST(dots_alike) {
    UNUSED(count);
    return has_instr(args) && has_instr(args + 1) &&
           hlo_dots_alike(env->engine, args[0].instr, args[1].instr, args[2].instr);
}

/* ------------------------------------------------------------------------------------- builders */

static hlo_instr *retyped(hlo_rule_env *env, hlo_instr *value, hlo_type type) {
    if (!value || value->shape->type == type) return value;
    const hlo_shape *shape = hlo_shape_retype(env->context->module, value->shape, type);
    return hlo_rule_new(env, HLO_OP_CONVERT, shape, 1, &value);
}

/* NULL: it cannot be made. */
static hlo_instr *scalar_f32(hlo_rule_env *env, hlo_instr *value) {
    hlo_module *module = env->context->module;
    double number;
    if (hlo_shape_count(value->shape) != 1) {
        if (!hlo_known_number(value, &number)) return NULL;
        value = hlo_rule_number(env, value->shape->type, number);
    }
    if (value->shape->rank) {
        const hlo_shape *shape = hlo_shape_array(module, value->shape->type, 0, NULL);
        value = hlo_rule_new(env, HLO_OP_RESHAPE, shape, 1, &value);
    }
    return retyped(env, value, HLO_TYPE_F32);
}

MAKE(f32_scalar) {
    UNUSED(count);
    *out = NULL;
    if (!has_instr(args)) return true;
    *out = scalar_f32(env, args->instr);
    return *out || hlo_rule_refuse(env, "scale-not-scalar", args->instr);
}

MAKE(reciprocal) {
    UNUSED(count);
    *out = NULL;
    if (!has_instr(args)) return true;
    double number;
    if (hlo_known_number(args->instr, &number)) {
        if (number != 0 && isfinite(number) && isinf((float)(1 / number)))
            return hlo_rule_refuse(env, "scales-out-of-range", args->instr);
        *out = hlo_rule_number(env, HLO_TYPE_F32, 1 / number);
        return *out != NULL;
    }
    hlo_instr *value = scalar_f32(env, args->instr);
    if (!value) return hlo_rule_refuse(env, "scale-not-scalar", args->instr);
    hlo_instr *operands[] = {hlo_rule_number(env, HLO_TYPE_F32, 1), value};
    *out = hlo_rule_new(env, HLO_OP_DIVIDE, value->shape, 2, operands);
    return *out != NULL;
}

MAKE(as_type) {
    UNUSED(count);
    *out = NULL;
    if (!has_instr(args)) return true;
    if (!has_instr(args + 1)) return false;
    *out = retyped(env, args->instr, args[1].instr->shape->type);
    return *out != NULL;
}

/* Each link is made again on the value that the link below has become. */
MAKE(carry) {
    UNUSED(count);
    const hlo_instr *links[HLO_CHAIN_LIMIT];
    uint32_t length = 0;
    for (const hlo_instr *l = args->instr; l != args->inner; l = hlo_instr_operand(l, 0))
        links[length++] = l;
    *out = NULL;
    if (!has_instr(args + 1)) return true;
    hlo_instr *value = args[1].instr;
    if (!hlo_shape_same_dims(value->shape, args->inner->shape)) return false;
    while (value && length-- > 0) value = hlo_link_clone_onto(env, links[length], value);
    *out = value;
    return value != NULL;
}

MAKE(dequantised_tree) {
    UNUSED(count);
    hlo_dequantised leaf;
    hlo_instr *top = args->instr;
    if (!hlo_tree_moves(top, true, &leaf)) return false;
    hlo_instr *value = hlo_tree_clone_onto(env, top);
    const hlo_shape *wide = hlo_shape_retype(env->context->module, top->shape, leaf.to);
    if (value) value = hlo_rule_new(env, HLO_OP_CONVERT, wide, 1, &value);
    if (value && leaf.scale) {
        hlo_instr *operands[] = {value, hlo_rule_splat(env, leaf.scale, wide)};
        value = operands[1] ? hlo_rule_new(env, leaf.op, wide, 2, operands) : NULL;
    }
    *out = retyped(env, value, top->shape->type);
    return *out != NULL;
}

MAKE(again) {
    UNUSED(count);
    const hlo_instr *instr = args->instr;
    const bool ends = hlo_op_chains(HLO_OP_INVALID, instr->op);
    const hlo_instr *sender = ends ? hlo_instr_operand(instr, 0) : instr;
    const bool moves = hlo_ops[sender->op].flags & (HLO_MOVEMENT | HLO_COLLECTIVE) || ends;
    if (!moves || !sender->operand_count || (ends && sender->operand_count != 1) ||
        !hlo_shape_same_dims(args[1].instr->shape, hlo_instr_operand(sender, 0)->shape))
        return false;
    *out = ends ? hlo_async_clone_onto(env, instr, args[1].instr)
                : hlo_link_clone_onto(env, instr, args[1].instr);
    return *out != NULL;
}

MAKE(sent_quantised) {
    UNUSED(count);
    *out = hlo_collective_quantised(env, args->instr);
    return *out != NULL;
}

MAKE(sent_scale) {
    UNUSED(count);
    *out = hlo_collective_scale(env, args[0].instr, args + 1, args[2].instr);
    return *out != NULL;
}

/* In the mode that the rule names: false where the operand is not of that form. */
static bool scale_mode(const hlo_binding *args, hlo_scale_mode *out) {
    const hlo_instr *bad;
    *out = hlo_scale_mode_find(args[2].word);
    return *out != HLO_SCALE_MODE_COUNT &&
           hlo_scaled_operand_matches(args[0].instr, (unsigned)args[1].number, *out, &bad);
}

MAKE(unscaled) {
    UNUSED(count);
    hlo_scale_mode mode;
    if (!scale_mode(args, &mode)) return false;
    *out = hlo_scaled_operand_values(env, args[0].instr, (unsigned)args[1].number, mode);
    return *out != NULL;
}

MAKE(unscaled_rows) {
    UNUSED(count);
    *out = hlo_scaled_operand_unscaled(env, args[0].instr, (unsigned)args[1].number);
    return *out != NULL;
}

MAKE(scales) {
    UNUSED(count);
    hlo_scale_mode mode;
    return scale_mode(args, &mode) &&
           hlo_scaled_operand_scales(env, args[0].instr, (unsigned)args[1].number, mode, out);
}

MAKE(joined_scale) {
    UNUSED(count);
    hlo_matmul m;
    *out = NULL;
    if (!decode(args->instr, &m)) return false;
    *out = hlo_scaled_operand_joined_scale(env, &m, (unsigned)args[1].number,
                                           has_instr(args + 2) ? args[2].instr : NULL);
    return *out != NULL;
}

MAKE(scalar_or_none) {
    UNUSED(count);
    unsigned operand = (unsigned)args[1].number;
    *out = NULL;
    return !hlo_scaled_operand_is_scalar(env, args[0].instr, operand) ||
           hlo_scaled_operand_scales(env, args[0].instr, operand, HLO_SCALE_SCALAR, out);
}

MAKE(times_rows) {
    UNUSED(count);
    unsigned operand = (unsigned)args[2].number;
    *out = args[0].instr;
    if (hlo_scaled_operand_is_scalar(env, args[1].instr, operand)) return true;
    hlo_instr *operands[] = {args[0].instr,
                             hlo_scaled_operand_result_scale(env, args[1].instr, operand)};
    if (operands[1] && !hlo_rule_scale_finite(operands[1]))
        return hlo_rule_refuse(env, "scales-out-of-range", args[1].instr);
    *out = operands[1] ? hlo_rule_new(env, HLO_OP_MULTIPLY, operands[0]->shape, 2, operands) : NULL;
    return *out != NULL;
}

MAKE(merged) {
    UNUSED(count);
    *out = hlo_dots_merged(env, args[0].instr, args[1].instr, args[2].instr);
    return *out != NULL;
}

MAKE(part) {
    UNUSED(count);
    *out = hlo_dots_part(env, args[0].instr, args[1].instr, args[2].number != 0);
    return *out != NULL;
}

static bool compose_slices(hlo_rule_env *env, const hlo_instr *outer, hlo_instr **out) {
    const hlo_instr *inner = hlo_instr_operand(outer, 0);
    const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_SLICE);
    const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_SLICE);
    int64_t v[3 * HLO_RULE_ARGS];
    if (a->count > 3 * HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < a->count; i += 3) {
        v[i] = b->v[i] + a->v[i] * b->v[i + 2];
        v[i + 2] = a->v[i + 2] * b->v[i + 2];
        v[i + 1] = b->v[i] + (a->v[i + 1] - 1) * b->v[i + 2] + 1;
        if (a->v[i + 1] == a->v[i]) v[i + 1] = v[i]; /* none */
    }
    hlo_instr *from = hlo_instr_operand(inner, 0);
    *out = hlo_rule_new(env, HLO_OP_SLICE, outer->shape, 1, &from);
    if (*out) hlo_instr_set_ints(*out, HLO_ATTR_SLICE, a->count, v);
    return *out != NULL;
}

MAKE(max_over) {
    UNUSED(count);
    const hlo_instr *reduce = args->instr;
    const uint32_t rank = args[1].instr->shape->rank;
    int64_t dims[HLO_RULE_ARGS];
    if (!is_max(reduce) || rank > HLO_RULE_ARGS) return false;
    hlo_instr *operands[] = {args[1].instr, hlo_instr_operand(reduce, 1)};
    for (uint32_t i = 0; i < rank; i++) dims[i] = i;
    *out = hlo_rule_new(env, HLO_OP_REDUCE, reduce->shape, 2, operands);
    if (!*out) return false;
    hlo_instr_drop_attr(*out, HLO_ATTR_METADATA);
    hlo_instr_copy_attrs(*out, reduce);
    hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, rank, dims);
    return true;
}

MAKE(compose) {
    UNUSED(count);
    const hlo_instr *outer = args->instr;
    const hlo_instr *inner = outer->operand_count ? hlo_instr_operand(outer, 0) : outer;
    if ((outer->op != HLO_OP_SLICE && outer->op != HLO_OP_TRANSPOSE) || inner->op != outer->op)
        return false;
    if (outer->op == HLO_OP_SLICE) return compose_slices(env, outer, out);
    const hlo_ints *a = hlo_instr_ints(outer, HLO_ATTR_DIMENSIONS);
    const hlo_ints *b = hlo_instr_ints(inner, HLO_ATTR_DIMENSIONS);
    int64_t order[HLO_RULE_ARGS];
    if (a->count > HLO_RULE_ARGS) return false;
    bool same = true;
    for (uint32_t i = 0; i < a->count; i++) same &= (order[i] = b->v[a->v[i]]) == i;
    hlo_instr *from = hlo_instr_operand(inner, 0);
    *out = from;
    if (same && same_order(from->shape, outer->shape)) return true;
    *out = hlo_rule_new(env, same ? HLO_OP_COPY : HLO_OP_TRANSPOSE, outer->shape, 1, &from);
    if (*out && !same) hlo_instr_set_ints(*out, HLO_ATTR_DIMENSIONS, a->count, order);
    return *out != NULL;
}

MAKE(placed_operand_a) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_operand_layout_make(env, &m, false, out);
}

MAKE(placed_operand_b) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_operand_layout_make(env, &m, true, out);
}

static bool beneath(const hlo_instr *call, bool b, hlo_instr **out) {
    hlo_matmul m;
    if (!decode(call, &m)) return false;
    const hlo_instr *turned = b ? m.b : m.a;
    if (turned->op != HLO_OP_TRANSPOSE && turned->op != HLO_OP_COPY) return false;
    *out = hlo_instr_operand(turned, 0);
    return true;
}

MAKE(beneath_a) {
    UNUSED(env), UNUSED(count);
    return beneath(args->instr, false, out);
}

MAKE(beneath_b) {
    UNUSED(env), UNUSED(count);
    return beneath(args->instr, true, out);
}

/* An operand, addend or bias of the call at aligned sizes. An abs-max sees what is added too, and
 * of zeros nothing is sure there: times an infinity they are NaN, and a bias stands in their rows.
 * So rows and columns are repeated then, whatever is in them. What is added along the contracting
 * dimension is 0 in both operands, and so is its product. */
static bool padded(hlo_rule_env *env, const hlo_matmul *m, hlo_instr *value, const hlo_ints *batch,
                   const hlo_ints *contracting, hlo_instr **out) {
    *out = value;
    if (!value) return true;
    return m->amax ? hlo_pad_repeating(env, value, batch, contracting, out)
                   : hlo_pad_aligned(env, value, batch, out);
}

MAKE(padded_a) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && padded(env, &m, m.a, m.a_batch, m.a_contracting, out);
}

MAKE(padded_b) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && padded(env, &m, m.b, m.b_batch, m.b_contracting, out);
}

MAKE(padded_a_scale) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_operand_layout_pad_scale(env, &m, false, out);
}

MAKE(padded_b_scale) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && hlo_operand_layout_pad_scale(env, &m, true, out);
}

MAKE(padded_c) {
    UNUSED(count);
    hlo_matmul m;
    if (!decode(args->instr, &m)) return false;
    int64_t first[HLO_RULE_ARGS];
    if (m.a_batch->count > HLO_RULE_ARGS) return false;
    for (uint32_t i = 0; i < m.a_batch->count; i++) first[i] = i;
    const hlo_ints *batch = hlo_ints_new(env->context->module, m.a_batch->count, first);
    return padded(env, &m, m.c, batch, NULL, out);
}

MAKE(padded_bias) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && padded(env, &m, m.bias, NULL, NULL, out);
}

/* Where that is one dimension in memory, too. */
static bool join(hlo_rule_env *env, hlo_instr *value, const hlo_matmul *m, hlo_instr **out) {
    const uint32_t batch = m->a_batch->count;
    if (!batch || (value && !batch_major(value->shape, batch))) return false;
    return hlo_join_batch(env, value, batch, out);
}

MAKE(joined_a) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && join(env, m.a, &m, out);
}

MAKE(joined_b) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && join(env, m.b, &m, out);
}

MAKE(joined_c) {
    UNUSED(count);
    hlo_matmul m;
    return decode(args->instr, &m) && join(env, m.c, &m, out);
}

MAKE(cut) {
    UNUSED(count);
    return hlo_slice_prefix(env, args->instr, args[1].instr->shape, out);
}

MAKE(row) {
    UNUSED(count);
    return hlo_bias_row(env, args[0].instr, args[1].instr, args[2].instr, out);
}

MAKE(shaped) {
    UNUSED(count);
    return hlo_to_shape(env, args->instr, args[1].instr->shape, out);
}

MAKE(seen) {
    UNUSED(count);
    return hlo_apply_view(env, args->instr, args[1].instr, args[2].instr->shape, out);
}

/* ------------------------------------------------------------------------------------- measures */

static bool is_leaf(const hlo_rule_env *env, const hlo_instr *value) {
    if (!value->operand_count || value->op == HLO_OP_CUSTOM_CALL) return true;
    for (uint32_t i = 0; i < env->rule->slot_count; i++)
        if (env->slots[i].leaf && env->slots[i].kind == HLO_BOUND_VALUE &&
            env->slots[i].instr == value)
            return true;
    return false;
}

static int64_t size_of(const hlo_rule_env *env, const hlo_instr *value, unsigned depth) {
    if (!depth || is_leaf(env, value)) return 1;
    int64_t size = 2;
    if (value->op == HLO_OP_DOT) size = 16;
    if (value->op == HLO_OP_TRANSPOSE || value->op == HLO_OP_COPY) size = 4;
    if (value->op == HLO_OP_BROADCAST && hlo_instr_operand(value, 0)->shape->rank) size = 8;
    if (value->op == HLO_OP_CONVERT)
        for (const hlo_instr *v = hlo_instr_operand(value, 0); v->op == HLO_OP_BROADCAST;
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
    UNUSED(env);
    return value->op == HLO_OP_DOT;
}

MEASURE(wide_collectives) {
    UNUSED(env);
    return hlo_collective_wide(value);
}

/* Of a tree, the links down to the first that branches, and that one. */
MEASURE(wide_links) {
    UNUSED(env);
    int64_t links = 0;
    for (uint32_t i = 0; i < value->operand_count; i++) {
        const hlo_instr *v = hlo_instr_operand(value, i);
        for (; hlo_chain_link(v); v = hlo_instr_operand(v, 0))
            links += v->op != HLO_OP_CONVERT && hlo_types[v->shape->type].bits > 8;
        links += v->op == HLO_OP_CONCATENATE || v->op == HLO_OP_SELECT;
    }
    return links;
}

MEASURE(fp8_operands) {
    UNUSED(env);
    int64_t operands = 0;
    for (uint32_t i = 0; i < value->operand_count; i++)
        operands += hlo_type_is_fp8(hlo_instr_operand(value, i)->shape->type);
    return operands;
}

/* What padding makes of an addend may be overwritten, so a size counts more than that. */
MEASURE(misplaced_operands) {
    while (value->op == HLO_OP_SLICE || value->op == HLO_OP_RESHAPE ||
           value->op == HLO_OP_GET_TUPLE_ELEMENT)
        value = hlo_instr_operand(value, 0);
    hlo_matmul m;
    if (!decode(value, &m)) return 0;
    int64_t misplaced = 2 * misaligned(&m) + 2 * (m.a_batch->count > 1) + may_overwrite(&m);
    for (int b = 0; b < 2; b++)
        misplaced +=
            hlo_redundant_transposes(env, &m, b) + hlo_operand_layout_is_missing(env, &m, b);
    return misplaced;
}

static const hlo_rule_functions functions[] = {
#define HLO_TEST(name, params) {.test = test_##name},
#define HLO_MAKE(name, params) {.make = make_##name},
#define HLO_MEASURE(name, params) {.measure = measure_##name},
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE
};

const hlo_rule_library hlo_rule_library_builtin = {&hlo_rule_words, functions, hlo_rules_builtin,
                                                   &hlo_rules_builtin_count};
