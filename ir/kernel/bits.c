/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of rng-bit-generator: computes random bits from a counter and a key. Bits and states
 * equal those of XLA's compilers, whose default is Philox. Salmon et al. describe both generators
 * (Parallel Random Numbers: As Easy as 1, 2, 3, SC 2011). */
#include <string.h>

#include "ir/kernel/kernel.h"

/* Computes Threefry-2x32 with 20 rounds. */
static void threefry(uint64_t counter, uint64_t key, uint32_t out[2]) {
    static const int turns[] = {13, 15, 26, 6, 17, 29, 16, 24};
    uint32_t keys[] = {(uint32_t)key, (uint32_t)(key >> 32), 0};
    keys[2] = UINT32_C(0x1BD11BDA) ^ keys[0] ^ keys[1];
    uint32_t a = (uint32_t)counter + keys[0], b = (uint32_t)(counter >> 32) + keys[1];
    for (uint32_t group = 1; group <= 5; group++) {
        for (int i = 0; i < 4; i++) {
            int turn = turns[(group % 2 ? 0 : 4) + i];
            a += b;
            b = a ^ (b << turn | b >> (32 - turn));
        }
        a += keys[group % 3];
        b += keys[(group + 1) % 3] + group;
    }
    out[0] = a;
    out[1] = b;
}

void hlo_philox(const uint64_t counter[2], uint64_t key, uint32_t out[4]) {
    uint32_t x[] = {(uint32_t)counter[0], (uint32_t)(counter[0] >> 32), (uint32_t)counter[1],
                    (uint32_t)(counter[1] >> 32)};
    uint32_t k[] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t even = x[0] * UINT64_C(0xD2511F53), odd = x[2] * UINT64_C(0xCD9E8D57);
        uint32_t next[] = {(uint32_t)(odd >> 32) ^ x[1] ^ k[0], (uint32_t)odd,
                           (uint32_t)(even >> 32) ^ x[3] ^ k[1], (uint32_t)even};
        memcpy(x, next, sizeof x);
        k[0] += UINT32_C(0x9E3779B9);
        k[1] += UINT32_C(0xBB67AE85);
    }
    memcpy(out, x, sizeof x);
}

static void advance(uint64_t counter[2], uint64_t by) {
    uint64_t low = counter[0];
    counter[0] += by;
    counter[1] += counter[0] < low;
}

static bool is_threefry(const hlo_instruction *instr) {
    return strcmp(hlo_instr_attr(instr, HLO_ATTR_ALGORITHM)->u.str, "rng_three_fry") == 0;
}

static const char *refuse_bits(const hlo_instruction *instr) {
    const hlo_shape *state = hlo_instr_operand(instr, 0)->shape, *result = instr->shape;
    int64_t size = state->dims[0];
    if (result->type != HLO_TYPE_TUPLE)
        return "the result must be a tuple of the new state and the random bits";
    hlo_type_class class = hlo_types[result->elements[1]->type].class;
    if (class != HLO_CLASS_SIGNED && class != HLO_CLASS_UNSIGNED)
        return "random bits must be integers";
    if (state->type != HLO_TYPE_U64 || size < 2 || size > (is_threefry(instr) ? 2 : 3))
        return "invalid size of the generator state";
    return NULL;
}

static hlo_status run_bits(hlo_call *call) {
    const hlo_view *state = &call->operands[0], *result = &call->results[1];
    hlo_view new_state = hlo_view_scratch(call->scratch, HLO_TYPE_U64, state);
    hlo_view made = hlo_view_scratch(call->scratch, HLO_TYPE_U64, result);
    hlo_view_copy(call->env, state, &new_state);
    uint64_t *s = new_state.data;
    const bool two = state->dims[0] == 2;
    const uint64_t key = s[0];
    uint64_t counter[] = {s[1], two ? s[0] : s[2]}, *out = made.data; /* low word first */
    const bool wide = hlo_types[result->type].bits == 64;
    const int64_t count = hlo_view_count(result);
    uint32_t words[4];
    if (is_threefry(call->instr)) {
        int64_t pair = 1, inner = 1; /* size of the paired dimension; product of the sizes of the
                                      * dimensions after it */
        if (result->rank && !wide) {
            /* Two neighbors share a counter. Elements are neighbors along the first dimension of
             * even size or, without such a dimension, along the first of the largest dimensions. */
            uint32_t dim = 0;
            for (uint32_t d = 0; d < result->rank && result->dims[dim] % 2; d++)
                if (result->dims[d] % 2 == 0 || result->dims[d] > result->dims[dim]) dim = d;
            pair = result->dims[dim];
            for (uint32_t d = dim + 1; d < result->rank; d++) inner *= result->dims[d];
        }
        const int64_t half = (pair + 1) / 2;
        for (int64_t i = 0; i < count; i++) {
            int64_t along = i / inner % pair, at = i;
            if (!wide) at = (i / inner / pair * half + along / 2) * inner + i % inner;
            threefry(counter[0] + (uint64_t)at, key, words);
            out[i] = wide ? words[0] | (uint64_t)words[1] << 32 : words[along % 2];
        }
        const int64_t used = pair ? count / pair * half : 0;
        counter[0] += (uint64_t)(wide ? count : used);
    } else {
        const int64_t each = wide ? 2 : 4; /* number of elements per counter */
        for (int64_t i = 0; i < count; i++) {
            if (i % each == 0) {
                uint64_t here[] = {counter[0], counter[1]};
                advance(here, (uint64_t)(i / each));
                hlo_philox(here, key, words);
            }
            int64_t at = i % each;
            out[i] = wide ? words[2 * at] | (uint64_t)words[2 * at + 1] << 32 : words[at];
        }
        advance(counter, (uint64_t)((count + each - 1) / each));
    }
    memcpy(s + 1, counter, (two ? 1 : 2) * sizeof *s);
    hlo_view_convert(call->env, &new_state, &call->results[0]);
    hlo_view_convert(call->env, &made, result);
    return HLO_OK;
}
const hlo_kernel hlo_eval_rng_bits = {
    .run = run_bits, .error = HLO_ERROR_EXACT, .refuse = refuse_bits};
