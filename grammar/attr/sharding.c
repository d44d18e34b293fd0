/* Shardings. */
#include <string.h>

#include "grammar/attr/devices.h"

/* The sets of axes in a sharding by names, each at most once, in printing order. */
static const char *const sets[] = {"replicated", "unreduced", "manual", "metadata"};
enum { REPLICATED_SET, UNREDUCED_SET, METADATA = 3, SETS };

/* True if the axes are all of the mesh, whole. */
static bool names_all(const hlo_mesh *m, const hlo_axes *axes) {
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->v[i].size != m->devices.dims->v[axes->v[i].axis]) return false;
    return axes->count && axes->count == m->devices.dims->count;
}

/* `max{'a'}`: partial results that are not summed. Newer than jaxlib 0.10. */
static void read_reduction(hlo_notation *f) {
    static const char *const words[] = {"max", "min", "sum"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hlo_notation_take_word(f, words[i]) && strcmp(words[i], "sum") != 0)
            hlo_notation_put(f, words[i]);
}

/* `from`: the first set that may stand here. `bare`: the sharding names no dimension, and where one
 * of the sets is the whole mesh, or none is given, one word says so. */
static bool read_sets(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref *refs, size_t first,
                      bool bare) {
    hlo_bytes outer = f->out, values[SETS] = {{0}};
    bool given[SETS] = {false};
    size_t used = 0, whole = REPLICATED_SET;
    while (hlo_notation_take(f, ",")) {
        size_t n = first;
        const hlo_axes *axes = NULL;
        hlo_notation_next(f, '\0');
        const char *from = f->at;
        while (n < SETS && !hlo_notation_take_name(f, sets[n])) n++;
        if (n == SETS)
            return hlo_notation_unexpected(f, first ? "'metadata='"
                                                    : "'replicated=', 'unreduced=', 'manual=' or "
                                                      "'metadata='");
        if (given[n])
            return hlo_notation_fail(f, from, strlen(sets[n]), "'%s' is given twice", sets[n]);
        given[n] = true;
        f->out = (hlo_bytes){.arena = f->scratch};
        if (n == UNREDUCED_SET) read_reduction(f);
        bool summed = !f->out.size;
        bool read = n == METADATA ? hlo_notation_metadata(f, true)
                                  : hlo_mesh_read_axes(f, m, &refs, ", ", false, true, &axes);
        if (!read) return false;
        if (!axes || axes->count) values[n] = f->out;
        if (!axes || !axes->count) continue;
        used++;
        whole = n > REPLICATED_SET && summed && names_all(m, axes) ? n : SETS;
    }
    f->out = outer;
    if (bare && used <= 1 && whole < SETS) {
        hlo_notation_put(f, sets[whole]);
        values[whole].size = 0;
    } else if (bare) {
        hlo_notation_put(f, "[]");
    }
    for (size_t n = 0; n < SETS; n++) {
        if (!values[n].size) continue;
        hlo_bytes_format(&f->out, ", %s=", sets[n]);
        hlo_bytes_put(&f->out, values[n].v, values[n].size);
    }
    hlo_notation_put(f, "}");
    return hlo_notation_next(f, '}') ? hlo_notation_expect(f, "}")
                                     : hlo_notation_unexpected(f, "',' or '}'");
}

/* Behind `mesh`. */
static bool read_named(hlo_notation *f) {
    hlo_mesh m;
    hlo_axis_ref *refs = NULL;
    if (!hlo_mesh_read(f, &m)) return false;
    hlo_notation_take(f, ",");
    hlo_notation_put(f, ", ");
    for (size_t n = 0; n < METADATA; n++) {
        if (!hlo_notation_take_word(f, sets[n])) continue;
        if (!m.devices.dims->count && n != REPLICATED_SET)
            return hlo_notation_fail(f, f->at - strlen(sets[n]), strlen(sets[n]),
                                     "a mesh without axes has nothing that is %s", sets[n]);
        hlo_notation_put(f, sets[n]);
        return read_sets(f, NULL, NULL, METADATA, false);
    }
    if (!hlo_notation_next(f, '['))
        return hlo_notation_unexpected(f, "'[', 'replicated', 'unreduced' or 'manual'");
    hlo_notation_expect(f, "[");
    if (hlo_notation_take(f, "]")) return read_sets(f, &m, refs, 0, true);
    hlo_notation_put(f, "[");
    for (bool more = false; more || !hlo_notation_next(f, ']'); more = true) {
        const hlo_axes *axes;
        if (more && !hlo_notation_take(f, ",")) break;
        hlo_notation_put(f, more ? ", " : "");
        if (!hlo_mesh_read_axes(f, &m, &refs, ", ", true, false, &axes)) return false;
    }
    hlo_notation_put(f, "]");
    return hlo_notation_expect(f, "]") && read_sets(f, &m, refs, 0, false);
}

/* Behind `maximal_mesh`. */
static bool read_maximal_mesh(hlo_notation *f) {
    int64_t device;
    if (!hlo_notation_expect(f, "[") || !hlo_notation_expect_name(f, "device_id") ||
        !hlo_notation_int(f, &device) || !hlo_notation_expect(f, "]"))
        return false;
    hlo_bytes_format(&f->out, "maximal_mesh[device_id=%lld]", (long long)device);
    return read_sets(f, NULL, NULL, METADATA, false);
}

typedef struct parts {
    const char *word; /* replicated, manual, ...; NULL: tiles */
    hlo_tiling tiles;
    hlo_notation_ints device;
    bool last_replicated, last_kinds, grouped, like;
    int64_t group;
    hlo_bytes metadata;
    const char *from; /* its brace */
} parts;

static bool read_part(hlo_notation *f, parts *p) {
    static const char *const words[] = {"replicated", "maximal", "manual", "unknown", "unreduced"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hlo_notation_take_word(f, words[i])) {
            p->word = words[i];
            return true;
        }
    if (hlo_notation_take_name(f, "device")) {
        p->device.v = hlo_arena_alloc(f->scratch, sizeof *p->device.v);
        p->device.count = 1;
        return hlo_notation_int(f, p->device.v);
    }
    if (hlo_notation_take_name(f, "devices")) {
        if (!hlo_tiling_read(f, true, &p->tiles)) return false;
        p->device = p->tiles.devices;
        return true;
    }
    if (hlo_notation_take_name(f, "last_tile_dims")) {
        p->last_kinds = true;
        return hlo_tiling_read_kinds(f, &p->tiles);
    }
    if (hlo_notation_take_word(f, "last_tile_dim_replicate")) return p->last_replicated = true;
    bool like = hlo_notation_take_word(f, "shard_like");
    if (like || hlo_notation_take_word(f, "shard_as")) {
        p->grouped = true;
        p->like = like;
        return hlo_notation_int(f, &p->group);
    }
    if (!hlo_notation_take_name(f, "metadata"))
        return hlo_notation_unknown(
            f, "a part of a sharding or '}'",
            "'replicated' 'maximal' 'manual' 'unknown' 'unreduced' 'devices=' "
            "'device=' 'last_tile_dims=' 'last_tile_dim_replicate' "
            "'shard_like' 'shard_as' 'metadata=' 'mesh' 'maximal_mesh'");
    hlo_bytes outer = f->out;
    f->out = (hlo_bytes){.arena = f->scratch};
    bool read = hlo_notation_metadata(f, false);
    p->metadata = f->out;
    f->out = outer;
    return read;
}

static bool check_tiles(hlo_notation *f, parts *p) {
    hlo_tiling *t = &p->tiles;
    if (!t->dims.count)
        return hlo_notation_fail(f, p->from, 1,
                                 "a sharding that is none of the words needs 'devices='");
    if (!t->iota.rank && t->devices.count < 2)
        return hlo_notation_fail(f, p->from, 1, "a tiled sharding needs more than one device");
    if (p->last_kinds && p->last_replicated)
        return hlo_notation_fail(f, p->from, 1,
                                 "last_tile_dims and last_tile_dim_replicate exclude each other");
    if (p->last_replicated) {
        t->kinds[0] = HLO_TILE_REPLICATED;
        t->kind_count = 1;
    }
    if (t->kind_count > t->dims.count)
        return hlo_notation_fail(f, p->from, 1, "last_tile_dims names %zu dimensions of %zu",
                                 t->kind_count, t->dims.count);
    return true;
}

static bool put_parts(hlo_notation *f, parts *p) {
    static const char *const words[] = {NULL, "manual", "unreduced", "replicated"};
    size_t named = p->device.count;
    if (!p->word) {
        if (!check_tiles(f, p)) return false;
        int kind =
            hlo_tiling_is_whole(&p->tiles) ? hlo_tiling_normalise(f, &p->tiles) : HLO_TILE_KINDS;
        if (kind != HLO_TILE_KINDS) p->word = words[kind];
    } else if (strcmp(p->word, "maximal") == 0) {
        if (named != 1)
            return hlo_notation_fail(f, p->from, 1,
                                     "a maximal sharding is on one device, found %zu", named);
    } else if (named || p->tiles.dims.count) {
        return hlo_notation_fail(f, p->from, 1, "a sharding that is %s has no devices", p->word);
    }
    hlo_notation_put(f, p->word ? p->word : "");
    if (!p->word) hlo_tiling_put(f, &p->tiles);
    if (p->word && strcmp(p->word, "maximal") == 0)
        hlo_bytes_format(&f->out, " device=%lld", (long long)p->device.v[0]);
    if (p->grouped)
        hlo_bytes_format(&f->out, " shard_%s %lld", p->like ? "like" : "as", (long long)p->group);
    if (p->metadata.size) {
        hlo_notation_put(f, " metadata=");
        hlo_bytes_put(&f->out, p->metadata.v, p->metadata.size);
    }
    hlo_notation_put(f, "}");
    return true;
}

static bool read_one(hlo_notation *f) {
    parts p = {0};
    if (!hlo_notation_expect(f, "{")) return false;
    p.from = f->at - 1;
    hlo_notation_put(f, "{");
    if (hlo_notation_take_word(f, "mesh")) return read_named(f);
    if (hlo_notation_take_word(f, "maximal_mesh")) return read_maximal_mesh(f);
    while (!hlo_notation_take(f, "}"))
        if (!read_part(f, &p)) return false;
    return put_parts(f, &p);
}

bool hlo_notation_sharding(hlo_notation *f) {
    hlo_notation ahead = *f;
    bool tuple = hlo_notation_take(&ahead, "{") &&
                 (hlo_notation_next(&ahead, '{') || hlo_notation_next(&ahead, '}'));
    if (!tuple) return read_one(f);
    hlo_notation_expect(f, "{");
    hlo_notation_put(f, "{");
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        hlo_notation_put(f, more ? ", " : "");
        if (!read_one(f)) return false;
    }
    hlo_notation_put(f, "}");
    return hlo_notation_next(f, '}') ? hlo_notation_expect(f, "}")
                                     : hlo_notation_unexpected(f, "',' or '}'");
}
