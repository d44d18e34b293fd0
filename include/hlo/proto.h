/* SPDX-License-Identifier: Apache-2.0 */
/* HLO modules as protobuf messages: HloModuleProto of XLA (xla/service/hlo.proto), and the messages
 * that contain one. XLA writes an HloProto to a `*.hlo.pb` file with --xla_dump_hlo_as_proto.
 *
 * Fields that the library does not know or use are kept, and written back as long as the module,
 * computation, instruction or message that contains them exists. They are not part of HLO text. The
 * module attributes replica_count, num_partitions, alias_passthrough_params and
 * allow_spmd_sharding_propagation_to_* have no field in HloModuleProto. */
#ifndef HLO_PROTO_H
#define HLO_PROTO_H

#include <stddef.h>

#include "hlo/module.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Returns whether `size` bytes, which are the beginning or the whole content of a file, are a
 * binary message and not text. Text has no control characters except white space. */
bool hlo_proto_recognize(const void *bytes, size_t size);

/* Parses one module from `size` bytes, which are copied. They are a serialized HloModuleProto, or
 * one of these messages, which is recognized by its fields:
 *
 * - HloProto. The buffer assignment is ignored.
 * - HloModuleProtoWithConfig. replica_count and num_partitions become module attributes; the rest
 *   of the config is ignored.
 * - HloSnapshot and HloUnoptimizedSnapshot, which also have the inputs of a run. The module keeps
 *   them (hlo_arrays_recorded()). An HloUnoptimizedSnapshot may have the form in which XLA stores
 *   the inputs after the message.
 *
 * `name` is the file name in diagnostics.
 * Diagnostics have no line; they name the instruction or computation that they refer to. The module
 * is not verified. Use hlo_module_verify() for that. The caller must free *out_module with
 * hlo_module_free().
 *
 * Returns HLO_INVALID_INPUT if the bytes are not such a message, if they are truncated, if a known
 * field has another wire type than in XLA's message (protobuf's own parsers keep it as an unknown
 * field), or if an id refers to an object that does not exist. */
hlo_status hlo_module_parse_proto(const void *bytes, size_t size, const char *name,
                                  const hlo_diag_sink *sink, hlo_module **out_module);

/* The formats of hlo_module_print_proto(). */
typedef enum hlo_proto_format {
    HLO_PROTO_BINARY, /* A serialized HloModuleProto. */
    HLO_PROTO_TEXT    /* An HloModuleProto in protobuf's text format. */
} hlo_proto_format;

/* Writes `module` to `out` as an HloModuleProto. An attribute for which the message has no field is
 * omitted, and reported to `sink` as a warning.
 *
 * Returns HLO_INVALID_INPUT, with an error in `sink`, if the text of an attribute cannot be parsed.
 * Returns HLO_INVALID_INPUT without an error if `out` cannot be written to, for example because the
 * disk is full. */
hlo_status hlo_module_print_proto(const hlo_module *module, hlo_proto_format format,
                                  const hlo_diag_sink *sink, hlo_writer out);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
