/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluates the rows of types.def and limit.def for a matmul. */
#include <math.h>
#include <string.h>

#include "matmul/call.h"

typedef struct side {
    bool fp8, e5m2;
    uint32_t contracting, free; /* numbers of contracting and of free dimensions */
} side;

typedef struct facts {
    const hlo_matmul *m;
    const hlo_target *target;
    int cuda;
    const hlo_epilogue_info *epilogue;
    side a, b;
    bool empty, huge, d_fp8, types_known, algorithm_fp8;
    bool batch_minor, d_n_minor;     /* batch_minor: a batch dimension is minor in D or C */
    bool scale_arrays, scale_blocks; /* scale_arrays: at least one scale is not a scalar;
                                      * scale_blocks: at least one is per block */
    bool tiled;                      /* a scale mode is VEC32 or VEC16 */
    int64_t batch;
    bool scales_used; /* the call has the form HLO_SCALES_USED, which XLA of 2026 reads */
} facts;

/* Returns the minor-most dimension, or -1. Skips batch dimensions of size 1, but not m and n,
 * because these are padded. */
static int64_t minor_dimension(const hlo_shape *shape, uint32_t batch) {
    bool ordered = shape->layout && hlo_shape_is_ordered(shape);
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = ordered ? shape->layout->minor_to_major[i] : shape->rank - 1 - i;
        if (dim >= batch || shape->dims[dim] > 1) return dim;
    }
    return -1;
}

static side side_facts(const hlo_shape *shape, const hlo_ints *batch, const hlo_ints *contracting,
                       hlo_scale_mode mode) {
    return (side){
        .fp8 = mode == HLO_SCALE_VEC16 ? shape->type == HLO_TYPE_F4E2M1FN
                                       : hlo_type_is_fp8_operand(shape->type),
        .e5m2 = shape->type == HLO_TYPE_F8E5M2,
        .contracting = contracting->count,
        .free = shape->rank - batch->count - contracting->count,
    };
}

typedef struct types_row {
    bool mixed;
    hlo_type c, d, bias;
} types_row;

static const types_row types_rows[] = {
#define HLO_MATMUL_TYPES(mixed, c, d, bias) {mixed, HLO_TYPE_##c, HLO_TYPE_##d, HLO_TYPE_##bias},
#define HLO_MATMUL_WIDE_TYPES(operands, d, bias)
#include "matmul/table/types.def"
#undef HLO_MATMUL_TYPES
#undef HLO_MATMUL_WIDE_TYPES
};

static bool types_known(const hlo_matmul *m, bool mixed) {
    for (size_t i = 0; i < sizeof types_rows / sizeof *types_rows; i++) {
        const types_row *row = &types_rows[i];
        if (row->d == m->d->type && (mixed || !row->mixed) &&
            (!m->c || row->c == m->c->shape->type) &&
            (!m->bias || row->bias == m->bias->shape->type))
            return true;
    }
    return false;
}

static const hlo_wide_types wide_rows[] = {
#define HLO_MATMUL_TYPES(mixed, c, d, bias)
#define HLO_MATMUL_WIDE_TYPES(operands, d, bias)                                                   \
    {HLO_TYPE_##operands, HLO_TYPE_##d, HLO_TYPE_##bias},
#include "matmul/table/types.def"
#undef HLO_MATMUL_TYPES
#undef HLO_MATMUL_WIDE_TYPES
};

const hlo_wide_types *hlo_matmul_wide_types(uint32_t index) {
    return index < sizeof wide_rows / sizeof *wide_rows ? &wide_rows[index] : NULL;
}

static double padded(int64_t size, int64_t to) {
    return (double)((size - 1) / to + 1) * (double)to;
}

static bool is_batch(const hlo_matmul *m, int64_t result_dim) {
    return result_dim >= 0 && result_dim < (int64_t)m->a_batch->count;
}

const char *hlo_matmul_check(const hlo_matmul *m, const hlo_target *target, int cuda,
                             hlo_scale_form scales) {
    if (m->wide) {
        const hlo_wide_types *row;
        for (uint32_t i = 0; (row = hlo_matmul_wide_types(i)); i++)
            if (row->operands == m->a->shape->type && row->operands == m->b->shape->type &&
                row->d == m->d->type && (!m->c || row->d == m->c->shape->type) &&
                (!m->bias || row->bias == m->bias->shape->type))
                return NULL;
        return "type-combination";
    }
    facts f[1] = {{
        .m = m,
        .target = target,
        .cuda = cuda,
        .epilogue = &hlo_epilogues[m->epilogue],
        .scales_used = scales == HLO_SCALES_USED,
        .a = side_facts(m->a->shape, m->a_batch, m->a_contracting, m->a_mode),
        .b = side_facts(m->b->shape, m->b_batch, m->b_contracting, m->b_mode),
        .d_fp8 = hlo_type_is_fp8(m->d->type),
        .algorithm_fp8 = !m->algorithm || strncmp(m->algorithm, "dot_any_f8_any_f8_f32", 21) == 0,
    }};
    f->scale_arrays = m->a_mode != HLO_SCALE_SCALAR || m->b_mode != HLO_SCALE_SCALAR;
    f->scale_blocks = hlo_scale_modes[m->a_mode].along || hlo_scale_modes[m->b_mode].along;
    f->tiled = hlo_matmul_is_tiled(m);
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    f->batch = size.batch;
    f->empty = size.batch == 0 || size.m == 0 || size.n == 0 || size.k == 0;
    /* An array is too large if it has about 2^62 bytes or more after padding. A valid shape has
     * fewer than 2^63 bytes. */
    const int64_t each = hlo_matmul_alignment(m, false);
    const double rows = padded(size.m, each), columns = padded(size.n, each),
                 k = padded(size.k, hlo_matmul_alignment(m, true));
    const double most = fmax(4 * rows * columns, fmax(rows, columns) * k);
    f->huge = !f->empty && (double)size.batch * most >= 0x1p62;
    f->types_known = types_known(m, f->a.e5m2 != f->b.e5m2);
    int64_t minor = minor_dimension(m->d, m->a_batch->count);
    f->batch_minor = is_batch(m, minor) ||
                     (m->c && is_batch(m, minor_dimension(m->c->shape, m->a_batch->count)));
    f->d_n_minor = minor < 0 || minor >= (int64_t)(m->a_batch->count + f->a.free);
#define HLO_LIMIT(name, test)                                                                      \
    if (test) return name;
#include "matmul/table/limit.def"
#undef HLO_LIMIT
    return NULL;
}

int64_t hlo_matmul_alignment(const hlo_matmul *matmul, bool contracting) {
    enum { TILED_K = 32, TILE_ROWS = 128, TILE_STEPS = 4 };
    const bool tiled = hlo_matmul_is_tiled(matmul);
    const bool several = tiled && hlo_matmul_extents(matmul).batch > 1;
    if (several)
        return contracting ? TILE_STEPS * hlo_scale_modes[matmul->a_mode].along : TILE_ROWS;
    return tiled && contracting ? TILED_K : HLO_MATMUL_ALIGNMENT;
}

bool hlo_matmul_layout_ok(const hlo_matmul *matmul, const hlo_target *target, bool b) {
    const hlo_shape *shape = b ? matmul->b->shape : matmul->a->shape;
    const hlo_ints *batch = b ? matmul->b_batch : matmul->a_batch;
    const hlo_ints *contracting = b ? matmul->b_contracting : matmul->a_contracting;
    /* If there are several batch dimensions, they must be first and in order. */
    for (uint32_t i = 0; i < batch->count && batch->count > 1; i++)
        if (batch->v[i] != i || !hlo_shape_is_row_major(shape)) return false;
    if (target->tn_only || hlo_matmul_is_tiled(matmul))
        return hlo_shape_is_row_major(shape) && hlo_ints_contain(contracting, shape->rank - 1);
    int64_t minor = shape->layout ? shape->layout->minor_to_major[0] : shape->rank - 1;
    return !hlo_ints_contain(batch, minor);
}

const hlo_ints *hlo_matmul_dims_beneath(const hlo_instruction *transpose, const hlo_ints *dims) {
    if (transpose->op == HLO_OP_COPY) return dims;
    const hlo_ints *order = hlo_instr_ints(transpose, HLO_ATTR_DIMENSIONS);
    hlo_module *module = transpose->parent->module;
    int64_t *beneath = hlo_arena_array(module->arena, dims->count, sizeof *beneath);
    for (uint32_t i = 0; i < dims->count; i++) beneath[i] = order->v[dims->v[i]];
    return hlo_ints_new(module, dims->count, beneath);
}
