/* SPDX-License-Identifier: Apache-2.0 */
/* The fused FP8 matmul: a struct with the contents of a `__cublas$lt$matmul$f8` custom call. A
 * typed `hlofp8.matmul` call has the same operands and results, and the config as typed attributes.
 * XLA passes a typed call to the function that is registered under that name.
 *
 *   D = d_scale * epilogue(alpha * a_scale * b_scale * (A x B) + beta * c_scale * C + bias)
 *
 * accumulated and scaled in f32; amax = max |epilogue(..)|, before d_scale. Dimension numbers
 * define the batch and contracting dimensions of A and B. D is [batch.., m.., n..], like a dot's
 * result. The bias is along n. docs/numerics.md lists all roundings. Source of the formula: the
 * cuBLAS manual, cublasLtMatmul() with FP8 inputs.
 *
 * The scale of A and the scale of B are scalars or, in another scale mode of scale.def, arrays. For
 * arrays, each product of an element of A and an element of B is multiplied by the scales of the
 * two elements, and a_scale and b_scale of the formula are applied within the sum. Of VEC16 scales
 * the magnitudes count: cuBLASLt ignores their signs.
 *
 * XLA's `__cublas$lt$matmul` and `__cublas$gemm` on wider types have the same config and no scales;
 * they are read into the same struct, with `wide` set. Only FP8 calls are emitted.
 *
 * Operand order, result tuple and backend_config are private to this folder. All other code uses
 * the struct. */
#ifndef HLO_MATMUL_CALL_H
#define HLO_MATMUL_CALL_H

#include "ir/ir.h"

typedef enum hlo_activation {
    HLO_ACTIVATION_NONE,
#define HLO_ACTIVATION(id, homogeneous, never_negative) HLO_ACTIVATION_##id,
#include "matmul/table/activation.def"
#undef HLO_ACTIVATION
    HLO_ACTIVATION_COUNT
} hlo_activation;

/* A row of activation.def. */
typedef struct hlo_activation_info {
    bool homogeneous, never_negative;
} hlo_activation_info;
extern const hlo_activation_info hlo_activations[HLO_ACTIVATION_COUNT];

typedef enum hlo_epilogue {
#define HLO_EPILOGUE(id, bias, activation, aux) HLO_EPILOGUE_##id,
#include "matmul/table/epilogue.def"
#undef HLO_EPILOGUE
    HLO_EPILOGUE_COUNT
} hlo_epilogue;

/* Form of the scale operands in the custom call. XLA of 2024 uses the first form, XLA of 2026 the
 * second. */
typedef enum hlo_scale_form {
    HLO_SCALES_ALL, /* a, b, [c], a_scale, b_scale, c_scale, d_scale, [bias] */
    /* a, b, [c], a_scale, b_scale, [bias], [d_scale if D is fp8]. XLA omits d_scale if a_scale,
     * b_scale and d_scale are 1; calls without d_scale are read, but not emitted */
    HLO_SCALES_USED
} hlo_scale_form;

typedef enum hlo_scale_mode {
#define HLO_SCALE_MODE(id, name, value, across, along, type, tiled) HLO_SCALE_##id,
#include "matmul/table/scale.def"
#undef HLO_SCALE_MODE
    HLO_SCALE_MODE_COUNT
} hlo_scale_mode;

/* A row of scale.def. */
typedef struct hlo_scale_info {
    const char *name;
    int value;             /* value of cuBLASLt's enumerator */
    int64_t across, along; /* numbers of elements that share a scale; 0 for all elements */
    hlo_type type;         /* element type of a scale */
    bool tiled;            /* scales are stored in tiles of 128 rows by 4 */
} hlo_scale_info;
extern const hlo_scale_info hlo_scale_modes[HLO_SCALE_MODE_COUNT];

/* Finds a scale mode by name. Returns HLO_SCALE_MODE_COUNT if there is no such mode. */
hlo_scale_mode hlo_scale_mode_find(const char *name);

/* Computes the dimensions of the scales, row-major, of an operand with `size` rows (of B: columns)
 * and `k` elements in each, in each matrix of a batch. Returns the rank. SCALAR: []. OUTER_VEC:
 * [size]. VEC128: [k/128, size]. BLK128: [size/128, k/128 up to a multiple of 4]; scales after
 * k/128 are not read. Tiled: [size up to a multiple of 128, k/along up to a multiple of 4], in the
 * order of hlo_scale_index(), preceded by `batch` if that is not 1. Quotients are rounded up. */
uint32_t hlo_scale_dims(hlo_scale_mode mode, int64_t batch, int64_t size, int64_t k,
                        int64_t out_dims[3]);
/* Returns the index of the scale of element `at` of row `row`. `row` counts the rows of all
 * matrices of a batch. */
int64_t hlo_scale_index(hlo_scale_mode mode, int64_t size, int64_t k, int64_t row, int64_t at);

/* True for the fp8 types that operands of a fused call may have. */
static inline bool hlo_type_is_fp8_operand(hlo_type type) {
    return type == HLO_TYPE_F8E4M3FN || type == HLO_TYPE_F8E5M2;
}

/* A target GPU architecture: a row of target.def, which lists the sources of the data. */
typedef struct hlo_target {
    int sm;                      /* compute capability times 10 */
    bool fp8;                    /* cuBLASLt supports FP8 matmuls on this target */
    bool tn_only;                /* both operands must have their contracting dimension minor */
    bool scale_arrays;           /* scales may be OUTER_VEC, VEC128 or BLK128 */
    bool block_scales;           /* scales may be VEC32 or VEC16 */
    int64_t workspace;           /* default workspace of a call, in bytes */
    const char *gpu;             /* the GPU that has the following peaks */
    int fp8_tflops, bf16_tflops; /* dense peak, 10^12 FLOP/s; 0 if the type is not supported or the
                                  * peak is not published */
    int memory_gbs;              /* peak bandwidth, 10^9 bytes/s */
} hlo_target;

/* Returns the target `sm` (static); NULL if target.def does not have it. */
const hlo_target *hlo_target_find(int sm);
/* Returns the target of a name such as "sm_90"; NULL stands for the default, sm_90. */
const hlo_target *hlo_target_parse(const char *name);
/* Returns the target `sm` or the closest older one; NULL if target.def has no such row. */
const hlo_target *hlo_target_nearest(int sm);
/* Returns the oldest target with FP8. */
const hlo_target *hlo_target_first_fp8(void);
/* Returns the CUDA version of a text such as "12.8", or 0 if it is invalid; NULL stands for the
 * default, 12.8. Every `int cuda` has the encoding of CUDA_VERSION in cuda.h: major * 1000 + minor
 * * 10. */
int hlo_cuda_parse(const char *version);
/* The format of the error about an invalid version. */
#define HLO_CUDA_INVALID                                                                           \
    "invalid CUDA version '%s', expected MAJOR.MINOR with MAJOR of at least 1, for example 12.8"

/* The parts of a call. A NULL pointer means that the operand is absent: a scale of 1 (a constant 1
 * is read as absent), no C, or no bias. All lists are in the module's arena. */
typedef struct hlo_matmul {
    bool wide; /* a call on wider types: it has no scales, and operands of any float type */
    hlo_instruction *a, *b;
    hlo_instruction *c;                                     /* NULL if beta is 0 */
    hlo_instruction *a_scale, *b_scale, *c_scale, *d_scale; /* f32[] if the mode is SCALAR */
    hlo_scale_mode a_mode, b_mode; /* if a mode is not SCALAR, the scale is present and has the
                                    * dimensions of the mode */
    hlo_instruction *bias;         /* shape [n]; present if the epilogue has a bias */
    double alpha, beta;
    const hlo_ints *a_batch, *a_contracting, *b_batch, *b_contracting;
    const char *precision; /* text of operand_precision, such as `{highest,default}`; NULL for the
                            * default */
    const char *algorithm; /* text of a dot's `algorithm`, such as `dot_any_f8_any_f8_f32`; NULL if
                            * unset */
    hlo_epilogue epilogue;
    bool amax;            /* the call also returns the amax of D before d_scale, as f32[] */
    bool in_place;        /* D overwrites C, which has the same shape and layout as D */
    const hlo_shape *d;   /* shape of D with its layout */
    const hlo_shape *aux; /* shape of the input of the activation, for a *_AUX epilogue; otherwise
                           * NULL */
} hlo_matmul;

/* Alignment in elements: cuBLASLt requires n and k of an FP8 matmul to be multiples of 16; XLA also
 * pads m. hlo_matmul_alignment() returns larger alignments. */
enum { HLO_MATMUL_ALIGNMENT = 16 };

/* The extents of a matmul. Each is the product of all dimensions of one kind. */
typedef struct hlo_matmul_sizes {
    int64_t batch, m, n, k;
} hlo_matmul_sizes;

hlo_matmul_sizes hlo_matmul_extents(const hlo_matmul *matmul);

/* True if an FP8 call requests fast accumulation. As in XLA, fast accumulation is the default. It
 * is not used if an operand requests higher precision, if the algorithm excludes it, or if scales
 * are per block. Block scales multiply promoted sums, and PyTorch rejects fast accumulation with
 * block scales. */
bool hlo_matmul_accumulates_fast(const hlo_matmul *matmul);

/* Returns the index of a result in the call's tuple; -1 if the call does not have this result. D is
 * always 0. */
int hlo_matmul_aux_index(const hlo_matmul *matmul);
int hlo_matmul_amax_index(const hlo_matmul *matmul);

/* Returns the epilogue that applies `what` after `epilogue`; HLO_EPILOGUE_COUNT if epilogue.def
 * does not have it. */
hlo_epilogue hlo_epilogue_add(hlo_epilogue epilogue, hlo_epilogue what);
/* Finds an epilogue by name. Returns HLO_EPILOGUE_COUNT if there is no such epilogue. */
hlo_epilogue hlo_epilogue_find(const char *name);
/* A row of epilogue.def. */
typedef struct hlo_epilogue_info {
    const char *name;
    bool bias, aux;
    hlo_activation activation;
} hlo_epilogue_info;
extern const hlo_epilogue_info hlo_epilogues[HLO_EPILOGUE_COUNT];

extern const char hlo_matmul_fp8_target[], hlo_matmul_typed_target[], hlo_matmul_mx_target[];
/* The first function returns true for FP8 matmul calls with one of these targets, the second for
 * XLA's calls on wider types.
 * Calls of hlo_matmul_mx_target must have tiled scales, because XLA uses this target for AMD's GPUs
 * with other scales. */
bool hlo_matmul_is_call(const hlo_instruction *instr);
bool hlo_matmul_is_wide_call(const hlo_instruction *instr);

/* Reads an FP8 call or a call on wider types. The operand count determines the operand form of an
 * FP8 call. If operands, results and config do not fit each other, returns HLO_INVALID_INPUT and
 * sets `why` to a static text. */
hlo_status hlo_matmul_decode(const hlo_instruction *call, hlo_matmul *out_matmul, const char **why);

/* Reads only the members that hlo_matmul_aux_index() and hlo_matmul_amax_index() use. Returns false
 * if the call's config or results are invalid. */
bool hlo_matmul_read_results(const hlo_instruction *call, hlo_matmul *out_matmul);

bool hlo_matmul_is_tiled(const hlo_matmul *matmul);

/* Returns the alignment of m and n or, with `contracting`, of k. With tiled scales, k is a multiple
 * of 16 bytes of the narrowest type and of the largest block. Each matrix of a batch has complete
 * tiles of scales, so that the scales of consecutive matrices are adjacent. */
int64_t hlo_matmul_alignment(const hlo_matmul *matmul, bool contracting);

/* Returns the name of an absent part that another part requires; NULL if the matmul is complete.
 * Only a complete matmul may be checked and encoded. */
const char *hlo_matmul_incomplete(const hlo_matmul *matmul);

/* Returns the reason (a static text) why the dimension numbers do not fit a, b and D; NULL if they
 * fit. */
const char *hlo_matmul_dimension_fault(const hlo_matmul *matmul);

/* Checks that all matmul calls in the module, and all block-scaled custom calls (block_scaled.h) on
 * non-empty static arrays, can be read. Otherwise returns HLO_INVALID_INPUT. Emits to `sink` an
 * error for each invalid instruction, at most `max_errors` (0: HLO_MAX_ERRORS), and a note with
 * the number of further errors. hlo_module_verify() does not check custom calls. */
hlo_status hlo_matmul_verify(const hlo_module *module, unsigned max_errors,
                             const hlo_diag_sink *sink);

/* Reads a plain `dot` as a matmul without scales and epilogue. Its operands need not be fp8. */
void hlo_matmul_from_dot(const hlo_instruction *dot, hlo_matmul *out_matmul);

/* Returns the first row of limit.def that the matmul violates on the target, by its name in
 * passes/reason/reason.def (e.g. "type-combination"); NULL if the matmul can become a call. For a
 * wide matmul, only the element types are checked. */
const char *hlo_matmul_check(const hlo_matmul *matmul, const hlo_target *target, int cuda,
                             hlo_scale_form scales);

/* Element types of a matmul without scales: a row of the second table of types.def. */
typedef struct hlo_wide_types {
    hlo_type operands, d, bias; /* C has the same type as D */
} hlo_wide_types;

/* Returns row `index` of this table; NULL after the last row. */
const hlo_wide_types *hlo_matmul_wide_types(uint32_t index);

/* True if operand a or, with `b`, operand b has the layout that calls require. If the target
 * requires a contiguous contracting dimension, or scales are tiled, the layout is row-major with
 * that dimension last; otherwise it is any layout without a contiguous batch dimension. A single
 * batch dimension may be at any position, because it is a stride. Several batch dimensions must be
 * first, row-major and in order. (cuBLASLt also accepts a column-major operand whose contracting
 * dimension is first, which is the same memory. Using one form lets transposes cancel.) */
bool hlo_matmul_layout_ok(const hlo_matmul *matmul, const hlo_target *target, bool b);

/* Maps dimensions of `transpose` (a transpose or copy) to dimensions of its operand. The module
 * owns the result. */
const hlo_ints *hlo_matmul_dims_beneath(const hlo_instruction *transpose, const hlo_ints *dims);

/* Builds the FP8 call before `before` (NULL: at the end). If the form requires a scale that is
 * absent, the call uses the computation's shared f32[] constant(1). `like` provides metadata and
 * source offset. The matmul must pass hlo_matmul_check(). The result is a tuple; see
 * hlo_matmul_result(). */
hlo_instruction *hlo_matmul_encode(const hlo_matmul *matmul, const hlo_target *target,
                                   hlo_scale_form scales, hlo_computation *comp,
                                   hlo_instruction *before, const hlo_instruction *like);

/* Converts an FP8 call to a typed `hlofp8.matmul` call or, if `typed` is false, a typed call to an
 * untyped one. The new call has the scale operands of `form`, or of HLO_SCALES_ALL if C or a wide D
 * has a scale. Changes the instruction in place. Returns true if the call changed. A call does not
 * change if it is and remains untyped, if it has tiled scales, which have no typed form, or if
 * hlo_matmul_decode() rejects it. */
bool hlo_matmul_set_typed(hlo_instruction *call, bool typed, hlo_scale_form form);

/* Returns the get-tuple-element of result `index` of a call. Inserts it after the call if
 * needed. */
hlo_instruction *hlo_matmul_result(hlo_instruction *call, int index);

#endif
