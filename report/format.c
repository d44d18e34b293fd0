/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts printed in one of the formats: the table of the formats. */
#include "report/format.h"

#include "ir/float/c_locale.h"
#include "matmul/json.h"

hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count, hlo_remarks which,
                             hlo_remarks_format format, FILE *out) {
    HLO_IN_C_LOCALE;
    const report_writer t = {.reports = reports,
                             .count = count,
                             .which = which,
                             .colored = format == HLO_REMARKS_COLORED,
                             .out = out,
                             .sum = writer_sum_up(reports, count)};
    static hlo_status (*const tell[])(const report_writer *) = {
        [HLO_REMARKS_TEXT] = writer_text,   [HLO_REMARKS_JSON] = writer_json,
        [HLO_REMARKS_SARIF] = writer_sarif, [HLO_REMARKS_JUNIT] = writer_junit,
        [HLO_REMARKS_COSTS] = writer_costs, [HLO_REMARKS_COLORED] = writer_text};
    if (format > HLO_REMARKS_COLORED) return HLO_INVALID_USAGE;
    hlo_json_watch();
    hlo_status status = tell[format](&t);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}
