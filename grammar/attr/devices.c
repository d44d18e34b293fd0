/* SPDX-License-Identifier: Apache-2.0 */
/* Reads values that name devices: iotas, tilings, meshes, groups, shardings, and the domains
 * between two shardings. Brings them to canonical form. */
#include "grammar/attr/devices.h"

#include <stdlib.h>
#include <string.h>

#include "ir/intern.h"
#include "ir/text/printer.h"
#include "ir/text/suggest.h"

/* ---------------------------------------------- devices by number: iotas, and tilings over them */

enum { LARGEST_LIST = 1 << 20 };

enum { KINDS = HLO_SHARDING_REPLICATED + 1 };

/* Removes the marked dimensions, whose sizes are 1 or were multiplied into dimensions before them.
 * `number` is scratch memory with an element for each dimension. */
static void drop_dims(hlo_iota *a, const bool *dropped, int64_t *number) {
    size_t rank = 0, to = 0;
    for (size_t d = 0; d < a->rank; d++) {
        number[d] = (int64_t)rank;
        if (!dropped[d]) a->dims[rank++] = a->dims[d];
    }
    for (size_t i = 0; i < a->rank; i++)
        if (!dropped[a->perm[i]]) a->perm[to++] = number[a->perm[i]];
    a->rank = rank;
}

static void normalize_iota(hlo_notation *f, hlo_iota *a) {
    bool *dropped = hlo_arena_zero(f->scratch, a->rank);
    int64_t *number = hlo_arena_array(f->scratch, a->rank, sizeof *number), *run = NULL, merged;
    size_t left = a->rank;
    for (size_t d = 0; d < a->rank; d++) {
        dropped[d] = a->dims[d] == 1 && left > 1;
        left -= dropped[d];
    }
    drop_dims(a, dropped, number);
    for (size_t i = 0; i < a->rank; i++) {
        int64_t *size = &a->dims[a->perm[i]];
        const bool merges =
            i && a->perm[i] == a->perm[i - 1] + 1 && !__builtin_mul_overflow(*run, *size, &merged);
        dropped[a->perm[i]] = merges;
        run = merges ? run : size;
        *run = merges ? merged : *size;
    }
    drop_dims(a, dropped, number);
}

bool hlo_iota_make(hlo_notation *f, const char *from, const hlo_notation_ints *dims,
                   hlo_notation_ints *perm, hlo_iota *out) {
    if (dims->count == 1 && !perm->count) hlo_notation_add(f, perm, 0);
    bool permutation = dims->count && perm->count == dims->count;
    bool *seen = hlo_arena_zero(f->scratch, dims->count);
    for (size_t i = 0; permutation && i < perm->count; i++) {
        const int64_t d = perm->v[i];
        permutation = d >= 0 && (size_t)d < perm->count && !seen[d];
        if (permutation) seen[d] = true;
    }
    if (!permutation)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "expected a permutation of %zu dimensions", dims->count);
    *out = (hlo_iota){.dims = dims->v, .perm = perm->v, .rank = dims->count};
    for (size_t i = 0; i < dims->count; i++)
        if (dims->v[i] < 1) return true;
    normalize_iota(f, out);
    return true;
}

/* Reads `[2,2]T(1,0)`, or `[4]`. */
static bool read_iota(hlo_notation *f, hlo_iota *out) {
    hlo_notation_ints dims, perm;
    if (!hlo_notation_expect(f, "[") || !hlo_notation_int_list(f, "]", 1, &dims)) return false;
    if (dims.count == 1) return hlo_iota_make(f, f->at, &dims, &(hlo_notation_ints){0}, out);
    if (!hlo_notation_expect(f, "T") || !hlo_notation_expect(f, "(")) return false;
    const char *from = f->at - 1;
    return hlo_notation_int_list(f, ")", 1, &perm) && hlo_iota_make(f, from, &dims, &perm, out);
}

void hlo_iota_keep(hlo_notation *f, const hlo_iota *a, hlo_device_array *out) {
    out->iota = hlo_ints_new(f->module, (uint32_t)a->rank, a->dims);
    out->order = a->rank > 1 ? hlo_ints_new(f->module, (uint32_t)a->rank, a->perm) : NULL;
}

/* A piece of one dimension of an iota whose dimensions are being reordered. */
typedef struct factor {
    int64_t dim, part, size; /* part: index among the pieces of one dimension, outermost first */
    size_t tile;             /* the dimension of the tiling that contains this piece */
} factor;

static int by_source(const void *a, const void *b) {
    const factor *x = a, *y = b;
    return x->dim != y->dim ? (x->dim > y->dim) - (x->dim < y->dim)
                            : (x->part > y->part) - (x->part < y->part);
}

/* Splits the iota so that each dimension of the tiling consists of whole pieces. Returns 0 if the
 * iota's dimensions do not divide into such pieces. */
static size_t cut(const hlo_iota *a, const int64_t *tiles, size_t rank, factor *out,
                  size_t capacity) {
    size_t count = 0, tile = 0;
    int64_t wanted = rank ? tiles[0] : 1;
    for (size_t i = 0; i < a->rank; i++) {
        int64_t left = a->dims[a->perm[i]], part = 0;
        while (left > 1) {
            while (wanted == 1 && ++tile < rank) wanted = tiles[tile];
            if (tile == rank || count == capacity) return 0;
            int64_t size = left < wanted ? left : wanted;
            if (left % size || wanted % size) return 0;
            out[count++] = (factor){a->perm[i], part++, size, tile};
            left /= size;
            wanted /= size;
        }
    }
    return count;
}

/* Merges the pieces, in order, into an iota. */
static hlo_iota join(hlo_notation *f, const factor *factors, size_t count) {
    hlo_iota a = {.rank = count ? count : 1};
    factor *sorted = hlo_arena_array(f->scratch, a.rank, sizeof *sorted);
    a.dims = hlo_arena_array(f->scratch, a.rank, sizeof *a.dims);
    a.perm = hlo_arena_zero(f->scratch, a.rank * sizeof *a.perm);
    a.dims[0] = 1;
    memcpy(sorted, factors, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_source);
    for (size_t i = 0; i < count; i++) {
        a.dims[i] = sorted[i].size;
        for (size_t k = 0; k < count; k++)
            if (by_source(&sorted[k], &factors[i]) == 0) a.perm[i] = (int64_t)k;
    }
    normalize_iota(f, &a);
    return a;
}

static void list_iota(hlo_notation *f, const hlo_iota *a, int64_t count, hlo_notation_ints *out) {
    int64_t *stride = hlo_arena_array(f->scratch, a->rank, sizeof *stride), step = 1;
    int64_t *at = hlo_arena_zero(f->scratch, a->rank * sizeof *at);
    int64_t *order = hlo_arena_array(f->scratch, a->rank, sizeof *order); /* dims of size > 1 */
    size_t rank = 0;
    for (size_t d = a->rank; d-- > 0;) {
        stride[d] = step;
        step *= a->dims[d];
    }
    for (size_t k = 0; k < a->rank; k++)
        if (a->dims[a->perm[k]] != 1) order[rank++] = a->perm[k];
    *out = (hlo_notation_ints){.v = hlo_arena_array(f->scratch, (size_t)count, sizeof *out->v),
                               .count = (size_t)count};
    for (size_t i = 0; i < out->count; i++) {
        out->v[i] = 0;
        for (size_t k = 0; k < rank; k++) out->v[i] += at[k] * stride[order[k]];
        for (size_t k = rank; k-- > 0;) {
            if (++at[k] < a->dims[order[k]]) break;
            at[k] = 0;
        }
    }
}

/* Puts the dimensions in `order`. Sorts the devices by number along the last `sort` dimensions,
 * which only replicate. */
static void reorder(hlo_notation *f, hlo_tiling *t, const size_t *order, size_t sort) {
    size_t rank = t->dims.count;
    int64_t all = hlo_dims_product(t->dims.v, rank), last = hlo_dims_product(t->dims.v, 0);
    if (t->iota.rank) {
        enum { ROOM = 256 };
        factor cuts[ROOM], ordered[ROOM];
        size_t count = cut(&t->iota, t->dims.v, rank, cuts, ROOM), done = 0, sorted = 0;
        for (size_t i = 0; i < rank; i++) {
            if (i == rank - sort) sorted = done;
            for (size_t k = 0; k < count; k++)
                if (cuts[k].tile == order[i]) ordered[done++] = cuts[k];
        }
        if (sort) qsort(ordered + sorted, done - sorted, sizeof *ordered, by_source);
        if (count || all == 1) {
            t->iota = join(f, ordered, done);
        } else if (all <= LARGEST_LIST) {
            list_iota(f, &t->iota, all, &t->devices);
            t->iota.rank = 0;
        } else {
            return;
        }
    }
    if (!t->iota.rank) {
        hlo_iota whole = {.rank = rank,
                          .dims = hlo_arena_copy(f->scratch, t->dims.v, rank * sizeof(int64_t)),
                          .perm = hlo_arena_array(f->scratch, rank, sizeof(int64_t))};
        for (size_t i = 0; i < rank; i++) whole.perm[i] = (int64_t)order[i];
        hlo_notation_ints places;
        list_iota(f, &whole, (int64_t)t->devices.count, &places);
        for (size_t i = 0; i < places.count; i++) places.v[i] = t->devices.v[places.v[i]];
        t->devices = places;
        for (size_t i = rank - sort; i < rank; i++) last *= t->dims.v[order[i]];
        for (size_t i = 0; sort && i < t->devices.count; i += (size_t)last)
            qsort(t->devices.v + i, (size_t)last, sizeof(int64_t), hlo_compare_ints);
    }
    int64_t *dims = hlo_arena_array(f->scratch, rank, sizeof *dims);
    for (size_t i = 0; i < rank; i++) dims[i] = t->dims.v[order[i]];
    t->dims.v = dims;
}

/* Brings the tiling to canonical form: sorts the dimensions after the data dimensions by kind,
 * merges those of one kind, and drops those of size 1. If a sharding of another kind is equivalent
 * to the whole tiling, returns that kind, otherwise HLO_SHARDING_TILED. */
static hlo_sharding_kind normalize_tiling(hlo_notation *f, hlo_tiling *t) {
    size_t rank = t->dims.count, data = rank - t->kind_count, kept = data;
    bool alike = true;
    for (size_t i = 1; i < t->kind_count; i++) alike &= t->kinds[i] == t->kinds[0];
    int64_t tiled = hlo_dims_product(t->dims.v, data);
    if (!t->kind_count) return HLO_SHARDING_TILED;
    if (alike && tiled == 1 && t->kinds[0] != HLO_SHARDING_MAXIMAL)
        return (hlo_sharding_kind)t->kinds[0];
    size_t *order = hlo_arena_array(f->scratch, rank, sizeof *order), done = 0, replicated = 0;
    for (size_t i = 0; i < data; i++) order[done++] = i;
    int64_t found[KINDS], sizes[KINDS];
    size_t count = 0;
    for (int64_t kind = 0; kind < KINDS; kind++) {
        int64_t size = 1;
        for (size_t i = 0; i < t->kind_count; i++)
            if (t->kinds[i] == kind) {
                order[done++] = data + i;
                size *= t->dims.v[data + i];
                replicated += kind == HLO_SHARDING_REPLICATED;
            }
        if (size == 1) continue;
        found[count] = kind;
        sizes[count++] = size;
    }
    if (!data && !count) return HLO_SHARDING_TILED; /* the parser rejects `devices=[]` */
    bool sort = count && found[count - 1] == HLO_SHARDING_REPLICATED;
    reorder(f, t, order, sort ? replicated : 0);
    memcpy(t->kinds, found, count * sizeof *found);
    for (size_t i = 0; i < count; i++) t->dims.v[kept++] = sizes[i];
    t->dims.count = kept;
    t->kind_count = count;
    return sort && count == 1 && tiled == 1 ? HLO_SHARDING_REPLICATED : HLO_SHARDING_TILED;
}

/* Reads `[2,2]<=[4]` or, if `listed`, also `[2,2]0,1,2,3`. */
static bool read_tiling(hlo_notation *f, bool listed, hlo_tiling *t) {
    if (!hlo_notation_expect(f, "[") || !hlo_notation_int_list(f, "]", 1, &t->dims)) return false;
    t->iota.rank = 0;
    t->devices.count = 0;
    if (hlo_notation_take(f, "<=")) return read_iota(f, &t->iota);
    if (!listed) return hlo_notation_unexpected(f, "'<='");
    return hlo_notation_int_list(f, "", 1, &t->devices);
}

hlo_device_array hlo_tiling_keep(hlo_notation *f, const hlo_tiling *t) {
    hlo_device_array d = {.dims = hlo_notation_keep(f, &t->dims)};
    if (t->iota.rank)
        hlo_iota_keep(f, &t->iota, &d);
    else
        d.listed = hlo_notation_keep(f, &t->devices);
    return d;
}

/* ---------------------------------------------------------------- devices by the axes of a mesh */

static bool axis_name(hlo_notation *f, const char **out) {
    const char *name;
    size_t size;
    if (!hlo_notation_string(f, &name, &size)) return false;
    *out = hlo_intern(f->module, name, size);
    return true;
}

bool hlo_mesh_list(hlo_notation *f, const char *from, const hlo_notation_ints *ids, hlo_mesh *m) {
    int64_t all = 1;
    for (uint32_t i = 0; i < m->devices.dims->count; i++)
        if (__builtin_mul_overflow(all, m->devices.dims->v[i], &all)) all = -1;
    if (all != (int64_t)ids->count)
        return hlo_notation_fail(f, from, 1, "the mesh has %lld devices, but %zu are listed",
                                 (long long)all, ids->count);
    /* A mesh that lists no device ids has the ids 0, 1, 2, ... */
    for (size_t i = 0; i < ids->count && !m->devices.listed; i++)
        if (ids->v[i] != (int64_t)i) m->devices.listed = hlo_notation_keep(f, ids);
    return true;
}

bool hlo_mesh_add(hlo_notation *f, const char *from, hlo_mesh_axes *to, const char *name,
                  int64_t size) {
    if (to->sizes.count == HLO_MAX_MESH_AXES)
        return hlo_notation_fail(f, from, 1, "a mesh has at most %d axes", HLO_MAX_MESH_AXES);
    for (size_t i = 0; i < to->sizes.count; i++)
        if (name == to->names[i])
            return hlo_notation_fail(f, from, hlo_intern_length(name) + 2,
                                     "the mesh repeats axis '%s'", name);
    to->names[to->sizes.count] = name;
    hlo_notation_add(f, &to->sizes, size);
    return true;
}

void hlo_mesh_keep(hlo_notation *f, const hlo_mesh_axes *axes, hlo_mesh *out) {
    /* Allocate an array for a mesh without axes, too: `names` is NULL if there is no mesh. */
    const size_t count = axes->sizes.count;
    out->names = hlo_arena_array(f->module->arena, count + 1, sizeof *out->names);
    memcpy(out->names, axes->names, count * sizeof *out->names);
    out->devices = (hlo_device_array){.dims = hlo_notation_keep(f, &axes->sizes)};
}

/* Reads `['a'=2,'b'=4]` after `mesh`, and the device ids. */
static bool read_mesh(hlo_notation *f, hlo_mesh *out) {
    hlo_mesh_axes axes = {.sizes.count = 0};
    if (!hlo_notation_expect(f, "[")) return false;
    while (hlo_notation_item(f, ']', axes.sizes.count)) {
        int64_t size;
        const char *name;
        hlo_notation_skip(f);
        const char *from = f->at;
        if (!axis_name(f, &name) || !hlo_notation_expect(f, "=") || !hlo_notation_int(f, &size) ||
            !hlo_mesh_add(f, from, &axes, name, size))
            return false;
    }
    hlo_mesh_keep(f, &axes, out);
    if (!hlo_notation_expect(f, "]")) return false;
    /* Reads `, device_ids=(1,0)`. The mesh may also end with a comma. */
    if (!hlo_notation_take(f, ",") || !hlo_notation_take_name(f, "device_ids")) return true;
    if (!hlo_notation_expect(f, "(")) return false;
    if (hlo_notation_next(f, '[')) {
        hlo_iota order;
        if (!read_iota(f, &order)) return false;
        if (order.rank > 1) hlo_iota_keep(f, &order, &out->devices);
        return hlo_notation_expect(f, ")");
    }
    const char *from = f->at;
    hlo_notation_ints ids;
    return hlo_notation_int_list(f, ")", 1, &ids) && hlo_mesh_list(f, from, &ids, out);
}

bool hlo_mesh_use(hlo_notation *f, const char *from, const hlo_mesh *m, hlo_axis a, bool part,
                  const hlo_axis *last, bool sorted, hlo_axis_ref **refs) {
    const int64_t whole = m->devices.dims->v[a.axis];
    const char *name = m->names[a.axis];
    const size_t length = (size_t)(f->at - from);
    int64_t up;
    if (!part)
        a = (hlo_axis){a.axis, 1, whole};
    else if (a.before < 1 || a.size < 2 || a.size >= whole ||
             __builtin_mul_overflow(a.before, a.size, &up) || whole % up)
        return hlo_notation_fail(f, from, length,
                                 "(%lld)%lld is not a sub-axis of an axis of %lld devices",
                                 (long long)a.before, (long long)a.size, (long long)whole);
    for (const hlo_axis_ref *r = *refs; r; r = r->next)
        if (r->at.axis == a.axis && a.before < r->at.before * r->at.size &&
            r->at.before < a.before * a.size)
            return hlo_notation_fail(f, from, length, "axis '%s' is used twice", name);
    if (last && last->axis == a.axis && last->before * last->size == a.before)
        return hlo_notation_fail(f, from, length, "merge this with the preceding sub-axis of '%s'",
                                 name);
    if (sorted && last &&
        (last->axis > a.axis || (last->axis == a.axis && last->before > a.before)))
        return hlo_notation_fail(f, from, length, "the axes are not in the order of the mesh");
    hlo_axis_ref *ref = hlo_arena_alloc(f->scratch, sizeof *ref);
    *ref = (hlo_axis_ref){a, *refs};
    *refs = ref;
    return true;
}

const hlo_axes *hlo_mesh_keep_axes(hlo_notation *f, const hlo_axis_ref *refs, size_t count,
                                   bool open) {
    hlo_axes *axes = hlo_arena_alloc(f->module->arena, sizeof *axes + count * sizeof *axes->v);
    axes->count = (uint32_t)count;
    axes->open = open;
    for (; count; refs = refs->next) axes->v[--count] = refs->at;
    return axes;
}

/* Reads axes up to the closing brace and adds them to *refs. No two references may overlap. `open`:
 * the list may end with `?`. `sorted`: the axes must be in the order of the mesh. */
static bool read_axes(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref **refs, bool open,
                      bool sorted, const hlo_axes **out) {
    size_t count = 0;
    bool unknown = false;
    if (!hlo_notation_expect(f, "{")) return false;
    for (; hlo_notation_item(f, '}', count); count++) {
        if (open && (unknown = hlo_notation_take(f, "?"))) break;
        const char *name;
        hlo_axis a = {0};
        hlo_notation_skip(f);
        const char *from = f->at;
        if (!axis_name(f, &name)) return false;
        while (a.axis < m->devices.dims->count && name != m->names[a.axis]) a.axis++;
        if (a.axis == m->devices.dims->count) {
            hlo_suggestion s = hlo_suggest(name);
            for (a.axis = 0; a.axis < m->devices.dims->count; a.axis++)
                hlo_suggest_offer(&s, m->names[a.axis]);
            return hlo_notation_fail(f, from, (size_t)(f->at - from), "the mesh has no axis '%s'%s",
                                     name, hlo_suggest_meant(&s));
        }
        const bool part = hlo_notation_take(f, ":");
        if (part && (!hlo_notation_expect(f, "(") || !hlo_notation_int(f, &a.before) ||
                     !hlo_notation_expect(f, ")") || !hlo_notation_int(f, &a.size)))
            return false;
        const hlo_axis *last = count ? &(*refs)->at : NULL;
        if (!hlo_mesh_use(f, from, m, a, part, last, sorted, refs)) return false;
    }
    *out = hlo_mesh_keep_axes(f, *refs, count, unknown);
    return hlo_notation_expect_end(f, "}");
}

/* --------------------------------------------------------- replica groups, and pairs of devices */

bool hlo_groups_keep(hlo_notation *f, const char *from, hlo_groups groups) {
    int64_t devices = 1;
    for (uint32_t i = 0; groups.axes && i < groups.axes->count; i++)
        if (__builtin_mul_overflow(devices, groups.axes->v[i].size, &devices)) devices = INT64_MAX;
    if (groups.axes && devices <= 1)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "a group has %lld device%s, expected several", (long long)devices,
                                 devices == 1 ? "" : "s");
    if (!groups.sizes && !groups.axes) {
        hlo_axes *axes = hlo_arena_zero(f->module->arena, sizeof *axes + sizeof *axes->v);
        axes->count = 1;
        axes->v[0] = (hlo_axis){.axis = 1, .before = 1, .size = groups.mesh.devices.dims->v[1]};
        groups.axes = axes;
    }
    hlo_groups_measure(&groups, f->scratch);
    groups.parsed.text = hlo_print_interned(f->module, hlo_put_groups, &groups);
    return hlo_notation_made(f, f->value.id, &groups.parsed, sizeof groups);
}

/* Reads `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2,'b'=2] {'a'}`. */
bool hlo_notation_groups(hlo_notation *f) {
    const bool pair = f->value.id == HLO_ATTR_SOURCE_TARGET_PAIRS;
    if (pair || hlo_notation_next(f, '{')) {
        hlo_notation_ints all = {0}, sizes = {0};
        if (!hlo_notation_expect(f, "{")) return false;
        bool more = !hlo_notation_next(f, '}');
        while (more) {
            const size_t before = all.count;
            if (!hlo_notation_expect(f, "{")) return false;
            const char *from = f->at - 1;
            if (!hlo_notation_more_ints(f, "}", 0, &all)) return false;
            const size_t size = all.count - before;
            if (pair && size != 2)
                return hlo_notation_fail(f, from, 1, "expected a pair, found %zu number%s", size,
                                         size == 1 ? "" : "s");
            hlo_notation_add(f, &sizes, (int64_t)size);
            more = hlo_notation_take(f, ",");
        }
        return hlo_notation_expect_end(f, "}") &&
               hlo_groups_keep(f, f->at,
                               (hlo_groups){.sizes = hlo_notation_keep(f, &sizes),
                                            .mesh.devices.listed = hlo_notation_keep(f, &all)});
    }
    if (hlo_notation_take_word(f, "mesh")) {
        hlo_groups groups = {0};
        hlo_axis_ref *refs = NULL;
        if (!read_mesh(f, &groups.mesh)) return false;
        hlo_notation_skip(f);
        const char *from = f->at;
        return read_axes(f, &groups.mesh, &refs, false, false, &groups.axes) &&
               hlo_groups_keep(f, from, groups);
    }
    hlo_tiling t = {0};
    if (!hlo_notation_next(f, '[')) return hlo_notation_unexpected(f, "'{', '[' or 'mesh['");
    const char *from = f->at;
    if (!read_tiling(f, false, &t)) return false;
    if (t.dims.count != 2)
        return hlo_notation_fail(
            f, from, 1, "expected two dimensions, groups and devices, found %zu", t.dims.count);
    return hlo_groups_keep(f, from, (hlo_groups){.mesh.devices = hlo_tiling_keep(f, &t)});
}

/* ------------------------------------------------------------------------------------ shardings */

bool hlo_sharding_keep(hlo_notation *f, hlo_attr_id id, hlo_sharding s) {
    s.parsed.text = hlo_print_interned(f->module, hlo_put_sharding, &s);
    return hlo_notation_made(f, id, &s.parsed, sizeof s);
}

bool hlo_sharding_read_metadata(hlo_notation *f, bool list, hlo_sharding *s) {
    hlo_bytes outer = f->out;
    f->out = (hlo_bytes){.arena = f->scratch};
    const bool read = hlo_notation_metadata(f, list);
    if (read) s->metadata = hlo_intern(f->module, f->out.v, f->out.size);
    f->out = outer;
    return read;
}

/* ---------------------------------------------------------------------------------- with a mesh */

/* Reads metadata and, if `axes` is true, the sets of axes. Each may occur once, in any order. */
static bool read_sets(hlo_notation *f, hlo_sharding *s, hlo_axis_ref *refs, bool axes) {
    bool given[HLO_SHARDING_SETS + 1] = {false};
    while (hlo_notation_take(f, ",")) {
        size_t n = axes ? 0 : HLO_SHARDING_SETS;
        hlo_notation_skip(f);
        const char *from = f->at, *name = "metadata";
        for (; n < HLO_SHARDING_SETS; n++)
            if (hlo_notation_take_name(f, name = hlo_sharding_words[hlo_sharding_sets[n]])) break;
        if (n == HLO_SHARDING_SETS && !hlo_notation_take_name(f, name = "metadata"))
            return hlo_notation_unexpected(f, !axes ? "'metadata='"
                                                    : "'replicated=', 'unreduced=', 'manual=' or "
                                                      "'metadata='");
        if (given[n]) return hlo_notation_fail(f, from, strlen(name), "'%s' is repeated", name);
        given[n] = true;
        if (n == HLO_SHARDING_SETS) {
            if (!hlo_sharding_read_metadata(f, true, s)) return false;
            continue;
        }
        if (hlo_sharding_sets[n] == HLO_SHARDING_UNREDUCED) {
            /* The word before the axes, as in `max{'a'}`, says how to combine partial results.
             * jaxlib 0.10 does not read it yet. */
            static const char *const words[] = {"max", "min", "sum"};
            for (size_t i = 0; i < sizeof words / sizeof *words; i++)
                if (hlo_notation_take_word(f, words[i]) && strcmp(words[i], "sum") != 0)
                    s->reduction = words[i];
        }
        if (!read_axes(f, &s->mesh, &refs, false, true, &s->sets[n])) return false;
        if (!s->sets[n]->count) s->sets[n] = NULL;
    }
    return hlo_notation_expect_end(f, "}");
}

void hlo_sharding_drop_sets(hlo_sharding *s) {
    size_t used = 0, last = 0;
    for (size_t n = 0; n < HLO_SHARDING_SETS; n++)
        if (s->sets[n]) used++, last = n;
    if (used > 1) return;
    const hlo_sharding_kind kind = hlo_sharding_sets[last];
    const hlo_axes *axes = s->sets[last];
    const hlo_ints *sizes = s->mesh.devices.dims;
    if (used && (kind == HLO_SHARDING_REPLICATED || !axes->count || axes->count != sizes->count ||
                 (kind == HLO_SHARDING_UNREDUCED && s->reduction)))
        return;
    for (uint32_t i = 0; used && i < axes->count; i++)
        if (axes->v[i].size != sizes->v[axes->v[i].axis]) return;
    s->kind = kind;
    s->sets[last] = NULL;
}

/* Reads the dimensions and sets of a sharding after `mesh`. */
static bool read_named(hlo_notation *f, hlo_sharding *s) {
    hlo_axis_ref *refs = NULL;
    s->kind = HLO_SHARDING_NAMED;
    if (!read_mesh(f, &s->mesh)) return false;
    hlo_notation_take(f, ",");
    for (size_t n = 0; n < HLO_SHARDING_SETS; n++) {
        const char *word = hlo_sharding_words[hlo_sharding_sets[n]];
        if (!hlo_notation_take_word(f, word)) continue;
        s->kind = hlo_sharding_sets[n];
        if (!s->mesh.devices.dims->count && s->kind != HLO_SHARDING_REPLICATED)
            return hlo_notation_fail(f, f->at - strlen(word), strlen(word),
                                     "'%s' requires a mesh with axes", word);
        return read_sets(f, s, NULL, false);
    }
    if (!hlo_notation_next(f, '['))
        return hlo_notation_unexpected(f, "'[', 'replicated', 'unreduced' or 'manual'");
    hlo_notation_expect(f, "[");
    if (!hlo_notation_take(f, "]")) {
        while (hlo_notation_item(f, ']', s->count)) {
            s->dims = hlo_notation_grow(f, s->dims, s->count, sizeof *s->dims);
            if (!read_axes(f, &s->mesh, &refs, true, false, &s->dims[s->count++])) return false;
        }
        s->dims = hlo_arena_copy(f->module->arena, s->dims, s->count * sizeof *s->dims);
        return hlo_notation_expect(f, "]") && read_sets(f, s, refs, true);
    }
    if (!read_sets(f, s, refs, true)) return false;
    hlo_sharding_drop_sets(s);
    return true;
}

/* ------------------------------------------------------------------------------- without a mesh */

static bool read_part(hlo_notation *f, hlo_sharding_parts *p, hlo_sharding *s) {
    for (int kind = 0; kind < HLO_SHARDING_TILED; kind++)
        if (hlo_notation_take_word(f, hlo_sharding_words[kind])) {
            s->kind = (hlo_sharding_kind)kind;
            return true;
        }
    if (hlo_notation_take_name(f, "device")) {
        p->devices = 1;
        return hlo_notation_int(f, &s->device);
    }
    if (hlo_notation_take_name(f, "devices")) {
        if (!read_tiling(f, true, &p->tiles)) return false;
        p->devices = p->tiles.devices.count;
        if (p->devices) s->device = p->tiles.devices.v[0];
        return true;
    }
    if (hlo_notation_take_name(f, "last_tile_dims")) {
        hlo_tiling *t = &p->tiles;
        p->last_kinds = true;
        t->kind_count = 0;
        if (!hlo_notation_expect(f, "{")) return false;
        while (hlo_notation_item(f, '}', t->kind_count)) {
            int64_t k = 0;
            while (k < KINDS && !hlo_notation_take_word(f, hlo_sharding_words[k])) k++;
            if (k == KINDS || t->kind_count == HLO_MAX_TILE_KINDS)
                return hlo_notation_unexpected(f,
                                               "'manual', 'replicated', 'unreduced' or 'maximal'");
            t->kinds[t->kind_count++] = k;
        }
        return hlo_notation_expect(f, "}");
    }
    if (hlo_notation_take_word(f, "last_tile_dim_replicate")) return p->last_replicated = true;
    bool like = hlo_notation_take_word(f, "shard_like");
    if (like || hlo_notation_take_word(f, "shard_as")) {
        s->group = like ? "like" : "as";
        return hlo_notation_int(f, &s->group_id);
    }
    if (!hlo_notation_take_name(f, "metadata"))
        return hlo_notation_unknown(
            f, "a part of a sharding or '}'",
            "'replicated' 'maximal' 'manual' 'unknown' 'unreduced' 'devices=' "
            "'device=' 'last_tile_dims=' 'last_tile_dim_replicate' "
            "'shard_like' 'shard_as' 'metadata=' 'mesh' 'maximal_mesh'");
    return hlo_sharding_read_metadata(f, false, s);
}

bool hlo_sharding_join(hlo_notation *f, hlo_sharding_parts *p, hlo_sharding *s) {
    hlo_tiling *t = &p->tiles;
    const bool tiled = s->kind == HLO_SHARDING_TILED;
    if (s->kind == HLO_SHARDING_MAXIMAL && p->devices != 1)
        return hlo_notation_fail(
            f, p->from, 1, "a maximal sharding requires exactly one device, found %zu", p->devices);
    if (!tiled && s->kind != HLO_SHARDING_MAXIMAL && (p->devices || t->dims.count))
        return hlo_notation_fail(f, p->from, 1, "the sharding '%s' must not have devices",
                                 hlo_sharding_words[s->kind]);
    if (!tiled) return true;
    if (!t->dims.count)
        return hlo_notation_fail(f, p->from, 1, "expected a sharding keyword or 'devices='");
    if (!t->iota.rank && t->devices.count < 2)
        return hlo_notation_fail(f, p->from, 1, "a tiled sharding requires at least two devices");
    if (p->last_kinds && p->last_replicated)
        return hlo_notation_fail(
            f, p->from, 1, "last_tile_dims and last_tile_dim_replicate are mutually exclusive");
    if (p->last_replicated) t->kinds[t->kind_count++] = HLO_SHARDING_REPLICATED;
    if (t->kind_count > t->dims.count)
        return hlo_notation_fail(f, p->from, 1,
                                 "last_tile_dims has %zu dimensions, but the tiling has only %zu",
                                 t->kind_count, t->dims.count);
    const int64_t all = hlo_dims_product(t->dims.v, t->dims.count);
    const int64_t named =
        t->iota.rank ? hlo_dims_product(t->iota.dims, t->iota.rank) : (int64_t)t->devices.count;
    if (all > 0 && all == named) s->kind = normalize_tiling(f, t);
    if (s->kind != HLO_SHARDING_TILED) return true;
    s->mesh.devices = hlo_tiling_keep(f, t);
    if (t->kind_count) s->kinds = hlo_ints_new(f->module, (uint32_t)t->kind_count, t->kinds);
    return true;
}

static bool read_one(hlo_notation *f) {
    hlo_sharding s = {.kind = HLO_SHARDING_TILED};
    hlo_sharding_parts p = {0};
    if (!hlo_notation_expect(f, "{")) return false;
    p.from = f->at - 1;
    bool mesh = hlo_notation_take_word(f, "mesh");
    if (mesh || hlo_notation_take_word(f, "maximal_mesh")) {
        if (!mesh) s.kind = HLO_SHARDING_MAXIMAL_MESH;
        if (!(mesh ? read_named(f, &s)
                   : hlo_notation_expect(f, "[") && hlo_notation_expect_name(f, "device_id") &&
                         hlo_notation_int(f, &s.device) && hlo_notation_expect(f, "]") &&
                         read_sets(f, &s, NULL, false)))
            return false;
    } else {
        while (!hlo_notation_take(f, "}"))
            if (!read_part(f, &p, &s)) return false;
        if (!hlo_sharding_join(f, &p, &s)) return false;
    }
    return hlo_sharding_keep(f, HLO_ATTR_SHARDING, s);
}

bool hlo_notation_sharding(hlo_notation *f) {
    hlo_sharding s = {.kind = HLO_SHARDING_TUPLE};
    hlo_notation ahead = *f;
    bool tuple = hlo_notation_take(&ahead, "{") &&
                 (hlo_notation_next(&ahead, '{') || hlo_notation_next(&ahead, '}'));
    if (!tuple) return read_one(f);
    hlo_notation_expect(f, "{");
    while (hlo_notation_item(f, '}', s.count)) {
        if (!read_one(f)) return false;
        s.v = hlo_notation_grow(f, s.v, s.count, sizeof *s.v);
        s.v[s.count++] = f->value.u.sharding;
    }
    s.v = hlo_arena_copy(f->module->arena, s.v, s.count * sizeof *s.v);
    return hlo_notation_expect_end(f, "}") && hlo_sharding_keep(f, HLO_ATTR_SHARDING, s);
}

bool hlo_notation_domain(hlo_notation *f) {
    static const char *const names[] = {"entry", "exit"};
    const hlo_sharding *sides[2] = {NULL};
    bool kind = false;
    if (!hlo_notation_expect(f, "{")) return false;
    while (!hlo_notation_take(f, "}")) {
        hlo_notation_skip(f);
        const char *from = f->at, *text;
        size_t size, n = hlo_notation_take_name(f, "entry")  ? 0
                         : hlo_notation_take_name(f, "exit") ? 1
                                                             : 2;
        if (n < 2) {
            if (sides[n])
                return hlo_notation_fail(f, from, strlen(names[n]), "'%s' is repeated", names[n]);
            if (!hlo_notation_sharding(f)) return false;
            sides[n] = f->value.u.sharding;
        } else if (kind || !hlo_notation_take_name(f, "kind")) {
            return hlo_notation_unexpected(f, "'kind=', 'entry=' or 'exit='");
        } else {
            hlo_notation_skip(f);
            from = f->at;
            if (!hlo_notation_string(f, &text, &size)) return false;
            if (size != 8 || memcmp(text, "sharding", 8) != 0)
                return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                         "the kind of a domain must be \"sharding\"");
            kind = true;
        }
        hlo_notation_take(f, ",");
    }
    for (size_t n = 0; n < 2; n++)
        if (!sides[n]) return hlo_notation_fail(f, f->from, 1, "the domain lacks '%s='", names[n]);
    if (!kind) return hlo_notation_fail(f, f->from, 1, "the domain lacks 'kind='");
    return hlo_sharding_keep(
        f, HLO_ATTR_DOMAIN,
        (hlo_sharding){.kind = HLO_SHARDING_DOMAIN,
                       .v = hlo_arena_copy(f->module->arena, sides, sizeof sides),
                       .count = 2});
}
