/* Diagnostics: from a byte offset to line, column, source line and caret. */
#include "hlo/diag.h"

#include <stdarg.h>
#include <string.h>

#include "ir/ir.h"

enum { MESSAGE_SIZE = 1024 };

static bool ends_line(const char *at, const char *end) {
    return *at == '\n' || (*at == '\r' && (at + 1 == end || at[1] != '\n'));
}

static void locate(const hlo_module *module, size_t offset, size_t length, hlo_diag *diag) {
    const char *source = module->source, *end = source + module->source_size;
    if (offset > module->source_size) offset = module->source_size;
    hlo_place *place = module->reported;
    if (offset < place->offset) *place = (hlo_place){.line = module->source_line};
    for (const char *at = source + place->offset; at < source + offset; at++)
        if (ends_line(at, end)) *place = (hlo_place){(size_t)(at + 1 - source), place->line + 1};
    const char *start = source + place->offset, *stop = source + offset;
    while (stop < end && *stop != '\n' && *stop != '\r') stop++;
    diag->line = place->line;
    diag->column = (uint32_t)(offset - place->offset + 1);
    diag->source = start;
    diag->source_size = (size_t)(stop - start);
    diag->length =
        offset + length < (size_t)(stop - source) ? length : (size_t)(stop - source) - offset;
}

void hlo_diag_vemit(const hlo_module *module, const hlo_diag_sink *sink, hlo_severity severity,
                    size_t offset, size_t length, const char *format, va_list args) {
    if (!sink) return;
    char message[MESSAGE_SIZE];
    vsnprintf(message, sizeof message, format, args);
    hlo_diag diag = {.severity = severity, .message = message, .file = module->file};
    if (*module->file && module->source) locate(module, offset, length, &diag);
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

/* Every byte takes one column, so that the caret stands under it: what is not printable ASCII is
 * shown as `?`, a tab as a space. */
static void put_source(FILE *out, const char *text, size_t size) {
    char shown[256];
    for (size_t i = 0, used; i < size; i += used) {
        for (used = 0; used < sizeof shown && i + used < size; used++) {
            const char c = text[i + used];
            shown[used] = c == '\t' ? ' ' : c < 0x20 || c > 0x7e ? '?' : c;
        }
        fwrite(shown, 1, used, out);
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
