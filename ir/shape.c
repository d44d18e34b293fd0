/* SPDX-License-Identifier: Apache-2.0 */
/* Interns the shapes of arrays and tuples, and computes their properties. */
#define XXH_INLINE_ALL
#include <string.h>
#include <xxhash.h>

#include "ir/intern.h"
#include "ir/ir.h"

struct hlo_shapeset {
    const hlo_shape **slots; /* open addressing with linear probing */
    size_t mask, count;
};

struct hlo_shapeset *hlo_shapeset_new(hlo_arena *arena) {
    struct hlo_shapeset *set = hlo_arena_zero(arena, sizeof *set);
    size_t slots = 256;
    set->slots = hlo_arena_zero(arena, slots * sizeof *set->slots);
    set->mask = slots - 1;
    return set;
}

static uint64_t mix(uint64_t hash, uint64_t value) {
    return XXH64(&value, sizeof value, hash);
}

static uint64_t hash_shape(const hlo_shape *s) {
    uint64_t hash = mix((uint64_t)s->type * 2 + s->buffer, s->rank);
    if (s->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < s->rank; i++) hash = mix(hash, s->elements[i]->hash);
        return hash;
    }
    if (s->rank) hash = XXH64(s->dims, s->rank * sizeof *s->dims, hash);
    if (s->dynamic) hash = XXH64(s->dynamic, s->rank * sizeof *s->dynamic, hash);
    const hlo_layout *l = s->layout;
    if (!l) return hash;
    hash = mix(hash, 1);
    if (s->rank) hash = XXH64(l->minor_to_major, s->rank * sizeof *l->minor_to_major, hash);
    hash = mix(hash, (uint64_t)l->element_bits);
    hash = mix(hash, (uint64_t)l->memory_space);
    return l->rest ? XXH64(l->rest, strlen(l->rest), hash) : hash;
}

static bool same_ints(const int64_t *a, const int64_t *b, uint32_t count) {
    return count == 0 || memcmp(a, b, count * sizeof *a) == 0;
}

static bool same_shape(const hlo_shape *a, const hlo_shape *b) {
    if (a->hash != b->hash || a->type != b->type || a->rank != b->rank || a->buffer != b->buffer)
        return false;
    if (a->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < a->rank; i++)
            if (a->elements[i] != b->elements[i]) return false;
        return true;
    }
    if (!same_ints(a->dims, b->dims, a->rank) || !a->dynamic != !b->dynamic) return false;
    if (a->dynamic && memcmp(a->dynamic, b->dynamic, a->rank * sizeof *a->dynamic) != 0)
        return false;
    return !a->layout || !b->layout
               ? a->layout == b->layout
               : same_ints(a->layout->minor_to_major, b->layout->minor_to_major, a->rank) &&
                     a->layout->element_bits == b->layout->element_bits &&
                     a->layout->memory_space == b->layout->memory_space &&
                     (a->layout->rest == b->layout->rest ||
                      (a->layout->rest && b->layout->rest &&
                       strcmp(a->layout->rest, b->layout->rest) == 0));
}

static hlo_shape *copy_shape(hlo_module *module, const hlo_shape *from) {
    hlo_arena *arena = module->arena;
    hlo_shape *s = hlo_arena_copy(arena, from, sizeof *from);
    if (s->type == HLO_TYPE_TUPLE) {
        s->elements = hlo_arena_copy(arena, s->elements, s->rank * sizeof *s->elements);
        return s;
    }
    s->dims = hlo_arena_copy(arena, s->dims, s->rank * sizeof *s->dims);
    if (s->dynamic) s->dynamic = hlo_arena_copy(arena, s->dynamic, s->rank * sizeof *s->dynamic);
    module->dynamic_seen |= s->dynamic != NULL;
    if (s->layout) {
        hlo_layout *l = hlo_arena_copy(arena, s->layout, sizeof *l);
        l->minor_to_major =
            hlo_arena_copy(arena, l->minor_to_major, s->rank * sizeof *l->minor_to_major);
        if (l->rest) l->rest = hlo_intern_string(module, l->rest);
        s->layout = l;
        module->spaces_seen |= l->memory_space != 0;
    }
    return s;
}

const hlo_shape *hlo_shape_intern(hlo_module *module, const hlo_shape *shape) {
    struct hlo_shapeset *set = module->shapes;
    hlo_shape key = *shape;
    const hlo_layout *l = key.layout;
    /* A scalar has no element order: dropping its layout keeps one pointer per shape. */
    if (key.rank == 0 && l && !l->rest && !l->element_bits && !l->memory_space) key.layout = NULL;
    key.hash = hash_shape(&key);
    key.depth = key.type == HLO_TYPE_TUPLE;
    key.size = 1;
    for (uint32_t i = 0; key.depth && i < key.rank; i++) {
        if (key.elements[i]->depth >= key.depth) key.depth = key.elements[i]->depth + 1;
        if (__builtin_add_overflow(key.size, key.elements[i]->size, &key.size))
            key.size = UINT32_MAX;
    }
    size_t at = key.hash & set->mask;
    for (; set->slots[at]; at = (at + 1) & set->mask)
        if (same_shape(set->slots[at], &key)) return set->slots[at];
    const hlo_shape *made = copy_shape(module, &key);
    set->slots[at] = made;
    if (++set->count * 2 > set->mask) {
        const size_t mask = set->mask * 2 + 1;
        const hlo_shape **slots = hlo_arena_zero(module->arena, (mask + 1) * sizeof *slots);
        for (size_t i = 0; i <= set->mask; i++) {
            if (!set->slots[i]) continue;
            size_t slot = set->slots[i]->hash & mask;
            while (slots[slot]) slot = (slot + 1) & mask;
            slots[slot] = set->slots[i];
        }
        set->slots = slots;
        set->mask = mask;
    }
    return made;
}

enum { INLINE_RANK = 16 };

const hlo_shape *hlo_shape_with_layout(hlo_module *module, hlo_type type, uint32_t rank,
                                       const int64_t *dims, const int64_t *minor_to_major) {
    int64_t few[INLINE_RANK];
    int64_t *order = (int64_t *)minor_to_major;
    if (!order) {
        order = rank <= INLINE_RANK ? few : hlo_arena_array(module->arena, rank, sizeof *order);
        for (uint32_t i = 0; i < rank; i++) order[i] = rank - 1 - i;
    }
    hlo_layout layout = {.minor_to_major = order};
    hlo_shape shape = {.type = type, .rank = rank, .dims = dims, .layout = &layout};
    return hlo_shape_intern(module, &shape);
}

const hlo_shape *hlo_shape_array(hlo_module *module, hlo_type type, uint32_t rank,
                                 const int64_t *dims) {
    return hlo_shape_with_layout(module, type, rank, dims, NULL);
}

const hlo_shape *hlo_shape_tuple(hlo_module *module, uint32_t count,
                                 const hlo_shape *const *elements) {
    hlo_shape shape = {
        .type = HLO_TYPE_TUPLE, .rank = count, .elements = (const hlo_shape **)elements};
    return hlo_shape_intern(module, &shape);
}

const hlo_shape *hlo_shape_retype(hlo_module *module, const hlo_shape *shape, hlo_type type) {
    hlo_shape retyped = *shape;
    hlo_layout layout;
    retyped.type = type;
    if (shape->layout && hlo_types[type].bits != hlo_types[shape->type].bits) {
        layout = *shape->layout;
        layout.element_bits = 0;
        retyped.layout = &layout;
    }
    return hlo_shape_intern(module, &retyped);
}

int64_t hlo_shape_count(const hlo_shape *shape) {
    int64_t count = 1;
    bool fits = true, empty = false;
    if (shape->type == HLO_TYPE_TUPLE) return -1;
    for (uint32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] < 0) return -1;
        fits &= !__builtin_mul_overflow(count, shape->dims[i], &count);
        empty |= shape->dims[i] == 0;
    }
    return empty ? 0 : fits ? count : -1;
}

int64_t hlo_shape_bytes(const hlo_shape *shape) {
    int64_t bytes = 0;
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) {
            int64_t part = hlo_shape_bytes(shape->elements[i]);
            if (part < 0 || __builtin_add_overflow(bytes, part, &bytes)) return -1;
        }
        return bytes;
    }
    int64_t count = hlo_shape_count(shape);
    if (count < 0 || __builtin_mul_overflow(count, hlo_types[shape->type].bytes, &bytes)) return -1;
    return bytes;
}

bool hlo_shape_is_array(const hlo_shape *shape) {
    return hlo_types[shape->type].bits > 0;
}

uint32_t hlo_shape_leaf_count(const hlo_shape *shape) {
    if (shape->type != HLO_TYPE_TUPLE) return hlo_types[shape->type].bytes != 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < shape->rank; i++) count += hlo_shape_leaf_count(shape->elements[i]);
    return count;
}

bool hlo_shape_is_scalar(const hlo_shape *shape) {
    return hlo_shape_is_array(shape) && shape->rank == 0;
}

bool hlo_shape_same_dims(const hlo_shape *a, const hlo_shape *b) {
    return hlo_shape_is_array(a) && hlo_shape_is_array(b) && a->rank == b->rank &&
           same_ints(a->dims, b->dims, a->rank);
}

bool hlo_shape_compatible(const hlo_shape *a, const hlo_shape *b) {
    if (a == b) return true;
    if (a->type != b->type || a->rank != b->rank || a->buffer != b->buffer) return false;
    if (a->type != HLO_TYPE_TUPLE) return same_ints(a->dims, b->dims, a->rank);
    for (uint32_t i = 0; i < a->rank; i++)
        if (!hlo_shape_compatible(a->elements[i], b->elements[i])) return false;
    return true;
}

bool hlo_shape_is_row_major(const hlo_shape *shape) {
    if (!shape->layout) return true;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->layout->minor_to_major[i] != shape->rank - 1 - i) return false;
    return true;
}

bool hlo_shape_is_ordered(const hlo_shape *shape) {
    uint64_t named = 0; /* a bit for each of the first 64 dimensions; later dimensions are searched
                         * for */
    for (uint32_t i = 0; shape->layout && i < shape->rank; i++) {
        const int64_t *order = shape->layout->minor_to_major, dim = order[i];
        if (dim < 0 || dim >= shape->rank || (dim < 64 && named >> dim & 1)) return false;
        for (uint32_t before = 0; dim >= 64 && before < i; before++)
            if (order[before] == dim) return false;
        if (dim < 64) named |= (uint64_t)1 << dim;
    }
    return true;
}

bool hlo_shape_same_memory(const hlo_shape *a, const hlo_shape *b) {
    if (!hlo_shape_is_array(a)) return a == b;
    if (a->type != b->type || hlo_shape_count(a) != hlo_shape_count(b)) return false;
    if (hlo_shape_is_row_major(a) && hlo_shape_is_row_major(b)) return true;
    return a->layout && b->layout && hlo_shape_same_dims(a, b) &&
           memcmp(a->layout->minor_to_major, b->layout->minor_to_major,
                  a->rank * sizeof *a->layout->minor_to_major) == 0;
}

bool hlo_shape_is_addressable(const hlo_shape *shape) {
    int64_t bytes = hlo_types[shape->type].bytes;
    for (uint32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0 ||
            (shape->dims[i] && __builtin_mul_overflow(bytes, shape->dims[i], &bytes)))
            return false;
    return true;
}

void hlo_shape_strides(const hlo_shape *shape, int64_t *out_strides) {
    int64_t stride = 1;
    bool ordered = shape->layout && hlo_shape_is_ordered(shape);
    for (uint32_t i = 0; i < shape->rank; i++) {
        int64_t dim = ordered ? shape->layout->minor_to_major[i] : shape->rank - 1 - i;
        out_strides[dim] = stride;
        /* The product wraps around only if another dimension is 0, so that the array has no
         * elements. */
        stride = (int64_t)((uint64_t)stride * (uint64_t)shape->dims[dim]);
    }
}
