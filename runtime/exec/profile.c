/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the times of the steps of runs, and prints them as tables and as a trace. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/float/c_locale.h"
#include "ir/text/plain.h"
#include "runtime/exec/run.h"
#include "runtime/grow.h"

/* One execution of a step. */
typedef struct event {
    plan_step *step; /* NULL for the whole run */
    bool on_host;
    double start, seconds; /* by the clock of plan_trace_clock(), in seconds */
} event;

/* A span that has ended and whose time was not read yet. */
typedef struct pending {
    plan_span span;
    uint32_t mark; /* mark of the span's end */
    double end;    /* time of the span's end, if the host timed it */
} pending;

enum {
    MAX_EVENTS = 1000000,
    MAX_MARKS = 4096 /* maximum number of marks, and of ended spans, between readings */
};

struct plan_trace {
    event *events;
    size_t count, capacity;
    double first;     /* start of the first run */
    double seconds;   /* total time of the profiled runs */
    uint64_t runs;    /* number of profiled runs */
    bool has_skipped; /* the profile skips the first run, because another run has followed */
    /* The next members describe spans whose times were not read yet. The mark `base` was recorded
     * at the time `moment`. */
    plan_span *open; /* the innermost open span */
    uint32_t depth;  /* number of open spans */
    pending *pending;
    size_t pending_count, pending_capacity;
    uint32_t base, marks;
    double moment;
};

hlo_status plan_trace_new(hlo_plan *plan) {
    plan->trace = calloc(1, sizeof *plan->trace);
    return plan->trace ? HLO_OK : HLO_OUT_OF_MEMORY;
}

void plan_trace_free(plan_trace *trace) {
    if (!trace) return;
    free(trace->events);
    free(trace->pending);
    free(trace);
}

double plan_trace_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* True if the time is the step's own: the time of a job or a copy, or of a decision of the host.
 * Other times of loops, conditionals and calls are those of the steps in them. */
static bool is_own(const plan_step *step, bool on_host) {
    return step && (step->kind == STEP_JOB || step->kind == STEP_COPY || on_host);
}

static hlo_status find_start(const hlo_plan *plan, plan_span *span, const char **why) {
    const plan_trace *trace = plan->trace;
    double seconds = 0;
    if (span->known) return HLO_OK;
    const hlo_status status =
        plan->backend->seconds_between(plan->device, trace->base, span->mark, &seconds, why);
    span->start = trace->moment + seconds;
    span->known = true;
    return status;
}

hlo_status plan_trace_read(const hlo_plan *plan, const char **why) {
    plan_trace *trace = plan->trace;
    hlo_status status = plan->backend->finish(plan->device, why);
    for (plan_span *s = trace->open; s && status == HLO_OK; s = s->outer)
        status = find_start(plan, s, why);
    for (size_t i = 0; i < trace->pending_count && status == HLO_OK; i++) {
        pending *p = &trace->pending[i];
        const bool old = p->span.known && !p->span.on_host; /* the span's start was read before */
        double end = p->end, seconds = 0;
        status = find_start(plan, &p->span, why);
        if (status == HLO_OK && !p->span.on_host)
            status = plan->backend->seconds_between(plan->device, old ? trace->base : p->span.mark,
                                                    p->mark, &seconds, why);
        if (status != HLO_OK) break;
        if (old) end = trace->moment + seconds;
        if (old || p->span.on_host) seconds = end - p->span.start;
        const event e = {p->span.step, p->span.on_host, p->span.start, seconds};
        if (!e.step && !trace->runs++ && !trace->has_skipped) trace->first = e.start;
        if (!e.step) trace->seconds += e.seconds;
        if (is_own(e.step, e.on_host)) {
            e.step->runs++;
            e.step->seconds += e.seconds;
        }
        if (trace->count == MAX_EVENTS) continue;
        if (hlo_heap_grow(&trace->events, trace->count + 1, &trace->capacity, sizeof e))
            trace->events[trace->count++] = e;
        else
            status = HLO_OUT_OF_MEMORY;
    }
    trace->pending_count = 0;
    return status;
}

/* Records the mark `base`, waits for the device, and reads the mark's time from the host. */
static hlo_status begin_marks(const hlo_plan *plan, const char **why) {
    plan_trace *trace = plan->trace;
    plan->backend->mark(plan->device, trace->base);
    const hlo_status status = plan->backend->finish(plan->device, why);
    trace->moment = plan_trace_clock();
    trace->marks = 0;
    return status;
}

hlo_status plan_trace_begin(const hlo_plan *plan, uint32_t mark, const char **why) {
    plan_trace *trace = plan->trace;
    trace->open = NULL;
    trace->depth = 0;
    trace->pending_count = 0; /* drop spans of a failed run */
    trace->base = mark;
    if (trace->runs == 1 && !trace->has_skipped) {
        trace->has_skipped = true;
        trace->runs = 0;
        trace->seconds = 0;
        for (const hlo_computation *c = plan->module->first; c; c = c->next) {
            plan_comp *comp = plan->comps[c->id];
            for (uint32_t i = 0; comp && i < comp->step_count; i++) {
                comp->steps[i].runs = 0;
                comp->steps[i].seconds = 0;
            }
        }
    }
    const hlo_status status = plan->backend->finish(plan->device, why);
    return status == HLO_OK ? begin_marks(plan, why) : status;
}

static uint32_t make_mark(const hlo_plan *plan) {
    plan_trace *trace = plan->trace;
    const uint32_t mark = trace->base + ++trace->marks;
    plan->backend->mark(plan->device, mark);
    return mark;
}

hlo_status plan_span_begin(const hlo_plan *plan, plan_step *step, bool on_host, plan_span *out_span,
                           const char **why) {
    plan_trace *trace = plan->trace;
    hlo_status status = HLO_OK;
    if (trace->marks + trace->depth + 2 > MAX_MARKS || trace->pending_count >= MAX_MARKS) {
        status = plan_trace_read(plan, why);
        if (status == HLO_OK) status = begin_marks(plan, why);
    }
    if (status == HLO_OK && on_host) status = plan->backend->finish(plan->device, why);
    if (status != HLO_OK) return status;
    *out_span = (plan_span){.outer = trace->open, .step = step, .on_host = on_host};
    if (on_host)
        out_span->start = plan_trace_clock();
    else
        out_span->mark = make_mark(plan);
    out_span->known = on_host;
    trace->open = out_span;
    trace->depth++;
    return HLO_OK;
}

hlo_status plan_span_end(const hlo_plan *plan, const plan_span *span) {
    plan_trace *trace = plan->trace;
    trace->open = span->outer;
    trace->depth--;
    if (!hlo_heap_grow(&trace->pending, trace->pending_count + 1, &trace->pending_capacity,
                       sizeof *trace->pending))
        return HLO_OUT_OF_MEMORY;
    pending *p = &trace->pending[trace->pending_count++];
    *p = (pending){.span = *span};
    if (span->on_host)
        p->end = plan_trace_clock();
    else
        p->mark = make_mark(plan);
    return HLO_OK;
}

/* One row of a table, about a step or about all steps with the same op_name. */
typedef struct row {
    const plan_step *step;
    const char *op_name;
    double seconds, bytes; /* totals over all runs */
    uint64_t runs;
    double *in_run; /* seconds in each run of which all events were kept */
} row;

static size_t collect(const hlo_plan *plan, row *out) {
    size_t count = 0;
    for (const hlo_computation *c = plan->module->first; c; c = c->next) {
        const plan_comp *comp = plan->comps[c->id];
        for (uint32_t s = 0; comp && s < comp->step_count; s++) {
            const plan_step *step = &comp->steps[s];
            if (!step->runs) continue;
            const char *op_name = hlo_instr_op_name(step->instr);
            double bytes = 0; /* bytes that a run reads and writes; 0 for a decision */
            for (uint32_t i = 0; !step->called_count && i < step->operand_count; i++)
                bytes += (double)comp->slots[step->operands[i]].size;
            for (uint32_t i = 0; !step->called_count && i < step->result_count; i++)
                if (comp->slots[step->results[i]].kind != SLOT_NOWHERE)
                    bytes += (double)comp->slots[step->results[i]].size;
            if (out)
                out[count] = (row){step,          op_name ? op_name : "",
                                   step->seconds, (double)step->runs * bytes,
                                   step->runs,    NULL};
            count++;
        }
    }
    return count;
}

static int by_time(const void *a, const void *b) {
    const double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return (x < y) - (x > y);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const row *)a)->op_name, ((const row *)b)->op_name);
}

static int by_step(const void *a, const void *b) {
    const uintptr_t x = (uintptr_t)((const row *)a)->step, y = (uintptr_t)((const row *)b)->step;
    return (x > y) - (x < y);
}

static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Returns the number of profiled runs of which all events were kept. Sets *out_first to the index
 * of their first event. */
static size_t whole_runs(const plan_trace *trace, size_t *out_first) {
    size_t runs = 0;
    *out_first = trace->has_skipped ? trace->count : 0;
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->events[i].step) continue;
        if (*out_first > i)
            *out_first = i + 1;
        else
            runs++;
    }
    return runs;
}

/* Returns the number of decimals: three, or as many as a small number needs for three digits. */
static int decimals_of(double number) {
    enum { LEAST = 3, MOST = 6 };
    int decimals = LEAST;
    for (; number > 0 && number < 0.1 && decimals < MOST; decimals++) number *= 10;
    return decimals;
}

/* Prints a number in 10 columns. */
static void print_number(double number, FILE *out) {
    fprintf(out, "%10.*f", decimals_of(number), number);
}

/* Prints the rows. `sorted` is scratch space for all runs. */
static void print_rows(const plan_trace *trace, row *rows, size_t count, double *sorted, bool names,
                       FILE *out) {
    enum { SHOWN = 40 };
    double rest = 0;
    size_t first;
    const size_t whole = whole_runs(trace, &first);
    qsort(rows, count, sizeof *rows, by_time);
    fprintf(out, "%10s %10s %10s %6s %8s %10s %8s  %s\n", "ms", "min", "median", "%", "times", "MB",
            "GB/s", names ? "op_name" : "instruction");
    for (size_t i = 0; i < count; i++) {
        const row *r = &rows[i];
        const double runs = (double)trace->runs;
        if (i >= SHOWN) {
            rest += r->seconds;
            continue;
        }
        print_number(1e3 * r->seconds / runs, out);
        if (whole) memcpy(sorted, r->in_run, whole * sizeof *sorted);
        qsort(sorted, whole, sizeof *sorted, by_size);
        for (size_t half = 0; half < 2; half++) {
            fputc(' ', out);
            print_number(whole ? 1e3 * sorted[half * (whole / 2)] : 0, out);
        }
        fprintf(out, " %6.1f %8.6g ", 100 * r->seconds / trace->seconds, (double)r->runs / runs);
        print_number(1e-6 * r->bytes / runs, out);
        fprintf(out, " %8.2f  ", r->seconds > 0 ? 1e-9 * r->bytes / r->seconds : 0);
        if (!names) {
            hlo_print_plain(out, "%s", r->step->instr->name);
            if (r->step->job && r->step->job->group.instr_count > 1)
                fprintf(out, " (group of %u)", r->step->job->group.instr_count);
            else if (r->step->called_count)
                fputs(" (control flow)", out);
            else if (!r->step->job || !r->step->job->group.instr_count)
                fputs(" (copy)", out);
        }
        hlo_print_plain(out, names ? "%s" : "  %s", r->op_name);
        fputc('\n', out);
    }
    if (count > SHOWN)
        fprintf(out, "%10.3f %21s %6.1f %28s  %zu more\n", 1e3 * rest / (double)trace->runs, "",
                100 * rest / trace->seconds, "", count - SHOWN);
}

hlo_status hlo_plan_print_profile(const hlo_plan *plan, FILE *out) {
    HLO_IN_C_LOCALE;
    const plan_trace *trace = plan->trace;
    if (!trace || !trace->runs) return HLO_OK;
    size_t count = collect(plan, NULL), first;
    const size_t runs = whole_runs(trace, &first);
    row *rows = calloc(count + 1, sizeof *rows);
    double *seconds = calloc((count + 1) * runs + 1, sizeof *seconds);
    if (!rows || !seconds) {
        free(rows);
        free(seconds);
        return HLO_OUT_OF_MEMORY;
    }
    collect(plan, rows);
    /* Sort the rows by step, and set their seconds in each complete run. */
    size_t run = 0;
    qsort(rows, count, sizeof *rows, by_step);
    for (size_t i = 0; i < count; i++) rows[i].in_run = seconds + i * runs;
    for (size_t i = first; i < trace->count && run < runs; i++) {
        const event *e = &trace->events[i];
        const row key = {.step = e->step};
        const row *found =
            is_own(e->step, e->on_host) ? bsearch(&key, rows, count, sizeof *rows, by_step) : NULL;
        if (found) found->in_run[run] += e->seconds;
        run += !key.step;
    }
    double all = 0;
    for (size_t i = 0; i < count; i++) all += rows[i].seconds;
    const double total = 1e3 * trace->seconds / (double)trace->runs,
                 part = 1e3 * all / (double)trace->runs;
    fprintf(out, "profile: %.*f ms per run, mean of %llu; %.*f ms of it in %zu steps%s\n",
            decimals_of(total), total, (unsigned long long)trace->runs, decimals_of(part), part,
            count, plan->backend->own_clock ? ", measured by the device clock" : "");
    double *sorted = seconds + count * runs;
    print_rows(trace, rows, count, sorted, false, out);
    fputc('\n', out);
    /* Merge the rows of each op_name. */
    size_t kept = 0;
    qsort(rows, count, sizeof *rows, by_name);
    for (size_t i = 0; i < count; i++) {
        if (!kept || strcmp(rows[kept - 1].op_name, rows[i].op_name) != 0) {
            rows[kept++] = rows[i];
            continue;
        }
        rows[kept - 1].seconds += rows[i].seconds;
        rows[kept - 1].bytes += rows[i].bytes;
        rows[kept - 1].runs += rows[i].runs;
        for (size_t r = 0; r < runs; r++) rows[kept - 1].in_run[r] += rows[i].in_run[r];
    }
    print_rows(trace, rows, kept, sorted, true, out);
    free(seconds);
    free(rows);
    return HLO_OK;
}

static void print_text(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++)
        if (hlo_is_plain((unsigned char)*text) || *text == '\'')
            fputc(*text, out);
        else
            fprintf(out, "\\u%04x", (unsigned char)*text);
    fputc('"', out);
}

enum { DEVICE = 1, HOST }; /* track numbers */

static void print_name(const char *kind, int track, const char *name, FILE *out) {
    fprintf(out, "{\"ph\": \"M\", \"pid\": 1, \"tid\": %d, \"name\": \"%s\", \"args\": {\"name\": ",
            track, kind);
    print_text(name, out);
    fputs("}}", out);
}

void hlo_plan_print_trace(const hlo_plan *plan, FILE *out) {
    HLO_IN_C_LOCALE;
    const plan_trace *trace = plan->trace;
    fputs("{\"traceEvents\": [\n", out);
    print_name("process_name", DEVICE, plan->module->name, out);
    fputs(",\n", out);
    print_name("thread_name", DEVICE, plan->backend->name, out);
    if (plan->backend->own_clock) {
        fputs(",\n", out);
        print_name("thread_name", HOST, "host", out);
    }
    for (size_t i = 0; trace && i < trace->count; i++) {
        const event *e = &trace->events[i];
        fputs(",\n", out);
        const hlo_instruction *instr = e->step ? e->step->instr : NULL;
        fprintf(out,
                "{\"ph\": \"X\", \"pid\": 1, \"tid\": %d, \"name\": ", e->on_host ? HOST : DEVICE);
        print_text(instr ? instr->name : "run", out);
        fprintf(out, ", \"ts\": %.3f, \"dur\": %.3f", 1e6 * (e->start - trace->first),
                1e6 * e->seconds);
        if (instr) {
            const char *op_name = hlo_instr_op_name(instr);
            fputs(", \"cat\": ", out);
            print_text(e->on_host && e->step->called_count ? "decision" : hlo_ops[instr->op].name,
                       out);
            fputs(", \"args\": {\"op_name\": ", out);
            print_text(op_name ? op_name : "", out);
            if (e->step->job)
                fprintf(out, ", \"instructions\": %u", e->step->job->group.instr_count);
            fputs("}", out);
        }
        fputs("}", out);
    }
    fputs("\n]}\n", out);
}
