/* SPDX-License-Identifier: Apache-2.0 */
/* Derives reasons that no pass sets, from the kind of a matmul, its computation and the sources of
 * its operands. */
#include "passes/verdict/judge.h"

#include <math.h>
#include <string.h>

#include "ir/eval/range.h"
#include "ir/module/known.h"
#include "matmul/block_scaled.h"
#include "matmul/product.h"
#include "passes/analysis/dequantize.h"
#include "passes/analysis/fp8_provenance.h"
#include "passes/analysis/module_facts.h"
#include "passes/analysis/pin.h"
#include "passes/analysis/value.h"

/* ---------------------------------------------------- operations that FP8 does not pass through */

enum { STEP_LIMIT = 256, CALL_LIMIT = 16 };

/* The sources of the data of a value. Arrays with one element do not count. */
enum {
    ON_FP8 = 1,
    ON_OTHERS = 2, /* the result of a matmul or of unknown instructions */
    ON_MORE = ON_FP8 | ON_OTHERS,
    ON_PARAMETERS = 4 /* parameters of the value's computation, if a call instruction calls the
                       * computation */
};

typedef struct operations {
    const hlo_fp8_provenance *provenance;
    unsigned char *depends; /* sources of each value, by instruction id */
    bool *called;           /* by computation id: a call instruction calls the computation */
} operations;

static bool is_single(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && hlo_shape_count(shape) == 1;
}

static unsigned char of_operands(const operations *f, const hlo_instruction *instr) {
    /* Bit set of operands that reach the result; the last bit is for the 32nd and later ones. */
    const hlo_op op = instr->op;
    const uint32_t data = op == HLO_OP_SELECT                                 ? 6
                          : op == HLO_OP_GATHER || op == HLO_OP_DYNAMIC_SLICE ? 1
                          : op == HLO_OP_DYNAMIC_UPDATE_SLICE                 ? 3
                                                                              : UINT32_MAX;
    unsigned char depends = 0;
    for (uint32_t i = 0; i < instr->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, i);
        if (data >> (i < 31 ? i : 31) & 1 &&
            (!is_single(operand->shape) || is_single(instr->shape)))
            depends |= f->depends[operand->id];
    }
    return depends;
}

/* True if other computations compute the result, or the operands do not reach it. */
static bool is_unknown(const operations *f, const hlo_instruction *instr) {
    switch (instr->op) {
    case HLO_OP_WHILE:
    case HLO_OP_CONDITIONAL:
    case HLO_OP_FUSION:
    case HLO_OP_SCAN:
    case HLO_OP_INFEED:
    case HLO_OP_RECV: return true;
    case HLO_OP_PARAMETER:
        return instr->parent != instr->parent->module->entry && !f->called[instr->parent->id];
    default: return hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
    }
}

static unsigned char depends_on(const operations *f, const hlo_instruction *instr) {
    if (hlo_type_is_fp8_value(instr->shape->type)) return ON_FP8;
    const hlo_instruction *from = hlo_handed_on(instr, NULL);
    if (from) return f->depends[from->id];
    if (instr->op == HLO_OP_PARAMETER && f->called[instr->parent->id]) return ON_PARAMETERS;
    if (!is_unknown(f, instr)) {
        const hlo_computation *called =
            instr->op == HLO_OP_CALL ? hlo_instr_comp(instr, HLO_ATTR_TO_APPLY) : NULL;
        unsigned char depends = called ? f->depends[called->root->id] : of_operands(f, instr);
        if (called && depends & ON_PARAMETERS)
            depends = (depends & ON_MORE) | of_operands(f, instr);
        /* If another computation makes the tuple, the provenance has a fact for each element. */
        if (instr->op != HLO_OP_GET_TUPLE_ELEMENT || !(depends & ON_OTHERS)) return depends;
    }
    const bool matmul = hlo_product_kind_of(instr) != HLO_PRODUCT_NONE;
    const bool known = !matmul && instr->shape->type != HLO_TYPE_TUPLE &&
                       hlo_fp8_provenance_has(f->provenance, instr);
    return known ? ON_FP8 : ON_OTHERS;
}

/* True if the value is computed from fp8 values only, or from parameters that may be fp8. */
static bool is_computed(const operations *f, const hlo_instruction *value) {
    const unsigned char depends = f->depends[value->id];
    return depends && !(depends & ON_OTHERS);
}

/* True if the factor is a scale: constant, or repeating the elements of a smaller array. */
static bool repeats_fewer(const hlo_instruction *factor) {
    const int64_t count = hlo_shape_count(factor->shape);
    for (unsigned step = 0; step < HLO_CHAIN_LIMIT; step++) {
        if (hlo_shape_count(factor->shape) < count || factor->op == HLO_OP_CONSTANT) return true;
        if (!factor->operand_count || (!hlo_chain_link(factor) && factor->op != HLO_OP_CONVERT))
            return false;
        factor = hlo_instr_operand(factor, 0);
    }
    return false;
}

/* Returns the operand that the instruction moves or converts, or NULL. */
static const hlo_instruction *moved_operand(const operations *f, const hlo_instruction *value) {
    const hlo_instruction *from = value->operand_count ? hlo_instr_operand(value, 0) : NULL;
    if (hlo_hands_on(value) || hlo_instr_moves(value)) return from;
    if (value->op == HLO_OP_CONVERT)
        return hlo_type_is_float(value->shape->type) && hlo_type_is_float(from->shape->type) ? from
                                                                                             : NULL;
    if (hlo_op_is(value->op, HLO_JOINS) || value->op == HLO_OP_DYNAMIC_UPDATE_SLICE) {
        const bool update = value->op == HLO_OP_DYNAMIC_UPDATE_SLICE;
        const uint32_t first = value->op == HLO_OP_SELECT,
                       count = update ? 2 : value->operand_count;
        const hlo_instruction *found = NULL;
        for (uint32_t i = first; i < count; i++) {
            const hlo_instruction *branch = hlo_instr_operand(value, i);
            double number;
            /* A branch may be joined with fp8 values if it comes from fp8, or is 0 or NaN. */
            if (!(is_computed(f, branch) ||
                  (hlo_known_number(branch, &number) && (number == 0 || isnan(number)))))
                return NULL;
            if (!found && is_computed(f, branch)) found = branch;
        }
        return found;
    }
    const hlo_computation *reduction = hlo_instr_comp(value, HLO_ATTR_TO_APPLY);
    return hlo_op_is(value->op, HLO_COLLECTIVE) && !reduction ? from : NULL;
}

/* True for an instruction that passes an array to or from another computation. */
static bool is_boundary(const hlo_instruction *value) {
    if (value->op == HLO_OP_GET_TUPLE_ELEMENT) {
        const hlo_op from = hlo_instr_operand(value, 0)->op;
        return from == HLO_OP_PARAMETER || from == HLO_OP_WHILE || from == HLO_OP_CONDITIONAL;
    }
    return value->op == HLO_OP_PARAMETER || value->op == HLO_OP_WHILE ||
           value->op == HLO_OP_CONDITIONAL || value->op == HLO_OP_FUSION;
}

/* The instructions on the path from a matmul to fp8 values. */
typedef struct passed {
    const hlo_instruction *calls[CALL_LIMIT]; /* calls that contain the current position */
    unsigned call_count;
    const hlo_instruction *relu;   /* the relu nearest to the matmul */
    const hlo_instruction *array;  /* the nearest factor with a value per element */
    const hlo_instruction *barred; /* the nearest operation to the matmul through which FP8 never
                                    * passes: a gate or an update of a slice */
    const hlo_instruction *join;   /* the join nearest to the matmul */
    bool scaled;                   /* the path has a factor */
    double factor, divisor; /* lower bounds of the factors below the relu, and of the divisors */
} passed;

/* Returns the value that `value` moves, converts, scales or rectifies, or NULL. */
static const hlo_instruction *step_below(const operations *f, passed *p,
                                         const hlo_instruction *value) {
    uint32_t index;
    const hlo_instruction *from = hlo_handed_on(value, NULL);
    if (from) return from;
    if (hlo_is_relu(value, &index)) {
        if (!p->relu) p->relu = value;
        return hlo_instr_operand(value, index);
    }
    const uint32_t count = value->op == HLO_OP_MULTIPLY ? 2 : value->op == HLO_OP_DIVIDE;
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instruction *scaled = hlo_instr_operand(value, i),
                              *factor = hlo_instr_operand(value, !i);
        if (!is_computed(f, scaled) || (is_computed(f, factor) && !repeats_fewer(factor))) continue;
        p->scaled = true;
        if (!repeats_fewer(factor)) {
            if (!p->array) p->array = factor;
            from = factor;
            while (from->op == HLO_OP_CONVERT || hlo_instr_moves(from))
                from = hlo_instr_operand(from, 0);
            if (!p->barred && from->operand_count && !is_boundary(from)) p->barred = value;
        }
        double *least = value->op == HLO_OP_DIVIDE ? &p->divisor : &p->factor;
        if (p->relu) *least = fmin(*least, hlo_range_of(factor).low);
        return scaled;
    }
    from = moved_operand(f, value);
    if (from && value->op == HLO_OP_DYNAMIC_UPDATE_SLICE && !p->barred) p->barred = value;
    if (from && hlo_op_is(value->op, HLO_JOINS) && !p->join) p->join = value;
    return from;
}

/* Kinds of operations through which FP8 does not pass. */
typedef enum obstacle_kind {
    OBSTACLE_OPERATION,  /* another operation computes something from dequantized values */
    OBSTACLE_RELU,       /* a relu; a scale below it is not known to be positive */
    OBSTACLE_FACTOR,     /* a factor with a value for each element */
    OBSTACLE_UPDATE,     /* an update of a slice of dequantized values */
    OBSTACLE_JOIN,       /* a select or concatenate in an unsupported form */
    OBSTACLE_ZERO_POINT, /* a subtraction of a zero point from fp8 values before they are scaled */
} obstacle_kind;

/* ------------------------------------------------------------------------ judgments and fusions */

struct hlo_judge_context {
    const hlo_module *module;
    hlo_arena *arena;
    const hlo_pass_options *options;
    const hlo_target *target;
    const bool *fused; /* by computation id: true if the computation is a part of a kernel */
    /* The following members are computed on demand. */
    const unsigned char *makers; /* by computation id: hlo_fusion_maker */
    const unsigned char *fp8;    /* by instruction id: result of hlo_facts_fp8_reach() */
    const hlo_fp8_provenance *provenance;
    operations *operations;
    bool looked_for_cpu, cpu; /* `cpu` is true if XLA compiled the module for a CPU */
};

hlo_judge_context *hlo_judge_context_new(const hlo_pass_context *context) {
    hlo_judge_context *j = hlo_arena_zero(context->scratch, sizeof *j);
    j->module = context->module;
    j->options = context->options;
    j->target = context->target;
    j->arena = context->scratch;
    j->fused = hlo_facts_fused(j->module, j->arena);
    return j;
}

/* Indexed by hlo_fusion_maker. Kernels of XLA and of CPU libraries compute on wider types. */
static const struct {
    const char *name, *epilogue;
    bool multiplies_fp8;
    hlo_reason reason; /* of a matmul that widens its fp8 operands in the fusion */
} makers[] = {
    [HLO_FUSION_XLA] = {"a fusion", "", false, HLO_REASON_INSIDE_FUSION},
    [HLO_FUSION_TRITON] = {"a Triton fusion", "in a Triton fusion", true, HLO_REASON_TRITON_FUSION},
    [HLO_FUSION_CUDNN] = {"a cuDNN fusion", "in a cuDNN fusion", true, HLO_REASON_CUDNN_FUSION},
    [HLO_FUSION_CPU] = {"a CPU library fusion", "", false, HLO_REASON_CPU_LIBRARY}};

typedef struct making {
    unsigned char *makers; /* by computation id */
    unsigned char maker;
} making;

static void note_maker(void *user, hlo_computation *called) {
    const making *m = user;
    m->makers[called->id] = m->maker;
}

/* Returns the generator of the kernel that contains a fused computation; for nested fusions, the
 * generator of the outer fusion. */
static hlo_fusion_maker maker_of(hlo_judge_context *j, const hlo_computation *comp) {
    if (j->makers) return (hlo_fusion_maker)j->makers[comp->id];
    making m = {hlo_arena_zero(j->arena, j->module->next_computation_id), 0};
    for (const hlo_computation *at = j->module->last; at; at = at->prev)
        for (const hlo_instruction *instr = at->first; instr; instr = hlo_instr_next(instr)) {
            m.maker = m.makers[at->id];
            if (!m.maker && instr->op == HLO_OP_FUSION)
                m.maker = (unsigned char)hlo_fusion_made_by(instr);
            if (m.maker) hlo_instr_visit_called(instr, note_maker, &m);
        }
    j->makers = m.makers;
    return (hlo_fusion_maker)j->makers[comp->id];
}

/* ------------------------------------------------------------------------------------- operands */

/* True if XLA compiled the module for a CPU: XLA annotates the thread partitions of kernels. */
static bool is_for_cpu(hlo_judge_context *j) {
    if (j->looked_for_cpu) return j->cpu;
    j->looked_for_cpu = true;
    for (const hlo_computation *comp = j->module->first; comp && !j->cpu; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr && !j->cpu;
             instr = hlo_instr_next(instr)) {
            const char *config = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
            j->cpu = config && strstr(config, "outer_dimension_partitions");
        }
    return j->cpu;
}

/* Returns the integers of at most 8 bits, or floats of fewer than 8, from which `value` is computed
 * by movement, conversion and scaling, or NULL. */
static const hlo_instruction *find_narrow(const hlo_judge_context *j,
                                          const hlo_instruction *value) {
    const hlo_instruction *narrow = hlo_fp8_provenance_narrow(j->provenance, value);
    return narrow && hlo_types[narrow->shape->type].bits <= 8 ? narrow : NULL;
}

/* Skips factors of 1, which torch-xla emits. */
static const hlo_instruction *without_ones(const hlo_instruction *value) {
    double factor;
    while (value->op == HLO_OP_MULTIPLY && hlo_known_number(hlo_instr_operand(value, 1), &factor) &&
           factor == 1)
        value = hlo_instr_operand(value, 0);
    return value;
}

const hlo_instruction *hlo_straight_through(const hlo_fp8_provenance *provenance,
                                            const hlo_instruction *value) {
    while (value->operand_count &&
           (value->op == HLO_OP_CONVERT || hlo_op_is(value->op, HLO_MOVEMENT)))
        value = hlo_instr_operand(value, 0);
    for (uint32_t i = 0; value->op == HLO_OP_ADD && i < 2; i++) {
        const hlo_instruction *x = hlo_instr_operand(value, i),
                              *change = without_ones(hlo_instr_operand(value, 1 - i));
        if (change->op != HLO_OP_SUBTRACT) continue;
        const hlo_instruction *from = hlo_instr_operand(change, 0),
                              *taken = without_ones(hlo_instr_operand(change, 1));
        if (hlo_fp8_provenance_has(provenance, taken == x ? from : x) &&
            (taken == x || taken == without_ones(from)))
            return value;
    }
    return NULL;
}

static hlo_judgment wide(hlo_reason reason, const hlo_instruction *blocker) {
    return (hlo_judgment){.kind = HLO_VERDICT_WIDE, .reason = reason, .blocker = blocker};
}

static bool is_integer(const hlo_instruction *narrow) {
    return narrow && hlo_type_is_integer(narrow->shape->type) &&
           hlo_types[narrow->shape->type].bits == 8;
}

static const hlo_fp8_provenance *provenance_of(hlo_judge_context *j) {
    if (!j->provenance) j->provenance = hlo_fp8_provenance_find(j->module, j->arena);
    return j->provenance;
}

/* Starting at `value`, finds the nearest operation on dequantized values that neither moves,
 * converts nor scales them. `value` must depend on fp8 values, and not on a matmul. Returns NULL if
 * not found. */
static const hlo_instruction *find_operation(hlo_judge_context *j, const hlo_instruction *value,
                                             obstacle_kind *out_obstacle) {
    operations *f = j->operations;
    if (!f) {
        const hlo_module *module = j->module;
        j->operations = f = hlo_arena_zero(j->arena, sizeof *f);
        f->provenance = provenance_of(j);
        f->depends = hlo_arena_zero(j->arena, module->next_id);
        f->called = hlo_arena_zero(j->arena, module->next_computation_id);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                if (instr->op == HLO_OP_CALL)
                    f->called[hlo_instr_comp(instr, HLO_ATTR_TO_APPLY)->id] = true;
        for (const hlo_computation *comp = module->first; comp; comp = comp->next)
            for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
                f->depends[instr->id] = depends_on(f, instr);
    }
    passed p = {.factor = (double)INFINITY, .divisor = (double)INFINITY};
    if (f->depends[value->id] != ON_FP8) return NULL;
    for (unsigned step = 0; step < STEP_LIMIT; step++) {
        const hlo_instruction *from = NULL;
        if (value->op == HLO_OP_CALL && p.call_count < CALL_LIMIT) {
            p.calls[p.call_count++] = value;
            from = hlo_instr_comp(value, HLO_ATTR_TO_APPLY)->root;
        } else if (value->op == HLO_OP_PARAMETER && p.call_count) {
            from = hlo_instr_operand(p.calls[--p.call_count], (uint32_t)value->u.parameter);
        }
        if (hlo_type_is_fp8(value->shape->type) || (!from && is_boundary(value))) break;
        if (!from) from = step_below(f, &p, value);
        if (!from || !is_computed(f, from)) {
            /* A zero point: q - z, where q is a converted fp8 value and z repeats one element. */
            const hlo_instruction *q =
                value->op == HLO_OP_SUBTRACT ? hlo_instr_operand(value, 0) : NULL;
            const bool zero_point = p.scaled && q && q->op == HLO_OP_CONVERT &&
                                    hlo_type_is_fp8(hlo_instr_operand(q, 0)->shape->type) &&
                                    hlo_splat_source(hlo_instr_operand(value, 1));
            *out_obstacle = zero_point ? OBSTACLE_ZERO_POINT : OBSTACLE_OPERATION;
            return value;
        }
        value = from;
    }
    /* A relu is an obstacle because of the signs of the factors; see
     * passes/builders/scaled_operand.c. */
    const bool signs =
        p.relu &&
        !(p.divisor > 0 && (value->shape->type == HLO_TYPE_F8E5M2 ? p.factor > 0 : p.factor >= 0));
    const hlo_instruction *found = p.barred  ? p.barred
                                   : signs   ? p.relu
                                   : p.array ? p.array
                                             : p.join;
    const bool updates = p.barred && p.barred->op == HLO_OP_DYNAMIC_UPDATE_SLICE;
    *out_obstacle = updates    ? OBSTACLE_UPDATE
                    : p.barred ? OBSTACLE_OPERATION
                    : signs    ? OBSTACLE_RELU
                    : p.array  ? OBSTACLE_FACTOR
                               : OBSTACLE_JOIN;
    return found;
}

/* Judges a dot by the operation that is applied to a dequantized operand. If there is no such
 * operation, or it is a join, the judgment has no reason. */
static hlo_judgment judge_operation(hlo_judge_context *j, const hlo_instruction *operand) {
    static const hlo_reason reasons[] = {
        [OBSTACLE_OPERATION] = HLO_REASON_OPERATION_AFTER_DEQUANTIZE,
        [OBSTACLE_RELU] = HLO_REASON_RELU_SCALE_SIGN,
        [OBSTACLE_FACTOR] = HLO_REASON_SCALE_NOT_SCALAR,
        [OBSTACLE_ZERO_POINT] = HLO_REASON_DEQUANTIZE_NOT_RECOGNIZED,
        [OBSTACLE_UPDATE] = HLO_REASON_CHAIN_NOT_MOVABLE,
        [OBSTACLE_JOIN] = HLO_REASON_COUNT,
    };
    obstacle_kind obstacle;
    const hlo_instruction *at = find_operation(j, operand, &obstacle);
    return at ? wide(reasons[obstacle], at) : wide(HLO_REASON_COUNT, NULL);
}

/* Judges a dot of dequantized operands for which there is no other reason. The reason is a join, or
 * that the pattern is not recognized. */
static hlo_judgment judge_unrecognized(hlo_judge_context *j, const hlo_instruction *dot) {
    for (uint32_t i = 0; i < 2; i++) {
        obstacle_kind obstacle;
        const hlo_instruction *at = find_operation(j, hlo_instr_operand(dot, i), &obstacle);
        if (at) return wide(HLO_REASON_OPERATION_AFTER_DEQUANTIZE, at);
    }
    return wide(HLO_REASON_DEQUANTIZE_NOT_RECOGNIZED, NULL);
}

static hlo_judgment judge_operations(hlo_judge_context *j, const hlo_instruction *dot) {
    const hlo_judgment left = judge_operation(j, hlo_instr_operand(dot, 0));
    return left.reason != HLO_REASON_COUNT ? left : judge_operation(j, hlo_instr_operand(dot, 1));
}

typedef struct branches {
    hlo_judge_context *judging;
    const hlo_instruction *result; /* result of the conditional, or an element of it */
    hlo_judgment found;
} branches;

static void judge_branch(void *user, hlo_computation *branch) {
    branches *b = user;
    /* Find the value in the branch that the result, or an element of it, may equal. */
    const hlo_instruction *root = branch->root;
    const hlo_instruction *value =
        b->result->op == HLO_OP_CONDITIONAL ? root
        : root->op != HLO_OP_TUPLE
            ? NULL
            : hlo_instr_operand(root, (uint32_t)hlo_instr_int(b->result, HLO_ATTR_INDEX, 0));
    if (!value || b->found.reason != HLO_REASON_COUNT) return;
    b->found = judge_operation(b->judging, value);
    if (b->found.reason == HLO_REASON_COUNT &&
        !hlo_fp8_provenance_has(b->judging->provenance, value))
        b->found = wide(HLO_REASON_ONE_OPERAND_WIDE, value);
}

/* Returns the first operand with dynamic sizes, or NULL. */
static const hlo_instruction *find_dynamic(const hlo_instruction *dot) {
    for (uint32_t i = 0; i < dot->operand_count; i++) {
        const hlo_instruction *operand = hlo_instr_operand(dot, i);
        if (operand->shape->dynamic || hlo_shape_count(operand->shape) < 0) return operand;
    }
    return NULL;
}

/* Returns the fusion of fp8 or dequantized values from which `value` is computed by movement and
 * conversion alone, or NULL. */
static const hlo_instruction *find_fusion(const hlo_judge_context *j,
                                          const hlo_instruction *value) {
    while (value->operand_count && (value->op == HLO_OP_CONVERT || hlo_hands_on(value) ||
                                    hlo_op_is(value->op, HLO_MOVEMENT)))
        value = hlo_instr_operand(value, 0);
    for (uint32_t i = 0; value->op == HLO_OP_FUSION && i < value->operand_count; i++)
        if (hlo_fp8_provenance_has(j->provenance, hlo_instr_operand(value, i))) return value;
    return NULL;
}

/* Judges a dot whose operands may come from fp8 on paths that no rule follows. */
static hlo_judgment judge_carried(hlo_judge_context *j, const hlo_instruction *dot) {
    const hlo_instruction *left = hlo_instr_operand(dot, 0), *right = hlo_instr_operand(dot, 1);
    provenance_of(j);
    bool l = hlo_fp8_provenance_has(j->provenance, left),
         r = hlo_fp8_provenance_has(j->provenance, right);
    if (l && r && hlo_pin_is_scheduled(j->module)) return wide(HLO_REASON_SCHEDULED, NULL);
    const hlo_judgment on_left = judge_operation(j, left), on_right = judge_operation(j, right);
    const bool l_computed = on_left.reason != HLO_REASON_COUNT,
               r_computed = on_right.reason != HLO_REASON_COUNT;
    const hlo_instruction *dynamic = find_dynamic(dot);
    if (dynamic && (l || l_computed) && (r || r_computed))
        return wide(HLO_REASON_DYNAMIC_DIMENSION, dynamic);
    if (l && r) {
        hlo_reason reason;
        if (l_computed || r_computed) return l_computed ? on_left : on_right;
        const hlo_instruction *at =
            hlo_fp8_provenance_blocker(j->provenance, j->fp8[left->id] ? right : left, &reason);
        if (!at) return judge_unrecognized(j, dot);
        /* Judge the result of a conditional by the first branch that does not dequantize it. */
        branches b = {j, at, wide(HLO_REASON_COUNT, NULL)};
        const hlo_instruction *conditional =
            at->op == HLO_OP_GET_TUPLE_ELEMENT ? hlo_instr_operand(at, 0) : at;
        if (conditional->op == HLO_OP_CONDITIONAL)
            hlo_instr_visit_called(conditional, judge_branch, &b);
        const hlo_judgment in_branch = b.found;
        return in_branch.reason != HLO_REASON_COUNT ? in_branch : wide(reason, at);
    }
    const hlo_instruction *through_l = l ? NULL : hlo_straight_through(j->provenance, left),
                          *through_r = r ? NULL : hlo_straight_through(j->provenance, right);
    if ((l || through_l) && (r || through_r))
        return wide(HLO_REASON_STRAIGHT_THROUGH, through_l ? through_l : through_r);
    if ((l || l_computed) && (r || r_computed)) return l_computed ? on_left : on_right;
    const hlo_instruction *fused_l = l || l_computed ? NULL : find_fusion(j, left),
                          *fused_r = r || r_computed ? NULL : find_fusion(j, right);
    if ((l || l_computed || fused_l) && (r || r_computed || fused_r))
        return hlo_pin_is_scheduled(j->module)
                   ? wide(HLO_REASON_SCHEDULED, NULL)
                   : wide(HLO_REASON_INSIDE_FUSION, fused_l ? fused_l : fused_r);
    const hlo_instruction *other = l || l_computed ? right : left, *narrow = find_narrow(j, other);
    if (!l && !r && !l_computed && !r_computed) {
        const hlo_instruction *narrow_l = find_narrow(j, left), *narrow_r = find_narrow(j, right);
        return is_integer(narrow_l)   ? wide(HLO_REASON_INTEGER_OPERAND, narrow_l)
               : is_integer(narrow_r) ? wide(HLO_REASON_INTEGER_OPERAND, narrow_r)
                                      : wide(HLO_REASON_NOT_QUANTIZED, NULL);
    }
    if (!narrow) return wide(HLO_REASON_ONE_OPERAND_WIDE, other);
    return wide(hlo_types[narrow->shape->type].bits < 8 ? HLO_REASON_NARROW_OPERAND
                                                        : HLO_REASON_INTEGER_OPERAND,
                narrow);
}

static unsigned char fp8_of(hlo_judge_context *j, const hlo_instruction *value) {
    if (!j->fp8) j->fp8 = hlo_facts_fp8_reach(j->module, j->arena).of;
    return j->fp8[value->id];
}

/* Judges a matmul that is not an FP8 call or kernel. */
static hlo_judgment judge_wide(hlo_judge_context *j, const hlo_instruction *instr) {
    static const hlo_reason reasons[] = {
        [HLO_PRODUCT_WIDE_CALL] = HLO_REASON_WIDE_LIBRARY_CALL,
        [HLO_PRODUCT_LIBRARY] = HLO_REASON_WIDE_LIBRARY_CALL,
        [HLO_PRODUCT_RAGGED] = HLO_REASON_RAGGED_DOT,
        [HLO_PRODUCT_CONVOLUTION] = HLO_REASON_CONVOLUTION,
        [HLO_PRODUCT_ATTENTION] = HLO_REASON_FUSED_ATTENTION,
        [HLO_PRODUCT_CPU] = HLO_REASON_CPU_LIBRARY,
    };
    const hlo_product_kind kind = hlo_product_kind_of(instr);
    const bool ragged = kind == HLO_PRODUCT_RAGGED && instr->operand_count == 3;
    if (ragged &&
        (!fp8_of(j, hlo_instr_operand(instr, 0)) || !fp8_of(j, hlo_instr_operand(instr, 1)))) {
        const hlo_judgment carried = judge_carried(j, instr);
        const bool unquantized = carried.reason == HLO_REASON_NOT_QUANTIZED ||
                                 carried.reason == HLO_REASON_ONE_OPERAND_WIDE;
        if (!j->options->quantize || !unquantized) return carried;
        return wide(hlo_pin_is_scheduled(j->module) ? HLO_REASON_SCHEDULED
                    : !j->target->fp8               ? HLO_REASON_TARGET_WITHOUT_FP8
                                                    : HLO_REASON_RAGGED_NOT_QUANTIZED,
                    NULL);
    }
    if (kind == HLO_PRODUCT_BLOCK_SCALED) {
        const hlo_instruction *dynamic = find_dynamic(instr);
        if (dynamic) return wide(HLO_REASON_DYNAMIC_DIMENSION, dynamic);
        for (uint32_t i = 0; i < instr->operand_count; i++)
            if (!hlo_shape_count(hlo_instr_operand(instr, i)->shape))
                return wide(HLO_REASON_EMPTY, NULL);
        return wide(hlo_block_fault(instr) ? HLO_REASON_BLOCK_SCALE_TYPES : HLO_REASON_BLOCK_SCALED,
                    NULL);
    }
    if (kind != HLO_PRODUCT_DOT) return wide(reasons[kind], NULL);
    const hlo_instruction *left = hlo_instr_operand(instr, 0), *right = hlo_instr_operand(instr, 1);
    if (j->options->quantize && hlo_pin_is_scheduled(j->module) &&
        hlo_type_is_float(left->shape->type) && hlo_type_is_float(right->shape->type))
        return wide(HLO_REASON_SCHEDULED, NULL); /* the pass quantize-wide did not run */
    const unsigned char l = fp8_of(j, left), r = fp8_of(j, right);
    if (!l || !r) return judge_carried(j, instr);
    if ((l | r) & HLO_FROM_OTHER_FP8)
        return wide(HLO_REASON_OPERAND_NOT_FP8, l & HLO_FROM_OTHER_FP8 ? left : right);
    if (hlo_facts_has(j->fused, instr->parent->id))
        return wide(makers[maker_of(j, instr->parent)].reason, NULL);
    if (hlo_pin_is_scheduled(j->module)) return wide(HLO_REASON_SCHEDULED, NULL);
    const hlo_judgment operation = judge_operations(j, instr);
    return operation.reason != HLO_REASON_COUNT ? operation : judge_unrecognized(j, instr);
}

hlo_judgment hlo_judge(hlo_judge_context *j, const hlo_instruction *instr, hlo_reason said) {
    hlo_judgment judgment = {.kind = HLO_VERDICT_FP8, .reason = HLO_REASON_COUNT, .epilogue = ""};
    const bool fused = hlo_facts_has(j->fused, instr->parent->id);
    const hlo_fusion_maker maker = fused ? maker_of(j, instr->parent) : HLO_FUSION_XLA;
    const bool looked_at = instr->op == HLO_OP_DOT || instr->op == HLO_OP_RAGGED_DOT;
    const hlo_instruction *pinned = looked_at ? hlo_pin_of_dot(instr) : NULL;
    const hlo_instruction *dynamic = looked_at ? find_dynamic(instr) : NULL;
    /* Find a reason why a dot that could be FP8 must not be changed. This reason has precedence
     * over a reason from a rule, unless the rule matched a nearly complete call. */
    hlo_judgment held = wide(HLO_REASON_COUNT, NULL);
    if ((pinned || dynamic) && fp8_of(j, hlo_instr_operand(instr, 0)) &&
        fp8_of(j, hlo_instr_operand(instr, 1)))
        held = pinned ? wide(hlo_pin_reason(pinned), pinned == instr ? NULL : pinned)
                      : wide(HLO_REASON_DYNAMIC_DIMENSION, dynamic);
    hlo_product product = {0};
    hlo_product_read(instr, &product);
    const bool kept = product.kind == HLO_PRODUCT_RAGGED && j->options->ragged == HLO_RAGGED_KEEP &&
                      hlo_type_is_fp8_operand(product.a->shape->type) &&
                      hlo_type_is_fp8_operand(product.b->shape->type);
    const hlo_judgment operation =
        said == HLO_REASON_SCALE_NOT_SCALAR ? judge_operations(j, instr) : held;
    if (fused && product.narrow && makers[maker].multiplies_fp8)
        judgment.epilogue = makers[maker].epilogue;
    else if (!product.fp8 && (maker == HLO_FUSION_CPU || is_for_cpu(j)))
        judgment = wide(HLO_REASON_CPU_LIBRARY, NULL);
    else if (held.reason != HLO_REASON_COUNT && said != HLO_REASON_SCALES_OUT_OF_RANGE)
        judgment = held;
    else if (said == HLO_REASON_SCALE_NOT_SCALAR && product.kind == HLO_PRODUCT_DOT &&
             operation.reason != HLO_REASON_COUNT)
        judgment = operation;
    else if (said != HLO_REASON_COUNT)
        judgment = wide(said, NULL);
    else if (!product.fp8 && !kept) {
        judgment = judge_wide(j, instr);
        /* On a GPU, no dot outside of fusions is left when XLA schedules the module. */
        if (judgment.reason == HLO_REASON_NOT_QUANTIZED && instr->op == HLO_OP_DOT && !fused &&
            hlo_pin_is_scheduled(j->module))
            judgment = wide(HLO_REASON_CPU_LIBRARY, NULL);
    }
    judgment.fusion = fused ? makers[maker].name : NULL;
    return judgment;
}
