/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that sort: tiles in shared memory, then pairwise merges of runs, with a launch for each
 * doubling. Rows that fit into a tile are sorted by one launch. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/sort/sort.h"

enum {
    EACH = 8,                   /* maximum records per thread */
    SHARED = 1 << 15,           /* maximum bytes per tile, */
    MOST = 3 * SHARED / 2 - 256 /* and if each thread has one record */
};

/* ------------------------------------------------------------------------------------- launches */

/* Begins a kernel with its tile and the comparison of records. */
static void begin_kernel(sorting *s, emit_lines *lines) {
    emit *e = s->e;
    emit_restart(e, lines);
    if (s->declaration) emit_text(e, "%s", s->declaration);
    emit_text(e, "__shared__ %s tile[%d];", s->record, s->each * CUDA_BLOCK);
    const char *x = emit_name(e, "x"), *y = emit_name(e, "x");
    emit_open(e, "const auto less = [&](const %s &%s, const %s &%s) {", s->record, x, s->record, y);
    emit_text(e, "return %s;", s->less(s, x, y));
    emit_close_as(e, "};");
}

/* Writes the function that stores a sorted record. `to` is scratch memory, or NULL. */
static void write_store(sorting *s, const char *to) {
    emit *e = s->e;
    const char *row = emit_name(e, "i"), *at = emit_name(e, "i"), *x = emit_name(e, "x");
    emit_open(e, "const auto store = [&](%s %s, %s %s, const %s &%s) {", e->offset, row, e->offset,
              at, s->record, x);
    if (to)
        emit_text(e, "((%s *)%s)[%s * %lld + %s] = %s;", s->record, to, row, (long long)s->count,
                  at, x);
    else
        s->store(s, row, at, x);
    emit_close_as(e, "};");
}

size_t emit_sorting(sorting *s) {
    emit *e = s->e;
    /* Chooses tiles: large ones, unless a row fits into smaller ones and there are too few large
     * ones to fill the device. */
    int64_t places = 1;
    while (places < s->count) places *= 2;
    s->each = EACH;
    while (s->each > 1 && (s->each * CUDA_BLOCK > (int)(SHARED / s->bytes) || s->each > places))
        s->each /= 2;
    while (s->each > 1 && s->each * CUDA_BLOCK / 2 >= places &&
           s->rows * places / (s->each * CUDA_BLOCK) < s->e->device->processors)
        s->each /= 2;
    s->span = places < s->each * CUDA_BLOCK ? (int)places : s->each * CUDA_BLOCK;
    if (CUDA_BLOCK * s->bytes > MOST) emit_refuse(s->e, "has too many operands for a CUDA kernel");
    emit_scratch buffers[2];
    uint32_t passes = 0;
    const int64_t tile = (int64_t)s->each * CUDA_BLOCK;
    for (int64_t width = tile; width < s->count; width *= 2) passes++;
    const uint32_t kept = passes + !s->store;
    for (uint32_t i = 0; i < 2 && i < kept; i++) {
        buffers[i] = (emit_scratch){"void", s->code->scratch_size, false};
        s->code->scratch_size += ((size_t)(s->rows * s->count) * s->bytes + 255) / 256 * 256;
    }
    e->width = 1;
    /* The first launch sorts tiles; without scratch memory, these are complete rows. */
    const emit_scratch *to = kept ? &buffers[0] : NULL;
    emit_lines lines = {0};
    begin_kernel(s, &lines);
    const char *row = emit_name(e, "i"), *at = emit_name(e, "i");
    emit_open(e, "const auto load = [&](%s %s, %s %s) {", e->offset, row, e->offset, at);
    s->load(s, row, at);
    emit_close_as(e, "};");
    write_store(s, to ? "t0" : NULL);
    emit_text(e, "sort_tiles<%d, %d, %s>(tile, (%s)%lld, (%s)%lld, load, less, store);", s->each,
              s->span, s->across ? "true" : "false", e->offset, (long long)s->rows, e->offset,
              (long long)s->count);
    const int64_t size = s->each * CUDA_BLOCK, together = size / s->span;
    const int64_t blocks = (s->rows + together - 1) / together * ((s->count + size - 1) / size);
    emit_add_launch(e, s->code, emit_launch(e, "sort", &lines, blocks, to ? 1 : 0, to));
    const uint32_t name = e->next_name;
    for (uint32_t p = 0; p < passes; p++) { /* merges runs of tile << p records */
        e->next_name = name;                /* equal kernels must have equal texts */
        to = p + 1 < kept ? &buffers[(p + 1) % 2] : NULL;
        lines = (emit_lines){0};
        begin_kernel(s, &lines);
        write_store(s, to ? "t2" : NULL);
        emit_text(e, "merge_tiles<%d>(tile, (const %s *)t0, (%s)%lld, (%s)(int64)t1, less, store);",
                  s->each, s->record, e->offset, (long long)s->count, e->offset);
        const emit_scratch scratch[] = {buffers[p % 2],
                                        {"const char", (size_t)(tile << p), true},
                                        to ? *to : (emit_scratch){0}};
        emit_add_launch(e, s->code,
                        emit_launch(e, "merge", &lines, s->rows * ((s->count + size - 1) / size),
                                    to ? 3 : 2, scratch));
    }
    return kept > passes ? buffers[passes % 2].offset : 0;
}

/* ----------------------------------------------------------------------------------------- sort */

const char *cuda_applied_refusal(const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!cuda_types[hlo_instr_operand(instr, i)->shape->type].cell)
            return "has no CUDA kernel for its element type";
    return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
}

/* A record contains the elements that the comparator reads, and the position of the others. */
typedef struct sorted {
    const hlo_instr *instr;
    int64_t dim;
    emit_space rows; /* the dimensions other than the sorted one */
    bool *is_key;    /* by operand */
    bool positioned;
} sorted;

static const emit_index *element_at(sorting *s, const char *row, const char *at) {
    const sorted *o = s->user;
    const char *place[HLO_EVAL_MAX_RANK];
    emit_split(s->e, row, o->rows.dims, o->rows.order, o->rows.rank, place);
    place[o->dim] = at;
    return emit_index_new(s->e, o->rows.rank + 1, s->e->job->results[0].dims, place, NULL, NULL);
}

static void load_record(sorting *s, const char *row, const char *at) {
    const sorted *o = s->user;
    const emit_index *index = element_at(s, row, at);
    const char *name = emit_name(s->e, "x");
    emit_text(s->e, "%s %s;", s->record, name);
    for (uint32_t a = 0; a < o->instr->operand_count; a++)
        if (o->is_key[a])
            emit_text(s->e, "%s.k%u = %s;", name, a,
                      emit_pull(s->e, hlo_instr_operand(o->instr, a), index, true));
    if (o->positioned) emit_text(s->e, "%s.at = %s;", name, at);
    emit_text(s->e, "return %s;", name);
}

static const char *key(sorting *s, uint32_t operand, const char *x) {
    return emit_value(s->e, "c", cuda_types[s->e->job->results[operand].type].cell, "%s.k%u", x,
                      operand);
}

static const char *compare_records(sorting *s, const char *x, const char *y) {
    const sorted *o = s->user;
    const uint32_t arrays = o->instr->operand_count;
    const char **cells = hlo_arena_array(s->e->arena, 2 * arrays, sizeof *cells), *less;
    for (uint32_t i = 0; i < 2 * arrays; i++)
        cells[i] = o->is_key[i / 2] ? key(s, i / 2, i % 2 ? y : x) : "0";
    emit_region(s->e, hlo_instr_comp(o->instr, HLO_ATTR_TO_APPLY), cells, true, &less, false);
    return less;
}

static void store_record(sorting *s, const char *row, const char *at, const char *x) {
    const sorted *o = s->user;
    const emit_index *to = element_at(s, row, at), *from = NULL;
    if (o->positioned) from = element_at(s, row, emit_value(s->e, "i", s->e->offset, "%s.at", x));
    for (uint32_t a = 0; a < o->instr->operand_count; a++)
        emit_store(s->e, a, to,
                   o->is_key[a] ? key(s, a, x)
                                : emit_pull(s->e, hlo_instr_operand(o->instr, a), from, true));
}

/* Declares the record, widest members first. */
static void declare_record(sorting *s) {
    const sorted *o = s->user;
    const hlo_view *views = s->e->job->results;
    const size_t position = strcmp(s->e->offset, "int") == 0 ? 4 : 8;
    const char *members = "";
    size_t widest = 1;
    for (size_t bytes = 8; bytes > 0; bytes /= 2) {
        for (uint32_t a = 0; a < o->instr->operand_count; a++) {
            if (!o->is_key[a] || hlo_types[views[a].type].bytes != (int)bytes) continue;
            members = hlo_arena_format(s->e->arena, "%s %s k%u;", members,
                                       cuda_types[views[a].type].cell, a);
            s->bytes += bytes;
            widest = bytes > widest ? bytes : widest;
        }
        if (!o->positioned || position != bytes) continue;
        members = hlo_arena_format(s->e->arena, "%s %s at;", members, s->e->offset);
        s->bytes += bytes;
        widest = bytes > widest ? bytes : widest;
    }
    s->bytes = (s->bytes + widest - 1) / widest * widest;
    size_t alignment = s->bytes & (~s->bytes + 1);
    s->record = "record";
    s->declaration = hlo_arena_format(s->e->arena, "struct alignas(%zu) record {%s };",
                                      alignment < 16 ? alignment : 16, members);
}

void emit_sort(emit *e, cuda_code *code) {
    sorted o = {.instr = e->job->group.results[0]};
    const char *why = cuda_applied_refusal(o.instr);
    if (why) emit_refuse(e, "%s", why);
    const hlo_view *view = &e->job->results[0];
    const emit_space space = emit_space_of(view);
    if (e->why || space.count == 0) return;
    o.dim = hlo_instr_ints(o.instr, HLO_ATTR_DIMENSIONS)->v[0];
    o.rows = space;
    o.rows.rank = 0;
    sorting s = {.e = e,
                 .code = code,
                 .rows = space.count / view->dims[o.dim],
                 .count = view->dims[o.dim],
                 .across = view->strides[o.dim] != 1,
                 .user = &o,
                 .load = load_record,
                 .less = compare_records,
                 .store = store_record};
    for (uint32_t i = 0; i < space.rank; i++)
        if (space.order[i] != o.dim) o.rows.order[o.rows.rank++] = space.order[i];
    e->offset = emit_offset_type(e, space.count);
    /* Finds the operands that the comparator reads. */
    const hlo_computation *region = hlo_instr_comp(o.instr, HLO_ATTR_TO_APPLY);
    o.is_key = hlo_arena_zero(e->arena, o.instr->operand_count * sizeof *o.is_key);
    for (const hlo_instr *i = region->first; i; i = hlo_instr_next(i))
        if (i->op == HLO_OP_PARAMETER && (i->uses || i == region->root))
            o.is_key[i->u.parameter / 2] = true;
    for (uint32_t a = 0; a < o.instr->operand_count; a++) o.positioned |= !o.is_key[a];
    declare_record(&s);
    emit_sorting(&s);
}
