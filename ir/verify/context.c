/* SPDX-License-Identifier: Apache-2.0 */
/* Reports errors and notes of the verifier, and finds errors in the size and layout of a shape. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"
#include "ir/verify/context.h"

static void emit(const verifier *v, hlo_severity severity, uint32_t offset, uint32_t length,
                 const char *format, va_list args) {
    char message[HLO_VERIFY_TEXT + 256];
    vsnprintf(message, sizeof message, format, args);
    hlo_diag_emit(v->module, v->sink, severity, HLO_DIAG_VERIFY, offset, length, "%s", message);
}

void hlo_verify_error_about(verifier *v, uint32_t offset, uint32_t length, const char *format,
                            ...) {
    if (!hlo_error_budget_take(&v->errors, offset)) return;
    va_list args;
    va_start(args, format);
    emit(v, HLO_ERROR, offset, length, format, args);
    va_end(args);
}

void hlo_verify_note(verifier *v, uint32_t offset, const char *format, ...) {
    if (v->errors.found > v->errors.most) return;
    va_list args;
    va_start(args, format);
    emit(v, HLO_NOTE, offset, 1, format, args);
    va_end(args);
}

const char *hlo_verify_text(verifier *v, const hlo_shape *shape) {
    enum { SIZE = 160 };
    char *text = hlo_arena_alloc(v->scratch, SIZE);
    if (hlo_shape_format(shape, false, text, SIZE) >= SIZE) memcpy(text + SIZE - 4, "...", 4);
    return text;
}

bool hlo_verify_step(const hlo_shape **shape, const hlo_ints *index, int64_t *out_missing) {
    for (uint32_t i = 0; i < index->count; i++) {
        *out_missing = index->v[i];
        if ((*shape)->type != HLO_TYPE_TUPLE || index->v[i] < 0 || index->v[i] >= (*shape)->rank)
            return false;
        *shape = (*shape)->elements[index->v[i]];
    }
    return true;
}

uint32_t hlo_verify_attr_offset(const verifier *v, uint32_t from, hlo_attr_id id,
                                bool within_line) {
    const char *source = v->module->source, *name = hlo_attrs_info[id].name;
    /* Do not search if the error is not reported. */
    if (!source || from >= v->module->source_size || v->errors.found > v->errors.most) return from;
    const char *at = source + from, *end = source + v->module->source_size;
    const char *line = within_line ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (line) end = line;
    size_t size = strlen(name);
    while ((at = memmem(at, (size_t)(end - at), name, size))) {
        if (at + size < end && at[size] == '=' && at > source && strchr(" ,\t{", at[-1]))
            return (uint32_t)(at - source);
        at += size;
    }
    return from;
}

/* Checks `(1:2,4)`, which says that dimension 1 is split before its elements 2 and 4. */
static const char *split_fault(const char **at, const hlo_shape *shape, bool *split) {
    char *end;
    const int64_t dim = strtoll(*at + 1, &end, 10);
    if (dim < 0 || dim >= shape->rank) return "layout splits a dimension that does not exist";
    if (split[dim]) return "layout splits a dimension twice";
    split[dim] = true;
    for (int64_t last = 0, index; *end != ')'; last = index) {
        const char *from = end + 1;
        index = strtoll(from, &end, 10);
        if (end == from) break; /* the list is empty */
        if (index <= last || index >= shape->dims[dim])
            return "layout splits a dimension at an invalid position";
    }
    *at = end + strspn(end, ":)");
    return NULL;
}

/* Returns the error in the size or layout of a shape, or NULL. XLA's parser makes the same checks,
 * but only for shapes within tuples. */
static const char *shape_fault(hlo_arena *scratch, const hlo_shape *shape) {
    if (shape->type == HLO_TYPE_TUPLE) {
        const char *fault = NULL;
        for (uint32_t i = 0; i < shape->rank && !fault; i++)
            fault = shape_fault(scratch, shape->elements[i]);
        return fault;
    }
    /* An unbounded dimension counts as one element. */
    int64_t bytes = hlo_types[shape->type].bytes;
    bool fits = true, empty = false;
    for (uint32_t i = 0; i < shape->rank && !empty; i++) {
        empty = shape->dims[i] == 0;
        fits &= shape->dims[i] < 0 || !__builtin_mul_overflow(bytes, shape->dims[i], &bytes);
    }
    if (!fits && !empty) return "size exceeds 2^63 bytes";
    if (!shape->layout) return NULL;
    if (shape->layout->element_bits < 0) return "negative element size";
    if (shape->layout->memory_space != (int8_t)shape->layout->memory_space)
        return "memory space exceeds 8 bits";
    bool *named = hlo_arena_zero(scratch, shape->rank * sizeof *named);
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->layout->minor_to_major[i];
        if (dim < 0 || dim >= shape->rank) return "layout is not a permutation of the dimensions";
        if (named[dim]) return "layout has a dimension twice";
        named[dim] = true;
    }
    if (!shape->layout->rest) return NULL;
    bool *split = hlo_arena_zero(scratch, shape->rank * sizeof *split);
    for (const char *at = shape->layout->rest; *at;) {
        const char *name = at;
        if (*name == '#' || *name == '*') return "layout index types are not supported";
        for (at += strcspn(at, "("); *at == '(';)
            if (*name == 'T') { /* a tile, `(8,128)` */
                if (at[1] == ')') return "layout has a tile without dimensions";
                while (*at != ')') {
                    at++;
                    if (*at == '0' || *at == '-') return "layout has a tile of size 0";
                    at += strcspn(at, ",)");
                }
                at++;
            } else if (*name == 'S') {
                const char *fault = split_fault(&at, shape, split);
                if (fault) return fault;
            } else {
                at += strcspn(at, ")") + 1;
            }
    }
    return NULL;
}

void hlo_verify_shape(verifier *v, uint32_t offset, const hlo_shape *shape, const char *what) {
    /* Skip all shapes if the parser has deferred errors: these include errors in layouts, with
     * their location in the text. */
    const hlo_shape **sound = &v->sound[shape->hash % HLO_VERIFY_SOUND];
    if (v->module->deferred || *sound == shape) return;
    const char *fault = shape_fault(v->scratch, shape);
    if (!fault) {
        *sound = shape;
        return;
    }
    char text[256];
    hlo_shape_format(shape, true, text, sizeof text);
    hlo_verify_error(v, offset, "%s %s: %s", what, text, fault);
}
