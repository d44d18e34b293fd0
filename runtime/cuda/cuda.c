/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend's table: dispatches each job to the part that runs it. */
#include "runtime/cuda/driver/cuda.h"

#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cuda/codegen/kernel.h"

/* Jobs of --fallback=cpu: if no other part supports an instruction, the cpu backend runs it on host
 * copies of its operands. */
static bool host_supports(const cuda_device *device, const hlo_instruction *instr, hlo_arena *arena,
                          const char **why) {
    *why = NULL;
    return device->host_fallback && cpu_backend.supports(device->host, instr, arena, why);
}

static void *aligned(hlo_arena *arena, size_t size) {
    const size_t align = cpu_backend.alignment;
    uintptr_t memory = (uintptr_t)hlo_arena_alloc(arena, size + align);
    return (void *)((memory + align - 1) / align * align);
}

static hlo_view *on_host(const hlo_view *views, uint32_t count, hlo_arena *arena) {
    hlo_view *copies = hlo_arena_copy(arena, views, count * sizeof *views);
    for (uint32_t i = 0; i < count; i++) copies[i].data = aligned(arena, hlo_view_bytes(&views[i]));
    return copies;
}

/* Creates the job's state: a job of the cpu backend, with arrays in the arena. */
static hlo_status host_prepare(cuda_device *device, hlo_job *job, hlo_arena *arena,
                               const char **why) {
    hlo_job *host = hlo_arena_copy(arena, job, sizeof *job);
    hlo_status status = cpu_backend.prepare(device->host, host, arena, why);
    job->state = host;
    if (!device->lib) return status;
    host->operands = on_host(job->operands, job->operand_count, arena);
    host->results = on_host(job->results, job->result_count, arena);
    host->scratch = aligned(arena, host->scratch_size);
    return status;
}

static hlo_status host_execute(cuda_device *device, const hlo_job *job, const char **why) {
    const hlo_job *host = job->state;
    for (uint32_t i = 0; i < job->operand_count; i++)
        cuda_copy_out(device, host->operands[i].data, job->operands[i].data,
                      hlo_view_bytes(&job->operands[i]));
    if (device->failed) return cuda_fails(device, "read its operands", device->failed, why);
    hlo_status status = cpu_backend.execute(device->host, host, why);
    for (uint32_t i = 0; i < job->result_count && status == HLO_OK; i++)
        if (job->results[i].data)
            cuda_copy_in(device, job->results[i].data, host->results[i].data,
                         hlo_view_bytes(&job->results[i]));
    return status;
}

static void host_print(const cuda_device *device, const hlo_job *job, FILE *out) {
    (void)device;
    fprintf(out, "    on the CPU: it %s\n", job->host);
}

static const cuda_part host_part = {
    .name = "host",
    .supports = host_supports,
    .prepare = host_prepare,
    .execute = host_execute,
    .print = host_print,
};

/* Alignment that cuBLASLt requires for its workspace. */
enum { ALIGN = 256 };

/* All parts. The first part that supports an instruction runs it. */
static const cuda_part *const parts[] = {&cuda_matmul_part, &cuda_kernel_part, &host_part};
enum { PARTS = sizeof parts / sizeof *parts };

static void release_program(cuda_device *device, void *program) {
    (void)device;
    cuda_program_free(program);
}

static void release_host(cuda_device *device, void *host) {
    (void)device;
    cpu_backend.close(host);
}

static hlo_status cuda_open(const hlo_plan_options *options, const hlo_seat *seat,
                            const hlo_diag_sink *sink, void **out_device) {
    cuda_device *device;
    hlo_status status = cuda_device_open(options, sink, &device);
    *out_device = NULL;
    if (status != HLO_OK) return status;
    /* Create the state that jobs share: the kernels' program, and the cpu backend's device. */
    device->program = cuda_program_new();
    if (!device->program || !cuda_own(device, device->program, release_program))
        status = HLO_OUT_OF_MEMORY;
    if (status == HLO_OK && device->host_fallback) {
        status = cpu_backend.open(options, seat, sink, &device->host);
        if (status == HLO_OK && !cuda_own(device, device->host, release_host))
            status = HLO_OUT_OF_MEMORY;
    }
    if (status == HLO_OK)
        *out_device = device;
    else
        cuda_device_close(device);
    return status;
}

/* Returns the first part that supports the instruction, or NULL. Sets `why` to the first reason
 * that a previous part gives. */
static const cuda_part *find_part(const cuda_device *device, const hlo_instruction *instr,
                                  hlo_arena *arena, const char **why) {
    const cuda_part *found = NULL;
    *why = NULL;
    for (size_t i = 0; i < PARTS && !found; i++) {
        const char *reason = NULL;
        if (parts[i]->supports(device, instr, arena, &reason))
            found = parts[i];
        else if (!*why)
            *why = reason;
    }
    if (!*why) *why = "is not supported by the cuda backend";
    return found;
}

static bool cuda_supports(void *device, const hlo_instruction *instr, hlo_arena *arena,
                          const char **why) {
    return find_part(device, instr, arena, why) != NULL;
}

static hlo_status cuda_prepare(void *device, hlo_job *job, hlo_arena *arena, const char **why) {
    const cuda_part *part = &cuda_kernel_part;
    const bool alone = job->group.instr_count == 1;
    const char *reason = NULL, *ignored;
    hlo_status status = HLO_INVALID_INPUT;
    if (alone) part = find_part(device, job->instr, arena, &reason);
    if (part != &host_part) status = part->prepare(device, job, arena, &reason);
    /* A part may find only during code generation that it does not support the instruction. */
    if (status == HLO_INVALID_INPUT && alone &&
        host_part.supports(device, job->instr, arena, &ignored)) {
        part = &host_part;
        job->host = reason;
        status = part->prepare(device, job, arena, &reason);
    }
    job->kind = part;
    *why = reason;
    return status;
}

static hlo_status cuda_bind(void *device, hlo_job *job, const char **why) {
    cuda_device *d = device;
    if (!d->compiled) {
        hlo_status status = cuda_program_compile(d, why);
        if (status != HLO_OK) return status;
        d->compiled = true;
    }
    const cuda_part *part = job->kind;
    return part->bind ? part->bind(d, job, why) : HLO_OK;
}

static hlo_status cuda_execute(void *device, const hlo_job *job, const char **why) {
    return ((const cuda_part *)job->kind)->execute(device, job, why);
}

static void cuda_describe(void *device, const hlo_job *job, FILE *out) {
    ((const cuda_part *)job->kind)->print(device, job, out);
}

static void cuda_describe_shared(void *device, FILE *out) {
    const cuda_device *d = device;
    cuda_program_print(d->program, d->sm, out);
}

static void cuda_identify_all(void *device, FILE *out) {
    const cuda_device *d = device;
    cuda_identify(device, out);
    fflush(out); /* the next call runs on the device and may crash */
    const bool branches = cuda_branches(device);
    fprintf(out, "CUDA graphs: %s, %s, %s\n",
            branches ? "conditional nodes" : "no conditional nodes",
            d->parallel ? "parallel nodes" : "sequential nodes",
            d->early ? "programmatic dependent launch" : "no programmatic dependent launch");
}

const hlo_backend cuda_backend = {
    .name = "cuda",
    .alignment = ALIGN,
    .memory_kind = 2,
    .keeps_bounds = false,
    .own_clock = true,
    .open = cuda_open,
    .close = cuda_device_close,
    .group = cuda_kernel_group,
    .supports = cuda_supports,
    .prepare = cuda_prepare,
    .bind = cuda_bind,
    .execute = cuda_execute,
    .allocate = cuda_allocate,
    .release = cuda_release,
    .available = cuda_available,
    .identify = cuda_identify_all,
    .import = cuda_import,
    .copy_in = cuda_copy_in,
    .copy_out = cuda_copy_out,
    .copy = cuda_copy_within,
    .fill = cuda_fill,
    .mark = cuda_mark,
    .finish = cuda_finish,
    .seconds_between = cuda_seconds_between,
    .record = cuda_record,
    .recorded = cuda_recorded,
    .replay = cuda_replay,
    .branches = cuda_branches,
    .branch_begin = cuda_branch_begin,
    .branch_end = cuda_branch_end,
    .range_push = cuda_range_push,
    .range_pop = cuda_range_pop,
    .use_stream = cuda_use_stream,
    .event_new = cuda_event_new,
    .event_behind = cuda_event_behind,
    .event_free = cuda_event_free,
    .event_queue = cuda_event_queue,
    .event_wait = cuda_event_wait,
    .event_done = cuda_event_done,
    .describe = cuda_describe,
    .describe_shared = cuda_describe_shared,
};
