/* SPDX-License-Identifier: Apache-2.0 */
/* Context of a pass: the module, the target, options, and the report that collects its verdicts. */
#ifndef HLO_PASSES_CONTEXT_H
#define HLO_PASSES_CONTEXT_H

#include "hlo/pass.h"
#include "ir/ir.h"
#include "matmul/call.h"

typedef struct hlo_pass_context {
    hlo_module *module;
    const hlo_target *target;
    int cuda; /* the toolkit's version, as hlo_cuda_is_version() describes it */
    hlo_scale_form scales;
    const hlo_pass_options *options;
    const hlo_diag_sink *sink;
    hlo_report *report;
    hlo_arena *scratch;                /* working memory of one pass, released after it */
    hlo_arena *lasting;                /* working memory of the whole run */
    struct hlo_order *order;           /* order of instructions, in `lasting`; NULL: not computed */
    struct hlo_replication *agreement; /* facts cached by hlo_devices_replicated(), in `lasting`;
                                        * may be NULL */
    const struct hlo_rule_library *library; /* the built-in rules */
    const struct hlo_rules *rules;          /* loaded from a file, or NULL */
    const hlo_module *rules_source;         /* owner of `rules`, with their text */
    struct hlo_rule_use *uses; /* by rule of `rules`: number of applications; in `lasting` */
    bool committed;            /* a pass that makes calls has run */
    uint64_t changes; /* number of changes by passes and rules: 0 after a run means that the module
                       * is unchanged */
} hlo_pass_context;

/* A pass implemented in C. */
typedef hlo_status hlo_pass_function(hlo_pass_context *context);

#endif
