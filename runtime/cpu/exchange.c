/* SPDX-License-Identifier: Apache-2.0 */
/* Exchanges arrays between the members of a group. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cpu/collective.h"

/* The jobs of a group, and the arrays that are exchanged: the values, or their sigmas. */
typedef struct party {
    const hlo_job *const *jobs;
    uint32_t count;
    const hlo_instr *instr;
    const hlo_eval_env *env;
    hlo_arena *scratch;
    bool sigmas;
} party;

static const hlo_view *sent(const party *p, uint32_t member, uint32_t leaf) {
    const hlo_job *job = p->jobs[member];
    return p->sigmas ? &job->operand_sigmas[leaf] : &job->operands[leaf];
}

static const hlo_view *received(const party *p, uint32_t member, uint32_t leaf) {
    const hlo_job *job = p->jobs[member];
    return p->sigmas ? &job->result_sigmas[leaf] : &job->results[leaf];
}

/* Copies elements. Sigmas without data are zeros. */
static void copy(const party *p, const hlo_view *from, const hlo_view *to) {
    static const double none = 0;
    const hlo_view zero = {to->type, 0, NULL, NULL, (void *)(uintptr_t)&none};
    if (to->data) hlo_view_copy(p->env, from->data ? from : &zero, to);
}

/* Storage for a part's dimensions. */
typedef struct part {
    hlo_dims start, dims, strides;
    hlo_view view;
} part;

/* Views part `index` of `count` of an array along a dimension. */
static const hlo_view *part_of(const hlo_view *whole, int64_t dim, uint32_t index, uint32_t count,
                               part *out) {
    memset(&out->start, 0, sizeof out->start);
    for (uint32_t d = 0; d < whole->rank; d++) out->dims.v[d] = whole->dims[d];
    out->dims.v[dim] /= count;
    out->start.v[dim] = out->dims.v[dim] * index;
    hlo_view view = *whole;
    if (whole->data) view = hlo_view_part(whole, out->start.v, out->dims.v, NULL, &out->strides);
    out->view = view;
    return &out->view;
}

/* Views the tile of a device. */
static const hlo_view *tile_of(const hlo_view *whole, const hlo_tiling *t, int64_t device,
                               part *out) {
    for (uint32_t d = 0; d < whole->rank; d++) {
        out->dims.v[d] = whole->dims[d] / (t->devices ? t->counts[d] : 1);
        out->start.v[d] = t->devices ? t->places[device * whole->rank + d] * out->dims.v[d] : 0;
    }
    out->view = *whole;
    if (whole->data)
        out->view = hlo_view_part(whole, out->start.v, out->dims.v, NULL, &out->strides);
    return &out->view;
}

static int64_t dim_of(const party *p) {
    const hlo_ints *dims = hlo_instr_ints(p->instr, HLO_ATTR_DIMENSIONS);
    return dims->count ? dims->v[0] : -1;
}

static int64_t integer_at(const hlo_view *view, int64_t index) {
    int64_t value;
    hlo_lane_load(view->type, (const char *)view->data + index * hlo_types[view->type].bytes, 0, 1,
                  &value);
    return value;
}

/* --------------------------------------------------------------------------------------- moving */

/* Sends the operand of the first member, or of the member that the last operand specifies. */
static hlo_status broadcast(const party *p, uint32_t leaf, const char **why) {
    int64_t root = 0;
    const uint32_t last = p->instr->operand_count - 1;
    for (uint32_t i = 0; i < p->count && cpu_has_dynamic_root(p->instr); i++) {
        const int64_t named = integer_at(&p->jobs[i]->operands[last], leaf);
        if (i && named != root) {
            *why = "has different roots on the devices of a group";
            return HLO_INVALID_INPUT;
        }
        root = named;
    }
    if (root < 0 || root >= p->count) {
        *why = "has a root that is not in its group";
        return HLO_INVALID_INPUT;
    }
    for (uint32_t i = 0; i < p->count; i++)
        copy(p, sent(p, (uint32_t)root, leaf), received(p, i, leaf));
    return HLO_OK;
}

void cpu_take_parts(const cpu_device *cpu, const hlo_job *job) {
    const cpu_gathering *g = job->state;
    party p = {.jobs = &job, .count = 1, .instr = job->instr, .env = &cpu->env};
    const int64_t own = hlo_seat_number(&cpu->seat);
    part from;
    for (int round = 0; round <= job->bounded; round++) {
        p.sigmas = round;
        for (uint32_t i = 0; i < job->operand_count; i++)
            copy(&p, tile_of(sent(&p, 0, i), &g->tilings[i], own, &from), received(&p, 0, i));
    }
}

static bool inside(const hlo_view *view, int64_t at, int64_t size) {
    return at >= 0 && size >= 0 && at <= view->dims[0] && size <= view->dims[0] - at;
}

/* Sends rows. Operands 2 to 5 are the input offsets, send sizes, output offsets and receive sizes;
 * each has the same number of entries for each member. */
static hlo_status send_ragged(const party *p, const char **why) {
    for (uint32_t i = 0; i < p->count; i++) copy(p, sent(p, i, 1), received(p, i, 0));
    const int64_t entries = p->jobs[0]->operands[2].dims[0], each = entries / p->count;
    for (uint32_t i = 0; i < p->count; i++)
        for (int64_t e = 0; e < entries; e++) {
            const hlo_job *job = p->jobs[i];
            const hlo_view *from = sent(p, i, 0), *to = received(p, (uint32_t)(e / each), 0);
            hlo_dims start = {0}, rows, strides[2];
            const int64_t at = integer_at(&job->operands[2], e);
            const int64_t there = integer_at(&job->operands[4], e);
            memcpy(rows.v, from->dims, from->rank * sizeof *rows.v);
            rows.v[0] = integer_at(&job->operands[3], e);
            if (!inside(from, at, rows.v[0]) || !inside(to, there, rows.v[0])) {
                *why = "sends rows that are outside its operand or its result";
                return HLO_INVALID_INPUT;
            }
            start.v[0] = at;
            hlo_view source = *from, target = *to;
            if (from->data) source = hlo_view_part(from, start.v, rows.v, NULL, &strides[0]);
            start.v[0] = there;
            if (to->data) target = hlo_view_part(to, start.v, rows.v, NULL, &strides[1]);
            copy(p, &source, &target);
        }
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- reducing */

/* Parts of equal dimensions, one from each member, with their sigmas. */
typedef struct terms {
    part *values, *sigmas;
} terms;

/* Reduces the parts like a reduce over an array of all but the first part, whose initial value is
 * the first part. */
static hlo_status fold(const party *p, const terms *t, const hlo_view *to, const hlo_view *to_sigma,
                       const char **why) {
    const hlo_view *first = &t->values[0].view;
    hlo_dims dims = {{p->count - 1}}, strides;
    memcpy(dims.v + 1, first->dims, first->rank * sizeof *dims.v);
    const hlo_view like = {first->type, first->rank + 1, dims.v, NULL, NULL};
    hlo_view operands[] = {hlo_view_scratch(p->scratch, first->type, &like), *first};
    hlo_view sigmas[] = {hlo_view_scratch(p->scratch, HLO_TYPE_F32, &like), t->sigmas[0].view};
    for (uint32_t i = 1; i < p->count; i++) {
        hlo_dims start = {{i - 1}}, one = dims;
        one.v[0] = 1;
        for (int k = 0; k < 2; k++) {
            const hlo_view row =
                hlo_view_part(k ? &sigmas[0] : &operands[0], start.v, one.v, NULL, &strides);
            const hlo_view flat = {row.type, first->rank, first->dims, strides.v + 1, row.data};
            copy(p, k ? &t->sigmas[i].view : &t->values[i].view, &flat);
        }
    }
    hlo_ints *along = hlo_arena_zero(p->scratch, sizeof *along + sizeof *along->v);
    along->count = 1;
    const hlo_attr attrs[] = {{.id = HLO_ATTR_DIMENSIONS, .u.ints = along},
                              *hlo_instr_attr(p->instr, HLO_ATTR_TO_APPLY)};
    const hlo_shape all = {.type = first->type, .rank = first->rank + 1, .dims = dims.v},
                    each = {.type = first->type, .rank = first->rank, .dims = first->dims};
    hlo_instr defs[] = {{.op = HLO_OP_PARAMETER, .shape = &all},
                        {.op = HLO_OP_PARAMETER, .shape = &each}};
    hlo_use uses[] = {{.def = &defs[0]}, {.def = &defs[1]}};
    hlo_instr reduce = {.op = HLO_OP_REDUCE,
                        .operand_count = 2,
                        .operands = uses,
                        .shape = &each,
                        .parent = p->instr->parent,
                        .name = p->instr->name};
    hlo_instr_take_attrs(&reduce, attrs, 2);
    hlo_status status = hlo_eval(p->env, &reduce, operands, to, p->scratch, why);
    if (status != HLO_OK || !to_sigma->data) return status;
    const hlo_error_options options = {.roundings_may_be_dropped =
                                           p->jobs[0]->roundings_may_be_dropped};
    return hlo_error_sigmas(p->env, &reduce, operands, sigmas, to, to_sigma, &options, p->scratch,
                            why);
}

/* Reduces a leaf. Each member receives the whole result or, along `dim`, its part. */
static hlo_status reduce(const party *p, uint32_t leaf, int64_t dim, const char **why) {
    const uint32_t rounds = dim < 0 ? 1 : p->count;
    terms t = {hlo_arena_array(p->scratch, p->count, sizeof *t.values),
               hlo_arena_array(p->scratch, p->count, sizeof *t.sigmas)};
    for (uint32_t r = 0; r < rounds; r++) {
        for (uint32_t i = 0; i < p->count; i++) {
            const hlo_job *job = p->jobs[i];
            t.values[i].view = job->operands[leaf];
            t.sigmas[i].view = job->operand_sigmas[leaf];
            if (dim < 0) continue;
            part_of(&job->operands[leaf], dim, r, p->count, &t.values[i]);
            part_of(&job->operand_sigmas[leaf], dim, r, p->count, &t.sigmas[i]);
        }
        const hlo_view *to = &p->jobs[r]->results[leaf], *sigma = &p->jobs[r]->result_sigmas[leaf];
        hlo_status status = fold(p, &t, to, sigma, why);
        if (status != HLO_OK) return status;
        for (uint32_t i = 1; dim < 0 && i < p->count; i++) {
            copy(p, to, &p->jobs[i]->results[leaf]);
            copy(p, sigma, &p->jobs[i]->result_sigmas[leaf]);
        }
    }
    return HLO_OK;
}

/* -------------------------------------------------------------------------------------- meeting */

static hlo_status exchange_leaf(const party *p, uint32_t leaf, const char **why) {
    switch (p->instr->op) {
    case HLO_OP_ALL_GATHER:
    case HLO_OP_ALL_GATHER_START: {
        part to;
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t j = 0; j < p->count; j++)
                copy(p, sent(p, j, leaf),
                     part_of(received(p, i, leaf), dim_of(p), j, p->count, &to));
    } break;
    case HLO_OP_CUSTOM_CALL: {
        /* Join the members' tiles. If tiles are equal, each member keeps its own. */
        const cpu_gathering *g = p->jobs[0]->state;
        part to;
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t j = 0; j <= p->count; j++) {
                const uint32_t from = j < p->count ? j : i;
                copy(p, sent(p, from, leaf),
                     tile_of(received(p, i, leaf), &g->tilings[leaf], g->members->v[from], &to));
            }
    } break;
    case HLO_OP_ALL_TO_ALL: {
        part from, to;
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t j = 0; j < p->count; j++)
                copy(p, part_of(sent(p, j, leaf), dim_of(p), i, p->count, &from),
                     part_of(received(p, i, leaf), dim_of(p), j, p->count, &to));
    } break;
    case HLO_OP_COLLECTIVE_PERMUTE:
    case HLO_OP_COLLECTIVE_PERMUTE_START: {
        const cpu_gathering *g = p->jobs[0]->state;
        for (uint32_t i = 0; i < p->count; i++)
            if (g->sources->v[i] < 0) {
                const hlo_view *to = received(p, i, leaf);
                if (to->data) memset(to->data, 0, hlo_view_bytes(to));
            } else
                copy(p, sent(p, (uint32_t)g->sources->v[i], leaf), received(p, i, leaf));
    } break;
    case HLO_OP_COLLECTIVE_BROADCAST: return broadcast(p, leaf, why);
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START: return p->sigmas ? HLO_OK : reduce(p, leaf, -1, why);
    default: return p->sigmas ? HLO_OK : reduce(p, leaf, dim_of(p), why);
    }
    return HLO_OK;
}

static hlo_status exchange(const party *p, const char **why) {
    if (p->instr->op == HLO_OP_RAGGED_ALL_TO_ALL) return send_ragged(p, why);
    if (p->instr->op == HLO_OP_ALL_TO_ALL && dim_of(p) < 0) {
        /* Send operand i of each member to member i. */
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t j = 0; j < p->count; j++) copy(p, sent(p, j, i), received(p, i, j));
        return HLO_OK;
    }
    hlo_status status = HLO_OK;
    const uint32_t leaves = p->instr->operand_count - cpu_has_dynamic_root(p->instr);
    for (uint32_t i = 0; i < leaves && status == HLO_OK; i++) status = exchange_leaf(p, i, why);
    return status;
}

hlo_status cpu_exchange(void *const *brought, uint32_t count, const char **why) {
    const hlo_job *const *jobs = (const hlo_job *const *)brought;
    const cpu_gathering *g = jobs[0]->state;
    jmp_buf recover;
    hlo_arena *scratch = hlo_arena_new(&recover);
    if (!scratch) return HLO_OUT_OF_MEMORY;
    party p = {.jobs = jobs,
               .count = count,
               .instr = jobs[0]->instr,
               .env = &g->cpu->env,
               .scratch = scratch};
    volatile hlo_status status = HLO_OUT_OF_MEMORY;
    if (!setjmp(recover)) {
        status = exchange(&p, why);
        p.sigmas = true;
        if (status == HLO_OK && jobs[0]->bounded) status = exchange(&p, why);
    }
    hlo_arena_free(scratch);
    return status;
}
