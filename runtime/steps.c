/* From a computation to steps and slots, and how long each slot is needed. */
#include <string.h>

#include "runtime/plan.h"

/* The slots of one instruction's leaves. */
typedef struct value {
    uint32_t *slots;
    uint32_t count;
} value;

/* What building one computation needs. */
typedef struct builder {
    hlo_plan *plan;
    plan_comp *comp;
    const hlo_diag_sink *sink;
    value *values;   /* by place in the computation */
    uint32_t *place; /* of an instruction, by id - first_id */
    uint32_t first_id;
    bool *live;
    bool failed;
} builder;

static void refuse(builder *b, const hlo_instr *instr, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void refuse(builder *b, const hlo_instr *instr, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(b->plan->module, b->sink, HLO_ERROR, instr->offset, strlen(instr->name), format,
                   args);
    va_end(args);
    b->failed = true;
}

static value *value_of(const builder *b, const hlo_instr *instr) {
    return &b->values[b->place[instr->id - b->first_id]];
}

/* ---------------------------------------------------------------------------------------- leaves
 */

static uint32_t leaf_count(const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) return hlo_types[shape->type].bytes != 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) count += leaf_count(shape->elements[i]);
    return count;
}

/* Writes the leaf shapes to *out and moves it behind them. */
static void leaf_shapes(const hlo_shape *shape, const hlo_shape ***out) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) leaf_shapes(shape->elements[i], out);
    } else if (hlo_types[shape->type].bytes) {
        *(*out)++ = shape;
    }
}

static const hlo_shape **leaves_of(const builder *b, const hlo_shape *shape, uint32_t *out_count) {
    *out_count = leaf_count(shape);
    const hlo_shape **shapes = hlo_arena_array(b->plan->arena, *out_count, sizeof *shapes);
    const hlo_shape **end = shapes;
    leaf_shapes(shape, &end);
    return shapes;
}

static uint32_t new_slot(builder *b, plan_slot_kind kind, const hlo_shape *shape) {
    plan_comp *comp = b->comp;
    if (comp->slot_count == comp->slot_capacity) {
        comp->slot_capacity = comp->slot_capacity ? comp->slot_capacity * 2 : 16;
        plan_slot *slots = hlo_arena_array(b->plan->arena, comp->slot_capacity, sizeof *slots);
        if (comp->slot_count) memcpy(slots, comp->slots, comp->slot_count * sizeof *slots);
        comp->slots = slots;
    }
    plan_slot *slot = &comp->slots[comp->slot_count];
    *slot = (plan_slot){.kind = kind, .type = HLO_TYPE_INVALID};
    if (shape) {
        slot->type = shape->type;
        slot->size = (size_t)hlo_shape_bytes(shape);
        if (b->plan->options.bounds && hlo_type_is_float(shape->type))
            slot->bound_size = slot->size / hlo_types[shape->type].bytes * sizeof(float);
    }
    return comp->slot_count++;
}

static uint32_t new_work(builder *b, size_t size) {
    uint32_t slot = new_slot(b, SLOT_BUFFER, NULL);
    b->comp->slots[slot].size = size;
    return slot;
}

static value new_value(const builder *b, uint32_t count) {
    return (value){hlo_arena_array(b->plan->arena, count, sizeof(uint32_t)), count};
}

/* A new slot for every leaf of the shape. */
static value new_slots(builder *b, plan_slot_kind kind, const hlo_shape *shape) {
    uint32_t count;
    const hlo_shape **shapes = leaves_of(b, shape, &count);
    value v = new_value(b, count);
    for (uint32_t i = 0; i < count; i++) v.slots[i] = new_slot(b, kind, shapes[i]);
    return v;
}

/* The leaves of all operands in order. */
static value operand_slots(const builder *b, const hlo_instr *instr, uint32_t first) {
    uint32_t count = 0;
    for (uint32_t i = first; i < instr->operand_count; i++)
        count += value_of(b, hlo_instr_operand(instr, i))->count;
    value v = new_value(b, count);
    uint32_t at = 0;
    for (uint32_t i = first; i < instr->operand_count; i++) {
        const value *operand = value_of(b, hlo_instr_operand(instr, i));
        memcpy(v.slots + at, operand->slots, operand->count * sizeof *v.slots);
        at += operand->count;
    }
    return v;
}

/* -------------------------------------------------------------------------------------- plumbing
 */

/* Same elements in the same order in memory. */
static bool same_memory(const hlo_shape *a, const hlo_shape *b) {
    if (a->type != b->type || hlo_shape_count(a) != hlo_shape_count(b)) return false;
    if (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b)) return true;
    if (!hlo_shape_same_dims(a, b)) return false;
    const int64_t *p = a->layout ? a->layout->minor_to_major : NULL;
    const int64_t *q = b->layout ? b->layout->minor_to_major : NULL;
    return p && q && memcmp(p, q, a->rank * sizeof *p) == 0;
}

static bool is_single_device(const hlo_module *module) {
    for (uint32_t i = 0; i < module->attr_count; i++) {
        const hlo_attr *attr = &module->attrs[i];
        if ((attr->id == HLO_ATTR_NUM_PARTITIONS || attr->id == HLO_ATTR_REPLICA_COUNT) &&
            attr->u.i > 1)
            return false;
    }
    return true;
}

/* Whether the instruction's value is its first operand's, as it is in memory. */
static bool is_alias(const builder *b, const hlo_instr *instr) {
    switch (instr->op) {
    case HLO_OP_OPT_BARRIER:
    case HLO_OP_DOMAIN:
    case HLO_OP_ADD_DEPENDENCY: return true;
    case HLO_OP_BITCAST: {
        const hlo_shape *from = hlo_instr_operand(instr, 0)->shape;
        return from->type == instr->shape->type || !b->plan->options.bounds;
    }
    case HLO_OP_COPY:
    case HLO_OP_RESHAPE: return same_memory(instr->shape, hlo_instr_operand(instr, 0)->shape);
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_REDUCE_SCATTER:
    case HLO_OP_ALL_TO_ALL:
    case HLO_OP_COLLECTIVE_BROADCAST: return is_single_device(b->plan->module);
    default: return false;
    }
}

static value element_of(const builder *b, const hlo_instr *instr) {
    const hlo_instr *tuple = hlo_instr_operand(instr, 0);
    uint32_t index = (uint32_t)hlo_instr_int(instr, HLO_ATTR_INDEX, 0), start = 0;
    for (uint32_t i = 0; i < index; i++) start += leaf_count(tuple->shape->elements[i]);
    return (value){value_of(b, tuple)->slots + start, leaf_count(instr->shape)};
}

static value constant_value(builder *b, const hlo_instr *instr, const hlo_literal *literal) {
    const hlo_shape *shape = literal->shape;
    if (shape->type == HLO_TYPE_TUPLE) {
        value v = new_value(b, leaf_count(shape));
        uint32_t at = 0;
        for (uint32_t i = 0; i < shape->rank; i++) {
            value part = constant_value(b, instr, literal->elements[i]);
            memcpy(v.slots + at, part.slots, part.count * sizeof *v.slots);
            at += part.count;
        }
        return v;
    }
    value v = new_slots(b, SLOT_CONSTANT, shape);
    if (!v.count) return v;
    if (literal->elided) {
        refuse(b, instr, "the values of this constant are elided");
        return v;
    }
    plan_slot *slot = &b->comp->slots[v.slots[0]];
    const void *bytes = literal->data;
    if (!hlo_shape_is_row_major(shape)) {
        void *physical = hlo_arena_alloc(b->plan->arena, slot->size);
        plan_to_physical(shape, hlo_types[shape->type].bytes, physical, literal->data);
        bytes = physical;
    }
    slot->place.data = (void *)b->plan->backend->import(b->plan->device, bytes, slot->size);
    if (!slot->place.data && slot->size) refuse(b, instr, "no memory for this constant");
    return v;
}

static value parameter_value(builder *b, const hlo_instr *instr) {
    uint32_t index = 0;
    for (int64_t p = 0; p < instr->u.parameter; p++)
        index += leaf_count(b->comp->comp->parameters[p]->shape);
    value v = new_slots(b, SLOT_ARGUMENT, instr->shape);
    for (uint32_t i = 0; i < v.count; i++) b->comp->slots[v.slots[i]].index = index + i;
    return v;
}

/* ----------------------------------------------------------------------------------------- steps
 */

static plan_step *new_step(builder *b, plan_step_kind kind, const hlo_instr *instr, value operands,
                           value results) {
    plan_step *step = &b->comp->steps[b->comp->step_count++];
    *step = (plan_step){.kind = kind,
                        .instr = instr,
                        .operand_count = operands.count,
                        .result_count = results.count,
                        .operands = operands.slots,
                        .results = results.slots,
                        .work = PLAN_NONE,
                        .predicate = PLAN_NONE};
    return step;
}

static void lend_places(const builder *b, plan_step *step) {
    hlo_arena *arena = b->plan->arena;
    step->arguments = hlo_arena_zero(arena, (step->operand_count + 1) * sizeof *step->arguments);
    step->lent = hlo_arena_zero(arena, (step->result_count + 1) * sizeof *step->lent);
}

static void call_comps(builder *b, plan_step *step, uint32_t count,
                       hlo_computation *const *called) {
    size_t frame = 0;
    step->called = hlo_arena_array(b->plan->arena, count, sizeof(plan_comp *));
    step->called_count = count;
    for (uint32_t i = 0; i < count; i++) {
        step->called[i] = b->plan->comps[called[i]->id];
        if (step->called[i]->frame_size > frame) frame = step->called[i]->frame_size;
    }
    lend_places(b, step);
    step->work = new_work(b, frame);
}

/* A call's results: what the callee only hands on stays what it is here. */
static value call_value(builder *b, const hlo_instr *instr, hlo_computation *called) {
    const plan_comp *callee = b->plan->comps[called->id];
    value operands = operand_slots(b, instr, 0);
    value v = new_slots(b, SLOT_BUFFER, instr->shape);
    value own = new_value(b, v.count);
    for (uint32_t i = 0; i < v.count; i++) {
        own.slots[i] = PLAN_NONE;
        const plan_slot *slot = &callee->slots[callee->results[i]];
        if (plan_makes_result(callee, i))
            own.slots[i] = v.slots[i];
        else if (slot->kind == SLOT_ARGUMENT)
            v.slots[i] = operands.slots[slot->index];
        else if (slot->kind == SLOT_RESULT)
            v.slots[i] = v.slots[slot->index];
        else
            b->comp->slots[v.slots[i]] = *slot;
    }
    call_comps(b, new_step(b, STEP_CALL, instr, operands, own), 1, &called);
    return v;
}

/* A loop's state: what the body only hands on is not touched; the rest is held twice, as the body
 * reads one while it writes the other. */
static value while_value(builder *b, const hlo_instr *instr) {
    hlo_computation *called[] = {hlo_instr_comp(instr, HLO_ATTR_CONDITION),
                                 hlo_instr_comp(instr, HLO_ATTR_BODY)};
    const plan_comp *body = b->plan->comps[called[1]->id];
    value operands = operand_slots(b, instr, 0);
    value v = new_slots(b, SLOT_BUFFER, instr->shape);
    value spare = new_slots(b, SLOT_BUFFER, instr->shape);
    value own = new_value(b, v.count);
    for (uint32_t i = 0; i < v.count; i++) {
        const plan_slot *slot = &body->slots[body->results[i]];
        bool constant = slot->kind == SLOT_ARGUMENT && slot->index == i;
        own.slots[i] = constant ? PLAN_NONE : v.slots[i];
        if (!constant) continue;
        b->comp->slots[v.slots[i]].kind = b->comp->slots[spare.slots[i]].kind = SLOT_NOWHERE;
        v.slots[i] = operands.slots[i];
    }
    plan_step *step = new_step(b, STEP_WHILE, instr, operands, own);
    step->spare = spare.slots;
    call_comps(b, step, 2, called);
    step->predicate = new_work(b, hlo_types[HLO_TYPE_PRED].bytes);
    return v;
}

static value conditional_value(builder *b, const hlo_instr *instr) {
    const hlo_attr *branches = hlo_instr_attr(instr, HLO_ATTR_BRANCH_COMPUTATIONS);
    hlo_computation *pair[2];
    hlo_computation *const *called = pair;
    uint32_t count = 2;
    if (branches) {
        called = branches->u.comps->v;
        count = branches->u.comps->count;
    } else {
        pair[0] = hlo_instr_comp(instr, HLO_ATTR_TRUE_COMPUTATION);
        pair[1] = hlo_instr_comp(instr, HLO_ATTR_FALSE_COMPUTATION);
    }
    value operands = operand_slots(b, instr, 0);
    value v = new_slots(b, SLOT_BUFFER, instr->shape);
    plan_step *step = new_step(b, STEP_CONDITIONAL, instr, operands, v);
    step->branch_operands = hlo_arena_array(b->plan->arena, count, sizeof(uint32_t));
    uint32_t start = 1;
    for (uint32_t i = 0; i < count; i++) {
        step->branch_operands[i] = start;
        start += leaf_count(hlo_instr_operand(instr, i + 1)->shape);
    }
    call_comps(b, step, count, called);
    return v;
}

static hlo_view view_of(const builder *b, const hlo_shape *shape) {
    int64_t *strides = hlo_arena_array(b->plan->arena, shape->rank, sizeof *strides);
    hlo_shape_strides(shape, strides);
    return (hlo_view){
        .type = shape->type, .rank = shape->rank, .dims = shape->dims, .strides = strides};
}

static hlo_view *views_of(const builder *b, const hlo_shape *const *shapes, uint32_t count) {
    hlo_view *views = hlo_arena_array(b->plan->arena, count, sizeof *views);
    for (uint32_t i = 0; i < count; i++) views[i] = view_of(b, shapes[i]);
    return views;
}

static hlo_view *sigmas_of(const builder *b, const hlo_view *views, uint32_t count) {
    hlo_view *sigmas = hlo_arena_copy(b->plan->arena, views, count * sizeof *views);
    for (uint32_t i = 0; i < count; i++) sigmas[i].type = HLO_TYPE_F32;
    return sigmas;
}

static hlo_job *new_job(const builder *b, const hlo_instr *instr, uint32_t operand_count) {
    hlo_arena *arena = b->plan->arena;
    hlo_job *job = hlo_arena_zero(arena, sizeof *job);
    const hlo_shape **shapes = hlo_arena_array(arena, operand_count, sizeof *shapes),
                    **end = shapes;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        leaf_shapes(hlo_instr_operand(instr, i)->shape, &end);
    job->instr = instr;
    job->operand_count = operand_count;
    job->operands = views_of(b, shapes, operand_count);
    shapes = leaves_of(b, instr->shape, &job->result_count);
    job->results = views_of(b, shapes, job->result_count);
    job->bounded = b->plan->options.bounds;
    job->roundings_may_be_dropped = b->plan->options.roundings_may_be_dropped;
    job->operand_sigmas = sigmas_of(b, job->operands, job->operand_count);
    job->result_sigmas = sigmas_of(b, job->results, job->result_count);
    job->overwrites = job->untouched = -1;
    return job;
}

static value job_value(builder *b, const hlo_instr *instr) {
    const char *why;
    value operands = operand_slots(b, instr, 0);
    value v = new_slots(b, SLOT_BUFFER, instr->shape);
    if (!b->plan->backend->supports(b->plan->device, instr, b->plan->arena, &why)) {
        refuse(b, instr, "`%s` %s", hlo_ops[instr->op].name, why);
        return v;
    }
    plan_step *step = new_step(b, STEP_JOB, instr, operands, v);
    step->job = new_job(b, instr, operands.count);
    b->plan->backend->prepare(b->plan->device, step->job, b->plan->arena);
    if (step->job->scratch_size) step->work = new_work(b, step->job->scratch_size);
    return v;
}

/* Dimensions that are known, and not too many or too large. */
static bool is_static(const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++)
            if (!is_static(shape->elements[i])) return false;
        return true;
    }
    return !shape->dynamic && shape->rank <= HLO_EVAL_MAX_RANK &&
           (!hlo_types[shape->type].bytes || hlo_shape_bytes(shape) >= 0);
}

static void check_called(void *user, hlo_computation *called) {
    builder *b = user;
    const plan_comp *comp = b->plan->comps[called->id];
    if (comp && !comp->results) b->failed = true;
}

/* What has a callee that cannot run is not looked at further; the errors are told already. */
static bool runs_failed(builder *b, const hlo_instr *instr) {
    bool before = b->failed;
    b->failed = false;
    hlo_instr_visit_called(instr, check_called, b);
    bool failed = b->failed;
    b->failed |= before;
    return failed;
}

static value build_value(builder *b, const hlo_instr *instr) {
    if (!is_static(instr->shape)) {
        refuse(b, instr, "`%s` has a shape that no plan can be made for", hlo_ops[instr->op].name);
        return new_slots(b, SLOT_BUFFER, instr->shape);
    }
    if (runs_failed(b, instr)) return new_slots(b, SLOT_BUFFER, instr->shape);
    switch (instr->op) {
    case HLO_OP_PARAMETER: return parameter_value(b, instr);
    case HLO_OP_CONSTANT: return constant_value(b, instr, instr->u.literal);
    case HLO_OP_TUPLE: return operand_slots(b, instr, 0);
    case HLO_OP_AFTER_ALL: return new_value(b, 0);
    case HLO_OP_GET_TUPLE_ELEMENT: return element_of(b, instr);
    case HLO_OP_CALL: return call_value(b, instr, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
    case HLO_OP_FUSION: return call_value(b, instr, hlo_instr_comp(instr, HLO_ATTR_CALLS));
    case HLO_OP_WHILE: return while_value(b, instr);
    case HLO_OP_CONDITIONAL: return conditional_value(b, instr);
    default: break;
    }
    if (is_alias(b, instr)) return *value_of(b, hlo_instr_operand(instr, 0));
    if (instr->op == HLO_OP_BITCAST) {
        value v = new_slots(b, SLOT_BUFFER, instr->shape);
        new_step(b, STEP_COPY, instr, operand_slots(b, instr, 0), v);
        return v;
    }
    return job_value(b, instr);
}

/* -------------------------------------------------------------------------------------- liveness
 */

static void mark_live(builder *b) {
    const hlo_computation *comp = b->comp->comp;
    b->live[b->place[comp->root->id - b->first_id]] = true;
    for (const hlo_instr *i = comp->last; i; i = i->prev) {
        bool *live = &b->live[b->place[i->id - b->first_id]];
        if (hlo_ops[i->op].flags & HLO_SIDE_EFFECT) *live = true;
        if (!*live) continue;
        for (uint32_t o = 0; o < i->operand_count; o++)
            b->live[b->place[hlo_instr_operand(i, o)->id - b->first_id]] = true;
    }
}

static void use(plan_comp *comp, uint32_t slot, uint32_t step) {
    if (slot == PLAN_NONE) return;
    plan_slot *s = &comp->slots[slot];
    if (step < s->first) s->first = step;
    if (step > s->last) s->last = step;
}

/* From which step to which each slot is in use. */
static void find_lifetimes(plan_comp *comp) {
    for (uint32_t i = 0; i < comp->slot_count; i++) {
        comp->slots[i].first = PLAN_NONE;
        comp->slots[i].last = 0;
    }
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        for (uint32_t i = 0; i < step->operand_count; i++) use(comp, step->operands[i], s);
        for (uint32_t i = 0; i < step->result_count; i++) use(comp, step->results[i], s);
        for (uint32_t i = 0; step->spare && i < step->result_count; i++)
            use(comp, step->spare[i], s);
        use(comp, step->work, s);
        use(comp, step->predicate, s);
    }
}

/* The root's leaves that a step makes are made where the caller wants them. */
static void lend_results(plan_comp *comp) {
    for (uint32_t i = 0; i < comp->result_count; i++) {
        plan_slot *slot = &comp->slots[comp->results[i]];
        if (slot->kind != SLOT_BUFFER) continue;
        slot->kind = SLOT_RESULT;
        slot->index = i;
    }
}

/* Results that a job does not compute, and nobody reads. */
static void drop_untouched(plan_comp *comp) {
    for (uint32_t s = 0; s < comp->step_count; s++) {
        const plan_step *step = &comp->steps[s];
        if (!step->job || step->job->untouched < 0) continue;
        plan_slot *slot = &comp->slots[step->results[step->job->untouched]];
        if (slot->kind == SLOT_BUFFER && slot->last == s) slot->kind = SLOT_NOWHERE;
    }
}

static void count_places(builder *b) {
    const hlo_computation *comp = b->comp->comp;
    uint32_t last_id = 0, count = 0;
    b->first_id = UINT32_MAX;
    for (const hlo_instr *i = comp->first; i; i = i->next) {
        if (i->id < b->first_id) b->first_id = i->id;
        if (i->id > last_id) last_id = i->id;
        count++;
    }
    hlo_arena *arena = b->plan->arena;
    b->place = hlo_arena_array(arena, last_id - b->first_id + 1, sizeof *b->place);
    b->values = hlo_arena_zero(arena, count * sizeof *b->values);
    b->live = hlo_arena_zero(arena, count * sizeof *b->live);
    b->comp->steps = hlo_arena_array(arena, count, sizeof *b->comp->steps);
    count = 0;
    for (const hlo_instr *i = comp->first; i; i = i->next) b->place[i->id - b->first_id] = count++;
}

bool plan_build(hlo_plan *plan, plan_comp *comp, const hlo_diag_sink *sink) {
    builder b = {.plan = plan, .comp = comp, .sink = sink};
    count_places(&b);
    mark_live(&b);
    for (uint32_t i = 0; i < comp->comp->parameter_count; i++)
        comp->argument_count += leaf_count(comp->comp->parameters[i]->shape);
    for (const hlo_instr *i = comp->comp->first; i; i = i->next)
        if (b.live[b.place[i->id - b.first_id]]) *value_of(&b, i) = build_value(&b, i);
    if (b.failed) return false;
    const value *root = value_of(&b, comp->comp->root);
    comp->results = root->slots;
    comp->result_count = root->count;
    lend_results(comp);
    find_lifetimes(comp);
    drop_untouched(comp);
    return true;
}

bool plan_makes_result(const plan_comp *comp, uint32_t index) {
    const plan_slot *slot = &comp->slots[comp->results[index]];
    return slot->kind == SLOT_RESULT && slot->index == index;
}
