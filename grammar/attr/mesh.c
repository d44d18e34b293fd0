/* Devices by the axes of a mesh. */
#include "grammar/attr/devices.h"

#include <string.h>

#include "hlo/suggest.h"

/* Names are bytes between single quotes. */
static void put_axis_name(hlo_notation *f, const hlo_axis *a) {
    hlo_notation_put(f, "'");
    for (size_t i = 0; i < a->name_size; i++) {
        if (strchr("'\\", a->name[i]) || !a->name[i]) hlo_notation_put(f, "\\");
        hlo_bytes_put(&f->out, a->name[i] ? &a->name[i] : "0", 1);
    }
    hlo_notation_put(f, "'");
}

static bool same_name(const hlo_axis *a, const hlo_axis *b) {
    return a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0;
}

/* Counts from 0 on say nothing. */
static bool is_in_order(const hlo_notation_ints *ids) {
    for (size_t i = 0; i < ids->count; i++)
        if (ids->v[i] != (int64_t)i) return false;
    return true;
}

/* `, device_ids=(1,0)`; or only a comma. */
static bool read_device_ids(hlo_notation *f, const hlo_mesh *m) {
    if (!hlo_notation_take(f, ",") || !hlo_notation_take_name(f, "device_ids")) return true;
    if (!hlo_notation_expect(f, "(")) return false;
    if (hlo_notation_next(f, '[')) {
        hlo_iota ids;
        if (!hlo_iota_read(f, &ids)) return false;
        if (ids.rank > 1) {
            hlo_notation_put(f, ", device_ids=(");
            hlo_iota_put(f, &ids);
            hlo_notation_put(f, ")");
        }
        return hlo_notation_expect(f, ")");
    }
    const char *from = f->at;
    hlo_notation_ints ids;
    if (!hlo_notation_int_list(f, ")", 1, &ids)) return false;
    int64_t all = 1;
    for (size_t i = 0; i < m->count; i++)
        if (__builtin_mul_overflow(all, m->axes[i].size, &all)) all = -1;
    if (all != (int64_t)ids.count)
        return hlo_notation_fail(f, from, 1, "the mesh has %lld devices, but %zu are named",
                                 (long long)all, ids.count);
    if (is_in_order(&ids)) return true;
    hlo_notation_put(f, ", device_ids=(");
    hlo_notation_put_ints(f, ids.v, ids.count);
    hlo_notation_put(f, ")");
    return true;
}

/* `['a'=2,'b'=4]`, behind `mesh`, and the ids. */
bool hlo_mesh_read(hlo_notation *f, hlo_mesh *out) {
    enum { MOST_AXES = 256 };
    out->axes = hlo_arena_array(f->scratch, MOST_AXES, sizeof *out->axes);
    out->count = 0;
    hlo_notation_put(f, "mesh[");
    if (!hlo_notation_expect(f, "[")) return false;
    for (bool more = false; more || !hlo_notation_next(f, ']'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        hlo_axis *a = &out->axes[out->count];
        hlo_notation_next(f, '\0'); /* where the name begins */
        const char *from = f->at;
        if (out->count == MOST_AXES)
            return hlo_notation_fail(f, from, 1, "a mesh has at most %d axes", MOST_AXES);
        if (!hlo_notation_string(f, &a->name, &a->name_size) || !hlo_notation_expect(f, "=") ||
            !hlo_notation_int(f, &a->size))
            return false;
        for (size_t i = 0; i < out->count; i++)
            if (same_name(a, &out->axes[i]))
                return hlo_notation_fail(f, from, a->name_size + 2, "the mesh has two axes '%s'",
                                         a->name);
        if (more) hlo_notation_put(f, ",");
        put_axis_name(f, a);
        hlo_bytes_format(&f->out, "=%lld", (long long)a->size);
        out->count++;
    }
    hlo_notation_put(f, "]");
    return hlo_notation_expect(f, "]") && read_device_ids(f, out);
}

static bool unknown_axis(hlo_notation *f, const hlo_mesh *m, const char *at, const char *name) {
    hlo_suggestion s = hlo_suggest(name);
    for (size_t i = 0; i < m->count; i++) hlo_suggest_offer(&s, m->axes[i].name);
    return hlo_notation_fail(f, at, (size_t)(f->at - at), "the mesh has no axis '%s'%s", name,
                             hlo_suggest_meant(&s));
}

/* `'a'` or `'a':(2)2`, which no reference in *refs may overlap, and which is added to them. `last`:
 * the reference before it in its list. */
static bool read_axis(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref **refs,
                      const hlo_axis_ref **last) {
    hlo_axis named;
    hlo_axis_ref *ref = hlo_arena_zero(f->scratch, sizeof *ref);
    hlo_notation_next(f, '\0');
    const char *from = f->at;
    if (!hlo_notation_string(f, &named.name, &named.name_size)) return false;
    while (ref->axis < m->count && !same_name(&named, &m->axes[ref->axis])) ref->axis++;
    if (ref->axis == m->count) return unknown_axis(f, m, from, named.name);
    int64_t whole = m->axes[ref->axis].size;
    ref->pre = 1;
    ref->size = whole;
    put_axis_name(f, &named);
    if (hlo_notation_take(f, ":")) {
        if (!hlo_notation_expect(f, "(") || !hlo_notation_int(f, &ref->pre) ||
            !hlo_notation_expect(f, ")") || !hlo_notation_int(f, &ref->size))
            return false;
        int64_t up;
        if (ref->pre < 1 || ref->size < 2 || ref->size >= whole ||
            __builtin_mul_overflow(ref->pre, ref->size, &up) || whole % up)
            return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                     "(%lld)%lld is no part of an axis of %lld devices",
                                     (long long)ref->pre, (long long)ref->size, (long long)whole);
        hlo_bytes_format(&f->out, ":(%lld)%lld", (long long)ref->pre, (long long)ref->size);
    }
    for (const hlo_axis_ref *r = *refs; r; r = r->next)
        if (r->axis == ref->axis && ref->pre < r->pre * r->size && r->pre < ref->pre * ref->size)
            return hlo_notation_fail(f, from, (size_t)(f->at - from), "axis '%s' is used twice",
                                     named.name);
    if (*last && (*last)->axis == ref->axis && (*last)->pre * (*last)->size == ref->pre)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "this goes on with the part of '%s' before it: they are one",
                                 named.name);
    ref->next = *refs;
    *last = *refs = ref;
    return true;
}

/* Axes up to the closing brace, with `between` between them; `open`: `?` may be the last. `sorted`:
 * they come in the order of the mesh. */
bool hlo_mesh_read_axes(hlo_notation *f, const hlo_mesh *m, hlo_axis_ref **refs,
                        const char *between, bool open, bool sorted, size_t *out_count) {
    const hlo_axis_ref *last = NULL;
    *out_count = 0;
    if (!hlo_notation_expect(f, "{")) return false;
    hlo_notation_put(f, "{");
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        if (more) hlo_notation_put(f, between);
        if (open && hlo_notation_take(f, "?")) {
            hlo_notation_put(f, "?");
            break;
        }
        const hlo_axis_ref *before = last;
        hlo_notation_next(f, '\0');
        const char *from = f->at;
        if (!read_axis(f, m, refs, &last)) return false;
        if (sorted && before &&
            (before->axis > last->axis || (before->axis == last->axis && before->pre > last->pre)))
            return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                     "the axes do not come in the order of the mesh");
        ++*out_count;
    }
    hlo_notation_put(f, "}");
    return hlo_notation_next(f, '}') ? hlo_notation_expect(f, "}")
                                     : hlo_notation_unexpected(f, "',' or '}'");
}
