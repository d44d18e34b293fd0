/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of hlo/pjrt.h, for a build without them. options.c rejects the options that would
 * call them. */
#include "hlo/pjrt.h"

void hlo_pjrt_options_init_sized(hlo_pjrt_options *options, size_t struct_size) {
    (void)options, (void)struct_size;
}

hlo_status hlo_pjrt_new(const hlo_module *module, const hlo_pjrt_options *options,
                        const hlo_diag_sink *sink, hlo_pjrt **out_pjrt) {
    (void)module, (void)options, (void)sink, (void)out_pjrt;
    return HLO_INVALID_USAGE;
}

void hlo_pjrt_free(hlo_pjrt *pjrt) {
    (void)pjrt;
}

hlo_status hlo_pjrt_run(hlo_pjrt *pjrt, const hlo_arrays *inputs, const hlo_diag_sink *sink,
                        hlo_arrays **out_outputs) {
    (void)pjrt, (void)inputs, (void)sink, (void)out_outputs;
    return HLO_INVALID_USAGE;
}

double hlo_pjrt_seconds(const hlo_pjrt *pjrt) {
    (void)pjrt;
    return 0;
}

hlo_status hlo_pjrt_optimized(const hlo_pjrt *pjrt, const hlo_diag_sink *sink,
                              hlo_module **out_module) {
    (void)pjrt, (void)sink, (void)out_module;
    return HLO_INVALID_USAGE;
}
