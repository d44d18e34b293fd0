/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of preflight.def, evaluated on a problem. */
#include "runtime/cuda/cublaslt/matmul.h"

typedef struct facts {
    int sm;
    bool tn_only, tn;
    bool no_epilogue;         /* cuBLASLt does not have the epilogue */
    bool fp4;                 /* A and B have two elements to a byte */
    bool tiled;               /* their scales are of 8 bits per block */
    bool unaligned[4];        /* by lt_part: a column does not begin at 16 bytes */
    int64_t unaligned_stride; /* a stride between batches that is not a multiple of 16 bytes; 0:
                                 none */
    int64_t ld;               /* the largest of the four */
    int64_t aux_ld;           /* 0: no aux */
    int64_t tile_k;           /* elements of a tile of scales, along k, in a batch; 0: no batch of
                                 such scales */
} facts;

static int64_t setting(const cuda_matmul *p, int attribute) {
    for (uint32_t i = 0; i < p->setting_count; i++)
        if (p->settings[i].attribute == attribute) return p->settings[i].value;
    return 0;
}

/* Returns the elements of a tile of scales along k; 0: no such scales. */
static int64_t tile_k(const cuda_matmul *p) {
    for (int mode = 0; mode < HLO_SCALE_MODE_COUNT; mode++)
        if (hlo_scale_modes[mode].tiled &&
            hlo_scale_modes[mode].value == setting(p, LT_DESC_A_SCALE_MODE))
            return 4 * hlo_scale_modes[mode].along;
    return 0;
}

/* Returns true if the call's epilogue is not a row of epilogue.def. */
static bool lacks_epilogue(const cuda_matmul *p) {
    for (uint32_t i = 0; i < p->setting_count; i++)
        if (p->settings[i].attribute == LT_DESC_EPILOGUE) return p->settings[i].value == 0;
    return false;
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
        .no_epilogue = lacks_epilogue(p),
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
