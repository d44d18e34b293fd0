/* Actions that read on by themselves, where the parser has a single choice and so has not looked
 * ahead: definitions read in one go, operands that are names, plain attributes, known shapes. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/intern.h"

/* Skips `name: ` at *at. */
static bool skip_parameter_name(const char **at) {
    const char *from = *at;
    while (hlo_text_in_name(**at)) ++*at;
    const bool named = **at == ':' && *from > '9';
    for (*at += named; **at == ' ';) ++*at;
    return named;
}

/* Reads `shape` or `name: shape` and moves *at behind it; NULL: the shape is not in the cache. */
static const hlo_shape *known_item(hlo_text *text, bool named, const char **at) {
    while (**at == ' ') ++*at;
    return named && !skip_parameter_name(at) ? NULL : hlo_text_known_shape(text, at);
}

/* True if the comma before `at` is an attribute's. */
static bool begins_attr(const char *at) {
    while (*at == ' ' || hlo_text_in_name(*at)) at++;
    return *at == '=';
}

void hlo_text_known_shapes(hlo_text *text, bool named) {
    for (const char *at = hlo_text_scan_place(text);;) {
        const hlo_shape *shape = known_item(text, named, &at);
        if (!shape || *at++ != ',' || begins_attr(at)) return;
        if (!named) hlo_text_shape_push(text, shape);
        text->end = (uint32_t)(at - text->source);
        hlo_text_scan_from(text, at);
    }
}

/* Reads `(name: shape, name: shape) -> shape {`, moves *at to its `{` and returns the result's
 * shape; NULL: a shape is not in the cache. */
static const hlo_shape *known_signature(hlo_text *text, const char **at, hlo_span *out_result_at) {
    static const char arrow[] = ") -> ";
    if (**at != '(') return NULL;
    ++*at;
    while (**at != ')') {
        if (!known_item(text, true, at) || (**at != ')' && **at != ',')) return NULL;
        if (**at == ',' && *++*at == ')') return NULL;
    }
    if (strncmp(*at, arrow, sizeof arrow - 1) != 0) return NULL;
    const char *from = *at += sizeof arrow - 1;
    const hlo_shape *result = hlo_text_known_shape(text, at);
    if (!result || (*at)[0] != ' ' || (*at)[1] != '{') return NULL;
    *out_result_at = (hlo_span){(uint32_t)(from - text->source), (uint32_t)(*at - from)};
    ++*at;
    return result;
}

void hlo_text_known_signature(hlo_text *text) {
    const char *at = hlo_text_gap(hlo_text_scan_place(text));
    hlo_span result_at;
    const hlo_shape *result = known_signature(text, &at, &result_at);
    if (!result) return;
    hlo_text_body_result(text, result_at, result);
    hlo_text_scan_from(text, at);
}

void hlo_text_plain_attrs(hlo_text *text) {
    hlo_span name;
    hlo_attr attr;
    for (const char *at = hlo_text_scan_place(text);
         hlo_text_plain_attr(text, &at, &name, &attr);) {
        hlo_text_attr(text, name, attr);
        text->end = (uint32_t)(at - text->source);
        hlo_text_scan_from(text, at);
    }
}

static void take_operand(hlo_text *text, hlo_operand_name name) {
    const char *from = text->source + name.at.offset, *bare = from + (*from == '%');
    const size_t length = name.at.length - (size_t)(bare - from);
    const char *interned = hlo_intern_end(text->module, bare, length, name.begun);
    hlo_instr *instr = bare > from ? hlo_text_find_instr(text, interned) : NULL;
    if (instr)
        hlo_text_operand_instr(text, instr);
    else
        hlo_text_operand(text, name.at, NULL, interned);
}

void hlo_text_operand_names(hlo_text *text) {
    enum { AHEAD = 16 };
    hlo_operand_name names[AHEAD]; /* in a ring */
    size_t read = 0, taken = 0;
    const char *from = hlo_text_scan_place(text);
    bool last = false;
    while (!last && hlo_text_operand_name(text, from, &names[read % AHEAD], &from)) {
        last = *from++ == ')';
        if (++read - taken == AHEAD) take_operand(text, names[taken++ % AHEAD]);
    }
    /* A name before a comma without a name behind it is left to the grammar, with the comma. */
    const size_t whole = last || !read ? read : read - 1;
    while (taken < whole) take_operand(text, names[taken++ % AHEAD]);
    if (last)
        hlo_text_scan_from(text, from - 1);
    else if (read)
        hlo_text_scan_from(text, text->source + names[whole % AHEAD].at.offset);
}

static void make_attr(hlo_text *text, const hlo_line_attr *attr) {
    switch (attr->action) {
    case HLO_LINE_TAKE: hlo_text_attr(text, attr->name, attr->attr); break;
    case HLO_LINE_NEW:
        text->end = attr->value.offset + attr->value.length;
        hlo_text_new_attr(text, attr->name, attr->attr);
        break;
    case HLO_LINE_WORD:
        hlo_text_word_attr(text, attr->name, attr->attr.id, attr->value, attr->attr.u.str);
        break;
    case HLO_LINE_OPEN: hlo_text_nested_begin(text, attr->attr.id); break;
    case HLO_LINE_CLOSE:
        text->end = attr->value.offset + attr->value.length;
        hlo_text_nested_end(text, attr->name);
        break;
    }
}

void hlo_text_line(hlo_text *text, hlo_span at, const char *defined, bool root) {
    const hlo_definition *line = &text->line;
    hlo_text_define(text, at, defined, root);
    hlo_text_instr_begin(text, line->opcode_at, line->shape, line->opcode);
    if (line->literal) hlo_text_constant(text, line->literal);
    if (line->number >= 0) hlo_text_parameter(text, line->operands_at, line->number);
    const hlo_operand_name *names = (const hlo_operand_name *)line->operands.items;
    for (size_t i = 0, count = line->operands.used / sizeof *names; i < count; i++)
        take_operand(text, names[i]);
    text->comma.length = 1; /* each attribute has a comma in front of it */
    const hlo_line_attr *attrs = (const hlo_line_attr *)line->attrs.items;
    for (size_t i = 0, count = line->attrs.used / sizeof *attrs; i < count; i++)
        make_attr(text, &attrs[i]);
    text->end = line->end;
}

/* Ends the body at a `}` in front of a computation of known signature, and begins the body of the
 * latter: the parser is between instructions of a body before and after. */
static void begin_next_body(hlo_text *text) {
    static const char word[] = "ENTRY ";
    const char *close = hlo_text_scan_place(text);
    if (*close != '}' || text->bodies.used != sizeof(hlo_body)) return;
    const char *from = hlo_text_gap(close + 1);
    const bool entry = strncmp(from, word, sizeof word - 1) == 0;
    if (entry) from += sizeof word - 1;
    if (*from != '%' || !hlo_text_begins_name(from[1])) return;
    const char *end = from + 1;
    while (hlo_text_in_name(*end)) end++;
    const char *at = hlo_text_gap(end);
    hlo_span result_at;
    const hlo_shape *result = known_signature(text, &at, &result_at);
    if (!result) return;
    hlo_text_body_end(text, (hlo_span){(uint32_t)(close - text->source), 1});
    hlo_text_computation_done(text);
    text->depth--;
    hlo_text_body_begin(text, (hlo_span){(uint32_t)(from - text->source), (uint32_t)(end - from)},
                        hlo_intern(text->module, from + 1, (size_t)(end - from) - 1), entry);
    hlo_text_body_result(text, result_at, result);
    text->depth++;
    text->end = (uint32_t)(at + 1 - text->source);
    hlo_text_scan_from(text, hlo_text_gap(at + 1));
}

void hlo_text_lines(hlo_text *text, hlo_span at, const char *defined, bool root) {
    for (;;) {
        hlo_text_line(text, at, defined, root);
        hlo_text_instr_end(text);
        if (!text->errors) begin_next_body(text);
        const char *from = hlo_text_scan_place(text);
        root = *from == 'R';
        if (root) from += sizeof "ROOT " - 1;
        if (*from != '%' || !hlo_text_begins_name(from[1]) || text->errors) return;
        const hlo_read_name read = hlo_text_name(text, (uint32_t)(from - text->source));
        if (!read.whole || !text->line.ended) {
            text->ahead = read;
            return;
        }
        hlo_text_scan_from(text, read.behind);
        at = (hlo_span){read.offset, read.length};
        defined = read.name;
    }
}
