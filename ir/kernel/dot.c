/* dot: both operands as matrices of one lane type, a matrix product per batch. */
#include <string.h>

#include "ir/kernel/kernel.h"

hlo_dot_dims hlo_dot_dims_of(const hlo_instr *dot) {
    return (hlo_dot_dims){hlo_instr_ints(dot, HLO_ATTR_LHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_LHS_CONTRACTING_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_BATCH_DIMS),
                          hlo_instr_ints(dot, HLO_ATTR_RHS_CONTRACTING_DIMS)};
}

/* --------------------------------------------------------------------- the plain matrix product */

enum { PANEL_ROWS = 64, PANEL_COLUMNS = 256 };

/* Computes rows [begin, end) of c, panel by panel of b. */
static void multiply_rows(void *arg, int64_t begin, int64_t end) {
    const hlo_product *p = arg;
    const float *a = p->a, *b = p->b;
    float panel[PANEL_ROWS][PANEL_COLUMNS], *rows_of_c = p->c;
    memset(rows_of_c + begin * p->n, 0, (size_t)((end - begin) * p->n) * sizeof(float));
    for (int64_t j0 = 0; j0 < p->n; j0 += PANEL_COLUMNS) {
        int64_t columns = p->n - j0 < PANEL_COLUMNS ? p->n - j0 : PANEL_COLUMNS;
        for (int64_t l0 = 0; l0 < p->k; l0 += PANEL_ROWS) {
            int64_t rows = p->k - l0 < PANEL_ROWS ? p->k - l0 : PANEL_ROWS;
            for (int64_t l = 0; l < rows; l++)
                for (int64_t j = 0; j < columns; j++)
                    panel[l][j] = b[(l0 + l) * p->b_row + (j0 + j) * p->b_col];
            for (int64_t i = begin; i < end; i++) {
                float *c = rows_of_c + i * p->n + j0;
                for (int64_t l = 0; l < rows; l++) {
                    float x = a[i * p->a_row + (l0 + l) * p->a_col];
                    for (int64_t j = 0; j < columns; j++) c[j] += x * panel[l][j];
                }
            }
        }
    }
}

static void multiply_f32(const hlo_eval_env *env, hlo_product p) {
    if (env->parallel && p.m * p.n * p.k > 1 << 18)
        env->parallel(env->user, p.m, multiply_rows, &p);
    else
        multiply_rows(&p, 0, p.m);
}

/* ------------------------------------------------------------------------------------ any lanes */

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
INNER(inner_f64, double)
INNER(inner_u64, uint64_t)
INNER(inner_c128, double _Complex)

/* ------------------------------------------------------------------------------------- operands */

/* An operand as [batch, free, contracting]: three groups of dimensions, each one dimension. */
typedef struct operand {
    hlo_dims dims, strides; /* of all dimensions, in that order */
    hlo_view view;
    uint32_t batch, open; /* dimensions in the first group, and in the second */
    int64_t size[3], stride[3];
    const void *data;
} operand;

static void arrange(operand *o, const hlo_view *view, const hlo_ints *batch,
                    const hlo_ints *contracting) {
    o->view = hlo_view_group(view, batch, contracting, &o->dims, &o->strides);
    o->batch = batch->count;
    o->open = view->rank - batch->count - contracting->count;
}

/* True if each group can be traversed with one stride, not backwards, and one of the last two
 * strides is 1. */
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
    if (o->size[2] == 1 && o->stride[1] != 1) o->stride[2] = 1;
    if (o->size[1] == 1 && o->stride[2] != 1) o->stride[1] = 1;
    return plain && (o->stride[1] == 1 || o->stride[2] == 1);
}

static bool is_dense(const hlo_view *view) {
    hlo_dims strides;
    hlo_view_dense(view, &strides);
    for (uint32_t d = 0; d < view->rank; d++)
        if (view->dims[d] != 1 && view->strides[d] != strides.v[d]) return false;
    return true;
}

/* True if the elements lie together, but not in row-major order. */
static bool is_permuted(const hlo_view *view) {
    int64_t extent = 1;
    for (uint32_t d = 0; d < view->rank; d++) {
        if (view->strides[d] == 0 && view->dims[d] != 1) return false;
        extent += (view->dims[d] - 1) * view->strides[d];
    }
    return extent == hlo_view_count(view) && !is_dense(view);
}

/* Uses the operand in place if it has `type` and its strides satisfy `strided`; otherwise packs it.
 */
static void pack(const hlo_eval_env *env, operand *o, hlo_type type, bool strided,
                 hlo_arena *scratch) {
    bool plain = as_matrices(o);
    o->data = o->view.data;
    if (plain && strided && o->view.type == type) return;
    hlo_view dense = hlo_view_scratch(scratch, type, &o->view), from = o->view;
    if (o->view.type != type && is_permuted(&o->view)) {
        /* Converted in the order of memory, and then turned, which is what copies are fast at. */
        int64_t count = hlo_view_count(&o->view), one = 1;
        const hlo_view in = {from.type, 1, &count, &one, from.data};
        from.type = type;
        from.data = hlo_arena_array(scratch, (size_t)count, hlo_types[type].bytes);
        hlo_view_convert(env, &in, &(hlo_view){type, 1, &count, &one, from.data});
    }
    hlo_view_convert(env, &from, &dense);
    o->data = dense.data;
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

/* True if the host's matrix product computes it. */
static bool is_lent(const hlo_eval_env *env, hlo_lane lane) {
    return env->gemm && (lane == HLO_LANE_F32 || lane == HLO_LANE_F64);
}

static void multiply_batches(const hlo_eval_env *env, hlo_lane lane, const operand *a,
                             const operand *b, void *c) {
    int64_t m = a->size[1], n = b->size[1], k = a->size[2];
    int64_t size = (int64_t)hlo_lane_size(lane);
    for (int64_t batch = 0; batch < a->size[0]; batch++) {
        const char *left = (const char *)a->data + batch * a->stride[0] * size;
        const char *right = (const char *)b->data + batch * b->stride[0] * size;
        char *out = (char *)c + batch * m * n * size;
        const hlo_product product = {.type = lane_type(lane),
                                     .m = m,
                                     .n = n,
                                     .k = k,
                                     .a = left,
                                     .a_row = a->stride[1],
                                     .a_col = a->stride[2],
                                     .b = right,
                                     .b_row = b->stride[2],
                                     .b_col = b->stride[1],
                                     .c = out};
        if (is_lent(env, lane)) {
            env->gemm(env, &product);
            continue;
        }
        if (lane == HLO_LANE_F32) {
            multiply_f32(env, product);
            continue;
        }
        inner p = {n, k, left, right, out};
        void (*body)(void *, int64_t, int64_t) = lane == HLO_LANE_F64    ? inner_f64
                                                 : lane == HLO_LANE_C128 ? inner_c128
                                                                         : inner_u64;
        if (env->parallel && m * n * k > 1 << 18)
            env->parallel(env->user, m, body, &p);
        else
            body(&p, 0, m);
    }
}

hlo_status hlo_eval_dot_views(const hlo_eval_env *env, hlo_dot_dims dims, const hlo_view *lhs,
                              const hlo_view *rhs, const hlo_view *result, hlo_arena *scratch,
                              const char **why) {
    static const hlo_eval_env alone = {0};
    if (!env) env = &alone;
    hlo_lane lane = hlo_lane_of(result->type);
    if (lane == HLO_LANE_NONE || hlo_lane_of(lhs->type) == HLO_LANE_NONE ||
        hlo_lane_of(rhs->type) == HLO_LANE_NONE) {
        *why = "a dot must be of arrays";
        return HLO_INVALID_INPUT;
    }
    hlo_arena_mark mark = hlo_arena_here(scratch);
    operand a, b;
    arrange(&a, lhs, dims.lhs_batch, dims.lhs_contracting);
    arrange(&b, rhs, dims.rhs_batch, dims.rhs_contracting);
    hlo_type type = lane_type(lane);
    bool strided = lane == HLO_LANE_F32 || is_lent(env, lane);
    pack(env, &a, type, strided, scratch);
    pack(env, &b, type, strided, scratch);
    if (result->type == type && is_dense(result)) {
        multiply_batches(env, lane, &a, &b, result->data);
    } else {
        hlo_view dense = hlo_view_scratch(scratch, type, result);
        multiply_batches(env, lane, &a, &b, dense.data);
        hlo_view_convert(env, &dense, result);
    }
    hlo_arena_release(scratch, mark);
    return HLO_OK;
}

static hlo_status run_dot(hlo_call *call) {
    if (call->operand_count != 2) return hlo_call_refuse(call, "a sparse dot does not run here");
    return hlo_eval_dot_views(call->env, hlo_dot_dims_of(call->instr), &call->operands[0],
                              &call->operands[1], &call->results[0], call->scratch, &call->why);
}
const hlo_kernel hlo_eval_dot = {.run = run_dot, .error = HLO_ERROR_DOT};
