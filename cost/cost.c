/* Costs: every kernel is found once, and entered with the matmuls that it belongs to. */
#include "cost/cost.h"

#include <math.h>
#include <string.h>

#include "matmul/product.h"

/* Instructions that one kernel may hold; what lies further back is taken to be in memory. Keeps the
 * whole linear. */
enum { KERNEL_MOST = 512, OWNERS_MOST = 8 };

/* A kernel that reads a result of a matmul. */
typedef struct reader {
    struct reader *next;
    uint32_t kernel; /* the id of what it writes */
    double share;    /* of its bytes */
} reader;

typedef struct weight {
    hlo_cost self; /* alone */
    double before; /* bytes of the kernels that make the operands */
    reader *behind;
} weight;

/* By instruction id only what is small: most instructions are no matmuls. */
struct hlo_costs {
    const hlo_target_info *target;
    uint32_t ids;
    weight *weights;     /* of matmuls; the first one is nobody's, and zero */
    uint32_t *weight_of; /* by id: the number of its weight; 0: it has none */
    double *kernel;      /* by id of what kernels write: their bytes; 0: no kernel */
};

typedef struct weighing {
    const hlo_module *module;
    const bool *needed;
    hlo_costs *costs;
    hlo_arena *arena;
    uint32_t weight_count, matmul_count;
    const hlo_instr **matmuls; /* those that run and can be read */
    uint32_t *seen;            /* by id: the last walk that came by */
    uint32_t walk;
    uint32_t *readers; /* by id: how often matmuls read it */
    const hlo_instr *stack[KERNEL_MOST];
    uint32_t depth, visited;
    double bytes; /* of the walk's sources */
    const hlo_instr *owners[OWNERS_MOST];
    uint32_t owner_count;
} weighing;

static double bytes_of(const hlo_shape *shape) {
    int64_t bytes = hlo_shape_bytes(shape);
    return bytes < 0 ? 0 : (double)bytes;
}

static bool is_product(const hlo_instr *instr) {
    return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
}

static bool is_fused(const hlo_instr *instr) {
    return hlo_op_is(instr->op, HLO_ELEMENTWISE | HLO_MOVEMENT) ||
           instr->op == HLO_OP_CONCATENATE || instr->op == HLO_OP_IOTA;
}

/* The value whose memory this is: nothing is moved by reshaping. */
static const hlo_instr *memory_of(const hlo_instr *instr) {
    while (hlo_op_is(instr->op, HLO_RESHAPES)) instr = hlo_instr_operand(instr, 0);
    return instr;
}

/* What a matmul has to find in memory for this operand. */
static const hlo_instr *operand_memory(const hlo_instr *operand, bool any_order) {
    const hlo_instr *at = memory_of(operand);
    while (any_order && hlo_op_is(at->op, HLO_REORDERS)) at = memory_of(hlo_instr_operand(at, 0));
    return at;
}

/* -------------------------------------------------------------------------------------- kernels */

static void note_source(weighing *w, const hlo_instr *source, double bytes) {
    const hlo_instr *maker =
        source->op == HLO_OP_GET_TUPLE_ELEMENT ? hlo_instr_operand(source, 0) : source;
    w->bytes += bytes;
    if (!is_product(maker)) return;
    for (uint32_t i = 0; i < w->owner_count; i++)
        if (w->owners[i] == maker) return;
    if (w->owner_count < OWNERS_MOST) w->owners[w->owner_count++] = maker;
}

static void push(weighing *w, const hlo_instr *instr) {
    instr = memory_of(instr);
    if (w->seen[instr->id] == w->walk) return;
    w->seen[instr->id] = w->walk;
    const hlo_instr *whole =
        hlo_op_is(instr->op, HLO_TAKES_PART) ? memory_of(hlo_instr_operand(instr, 0)) : NULL;
    bool full = w->visited == KERNEL_MOST;
    if (whole && !is_fused(whole))
        note_source(w, whole, bytes_of(instr->shape));
    else if (!is_fused(instr) || full)
        note_source(w, instr, bytes_of(instr->shape));
    else
        w->stack[w->depth++] = instr, w->visited++;
}

/* The sources of a kernel that computes the first `count` operands of `instr`. */
static void walk_operands(weighing *w, const hlo_instr *instr, uint32_t count) {
    w->walk++;
    w->depth = w->visited = w->owner_count = 0;
    w->bytes = 0;
    for (uint32_t i = 0; i < count; i++) push(w, hlo_instr_operand(instr, i));
    while (w->depth) {
        const hlo_instr *at = w->stack[--w->depth];
        for (uint32_t i = 0; i < at->operand_count; i++) push(w, hlo_instr_operand(at, i));
    }
}

/* Made when it is first asked for. */
static weight *weight_of(weighing *w, const hlo_instr *matmul) {
    uint32_t *number = &w->costs->weight_of[matmul->id];
    if (!*number) *number = w->weight_count++;
    return &w->costs->weights[*number];
}

/* Enters the kernel that writes `instr`. */
static void cost_of_kernel(weighing *w, const hlo_instr *instr) {
    hlo_costs *costs = w->costs;
    const hlo_instr *whole =
        hlo_op_is(instr->op, HLO_TAKES_PART) ? memory_of(hlo_instr_operand(instr, 0)) : NULL;
    walk_operands(w, instr,
                  instr->op == HLO_OP_REDUCE  ? instr->operand_count / 2
                  : whole && !is_fused(whole) ? 0
                                              : instr->operand_count);
    if (whole && !is_fused(whole)) note_source(w, whole, bytes_of(instr->shape));
    costs->kernel[instr->id] = w->bytes + bytes_of(instr->shape);
    if (w->readers[instr->id]) return;
    for (uint32_t i = 0; i < w->owner_count; i++) {
        reader *made = hlo_arena_alloc(w->arena, sizeof *made);
        reader **list = &weight_of(w, w->owners[i])->behind;
        *made = (reader){*list, instr->id, 1.0 / w->owner_count};
        *list = made;
    }
}

/* Whether something besides kernels and matmuls wants the value in memory. */
static bool is_wanted(const weighing *w, const hlo_instr *instr) {
    if (instr->parent->root == instr) return true;
    for (const hlo_use *use = instr->uses; use; use = use->next) {
        const hlo_instr *user = use->user;
        if (w->needed[user->id] && !is_fused(user) && !is_product(user) &&
            user->op != HLO_OP_REDUCE)
            return true;
    }
    return false;
}

/* -------------------------------------------------------------------------------------- matmuls */

/* In 10^12 FLOP/s; 0: not known. */
static double peak_of(hlo_type a, hlo_type b, bool fp8, const hlo_target_info *target) {
    int bits = hlo_types[a].bits > hlo_types[b].bits ? hlo_types[a].bits : hlo_types[b].bits;
    if (!hlo_type_is_float(a) || !hlo_type_is_float(b) || bits > 32) return 0;
    if (fp8) return target->fp8_tflops;
    return bits == 32 ? target->bf16_tflops / 2.0 : target->bf16_tflops;
}

static double roofline(double flops, double bytes, double peak, const hlo_target_info *target) {
    return peak == 0 ? 0 : fmax(flops / (1e12 * peak), bytes / (1e9 * target->memory_gbs));
}

static double bytes_of_matmul(const hlo_matmul *m) {
    const hlo_instr *read[] = {m->a,       m->b,       m->c,       m->bias,
                               m->a_scale, m->b_scale, m->c_scale, m->d_scale};
    double bytes = bytes_of(m->d) + (m->aux ? bytes_of(m->aux) : 0);
    for (size_t i = 0; i < sizeof read / sizeof *read; i++)
        if (read[i]) bytes += bytes_of(read[i]->shape);
    return bytes;
}

/* Of results in a tuple, bytes are workspace. */
static double bytes_of_results(const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) return bytes_of(shape);
    double bytes = 0;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const hlo_type type = shape->elements[i]->type;
        if (type != HLO_TYPE_S8 && type != HLO_TYPE_U8) bytes += bytes_of(shape->elements[i]);
    }
    return bytes;
}

static hlo_cost cost_alone(const hlo_instr *instr, const hlo_product *p,
                           const hlo_target_info *target) {
    hlo_matmul m;
    double bytes, peak = peak_of(p->a->shape->type, p->b->shape->type, p->fp8, target);
    if (hlo_product_matmul(instr, &m)) {
        bytes = bytes_of_matmul(&m);
    } else {
        bytes = bytes_of_results(instr->shape);
        for (uint32_t i = 0; i < instr->operand_count; i++)
            bytes += bytes_of(hlo_instr_operand(instr, i)->shape);
    }
    return (hlo_cost){bytes, roofline(p->flops, bytes, peak, target)};
}

static void visit_matmul(weighing *w, const hlo_instr *instr) {
    hlo_product p;
    if (!is_product(instr) || !hlo_product_read(instr, &p)) return;
    bool dot = instr->op == HLO_OP_DOT;
    const hlo_instr *read[] = {operand_memory(p.a, dot), operand_memory(p.b, dot)};
    for (int i = 0; i < 2; i++) w->readers[read[i]->id]++;
    w->matmuls[w->matmul_count++] = instr;
}

static void cost_of_matmul(weighing *w, const hlo_instr *instr) {
    hlo_product p;
    hlo_costs *costs = w->costs;
    if (!hlo_product_read(instr, &p)) return;
    bool dot = instr->op == HLO_OP_DOT;
    const hlo_instr *read[] = {operand_memory(p.a, dot), operand_memory(p.b, dot)};
    weight *made = weight_of(w, instr);
    made->self = cost_alone(instr, &p, costs->target);
    for (int i = 0; i < 2; i++)
        made->before += costs->kernel[read[i]->id] / w->readers[read[i]->id];
}

static void visit_kernel(weighing *w, const hlo_instr *instr) {
    bool kernel = instr->op == HLO_OP_REDUCE || (is_fused(instr) && is_fused(memory_of(instr)) &&
                                                 (w->readers[instr->id] || is_wanted(w, instr)));
    if (kernel) cost_of_kernel(w, instr);
}

/* Backwards: by the time that an instruction is looked at, the matmuls that read it are known. */
static void visit_needed(weighing *w) {
    for (const hlo_computation *comp = w->module->last; comp; comp = comp->prev)
        for (const hlo_instr *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (!w->needed[instr->id]) continue;
            visit_matmul(w, instr);
            visit_kernel(w, instr);
        }
}

hlo_costs *hlo_costs_record(const hlo_module *module, const bool *needed,
                            const hlo_target_info *target, hlo_arena *arena, hlo_arena *scratch) {
    const uint32_t ids = module->next_id;
    const size_t most = hlo_product_most(module);
    hlo_costs *costs = hlo_arena_zero(arena, sizeof *costs);
    weighing *w = hlo_arena_zero(scratch, sizeof *w);
    costs->target = target;
    costs->ids = ids;
    costs->weights = hlo_arena_zero(arena, (most + 1) * sizeof *costs->weights);
    costs->weight_of = hlo_arena_zero(arena, ids * sizeof *costs->weight_of);
    costs->kernel = hlo_arena_zero(arena, ids * sizeof *costs->kernel);
    w->module = module;
    w->needed = needed;
    w->costs = costs;
    w->arena = arena;
    w->weight_count = 1;
    w->seen = hlo_arena_zero(scratch, ids * sizeof *w->seen);
    w->readers = hlo_arena_zero(scratch, ids * sizeof *w->readers);
    w->matmuls = hlo_arena_array(scratch, most, sizeof *w->matmuls);
    visit_needed(w);
    for (uint32_t i = 0; i < w->matmul_count; i++) cost_of_matmul(w, w->matmuls[i]);
    return costs;
}

hlo_cost hlo_costs_of(const hlo_costs *costs, const hlo_costs *other, uint32_t id) {
    if (id >= costs->ids) return (hlo_cost){0};
    const weight *found = &costs->weights[costs->weight_of[id]];
    hlo_cost cost = found->self;
    double around = found->before;
    for (const reader *at = found->behind; at; at = at->next) {
        double bytes = costs->kernel[at->kernel];
        if (at->kernel >= other->ids || other->kernel[at->kernel] != bytes)
            around += at->share * bytes;
    }
    cost.bytes += around;
    if (cost.seconds > 0) cost.seconds += around / (1e9 * costs->target->memory_gbs);
    return cost;
}

double hlo_costs_in_fp8(const hlo_costs *costs, const hlo_instr *instr) {
    hlo_matmul m;
    const hlo_target_info *target = costs->target;
    if (!hlo_product_matmul(instr, &m) || !target->fp8_tflops || instr->id >= costs->ids) return 0;
    bool dot = instr->op == HLO_OP_DOT;
    const hlo_instr *read[] = {m.a, m.b};
    double bytes = bytes_of(m.d), kernels = costs->weights[costs->weight_of[instr->id]].before;
    for (int i = 0; i < 2; i++) {
        const hlo_shape *shape = read[i]->shape;
        double elements = (double)hlo_shape_count(shape);
        if (!hlo_type_is_float(shape->type) || hlo_types[shape->type].bits > 32) return 0;
        bytes += elements;
        if (hlo_type_is_fp8(shape->type)) continue;
        bool made = costs->kernel[operand_memory(read[i], dot)->id] > 0;
        kernels += elements + (made ? -1 : 1) * bytes_of(shape);
    }
    hlo_product p;
    return !hlo_product_read(instr, &p) ? 0
                                        : roofline(p.flops, bytes, target->fp8_tflops, target) +
                                              fmax(kernels, 0) / (1e9 * target->memory_gbs);
}
