/* SPDX-License-Identifier: Apache-2.0 */
/* The reasons for verdicts. A reason explains why a dot is not FP8, or not the cheapest form of
 * FP8. */
#ifndef HLO_PASSES_REASON_REASON_H
#define HLO_PASSES_REASON_REASON_H

typedef enum hlo_reason {
#define HLO_REASON(id, name, text, hint) HLO_REASON_##id,
#include "passes/reason/reason.def"
#undef HLO_REASON
    HLO_REASON_COUNT
} hlo_reason;

/* Finds a reason by its name. Returns HLO_REASON_COUNT if no reason has this name. */
hlo_reason hlo_reason_find(const char *name);

/* The texts of passes/reason/pages/NAME.md, indexed by hlo_reason. */
extern const char *const hlo_reason_pages[HLO_REASON_COUNT];

#endif
