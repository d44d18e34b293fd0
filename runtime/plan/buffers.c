/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns the offset of each buffer of a computation in its frame, reusing dead memory. Also copies
 * arrays from one memory order to another. */
#include <stdlib.h>
#include <string.h>

#include "runtime/plan/plan.h"

size_t plan_align(const hlo_plan *plan, size_t size) {
    return (size + plan->backend->alignment - 1) / plan->backend->alignment *
           plan->backend->alignment;
}

/* A free range of the frame. */
typedef struct gap {
    size_t offset, size;
} gap;

typedef struct frame {
    const hlo_plan *plan;
    gap *gaps; /* sorted by offset; gaps are never adjacent */
    uint32_t count;
    size_t end; /* end of the highest range ever used */
} frame;

static size_t total_size(const hlo_plan *plan, const plan_slot *slot) {
    return plan_align(plan, slot->size) + plan_align(plan, slot->bound_size);
}

static void remove_gap(frame *f, uint32_t index) {
    f->count--;
    memmove(&f->gaps[index], &f->gaps[index + 1], (f->count - index) * sizeof *f->gaps);
}

/* Adds a free range, and merges it with adjacent gaps. */
static void add_gap(frame *f, size_t offset, size_t size) {
    uint32_t at = 0, end = f->count;
    while (at < end) {
        const uint32_t middle = at + (end - at) / 2;
        if (f->gaps[middle].offset < offset)
            at = middle + 1;
        else
            end = middle;
    }
    bool joins = at > 0 && f->gaps[at - 1].offset + f->gaps[at - 1].size == offset;
    if (joins) {
        f->gaps[--at].size += size;
    } else {
        memmove(&f->gaps[at + 1], &f->gaps[at], (f->count - at) * sizeof *f->gaps);
        f->gaps[at] = (gap){offset, size};
        f->count++;
    }
    if (at + 1 < f->count && f->gaps[at].offset + f->gaps[at].size == f->gaps[at + 1].offset) {
        f->gaps[at].size += f->gaps[at + 1].size;
        remove_gap(f, at + 1);
    }
}

static size_t take(frame *f, size_t size) {
    uint32_t best = f->count;
    for (uint32_t i = 0; i < f->count && (best == f->count || f->gaps[best].size > size); i++)
        if (f->gaps[i].size >= size && (best == f->count || f->gaps[i].size < f->gaps[best].size))
            best = i;
    if (best < f->count) {
        gap *g = &f->gaps[best];
        size_t offset = g->offset;
        *g = (gap){offset + size, g->size - size};
        if (!g->size) remove_gap(f, best);
        return offset;
    }
    size_t offset = f->end;
    if (f->count && f->gaps[f->count - 1].offset + f->gaps[f->count - 1].size == f->end)
        offset = f->gaps[--f->count].offset;
    f->end = offset + size;
    return offset;
}

/* True if the slot is a range of this frame: a buffer, or a result of the entry computation whose
 * memory the caller does not provide. Such a result lives to the end. */
static bool is_placed(const hlo_plan *plan, const plan_comp *comp, const plan_slot *slot) {
    return slot->kind == SLOT_BUFFER ||
           (slot->kind == SLOT_RESULT && plan_places_results(plan, comp) &&
            !plan_is_over_input(plan, slot->index));
}

/* True if the result, which begins in step `s`, can reuse the operand's memory. The operand must be
 * a buffer that step `s` reads only once and that no later step uses. */
static bool can_take(const hlo_plan *plan, const plan_comp *comp, uint32_t s, uint32_t result,
                     uint32_t operand) {
    const plan_step *step = &comp->steps[s];
    const plan_slot *from = &comp->slots[operand], *to = &comp->slots[result];
    if (from->kind != SLOT_BUFFER || !is_placed(plan, comp, to) || to->first != s ||
        from->last != s || from->size != to->size || from->bound_size != to->bound_size)
        return false;
    uint32_t times = 0;
    for (uint32_t i = 0; i < step->operand_count; i++) times += step->operands[i] == operand;
    return times == 1;
}

/* Memory of one slot, or of several slots that use it one after another. */
typedef struct range {
    size_t size, offset;
    uint32_t first, last; /* the first and the last step that use the range */
    uint32_t slot;
} range;

/* Computations with at most this many slots are also placed by size, which takes quadratic time. */
enum { MAX_BY_SIZE = 1024 };

static int compare_sizes(const void *a, const void *b) {
    const range *x = a, *y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return x->slot < y->slot ? -1 : 1;
}

/* Places the largest ranges first, and uses these offsets if the frame becomes smaller. */
static void place_by_size(frame *f, plan_comp *comp, const uint32_t *shares, const bool *done) {
    hlo_arena *arena = f->plan->arena;
    range *ranges = hlo_arena_array(arena, comp->slot_count + 1, sizeof *ranges);
    range *placed = hlo_arena_array(arena, comp->slot_count + 1, sizeof *placed);
    uint32_t *range_of = hlo_arena_zero(arena, (comp->slot_count + 1) * sizeof *range_of);
    /* Create one range for all slots that share memory. */
    uint32_t count = 0;
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        const plan_slot *slot = &comp->slots[i];
        if (!done[i] || shares[i] != i || !is_placed(f->plan, comp, slot)) continue;
        range_of[i] = count;
        ranges[count++] = (range){.size = total_size(f->plan, slot), .first = PLAN_NONE, .slot = i};
    }
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        const plan_slot *slot = &comp->slots[i];
        if (!done[i] || !is_placed(f->plan, comp, slot)) continue;
        range *r = &ranges[range_of[shares[i]]];
        const uint32_t last = slot->kind == SLOT_BUFFER ? slot->last : PLAN_NONE;
        if (slot->first < r->first) r->first = slot->first;
        if (last > r->last) r->last = last;
    }
    size_t end = 0;
    qsort(ranges, count, sizeof *ranges, compare_sizes);
    for (uint32_t i = 0; i < count; i++) {
        range *r = &ranges[i];
        /* Place the range in the smallest sufficient gap between the ranges that are in use at the
         * same time, or after all of these. */
        size_t used = 0, least = SIZE_MAX;
        r->offset = SIZE_MAX;
        for (uint32_t k = 0; k < i; k++) {
            const range *p = &placed[k];
            if (p->last < r->first || r->last < p->first) continue;
            if (p->offset >= used + r->size && p->offset - used < least) {
                r->offset = used;
                least = p->offset - used;
            }
            if (p->offset + p->size > used) used = p->offset + p->size;
        }
        if (r->offset == SIZE_MAX) r->offset = used;
        if (r->offset + r->size > end) end = r->offset + r->size;
        uint32_t at = i;
        for (; at > 0 && placed[at - 1].offset > r->offset; at--) placed[at] = placed[at - 1];
        placed[at] = *r;
    }
    if (end >= f->end) return;
    f->end = end;
    for (uint32_t i = 0; i < count; i++) range_of[ranges[i].slot] = i;
    for (uint32_t i = 0; i < comp->slot_count; i++)
        if (done[i] && is_placed(f->plan, comp, &comp->slots[i]))
            comp->slots[i].offset = ranges[range_of[shares[i]]].offset;
}

void plan_place_buffers(hlo_plan *plan, plan_comp *comp) {
    uint32_t most = 0;
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        uint32_t count = 2 * step->result_count + step->operand_count + 2;
        if (count > most) most = count;
    }
    hlo_arena_mark mark = hlo_arena_here(plan->arena);
    frame f = {.plan = plan,
               .gaps = hlo_arena_array(plan->arena, comp->slot_count + 1, sizeof *f.gaps)};
    uint32_t *slots = hlo_arena_array(plan->arena, most, sizeof *slots);
    /* By slot: `shares` is the slot whose memory the slot reuses; `done` is true after the slot is
     * placed; `freed` is true after its memory was freed or reused. */
    uint32_t *shares = hlo_arena_array(plan->arena, comp->slot_count, sizeof *shares);
    bool *done = hlo_arena_zero(plan->arena, comp->slot_count);
    bool *freed = hlo_arena_zero(plan->arena, comp->slot_count);
    for (uint32_t i = 0; i < comp->slot_count; i++) shares[i] = i;
    for (uint32_t s = 0; s < comp->step_count; s++) {
        /* Place the slots that this step uses first, and then free the slots that it uses last. */
        const plan_step *step = &comp->steps[s];
        uint32_t count = 0; /* number of slots that the step uses; results come first */
        for (uint32_t i = 0; i < step->result_count; i++) slots[count++] = step->results[i];
        for (uint32_t i = 0; step->spare && i < step->result_count; i++)
            slots[count++] = step->spare[i];
        slots[count++] = step->work;
        slots[count++] = step->predicate;
        for (uint32_t i = 0; i < step->operand_count; i++) slots[count++] = step->operands[i];
        for (uint32_t r = 0; r < step->result_count; r++) {
            /* Let the result reuse the memory of a buffer that the backend may overwrite, or that
             * contains the first state of a loop. */
            const hlo_overwrites *o = step->job ? &step->job->overwrites : NULL;
            uint32_t over = PLAN_NONE;
            if (step->kind == STEP_WHILE && step->results[r] != PLAN_NONE &&
                can_take(plan, comp, s, step->results[r], step->operands[r]))
                over = step->operands[r];
            for (uint32_t i = 0; o && i < o->count && over == PLAN_NONE; i++)
                if (o->v[i].result == r && !freed[step->operands[o->v[i].operand]] &&
                    can_take(plan, comp, s, step->results[r], step->operands[o->v[i].operand]))
                    over = step->operands[o->v[i].operand];
            if (over == PLAN_NONE || done[step->results[r]]) continue;
            comp->slots[step->results[r]].offset = comp->slots[over].offset;
            shares[step->results[r]] = shares[over];
            done[step->results[r]] = freed[over] = true;
        }
        for (uint32_t i = 0; i < count; i++) {
            if (slots[i] == PLAN_NONE || done[slots[i]]) continue;
            plan_slot *slot = &comp->slots[slots[i]];
            const size_t size = total_size(f.plan, slot);
            done[slots[i]] = true;
            if (size && is_placed(f.plan, comp, slot)) slot->offset = take(&f, size);
        }
        for (uint32_t i = 0; i < count; i++) {
            if (slots[i] == PLAN_NONE || freed[slots[i]]) continue;
            const plan_slot *slot = &comp->slots[slots[i]];
            const size_t size = total_size(f.plan, slot);
            if (slot->last != s || slot->kind != SLOT_BUFFER || !size) continue;
            add_gap(&f, slot->offset, size);
            freed[slots[i]] = true;
        }
    }
    if (comp->slot_count <= MAX_BY_SIZE) place_by_size(&f, comp, shares, done);
    comp->frame_size = f.end;
    hlo_arena_release(plan->arena, mark);
}

/* Copies elements of `width` bytes. Both shapes have the same dimensions. */
static void reorder(size_t width, const hlo_shape *to_shape, void *to, const hlo_shape *from_shape,
                    const void *from) {
    enum { MAX_RANK = 64 };
    const uint32_t rank = to_shape->rank;
    const int64_t *dims = to_shape->dims;
    int64_t index[MAX_RANK] = {0}, to_strides[MAX_RANK], from_strides[MAX_RANK];
    for (uint32_t d = 0; d < rank; d++)
        if (dims[d] == 0) return;
    hlo_shape_strides(to_shape, to_strides);
    hlo_shape_strides(from_shape, from_strides);
    char *out = to;
    const char *in = from;
    for (;;) {
        memcpy(out, in, width);
        uint32_t d = rank;
        for (; d > 0; d--) {
            out += to_strides[d - 1] * (int64_t)width;
            in += from_strides[d - 1] * (int64_t)width;
            if (++index[d - 1] < dims[d - 1]) break;
            out -= to_strides[d - 1] * dims[d - 1] * (int64_t)width;
            in -= from_strides[d - 1] * dims[d - 1] * (int64_t)width;
            index[d - 1] = 0;
        }
        if (d == 0) return;
    }
}

void plan_to_physical(const hlo_shape *shape, size_t width, void *to, const void *row_major) {
    const hlo_shape plain = {.rank = shape->rank, .dims = shape->dims};
    reorder(width, shape, to, &plain, row_major);
}

void plan_to_row_major(const hlo_shape *shape, size_t width, void *row_major, const void *from) {
    const hlo_shape plain = {.rank = shape->rank, .dims = shape->dims};
    reorder(width, &plain, row_major, shape, from);
}

void plan_fetch(const hlo_plan *plan, const hlo_shape *shape, size_t width, void *out,
                const void *from, size_t size, void *staging) {
    bool plain = hlo_shape_is_row_major(shape);
    plan->backend->copy_out(plan->device, plain ? out : staging, from, size);
    if (!plain) plan_to_row_major(shape, width, out, staging);
}
