/* SPDX-License-Identifier: Apache-2.0 */
/* Counts FLOPs like XLA's cost analysis (xla/service/hlo_cost_analysis.cc): one for each element of
 * an elementwise operation. Transcendental opcodes are counted separately. A called computation
 * counts once per execution; a loop body is multiplied by the loop's trip count if that is
 * known. */
#include "matmul/cost/flops.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/c_locale.h"
#include "ir/module/known.h"
#include "matmul/json.h"
#include "matmul/product.h"

/* Returns the trip count of a while loop: `known_trip_count` from its backend config, where XLA
 * sets it, otherwise the trip count found by analyzing the loop; -1 if
 * unknown, which counts as one iteration. */
static double trip_count_of(const hlo_instruction *loop) {
    json_t *json = hlo_json_config(loop);
    const json_t *n = json_object_get(json_object_get(json, "known_trip_count"), "n");
    const char *text = json_string_value(n);
    double trip_count = (double)json_integer_value(n);
    if (text && !text[strspn(text, "0123456789")]) trip_count = strtod(text, NULL);
    json_decref(json);
    if (trip_count >= 1) return trip_count;
    const uint64_t derived = hlo_while_trip_count(loop);
    return derived == HLO_TRIP_COUNT_UNKNOWN ? -1 : (double)derived;
}

static double elements(const hlo_shape *shape) {
    while (shape->type == HLO_TYPE_TUPLE && shape->rank) shape = shape->elements[0];
    const int64_t count = hlo_shape_is_array(shape) ? hlo_shape_count(shape) : 0;
    return count < 0 ? 0 : (double)count;
}

/* Counts the elements of an operand. The operand may be missing after `--no-verify`. */
static double operand_elements(const hlo_instruction *instr, uint32_t index) {
    return index < instr->operand_count ? elements(hlo_instr_operand(instr, index)->shape) : 0;
}

/* Counts how often an instruction such as a reduction applies its computation. */
static double applications(const hlo_instruction *instr) {
    const double results = elements(instr->shape);
    double taps = 1;
    switch (instr->op) {
    case HLO_OP_REDUCE: return operand_elements(instr, 0) - results;
    case HLO_OP_MAP: return results;
    case HLO_OP_SCATTER: return operand_elements(instr, instr->operand_count - 1);
    case HLO_OP_REDUCE_WINDOW: {
        const hlo_attr *size =
            hlo_window_word(hlo_instr_attr(instr, HLO_ATTR_WINDOW), HLO_ATTR_SIZE);
        for (uint32_t i = 0; size && i < size->u.ints->count; i++)
            taps *= (double)size->u.ints->v[i];
        return results * (taps - 1);
    }
    default: return 0;
    }
}

enum { DOTS, CALLS, CONVOLUTIONS, ELEMENTWISE, REDUCTIONS, TRANSCENDENTALS, KINDS };
static const char *const kind_names[KINDS] = {
    [DOTS] = "FLOPs of dots",                 /* dots of every kind */
    [CALLS] = "FLOPs of library calls",       /* library calls that multiply matrices */
    [CONVOLUTIONS] = "FLOPs of convolutions", /* padding and dilation holes count as elements */
    [ELEMENTWISE] = "FLOPs of elementwise ops",
    [REDUCTIONS] = "FLOPs of reductions", /* including the computations that scatters and
                                           * all-reduces apply */
    [TRANSCENDENTALS] = "transcendentals"};
typedef struct flops {
    double v[KINDS];
} flops;

static void add(flops *to, const flops *from, double times) {
    for (int kind = 0; kind < KINDS; kind++) to->v[kind] += times * from->v[kind];
}

typedef struct calls {
    const flops *totals; /* FLOPs of each computation, by computation id */
    flops all, most;     /* FLOPs of one execution of each callee: sum and maximum */
} calls;

static void count_called(void *user, hlo_computation *called) {
    calls *c = user;
    const flops *one = &c->totals[called->id];
    add(&c->all, one, 1);
    for (int kind = 0; kind < KINDS; kind++)
        if (one->v[kind] > c->most.v[kind]) c->most.v[kind] = one->v[kind];
}

/* Counts the FLOPs of each computation, by id. `totals` must be zero on entry. */
static void count_flops(const hlo_module *module, flops *totals) {
    /* A module lists callees before callers. */
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            double *out = totals[comp->id].v;
            if (hlo_op_is(instr->op, HLO_TRANSCENDENTAL) || instr->op == HLO_OP_RNG)
                out[TRANSCENDENTALS] += elements(instr->shape);
            else if (hlo_op_is(instr->op, HLO_ELEMENTWISE) || instr->op == HLO_OP_BITCAST_CONVERT)
                out[ELEMENTWISE] += elements(instr->shape);
            else if (instr->op == HLO_OP_ALL_REDUCE || instr->op == HLO_OP_ALL_REDUCE_START)
                for (uint32_t i = 0; i < instr->operand_count; i++)
                    out[REDUCTIONS] += operand_elements(instr, i);
            hlo_product product;
            if (hlo_product_read(instr, &product))
                *(instr->op == HLO_OP_CUSTOM_CALL   ? &out[CALLS]
                  : instr->op == HLO_OP_CONVOLUTION ? &out[CONVOLUTIONS]
                                                    : &out[DOTS]) += product.flops;
            if (instr->attr_bits & HLO_ATTR_BIT_CALLS) {
                calls c = {.totals = totals};
                hlo_instr_visit_called(instr, count_called, &c);
                switch (instr->op) {
                case HLO_OP_WHILE:
                    add(&totals[comp->id], &c.all, fabs(trip_count_of(instr)));
                    break;
                case HLO_OP_CONDITIONAL: add(&totals[comp->id], &c.most, 1); break;
                case HLO_OP_CALL:
                case HLO_OP_FUSION:
                case HLO_OP_ASYNC_START: add(&totals[comp->id], &c.all, 1); break;
                case HLO_OP_MAP: add(&totals[comp->id], &c.all, applications(instr)); break;
                default:
                    c.all.v[REDUCTIONS] += c.all.v[ELEMENTWISE];
                    c.all.v[ELEMENTWISE] = 0;
                    add(&totals[comp->id], &c.all, applications(instr));
                }
            }
        }
}

/* Upper bound on execution counts. Nested loops with annotated trip counts may exceed this bound,
 * but sums of FLOPs must be finite. */
static const double most_runs = 1e100;

typedef struct run_calls {
    double *runs;
    bool *assumed;
    double times; /* executions of the callees */
    bool guessed; /* `times` is assumed */
} run_calls;

static void count_call(void *user, hlo_computation *called) {
    const run_calls *all = user;
    all->runs[called->id] += all->times;
    if (all->assumed) all->assumed[called->id] |= all->guessed;
}

void hlo_run_counts(const hlo_module *module, double *out_runs, bool *out_assumed) {
    memset(out_runs, 0, module->next_computation_id * sizeof *out_runs);
    if (out_assumed) memset(out_assumed, 0, module->next_computation_id * sizeof *out_assumed);
    if (module->entry) out_runs[module->entry->id] = 1;
    /* Visit callers before callees; a module lists callees first. */
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev) {
        if (out_runs[comp->id] == 0) continue;
        for (const hlo_instruction *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (!(instr->attr_bits & HLO_ATTR_BIT_CALLS)) continue;
            const double trip_count = instr->op == HLO_OP_WHILE ? trip_count_of(instr) : 1;
            const bool guessed = trip_count < 0 || instr->op == HLO_OP_CONDITIONAL ||
                                 (out_assumed && out_assumed[comp->id]);
            run_calls all = {out_runs, out_assumed,
                             fmin(out_runs[comp->id] * fabs(trip_count), most_runs), guessed};
            hlo_instr_visit_called(instr, count_call, &all);
        }
    }
}

/* Counts of instructions and bytes in a module, each computation once. */
typedef struct counts {
    uint64_t computations, instructions;
    uint64_t ops[HLO_OP_COUNT], types[HLO_TYPE_COUNT];
    double parameter_bytes, constant_bytes,
        result_bytes; /* bytes of the entry's parameters, of constants, and of all results */
} counts;

hlo_status hlo_module_print_stats(const hlo_module *module, FILE *out) {
    HLO_IN_C_LOCALE;
    jmp_buf recover;
    flops *totals = calloc((size_t)module->next_computation_id + 1, sizeof *totals);
    if (!totals) return HLO_OUT_OF_MEMORY;
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    hlo_status status = HLO_OK;
    if (setjmp(recover))
        status = HLO_OUT_OF_MEMORY;
    else {
        counts c = {0};
        count_flops(module, totals);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
            c.computations++;
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
                c.instructions++;
                c.ops[instr->op]++;
                c.types[instr->shape->type]++;
                double bytes = hlo_bytes_of(instr->shape);
                if (instr->op == HLO_OP_CONSTANT) c.constant_bytes += bytes;
                if (instr->op == HLO_OP_PARAMETER && instr->parent == module->entry)
                    c.parameter_bytes += bytes;
                if (instr->shape->type != HLO_TYPE_TUPLE) c.result_bytes += bytes;
            }
        }
        hlo_print_plain(out, "module %s\n", module->name);
        fprintf(out, "  %-28s %14llu\n", "computations", (unsigned long long)c.computations);
        fprintf(out, "  %-28s %14llu\n", "instructions", (unsigned long long)c.instructions);
        fprintf(out, "  %-28s %14.0f\n", "bytes of entry parameters", c.parameter_bytes);
        fprintf(out, "  %-28s %14.0f\n", "bytes of constants", c.constant_bytes);
        fprintf(out, "  %-28s %14.0f\n", "bytes of all results", c.result_bytes);
        for (int kind = 0; kind < KINDS; kind++)
            fprintf(out, "  %-28s %14.0f\n", kind_names[kind],
                    module->entry ? totals[module->entry->id].v[kind] : 0);
        fputs("opcodes\n", out);
        for (int op = 0; op < HLO_OP_COUNT; op++)
            if (c.ops[op])
                fprintf(out, "  %-28s %14llu\n", hlo_ops[op].name, (unsigned long long)c.ops[op]);
        fputs("element types of results\n", out);
        for (int type = 0; type < HLO_TYPE_COUNT; type++)
            if (c.types[type])
                fprintf(out, "  %-28s %14llu\n", hlo_types[type].name,
                        (unsigned long long)c.types[type]);
    }
    hlo_arena_set_recover(module->arena, before);
    free(totals);
    return status;
}
