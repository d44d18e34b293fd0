/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of a ragged-dot of FP8 values on the tensor cores (mma.sync, from sm_89 on). Tiles of both
 * operands are in shared memory with contiguous terms, as the instruction requires. Its sums, which
 * have fewer bits than f32 on some devices, are added in f32 tile by tile. */
#include "ir/kernel/kernel.h"
#include "runtime/cuda/codegen/ragged/ragged.h"
#include "runtime/cuda/driver/library.h"

/* TERMS: terms in shared memory at once. PITCH: bytes from row to row there. STEP: terms per
 * instruction. RUN: bytes loaded at once. */
enum { TERMS = 64, PITCH = TERMS + 16, STEP = 32, RUN = 16 };
enum { FIRST_SM = 89, FIRST_NVRTC = 1204 }; /* first versions with the instruction */

static bool is_mma_type(hlo_type type) {
    return type == HLO_TYPE_F8E4M3FN || type == HLO_TYPE_F8E5M2;
}

bool ragged_has_mma(const ragging *g) {
    const cuda_device *device = g->e->device;
    const cuda_library *lib = device->lib;
    int major, minor;
    /* There is no compiler if no device is open. */
    const bool compiled =
        !lib || lib->nvrtcVersion(&major, &minor) || major * 100 + minor >= FIRST_NVRTC;
    return device->sm >= FIRST_SM && compiled && is_mma_type(g->side[0].operand->shape->type) &&
           is_mma_type(g->side[1].operand->shape->type) &&
           (g->type == HLO_TYPE_F32 || g->type == HLO_TYPE_BF16 || g->type == HLO_TYPE_F16);
}

void ragged_mma_declare(ragging *g) {
    for (int i = 0; i < 2; i++) {
        g->side[i].shared = emit_name(g->e, "s");
        emit_text(g->e, "__shared__ pack<uchar, %d> %s[%d][%d];", RUN, g->side[i].shared,
                  RAGGED_MMA_SIDE, PITCH / RUN);
    }
}

/* Returns the operand's fastest dimension in memory if its bytes can be loaded RUN at a time: a run
 * starts at a multiple of RUN and is entirely inside or outside the group. -1: byte by byte. */
static int64_t run_dim(const ragging *g, unsigned number) {
    const ragged_side *s = &g->side[number];
    const hlo_shape *shape = s->operand->shape;
    const hlo_view *view = &g->e->job->operands[emit_leaf(g->e, s->operand)];
    int64_t fast = -1;
    for (uint32_t d = 0; d < shape->rank; d++) {
        if (shape->dims[d] == 1) continue;
        if (view->strides[d] == 1)
            fast = d;
        else if (view->strides[d] % RUN)
            return -1;
    }
    if (emit_is_member(g->e, s->operand) || fast < 0 || shape->dims[fast] % RUN) return -1;
    if (s->open.count && s->open.order[0] == fast)
        return number || g->r.mode != HLO_RAGGED_FREE ? fast : -1;
    const ragged_side *left = &g->side[0];
    const bool term = !number
                          ? g->summed.count && g->summed.order[0] == fast
                          : g->summed.count && left->summed->count == 1 && s->summed->v[0] == fast;
    return term && g->r.mode != HLO_RAGGED_CONTRACTING ? fast : -1;
}

/* Loads the bytes at the operand's index: a pack of `run`. */
static const char *load_run(ragging *g, const ragged_side *s, int run) {
    emit *e = g->e;
    const hlo_shape *shape = s->operand->shape;
    const emit_index *index = emit_index_new(e, shape->rank, shape->dims, s->at, NULL, NULL);
    if (run == 1) return emit_pull(e, s->operand, index, true);
    const uint32_t leaf = emit_leaf(e, s->operand);
    const char *at = emit_dot(e, index, e->job->operands[leaf].strides);
    return hlo_arena_format(e->arena, "*(const pack<uchar, %d> *)(%s + (%s))", run,
                            emit_operand(e, leaf), at);
}

/* Writes the loads of a thread's registers for one instruction: 16 rows, or 8 columns. */
static const char *registers(ragging *g, unsigned number, const char *row) {
    const char *text = "";
    for (int i = 0; i < (number ? 2 : 4); i++)
        text = hlo_arena_format(
            g->e->arena, "%s, ((const uint *)%s[%s + %d])[%d + k / 4 + lane %% 4]", text,
            g->side[number].shared, row, number ? 0 : i % 2 * 8, (number ? i : i / 2) * 4);
    return text;
}

void ragged_mma_terms(ragging *g, const char *start, const char *end, const char *first,
                      const char *last) {
    emit *e = g->e;
    const char *step = emit_name(e, "i"), *sums = emit_name(e, "a");
    const ragged_part part = {step, end, first, last};
    emit_open(e, "for (%s %s = %s; %s < %s; %s += %d) {", e->offset, step, start, step, end, step,
              TERMS);
    emit_text(e, "__syncthreads();");
    for (unsigned i = 0; i < 2; i++) {
        /* Copies TERMS terms of an operand to shared memory. */
        const ragged_side *s = &g->side[i];
        const int run = run_dim(g, i) >= 0 ? RUN : 1;
        const ragged_place p = ragged_open_tile(g, i, &part, RAGGED_MMA_SIDE, TERMS, run);
        const char *value = emit_name(e, "w");
        emit_text(e, "pack<uchar, %d> %s = {};", run, value);
        ragged_open_inside(g, i, &p);
        emit_text(e, "%s%s = %s;", value, run == 1 ? ".v[0]" : "", load_run(g, s, run));
        emit_close(e);
        if (p.by_terms && run == RUN)
            emit_text(e, "%s[%s][%s / %d] = %s;", s->shared, p.row, p.term, RUN, value);
        else
            emit_text(
                e,
                "for (int u = 0; u < %d; u++) ((uchar *)%s[%s + u * %d])[%s + u * %d] = %s.v[u];",
                run, s->shared, p.row, !p.by_terms, p.term, p.by_terms, value);
        emit_close(e);
    }
    emit_text(e, "__syncthreads();");
    emit_text(e, "const int lane = threadIdx.x %% 32;");
    emit_text(e, "float %s[%d][%d] = {};", sums, RAGGED_MMA_ROWS, RAGGED_MMA_COLUMNS);
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int k = 0; k < %d; k += %d) {", TERMS, STEP);
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int n = 0; n < %d; n++) {", RAGGED_MMA_COLUMNS / 2);
    emit_text(e, "mma_%s_%s(%s[0][2 * n], %s[0][2 * n + 1], %s[1][2 * n], %s[1][2 * n + 1]%s%s);",
              hlo_types[g->side[0].operand->shape->type].name,
              hlo_types[g->side[1].operand->shape->type].name, sums, sums, sums, sums,
              registers(g, 0, "threadIdx.x / 64 * 16 + lane / 4"),
              registers(g, 1, "threadIdx.x / 32 % 2 * 32 + n * 8 + lane / 4"));
    emit_close(e);
    emit_close(e);
    emit_text(e, "#pragma unroll");
    emit_open(e, "for (int r = 0; r < %d; r++) {", RAGGED_MMA_ROWS);
    const char *row = emit_value(e, "i", e->offset, "%s + %s", g->side[0].base, RAGGED_MMA_ROW);
    emit_text(e, "if (%s < %s || %s >= %s) continue;", row, first, row, last);
    emit_text(e, "#pragma unroll");
    emit_text(e, "for (int c = 0; c < %d; c++) %s[r][c] += %s[r][c];", RAGGED_MMA_COLUMNS, g->sums,
              sums);
    emit_close(e);
    emit_close(e);
}
