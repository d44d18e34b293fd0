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

/* Sets the members that are known from the others. */
void hlo_groups_measure(hlo_groups *groups, hlo_arena *scratch);
/* A deep copy, for another module. */
hlo_groups *hlo_groups_copy(hlo_module *to, const hlo_groups *from);
/* The value of the attribute; NULL when the instruction does not have it. */
const hlo_groups *hlo_instr_groups(const hlo_instr *instr, hlo_attr_id id);

#endif
