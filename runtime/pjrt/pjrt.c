/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a plugin, and compiles and executes modules with it. */
#include "hlo/pjrt.h"

#include <ctype.h>
#include <dlfcn.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/diag.h"
#include "hlo/ffi.h"
#include "hlo/proto.h"
#include "ir/arena.h"
#include "ir/devices/device_groups.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "ir/verify/verify.h"
#include "runtime/io/arrays.h"
#include "runtime/pjrt/abi.h"

#include "compile_options.proto.h"

/* -------------------------------------------------------------------------------------- plugins */

/* A loaded plugin. A plugin stays loaded until the process ends, because plugins keep threads. */
typedef struct pjrt_plugin {
    const char *path; /* borrowed */
    const pjrt_api *api;
} pjrt_plugin;

static pjrt_call *find(const pjrt_plugin *plugin, pjrt_function function) {
    const size_t end = offsetof(pjrt_api, functions) + ((size_t)function + 1) * sizeof(pjrt_call *);
    return plugin->api->size < end ? NULL : plugin->api->functions[function];
}

/* Reports an error of the plugin, and destroys the error. */
static hlo_status report_error(const pjrt_plugin *plugin, pjrt_error *error, const char *doing,
                               const hlo_diag_sink *sink) {
    pjrt_error_args args = {.size = sizeof args, .error = error};
    pjrt_call *message = find(plugin, PJRT_ERROR_MESSAGE), *destroy;
    if (message) message(&args);
    char said[900]; /* the plugin's message, in one line */
    snprintf(said, sizeof said, "%.*s",
             (int)(args.message_size < sizeof said ? args.message_size : sizeof said),
             args.message ? args.message : "");
    for (char *at = said; *at; at++)
        if (*at == '\n') *at = ' ';
    hlo_diag_refuse(sink, HLO_DIAG_DEVICE, plugin->path, 0, 0, "cannot %s: %s", doing, said);
    args = (pjrt_error_args){.size = sizeof args, .error = error};
    destroy = find(plugin, PJRT_ERROR_DESTROY);
    if (destroy) destroy(&args);
    return HLO_INVALID_INPUT;
}

/* Calls a function of the plugin. If the function fails or the plugin lacks it, emits the error
 * "PATH: error: cannot `doing`: ..." to `sink` and returns HLO_INVALID_INPUT. */
static hlo_status call_plugin(const pjrt_plugin *plugin, pjrt_function function, void *arguments,
                              const char *doing, const hlo_diag_sink *sink) {
    pjrt_call *call = find(plugin, function);
    if (!call) {
        return hlo_diag_refuse(
            sink, HLO_DIAG_DEVICE, plugin->path, 0, 0,
            "cannot %s: version 0.%d of the plugin's interface lacks function %d", doing,
            plugin->api->version.minor, function);
    }
    pjrt_error *error = call(arguments);
    return error ? report_error(plugin, error, doing, sink) : HLO_OK;
}

/* Calls a function whose only argument is an object. Does nothing if the object is NULL. */
static hlo_status call_on(const pjrt_plugin *plugin, pjrt_function function, void *object,
                          const char *doing, const hlo_diag_sink *sink) {
    if (!object) return HLO_OK;
    pjrt_object_args args = {.size = sizeof args, .object = object};
    return call_plugin(plugin, function, &args, doing, sink);
}

/* Waits for an event, and destroys it. NULL is allowed. */
static hlo_status await_event(const pjrt_plugin *plugin, pjrt_event *event, const char *doing,
                              const hlo_diag_sink *sink) {
    hlo_status status = call_on(plugin, PJRT_EVENT_AWAIT, event, doing, sink);
    hlo_status freed = call_on(plugin, PJRT_EVENT_DESTROY, event, "free an event", sink);
    return status == HLO_OK ? freed : status;
}

/* ------------------------------------------------------------------------------------ transfers */

/* An input or output of a compiled module. */
typedef struct pjrt_leaf {
    const hlo_shape *shape;        /* shape of the whole array */
    const int64_t *minor_to_major; /* layout on the device; NULL for row-major */
    const int64_t *dims;           /* dimensions of each device's part */
    hlo_tiling tiling;
} pjrt_leaf;

/* Numbers of element types in the PJRT C API, or 0 for unsupported types. */
static const int types[HLO_TYPE_COUNT] = {
#define PJRT_TYPE(type, number) [HLO_TYPE_##type] = number,
#include "runtime/pjrt/type.def"
#undef PJRT_TYPE
};

static size_t part_size(const pjrt_leaf *leaf) {
    size_t size = hlo_types[leaf->shape->type].bytes;
    for (uint32_t i = 0; i < leaf->shape->rank; i++) size *= (size_t)leaf->dims[i];
    return size;
}

/* Copies rows between a device's part and its position in the whole array. The part and the array
 * are row-major. `out`: from the whole array to the part. */
static void copy_part(const pjrt_leaf *leaf, size_t device, char *whole, char *part, bool out) {
    const hlo_shape *shape = leaf->shape;
    const uint32_t rank = shape->rank;
    const size_t width = hlo_types[shape->type].bytes, size = part_size(leaf);
    if (!size) return;
    const size_t row = rank ? (size_t)leaf->dims[rank - 1] * width : width;
    for (size_t done = 0; done < size; done += row) {
        size_t rest = done / row, at = 0, step = rank ? (size_t)shape->dims[rank - 1] : 1;
        for (uint32_t i = rank; i-- > 0;) {
            const size_t length = (size_t)leaf->dims[i];
            size_t index =
                leaf->tiling.devices ? (size_t)leaf->tiling.places[device * rank + i] * length : 0;
            if (i == rank - 1) {
                at += index;
                continue;
            }
            index += rest % length;
            rest /= length;
            at += index * step;
            step *= (size_t)shape->dims[i];
        }
        memcpy(out ? part + done : whole + at * width, out ? whole + at * width : part + done, row);
    }
}

static pjrt_layout layout_of(const pjrt_leaf *leaf, int64_t *row_major, bool host) {
    const uint32_t rank = leaf->shape->rank;
    for (uint32_t i = 0; i < rank; i++) row_major[i] = rank - 1 - i;
    pjrt_layout layout = {.size = sizeof layout};
    layout.tiled.size = sizeof layout.tiled;
    layout.tiled.minor_to_major = host || !leaf->minor_to_major ? row_major : leaf->minor_to_major;
    layout.tiled.minor_to_major_size = rank;
    return layout;
}

/* Copies a part of `array` to a new buffer on `device`, which has the number `number`. */
static hlo_status send_part(const pjrt_plugin *plugin, pjrt_client *client, const pjrt_leaf *leaf,
                            const hlo_array *array, pjrt_device *device, size_t number,
                            const hlo_diag_sink *sink, pjrt_buffer **out) {
    int64_t row_major[HLO_LARGEST_RANK];
    const pjrt_layout layout = layout_of(leaf, row_major, false);
    char *part = hlo_malloc(part_size(leaf) + 1);
    if (!part) return HLO_OUT_OF_MEMORY;
    copy_part(leaf, number, array->data, part, true);
    pjrt_buffer_from_host_args args = {.size = sizeof args,
                                       .client = client,
                                       .data = part,
                                       .type = types[leaf->shape->type],
                                       .dims = leaf->dims,
                                       .dim_count = leaf->shape->rank,
                                       .semantics = 1,
                                       .device = device,
                                       .layout = leaf->minor_to_major ? &layout : NULL};
    hlo_status status =
        call_plugin(plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &args, "copy an input", sink);
    *out = args.buffer;
    if (status == HLO_OK) status = await_event(plugin, args.done, "copy an input", sink);
    hlo_free(part);
    return status;
}

/* Copies a buffer of device `number` to that device's part of `array`. */
static hlo_status receive_part(const pjrt_plugin *plugin, pjrt_buffer *buffer,
                               const pjrt_leaf *leaf, hlo_array *array, size_t number,
                               const hlo_diag_sink *sink) {
    int64_t row_major[HLO_LARGEST_RANK];
    const pjrt_layout layout = layout_of(leaf, row_major, true);
    const size_t size = part_size(leaf);
    pjrt_buffer_to_host_args args = {.size = sizeof args, .buffer = buffer, .layout = &layout};
    hlo_status status = call_plugin(plugin, PJRT_BUFFER_TO_HOST, &args, "copy an output", sink);
    if (status != HLO_OK) return status;
    if (args.data_size != size)
        return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, plugin->path, 0, 0,
                               "an output has %zu bytes on device %zu, expected %zu",
                               args.data_size, number, size);
    char *part = hlo_malloc(size + 1);
    if (!part) return HLO_OUT_OF_MEMORY;
    args = (pjrt_buffer_to_host_args){
        .size = sizeof args, .buffer = buffer, .layout = &layout, .data = part, .data_size = size};
    status = call_plugin(plugin, PJRT_BUFFER_TO_HOST, &args, "copy an output", sink);
    if (status == HLO_OK) status = await_event(plugin, args.done, "copy an output", sink);
    if (status == HLO_OK) copy_part(leaf, number, array->data, part, false);
    hlo_array_extend(array);
    hlo_free(part);
    return status;
}

/* -------------------------------------------------------------------------------------- modules */

struct hlo_pjrt {
    pjrt_plugin plugin;
    const hlo_module *module;
    hlo_arena *arena;
    uint32_t device_count;
    bool partitioned;
    hlo_leaves input_shapes, output_shapes;
    pjrt_leaf *inputs, *outputs;
    pjrt_client *client;     /* NULL if the module is compiled for a target */
    pjrt_topology *topology; /* topology of the target, or NULL */
    pjrt_device *const *devices;
    pjrt_loaded *loaded;
    pjrt_executable *executable;
    double seconds;
};

void hlo_pjrt_options_init_sized(hlo_pjrt_options *options, size_t struct_size) {
    const hlo_pjrt_options all = {.struct_size = sizeof all, .devices = 1};
    hlo_options_fill(options, struct_size, &all, sizeof all);
}

static hlo_status refuse(const hlo_module *module, const hlo_instruction *value,
                         const hlo_diag_sink *sink, const char *why) {
    hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_UNSUPPORTED, value->offset, strlen(value->name),
                  "%s", why);
    return HLO_INVALID_INPUT;
}

/* Returns a custom call whose target begins with `start`, or NULL. */
static const hlo_instruction *find_call(const hlo_module *module, const char *start) {
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
            if (target && strncmp(target, start, strlen(start)) == 0) return instr;
        }
    return NULL;
}

/* Rejects modules that no plugin supports. A tuple parameter must be the only parameter, and must
 * contain only arrays. The partitions of a partitioned module must be as many as the devices.
 * cuBLASLt calls are rejected unless XLA's layout assignment, which would abort on them, is
 * disabled. */
static hlo_status check_module(const hlo_module *module, const hlo_pjrt_options *options,
                               const hlo_diag_sink *sink) {
    const hlo_computation *entry = module->entry;
    for (uint32_t i = 0; i < entry->parameter_count; i++) {
        const hlo_instruction *parameter = entry->parameters[i];
        if (parameter->shape->type != HLO_TYPE_TUPLE) continue;
        if (entry->parameter_count > 1)
            return refuse(
                module, parameter, sink,
                "a tuple parameter next to other parameters is not supported with a plugin");
        for (uint32_t k = 0; k < parameter->shape->rank; k++)
            if (parameter->shape->elements[k]->type == HLO_TYPE_TUPLE)
                return refuse(module, parameter, sink,
                              "a nested tuple parameter is not supported with a plugin");
    }
    const int64_t partitions = hlo_module_int(module, HLO_ATTR_NUM_PARTITIONS, 1);
    if (options->partitioned && partitions > 1 && partitions != options->devices) {
        hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_DEVICE_COUNT, 0, 1,
                      "the module has %lld partitions, but %u devices are given",
                      (long long)partitions, options->devices);
        return HLO_INVALID_INPUT;
    }
    const hlo_instruction *call = find_call(module, "__cublas$lt$matmul");
    for (size_t i = 0; call && i < options->setting_count; i++)
        if (strstr(options->settings[i], "layout-assignment")) call = NULL;
    return call ? refuse(module, call, sink,
                         "XLA supports only cuBLASLt calls that it makes itself: use --emit=qdq or "
                         "--emit=ffi (docs/emit.md)")
                : HLO_OK;
}

/* --------------------------------------------------------------------------------------- leaves */

/* Returns leaf `*index` of a shape, counted as in hlo_leaves_of(). If the shape has fewer leaves,
 * decreases *index by their number and returns NULL. */
static const hlo_shape *find_leaf(const hlo_shape *shape, size_t *index) {
    if (shape->type != HLO_TYPE_TUPLE)
        return hlo_types[shape->type].bytes && (*index)-- == 0 ? shape : NULL;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const hlo_shape *found = find_leaf(shape->elements[i], index);
        if (found) return found;
    }
    return NULL;
}

/* Sets the leaves of the inputs or the results: their layouts, and the parts of devices. */
static hlo_status describe_leaves(hlo_pjrt *pjrt, hlo_role role, const hlo_diag_sink *sink) {
    const hlo_module *module = pjrt->module;
    const hlo_computation *entry = module->entry;
    const hlo_shapes *layout = NULL; /* shapes of the parameters and, last, of the result */
    for (uint32_t i = 0; i < module->attr_count && !layout; i++)
        if (module->attrs[i].id == HLO_ATTR_ENTRY_COMPUTATION_LAYOUT)
            layout = module->attrs[i].u.shapes;
    hlo_leaves *leaves = role == HLO_INPUTS ? &pjrt->input_shapes : &pjrt->output_shapes;
    hlo_status status = hlo_leaves_of(module, role, leaves);
    if (status != HLO_OK) return status;
    pjrt_leaf *all = hlo_arena_array(pjrt->arena, leaves->count + 1, sizeof *all);
    *(role == HLO_INPUTS ? &pjrt->inputs : &pjrt->outputs) = all;
    for (size_t i = 0, first = 0; i < leaves->count; i++) {
        const uint32_t owner = leaves->owners[i];
        const hlo_instruction *value = role == HLO_INPUTS ? entry->parameters[owner] : entry->root;
        const uint32_t position = role == HLO_INPUTS ? owner : entry->parameter_count;
        const hlo_shape *shape = leaves->shapes[i];
        pjrt_leaf *leaf = &all[i];
        if (i && leaves->owners[i - 1] != owner) first = i;
        const hlo_shape *with_layout =
            find_leaf(layout ? layout->v[position] : value->shape, &(size_t){i - first});
        *leaf = (pjrt_leaf){.shape = shape};
        if (!types[shape->type])
            return refuse(module, value, sink, "the element type is not supported with a plugin");
        for (uint32_t d = 0; shape->dynamic && d < shape->rank; d++)
            if (shape->dynamic[d])
                return refuse(module, value, sink,
                              "dynamic arrays are not supported with a plugin");
        if (with_layout && !hlo_shape_is_row_major(with_layout))
            leaf->minor_to_major = with_layout->layout->minor_to_major;
        const hlo_sharding *sharding = hlo_instr_sharding(value);
        if (sharding && sharding->kind == HLO_SHARDING_TUPLE)
            sharding = i - first < sharding->count ? sharding->v[i - first] : NULL;
        if (pjrt->device_count > 1 && !pjrt->partitioned &&
            !hlo_tiling_of_sharding(pjrt->arena, sharding, shape->rank, &leaf->tiling))
            return refuse(module, value, sink, "the sharding is not supported with a plugin");
        if (leaf->tiling.devices && leaf->tiling.devices != pjrt->device_count)
            return refuse(module, value, sink, "the sharding has a different number of devices");
        int64_t *dims = hlo_arena_array(pjrt->arena, shape->rank, sizeof *dims);
        leaf->dims = dims;
        for (uint32_t d = 0; d < shape->rank; d++) {
            const int64_t parts = leaf->tiling.devices ? leaf->tiling.counts[d] : 1;
            if (shape->dims[d] % parts)
                return refuse(module, value, sink,
                              "the sharding does not divide this array evenly");
            dims[d] = shape->dims[d] / parts;
        }
    }
    return HLO_OK;
}

/* ------------------------------------------------------------------------------------- messages */

/* Bytes of a message; the owner frees `data`. */
typedef struct bytes {
    char *data;
    size_t size;
} bytes;

/* Properties of a module on which its compile options depend. */
typedef struct module_kind {
    bool shardy; /* the module has meshes of Shardy */
    bool tupled; /* the module's only parameter is a tuple */
} module_kind;

/* The setting that disables the passes that partition a module by its shardings. */
#define DISABLE_PASSES "xla_disable_hlo_passes"
#define PARTITIONING_PASSES "sharding-propagation,spmd-partitioning"

/* Returns the value of the last field with this number, or no bytes. */
static hlo_wire find_bytes(const void *message, size_t size, uint32_t number) {
    hlo_wire w = {message, (const uint8_t *)message + size, false}, found = {NULL, NULL, false};
    hlo_wire_field field;
    while (w.at < w.end && hlo_wire_next(&w, &field))
        if (field.number == number && field.delimited) found = field.value;
    return found;
}

static void add_override(hlo_arena *arena, Pjrt__CompileOptions *all, char *key, char *value) {
    Pjrt__OptionEntry *entry = hlo_message_add(arena, all, "env_option_overrides");
    entry->key = key;
    entry->value = hlo_message_new(arena, &Pjrt__OptionOverride__type);
    entry->value->string_field = value;
}

/* Adds the settings, each `KEY=VALUE`. A later setting overrides an earlier one with the same key.
 * Passes that a setting disables are added to those that are disabled for a partitioned module. */
static void add_overrides(hlo_arena *arena, Pjrt__CompileOptions *all,
                          const hlo_pjrt_options *options) {
    static char disable_passes[] = DISABLE_PASSES, partitioning_passes[] = PARTITIONING_PASSES;
    if (options->partitioned) add_override(arena, all, disable_passes, partitioning_passes);
    for (size_t i = 0; i < options->setting_count; i++) {
        const char *setting = options->settings[i], *given = strchr(setting, '=') + 1;
        char *key = hlo_arena_format(arena, "%.*s", (int)(given - 1 - setting), setting);
        const bool both = options->partitioned && strcmp(key, DISABLE_PASSES) == 0;
        const char *before = !both ? "" : *given ? PARTITIONING_PASSES "," : PARTITIONING_PASSES;
        add_override(arena, all, key, hlo_arena_format(arena, "%s%s", before, given));
    }
}

/* Makes a CompileOptionsProto for the HloModuleProto `module`. The message repeats the layouts of
 * the entry's parameters and result, because plugins reset layouts that are only in the module. */
static hlo_wire make_options(hlo_arena *arena, bytes module, module_kind kind,
                             const hlo_pjrt_options *options) {
    enum { HOST_PROGRAM_SHAPE = 4 }; /* of an HloModuleProto */
    const hlo_wire found = find_bytes(module.data, module.size, HOST_PROGRAM_SHAPE);
    const Pjrt__ProgramShape *shape = hlo_message_unpack(arena, &Pjrt__ProgramShape__type, found.at,
                                                         (size_t)(found.end - found.at));
    Pjrt__CompileOptions *all = hlo_message_new(arena, &Pjrt__CompileOptions__type);
    Pjrt__BuildOptions *build = hlo_message_new(arena, &Pjrt__BuildOptions__type);
    all->executable_build_options = build;
    all->parameter_is_tupled_arguments = kind.tupled;
    if (shape && !kind.tupled) { /* plugins ignore layouts in this form for a tuple */
        all->n_argument_layouts = shape->n_parameters;
        all->argument_layouts = shape->parameters;
    }
    if (shape) build->result_layout = shape->result;
    build->num_replicas = 1;
    build->num_partitions = options->devices;
    build->use_spmd_partitioning = options->devices > 1;
    build->use_shardy_partitioner = kind.shardy;
    add_overrides(arena, all, options);
    if (options->devices > 1) { /* assign each device a partition */
        Pjrt__DeviceAssignment *assignment = hlo_message_new(arena, &Pjrt__DeviceAssignment__type);
        assignment->replica_count = 1;
        assignment->computation_count = (int32_t)options->devices;
        build->device_assignment = assignment;
        for (uint32_t i = 0; i < options->devices; i++) {
            Pjrt__Computation *each = hlo_message_add(arena, assignment, "computation_devices");
            each->replica_device_ids = hlo_arena_array(arena, 1, sizeof *each->replica_device_ids);
            each->replica_device_ids[0] = i;
            each->n_replica_device_ids = 1;
        }
    }
    return hlo_message_pack(arena, &all->base);
}

/* Returns HLO_OUT_OF_MEMORY if memory runs out. */
static hlo_status write_options(bytes module, module_kind kind, const hlo_pjrt_options *options,
                                bytes *out) {
    jmp_buf recover;
    hlo_arena *arena = hlo_arena_new(&recover);
    if (arena && !setjmp(recover)) {
        const hlo_wire made = make_options(arena, module, kind, options);
        out->size = (size_t)(made.end - made.at);
        out->data = hlo_malloc(out->size + 1);
        if (out->data) memcpy(out->data, made.at, out->size);
    }
    hlo_arena_free(arena);
    return out->data ? HLO_OK : HLO_OUT_OF_MEMORY;
}

/* ------------------------------------------------------------------------------------ compiling */

/* Creates a client with as many devices as the module needs. */
static hlo_status make_client(hlo_pjrt *pjrt, const hlo_diag_sink *sink) {
    static const char count[] = "cpu_device_count";
    const pjrt_named_value option = {.size = sizeof option,
                                     .name = count,
                                     .name_size = sizeof count - 1,
                                     .type = PJRT_INT64,
                                     .value.number = pjrt->device_count,
                                     .value_size = 1};
    pjrt_client_create_args args = {.size = sizeof args, .options = &option};
    /* Plugins of platforms other than the CPU reject this option, and use the existing devices. */
    args.option_count = pjrt->device_count > 1;
    hlo_status status = call_plugin(&pjrt->plugin, PJRT_CLIENT_CREATE, &args, "create a client",
                                    args.option_count ? NULL : sink);
    if (status != HLO_OK && args.option_count) {
        args = (pjrt_client_create_args){.size = sizeof args};
        status = call_plugin(&pjrt->plugin, PJRT_CLIENT_CREATE, &args, "create a client", sink);
    }
    if (status != HLO_OK) return status;
    pjrt->client = args.client;
    pjrt_devices_args devices = {.size = sizeof devices, .client = args.client};
    status = call_plugin(&pjrt->plugin, PJRT_CLIENT_ADDRESSABLE_DEVICES, &devices,
                         "list the devices", sink);
    if (status == HLO_OK && devices.count < pjrt->device_count) {
        status = hlo_diag_refuse(sink, HLO_DIAG_DEVICE_COUNT, pjrt->plugin.path, 0, 0,
                                 "the plugin has %zu devices, but %u are requested", devices.count,
                                 pjrt->device_count);
    }
    pjrt->devices = devices.devices;
    return status;
}

/* Checks that a GpuTargetConfigProto, whose text was read from `path`, has the fields that plugins
 * require or by which they divide. */
static hlo_status check_target(const char *path, const hlo_content *text,
                               const hlo_diag_sink *sink) {
    static const char *const fields[] = {"gpu_device_info",   "threads_per_block_limit",
                                         "threads_per_warp",  "threads_per_core_limit",
                                         "core_count",        "fpus_per_core",
                                         "block_dim_limit_x", "block_dim_limit_y",
                                         "block_dim_limit_z", "memory_bandwidth",
                                         "clock_rate_ghz"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const size_t size = strlen(fields[i]);
        const char *at = text->bytes, *end = at + text->size, *found;
        double value = 0;
        while (!(value > 0) && (found = memmem(at, (size_t)(end - at), fields[i], size))) {
            at = found + size;
            while (at < end && (isspace((unsigned char)*at) || *at == ':')) at++;
            char number[32] = "";
            memcpy(number, at,
                   (size_t)(end - at) < sizeof number ? (size_t)(end - at) : sizeof number - 1);
            value = *number == '{' ? 1 : strtod(number, NULL);
        }
        if (!(value > 0))
            return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, path, 0, 0,
                                   "cannot read the target: expected a GpuTargetConfigProto as "
                                   "text, but `%s` is missing or 0",
                                   fields[i]);
    }
    return HLO_OK;
}

/* Creates the topology of a target's GPUs, which need not exist on this machine. */
static hlo_status make_topology(hlo_pjrt *pjrt, const char *target, const hlo_diag_sink *sink) {
    char shape[32];
    hlo_content text = {0};
    hlo_status status = hlo_file_read(target, sink, &text);
    if (status == HLO_OK) status = check_target(target, &text, sink);
    if (status != HLO_OK) {
        hlo_free(text.bytes);
        return status;
    }
    const int shape_size = snprintf(shape, sizeof shape, "1x1x%u", pjrt->device_count);
    const pjrt_named_value options[] = {{.size = sizeof *options,
                                         .name = "target_config",
                                         .name_size = strlen("target_config"),
                                         .type = PJRT_STRING,
                                         .value.string = text.bytes,
                                         .value_size = text.size},
                                        {.size = sizeof *options,
                                         .name = "topology",
                                         .name_size = strlen("topology"),
                                         .type = PJRT_STRING,
                                         .value.string = shape,
                                         .value_size = (size_t)shape_size}};
    pjrt_topology_create_args args = {.size = sizeof args,
                                      .name = "gpu",
                                      .name_size = 3,
                                      .options = options,
                                      .option_count = sizeof options / sizeof *options};
    status = call_plugin(&pjrt->plugin, PJRT_TOPOLOGY_CREATE, &args, "read the target", sink);
    hlo_free(text.bytes);
    pjrt->topology = args.topology;
    return status;
}

/* Registers the function that executes typed calls on the plugin's platform. Does nothing if the
 * plugin lacks the extension: such a plugin rejects the module itself. */
static hlo_status register_calls(hlo_pjrt *pjrt, const hlo_diag_sink *sink) {
    if (!find_call(pjrt->module, HLO_FFI_TARGET)) return HLO_OK;
    pjrt_platform_name_args name = {.size = sizeof name, .client = pjrt->client};
    hlo_status status = HLO_OK;
    if (pjrt->client)
        status =
            call_plugin(&pjrt->plugin, PJRT_CLIENT_PLATFORM_NAME, &name, "name the platform", sink);
    if (status != HLO_OK) return status;
    const bool cpu = name.name && name.name_size == 3 && memcmp(name.name, "cpu", 3) == 0;
    const pjrt_extension *at = pjrt->plugin.api->extensions;
    while (at && (at->type != PJRT_EXTENSION_FFI || at->size < sizeof(pjrt_ffi_extension)))
        at = at->next;
    if (!at) return HLO_OK;
    const pjrt_ffi_extension *extension = (const pjrt_ffi_extension *)at;
    pjrt_ffi_register_args args = {.size = sizeof args,
                                   .target = HLO_FFI_TARGET,
                                   .target_size = strlen(HLO_FFI_TARGET),
                                   .handler = cpu ? (void (*)(void))hlofp8_ffi_matmul_cpu
                                                  : (void (*)(void))hlofp8_ffi_matmul_cuda,
                                   .platform = cpu ? "HOST" : "CUDA",
                                   .platform_size = strlen("HOST")};
    pjrt_error *error = extension->functions[PJRT_FFI_REGISTER](&args);
    return error ? report_error(&pjrt->plugin, error, "register a custom call", sink) : HLO_OK;
}

static hlo_status compile_program(hlo_pjrt *pjrt, const pjrt_program *program, bytes options,
                                  const hlo_diag_sink *sink) {
    if (pjrt->topology) {
        pjrt_compile_args args = {.size = sizeof args,
                                  .topology = pjrt->topology,
                                  .program = program,
                                  .options = options.data,
                                  .options_size = options.size};
        hlo_status status =
            call_plugin(&pjrt->plugin, PJRT_COMPILE, &args, "compile the module", sink);
        pjrt->executable = args.executable;
        return status;
    }
    pjrt_client_compile_args args = {.size = sizeof args,
                                     .client = pjrt->client,
                                     .program = program,
                                     .options = options.data,
                                     .options_size = options.size};
    hlo_status status =
        call_plugin(&pjrt->plugin, PJRT_CLIENT_COMPILE, &args, "compile the module", sink);
    if (status != HLO_OK) return status;
    pjrt->loaded = args.loaded;
    pjrt_get_executable_args get = {.size = sizeof get, .loaded = args.loaded};
    status =
        call_plugin(&pjrt->plugin, PJRT_LOADED_GET_EXECUTABLE, &get, "compile the module", sink);
    pjrt->executable = get.executable;
    return status;
}

static hlo_status compile(hlo_pjrt *pjrt, const hlo_pjrt_options *options,
                          const hlo_diag_sink *sink) {
    bytes module = {0}, message = {0};
    FILE *file = hlo_text_stream(&module.data, &module.size);
    if (!file) return HLO_OUT_OF_MEMORY;
    /* Omit the number of partitions in the module if the compile options have it. */
    hlo_module *copy = NULL;
    hlo_status status = HLO_OK;
    if (hlo_module_int(pjrt->module, HLO_ATTR_NUM_PARTITIONS, 0) == pjrt->device_count)
        status = hlo_module_clone(pjrt->module, &copy);
    if (copy) {
        hlo_attr *attrs = (hlo_attr *)(uintptr_t)copy->attrs; /* the copy owns its attributes */
        uint32_t kept = 0;
        for (uint32_t i = 0; i < copy->attr_count; i++)
            if (attrs[i].id != HLO_ATTR_NUM_PARTITIONS) attrs[kept++] = attrs[i];
        copy->attr_count = kept;
    }
    if (status == HLO_OK)
        status = hlo_module_print_proto(copy ? copy : pjrt->module, HLO_PROTO_BINARY, sink,
                                        hlo_file_writer(file));
    hlo_module_free(copy);
    const bool starved = fclose(file) != 0 || !module.data;
    if (starved && (status == HLO_OK || status == HLO_INVALID_INPUT)) status = HLO_OUT_OF_MEMORY;
    const hlo_computation *entry = pjrt->module->entry;
    module_kind kind = {.tupled = entry->parameter_count == 1 &&
                                  entry->parameters[0]->shape->type == HLO_TYPE_TUPLE};
    for (uint32_t i = 0; i < pjrt->module->attr_count && !pjrt->partitioned; i++)
        if (pjrt->module->attrs[i].id == HLO_ATTR_FRONTEND_ATTRIBUTES)
            kind.shardy = strstr(pjrt->module->attrs[i].u.str, "xla.sdy.meshes") != NULL;
    if (status == HLO_OK) status = write_options(module, kind, options, &message);
    const pjrt_program program = {.size = sizeof program,
                                  .code = module.data,
                                  .code_size = module.size,
                                  .format = "hlo",
                                  .format_size = 3};
    if (status == HLO_OK) status = compile_program(pjrt, &program, message, sink);
    hlo_free(module.data);
    hlo_free(message.data);
    return status;
}

/* Creates all members and compiles the module. On failure, the caller frees the members. */
static hlo_status make(hlo_pjrt *pjrt, const hlo_pjrt_options *options, const hlo_diag_sink *sink) {
    hlo_status status = check_module(pjrt->module, options, sink);
    if (status == HLO_OK) status = describe_leaves(pjrt, HLO_INPUTS, sink);
    if (status == HLO_OK) status = describe_leaves(pjrt, HLO_OUTPUTS, sink);
    if (status != HLO_OK) return status;
    /* Load and initialize the plugin. A path without a slash names a file in the current folder,
     * not a system library. */
    const char *path = hlo_arena_format(pjrt->arena, "%s", options->plugin);
    const char *local = hlo_arena_format(pjrt->arena, "%s%s", strchr(path, '/') ? "" : "./", path);
    status = hlo_file_check(local, sink);
    if (status != HLO_OK) return status;
    void *library = dlopen(local, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library)
        return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, path, 0, 0, "cannot load the plugin: %s",
                               dlerror());
    void *address = dlsym(library, "GetPjrtApi");
    const pjrt_api *(*get)(void);
    memcpy(&get, &address, sizeof get);
    const pjrt_api *api = get ? get() : NULL;
    if (!api || api->size < sizeof *api)
        return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, path, 0, 0,
                               "the library is not a PJRT plugin");
    if (api->version.major != 0)
        return hlo_diag_refuse(sink, HLO_DIAG_DEVICE, path, 0, 0,
                               "unsupported plugin interface version %d.%d: expected 0.*",
                               api->version.major, api->version.minor);
    pjrt->plugin = (pjrt_plugin){.path = path, .api = api};
    pjrt_object_args args = {.size = sizeof args};
    status =
        call_plugin(&pjrt->plugin, PJRT_PLUGIN_INITIALIZE, &args, "initialize the plugin", sink);
    if (status != HLO_OK) return status;
    status = options->target ? make_topology(pjrt, options->target, sink) : make_client(pjrt, sink);
    if (status == HLO_OK) status = register_calls(pjrt, sink);
    return status == HLO_OK ? compile(pjrt, options, sink) : status;
}

hlo_status hlo_pjrt_new(const hlo_module *module, const hlo_pjrt_options *options,
                        const hlo_diag_sink *sink, hlo_pjrt **out) {
    HLO_IN_C_LOCALE;
    *out = NULL;
    hlo_pjrt_options own = {.devices = 0};
    if (hlo_options_take("hlo_pjrt_options", &own, sizeof own, options, sink) != HLO_OK ||
        !own.plugin || !own.devices || own.devices > HLO_PJRT_MAX_DEVICES)
        return HLO_INVALID_USAGE;
    for (size_t i = 0; i < own.setting_count; i++)
        if (!strchr(own.settings[i], '=')) return HLO_INVALID_USAGE;
    hlo_status status = hlo_module_ensure_verified(module, 0, sink);
    if (status != HLO_OK) return status;
    jmp_buf recover;
    hlo_pjrt *pjrt = hlo_calloc(1, sizeof *pjrt);
    if (!pjrt || !(pjrt->arena = hlo_arena_new(&recover))) {
        hlo_free(pjrt);
        return HLO_OUT_OF_MEMORY;
    }
    pjrt->module = module;
    pjrt->device_count = own.devices;
    pjrt->partitioned = own.partitioned;
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    status = setjmp(recover) ? HLO_OUT_OF_MEMORY : make(pjrt, &own, sink);
    hlo_arena_set_recover(pjrt->arena, NULL);
    hlo_arena_set_recover(module->arena, before);
    if (status != HLO_OK) {
        hlo_pjrt_free(pjrt);
        return status;
    }
    *out = pjrt;
    return HLO_OK;
}

void hlo_pjrt_free(hlo_pjrt *pjrt) {
    if (!pjrt) return;
    const pjrt_plugin *plugin = &pjrt->plugin;
    call_on(plugin, PJRT_EXECUTABLE_DESTROY, pjrt->executable, "free", NULL);
    call_on(plugin, PJRT_LOADED_DESTROY, pjrt->loaded, "free", NULL);
    call_on(plugin, PJRT_TOPOLOGY_DESTROY, pjrt->topology, "free", NULL);
    call_on(plugin, PJRT_CLIENT_DESTROY, pjrt->client, "free", NULL);
    hlo_leaves_free(&pjrt->input_shapes);
    hlo_leaves_free(&pjrt->output_shapes);
    hlo_arena_free(pjrt->arena);
    hlo_free(pjrt);
}

/* ------------------------------------------------------------------------------------ executing */

/* The input or output buffers of one execution. There is one row of buffers per device. */
typedef struct buffers {
    pjrt_buffer **all, ***rows;
    size_t count; /* buffers per row */
} buffers;

static bool buffers_new(buffers *b, size_t devices, size_t count) {
    b->count = count;
    b->all = hlo_calloc(devices * count + 1, sizeof(pjrt_buffer *));
    b->rows = hlo_calloc(devices, sizeof(pjrt_buffer **));
    for (size_t i = 0; b->all && b->rows && i < devices; i++) b->rows[i] = b->all + i * count;
    return b->all && b->rows;
}

static void buffers_free(const pjrt_plugin *plugin, buffers *b, size_t devices) {
    for (size_t i = 0; b->all && i < devices * b->count; i++)
        call_on(plugin, PJRT_BUFFER_DESTROY, b->all[i], "free a buffer", NULL);
    hlo_free(b->all);
    hlo_free(b->rows);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

hlo_status hlo_pjrt_run(hlo_pjrt *pjrt, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out) {
    HLO_IN_C_LOCALE;
    *out = NULL;
    if (!pjrt->client) return HLO_INVALID_USAGE;
    for (const hlo_computation *c = pjrt->module->first; c; c = c->next)
        for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i))
            if (i->op == HLO_OP_INFEED || i->op == HLO_OP_OUTFEED ||
                hlo_instr_int(i, HLO_ATTR_IS_HOST_TRANSFER, 0))
                return refuse(pjrt->module, i, sink,
                              "a plugin would wait for a transfer with the host: run the module "
                              "with --backend=cpu");
    hlo_status status = hlo_leaves_check(&pjrt->input_shapes, pjrt->module, inputs, sink);
    if (status != HLO_OK) return status;
    pjrt_num_outputs_args args = {.size = sizeof args, .executable = pjrt->executable};
    status =
        call_plugin(&pjrt->plugin, PJRT_EXECUTABLE_NUM_OUTPUTS, &args, "count the outputs", sink);
    if (status == HLO_OK && args.count != pjrt->output_shapes.count) {
        status = hlo_diag_refuse(sink, HLO_DIAG_DEVICE, pjrt->plugin.path, 0, 0,
                                 "the compiled module has %zu outputs, expected %zu", args.count,
                                 pjrt->output_shapes.count);
    }
    if (status != HLO_OK) return status;
    const size_t devices = pjrt->device_count;
    const size_t count = pjrt->output_shapes.count;
    buffers arguments = {0}, results = {0};
    const bool made =
        buffers_new(&arguments, devices, inputs->count) && buffers_new(&results, devices, count);
    pjrt_event **done = hlo_calloc(devices, sizeof *done);
    status = made && done ? HLO_OK : HLO_OUT_OF_MEMORY;
    for (size_t d = 0; d < devices; d++)
        for (size_t i = 0; i < inputs->count && status == HLO_OK; i++)
            status = send_part(&pjrt->plugin, pjrt->client, &pjrt->inputs[i], &inputs->items[i],
                               pjrt->devices[d], d, sink, &arguments.rows[d][i]);
    if (status == HLO_OK) {
        pjrt_execute_options options = {.size = sizeof options};
        pjrt_execute_args execution = {.size = sizeof execution,
                                       .loaded = pjrt->loaded,
                                       .options = &options,
                                       .arguments = (pjrt_buffer *const *const *)arguments.rows,
                                       .device_count = pjrt->device_count,
                                       .argument_count = arguments.count,
                                       .outputs = results.rows,
                                       .done = done};
        const double start = now();
        status =
            call_plugin(&pjrt->plugin, PJRT_LOADED_EXECUTE, &execution, "execute the module", sink);
        for (size_t d = 0; d < devices; d++) {
            hlo_status each = await_event(&pjrt->plugin, done[d], "execute the module", sink);
            if (status == HLO_OK) status = each;
        }
        pjrt->seconds = now() - start;
    }
    hlo_free(done);
    if (status == HLO_OK) status = hlo_arrays_new(out);
    /* Create the whole arrays or, without partitioning, those of each device. */
    const size_t arrays = pjrt->partitioned ? devices * count : count;
    for (size_t i = 0; i < arrays && status == HLO_OK; i++) {
        const hlo_shape *shape = pjrt->outputs[i % count].shape;
        if (!hlo_arrays_add(*out, shape->type, shape->rank, shape->dims, false))
            status = HLO_OUT_OF_MEMORY;
    }
    for (size_t d = 0; d < devices; d++)
        for (size_t i = 0; i < count && status == HLO_OK; i++)
            status = receive_part(&pjrt->plugin, results.rows[d][i], &pjrt->outputs[i],
                                  &(*out)->items[pjrt->partitioned ? d * count + i : i], d, sink);
    buffers_free(&pjrt->plugin, &arguments, devices);
    buffers_free(&pjrt->plugin, &results, devices);
    if (status == HLO_OK) return HLO_OK;
    hlo_arrays_free(*out);
    *out = NULL;
    return status;
}

double hlo_pjrt_seconds(const hlo_pjrt *pjrt) {
    return pjrt->seconds;
}

hlo_status hlo_pjrt_optimized(const hlo_pjrt *pjrt, const hlo_diag_sink *sink,
                              hlo_module **out_module) {
    HLO_IN_C_LOCALE;
    *out_module = NULL;
    pjrt_program program = {.size = sizeof program};
    pjrt_optimized_program_args args = {
        .size = sizeof args, .executable = pjrt->executable, .program = &program};
    static const char doing[] = "return the optimized module";
    hlo_status status =
        call_plugin(&pjrt->plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &args, doing, sink);
    if (status != HLO_OK) return status;
    program.code = hlo_malloc(program.code_size + 1);
    if (!program.code) return HLO_OUT_OF_MEMORY;
    status = call_plugin(&pjrt->plugin, PJRT_EXECUTABLE_OPTIMIZED_PROGRAM, &args, doing, sink);
    if (status == HLO_OK) {
        /* The program is an HloModuleProto, or a message with one. */
        const bool plain = program.format_size == 3 && memcmp(program.format, "hlo", 3) == 0;
        hlo_wire code = {(const uint8_t *)program.code,
                         (const uint8_t *)program.code + program.code_size, false};
        if (!plain) code = find_bytes(program.code, program.code_size, 1);
        if (code.at)
            status = hlo_module_parse_proto(code.at, (size_t)(code.end - code.at),
                                            pjrt->plugin.path, sink, out_module);
        else
            status = hlo_diag_refuse(sink, HLO_DIAG_DEVICE, pjrt->plugin.path, 0, 0,
                                     "the optimized module has the unsupported format %.*s",
                                     (int)program.format_size, program.format);
    }
    hlo_free(program.code);
    return status;
}
