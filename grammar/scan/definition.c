/* Definitions that are read in one go, as nearly all are: the operands are names. Other operands
 * are left to the grammar, and so are the attributes from the first one on that is neither known by
 * its text nor plain, and every definition with an error in it. */
#include <string.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"

/* The state before an attempt to read a value: after a failure the grammar reads the value again,
 * and reports the error. */
typedef struct attempt {
    bool quiet;
    hlo_deferred_error *deferred;
} attempt;

static attempt begin_attempt(hlo_text *text) {
    const attempt before = {text->quiet, text->module->deferred};
    text->quiet = true;
    return before;
}

static bool end_attempt(hlo_text *text, attempt before, bool made) {
    text->quiet = before.quiet;
    if (!made) text->module->deferred = before.deferred;
    return made;
}

/* Reads the shape of an array and moves *at behind it; NULL: it is none. */
static const hlo_shape *read_array_shape(hlo_text *text, const char **at) {
    const char *from = *at, *dims = from;
    const hlo_shape *shape = hlo_text_known_shape(text, at);
    if (shape) return shape;
    while (hlo_text_in_name(*dims)) dims++;
    if (dims == from || *dims != '[') return NULL;
    const hlo_span head = {(uint32_t)(from - text->source), (uint32_t)(dims + 1 - from)};
    const attempt before = begin_attempt(text);
    const uint32_t length = hlo_text_shape(text, head, &shape);
    if (!end_attempt(text, before, shape)) return NULL;
    *at = from + length;
    return shape;
}

/* Reads a shape and moves *at behind it; NULL: it is none, or a tuple in a tuple. */
static const hlo_shape *read_shape(hlo_text *text, const char **at) {
    if (**at != '(') return read_array_shape(text, at);
    const size_t used = text->shapes.used;
    const hlo_shape *element;
    do {
        *at = hlo_text_gap(*at + 1);
        element = read_array_shape(text, at);
        if (element) hlo_text_shape_push(text, element);
        *at = hlo_text_gap(*at);
    } while (element && **at == ',');
    if (element && *(*at)++ == ')') return hlo_text_tuple(text, used);
    text->shapes.used = used;
    return NULL;
}

/* Reads the `value)` of a constant and moves *at behind it. */
static bool read_constant(hlo_text *text, const char **at) {
    hlo_definition *line = &text->line;
    const char *from = hlo_text_gap(*at);
    if (!hlo_shape_is_array(line->shape) || (line->shape->rank && *from != '{')) return false;
    const attempt before = begin_attempt(text);
    const uint32_t length =
        hlo_text_literal(text, (uint32_t)(from - text->source), line->shape, &line->literal);
    const char *behind = hlo_text_gap(from + length);
    *at = behind + 1;
    return end_attempt(text, before, line->literal && *behind == ')');
}

/* Reads `{1,2}` or `{[0:4]}` and moves *at behind it. */
static bool read_ints(hlo_text *text, const char **at, bool slices, hlo_line_attr *out) {
    const uint32_t offset = (uint32_t)(*at - text->source);
    out->value = (hlo_span){offset, **at == '{' ? hlo_text_braces(text, offset) : 0};
    if (!out->value.length || out->attr.id == HLO_ATTR_SLICE_SIZES) return false;
    const attempt before = begin_attempt(text);
    out->action = HLO_LINE_NEW;
    out->attr.u.ints = (slices ? hlo_text_slices : hlo_text_ints)(text, out->value);
    *at += out->value.length;
    return end_attempt(text, before, out->attr.u.ints);
}

static bool read_operands(hlo_text *text, const char **at) {
    const char *behind = hlo_text_gap(*at);
    while (*behind != ')') {
        hlo_operand_name name;
        if (!hlo_text_operand_name(text, *at, &name, &behind)) return false;
        hlo_stack_push(text, &text->line.operands, &name, sizeof name);
        *at = behind + 1;
    }
    *at = behind + 1;
    return true;
}

static void push_attr(hlo_text *text, hlo_line_attr attr) {
    hlo_stack_push(text, &text->line.attrs, &attr, sizeof attr);
}

/* Reads `{name="value" other=1}` and moves *at behind it. */
static bool read_braces(hlo_text *text, const char **at, hlo_line_attr *open) {
    const size_t used = text->line.attrs.used;
    const char *end = *at + 1;
    hlo_line_attr inner = {.action = HLO_LINE_TAKE};
    push_attr(text, *open);
    while (hlo_text_plain_attr(text, &end, &inner.name, &inner.attr)) push_attr(text, inner);
    if (*end != '}') {
        text->line.attrs.used = used;
        return false;
    }
    *at = end + 1;
    open->action = HLO_LINE_CLOSE;
    return true;
}

/* Reads the `%name` of a computation that is defined already. */
static bool read_called(hlo_text *text, const char **at, hlo_attr *out) {
    if (**at != '%') return false;
    const char *from = ++*at;
    while (hlo_text_in_name(**at)) ++*at;
    const char *name = hlo_intern(text->module, from, (size_t)(*at - from));
    out->u.comp = hlo_intern_cache(text->module, name)->comp;
    return out->u.comp;
}

static bool read_bool(const char **at, hlo_attr *out) {
    out->u.i = **at == 't';
    const char *word = out->u.i ? "true" : "false";
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) return false;
    *at += length;
    return true;
}

static bool read_word(hlo_text *text, const char **at, hlo_line_attr *out) {
    const char *from = *at;
    while (hlo_text_in_name(**at)) ++*at;
    out->action = HLO_LINE_WORD;
    out->value = (hlo_span){(uint32_t)(from - text->source), (uint32_t)(*at - from)};
    out->attr.u.str = hlo_intern(text->module, from, out->value.length);
    return out->value.length;
}

/* Reads a value in front of another attribute or the line's end. Returns the place behind it; NULL:
 * it cannot be read here. */
static const char *read_value(hlo_text *text, const char *at, hlo_line_attr *out) {
    const char *name = hlo_intern(text->module, text->source + out->name.offset, out->name.length);
    bool read = false;
    out->attr.id = hlo_text_find_attr(text, name);
    if (out->attr.id == HLO_ATTR_INVALID) return NULL;
    switch (hlo_attrs_info[out->attr.id].kind) {
    case HLO_KIND_INT: read = hlo_text_small_int(&at, &out->attr.u.i); break;
    case HLO_KIND_BOOL: read = read_bool(&at, &out->attr); break;
    case HLO_KIND_WORD: read = read_word(text, &at, out); break;
    case HLO_KIND_INTS: read = read_ints(text, &at, false, out); break;
    case HLO_KIND_SLICES: read = read_ints(text, &at, true, out); break;
    case HLO_KIND_COMPUTATION: read = read_called(text, &at, &out->attr); break;
    case HLO_KIND_ATTRS:
        out->action = HLO_LINE_OPEN;
        read = out->attr.id == HLO_ATTR_METADATA && *at == '{' && read_braces(text, &at, out);
        break;
    default: break;
    }
    return read && (*at == ',' || *at == '\n') ? at : NULL;
}

static const char *read_attrs(hlo_text *text, const char *at) {
    while (*at == ',') {
        const size_t used = text->line.attrs.used;
        const char *from = at + 1, *end;
        while (*from == ' ') from++;
        for (end = from; hlo_text_in_name(*end);) end++;
        if (*end != '=') return at;
        hlo_line_attr attr = {.name = {(uint32_t)(from - text->source), (uint32_t)(end - from)}};
        const uint32_t known = end[1] == '{' ? hlo_attr_cache_find(text, attr.name, &attr.attr) : 0;
        const char *behind = known ? from + known : read_value(text, end + 1, &attr);
        if (!behind) {
            text->line.attrs.used = used;
            return at;
        }
        if (attr.action == HLO_LINE_CLOSE)
            attr.value = (hlo_span){attr.name.offset, (uint32_t)(behind - from)};
        push_attr(text, attr);
        at = behind;
    }
    return at;
}

/* Reads `shape opcode(operands)` and attributes. */
static bool read_line(hlo_text *text, const char *at) {
    static const char constant[] = "constant";
    hlo_definition *line = &text->line;
    while (*at == ' ') at++;
    line->shape = read_shape(text, &at);
    if (!line->shape || *at != ' ') return false;
    while (*at == ' ') at++;
    const char *opcode = at;
    while (hlo_text_in_name(*at)) at++;
    const size_t length = (size_t)(at - opcode);
    if (*opcode < 'a' || *at++ != '(') return false;
    line->number = -1;
    line->literal = NULL;
    line->operands.used = line->attrs.used = 0;
    const bool number = *at >= '0' && *at <= '9';
    const char *operands = at;
    if (length == sizeof constant - 1 && memcmp(opcode, constant, length) == 0
            ? !read_constant(text, &at)
        : number ? !hlo_text_small_int(&at, &line->number) || *at++ != ')'
                 : !read_operands(text, &at))
        return false;
    line->operands_at =
        (hlo_span){(uint32_t)(operands - text->source), (uint32_t)(at - operands) - 1};
    line->opcode_at = (hlo_span){(uint32_t)(opcode - text->source), (uint32_t)length};
    line->opcode = hlo_text_opcode(text, opcode, length);
    line->end = (uint32_t)(read_attrs(text, at) - text->source);
    return true;
}

/* Prefetches the next name while the parser makes the instruction of this definition. */
static void expect_name(hlo_text *text, const char *from) {
    if (*from == 'R') from += sizeof "ROOT " - 1;
    const char *end = from += *from == '%';
    while (hlo_text_in_name(*end)) end++;
    text->next_name = (hlo_span){(uint32_t)(from - text->source), (uint32_t)(end - from)};
    text->next_begun = hlo_intern_begin(text->module, from, text->next_name.length);
}

/* True if an instruction, or the end of the body, is at `at`. */
static bool begins_other(const char *at) {
    return *at == '%' || *at == '}' || strncmp(at, "ROOT %", 6) == 0;
}

bool hlo_text_definition(hlo_text *text, hlo_span at, const char **out, const char **behind) {
    const char *from = text->source + at.offset;
    const bool expected =
        at.offset == text->next_name.offset && at.length == text->next_name.length;
    const uint32_t begun =
        expected ? text->next_begun : hlo_intern_begin(text->module, from, at.length);
    text->line.from = (uint32_t)(*behind - text->source);
    const bool in_body = text->depth && text->bodies.used && !hlo_text_body(text)->bare;
    const bool whole = in_body && !text->skipping && read_line(text, *behind);
    if (whole) {
        for (*behind = text->source + text->line.end; **behind == ' ' || **behind == '\n';)
            ++*behind;
        text->line.ended = begins_other(*behind);
        expect_name(text, *behind);
    }
    *out = hlo_intern_end(text->module, from, at.length, begun);
    return whole;
}

hlo_read_name hlo_text_name(hlo_text *text, uint32_t offset) {
    hlo_read_name read = text->ahead;
    text->ahead.length = 0;
    if (read.length && read.offset == offset) return read;
    const char *from = text->source + offset, *end = from + 1;
    if (text->next_name.offset == offset + 1) end += text->next_name.length;
    while (hlo_text_in_name(*end)) end++;
    const hlo_span bare = {offset + 1, (uint32_t)(end - from) - 1};
    const char *behind = hlo_text_gap(end);
    read = (hlo_read_name){
        .offset = offset, .length = bare.length + 1, .behind = end, .defined = *behind == '='};
    if (read.defined) {
        read.behind = hlo_text_gap(behind + 1);
        read.whole = hlo_text_definition(text, bare, &read.name, &read.behind);
    } else {
        read.name = hlo_intern(text->module, from + 1, bare.length);
    }
    return read;
}

hlo_attr_id hlo_text_find_attr(hlo_text *text, const char *interned) {
    hlo_string_cache *cache = hlo_intern_cache(text->module, interned);
    if (!cache->attr)
        cache->attr = (uint8_t)(hlo_attr_find(interned, hlo_intern_length(interned)) + 1);
    hlo_attr_id id = (hlo_attr_id)(cache->attr - 1);
    if (id != HLO_ATTR_SLICE_SIZES || !text->frames.used) return id;
    const hlo_frame *frame = hlo_text_frame(text);
    bool lists = frame->owner == HLO_OWNER_INSTR && frame->op != HLO_OP_INVALID &&
                 hlo_op_has(frame->op, HLO_ATTR_SLICE_SIZE_LISTS);
    return lists ? HLO_ATTR_SLICE_SIZE_LISTS : id;
}

/* Reads a `"text"` without escapes and line ends. */
static bool plain_string(hlo_text *text, const char **at, hlo_attr *out) {
    const char *from = *at + 1;
    const char *quote = memchr(from, '"', (size_t)(text->source + text->size - from));
    const size_t length = quote ? (size_t)(quote - from) : 0;
    if (!quote || memchr(from, '\\', length) || memchr(from, '\n', length)) return false;
    out->u.str = hlo_intern(text->module, from, length);
    *at = quote + 1;
    return true;
}

bool hlo_text_plain_attr(hlo_text *text, const char **at, hlo_span *out_name, hlo_attr *out) {
    const char *from = *at + strspn(*at, " "), *end = from;
    while (hlo_text_in_name(*end)) end++;
    if (*end != '=') return false;
    const size_t length = (size_t)(end++ - from);
    *out_name = (hlo_span){(uint32_t)(from - text->source), (uint32_t)length};
    *out = (hlo_attr){.id = hlo_text_find_attr(text, hlo_intern(text->module, from, length))};
    if (out->id == HLO_ATTR_INVALID) return false;
    const hlo_attr_kind kind = hlo_attrs_info[out->id].kind;
    const bool plain = kind == HLO_KIND_INT ? hlo_text_small_int(&end, &out->u.i)
                                            : kind == HLO_KIND_STRING && *end == '"' &&
                                                  plain_string(text, &end, out);
    if (!plain || (*end != ' ' && *end != '}')) return false;
    *at = end;
    return true;
}

bool hlo_text_operand_name(hlo_text *text, const char *at, hlo_operand_name *out,
                           const char **out_behind) {
    const char *from = hlo_text_gap(at), *bare = from + (*from == '%'), *end = bare;
    if (!hlo_text_begins_name(*end)) return false;
    while (hlo_text_in_name(*end)) end++;
    out->at = (hlo_span){(uint32_t)(from - text->source), (uint32_t)(end - from)};
    out->begun = hlo_intern_begin(text->module, bare, (size_t)(end - bare));
    *out_behind = hlo_text_gap(end);
    return **out_behind == ',' || **out_behind == ')';
}
