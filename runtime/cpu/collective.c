/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: participants and rendezvous. */
#include <string.h>

#include "runtime/cpu/collective.h"

static bool is_boundary(const hlo_instr *instr) {
    return hlo_manual_enters(instr) || hlo_manual_leaves(instr);
}

bool cpu_is_collective(const hlo_instr *instr) {
    const hlo_op op = instr->op;
    bool done = op == HLO_OP_ALL_GATHER_DONE || op == HLO_OP_ALL_REDUCE_DONE ||
                op == HLO_OP_COLLECTIVE_PERMUTE_DONE;
    return (hlo_op_is(op, HLO_COLLECTIVE) && !done) || op == HLO_OP_PARTITION_ID ||
           op == HLO_OP_REPLICA_ID || is_boundary(instr);
}

static bool is_permute(const hlo_instr *instr) {
    return instr->op == HLO_OP_COLLECTIVE_PERMUTE || instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
}

/* --------------------------------------------------------------------------------------- groups */

/* The meaning of the numbers in groups. */
typedef enum group_mode {
    REPLICAS,   /* replicas; each partition has separate groups */
    PARTITIONS, /* partitions; each replica has separate groups */
    BOTH,       /* replicas, with all their partitions */
    DEVICES     /* replica * partitions + partition */
} group_mode;

static group_mode mode_of(const hlo_instr *instr) {
    static const char *const words[] = {"cross_replica", "cross_partition",
                                        "cross_replica_and_partition", "flattened_id"};
    const char *mode = hlo_instr_str(instr, HLO_ATTR_MODE);
    for (int i = 0; mode && i < 4; i++)
        if (!strcmp(mode, words[i])) return (group_mode)i;
    if (hlo_instr_int(instr, HLO_ATTR_CHANNEL_ID, 0) <= 0) return REPLICAS;
    if (!hlo_op_has(instr->op, HLO_ATTR_USE_GLOBAL_DEVICE_IDS)) return PARTITIONS;
    return hlo_instr_int(instr, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0) ? DEVICES : BOTH;
}

/* Returns how many numbers groups may use, and the number of the device. */
static int64_t own_number(const hlo_seat *seat, group_mode mode, int64_t *out_own) {
    switch (mode) {
    case PARTITIONS: *out_own = seat->partition; return seat->partitions;
    case DEVICES:
        *out_own = hlo_seat_number(seat);
        return (int64_t)seat->replicas * seat->partitions;
    default: *out_own = seat->replica; return seat->replicas;
    }
}

/* Returns the devices that a list of numbers represents for the device, in order. */
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

/* Lists the participants of the device's group. Returns NULL if no group contains the device, or
 * with `why` set if the groups are for other devices. */
static const hlo_ints *find_members(const hlo_seat *seat, const hlo_instr *instr, hlo_arena *arena,
                                    const char **why) {
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

/* Lists the devices whose parts are joined by an instruction that leaves a manual region; NULL if
 * unknown. */
static const hlo_ints *find_joined(const hlo_seat *seat, const hlo_instr *leaves,
                                   hlo_arena *arena) {
    hlo_ints *all = first_numbers((int64_t)seat->replicas * seat->partitions, arena);
    if (hlo_boundary_calls(leaves, "SPMDShardToFullShape")) return all;
    const hlo_device_groups *groups = hlo_manual_joined(arena, leaves);
    if (!groups || (groups->count && groups->count != all->count)) return NULL;
    const uint32_t own = hlo_seat_number(seat);
    uint32_t count = 0;
    for (uint32_t d = 0; groups->count && d < all->count; d++)
        if (groups->of[d] == groups->of[own]) all->v[count++] = d;
    if (groups->count) all->count = count;
    return all;
}

/* Returns the source device of each device in a collective-permute. Returns NULL, with `why` set,
 * on error. */
static const hlo_ints *find_sources(const hlo_seat *seat, const hlo_instr *instr, hlo_arena *arena,
                                    const char **why) {
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

/* -------------------------------------------------------------------------------------- refusal */

static const hlo_shape *leaf_of(const hlo_shape *shape, uint32_t leaf) {
    return shape->type == HLO_TYPE_TUPLE ? shape->elements[leaf] : shape;
}

/* Returns a shape of the result; the result of a start comes after its operands. */
static const hlo_shape *result_shape(const hlo_instr *instr, uint32_t leaf) {
    const bool starts =
        instr->op == HLO_OP_ALL_GATHER_START || instr->op == HLO_OP_COLLECTIVE_PERMUTE_START;
    return leaf_of(starts ? instr->shape->elements[1] : instr->shape, leaf);
}

/* Returns why the shapes do not match a group of `count` devices; NULL if they do. */
static const char *shape_refusal(const hlo_instr *instr, int64_t count) {
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

const char *cpu_collective_refusal(const cpu_device *cpu, const hlo_instr *instr,
                                   hlo_arena *arena) {
    const hlo_seat *seat = &cpu->seat;
    const char *why = NULL;
    /* The minimum number of devices that the collective requires, from the header or from the
     * devices that it names. */
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
            const hlo_shape *part = enters ? to : from, *whole = enters ? from : to;
            for (uint32_t d = 0; d < from->rank; d++)
                if (part->dims[d] * (t.devices ? t.counts[d] : 1) != whole->dims[d]) return unknown;
        }
        return NULL;
    }
    if (hlo_instr_attr(instr, HLO_ATTR_SLICE_SIZE_LISTS))
        return "sends slices in place, which the cpu backend does not support";
    if (cpu_has_dynamic_root(instr)) {
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
    if (is_boundary(job->instr)) {
        g->tilings = hlo_arena_zero(arena, (job->operand_count + 1) * sizeof *g->tilings);
        for (uint32_t i = 0; i < job->operand_count; i++)
            hlo_manual_tiling(arena, job->instr, i, &g->tilings[i]);
        if (hlo_manual_leaves(job->instr)) g->members = find_joined(&cpu->seat, job->instr, arena);
        return;
    }
    g->members = find_members(&cpu->seat, job->instr, arena, &why);
    if (is_permute(job->instr)) g->sources = find_sources(&cpu->seat, job->instr, arena, &why);
}

hlo_status cpu_collective_execute(const cpu_device *cpu, const hlo_job *job, const char **why) {
    const cpu_gathering *g = job->state;
    if (g->members)
        return hlo_world_meet(&cpu->seat, (void *)(uintptr_t)(job->instr->id + 1), g->members,
                              (void *)(uintptr_t)job, cpu_exchange, why);
    if (g->tilings) {
        cpu_take_parts(cpu, job);
        return HLO_OK;
    }
    const uint32_t own =
        job->instr->op == HLO_OP_PARTITION_ID ? cpu->seat.partition : cpu->seat.replica;
    memcpy(job->results[0].data, &own, sizeof own);
    if (job->result_sigmas[0].data) memset(job->result_sigmas[0].data, 0, sizeof(float));
    return HLO_OK;
}
