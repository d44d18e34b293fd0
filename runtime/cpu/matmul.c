/* cuBLASLt matmul calls on the CPU: D = d_scale * epilogue(alpha * a_scale * b_scale * (A x B) +
 * beta * c_scale * C + bias), accumulated and scaled in f32 (matmul/call.h). */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "ir/eval/float.h"
#include "ir/eval/kernel.h"
#include "matmul/call.h"
#include "runtime/cpu/cpu.h"

/* Which operand of the call each part is; -1: absent. */
typedef struct parts {
    hlo_matmul matmul;
    int a, b, c, a_scale, b_scale, c_scale, d_scale, bias;
    int aux, amax, workspace; /* results */
    int64_t n;
} parts;

bool cpu_matmul_supports(const hlo_instr *call, hlo_arena *arena, const char **why) {
    hlo_matmul m;
    const char *reason;
    if (hlo_matmul_decode(call, &m, &reason) != HLO_OK) {
        *why = hlo_arena_format(arena, "is no matmul call that can be run: %s", reason);
        return false;
    }
    const hlo_type types[] = {m.a->shape->type, m.b->shape->type, m.d->type};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (!hlo_type_is_float(types[i]) || types[i] == HLO_TYPE_F64) {
            *why = hlo_arena_format(arena, "on %s is not run by the cpu backend",
                                    hlo_types[types[i]].name);
            return false;
        }
    return true;
}

static int operand_index(const hlo_instr *call, const hlo_instr *operand) {
    for (uint32_t i = 0; operand && i < call->operand_count; i++)
        if (hlo_instr_operand(call, i) == operand) return (int)i;
    return -1;
}

void cpu_matmul_prepare(hlo_job *job, hlo_arena *arena) {
    const char *why;
    parts *p = hlo_arena_zero(arena, sizeof *p);
    hlo_matmul *m = &p->matmul;
    hlo_matmul_decode(job->instr, m, &why);
    p->a = operand_index(job->instr, m->a);
    p->b = operand_index(job->instr, m->b);
    p->c = operand_index(job->instr, m->c);
    p->a_scale = operand_index(job->instr, m->a_scale);
    p->b_scale = operand_index(job->instr, m->b_scale);
    p->c_scale = operand_index(job->instr, m->c_scale);
    p->d_scale = operand_index(job->instr, m->d_scale);
    p->bias = operand_index(job->instr, m->bias);
    p->aux = hlo_matmul_aux_index(m);
    p->amax = hlo_matmul_amax_index(m);
    int known = 1 + (p->aux >= 0) + (p->amax >= 0);
    p->workspace = (int)job->result_count > known ? known : -1;
    p->n = hlo_matmul_extents(m).n;
    job->untouched = p->workspace;
    job->scratch_size = (size_t)hlo_shape_count(m->d) * sizeof(float) * (job->bounded ? 2 : 1);
    job->state = p;
}

static float scale(const hlo_job *job, int operand) {
    return operand < 0 ? 1.0f : *(const float *)job->operands[operand].data;
}

/* The value before the output scale of every element, in place of the product. */
typedef struct epilogue {
    float *d;          /* row-major */
    const float *c;    /* likewise; NULL: none */
    const float *bias; /* n of them; NULL: none */
    float *aux;        /* row-major; NULL: none */
    int64_t n;
    float product_scale, c_scale, d_scale;
    float limit; /* of D's type; infinite when it does not saturate */
    bool relu, gelu;
    atomic_uint amax; /* bits of a float that is not negative: as integers they compare the same,
                         and NaN is largest */
} epilogue;

static float gelu(float x) {
    const float root = 0.7978845608028654f; /* sqrt(2 / pi) */
    return 0.5f * x * (1 + tanhf(root * (x + 0.044715f * x * x * x)));
}

static void raise_amax(epilogue *e, float value) {
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned before = atomic_load(&e->amax);
    while (bits > before && !atomic_compare_exchange_weak(&e->amax, &before, bits)) continue;
}

static float saturate(float x, float limit) {
    return x > limit ? limit : x < -limit ? -limit : x;
}

static void finish_range(void *arg, int64_t begin, int64_t end) {
    epilogue *e = arg;
    float amax = 0;
    for (int64_t i = begin; i < end; i++) {
        float x = e->product_scale * e->d[i];
        if (e->c) x += e->c_scale * e->c[i];
        if (e->bias) x += e->bias[i % e->n];
        if (e->aux) e->aux[i] = x;
        if (e->relu && x < 0) x = 0;
        if (e->gelu) x = gelu(x);
        float size = fabsf(x);
        if (size > amax || isnan(size)) amax = isnan(amax) ? amax : size;
        e->d[i] = saturate(x * e->d_scale, e->limit);
    }
    raise_amax(e, amax);
}

/* An operand as dense f32; NULL when there is none. */
static const float *widen(const cpu_device *cpu, const hlo_job *job, int operand) {
    if (operand < 0) return NULL;
    const hlo_view *from = &job->operands[operand];
    hlo_view wide = hlo_view_scratch(cpu->scratch, HLO_TYPE_F32, from);
    hlo_view_convert(&cpu->env, from, &wide);
    return wide.data;
}

static hlo_view dense_f32(const hlo_view *like, void *data, hlo_dims *strides) {
    hlo_view_dense(like, strides);
    return (hlo_view){HLO_TYPE_F32, like->rank, like->dims, strides->v, data};
}

static void write_result(const cpu_device *cpu, float *values, const hlo_view *out) {
    hlo_dims strides;
    hlo_view view = dense_f32(out, values, &strides);
    hlo_view_convert(&cpu->env, &view, out);
}

hlo_status cpu_matmul_execute(const cpu_device *cpu, const hlo_job *job, const char **why) {
    const parts *p = job->state;
    const hlo_matmul *m = &p->matmul;
    const hlo_view *d = &job->results[0];
    hlo_dims strides;
    hlo_view product = dense_f32(d, job->scratch, &strides);
    hlo_dot_dims dims = {m->a_batch, m->a_contracting, m->b_batch, m->b_contracting};
    hlo_status status = hlo_eval_dot_views(&cpu->env, dims, &job->operands[p->a],
                                           &job->operands[p->b], &product, cpu->scratch, why);
    if (status != HLO_OK) return status;
    const hlo_epilogue_info *info = &hlo_epilogues[m->epilogue];
    epilogue e = {
        .d = job->scratch,
        .c = widen(cpu, job, p->c),
        .bias = widen(cpu, job, p->bias),
        .n = p->n,
        .product_scale = (float)m->alpha * scale(job, p->a_scale) * scale(job, p->b_scale),
        .c_scale = (float)m->beta * scale(job, p->c_scale),
        .d_scale = scale(job, p->d_scale),
        .limit = hlo_type_is_fp8(d->type) ? (float)hlo_float_max(d->type) : INFINITY,
        .relu = info->relu,
        .gelu = info->gelu,
    };
    int64_t count = hlo_view_count(d);
    if (p->aux >= 0) e.aux = hlo_arena_array(cpu->scratch, (size_t)count, sizeof(float));
    cpu->env.parallel(cpu->env.user, count, finish_range, &e);
    write_result(cpu, e.d, d);
    if (p->aux >= 0) write_result(cpu, e.aux, &job->results[p->aux]);
    if (p->amax >= 0) {
        unsigned bits = atomic_load(&e.amax);
        memcpy(job->results[p->amax].data, &bits, sizeof bits);
    }
    if (p->workspace >= 0 && job->results[p->workspace].data)
        memset(job->results[p->workspace].data, 0,
               (size_t)hlo_view_count(&job->results[p->workspace]));
    return HLO_OK;
}
