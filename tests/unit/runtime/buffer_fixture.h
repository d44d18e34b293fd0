/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture for resident plans on the CPU and on a fake CUDA device, or on a real device with
 * HLO_TEST_DEVICE in the environment. */
#ifndef HLO_TESTS_UNIT_RUNTIME_BUFFER_FIXTURE_H
#define HLO_TESTS_UNIT_RUNTIME_BUFFER_FIXTURE_H

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/buffer.h"
#include "hlo/text.h"

/* Each run adds the batch to the state; the program reads the sum. */
static const char LOOP[] =
    "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n  ROOT %s = f32[] add(%x, %y)\n}\n\n"
    "ENTRY %e (w: f32[2,3], b: f32[2,3]) -> (f32[2,3], f32[]) {\n"
    "  %w = f32[2,3]{1,0} parameter(0)\n  %b = f32[2,3]{0,1} parameter(1)\n"
    "  %c = f32[2,3]{1,0} copy(%b)\n  %n = f32[2,3]{1,0} add(%w, %c)\n"
    "  %z = f32[] constant(0)\n  %s = f32[] reduce(%n, %z), dimensions={0,1}, to_apply=%add\n"
    "  ROOT %t = (f32[2,3]{1,0}, f32[]) tuple(%n, %s)\n}\n";

static const char NARROW[] = "HloModule m\n\n"
                             "ENTRY %e (a: f8e4m3fn[2,3], s: s4[3]) -> (f32[2,3], s4[3]) {\n"
                             "  %a = f8e4m3fn[2,3]{1,0} parameter(0)\n"
                             "  %s = s4[3]{0} parameter(1)\n"
                             "  %c = f32[2,3]{1,0} convert(%a)\n"
                             "  ROOT %t = (f32[2,3]{1,0}, s4[3]{0}) tuple(%c, %s)\n}\n";

/* -------------------------------------------------------------------------------------- fixture */

static const char *backend;
static char said[512];
static int errors;

static void keep(void *user, const hlo_diag *diag) {
    (void)user;
    errors += diag->severity == HLO_ERROR;
    snprintf(said, sizeof said, "%s", diag->message);
}

static const hlo_diag_sink sink = {keep, NULL};

typedef struct fixture {
    hlo_module *module;
    hlo_plan *plan;
    hlo_buffer *in[4], *out[3];
} fixture;

static fixture open_with(const char *text, const hlo_donation *donation) {
    fixture f = {0};
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.backend = backend;
    options.resident = true;
    options.donations = donation;
    options.donation_count = donation != NULL;
    assert_int_equal(hlo_module_parse(text, strlen(text), "m.hlo", &sink, &f.module), HLO_OK);
    if (hlo_plan_new(f.module, &options, &sink, &f.plan) != HLO_OK) fail_msg("%s", said);
    return f;
}

static void close_all(fixture *f) {
    for (size_t i = 0; i < 4; i++) hlo_buffer_free(f->in[i]);
    for (size_t i = 0; i < 3; i++) hlo_buffer_free(f->out[i]);
    hlo_plan_free(f->plan);
    hlo_module_free(f->module);
}

static void put(fixture *f, size_t input, hlo_element_type type, uint32_t rank, const int64_t *dims,
                const void *data) {
    hlo_arrays *arrays;
    assert_int_equal(hlo_arrays_new(&arrays), HLO_OK);
    assert_int_equal(hlo_arrays_append(arrays, type, rank, dims, data), HLO_OK);
    if (hlo_buffer_new(f->plan, input, hlo_arrays_at(arrays, 0), &sink, &f->in[input]) != HLO_OK)
        fail_msg("%s", said);
    hlo_arrays_free(arrays);
}

static const int64_t dims23[] = {2, 3}, dims4[] = {4};
static const float ones[] = {1, 1, 1, 1, 1, 1}, numbers[] = {0, 1, 2, 3, 4, 5};

static fixture open_loop(void) {
    fixture f = open_with(LOOP, NULL);
    put(&f, 0, HLO_TYPE_F32, 2, dims23, ones);
    put(&f, 1, HLO_TYPE_F32, 2, dims23, numbers);
    return f;
}

static hlo_status run(fixture *f, void *stream, hlo_event **event) {
    *said = '\0';
    const size_t count = hlo_plan_input_count(f->plan);
    return hlo_plan_run_async(f->plan, f->in, count, stream, &sink, f->out, event);
}

static void runs(fixture *f) {
    if (run(f, NULL, NULL) != HLO_OK) fail_msg("%s", said);
}

static void reads(const hlo_buffer *buffer, const float *expected, size_t count) {
    float found[8];
    if (hlo_buffer_read(buffer, found, count * sizeof *found, &sink) != HLO_OK)
        fail_msg("%s", said);
    for (size_t i = 0; i < count; i++)
        if (found[i] != expected[i]) fail_msg("[%zu]: %g, not %g", i, found[i], expected[i]);
}

static void misused(hlo_status status, const char *why) {
    assert_int_equal(status, HLO_INVALID_USAGE);
    if (!strstr(said, why)) fail_msg("'%s' is not in '%s'", why, said);
}

static void refused(hlo_status status, const char *why) {
    assert_int_equal(status, HLO_INVALID_INPUT);
    if (!strstr(said, why)) fail_msg("'%s' is not in '%s'", why, said);
}

static inline int on_cpu(void **state) {
    (void)state;
    backend = "cpu";
    return 0;
}

static inline int on_cuda(void **state) {
    (void)state;
    backend = "cuda";
    return 0;
}

static int set_up_all(void **state) {
    (void)state;
    if (getenv("HLO_TEST_DEVICE")) return 0;
    setenv("HLO_STANDIN_LATE", "1", 1);
    setenv("HLO_CUDA_DRIVER", HLO_STANDIN, 1);
    setenv("HLO_CUDA_CUBLASLT", HLO_STANDIN, 1);
    setenv("HLO_CUDA_NVRTC", HLO_STANDIN, 1);
    return dlopen(HLO_STANDIN, RTLD_NOW | RTLD_NODELETE) ? 0 : -1;
}

/* Runs a test on both backends. */
#define BOTH(test)                                                                                 \
    {#test ", cpu", test, on_cpu, NULL, NULL}, {                                                   \
#test ", cuda", test, on_cuda, NULL, NULL                                                  \
    }

#endif
