/* SPDX-License-Identifier: Apache-2.0 */
/* Modules within the header's origin_recovery_table: as messages in a binary module, as quoted text
 * in HLO text. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/proto/proto.h"
#include "hlo/proto.h"
#include "hlo/text.h"

enum { DEEPEST = 4 }; /* nesting of tables: each escapes the quotes of the next one */

static unsigned depth_of(const Xla__HloModuleProto *module) {
    const Xla__OriginalValueRecoveryTableProto *table = module->original_value_recovery_table;
    unsigned deepest = 0;
    for (size_t i = 0; table && i < table->n_entries; i++) {
        const Xla__HloModuleProto *inner = table->entries[i]->recovery_module;
        const unsigned depth = inner ? 1 + depth_of(inner) : 0;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

void hlo_recovery_print(hlo_proto *p, hlo_bytes *out, const Xla__HloModuleProto *from) {
    if (depth_of(from) > DEEPEST) hlo_proto_fail(p, "recovery modules are nested too deeply");
    const size_t size = protobuf_c_message_get_packed_size(&from->base);
    uint8_t *bytes = hlo_arena_alloc(p->scratch, size);
    protobuf_c_message_pack(&from->base, bytes);
    hlo_module *module;
    hlo_status status = p->io->parse_proto(bytes, size, p->module->file, p->sink, &module);
    if (status != HLO_OK) hlo_proto_fail(p, "failed to read a recovery module");
    size_t length;
    char *text;
    status = hlo_module_to_text(module, NULL, &text, &length);
    hlo_module_free(module);
    if (status != HLO_OK) hlo_proto_fail(p, "failed to print a recovery module");
    p->owned = text;
    hlo_notation_put_module(out, text);
    p->owned = NULL;
    free(text);
}

Xla__HloModuleProto *hlo_recovery_read(hlo_proto *p, const char *text) {
    hlo_module *module;
    hlo_status status = p->io->parse_text(text, strlen(text), p->module->file, NULL, &module);
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(p->scratch);
    if (status != HLO_OK) return NULL;
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&bytes, &size);
    status = HLO_OUT_OF_MEMORY;
    if (out) status = p->io->print_proto(module, HLO_PROTO_BINARY, p->sink, out);
    if (out && (fclose(out) != 0 || !bytes)) status = HLO_OUT_OF_MEMORY;
    hlo_module_free(module);
    p->owned = bytes;
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(p->scratch);
    ProtobufCAllocator allocator = hlo_wire_allocator(p->scratch);
    ProtobufCMessage *message =
        status == HLO_OK ? protobuf_c_message_unpack(&xla__hlo_module_proto__descriptor, &allocator,
                                                     size, (const uint8_t *)bytes)
                         : NULL;
    p->owned = NULL;
    free(bytes);
    return (Xla__HloModuleProto *)message;
}
