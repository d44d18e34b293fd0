/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions: their operands, the checks against ir/table/op.def, and the IR. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/async.h"
#include "ir/infer/infer.h"
#include "ir/intern.h"
#include "ir/text/print.h"

void hlo_text_define(hlo_text *text, hlo_span at, const char *name, bool root) {
    hlo_body *body = hlo_text_body(text);
    text->def = name;
    text->def_at = at;
    text->def_root = root;
    hlo_text_reserved(text, at, name, true);
    if (name[0] == '_' && name[1] == '_' && strncmp(name, "__xla_", 6) != 0)
        hlo_text_error(text, at, "the name of an instruction must not begin with '__'");
    if (!root) return;
    if (body->root_at.length) {
        hlo_text_error(text, at, "computation '%s' has two roots", body->comp->name);
        hlo_text_note(text, body->root_at, "the first is here");
    }
    body->root_at = at;
}

void hlo_text_instr_begin(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *opcode) {
    hlo_frame *frame = hlo_text_push_frame(text, HLO_OWNER_INSTR);
    const char *source = text->source;
    bool is_name = source[at.offset] == '%' || source[at.offset + at.length - 1] == ':';
    hlo_op op = HLO_OP_CONSTANT;
    if (opcode && is_name) {
        hlo_text_error(text, at, "expected an opcode, '%s' is a name", hlo_text_quote(text, at));
        op = HLO_OP_INVALID;
    } else if (opcode) {
        hlo_string_cache *cache = hlo_intern_cache(text->module, opcode);
        if (!cache->op) cache->op = (uint8_t)(hlo_op_find(opcode, hlo_intern_length(opcode)) + 1);
        op = (hlo_op)(cache->op - 1);
        if (op == HLO_OP_INVALID) op = hlo_text_async_op(opcode, &frame->wrapped);
        if (op == HLO_OP_INVALID) {
            hlo_suggestion s = hlo_suggest(opcode);
            for (int other = 0; other < HLO_OP_COUNT; other++)
                hlo_suggest_offer(&s, hlo_ops[other].name);
            hlo_text_async_suggest(text, &s);
            hlo_text_error(text, at, "unknown opcode '%s'%s", opcode, hlo_suggest_meant(&s));
        }
    }
    text->last_shape = shape;
    frame->op = op;
    frame->op_at = at;
    frame->shape = shape;
    frame->broken = op == HLO_OP_INVALID;
    frame->name = text->def;
    frame->name_at = text->def ? text->def_at : at;
    frame->root = text->def && text->def_root;
    text->def = NULL;
}

hlo_instr *hlo_text_element(hlo_text *text, hlo_span at, hlo_instr *tuple, int64_t index) {
    if (tuple == &text->broken) return tuple;
    if (tuple->shape->type != HLO_TYPE_TUPLE || index < 0 || index >= tuple->shape->rank) {
        char is[128];
        hlo_shape_format(tuple->shape, false, is, sizeof is);
        hlo_text_error(text, at, "'%s', which is %s, has no element %lld", tuple->name, is,
                       (long long)index);
        return &text->broken;
    }
    const char *written = hlo_intern_string(
        text->module, hlo_arena_format(text->scratch, "%s#%lld", tuple->name, (long long)index));
    hlo_instr *element = hlo_text_find_instr(text, written);
    if (element) return element;
    element = hlo_instr_new(
        hlo_text_body(text)->comp, NULL, HLO_OP_GET_TUPLE_ELEMENT, tuple->shape->elements[index], 1,
        &tuple, hlo_arena_format(text->scratch, "%s_%lld", tuple->name, (long long)index));
    hlo_instr_set_int(element, HLO_ATTR_INDEX, index);
    element->offset = at.offset;
    hlo_text_bind(text, written, element);
    return element;
}

/* Creates the parameter for an operand of a text that is a single instruction. `name` may be NULL.
 */
static hlo_instr *make_parameter(hlo_text *text, hlo_span at, const hlo_shape *shape,
                                 const char *name) {
    const size_t number = text->parameters.used / sizeof(hlo_instr *);
    if (!name)
        name = hlo_intern_string(text->module, hlo_arena_format(text->scratch, "_%zu", number));
    hlo_instr *instr = hlo_instr_new_interned(hlo_text_body(text)->comp, NULL, HLO_OP_PARAMETER,
                                              shape, 0, NULL, name);
    instr->offset = at.offset;
    instr->u.parameter = (int64_t)number;
    hlo_stack_push(text, &text->parameters, &instr, sizeof(hlo_instr *));
    hlo_text_bind(text, name, instr);
    return instr;
}

void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name) {
    hlo_instr *instr = hlo_text_find_instr(text, name);
    const bool plain = instr && text->source[at.offset] == '%'; /* no keyword, because of the `%` */
    if (!plain && (instr || !hlo_text_body(text)->bare))
        instr = hlo_text_named(text, at, name);
    else if (!instr && shape)
        instr = make_parameter(text, at, shape, name);
    if (!instr) {
        hlo_text_error(text, at, "the operand '%s' of a single instruction needs its shape", name);
        instr = &text->broken;
    }
    hlo_text_operand_shaped(text, at, shape, instr);
}

bool hlo_text_nameless(hlo_text *text, hlo_span at, const hlo_shape *shape) {
    const bool bare = hlo_text_body(text)->bare;
    if (bare)
        hlo_text_operand_instr(text, make_parameter(text, at, shape, NULL));
    else
        hlo_text_error(text, at, "expected a name after the shape of this operand");
    return bare;
}

void hlo_text_operand_shaped(hlo_text *text, hlo_span at, const hlo_shape *shape,
                             hlo_instr *instr) {
    if (shape && instr != &text->broken && !hlo_shape_compatible(shape, instr->shape)) {
        char has[128], says[128];
        hlo_shape_format(instr->shape, false, has, sizeof has);
        hlo_shape_format(shape, false, says, sizeof says);
        hlo_text_error(text, at, "'%s' is %s here, but %s in its definition", instr->name, says,
                       has);
        hlo_text_note(text, (hlo_span){instr->offset, 1}, "it is defined here");
        instr = &text->broken;
    }
    hlo_text_operand_instr(text, instr);
}

void hlo_text_operand_instr(hlo_text *text, hlo_instr *instr) {
    hlo_stack_push(text, &text->operands, &instr, sizeof(hlo_instr *));
    if (instr == &text->broken) hlo_text_frame(text)->broken = true;
}

void hlo_text_parameter(hlo_text *text, hlo_span at, int64_t number) {
    hlo_frame *frame = hlo_text_frame(text);
    if (frame->op == HLO_OP_PARAMETER && number >= 0) {
        frame->parameter = number;
        return;
    }
    if (frame->op == HLO_OP_PARAMETER)
        hlo_text_error(text, at, "the number of a parameter must not be negative");
    else if (frame->op != HLO_OP_INVALID)
        hlo_text_error(text, at, "expected the name of an operand of %s, found a number",
                       hlo_ops[frame->op].name);
    frame->broken = true;
}

void hlo_text_constant(hlo_text *text, const hlo_literal *literal) {
    hlo_frame *frame = hlo_text_frame(text);
    frame->literal = literal;
    frame->shape = literal->shape;
}

/* Checks the frame's instruction and completes its attributes and its shape. */
static void check_frame(hlo_text *text, hlo_frame *frame) {
    const hlo_op op = hlo_frame_op(frame);
    const hlo_op_info *info = &hlo_ops[op];
    const uint32_t count = hlo_frame_operand_count(text, frame);
    uint32_t least = info->min_operands, most = info->max_operands;
    if (op == HLO_OP_TUPLE && frame->op == HLO_OP_TUPLE && frame->shape &&
        frame->shape->type == HLO_TYPE_TUPLE)
        least = most = frame->shape->rank;
    else if (most == HLO_ANY)
        most = UINT32_MAX;
    if ((count < least || count > most) && !hlo_text_permissive_count(op, count)) {
        const char *bound = most == least ? "" : count < least ? "at least " : "at most ";
        unsigned wanted = count < least ? least : most;
        hlo_text_error(text, frame->op_at, "%s takes %s%u operand%s, found %u", info->name, bound,
                       wanted, wanted == 1 ? "" : "s", count);
        frame->broken = true;
        return;
    }
    for (const uint8_t *id = info->required; *id != HLO_ATTR_COUNT; id++)
        if (!hlo_text_given(text, frame, (hlo_attr_id)*id)) {
            hlo_text_error(text, frame->op_at, "%s needs the attribute '%s'", info->name,
                           hlo_attrs_info[*id].name);
            frame->broken = true;
        }
    if (frame->op == HLO_OP_PARAMETER && frame->parameter < 0) {
        hlo_text_error(text, frame->op_at, "a parameter needs its number");
        frame->broken = true;
    }
    if (!frame->broken) hlo_text_check_requirements(text, frame, op);
    if (!frame->broken) hlo_text_async_thread(text, frame);
    if (frame->broken) return;
    hlo_text_drop_defaults(text, frame, op);
    hlo_text_make_shape(text, frame);
    hlo_text_add_implied(text, frame, op);
    if (!frame->shape) {
        char why[256];
        hlo_instr *const *operands = hlo_frame_operands(text, frame);
        const uint32_t attr_count = hlo_frame_attr_count(text, frame);
        const hlo_attr *attrs = hlo_frame_attrs(text, frame);
        frame->shape =
            hlo_infer(text->module, frame->op, count, operands, attr_count, attrs, why, sizeof why);
        if (!frame->shape) {
            frame->shape =
                hlo_text_permissive_shape(text, frame->op, count, operands, attr_count, attrs);
            if (!frame->shape) {
                hlo_text_error(text, frame->op_at, "%s", why);
                frame->broken = true;
                return;
            }
            if (frame->op == HLO_OP_BROADCAST && frame->shape->rank) {
                char read[128];
                hlo_shape_format(frame->shape, false, read, sizeof read);
                hlo_text_defer_error(text, frame->op_at, "%s; it is read as %s", why, read);
            }
        }
    }
    frame->broken = !hlo_text_check_depth(text, frame->op_at, &frame->shape);
    if (!frame->broken && frame->op == HLO_OP_MAP) hlo_text_map_all(text, frame);
    if (!frame->broken && hlo_op_is_async(frame->op)) hlo_text_async_check(text, frame);
    if (!frame->broken && op != frame->op) hlo_text_async_wrap(text, frame);
}

hlo_instr *hlo_text_instr_end(hlo_text *text) {
    hlo_frame *frame = hlo_text_frame(text);
    hlo_body *body = hlo_text_body(text);
    if (!frame->broken) check_frame(text, frame);
    const hlo_instr *before = frame->name ? hlo_text_find_instr(text, frame->name) : NULL;
    if (before) {
        hlo_text_error(text, frame->name_at, "'%s' is defined twice in computation '%s'",
                       frame->name, body->comp->name);
        if (before != &text->broken)
            hlo_text_note(text, (hlo_span){before->offset, 1}, "the first is here");
    }
    hlo_instr *instr = &text->broken;
    if (frame->broken) {
        body->broken = true;
    } else {
        const char *name = frame->name;
        if (!name) {
            char *anonymous = hlo_arena_format(text->scratch, "%s.anon", hlo_ops[frame->op].name);
            name = hlo_intern_string(text->module, anonymous);
        }
        instr = hlo_instr_new_unnamed(body->comp, NULL, frame->op, frame->shape,
                                      hlo_frame_operand_count(text, frame),
                                      hlo_frame_operands(text, frame));
        hlo_text_give_name(text, instr, name);
        hlo_instr_take_attrs(instr, hlo_text_take_attrs(text, frame),
                             hlo_frame_attr_count(text, frame));
        instr->offset = frame->name_at.offset;
        if (frame->op == HLO_OP_CONSTANT) instr->u.literal = frame->literal;
        if (frame->op == HLO_OP_PARAMETER) {
            instr->u.parameter = frame->parameter;
            hlo_stack_push(text, &text->parameters, &instr, sizeof(hlo_instr *));
        }
        if (frame->root) body->explicit_root = instr;
        if (frame->op == HLO_OP_ASYNC_START) hlo_text_async_begun(text, instr);
        if (frame->op == HLO_OP_ASYNC_UPDATE) hlo_text_async_updated(text, instr);
    }
    if (frame->name) hlo_text_bind(text, frame->name, instr);
    hlo_text_pop_frame(text);
    return instr;
}

void hlo_text_instr_part(hlo_text *text) {
    const char *at = *text->scan_at;
    while (hlo_text_is_space(*at)) at++;
    at = hlo_text_gap(at);
    hlo_text_scan_from(text, at);
    bool more = *at == ',' || !*at;
    if (hlo_text_begins_name(*at)) {
        while (hlo_text_in_name(*at)) at++;
        more = *at == '=';
    }
    if (!more) hlo_text_instr_end(text);
}
