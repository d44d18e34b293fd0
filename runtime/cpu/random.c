/* SPDX-License-Identifier: Apache-2.0 */
/* Reproducible random numbers. Element i of the n-th execution of an `rng` in a run is derived from
 * Philox-4x32 of the counter (i, device * 2^32 + n). The key is the FNV-1a hash of the
 * instruction's name, so that rewriting a module does not change its random numbers. */
#include "runtime/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/kernel/kernel.h"

/* The state of a job. */
typedef struct draws {
    uint64_t key, run, count; /* count: number of executions in the run */
} draws;

bool cpu_is_random(hlo_op op) {
    return op == HLO_OP_RNG || op == HLO_OP_RNG_GET_AND_UPDATE_STATE;
}

static bool is_normal(const hlo_instruction *rng) {
    const char *word = hlo_instr_str(rng, HLO_ATTR_DISTRIBUTION);
    return word && !strcmp(word, "rng_normal");
}

const char *cpu_random_refusal(const hlo_instruction *instr) {
    if (instr->op != HLO_OP_RNG) return NULL;
    const hlo_type type = instr->shape->type;
    if (hlo_type_is_float(type) || (hlo_type_is_integer(type) && !is_normal(instr))) return NULL;
    return "is not supported by the cpu backend for this element type";
}

void cpu_random_prepare(hlo_job *job, hlo_arena *arena) {
    draws *d = hlo_arena_zero(arena, sizeof *d);
    d->key = UINT64_C(0xcbf29ce484222325);
    d->run = UINT64_MAX;
    for (const char *at = job->instr->name; *at; at++)
        d->key = (d->key ^ (unsigned char)*at) * UINT64_C(0x100000001b3);
    job->state = d;
}

/* Returns a number in [0, 1) with at most `bits` bits. */
static double unit(uint32_t high, uint32_t low, int bits) {
    const uint64_t all = (uint64_t)high << 32 | low;
    return ldexp((double)(all >> (64 - bits)), -bits);
}

static double draw_float(bool normal, const uint32_t words[4], int bits, double a, double b) {
    if (!normal) return a + (b - a) * unit(words[0], words[1], bits);
    const double radius = sqrt(-2 * log(1 - unit(words[0], words[1], 53)));
    return a + b * radius * cos(6.283185307179586 * unit(words[2], words[3], 53));
}

/* Counts the executions of the job in this run. Returns 0 for the first. */
static uint64_t next_execution(const hlo_job *job) {
    draws *d = job->state;
    if (d->run != job->stream >> 40) d->count = 0;
    d->run = job->stream >> 40;
    return d->count++;
}

void cpu_random_execute(const cpu_device *cpu, const hlo_job *job) {
    if (job->instr->op == HLO_OP_RNG) {
        /* Draw between a minimum and a limit, or with a mean and a standard deviation. */
        const draws *d = job->state;
        const hlo_view *out = &job->results[0];
        hlo_chunk ends[2], value;
        uint64_t counter[] = {0, (uint64_t)hlo_seat_number(&cpu->seat) << 32 | next_execution(job)};
        for (int i = 0; i < 2; i++)
            hlo_lane_load(job->operands[i].type, job->operands[i].data, 0, 1, &ends[i]);
        hlo_dims index = {{0}};
        const bool normal = is_normal(job->instr);
        const hlo_type type = job->instr->shape->type;
        const hlo_lane lane = hlo_lane_of(type);
        for (bool more = hlo_view_count(out) > 0; more;
             more = hlo_dims_next(out->rank, out->dims, index.v)) {
            uint32_t words[4];
            hlo_philox(counter, d->key, words);
            counter[0]++;
            if (lane == HLO_LANE_F32) {
                const double a = (double)ends[0].f32[0], b = (double)ends[1].f32[0];
                const int bits = hlo_float_precision(type);
                value.f32[0] = (float)draw_float(normal, words, bits, a, b);
            } else if (lane == HLO_LANE_F64) {
                value.f64[0] = draw_float(normal, words, 53, ends[0].f64[0], ends[1].f64[0]);
            } else {
                const uint64_t from = ends[0].u64[0], range = ends[1].u64[0] - from;
                const uint64_t all = (uint64_t)words[0] << 32 | words[1];
                value.u64[0] = from + (range ? all % range : 0);
            }
            hlo_lane_store(out->type, &value, 1, hlo_view_element(out, index.v), 0);
        }
    } else {
        /* Read and advance the instruction's state. XLA's state has the same initial value. */
        static const uint64_t first = 0x7012395;
        const uint64_t delta = (uint64_t)hlo_instr_int(job->instr, HLO_ATTR_DELTA, 0);
        uint64_t state[] = {first, 0};
        for (uint64_t n = next_execution(job); n > 0; n--) {
            state[0] += delta;
            state[1] += state[0] < delta;
        }
        memcpy(job->results[0].data, state, sizeof state);
    }
    if (job->bounded) {
        /* The drawn numbers are exact: set their sigmas to 0. */
        const hlo_view *sigma = &job->result_sigmas[0];
        float worst = 0, *out = sigma->data;
        for (uint32_t i = 0; i < job->operand_count; i++) {
            const float *own = job->operand_sigmas[i].data;
            if (own && !(*own <= 0)) worst = INFINITY;
        }
        for (int64_t i = 0; out && i < hlo_view_count(sigma); i++) out[i] = worst;
    }
}
