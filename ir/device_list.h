/* SPDX-License-Identifier: Apache-2.0 */
/* Values that name devices; entries of values that are kept as text. */
#ifndef HLO_IR_DEVICE_LIST_H
#define HLO_IR_DEVICE_LIST_H

#include "ir/ir.h"

/* Moves *at past `mark` if `mark` is next; returns true then. */
bool hlo_value_take(const char **at, const char *mark);
/* An entry of `{name="value",other={a=1}}`, borrowed from the text. */
typedef struct hlo_value_pair {
    const char *name;
    size_t size;             /* of the name */
    const char *value, *end; /* with its quotes or brackets */
} hlo_value_pair;

/* Reads the next entry; *at starts at the opening bracket. False at the end. */
bool hlo_value_next_entry(const char **at, hlo_value_pair *out_pair);
bool hlo_value_is_named(const hlo_value_pair *pair, const char *name);
/* Finds the value of `name` in `{name="value",other={a=1}}`: a string without quotes and
 * backslashes, or the text with its brackets. NULL: there is no such entry. */
const char *hlo_value_entry(hlo_arena *arena, const char *entries, const char *name);

/* The devices at the places of an array, in row-major order. */
typedef struct hlo_device_array {
    const hlo_ints *dims;   /* its size along each dimension */
    const hlo_ints *listed; /* NULL: the devices are not listed */
    const hlo_ints *iota; /* `<=[4,2]T(1,0)`: from 0 on at the places of an array of these sizes; */
    const hlo_ints *order; /* transposed so; NULL: not transposed */
} hlo_device_array;        /* neither listed nor an iota: from 0 on */

/* A device array with names for its dimensions, the axes. */
typedef struct hlo_mesh {
    hlo_device_array devices;
    const char **names; /* interned; NULL: no mesh, but the array alone */
} hlo_mesh;

/* `'a'`, or a part of it, `'a':(2)4`: `size` of its devices, `before` parts behind one another. */
typedef struct hlo_axis {
    int64_t axis, before, size;
} hlo_axis;

typedef struct hlo_axes {
    uint32_t count;
    bool open; /* `?` stands behind them */
    hlo_axis v[];
} hlo_axes;

/* The groups of a collective; pairs are groups of two. */
struct hlo_groups {
    hlo_parsed parsed;
    const hlo_ints
        *sizes;    /* `{{0,1},{2}}`: devices of each group, of `mesh.devices.listed`; or NULL */
    hlo_mesh mesh; /* `[2,4]<=[8]`: without names */
    const hlo_axes *axes; /* of the mesh, along which the devices of a group lie */

    /* The rest is known from the above; numbers that overflow are -1. */
    int64_t count;   /* of groups; 0: the value does not determine them */
    int64_t size;    /* devices in each; -1: they differ */
    int64_t devices; /* named in all groups */
    bool empty;      /* a group has no device */
    bool misfit;     /* the device `odd` is named twice, or not below `devices` */
    int64_t odd;
};

/* The first four are also the kinds of the last dimensions of a tiling, in canonical order. */
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
    HLO_SHARDING_DOMAIN /* a tuple of two, of its entry and exit */
} hlo_sharding_kind;
/* The words for the first five. */
extern const char *const hlo_sharding_words[HLO_SHARDING_TILED];

/* The sets of axes that a sharding with a mesh may name, in printing order. */
enum { HLO_SHARDING_SETS = 3 };
extern const hlo_sharding_kind hlo_sharding_sets[HLO_SHARDING_SETS];

struct hlo_sharding {
    hlo_parsed parsed;
    hlo_sharding_kind kind;
    hlo_mesh mesh;
    int64_t device;         /* of a maximal one */
    const hlo_ints *kinds;  /* tiled: of the last dimensions; NULL: they have none */
    const hlo_axes **dims;  /* named: `count`, the axes along each dimension */
    const hlo_sharding **v; /* of a tuple: `count` */
    uint32_t count;
    const hlo_axes *sets[HLO_SHARDING_SETS]; /* with a mesh; NULL: no axes */
    const char *reduction;                   /* of unreduced axes: `max` or `min`; NULL: sum */
    const char *group;                       /* `as` or `like`; NULL: in no group */
    int64_t group_id;
    const char *metadata; /* its text, with braces; interned; NULL: none */
};

/* Sets the members that are known from the others. */
void hlo_groups_measure(hlo_groups *groups, hlo_arena *scratch);
/* Returns the value of the attribute; NULL: the instruction does not have it. */
const hlo_groups *hlo_instr_groups(const hlo_instr *instr, hlo_attr_id id);
const hlo_sharding *hlo_instr_sharding(const hlo_instr *instr);
/* True if the sharding, or one in a tuple, is of the kind, or has a part that is. */
bool hlo_sharding_has(const hlo_sharding *sharding, hlo_sharding_kind kind);

#endif
