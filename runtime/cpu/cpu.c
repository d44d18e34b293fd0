/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU backend: uses the host's memory, and evaluates opcodes by ir/eval. */
#include "runtime/cpu/cpu.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "ir/error/error.h"
#include "ir/eval/eval.h"
#include "ir/kernel/kernel.h"
#include "ir/memory.h"
#include "matmul/call.h"
#include "runtime/grow.h"

enum { ALIGN = 64 };

static void cpu_close(void *device) {
    cpu_device *cpu = device;
    cpu_pool_free(cpu->pool);
    hlo_arena_free(cpu->scratch);
    hlo_free(cpu->marks);
    hlo_free(cpu);
}

void cpu_device_init(cpu_device *cpu, hlo_arena *scratch, void *user, cpu_parallel *parallel) {
    *cpu = (cpu_device){.scratch = scratch,
                        .env = {user, parallel, NULL},
                        .seat = {.replicas = 1, .partitions = 1}};
}

static hlo_status cpu_open(const hlo_plan_options *options, const hlo_seat *seat,
                           const hlo_diag_sink *sink, void **out_device) {
    (void)sink;
    cpu_device *cpu = hlo_calloc(1, sizeof *cpu);
    if (!cpu) return HLO_OUT_OF_MEMORY;
    const bool own = seat->world || !options->parallel_for;
    const int most =
        !options->threads || options->threads > INT_MAX ? INT_MAX : (int)options->threads;
    cpu_pool *pool = own ? cpu_pool_new(seat->world ? 1 : most) : NULL;
    if (own)
        cpu_device_init(cpu, hlo_arena_new(NULL), pool, cpu_pool_run);
    else
        cpu_device_init(cpu, hlo_arena_new(NULL), options->parallel_user, options->parallel_for);
    cpu->pool = pool;
    cpu->seat = *seat;
    cpu->wants_every_value = options->bounds || options->perturbed;
    if (!cpu->scratch || (own && !pool)) {
        cpu_close(cpu);
        return HLO_OUT_OF_MEMORY;
    }
    *out_device = cpu;
    return HLO_OK;
}

static bool is_matmul(const hlo_instruction *instr) {
    return hlo_matmul_is_call(instr) || hlo_matmul_is_wide_call(instr);
}

/* Why custom calls are not supported, by a part of the target. */
#define MISFIT "its operands, its result or its backend_config do not match the call"
#define BEFORE ". Run the module before optimizations, which has opcodes in its place"
#define FP8_ATTENTION                                                                              \
    "it is attention of fp8 values, and where cuDNN rounds is not documented. Use the attention "  \
    "of bf16 values"
static const struct {
    const char *word, *reason;
} refusals[] = {
    {"_python_",
     "it calls a Python function of the process that made the module. Remove the callback "
     "(jax.debug.print, jax.pure_callback, io_callback), or run the module in that process"},
    {"SoftmaxDropout",
     "cuDNN draws the random numbers of its dropout. Use the attention without dropout"},
    {"SoftmaxF8", FP8_ATTENTION},
    {"SoftmaxBackwardF8", FP8_ATTENTION},
    {"__cudnn$", "it calls cuDNN" BEFORE},
    {"__onednn$", "it calls oneDNN" BEFORE},
    {"__gpu$xla.gpu.triton", "it calls a Triton kernel, which has no HLO. Make the module with "
                             "pallas_call(interpret=True), "
                             "or without the kernel"},
    {"__gpu$", "it calls a kernel of XLA's GPU compiler" BEFORE},
    {"te_fused_attn_",
     "it calls Transformer Engine. Set NVTE_FUSED_ATTN=0 when the module is made"},
    {"AllocateBuffer", MISFIT},
    {"LayoutConstraint", MISFIT},
    {"MoveTo", MISFIT},
    {"PadToStatic", MISFIT},
    {"PinTo", MISFIT},
    {"RadixSort", MISFIT},
    {"SetBound", MISFIT},
    {"ShardBarrier", MISFIT},
    {"Sharding", MISFIT},
    {"annotate_device_placement", MISFIT},
    {"cub_sort_", MISFIT},
    {"xla.sdy.PropagationBarrier", MISFIT},
};

static bool cpu_supports(void *device, const hlo_instruction *instr, hlo_arena *arena,
                         const char **why) {
    const char *reason = NULL;
    if (cpu_is_collective(instr)) {
        *why = cpu_collective_refusal(device, instr, arena);
        return !*why;
    }
    if (cpu_is_random(instr->op)) {
        *why = cpu_random_refusal(instr);
        return !*why;
    }
    if (is_matmul(instr)) return cpu_matmul_supports(instr, arena, why);
    const bool lapack = cpu_is_lapack(instr);
    if (lapack) reason = cpu_lapack_refusal(device, instr, arena);
    if (lapack ? !reason : hlo_eval_supports(instr, &reason)) return true;
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    for (size_t i = 0; target && i < sizeof refusals / sizeof *refusals; i++)
        if (strstr(target, refusals[i].word)) {
            reason = refusals[i].reason;
            break;
        }
    if (target)
        *why = hlo_arena_format(arena, "of \"%s\" is not supported by the cpu backend: %s", target,
                                reason);
    else
        *why = reason ? hlo_arena_format(arena, "is not supported by the cpu backend: %s", reason)
                      : "is not supported by the cpu backend";
    return false;
}

static uint32_t cpu_group(void *device, const hlo_instruction *const *live, uint32_t count,
                          hlo_arena *arena, hlo_group **out_groups) {
    const cpu_device *cpu = device;
    *out_groups = NULL;
    return cpu->wants_every_value ? 0 : cpu_tile_group(live, count, arena, out_groups);
}

static hlo_status cpu_prepare(void *device, hlo_job *job, hlo_arena *arena, const char **why) {
    (void)why;
    if (job->group.instr_count > 1)
        cpu_tile_prepare(job, arena);
    else if (job->group.instr_count && is_matmul(job->instr))
        cpu_matmul_prepare(job, arena);
    else if (job->group.instr_count && cpu_is_collective(job->instr))
        cpu_collective_prepare(device, job, arena);
    else if (job->group.instr_count && cpu_is_random(job->instr->op))
        cpu_random_prepare(job, arena);
    else if (job->group.instr_count && cpu_is_lapack(job->instr))
        cpu_lapack_prepare(device, job, arena);
    else if (job->group.instr_count) {
        /* Find the operands whose memory the result may reuse, as ir/eval allows. With sigmas,
         * results need separate memory. */
        const hlo_instruction *instr = job->instr;
        uint32_t candidates = 0;
        if (hlo_op_is(instr->op, HLO_ELEMENTWISE)) candidates = job->operand_count;
        if (instr->op == HLO_OP_DYNAMIC_UPDATE_SLICE) candidates = 1;
        if (instr->op == HLO_OP_SCATTER && job->result_count == 1) candidates = 1;
        if (job->bounded || job->perturbed) candidates = 0;
        const hlo_view *to = &job->results[0];
        for (uint32_t i = 0; i < candidates; i++) {
            const hlo_view *from = &job->operands[i];
            const size_t size = from->rank * sizeof *from->dims;
            if (from->type == to->type && from->rank == to->rank &&
                (!size || (memcmp(from->dims, to->dims, size) == 0 &&
                           memcmp(from->strides, to->strides, size) == 0)))
                hlo_overwrites_add(&job->overwrites, arena, 0, i);
        }
    }
    return HLO_OK;
}

static hlo_status run(cpu_device *cpu, const hlo_job *job, const char **why) {
    if (job->group.instr_count == 0) {
        hlo_view_copy(&cpu->env, &job->operands[0], &job->results[0]);
        const hlo_view *from = &job->operand_sigmas[0], *to = &job->result_sigmas[0];
        if (to->data && from->data)
            hlo_view_copy(&cpu->env, from, to);
        else if (to->data)
            memset(to->data, 0, (size_t)hlo_view_count(to) * sizeof(float));
        return HLO_OK;
    }
    if (job->group.instr_count > 1) {
        cpu_tile_execute(cpu, job);
        return HLO_OK;
    }
    if (is_matmul(job->instr)) return cpu_matmul_execute(cpu, job, why);
    if (cpu_is_random(job->instr->op)) {
        cpu_random_execute(cpu, job);
        return HLO_OK;
    }
    if (cpu_is_collective(job->instr)) return cpu_collective_execute(cpu, job, why);
    if (cpu_is_lapack(job->instr)) return cpu_lapack_execute(cpu, job, why);
    hlo_status status =
        hlo_eval(&cpu->env, job->instr, job->operands, job->results, cpu->scratch, why);
    if (status != HLO_OK || !job->bounded) return status;
    const hlo_error_options options = cpu_error_options(job);
    return hlo_error_sigmas(&cpu->env, job->instr, job->operands, job->operand_sigmas, job->results,
                            job->result_sigmas, &options, cpu->scratch, why);
}

/* Runs the job and perturbs the results by the job's own rounding errors, which are the sigmas that
 * the results have if the operands are exact. */
static hlo_status run_perturbed(cpu_device *cpu, const hlo_job *job, const char **why) {
    hlo_job own = *job;
    own.bounded = true;
    own.result_sigmas = hlo_arena_zero(cpu->scratch, job->result_count * sizeof(hlo_view));
    for (uint32_t i = 0; i < job->result_count; i++)
        if (job->results[i].data)
            own.result_sigmas[i] = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, &job->results[i]);
    /* Detect a scaling of converted 8-bit values: equal results have equal operands. */
    const hlo_instruction *instr = job->instr;
    bool dequantizes = false;
    if (instr && (instr->op == HLO_OP_MULTIPLY || instr->op == HLO_OP_DIVIDE))
        for (uint32_t i = 0; i < 2; i++) {
            const hlo_instruction *value = hlo_instr_operand(instr, i);
            dequantizes |= value->op == HLO_OP_CONVERT &&
                           hlo_types[hlo_instr_operand(value, 0)->shape->type].bytes == 1;
        }
    hlo_status status = run(cpu, &own, why);
    for (uint32_t i = 0; i < job->result_count && status == HLO_OK; i++)
        if (job->results[i].data)
            hlo_error_perturb(&job->results[i], own.result_sigmas[i].data, HLO_ERROR_AMPLITUDE,
                              job->stream + i, dequantizes);
    return status;
}

static hlo_status cpu_execute(void *device, const hlo_job *job, const char **why) {
    cpu_device *cpu = device;
    jmp_buf recover;
    bool perturbed = job->perturbed && job->group.instr_count;
    hlo_arena_mark mark = hlo_arena_here(cpu->scratch);
    hlo_arena_set_recover(cpu->scratch, &recover);
    hlo_status status = HLO_OUT_OF_MEMORY;
    cpu->env.watch = job->watch;
    if (cpu->pool) cpu_pool_watch(cpu->pool, job->watch);
    if (!setjmp(recover)) status = (perturbed ? run_perturbed : run)(cpu, job, why);
    hlo_arena_set_recover(cpu->scratch, NULL);
    hlo_arena_release(cpu->scratch, mark);
    return status;
}

static void *cpu_allocate(void *device, size_t size) {
    (void)device;
    return hlo_aligned_alloc(ALIGN, (size + ALIGN - 1) / ALIGN * ALIGN);
}

static void cpu_identify(void *device, FILE *out) {
    const cpu_device *cpu = device;
    fprintf(out, "matrix products: for %s, %d threads\n", hlo_product_processor(),
            cpu_pool_threads(cpu->pool));
}

static void cpu_release(void *device, void *memory) {
    (void)device;
    hlo_free(memory);
}

static const void *cpu_import(void *device, const void *bytes, size_t size) {
    (void)device;
    (void)size;
    return bytes;
}

static void cpu_copy(void *device, void *to, const void *from, size_t size) {
    (void)device;
    if (size) memcpy(to, from, size);
}

static void cpu_fill(void *device, void *memory, unsigned char byte, size_t size) {
    (void)device;
    if (size) memset(memory, byte, size);
}

/* If memory for the mark runs out, omits the mark; finish() reports the error. */
static void cpu_mark(void *device, uint32_t index) {
    cpu_device *cpu = device;
    struct timespec now;
    if (!hlo_heap_grow(&cpu->marks, (size_t)index + 1, &cpu->mark_capacity, sizeof *cpu->marks)) {
        cpu->unmarked = true;
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    cpu->marks[index] = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static hlo_status cpu_finish(void *device, const char **why) {
    cpu_device *cpu = device;
    (void)why;
    const bool unmarked = cpu->unmarked;
    cpu->unmarked = false;
    return unmarked ? HLO_OUT_OF_MEMORY : HLO_OK;
}

static hlo_status cpu_seconds_between(void *device, uint32_t from, uint32_t to, double *out_seconds,
                                      const char **why) {
    const cpu_device *cpu = device;
    (void)why;
    *out_seconds = cpu->marks[to] - cpu->marks[from];
    return HLO_OK;
}

const hlo_backend cpu_backend = {
    .name = "cpu",
    .alignment = ALIGN,
    .memory_kind = 1,
    .keeps_bounds = true,
    .rearranges = true,
    .simulates = true,
    .open = cpu_open,
    .close = cpu_close,
    .group = cpu_group,
    .supports = cpu_supports,
    .prepare = cpu_prepare,
    .execute = cpu_execute,
    .allocate = cpu_allocate,
    .release = cpu_release,
    .identify = cpu_identify,
    .import = cpu_import,
    .copy_in = cpu_copy,
    .copy_out = cpu_copy,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .mark = cpu_mark,
    .finish = cpu_finish,
    .seconds_between = cpu_seconds_between,
};
