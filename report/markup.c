/* SPDX-License-Identifier: Apache-2.0 */
/* Escaping of text in XML and HTML. */
#include <string.h>

#include "report/format.h"

/* Returns the size of the UTF-8 character at `text`; 0 if it is invalid or not allowed in XML. */
static size_t character_size(const unsigned char *text, size_t size) {
    unsigned char first = text[0];
    size_t wants = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (wants > size || (first >= 0x80 && first < 0xc2) || first > 0xf4) return 0;
    for (size_t i = 1; i < wants; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    bool longer_than_need = (first == 0xe0 && text[1] < 0xa0) || (first == 0xf0 && text[1] < 0x90);
    bool surrogate = first == 0xed && text[1] > 0x9f, beyond = first == 0xf4 && text[1] > 0x8f;
    bool no_character = first == 0xef && text[1] == 0xbf && text[2] > 0xbd;
    return longer_than_need || surrogate || beyond || no_character ? 0 : wants;
}

void writer_markup_part(FILE *out, const char *text, size_t size) {
    const unsigned char *at = (const unsigned char *)text, *end = at + size;
    while (at < end) {
        size_t character = character_size(at, (size_t)(end - at));
        if (character == 0 || *at == 0x7f || strchr("&<>\"", *at))
            fprintf(out, "&#%d;", *at);
        else if (*at < 0x20 && *at != '\n')
            fputc(' ', out);
        else
            fwrite(at, 1, character, out);
        at += character ? character : 1;
    }
}

void writer_markup(FILE *out, const char *text) {
    if (text) writer_markup_part(out, text, strlen(text));
}
