/* Kernels whose results go to positions computed at run time: "scatter" and "sort". Both give the
 * same bits in each run. */
#include <string.h>

#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/emit.h"

/* -------------------------------------------------------------------------------------- scatter */

/* The operands are copied to the results, then updates are applied in their order. Dimensions of a
 * result that no index moves along are divided among threads, so that no two threads write one
 * element; all other dimensions as well if indices are declared unique. */

typedef struct scattering {
    emit *e;
    const hlo_instr *instr, *indices;
    const hlo_shape *wide, *narrow;
    const hlo_ints *window, *dropped, *batching, *with, *map;
    int64_t vector;
    uint32_t arrays;
    int64_t sizes[HLO_EVAL_MAX_RANK];      /* of a window, by dimension of the result */
    int64_t window_dim[HLO_EVAL_MAX_RANK]; /* of the updates; -1: the window has none */
    bool shared[HLO_EVAL_MAX_RANK];        /* dimensions of the updates divided among threads */
    const char *at[HLO_EVAL_MAX_RANK];     /* of the updates */
} scattering;

static const hlo_shape *result_shape(const hlo_instr *instr, uint32_t array) {
    return instr->shape->type == HLO_TYPE_TUPLE ? instr->shape->elements[array] : instr->shape;
}

const char *cuda_applied_refusal(const hlo_instr *instr) {
    for (uint32_t i = 0; i < instr->operand_count; i++)
        if (!cuda_types[hlo_instr_operand(instr, i)->shape->type].cell)
            return "has no kernel for its element type";
    return cuda_region_refusal(hlo_instr_comp(instr, HLO_ATTR_TO_APPLY));
}

static void find_dimensions(scattering *s) {
    const hlo_instr *i = s->instr;
    s->arrays = i->operand_count / 2;
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
    for (uint32_t d = 0; d < s->wide->rank; d++)
        if (s->window_dim[d] >= 0 && !hlo_ints_contain(s->map, d))
            s->shared[s->window_dim[d]] = true;
    for (uint32_t d = 0, place = 0; d < s->narrow->rank; d++) {
        if (hlo_ints_contain(s->window, d)) continue;
        if (place == s->vector) place++;
        if (hlo_ints_contain(s->with, place++)) s->shared[d] = true;
    }
}

/* Returns the index that an update goes to, and whether its window fits. */
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
        at[d] = emit_offset(e, "(%s)%s + %s", e->offset, start, at[d]);
    }
    *out_fits = inside;
    return emit_index_new(e, s->wide->rank, s->wide->dims, at, NULL, NULL);
}

static void apply(scattering *s) {
    emit *e = s->e;
    const char *inside;
    const emit_index *to = destination(s, &inside);
    const emit_index *from = emit_index_new(e, s->narrow->rank, s->narrow->dims, s->at, NULL, NULL);
    emit_open(e, "if (%s) {", inside);
    const char **in = hlo_arena_array(e->arena, 2 * s->arrays, sizeof *in);
    const char **out = hlo_arena_array(e->arena, s->arrays, sizeof *out);
    for (uint32_t a = 0; a < s->arrays; a++) {
        const hlo_view *view = &e->job->results[a];
        const char *cell = emit_value(e, "c", cuda_types[view->type].cell, "%s[%s]",
                                      emit_result(e, a), emit_dot(e, to, view->strides));
        in[a] = emit_decoded(e, view->type, cell);
        in[s->arrays + a] =
            emit_pull(e, hlo_instr_operand(s->instr, s->arrays + 1 + a), from, false);
    }
    emit_region(e, hlo_instr_comp(s->instr, HLO_ATTR_TO_APPLY), in, out);
    for (uint32_t a = 0; a < s->arrays; a++)
        emit_store(e, a, to, emit_cell(e, e->job->results[a].type, out[a]));
    emit_close(e);
}

void emit_scatter(emit *e, cuda_code *code) {
    scattering s = {.e = e, .instr = e->job->group.results[0]};
    const char *why = cuda_applied_refusal(s.instr);
    if (why) {
        emit_refuse(e, "%s", why);
        return;
    }
    find_dimensions(&s);
    for (uint32_t a = 0; a < s.arrays; a++) {
        const hlo_instr *operand = hlo_instr_operand(s.instr, a);
        if (emit_is_member(e, operand) || !emit_copy(e, code, emit_leaf(e, operand), a)) {
            emit_refuse(e, "has no kernel for operands of another layout than its results");
            return;
        }
    }
    code->overwrites = s.arrays == 1 ? (int)emit_leaf(e, hlo_instr_operand(s.instr, 0)) : -1;
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    int64_t dims[HLO_EVAL_MAX_RANK], strides[HLO_EVAL_MAX_RANK], count = 1;
    for (uint32_t d = s.narrow->rank; d-- > 0; count *= dims[d]) {
        dims[d] = s.shared[d] ? s.narrow->dims[d] : 1;
        strides[d] = count;
    }
    if (hlo_shape_count(s.narrow) == 0) return;
    hlo_view view = {.rank = s.narrow->rank, .dims = dims, .strides = strides};
    emit_space space = emit_space_of(&view);
    e->offset = emit_offset_type(e, space.count);
    const emit_index *index = emit_loop_index(e, &space, &inner);
    uint32_t loops = 0;
    for (uint32_t pass = 0; pass < 2; pass++)
        for (uint32_t d = 0; d < s.narrow->rank; d++) {
            if (hlo_ints_contain(s.window, d) != (pass == 1)) continue;
            s.at[d] = index->at[d];
            if (s.shared[d] || s.narrow->dims[d] == 1) continue;
            s.at[d] = emit_name(e, "i");
            emit_open(e, "for (%s %s = 0; %s < %lld; %s++) {", e->offset, s.at[d], s.at[d],
                      (long long)s.narrow->dims[d], s.at[d]);
            loops++;
        }
    apply(&s);
    while (loops-- > 0) emit_close(e);
    emit_loop_end(e, &space);
    for (uint32_t a = 0; a < s.arrays; a++)
        if (e->uses[0][emit_leaf(e, hlo_instr_operand(s.instr, a))]) code->overwrites = -1;
    emit_add_launch(e, code,
                    emit_launch(e, "scatter", &lines, emit_blocks(e, space.count), 0, NULL));
}

/* ----------------------------------------------------------------------------------------- sort */

/* Each thread counts the elements before its own: the smaller ones, and equal ones with a lower
 * index. The count is its position. */

void emit_sort(emit *e, cuda_code *code) {
    const hlo_instr *instr = e->job->group.results[0];
    const char *why = cuda_applied_refusal(instr);
    if (why) emit_refuse(e, "%s", why);
    const hlo_shape *shape = result_shape(instr, 0);
    int64_t dim = hlo_instr_ints(instr, HLO_ATTR_DIMENSIONS)->v[0];
    uint32_t arrays = instr->operand_count;
    emit_space space = emit_space_of(&e->job->results[0]);
    if (e->why || space.count == 0) return;
    emit_lines lines = {0}, inner;
    emit_restart(e, &lines);
    e->offset = emit_offset_type(e, space.count);
    const emit_index *index = emit_loop_index(e, &space, &inner);
    const char *at[HLO_EVAL_MAX_RANK], *place = emit_name(e, "i"), *other = emit_name(e, "i");
    memcpy(at, index->at, index->rank * sizeof *at);
    const char **forth = hlo_arena_array(e->arena, 2 * arrays, sizeof *forth);
    const char **back = hlo_arena_array(e->arena, 2 * arrays, sizeof *back), *less, *more;
    for (uint32_t a = 0; a < arrays; a++)
        forth[2 * a + 1] = back[2 * a] = emit_pull(e, hlo_instr_operand(instr, a), index, false);
    emit_text(e, "%s %s = 0;", e->offset, place);
    emit_open(e, "for (%s %s = 0; %s < %lld; %s++) {", e->offset, other, other,
              (long long)shape->dims[dim], other);
    at[dim] = other;
    const emit_index *there = emit_index_new(e, index->rank, shape->dims, at, NULL, NULL);
    for (uint32_t a = 0; a < arrays; a++)
        forth[2 * a] = back[2 * a + 1] = emit_pull(e, hlo_instr_operand(instr, a), there, false);
    emit_region(e, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), forth, &less);
    emit_region(e, hlo_instr_comp(instr, HLO_ATTR_TO_APPLY), back, &more);
    emit_text(e, "%s += %s || (%s < %s && !%s);", place, less, other, index->at[dim], more);
    emit_close(e);
    at[dim] = place;
    const emit_index *to = emit_index_new(e, index->rank, shape->dims, at, NULL, NULL);
    for (uint32_t a = 0; a < arrays; a++)
        emit_store(e, a, to, emit_pull(e, hlo_instr_operand(instr, a), index, true));
    emit_loop_end(e, &space);
    emit_add_launch(e, code, emit_launch(e, "sort", &lines, emit_blocks(e, space.count), 0, NULL));
}
