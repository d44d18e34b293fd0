/* SPDX-License-Identifier: Apache-2.0 */
/* Runs computations on scalars for a chunk of elements at a time.
 *
 * Every value of the region has a slot: a chunk of its elements, or one constant element that is
 * repeated. A step applies an elementwise kernel to slots and writes a slot. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/module/known.h"

typedef struct slot {
    hlo_type type;
    int64_t stride; /* stride in elements: 0 for a constant */
    void *data;
} slot;

typedef struct step {
    const hlo_instr *instr;
    const hlo_kernel *kernel;
    uint32_t in[3], out;
} step;

struct hlo_region {
    uint32_t slot_count, step_count, param_count, root_count;
    slot *slots;
    step *steps;
    uint32_t *roots;
};

typedef struct builder {
    hlo_call *call;
    hlo_region *region;
    uint32_t *slot_of; /* number of each instruction's slot, by instruction id */
} builder;

enum { MAX_DEPTH = 32, MAX_STEPS = 1 << 16, MAX_OPERANDS = 64 };

bool hlo_region_passes_on(const hlo_instr *instr) {
    return hlo_instr_moves_by(instr, HLO_KEEPS_ORDER | HLO_REPEATS);
}

const hlo_attr_id hlo_region_attrs[HLO_REGION_ATTRS] = {HLO_ATTR_TO_APPLY, HLO_ATTR_SELECT,
                                                        HLO_ATTR_SCATTER};

/* True if an instruction reinterprets the bits of an element as another type of the same width. */
static bool is_bitcast(const hlo_instr *instr) {
    return (instr->op == HLO_OP_BITCAST || instr->op == HLO_OP_BITCAST_CONVERT) &&
           hlo_types[instr->shape->type].bits ==
               hlo_types[hlo_instr_operand(instr, 0)->shape->type].bits;
}

static const char *refusal(const hlo_instr *instr) {
    if (instr->operand_count > MAX_OPERANDS) return "the applied computation has too many results";
    bool root_tuple = instr->op == HLO_OP_TUPLE && instr->parent->root == instr;
    if (!root_tuple && (!hlo_shape_is_array(instr->shape) || hlo_shape_count(instr->shape) != 1))
        return "the applied computation must compute scalars, but it computes an array";
    if (instr->op == HLO_OP_PARAMETER || root_tuple || hlo_region_passes_on(instr)) return NULL;
    if (instr->op == HLO_OP_CONSTANT)
        return instr->u.literal->data
                   ? NULL
                   : "the value of a constant in the applied computation is elided";
    const hlo_computation *inner = hlo_instr_called(instr);
    if (inner)
        return inner->root->op == HLO_OP_TUPLE
                   ? "a nested call in the applied computation returns a tuple"
                   : NULL;
    if (instr->op == HLO_OP_CONVERT || is_bitcast(instr)) return NULL;
    const hlo_kernel *kernel = hlo_kernel_of(instr->op);
    if (kernel && kernel->ops && hlo_kernel_elementwise(instr)) return NULL;
    return "the applied computation has an opcode that is not elementwise";
}

/* Returns why an instruction of `c`, or of a computation that `c` calls, cannot be a step; NULL if
 * all can. Sets *out_blocker if a single instruction is the cause. Adds the number of instructions
 * to *count. */
static const char *survey(const hlo_computation *c, uint32_t depth, uint32_t *count,
                          const hlo_instr **out_blocker) {
    if (depth > MAX_DEPTH) return "the applied computation nests calls too deeply";
    if (c->parameter_count > MAX_OPERANDS) return "the applied computation has too many parameters";
    for (const hlo_instr *i = c->first; i; i = hlo_instr_next(i)) {
        const char *why = refusal(i);
        if (why) *out_blocker = i;
        if (!why && hlo_instr_called(i))
            why = survey(hlo_instr_called(i), depth + 1, count, out_blocker);
        if (why) return why;
        if (++*count > MAX_STEPS) return "the applied computation has too many instructions";
    }
    return NULL;
}

const char *hlo_region_refusal(const hlo_computation *computation) {
    uint32_t count = 0;
    const hlo_instr *unused;
    if (!computation) return "the applied computation is missing";
    return survey(computation, 0, &count, &unused);
}

const hlo_instr *hlo_region_blocker(const hlo_instr *instr) {
    const hlo_instr *blocker = NULL;
    for (size_t i = 0; i < HLO_REGION_ATTRS && !blocker; i++) {
        const hlo_computation *applied = hlo_instr_comp(instr, hlo_region_attrs[i]);
        uint32_t count = 0;
        if (applied) survey(applied, 0, &count, &blocker);
    }
    return blocker;
}

static uint32_t new_slot(builder *b, hlo_type type, void *constant) {
    slot *s = &b->region->slots[b->region->slot_count];
    size_t size = hlo_types[type].bytes;
    *s = (slot){type, constant ? 0 : 1, constant};
    if (!constant) s->data = hlo_arena_array(b->call->scratch, HLO_CHUNK, size);
    return b->region->slot_count++;
}

/* Appends the steps of `c`; `args` are the slots of its parameters. Returns the root's slot. For a
 * tuple, writes the slots of its leaves to b->region->roots. */
static uint32_t append(builder *b, const hlo_computation *c, const uint32_t *args) {
    hlo_region *r = b->region;
    for (const hlo_instr *i = c->first; i; i = hlo_instr_next(i)) {
        uint32_t in[MAX_OPERANDS] = {0}, *own = &b->slot_of[i->id];
        for (uint32_t o = 0; o < i->operand_count; o++)
            in[o] = b->slot_of[hlo_instr_operand(i, o)->id];
        if (i->op == HLO_OP_PARAMETER) {
            *own = args[i->u.parameter];
        } else if (i->op == HLO_OP_CONSTANT) {
            *own = new_slot(b, i->shape->type, i->u.literal->data);
        } else if (i->op == HLO_OP_TUPLE) {
            memcpy(r->roots, in, i->operand_count * sizeof in[0]);
        } else if (hlo_region_passes_on(i)) {
            *own = in[0];
        } else if (hlo_instr_called(i)) {
            *own = append(b, hlo_instr_called(i), in);
        } else {
            *own = new_slot(b, i->shape->type, NULL);
            step *s = &r->steps[r->step_count++];
            *s = (step){.instr = i,
                        .kernel = hlo_kernel_of(is_bitcast(i) ? HLO_OP_BITCAST_CONVERT : i->op),
                        .out = *own};
            memcpy(s->in, in, sizeof s->in);
        }
    }
    return b->slot_of[c->root->id];
}

hlo_region *hlo_region_new(hlo_call *call, hlo_computation *computation) {
    uint32_t count = 0;
    const hlo_instr *unused;
    call->why = hlo_region_refusal(computation);
    if (call->why) return NULL;
    survey(computation, 0, &count, &unused);
    hlo_region *r = hlo_arena_zero(call->scratch, sizeof *r);
    builder b = {.call = call, .region = r};
    b.slot_of = hlo_arena_array(call->scratch, computation->module->next_id, sizeof *b.slot_of);
    bool tuple = computation->root->op == HLO_OP_TUPLE;
    r->param_count = computation->parameter_count;
    r->root_count = tuple ? computation->root->operand_count : 1;
    r->slots = hlo_arena_array(call->scratch, count + r->param_count, sizeof *r->slots);
    r->steps = hlo_arena_array(call->scratch, count, sizeof *r->steps);
    r->roots = hlo_arena_array(call->scratch, r->root_count, sizeof *r->roots);
    uint32_t args[MAX_OPERANDS];
    for (uint32_t p = 0; p < r->param_count; p++)
        args[p] = new_slot(&b, computation->parameters[p]->shape->type, NULL);
    uint32_t root = append(&b, computation, args);
    if (!tuple) r->roots[0] = root;
    return r;
}

void hlo_region_run(const hlo_region *r, int64_t count, char *const *in, const int64_t *in_steps,
                    char *const *out, const int64_t *out_steps) {
    static const hlo_eval_env alone = {0};
    static const int64_t strides[] = {0, 1};
    for (uint32_t p = 0; p < r->param_count; p++) {
        size_t size = hlo_types[r->slots[p].type].bytes;
        hlo_copy_row(size, in[p], in_steps[p], count, r->slots[p].data, (int64_t)size);
    }
    for (uint32_t i = 0; i < r->step_count; i++) {
        const step *s = &r->steps[i];
        hlo_view views[4];
        for (uint32_t v = 0; v < 4; v++) {
            const slot *value = &r->slots[v ? s->in[v - 1] : s->out];
            views[v] = (hlo_view){value->type, 1, &count, &strides[value->stride], value->data};
        }
        hlo_call call = {.env = &alone,
                         .instr = s->instr,
                         .operands = views + 1,
                         .operand_count = s->instr->operand_count,
                         .results = views,
                         .result_count = 1};
        s->kernel->run(&call);
    }
    for (uint32_t o = 0; o < r->root_count; o++) {
        const slot *value = &r->slots[r->roots[o]];
        size_t size = hlo_types[value->type].bytes;
        hlo_copy_row(size, value->data, value->stride * (int64_t)size, count, out[o], out_steps[o]);
    }
}

typedef struct applying {
    const hlo_region *region;
    uint32_t first, views; /* first input; number of inputs and results */
} applying;

static void apply_row(void *arg, int64_t count, char *const *data, const int64_t *steps) {
    const applying *a = arg;
    char *at[HLO_LOOP_VIEWS];
    for (int64_t done = 0; done < count; done += HLO_CHUNK) {
        int64_t n = hlo_chunk_size(count - done);
        for (uint32_t v = 0; v < a->views; v++) at[v] = data[v] + done * steps[v];
        hlo_region_run(a->region, n, at + a->first, steps + a->first, at, steps);
    }
}

void hlo_region_apply(const hlo_region *region, uint32_t arrays, const hlo_view *acc,
                      const hlo_view *x) {
    const hlo_view *views[HLO_LOOP_VIEWS];
    for (uint32_t i = 0; i < arrays; i++) {
        views[i] = &acc[i];
        views[arrays + i] = &x[i];
    }
    applying a = {region, 0, 2 * arrays};
    hlo_views_run(NULL, a.views, views, apply_row, &a);
}

static bool is_parameter(const hlo_instr *instr, int64_t number) {
    return instr->op == HLO_OP_PARAMETER && instr->u.parameter == number;
}

hlo_op hlo_region_simple(const hlo_computation *c) {
    const hlo_instr *root = c->root;
    if (c->parameter_count != 2) return HLO_OP_INVALID;
    if (is_parameter(root, 1)) return HLO_OP_PARAMETER;
    if (root->operand_count != 2) return HLO_OP_INVALID;
    const hlo_instr *a = hlo_instr_operand(root, 0), *b = hlo_instr_operand(root, 1);
    bool straight = is_parameter(a, 0) && is_parameter(b, 1);
    bool crossed = is_parameter(a, 1) && is_parameter(b, 0);
    if (straight || (crossed && hlo_op_is(root->op, HLO_COMMUTES))) return root->op;
    return HLO_OP_INVALID;
}

static hlo_status run_map(hlo_call *call) {
    if (call->operand_count >= HLO_LOOP_VIEWS) return hlo_call_refuse(call, "too many operands");
    hlo_region *region = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY));
    if (!region) return HLO_INVALID_INPUT;
    const hlo_view *views[HLO_LOOP_VIEWS] = {&call->results[0]};
    for (uint32_t i = 0; i < call->operand_count; i++) views[i + 1] = &call->operands[i];
    applying a = {region, 1, 1 + call->operand_count};
    hlo_views_run(NULL, a.views, views, apply_row, &a);
    return HLO_OK;
}
const hlo_kernel hlo_eval_map = {.run = run_map, .error = HLO_ERROR_MOVED};
