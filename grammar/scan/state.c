/* SPDX-License-Identifier: Apache-2.0 */
/* The stacks and the errors of the parser. */
#include <stdio.h>
#include <string.h>

#include "grammar/scan/parser.h"
#include "ir/intern.h"
#include "ir/text/diag.h"

void hlo_stack_grow(hlo_text *text, hlo_stack *stack, size_t size) {
    size_t capacity = stack->capacity ? stack->capacity * 2 : 16 * size;
    char *grown = hlo_arena_alloc(text->scratch, capacity);
    if (stack->used) memcpy(grown, stack->items, stack->used);
    stack->items = grown;
    stack->capacity = capacity;
}

void hlo_text_error(hlo_text *text, hlo_span at, const char *format, ...) {
    if (text->skipping || text->quiet || !*text->errors_left) return;
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(text->module, text->sink, HLO_ERROR, HLO_DIAG_SYNTAX, at.offset, at.length,
                   format, args);
    va_end(args);
    text->errors++;
    if (--*text->errors_left == 0)
        hlo_diag_emit(text->module, text->sink, HLO_NOTE, HLO_DIAG_SYNTAX, at.offset, at.length,
                      "too many errors, the rest of the text is not read");
}

void hlo_text_say(hlo_text *text, hlo_severity severity, hlo_span at, const char *format, ...) {
    if (text->skipping || text->quiet || !*text->errors_left) return;
    va_list args;
    va_start(args, format);
    hlo_diag_vemit(text->module, text->sink, severity, HLO_DIAG_SYNTAX, at.offset, at.length,
                   format, args);
    va_end(args);
}

void hlo_text_defer_error(hlo_text *text, hlo_span at, const char *format, ...) {
    if (text->skipping) return;
    hlo_module *module = text->module;
    char message[512];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const hlo_deferred_error deferred = {module->deferred, at.offset, at.length,
                                         hlo_intern_string(module, message)};
    module->deferred = hlo_arena_copy(module->arena, &deferred, sizeof deferred);
}

const char *hlo_text_quote(hlo_text *text, hlo_span at) {
    enum { MAX = 40 };
    uint32_t length = 0;
    const char *from = text->source + at.offset;
    while (length < at.length && length < MAX && from[length] >= 0x20 && from[length] < 0x7f)
        length++;
    return hlo_arena_format(text->scratch, "%.*s%s", (int)length, from,
                            length < at.length ? "..." : "");
}

void hlo_text_shape_push(hlo_text *text, const hlo_shape *shape) {
    hlo_stack_push(text, &text->shapes, &shape, sizeof(const hlo_shape *));
}

hlo_frame *hlo_text_push_frame(hlo_text *text, hlo_owner owner) {
    hlo_stack *frames = &text->frames;
    if (frames->capacity - frames->used < sizeof(hlo_frame))
        hlo_stack_grow(text, frames, sizeof(hlo_frame));
    hlo_frame *frame = (hlo_frame *)(frames->items + frames->used);
    frames->used += sizeof *frame;
    *frame = (hlo_frame){
        .owner = owner,
        .attrs = text->attrs.used,
        .operands = text->operands.used,
        .wrapped = HLO_OP_INVALID,
        .parameter = -1,
        .comma = text->comma,
    };
    return frame;
}

void hlo_text_pop_frame(hlo_text *text) {
    const hlo_frame *frame = hlo_text_frame(text);
    text->attrs.used = frame->attrs;
    text->operands.used = frame->operands;
    text->comma = frame->comma;
    text->frames.used -= sizeof *frame;
}
