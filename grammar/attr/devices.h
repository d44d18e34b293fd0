/* SPDX-License-Identifier: Apache-2.0 */
/* Values that name devices: iotas, tilings and meshes, read, in canonical form. */
#ifndef HLO_GRAMMAR_ATTR_DEVICES_H
#define HLO_GRAMMAR_ATTR_DEVICES_H

#include "grammar/attr/notation.h"
#include "ir/device_list.h"

/* `[R]T(P)`: the numbers 0, 1, ... in an array of dimensions R, transposed by P, in row-major
 * order. In canonical form, no dimension is 1, dimensions that remain adjacent are merged, and rank
 * 1 has no T. */
typedef struct hlo_iota {
    int64_t *dims, *perm;
    size_t rank;
} hlo_iota;

/* Reads `[2,2]T(1,0)` or `[4]`. */
bool hlo_iota_read(hlo_notation *f, hlo_iota *out);

enum { HLO_MOST_TILE_KINDS = 64 };

/* `[2,2]<=[4]` or `[2,2]0,1,2,3`, with the kinds of the last dimensions. */
typedef struct hlo_tiling {
    hlo_notation_ints dims;
    hlo_notation_ints devices;          /* if listed */
    hlo_iota iota;                      /* rank 0: the devices are listed */
    int64_t kinds[HLO_MOST_TILE_KINDS]; /* hlo_sharding_kind */
    size_t kind_count;
} hlo_tiling;

/* Reads a tiling without its kinds. `listed`: devices may be listed. */
bool hlo_tiling_read(hlo_notation *f, bool listed, hlo_tiling *t);
/* Reads `{manual, replicated}`. */
bool hlo_tiling_read_kinds(hlo_notation *f, hlo_tiling *t);
/* Copies the iota to the module, as a device array. */
void hlo_iota_keep(hlo_notation *f, const hlo_iota *a, hlo_device_array *out);
/* Copies the tiling to the module, without its kinds. */
hlo_device_array hlo_tiling_keep(hlo_notation *f, const hlo_tiling *t);
/* True if the tiling has one position for each device. */
bool hlo_tiling_is_whole(const hlo_tiling *t);
/* Brings the tiling to canonical form: dimensions after the data dimensions are sorted by kind,
 * dimensions of one kind merged, dimensions of size 1 dropped. Returns the kind that the whole
 * tiling is equivalent to, otherwise HLO_SHARDING_TILED. */
hlo_sharding_kind hlo_tiling_normalize(hlo_notation *f, hlo_tiling *t);

/* A list of references to axes. */
typedef struct hlo_axis_ref {
    hlo_axis at;
    struct hlo_axis_ref *next;
} hlo_axis_ref;

/* Reads a mesh after the word `mesh`, with its device ids. */
bool hlo_mesh_read(hlo_notation *f, hlo_mesh *out);
/* Reads axes up to the closing brace and adds them to *refs. No two references may overlap. `open`:
 * `?` may be last. `sorted`: the axes are in the order of the mesh. */
bool hlo_mesh_read_axes(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref **refs, bool open,
                        bool sorted, const hlo_axes **out);

#endif
