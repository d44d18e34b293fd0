/* Fused calls with some fields changed. */
#include <string.h>

#include "ir/module/known.h"
#include "matmul/product.h"
#include "passes/analysis/scale_range.h"
#include "passes/engine/rewrite.h"

typedef enum field_kind { VALUE, NUMBER, MODE, EPILOGUE, FLAG, TYPE, DIMS } field_kind;

typedef struct field_row {
    field_kind kind;
    size_t offset;
} field_row;

static const field_row fields[] = {
#define HLO_FIELD(name, member, kind) {kind, offsetof(hlo_matmul, member)},
#include "matmul/table/field.def"
#undef HLO_FIELD
};

static bool set_epilogue(hlo_rule_env *env, const hlo_rule_set *set, hlo_epilogue *epilogue) {
    const char *word = hlo_rule_term_at(env, set->term)->word;
    hlo_epilogue value = word ? hlo_epilogue_find(word) : HLO_EPILOGUE_COUNT;
    if (set->add && value != HLO_EPILOGUE_COUNT) value = hlo_epilogue_add(*epilogue, value);
    if (value == HLO_EPILOGUE_COUNT) return hlo_rule_refuse(env, "epilogue-taken", NULL);
    *epilogue = value;
    return true;
}

/* Renumbers dimensions after the first `gone + 1` are collapsed into one. Returns their count. */
static uint32_t collapse_dims(uint32_t count, const int64_t *list, int64_t gone, int64_t *out) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!list[i] || list[i] > gone) out[kept++] = list[i] ? list[i] - gone : 0;
    return kept;
}

static bool all_in_rank(const hlo_ints *dims, uint32_t rank) {
    for (uint32_t i = 0; i < dims->count; i++)
        if (dims->v[i] < 0 || dims->v[i] >= rank) return false;
    return true;
}

/* Sets a list of dimensions of an operand by a word: `first`, `last` or `joined`, for one
 * contracting and one free dimension, or `beneath`, for a transpose. */
static bool set_dims(hlo_rule_env *env, const hlo_rule_set *set, const hlo_ints **member,
                     const hlo_matmul *m) {
    const char *word = hlo_rule_term_at(env, set->term)->word;
    uint32_t rank = m->a_batch->count + 2, count = (*member)->count;
    int64_t dims[HLO_RULE_ARGS];
    if (!word || count > HLO_RULE_ARGS) return hlo_rule_refuse(env, NULL, NULL);
    if (strcmp(word, "beneath") == 0) {
        const hlo_instr *transposed =
            member == &m->a_batch || member == &m->a_contracting ? m->a : m->b;
        if (!hlo_op_is(transposed->op, HLO_REORDERS) ||
            !all_in_rank(*member, transposed->shape->rank))
            return hlo_rule_refuse(env, NULL, NULL);
        *member = hlo_matmul_dims_beneath(transposed, *member);
        return true;
    }
    for (uint32_t i = 0; i < count; i++) dims[i] = strcmp(word, "last") ? i : rank - count + i;
    if (strcmp(word, "joined") == 0)
        count = collapse_dims(count, (*member)->v, (int64_t)m->d->rank - m->a->shape->rank, dims);
    *member = hlo_ints_new(env->context->module, count, dims);
    return true;
}

static bool set_value(hlo_rule_env *env, hlo_instr **member, hlo_instr *value,
                      const hlo_instr *source) {
    if (value && value != *member) {
        if (!hlo_shape_is_array(value->shape)) return hlo_rule_refuse(env, NULL, NULL);
        if (hlo_rule_depends(env, value, source))
            return hlo_rule_refuse(env, "depends-on-result", value);
        if (!hlo_rule_hoist_before(env, value)) return false;
    }
    *member = value;
    return true;
}

static bool set_mode(hlo_rule_env *env, const char *word, hlo_scale_mode *member) {
    hlo_scale_mode mode = word ? hlo_scale_mode_find(word) : HLO_SCALE_MODE_COUNT;
    if (mode == HLO_SCALE_MODE_COUNT) return hlo_rule_refuse(env, NULL, NULL);
    *member = mode;
    return true;
}

/* Sets the element type of a result by its name. */
static bool set_type(hlo_rule_env *env, const char *word, void *member) {
    const hlo_shape **shape = member;
    hlo_type type = hlo_type_find(word, strlen(word));
    if (type == HLO_TYPE_INVALID || !hlo_types[type].bits || !*shape)
        return hlo_rule_refuse(env, NULL, NULL);
    *shape = hlo_shape_retype(env->context->module, *shape, type);
    return true;
}

static bool set_field(hlo_rule_env *env, const hlo_rule_set *set, hlo_matmul *m,
                      const hlo_instr *source) {
    const field_row *row = &fields[set->field];
    char *member = (char *)m + row->offset;
    const hlo_rule_term *t = hlo_rule_term_at(env, set->term);
    if (row->kind == EPILOGUE) return set_epilogue(env, set, (hlo_epilogue *)(void *)member);
    if (row->kind == MODE) return set_mode(env, t->word, (hlo_scale_mode *)(void *)member);
    if (row->kind == DIMS) return set_dims(env, set, (const hlo_ints **)(void *)member, m);
    if (row->kind == TYPE && t->kind == HLO_TERM_WORD) return set_type(env, t->word, member);
    if (row->kind == NUMBER && t->kind == HLO_TERM_NUMBER) {
        *(double *)(void *)member = t->number;
        return true;
    }
    hlo_instr *value = hlo_rule_build(env, set->term);
    if (env->unbuildable) return false;
    switch (row->kind) {
    case VALUE: return set_value(env, (hlo_instr **)(void *)member, value, source);
    case FLAG: *(bool *)member = value != NULL; return true;
    case TYPE:
        if (!value) break;
        if (!hlo_shape_is_array(value->shape)) break;
        if (!hlo_shape_same_dims(value->shape, m->d)) /* a view of the result */
            return set_type(env, hlo_types[value->shape->type].name, member);
        *(const hlo_shape **)(void *)member = value->shape;
        return true;
    case NUMBER:
        if (!value || !hlo_known_number(value, (double *)(void *)member)) break;
        return true;
    default: break;
    }
    return hlo_rule_refuse(env, NULL, NULL);
}

/* Infers the dimensions of D and of the auxiliary result from the operands'; layouts stay. */
static void resize_results(hlo_rule_env *env, hlo_matmul *m) {
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    const hlo_shape *d = m->d;
    uint32_t batch = m->a_batch->count, rank = batch + 2;
    bool joined = batch == 1 && d->rank > rank;
    if (d->rank > HLO_RULE_ARGS || (d->rank != rank && !joined) ||
        (d->rank == rank && d->dims[batch] == size.m && d->dims[batch + 1] == size.n))
        return;
    int64_t dims[HLO_RULE_ARGS], order[HLO_RULE_ARGS];
    memcpy(dims, d->dims, batch * sizeof dims[0]);
    if (joined) dims[0] = size.batch;
    dims[batch] = size.m;
    dims[batch + 1] = size.n;
    const hlo_shape **results[] = {&m->d, &m->aux};
    for (int i = 0; i < 1 + (m->aux != NULL); i++) {
        const hlo_layout *layout = (*results[i])->layout;
        if (layout) collapse_dims(d->rank, layout->minor_to_major, d->rank - rank, order);
        *results[i] = hlo_shape_with_layout(env->context->module, (*results[i])->type, rank, dims,
                                            layout ? order : NULL);
    }
}

hlo_instr *hlo_rule_build_call(hlo_rule_env *env, const hlo_rule_action *action) {
    hlo_instr *source = hlo_rule_build_slot(env, action->operand);
    hlo_matmul m, before;
    const char *reason;
    if (!source) return hlo_rule_refuse(env, NULL, NULL), NULL;
    const bool block = hlo_matmul_from_block(source, &m);
    reason = block || source->op == HLO_OP_DOT ? hlo_remark_kept_wide(env->context, source) : NULL;
    if (reason) return hlo_rule_refuse(env, reason, NULL), NULL;
    if (source->op == HLO_OP_DOT)
        hlo_matmul_from_dot(source, &m);
    else if (!block &&
             (!hlo_matmul_is_call(source) || hlo_matmul_decode(source, &m, &reason) != HLO_OK))
        return hlo_rule_refuse(env, NULL, NULL), NULL;
    before = m;
    for (uint32_t i = 0; i < action->set_count; i++)
        if (!set_field(env, &env->rules->sets[action->first_set + i], &m, source)) return NULL;
    env->fault = hlo_matmul_incomplete(&m);
    if (env->fault) return hlo_rule_refuse(env, NULL, NULL), NULL;
    resize_results(env, &m);
    reason = hlo_scales_fit(env->context->scratch, source, &before, &m)
                 ? hlo_matmul_check(&m, &env->context->target)
                 : "scales-out-of-range";
    if (reason) return hlo_rule_refuse(env, reason, NULL), NULL;
    return hlo_matmul_encode(&m, &env->context->target, source->parent, env->before, source);
}
