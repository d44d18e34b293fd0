/* SPDX-License-Identifier: Apache-2.0 */
/* Emits and prints diagnostics: maps a byte offset to line and column, and prints the source line
 * with a caret. */
#include "hlo/diag.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"
#include "ir/memory.h"
#include "ir/text/diag.h"

enum { MESSAGE_SIZE = 1024, MARKS = sizeof((hlo_lines){0}.marks) / sizeof(hlo_line) };

static hlo_line find_line(const hlo_module *module, size_t offset) {
    const char *source = module->source, *end = source + module->source_size;
    const hlo_lines *lines = module->lines;
    for (int i = 0; i < 2; i++)
        if (lines->last[i].offset <= offset && offset <= lines->end[i] && lines->last[i].number)
            return lines->last[i];
    size_t stripe = module->source_size / MARKS + 1;
    /* Start from the last known line start at or before `offset`. */
    hlo_line line = {.number = module->source_line};
    for (size_t part = offset / stripe + 1; part-- && !line.offset;) {
        const hlo_line *mark = &lines->marks[part < MARKS ? part : MARKS - 1];
        if (mark->number && mark->offset <= offset) line = *mark;
    }
    for (int i = 0; i < 2; i++) {
        const hlo_line *last = &lines->last[i];
        if (last->number && last->offset <= offset && last->offset > line.offset) line = *last;
    }
    for (const char *at = source + line.offset; at < source + offset; at++) {
        if (*at != '\n' && (*at != '\r' || (at + 1 < end && at[1] == '\n'))) continue;
        line = (hlo_line){(size_t)(at + 1 - source), line.number + 1};
        hlo_line *mark = &module->lines->marks[line.offset / stripe];
        if (!mark->number) *mark = line;
    }
    return line;
}

const char *hlo_diag_code_name(hlo_diag_code code) {
    switch ((int)code) {
#define HLO_DIAG(number, id, name, text)                                                           \
    case HLO_DIAG_##id: {                                                                          \
        static_assert(HLO_DIAG_##id == (number), "diag.h and diag_code.def have equal numbers");   \
        return name;                                                                               \
    }
#include "ir/text/diag_code.def"
#undef HLO_DIAG
    default: return NULL;
    }
}

void hlo_diag_send(const hlo_diag_sink *sink, hlo_diag diag) {
    diag.struct_size = sizeof diag;
    if (sink) sink->emit(sink->user, &diag);
}

void hlo_diag_vemit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                    hlo_diag_code code, size_t offset, size_t length, const char *format,
                    va_list args) {
    if (!sink) return;
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof message, format, args);
    hlo_diag diag = {.severity = severity, .code = code, .message = message, .file = module->file};
    if (*module->file && module->source) {
        if (offset > module->source_size) offset = module->source_size;
        const char *source = module->source;
        hlo_line line = find_line(module, offset);
        hlo_lines *lines = module->lines;
        int kind = diag.severity != HLO_NOTE;
        size_t end = lines->last[kind].number == line.number ? lines->end[kind] : offset;
        if (lines->last[kind].number != line.number)
            while (end < module->source_size && source[end] != '\n' && source[end] != '\r') end++;
        lines->last[kind] = line;
        lines->end[kind] = end;
        diag.line = line.number;
        diag.column = (uint32_t)(offset - line.offset + 1);
        diag.source = source + line.offset;
        diag.source_size = end - line.offset;
        diag.length = length < end - offset ? length : end - offset;
    }
    hlo_diag_send(sink, diag);
}

void hlo_diag_emit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                   hlo_diag_code code, size_t offset, size_t length, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(module, sink, severity, code, offset, length, format, args);
    va_end(args);
}

hlo_status hlo_diag_refuse(const hlo_diag_sink *sink, hlo_diag_code code, const char *file,
                           int line, int column, const char *format, ...) {
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const hlo_diag diag = {.severity = HLO_ERROR,
                           .code = code,
                           .message = message,
                           .file = file,
                           .line = line > 0 ? (uint32_t)line : 0,
                           .column = line > 0 && column > 0 ? (uint32_t)column : 0};
    hlo_diag_send(sink, diag);
    return HLO_INVALID_INPUT;
}

hlo_status hlo_diag_misuse(const hlo_diag_sink *sink, hlo_diag_code code, const char *format, ...) {
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    hlo_diag_refuse(sink, code, NULL, 0, 0, "%s", message);
    return HLO_INVALID_USAGE;
}

hlo_error_budget hlo_error_budget_new(unsigned most) {
    return (hlo_error_budget){.most = most ? most : HLO_MAX_ERRORS};
}

bool hlo_error_budget_take(hlo_error_budget *budget, uint32_t offset) {
    if (budget->found == budget->most) budget->first_hidden = offset;
    return budget->found++ < budget->most;
}

hlo_status hlo_error_budget_end(const hlo_error_budget *budget, const hlo_module *module,
                                const hlo_diag_sink *sink) {
    if (budget->found > budget->most)
        hlo_diag_emit(module, sink, HLO_NOTE, HLO_DIAG_VERIFY, budget->first_hidden, 1,
                      "%u more error%s not shown; the first one is here",
                      budget->found - budget->most, budget->found - budget->most == 1 ? "" : "s");
    return budget->found ? HLO_INVALID_INPUT : HLO_OK;
}

size_t hlo_utf8_decode(const char *text, size_t size, uint32_t *out_code) {
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    size_t count = 0;
    uint8_t first = (uint8_t)*text;
    while (count < 4 && (first & forms[count].mask) != forms[count].lead) count++;
    if (count == 4 || count >= size) return 0;
    uint32_t code = first & (uint8_t)~forms[count].mask;
    for (size_t i = 1; i <= count; i++) {
        if (((uint8_t)text[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | ((uint8_t)text[i] & 0x3f);
    }
    if (code < forms[count].least || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff) return 0;
    *out_code = code;
    return count + 1;
}

/* Output that is passed to a writer in large parts, without allocating memory. */
typedef struct stream {
    hlo_writer out;
    size_t size;
    bool failed;
    char bytes[1024];
} stream;

static void flush(stream *s) {
    if (s->size && !s->out.write(s->out.user, s->bytes, s->size)) s->failed = true;
    s->size = 0;
}

static void put(stream *s, const char *bytes, size_t size) {
    while (size) {
        if (s->size == sizeof s->bytes) flush(s);
        const size_t room = sizeof s->bytes - s->size, part = size < room ? size : room;
        memcpy(s->bytes + s->size, bytes, part);
        s->size += part;
        bytes += part;
        size -= part;
    }
}

/* Writes `text` with tabs as spaces, and `?` for each byte of characters that cannot be displayed.
 * If `mark` is not 0, writes `mark` for each column instead. */
static void put_source(stream *s, const char *text, size_t size, char mark) {
    static const uint32_t wide[][2] = {{0x1100, 0x115f}, {0x2e80, 0xa4cf},   {0xac00, 0xd7a3},
                                       {0xf900, 0xfaff}, {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                       {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3ffff}};
    static const uint32_t hidden[][2] = {{0, 0x1f},        {0x7f, 0x9f},         {0x200b, 0x200f},
                                         {0x2028, 0x202e}, {0x2060, 0x206f},     {0xe000, 0xf8ff},
                                         {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},     {0xfff0, 0xffff},
                                         {0x300, 0x36f},   {0xe0000, UINT32_MAX}};
    for (size_t i = 0, used; i < size; i += used) {
        uint32_t code = ' ';
        used = hlo_utf8_decode(text + i, size - i, &code);
        for (size_t h = 0; h < sizeof hidden / sizeof *hidden; h++)
            if (code >= hidden[h][0] && code <= hidden[h][1]) used = 0;
        if (mark) put(s, &mark, 1);
        for (size_t w = 0; mark && w < sizeof wide / sizeof *wide; w++)
            if (code >= wide[w][0] && code <= wide[w][1]) put(s, &mark, 1);
        if (!mark && used) put(s, text + i, used);
        if (!mark && !used) put(s, text[i] == '\t' ? " " : "?", 1);
        if (!used) used = 1;
    }
}

static bool write_file(void *file, const char *bytes, size_t size) {
    return fwrite(bytes, 1, size, file) == size;
}

/* Writes the source line and a line with a caret. */
static void put_excerpt(stream *s, const hlo_diag *diag, unsigned width) {
    static const char dots[] = "...";
    size_t caret = diag->column - 1, from = 0, to = diag->source_size;
    if (width > 20 && to > width) {
        size_t capacity = width - 2 * (sizeof dots - 1);
        from = caret > capacity / 2 ? caret - capacity / 2 : 0;
        if (from + capacity < to)
            to = from + capacity;
        else
            from = to - capacity;
    }
    if (from) put(s, dots, sizeof dots - 1);
    put_source(s, diag->source + from, to - from, 0);
    if (to < diag->source_size) put(s, dots, sizeof dots - 1);
    put(s, "\n", 1);
    if (from) put(s, "   ", 3);
    put_source(s, diag->source + from, caret - from, ' ');
    put(s, "^", 1);
    size_t end = caret + diag->length < to ? caret + diag->length : to;
    if (caret + 1 < end) put_source(s, diag->source + caret + 1, end - caret - 1, '~');
    put(s, "\n", 1);
}

void hlo_print_plain(FILE *out, const char *format, ...) {
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char few[1024], *all = few;
    const int length = vsnprintf(few, sizeof few, format, args);
    size_t size = length < 0 ? 0 : (size_t)length, form = strlen(format);
    if (size >= sizeof few && (all = hlo_malloc(size + 1)))
        vsnprintf(all, size + 1, format, again);
    else if (size >= sizeof few)
        all = few, size = sizeof few - 1;
    const bool ends = size && form && format[form - 1] == '\n';
    stream s = {.out = {write_file, out}};
    put_source(&s, all, size - (ends && all[size - 1] == '\n'), 0);
    if (ends) put(&s, "\n", 1);
    flush(&s);
    if (all != few) hlo_free(all);
    va_end(again);
    va_end(args);
}

hlo_status hlo_diag_print(const hlo_diag *diag, unsigned width, hlo_writer out) {
    static const char *const names[] = {"note: ", "warning: ", "error: "};
    stream s = {.out = out};
    if (diag->file && *diag->file) {
        put_source(&s, diag->file, strlen(diag->file), 0);
        char position[32];
        snprintf(position, sizeof position, ":%u:%u", diag->line, diag->column);
        if (diag->line) put(&s, position, strlen(position));
        put(&s, ": ", 2);
    }
    const char *severity = names[diag->severity];
    put(&s, severity, strlen(severity));
    put_source(&s, diag->message, strlen(diag->message), 0);
    put(&s, "\n", 1);
    if (diag->source) put_excerpt(&s, diag, width);
    flush(&s);
    return s.failed ? HLO_INVALID_INPUT : HLO_OK;
}
