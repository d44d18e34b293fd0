/* SPDX-License-Identifier: Apache-2.0 */
/* clauses [--count=N] [--jobs=N] [--rule=NAME]
 *
 * Mutation test of the built-in rules: removes one part of a rule at a time; the results for the
 * rules' examples, the golden tests and N random modules must detect the removal. Without a `where`
 * clause, the result must be wrong: the passes fail, a golden test has another verdict, a module of
 * a missed-*.hlo is rewritten, or a value differs. Without an alternative of a pattern, or an
 * optional root, the rewritten module or a verdict must differ. Prints what detected each mutation;
 * fails if a mutation is not detected. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hlo/memory.h"
#include "hlo/text.h"
#include "passes/rules/library.h"
#include "tests/random/check/check.h"
#include "tests/random/module/edit.h"

enum { MAX_FILES = 12, MAX_CLAUSES = 1024, CAUGHT_SIZE = 160, CLAUSE_SECONDS = 120 };
enum { MAX_WAYS = 8, PASSES_SIZE = 64 };

extern const hlo_rules *const hlo_rules_real[];
extern const uint32_t hlo_rules_real_count;

/* The rules that the engine uses: the original tables, or one table without a clause. */
static hlo_rules tables[MAX_FILES];
const hlo_rules *const hlo_rules_builtin[] = {&tables[0], &tables[1], &tables[2],  &tables[3],
                                              &tables[4], &tables[5], &tables[6],  &tables[7],
                                              &tables[8], &tables[9], &tables[10], &tables[11]};
const uint32_t hlo_rules_builtin_count = MAX_FILES;

/* A module, its options, and the result with the complete rules. */
typedef struct subject {
    const char *name;
    bool golden; /* true if a golden test checks the verdicts of this module */
    hlo_module *module;
    hlo_pass_options options;
    uint64_t seed;
    char *text, *verdicts;
    uint64_t *fired; /* number of applications of each rule, by rule_index() */
} subject;

typedef struct subjects {
    size_t count, capacity;
    subject *v;
} subjects;

/* The part of a rule to remove. */
typedef enum part { PART_GUARD, PART_ROOT, PART_ALTERNATIVE } part;

typedef struct clause {
    part part;
    uint32_t file, rule; /* index of the rules file; of the rule in the file */
    uint32_t term;       /* the term, for PART_ALTERNATIVE */
    uint32_t index;      /* index in the rule's guards or roots, or a term's arguments */
} clause;

/* ------------------------------------------------------------------------------------- subjects */

static char *verdicts_of(const hlo_report *report) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *v = hlo_report_verdict(report, i);
        fprintf(out, "%d %s %s %s\n", (int)v->kind, v->epilogue, v->reason ? v->reason : "",
                v->blocker ? v->blocker : "");
    }
    fclose(out);
    return text;
}

/* Optimizes a copy of the module. Returns NULL if the passes fail. The caller frees all three
 * results. */
static hlo_module *optimized(const subject *s, char **out_text, char **out_verdicts,
                             uint64_t *fired) {
    hlo_module *after;
    hlo_report *report;
    if (hlo_module_clone(s->module, &after) != HLO_OK) return NULL;
    if (hlo_module_optimize(after, &s->options, &report) != HLO_OK) {
        hlo_module_free(after);
        return NULL;
    }
    size_t size;
    hlo_module_to_text(after, NULL, out_text, &size);
    *out_verdicts = verdicts_of(report);
    if (fired) count_rules(report, fired);
    hlo_report_free(report);
    return after;
}

static void add_subject(subjects *list, subject s) {
    if (!s.module) return;
    s.fired = calloc(MAX_RULES, sizeof *s.fired);
    if (!s.fired) abort();
    hlo_module *after = optimized(&s, &s.text, &s.verdicts, s.fired);
    hlo_module_free(after);
    if (!after) {
        hlo_module_free(s.module);
        free(s.fired);
        return;
    }
    if (list->count == list->capacity) {
        list->capacity = 2 * list->capacity + 256;
        list->v = realloc(list->v, list->capacity * sizeof *list->v);
        if (!list->v) abort();
    }
    list->v[list->count++] = s;
}

/* Returns the text of `word` up to a space or `|`. Equal texts have the same address. */
static const char *word_of(const char *word) {
    static char words[16][16];
    const int length = (int)strcspn(word, " \n|");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!*words[i]) snprintf(words[i], sizeof *words, "%.*s", length, word);
        if (strlen(words[i]) == (size_t)length && strncmp(words[i], word, (size_t)length) == 0)
            return words[i];
    }
    abort();
}

/* Returns the options of one RUN line of a golden test; `capacity` receives the list of passes. */
static hlo_pass_options run_options(const char *text, char *capacity, size_t size) {
    hlo_pass_options o;
    hlo_pass_options_init(&o);
    const char *at;
    *capacity = '\0';
    if ((at = strstr(text, "--passes="))) {
        size_t length = strcspn(at + 9, " \n|");
        snprintf(capacity, size, "%.*s", (int)length, at + 9);
        o.passes = capacity;
    }
    if ((at = strstr(text, "--target="))) o.target = word_of(at + strlen("--target="));
    if ((at = strstr(text, "--cuda="))) o.cuda = word_of(at + strlen("--cuda="));
    o.scales_used = strstr(text, "--scale-operands=used") != NULL;
    o.allow_bias_rounding = strstr(text, "--allow-bias-rounding") != NULL;
    o.merge_dots = strstr(text, "--merge-dots") != NULL;
    if (strstr(text, "--ragged=keep")) o.ragged = HLO_RAGGED_KEEP;
    return o;
}

static bool alike(const hlo_pass_options *a, const hlo_pass_options *b) {
    return !strcmp(a->passes ? a->passes : "", b->passes ? b->passes : "") &&
           a->target == b->target && a->cuda == b->cuda && a->scales_used == b->scales_used &&
           a->allow_bias_rounding == b->allow_bias_rounding && a->merge_dots == b->merge_dots &&
           a->ragged == b->ragged;
}

/* Adds cases of a golden test: one for each set of options in its RUN lines, and for either order
 * of work. */
static void add_case(subjects *list, const text_case *c, char (*passes)[PASSES_SIZE]) {
    hlo_pass_options ways[MAX_WAYS];
    uint32_t count = 0;
    const char *run = strstr(c->head, "RUN:");
    do {
        const char *next = run ? strstr(run + 1, "RUN:") : NULL, *from = run ? run : c->head;
        char line[1024];
        snprintf(line, sizeof line, "%.*s", next ? (int)(next - run) : (int)strcspn(from, "\n"),
                 from);
        ways[count] = run_options(line, passes[count], PASSES_SIZE);
        bool known = run && !strstr(line, "%hlo-fp8-");
        for (uint32_t i = 0; i < count; i++) known |= alike(&ways[i], &ways[count]);
        count += !known;
        run = next;
    } while (run && count < MAX_WAYS);
    for (uint32_t i = 0; i < count; i++) {
        subject s = {.name = c->name, .golden = true, .seed = 1, .options = ways[i]};
        for (; s.options.rule_order < 2; s.options.rule_order++) {
            s.module = read_module(c->text, c->name);
            add_subject(list, s);
        }
    }
}

static void find_subjects(subjects *list, const text_cases *cases, uint64_t count) {
    *list = (subjects){0};
    static char passes[MAX_CLAUSES][MAX_WAYS][PASSES_SIZE];
    for (size_t i = 0; i < cases->count && i < MAX_CLAUSES; i++)
        add_case(list, &cases->v[i], passes[i]);
    for (uint64_t seed = 1; seed <= count; seed++) {
        subject s = {.name = "seed", .seed = seed};
        dice d = {.state = ~seed};
        s.module = draw_module(cases, seed);
        s.options = draw_options(&d);
        add_subject(list, s);
    }
}

static void free_subjects(subjects *list) {
    for (size_t i = 0; i < list->count; i++) {
        hlo_module_free(list->v[i].module);
        hlo_free(list->v[i].text);
        free(list->v[i].verdicts);
        free(list->v[i].fired);
    }
    free(list->v);
}

/* -------------------------------------------------------------------------------------- clauses */

static void *copy_of(const void *from, size_t size) {
    void *to = malloc(size);
    if (!to) abort();
    return memcpy(to, from, size);
}

/* Removes one row of a table. */
static void take_out(void *rows, size_t size, uint32_t index, uint32_t *count) {
    char *at = (char *)rows + index * size;
    memmove(at, at + size, (*count - index - 1) * size);
    --*count;
}

static void drop(clause c) {
    hlo_rules *t = &tables[c.file];
    hlo_rule *rules = copy_of(t->rules, t->rule_count * sizeof *rules), *rule = &rules[c.rule];
    hlo_rule_guard *guards = copy_of(t->guards, t->guard_count * sizeof *guards);
    hlo_rule_root *roots = copy_of(t->roots, t->root_count * sizeof *roots);
    hlo_rule_term *terms = copy_of(t->terms, t->term_count * sizeof *terms);
    uint32_t *args = copy_of(t->args, t->arg_count * sizeof *args);
    if (c.part == PART_GUARD)
        take_out(guards + rule->first_guard, sizeof *guards, c.index, &rule->guard_count);
    else if (c.part == PART_ROOT)
        take_out(roots + rule->first_root, sizeof *roots, c.index, &rule->root_count);
    else
        take_out(args + terms[c.term].first_arg, sizeof *args, c.index, &terms[c.term].arg_count);
    t->rules = rules;
    t->guards = guards;
    t->roots = roots;
    t->terms = terms;
    t->args = args;
}

/* Returns true if the result of a case shows that the rules are wrong. */
static bool caught_by(const subject *s, part what, char *caught) {
    char *text = NULL, *verdicts = NULL, why[WHY_SIZE];
    hlo_module *after = optimized(s, &text, &verdicts, NULL);
    const char *how = NULL;
    if (!after)
        how = "the passes fail";
    else if (what != PART_GUARD)
        how = strcmp(text, s->text) || strcmp(verdicts, s->verdicts) ? "rewritten otherwise" : NULL;
    else if (s->golden && strcmp(verdicts, s->verdicts))
        how = "another verdict";
    else if (s->golden && !strncmp(s->name, "missed-", 7) && strcmp(text, s->text))
        how = "rewritten"; /* a missed-*.hlo module must not be rewritten */
    else if (strcmp(text, s->text) &&
             check_values(s->module, after, s->seed, why) == OUTCOME_DIFFERENT)
        how = "another value";
    if (how && s->golden) snprintf(caught, CAUGHT_SIZE, "%s: %s", how, s->name);
    if (how && !s->golden)
        snprintf(caught, CAUGHT_SIZE, "%s: seed %llu", how, (unsigned long long)s->seed);
    hlo_module_free(after);
    hlo_free(text);
    free(verdicts);
    return how != NULL;
}

/* Checks that results are reproducible: without a mutation, no difference is detected. */
static bool nothing_caught(const subjects *list) {
    char caught[CAUGHT_SIZE];
    for (size_t i = 0; i < list->count; i++)
        if (caught_by(&list->v[i], PART_ALTERNATIVE, caught)) {
            printf("with all rules whole, %s\n", caught);
            return false;
        }
    return true;
}

static void try_clause(const subjects *list, clause c, int job, char *caught) {
    use_processor(job);
    limit_seconds(CLAUSE_SECONDS);
    int index = rule_index(tables[c.file].rules[c.rule].name);
    bool found = false;
    drop(c);
    snprintf(caught, CAUGHT_SIZE, "the passes crash, or do not end");
    /* Except for `where` clauses, modules to which the rule is applied come first, since they
     * detect the mutation soonest. */
    for (int fired = c.part != PART_GUARD; fired >= 0 && !found; fired--)
        for (size_t i = 0; i < list->count && !found; i++) {
            const subject *v = &list->v[i];
            bool looked_at = c.part == PART_GUARD || (v->fired[index] > 0) == fired;
            if (looked_at) found = caught_by(v, c.part, caught);
        }
    if (!found) *caught = 0;
    _exit(0);
}

static void print_guard(const hlo_rules *t, const hlo_rule *rule, uint32_t index, char *out,
                        size_t size) {
    const hlo_rule_guard *g = &t->guards[rule->first_guard + index];
    size_t at = (size_t)snprintf(out, size, "%s%s(", g->negate ? "not " : "",
                                 hlo_rule_words.functions[g->function].name);
    for (uint32_t i = 0; i < g->arg_count; i++) {
        const hlo_rule_term *a = &t->terms[t->args[g->first_arg + i]];
        at += (size_t)snprintf(out + at, size - at, "%s%s", i ? ", " : "",
                               a->slot >= 0               ? rule->slots[a->slot]
                               : a->kind == HLO_TERM_WORD ? a->word
                                                          : "..");
    }
    snprintf(out + at, size - at, ")");
}

/* Prints a pattern in abbreviated form. */
static void print_term(const hlo_rules *t, const hlo_rule *rule, uint32_t term, FILE *out) {
    const hlo_rule_term *p = &t->terms[term];
    if (p->kind == HLO_TERM_OP) fputs(hlo_ops[p->code].name, out);
    if (p->kind == HLO_TERM_ALT) fputs("..", out);
    if (p->kind == HLO_TERM_VAR || (p->slot >= 0 && !p->arg_count))
        fprintf(out, "%%%s", rule->slots[p->slot]);
    for (uint32_t i = 0; i < p->arg_count && p->kind != HLO_TERM_ALT; i++) {
        fputs(i ? ", " : "(", out);
        print_term(t, rule, t->args[p->first_arg + i], out);
    }
    if (p->arg_count && p->kind != HLO_TERM_ALT) fputc(')', out);
}

static void print_clause(clause c, const char *caught) {
    const hlo_rules *t = hlo_rules_real[c.file];
    const hlo_rule *rule = &t->rules[c.rule];
    char words[160] = "";
    FILE *out = fmemopen(words, sizeof words - 1, "w");
    if (out && c.part == PART_ROOT)
        print_term(t, rule, t->roots[rule->first_root + c.index].term, out);
    if (out && c.part == PART_ALTERNATIVE)
        print_term(t, rule, t->args[t->terms[c.term].first_arg + c.index], out);
    if (out) fclose(out);
    if (c.part == PART_GUARD) print_guard(t, rule, c.index, words, sizeof words);
    static const char *const parts[] = {"where", "also?", "|"};
    printf("%-20s %-5s %-40s %s\n", rule->name, parts[c.part], words,
           *caught ? caught : "NOT CAUGHT");
}

typedef struct clauses {
    uint32_t count;
    clause v[MAX_CLAUSES];
} clauses;

static void add_clause(clauses *list, clause c) {
    if (list->count == MAX_CLAUSES) abort();
    list->v[list->count++] = c;
}

static bool is_listed(const clauses *list, clause c) {
    for (uint32_t i = 0; i < list->count; i++) {
        const clause *v = &list->v[i];
        if (v->part == PART_ALTERNATIVE && v->file == c.file && v->term == c.term) return true;
    }
    return false;
}

/* Adds the alternatives in the pattern whose root is c.term, each once, even if an alternative is
 * part of several patterns. */
static void add_alternatives(clauses *list, const hlo_rules *t, clause c) {
    const hlo_rule_term *term = &t->terms[c.term];
    if (is_listed(list, c)) return;
    for (c.index = 0; term->kind == HLO_TERM_ALT && c.index < term->arg_count; c.index++)
        add_clause(list, c);
    for (uint32_t i = 0; i < term->arg_count; i++) {
        clause below = c;
        below.term = t->args[term->first_arg + i];
        if (term->kind != HLO_TERM_DEFINE || i == 0) add_alternatives(list, t, below);
    }
}

static void find_clauses(clauses *out, const char *only) {
    out->count = 0;
    for (uint32_t f = 0; f < hlo_rules_real_count; f++)
        for (uint32_t r = 0; r < hlo_rules_real[f]->rule_count; r++) {
            const hlo_rules *t = hlo_rules_real[f];
            const hlo_rule *rule = &t->rules[r];
            if (only && strcmp(only, rule->name)) continue;
            for (uint32_t g = 0; g < rule->guard_count; g++)
                add_clause(out, (clause){PART_GUARD, f, r, 0, g});
            for (uint32_t i = 0; i < rule->root_count; i++) {
                const hlo_rule_root *root = &t->roots[rule->first_root + i];
                if (root->optional) add_clause(out, (clause){PART_ROOT, f, r, 0, i});
                add_alternatives(out, t, (clause){PART_ALTERNATIVE, f, r, root->term, 0});
            }
        }
}

/* Counts the undetected clauses. */
static uint32_t run(const subjects *list, const char *only, int jobs) {
    static clauses all;
    find_clauses(&all, only);
    uint32_t count = all.count, missed = 0;
    char(*caught)[CAUGHT_SIZE] = mmap(NULL, MAX_CLAUSES * sizeof *caught, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (caught == MAP_FAILED) return MAX_CLAUSES;
    fflush(stdout);
    int running = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (running == jobs) {
            wait(NULL);
            running--;
        }
        if (!fork()) try_clause(list, all.v[i], (int)i % jobs, caught[i]);
        running++;
    }
    while (running-- > 0) wait(NULL);
    for (uint32_t i = 0; i < count; i++) {
        print_clause(all.v[i], caught[i]);
        missed += !*caught[i];
    }
    printf("%u clauses, %u not caught, by %zu modules\n", count, missed, list->count);
    munmap(caught, MAX_CLAUSES * sizeof *caught);
    return missed;
}

int main(int argc, char **argv) {
    static const struct option options[] = {{"count", required_argument, NULL, 'c'},
                                            {"jobs", required_argument, NULL, 'j'},
                                            {"rule", required_argument, NULL, 'r'},
                                            {0}};
    uint64_t count = 3000;
    int jobs = 2, option;
    const char *only = NULL;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'c')
            count = strtoull(optarg, NULL, 10);
        else if (option == 'j')
            jobs = atoi(optarg);
        else if (option == 'r')
            only = optarg;
        else
            return 2;
    }
    if (jobs < 1 || hlo_rules_real_count > MAX_FILES) return 2;
    for (uint32_t i = 0; i < hlo_rules_real_count; i++) tables[i] = *hlo_rules_real[i];
    text_cases cases;
    find_cases(&cases, HLO_GOLDEN "/*/*.hlo");
    subjects list;
    find_subjects(&list, &cases, count);
    bool ok = nothing_caught(&list) && !run(&list, only, jobs);
    free_subjects(&list);
    free_cases(&cases);
    return ok ? 0 : 1;
}
