/* SPDX-License-Identifier: Apache-2.0 */
/* Tests plans for an absent device, and for the cpu. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/ir.h"

static const char source[] = "HloModule m\n"
                             "ENTRY e {\n"
                             "  a = f8e4m3fn[32,64] parameter(0)\n"
                             "  b = f8e4m3fn[64,48] parameter(1)\n"
                             "  ROOT d = f32[32,48] dot(a, b), lhs_contracting_dims={1}, "
                             "rhs_contracting_dims={0}\n"
                             "}\n";

static int errors;
static char said[256]; /* message of the last error */

static void count(void *user, const hlo_diag *diag) {
    (void)user;
    if (diag->severity != HLO_ERROR) return;
    errors++;
    snprintf(said, sizeof said, "%s", diag->message);
}

/* Checks that a call was rejected with exactly one error. */
static void misused(hlo_status status, const char *message) {
    assert_int_equal(status, HLO_INVALID_USAGE);
    assert_int_equal(errors, 1);
    assert_string_equal(said, message);
    errors = 0;
}

static const hlo_diag_sink sink = {count, NULL};

static hlo_module *parse(void) {
    hlo_module *module = NULL;
    assert_int_equal(hlo_module_parse(source, strlen(source), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_module_verify(module, NULL, &sink), HLO_OK);
    errors = 0;
    return module;
}

static hlo_plan_options described(const char *target) {
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.backend = "cuda";
    options.target = target;
    return options;
}

static char *print(const hlo_plan *plan) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    hlo_plan_print(plan, hlo_file_writer(out));
    fclose(out);
    return text;
}

static void a_plan_is_described_without_a_device(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan *plan;
    hlo_plan_options options = described("sm_90");
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    char *text = print(plan);
    assert_non_null(strstr(text, "plan of m for cuda"));
    assert_non_null(strstr(text, "cublasLtMatmul m=48 n=32 k=64"));
    free(text);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

static void what_is_only_described_does_not_run(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan *plan;
    hlo_arrays *inputs, *outputs = NULL;
    hlo_plan_options options = described("sm_89");
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    misused(hlo_plan_run(plan, inputs, &sink, &outputs),
            "the plan was created with `target`, so it can only be printed");
    assert_null(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

static void each_invalid_option_is_an_error(void **state) {
    (void)state;
    static const hlo_plan_options wrong[] = {
        {.backend = "cuda", .target = "sm_90", .devices = 1, .bounds = true},
        {.backend = "cuda", .target = "sm_90", .devices = 1, .perturbed = true},
        {.backend = "cuda", .target = "sm_90", .devices = 2},
        {.backend = "cuda", .target = "sm_91", .devices = 1},
        {.backend = "cuda", .target = "sm_90", .cuda = "0.1", .devices = 1},
        {.backend = "tpu", .devices = 1},
        {.backend = NULL, .devices = 1},
        {.backend = "cpu", .devices = 0},
        {.backend = "cpu", .devices = HLO_MAX_DEVICES + 1},
        {.backend = "cpu", .devices = 1, .resident = true, .bounds = true},
        {.backend = "cpu", .devices = 1, .resident = true, .perturbed = true},
        {.backend = "cpu", .devices = 2, .resident = true},
        {.backend = "cpu", .devices = 1, .resident = true, .donation_count = 3},
        {.backend = "cpu", .devices = 1, .accumulate = 9},
        {.backend = "cpu", .devices = 1, .fp8_rounding = 9},
    };
    static const char *const why[] = {
        "the cuda backend does not support bounds",
        "the cuda backend does not support perturbed",
        "the cuda backend does not simulate devices",
        "unknown target 'sm_91'",
        "invalid CUDA version '0.1', expected MAJOR.MINOR with MAJOR of at least 1, for example "
        "12.8",
        "this build of the library has no backend 'tpu'",
        "this build of the library has no backend ''",
        "invalid value 0 for devices, expected 1 to 1024",
        "invalid value 1025 for devices, expected 1 to 1024",
        "resident cannot be combined with bounds",
        "resident cannot be combined with perturbed",
        "resident cannot be combined with several devices",
        "donations must not be NULL, because donation_count is 3",
        "invalid value 9 for accumulate",
        "invalid value 9 for fp8_rounding",
    };
    hlo_module *module = parse();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        hlo_plan_options options = wrong[i];
        hlo_plan *plan;
        options.struct_size = sizeof options;
        misused(hlo_plan_new(module, &options, &sink, &plan), why[i]);
        assert_null(plan);
    }
    hlo_module_free(module);
}

static void an_architecture_that_is_too_old_is_an_error(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan *plan;
    hlo_plan_options options = described("sm_70");
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_INVALID_USAGE);
    assert_int_equal(errors, 1);
    hlo_module_free(module);
}

/* A module that was not verified is verified before it is planned; each error is reported. */
static void an_invalid_module_has_no_plan(void **state) {
    (void)state;
    static const char text[] = "HloModule m\nENTRY e {\n  a = f32[2] parameter(0)\n"
                               "  b = f32[3] negate(a)\n  ROOT c = f32[4] abs(a)\n}\n";
    hlo_module *module;
    hlo_plan *plan;
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &module), HLO_OK);
    errors = 0;
    assert_int_equal(hlo_plan_new(module, NULL, &sink, &plan), HLO_INVALID_INPUT);
    assert_null(plan);
    assert_int_equal(errors, 2);
    hlo_module_free(module);
}

static void without_the_libraries_there_is_one_error(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan *plan;
    hlo_plan_options options = described(NULL);
    setenv("HLO_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_INVALID_INPUT);
    assert_null(plan);
    assert_int_equal(errors, 1);
    unsetenv("HLO_CUDA_DRIVER");
    hlo_module_free(module);
}

/* The layout that a pass assigns to a constant may differ from the layout of its literal; the
 * elements do not change. */
static void a_constant_is_read_in_the_layout_of_its_instruction(void **state) {
    (void)state;
    static const char text[] = "HloModule m\n"
                               "ENTRY e {\n"
                               "  c = f32[2,3] constant({{1,2,3},{4,5,6}})\n"
                               "  ROOT n = f32[2,3] negate(c)\n"
                               "}\n";
    static const float expected[] = {-1, -2, -3, -4, -5, -6};
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &module), HLO_OK);
    hlo_instruction *constant = module->entry->first;
    constant->shape = hlo_shape_with_layout(module, HLO_TYPE_F32, 2, constant->shape->dims,
                                            (const int64_t[]){0, 1});
    assert_int_equal(hlo_arrays_new(&inputs), HLO_OK);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
    assert_memory_equal(hlo_arrays_at(outputs, 0)->data, expected, sizeof expected);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

/* Runs the plan again, compares the outputs with those of the first run, and frees everything. */
static void run_again(hlo_module *module, hlo_plan *plan, hlo_arrays *inputs, hlo_arrays *first) {
    hlo_arrays *second = NULL;
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &second), HLO_OK);
    assert_memory_equal(hlo_arrays_at(first, 0)->data, hlo_arrays_at(second, 0)->data,
                        hlo_arrays_at(first, 0)->size);
    hlo_arrays_free(second);
    hlo_arrays_free(first);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

static void a_run_is_timed_again_and_changes_nothing(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan *plan;
    hlo_arrays *inputs, *first = NULL;
    double seconds[40];
    assert_int_equal(hlo_plan_new(module, NULL, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    misused(hlo_plan_time(plan, 1, &sink, seconds),
            "hlo_plan_time() repeats a run of hlo_plan_run(), but there was none");
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &first), HLO_OK);
    misused(hlo_plan_time(plan, HLO_MAX_RUNS + 1u, &sink, seconds),
            "1073741825 runs exceed the maximum of 1073741824");
    assert_int_equal(hlo_plan_time(plan, 0, &sink, seconds), HLO_OK);
    assert_int_equal(hlo_plan_time(plan, 40, &sink, seconds), HLO_OK);
    for (int i = 0; i < 40; i++) assert_true(seconds[i] > 0);
    run_again(module, plan, inputs, first);
}

static void a_run_over_its_inputs_is_not_timed_again(void **state) {
    (void)state;
    hlo_module *module = parse();
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_arrays *inputs, *first = NULL;
    double seconds;
    hlo_plan_options_init(&options);
    options.overwrites_inputs = true;
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &first), HLO_OK);
    misused(hlo_plan_time(plan, 1, &sink, &seconds),
            "the plan was created with `overwrites_inputs`, so runs cannot be repeated");
    run_again(module, plan, inputs, first);
}

static bool note(void *user, const hlo_progress *progress) {
    hlo_progress *first = user;
    if (!first->instruction) *first = *progress;
    return true;
}

/* A run reports progress from its first instruction on; the total counts loops of known length. */
static void progress_begins_with_a_run(void **state) {
    (void)state;
    static const char text[] =
        "HloModule m\n"
        "c { s = (s32[], f32[2]) parameter(0)\n"
        "  i = s32[] get-tuple-element(s), index=0\n  n = s32[] constant(5)\n"
        "  ROOT l = pred[] compare(i, n), direction=LT }\n"
        "b { s = (s32[], f32[2]) parameter(0)\n"
        "  i = s32[] get-tuple-element(s), index=0\n  o = s32[] constant(1)\n"
        "  j = s32[] add(i, o)\n  v = f32[2] get-tuple-element(s), index=1\n"
        "  w = f32[2] cosine(v)\n  ROOT t = (s32[], f32[2]) tuple(j, w) }\n"
        "ENTRY e { p = f32[2] parameter(0)\n  z = s32[] constant(0)\n"
        "  s = (s32[], f32[2]) tuple(z, p)\n"
        "  w = (s32[], f32[2]) while(s), condition=c, body=b\n"
        "  v = f32[2] get-tuple-element(w), index=1\n  ROOT last = f32[2] sine(v) }\n";
    hlo_progress first = {.done = -1};
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.progress = note;
    options.progress_user = &first;
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
    assert_int_equal(first.done, 0);
    assert_int_equal(first.total, 11);
    assert_null(hlo_plan_values(plan));
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

/* The loops that a callback divides. */
typedef struct loops {
    int count;
    int64_t step; /* the size of a range */
} loops;

static void divide(void *user, int64_t total, void (*body)(void *arg, int64_t begin, int64_t end),
                   void *arg) {
    loops *l = user;
    l->count++;
    for (int64_t end = total, begin; end > 0; end = begin) {
        begin = end > l->step ? end - l->step : 0;
        body(arg, begin, end);
    }
}

/* A run has the same outputs with any number of threads, and on the threads of the caller. */
static void threads_do_not_change_results(void **state) {
    (void)state;
    loops l[] = {{.step = 1}, {.step = 7}, {.step = INT64_MAX}};
    static const char large[] = "HloModule m\n"
                                "ENTRY e {\n"
                                "  a = f32[300,200] parameter(0)\n"
                                "  b = f32[200,250] parameter(1)\n"
                                "  d = f32[300,250] dot(a, b), lhs_contracting_dims={1}, "
                                "rhs_contracting_dims={0}\n"
                                "  ROOT t = f32[300,250] tanh(d)\n"
                                "}\n";
    hlo_module *module;
    assert_int_equal(hlo_module_parse(large, strlen(large), "m.hlo", &sink, &module), HLO_OK);
    hlo_arrays *inputs, *expected = NULL, *outputs;
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    for (int i = 0; i < 6; i++) {
        hlo_plan_options options;
        hlo_plan *plan;
        hlo_plan_options_init(&options);
        options.threads = i < 3 ? (uint32_t)i : UINT32_MAX;
        if (i >= 3) {
            options.parallel_for = divide;
            options.parallel_user = &l[i - 3];
        }
        assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
        assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
        if (i >= 3) assert_true(l[i - 3].count > 0);
        if (expected) {
            assert_int_equal(hlo_arrays_compare(expected, outputs, (hlo_writer){0}), HLO_OK);
            hlo_arrays_free(outputs);
        } else {
            expected = outputs;
        }
        hlo_plan_free(plan);
    }
    hlo_arrays_free(expected);
    hlo_arrays_free(inputs);
    hlo_module_free(module);
}

static void only_backends_of_this_build_are_told_of(void **state) {
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    misused(hlo_backend_print("gpu", &sink, hlo_file_writer(out)),
            "this build of the library has no backend 'gpu'");
    misused(hlo_backend_print(NULL, &sink, hlo_file_writer(out)),
            "this build of the library has no backend ''");
    assert_int_equal(hlo_backend_print("cpu", NULL, hlo_file_writer(out)), HLO_OK);
    fclose(out);
    assert_memory_equal(text, "matrix products: ", 17);
    free(text);
}

/* The number of progress calls that a run makes before it is stopped. */
typedef struct countdown {
    int calls;
    double done;
} countdown;

static bool count_down(void *user, const hlo_progress *progress) {
    countdown *c = user;
    c->done = progress->done;
    return --c->calls > 0;
}

/* Runs the module twice, each time until progress has been reported twice. */
static void check_stops(const char *text, uint32_t devices, double least) {
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_plan_options options;
    countdown c;
    hlo_plan_options_init(&options);
    options.progress = count_down;
    options.progress_user = &c;
    options.devices = devices;
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &inputs), HLO_OK);
    for (int i = 0; i < 2; i++) {
        c = (countdown){.calls = 2};
        assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_STOPPED);
        assert_null(outputs);
        assert_int_equal(c.calls, 0);
        assert_true(c.done >= least);
    }
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

static const char endless[] =
    "HloModule m\n"
    "c { p = s32[] parameter(0)\n  ROOT r = pred[] constant(true) }\n"
    "b { p = s32[] parameter(0)\n  o = s32[] constant(1)\n  ROOT r = s32[] add(p, o) }\n"
    "ENTRY e { a = s32[] parameter(0)\n  ROOT w = s32[] while(a), condition=c, body=b }\n";

static void progress_stops_a_loop(void **state) {
    (void)state;
    check_stops(endless, 1, 1);
}

static void progress_stops_a_loop_without_work(void **state) {
    (void)state;
    check_stops("HloModule m\n"
                "c { p = s32[] parameter(0)\n  ROOT r = pred[] constant(true) }\n"
                "b { ROOT p = s32[] parameter(0) }\n"
                "ENTRY e { a = s32[] parameter(0)\n"
                "  ROOT w = s32[] while(a), condition=c, body=b }\n",
                1, 0);
}

/* Device 1 waits for device 0, which is in an endless loop. */
static void progress_stops_devices(void **state) {
    (void)state;
    check_stops("HloModule m, num_partitions=2\n"
                "c { p = u32[] parameter(0)\n  z = u32[] constant(0)\n"
                "  ROOT r = pred[] compare(p, z), direction=EQ }\n"
                "b { p = u32[] parameter(0)\n  o = u32[] constant(0)\n"
                "  ROOT r = u32[] multiply(p, o) }\n"
                "s { x = u32[] parameter(0)\n  y = u32[] parameter(1)\n"
                "  ROOT z = u32[] add(x, y) }\n"
                "ENTRY e { a = u32[] partition-id()\n"
                "  w = u32[] while(a), condition=c, body=b\n"
                "  ROOT r = u32[] all-reduce(w), replica_groups={{0,1}}, channel_id=1,\n"
                "    use_global_device_ids=true, to_apply=s }\n",
                2, 0);
}

static void progress_stops_an_instruction(void **state) {
    (void)state;
    check_stops("HloModule m\n"
                "ENTRY e { a = f64[] parameter(0)\n"
                "  b = f64[4096,4096] broadcast(a), dimensions={}\n"
                "  ROOT d = f64[4096,4096] dot(b, b), lhs_contracting_dims={1}, "
                "rhs_contracting_dims={0} }\n",
                1, 0);
}

/* A loop in a computation that is applied to elements is part of one instruction. */
static void progress_stops_an_applied_loop(void **state) {
    (void)state;
    for (uint32_t devices = 1; devices < 3; devices++)
        check_stops("HloModule m\n"
                    "c { p = f32[] parameter(0)\n  ROOT r = pred[] constant(true) }\n"
                    "b { ROOT p = f32[] parameter(0) }\n"
                    "f { p = f32[] parameter(0)\n"
                    "  ROOT w = f32[] while(p), condition=c, body=b }\n"
                    "ENTRY e { a = f32[3] parameter(0)\n"
                    "  ROOT m = f32[3] map(a), dimensions={0}, to_apply=f }\n",
                    devices, 0);
}

static void progress_stops_a_loop_that_sends(void **state) {
    (void)state;
    check_stops("HloModule m\n"
                "c { p = token[] parameter(0)\n  ROOT r = pred[] constant(true) }\n"
                "b { p = token[] parameter(0)\n  z = s32[] constant(0)\n"
                "  ROOT o = token[] outfeed(z, p) }\n"
                "ENTRY e { a = token[] after-all()\n"
                "  ROOT w = token[] while(a), condition=c, body=b }\n",
                1, 0);
}

static const char feeds[] = "HloModule m\n"
                            "ENTRY e { p = s32[2] parameter(0)\n"
                            "  t = token[] after-all()\n"
                            "  i = (s32[2], token[]) infeed(t)\n"
                            "  x = s32[2] get-tuple-element(i), index=0\n"
                            "  y = s32[2] add(p, x)\n"
                            "  u = (s32[2], s32[2]) tuple(x, y)\n"
                            "  o = token[] outfeed(u, t)\n"
                            "  ROOT z = s32[2] negate(y) }\n";

/* The outputs of a run are followed by what it sends to the host. What it reads depends on the seed
 * of its inputs, and not on their elements. */
static void a_run_sends_and_receives(void **state) {
    (void)state;
    static const char *const names[] = {NULL, "outfeed.0{0}", "outfeed.0{1}"};
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs, *given, *outputs[3];
    double seconds[2];
    assert_int_equal(hlo_module_parse(feeds, strlen(feeds), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_plan_new(module, NULL, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_arrays_new(&given), HLO_OK);
    assert_int_equal(
        hlo_arrays_append(given, HLO_TYPE_S32, 1, (const int64_t[]){2}, (const int32_t[]){1, 2}),
        HLO_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(hlo_arrays_draw(module, i == 1 ? 2 : 0, &sink, &inputs), HLO_OK);
        assert_int_equal(hlo_plan_run(plan, i == 2 ? given : inputs, &sink, &outputs[i]), HLO_OK);
        assert_int_equal(hlo_plan_time(plan, 2, &sink, seconds), HLO_OK);
        hlo_arrays_free(inputs);
        assert_int_equal(hlo_arrays_count(outputs[i]), 3);
        const int32_t *v[3];
        for (size_t k = 0; k < 3; k++) {
            const hlo_array *array = hlo_arrays_at(outputs[i], k);
            v[k] = array->data;
            if (names[k])
                assert_string_equal(array->name, names[k]);
            else
                assert_null(array->name);
        }
        assert_int_equal(v[0][0], -v[2][0]);
        if (i == 2) assert_int_equal(v[2][1], v[1][1] + 2);
    }
    const hlo_array *received[3];
    for (int i = 0; i < 3; i++) received[i] = hlo_arrays_at(outputs[i], 1);
    assert_memory_equal(received[0]->data, received[2]->data, received[0]->size);
    assert_memory_not_equal(received[0]->data, received[1]->data, received[0]->size);
    for (int i = 0; i < 3; i++) hlo_arrays_free(outputs[i]);
    hlo_arrays_free(given);
    hlo_plan_free(plan);
    hlo_module_free(module);
}

static void a_resident_plan_neither_sends_nor_receives(void **state) {
    (void)state;
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.resident = true;
    assert_int_equal(hlo_module_parse(feeds, strlen(feeds), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_INVALID_INPUT);
    assert_null(plan);
    hlo_module_free(module);
}

/* Instructions that run on the calling thread. */
static void progress_stops_an_instruction_of_one_thread(void **state) {
    static const char *const texts[] = {
        "c { p = f32[] parameter(0)\n  q = f32[] parameter(1)\n"
        "  ROOT l = pred[] compare(p, q), direction=LT }\n"
        "ENTRY e { a = f32[2000000] parameter(0)\n"
        "  ROOT s = f32[2000000] sort(a), dimensions={0}, to_apply=c }\n",
        "ENTRY e { a = f32[2000000] parameter(0)\n"
        "  ROOT t = (f32[2], s32[2]) topk(a), k=2, largest=true }\n",
        "c { p = f32[] parameter(0)\n  ROOT q = f32[] parameter(1) }\n"
        "ENTRY e { a = f32[9] parameter(0)\n  i = s32[4000000] parameter(1)\n"
        "  u = f32[4000000] parameter(2)\n"
        "  ROOT s = f32[9] scatter(a, i, u), update_window_dims={}, inserted_window_dims={0}, "
        "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }\n",
        "ENTRY e { a = f32[9] parameter(0)\n  i = s32[4000000] parameter(1)\n"
        "  ROOT g = f32[4000000] gather(a, i), offset_dims={}, collapsed_slice_dims={0}, "
        "start_index_map={0}, index_vector_dim=1, slice_sizes={1} }\n",
        "c { p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  m = f32[] multiply(p, q)\n"
        "  ROOT s = f32[] add(m, p) }\n"
        "ENTRY e { a = f32[4000000] parameter(0)\n  z = f32[] parameter(1)\n"
        "  ROOT r = f32[] reduce(a, z), dimensions={0}, to_apply=c }\n",
        "c { p = f8e5m2[] parameter(0)\n  q = f8e5m2[] parameter(1)\n"
        "  ROOT s = f8e5m2[] add(p, q) }\n"
        "ENTRY e { a = f8e5m2[] parameter(0)\n"
        "  b = f8e5m2[200000000] broadcast(a), dimensions={}\n"
        "  ROOT r = f8e5m2[] reduce(b, a), dimensions={0}, to_apply=c }\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check_stops(texts[i], 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_stops_an_applied_loop),
        cmocka_unit_test(progress_stops_a_loop_that_sends),
        cmocka_unit_test(a_run_sends_and_receives),
        cmocka_unit_test(a_resident_plan_neither_sends_nor_receives),
        cmocka_unit_test(a_plan_is_described_without_a_device),
        cmocka_unit_test(a_constant_is_read_in_the_layout_of_its_instruction),
        cmocka_unit_test(progress_begins_with_a_run),
        cmocka_unit_test(threads_do_not_change_results),
        cmocka_unit_test(progress_stops_a_loop),
        cmocka_unit_test(progress_stops_a_loop_without_work),
        cmocka_unit_test(progress_stops_devices),
        cmocka_unit_test(progress_stops_an_instruction),
        cmocka_unit_test(progress_stops_an_instruction_of_one_thread),
        cmocka_unit_test(what_is_only_described_does_not_run),
        cmocka_unit_test(a_run_is_timed_again_and_changes_nothing),
        cmocka_unit_test(a_run_over_its_inputs_is_not_timed_again),
        cmocka_unit_test(only_backends_of_this_build_are_told_of),
        cmocka_unit_test(each_invalid_option_is_an_error),
        cmocka_unit_test(an_architecture_that_is_too_old_is_an_error),
        cmocka_unit_test(an_invalid_module_has_no_plan),
        cmocka_unit_test(without_the_libraries_there_is_one_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
