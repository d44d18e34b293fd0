/* SPDX-License-Identifier: Apache-2.0 */
/* Reads instructions that multiply matrices, and counts their FLOPs. */
#include "matmul/product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "matmul/block_scaled.h"
#include "matmul/json.h"

typedef enum counting {
    MATMUL,  /* 2*batch*m*n*k of an hlo_matmul */
    FREE,    /* each element of A is multiplied with all elements of B's free dimensions; group
              * dimensions do not count */
    COLUMNS, /* each element of A is multiplied with each column of the result */
    /* 2*m*n*k of three matrices without batches, in any layout: each of m, n and k is a size of two
     * of the matrices */
    MATRICES,
    /* 2 for each pair of an element of a forward convolution's result and a kernel element that
     * contributes to it */
    FORWARD,
    BACKWARD_INPUT,
    BACKWARD_FILTER,
    KERNEL_COLUMNS, /* like FREE; the last dimension of the kernel has the output features */
    ATTENTION,      /* cuDNN's attention; sizes from its config */
    ATTENTION_BACKWARD,
    TE_ATTENTION, /* TransformerEngine's attention; sizes from its attributes */
    TE_ATTENTION_BACKWARD,
    UNKNOWN
} counting;

typedef struct product_row {
    const char *target; /* NULL in a row for an opcode */
    hlo_product_kind kind;
    uint32_t b;
    counting flops;
} product_row;

static const product_row op_rows[HLO_OP_COUNT] = {
#define HLO_PRODUCT_OP(opcode, kind, flops)                                                        \
    [HLO_OP_##opcode] = {NULL, HLO_PRODUCT_##kind, 1, flops},
#define HLO_PRODUCT_CALL(target, kind, b, flops)
#define HLO_PRODUCT_FUSION(name, kind)
#include "matmul/table/product.def"
#undef HLO_PRODUCT_OP
#undef HLO_PRODUCT_CALL
#undef HLO_PRODUCT_FUSION
};

static const product_row call_rows[] = {
#define HLO_PRODUCT_OP(opcode, kind, flops)
#define HLO_PRODUCT_CALL(target, kind, b, flops) {target, HLO_PRODUCT_##kind, b, flops},
#define HLO_PRODUCT_FUSION(name, kind)
#include "matmul/table/product.def"
#undef HLO_PRODUCT_OP
#undef HLO_PRODUCT_CALL
#undef HLO_PRODUCT_FUSION
};

static const struct {
    const char *name;
    hlo_fusion_maker maker;
} fusion_rows[] = {
#define HLO_PRODUCT_OP(opcode, kind, flops)
#define HLO_PRODUCT_CALL(target, kind, b, flops)
#define HLO_PRODUCT_FUSION(name, kind) {name, HLO_FUSION_##kind},
#include "matmul/table/product.def"
#undef HLO_PRODUCT_OP
#undef HLO_PRODUCT_CALL
#undef HLO_PRODUCT_FUSION
};

/* Returns the row of an instruction; NULL if it does not multiply matrices. */
static const product_row *find_row(const hlo_instruction *instr) {
    if (instr->op != HLO_OP_CUSTOM_CALL)
        return op_rows[instr->op].kind ? &op_rows[instr->op] : NULL;
    const char *name = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    if (!name || !*name || !strchr("_tch", *name)) return NULL;
    for (size_t i = 0; i < sizeof call_rows / sizeof *call_rows; i++) {
        const char *target = call_rows[i].target;
        const size_t length = strlen(target);
        if (target[length - 1] == '*' ? strncmp(name, target, length - 1) == 0
                                      : strcmp(name, target) == 0)
            return &call_rows[i];
    }
    return NULL;
}

hlo_product_kind hlo_product_kind_of(const hlo_instruction *instr) {
    const product_row *row = find_row(instr);
    if (!row) return HLO_PRODUCT_NONE;
    const bool other = row->kind == HLO_PRODUCT_FP8_CALL && !hlo_matmul_is_call(instr);
    return other ? HLO_PRODUCT_LIBRARY : row->kind;
}

bool hlo_instruction_is_matmul(const hlo_instruction *instruction) {
    return hlo_product_kind_of(instruction) != HLO_PRODUCT_NONE;
}

size_t hlo_product_most(const hlo_module *module) {
    size_t most = module->op_counts[HLO_OP_CUSTOM_CALL];
    for (unsigned op = 0; op < HLO_OP_COUNT; op++)
        if (op_rows[op].kind) most += module->op_counts[op];
    return most;
}

bool hlo_product_matmul(const hlo_instruction *instr, hlo_matmul *out_matmul) {
    const char *why;
    if (instr->op == HLO_OP_DOT) {
        hlo_matmul_from_dot(instr, out_matmul);
        return true;
    }
    return (hlo_matmul_is_call(instr) || hlo_matmul_is_wide_call(instr)) &&
           hlo_matmul_decode(instr, out_matmul, &why) == HLO_OK;
}

bool hlo_matmul_from_block(const hlo_instruction *instr, hlo_matmul *out_matmul) {
    hlo_block_dot dot;
    const hlo_block_kind kind = hlo_block_kind_of(instr);
    if ((kind != HLO_BLOCK_SCALED_DOT && kind != HLO_BLOCK_OP_DOT) ||
        hlo_block_dot_read(instr, &dot))
        return false;
    hlo_matmul_from_dot(instr, out_matmul); /* calls do not have the attributes of a dot */
    out_matmul->a_batch = dot.a_batch;
    out_matmul->b_batch = dot.b_batch;
    out_matmul->a_contracting = dot.a_contracting;
    out_matmul->b_contracting = dot.b_contracting;
    return true;
}

hlo_fusion_maker hlo_fusion_made_by(const hlo_instruction *fusion) {
    json_t *json = hlo_json_config(fusion);
    const json_t *config = json_object_get(json, "fusion_backend_config"); /* GPU backend */
    if (!config) config = json_object_get(json, "fusion_config");          /* CPU backend */
    const char *name = json_string_value(json_object_get(config, "kind"));
    hlo_fusion_maker maker = HLO_FUSION_XLA;
    for (size_t i = 0; name && i < sizeof fusion_rows / sizeof *fusion_rows; i++)
        if (strcmp(name, fusion_rows[i].name) == 0) maker = fusion_rows[i].maker;
    json_decref(json);
    return maker;
}

static double elements(const hlo_shape *shape) {
    const int64_t count = hlo_shape_is_array(shape) ? hlo_shape_count(shape) : 0;
    return count < 0 ? 0 : (double)count;
}

static double last_dimension(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && shape->rank && shape->dims[shape->rank - 1] > 0
               ? (double)shape->dims[shape->rank - 1]
               : 0;
}

/* Counts the FLOPs of a convolution. `out` and `kernel` are the shapes of the forward
 * convolution. */
static double count_window(const hlo_instruction *instr, const hlo_shape *out,
                           const hlo_shape *kernel) {
    const char *labels = hlo_instr_str(instr, HLO_ATTR_DIM_LABELS);
    const char *kernel_labels = labels ? strchr(labels, '_') : NULL;
    const char *features = kernel_labels ? strchr(kernel_labels, 'o') : NULL;
    if (!features || !hlo_shape_is_array(kernel) || features - kernel_labels > kernel->rank)
        return 0;
    const int64_t size = kernel->dims[features - kernel_labels - 1];
    return size < 1 ? 0 : 2 * elements(out) * elements(kernel) / (double)size;
}

/* Counts the FLOPs of attention. The forward pass computes the scores from queries and keys, and
 * the result from scores and values. The backward pass computes the scores again, and the gradients
 * of queries, keys, values and scores. */
static double attention(double scores, double query_dim, double value_dim, bool backward) {
    return 2 * scores * (backward ? 3 * query_dim + 2 * value_dim : query_dim + value_dim);
}

/* Returns the number in `NAME = 12 : i64` in the text of attributes; 0 if absent. */
static double attribute(const char *text, const char *name) {
    const char *at = strstr(text, name);
    if (!at || strncmp(at += strlen(name), " = ", 3) != 0) return 0;
    double number = strtod(at + 3, NULL);
    return number > 0 ? number : 0;
}

static double count(const hlo_instruction *instr, const hlo_product *p, counting how) {
    const hlo_shape *a = p->a->shape, *b = p->b->shape, *d = p->d;
    switch (how) {
    case MATMUL: {
        hlo_matmul matmul;
        if (!hlo_product_matmul(instr, &matmul)) return 0;
        const hlo_matmul_sizes size = hlo_matmul_extents(&matmul);
        return 2.0 * (double)size.batch * (double)size.m * (double)size.n * (double)size.k;
    }
    case FREE: {
        double free = 1;
        for (uint32_t i = 0; hlo_shape_is_array(b) && i < b->rank; i++)
            if (!hlo_ints_contain(hlo_instr_ints(instr, HLO_ATTR_RHS_BATCH_DIMS), i) &&
                !hlo_ints_contain(hlo_instr_ints(instr, HLO_ATTR_RHS_CONTRACTING_DIMS), i) &&
                !hlo_ints_contain(hlo_instr_ints(instr, HLO_ATTR_RHS_GROUP_DIMS), i))
                free *= b->dims[i] > 0 ? (double)b->dims[i] : 0;
        return 2 * elements(a) * free;
    }
    case COLUMNS: return 2 * elements(a) * last_dimension(d);
    case MATRICES: return 2 * sqrt(elements(a) * elements(b) * elements(d));
    case FORWARD: return count_window(instr, d, b);
    case BACKWARD_INPUT: return count_window(instr, a, b);
    case BACKWARD_FILTER: return count_window(instr, b, d);
    case KERNEL_COLUMNS:
        return last_dimension(b) > 0 ? 2 * elements(d) * elements(b) / last_dimension(b) : 0;
    case ATTENTION:
    case ATTENTION_BACKWARD: {
        /* The config has the dimensions of the scores. The last dimension of an operand is the head
         * dimension. */
        json_t *json = instr->operand_count > 2 ? hlo_json_config(instr) : NULL;
        const json_t *dims =
            json_object_get(json_object_get(json_object_get(json, "cudnn_fmha_backend_config"),
                                            "intermediate_tensor_shape"),
                            "dimensions");
        double scores = json_array_size(dims) > 0;
        for (size_t i = 0; i < json_array_size(dims); i++) {
            const json_t *dim = json_array_get(dims, i);
            const double number =
                json_is_string(dim) ? strtod(json_string_value(dim), NULL) : json_number_value(dim);
            scores *= number > 0 ? number : 0;
        }
        json_decref(json);
        return scores == 0 ? 0
                           : attention(scores, last_dimension(hlo_instr_operand(instr, 0)->shape),
                                       last_dimension(hlo_instr_operand(instr, 2)->shape),
                                       how == ATTENTION_BACKWARD);
    }
    case TE_ATTENTION:
    case TE_ATTENTION_BACKWARD: {
        const char *text = hlo_instr_str(instr, HLO_ATTR_BACKEND_CONFIG);
        if (!text) return 0;
        double scores = attribute(text, "input_batch") * attribute(text, "attn_heads") *
                        attribute(text, "q_max_seqlen") * attribute(text, "kv_max_seqlen");
        return attention(scores, attribute(text, "qk_head_dim"), attribute(text, "v_head_dim"),
                         how == TE_ATTENTION_BACKWARD);
    }
    case UNKNOWN: return 0;
    }
    return 0;
}

static bool is_narrow(const hlo_instruction *factor) {
    const hlo_type type = factor->shape->type;
    return hlo_type_is_float(type) && hlo_types[type].bits <= 8;
}

bool hlo_product_read(const hlo_instruction *instr, hlo_product *out_product) {
    const product_row *row = find_row(instr);
    if (!row || instr->operand_count <= row->b) return false;
    hlo_product *p = out_product;
    *p = (hlo_product){.kind = hlo_product_kind_of(instr),
                       .a = hlo_instr_operand(instr, 0),
                       .b = hlo_instr_operand(instr, row->b),
                       .d = instr->shape};
    while (p->d->type == HLO_TYPE_TUPLE && p->d->rank) p->d = p->d->elements[0];
    p->flops = count(instr, p, row->flops);
    p->narrow = is_narrow(p->a) && is_narrow(p->b);
    p->fp8 = p->narrow && (row->kind == HLO_PRODUCT_FP8_CALL || row->kind == HLO_PRODUCT_LIBRARY ||
                           row->kind == HLO_PRODUCT_ATTENTION);
    return true;
}
