/* SPDX-License-Identifier: Apache-2.0 */
/* Prototypes of the functions of builder.def, and of the facts that they share. */
#ifndef HLO_PASSES_RULES_FUNCTIONS_H
#define HLO_PASSES_RULES_FUNCTIONS_H

#include "passes/engine/engine.h"

#define HLO_TEST(name, params) hlo_rule_test hlo_test_##name;
#define HLO_MAKE(name, params) hlo_rule_make hlo_make_##name;
#define HLO_MEASURE(name, params) hlo_rule_measure hlo_measure_##name;
#include "passes/rules/builder.def"
#undef HLO_TEST
#undef HLO_MAKE
#undef HLO_MEASURE

/* Function heads of the definitions. Most functions need only some of the parameters. */
#define UNUSED __attribute__((unused))
#define TEST(name)                                                                                 \
    bool hlo_test_##name(UNUSED const hlo_rule_env *env, UNUSED const hlo_binding *args,           \
                         UNUSED uint32_t count, UNUSED const hlo_instr **out_blocker)
#define MAKE(name)                                                                                 \
    bool hlo_make_##name(UNUSED hlo_rule_env *env, UNUSED const hlo_binding *args,                 \
                         UNUSED uint32_t count, hlo_instr **out)
#define MEASURE(name)                                                                              \
    int64_t hlo_measure_##name(UNUSED const hlo_rule_env *env, const hlo_instr *value)

/* Reads the fused FP8 call `call`. Returns false if it is not a call, or is malformed. */
bool hlo_decode_call(const hlo_instr *call, hlo_matmul *out);

/* Counts the sizes among m, n and k of a call that are not multiples of hlo_matmul_alignment(). */
int64_t hlo_call_misaligned_sizes(const hlo_matmul *m);

/* True if the call can overwrite its addend with the result: the addend has no other user, and its
 * memory is donated. */
bool hlo_call_overwrites_addend(const hlo_matmul *m);

/* True if two shapes with equal dimensions have the same element order. */
bool hlo_shape_same_order(const hlo_shape *a, const hlo_shape *b);

/* True if the first `batch` dimensions are the outermost in memory, in order. */
bool hlo_shape_is_batch_major(const hlo_shape *shape, uint32_t batch);

/* True for a reduce whose computation is the maximum of its two parameters. */
bool hlo_reduces_by_max(const hlo_instr *reduce);

#endif
