/* Times of the steps of runs: as tables, and as a trace. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ir/text/plain.h"
#include "runtime/exec/run.h"

/* A step that ran. */
typedef struct event {
    const plan_step *step; /* NULL: the whole run */
    double start, seconds;
} event;

enum { MOST_EVENTS = 1000000 };

struct plan_trace {
    event *events;
    size_t count, capacity;
    double first, seconds; /* when the first run began; of all runs */
    uint64_t runs;
};

hlo_status plan_trace_new(hlo_plan *plan) {
    plan->trace = calloc(1, sizeof *plan->trace);
    return plan->trace ? HLO_OK : HLO_OUT_OF_MEMORY;
}

void plan_trace_free(plan_trace *trace) {
    if (!trace) return;
    free(trace->events);
    free(trace);
}

double plan_trace_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Adds an event, unless there are enough. HLO_OUT_OF_MEMORY. */
static hlo_status add(plan_trace *trace, const plan_step *step, double start, double seconds) {
    if (trace->count == trace->capacity) {
        const size_t capacity = trace->capacity ? 2 * trace->capacity : 1024;
        if (trace->capacity >= MOST_EVENTS) return HLO_OK;
        event *events = realloc(trace->events, capacity * sizeof *events);
        if (!events) return HLO_OUT_OF_MEMORY;
        trace->events = events;
        trace->capacity = capacity;
    }
    if (trace->count < MOST_EVENTS) trace->events[trace->count++] = (event){step, start, seconds};
    return HLO_OK;
}

hlo_status plan_trace_step(plan_trace *trace, plan_step *step, double start) {
    const double seconds = plan_trace_clock() - start;
    step->runs++;
    step->seconds += seconds;
    return add(trace, step, start, seconds);
}

hlo_status plan_trace_run(plan_trace *trace, double start) {
    const double seconds = plan_trace_clock() - start;
    if (!trace->runs++) trace->first = start;
    trace->seconds += seconds;
    return add(trace, NULL, start, seconds);
}

/* --------------------------------------------------------------------------------------- tables */

/* One row of a table: a step, or all steps of one op_name. */
typedef struct row {
    const plan_step *step;
    const char *op_name;
    double seconds, bytes; /* of all its runs */
    uint64_t runs;
    double *in_run; /* seconds in each run that the events have whole */
} row;

static bool is_leaf(const plan_step *step) {
    return (step->kind == STEP_JOB || step->kind == STEP_COPY) && step->runs;
}

/* Returns the bytes that a run of the step reads and writes. */
static double bytes_of(const plan_comp *comp, const plan_step *step) {
    double bytes = 0;
    for (uint32_t i = 0; i < step->operand_count; i++)
        bytes += (double)comp->slots[step->operands[i]].size;
    for (uint32_t i = 0; i < step->result_count; i++)
        if (comp->slots[step->results[i]].kind != SLOT_NOWHERE)
            bytes += (double)comp->slots[step->results[i]].size;
    return bytes;
}

static size_t collect(const hlo_plan *plan, row *out) {
    size_t count = 0;
    for (const hlo_computation *c = plan->module->first; c; c = c->next) {
        const plan_comp *comp = plan->comps[c->id];
        for (uint32_t s = 0; comp && s < comp->step_count; s++) {
            const plan_step *step = &comp->steps[s];
            if (!is_leaf(step)) continue;
            const char *op_name = hlo_instr_op_name(step->instr);
            if (out)
                out[count] = (row){step,          op_name ? op_name : "",
                                   step->seconds, (double)step->runs * bytes_of(comp, step),
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

static size_t whole_runs(const plan_trace *trace) {
    size_t runs = 0;
    for (size_t i = 0; i < trace->count; i++) runs += !trace->events[i].step;
    return runs;
}

/* Sorts the rows by step, and sets their seconds in each whole run, in `seconds`, all 0. */
static void fill_runs(const plan_trace *trace, row *rows, size_t count, size_t runs,
                      double *seconds) {
    size_t run = 0;
    qsort(rows, count, sizeof *rows, by_step);
    for (size_t i = 0; i < count; i++) rows[i].in_run = seconds + i * runs;
    for (size_t i = 0; i < trace->count && run < runs; i++) {
        const row key = {.step = trace->events[i].step};
        const row *found = key.step ? bsearch(&key, rows, count, sizeof *rows, by_step) : NULL;
        if (found) found->in_run[run] += trace->events[i].seconds;
        run += !key.step;
    }
}

/* Makes one row of those of each op_name; returns their number. */
static size_t join(row *rows, size_t count, size_t runs) {
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
    return kept;
}

/* Prints the name of a step's instruction and what it is. */
static void print_step(const plan_step *step, FILE *out) {
    hlo_print_plain(out, "%s", step->instr->name);
    if (step->job && step->job->group.instr_count > 1)
        fprintf(out, " (group of %u)", step->job->group.instr_count);
    else if (!step->job || !step->job->group.instr_count)
        fputs(" (copy)", out);
}

/* Prints the least and the median seconds in a run; `sorted` has place for all. */
static void print_spread(const row *r, size_t runs, double *sorted, FILE *out) {
    if (runs) memcpy(sorted, r->in_run, runs * sizeof *sorted);
    qsort(sorted, runs, sizeof *sorted, by_size);
    fprintf(out, " %10.3f %10.3f", runs ? 1e3 * sorted[0] : 0, runs ? 1e3 * sorted[runs / 2] : 0);
}

static void print_rows(const plan_trace *trace, row *rows, size_t count, double *sorted, bool names,
                       FILE *out) {
    enum { SHOWN = 40 };
    double rest = 0;
    const size_t whole = whole_runs(trace);
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
        fprintf(out, "%10.3f", 1e3 * r->seconds / runs);
        print_spread(r, whole, sorted, out);
        fprintf(out, " %6.1f %8.6g %10.3f %8.2f  ", 100 * r->seconds / trace->seconds,
                (double)r->runs / runs, 1e-6 * r->bytes / runs,
                r->seconds > 0 ? 1e-9 * r->bytes / r->seconds : 0);
        if (!names) print_step(r->step, out);
        hlo_print_plain(out, names ? "%s" : "  %s", r->op_name);
        fputc('\n', out);
    }
    if (count > SHOWN)
        fprintf(out, "%10.3f %21s %6.1f %28s  %zu more\n", 1e3 * rest / (double)trace->runs, "",
                100 * rest / trace->seconds, "", count - SHOWN);
}

hlo_status hlo_plan_print_profile(const hlo_plan *plan, FILE *out) {
    const plan_trace *trace = plan->trace;
    if (!trace || !trace->runs) return HLO_OK;
    size_t count = collect(plan, NULL);
    const size_t runs = whole_runs(trace);
    row *rows = calloc(count + 1, sizeof *rows);
    double *seconds = calloc((count + 1) * runs + 1, sizeof *seconds);
    if (!rows || !seconds) {
        free(rows);
        free(seconds);
        return HLO_OUT_OF_MEMORY;
    }
    collect(plan, rows);
    fill_runs(trace, rows, count, runs, seconds);
    double all = 0;
    for (size_t i = 0; i < count; i++) all += rows[i].seconds;
    fprintf(out, "profile: %.3f ms a run, of %llu; %.3f ms of it in %zu steps\n",
            1e3 * trace->seconds / (double)trace->runs, (unsigned long long)trace->runs,
            1e3 * all / (double)trace->runs, count);
    double *sorted = seconds + count * runs;
    print_rows(trace, rows, count, sorted, false, out);
    fputc('\n', out);
    print_rows(trace, rows, join(rows, count, runs), sorted, true, out);
    free(seconds);
    free(rows);
    return HLO_OK;
}

/* ---------------------------------------------------------------------------------------- trace */

static void print_text(const char *text, FILE *out) {
    fputc('"', out);
    for (; *text; text++)
        if (hlo_is_plain((unsigned char)*text) || *text == '\'')
            fputc(*text, out);
        else
            fprintf(out, "\\u%04x", (unsigned char)*text);
    fputc('"', out);
}

static void print_event(const plan_trace *trace, const event *e, FILE *out) {
    const hlo_instr *instr = e->step ? e->step->instr : NULL;
    fputs("{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"name\": ", out);
    print_text(instr ? instr->name : "run", out);
    fprintf(out, ", \"ts\": %.3f, \"dur\": %.3f", 1e6 * (e->start - trace->first),
            1e6 * e->seconds);
    if (instr) {
        const char *op_name = hlo_instr_op_name(instr);
        fputs(", \"cat\": ", out);
        print_text(hlo_ops[instr->op].name, out);
        fputs(", \"args\": {\"op_name\": ", out);
        print_text(op_name ? op_name : "", out);
        if (e->step->job) fprintf(out, ", \"instructions\": %u", e->step->job->group.instr_count);
        fputs("}", out);
    }
    fputs("}", out);
}

void hlo_plan_print_trace(const hlo_plan *plan, FILE *out) {
    const plan_trace *trace = plan->trace;
    fputs("{\"traceEvents\": [\n", out);
    fputs("{\"ph\": \"M\", \"pid\": 1, \"name\": \"process_name\", \"args\": {\"name\": ", out);
    print_text(plan->module->name, out);
    fputs("}}", out);
    for (size_t i = 0; trace && i < trace->count; i++) {
        fputs(",\n", out);
        print_event(trace, &trace->events[i], out);
    }
    fputs("\n]}\n", out);
}
