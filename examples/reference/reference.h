/* SPDX-License-Identifier: Apache-2.0 */
/* The examples of the reference (docs/reference/README.md), one file for each header. Each function
 * returns HLO_OK, or the status of the call that failed. */
#ifndef HLO_EXAMPLES_REFERENCE_REFERENCE_H
#define HLO_EXAMPLES_REFERENCE_REFERENCE_H

#include <stdio.h>

#include <hlo/module.h>

/* Writes diagnostics to standard error. */
extern const hlo_diag_sink sink;

/* The text of an HLO module with one matmul of dequantized fp8 values, and of one with wide values.
 */
extern const char scaled[], wide[];

/* Parses a text. */
hlo_status read_text(const char *text, hlo_module **out_module);

hlo_status example_bisect(void);
hlo_status example_buffer(void);
hlo_status example_diag(void);
hlo_status example_dump(const char *folder);
hlo_status example_edit(void);
hlo_status example_ffi(void);
hlo_status example_ir(void);
hlo_status example_memory(void);
hlo_status example_module(void);
hlo_status example_opcode(void);
hlo_status example_pass(void);
hlo_status example_pjrt(const char *plugin, const char *target);
hlo_status example_proto(void);
hlo_status example_report(void);
hlo_status example_runtime(void);
hlo_status example_status(void);
hlo_status example_text(void);
hlo_status example_version(void);
hlo_status example_writer(void);

#endif
