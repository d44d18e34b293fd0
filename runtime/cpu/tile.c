/* SPDX-License-Identifier: Apache-2.0 */
/* Computes groups of elementwise instructions tile by tile, so that intermediate values stay in the
 * cache. Each value is rounded to its type as if it had been written to memory. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/kernel/kernel.h"
#include "ir/module/index_map.h"
#include "runtime/cpu/cpu.h"
#include "runtime/group/group.h"

/* ---------------------------------------------------------------------------------------- rules */

static bool is_tiled(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && hlo_types[shape->type].bytes &&
           hlo_types[shape->type].class != HLO_CLASS_COMPLEX && hlo_shape_is_row_major(shape) &&
           hlo_shape_count(shape) > 0;
}

static const char *find_loop(const hlo_instruction *instr, hlo_lane_op *out) {
    hlo_type types[3];
    for (uint32_t i = 0; i < instr->operand_count && i < 3; i++)
        types[i] = hlo_instr_operand(instr, i)->shape->type;
    return hlo_lane_op_init(out, instr, types, instr->shape->type);
}

static group_class class_of(const hlo_instruction *instr) {
    if (!instr->operand_count || !is_tiled(instr->shape) || hlo_call_refusal(instr))
        return GROUP_OTHER;
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!is_tiled(hlo_instr_operand(instr, i)->shape)) return GROUP_OTHER;
    bool retyped = hlo_instr_operand(instr, 0)->shape->type != instr->shape->type;
    hlo_lane_op loop;
    switch (instr->op) {
    case HLO_OP_BROADCAST: return GROUP_CHEAP;
    case HLO_OP_RESHAPE:
    case HLO_OP_BITCAST: return retyped ? GROUP_OTHER : GROUP_ALIAS;
    case HLO_OP_CONVERT: return retyped ? GROUP_PULL : GROUP_OTHER;
    default:
        if (!hlo_op_is(instr->op, HLO_ELEMENTWISE) || find_loop(instr, &loop)) return GROUP_OTHER;
        return loop.produced == hlo_lane_of(loop.result) ? GROUP_PULL : GROUP_OTHER;
    }
}

static bool reads_memory(const hlo_instruction *user, const hlo_instruction *operand) {
    if (user->op == HLO_OP_BROADCAST) return !hlo_index_keeps_order(user);
    return hlo_op_is(user->op, HLO_ELEMENTWISE) && operand->shape->rank != user->shape->rank;
}

uint32_t cpu_tile_group(const hlo_instruction *const *live, uint32_t count, hlo_arena *arena,
                        hlo_group **out_groups) {
    static const group_rules rules = {.class_of = class_of, .reads_memory = reads_memory};
    uint32_t found = group_instrs(&rules, live, count, arena, out_groups), kept = 0;
    for (uint32_t g = 0; g < found; g++)
        if ((*out_groups)[g].instr_count > 1) (*out_groups)[kept++] = (*out_groups)[g];
    return kept;
}

/* ------------------------------------------------------------------------------------- programs */

/* The location of a tile's elements: an operand, a result, or a buffer of the tile. */
typedef enum tile_place { TILE_BUFFER, TILE_OPERAND, TILE_RESULT } tile_place;
typedef struct tile_ref {
    tile_place place;
    uint32_t index;
    uint32_t bytes; /* bytes of an element in memory */
} tile_ref;

/* An operand whose elements are read in an order that differs from memory order. */
typedef struct tile_source {
    uint32_t operand, rank;                                    /* rank is at least 1 */
    int64_t dims[HLO_EVAL_MAX_RANK], steps[HLO_EVAL_MAX_RANK]; /* steps are in bytes */
} tile_source;

typedef enum tile_op_kind {
    TILE_GATHER,  /* copies elements of a source to consecutive positions */
    TILE_COPY,    /* copies elements of `type` */
    TILE_LOAD,    /* converts elements of `type` to lanes */
    TILE_STORE,   /* converts lanes to elements of `type` */
    TILE_CONVERT, /* converts lanes of `type` to elements of `to` */
    TILE_LOOP     /* computes lanes from lanes */
} tile_op_kind;

typedef struct tile_op {
    tile_op_kind kind;
    hlo_type type, to;
    tile_ref in[3], out;
    uint32_t in_count;
    const tile_source *source;
    hlo_lane_op loop;
} tile_op;

/* The first `once` ops fill buffers that every tile reads. */
typedef struct tile_program {
    tile_op *ops;
    uint32_t op_count, once;
    uint32_t buffer_count;
    int64_t count;  /* number of elements */
    int64_t length; /* elements per tile */
} tile_program;

enum {
    TILE_LENGTH = 512,     /* maximum elements per tile */
    TILE_MEMORY = 6 * 1024 /* maximum lanes of all buffers together, 8 bytes each */
};

/* The value of a member, or of an operand as a member reads it. A float has different lanes for
 * computing and for copying; lanes for copying contain its code. */
typedef struct value {
    hlo_type type;
    const tile_source *source; /* source from which elements must still be gathered, or NULL */
    bool has_elements, has_lanes[2];
    tile_ref elements, lanes[2]; /* lanes[0] has the elements as `type`, lanes[1] the codes of the
                                  * elements */
} value;

typedef struct making {
    tile_program *p;
    const hlo_job *job;
    hlo_arena *arena;
    tile_op *once;
    uint32_t once_count;
    value **members; /* indexed by position in the group */
    value **sources; /* created so far */
    uint32_t source_count;
} making;

static tile_ref new_buffer(making *m) {
    return (tile_ref){TILE_BUFFER, m->p->buffer_count++, 0};
}

static tile_ref memory_ref(tile_place place, uint32_t index, hlo_type type) {
    return (tile_ref){place, index, hlo_types[type].bytes};
}

static void add_op(making *m, tile_op op, bool once) {
    if (once)
        m->once[m->once_count++] = op;
    else
        m->p->ops[m->p->op_count++] = op;
}

static bool is_scalar(const value *v) {
    return v->source && v->source->rank == 1 && v->source->steps[0] == 0;
}

static tile_op one_to_one(tile_op_kind kind, hlo_type type, tile_ref in, tile_ref out) {
    return (tile_op){.kind = kind, .type = type, .in = {in}, .in_count = 1, .out = out};
}

/* Returns the location of the elements, after gathering them if necessary. */
static tile_ref elements_of(making *m, value *v) {
    if (!v->has_elements) {
        v->elements = new_buffer(m);
        v->has_elements = true;
        tile_op op = {.kind = TILE_GATHER, .type = v->type, .source = v->source};
        if (!v->source) op = one_to_one(TILE_STORE, v->type, v->lanes[0], op.out);
        op.out = v->elements;
        add_op(m, op, is_scalar(v));
    }
    return v->elements;
}

/* Returns the location of the lanes of the value's elements, read as `type`. */
static tile_ref lanes_of(making *m, value *v, hlo_type type) {
    const int as = type != v->type;
    if (!v->has_lanes[as]) {
        tile_ref elements = elements_of(m, v);
        v->has_lanes[as] = true;
        v->lanes[as] = elements;
        if (!hlo_type_is_lane(type)) {
            v->lanes[as] = new_buffer(m);
            add_op(m, one_to_one(TILE_LOAD, type, elements, v->lanes[as]), is_scalar(v));
        }
    }
    return v->lanes[as];
}

static uint32_t position(const hlo_instruction *const *instrs, uint32_t count,
                         const hlo_instruction *instr) {
    uint32_t i = 0;
    while (i < count && instrs[i] != instr) i++;
    return i;
}

/* Returns the value of a member or of an operand that `user` reads. Equal reads share a value. */
static value *value_read(making *m, const hlo_instruction *user, const hlo_instruction *operand) {
    const hlo_group *g = &m->job->group;
    uint32_t at = position(g->instrs, g->instr_count, operand);
    if (at < g->instr_count) return m->members[at];
    const hlo_shape *shape =
        user->op == HLO_OP_BROADCAST || operand->shape->rank == 0 ? user->shape : operand->shape;
    hlo_dims own, strides = {0};
    hlo_shape_strides(operand->shape, own.v);
    const hlo_ints *dims =
        user->op == HLO_OP_BROADCAST ? hlo_instr_ints(user, HLO_ATTR_DIMENSIONS) : NULL;
    for (uint32_t d = 0; d < operand->shape->rank; d++)
        if (operand->shape->dims[d] != 1) strides.v[dims ? dims->v[d] : d] = own.v[d];
    const hlo_type type = operand->shape->type;
    const uint32_t number = position(g->inputs, g->input_count, operand);
    tile_source *s = hlo_arena_zero(m->arena, sizeof *s);
    s->operand = number;
    /* Merge adjacent dimensions if possible. */
    const int64_t size = hlo_types[type].bytes;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        int64_t step = strides.v[d] * size;
        if (s->rank && s->steps[s->rank - 1] == step * shape->dims[d]) {
            s->dims[s->rank - 1] *= shape->dims[d];
            s->steps[s->rank - 1] = step;
        } else {
            s->dims[s->rank] = shape->dims[d];
            s->steps[s->rank++] = step;
        }
    }
    if (!s->rank) s->dims[s->rank++] = 1;
    bool direct = s->rank == 1 && (m->p->count == 1 || s->steps[0] == size);
    for (uint32_t i = 0; i < m->source_count; i++) {
        const tile_source *o = m->sources[i]->source;
        bool same = m->sources[i]->has_elements && m->sources[i]->elements.place == TILE_OPERAND
                        ? direct && m->sources[i]->elements.index == number
                        : !direct && o->operand == number && o->rank == s->rank &&
                              !memcmp(o->dims, s->dims, sizeof o->dims) &&
                              !memcmp(o->steps, s->steps, sizeof o->steps);
        if (same) return m->sources[i];
    }
    value *v = hlo_arena_zero(m->arena, sizeof *v);
    v->type = type;
    if (direct) {
        v->elements = memory_ref(TILE_OPERAND, number, type);
        v->has_elements = true;
    } else {
        v->source = s;
    }
    m->sources[m->source_count++] = v;
    return v;
}

/* Returns where a member's elements are written: to the result's memory if the member is a result,
 * otherwise to a buffer. */
static tile_ref elements_ref(making *m, const hlo_instruction *instr) {
    const hlo_group *g = &m->job->group;
    uint32_t result = position(g->results, g->result_count, instr);
    return result < g->result_count ? memory_ref(TILE_RESULT, result, instr->shape->type)
                                    : new_buffer(m);
}

/* Creates the value of a member that copies or broadcasts its operand. */
static value *move(making *m, const hlo_instruction *instr) {
    const hlo_group *g = &m->job->group;
    value *v = value_read(m, instr, hlo_instr_operand(instr, 0));
    if (position(g->results, g->result_count, instr) == g->result_count) return v;
    tile_op op = {.kind = TILE_GATHER, .type = v->type, .source = v->source};
    if (!v->source) op = one_to_one(TILE_COPY, v->type, elements_of(m, v), op.out);
    op.out = elements_ref(m, instr);
    add_op(m, op, false);
    return v;
}

static value *convert(making *m, const hlo_instruction *instr) {
    const hlo_group *g = &m->job->group;
    value *v = hlo_arena_zero(m->arena, sizeof *v);
    value *from = value_read(m, instr, hlo_instr_operand(instr, 0));
    tile_ref in = lanes_of(m, from, from->type);
    v->type = instr->shape->type;
    v->has_elements = true;
    bool same = v->type == HLO_TYPE_F32 && hlo_lane_of(from->type) == HLO_LANE_F32;
    if (same && position(g->results, g->result_count, instr) == g->result_count) {
        v->elements = in;
        return v;
    }
    v->elements = elements_ref(m, instr);
    tile_op op = one_to_one(same ? TILE_COPY : TILE_CONVERT, from->type, in, v->elements);
    if (same)
        op.type = v->type;
    else
        op.to = v->type;
    add_op(m, op, false);
    return v;
}

static value *compute(making *m, const hlo_instruction *instr) {
    const hlo_group *g = &m->job->group;
    value *v = hlo_arena_zero(m->arena, sizeof *v);
    v->type = instr->shape->type;
    tile_op op = {.kind = TILE_LOOP, .type = v->type};
    find_loop(instr, &op.loop);
    op.in_count = op.loop.arity;
    for (uint32_t i = 0; i < op.in_count; i++)
        op.in[i] = lanes_of(m, value_read(m, instr, hlo_instr_operand(instr, i)), op.loop.types[i]);
    bool direct = hlo_type_is_lane(op.loop.result);
    op.out = direct ? elements_ref(m, instr) : new_buffer(m);
    add_op(m, op, false);
    /* A pred has lanes of 0 or 1: no conversion. Other values are rounded when stored. */
    if (hlo_kernel_elementwise(instr)->out == HLO_OUT_PRED) {
        v->has_lanes[0] = true;
        v->lanes[0] = op.out;
        if (position(g->results, g->result_count, instr) == g->result_count) return v;
    }
    v->has_elements = true;
    v->elements = direct ? op.out : elements_ref(m, instr);
    if (!direct) add_op(m, one_to_one(TILE_STORE, op.loop.result, op.out, v->elements), false);
    return v;
}

/* True if each tile reads the operand only at the positions of the result's elements that it
 * computes, and before it writes them. */
static bool is_overwritten(const tile_program *p, const hlo_job *job, uint32_t operand,
                           uint32_t result) {
    bool written = false;
    if (job->operands[operand].type != job->results[result].type ||
        hlo_view_count(&job->operands[operand]) != p->count)
        return false;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const tile_op *op = &p->ops[i];
        for (uint32_t k = 0; k < op->in_count; k++)
            if (op->in[k].place == TILE_OPERAND && op->in[k].index == operand && written)
                return false;
        if (op->kind == TILE_GATHER && op->source->operand == operand) return false;
        written |= op->out.place == TILE_RESULT && op->out.index == result;
    }
    return true;
}

void cpu_tile_prepare(hlo_job *job, hlo_arena *arena) {
    const hlo_group *g = &job->group;
    tile_program *p = hlo_arena_zero(arena, sizeof *p);
    making m = {.p = p, .job = job, .arena = arena};
    const uint32_t most = 16 * g->instr_count;
    p->count = hlo_shape_count(g->results[0]->shape);
    p->ops = hlo_arena_array(arena, most, sizeof *p->ops);
    m.once = hlo_arena_array(arena, most, sizeof *m.once);
    m.members = hlo_arena_zero(arena, g->instr_count * sizeof *m.members);
    m.sources = hlo_arena_zero(arena, 3 * g->instr_count * sizeof *m.sources);
    for (uint32_t i = 0; i < g->instr_count; i++) {
        const hlo_instruction *instr = g->instrs[i];
        group_class class = class_of(instr);
        m.members[i] = class == GROUP_CHEAP || class == GROUP_ALIAS ? move(&m, instr)
                       : instr->op == HLO_OP_CONVERT                ? convert(&m, instr)
                                                                    : compute(&m, instr);
    }
    p->once = m.once_count;
    memmove(p->ops + p->once, p->ops, p->op_count * sizeof *p->ops);
    memcpy(p->ops, m.once, p->once * sizeof *p->ops);
    p->op_count += p->once;
    /* Let buffers that are not in use at the same time share memory. Buffers that the first `once`
     * ops fill are in use to the end. */
    uint32_t *last = hlo_arena_zero(arena, p->buffer_count * sizeof *last);
    uint32_t *place = hlo_arena_array(arena, p->buffer_count, sizeof *place);
    uint32_t *spare = hlo_arena_array(arena, p->buffer_count, sizeof *spare), spares = 0, used = 0;
    for (uint32_t i = 0; i < p->op_count; i++) {
        const tile_op *op = &p->ops[i];
        for (uint32_t k = 0; k < op->in_count; k++)
            if (op->in[k].place == TILE_BUFFER && last[op->in[k].index] < i)
                last[op->in[k].index] = i;
        if (op->out.place == TILE_BUFFER) last[op->out.index] = i < p->once ? p->op_count : i;
    }
    for (uint32_t i = 0; i < p->op_count; i++) {
        tile_op *op = &p->ops[i];
        tile_ref *refs[] = {&op->in[0], &op->in[1], &op->in[2], &op->out};
        const uint32_t made = op->out.index;
        if (op->out.place == TILE_BUFFER) place[made] = spares ? spare[--spares] : used++;
        for (uint32_t k = 0; k < 4; k++) {
            if (refs[k]->place != TILE_BUFFER || (k < 3 && k >= op->in_count)) continue;
            const uint32_t buffer = refs[k]->index;
            refs[k]->index = place[buffer];
            if (last[buffer] != i) continue;
            spare[spares++] = place[buffer];
            last[buffer] = UINT32_MAX;
        }
    }
    p->buffer_count = used;
    int64_t most_elements = TILE_MEMORY / (p->buffer_count ? p->buffer_count : 1) / 8 * 8;
    p->length = most_elements < TILE_LENGTH ? most_elements : TILE_LENGTH;
    for (uint32_t r = 0; r < job->result_count; r++)
        for (uint32_t o = 0; o < job->operand_count; o++)
            if (is_overwritten(p, job, o, r)) hlo_overwrites_add(&job->overwrites, arena, r, o);
    job->state = p;
}

/* -------------------------------------------------------------------------------------- running */

/* Minimum number of computed lanes for which a job is shared among threads. */
enum { WORTH_SHARING = 1 << 15 };

/* Copies `count` elements of a source, starting at element `first`, to consecutive positions. */
static void gather(const tile_source *s, hlo_type type, const char *data, int64_t first,
                   int64_t count, char *out) {
    const uint32_t inner = s->rank - 1;
    const int64_t size = hlo_types[type].bytes;
    int64_t index[HLO_EVAL_MAX_RANK];
    for (uint32_t d = s->rank; d-- > 0; first /= s->dims[d]) {
        index[d] = first % s->dims[d];
        data += index[d] * s->steps[d];
    }
    for (;;) {
        int64_t n = s->dims[inner] - index[inner];
        if (n > count) n = count;
        hlo_copy_row((size_t)size, data, s->steps[inner], n, out, size);
        out += n * size;
        count -= n;
        if (count == 0) return;
        data -= index[inner] * s->steps[inner];
        index[inner] = 0;
        for (uint32_t d = inner; d-- > 0;) {
            data += s->steps[d];
            if (++index[d] < s->dims[d]) break;
            data -= s->dims[d] * s->steps[d];
            index[d] = 0;
        }
    }
}

typedef struct tile_run {
    const tile_program *program;
    const hlo_job *job;
} tile_run;

/* Returns the address of the tile that begins with element `first`. */
static void *address(const tile_run *r, uint64_t *memory, const tile_ref *ref, int64_t first) {
    if (ref->place == TILE_BUFFER) return memory + ref->index * r->program->length;
    const hlo_view *view =
        ref->place == TILE_OPERAND ? &r->job->operands[ref->index] : &r->job->results[ref->index];
    return (char *)view->data + first * ref->bytes;
}

static void run_op(const tile_run *r, const tile_op *op, uint64_t *memory, int64_t first,
                   int64_t count) {
    const void *in[3];
    const int64_t bytes = hlo_types[op->type].bytes;
    for (uint32_t i = 0; i < op->in_count; i++) in[i] = address(r, memory, &op->in[i], first);
    void *out = address(r, memory, &op->out, first);
    switch (op->kind) {
    case TILE_GATHER:
        gather(op->source, op->type, r->job->operands[op->source->operand].data, first, count, out);
        break;
    case TILE_COPY: memcpy(out, in[0], (size_t)(count * bytes)); break;
    case TILE_LOAD: hlo_lane_load(op->type, in[0], bytes, count, out); break;
    case TILE_STORE: hlo_lane_store(op->type, in[0], count, out, bytes); break;
    case TILE_CONVERT:
        hlo_lane_convert(op->type, op->to, in[0], count, out, hlo_types[op->to].bytes);
        break;
    case TILE_LOOP: hlo_lane_op_run(&op->loop, count, in, out); break;
    }
}

static void run_tiles(void *arg, int64_t begin, int64_t end) {
    const tile_run own = *(const tile_run *)arg, *r = &own;
    const tile_program *p = r->program;
    _Alignas(64) uint64_t memory[TILE_MEMORY];
    for (uint32_t i = 0; i < p->once; i++) run_op(r, &p->ops[i], memory, 0, p->length);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t first = tile * p->length;
        int64_t count = p->count - first < p->length ? p->count - first : p->length;
        for (uint32_t i = p->once; i < p->op_count; i++)
            run_op(r, &p->ops[i], memory, first, count);
    }
}

void cpu_tile_execute(const cpu_device *cpu, const hlo_job *job) {
    tile_run r = {job->state, job};
    const tile_program *p = r.program;
    int64_t tiles = (p->count + p->length - 1) / p->length;
    if (tiles > 1 && p->count * (p->op_count - p->once) >= WORTH_SHARING)
        cpu->env.parallel(cpu->env.user, tiles, run_tiles, &r);
    else
        run_tiles(&r, 0, tiles);
}
