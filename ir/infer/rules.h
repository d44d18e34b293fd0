/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of shape inference: the input of a rule, and the helpers of rules (support.c). Each
 * name in op.def's `infer` column is a rule. */
#ifndef HLO_IR_INFER_RULES_H
#define HLO_IR_INFER_RULES_H

#include "ir/infer/infer.h"

/* The instruction to infer. It need not exist: hlo_infer() runs before the instruction is
 * created. */
typedef struct hlo_inference {
    hlo_module *module;
    hlo_op op;
    uint32_t count;
    hlo_instruction *const *operands;
    uint32_t attr_count;
    const hlo_attr *attrs;
    const hlo_shape *given; /* the shape in the text, or NULL */
    char *why;              /* why_size bytes; NULL: no message is requested */
    size_t why_size;
    uint32_t *blamed;   /* see hlo_infer_check(); may be NULL */
    hlo_arena *scratch; /* for all allocations of a rule except shapes */
} hlo_inference;

/* A rule. Returns the shape that operands and attributes determine, or NULL, with `why` set, if
 * they violate the rule. The caller has checked the number of operands and the presence of required
 * attributes. */
typedef const hlo_shape *hlo_infer_rule(const hlo_inference *q);

#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval)                          \
    hlo_infer_rule hlo_infer_##infer;
#include "ir/table/op.def"
#undef HLO_OP

/* Writes `OP of SHAPES: text` to `why`. Returns NULL, which the rule can return. `blamed`: the
 * offset of the invalid part in the source. */
const hlo_shape *hlo_infer_fail_at(const hlo_inference *q, uint32_t blamed, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#define hlo_infer_fail(q, ...) hlo_infer_fail_at(q, HLO_NOWHERE, __VA_ARGS__)
/* Prints a shape without layout for a message, in q->scratch. */
const char *hlo_infer_text(const hlo_inference *q, const hlo_shape *shape);

/* Returns the given shape. Returns NULL, with `why` set, if the instruction has no given shape. */
const hlo_shape *hlo_infer_given(const hlo_inference *q);
const hlo_attr *hlo_infer_attr(const hlo_inference *q, hlo_attr_id id);
/* Returns the list of attribute `id`; an empty list if the instruction does not have the attribute.
 */
const hlo_ints *hlo_infer_ints(const hlo_inference *q, hlo_attr_id id);
int64_t hlo_infer_int(const hlo_inference *q, hlo_attr_id id, int64_t missing);

static inline const hlo_shape *hlo_infer_operand(const hlo_inference *q, uint32_t index) {
    return q->operands[index]->shape;
}

/* Returns the shapes of all operands, in q->scratch. */
const hlo_shape *const *hlo_infer_operands(const hlo_inference *q);

/* The largest absolute value of padding, strides and dilations, and the largest size of a padded
 * dimension. Sums and differences of two such numbers cannot overflow. */
#define HLO_INFER_EXTENT_MAX (INT64_C(1) << 61)

/* Each check below sets `why` if it returns false or NULL. */

bool hlo_infer_arrays(const hlo_inference *q, uint32_t from, uint32_t to);
/* Checks that every number of the list is in [0, rank) and occurs once. `what` names such a number
 * in messages: "dimension". */
bool hlo_infer_dims(const hlo_inference *q, const hlo_ints *dims, uint32_t rank, const char *what);
/* Checks that the list of attribute `id` has `each` numbers for every dimension of the operand. */
bool hlo_infer_has_each(const hlo_inference *q, hlo_attr_id id, uint32_t each, uint32_t rank);
/* Checks that the attribute `dimensions` names one dimension of the shape. */
bool hlo_infer_one_dim(const hlo_inference *q, const hlo_shape *shape);
/* True if the sizes are equal, or one of them is unbounded. */
static inline bool hlo_infer_dim_fits(int64_t a, int64_t b) {
    return a == b || a < 0 || b < 0;
}
bool hlo_infer_dims_fit(const hlo_shape *a, const hlo_shape *b);
/* True if types and dimensions agree, through tuples; an unbounded dimension agrees with any size.
 */
bool hlo_infer_fits(const hlo_shape *a, const hlo_shape *b);

/* Checks that `comp` has `count` parameters of these shapes and a result of shape `result`. */
bool hlo_infer_takes(const hlo_inference *q, const hlo_computation *comp, uint32_t count,
                     const hlo_shape *const *parameters, const hlo_shape *result);
/* Checks that the computation of attribute `id` has exactly these parameters and a result of shape
 * `result` (NULL: any shape). Returns the computation, or NULL if the check fails. */
const hlo_computation *hlo_infer_called(const hlo_inference *q, hlo_attr_id id, uint32_t count,
                                        const hlo_shape *const *parameters,
                                        const hlo_shape *result);
/* For reduce and similar opcodes: checks that to_apply is a computation on scalars that combines
 * two lists of `count` accumulators, (a..., b...), into a scalar or a tuple. `types` are the
 * accumulators' types. */
bool hlo_infer_combiner(const hlo_inference *q, uint32_t count, const hlo_type *types);
/* Returns the shape itself if there is only one, otherwise the tuple of all shapes. */
const hlo_shape *hlo_infer_tuple(const hlo_inference *q, uint32_t count,
                                 const hlo_shape *const *elements);
/* Returns the element type of a product: that of the given shape, or the wider of the operands'
 * types. */
hlo_type hlo_infer_product_type(const hlo_inference *q);
/* Checks that the operands are `count` arrays of equal dimensions, followed by an initial scalar of
 * each array's type. Writes the types to *out_types. */
bool hlo_infer_reduced_operands(const hlo_inference *q, uint32_t count, hlo_type *out_types);
/* Returns the result of a reduction: an array of these dimensions for each type. */
const hlo_shape *hlo_infer_reduced(const hlo_inference *q, uint32_t count, const hlo_type *types,
                                   uint32_t rank, const int64_t *dims);
/* Allocates uninitialized memory from q->scratch. */
void *hlo_infer_scratch(const hlo_inference *q, size_t count, size_t size);

#endif
