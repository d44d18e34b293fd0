/* SPDX-License-Identifier: Apache-2.0 */
/* Converts messages to HLO text and HLO text to messages, by the patterns of text_pattern.def. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "grammar/attr/notation.h"
#include "grammar/proto/proto.h"
#include "hlo/proto.h"
#include "hlo/text.h"
#include "ir/memory.h"
#include "ir/text/writer.h"

/* Maximum nesting of the tuples of an origin, and of recovery tables. Each recovery table escapes
 * the quotes of the tables inside it. */
enum { DEEPEST = 100, DEEPEST_MODULE = 4 };

static const struct notation {
    const hlo_pb_type *message;
    const char *pattern;
} notations[] = {
#define HLO_NOTATION(message, pattern) {&Xla__##message##__type, pattern},
#include "grammar/proto/text_pattern.def"
#undef HLO_NOTATION
};
enum { NOTATIONS = sizeof notations / sizeof *notations };

/* ------------------------------------------------------------------------------------- patterns */

/* One piece of a pattern: a literal character, or a field. */
typedef struct piece {
    char kind;  /* `$`, `@`, `?`, `!`, `~`; 0: `c` itself; -1: the end */
    char style; /* style of a `$`: `^`, `*`, `&`, `#`, or 0 */
    char c;
    const hlo_pb_field *field;
    const char *body; /* of a `@`: its X; of a `$`: the separator */
    size_t body_size;
    const char *prefix;
    size_t prefix_size;
    long number; /* the number of a `!` */
} piece;

static const char *take_between(const char *at, char mark, const char **out, size_t *out_size) {
    if (*at != mark) return at;
    *out = ++at;
    *out_size = strcspn(at, (const char[]){mark, '\0'});
    return at + *out_size + 1;
}

/* Parses the piece at `at` of a pattern for messages of `type`. Returns the position after the
 * piece. */
static const char *next_piece(const hlo_pb_type *type, const char *at, const char *end,
                              piece *out) {
    *out = (piece){.kind = -1, .body = ",", .body_size = 1};
    if (at >= end) return at;
    out->kind = strchr("$@?!~", *at) ? *at++ : 0;
    if (out->kind == '~') return at;
    if (!out->kind) {
        at += *at == '\\';
        out->c = *at;
        return at + 1;
    }
    if (out->kind == '$' && strchr("^*&#", *at)) out->style = *at++;
    const size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789_");
    out->field = hlo_field_find(type, at, size);
    at += size;
    if (out->kind == '!') out->number = strtol(at + 1, (char **)(uintptr_t)&at, 10);
    if (out->kind == '!' || out->kind == '?') return at + 1;
    if (out->kind == '@') return take_between(at, '`', &out->body, &out->body_size);
    at = take_between(at, '|', &out->body, &out->body_size);
    return take_between(at, '%', &out->prefix, &out->prefix_size);
}

/* ------------------------------------------------------------------------------------- printing */

typedef struct printer {
    hlo_proto *p;
    hlo_bytes *out;
    bool space; /* a `~` is pending: it prints a space unless the next byte is a brace */
} printer;

static void print_message(printer *w, const hlo_pb *message);

static void put(printer *w, const char *bytes, size_t size) {
    if (w->space && size && *bytes != '}') hlo_bytes_put(w->out, " ", 1);
    w->space = w->space && !size;
    hlo_bytes_put(w->out, bytes, size);
}

/* Prints the values of a nested tuple, each with its path: `({"a" {0}}, ({}, {"b"}))`. */
static void print_origin(printer *w, Xla__OriginalValueElementProto *const *elements, size_t count,
                         size_t level) {
    if (!count && !level) {
        put(w, "()", 2);
        return;
    }
    if (!count || level > DEEPEST) hlo_proto_fail(w->p, "the origin does not form a tuple");
    if (count == 1 && elements[0]->n_shape_index <= level) {
        if (elements[0]->original_array)
            print_message(w, &elements[0]->original_array->base);
        else
            put(w, "{}", 2);
        return;
    }
    put(w, "(", 1);
    for (size_t from = 0, to; from < count; from = to) {
        for (size_t i = from; i < count; i++)
            if (elements[i]->n_shape_index <= level)
                hlo_proto_fail(w->p, "the origin does not form a tuple");
        for (to = from + 1; to < count; to++)
            if (elements[to]->shape_index[level] != elements[from]->shape_index[level]) break;
        if (from) put(w, ", ", 2);
        print_origin(w, elements + from, to - from, level + 1);
    }
    put(w, ")", 1);
}

static unsigned depth_of(const Xla__HloModuleProto *module) {
    const Xla__OriginalValueRecoveryTableProto *table = module->original_value_recovery_table;
    unsigned deepest = 0;
    for (size_t i = 0; table && i < table->n_entries; i++) {
        const Xla__HloModuleProto *inner = table->entries[i]->recovery_module;
        const unsigned depth = inner ? 1 + depth_of(inner) : 0;
        if (depth > deepest) deepest = depth;
    }
    return deepest;
}

static void print_value(printer *w, const piece *of, const void *place) {
    put(w, "", 0);
    switch (of->field->type) {
    case HLO_PB_MESSAGE:
        if (*(hlo_pb *const *)place)
            print_message(w, *(hlo_pb *const *)place);
        else
            put(w, "{}", 2);
        break;
    case HLO_PB_STRING:
    case HLO_PB_BYTES: {
        const hlo_pb_bytes *bytes = place;
        const bool is_bytes = of->field->type == HLO_PB_BYTES;
        const char *text = !is_bytes    ? *(const char *const *)place
                           : bytes->len ? (const char *)bytes->data
                                        : "";
        const size_t size = is_bytes ? bytes->len : strlen(text);
        const bool braced = of->style == '&' && hlo_is_braced(text, size);
        if (of->style == '*' || braced)
            put(w, text, size);
        else
            hlo_bytes_quote(w->out, text, size);
        break;
    }
    case HLO_PB_DOUBLE: hlo_bytes_double(w->out, *(const double *)place, false); break;
    case HLO_PB_ENUM: {
        const int64_t number = hlo_field_load(of->field, place);
        const hlo_pb_value *value = hlo_enum_value(of->field->descriptor, number);
        if (!value || of->style == '#') {
            hlo_bytes_format(w->out, "%lld", (long long)number);
            break;
        }
        const char *name = value->name;
        if (of->prefix && strncmp(name, of->prefix, of->prefix_size) == 0) name += of->prefix_size;
        for (; *name; name++) {
            const bool lower = *name >= 'A' && *name <= 'Z' && of->style != '^';
            hlo_bytes_put(w->out, &(char){(char)(lower ? *name - 'A' + 'a' : *name)}, 1);
        }
        break;
    }
    case HLO_PB_BOOL:
        hlo_bytes_text(w->out, hlo_field_load(of->field, place) ? "true" : "false");
        break;
    default: {
        const int64_t number = hlo_field_load(of->field, place);
        hlo_bytes_format(w->out, number == INT64_MIN ? "*" : "%lld", (long long)number);
    }
    }
}

/* Prints the fields of a message. Returns false if a field that the pattern requires is absent or
 * has a different number. */
static bool print_pattern(printer *w, const hlo_pb *message, const char *at, const char *end) {
    piece of;
    while (at = next_piece(message->descriptor, at, end, &of), of.kind != -1) {
        const size_t count = of.field ? hlo_field_count(message, of.field) : 0;
        const bool many = of.field && of.field->label == HLO_PB_REPEATED;
        if (of.kind == '?' && !count) return false;
        if (of.kind == '!' &&
            hlo_field_load(of.field, hlo_field_at(message, of.field)) != of.number)
            return false;
        for (size_t i = 0; of.kind == '$' && i < (many ? count : 1); i++) {
            if (i) put(w, of.body, of.body_size);
            print_value(w, &of, hlo_field_element(message, of.field, i));
        }
        w->space |= of.kind == '~';
        if (of.kind == '@' && count) print_pattern(w, message, of.body, of.body + of.body_size);
        if (!of.kind) put(w, &of.c, 1);
    }
    return true;
}

static void print_message(printer *w, const hlo_pb *message) {
    if (message->descriptor == &Xla__HloModuleProto__type) {
        /* Print a module of origin_recovery_table as quoted text. */
        hlo_proto *p = w->p;
        if (depth_of((const Xla__HloModuleProto *)message) > DEEPEST_MODULE)
            hlo_proto_fail(p, "recovery modules are nested too deeply");
        const hlo_wire bytes = hlo_message_pack(p->scratch, message);
        size_t size = (size_t)(bytes.end - bytes.at);
        hlo_module *module;
        hlo_status status = p->io->parse_proto(bytes.at, size, p->module->file, p->sink, &module);
        if (status != HLO_OK) hlo_proto_fail(p, "failed to read a recovery module");
        char *text;
        status = hlo_module_to_text(module, NULL, &text, &size);
        hlo_module_free(module);
        if (status != HLO_OK) hlo_proto_fail(p, "failed to print a recovery module");
        p->owned = text;
        hlo_notation_put_module(w->out, text);
        p->owned = NULL;
        hlo_free(text);
    } else if (message->descriptor == &Xla__OriginalValueProto__type) {
        const Xla__OriginalValueProto *origin = (const Xla__OriginalValueProto *)message;
        put(w, "{", 1);
        if (origin->is_synthetic_call)
            put(w, "[synthetic_call]", 16);
        else
            print_origin(w, origin->elements, origin->n_elements, 0);
        put(w, "}", 1);
    } else {
        for (size_t i = 0; i < NOTATIONS; i++) {
            const char *pattern = notations[i].pattern;
            if (notations[i].message == message->descriptor &&
                print_pattern(w, message, pattern, pattern + strlen(pattern)))
                return;
        }
        hlo_proto_fail(w->p, "this %s has no form in HLO text", message->descriptor->name);
    }
}

void hlo_text_pattern_print(hlo_proto *p, hlo_bytes *out, const hlo_pb *message,
                            const char *pattern) {
    print_pattern(&(printer){.p = p, .out = out}, message, pattern, pattern + strlen(pattern));
}

/* -------------------------------------------------------------------------------------- reading */

/* A text being read. Errors in its tokens are not reported, because the caller then tries the next
 * pattern. */
typedef struct scanner {
    hlo_notation f;
    hlo_proto *p;
} scanner;

static hlo_pb *read_message(scanner *r, const hlo_pb_type *type);

static bool read_string(scanner *r, char style, const char **out, size_t *out_size) {
    size_t size;
    const bool braced = style == '&' && hlo_notation_next(&r->f, '{');
    if (style != '*' && !braced) return hlo_notation_string(&r->f, out, out_size);
    hlo_notation_skip(&r->f);
    size = braced ? hlo_braced_size(r->f.at, strlen(r->f.at)) : strcspn(r->f.at, "=,{}[]() \t\r\n");
    *out = hlo_arena_format(r->p->scratch, "%.*s", (int)size, r->f.at);
    r->f.at += size;
    *out_size = size;
    return size > 0;
}

static bool read_int(scanner *r, int64_t *out) {
    *out = INT64_MIN;
    return hlo_notation_take(&r->f, "*") || hlo_notation_int(&r->f, out);
}

static bool read_word(scanner *r, const piece *of, void *place) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const hlo_pb_enum *words = of->field->descriptor;
    int64_t number;
    if (hlo_notation_int(&r->f, &number)) return hlo_field_store(of->field, place, number);
    const size_t size = strspn(r->f.at, letters);
    for (unsigned i = 0; i < words->n_values && size; i++) {
        const char *name = words->values[i].name;
        if (of->prefix && strncmp(name, of->prefix, of->prefix_size) == 0) name += of->prefix_size;
        if (strlen(name) != size || strncasecmp(name, r->f.at, size) != 0) continue;
        r->f.at += size;
        return hlo_field_store(of->field, place, words->values[i].value);
    }
    return false;
}

/* Reads a leaf, or a tuple of leaves, at `path`. */
static bool read_origin(scanner *r, Xla__OriginalValueProto *origin, int64_t *path, size_t level) {
    if (level >= DEEPEST) hlo_proto_fail(r->p, "nested too deeply");
    if (hlo_notation_take(&r->f, "(")) {
        path[level] = 0;
        do {
            if (!read_origin(r, origin, path, level + 1)) return false;
            path[level]++;
        } while (hlo_notation_take(&r->f, ","));
        return hlo_notation_take(&r->f, ")");
    }
    Xla__OriginalValueElementProto *element =
        hlo_message_add(r->p->scratch, &origin->base, "elements");
    element->n_shape_index = level;
    element->shape_index = hlo_arena_copy(r->p->scratch, path, level * sizeof *path);
    if (hlo_notation_take(&r->f, "{}")) return true;
    element->original_array =
        (Xla__OriginalArrayProto *)read_message(r, &Xla__OriginalArrayProto__type);
    return element->original_array != NULL;
}

/* Reads a module of origin_recovery_table from quoted text. Returns NULL if the text is malformed.
 */
static hlo_pb *read_module(scanner *r) {
    hlo_proto *p = r->p;
    const char *text;
    size_t length;
    if (!read_string(r, 0, &text, &length)) return NULL;
    hlo_module *module;
    hlo_status status = p->io->parse_text(text, length, p->module->file, NULL, &module);
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(p->scratch);
    if (status != HLO_OK) return NULL;
    char *bytes = NULL;
    size_t size = 0;
    FILE *out = hlo_text_stream(&bytes, &size);
    status = HLO_OUT_OF_MEMORY;
    if (out) status = p->io->print_proto(module, HLO_PROTO_BINARY, p->sink, hlo_file_writer(out));
    if (out && (fclose(out) != 0 || !bytes)) status = HLO_OUT_OF_MEMORY;
    hlo_module_free(module);
    p->owned = bytes;
    if (status == HLO_OUT_OF_MEMORY) hlo_arena_exhausted(p->scratch);
    hlo_pb *message = status == HLO_OK
                          ? hlo_message_unpack(p->scratch, &Xla__HloModuleProto__type, bytes, size)
                          : NULL;
    p->owned = NULL;
    hlo_free(bytes);
    return message;
}

/* Memory for one element of any type. */
typedef union any_value {
    int64_t i;
    int32_t word;
    double f;
    const char *str;
    hlo_pb_bytes bytes;
    hlo_pb *message;
} any_value;

static bool read_value(scanner *r, const piece *of, any_value *out, size_t *out_size) {
    int64_t number;
    const char *text;
    size_t size;
    *out_size = sizeof(int64_t);
    switch (of->field->type) {
    case HLO_PB_MESSAGE: return (out->message = read_message(r, of->field->descriptor)) != NULL;
    case HLO_PB_STRING:
        return read_string(r, of->style, &out->str, &size) && strlen(out->str) == size;
    case HLO_PB_BYTES:
        if (!read_string(r, of->style, &text, &size)) return false;
        out->bytes = (hlo_pb_bytes){size, (uint8_t *)(uintptr_t)text};
        *out_size = sizeof out->bytes;
        return true;
    case HLO_PB_DOUBLE: return hlo_notation_number(&r->f, &out->f);
    case HLO_PB_INT64: return read_int(r, &out->i);
    default:
        *out_size = sizeof out->word;
        if (of->field->type == HLO_PB_ENUM) return read_word(r, of, &out->word);
        if (of->field->type == HLO_PB_BOOL) {
            out->word = hlo_notation_take(&r->f, "true");
            return out->word || hlo_notation_take(&r->f, "false");
        }
        return read_int(r, &number) && hlo_field_store(of->field, &out->word, number);
    }
}

static bool read_field(scanner *r, const piece *of, hlo_pb *message) {
    const bool many = of->field->label == HLO_PB_REPEATED;
    for (size_t i = 0;; i++) {
        const char *from = r->f.at;
        any_value value;
        size_t size;
        bool read = true;
        for (size_t k = 0; i && read && k < of->body_size; k++)
            if (of->body[k] != ' ')
                read = hlo_notation_take(&r->f, (const char[]){of->body[k], '\0'});
        if (!read || !read_value(r, of, &value, &size)) {
            r->f.at = from;
            return many;
        }
        memcpy(hlo_field_add(r->p->scratch, message, of->field), &value, size);
        if (!many) return true;
    }
}

static bool read_pattern(scanner *r, hlo_pb *message, const char *at, const char *end) {
    piece of;
    while (at = next_piece(message->descriptor, at, end, &of), of.kind != -1) {
        const char *from = r->f.at;
        if (of.kind == '$' && !read_field(r, &of, message)) return false;
        /* This part of the text is optional: if it does not match, the field is absent. */
        if (of.kind == '@' &&
            (!read_pattern(r, message, of.body, of.body + of.body_size) ||
             (of.field->label == HLO_PB_REPEATED && !hlo_field_count(message, of.field))))
            r->f.at = from;
        if (of.kind == '!') hlo_field_store(of.field, hlo_field_at(message, of.field), of.number);
        if (!of.kind && !strchr(" \n", of.c) &&
            !hlo_notation_take(&r->f, (const char[]){of.c, '\0'}))
            return false;
    }
    return true;
}

static hlo_pb *read_message(scanner *r, const hlo_pb_type *type) {
    const char *from = r->f.at;
    hlo_pb *message = hlo_message_new(r->p->scratch, type);
    if (type == &Xla__HloModuleProto__type) return read_module(r);
    if (type == &Xla__OriginalValueProto__type) {
        Xla__OriginalValueProto *origin = (Xla__OriginalValueProto *)message;
        int64_t path[DEEPEST];
        if (!hlo_notation_take(&r->f, "{")) return NULL;
        origin->is_synthetic_call = hlo_notation_take(&r->f, "[synthetic_call]");
        const bool read = origin->is_synthetic_call || hlo_notation_take(&r->f, "()") ||
                          read_origin(r, origin, path, 0);
        return read && hlo_notation_take(&r->f, "}") ? message : NULL;
    }
    for (size_t i = 0; i < NOTATIONS; i++) {
        const char *pattern = notations[i].pattern;
        if (notations[i].message != type) continue;
        if (read_pattern(r, message, pattern, pattern + strlen(pattern))) return message;
        r->f.at = from;
        message = hlo_message_new(r->p->scratch, type);
    }
    return NULL;
}

bool hlo_text_pattern_read(hlo_proto *p, const char *text, hlo_pb *message, const char *pattern) {
    scanner r = {.p = p,
                 .f = {.module = p->module,
                       .scratch = p->scratch,
                       .from = text,
                       .at = text,
                       .end = text + strlen(text)}};
    if (!read_pattern(&r, message, pattern, pattern + strlen(pattern))) return false;
    hlo_notation_skip(&r.f);
    return r.f.at == r.f.end;
}
