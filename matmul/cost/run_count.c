/* SPDX-License-Identifier: Apache-2.0 */
#include "matmul/cost/run_count.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/module/known.h"
#include "matmul/json.h"

double hlo_loop_trip_count(const hlo_instr *loop) {
    /* `"known_trip_count":{"n":"5"}` in a loop's backend config; 0 if absent. */
    json_t *json = hlo_json_config(loop);
    const json_t *n = json_object_get(json_object_get(json, "known_trip_count"), "n");
    const char *text = json_string_value(n);
    double trip_count = (double)json_integer_value(n);
    if (text && !text[strspn(text, "0123456789")]) trip_count = strtod(text, NULL);
    json_decref(json);
    double annotated = trip_count >= 1 ? trip_count : 0;
    uint64_t derived = annotated > 0 ? HLO_TRIP_COUNT_UNKNOWN : hlo_while_trip_count(loop);
    if (annotated > 0 || derived == HLO_TRIP_COUNT_UNKNOWN) return annotated > 0 ? annotated : 1;
    return (double)derived;
}

/* Upper bound on the count: nested loops with annotated trip counts may exceed it, and sums of
 * FLOPs must remain finite. */
static const double most_runs = 1e100;

typedef struct calls {
    double *runs;
    double times; /* executions of the callees */
} calls;

static void count_call(void *user, hlo_computation *called) {
    const calls *all = user;
    all->runs[called->id] += all->times;
}

void hlo_run_counts(const hlo_module *module, double *out_runs) {
    memset(out_runs, 0, module->next_computation_id * sizeof *out_runs);
    if (module->entry) out_runs[module->entry->id] = 1;
    /* From callers to callees: a module lists callees before callers. */
    for (const hlo_computation *comp = module->last; comp; comp = comp->prev) {
        if (out_runs[comp->id] == 0) continue;
        for (const hlo_instr *instr = comp->last; instr; instr = hlo_instr_prev(instr)) {
            if (!(instr->attr_bits & HLO_ATTR_BIT_CALLS)) continue;
            double trip_count = instr->op == HLO_OP_WHILE ? hlo_loop_trip_count(instr) : 1;
            calls all = {out_runs, fmin(out_runs[comp->id] * trip_count, most_runs)};
            hlo_instr_visit_called(instr, count_call, &all);
        }
    }
}
