/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a kernel: lines, scopes, names, indices. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

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

void emit_add(emit *e, emit_lines *lines, const char *target, const char *text) {
    hlo_arena_grow(e->arena, &lines->v, lines->count, &lines->capacity, sizeof *lines->v);
    lines->v[lines->count++] = (emit_line){target, text};
}

void emit_set(emit *e, const char *target, const char *format, ...) {
    va_list args;
    va_start(args, format);
    emit_add(e, e->out, target, vformat(e->arena, format, args));
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
    emit_add(e, e->out, NULL, vformat(e->arena, format, args));
    va_end(args);
    if (e->open_count == sizeof e->open / sizeof *e->open) {
        emit_refuse(e, "is nested too deeply for a CUDA kernel");
        e->open_count--;
    }
    e->open[e->open_count++] = e->scope = e->next_scope++;
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
uint32_t emit_name_at(const char *text, size_t length) {
    size_t digits = length;
    while (digits > 0 && isdigit((unsigned char)text[digits - 1])) digits--;
    if (digits == length || digits < 2 || text[digits - 1] != '_') return UINT32_MAX;
    return (uint32_t)strtoul(text + digits, NULL, 10);
}

const char *emit_word(const char *text, size_t *out_length) {
    size_t length = 0;
    while (*text && !isalnum((unsigned char)*text) && *text != '_') text++;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    *out_length = length;
    return text;
}

void emit_mark_names(const char *text, bool *set, uint32_t count) {
    size_t length;
    for (text = emit_word(text, &length); length; text = emit_word(text + length, &length)) {
        const uint32_t name = emit_name_at(text, length);
        if (name < count) set[name] = true;
    }
}

const char *emit_finish(const emit *e, const emit_lines *lines) {
    bool *used = hlo_arena_zero(e->arena, e->next_name + 1);
    bool *kept = hlo_arena_zero(e->arena, lines->count + 1);
    size_t size = 1;
    for (uint32_t i = lines->count; i-- > 0;) {
        const emit_line *line = &lines->v[i];
        if (line->target && !used[emit_name_at(line->target, strlen(line->target))]) continue;
        kept[i] = true;
        emit_mark_names(line->text, used, e->next_name);
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

bool emit_is_outer(const emit *e, const char *name, bool given) {
    if (isdigit((unsigned char)name[0])) return true;
    for (uint32_t i = 0; i < e->outer_count; i++)
        if (strcmp(e->outer[i], name) == 0) return true;
    for (uint32_t i = 0; i < e->derived_count && !given; i++)
        if (strcmp(e->derived[i], name) == 0) return true;
    return false;
}

bool emit_in_elements(const emit *e) {
    return e->width > 1 && e->pack_depth && e->open_count == e->pack_depth;
}

void emit_add_derived(emit *e, const char *name) {
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
    /* Is the index computed from outer ones? */
    bool derived = emit_in_elements(e);
    size_t length;
    for (at = emit_word(text, &length); length && derived; at = emit_word(at + length, &length))
        derived = emit_is_outer(e, hlo_arena_format(e->arena, "%.*s", (int)length, at), false);
    if (derived) emit_add_derived(e, name);
    e->sums[e->sum_count].text = text;
    e->sums[e->sum_count].name = name;
    e->sums[e->sum_count++].scope = e->scope;
    return name;
}

const char *emit_first(const emit *e, const char *at) {
    if (!e->minor) return NULL;
    if (strcmp(at, e->minor) == 0) return e->minor_base;
    for (uint32_t i = 0; i < e->moved_count; i++)
        if (strcmp(e->moved[i].name, at) == 0) return e->moved[i].first;
    return NULL;
}

const char *emit_behind(emit *e, const char *at, int64_t count) {
    if (count == 0) return at;
    const char *name = emit_offset(e, "%lld + %s", (long long)count, at);
    const char *first = emit_first(e, at);
    if (!emit_in_elements(e) || !first || count % e->width != 0 || emit_first(e, name)) return name;
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

/* Maps dimensions [a, a_end) of `from` to [b, b_end) of `dims`, which have the same number of
 * elements. */
static void reshape_part(emit *e, const emit_index *from, uint32_t a, uint32_t a_end,
                         const int64_t *dims, uint32_t b, uint32_t b_end, const char **at) {
    uint32_t wide_from = 0, wide_to = 0, only_from = a, only_to = b;
    for (uint32_t d = a; d < a_end; d++)
        if (from->dims[d] != 1) wide_from++, only_from = d;
    for (uint32_t d = b; d < b_end; d++) {
        at[d] = "0";
        if (dims[d] != 1) wide_to++, only_to = d;
    }
    if (wide_to == 0) return;
    if (wide_from == 1 && wide_to == 1) {
        at[only_to] = from->at[only_from];
        return;
    }
    int64_t strides[HLO_EVAL_MAX_RANK] = {0}, stride = 1;
    for (uint32_t d = a_end; d-- > a; stride *= from->dims[d]) strides[d] = stride;
    const char *linear = emit_dot(e, from, strides);
    uint32_t order[HLO_EVAL_MAX_RANK];
    for (uint32_t d = b; d < b_end; d++) order[d - b] = b_end - 1 - (d - b);
    emit_split(e, linear, dims, order, b_end - b, at);
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
        reshape_part(e, from, a, a_end, dims, b, b_end, at);
        a = a_end;
        b = b_end;
    }
    return emit_index_new(e, rank, dims, at, dense ? from->linear : NULL, row_major);
}

const emit_index *emit_result_index(emit *e, const emit_index *index, const hlo_instr *result) {
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

const char *emit_remembered(const emit *e, const hlo_instr *instr, const emit_index *index,
                            bool cell) {
    for (uint32_t i = e->memo_count; i-- > 0;) {
        const emit_memo *memo = &e->memos[i];
        if (memo->instr == instr && memo->index == index && memo->cell == cell &&
            is_open(e, memo->scope))
            return memo->name;
    }
    return NULL;
}

void emit_remember(emit *e, const hlo_instr *instr, const emit_index *index, bool cell,
                   const char *name) {
    hlo_arena_grow(e->arena, &e->memos, e->memo_count, &e->memo_capacity, sizeof *e->memos);
    e->memos[e->memo_count++] = (emit_memo){instr, index, cell, name, e->scope};
}

bool emit_is_wide(hlo_type type) {
    return cuda_types[type].cell && strcmp(cuda_types[type].cell, cuda_types[type].compute) == 0;
}
