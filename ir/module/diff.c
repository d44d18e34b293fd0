/* SPDX-License-Identifier: Apache-2.0 */
#define XXH_INLINE_ALL
#include "ir/module/diff.h"
#include "ir/intern.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t mix(uint64_t hash, uint64_t value) {
    return XXH64(&value, sizeof value, hash);
}

/* The hashes of one module's instructions and computations, by id. */
typedef struct hashes {
    const hlo_module *module;
    uint64_t *whole; /* hashes of instructions with all their dependencies */
    uint64_t *alone; /* hashes of instructions without operands and called computations */
    uint64_t *comps;
    bool ordered;
} hashes;

static uint64_t hash_literal(const hlo_literal *literal) {
    uint64_t hash = mix(literal->shape->hash, literal->elided);
    if (literal->data) return XXH64(literal->data, (size_t)hlo_shape_bytes(literal->shape), hash);
    for (uint32_t i = 0; literal->elements && i < literal->shape->rank; i++)
        hash = mix(hash, hash_literal(literal->elements[i]));
    return hash;
}

static bool is_metadata(hlo_attr_id id) {
    return id == HLO_ATTR_METADATA || id == HLO_ATTR_ORIGIN || id == HLO_ATTR_ORIGIN_RECOVERY_TABLE;
}

static uint64_t hash_attrs(const hashes *h, const hlo_attr *attrs, uint32_t count, bool alone);

/* Hashes an attribute; `alone`: without the instructions and computations that it names. */
static uint64_t hash_attr(const hashes *h, const hlo_attr *attr, bool alone) {
    uint64_t hash = mix(0, attr->id);
    switch (hlo_attrs_info[attr->id].kind) {
    case HLO_KIND_INT:
    case HLO_KIND_BOOL: return mix(hash, (uint64_t)attr->u.i);
    case HLO_KIND_FLOAT: return XXH64(&attr->u.f, sizeof attr->u.f, hash);
    case HLO_KIND_WORD:
    case HLO_KIND_STRING:
    case HLO_KIND_BYTES:
    case HLO_KIND_FORM:
    case HLO_KIND_GROUPS:
    case HLO_KIND_SHARDING:
    case HLO_KIND_ALIASES:
    case HLO_KIND_RAW:
        return XXH64(hlo_attr_text(attr), hlo_intern_length(hlo_attr_text(attr)), hash);
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING:
        return XXH64(attr->u.ints->v, attr->u.ints->count * sizeof *attr->u.ints->v, hash);
    case HLO_KIND_COMPUTATION: return alone ? hash : mix(hash, h->comps[attr->u.comp->id]);
    case HLO_KIND_COMPUTATIONS:
        for (uint32_t i = 0; !alone && i < attr->u.comps->count; i++)
            hash = mix(hash, h->comps[attr->u.comps->v[i]->id]);
        return hash;
    case HLO_KIND_INSTRS:
        for (uint32_t i = 0; !alone && i < attr->u.instrs->count; i++)
            hash = mix(hash, h->whole[attr->u.instrs->v[i]->id]);
        return hash;
    case HLO_KIND_SHAPES:
    case HLO_KIND_LAYOUT:
        for (uint32_t i = 0; i < attr->u.shapes->count; i++)
            hash = mix(hash, attr->u.shapes->v[i]->hash);
        return hash;
    case HLO_KIND_SHAPE: return mix(hash, attr->u.shape->hash);
    case HLO_KIND_LITERAL: return mix(hash, hash_literal(attr->u.literal));
    case HLO_KIND_ATTRS:
        return mix(hash, hash_attrs(h, attr->u.attrs->v, attr->u.attrs->count, alone));
    }
    return hash;
}

/* Hashes attributes independently of their order. */
static uint64_t hash_attrs(const hashes *h, const hlo_attr *attrs, uint32_t count, bool alone) {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!is_metadata(attrs[i].id)) sum += hash_attr(h, &attrs[i], alone);
    return sum;
}

/* Hashes callees before callers, operands before users. */
static hashes hash_module(const hlo_module *module, hlo_arena *scratch) {
    hashes h = {.module = module,
                .whole = hlo_arena_zero(scratch, module->next_id * sizeof *h.whole),
                .alone = hlo_arena_zero(scratch, module->next_id * sizeof *h.alone),
                .comps = hlo_arena_zero(scratch, module->next_computation_id * sizeof *h.comps)};
    h.ordered = hlo_module_int(module, HLO_ATTR_IS_SCHEDULED, false);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        uint64_t sum = 0;
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
            uint64_t hash = mix(instr->shape->hash, instr->op);
            if (instr->op == HLO_OP_PARAMETER) hash = mix(hash, (uint64_t)instr->u.parameter);
            if (instr->op == HLO_OP_CONSTANT && instr->u.literal)
                hash = mix(hash, hash_literal(instr->u.literal));
            h.alone[instr->id] = mix(hash, hash_attrs(&h, instr->attrs, instr->attr_count, true));
            hash = mix(hash, hash_attrs(&h, instr->attrs, instr->attr_count, false));
            const bool commutes = hlo_op_is(instr->op, HLO_COMMUTES);
            uint64_t operands = 0;
            for (uint32_t i = 0; i < instr->operand_count; i++)
                operands = (commutes ? operands : mix(operands, 0)) +
                           h.whole[hlo_instr_operand(instr, i)->id];
            h.whole[instr->id] = mix(hash, operands);
            sum = (h.ordered ? mix(sum, 0) : sum) + h.whole[instr->id];
        }
        uint64_t hash = mix(sum, comp->root ? h.whole[comp->root->id] : 0);
        h.comps[comp->id] = mix(hash, hash_attrs(&h, comp->attrs, comp->attr_count, false));
    }
    return h;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static const hlo_instruction *first_lacking(const hashes *h, const hlo_computation *comp,
                                            const hashes *other_h, const hlo_computation *other,
                                            hlo_arena *scratch) {
    hlo_arena_mark mark = hlo_arena_here(scratch);
    uint64_t *there = hlo_arena_array(scratch, other->instr_count, sizeof *there);
    size_t count = 0;
    for (const hlo_instruction *instr = other->first; instr; instr = hlo_instr_next(instr))
        there[count++] = other_h->whole[instr->id];
    qsort(there, count, sizeof *there, by_value);
    const hlo_instruction *found = comp->first;
    while (found && bsearch(&h->whole[found->id], there, count, sizeof *there, by_value))
        found = found->next;
    hlo_arena_release(scratch, mark);
    return found;
}

typedef struct tagged {
    uint64_t hash;
    uint8_t op;
} tagged;

static int by_hash(const void *a, const void *b) {
    const tagged *x = a, *y = b;
    return (x->hash > y->hash) - (x->hash < y->hash);
}

static tagged *all_alone(const hashes *h, hlo_arena *scratch, size_t *out_count) {
    tagged *all = hlo_arena_array(scratch, h->module->next_id, sizeof *all);
    size_t count = 0;
    for (const hlo_computation *comp = h->module->first; comp; comp = comp->next)
        for (const hlo_instruction *instr = comp->first; instr; instr = hlo_instr_next(instr))
            all[count++] = (tagged){h->alone[instr->id], (uint8_t)instr->op};
    qsort(all, count, sizeof *all, by_hash);
    *out_count = count;
    return all;
}

typedef struct listed {
    const hlo_computation *comp;
    uint64_t hash;
    uint32_t place; /* position in the text */
} listed;

static int by_content(const void *a, const void *b) {
    const listed *x = a, *y = b;
    return x->hash != y->hash ? (x->hash > y->hash) - (x->hash < y->hash)
                              : (x->place > y->place) - (x->place < y->place);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const listed *)a)->comp->name, ((const listed *)b)->comp->name);
}

/* Lists all computations except the entry, which is paired with the entry of the other module. */
static listed *list_comps(const hashes *h, hlo_arena *scratch, size_t *out_count) {
    listed *list = hlo_arena_array(scratch, h->module->next_computation_id, sizeof *list);
    size_t count = 0;
    for (const hlo_computation *comp = h->module->first; comp; comp = comp->next)
        if (comp != h->module->entry) {
            list[count] = (listed){comp, h->comps[comp->id], (uint32_t)count};
            count++;
        }
    qsort(list, count, sizeof *list, by_content);
    *out_count = count;
    return list;
}

static int by_text(const void *a, const void *b) {
    const hlo_diff_pair *x = a, *y = b;
    uint32_t p = x->a ? x->a->id : UINT32_MAX, q = y->a ? y->a->id : UINT32_MAX;
    if (p != q) return (p > q) - (p < q);
    return x->b && y->b ? (x->b->id > y->b->id) - (x->b->id < y->b->id) : 0;
}

static void pair_comps(const hashes *a, const hashes *b, hlo_arena *scratch, hlo_diff *out) {
    size_t a_all, b_all, a_count = 0, b_count = 0, count = 0, i = 0, j = 0;
    listed *left = list_comps(a, scratch, &a_all), *right = list_comps(b, scratch, &b_all);
    /* Remove the elements that are in both lists. */
    while (i < a_all || j < b_all) {
        if (j == b_all || (i < a_all && left[i].hash < right[j].hash))
            left[a_count++] = left[i++];
        else if (i == a_all || right[j].hash < left[i].hash)
            right[b_count++] = right[j++];
        else
            i++, j++;
    }
    i = j = 0;
    qsort(left, a_count, sizeof *left, by_name);
    qsort(right, b_count, sizeof *right, by_name);
    hlo_diff_pair *pairs = hlo_arena_array(scratch, a_count + b_count + 1, sizeof *pairs);
    const hlo_computation *x = a->module->entry, *y = b->module->entry;
    bool entries = x && y ? a->comps[x->id] != b->comps[y->id] : x != y;
    if (entries) pairs[count++] = (hlo_diff_pair){.a = x, .b = y};
    while (i < a_count || j < b_count) {
        int order = i == a_count ? 1 : j == b_count ? -1 : by_name(&left[i], &right[j]);
        pairs[count++] = (hlo_diff_pair){.a = order <= 0 ? left[i].comp : NULL,
                                         .b = order >= 0 ? right[j].comp : NULL};
        i += order <= 0;
        j += order >= 0;
    }
    qsort(pairs + entries, count - entries, sizeof *pairs, by_text);
    for (size_t p = 0; p < count; p++) {
        if (!pairs[p].a || !pairs[p].b) continue;
        pairs[p].first_a = first_lacking(a, pairs[p].a, b, pairs[p].b, scratch);
        pairs[p].first_b = first_lacking(b, pairs[p].b, a, pairs[p].a, scratch);
    }
    out->pairs = pairs;
    out->pair_count = (uint32_t)count;
}

static uint64_t hash_header(const hashes *h, hlo_attr_id id) {
    const hlo_attr *attr = hlo_attrs_find(h->module->attrs, h->module->attr_count, id);
    const hlo_computation *entry = h->module->entry;
    if (attr || id != HLO_ATTR_ENTRY_COMPUTATION_LAYOUT || !entry || !entry->root)
        return attr ? hash_attr(h, attr, false) : 0;
    /* Without the attribute, the layouts are those of the entry, which a printed module contains.
     */
    uint64_t hash = mix(0, id);
    for (uint32_t i = 0; i < entry->parameter_count; i++)
        hash = mix(hash, entry->parameters[i]->shape->hash);
    return mix(hash, entry->root->shape->hash);
}

void hlo_diff_modules(const hlo_module *a, const hlo_module *b, hlo_arena *scratch,
                      hlo_diff *out_diff) {
    *out_diff = (hlo_diff){0};
    const hashes left = hash_module(a, scratch), right = hash_module(b, scratch);
    for (int id = 0; id < HLO_ATTR_COUNT; id++) {
        if (is_metadata((hlo_attr_id)id) ||
            (!hlo_attrs_find(a->attrs, a->attr_count, (hlo_attr_id)id) &&
             !hlo_attrs_find(b->attrs, b->attr_count, (hlo_attr_id)id)))
            continue;
        bool differs = hash_header(&left, (hlo_attr_id)id) != hash_header(&right, (hlo_attr_id)id);
        out_diff->header_differs[id] = differs;
        out_diff->header |= differs;
    }
    size_t a_count, b_count, i = 0, j = 0;
    const tagged *p = all_alone(&left, scratch, &a_count);
    const tagged *q = all_alone(&right, scratch, &b_count);
    while (i < a_count || j < b_count) {
        int order = i == a_count ? 1 : j == b_count ? -1 : by_hash(&p[i], &q[j]);
        if (order < 0) out_diff->removed[p[i].op]++;
        if (order > 0) out_diff->added[q[j].op]++;
        i += order <= 0;
        j += order >= 0;
    }
    pair_comps(&left, &right, scratch, out_diff);
    out_diff->same = !out_diff->header && out_diff->pair_count == 0;
}
