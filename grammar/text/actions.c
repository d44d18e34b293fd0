/* The actions of hlo.y: IR from what was read, and the checks that need names and tables. */
#include "grammar/scan/parser.h"

#include <stdlib.h>
#include <string.h>

#include "hlo.tab.h"
#include "hlo/suggest.h"
#include "hlo/text.h"

static hlo_frame *push_frame(hlo_text *text, hlo_owner owner) {
    hlo_frame frame = {
        .owner = owner,
        .attrs = text->attrs.used,
        .operands = text->operands.used,
        .wrapped = HLO_OP_INVALID,
        .parameter = -1,
        .comma = text->comma,
    };
    return hlo_stack_push(text, &text->frames, &frame, sizeof frame);
}

static void pop_frame(hlo_text *text) {
    const hlo_frame *frame = hlo_text_frame(text);
    text->attrs.used = frame->attrs;
    text->operands.used = frame->operands;
    text->comma = frame->comma;
    text->frames.used -= sizeof *frame;
}

/* ----------------------------------------------------------------------------------- attributes */

static bool between(hlo_attr_id id, hlo_attr_id first, hlo_attr_id last) {
    return id >= first && id <= last;
}

/* The opcode whose operands and attributes stand in the text. */
static hlo_op written_op(const hlo_frame *frame) {
    return frame->op == HLO_OP_ASYNC_START && frame->wrapped != HLO_OP_INVALID ? frame->wrapped
                                                                               : frame->op;
}

static bool allowed(const hlo_frame *frame, hlo_attr_id id) {
    switch (frame->owner) {
    case HLO_OWNER_MODULE:
        return between(id, HLO_ATTR_IS_SCHEDULED, HLO_ATTR_DEBUG_ATTRIBUTES) ||
               id == HLO_ATTR_FRONTEND_ATTRIBUTES;
    case HLO_OWNER_COMPUTATION: return id == HLO_ATTR_EXECUTION_THREAD;
    case HLO_OWNER_INSTR:
        return hlo_op_allows(written_op(frame), id) ||
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
    case HLO_OWNER_INSTR: return hlo_ops[written_op(frame)].name;
    case HLO_OWNER_METADATA: return "metadata";
    case HLO_OWNER_WINDOW: return "window";
    case HLO_OWNER_LOCATION: return "a file location";
    case HLO_OWNER_FRAME: return "a stack frame";
    }
    return "";
}

static uint32_t attr_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->attrs.used - frame->attrs) / sizeof(hlo_attr));
}

static const hlo_attr *attrs_of(const hlo_text *text, const hlo_frame *frame) {
    return (const hlo_attr *)(text->attrs.items + frame->attrs);
}

static const hlo_attr *take_attrs(hlo_text *text, const hlo_frame *frame) {
    return hlo_arena_copy(text->module->arena, attrs_of(text, frame),
                          attr_count(text, frame) * sizeof(hlo_attr));
}

/* Whether the value of an attribute is missing because an error was reported. */
static bool lacks_value(hlo_attr attr) {
    switch (hlo_attrs_info[attr.id].kind) {
    case HLO_KIND_FORM: return !attr.u.str;
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

/* Attributes in braces may do without the comma between them. */
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
    const char *words = known ? hlo_attr_values(written_op(frame), id) : NULL;
    if (words && !hlo_word_in(words, word, strlen(word)) && !hlo_text_is_cut(text, value_at)) {
        hlo_suggestion s = hlo_suggest(word);
        for (const char *from = words; *from;) {
            size_t length = strcspn(++from, " ");
            hlo_suggest_offer(&s, hlo_arena_format(text->scratch, "%.*s", (int)length, from));
            from += length;
        }
        hlo_text_error(text, value_at, "%s: %s '%s' is none of%s%s",
                       hlo_ops[written_op(frame)].name, hlo_attrs_info[id].name, word, words,
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
        push_frame(text, id == HLO_ATTR_METADATA ? HLO_OWNER_METADATA : HLO_OWNER_WINDOW);
    frame->nested = id;
}

void hlo_text_nested_end(hlo_text *text, hlo_span at) {
    hlo_frame *frame = hlo_text_frame(text);
    if (frame->owner == HLO_OWNER_WINDOW && !frame->broken) hlo_text_window(text, at, frame);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    uint32_t count = attr_count(text, frame);
    hlo_attrs *nested =
        hlo_arena_alloc(text->module->arena, sizeof *nested + count * sizeof *nested->v);
    nested->count = count;
    memcpy(nested->v, attrs_of(text, frame), count * sizeof *nested->v);
    hlo_attr attr = {.id = frame->nested, .u.attrs = nested};
    bool broken = frame->broken;
    pop_frame(text);
    hlo_text_new_attr(text, at, attr);
    hlo_text_frame(text)->broken |= broken;
}

hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name) {
    if (hlo_text_reserved(text, at, name, false)) return NULL;
    hlo_computation *comp = hlo_intern_cache(text->module, name)->comp;
    if (comp || text->nameless) return comp;
    if (hlo_text_is_cut(text, at)) return NULL;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = hlo_text_offers(text);
    for (comp = text->module->last; comp && offers--; comp = comp->prev)
        if (hlo_intern_cache(text->module, comp->name)->comp) hlo_suggest_offer(&s, comp->name);
    hlo_text_error(text, at, "no computation '%s' stands before this%s", name,
                   hlo_suggest_meant(&s));
    hlo_span defined;
    if (hlo_text_defined_computation(text, at.offset, name, &defined))
        hlo_text_note(text, defined, "it is defined here, behind its use");
    return NULL;
}

hlo_attr hlo_text_comps(hlo_text *text, hlo_attr_id id, size_t from) {
    const size_t size = text->comps.used - from;
    uint32_t count = (uint32_t)(size / sizeof(hlo_computation *));
    hlo_comps *comps =
        hlo_arena_alloc(text->module->arena, sizeof *comps + count * sizeof *comps->v);
    comps->count = count;
    if (size) memcpy(comps->v, text->comps.items + from, size);
    text->comps.used = from;
    for (uint32_t i = 0; i < count; i++)
        if (!comps->v[i]) return (hlo_attr){.id = id};
    return (hlo_attr){.id = id, .u.comps = comps};
}

/* ---------------------------------------------------------------------------------------- names */

/* The instruction of the computation being read; &text->broken; NULL. */
static hlo_instr *find_instr(hlo_text *text, const char *name) {
    const hlo_symbol_binding meaning = hlo_intern_binding(name);
    return meaning.scope == hlo_text_body(text)->comp->id + 1 ? meaning.instr : NULL;
}

/* What a name meant outside an inline computation, to be put back at its end. */
typedef struct hidden_name {
    const char *name;
    hlo_symbol_binding meaning;
} hidden_name;

static void bind(hlo_text *text, const char *name, hlo_instr *instr) {
    hidden_name hidden = {name, hlo_intern_binding(name)};
    uint32_t scope = hlo_text_body(text)->comp->id + 1;
    if (text->bodies.used > sizeof(hlo_body) && hidden.meaning.scope != scope)
        hlo_stack_push(text, &text->hidden, &hidden, sizeof hidden);
    hlo_intern_bind(name, (hlo_symbol_binding){instr, scope});
}

static hlo_instr *use_name(hlo_text *text, hlo_span at, const char *name) {
    if (!text->bodies.used) {
        hlo_text_error(text, at, "an instruction cannot be named outside a computation");
        return &text->broken;
    }
    if (hlo_text_reserved(text, at, name, false)) return &text->broken;
    hlo_instr *instr = find_instr(text, name);
    if (instr) return instr;
    if (hlo_text_body(text)->nameless) return &text->broken;
    if (hlo_text_is_cut(text, at)) return &text->broken;
    const hlo_computation *comp = hlo_text_body(text)->comp;
    hlo_suggestion s = hlo_suggest(name);
    size_t offers = hlo_text_offers(text);
    for (instr = comp->last; instr && offers--; instr = instr->prev)
        if (find_instr(text, instr->name) == instr) hlo_suggest_offer(&s, instr->name);
    hlo_text_error(text, at, "no instruction '%s' stands before this in computation '%s'%s", name,
                   comp->name, hlo_suggest_meant(&s));
    hlo_span defined;
    if (hlo_text_defined(text, at.offset, name, &defined))
        hlo_text_note(text, defined, "it is defined here, behind its use");
    return &text->broken;
}

void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name) {
    hlo_instr *instr = use_name(text, at, name);
    hlo_stack_push(text, &text->instrs, &instr, sizeof(hlo_instr *));
}

hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id) {
    uint32_t count = (uint32_t)(text->instrs.used / sizeof(hlo_instr *));
    hlo_instrs *instrs =
        hlo_arena_alloc(text->module->arena, sizeof *instrs + count * sizeof *instrs->v);
    instrs->count = count;
    memcpy(instrs->v, text->instrs.items, text->instrs.used);
    text->instrs.used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (instrs->v[i] == &text->broken) return (hlo_attr){.id = id};
    return (hlo_attr){.id = id, .u.instrs = instrs};
}

/* --------------------------------------------------------------------------------- instructions */

void hlo_text_define(hlo_text *text, hlo_span at, const char *name, bool root) {
    hlo_body *body = hlo_text_body(text);
    text->def = name;
    text->def_at = at;
    text->def_root = root;
    hlo_text_reserved(text, at, name, true);
    if (strncmp(name, "__", 2) == 0 && strncmp(name, "__xla_", 6) != 0)
        hlo_text_error(text, at, "an instruction's name does not begin with '__'");
    if (!root) return;
    if (body->root_at.length) {
        hlo_text_error(text, at, "computation '%s' has two roots", body->comp->name);
        hlo_text_note(text, body->root_at, "the first is here");
    }
    body->root_at = at;
}

static void unknown_op(hlo_text *text, hlo_span at, const char *name) {
    hlo_suggestion s = hlo_suggest(name);
    for (int op = 0; op < HLO_OP_COUNT; op++) hlo_suggest_offer(&s, hlo_ops[op].name);
    hlo_text_async_suggest(text, &s);
    hlo_text_error(text, at, "there is no opcode '%s'%s", name, hlo_suggest_meant(&s));
}

static hlo_op find_op(hlo_text *text, hlo_span at, const char *name, hlo_op *out_wrapped) {
    hlo_string_cache *memo = hlo_intern_cache(text->module, name);
    if (!memo->op) memo->op = (uint8_t)(hlo_op_find(name, hlo_intern_length(name)) + 1);
    hlo_op op = (hlo_op)(memo->op - 1);
    if (op == HLO_OP_INVALID) op = hlo_text_async_op(name, out_wrapped);
    if (op == HLO_OP_INVALID) unknown_op(text, at, name);
    return op;
}

void hlo_text_instr_begin(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *opcode) {
    hlo_frame *frame = push_frame(text, HLO_OWNER_INSTR);
    const char *source = text->source;
    bool is_name = source[at.offset] == '%' || source[at.offset + at.length - 1] == ':';
    hlo_op op = HLO_OP_CONSTANT;
    if (opcode && is_name) {
        hlo_text_error(text, at, "expected an opcode, '%s' is a name", hlo_text_quote(text, at));
        op = HLO_OP_INVALID;
    } else if (opcode) {
        op = find_op(text, at, opcode, &frame->wrapped);
    }
    frame->op = op;
    frame->op_at = at;
    frame->shape = shape;
    frame->broken = op == HLO_OP_INVALID;
    frame->name = text->def;
    frame->name_at = text->def ? text->def_at : at;
    frame->root = text->def && text->def_root;
    text->def = NULL;
}

hlo_instr *hlo_text_named(hlo_text *text, hlo_span at, const char *name) {
    return use_name(text, at, name);
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
    hlo_instr *element = find_instr(text, written);
    if (element) return element;
    element = hlo_instr_new(
        hlo_text_body(text)->comp, NULL, HLO_OP_GET_TUPLE_ELEMENT, tuple->shape->elements[index], 1,
        &tuple, hlo_arena_format(text->scratch, "%s_%lld", tuple->name, (long long)index));
    hlo_instr_set_int(element, HLO_ATTR_INDEX, index);
    element->offset = at.offset;
    bind(text, written, element);
    return element;
}

/* An operand of a text that is one instruction, where the name may be left out. */
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
    bind(text, name, instr);
    return instr;
}

void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name) {
    const hlo_body *body = hlo_text_body(text);
    hlo_instr *instr = !body->bare || find_instr(text, name) ? use_name(text, at, name)
                       : shape                               ? make_parameter(text, at, shape, name)
                                                             : NULL;
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
        hlo_text_error(text, at, "expected a name behind the shape of this operand");
    return bare;
}

void hlo_text_operand_shaped(hlo_text *text, hlo_span at, const hlo_shape *shape,
                             hlo_instr *instr) {
    if (shape && instr != &text->broken && !hlo_shape_compatible(shape, instr->shape)) {
        char has[128], says[128];
        hlo_shape_format(instr->shape, false, has, sizeof has);
        hlo_shape_format(shape, false, says, sizeof says);
        hlo_text_error(text, at, "'%s' is %s here, its definition says %s", instr->name, says, has);
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
        hlo_text_error(text, at, "a parameter's number is not negative");
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

static uint32_t operand_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->operands.used - frame->operands) / sizeof(hlo_instr *));
}

static void check_operand_count(hlo_text *text, hlo_frame *frame) {
    const hlo_op_info *op = &hlo_ops[written_op(frame)];
    uint32_t count = operand_count(text, frame), least = op->min_operands, most = op->max_operands;
    const hlo_shape *shape = frame->shape;
    if (written_op(frame) == HLO_OP_TUPLE && frame->op == HLO_OP_TUPLE && shape &&
        shape->type == HLO_TYPE_TUPLE)
        least = most = shape->rank;
    else if (most == HLO_ANY)
        most = UINT32_MAX;
    if ((count >= least && count <= most) || hlo_text_permissive_count(written_op(frame), count))
        return;
    const char *bound = most == least ? "" : count < least ? "at least " : "at most ";
    unsigned wanted = count < least ? least : most;
    hlo_text_error(text, frame->op_at, "%s takes %s%u operand%s, found %u", op->name, bound, wanted,
                   wanted == 1 ? "" : "s", count);
    frame->broken = true;
}

static void check_required(hlo_text *text, hlo_frame *frame) {
    const hlo_op_info *op = &hlo_ops[written_op(frame)];
    for (const uint8_t *id = op->required; *id != HLO_ATTR_COUNT; id++)
        if (!hlo_text_given(text, frame, (hlo_attr_id)*id)) {
            hlo_text_error(text, frame->op_at, "%s needs the attribute '%s'", op->name,
                           hlo_attrs_info[*id].name);
            frame->broken = true;
        }
    if (frame->op == HLO_OP_PARAMETER && frame->parameter < 0) {
        hlo_text_error(text, frame->op_at, "a parameter needs its number");
        frame->broken = true;
    }
}

static void infer_shape(hlo_text *text, hlo_frame *frame) {
    char why[256];
    hlo_instr *const *operands = (hlo_instr **)(text->operands.items + frame->operands);
    frame->shape = hlo_infer(text->module, frame->op, operand_count(text, frame), operands,
                             attr_count(text, frame), attrs_of(text, frame), why, sizeof why);
    if (frame->shape) return;
    frame->shape = hlo_text_permissive_shape(text, frame->op, operand_count(text, frame), operands,
                                             attr_count(text, frame), attrs_of(text, frame));
    if (frame->op == HLO_OP_BROADCAST && frame->shape && frame->shape->rank) {
        char read[128];
        hlo_shape_format(frame->shape, false, read, sizeof read);
        hlo_text_defer_error(text, frame->op_at, "%s; %s is read", why, read);
    }
    if (frame->shape) return;
    hlo_text_error(text, frame->op_at, "%s", why);
    frame->broken = true;
}

static void check_name(hlo_text *text, const hlo_frame *frame) {
    const hlo_instr *before = frame->name ? find_instr(text, frame->name) : NULL;
    if (!before) return;
    hlo_text_error(text, frame->name_at, "'%s' is defined twice in computation '%s'", frame->name,
                   hlo_text_body(text)->comp->name);
    if (before != &text->broken)
        hlo_text_note(text, (hlo_span){before->offset, 1}, "the first is here");
}

static hlo_instr *make_instr(hlo_text *text, const hlo_frame *frame) {
    hlo_body *body = hlo_text_body(text);
    const char *name = frame->name;
    if (!name) {
        char *anonymous = hlo_arena_format(text->scratch, "%s.anon", hlo_ops[frame->op].name);
        name = hlo_intern_string(text->module, anonymous);
    }
    hlo_instr *instr =
        hlo_instr_new_unnamed(body->comp, NULL, frame->op, frame->shape, operand_count(text, frame),
                              (hlo_instr **)(text->operands.items + frame->operands));
    hlo_text_give_name(text, instr, name);
    hlo_instr_take_attrs(instr, take_attrs(text, frame), attr_count(text, frame));
    instr->offset = frame->name_at.offset;
    if (frame->op == HLO_OP_CONSTANT) instr->u.literal = frame->literal;
    if (frame->op == HLO_OP_PARAMETER) {
        instr->u.parameter = frame->parameter;
        hlo_stack_push(text, &text->parameters, &instr, sizeof(hlo_instr *));
    }
    if (frame->root) body->explicit_root = instr;
    return instr;
}

hlo_instr *hlo_text_instr_end(hlo_text *text) {
    hlo_frame *frame = hlo_text_frame(text);
    if (!frame->broken) check_operand_count(text, frame);
    if (!frame->broken) check_required(text, frame);
    if (!frame->broken) hlo_text_check_requirements(text, frame, written_op(frame));
    if (!frame->broken) hlo_text_async_thread(text, frame);
    if (!frame->broken) hlo_text_drop_defaults(text, frame, written_op(frame));
    if (!frame->broken) hlo_text_make_shape(text, frame);
    if (!frame->broken) hlo_text_add_implied(text, frame, written_op(frame));
    if (!frame->broken && !frame->shape) infer_shape(text, frame);
    if (!frame->broken && frame->op == HLO_OP_MAP) hlo_text_map_all(text, frame);
    if (!frame->broken && hlo_op_is_async(frame->op)) hlo_text_async_check(text, frame);
    if (!frame->broken && written_op(frame) != frame->op) hlo_text_async_wrap(text, frame);
    check_name(text, frame);
    hlo_instr *instr = &text->broken;
    if (frame->broken)
        hlo_text_body(text)->broken = true;
    else
        instr = make_instr(text, frame);
    if (!frame->broken && frame->op == HLO_OP_ASYNC_START) hlo_text_async_begun(text, instr);
    if (!frame->broken && frame->op == HLO_OP_ASYNC_UPDATE) hlo_text_async_updated(text, instr);
    if (frame->name) bind(text, frame->name, instr);
    pop_frame(text);
    return instr;
}

/* Drops the lists that had begun; of computations, those behind `comps`: a list of theirs may be
 * open around an inline body. */
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
    if (undefined) bind(text, undefined, &text->broken);
    if (name) bind(text, name, &text->broken);
    body->nameless |= !undefined && (!name || hlo_text_begins_line(text, at.offset));
    text->def = NULL;
    drop_lists(text, body->comps);
}

void hlo_text_recover_header(hlo_text *text) {
    while (text->frames.used > sizeof(hlo_frame)) pop_frame(text);
    drop_lists(text, 0);
}

/* A computation that had begun is known by its name: calls of it are no errors of their own. */
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

/* --------------------------------------------------------------------------------- computations */

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
        .comp = hlo_computation_new(module, NULL),
        .name = name,
        .at = at,
        .depth = text->depth + (name != NULL), /* an inline one's brace has been read */
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
    hlo_text_body_begin(text, at, module->name, true);
    hlo_text_body(text)->bare = true;
    (void)hlo_unique_name(module, HLO_NAME_COMPUTATION, module->name);
    text->depth = 1;
}

void hlo_text_single_instr_end(hlo_text *text, hlo_span at) {
    hlo_text_body_end(text, at);
    hlo_text_computation_done(text);
}

void hlo_text_body_result(hlo_text *text, hlo_span at, const hlo_shape *shape) {
    hlo_text_body(text)->result = shape;
    hlo_text_body(text)->result_at = at;
}

static void refuse_parameter(hlo_text *text, hlo_span at, const hlo_computation *comp,
                             const hlo_instr *first) {
    hlo_text_error(text, at, "two parameters of computation '%s' have number %lld", comp->name,
                   (long long)first->u.parameter);
    hlo_text_note(text, (hlo_span){first->offset, 1}, "the first is here");
}

static void number_parameters(hlo_text *text, const hlo_body *body) {
    hlo_instr **found = (hlo_instr **)(text->parameters.items + body->parameters);
    size_t count = (text->parameters.used - body->parameters) / sizeof *found;
    hlo_computation *comp = body->comp;
    comp->parameter_count = (uint32_t)count;
    comp->parameters = hlo_arena_zero(text->module->arena, count * sizeof *found);
    for (size_t i = 0; i < count; i++) {
        hlo_span at = {found[i]->offset, 1};
        int64_t number = found[i]->u.parameter;
        if (number >= (int64_t)count)
            hlo_text_error(text, at, "parameter number %lld, but computation '%s' has %zu of them",
                           (long long)number, comp->name, count);
        else if (comp->parameters[number])
            refuse_parameter(text, at, comp, comp->parameters[number]);
        else
            comp->parameters[number] = found[i];
    }
}

static void check_result(hlo_text *text, const hlo_body *body) {
    const hlo_shape *root = body->comp->root->shape;
    if (!body->result || hlo_shape_compatible(body->result, root)) return;
    char says[128], is[128];
    hlo_shape_format(body->result, false, says, sizeof says);
    hlo_shape_format(root, false, is, sizeof is);
    hlo_text_error(text, body->result_at, "the signature's result is %s, the root is %s", says, is);
    hlo_text_note(text, (hlo_span){body->comp->root->offset, 1}, "the root is here");
}

void hlo_text_body_end(hlo_text *text, hlo_span at) {
    hlo_body *body = hlo_text_body(text);
    hlo_computation *comp = body->comp;
    if (!body->broken) {
        if (!comp->last)
            hlo_text_error(text, at, "computation '%s' has no instruction", comp->name);
        else
            hlo_computation_set_root(comp, body->explicit_root ? body->explicit_root : comp->last);
        number_parameters(text, body);
        if (comp->root) check_result(text, body);
    }
    text->parameters.used = body->parameters;
    while (text->hidden.used > body->hidden) {
        const hidden_name *hidden = hlo_stack_top(&text->hidden, sizeof *hidden);
        hlo_intern_bind(hidden->name, hidden->meaning);
        text->hidden.used -= sizeof *hidden;
    }
    push_frame(text, HLO_OWNER_COMPUTATION);
}

hlo_computation *hlo_text_computation_done(hlo_text *text) {
    hlo_body *body = hlo_text_body(text);
    hlo_computation *comp = body->comp;
    hlo_frame *frame = hlo_text_frame(text);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    text->threads |= attr_count(text, frame) > 0;
    comp->attr_count = attr_count(text, frame);
    comp->attrs = take_attrs(text, frame);
    pop_frame(text);
    text->bodies.used -= sizeof *body;
    hlo_text_names_now(text, comp, body->bare);
    if (body->name) {
        hlo_string_cache *memo = hlo_intern_cache(text->module, body->name);
        if (memo->comp) {
            hlo_text_error(text, body->at, "computation '%s' is defined twice", body->name);
            hlo_text_note(text, (hlo_span){memo->comp->offset, 1}, "the first is here");
        }
        memo->comp = comp;
    }
    hlo_computation_move_last(comp);
    return comp;
}

/* --------------------------------------------------------------------------------------- shapes */

const hlo_shape *hlo_text_tuple(hlo_text *text, hlo_span at, size_t from) {
    const hlo_shape **elements = (const hlo_shape **)(text->shapes.items + from);
    uint32_t count = (uint32_t)((text->shapes.used - from) / sizeof *elements);
    const hlo_shape *tuple =
        hlo_shape_tuple(text->module, count, (const hlo_shape *const *)elements);
    text->shapes.used = from;
    (void)at;
    return tuple;
}

const hlo_shapes *hlo_text_shapes(hlo_text *text, size_t from) {
    size_t size = text->shapes.used - from;
    hlo_shapes *shapes = hlo_arena_alloc(text->module->arena, sizeof *shapes + size);
    shapes->count = (uint32_t)(size / sizeof *shapes->v);
    if (size) memcpy(shapes->v, text->shapes.items + from, size);
    text->shapes.used = from;
    return shapes;
}

/* ------------------------------------------------------------------------ header and its tables */

void hlo_text_header(hlo_text *text, const char *name) {
    if (name) text->module->name = name;
    push_frame(text, HLO_OWNER_MODULE);
}

void hlo_text_header_done(hlo_text *text) {
    const hlo_frame *frame = hlo_text_frame(text);
    hlo_text_drop_defaults(text, frame, HLO_OP_INVALID);
    text->module->attr_count = attr_count(text, frame);
    text->module->attrs = take_attrs(text, frame);
    pop_frame(text);
}

/* HLO's reader counts for itself. */
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

void hlo_text_row_begin(hlo_text *text, hlo_owner owner) {
    push_frame(text, owner);
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
    pop_frame(text);
}

static void *take_rows(hlo_text *text, const hlo_stack *stack, size_t size, uint32_t *out_count) {
    *out_count = (uint32_t)(stack->used / size);
    return hlo_arena_copy(text->module->arena, stack->items, stack->used);
}

/* ------------------------------------------------------------------------------- the whole text */

static void finish_module(hlo_text *text) {
    hlo_module *module = text->module;
    hlo_tables *tables = &module->tables;
    tables->files = take_rows(text, &text->files, sizeof *tables->files, &tables->file_count);
    tables->functions =
        take_rows(text, &text->functions, sizeof *tables->functions, &tables->function_count);
    tables->locations =
        take_rows(text, &text->locations, sizeof *tables->locations, &tables->location_count);
    tables->frames =
        take_rows(text, &text->stack_frames, sizeof *tables->frames, &tables->frame_count);
    if (!module->entry) module->entry = module->last;
    if (*module->name || !module->entry) return;
    char *name = hlo_arena_format(text->scratch, "module_%s", module->entry->name);
    module->name = hlo_intern_string(module, name);
}

/* What has to be given back however the reading ends. */
typedef struct reading {
    hlo_module *module;
    hlo_arena *scratch;
} reading;

/* So that the items of a stack are somewhere even while there are none. */
static void begin_stacks(hlo_text *text) {
    hlo_stack *stacks[] = {
        &text->frames,        &text->operands,   &text->attrs,     &text->bodies,
        &text->parameters,    &text->shapes,     &text->comps,     &text->instrs,
        &text->hidden,        &text->renamed,    &text->ints,      &text->files,
        &text->literals,      &text->functions,  &text->locations, &text->stack_frames,
        &text->line.operands, &text->line.attrs, &text->starts};
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++)
        stacks[i]->items = hlo_arena_alloc(text->scratch, 0);
}

static hlo_status read_text(reading *r, hlo_content *content, const char *name, uint32_t line,
                            unsigned *errors_left, const hlo_diag_sink *sink) {
    const size_t size = content->size;
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    hlo_module *module = r->module = hlo_module_new(&recover);
    r->scratch = hlo_arena_new(&recover);
    if (!module || !r->scratch) return HLO_OUT_OF_MEMORY;
    module->file = hlo_intern_string(module, name);
    module->source_line = line;
    hlo_text text = {.module = module,
                     .sink = sink,
                     .scratch = r->scratch,
                     .size = size,
                     .closed = UINT32_MAX,
                     .errors_left = errors_left};
    if (size > HLO_LARGEST_SOURCE) {
        hlo_text_error(&text, (hlo_span){0, 0}, "the text has %zu bytes, at most %d are read", size,
                       HLO_LARGEST_SOURCE);
        return HLO_INVALID_INPUT;
    }
    begin_stacks(&text);
    text.known = hlo_attr_cache_new(text.scratch);
    module->source = text.source = hlo_content_take(content, module->arena);
    module->source_size = size;
    hlo_text_scan_begin(&text);
    int failed = hlo_yyparse(&text);
    if (failed || text.errors) return HLO_INVALID_INPUT;
    finish_module(&text);
    hlo_arena_set_recover(module->arena, NULL);
    return HLO_OK;
}

hlo_status hlo_text_parse(hlo_content *content, const char *name, uint32_t line,
                          unsigned *errors_left, const hlo_diag_sink *sink,
                          hlo_module **out_module) {
    reading r = {.module = NULL};
    hlo_status status = read_text(&r, content, name, line, errors_left, sink);
    hlo_arena_free(r.scratch);
    if (status != HLO_OK) {
        hlo_module_free(r.module);
        r.module = NULL;
    }
    *out_module = r.module;
    return status;
}

hlo_status hlo_module_parse(const char *text, size_t size, const char *name,
                            const hlo_diag_sink *sink, hlo_module **out_module) {
    unsigned errors_left = HLO_MOST_ERRORS;
    hlo_content content = {.bytes = (char *)text, .size = size};
    return hlo_text_parse(&content, name, 1, &errors_left, sink, out_module);
}
