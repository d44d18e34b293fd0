/* SPDX-License-Identifier: Apache-2.0 */
/* Prints verdicts in one of the formats of format.def. */
#include "report/format.h"

#include <assert.h>

#include "ir/float/c_locale.h"
#include "matmul/json.h"

enum {
#define HLO_REMARKS_FORMAT(id, name) WRITER_##id,
#include "report/format.def"
#undef HLO_REMARKS_FORMAT
    WRITER_COUNT
};

static writer_format *const writers[] = {
#define HLO_REMARKS_FORMAT(id, name) writer_##name,
#include "report/format.def"
#undef HLO_REMARKS_FORMAT
};

#define HLO_REMARKS_FORMAT(id, name)                                                               \
    static_assert(WRITER_##id == (int)HLO_REMARKS_##id, "rows are in the order of the enum");
#include "report/format.def"
#undef HLO_REMARKS_FORMAT

hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count, hlo_remarks which,
                             hlo_remarks_format format, bool colored, FILE *out) {
    HLO_IN_C_LOCALE;
    const report_writer t = {.reports = reports,
                             .count = count,
                             .which = which,
                             .colored = colored,
                             .out = out,
                             .sum = writer_sum_up(reports, count)};
    if ((size_t)format >= WRITER_COUNT) return HLO_INVALID_USAGE;
    hlo_json_watch();
    hlo_status status = writers[format](&t);
    if (status == HLO_OK && (fflush(out) != 0 || ferror(out))) status = HLO_INVALID_INPUT;
    return status;
}
