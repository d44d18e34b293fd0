/* SPDX-License-Identifier: Apache-2.0 */
/* Computes groups of devices. In modules that are not partitioned, also analyzes the boundary
 * between values per device and global values.
 *
 * Most notations name an array of devices and some of its dimensions: the devices of a group have
 * the same position along all other dimensions. */
#include "ir/devices/device_groups.h"

#include <string.h>

#include "ir/devices/boundary.h"
#include "ir/intern.h"

enum { MAX_DEVICES = 1 << 16, MAX_DIMS = 32 };

const hlo_device_groups hlo_device_groups_whole = {0};

/* A run of positions in an array's dimension along which the devices of a group vary: `size`
 * positions, `step` apart. */
typedef struct stretch {
    int64_t step, size;
} stretch;

typedef struct array {
    int64_t count;
    int64_t dims[MAX_DIMS];
    uint32_t rank;
    uint32_t *at; /* the device at each position, in row-major order */
    stretch grouped[MAX_DIMS];
    uint32_t grouped_count;
} array;

/* Returns the number of positions of an array; 0 if there are none, or too many. */
static int64_t place_count(const int64_t *dims, uint32_t rank) {
    int64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 1 || dims[i] > MAX_DEVICES || (count *= dims[i]) > MAX_DEVICES) return 0;
    return count;
}

static int64_t dim_step(const array *d, uint32_t dim) {
    int64_t step = 1;
    for (uint32_t i = dim + 1; i < d->rank; i++) step *= d->dims[i];
    return step;
}

static void group_along(array *d, uint32_t dim) {
    d->grouped[d->grouped_count++] = (stretch){dim_step(d, dim), d->dims[dim]};
}

static int64_t first_place(const array *d, int64_t place) {
    int64_t first = place;
    for (uint32_t i = 0; i < d->grouped_count; i++) {
        const stretch *s = &d->grouped[i];
        first -= place / s->step % s->size * s->step;
    }
    return first;
}

static const hlo_device_groups *divide(hlo_arena *arena, const array *d) {
    uint32_t *of = hlo_arena_zero(arena, (size_t)d->count * sizeof *of);
    for (int64_t place = 0; place < d->count; place++)
        of[d->at[place]] = d->at[first_place(d, place)];
    hlo_device_groups *groups = hlo_arena_zero(arena, sizeof *groups);
    *groups = (hlo_device_groups){(uint32_t)d->count, of};
    return groups;
}

/* --------------------------------------------------------------------------------------- groups */

static bool too_many(int64_t devices) {
    return devices < 0 || devices > MAX_DEVICES;
}

static bool place(hlo_arena *arena, const hlo_device_array *from, array *d) {
    if (from->dims->count > MAX_DIMS) return false;
    *d = (array){.rank = from->dims->count};
    memcpy(d->dims, from->dims->v, d->rank * sizeof *d->dims);
    d->count = place_count(d->dims, d->rank);
    d->at = hlo_arena_array(arena, (size_t)d->count, sizeof *d->at);
    for (int64_t i = 0; i < d->count; i++) d->at[i] = (uint32_t)i;
    if (d->count <= 0) return false;
    if (from->listed) {
        if (from->listed->count != d->count) return false;
        for (int64_t i = 0; i < d->count; i++) {
            const int64_t device = from->listed->v[i];
            if (device < 0 || device >= d->count) return false;
            d->at[i] = (uint32_t)device;
        }
    }
    if (!from->iota) return true;
    int64_t step[MAX_DIMS]; /* for `[4,2]T(1,0)`: distance of neighbors along each dimension */
    if (from->iota->count > MAX_DIMS || place_count(from->iota->v, from->iota->count) != d->count)
        return false;
    for (uint32_t i = 0; from->order && i < from->order->count; i++) {
        step[i] = 1;
        for (uint32_t k = (uint32_t)from->order->v[i] + 1; k < from->iota->count; k++)
            step[i] *= from->iota->v[k];
    }
    for (int64_t place = 0; from->order && place < d->count; place++) {
        int64_t rest = place, device = 0;
        for (uint32_t i = from->iota->count; i-- > 0;) {
            device += rest % from->iota->v[from->order->v[i]] * step[i];
            rest /= from->iota->v[from->order->v[i]];
        }
        d->at[place] = (uint32_t)device;
    }
    return true;
}

static bool group_part(array *d, const hlo_axis *a) {
    const int64_t part = a->before * a->size;
    if (d->grouped_count == MAX_DIMS || d->dims[a->axis] % part) return false;
    const int64_t behind = d->dims[a->axis] / part;
    d->grouped[d->grouped_count++] = (stretch){dim_step(d, (uint32_t)a->axis) * behind, a->size};
    return true;
}

static bool place_groups(hlo_arena *arena, const hlo_mesh *mesh, const hlo_axes *axes, array *d) {
    if (!place(arena, &mesh->devices, d)) return false;
    for (uint32_t i = 0; i < axes->count; i++)
        if (!group_part(d, &axes->v[i])) return false;
    return true;
}

static const hlo_device_groups *groups_along(hlo_arena *arena, const hlo_mesh *mesh,
                                             const hlo_axes *axes) {
    array d;
    return place_groups(arena, mesh, axes, &d) ? divide(arena, &d) : NULL;
}

/* Creates a separate group for each of `count` devices, or of more devices if a listed id is not
 * below `count`. Returns NULL if the number is 0 or too large, or an id is negative. */
static hlo_device_groups *all_listed(hlo_arena *arena, const hlo_groups *from, int64_t count,
                                     uint32_t **out_of) {
    const hlo_ints *listed = from->mesh.devices.listed;
    for (uint32_t i = 0; i < listed->count; i++) {
        if (listed->v[i] < 0 || too_many(listed->v[i])) return NULL;
        if (listed->v[i] >= count) count = listed->v[i] + 1;
    }
    if (!count || too_many(count)) return NULL;
    hlo_device_groups *groups = hlo_arena_zero(arena, sizeof *groups);
    *groups = (hlo_device_groups){(uint32_t)count,
                                  *out_of = hlo_arena_array(arena, (size_t)count, sizeof **out_of)};
    for (uint32_t i = 0; i < count; i++) (*out_of)[i] = i;
    return groups;
}

/* Returns hlo_device_groups_whole if `made` is one group of all `devices`, otherwise `made`. */
static const hlo_device_groups *perhaps_whole(const hlo_device_groups *made, int64_t devices) {
    if (!made || !devices || made->count != devices) return made;
    for (uint32_t i = 0; i < made->count; i++)
        if (made->of[i] != made->of[0]) return made;
    return &hlo_device_groups_whole;
}

const hlo_device_groups *hlo_device_groups_of_lists(hlo_arena *arena, const hlo_groups *groups,
                                                    int64_t devices) {
    if (!groups || (groups->sizes && !groups->sizes->count)) return &hlo_device_groups_whole;
    if (!groups->sizes)
        return perhaps_whole(groups_along(arena, &groups->mesh, groups->axes), devices);
    uint32_t *of;
    hlo_device_groups *made = groups->devices ? all_listed(arena, groups, devices, &of) : NULL;
    const int64_t *listed = groups->mesh.devices.listed->v;
    for (uint32_t i = 0; made && i < groups->sizes->count; listed += groups->sizes->v[i++])
        for (int64_t k = 0; k < groups->sizes->v[i]; k++) of[listed[k]] = (uint32_t)*listed;
    return perhaps_whole(made, devices);
}

const hlo_ints *hlo_device_group_of(hlo_arena *arena, const hlo_groups *groups, int64_t device) {
    if (!groups->sizes) {
        /* Find the group of the device in `[2,4]<=[8]` or `mesh['a'=2,'b'=4] {'b'}`. */
        array d;
        if (!place_groups(arena, &groups->mesh, groups->axes, &d)) return NULL;
        for (int64_t place = 0; place < d.count; place++) {
            if (d.at[place] != device) continue;
            const int64_t first = first_place(&d, place);
            int64_t count = 1;
            for (uint32_t a = 0; a < d.grouped_count; a++) count *= d.grouped[a].size;
            /* List the devices along axes, starting at position `first`; the first axis varies
             * slowest. */
            int64_t *members = hlo_arena_array(arena, (size_t)count, sizeof *members);
            for (int64_t i = 0; i < count; i++) {
                int64_t rest = i, at = first;
                for (uint32_t a = d.grouped_count; a-- > 0; rest /= d.grouped[a].size)
                    at += rest % d.grouped[a].size * d.grouped[a].step;
                members[i] = d.at[at];
            }
            return hlo_ints_in(arena, (uint32_t)count, members);
        }
        return NULL;
    }
    const int64_t *listed = groups->mesh.devices.listed->v;
    for (uint32_t i = 0; i < groups->sizes->count; listed += groups->sizes->v[i++])
        for (int64_t k = 0; k < groups->sizes->v[i]; k++)
            if (listed[k] == device)
                return hlo_ints_in(arena, (uint32_t)groups->sizes->v[i], listed);
    return NULL;
}

static uint32_t first_of(uint32_t *of, uint32_t device) {
    while (of[device] != device) device = of[device] = of[of[device]];
    return device;
}

const hlo_device_groups *hlo_device_groups_of_pairs(hlo_arena *arena, const hlo_groups *pairs,
                                                    int64_t devices) {
    uint32_t *of;
    const int64_t *listed = pairs->mesh.devices.listed->v;
    hlo_device_groups *groups = all_listed(arena, pairs, devices, &of);
    if (!groups) return NULL;
    for (int64_t i = 0; i < pairs->count; i++)
        of[first_of(of, (uint32_t)listed[2 * i])] = first_of(of, (uint32_t)listed[2 * i + 1]);
    for (uint32_t i = 0; i < groups->count; i++) of[i] = first_of(of, i);
    return perhaps_whole(groups, devices);
}

/* ------------------------------------------------------------------------------------ shardings */

/* Groups the devices of `{mesh['a'=2,'b'=4], [{'a'}, {}]}`: an unused axis replicates. */
static const hlo_device_groups *sharding_of_mesh(hlo_arena *arena, const hlo_sharding *s,
                                                 hlo_handed asked) {
    array d;
    bool tiled[MAX_DIMS] = {0};
    if (!place(arena, &s->mesh.devices, &d) || hlo_sharding_has(s, HLO_SHARDING_UNREDUCED) ||
        (asked == HLO_HAVE && hlo_sharding_has(s, HLO_SHARDING_MANUAL)))
        return NULL;
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->dims[i]->count; k++) tiled[s->dims[i]->v[k].axis] = true;
    for (uint32_t i = 0; i < d.rank; i++)
        if (!tiled[i]) group_along(&d, i);
    return divide(arena, &d);
}

const hlo_device_groups *hlo_device_groups_of_sharding(hlo_arena *arena, const hlo_sharding *s,
                                                       hlo_handed asked) {
    switch (s->kind) {
    case HLO_SHARDING_REPLICATED: return &hlo_device_groups_whole;
    case HLO_SHARDING_MANUAL:
        return asked == HLO_GET && !s->mesh.names ? &hlo_device_groups_whole : NULL;
    case HLO_SHARDING_TILED: {
        array d;
        if (!place(arena, &s->mesh.devices, &d)) return NULL;
        for (uint32_t i = 0; s->kinds && i < s->kinds->count; i++) {
            bool manual = asked == HLO_GET && s->kinds->v[i] == HLO_SHARDING_MANUAL;
            if (manual || s->kinds->v[i] == HLO_SHARDING_REPLICATED)
                group_along(&d, d.rank - s->kinds->count + i);
        }
        return divide(arena, &d);
    }
    case HLO_SHARDING_NAMED: return sharding_of_mesh(arena, s, asked);
    default: return NULL;
    }
}

/* ---------------------------------------------------------------------------------------- tiles */

/* Counts the tiles along a dimension, and finds each device's tile: the run `s` of the array of
 * devices splits each existing tile into s.size tiles. */
static void tile_along(const array *d, stretch s, uint32_t rank, uint32_t dim, int64_t *counts,
                       int64_t *places) {
    counts[dim] *= s.size;
    for (int64_t place = 0; place < d->count; place++) {
        int64_t *at = &places[d->at[place] * rank + dim];
        *at = *at * s.size + place / s.step % s.size;
    }
}

/* Creates the tiling that has a single tile. */
static void start_tiles(hlo_arena *arena, uint32_t rank, int64_t devices, int64_t **counts,
                        int64_t **places) {
    *counts = hlo_arena_array(arena, rank, sizeof **counts);
    *places = hlo_arena_zero(arena, (size_t)devices * rank * sizeof **places);
    for (uint32_t i = 0; i < rank; i++) (*counts)[i] = 1;
}

/* Creates the tiles along axes of a mesh. `only`: the axes to use, which have the names that `mesh`
 * gives them; NULL: all. */
static bool tiles_of_mesh(hlo_arena *arena, const hlo_sharding *s, const hlo_mesh *mesh,
                          const hlo_axes *only, uint32_t rank, hlo_tiling *out) {
    array d;
    int64_t *counts, *places;
    if (!place(arena, &s->mesh.devices, &d) || s->count > rank ||
        hlo_sharding_has(s, HLO_SHARDING_UNREDUCED) || hlo_sharding_has(s, HLO_SHARDING_MANUAL))
        return false;
    start_tiles(arena, rank, d.count, &counts, &places);
    for (uint32_t i = 0; i < s->count; i++)
        for (uint32_t k = 0; k < s->dims[i]->count; k++) {
            bool wanted = !only;
            for (uint32_t j = 0; only && j < only->count; j++)
                wanted |= mesh->names[only->v[j].axis] == s->mesh.names[s->dims[i]->v[k].axis];
            if (!wanted) continue;
            d.grouped_count = 0;
            if (!group_part(&d, &s->dims[i]->v[k])) return false;
            tile_along(&d, d.grouped[0], rank, i, counts, places);
        }
    *out = (hlo_tiling){d.count, counts, places};
    return true;
}

bool hlo_tiling_of_sharding(hlo_arena *arena, const hlo_sharding *s, uint32_t rank,
                            hlo_tiling *out) {
    *out = (hlo_tiling){0};
    switch (s ? s->kind : HLO_SHARDING_REPLICATED) {
    case HLO_SHARDING_REPLICATED: return true;
    case HLO_SHARDING_TILED: {
        array d;
        int64_t *counts, *places;
        const uint32_t others = s->kinds ? s->kinds->count : 0;
        if (!place(arena, &s->mesh.devices, &d) || d.rank != rank + others) return false;
        for (uint32_t i = 0; i < others; i++)
            if (s->kinds->v[i] != HLO_SHARDING_REPLICATED) return false;
        start_tiles(arena, rank, d.count, &counts, &places);
        for (uint32_t i = 0; i < rank; i++)
            tile_along(&d, (stretch){dim_step(&d, i), d.dims[i]}, rank, i, counts, places);
        *out = (hlo_tiling){d.count, counts, places};
        return true;
    }
    case HLO_SHARDING_NAMED: return tiles_of_mesh(arena, s, NULL, NULL, rank, out);
    default: return false;
    }
}

/* --------------------------------------------------------------------------------------- Shardy */

/* Returns the text after the name in single quotes at `at`. */
static const char *past_name(const char *at) {
    for (at++; *at && *at != '\''; at++) at += *at == '\\' && at[1];
    return at + (*at != '\0');
}

/* Rewrites a Shardy sharding in HLO's notation: names in single quotes, no spaces outside them, no
 * priorities `}p1`. Returns NULL if a name contains a single quote. */
static const char *respelt(hlo_arena *arena, const char *text) {
    char *copy = hlo_arena_alloc(arena, strlen(text) + 1), *to = copy;
    bool quoted = false;
    for (; *text; text++) {
        if (*text == '\'') return NULL;
        if (*text == '"') quoted = !quoted;
        if (*text != ' ' || quoted) *to++ = *text == '"' ? '\'' : *text;
        if (*text == '}' && !quoted && text[1] == 'p') text += 1 + strspn(text + 2, "0123456789");
    }
    *to = '\0';
    return copy;
}

/* Skips to the comma after a list item, or to the closing bracket. */
static const char *past_item(const char *at) {
    int depth = 0;
    while (*at && (depth || !strchr(",>]})", *at))) {
        depth += (strchr("<[{(", *at) != NULL) - (strchr(">]})", *at) != NULL);
        at = *at == '\'' ? past_name(at) : at + 1;
    }
    return at;
}

/* Skips to the closing bracket of a list. */
static const char *past_list(const char *at) {
    while (*(at = past_item(at)) == ',') at++;
    return at;
}

/* Reads item `number` of `[<@mesh,[{'x'},{}]>,...]` as an HLO sharding. `dims`, unless NULL,
 * replaces the item's dimensions. Returns NULL if the item is malformed. */
static const hlo_sharding *read_shardy(hlo_arena *arena, hlo_module *module, const char *meshes,
                                       const char *shardings, uint32_t number, const char *dims) {
    const char *all = respelt(arena, meshes), *at = respelt(arena, shardings), *ids = "";
    if (!all || !at || !module->read || !hlo_value_take(&at, "#sdy.sharding_per_value<["))
        return NULL;
    for (; number; number--) {
        at = past_item(at);
        if (!hlo_value_take(&at, ",")) return NULL;
    }
    if (!hlo_value_take(&at, "<@")) return NULL;
    const char *name = at;
    at = *name == '\'' ? past_name(name) : name + strcspn(name, ",>");
    /* Find the mesh, `'x'=2,'y'=2],device_ids=[1,0]>` in `{mesh=#sdy.mesh<['x'=2...}`. */
    static const char mesh_is[] = "=#sdy.mesh<[";
    const size_t length = (size_t)(at - name);
    const char *mesh = NULL;
    for (const char *m = all; !mesh && (hlo_value_take(&m, "{") || hlo_value_take(&m, ","));)
        if (!strncmp(m, name, length) && !strncmp(m + length, mesh_is, sizeof mesh_is - 1))
            mesh = m + length + sizeof mesh_is - 1;
        else
            m = past_item(m);
    if (!mesh || !hlo_value_take(&at, ",")) return NULL;
    const char *axes = past_list(mesh), *rest = past_list(at), *end = axes + 1;
    if (*axes != ']' || *rest != '>') return NULL;
    if (axes > mesh && hlo_value_take(&end, ",device_ids=[")) {
        ids = hlo_arena_format(arena, ",device_ids=(%.*s)", (int)strcspn(end, "]"), end);
        end += strcspn(end, "]") + 1;
    }
    if (*end != '>') return NULL;
    if (!dims) dims = hlo_arena_format(arena, "%.*s", (int)(rest - at), at);
    const char *text =
        hlo_arena_format(arena, "{mesh[%.*s]%s,%s}", (int)(axes - mesh), mesh, ids, dims);
    const hlo_attr *read = module->read(module, HLO_ATTR_SHARDING, hlo_intern_string(module, text));
    return read && read->u.sharding->mesh.names ? read->u.sharding : NULL;
}

/* Reads manual axes as the sharding of one dimension. The mesh is the first one that `shardings`
 * names. */
static const hlo_sharding *read_axes(hlo_arena *arena, hlo_module *module, const char *meshes,
                                     const char *shardings, const char *axes) {
    const char *at = respelt(arena, axes);
    if (!at || !hlo_value_take(&at, "#sdy<manual_axes{")) return NULL;
    const char *dims = hlo_arena_format(arena, "[{%.*s}]", (int)strcspn(at, "}"), at);
    const hlo_sharding *s = read_shardy(arena, module, meshes, shardings, 0, dims);
    return s && s->count == 1 ? s : NULL;
}

bool hlo_device_groups_refine(const hlo_device_groups *a, const hlo_device_groups *b) {
    if (a == b || !b->count) return true;
    if (!a->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t with = a->of[i];
        if (with == i) continue;
        if (i >= b->count || with >= b->count || b->of[i] != b->of[with]) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------- manual regions */

bool hlo_manual_enters(const hlo_instruction *instr) {
    return hlo_is_custom_call(instr, "xla.sdy.GlobalToLocalShape") ||
           hlo_is_custom_call(instr, "SPMDFullToShardShape");
}

bool hlo_manual_leaves(const hlo_instruction *instr) {
    return hlo_is_custom_call(instr, "xla.sdy.LocalToGlobalShape") ||
           hlo_is_custom_call(instr, "SPMDShardToFullShape");
}

bool hlo_boundary_spmd(const hlo_computation *entry) {
    static const char ending[] = "_spmd";
    size_t length = strlen(entry->name), size = sizeof ending - 1;
    return length >= size && !strcmp(entry->name + length - size, ending);
}

/* ---------------------------------------------------------------------------------------- parts */

static const char *frontend_value(hlo_arena *arena, const hlo_instruction *instr,
                                  const char *name) {
    const char *entries = hlo_instr_str(instr, HLO_ATTR_FRONTEND_ATTRIBUTES);
    return entries ? hlo_value_entry(arena, entries, name) : NULL;
}

static const char *meshes_of(hlo_arena *arena, const hlo_module *module) {
    const hlo_attr *entries =
        hlo_attrs_find(module->attrs, module->attr_count, HLO_ATTR_FRONTEND_ATTRIBUTES);
    return entries ? hlo_value_entry(arena, entries->u.str, "xla.sdy.meshes") : NULL;
}

/* The shardings of a value that crosses the boundary of a manual region. */
typedef struct crossing {
    const hlo_sharding *outside; /* of the value outside the region; NULL: unknown */
    const hlo_mesh *mesh;        /* has the axes `manual`; NULL: unknown */
    const hlo_axes *manual;      /* the axes along which the region divides the devices */
} crossing;

static const hlo_sharding *element_sharding(const hlo_instruction *instr, int64_t index) {
    const hlo_sharding *s = hlo_instr_sharding(instr);
    if (!s || s->kind != HLO_SHARDING_TUPLE) return s;
    return index < s->count ? s->v[index] : NULL;
}

/* Returns the axes that are manual in a sharding with a mesh. */
static const hlo_axes *manual_axes(hlo_arena *arena, const hlo_sharding *s) {
    for (size_t i = 0; i < HLO_SHARDING_SETS; i++)
        if (hlo_sharding_sets[i] == HLO_SHARDING_MANUAL && s->sets[i]) return s->sets[i];
    const hlo_ints *dims = s->mesh.devices.dims;
    hlo_axes *axes = hlo_arena_zero(arena, sizeof *axes + dims->count * sizeof *axes->v);
    if (s->kind == HLO_SHARDING_MANUAL) axes->count = dims->count;
    for (uint32_t i = 0; i < axes->count; i++) axes->v[i] = (hlo_axis){i, 1, dims->v[i]};
    return axes;
}

/* Finds the shardings of value `index`. Shardy writes them as frontend attributes of the boundary,
 * or as the shardings of the operand and of the result. */
static crossing crossing_of(hlo_arena *arena, const hlo_instruction *boundary, uint32_t index) {
    const bool enters = hlo_manual_enters(boundary);
    const char *shardings =
        frontend_value(arena, boundary, enters ? "xla.sdy.in_shardings" : "xla.sdy.out_shardings");
    const char *axes = frontend_value(arena, boundary, "xla.sdy.manual_axes");
    hlo_module *module = boundary->parent->module;
    if (shardings) {
        const char *meshes = meshes_of(arena, module);
        if (!meshes) return (crossing){0};
        const hlo_sharding *manual =
            axes ? read_axes(arena, module, meshes, shardings, axes) : NULL;
        return (crossing){read_shardy(arena, module, meshes, shardings, index, NULL),
                          manual ? &manual->mesh : NULL, manual ? manual->dims[0] : NULL};
    }
    const hlo_instruction *from = hlo_instr_operand(boundary, index);
    const hlo_sharding *result = element_sharding(boundary, index),
                       *operand = hlo_instr_sharding(from);
    if (!operand && from->op == HLO_OP_GET_TUPLE_ELEMENT)
        operand =
            element_sharding(hlo_instr_operand(from, 0), hlo_instr_int(from, HLO_ATTR_INDEX, 0));
    const hlo_sharding *inside = enters ? result : operand;
    const bool named = inside && inside->mesh.names;
    return (crossing){enters ? operand : result, named ? &inside->mesh : NULL,
                      named ? manual_axes(arena, inside) : NULL};
}

const hlo_device_groups *hlo_manual_parts(hlo_arena *arena, const hlo_instruction *enters,
                                          uint32_t index) {
    const hlo_sharding *s = crossing_of(arena, enters, index).outside;
    if (s && s->mesh.names && !s->mesh.devices.dims->count) return &hlo_device_groups_whole;
    if (s) return hlo_device_groups_of_sharding(arena, s, HLO_GET);
    if (frontend_value(arena, enters, "xla.sdy.in_shardings")) return NULL;
    /* If the shape is unchanged although a part would be smaller, each device has the whole
     * operand. A dimension of one element proves nothing, because a single device may have that
     * element. */
    const hlo_shape *all = hlo_instr_operand(enters, index)->shape, *part = enters->shape;
    if (part->type == HLO_TYPE_TUPLE) part = index < part->rank ? part->elements[index] : part;
    if (!hlo_shape_is_array(all) || !hlo_shape_compatible(all, part)) return NULL;
    for (uint32_t i = 0; i < all->rank; i++)
        if (all->dims[i] < 2) return NULL;
    return &hlo_device_groups_whole;
}

const hlo_device_groups *hlo_manual_joined(hlo_arena *arena, const hlo_instruction *leaves) {
    const crossing c = crossing_of(arena, leaves, 0);
    return c.mesh ? groups_along(arena, c.mesh, c.manual) : NULL;
}

bool hlo_manual_tiling(hlo_arena *arena, const hlo_instruction *boundary, uint32_t index,
                       hlo_tiling *out) {
    const crossing c = crossing_of(arena, boundary, index);
    const uint32_t rank = hlo_instr_operand(boundary, index)->shape->rank;
    *out = (hlo_tiling){0};
    if (hlo_is_custom_call(boundary, "SPMDFullToShardShape") ||
        hlo_is_custom_call(boundary, "SPMDShardToFullShape"))
        return c.outside && hlo_tiling_of_sharding(arena, c.outside, rank, out);
    if (!c.outside || !c.outside->mesh.names) return false;
    if (!c.outside->mesh.devices.dims->count) return true;
    return c.mesh && tiles_of_mesh(arena, c.outside, c.mesh, c.manual, rank, out);
}

bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instruction **out_marked) {
    const hlo_instruction *marked = NULL;
    bool collective = false, manual = false;
    *out_marked = NULL;
    if (!module->attrs_seen[HLO_ATTR_SHARDING]) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            const hlo_sharding *sharding = hlo_instr_sharding(i);
            collective |= hlo_op_is(i->op, HLO_COLLECTIVE);
            manual |= hlo_manual_enters(i);
            if (!marked && sharding && hlo_sharding_has(sharding, HLO_SHARDING_TILED)) marked = i;
        }
    *out_marked = marked;
    return marked && !hlo_boundary_spmd(module->entry) && (manual || !collective);
}
