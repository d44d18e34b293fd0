/* SPDX-License-Identifier: Apache-2.0 */
/* Shardings, and the domains between two shardings. */
#include <string.h>

#include "grammar/attr/devices.h"
#include "ir/intern.h"
#include "ir/text/print_devices.h"

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

/* True if the axes are all axes of the mesh, each whole. */
static bool names_all(const hlo_mesh *m, const hlo_axes *axes) {
    for (uint32_t i = 0; i < axes->count; i++)
        if (axes->v[i].size != m->devices.dims->v[axes->v[i].axis]) return false;
    return axes->count && axes->count == m->devices.dims->count;
}

/* Reads the `max` of `max{'a'}`, for partial results to combine. Newer than jaxlib 0.10. */
static void read_reduction(hlo_notation *f, hlo_sharding *s) {
    static const char *const words[] = {"max", "min", "sum"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (hlo_notation_take_word(f, words[i]) && strcmp(words[i], "sum") != 0)
            s->reduction = words[i];
}

/* Reads sets of axes, each at most once, and metadata. `axes`: sets may occur here. */
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
        if (hlo_sharding_sets[n] == HLO_SHARDING_UNREDUCED) read_reduction(f, s);
        if (!hlo_mesh_read_axes(f, &s->mesh, &refs, false, true, &s->sets[n])) return false;
        if (!s->sets[n]->count) s->sets[n] = NULL;
    }
    return hlo_notation_expect_end(f, "}");
}

void hlo_sharding_drop_sets(hlo_sharding *s) {
    size_t used = 0, last = 0;
    for (size_t n = 0; n < HLO_SHARDING_SETS; n++)
        if (s->sets[n]) used++, last = n;
    const hlo_sharding_kind kind = hlo_sharding_sets[last];
    if (used > 1 ||
        (used && (kind == HLO_SHARDING_REPLICATED || !names_all(&s->mesh, s->sets[last]) ||
                  (kind == HLO_SHARDING_UNREDUCED && s->reduction))))
        return;
    s->kind = kind;
    s->sets[last] = NULL;
}

/* Reads `{'a'}, {}]`. */
static bool read_dims(hlo_notation *f, hlo_sharding *s, hlo_axis_ref **refs) {
    while (hlo_notation_item(f, ']', s->count)) {
        s->dims = hlo_notation_grow(f, s->dims, s->count, sizeof *s->dims);
        if (!hlo_mesh_read_axes(f, &s->mesh, refs, true, false, &s->dims[s->count++])) return false;
    }
    s->dims = hlo_arena_copy(f->module->arena, s->dims, s->count * sizeof *s->dims);
    return hlo_notation_expect(f, "]");
}

/* Reads the dimensions and sets of a sharding after `mesh`. */
static bool read_named(hlo_notation *f, hlo_sharding *s) {
    hlo_axis_ref *refs = NULL;
    s->kind = HLO_SHARDING_NAMED;
    if (!hlo_mesh_read(f, &s->mesh)) return false;
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
    if (!hlo_notation_take(f, "]")) return read_dims(f, s, &refs) && read_sets(f, s, refs, true);
    if (!read_sets(f, s, refs, true)) return false;
    hlo_sharding_drop_sets(s);
    return true;
}

/* Reads the device of a sharding after `maximal_mesh`. */
static bool read_maximal_mesh(hlo_notation *f, hlo_sharding *s) {
    s->kind = HLO_SHARDING_MAXIMAL_MESH;
    return hlo_notation_expect(f, "[") && hlo_notation_expect_name(f, "device_id") &&
           hlo_notation_int(f, &s->device) && hlo_notation_expect(f, "]") &&
           read_sets(f, s, NULL, false);
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
        if (!hlo_tiling_read(f, true, &p->tiles)) return false;
        p->devices = p->tiles.devices.count;
        if (p->devices) s->device = p->tiles.devices.v[0];
        return true;
    }
    if (hlo_notation_take_name(f, "last_tile_dims")) {
        p->last_kinds = true;
        return hlo_tiling_read_kinds(f, &p->tiles);
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
        return hlo_notation_fail(f, p->from, 1, "a %s sharding must not have devices",
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
                                 "last_tile_dims has %zu dimensions, but there are only %zu",
                                 t->kind_count, t->dims.count);
    if (hlo_tiling_is_whole(t)) s->kind = hlo_tiling_normalize(f, t);
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
        if (!(mesh ? read_named(f, &s) : read_maximal_mesh(f, &s))) return false;
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
