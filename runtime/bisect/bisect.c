/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the original module with modules in which only one matmul, or all matmuls but one, are
 * rewritten. Selects the matmuls to quantize by these differences. */
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "hlo/bisect.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "ir/text/writer.h"
#include "passes/verdict/report.h"

/* The minimum gain of a rewrite whose matmuls are already selected: none is too small. */
#define ANY_GAIN 1e-30

/* The maximum size of the results of matmuls that are kept to compute signal-to-noise ratios, in
 * bytes. */
#define MAX_RESULTS ((size_t)1 << 30)

/* The measurements of one row. */
typedef struct effect {
    const hlo_verdict *verdict; /* the first verdict of the row in `report` */
    double *moved;              /* by output: the distance with only this row rewritten */
    double saving, flops;       /* predicted seconds that FP8 saves, and FLOPs */
    bool quantized;             /* pass->quantize quantizes the row, in the last report */
    bool rejected;              /* the row cannot be quantized together with chosen rows */
} effect;

struct hlo_bisection {
    hlo_matmul_effect *rows;
    size_t count;
    hlo_output_change all, rounding;
    hlo_report *report; /* the report of the module with all matmuls rewritten; owns the names of
                         * rows */
    hlo_budget budget;
    bool has_budget;
    hlo_report *chosen; /* the report budget.report */
    char *wide;         /* the text budget.wide */
    /* The members below are used only during construction. */
    const hlo_module *module;
    const hlo_pass_options *pass;
    hlo_plan_options plan; /* options of executing rewritten modules */
    const hlo_arrays *const *inputs;
    size_t input_count;
    const hlo_diag_sink *sink;
    hlo_diag_sink errors;  /* passes only errors to `sink` */
    hlo_arrays **original; /* by set of inputs: the outputs of the original module */
    hlo_plan **originals;  /* by set of inputs: the plan with the values of the original module */
    size_t *row_of;        /* by verdict of `report`: the index of its row plus one, or 0 */
    effect *effects;       /* by row */
    char *names;           /* buffer for a list of all names */
    size_t outputs;        /* number of outputs */
    double *moved;         /* by output: the distance with all matmuls rewritten */
    double *excess;        /* by output: the factor of excess() */
    size_t expected;       /* expected number of executions */
    struct timespec start;
};

/* ----------------------------------------------------------------------------------- executions */

/* Adds up the progress of all executions. */
static bool report_progress(void *user, const hlo_progress *one) {
    const hlo_bisection *s = user;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    const double part = one->total > 0 ? fmin(one->done / one->total, 1) : 0;
    const hlo_progress all = {.struct_size = sizeof all,
                              .seconds = (double)(now.tv_sec - s->start.tv_sec) +
                                         1e-9 * (double)(now.tv_nsec - s->start.tv_nsec),
                              .done = (double)s->budget.runs + part,
                              .total = (double)s->expected,
                              .instruction = one->instruction};
    return s->plan.progress(s->plan.progress_user, &all);
}

static void pass_errors(void *user, const hlo_diag *diag) {
    const hlo_diag_sink *sink = user;
    if (diag->severity == HLO_ERROR) sink->emit(sink->user, diag);
}

/* Executes a module on a set of inputs. The caller frees the plan, which owns the values of
 * how->values. */
static hlo_status execute(hlo_bisection *s, const hlo_module *module, hlo_plan_options how,
                          size_t set, hlo_plan **out_plan, hlo_arrays **out) {
    if (s->plan.progress) {
        how.progress = report_progress;
        how.progress_user = s;
    }
    /* With `values`, a branch that does not run causes a warning. */
    const hlo_diag_sink *sink = how.values && s->sink ? &s->errors : s->sink;
    hlo_status status = hlo_plan_new(module, &how, sink, out_plan);
    if (status == HLO_OK) status = hlo_plan_run(*out_plan, s->inputs[set], sink, out);
    s->budget.runs++;
    return status;
}

/* Computes the distances of the outputs from those of the original module. Stores the largest one
 * in `out`. For each output, increases `by_output` to its distance, unless that is NULL. */
static hlo_status measure(const hlo_bisection *s, size_t set, const hlo_arrays *found,
                          double *by_output, hlo_output_change *out) {
    /* The number and the shapes of the arrays that a run sends to the host may change. */
    const size_t counts[] = {hlo_arrays_count(s->original[set]), hlo_arrays_count(found)};
    for (size_t i = 0; i < counts[0] || i < counts[1]; i++) {
        double size = (double)INFINITY;
        if (i < counts[0] && i < counts[1])
            hlo_array_distance(hlo_arrays_at(s->original[set], i), hlo_arrays_at(found, i), &size);
        if (isnan(size)) size = (double)INFINITY; /* the norms overflow */
        if (by_output && i < s->outputs) by_output[i] = fmax(by_output[i], size);
        if (size > out->distance) *out = (hlo_output_change){size, i};
    }
    return HLO_OK;
}

/* Returns the value of an instruction in the last run of a plan, or NULL. */
static const hlo_array *value_of(const hlo_plan *plan, const char *name) {
    const hlo_arrays *values = hlo_plan_values(plan);
    for (size_t i = 0; values && i < hlo_arrays_count(values); i++)
        if (strcmp(hlo_arrays_at(values, i)->name, name) == 0) return hlo_arrays_at(values, i);
    return NULL;
}

/* Returns the signal-to-noise ratio in dB of a value in a run of `plan`, or NaN if the value of one
 * of the runs is unknown. */
static double snr_of(const hlo_bisection *s, size_t set, const hlo_plan *plan, const char *name) {
    double distance;
    const hlo_array *before = value_of(s->originals[set], name);
    const hlo_array *after = before ? value_of(plan, name) : NULL;
    if (!after || hlo_array_distance(before, after, &distance) != HLO_OK) return (double)NAN;
    return -20 * log10(distance);
}

/* Executes a module on all sets of inputs, and measures the distances. If `row` is not NULL, also
 * sets the signal-to-noise ratio of its matmul. */
static hlo_status try(hlo_bisection *s, const hlo_module *module, double *by_output,
                      hlo_matmul_effect *row, hlo_output_change *out) {
    hlo_plan_options how = s->plan;
    how.values = row ? row->matmul : NULL;
    *out = (hlo_output_change){0, 0};
    hlo_status status = HLO_OK;
    for (size_t set = 0; set < s->input_count && status == HLO_OK; set++) {
        hlo_plan *plan = NULL;
        hlo_arrays *found = NULL;
        status = execute(s, module, how, set, &plan, &found);
        if (status == HLO_OK) status = measure(s, set, found, by_output, out);
        if (status == HLO_OK && row) {
            const double snr = snr_of(s, set, plan, row->matmul);
            if (set == 0 || !(snr >= row->snr_db)) row->snr_db = snr;
        }
        hlo_arrays_free(found);
        hlo_plan_free(plan);
    }
    return status;
}

/* ------------------------------------------------------------------------------------- rewrites */

/* Appends the name of a matmul as a word of hlo_pass_options.wide. */
static char *append(const hlo_bisection *s, char *at, const hlo_verdict *v) {
    if (at > s->names) *at++ = ',';
    *at++ = '%';
    return stpcpy(at, v->input_instruction);
}

static const hlo_instruction *find(const hlo_module *module, const char *name) {
    for (const hlo_computation *c = module->first; c; c = c->next)
        for (const hlo_instruction *instr = c->first; instr; instr = hlo_instr_next(instr))
            if (strcmp(instr->name, name) == 0) return instr;
    return NULL;
}

/* Rewrites a copy of the module: converts row `index` or, with `others`, all other rows. Names all
 * remaining matmuls as wide. */
static hlo_status rewrite_but(const hlo_bisection *s, size_t index, bool others, hlo_module **out) {
    char *at = s->names;
    for (size_t i = 0; i < hlo_report_count(s->report); i++)
        if (!s->row_of[i] || (s->row_of[i] - 1 == index) == others)
            at = append(s, at, hlo_report_verdict(s->report, i));
    hlo_pass_options pass = *s->pass;
    pass.wide = at > s->names ? s->names : NULL;
    pass.min_gain = ANY_GAIN;
    const hlo_status status = hlo_module_clone(s->module, out);
    if (status != HLO_OK) return status;
    return s->effects[index].quantized && !others ? hlo_module_quantize(*out, &pass)
                                                  : hlo_module_optimize(*out, &pass, NULL);
}

static hlo_status try_but(hlo_bisection *s, size_t index, bool others, hlo_output_change *out) {
    hlo_module *module = NULL;
    effect *e = &s->effects[index];
    hlo_matmul_effect *row = others || !s->has_budget ? NULL : &s->rows[index];
    hlo_status status = rewrite_but(s, index, others, &module);
    if (row && status == HLO_OK && !find(module, row->matmul)) { /* inlining has renamed it */
        row->snr_db = (double)NAN;
        row = NULL;
    }
    if (status == HLO_OK) status = try(s, module, others ? NULL : e->moved, row, out);
    hlo_module_free(module);
    return status;
}

/* True if the two matmuls cannot be rewritten separately. */
static bool are_one(const hlo_verdict *a, const hlo_verdict *b) {
    return strcmp(a->input_instruction, b->input_instruction) == 0 ||
           (a->kind != HLO_VERDICT_WIDE && b->kind != HLO_VERDICT_WIDE &&
            strcmp(a->instruction, b->instruction) == 0);
}

/* Makes the rows of the matmuls that are rewritten. With a budget, only those of the matmuls that
 * pass->quantize quantized. */
static hlo_status list(hlo_bisection *s) {
    size_t length = 1;
    const size_t total = hlo_report_count(s->report);
    s->row_of = hlo_calloc(total + 1, sizeof *s->row_of);
    s->rows = hlo_calloc(total + 1, sizeof *s->rows);
    s->effects = hlo_calloc(total + 1, sizeof *s->effects);
    if (!s->row_of || !s->rows || !s->effects) return HLO_OUT_OF_MEMORY;
    for (size_t i = 0; i < total; i++) {
        const hlo_verdict *v = hlo_report_verdict(s->report, i);
        length += strlen(v->input_instruction) + 2;
        if (v->kind == HLO_VERDICT_WIDE || (s->has_budget && !v->quantized)) continue;
        s->row_of[i] = i + 1;
        for (size_t k = 0; k < i; k++) {
            const size_t from = s->row_of[i], to = s->row_of[k];
            if (!to || from == to || !are_one(v, hlo_report_verdict(s->report, k))) continue;
            for (size_t j = 0; j <= i; j++)
                if (s->row_of[j] == from) s->row_of[j] = to;
        }
    }
    for (size_t i = 0; i < total; i++) {
        const size_t first = s->row_of[i] - 1;
        const hlo_verdict *v = hlo_report_verdict(s->report, i);
        if (!s->row_of[i]) continue;
        if (first == i) {
            s->effects[s->count].verdict = v;
            s->rows[s->count].struct_size = sizeof *s->rows;
            s->rows[s->count].matmul = v->input_instruction;
            s->rows[s->count].op_name = v->op_name;
            s->row_of[i] = ++s->count;
        } else {
            s->row_of[i] = s->row_of[first];
        }
        s->effects[s->row_of[i] - 1].quantized |= v->quantized != NULL;
    }
    s->names = hlo_malloc(length);
    return s->names ? HLO_OK : HLO_OUT_OF_MEMORY;
}

static int by_distance(const void *a, const void *b) {
    const hlo_matmul_effect *x = a, *y = b;
    if (x->alone.distance != y->alone.distance)
        return x->alone.distance < y->alone.distance ? 1 : -1;
    return strcmp(x->matmul, y->matmul);
}

/* ------------------------------------------------------------------------------------ selection */

/* Returns the index of the row of a matmul plus one, or 0. */
static size_t row_named(const hlo_bisection *s, const char *matmul) {
    for (size_t i = 0; i < hlo_report_count(s->report); i++)
        if (s->row_of[i] &&
            strcmp(hlo_report_verdict(s->report, i)->input_instruction, matmul) == 0)
            return s->row_of[i];
    return 0;
}

/* Sets what a report predicts for the rows that are quantized in it. Counts an FP8 call once. */
static void predict(hlo_bisection *s, const hlo_report *report) {
    for (size_t r = 0; r < s->count; r++) s->effects[r].quantized = false;
    for (size_t i = 0; i < hlo_report_count(report); i++) {
        const hlo_verdict *v = hlo_report_verdict(report, i);
        const size_t row = row_named(s, v->input_instruction);
        if (!row || v->kind == HLO_VERDICT_WIDE || !v->quantized) continue;
        effect *e = &s->effects[row - 1];
        if (!e->quantized) e->saving = e->flops = 0;
        e->quantized = true;
        bool counted = false;
        for (size_t k = 0; k < i && !counted; k++)
            counted = strcmp(hlo_report_verdict(report, k)->instruction, v->instruction) == 0;
        if (counted) continue;
        e->saving += v->predicted_saving;
        e->flops += v->runs * v->flops;
    }
}

typedef struct rate {
    double value; /* seconds that FP8 saves (if no times are known: FLOPs), divided by the squared
                   * distance; if FP8 is slower, times the squared distance */
    size_t row;
} rate;

static int by_rate(const void *a, const void *b) {
    const rate *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Returns the factor by which the distance of an output with all matmuls quantized exceeds the
 * prediction from the distances with one of them. If no matmul alone changes the output, assumes
 * that each contributes equally. */
static double excess(hlo_bisection *s, size_t output) {
    double sum = 0;
    for (size_t r = 0; r < s->count; r++)
        sum += s->effects[r].moved[output] * s->effects[r].moved[output];
    const double all = s->moved[output], ratio = all / sqrt(sum);
    for (size_t r = 0; r < s->count && sum == 0; r++)
        s->effects[r].moved[output] = all / sqrt((double)s->count);
    return isfinite(sum) && isfinite(ratio) ? fmax(1, ratio) : 1;
}

/* Chooses rows that stay within the limit according to the prediction, except rejected rows. */
static hlo_status pick(hlo_bisection *s) {
    hlo_budget *budget = &s->budget;
    rate *order = hlo_calloc(s->count + 1, sizeof *order);
    double *sums =
        hlo_calloc(s->outputs + 1, sizeof *sums); /* by output: predicted squared distance */
    if (!order || !sums) {
        hlo_free(order);
        hlo_free(sums);
        return HLO_OUT_OF_MEMORY;
    }
    bool known = false;
    for (size_t r = 0; r < s->count; r++) known |= s->effects[r].saving != 0;
    for (size_t r = 0; r < s->count; r++) {
        const effect *e = &s->effects[r];
        const double value = known ? e->saving : e->flops, d = s->rows[r].alone.distance;
        const double of_loss = value * d * d, of_gain = d > 0 ? value / (d * d) : (double)INFINITY;
        order[r] = (rate){value < 0 ? of_loss : of_gain, r};
    }
    if (s->count) qsort(order, s->count, sizeof *order, by_rate);
    const bool all = s->all.distance <= budget->max_error;
    for (size_t k = 0; k < s->count; k++) {
        const size_t r = order[k].row;
        const double *moved = s->effects[r].moved;
        bool fits = true;
        for (size_t o = 0; o < s->outputs && !all; o++)
            fits &= s->excess[o] * sqrt(sums[o] + moved[o] * moved[o]) <= budget->max_error;
        s->rows[r].chosen = fits && !s->effects[r].rejected;
        for (size_t o = 0; o < s->outputs && s->rows[r].chosen; o++) sums[o] += moved[o] * moved[o];
    }
    budget->predicted = 0;
    for (size_t o = 0; o < s->outputs; o++)
        budget->predicted = fmax(budget->predicted, s->excess[o] * sqrt(sums[o]));
    hlo_free(order);
    hlo_free(sums);
    return HLO_OK;
}

/* Rewrites a copy of the module with the chosen rows, and names the other rows as wide. With
 * `out_report` NULL, matmuls that the program quantizes are not converted either: the module
 * differs from the original module only because of pass->quantize. */
static hlo_status rewrite_chosen(const hlo_bisection *s, hlo_module **out,
                                 hlo_report **out_report) {
    char *at = s->names;
    for (size_t i = 0; i < hlo_report_count(s->report); i++) {
        const hlo_verdict *v = hlo_report_verdict(s->report, i);
        bool named = false; /* inlining has copied the matmul */
        for (size_t k = 0; k < i && !named; k++)
            named = strcmp(hlo_report_verdict(s->report, k)->input_instruction,
                           v->input_instruction) == 0;
        const bool own = !out_report && v->kind != HLO_VERDICT_WIDE;
        const bool wide = v->reason && strcmp(v->reason, "wide-by-option") == 0;
        if (!named && (s->row_of[i] ? !s->rows[s->row_of[i] - 1].chosen : own || wide))
            at = append(s, at, v);
    }
    *at = '\0';
    hlo_pass_options pass = *s->pass;
    pass.wide = *s->names ? s->names : NULL;
    const hlo_status status = hlo_module_clone(s->module, out);
    return status == HLO_OK ? hlo_module_optimize(*out, &pass, out_report) : status;
}

/* Chooses the rows to quantize, and executes the module with these rows quantized. */
static hlo_status choose(hlo_bisection *s) {
    hlo_module *module = NULL;
    size_t chosen = 0;
    for (size_t o = 0; o < s->outputs; o++) s->excess[o] = excess(s, o);
    for (bool complete = false; !complete;) {
        hlo_report_free(s->chosen);
        s->chosen = NULL;
        hlo_status status = pick(s);
        if (status == HLO_OK) status = rewrite_chosen(s, &module, &s->chosen);
        hlo_module_free(module);
        module = NULL;
        if (status != HLO_OK) return status;
        /* A chosen matmul may save too little without others that use the same operand. Then leave
         * it wide, and choose again. */
        predict(s, s->chosen);
        complete = true;
        chosen = 0;
        for (size_t r = 0; r < s->count; r++) {
            const bool rejected = s->rows[r].chosen && !s->effects[r].quantized;
            s->effects[r].rejected |= rejected;
            complete &= !rejected;
            chosen += s->rows[r].chosen;
        }
    }
    s->wide = hlo_strdup(s->names);
    if (!s->wide) return HLO_OUT_OF_MEMORY;
    for (size_t r = 0; r < s->count; r++)
        if (s->rows[r].chosen) s->budget.predicted_saving += s->effects[r].saving;
    if (chosen == s->count) s->budget.measured = s->all;
    if (chosen == s->count || !chosen) return HLO_OK;
    hlo_status status = rewrite_chosen(s, &module, NULL);
    if (status == HLO_OK) status = try(s, module, NULL, NULL, &s->budget.measured);
    hlo_module_free(module);
    return status;
}

/* Adds the measurements to the verdicts of the report of the selection. */
static void note_measured(const hlo_bisection *s) {
    for (size_t i = 0; i < s->chosen->verdict_count; i++) {
        hlo_verdict *v = &s->chosen->verdicts[i];
        const size_t row = row_named(s, v->input_instruction);
        if (!row) continue;
        if (!s->rows[row - 1].chosen) {
            const hlo_verdict *first = s->effects[row - 1].verdict;
            v->quantized = first->quantized;
            v->predicted_gain = first->predicted_gain;
            v->predicted_saving = first->predicted_saving;
            hlo_verdict_set_reason(v, s->effects[row - 1].rejected ? HLO_REASON_GAIN_BELOW_MINIMUM
                                                                   : HLO_REASON_ERROR_BUDGET);
        }
        v->measured = true;
        v->snr_db = s->rows[row - 1].snr_db;
        v->output_distance = s->rows[row - 1].alone.distance;
    }
}

/* ------------------------------------------------------------------------------------ interface */

/* Executes the original module. With a budget, also keeps the results of the matmuls. */
static hlo_status run_original(hlo_bisection *s) {
    hlo_plan_options how = s->plan;
    if (!s->has_budget) {
        hlo_plan_options_init(&how);
        how.devices = s->plan.devices;
    }
    char *at = s->names;
    double bytes = 0;
    for (size_t r = 0; r < s->count && s->has_budget && how.devices == 1; r++) {
        const hlo_instruction *matmul = find(s->module, s->rows[r].matmul);
        bytes += matmul ? (double)hlo_shape_bytes(matmul->shape) : 0;
        if (!matmul || bytes > MAX_RESULTS) continue;
        if (at > s->names) *at++ = ',';
        at = stpcpy(at, s->rows[r].matmul);
    }
    how.values = at > s->names ? s->names : NULL;
    hlo_status status = HLO_OK;
    for (size_t set = 0; set < s->input_count && status == HLO_OK; set++)
        status = execute(s, s->module, how, set, &s->originals[set], &s->original[set]);
    return status;
}

/* Makes the measurements and, with a budget, the selection. */
static hlo_status bisect(hlo_bisection *s) {
    hlo_module *rewritten = NULL;
    const size_t sets = s->input_count;
    s->original = hlo_calloc(sets, sizeof *s->original);
    s->originals = hlo_calloc(sets, sizeof *s->originals);
    hlo_status status =
        s->original && s->originals ? hlo_module_clone(s->module, &rewritten) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_module_optimize(rewritten, s->pass, &s->report);
    if (status == HLO_OK) status = list(s);
    if (status == HLO_OK && s->has_budget) {
        for (size_t r = 0; r < s->count; r++) s->rows[r].chosen = true;
        hlo_module_free(rewritten);
        rewritten = NULL;
        status = rewrite_chosen(s, &rewritten, NULL);
    }
    s->expected = sets * (s->count * (s->has_budget ? 1 : 2) + 3);
    if (status == HLO_OK) status = run_original(s);
    if (status == HLO_OK) {
        s->outputs = hlo_arrays_count(s->original[0]);
        const size_t size = (s->count + 2) * (s->outputs + 1);
        s->excess = hlo_calloc(size, sizeof *s->excess);
        if (!s->excess) status = HLO_OUT_OF_MEMORY;
    }
    if (status == HLO_OK) {
        s->moved = s->excess + s->outputs;
        for (size_t r = 0; r < s->count; r++) s->effects[r].moved = s->moved + (r + 1) * s->outputs;
        status = try(s, rewritten, s->moved, NULL, &s->all);
    }
    hlo_module_free(rewritten);
    if (status == HLO_OK && !s->has_budget) {
        hlo_plan_options how = s->plan;
        hlo_plan_options_init(&s->plan);
        s->plan.devices = how.devices;
        s->plan.progress = how.progress;
        s->plan.progress_user = how.progress_user;
        s->plan.perturbed = s->plan.roundings_may_be_dropped = true;
        status = try(s, s->module, NULL, NULL, &s->rounding);
        s->plan = how;
    }
    for (size_t r = 0; r < s->count && status == HLO_OK; r++) {
        status = try_but(s, r, false, &s->rows[r].alone);
        if (status == HLO_OK && !s->has_budget) status = try_but(s, r, true, &s->rows[r].without);
    }
    if (status != HLO_OK || !s->has_budget) return status;
    predict(s, s->report);
    for (size_t r = 0; r < s->count; r++) s->rows[r].predicted_saving = s->effects[r].saving;
    status = choose(s);
    if (status == HLO_OK) note_measured(s);
    return status;
}

static hlo_status usage_error(const hlo_diag_sink *sink, const char *message) {
    hlo_diag_refuse(sink, HLO_DIAG_OPTION, NULL, 0, 0, "%s", message);
    return HLO_INVALID_USAGE;
}

/* Implements both functions of the interface. `max_error` is NULL without a budget. */
static hlo_status make(const hlo_module *module, const hlo_pass_options *pass,
                       const hlo_plan_options *plan, const hlo_arrays *const *inputs, size_t count,
                       const double *max_error, const hlo_diag_sink *sink, hlo_bisection **out) {
    HLO_IN_C_LOCALE;
    hlo_pass_options defaults;
    hlo_pass_options_init(&defaults);
    defaults.sink = sink;
    *out = NULL;
    hlo_bisection *s = hlo_calloc(1, sizeof *s);
    if (!s) return HLO_OUT_OF_MEMORY;
    s->module = module;
    s->pass = pass ? pass : &defaults;
    s->inputs = inputs;
    s->input_count = count;
    s->sink = sink;
    s->errors = (hlo_diag_sink){.emit = pass_errors, .user = (void *)(uintptr_t)sink};
    s->has_budget = max_error;
    s->budget.struct_size = sizeof s->budget;
    s->budget.max_error = max_error ? *max_error : 0;
    clock_gettime(CLOCK_MONOTONIC, &s->start);
    hlo_plan_options_init(&s->plan);
    hlo_status status = hlo_options_take("hlo_plan_options", &s->plan, sizeof s->plan, plan, sink);
    s->plan.struct_size = sizeof s->plan;
    if (status == HLO_OK) status = bisect(s);
    if (status == HLO_OK && s->count) qsort(s->rows, s->count, sizeof *s->rows, by_distance);
    s->budget.wide = s->wide;
    s->budget.report = s->chosen;
    for (size_t set = 0; set < count; set++) {
        if (s->original) hlo_arrays_free(s->original[set]);
        if (s->originals) hlo_plan_free(s->originals[set]);
    }
    hlo_free(s->original);
    hlo_free(s->originals);
    hlo_free(s->excess);
    hlo_free(s->effects);
    hlo_free(s->row_of);
    hlo_free(s->names);
    if (status == HLO_OK)
        *out = s;
    else
        hlo_bisection_free(s);
    return status;
}

hlo_status hlo_module_bisect(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *inputs,
                             const hlo_diag_sink *sink, hlo_bisection **out) {
    return make(module, pass, plan, &inputs, 1, NULL, sink, out);
}

hlo_status hlo_module_budget(const hlo_module *module, const hlo_pass_options *pass,
                             const hlo_plan_options *plan, const hlo_arrays *const *inputs,
                             size_t input_count, double max_error, const hlo_diag_sink *sink,
                             hlo_bisection **out) {
    *out = NULL;
    if (!(max_error >= 0)) return usage_error(sink, "max_error must not be negative or NaN");
    if (!pass || !pass->quantize) return usage_error(sink, "a budget requires quantize");
    if (!input_count) return usage_error(sink, "a budget requires inputs");
    return make(module, pass, plan, inputs, input_count, &max_error, sink, out);
}

void hlo_bisection_free(hlo_bisection *bisection) {
    if (!bisection) return;
    hlo_report_free(bisection->report);
    hlo_report_free(bisection->chosen);
    hlo_free(bisection->wide);
    hlo_free(bisection->rows);
    hlo_free(bisection);
}

size_t hlo_bisection_count(const hlo_bisection *bisection) {
    return bisection->count;
}

const hlo_matmul_effect *hlo_bisection_at(const hlo_bisection *bisection, size_t index) {
    return &bisection->rows[index];
}

const hlo_output_change *hlo_bisection_all(const hlo_bisection *bisection) {
    return &bisection->all;
}

const hlo_output_change *hlo_bisection_rounding(const hlo_bisection *bisection) {
    return &bisection->rounding;
}

const hlo_budget *hlo_bisection_budget(const hlo_bisection *bisection) {
    return bisection->has_budget ? &bisection->budget : NULL;
}

static void print_line(const char *name, const hlo_output_change *alone,
                       const hlo_output_change *without, const char *op_name, FILE *out) {
    fprintf(out, "%12.3g %7zu", alone->distance, alone->output);
    if (without)
        fprintf(out, " %12.3g %7zu", without->distance, without->output);
    else
        fprintf(out, " %20s", "");
    hlo_print_plain(out, "  %s", name);
    hlo_print_plain(out, "  %s", op_name ? op_name : "");
    fputc('\n', out);
}

static void print_saving(double seconds, FILE *out) {
    if (seconds != 0)
        fprintf(out, " %9.3g", 1e6 * seconds);
    else
        fprintf(out, " %9s", "");
}

static void print_budget(const hlo_bisection *b, FILE *out) {
    const hlo_budget *budget = &b->budget;
    double total = 0;
    size_t chosen = 0;
    for (size_t r = 0; r < b->count; r++) {
        chosen += b->rows[r].chosen;
        total += b->rows[r].predicted_saving;
    }
    if (!b->count) {
        size_t small = 0, all = 0;
        for (; all < hlo_report_count(b->report); all++) {
            const char *reason = hlo_report_verdict(b->report, all)->reason;
            small += reason && strcmp(reason, "gain-below-minimum") == 0;
        }
        fprintf(out, "max-error %g: --quantize selects none of %zu matmuls", budget->max_error,
                all);
        if (small)
            fprintf(out,
                    "; the predicted gain of %zu is too small: --min-gain=0.001 selects these, too",
                    small);
        fputc('\n', out);
        return;
    }
    fprintf(out,
            "max-error %g: %zu of %zu matmuls are quantized; relative change of the most affected "
            "output (norm of the difference / norm of the output)\n%12s %7s %9s %9s %6s  matmul\n",
            budget->max_error, chosen, b->count, "alone", "output", "SNR in dB", "saved us", "");
    for (size_t r = 0; r < b->count; r++) {
        const hlo_matmul_effect *row = &b->rows[r];
        fprintf(out, "%12.3g %7zu ", row->alone.distance, row->alone.output);
        if (isnan(row->snr_db))
            fprintf(out, "%9s", "");
        else
            fprintf(out, "%9.1f", row->snr_db);
        print_saving(row->predicted_saving, out);
        fprintf(out, " %6s", row->chosen ? "fp8" : "wide");
        hlo_print_plain(out, row->op_name ? "  %s  %s\n" : "  %s\n", row->matmul, row->op_name);
    }
    fprintf(out, "%12.3g %7zu %9s", b->all.distance, b->all.output, "");
    print_saving(total, out);
    fprintf(out, " %6s  all matmuls\n%12.3g %7zu %9s", "", budget->measured.distance,
            budget->measured.output, "");
    print_saving(budget->predicted_saving, out);
    fprintf(out, " %6s  selected matmuls, predicted %.3g%s\n", "", budget->predicted,
            budget->measured.distance > budget->max_error ? "; exceeds max-error" : "");
    fprintf(out, "%zu executions\n", budget->runs);
    hlo_print_plain(out, *budget->wide ? "--wide=%s\n" : "no --wide option is needed\n",
                    budget->wide);
}

static void print_bisection(const hlo_bisection *b, FILE *out) {
    fprintf(
        out,
        "bisect: %zu rewritten matmuls; relative change of the most affected output (norm of the "
        "difference / norm of the output)\n%12s %7s %12s %7s  matmul\n",
        b->count, "alone", "output", "all others", "output");
    for (size_t i = 0; i < b->count; i++)
        print_line(b->rows[i].matmul, &b->rows[i].alone, &b->rows[i].without, b->rows[i].op_name,
                   out);
    print_line("all matmuls", &b->all, NULL, NULL, out);
    print_line("none (different rounding)", &b->rounding, NULL, NULL, out);
}

hlo_status hlo_bisection_print(const hlo_bisection *bisection, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    FILE *out = hlo_writer_open(&writer);
    if (!out) return HLO_OUT_OF_MEMORY;
    if (bisection->has_budget)
        print_budget(bisection, out);
    else
        print_bisection(bisection, out);
    return hlo_writer_close(out, HLO_OK);
}
