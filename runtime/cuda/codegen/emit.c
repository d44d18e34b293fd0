/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the text of a kernel: lines, scopes, names and indices, loads and stores of elements or
 * packs, and the loops over a thread's elements. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

const cuda_type cuda_types[HLO_TYPE_COUNT] = {
#define CUDA_TYPE(id, cell, compute) [HLO_TYPE_##id] = {cell, compute},
#include "runtime/cuda/codegen/type.def"
#undef CUDA_TYPE
};

static const char *vformat(hlo_arena *arena, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = hlo_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, args);
    return text;
}

void emit_init(emit *e, const cuda_device *device, const hlo_job *job, hlo_arena *arena) {
    *e = (emit){.device = device,
                .job = job,
                .arena = arena,
                .offset = "int",
                .width = 1,
                .turned_dim = -1,
                .operands = hlo_arena_zero(arena, (job->operand_count + 1) * sizeof *e->operands),
                .results = hlo_arena_zero(arena, (job->result_count + 1) * sizeof *e->results)};
}

void emit_restart(emit *e, emit_lines *lines) {
    e->out = lines;
    e->open_count = 0;
    e->open[e->open_count++] = e->scope = e->next_scope++;
    for (uint32_t i = 0; i < e->job->operand_count; i++)
        e->operands[i] = (emit_array){.turned = e->operands[i].turned};
    for (uint32_t i = 0; i < e->job->result_count; i++) e->results[i] = (emit_array){0};
    e->array_count = 0;
}

const char *emit_refuse(emit *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (!e->why) e->why = vformat(e->arena, format, args);
    va_end(args);
    return "0";
}

/* ---------------------------------------------------------------------------------------- lines */

static void add_line(emit *e, emit_lines *lines, const char *target, const char *text) {
    hlo_arena_grow(e->arena, &lines->v, lines->count, &lines->capacity, sizeof *lines->v);
    lines->v[lines->count++] = (emit_line){target, text};
}

void emit_set(emit *e, const char *target, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(e, e->out, target, vformat(e->arena, format, args));
    va_end(args);
}

const char *emit_name(emit *e, const char *prefix) {
    return hlo_arena_format(e->arena, "%s_%u", prefix, e->next_name++);
}

const char *emit_value(emit *e, const char *prefix, const char *type, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *name = emit_name(e, prefix), *value = vformat(e->arena, format, args);
    va_end(args);
    emit_set(e, name, "const %s %s = %s;", type, name, value);
    return name;
}

void emit_open(emit *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    add_line(e, e->out, NULL, vformat(e->arena, format, args));
    va_end(args);
    if (e->open_count == sizeof e->open / sizeof *e->open) {
        emit_refuse(e, "is nested too deeply for a CUDA kernel");
        e->open_count--;
    }
    e->open[e->open_count++] = e->scope = e->next_scope++;
}

void emit_open_unrolled(emit *e, const char *name, int count) {
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int %s = 0; %s < %d; %s++) {", name, name, count, name);
}

void emit_close_as(emit *e, const char *line) {
    e->scope = e->open[--e->open_count - 1];
    emit_text(e, "%s", line);
}

void emit_close(emit *e) {
    emit_close_as(e, "}");
}

static bool is_open(const emit *e, uint32_t scope) {
    for (uint32_t i = e->open_count; i-- > 0;)
        if (e->open[i] == scope) return true;
    return false;
}

/* Names end in `_` and a number. */
static uint32_t name_at(const char *text, size_t length) {
    size_t digits = length;
    while (digits > 0 && isdigit((unsigned char)text[digits - 1])) digits--;
    if (digits == length || digits < 2 || text[digits - 1] != '_') return UINT32_MAX;
    return (uint32_t)strtoul(text + digits, NULL, 10);
}

/* Returns the first word from `text` on: letters, digits and `_`; *out_length may be 0. */
static const char *next_word(const char *text, size_t *out_length) {
    size_t length = 0;
    while (*text && !isalnum((unsigned char)*text) && *text != '_') text++;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    *out_length = length;
    return text;
}

/* Sets set[n] for the number n of each name in the text, if n is less than `count`. */
static void mark_names(const char *text, bool *set, uint32_t count) {
    size_t length;
    for (text = next_word(text, &length); length; text = next_word(text + length, &length)) {
        const uint32_t name = name_at(text, length);
        if (name < count) set[name] = true;
    }
}

const char *emit_finish(const emit *e, const emit_lines *lines) {
    bool *used = hlo_arena_zero(e->arena, e->next_name + 1);
    bool *kept = hlo_arena_zero(e->arena, lines->count + 1);
    size_t size = 1;
    for (uint32_t i = lines->count; i-- > 0;) {
        const emit_line *line = &lines->v[i];
        if (line->target && !used[name_at(line->target, strlen(line->target))]) continue;
        kept[i] = true;
        mark_names(line->text, used, e->next_name);
        size += strlen(line->text) + 1;
    }
    static const char wait[] = "  wait_for_kernels();\n";
    uint32_t depth = 1;
    size += sizeof wait + (size_t)2 * sizeof e->open / sizeof *e->open * lines->count;
    char *text = hlo_arena_alloc(e->arena, size), *at = stpcpy(text, wait);
    for (uint32_t i = 0; i < lines->count; i++) {
        if (!kept[i]) continue;
        const char *line = lines->v[i].text;
        if (line[0] == '}' && depth) depth--;
        memset(at, ' ', 2 * depth);
        at += 2 * depth;
        size_t length = strlen(line);
        memcpy(at, line, length);
        at[length] = '\n';
        at += length + 1;
        if (length && line[length - 1] == '{') depth++;
    }
    *at = 0;
    return text;
}

/* -------------------------------------------------------------------------------------- indices */

/* True if the index is the same for all elements of a thread. `given`: only numbers and names in
 * `outer` qualify, not indices derived from them. */
static bool is_outer(const emit *e, const char *name, bool given) {
    if (isdigit((unsigned char)name[0])) return true;
    for (uint32_t i = 0; i < e->outer_count; i++)
        if (strcmp(e->outer[i], name) == 0) return true;
    for (uint32_t i = 0; i < e->derived_count && !given; i++)
        if (strcmp(e->derived[i], name) == 0) return true;
    return false;
}

/* True if the current code runs for each of several elements of a thread. */
static bool in_elements(const emit *e) {
    return e->width > 1 && e->pack_depth && e->open_count == e->pack_depth;
}

/* Records that the name is an index that is the same for all elements of a thread. */
static void add_derived(emit *e, const char *name) {
    hlo_arena_grow(e->arena, &e->derived, e->derived_count, &e->derived_capacity,
                   sizeof *e->derived);
    e->derived[e->derived_count++] = name;
}

const char *emit_offset(emit *e, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = vformat(e->arena, format, args);
    va_end(args);
    const char *at = text;
    while (isalnum((unsigned char)*at) || *at == '_') at++;
    if (!*at) return text;
    for (uint32_t i = 0; i < e->sum_count; i++)
        if (is_open(e, e->sums[i].scope) && strcmp(e->sums[i].text, text) == 0)
            return e->sums[i].name;
    hlo_arena_grow(e->arena, &e->sums, e->sum_count, &e->sum_capacity, sizeof *e->sums);
    const char *name = emit_value(e, "i", e->offset, "%s", text);
    /* True if the index is computed only from indices that are the same for all elements. */
    bool derived = in_elements(e);
    size_t length;
    for (at = next_word(text, &length); length && derived; at = next_word(at + length, &length))
        derived = is_outer(e, hlo_arena_format(e->arena, "%.*s", (int)length, at), false);
    if (derived) add_derived(e, name);
    e->sums[e->sum_count].text = text;
    e->sums[e->sum_count].name = name;
    e->sums[e->sum_count++].scope = e->scope;
    return name;
}

/* If `at` is the index of each of the thread's elements, and the index of the first is a multiple
 * of the width, returns the index of the first. Otherwise returns NULL. */
static const char *first_index(const emit *e, const char *at) {
    if (!e->minor) return NULL;
    if (strcmp(at, e->minor) == 0) return e->minor_base;
    for (uint32_t i = 0; i < e->moved_count; i++)
        if (strcmp(e->moved[i].name, at) == 0) return e->moved[i].first;
    return NULL;
}

const char *emit_behind(emit *e, const char *at, int64_t count) {
    if (count == 0) return at;
    const char *name = emit_offset(e, "%lld + %s", (long long)count, at);
    const char *first = first_index(e, at);
    if (!in_elements(e) || !first || count % e->width != 0 || first_index(e, name)) return name;
    hlo_arena_grow(e->arena, &e->moved, e->moved_count, &e->moved_capacity, sizeof *e->moved);
    e->moved[e->moved_count].name = name;
    e->moved[e->moved_count++].first =
        hlo_arena_format(e->arena, "(%lld + %s)", (long long)count, first);
    return name;
}

static bool same_text(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_dims(uint32_t rank, const int64_t *a, const int64_t *b) {
    return rank == 0 || memcmp(a, b, rank * sizeof *a) == 0;
}

const emit_index *emit_index_new(emit *e, uint32_t rank, const int64_t *dims, const char *const *at,
                                 const char *linear, const int64_t *linear_strides) {
    for (uint32_t i = 0; i < e->index_count; i++) {
        const emit_index *known = e->indices[i];
        bool same = known->rank == rank && same_dims(rank, known->dims, dims) &&
                    same_text(known->linear, linear) &&
                    (!linear || same_dims(rank, known->linear_strides, linear_strides));
        for (uint32_t d = 0; d < rank && same; d++) same = same_text(known->at[d], at[d]);
        if (same) return known;
    }
    emit_index *index = hlo_arena_alloc(e->arena, sizeof *index);
    *index = (emit_index){rank, hlo_arena_copy(e->arena, dims, rank * sizeof *dims),
                          hlo_arena_copy(e->arena, at, rank * sizeof *at), linear, NULL};
    if (linear)
        index->linear_strides =
            hlo_arena_copy(e->arena, linear_strides, rank * sizeof *linear_strides);
    hlo_arena_grow(e->arena, &e->indices, e->index_count, &e->index_capacity, sizeof *e->indices);
    e->indices[e->index_count++] = index;
    return index;
}

const emit_index *emit_index_in(emit *e, const hlo_shape *shape, const char *const *at) {
    return emit_index_new(e, shape->rank, shape->dims, at, NULL, NULL);
}

const char *emit_dot(emit *e, const emit_index *index, const int64_t *strides) {
    if (index->linear) {
        bool same = true;
        for (uint32_t d = 0; d < index->rank; d++)
            same &= index->dims[d] <= 1 || strides[d] == index->linear_strides[d];
        if (same) return index->linear;
    }
    const char *sum = "0";
    for (uint32_t d = 0; d < index->rank; d++) {
        if (strcmp(index->at[d], "0") == 0 || strides[d] == 0) continue;
        const char *term = strides[d] == 1 ? index->at[d]
                                           : hlo_arena_format(e->arena, "%s * %lld", index->at[d],
                                                              (long long)strides[d]);
        sum = strcmp(sum, "0") == 0 ? term : hlo_arena_format(e->arena, "%s + %s", sum, term);
    }
    return emit_offset(e, "%s", sum);
}

void emit_split(emit *e, const char *linear, const int64_t *dims, const uint32_t *order,
                uint32_t count, const char **out_at) {
    int64_t stride = 1, rest = 1;
    for (uint32_t i = 0; i < count; i++) rest *= dims[order[i]];
    for (uint32_t i = 0; i < count; i++) {
        int64_t dim = dims[order[i]];
        rest /= dim ? dim : 1;
        if (dim <= 1) {
            out_at[order[i]] = "0";
            continue;
        }
        const char *quotient =
            stride == 1 ? linear
                        : hlo_arena_format(e->arena, "%s / %lld", linear, (long long)stride);
        out_at[order[i]] = rest == 1 ? emit_offset(e, "%s", quotient)
                                     : emit_offset(e, stride == 1 ? "%s %% %lld" : "(%s) %% %lld",
                                                   quotient, (long long)dim);
        stride *= dim;
    }
}

const emit_index *emit_reshape(emit *e, const emit_index *from, uint32_t rank,
                               const int64_t *dims) {
    if (from->rank == rank && same_dims(rank, from->dims, dims)) return from;
    const char *at[HLO_EVAL_MAX_RANK];
    int64_t row_major[HLO_EVAL_MAX_RANK], stride = 1, old = 1;
    bool dense = from->linear != NULL;
    for (uint32_t d = rank; d-- > 0; stride *= dims[d]) row_major[d] = stride;
    for (uint32_t d = from->rank; d-- > 0; old *= from->dims[d])
        dense = dense && (from->dims[d] == 1 || from->linear_strides[d] == old);
    uint32_t a = 0, b = 0;
    while (b < rank || a < from->rank) {
        uint32_t a_end = a, b_end = b;
        int64_t in = 1, out = 1;
        do {
            if (a_end < from->rank && (in <= out || b_end == rank))
                in *= from->dims[a_end++];
            else
                out *= dims[b_end++];
        } while (in != out);
        /* Map dimensions [a, a_end) of `from` to dimensions [b, b_end) of `dims`, which have the
         * same number of elements. */
        uint32_t wide_from = 0, wide_to = 0, only_from = a, only_to = b, order[HLO_EVAL_MAX_RANK];
        for (uint32_t d = a; d < a_end; d++)
            if (from->dims[d] != 1) wide_from++, only_from = d;
        for (uint32_t d = b; d < b_end; d++) {
            at[d] = "0";
            order[d - b] = b_end - 1 - (d - b);
            if (dims[d] != 1) wide_to++, only_to = d;
        }
        if (wide_from == 1 && wide_to == 1) {
            at[only_to] = from->at[only_from];
        } else if (wide_to > 0) {
            int64_t strides[HLO_EVAL_MAX_RANK] = {0};
            stride = 1;
            for (uint32_t d = a_end; d-- > a; stride *= from->dims[d]) strides[d] = stride;
            emit_split(e, emit_dot(e, from, strides), dims, order, b_end - b, at);
        }
        a = a_end;
        b = b_end;
    }
    return emit_index_new(e, rank, dims, at, dense ? from->linear : NULL, row_major);
}

const emit_index *emit_result_index(emit *e, const emit_index *index,
                                    const hlo_instruction *result) {
    const hlo_shape *shape = result->shape, *from = shape;
    const bool turned = result->op == HLO_OP_TRANSPOSE;
    if (turned) from = hlo_instr_operand(result, 0)->shape;
    if (!turned || from->rank != index->rank || !same_dims(index->rank, from->dims, index->dims))
        return emit_reshape(e, index, shape->rank, shape->dims);
    const hlo_ints *order = hlo_instr_ints(result, HLO_ATTR_DIMENSIONS);
    const char *at[HLO_EVAL_MAX_RANK];
    int64_t strides[HLO_EVAL_MAX_RANK];
    for (uint32_t d = 0; d < index->rank; d++) {
        at[d] = index->at[order->v[d]];
        if (index->linear) strides[d] = index->linear_strides[order->v[d]];
    }
    return emit_index_new(e, index->rank, shape->dims, at, index->linear, strides);
}

const char *emit_remembered(const emit *e, const hlo_instruction *instr, const emit_index *index,
                            bool cell) {
    for (uint32_t i = e->memo_count; i-- > 0;) {
        const emit_memo *memo = &e->memos[i];
        if (memo->instr == instr && memo->index == index && memo->cell == cell &&
            is_open(e, memo->scope))
            return memo->name;
    }
    return NULL;
}

void emit_remember(emit *e, const hlo_instruction *instr, const emit_index *index, bool cell,
                   const char *name) {
    hlo_arena_grow(e->arena, &e->memos, e->memo_count, &e->memo_capacity, sizeof *e->memos);
    e->memos[e->memo_count++] = (emit_memo){instr, index, cell, name, e->scope};
}

bool emit_is_wide(hlo_type type) {
    return cuda_types[type].cell && strcmp(cuda_types[type].cell, cuda_types[type].compute) == 0;
}

/* --------------------------------------------------------------------------- how wide a pack is */

enum {
    ACCESSES = 2, /* maximum loads or stores per pack */
    FEW = 1 << 16 /* number of threads below which packs are made narrower */
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

bool emit_is_member(const emit *e, const hlo_instruction *instr) {
    const hlo_group *group = &e->job->group;
    for (uint32_t i = 0; i < group->instr_count; i++)
        if (group->instrs[i] == instr) return true;
    return false;
}

uint32_t emit_leaf(const emit *e, const hlo_instruction *instr) {
    const hlo_group *group = &e->job->group;
    uint32_t leaf = 0;
    for (uint32_t i = 0; i < group->input_count && group->inputs[i] != instr; i++)
        leaf += hlo_shape_leaf_count(group->inputs[i]->shape);
    return leaf;
}

/* Returns the address of the thread's elements if they are contiguous and begin at a multiple of
 * the width. Otherwise returns NULL. */
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
        const char *first = first_index(e, at);
        if (first) {
            if (moves || view->strides[d] != 1) return NULL;
            moves = true;
            at = first;
        } else if (!is_outer(e, at, false) || view->strides[d] % e->width != 0) {
            return NULL;
        }
        sum = hlo_arena_format(e->arena, "%s + %s * %lld", sum, at, (long long)view->strides[d]);
    }
    return moves ? sum : NULL;
}

/* In a transposed array, packs extend across the rows of a tile. Returns the address of the pack
 * with the thread's element. Returns NULL if the array is not transposed, or if its packs do not
 * begin at multiples of the height. */
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
        } else if (!is_outer(e, at, true)) {
            return NULL;
        }
        sum = hlo_arena_format(e->arena, "%s + %s * %lld", sum, at, (long long)stride);
    }
    return moves && turns ? sum : NULL;
}

/* Returns the variable with the pack of `cell` elements at an address. The thread's element has
 * index `u` in the pack or, with `across`, the index of the row. */
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
        add_line(e, &e->across, name,
                 hlo_arena_format(e->arena, "%s %s[%d];", type, name, e->width));
        add_line(e, &e->across, name, "#pragma unroll");
        add_line(e, &e->across, name,
                 hlo_arena_format(e->arena, "for (int u = 0; u < %d; u++) %s = %s", e->width, used,
                                  load));
    } else if (e->repeat) {
        used = hlo_arena_format(e->arena, "%s[%s]", name, e->repeat);
        add_line(e, &e->declared, name,
                 hlo_arena_format(e->arena, "%s %s[%d];", type, name, e->repeat_count));
        add_line(e, &e->before, name, hlo_arena_format(e->arena, "%s = %s", used, load));
    } else {
        add_line(e, &e->before, name,
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
    if (!e->row && e->width > 1 && e->minor && e->open_count == e->pack_depth) {
        /* Record that the operand's contiguous elements are along another dimension of the space
         * than the thread's elements. */
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
            break;
        }
    }
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
    add_line(e, &e->before, NULL, hlo_arena_format(e->arena, "%s %s;", type, name));
    emit_text(e, "%s.v[u] = %s;", name, cell);
    add_line(e, &e->after, NULL,
             hlo_arena_format(e->arena, "*(%s *)(%s + (%s)) = %s;", type, pointer, packed, name));
}

enum { EARLY = 16 }; /* maximum number of packs that are loaded early, limited by registers */

static void append(emit *e, emit_lines *to, const emit_lines *from) {
    for (uint32_t i = 0; i < from->count; i++) add_line(e, to, from->v[i].target, from->v[i].text);
}

/* ------------------------------------------------------------------------- loop-invariant lines */

/* Marks the variables that a line may set: its target, and the name with which its text starts. */
static void mark_set(const emit_line *line, bool *set, uint32_t count) {
    size_t length;
    const char *word = next_word(line->text, &length);
    const uint32_t name = name_at(word, length);
    if (name < count) set[name] = true;
    if (line->target) mark_names(line->target, set, count);
}

/* Returns the lines of `from` that set variables that `lines` need, directly or indirectly. */
static emit_lines needed(emit *e, const emit_lines *lines, const emit_lines *from) {
    bool *read = hlo_arena_zero(e->arena, e->next_name + 1);
    bool *need = hlo_arena_zero(e->arena, from->count + 1);
    for (uint32_t i = lines->count + from->count; i-- > 0;) {
        const bool own = i >= from->count;
        const emit_line *line = own ? &lines->v[i - from->count] : &from->v[i];
        if (!own && (!line->target || !read[name_at(line->target, strlen(line->target))])) continue;
        if (!own) need[i] = true;
        mark_names(line->text, read, e->next_name);
    }
    emit_lines out = {0};
    for (uint32_t i = 0; i < from->count; i++)
        if (need[i]) add_line(e, &out, from->v[i].target, from->v[i].text);
    return out;
}

/* Finds the loop-invariant lines, which depend neither on the counter nor on variables set in the
 * loop. `head` has the lines of the loop before `lines`. Only lines at block depth `depth` of
 * `lines` are considered: every iteration computes them, and there is at least one iteration. */
static bool *find_constants(emit *e, const emit_lines *head, const emit_lines *lines, int depth,
                            const char *counter) {
    const uint32_t names = e->next_name;
    bool *set = hlo_arena_zero(e->arena, names + 1);
    bool *same = hlo_arena_zero(e->arena, lines->count + 1);
    for (uint32_t i = 0; i < head->count; i++) mark_set(&head->v[i], set, names);
    for (uint32_t i = 0; i < lines->count; i++) {
        const emit_line *line = &lines->v[i];
        size_t length = strlen(line->text);
        if (line->text[0] == '}') depth++;
        same[i] = depth == 0 && line->target && strncmp(line->text, "const ", 6) == 0;
        if (length && line->text[length - 1] == '{') depth--;
        if (!same[i]) mark_set(line, set, names);
    }
    for (uint32_t i = 0; i < lines->count; i++) {
        if (!same[i]) continue;
        bool depends = false; /* the line depends on the counter or a marked name */
        size_t length;
        for (const char *word = next_word(lines->v[i].text, &length); length && !depends;
             word = next_word(word + length, &length)) {
            const uint32_t name = name_at(word, length);
            depends = (name < names && set[name]) ||
                      (length == strlen(counter) && memcmp(word, counter, length) == 0);
        }
        if (!depends) continue;
        same[i] = false;
        mark_set(&lines->v[i], set, names);
    }
    return same;
}

/* Moves the loop-invariant lines to `out`; see find_constants() for the arguments. */
static void move_constants(emit *e, const emit_lines *head, emit_lines *lines, int depth,
                           const char *counter, emit_lines *out) {
    const bool *same = find_constants(e, head, lines, depth, counter);
    emit_lines kept = {0};
    for (uint32_t i = 0; i < lines->count; i++)
        add_line(e, same[i] ? out : &kept, lines->v[i].target, lines->v[i].text);
    *lines = kept;
}

/* ------------------------------------------------------------------------------------ the loops */

void emit_open_repeat(emit *e, const char *name, int count) {
    e->repeat = name;
    e->repeat_count = count;
    e->repeat_from = e->out->count;
    emit_open_unrolled(e, name, count);
}

void emit_elements_begin(emit *e, emit_lines *inner) {
    *inner = (emit_lines){0};
    e->inner = inner;
    e->around = e->out;
    e->out = inner;
    e->before = e->after = e->declared = e->across = (emit_lines){0};
    e->pack_count = e->derived_count = e->moved_count = 0;
    if (e->width > 1) emit_open(e, "for (int u = 0; u < %d; u++) {", e->width);
    e->pack_depth = e->open_count;
}

void emit_note_start(emit *e, const char *name) {
    if (!in_elements(e) || is_outer(e, name, false)) return;
    const emit_lines none = {0};
    const bool *same = find_constants(e, &none, e->inner, 1, "u");
    for (uint32_t i = 0; i < e->inner->count; i++)
        if (same[i] && strcmp(e->inner->v[i].target, name) == 0) add_derived(e, name);
}

void emit_elements_end(emit *e) {
    const emit_lines none = {0};
    emit_lines constants = {0};
    if (e->width > 1) {
        emit_close(e);
        move_constants(e, &none, e->inner, 1, "u", &constants);
    }
    e->out = e->around;
    if (e->repeat) {
        /* Move the first loads of the unrolled loop, and the computation of their addresses, to a
         * new loop before it. Move loop-invariant lines before both loops. */
        emit_lines *out = e->out, *same = e->width > 1 ? &constants : e->inner;
        emit_lines loop = {0}, early = {0}, rest = {0};
        for (uint32_t i = e->repeat_from; i < out->count; i++)
            add_line(e, &loop, out->v[i].target, out->v[i].text);
        out->count = e->repeat_from;
        move_constants(e, &loop, same, 0, e->repeat, out);
        int loads = 0;
        for (uint32_t i = 0; i < e->before.count; i++) {
            const emit_line *line = &e->before.v[i];
            const bool first = line->target && (loads + 1) * e->repeat_count <= EARLY;
            loads += first;
            add_line(e, first ? &early : &rest, line->target, line->text);
        }
        append(e, out, &e->across);
        append(e, out, &e->declared);
        if (loads) {
            const emit_lines needs = needed(e, &early, same);
            append(e, out, &loop);
            append(e, out, &needs);
            append(e, out, &early);
            add_line(e, out, NULL, "}");
        }
        append(e, out, &loop);
        e->before = rest;
        e->repeat = NULL;
    }
    if (e->width > 1) append(e, e->out, &constants);
    append(e, e->out, &e->before);
    if (e->width > 1) emit_text(e, "#pragma unroll");
    append(e, e->out, e->inner);
    append(e, e->out, &e->after);
    e->pack_depth = 0;
}
