/* SPDX-License-Identifier: Apache-2.0 */
/* Devices by number: iotas, and tilings over them, in canonical form. */
#include "grammar/attr/devices.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_LIST = 1 << 20 };

enum { KINDS = HLO_SHARDING_REPLICATED + 1 };

static bool is_permutation(hlo_notation *f, const int64_t *perm, size_t count) {
    bool *seen = hlo_arena_zero(f->scratch, count);
    for (size_t i = 0; i < count; i++) {
        if (perm[i] < 0 || (size_t)perm[i] >= count || seen[perm[i]]) return false;
        seen[perm[i]] = true;
    }
    return true;
}

/* Removes dimension `d`, whose size is 1 or was multiplied into the dimension before it. */
static void drop_dim(hlo_iota *a, size_t d) {
    size_t to = 0;
    memmove(a->dims + d, a->dims + d + 1, (a->rank - d - 1) * sizeof *a->dims);
    for (size_t i = 0; i < a->rank; i++)
        if (a->perm[i] != (int64_t)d) a->perm[to++] = a->perm[i] - (a->perm[i] > (int64_t)d);
    a->rank--;
}

static void normalize_iota(hlo_iota *a) {
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

bool hlo_iota_make(hlo_notation *f, const char *from, const hlo_notation_ints *dims,
                   hlo_notation_ints *perm, hlo_iota *out) {
    if (dims->count == 1 && !perm->count) hlo_notation_add(f, perm, 0);
    if (!dims->count || perm->count != dims->count || !is_permutation(f, perm->v, perm->count))
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "expected a permutation of %zu dimensions", dims->count);
    *out = (hlo_iota){.dims = dims->v, .perm = perm->v, .rank = dims->count};
    for (size_t i = 0; i < dims->count; i++)
        if (dims->v[i] < 1) return true;
    normalize_iota(out);
    return true;
}

/* Reads `[2,2]T(1,0)`, or `[4]`. */
bool hlo_iota_read(hlo_notation *f, hlo_iota *out) {
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

/* Returns the product; -1 if a factor is less than 1 or the product overflows. */
static int64_t product(const int64_t *v, size_t count) {
    int64_t all = 1;
    for (size_t i = 0; i < count; i++)
        if (v[i] < 1 || __builtin_mul_overflow(all, v[i], &all)) return -1;
    return all;
}

/* A piece of one dimension of an iota, while it is reordered. */
typedef struct factor {
    int64_t dim, part, size; /* part: index among the pieces of one dimension, outermost first */
    size_t tile;             /* the dimension of the tiling that contains it */
} factor;

static int by_source(const void *a, const void *b) {
    const factor *x = a, *y = b;
    return x->dim != y->dim ? (x->dim > y->dim) - (x->dim < y->dim)
                            : (x->part > y->part) - (x->part < y->part);
}

/* Splits the iota so that each dimension of the tiling consists of whole pieces. Returns 0 if its
 * dimensions do not divide into such pieces. */
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
    normalize_iota(&a);
    return a;
}

/* Lists the numbers of an iota. */
static void list_iota(hlo_notation *f, const hlo_iota *a, int64_t count, hlo_notation_ints *out) {
    int64_t *stride = hlo_arena_array(f->scratch, a->rank, sizeof *stride), step = 1;
    int64_t *at = hlo_arena_zero(f->scratch, a->rank * sizeof *at);
    for (size_t d = a->rank; d-- > 0;) {
        stride[d] = step;
        step *= a->dims[d];
    }
    *out = (hlo_notation_ints){.v = hlo_arena_array(f->scratch, (size_t)count, sizeof *out->v),
                               .count = (size_t)count};
    for (size_t i = 0; i < out->count; i++) {
        out->v[i] = 0;
        for (size_t k = 0; k < a->rank; k++) out->v[i] += at[k] * stride[a->perm[k]];
        for (size_t k = a->rank; k-- > 0;) {
            if (++at[k] < a->dims[a->perm[k]]) break;
            at[k] = 0;
        }
    }
}

/* Reorders the dimensions of the listed devices. */
static void transpose_list(hlo_notation *f, hlo_tiling *t, const size_t *order) {
    size_t rank = t->dims.count;
    hlo_iota whole = {.rank = rank,
                      .dims = hlo_arena_copy(f->scratch, t->dims.v, rank * sizeof(int64_t)),
                      .perm = hlo_arena_array(f->scratch, rank, sizeof(int64_t))};
    for (size_t i = 0; i < rank; i++) whole.perm[i] = (int64_t)order[i];
    hlo_notation_ints places;
    list_iota(f, &whole, (int64_t)t->devices.count, &places);
    for (size_t i = 0; i < places.count; i++) places.v[i] = t->devices.v[places.v[i]];
    t->devices = places;
}

/* Puts the dimensions in `order`, and sorts the devices along the last `sort` dimensions, which
 * only replicate, by number. */
static void reorder(hlo_notation *f, hlo_tiling *t, const size_t *order, size_t sort) {
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
            qsort(t->devices.v + i, (size_t)last, sizeof(int64_t), hlo_compare_ints);
    }
    int64_t *dims = hlo_arena_array(f->scratch, rank, sizeof *dims);
    for (size_t i = 0; i < rank; i++) dims[i] = t->dims.v[order[i]];
    t->dims.v = dims;
}

hlo_sharding_kind hlo_tiling_normalize(hlo_notation *f, hlo_tiling *t) {
    size_t rank = t->dims.count, data = rank - t->kind_count, kept = data;
    bool alike = true;
    for (size_t i = 1; i < t->kind_count; i++) alike &= t->kinds[i] == t->kinds[0];
    int64_t tiled = product(t->dims.v, data);
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
bool hlo_tiling_read(hlo_notation *f, bool listed, hlo_tiling *t) {
    if (!hlo_notation_expect(f, "[") || !hlo_notation_int_list(f, "]", 1, &t->dims)) return false;
    t->iota.rank = 0;
    t->devices.count = 0;
    if (hlo_notation_take(f, "<=")) return hlo_iota_read(f, &t->iota);
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

bool hlo_tiling_read_kinds(hlo_notation *f, hlo_tiling *t) {
    t->kind_count = 0;
    if (!hlo_notation_expect(f, "{")) return false;
    while (hlo_notation_item(f, '}', t->kind_count)) {
        int64_t kind = 0;
        while (kind < KINDS && !hlo_notation_take_word(f, hlo_sharding_words[kind])) kind++;
        if (kind == KINDS || t->kind_count == HLO_MOST_TILE_KINDS)
            return hlo_notation_unexpected(f, "'manual', 'replicated', 'unreduced' or 'maximal'");
        t->kinds[t->kind_count++] = kind;
    }
    return hlo_notation_expect(f, "}");
}

bool hlo_tiling_is_whole(const hlo_tiling *t) {
    int64_t all = product(t->dims.v, t->dims.count);
    int64_t named = t->iota.rank ? product(t->iota.dims, t->iota.rank) : (int64_t)t->devices.count;
    return all > 0 && all == named;
}
