/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the instructions in the input, by source offset. */
#include <stdlib.h>

#include "passes/verdict/report.h"

static int name_order(const void *a, const void *b) {
    const input_name *x = a, *y = b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void hlo_report_note_names(hlo_report *report, const hlo_module *module) {
    input_name *names = hlo_arena_array(report->arena, module->next_id, sizeof *names);
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *instr = comp->first; instr; instr = hlo_instr_next(instr))
            names[report->name_count++] =
                (input_name){instr->offset, hlo_arena_format(report->arena, "%s", instr->name)};
    if (report->name_count) qsort(names, report->name_count, sizeof *names, name_order);
    report->names = names;
}

/* True if no other instruction has the offset. Instructions that a program adds have none. */
static bool is_unique(const hlo_report *report, const input_name *name) {
    const input_name *end = report->names + report->name_count;
    return (name == report->names || name[-1].offset != name->offset) &&
           (name + 1 == end || name[1].offset != name->offset);
}

const char *hlo_report_input_name(const hlo_report *report, const hlo_instr *instr) {
    const input_name key = {instr->offset, NULL}, *found = NULL;
    if (report->name_count)
        found = bsearch(&key, report->names, report->name_count, sizeof key, name_order);
    return found && is_unique(report, found) ? found->name
                                             : hlo_arena_format(report->arena, "%s", instr->name);
}
