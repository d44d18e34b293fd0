/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any bytes, read as a binary module. The module is rejected, or read and written as
 * bytes that read back and are written identically again. The inputs and outputs that were recorded
 * with the module are rejected or read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/ir.h"
#include "hlo/proto.h"
#include "hlo/runtime.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns NULL if the module has no binary form. */
static char *print(const hlo_module *module, size_t *out_size) {
    char *bytes = NULL;
    FILE *out = open_memstream(&bytes, out_size);
    if (!out) abort();
    hlo_status status =
        hlo_module_print_proto(module, HLO_PROTO_BINARY, NULL, hlo_file_writer(out));
    if (fclose(out)) abort();
    if (status == HLO_OK) return bytes;
    free(bytes);
    return NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hlo_module *first = NULL, *second = NULL;
    if (hlo_module_parse_proto(data, size, "fuzz", NULL, &first) != HLO_OK) return 0;
    if (hlo_module_verify(first, NULL, NULL) == HLO_OK)
        for (hlo_role role = HLO_INPUTS; role <= HLO_OUTPUTS; role++) {
            hlo_arrays *arrays = NULL;
            hlo_arrays_recorded(first, role, 1, NULL, &arrays);
            hlo_arrays_free(arrays);
        }
    size_t first_size, second_size;
    char *first_bytes = print(first, &first_size);
    hlo_module_free(first);
    if (!first_bytes) return 0;
    if (hlo_module_parse_proto(first_bytes, first_size, "print", NULL, &second) != HLO_OK) abort();
    char *second_bytes = print(second, &second_size);
    if (!second_bytes || first_size != second_size ||
        memcmp(first_bytes, second_bytes, first_size) != 0)
        abort();
    free(first_bytes);
    free(second_bytes);
    hlo_module_free(second);
    return 0;
}
