/* clauses [--count=N] [--jobs=N] [--rule=NAME]
 *
 * What each `where` clause of the built-in rules is for: it is left out, and what the rules then
 * make of the rules' examples, the golden tests and N drawn modules must be seen to be wrong: the
 * passes fail, a golden test has another verdict or is rewritten, or a value differs. Prints what
 * caught each clause; fails when nothing caught one of them. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hlo/text.h"
#include "passes/match.h"
#include "passes/vocabulary.h"
#include "tests/random/check.h"
#include "tests/random/edit.h"

enum { FILES_MOST = 12, CLAUSES_MOST = 1024, CAUGHT_SIZE = 160, CLAUSE_SECONDS = 120 };
enum { WAYS_MOST = 8, PASSES_SIZE = 64 };

extern const hlo_rules *const hlo_rules_real[];
extern const uint32_t hlo_rules_real_count;

/* What the engine gets: the real tables, or one of them without a clause. */
static hlo_rules tables[FILES_MOST];
const hlo_rules *const hlo_rules_builtin[] = {&tables[0], &tables[1], &tables[2],  &tables[3],
                                              &tables[4], &tables[5], &tables[6],  &tables[7],
                                              &tables[8], &tables[9], &tables[10], &tables[11]};
const uint32_t hlo_rules_builtin_count = FILES_MOST;

/* A module, how it is optimised, and what the whole rules make of it. */
typedef struct subject {
    const char *name;
    bool golden; /* its verdicts are told by a test */
    hlo_module *module;
    hlo_pass_options options;
    uint64_t seed;
    char *text, *verdicts;
} subject;

typedef struct subjects {
    size_t count, room;
    subject *v;
} subjects;

typedef struct clause {
    uint32_t file, rule, guard; /* of the table, of the file, of the rule */
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

/* NULL when the passes fail. The caller frees all three. */
static hlo_module *optimised(const subject *s, char **out_text, char **out_verdicts) {
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
    hlo_report_free(report);
    return after;
}

static void add_subject(subjects *list, subject s) {
    if (!s.module) return;
    hlo_module *after = optimised(&s, &s.text, &s.verdicts);
    hlo_module_free(after);
    if (!after) {
        hlo_module_free(s.module);
        return;
    }
    if (list->count == list->room) {
        list->room = 2 * list->room + 256;
        list->v = realloc(list->v, list->room * sizeof *list->v);
        if (!list->v) abort();
    }
    list->v[list->count++] = s;
}

/* The options of one RUN line of a golden test; `passes` is kept in `room`. */
static hlo_pass_options run_options(const char *text, char *room, size_t size) {
    hlo_pass_options o;
    hlo_pass_options_init(&o);
    const char *at;
    *room = '\0';
    if ((at = strstr(text, "--passes="))) {
        size_t length = strcspn(at + 9, " \n|");
        snprintf(room, size, "%.*s", (int)length, at + 9);
        o.passes = room;
    }
    if ((at = strstr(text, "--target=sm_"))) o.target = atoi(at + 12);
    if ((at = strstr(text, "--cuda="))) {
        o.cuda_major = atoi(at + 7);
        o.cuda_minor = (at = strchr(at, '.')) ? atoi(at + 1) : 0;
    }
    o.scales_used = strstr(text, "--scale-operands=used") != NULL;
    o.allow_bias_rounding = strstr(text, "--allow-bias-rounding") != NULL;
    o.merge_dots = strstr(text, "--merge-dots") != NULL;
    return o;
}

static bool alike(const hlo_pass_options *a, const hlo_pass_options *b) {
    return !strcmp(a->passes ? a->passes : "", b->passes ? b->passes : "") &&
           a->target == b->target && a->cuda_major == b->cuda_major &&
           a->cuda_minor == b->cuda_minor && a->scales_used == b->scales_used &&
           a->allow_bias_rounding == b->allow_bias_rounding && a->merge_dots == b->merge_dots;
}

/* Once for each of the ways in which its RUN lines optimise it, forwards and backwards. */
static void add_case(subjects *list, const text_case *c, char (*passes)[PASSES_SIZE]) {
    hlo_pass_options ways[WAYS_MOST];
    uint32_t count = 0;
    const char *run = strstr(c->head, "RUN:");
    do {
        const char *next = run ? strstr(run + 1, "RUN:") : NULL;
        char line[1024];
        snprintf(line, sizeof line, "%.*s",
                 next ? (int)(next - run) : (int)strcspn(run ? run : "", "\n"), run ? run : "");
        ways[count] = run_options(line, passes[count], PASSES_SIZE);
        bool known = run && !strstr(line, "%hlo-fp8-");
        for (uint32_t i = 0; i < count; i++) known |= alike(&ways[i], &ways[count]);
        count += !known;
        run = next;
    } while (run && count < WAYS_MOST);
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
    static char passes[CLAUSES_MOST][WAYS_MOST][PASSES_SIZE];
    for (size_t i = 0; i < cases->count && i < CLAUSES_MOST; i++)
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
        free(list->v[i].text);
        free(list->v[i].verdicts);
    }
    free(list->v);
}

/* -------------------------------------------------------------------------------------- clauses */

static void *copy_of(const void *from, size_t size) {
    void *to = malloc(size);
    if (!to) abort();
    return memcpy(to, from, size);
}

static void drop(clause c) {
    hlo_rules *t = &tables[c.file];
    hlo_rule_guard *guards = copy_of(t->guards, t->guard_count * sizeof *guards);
    hlo_rule *rules = copy_of(t->rules, t->rule_count * sizeof *rules);
    hlo_rule *rule = &rules[c.rule];
    hlo_rule_guard *at = guards + rule->first_guard + c.guard;
    memmove(at, at + 1, (rule->guard_count - c.guard - 1) * sizeof *at);
    rule->guard_count--;
    t->guards = guards;
    t->rules = rules;
}

/* How it is seen that the rules are wrong; false when it is not. */
static bool caught_by(const subject *s, char *caught) {
    char *text = NULL, *verdicts = NULL, why[WHY_SIZE];
    hlo_module *after = optimised(s, &text, &verdicts);
    const char *how = NULL;
    if (!after)
        how = "the passes fail";
    else if (s->golden && strcmp(verdicts, s->verdicts))
        how = "another verdict";
    else if (s->golden && !strncmp(s->name, "missed-", 7) && strcmp(text, s->text))
        how = "rewritten"; /* which such a test is there to refuse */
    else if (strcmp(text, s->text) &&
             check_values(s->module, after, s->seed, why) == OUTCOME_DIFFERENT)
        how = "another value";
    if (how && s->golden) snprintf(caught, CAUGHT_SIZE, "%s: %s", how, s->name);
    if (how && !s->golden)
        snprintf(caught, CAUGHT_SIZE, "%s: seed %llu", how, (unsigned long long)s->seed);
    hlo_module_free(after);
    free(text);
    free(verdicts);
    return how != NULL;
}

static void try_clause(const subjects *list, clause c, int job, char *caught) {
    use_processor(job);
    alarm(CLAUSE_SECONDS);
    drop(c);
    snprintf(caught, CAUGHT_SIZE, "the passes crash, or do not end");
    bool found = false;
    for (size_t i = 0; i < list->count && !found; i++) found = caught_by(&list->v[i], caught);
    if (!found) *caught = 0;
    _exit(0);
}

static void print_clause(clause c, const char *caught) {
    const hlo_rules *t = hlo_rules_real[c.file];
    const hlo_rule *rule = &t->rules[c.rule];
    const hlo_rule_guard *g = &t->guards[rule->first_guard + c.guard];
    char words[160];
    int at = snprintf(words, sizeof words, "%s%s(", g->negate ? "not " : "",
                      hlo_rule_words.functions[g->function].name);
    for (uint32_t i = 0; i < g->arg_count; i++) {
        const hlo_rule_term *a = &t->terms[t->args[g->first_arg + i]];
        at += snprintf(words + at, sizeof words - (size_t)at, "%s%s", i ? ", " : "",
                       a->slot >= 0               ? rule->slots[a->slot]
                       : a->kind == HLO_TERM_WORD ? a->word
                                                  : "..");
    }
    printf("%-20s %-34s) %s\n", rule->name, words, *caught ? caught : "NOT CAUGHT");
}

static uint32_t find_clauses(clause *out, const char *only) {
    uint32_t count = 0;
    for (uint32_t f = 0; f < hlo_rules_real_count; f++)
        for (uint32_t r = 0; r < hlo_rules_real[f]->rule_count; r++)
            for (uint32_t g = 0; g < hlo_rules_real[f]->rules[r].guard_count; g++)
                if (count < CLAUSES_MOST &&
                    (!only || !strcmp(only, hlo_rules_real[f]->rules[r].name)))
                    out[count++] = (clause){f, r, g};
    return count;
}

/* How many clauses nothing caught. */
static uint32_t run(const subjects *list, const char *only, int jobs) {
    static clause clauses[CLAUSES_MOST];
    uint32_t count = find_clauses(clauses, only), missed = 0;
    char(*caught)[CAUGHT_SIZE] = mmap(NULL, CLAUSES_MOST * sizeof *caught, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (caught == MAP_FAILED) return CLAUSES_MOST;
    fflush(stdout);
    int running = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (running == jobs) {
            wait(NULL);
            running--;
        }
        if (!fork()) try_clause(list, clauses[i], (int)i % jobs, caught[i]);
        running++;
    }
    while (running-- > 0) wait(NULL);
    for (uint32_t i = 0; i < count; i++) {
        print_clause(clauses[i], caught[i]);
        missed += !*caught[i];
    }
    printf("%u clauses, %u not caught, by %zu modules\n", count, missed, list->count);
    munmap(caught, CLAUSES_MOST * sizeof *caught);
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
    if (jobs < 1 || hlo_rules_real_count > FILES_MOST) return 2;
    for (uint32_t i = 0; i < hlo_rules_real_count; i++) tables[i] = *hlo_rules_real[i];
    text_cases cases;
    find_cases(&cases, HLO_GOLDEN "/*/*.hlo");
    subjects list;
    find_subjects(&list, &cases, count);
    bool ok = !run(&list, only, jobs);
    free_subjects(&list);
    free_cases(&cases);
    return ok ? 0 : 1;
}
