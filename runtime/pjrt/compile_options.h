/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the message that specifies how a plugin compiles a module. */
#ifndef HLO_RUNTIME_PJRT_COMPILE_OPTIONS_H
#define HLO_RUNTIME_PJRT_COMPILE_OPTIONS_H

#include "hlo/pjrt.h"
#include "hlo/status.h"

/* Bytes of a message; the caller frees `data`. */
typedef struct pjrt_bytes {
    char *data;
    size_t size;
} pjrt_bytes;

/* Properties of a module on which its compile options depend. */
typedef struct pjrt_module_kind {
    bool shardy; /* the module has meshes of Shardy */
    bool tupled; /* the module's only parameter is a tuple */
} pjrt_module_kind;

/* Writes a CompileOptionsProto for the HloModuleProto `module`. The message repeats the layouts of
 * the entry's parameters and result, because plugins reset layouts that are only in the module.
 * Returns HLO_OUT_OF_MEMORY if memory runs out. */
hlo_status pjrt_compile_options(pjrt_bytes module, pjrt_module_kind kind,
                                const hlo_pjrt_options *options, pjrt_bytes *out);

/* Copies the HloModuleProto in a program from a plugin to *out. Returns HLO_INVALID_INPUT if the
 * program does not contain an HloModuleProto, or HLO_OUT_OF_MEMORY if memory runs out. */
hlo_status pjrt_program_module(pjrt_bytes program, const char *format, size_t format_size,
                               pjrt_bytes *out);

#endif
