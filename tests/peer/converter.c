/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints modules for peer tests, one after another in one process, since starting a
 * process takes longer than converting a module.
 *
 * A request is a line `FORMAT SIZE`, where FORMAT is text, pb or pbtxt, and SIZE bytes of a module,
 * text or binary. The answer is a line `STATUS SIZE` and SIZE bytes: the unverified module in that
 * format or, if STATUS is not 0, the diagnostics. The process ends at the end of its input. */
#include <stdlib.h>
#include <string.h>

#include "hlo/proto.h"
#include "hlo/text.h"

static void tell(void *out, const hlo_diag *diag) {
    hlo_diag_print(diag, 0, hlo_file_writer(out));
}

static hlo_status print(const hlo_module *module, const char *format, const hlo_diag_sink *sink,
                        FILE *out) {
    if (strcmp(format, "text") == 0) return hlo_module_print(module, NULL, hlo_file_writer(out));
    return hlo_module_print_proto(module,
                                  strcmp(format, "pb") == 0 ? HLO_PROTO_BINARY : HLO_PROTO_TEXT,
                                  sink, hlo_file_writer(out));
}

static void answer(const char *format, const char *bytes, size_t size) {
    char *made = NULL, *said = NULL;
    size_t made_size = 0, said_size = 0;
    FILE *out = open_memstream(&made, &made_size), *errors = open_memstream(&said, &said_size);
    if (!out || !errors) abort();
    const hlo_diag_sink sink = {tell, errors};
    hlo_module *module = NULL;
    hlo_status status = hlo_proto_recognize(bytes, size)
                            ? hlo_module_parse_proto(bytes, size, "in", &sink, &module)
                            : hlo_module_parse(bytes, size, "in", &sink, &module);
    if (status == HLO_OK) status = print(module, format, &sink, out);
    hlo_module_free(module);
    fclose(out);
    fclose(errors);
    printf("%d %zu\n", status, status == HLO_OK ? made_size : said_size);
    fwrite(status == HLO_OK ? made : said, 1, status == HLO_OK ? made_size : said_size, stdout);
    fflush(stdout);
    free(made);
    free(said);
}

int main(void) {
    char format[8];
    size_t size;
    while (scanf("%7s %zu", format, &size) == 2) {
        char *bytes = malloc(size + 1);
        if (getchar() != '\n' || !bytes || fread(bytes, 1, size, stdin) != size) abort();
        answer(format, bytes, size);
        free(bytes);
    }
    return 0;
}
