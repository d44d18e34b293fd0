/* SPDX-License-Identifier: Apache-2.0 */
/* Actions for the header of the module and the tables after it, and for computations: bodies,
 * parameters, results. Also recovers from errors in headers, tables and computations. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/intern.h"

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
        hlo_text_defer_error(text, at, "the row has number %lld, expected %zu", (long long)number,
                             before + 1);
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

/* Drops open lists. Keeps the first `comps` bytes of text->comps, because a list of computations
 * may be open around an inline body. */
static void drop_lists(hlo_text *text, size_t comps) {
    text->shapes.used = text->instrs.used = text->literals.used = 0;
    text->comps.used = comps;
}

void hlo_text_recover(hlo_text *text, hlo_span at, const char *undefined) {
    hlo_body *body = hlo_text_body(text);
    body->broken = true;
    if (undefined && !hlo_text_lacks_equals(text, at)) undefined = NULL;
    const hlo_frame *frame = (const hlo_frame *)(text->frames.items + body->frames);
    const char *name = text->def;
    if (text->frames.used > body->frames) {
        name = frame->name;
        text->attrs.used = frame->attrs;
        text->operands.used = frame->operands;
        text->frames.used = body->frames;
    }
    if (undefined) hlo_text_bind(text, undefined, &text->broken);
    if (name) hlo_text_bind(text, name, &text->broken);
    body->nameless |= !undefined && (!name || hlo_text_begins_line(text, at.offset));
    text->def = NULL;
    drop_lists(text, body->comps);
}

void hlo_text_recover_header(hlo_text *text) {
    while (text->frames.used > sizeof(hlo_frame)) hlo_text_pop_frame(text);
    drop_lists(text, 0);
}

/* The name of the open computation stays defined, so that calls of it cause no further errors. */
void hlo_text_recover_top(hlo_text *text, hlo_span at) {
    const hlo_body *body = (const hlo_body *)text->bodies.items;
    bool named = text->bodies.used && body->name;
    if (named) hlo_intern_cache(text->module, body->name)->comp = body->comp;
    text->nameless |= !named || hlo_text_begins_line(text, at.offset);
    text->bodies.used = text->frames.used = text->attrs.used = text->operands.used = 0;
    text->lacks_close = 0;
    text->parameters.used = text->hidden.used = 0;
    text->def = NULL;
    drop_lists(text, 0);
}

void hlo_text_body_begin(hlo_text *text, hlo_span at, const char *name, bool entry) {
    hlo_module *module = text->module;
    text->quiet &= !name;
    if (name) hlo_text_reserved(text, at, name, false);
    if (entry && module->entry) {
        hlo_text_error(text, at, "the module has two entries");
        hlo_text_note(text, (hlo_span){module->entry->offset, 1}, "the first is here");
    }
    if (!name) hlo_text_names_later(text);
    hlo_body body = {
        .comp = hlo_comp_new(module, NULL),
        .name = name,
        .at = at,
        .depth = text->depth + (name != NULL), /* the brace of an inline computation was counted
                                                * already */
        .frames = text->frames.used,
        .parameters = text->parameters.used,
        .hidden = text->hidden.used,
        .comps = text->comps.used,
        .entry = entry,
    };
    body.comp->name = name ? name : hlo_intern_string(module, "_");
    body.comp->offset = at.offset;
    hlo_stack_push(text, &text->bodies, &body, sizeof body);
    if (entry) module->entry = body.comp;
    text->def = NULL;
}

void hlo_text_single_instr_begin(hlo_text *text, hlo_span at) {
    hlo_module *module = text->module;
    const hlo_attr scheduled = {.id = HLO_ATTR_IS_SCHEDULED, .u.i = true};
    module->name = hlo_intern_string(module, "_");
    module->attrs = hlo_arena_copy(module->arena, &scheduled, sizeof scheduled);
    module->attr_count = 1;
    hlo_text_body_begin(text, (hlo_span){0, 1}, module->name, true);
    hlo_text_body(text)->bare = true;
    (void)hlo_unique_name(module, HLO_NAME_COMPUTATION, module->name);
    text->depth = 1;
    text->def = module->name; /* replaced by the name in the text, if the text has one */
    text->def_at = at;
    text->def_root = true;
}

void hlo_text_body_result(hlo_text *text, hlo_span at, const hlo_shape *shape) {
    hlo_text_body(text)->result = shape;
    hlo_text_body(text)->result_at = at;
}

void hlo_text_body_end(hlo_text *text, hlo_span at) {
    hlo_body *body = hlo_text_body(text);
    hlo_computation *comp = body->comp;
    if (!body->broken) {
        if (!comp->last)
            hlo_text_error(text, at, "computation '%s' has no instruction", comp->name);
        else
            hlo_comp_set_root(comp, body->explicit_root ? body->explicit_root : comp->last);
        hlo_instruction **found = (hlo_instruction **)(text->parameters.items + body->parameters);
        size_t count = (text->parameters.used - body->parameters) / sizeof *found;
        comp->parameter_count = (uint32_t)count;
        comp->parameters = hlo_arena_zero(text->module->arena, count * sizeof *found);
        for (size_t i = 0; i < count; i++) {
            hlo_span where = {found[i]->offset, 1};
            int64_t number = found[i]->u.parameter;
            if (number >= (int64_t)count) {
                hlo_text_error(
                    text, where,
                    "parameter number %lld, but computation '%s' has only %zu parameter%s",
                    (long long)number, comp->name, count, count == 1 ? "" : "s");
            } else if (comp->parameters[number]) {
                const hlo_instruction *first = comp->parameters[number];
                hlo_text_error(text, where, "two parameters of computation '%s' have number %lld",
                               comp->name, (long long)first->u.parameter);
                hlo_text_note(text, (hlo_span){first->offset, 1}, "the first is here");
            } else {
                comp->parameters[number] = found[i];
            }
        }
        if (comp->root && body->result && !hlo_shape_compatible(body->result, comp->root->shape)) {
            char says[128], is[128];
            hlo_shape_format(body->result, false, says, sizeof says);
            hlo_shape_format(comp->root->shape, false, is, sizeof is);
            hlo_text_error(text, body->result_at,
                           "the result in the signature is %s, but the root is %s", says, is);
            hlo_text_note(text, (hlo_span){comp->root->offset, 1}, "the root is here");
        }
    }
    text->parameters.used = body->parameters;
    hlo_text_unhide(text, body->hidden);
    hlo_text_push_frame(text, HLO_OWNER_COMPUTATION);
}

hlo_computation *hlo_text_computation_done(hlo_text *text) {
    hlo_body *body = hlo_text_body(text);
    hlo_computation *comp = body->comp;
    hlo_frame *frame = hlo_text_frame(text);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    text->threads |= hlo_frame_attr_count(text, frame) > 0;
    comp->attr_count = hlo_frame_attr_count(text, frame);
    comp->attrs = hlo_text_take_attrs(text, frame);
    hlo_text_pop_frame(text);
    text->bodies.used -= sizeof *body;
    hlo_text_names_now(text, comp, body->bare);
    if (body->name) {
        hlo_string_cache *cache = hlo_intern_cache(text->module, body->name);
        if (cache->comp) {
            hlo_text_error(text, body->at, "computation '%s' is defined twice", body->name);
            hlo_text_note(text, (hlo_span){cache->comp->offset, 1}, "the first is here");
        }
        cache->comp = comp;
    }
    hlo_comp_move(comp, NULL);
    return comp;
}
