/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of proto.h. */
#include "reference.h"

#include <stdlib.h>

#include <hlo/proto.h>

/* [write] */
/* Writes a module as a binary HloModuleProto. */
static hlo_status write_proto(const hlo_module *module, const char *path) {
    hlo_status status;
    FILE *file = fopen(path, "wb");
    if (!file) return HLO_INVALID_INPUT;
    status = hlo_module_print_proto(module, HLO_PROTO_BINARY, &sink, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [write] */

/* [parse] */
/* Parses a message in memory, for example one that XLA serialized. */
static hlo_status read_proto(const void *bytes, size_t size, hlo_module **out_module) {
    if (!hlo_proto_recognize(bytes, size)) return HLO_INVALID_INPUT; /* text */
    return hlo_module_parse_proto(bytes, size, "module.pb", &sink, out_module);
}
/* [parse] */

hlo_status example_proto(void) {
    static char bytes[1 << 16];
    hlo_module *module = NULL, *again = NULL;
    size_t size = 0;
    FILE *file;
    hlo_status status = read_text(scaled, &module);

    if (status == HLO_OK) status = write_proto(module, "proto.pb");
    file = fopen("proto.pb", "rb");
    if (file) size = fread(bytes, 1, sizeof bytes, file);
    if (file) fclose(file);
    if (status == HLO_OK) status = read_proto(bytes, size, &again);
    if (status == HLO_OK) status = hlo_module_diff_matmuls(module, again, hlo_file_writer(stdout));
    hlo_module_free(again);
    hlo_module_free(module);
    return status;
}
