/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by the axes of a mesh. */
#include "grammar/attr/devices.h"

#include <string.h>

#include "hlo/suggest.h"
#include "ir/intern.h"

/* Reads and interns the name of an axis. */
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
    /* A mesh that lists no ids has 0, 1, 2, ... */
    for (size_t i = 0; i < ids->count && !m->devices.listed; i++)
        if (ids->v[i] != (int64_t)i) m->devices.listed = hlo_notation_keep(f, ids);
    return true;
}

/* Reads `, device_ids=(1,0)`, or only a comma. */
static bool read_device_ids(hlo_notation *f, hlo_mesh *m) {
    if (!hlo_notation_take(f, ",") || !hlo_notation_take_name(f, "device_ids")) return true;
    if (!hlo_notation_expect(f, "(")) return false;
    if (hlo_notation_next(f, '[')) {
        hlo_iota ids;
        if (!hlo_iota_read(f, &ids)) return false;
        if (ids.rank > 1) hlo_iota_keep(f, &ids, &m->devices);
        return hlo_notation_expect(f, ")");
    }
    const char *from = f->at;
    hlo_notation_ints ids;
    return hlo_notation_int_list(f, ")", 1, &ids) && hlo_mesh_list(f, from, &ids, m);
}

bool hlo_mesh_add(hlo_notation *f, const char *from, hlo_mesh_axes *to, const char *name,
                  int64_t size) {
    if (to->sizes.count == HLO_MOST_MESH_AXES)
        return hlo_notation_fail(f, from, 1, "a mesh has at most %d axes", HLO_MOST_MESH_AXES);
    for (size_t i = 0; i < to->sizes.count; i++)
        if (name == to->names[i])
            return hlo_notation_fail(f, from, hlo_intern_length(name) + 2,
                                     "the mesh repeats axis '%s'", name);
    to->names[to->sizes.count] = name;
    hlo_notation_add(f, &to->sizes, size);
    return true;
}

void hlo_mesh_keep(hlo_notation *f, const hlo_mesh_axes *axes, hlo_mesh *out) {
    /* Allocate an array for a mesh without axes, too: names NULL means no mesh. */
    const size_t count = axes->sizes.count;
    out->names = hlo_arena_array(f->module->arena, count + 1, sizeof *out->names);
    memcpy(out->names, axes->names, count * sizeof *out->names);
    out->devices = (hlo_device_array){.dims = hlo_notation_keep(f, &axes->sizes)};
}

/* Reads `['a'=2,'b'=4]` after `mesh`, and the ids. */
bool hlo_mesh_read(hlo_notation *f, hlo_mesh *out) {
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
    return hlo_notation_expect(f, "]") && read_device_ids(f, out);
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

bool hlo_mesh_read_axes(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref **refs, bool open,
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
