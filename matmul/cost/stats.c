/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of instructions and bytes in a module, each computation once, and the FLOPs of one
 * execution. */
#include <stdlib.h>

#include "ir/float/c_locale.h"
#include "matmul/cost/flops.h"

typedef struct counts {
    uint64_t computations, instructions;
    uint64_t ops[HLO_OP_COUNT], types[HLO_TYPE_COUNT];
    double parameter_bytes, constant_bytes,
        result_bytes; /* bytes of the entry's results, of constants, of all results */
} counts;

hlo_status hlo_module_print_stats(const hlo_module *module, FILE *out) {
    HLO_IN_C_LOCALE;
    jmp_buf recover;
    hlo_flops *totals = calloc((size_t)module->next_computation_id + 1, sizeof *totals);
    if (!totals) return HLO_OUT_OF_MEMORY;
    jmp_buf *before = hlo_arena_set_recover(module->arena, &recover);
    hlo_status status = HLO_OK;
    if (setjmp(recover))
        status = HLO_OUT_OF_MEMORY;
    else {
        counts c = {0};
        const hlo_flops flops = hlo_flops_count(module, totals);
        for (const hlo_computation *comp = module->first; comp; comp = comp->next) {
            c.computations++;
            for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr)) {
                c.instructions++;
                c.ops[instr->op]++;
                c.types[instr->shape->type]++;
                double bytes = hlo_bytes_of(instr->shape);
                if (instr->op == HLO_OP_CONSTANT) c.constant_bytes += bytes;
                if (instr->op == HLO_OP_PARAMETER && instr->parent == module->entry)
                    c.parameter_bytes += bytes;
                if (instr->shape->type != HLO_TYPE_TUPLE) c.result_bytes += bytes;
            }
        }
        hlo_print_plain(out, "module %s\n", module->name);
        fprintf(out, "  %-28s %14llu\n", "computations", (unsigned long long)c.computations);
        fprintf(out, "  %-28s %14llu\n", "instructions", (unsigned long long)c.instructions);
        fprintf(out, "  %-28s %14.0f\n", "bytes of entry parameters", c.parameter_bytes);
        fprintf(out, "  %-28s %14.0f\n", "bytes of constants", c.constant_bytes);
        fprintf(out, "  %-28s %14.0f\n", "bytes of all results", c.result_bytes);
        const struct {
            const char *name;
            double count;
        } rows[] = {
            {"FLOPs of dots", flops.dots},
            {"FLOPs of library calls", flops.calls},
            {"FLOPs of convolutions", flops.convolutions},
            {"FLOPs of elementwise ops", flops.elementwise},
            {"FLOPs of reductions", flops.reductions},
            {"transcendentals", flops.transcendentals},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            fprintf(out, "  %-28s %14.0f\n", rows[i].name, rows[i].count);
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
    hlo_arena_set_recover(module->arena, before);
    free(totals);
    return status;
}
