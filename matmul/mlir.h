/* SPDX-License-Identifier: Apache-2.0 */
/* The attribute dictionary of a typed custom call, in MLIR's notation: `{beta = 0.0 : f64}`. */
#ifndef HLO_MATMUL_MLIR_H
#define HLO_MATMUL_MLIR_H

#include "matmul/json.h"

/* Reads a dictionary of strings, flags, numbers and arrays of integers as a JSON object with the
 * same keys, which the caller releases with json_decref(). Returns NULL, or the error (static).
 * *out is NULL after an error and if memory ran out, with *out_starved true. */
const char *hlo_mlir_read(const char *text, json_t **out, bool *out_starved);

/* Formats a number as MLIR does, `1.000000e+00 : f64`, so that reading it returns the same
 * double. */
char *hlo_mlir_number(hlo_arena *arena, double value);

#endif
