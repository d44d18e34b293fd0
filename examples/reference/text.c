/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of text.h. */
#include "reference.h"

#include <string.h>

#include <hlo/memory.h>
#include <hlo/text.h>

/* [parse] */
static hlo_status parse(const char *text) {
    hlo_module *module = NULL;
    hlo_status status = hlo_module_parse(text, strlen(text), "module.hlo", &sink, &module);
    if (status == HLO_OK) status = hlo_module_verify(module, NULL, &sink);
    hlo_module_free(module);
    return status;
}
/* [parse] */

/* [print] */
/* Writes a module to a file without metadata and without the elements of large constants. */
static hlo_status write_file(const hlo_module *module, const char *path) {
    hlo_print_options options;
    hlo_status status;
    FILE *file = fopen(path, "w");
    if (!file) return HLO_INVALID_INPUT;
    hlo_print_options_init(&options, HLO_PRINT_LONG);
    options.metadata = false;
    options.large_constants = false;
    status = hlo_module_print(module, &options, hlo_file_writer(file));
    if (fclose(file) != 0 && status == HLO_OK) status = HLO_INVALID_INPUT;
    return status;
}
/* [print] */

/* [parse-file] */
static hlo_status read_file(const char *path, hlo_module **out_module) {
    hlo_status status = hlo_module_parse_file(path, &sink, out_module);
    if (status == HLO_OK) printf("%s: module %s\n", path, hlo_module_name(*out_module));
    return status;
}
/* [parse-file] */

/* [parse-all] */
/* Prints the names of all modules of a file. */
static hlo_status list_modules(const char *path) {
    hlo_parse_options options;
    hlo_module **modules = NULL;
    size_t count = 0, i;
    hlo_status status;

    hlo_parse_options_init(&options);
    options.max_errors = 5;
    status = hlo_modules_parse_file(path, &options, &sink, &modules, &count);
    for (i = 0; i < count; i++) printf("%s\n", hlo_module_name(modules[i]));
    hlo_modules_free(modules, count);
    return status;
}
/* [parse-all] */

/* [to-text] */
/* Prints the canonical form of a module, which is equal for equal computations. */
static hlo_status print_canonical(const hlo_module *module) {
    hlo_print_options options;
    char *text = NULL;
    size_t size = 0;
    hlo_status status;

    hlo_print_options_init(&options, HLO_PRINT_CANONICAL);
    status = hlo_module_to_text(module, &options, &text, &size);
    if (status == HLO_OK) printf("%u bytes\n%s", (unsigned)size, text);
    hlo_free(text);
    return status;
}
/* [to-text] */

/* [init-sized] */
/* For a caller that knows the size of the struct only at run time, such as a binding. */
static void init_print_options(void *memory, size_t size) {
    hlo_print_options_init_sized((hlo_print_options *)memory, size, HLO_PRINT_SHORT);
}
/* [init-sized] */

hlo_status example_text(void) {
    hlo_print_options options;
    hlo_module *module = NULL, *again = NULL;
    hlo_status status = parse(scaled);

    if (status == HLO_OK) status = read_text(scaled, &module);
    if (status == HLO_OK) status = write_file(module, "text.hlo");
    if (status == HLO_OK) status = read_file("text.hlo", &again);
    if (status == HLO_OK) status = list_modules("text.hlo");
    if (status == HLO_OK) status = print_canonical(again);
    init_print_options(&options, sizeof options);
    if (status == HLO_OK) status = hlo_module_print(again, &options, hlo_file_writer(stdout));
    hlo_module_free(again);
    hlo_module_free(module);
    return status;
}
