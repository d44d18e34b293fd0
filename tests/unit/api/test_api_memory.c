/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the allocator hook: all memory of the library comes from it and is returned to it, and
 * failures are reported. */
#include <limits.h>
#include <stdatomic.h>

#include "hlo/bisect.h"
#include "hlo/buffer.h"
#include "hlo/memory.h"
#include "hlo/proto.h"
#include "hlo/report.h"
#include "hlo/version.h"
#include "unit/api/api_fixture.h"

/* The header before each block. A block of the library must not be passed to free(), which aborts
 * because the block is not the start of an allocation. */
typedef struct header {
    uint64_t magic;
    void *start;
    size_t size;
    uint64_t unused;
} header;

enum { MAGIC = 0x48a110c };

static atomic_long blocks, calls, left = LONG_MAX;

static void *allocate(void *user, size_t size, size_t alignment) {
    assert_ptr_equal(user, &blocks);
    assert_true(size > 0 && alignment >= _Alignof(max_align_t));
    atomic_fetch_add(&calls, 1);
    if (atomic_fetch_sub(&left, 1) <= 0) return NULL;
    const size_t lead = alignment > sizeof(header) ? alignment : sizeof(header);
    char *start = aligned_alloc(alignment, (size + lead + alignment - 1) / alignment * alignment);
    if (!start) return NULL;
    header *h = (header *)(void *)(start + lead) - 1;
    *h = (header){.magic = MAGIC, .start = start, .size = size};
    atomic_fetch_add(&blocks, 1);
    return start + lead;
}

static void release(void *user, void *memory) {
    header *h = (header *)memory - 1;
    assert_ptr_equal(user, &blocks);
    assert_int_equal(h->magic, MAGIC);
    h->magic = 0;
    free(h->start);
    atomic_fetch_sub(&blocks, 1);
}

static void *reallocate(void *user, void *memory, size_t size) {
    void *grown = allocate(user, size, _Alignof(max_align_t));
    if (grown && memory) {
        const size_t old = ((header *)memory - 1)->size;
        memcpy(grown, memory, old < size ? old : size);
        release(user, memory);
    }
    return grown;
}

static const hlo_allocator allocator = {allocate, reallocate, release, &blocks};

static bool drop(void *user, const char *bytes, size_t size) {
    (void)bytes;
    *(size_t *)user += size;
    return true;
}

static const char text[] =
    "HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%x, %y)\n"
    "}\n\n"
    "ENTRY %main (a: f32[16,16], b: f8e4m3fn[16,16], c: f32[]) -> (f32[16,16]) {\n"
    "  %a = f32[16,16]{1,0} parameter(0)\n"
    "  %b = f8e4m3fn[16,16]{1,0} parameter(1)\n"
    "  %c = f32[] parameter(2)\n"
    "  %aq = f8e4m3fn[16,16]{1,0} convert(%a)\n"
    "  %aw = f32[16,16]{1,0} convert(%aq)\n"
    "  %bw = f32[16,16]{1,0} convert(%b)\n"
    "  %cs = f32[16,16]{1,0} broadcast(%c), dimensions={}\n"
    "  %as = f32[16,16]{1,0} multiply(%aw, %cs)\n"
    "  %d = f32[16,16]{1,0} dot(%as, %bw), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
    "metadata={op_name=\"jit(f)/dot\"}\n"
    "  ROOT %t = (f32[16,16]{1,0}) tuple(%d)\n"
    "}\n";

/* Runs a plan. */
static hlo_status run(const hlo_module *module, hlo_writer out) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_plan_options_init(&options);
    options.values = "*";
    options.check_finite = options.profile = true;
    hlo_status status = hlo_plan_new(module, &options, NULL, &plan);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 1, NULL, &inputs);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, NULL, &outputs);
    if (status == HLO_OK) status = hlo_plan_print_profile(plan, out);
    if (status == HLO_OK) status = hlo_plan_print_trace(plan, out);
    if (status == HLO_OK) status = hlo_arrays_write(outputs, out);
    if (status == HLO_OK) status = hlo_arrays_compare(outputs, outputs, out);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return status;
}

/* Runs a plan whose inputs and outputs stay on the device. */
static hlo_status run_resident(const hlo_module *module) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_buffer *in[3] = {NULL}, *out[1] = {NULL};
    float result[16 * 16];
    hlo_plan_options_init(&options);
    options.resident = true;
    hlo_status status = hlo_plan_new(module, &options, NULL, &plan);
    for (size_t i = 0; i < 3 && status == HLO_OK; i++)
        status = hlo_buffer_new(plan, i, NULL, NULL, &in[i]);
    if (status == HLO_OK) status = hlo_plan_run_async(plan, in, 3, NULL, NULL, out, NULL);
    if (status == HLO_OK) status = hlo_buffer_read(out[0], result, sizeof result, NULL);
    hlo_buffer_free(out[0]);
    for (int i = 0; i < 3; i++) hlo_buffer_free(in[i]);
    hlo_plan_free(plan);
    return status;
}

static hlo_status bisect(const hlo_module *module, hlo_writer out) {
    hlo_arrays *inputs = NULL;
    hlo_bisection *bisection = NULL;
    hlo_status status = hlo_arrays_draw(module, 1, NULL, &inputs);
    if (status == HLO_OK) status = hlo_module_bisect(module, NULL, NULL, inputs, NULL, &bisection);
    if (status == HLO_OK) status = hlo_bisection_print(bisection, out);
    hlo_bisection_free(bisection);
    hlo_arrays_free(inputs);
    return status;
}

static hlo_status use_library(size_t *written) {
    const hlo_writer out = {drop, written};
    hlo_module *module = NULL, *clone = NULL;
    hlo_report *report = NULL;
    char *printed = NULL;
    size_t size;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.lint = options.surroundings = true;
    hlo_status status = hlo_module_parse(text, strlen(text), "t.hlo", NULL, &module);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, NULL);
    if (status == HLO_OK) status = hlo_module_clone(module, &clone);
    if (status == HLO_OK) status = hlo_module_optimize(clone, &options, &report);
    if (status == HLO_OK) status = hlo_module_to_text(clone, NULL, &printed, &size);
    hlo_free(printed);
    if (status == HLO_OK) status = hlo_module_print_proto(clone, HLO_PROTO_BINARY, NULL, out);
    if (status == HLO_OK) {
        status = hlo_module_diff(module, clone, out);
        if (status == HLO_MISMATCH) status = HLO_OK;
    }
    const hlo_report *const reports[] = {report};
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    for (int f = HLO_REMARKS_TEXT; f <= HLO_REMARKS_MARKDOWN && status == HLO_OK; f++) {
        remarks.format = (hlo_remarks_format)f;
        status = hlo_reports_print(reports, 1, &remarks, out);
    }
    if (status == HLO_OK) status = hlo_reports_page(reports, 1, NULL, out);
    hlo_report_free(report);
    if (status == HLO_OK) status = run(clone, out);
    if (status == HLO_OK) status = run_resident(clone);
    if (status == HLO_OK) status = bisect(module, out);
    hlo_module_free(clone);
    hlo_module_free(module);
    return status;
}

static void test_allocator(void **state) {
    (void)state;
    size_t written = 0;
    assert_int_equal(hlo_set_allocator(&allocator), HLO_OK);
    assert_int_equal(use_library(&written), HLO_OK);
    assert_true(written > 10000);
    assert_true(calls > 100);
    assert_int_equal(blocks, 0);
    /* Allocations fail from some point on. The library reports this and frees everything. */
    const long total = atomic_load(&calls);
    for (long i = 0; i < total; i += 1 + total / 64) {
        atomic_store(&left, i);
        assert_int_equal(use_library(&written), HLO_OUT_OF_MEMORY);
        assert_int_equal(blocks, 0);
    }
    atomic_store(&left, LONG_MAX);
    char *memory = hlo_malloc(0);
    assert_non_null(memory);
    assert_int_equal(blocks, 1);
    hlo_free(memory);
    hlo_free(NULL);
    assert_int_equal(blocks, 0);
    assert_int_equal(hlo_set_allocator(NULL), HLO_OK);
}

static void test_incomplete(void **state) {
    (void)state;
    hlo_allocator wrong[3] = {allocator, allocator, allocator};
    wrong[0].allocate = NULL;
    wrong[1].reallocate = NULL;
    wrong[2].release = NULL;
    for (int i = 0; i < 3; i++) assert_int_equal(hlo_set_allocator(&wrong[i]), HLO_INVALID_USAGE);
}

static bool refuse(void *user, const char *bytes, size_t size) {
    (void)bytes, (void)size;
    return (*(int *)user)-- > 0;
}

/* If a writer fails, each function that prints returns HLO_INVALID_INPUT. */
static void test_writer(void **state) {
    fixture *f = *state;
    int some = 0;
    const hlo_writer out = {refuse, &some};
    const hlo_diag diag = {.struct_size = sizeof diag, .severity = HLO_ERROR, .message = "none"};
    assert_int_equal(hlo_module_print(f->module, NULL, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_module_print_proto(f->module, HLO_PROTO_TEXT, NULL, out),
                     HLO_INVALID_INPUT);
    assert_int_equal(hlo_module_print_stats(f->module, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_diag_print(&diag, 0, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_passes_print(NULL, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_backend_print("cpu", NULL, out), HLO_INVALID_INPUT);
    hlo_module *other = parse("ENTRY e { ROOT a = f32[2] parameter(0) }");
    assert_int_equal(hlo_module_diff(f->module, other, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_module_diff(other, other, out), HLO_OK); /* nothing is written */
    hlo_module_free(other);
    hlo_report *report;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.print_after = "all";
    options.dump = out;
    assert_int_equal(hlo_module_optimize(f->module, &options, NULL), HLO_INVALID_INPUT);
    options.print_after = NULL;
    assert_int_equal(hlo_module_optimize(f->module, &options, &report), HLO_OK);
    const hlo_report *const reports[] = {report};
    assert_int_equal(hlo_reports_print(reports, 1, NULL, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_reports_page(reports, 1, NULL, out), HLO_INVALID_INPUT);
    hlo_report_free(report);
    hlo_plan *plan;
    assert_int_equal(hlo_plan_new(f->module, NULL, NULL, &plan), HLO_OK);
    assert_int_equal(hlo_plan_print(plan, out), HLO_INVALID_INPUT);
    assert_int_equal(hlo_plan_print_trace(plan, out), HLO_INVALID_INPUT);
    hlo_plan_free(plan);
}

static void test_version(void **state) {
    (void)state;
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", HLO_VERSION_MAJOR, HLO_VERSION_MINOR,
             HLO_VERSION_PATCH);
    assert_string_equal(HLO_VERSION, version);
    assert_string_equal(hlo_version(), version);
    assert_int_equal(HLO_VERSION_NUMBER,
                     HLO_VERSION_MAJOR * 1000000 + HLO_VERSION_MINOR * 1000 + HLO_VERSION_PATCH);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_allocator),
        cmocka_unit_test(test_incomplete),
        TEST(test_writer),
        cmocka_unit_test(test_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
