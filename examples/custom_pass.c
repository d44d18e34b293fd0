/* SPDX-License-Identifier: Apache-2.0 */
/* custom_pass MODULE DOT: runs a custom pass and the built-in passes. The custom pass lists the
 * dots of the entry computation on standard error, and quantizes the operands of the dot named DOT
 * to fp8, with scales from their largest magnitudes. The built-in passes convert this dot to an FP8
 * call. Prints the rewritten module.
 *
 * Each function returns HLO_OK or the status of its failure, and reports errors to the sink. */
#include <stdio.h>
#include <string.h>

#include <hlo/edit.h>
#include <hlo/pass.h>
#include <hlo/text.h>

static void print_diagnostic(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(stderr, diag, 100);
}

/* The state of the insertion of new instructions, which are inserted before `dot`. */
typedef struct place {
    hlo_computation *computation;
    hlo_instruction *dot;
    const hlo_diag_sink *sink;
    hlo_status status; /* the first failure; after it, nothing is inserted */
} place;

static hlo_instruction *make(place *p, const char *opcode, const char *shape,
                             const char *attributes, hlo_instruction *a, hlo_instruction *b,
                             hlo_instruction *c) {
    hlo_instruction *operands[3], *made = NULL;
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
        p->status = hlo_instruction_new(p->computation, &options, p->sink, &made);
    return made;
}

static hlo_instruction *number(place *p, float value) {
    hlo_instruction *made = NULL;
    if (p->status == HLO_OK)
        p->status = hlo_instruction_new_constant(p->computation, p->dot, "f32", 0, NULL, &value,
                                                 p->sink, &made);
    return made;
}

/* Replaces operand `index` of the dot by its quantized and dequantized value. */
static void quantize_operand(place *p, size_t index, hlo_computation *maximum) {
    hlo_instruction *x = hlo_instruction_operand(p->dot, index), *scale, *splat, *q;
    const hlo_shape *shape = hlo_instruction_shape(x);
    const size_t rank = hlo_shape_rank(shape);
    char wide[256], narrow[256], all[256];
    size_t i, used;

    hlo_shape_format(shape, true, wide, sizeof wide);
    snprintf(narrow, sizeof narrow, "f8e4m3fn%s", strchr(wide, '['));
    used = (size_t)snprintf(all, sizeof all, "to_apply=%s, dimensions={",
                            hlo_computation_name(maximum));
    for (i = 0; i < rank && used < sizeof all; i++)
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%u", i ? "," : "", (unsigned)i);
    if (used < sizeof all) snprintf(all + used, sizeof all - used, "}");

    scale =
        make(p, "reduce", NULL, all, make(p, "abs", NULL, NULL, x, NULL, NULL), number(p, 0), NULL);
    scale = make(p, "maximum", NULL, NULL, scale, number(p, 1e-12F), NULL);
    scale = make(p, "divide", NULL, NULL, scale, number(p, 448), NULL);
    splat = make(p, "broadcast", wide, "dimensions={}", scale, NULL, NULL);
    q = make(p, "divide", NULL, NULL, x, splat, NULL);
    q = make(p, "clamp", NULL, NULL, number(p, -448), q, number(p, 448));
    q = make(p, "convert", narrow, NULL, q, NULL, NULL);
    q = make(p, "convert", wide, NULL, q, NULL, NULL);
    q = make(p, "multiply", NULL, NULL, q, splat, NULL);
    if (p->status == HLO_OK) p->status = hlo_instruction_set_operand(p->dot, index, q, p->sink);
}

/* The function of the custom pass. */
static hlo_status quantize(void *user, hlo_module *module, const hlo_diag_sink *sink) {
    static const char text[] = "ENTRY maximum { a = f32[] parameter(0) b = f32[] parameter(1)\n"
                               "                ROOT m = f32[] maximum(a, b) }";
    const char *name = (const char *)user;
    hlo_computation *maximum, *entry = hlo_module_entry(module);
    hlo_instruction *at;
    place p = {NULL, NULL, NULL, HLO_OK};
    char left[128], right[128];

    for (at = hlo_computation_first(entry); at; at = hlo_instruction_next(at)) {
        if (strcmp(hlo_instruction_opcode(at), "dot") != 0) continue;
        hlo_shape_format(hlo_instruction_shape(hlo_instruction_operand(at, 0)), false, left, 128);
        hlo_shape_format(hlo_instruction_shape(hlo_instruction_operand(at, 1)), false, right, 128);
        fprintf(stderr, "%s: dot of %s and %s\n", hlo_instruction_name(at), left, right);
        if (strcmp(hlo_instruction_name(at), name) == 0) p.dot = at;
    }
    if (!p.dot) return HLO_INVALID_INPUT;
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
    if (status == HLO_OK) status = hlo_module_print(module, NULL, stdout);
    hlo_module_free(module);
    return hlo_status_exit(status);
}
