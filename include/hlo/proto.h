/* Binary modules: the messages HloModuleProto and HloProto of XLA (`*.hlo.pb`, what
 * --xla_dump_hlo_as_proto writes), read, written, and printed as protobuf's text format.
 *
 * The fields of modules, computations, instructions and the messages in them that the library does
 * not know, or has no use for, are kept and written back, as long as what they stand in is there.
 * Text has none of them. The header attributes replica_count, num_partitions,
 * alias_passthrough_params and allow_spmd_sharding_propagation_to_* are no part of XLA's message.
 */
#ifndef HLO_PROTO_H
#define HLO_PROTO_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether `size` bytes, the beginning of a file or all of it, are a binary module rather than text:
 * text has no control characters but white space. */
bool hlo_proto_recognise(const void *bytes, size_t size);

/* Reads one module: an HloModuleProto, or an HloProto (of which the buffer assignment is dropped).
 * `name` is the file name that diagnostics show; they have no line, and say which instruction or
 * computation they are about. The module is not verified (hlo_module_verify does that).
 * On HLO_OK the caller frees *out_module; on any other status it is NULL.
 * HLO_INVALID_INPUT: the bytes are no such message, are cut off, or number things that are not
 * there. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_parse_proto(const void *bytes, size_t size, const char *name,
                                  const hlo_diag_sink *sink, hlo_module **out_module);

typedef enum hlo_proto_format {
    HLO_PROTO_BINARY, /* the bytes of an HloModuleProto */
    HLO_PROTO_TEXT    /* the same message in protobuf's text format */
} hlo_proto_format;

/* Writes the module as an HloModuleProto. An attribute that the message has no field for is left
 * out, with a warning to `sink`. HLO_INVALID_INPUT: an attribute's text cannot be read, which is an
 * error in `sink`; or writing to `out` fails (disk full), which is not. HLO_OUT_OF_MEMORY. */
hlo_status hlo_module_print_proto(const hlo_module *module, hlo_proto_format format,
                                  const hlo_diag_sink *sink, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
