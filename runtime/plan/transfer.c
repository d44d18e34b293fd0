/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers values between the host and a device: infeed and outfeed, and sends and recvs with the
 * host. The plan draws the values that a module receives, and records those that it sends.
 *
 * Transfers run in the order of their instructions, which follows tokens and data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/memory.h"
#include "runtime/plan/plan.h"

/* Returns the queue of an instruction without its count. Returns false if it has none. */
static bool describe(const hlo_instruction *instr, plan_feed *out) {
    const bool channel = instr->op == HLO_OP_SEND || instr->op == HLO_OP_RECV_DONE;
    if (channel && !hlo_instr_int(instr, HLO_ATTR_IS_HOST_TRANSFER, 0)) return false;
    if (!channel && instr->op != HLO_OP_INFEED && instr->op != HLO_OP_OUTFEED) return false;
    *out = (plan_feed){.sends = instr->op == HLO_OP_SEND || instr->op == HLO_OP_OUTFEED,
                       .channel = channel ? hlo_instr_int(instr, HLO_ATTR_CHANNEL_ID, 0) : -1};
    return true;
}

static int by_channel(const void *x, const void *y) {
    const plan_feed *a = x, *b = y;
    if (a->sends != b->sends) return a->sends - b->sends;
    return (a->channel > b->channel) - (a->channel < b->channel);
}

typedef struct visitor {
    const unsigned *effects;
    unsigned found;
} visitor;

static void visit(void *user, hlo_computation *called) {
    visitor *v = user;
    v->found |= v->effects[called->id];
}

unsigned plan_effects_of(const hlo_plan *plan, const hlo_instruction *instr) {
    visitor v = {plan->effects, hlo_op_is(instr->op, HLO_SIDE_EFFECT) ? PLAN_EFFECT : 0};
    plan_feed unused;
    if (describe(instr, &unused)) v.found |= PLAN_TRANSFER;
    if (instr->attr_bits & HLO_ATTR_BIT_CALLS) hlo_instr_visit_called(instr, visit, &v);
    return v.found;
}

void plan_find_transfers(hlo_plan *plan) {
    const hlo_module *module = plan->module;
    uint32_t capacity = 0, count = 0;
    plan->effects =
        hlo_arena_zero(plan->arena, module->next_computation_id * sizeof *plan->effects);
    for (const hlo_computation *c = module->first; c; c = c->next)
        for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i)) {
            plan_feed feed;
            plan->effects[c->id] |= plan_effects_of(plan, i);
            if (!describe(i, &feed)) continue;
            hlo_arena_grow(plan->arena, &plan->feeds, count, &capacity, sizeof feed);
            plan->feeds[count++] = feed;
        }
    if (count) qsort(plan->feeds, count, sizeof *plan->feeds, by_channel);
    for (uint32_t i = 0; i < count; i++)
        if (!i || by_channel(&plan->feeds[i], &plan->feeds[i - 1]))
            plan->feeds[plan->feed_count++] = plan->feeds[i];
}

plan_feed *plan_feed_of(const hlo_plan *plan, const hlo_instruction *instr) {
    plan_feed feed;
    if (!describe(instr, &feed)) return NULL;
    return bsearch(&feed, plan->feeds, plan->feed_count, sizeof feed, by_channel);
}

void plan_transfers_begin(hlo_plan *plan) {
    for (uint32_t i = 0; i < plan->feed_count; i++) plan->feeds[i].count = 0;
    hlo_arrays_clear(&plan->sent);
    plan->unsure = false;
}

hlo_status plan_receive(hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    const uint64_t number = step->feed->count++;
    for (uint32_t i = 0; i < step->result_count; i++) {
        const hlo_shape *shape = step->shapes[i];
        const plan_slot *slot = &comp->slots[step->results[i]];
        char *drawn = hlo_malloc(2 * slot->size + 1);
        if (!drawn) return HLO_OUT_OF_MEMORY;
        const void *host = drawn;
        hlo_draw_received(&plan->drawn, step->sources[i], step->feed->channel, number, i,
                          shape->type, drawn, slot->size);
        if (!hlo_shape_is_row_major(shape)) {
            plan_to_physical(shape, hlo_types[shape->type].bytes, drawn + slot->size, drawn);
            host = drawn + slot->size;
        }
        plan->backend->copy_in(plan->device, slot->place.data, host, slot->size);
        if (slot->place.bound)
            plan->backend->fill(plan->device, slot->place.bound, plan->unsure ? 0x7f : 0,
                                slot->bound_size);
        hlo_free(drawn);
    }
    return HLO_OK;
}

/* Sets the name of an array: that of its feed, its number in the feed, the leaf if the value is a
 * tuple, and the device if there are several. Returns false if memory runs out. */
static bool set_name(const hlo_plan *plan, const plan_step *step, uint64_t number, uint32_t leaf,
                     hlo_array *array) {
    enum { SIZE = 96 };
    const plan_feed *feed = step->feed;
    char *name = hlo_malloc(SIZE);
    if (!name) return false;
    int at = feed->channel < 0 ? snprintf(name, SIZE, "outfeed.")
                               : snprintf(name, SIZE, "send.%lld.", (long long)feed->channel);
    at += snprintf(name + at, (size_t)(SIZE - at), "%llu", (unsigned long long)number);
    if (!hlo_shape_is_array(hlo_instr_operand(step->instr, 0)->shape))
        at += snprintf(name + at, (size_t)(SIZE - at), "{%u}", leaf);
    if (plan->seat.world)
        snprintf(name + at, (size_t)(SIZE - at), "@%u", hlo_seat_number(&plan->seat));
    array->name = name;
    return true;
}

hlo_status plan_send(hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    const uint64_t number = step->feed->count++;
    for (uint32_t i = 0; i < step->operand_count; i++) {
        const hlo_shape *shape = step->shapes[i];
        const plan_slot *slot = &comp->slots[step->operands[i]];
        const size_t width = hlo_types[shape->type].bytes;
        hlo_array *array = hlo_arrays_add(&plan->sent, shape->type, shape->rank, shape->dims,
                                          plan->options.bounds);
        if (!array || !set_name(plan, step, number, i, array)) return HLO_OUT_OF_MEMORY;
        const size_t bound_size = array->size / width * sizeof(float);
        const size_t size = array->size > bound_size ? array->size : bound_size;
        void *staging = hlo_malloc(size + 1);
        if (!staging) return HLO_OUT_OF_MEMORY;
        plan_fetch(plan, shape, width, array->data, slot->place.data, array->size, staging);
        if (array->bound && slot->place.bound)
            plan_fetch(plan, shape, sizeof(float), array->bound, slot->place.bound, bound_size,
                       staging);
        hlo_free(staging);
    }
    if (plan->unsure) plan_transfers_unsure(plan, plan->sent.count - step->operand_count);
    return HLO_OK;
}

void plan_transfers_unsure(hlo_plan *plan, size_t first) {
    plan->unsure = true;
    for (size_t i = first; i < plan->sent.count; i++) {
        const hlo_array *array = &plan->sent.items[i];
        for (size_t k = 0; array->bound && k < array->size / hlo_types[array->type].bytes; k++)
            array->bound[k] = (float)INFINITY;
    }
}
