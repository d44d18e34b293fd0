/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of HLO text and binary modules. A file may be gz-compressed, and a text may contain
 * several modules. */
#include <stdlib.h>
#include <string.h>

#include "grammar/gzip.h"
#include "grammar/proto/convert.h"
#include "grammar/text/parse.h"
#include "hlo/proto.h"
#include "hlo/text.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/file.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"

/* Lines before and after each module in a file that PyTorch/XLA writes. */
static const char graph_begin[] = "## BEGIN_GRAPH", graph_end[] = "## END_GRAPH",
                  graph_hash[] = "Graph Hash: ";

/* The parsers of modules within attributes, which are HLO text or binary. */
static const hlo_module_io module_io = {hlo_module_parse, hlo_module_parse_proto,
                                        hlo_module_print_proto};

static const char *shown_name(const char *path) {
    return strcmp(path, "-") == 0 ? "<stdin>" : path;
}

/* Rejects an encoding that the byte order mark at the beginning of a text states. */
static hlo_status check_encoding(const char *path, const hlo_diag_sink *sink,
                                 const hlo_content *text) {
    const bool utf16 = text->size > 1 && (memcmp(text->bytes, "\xff\xfe", 2) == 0 ||
                                          memcmp(text->bytes, "\xfe\xff", 2) == 0);
    const bool utf8 = text->size > 2 && memcmp(text->bytes, "\xef\xbb\xbf", 3) == 0;
    if (!utf16 && !utf8) return HLO_OK;
    return hlo_diag_refuse(sink, HLO_DIAG_SYNTAX, shown_name(path), 1, 1, "%s",
                           utf16 ? "the text is UTF-16: convert it to UTF-8 (iconv -f UTF-16)"
                                 : "the text starts with a UTF-8 byte order mark: remove it (sed "
                                   "'1s/^\\xef\\xbb\\xbf//')");
}

/* Reads the file at `path`. The caller always frees the text. */
static hlo_status load(const char *path, const hlo_diag_sink *sink, hlo_content *out) {
    hlo_status status = hlo_file_read(path, sink, out);
    if (status == HLO_OK && out->size > 2 && memcmp(out->bytes, "\x1f\x8b", 2) == 0) {
        const char *why;
        status = hlo_gzip_inflate(out, &why);
        if (status == HLO_INVALID_INPUT) return hlo_file_refuse(path, sink, why);
    }
    return status == HLO_OK ? check_encoding(path, sink, out) : status;
}

/* Finds the first line that starts with `word`; `end` if there is no such line. */
static const char *find_line(const char *from, const char *end, const char *word) {
    const size_t size = strlen(word);
    while (from < end) {
        if ((size_t)(end - from) >= size && memcmp(from, word, size) == 0) return from;
        const char *line_end = memchr(from, '\n', (size_t)(end - from));
        from = line_end ? line_end + 1 : end;
    }
    return end;
}

static const char *next_line(const char *from, const char *end) {
    const char *line_end = memchr(from, '\n', (size_t)(end - from));
    return line_end ? line_end + 1 : end;
}

/* True if the bytes contain more than white space and line comments. */
static bool says_something(const char *from, const char *end) {
    while (from < end) {
        if (end - from > 1 && from[0] == '/' && from[1] == '/') {
            from = memchr(from, '\n', (size_t)(end - from));
            if (!from) return false;
        } else if (!memchr(" \t\r\n", *from, 4)) {
            return true;
        } else {
            from++;
        }
    }
    return false;
}

typedef struct module_list {
    hlo_module **modules;
    size_t count, capacity;
} module_list;

static bool grow(module_list *list) {
    if (list->count < list->capacity) return true;
    size_t capacity = list->capacity ? list->capacity * 2 : 4;
    hlo_module **grown = hlo_realloc(list->modules, capacity * sizeof *grown);
    if (!grown) return false;
    list->modules = grown;
    list->capacity = capacity;
    return true;
}

/* True for a file that PyTorch/XLA wrote with XLA_SAVE_TENSORS_FMT=hlo. */
static bool is_graph_file(const hlo_content *text) {
    static const char header[] = "HloModule ";
    if (!text->size || *text->bytes != '[') return false;
    const char *end = text->bytes + text->size;
    const char *graph = next_line(find_line(text->bytes, end, graph_begin), end);
    return (size_t)(end - graph) >= sizeof header - 1 &&
           memcmp(graph, header, sizeof header - 1) == 0;
}

/* Parses every part, even after errors in another one. If there is a single part, its module takes
 * ownership of the content. */
static hlo_status parse_parts(hlo_content *text, const char *name, unsigned max_errors,
                              const hlo_diag_sink *sink, module_list *list) {
    const char *from = text->bytes, *end = from + text->size, *counted = from;
    const bool graphs = is_graph_file(text);
    hlo_status status = HLO_OK;
    uint32_t line = 1;
    unsigned errors = max_errors ? max_errors : HLO_MAX_ERRORS;
    while (errors) {
        if (graphs) from = next_line(find_line(from, end, graph_begin), end);
        const char *stop = find_line(from, end, graphs ? graph_end : "// -----");
        if (graphs) stop = find_line(from, stop, graph_hash);
        const bool last = stop == end;
        while (counted < from && (counted = memchr(counted, '\n', (size_t)(from - counted))))
            line++, counted++;
        if (says_something(from, stop) || (last && !list->count && status == HLO_OK)) {
            if (!grow(list)) return HLO_OUT_OF_MEMORY;
            hlo_content part = {.bytes = (char *)from, .size = (size_t)(stop - from)};
            hlo_status read = hlo_text_parse(part.size == text->size ? text : &part, name, line,
                                             &errors, sink, &list->modules[list->count]);
            if (read == HLO_OK) list->count++;
            if (read == HLO_OUT_OF_MEMORY) return read;
            if (read != HLO_OK) status = read;
        }
        if (last) break;
        from = next_line(stop, end);
    }
    return status;
}

hlo_status hlo_modules_parse_file(const char *path, const hlo_parse_options *options,
                                  const hlo_diag_sink *sink, hlo_module ***out_modules,
                                  size_t *out_count) {
    HLO_IN_C_LOCALE;
    hlo_content text = {.bytes = NULL};
    module_list list = {.modules = NULL};
    hlo_parse_options own = {.max_errors = 0};
    hlo_status status = hlo_options_take("hlo_parse_options", &own, sizeof own, options, sink);
    if (status == HLO_OK) status = load(path, sink, &text);
    bool binary = status == HLO_OK && hlo_proto_recognize(text.bytes, text.size);
    if (binary && !grow(&list)) status = HLO_OUT_OF_MEMORY;
    if (binary && status == HLO_OK) {
        status = hlo_proto_read(&text, shown_name(path), &module_io, sink, list.modules);
        list.count = status == HLO_OK;
    } else if (status == HLO_OK) {
        status = parse_parts(&text, shown_name(path), own.max_errors, sink, &list);
    }
    hlo_free(text.bytes);
    if (status != HLO_OK) {
        hlo_modules_free(list.modules, list.count);
        list = (module_list){.modules = NULL};
    }
    *out_modules = list.modules;
    *out_count = list.count;
    return status;
}

hlo_status hlo_module_parse_file(const char *path, const hlo_diag_sink *sink,
                                 hlo_module **out_module) {
    hlo_module **modules;
    size_t count;
    hlo_status status = hlo_modules_parse_file(path, NULL, sink, &modules, &count);
    *out_module = status == HLO_OK && count == 1 ? modules[0] : NULL;
    if (count > 1) {
        status = hlo_diag_refuse(sink, HLO_DIAG_SYNTAX, shown_name(path),
                                 (int)modules[1]->source_line, 1,
                                 "the file has %zu modules, expected one: copy one of them to a "
                                 "file of its own",
                                 count);
        hlo_modules_free(modules, count);
    } else {
        hlo_free(modules);
    }
    return status;
}

void hlo_modules_free(hlo_module **modules, size_t count) {
    for (size_t i = 0; i < count; i++) hlo_module_free(modules[i]);
    hlo_free(modules);
}

/* ------------------------------------------------------------------------------- binary modules */

hlo_status hlo_module_parse_proto(const void *bytes, size_t size, const char *name,
                                  const hlo_diag_sink *sink, hlo_module **out_module) {
    HLO_IN_C_LOCALE;
    hlo_content content = {.bytes = (char *)(uintptr_t)bytes, .size = size};
    return hlo_proto_read(&content, name, &module_io, sink, out_module);
}

hlo_status hlo_module_print_proto(const hlo_module *module, hlo_proto_format format,
                                  const hlo_diag_sink *sink, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    return hlo_writer_close(out, hlo_proto_write(module, format, &module_io, sink, out));
}
