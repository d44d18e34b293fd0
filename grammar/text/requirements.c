/* SPDX-License-Identifier: Apache-2.0 */
/* Requirements of XLA's parser on instructions beyond the presence of operands and attributes. */
#include "grammar/text/actions.h"
#include "ir/text/print.h"

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

/* Requires one dimension. With `first`, the first of several is used. */
static void require_dimension(hlo_text *text, hlo_frame *frame, bool first) {
    hlo_attr *dims = hlo_text_given(text, frame, HLO_ATTR_DIMENSIONS);
    if (!dims || dims->u.ints->count == 1) return;
    if (!dims->u.ints->count || !first) {
        reject(text, frame, "'dimensions' must name one dimension");
        return;
    }
    hlo_text_defer_error(text, frame->op_at,
                         "'dimensions' must name one dimension: the first is read");
    dims->u.ints = hlo_ints_new(text->module, 1, dims->u.ints->v);
}

static void require_channel(hlo_text *text, hlo_frame *frame) {
    const hlo_attr *global = hlo_text_given(text, frame, HLO_ATTR_USE_GLOBAL_DEVICE_IDS);
    if (global && global->u.i && !hlo_text_given(text, frame, HLO_ATTR_CHANNEL_ID) &&
        !hlo_text_given(text, frame, HLO_ATTR_MODE))
        reject(text, frame, "use_global_device_ids=true needs a channel_id");
}

/* Requires the same channel for both ends of a transfer. */
static void require_same_channel(hlo_text *text, hlo_frame *frame) {
    const hlo_instr *start = operand(text, frame, 0);
    const hlo_attr *here = hlo_text_given(text, frame, HLO_ATTR_CHANNEL_ID),
                   *there = hlo_instr_attr(start, HLO_ATTR_CHANNEL_ID);
    if (start->op != HLO_OP_SEND && start->op != HLO_OP_RECV) return;
    if (!here != !there)
        reject(text, frame, "%s a channel_id, '%s' has %s", here ? "has" : "lacks", start->name,
               there ? "one" : "none");
    else if (here && here->u.i != there->u.i)
        reject(text, frame, "channel_id is %lld, but %lld of '%s'", (long long)here->u.i,
               (long long)there->u.i, start->name);
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
            reject(text, frame, "a pred[] operand selects true_computation= or false_computation=");
    } else if (!branches || taken || other) {
        reject(text, frame, "an s32[] operand selects one of branch_computations=");
    } else {
        count = branches->u.comps->count;
    }
    if (!frame->broken && (!count || hlo_frame_operand_count(text, frame) != count + 1))
        reject(text, frame, "each computation needs one operand");
}

static void require_layouts(hlo_text *text, hlo_frame *frame) {
    const hlo_attr *attr = hlo_text_given(text, frame, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (!attr) return;
    const hlo_shapes *layouts = attr->u.shapes;
    const size_t count = hlo_frame_operand_count(text, frame);
    if (layouts->count != count)
        reject(text, frame, "operand_layout_constraints has %u shapes for %zu operands",
               layouts->count, count);
    for (uint32_t i = 0; i < layouts->count && !frame->broken; i++) {
        const hlo_shape *wanted = operand(text, frame, i)->shape;
        char has[96], is[96];
        if (hlo_shape_compatible(layouts->v[i], wanted)) continue;
        hlo_shape_format(layouts->v[i], false, has, sizeof has);
        hlo_shape_format(wanted, false, is, sizeof is);
        reject(text, frame, "operand_layout_constraints has %s for operand %u, which is %s", has, i,
               is);
    }
}

static void require_tuple(hlo_text *text, hlo_frame *frame, const hlo_shape *shape) {
    if (shape && (shape->type != HLO_TYPE_TUPLE || !shape->rank))
        reject(text, frame, "the result must be a tuple that begins with the data");
}

void hlo_text_check_requirements(hlo_text *text, hlo_frame *frame, hlo_op op) {
    switch (op) {
#define HLO_PERMISSIVE_COUNT(id, least, step)
#define HLO_ONE_DIMENSION(id, first)                                                               \
    case HLO_OP_##id:                                                                              \
        require_dimension(text, frame, first);                                                     \
        break;
#include "grammar/text/permissive.def"
#undef HLO_ONE_DIMENSION
#undef HLO_PERMISSIVE_COUNT
    default: break;
    }
    switch (op) {
    case HLO_OP_ALL_REDUCE:
    case HLO_OP_ALL_REDUCE_START:
    case HLO_OP_REDUCE_SCATTER: require_channel(text, frame); break;
    case HLO_OP_SEND_DONE:
    case HLO_OP_RECV_DONE: require_same_channel(text, frame); break;
    case HLO_OP_CONDITIONAL: require_branches(text, frame); break;
    case HLO_OP_CUSTOM_CALL: require_layouts(text, frame); break;
    case HLO_OP_RECV:
    case HLO_OP_INFEED:
        if (frame->op == op) require_tuple(text, frame, frame->shape);
        break;
    default: break;
    }
}
