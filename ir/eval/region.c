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

/* A step with an array of slots in `choices` copies, for each element, that of slot number in[0],
 * a pred or an index. Other steps run a kernel. */
typedef struct step {
    const hlo_instruction *instr;
    const hlo_kernel *kernel;
    uint32_t in[3], out, choice_count;
    const uint32_t *choices;
} step;

struct hlo_region {
    hlo_call *call;
    hlo_interpreter *interpreter; /* NULL if the region has the following members */
    uint32_t slot_count, step_count, param_count, root_count;
    slot *slots;
    step *steps;
    const uint32_t *roots;
};

typedef struct builder {
    hlo_call *call;
    hlo_region *region;
    const uint32_t **leaves; /* slots of the leaves of each instruction, by instruction id */
} builder;

enum { MAX_DEPTH = 32, MAX_STEPS = 1 << 16, MAX_OPERANDS = 64 };

bool hlo_region_passes_on(const hlo_instruction *instr) {
    return hlo_instr_moves_by(instr, HLO_KEEPS_ORDER | HLO_REPEATS) || hlo_hands_on(instr);
}

const hlo_attr_id hlo_region_attrs[HLO_REGION_ATTRS] = {HLO_ATTR_TO_APPLY, HLO_ATTR_SELECT,
                                                        HLO_ATTR_SCATTER};

/* True if an instruction reinterprets the bits of an element as another type of the same width. */
static bool is_bitcast(const hlo_instruction *instr) {
    return (instr->op == HLO_OP_BITCAST || instr->op == HLO_OP_BITCAST_CONVERT) &&
           hlo_types[instr->shape->type].bits ==
               hlo_types[hlo_instr_operand(instr, 0)->shape->type].bits;
}

static bool has_scalars(const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE)
        return hlo_shape_is_array(shape) && hlo_shape_count(shape) == 1;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (!hlo_shape_is_array(shape->elements[i]) || !has_scalars(shape->elements[i]))
            return false;
    return true;
}

static const char *refusal(const hlo_instruction *instr) {
    if (instr->operand_count > MAX_OPERANDS) return "the applied computation has too many results";
    if (!has_scalars(instr->shape))
        return "the applied computation must compute scalars, but it computes an array";
    if (instr->op == HLO_OP_PARAMETER || instr->op == HLO_OP_TUPLE ||
        instr->op == HLO_OP_GET_TUPLE_ELEMENT || hlo_instr_called(instr) ||
        instr->op == HLO_OP_CONDITIONAL || hlo_region_passes_on(instr))
        return NULL;
    if (instr->op == HLO_OP_CONSTANT) {
        if (instr->shape->type == HLO_TYPE_TUPLE)
            return "the applied computation has a constant tuple";
        return instr->u.literal->data
                   ? NULL
                   : "the value of a constant in the applied computation is elided";
    }
    if (instr->op == HLO_OP_CONVERT || is_bitcast(instr)) return NULL;
    const hlo_kernel *kernel = hlo_kernel_of(instr->op);
    if (kernel && kernel->ops && hlo_kernel_elementwise(instr)) return NULL;
    return "the applied computation has an opcode that is not elementwise";
}

/* Returns why an instruction of `c`, or of a computation that `c` calls, cannot be a step; NULL if
 * all can. Sets *out_blocker if a single instruction is the cause. Adds the number of
 * instructions and leaves to *count. */
static const char *survey(const hlo_computation *c, uint32_t depth, uint32_t *count,
                          const hlo_instruction **out_blocker) {
    if (depth > MAX_DEPTH) return "the applied computation nests calls too deeply";
    if (c->parameter_count > MAX_OPERANDS) return "the applied computation has too many parameters";
    for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i)) {
        const char *why = refusal(i);
        if (why) *out_blocker = i;
        const hlo_computation *inner = hlo_instr_called(i);
        if (!why && inner) why = survey(inner, depth + 1, count, out_blocker);
        for (uint32_t k = 0; !why && (inner = hlo_region_branch(i, k)); k++)
            why = survey(inner, depth + 1, count, out_blocker);
        if (why) return why;
        *count += hlo_shape_leaf_count(i->shape) + 1;
        if (*count > MAX_STEPS) return "the applied computation has too many instructions";
    }
    return NULL;
}

const char *hlo_region_refusal(const hlo_computation *computation) {
    uint32_t count = 0;
    const hlo_instruction *unused;
    if (!computation) return "the applied computation is missing";
    return survey(computation, 0, &count, &unused);
}

const hlo_instruction *hlo_region_blocker(const hlo_instruction *instr) {
    const hlo_instruction *blocker = NULL;
    for (size_t i = 0; i < HLO_REGION_ATTRS && !blocker; i++) {
        const hlo_computation *applied = hlo_instr_comp(instr, hlo_region_attrs[i]);
        if (applied) hlo_interpreter_refusal(applied, &blocker);
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

static step *new_step(builder *b, const hlo_instruction *instr, uint32_t out) {
    step *s = &b->region->steps[b->region->step_count++];
    *s = (step){.instr = instr, .out = out};
    return s;
}

static const uint32_t *append(builder *b, const hlo_computation *c, const uint32_t *const *args);

/* Appends the steps of all branches of a conditional, which have no side effects, and the steps
 * that choose between their results. */
static void append_branches(builder *b, const hlo_instruction *instr, const uint32_t *const *in,
                            uint32_t *own) {
    const uint32_t count = instr->operand_count - 1;
    const uint32_t *branches[MAX_OPERANDS];
    for (uint32_t k = 0; k < count; k++)
        branches[k] = append(b, hlo_region_branch(instr, k), &in[k + 1]);
    for (uint32_t leaf = 0; leaf < hlo_shape_leaf_count(instr->shape); leaf++) {
        uint32_t *choices = hlo_arena_array(b->call->scratch, count, sizeof *choices);
        for (uint32_t k = 0; k < count; k++) choices[k] = branches[k][leaf];
        own[leaf] = new_slot(b, b->region->slots[choices[0]].type, NULL);
        step *s = new_step(b, instr, own[leaf]);
        s->in[0] = in[0][0];
        s->choices = choices;
        s->choice_count = count;
    }
}

/* Appends the steps of `c`; args[i] are the slots of the leaves of parameter i. Returns the slots
 * of the root's leaves. */
static const uint32_t *append(builder *b, const hlo_computation *c, const uint32_t *const *args) {
    for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i)) {
        const uint32_t *in[MAX_OPERANDS] = {NULL};
        uint32_t *own =
            hlo_arena_array(b->call->scratch, hlo_shape_leaf_count(i->shape) + 1, sizeof *own);
        for (uint32_t o = 0; o < i->operand_count; o++)
            in[o] = b->leaves[hlo_instr_operand(i, o)->id];
        b->leaves[i->id] = own;
        if (i->op == HLO_OP_PARAMETER) {
            b->leaves[i->id] = args[i->u.parameter];
        } else if (i->op == HLO_OP_CONSTANT) {
            *own = new_slot(b, i->shape->type, i->u.literal->data);
        } else if (i->op == HLO_OP_TUPLE) {
            for (uint32_t o = 0; o < i->operand_count; o++) own[o] = in[o][0];
        } else if (i->op == HLO_OP_GET_TUPLE_ELEMENT) {
            *own = in[0][hlo_instr_int(i, HLO_ATTR_INDEX, 0)];
        } else if (hlo_region_passes_on(i)) {
            b->leaves[i->id] = in[0];
        } else if (hlo_instr_called(i)) {
            b->leaves[i->id] = append(b, hlo_instr_called(i), in);
        } else if (i->op == HLO_OP_CONDITIONAL) {
            append_branches(b, i, in, own);
        } else {
            *own = new_slot(b, i->shape->type, NULL);
            step *s = new_step(b, i, *own);
            s->kernel = hlo_kernel_of(is_bitcast(i) ? HLO_OP_BITCAST_CONVERT : i->op);
            for (uint32_t o = 0; o < i->operand_count; o++) s->in[o] = in[o][0];
        }
    }
    return b->leaves[c->root->id];
}

hlo_region *hlo_region_new(hlo_call *call, hlo_computation *computation) {
    uint32_t count = 0;
    const hlo_instruction *unused;
    const bool interprets = hlo_region_refusal(computation);
    if (interprets) call->why = hlo_interpreter_refusal(computation, &unused);
    if (call->why) return NULL;
    hlo_region *r = hlo_arena_zero(call->scratch, sizeof *r);
    r->call = call;
    if (interprets) {
        r->param_count = computation->parameter_count;
        r->root_count = hlo_shape_leaf_count(computation->root->shape);
        r->interpreter = hlo_interpreter_new(call, computation);
        return r;
    }
    survey(computation, 0, &count, &unused);
    builder b = {.call = call, .region = r};
    b.leaves = hlo_arena_array(call->scratch, computation->module->next_id, sizeof *b.leaves);
    r->param_count = computation->parameter_count;
    r->root_count = hlo_shape_leaf_count(computation->root->shape);
    r->slots = hlo_arena_array(call->scratch, count + r->param_count, sizeof *r->slots);
    r->steps = hlo_arena_array(call->scratch, count, sizeof *r->steps);
    uint32_t slots[MAX_OPERANDS];
    const uint32_t *args[MAX_OPERANDS];
    for (uint32_t p = 0; p < r->param_count; p++) {
        slots[p] = new_slot(&b, computation->parameters[p]->shape->type, NULL);
        args[p] = &slots[p];
    }
    r->roots = hlo_arena_copy(call->scratch, append(&b, computation, args),
                              r->root_count * sizeof *r->roots);
    return r;
}

/* Copies the chosen elements of a conditional. An index out of range chooses the last branch. */
static void choose(const hlo_region *r, const step *s, int64_t count) {
    const slot *which = &r->slots[s->in[0]], *to = &r->slots[s->out];
    const size_t size = hlo_types[to->type].bytes;
    for (int64_t e = 0; e < count; e++) {
        const char *at =
            (const char *)which->data + e * which->stride * hlo_types[which->type].bytes;
        int64_t k = which->type == HLO_TYPE_PRED ? !*at : *(const int32_t *)at;
        if (k < 0 || k >= s->choice_count) k = s->choice_count - 1;
        const slot *from = &r->slots[s->choices[k]];
        memcpy((char *)to->data + (size_t)e * size,
               (const char *)from->data + (size_t)(e * from->stride) * size, size);
    }
}

void hlo_region_run(const hlo_region *r, int64_t count, char *const *in, const int64_t *in_steps,
                    char *const *out, const int64_t *out_steps) {
    static const hlo_eval_env alone = {0};
    static const int64_t strides[] = {0, 1};
    for (int64_t e = 0; r->interpreter && e < count; e++) {
        char *from[MAX_OPERANDS], *to[MAX_OPERANDS];
        for (uint32_t p = 0; p < r->param_count; p++) from[p] = in[p] + e * in_steps[p];
        for (uint32_t o = 0; o < r->root_count; o++) to[o] = out[o] + e * out_steps[o];
        hlo_interpreter_run(r->interpreter, from, to);
    }
    if (r->interpreter) return;
    for (uint32_t p = 0; p < r->param_count; p++) {
        size_t size = hlo_types[r->slots[p].type].bytes;
        hlo_copy_row(size, in[p], in_steps[p], count, r->slots[p].data, (int64_t)size);
    }
    for (uint32_t i = 0; i < r->step_count; i++) {
        const step *s = &r->steps[i];
        if (s->choices) {
            choose(r, s, count);
            continue;
        }
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
    for (int64_t done = 0, n; done < count && hlo_call_goes_on(a->region->call, HLO_CHUNK);
         done += HLO_CHUNK) {
        n = hlo_chunk_size(count - done);
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

static bool is_parameter(const hlo_instruction *instr, int64_t number) {
    return instr->op == HLO_OP_PARAMETER && instr->u.parameter == number;
}

hlo_op hlo_region_simple(const hlo_computation *c) {
    const hlo_instruction *root = c->root;
    if (c->parameter_count != 2) return HLO_OP_INVALID;
    if (is_parameter(root, 1)) return HLO_OP_PARAMETER;
    if (root->operand_count != 2) return HLO_OP_INVALID;
    const hlo_instruction *a = hlo_instr_operand(root, 0), *b = hlo_instr_operand(root, 1);
    bool straight = is_parameter(a, 0) && is_parameter(b, 1);
    bool crossed = is_parameter(a, 1) && is_parameter(b, 0);
    if (straight || (crossed && hlo_op_is(root->op, HLO_COMMUTES))) return root->op;
    return HLO_OP_INVALID;
}

static const char *refuse_many(const hlo_instruction *instr) {
    return instr->operand_count >= HLO_LOOP_VIEWS ? "it has more than 15 operands" : NULL;
}

static hlo_status run_map(hlo_call *call) {
    hlo_region *region = hlo_region_new(call, hlo_instr_comp(call->instr, HLO_ATTR_TO_APPLY));
    if (!region) return HLO_INVALID_INPUT;
    const hlo_view *views[HLO_LOOP_VIEWS] = {&call->results[0]};
    for (uint32_t i = 0; i < call->operand_count; i++) views[i + 1] = &call->operands[i];
    applying a = {region, 1, 1 + call->operand_count};
    hlo_views_run(NULL, a.views, views, apply_row, &a);
    return HLO_OK;
}
const hlo_kernel hlo_eval_map = {.run = run_map, .error = HLO_ERROR_MOVED, .refuse = refuse_many};
