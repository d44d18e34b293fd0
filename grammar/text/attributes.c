/* Attributes of any owner: whether it may have them, and the checks of their values. */
#include <string.h>

#include "grammar/text/actions.h"

static bool between(hlo_attr_id id, hlo_attr_id first, hlo_attr_id last) {
    return id >= first && id <= last;
}

static bool allowed(const hlo_frame *frame, hlo_attr_id id) {
    switch (frame->owner) {
    case HLO_OWNER_MODULE:
        return between(id, HLO_ATTR_IS_SCHEDULED, HLO_ATTR_DEBUG_ATTRIBUTES) ||
               id == HLO_ATTR_FRONTEND_ATTRIBUTES;
    case HLO_OWNER_COMPUTATION: return id == HLO_ATTR_EXECUTION_THREAD;
    case HLO_OWNER_INSTR:
        return hlo_op_allows(hlo_frame_op(frame), id) ||
               (frame->op == HLO_OP_ASYNC_START && id != HLO_ATTR_CALLS &&
                hlo_op_has(frame->op, id));
    case HLO_OWNER_METADATA: return between(id, HLO_ATTR_OP_TYPE, HLO_ATTR_STACK_FRAME_ID);
    case HLO_OWNER_WINDOW: return between(id, HLO_ATTR_SIZE, HLO_ATTR_RHS_REVERSAL);
    case HLO_OWNER_LOCATION: return between(id, HLO_ATTR_FILE_NAME_ID, HLO_ATTR_END_COLUMN);
    case HLO_OWNER_FRAME: return between(id, HLO_ATTR_FILE_LOCATION_ID, HLO_ATTR_PARENT_FRAME_ID);
    }
    return false;
}

static const char *owner_name(const hlo_frame *frame) {
    switch (frame->owner) {
    case HLO_OWNER_MODULE: return "the module's header";
    case HLO_OWNER_COMPUTATION: return "a computation";
    case HLO_OWNER_INSTR: return hlo_ops[hlo_frame_op(frame)].name;
    case HLO_OWNER_METADATA: return "metadata";
    case HLO_OWNER_WINDOW: return "window";
    case HLO_OWNER_LOCATION: return "a file location";
    case HLO_OWNER_FRAME: return "a stack frame";
    }
    return "";
}

/* True if the value of an attribute is missing because an error was reported. */
static bool lacks_value(hlo_attr attr) {
    switch (hlo_attrs_info[attr.id].kind) {
    case HLO_KIND_FORM: return !attr.u.str;
    case HLO_KIND_GROUPS:
    case HLO_KIND_SHARDING:
    case HLO_KIND_ALIASES: return !attr.u.parsed;
    case HLO_KIND_SIZES: return !attr.u.ints;
    case HLO_KIND_COMPUTATION: return !attr.u.comp;
    case HLO_KIND_COMPUTATIONS: return !attr.u.comps;
    case HLO_KIND_INSTRS: return !attr.u.instrs;
    default: return false;
    }
}

static void unknown_attr(hlo_text *text, hlo_span at, const hlo_frame *frame) {
    const char *name = hlo_text_quote(text, at);
    hlo_suggestion s = hlo_suggest(name);
    for (int id = 0; id < HLO_ATTR_COUNT; id++)
        if (allowed(frame, (hlo_attr_id)id)) hlo_suggest_offer(&s, hlo_attrs_info[id].name);
    hlo_text_error(text, at, "there is no attribute '%s'%s", name, hlo_suggest_meant(&s));
}

/* True if the comma before an attribute is missing: only attributes in braces may do without it. */
static bool lacks_comma(const hlo_text *text, hlo_owner owner) {
    return !text->comma.length && (owner == HLO_OWNER_MODULE || owner == HLO_OWNER_COMPUTATION ||
                                   owner == HLO_OWNER_INSTR);
}

void hlo_text_attr(hlo_text *text, hlo_span at, hlo_attr attr) {
    hlo_frame *frame = hlo_text_frame(text);
    if (frame->owner == HLO_OWNER_INSTR && frame->op == HLO_OP_INVALID) return;
    if (frame->owner == HLO_OWNER_WINDOW) hlo_text_no_comma(text, frame);
    if (lacks_comma(text, frame->owner)) {
        hlo_text_error(text, at, "expected ',' in front of the attribute '%s'",
                       hlo_text_quote(text, at));
        frame->broken = true;
    } else if (attr.id == HLO_ATTR_INVALID) {
        unknown_attr(text, at, frame);
        frame->broken = true;
    } else if (!allowed(frame, attr.id)) {
        hlo_text_error(text, at, "%s has no attribute '%s'", owner_name(frame),
                       hlo_attrs_info[attr.id].name);
        frame->broken = true;
        text->quiet |= attr.id == HLO_ATTR_EXECUTION_THREAD; /* a `}` is missing in front of it */
    } else if (hlo_text_given(text, frame, attr.id)) {
        hlo_text_error(text, at, "attribute '%s' is given twice", hlo_attrs_info[attr.id].name);
        frame->broken = true;
    } else if (lacks_value(attr)) {
        frame->broken = true;
    } else {
        hlo_stack_push(text, &text->attrs, &attr, sizeof attr);
    }
}

void hlo_text_new_attr(hlo_text *text, hlo_span at, hlo_attr attr) {
    hlo_text_attr(text, at, attr);
    hlo_attr_cache_insert(text, at, attr);
}

void hlo_text_int_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       int64_t value) {
    const hlo_frame *frame = hlo_text_frame(text);
    bool narrow = frame->owner == HLO_OWNER_METADATA || frame->owner == HLO_OWNER_LOCATION ||
                  frame->owner == HLO_OWNER_FRAME || id == HLO_ATTR_CROSS_PROGRAM_PREFETCH_INDEX;
    if (narrow && value != (int32_t)value)
        hlo_text_error(text, value_at, "the number %s does not fit in 32 bits",
                       hlo_text_quote(text, value_at));
    const hlo_attr attr = {.id = id, .u.i = value};
    const bool of_instr = frame->owner == HLO_OWNER_INSTR;
    (of_instr ? hlo_text_new_attr : hlo_text_attr)(text, at, attr);
}

void hlo_text_word_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                        const char *word) {
    hlo_frame *frame = hlo_text_frame(text);
    bool known = frame->owner == HLO_OWNER_INSTR && frame->op != HLO_OP_INVALID;
    const char *words = known ? hlo_attr_values(hlo_frame_op(frame), id) : NULL;
    if (words && !hlo_word_in(words, word, strlen(word)) && !hlo_text_is_cut(text, value_at)) {
        hlo_suggestion s = hlo_suggest(word);
        for (const char *from = words; *from;) {
            size_t length = strcspn(++from, " ");
            hlo_suggest_offer(&s, hlo_arena_format(text->scratch, "%.*s", (int)length, from));
            from += length;
        }
        hlo_text_error(text, value_at, "%s: %s '%s' is none of%s%s",
                       hlo_ops[hlo_frame_op(frame)].name, hlo_attrs_info[id].name, word, words,
                       hlo_suggest_meant(&s));
        frame->broken = true;
    }
    hlo_text_attr(text, at, (hlo_attr){.id = id, .u.str = word});
}

bool hlo_text_raw_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       const char *value) {
    hlo_attr attr = hlo_text_formed(text, value_at, id, value);
    hlo_text_new_attr(text, at, attr);
    bool wrong = id != HLO_ATTR_INVALID && lacks_value(attr);
    if (wrong && hlo_text_begins_line(text, value_at.offset))
        text->overlong = at; /* the value is missing */
    else if (wrong && memchr(value, '\n', value_at.length))
        text->overlong = value_at;
    return !wrong;
}

void hlo_text_nested_begin(hlo_text *text, hlo_attr_id id) {
    hlo_frame *frame =
        hlo_text_push_frame(text, id == HLO_ATTR_METADATA ? HLO_OWNER_METADATA : HLO_OWNER_WINDOW);
    frame->nested = id;
}

void hlo_text_nested_end(hlo_text *text, hlo_span at) {
    hlo_frame *frame = hlo_text_frame(text);
    if (frame->owner == HLO_OWNER_WINDOW && !frame->broken) hlo_text_window(text, at, frame);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    uint32_t count = hlo_frame_attr_count(text, frame);
    hlo_attrs *nested =
        hlo_arena_alloc(text->module->arena, sizeof *nested + count * sizeof *nested->v);
    nested->count = count;
    memcpy(nested->v, hlo_frame_attrs(text, frame), count * sizeof *nested->v);
    hlo_attr attr = {.id = frame->nested, .u.attrs = nested};
    bool broken = frame->broken;
    hlo_text_pop_frame(text);
    hlo_text_new_attr(text, at, attr);
    hlo_text_frame(text)->broken |= broken;
}

const hlo_attr *hlo_text_take_attrs(hlo_text *text, const hlo_frame *frame) {
    const size_t count = hlo_frame_attr_count(text, frame);
    if (!count) return NULL;
    return hlo_arena_copy(text->module->arena, hlo_frame_attrs(text, frame),
                          count * sizeof(hlo_attr));
}
