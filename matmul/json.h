/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps jansson to detect failed allocations.
 *
 * When an allocation fails, jansson may drop a part of a string or an item of a list and continue,
 * return NULL as for invalid JSON, or abort (json.c prevents the abort). errno detects failed
 * allocations: while jansson creates or writes values, only a failed allocation changes it. While
 * jansson reads text, which changes errno, errno is checked after each byte. */
#ifndef HLO_MATMUL_JSON_H
#define HLO_MATMUL_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "ir/ir.h"

void hlo_json_watch(void);
/* True if an allocation has failed since hlo_json_watch(). The values created since then must not
 * be used. */
bool hlo_json_starved(void);

/* Reads an object or array, with jansson's flags except JSON_DECODE_ANY. If the text is not JSON,
 * returns NULL and describes the error in `error`, which may be NULL. If memory ran out, returns
 * NULL and sets *out_starved to true. The caller releases the value with json_decref(). */
json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved);

/* Reads the text of an attribute. Returns NULL if the text is not JSON. If memory runs out, jumps
 * to the recovery point of `arena`. */
json_t *hlo_json_text(hlo_arena *arena, const char *text);
/* Reads the backend_config of an instruction; NULL if it is absent or not JSON. */
json_t *hlo_json_config(const hlo_instruction *instr);

/* Reads the attribute dictionary of a typed custom call, in MLIR's notation `{beta = 0.0 : f64}`.
 * The values are strings, flags, numbers and arrays of integers. `*out` is a JSON object with the
 * same keys, which the caller releases with json_decref(). Returns NULL on success, otherwise the
 * error (a static text). If memory ran out, *out_starved is true. After an error, or if memory ran
 * out, *out is NULL. */
const char *hlo_mlir_read(const char *text, json_t **out, bool *out_starved);

/* Formats a number in MLIR's notation, such as `1.000000e+00 : f64`. Reading it returns the same
 * double. */
char *hlo_mlir_number(hlo_arena *arena, double value);

#endif
