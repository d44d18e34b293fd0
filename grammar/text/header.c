/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the module, and the tables after it. */
#include <string.h>

#include "grammar/text/actions.h"

void hlo_text_header(hlo_text *text, const char *name) {
    if (name) text->module->name = name;
    hlo_text_push_frame(text, HLO_OWNER_MODULE);
}

void hlo_text_header_done(hlo_text *text) {
    const hlo_frame *frame = hlo_text_frame(text);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    text->module->attr_count = hlo_frame_attr_count(text, frame);
    text->module->attrs = hlo_text_take_attrs(text, frame);
    hlo_text_pop_frame(text);
}

/* Reports a row whose number is not its position. XLA's parser ignores the number. */
static void check_number(hlo_text *text, hlo_span at, int64_t number, size_t before) {
    if (number != (int64_t)before + 1)
        hlo_text_defer_error(text, at, "row %lld, expected row %zu", (long long)number, before + 1);
}

void hlo_text_file(hlo_text *text, hlo_span at, int64_t number, const char *name) {
    check_number(text, at, number, text->files.used / sizeof name);
    hlo_stack_push(text, &text->files, &name, sizeof(const char *));
}

void hlo_text_function(hlo_text *text, hlo_span at, int64_t number, const char *name) {
    check_number(text, at, number, text->functions.used / sizeof name);
    hlo_stack_push(text, &text->functions, &name, sizeof(const char *));
}

static int64_t row_int(const hlo_text *text, const hlo_frame *frame, hlo_attr_id id) {
    const hlo_attr *attr = hlo_text_given(text, frame, id);
    return attr ? attr->u.i : 0;
}

void hlo_text_row_end(hlo_text *text, hlo_span at, int64_t number) {
    const hlo_frame *frame = hlo_text_frame(text);
    if (frame->owner == HLO_OWNER_LOCATION) {
        hlo_file_location row = {
            .file_name = row_int(text, frame, HLO_ATTR_FILE_NAME_ID),
            .function_name = row_int(text, frame, HLO_ATTR_FUNCTION_NAME_ID),
            .line = row_int(text, frame, HLO_ATTR_LINE),
            .end_line = row_int(text, frame, HLO_ATTR_END_LINE),
            .column = row_int(text, frame, HLO_ATTR_COLUMN),
            .end_column = row_int(text, frame, HLO_ATTR_END_COLUMN),
        };
        check_number(text, at, number, text->locations.used / sizeof row);
        hlo_stack_push(text, &text->locations, &row, sizeof row);
    } else {
        hlo_stack_frame row = {
            .file_location = row_int(text, frame, HLO_ATTR_FILE_LOCATION_ID),
            .parent = row_int(text, frame, HLO_ATTR_PARENT_FRAME_ID),
        };
        check_number(text, at, number, text->stack_frames.used / sizeof row);
        hlo_stack_push(text, &text->stack_frames, &row, sizeof row);
    }
    hlo_text_pop_frame(text);
}

static void *take_rows(hlo_text *text, const hlo_stack *stack, size_t size, uint32_t *out_count) {
    *out_count = (uint32_t)(stack->used / size);
    return hlo_arena_copy(text->module->arena, stack->items, stack->used);
}

void hlo_text_take_tables(hlo_text *text) {
    hlo_tables *tables = &text->module->tables;
    tables->files = take_rows(text, &text->files, sizeof *tables->files, &tables->file_count);
    tables->functions =
        take_rows(text, &text->functions, sizeof *tables->functions, &tables->function_count);
    tables->locations =
        take_rows(text, &text->locations, sizeof *tables->locations, &tables->location_count);
    tables->frames =
        take_rows(text, &text->stack_frames, sizeof *tables->frames, &tables->frame_count);
}
