/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that XLA's parser accepts although they break the rules of their opcode: other
 * numbers of operands, and shapes that hlo_infer() rejects. */
#include <string.h>

#include "grammar/text/actions.h"
#include "ir/infer/infer.h"
#include "ir/text/print.h"

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

/* Infers a broadcast whose `dimensions` are the sizes before those of the operand. */
static const hlo_shape *broadcast(hlo_text *text, const hlo_shape *operand, const hlo_ints *sizes) {
    uint32_t count = sizes ? sizes->count : 0, rank = count + operand->rank;
    if (!hlo_shape_is_array(operand) || rank > HLO_LARGEST_RANK || (!sizes && operand->rank))
        return NULL;
    int64_t dims[HLO_LARGEST_RANK];
    bool dynamic[HLO_LARGEST_RANK] = {false};
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = i < count ? sizes->v[i] : operand->dims[i - count];
        if (i < count && dims[i] < 0) return NULL;
        dynamic[i] = i >= count && operand->dynamic && operand->dynamic[i - count];
    }
    const hlo_shape *shape = hlo_shape_array(text->module, operand->type, rank, dims);
    if (!operand->dynamic) return shape;
    hlo_shape bounded = *shape;
    bounded.dynamic = dynamic;
    return hlo_shape_intern(text->module, &bounded);
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

static const hlo_shape *binary(hlo_text *text, hlo_op op, hlo_instr *const *operands,
                               uint32_t attr_count, const hlo_attr *attrs) {
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

/* Infers a sort without its comparator. */
static const hlo_shape *sorted(hlo_text *text, uint32_t count, hlo_instr *const *operands) {
    const hlo_shape **shapes = hlo_arena_array(text->scratch, count, sizeof *shapes);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_shape *shape = shapes[i] = operands[i]->shape, *first = shapes[0];
        if (!hlo_shape_is_array(shape) || shape->rank != first->rank ||
            (shape->rank && memcmp(shape->dims, first->dims, shape->rank * sizeof *shape->dims)))
            return NULL;
    }
    return count == 1 ? shapes[0] : hlo_shape_tuple(text->module, count, shapes);
}

const hlo_shape *hlo_text_permissive_shape(hlo_text *text, hlo_op op, uint32_t count,
                                           hlo_instr *const *operands, uint32_t attr_count,
                                           const hlo_attr *attrs) {
    const hlo_op_info *info = &hlo_ops[op];
    const hlo_ints *sizes = NULL;
    for (uint32_t i = 0; i < attr_count; i++)
        if (attrs[i].id == HLO_ATTR_DIMENSIONS) sizes = attrs[i].u.ints;
    if (op == HLO_OP_SORT) return sorted(text, count, operands);
    if (op == HLO_OP_BROADCAST) return broadcast(text, operands[0]->shape, sizes);
    if (info->min_operands == 2 && info->max_operands == 2 && info->flags & HLO_ELEMENTWISE)
        return binary(text, op, operands, attr_count, attrs);
    return NULL;
}

/* Returns the shape that XLA's parser infers for any text, or `given` if it uses that of the text.
 */
static const hlo_shape *made_shape(hlo_module *module, hlo_op op, hlo_instr *const *operands,
                                   const hlo_shape *given) {
    const hlo_shape *data = given;
    switch (op) {
    case HLO_OP_AFTER_ALL:
    case HLO_OP_OUTFEED:
    case HLO_OP_SEND_DONE: return hlo_shape_array(module, HLO_TYPE_TOKEN, 0, NULL);
    case HLO_OP_ADD_DEPENDENCY: return operands[0]->shape;
    case HLO_OP_SEND: data = operands[0]->shape; break;
    case HLO_OP_RECV_DONE:
        if (operands[0]->shape->type != HLO_TYPE_TUPLE || !operands[0]->shape->rank) return given;
        data = operands[0]->shape->elements[0];
        break;
    case HLO_OP_RECV:
    case HLO_OP_INFEED:
        if (!given) return given;
        data = given->elements[0];
        break;
    default: return given;
    }
    const bool flies = op == HLO_OP_SEND || op == HLO_OP_RECV;
    const hlo_shape *token = hlo_shape_array(module, HLO_TYPE_TOKEN, 0, NULL);
    const hlo_shape *context = flies ? hlo_shape_array(module, HLO_TYPE_U32, 0, NULL) : token;
    const hlo_shape *elements[] = {data, context, token};
    return hlo_shape_tuple(module, flies ? 3 : 2, elements);
}

void hlo_text_make_shape(hlo_text *text, hlo_frame *frame) {
    const hlo_shape *given = frame->shape;
    frame->shape = made_shape(text->module, frame->op, hlo_frame_operands(text, frame), given);
    if (!given || hlo_shape_compatible(frame->shape, given)) return;
    char made[128], says[128];
    hlo_shape_format(frame->shape, false, made, sizeof made);
    hlo_shape_format(given, false, says, sizeof says);
    hlo_text_defer_error(text, frame->op_at, "the result is %s, not %s", made, says);
}
