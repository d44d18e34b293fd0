/* Attributes in XLA's form: notations read, defaults dropped, implied attributes added. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "grammar/text/actions.h"
#include "ir/intern.h"

hlo_attr hlo_text_formed(hlo_text *text, hlo_span at, hlo_attr_id id, const char *raw) {
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
    hlo_instr *const *operands = hlo_frame_operands(text, frame);
    bool any = text->operands.used > frame->operands;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *operand = any && attrs[i].id == HLO_ATTR_TYPE ? operands[0]->shape : NULL;
        if (!hlo_attr_is_default(&attrs[i], op, operand)) attrs[kept++] = attrs[i];
    }
    text->attrs.used -= (count - kept) * sizeof *attrs;
}

/* -------------------------------------------------------------------------------------- windows */

void hlo_text_no_comma(hlo_text *text, hlo_frame *frame) {
    if (!text->comma.length) return;
    hlo_text_error(text, text->comma, "window: unexpected ','");
    frame->broken = true;
}

/* True if all parts have their default: then the word is not printed. */
static bool is_default_word(const hlo_attr *word) {
    if (word->id == HLO_ATTR_SIZE) return false;
    const bool zero = word->id == HLO_ATTR_PAD || word->id == HLO_ATTR_RHS_REVERSAL;
    for (uint32_t i = 0; i < word->u.ints->count; i++)
        if (word->u.ints->v[i] != !zero) return false;
    return true;
}

/* Returns a reversal for each dimension: dimensions without a number are not reversed. */
static const hlo_ints *all_reversals(hlo_text *text, const hlo_ints *given, uint32_t rank) {
    if (given->count >= rank) return given;
    hlo_ints *all = hlo_ints_new(text->module, rank, NULL);
    for (uint32_t i = 0; i < rank; i++) all->v[i] = i < given->count && given->v[i];
    return all;
}

void hlo_text_window(hlo_text *text, hlo_span at, hlo_frame *frame) {
    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    const hlo_attr *size = hlo_text_given(text, frame, HLO_ATTR_SIZE);
    uint32_t count = hlo_frame_attr_count(text, frame), kept = 0;
    const uint32_t rank = size ? size->u.ints->count : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (attrs[i].id == HLO_ATTR_RHS_REVERSAL)
            attrs[i].u.ints = all_reversals(text, attrs[i].u.ints, rank);
        const uint32_t parts = attrs[i].u.ints->count / (attrs[i].id == HLO_ATTR_PAD ? 2 : 1);
        if (parts != rank) {
            hlo_text_error(text, at, "window: '%s=' has %u dimension%s, 'size=' has %u",
                           hlo_attrs_info[attrs[i].id].name, parts, parts == 1 ? "" : "s", rank);
            frame->broken = true;
            return;
        }
        if (!is_default_word(&attrs[i])) attrs[kept++] = attrs[i];
    }
    text->attrs.used -= (count - kept) * sizeof *attrs;
}

/* --------------------------------------------------------------------------- implied attributes */

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
        push(text, hlo_text_formed(text, (hlo_span){0}, HLO_ATTR_REPLICA_GROUPS,
                                   hlo_intern_string(text->module, "{}")));
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
