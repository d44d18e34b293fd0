/* SPDX-License-Identifier: Apache-2.0 */
/* Structs for values that name devices, and a reader of the entries of values that are stored as
 * text. */
#ifndef HLO_IR_DEVICE_LIST_H
#define HLO_IR_DEVICE_LIST_H

#include "ir/ir.h"

/* Moves *at past `mark` if `mark` is next. Returns true if it moved. */
bool hlo_value_take(const char **at, const char *mark);
/* An entry of `{name="value",other={a=1}}`, borrowed from the text. */
typedef struct hlo_value_pair {
    const char *name;
    size_t size;             /* length of the name */
    const char *value, *end; /* the value with its quotes or brackets */
} hlo_value_pair;

/* Reads the next entry. *at starts at the opening bracket. Returns false at the end. */
bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair);
bool hlo_value_is_named(const hlo_value_pair *pair, const char *name);
/* Finds the value of `name` in `{name="value",other={a=1}}`. Returns a string without quotes and
 * backslashes, a bracketed value with its brackets, or NULL if not found. */
const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name);

/* The devices at the positions of an array, in row-major order. */
typedef struct hlo_device_array {
    const hlo_ints *dims;   /* size of the array along each dimension */
    const hlo_ints *listed; /* the device ids, or NULL */
    const hlo_ints *iota;   /* for `<=[4,2]T(1,0)`: the sizes of an array with the ids 0, 1, ... */
    const hlo_ints *order;  /* the permutation that transposes that array, or NULL */
} hlo_device_array;         /* without a list and an iota, the ids are 0, 1, ... */

/* A device array with named dimensions, the axes. */
typedef struct hlo_mesh {
    hlo_device_array devices;
    const char **names; /* interned names of the dimensions; NULL: the array is not a mesh */
} hlo_mesh;

/* An axis `'a'`, or a sub-axis `'a':(2)4`. It has `size` devices; `before` is the product of the
 * sizes of the sub-axes before it. */
typedef struct hlo_axis {
    int64_t axis, before, size;
} hlo_axis;

typedef struct hlo_axes {
    uint32_t count;
    bool open; /* the list ends with `?` */
    hlo_axis v[];
} hlo_axes;

/* The groups of a collective; pairs are groups of two. */
struct hlo_groups {
    hlo_parsed parsed;
    const hlo_ints *sizes; /* for `{{0,1},{2}}`: the number of devices of each group in
                            * `mesh.devices.listed`; or NULL */
    hlo_mesh mesh;         /* for `[2,4]<=[8]`, its axes have no names */
    const hlo_axes *axes;  /* the axes of the mesh along which the devices of a group vary */

    /* Derived from the members above; -1 if a number overflows. */
    int64_t count;   /* number of groups; 0 if the value does not determine the number */
    int64_t size;    /* number of devices per group; -1: the groups have different sizes */
    int64_t devices; /* total number of devices in all groups */
    bool empty;      /* at least one group has no device */
    bool misfit;     /* the device `odd` is named twice, or is not below `devices` */
    int64_t odd;
};

/* The first four kinds may also be kinds of the last dimensions of a tiling, in this order. */
typedef enum hlo_sharding_kind {
    HLO_SHARDING_MAXIMAL,
    HLO_SHARDING_MANUAL,
    HLO_SHARDING_UNREDUCED,
    HLO_SHARDING_REPLICATED,
    HLO_SHARDING_UNKNOWN,
    HLO_SHARDING_TILED,        /* `{devices=[2,2]<=[4]}` */
    HLO_SHARDING_NAMED,        /* `{mesh['a'=4], [{'a'}]}` */
    HLO_SHARDING_MAXIMAL_MESH, /* `{maximal_mesh[device_id=3]}` */
    HLO_SHARDING_TUPLE,
    HLO_SHARDING_DOMAIN /* a tuple of two shardings: entry and exit */
} hlo_sharding_kind;
/* The words of the first five kinds in HLO text. */
extern const char *const hlo_sharding_words[HLO_SHARDING_TILED];

/* The sets of axes that a sharding with a mesh may name, in printing order. */
enum { HLO_SHARDING_SETS = 3 };
extern const hlo_sharding_kind hlo_sharding_sets[HLO_SHARDING_SETS];

struct hlo_sharding {
    hlo_parsed parsed;
    hlo_sharding_kind kind;
    hlo_mesh mesh;
    int64_t device;         /* the device of a maximal sharding */
    const hlo_ints *kinds;  /* tiled: kinds of the last dimensions, or NULL */
    const hlo_axes **dims;  /* named: `count` entries, the axes along each dimension */
    const hlo_sharding **v; /* for a tuple: its `count` elements */
    uint32_t count;
    const hlo_axes *sets[HLO_SHARDING_SETS]; /* sets of axes of the mesh; NULL: the set is empty */
    const char *reduction;                   /* for unreduced axes: `max` or `min`; NULL: sum */
    const char *group;                       /* `as` of shard_as, `like` of shard_like, or NULL */
    int64_t group_id;
    const char *metadata; /* text with braces, interned, or NULL */
};

/* Sets the derived members of `groups`. */
void hlo_groups_measure(hlo_groups *groups, hlo_arena *scratch);
/* Returns the value of attribute `id`; NULL if it is absent. */
const hlo_groups *hlo_instr_groups(const hlo_instruction *instr, hlo_attr_id id);
const hlo_sharding *hlo_instr_sharding(const hlo_instruction *instr);
/* True if the sharding, one of its tuple elements, or one of its parts is of that kind. */
bool hlo_sharding_has(const hlo_sharding *sharding, hlo_sharding_kind kind);

/* Returns the product; -1 if a factor is less than 1 or the product overflows. */
int64_t hlo_dims_product(const int64_t *factors, size_t count);

#endif
