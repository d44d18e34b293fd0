/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and notes of the verifier. */
#include "ir/verify/context.h"
#include "ir/text/diag.h"
#include "ir/text/print.h"

#include <stdio.h>
#include <string.h>

static void emit(const verifier *v, hlo_severity severity, uint32_t offset, uint32_t length,
                 const char *format, va_list args) {
    char message[HLO_VERIFY_TEXT + 256];
    vsnprintf(message, sizeof message, format, args);
    hlo_diag_emit(v->module, v->sink, severity, offset, length, "%s", message);
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
    if (!source || from >= v->module->source_size) return from;
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

void hlo_verify_shape(verifier *v, uint32_t offset, const hlo_shape *shape, const char *what) {
    /* A deferred error already has the location of the layout in the text. */
    const hlo_shape **sound = &v->sound[shape->hash % HLO_VERIFY_SOUND];
    if (v->module->deferred || *sound == shape) return;
    const char *fault = hlo_verify_shape_fault(v->scratch, shape);
    if (!fault) {
        *sound = shape;
        return;
    }
    char text[256];
    hlo_shape_format(shape, true, text, sizeof text);
    hlo_verify_error(v, offset, "%s %s: %s", what, text, fault);
}
