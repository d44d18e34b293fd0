/* SPDX-License-Identifier: Apache-2.0 */
/* Computes costs. Finds each kernel once. Records a kernel for the matmuls that use the kernel's
 * result, and for the matmuls whose results the kernel reads. */
#include "matmul/cost/cost.h"

#include <math.h>
#include <string.h>

#include "ir/module/ragged.h"
#include "matmul/cost/flops.h"
#include "matmul/product.h"

/* MAX_SCALE: maximum number of uses to visit between an amax and an array that it scales.
 * MAX_KERNEL: maximum number of instructions in one kernel. MAX_TUPLES, MAX_ELEMENTS: maximum
 * number of nested tuples, and of elements of each. Values beyond these limits count as read
 * from memory, so that the analysis is linear. */
enum { MAX_KERNEL = 512, MAX_OWNERS = 8, MAX_SCALE = 64, MAX_TUPLES = 4, MAX_ELEMENTS = 64 };

/* A kernel that reads a result of a matmul. */
typedef struct consumer {
    struct consumer *next;
    uint32_t kernel; /* id of the instruction that the kernel computes */
    double share;    /* the fraction of the kernel's bytes that is assigned to this matmul */
    bool reduces;    /* the kernel is a reduction */
} consumer;

typedef struct entry {
    hlo_cost self; /* cost of the matmul without other kernels */
    double flops, peak;
    double joined;        /* bytes saved if the matmul absorbs its only consumer; 0 if it does
                           * not */
    double operand_bytes; /* bytes of the kernels that compute the operands */
    consumer *consumers;
} entry;

/* Arrays indexed by instruction id contain indices of entries instead of entries, because few
 * instructions are matmuls. */
struct hlo_costs {
    const hlo_target *target;
    uint32_t ids;
    entry *entries;     /* one entry per matmul; entry 0 is all zero */
    uint32_t *entry_of; /* by instruction id: index of the entry; 0 if absent */
    double *kernel; /* by id of the instruction that a kernel computes: bytes of the kernel; 0 if no
                     * kernel computes the instruction */
    const hlo_instruction **memory[2]; /* by id: results of memory_of() */
};

/* The amax of an operand: a reduction that computes the operand's scale. */
typedef struct amax {
    uint32_t next;   /* index of the next amax of the same operand; 0 for the last */
    uint32_t reduce; /* id of the reduction */
} amax;

typedef struct recorder {
    const bool *needed;
    hlo_costs *costs;
    hlo_arena *arena, *scratch;
    uint32_t entry_count, matmul_count;
    const hlo_instruction **matmuls; /* matmuls that are executed and can be read */
    uint32_t *seen;                  /* by id: the last traversal that visited the instruction */
    uint32_t traversal;
    uint32_t *read_count; /* by id: number of matmuls that read the value */
    bool *stored;         /* by id: the kernel of an amax of the value also writes the value */
    bool *written;        /* by id: a kernel that writes the value has been counted */
    uint32_t *amax_of;    /* by id of an operand: index of its first amax; 0 if it has none */
    uint32_t *amax_reads; /* by id of a reduction: number of operands whose amax it computes */
    amax *amaxes;         /* entry 0 is unused */
    uint32_t amax_count, amax_capacity;
    const hlo_instruction *stack[MAX_KERNEL];
    uint32_t depth, visited;
    double bytes; /* bytes of the traversal's sources */
    const hlo_instruction *owners[MAX_OWNERS];
    uint32_t owner_count;
    const hlo_instruction *reductions[MAX_OWNERS];
    uint32_t reduction_count;
} recorder;

static bool is_product(const hlo_instruction *instr) {
    return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
}

static bool is_fused(const hlo_instruction *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE | HLO_MOVEMENT) ||
           instr->op == HLO_OP_CONCATENATE || instr->op == HLO_OP_IOTA ||
           instr->op == HLO_OP_BITCAST_CONVERT;
}

/* Returns the value that is stored in memory for `value`. A reshape moves no bytes; neither does a
 * transpose if the reader of the operand accepts any order of dimensions. */
static const hlo_instruction *memory_of(const hlo_costs *costs, const hlo_instruction *value,
                                        bool any_order) {
    return costs->memory[any_order][value->id];
}

static void add_once(const hlo_instruction **list, uint32_t *count, const hlo_instruction *instr) {
    for (uint32_t i = 0; i < *count; i++)
        if (list[i] == instr) return;
    if (*count < MAX_OWNERS) list[(*count)++] = instr;
}

/* Returns the value in memory for `value` or, if `value` is converted from a narrower type, for the
 * narrower value. */
static const hlo_instruction *narrowest(const hlo_costs *costs, const hlo_instruction *value) {
    value = memory_of(costs, value, false);
    if (value->op != HLO_OP_CONVERT) return value;
    const hlo_instruction *from = hlo_instr_operand(value, 0);
    return hlo_types[from->shape->type].bits < hlo_types[value->shape->type].bits
               ? memory_of(costs, from, false)
               : value;
}

/* Returns the value of which a reduction computes the amax, or NULL. */
static const hlo_instruction *amax_of(const hlo_costs *costs, const hlo_instruction *reduce) {
    if (reduce->op != HLO_OP_REDUCE ||
        hlo_instr_comp(reduce, HLO_ATTR_TO_APPLY)->root->op != HLO_OP_MAXIMUM)
        return NULL;
    const hlo_instruction *value = narrowest(costs, hlo_instr_operand(reduce, 0));
    return value->op == HLO_OP_ABS ? narrowest(costs, hlo_instr_operand(value, 0)) : NULL;
}

/* True if an array of as many elements as `like` is computed from `from`, which is computed from an
 * amax: the kernel of the array has to wait for the amax. An amax that is only returned, for a
 * later execution, delays nothing. */
static bool is_awaited(const hlo_instruction *from, const hlo_shape *like, unsigned *steps) {
    for (const hlo_use *use = from->uses; use; use = use->next) {
        if (!*steps) return false;
        --*steps;
        const hlo_instruction *user = use->user;
        const bool computes = is_fused(user) || user->op == HLO_OP_ALL_REDUCE;
        if (!computes || !hlo_shape_is_array(user->shape)) continue;
        if (hlo_shape_count(user->shape) == hlo_shape_count(like) || is_awaited(user, like, steps))
            return true;
    }
    return false;
}

static void note_source(recorder *w, const hlo_instruction *source, double bytes) {
    const hlo_instruction *maker =
        source->op == HLO_OP_GET_TUPLE_ELEMENT ? hlo_instr_operand(source, 0) : source;
    w->bytes += bytes;
    if (is_product(maker)) add_once(w->owners, &w->owner_count, maker);
    /* An amax of any shape, and a single number that is computed from an array, possibly across
     * devices, are reductions. */
    if (!hlo_shape_is_array(source->shape)) return;
    const bool number = hlo_shape_count(source->shape) == 1;
    if (source->op == HLO_OP_ALL_REDUCE)
        source = memory_of(w->costs, hlo_instr_operand(source, 0), false);
    if (source->op == HLO_OP_REDUCE && (number || amax_of(w->costs, source)))
        add_once(w->reductions, &w->reduction_count, source);
}

/* True if kernels read the value from memory instead of computing it again: a value that waits for
 * its amax to be quantized, and an fp8 operand of a matmul. */
static bool is_stored(const recorder *w, const hlo_instruction *value) {
    return w->stored[value->id] ||
           (w->read_count[value->id] && hlo_type_is_fp8(value->shape->type));
}

/* Returns the value in memory of which `instr` takes a part, or NULL. */
static const hlo_instruction *whole_of(const recorder *w, const hlo_instruction *instr) {
    if (!hlo_op_is(instr->op, HLO_TAKES_PART)) return NULL;
    const hlo_instruction *whole = memory_of(w->costs, hlo_instr_operand(instr, 0), false);
    return is_fused(whole) ? NULL : whole;
}

static void push(recorder *w, const hlo_instruction *instr) {
    instr = memory_of(w->costs, instr, false);
    if (w->seen[instr->id] == w->traversal) return;
    w->seen[instr->id] = w->traversal;
    const hlo_instruction *whole = whole_of(w, instr);
    bool full = w->visited == MAX_KERNEL;
    if (whole)
        note_source(w, whole, hlo_bytes_of(instr->shape));
    else if (!is_fused(instr) || full || is_stored(w, instr))
        note_source(w, instr, hlo_bytes_of(instr->shape));
    else
        w->stack[w->depth++] = instr, w->visited++;
}

static entry *entry_of(recorder *w, const hlo_instruction *matmul) {
    uint32_t *number = &w->costs->entry_of[matmul->id];
    if (!*number) *number = w->entry_count++;
    return &w->costs->entries[*number];
}

static void cost_of_kernel(recorder *w, const hlo_instruction *instr) {
    hlo_costs *costs = w->costs;
    const hlo_instruction *whole = whole_of(w, instr);
    /* Find the sources of the kernel. */
    w->traversal++;
    w->depth = w->visited = w->owner_count = w->reduction_count = 0;
    w->bytes = 0;
    const uint32_t count = instr->op == HLO_OP_REDUCE ? instr->operand_count / 2
                           : whole                    ? 0
                                                      : instr->operand_count;
    const hlo_instruction *value = amax_of(costs, instr);
    if (value && w->stored[value->id] && !w->written[value->id]) {
        w->written[value->id] = true;
        w->stack[w->depth++] = value, w->visited++;
        w->bytes += hlo_bytes_of(value->shape);
    } else {
        for (uint32_t i = 0; i < count; i++) push(w, hlo_instr_operand(instr, i));
    }
    while (w->depth) {
        const hlo_instruction *at = w->stack[--w->depth];
        for (uint32_t i = 0; i < at->operand_count; i++) push(w, hlo_instr_operand(at, i));
    }
    if (whole) note_source(w, whole, hlo_bytes_of(instr->shape));
    costs->kernel[instr->id] = w->bytes + hlo_bytes_of(instr->shape);
    for (uint32_t i = 0; w->read_count[instr->id] && i < w->reduction_count; i++) {
        hlo_arena_grow(w->scratch, &w->amaxes, w->amax_count, &w->amax_capacity, sizeof *w->amaxes);
        w->amaxes[w->amax_count] = (amax){w->amax_of[instr->id], w->reductions[i]->id};
        w->amax_of[instr->id] = w->amax_count++;
        w->amax_reads[w->reductions[i]->id]++;
    }
    if (w->read_count[instr->id] || w->amax_reads[instr->id]) return;
    for (uint32_t i = 0; i < w->owner_count; i++) {
        consumer *made = hlo_arena_alloc(w->arena, sizeof *made);
        consumer **list = &entry_of(w, w->owners[i])->consumers;
        *made = (consumer){*list, instr->id, 1.0 / w->owner_count, instr->op == HLO_OP_REDUCE};
        *list = made;
    }
}

/* True if the value must be in memory: it is the root, or a user is neither a part of a kernel nor
 * a matmul. Elements of tuples that no instruction uses as a whole, as inlining leaves them, are
 * followed through `tuples` tuples. */
static bool is_needed_in_memory(const recorder *w, const hlo_instruction *instr, unsigned tuples) {
    if (instr->parent->root == instr) return true;
    for (const hlo_use *use = instr->uses; use; use = use->next) {
        const hlo_instruction *user = use->user;
        if (user->op == HLO_OP_TUPLE && user->parent->root != user && tuples &&
            user->use_count <= MAX_ELEMENTS) {
            for (const hlo_use *of = user->uses; of; of = of->next)
                if (of->user->op != HLO_OP_GET_TUPLE_ELEMENT ||
                    (memory_of(w->costs, of->user, false) == memory_of(w->costs, instr, false) &&
                     is_needed_in_memory(w, of->user, tuples - 1)))
                    return true;
            continue;
        }
        if (w->needed[user->id] && !is_fused(user) && !is_product(user) &&
            user->op != HLO_OP_REDUCE)
            return true;
    }
    return false;
}

/* Returns the peak in 10^12 FLOP/s; 0 if unknown. */
static double peak_of(hlo_type a, hlo_type b, bool fp8, const hlo_target *target) {
    int bits = hlo_types[a].bits > hlo_types[b].bits ? hlo_types[a].bits : hlo_types[b].bits;
    if (!hlo_type_is_float(a) || !hlo_type_is_float(b) || bits > 32) return 0;
    if (fp8) return target->fp8_tflops;
    return bits == 32 ? target->bf16_tflops / 2.0 : target->bf16_tflops;
}

static double roofline(double flops, double bytes, double peak, const hlo_target *target) {
    return peak == 0 ? 0 : fmax(flops / (1e12 * peak), bytes / (1e9 * target->memory_gbs));
}

/* True if stock XLA (docs/cost.md) multiplies the operands in FP8 without a rewrite: a dot of fp8
 * operands that its Triton fusion or its FP8 rewriter accepts. */
static bool is_fp8_in_xla(const hlo_instruction *instr, const hlo_product *p) {
    return p->fp8 || (instr->op == HLO_OP_DOT && hlo_type_is_fp8_operand(p->a->shape->type) &&
                      hlo_type_is_fp8_operand(p->b->shape->type));
}

/* Returns the cost of a product without other kernels. `fp8` is true if it is an FP8 product. */
static hlo_cost cost_alone(const hlo_instruction *instr, const hlo_product *p, bool fp8,
                           const hlo_target *target) {
    hlo_matmul m;
    double bytes, peak = peak_of(p->a->shape->type, p->b->shape->type, fp8, target);
    if (hlo_product_matmul(instr, &m)) {
        const hlo_instruction *read[] = {m.a,       m.b,       m.c,       m.bias,
                                         m.a_scale, m.b_scale, m.c_scale, m.d_scale};
        bytes = hlo_bytes_of(m.d) + (m.aux ? hlo_bytes_of(m.aux) : 0);
        for (size_t i = 0; i < sizeof read / sizeof *read; i++)
            if (read[i]) bytes += hlo_bytes_of(read[i]->shape);
    } else {
        const hlo_shape *made = instr->shape;
        const bool tuple = made->type == HLO_TYPE_TUPLE;
        bytes = tuple ? 0 : hlo_bytes_of(made);
        for (uint32_t i = 0; tuple && i < made->rank; i++) { /* byte arrays are workspace, which is
                                                              * not counted */
            const hlo_type type = made->elements[i]->type;
            if (type != HLO_TYPE_S8 && type != HLO_TYPE_U8)
                bytes += hlo_bytes_of(made->elements[i]);
        }
        for (uint32_t i = 0; i < instr->operand_count; i++)
            bytes += hlo_bytes_of(hlo_instr_operand(instr, i)->shape);
    }
    hlo_ragged ragged;
    if (hlo_ragged_read(instr, &ragged)) {
        /* Cost of a ragged-dot as XLA compiles it: a dense product of all rows or terms with all
         * groups, on zero-padded copies of the operands. The product is in FP8 if the operands are
         * fp8. */
        const double times = ragged.mode == HLO_RAGGED_BATCH ? 1 : (double)ragged.groups,
                     left = hlo_bytes_of(p->a->shape), right = hlo_bytes_of(p->b->shape);
        const double read = ragged.mode == HLO_RAGGED_BATCH         ? 0
                            : ragged.mode == HLO_RAGGED_CONTRACTING ? left + right
                                                                    : left;
        const double made = times * read, dense = bytes - read + made;
        const double ragged_peak = peak_of(p->a->shape->type, p->b->shape->type, p->narrow, target);
        hlo_cost ragged_cost = {.bytes = dense + read + made,
                                .seconds = roofline(times * p->flops, dense, ragged_peak, target)};
        if (ragged_cost.seconds > 0) {
            ragged_cost.seconds += (read + made) / (1e9 * target->memory_gbs);
            ragged_cost.compute_seconds = times * p->flops / (1e12 * ragged_peak);
        }
        return ragged_cost;
    }
    /* If the product is not in FP8, XLA first converts narrow operands to 16 bits, in separate
     * kernels. */
    const bool converts = instr->op == HLO_OP_DOT && p->narrow && !fp8;
    const double elements = converts ? hlo_bytes_of(p->a->shape) + hlo_bytes_of(p->b->shape) : 0;
    hlo_cost cost = {.bytes = bytes + 4 * elements,
                     .seconds = roofline(p->flops, bytes + elements, peak, target)};
    if (cost.seconds > 0) {
        cost.seconds += 3 * elements / (1e9 * target->memory_gbs);
        cost.compute_seconds = p->flops / (1e12 * peak);
    }
    return cost;
}

static void cost_of_matmul(recorder *w, const hlo_instruction *instr) {
    hlo_product p;
    hlo_costs *costs = w->costs;
    if (!hlo_product_read(instr, &p)) return;
    bool dot = instr->op == HLO_OP_DOT;
    const hlo_instruction *read[] = {memory_of(costs, p.a, dot), memory_of(costs, p.b, dot)};
    entry *made = entry_of(w, instr);
    const bool fp8 = is_fp8_in_xla(instr, &p) && (p.fp8 || costs->target->fp8);
    made->self = cost_alone(instr, &p, fp8, costs->target);
    made->self.wide_seconds = cost_alone(instr, &p, fp8 && !dot, costs->target).seconds;
    made->flops = p.flops;
    made->peak = costs->target->fp8_tflops;
    if (dot && costs->target->fp8 && is_fp8_in_xla(instr, &p)) {
        const hlo_use *use = instr->uses;
        const consumer *only = made->consumers;
        const bool joins = use && !use->next && hlo_op_is(use->user->op, HLO_ELEMENTWISE) && only &&
                           !only->next && !only->reduces && only->share == 1;
        made->joined = joins ? 2 * hlo_bytes_of(instr->shape) : 0;
    }
    for (int i = 0; i < 2; i++) {
        /* The bytes of an operand are those of its own kernel, plus its share of the kernels of its
         * amaxes. */
        const double *kernel = costs->kernel;
        double bytes = kernel[read[i]->id];
        for (uint32_t at = w->amax_of[read[i]->id]; at; at = w->amaxes[at].next)
            bytes += kernel[w->amaxes[at].reduce] / w->amax_reads[w->amaxes[at].reduce];
        made->operand_bytes += bytes / w->read_count[read[i]->id];
    }
}

hlo_costs *hlo_costs_record(const hlo_module *module, const bool *needed, const hlo_target *target,
                            hlo_arena *arena, hlo_arena *scratch) {
    const uint32_t ids = module->next_id;
    const size_t most = hlo_product_most(module);
    hlo_costs *costs = hlo_arena_zero(arena, sizeof *costs);
    recorder *w = hlo_arena_zero(scratch, sizeof *w);
    costs->target = target;
    costs->ids = ids;
    costs->entries = hlo_arena_zero(arena, (most + 1) * sizeof *costs->entries);
    costs->entry_of = hlo_arena_zero(arena, ids * sizeof *costs->entry_of);
    costs->kernel = hlo_arena_zero(arena, ids * sizeof *costs->kernel);
    w->needed = needed;
    w->costs = costs;
    w->arena = arena;
    w->scratch = scratch;
    w->entry_count = w->amax_count = 1;
    w->amax_capacity = 16;
    w->amaxes = hlo_arena_array(scratch, w->amax_capacity, sizeof *w->amaxes);
    w->amax_of = hlo_arena_zero(scratch, ids * sizeof *w->amax_of);
    w->amax_reads = hlo_arena_zero(scratch, ids * sizeof *w->amax_reads);
    w->seen = hlo_arena_zero(scratch, ids * sizeof *w->seen);
    w->read_count = hlo_arena_zero(scratch, ids * sizeof *w->read_count);
    w->stored = hlo_arena_zero(scratch, ids * sizeof *w->stored);
    w->written = hlo_arena_zero(scratch, ids * sizeof *w->written);
    w->matmuls = hlo_arena_array(scratch, most, sizeof *w->matmuls);
    for (int any_order = 0; any_order < 2; any_order++) {
        const hlo_instruction **memory = hlo_arena_array(arena, ids, sizeof *memory);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
                const bool same =
                    hlo_op_is(i->op, HLO_RESHAPES) || (any_order && hlo_op_is(i->op, HLO_REORDERS));
                const hlo_instruction *from = i->operand_count ? hlo_instr_operand(i, 0) : NULL;
                if (i->op == HLO_OP_GET_TUPLE_ELEMENT && from->op == HLO_OP_TUPLE)
                    from = hlo_instr_operand(from, (uint32_t)hlo_instr_int(i, HLO_ATTR_INDEX, 0));
                else if (!same)
                    from = i;
                memory[i->id] = from == i ? i : memory[from->id];
            }
        costs->memory[any_order] = memory;
    }
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            hlo_product p;
            if (!w->needed[instr->id] || !is_product(instr) || !hlo_product_read(instr, &p))
                continue;
            const bool dot = instr->op == HLO_OP_DOT;
            w->read_count[memory_of(costs, p.a, dot)->id]++;
            w->read_count[memory_of(costs, p.b, dot)->id]++;
            w->matmuls[w->matmul_count++] = instr;
        }
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const hlo_instruction *value = w->needed[instr->id] ? amax_of(costs, instr) : NULL;
            unsigned steps = MAX_SCALE;
            if (value && is_fused(value) && !w->read_count[value->id] &&
                !is_needed_in_memory(w, value, MAX_TUPLES) &&
                is_awaited(instr, value->shape, &steps))
                w->stored[value->id] = true;
        }
    /* Visit users before operands, so that the amaxes of operands are known when they are
     * visited. */
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev)
        for (const hlo_instruction *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (!w->needed[instr->id]) continue;
            bool kernel = instr->op == HLO_OP_REDUCE ||
                          (is_fused(instr) && is_fused(memory_of(costs, instr, false)) &&
                           (w->read_count[instr->id] || is_needed_in_memory(w, instr, MAX_TUPLES)));
            if (kernel) cost_of_kernel(w, instr);
        }
    for (uint32_t i = 0; i < w->matmul_count; i++) cost_of_matmul(w, w->matmuls[i]);
    return costs;
}

hlo_cost hlo_costs_of(const hlo_costs *costs, const hlo_costs *other, uint32_t id) {
    if (id >= costs->ids) return (hlo_cost){0};
    const entry *found = &costs->entries[costs->entry_of[id]];
    hlo_cost cost = found->self;
    double extra = found->operand_bytes, wide_extra = extra;
    for (const consumer *at = found->consumers; at; at = at->next) {
        double bytes = costs->kernel[at->kernel];
        if (at->kernel < other->ids && other->kernel[at->kernel] == bytes) continue;
        wide_extra += at->share * bytes;
        if (found->joined > 0) {
            cost.bytes += bytes - found->joined;
            cost.seconds = roofline(found->flops, cost.bytes, found->peak, costs->target);
        } else {
            extra += at->share * bytes;
        }
    }
    cost.bytes += extra;
    const double bandwidth = 1e9 * costs->target->memory_gbs;
    if (cost.seconds > 0) cost.seconds += extra / bandwidth;
    if (cost.wide_seconds > 0) cost.wide_seconds += wide_extra / bandwidth;
    return cost;
}

double hlo_costs_in_fp8(const hlo_costs *costs, const hlo_instruction *instr) {
    hlo_matmul m;
    const hlo_target *target = costs->target;
    if (!hlo_product_matmul(instr, &m) || !target->fp8_tflops || instr->id >= costs->ids) return 0;
    bool dot = instr->op == HLO_OP_DOT;
    const hlo_instruction *read[] = {m.a, m.b};
    double bytes = hlo_bytes_of(m.d),
           kernels = costs->entries[costs->entry_of[instr->id]].operand_bytes;
    for (int i = 0; i < 2; i++) {
        const hlo_shape *shape = read[i]->shape;
        double elements = (double)hlo_shape_count(shape);
        if (!hlo_type_is_float(shape->type) || hlo_types[shape->type].bits > 32) return 0;
        bytes += elements;
        if (hlo_type_is_fp8(shape->type)) continue;
        bool made = costs->kernel[memory_of(costs, read[i], dot)->id] > 0;
        kernels += elements + (made ? -1 : 1) * hlo_bytes_of(shape);
    }
    hlo_product p;
    return !hlo_product_read(instr, &p) ? 0
                                        : roofline(p.flops, bytes, target->fp8_tflops, target) +
                                              fmax(kernels, 0) / (1e9 * target->memory_gbs);
}

/* XLA reduces in two kernels, computes the scale in a third and quantizes in a fourth. Another
 * kernel multiplies the two scales of the call. */
enum { QUANTIZE_KERNELS = 4, SCALE_KERNELS = 1 };

double hlo_cost_of_dot(const hlo_instruction *dot, hlo_cost_form form, const hlo_target *target) {
    hlo_product p;
    if (!hlo_product_read(dot, &p)) return 0;
    const bool fp8 = form != HLO_COST_WIDE, after = form == HLO_COST_FP8_SCALED_AFTER;
    const double operands =
        fp8 ? (double)hlo_shape_count(p.a->shape) + (double)hlo_shape_count(p.b->shape)
            : hlo_bytes_of(p.a->shape) + hlo_bytes_of(p.b->shape);
    const double result = hlo_bytes_of(p.d), f32 = 4 * (double)hlo_shape_count(p.d);
    const double seconds =
        roofline(p.flops, operands + (after ? f32 : result),
                 peak_of(p.a->shape->type, p.b->shape->type, fp8, target), target);
    if (seconds == 0) return 0;
    return seconds + HLO_LAUNCH_SECONDS * (1 + (fp8 ? SCALE_KERNELS : 0)) +
           (after ? (f32 + result) / (1e9 * target->memory_gbs) : 0);
}

double hlo_cost_of_quantizing(const hlo_shape *value, bool fixed_scale, const hlo_target *target) {
    const double reads = fixed_scale ? 1 : 2, kernels = fixed_scale ? 1 : QUANTIZE_KERNELS;
    const double bytes = reads * hlo_bytes_of(value) + (double)hlo_shape_count(value);
    return bytes / (1e9 * target->memory_gbs) + kernels * HLO_LAUNCH_SECONDS;
}

static double padded(int64_t size) {
    return (double)(size + HLO_MATMUL_ALIGNMENT - 1 - (size - 1) % HLO_MATMUL_ALIGNMENT);
}

double hlo_cost_gain_of_blocks(hlo_matmul_sizes size, int64_t blocks, double transposed,
                               const hlo_target *target) {
    const double batch = (double)size.batch, m = (double)size.m, n = (double)size.n,
                 k = (double)size.k, operands = batch * (m + n) * k,
                 parts = 4 * batch * (double)blocks * padded(size.m) * padded(size.n),
                 result = 2 * batch * m * n, flops = 2 * batch * m * n * k,
                 speed = 1e9 * target->memory_gbs;
    const double wide = roofline(flops, 2 * operands + result, target->bf16_tflops, target) +
                        3 * operands / speed,
                 fp8 = roofline(flops, operands + parts, target->fp8_tflops, target) +
                       (2 * transposed + parts + result) / speed;
    return target->fp8_tflops && target->bf16_tflops ? wide / fp8 : 0;
}
