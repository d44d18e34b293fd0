/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the HTML page. */
#ifndef HLO_REPORT_HTML_HTML_H
#define HLO_REPORT_HTML_HTML_H

#include "passes/verdict/surroundings.h"
#include "report/format.h"

/* A matmul with its surroundings before and after the run. */
typedef struct html_matmul {
    const report_matmul *matmul;
    size_t index;                            /* of the matmul in the model */
    const hlo_surroundings *surroundings[2]; /* NULL if not recorded */
    size_t drawing[2];                       /* index of the drawing plus one; 0: not drawn */
} html_matmul;

typedef struct html_page {
    const report_model *model;
    const hlo_page_options *options;
    const report_baseline *baseline; /* NULL without --baseline */
    html_matmul *matmuls;            /* of the model, longest time first */
    FILE *out;
} html_page;

/* The texts of style.css and script.js, which cmake/embed.cmake embeds, and their SHA-256 hashes in
 * base64. */
enum { REPORT_STYLE, REPORT_SCRIPT };
extern const char *const report_assets[], *const report_assets_sha256[];

/* Names of the values of hlo_change. */
extern const char *const html_changes[REPORT_CHANGES];

/* Prints where matmuls lost FP8, and the verdicts at all stages. Prints nothing without a dump
 * folder. */
void html_stages(const html_page *page);

/* Prints all groups and matmuls as JSON, from which the script makes the rows of the table. */
hlo_status html_data(const html_page *page);

/* Plots the speed of each matmul against its FLOPs per byte. Prints nothing if no time is known.
 * Returns HLO_OUT_OF_MEMORY if memory runs out. */
hlo_status html_roofline(const html_page *page);
/* Plots the error that each measured matmul causes alone against the time that its quantization
 * saves. Prints nothing if no matmul was measured, or if no time is known. */
void html_errors(const html_page *page);

#endif
