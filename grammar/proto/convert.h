/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of this folder: convert binary modules to the IR and back. */
#ifndef HLO_GRAMMAR_PROTO_CONVERT_H
#define HLO_GRAMMAR_PROTO_CONVERT_H

#include "grammar/attr/notation.h"
#include "hlo/proto.h"

/* Functions that read and write modules nested in attributes. The caller of this folder passes
 * them. */
typedef struct hlo_module_io {
    hlo_module_parser *parse_text;
    hlo_status (*parse_proto)(const void *bytes, size_t size, const char *name,
                              const hlo_diag_sink *sink, hlo_module **out_module);
    hlo_status (*print_proto)(const hlo_module *module, hlo_proto_format format,
                              const hlo_diag_sink *sink, FILE *out);
} hlo_module_io;

/* Reads a module; see hlo_module_parse_proto(). */
hlo_status hlo_proto_read(const void *bytes, size_t size, const char *name, const hlo_module_io *io,
                          const hlo_diag_sink *sink, hlo_module **out_module);
/* Writes a module; see hlo_module_print_proto(). */
hlo_status hlo_proto_write(const hlo_module *module, hlo_proto_format format,
                           const hlo_module_io *io, const hlo_diag_sink *sink, FILE *out);

#endif
