/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a cuBLASLt problem from an instruction: swaps operands, merges dimensions, and chooses
 * the attributes of descriptors. */
#include <limits.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/cublaslt/matmul.h"

/* Kinds of dimensions. The dimensions of each kind are merged to one dimension. */
enum { BATCH, FREE, CONTRACTING, KINDS };                           /* of an operand */
enum { ROWS = FREE, COLS = CONTRACTING, DIMS = HLO_EVAL_MAX_RANK }; /* of a result: m and n */

typedef struct axis {
    int64_t size, stride;
} axis;

typedef struct split {
    const hlo_shape *shape;
    uint32_t counts[KINDS], dims[KINDS][DIMS]; /* dimensions of each kind, from major to minor */
    axis axes[KINDS];
    bool apart; /* one call for each index along axis `outer` */
    axis outer;
    bool joined; /* the dimensions of each kind can be merged in memory */
} split;

typedef struct builder {
    const hlo_instruction *instr;
    const hlo_matmul *m;
    const cuda_matmul_options *options;
    hlo_arena *arena;
    cuda_matmul *p;
    hlo_type operand_type, d_type; /* the library's types; INVALID for the instruction's */
    bool apart;                    /* one call for each index of the first batch dimension */
    bool swapped;                  /* the library's A is the instruction's b */
} builder;

/* ----------------------------------------------------------------------------------- dimensions */

static void add_dim(split *s, int kind, int64_t dim) {
    s->dims[kind][s->counts[kind]++] = (uint32_t)dim;
}

static void join_axes(split *s) {
    int64_t strides[DIMS];
    hlo_shape_strides(s->shape, strides);
    s->joined = true;
    for (int kind = 0; kind < KINDS; kind++) {
        axis *a = &s->axes[kind];
        *a = (axis){1, 0};
        const uint32_t first = kind == BATCH && s->apart;
        if (first) s->outer = (axis){s->shape->dims[s->dims[BATCH][0]], strides[s->dims[BATCH][0]]};
        for (uint32_t i = s->counts[kind]; i-- > first;) {
            uint32_t dim = s->dims[kind][i];
            int64_t size = s->shape->dims[dim];
            if (size == 1) continue;
            if (a->size == 1) a->stride = strides[dim];
            if (strides[dim] != a->stride * a->size) s->joined = false;
            a->size *= size;
        }
    }
}

/* Splits the dimensions of D, or of an array of its shape: [batch.., m.., n..]. */
static split split_result(const hlo_matmul *m, const hlo_shape *shape, bool apart) {
    split s = {.shape = shape, .apart = apart};
    uint32_t batch = m->a_batch->count;
    uint32_t rows = m->a->shape->rank - batch - m->a_contracting->count;
    for (uint32_t i = 0; i < shape->rank; i++)
        add_dim(&s, i < batch ? BATCH : i < batch + rows ? ROWS : COLS, i);
    join_axes(&s);
    return s;
}

/* True if the array is column-major, with columns along `minor` and rows along `major`. */
static bool lies(const split *s, int minor, int major) {
    const axis *in = &s->axes[minor], *out = &s->axes[major];
    return s->joined && (in->size == 1 || in->stride == 1) &&
           (out->size == 1 || out->stride >= in->size);
}

/* Sets the distance from the matrices of a part in one call to those in the next call. */
static void set_step(builder *b, lt_part part, const split *s, hlo_type type) {
    b->p->steps[part] = s->apart ? s->outer.stride * hlo_types[type].bytes : 0;
}

static lt_matrix matrix_of(int type, const split *s, int minor, int major) {
    const axis *in = &s->axes[minor], *out = &s->axes[major], *batch = &s->axes[BATCH];
    return (lt_matrix){
        .type = type,
        .rows = in->size,
        .cols = out->size,
        .ld = out->size == 1 ? in->size : out->stride,
        .stride = batch->size == 1 ? 0 : batch->stride,
    };
}

/* ---------------------------------------------------------------------------------------- parts */

static void set(builder *b, int attribute, int64_t value) {
    b->p->settings[b->p->setting_count++] = (lt_setting){attribute, value};
}

static void put(builder *b, lt_part part, cuda_pointer_kind kind, uint32_t index, size_t offset) {
    b->p->present |= 1u << part;
    b->p->places[part] = (cuda_pointer){kind, index, offset};
}

static cuda_pointer operand_place(const builder *b, const hlo_instruction *operand) {
    uint32_t i = 0;
    while (hlo_instr_operand(b->instr, i) != operand) i++;
    return (cuda_pointer){CUDA_OPERAND, i, 0};
}

static void put_operand(builder *b, lt_part part, const hlo_instruction *operand) {
    if (operand) put(b, part, CUDA_OPERAND, operand_place(b, operand).index, 0);
}

static void put_scratch(builder *b, lt_part part, size_t size) {
    put(b, part, CUDA_SCRATCH, 0, b->p->scratch);
    b->p->scratch +=
        (size + b->options->alignment - 1) / b->options->alignment * b->options->alignment;
}

/* Adds a copy of a part between `outside`, its place in the instruction, and scratch memory, where
 * it has the type `type` and `minor` is the minor dimension. */
static void copy_part(builder *b, lt_part part, cuda_pointer outside, hlo_type type, split *s,
                      int major, int minor, const char *why) {
    int64_t *strides = hlo_arena_array(b->arena, s->shape->rank + 1u, sizeof *strides), next = 1;
    const int order[] = {minor, major, BATCH};
    for (int k = 0; k < KINDS; k++) {
        int kind = order[k];
        s->axes[kind].stride = next;
        for (uint32_t i = s->counts[kind]; i-- > 0;) {
            strides[s->dims[kind][i]] = next;
            if (kind == BATCH && i == 0) s->outer.stride = next;
            next *= s->shape->dims[s->dims[kind][i]];
        }
    }
    s->joined = true;
    hlo_view given = hlo_view_in_layout(b->arena, s->shape),
             wanted = (hlo_view){type, s->shape->rank, s->shape->dims, strides, NULL};
    if (type == HLO_TYPE_F4E2M1FN) { /* pack two elements per byte along the fastest dimension */
        const uint32_t rank = wanted.rank, dim = s->dims[minor][s->counts[minor] - 1];
        int64_t *dims = hlo_arena_copy(b->arena, wanted.dims, rank * sizeof *dims);
        for (uint32_t i = 0; i < rank; i++) strides[i] = i == dim ? 1 : strides[i] / 2;
        dims[dim] /= 2;
        wanted = (hlo_view){HLO_TYPE_U8, rank, dims, strides, NULL};
    }
    put_scratch(b, part, (size_t)hlo_view_count(&wanted) * hlo_types[wanted.type].bytes);
    cuda_pointer inside = b->p->places[part];
    cuda_copy *copy = &b->p->copies[b->p->copy_count++];
    if (outside.kind == CUDA_OPERAND) {
        *copy = (cuda_copy){part, outside, inside, given, wanted, why};
        b->p->copies_before++;
    } else {
        *copy = (cuda_copy){part, inside, outside, wanted, given, why};
    }
}

/* Places the library's A (free dimension m) or B (free dimension n). */
static void place_operand(builder *b, lt_part part, const hlo_instruction *operand,
                          const hlo_ints *batch, const hlo_ints *contracting) {
    split s = {.shape = operand->shape, .apart = b->apart};
    for (uint32_t i = 0; i < batch->count; i++) add_dim(&s, BATCH, batch->v[i]);
    for (uint32_t i = 0; i < contracting->count; i++) add_dim(&s, CONTRACTING, contracting->v[i]);
    for (uint32_t i = 0; i < s.shape->rank; i++)
        if (!hlo_ints_contain(batch, i) && !hlo_ints_contain(contracting, i)) add_dim(&s, FREE, i);
    join_axes(&s);
    hlo_type given = operand->shape->type;
    hlo_type type = b->operand_type == HLO_TYPE_INVALID ? given : b->operand_type;
    bool by_rows = lies(&s, CONTRACTING, FREE);
    bool tn_only = b->p->fp8 && (b->options->target->tn_only || hlo_matmul_is_tiled(b->m));
    bool by_columns = lies(&s, FREE, CONTRACTING) && !tn_only;
    if (type != given || type == HLO_TYPE_F4E2M1FN || (!by_rows && !by_columns)) {
        const char *why = "no matrix dimension is minor";
        if (b->p->fp8 && b->options->target->tn_only)
            why = hlo_arena_format(b->arena, "sm_%d requires TN layout", b->options->target->sm);
        if (hlo_matmul_is_tiled(b->m)) why = "block scales require TN layout";
        if (!s.joined) why = "dimensions cannot be merged";
        if (type != given) why = "unsupported type combination";
        if (type == HLO_TYPE_F4E2M1FN) why = "two elements per byte";
        copy_part(b, part, operand_place(b, operand), type, &s, FREE, CONTRACTING, why);
        by_rows = true;
    } else {
        put_operand(b, part, operand);
    }
    int minor = by_rows ? CONTRACTING : FREE, major = by_rows ? FREE : CONTRACTING;
    b->p->matrices[part] = matrix_of(lt_type_word(type), &s, minor, major);
    set_step(b, part, &s, type);
    bool transposed = by_rows == (part == LT_PART_A);
    set(b, part == LT_PART_A ? LT_DESC_TRANSA : LT_DESC_TRANSB,
        transposed ? LT_OPERATION_T : LT_OPERATION_N);
}

static void place_result(builder *b, lt_part part, const hlo_shape *shape, hlo_type type,
                         int index) {
    split s = split_result(b->m, shape, b->apart);
    int minor = b->swapped ? COLS : ROWS, major = b->swapped ? ROWS : COLS;
    if (type != shape->type || !lies(&s, minor, major))
        copy_part(b, part, (cuda_pointer){CUDA_RESULT, (uint32_t)index, 0}, type, &s, major, minor,
                  type != shape->type ? "unsupported type combination" : "layout is not a matrix");
    else
        put(b, part, CUDA_RESULT, (uint32_t)index, 0);
    lt_matrix matrix = matrix_of(lt_type_word(type), &s, minor, major);
    if (part == LT_PART_D) {
        b->p->matrices[LT_PART_D] = matrix;
        set_step(b, part, &s, type);
        return;
    }
    set(b, LT_DESC_EPILOGUE_AUX_LD, matrix.ld);
    if (b->p->batch > 1) set(b, LT_DESC_EPILOGUE_AUX_BATCH_STRIDE, matrix.stride);
}

/* Places C. A call without a C also has a layout of C: that of D, but with the type that the
 * library requires if D is fp8. */
static void place_c(builder *b) {
    const hlo_matmul *m = b->m;
    if (!m->c) {
        lt_matrix c = b->p->matrices[LT_PART_D];
        if (c.type == LT_TYPE_8F_E4M3 || c.type == LT_TYPE_8F_E5M2)
            c.type = m->bias ? lt_type_word(m->bias->shape->type) : LT_TYPE_16BF;
        b->p->matrices[LT_PART_C] = c;
        return;
    }
    split s = split_result(m, m->c->shape, b->apart);
    int minor = b->swapped ? COLS : ROWS, major = b->swapped ? ROWS : COLS;
    hlo_type type = m->c->shape->type;
    if (!lies(&s, minor, major))
        copy_part(b, LT_PART_C, operand_place(b, m->c), type, &s, major, minor,
                  "layout differs from the layout of the result");
    else
        put_operand(b, LT_PART_C, m->c);
    b->p->matrices[LT_PART_C] = matrix_of(lt_type_word(type), &s, minor, major);
}

/* ------------------------------------------------------------------------------------- settings */

static void set_all(builder *b) {
    const hlo_matmul *m = b->m;
    static const int words[HLO_EPILOGUE_COUNT] = {
#define LT_CALL_EPILOGUE(id, word) [HLO_EPILOGUE_##id] = LT_EPILOGUE_##word,
#include "runtime/cuda/cublaslt/epilogue.def"
#undef LT_CALL_EPILOGUE
    };
    set(b, LT_DESC_EPILOGUE, words[m->epilogue]);
    /* Unlike calls, a dot uses fast accumulation only if its algorithm requests it. */
    if (b->p->fp8 && hlo_matmul_accumulates_fast(b->m) &&
        (b->instr->op != HLO_OP_DOT || b->m->algorithm))
        set(b, LT_DESC_FAST_ACCUM, 1);
    if (m->bias) set(b, LT_DESC_BIAS_DATA_TYPE, lt_type_word(m->bias->shape->type));
    put_operand(b, LT_PART_BIAS, m->bias);
    if (m->aux) place_result(b, LT_PART_AUX, m->aux, m->aux->type, hlo_matmul_aux_index(m));
    int amax = hlo_matmul_amax_index(m);
    if (amax >= 0) put(b, LT_PART_AMAX, CUDA_RESULT, (uint32_t)amax, 0);
    /* Place the operands' scales. Set a scale mode only if it is not the default. */
    put_operand(b, LT_PART_A_SCALE, b->swapped ? m->b_scale : m->a_scale);
    put_operand(b, LT_PART_B_SCALE, b->swapped ? m->a_scale : m->b_scale);
    put_operand(b, LT_PART_C_SCALE, m->c_scale);
    put_operand(b, LT_PART_D_SCALE, m->d_scale);
    int a = hlo_scale_modes[b->swapped ? m->b_mode : m->a_mode].value;
    int other = hlo_scale_modes[b->swapped ? m->a_mode : m->b_mode].value;
    if (a) set(b, LT_DESC_A_SCALE_MODE, a);
    if (other) set(b, LT_DESC_B_SCALE_MODE, other);
    static const struct {
        int attribute;
        lt_part part;
    } pointers[] = {
        {LT_DESC_A_SCALE_POINTER, LT_PART_A_SCALE},  {LT_DESC_B_SCALE_POINTER, LT_PART_B_SCALE},
        {LT_DESC_C_SCALE_POINTER, LT_PART_C_SCALE},  {LT_DESC_D_SCALE_POINTER, LT_PART_D_SCALE},
        {LT_DESC_AMAX_D_POINTER, LT_PART_AMAX},      {LT_DESC_BIAS_POINTER, LT_PART_BIAS},
        {LT_DESC_EPILOGUE_AUX_POINTER, LT_PART_AUX},
    };
    for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++)
        if (b->p->present >> pointers[i].part & 1) set(b, pointers[i].attribute, pointers[i].part);
}

/* --------------------------------------------------------------------------------------- limits */

typedef struct facts {
    int sm;
    bool tn_only, tn;
    bool no_epilogue;         /* cuBLASLt does not support the epilogue */
    bool fp4;                 /* A and B have two elements per byte */
    bool tiled;               /* A and B have 8-bit scales per block */
    bool unaligned[4];        /* by lt_part: columns do not begin at multiples of 16 bytes */
    int64_t unaligned_stride; /* a stride between matrices that is not aligned, or 0 */
    int64_t ld;               /* the largest leading dimension of A to D */
    int64_t aux_ld;           /* leading dimension of the auxiliary result; 0 without one */
    int64_t tile_k;           /* elements along k that a tile of scales covers; 0 without tiled
                               * scales or without a batch */
} facts;

static int64_t setting(const cuda_matmul *p, int attribute) {
    for (uint32_t i = 0; i < p->setting_count; i++)
        if (p->settings[i].attribute == attribute) return p->settings[i].value;
    return 0;
}

/* Returns the number of elements along k of a tile of scales, or 0 without tiles. */
static int64_t tile_k(const cuda_matmul *p) {
    for (int mode = 0; mode < HLO_SCALE_MODE_COUNT; mode++)
        if (hlo_scale_modes[mode].tiled &&
            hlo_scale_modes[mode].value == setting(p, LT_DESC_A_SCALE_MODE))
            return 4 * hlo_scale_modes[mode].along;
    return 0;
}

const char *cuda_matmul_preflight(const cuda_matmul *matmul, const cuda_matmul_options *options,
                                  hlo_arena *arena) {
    const cuda_matmul *p = matmul;
    facts found = {
        .sm = options->target->sm,
        .tn_only = options->target->tn_only,
        .tn = setting(p, LT_DESC_TRANSA) == LT_OPERATION_T &&
              setting(p, LT_DESC_TRANSB) == LT_OPERATION_N,
        .fp4 = p->matrices[LT_PART_A].type == LT_TYPE_4F_E2M1,
        .aux_ld = setting(p, LT_DESC_EPILOGUE_AUX_LD),
        .tiled = tile_k(p) != 0,
        .tile_k = p->batch > 1 ? tile_k(p) : 0,
        .no_epilogue = setting(p, LT_DESC_EPILOGUE) == 0, /* epilogue.def has no row for the
                                                           * epilogue */
    };
    for (int part = LT_PART_A; part <= LT_PART_D; part++) {
        const lt_matrix *matrix = &p->matrices[part];
        int64_t bits = hlo_types[lt_type_find(matrix->type)->type].bits;
        found.unaligned[part] = matrix->ld * bits % 128 != 0;
        if (matrix->stride * bits % 128) found.unaligned_stride = matrix->stride;
        if (matrix->ld > found.ld) found.ld = matrix->ld;
    }
    const facts *f = &found;
#define LT_LIMIT(name, test, value)                                                                \
    if (test) return hlo_arena_format(arena, "%s (%lld)", name, (long long)(value));
#include "runtime/cuda/cublaslt/preflight.def"
#undef LT_LIMIT
    return NULL;
}

/* -------------------------------------------------------------------------------- a dot's types */

static bool is_integer(hlo_type type) {
    return hlo_types[type].class == HLO_CLASS_SIGNED || hlo_types[type].class == HLO_CLASS_UNSIGNED;
}

/* Returns n such that the integers of a type have magnitudes of at most 2^n. */
static int magnitude(hlo_type type) {
    return hlo_types[type].bits - (hlo_types[type].class == HLO_CLASS_SIGNED);
}

/* True if the float type `to` represents every value of the type `from`. */
static bool holds(hlo_type from, hlo_type to) {
    if (from == to) return true;
    if (is_integer(from)) return magnitude(from) <= hlo_float_precision(to);
    if (!hlo_type_is_float(from) || hlo_types[from].bits >= hlo_types[to].bits) return false;
    return to != HLO_TYPE_F16 || from != HLO_TYPE_F8E8M0FNU;
}

/* True if every sum of `k` products of integers of types `a` and `b` is exact in floats of type
 * `sum` and representable in type `d`, in any order of summation. A dot's sum would wrap on
 * overflow, but the conversion to `d` does not. */
static bool sums_exactly(hlo_type a, hlo_type b, int64_t k, hlo_type d, hlo_type sum) {
    const bool is_signed = hlo_types[d].class == HLO_CLASS_SIGNED;
    if (!is_integer(a) || !is_integer(b) || !is_integer(d)) return false;
    if (!is_signed &&
        (hlo_types[a].class != hlo_types[d].class || hlo_types[b].class != hlo_types[d].class))
        return false;
    int bits = magnitude(a) + magnitude(b);
    for (int64_t terms = 1; terms < k && bits < 64; terms *= 2) bits++;
    return bits <= hlo_float_precision(sum) && bits <= hlo_types[d].bits - 2 * is_signed;
}

/* ---------------------------------------------------------------------------------------- whole */

/* Builds all parts of the problem. Places D after the operands, because copies after the call
 * follow copies before it. Returns NULL, or the reason on failure. */
static const char *build(builder *b) {
    const hlo_matmul *m = b->m;
    cuda_matmul *p = b->p;
    hlo_matmul_sizes size = hlo_matmul_extents(m);
    if (size.batch == 0 || size.m == 0 || size.n == 0 || size.k == 0)
        return "is not supported by cuBLASLt: empty";
    if (m->a->shape->rank > DIMS || m->b->shape->rank > DIMS || m->d->rank > DIMS)
        return "is not supported by cuBLASLt: too-many-dimensions";
    if (size.batch > INT_MAX) return "is not supported by cuBLASLt: batch-too-large";
    hlo_type d_type = b->d_type == HLO_TYPE_INVALID ? m->d->type : b->d_type;
    split d = split_result(m, m->d, b->apart);
    b->swapped = lies(&d, COLS, ROWS) || m->bias || !lies(&d, ROWS, COLS);
    hlo_type operands = b->operand_type == HLO_TYPE_INVALID ? m->a->shape->type : b->operand_type;
    p->times = b->apart ? m->d->dims[0] : 1;
    p->batch = size.batch / p->times;
    p->m = b->swapped ? size.n : size.m;
    p->n = b->swapped ? size.m : size.n;
    p->k = size.k;
    /* Multiply f32 operands in f32 unless the dot's algorithm names a narrower type. */
    static const struct {
        const char *algorithm;
        int word;
    } narrower[] = {{"dot_tf32_tf32_f32", LT_COMPUTE_32F_FAST_TF32},
                    {"dot_bf16_bf16_f32", LT_COMPUTE_32F_FAST_16BF},
                    {"dot_f16_f16_f32", LT_COMPUTE_32F_FAST_16F}};
    p->compute = operands == HLO_TYPE_F64 ? LT_COMPUTE_64F : LT_COMPUTE_32F;
    for (int i = 0; i < 3 && operands == HLO_TYPE_F32 && m->algorithm; i++)
        if (strcmp(m->algorithm, narrower[i].algorithm) == 0) p->compute = narrower[i].word;
    p->scale_type = operands == HLO_TYPE_F64 ? LT_TYPE_64F : LT_TYPE_32F;
    p->alpha = m->alpha;
    p->beta = m->c ? m->beta : 0;
    p->workspace = b->options->workspace;
    p->alignment = b->options->alignment;
    if (p->workspace) put_scratch(b, LT_PART_WORKSPACE, p->workspace);
    if (b->swapped) {
        place_operand(b, LT_PART_A, m->b, m->b_batch, m->b_contracting);
        place_operand(b, LT_PART_B, m->a, m->a_batch, m->a_contracting);
    } else {
        place_operand(b, LT_PART_A, m->a, m->a_batch, m->a_contracting);
        place_operand(b, LT_PART_B, m->b, m->b_batch, m->b_contracting);
    }
    if (m->c) place_c(b);
    place_result(b, LT_PART_D, m->d, d_type, 0);
    p->reductions = hlo_types[d_type].bits < 32 ? LT_REDUCTION_COMPUTE_TYPE : LT_REDUCTION_MASK;
    if (!m->c) place_c(b);
    set_all(b);
    /* D may reuse the memory of C if both have the same layout and no other part reads it. */
    const cuda_pointer *c = &p->places[LT_PART_C];
    const lt_matrix *from = &p->matrices[LT_PART_C], *to = &p->matrices[LT_PART_D];
    const bool equal = p->present >> LT_PART_C & 1 && c->kind == CUDA_OPERAND &&
                       p->places[LT_PART_D].kind == CUDA_RESULT && from->type == to->type &&
                       from->ld == to->ld && from->stride == to->stride;
    p->overwrites = equal ? (int)c->index : -1;
    for (int part = 0; part < LT_PART_COUNT; part++)
        if (part != LT_PART_C && p->present >> part & 1 && p->places[part].kind == CUDA_OPERAND &&
            p->places[part].index == c->index)
            p->overwrites = -1;
    for (uint32_t i = 0; i < p->copies_before; i++)
        if (p->copies[i].from.index == c->index) p->overwrites = -1;
    const char *broken = cuda_matmul_preflight(p, b->options, b->arena);
    return broken ? hlo_arena_format(b->arena, "is not supported by cuBLASLt: %s", broken) : NULL;
}

enum { CALL = 1 << 22 }; /* cost of a call: bytes that a device transfers in the time of a launch */

/* Returns the cost of the problem's copies and calls, in bytes. */
static int64_t cost(const cuda_matmul *p) {
    int64_t bytes = p->times * CALL;
    for (uint32_t i = 0; i < p->copy_count; i++)
        bytes += (int64_t)(hlo_view_bytes(&p->copies[i].from_view) +
                           hlo_view_bytes(&p->copies[i].to_view));
    return bytes;
}

static const char *attempt(builder *b, bool fp8, hlo_type operands, hlo_type d) {
    *b->p = (cuda_matmul){.fp8 = fp8};
    b->operand_type = operands;
    b->d_type = d;
    const char *why = build(b);
    if (why || !b->p->copy_count || b->instr->op != HLO_OP_DOT || b->m->a_batch->count < 2)
        return why;
    const cuda_matmul copied = *b->p;
    *b->p = (cuda_matmul){.fp8 = fp8};
    b->apart = true;
    why = build(b);
    b->apart = false;
    bool aligned = true; /* the matrices of all calls are aligned like those of the first call */
    for (int part = LT_PART_A; part <= LT_PART_D; part++)
        aligned &= b->p->steps[part] % b->p->alignment == 0;
    if (why || !aligned || cost(b->p) >= cost(&copied)) *b->p = copied;
    return NULL;
}

/* Plans a dot. FP8 operands use an FP8 matmul if possible, unless the result is fp8: cuBLASLt
 * saturates, whereas a dot does not. */
static const char *plan_dot(builder *b) {
    const hlo_matmul *m = b->m;
    const hlo_type ta = m->a->shape->type, tb = m->b->shape->type, td = m->d->type;
    if (!hlo_type_is_fp8(td) &&
        !hlo_matmul_check(m, b->options->target, b->options->cuda, HLO_SCALES_ALL) &&
        !attempt(b, true, HLO_TYPE_INVALID, HLO_TYPE_INVALID))
        return NULL;
    /* Choose the first row of wide types whose operand type represents both operands. Prefer a row
     * with the dot's result type; otherwise, use a result of at least 32 bits and convert it.
     * Compute integers in floats only if these represent every sum. */
    const int64_t k = hlo_matmul_extents(m).k;
    const hlo_wide_types *row;
    for (int exact = 1; exact >= 0; exact--)
        for (uint32_t i = 0; (row = hlo_matmul_wide_types(i)); i++)
            if (holds(ta, row->operands) && holds(tb, row->operands) &&
                (exact ? row->d == td
                       : hlo_types[row->d].bits >= 32 &&
                             (hlo_type_is_float(td) || sums_exactly(ta, tb, k, td, row->d))))
                return attempt(b, false, row->operands, row->d);
    return hlo_arena_format(b->arena,
                            "is not supported by cuBLASLt: no matmul of %s and %s with result %s",
                            hlo_types[ta].name, hlo_types[tb].name, hlo_types[td].name);
}

bool cuda_matmul_plan(const hlo_instruction *instr, const cuda_matmul_options *options,
                      hlo_arena *arena, cuda_matmul *out_matmul, const char **why) {
    hlo_matmul m;
    builder b = {
        .instr = instr,
        .m = &m,
        .options = options,
        .arena = arena,
        .p = out_matmul,
    };
    if (hlo_matmul_is_call(instr) || hlo_matmul_is_wide_call(instr)) {
        if (hlo_matmul_decode(instr, &m, why) != HLO_OK) {
            *why = hlo_arena_format(arena, "is not a valid matmul call: %s", *why);
            return false;
        }
        const char *limit = hlo_matmul_check(&m, options->target, options->cuda, HLO_SCALES_ALL);
        *why = limit ? hlo_arena_format(arena, "is not supported by cuBLASLt: %s", limit)
                     : attempt(&b, !m.wide, HLO_TYPE_INVALID, HLO_TYPE_INVALID);
    } else if (instr->op == HLO_OP_DOT && instr->operand_count == 2) {
        hlo_matmul_from_dot(instr, &m);
        *why = plan_dot(&b);
    } else {
        *why = NULL;
        return false;
    }
    return !*why;
}
