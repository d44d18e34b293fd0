/* SPDX-License-Identifier: Apache-2.0 */
/* Tests resident plans: donation, streams, events, threads. */
#include <pthread.h>

#include "runtime/cuda/driver/library.h"
#include "runtime/exec/dlpack.h"
#include "tests/unit/runtime/buffer_fixture.h"

/* Each input is donated to the output that is computed from the other input. */
static const char SWAP[] = "HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }\n\n"
                           "ENTRY %e (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {\n"
                           "  %a = f32[4]{0} parameter(0)\n  %b = f32[4]{0} parameter(1)\n"
                           "  ROOT %t = (f32[4]{0}, f32[4]{0}) tuple(%b, %a)\n}\n";

/* The first input is still read after the first output is written; the second input is itself the
 * third output. */
static const char READ_LATE[] =
    "HloModule m, input_output_alias={ {0}: (0, {}), {2}: (1, {}) }\n\n"
    "ENTRY %e (a: f32[4], b: f32[4]) -> (f32[4], f32[2,4], f32[4]) {\n"
    "  %a = f32[4]{0} parameter(0)\n  %b = f32[4]{0} parameter(1)\n"
    "  %s = f32[4]{0} sine(%b)\n  %r = f32[4]{0} reverse(%s), dimensions={0}\n"
    "  %n = f32[2,4]{1,0} broadcast(%a), dimensions={1}\n"
    "  %m = f32[2,4]{1,0} broadcast(%r), dimensions={1}\n  %k = f32[2,4]{1,0} add(%n, %m)\n"
    "  ROOT %t = (f32[4]{0}, f32[2,4]{1,0}, f32[4]{0}) tuple(%r, %k, %b)\n}\n";

/* In this module, one group computes the update of the weights and of both moments. */
static const char UPDATE[] =
    "HloModule m, input_output_alias={ {0}: (0, {}), {1}: (1, {}), {2}: (2, {}) }\n\n"
    "ENTRY %e (p: f32[4], m: f32[4], v: f32[4], g: f32[4]) -> (f32[4], f32[4], f32[4]) {\n"
    "  %p = f32[4]{0} parameter(0)\n  %m = f32[4]{0} parameter(1)\n"
    "  %v = f32[4]{0} parameter(2)\n  %g = f32[4]{0} parameter(3)\n"
    "  %h = f32[] constant(0.5)\n  %halves = f32[4]{0} broadcast(%h), dimensions={}\n"
    "  %m1 = f32[4]{0} multiply(%m, %halves)\n  %m2 = f32[4]{0} add(%m1, %g)\n"
    "  %g2 = f32[4]{0} multiply(%g, %g)\n  %v2 = f32[4]{0} add(%v, %g2)\n"
    "  %s = f32[4]{0} add(%m2, %v2)\n  %p2 = f32[4]{0} subtract(%p, %s)\n"
    "  ROOT %t = (f32[4]{0}, f32[4]{0}, f32[4]{0}) tuple(%p2, %m2, %v2)\n}\n";

/* In these modules, the first of two inputs is donated to an output. */
#define TWO(output, body)                                                                          \
    "HloModule m, input_output_alias={ {" output "}: (0, {}) }\n\n"                                \
    "ENTRY %e (a: f32[4], b: f32[4]) -> (f32[4], f32[4]) {\n"                                      \
    "  %a = f32[4] parameter(0)\n  %b = f32[4] parameter(1)\n" body "}\n"
/* In these modules, the output cannot reuse the donated input's memory: its kernel also reads the
 * input at other indices; the input is read after the output is written; the input is itself an
 * output; or the other output also reads the input. */
static const char ELSEWHERE[] =
    TWO("0", "  %r = f32[4] reverse(%a), dimensions={0}\n  %c = f32[4] add(%a, %b)\n"
             "  %d = f32[4] subtract(%r, %c)\n  %k = f32[4] multiply(%b, %b)\n"
             "  ROOT %t = (f32[4], f32[4]) tuple(%d, %k)\n");
static const char BEHIND[] = TWO("0", "  %c = f32[4] add(%b, %b)\n  %d = f32[4] subtract(%a, %b)\n"
                                      "  ROOT %t = (f32[4], f32[4]) tuple(%c, %d)\n");
static const char RETURNED[] =
    TWO("0", "  %c = f32[4] add(%a, %b)\n  ROOT %t = (f32[4], f32[4]) tuple(%c, %a)\n");
static const char WANTED_TWICE[] =
    TWO("1", "  %c = f32[4] add(%a, %b)\n  %d = f32[4] subtract(%a, %b)\n"
             "  ROOT %t = (f32[4], f32[4]) tuple(%c, %d)\n");

/* -------------------------------------------------------------------------------------- running */

/* Replaces the donated input by its output. */
static void advance(fixture *f) {
    hlo_buffer_free(f->in[0]);
    f->in[0] = f->out[0];
    f->out[0] = NULL;
    hlo_buffer_free(f->out[1]);
    f->out[1] = NULL;
}

static void a_loop_keeps_its_state(void **state) {
    (void)state;
    fixture f = open_loop();
    void *seen[2] = {hlo_buffer_array(f.in[0])->data, NULL};
    assert_int_equal(hlo_plan_donated_input(f.plan, 0), 0);
    assert_true(hlo_plan_donated_input(f.plan, 1) == SIZE_MAX);
    for (int step = 1; step <= 6; step++) {
        runs(&f);
        assert_null(hlo_buffer_array(f.in[0])->data);
        void *now = hlo_buffer_array(f.out[0])->data;
        if (now != seen[0] && !seen[1]) seen[1] = now;
        assert_true(now == seen[0] || now == seen[1]); /* at most one additional allocation */
        reads(f.out[1], (const float[]){6 + 15 * (float)step}, 1);
        advance(&f);
    }
    reads(f.in[0], (const float[]){1, 7, 13, 19, 25, 31}, 6);
    close_all(&f);
}

static void donated_inputs_are_exchanged(void **state) {
    (void)state;
    fixture f = open_with(SWAP, NULL);
    for (int twice = 0; twice < 3; twice++) {
        put(&f, 0, HLO_TYPE_F32, 1, dims4, numbers);
        put(&f, 1, HLO_TYPE_F32, 1, dims4, ones);
        runs(&f);
        reads(f.out[0], ones, 4);
        reads(f.out[1], numbers, 4);
        for (int i = 0; i < 2; i++) {
            hlo_buffer_free(f.in[i]);
            hlo_buffer_free(f.out[i]);
            f.in[i] = f.out[i] = NULL;
        }
    }
    close_all(&f);
}

static void what_is_read_late_is_not_overwritten(void **state) {
    (void)state;
    static const float zeros[8] = {0};
    fixture f = open_with(READ_LATE, NULL);
    put(&f, 0, HLO_TYPE_F32, 1, dims4, numbers);
    put(&f, 1, HLO_TYPE_F32, 1, dims4, zeros);
    const void *second = hlo_buffer_array(f.in[1])->data;
    runs(&f);
    reads(f.out[0], zeros, 4);
    reads(f.out[1], (const float[]){0, 1, 2, 3, 0, 1, 2, 3}, 8);
    reads(f.out[2], zeros, 4);
    assert_ptr_equal(hlo_buffer_array(f.out[2])->data, second);
    close_all(&f);
}

static void an_update_is_in_place(void **state) {
    (void)state;
    fixture f = open_with(UPDATE, NULL);
    void *seen[3];
    for (size_t i = 0; i < 4; i++) {
        put(&f, i, HLO_TYPE_F32, 1, dims4, i == 3 ? numbers : ones);
        if (i < 3) seen[i] = hlo_buffer_array(f.in[i])->data;
    }
    float p[4], m[4], v[4];
    for (int i = 0; i < 4; i++) p[i] = m[i] = v[i] = 1;
    for (int step = 0; step < 4; step++) {
        for (int i = 0; i < 4; i++) {
            m[i] = m[i] * 0.5f + numbers[i];
            v[i] += numbers[i] * numbers[i];
            p[i] -= m[i] + v[i];
        }
        runs(&f);
        reads(f.out[0], p, 4);
        reads(f.out[1], m, 4);
        reads(f.out[2], v, 4);
        for (int i = 0; i < 3; i++) {
            assert_ptr_equal(hlo_buffer_array(f.out[i])->data, seen[i]);
            hlo_buffer_free(f.in[i]);
            f.in[i] = f.out[i];
            f.out[i] = NULL;
        }
    }
    close_all(&f);
}

/* Runs a plan with {0, 1, 2, 3} and ones, and compares the outputs. The output that the first input
 * is donated to must reuse the input's memory, or must not (`in_place`). */
static void gives(const char *text, const float *first, const float *second, int donated,
                  bool in_place) {
    fixture f = open_with(text, NULL);
    for (int twice = 0; twice < 3; twice++) {
        put(&f, 0, HLO_TYPE_F32, 1, dims4, numbers);
        if (!f.in[1]) put(&f, 1, HLO_TYPE_F32, 1, dims4, ones);
        const void *memory = hlo_buffer_array(f.in[0])->data;
        runs(&f);
        reads(f.out[0], first, 4);
        reads(f.out[1], second, 4);
        reads(f.in[1], ones, 4);
        assert_true((hlo_buffer_array(f.out[donated])->data == memory) == in_place);
        hlo_buffer_free(f.in[0]);
        hlo_buffer_free(f.out[0]);
        hlo_buffer_free(f.out[1]);
        f.in[0] = f.out[0] = f.out[1] = NULL;
    }
    close_all(&f);
}

static void nothing_is_overwritten_that_is_wanted(void **state) {
    (void)state;
    static const float plus[] = {1, 2, 3, 4}, minus[] = {-1, 0, 1, 2}, turned[] = {2, 0, -2, -4},
                       twos[] = {2, 2, 2, 2};
    const bool apart = strcmp(backend, "cpu") == 0; /* here the reverse is a separate job */
    gives(ELSEWHERE, turned, ones, 0, apart);
    gives(BEHIND, twos, minus, 0, false);
    gives(RETURNED, plus, numbers, 0, false);
    gives(WANTED_TWICE, plus, minus, 1, true);
}

/* Two plans on one device may have kernels with the same names. */
static void plans_have_kernels_of_their_own(void **state) {
    (void)state;
    static const float turned[] = {2, 0, -2, -4}, twos[] = {2, 2, 2, 2};
    fixture f = open_with(ELSEWHERE, NULL), g = open_with(BEHIND, NULL);
    for (size_t i = 0; i < 2; i++) {
        put(&f, i, HLO_TYPE_F32, 1, dims4, i ? ones : numbers);
        put(&g, i, HLO_TYPE_F32, 1, dims4, i ? ones : numbers);
    }
    runs(&f);
    runs(&g);
    reads(f.out[0], turned, 4);
    reads(g.out[0], twos, 4);
    close_all(&g);
    close_all(&f);
}

static void inputs_that_are_not_donated_stay(void **state) {
    (void)state;
    fixture f = open_with(NARROW, NULL);
    put(&f, 0, HLO_TYPE_F8E4M3FN, 2, dims23, "\x38\x40\x38\x40\x38\x40");
    hlo_buffer_free(f.in[1]);
    assert_int_equal(hlo_buffer_new(f.plan, 1, NULL, &sink, &f.in[1]), HLO_OK);
    for (int i = 0; i < 3; i++) {
        runs(&f);
        reads(f.out[0], (const float[]){1, 2, 1, 2, 1, 2}, 6);
        hlo_buffer_free(f.out[0]);
        hlo_buffer_free(f.out[1]);
        f.out[0] = f.out[1] = NULL;
    }
    close_all(&f);
}

static void donations_may_be_options(void **state) {
    (void)state;
    fixture f = open_with(LOOP, &(hlo_donation){0, 0}); /* as the module declares */
    close_all(&f);
    static const hlo_donation wrong[] = {{1, 0}, {1, 1}, {0, 1}, {2, 0}, {0, 2}};
    static const char *const why[] = {"already has a donated input", "the input is ",
                                      "is already donated", "the input does not exist",
                                      "the output does not exist"};
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_plan_options_init(&options);
    options.backend = backend;
    options.resident = true;
    options.donation_count = 1;
    assert_int_equal(hlo_module_parse(LOOP, strlen(LOOP), "m.hlo", &sink, &f.module), HLO_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        options.donations = &wrong[i];
        refused(hlo_plan_new(f.module, &options, &sink, &plan), why[i]);
    }
    options.donation_count = 0;
    options.bounds = true;
    misused(hlo_plan_new(f.module, &options, &sink, &plan), " bounds");
    hlo_module_free(f.module);
}

static void buffers_outlive_their_plan(void **state) {
    (void)state;
    fixture f = open_loop(), g = open_loop();
    runs(&f);
    hlo_plan_free(f.plan);
    f.plan = NULL;
    reads(f.out[1], (const float[]){21}, 1);
    hlo_buffer_free(g.in[0]);
    g.in[0] = f.out[0]; /* a buffer of another plan for the device */
    f.out[0] = NULL;
    runs(&g);
    reads(g.out[1], (const float[]){36}, 1);
    close_all(&f);
    close_all(&g);
}

/* ------------------------------------------------------------------------------------- refusing */

static void wrong_buffers_are_refused(void **state) {
    (void)state;
    fixture f = open_loop(), g = open_with(SWAP, NULL);
    put(&g, 0, HLO_TYPE_F32, 1, dims4, ones);
    put(&g, 1, HLO_TYPE_F32, 1, dims4, ones);
    refused(hlo_plan_run_async(f.plan, f.in, 1, NULL, &sink, f.out, NULL), "1 inputs are given");
    hlo_buffer *none[] = {f.in[0], NULL}, *other[] = {f.in[0], g.in[0]},
               *twice[] = {g.in[0], g.in[0]};
    hlo_buffer *turned[] = {f.in[1], f.in[1]};
    misused(hlo_plan_run_async(f.plan, none, 2, NULL, &sink, f.out, NULL), "input 1 is missing");
    refused(hlo_plan_run_async(f.plan, other, 2, NULL, &sink, f.out, NULL),
            "input 1 is f32[4], but parameter b is f32[2,3]");
    misused(hlo_plan_run_async(g.plan, twice, 2, NULL, &sink, f.out, NULL),
            "input 1 shares its memory");
    refused(hlo_plan_run_async(f.plan, turned, 2, NULL, &sink, f.out, NULL),
            ", but its parameter is ");
    assert_null(f.out[0]);
    runs(&f);
    misused(hlo_plan_run_async(f.plan, f.in, 2, NULL, &sink, g.out, NULL), "input 0 was donated");
    float found[6];
    misused(hlo_buffer_read(f.in[0], found, sizeof found, &sink), "donated");
    misused(hlo_buffer_read(f.out[0], found, 4, &sink), "24 bytes, but the destination has 4");
    refused(hlo_buffer_new(f.plan, 2, NULL, &sink, &g.out[0]), "input 2 does not exist");
    hlo_arrays *arrays = NULL, *outputs = NULL;
    double seconds;
    assert_int_equal(hlo_arrays_draw(f.module, 0, &sink, &arrays), HLO_OK);
    misused(hlo_plan_run(f.plan, arrays, &sink, &outputs), "hlo_plan_run_async()");
    misused(hlo_plan_time(f.plan, 1, &sink, &seconds), "but there was none");
    hlo_arrays_free(arrays);
    assert_int_equal(hlo_arrays_draw(g.module, 0, &sink, &arrays), HLO_OK);
    refused(hlo_buffer_new(f.plan, 1, hlo_arrays_at(arrays, 0), &sink, &g.out[0]),
            "input 1 is f32[4], but parameter b is f32[2,3]");
    hlo_arrays_free(arrays);
    close_all(&g);
    close_all(&f);
}

static void other_plans_take_no_buffers(void **state) {
    (void)state;
    fixture f = open_loop();
    hlo_plan_options options;
    hlo_plan *plan;
    hlo_buffer *made, *out[2];
    hlo_plan_options_init(&options);
    options.backend = backend;
    assert_int_equal(hlo_plan_new(f.module, &options, &sink, &plan), HLO_OK);
    misused(hlo_buffer_new(plan, 0, NULL, &sink, &made), "without `resident`");
    misused(hlo_plan_run_async(plan, f.in, 2, NULL, &sink, out, NULL), "without `resident`");
    hlo_plan_free(plan);
    close_all(&f);
}

static void buffers_of_other_devices_are_refused(void **state) {
    (void)state;
    fixture f = open_loop();
    backend = "cuda";
    fixture g = open_with(LOOP, NULL);
    refused(hlo_plan_run_async(g.plan, f.in, 2, NULL, &sink, g.out, NULL),
            "input 0 is a buffer of the cpu backend, but the plan uses the cuda backend");
    close_all(&f);
    close_all(&g);
}

/* ------------------------------------------------------------------------------ streams, events */

static void an_event_is_over(void **state) {
    (void)state;
    fixture f = open_loop();
    hlo_event *event;
    assert_int_equal(run(&f, NULL, &event), HLO_OK);
    assert_int_equal(hlo_event_wait(event, &sink), HLO_OK);
    assert_true(hlo_event_is_done(event));
    assert_int_equal(!hlo_event_handle(event), strcmp(backend, "cpu") == 0);
    close_all(&f);
    hlo_event_free(event); /* after its plan is closed */
}

static void streams_are_the_callers(void **state) {
    (void)state;
    cuda_library lib = {0};
    cuda_stream *stream;
    hlo_event *event;
    assert_int_equal(cuda_library_load(&lib, CUDA_DRIVER, &sink), HLO_OK);
    fixture f = open_loop();
    assert_int_equal(lib.cuStreamCreate(&stream, 1), 0);
    for (int step = 0; step < 4; step++) {
        assert_int_equal(run(&f, stream, &event), HLO_OK);
        hlo_event_free(event);
        advance(&f);
    }
    struct DLManagedTensorVersioned *tensor;
    assert_int_equal(hlo_buffer_to_dlpack(f.in[0], stream, &sink, &tensor), HLO_OK);
    tensor->deleter(tensor);
    reads(f.in[0], (const float[]){1, 5, 9, 13, 17, 21}, 6);
    for (uintptr_t special = 1; special <= 2; special++) { /* CU_STREAM_LEGACY, _PER_THREAD */
        assert_int_equal(run(&f, (void *)special, NULL), HLO_OK);
        advance(&f);
    }
    reads(f.in[0], (const float[]){1, 7, 13, 19, 25, 31}, 6);
    assert_int_equal(lib.cuStreamDestroy(stream), 0); /* the stream's context is that of the plan */
    close_all(&f);
    cuda_library_unload(&lib);
}

/* -------------------------------------------------------------------------------------- threads */

static void *made_anew(void *fixture_) {
    fixture *f = fixture_;
    hlo_buffer_free(f->in[1]); /* the next buffer reuses its memory */
    return (void *)(uintptr_t)hlo_buffer_new(f->plan, 1, NULL, &sink, &f->in[1]);
}

static void *run_here(void *fixture_) {
    return (void *)(uintptr_t)run(fixture_, NULL, NULL);
}

static void *read_here(void *fixture_) {
    float found[6];
    const fixture *f = fixture_;
    return (void *)(uintptr_t)hlo_buffer_read(f->in[1], found, sizeof found, &sink);
}

static void *hand_over_here(void *fixture_) {
    const fixture *f = fixture_;
    struct DLManagedTensorVersioned *tensor;
    const hlo_status status = hlo_buffer_to_dlpack(f->out[0], (void *)1, &sink, &tensor);
    if (status == HLO_OK) tensor->deleter(tensor);
    return (void *)(uintptr_t)status;
}

static void *free_here(void *fixture_) {
    close_all(fixture_);
    return NULL;
}

/* Calls each function on a new thread, in which nothing was called before. */
static void any_thread_may_call(void **state) {
    (void)state;
    void *(*const calls[])(void *) = {made_anew, read_here,      run_here, read_here,
                                      run_here,  hand_over_here, free_here};
    fixture f = open_loop();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        pthread_t thread;
        void *status;
        assert_int_equal(pthread_create(&thread, NULL, calls[i], &f), 0);
        assert_int_equal(pthread_join(thread, &status), 0);
        if (status) fail_msg("call %zu: status %d: %s", i, (int)(uintptr_t)status, said);
        if (calls[i] == run_here && i < 4) advance(&f);
    }
}

typedef struct plain_plan {
    hlo_plan *plan;
    hlo_arrays *inputs;
} plain_plan;

static void *run_plain(void *plan) {
    const plain_plan *p = plan;
    hlo_arrays *outputs = NULL;
    const hlo_status status = hlo_plan_run(p->plan, p->inputs, &sink, &outputs);
    hlo_arrays_free(outputs);
    return (void *)(uintptr_t)status;
}

static void *time_plain(void *plan) {
    double seconds[3];
    return (void *)(uintptr_t)hlo_plan_time(((plain_plan *)plan)->plan, 3, &sink, seconds);
}

static void *free_plain(void *plan) {
    hlo_plan_free(((plain_plan *)plan)->plan);
    return NULL;
}

static void any_thread_may_run_a_plan(void **state) {
    (void)state;
    void *(*const calls[])(void *) = {run_plain, time_plain, free_plain};
    hlo_plan_options options;
    hlo_module *module;
    plain_plan p;
    hlo_plan_options_init(&options);
    options.backend = backend;
    assert_int_equal(hlo_module_parse(LOOP, strlen(LOOP), "m.hlo", &sink, &module), HLO_OK);
    assert_int_equal(hlo_arrays_draw(module, 0, &sink, &p.inputs), HLO_OK);
    assert_int_equal(hlo_plan_new(module, &options, &sink, &p.plan), HLO_OK);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        pthread_t thread;
        void *status;
        assert_int_equal(pthread_create(&thread, NULL, calls[i], &p), 0);
        assert_int_equal(pthread_join(thread, &status), 0);
        if (status) fail_msg("call %zu: status %d: %s", i, (int)(uintptr_t)status, said);
    }
    hlo_arrays_free(p.inputs);
    hlo_module_free(module);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(a_loop_keeps_its_state),
        BOTH(donated_inputs_are_exchanged),
        BOTH(what_is_read_late_is_not_overwritten),
        BOTH(an_update_is_in_place),
        BOTH(nothing_is_overwritten_that_is_wanted),
        BOTH(plans_have_kernels_of_their_own),
        BOTH(inputs_that_are_not_donated_stay),
        BOTH(donations_may_be_options),
        BOTH(buffers_outlive_their_plan),
        BOTH(wrong_buffers_are_refused),
        BOTH(other_plans_take_no_buffers),
        {"buffers_of_other_devices_are_refused", buffers_of_other_devices_are_refused, on_cpu, NULL,
         NULL},
        BOTH(an_event_is_over),
        {"streams_are_the_callers", streams_are_the_callers, on_cuda, NULL, NULL},
        BOTH(any_thread_may_call),
        BOTH(any_thread_may_run_a_plan),
    };
    return cmocka_run_group_tests(tests, set_up_all, NULL);
}
