/* SPDX-License-Identifier: Apache-2.0 */
/* Implements collectives between simulated devices (runtime/world.h): finds the participants, waits
 * for them, and exchanges arrays between the members of a group. */
#include <stdlib.h>
#include <string.h>

#include "ir/device_list.h"
#include "ir/devices/boundary.h"
#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"

/* The state of a collective's job. */
typedef struct cpu_gathering {
    const cpu_device *cpu;
    const hlo_ints *members; /* device numbers of the group, in its order, or NULL */
    const hlo_ints *sources; /* collective-permute: the source of each member, or -1 for zeros */
    const int64_t *sizes;    /* collective-permute of slices: the sizes of each buffer's slice */
    int64_t channel, peer;   /* send, recv-done: the other device, or -1 */
    hlo_tiling *tilings;     /* at the boundary of a manual region: the tiling of each operand */
} cpu_gathering;

/* True if the last operand selects the member of the group that sends the other operands. */
static bool has_dynamic_root(const hlo_instruction *instr) {
    return hlo_instr_int(instr, HLO_ATTR_HAS_DYNAMIC_ROOT, 0) != 0;
}

/* The jobs of a group's members, which exchange values or, with `sigmas`, the values' sigmas. */
typedef struct party {
    const hlo_job *const *jobs;
    uint32_t count;
    const hlo_instruction *instr;
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

/* Copies elements. If `from` has no data, which is only possible for sigmas, writes zeros. */
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

/* Returns a view of part `index` of an array that is divided along a dimension. */
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

/* Sends the operand of one member to all members: of the first member or, with a dynamic root, of
 * the member that the last operand specifies. */
static hlo_status broadcast(const party *p, uint32_t leaf, const char **why) {
    int64_t root = 0;
    const uint32_t last = p->instr->operand_count - 1;
    for (uint32_t i = 0; i < p->count && has_dynamic_root(p->instr); i++) {
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

static void start_of(const hlo_job *job, uint32_t first, const hlo_view *buffer,
                     const int64_t *sizes, hlo_dims *out) {
    for (uint32_t d = 0; d < buffer->rank; d++) {
        const int64_t at = integer_at(&job->operands[first + d], 0);
        const int64_t most = buffer->dims[d] - sizes[d];
        out->v[d] = at < 0 ? 0 : at > most ? most : at;
    }
}

/* Sends slices. The operands are the buffers that are read, the buffers that are written, and the
 * start indices of each buffer's slice, first of those that are read. Each device writes the slice
 * that it receives at its own indices. Like those of dynamic-slice, indices are clamped. */
static void permute_slices(const party *p) {
    const cpu_gathering *g = p->jobs[0]->state;
    const uint32_t buffers = p->jobs[0]->result_count;
    uint32_t indices = 2 * buffers;
    for (uint32_t b = 0; b < buffers; b++) indices += received(p, 0, b)->rank;
    for (uint32_t i = 0; i < p->count; i++) {
        const int64_t source = g->sources->v[i], *sizes = g->sizes;
        uint32_t from_at = 2 * buffers, to_at = indices;
        for (uint32_t b = 0; b < buffers; b++) {
            const hlo_view *to = received(p, i, b);
            const uint32_t rank = to->rank;
            copy(p, sent(p, i, buffers + b), to);
            if (source >= 0 && to->data) {
                const hlo_view *from = sent(p, (uint32_t)source, b);
                hlo_dims start, strides[2];
                start_of(p->jobs[source], from_at, from, sizes, &start);
                hlo_view slice = *from;
                if (from->data) slice = hlo_view_part(from, start.v, sizes, NULL, &strides[0]);
                start_of(p->jobs[i], to_at, to, sizes, &start);
                const hlo_view target = hlo_view_part(to, start.v, sizes, NULL, &strides[1]);
                copy(p, &slice, &target);
            }
            from_at += rank;
            to_at += rank;
            sizes += rank;
        }
    }
}

static bool inside(const hlo_view *view, int64_t at, int64_t size) {
    return at >= 0 && size >= 0 && at <= view->dims[0] && size <= view->dims[0] - at;
}

/* ------------------------------------------------------------------------------------- reducing */

/* Parts of equal dimensions, one from each member, with their sigmas. */
typedef struct terms {
    part *values, *sigmas;
} terms;

/* Reduces the parts like a `reduce` instruction whose initial value is the first part and whose
 * operand contains the other parts. */
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
    hlo_instruction defs[] = {{.op = HLO_OP_PARAMETER, .shape = &all},
                              {.op = HLO_OP_PARAMETER, .shape = &each}};
    hlo_use uses[] = {{.def = &defs[0]}, {.def = &defs[1]}};
    hlo_instruction reduce = {.op = HLO_OP_REDUCE,
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

/* Reduces a leaf. Each member gets the whole result or, if `dim` is not negative, its part along
 * `dim`. */
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
        /* Join the members' tiles. The member's own tile is copied last, so that it overwrites
         * tiles of other members at the same position. */
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
    const cpu_gathering *g = p->jobs[0]->state;
    if (g->sizes) {
        permute_slices(p);
        return HLO_OK;
    }
    if (p->instr->op == HLO_OP_RAGGED_ALL_TO_ALL) {
        /* Send rows. Operands 2 to 5 are the input offsets, send sizes, output offsets and receive
         * sizes; each has the same number of entries for each member. */
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
    if (p->instr->op == HLO_OP_ALL_TO_ALL && dim_of(p) < 0) {
        /* Send operand i of each member to member i. */
        for (uint32_t i = 0; i < p->count; i++)
            for (uint32_t j = 0; j < p->count; j++) copy(p, sent(p, j, i), received(p, i, j));
        return HLO_OK;
    }
    hlo_status status = HLO_OK;
    const uint32_t leaves = p->instr->operand_count - has_dynamic_root(p->instr);
    for (uint32_t i = 0; i < leaves && status == HLO_OK; i++) status = exchange_leaf(p, i, why);
    return status;
}

/* Runs the jobs of all members of a group together. */
static hlo_status exchange_all(void *const *brought, uint32_t count, const char **why) {
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

/* True for the instructions that send and receive. A recv only names the message. */
static bool is_transfer(const hlo_instruction *instr) {
    return instr->op == HLO_OP_SEND || instr->op == HLO_OP_RECV_DONE;
}

static bool is_boundary(const hlo_instruction *instr) {
    return hlo_manual_enters(instr) || hlo_manual_leaves(instr);
}

bool cpu_is_collective(const hlo_instruction *instr) {
    const hlo_op op = instr->op;
    bool done = op == HLO_OP_ALL_GATHER_DONE || op == HLO_OP_ALL_REDUCE_DONE ||
                op == HLO_OP_COLLECTIVE_PERMUTE_DONE;
    return (hlo_op_is(op, HLO_COLLECTIVE) && !done) || op == HLO_OP_PARTITION_ID ||
           op == HLO_OP_REPLICA_ID || is_boundary(instr) || is_transfer(instr);
}

static bool is_permute(const hlo_instruction *instr) {
    return instr->op == HLO_OP_COLLECTIVE_PERMUTE || instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
}

/* --------------------------------------------------------------------------------------- groups */

/* How the numbers in replica groups identify devices. */
typedef enum group_mode {
    REPLICAS,   /* replica ids; each partition has separate groups */
    PARTITIONS, /* partition ids; each replica has separate groups */
    BOTH,       /* replica ids; a group contains all their partitions */
    DEVICES     /* replica * partitions + partition */
} group_mode;

static group_mode mode_of(const hlo_instruction *instr) {
    static const char *const words[] = {"cross_replica", "cross_partition",
                                        "cross_replica_and_partition", "flattened_id"};
    const char *mode = hlo_instr_str(instr, HLO_ATTR_MODE);
    for (int i = 0; mode && i < 4; i++)
        if (!strcmp(mode, words[i])) return (group_mode)i;
    if (hlo_instr_int(instr, HLO_ATTR_CHANNEL_ID, 0) <= 0) return REPLICAS;
    if (!hlo_op_has(instr->op, HLO_ATTR_USE_GLOBAL_DEVICE_IDS)) return PARTITIONS;
    return hlo_instr_int(instr, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0) ? DEVICES : BOTH;
}

/* Returns the limit that numbers in groups must be below, and writes the device's own number. */
static int64_t own_number(const hlo_seat *seat, group_mode mode, int64_t *out_own) {
    switch (mode) {
    case PARTITIONS: *out_own = seat->partition; return seat->partitions;
    case DEVICES:
        *out_own = hlo_seat_number(seat);
        return (int64_t)seat->replicas * seat->partitions;
    default: *out_own = seat->replica; return seat->replicas;
    }
}

/* Returns the devices of a group's numbers, as the device at `seat` sees them, in order. */
static hlo_ints *devices_of(const hlo_seat *seat, group_mode mode, const hlo_ints *numbers,
                            hlo_arena *arena) {
    const uint32_t each = mode == BOTH ? seat->partitions : 1;
    hlo_ints *all =
        hlo_arena_alloc(arena, sizeof *all + (size_t)numbers->count * each * sizeof *all->v);
    all->count = 0;
    for (uint32_t i = 0; i < numbers->count; i++)
        for (uint32_t p = 0; p < each; p++) {
            const int64_t n = numbers->v[i];
            int64_t device = n;
            if (mode == REPLICAS) device = n * seat->partitions + seat->partition;
            if (mode == PARTITIONS) device = (int64_t)seat->replica * seat->partitions + n;
            if (mode == BOTH) device = n * seat->partitions + p;
            all->v[all->count++] = device;
        }
    return all;
}

static hlo_ints *first_numbers(int64_t count, hlo_arena *arena) {
    hlo_ints *all = hlo_arena_alloc(arena, sizeof *all + (size_t)count * sizeof *all->v);
    all->count = (uint32_t)count;
    for (int64_t i = 0; i < count; i++) all->v[i] = i;
    return all;
}

/* Lists the participants of the device's group. Returns NULL and sets `why` if no group contains
 * the device, or if the groups name more devices than there are. */
static const hlo_ints *find_members(const hlo_seat *seat, const hlo_instruction *instr,
                                    hlo_arena *arena, const char **why) {
    const group_mode mode = mode_of(instr);
    const hlo_groups *groups = hlo_instr_groups(instr, HLO_ATTR_REPLICA_GROUPS);
    static const char *const things[] = {"replicas", "partitions", "replicas", "devices"};
    int64_t own;
    const int64_t most = own_number(seat, mode, &own);
    if (is_permute(instr)) return first_numbers((int64_t)seat->replicas * seat->partitions, arena);
    if (!groups || !groups->devices)
        return devices_of(seat, mode, first_numbers(most, arena), arena);
    const hlo_ints *numbers = hlo_device_group_of(arena, groups, own);
    if (groups->devices > most || !numbers) {
        *why = hlo_arena_format(arena, "has groups of %lld %s, but there are only %lld",
                                (long long)groups->devices, things[mode], (long long)most);
        return NULL;
    }
    return devices_of(seat, mode, numbers, arena);
}

/* Lists the devices whose parts leave a manual region together, or returns NULL if unknown. */
static const hlo_ints *find_joined(const hlo_seat *seat, const hlo_instruction *leaves,
                                   hlo_arena *arena) {
    hlo_ints *all = first_numbers((int64_t)seat->replicas * seat->partitions, arena);
    if (hlo_is_custom_call(leaves, "SPMDShardToFullShape")) return all;
    const hlo_device_groups *groups = hlo_manual_joined(arena, leaves);
    if (!groups || (groups->count && groups->count != all->count)) return NULL;
    const uint32_t own = hlo_seat_number(seat);
    uint32_t count = 0;
    for (uint32_t d = 0; groups->count && d < all->count; d++)
        if (groups->of[d] == groups->of[own]) all->v[count++] = d;
    if (groups->count) all->count = count;
    return all;
}

/* Returns the source of each device in a collective-permute, or NULL with `why` on error. */
static const hlo_ints *find_sources(const hlo_seat *seat, const hlo_instruction *instr,
                                    hlo_arena *arena, const char **why) {
    const group_mode mode = mode_of(instr);
    const hlo_groups *pairs = hlo_instr_groups(instr, HLO_ATTR_SOURCE_TARGET_PAIRS);
    const int64_t *listed = pairs->mesh.devices.listed->v;
    int64_t own;
    const int64_t most = own_number(seat, mode, &own);
    hlo_ints *sources = first_numbers((int64_t)seat->replicas * seat->partitions, arena);
    for (uint32_t i = 0; i < sources->count; i++) sources->v[i] = -1;
    for (int64_t i = 0; i < pairs->count; i++) {
        const int64_t from = listed[2 * i], to = listed[2 * i + 1];
        if (from >= most || to >= most) {
            *why = hlo_arena_format(arena, "sends from %lld to %lld, but only %lld participate",
                                    (long long)from, (long long)to, (long long)most);
            return NULL;
        }
        for (uint32_t d = 0; d < sources->count; d++) {
            const hlo_seat at = {NULL, d / seat->partitions, d % seat->partitions, seat->replicas,
                                 seat->partitions};
            if ((mode == PARTITIONS ? at.partition : at.replica) != to) continue;
            const int64_t step = mode == PARTITIONS ? 1 : seat->partitions;
            sources->v[d] = d + (from - to) * step;
        }
    }
    return sources;
}

/* ------------------------------------------------------------------------------------ transfers */

static const char *skip_blanks(const char *text) {
    return text + strspn(text, " \"");
}

/* Reads a pair of a list such as {{0,1},{1,2}}, and `before`, which is `{` or `,`. Sets *at to NULL
 * after the last pair. Returns false if the list is invalid. */
static bool read_pair(const char **at, char before, int64_t pair[2]) {
    const char *text = skip_blanks(*at);
    if (*text++ != before) return false;
    text = skip_blanks(text);
    if (*text++ != '{') return false;
    for (int half = 0; half < 2; half++) {
        char *end;
        pair[half] = strtoll(text, &end, 10);
        if (end == text || pair[half] < 0 || pair[half] >= HLO_MAX_DEVICES) return false;
        text = skip_blanks(end);
        if (*text++ != (half ? '}' : ',')) return false;
    }
    *at = skip_blanks(text);
    if (**at == ',') return true;
    if (**at != '}' || *skip_blanks(*at + 1)) return false;
    *at = NULL;
    return true;
}

/* Finds the device to which a send, or from which a recv-done, transfers; -1 if no pair contains
 * this device. Returns NULL, or why the device does not support the transfer. */
static const char *find_peer(const hlo_seat *seat, const hlo_instruction *instr, hlo_arena *arena,
                             int64_t *out_peer) {
    static const char name[] = "_xla_send_recv_source_target_pairs";
    const bool sends = instr->op == HLO_OP_SEND;
    const hlo_instruction *start = sends ? instr : hlo_instr_operand(instr, 0);
    const char *entries = hlo_instr_str(start, HLO_ATTR_FRONTEND_ATTRIBUTES);
    const char *text = entries ? hlo_value_entry(arena, entries, name) : NULL;
    int64_t own, pair[2];
    const group_mode mode = mode_of(start);
    const int64_t most = own_number(seat, mode, &own);
    const int64_t step = mode == PARTITIONS ? 1 : seat->partitions;
    if (!text)
        return hlo_arena_format(arena, "requires the pairs of devices, as frontend attribute %s",
                                name);
    *out_peer = -1;
    const bool empty = !strcmp(text, "{}");
    for (char before = '{'; text && !empty; before = ',') {
        if (!read_pair(&text, before, pair))
            return hlo_arena_format(arena, "has an invalid list of pairs in %s", name);
        const int64_t largest = pair[0] > pair[1] ? pair[0] : pair[1];
        if (largest >= most && !seat->world)
            return hlo_arena_format(arena,
                                    "requires %lld devices: run the module with --devices=%lld",
                                    (long long)largest + 1, (long long)largest + 1);
        if (largest >= most)
            return hlo_arena_format(arena,
                                    "transfers data of device %lld, but only %lld participate",
                                    (long long)largest, (long long)most);
        if (pair[!sends] != own) continue;
        if (*out_peer >= 0)
            return hlo_arena_format(arena, "has two pairs for device %lld in %s", (long long)own,
                                    name);
        *out_peer = hlo_seat_number(seat) + (pair[sends] - own) * step;
    }
    return seat->world || *out_peer < 0 ? NULL : "transfers data from a device to itself";
}

static hlo_status send(const cpu_device *cpu, const hlo_job *job) {
    const cpu_gathering *g = job->state;
    jmp_buf recover;
    if (g->peer < 0) return HLO_OK;
    hlo_arena *arena = hlo_arena_new(&recover);
    if (!arena) return HLO_OUT_OF_MEMORY;
    if (setjmp(recover)) {
        hlo_arena_free(arena);
        return HLO_OUT_OF_MEMORY;
    }
    hlo_message *m = hlo_arena_zero(arena, sizeof *m);
    *m = (hlo_message){.arena = arena,
                       .channel = g->channel,
                       .from = hlo_seat_number(&cpu->seat),
                       .to = (uint32_t)g->peer,
                       .count = job->operand_count,
                       .values = hlo_arena_array(arena, job->operand_count, sizeof *m->values),
                       .sigmas = hlo_arena_zero(arena, job->operand_count * sizeof *m->sigmas)};
    for (uint32_t i = 0; i < m->count; i++) {
        const hlo_view *value = &job->operands[i], *sigma = &job->operand_sigmas[i];
        m->values[i] = hlo_view_scratch(arena, value->type, value);
        hlo_view_copy(&cpu->env, value, &m->values[i]);
        if (!sigma->data) continue;
        m->sigmas[i] = hlo_view_scratch(arena, HLO_TYPE_F32, value);
        hlo_view_copy(&cpu->env, sigma, &m->sigmas[i]);
    }
    hlo_arena_set_recover(arena, NULL);
    hlo_world_send(cpu->seat.world, m);
    return HLO_OK;
}

static hlo_status receive(const cpu_device *cpu, const hlo_job *job, const char **why) {
    const cpu_gathering *g = job->state;
    const party own = {.env = &cpu->env};
    const hlo_view none = {.data = NULL};
    hlo_message *m = NULL;
    hlo_status status = HLO_OK;
    if (g->peer >= 0)
        status = hlo_world_receive(&cpu->seat, g->channel, (uint32_t)g->peer, &m, why);
    bool fits = !m || m->count == job->result_count;
    for (uint32_t i = 0; i < job->result_count && status == HLO_OK && fits; i++) {
        const hlo_view *to = &job->results[i], *from = m ? &m->values[i] : NULL;
        if (from)
            fits = from->type == to->type && from->rank == to->rank &&
                   !memcmp(from->dims, to->dims, to->rank * sizeof *to->dims);
        if (fits && from)
            copy(&own, from, to);
        else if (fits)
            memset(to->data, 0, hlo_view_bytes(to));
        if (fits) copy(&own, m ? &m->sigmas[i] : &none, &job->result_sigmas[i]);
    }
    if (m) hlo_arena_free(m->arena);
    if (fits) return status;
    *why = "receives a value of another shape";
    return HLO_INVALID_INPUT;
}

/* -------------------------------------------------------------------------------------- refusal */

static const hlo_shape *leaf_of(const hlo_shape *shape, uint32_t leaf) {
    return shape->type == HLO_TYPE_TUPLE ? shape->elements[leaf] : shape;
}

/* Returns the shape of a result leaf. In the shape of an all-gather-start or
 * collective-permute-start, results follow the operands. */
static const hlo_shape *result_shape(const hlo_instruction *instr, uint32_t leaf) {
    const bool starts =
        instr->op == HLO_OP_ALL_GATHER_START || instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
    return leaf_of(starts ? instr->shape->elements[1] : instr->shape, leaf);
}

/* Returns why the shapes do not match a group of `count` devices, or NULL if they match. */
static const char *shape_refusal(const hlo_instruction *instr, int64_t count) {
    const hlo_ints *dims = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS);
    const bool gather = instr->op == HLO_OP_ALL_GATHER || instr->op == HLO_OP_ALL_GATHER_START;
    static const char misfit[] = "has shapes that do not match the number of devices in its groups";
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_shape *from = hlo_instr_operand(instr, i)->shape;
        if (!hlo_shape_is_array(from) || from->rank >= HLO_EVAL_MAX_RANK)
            return "has an operand that is not an array";
        if (gather && result_shape(instr, i)->dims[dims->v[0]] != from->dims[dims->v[0]] * count)
            return misfit;
        if (instr->op == HLO_OP_REDUCE_SCATTER &&
            result_shape(instr, i)->dims[dims->v[0]] * count != from->dims[dims->v[0]])
            return misfit;
        if (instr->op == HLO_OP_ALL_TO_ALL && dims->count && from->dims[dims->v[0]] % count)
            return misfit;
    }
    if (instr->op == HLO_OP_ALL_TO_ALL && !dims->count && instr->operand_count != count)
        return misfit;
    if (instr->op == HLO_OP_RAGGED_ALL_TO_ALL) {
        const hlo_shape *offsets = hlo_instr_operand(instr, 2)->shape;
        if (offsets->rank != 1 || offsets->dims[0] % count) return misfit;
    }
    return NULL;
}

/* Reads the sizes of the slices of a collective-permute, one list for each buffer. Returns NULL and
 * sets `why` if the operands do not match them. */
static const int64_t *find_slices(const hlo_instruction *instr, hlo_arena *arena,
                                  const char **why) {
    static const char misfit[] =
        "has operands that do not match: expected the buffers to read, the buffers to write, which "
        "have the shape of the result, and a tuple of start indices for each of both";
    *why = misfit;
    if (instr->operand_count != 4) return NULL;
    const bool starts = instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
    const hlo_shape *shapes[4], *result = starts ? instr->shape->elements[1] : instr->shape;
    for (uint32_t i = 0; i < 4; i++) shapes[i] = hlo_instr_operand(instr, i)->shape;
    const bool many = shapes[0]->type == HLO_TYPE_TUPLE;
    const uint32_t buffers = many ? shapes[0]->rank : 1;
    if (many != (shapes[1]->type == HLO_TYPE_TUPLE) || hlo_shape_leaf_count(shapes[1]) != buffers ||
        !hlo_shape_compatible(result, shapes[1]) ||
        (starts && !hlo_shape_compatible(instr->shape->elements[0], shapes[0])))
        return NULL;
    uint32_t total = 0;
    for (uint32_t i = 0; i < 4; i++)
        if (i > 1 && (shapes[i]->type != HLO_TYPE_TUPLE || (many && shapes[i]->rank != buffers)))
            return NULL;
    for (uint32_t b = 0; b < buffers; b++) {
        const hlo_shape *from = leaf_of(shapes[0], b), *to = leaf_of(shapes[1], b);
        if (!hlo_shape_is_array(from) || !hlo_shape_is_array(to) || from->type != to->type ||
            from->rank != to->rank || from->rank >= HLO_EVAL_MAX_RANK)
            return NULL;
        total += from->rank;
        for (uint32_t i = 2; i < 4; i++) {
            const hlo_shape *at = many ? shapes[i]->elements[b] : shapes[i];
            if (at->type != HLO_TYPE_TUPLE) return NULL;
            if (at->rank && at->elements[0]->type == HLO_TYPE_TUPLE) {
                *why = "has several start indices for a buffer. XLA does not define which pair of "
                       "devices uses which of them, so one is expected";
                return NULL;
            }
            if (at->rank != from->rank) return NULL;
            for (uint32_t d = 0; d < at->rank; d++)
                if (!hlo_shape_is_scalar(at->elements[d]) ||
                    !hlo_type_is_integer(at->elements[d]->type))
                    return NULL;
        }
    }
    /* The text has the form {{4,2},{8}}. */
    int64_t *sizes = hlo_arena_array(arena, total + 1, sizeof *sizes);
    const char *text = hlo_instr_attr(instr, HLO_ATTR_SLICE_SIZE_LISTS)->u.str;
    *why = "has slice_sizes that do not match: expected one list for each buffer, with a size for "
           "each dimension that does not exceed the buffer";
    uint32_t count = 0;
    for (uint32_t b = 0; b < buffers; b++) {
        const hlo_shape *from = leaf_of(shapes[0], b), *to = leaf_of(shapes[1], b);
        text += strcspn(text, "0123456789}");
        for (uint32_t d = 0; d < from->rank; d++) {
            char *end;
            const int64_t size = strtoll(text, &end, 10);
            if (end == text || size < 0 || size > from->dims[d] || size > to->dims[d]) return NULL;
            sizes[count++] = size;
            text = end + (*end == ',');
        }
        if (*text++ != '}') return NULL;
    }
    if (*text != '}') return NULL;
    *why = NULL;
    return sizes;
}

const char *cpu_collective_refusal(const cpu_device *cpu, const hlo_instruction *instr,
                                   hlo_arena *arena) {
    const hlo_seat *seat = &cpu->seat;
    const char *why = NULL;
    int64_t peer;
    if (is_transfer(instr)) return find_peer(seat, instr, arena, &peer);
    /* Find the minimum number of devices that the collective requires: from the module's header, or
     * from the devices that the collective names. */
    const hlo_module *module = instr->parent->module;
    const int64_t given = (int64_t)seat->replicas * seat->partitions;
    int64_t wanted = hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1) *
                     hlo_module_int(module, HLO_ATTR_REPLICA_COUNT, 1);
    const hlo_groups *groups = hlo_instr_groups(instr, HLO_ATTR_REPLICA_GROUPS);
    if (groups && groups->devices > wanted) wanted = groups->devices;
    const hlo_groups *pairs = hlo_instr_groups(instr, HLO_ATTR_SOURCE_TARGET_PAIRS);
    for (int64_t i = 0; pairs && i < 2 * pairs->count; i++) {
        const int64_t named = pairs->mesh.devices.listed->v[i] + 1;
        if (named > wanted) wanted = named;
    }
    if (wanted > given && given == 1)
        return hlo_arena_format(arena, "requires %lld devices: run the module with --devices=%lld",
                                (long long)wanted, (long long)wanted);
    if (instr->op == HLO_OP_PARTITION_ID || instr->op == HLO_OP_REPLICA_ID) return NULL;
    if (is_boundary(instr)) {
        const bool enters = hlo_manual_enters(instr);
        static const char unknown[] =
            "crosses the boundary of a manual region in an unsupported way";
        if (!enters && !find_joined(seat, instr, arena)) return unknown;
        for (uint32_t i = 0; i < instr->operand_count; i++) {
            const hlo_shape *from = hlo_instr_operand(instr, i)->shape,
                            *to = leaf_of(instr->shape, i);
            hlo_tiling t;
            if (!hlo_shape_is_array(from) || !hlo_shape_is_array(to) || from->rank != to->rank ||
                !hlo_manual_tiling(arena, instr, i, &t))
                return unknown;
            if (t.devices && t.devices != given)
                return hlo_arena_format(arena, "requires %lld devices, but there are %lld",
                                        (long long)t.devices, (long long)given);
            const hlo_shape *tile = enters ? to : from, *whole = enters ? from : to;
            for (uint32_t d = 0; d < from->rank; d++)
                if (tile->dims[d] * (t.devices ? t.counts[d] : 1) != whole->dims[d]) return unknown;
        }
        return NULL;
    }
    if (hlo_instr_attr(instr, HLO_ATTR_SLICE_SIZE_LISTS) && !find_slices(instr, arena, &why))
        return why;
    if (has_dynamic_root(instr)) {
        const hlo_shape *roots = hlo_instr_operand(instr, instr->operand_count - 1)->shape;
        if (roots->rank > 1 || hlo_shape_count(roots) < instr->operand_count - 1)
            return "requires a root for each operand";
    }
    const hlo_ints *members = find_members(seat, instr, arena, &why);
    if (!members) return why;
    if (is_permute(instr)) return find_sources(seat, instr, arena, &why) ? NULL : why;
    const hlo_attr *apply = hlo_instr_attr(instr, HLO_ATTR_TO_APPLY);
    for (uint32_t i = 0; apply && i < instr->operand_count; i++)
        if (apply->u.comp->parameters[0]->shape->type != hlo_instr_operand(instr, i)->shape->type)
            return "reduces in a type that differs from its operand type";
    return shape_refusal(instr, members->count);
}

/* ----------------------------------------------------------------------------------------- jobs */

void cpu_collective_prepare(const cpu_device *cpu, hlo_job *job, hlo_arena *arena) {
    const char *why;
    cpu_gathering *g = hlo_arena_zero(arena, sizeof *g);
    job->state = g;
    g->cpu = cpu;
    if (job->instr->op == HLO_OP_PARTITION_ID || job->instr->op == HLO_OP_REPLICA_ID) return;
    if (is_transfer(job->instr)) {
        g->channel = hlo_instr_int(job->instr, HLO_ATTR_CHANNEL_ID, 0);
        find_peer(&cpu->seat, job->instr, arena, &g->peer);
        return;
    }
    if (is_boundary(job->instr)) {
        g->tilings = hlo_arena_zero(arena, (job->operand_count + 1) * sizeof *g->tilings);
        for (uint32_t i = 0; i < job->operand_count; i++)
            hlo_manual_tiling(arena, job->instr, i, &g->tilings[i]);
        if (hlo_manual_leaves(job->instr)) g->members = find_joined(&cpu->seat, job->instr, arena);
        return;
    }
    g->members = find_members(&cpu->seat, job->instr, arena, &why);
    if (is_permute(job->instr)) g->sources = find_sources(&cpu->seat, job->instr, arena, &why);
    if (hlo_instr_attr(job->instr, HLO_ATTR_SLICE_SIZE_LISTS))
        g->sizes = find_slices(job->instr, arena, &why);
}

hlo_status cpu_collective_execute(const cpu_device *cpu, const hlo_job *job, const char **why) {
    const cpu_gathering *g = job->state;
    if (job->instr->op == HLO_OP_SEND) return send(cpu, job);
    if (job->instr->op == HLO_OP_RECV_DONE) return receive(cpu, job, why);
    if (g->members)
        return hlo_world_meet(&cpu->seat, (void *)(uintptr_t)(job->instr->id + 1), g->members,
                              (void *)(uintptr_t)job, exchange_all, why);
    if (g->tilings) {
        /* Copy the device's parts of whole arrays. */
        party p = {.jobs = &job, .count = 1, .instr = job->instr, .env = &cpu->env};
        const int64_t own = hlo_seat_number(&cpu->seat);
        part from;
        for (int round = 0; round <= job->bounded; round++) {
            p.sigmas = round;
            for (uint32_t i = 0; i < job->operand_count; i++)
                copy(&p, tile_of(sent(&p, 0, i), &g->tilings[i], own, &from), received(&p, 0, i));
        }
        return HLO_OK;
    }
    const uint32_t own =
        job->instr->op == HLO_OP_PARTITION_ID ? cpu->seat.partition : cpu->seat.replica;
    memcpy(job->results[0].data, &own, sizeof own);
    if (job->result_sigmas[0].data) memset(job->result_sigmas[0].data, 0, sizeof(float));
    return HLO_OK;
}
