/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/text/writer.h"

#include <string.h>
#include <sys/types.h>

#include "ir/memory.h"

static bool refuse(void *user, const char *bytes, size_t size) {
    (void)user, (void)bytes, (void)size;
    return false;
}

/* Reports a failure as 0 bytes, as fopencookie(3) requires. The stream then tries to write other
 * bytes, which the caller's function must not receive. */
static ssize_t write_part(void *cookie, const char *bytes, size_t size) {
    hlo_writer *writer = cookie;
    if (writer->write(writer->user, bytes, size)) return (ssize_t)size;
    writer->write = refuse;
    return 0;
}

FILE *hlo_writer_open(hlo_writer *writer) {
    const cookie_io_functions_t functions = {.write = write_part};
    return fopencookie(writer, "w", functions);
}

hlo_status hlo_writer_close(FILE *stream, hlo_status status) {
    bool failed = ferror(stream) != 0;
    failed |= fclose(stream) != 0;
    return failed && (status == HLO_OK || status == HLO_MISMATCH) ? HLO_INVALID_INPUT : status;
}

/* A text that grows. */
typedef struct growing {
    char *text;
    size_t size, capacity;
    char **out_text;
    size_t *out_size;
    bool failed;
} growing;

static ssize_t append(void *cookie, const char *bytes, size_t size) {
    growing *g = cookie;
    if (g->capacity - g->size <= size) {
        enum { FIRST = 512 };
        const size_t capacity = 2 * g->capacity + size + FIRST;
        char *grown = hlo_realloc(g->text, capacity);
        g->failed |= !grown;
        if (!grown) return 0;
        g->text = grown;
        g->capacity = capacity;
    }
    memcpy(g->text + g->size, bytes, size);
    g->size += size;
    return (ssize_t)size;
}

static int finish(void *cookie) {
    growing *g = cookie;
    const bool whole = append(g, "", 0) == 0 && !g->failed;
    if (whole) {
        g->text[g->size] = '\0';
        *g->out_text = g->text;
        *g->out_size = g->size;
    } else {
        hlo_free(g->text);
    }
    hlo_free(g);
    return whole ? 0 : EOF;
}

FILE *hlo_text_stream(char **out_text, size_t *out_size) {
    const cookie_io_functions_t functions = {.write = append, .close = finish};
    growing *g = hlo_calloc(1, sizeof *g);
    *out_text = NULL;
    *out_size = 0;
    if (!g) return NULL;
    g->out_text = out_text;
    g->out_size = out_size;
    FILE *stream = fopencookie(g, "w", functions);
    if (!stream) hlo_free(g);
    return stream;
}
