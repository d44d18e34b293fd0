/* SPDX-License-Identifier: Apache-2.0 */
/* Runs generated kernels with the fake libraries of tests/cuda (the host's C++ compiler, one thread
 * after another) and compares them with ir/eval: every group of every computation of the models,
 * before and after optimization, on random data. Tests some models, or all with --long. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_jobs.h"
#include "cuda_reference.h"
#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/text.h"
#include "ir/error/error.h"
#include "ir/eval/apply.h"
#include "ir/float/float.h"
#include "runtime/cuda/codegen/kernel.h"
#include "runtime/cuda/driver/library.h"

static bool is_long;
static cuda_library standin;
static cuda_stream *stream;

/* -------------------------------------------------------------------------------------- running */

static void run(const cuda_code *code, const hlo_job *job, cuda_program *program,
                cuda_module *module) {
    for (uint32_t i = 0; i < code->launch_count; i++) {
        const cuda_launch *launch = &code->launches[i];
        void *data[CUDA_POINTERS], *arguments[CUDA_POINTERS];
        for (uint32_t p = 0; p < launch->pointer_count; p++) {
            data[p] = cuda_pointer_of(job, &launch->pointers[p]);
            arguments[p] = &data[p];
        }
        if (!launch->text) {
            memcpy(data[1], data[0], launch->bytes);
            continue;
        }
        cuda_function *function;
        const char *name = cuda_program_add(program, launch);
        assert_int_equal(standin.cuModuleGetFunction(&function, module, name), 0);
        assert_int_equal(standin.cuLaunchKernel(function, launch->grid, 1, 1, launch->block, 1, 1,
                                                0, stream, arguments, NULL),
                         0);
    }
}

static void print_job(const hlo_job *job, const cuda_code *code) {
    for (uint32_t i = 0; i < job->group.instr_count; i++)
        fprintf(stderr, " %%%s = %s", job->group.instrs[i]->name,
                hlo_ops[job->group.instrs[i]->op].name);
    fputs("\n", stderr);
    for (uint32_t i = 0; i < code->launch_count; i++)
        if (code->launches[i].text)
            fprintf(stderr, "%s%s\n", code->launches[i].form, code->launches[i].text);
}

static value *drawn(hlo_arena *arena, const hlo_shape *shape) {
    value *values = hlo_arena_array(arena, leaf_count(shape), sizeof *values);
    for (uint32_t l = 0; l < leaf_count(shape); l++) {
        values[l] = new_value(arena, leaf(shape, l));
        draw(&values[l].view, hlo_shape_count(leaf(shape, l)));
    }
    return values;
}

/* Runs one job and compares the results with those of ir/eval for the group's members. */
static bool check(const hlo_module *m, hlo_job *job, const cuda_code *code, cuda_program *program,
                  cuda_module *module, hlo_arena *arena) {
    value **values = hlo_arena_zero(arena, m->next_id * sizeof *values);
    uint32_t at = 0;
    for (uint32_t i = 0; i < job->group.input_count; i++) {
        const hlo_instruction *input = job->group.inputs[i];
        uint32_t leaves = leaf_count(input->shape);
        if (!values[input->id]) values[input->id] = drawn(arena, input->shape);
        for (uint32_t l = 0; l < leaves; l++)
            job->operands[at++].data = values[input->id][l].view.data;
    }
    for (uint32_t i = 0; i < job->group.instr_count; i++)
        evaluate(arena, job->group.instrs[i], values);
    at = 0;
    for (uint32_t i = 0; i < job->group.result_count; i++)
        for (uint32_t l = 0; l < leaf_count(job->group.results[i]->shape); l++)
            job->results[at++].data =
                new_value(arena, leaf(job->group.results[i]->shape, l)).view.data;
    job->scratch = hlo_arena_alloc(arena, code->scratch_size + 16);
    run(code, job, program, module);
    bool good = true;
    at = 0;
    for (uint32_t i = 0; i < job->group.result_count; i++) {
        const hlo_instruction *result = job->group.results[i];
        for (uint32_t l = 0; l < leaf_count(result->shape); l++) {
            hlo_error_comparison c;
            hlo_error_compare(&job->results[at++], &values[result->id][l].view,
                              &values[result->id][l].sigma, &c);
            if (!c.violations) continue;
            good = false;
            fprintf(stderr, "%s: %%%s: %lld of %lld differ, element %lld: %g is not %g within %g\n",
                    m->name, result->name, (long long)c.violations,
                    (long long)hlo_shape_count(leaf(result->shape, l)), (long long)c.worst_index,
                    c.worst_a, c.worst_b, c.worst_bound);
        }
    }
    if (!good) print_job(job, code);
    return good;
}

/* -------------------------------------------------------------------------------------- modules */

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}
static const hlo_diag_sink sink = {show, NULL};

enum { MODULES = 64 }; /* maximum number of modules in one program */

typedef struct checked {
    const hlo_module *module;
    jobs jobs;
    const cuda_code **codes;
} checked;

/* Generates the code of a module's jobs, and adds its kernels to the program. */
static checked generate(const hlo_module *m, cuda_program *program, hlo_arena *arena) {
    const cuda_device device = {.sm = 90, .processors = CUDA_PROCESSORS};
    checked c = {.module = m, .jobs = jobs_of_module(m, &device, arena)};
    c.codes = hlo_arena_array(arena, c.jobs.count + 1, sizeof *c.codes);
    for (uint32_t i = 0; i < c.jobs.count; i++) {
        const char *why = NULL;
        c.codes[i] = cuda_code_new(&device, c.jobs.v[i], arena, &why);
        if (!c.codes[i]) fail_msg("%s: %%%s %s", m->name, c.jobs.v[i]->instr->name, why);
        for (uint32_t l = 0; l < c.codes[i]->launch_count; l++)
            if (c.codes[i]->launches[l].text) cuda_program_add(program, &c.codes[i]->launches[l]);
    }
    return c;
}

static bool check_modules(hlo_module *const *modules, size_t count) {
    hlo_arena *arena = hlo_arena_new(NULL);
    jmp_buf recover;
    if (setjmp(recover)) fail_msg("no memory");
    hlo_arena_set_recover(arena, &recover);
    cuda_program *program = cuda_program_new();
    checked all[MODULES];
    for (size_t i = 0; i < count; i++) all[i] = generate(modules[i], program, arena);
    char *source = cuda_program_source(program);
    cuda_image image;
    cuda_module *module = NULL;
    if (cuda_image_compile(&standin, source, 90, &image) != HLO_OK) fail_msg("%s", image.log);
    assert_int_equal(standin.cuModuleLoadData(&module, image.bytes), 0);
    bool good = true;
    for (size_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < all[i].jobs.count; k++) {
            hlo_arena_mark mark = hlo_arena_here(arena);
            good &= check(modules[i], all[i].jobs.v[k], all[i].codes[k], program, module, arena);
            hlo_arena_release(arena, mark);
        }
    standin.cuModuleUnload(module);
    cuda_image_free(&image);
    hlo_free(source);
    cuda_program_free(program);
    hlo_arena_free(arena);
    return good;
}

static hlo_module *read_model(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", HLO_MODELS, name);
    hlo_module *m;
    if (hlo_module_parse_file(path, &sink, &m) != HLO_OK) fail_msg("cannot read %s", path);
    if (hlo_module_verify(m, NULL, &sink) != HLO_OK) fail_msg("%s does not verify", path);
    return m;
}

static bool check_model(const char *name) {
    hlo_module *m = read_model(name);
    bool good = check_modules(&m, 1);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    if (strstr(name, ".xla.") || strstr(name, ".spmd.")) {
        hlo_module_free(m);
        return good;
    }
    assert_int_equal(hlo_module_optimize(m, &options, NULL), HLO_OK);
    good &= check_modules(&m, 1);
    hlo_module_free(m);
    return good;
}

static const char *const some[] = {
    "encoder_qdq_train.hlo", "seed_relu_damax.hlo", "scan_layers.hlo",
    "mlp_qdq_train.xla.hlo", "unaligned.hlo",       "slice_between.hlo",
};

static void test_models(void **state) {
    (void)state;
    bool good = true;
    if (!is_long) {
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) good &= check_model(some[i]);
        assert_true(good);
        return;
    }
    DIR *folder = opendir(HLO_MODELS);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        if (end && strcmp(end, ".hlo") == 0) good &= check_model(entry->d_name);
    }
    closedir(folder);
    assert_true(good);
}

/* ----------------------------------------------------------------------------- opcode by opcode */

static hlo_module *parse(const char *text) {
    hlo_module *m;
    if (hlo_module_parse(text, strlen(text), "forms", &sink, &m) != HLO_OK) fail_msg("%s", text);
    if (hlo_module_verify(m, NULL, &sink) != HLO_OK) fail_msg("%s", text);
    return m;
}

enum { FIRST_TYPE = HLO_TYPE_PRED, LAST_TYPE = HLO_TYPE_F64 };

/* True if HLO defines the elementwise opcode on the type. */
static bool takes(hlo_op op, hlo_type type) {
    const hlo_kernel *kernel = hlo_kernel_of(op);
    if (!kernel || !kernel->ops || op == HLO_OP_COMPARE || op == HLO_OP_SELECT ||
        op == HLO_OP_COMPLEX)
        return false;
    bool whole = hlo_type_is_integer(type), pred = type == HLO_TYPE_PRED;
    switch (op) {
    case HLO_OP_NOT:
    case HLO_OP_AND:
    case HLO_OP_OR:
    case HLO_OP_XOR: return whole || pred;
    case HLO_OP_SIGN:
    case HLO_OP_ABS: return hlo_type_is_float(type) || hlo_types[type].class == HLO_CLASS_SIGNED;
    case HLO_OP_REAL:
    case HLO_OP_IMAG: return hlo_type_is_float(type);
    case HLO_OP_MAXIMUM:
    case HLO_OP_MINIMUM: return true;
    default: return !pred && kernel->ops[0].loop[hlo_lane_of(type)];
    }
}

/* Returns a module that applies every elementwise opcode to the type, and converts the type to all
 * other types. */
static char *elementwise_module(hlo_type type) {
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    const char *name = hlo_types[type].name;
    uint32_t count = 0;
    fprintf(out, "HloModule m\n\nENTRY e {\n");
    for (int p = 0; p < 3; p++) fprintf(out, "  x%d = %s[3,96] parameter(%d)\n", p, name, p);
    fprintf(out, "  c = pred[3,96] parameter(3)\n  s = %s[3,96] select(c, x0, x1)\n", name);
    for (int op = 0; op < HLO_OP_COUNT; op++) {
        if (!takes((hlo_op)op, type)) continue;
        const hlo_elementwise *kernel = hlo_kernel_of((hlo_op)op)->ops;
        fprintf(out, "  r%u = %s[3,96] %s(x0%s%s)%s\n", count++,
                op == HLO_OP_IS_FINITE ? "pred" : name, hlo_ops[op].name,
                kernel->arity > 1 ? ", x1" : "", kernel->arity > 2 ? ", x2" : "",
                op == HLO_OP_REDUCE_PRECISION ? ", exponent_bits=4, mantissa_bits=2" : "");
    }
    static const char *const words[] = {"EQ", "NE", "LT", "LE", "GT", "GE"};
    for (int w = 0; w < 6; w++) {
        fprintf(out, "  r%u = pred[3,96] compare(x0, x1), direction=%s\n", count++, words[w]);
        if (hlo_type_is_float(type))
            fprintf(out, "  r%u = pred[3,96] compare(x0, x1), direction=%s, type=TOTALORDER\n",
                    count++, words[w]);
    }
    for (int to = FIRST_TYPE; to <= LAST_TYPE; to++)
        if (to != (int)type)
            fprintf(out, "  r%u = %s[3,96] convert(x0)\n", count++, hlo_types[to].name);
    fprintf(out, "  ROOT t = tuple(s");
    for (uint32_t i = 0; i < count; i++) fprintf(out, ", r%u", i);
    fprintf(out, ")\n}\n");
    fclose(out);
    return text;
}

static bool is_common(hlo_type type) {
    static const hlo_type common[] = {HLO_TYPE_PRED,      HLO_TYPE_S4,     HLO_TYPE_S32,
                                      HLO_TYPE_U8,        HLO_TYPE_F8E5M2, HLO_TYPE_F8E4M3FN,
                                      HLO_TYPE_F8E8M0FNU, HLO_TYPE_BF16,   HLO_TYPE_F32};
    for (size_t i = 0; i < sizeof common / sizeof *common; i++)
        if (common[i] == type) return true;
    return false;
}

static void test_elementwise(void **state) {
    (void)state;
    bool good = true;
    draws_specials = true;
    for (int type = FIRST_TYPE; type <= LAST_TYPE; type++) {
        if (!is_long && !is_common((hlo_type)type)) continue;
        char *text = elementwise_module((hlo_type)type);
        hlo_module *m = parse(text);
        good &= check_modules(&m, 1);
        hlo_module_free(m);
        free(text);
    }
    draws_specials = false;
    assert_true(good);
}

#define REGIONS                                                                                    \
    "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n"             \
    "addh { a = bf16[] parameter(0) b = bf16[] parameter(1) ROOT r = bf16[] add(a, b) }\n"         \
    "most { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }\n"        \
    "mosti { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] maximum(a, b) }\n"       \
    "any { a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] or(a, b) }\n"           \
    "odd { a = f32[] parameter(0) b = f32[] parameter(1) c = f32[] abs(b) ROOT r = f32[] "         \
    "maximum(a, c) }\n"                                                                            \
    "set { a = f32[] parameter(0) ROOT b = f32[] parameter(1) }\n"                                 \
    "less { a = f32[] parameter(0) b = f32[] parameter(1) i = s32[] parameter(2) j = s32[] "       \
    "parameter(3) ROOT r = pred[] compare(a, b), direction=LT, type=TOTALORDER }\n"                \
    "argmost { a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] "    \
    "parameter(3) g = pred[] compare(a, b), direction=GE v = f32[] select(g, a, b) k = s32[] "     \
    "select(g, i, j) ROOT t = tuple(v, k) }\n"

static const char *const forms[] = {
    /* reduces over rows, columns, both, none; long enough for several blocks to share a sum */
    "x = f32[40000] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), "
    "dimensions={0}, to_apply=add",
    "x = f32[1200000] parameter(0) z = f32[] constant(0) ROOT r = f32[] reduce(x, z), "
    "dimensions={0}, to_apply=most",
    "x = f32[3,33000] parameter(0) z = f32[] constant(2) ROOT r = f32[3] reduce(x, z), "
    "dimensions={1}, to_apply=add",
    "x = bf16[700,50] parameter(0) z = bf16[] constant(0) ROOT r = bf16[50] reduce(x, z), "
    "dimensions={0}, to_apply=addh",
    "x = f32[6,5,7] parameter(0) z = f32[] constant(-inf) ROOT r = f32[5] reduce(x, z), "
    "dimensions={0,2}, to_apply=most",
    "x = f32[6,5,70]{1,2,0} parameter(0) z = f32[] constant(-inf) ROOT r = f32[6,5] reduce(x, z), "
    "dimensions={2}, to_apply=most",
    /* rows that a few lanes sum, each of which reads the sum; columns that several lanes of a warp
     * sum */
    "x = f32[50,40] parameter(0) z = f32[] constant(0) s = f32[50] reduce(x, z), dimensions={1}, "
    "to_apply=add b = f32[50,40] broadcast(s), dimensions={0} y = f32[50,40] subtract(x, b) m = "
    "f32[50] reduce(y, z), dimensions={1}, to_apply=most c = f32[50,40] broadcast(m), "
    "dimensions={0} ROOT d = f32[50,40] subtract(y, c)",
    "x = pred[900,3] parameter(0) z = pred[] constant(false) ROOT r = pred[3] reduce(x, z), "
    "dimensions={0}, to_apply=any",
    "x = f32[70000,12] parameter(0) z = f32[] constant(-inf) ROOT r = f32[12] reduce(x, z), "
    "dimensions={0}, to_apply=most",
    "x = f32[4,9] parameter(0) z = f32[] constant(1) ROOT r = f32[4,9] reduce(x, z), "
    "dimensions={}, to_apply=add",
    "x = f32[0,9] parameter(0) z = f32[] constant(1) ROOT r = f32[9] reduce(x, z), "
    "dimensions={0}, to_apply=add",
    "x = s32[5,100] parameter(0) z = s32[] constant(-2147483648) ROOT r = s32[5] reduce(x, z), "
    "dimensions={1}, to_apply=mosti",
    "x = pred[5,100] parameter(0) z = pred[] constant(false) ROOT r = pred[5] reduce(x, z), "
    "dimensions={1}, to_apply=any",
    "x = f32[5,100] parameter(0) z = f32[] constant(0) ROOT r = f32[5] reduce(x, z), "
    "dimensions={1}, to_apply=odd",
    "x = f32[3,40000] parameter(0) z = f32[] constant(0) ROOT r = f32[3] reduce(x, z), "
    "dimensions={1}, to_apply=odd",
    "x = f32[7,300] parameter(0) i = s32[7,300] iota(), iota_dimension=1 z = f32[] constant(-inf) "
    "n = s32[] constant(0) ROOT r = (f32[7], s32[7]) reduce(x, i, z, n), dimensions={1}, "
    "to_apply=argmost",
    "x = f32[40,16384] parameter(0) z = f32[] constant(0) s = f32[40] reduce(x, z), "
    "dimensions={1}, to_apply=add b = f32[40,16384] broadcast(s), dimensions={0} d = "
    "f32[40,16384] subtract(x, b) y = bf16[40,16384] convert(d) ROOT t = tuple(y, s)",
    "x = f32[300,40] parameter(0) z = f32[] constant(0) s = f32[40] reduce(x, z), dimensions={0}, "
    "to_apply=add b = f32[300,40] broadcast(s), dimensions={1} ROOT d = f32[300,40] divide(x, b)",
    /* a value and its transpose computed from one read, with the amax */
    "x = f32[256,512] parameter(0) z = f32[] constant(0) q = f8e4m3fn[256,512] convert(x) t = "
    "f8e4m3fn[512,256] transpose(q), dimensions={1,0} a = f32[256,512] abs(x) m = f32[] reduce(a, "
    "z), dimensions={0,1}, to_apply=most ROOT r = tuple(q, t, m)",
    "x = bf16[64,2048] parameter(0) b = bf16[2048] parameter(1) w = bf16[64,2048] broadcast(b), "
    "dimensions={1} s = bf16[64,2048] add(x, w) q = f8e5m2[64,2048] convert(s) t = "
    "f8e5m2[2048,64] transpose(q), dimensions={1,0} ROOT r = tuple(q, t)",
    "x = bf16[256,512] parameter(0) q = f8e4m3fn[256,512] convert(x) ROOT t = f8e4m3fn[512,256] "
    "transpose(q), dimensions={1,0}",
    "x = f32[3,256,1024] parameter(0) ROOT t = f32[1024,3,256] transpose(x), dimensions={2,0,1}",
    "x = f32[256,512]{0,1} parameter(0) ROOT r = f32[256,512]{1,0} copy(x)",
    "x = f32[512,512] parameter(0) y = f32[512,512] transpose(x), dimensions={1,0} ROOT r = "
    "f32[512,512] add(x, y)",
    "x = f32[1024,1024] parameter(0) z = f32[] constant(0) y = f16[1024,1024] convert(x) t = "
    "f16[1024,1024] transpose(y), dimensions={1,0} s = f32[] reduce(x, z), dimensions={0,1}, "
    "to_apply=add ROOT r = tuple(t, s)",
    "x = f32[6,10]{0,1} parameter(0) ROOT r = f32[6,10]{1,0} copy(x)",
    "x = f32[6,10]{0,1} parameter(0) ROOT r = f32[3,2,10]{2,1,0} reshape(x)",
    "x = f32[6,10]{0,1} parameter(0) y = f32[10,6]{1,0} bitcast(x) ROOT r = f32[10,6] negate(y)",
    "x = f32[2,3,4,5] parameter(0) a = f32[6,20] reshape(x) b = f32[20,6] transpose(a), "
    "dimensions={1,0} c = f32[4,5,2,3] reshape(b) ROOT r = f32[4,5,2,3] exponential(c)",
    "x = f32[6,10] parameter(0) ROOT r = f32[3,4] slice(x), slice={[0:6:2], [1:9:2]}",
    "x = f32[6,10] parameter(0) ROOT r = f32[6,10] reverse(x), dimensions={1}",
    "x = f32[6,10] parameter(0) z = f32[] parameter(1) ROOT r = f32[7,29] pad(x, z), "
    "padding=2_-1x-1_2_2",
    "x = f32[6,10] parameter(0) y = f32[6,1] parameter(1) ROOT r = f32[6,21] concatenate(x, y, x), "
    "dimensions={1}",
    "x = f32[6,10] parameter(0) i = s32[] parameter(1) j = s64[] parameter(2) k = s32[] convert(j) "
    "ROOT r = f32[2,3] dynamic-slice(x, i, k), dynamic_slice_sizes={2,3}",
    "x = f32[6,10] parameter(0) u = f32[2,3] parameter(1) v = f32[2,3] negate(u) i = u8[] "
    "parameter(2) j = u8[] parameter(3) ROOT r = f32[6,10] dynamic-update-slice(x, v, i, j)",
    "c = f32[] constant(3) x = f32[6,10] broadcast(c), dimensions={} u = f32[1,10] parameter(0) i "
    "= s32[] parameter(1) j = s32[] constant(0) ROOT r = f32[6,10] dynamic-update-slice(x, u, i, "
    "j)",
    "x = f32[6,10] parameter(0) i = s32[5,1] parameter(1) ROOT r = f32[5,10] gather(x, i), "
    "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
    "slice_sizes={1,10}",
    "x = f32[4,6,10] parameter(0) i = s32[4,5] parameter(1) ROOT r = f32[4,5,3] gather(x, i), "
    "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
    "start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1,3}",
    "x = f32[6,10] parameter(0) i = s32[5,1] parameter(1) u = f32[5,10] parameter(2) ROOT r = "
    "f32[6,10] scatter(x, i, u), update_window_dims={1}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "x = f32[12] parameter(0) i = s32[7] parameter(1) u = f32[7] parameter(2) ROOT r = f32[12] "
    "scatter(x, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=set",
    "x = f32[6,10] parameter(0) i = s32[3,2] parameter(1) u = f32[3,2,4] parameter(2) ROOT r = "
    "f32[6,10] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, "
    "scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=odd",
    /* windows along the first dimension: whole, partial and empty */
    "x = f32[6,10] parameter(0) i = s32[3,1] parameter(1) u = f32[4,3] parameter(2) ROOT r = "
    "f32[6,10] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={1}, "
    "scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add",
    "x = f32[4,6,10] parameter(0) i = s32[5,4] parameter(1) u = f32[3,5,4] parameter(2) ROOT r = "
    "f32[4,6,10] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={1}, "
    "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, "
    "index_vector_dim=2, to_apply=set",
    "x = f32[6,10] parameter(0) i = s32[2,5] parameter(1) ROOT r = f32[3,5,2] gather(x, i), "
    "offset_dims={0,2}, collapsed_slice_dims={}, start_index_map={1,0}, index_vector_dim=0, "
    "slice_sizes={3,2}",
    "x = f32[3,50] parameter(0) i = s32[3,50] parameter(1) ROOT r = (f32[3,50], s32[3,50]) sort(x, "
    "i), dimensions={1}, is_stable=true, to_apply=less",
    "x = f32[8,9] parameter(0) z = f32[] constant(0) ROOT r = f32[4,9] reduce-window(x, z), "
    "window={size=3x2 stride=2x1 pad=0_1x1_0}, to_apply=add",
    "x = f32[8,9] parameter(0) z = f32[] constant(0) ROOT r = f32[15,8] reduce-window(x, z), "
    "window={size=1x2 lhs_dilate=2x1}, to_apply=add",
    "x = f32[30] parameter(0) y = f32[30] parameter(1) ROOT r = f32[30] map(x, y), dimensions={0}, "
    "to_apply=odd",
    "x = f32[30] parameter(0) y = u32[30] bitcast-convert(x) z = u32[30] not(y) ROOT r = f32[30] "
    "bitcast-convert(z)",
    /* bitcast-convert splits elements into parts, low bits first */
    "x = f32[30,8] parameter(0) f = f4e2m1fn[30,8] convert(x) y = f4e2m1fn[30,4,2] reshape(f) b = "
    "u8[30,4] bitcast-convert(y) ROOT r = u8[30,4] not(b)",
    "x = s32[30] parameter(0) y = u8[30,4] bitcast-convert(x) z = s4[30,4,2] bitcast-convert(y) "
    "ROOT r = s32[30,4,2] convert(z)",
    "x = f64[30] parameter(0) y = f32[30,2] bitcast-convert(x) ROOT r = u16[30,2,2] "
    "bitcast-convert(y)",
    "x = u16[30,2] parameter(0) y = f32[30] bitcast-convert(x) ROOT r = f32[30] negate(y)",
    "x = s2[5,32]{0,1} parameter(0) ROOT r = s64[5] bitcast-convert(x)",
    "x = u4[30] parameter(0) y = s4[30] bitcast-convert(x) z = f4e2m1fn[30] bitcast-convert(y) "
    "ROOT "
    "r = tuple(y, z)",
    "x = f4e2m1fn[6,10]{0,1} parameter(0) ROOT r = f4e2m1fn[10,6]{1,0} bitcast(x)",
    "ROOT i = bf16[5,300] iota(), iota_dimension=1",
    /* one row per block, or less than one element per thread */
    "x = f32[2,70000] parameter(0) s = f32[2] parameter(1) b = f32[2,70000] broadcast(s), "
    "dimensions={0} m = f32[2,70000] multiply(x, b) ROOT q = f8e4m3fn[2,70000] convert(m)",
    "x = f32[1,131073] parameter(0) ROOT q = f16[1,131073] convert(x)",
};

static void test_forms(void **state) {
    (void)state;
    enum { FORMS = sizeof forms / sizeof *forms };
    hlo_module *modules[FORMS];
    for (size_t i = 0; i < FORMS; i++) {
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        fprintf(out, "HloModule form_%zu\n\n%s\nENTRY e {\n%s\n}\n", i, REGIONS, forms[i]);
        fclose(out);
        modules[i] = parse(text);
        free(text);
    }
    bool good = check_modules(modules, FORMS);
    for (size_t i = 0; i < FORMS; i++) hlo_module_free(modules[i]);
    assert_true(good);
}

int main(int argc, char **argv) {
    is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    cuda_context *context;
    setenv("HLO_CUDA_DRIVER", HLO_STANDIN, 1);
    setenv("HLO_CUDA_NVRTC", HLO_STANDIN, 1);
    if (cuda_library_load(&standin, CUDA_DRIVER, &sink) != HLO_OK ||
        cuda_library_load(&standin, CUDA_NVRTC, &sink) != HLO_OK ||
        standin.cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        standin.cuCtxSetCurrent(context) != 0 || standin.cuStreamCreate(&stream, 0) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms),
                                       cmocka_unit_test(test_elementwise),
                                       cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
