/* SPDX-License-Identifier: Apache-2.0 */
/* pjrt_compile PLUGIN MODULE.pb: rewrites an HloModuleProto between lowering and compilation. The
 * PJRT plugin compiles both the original and the rewritten module and executes them on random
 * inputs. The outputs are compared within the rounding error bounds of the original module. Exits
 * with status 3 if they differ by more.
 *
 * A program that already calls the PJRT C API only needs rewrite(). */
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <hlo/report.h>
#include <hlo/proto.h>
#include <hlo/runtime.h>

#include "xla/pjrt/c/pjrt_c_api.h"

static void print_diagnostic(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer(static_cast<FILE *>(user)));
}

static const hlo_diag_sink sink = {print_diagnostic, stderr};

/* An hlo_writer.write that appends to a std::string. */
static bool append(void *user, const char *bytes, size_t size) {
    static_cast<std::string *>(user)->append(bytes, size);
    return true;
}

/* Rewrites a serialized HloModuleProto and prints the verdicts. */
static hlo_status rewrite(const std::string &program, hlo_emit_form emit, std::string *rewritten) {
    hlo_pass_options options;
    hlo_module *module = nullptr;
    hlo_report *report = nullptr;

    hlo_pass_options_init(&options);
    options.sink = &sink;
    options.emit = emit;
    hlo_status status =
        hlo_module_parse_proto(program.data(), program.size(), "program", &sink, &module);
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) status = hlo_reports_print(&report, 1, nullptr, hlo_file_writer(stderr));
    if (status == HLO_OK)
        status = hlo_module_print_proto(module, HLO_PROTO_BINARY, &sink, {append, rewritten});
    hlo_report_free(report);
    hlo_module_free(module);
    return status;
}

static const PJRT_Api *api;

/* Returns a struct of arguments, which is zero except for its size. */
template <typename Args> static Args arguments() {
    Args args;
    memset(&args, 0, sizeof args);
    args.struct_size = sizeof args;
    return args;
}

/* Ends the program if a function of the plugin failed. */
static void check(PJRT_Error *error) {
    if (!error) return;
    auto message = arguments<PJRT_Error_Message_Args>();
    message.error = error;
    api->PJRT_Error_Message(&message);
    fprintf(stderr, "pjrt_compile: %.*s\n", static_cast<int>(message.message_size),
            message.message);
    exit(1);
}

static void await(PJRT_Event *event) {
    auto wait = arguments<PJRT_Event_Await_Args>();
    wait.event = event;
    check(api->PJRT_Event_Await(&wait));
    auto done = arguments<PJRT_Event_Destroy_Args>();
    done.event = event;
    check(api->PJRT_Event_Destroy(&done));
}

static PJRT_LoadedExecutable *compile(PJRT_Client *client, std::string program) {
    /* A CompileOptionsProto with one replica and one partition. */
    static const char compile_options[] = "\x1a\x04\x20\x01\x28\x01";
    auto code = arguments<PJRT_Program>();
    code.code = &program[0];
    code.code_size = program.size();
    code.format = "hlo";
    code.format_size = strlen(code.format);
    auto args = arguments<PJRT_Client_Compile_Args>();
    args.client = client;
    args.program = &code;
    args.compile_options = compile_options;
    args.compile_options_size = sizeof compile_options - 1;
    check(api->PJRT_Client_Compile(&args));
    return args.executable;
}

/* Copies an input to the device. */
static PJRT_Buffer *send(PJRT_Client *client, PJRT_Device *device, const hlo_array *array) {
    auto args = arguments<PJRT_Client_BufferFromHostBuffer_Args>();
    args.type = array->type == HLO_TYPE_F32        ? PJRT_Buffer_Type_F32
                : array->type == HLO_TYPE_BF16     ? PJRT_Buffer_Type_BF16
                : array->type == HLO_TYPE_F8E4M3FN ? PJRT_Buffer_Type_F8E4M3FN
                : array->type == HLO_TYPE_F8E5M2   ? PJRT_Buffer_Type_F8E5M2
                                                   : PJRT_Buffer_Type_INVALID;
    args.client = client;
    args.data = array->data;
    args.dims = array->dims;
    args.num_dims = array->rank;
    args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    args.device = device;
    check(api->PJRT_Client_BufferFromHostBuffer(&args));
    await(args.done_with_host_buffer);
    return args.buffer;
}

/* Executes a program that has the outputs of `like`, and appends its outputs to `outputs`. */
static void execute(PJRT_LoadedExecutable *executable, const std::vector<PJRT_Buffer *> &inputs,
                    const hlo_arrays *like, hlo_arrays *outputs) {
    std::vector<PJRT_Buffer *> results(hlo_arrays_count(like));
    PJRT_Buffer *const *argument_list = inputs.data();
    PJRT_Buffer **output_list = results.data();
    PJRT_Event *done = nullptr;
    auto options = arguments<PJRT_ExecuteOptions>();
    auto args = arguments<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = &argument_list;
    args.num_devices = 1;
    args.num_args = inputs.size();
    args.output_lists = &output_list;
    args.device_complete_events = &done;
    check(api->PJRT_LoadedExecutable_Execute(&args));
    await(done);
    for (size_t i = 0; i < results.size(); i++) {
        const hlo_array *array = hlo_arrays_at(like, i);
        std::vector<char> bytes(array->size);
        auto copy = arguments<PJRT_Buffer_ToHostBuffer_Args>();
        copy.src = results[i];
        copy.dst = bytes.data();
        copy.dst_size = bytes.size();
        check(api->PJRT_Buffer_ToHostBuffer(&copy));
        await(copy.event);
        auto destroy = arguments<PJRT_Buffer_Destroy_Args>();
        destroy.buffer = results[i];
        check(api->PJRT_Buffer_Destroy(&destroy));
        hlo_arrays_append(outputs, array->type, array->rank, array->dims, bytes.data());
    }
}

/* Executes the module with the CPU backend of the library, which computes error bounds. */
static hlo_status judge(const std::string &program, hlo_arrays **inputs, hlo_arrays **expected) {
    hlo_plan_options options;
    hlo_module *module = nullptr;
    hlo_plan *plan = nullptr;
    hlo_plan_options_init(&options);
    options.bounds = options.roundings_may_be_dropped = true;
    hlo_status status =
        hlo_module_parse_proto(program.data(), program.size(), "program", &sink, &module);
    if (status == HLO_OK) status = hlo_arrays_draw(module, 0, &sink, inputs);
    if (status == HLO_OK) status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK) status = hlo_plan_run(plan, *inputs, &sink, expected);
    hlo_plan_free(plan);
    hlo_module_free(module);
    return status;
}

static const PJRT_Api *load(const char *path) {
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    using get_api = const PJRT_Api *();
    auto *get = plugin ? reinterpret_cast<get_api *>(dlsym(plugin, "GetPjrtApi")) : nullptr;
    return get ? get() : nullptr;
}

int main(int argc, char **argv) {
    std::ifstream file(argc == 3 ? argv[2] : "", std::ios::binary);
    std::string program{std::istreambuf_iterator<char>(file), {}}, rewritten;
    if (argc != 3 || program.empty()) {
        fputs("usage: pjrt_compile PLUGIN MODULE.pb\n", stderr);
        return 2;
    }
    hlo_arrays *inputs = nullptr, *expected = nullptr;
    hlo_status status = judge(program, &inputs, &expected);
    if (status == HLO_OK) status = rewrite(program, HLO_EMIT_DQ, &rewritten);
    api = status == HLO_OK ? load(argv[1]) : nullptr;
    if (status == HLO_OK && !api) {
        fprintf(stderr, "pjrt_compile: cannot load the plugin: %s\n", dlerror());
        status = HLO_INVALID_INPUT;
    }
    if (status == HLO_OK) {
        auto initialize = arguments<PJRT_Plugin_Initialize_Args>();
        check(api->PJRT_Plugin_Initialize(&initialize));
        auto create = arguments<PJRT_Client_Create_Args>();
        check(api->PJRT_Client_Create(&create));
        auto devices = arguments<PJRT_Client_AddressableDevices_Args>();
        devices.client = create.client;
        check(api->PJRT_Client_AddressableDevices(&devices));
        std::vector<PJRT_Buffer *> sent;
        for (size_t i = 0; i < hlo_arrays_count(inputs); i++)
            sent.push_back(send(create.client, devices.addressable_devices[0],
                                hlo_arrays_at(inputs, i)));
        for (const std::string &each : {program, rewritten}) {
            hlo_arrays *found = nullptr;
            if (hlo_arrays_new(&found) != HLO_OK) break;
            execute(compile(create.client, each), sent, expected, found);
            const hlo_status compared = hlo_arrays_compare(expected, found, hlo_file_writer(stdout));
            if (status == HLO_OK) status = compared;
            hlo_arrays_free(found);
        }
    }
    hlo_arrays_free(inputs);
    hlo_arrays_free(expected);
    return hlo_status_exit(status);
}
