/* SPDX-License-Identifier: Apache-2.0 */
/* The list of passes as text. */
#include <string.h>

#include "hlo/pass.h"
#include "passes/pipeline/pipeline.h"
#include "passes/pipeline/user_pass.h"

static void put(FILE *out, const char *name, const char *help) {
    hlo_print_plain(out, help ? "%-24s  %s\n" : "%s\n", name, help);
}

hlo_status hlo_passes_print(const hlo_pass_options *options, FILE *out) {
    hlo_pass_options own;
    const hlo_status status = hlo_pass_options_take(options, &own);
    if (status != HLO_OK) return status;
    for (size_t i = 0; i < hlo_pass_count(); i++) put(out, hlo_pass_name(i), hlo_pass_help(i));
    for (size_t i = 0; i < own.user_pass_count; i++) {
        hlo_user_pass pass;
        const char *name = own.user_passes[i]->name;
        hlo_user_pass_find(&own, name, strlen(name), &pass);
        put(out, name, pass.help);
    }
    return HLO_OK;
}
