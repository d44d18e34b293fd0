/* Diagnostics: from a byte offset to line, column, source line and caret. */
#include "hlo/diag.h"

#include <stdarg.h>
#include <string.h>

#include "ir/ir.h"

enum { MESSAGE_SIZE = 1024 };

static void locate(const hlo_module *module, size_t offset, size_t length, hlo_diag *diag) {
    const char *source = module->source;
    if (offset > module->source_size) offset = module->source_size;
    size_t start = offset;
    while (start > 0 && source[start - 1] != '\n' && source[start - 1] != '\r') start--;
    size_t end = offset;
    while (end < module->source_size && source[end] != '\n' && source[end] != '\r') end++;
    uint32_t line = 1;
    for (size_t i = 0; i < start; i++)
        line += source[i] == '\n' || (source[i] == '\r' && source[i + 1] != '\n');
    diag->line = line;
    diag->column = (uint32_t)(offset - start + 1);
    diag->source = source + start;
    diag->source_size = end - start;
    diag->length = length < end - offset ? length : end - offset;
}

void hlo_diag_vemit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                    size_t offset, size_t length, const char *format, va_list args) {
    if (!sink) return;
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof message, format, args);
    hlo_diag diag = {.severity = severity, .message = message, .file = module->file};
    if (module->source_size) locate(module, offset, length, &diag);
    sink->emit(sink->user, &diag);
}

void hlo_diag_emit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                   size_t offset, size_t length, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(module, sink, severity, offset, length, format, args);
    va_end(args);
}

static const char *severity_name(hlo_severity severity) {
    return severity == HLO_ERROR ? "error" : severity == HLO_WARNING ? "warning" : "note";
}

/* Control characters and bytes that are no UTF-8 text are shown as `?`, tabs as one space. */
static void put_source(FILE *out, const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        fputc(c == '\t' ? ' ' : c < 0x20 || c == 0x7f ? '?' : c, out);
    }
}

void hlo_diag_print(FILE *out, const hlo_diag *diag, unsigned width) {
    if (diag->file && *diag->file) {
        fprintf(out, "%s:", diag->file);
        if (diag->line) fprintf(out, "%u:%u:", diag->line, diag->column);
        fputc(' ', out);
    }
    fprintf(out, "%s: %s\n", severity_name(diag->severity), diag->message);
    if (!diag->source) return;

    static const char dots[] = "...";
    size_t caret = diag->column - 1, from = 0, to = diag->source_size;
    if (width > 20 && to > width) {
        size_t room = width - 2 * (sizeof dots - 1);
        from = caret > room / 2 ? caret - room / 2 : 0;
        if (from + room < to)
            to = from + room;
        else
            from = to - room;
    }
    size_t shown = caret - from;
    if (from) fputs(dots, out), shown += sizeof dots - 1;
    put_source(out, diag->source + from, to - from);
    if (to < diag->source_size) fputs(dots, out);
    fputc('\n', out);
    for (size_t i = 0; i < shown; i++) fputc(' ', out);
    fputc('^', out);
    for (size_t i = 1; i < diag->length && caret + i < to; i++) fputc('~', out);
    fputc('\n', out);
}
