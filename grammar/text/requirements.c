/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of XLA's parser on instructions beyond the presence of operands and attributes, and
 * instructions that it accepts although they break the rules of their opcode: other numbers of
 * operands, and shapes that hlo_infer() rejects. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/infer/infer.h"
#include "ir/text/print.h"

/* --------------------------------------------------------------------------------- requirements */

static void reject(hlo_text *text, hlo_frame *frame, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void reject(hlo_text *text, hlo_frame *frame, const char *format, ...) {
    char why[256];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    hlo_text_error(text, frame->op_at, "%s: %s", hlo_ops[frame->op].name, why);
    frame->broken = true;
}

static hlo_instr *operand(const hlo_text *text, const hlo_frame *frame, size_t index) {
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

enum { MANY, ONE, FIRST }; /* dimensions of an opcode; FIRST: the first of several is used */
static const uint8_t dimensions[HLO_OP_COUNT] = {
#define HLO_PERMISSIVE_COUNT(id, least, step)
#define HLO_ONE_DIMENSION(id, first) [HLO_OP_##id] = (first) ? FIRST : ONE,
#include "grammar/text/permissive.def"
#undef HLO_ONE_DIMENSION
#undef HLO_PERMISSIVE_COUNT
};

void hlo_text_check_requirements(hlo_text *text, hlo_frame *frame, hlo_op op) {
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
    case HLO_OP_RECV_DONE: { /* both ends of a transfer have the same channel */
        const hlo_instr *start = operand(text, frame, 0);
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

/* ------------------------------------------------------------------------------ what it accepts */

bool hlo_text_permissive_count(hlo_op op, uint32_t count) {
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

/* Joins dimensions. A dimension of 1, or a missing one, gets the size of the other operand. */
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

const hlo_shape *hlo_text_permissive_shape(hlo_text *text, hlo_op op, uint32_t count,
                                           hlo_instr *const *operands, uint32_t attr_count,
                                           const hlo_attr *attrs) {
    const hlo_op_info *info = &hlo_ops[op];
    const hlo_ints *sizes = NULL;
    for (uint32_t i = 0; i < attr_count; i++)
        if (attrs[i].id == HLO_ATTR_DIMENSIONS) sizes = attrs[i].u.ints;
    if (op == HLO_OP_SORT) {
        /* A sort, without its comparator. */
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
        /* A broadcast whose `dimensions` are the sizes before those of the operand. */
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
        hlo_instr *wider = operands[hlo_types[b->type].bits > hlo_types[a->type].bits];
        hlo_instr *both[] = {wider, wider};
        const hlo_shape *alike = hlo_infer(text->module, op, 2, both, attr_count, attrs, NULL, 0);
        int64_t dims[HLO_LARGEST_RANK];
        uint32_t rank = a->rank > b->rank ? a->rank : b->rank;
        if (!alike || a->dynamic || b->dynamic || !join_dims(a, b, dims)) return NULL;
        return hlo_shape_array(text->module, alike->type, rank, dims);
    }
    return NULL;
}

void hlo_text_make_shape(hlo_text *text, hlo_frame *frame) {
    hlo_instr *const *operands = hlo_frame_operands(text, frame);
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
