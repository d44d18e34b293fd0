/* SPDX-License-Identifier: Apache-2.0 */
/* Prints verdicts in one of the formats of format.def. */
#include "report/format.h"

#include <assert.h>

#include "ir/float/c_locale.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
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

hlo_status writer_take_options(const hlo_remarks_options *options, hlo_remarks_options *out) {
    hlo_remarks_options_init(out);
    const hlo_status status =
        hlo_options_take("hlo_remarks_options", out, sizeof *out, options, NULL);
    const bool valid = (size_t)out->format < WRITER_COUNT && out->which <= HLO_REMARKS_SUMMARY;
    return status == HLO_OK && valid ? HLO_OK : HLO_INVALID_USAGE;
}

hlo_status writer_print(const report_model *model, const hlo_remarks_options *options, FILE *out) {
    report_baseline baseline = {0};
    hlo_status status = options->baseline
                            ? report_baseline_read(model, options->baseline, NULL, &baseline)
                            : HLO_OK;
    const report_writer t = {.model = model,
                             .baseline = options->baseline ? &baseline : NULL,
                             .options = *options,
                             .out = out};
    hlo_json_watch();
    if (status == HLO_OK) status = writers[options->format](&t);
    report_baseline_free(&baseline);
    return status;
}

hlo_status hlo_reports_print(const hlo_report *const *reports, size_t count,
                             const hlo_remarks_options *options, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    hlo_remarks_options own;
    report_model *model = NULL;
    hlo_status status = writer_take_options(options, &own);
    if (status == HLO_OK) status = report_model_new(reports, count, &model);
    FILE *out = status == HLO_OK ? hlo_writer_open(&writer) : NULL;
    if (status == HLO_OK && !out) status = HLO_OUT_OF_MEMORY;
    if (out) status = hlo_writer_close(out, writer_print(model, &own, out));
    report_model_free(model);
    return status;
}
