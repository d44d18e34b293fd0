/* What jansson does not say: that there was no memory.
 *
 * Where an allocation fails it loses what it was for, a piece of a string or an item of a list, and
 * goes on, or returns NULL as for text that is no JSON. errno knows: nothing that jansson does when
 * it makes or writes values changes it but a failed allocation, and where it reads text, which does
 * change it, it is looked at after each byte. */
#ifndef HLO_MATMUL_JSON_H
#define HLO_MATMUL_JSON_H

#include <jansson.h>
#include <stdbool.h>

#include "ir/ir.h"

/* From here on ... */
void hlo_json_watch(void);
/* ... whether an allocation has failed: nothing that was made is to be used. */
bool hlo_json_starved(void);

/* Reads the text, with jansson's flags. NULL: it is no JSON, `error` (which may be NULL) says why,
 * or *out_starved is set. The caller gives the value back. */
json_t *hlo_json_read(const char *text, size_t size, size_t flags, json_error_t *error,
                      bool *out_starved);

/* Reads the text, of an instruction. NULL: it is no JSON. Leaves as `arena` does where there is no
 * memory. */
json_t *hlo_json_text(hlo_arena *arena, const char *text, size_t flags);
/* The same of its backend_config; NULL: it has none, too. */
json_t *hlo_json_config(const hlo_instr *instr);

#endif
