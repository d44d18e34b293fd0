/* SPDX-License-Identifier: Apache-2.0 */
/* Writes CompileOptionsProto through protobuf-c. */
#include "runtime/pjrt/compile_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "compile_options.pb-c.h"

/* The setting that disables the passes that partition a module by its shardings. */
#define DISABLE_PASSES "xla_disable_hlo_passes"
#define PARTITIONING_PASSES "sharding-propagation,spmd-partitioning"

/* A CompileOptionsProto under construction: its messages are filled in sequence and freed
 * together. */
typedef struct draft {
    char disable_passes[sizeof DISABLE_PASSES], partitioning_passes[sizeof PARTITIONING_PASSES];
    Pjrt__CompileOptions all;
    Pjrt__BuildOptions build;
    Pjrt__DeviceAssignment assignment;
    Pjrt__Computation *computations, **computation_list;
    int64_t *devices;
    Pjrt__OptionOverride *overrides;
    Pjrt__OptionEntry *entries, **entry_list;
    char *text; /* NUL-terminated keys */
} draft;

static bool assign_devices(draft *d, uint32_t count) {
    pjrt__device_assignment__init(&d->assignment);
    d->computations = calloc(count, sizeof *d->computations);
    d->computation_list = calloc(count, sizeof *d->computation_list);
    d->devices = calloc(count, sizeof *d->devices);
    if (!d->computations || !d->computation_list || !d->devices) return false;
    for (uint32_t i = 0; i < count; i++) {
        pjrt__computation__init(&d->computations[i]);
        d->devices[i] = i;
        d->computations[i].replica_device_ids = &d->devices[i];
        d->computations[i].n_replica_device_ids = 1;
        d->computation_list[i] = &d->computations[i];
    }
    d->assignment.replica_count = 1;
    d->assignment.computation_count = (int32_t)count;
    d->assignment.n_computation_devices = count;
    d->assignment.computation_devices = d->computation_list;
    d->build.device_assignment = &d->assignment;
    return true;
}

static void add_override(draft *d, char *key, char *value) {
    const size_t at = d->all.n_env_option_overrides++;
    pjrt__option_override__init(&d->overrides[at]);
    pjrt__option_entry__init(&d->entries[at]);
    d->overrides[at].string_field = value;
    d->entries[at].key = key;
    d->entries[at].value = &d->overrides[at];
    d->entry_list[at] = &d->entries[at];
}

/* Adds the settings, each `KEY=VALUE`. A later setting overrides an earlier one with the same key.
 * Passes that a setting disables are added to those that are disabled for a partitioned module. */
static bool override_options(draft *d, const hlo_pjrt_options *options) {
    size_t size = 1;
    const size_t count = options->setting_count + 1;
    /* Compute the bytes of a setting, plus the bytes by which its value may grow. */
    for (size_t i = 0; i < options->setting_count; i++)
        size += strlen(options->settings[i]) + sizeof PARTITIONING_PASSES + 1;
    d->overrides = calloc(count, sizeof *d->overrides);
    d->entries = calloc(count, sizeof *d->entries);
    d->entry_list = calloc(count, sizeof *d->entry_list);
    char *at = d->text = malloc(size);
    if (!d->overrides || !d->entries || !d->entry_list || !at) return false;
    d->all.env_option_overrides = d->entry_list;
    if (options->partitioned) add_override(d, d->disable_passes, d->partitioning_passes);
    for (size_t i = 0; i < options->setting_count; i++) {
        const char *setting = options->settings[i], *given = strchr(setting, '=') + 1;
        char *key = at, *value = key + (given - setting);
        memcpy(key, setting, (size_t)(given - setting));
        value[-1] = 0;
        at = value;
        if (options->partitioned && strcmp(key, DISABLE_PASSES) == 0)
            at = stpcpy(at, *given ? PARTITIONING_PASSES "," : PARTITIONING_PASSES);
        at = stpcpy(at, given) + 1;
        add_override(d, key, value);
    }
    return true;
}

hlo_status pjrt_compile_options(pjrt_bytes module, pjrt_module_kind kind,
                                const hlo_pjrt_options *options, pjrt_bytes *out) {
    draft d = {.disable_passes = DISABLE_PASSES, .partitioning_passes = PARTITIONING_PASSES};
    Pjrt__Module *read = pjrt__module__unpack(NULL, module.size, (const uint8_t *)module.data);
    *out = (pjrt_bytes){0};
    if (read) {
        const Pjrt__ProgramShape *shape = read->host_program_shape;
        pjrt__compile_options__init(&d.all);
        pjrt__build_options__init(&d.build);
        d.all.executable_build_options = &d.build;
        d.all.parameter_is_tupled_arguments = kind.tupled;
        if (shape && !kind.tupled) { /* plugins ignore layouts in this form for a tuple */
            d.all.n_argument_layouts = shape->n_parameters;
            d.all.argument_layouts = shape->parameters;
        }
        if (shape) d.build.result_layout = shape->result;
        d.build.num_replicas = 1;
        d.build.num_partitions = options->devices;
        d.build.use_spmd_partitioning = options->devices > 1;
        d.build.use_shardy_partitioner = kind.shardy;
    }
    if (read && override_options(&d, options) &&
        (options->devices == 1 || assign_devices(&d, options->devices))) {
        out->size = pjrt__compile_options__get_packed_size(&d.all);
        out->data = malloc(out->size + 1);
        if (out->data) pjrt__compile_options__pack(&d.all, (uint8_t *)out->data);
    }
    if (read) pjrt__module__free_unpacked(read, NULL);
    free(d.computations);
    free(d.computation_list);
    free(d.devices);
    free(d.overrides);
    free(d.entries);
    free(d.entry_list);
    free(d.text);
    return out->data ? HLO_OK : HLO_OUT_OF_MEMORY;
}

hlo_status pjrt_program_module(pjrt_bytes program, const char *format, size_t format_size,
                               pjrt_bytes *out) {
    *out = (pjrt_bytes){0};
    const bool plain = format_size == 3 && memcmp(format, "hlo", 3) == 0;
    errno = 0; /* a failed allocation sets errno */
    Pjrt__ModuleWithConfig *read =
        plain ? NULL
              : pjrt__module_with_config__unpack(NULL, program.size, (const uint8_t *)program.data);
    const void *bytes = plain ? program.data : read ? (const char *)read->hlo_module.data : NULL;
    const size_t size = plain ? program.size : read ? read->hlo_module.len : 0;
    hlo_status status = bytes || errno != ENOMEM ? HLO_INVALID_INPUT : HLO_OUT_OF_MEMORY;
    if (bytes) status = (out->data = malloc(size + 1)) ? HLO_OK : HLO_OUT_OF_MEMORY;
    if (out->data) {
        memcpy(out->data, bytes, size);
        out->size = size;
    }
    if (read) pjrt__module_with_config__free_unpacked(read, NULL);
    return status;
}
