/* SPDX-License-Identifier: Apache-2.0 */
/* Tests binary modules with errors, and with fields that the library does not use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/memory.h"
#include "hlo/proto.h"
#include "hlo/text.h"

/* ----------------------------------------------------------------------------- writing messages */

typedef struct bytes {
    uint8_t v[1 << 16];
    size_t size;
} bytes;

static void put_varint(bytes *to, uint64_t value) {
    for (; value > 127; value >>= 7) to->v[to->size++] = (uint8_t)(value | 128);
    to->v[to->size++] = (uint8_t)value;
}

/* Writes the bytes 1, 2, 3 ... */
static void put_fixed(bytes *to, uint8_t count) {
    for (uint8_t i = 1; i <= count; i++) to->v[to->size++] = i;
}

static void put_number(bytes *to, unsigned field, int64_t value) {
    put_varint(to, field << 3);
    put_varint(to, (uint64_t)value);
}

static void put_bytes(bytes *to, unsigned field, const void *data, size_t size) {
    put_varint(to, field << 3 | 2);
    put_varint(to, size);
    memcpy(to->v + to->size, data, size);
    to->size += size;
}

static void put_text(bytes *to, unsigned field, const char *text) {
    put_bytes(to, field, text, strlen(text));
}

/* XLA's numbers of the fields of HloInstructionProto and related messages. */
enum {
    NAME = 1,
    OPCODE = 2,
    SHAPE = 3,
    LITERAL = 8,
    ID = 35,
    PARAMETER = 9,
    OPERAND = 36,
    CONTROL = 37,
    CALLED = 38,
    METADATA = 7,
    CONFIG_PAYLOAD = 99,
    METADATA_PAYLOAD = 20, /* a field of the metadata */
    PAYLOADS = 22,         /* a field of the module */
    ELEMENT_TYPE = 2,
    DIMENSION = 3,
    F32S = 8,
    F32 = 11,
    INSTRUCTIONS = 2,
    COMPUTATION_ID = 5,
    ROOT = 6,
    COMPUTATIONS = 3,
    ENTRY = 6
};

static bytes shape_of(int64_t dim) {
    bytes shape = {.size = 0};
    put_number(&shape, ELEMENT_TYPE, F32);
    if (dim) put_number(&shape, DIMENSION, dim);
    return shape;
}

static bytes instr_of(const char *name, const char *opcode, int64_t id, const bytes *shape) {
    bytes instr = {.size = 0};
    put_text(&instr, NAME, name);
    put_text(&instr, OPCODE, opcode);
    put_bytes(&instr, SHAPE, shape->v, shape->size);
    put_number(&instr, ID, id);
    return instr;
}

static void put_computation(bytes *to, int64_t id, int64_t root, const bytes *instrs, size_t count,
                            const bytes *more) {
    static bytes comp;
    comp.size = 0;
    put_text(&comp, NAME, "c");
    for (size_t i = 0; i < count; i++) put_bytes(&comp, INSTRUCTIONS, instrs[i].v, instrs[i].size);
    put_number(&comp, COMPUTATION_ID, id);
    put_number(&comp, ROOT, root);
    if (more) {
        memcpy(comp.v + comp.size, more->v, more->size);
        comp.size += more->size;
    }
    put_bytes(to, COMPUTATIONS, comp.v, comp.size);
}

/* Creates a module of one computation, whose root is the instruction with the id `root`. */
static const bytes *module_of(const bytes *instrs, size_t count, int64_t root) {
    static bytes module;
    module.size = 0;
    put_text(&module, NAME, "m");
    put_number(&module, ENTRY, 7);
    put_computation(&module, 7, root, instrs, count, NULL);
    return &module;
}

/* -------------------------------------------------------------------------------------- reading */

typedef struct heard {
    char message[512];
    unsigned count;
} heard;

static void hear(void *user, const hlo_diag *diag) {
    heard *h = user;
    h->count++;
    snprintf(h->message, sizeof h->message, "%s", diag->message);
    assert_string_equal(diag->file, "x.pb");
    assert_int_equal(diag->line, 0);
}

static hlo_status read(const void *data, size_t size, heard *h, hlo_module **out) {
    *h = (heard){.count = 0};
    /* Reads a copy of exactly that size, so that reading past its end is detected. */
    void *exact = malloc(size ? size : 1);
    memcpy(exact, data, size);
    hlo_status status = hlo_module_parse_proto(exact, size, "x.pb", &(hlo_diag_sink){hear, h}, out);
    free(exact);
    assert_true((status == HLO_OK) == (*out != NULL));
    assert_int_equal(h->count, status != HLO_OK);
    return status;
}

static void refused(const bytes *module, const char *why) {
    heard h;
    hlo_module *made;
    assert_int_equal(read(module->v, module->size, &h, &made), HLO_INVALID_INPUT);
    if (!strstr(h.message, why)) fail_msg("said: %s\nwanted: %s", h.message, why);
}

static char *print(const hlo_module *module, hlo_proto_format format, size_t *out_size) {
    char *text = NULL;
    FILE *out = open_memstream(&text, out_size);
    assert_int_equal(hlo_module_print_proto(module, format, NULL, hlo_file_writer(out)), HLO_OK);
    fclose(out);
    return text;
}

static char *print_text(const hlo_module *module) {
    char *text = NULL;
    size_t size;
    assert_int_equal(hlo_module_to_text(module, NULL, &text, &size), HLO_OK);
    return text;
}

static const char source[] =
    "HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }\n"
    "add { p = f32[] parameter(0)\n q = f32[] parameter(1)\n ROOT z = f32[] add(p, q) }\n"
    "ENTRY e {\n a = f32[2,3]{0,1:T(8,128)} parameter(0), sharding={devices=[2,1]<=[2]}\n"
    " k = s4[2] constant({-3, 4})\n"
    " c = f32[] constant(1)\n s = f32[2,3] sine(a), metadata={op_name=\"f/sin\" source_line=3}\n"
    " r = f32[2] reduce(s, c), dimensions={1}, to_apply=add\n"
    " g = f32[2] all-reduce(r), to_apply=add, replica_groups={{0,1}}\n"
    " ROOT t = (f32[2,3], f32[2], s4[2]) tuple(s, g, k), frontend_attributes={a=\"b\"}\n}\n";

static hlo_module *sample(void) {
    hlo_module *module;
    assert_int_equal(hlo_module_parse(source, strlen(source), "s", NULL, &module), HLO_OK);
    return module;
}

static void comes_back(void **state) {
    (void)state;
    hlo_module *first = sample(), *second;
    size_t size, again;
    heard h;
    char *pb = print(first, HLO_PROTO_BINARY, &size);
    assert_true(hlo_proto_recognize(pb, size));
    assert_false(hlo_proto_recognize(source, strlen(source)));
    assert_int_equal(read(pb, size, &h, &second), HLO_OK);
    assert_int_equal(hlo_module_verify(second, NULL, NULL), HLO_OK);
    char *same = print(second, HLO_PROTO_BINARY, &again), *text = print_text(second);
    assert_int_equal(size, again);
    assert_memory_equal(pb, same, size);
    assert_non_null(strstr(text, "%k = s4[2]{0} constant({-3, 4})"));
    assert_non_null(strstr(text, "sharding={devices=[2,1]<=[2]}"));
    free(pb);
    free(same);
    hlo_free(text);
    hlo_module_free(first);
    hlo_module_free(second);
}

static void cut_anywhere(void **state) {
    (void)state;
    hlo_module *first = sample(), *made;
    size_t size;
    heard h;
    char *pb = print(first, HLO_PROTO_BINARY, &size);
    for (size_t i = 0; i < size; i++) {
        hlo_status status = read(pb, i, &h, &made);
        assert_true(status == HLO_OK || status == HLO_INVALID_INPUT);
        hlo_module_free(made);
    }
    for (size_t i = 0; i < size; i++) {
        static const uint8_t changes[] = {0x01, 0x80, 0x7f, 0xff};
        for (size_t k = 0; k < sizeof changes; k++) {
            pb[i] = (char)(pb[i] ^ changes[k]);
            hlo_status status = read(pb, size, &h, &made);
            assert_true(status == HLO_OK || status == HLO_INVALID_INPUT);
            hlo_module_free(made);
            pb[i] = (char)(pb[i] ^ changes[k]);
        }
    }
    free(pb);
    hlo_module_free(first);
}

static void wrong_numbers(void **state) {
    (void)state;
    static bytes instrs[2];
    bytes shape = shape_of(2);
    instrs[0] = instr_of("a", "parameter", 1, &shape);
    instrs[1] = instr_of("b", "negate", 2, &shape);
    put_number(&instrs[1], OPERAND, 3);
    refused(module_of(instrs, 2, 2),
            "instruction 'b': operand with id 3 does not exist in the computation");
    instrs[1] = instr_of("b", "negate", 2, &shape);
    put_number(&instrs[1], OPERAND, 2);
    refused(module_of(instrs, 2, 2), "instruction 'b': operand with id 2 is not before its user");
    instrs[1] = instr_of("b", "negate", 1, &shape);
    refused(module_of(instrs, 2, 1), "computation 'c': two instructions have id 1");
    refused(module_of(instrs, 1, 9), "computation 'c': the root has id 9");
    refused(module_of(instrs, 0, 9), "computation 'c': has no instructions");
    instrs[1] = instr_of("b", "add", 2, &shape);
    refused(module_of(instrs, 2, 2), "instruction 'b': add takes 2 operands, found 0");
    instrs[1] = instr_of("b", "nope", 2, &shape);
    refused(module_of(instrs, 2, 2), "instruction 'b': unknown opcode 'nope'");
    instrs[1] = instr_of("b", "parameter", 2, &shape);
    refused(module_of(instrs, 2, 2), "parameter 'b' has number 0, as another parameter");
    instrs[1] = instr_of("b", "call", 2, &shape);
    refused(module_of(instrs, 2, 2), "instruction 'b': calls 0 computations, expected at least 1");
    put_number(&instrs[1], CALLED, 7);
    refused(module_of(instrs, 2, 2),
            "instruction 'b': called computation with id 7 is not before its caller");
    static bytes nothing;
    put_text(&nothing, NAME, "m");
    put_number(&nothing, ENTRY, 4);
    refused(&nothing, "the entry computation has id 4, which does not exist");
}

/* Returns a module of a parameter with id 1 and its negation with id 2. With `control`, id 2 is
 * another parameter, which has the first as a control predecessor and is executed after it. */
static const bytes *scheduled_with(size_t count, const int64_t *order, bool control) {
    static bytes instrs[2], module;
    bytes shape = shape_of(2), entry = {.size = 0}, sequence = {.size = 0}, schedule = {.size = 0};
    instrs[0] = instr_of("a", "parameter", 1, &shape);
    instrs[1] = instr_of("b", control ? "parameter" : "negate", 2, &shape);
    put_number(&instrs[1], control ? CONTROL : OPERAND, 1);
    if (control) put_number(&instrs[1], PARAMETER, 1);
    for (size_t i = 0; i < count; i++) put_number(&sequence, 1, order[i]);
    put_number(&entry, 1, 7);
    put_bytes(&entry, 2, sequence.v, sequence.size);
    put_bytes(&schedule, 1, entry.v, entry.size);
    module = *module_of(instrs, 2, 2);
    put_bytes(&module, 7, schedule.v, schedule.size);
    return &module;
}

static const bytes *scheduled(size_t count, const int64_t *order) {
    return scheduled_with(count, order, false);
}

static void wrong_schedules(void **state) {
    (void)state;
    const int64_t wrong[][2] = {{2, 1}, {1, 1}, {1, 9}}, right[] = {1, 2};
    refused(scheduled(2, wrong[0]), "computation 'c': the schedule has 'b' before its operand 'a'");
    refused(scheduled_with(2, wrong[0], true),
            "computation 'c': the schedule has 'b' before its control predecessor 'a'");
    refused(scheduled(2, wrong[1]), "computation 'c': the schedule has id 1 twice");
    refused(scheduled(2, wrong[2]), "has id 9, which is not an instruction");
    refused(scheduled(1, right), "the schedule has 1 instructions, but the computation has 2");
    heard h;
    hlo_module *made;
    assert_int_equal(read(scheduled(2, right)->v, scheduled(2, right)->size, &h, &made), HLO_OK);
    hlo_module_free(made);
}

static void wrong_sizes(void **state) {
    (void)state;
    static bytes instrs[1];
    bytes shape = shape_of(-5), literal = {.size = 0};
    instrs[0] = instr_of("a", "parameter", 1, &shape);
    refused(module_of(instrs, 1, 1), "instruction 'a': a shape has dimension size -5");
    shape = shape_of(1 << 30);
    put_bytes(&literal, 1, shape.v, shape.size);
    put_bytes(&literal, F32S, "\0\0\0\0", 4);
    instrs[0] = instr_of("a", "constant", 1, &shape);
    put_bytes(&instrs[0], LITERAL, literal.v, literal.size);
    refused(module_of(instrs, 1, 1), "instruction 'a': a constant has 1 values, but its shape has");
    shape = shape_of(0);
    put_number(&shape, ELEMENT_TYPE, 99);
    instrs[0] = instr_of("a", "parameter", 1, &shape);
    refused(module_of(instrs, 1, 1), "instruction 'a': unknown element type 99");
}

static void nested_too_deeply(void **state) {
    (void)state;
    /* Reads tuples nested 5000 deep. */
    static bytes outer, inner, instr;
    inner.size = 0;
    for (int i = 0; i < 5000; i++) {
        outer.size = 0;
        put_bytes(&outer, 4, inner.v, inner.size);
        inner = outer;
    }
    instr = instr_of("a", "parameter", 1, &inner);
    refused(module_of(&instr, 1, 1), "binary HLO module");
}

static void unknown_fields(void **state) {
    (void)state;
    static bytes instr, module, more;
    bytes shape = shape_of(2);
    heard h;
    hlo_module *made;
    instr = instr_of("a", "parameter", 1, &shape);
    put_text(&instr, 1000, "of the instruction");
    put_number(&instr, 1003, 300);
    put_number(&instr, 1004, -1);
    put_varint(&instr, 1005 << 3 | 5);
    put_fixed(&instr, 4);
    put_varint(&instr, 1006 << 3 | 1);
    put_fixed(&instr, 8);
    put_text(&instr, 1007, "");
    put_text(&more, 1001, "of the computation");
    put_text(&module, NAME, "m");
    put_number(&module, ENTRY, 7);
    put_computation(&module, 7, 1, &instr, 1, &more);
    put_text(&module, 1002, "of the module");
    put_text(&module, 21, "device_type is known but nobody's");
    assert_int_equal(read(module.v, module.size, &h, &made), HLO_OK);
    size_t size;
    char *pb = print(made, HLO_PROTO_BINARY, &size), *text = print(made, HLO_PROTO_TEXT, &size);
    hlo_module_free(made);
    assert_non_null(strstr(text, "1000: \"of the instruction\""));
    assert_non_null(strstr(text, "    1003: 300\n"
                                 "    1004: 18446744073709551615\n"
                                 "    1005: 0x04030201\n"
                                 "    1006: 0x0807060504030201\n"
                                 "    1007: \"\"\n"));
    assert_non_null(strstr(text, "1001: \"of the computation\""));
    assert_non_null(strstr(text, "1002: \"of the module\""));
    assert_non_null(strstr(text, "device_type: \"device_type is known but nobody\\'s\""));
    free(pb);
    free(text);
}

/* Returns a module with a parameter whose field has a payload of the given bytes, or refers to a
 * payload of the module by number. */
static const bytes *with_payload(unsigned field, const char *text, int64_t number) {
    static bytes instr, module;
    bytes shape = shape_of(2), payload = {.size = 0}, metadata = {.size = 0};
    if (text) put_text(&payload, 1, text);
    if (number) put_number(&payload, 2, number);
    put_bytes(&metadata, METADATA_PAYLOAD, payload.v, payload.size);
    instr = instr_of("a", "parameter", 1, &shape);
    if (field == METADATA)
        put_bytes(&instr, METADATA, metadata.v, metadata.size);
    else
        put_bytes(&instr, field, payload.v, payload.size);
    module = *module_of(&instr, 1, 1);
    put_text(&module, PAYLOADS, "zero");
    put_text(&module, PAYLOADS, "{\"one\":1}");
    return &module;
}

static void payloads(void **state) {
    (void)state;
    static const struct {
        unsigned field;
        const char *text;
        int64_t number;
        const char *wanted; /* NULL if this payload does not exist */
    } cases[] = {
        {METADATA, "own", 0, ", metadata={metadata_payload=\"own\"}\n"},
        {METADATA, "own", 7, ", metadata={metadata_payload=\"own\"}\n"},
        {METADATA, NULL, 0, ", metadata={metadata_payload=\"zero\"}\n"},
        {METADATA, NULL, 1, ", metadata={metadata_payload=\"{\\\"one\\\":1}\"}\n"},
        {METADATA, NULL, 2, NULL},
        {METADATA, NULL, -1, NULL},
        {CONFIG_PAYLOAD, "own", 7, ", backend_config=\"own\"\n"},
        {CONFIG_PAYLOAD, NULL, 0, ", backend_config=\"zero\"\n"},
        {CONFIG_PAYLOAD, NULL, 1, ", backend_config={\"one\":1}\n"},
        {CONFIG_PAYLOAD, NULL, 2, NULL},
        {CONFIG_PAYLOAD, NULL, -1, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bytes *module = with_payload(cases[i].field, cases[i].text, cases[i].number);
        heard h;
        hlo_module *made;
        if (!cases[i].wanted) {
            char why[64];
            snprintf(why, sizeof why, "instruction 'a': payload %lld does not exist",
                     (long long)cases[i].number);
            refused(module, why);
            continue;
        }
        assert_int_equal(read(module->v, module->size, &h, &made), HLO_OK);
        char *text = print_text(made);
        if (!strstr(text, cases[i].wanted)) fail_msg("case %zu:\n%s", i, text);
        hlo_free(text);
        hlo_module_free(made);
    }
}

/* Strings may contain NUL. A name, whose characters are limited, may not. */
static void zero_characters(void **state) {
    (void)state;
    static const char with[] =
        "HloModule m, frontend_attributes={z=\"\"}\n\nFileNames\n1 \"f\\000g\"\n\nENTRY e {\n"
        "  ROOT c = f32[2] custom-call(), custom_call_target=\"a\\000b\", sharding={replicated "
        "metadata={op_name=\"o\\000p\"}}, frontend_attributes={k=\"v\\000w\",l=\"{\\000}\"}, "
        "origin={{\"q\\000r\"}}, metadata={op_name=\"s\\000t\"}\n}\n";
    static const char thread[] = "f { ROOT p = f32[] parameter(0) }, execution_thread=\"a\\000b\"\n"
                                 "ENTRY e { ROOT c = f32[] constant(1) }";
    heard h;
    hlo_module *module, *made;
    size_t size;
    assert_int_equal(hlo_module_parse(with, strlen(with), "s", NULL, &module), HLO_OK);
    char *binary = print(module, HLO_PROTO_BINARY, &size), *text = print_text(module);
    assert_int_equal(read(binary, size, &h, &made), HLO_OK);
    char *again = print_text(made);
    assert_string_equal(again, text);
    hlo_free(again);
    hlo_free(text);
    free(binary);
    hlo_module_free(made);
    hlo_module_free(module);
    assert_int_equal(hlo_module_parse(thread, strlen(thread), "s", NULL, &module), HLO_OK);
    assert_int_equal(
        hlo_module_print_proto(module, HLO_PROTO_BINARY, NULL, hlo_file_writer(stdout)),
        HLO_INVALID_INPUT);
    hlo_module_free(module);
    const bytes shape = shape_of(0);
    bytes instr = instr_of("a", "parameter", 1, &shape);
    put_bytes(&instr, OPCODE, "parameter\0", 10);
    refused(module_of(&instr, 1, 1), "invalid or truncated binary HLO module");
}

static void a_known_field_has_its_wire_type(void **state) {
    (void)state;
    const bytes shape = shape_of(0), instr = instr_of("a", "parameter", 1, &shape);
    bytes module = *module_of(&instr, 1, 1);
    put_number(&module, NAME, 1);
    refused(&module, "invalid or truncated binary HLO module");
}

static void negative_zero(void **state) {
    (void)state;
    static const char with[] =
        "ENTRY e {\n a = f32[] parameter(0)\n ROOT c = f32[] exponential(a), "
        "result_accuracy={tolerance={atol=-0,rtol=0.25,ulps=3}}\n}\n";
    heard h;
    hlo_module *module, *made;
    size_t size;
    assert_int_equal(hlo_module_parse(with, strlen(with), "s", NULL, &module), HLO_OK);
    char *binary = print(module, HLO_PROTO_BINARY, &size);
    assert_int_equal(read(binary, size, &h, &made), HLO_OK);
    char *text = print_text(made);
    assert_non_null(strstr(text, "atol=-0,"));
    hlo_free(text);
    free(binary);
    hlo_module_free(made);
    hlo_module_free(module);
}

/* In the message of an executable, XLA omits the values of a constant, but not their shape. */
static void omitted_values(void **state) {
    (void)state;
    for (int count = 0; count < 2; count++) {
        bytes shape = shape_of(0), literal = {.size = 0}, instr;
        put_number(&shape, DIMENSION, count);
        put_bytes(&literal, 1, shape.v, shape.size);
        instr = instr_of("a", "constant", 1, &shape);
        put_bytes(&instr, LITERAL, literal.v, literal.size);
        const bytes *binary = module_of(&instr, 1, 1);
        heard h;
        hlo_module *made;
        assert_int_equal(read(binary->v, binary->size, &h, &made), HLO_OK);
        char *text = print_text(made);
        assert_non_null(strstr(text, count ? "constant({...})" : "constant({})"));
        hlo_free(text);
        hlo_module_free(made);
    }
}

/* Stops after the first bytes, and must not be called again. */
static bool stop(void *user, const char *data, size_t size) {
    (void)data, (void)size;
    ++*(unsigned *)user;
    return false;
}

static void failing_writer(void **state) {
    (void)state;
    hlo_module *module = sample();
    unsigned calls = 0;
    assert_int_equal(
        hlo_module_print_proto(module, HLO_PROTO_TEXT, NULL, (hlo_writer){stop, &calls}),
        HLO_INVALID_INPUT);
    assert_int_equal(calls, 1);
    hlo_module_free(module);
}

/* ---------------------------------------------------------------------------------------- names */

static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* Draws a name of up to three parts, rarely 400: texts that the text form treats specially, or
 * single bytes. */
static void draw_name(uint64_t *state, char *out, size_t size) {
    static const char *const parts[] = {
        "",     "_",        "__",        "___",       "__xla_", "__xla_f32",
        "a",    "%",        ".",         "-",         "0",      "1.",
        ".0",   "f32",      "pred",      "tuple",     "token",  "opaque",
        "f8",   "b01f",     "0_1x0",     "nan",       "inf",    "true",
        "ROOT", "ENTRY",    "HloModule", "add",       "dot",    "call",
        "f32_", "constant", "manual",    "devices",   "region", "clone",
        "\n",   "\"",       "\\",        " ",         "{",      "}",
        "//",   "/*",       "\xc3\xa9",  "\xff",      "\x01",   "\xe2\x82\xac",
        "=",    ",",        "unknown",   "FileNames", "u3",     "s4",
        "-1",   "_.",       "a.1",       "a.2"};
    size_t at = 0, count = next_random(state) % 4;
    if (next_random(state) % 40 == 0) count = 400;
    for (size_t i = 0; i < count; i++) {
        const char *part = parts[next_random(state) % (sizeof parts / sizeof *parts)];
        const char byte[] = {(char)(1 + next_random(state) % 255), 0};
        if (next_random(state) % 5 == 0) part = byte;
        if (at + strlen(part) + 1 > size) break;
        memcpy(out + at, part, strlen(part));
        at += strlen(part);
    }
    out[at] = 0;
}

enum { LONGEST_NAME = 4096 };

static bytes named_instr(uint64_t *state, const char *opcode, int64_t id) {
    char name[LONGEST_NAME];
    const bytes shape = shape_of(2);
    draw_name(state, name, sizeof name);
    return instr_of(name, opcode, id, &shape);
}

static void put_named_computation(bytes *to, uint64_t *state, int64_t id, const bytes *instrs,
                                  size_t count, int64_t root) {
    static bytes comp;
    char name[LONGEST_NAME];
    comp.size = 0;
    draw_name(state, name, sizeof name);
    put_text(&comp, NAME, name);
    for (size_t i = 0; i < count; i++) put_bytes(&comp, INSTRUCTIONS, instrs[i].v, instrs[i].size);
    put_number(&comp, COMPUTATION_ID, id);
    put_number(&comp, ROOT, root);
    put_bytes(to, COMPUTATIONS, comp.v, comp.size);
}

/* Creates a module of two computations, the second of which calls the first, with random names
 * everywhere. */
static const bytes *named_module(uint64_t seed) {
    static bytes module, instrs[4];
    uint64_t state = seed;
    char name[LONGEST_NAME];
    module.size = 0;
    draw_name(&state, name, sizeof name);
    put_text(&module, NAME, name);
    put_number(&module, ENTRY, 7);
    instrs[0] = named_instr(&state, "parameter", 1);
    put_number(&instrs[0], PARAMETER, 0);
    instrs[1] = named_instr(&state, "negate", 2);
    put_number(&instrs[1], OPERAND, 1);
    put_named_computation(&module, &state, 6, instrs, 2, 2);
    for (int i = 0; i < 2; i++) {
        instrs[i] = named_instr(&state, "parameter", 11 + i);
        put_number(&instrs[i], PARAMETER, i);
    }
    instrs[2] = named_instr(&state, "call", 13);
    put_number(&instrs[2], OPERAND, 11);
    put_number(&instrs[2], CALLED, 6);
    instrs[3] = named_instr(&state, "add", 14);
    put_number(&instrs[3], OPERAND, 13);
    put_number(&instrs[3], OPERAND, 12);
    put_number(&instrs[3], CONTROL, 11);
    put_named_computation(&module, &state, 7, instrs, 4, 14);
    return &module;
}

/* Whatever names a binary module has, its text is accepted and printed identically. */
static void names_come_back(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        const bytes *binary = named_module(seed);
        hlo_module *first, *second = NULL;
        heard h;
        if (read(binary->v, binary->size, &h, &first) != HLO_OK)
            fail_msg("seed %llu: %s", (unsigned long long)seed, h.message);
        char *text = print_text(first);
        if (hlo_module_parse(text, strlen(text), "x.hlo", NULL, &second) != HLO_OK)
            fail_msg("seed %llu: the text is not read again:\n%s", (unsigned long long)seed, text);
        assert_int_equal(hlo_module_verify(second, NULL, NULL), HLO_OK);
        char *again = print_text(second);
        assert_string_equal(text, again);
        hlo_free(again);
        hlo_free(text);
        hlo_module_free(first);
        hlo_module_free(second);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_back),
        cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(wrong_numbers),
        cmocka_unit_test(wrong_sizes),
        cmocka_unit_test(wrong_schedules),
        cmocka_unit_test(nested_too_deeply),
        cmocka_unit_test(unknown_fields),
        cmocka_unit_test(payloads),
        cmocka_unit_test(names_come_back),
        cmocka_unit_test(zero_characters),
        cmocka_unit_test(a_known_field_has_its_wire_type),
        cmocka_unit_test(negative_zero),
        cmocka_unit_test(omitted_values),
        cmocka_unit_test(failing_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
