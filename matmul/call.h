/* The fused FP8 matmul: what a `__cublas$lt$matmul$f8` custom call means, in one struct.
 *
 *   D = d_scale * epilogue(alpha * a_scale * b_scale * (A x B) + beta * c_scale * C + bias)
 *
 * accumulated and scaled in f32; amax = max |epilogue(..)|, before d_scale. A is [batch.., m, k] by its
 * dimension numbers, B is [batch.., n, k] or whatever its dimension numbers say, D is [batch.., m, n].
 * Source of the formula: the cuBLAS manual, cublasLtMatmul() with FP8 inputs.
 *
 * This folder alone knows operand order, result tuple and backend_config; everybody else reads and
 * writes the struct. */
#ifndef HLO_MATMUL_CALL_H
#define HLO_MATMUL_CALL_H

#include "ir/ir.h"

typedef enum hlo_epilogue {
#define HLO_EPILOGUE(id, bias, relu, gelu, aux) HLO_EPILOGUE_##id,
#include "matmul/epilogue.def"
#undef HLO_EPILOGUE
    HLO_EPILOGUE_COUNT
} hlo_epilogue;

/* Which scale operands stand in the custom call (architecture: "The custom call"). */
typedef enum hlo_scale_form {
    HLO_SCALES_ALL, /* a, b, [c], a_scale, b_scale, c_scale, d_scale, [bias] */
    HLO_SCALES_USED /* a, b, [c], a_scale, b_scale, [bias], [d_scale if D is fp8] */
} hlo_scale_form;

/* What the rewritten module is for. */
typedef struct hlo_target {
    int sm;   /* compute capability * 10, e.g. 90 */
    int cuda; /* major * 100 + minor, e.g. 1208 */
    hlo_scale_form scales;
} hlo_target;

/* NULL pointers are absent operands: a scale of 1, no C, no bias. All lists are in the module's
 * arena. */
typedef struct hlo_matmul {
    hlo_instr *a, *b;
    hlo_instr *c;                                     /* beta != 0 */
    hlo_instr *a_scale, *b_scale, *c_scale, *d_scale; /* f32[] */
    hlo_instr *bias;                                  /* [n] */
    double alpha, beta;
    const hlo_ints *a_batch, *a_contracting, *b_batch, *b_contracting;
    const char *precision; /* operand_precision's text, `{highest,default}`; NULL: default */
    const char *algorithm; /* NULL: unset */
    hlo_epilogue epilogue;
    bool amax;            /* result 1 is the abs-max of D before d_scale, f32[] */
    const hlo_shape *d;   /* shape of D with its layout */
    const hlo_shape *aux; /* shape of the pre-activation of a *_AUX epilogue; else NULL */
} hlo_matmul;

/* Index of a result in the call's tuple; -1 when the call has no such result. D is always 0. */
int hlo_matmul_aux_index(const hlo_matmul *matmul);
int hlo_matmul_amax_index(const hlo_matmul *matmul);

/* Whether `instr` is an FP8 matmul call. */
bool hlo_matmul_is_call(const hlo_instr *instr);

/* Reads a call in either operand form. Which form it is follows from the operand count and types.
 * On failure `why` (static or in the module's arena) says what is wrong with the call. */
hlo_status hlo_matmul_decode(const hlo_instr *call, hlo_matmul *out_matmul, const char **why);

/* Reads a plain `dot`: scales and epilogue absent. Operands need not be fp8. */
void hlo_matmul_from_dot(const hlo_instr *dot, hlo_matmul *out_matmul);

/* The first row of types.def and limit.def that the matmul breaks on that target, as a reason id of
 * passes/why.def's spelling (e.g. "type-combination"); NULL when it can be a call. */
const char *hlo_matmul_check(const hlo_matmul *matmul, const hlo_target *target);

/* Makes the call before `before`. Absent scales become one shared f32[] constant(1) of the
 * computation where the form wants them. `like` gives metadata and offset. The matmul must pass
 * hlo_matmul_check(). The result is a tuple; hlo_matmul_result() takes it apart. */
hlo_instr *hlo_matmul_encode(const hlo_matmul *matmul, const hlo_target *target,
                             hlo_computation *comp, hlo_instr *before, const hlo_instr *like);

/* The get-tuple-element of result `index` of a call: the one there is, else a new one right behind the
 * call. */
hlo_instr *hlo_matmul_result(hlo_instr *call, int index);

#endif
