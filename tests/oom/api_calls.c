/* SPDX-License-Identifier: Apache-2.0 */
/* usage: api_calls [--long] FOLDER PLUGIN. Calls every function of the library that allocates
 * memory, once for each of its allocations: with only that allocation failing, and with all later
 * ones failing as well. The function must return HLO_OUT_OF_MEMORY or succeed, and must not
 * leak. Requires failing.so to be preloaded. FOLDER must be writable; PLUGIN is plugin.c. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/bisect.h"
#include "hlo/buffer.h"
#include "hlo/dump.h"
#include "hlo/edit.h"
#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/pjrt.h"
#include "hlo/proto.h"
#include "hlo/runtime.h"
#include "hlo/text.h"
#include "runtime/exec/dlpack.h"
#include "unit/api/rules.h"

static const char text[] =
    "HloModule m\n\n"
    "%add (x: f32[], y: f32[]) -> f32[] {\n"
    "  %x = f32[] parameter(0)\n"
    "  %y = f32[] parameter(1)\n"
    "  ROOT %s = f32[] add(%x, %y)\n"
    "}\n\n"
    "ENTRY %main (a: f8e4m3fn[16,16], b: f8e4m3fn[16,16], c: f32[]) -> f32[16,16] {\n"
    "  %a = f8e4m3fn[16,16]{1,0} parameter(0)\n"
    "  %b = f8e4m3fn[16,16]{1,0} parameter(1)\n"
    "  %c = f32[] parameter(2)\n"
    "  %aw = f32[16,16]{1,0} convert(%a)\n"
    "  %bw = f32[16,16]{1,0} convert(%b)\n"
    "  %cs = f32[16,16]{1,0} broadcast(%c), dimensions={}\n"
    "  %as = f32[16,16]{1,0} multiply(%aw, %cs)\n"
    "  %r = f32[16]{0} reduce(%as, %c), dimensions={1}, to_apply=%add\n"
    "  ROOT %d = f32[16,16]{1,0} dot(%as, %bw), lhs_contracting_dims={1}, "
    "rhs_contracting_dims={0}, metadata={op_name=\"jit(f)/dot\"}\n"
    "}\n";

static char model[512], baseline[512], folder[512], archive[512], gpu[512];
static char *whole; /* the printed module */
static const char *plugin;
static FILE *nowhere;

/* Counts the errors. A sink must not allocate. */
static void count_error(void *user, const hlo_diag *diag) {
    (void)diag;
    ++*(int *)user;
}

static int errors;
static const hlo_diag_sink sink = {count_error, &errors};

static hlo_status parse(hlo_module **out) {
    return hlo_module_parse(text, strlen(text), "t.hlo", &sink, out);
}

/* Returns HLO_OK for the status `good`, HLO_INTERNAL for HLO_OK if that is not `good`, and any
 * other status unchanged. */
static hlo_status want(hlo_status status, hlo_status good) {
    return status == good ? HLO_OK : status == HLO_OK ? HLO_INTERNAL : status;
}

/* -------------------------------------------------------------------------------- the functions */

static hlo_status call_parse_file(void) {
    hlo_module *module = NULL;
    const hlo_status status = hlo_module_parse_file(model, &sink, &module);
    hlo_module_free(module);
    return status;
}

static hlo_status call_modules_parse_file(void) {
    hlo_module **modules;
    size_t count;
    const hlo_status status = hlo_modules_parse_file(model, NULL, &sink, &modules, &count);
    hlo_modules_free(modules, count);
    return status;
}

static hlo_status call_parse_wrong(void) {
    static const char wrong[] = "ENTRY e {\n  a = f32[2] parameter(0)\n  ROOT b = f32[3] neg(c)\n}";
    hlo_module *module = NULL;
    return want(hlo_module_parse(wrong, strlen(wrong), "w.hlo", &sink, &module), HLO_INVALID_INPUT);
}

static hlo_status call_proto(hlo_module *module) {
    char *bytes = NULL;
    size_t size = 0;
    hlo_module *read = NULL;
    FILE *out = open_memstream(&bytes, &size);
    if (!out) return HLO_OUT_OF_MEMORY;
    hlo_status status =
        hlo_module_print_proto(module, HLO_PROTO_BINARY, &sink, hlo_file_writer(out));
    if (status == HLO_OK)
        status = hlo_module_print_proto(module, HLO_PROTO_TEXT, &sink, hlo_file_writer(nowhere));
    /* A memory stream whose buffer cannot grow reports a failed write. */
    if (status == HLO_INVALID_INPUT) status = HLO_OUT_OF_MEMORY;
    if ((fclose(out) != 0 || !bytes) && status == HLO_OK) status = HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_module_parse_proto(bytes, size, "t.pb", &sink, &read);
    hlo_module_free(read);
    free(bytes);
    return status;
}

static hlo_status call_module(hlo_module *module) {
    hlo_module *clone = NULL;
    char *printed = NULL;
    size_t size;
    hlo_status status = hlo_module_clone(module, &clone);
    if (status == HLO_OK) status = hlo_module_verify(clone, NULL, &sink);
    if (status == HLO_OK) status = hlo_module_diff(module, clone, hlo_file_writer(nowhere));
    if (status == HLO_OK) status = hlo_module_diff_matmuls(module, clone, hlo_file_writer(nowhere));
    if (status == HLO_OK) status = hlo_module_print_stats(module, hlo_file_writer(nowhere));
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(nowhere));
    for (int form = HLO_PRINT_LONG; form <= HLO_PRINT_NO_LARGE_CONSTANTS && status == HLO_OK;
         form++) {
        hlo_print_options options;
        hlo_print_options_init(&options, (hlo_print_form)form);
        status = hlo_module_to_text(module, &options, &printed, &size);
        hlo_free(printed);
    }
    hlo_module_free(clone);
    return status;
}

static hlo_status call_attribute(hlo_module *module) {
    const char *value;
    const hlo_instruction *dot = hlo_computation_root(hlo_module_entry(module));
    return hlo_instruction_attribute(dot, "metadata", &value);
}

static hlo_status call_new(hlo_module *module) {
    const hlo_computation *entry = hlo_module_entry(module);
    const hlo_instruction *dot = hlo_computation_root(entry);
    const hlo_instruction *operands[] = {hlo_computation_find(entry, "as"),
                                         hlo_computation_find(entry, "c")};
    hlo_instruction_options options;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_REDUCE;
    options.operands = operands;
    options.operand_count = 2;
    options.attributes = "dimensions={0,1}, to_apply=%add";
    options.before = dot;
    options.like = dot;
    hlo_status status = hlo_instruction_new(module, entry, &options, &sink, NULL);
    options.attributes = "dimensions={7}, to_apply=%add";
    if (status == HLO_OK)
        status = want(hlo_instruction_new(module, entry, &options, &sink, NULL), HLO_INVALID_INPUT);
    return status;
}

static hlo_status call_new_others(hlo_module *module) {
    static const char max[] = "ENTRY max { a = f32[] parameter(0) b = f32[] parameter(1)\n"
                              "            ROOT m = f32[] maximum(a, b) }";
    static const float values[] = {1, 2};
    static const int64_t dims[] = {2};
    const hlo_computation *entry = hlo_module_entry(module);
    hlo_status status = hlo_instruction_new_constant(module, entry, NULL, HLO_TYPE_F32, 1, dims,
                                                     values, &sink, NULL);
    const int64_t two[] = {2, 3}, layout[] = {0, 1};
    const hlo_shape *shapes[3] = {NULL};
    if (status == HLO_OK)
        status = hlo_shape_new_array(module, HLO_TYPE_F32, 2, two, layout, &sink, &shapes[0]);
    if (status == HLO_OK) status = hlo_shape_parse(module, "token[]", &sink, &shapes[1]);
    if (status == HLO_OK) status = hlo_shape_new_tuple(module, 2, shapes, &sink, &shapes[2]);
    if (status == HLO_OK)
        status = hlo_instruction_new_parameter(module, entry, shapes[2], "p", &sink, NULL);
    if (status == HLO_OK) status = hlo_computation_new_text(module, max, strlen(max), &sink, NULL);
    return status;
}

static hlo_status call_changes(hlo_module *module) {
    const hlo_computation *entry = hlo_module_entry(module);
    const hlo_instruction *dot = hlo_computation_root(entry),
                          *as = hlo_computation_find(entry, "as"),
                          *aw = hlo_computation_find(entry, "aw");
    hlo_status status =
        hlo_instruction_set_attribute(module, dot, "metadata", "{op_name=\"x\"}", &sink);
    if (status == HLO_OK)
        status = want(hlo_instruction_set_attribute(module, dot, "metadata", "{op=3}", &sink),
                      HLO_INVALID_INPUT);
    if (status == HLO_OK) status = hlo_instruction_set_operand(module, dot, 0, aw, &sink);
    if (status == HLO_OK) status = hlo_instruction_replace(module, as, aw, &sink);
    if (status == HLO_OK) status = hlo_instruction_remove(module, as, &sink);
    if (status == HLO_OK)
        status = hlo_computation_set_root(module, entry, hlo_computation_find(entry, "r"), &sink);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, &sink);
    return status;
}

/* Calls the functions that create, copy, move, rename and remove instructions and computations. */
static hlo_status call_structure(hlo_module *module) {
    const hlo_computation *entry = hlo_module_entry(module), *made = NULL, *copy = NULL;
    const hlo_instruction *aw = hlo_computation_find(entry, "aw");
    hlo_module *fresh = NULL;
    hlo_status status = hlo_module_new("fresh", &sink, &fresh);
    hlo_module_free(fresh);
    if (status == HLO_OK)
        status = hlo_instruction_new_scalar(module, entry, NULL, HLO_TYPE_F32, 1, &sink, NULL);
    if (status == HLO_OK)
        status = hlo_instruction_clone(module, aw, entry, NULL, NULL, &sink, NULL);
    if (status == HLO_OK)
        status = hlo_instruction_move(module, hlo_computation_find(entry, "r"), NULL, &sink);
    if (status == HLO_OK)
        status = hlo_instruction_rename(module, aw, "a_name_that_is_not_in_the_module", &sink);
    if (status == HLO_OK) status = hlo_computation_new(module, "made", NULL, &sink, &made);
    if (status == HLO_OK) status = hlo_computation_clone(module, entry, NULL, &sink, &copy);
    if (status == HLO_OK) status = hlo_computation_move(module, made, NULL, &sink);
    if (status == HLO_OK) status = hlo_computation_rename(module, made, "another_name", &sink);
    if (status == HLO_OK) status = hlo_computation_remove(module, copy, &sink);
    if (status == HLO_OK) status = hlo_module_rename(module, "a_new_name", &sink);
    if (status == HLO_OK)
        status = hlo_module_set_attribute(module, "input_output_alias", "{ {}: (2, {}) }", &sink);
    if (status == HLO_OK)
        status = hlo_module_set_attribute(module, "input_output_alias", NULL, &sink);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, &sink);
    return status;
}

/* A pass that continues after each failure: the run must itself detect that memory ran out. */
static hlo_status heedless(void *user, hlo_module *module, const hlo_diag_sink *to) {
    const hlo_computation *entry = hlo_module_entry(module);
    const hlo_instruction *c = hlo_computation_find(entry, "c");
    hlo_instruction_options options;
    hlo_status *last = user;
    hlo_instruction_options_init(&options);
    options.opcode = HLO_OP_NEGATE;
    options.operands = &c;
    options.operand_count = 1;
    for (int i = 0; i < 120; i++)
        last[i & 1] = hlo_instruction_new(module, entry, &options, to, NULL);
    return HLO_OK;
}

static hlo_status call_optimize(hlo_module *module) {
    hlo_user_pass pass;
    const hlo_user_pass *passes = &pass;
    hlo_pass_options options;
    hlo_report *report = NULL;
    char why[256];
    hlo_status last[2] = {HLO_OK, HLO_OK}; /* statuses of the last edits */
    hlo_user_pass_init(&pass);
    pass.name = "heedless";
    pass.run = heedless;
    pass.user = last;
    hlo_pass_options_init(&options);
    options.passes = "heedless,default";
    options.user_passes = &passes;
    options.user_pass_count = 1;
    options.rules_text = rules;
    options.lint = options.surroundings = options.time_passes = true;
    options.sink = &sink;
    hlo_status status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK && last[0] != HLO_OK && last[1] != HLO_OK) status = HLO_INTERNAL;
    const hlo_report *reports[] = {report};
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.colored = true;
    for (int f = HLO_REMARKS_TEXT; f <= HLO_REMARKS_MARKDOWN && status == HLO_OK; f++) {
        remarks.format = (hlo_remarks_format)f;
        status = hlo_reports_print(reports, 1, &remarks, hlo_file_writer(nowhere));
    }
    remarks = (hlo_remarks_options){.struct_size = sizeof remarks, .which = HLO_REMARKS_ALL};
    if (status == HLO_OK)
        status = hlo_reports_print(reports, 1, &remarks, hlo_file_writer(nowhere));
    hlo_page_options page;
    hlo_page_options_init(&page);
    page.baseline = baseline;
    page.sink = &sink;
    if (status == HLO_OK) status = hlo_reports_page(reports, 1, &page, hlo_file_writer(nowhere));
    if (status == HLO_OK)
        status = hlo_reports_gate(reports, 1, "all", NULL, false, why, sizeof why);
    if (status == HLO_OK)
        status = hlo_reports_baseline(reports, 1, baseline, false, &sink, why, sizeof why);
    hlo_change changes[2][8];
    if (status == HLO_OK && hlo_report_count(report) > sizeof *changes / sizeof **changes)
        status = HLO_INTERNAL;
    if (status == HLO_OK)
        status = hlo_reports_compare(reports, 1, reports, 1, changes[0], changes[1]);
    if (status == HLO_OK) hlo_report_print_times(report, hlo_file_writer(nowhere));
    hlo_report_free(report);
    return status;
}

/* Runs the passes twice: the second run keeps a matmul wide that gained too little. The names of
 * the module are many, so that memory can run out when the second run restores them. */
static hlo_status call_rerun(void) {
    enum { LINES = 1500 };
    static char many[LINES * 40 + sizeof text];
    const char *end = strstr(text, "  ROOT %d");
    size_t size = (size_t)(end - text);
    memcpy(many, text, size);
    for (int i = 0; i < LINES; i++)
        size += (size_t)sprintf(many + size, "  %%n%d = f32[] negate(%%c)\n", i);
    strcpy(many + size, end);
    hlo_module *module = NULL;
    hlo_pass_options options;
    hlo_report *report = NULL;
    hlo_pass_options_init(&options);
    options.min_gain = 1e6;
    options.lint = true;
    options.sink = &sink;
    hlo_status status = hlo_module_parse(many, strlen(many), "m.hlo", &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    hlo_report_free(report);
    hlo_module_free(module);
    return status;
}

/* Runs a module with values, NaN checks and times requested. */
static hlo_status call_look(hlo_module *module, const hlo_arrays *inputs) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *outputs = NULL;
    hlo_plan_options_init(&options);
    options.values = "*";
    options.check_finite = options.profile = true;
    hlo_status status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &outputs);
    if (status == HLO_OK) status = hlo_plan_print_profile(plan, hlo_file_writer(nowhere));
    if (status == HLO_OK) hlo_plan_print_trace(plan, hlo_file_writer(nowhere));
    hlo_arrays_free(outputs);
    hlo_plan_free(plan);
    return status;
}

static hlo_status call_runtime(hlo_module *module) {
    static const float value = 1;
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL, *others = NULL;
    hlo_comparison comparison;
    hlo_plan_options_init(&options);
    options.bounds = true;
    hlo_status status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 1, &sink, &inputs);
    if (status == HLO_OK) status = hlo_plan_check(plan, inputs, &sink);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &outputs);
    double seconds[2];
    if (status == HLO_OK) status = hlo_plan_time(plan, 2, &sink, seconds);
    if (status == HLO_OK) status = hlo_backend_print("cpu", &sink, hlo_file_writer(nowhere));
    hlo_comparison_init(&comparison);
    comparison.found = comparison.expected = outputs;
    if (status == HLO_OK)
        status = hlo_arrays_sample(outputs, &comparison, module, &options, inputs, &sink);
    if (status == HLO_OK) status = hlo_arrays_compare_by(&comparison, hlo_file_writer(nowhere));
    if (status == HLO_OK) status = hlo_arrays_compare(outputs, outputs, hlo_file_writer(nowhere));
    if (status == HLO_OK) hlo_plan_print(plan, hlo_file_writer(nowhere));
    if (status == HLO_OK) status = hlo_arrays_new(&others);
    if (status == HLO_OK) status = hlo_arrays_append(others, HLO_TYPE_F32, 0, NULL, &value);
    if (status == HLO_OK) status = call_look(module, inputs);
    hlo_arrays_free(others);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
    return status;
}

static hlo_status call_resident(hlo_module *module) {
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_buffer *in[3] = {NULL}, *out[1] = {NULL};
    hlo_event *event = NULL;
    struct DLManagedTensorVersioned *tensor = NULL;
    char data[1024];
    hlo_plan_options_init(&options);
    options.resident = true;
    hlo_status status = hlo_plan_new(module, &options, &sink, &plan);
    for (size_t i = 0; i < 3 && status == HLO_OK; i++)
        status = hlo_buffer_new(plan, i, NULL, &sink, &in[i]);
    if (status == HLO_OK) status = hlo_buffer_to_dlpack(in[0], NULL, &sink, &tensor);
    if (status == HLO_OK) {
        hlo_buffer_free(in[0]);
        in[0] = NULL;
        status = hlo_buffer_from_dlpack(plan, 0, tensor, &sink, &in[0]);
        if (status != HLO_OK) tensor->deleter(tensor);
    }
    if (status == HLO_OK) status = hlo_plan_run_async(plan, in, 3, NULL, &sink, out, &event);
    if (status == HLO_OK) status = hlo_buffer_read(out[0], data, sizeof data, &sink);
    hlo_event_free(event);
    hlo_buffer_free(out[0]);
    for (int i = 0; i < 3; i++) hlo_buffer_free(in[i]);
    hlo_plan_free(plan);
    return status;
}

/* Returns HLO_INTERNAL if a function that ran out of memory has changed the module. The module may
 * be one that memory does not suffice to print. */
static hlo_status unchanged(hlo_module *module, hlo_status status) {
    char *printed = NULL;
    size_t size;
    if (status == HLO_OUT_OF_MEMORY &&
        hlo_module_to_text(module, NULL, &printed, &size) == HLO_OK &&
        (size != strlen(whole) || memcmp(printed, whole, size) != 0))
        status = HLO_INTERNAL;
    hlo_free(printed);
    return status;
}

static hlo_status call_extract(hlo_module *module) {
    hlo_status status = unchanged(module, hlo_module_extract(module, "d", NULL, &sink));
    return status == HLO_OK
               ? want(hlo_module_extract(module, "none", NULL, &sink), HLO_INVALID_INPUT)
               : status;
}

static hlo_status call_split(hlo_module *module) {
    hlo_module *ahead = NULL;
    const hlo_status status = unchanged(module, hlo_module_split(module, "b,c", &sink, &ahead));
    hlo_module_free(ahead);
    return status;
}

/* Records amaxes, reads them, and splits the module. */
static hlo_status call_static(hlo_module *module) {
    hlo_arrays *inputs = NULL;
    hlo_module *ahead = NULL;
    char *amaxes = NULL;
    size_t size;
    FILE *out = open_memstream(&amaxes, &size);
    if (!out) return HLO_OUT_OF_MEMORY;
    hlo_status status = hlo_arrays_draw_each(module, HLO_DRAW_NORMAL, 1, 1, &sink, &inputs);
    if (status == HLO_OK)
        status = hlo_module_record_amaxes(module, (const hlo_arrays *const *)&inputs, 1, &sink,
                                          hlo_file_writer(out));
    /* A memory stream whose buffer cannot grow reports a failed write, or has no text. */
    if (status == HLO_INVALID_INPUT) status = HLO_OUT_OF_MEMORY;
    if (fclose(out) != 0 || !amaxes) status = HLO_OUT_OF_MEMORY;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.quantize = "static";
    options.min_gain = 0.001;
    options.ahead = "*";
    options.amaxes_text = amaxes;
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    if (status == HLO_OK) status = hlo_module_split(module, "*", &sink, &ahead);
    hlo_arrays_free(inputs);
    hlo_module_free(ahead);
    free(amaxes);
    return status;
}

/* Reads the inputs of one device for two devices, and writes them. */
static hlo_status call_npz(hlo_module *module) {
    hlo_arrays *inputs = NULL;
    hlo_status status = hlo_arrays_read_each(archive, module, HLO_INPUTS, 2, &sink, &inputs);
    if (status == HLO_OK) status = hlo_arrays_write(inputs, hlo_file_writer(nowhere));
    hlo_arrays_free(inputs);
    inputs = NULL;
    if (status == HLO_OK)
        status = hlo_arrays_draw_each(module, HLO_DRAW_REALISTIC, 1, 2, &sink, &inputs);
    hlo_arrays_free(inputs);
    return status;
}

/* Compiles and runs a module on the plugin's two devices, or compiles it for a target. */
static hlo_status use_plugin(const hlo_module *module, const char *target) {
    static const char *const setting = "xla_gpu_autotune_level=0";
    hlo_pjrt_options options;
    hlo_pjrt *pjrt = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_module *optimized = NULL;
    hlo_pjrt_options_init(&options);
    options.plugin = plugin;
    options.target = target;
    options.devices = 2;
    options.settings = &setting;
    options.setting_count = 1;
    hlo_status status = hlo_arrays_draw(module, 1, &sink, &inputs);
    if (status == HLO_OK) status = hlo_pjrt_new(module, &options, &sink, &pjrt);
    if (status == HLO_OK) {
        status = hlo_pjrt_run(pjrt, inputs, &sink, &outputs);
        if (target) status = want(status, HLO_INVALID_USAGE);
    }
    if (status == HLO_OK && !target) status = hlo_arrays_compare(inputs, outputs, (hlo_writer){0});
    if (status == HLO_OK) status = hlo_pjrt_optimized(pjrt, &sink, &optimized);
    hlo_module_free(optimized);
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_pjrt_free(pjrt);
    return status;
}

static hlo_status call_pjrt(void) {
    static const char identity[] =
        "ENTRY e {\n  ROOT p = f32[4,6]{0,1} parameter(0), sharding={devices=[2,1]<=[2]}\n}\n";
    hlo_module *module = NULL;
    hlo_status status = hlo_module_parse(identity, strlen(identity), "i.hlo", &sink, &module);
    if (status == HLO_OK) status = use_plugin(module, NULL);
    if (status == HLO_OK) status = use_plugin(module, gpu);
    hlo_module_free(module);
    return status;
}

static hlo_status call_history(void) {
    hlo_dump *dump = NULL;
    hlo_history *history = NULL;
    hlo_status status = hlo_dump_open(folder, &sink, &dump);
    if (status == HLO_OK) status = hlo_history_new(dump, 0, NULL, &history);
    const hlo_history *histories[] = {history};
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    for (int f = HLO_REMARKS_TEXT; f <= HLO_REMARKS_MARKDOWN && status == HLO_OK; f++) {
        remarks.format = (hlo_remarks_format)f;
        status = hlo_histories_print(dump, histories, &remarks, hlo_file_writer(nowhere));
    }
    remarks = (hlo_remarks_options){.struct_size = sizeof remarks, .which = HLO_REMARKS_ALL};
    if (status == HLO_OK)
        status = hlo_histories_print(dump, histories, &remarks, hlo_file_writer(nowhere));
    if (status == HLO_OK)
        status = hlo_histories_page(dump, histories, NULL, hlo_file_writer(nowhere));
    hlo_history_free(history);
    hlo_dump_free(dump);
    return status;
}

/* ---------------------------------------------------------------------------------- the running */

static const struct row {
    const char *name;
    hlo_status (*call)(void);
    hlo_status (*call_with)(hlo_module *module); /* with a module created for each run */
} rows[] = {
    {.name = "parse-file", .call = call_parse_file},
    {.name = "modules-parse-file", .call = call_modules_parse_file},
    {.name = "parse-wrong", .call = call_parse_wrong},
    {.name = "history", .call = call_history},
    {.name = "proto", .call_with = call_proto},
    {.name = "module", .call_with = call_module},
    {.name = "attribute", .call_with = call_attribute},
    {.name = "new", .call_with = call_new},
    {.name = "new-others", .call_with = call_new_others},
    {.name = "changes", .call_with = call_changes},
    {.name = "structure", .call_with = call_structure},
    {.name = "optimize", .call_with = call_optimize},
    {.name = "rerun", .call = call_rerun},
    {.name = "runtime", .call_with = call_runtime},
    {.name = "resident", .call_with = call_resident},
    {.name = "extract", .call_with = call_extract},
    {.name = "split", .call_with = call_split},
    {.name = "static", .call_with = call_static},
    {.name = "npz", .call_with = call_npz},
    {.name = "pjrt", .call = call_pjrt},
};

/* Functions of failing.so. */
static long (*begin)(long at, bool on);
static long (*end)(long *out_count);

static hlo_status run(const struct row *row) {
    if (row->call) return row->call();
    hlo_module *module = NULL;
    hlo_status status = parse(&module);
    if (status == HLO_OK) status = row->call_with(module);
    hlo_module_free(module);
    return status;
}

/* Runs a row of the table with allocation `at` failing; returns the number of allocations. */
static long try(const struct row *row, long at, bool on, bool *failed) {
    long count;
    tzset(); /* libc stores the time zone's name; the previous run may have lacked memory for it */
    const long before = begin(at, on);
    const hlo_status status = run(row);
    const long left = end(&count) - before;
    if ((status == HLO_OUT_OF_MEMORY && at) || status == HLO_OK) {
        if (left <= 0) return count;
        fprintf(stderr, "%s: allocation %ld%s: %ld are not freed\n", row->name, at,
                on ? " and all later ones" : "", left);
    } else {
        fprintf(stderr, "%s: allocation %ld%s: %s\n", row->name, at,
                on ? " and all later ones" : "", hlo_status_name(status));
    }
    *failed = true;
    return count;
}

/* The fields that a GPU description must have. */
static const char *const target_fields[] = {
    "threads_per_block_limit", "threads_per_warp",  "threads_per_core_limit", "core_count",
    "fpus_per_core",           "block_dim_limit_x", "block_dim_limit_y",      "block_dim_limit_z",
    "memory_bandwidth",        "clock_rate_ghz"};

/* Writes the files to read. */
static hlo_status prepare(void) {
    hlo_module *module = NULL;
    hlo_report *report = NULL;
    hlo_status status = parse(&module);
    hlo_arrays *inputs = NULL;
    FILE *files[] = {fopen(model, "w"), fopen(baseline, "w"), fopen(archive, "w"), fopen(gpu, "w")};
    if (!files[0] || !files[1] || !files[2] || !files[3]) return HLO_INVALID_INPUT;
    fputs("gpu_device_info {\n", files[3]);
    for (size_t i = 0; i < sizeof target_fields / sizeof *target_fields; i++)
        fprintf(files[3], "  %s: 1\n", target_fields[i]);
    fputs("}\n", files[3]);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 1, &sink, &inputs);
    if (status == HLO_OK) status = hlo_arrays_write(inputs, hlo_file_writer(files[2]));
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(files[0]));
    if (status == HLO_OK) status = hlo_module_to_text(module, NULL, &whole, &(size_t){0});
    if (status == HLO_OK) status = hlo_module_optimize(module, NULL, &report);
    const hlo_report *reports[] = {report};
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.format = HLO_REMARKS_JSON;
    if (status == HLO_OK)
        status = hlo_reports_print(reports, 1, &remarks, hlo_file_writer(files[1]));
    for (int i = 0; i < 4; i++) fclose(files[i]);
    hlo_arrays_free(inputs);
    hlo_report_free(report);
    hlo_module_free(module);
    return status;
}

int main(int argc, char **argv) {
    enum { MAX = 150 }; /* maximum runs per row and kind of failure, without --long */
    const bool all = argc == 4 && strcmp(argv[1], "--long") == 0;
    bool failed = false;
    *(void **)&begin = dlsym(RTLD_DEFAULT, "failing_begin");
    *(void **)&end = dlsym(RTLD_DEFAULT, "failing_end");
    nowhere = fopen("/dev/null", "w");
    if (argc != 3 + all || !begin || !end || !nowhere) return 2;
    plugin = argv[argc - 1];
    snprintf(folder, sizeof folder, "%.400s", argv[argc - 2]);
    snprintf(archive, sizeof archive, "%.400s/inputs.npz", folder);
    snprintf(gpu, sizeof gpu, "%.400s/target.txtpb", folder);
    snprintf(model, sizeof model, "%.400s/module_0000.m.before_optimizations.txt", folder);
    snprintf(baseline, sizeof baseline, "%.400s/baseline.json", folder);
    if (prepare() != HLO_OK) return 2;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)run(&rows[i]); /* a first run initializes caches of libraries */
        const long count = try(&rows[i], 0, false, &failed);
        const long step = all || count < MAX ? 1 : 1 + count / MAX;
        for (int on = 0; on < 2 && !failed; on++)
            for (long at = 1; at <= count; at += step) try(&rows[i], at, on, &failed);
    }
    hlo_free(whole);
    fclose(nowhere);
    return failed;
}
