/* SPDX-License-Identifier: Apache-2.0 */
/* Rejects the calls that cuBLASLt rejects, according to the cuBLAS manual and the texts in the
 * library. */
#include "cublaslt.h"

enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS = 8, AUX = 11, AUX_LD = 12, AUX_STRIDE = 13 };
enum { A_SCALE = 17, B_SCALE, C_SCALE, D_SCALE, AMAX = 21, AUX_TYPE = 22, FAST = 25 };
enum { BIAS_TYPE = 26, A_MODE = 31, B_MODE = 32 };
enum { TYPE = 0, ROWS = 2, COLS = 3, LD = 4, BATCH = 5, STRIDE = 6 };
enum { EPI_BIAS = 4, EPI_AUX = 128 };
enum { INVALID = 7, NOT_SUPPORTED = 15 };

static int64_t of(const struct lt_layout *layout, int attribute) {
    return (int64_t)layout->at.value[attribute];
}

static bool is_fp8(int type) {
    return type == R_8F_E4M3 || type == R_8F_E5M2;
}

/* True for the types of A or of B that only FP8 and FP4 calls have. */
static bool is_narrow(int type) {
    return is_fp8(type) || type == R_4F_E2M1;
}

static bool known_epilogue(uint64_t epilogue) {
    static const uint64_t known[] = {1, 2, 4, 6, 32, 36, 160, 164};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i] == epilogue) return true;
    return false;
}

/* Types of A x B, C, D and bias. `mixed`: one of A and B must be e5m2. */
static const struct {
    bool mixed;
    int c, d, bias;
} fp8_table[] = {
    {false, R_16BF, R_16BF, R_16BF}, {false, R_16BF, R_8F_E4M3, R_16BF},
    {false, R_16F, R_16F, R_16F},    {false, R_16F, R_8F_E4M3, R_16F},
    {false, R_32F, R_32F, R_16BF},   {true, R_16BF, R_8F_E5M2, R_16BF},
    {true, R_16F, R_8F_E5M2, R_16F},
};

static bool fp8_types(const problem *p, bool has_bias) {
    int a = (int)of(&p->a, TYPE), b = (int)of(&p->b, TYPE);
    if (a == R_8F_E5M2 && b == R_8F_E5M2) return false;
    if ((a == R_4F_E2M1 || b == R_4F_E2M1) && (a != b || is_fp8((int)of(&p->d, TYPE))))
        return false;
    for (size_t i = 0; i < sizeof fp8_table / sizeof *fp8_table; i++)
        if (fp8_table[i].c == of(&p->c, TYPE) && fp8_table[i].d == of(&p->d, TYPE) &&
            (!fp8_table[i].mixed || a != b) &&
            (!has_bias || fp8_table[i].bias == (int)p->desc.at.value[BIAS_TYPE]))
            return true;
    return false;
}

static bool wide_types(const problem *p, bool has_bias) {
    int a = (int)of(&p->a, TYPE), c = (int)of(&p->c, TYPE), d = (int)of(&p->d, TYPE);
    if (a != of(&p->b, TYPE) || c != d) return false;
    if (has_bias && (int)p->desc.at.value[BIAS_TYPE] != d) return false;
    if (p->desc.compute == 70) return a == R_64F && d == R_64F && p->desc.scale == R_64F;
    return a != R_64F && p->desc.scale == R_32F && (d == a || d == R_32F);
}

static const char *shapes(const problem *p) {
    bool ta = p->desc.at.value[TRANSA], tb = p->desc.at.value[TRANSB];
    int64_t m = of(&p->d, ROWS), n = of(&p->d, COLS), k = of(&p->a, ta ? ROWS : COLS);
    if (of(&p->a, ta ? COLS : ROWS) != m || of(&p->b, tb ? ROWS : COLS) != n ||
        of(&p->b, tb ? COLS : ROWS) != k || of(&p->c, ROWS) != m || of(&p->c, COLS) != n)
        return "Matrix dimensions do not fit";
    const struct lt_layout *all[] = {&p->a, &p->b, &p->c, &p->d};
    for (int i = 0; i < 4; i++) {
        if (of(all[i], LD) < of(all[i], ROWS)) return "Leading dimension is less than rows";
        if (of(all[i], BATCH) != of(&p->d, BATCH)) return "batchCount differs between matrices";
    }
    int64_t last = (n - 1) * of(&p->d, LD) + m;
    if (of(&p->d, BATCH) > 1 && of(&p->d, STRIDE) < m &&
        of(&p->d, STRIDE) * (of(&p->d, BATCH) - 1) < last)
        return "batchCount: output matrices overlap";
    return NULL;
}

static const char *fp8_rules(const problem *p) {
    const attributes *at = &p->desc.at;
    int sm = standin_sm();
    bool ta = at->value[TRANSA], tb = at->value[TRANSB], fp4 = of(&p->a, TYPE) == R_4F_E2M1;
    if (sm < 89) return "current device is not supported";
    if ((at->value[A_MODE] == 1 || at->value[A_MODE] == 2 || (sm / 10 != 10 && sm / 10 != 11)) &&
        (!ta || tb))
        return "FP8 matmul support only TN input layout";
    if (of(&p->d, ROWS) % 16) return "Unsupported M dimension for FP8 matmul";
    if (of(&p->a, ta ? ROWS : COLS) % (fp4 ? 32 : 16))
        return "Unsupported K dimension for FP8 matmul";
    const struct lt_layout *all[] = {&p->a, &p->b, &p->c, &p->d};
    const void *data[] = {p->a_data, p->b_data, p->c_data, p->d_data};
    for (int i = 0; i < 4; i++) {
        int64_t bits = standin_element_bits((int)of(all[i], TYPE));
        if (of(all[i], LD) * bits % 128) return "Unsupported leading dimension for matrix";
        if ((uintptr_t)data[i] % 16 || of(all[i], STRIDE) * bits % 128)
            return "Unsupported alignment for matrix";
    }
    return NULL;
}

static const char *scale_rules(const problem *p) {
    const attributes *at = &p->desc.at;
    bool d8 = is_fp8((int)of(&p->d, TYPE));
    uint64_t a = at->value[A_MODE], b = at->value[B_MODE];
    if (at->value[C_SCALE] && !is_fp8((int)of(&p->c, TYPE)))
        return "Setting a custom pointer for matrix C scale is not allowed";
    if (at->value[D_SCALE] && !d8)
        return "Setting a custom pointer for matrix D scale is not allowed";
    if (at->value[AMAX] && !d8) return "Requesting the absolute max from matrix D is not allowed";
    bool fp4 = of(&p->a, TYPE) == R_4F_E2M1, sixteen = a == 1 || b == 1;
    if (!a && !b && !fp4) return NULL;
    bool pair = (a == b && a >= 1 && a <= 4) || (a == 4 && b == 5) || (a == 5 && b == 4);
    if (!pair || d8 || fp4 != sixteen)
        return "Setting a custom scaling mode for matrix A is not allowed";
    if (!at->value[A_SCALE] || !at->value[B_SCALE])
        return "This scaling mode requires a custom pointer for the scale";
    if (at->value[A_SCALE] % 16 || at->value[B_SCALE] % 16) return "Unsupported alignment of scale";
    return NULL;
}

static const char *epilogue_rules(const problem *p) {
    const attributes *at = &p->desc.at;
    uint64_t epilogue = at->value[EPILOGUE];
    int64_t m = of(&p->d, ROWS), n = of(&p->d, COLS), ld = (int64_t)at->value[AUX_LD];
    if (!known_epilogue(epilogue)) return "Unknown epilogue";
    if (epilogue & EPI_BIAS && !at->value[BIAS]) return "Bias pointer is required by the epilogue";
    if (!(epilogue & EPI_BIAS) && at->value[BIAS])
        return "Bias pointer is NOT allowed by the epilogue";
    if (at->value[BIAS] % 16) return "bias vector pointer must be aligned";
    if (!(epilogue & EPI_AUX)) return at->value[AUX] ? "AUX data type without AUX epilogue" : NULL;
    if (!at->value[AUX]) return "AUX data type: no pointer";
    if (ld < m || ld % 8) return "epilogueAuxLd is wrong";
    if (of(&p->d, BATCH) > 1 && (int64_t)at->value[AUX_STRIDE] < m && n > 1)
        return "AUX batchCount stride overlaps";
    return NULL;
}

const char *standin_refusal(const problem *p, int *out_status) {
    const attributes *at = &p->desc.at;
    bool fp8 = is_narrow((int)of(&p->a, TYPE)) || is_narrow((int)of(&p->b, TYPE));
    bool has_bias = at->value[EPILOGUE] & EPI_BIAS;
    *out_status = INVALID;
    const char *line = shapes(p);
    if (!line) line = epilogue_rules(p);
    if (!line && at->value[FAST] && !fp8)
        line = "Fast accumulation mode can be only set for FP8 problems";
    if (!line) line = scale_rules(p);
    if (!line && fp8 &&
        (p->desc.compute != 68 || p->desc.scale != R_32F || !fp8_types(p, has_bias)))
        line = "Unsupported combination of precisions";
    if (!line && !fp8 && !wide_types(p, has_bias)) line = "Unsupported combination of precisions";
    if (!line && p->beta != 0 && !p->c_data) line = "C is required when beta is not 0";
    if (!line && p->c_data && p->c_data == p->d_data &&
        (of(&p->c, TYPE) != of(&p->d, TYPE) || of(&p->c, LD) != of(&p->d, LD) ||
         of(&p->c, STRIDE) != of(&p->d, STRIDE)))
        line = "in-place matmul with different layouts of C and D";
    if (line) return line;
    *out_status = NOT_SUPPORTED;
    int sm = standin_sm();
    bool blocks = at->value[A_MODE] == 1 || at->value[A_MODE] == 2; /* with 8-bit scales */
    if (at->value[A_MODE] &&
        (blocks ? sm < 100 || standin_version() < 120800 : sm != 90 || standin_version() < 120900))
        return "Setting a custom scaling mode for matrix A is not supported by the device";
    return fp8 ? fp8_rules(p) : NULL;
}
