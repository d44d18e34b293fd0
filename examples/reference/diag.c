/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of diag.h. */
#include "reference.h"

#include <string.h>

#include <hlo/diag.h>
#include <hlo/text.h>

/* [sink] */
/* Prints a diagnostic to a FILE, with the source line, at most 100 columns wide. */
static void print(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 100, hlo_file_writer((FILE *)user));
}
/* [sink] */

/* [codes] */
/* Counts the errors, and prints each as `file:line: [code] message`. */
static void count(void *user, const hlo_diag *diag) {
    if (diag->severity != HLO_ERROR) return;
    printf("%s:%u: [%s] %s\n", diag->file, (unsigned)diag->line, hlo_diag_code_name(diag->code),
           diag->message);
    ++*(int *)user;
}
/* [codes] */

hlo_status example_diag(void) {
    static const char text[] = "HloModule m\nENTRY e {\n  ROOT a = f32[2] parameter(0\n}\n";
    hlo_module *module = NULL;
    hlo_diag_sink printing, counting;
    int errors = 0;

    printing.emit = print;
    printing.user = stdout;
    counting.emit = count;
    counting.user = &errors;
    if (hlo_module_parse(text, strlen(text), "wrong.hlo", &printing, &module) == HLO_OK ||
        hlo_module_parse(text, strlen(text), "wrong.hlo", &counting, &module) == HLO_OK)
        return HLO_INTERNAL;
    return errors > 0 ? HLO_OK : HLO_INTERNAL;
}
