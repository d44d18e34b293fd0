/* SPDX-License-Identifier: Apache-2.0 */
/* Builds call frames like XLA's, and a fake XLA that records errors. */
#ifndef HLO_TESTS_UNIT_RUNTIME_FFI_FIXTURE_H
#define HLO_TESTS_UNIT_RUNTIME_FFI_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/ffi.h"
#include "runtime/ffi/abi.h"

enum { ITEMS = 8, ATTRS = 16, RANK = 4 };

/* ------------------------------------------------------------------------------------------ XLA */

static char said[8192]; /* the message of the last error */
static int said_code;

static ffi_error *note_error(ffi_error_new *arguments) {
    assert_true(arguments->size >= FFI_SIZE(ffi_error_new, code));
    snprintf(said, sizeof said, "%s", arguments->message);
    said_code = arguments->code;
    return (ffi_error *)said;
}

static void free_error(ffi_error_free *arguments) {
    assert_ptr_equal(arguments->error, said);
}

static const ffi_api xla = {
    .size = sizeof(ffi_api),
    .version = {.size = FFI_SIZE(ffi_version, minor), .major = FFI_MAJOR, .minor = FFI_MINOR},
    .error_new = note_error,
    .error_free = free_error,
};

/* --------------------------------------------------------------------------------------- frames */

typedef union value {
    ffi_span string;
    ffi_scalar scalar;
    ffi_array array;
} value;

/* A call frame, and all objects that it points to. */
typedef struct call {
    ffi_frame frame;
    ffi_api api;
    ffi_buffer buffers[2][ITEMS]; /* operands, results */
    int64_t dims[2][ITEMS][RANK];
    int kinds[2][ITEMS];
    void *items[2][ITEMS];
    int attr_kinds[ATTRS];
    ffi_span names[ATTRS], *name_of[ATTRS];
    value values[ATTRS];
    void *value_of[ATTRS];
    double numbers[ATTRS];
    int64_t lists[ATTRS][RANK];
} call;

static ffi_list *list_of(call *c, int results) {
    return results ? &c->frame.results : &c->frame.operands;
}

static void begin_call(call *c) {
    memset(c, 0, sizeof *c);
    c->api = xla;
    c->frame =
        (ffi_frame){.size = FFI_SIZE(ffi_frame, attrs), .api = &c->api, .stage = FFI_EXECUTE};
    for (int side = 0; side < 2; side++)
        *list_of(c, side) = (ffi_list){
            .size = FFI_SIZE(ffi_list, items), .kinds = c->kinds[side], .items = c->items[side]};
    c->frame.attrs = (ffi_attrs){.size = FFI_SIZE(ffi_attrs, values),
                                 .kinds = c->attr_kinds,
                                 .names = c->name_of,
                                 .values = c->value_of};
}

static void add_array(call *c, int results, int type, void *data, int rank, int64_t d0,
                      int64_t d1) {
    ffi_list *list = list_of(c, results);
    const int64_t i = list->count++;
    assert_true(i < ITEMS);
    c->dims[results][i][0] = d0;
    c->dims[results][i][1] = d1;
    c->buffers[results][i] = (ffi_buffer){.size = FFI_SIZE(ffi_buffer, dims),
                                          .type = type,
                                          .data = data,
                                          .rank = rank,
                                          .dims = c->dims[results][i]};
    c->kinds[results][i] = FFI_BUFFER;
    c->items[results][i] = &c->buffers[results][i];
}

static value *add_attr(call *c, const char *name, int kind) {
    const int64_t i = c->frame.attrs.count++;
    assert_true(i < ATTRS);
    c->names[i] = (ffi_span){name, strlen(name)};
    c->name_of[i] = &c->names[i];
    c->attr_kinds[i] = kind;
    c->value_of[i] = &c->values[i];
    return &c->values[i];
}

static void add_number(call *c, const char *name, double number) {
    double *to = &c->numbers[c->frame.attrs.count];
    *to = number;
    add_attr(c, name, FFI_ATTR_SCALAR)->scalar = (ffi_scalar){FFI_TYPE_F64, to};
}

static void add_string(call *c, const char *name, const char *text) {
    add_attr(c, name, FFI_ATTR_STRING)->string = (ffi_span){text, strlen(text)};
}

static void add_list(call *c, const char *name, size_t count, int64_t first, int64_t second) {
    int64_t *to = c->lists[c->frame.attrs.count];
    to[0] = first;
    to[1] = second;
    add_attr(c, name, FFI_ATTR_ARRAY)->array = (ffi_array){FFI_TYPE_S64, count, to};
}

/* --------------------------------------------------------------------------------------- matmul */

enum { M = 16, N = 48, K = 32 };

/* The memory of a call that computes relu(a x b * a_scale * b_scale + bias), and a workspace. */
typedef struct memory {
    _Alignas(256) unsigned char a[M * K];
    _Alignas(256) unsigned char b[N * K];
    _Alignas(64) float a_scale;
    _Alignas(64) float b_scale;
    _Alignas(256) uint16_t bias[N];
    _Alignas(256) uint16_t d[M * N];
    _Alignas(256) char workspace[1024];
} memory;

/* Draws small integers, so that every sum is exact in any order. Codes of e4m3fn: 0, 1, 2, -1. */
static void fill_memory(memory *m) {
    static const unsigned char codes[] = {0x00, 0x38, 0x40, 0xb8};
    for (int i = 0; i < M * K; i++) m->a[i] = codes[(i * 7 + i / 5) % 4];
    for (int i = 0; i < N * K; i++) m->b[i] = codes[(i * 3 + i / 7) % 4];
    m->a_scale = 0.5f;
    m->b_scale = 2.0f;
    for (int i = 0; i < N; i++) m->bias[i] = (uint16_t)(i % 2 ? 0x3f80 : 0xc000); /* 1, -2 */
    memset(m->d, 0xee, sizeof m->d);
}

static void make_matmul(call *c, memory *m) {
    begin_call(c);
    add_array(c, 0, FFI_TYPE_F8E4M3FN, m->a, 2, M, K);
    add_array(c, 0, FFI_TYPE_F8E4M3FN, m->b, 2, N, K);
    add_array(c, 0, FFI_TYPE_F32, &m->a_scale, 0, 0, 0);
    add_array(c, 0, FFI_TYPE_F32, &m->b_scale, 0, 0, 0);
    add_array(c, 0, FFI_TYPE_BF16, m->bias, 1, N, 0);
    add_array(c, 1, FFI_TYPE_BF16, m->d, 2, M, N);
    add_array(c, 1, FFI_TYPE_S8, m->workspace, 1, sizeof m->workspace, 0);
    add_string(c, "algorithm", "ALG_UNSET");
    add_number(c, "alpha_real", 1);
    add_number(c, "beta", 0);
    add_string(c, "epilogue", "BIAS_RELU");
    add_list(c, "lhs_contracting_dimensions", 1, 1, 0);
    add_list(c, "rhs_contracting_dimensions", 1, 1, 0);
}

static float value_of_code(unsigned char code) {
    return code == 0 ? 0 : code == 0x38 ? 1 : code == 0x40 ? 2 : -1;
}

/* Returns true if D is right; its numbers are exact in bf16. */
static bool is_right(const memory *m) {
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            float sum = 0;
            for (int k = 0; k < K; k++)
                sum += value_of_code(m->a[i * K + k]) * value_of_code(m->b[j * K + k]);
            sum += j % 2 ? 1 : -2;
            if (sum < 0) sum = 0;
            uint32_t bits;
            memcpy(&bits, &sum, sizeof bits);
            if (m->d[i * N + j] != bits >> 16) return false;
        }
    return true;
}

/* ------------------------------------------------------------------------------------ mutations */

/* A member of the frame, or of an object that the frame points to, by its offset in `c`. */
typedef struct field {
    const char *name;
    size_t offset, bytes;
    const char *why; /* a part of the error message for invalid values */
} field;

#define AT(member, why)                                                                            \
    { #member, offsetof(call, member), sizeof(((call *)NULL)->member), why }

/* Members in which a wrong number is rejected. */
static const field numbers[] = {
    AT(api.version.major, "is called by version"),
    AT(frame.stage, "is called at stage"),
    AT(frame.operands.count, ""),
    AT(frame.results.count, ""),
    AT(frame.attrs.count, ""),
    AT(kinds[0][0], "has operand 0 that is not an array"),
    AT(kinds[1][1], "has result 1 that is not an array"),
    AT(buffers[0][0].type, ""),
    AT(buffers[0][2].type, ""),
    AT(buffers[1][1].type, ""),
    AT(buffers[0][0].rank, ""),
    AT(buffers[0][4].rank, ""),
    AT(buffers[1][0].rank, ""),
    AT(dims[0][0][0], ""),
    AT(dims[0][0][1], ""),
    AT(dims[0][1][1], ""),
    AT(dims[0][4][0], ""),
    AT(dims[1][0][1], ""),
    AT(lists[4][0], ""),
    AT(attr_kinds[0], ""),
    AT(attr_kinds[3], ""),
    AT(attr_kinds[4], ""),
};

static void put_number(call *c, const field *f, int64_t number) {
    memcpy((char *)c + f->offset, &number, f->bytes);
}

#define EACH(field_of, table)                                                                      \
    for (const field *field_of = table; field_of < table + sizeof table / sizeof *table; field_of++)

/* Wrong numbers are reported. Numbers that make a list longer than its array are not tried. */
static void refuses_wrong_numbers(struct XLA_FFI_Error *execute(struct XLA_FFI_CallFrame *),
                                  call *c, memory *m, const ffi_api *api) {
    static const int64_t tried[] = {-1, 0, 2, 3, 4, 5, 12, 77, 1 << 30, INT32_MIN};
    EACH(f, numbers) {
        const bool counts = strstr(f->name, ".count") != NULL, ranks = strstr(f->name, "rank");
        for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
            make_matmul(c, m);
            if (api) c->api = *api;
            int64_t right = 0;
            memcpy(&right, (char *)c + f->offset, f->bytes);
            const int64_t number = f->bytes == 4 ? (int32_t)tried[i] : tried[i];
            if (number == (f->bytes == 4 ? (int32_t)right : right)) continue;
            if (counts && number > right && number < 1024) continue;
            if (ranks && number > RANK && number <= 24) continue;
            /* skip kinds that the handler reads: it cannot check that a value is of its kind */
            if (strstr(f->name, "attr_kinds") && (number == 1 || number == 3 || number == 4))
                continue;
            put_number(c, f, number);
            *said = '\0';
            if (!execute(&c->frame)) fail_msg("%s = %lld", f->name, (long long)number);
            if (!strstr(said, f->why) || strlen(said) < strlen(HLO_FFI_TARGET) + 8)
                fail_msg("%s = %lld: %s", f->name, (long long)number, said);
        }
    }
}

#endif
