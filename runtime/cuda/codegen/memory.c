/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in memory: loads and stores of single elements or of packs. */
#include <ctype.h>
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

/* --------------------------------------------------------------------------- how wide a pack is */

enum {
    ACCESSES = 2, /* maximum loads or stores per pack */
    FEW = 1 << 16 /* number of elements up to which threads are scarcer than instructions */
};

int emit_pack_width(int narrowest, int widest) {
    int width = narrowest < EMIT_ACCESS ? EMIT_ACCESS / narrowest : 1;
    while (width > 1 && width * widest > ACCESSES * EMIT_ACCESS) width /= 2;
    return width;
}

int emit_width(const emit *e, const emit_space *space, int64_t side) {
    const hlo_job *job = e->job;
    int widest = 1, narrowest = EMIT_ACCESS;
    for (uint32_t i = 0; i < job->operand_count + job->result_count; i++) {
        const hlo_view *view =
            i < job->operand_count ? &job->operands[i] : &job->results[i - job->operand_count];
        int bytes = hlo_types[view->type].bytes;
        if (hlo_view_count(view) != space->count) continue;
        if (bytes > widest) widest = bytes;
        if (bytes < narrowest) narrowest = bytes;
    }
    int width = emit_pack_width(narrowest, widest);
    while (width > 1 && (side % width != 0 || space->count / width < FEW)) width /= 2;
    return width;
}

/* --------------------------------------------------------------------------------------- leaves */

static void note_occurs(emit *e, emit_array *array) {
    if (array->occurs) return;
    array->occurs = true;
    if (++e->array_count > CUDA_POINTERS) emit_refuse(e, "has too many operands for a CUDA kernel");
}

const char *emit_operand(emit *e, uint32_t leaf) {
    note_occurs(e, &e->operands[leaf]);
    return hlo_arena_format(e->arena, "p%u", leaf);
}

const char *emit_result(emit *e, uint32_t leaf) {
    note_occurs(e, &e->results[leaf]);
    return hlo_arena_format(e->arena, "q%u", leaf);
}

bool emit_is_member(const emit *e, const hlo_instr *instr) {
    const hlo_group *group = &e->job->group;
    for (uint32_t i = 0; i < group->instr_count; i++)
        if (group->instrs[i] == instr) return true;
    return false;
}

uint32_t emit_leaf(const emit *e, const hlo_instr *instr) {
    const hlo_group *group = &e->job->group;
    uint32_t leaf = 0;
    for (uint32_t i = 0; i < group->input_count && group->inputs[i] != instr; i++)
        leaf += hlo_shape_leaf_count(group->inputs[i]->shape);
    return leaf;
}

/* Returns the address of the thread's elements if they are contiguous, starting at a multiple of
 * the width; otherwise NULL. */
static const char *pack_address(emit *e, const emit_index *index, const hlo_view *view,
                                const char *address) {
    if (e->width == 1 || e->open_count != e->pack_depth) return NULL;
    if (e->linear && strcmp(address, e->linear) == 0) return e->base;
    if (!e->minor) return NULL;
    const char *sum = "0";
    bool moves = false;
    for (uint32_t d = 0; d < index->rank; d++) {
        const char *at = index->at[d];
        if (strcmp(at, "0") == 0 || view->strides[d] == 0) continue;
        const char *first = emit_first(e, at);
        if (first) {
            if (moves || view->strides[d] != 1) return NULL;
            moves = true;
            at = first;
        } else if (!emit_is_outer(e, at, false) || view->strides[d] % e->width != 0) {
            return NULL;
        }
        sum = hlo_arena_format(e->arena, "%s + %s * %lld", sum, at, (long long)view->strides[d]);
    }
    return moves ? sum : NULL;
}

/* Returns the address of the row of a tile that contains the thread's element, in an array in which
 * rows are columns. NULL: they are not, or do not begin at multiples of the height. */
static const char *turned_address(emit *e, const emit_index *index, const hlo_view *view) {
    if (!e->row || e->open_count != e->pack_depth) return NULL;
    const char *sum = "0";
    bool moves = false, turns = false;
    for (uint32_t d = 0; d < index->rank; d++) {
        const char *at = index->at[d];
        const int64_t stride = view->strides[d];
        if (strcmp(at, "0") == 0 || stride == 0) continue;
        if (strcmp(at, e->row) == 0 && stride == 1 && !turns) {
            turns = true;
            at = e->row_base;
        } else if (strcmp(at, e->row) == 0 || stride % e->height != 0) {
            return NULL;
        } else if (strcmp(at, e->minor) == 0 && !moves) {
            moves = true;
            at = hlo_arena_format(e->arena, "(%s + u)", e->minor_base);
        } else if (!emit_is_outer(e, at, true)) {
            return NULL;
        }
        sum = hlo_arena_format(e->arena, "%s + %s * %lld", sum, at, (long long)stride);
    }
    return moves && turns ? sum : NULL;
}

/* Records that the operand has contiguous elements along another dimension of the space than the
 * thread's. */
static void note_turned(emit *e, uint32_t operand, const emit_index *index) {
    if (e->row || e->width == 1 || !e->minor || e->open_count != e->pack_depth) return;
    const hlo_view *view = &e->job->operands[operand];
    const char *fastest = NULL;
    bool moves = false;
    for (uint32_t d = 0; d < index->rank; d++) {
        if (index->dims[d] > 1 && view->strides[d] == 1) fastest = index->at[d];
        moves |= view->strides[d] > 1 && strcmp(index->at[d], e->minor) == 0;
    }
    for (uint32_t d = 0; fastest && moves && d < e->outer_count; d++) {
        if (strcmp(e->outer[d], fastest) != 0 || isdigit((unsigned char)*fastest)) continue;
        if (e->turned_dim < 0) e->turned_dim = d;
        e->operands[operand].turned = e->turned_dim == d;
        return;
    }
}

/* Returns the pack at an address of type `cell`, in which the index of the thread's element is `u`
 * or, with `across`, the repeat's counter. */
static const char *pack_name(emit *e, const char *pointer, const char *cell, const char *address,
                             bool across) {
    const char *whole = hlo_arena_format(e->arena, "%s + (%s)", pointer, address);
    for (uint32_t i = 0; i < e->pack_count; i++)
        if (strcmp(e->packs[i].address, whole) == 0) return e->packs[i].name;
    hlo_arena_grow(e->arena, &e->packs, e->pack_count, &e->pack_capacity, sizeof *e->packs);
    const char *name = emit_name(e, "w"), *used = name;
    const char *type =
        hlo_arena_format(e->arena, "pack<%s, %d>", cell, across ? e->height : e->width);
    const char *load = hlo_arena_format(e->arena, "*(const %s *)(%s);", type, whole);
    if (across) {
        used = hlo_arena_format(e->arena, "%s[u]", name);
        emit_add(e, &e->across, name,
                 hlo_arena_format(e->arena, "%s %s[%d];", type, name, e->width));
        emit_add(e, &e->across, name, "#pragma unroll");
        emit_add(e, &e->across, name,
                 hlo_arena_format(e->arena, "for (int u = 0; u < %d; u++) %s = %s", e->width, used,
                                  load));
    } else if (e->repeat) {
        used = hlo_arena_format(e->arena, "%s[%s]", name, e->repeat);
        emit_add(e, &e->declared, name,
                 hlo_arena_format(e->arena, "%s %s[%d];", type, name, e->repeat_count));
        emit_add(e, &e->before, name, hlo_arena_format(e->arena, "%s = %s", used, load));
    } else {
        emit_add(e, &e->before, name,
                 hlo_arena_format(e->arena, "const %s %s = %s", type, name, load));
    }
    e->packs[e->pack_count].name = used;
    e->packs[e->pack_count++].address = whole;
    return used;
}

static const char *load_from(emit *e, const hlo_view *view, const char *pointer,
                             const emit_index *index) {
    const cuda_type *type = &cuda_types[view->type];
    if (!type->cell)
        return emit_refuse(e, "has no CUDA kernel for elements of type %s",
                           hlo_types[view->type].name);
    const char *address = emit_dot(e, index, view->strides);
    const char *packed = pack_address(e, index, view, address);
    const char *turned = packed ? NULL : turned_address(e, index, view);
    if (packed || turned) {
        const char *pack = pack_name(e, pointer, type->cell, packed ? packed : turned, turned);
        return emit_value(e, "c", type->cell, "%s.v[%s]", pack, packed ? "u" : e->repeat);
    }
    return emit_value(e, "c", type->cell, "%s[%s]", pointer, address);
}

/* Records how an element of an array is read or written. */
static void note_access(emit *e, emit_access *a, const hlo_view *view, const emit_index *index) {
    const char *address = emit_dot(e, index, view->strides);
    a->elsewhere |= a->address && strcmp(a->address, address) != 0;
    a->address = address;
    if (pack_address(e, index, view, address)) return;
    a->after = ++e->accesses + 1;
    if (!a->first) a->first = e->accesses;
}

const char *emit_load(emit *e, uint32_t operand, const emit_index *index) {
    note_access(e, &e->operands[operand].access, &e->job->operands[operand], index);
    note_turned(e, operand, index);
    return load_from(e, &e->job->operands[operand], emit_operand(e, operand), index);
}

const char *emit_load_result(emit *e, uint32_t result, const emit_index *index) {
    return load_from(e, &e->job->results[result], emit_result(e, result), index);
}

void emit_store(emit *e, uint32_t result, const emit_index *index, const char *cell) {
    const hlo_view *view = &e->job->results[result];
    const char *pointer = emit_result(e, result), *type = cuda_types[view->type].cell;
    if (e->turned && e->turned[result]) {
        emit_text(e, "%s[u].v[r] = %s;", e->turned[result], cell);
        return;
    }
    note_access(e, &e->results[result].access, view, index);
    const char *address = emit_dot(e, index, view->strides);
    const char *packed = pack_address(e, index, view, address);
    if (!packed) {
        emit_text(e, "%s[%s] = %s;", pointer, address, cell);
        return;
    }
    const char *name = emit_name(e, "w");
    type = hlo_arena_format(e->arena, "pack<%s, %d>", type, e->width);
    emit_add(e, &e->before, NULL, hlo_arena_format(e->arena, "%s %s;", type, name));
    emit_text(e, "%s.v[u] = %s;", name, cell);
    emit_add(e, &e->after, NULL,
             hlo_arena_format(e->arena, "*(%s *)(%s + (%s)) = %s;", type, pointer, packed, name));
}
