/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any text that parses as a valid module. The whole pipeline produces a valid module,
 * which prints as text that can be parsed again. The number of bytes selects the target and the
 * form of the scale operands. */
#include <stdint.h>
#include <stdlib.h>

#include "hlo/memory.h"
#include "hlo/pass.h"
#include "hlo/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_back(const hlo_module *module) {
    char *text = NULL;
    size_t size;
    if (hlo_module_to_text(module, NULL, &text, &size) != HLO_OK) abort();
    hlo_module *again = NULL;
    if (hlo_module_parse(text, size, "print", NULL, &again) != HLO_OK) abort();
    if (hlo_module_verify(again, NULL, NULL) != HLO_OK) abort();
    hlo_module_free(again);
    hlo_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char *const targets[] = {"sm_80", "sm_89", "sm_90", "sm_100"};
    hlo_module *module = NULL;
    if (size == 0 || hlo_module_parse((const char *)data, size, "fuzz", NULL, &module) != HLO_OK)
        return 0;
    if (hlo_module_verify(module, NULL, NULL) == HLO_OK) {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        options.target = targets[size / 2 % 4];
        options.scales_used = size % 2;
        options.emit = (hlo_emit_form)(size / 8 % (HLO_EMIT_DQ + 1));
        options.verify_each = true;
        const hlo_status status = hlo_module_optimize(module, &options, NULL);
        if (status == HLO_INTERNAL) abort();
        if (status == HLO_OK) read_back(module);
    }
    hlo_module_free(module);
    return 0;
}
