/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that run modules in other runtimes through PJRT plugins.
 *
 * A PJRT plugin is a shared library that exports GetPjrtApi, such as those of XLA. It compiles a
 * module, and executes it on its devices. It can also compile a module for devices that are not
 * available.
 *
 *     hlo_pjrt_new() -> hlo_pjrt_run() ... hlo_pjrt_optimized() -> hlo_pjrt_free() */
#ifndef HLO_PJRT_H
#define HLO_PJRT_H

#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The maximum number of devices for which a module can be compiled. */
enum { HLO_PJRT_MAX_DEVICES = 65536 };

/* A module that was compiled by a plugin. */
typedef struct hlo_pjrt hlo_pjrt;

/* Options of hlo_pjrt_new(). Initialize them with hlo_pjrt_options_init(), then set `plugin` and
 * change other fields. Pointers are borrowed for the duration of the call. */
typedef struct hlo_pjrt_options {
    size_t struct_size; /* See status.h. */
    /* The path of the shared library. Required. It stays loaded until the process ends. */
    const char *plugin;
    /* The path of a description of a GPU, which is XLA's GpuTargetConfigProto in protobuf's text
     * format. If it is set, the module is only compiled, for devices that need not be available.
     * Default: NULL, which selects the devices of the plugin. */
    const char *target;
    /* The number of partitions, each of which uses one device. The plugin partitions the module
     * according to its shardings. Default: 1. */
    uint32_t devices;
    /* The module is already partitioned. Ignored if `devices` is 1. Default: false. */
    bool partitioned;
    /* An array of `setting_count` debug options of XLA, each in the form `KEY=VALUE`. Default:
     * NULL. */
    const char *const *settings;
    size_t setting_count;
} hlo_pjrt_options;

/* Sets the fields within the first `struct_size` bytes of *options to their default values. Use it
 * if the size of the struct is known only at run time; otherwise, use hlo_pjrt_options_init(). */
void hlo_pjrt_options_init_sized(hlo_pjrt_options *options, size_t struct_size);

/* Sets `struct_size`, and all other fields to their default values. */
static inline void hlo_pjrt_options_init(hlo_pjrt_options *options) {
    hlo_pjrt_options_init_sized(options, sizeof *options);
}

/* Compiles `module` with a plugin. Typed custom calls `hlofp8.matmul` in it are executed by the
 * handlers of ffi.h. The module is verified first, unless it was verified before. It must outlive
 * *out_pjrt, and must not be changed. The caller must free *out_pjrt with hlo_pjrt_free().
 *
 * Returns HLO_INVALID_USAGE if options->struct_size is invalid, if options->plugin is NULL, if the
 * number of devices is 0 or exceeds HLO_PJRT_MAX_DEVICES, or if a setting contains no `=`. Returns
 * HLO_INVALID_INPUT, with an error in `sink`, if the module is not valid, if the plugin cannot be
 * loaded, rejects the module or has too few devices, or if an input or output has a type that
 * cannot be passed to the plugin. */
hlo_status hlo_pjrt_new(const hlo_module *module, const hlo_pjrt_options *options,
                        const hlo_diag_sink *sink, hlo_pjrt **out_pjrt);

/* Frees a compiled module. `pjrt` may be NULL. */
void hlo_pjrt_free(hlo_pjrt *pjrt);

/* Executes the module on `inputs`, which are not changed, and waits until the execution is
 * complete.
 *
 * If the plugin partitioned the module, inputs and outputs are complete arrays. Each device gets a
 * part of an input according to the sharding of the parameter, and the parts of an output are
 * combined in the same way. If the module was already partitioned, each device gets all inputs, and
 * the outputs of all devices are returned in the order of the devices. The caller must free
 * *out_outputs with hlo_arrays_free().
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the inputs do not match the parameters of
 * the module, or if the plugin fails. Returns HLO_INVALID_USAGE if the module was compiled for
 * hlo_pjrt_options.target. */
hlo_status hlo_pjrt_run(hlo_pjrt *pjrt, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs);

/* Returns the duration of the last execution in seconds, without copies of inputs and outputs, or 0
 * if there was no execution. */
double hlo_pjrt_seconds(const hlo_pjrt *pjrt);

/* Returns the module after the optimization passes of the plugin. The caller must free *out_module
 * with hlo_module_free().
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the plugin does not provide the module, or
 * if the provided module cannot be parsed. */
hlo_status hlo_pjrt_optimized(const hlo_pjrt *pjrt, const hlo_diag_sink *sink,
                              hlo_module **out_module);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
