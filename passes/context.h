/* SPDX-License-Identifier: Apache-2.0 */
/* The context of a pass: the module, the target, options, and the report that collects verdicts. */
#ifndef HLO_PASSES_CONTEXT_H
#define HLO_PASSES_CONTEXT_H

#include "hlo/pass.h"
#include "ir/ir.h"
#include "matmul/call.h"

/* The state of hlo_pass_goes_on(), initially all zero. */
typedef struct hlo_pass_clock {
    double start, next; /* times of the first and of the next call of options->progress */
    const char *pass;   /* the name of the current pass */
    bool stopped;       /* the callback returned false */
} hlo_pass_clock;

typedef struct hlo_pass_context {
    hlo_module *module;
    const hlo_target *target;
    int cuda; /* version of the CUDA toolkit, in the encoding of hlo_cuda_is_version() */
    hlo_scale_form scales;
    const hlo_pass_options *options;
    const hlo_diag_sink *sink;
    hlo_report *report;
    hlo_arena *scratch;                /* working memory of one pass, released after the pass */
    hlo_arena *lasting;                /* working memory of the whole run */
    struct hlo_order *order;           /* instruction order, in `lasting`; may be NULL */
    struct hlo_replication *agreement; /* cache of hlo_devices_replicated(); may be NULL */
    const struct hlo_rule_library *library; /* the built-in rules */
    const struct hlo_rules *rules;          /* loaded from a file, or NULL */
    const hlo_module *rules_source;         /* owner of `rules` and of their text */
    struct hlo_rule_use *uses; /* for each rule of `rules`, its applications; in `lasting` */
    /* With --quantize=static, the amaxes of passes/quantize/amaxes.h; otherwise NULL. */
    const struct json_t *amaxes;
    /* If not NULL, the pass quantize-wide inserts amaxes instead of quantizing, and adds the name
     * of the amax of each value. */
    struct json_t *records;
    bool dequantizes; /* the module that quantize-wide creates is the output in the form
                       * HLO_EMIT_DQ */
    bool committed;   /* a pass that creates calls has run */
    uint64_t changes; /* number of changes by passes and rules: 0 after a run means that the module
                       * is unchanged */
    hlo_pass_clock clock;
} hlo_pass_context;

/* Calls options->progress if it is due. `pass` is the name of the pass that begins, or NULL within
 * a pass. Returns false if the run must stop with HLO_STOPPED. */
bool hlo_pass_goes_on(hlo_pass_context *context, const char *pass);

/* A pass implemented in C. */
typedef hlo_status hlo_pass_function(hlo_pass_context *context);

#endif
