/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include "tests/random/check/check.h"

#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/float/float.h"
#include "ir/module/known.h"
#include "matmul/product.h"
#include "passes/analysis/module_facts.h"
#include "passes/rules/library.h"
#include "passes/verdict/report.h"
#include "tests/random/check/devices.h"

static const hlo_rule *rule_at(int index, const hlo_rules **out_rules) {
    for (uint32_t i = 0; i < hlo_rules_builtin_count; i++) {
        *out_rules = hlo_rules_builtin[i];
        if (index < (int)(*out_rules)->rule_count) return &(*out_rules)->rules[index];
        index -= (int)(*out_rules)->rule_count;
    }
    return NULL;
}

const char *rule_name(int index) {
    const hlo_rules *rules;
    const hlo_rule *rule = rule_at(index, &rules);
    return rule ? rule->name : NULL;
}

bool rule_only_remarks(int index) {
    const hlo_rules *rules;
    const hlo_rule *rule = rule_at(index, &rules);
    return rule && rules->actions[rule->first_action].kind == HLO_ACTION_REMARK;
}

/* Returns the index of a rule in the order of the files; -1 if there is no such rule. */
int rule_index(const char *name) {
    const char *other;
    for (int i = 0; (other = rule_name(i)); i++)
        if (!strcmp(other, name)) return i;
    return -1;
}

hlo_module *read_module(const char *text, const char *name) {
    hlo_module *module;
    if (hlo_module_parse(text, strlen(text), name, NULL, &module) != HLO_OK) return NULL;
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK) return module;
    hlo_module_free(module);
    return NULL;
}

hlo_pass_options draw_options(dice *d) {
    static const char *const targets[] = {
#define HLO_TARGET(sm, ...) "sm_" #sm,
#include "matmul/table/target.def"
#undef HLO_TARGET
    };
    static const char *const versions[] = {"12.0", "12.3", "12.8", "12.8", "12.9", "12.9", "12.9"};
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    if (dice_chance(d, 50)) options.passes = "fp8-gemm-rewriter";
    options.target = dice_chance(d, 40) ? "sm_90" : DICE_PICK(d, targets);
    options.cuda = dice_chance(d, 4) ? "11.8" : DICE_PICK(d, versions);
    options.scales_used = dice_chance(d, 50);
    options.allow_bias_rounding = dice_chance(d, 15);
    options.merge_dots = dice_chance(d, 15);
    if (dice_chance(d, 3)) options.min_gain = 1.5;
    if (dice_chance(d, 40)) options.emit = (hlo_emit_form)dice_below(d, HLO_EMIT_DQ + 1);
    options.rule_order = dice_chance(d, 70) ? 0 : 1 + dice_next(d) % 1000;
    options.ragged = (hlo_ragged_form)dice_below(d, HLO_RAGGED_KEEP + 1);
    if (strcmp(options.passes, "default") == 0 && dice_chance(d, 30)) {
        static const char *const recipes[] = {"current", "rows", "mx"};
        options.quantize = DICE_PICK(d, recipes);
        if (strcmp(options.quantize, "mx") == 0) options.target = "sm_100";
        options.min_gain = 1e-6;
    }
    return options;
}

/* --------------------------------------------------------------------------------------- values */

static hlo_type type_of(const hlo_array *array) {
    return array->type;
}

static void scale_array(const hlo_array *array, double factor) {
    hlo_type type = type_of(array);
    size_t width = hlo_types[type].bytes;
    for (char *at = array->data; at < (char *)array->data + array->size; at += width)
        hlo_number_store(type, at, hlo_number_load(type, at) * factor);
}

/* Draws a factor; `may_be_zero` is false for divisors. The smallest factor keeps products of three
 * scales out of the subnormal range, and the largest keeps them finite; docs/numerics.md guarantees
 * nothing for other products. `near` excludes the smallest factors and the largest one. */
static double draw_factor(dice *d, bool may_be_zero, bool near) {
    static const double factors[] = {0,  -0.0, 1,    -1,   -0.25, 0.5, 3,
                                     20, 2000, 0.01, 1e-5, 1e-11, 1e12};
    size_t first = may_be_zero ? 0 : 2, count = sizeof factors / sizeof *factors - (near ? 3 : 0);
    return factors[first + (size_t)dice_below(d, count - first)];
}

/* Inserts NaNs, or infinities, which become NaN in types without infinities. */
static void put_nonfinite(const hlo_array *array, bool endless, dice *d) {
    hlo_type type = type_of(array);
    size_t width = hlo_types[type].bytes, count = array->size / width;
    if (!count) return;
    char *data = array->data;
    for (int i = 1 + dice_below(d, 3); i > 0; i--)
        hlo_number_store(type, data + width * (size_t)dice_below(d, count),
                         !endless             ? (double)NAN
                         : dice_chance(d, 30) ? -(double)INFINITY
                                              : (double)INFINITY);
}

static void make_positive(const hlo_array *array) {
    hlo_type type = type_of(array);
    size_t width = hlo_types[type].bytes;
    for (char *at = array->data; at < (char *)array->data + array->size; at += width)
        hlo_number_store(type, at, fabs(hlo_number_load(type, at)));
}

hlo_arrays *draw_inputs(const hlo_module *module, uint64_t seed) {
    hlo_arrays *inputs;
    if (hlo_arrays_draw(module, seed, NULL, &inputs) != HLO_OK) return NULL;
    dice d = {.state = seed}, other = {.state = seed ^ UINT64_MAX / 3};
    bool with_nan = dice_chance(&d, 6), infinite = dice_chance(&d, 4);
    bool positive = dice_chance(&other, 10), endless = dice_chance(&other, 6);
    const hlo_computation *entry = module->entry;
    for (uint32_t i = 0; i < entry->parameter_count && i < hlo_arrays_count(inputs); i++) {
        const hlo_array *array = hlo_arrays_at(inputs, i);
        char kind = *entry->parameters[i]->name;
        if (!hlo_type_is_float(type_of(array))) continue;
        bool scales = kind == 'm' || kind == 'd' || kind == 'n';
        if (positive) make_positive(array);
        if (scales && infinite)
            scale_array(array, dice_chance(&d, 50) ? INFINITY : NAN);
        else if (scales && dice_chance(&d, 50))
            scale_array(array, draw_factor(&d, kind == 'm', kind == 'n'));
        else if (hlo_type_is_fp8(type_of(array)) && dice_chance(&d, 15))
            scale_array(array, draw_factor(&d, true, false));
        if (with_nan && !scales) put_nonfinite(array, false, &d);
        if (endless && !scales && dice_chance(&other, 50)) put_nonfinite(array, true, &other);
    }
    return inputs;
}

static hlo_arrays *execute(const hlo_module *module, const hlo_arrays *inputs, bool judge,
                           hlo_accumulate accumulate) {
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.bounds = options.roundings_may_be_dropped = judge;
    options.overwrites_inputs = !judge;
    options.accumulate = accumulate;
    hlo_plan *plan;
    hlo_arrays *outputs = NULL;
    if (hlo_plan_new(module, &options, NULL, &plan) != HLO_OK) return NULL;
    if (hlo_plan_run(plan, inputs, NULL, &outputs) != HLO_OK) outputs = NULL;
    hlo_plan_free(plan);
    return outputs;
}

static hlo_status compare(const hlo_arrays *expected, const hlo_arrays *found, bool both,
                          char *why) {
    FILE *out = fmemopen(why, WHY_SIZE, "w");
    if (!out) return HLO_OUT_OF_MEMORY;
    const hlo_arrays *judges[] = {expected, found};
    const hlo_comparison comparison = {.struct_size = sizeof comparison,
                                       .found = found,
                                       .expected = expected,
                                       .judges = judges,
                                       .judge_count = both ? 2 : 1};
    hlo_status status = hlo_arrays_compare_by(&comparison, hlo_file_writer(out));
    fclose(out);
    return status;
}

/* Compares two modules on inputs, and frees the inputs. `both`: either module may be the one that
 * rounds more. */
static outcome check_on(const hlo_module *before, const hlo_module *after, hlo_arrays *inputs,
                        bool both, hlo_accumulate accumulate, char *why) {
    hlo_arrays *expected = inputs ? execute(before, inputs, true, accumulate) : NULL;
    outcome result = OUTCOME_NO_CASE;
    if (expected) {
        hlo_arrays *found = execute(after, inputs, both, accumulate);
        result = OUTCOME_SAME;
        snprintf(why, WHY_SIZE, "the rewritten module does not run");
        if (!found || compare(expected, found, both, why) != HLO_OK) result = OUTCOME_DIFFERENT;
        hlo_arrays_free(found);
    }
    hlo_arrays_free(expected);
    hlo_arrays_free(inputs);
    return result;
}

/* Draws inputs like draw_inputs(), but of numbers that bf16 represents, so that a bias among the
 * inputs is not rounded. */
static hlo_arrays *draw_coarse(const hlo_module *module, uint64_t seed) {
    hlo_arrays *inputs = draw_inputs(module, seed);
    for (size_t i = 0; inputs && i < hlo_arrays_count(inputs); i++) {
        const hlo_array *array = hlo_arrays_at(inputs, i);
        hlo_type type = type_of(array);
        if (type != HLO_TYPE_F32 && type != HLO_TYPE_F16) continue;
        size_t width = hlo_types[type].bytes;
        for (char *at = array->data; at < (char *)array->data + array->size; at += width) {
            double value = hlo_number_load(type, at);
            hlo_number_store(
                type, at, hlo_float_decode(HLO_TYPE_BF16, hlo_float_encode(HLO_TYPE_BF16, value)));
        }
    }
    return inputs;
}

/* Compares two modules on inputs drawn from the seed (with few bits if `coarse`). `both` as in
 * check_on(). FP8 calls sum like tensor cores for a quarter of the seeds. A module of several
 * devices is converted to a module of one device. */
static outcome compare_on(const hlo_module *before, const hlo_module *after, uint64_t seed,
                          bool coarse, bool both, char *why) {
    hlo_module *all_before = on_one_device(before);
    hlo_module *all_after = all_before ? on_one_device(after) : NULL;
    if (all_after) before = all_before, after = all_after;
    hlo_arrays *inputs = coarse ? draw_coarse(before, seed) : draw_inputs(before, seed);
    const hlo_accumulate accumulate = seed % 4 == 3 ? HLO_ACCUMULATE_HOPPER : HLO_ACCUMULATE_F32;
    outcome result = check_on(before, after, inputs, both, accumulate, why);
    hlo_module_free(all_before);
    hlo_module_free(all_after);
    return result;
}

outcome check_values(const hlo_module *before, const hlo_module *after, uint64_t seed, char *why) {
    return compare_on(before, after, seed, false, false, why);
}

/* True if the parameter is computed ahead in check_split(). */
static bool is_ahead(const hlo_instruction *parameter, uint64_t seed) {
    return seed >> (parameter->u.parameter % 8 + 1) & 1;
}

static void append_leaves(hlo_arrays *to, const hlo_arrays *from, size_t at, size_t count) {
    for (size_t i = at; i < at + count; i++) {
        const hlo_array *array = hlo_arrays_at(from, i);
        if (hlo_arrays_append(to, array->type, array->rank, array->dims, array->data) != HLO_OK)
            abort();
    }
}

/* Splits a copy of the module by some of its parameters. Returns false if the two modules compute
 * other bits than the module. */
static bool check_split(const hlo_module *whole, uint64_t seed, char *why) {
    hlo_module *own = on_one_device(whole), *main = NULL, *ahead = NULL;
    const hlo_module *module = own ? own : whole;
    char names[1024] = "";
    bool good = true;
    for (uint32_t i = 0; i < module->entry->parameter_count; i++) {
        const hlo_instruction *parameter = module->entry->parameters[i];
        const size_t used = strlen(names);
        if (is_ahead(parameter, seed) && used + strlen(parameter->name) + 2 < sizeof names)
            sprintf(names + used, used ? ",%s" : "%s", parameter->name);
    }
    if (!*names || hlo_module_clone(module, &main) != HLO_OK ||
        hlo_module_split(main, names, NULL, &ahead) != HLO_OK) {
        hlo_module_free(main);
        hlo_module_free(own);
        return true;
    }
    hlo_arrays *inputs = draw_inputs(module, seed), *parts[2] = {NULL}, *results = NULL;
    hlo_arrays *expected = inputs ? execute(module, inputs, false, HLO_ACCUMULATE_F32) : NULL;
    hlo_arrays *found = NULL;
    if (expected && hlo_arrays_new(&parts[0]) == HLO_OK && hlo_arrays_new(&parts[1]) == HLO_OK) {
        size_t at = 0;
        for (uint32_t i = 0; i < module->entry->parameter_count; i++) {
            const hlo_instruction *parameter = module->entry->parameters[i];
            const size_t count = hlo_shape_leaf_count(parameter->shape);
            append_leaves(parts[is_ahead(parameter, seed)], inputs, at, count);
            at += count;
        }
        results = execute(ahead, parts[1], false, HLO_ACCUMULATE_F32);
        if (results) append_leaves(parts[0], results, 0, hlo_arrays_count(results));
        found = results ? execute(main, parts[0], false, HLO_ACCUMULATE_F32) : NULL;
        good = found && hlo_arrays_count(found) == hlo_arrays_count(expected);
        for (size_t i = 0; good && i < hlo_arrays_count(found); i++) {
            const hlo_array *a = hlo_arrays_at(found, i), *b = hlo_arrays_at(expected, i);
            good = a->size == b->size && memcmp(a->data, b->data, a->size) == 0;
        }
        if (!good) snprintf(why, WHY_SIZE, "with --ahead=%s, other bits are computed", names);
    }
    hlo_arrays *all[] = {inputs, parts[0], parts[1], results, expected, found};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) hlo_arrays_free(all[i]);
    hlo_module_free(ahead);
    hlo_module_free(main);
    hlo_module_free(own);
    return good;
}

/* ------------------------------------------------------------------------------------ rewriting */

void count_rules(const hlo_report *report, uint64_t *fired) {
    for (const tally *t = report->rules.first; t; t = t->next) {
        int index = rule_index(t->name);
        if (index >= 0 && index < MAX_RULES) fired[index] += t->times;
    }
}

static void count(const hlo_report *report, census *counts) {
    count_rules(report, counts->fired);
    for (size_t i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *v = hlo_report_verdict(report, i);
        counts->verdicts[v->kind]++;
        if (v->reason) counts->reasons[hlo_reason_find(v->reason)]++;
    }
}

static void keep_first(void *user, const hlo_diag *diag) {
    if (!*(char *)user) snprintf(user, WHY_SIZE, "%s", diag->message);
}

/* The number of products in a module: in total, reachable from the entry, and not dead. */
typedef struct product_count {
    uint32_t dots, others, reached, live;
    bool calls; /* the module has calls, so inlining may duplicate products */
} product_count;

static product_count count_products(const hlo_module *module) {
    product_count count = {0};
    const bool *reached = hlo_facts_reached(module, module->arena);
    const bool *live = hlo_facts_live(module, module->arena);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = i->next) {
            const hlo_product_kind kind = hlo_product_kind_of(i);
            bool dot = kind == HLO_PRODUCT_DOT || kind == HLO_PRODUCT_RAGGED ||
                       kind == HLO_PRODUCT_BLOCK_SCALED || i->op == HLO_OP_CONVOLUTION ||
                       kind == HLO_PRODUCT_FP8_CALL;
            bool other = !dot && kind != HLO_PRODUCT_NONE;
            count.calls |= i->op == HLO_OP_CALL && !hlo_instr_attr(i, HLO_ATTR_FRONTEND_ATTRIBUTES);
            count.dots += dot;
            count.others += other;
            count.reached += reached[comp->id] && (dot || other);
            count.live += live[i->id] && (dot || other);
        }
    return count;
}

/* Returns true if each product has one verdict, no product is computed twice, and no rule has
 * changed a product of an unknown kind. Products merged into one call have one verdict each. */
static bool products_told(const hlo_module *before, const hlo_module *after,
                          const hlo_report *report, char *why) {
    product_count was = count_products(before), is = count_products(after);
    size_t told = hlo_report_count(report);
    if (told < is.live || (!was.calls && told != was.reached))
        snprintf(why, WHY_SIZE, "%u products, then %u, have %zu verdicts", was.reached, is.live,
                 told);
    else if (!was.calls && is.dots > was.dots)
        snprintf(why, WHY_SIZE, "%u matmuls became %u", was.dots, is.dots);
    else if (!was.calls && is.others != was.others)
        snprintf(why, WHY_SIZE, "%u other products became %u", was.others, is.others);
    else
        return true;
    return false;
}

/* Returns true if an instruction interprets bytes as another type, so that its result has many bits
 * even if the inputs have few. */
static bool has_bits(const hlo_module *module) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = i->next)
            if (i->op == HLO_OP_BITCAST && !hlo_instr_moves(i)) return true;
    return false;
}

outcome check_rewrite(const hlo_module *module, const hlo_pass_options *options, uint64_t seed,
                      census *counts, char *why) {
    hlo_module *after;
    if (hlo_module_clone(module, &after) != HLO_OK) return OUTCOME_NO_CASE;
    const hlo_diag_sink sink = {.emit = keep_first, .user = why};
    hlo_pass_options with_sink = *options;
    with_sink.sink = &sink;
    /* These forms would round more than the module: the lowering of a call rounds more than the
     * call, and a gelu in bf16 more than one in f32. */
    if (options->emit >= HLO_EMIT_QDQ && module->op_counts[HLO_OP_CUSTOM_CALL])
        with_sink.emit = HLO_EMIT_FFI;
    else if (options->emit == HLO_EMIT_QDQ && module->op_counts[HLO_OP_TANH])
        with_sink.emit = HLO_EMIT_DQ;
    hlo_report *report = NULL;
    *why = 0;
    hlo_status status = hlo_module_optimize(after, &with_sink, &report);
    hlo_module *before = NULL; /* the module with the quantization that the options request */
    if (status == HLO_OK && options->quantize) {
        status = hlo_module_clone(module, &before);
        if (status == HLO_OK) status = hlo_module_quantize(before, &with_sink);
    }
    outcome result = status == HLO_OK              ? OUTCOME_SAME
                     : status == HLO_INVALID_INPUT ? OUTCOME_NO_CASE
                                                   : OUTCOME_NO_END;
    if (status == HLO_OK) {
        if (counts) count(report, counts);
        /* A computed bias would be rounded even on coarse inputs; in random modules, biases are
         * parameters. */
        bool coarse = options->allow_bias_rounding, compared = report->rules.first;
        compared = compared && (!coarse || (seed % 2 && !has_bits(module)));
        /* In these forms, a bf16 product may be rounded before its bias is added. */
        bool both = with_sink.emit == HLO_EMIT_QDQ || with_sink.emit == HLO_EMIT_DQ;
        if (compared) result = compare_on(before ? before : module, after, seed, coarse, both, why);
        if (counts) counts->rewrites += compared;
        if (!products_told(module, after, report, why)) result = OUTCOME_DIFFERENT;
        if (seed % 4 == 0 && !check_split(after, seed / 4, why)) result = OUTCOME_DIFFERENT;
        if (!places_kept(module, after, why, WHY_SIZE)) result = OUTCOME_DIFFERENT;
        hlo_report_free(report);
    }
    hlo_module_free(before);
    hlo_module_free(after);
    return result;
}

/* ------------------------------------------------------------------------------------- reducing */

static hlo_instruction *instr_at(const hlo_module *module, uint32_t index) {
    for (hlo_computation *c = module->first; c; c = c->next)
        for (hlo_instruction *i = c->first; i; i = i->next)
            if (!index--) return i;
    return NULL;
}

/* Replaces the instruction by an operand of the same shape (`way` >= 0), or by a parameter (-1). A
 * root tuple is reduced to a tuple of the operand. */
static bool simplify(hlo_module *module, uint32_t index, int way) {
    hlo_instruction *i = instr_at(module, index);
    if (!i || (!i->use_count && i->parent->root != i) || i->op == HLO_OP_PARAMETER) return false;
    hlo_computation *comp = i->parent;
    if (comp != module->entry) return false; /* a loop might not terminate */
    if (way < 0) {
        if (!hlo_shape_is_array(i->shape) || comp->root == i) return false;
        char name[16];
        snprintf(name, sizeof name, "r%u", comp->parameter_count);
        hlo_instruction *p = hlo_instr_new(comp, i, HLO_OP_PARAMETER, i->shape, 0, NULL, name);
        hlo_instr_set_parameter(p, comp->parameter_count);
        hlo_instr_replace_uses(i, p);
        return true;
    }
    if ((uint32_t)way >= i->operand_count) return false;
    hlo_instruction *from = hlo_instr_operand(i, (uint32_t)way);
    bool root = i == module->entry->root && i->op == HLO_OP_TUPLE && i->operand_count > 1;
    if (root) {
        hlo_instruction *one = hlo_instr_new(
            comp, NULL, HLO_OP_TUPLE, hlo_shape_tuple(module, 1, &from->shape), 1, &from, NULL);
        hlo_comp_set_root(comp, one);
        return true;
    }
    if (from->shape != i->shape) return false;
    hlo_instr_replace_uses(i, from);
    return true;
}

/* Returns the module without the instruction, if that module still fails; the caller frees it. */
static hlo_module *attempt(const hlo_module *module, uint32_t index, int way,
                           const hlo_pass_options *options, uint64_t seed) {
    hlo_module *smaller;
    if (hlo_module_clone(module, &smaller) != HLO_OK) return NULL;
    hlo_pass_options tidy;
    hlo_pass_options_init(&tidy);
    tidy.passes = "dce";
    char why[WHY_SIZE];
    if (simplify(smaller, index, way) && hlo_module_optimize(smaller, &tidy, NULL) == HLO_OK &&
        hlo_module_verify(smaller, NULL, NULL) == HLO_OK &&
        check_rewrite(smaller, options, seed, NULL, why) >= OUTCOME_NO_END)
        return smaller;
    hlo_module_free(smaller);
    return NULL;
}

hlo_module *reduce_module(const hlo_module *module, const hlo_pass_options *options,
                          uint64_t seed) {
    enum { WAYS = 4, TRIES = 3000 };
    hlo_module *best;
    if (hlo_module_clone(module, &best) != HLO_OK) return NULL;
    int tries = 0;
    for (bool better = true; better && tries < TRIES;) {
        better = false;
        for (uint32_t index = 0; instr_at(best, index); index++)
            for (int way = -1; way < WAYS && tries < TRIES; way++, tries++) {
                hlo_module *smaller = attempt(best, index, way, options, seed);
                if (!smaller) continue;
                hlo_module_free(best);
                best = smaller;
                better = true;
            }
    }
    return best;
}

void limit_seconds(int seconds) {
    const struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    setitimer(ITIMER_PROF, &limit, NULL);
}

void use_processor(int job) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) || !CPU_COUNT(&all)) return;
    CPU_ZERO(&one);
    size_t skip = (size_t)(job % CPU_COUNT(&all));
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && !skip--) CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}
