/* SPDX-License-Identifier: Apache-2.0 */
/* The pass manager: parses the list of passes, runs and times the passes, and verifies and dumps
 * the module. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hlo/text.h"
#include "ir/devices/boundary.h"
#include "ir/float/c_locale.h"
#include "ir/intern.h"
#include "ir/module/clone.h"
#include "ir/module/undo.h"
#include "ir/text/argument.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/suggest.h"
#include "ir/text/writer.h"
#include "ir/verify/verify.h"
#include "matmul/product.h"
#include "passes/analysis/pin.h"
#include "passes/engine/engine.h"
#include "passes/passes.h"
#include "passes/pipeline/pipeline.h"
#include "passes/quantize/amaxes.h"
#include "passes/rules/library.h"
#include "passes/verdict/remark.h"

typedef enum role { ENABLES, CLEANUP, COMMITS } role;

typedef struct pass {
    const char *name, *help;
    role role;
    hlo_pass_function *function; /* exactly one of function, rules and sequence is set */
    const char *sequence;
    const char *rules; /* name of a phase of passes/rules/ */
} pass;

static const pass passes[] = {
#define FUNCTION(f) .function = f
#define SEQUENCE(list) .sequence = list
#define RULES(phase) .rules = phase
#define PASS(pass_name, body, pass_role, pass_help)                                                \
    {.name = pass_name, .help = pass_help, .role = pass_role, body},
#include "passes/pass.def"
#undef PASS
#undef RULES
#undef SEQUENCE
#undef FUNCTION
};

enum { PASS_COUNT = sizeof passes / sizeof *passes };

size_t hlo_pass_count(void) {
    return PASS_COUNT;
}

const char *hlo_pass_name(size_t index) {
    return passes[index].name;
}

const char *hlo_pass_help(size_t index) {
    return passes[index].help;
}

const char *hlo_pass_sequence(size_t index) {
    return passes[index].sequence;
}

static const pass *find_pass(const char *name, size_t length) {
    for (size_t i = 0; i < PASS_COUNT; i++)
        if (strlen(passes[i].name) == length && memcmp(passes[i].name, name, length) == 0)
            return &passes[i];
    return NULL;
}

static bool take_user_pass(const hlo_user_pass *given, hlo_user_pass *out) {
    hlo_user_pass_init(out);
    return given && hlo_options_take("hlo_user_pass", out, sizeof *out, given, NULL) == HLO_OK;
}

/* Finds a pass by name among options->user_passes. Returns false if not found. */
static bool find_user_pass(const hlo_pass_options *options, const char *name, size_t length,
                           hlo_user_pass *out) {
    for (size_t i = 0; i < options->user_pass_count; i++)
        if (take_user_pass(options->user_passes[i], out) && strlen(out->name) == length &&
            memcmp(out->name, name, length) == 0)
            return true;
    return false;
}

static const hlo_pass_options default_options = {.struct_size = sizeof default_options,
                                                 .passes = "default",
                                                 .framework_files = HLO_FRAMEWORK_FILES};

void hlo_pass_options_init_sized(hlo_pass_options *options, size_t struct_size) {
    hlo_options_fill(options, struct_size, &default_options, sizeof default_options);
}

/* -------------------------------------------------------------------------------------- running */

typedef struct run {
    hlo_pass_context context;
    hlo_module *linted;           /* the copy that the lints analyze, or NULL */
    hlo_report *unread;           /* the report of the passes over `linted`, or NULL */
    hlo_module *rules;            /* the owner of context.rules, or NULL */
    const hlo_snapshot *original; /* the verified input, or NULL if nothing can change it */
    hlo_report *previous;         /* the report of the run before restart(), or NULL */
    bool reports;                 /* a report is requested, or min_gain or wide needs it */
    bool stops, stopped;          /* `stops`: end after quantize-wide; `stopped`: it has run */
    uint64_t committed;           /* number of changes by COMMITS passes */
    uint64_t cleaned[PASS_COUNT]; /* age() after each CLEANUP pass, or 0 */
} run;

/* Prints the module after a pass if options->print_after is the name of the pass or "all". */
static hlo_status dump(const run *r, const char *name, bool is_sequence) {
    const hlo_pass_options *options = r->context.options;
    const char *which = options->print_after;
    if (!which) return HLO_OK;
    const bool all = strcmp(which, "all") == 0 && !is_sequence;
    if (!all && strcmp(which, name) != 0) return HLO_OK;
    const char *const title[] = {"// ----- after ", name, "\n"};
    for (int i = 0; i < 3; i++)
        if (!options->dump.write(options->dump.user, title[i], strlen(title[i])))
            return HLO_INVALID_INPUT;
    return hlo_module_print(r->context.module, NULL, options->dump);
}

/* Verifies the module after a built-in or a user-defined pass. */
static hlo_status verify(const run *r, const char *after, bool of_program) {
    const unsigned most = r->context.options->max_errors;
    const hlo_verify_options options = {.struct_size = sizeof options, .max_errors = most};
    hlo_status status = hlo_module_verify(r->context.module, &options, r->context.sink);
    if (status == HLO_OK) status = hlo_matmul_verify(r->context.module, most, r->context.sink);
    if (status != HLO_INVALID_INPUT) return status;
    hlo_diag_emit(r->context.module, r->context.sink, HLO_ERROR,
                  of_program ? HLO_DIAG_VERIFY : HLO_DIAG_INTERNAL, 0, 0,
                  "module fails verification after '%s': %s", after,
                  of_program ? "the user-defined pass produced invalid HLO"
                             : "this is a bug in hlo-fp8");
    return of_program ? HLO_INVALID_INPUT : HLO_INTERNAL;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Returns a count that grows with every change and with every new instruction, even if the
 * instruction is discarded. */
static uint64_t age(const run *r) {
    return 1 + r->context.changes + r->context.module->next_id;
}

static hlo_status run_function(run *r, const pass *p) {
    hlo_pass_context *context = &r->context;
    if (!hlo_pass_goes_on(context, p->name)) return HLO_STOPPED;
    uint64_t *cleaned = &r->cleaned[p - passes];
    if (hlo_pin_is_scheduled(context->module)) return HLO_OK;
    if (p->role == CLEANUP && *cleaned == age(r)) return HLO_OK;
    double start = context->options->time_passes ? seconds_now() : 0;
    uint64_t before = context->changes;
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    hlo_status status = p->rules ? hlo_rules_run(context, p->rules) : p->function(context);
    if (status == HLO_OK && hlo_module_is_fragmented(context->module))
        hlo_remark_relocated(context, hlo_module_compact(context->module, context->scratch));
    hlo_arena_release(context->scratch, mark);
    context->agreement = NULL;
    r->stopped |= r->stops && p->function == hlo_pass_quantize;
    if (p->role == COMMITS) r->committed += context->changes - before;
    context->committed |= p->role == COMMITS;
    *cleaned = age(r);
    if (context->options->time_passes) hlo_remark_time(context, p->name, seconds_now() - start);
    if (status == HLO_OK && context->options->verify_each) status = verify(r, p->name, false);
    return status;
}

/* Runs a pass of options->user_passes, and updates the facts that the run caches. */
static hlo_status call_user_pass(hlo_pass_context *context, const hlo_user_pass *p) {
    hlo_module *module = context->module;
    const uint64_t edits = module->edits;
    module->logs_replaced = true;
    module->replaced_count = 0;
    hlo_status status = p->run(p->user, module, context->sink);
    module->logs_replaced = false;
    if (module->exhausted) return HLO_OUT_OF_MEMORY;
    if (status != HLO_OK) {
        hlo_diag_refuse(context->sink, HLO_DIAG_PASS, NULL, 0, 0, "pass '%s' failed: %s", p->name,
                        hlo_status_name(status));
        return status;
    }
    if (module->edits == edits) return HLO_OK;
    context->changes += module->edits - edits;
    context->order = NULL;
    context->agreement = NULL;
    for (uint32_t i = 0; i < module->replaced_count; i++) {
        const hlo_replaced *r = &module->replaced[i];
        if (r->to->parent && hlo_product_kind_of(r->to) != HLO_PRODUCT_NONE)
            hlo_remark_follow(context, r->from, r->to);
    }
    hlo_pin_module(module, context->scratch);
    return HLO_OK;
}

/* Runs a user-defined pass, and verifies the module if the pass has changed it. */
static hlo_status run_user(run *r, const hlo_user_pass *p) {
    hlo_pass_context *context = &r->context;
    if (!hlo_pass_goes_on(context, p->name)) return HLO_STOPPED;
    const double start = context->options->time_passes ? seconds_now() : 0;
    const uint64_t before = context->changes;
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    hlo_status status = call_user_pass(context, p);
    hlo_arena_release(context->scratch, mark);
    if (context->options->time_passes) hlo_remark_time(context, p->name, seconds_now() - start);
    if (status == HLO_OK && context->changes != before && !context->options->verify_none)
        status = verify(r, p->name, true);
    return status == HLO_OK ? dump(r, p->name, false) : status;
}

/* True if the list, or a sequence in it, contains the pass `name` or, if `name` is NULL, a pass
 * that commits. */
static bool contains(const char *list, const char *name) {
    size_t length;
    for (const char *at = *list ? list : NULL, *word; (word = hlo_next_word(&at, &length));) {
        const pass *p = find_pass(word, length);
        if (p && ((name ? strcmp(p->name, name) == 0 : p->role == COMMITS) ||
                  (p->sequence && contains(p->sequence, name))))
            return true;
    }
    return false;
}

static hlo_status run_list(run *r, const char *list, bool outermost);

/* Restores the module if no committing pass in the sequence has changed anything. */
static hlo_status run_or_undo(run *r, const pass *p) {
    hlo_pass_context *context = &r->context;
    hlo_arena_mark mark = hlo_arena_here(context->scratch);
    const hlo_attempt *attempt = hlo_attempt_begin(context);
    const size_t rules = context->rules ? context->rules->rule_count : 0;
    const hlo_rule_use *uses =
        hlo_arena_copy(context->scratch, context->uses, rules * sizeof *uses);
    uint64_t committed = r->committed;
    hlo_status status = run_list(r, p->sequence, false);
    if (status == HLO_OK && r->committed == committed && !r->stopped) {
        hlo_attempt_undo(context, attempt);
        hlo_given_undone(context, uses);
        memset(r->cleaned, 0, sizeof r->cleaned);
    }
    hlo_arena_release(context->scratch, mark);
    return status;
}

static hlo_status run_list(run *r, const char *list, bool outermost) {
    size_t length;
    hlo_status status = HLO_OK;
    for (const char *at = *list ? list : NULL, *word;
         status == HLO_OK && !r->stopped && (word = hlo_next_word(&at, &length));) {
        hlo_user_pass own;
        const pass *p = find_pass(word, length);
        if (p) {
            status = !p->sequence                               ? run_function(r, p)
                     : outermost && contains(p->sequence, NULL) ? run_or_undo(r, p)
                                                                : run_list(r, p->sequence, false);
            if (status == HLO_OK) status = dump(r, p->name, p->sequence);
        } else if (find_user_pass(r->context.options, word, length, &own)) {
            status = run_user(r, &own);
        }
    }
    return status;
}

/* Prints a note for each loaded rule that changed nothing, with the cause. Excludes rules that only
 * emit remarks, because they never change anything. */
static void note_idle_rules(const run *r) {
    const hlo_rules *rules = r->context.rules;
    for (uint32_t i = 0; rules && i < rules->rule_count; i++) {
        const hlo_rule *rule = &rules->rules[i];
        const hlo_rule_use *use = &r->context.uses[i];
        if (rules->actions[rule->first_action].kind == HLO_ACTION_REMARK || use->fired) continue;
        const char *undone = use->undone ? "nothing became FP8, so all changes were undone" : "";
        if (use->by)
            hlo_diag_emit(r->rules, r->context.sink, HLO_NOTE, HLO_DIAG_RULE, rule->offset,
                          strlen(rule->name),
                          "rule %s did not fire in module %s: rule %s changed `%s` first%s%s",
                          rule->name, r->context.module->name, use->by, use->at,
                          use->undone ? "; " : "", undone);
        else
            hlo_diag_emit(r->rules, r->context.sink, HLO_NOTE, HLO_DIAG_RULE, rule->offset,
                          strlen(rule->name), "rule %s %s in module %s%s%s", rule->name,
                          use->undone ? "fired" : "did not fire", r->context.module->name,
                          use->undone ? ", but " : "", undone);
    }
}

static hlo_status run_all(run *r, jmp_buf *recover) {
    hlo_pass_context *context = &r->context;
    const hlo_pass_options *options = context->options;
    hlo_status status = HLO_OK;
    if (r->reports) hlo_report_open(context);
    if (*options->passes || options->emit != HLO_EMIT_CUBLAS)
        hlo_pin_module(context->module, context->scratch);
    if (r->reports && options->lint)
        status = hlo_lint_as_read(context, &r->linted, &r->unread, recover);
    if (status != HLO_OK) return status;
    status = run_list(r, options->passes, true);
    if (status == HLO_OK && *options->passes && !options->verify_none && !options->verify_each)
        status = verify(r, options->passes, false);
    if (status != HLO_OK) return status;
    if (!r->reports) return HLO_OK;
    if (options->lint) hlo_lint_as_left(context);
    hlo_report_close(context);
    return HLO_OK;
}

static void make_uses(hlo_pass_context *context) {
    const size_t count = context->rules ? context->rules->rule_count : 0;
    context->uses = hlo_arena_zero(context->lasting, count * sizeof *context->uses);
}

/* Restores the input module. The new report lists the matmuls that must stay wide. */
static hlo_status restart(run *r, jmp_buf *recover) {
    hlo_pass_context *context = &r->context;
    hlo_report_free(r->previous);
    r->previous = context->report;
    context->report = NULL; /* memory may run out before there is another one */
    hlo_snapshot_restore(context->module, r->original);
    hlo_module_free(r->linted);
    r->linted = NULL;
    r->committed = context->changes = 0;
    context->committed = false;
    memset(r->cleaned, 0, sizeof r->cleaned);
    context->order = NULL;
    make_uses(context);
    context->report = hlo_report_new(context->options->framework_files, recover);
    if (!context->report) return HLO_OUT_OF_MEMORY;
    hlo_report_again(context->report, r->previous);
    return HLO_OK;
}

/* Converts calls to the form options->emit. Without passes, the default form changes nothing. */
static hlo_status emit(run *r) {
    const hlo_pass_options *options = r->context.options;
    if (!*options->passes && options->emit == HLO_EMIT_CUBLAS) return HLO_OK;
    uint64_t before = r->context.changes;
    hlo_status status = hlo_emit(&r->context);
    const bool changed = r->context.changes != before;
    if (status == HLO_OK && changed && !options->verify_none) status = verify(r, "emit", false);
    return status;
}

/* Runs all passes until every fused matmul has the minimum gain, none is in options->wide, and
 * every matmul that options->quantize selects is an FP8 call. Gains and names of FP8 calls are only
 * known after a run, and the gain of a matmul may depend on another matmul. So all passes run again
 * without the matmuls that must stay wide. Names of calls are looked up after the first run only,
 * because the next run may assign them to other calls. With `inserts`, then restores the module and
 * only inserts the quantization, as in hlo_module_quantize(). If options->quantize selects all FP8
 * matmuls, this module also is the form HLO_EMIT_DQ: XLA compiles fewer kernels for it. */
static hlo_status run_until_all_gain(run *r, bool inserts, jmp_buf *recover) {
    hlo_pass_context *context = &r->context;
    bool unnamed = context->options->wide != NULL;
    r->stops = context->records;
    if (r->stops) return run_all(r, recover);
    hlo_status status = run_all(r, recover);
    while (status == HLO_OK && (hlo_report_needs_rerun(context->report) || unnamed)) {
        const bool again = hlo_report_needs_rerun(context->report);
        if (!again) hlo_report_keep_outputs(context->report, context->options->wide);
        unnamed &= again;
        if (again) status = restart(r, recover);
        if (status == HLO_OK && again) status = run_all(r, recover);
    }
    if (status == HLO_OK && !context->options->wide_unmatched)
        status =
            hlo_reports_check_wide((const hlo_report *const *)&context->report, 1,
                                   context->options->wide, context->module->file, context->sink);
    const bool dequantizes = status == HLO_OK && !inserts &&
                             context->options->emit == HLO_EMIT_DQ && !context->rules &&
                             strcmp(context->options->passes, default_options.passes) == 0 &&
                             hlo_report_is_quantized(context->report);
    if (status == HLO_OK && (inserts || dequantizes)) {
        const bool none = context->committed && !r->committed; /* no matmul was converted */
        status = restart(r, recover);
        r->stops = true;
        context->dequantizes = dequantizes;
        if (status == HLO_OK && !none) status = run_all(r, recover);
        hlo_report *inserted = context->report;
        if (dequantizes) context->report = r->previous, r->previous = inserted;
        return status == HLO_OK && dequantizes ? emit(r) : status;
    }
    if (status == HLO_OK) status = emit(r);
    if (status != HLO_OK) return status;
    const hlo_instruction *marked;
    /* XLA's partitioner can split a dot, but not a call. Another --emit form turns calls into dots
     * again. */
    if (r->committed && context->options->emit <= HLO_EMIT_FFI &&
        hlo_devices_unpartitioned(context->module, &marked))
        hlo_diag_emit(context->module, context->sink, HLO_WARNING, HLO_DIAG_UNSUPPORTED,
                      marked->offset, hlo_intern_length(marked->name),
                      "not-partitioned: the module has sharded values but is not partitioned yet; "
                      "XLA cannot partition FP8 calls");
    note_idle_rules(r);
    return status;
}

/* Runs the passes, and returns HLO_OUT_OF_MEMORY if memory runs out. This is a separate function
 * because `r` must not be a local variable of the function that calls setjmp(). */
static hlo_status run_caught(run *r, bool inserts) {
    hlo_pass_context *context = &r->context;
    jmp_buf recover;
    if (setjmp(recover)) return HLO_OUT_OF_MEMORY;
    context->scratch = hlo_arena_new(&recover);
    context->lasting = hlo_arena_new(&recover);
    context->report = hlo_report_new(context->options->framework_files, &recover);
    if (!context->scratch || !context->lasting || !context->report) return HLO_OUT_OF_MEMORY;
    hlo_arena_set_recover(context->module->arena, &recover);
    make_uses(context);
    const unsigned most = context->options->max_errors;
    hlo_status status = hlo_module_ensure_verified(context->module, most, context->sink);
    if (status == HLO_OK) status = hlo_matmul_verify(context->module, most, context->sink);
    if (status == HLO_OK &&
        (*context->options->passes || context->options->emit != HLO_EMIT_CUBLAS))
        r->original = hlo_snapshot_take(context->module, context->lasting);
    return status == HLO_OK ? run_until_all_gain(r, inserts, &recover) : status;
}

/* -------------------------------------------------------------------------------------- options */

__attribute__((format(printf, 2, 3))) static hlo_status refuse(const hlo_pass_options *options,
                                                               const char *format, ...) {
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    const hlo_diag diag = {.severity = HLO_ERROR, .code = HLO_DIAG_OPTION, .message = message};
    hlo_diag_send(options->sink, diag);
    return HLO_INVALID_USAGE;
}

static hlo_status unknown_pass(const hlo_pass_options *options, size_t length, const char *word,
                               const char *then) {
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    hlo_suggestion s = hlo_suggest(name);
    for (size_t i = 0; i < PASS_COUNT; i++) hlo_suggest_offer(&s, passes[i].name);
    for (size_t i = 0; i < options->user_pass_count; i++)
        hlo_suggest_offer(&s, options->user_passes[i]->name);
    return refuse(options, "unknown pass '%.*s'%s%s", (int)length, word, then,
                  hlo_suggest_meant(&s));
}

static hlo_status check_user_passes(const hlo_pass_options *options) {
    for (size_t i = 0; i < options->user_pass_count; i++) {
        const hlo_pass_options before = {.user_passes = options->user_passes, .user_pass_count = i};
        hlo_user_pass p = {.name = NULL}, other;
        const char *fault = NULL;
        if (!options->user_passes || !take_user_pass(options->user_passes[i], &p))
            fault =
                "is NULL, or its struct_size differs from the one that hlo_user_pass_init() sets";
        else if (!p.name || !*p.name || strchr(p.name, ','))
            fault = "must have a name without commas";
        else if (!p.run)
            fault = "has no run function";
        else if (strcmp(p.name, "all") == 0 || find_pass(p.name, strlen(p.name)))
            fault = "has the name of a built-in pass";
        else if (find_user_pass(&before, p.name, strlen(p.name), &other))
            fault = "has the name of an earlier user pass";
        if (!fault) continue;
        return refuse(options, "user_passes[%zu] '%.80s' %s", i, p.name ? p.name : "", fault);
    }
    return HLO_OK;
}

static bool is_known(const hlo_pass_options *options, const char *name, size_t length) {
    hlo_user_pass own;
    return find_pass(name, length) || find_user_pass(options, name, length, &own);
}

static bool is_recipe(const char *text) {
    static const char *const recipes[] = {"current", "rows", "mx", "static"};
    const size_t length = strcspn(text, ",");
    for (size_t i = 0; i < sizeof recipes / sizeof *recipes; i++)
        if (strncmp(recipes[i], text, length) == 0 && !recipes[i][length])
            return !text[length] || strcmp(text + length, ",attention") == 0;
    return false;
}

hlo_status hlo_pass_options_take(const hlo_pass_options *given, hlo_pass_options *options) {
    size_t length;
    *options = default_options;
    hlo_status status = hlo_options_take("hlo_pass_options", options, sizeof *options, given,
                                         hlo_options_sink(given));
    if (status == HLO_OK) status = check_user_passes(options);
    if (status != HLO_OK) return status;
    if (!options->passes) return refuse(options, "passes must not be NULL; \"\" runs none");
    if (options->wide && !*options->wide) options->wide = NULL;
    const char *at = *options->passes ? options->passes : NULL;
    for (const char *word; (word = hlo_next_word(&at, &length));)
        if (!is_known(options, word, length)) return unknown_pass(options, length, word, "");
    const char *recipe = options->quantize;
    if (recipe && !is_recipe(recipe))
        return refuse(options,
                      "invalid value '%s' for quantize, expected current, rows, mx or static, "
                      "possibly followed by ',attention'",
                      recipe);
    const bool fixed = recipe && *recipe == 's';
    if (fixed != (options->amaxes || options->amaxes_text))
        return refuse(options, fixed ? "quantize=static requires amaxes"
                                     : "amaxes requires quantize=static");
    if (options->quantize && !contains(options->passes, "quantize-wide"))
        return refuse(options, "quantize requires the pass quantize-wide in passes");
    const char *after = options->print_after;
    if (after && strcmp(after, "all") != 0 && !is_known(options, after, strlen(after)))
        return unknown_pass(options, strlen(after), after, " in print_after");
    if (after && !options->dump.write)
        return refuse(options, "print_after requires dump, the writer to print to");
    if (options->emit > HLO_EMIT_DQ)
        return refuse(options, "invalid value %d for emit", (int)options->emit);
    if (options->ragged > HLO_RAGGED_KEEP)
        return refuse(options, "invalid value %d for ragged", (int)options->ragged);
    if (!hlo_target_parse(options->target))
        return refuse(options, "unknown target '%s'", options->target);
    if (!(options->min_gain >= 0))
        return refuse(options, "min_gain must be non-negative, found %g", options->min_gain);
    if (!hlo_cuda_parse(options->cuda)) return refuse(options, HLO_CUDA_INVALID, options->cuda);
    return HLO_OK;
}

hlo_status hlo_pass_options_check(const hlo_pass_options *options) {
    HLO_IN_C_LOCALE;
    return hlo_pass_options_take(options, &(hlo_pass_options){0});
}

/* Parses the rules that the options specify, from a file or from a string. */
static hlo_status load_rules(run *r) {
    const hlo_pass_options *options = r->context.options;
    if (!options->rules && !options->rules_text) return HLO_OK;
    const unsigned most = options->max_errors;
    const hlo_status status =
        options->rules_text
            ? hlo_rules_read(options->rules_text, strlen(options->rules_text),
                             options->rules ? options->rules : "rules", most, options->sink,
                             &r->rules, &r->context.rules)
            : hlo_rules_load(options->rules, most, options->sink, &r->rules, &r->context.rules);
    r->context.rules_source = r->rules;
    if (status != HLO_OK) return status;
    /* Reject a rule in a phase that no pass runs, because the rule would never be applied. */
    for (uint32_t i = 0; i < r->context.rules->rule_count; i++) {
        const hlo_rule *rule = &r->context.rules->rules[i];
        bool known = false;
        for (size_t p = 0; p < PASS_COUNT && !known; p++)
            known = passes[p].rules && strcmp(passes[p].rules, rule->phase) == 0;
        if (known) continue;
        hlo_diag_emit(r->rules, r->context.sink, HLO_ERROR, HLO_DIAG_RULE, rule->offset,
                      strlen(rule->name), "unknown phase '%s': no pass runs it", rule->phase);
        return HLO_INVALID_INPUT;
    }
    return HLO_OK;
}

static hlo_status optimize(hlo_module *module, const hlo_pass_options *given, bool inserts,
                           json_t *records, hlo_report **out_report) {
    hlo_pass_options own;
    const hlo_pass_options *options = &own;
    hlo_status status = hlo_pass_options_take(given, &own);
    if (status != HLO_OK || (inserts && !own.quantize)) return status;
    run r = {.context = {.module = module,
                         .target = hlo_target_parse(options->target),
                         .cuda = hlo_cuda_parse(options->cuda),
                         .scales = options->scales_used && options->emit <= HLO_EMIT_FFI
                                       ? HLO_SCALES_USED
                                       : HLO_SCALES_ALL,
                         .options = options,
                         .library = &hlo_rule_library_builtin,
                         .records = records,
                         .sink = options->sink},
             .reports = out_report || options->min_gain > 0 || options->wide || options->quantize};
    json_t *amaxes = NULL;
    status = load_rules(&r);
    if (status == HLO_OK && *options->passes && (options->amaxes || options->amaxes_text))
        status = hlo_amaxes_read(options, module, &amaxes);
    r.context.amaxes = amaxes;
    const bool nothing = !*options->passes && !out_report && options->verify_none &&
                         options->emit == HLO_EMIT_CUBLAS;
    if (status != HLO_OK || nothing) {
        json_decref(amaxes);
        hlo_module_free(r.rules);
        return status;
    }
    jmp_buf *outer = hlo_arena_set_recover(module->arena, NULL);
    status = run_caught(&r, inserts);
    hlo_arena_set_recover(module->arena, outer);
    hlo_journal_close(module); /* running out of memory may have interrupted an application */
    if (status != HLO_OK && r.original) {
        hlo_snapshot_restore(module, r.original);
        module->verified = true;
        module->exhausted = module->logs_replaced = false;
    }
    hlo_arena_free(r.context.scratch);
    hlo_arena_free(r.context.lasting);
    hlo_module_free(r.linted);
    hlo_report_free(r.unread);
    hlo_module_free(r.rules);
    json_decref(amaxes);
    hlo_report_free(r.previous);
    if (status == HLO_OK && out_report)
        *out_report = r.context.report;
    else
        hlo_report_free(r.context.report);
    return status;
}

hlo_status hlo_module_optimize(hlo_module *module, const hlo_pass_options *options,
                               hlo_report **out_report) {
    HLO_IN_C_LOCALE;
    if (out_report) *out_report = NULL;
    return optimize(module, options, false, NULL, out_report);
}

hlo_status hlo_module_quantize(hlo_module *module, const hlo_pass_options *options) {
    HLO_IN_C_LOCALE;
    return optimize(module, options, true, NULL, NULL);
}

hlo_status hlo_module_insert_amaxes(hlo_module *module, const hlo_diag_sink *sink,
                                    json_t *out_names) {
    hlo_pass_options options = default_options;
    options.sink = sink;
    options.quantize = "current,attention";
    return optimize(module, &options, true, out_names, NULL);
}

hlo_status hlo_passes_print(const hlo_pass_options *options, hlo_writer writer) {
    hlo_pass_options own;
    const hlo_status status = hlo_pass_options_take(options, &own);
    if (status != HLO_OK) return status;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < PASS_COUNT; i++)
        hlo_print_plain(out, "%-24s  %s\n", passes[i].name, passes[i].help);
    for (size_t i = 0; i < own.user_pass_count; i++) {
        hlo_user_pass p;
        const char *name = own.user_passes[i]->name;
        find_user_pass(&own, name, strlen(name), &p);
        hlo_print_plain(out, p.help ? "%-24s  %s\n" : "%s\n", name, p.help);
    }
    return hlo_writer_close(out, HLO_OK);
}
