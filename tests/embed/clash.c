/* SPDX-License-Identifier: Apache-2.0 */
/* Defines symbols with the names of internal symbols of the library, which is linked statically. */
#include <stdio.h>

#include <hlo/pass.h>
#include <hlo/runtime.h>
#include <hlo/text.h>

static unsigned called;
int cuda_launch;
const char *cpu_backend = "another";

void build_call(void) {
    called++;
}

void emit_add(void) {
    called++;
}

void plan_new(void) {
    called++;
}

int main(int argc, char **argv) {
    hlo_module *module = NULL;
    hlo_plan *plan = NULL;
    hlo_status status =
        argc == 2 ? hlo_module_parse_file(argv[1], NULL, &module) : HLO_INVALID_USAGE;
    if (status == HLO_OK) status = hlo_module_optimize(module, NULL, NULL);
    if (status == HLO_OK) status = hlo_plan_new(module, NULL, NULL, &plan);
    hlo_plan_free(plan);
    hlo_module_free(module);
    if (status != HLO_OK) fprintf(stderr, "%s\n", hlo_status_name(status));
    return status != HLO_OK || called || cuda_launch;
}
