/* SPDX-License-Identifier: Apache-2.0 */
/* Executes calls on the CPU, as jobs of the cpu backend on XLA's threads. */
#include "runtime/cpu/cpu.h"
#include "ir/memory.h"

#include <stdlib.h>

#include "runtime/ffi/call.h"

/* A loop that XLA's threads share with the caller. XLA may start a thread's task at any time, even
 * after the end of the loop. Therefore the last thread that releases the loop frees it. */
typedef struct shared {
    cpu_loop loop;
    unsigned generation; /* the loop's generation, which tasks help */
    atomic_int holders, seats;
} shared;

static void let_go(shared *s) {
    if (atomic_fetch_sub(&s->holders, 1) != 1) return;
    cpu_loop_end(&s->loop);
    hlo_free(s);
}

static void help(void *data) {
    shared *s = data;
    cpu_loop_help(&s->loop, s->generation, 1 + atomic_fetch_add(&s->seats, 1));
    let_go(s);
}

/* Implements hlo_eval_env.parallel; `user` is the call's frame. */
static void share(void *user, int64_t count, void (*body)(void *arg, int64_t begin, int64_t end),
                  void *arg) {
    const ffi_frame *frame = user;
    const ffi_api *api = frame->api;
    int64_t threads = 0; /* number of XLA's threads; 0 if XLA provides no threads */
    ffi_thread_count query = {
        .size = FFI_SIZE(ffi_thread_count, count), .context = frame->context, .count = &threads};
    if (count > 1 && FFI_HAS(api, ffi_api, thread_count) && api->thread_count &&
        api->thread_schedule && api->error_free && !ffi_good(frame, api->thread_count(&query)))
        threads = 0;
    shared *s = threads > 1 ? hlo_aligned_alloc(_Alignof(shared), sizeof *s) : NULL;
    if (!s) {
        if (count > 0) body(arg, 0, count);
        return;
    }
    cpu_loop_init(&s->loop);
    cpu_loop_open(&s->loop, count, threads, body, arg);
    s->generation = atomic_load(&s->loop.generation);
    atomic_init(&s->holders, 1);
    atomic_init(&s->seats, 0);
    for (int64_t i = 1; i < threads && i < count; i++) {
        ffi_task task = {
            .size = FFI_SIZE(ffi_task, data), .context = frame->context, .run = help, .data = s};
        atomic_fetch_add(&s->holders, 1);
        if (ffi_good(frame, frame->api->thread_schedule(&task))) continue;
        let_go(s);
        break;
    }
    cpu_loop_finish(&s->loop);
    let_go(s);
}

static hlo_status execute(ffi_call *call, const char **why) {
    hlo_job *job = ffi_call_job(call, why);
    if (!job) return HLO_INVALID_INPUT;
    cpu_device device;
    cpu_device_init(&device, call->arena, (void *)call->frame, share);
    hlo_status status = HLO_INVALID_INPUT;
    hlo_arena *arena = call->module->arena;
    if (cpu_backend.supports(&device, job->instr, arena, why))
        status = cpu_backend.prepare(&device, job, arena, why);
    if (status != HLO_OK) return status;
    for (uint32_t i = 0; i < job->operand_count; i++)
        job->operands[i].data = ffi_buffer_at(&call->frame->operands, i)->data;
    for (uint32_t i = 0; i < job->result_count; i++)
        if ((int)i != job->untouched) /* the job does not write to the workspace */
            job->results[i].data = ffi_buffer_at(&call->frame->results, i)->data;
    const size_t align = cpu_backend.alignment;
    job->scratch = hlo_aligned_alloc(align, (job->scratch_size / align + 1) * align);
    if (!job->scratch) hlo_arena_exhausted(arena);
    hlo_arena_adopt(arena, job->scratch);
    return cpu_backend.execute(&device, job, why);
}

__attribute__((visibility("default"))) ffi_error *hlofp8_ffi_matmul_cpu(ffi_frame *frame) {
    return ffi_run(frame, execute);
}
