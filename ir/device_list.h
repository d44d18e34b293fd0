/* What values that name devices say (attributes of kind FORM, in the form in which they are kept).
 */
#ifndef HLO_IR_GROUPS_H
#define HLO_IR_GROUPS_H

#include "ir/ir.h"

/* Steps over a value. `mark` stands next: it is gone past. */
bool hlo_value_take(const char **at, const char *mark);
/* The number that stands next; 0 when none does. */
int64_t hlo_value_int(const char **at);
/* Past a name in single quotes. */
const char *hlo_value_past_name(const char *at);
/* An entry of `{name="value",other={a=1}}`, as it stands there. */
typedef struct hlo_value_pair {
    const char *name;
    size_t size;             /* of the name */
    const char *value, *end; /* with its quotes or brackets */
} hlo_value_pair;

/* The next entry: *at begins where the bracket opens. False at the end. */
bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair);
bool hlo_value_is_named(const hlo_value_pair *pair, const char *name);
/* What `{name="value",other={a=1}}` says of a name: without the quotes and the backslashes in them,
 * or with the brackets. NULL: nothing. */
const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name);

/* The groups of a collective. */
typedef struct hlo_device_list {
    int64_t count;    /* of groups; 0: the value leaves them to the run */
    int64_t size;     /* devices in each; -1: they differ */
    int64_t devices;  /* that are named, in all groups */
    bool empty;       /* some group has none */
    const char *list; /* where they are listed; NULL: each number below `devices` once */
} hlo_device_list;

/* Reads a value of replica_groups, and one of source_target_pairs as groups of two. NULL is `{}`.
 * Numbers that overflow are -1. */
hlo_device_list hlo_device_list_read(const char *value);
/* The next of the listed numbers: *at begins as `list`. False at the end. */
bool hlo_device_list_next(const char **at, int64_t *out_device);

#endif
