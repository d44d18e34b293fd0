/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for sort and scatter. The first launch sorts tiles in shared memory. Each further launch
 * merges pairs of sorted runs. Rows that fit into a tile need only the first launch. */
#include <string.h>

#include "ir/eval/apply.h"
#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

typedef struct sorting sorting;
struct sorting {
    emit *e;
    cuda_code *code;
    int64_t rows, count;     /* number of rows, each sorted separately; records per row */
    const char *record;      /* type of a record */
    const char *declaration; /* declaration of that type, or NULL */
    size_t bytes;            /* bytes per record */
    bool across;             /* neighboring elements in memory belong to different rows */
    void *user;
    /* load() and store() write the bodies of functions for the record at (`row`, `at`). */
    void (*load)(sorting *s, const char *row, const char *at); /* the body ends with a return */
    const char *(*less)(sorting *s, const char *x, const char *y);
    /* If store() is NULL, the sorted records stay in scratch memory. */
    void (*store)(sorting *s, const char *row, const char *at, const char *x);

    int each, span; /* set by add_sorting(): records per thread, and positions per row in a tile */
};

enum {
    EACH = 8,                  /* maximum records per thread */
    SHARED = 1 << 15,          /* maximum bytes per tile */
    MAX = 3 * SHARED / 2 - 256 /* maximum bytes per tile if each thread has one record */
};

/* ------------------------------------------------------------------------------------- launches */

/* Begins a kernel: declares its tile and the function that compares records. */
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

/* Writes the function that stores a sorted record. `to` is the pointer to scratch memory, or NULL
 * if the function stores to the results. */
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

/* Adds the launches of a stable sort by any order. If the sorted records stay in scratch memory,
 * returns their offset there. */
static size_t add_sorting(sorting *s) {
    emit *e = s->e;
    /* Choose the size of tiles: large tiles, unless a row fits into smaller tiles and there are too
     * few large tiles to fill the device. */
    int64_t places = 1;
    while (places < s->count) places *= 2;
    s->each = EACH;
    while (s->each > 1 && (s->each * CUDA_BLOCK > (int)(SHARED / s->bytes) || s->each > places))
        s->each /= 2;
    while (s->each > 1 && s->each * CUDA_BLOCK / 2 >= places &&
           s->rows * places / (s->each * CUDA_BLOCK) < s->e->device->processors)
        s->each /= 2;
    s->span = places < s->each * CUDA_BLOCK ? (int)places : s->each * CUDA_BLOCK;
    if (CUDA_BLOCK * s->bytes > MAX) emit_refuse(s->e, "has too many operands for a CUDA kernel");
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
    /* The first launch sorts tiles. Without scratch memory, tiles contain complete rows. */
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
    for (uint32_t p = 0; p < passes; p++) { /* launch p merges runs of tile << p records */
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

const char *cuda_applied_refusal(const hlo_instruction *instr) {
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!cuda_types[hlo_instr_operand(instr, i)->shape->type].cell)
            return "has no CUDA kernel for its element type";
    return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
}

/* A record contains the elements that the comparator reads, and the position from which the other
 * elements are copied. */
typedef struct sorted {
    const hlo_instruction *instr;
    int64_t dim;
    emit_space rows; /* the dimensions other than the sorted one */
    bool *is_key;    /* indexed by operand */
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
    /* Find the operands that the comparator reads. */
    const hlo_computation *region = hlo_instr_comp(o.instr, HLO_ATTR_TO_APPLY);
    o.is_key = hlo_arena_zero(e->arena, o.instr->operand_count * sizeof *o.is_key);
    for (const hlo_instruction *i = region->first; i; i = hlo_instr_next(i))
        if (i->op == HLO_OP_PARAMETER && (i->uses || i == region->root))
            o.is_key[i->u.parameter / 2] = true;
    for (uint32_t a = 0; a < o.instr->operand_count; a++) o.positioned |= !o.is_key[a];
    /* Declare the record, widest members first. */
    const size_t position = strcmp(e->offset, "int") == 0 ? 4 : 8;
    const char *members = "";
    size_t widest = 1;
    for (size_t bytes = 8; bytes > 0; bytes /= 2) {
        const size_t before = s.bytes;
        for (uint32_t a = 0; a < o.instr->operand_count; a++) {
            const hlo_type type = view[a].type;
            if (!o.is_key[a] || hlo_types[type].bytes != (int)bytes) continue;
            members = hlo_arena_format(e->arena, "%s %s k%u;", members, cuda_types[type].cell, a);
            s.bytes += bytes;
        }
        if (o.positioned && position == bytes) {
            members = hlo_arena_format(e->arena, "%s %s at;", members, e->offset);
            s.bytes += bytes;
        }
        if (s.bytes > before && bytes > widest) widest = bytes;
    }
    s.bytes = (s.bytes + widest - 1) / widest * widest;
    size_t alignment = s.bytes & (~s.bytes + 1);
    s.record = "record";
    s.declaration = hlo_arena_format(e->arena, "struct alignas(%zu) record {%s };",
                                     alignment < 16 ? alignment : 16, members);
    add_sorting(&s);
}

enum {
    FEW = 8,     /* sorting is worthwhile only for more updates than this */
    TOGETHER = 4 /* updates that a thread loads together; twice as many if it has few elements */
};

typedef struct scattering {
    emit *e;
    const hlo_instruction *instr, *indices;
    const hlo_shape *wide, *narrow;
    const hlo_ints *window, *dropped, *batching, *with, *map;
    int64_t vector;
    uint32_t arrays;
    int64_t sizes[HLO_EVAL_MAX_RANK];      /* sizes of a window, by dimension of the result */
    int64_t window_dim[HLO_EVAL_MAX_RANK]; /* dimension of the updates, by dimension of the result;
                                            * -1 if windows lack the dimension */
    bool shared[HLO_EVAL_MAX_RANK];        /* dimensions of the updates divided among threads */
    const char *at[HLO_EVAL_MAX_RANK];     /* index in the updates, by dimension */
    int64_t updates;                       /* number of windows */
    const char *atomic;                    /* the atomic operation that applies updates, or NULL */
    /* The members below are used for sorted updates. */
    int64_t places;                     /* number of positions that windows may have */
    int64_t strides[HLO_EVAL_MAX_RANK]; /* by dimension of the result */
    const char *key;                    /* type of a record: position << shift | update */
    int shift;
    uint32_t minor; /* dimension of the updates in which threads have several elements */
    const char
        *base[HLO_EVAL_MAX_RANK]; /* base of a thread's elements, by dimension of the updates */
    bool cells;                   /* the combiner takes cells, not values */
    const char **sum;             /* the results' elements, as the combiner takes them */
} scattering;

/* True if windows have several positions along a dimension of the result. */
static bool moves_along(const scattering *s, uint32_t d) {
    return hlo_ints_contain(s->map, d) && s->sizes[d] < s->wide->dims[d];
}

static void find_dimensions(scattering *s) {
    const hlo_instruction *i = s->instr;
    s->updates = 1;
    s->arrays = i->operand_count / 2;
    s->cells = emit_region_moves(hlo_instr_comp(i, HLO_ATTR_TO_APPLY));
    s->indices = hlo_instr_operand(i, s->arrays);
    s->wide = hlo_instr_operand(i, 0)->shape;
    s->narrow = hlo_instr_operand(i, s->arrays + 1)->shape;
    s->window = hlo_instr_ints(i, HLO_ATTR_UPDATE_WINDOW_DIMS);
    s->dropped = hlo_instr_ints(i, HLO_ATTR_INSERTED_WINDOW_DIMS);
    s->batching = hlo_instr_ints(i, HLO_ATTR_INPUT_BATCHING_DIMS);
    s->with = hlo_instr_ints(i, HLO_ATTR_SCATTER_INDICES_BATCHING_DIMS);
    s->map = hlo_instr_ints(i, HLO_ATTR_SCATTER_DIMS_TO_OPERAND_DIMS);
    s->vector = hlo_instr_int(i, HLO_ATTR_INDEX_VECTOR_DIM, 0);
    for (uint32_t d = 0, w = 0; d < s->wide->rank; d++) {
        bool kept = !hlo_ints_contain(s->dropped, d) && !hlo_ints_contain(s->batching, d);
        s->window_dim[d] = kept ? s->window->v[w++] : -1;
        s->sizes[d] = kept ? s->narrow->dims[s->window_dim[d]] : 1;
    }
    const hlo_attr *unique = hlo_instr_attr(i, HLO_ATTR_UNIQUE_INDICES);
    for (uint32_t d = 0; d < s->narrow->rank; d++) s->shared[d] = unique && unique->u.i;
    for (uint32_t d = 0; d < s->narrow->rank; d++)
        if (!hlo_ints_contain(s->window, d)) s->updates *= s->narrow->dims[d];
    for (uint32_t d = 0; d < s->wide->rank; d++)
        if (s->window_dim[d] >= 0 && (!moves_along(s, d) || s->updates == 1))
            s->shared[s->window_dim[d]] = true;
    for (uint32_t d = 0, place = 0; d < s->narrow->rank; d++) {
        if (hlo_ints_contain(s->window, d)) continue;
        if (place == s->vector) place++;
        if (hlo_ints_contain(s->with, place++)) s->shared[d] = true;
    }
}

/* Returns the index of an update's element in the result, and writes the bounds condition. */
static const emit_index *destination(scattering *s, const char **out_fits) {
    emit *e = s->e;
    const char *place[HLO_EVAL_MAX_RANK], *at[HLO_EVAL_MAX_RANK], *inside = "true";
    uint32_t places = 0;
    for (uint32_t d = 0; d < s->narrow->rank; d++)
        if (!hlo_ints_contain(s->window, d)) place[places++] = s->at[d];
    for (uint32_t d = 0; d < s->wide->rank; d++)
        at[d] = s->window_dim[d] >= 0 ? s->at[s->window_dim[d]] : "0";
    for (uint32_t i = 0; i < s->batching->count; i++)
        at[s->batching->v[i]] = place[s->with->v[i] - (s->with->v[i] > s->vector)];
    for (uint32_t k = 0; k < s->map->count; k++) {
        int64_t d = s->map->v[k];
        const char *start = emit_index_element(e, s->indices, s->vector, k, place);
        inside = hlo_arena_format(e->arena, "%s && fits(%s, %lld)", inside, start,
                                  (long long)(s->wide->dims[d] - s->sizes[d]));
        if (moves_along(s, (uint32_t)d))
            at[d] = emit_offset(e, "(%s)%s + %s", e->offset, start, at[d]);
    }
    *out_fits = inside;
    return emit_index_in(e, s->wide, at);
}

/* Returns the type of the combiner's arguments for an array. */
static const char *type_of(const scattering *s, uint32_t array) {
    const cuda_type *type = &cuda_types[s->e->job->results[array].type];
    return s->cells ? type->cell : type->compute;
}

/* Loads an element of a result, in the form that the combiner takes. */
static const char *load(const scattering *s, uint32_t array, const emit_index *at) {
    const char *cell = emit_load_result(s->e, array, at);
    return emit_as(s->e, s->e->job->results[array].type, cell, true, s->cells);
}

/* Adds the launch of a kernel in which each thread applies all updates to its elements. */
static void scatter_all(scattering *s, cuda_code *code) {
    emit *e = s->e;
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    int64_t dims[HLO_EVAL_MAX_RANK], strides[HLO_EVAL_MAX_RANK], count = 1;
    for (uint32_t d = s->narrow->rank; d-- > 0; count *= dims[d]) {
        dims[d] = s->shared[d] ? s->narrow->dims[d] : 1;
        strides[d] = count;
    }
    hlo_view view = {.rank = s->narrow->rank, .dims = dims, .strides = strides};
    emit_space space = emit_space_of(&view);
    const emit_index *index = emit_loop_index(e, &space, &inner);
    uint32_t loops = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t d = 0; d < s->narrow->rank; d++) {
            if (hlo_ints_contain(s->window, d) != (pass == 1)) continue;
            s->at[d] = index->at[d];
            if (s->shared[d] || s->narrow->dims[d] == 1) continue;
            s->at[d] = emit_name(e, "i");
            emit_open(e, "for (%s %s = 0; %s < %lld; %s++) {", e->offset, s->at[d], s->at[d],
                      (long long)s->narrow->dims[d], s->at[d]);
            loops++;
        }
    const char *inside;
    const emit_index *to = destination(s, &inside);
    const emit_index *from = emit_index_in(e, s->narrow, s->at);
    emit_open(e, "if (%s) {", inside);
    const char **in = hlo_arena_array(e->arena, 2 * s->arrays, sizeof *in);
    const char **out = hlo_arena_array(e->arena, s->arrays, sizeof *out);
    for (uint32_t a = 0; a < s->arrays; a++)
        in[s->arrays + a] =
            emit_pull(e, hlo_instr_operand(s->instr, s->arrays + 1 + a), from, s->cells);
    if (s->atomic) {
        /* Atomic operations require unsigned types, except for Max and Min. */
        const hlo_view *result = &s->e->job->results[0];
        const char *type = s->atomic[0] == 'M'                  ? cuda_types[result->type].cell
                           : hlo_types[result->type].bits == 32 ? "uint"
                                                                : "uint64";
        emit_text(s->e, "atomic%s((%s *)%s + (%s), (%s)%s);", s->atomic, type, emit_result(s->e, 0),
                  emit_dot(s->e, to, result->strides), type, in[1]);
    } else {
        for (uint32_t a = 0; a < s->arrays; a++) in[a] = load(s, a, to);
        emit_region(e, hlo_instr_comp(s->instr, HLO_ATTR_TO_APPLY), in, s->cells, out, s->cells);
        for (uint32_t a = 0; a < s->arrays; a++)
            emit_store(e, a, to, emit_as(e, e->job->results[a].type, out[a], s->cells, true));
    }
    emit_close(e);
    while (loops-- > 0) emit_close(e);
    emit_loop_end(e, &space);
    emit_add_launch(e, code,
                    emit_launch(e, "scatter", &lines, emit_blocks(e, space.count), 0, NULL));
}

/* ------------------------------------------------------------------------------- sorted updates */

static int bits_of(int64_t value) {
    int bits = 0;
    for (uint64_t rest = (uint64_t)value; rest; rest >>= 1) bits++;
    return bits;
}

/* Numbers the positions of windows. Returns true if updates should be sorted by these numbers. */
static bool find_places(scattering *s) {
    int64_t serial = 1;
    for (uint32_t d = 0; d < s->narrow->rank; d++)
        if (!s->shared[d]) serial *= s->narrow->dims[d];
    s->places = 1;
    for (uint32_t d = s->wide->rank; d-- > 0;) {
        const bool moves = moves_along(s, d);
        if (moves && s->sizes[d] != 1) return false;
        s->strides[d] = 0;
        if (!moves && !hlo_ints_contain(s->batching, d)) continue;
        s->strides[d] = s->places;
        s->places *= s->wide->dims[d];
    }
    s->shift = bits_of(s->updates - 1);
    const int bits = s->shift + bits_of(s->places);
    s->key = bits <= 32 ? "uint" : "uint64";
    return serial > FEW && bits <= 64;
}

static void enter_update(scattering *s, const char *update) {
    uint32_t order[HLO_EVAL_MAX_RANK], count = 0;
    for (uint32_t d = s->narrow->rank; d-- > 0;)
        if (!hlo_ints_contain(s->window, d)) order[count++] = d;
    emit_split(s->e, update, s->narrow->dims, order, count, s->at);
}

static void load_key(sorting *sort, const char *row, const char *at) {
    scattering *s = sort->user;
    (void)row;
    const char *fits;
    for (uint32_t d = 0; d < s->narrow->rank; d++) s->at[d] = "0";
    enter_update(s, at);
    const char *place = emit_dot(s->e, destination(s, &fits), s->strides);
    emit_text(s->e, "return (%s ? (%s)%s : (%s)%lld) << %d | (%s)%s;", fits, s->key, place, s->key,
              (long long)s->places, s->shift, s->key, at);
}

static const char *compare_keys(sorting *sort, const char *x, const char *y) {
    return hlo_arena_format(sort->e->arena, "%s < %s", x, y);
}

static void begin_elements(scattering *s, emit_lines *inner, const char **outer, uint32_t count) {
    emit *e = s->e;
    e->linear = e->base = e->minor = NULL;
    e->outer = outer;
    e->outer_count = count;
    for (uint32_t d = 0; d < s->narrow->rank; d++)
        if (hlo_ints_contain(s->window, d)) s->at[d] = s->base[d];
    emit_elements_begin(e, inner);
    if (e->width == 1) return;
    e->minor_base = s->base[s->minor];
    s->at[s->minor] = e->minor = emit_offset(e, "%s + u", e->minor_base);
}

static void apply_one(scattering *s, const char *record, const char **outer, uint32_t count) {
    emit *e = s->e;
    emit_lines inner;
    const char **in = hlo_arena_array(e->arena, 2 * s->arrays, sizeof *in);
    const char **out = hlo_arena_array(e->arena, s->arrays, sizeof *out);
    enter_update(s, emit_value(e, "i", e->offset, "(%s)(t0[%s] & %lluull)", e->offset, record,
                               (1ull << s->shift) - 1));
    for (uint32_t d = 0; d < s->narrow->rank; d++)
        if (!hlo_ints_contain(s->window, d)) outer[count++] = s->at[d];
    begin_elements(s, &inner, outer, count);
    const emit_index *from = emit_index_in(e, s->narrow, s->at);
    for (uint32_t a = 0; a < s->arrays; a++) {
        in[a] = emit_value(e, "v", type_of(s, a), "%s", s->sum[a]);
        in[s->arrays + a] =
            emit_pull(e, hlo_instr_operand(s->instr, s->arrays + 1 + a), from, s->cells);
    }
    emit_region(e, hlo_instr_comp(s->instr, HLO_ATTR_TO_APPLY), in, s->cells, out, s->cells);
    for (uint32_t a = 0; a < s->arrays; a++) emit_text(e, "%s = %s;", s->sum[a], out[a]);
    emit_elements_end(e);
}

static void move_results(scattering *s, const char **outer, uint32_t count, bool store) {
    emit *e = s->e;
    emit_lines inner;
    const char *fits;
    begin_elements(s, &inner, outer, count);
    const emit_index *to = destination(s, &fits);
    for (uint32_t a = 0; a < s->arrays; a++) {
        if (store)
            emit_store(e, a, to, emit_as(e, e->job->results[a].type, s->sum[a], s->cells, true));
        else
            emit_text(e, "%s = %s;", s->sum[a], load(s, a, to));
    }
    emit_elements_end(e);
}

/* Writes the loops over the sorted updates of one window position, which start at `first`: a loop
 * over several updates at a time, and a loop over the rest. */
static void apply_segment(scattering *s, const char *first, const char **outer, uint32_t count) {
    emit *e = s->e;
    const int together = e->width > 2 ? TOGETHER : 2 * TOGETHER;
    const char *update = emit_name(e, "i");
    emit_text(e, "%s %s = %s;", e->offset, update, first);
    emit_open(e, "for (; %s + %d < %lld && t0[%s + %d] >> %d == place; %s += %d) {", update,
              together - 1, (long long)s->updates, update, together - 1, s->shift, update,
              together);
    emit_open_repeat(e, "j", together);
    apply_one(s, hlo_arena_format(e->arena, "%s + j", update), outer, count);
    emit_close(e);
    emit_close(e);
    emit_open(e, "for (; %s < %lld && t0[%s] >> %d == place; %s++) {", update,
              (long long)s->updates, update, s->shift, update);
    apply_one(s, update, outer, count);
    emit_close(e);
}

/* Adds the launch of a kernel with a thread for every few elements of each update. The threads of
 * the first update of a window position apply all updates of that position; the other threads do
 * nothing. */
static void scatter_sorted(scattering *s, cuda_code *code, size_t keys) {
    emit *e = s->e;
    emit_lines lines = {0};
    emit_restart(e, &lines);
    /* View the windows as consecutive arrays, each in memory order. */
    hlo_view view = hlo_view_in_layout(e->arena, s->narrow);
    emit_space space = emit_space_of(&view);
    uint32_t order[HLO_EVAL_MAX_RANK], rank = 0;
    for (uint32_t i = 0; i < space.rank; i++)
        if (hlo_ints_contain(s->window, space.order[i])) order[rank++] = space.order[i];
    if (rank) s->minor = order[0];
    for (uint32_t i = rank; i-- > 0;)
        if (s->narrow->dims[order[i]] > 1) s->minor = order[i];
    e->width = rank ? emit_width(e, &space, s->narrow->dims[s->minor]) : 1;
    int64_t window = space.count / s->updates;
    const char *element = emit_name(e, "i"), *fits, *outer[4 * HLO_EVAL_MAX_RANK];
    emit_text(e, "const %s %s = ((%s)blockIdx.x * %d + (%s)threadIdx.x) * %d;", e->offset, element,
              e->offset, CUDA_BLOCK, e->offset, e->width);
    emit_text(e, "if (%s >= %lld) return;", element, (long long)space.count);
    const char *first = emit_offset(e, "%s / %lld", element, (long long)window);
    const char *inside = emit_offset(e, "%s %% %lld", element, (long long)window);
    emit_text(e, "const %s place = t0[%s] >> %d;", s->key, first, s->shift);
    emit_text(e, "if (place >= %lldull || (%s > 0 && t0[%s - 1] >> %d == place)) return;",
              (long long)s->places, first, first, s->shift);
    emit_split(e, inside, s->narrow->dims, order, rank, s->base);
    memcpy(s->at, s->base, s->narrow->rank * sizeof *s->at);
    enter_update(s, emit_value(e, "i", e->offset, "(%s)(t0[%s] & %lluull)", e->offset, first,
                               (1ull << s->shift) - 1));
    const emit_index *to = destination(s, &fits);
    uint32_t count = 0;
    for (uint32_t d = 0; d < rank; d++) outer[count++] = s->base[order[d]];
    for (uint32_t d = 0; d < to->rank; d++) outer[count++] = to->at[d];
    s->sum = hlo_arena_array(e->arena, s->arrays, sizeof *s->sum);
    for (uint32_t a = 0; a < s->arrays; a++) {
        const char *name = emit_name(e, "a"), *type = type_of(s, a);
        s->sum[a] = e->width > 1 ? hlo_arena_format(e->arena, "%s[u]", name) : name;
        if (e->width > 1)
            emit_text(e, "%s %s[%d];", type, name, e->width);
        else
            emit_text(e, "%s %s;", type, name);
    }
    const char *const *at = hlo_arena_copy(e->arena, s->at, sizeof s->at);
    move_results(s, outer, count, false);
    apply_segment(s, first, outer, count);
    memcpy(s->at, at, sizeof s->at);
    move_results(s, outer, count, true);
    const int64_t each = (int64_t)CUDA_BLOCK * e->width;
    const emit_scratch scratch = {hlo_arena_format(e->arena, "const %s", s->key), keys, false};
    emit_add_launch(
        e, code, emit_launch(e, "scatter", &lines, (space.count + each - 1) / each, 1, &scratch));
}

/* -------------------------------------------------------------------------------------- kernels */

void emit_scatter(emit *e, cuda_code *code) {
    scattering s = {.e = e, .instr = e->job->group.results[0]};
    const char *why = cuda_applied_refusal(s.instr);
    if (why) {
        emit_refuse(e, "%s", why);
        return;
    }
    find_dimensions(&s);
    /* If elements may have several updates in any order, find the combiner's atomic operation. */
    static const char *const names[] = {
        [HLO_OP_ADD] = "Add", [HLO_OP_MAXIMUM] = "Max", [HLO_OP_MINIMUM] = "Min",
        [HLO_OP_AND] = "And", [HLO_OP_OR] = "Or",       [HLO_OP_XOR] = "Xor"};
    const hlo_op op = hlo_region_simple(hlo_instr_comp(s.instr, HLO_ATTR_TO_APPLY));
    bool serial = false;
    for (uint32_t d = 0; d < s.narrow->rank; d++) serial |= !s.shared[d] && s.narrow->dims[d] > 1;
    if (serial && s.arrays == 1 && hlo_type_is_integer(s.wide->type) &&
        hlo_types[s.wide->type].bits >= 32 && (size_t)op < sizeof names / sizeof *names)
        s.atomic = names[op];
    for (uint32_t d = 0; d < s.narrow->rank; d++) s.shared[d] |= s.atomic != NULL;
    if (hlo_shape_count(s.wide) == 0) return;
    /* Copy operands to results. A result may reuse the memory of an operand that occurs once. */
    for (uint32_t a = 0; a < s.arrays; a++) {
        const hlo_instruction *operand = hlo_instr_operand(s.instr, a);
        const uint32_t leaf = emit_leaf(e, operand);
        uint32_t times = 0;
        for (uint32_t o = 0; o < s.instr->operand_count; o++)
            times += hlo_instr_operand(s.instr, o) == operand;
        if (!emit_copy(e, code, leaf, a))
            emit_relayout(e, code, leaf, a);
        else if (times == 1)
            hlo_overwrites_add(&code->overwrites, e->arena, a, leaf);
    }
    if (hlo_shape_count(s.narrow) == 0) return;
    e->offset = emit_offset_type(e, hlo_shape_count(s.narrow));
    if (find_places(&s)) {
        sorting sort = {.e = s.e,
                        .code = code,
                        .rows = 1,
                        .count = s.updates,
                        .record = s.key,
                        .bytes = strcmp(s.key, "uint") == 0 ? 4 : 8,
                        .user = &s,
                        .load = load_key,
                        .less = compare_keys};
        scatter_sorted(&s, code, add_sorting(&sort));
    } else
        scatter_all(&s, code);
}
