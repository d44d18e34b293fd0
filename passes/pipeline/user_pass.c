/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined passes. */
#include "passes/pipeline/user_pass.h"

#include <stdio.h>
#include <string.h>

#include "ir/text/options.h"
#include "matmul/product.h"
#include "passes/analysis/pin.h"
#include "passes/verdict/remark.h"

static bool take(const hlo_user_pass *given, hlo_user_pass *out) {
    hlo_user_pass_init(out);
    return given && hlo_options_take("hlo_user_pass", out, sizeof *out, given, NULL) == HLO_OK;
}

bool hlo_user_pass_find(const hlo_pass_options *options, const char *name, size_t length,
                        hlo_user_pass *out) {
    for (size_t i = 0; i < options->user_pass_count; i++)
        if (take(options->user_passes[i], out) && strlen(out->name) == length &&
            memcmp(out->name, name, length) == 0)
            return true;
    return false;
}

bool hlo_user_pass_fault(const hlo_pass_options *options, bool (*is_taken)(const char *name),
                         char *out, size_t size) {
    for (size_t i = 0; i < options->user_pass_count; i++) {
        const hlo_pass_options before = {.user_passes = options->user_passes, .user_pass_count = i};
        hlo_user_pass pass = {.name = NULL}, other;
        const char *fault = NULL;
        if (!options->user_passes || !take(options->user_passes[i], &pass))
            fault =
                "is NULL, or its struct_size differs from the one that hlo_user_pass_init() sets";
        else if (!pass.name || !*pass.name || strchr(pass.name, ','))
            fault = "must have a name without commas";
        else if (!pass.run)
            fault = "has no run function";
        else if (is_taken(pass.name))
            fault = "has the name of a built-in pass";
        else if (hlo_user_pass_find(&before, pass.name, strlen(pass.name), &other))
            fault = "has the name of an earlier user pass";
        if (!fault) continue;
        snprintf(out, size, "user_passes[%zu] '%.80s' %s", i, pass.name ? pass.name : "", fault);
        return true;
    }
    return false;
}

hlo_status hlo_user_pass_run(hlo_pass_context *context, const hlo_user_pass *pass) {
    hlo_module *module = context->module;
    const uint64_t edits = module->edits;
    module->logs_replaced = true;
    module->replaced_count = 0;
    hlo_status status = pass->run(pass->user, module, context->sink);
    module->logs_replaced = false;
    if (module->exhausted) return HLO_OUT_OF_MEMORY;
    if (status != HLO_OK) {
        hlo_diag_refuse(context->sink, NULL, 0, 0, "pass '%s' failed: %s", pass->name,
                        hlo_status_name(status));
        return status;
    }
    if (module->edits == edits) return HLO_OK;
    context->changes += module->edits - edits;
    context->order = NULL;
    context->agreement = NULL;
    for (uint32_t i = 0; i < module->replaced_count; i++) {
        const hlo_replaced *r = &module->replaced[i];
        if (r->to->parent && hlo_product_kind_of(r->to) != HLO_PRODUCT_NONE)
            hlo_remark_follow(context, r->from, r->to);
    }
    hlo_pin_module(module, context->scratch);
    return HLO_OK;
}
