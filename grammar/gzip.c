/* SPDX-License-Identifier: Apache-2.0 */
/* Inflates gzip-compressed files with zlib. */
#include "grammar/gzip.h"

#ifdef HLO_WITH_ZLIB
#include <string.h>
#include <zlib.h>

#include "ir/memory.h"

static const char no_memory[] = "out of memory";

enum { LARGEST_FILE = INT32_MAX, COUNTED = 1 << 26 };

/* Inflates the members of a gz file until `to` is full or the file ends. Returns NULL, or the
 * error. */
static const char *inflate_some(z_stream *z, char *to, size_t capacity, size_t *out_made) {
    z->next_out = (Bytef *)to;
    z->avail_out = (uInt)capacity;
    const char *why = NULL;
    for (bool end = false; !end && !why && z->avail_out;) {
        int status = inflate(z, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            /* Another member may follow, or zeros, which pad files on tapes. */
            while (z->avail_in && !*z->next_in) z->next_in++, z->avail_in--;
            end = !z->avail_in;
            status = end ? Z_OK : inflateReset(z);
        }
        if (status == Z_MEM_ERROR)
            why = no_memory;
        else if (status == Z_BUF_ERROR && z->avail_out)
            why = "the compressed data is truncated";
        else if (status != Z_OK && status != Z_BUF_ERROR)
            why = "the compressed data is corrupted";
    }
    *out_made = capacity - z->avail_out;
    return why;
}

/* Counts the remaining uncompressed bytes without storing them. */
static const char *count_rest(z_stream *z, size_t most, size_t *out_count) {
    char unused[1 << 15];
    z_stream ahead;
    size_t made = sizeof unused;
    const char *why = NULL;
    *out_count = 0;
    if (inflateCopy(&ahead, z) != Z_OK) return no_memory;
    while (!why && made == sizeof unused && *out_count <= most) {
        why = inflate_some(&ahead, unused, sizeof unused, &made);
        *out_count += made;
    }
    inflateEnd(&ahead);
    return !why && *out_count > most ? "the uncompressed size exceeds 2 GB" : why;
}

/* Inflates a file. Counts the bytes of a large file first, to allocate exactly. */
static const char *inflate_all(z_stream *z, hlo_content *out) {
    for (;;) {
        if (out->size >= COUNTED) {
            size_t rest, made;
            const char *why = count_rest(z, LARGEST_FILE - out->size, &rest);
            char *grown = why ? NULL : hlo_realloc(out->bytes, out->size + rest + 1);
            if (!grown) return why ? why : no_memory;
            *out = (hlo_content){grown, out->size + rest, out->size + rest + 1};
            return inflate_some(z, grown + out->size - rest, rest, &made);
        }
        if (out->size == out->capacity && !hlo_content_grow(out)) return no_memory;
        size_t made, capacity = out->capacity - out->size;
        const char *why = inflate_some(z, out->bytes + out->size, capacity, &made);
        out->size += made;
        if (why || made < capacity) return why;
    }
}

hlo_status hlo_gzip_inflate(hlo_content *content, const char **out_why) {
    enum { GZIP_ONLY = 16 + MAX_WBITS };
    z_stream z = {.next_in = (Bytef *)content->bytes, .avail_in = (uInt)content->size};
    hlo_content plain = {.bytes = NULL};
    if (inflateInit2(&z, GZIP_ONLY) != Z_OK) return HLO_OUT_OF_MEMORY;
    *out_why = inflate_all(&z, &plain);
    inflateEnd(&z);
    hlo_free(content->bytes);
    *content = plain;
    if (*out_why == no_memory) return HLO_OUT_OF_MEMORY;
    return *out_why ? HLO_INVALID_INPUT : HLO_OK;
}

#else
hlo_status hlo_gzip_inflate(hlo_content *content, const char **out_why) {
    (void)content;
    *out_why = "this build has no zlib; unpack the file first";
    return HLO_INVALID_INPUT;
}
#endif
