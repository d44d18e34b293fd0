/* SPDX-License-Identifier: Apache-2.0 */
/* Tests that shape inference rejects a module for each operand of each `||` and `&&` in its checks,
 * and for the first and the last element in a loop. A row is a valid module, or an edit of the last
 * valid one that violates one condition. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/text.h"

typedef struct row {
    const char *module;            /* the entry's body; NULL for an edit of the previous module */
    const char *from, *to, *error; /* replaces `from` by `to`: `error` is a part of the message */
} row;

#define VALID(body)                                                                                \
    { body, NULL, NULL, NULL }
#define BREACH(from, to, error)                                                                    \
    { NULL, from, to, error }

static const row rows[] = {
    VALID("a = f32[4,3] parameter(0) i = s32[] parameter(1)"
          " ROOT r = f32[2,3] dynamic-slice(a, i, i), dynamic_slice_sizes={2,3}"),
    BREACH("sizes={2,3}", "sizes={-1,3}", "slice size -1 is invalid for dimension 0 of size 4"),
    BREACH("sizes={2,3}", "sizes={2,-1}", "slice size -1 is invalid for dimension 1 of size 3"),
    BREACH("sizes={2,3}", "sizes={5,3}", "slice size 5 is invalid for dimension 0 of size 4"),
    BREACH("sizes={2,3}", "sizes={2,4}", "slice size 4 is invalid for dimension 1 of size 3"),
    BREACH("sizes={2,3}", "sizes={2}",
           "'dynamic_slice_sizes' has 1 elements, but the operand has rank 2"),
    BREACH("i = s32[]", "i = f32[]", "operand 1 must be an integer scalar"),
    BREACH("i = s32[]", "i = s32[2,1]", "operand 1 must be an integer scalar"),

    VALID("a = f32[4,3] parameter(0) u = f32[2,3] parameter(1) i = s32[] parameter(2)"
          " ROOT r = f32[4,3] dynamic-update-slice(a, u, i, i)"),
    BREACH("u = f32[2,3]", "u = f32[5,3]", "update size 5 exceeds dimension 0 of size 4"),
    BREACH("u = f32[2,3]", "u = f32[2,4]", "update size 4 exceeds dimension 1 of size 3"),
    BREACH("u = f32[2,3]", "u = f32[2]", "operand and update have different ranks"),
    BREACH("u = f32[2,3]", "u = s32[2,3]", "operand and update have different element types"),

    VALID("a = f32[4,6] parameter(0) ROOT r = f32[2,3] slice(a), slice={[0:4:2], [1:6:2]}"),
    BREACH("[0:4:2]", "[-1:4:2]", "[-1:4:2] is not a valid range for dimension 0 of size 4"),
    BREACH("[0:4:2]", "[3:2:2]", "[3:2:2] is not a valid range for dimension 0 of size 4"),
    BREACH("[0:4:2]", "[0:5:2]", "[0:5:2] is not a valid range for dimension 0 of size 4"),
    BREACH("[0:4:2]", "[0:4:0]", "[0:4:0] is not a valid range for dimension 0 of size 4"),
    BREACH("[1:6:2]", "[-1:6:2]", "[-1:6:2] is not a valid range for dimension 1 of size 6"),
    BREACH("[1:6:2]", "[7:6:2]", "[7:6:2] is not a valid range for dimension 1 of size 6"),
    BREACH("[1:6:2]", "[1:7:2]", "[1:7:2] is not a valid range for dimension 1 of size 6"),
    BREACH("[1:6:2]", "[1:6:-1]", "[1:6:-1] is not a valid range for dimension 1 of size 6"),

    VALID("a = f32[11,5] parameter(0) b = f32[3,5,7] parameter(1) g = s32[3] parameter(2)"
          " ROOT r = f32[11,7] ragged-dot(a, b, g), lhs_contracting_dims={1},"
          " rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}"),
    BREACH("rhs_group_dims={0}", "rhs_group_dims={1}",
           "group dimension 1 is also a batch or contracting dimension"),
    BREACH("rhs_group_dims={0}", "rhs_group_dims={3}",
           "right group dimension 3 is out of range for rank 3"),
    BREACH("lhs_ragged_dims={0}", "lhs_ragged_dims={2}",
           "ragged dimension 2 is out of range for rank 2"),
    BREACH("lhs_ragged_dims={0}", "lhs_ragged_dims={-1}",
           "ragged dimension -1 is out of range for rank 2"),
    BREACH("g = s32[3]", "g = s32[]",
           "the group sizes are s32[], expected a vector, or one vector per index of the 0 "
           "dimensions before the ragged one"),
    BREACH("g = s32[3]", "g = s32[11,3]",
           "the group sizes are s32[11,3], expected a vector, or one vector per index of the 0 "
           "dimensions before the ragged one"),

    VALID("a = f32[2,4,11,5] parameter(0) b = f32[3,2,4,5,7] parameter(1)"
          " g = s32[2,4,3] parameter(2) ROOT r = f32[2,4,11,7] ragged-dot(a, b, g),"
          " lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={1,2},"
          " rhs_contracting_dims={3}, lhs_ragged_dims={2}, rhs_group_dims={0}"),
    BREACH("g = s32[2,4,3]", "g = s32[9,4,3]",
           "the group sizes are s32[9,4,3], expected a vector, or one vector per index of the 2 "
           "dimensions before the ragged one"),
    BREACH("g = s32[2,4,3]", "g = s32[2,9,3]",
           "the group sizes are s32[2,9,3], expected a vector, or one vector per index of the 2 "
           "dimensions before the ragged one"),
    BREACH("g = s32[2,4,3]", "g = s32[2,3]",
           "the group sizes are s32[2,3], expected a vector, or one vector per index of the 2 "
           "dimensions before the ragged one"),
    BREACH("rhs_group_dims={0}", "rhs_group_dims={1}",
           "group dimension 1 is also a batch or contracting dimension"),

    VALID("a = f32[2,8,4] parameter(0) b = f32[2,4,6] parameter(1)"
          " ROOT r = f32[2,8,6] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0},"
          " lhs_contracting_dims={2}, rhs_contracting_dims={1}"),
    BREACH("lhs_batch_dims={0}", "lhs_batch_dims={3}",
           "left batch dimension 3 is out of range for rank 3"),
    BREACH("rhs_batch_dims={0}", "rhs_batch_dims={-1}",
           "right batch dimension -1 is out of range for rank 3"),
    BREACH("lhs_contracting_dims={2}", "lhs_contracting_dims={3}",
           "left contracting dimension 3 is out of range for rank 3"),
    BREACH("rhs_contracting_dims={1}", "rhs_contracting_dims={9}",
           "right contracting dimension 9 is out of range for rank 3"),
    BREACH("lhs_batch_dims={0}", "lhs_batch_dims={2}",
           "dimension 2 of the left operand is both a batch and a contracting dimension"),
    BREACH("rhs_batch_dims={0}", "rhs_batch_dims={1}",
           "dimension 1 of the right operand is both a batch and a contracting dimension"),
    BREACH("b = f32[2,4,6]", "b = f32[3,4,6]",
           "batch dimension 0 of the left operand has size 2, but dimension 0 of the right operand "
           "has size 3"),
    BREACH("b = f32[2,4,6]", "b = f32[2,5,6]",
           "contracting dimension 2 of the left operand has size 4, but dimension 1 of the right "
           "operand has size 5"),
    BREACH("lhs_batch_dims={0}, ", "",
           "the operands have different numbers of batch dimensions: 0 and 1"),
    BREACH("lhs_contracting_dims={2}", "lhs_contracting_dims={1,2}",
           "the operands have different numbers of contracting dimensions: 2 and 1"),

    VALID("a = f32[4,3] parameter(0) l = f32[] parameter(1) h = f32[] parameter(2)"
          " ROOT r = f32[4,3] clamp(l, a, h)"),
    BREACH("l = f32[]", "l = f16[]", "the operands have different element types"),
    BREACH("h = f32[]", "h = f16[]", "the operands have different element types"),
    BREACH("l = f32[]", "l = f32[4]",
           "each bound must be a scalar or have the dimensions of operand 1"),
    BREACH("h = f32[]", "h = f32[3,4]",
           "each bound must be a scalar or have the dimensions of operand 1"),

    VALID("a = f32[4,3] parameter(0) b = f32[4,5] parameter(1) c = f32[4,1] parameter(2)"
          " ROOT r = f32[4,9] concatenate(a, b, c), dimensions={1}"),
    BREACH("a = f32[4,3]", "a = f32[2,3]", "operands 0 and 1 have different sizes in dimension 0"),
    BREACH("c = f32[4,1]", "c = f32[5,1]", "operands 0 and 2 have different sizes in dimension 0"),
    BREACH("b = f32[4,5]", "b = s32[4,5]", "operands 0 and 1 have different element types"),
    BREACH("c = f32[4,1]", "c = f32[4]", "operands 0 and 2 have different ranks"),
    BREACH("dimensions={1}", "dimensions={2}", "dimension 2 is out of range for rank 2"),
    BREACH("dimensions={1}", "dimensions={-1}", "dimension -1 is out of range for rank 2"),

    VALID("a = f32[4,3] parameter(0) z = f32[] parameter(1)"
          " ROOT r = f32[7,6] pad(a, z), padding=1_2_0x0_1_1"),
    BREACH("z = f32[]", "z = s32[]", "operand and padding value have different element types"),
    BREACH("z = f32[]", "z = f32[1]", "the padding value must be a scalar"),
    BREACH("1_2_0x0_1_1", "-5_0_0x0_1_1", "the inferred shape is f32[0,6]"),
    BREACH("1_2_0x0_1_1", "1_2_0x0_-6_1", "the inferred shape is f32[7,0]"),
    BREACH("1_2_0x0_1_1", "1_2_-1x0_1_1", "an interior padding must not be negative"),
    BREACH("1_2_0x0_1_1", "1_2_0x0_1_-1", "an interior padding must not be negative"),
    BREACH("1_2_0x0_1_1", "1_2_0", "'padding' has 1 dimensions, but the operand has rank 2"),
    BREACH("1_2_0x0_1_1", "9223372036854775807_2_0x0_1_1",
           "the padding of dimension 0 is outside [-2^61, 2^61]"),
    BREACH("1_2_0x0_1_1", "1_9223372036854775807_0x0_1_1",
           "the padding of dimension 0 is outside [-2^61, 2^61]"),
    BREACH("1_2_0x0_1_1", "1_2_9223372036854775807x0_1_1",
           "the padding of dimension 0 is outside [-2^61, 2^61]"),

    VALID("a = u8[4,4] parameter(0) ROOT r = f32[4] bitcast-convert(a)"),
    BREACH("a = u8[4,4]", "a = u8[4,2]", "the result cannot have shape f32[4]"),
    BREACH("a = u8[4,4]", "a = u8[4]", "the result cannot have shape f32[4]"),
    BREACH("r = f32[4]", "r = f32[3]", "the result cannot have shape f32[3]"),

    VALID("x = f32[8,4] parameter(0) i = s32[6,1] parameter(1)"
          " ROOT r = f32[6,4] gather(x, i), offset_dims={1}, collapsed_slice_dims={0},"
          " start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}"),
    BREACH("slice_sizes={1,4}", "slice_sizes={-1,4}",
           "slice size -1 is invalid for collapsed dimension 0 of size 8"),
    BREACH("slice_sizes={1,4}", "slice_sizes={1,-4}",
           "slice size -4 is invalid for dimension 1 of size 4"),
    BREACH("slice_sizes={1,4}", "slice_sizes={1,5}",
           "slice size 5 is invalid for dimension 1 of size 4"),
    BREACH("slice_sizes={1,4}", "slice_sizes={2,4}",
           "slice size 2 is invalid for collapsed dimension 0 of size 8"),
    BREACH("index_vector_dim=1", "index_vector_dim=-1",
           "index_vector_dim -1 is out of range for rank 2"),
    BREACH("index_vector_dim=1", "index_vector_dim=3",
           "index_vector_dim 3 is out of range for rank 2"),
    BREACH("collapsed_slice_dims={0}", "collapsed_slice_dims={2}",
           "dimension 2 is out of range for rank 2"),
    BREACH("start_index_map={0}", "start_index_map={2}",
           "indexed dimension 2 is out of range for rank 2"),
    BREACH("start_index_map={0}", "start_index_map={0,1}",
           "index vectors have length 1, but there are 2 indexed dimensions"),
    BREACH("offset_dims={1}", "offset_dims={2}", "window dimension 2 is out of range for rank 2"),
    BREACH("offset_dims={1}", "offset_dims={0,1}",
           "2 window dimensions and 1 other dimensions do not add up to rank 2 of the operand"),

    VALID("x = f32[8,4] parameter(0) ROOT r = (f32[8,2], s32[8,2]) topk(x), k=2, largest=true"),
    BREACH("k=2", "k=-1", "k = -1 is not between 0 and the size of the last dimension"),
    BREACH("k=2", "k=5", "k = 5 is not between 0 and the size of the last dimension"),
    BREACH("x = f32[8,4]", "x = f32[]",
           "k = 2 is not between 0 and the size of the last dimension"),

    VALID("a = f32[4,3,3] parameter(0) b = f32[4,3,2] parameter(1)"
          " ROOT r = f32[4,3,2] triangular-solve(a, b), left_side=true, lower=true,"
          " transpose_a=NO_TRANSPOSE"),
    BREACH("b = f32[4,3,2]", "b = f64[4,3,2]",
           "the operands must have the same element type and rank"),
    BREACH("b = f32[4,3,2]", "b = f32[3,2]",
           "the operands must have the same element type and rank"),
    BREACH("b = f32[4,3,2]", "b = f32[4,4,2]", "operand 1 has 4 rows, but operand 0 requires 3"),
    BREACH("b = f32[4,3,2]", "b = f32[5,3,2]",
           "the operands have different sizes in batch dimension 0"),
    BREACH("a = f32[4,3,3]", "a = f32[4,3,2]", "operand 0 must contain square matrices"),
    BREACH("a = f32[4,3,3]", "a = s32[4,3,3]", "not defined for s32"),

    VALID("x = f32[2,8,4] parameter(0) s = f32[4] parameter(1) o = f32[4] parameter(2)"
          " ROOT r = (f32[2,8,4], f32[4], f32[4]) batch-norm-training(x, s, o), epsilon=1,"
          " feature_index=2"),
    BREACH("feature_index=2", "feature_index=-1", "feature_index -1 is out of range"),
    BREACH("feature_index=2", "feature_index=3", "feature_index 3 is out of range"),
    BREACH("s = f32[4]", "s = f32[5]", "operand 1 must be a vector with one element per feature"),
    BREACH("o = f32[4]", "o = f32[5]", "operand 2 must be a vector with one element per feature"),
    BREACH("o = f32[4]", "o = f32[4,1]", "operand 2 must be a vector with one element per feature"),
    BREACH("o = f32[4]", "o = f16[4]", "operand 2 must be a vector with one element per feature"),

    VALID("x = f32[2,8,8,4] parameter(0) k = f32[3,3,2,6] parameter(1)"
          " ROOT r = f32[2,6,6,6] convolution(x, k), window={size=3x3},"
          " dim_labels=b01f_01io->b01f, feature_group_count=2"),
    BREACH("feature_group_count=2", "feature_group_count=0",
           "the group counts must divide the 6 output features, and the "
           "batch group count the batch of 2"),
    BREACH("feature_group_count=2", "feature_group_count=4",
           "the group counts must divide the 6 output features, and the "
           "batch group count the batch of 2"),
    BREACH(
        "k = f32[3,3,2,6]", "k = f32[3,3,3,6]",
        "the input has 4 features and the group count is 2, but the kernel has 3 input features"),
    BREACH("feature_group_count=2", "feature_group_count=2, batch_group_count=0",
           "the group counts must divide the 6 output features, and the "
           "batch group count the batch of 2"),
    BREACH("k = f32[3,3,2,6]", "k = f32[3,3,2,5]",
           "the group counts must divide the 5 output features, and the "
           "batch group count the batch of 2"),
    BREACH("k = f32[3,3,2,6]", "k = f32[3,2,6]",
           "the operands must have the same rank, at least 2"),
    BREACH("k = f32[3,3,2,6]", "k = f32[2,3,2,6]",
           "the size of the window along dimension 0 is 3, but the size of the kernel is 2"),
    BREACH("k = f32[3,3,2,6]", "k = f32[3,2,2,6]",
           "the size of the window along dimension 1 is 3, but the size of the kernel is 2"),

    VALID("x = f32[8,16] parameter(0) ROOT r = c64[8,9] fft(x), fft_type=RFFT, fft_length={16}"),
    BREACH("fft_length={16}", "fft_length={15}",
           "RFFT of length 15 requires 15 elements along dimension 1, found 16"),
    BREACH("fft_length={16}", "fft_length={-1}",
           "RFFT of length -1 requires -1 elements along dimension 1, found 16"),
    BREACH("fft_length={16}", "fft_length={8,8,8,16}",
           "fft_length has 4 dimensions, expected 1 to 3"),
    BREACH("fft_length={16}", "fft_length={}", "fft_length has 0 dimensions, expected 1 to 3"),
    BREACH("fft_length={16}", "fft_length={9,16}",
           "RFFT of length 9 requires 9 elements along dimension 0, found 8"),
    BREACH("x = f32[8,16]", "x = c64[8,16]",
           "RFFT requires elements of type f32 or f64, found c64"),
    BREACH("x = f32[8,16]", "x = f16[8,16]",
           "RFFT requires elements of type f32 or f64, found f16"),

    VALID("x = f32[8,16] parameter(0) ROOT r = f32[16,8] transpose(x), dimensions={1,0}"),
    BREACH("dimensions={1,0}", "dimensions={1,1}", "dimension 1 is repeated"),
    BREACH("dimensions={1,0}", "dimensions={0,0}", "dimension 0 is repeated"),
    BREACH("dimensions={1,0}", "dimensions={2,0}", "dimension 2 is out of range for rank 2"),
    BREACH("dimensions={1,0}", "dimensions={1,-1}", "dimension -1 is out of range for rank 2"),
    BREACH("dimensions={1,0}", "dimensions={1}",
           "'dimensions' has 1 elements, but the operand has rank 2"),

    VALID("x = f32[8] parameter(0) ROOT r = f32[4,8] broadcast(x), dimensions={1}"),
    BREACH("dimensions={1}", "dimensions={2}", "dimension 2 is out of range for rank 2"),
    BREACH("dimensions={1}", "dimensions={-1}", "dimension -1 is out of range for rank 2"),
    BREACH("dimensions={1}", "dimensions={0}",
           "dimension 0 of the operand has size 8, but dimension 0 of f32[4,8] has size 4"),
    BREACH("dimensions={1}", "dimensions={}",
           "'dimensions' has 0 elements, but the operand has rank 1"),

    VALID("x = f32[4,1] parameter(0) p = pred[4,1] parameter(1) y = f32[4,1] parameter(2)"
          " ROOT r = f32[4,1] select(p, x, y)"),
    BREACH("p = pred[4,1]", "p = s32[4,1]", "operand 0 must be pred"),
    BREACH("p = pred[4,1]", "p = pred[1,4]",
           "the predicate must be a scalar or have the dimensions of the choices"),
    BREACH("y = f32[4,1]", "y = f16[4,1]", "the choices have different element types"),
    BREACH("x = f32[4,1]", "x = f32[5,1]", "the choices have different dimensions"),
    BREACH("y = f32[4,1]", "y = f32[4,2]", "the choices have different dimensions"),
};

static void keep_first(void *user, const hlo_diag *diag) {
    char *message = user;
    if (diag->severity == HLO_ERROR && !*message) snprintf(message, 512, "%s", diag->message);
}

/* Parses and verifies a module; writes the first error, or "" if it is valid. */
static void verify(const char *body, char message[512]) {
    char text[2048];
    const hlo_diag_sink sink = {keep_first, message};
    hlo_module *m = NULL;
    *message = '\0';
    snprintf(text, sizeof text, "HloModule m\nENTRY e {\n%s\n}\n", body);
    hlo_status status = hlo_module_parse(text, strlen(text), "m.hlo", &sink, &m);
    if (status == HLO_OK) status = hlo_module_verify(m, NULL, &sink);
    hlo_module_free(m);
    if ((status == HLO_OK) != !*message) fail_msg("status %d, but `%s`: %s", status, message, body);
}

static void each_breach_is_an_error(void **state) {
    (void)state;
    const char *valid = NULL;
    size_t failures = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char body[1024], message[512];
        const row *r = &rows[i];
        if (r->module) {
            valid = r->module;
            snprintf(body, sizeof body, "%s", valid);
        } else {
            const char *at = strstr(valid, r->from);
            if (!at) fail_msg("`%s` is not in %s", r->from, valid);
            snprintf(body, sizeof body, "%.*s%s%s", (int)(at - valid), valid, r->to,
                     at + strlen(r->from));
        }
        verify(body, message);
        if (r->module ? !*message : *message && strstr(message, r->error)) continue;
        print_error("`%s`, expected `%s`: %s\n", message, r->module ? "" : r->error, body);
        failures++;
    }
    assert_int_equal(failures, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_breach_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
