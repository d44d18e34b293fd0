/* SPDX-License-Identifier: Apache-2.0 */
/* rulec OUT.c FILE...: compiles `.rules` files to hlo_rules_builtin[], the rule tables of the
 * library. The build runs rulec, so rulec must not need compiled rules itself. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/rules/rules.h"
#include "passes/rules/library.h"

static void show(void *user, const hlo_diag *diag) {
    hlo_diag_print(diag, 0, hlo_file_writer(user));
}

/* Prints a string or NULL, and `end`. */
static void put_string(FILE *out, const char *text, const char *end) {
    fputs(text ? "\"" : "NULL", out);
    for (const unsigned char *c = (const unsigned char *)text; c && *c; c++) {
        if (*c == '\n')
            fputs(c[1] ? "\\n\"\n    \"" : "\\n", out);
        else if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20 || *c >= 0x7f || *c == '?')
            fprintf(out, "\\%03o", *c);
        else
            fputc(*c, out);
    }
    fprintf(out, "%s%s", text ? "\"" : "", end);
}

#define EACH(name, type)                                                                           \
    if (r->name##_count) fprintf(out, "static const " type " " #name "s_%u[] = {\n", file);        \
    for (uint32_t i = 0; i < r->name##_count; i++)

#define DONE(name)                                                                                 \
    if (r->name##_count) fputs("};\n", out)

static void put_small_tables(FILE *out, const hlo_rules *r, unsigned file) {
    EACH(arg, "uint32_t") fprintf(out, "    %u,\n", r->args[i]);
    DONE(arg);
    EACH(int, "int64_t") fprintf(out, "    %lld,\n", (long long)r->ints[i]);
    DONE(int);
    EACH(attr, "hlo_rule_attr") {
        const hlo_rule_attr *a = &r->attrs[i];
        fprintf(out, "    {%u, %u, %d, %lld, %u, %u, ", a->id, a->kind, a->slot,
                (long long)a->number, a->int_count, a->first_int);
        put_string(out, a->word, "},\n");
    }
    DONE(attr);
    EACH(guard, "hlo_rule_guard") {
        const hlo_rule_guard *g = &r->guards[i];
        fprintf(out, "    {%d, %u, %u, %d, %u, %u},\n", g->negate, g->function, g->reason, g->at,
                g->arg_count, g->first_arg);
    }
    DONE(guard);
    EACH(action, "hlo_rule_action") {
        const hlo_rule_action *a = &r->actions[i];
        fprintf(out, "    {%u, %d, %d, %u, %u, %u, %u},\n", a->kind, a->slot, a->operand, a->reason,
                a->term, a->set_count, a->first_set);
    }
    DONE(action);
    EACH(set, "hlo_rule_set")
    fprintf(out, "    {%u, %d, %u},\n", r->sets[i].field, r->sets[i].add, r->sets[i].term);
    DONE(set);
    EACH(root, "hlo_rule_root")
    fprintf(out, "    {%u, %d},\n", r->roots[i].term, r->roots[i].optional);
    DONE(root);
}

static void put_file(FILE *out, const hlo_rules *r, unsigned file) {
    EACH(term, "hlo_rule_term") {
        const hlo_rule_term *t = &r->terms[i];
        fprintf(out, "    {%u, %u, %d, %d, %d, %u, %u, %u, %u, %u, %u, ", t->kind, t->shape_kind,
                t->rest, t->anywhere, t->slot, t->code, t->shape_code, t->arg_count, t->first_arg,
                t->attr_count, t->first_attr);
        const double number = t->number;
        if (number == HUGE_VAL)
            fputs("HUGE_VAL", out);
        else if (number == -HUGE_VAL)
            fputs("-HUGE_VAL", out);
        else
            fprintf(out, "%.17g", number);
        fputs(", ", out);
        put_string(out, t->word, "},\n");
    }
    DONE(term);
    put_small_tables(out, r, file);
    for (uint32_t i = 0; i < r->rule_count; i++) {
        fprintf(out, "static const char *const slots_%u_%u[] = {\n", file, i);
        for (uint32_t s = 0; s < r->rules[i].slot_count; s++) {
            put_string(out, r->rules[i].slots[s], ",\n");
        }
        fputs("};\n", out);
    }
    EACH(rule, "hlo_rule") {
        const hlo_rule *rule = &r->rules[i];
        fputs("    {", out);
        put_string(out, rule->name, ", ");
        put_string(out, rule->phase, ", ");
        put_string(out, rule->measure, "");
        fprintf(out, ", %u, %u, %d, %d, %u, %u, %u, %u, %u, %u, %u, %u, slots_%u_%u,\n",
                rule->measure_code, rule->slot_count, rule->subject, rule->root, rule->line,
                rule->offset, rule->root_count, rule->first_root, rule->guard_count,
                rule->first_guard, rule->action_count, rule->first_action, file, i);
        put_string(out, rule->example, "},\n");
    }
    DONE(rule);
    fprintf(out, "static const hlo_rules rules_of_%u = {\n    .file = ", file);
    const char *slash = strrchr(r->file, '/');
    put_string(out, slash ? slash + 1 : r->file, "");
#define TABLE(name)                                                                                \
    if (r->name##_count)                                                                           \
        fprintf(out, ",\n    ." #name "_count = %u, ." #name "s = " #name "s_%u", r->name##_count, \
                file);
    HLO_RULE_TABLES(TABLE)
#undef TABLE
    fputs("};\n\n", out);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs("usage: rulec OUT.c FILE...\n", stderr);
        return 2;
    }
    unsigned count = (unsigned)(argc - 2);
    hlo_module **owners = calloc(count + 1, sizeof *owners);
    const hlo_rules **files = calloc(count + 1, sizeof *files);
    int status = !owners || !files;
    const hlo_diag_sink sink = {.emit = show, .user = stderr};
    for (unsigned i = 0; i < count && !status; i++)
        status = hlo_rules_load(argv[2 + i], 0, &sink, &owners[i], &files[i]) != HLO_OK;
    FILE *out = status ? NULL : fopen(argv[1], "w");
    if (out) {
        fputs("/* Made by rulec from passes/rules/. */\n#include <math.h>\n\n#include "
              "\"passes/rules/library.h\"\n\n",
              out);
        for (unsigned i = 0; i < count; i++) put_file(out, files[i], i);
        fputs("const hlo_rules *const hlo_rules_builtin[] = {\n", out);
        for (unsigned i = 0; i < count; i++) fprintf(out, "    &rules_of_%u,\n", i);
        fprintf(out, "};\nconst uint32_t hlo_rules_builtin_count = %u;\n", count);
    }
    if (!status && (!out || ferror(out) || fclose(out))) {
        perror(argv[1]);
        status = 1;
    }
    for (unsigned i = 0; owners && i < count; i++) hlo_module_free(owners[i]);
    free(owners);
    free(files);
    return status;
}
