/* SPDX-License-Identifier: Apache-2.0 */
/* Public functions for binary modules. Modules within attributes are HLO text or binary. */
#include "grammar/proto/convert.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"

static const hlo_module_io module_io = {hlo_module_parse, hlo_module_parse_proto,
                                        hlo_module_print_proto};

hlo_status hlo_module_parse_proto(const void *bytes, size_t size, const char *name,
                                  const hlo_diag_sink *sink, hlo_module **out_module) {
    HLO_IN_C_LOCALE;
    return hlo_proto_read(bytes, size, name, &module_io, sink, out_module);
}

hlo_status hlo_module_print_proto(const hlo_module *module, hlo_proto_format format,
                                  const hlo_diag_sink *sink, FILE *out) {
    HLO_IN_C_LOCALE;
    return hlo_proto_write(module, format, &module_io, sink, out);
}
