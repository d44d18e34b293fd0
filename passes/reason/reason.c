/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rows of reason.def, by index and by name. */
#include "passes/reason/reason.h"

#include <string.h>

#include "hlo/pass.h"

typedef struct reason_row {
    const char *name, *text, *hint;
} reason_row;

static const reason_row reason_rows[] = {
#define HLO_REASON(id, name, text, hint) {name, text, hint},
#include "passes/reason/reason.def"
#undef HLO_REASON
};

size_t hlo_reason_count(void) {
    return HLO_REASON_COUNT;
}

const char *hlo_reason_name(size_t index) {
    return reason_rows[index].name;
}

const char *hlo_reason_text(size_t index) {
    return reason_rows[index].text;
}

const char *hlo_reason_hint(size_t index) {
    return reason_rows[index].hint;
}

const char *hlo_reason_page(size_t index) {
    return hlo_reason_pages[index];
}

hlo_reason hlo_reason_find(const char *name) {
    int reason = 0;
    while (reason < HLO_REASON_COUNT && strcmp(hlo_reason_name((size_t)reason), name) != 0)
        reason++;
    return (hlo_reason)reason;
}
