/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of writer.h. */
#include "reference.h"

#include <string.h>

#include <hlo/text.h>
#include <hlo/writer.h>

/* [own-writer] */
/* The text so far, in an array of fixed size. */
typedef struct text {
    char bytes[4096];
    size_t size;
} text;

static bool append(void *user, const char *bytes, size_t size) {
    text *t = (text *)user;
    if (size > sizeof t->bytes - t->size) return false;
    memcpy(t->bytes + t->size, bytes, size);
    t->size += size;
    return true;
}
/* [own-writer] */

hlo_status example_writer(void) {
    hlo_module *module = NULL;
    hlo_status status = read_text(scaled, &module);

    /* [file] */
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    /* [file] */

    /* [stream] */
    hlo_writer writer;
    writer.write = hlo_file_write;
    writer.user = stdout;
    if (status == HLO_OK) status = hlo_module_print(module, NULL, writer);
    /* [stream] */

    text t;
    t.size = 0;
    writer.write = append;
    writer.user = &t;
    if (status == HLO_OK) status = hlo_module_print(module, NULL, writer);
    if (status == HLO_OK && t.size == 0) status = HLO_INTERNAL;
    hlo_module_free(module);
    return status;
}
