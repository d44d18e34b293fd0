/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of pjrt.h. */
#include "reference.h"

#include <hlo/ir.h>
#include <hlo/pass.h>
#include <hlo/pjrt.h>
#include <hlo/text.h>

/* [run] */
/* Compiles a module with a plugin, and executes it on the plugin's first device. */
static hlo_status run(const hlo_module *module, const char *plugin, const hlo_arrays *inputs,
                      hlo_arrays **out_outputs) {
    hlo_pjrt_options options;
    hlo_pjrt *compiled = NULL;
    hlo_status status;

    hlo_pjrt_options_init(&options);
    options.plugin = plugin;
    status = hlo_pjrt_new(module, &options, &sink, &compiled);
    if (status == HLO_OK) status = hlo_pjrt_run(compiled, inputs, &sink, out_outputs);
    if (status == HLO_OK) printf("executed in %g s\n", hlo_pjrt_seconds(compiled));
    hlo_pjrt_free(compiled);
    return status;
}
/* [run] */

/* [optimized] */
/* Compiles a module for a GPU that need not be present, and returns the module that XLA optimized.
 * `target` is the path of a GpuTargetConfigProto in protobuf's text format. */
static hlo_status compile(const hlo_module *module, const char *plugin, const char *target,
                          hlo_module **out_module) {
    static const char *const settings[] = {"xla_gpu_autotune_level=0"};
    hlo_pjrt_options options;
    hlo_pjrt *compiled = NULL;
    hlo_status status;

    hlo_pjrt_options_init_sized(&options, sizeof options); /* as hlo_pjrt_options_init() does */
    options.plugin = plugin;
    options.target = target;
    options.settings = settings;
    options.setting_count = 1;
    status = hlo_pjrt_new(module, &options, &sink, &compiled);
    if (status == HLO_OK) status = hlo_pjrt_optimized(compiled, &sink, out_module);
    hlo_pjrt_free(compiled);
    return status;
}
/* [optimized] */

hlo_status example_pjrt(const char *plugin, const char *target) {
    hlo_pass_options options;
    hlo_module *module = NULL, *made = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_status status = read_text(scaled, &module);

    hlo_pass_options_init(&options);
    options.emit = *target ? HLO_EMIT_QDQ : HLO_EMIT_DQ;
    if (status == HLO_OK) status = hlo_module_optimize(module, &options, NULL);
    if (status == HLO_OK && *target) {
        status = compile(module, plugin, target, &made);
        if (status == HLO_OK) status = hlo_module_print(made, NULL, hlo_file_writer(stdout));
    } else if (status == HLO_OK) {
        status = hlo_arrays_draw(module, 0, &sink, &inputs);
        if (status == HLO_OK) status = run(module, plugin, inputs, &outputs);
        if (status == HLO_OK && hlo_arrays_count(outputs) != 2) status = HLO_INTERNAL;
    }
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_module_free(made);
    hlo_module_free(module);
    return status;
}
