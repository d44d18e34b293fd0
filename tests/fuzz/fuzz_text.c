/* SPDX-License-Identifier: Apache-2.0 */
/* The input is any bytes. The parser rejects the bytes, or reads a module. The printed text can be
 * parsed again, and prints identically. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hlo/memory.h"
#include "hlo/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *print(const hlo_module *module, size_t *out_size) {
    char *text = NULL;
    if (hlo_module_to_text(module, NULL, &text, out_size) != HLO_OK) abort();
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    hlo_module *first = NULL;
    if (hlo_module_parse((const char *)data, size, "fuzz", NULL, &first) != HLO_OK) return 0;
    size_t first_size, second_size;
    char *first_text = print(first, &first_size);
    hlo_module *second = NULL;
    if (hlo_module_parse(first_text, first_size, "print", NULL, &second) != HLO_OK) abort();
    char *second_text = print(second, &second_size);
    if (first_size != second_size || memcmp(first_text, second_text, first_size) != 0) abort();
    hlo_free(first_text);
    hlo_free(second_text);
    hlo_module_free(first);
    hlo_module_free(second);
    return 0;
}
