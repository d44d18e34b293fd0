/* SPDX-License-Identifier: Apache-2.0 */
/* Adds attributes to their owners. Checks that an owner may have an attribute, and checks its
 * value. Brings attributes to XLA's form: reads notations, drops defaults, adds implied attributes.
 * Caches attributes by their text. */
#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "ir/intern.h"

enum { LONGEST = 1 << 9 };

/* Returns the length of `name={...}` up to the first `}`, if that is near, or of `name=` and an
 * integer; otherwise 0. */
static uint32_t written_length(const hlo_text *text, hlo_span name) {
    const uint32_t left = (uint32_t)text->size - name.offset;
    const char *from = text->source + name.offset, *value = from + name.length + 1, *end = value;
    if (*value == '{') {
        const char *close = memchr(from, '}', left < LONGEST ? left : LONGEST);
        return close ? (uint32_t)(close - from + 1) : 0;
    }
    while ((*end >= '0' && *end <= '9') || *end == '-') end++;
    return end > value && (*end == ',' || *end == '\n') ? (uint32_t)(end - from) : 0;
}

/* Returns the slot for an attribute with this text, and the hash of the text. */
static hlo_known_attr *remembered(const hlo_text *text, hlo_span written, uint32_t *out_hash) {
    *out_hash = (uint32_t)XXH3_64bits(text->source + written.offset, written.length);
    return &text->known_attrs[*out_hash % HLO_REMEMBERED];
}

uint32_t hlo_text_known_attr(const hlo_text *text, hlo_span name, hlo_attr *out) {
    const hlo_span written = {name.offset, text->errors ? 0 : written_length(text, name)};
    if (!written.length) return 0;
    uint32_t hash;
    const hlo_known_attr *known = remembered(text, written, &hash);
    const char *source = text->source;
    if (known->hash != hash || known->at.length != written.length ||
        memcmp(source + known->at.offset, source + written.offset, written.length) != 0)
        return 0;
    /* The value may continue after its `}`, at once or with a bracket or a `T` after white space.
     */
    const char *after = source + written.offset + written.length;
    if (*after && !strchr(", \t\r\n})]", *after)) return 0;
    after = hlo_text_gap(after);
    if (*after && strchr("{[<(T", *after)) return 0;
    *out = known->attr;
    return written.length;
}

/* Reads the value of an attribute that has a notation, written `raw` at `at`; NULL after an error.
 * The value of any other attribute is `raw`. */
static hlo_attr read_notation(hlo_text *text, hlo_span at, hlo_attr_id id, const char *raw) {
    hlo_attr attr = {.id = id, .u.str = raw};
    if (id == HLO_ATTR_INVALID || hlo_attrs_info[id].kind == HLO_KIND_RAW) return attr;
    if (id == HLO_ATTR_BACKEND_CONFIG && *raw == '{') return attr;
    hlo_notation form;
    hlo_arena_mark mark = hlo_arena_here(text->scratch);
    const hlo_attr *read =
        hlo_notation_of(text->module, text->scratch, id, raw, text->parse_module, &form);
    if (!read)
        hlo_text_error(text,
                       (hlo_span){at.offset + (uint32_t)form.fault, (uint32_t)form.fault_length},
                       "%s: %s", hlo_attrs_info[id].name, form.why);
    hlo_arena_release(text->scratch, mark);
    return read ? *read : (hlo_attr){.id = id};
}

void hlo_text_drop_defaults(hlo_text *text, const hlo_frame *frame, hlo_op op) {
    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    uint32_t count = hlo_frame_attr_count(text, frame), kept = 0;
    if (!count) return;
    hlo_instruction *const *operands = hlo_frame_operands(text, frame);
    bool any = text->operands.used > frame->operands;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *operand = any && attrs[i].id == HLO_ATTR_TYPE ? operands[0]->shape : NULL;
        if (!hlo_attr_is_default(&attrs[i], op, operand)) attrs[kept++] = attrs[i];
    }
    text->attrs.used -= (count - kept) * sizeof *attrs;
}

hlo_attr *hlo_text_given(const hlo_text *text, const hlo_frame *frame, hlo_attr_id id) {
    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    for (uint32_t i = 0; i < hlo_frame_attr_count(text, frame); i++)
        if (attrs[i].id == id) return &attrs[i];
    return NULL;
}

static void push(hlo_text *text, hlo_attr attr) {
    hlo_stack_push(text, &text->attrs, &attr, sizeof attr);
}

void hlo_text_map_all(hlo_text *text, const hlo_frame *frame) {
    int64_t all[HLO_LARGEST_RANK];
    const uint32_t rank = hlo_shape_is_array(frame->shape) ? frame->shape->rank : 0;
    for (uint32_t i = 0; i < rank; i++) all[i] = i;
    const hlo_attr along = {.id = HLO_ATTR_DIMENSIONS,
                            .u.ints = hlo_ints_new(text->module, rank, all)};
    if (!hlo_text_given(text, frame, HLO_ATTR_DIMENSIONS)) push(text, along);
    for (uint32_t i = 0; i < hlo_frame_attr_count(text, frame); i++)
        if (hlo_frame_attrs(text, frame)[i].id == HLO_ATTR_DIMENSIONS)
            hlo_frame_attrs(text, frame)[i] = along;
}

void hlo_text_add_implied(hlo_text *text, const hlo_frame *frame, hlo_op op) {
    static const uint8_t lists[] = {HLO_ATTR_LHS_CONTRACTING_DIMS, HLO_ATTR_RHS_CONTRACTING_DIMS};
    bool dot = op == HLO_OP_DOT || op == HLO_OP_RAGGED_DOT || op == HLO_OP_SCALED_DOT;
    bool collective = hlo_op_is(op, HLO_COLLECTIVE);
    for (size_t i = 0; i < sizeof lists && dot; i++)
        if (!hlo_text_given(text, frame, (hlo_attr_id)lists[i]))
            push(text, (hlo_attr){.id = (hlo_attr_id)lists[i],
                                  .u.ints = hlo_ints_new(text->module, 0, NULL)});
    if (collective && hlo_op_has(op, HLO_ATTR_REPLICA_GROUPS) &&
        !hlo_text_given(text, frame, HLO_ATTR_REPLICA_GROUPS))
        push(text, read_notation(text, (hlo_span){0}, HLO_ATTR_REPLICA_GROUPS,
                                 hlo_intern_string(text->module, "{}")));
    if (op == HLO_OP_TOPK && !hlo_text_given(text, frame, HLO_ATTR_LARGEST))
        push(text, (hlo_attr){.id = HLO_ATTR_LARGEST, .u.i = 1});
    if (op == HLO_OP_OUTFEED && !hlo_text_given(text, frame, HLO_ATTR_OUTFEED_SHAPE))
        push(text, (hlo_attr){.id = HLO_ATTR_OUTFEED_SHAPE,
                              .u.shape = (hlo_frame_operands(text, frame)[0])->shape});
    if (op != HLO_OP_CUSTOM_CALL) return;
    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    for (uint32_t i = 0; i < hlo_frame_attr_count(text, frame); i++) {
        if (attrs[i].id != HLO_ATTR_TO_APPLY) continue;
        hlo_comps *comps = hlo_arena_alloc(text->module->arena, sizeof *comps + sizeof *comps->v);
        comps->count = 1;
        comps->v[0] = attrs[i].u.comp;
        attrs[i] = (hlo_attr){.id = HLO_ATTR_CALLED_COMPUTATIONS, .u.comps = comps};
    }
}

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

/* True if an attribute has no value because of a reported error. */
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

void hlo_text_attr(hlo_text *text, hlo_span at, hlo_attr attr) {
    hlo_frame *frame = hlo_text_frame(text);
    if (frame->owner == HLO_OWNER_INSTR && frame->op == HLO_OP_INVALID) return;
    if (frame->owner == HLO_OWNER_WINDOW && text->comma.length) { /* spaces separate the parts of a
                                                                   * window */
        hlo_text_error(text, text->comma, "window: unexpected ','");
        frame->broken = true;
    }
    /* Attributes in braces need no comma. */
    if (!text->comma.length &&
        (frame->owner == HLO_OWNER_MODULE || frame->owner == HLO_OWNER_COMPUTATION ||
         frame->owner == HLO_OWNER_INSTR)) {
        hlo_text_error(text, at, "expected ',' before the attribute '%s'",
                       hlo_text_quote(text, at));
        frame->broken = true;
    } else if (attr.id == HLO_ATTR_INVALID) {
        const char *name = hlo_text_quote(text, at);
        hlo_suggestion s = hlo_suggest(name);
        for (int id = 0; id < HLO_ATTR_COUNT; id++)
            if (allowed(frame, (hlo_attr_id)id)) hlo_suggest_offer(&s, hlo_attrs_info[id].name);
        hlo_text_error(text, at, "unknown attribute '%s'%s", name, hlo_suggest_meant(&s));
        frame->broken = true;
    } else if (!allowed(frame, attr.id)) {
        static const char *const owners[] = {
            [HLO_OWNER_MODULE] = "the module's header", [HLO_OWNER_COMPUTATION] = "a computation",
            [HLO_OWNER_METADATA] = "metadata",          [HLO_OWNER_WINDOW] = "window",
            [HLO_OWNER_LOCATION] = "a file location",   [HLO_OWNER_FRAME] = "a stack frame"};
        hlo_text_error(text, at, "%s has no attribute '%s'",
                       frame->owner == HLO_OWNER_INSTR ? hlo_ops[hlo_frame_op(frame)].name
                                                       : owners[frame->owner],
                       hlo_attrs_info[attr.id].name);
        frame->broken = true;
        text->quiet |= attr.id == HLO_ATTR_EXECUTION_THREAD; /* the `}` of a body is missing before
                                                              * this attribute */
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
    const hlo_span written = {at.offset, written_length(text, at)};
    const hlo_deferred_error *deferred = text->module->deferred;
    /* Do not cache attributes that depend on the opcode, that caused a message, or that contain
     * nested braces or line ends. */
    if (attr.id == HLO_ATTR_SLICE_SIZES || attr.id == HLO_ATTR_SLICE_SIZE_LISTS || text->errors ||
        (deferred && deferred->offset >= at.offset) ||
        written.offset + written.length != text->end ||
        memchr(text->source + at.offset, '\n', written.length))
        return;
    uint32_t hash;
    hlo_known_attr *place = remembered(text, written, &hash);
    *place = (hlo_known_attr){.at = written, .hash = hash, .attr = attr};
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
    const char *name = hlo_attrs_info[id].name;
    if (id == HLO_ATTR_TYPE && text->source[at.offset] == 'o') {
        const bool any = text->operands.used > frame->operands;
        const char *type =
            hlo_compare_type_of_order(word, any ? hlo_frame_operands(text, frame)[0]->shape : NULL);
        name = "order";
        words = type ? NULL : " PARTIAL TOTAL";
        if (type) word = hlo_intern(text->module, type, strlen(type));
    }
    if (words && !hlo_word_in(words, word, strlen(word)) && !hlo_text_is_cut(text, value_at)) {
        hlo_suggestion s = hlo_suggest(word);
        for (const char *from = words; *from;) {
            size_t length = strcspn(++from, " ");
            hlo_suggest_offer(&s, hlo_arena_format(text->scratch, "%.*s", (int)length, from));
            from += length;
        }
        hlo_text_error(text, value_at, "%s: invalid %s '%s', expected one of%s%s",
                       hlo_ops[hlo_frame_op(frame)].name, name, word, words, hlo_suggest_meant(&s));
        frame->broken = true;
    }
    hlo_text_attr(text, at, (hlo_attr){.id = id, .u.str = word});
}

bool hlo_text_raw_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       const char *value) {
    hlo_attr attr = read_notation(text, value_at, id, value);
    hlo_text_new_attr(text, at, attr);
    bool wrong = id != HLO_ATTR_INVALID && lacks_value(attr);
    if (wrong && hlo_text_begins_line(text, value_at.offset))
        text->overlong = at; /* the next line was read as the value */
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
    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    uint32_t count = hlo_frame_attr_count(text, frame), kept = 0;
    if (frame->owner == HLO_OWNER_WINDOW && !frame->broken) {
        /* Check that all parts have one rank, and drop parts with default values. */
        const hlo_attr *size = hlo_text_given(text, frame, HLO_ATTR_SIZE);
        const uint32_t rank = size ? size->u.ints->count : 0;
        for (uint32_t i = 0; i < count && !frame->broken; i++) {
            const hlo_attr_id id = attrs[i].id;
            const hlo_ints *part = attrs[i].u.ints;
            if (id == HLO_ATTR_RHS_REVERSAL && part->count < rank) {
                /* Dimensions for which the text has no number are not reversed. */
                hlo_ints *all = hlo_ints_new(text->module, rank, NULL);
                for (uint32_t d = 0; d < rank; d++) all->v[d] = d < part->count && part->v[d];
                attrs[i].u.ints = part = all;
            }
            const uint32_t parts = part->count / (id == HLO_ATTR_PAD ? 2 : 1);
            if (parts != rank) {
                hlo_text_error(text, at, "window: '%s=' has %u dimension%s, 'size=' has %u",
                               hlo_attrs_info[id].name, parts, parts == 1 ? "" : "s", rank);
                frame->broken = true;
            }
            const bool zero = id == HLO_ATTR_PAD || id == HLO_ATTR_RHS_REVERSAL;
            bool is_default = id != HLO_ATTR_SIZE;
            for (uint32_t d = 0; d < part->count; d++) is_default &= part->v[d] == !zero;
            if (!is_default) attrs[kept++] = attrs[i];
        }
        if (!frame->broken) text->attrs.used -= (count - kept) * sizeof *attrs;
    }
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    count = hlo_frame_attr_count(text, frame);
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
