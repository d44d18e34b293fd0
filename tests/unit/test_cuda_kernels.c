/* Generated kernels, run by the stand-in of tests/cuda (the host's C++ compiler, thread after
 * thread) and compared with ir/eval: every group of every computation of the models, as they are
 * and after optimisation, on
 * random data. With --long all models, else some. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cuda_jobs.h"
#include "hlo/pass.h"
#include "hlo/text.h"
#include "ir/eval/bound.h"
#include "ir/eval/float.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/library.h"

static bool is_long;
static cuda_library standin;
static cuda_stream *stream;

/* ------------------------------------------------------------------------------------------ data
 */

static uint64_t random_state;

static uint64_t random_bits(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* Integers are indices as often as not, some out of bounds. */
static void draw(const hlo_view *view, int64_t count) {
    size_t bytes = hlo_types[view->type].bytes;
    for (int64_t i = 0; i < count; i++) {
        double a = (double)(random_bits() >> 11) * 0x1p-53,
               b = (double)(random_bits() >> 11) * 0x1p-53;
        double value = hlo_type_is_float(view->type) ? 4 * (a + b - 1) : floor(a * 12) - 2;
        if (view->type == HLO_TYPE_PRED) value = a < 0.5;
        hlo_number_store(view->type, (char *)view->data + (size_t)i * bytes, value);
    }
}

/* ------------------------------------------------------------------------------------- reference
 */

typedef struct value {
    hlo_view view, sigma;
} value;

static hlo_view new_view(hlo_arena *arena, const hlo_shape *shape, hlo_type type) {
    int64_t *strides = hlo_arena_array(arena, shape->rank + 1, sizeof *strides);
    hlo_shape_strides(shape, strides);
    size_t size = (size_t)hlo_shape_count(shape) * hlo_types[type].bytes;
    char *data = hlo_arena_alloc(arena, size + 128);
    data += 64 - (uintptr_t)data % 64;
    return (hlo_view){type, shape->rank, shape->dims, strides, data};
}

static value new_value(hlo_arena *arena, const hlo_shape *shape) {
    value v = {new_view(arena, shape, shape->type), new_view(arena, shape, HLO_TYPE_F32)};
    memset(v.sigma.data, 0, (size_t)hlo_shape_count(shape) * sizeof(float));
    return v;
}

static uint32_t leaf_count(const hlo_shape *shape) {
    return shape->type == HLO_TYPE_TUPLE ? shape->rank : 1;
}

static const hlo_shape *leaf(const hlo_shape *shape, uint32_t index) {
    return shape->type == HLO_TYPE_TUPLE ? shape->elements[index] : shape;
}

static value constant_value(hlo_arena *arena, const hlo_instr *instr) {
    value v = new_value(arena, instr->shape);
    int64_t *strides = hlo_arena_array(arena, instr->shape->rank + 1, sizeof *strides), stride = 1;
    for (uint32_t d = instr->shape->rank; d-- > 0; stride *= instr->shape->dims[d])
        strides[d] = stride;
    v.view.strides = strides;
    v.view.data = instr->u.literal->data;
    return v;
}

/* By instruction id: the leaves of each value. */
static void evaluate(hlo_arena *arena, const hlo_instr *instr, value **values) {
    hlo_view operands[128], sigmas[128], results[64], result_sigmas[64];
    uint32_t count = 0;
    if (instr->op == HLO_OP_CONSTANT) {
        values[instr->id] = hlo_arena_alloc(arena, sizeof **values);
        *values[instr->id] = constant_value(arena, instr);
        return;
    }
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instr *operand = hlo_instr_operand(instr, i);
        for (uint32_t l = 0; l < leaf_count(operand->shape); l++) {
            operands[count] = values[operand->id][l].view;
            sigmas[count++] = values[operand->id][l].sigma;
        }
    }
    uint32_t leaves = leaf_count(instr->shape);
    values[instr->id] = hlo_arena_array(arena, leaves, sizeof **values);
    for (uint32_t l = 0; l < leaves; l++) {
        value v = values[instr->id][l] = new_value(arena, leaf(instr->shape, l));
        results[l] = v.view;
        result_sigmas[l] = v.sigma;
    }
    const char *why = NULL;
    hlo_bound_options options = {0};
    if (hlo_eval(NULL, instr, operands, results, arena, &why) != HLO_OK ||
        hlo_eval_bound(NULL, instr, operands, sigmas, results, result_sigmas, &options, arena,
                       &why) != HLO_OK)
        fail_msg("%%%s: %s", instr->name, why);
}

/* ---------------------------------------------------------------------------------------- running
 */

static void *address_of(const hlo_job *job, const cuda_pointer *pointer) {
    if (pointer->kind == CUDA_SCRATCH) return (char *)job->scratch + pointer->offset;
    return pointer->kind == CUDA_OPERAND ? job->operands[pointer->index].data
                                         : job->results[pointer->index].data;
}

static void run(const cuda_code *code, const hlo_job *job, cuda_program *program,
                cuda_module *module) {
    for (uint32_t i = 0; i < code->launch_count; i++) {
        const cuda_launch *launch = &code->launches[i];
        void *data[CUDA_POINTERS], *arguments[CUDA_POINTERS];
        for (uint32_t p = 0; p < launch->pointer_count; p++) {
            data[p] = address_of(job, &launch->pointers[p]);
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

/* Runs one job and compares with what ir/eval makes of the group's members. */
static bool check(const hlo_module *m, hlo_job *job, const cuda_code *code, cuda_program *program,
                  cuda_module *module, hlo_arena *arena) {
    value **values = hlo_arena_zero(arena, m->next_id * sizeof *values);
    uint32_t at = 0;
    for (uint32_t i = 0; i < job->group.input_count; i++) {
        const hlo_instr *input = job->group.inputs[i];
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
        const hlo_instr *result = job->group.results[i];
        for (uint32_t l = 0; l < leaf_count(result->shape); l++) {
            hlo_bound_comparison c;
            hlo_bound_compare(&job->results[at++], &values[result->id][l].view,
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

/* ---------------------------------------------------------------------------------------- modules
 */

static void show(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(stderr, diag, 0);
}
static const hlo_diag_sink sink = {show, NULL};

static bool check_module(const hlo_module *m) {
    hlo_arena *arena = hlo_arena_new(NULL);
    jmp_buf recover;
    if (setjmp(recover)) fail_msg("no memory");
    hlo_arena_set_recover(arena, &recover);
    cuda_device device = {.sm = 90};
    cuda_program *program = cuda_program_new();
    jobs all = jobs_of_module(m, &device, arena);
    const cuda_code **codes = hlo_arena_array(arena, all.count, sizeof *codes);
    bool good = true;
    for (uint32_t i = 0; i < all.count; i++) {
        const char *why = NULL;
        codes[i] = cuda_code_new(&device, all.v[i], arena, &why);
        if (!codes[i]) fail_msg("%s: %%%s %s", m->name, all.v[i]->instr->name, why);
        for (uint32_t l = 0; l < codes[i]->launch_count; l++)
            if (codes[i]->launches[l].text) cuda_program_add(program, &codes[i]->launches[l]);
    }
    char *source = cuda_program_source(program, true);
    cuda_image image;
    cuda_module *module = NULL;
    if (cuda_image_compile(&standin, source, 90, &image) != HLO_OK)
        fail_msg("%s: %s", m->name, image.log);
    assert_int_equal(standin.cuModuleLoadData(&module, image.bytes), 0);
    for (uint32_t i = 0; i < all.count; i++) {
        hlo_arena_mark mark = hlo_arena_here(arena);
        good &= check(m, all.v[i], codes[i], program, module, arena);
        hlo_arena_release(arena, mark);
    }
    standin.cuModuleUnload(module);
    cuda_image_free(&image);
    free(source);
    cuda_program_free(program);
    hlo_arena_free(arena);
    return good;
}

static hlo_module *read_model(const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", HLO_MODELS, name);
    hlo_module *m;
    if (hlo_module_parse_file(path, &sink, &m) != HLO_OK) fail_msg("cannot read %s", path);
    if (hlo_module_verify(m, &sink) != HLO_OK) fail_msg("%s does not verify", path);
    return m;
}

static bool check_model(const char *name) {
    hlo_module *m = read_model(name);
    bool good = check_module(m);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    if (strstr(name, ".xla.") || strstr(name, ".spmd.")) {
        hlo_module_free(m);
        return good;
    }
    assert_int_equal(hlo_module_optimize(m, &options, NULL), HLO_OK);
    good &= check_module(m);
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

int main(int argc, char **argv) {
    is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    setenv("HLO_CUDA_DRIVER", HLO_STANDIN, 1);
    setenv("HLO_CUDA_NVRTC", HLO_STANDIN, 1);
    if (cuda_library_load(&standin, CUDA_DRIVER, &sink) != HLO_OK ||
        cuda_library_load(&standin, CUDA_NVRTC, &sink) != HLO_OK ||
        standin.cuStreamCreate(&stream, 0) != 0)
        return 1;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
