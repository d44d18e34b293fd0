/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the rewrite rules: each rule on its own example, and the engine on the models. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hlo/runtime.h"
#include "hlo/text.h"
#include "passes/rules/library.h"
#include "passes/verdict/report.h"
#include "tests/every_phase.h"

static void print(void *user, const hlo_diag *diag) {
    (void)user;
    hlo_diag_print(diag, 0, hlo_file_writer(stderr));
}

static const hlo_diag_sink sink = {.emit = print};

static uint64_t firings(const hlo_report *report, const char *rule) {
    for (const tally *t = report->rules.first; t; t = t->next)
        if (!strcmp(t->name, rule)) return t->times;
    return 0;
}

static hlo_arrays *execute(const hlo_module *module, const hlo_arrays *inputs, bool expected) {
    hlo_plan_options options;
    hlo_plan_options_init(&options);
    options.bounds = options.roundings_may_be_dropped = expected;
    hlo_plan *plan;
    hlo_arrays *outputs;
    assert_int_equal(hlo_plan_new(module, &options, &sink, &plan), HLO_OK);
    assert_int_equal(hlo_plan_run(plan, inputs, &sink, &outputs), HLO_OK);
    hlo_plan_free(plan);
    return outputs;
}

static void compute_the_same(const hlo_module *before, const hlo_module *after) {
    enum { SEEDS = 3 };
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        hlo_arrays *inputs;
        assert_int_equal(hlo_arrays_draw(before, seed, &sink, &inputs), HLO_OK);
        hlo_arrays *expected = execute(before, inputs, true);
        hlo_arrays *found = execute(after, inputs, false);
        assert_int_equal(hlo_arrays_compare(expected, found, hlo_file_writer(stderr)), HLO_OK);
        hlo_arrays_free(found);
        hlo_arrays_free(expected);
        hlo_arrays_free(inputs);
    }
}

static void check_example(const hlo_rules *rules, const hlo_rule *rule) {
    hlo_module *before, *after;
    assert_int_equal(
        hlo_module_parse(rule->example, strlen(rule->example), rule->name, &sink, &before), HLO_OK);
    assert_int_equal(hlo_module_verify(before, NULL, &sink), HLO_OK);
    assert_int_equal(hlo_module_clone(before, &after), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.allow_bias_rounding = options.merge_dots = true;
    options.cuda = "12.9";
    if (!strcmp(rule->name, "ragged-unscaled")) options.ragged = HLO_RAGGED_KEEP;
    if (strstr(rules->file, "blocks")) options.target = "sm_100";
    options.passes = every_phase;
    options.verify_each = true;
    options.sink = &sink;
    hlo_report *report;
    assert_int_equal(hlo_module_optimize(after, &options, &report), HLO_OK);
    if (!firings(report, rule->name))
        fail_msg("%s:%u: rule %s does not fire on its example", rules->file, rule->line,
                 rule->name);
    compute_the_same(before, after);
    hlo_report_free(report);
    hlo_module_free(after);
    hlo_module_free(before);
}

static void rules_fire_on_their_examples(void **state) {
    (void)state;
    uint32_t examples = 0;
    for (uint32_t i = 0; i < hlo_rules_builtin_count; i++)
        for (uint32_t r = 0; r < hlo_rules_builtin[i]->rule_count; r++)
            if (hlo_rules_builtin[i]->rules[r].example) {
                check_example(hlo_rules_builtin[i], &hlo_rules_builtin[i]->rules[r]);
                examples++;
            }
    assert_true(examples >= 23);
}

/* A module's text that does not depend on names, positions and order: every computation from its
 * root down. */
typedef struct writer {
    FILE *out;
    uint32_t *numbers; /* the numbers of instructions, by id, from 1 */
    uint32_t next;
} writer;

static void write_attr(writer *w, const hlo_attr *a) {
    switch (hlo_attrs_info[a->id].kind) {
    case HLO_KIND_INTS:
    case HLO_KIND_SIZES:
    case HLO_KIND_SLICES:
    case HLO_KIND_PADDING:
        fprintf(w->out, " %s", hlo_attrs_info[a->id].name);
        for (uint32_t i = 0; i < a->u.ints->count; i++)
            fprintf(w->out, ",%lld", (long long)a->u.ints->v[i]);
        break;
    case HLO_KIND_INT: fprintf(w->out, " %lld", (long long)a->u.i); break;
    case HLO_KIND_WORD:
    case HLO_KIND_STRING:
    case HLO_KIND_FORM:
    case HLO_KIND_GROUPS:
    case HLO_KIND_SHARDING:
    case HLO_KIND_ALIASES:
    case HLO_KIND_RAW: fprintf(w->out, " %s", hlo_attr_text(a)); break;
    case HLO_KIND_COMPUTATION: fprintf(w->out, " %s", a->u.comp->name); break;
    default: break;
    }
}

static uint32_t write_value(writer *w, const hlo_instruction *value) {
    if (w->numbers[value->id]) return w->numbers[value->id];
    for (uint32_t i = 0; i < value->operand_count; i++) write_value(w, hlo_instr_operand(value, i));
    char shape[512];
    hlo_shape_format(value->shape, true, shape, sizeof shape);
    w->numbers[value->id] = ++w->next;
    fprintf(w->out, "%u = %s %s", w->next, shape, hlo_ops[value->op].name);
    for (uint32_t i = 0; i < value->operand_count; i++)
        fprintf(w->out, " %u", w->numbers[hlo_instr_operand(value, i)->id]);
    if (value->op == HLO_OP_PARAMETER) fprintf(w->out, " %lld", (long long)value->u.parameter);
    for (uint32_t i = 0; i < value->attr_count; i++)
        if (value->attrs[i].id != HLO_ATTR_METADATA) write_attr(w, &value->attrs[i]);
    fputc('\n', w->out);
    return w->next;
}

static char *canonical(const char *path, uint64_t order) {
    hlo_module *module;
    assert_int_equal(hlo_module_parse_file(path, &sink, &module), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.rule_order = order;
    options.sink = &sink;
    assert_int_equal(hlo_module_optimize(module, &options, NULL), HLO_OK);
    char *text = NULL;
    size_t size = 0;
    writer w = {.out = open_memstream(&text, &size),
                .numbers = calloc(module->next_id, sizeof(uint32_t))};
    for (const hlo_computation *c = module->first; c; c = c->next) write_value(&w, c->root);
    fclose(w.out);
    free(w.numbers);
    hlo_module_free(module);
    return text;
}

static void order_of_work_does_not_matter(void **state) {
    (void)state;
    static const char *const names[] = {"encoder_qdq_train", "seed_relu_damax", "qkv_shared",
                                        "slice_between",     "mlp_qdq_fwd",     "bias_relu"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[256];
        snprintf(path, sizeof path, HLO_MODELS "/%s.hlo", names[i]);
        char *forward = canonical(path, 0);
        static const uint64_t orders[] = {1, 2, 3, 20240925};
        for (size_t o = 0; o < sizeof orders / sizeof *orders; o++) {
            char *other = canonical(path, orders[o]);
            assert_string_equal(other, forward);
            free(other);
        }
        free(forward);
    }
}

/* --------------------------------------------------------------------------------- the notation */

static char last_message[512];
static uint32_t last_line, last_column;

static void keep(void *user, const hlo_diag *diag) {
    (void)user;
    if (*last_message) return;
    snprintf(last_message, sizeof last_message, "%s", diag->message);
    last_line = diag->line;
    last_column = diag->column;
}

static void refused(const char *text, const char *message, uint32_t line, uint32_t column) {
    static const hlo_diag_sink keeper = {.emit = keep};
    hlo_module *owner;
    const hlo_rules *rules;
    *last_message = 0;
    assert_int_equal(hlo_rules_read(text, strlen(text), "t.rules", 0, &keeper, &owner, &rules),
                     HLO_INVALID_INPUT);
    assert_null(owner);
    if (!strstr(last_message, message)) fail_msg("'%s' instead of '%s'", last_message, message);
    assert_int_equal(last_line, line);
    assert_int_equal(last_column, column);
}

#define PHASE "phase algebra measure expression_size\n"
#define EXAMPLE "\nexample\n  ENTRY e { ROOT x = f32[] parameter(0) }\nend\n"

/* Returns true if the first error in the rules contains `message`; for "", if there is no error. */
static bool says(const char *text, const char *message) {
    static const hlo_diag_sink keeper = {.emit = keep};
    hlo_module *owner;
    const hlo_rules *rules;
    *last_message = 0;
    if (hlo_rules_read(text, strlen(text), "t.rules", 0, &keeper, &owner, &rules) == HLO_OK)
        hlo_module_free(owner);
    return *message ? strstr(last_message, message) != NULL : !*last_message;
}

/* Writes a rule with given numbers of pattern terms, variables per term, roots and actions. */
static const char *rule_with(int terms, int arguments, int roots, int actions) {
    static char text[1 << 14];
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    fputs(PHASE "rule r %x = tuple(", out);
    for (int t = 0; t < terms; t++) {
        fprintf(out, t ? ", tuple(" : "tuple(");
        for (int a = 0; a < arguments; a++)
            fprintf(out, a ? ", %%v%d" : "%%v%d", t * arguments + a);
        fputc(')', out);
    }
    fputs(")", out);
    for (int i = 1; i < roots; i++) fprintf(out, "\nalso? %%r%d = abs(%%v0)", i);
    fputs("\n=> %x -> %v0", out);
    for (int i = 1; i < actions; i++) fputs("; %x -> %v0", out);
    fputs(EXAMPLE, out);
    fclose(out);
    return text;
}

static void limits_are_exact(void **state) {
    (void)state;
    assert_true(says(rule_with(2, 16, 16, 16), ""));
    assert_true(says(rule_with(1, 17, 1, 1), "too many arguments"));
    assert_true(says(rule_with(2, 2, 17, 1), "too many roots"));
    assert_true(says(rule_with(2, 2, 1, 17), "too many actions"));
    assert_true(says(rule_with(9, 14, 2, 1), "")); /* 126 variables, and %x and %r1 */
    assert_true(says(rule_with(9, 14, 3, 1), "too many variables"));
}

static void faults_are_found(void **state) {
    (void)state;
    refused("rule r %x = abs(%y) => %y" EXAMPLE, "a rule must be in a phase", 1, 6);
    refused(PHASE "rule r %x = abs(%y) => %z" EXAMPLE, "%z is not bound", 2, 24);
    refused(PHASE "rule r %x = abs(%y, %y) => %y" EXAMPLE, "abs does not accept 2 operands", 2, 13);
    refused(PHASE "rule r %x = absolute(%y) => %y" EXAMPLE, "neither an opcode nor a definition", 2,
            13);
    refused(PHASE "rule r %x = abs(%y) => convert(%y)" EXAMPLE, "cannot be inferred", 2, 24);
    refused(PHASE "rule r %x = abs(%y)\nwhere one_use(%x, %y) => %y" EXAMPLE, "takes 1 arguments",
            3, 7);
    refused(PHASE "rule r %x = abs(%y)\nwhere at_most(%y) => %y" EXAMPLE, "takes 2 arguments", 3,
            7);
    refused(PHASE "rule r %x = abs(%y)\nwhere only_view(%y) => %y" EXAMPLE,
            "takes at least 2 arguments", 3, 7);
    refused(PHASE "rule r %x = abs(%y)\nwhere at_most(%x, %y) => %y" EXAMPLE, "must be a number", 3,
            7);
    refused(PHASE "rule r %x = abs(%y)\nwhere movable(%y) => %y" EXAMPLE, "must be a chain", 3, 7);
    refused(PHASE "rule r %x = abs(%y)\nwhere one_use(%y) else why => %y" EXAMPLE, "unknown reason",
            3, 24);
    refused(PHASE "rule r %x = abs(%y) {dimensions={0}} => %y" EXAMPLE, "no attribute", 2, 22);
    refused(PHASE "rule r %x = slice(%y) {slice=1} => %y" EXAMPLE, "'slice' is not a number", 2,
            24);
    refused(PHASE "rule r %x = iota() {iota_dimension=first} => %x" EXAMPLE, "is not a word", 2,
            21);
    refused(PHASE "rule r %x = iota() {iota_dimension={0}} => %x" EXAMPLE, "not a list of numbers",
            2, 21);
    refused(PHASE "rule r %x = iota() {iota_dimension=0.5} => %x" EXAMPLE, "is not an integer", 2,
            21);
    refused(PHASE "rule r %x = transpose(%y) {dimensions={inf}} => %y" EXAMPLE, "is not an integer",
            2, 28);
    refused(PHASE "rule r %x = transpose(%y) {dimensions=%y} => %y" EXAMPLE,
            "%y is bound to a value and cannot be used as an attribute", 2, 39);
    refused(PHASE "rule r %x = iota() {iota_dimension=%d} => %d" EXAMPLE,
            "%d is bound to an attribute and cannot be used as a value", 2, 43);
    refused(PHASE "rule r %x = iota() {iota_dimension=%d} => transpose(%x) {dimensions=%d}" EXAMPLE,
            "%d is bound to an attribute of another kind", 2, 69);
    refused(PHASE "rule r %x = abs(%y: f33) => %y" EXAMPLE, "neither a type nor a test", 2, 21);
    refused(PHASE "rule r %x = abs(%y) => %y\n", "requires an example", 2, 6);
    refused(PHASE "rule r %x = abs(%y) = %y" EXAMPLE, "syntax error", 2, 21);
    refused(PHASE "rule r %x = abs(%y) => %y\nexample\nENTRY", "no 'end'", 4, 1);
    refused("phase algebra measure size\n", "unknown measure 'size'", 1, 23);
    refused("let a(%x) = b(%x)\nlet b(%x) = a(%x)\n" PHASE "rule r a(%x) => %x" EXAMPLE,
            "nested too deeply", 2, 13);
    refused("let a(%x) = add(%x, %x)\nlet b(%x) = add(a(%x), a(%x))\n"
            "let c(%x) = add(b(b(b(%x))), b(b(b(%x))))\nlet d(%x) = add(c(c(%x)), c(c(%x)))\n" PHASE
            "rule r d(d(%y)) => %y" EXAMPLE,
            "expand to more than 65536 terms", 1, 21);
    refused("let a(%x) = add(%x, %x)\n" PHASE
            "rule r a(a(a(a(a(a(a(a(a(a(a(a(a(a(a(a(a(a(%y)))))))))))))))))) => %y" EXAMPLE,
            "expand to more than 65536 terms", 1, 21);
    refused(PHASE "rule r %x = (abs(%y) | negate(%z)) => abs(%y)" EXAMPLE,
            "not every alternative of the pattern binds %y", 2, 43);
    refused(PHASE "rule r %x = abs(%y) => iota() : f32" EXAMPLE, "cannot be inferred", 2, 24);
    refused(PHASE "rule r %x = abs(%y) => abs(%y): token" EXAMPLE, "'token' is not an element type",
            2, 33);
    refused(PHASE "rule r for %d %d = dot(%a, %b) => unscaled_rows(%d, 2)" EXAMPLE,
            "must be 0 or 1", 2, 35);
    refused(PHASE "rule r %x = abs(%y) => (negate(%y) | abs(%y))" EXAMPLE,
            "a pattern is not allowed on the right-hand side", 2, 25);
    refused(PHASE "rule r %x = abs(%y) => chain(%y)" EXAMPLE,
            "a pattern is not allowed on the right-hand side", 2, 24);
    refused(PHASE "rule r %x = abs(%y) => chain+(%y)" EXAMPLE,
            "a pattern is not allowed on the right-hand side", 2, 24);
    refused(PHASE "rule r %x = abs(%y) => (negate(%y) with %c = abs(%y))" EXAMPLE,
            "a pattern is not allowed on the right-hand side", 2, 25);
    refused(PHASE "rule r for %d %d = dot(...) => call %d with color = %d" EXAMPLE,
            "unknown matmul field 'color'", 2, 45);
}

/* -------------------------------------------------------------------------------------- the end */

static hlo_status run_with(const char *rules_text, const char *hlo) {
    char name[] = "/tmp/hlo-rules-XXXXXX";
    int file = mkstemp(name);
    assert_true(file >= 0);
    FILE *out = fdopen(file, "w");
    fputs(rules_text, out);
    fclose(out);
    hlo_module *module;
    assert_int_equal(hlo_module_parse(hlo, strlen(hlo), "t.hlo", &sink, &module), HLO_OK);
    static const hlo_diag_sink keeper = {.emit = keep};
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "algebra";
    options.rules = name;
    options.sink = &keeper;
    *last_message = 0;
    hlo_status status = hlo_module_optimize(module, &options, NULL);
    hlo_module_free(module);
    remove(name);
    return status;
}

static const char swapping[] = "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
                               " ROOT s = f32[4] subtract(x, y) }\n";

static void rules_of_a_file_run(void **state) {
    (void)state;
    assert_int_equal(run_with(PHASE "rule r subtract(%x, %y) => negate(%x)" EXAMPLE, swapping),
                     HLO_OK);
}

static void a_phase_that_nothing_runs_is_refused(void **state) {
    (void)state;
    assert_int_equal(
        run_with("phase late measure expression_size\nrule r abs(%x) => %x" EXAMPLE, swapping),
        HLO_INVALID_INPUT);
    assert_string_equal(last_message, "unknown phase 'late': no pass runs it");
    assert_int_equal(last_line, 2);
    assert_int_equal(last_column, 6);
}

/* Both ends of a control dependency remain, and no rule matches past them. */
static void control_dependencies_hold(void **state) {
    (void)state;
    static const char hlo[] = "ENTRY e { x = f32[4] parameter(0)\n c = f32[4] copy(x)\n"
                              " n = f32[4] negate(c)\n"
                              " ROOT m = f32[4] abs(n), control-predecessors={c} }\n";
    hlo_module *module;
    assert_int_equal(hlo_module_parse(hlo, strlen(hlo), "t.hlo", &sink, &module), HLO_OK);
    hlo_pass_options options;
    hlo_pass_options_init(&options);
    options.passes = "algebra";
    options.sink = &sink;
    hlo_report *report;
    assert_int_equal(hlo_module_optimize(module, &options, &report), HLO_OK);
    assert_int_equal(firings(report, "identity"), 0);
    assert_int_equal(module->entry->instr_count, 4);
    assert_int_equal(hlo_instr_operand(module->entry->last->prev, 0)->op, HLO_OP_COPY);
    hlo_report_free(report);
    hlo_module_free(module);
}

static void a_rule_that_does_not_descend_is_named(void **state) {
    (void)state;
    assert_int_equal(
        run_with(PHASE "rule spin %r = subtract(%x, %y) => subtract(%y, %x)" EXAMPLE, swapping),
        HLO_INVALID_INPUT);
    assert_string_equal(last_message, "rule spin does not decrease expression_size");
    assert_int_equal(last_line, 2);
    assert_int_equal(last_column, 6);
}

static void faulty(const char *actions, const char *message) {
    char text[512];
    snprintf(text, sizeof text, PHASE "rule r %%r = subtract(%%x, %%y) => %s" EXAMPLE, actions);
    assert_int_equal(run_with(text, swapping), HLO_INVALID_INPUT);
    if (!strstr(last_message, message)) fail_msg("%s: not in: %s", message, last_message);
    assert_int_equal(last_line, 2);
}

/* Actions that build invalid HLO are reported at the rule. */
static void what_a_rule_makes_verifies_or_it_is_at_fault(void **state) {
    (void)state;
    faulty("slice(%x) {slice=%y}", "is bound to a value");
    faulty("slice(%x) like %r", "rule r produces invalid HLO: ");
    faulty("custom-call(%x) like %r", "rule r produces invalid HLO: ");
    faulty("transpose(%x) {dimensions={7}} like %r", "rule r produces invalid HLO: ");
    faulty("get-tuple-element(%x) {index=1} like %r", "rule r produces invalid HLO: ");
    faulty("parameter() like %r", "rule r produces invalid HLO: ");
}

/* If a rule does not provide the arguments that a builder needs, the rule does not apply, or is
 * reported; there is no other error. */
static void builders_refuse_what_they_are_not_for(void **state) {
    (void)state;
    static const char *const actions[] = {
        "compose(%x)",
        "compose(%r)",
        "carry(%c, %r)",
        "clone_with(%r, %x)",
        "clone_with(%x, %r)",
        "max_over(%r, %x)",
        "cut(%x, %s)",
        "split_merged(%x, %s, 1)",
        "transpose_source(%r, 0)",
        "joined_c(%r)",
        "sent_scale(%r, %c, %s)",
        "sent_quantized(%r)",
        "splat(%r) like %r",
        "dequantized_tree(%r)",
        "row(%x, %s, %r)",
        "shaped(%x, %s)",
        "seen(%x, %s, %r)",
        "padded_c(%x)",
        "as_type(none, %r)",
        "f32_scalar(%x)",
        "joined_scale(%x, 1, %s)",
        "unscaled_rows(%x, 0)",
        "merged(%x, %y, %s)",
        "constant(0) like %s",
    };
    static const char hlo[] = "ENTRY e { x = f32[4] parameter(0)\n y = f32[4] parameter(1)\n"
                              " s = f32[] parameter(2)\n c = f32[4] copy(y)\n"
                              " w = f32[4] broadcast(s), dimensions={}\n"
                              " b = f32[4] multiply(x, w)\n ROOT t = f32[4] subtract(b, c) }\n";
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 PHASE
                 "rule r %%r = subtract(multiply(%%x, splat(%%s)), %%c = chain(%%y)) => %s" EXAMPLE,
                 actions[i]);
        const hlo_status status = run_with(text, hlo);
        if (status != HLO_OK && status != HLO_INVALID_INPUT)
            fail_msg("%s: %s", actions[i], hlo_status_name(status));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_fire_on_their_examples),
        cmocka_unit_test(order_of_work_does_not_matter),
        cmocka_unit_test(faults_are_found),
        cmocka_unit_test(limits_are_exact),
        cmocka_unit_test(rules_of_a_file_run),
        cmocka_unit_test(a_phase_that_nothing_runs_is_refused),
        cmocka_unit_test(control_dependencies_hold),
        cmocka_unit_test(a_rule_that_does_not_descend_is_named),
        cmocka_unit_test(what_a_rule_makes_verifies_or_it_is_at_fault),
        cmocka_unit_test(builders_refuse_what_they_are_not_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
