/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of --fallback=cpu: the cpu backend runs an instruction that no other part supports on copies
 * of its operands. */
#include "ir/kernel/kernel.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cuda/driver/cuda.h"

static bool supports(const cuda_device *device, const hlo_instr *instr, hlo_arena *arena,
                     const char **why) {
    *why = NULL;
    return device->host_fallback && cpu_backend.supports(device->host, instr, arena, why);
}

static void *aligned(hlo_arena *arena, size_t size) {
    uintptr_t memory = (uintptr_t)hlo_arena_alloc(arena, size + cpu_backend.alignment);
    return (void *)((memory + cpu_backend.alignment - 1) / cpu_backend.alignment *
                    cpu_backend.alignment);
}

static hlo_view *on_host(const hlo_view *views, uint32_t count, hlo_arena *arena) {
    hlo_view *copies = hlo_arena_copy(arena, views, count * sizeof *views);
    for (uint32_t i = 0; i < count; i++) copies[i].data = aligned(arena, hlo_view_bytes(&views[i]));
    return copies;
}

/* Creates the job's state: a job of the host, whose arrays are in the plan's memory. */
static hlo_status prepare(cuda_device *device, hlo_job *job, hlo_arena *arena, const char **why) {
    hlo_job *host = hlo_arena_copy(arena, job, sizeof *job);
    hlo_status status = cpu_backend.prepare(device->host, host, arena, why);
    job->state = host;
    if (!device->lib) return status;
    host->operands = on_host(job->operands, job->operand_count, arena);
    host->results = on_host(job->results, job->result_count, arena);
    host->scratch = aligned(arena, host->scratch_size);
    return status;
}

static hlo_status execute(cuda_device *device, const hlo_job *job, const char **why) {
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

static void print(const cuda_device *device, const hlo_job *job, FILE *out) {
    (void)device;
    fprintf(out, "    on the CPU: it %s\n", job->host);
}

const cuda_part cuda_host_part = {
    .name = "host",
    .supports = supports,
    .prepare = prepare,
    .execute = execute,
    .print = print,
};
