/* The shape rules: dispatch, what rules share, and the rules of elementwise opcodes, tuples and
 * control flow. */
#include "ir/infer/infer.h"

#include <stdio.h>
#include <string.h>

static hlo_infer_rule *const rules[HLO_OP_COUNT] = {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    [HLO_OP_##id] = hlo_infer_##infer,
#include "ir/table/op.def"
#undef HLO_OP
};

enum { SHAPE_TEXT = 160, SHOWN_OPERANDS = 4 };

const char *hlo_infer_text(const hlo_inference *q, const hlo_shape *shape) {
    char *text = hlo_arena_alloc(q->scratch, SHAPE_TEXT);
    if (hlo_shape_format(shape, false, text, SHAPE_TEXT) >= SHAPE_TEXT)
        memcpy(text + SHAPE_TEXT - 4, "...", 4);
    return text;
}

static const hlo_shape *fail(const hlo_inference *q, uint32_t blamed, const char *format,
                             va_list args) {
    if (q->blamed) *q->blamed = blamed;
    if (!q->why || q->why_size == 0) return NULL;
    FILE *out = fmemopen(q->why, q->why_size, "w");
    if (!out) return NULL;
    fputs(hlo_ops[q->op].name, out);
    for (uint32_t i = 0; i < q->count && i < SHOWN_OPERANDS; i++)
        fprintf(out, "%s%s",
                i == 0              ? " of "
                : i + 1 == q->count ? " and "
                                    : ", ",
                hlo_infer_text(q, hlo_infer_operand(q, i)));
    if (q->count > SHOWN_OPERANDS) fprintf(out, " and %u more", q->count - SHOWN_OPERANDS);
    fputs(": ", out);
    vfprintf(out, format, args);
    fclose(out);
    q->why[q->why_size - 1] = '\0';
    return NULL;
}

const hlo_shape *hlo_infer_fail(const hlo_inference *q, const char *format, ...) {
    va_list args;
    va_start(args, format);
    fail(q, HLO_NOWHERE, format, args);
    va_end(args);
    return NULL;
}

const hlo_shape *hlo_infer_fail_at(const hlo_inference *q, uint32_t blamed, const char *format,
                                   ...) {
    va_list args;
    va_start(args, format);
    fail(q, blamed, format, args);
    va_end(args);
    return NULL;
}

static bool check_form(const hlo_inference *q) {
    const hlo_op_info *info = &hlo_ops[q->op];
    unsigned least = info->min_operands, most = info->max_operands;
    if (q->count < least || (most != HLO_ANY && q->count > most)) {
        const char *bound = most == least ? "" : q->count < least ? "at least " : "at most ";
        unsigned wanted = q->count < least ? least : most;
        return hlo_infer_fail(q, "takes %s%u operand%s, found %u", bound, wanted,
                              wanted == 1 ? "" : "s", q->count);
    }
    for (const uint8_t *id = info->required; *id != HLO_ATTR_COUNT; id++)
        if (!hlo_infer_attr(q, *id))
            return hlo_infer_fail(q, "needs the attribute '%s'", hlo_attrs_info[*id].name);
    return true;
}

const hlo_shape *hlo_infer(hlo_module *module, hlo_op op, uint32_t operand_count,
                           hlo_instr *const *operands, uint32_t attr_count, const hlo_attr *attrs,
                           char *why, size_t why_size) {
    hlo_inference q = {.module = module,
                       .op = op,
                       .count = operand_count,
                       .operands = operands,
                       .attr_count = attr_count,
                       .attrs = attrs,
                       .why = why,
                       .why_size = why_size,
                       .scratch = module->arena};
    return check_form(&q) ? rules[op](&q) : NULL;
}

bool hlo_infer_check(const hlo_instr *instr, hlo_arena *scratch, char *why, size_t why_size,
                     uint32_t *out_blamed) {
    *out_blamed = HLO_NOWHERE;
    enum { FEW = 16 };
    hlo_instr *few[FEW];
    hlo_inference q = {.module = instr->parent->module,
                       .op = instr->op,
                       .count = instr->operand_count,
                       .attr_count = instr->attr_count,
                       .attrs = instr->attrs,
                       .given = instr->shape,
                       .why = why,
                       .why_size = why_size,
                       .blamed = out_blamed,
                       .scratch = scratch};
    hlo_instr **operands =
        q.count <= FEW ? few : hlo_infer_scratch(&q, q.count, sizeof(hlo_instr *));
    for (uint32_t i = 0; i < q.count; i++) operands[i] = hlo_instr_operand(instr, i);
    q.operands = operands;
    if (!check_form(&q)) return false;
    const hlo_shape *shape = rules[q.op](&q);
    if (!shape) return false;
    if (!hlo_infer_fits(shape, q.given)) {
        hlo_infer_fail(&q, "the result is %s, not %s", hlo_infer_text(&q, shape),
                       hlo_infer_text(&q, q.given));
        return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------- what rules share */

const hlo_attr *hlo_infer_attr(const hlo_inference *q, hlo_attr_id id) {
    for (uint32_t i = 0; i < q->attr_count; i++)
        if (q->attrs[i].id == id) return &q->attrs[i];
    return NULL;
}

const hlo_ints *hlo_infer_ints(const hlo_inference *q, hlo_attr_id id) {
    static const hlo_ints none = {.count = 0};
    const hlo_attr *attr = hlo_infer_attr(q, id);
    return attr ? attr->u.ints : &none;
}

int64_t hlo_infer_int(const hlo_inference *q, hlo_attr_id id, int64_t missing) {
    const hlo_attr *attr = hlo_infer_attr(q, id);
    return attr ? attr->u.i : missing;
}

void *hlo_infer_scratch(const hlo_inference *q, size_t count, size_t size) {
    return hlo_arena_array(q->scratch, count, size);
}

const hlo_shape *hlo_infer_given(const hlo_inference *q) {
    return q->given ? q->given : hlo_infer_fail(q, "the shape of the result must be given");
}

bool hlo_infer_arrays(const hlo_inference *q, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        if (!hlo_shape_is_array(hlo_infer_operand(q, i))) {
            hlo_infer_fail_at(q, q->operands[i]->offset, "operand %u is no array", i);
            return false;
        }
    return true;
}

bool hlo_infer_dims(const hlo_inference *q, const hlo_ints *dims, uint32_t rank, const char *what) {
    bool *named = memset(hlo_infer_scratch(q, rank, sizeof *named), 0, rank * sizeof *named);
    for (uint32_t i = 0; i < dims->count; i++) {
        const int64_t dim = dims->v[i];
        if (dim < 0 || dim >= rank)
            return hlo_infer_fail(q, "%s %lld is out of range for rank %u", what, (long long)dim,
                                  rank);
        if (named[dim]) return hlo_infer_fail(q, "%s %lld is named twice", what, (long long)dim);
        named[dim] = true;
    }
    return true;
}

bool hlo_infer_dims_fit(const hlo_shape *a, const hlo_shape *b) {
    if (a->rank != b->rank) return false;
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_infer_dim_fits(a->dims[i], b->dims[i])) return false;
    return true;
}

bool hlo_infer_fits(const hlo_shape *a, const hlo_shape *b) {
    if (a == b) return true;
    if (a->type != b->type || a->rank != b->rank || a->buffer != b->buffer) return false;
    if (a->type != HLO_TYPE_TUPLE) return hlo_infer_dims_fit(a, b);
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_infer_fits(a->elements[i], b->elements[i])) return false;
    return true;
}

static bool takes(const hlo_inference *q, const hlo_computation *comp, uint32_t count,
                  const hlo_shape *const *parameters, const hlo_shape *result) {
    if (comp->parameter_count != count)
        return hlo_infer_fail_at(q, comp->offset, "the parameter count of %%%s is %u, not %u",
                                 comp->name, comp->parameter_count, count);
    for (uint32_t i = 0; i < count; i++) {
        const hlo_instr *parameter = comp->parameters[i];
        if (parameter && !hlo_infer_fits(parameter->shape, parameters[i]))
            return hlo_infer_fail_at(q, parameter->offset, "parameter %u of %%%s is %s, not %s", i,
                                     comp->name, hlo_infer_text(q, parameter->shape),
                                     hlo_infer_text(q, parameters[i]));
    }
    if (!comp->root) return hlo_infer_fail(q, "%%%s has no root", comp->name);
    if (result && !hlo_infer_fits(comp->root->shape, result))
        return hlo_infer_fail_at(q, comp->root->offset, "%%%s returns %s, not %s", comp->name,
                                 hlo_infer_text(q, comp->root->shape), hlo_infer_text(q, result));
    return true;
}

const hlo_computation *hlo_infer_called(const hlo_inference *q, hlo_attr_id id, uint32_t count,
                                        const hlo_shape *const *parameters,
                                        const hlo_shape *result) {
    const hlo_computation *comp = hlo_infer_attr(q, id)->u.comp;
    return takes(q, comp, count, parameters, result) ? comp : NULL;
}

bool hlo_infer_combiner(const hlo_inference *q, hlo_attr_id id, uint32_t count,
                        const hlo_type *types) {
    const hlo_shape **scalars = hlo_infer_scratch(q, (size_t)count * 2, sizeof *scalars);
    for (uint32_t i = 0; i < count; i++)
        scalars[i] = scalars[count + i] = hlo_shape_array(q->module, types[i], 0, NULL);
    return hlo_infer_called(q, id, count * 2, scalars, hlo_infer_tuple(q, count, scalars));
}

const hlo_shape *hlo_infer_tuple(const hlo_inference *q, uint32_t count,
                                 const hlo_shape *const *elements) {
    return count == 1 ? elements[0] : hlo_shape_tuple(q->module, count, elements);
}

/* ---------------------------------------------------------------------------------- elementwise */

enum { /* the types that an opcode works on */
       ON_PRED = 1 << HLO_CLASS_PRED,
       ON_SIGNED = 1 << HLO_CLASS_SIGNED,
       ON_UNSIGNED = 1 << HLO_CLASS_UNSIGNED,
       ON_FLOAT = 1 << HLO_CLASS_FLOAT,
       ON_COMPLEX = 1 << HLO_CLASS_COMPLEX,
       ON_INTEGER = ON_SIGNED | ON_UNSIGNED,
       ON_ALL = ON_PRED | ON_INTEGER | ON_FLOAT | ON_COMPLEX
};

static bool check_class(const hlo_inference *q, hlo_type type, int classes) {
    if (1 << hlo_types[type].class & classes) return true;
    return hlo_infer_fail(q, "not defined for %s", hlo_types[type].name);
}

/* All operands are arrays of one shape, of those types. */
static const hlo_shape *elementwise(const hlo_inference *q, int classes) {
    if (!hlo_infer_arrays(q, 0, q->count)) return NULL;
    const hlo_shape *first = hlo_infer_operand(q, 0);
    if (!check_class(q, first->type, classes)) return NULL;
    for (uint32_t i = 1; i < q->count; i++) {
        const hlo_shape *other = hlo_infer_operand(q, i);
        if (other->type != first->type)
            return hlo_infer_fail_at(q, q->operands[i]->offset,
                                     "the operands' element types differ");
        if (!hlo_infer_dims_fit(first, other))
            return hlo_infer_fail_at(q, q->operands[i]->offset, "the operands' dimensions differ");
    }
    return first;
}

const hlo_shape *hlo_infer_SAME(const hlo_inference *q) {
    return elementwise(q, ON_ALL);
}

const hlo_shape *hlo_infer_ARITHMETIC(const hlo_inference *q) {
    return elementwise(q, ON_INTEGER | ON_FLOAT | ON_COMPLEX);
}

const hlo_shape *hlo_infer_SIGNED(const hlo_inference *q) {
    return elementwise(q, ON_SIGNED | ON_FLOAT | ON_COMPLEX);
}

const hlo_shape *hlo_infer_ANALYTIC(const hlo_inference *q) {
    return elementwise(q, ON_FLOAT | ON_COMPLEX);
}

const hlo_shape *hlo_infer_FLOAT(const hlo_inference *q) {
    return elementwise(q, ON_FLOAT);
}

const hlo_shape *hlo_infer_INTEGER(const hlo_inference *q) {
    return elementwise(q, ON_INTEGER);
}

const hlo_shape *hlo_infer_LOGICAL(const hlo_inference *q) {
    return elementwise(q, ON_PRED | ON_INTEGER);
}

static const hlo_shape *retyped(const hlo_inference *q, const hlo_shape *shape, hlo_type type) {
    return shape ? hlo_shape_retype(q->module, shape, type) : NULL;
}

static hlo_type part_type(hlo_type type) {
    return type == HLO_TYPE_C64 ? HLO_TYPE_F32 : type == HLO_TYPE_C128 ? HLO_TYPE_F64 : type;
}

const hlo_shape *hlo_infer_ABS(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_SIGNED | ON_FLOAT | ON_COMPLEX);
    return shape ? retyped(q, shape, part_type(shape->type)) : NULL;
}

const hlo_shape *hlo_infer_PART(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_FLOAT | ON_COMPLEX);
    return shape ? retyped(q, shape, part_type(shape->type)) : NULL;
}

const hlo_shape *hlo_infer_COMPLEX(const hlo_inference *q) {
    const hlo_shape *shape = elementwise(q, ON_FLOAT);
    if (!shape) return NULL;
    if (shape->type != HLO_TYPE_F32 && shape->type != HLO_TYPE_F64)
        return hlo_infer_fail(q, "not defined for %s", hlo_types[shape->type].name);
    return retyped(q, shape, shape->type == HLO_TYPE_F64 ? HLO_TYPE_C128 : HLO_TYPE_C64);
}

const hlo_shape *hlo_infer_FINITE(const hlo_inference *q) {
    return retyped(q, elementwise(q, ON_FLOAT), HLO_TYPE_PRED);
}

const hlo_shape *hlo_infer_COMPARE(const hlo_inference *q) {
    return retyped(q, elementwise(q, ON_ALL), HLO_TYPE_PRED);
}

const hlo_shape *hlo_infer_REDUCE_PRECISION(const hlo_inference *q) {
    if (hlo_infer_int(q, HLO_ATTR_EXPONENT_BITS, 0) < 1)
        return hlo_infer_fail(q, "exponent_bits must be 1 or more");
    if (hlo_infer_int(q, HLO_ATTR_MANTISSA_BITS, 0) < 0)
        return hlo_infer_fail(q, "mantissa_bits must be 0 or more");
    return elementwise(q, ON_FLOAT);
}

const hlo_shape *hlo_infer_CONVERT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0), *to = hlo_infer_given(q);
    if (!to) return NULL;
    if (!hlo_shape_is_array(to)) return hlo_infer_fail(q, "the result is no array");
    return retyped(q, from, to->type);
}

const hlo_shape *hlo_infer_STOCHASTIC_CONVERT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 2)) return NULL;
    const hlo_shape *from = hlo_infer_operand(q, 0), *random = hlo_infer_operand(q, 1);
    if (!check_class(q, from->type, ON_FLOAT)) return NULL;
    if (hlo_types[random->type].class != HLO_CLASS_UNSIGNED ||
        hlo_types[random->type].bits != hlo_types[from->type].bits)
        return hlo_infer_fail(q, "the random bits must be unsigned and as wide as the operand");
    if (!hlo_infer_dims_fit(from, random))
        return hlo_infer_fail(q, "the operands' dimensions differ");
    return hlo_infer_given(q) ? retyped(q, from, q->given->type) : NULL;
}

const hlo_shape *hlo_infer_CLAMP(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *low = hlo_infer_operand(q, 0), *shape = hlo_infer_operand(q, 1),
                    *high = hlo_infer_operand(q, 2);
    if (low->type != shape->type || high->type != shape->type)
        return hlo_infer_fail(q, "the operands' element types differ");
    if (!check_class(q, shape->type, ON_ALL & ~ON_COMPLEX)) return NULL;
    if ((low->rank && !hlo_infer_dims_fit(low, shape)) ||
        (high->rank && !hlo_infer_dims_fit(high, shape)))
        return hlo_infer_fail(q, "a bound must be a scalar or have the dimensions of operand 1");
    return shape;
}

/* The result takes the layout of the predicate when that is an array, as XLA's inference does. */
const hlo_shape *hlo_infer_SELECT(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 3)) return NULL;
    const hlo_shape *p = hlo_infer_operand(q, 0), *a = hlo_infer_operand(q, 1),
                    *b = hlo_infer_operand(q, 2);
    if (p->type != HLO_TYPE_PRED) return hlo_infer_fail(q, "operand 0 is no pred");
    if (a->type != b->type) return hlo_infer_fail(q, "the element types of the two choices differ");
    if (!hlo_infer_dims_fit(a, b))
        return hlo_infer_fail(q, "the dimensions of the two choices differ");
    if (p->rank == 0) return a;
    if (!hlo_infer_dims_fit(p, a))
        return hlo_infer_fail(q, "the pred is neither a scalar nor of the choices' dimensions");
    return retyped(q, p, a->type);
}

/* ------------------------------------------------------------------ tuples, calls, control flow */

const hlo_shape *hlo_infer_GIVEN(const hlo_inference *q) {
    return hlo_infer_given(q);
}

const hlo_shape *hlo_infer_FIRST(const hlo_inference *q) {
    return hlo_infer_operand(q, 0);
}

const hlo_shape *hlo_infer_TUPLE(const hlo_inference *q) {
    const hlo_shape **elements = hlo_infer_scratch(q, q->count, sizeof *elements);
    for (uint32_t i = 0; i < q->count; i++) elements[i] = hlo_infer_operand(q, i);
    return hlo_shape_tuple(q->module, q->count, elements);
}

const hlo_shape *hlo_infer_TUPLE_ELEMENT(const hlo_inference *q) {
    const hlo_shape *tuple = hlo_infer_operand(q, 0);
    int64_t index = hlo_infer_int(q, HLO_ATTR_INDEX, 0);
    if (tuple->type != HLO_TYPE_TUPLE) return hlo_infer_fail(q, "the operand is no tuple");
    if (index < 0 || index >= tuple->rank)
        return hlo_infer_fail(q, "the tuple has %u elements, none of index %lld", tuple->rank,
                              (long long)index);
    return tuple->elements[index];
}

static const hlo_shape **operand_shapes(const hlo_inference *q) {
    const hlo_shape **shapes = hlo_infer_scratch(q, q->count, sizeof *shapes);
    for (uint32_t i = 0; i < q->count; i++) shapes[i] = hlo_infer_operand(q, i);
    return shapes;
}

const hlo_shape *hlo_infer_CALL(const hlo_inference *q) {
    hlo_attr_id id = q->op == HLO_OP_FUSION ? HLO_ATTR_CALLS : HLO_ATTR_TO_APPLY;
    const hlo_computation *comp = hlo_infer_called(q, id, q->count, operand_shapes(q), NULL);
    return comp ? comp->root->shape : NULL;
}

const hlo_shape *hlo_infer_CUSTOM_CALL(const hlo_inference *q) {
    const hlo_attr *wanted = hlo_infer_attr(q, HLO_ATTR_OPERAND_LAYOUT_CONSTRAINTS);
    if (!wanted) return hlo_infer_given(q);
    const hlo_shapes *shapes = wanted->u.shapes;
    if (shapes->count != q->count)
        return hlo_infer_fail(q, "operand_layout_constraints has %u shapes for %u operands",
                              shapes->count, q->count);
    for (uint32_t i = 0; i < q->count; i++)
        if (!hlo_infer_fits(shapes->v[i], hlo_infer_operand(q, i)))
            return hlo_infer_fail_at(
                q, q->operands[i]->offset,
                "operand_layout_constraints has %s for operand %u, which is %s",
                hlo_infer_text(q, shapes->v[i]), i, hlo_infer_text(q, hlo_infer_operand(q, i)));
    return hlo_infer_given(q);
}

const hlo_shape *hlo_infer_WHILE(const hlo_inference *q) {
    const hlo_shape *state = hlo_infer_operand(q, 0);
    const hlo_shape *pred = hlo_shape_array(q->module, HLO_TYPE_PRED, 0, NULL);
    if (!hlo_infer_called(q, HLO_ATTR_CONDITION, 1, &state, pred)) return NULL;
    return hlo_infer_called(q, HLO_ATTR_BODY, 1, &state, state) ? state : NULL;
}

const hlo_shape *hlo_infer_CONDITIONAL(const hlo_inference *q) {
    const hlo_attr *list = hlo_infer_attr(q, HLO_ATTR_BRANCH_COMPUTATIONS);
    const hlo_attr *on_true = hlo_infer_attr(q, HLO_ATTR_TRUE_COMPUTATION);
    const hlo_attr *on_false = hlo_infer_attr(q, HLO_ATTR_FALSE_COMPUTATION);
    if (!list && !(on_true && on_false))
        return hlo_infer_fail(
            q, "needs 'true_computation' and 'false_computation', or 'branch_computations'");
    const hlo_shape *selector = hlo_infer_operand(q, 0), *result = NULL;
    bool by_pred = hlo_shape_is_scalar(selector) && selector->type == HLO_TYPE_PRED;
    bool by_index = hlo_shape_is_scalar(selector) && selector->type == HLO_TYPE_S32;
    if (!by_pred && !(by_index && list))
        return hlo_infer_fail(q, "operand 0 must be pred[]%s", list ? " or s32[]" : "");
    uint32_t branches = list ? list->u.comps->count : 2;
    if (branches + 1 != q->count || (by_pred && branches != 2))
        return hlo_infer_fail(q, "branches and operands for them differ in number: %u and %u",
                              branches, q->count - 1);
    for (uint32_t i = 0; i < branches; i++) {
        const hlo_computation *branch =
            list ? list->u.comps->v[i] : (i == 0 ? on_true : on_false)->u.comp;
        const hlo_shape *operand = hlo_infer_operand(q, i + 1);
        if (!takes(q, branch, 1, &operand, result)) return NULL;
        result = branch->root->shape;
    }
    return result ? result : hlo_infer_fail(q, "has no branch");
}

static bool one_dimension(const hlo_inference *q, const hlo_shape *shape) {
    const hlo_ints *dims = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS);
    if (dims->count != 1) return hlo_infer_fail(q, "'dimensions' must name one dimension");
    return hlo_infer_dims(q, dims, shape->rank, "dimension");
}

const hlo_shape *hlo_infer_GET_DIMENSION_SIZE(const hlo_inference *q) {
    if (!hlo_infer_arrays(q, 0, 1) || !one_dimension(q, hlo_infer_operand(q, 0))) return NULL;
    return hlo_shape_array(q->module, HLO_TYPE_S32, 0, NULL);
}

const hlo_shape *hlo_infer_SET_DIMENSION_SIZE(const hlo_inference *q) {
    const hlo_shape *shape = hlo_infer_operand(q, 0);
    if (!hlo_infer_arrays(q, 0, 1) || !one_dimension(q, shape)) return NULL;
    const hlo_shape *size = hlo_infer_operand(q, 1);
    if (!hlo_shape_is_scalar(size) || size->type != HLO_TYPE_S32)
        return hlo_infer_fail(q, "the size must be s32[]");
    int64_t which = hlo_infer_ints(q, HLO_ATTR_DIMENSIONS)->v[0];
    bool *dynamic = hlo_infer_scratch(q, shape->rank, sizeof *dynamic);
    for (uint32_t i = 0; i < shape->rank; i++)
        dynamic[i] = i == which || (shape->dynamic && shape->dynamic[i]);
    hlo_shape changed = *shape;
    changed.dynamic = dynamic;
    return hlo_shape_intern(q->module, &changed);
}

/* ------------------------------------------------------------------------------- random numbers */

const hlo_shape *hlo_infer_RNG(const hlo_inference *q) {
    const hlo_shape *a = hlo_infer_operand(q, 0), *b = hlo_infer_operand(q, 1);
    if (!hlo_shape_is_scalar(a) || !hlo_shape_is_scalar(b) || a->type != b->type)
        return hlo_infer_fail(q, "the operands must be two scalars of one type");
    if (!hlo_infer_given(q)) return NULL;
    if (q->given->type != a->type)
        return hlo_infer_fail(q, "the result has another element type: %s",
                              hlo_types[q->given->type].name);
    return q->given;
}

/* The new state and the bits, or the bits alone. */
const hlo_shape *hlo_infer_RNG_BITS(const hlo_inference *q) {
    const hlo_shape *state = hlo_infer_operand(q, 0), *given = hlo_infer_given(q);
    if (!given) return NULL;
    if (!hlo_shape_is_array(state) || hlo_types[state->type].class != HLO_CLASS_UNSIGNED ||
        state->rank != 1)
        return hlo_infer_fail(q, "the state must be a vector of unsigned integers");
    bool pair = given->type == HLO_TYPE_TUPLE && given->rank == 2;
    if (pair && !hlo_infer_fits(given->elements[0], state))
        return hlo_infer_fail(q, "element 0 of the result is %s, not the state's %s",
                              hlo_infer_text(q, given->elements[0]), hlo_infer_text(q, state));
    if (!hlo_shape_is_array(pair ? given->elements[1] : given))
        return hlo_infer_fail(q, "the result is no array of random bits");
    return given;
}

const hlo_shape *hlo_infer_RNG_STATE(const hlo_inference *q) {
    return hlo_shape_array(q->module, HLO_TYPE_U64, 1, (const int64_t[]){2});
}
