/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that build values that name devices, in canonical form: iotas, tilings, meshes, groups,
 * shardings and aliases. */
#ifndef HLO_GRAMMAR_ATTR_DEVICES_H
#define HLO_GRAMMAR_ATTR_DEVICES_H

#include "grammar/attr/notation.h"
#include "ir/device_list.h"

/* `[R]T(P)`: the numbers 0, 1, ... in an array of dimensions R, transposed by P, in row-major
 * order. In canonical form, no dimension is 1 unless it is the only one, dimensions that are
 * adjacent before and after the transposition are merged, and rank 1 has no T. */
typedef struct hlo_iota {
    int64_t *dims, *perm;
    size_t rank;
} hlo_iota;

/* Makes an iota in canonical form. At rank 1, the permutation may be empty. */
bool hlo_iota_make(hlo_notation *f, const char *from, const hlo_notation_ints *dims,
                   hlo_notation_ints *perm, hlo_iota *out);

enum { HLO_MAX_TILE_KINDS = 64 };

/* A tiling, `[2,2]<=[4]` or `[2,2]0,1,2,3`, with the kinds of its last dimensions. */
typedef struct hlo_tiling {
    hlo_notation_ints dims;
    hlo_notation_ints devices;         /* the device ids, if they are listed */
    hlo_iota iota;                     /* rank 0: the devices are listed */
    int64_t kinds[HLO_MAX_TILE_KINDS]; /* values of hlo_sharding_kind */
    size_t kind_count;
} hlo_tiling;

void hlo_iota_keep(hlo_notation *f, const hlo_iota *a, hlo_device_array *out);
/* Copies the tiling to the module, without its kinds. */
hlo_device_array hlo_tiling_keep(hlo_notation *f, const hlo_tiling *t);

/* A list of references to axes. */
typedef struct hlo_axis_ref {
    hlo_axis at;
    struct hlo_axis_ref *next;
} hlo_axis_ref;

enum { HLO_MAX_MESH_AXES = 256 };
typedef struct hlo_mesh_axes {
    const char *names[HLO_MAX_MESH_AXES];
    hlo_notation_ints sizes;
} hlo_mesh_axes;

/* Adds an axis to a mesh. `name` must be interned. */
bool hlo_mesh_add(hlo_notation *f, const char *from, hlo_mesh_axes *to, const char *name,
                  int64_t size);
/* Copies the axes to the module, as a mesh without device ids. */
void hlo_mesh_keep(hlo_notation *f, const hlo_mesh_axes *axes, hlo_mesh *out);
bool hlo_mesh_list(hlo_notation *f, const char *from, const hlo_notation_ints *ids, hlo_mesh *m);
/* Adds a reference to *refs: to the sub-axis `a` if `part`, otherwise to the whole axis. Reports an
 * error if an earlier reference overlaps the new one. `last`: the previous axis in the list; NULL
 * for the first. `sorted`: the list must have the order of the mesh. */
bool hlo_mesh_use(hlo_notation *f, const char *from, const hlo_mesh *m, hlo_axis a, bool part,
                  const hlo_axis *last, bool sorted, hlo_axis_ref **refs);
/* Copies the newest `count` references to the module, oldest first. */
const hlo_axes *hlo_mesh_keep_axes(hlo_notation *f, const hlo_axis_ref *refs, size_t count,
                                   bool open);
/* hlo_groups_keep(), hlo_sharding_keep() and hlo_aliases_keep() set f->value. hlo_groups_keep()
 * first computes the derived members of `groups`. */
bool hlo_groups_keep(hlo_notation *f, const char *from, hlo_groups groups);

/* The parts of a sharding without a mesh. */
typedef struct hlo_sharding_parts {
    hlo_tiling tiles;
    size_t devices; /* number of devices that the sharding names */
    bool last_replicated, last_kinds;
    const char *from; /* the opening brace of the sharding */
} hlo_sharding_parts;

/* Checks the parts of a sharding, and writes their canonical form to `s`, whose kind must be set.
 */
bool hlo_sharding_join(hlo_notation *f, hlo_sharding_parts *p, hlo_sharding *s);
/* For a sharding without dimensions. If the sharding has no set, or its only set has all axes of
 * the mesh, replaces the sets by a sharding kind. */
void hlo_sharding_drop_sets(hlo_sharding *s);
/* Reads metadata. `list`: writes single metadata as a list, too. */
bool hlo_sharding_read_metadata(hlo_notation *f, bool list, hlo_sharding *s);
bool hlo_sharding_keep(hlo_notation *f, hlo_attr_id id, hlo_sharding s);

/* An alias of a list that is being read. */
typedef struct hlo_alias_item {
    hlo_notation_link link;
    hlo_notation_ints output, part;
    hlo_alias is;
} hlo_alias_item;

/* Sets the value to the aliases of a list, which is newest first, and sorts them if XLA does. */
bool hlo_aliases_keep(hlo_notation *f, hlo_alias_item *list, size_t count);

#endif
