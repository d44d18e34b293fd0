/* SPDX-License-Identifier: Apache-2.0 */
/* FLOPs as XLA's cost analysis counts them: one for each element of an elementwise operation.
 * Transcendental opcodes are counted separately. A called computation counts once per execution; a
 * loop body counts by the loop's trip count if that is known. */
#include "matmul/cost/flops.h"

#include <stdlib.h>
#include <string.h>

#include "matmul/cost/run_count.h"
#include "matmul/product.h"

static double elements(const hlo_shape *shape) {
    while (shape->type == HLO_TYPE_TUPLE && shape->rank) shape = shape->elements[0];
    const int64_t count = hlo_shape_is_array(shape) ? hlo_shape_count(shape) : 0;
    return count < 0 ? 0 : (double)count;
}

/* Counts the elements of an operand; after `--no-verify` it may be missing. */
static double operand_elements(const hlo_instr *instr, uint32_t index) {
    return index < instr->operand_count ? elements(hlo_instr_operand(instr, index)->shape) : 0;
}

/* Counts how often a reduction or the like applies its computation. */
static double applications(const hlo_instr *instr) {
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

static void add(hlo_flops *to, const hlo_flops *from, double times) {
    to->dots += times * from->dots;
    to->calls += times * from->calls;
    to->convolutions += times * from->convolutions;
    to->elementwise += times * from->elementwise;
    to->reductions += times * from->reductions;
    to->transcendentals += times * from->transcendentals;
}

static void raise(double *to, double from) {
    if (from > *to) *to = from;
}

/* The computations that one instruction calls. */
typedef struct calls {
    const hlo_flops *totals; /* by computation id */
    hlo_flops all, most;     /* of one execution of each: sum and maximum */
} calls;

static void count_called(void *user, hlo_computation *called) {
    calls *c = user;
    const hlo_flops *one = &c->totals[called->id];
    add(&c->all, one, 1);
    raise(&c->most.dots, one->dots);
    raise(&c->most.calls, one->calls);
    raise(&c->most.convolutions, one->convolutions);
    raise(&c->most.elementwise, one->elementwise);
    raise(&c->most.reductions, one->reductions);
    raise(&c->most.transcendentals, one->transcendentals);
}

hlo_flops hlo_flops_count(const hlo_module *module, hlo_flops *totals) {
    /* Callers come after their callees. */
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_flops *out = &totals[comp->id];
            if (hlo_op_is(instr->op, HLO_TRANSCENDENTAL))
                out->transcendentals += elements(instr->shape);
            else if (hlo_op_is(instr->op, HLO_ELEMENTWISE) || instr->op == HLO_OP_BITCAST_CONVERT)
                out->elementwise += elements(instr->shape);
            else if (instr->op == HLO_OP_RNG)
                out->transcendentals += elements(instr->shape);
            else if (instr->op == HLO_OP_ALL_REDUCE || instr->op == HLO_OP_ALL_REDUCE_START)
                for (uint32_t i = 0; i < instr->operand_count; i++)
                    out->reductions += operand_elements(instr, i);
            hlo_product product;
            if (hlo_product_read(instr, &product))
                *(instr->op == HLO_OP_CUSTOM_CALL   ? &out->calls
                  : instr->op == HLO_OP_CONVOLUTION ? &out->convolutions
                                                    : &out->dots) += product.flops;
            if (instr->attr_bits & HLO_ATTR_BIT_CALLS) {
                calls c = {.totals = totals};
                hlo_instr_visit_called(instr, count_called, &c);
                switch (instr->op) {
                case HLO_OP_WHILE: add(out, &c.all, hlo_loop_trip_count(instr)); break;
                case HLO_OP_CONDITIONAL: add(out, &c.most, 1); break;
                case HLO_OP_CALL:
                case HLO_OP_FUSION:
                case HLO_OP_ASYNC_START: add(out, &c.all, 1); break;
                case HLO_OP_MAP: add(out, &c.all, applications(instr)); break;
                default:
                    c.all.reductions += c.all.elementwise;
                    c.all.elementwise = 0;
                    add(out, &c.all, applications(instr));
                }
            }
        }
    return module->entry ? totals[module->entry->id] : (hlo_flops){0};
}
