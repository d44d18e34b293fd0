/* SPDX-License-Identifier: Apache-2.0 */
/* dot: both operands as matrices of one lane type, and a matrix product per batch. */
#include <string.h>

#include "ir/kernel/kernel.h"

hlo_dot_dims hlo_dot_dims_of(const hlo_instr *dot) {
    return (hlo_dot_dims){hlo_instr_ints(dot, HLO_ATTR_LHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS)};
}

/* ---------------------------------------------------------------------------------- other lanes */

typedef struct inner {
    int64_t n, k;
    const void *a, *b; /* [m, k], [n, k], dense */
    void *c;           /* [m, n] */
} inner;

#define INNER(name, T)                                                                             \
    static void name(void *arg, int64_t begin, int64_t end) {                                      \
        const inner *p = arg;                                                                      \
        for (int64_t i = begin; i < end; i++)                                                      \
            for (int64_t j = 0; j < p->n; j++) {                                                   \
                const T *a = (const T *)p->a + i * p->k;                                           \
                const T *b = (const T *)p->b + j * p->k;                                           \
                T sum = 0;                                                                         \
                for (int64_t l = 0; l < p->k; l++) sum += a[l] * b[l];                             \
                ((T *)p->c)[i * p->n + j] = sum;                                                   \
            }                                                                                      \
    }
INNER(inner_u64, uint64_t)
INNER(inner_c128, double _Complex)

/* ------------------------------------------------------------------------------------- operands */

/* An operand as [batch, free, contracting]: three groups of dimensions, each merged into one. */
typedef struct operand {
    hlo_dims dims, strides; /* dimensions in that order */
    hlo_view view;
    uint32_t batch, open; /* number of dimensions in the first and second group */
    int64_t size[3], stride[3];
} operand;

static void arrange(operand *o, const hlo_view *view, const hlo_ints *batch,
                    const hlo_ints *contracting) {
    o->view = hlo_view_group(view, batch, contracting, &o->dims, &o->strides);
    o->batch = batch->count;
    o->open = view->rank - batch->count - contracting->count;
}

/* True if each group can be traversed with one nonnegative stride. */
static bool as_matrices(operand *o) {
    uint32_t ends[] = {o->batch, o->batch + o->open, o->view.rank}, d = 0;
    bool plain = true;
    for (int g = 0; g < 3; g++) {
        o->size[g] = 1;
        o->stride[g] = 0;
        for (; d < ends[g]; d++) {
            if (o->dims.v[d] == 1) continue;
            if (o->size[g] != 1 && o->stride[g] != o->strides.v[d] * o->dims.v[d]) plain = false;
            plain &= o->strides.v[d] >= 0;
            o->size[g] *= o->dims.v[d];
            o->stride[g] = o->strides.v[d];
        }
    }
    return plain;
}

/* Copies the operand to a dense array of `type`. */
static void pack(const hlo_eval_env *env, operand *o, hlo_type type, hlo_arena *scratch) {
    hlo_view dense = hlo_view_scratch(scratch, type, &o->view);
    hlo_view_convert(env, &o->view, &dense);
    o->view = dense;
    o->stride[2] = 1;
    o->stride[1] = o->size[2];
    o->stride[0] = o->size[1] * o->size[2];
}

static hlo_type lane_type(hlo_lane lane) {
    static const hlo_type types[HLO_LANE_COUNT] = {[HLO_LANE_F32] = HLO_TYPE_F32,
                                                   [HLO_LANE_F64] = HLO_TYPE_F64,
                                                   [HLO_LANE_S64] = HLO_TYPE_S64,
                                                   [HLO_LANE_U64] = HLO_TYPE_U64,
                                                   [HLO_LANE_C128] = HLO_TYPE_C128};
    return types[lane];
}

static bool is_float_lane(hlo_lane lane) {
    return lane == HLO_LANE_F32 || lane == HLO_LANE_F64;
}

/* True if a product reads the operand in place. */
static bool is_factor(hlo_lane lane, const operand *o, bool plain) {
    const hlo_lane own = hlo_lane_of(o->view.type);
    return plain && is_float_lane(lane) && (own == HLO_LANE_F32 || own == lane);
}

static hlo_factor factor_of(const operand *o) {
    return (hlo_factor){o->view.type, o->view.data, o->stride[0], o->stride[1], o->stride[2]};
}

hlo_status hlo_eval_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                              const hlo_view *rhs, const hlo_view *result, hlo_arena *scratch,
                              const char **why) {
    static const hlo_eval_env alone = {0};
    if (!env) env = &alone;
    /* The lane of a product is that of the result. But floats are summed as floats if the result
     * has integers, and f64 as f64; both are converted after the sum, as in XLA. */
    const hlo_lane l = hlo_lane_of(lhs->type), r = hlo_lane_of(rhs->type);
    hlo_lane lane = hlo_lane_of(result->type);
    if (lane != HLO_LANE_C128 && (is_float_lane(l) || is_float_lane(r)))
        lane = l == HLO_LANE_F64 || r == HLO_LANE_F64 ? HLO_LANE_F64
               : is_float_lane(lane)                  ? lane
                                                      : HLO_LANE_F32;
    if (hlo_lane_of(result->type) == HLO_LANE_NONE || l == HLO_LANE_NONE || r == HLO_LANE_NONE) {
        *why = "the operands of a dot must be arrays";
        return HLO_INVALID_INPUT;
    }
    hlo_arena_mark mark = hlo_arena_here(scratch);
    operand a, b;
    arrange(&a, lhs, dims.lhs_batch, dims.lhs_contracting);
    arrange(&b, rhs, dims.rhs_batch, dims.rhs_contracting);
    hlo_type type = lane_type(lane);
    if (!is_factor(lane, &a, as_matrices(&a))) pack(env, &a, type, scratch);
    if (!is_factor(lane, &b, as_matrices(&b))) pack(env, &b, type, scratch);
    hlo_view c = *result;
    const bool in_place = result->type == type && hlo_view_is_dense(result);
    if (!in_place) c = hlo_view_scratch(scratch, type, result);
    if (is_float_lane(lane)) {
        const hlo_product product = {lane_type(lane), a.size[0],     a.size[1],     b.size[1],
                                     a.size[2],       factor_of(&a), factor_of(&b), c.data};
        hlo_product_run(env, &product, scratch);
    } else {
        int64_t m = a.size[1], n = b.size[1], k = a.size[2];
        int64_t size = (int64_t)hlo_lane_size(lane);
        void (*body)(void *, int64_t, int64_t) = lane == HLO_LANE_C128 ? inner_c128 : inner_u64;
        for (int64_t batch = 0; batch < a.size[0]; batch++) {
            inner p = {n, k, (const char *)a.view.data + batch * a.stride[0] * size,
                       (const char *)b.view.data + batch * b.stride[0] * size,
                       (char *)c.data + batch * m * n * size};
            if (env->parallel && m * n * k > 1 << 18)
                env->parallel(env->user, m, body, &p);
            else
                body(&p, 0, m);
        }
    }
    if (!in_place) hlo_view_convert(env, &c, result);
    hlo_arena_release(scratch, mark);
    return HLO_OK;
}

static hlo_status run_dot(hlo_call *call) {
    if (call->operand_count != 2) return hlo_call_refuse(call, "sparse dots are not supported");
    return hlo_eval_dot_views(call->env, hlo_dot_dims_of(call->instr), &call->operands[0],
                              &call->operands[1], &call->results[0], call->scratch, &call->why);
}
const hlo_kernel hlo_eval_dot = {.run = run_dot, .error = HLO_ERROR_DOT};
