/* SPDX-License-Identifier: Apache-2.0 */
/* Runs programs of tiles. */
#include "runtime/cpu/tile.h"

#include <string.h>

#include "runtime/cpu/cpu.h"

/* Minimum number of computed lanes for which a job is shared among threads. */
enum { WORTH_SHARING = 1 << 15 };

/* Copies `count` elements of a source, starting at element `first`, to consecutive positions. */
static void gather(const tile_source *s, hlo_type type, const char *data, int64_t first,
                   int64_t count, char *out) {
    const uint32_t inner = s->rank - 1;
    const int64_t size = hlo_types[type].bytes;
    int64_t index[HLO_EVAL_MAX_RANK];
    for (uint32_t d = s->rank; d-- > 0; first /= s->dims[d]) {
        index[d] = first % s->dims[d];
        data += index[d] * s->steps[d];
    }
    for (;;) {
        int64_t n = s->dims[inner] - index[inner];
        if (n > count) n = count;
        hlo_copy_row((size_t)size, data, s->steps[inner], n, out, size);
        out += n * size;
        count -= n;
        if (count == 0) return;
        data -= index[inner] * s->steps[inner];
        index[inner] = 0;
        for (uint32_t d = inner; d-- > 0;) {
            data += s->steps[d];
            if (++index[d] < s->dims[d]) break;
            data -= s->dims[d] * s->steps[d];
            index[d] = 0;
        }
    }
}

typedef struct tile_run {
    const tile_program *program;
    const hlo_job *job;
} tile_run;

/* Returns the address of the tile that begins with element `first`. */
static void *address(const tile_run *r, uint64_t *memory, const tile_ref *ref, int64_t first) {
    if (ref->place == TILE_BUFFER) return memory + ref->index * r->program->length;
    const hlo_view *view =
        ref->place == TILE_OPERAND ? &r->job->operands[ref->index] : &r->job->results[ref->index];
    return (char *)view->data + first * ref->bytes;
}

static void run_op(const tile_run *r, const tile_op *op, uint64_t *memory, int64_t first,
                   int64_t count) {
    const void *in[3];
    const int64_t bytes = hlo_types[op->type].bytes;
    for (uint32_t i = 0; i < op->in_count; i++) in[i] = address(r, memory, &op->in[i], first);
    void *out = address(r, memory, &op->out, first);
    switch (op->kind) {
    case TILE_GATHER:
        gather(op->source, op->type, r->job->operands[op->source->operand].data, first, count, out);
        break;
    case TILE_COPY: memcpy(out, in[0], (size_t)(count * bytes)); break;
    case TILE_LOAD: hlo_lane_load(op->type, in[0], bytes, count, out); break;
    case TILE_STORE: hlo_lane_store(op->type, in[0], count, out, bytes); break;
    case TILE_CONVERT:
        hlo_lane_convert(op->type, op->to, in[0], count, out, hlo_types[op->to].bytes);
        break;
    case TILE_LOOP: hlo_lane_op_run(&op->loop, count, in, out); break;
    }
}

static void run_tiles(void *arg, int64_t begin, int64_t end) {
    const tile_run own = *(const tile_run *)arg, *r = &own;
    const tile_program *p = r->program;
    _Alignas(64) uint64_t memory[TILE_MEMORY];
    for (uint32_t i = 0; i < p->once; i++) run_op(r, &p->ops[i], memory, 0, p->length);
    for (int64_t tile = begin; tile < end; tile++) {
        int64_t first = tile * p->length;
        int64_t count = p->count - first < p->length ? p->count - first : p->length;
        for (uint32_t i = p->once; i < p->op_count; i++)
            run_op(r, &p->ops[i], memory, first, count);
    }
}

void cpu_tile_execute(const cpu_device *cpu, const hlo_job *job) {
    tile_run r = {job->state, job};
    const tile_program *p = r.program;
    int64_t tiles = (p->count + p->length - 1) / p->length;
    if (tiles > 1 && p->count * (p->op_count - p->once) >= WORTH_SHARING)
        cpu->env.parallel(cpu->env.user, tiles, run_tiles, &r);
    else
        run_tiles(&r, 0, tiles);
}
