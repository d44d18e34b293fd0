/* Reading attribute values of kind FORM, in their canonical text; groups of devices. */
#ifndef HLO_IR_GROUPS_H
#define HLO_IR_GROUPS_H

#include "ir/ir.h"

/* Moves *at past `mark` if `mark` is next; returns true then. */
bool hlo_value_take(const char **at, const char *mark);
/* Reads the next number; 0 when there is none. */
int64_t hlo_value_int(const char **at);
/* The text after the name in single quotes that begins at `at`. */
const char *hlo_value_past_name(const char *at);
/* An entry of `{name="value",other={a=1}}`, borrowed from the text. */
typedef struct hlo_value_pair {
    const char *name;
    size_t size;             /* of the name */
    const char *value, *end; /* with its quotes or brackets */
} hlo_value_pair;

/* Reads the next entry; *at starts at the opening bracket. False at the end. */
bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair);
bool hlo_value_is_named(const hlo_value_pair *pair, const char *name);
/* The value of `name` in `{name="value",other={a=1}}`: a string without quotes and backslashes, or
 * the text with its brackets. NULL: there is no such entry. */
const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name);

/* The groups of a collective. */
typedef struct hlo_device_list {
    int64_t count;    /* of groups; 0: the value does not determine them */
    int64_t size;     /* devices in each; -1: they differ */
    int64_t devices;  /* listed in all groups */
    bool empty;       /* a group has no device */
    const char *list; /* the text of the list; NULL: each number below `devices` once */
} hlo_device_list;

/* Reads a value of replica_groups, or of source_target_pairs as groups of two. NULL is `{}`.
 * Numbers that overflow are -1. */
hlo_device_list hlo_device_list_read(const char *value);
/* Reads the next device of the list; *at starts as `list`. False at the end. */
bool hlo_device_list_next(const char **at, int64_t *out_device);

#endif
