/* SPDX-License-Identifier: Apache-2.0 */
/* Modules in somebody else's runtime: a PJRT plugin (XLA's, a shared library with the function
 * GetPjrtApi) compiles a module, and executes it on its devices, or compiles it for devices that
 * are not here.
 *
 *     hlo_pjrt_new() -> hlo_pjrt_run() ... hlo_pjrt_optimized() -> hlo_pjrt_free()
 */
#ifndef HLO_PJRT_H
#define HLO_PJRT_H

#include "hlo/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The largest number of devices that a module is compiled for. */
enum { HLO_PJRT_MOST_DEVICES = 65536 };

/* A module compiled by a plugin. */
typedef struct hlo_pjrt hlo_pjrt;

/* Options; initialize with hlo_pjrt_options_init(), then change fields. Strings are borrowed while
 * hlo_pjrt_new() runs. */
typedef struct hlo_pjrt_options {
    size_t struct_size; /* see status.h */
    const char *plugin; /* path of the shared library; must be set. It stays loaded until the
                           process ends */
    const char *target; /* path of a GPU's description, XLA's GpuTargetConfigProto as protobuf's
                           text: compile only, for devices that need not be here. Default NULL: for
                           the plugin's own devices */
    uint32_t devices;   /* partitions, a device each; the plugin partitions the module by its
                           shardings. Default 1 */
    bool partitioned;   /* with devices > 1: the module is partitioned already. Default false */
    const char *const *settings; /* XLA's debug options, `KEY=VALUE` each. Default none */
    size_t setting_count;
} hlo_pjrt_options;

/* Sets the first `struct_size` bytes of *options to the defaults. */
void hlo_pjrt_options_init_sized(hlo_pjrt_options *options, size_t struct_size);
/* Sets every field to its default. */
static inline void hlo_pjrt_options_init(hlo_pjrt_options *options) {
    hlo_pjrt_options_init_sized(options, sizeof *options);
}

/* Compiles `module`, in which typed calls `hlofp8.matmul` are executed by the functions of ffi.h.
 * It must outlive *out_pjrt, unchanged; it is verified if it has not been. On
 * HLO_OK the caller frees *out_pjrt with hlo_pjrt_free(). HLO_INVALID_USAGE: options->struct_size,
 * no plugin is named, the number of devices is 0 or above HLO_PJRT_MOST_DEVICES, or a setting has
 * no `=`. HLO_INVALID_INPUT, with an error in `sink`: the module does not verify, the plugin cannot
 * be loaded or refuses the module, has fewer devices, or an input or output cannot be passed to it.
 * HLO_OUT_OF_MEMORY. */
hlo_status hlo_pjrt_new(const hlo_module *module, const hlo_pjrt_options *options,
                        const hlo_diag_sink *sink, hlo_pjrt **out_pjrt);
void hlo_pjrt_free(hlo_pjrt *pjrt); /* NULL is allowed */

/* Executes the module on `inputs`, which are not changed: whole arrays, of which each device gets
 * its part by the parameter's sharding; outputs are put together in the same way. Each device gets
 * all of the inputs of a partitioned module, and its outputs come device after device. On HLO_OK
 * the caller frees *out_outputs with hlo_arrays_free(). HLO_INVALID_INPUT, with an error in `sink`:
 * the inputs are not those of the module, or the plugin failed. HLO_INVALID_USAGE: the module was
 * compiled for a target. HLO_OUT_OF_MEMORY. */
hlo_status hlo_pjrt_run(hlo_pjrt *pjrt, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs);
/* The seconds of the last execution, without copies of inputs and outputs; 0 before the first. */
double hlo_pjrt_seconds(const hlo_pjrt *pjrt);

/* Reads the module that the plugin has made of it, after its own passes. On HLO_OK the caller frees
 * *out_module with hlo_module_free(). HLO_INVALID_INPUT, with an error in `sink`: the plugin does
 * not return one, or it cannot be read. HLO_OUT_OF_MEMORY. */
hlo_status hlo_pjrt_optimized(const hlo_pjrt *pjrt, const hlo_diag_sink *sink,
                              hlo_module **out_module);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
