/* SPDX-License-Identifier: Apache-2.0 */
/* custom_pass MODULE DOT: runs a custom pass and the built-in passes. The custom pass lists the
 * matmuls of the entry computation on standard error, and quantizes the operands of the dot named
 * DOT to fp8, with scales from their largest magnitudes. The built-in passes convert this dot to an
 * FP8 call. Prints the rewritten module.
 *
 * Each function returns HLO_OK or the status of its failure, and reports errors to the sink. */
#include <stdio.h>
#include <string.h>

#include <hlo/edit.h>
#include <hlo/pass.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 100, hlo_file_writer(stderr));
}

/* The state of the insertion of new instructions, which are inserted before `dot`. */
typedef struct place {
    hlo_module *module;
    const hlo_computation *computation;
    const hlo_instruction *dot;
    const hlo_diag_sink *sink;
    hlo_status status; /* the first failure; after it, nothing is inserted */
} place;

static const hlo_instruction *make(place *p, hlo_opcode opcode, const hlo_shape *shape,
                                   const char *attributes, const hlo_instruction *a,
                                   const hlo_instruction *b, const hlo_instruction *c) {
    const hlo_instruction *operands[3], *made = NULL;
    hlo_instruction_options options;
    operands[0] = a, operands[1] = b, operands[2] = c;
    hlo_instruction_options_init(&options);
    options.opcode = opcode;
    options.shape = shape;
    options.attributes = attributes;
    options.operands = operands;
    options.operand_count = c ? 3 : b ? 2 : 1;
    options.before = p->dot;
    if (p->status == HLO_OK)
        p->status = hlo_instruction_new(p->module, p->computation, &options, p->sink, &made);
    return made;
}

static const hlo_instruction *number(place *p, float value) {
    const hlo_instruction *made = NULL;
    if (p->status == HLO_OK)
        p->status = hlo_instruction_new_constant(p->module, p->computation, p->dot, HLO_TYPE_F32, 0,
                                                 NULL, &value, p->sink, &made);
    return made;
}

/* Replaces operand `index` of the dot by its quantized and dequantized value. */
static void quantize_operand(place *p, size_t index, const hlo_computation *maximum) {
    const hlo_instruction *x = hlo_instruction_operand(p->dot, index), *scale, *splat, *q;
    const hlo_shape *wide = hlo_instruction_shape(x), *narrow;
    const size_t rank = hlo_shape_rank(wide);
    char all[256];
    size_t i, used;

    p->status = hlo_shape_new_array(p->module, HLO_TYPE_F8E4M3FN, rank, hlo_shape_dims(wide),
                                    hlo_shape_minor_to_major(wide), p->sink, &narrow);
    used = (size_t)snprintf(all, sizeof all, "to_apply=%s, dimensions={",
                            hlo_computation_name(maximum));
    for (i = 0; i < rank && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%u", i ? "," : "", (unsigned)i);
    if (used < sizeof all) snprintf(all + used, sizeof all - used, "}");

    scale = make(p, HLO_OP_REDUCE, NULL, all, make(p, HLO_OP_ABS, NULL, NULL, x, NULL, NULL),
                 number(p, 0), NULL);
    scale = make(p, HLO_OP_MAXIMUM, NULL, NULL, scale, number(p, 1e-12F), NULL);
    scale = make(p, HLO_OP_DIVIDE, NULL, NULL, scale, number(p, 448), NULL);
    splat = make(p, HLO_OP_BROADCAST, wide, "dimensions={}", scale, NULL, NULL);
    q = make(p, HLO_OP_DIVIDE, NULL, NULL, x, splat, NULL);
    q = make(p, HLO_OP_CLAMP, NULL, NULL, number(p, -448), q, number(p, 448));
    q = make(p, HLO_OP_CONVERT, narrow, NULL, q, NULL, NULL);
    q = make(p, HLO_OP_CONVERT, wide, NULL, q, NULL, NULL);
    q = make(p, HLO_OP_MULTIPLY, NULL, NULL, q, splat, NULL);
    if (p->status == HLO_OK)
        p->status = hlo_instruction_set_operand(p->module, p->dot, index, q, p->sink);
}

/* The function of the custom pass. */
static hlo_status quantize(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    static const char text[] = "ENTRY maximum { a = f32[] parameter(0) b = f32[] parameter(1)\n"
                               "                ROOT m = f32[] maximum(a, b) }";
    const char *name = (const char *)user;
    const hlo_computation *maximum, *entry = hlo_module_entry(module);
    const hlo_instruction *at;
    place p = {NULL, NULL, NULL, NULL, HLO_OK};

    for (at = hlo_computation_first(entry); at; at = hlo_instruction_next(at)) {
        if (!hlo_instruction_is_matmul(at)) continue;
        fprintf(stderr, "%s: %s\n", hlo_instruction_name(at),
                hlo_opcode_name(hlo_instruction_opcode(at)));
        if (hlo_instruction_opcode(at) == HLO_OP_DOT && strcmp(hlo_instruction_name(at), name) == 0)
            p.dot = at;
    }
    if (!p.dot) return HLO_INVALID_INPUT;
    p.module = module;
    p.computation = entry;
    p.sink = sink;
    p.status = hlo_computation_new_text(module, text, strlen(text), sink, &maximum);
    if (p.status == HLO_OK) quantize_operand(&p, 0, maximum);
    if (p.status == HLO_OK) quantize_operand(&p, 1, maximum);
    return p.status;
}

int main(int argc, char **argv) {
    const hlo_diag_sink sink = {print_diagnostic, NULL};
    hlo_user_pass pass;
    const hlo_user_pass *passes = &pass;
    hlo_pass_options options;
    hlo_module *module;
    hlo_status status;

    if (argc != 3) {
        fprintf(stderr, "usage: custom_pass MODULE DOT > OUT\n");
        return 2;
    }
    hlo_user_pass_init(&pass);
    pass.name = "quantize";
    pass.run = quantize;
    pass.user = argv[2];
    pass.help = "quantizes the operands of one dot";
    hlo_pass_options_init(&options);
    options.passes = "quantize,default";
    options.user_passes = &passes;
    options.user_pass_count = 1;
    options.sink = &sink;
    status = hlo_module_parse_file(argv[1], &sink, &module);
    if (status != HLO_OK) return hlo_status_exit(status);
    status = hlo_module_optimize(module, &options, NULL);
    if (status == HLO_OK) status = hlo_module_print(module, NULL, hlo_file_writer(stdout));
    hlo_module_free(module);
    return hlo_status_exit(status);
}
