/* Definitions that are read in one go, as nearly all are: the shape was read before, the operands
 * are names. What else may stand there is left to the grammar, and so are the attributes from the
 * first one on that was not read before. */
#include "grammar/text.h"

typedef struct known_attr {
    hlo_span name;
    hlo_attr attr;
} known_attr;

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

static const char *read_known_attrs(hlo_text *text, const char *at) {
    for (;;) {
        const char *from = at + (*at == ','), *end;
        while (*from == ' ') from++;
        for (end = from; hlo_text_in_name(*end);) end++;
        if (*at != ',' || *end != '=') return at;
        known_attr known = {.name = {(uint32_t)(from - text->source), (uint32_t)(end - from)}};
        const uint32_t length = hlo_text_known(text, known.name, &known.attr);
        if (!length) return at;
        hlo_stack_push(text, &text->line.attrs, &known, sizeof known);
        at = from + length;
    }
}

/* `shape opcode(operands)`, and attributes. */
static bool read_line(hlo_text *text, const char *at) {
    static const char constant[] = "constant"; /* whose value is to be read */
    hlo_definition *line = &text->line;
    while (*at == ' ') at++;
    line->shape = hlo_text_known_shape(text, &at);
    if (!line->shape || *at != ' ') return false;
    while (*at == ' ') at++;
    const char *opcode = at;
    while (hlo_text_in_name(*at)) at++;
    const size_t length = (size_t)(at - opcode);
    if (*opcode < 'a' || *at++ != '(' ||
        (length == sizeof constant - 1 && memcmp(opcode, constant, length) == 0))
        return false;
    line->number = -1;
    line->operands.used = line->attrs.used = 0;
    const bool number = *at >= '0' && *at <= '9';
    const char *operands = at;
    if (number ? !hlo_text_small_int(&at, &line->number) || *at++ != ')'
               : !read_operands(text, &at))
        return false;
    line->operands_at =
        (hlo_span){(uint32_t)(operands - text->source), (uint32_t)(at - operands) - 1};
    line->opcode_at = (hlo_span){(uint32_t)(opcode - text->source), (uint32_t)length};
    line->opcode = hlo_intern(text->module, opcode, length);
    line->end = (uint32_t)(read_known_attrs(text, at) - text->source);
    return true;
}

/* The next name is asked for while the parser makes an instruction of this definition. */
static void expect_name(hlo_text *text, const char *from) {
    const char *end = from += *from == '%';
    while (hlo_text_in_name(*end)) end++;
    text->next_name = (hlo_span){(uint32_t)(from - text->source), (uint32_t)(end - from)};
    text->next_begun = hlo_intern_begin(text->module, from, text->next_name.length);
}

bool hlo_text_definition(hlo_text *text, hlo_span at, const char **out, const char **behind) {
    const char *from = text->source + at.offset;
    const bool expected =
        at.offset == text->next_name.offset && at.length == text->next_name.length;
    const uint32_t begun =
        expected ? text->next_begun : hlo_intern_begin(text->module, from, at.length);
    text->line.from = (uint32_t)(*behind - text->source);
    const bool whole = text->depth && !text->skipping && read_line(text, *behind);
    if (whole) {
        for (*behind = text->source + text->line.end; **behind == ' ' || **behind == '\n';)
            ++*behind;
        text->line.ended = **behind == '%';
        expect_name(text, *behind);
    }
    *out = hlo_intern_end(text->module, from, at.length, begun);
    return whole;
}

uint32_t hlo_text_name(hlo_text *text, uint32_t offset, const char **out, const char **out_behind,
                       bool *out_defined, bool *out_whole) {
    const char *from = text->source + offset, *end = from + 1;
    while (hlo_text_in_name(*end)) end++;
    const hlo_span bare = {offset + 1, (uint32_t)(end - from) - 1};
    const char *behind = hlo_text_gap(end);
    *out_defined = *behind == '=';
    *out_whole = false;
    if (*out_defined) {
        *out_behind = hlo_text_gap(behind + 1);
        *out_whole = hlo_text_definition(text, bare, out, out_behind);
    } else {
        *out_behind = end;
        *out = hlo_intern(text->module, from + 1, bare.length);
    }
    return bare.length + 1;
}

void hlo_text_line(hlo_text *text, hlo_span at, const char *defined, bool root) {
    const hlo_definition *line = &text->line;
    hlo_text_define(text, at, defined, root);
    hlo_text_instr_begin(text, line->opcode_at, line->shape, line->opcode);
    if (line->number >= 0) hlo_text_parameter(text, line->operands_at, line->number);
    const hlo_operand_name *names = (const hlo_operand_name *)line->operands.items;
    for (size_t i = 0, count = line->operands.used / sizeof *names; i < count; i++)
        hlo_text_take_operand(text, names[i]);
    text->comma.length = 1; /* of each */
    const known_attr *attrs = (const known_attr *)line->attrs.items;
    for (size_t i = 0, count = line->attrs.used / sizeof *attrs; i < count; i++)
        hlo_text_attr(text, attrs[i].name, attrs[i].attr);
    text->end = line->end;
}
