/* SPDX-License-Identifier: Apache-2.0 */
/* Prints every matmul of a module as a cuBLASLt problem. Then calls the library (the fake, which
 * computes a call from its descriptors alone) on random operands, and compares the result with the
 * CPU backend, which does not use descriptors.
 *
 *   lt_calls [--sm=N] [--cublaslt=N] [--workspace=BYTES] [--algorithms=N] [--plan] FILE
 *
 * --cublaslt is a version as in CUDA_VERSION, such as 13010. --plan prints problems only.
 * Instructions that compute operands are not executed. The exit status is 1 if a matmul is
 * rejected, 3 if a result differs. */
#include <getopt.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/text.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/cublaslt/matmul.h"
#include "runtime/io/arrays.h"

enum { LEAVES = 16 };

typedef struct tester {
    hlo_module *module;
    hlo_arena *arena;
    cuda_library lib;
    cuda_device device;
    cuda_matmul_options options;
    void *cpu;
    uint64_t random;
    bool plan_only, refused, differs;
    int algorithms;
} tester;

static void print_diag(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}
static const hlo_diag_sink sink = {.emit = print_diag};

static const hlo_eval_env env;

static void fail(const char *what) {
    fprintf(stderr, "lt_calls: %s\n", what);
    exit(4);
}

/* ----------------------------------------------------------------------------------------- data */

static double uniform(tester *t) {
    t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(t->random >> 11) * 0x1p-53;
}

/* Draws approximately normal numbers, or numbers between 0.5 and 1.5 for f32 scalars (scales). */
static float draw(tester *t, const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_F32 && shape->rank == 0) return (float)(0.5 + uniform(t));
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += uniform(t);
    return (float)sum;
}

static hlo_view view_of(tester *t, const hlo_shape *shape, hlo_type type) {
    int64_t *strides = hlo_arena_array(t->arena, shape->rank + 1u, sizeof *strides);
    hlo_shape_strides(shape, strides);
    size_t size = (size_t)hlo_shape_count(shape) * hlo_types[type].bytes;
    return (hlo_view){type, shape->rank, shape->dims, strides, hlo_arena_zero(t->arena, size)};
}

static size_t bytes_of(const hlo_view *view) {
    return (size_t)hlo_view_count(view) * hlo_types[view->type].bytes;
}

/* Draws an operand, stored in its memory layout. */
static hlo_view make_operand(tester *t, const hlo_instruction *operand) {
    hlo_view out = view_of(t, operand->shape, operand->shape->type);
    hlo_view dense = hlo_view_scratch(t->arena, HLO_TYPE_F32, &out);
    if (operand->op == HLO_OP_CONSTANT && operand->u.literal->data) {
        dense.type = operand->shape->type;
        dense.data = operand->u.literal->data;
    } else {
        for (int64_t i = 0; i < hlo_view_count(&out); i++)
            ((float *)dense.data)[i] = draw(t, operand->shape);
    }
    hlo_view_convert(&env, &dense, &out);
    return out;
}

/* ---------------------------------------------------------------------------------------- judge */

typedef struct leaves {
    uint32_t operand_count, result_count;
    hlo_view operands[LEAVES], results[LEAVES], sigmas[LEAVES];
} leaves;

static void run_cpu(tester *t, const hlo_instruction *instr, leaves *l) {
    static const hlo_view exact[LEAVES];
    hlo_view operand_sigmas[LEAVES];
    memcpy(operand_sigmas, exact, sizeof exact);
    hlo_job job = {
        .instr = instr,
        .group = {.instr_count = 1, .result_count = 1, .instrs = &instr, .results = &instr},
        .operand_count = l->operand_count,
        .result_count = l->result_count,
        .operands = l->operands,
        .results = l->results,
        .operand_sigmas = operand_sigmas,
        .result_sigmas = l->sigmas,
        .bounded = true,
        .untouched = -1,
    };
    const char *why = "";
    if (hlo_backends[0]->prepare(t->cpu, &job, t->arena, &why) != HLO_OK) fail(why);
    job.scratch = aligned_alloc(64, (job.scratch_size + 64) / 64 * 64);
    if (hlo_backends[0]->execute(t->cpu, &job, &why) != HLO_OK) fail(why);
    free(job.scratch);
}

/* --------------------------------------------------------------------------------------- device */

typedef struct memory {
    cuda_address operands[LEAVES], results[LEAVES], scratch;
} memory;

static cuda_address allocate(tester *t, size_t size) {
    cuda_address made;
    if (t->lib.cuMemAlloc(&made, size ? size : 1)) fail("cuMemAlloc");
    return made;
}

static void *host(cuda_address at) {
    return (void *)(uintptr_t)at; /* the fake's memory is host memory */
}

static void *address(const memory *m, const cuda_pointer *at) {
    if (at->kind == CUDA_OPERAND) return host(m->operands[at->index]);
    if (at->kind == CUDA_RESULT) return host(m->results[at->index]);
    return (char *)host(m->scratch) + at->offset;
}

/* Packs 4-bit elements, two per byte, along the dimension whose size is halved. */
static void pack(const hlo_view *from, const hlo_view *to) {
    int64_t index[HLO_EVAL_MAX_RANK] = {0};
    uint32_t halved = 0;
    while (from->dims[halved] == to->dims[halved]) halved++;
    do {
        int64_t at[HLO_EVAL_MAX_RANK];
        memcpy(at, index, sizeof at);
        at[halved] *= 2;
        char low = *hlo_view_element(from, at);
        at[halved]++;
        *hlo_view_element(to, index) = (char)((low & 15) | *hlo_view_element(from, at) << 4);
    } while (hlo_dims_next(to->rank, to->dims, index));
}

static void copy_parts(const cuda_matmul *p, const memory *m, uint32_t begin, uint32_t end) {
    for (uint32_t i = begin; i < end; i++) {
        hlo_view from = p->copies[i].from_view, to = p->copies[i].to_view;
        from.data = address(m, &p->copies[i].from);
        to.data = address(m, &p->copies[i].to);
        if (from.type == HLO_TYPE_F4E2M1FN && to.type == HLO_TYPE_U8)
            pack(&from, &to);
        else
            hlo_view_convert(&env, &from, &to);
    }
}

/* Returns false, with a message, if the library rejects the call. */
static bool run_library(tester *t, const cuda_matmul *p, const memory *m) {
    void *addresses[LT_PART_COUNT] = {NULL};
    for (int part = 0; part < LT_PART_COUNT; part++)
        if (p->present >> part & 1) addresses[part] = address(m, &p->places[part]);
    char why[1024] = "";
    cuda_call *call = NULL;
    lt_heuristic found[8];
    uint32_t count = 0;
    copy_parts(p, m, 0, p->copies_before);
    hlo_status status = cuda_call_new(&t->device, p, addresses, why, sizeof why, &call);
    if (status == HLO_OK)
        status = cuda_call_heuristic(call, (uint32_t)t->algorithms, found, &count, why, sizeof why);
    for (uint32_t i = 0; i < count && status == HLO_OK; i++)
        status = cuda_call_launch(call, &found[i], addresses, why, sizeof why);
    cuda_call_free(call);
    copy_parts(p, m, p->copies_before, p->copy_count);
    if (status != HLO_OK) printf("    %s\n", why);
    return status == HLO_OK;
}

/* ----------------------------------------------------------------------------------- comparison */

static hlo_array as_array(tester *t, const hlo_view *view, const hlo_view *sigma) {
    hlo_view dense = hlo_view_scratch(t->arena, view->type, view);
    hlo_view_copy(&env, view, &dense);
    hlo_array array = {.struct_size = sizeof array,
                       .type = view->type,
                       .rank = view->rank,
                       .dims = view->dims,
                       .data = dense.data,
                       .size = bytes_of(view),
                       .noise = {-1, -1}};
    if (!sigma) return array;
    hlo_view bound = hlo_view_scratch(t->arena, HLO_TYPE_F32, view);
    hlo_view_copy(&env, sigma, &bound);
    array.bound = bound.data;
    return array;
}

static void compare(tester *t, const leaves *l, const cuda_matmul *p, const memory *m) {
    static const lt_part parts[] = {LT_PART_D, LT_PART_AUX, LT_PART_AMAX};
    uint32_t index = 0;
    for (int i = 0; i < 3; i++) {
        if (!(p->present >> parts[i] & 1)) continue;
        hlo_view other = l->results[index];
        other.data = host(m->results[index]);
        hlo_array judge = as_array(t, &l->results[index], &l->sigmas[index]);
        hlo_array mine = as_array(t, &other, NULL);
        hlo_difference d;
        hlo_difference_init(&d);
        bool agrees = hlo_array_compare(&judge, &mine, &d) == HLO_OK;
        printf("    %s %s\n", lt_part_name(parts[i]), agrees ? "agrees" : "differs");
        if (!agrees)
            printf("    %lld equal, %lld within, %lld one step, %lld not; at %lld %g and not %g, "
                   "within %g\n",
                   (long long)d.equal, (long long)d.within, (long long)d.one_step,
                   (long long)d.violations, (long long)d.worst, d.other, d.judge, d.bound);
        t->differs |= !agrees;
        index++;
    }
}

/* -------------------------------------------------------------------------------------- matmuls */

static void test_call(tester *t, const hlo_instruction *instr, const cuda_matmul *p) {
    leaves l = {.operand_count = instr->operand_count};
    memory m = {.scratch = allocate(t, p->scratch)};
    for (uint32_t i = 0; i < l.operand_count; i++) {
        uint32_t first = 0;
        while (hlo_instr_operand(instr, first) != hlo_instr_operand(instr, i)) first++;
        l.operands[i] =
            first < i ? l.operands[first] : make_operand(t, hlo_instr_operand(instr, i));
        m.operands[i] = allocate(t, bytes_of(&l.operands[i]));
        memcpy(host(m.operands[i]), l.operands[i].data, bytes_of(&l.operands[i]));
    }
    bool tuple = instr->shape->type == HLO_TYPE_TUPLE;
    l.result_count = tuple ? instr->shape->rank : 1;
    for (uint32_t i = 0; i < l.result_count; i++) {
        const hlo_shape *shape = tuple ? instr->shape->elements[i] : instr->shape;
        if (shape->type == HLO_TYPE_S8) continue; /* the workspace, whose contents are undefined */
        l.results[i] = view_of(t, shape, shape->type);
        l.sigmas[i] = view_of(t, shape, HLO_TYPE_F32);
        m.results[i] = allocate(t, bytes_of(&l.results[i]));
    }
    run_cpu(t, instr, &l);
    if (run_library(t, p, &m))
        compare(t, &l, p, &m);
    else
        t->refused = true;
    for (uint32_t i = 0; i < l.operand_count; i++) t->lib.cuMemFree(m.operands[i]);
    for (uint32_t i = 0; i < l.result_count; i++)
        if (m.results[i]) t->lib.cuMemFree(m.results[i]);
    t->lib.cuMemFree(m.scratch);
}

static void test_instr(tester *t, const hlo_instruction *instr) {
    cuda_matmul p;
    const char *why;
    hlo_arena_mark mark = hlo_arena_here(t->arena);
    bool planned = cuda_matmul_plan(instr, &t->options, t->arena, &p, &why);
    if (planned || why) {
        printf("%s\n", instr->name);
        if (planned)
            cuda_matmul_print(&p, "    ", stdout);
        else
            printf("    %s\n", why);
        t->refused |= !planned;
        if (planned && !t->plan_only) test_call(t, instr, &p);
    }
    hlo_arena_release(t->arena, mark);
}

static void open_device(tester *t) {
    setenv("HLO_CUDA_DRIVER", STANDIN, 0);
    setenv("HLO_CUDA_CUBLASLT", STANDIN, 0);
    cuda_context *context = NULL;
    cuda_stream *stream = NULL;
    lt_handle *handle = NULL;
    if (cuda_library_load(&t->lib, CUDA_DRIVER, &sink) != HLO_OK ||
        cuda_library_load(&t->lib, CUDA_CUBLASLT, &sink) != HLO_OK)
        exit(1);
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    const hlo_seat alone = {.replicas = 1, .partitions = 1};
    if (hlo_backends[0]->open(&options, &alone, &sink, &t->cpu) != HLO_OK || t->lib.cuInit(0) ||
        t->lib.cuDevicePrimaryCtxRetain(&context, 0) || t->lib.cuCtxSetCurrent(context) ||
        t->lib.cuStreamCreate(&stream, 0) || t->lib.cublasLtCreate(&handle))
        fail("no device");
    t->device = (cuda_device){.lib = &t->lib, .lt = handle, .stream = stream, .context = context};
}

static void close_device(tester *t) {
    hlo_backends[0]->close(t->cpu);
    t->lib.cublasLtDestroy(t->device.lt);
    t->lib.cuStreamDestroy(t->device.stream);
    t->lib.cuDevicePrimaryCtxRelease(0);
    cuda_library_unload(&t->lib);
}

int main(int argc, char **argv) {
    enum { SM = 1, CUBLASLT, WORKSPACE, ALGORITHMS, PLAN };
    static const struct option longs[] = {
        {"sm", required_argument, NULL, SM},
        {"cublaslt", required_argument, NULL, CUBLASLT},
        {"workspace", required_argument, NULL, WORKSPACE},
        {"algorithms", required_argument, NULL, ALGORITHMS},
        {"plan", no_argument, NULL, PLAN},
        {0},
    };
    static tester t;
    jmp_buf recover;
    int sm = 90;
    t = (tester){.options = {.cuda = 13010, .workspace = 4 << 20, .alignment = 256},
                 .random = 1,
                 .algorithms = 1};
    for (int option; (option = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (option == PLAN)
            t.plan_only = true;
        else if (option == '?')
            return 2;
        else if (option == SM)
            sm = atoi(optarg);
        else if (option == CUBLASLT)
            t.options.cuda = atoi(optarg);
        else if (option == WORKSPACE)
            t.options.workspace = (size_t)atol(optarg);
        else
            t.algorithms = atoi(optarg);
    }
    t.options.target = hlo_target_find(sm);
    if (optind + 1 != argc || !t.options.target) return 2;
    char text[16];
    snprintf(text, sizeof text, "%d", sm);
    setenv("HLO_STANDIN_SM", text, 0);
    if (setjmp(recover)) fail("out of memory");
    t.arena = hlo_arena_new(&recover);
    if (hlo_module_parse_file(argv[optind], &sink, &t.module) != HLO_OK ||
        hlo_module_verify(t.module, NULL, &sink) != HLO_OK)
        return 1;
    if (!t.plan_only) open_device(&t);
    for (const hlo_computation *comp = t.module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = i->next) test_instr(&t, i);
    if (!t.plan_only) close_device(&t);
    hlo_module_free(t.module);
    hlo_arena_free(t.arena);
    return t.differs ? 3 : t.refused ? 1 : 0;
}
