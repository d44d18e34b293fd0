/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any text that parses as a module, valid or not. The module is printed in every form,
 * counted and compared with itself, and the passes reject it or produce a valid module. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "hlo/proto.h"
#include "hlo/report.h"
#include "hlo/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_all(const hlo_module *module, FILE *out) {
    if (hlo_module_print_stats(module, out) != HLO_OK) abort();
    for (int form = HLO_PRINT_LONG; form <= HLO_PRINT_NO_LARGE_CONSTANTS; form++) {
        hlo_print_options shown;
        hlo_print_options_init(&shown, (hlo_print_form)form);
        const hlo_status status = hlo_module_print(module, &shown, out);
        if (status != HLO_OK && (status != HLO_INVALID_INPUT || !shown.canonical)) abort();
    }
    for (int form = HLO_PROTO_BINARY; form <= HLO_PROTO_TEXT; form++)
        if (hlo_module_print_proto(module, (hlo_proto_format)form, NULL, out) == HLO_INTERNAL)
            abort();
}

static void tell_all(const hlo_report *report, FILE *out) {
    hlo_remarks_options remarks;
    hlo_remarks_options_init(&remarks);
    remarks.colored = true;
    for (int which = HLO_REMARKS_MISSED; which <= HLO_REMARKS_SUMMARY; which++)
        for (int format = HLO_REMARKS_TEXT; format <= HLO_REMARKS_MARKDOWN; format++) {
            remarks.which = (hlo_remarks)which;
            remarks.format = (hlo_remarks_format)format;
            if (hlo_reports_print(&report, 1, &remarks, out) != HLO_OK) abort();
        }
    if (hlo_reports_page(&report, 1, NULL, out) != HLO_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static FILE *out;
    if (!out) out = fopen("/dev/null", "w");
    hlo_module *module = NULL, *clone = NULL;
    if (!out || size == 0 ||
        hlo_module_parse((const char *)data, size, "fuzz", NULL, &module) != HLO_OK)
        return 0;
    print_all(module, out);
    if (hlo_module_clone(module, &clone) != HLO_OK) abort();
    if (hlo_module_diff(module, clone, out) != HLO_OK) abort();
    hlo_module_free(clone);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.verify_none = true;
    options.surroundings = options.lint = true;
    options.cuda = 12090;
    hlo_report *report = NULL;
    const hlo_status status = hlo_module_optimize(module, &options, &report);
    if (status == HLO_OK) {
        if (hlo_module_verify(module, NULL, NULL) != HLO_OK) abort();
        tell_all(report, out);
        hlo_report_free(report);
    } else if (status != HLO_INVALID_INPUT && status != HLO_OUT_OF_MEMORY) {
        abort();
    }
    hlo_module_free(module);
    return 0;
}
