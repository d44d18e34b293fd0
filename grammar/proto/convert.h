/* SPDX-License-Identifier: Apache-2.0 */
/* The entry points of this folder: convert binary modules to the IR and back. */
#ifndef HLO_GRAMMAR_PROTO_CONVERT_H
#define HLO_GRAMMAR_PROTO_CONVERT_H

#include "grammar/attr/notation.h"
#include "hlo/proto.h"
#include "ir/ir.h"
#include "ir/text/file.h"

/* Functions that read and write modules nested in attributes. The caller of this folder passes
 * them. */
typedef struct hlo_module_io {
    hlo_module_parser *parse_text;
    hlo_status (*parse_proto)(const void *bytes, size_t size, const char *name,
                              const hlo_diag_sink *sink, hlo_module **out_module);
    hlo_status (*print_proto)(const hlo_module *module, hlo_proto_format format,
                              const hlo_diag_sink *sink, FILE *out);
} hlo_module_io;

/* Reads a module; see hlo_module_parse_proto(). The module of a snapshot takes ownership of
 * content->bytes, which are then NULL, or copies them if content->capacity is 0. */
hlo_status hlo_proto_read(hlo_content *content, const char *name, const hlo_module_io *io,
                          const hlo_diag_sink *sink, hlo_module **out_module);

/* Receives an input of `device`, or the result, that was recorded with a module. Before the inputs
 * of each device, `literal` is NULL. */
typedef hlo_status hlo_recorded_sink(void *user, uint32_t device, const hlo_literal *literal);

/* Calls `put` for each input that was recorded with the module, device by device, or, if `results`,
 * for the result. Returns the first status that is not HLO_OK. */
hlo_status hlo_proto_recorded(const hlo_module *module, bool results, const hlo_diag_sink *sink,
                              hlo_recorded_sink *put, void *user);
/* Writes a module; see hlo_module_print_proto(). */
hlo_status hlo_proto_write(const hlo_module *module, hlo_proto_format format,
                           const hlo_module_io *io, const hlo_diag_sink *sink, FILE *out);

#endif
