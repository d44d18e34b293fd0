/* Reading values that name devices: shardings, meshes, groups. */
#include <stdlib.h>
#include <string.h>

#include "grammar/attr/notation.h"
#include "hlo/suggest.h"

/* --------------------------------------------------------------------- devices by their numbers */

/* `[R]T(P)` stands for the numbers from 0 on, in an array of dimensions R, transposed by P, read in
 * that order. In the one form that it has when printed, no dimension is 1, and no two that stay
 * beside each other in order are apart; with one dimension left there is no T. */

typedef struct iota {
    int64_t *dims, *perm;
    size_t rank;
} iota;

static bool is_permutation(hlo_notation *f, const int64_t *perm, size_t count) {
    bool *seen = hlo_arena_zero(f->scratch, count);
    for (size_t i = 0; i < count; i++) {
        if (perm[i] < 0 || (size_t)perm[i] >= count || seen[perm[i]]) return false;
        seen[perm[i]] = true;
    }
    return true;
}

/* Takes dimension `d` out; `into` its size goes to the one before it. */
static void drop_dim(iota *a, size_t d) {
    size_t to = 0;
    memmove(a->dims + d, a->dims + d + 1, (a->rank - d - 1) * sizeof *a->dims);
    for (size_t i = 0; i < a->rank; i++)
        if (a->perm[i] != (int64_t)d) a->perm[to++] = a->perm[i] - (a->perm[i] > (int64_t)d);
    a->rank--;
}

static void normalise_iota(iota *a) {
    for (size_t d = 0; d < a->rank;)
        if (a->dims[d] == 1 && a->rank > 1)
            drop_dim(a, d);
        else
            d++;
    for (size_t i = 0; i + 1 < a->rank;) {
        size_t d = (size_t)a->perm[i];
        if (a->perm[i + 1] != (int64_t)d + 1 ||
            __builtin_mul_overflow(a->dims[d], a->dims[d + 1], &a->dims[d])) {
            i++;
            continue;
        }
        drop_dim(a, d + 1);
    }
}

/* `[2,2]T(1,0)`, or `[4]`. */
static bool read_iota(hlo_notation *f, iota *out) {
    hlo_notation_ints dims, perm;
    if (!hlo_notation_expect(f, "[") || !hlo_notation_int_list(f, "]", 1, &dims)) return false;
    *out = (iota){.dims = dims.v, .rank = dims.count};
    if (dims.count == 1) {
        out->perm = hlo_arena_zero(f->scratch, sizeof *out->perm);
        return true;
    }
    if (!hlo_notation_expect(f, "T") || !hlo_notation_expect(f, "(")) return false;
    const char *from = f->at - 1;
    if (!hlo_notation_int_list(f, ")", 1, &perm)) return false;
    if (perm.count != dims.count || !is_permutation(f, perm.v, perm.count))
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "this is no permutation of %zu dimensions", dims.count);
    out->perm = perm.v;
    for (size_t i = 0; i < dims.count; i++)
        if (dims.v[i] < 1) return true;
    normalise_iota(out);
    return true;
}

static void put_iota(hlo_notation *f, const iota *a) {
    hlo_notation_put(f, "[");
    hlo_notation_put_ints(f, a->dims, a->rank);
    hlo_notation_put(f, "]");
    if (a->rank == 1) return;
    hlo_notation_put(f, "T(");
    hlo_notation_put_ints(f, a->perm, a->rank);
    hlo_notation_put(f, ")");
}

/* The product; -1 when one is less than 1 or it overflows. */
static int64_t product(const int64_t *v, size_t count) {
    int64_t all = 1;
    for (size_t i = 0; i < count; i++)
        if (v[i] < 1 || __builtin_mul_overflow(all, v[i], &all)) return -1;
    return all;
}

/* ---------------------------------------------------------------------------------------- tiles */

enum { MOST_KINDS = 64, LARGEST_LIST = 1 << 20 };

/* What the last dimensions of a tiling are for, in the order in which they are sorted. */
static const char *const kinds[] = {"maximal", "manual", "unreduced", "replicated"};
enum { MAXIMAL, MANUAL, UNREDUCED, REPLICATED, KINDS };

typedef struct tiling {
    hlo_notation_ints dims;
    hlo_notation_ints devices; /* listed */
    iota iota;                 /* rank 0: they are listed */
    uint8_t kinds[MOST_KINDS];
    size_t kind_count;
} tiling;

/* A piece of one dimension of an iota, on its way to a place in another order. */
typedef struct factor {
    int64_t dim, part, size; /* part: from the outermost on, of those of one dimension */
    size_t tile;             /* the dimension of the tiling that it is of */
} factor;

static int by_source(const void *a, const void *b) {
    const factor *x = a, *y = b;
    return x->dim != y->dim ? (x->dim > y->dim) - (x->dim < y->dim)
                            : (x->part > y->part) - (x->part < y->part);
}

/* Cuts the iota up so that each dimension of the tiling consists of whole pieces; 0 when its
 * dimensions do not divide so. */
static size_t cut(const iota *a, const int64_t *tiles, size_t rank, factor *out, size_t capacity) {
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

/* The iota that the pieces make in their order. */
static iota join(hlo_notation *f, const factor *factors, size_t count) {
    iota a = {.rank = count ? count : 1};
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
    normalise_iota(&a);
    return a;
}

/* The numbers that an iota stands for. */
static void list_iota(hlo_notation *f, const iota *a, int64_t count, hlo_notation_ints *out) {
    int64_t *stride = hlo_arena_array(f->scratch, a->rank, sizeof *stride), step = 1;
    int64_t *at = hlo_arena_zero(f->scratch, a->rank * sizeof *at);
    for (size_t d = a->rank; d-- > 0;) {
        stride[d] = step;
        step *= a->dims[d];
    }
    *out = (hlo_notation_ints){hlo_arena_array(f->scratch, (size_t)count, sizeof *out->v),
                               (size_t)count};
    for (size_t i = 0; i < out->count; i++) {
        out->v[i] = 0;
        for (size_t k = 0; k < a->rank; k++) out->v[i] += at[k] * stride[a->perm[k]];
        for (size_t k = a->rank; k-- > 0;) {
            if (++at[k] < a->dims[a->perm[k]]) break;
            at[k] = 0;
        }
    }
}

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Reorders the dimensions of the listed devices. */
static void transpose_list(hlo_notation *f, tiling *t, const size_t *order) {
    size_t rank = t->dims.count;
    iota whole = {.rank = rank,
                  .dims = hlo_arena_copy(f->scratch, t->dims.v, rank * sizeof(int64_t)),
                  .perm = hlo_arena_array(f->scratch, rank, sizeof(int64_t))};
    for (size_t i = 0; i < rank; i++) whole.perm[i] = (int64_t)order[i];
    hlo_notation_ints places;
    list_iota(f, &whole, (int64_t)t->devices.count, &places);
    for (size_t i = 0; i < places.count; i++) places.v[i] = t->devices.v[places.v[i]];
    t->devices = places;
}

/* Puts the dimensions in that order; `sort`: the devices along the last `sort` of them, which only
 * replicate, in the order of their numbers. */
static void reorder(hlo_notation *f, tiling *t, const size_t *order, size_t sort) {
    size_t rank = t->dims.count;
    int64_t all = product(t->dims.v, rank), last = product(t->dims.v, 0);
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
        transpose_list(f, t, order);
        for (size_t i = rank - sort; i < rank; i++) last *= t->dims.v[order[i]];
        for (size_t i = 0; sort && i < t->devices.count; i += (size_t)last)
            qsort(t->devices.v + i, (size_t)last, sizeof(int64_t), by_number);
    }
    int64_t *dims = hlo_arena_array(f->scratch, rank, sizeof *dims);
    for (size_t i = 0; i < rank; i++) dims[i] = t->dims.v[order[i]];
    t->dims.v = dims;
}

/* Sorts the dimensions behind the data by what they are for, makes one of those that are for the
 * same, drops those of one device. When nothing is tiled and all is for one thing, the result is
 * that; else KINDS. */
static int normalise_tiling(hlo_notation *f, tiling *t) {
    size_t rank = t->dims.count, data = rank - t->kind_count, kept = data;
    bool alike = true;
    for (size_t i = 1; i < t->kind_count; i++) alike &= t->kinds[i] == t->kinds[0];
    int64_t tiled = product(t->dims.v, data);
    if (!t->kind_count) return KINDS;
    if (alike && tiled == 1 && t->kinds[0] != MAXIMAL) return t->kinds[0];
    size_t *order = hlo_arena_array(f->scratch, rank, sizeof *order), done = 0, replicated = 0;
    for (size_t i = 0; i < data; i++) order[done++] = i;
    uint8_t found[KINDS];
    int64_t sizes[KINDS];
    size_t count = 0;
    for (uint8_t kind = 0; kind < KINDS; kind++) {
        int64_t size = 1;
        for (size_t i = 0; i < t->kind_count; i++)
            if (t->kinds[i] == kind) {
                order[done++] = data + i;
                size *= t->dims.v[data + i];
                replicated += kind == REPLICATED;
            }
        if (size == 1) continue;
        found[count] = kind;
        sizes[count++] = size;
    }
    bool sort = count && found[count - 1] == REPLICATED;
    reorder(f, t, order, sort ? replicated : 0);
    memcpy(t->kinds, found, count);
    for (size_t i = 0; i < count; i++) t->dims.v[kept++] = sizes[i];
    t->dims.count = kept;
    t->kind_count = count;
    return count == 1 && found[0] == REPLICATED && tiled == 1 ? REPLICATED : KINDS;
}

/* `[2,2]<=[4]` or, when `listed`, also `[2,2]0,1,2,3`. */
static bool read_tiles(hlo_notation *f, bool listed, tiling *t) {
    if (!hlo_notation_expect(f, "[") || !hlo_notation_int_list(f, "]", 1, &t->dims)) return false;
    t->iota.rank = 0;
    t->devices.count = 0;
    if (hlo_notation_take(f, "<=")) return read_iota(f, &t->iota);
    if (!listed) return hlo_notation_unexpected(f, "'<='");
    return hlo_notation_int_list(f, "", 1, &t->devices);
}

static bool read_kinds(hlo_notation *f, tiling *t) {
    t->kind_count = 0;
    if (!hlo_notation_expect(f, "{")) return false;
    for (bool more = false; more || !hlo_notation_next(f, '}'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        uint8_t kind = 0;
        while (kind < KINDS && !hlo_notation_take_word(f, kinds[kind])) kind++;
        if (kind == KINDS || t->kind_count == MOST_KINDS)
            return hlo_notation_unexpected(f, "'manual', 'replicated', 'unreduced' or 'maximal'");
        t->kinds[t->kind_count++] = kind;
    }
    return hlo_notation_expect(f, "}");
}

/* Whether as many devices are named as the tiling has places. */
static bool is_whole(const tiling *t) {
    int64_t all = product(t->dims.v, t->dims.count);
    int64_t named = t->iota.rank ? product(t->iota.dims, t->iota.rank) : (int64_t)t->devices.count;
    return all > 0 && all == named;
}

static void put_tiling(hlo_notation *f, const tiling *t) {
    hlo_notation_put(f, "devices=[");
    hlo_notation_put_ints(f, t->dims.v, t->dims.count);
    hlo_notation_put(f, t->iota.rank ? "]<=" : "]");
    if (t->iota.rank)
        put_iota(f, &t->iota);
    else
        hlo_notation_put_ints(f, t->devices.v, t->devices.count);
    if (!t->kind_count) return;
    if (t->kind_count == 1 && t->kinds[0] == REPLICATED) {
        hlo_notation_put(f, " last_tile_dim_replicate");
        return;
    }
    hlo_notation_put(f, " last_tile_dims=");
    for (size_t i = 0; i < t->kind_count; i++) {
        hlo_notation_put(f, i ? ", " : "{");
        hlo_notation_put(f, kinds[t->kinds[i]]);
    }
    hlo_notation_put(f, "}");
}

/* --------------------------------------------------------------------------------------- meshes */

typedef struct axis {
    const char *name;
    size_t name_size;
    int64_t size;
} axis;

typedef struct mesh {
    axis *axes;
    size_t count;
} mesh;

/* A part of an axis: `size` of its devices, `pre` apart. */
typedef struct axis_ref {
    size_t axis;
    int64_t pre, size;
    struct axis_ref *next;
} axis_ref;

/* Names are bytes between single quotes. */
static void put_axis_name(hlo_notation *f, const axis *a) {
    hlo_notation_put(f, "'");
    for (size_t i = 0; i < a->name_size; i++) {
        if (strchr("'\\", a->name[i]) || !a->name[i]) hlo_notation_put(f, "\\");
        hlo_bytes_put(&f->out, a->name[i] ? &a->name[i] : "0", 1);
    }
    hlo_notation_put(f, "'");
}

static bool same_name(const axis *a, const axis *b) {
    return a->name_size == b->name_size && memcmp(a->name, b->name, a->name_size) == 0;
}

/* Counts from 0 on say nothing. */
static bool is_in_order(const hlo_notation_ints *ids) {
    for (size_t i = 0; i < ids->count; i++)
        if (ids->v[i] != (int64_t)i) return false;
    return true;
}

/* `, device_ids=(1,0)`; or only a comma. */
static bool read_device_ids(hlo_notation *f, const mesh *m) {
    if (!hlo_notation_take(f, ",") || !hlo_notation_take_name(f, "device_ids")) return true;
    if (!hlo_notation_expect(f, "(")) return false;
    if (hlo_notation_next(f, '[')) {
        iota ids;
        if (!read_iota(f, &ids)) return false;
        if (ids.rank > 1) {
            hlo_notation_put(f, ", device_ids=(");
            put_iota(f, &ids);
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
static bool read_mesh(hlo_notation *f, mesh *out) {
    enum { MOST_AXES = 256 };
    out->axes = hlo_arena_array(f->scratch, MOST_AXES, sizeof *out->axes);
    out->count = 0;
    hlo_notation_put(f, "mesh[");
    if (!hlo_notation_expect(f, "[")) return false;
    for (bool more = false; more || !hlo_notation_next(f, ']'); more = true) {
        if (more && !hlo_notation_take(f, ",")) break;
        axis *a = &out->axes[out->count];
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

static bool unknown_axis(hlo_notation *f, const mesh *m, const char *at, const char *name) {
    hlo_suggestion s = hlo_suggest(name);
    for (size_t i = 0; i < m->count; i++) hlo_suggest_offer(&s, m->axes[i].name);
    return hlo_notation_fail(f, at, (size_t)(f->at - at), "the mesh has no axis '%s'%s", name,
                             hlo_suggest_meant(&s));
}

/* `'a'` or `'a':(2)2`, which no reference in *refs may overlap, and which is added to them. `last`:
 * the one before it in the same list. */
static bool read_axis(hlo_notation *f, const mesh *m, axis_ref **refs, const axis_ref **last) {
    axis named;
    axis_ref *ref = hlo_arena_zero(f->scratch, sizeof *ref);
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
    for (const axis_ref *r = *refs; r; r = r->next)
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
static bool read_axes(hlo_notation *f, const mesh *m, axis_ref **refs, const char *between,
                      bool open, bool sorted, size_t *out_count) {
    const axis_ref *last = NULL;
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
        const axis_ref *before = last;
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

/* ------------------------------------------------------------------------------------ shardings */

/* What may follow in a sharding by names, each at most once, in the order in which it is printed.
 */
static const char *const sets[] = {"replicated", "unreduced", "manual", "metadata"};
enum { REPLICATED_SET, UNREDUCED_SET, METADATA = 3, SETS };

/* Whether the newest `count` references are to every axis of the mesh, whole. */
static bool names_all(const mesh *m, const axis_ref *refs, size_t count) {
    if (!count || count != m->count) return false;
    for (; count; refs = refs->next, count--)
        if (refs->size != m->axes[refs->axis].size) return false;
    return true;
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
static bool read_sets(hlo_notation *f, const mesh *m, axis_ref *refs, size_t first, bool bare) {
    hlo_bytes outer = f->out, values[SETS] = {{0}};
    bool given[SETS] = {false};
    size_t used = 0, whole = REPLICATED_SET;
    while (hlo_notation_take(f, ",")) {
        size_t n = first, count = 1;
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
                                  : read_axes(f, m, &refs, ", ", false, true, &count);
        if (!read) return false;
        if (count) values[n] = f->out;
        if (n == METADATA || !count) continue;
        used++;
        whole = n > REPLICATED_SET && summed && names_all(m, refs, count) ? n : SETS;
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
    mesh m;
    axis_ref *refs = NULL;
    if (!read_mesh(f, &m)) return false;
    hlo_notation_take(f, ",");
    hlo_notation_put(f, ", ");
    for (size_t n = 0; n < METADATA; n++) {
        if (!hlo_notation_take_word(f, sets[n])) continue;
        if (!m.count && n != REPLICATED_SET)
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
        size_t count;
        if (more && !hlo_notation_take(f, ",")) break;
        hlo_notation_put(f, more ? ", " : "");
        if (!read_axes(f, &m, &refs, ", ", true, false, &count)) return false;
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
    tiling tiles;
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
        if (!read_tiles(f, true, &p->tiles)) return false;
        p->device = p->tiles.devices;
        return true;
    }
    if (hlo_notation_take_name(f, "last_tile_dims")) {
        p->last_kinds = true;
        return read_kinds(f, &p->tiles);
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
    tiling *t = &p->tiles;
    if (!t->dims.count)
        return hlo_notation_fail(f, p->from, 1,
                                 "a sharding that is none of the words needs 'devices='");
    if (!t->iota.rank && t->devices.count < 2)
        return hlo_notation_fail(f, p->from, 1, "a tiled sharding needs more than one device");
    if (p->last_kinds && p->last_replicated)
        return hlo_notation_fail(f, p->from, 1,
                                 "last_tile_dims and last_tile_dim_replicate exclude each other");
    if (p->last_replicated) {
        t->kinds[0] = REPLICATED;
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
        int kind = is_whole(&p->tiles) ? normalise_tiling(f, &p->tiles) : KINDS;
        if (kind != KINDS) p->word = words[kind];
    } else if (strcmp(p->word, "maximal") == 0) {
        if (named != 1)
            return hlo_notation_fail(f, p->from, 1,
                                     "a maximal sharding is on one device, found %zu", named);
    } else if (named || p->tiles.dims.count) {
        return hlo_notation_fail(f, p->from, 1, "a sharding that is %s has no devices", p->word);
    }
    hlo_notation_put(f, p->word ? p->word : "");
    if (!p->word) put_tiling(f, &p->tiles);
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

/* --------------------------------------------------------------------------------------- groups */

/* `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2,'b'=2] {'a'}`. */
bool hlo_notation_groups(hlo_notation *f) {
    if (hlo_notation_next(f, '{')) return hlo_notation_listed(f);
    if (hlo_notation_take_word(f, "mesh")) {
        mesh m;
        axis_ref *refs = NULL;
        size_t count;
        if (!read_mesh(f, &m)) return false;
        hlo_notation_put(f, " ");
        hlo_notation_next(f, '\0');
        const char *from = f->at;
        if (!read_axes(f, &m, &refs, ",", false, false, &count)) return false;
        int64_t devices = 1;
        for (; refs; refs = refs->next)
            if (__builtin_mul_overflow(devices, refs->size, &devices)) devices = INT64_MAX;
        return devices > 1 || hlo_notation_fail(f, from, (size_t)(f->at - from),
                                                "a group has %lld device%s, wanted several",
                                                (long long)devices, devices == 1 ? "" : "s");
    }
    tiling t = {0};
    if (!hlo_notation_next(f, '[')) return hlo_notation_unexpected(f, "'{', '[' or 'mesh['");
    const char *from = f->at;
    if (!read_tiles(f, false, &t)) return false;
    if (t.dims.count != 2)
        return hlo_notation_fail(
            f, from, 1, "expected two dimensions, groups and devices, found %zu", t.dims.count);
    hlo_notation_put(f, "[");
    hlo_notation_put_ints(f, t.dims.v, 2);
    hlo_notation_put(f, "]<=");
    put_iota(f, &t.iota);
    return true;
}
