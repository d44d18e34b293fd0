/* SPDX-License-Identifier: Apache-2.0 */
/* Tests parsing text from C: contents of the module, and diagnostics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "hlo/memory.h"
#include "hlo/text.h"
#include "ir/device_list.h"
#include "ir/intern.h"
#include "ir/ir.h"
#include "ir/text/diag.h"

/* The diagnostics of one parse, as `line:column+length message` on a line each. */
typedef struct heard {
    char text[4096];
    unsigned count;
} heard;

static void hear(void *user, const hlo_diag *diag) {
    heard *h = user;
    size_t used = strlen(h->text);
    snprintf(h->text + used, sizeof h->text - used, "%u:%u+%zu %s\n", diag->line, diag->column,
             diag->length, diag->message);
    h->count++;
}

static hlo_module *read(const char *text) {
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    hlo_module *module;
    if (hlo_module_parse(text, strlen(text), "test", &sink, &module) != HLO_OK)
        fail_msg("%s", h.text);
    return module;
}

static void refused(const char *text, const char *said) {
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    hlo_module *module = (hlo_module *)&h;
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", &sink, &module),
                     HLO_INVALID_INPUT);
    assert_null(module);
    assert_string_equal(h.text, said);
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", NULL, &module),
                     HLO_INVALID_INPUT);
}

static void text_becomes_ir(void **state) {
    (void)state;
    hlo_module *m = read("HloModule m, num_partitions=2\n"
                         "ENTRY %e (p: f32[2,3]) -> f32[3,2] {\n"
                         "  %p = f32[2,3]{0,1} parameter(0)\n"
                         "  ROOT %t = f32[3,2]{1,0} transpose(%p), dimensions={1,0}, "
                         "metadata={op_name=\"a\\\"b\\0c\" source_line=7}\n}\n");
    assert_string_equal(hlo_module_name(m), "m");
    assert_int_equal(m->attrs[0].id, HLO_ATTR_NUM_PARTITIONS);
    const hlo_computation *e = m->entry;
    assert_ptr_equal(e, m->first);
    assert_int_equal(e->parameter_count, 1);
    const hlo_instruction *p = e->parameters[0], *t = e->root;
    assert_ptr_equal(hlo_instr_operand(t, 0), p);
    assert_int_equal(p->use_count, 1);
    assert_int_equal(p->shape->layout->minor_to_major[0], 0);
    assert_ptr_equal(t->shape, hlo_shape_array(m, HLO_TYPE_F32, 2, (int64_t[]){3, 2}));
    assert_int_equal(hlo_instr_ints(t, HLO_ATTR_DIMENSIONS)->v[0], 1);
    assert_memory_equal(m->source + t->offset, "%t =", 4);
    const char *name = hlo_instr_op_name(t);
    assert_int_equal(hlo_intern_length(name), 5);
    assert_memory_equal(name, "a\"b\0c", 6);
    hlo_module_free(m);
}

static void names_of_inline_computations_hide_outer_ones(void **state) {
    (void)state;
    hlo_module *m = read("ENTRY e { a = f32[] parameter(0)\n b = f32[] negate(a)\n"
                         " c = f32[] call(b), to_apply={ b = f32[] parameter(0)\n"
                         "   ROOT a = f32[] sine(b) }\n"
                         " ROOT d = f32[] add(a, b) }\n");
    assert_ptr_not_equal(m->first, m->entry);
    assert_int_equal(m->first->root->op, HLO_OP_SINE);
    const hlo_instruction *d = m->entry->root;
    assert_int_equal(hlo_instr_operand(d, 0)->op, HLO_OP_PARAMETER);
    assert_int_equal(hlo_instr_operand(d, 1)->op, HLO_OP_NEGATE);
    hlo_module_free(m);
}

static void shapes_left_out_are_inferred(void **state) {
    (void)state;
    hlo_module *m =
        read("ENTRY e { a = f32[2]{0} parameter(0)\n ROOT c = compare(a, a), direction=LT }");
    assert_ptr_equal(m->entry->root->shape, hlo_shape_array(m, HLO_TYPE_PRED, 1, (int64_t[]){2}));
    hlo_module_free(m);
}

/* Parses a constant of one element, and checks its bits. */
static void literals_have_these_bits(void **state) {
    (void)state;
    static const struct {
        const char *type, *text;
        uint64_t bits;
    } cases[] = {
        {"f32", "0.1", 0x3dcccccd},
        {"f32", "-0", 0},
        {"f32", "-0.0", 0x80000000},
        {"f32", "1e-45", 1},
        {"f32", "3.40282347e+38", 0x7f7fffff},
        {"f32", "16777217", 0x4b800000},
        {"f32", "nan(0x200001)", 0x7fa00001},
        {"f32", "-nan", 0xffc00000},
        {"f64", "0.1", 0x3fb999999999999a},
        {"f64", "123456789012345678901234567890e-10", 0x43e56a95319d63e1},
        {"f64", "9007199254740993.0", 0x4340000000000000},
        {"bf16", "0.1", 0x3dcd},
        {"f16", "65519", 0x7bff},
        {"f8e4m3fn", "464", 0x7e},
        {"f8e4m3fn", "-nan", 0xff},
        {"f8e5m2", "-inf", 0xfc},
        {"f8e4m3fnuz", "nan", 0x80},
        {"f8e8m0fnu", "1", 0x7f},
        {"f4e2m1fn", "1e3", 0x7},
        {"s4", "-8", 0xf8},
        {"u4", "15", 0xf},
        {"s8", "18446744073709551615", 0xff},
        {"s64", "9223372036854775808", 0x8000000000000000},
        {"u64", "-1", 0xffffffffffffffff},
        {"pred", "7", 1},
        {"pred", "false", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "ENTRY e { ROOT c = %s[] constant(%s) }", cases[i].type,
                 cases[i].text);
        hlo_module *m = read(text);
        const hlo_literal *literal = m->entry->root->u.literal;
        uint64_t bits = 0;
        memcpy(&bits, literal->data, hlo_types[literal->shape->type].bytes);
        if (bits != cases[i].bits)
            fail_msg("%s %s: 0x%llx", cases[i].type, cases[i].text, (unsigned long long)bits);
        hlo_module_free(m);
    }
}

static void elided_constants_take_no_memory(void **state) {
    (void)state;
    hlo_module *m = read("ENTRY e { ROOT c = f64[1000000,1000000] constant({...}) }");
    assert_true(m->entry->root->u.literal->elided);
    assert_null(m->entry->root->u.literal->data);
    assert_true(hlo_arena_used(m->arena) < 100000);
    hlo_module_free(m);
}

static void errors_say_where(void **state) {
    (void)state;
    refused("ENTRY e {\n  a = f32[2] parameter(0)\n  b = f32[2] ad(a, a)\n\tc = f32[2] add(a, aa)\n"
            "  ROOT d = f32[2] add(b, c)\n}\n",
            "3:14+2 unknown opcode 'ad'\n"
            "4:20+2 use of undefined instruction 'aa' in computation 'e'\n");
    refused("\n\n  x", "3:4+0 the text ends too early, expected '{' or '('\n");
}

static void a_text_too_large_is_not_read(void **state) {
    (void)state;
    size_t size = ((size_t)1 << 30) + 1;
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    hlo_module *module = NULL;
    void *text = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (text == MAP_FAILED) skip();
    assert_int_equal(hlo_module_parse(text, size, "test", &sink, &module), HLO_INVALID_INPUT);
    assert_non_null(strstr(h.text, "the text has 1073741825 bytes, the limit is 1073741824\n"));
    munmap(text, size);
}

static void only_so_many_errors_are_said(void **state) {
    (void)state;
    char text[4096] = "ENTRY e {\n";
    for (int i = 0; i < 100; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), " a%d = f32[] nop()\n", i);
    strcat(text, "}\n");
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    hlo_module *module;
    assert_int_equal(hlo_module_parse(text, strlen(text), "test", &sink, &module),
                     HLO_INVALID_INPUT);
    assert_int_equal(h.count, 21); /* 20 errors and a note */
}

/* Each of the invalid texts below would take hours if parsing did not take linear time. */
static void long_texts_that_are_wrong_end(void **state) {
    (void)state;
    enum { REPEATS = 200000 };
    static const char *const rows[][2] = {
        {"", "/* "},
        {" a = f32[] add(", "%a/* "},
        {" a = f32[] parameter(0)", ", nope=1"},
        {" a = f32[] parameter(0)", ", metadata={op_name=\"a\"}"},
        {" a = f32[] parameter(0), sharding=", "{"},
        {" a = f32[] parameter(0), sharding=", "{'\n"},
        {" a = ", "f32["},
        {" a = ", "("},
        {" a = f32[]", "{0:T("},
        {" a = ", "f32[] negate("},
        {" a = f32[] tuple(", ","},
        {" a = f32[2] constant(", "{"},
        {" a = f32[1] constant({", ",,"},
        {" a = f32[] call(), to_apply=", "{ b = f32[] negate("},
        {" a = f32[] parameter(x)", " a = f32[] negat(b)"},
        {"", "\" "},
        {"", "}"},
        {"", "a (\n"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        size_t length = strlen(rows[row][1]), used = 0;
        char *text = malloc(REPEATS * length + 128);
        used += (size_t)sprintf(text, "HloModule m\nENTRY e {\n%s", rows[row][0]);
        for (int i = 0; i < REPEATS; i++, used += length) memcpy(text + used, rows[row][1], length);
        heard h = {.count = 0};
        const hlo_diag_sink sink = {hear, &h};
        hlo_module *module;
        assert_int_equal(hlo_module_parse(text, used, "test", &sink, &module), HLO_INVALID_INPUT);
        assert_in_range(h.count, 1, 2 * 20 + 1);
        free(text);
    }
}

/* Reads a sharding with `ones` dimensions of one tile, and checks the end of its canonical form. */
static void sharding_is(const char *before, size_t ones, const char *after, const char *canonical) {
    char *text = malloc(2 * ones + strlen(after) + 512), *at = text;
    at += sprintf(at, "HloModule m\nENTRY e {\n a = f32[] parameter(0), sharding={devices=[%s",
                  before);
    for (size_t i = 0; i < ones; i++) at += sprintf(at, ",1");
    sprintf(at, "%s}\n}\n", after);
    hlo_module *m = read(text);
    const hlo_sharding *s = hlo_instr_sharding(m->entry->root);
    const size_t size = strlen(s->parsed.text), end = strlen(canonical);
    assert_true(size >= end);
    assert_string_equal(s->parsed.text + size - end, canonical);
    hlo_module_free(m);
    free(text);
}

/* This would take an hour if the time were quadratic in the number of dimensions. */
static void tiles_of_many_dimensions_are_read(void **state) {
    (void)state;
    enum { ONES = 500000 };
    char *iota = malloc(10 * ONES), *at = iota;
    at += sprintf(at, ",4]<=[4");
    for (int i = 1; i < ONES; i++) at += sprintf(at, ",1");
    at += sprintf(at, "]T(0");
    for (int i = 1; i < ONES; i++) at += sprintf(at, ",%d", i);
    sprintf(at, ")");
    sharding_is("1", 0, iota, "{devices=[1,4]<=[4]}");
    free(iota);
    /* The tiles do not consist of whole parts of the iota, so devices are listed. */
    sharding_is("1", ONES, ",200,200]<=[64,625]T(1,0) last_tile_dim_replicate",
                ",39996,39997,39998,39999 last_tile_dim_replicate}");
    sharding_is("2", 0, "]<=[4294967296,4294967296]T(0,1)",
                "{devices=[2]<=[4294967296,4294967296]T(0,1)}");
}

static void places_are_found_in_any_order(void **state) {
    (void)state;
    hlo_module *m = read("HloModule m\n\nENTRY e {\r\n  ROOT a = f32[] parameter(0)\r}\n");
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    size_t root = (size_t)(strstr(m->source, "ROOT") - m->source);
    hlo_diag_emit(m, &sink, HLO_ERROR, HLO_DIAG_VERIFY, root, 4, "root");
    hlo_diag_emit(m, &sink, HLO_ERROR, HLO_DIAG_VERIFY, 0, 9, "start");
    hlo_diag_emit(m, &sink, HLO_ERROR, HLO_DIAG_VERIFY, m->source_size - 2, 100, "brace");
    hlo_diag_emit(m, &sink, HLO_ERROR, HLO_DIAG_VERIFY, root, 4, "root");
    hlo_diag_emit(m, &sink, HLO_ERROR, HLO_DIAG_VERIFY, m->source_size + 10, 1, "end");
    assert_string_equal(h.text, "4:3+4 root\n1:1+9 start\n5:1+1 brace\n4:3+4 root\n6:1+0 end\n");
    hlo_module_free(m);
}

/* Looks up lines of many lengths forward and backward, as errors and as notes. */
static void places_are_found_in_long_texts(void **state) {
    (void)state;
    enum { LINES = 3000 };
    size_t starts[LINES], used = 0;
    char *text = malloc(LINES * 64 + 64);
    for (int i = 0; i < LINES; i++) {
        starts[i] = used;
        used += (size_t)sprintf(text + used, "//%*s\n", i * 7 % 50, "");
    }
    sprintf(text + used, "ENTRY e { ROOT a = f32[] parameter(0) }");
    hlo_module *m = read(text);
    uint32_t random = 1;
    for (int i = 0; i < 2000; i++) {
        random = random * 1103515245 + 12345;
        int line = i % 3 ? (int)(random >> 16) % LINES : i;
        heard h = {.count = 0};
        hlo_diag_sink sink = {hear, &h};
        char wanted[32];
        snprintf(wanted, sizeof wanted, "%d:3+%d x\n", line + 1, line * 7 % 50);
        hlo_diag_emit(m, &sink, i % 2 ? HLO_NOTE : HLO_ERROR, HLO_DIAG_VERIFY, starts[line] + 2,
                      100, "x");
        assert_string_equal(h.text, wanted);
    }
    hlo_module_free(m);
    free(text);
}

/* Checks the source line and the caret line of a diagnostic about `length` bytes at `at`, as a user
 * sees them. */
static void shown(const char *source, size_t at, size_t length, const char *wanted) {
    hlo_diag diag = {.severity = HLO_ERROR, .message = "x", .source = source};
    diag.source_size = strlen(source);
    diag.column = (uint32_t)at + 1;
    diag.length = length;
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hlo_diag_print(&diag, 0, hlo_file_writer(out));
    fclose(out);
    assert_string_equal(strchr(text, '\n') + 1, wanted);
    free(text);
}

static void the_caret_stands_under_what_it_is_about(void **state) {
    (void)state;
    shown("ab\tcd", 3, 2, "ab cd\n   ^~\n");
    shown("\"\u00e9\u4e2d\u6587\" here", 11, 4, "\"\u00e9\u4e2d\u6587\" here\n        ^~~~\n");
    shown("x\u4e2dy", 0, 5, "x\u4e2dy\n^~~~\n");
    shown("\xe9\xff\x80 \x1b[0m \xe4\xb8 z", 12, 1, "??? ?[0m ?? z\n            ^\n");
    shown("\xc0\x80 \xed\xa0\x80 z", 7, 1, "?? ??? z\n       ^\n");
    shown("\u202e\u200b\xc2\x85 z", 9, 1, "???????? z\n         ^\n");
}

static void long_lines_are_clipped_round_the_caret(void **state) {
    (void)state;
    char line[401];
    memset(line, '.', 400);
    memcpy(line + 200, "HERE", 4);
    hlo_diag diag = {.severity = HLO_WARNING,
                     .message = "look",
                     .file = "f",
                     .line = 3,
                     .column = 201,
                     .source = line,
                     .source_size = 400,
                     .length = 4};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    hlo_diag_print(&diag, 40, hlo_file_writer(out));
    fclose(out);
    const char *first = "f:3:201: warning: look\n";
    assert_memory_equal(text, first, strlen(first));
    const char *source = text + strlen(first), *caret = strchr(source, '\n') + 1;
    assert_int_equal(caret - 1 - source, 40);
    size_t column = strspn(caret, " ");
    assert_memory_equal(source + column, "HERE", 4);
    assert_string_equal(caret + column, "^~~~\n");
    free(text);
}

/* Prints more shapes and more text than a printer caches or initially allocates. */
static void a_print_is_the_same_to_a_file_and_in_memory(void **state) {
    (void)state;
    char *source;
    size_t size;
    FILE *made = open_memstream(&source, &size);
    fprintf(made, "ENTRY e {\n  x_0 = f32[1] parameter(0)\n");
    for (int i = 1; i < 2000; i++)
        fprintf(made, "  x_%d = f32[%d] reshape(x_%d), metadata={op_name=\"%s\"}\n", i, i + 1,
                i - 1, i % 2 ? "plain" : "it's\\n");
    fprintf(made, "}\n");
    fclose(made);
    hlo_module *m = read(source);
    char *file, *text;
    size_t file_size, text_size;
    FILE *out = open_memstream(&file, &file_size);
    assert_int_equal(hlo_module_print(m, NULL, hlo_file_writer(out)), HLO_OK);
    fclose(out);
    m->source_size = 0; /* so that the length of the text is unknown in advance */
    assert_int_equal(hlo_module_to_text(m, NULL, &text, &text_size), HLO_OK);
    assert_true(text_size > 100000);
    assert_int_equal(text_size, file_size);
    assert_string_equal(text, file);
    assert_non_null(
        strstr(text, "%x_1999 = f32[2000]{0} reshape(%x_1998), metadata={op_name=\"pl"));
    assert_non_null(strstr(text, "{op_name=\"it\\'s\\n\"}"));
    hlo_module_free(m);
    free(source);
    free(file);
    hlo_free(text);
}

/* Without options, a file has the same limit of errors as a text. */
static void a_file_has_the_limit_of_errors_of_a_text(void **state) {
    (void)state;
    char path[] = "/tmp/hlo-fp8-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    for (int i = 0; i < 2; i++) {
        fputs("ENTRY e {\n", file);
        for (int k = 0; k < 30; k++) fprintf(file, " a%d = f32[] nop()\n", k);
        fputs("}\n// -----\n", file);
    }
    fclose(file);
    const hlo_parse_options limited = {.struct_size = sizeof limited, .max_errors = 7};
    const hlo_parse_options *const options[] = {NULL, &limited};
    const unsigned wanted[] = {21, 8}; /* 20 and 7 errors, with a note each */
    for (size_t i = 0; i < 2; i++) {
        heard h = {.count = 0};
        hlo_diag_sink sink = {hear, &h};
        hlo_module **modules = NULL;
        size_t count = 1;
        assert_int_equal(hlo_modules_parse_file(path, options[i], &sink, &modules, &count),
                         HLO_INVALID_INPUT);
        assert_int_equal(h.count, wanted[i]);
        assert_int_equal(count, 0);
        assert_null(modules);
    }
    remove(path);
}

static void failures_of_files_are_told(void **state) {
    (void)state;
    hlo_module *m = read("ENTRY e { ROOT a = f32[2] parameter(0) }");
    FILE *full = fopen("/dev/full", "w");
    if (full) {
        assert_int_equal(hlo_module_print(m, NULL, hlo_file_writer(full)), HLO_INVALID_INPUT);
        fclose(full);
    }
    hlo_module_free(m);
    heard h = {.count = 0};
    hlo_diag_sink sink = {hear, &h};
    assert_int_equal(hlo_module_parse_file("/no/such/file", &sink, &m), HLO_INVALID_INPUT);
    assert_string_equal(h.text, "0:0+0 cannot read file: No such file or directory\n");
    assert_int_equal(hlo_module_parse_file("/", &sink, &m), HLO_INVALID_INPUT);
    assert_non_null(strstr(h.text, "0:0+0 cannot read file: Is a directory\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_becomes_ir),
        cmocka_unit_test(names_of_inline_computations_hide_outer_ones),
        cmocka_unit_test(shapes_left_out_are_inferred),
        cmocka_unit_test(literals_have_these_bits),
        cmocka_unit_test(elided_constants_take_no_memory),
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(a_text_too_large_is_not_read),
        cmocka_unit_test(only_so_many_errors_are_said),
        cmocka_unit_test(long_texts_that_are_wrong_end),
        cmocka_unit_test(tiles_of_many_dimensions_are_read),
        cmocka_unit_test(places_are_found_in_any_order),
        cmocka_unit_test(places_are_found_in_long_texts),
        cmocka_unit_test(the_caret_stands_under_what_it_is_about),
        cmocka_unit_test(long_lines_are_clipped_round_the_caret),
        cmocka_unit_test(a_print_is_the_same_to_a_file_and_in_memory),
        cmocka_unit_test(a_file_has_the_limit_of_errors_of_a_text),
        cmocka_unit_test(failures_of_files_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
