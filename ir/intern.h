/* What module.c needs of the string and shape tables. */
#ifndef HLO_IR_INTERN_H
#define HLO_IR_INTERN_H

#include "ir/arena.h"

struct hlo_strings *hlo_strings_new(hlo_arena *arena);
void hlo_strings_free(struct hlo_strings *strings); /* what is not in the arena; NULL is allowed */
/* Nothing is called by any of them any more. */
void hlo_strings_free_names(struct hlo_strings *strings);
struct hlo_shapeset *hlo_shapeset_new(hlo_arena *arena);

#endif
