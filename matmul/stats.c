/* Counts of what a module holds: each computation once, however often it runs, but for FLOPs, of
 * which the body of a loop has as many times more as the module says that it runs. */
#include <stdlib.h>
#include <string.h>

#include "matmul/runs.h"

typedef struct counts {
    uint64_t computations, instructions;
    uint64_t ops[HLO_OP_COUNT], types[HLO_TYPE_COUNT];
    double parameter_bytes, constant_bytes,
        result_bytes;             /* of the entry; of all constants; of all */
    double dot_flops, call_flops; /* 2mnk, batches included */
    double convolution_flops;     /* padding and holes counted as elements */
    double *runs;                 /* of a computation, by id: loops round it, at most */
} counts;

static double bytes_of(const hlo_shape *shape) {
    int64_t bytes = hlo_shape_bytes(shape);
    return bytes < 0 ? 0 : (double)bytes;
}

/* Two for each element of the result and each of the kernel that goes into it. */
static double convolution_flops(const hlo_instr *instr) {
    const char *labels = hlo_instr_str(instr, HLO_ATTR_DIM_LABELS);
    const char *kernel = labels ? strchr(labels, '_') : NULL;
    const char *outputs = kernel ? strchr(kernel, 'o') : NULL;
    const hlo_shape *shape = hlo_instr_operand(instr, 1)->shape;
    if (!outputs || outputs - kernel > shape->rank) return 0;
    int64_t features = shape->dims[outputs - kernel - 1];
    int64_t taps = hlo_shape_count(shape), results = hlo_shape_count(instr->shape);
    if (features < 1 || taps < 0 || results < 0) return 0;
    return 2.0 * (double)results * (double)taps / (double)features;
}

static void count_flops(counts *c, const hlo_instr *instr) {
    hlo_matmul matmul;
    const char *why;
    const double runs = c->runs ? c->runs[instr->parent->id] : 1;
    if (instr->op == HLO_OP_CONVOLUTION) c->convolution_flops += runs * convolution_flops(instr);
    if (instr->op == HLO_OP_DOT)
        hlo_matmul_from_dot(instr, &matmul);
    else if (!hlo_matmul_is_call(instr) || hlo_matmul_decode(instr, &matmul, &why) != HLO_OK)
        return;
    hlo_matmul_sizes size = hlo_matmul_extents(&matmul);
    *(instr->op == HLO_OP_DOT ? &c->dot_flops : &c->call_flops) +=
        runs * 2.0 * (double)size.batch * (double)size.m * (double)size.n * (double)size.k;
}

static void count_instr(counts *c, const hlo_module *module, const hlo_instr *instr) {
    c->instructions++;
    c->ops[instr->op]++;
    c->types[instr->shape->type]++;
    double bytes = bytes_of(instr->shape);
    if (instr->op == HLO_OP_CONSTANT) c->constant_bytes += bytes;
    if (instr->op == HLO_OP_PARAMETER && instr->parent == module->entry)
        c->parameter_bytes += bytes;
    count_flops(c, instr);
    if (instr->shape->type != HLO_TYPE_TUPLE) c->result_bytes += bytes;
}

void hlo_module_print_stats(const hlo_module *module, FILE *out) {
    counts c = {.runs = malloc((module->next_computation_id + 1) * sizeof *c.runs)};
    if (c.runs) hlo_runs(module, c.runs);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
        c.computations++;
        for (const hlo_instr *instr = comp->first; instr; instr = instr->next)
            count_instr(&c, module, instr);
    }
    free(c.runs);
    fprintf(out, "module %s\n", module->name);
    fprintf(out, "  %-28s %14llu\n", "computations", (unsigned long long)c.computations);
    fprintf(out, "  %-28s %14llu\n", "instructions", (unsigned long long)c.instructions);
    fprintf(out, "  %-28s %14.0f\n", "bytes of entry parameters", c.parameter_bytes);
    fprintf(out, "  %-28s %14.0f\n", "bytes of constants", c.constant_bytes);
    fprintf(out, "  %-28s %14.0f\n", "bytes of all results", c.result_bytes);
    fprintf(out, "  %-28s %14.0f\n", "FLOPs of dots", c.dot_flops);
    fprintf(out, "  %-28s %14.0f\n", "FLOPs of FP8 calls", c.call_flops);
    fprintf(out, "  %-28s %14.0f\n", "FLOPs of convolutions", c.convolution_flops);
    fputs("opcodes\n", out);
    for (int op = 0; op < HLO_OP_COUNT; op++)
        if (c.ops[op])
            fprintf(out, "  %-28s %14llu\n", hlo_ops[op].name, (unsigned long long)c.ops[op]);
    fputs("element types of results\n", out);
    for (int type = 0; type < HLO_TYPE_COUNT; type++)
        if (c.types[type])
            fprintf(out, "  %-28s %14llu\n", hlo_types[type].name,
                    (unsigned long long)c.types[type]);
}
