/* SPDX-License-Identifier: Apache-2.0 */
/* Prints, for each HLO file, a digest of all outputs of the library for its modules: a word per
 * column, in the order of the table of columns; and one for each rules file. The digests of
 * testdata are kept in testdata/digests/: they show which modules' outputs a change of the code
 * affects.
 *
 * usage: digests [--show=COLUMN] FILE...
 *        digests --operations[=ROW]
 *
 * --show prints the text from which a column's digest is computed. --operations prints digests of
 * the error bounds of each elementwise operation, or the text of operation ROW. Digests exclude the
 * wording and the lines of diagnostics. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bounds.h"
#include "digest.h"
#include "hlo/pass.h"
#include "hlo/proto.h"
#include "hlo/runtime.h"
#include "hlo/text.h"
#include "ir/float/float.h"
#include "ir/ir.h"
#include "ir/module/known.h"
#include "matmul/cost/flops.h"
#include "perturb.h"
#include "variants.h"

/* Modules that compute MAX_ELEMENTS elements or more are not run. */
enum {
    MAX_ELEMENTS = 1 << 16,
    MAX_EXTRACTED = 4,
    MAX_SYNTAX = 10000,
    MAX_VARIED = 100,
    LARGE_SHARE = 16
};

static void no_memory(void) {
    fputs("digests: no memory\n", stderr);
    exit(2);
}

static hlo_module *copy_of(const hlo_module *module) {
    hlo_module *copy;
    if (hlo_module_clone(module, &copy) != HLO_OK) no_memory();
    return copy;
}

/* --------------------------------------------------------------------------------- what is read */

static bool original_is_valid;

/* Returns true for a module whose text and message are also mutated. */
static bool is_syntax(const hlo_module *module) {
    return module->source_size < MAX_SYNTAX &&
           (strstr(module->file, "/parse/") || strstr(module->file, "/verify/"));
}

static void text(const hlo_module *module, FILE *out) {
    for (int form = HLO_PRINT_LONG; form <= HLO_PRINT_NO_LARGE_CONSTANTS; form++) {
        const hlo_diag_sink sink = {print_diag, out};
        hlo_print_options options;
        hlo_print_options_init(&options, (hlo_print_form)form);
        options.sink = &sink;
        fprintf(out, "status %d\n", hlo_module_print(module, &options, out));
    }
}

static void proto(const hlo_module *module, FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    for (int format = HLO_PROTO_BINARY; format <= HLO_PROTO_TEXT; format++)
        fprintf(out, "status %d\n",
                hlo_module_print_proto(module, (hlo_proto_format)format, &sink, out));
}

static void stats(const hlo_module *module, FILE *out) {
    hlo_module_print_stats(module, out);
}

/* Verifies a module and prints it, even if the original is not valid. */
static void print_outcome(hlo_module *module, const hlo_diag_sink *sink, FILE *out) {
    if (hlo_module_verify(module, NULL, sink) == HLO_OK || !original_is_valid)
        hlo_module_print(module, NULL, out);
    hlo_module_free(module);
}

static void outcome_of_text(const char *text, FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    hlo_module *module;
    if (hlo_module_parse(text, strlen(text), "text", &sink, &module) == HLO_OK)
        print_outcome(module, &sink, out);
}

/* Prints the outcome of parsing the module's text with each word changed. */
static void words(const hlo_module *module, FILE *out) {
    if (is_syntax(module)) perturb_words(module->source, outcome_of_text, out);
}

static void outcome_of_bytes(const char *bytes, size_t size, FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    hlo_module *module;
    if (hlo_module_parse_proto(bytes, size, "bytes", &sink, &module) == HLO_OK)
        print_outcome(module, &sink, out);
}

/* Prints the outcome of parsing the module's message with each byte changed. */
static void bytes(const hlo_module *module, FILE *out) {
    char *message = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&message, &size);
    if (!to) no_memory();
    if (is_syntax(module) && module->source_size < MAX_SYNTAX / 4)
        hlo_module_print_proto(module, HLO_PROTO_BINARY, NULL, to);
    fclose(to);
    perturb_bytes(message, size, outcome_of_bytes, out);
    free(message);
}

/* ---------------------------------------------------------------------------- what is rewritten */

static const char *or_none(const char *text) {
    return text ? text : "-";
}

static void print_verdict(const hlo_verdict *v, FILE *out) {
    fprintf(out, "%d %s %s %s %s at %u\n", v->kind, or_none(v->instruction),
            or_none(v->input_instruction), or_none(v->reason), or_none(v->blocker), v->column);
    fprintf(out, "  %s %s %s %s %s %s\n", or_none(v->shape), or_none(v->input_shape),
            or_none(v->operands), or_none(v->operation), or_none(v->fusion), or_none(v->epilogue));
    fprintf(out, "  %s %s:%ld\n", or_none(v->op_name), or_none(v->source_file), v->source_line);
    fprintf(out, "  %g x %.9g, %.9g %.9g, %.6g %.6g %.6g, %" PRId64 " %s %" PRId64 "\n", v->runs,
            v->flops, v->input_bytes, v->bytes, v->input_seconds, v->seconds, v->fp8_seconds,
            v->groups, or_none(v->scale_modes), v->block_size);
}

/* Optimizes a copy of the module and prints it, with its verdicts. Returns NULL if the module is
 * rejected. */
static hlo_module *print_optimized(const hlo_module *module, hlo_pass_options *options, FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    hlo_module *copy = copy_of(module);
    hlo_report *report = NULL;
    options->sink = &sink;
    options->lint = true;
    const hlo_status status = hlo_module_optimize(copy, options, &report);
    fprintf(out, "status %d\n", status);
    if (status != HLO_OK) {
        hlo_module_free(copy);
        return NULL;
    }
    for (size_t i = 0; i < hlo_report_count(report); i++)
        print_verdict(hlo_report_verdict(report, i), out);
    for (size_t i = 0; i < hlo_report_lint_count(report); i++)
        print_verdict(hlo_report_lint(report, i), out);
    hlo_report_free(report);
    hlo_module_print(copy, NULL, out);
    return copy;
}

static void optimized(const hlo_module *module, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    hlo_module_free(print_optimized(module, &options, out));
}

static void sm100(const hlo_module *module, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.target = 100;
    options.cuda = 12090;
    options.scales_used = true;
    options.min_gain = 0.5;
    hlo_module_free(print_optimized(module, &options, out));
}

static void sm89(const hlo_module *module, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.target = 89;
    options.cuda = 12030;
    options.ragged = HLO_RAGGED_KEEP;
    hlo_module_free(print_optimized(module, &options, out));
}

static void merged(const hlo_module *module, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.cuda = 12090;
    options.merge_dots = options.allow_bias_rounding = true;
    options.ragged = HLO_RAGGED_DENSE;
    hlo_module_free(print_optimized(module, &options, out));
}

static void emitted(const hlo_module *module, FILE *out) {
    for (int form = HLO_EMIT_FFI; form <= HLO_EMIT_DQ; form++) {
        hlo_pass_options options;
        hlo_pass_options_init(&options);
        options.emit = (hlo_emit_form)form;
        hlo_module_free(print_optimized(module, &options, out));
    }
}

/* Prints each pass's change separately, so that rules that a later pass undoes are covered. */
static void passes(const hlo_module *module, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.verify_each = true;
    options.print_after = "all";
    options.dump = out;
    hlo_module *copy = copy_of(module);
    fprintf(out, "status %d\n", hlo_module_optimize(copy, &options, NULL));
    hlo_module_free(copy);
}

/* Prints `text` without positions in a file, such as `7:3`. */
static void print_without_places(const char *text, FILE *out) {
    for (const char *at = text; *at; at++) {
        fputc(*at, out);
        if (*at != ':' || at[1] < '0' || at[1] > '9') continue;
        at += 1 + strspn(at + 1, "0123456789");
        if (*at == ':' && at[1] >= '0' && at[1] <= '9') at += 1 + strspn(at + 1, "0123456789");
        at--;
    }
}

static void diff(const hlo_module *module, FILE *out) {
    hlo_module *copy = copy_of(module);
    char *differences = NULL;
    size_t size;
    FILE *to = open_memstream(&differences, &size);
    if (!to) no_memory();
    if (hlo_module_optimize(copy, NULL, NULL) == HLO_OK)
        fprintf(to, "status %d\n", hlo_module_diff(module, copy, to));
    fclose(to);
    print_without_places(differences, out);
    free(differences);
    hlo_module_free(copy);
}

/* Prints the extracted modules of the first and the last matmuls. */
static void extracted(const hlo_module *module, FILE *out) {
    hlo_report *report;
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "";
    hlo_module *copy = copy_of(module);
    if (hlo_module_optimize(copy, &options, &report) == HLO_OK) {
        const size_t count = hlo_report_count(report);
        for (size_t i = 0; i < count; i++) {
            if (i >= MAX_EXTRACTED && i + 1 < count) continue;
            hlo_module *one = copy_of(module);
            const char *name = hlo_report_verdict(report, i)->input_instruction;
            const hlo_diag_sink sink = {print_diag, out};
            fprintf(out, "%s: status %d\n", name, hlo_module_extract(one, name, NULL, &sink));
            hlo_module_print(one, NULL, out);
            hlo_module_free(one);
        }
        hlo_report_free(report);
    }
    hlo_module_free(copy);
}

/* ---------------------------------------------------------------------------------- what is run */

static void print_plan(const hlo_module *module, const hlo_plan_options *options, FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    hlo_plan *plan;
    const hlo_status status = hlo_plan_new(module, options, &sink, &plan);
    fprintf(out, "status %d\n", status);
    if (status == HLO_OK) hlo_plan_print(plan, out);
    hlo_plan_free(plan);
}

/* Prints the plans of a module before and after optimization, with the text of their kernels. */
static void plans(const hlo_module *module, FILE *out) {
    hlo_plan_options options;
    hlo_module *copy = copy_of(module);
    const bool changed = hlo_module_optimize(copy, NULL, NULL) == HLO_OK;
    hlo_plan_options_init(&options);
    print_plan(module, &options, out);
    if (changed) print_plan(copy, &options, out);
    options.backend = "cuda";
    options.target = 90;
    options.host_fallback = true;
    print_plan(module, &options, out);
    if (changed) print_plan(copy, &options, out);
    options.target = 100;
    options.cuda = 12090;
    options.overwrites_inputs = true;
    if (changed) print_plan(copy, &options, out);
    hlo_module_free(copy);
}

/* Returns true for a module that runs fast, and whose results do not depend on the math library. */
static bool is_run(const hlo_module *module) {
    double *times = calloc(module->next_computation_id, sizeof *times), elements = 0;
    if (!times) no_memory();
    hlo_run_counts(module, times, NULL);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instruction *i = comp->first; i; i = hlo_instr_next(i)) {
            const hlo_shape *shape = i->shape;
            const double count = hlo_shape_is_array(shape) ? (double)hlo_shape_count(shape) : 0;
            const char *config = hlo_instr_str(i, HLO_ATTR_BACKEND_CONFIG);
            elements += times[comp->id] * (1 + count);
            const bool endless =
                i->op == HLO_OP_WHILE && hlo_while_trip_count(i) == HLO_TRIP_COUNT_UNKNOWN;
            const bool inexact = hlo_op_is(i->op, HLO_TRANSCENDENTAL) && i->op != HLO_OP_RSQRT &&
                                 i->op != HLO_OP_SQRT;
            if (endless || inexact || (config && strstr(config, "GELU"))) elements = MAX_ELEMENTS;
        }
    free(times);
    return elements < MAX_ELEMENTS;
}

static void bounds(const hlo_module *module, FILE *out) {
    if (is_run(module)) bounds_of_module(module, out);
}

static void print_number(double value, FILE *out) {
    if (isnan(value))
        fputs(" nan", out);
    else
        fprintf(out, " %.6g", value);
}

/* Prints the results and their bounds. */
static void print_run(const hlo_module *module, bool dropped, hlo_accumulate accumulate,
                      FILE *out) {
    const hlo_diag_sink sink = {print_diag, out};
    hlo_plan_options options;
    hlo_plan *plan = NULL;
    hlo_arrays *inputs = NULL, *outputs = NULL;
    hlo_plan_options_init(&options);
    options.bounds = true;
    options.roundings_may_be_dropped = dropped;
    options.accumulate = accumulate;
    hlo_status status = hlo_plan_new(module, &options, &sink, &plan);
    if (status == HLO_OK)
        status = hlo_arrays_draw_each(module, HLO_DRAW_REALISTIC, 7, 1, &sink, &inputs);
    if (status == HLO_OK) status = hlo_plan_run(plan, inputs, &sink, &outputs);
    fprintf(out, "status %d\n", status);
    for (size_t i = 0; status == HLO_OK && i < hlo_arrays_count(outputs); i++) {
        const hlo_array *array = hlo_arrays_at(outputs, i);
        const hlo_type type = hlo_type_find(array->type, strlen(array->type));
        const size_t each = hlo_types[type].bytes;
        fprintf(out, "%s:", array->type);
        for (size_t at = 0; at < array->size; at += each) {
            if (hlo_types[type].class != HLO_CLASS_COMPLEX)
                print_number(hlo_number_load(type, (const char *)array->data + at), out);
            if (array->bound) print_number((double)array->bound[at / each], out);
        }
        fputc('\n', out);
    }
    hlo_arrays_free(outputs);
    hlo_arrays_free(inputs);
    hlo_plan_free(plan);
}

static void runs(const hlo_module *module, FILE *out) {
    if (!is_run(module)) return;
    print_run(module, false, HLO_ACCUMULATE_F32, out);
    hlo_module *copy = copy_of(module);
    if (hlo_module_optimize(copy, NULL, NULL) == HLO_OK && is_run(copy))
        print_run(copy, true, HLO_ACCUMULATE_HOPPER, out);
    hlo_module_free(copy);
}

/* Prints the plans for both backends and the results. */
static void planned_and_run(const hlo_module *module, FILE *out) {
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    print_plan(module, &options, out);
    options.backend = "cuda";
    options.target = 90;
    options.host_fallback = true;
    print_plan(module, &options, out);
    if (is_run(module)) print_run(module, false, HLO_ACCUMULATE_F32, out);
}

static void optimized_and_merged(const hlo_module *module, FILE *out) {
    optimized(module, out);
    merged(module, out);
}

/* Prints the outcomes of the variants of a module in passes/ or run/. For a large module, prints
 * none if it is in passes/, and a fraction if it is in run/. */
static void variants(const hlo_module *module, FILE *out) {
    const bool large = module->instr_count >= MAX_VARIED;
    if (strstr(module->file, "/passes/") && !large)
        variants_of_module(module, 1, optimized_and_merged, out);
    if (strstr(module->file, "/run/"))
        variants_of_module(module, large ? LARGE_SHARE : 1, planned_and_run, out);
}

/* ---------------------------------------------------------------------------------------- rules */

static const hlo_module *rewritten; /* the module to which rules are applied */

static void outcome_of_rules(const char *text, FILE *out) {
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "algebra,move-dequantize,fp8-matmul,fp8-rows,fp8-epilogue";
    options.rules = "rules";
    options.rules_text = text;
    hlo_module_free(print_optimized(rewritten, &options, out));
}

/* Prints the digest of the outcome of a rules file, NAME.rules, with each word changed, on the
 * module of rules-NAME.hlo. */
static void print_rules(const char *path, bool shown) {
    char text[8192], name[512];
    char *buffer = NULL;
    size_t size;
    hlo_module *module;
    const char *base = strrchr(path, '/') + 1;
    FILE *in = fopen(path, "r"), *out = open_memstream(&buffer, &size);
    if (!in || !out) no_memory();
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    snprintf(name, sizeof name, "%.*srules-%.*s.hlo", (int)(base - path), path,
             (int)strcspn(base, "."), base);
    if (hlo_module_parse_file(name, NULL, &module) != HLO_OK ||
        hlo_module_verify(module, NULL, NULL) != HLO_OK)
        exit(2);
    rewritten = module;
    outcome_of_rules(text, out);
    perturb_words(text, outcome_of_rules, out);
    fclose(out);
    if (shown)
        fwrite(buffer, 1, size, stdout);
    else
        printf("%s %06x\n", path, digest_of(buffer, size));
    hlo_module_free(module);
    free(buffer);
}

/* ------------------------------------------------------------------------------------ the table */

static const struct {
    const char *name;
    void (*print)(const hlo_module *module, FILE *out);
    bool reads; /* the column also exists for a module that is not valid */
} columns[] = {{"text", text, true},
               {"proto", proto, true},
               {"words", words, true},
               {"bytes", bytes, true},
               {"stats", stats, false},
               {"optimized", optimized, false},
               {"variants", variants, false},
               {"passes", passes, false},
               {"sm100", sm100, false},
               {"sm89", sm89, false},
               {"merged", merged, false},
               {"emitted", emitted, false},
               {"extracted", extracted, false},
               {"diff", diff, false},
               {"plans", plans, false},
               {"runs", runs, false},
               {"bounds", bounds, false}};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* Prints a column of a file: the text if --show names the column, otherwise the digest. */
static void print_column(int column, hlo_module **modules, size_t count, bool shown) {
    char *buffer = NULL;
    size_t size;
    FILE *out = open_memstream(&buffer, &size);
    if (!out) no_memory();
    for (size_t m = 0; m < count; m++) columns[column].print(modules[m], out);
    fclose(out);
    if (shown)
        fwrite(buffer, 1, size, stdout);
    else
        printf(" %06x", digest_of(buffer, size));
    free(buffer);
}

static void print_file(const char *path, const char *shown) {
    hlo_module **modules;
    char *errors = NULL;
    size_t size, count = 0;
    FILE *to = open_memstream(&errors, &size);
    if (!to) no_memory();
    const hlo_diag_sink sink = {print_diag, to};
    bool valid = hlo_modules_parse_file(path, NULL, &sink, &modules, &count) == HLO_OK;
    for (size_t m = 0; m < count; m++)
        valid &= hlo_module_verify(modules[m], NULL, &sink) == HLO_OK;
    fclose(to);
    original_is_valid = valid;
    if (!shown) printf("%s %06x", path, digest_of(errors, size));
    if (shown && strcmp(shown, "errors") == 0) fputs(errors, stdout);
    for (int c = 0; c < COLUMNS && count; c++)
        if ((valid || columns[c].reads) && (!shown || strcmp(shown, columns[c].name) == 0))
            print_column(c, modules, count, shown);
    putchar('\n');
    free(errors);
    hlo_modules_free(modules, count);
}

int main(int argc, char **argv) {
    const char *shown = NULL;
    if (argc > 1 && strncmp(argv[1], "--operations", 12) == 0) {
        bounds_of_operations(argv[1][12] == '=' ? argv[1] + 13 : NULL, stdout);
        return 0;
    }
    if (argc > 1 && strncmp(argv[1], "--show=", 7) == 0) shown = argv[1] + 7;
    if (!shown) {
        fputs("file errors", stdout);
        for (int c = 0; c < COLUMNS; c++) printf(" %s", columns[c].name);
        putchar('\n');
    }
    for (int i = shown ? 2 : 1; i < argc; i++) {
        const char *end = strrchr(argv[i], '.');
        if (end && strcmp(end, ".rules") == 0)
            print_rules(argv[i], shown);
        else
            print_file(argv[i], shown);
    }
    return 0;
}
