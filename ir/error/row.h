/* SPDX-License-Identifier: Apache-2.0 */
/* Error bounds of rows of elements, for elementwise operations and conversions. */
#ifndef HLO_IR_ERROR_ROW_H
#define HLO_IR_ERROR_ROW_H

#include "ir/error/rules.h"

/* The loop over an elementwise operation. Its views: the result, the result's sigma, then each
 * operand and the operand's sigma. */
typedef struct hlo_error_row {
    const hlo_instr *instr;
    const hlo_elementwise *op;
    const hlo_error_options *options;
    hlo_type types[3], result;
    hlo_range ranges[3], spread; /* of the operands; spread: of the result */
    uint32_t arity;
    bool twice;        /* both operands are the same value */
    bool squares;      /* the operands' errors are fully correlated; not at poles */
    bool scales[3];    /* operands that other executions may apply elsewhere */
    bool clamped;      /* the result is clamped to the finite range of its type */
    hlo_lane produced; /* lane of the results that the analysis computes */
} hlo_error_row;

/* A chunk of the loop. */
typedef struct hlo_error_analysis {
    hlo_chunk x[3];
    double sigma[3][HLO_CHUNK];
    double value[HLO_CHUNK], variance[HLO_CHUNK];
    double finite[HLO_CHUNK]; /* smallest magnitude of a result that is infinite here, with an
                               * operand that did not overflow; infinity: none */
    bool anything[HLO_CHUNK];
    bool overflows; /* `finite` is not infinity everywhere */
    bool endless;   /* a value is infinite or NaN */
} hlo_error_analysis;

/* Returns the lane in which elements of `type` are analyzed: f64 for real numbers. */
hlo_lane hlo_error_lane(hlo_type type);
/* Returns the value that an overflowed element has without overflow: the largest number of an fp8
 * type, to which it saturates; otherwise `sigma`. */
double hlo_error_instead(hlo_type type, double value, double sigma);
/* Loads a chunk of the operands and their sigmas, starting at element `done` of the row. */
void hlo_error_load(const hlo_error_row *r, hlo_error_analysis *a, int64_t count, int64_t done,
                    char *const *data, const int64_t *steps);
/* Stores a chunk of sigmas; HLO_ERROR_ANYTHING where `anything` (may be NULL) is true. */
void hlo_error_store(const double *sigma, const bool *anything, int64_t count, char *out,
                     int64_t step);
/* True if the call has complex numbers. */
bool hlo_error_complex_call(const hlo_call *call);
/* Loop body for complex numbers, whose sigmas are those of their moduli. Sums, products and parts
 * derive their sigma from those of their operands; other operations on inexact operands have an
 * infinite sigma. */
hlo_strided_loop_body hlo_error_complex_row;
/* Fills in `r` and runs `body` over the result, the operands and all sigmas. */
void hlo_error_loop(const hlo_error_call *b, hlo_error_row *r, hlo_strided_loop_body *body);

/* True if operand `o` is a factor or divisor that other executions may apply elsewhere. */
bool hlo_error_scales(const hlo_instr *instr, uint32_t o);

#endif
