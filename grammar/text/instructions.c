/* SPDX-License-Identifier: Apache-2.0 */
/* Reads operands, checks instructions against ir/table/op.def, and builds the IR. For asynchronous
 * operations that wrap one instruction, such as `negate-start(...)`, also builds the computation
 * that they call. Checks the requirements of XLA's parser beyond the presence of operands and
 * attributes. Accepts instructions that break the rules of their opcode if XLA's parser accepts
 * them. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/infer/infer.h"
#include "ir/intern.h"
#include "ir/ir.h"

/* ------------------------------------------------------------------------- asynchronous opcodes */

static const struct {
    const char *ending;
    hlo_op op;
} forms[] = {
    {"-start", HLO_OP_ASYNC_START}, {"-update", HLO_OP_ASYNC_UPDATE}, {"-done", HLO_OP_ASYNC_DONE}};
enum { FORMS = sizeof forms / sizeof *forms };

static bool can_be_wrapped(hlo_op op) {
    return op != HLO_OP_INVALID && op != HLO_OP_PARAMETER && op != HLO_OP_CONSTANT &&
           !hlo_op_is_async(op);
}

/* Splits `opcode-start`, `-update` or `-done`; returns HLO_OP_INVALID for any other name. */
static hlo_op async_op(const char *name, hlo_op *out_wrapped) {
    size_t length = strlen(name);
    for (size_t i = 0; i < FORMS; i++) {
        size_t ending = strlen(forms[i].ending);
        if (length <= ending || strcmp(name + length - ending, forms[i].ending) != 0) continue;
        hlo_op wrapped = hlo_op_find(name, length - ending);
        if (!can_be_wrapped(wrapped)) return HLO_OP_INVALID;
        *out_wrapped = wrapped;
        return forms[i].op;
    }
    return HLO_OP_INVALID;
}

static void reject_async(hlo_text *text, hlo_frame *frame, const char *why, const char *what) {
    hlo_text_error(text, frame->op_at, why, what);
    frame->broken = true;
}

/* Finds the start of the asynchronous operation of `instr`; NULL if `instr` is neither a start nor
 * an update. */
static const hlo_instruction *start_of(const hlo_text *text, const hlo_instruction *instr) {
    if (instr->op == HLO_OP_ASYNC_START) return instr;
    if (instr->op != HLO_OP_ASYNC_UPDATE) return NULL;
    return ((const hlo_instruction **)text->starts.items)[instr->id];
}

/* Reports an update or a done on another thread than its start. */
static void check_thread(hlo_text *text, hlo_frame *frame) {
    if (frame->op != HLO_OP_ASYNC_UPDATE && frame->op != HLO_OP_ASYNC_DONE) return;
    const hlo_attr *here = hlo_text_given(text, frame, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    const hlo_instruction *start = start_of(text, hlo_frame_operands(text, frame)[0]);
    if (!here || !start) return;
    const hlo_attr *there = hlo_instr_attr(start, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    const char *thread = there ? there->u.str : hlo_main_thread;
    if (strcmp(here->u.str, thread) != 0)
        reject_async(text, frame, "expected the thread of the start, '%s'", thread);
}

static void push_called(void *user, hlo_computation *called) {
    hlo_text *text = user;
    hlo_stack_push(text, &text->comps, &called, sizeof called);
}

/* Sets the thread of the computations that the start calls, directly or through others. Skips
 * computations that are already on the thread: their callees are, too. */
static void begin_async(hlo_text *text, const hlo_instruction *start) {
    const hlo_attr *thread = hlo_instr_attr(start, HLO_ATTR_ASYNC_EXECUTION_THREAD);
    hlo_computation *comp = hlo_instr_comp(start, HLO_ATTR_CALLS);
    if (!thread && !text->threads) return;
    const size_t from = text->comps.used;
    text->threads = true;
    hlo_computation_set_thread(comp, thread ? thread->u.str : NULL);
    for (bool changed = true;;) {
        for (hlo_instruction *instr = changed ? comp->first : NULL; instr;
             instr = hlo_instr_next(instr))
            if (!hlo_op_is_async(instr->op)) hlo_instr_visit_called(instr, push_called, text);
        if (text->comps.used == from) return;
        text->comps.used -= sizeof comp;
        memcpy(&comp, text->comps.items + text->comps.used, sizeof comp);
        changed = hlo_computation_set_thread(comp, thread ? thread->u.str : NULL);
    }
}

/* Checks the shape of a start, and the operand of an update or done. */
static void check_async(hlo_text *text, hlo_frame *frame) {
    if (frame->op == HLO_OP_ASYNC_START) {
        const hlo_shape *shape = frame->shape;
        if (shape->type != HLO_TYPE_TUPLE || shape->rank < 2 ||
            shape->elements[0]->type != HLO_TYPE_TUPLE) {
            char is[128];
            hlo_shape_format(shape, false, is, sizeof is);
            reject_async(
                text, frame,
                "the start of an asynchronous operation must be ((operands), result, ...), not %s",
                is);
        }
    } else {
        const hlo_instruction *operand = hlo_frame_operands(text, frame)[0];
        const hlo_instruction *start = start_of(text, operand);
        if (!start) {
            reject_async(
                text, frame,
                "the operand '%s' is not the start or an update of an asynchronous operation",
                operand->name);
            return;
        }
        const hlo_computation *comp = hlo_instr_comp(start, HLO_ATTR_CALLS);
        /* Drop the attributes that an async-update or async-done repeats from its async-start. */
        hlo_attr *attrs = hlo_frame_attrs(text, frame);
        size_t given = (text->attrs.used - frame->attrs) / sizeof *attrs, kept = 0;
        for (size_t i = 0; i < given; i++) {
            if (attrs[i].id == HLO_ATTR_CALLS && attrs[i].u.comp != comp)
                reject_async(text, frame, "expected the computation of the start, '%s'",
                             comp->name);
            if (attrs[i].id != HLO_ATTR_CALLS && attrs[i].id != HLO_ATTR_ASYNC_EXECUTION_THREAD)
                attrs[kept++] = attrs[i];
        }
        text->attrs.used = frame->attrs + kept * sizeof *attrs;
        if (frame->wrapped == HLO_OP_INVALID || !comp->root) return;
        const hlo_op op = comp->root->op;
        if (op != frame->wrapped)
            reject_async(text, frame, "expected the operation of the start, %s", hlo_ops[op].name);
    }
}

/* Builds the computation of the operation `frame->wrapped`, with the attributes of that opcode, and
 * adds the attribute that calls it. */
static void wrap(hlo_text *text, hlo_frame *frame) {
    hlo_module *module = text->module;
    hlo_instruction **operands = hlo_frame_operands(text, frame);
    size_t count = (text->operands.used - frame->operands) / sizeof *operands;
    hlo_computation *comp = hlo_comp_new(module, "async_wrapped");
    comp->offset = frame->name_at.offset;
    comp->parameters = hlo_arena_array(module->arena, count, sizeof *comp->parameters);
    comp->parameter_count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        hlo_instruction *parameter =
            hlo_instr_new(comp, NULL, HLO_OP_PARAMETER, operands[i]->shape, 0, NULL, "async_param");
        parameter->offset = frame->name_at.offset;
        parameter->u.parameter = (int64_t)i;
        comp->parameters[i] = parameter;
    }
    hlo_instruction *root = hlo_instr_new(comp, NULL, frame->wrapped, frame->shape->elements[1],
                                          comp->parameter_count, comp->parameters, "async_op");
    root->offset = frame->name_at.offset;
    hlo_comp_set_root(comp, root);

    hlo_attr *attrs = hlo_frame_attrs(text, frame);
    size_t given = (text->attrs.used - frame->attrs) / sizeof *attrs, kept = 0;
    hlo_attr *inner = hlo_arena_array(module->arena, given, sizeof *inner);
    uint32_t taken = 0;
    for (size_t i = 0; i < given; i++) {
        if (hlo_op_has(frame->wrapped, attrs[i].id))
            inner[taken++] = attrs[i];
        else
            attrs[kept++] = attrs[i];
    }
    hlo_instr_take_attrs(root, inner, taken);
    text->attrs.used = frame->attrs + kept * sizeof *attrs;
    const hlo_attr calls = {.id = HLO_ATTR_CALLS, .u.comp = comp};
    hlo_stack_push(text, &text->attrs, &calls, sizeof calls);
}

/* --------------------------------------------------------------------------------- requirements */

__attribute__((format(printf, 3, 4))) static void reject(hlo_text *text, hlo_frame *frame,
                                                         const char *format, ...) {
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hlo_text_error(text, frame->op_at, "%s: %s", hlo_ops[frame->op].name, why);
    frame->broken = true;
}

static hlo_instruction *operand(const hlo_text *text, const hlo_frame *frame, size_t index) {
    return (hlo_frame_operands(text, frame))[index];
}

/* Requires pred[] and two named computations, or s32[] and a list of computations. */
static void require_branches(hlo_text *text, hlo_frame *frame) {
    const hlo_shape *selector = operand(text, frame, 0)->shape;
    const hlo_attr *taken = hlo_text_given(text, frame, HLO_ATTR_TRUE_COMPUTATION),
                   *other = hlo_text_given(text, frame, HLO_ATTR_FALSE_COMPUTATION),
                   *branches = hlo_text_given(text, frame, HLO_ATTR_BRANCH_COMPUTATIONS);
    size_t count = 2;
    if (!hlo_shape_is_scalar(selector) ||
        (selector->type != HLO_TYPE_PRED && selector->type != HLO_TYPE_S32)) {
        reject(text, frame, "operand 0 must be pred[] or s32[]");
    } else if (selector->type == HLO_TYPE_PRED) {
        if (!taken || !other || branches)
            reject(text, frame,
                   "a pred[] operand requires true_computation= and false_computation=");
    } else if (!branches || taken || other) {
        reject(text, frame, "an s32[] operand requires branch_computations=");
    } else {
        count = branches->u.comps->count;
    }
    if (!frame->broken && (!count || hlo_frame_operand_count(text, frame) != count + 1))
        reject(text, frame, "each computation needs one operand");
}

enum { MANY, ONE, FIRST }; /* number of dimensions; FIRST: only the first of them is used */
static const uint8_t dimensions[HLO_OP_COUNT] = {
#define HLO_PERMISSIVE_COUNT(id, least, step)
#define HLO_ONE_DIMENSION(id, first) [HLO_OP_##id] = (first) ? FIRST : ONE,
#include "grammar/text/permissive.def"
#undef HLO_ONE_DIMENSION
#undef HLO_PERMISSIVE_COUNT
};

/* Reports each requirement of XLA's parser on an `op`, or on its asynchronous form, that the
 * instruction does not meet. */
static void check_requirements(hlo_text *text, hlo_frame *frame, hlo_op op) {
    hlo_attr *dims = hlo_text_given(text, frame, HLO_ATTR_DIMENSIONS);
    if (dimensions[op] != MANY && dims && dims->u.ints->count != 1) {
        if (dims->u.ints->count && dimensions[op] == FIRST) {
            hlo_text_defer_error(text, frame->op_at,
                                 "'dimensions' must name one dimension: the first is read");
            dims->u.ints = hlo_ints_new(text->module, 1, dims->u.ints->v);
        } else {
            reject(text, frame, "'dimensions' must name one dimension");
        }
    }
    switch (op) {
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START:
    case HLO_OP_REDUCE_SCATTER: {
        const hlo_attr *global = hlo_text_given(text, frame, HLO_ATTR_USE_GLOBAL_DEVICE_IDS);
        if (global && global->u.i && !hlo_text_given(text, frame, HLO_ATTR_CHANNEL_ID) &&
            !hlo_text_given(text, frame, HLO_ATTR_MODE))
            reject(text, frame, "use_global_device_ids=true needs a channel_id");
    } break;
    case HLO_OP_SEND_DONE:
    case HLO_OP_RECV_DONE: { /* both instructions of a transfer have the same channel */
        const hlo_instruction *start = operand(text, frame, 0);
        const hlo_attr *here = hlo_text_given(text, frame, HLO_ATTR_CHANNEL_ID),
                       *there = hlo_instr_attr(start, HLO_ATTR_CHANNEL_ID);
        if (start->op == HLO_OP_SEND || start->op == HLO_OP_RECV) {
            if (!here != !there)
                reject(text, frame, "%s a channel_id, but '%s' has %s", here ? "has" : "lacks",
                       start->name, there ? "one" : "none");
            else if (here && here->u.i != there->u.i)
                reject(text, frame, "channel_id is %lld, expected %lld as in '%s'",
                       (long long)here->u.i, (long long)there->u.i, start->name);
        }
    } break;
    case HLO_OP_CONDITIONAL: require_branches(text, frame); break;
    case HLO_OP_CUSTOM_CALL: {
        const hlo_attr *attr = hlo_text_given(text, frame, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
        if (attr) {
            const hlo_shapes *layouts = attr->u.shapes;
            const uint32_t count = hlo_frame_operand_count(text, frame);
            if (layouts->count != count)
                reject(text, frame, "operand_layout_constraints has %u shapes for %u operands",
                       layouts->count, count);
            for (uint32_t i = 0; i < layouts->count && !frame->broken; i++) {
                const hlo_shape *wanted = operand(text, frame, i)->shape;
                char has[96], is[96];
                if (hlo_shape_compatible(layouts->v[i], wanted)) continue;
                hlo_shape_format(layouts->v[i], false, has, sizeof has);
                hlo_shape_format(wanted, false, is, sizeof is);
                reject(text, frame, "operand_layout_constraints has %s for operand %u, which is %s",
                       has, i, is);
            }
        }
    } break;
    case HLO_OP_RECV:
    case HLO_OP_INFEED:
        if (frame->op == op && frame->shape &&
            (frame->shape->type != HLO_TYPE_TUPLE || !frame->shape->rank))
            reject(text, frame, "the result must be a tuple that begins with the data");
        break;
    default: break;
    }
}

/* -------------------------------------------------------------------- what XLA's parser accepts */

/* True if XLA's parser accepts `count` operands, although HLO forbids them. */
static bool permits_count(hlo_op op, uint32_t count) {
    static const struct {
        uint8_t op, least, step;
    } rows[] = {
#define HLO_PERMISSIVE_COUNT(id, least, step) {HLO_OP_##id, least, step},
#define HLO_ONE_DIMENSION(id, first)
#include "grammar/text/permissive.def"
#undef HLO_ONE_DIMENSION
#undef HLO_PERMISSIVE_COUNT
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].op == op)
            return count >= rows[i].least && (count - rows[i].least) % rows[i].step == 0;
    return false;
}

/* Computes the dimensions of an elementwise result. A scalar operand gets the dimensions of the
 * other operand. A dimension of 1 gets the other operand's size. */
static bool join_dims(const hlo_shape *a, const hlo_shape *b, int64_t *out_dims) {
    if (!a->rank || !b->rank) {
        const hlo_shape *larger = a->rank ? a : b;
        if (larger->rank) memcpy(out_dims, larger->dims, larger->rank * sizeof *out_dims);
        return true;
    }
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++) {
        if (a->dims[i] != b->dims[i] && a->dims[i] != 1 && b->dims[i] != 1) return false;
        out_dims[i] = a->dims[i] == 1 ? b->dims[i] : a->dims[i];
    }
    return true;
}

/* Returns the shape that XLA's parser infers where hlo_infer() fails; NULL if XLA's parser fails,
 * too. */
static const hlo_shape *permissive_shape(hlo_text *text, hlo_op op, uint32_t count,
                                         hlo_instruction *const *operands, uint32_t attr_count,
                                         const hlo_attr *attrs) {
    const hlo_op_info *info = &hlo_ops[op];
    const hlo_ints *sizes = NULL;
    for (uint32_t i = 0; i < attr_count; i++)
        if (attrs[i].id == HLO_ATTR_DIMENSIONS) sizes = attrs[i].u.ints;
    if (op == HLO_OP_SORT) {
        /* Infer a sort without its comparator. */
        const hlo_shape **shapes = hlo_arena_array(text->scratch, count, sizeof *shapes);
        for (uint32_t i = 0; i < count; i++) {
            const hlo_shape *shape = shapes[i] = operands[i]->shape, *first = shapes[0];
            if (!hlo_shape_is_array(shape) || shape->rank != first->rank ||
                (shape->rank &&
                 memcmp(shape->dims, first->dims, shape->rank * sizeof *shape->dims)))
                return NULL;
        }
        return count == 1 ? shapes[0] : hlo_shape_tuple(text->module, count, shapes);
    }
    if (op == HLO_OP_BROADCAST) {
        /* Infer a broadcast whose `dimensions` are the sizes before those of the operand. */
        const hlo_shape *operand = operands[0]->shape;
        uint32_t added = sizes ? sizes->count : 0, rank = added + operand->rank;
        if (!hlo_shape_is_array(operand) || rank > HLO_LARGEST_RANK || (!sizes && operand->rank))
            return NULL;
        int64_t dims[HLO_LARGEST_RANK];
        bool dynamic[HLO_LARGEST_RANK] = {false};
        for (uint32_t i = 0; i < rank; i++) {
            dims[i] = i < added ? sizes->v[i] : operand->dims[i - added];
            if (i < added && dims[i] < 0) return NULL;
            dynamic[i] = i >= added && operand->dynamic && operand->dynamic[i - added];
        }
        const hlo_shape *shape = hlo_shape_array(text->module, operand->type, rank, dims);
        if (!operand->dynamic) return shape;
        hlo_shape bounded = *shape;
        bounded.dynamic = dynamic;
        return hlo_shape_intern(text->module, &bounded);
    }
    if (info->min_operands == 2 && info->max_operands == 2 && info->flags & HLO_ELEMENTWISE) {
        const hlo_shape *a = operands[0]->shape, *b = operands[1]->shape;
        bool floats = hlo_type_is_float(a->type) && hlo_type_is_float(b->type);
        if (!hlo_shape_is_array(a) || !hlo_shape_is_array(b) || (a->type != b->type && !floats))
            return NULL;
        hlo_instruction *wider = operands[hlo_types[b->type].bits > hlo_types[a->type].bits];
        hlo_instruction *both[] = {wider, wider};
        const hlo_shape *alike = hlo_infer(text->module, op, 2, both, attr_count, attrs, NULL, 0);
        int64_t dims[HLO_LARGEST_RANK];
        uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
        if (!alike || a->dynamic || b->dynamic || !join_dims(a, b, dims)) return NULL;
        return hlo_shape_array(text->module, alike->type, rank, dims);
    }
    return NULL;
}

/* Sets the shape that XLA's parser infers for the instruction, independently of the text. */
static void make_shape(hlo_text *text, hlo_frame *frame) {
    hlo_instruction *const *operands = hlo_frame_operands(text, frame);
    const hlo_shape *given = frame->shape, *token, *data;
    switch (frame->op) {
    case HLO_OP_AFTER_ALL:
    case HLO_OP_OUTFEED:
    case HLO_OP_SEND_DONE: data = NULL; break;
    case HLO_OP_ADD_DEPENDENCY:
    case HLO_OP_SEND: data = operands[0]->shape; break;
    case HLO_OP_RECV_DONE:
        if (operands[0]->shape->type != HLO_TYPE_TUPLE || !operands[0]->shape->rank) return;
        data = operands[0]->shape->elements[0];
        break;
    case HLO_OP_RECV:
    case HLO_OP_INFEED:
        if (!given) return;
        data = given->elements[0];
        break;
    default: return;
    }
    token = hlo_shape_array(text->module, HLO_TYPE_TOKEN, 0, NULL);
    if (!data) {
        frame->shape = token;
    } else if (frame->op == HLO_OP_ADD_DEPENDENCY) {
        frame->shape = data;
    } else {
        const bool flies = frame->op == HLO_OP_SEND || frame->op == HLO_OP_RECV;
        const hlo_shape *context =
            flies ? hlo_shape_array(text->module, HLO_TYPE_U32, 0, NULL) : token;
        const hlo_shape *elements[] = {data, context, token};
        frame->shape = hlo_shape_tuple(text->module, flies ? 3 : 2, elements);
    }
    if (!given || hlo_shape_compatible(frame->shape, given)) return;
    char made[128], says[128];
    hlo_shape_format(frame->shape, false, made, sizeof made);
    hlo_shape_format(given, false, says, sizeof says);
    hlo_text_defer_error(text, frame->op_at,
                         "the inferred shape is %s, but the declared shape is %s", made, says);
}

/* --------------------------------------------------------------------------------- instructions */

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
        op = cache->op ? (hlo_op)(cache->op - 1) : hlo_op_find(opcode, hlo_intern_length(opcode));
        if (op != HLO_OP_INVALID) cache->op = (uint8_t)(op + 1);
        if (op == HLO_OP_INVALID) op = async_op(opcode, &frame->wrapped);
        if (op == HLO_OP_INVALID) {
            hlo_suggestion s = hlo_suggest(opcode);
            for (int other = 0; other < HLO_OP_COUNT; other++)
                hlo_suggest_offer(&s, hlo_ops[other].name);
            for (int other = 0; other < HLO_OP_COUNT; other++)
                for (size_t i = 0; can_be_wrapped((hlo_op)other) && i < FORMS; i++)
                    hlo_suggest_offer(&s, hlo_arena_format(text->scratch, "%s%s",
                                                           hlo_ops[other].name, forms[i].ending));
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

hlo_instruction *hlo_text_element(hlo_text *text, hlo_span at, hlo_instruction *tuple,
                                  int64_t index) {
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
    hlo_instruction *element = hlo_text_find_instr(text, written);
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
static hlo_instruction *make_parameter(hlo_text *text, hlo_span at, const hlo_shape *shape,
                                       const char *name) {
    const size_t number = text->parameters.used / sizeof(hlo_instruction *);
    if (!name)
        name = hlo_intern_string(text->module, hlo_arena_format(text->scratch, "_%zu", number));
    hlo_instruction *instr = hlo_instr_new_interned(hlo_text_body(text)->comp, NULL,
                                                    HLO_OP_PARAMETER, shape, 0, NULL, name);
    instr->offset = at.offset;
    instr->u.parameter = (int64_t)number;
    hlo_stack_push(text, &text->parameters, &instr, sizeof(hlo_instruction *));
    hlo_text_bind(text, name, instr);
    return instr;
}

void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name) {
    hlo_instruction *instr = hlo_text_find_instr(text, name);
    const bool plain = instr && text->source[at.offset] == '%'; /* with a `%`, the name cannot be a
                                                                 * keyword */
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

/* Returns the end of the `%name` at `at` if a `)` or `, ` follows it, otherwise NULL. */
static const char *operand_end(const char *at) {
    if (at[0] != '%' || !hlo_text_begins_name(at[1])) return NULL;
    do at++;
    while (hlo_text_in_name(*at));
    return *at == ')' || (at[0] == ',' && at[1] == ' ') ? at : NULL;
}

void hlo_text_names(hlo_text *text) {
    const char *at = *text->scan_at, *end = operand_end(at), *next, *next_end;
    for (; end; at = next, end = next_end) {
        const bool last = *end == ')';
        next = last ? end : end + 2;
        next_end = last ? NULL : operand_end(next);
        if (!last && !next_end) return;
        const hlo_span where = {(uint32_t)(at - text->source), (uint32_t)(end - at)};
        hlo_text_operand(text, where, NULL, hlo_intern(text->module, at + 1, where.length - 1));
        hlo_text_scan_from(text, next);
    }
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
                             hlo_instruction *instr) {
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

void hlo_text_operand_instr(hlo_text *text, hlo_instruction *instr) {
    hlo_stack_push(text, &text->operands, &instr, sizeof(hlo_instruction *));
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
    if ((count < least || count > most) && !permits_count(op, count)) {
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
    if (!frame->broken) check_requirements(text, frame, op);
    if (!frame->broken) check_thread(text, frame);
    if (frame->broken) return;
    hlo_text_drop_defaults(text, frame, op);
    make_shape(text, frame);
    hlo_text_add_implied(text, frame, op);
    if (!frame->shape) {
        char why[256];
        hlo_instruction *const *operands = hlo_frame_operands(text, frame);
        const uint32_t attr_count = hlo_frame_attr_count(text, frame);
        const hlo_attr *attrs = hlo_frame_attrs(text, frame);
        frame->shape =
            hlo_infer(text->module, frame->op, count, operands, attr_count, attrs, why, sizeof why);
        if (!frame->shape) {
            frame->shape = permissive_shape(text, frame->op, count, operands, attr_count, attrs);
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
    frame->broken = !hlo_text_check_tuple(text, frame->op_at, &frame->shape);
    if (!frame->broken && frame->op == HLO_OP_MAP) hlo_text_map_all(text, frame);
    if (!frame->broken && hlo_op_is_async(frame->op)) check_async(text, frame);
    if (!frame->broken && op != frame->op) wrap(text, frame);
}

hlo_instruction *hlo_text_instr_end(hlo_text *text) {
    hlo_frame *frame = hlo_text_frame(text);
    hlo_body *body = hlo_text_body(text);
    if (!frame->broken) check_frame(text, frame);
    const hlo_instruction *before = frame->name ? hlo_text_find_instr(text, frame->name) : NULL;
    if (before) {
        hlo_text_error(text, frame->name_at, "'%s' is defined twice in computation '%s'",
                       frame->name, body->comp->name);
        if (before != &text->broken)
            hlo_text_note(text, (hlo_span){before->offset, 1}, "the first is here");
    }
    hlo_instruction *instr = &text->broken;
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
            hlo_stack_push(text, &text->parameters, &instr, sizeof(hlo_instruction *));
        }
        if (frame->root) body->explicit_root = instr;
        if (frame->op == HLO_OP_ASYNC_START) begin_async(text, instr);
        if (frame->op == HLO_OP_ASYNC_UPDATE) {
            const hlo_instruction *start = start_of(text, hlo_instr_operand(instr, 0)),
                                  *none = NULL;
            while (text->starts.used / sizeof none < instr->id)
                hlo_stack_push(text, &text->starts, &none, sizeof none);
            hlo_stack_push(text, &text->starts, &start, sizeof start);
        }
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
