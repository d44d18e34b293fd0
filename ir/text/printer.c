/* SPDX-License-Identifier: Apache-2.0 */
/* The output buffer of text. */
#include "ir/text/printer.h"

#include <stdlib.h>

#include "ir/intern.h"
#include "ir/text/plain.h"

void hlo_printer_flush(hlo_printer *o) {
    size_t size = (size_t)(o->at - o->buffer);
    if (size && fwrite(o->buffer, 1, size, o->file) != size) o->failed = true;
    o->at = o->buffer;
}

bool hlo_printer_grow(hlo_printer *o, size_t size) {
    const size_t used = (size_t)(o->at - o->buffer), capacity = 2 * used + size;
    char *grown = used ? realloc(o->buffer, capacity) : hlo_memory_new(capacity);
    if (!grown) return false;
    o->buffer = grown;
    o->at = grown + used;
    o->end = grown + capacity;
    return true;
}

void hlo_put_large(hlo_printer *o, const char *bytes, size_t size) {
    size_t capacity = (size_t)(o->end - o->at);
    if (o->overflow == HLO_OVERFLOW_FLUSH) {
        hlo_printer_flush(o);
        capacity = (size_t)(o->end - o->at);
        if (size > capacity) o->failed |= fwrite(bytes, 1, size, o->file) != size;
    } else if (o->overflow == HLO_OVERFLOW_GROW) {
        o->failed |= !hlo_printer_grow(o, size);
        capacity = (size_t)(o->end - o->at);
    } else {
        memcpy(o->at, bytes, capacity);
        o->at += capacity;
        o->dropped += size - capacity;
        return;
    }
    if (size > capacity) return;
    memcpy(o->at, bytes, size);
    o->at += size;
}

const char *hlo_print_interned(hlo_module *module, void (*put)(hlo_printer *o, const void *value),
                               const void *value) {
    char few[256];
    hlo_printer o = {.buffer = few, .at = few, .end = few + sizeof few};
    o.overflow = HLO_OVERFLOW_DROP;
    o.options = &hlo_print_long_form;
    put(&o, value);
    const size_t size = (size_t)(o.at - o.buffer) + o.dropped;
    if (o.dropped) {
        o.at = o.buffer = hlo_arena_alloc(module->arena, size);
        o.end = o.buffer + size;
        put(&o, value);
    }
    return hlo_intern(module, o.buffer, size);
}

void hlo_put_uint(hlo_printer *o, uint64_t value) {
    char digits[20], *at = digits + sizeof digits;
    do *--at = (char)('0' + value % 10);
    while (value /= 10);
    hlo_put(o, at, (size_t)(digits + sizeof digits - at));
}

void hlo_put_int(hlo_printer *o, int64_t value) {
    if (value < 0) hlo_put_char(o, '-');
    hlo_put_uint(o, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void hlo_put_comma(hlo_printer *o, uint32_t index) {
    if (!index) return;
    HLO_PUT(o, ", ");
    if (index % 5) return;
    HLO_PUT(o, "/*index=");
    hlo_put_uint(o, index);
    HLO_PUT(o, "*/");
}

void hlo_put_quoted(hlo_printer *o, const char *interned) {
    hlo_put_char(o, '"');
    const size_t length = hlo_intern_length(interned);
    const char *from = interned, *end = interned + length;
    if (hlo_all_plain(interned, length)) {
        hlo_put(o, interned, length);
        from = end;
    }
    for (const char *at = from;; at++) {
        unsigned char c = at < end ? (unsigned char)*at : '"';
        if (hlo_is_plain(c)) continue;
        hlo_put(o, from, (size_t)(at - from));
        from = at + 1;
        if (at == end) break;
        const char *letter = memchr("\n\r\t\"'\\", c, 6);
        char escape[4] = {'\\', (char)('0' + (c >> 6)), (char)('0' + (c >> 3 & 7)),
                          (char)('0' + (c & 7))};
        if (letter) escape[1] = "nrt\"'\\"[letter - "\n\r\t\"'\\"];
        hlo_put(o, escape, letter ? 2 : 4);
    }
    hlo_put_char(o, '"');
}

const hlo_print_options hlo_print_long_form = {
    .struct_size = sizeof hlo_print_long_form,
    .percent = true,
    .signature = true,
    .operand_index = true,
    .metadata = true,
    .control_predecessors = true,
    .backend_config = true,
    .large_constants = true,
};

void hlo_put_name(hlo_printer *o, const char *interned) {
    if (o->options->percent) hlo_put_char(o, '%');
    hlo_put_interned(o, interned);
}

void hlo_put_instr_name(hlo_printer *o, const hlo_instr *instr) {
    if (!o->numbers) {
        hlo_put_name(o, instr->name);
        return;
    }
    HLO_PUT(o, "tmp_");
    hlo_put_uint(o, o->numbers[instr->id]);
}

void hlo_put_line(hlo_printer *o, uint32_t depth) {
    hlo_put_char(o, '\n');
    for (uint32_t i = 0; i < depth; i++) HLO_PUT(o, "  ");
}
