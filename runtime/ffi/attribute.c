/* SPDX-License-Identifier: Apache-2.0 */
/* See attribute.h. */
#include "runtime/ffi/attribute.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "hlo/ffi.h"

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Returns the bytes in quotes, with escapes for bytes that are not plain; for people, at most MOST
 * bytes. */
static const char *quote(const ffi_span *span, hlo_arena *arena, ffi_reader reader) {
    enum { MOST = 80 };
    size_t size = reader == FFI_FOR_PEOPLE && span->size > MOST ? MOST : span->size;
    char *text = hlo_arena_array(arena, size + 2, 3), *to = text;
    *to++ = '"';
    for (size_t i = 0; i < size; i++) {
        const unsigned char c = (unsigned char)span->bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
            *to++ = (char)c;
        else
            to += snprintf(to, 4, "\\%02X", c);
    }
    *to++ = '"';
    *to = '\0';
    return text;
}

/* Returns the name unchanged, or in quotes. */
static const char *format_name(const ffi_span *name, hlo_arena *arena, ffi_reader reader) {
    bool plain = name->size > 0 && name->size < 80 && is_letter(name->bytes[0]);
    for (size_t i = 0; plain && i < name->size; i++)
        plain = is_letter(name->bytes[i]) || (name->bytes[i] >= '0' && name->bytes[i] <= '9');
    return plain ? hlo_arena_format(arena, "%.*s", (int)name->size, name->bytes)
                 : quote(name, arena, reader);
}

static const char *format_float(double value, hlo_arena *arena, ffi_reader reader) {
    if (reader == FFI_FOR_PEOPLE) return hlo_arena_format(arena, "%.9g", value);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return hlo_arena_format(arena, "0x%016" PRIX64 " : f64", bits);
}

/* The integer types: XLA's number and the C type. */
#define INTEGERS(ROW)                                                                              \
    ROW(FFI_TYPE_S8, int8_t)                                                                       \
    ROW(FFI_TYPE_S16, int16_t)                                                                     \
    ROW(FFI_TYPE_S32, int32_t)                                                                     \
    ROW(FFI_TYPE_S64, int64_t)                                                                     \
    ROW(FFI_TYPE_U8, uint8_t)                                                                      \
    ROW(FFI_TYPE_U16, uint16_t)                                                                    \
    ROW(FFI_TYPE_U32, uint32_t)                                                                    \
    ROW(FFI_TYPE_U64, uint64_t)

/* Returns integer `index` of an array; NULL if `type` is not an integer type. */
static const char *format_integer(int type, const void *values, size_t index, hlo_arena *arena) {
    switch (type) {
#define ROW(number, c_type)                                                                        \
    case number: {                                                                                 \
        c_type value;                                                                              \
        memcpy(&value, (const char *)values + index * sizeof value, sizeof value);                 \
        if (value > 0) return hlo_arena_format(arena, "%" PRIu64, (uint64_t)value);                \
        return hlo_arena_format(arena, "%" PRId64, (int64_t)value);                                \
    }
        INTEGERS(ROW)
#undef ROW
    default: return NULL;
    }
}

static const char *format_scalar(const ffi_scalar *scalar, hlo_arena *arena, ffi_reader reader) {
    if (scalar->type == FFI_TYPE_PRED) return *(const char *)scalar->value ? "true" : "false";
    if (scalar->type == FFI_TYPE_F32) {
        float value;
        memcpy(&value, scalar->value, sizeof value);
        return format_float((double)value, arena, reader);
    }
    if (scalar->type == FFI_TYPE_F64) {
        double value;
        memcpy(&value, scalar->value, sizeof value);
        return format_float(value, arena, reader);
    }
    return format_integer(scalar->type, scalar->value, 0, arena);
}

/* Returns an array of integers; an empty one may be of any type. */
static const char *format_array(const ffi_array *array, hlo_arena *arena, ffi_reader reader) {
    enum { MOST = 32, LIMIT = 1 << 16 };
    const char *text = "";
    if (reader == FFI_FOR_READING && array->count > LIMIT) return NULL;
    for (size_t i = 0; i < array->count; i++) {
        if (reader == FFI_FOR_PEOPLE && i == MOST)
            return hlo_arena_format(arena, "array<i64: %s, ...>", text);
        const char *value = format_integer(array->type, array->values, i, arena);
        if (!value) return NULL;
        text = hlo_arena_format(arena, "%s%s%s", text, i ? ", " : "", value);
    }
    return hlo_arena_format(arena, "array<i64%s%s>", array->count ? ": " : "", text);
}

const char *ffi_attributes_format(const ffi_attrs *attrs, hlo_arena *arena, ffi_reader reader,
                                  const char **why) {
    const char *text = "";
    for (int64_t i = 0; i < attrs->count; i++) {
        const char *name = format_name(attrs->names[i], arena, reader);
        const char *value = NULL;
        switch (attrs->kinds[i]) {
        case FFI_ATTR_ARRAY: value = format_array(attrs->values[i], arena, reader); break;
        case FFI_ATTR_SCALAR: value = format_scalar(attrs->values[i], arena, reader); break;
        case FFI_ATTR_STRING: value = quote(attrs->values[i], arena, reader); break;
        default: break;
        }
        if (!value && reader == FFI_FOR_READING) {
            *why = hlo_arena_format(
                arena, "has attribute %s, which is not a string, flag, number or array of integers",
                format_name(attrs->names[i], arena, FFI_FOR_PEOPLE));
            return NULL;
        }
        text =
            hlo_arena_format(arena, "%s%s%s = %s", text, i ? ", " : "", name, value ? value : "?");
    }
    return text;
}
