/* SPDX-License-Identifier: Apache-2.0 */
/* jansson, with failed allocations detected.
 *
 * When an allocation fails, jansson drops a part of a string or an item of a list and continues, or
 * returns NULL as for text that is no JSON, or aborts (json.c has where, and why not here). errno
 * tells: while jansson makes or writes values, only a failed allocation changes it; while it reads
 * text, which changes errno, errno is checked after each byte. */
#ifndef HLO_MATMUL_JSON_H
#define HLO_MATMUL_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "ir/ir.h"

/* Starts to watch for failed allocations. */
void hlo_json_watch(void);
/* True if an allocation has failed since hlo_json_watch(): values made since must not be used. */
bool hlo_json_starved(void);

/* Reads an object or array, with jansson's flags but JSON_DECODE_ANY. NULL: it is no JSON, and
 * `error` (may be NULL) has the fault; or memory ran out, and *out_starved is true. The caller
 * releases the value with json_decref(). */
json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved);

/* Reads the text of an attribute. NULL: it is no JSON. Without memory it jumps to the recovery
 * point of `arena`. */
json_t *hlo_json_text(hlo_arena *arena, const char *text);
/* Reads the backend_config of an instruction; NULL: it has none, or it is no JSON. */
json_t *hlo_json_config(const hlo_instr *instr);

#endif
