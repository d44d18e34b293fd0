/* SPDX-License-Identifier: Apache-2.0 */
/* Binary modules: XLA's messages HloModuleProto and HloProto (xla/service/hlo.proto; `*.hlo.pb`
 * files, which --xla_dump_hlo_as_proto writes), read, written, and printed in protobuf's text
 * format.
 *
 * Fields that the library does not know or use are kept and written back, as long as the module,
 * computation, instruction or message that contains them exists. Text does not show them. The
 * header attributes replica_count, num_partitions, alias_passthrough_params and
 * allow_spmd_sharding_propagation_to_* have no field in XLA's message. */
#ifndef HLO_PROTO_H
#define HLO_PROTO_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* True if `size` bytes, the beginning of a file or all of it, are a binary module rather than text:
 * text has no control characters but white space. */
bool hlo_proto_recognize(const void *bytes, size_t size);

/* Reads one module from `size` bytes, which are copied: an HloModuleProto, or an HloProto (whose
 * buffer assignment is dropped). `name` is the file name that diagnostics show; they have no line,
 * and name the instruction or computation that they are about. The module is not verified; see
 * hlo_module_verify(). On HLO_OK the caller frees *out_module with hlo_module_free(); on any other
 * status it is NULL. HLO_INVALID_INPUT: the bytes are no such message, are cut off, or have an id
 * of an object that does not exist. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_parse_proto(const void *bytes, size_t size, const char *name,
                                  const hlo_diag_sink *sink, hlo_module **out_module);

typedef enum hlo_proto_format {
    HLO_PROTO_BINARY, /* the bytes of an HloModuleProto */
    HLO_PROTO_TEXT    /* an HloModuleProto in protobuf's text format */
} hlo_proto_format;

/* Writes the module as an HloModuleProto. Attributes without a field in the message are omitted,
 * with a warning in `sink`. HLO_INVALID_INPUT: an attribute's text cannot be read, with an error in
 * `sink`; or `out` cannot be written to (disk full), without one. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_print_proto(const hlo_module *module, hlo_proto_format format,
                                  const hlo_diag_sink *sink, FILE *out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
