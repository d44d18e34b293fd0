/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of module.h. */
#include "reference.h"

#include <hlo/module.h>
#include <hlo/pass.h>

hlo_status example_module(void) {
    hlo_module *module = NULL, *before = NULL;
    hlo_status status = read_text(scaled, &module);

    /* [verify] */
    hlo_verify_options options;
    hlo_verify_options_init(&options);
    options.max_errors = 100;
    if (status == HLO_OK) status = hlo_module_verify(module, &options, &sink);
    if (status == HLO_OK) printf("%s is valid\n", hlo_module_name(module));
    /* [verify] */

    /* [clone] */
    /* hlo_module_optimize() changes the module, so keep a copy of the original. */
    if (status == HLO_OK) status = hlo_module_clone(module, &before);
    if (status == HLO_OK) status = hlo_module_optimize(module, NULL, NULL);
    /* [clone] */

    /* [diff] */
    if (status == HLO_OK) status = hlo_module_diff(before, module, hlo_file_writer(stdout));
    if (status == HLO_MISMATCH) puts("the modules differ");
    if (status == HLO_MISMATCH)
        status = hlo_module_diff_matmuls(before, module, hlo_file_writer(stdout));
    /* [diff] */
    if (status == HLO_OK) status = HLO_INTERNAL; /* the matmul is now a call */
    if (status == HLO_MISMATCH) status = HLO_OK;

    /* [stats] */
    if (status == HLO_OK) status = hlo_module_print_stats(module, hlo_file_writer(stdout));
    /* [stats] */

    /* [free] */
    hlo_module_free(before);
    hlo_module_free(module);
    /* [free] */
    return status;
}
