/* SPDX-License-Identifier: Apache-2.0 */
/* Records amaxes: executes a module into which the pass quantize-wide has inserted them. */
#include <math.h>
#include <stdlib.h>

#include "hlo/bisect.h"
#include "ir/float/c_locale.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/writer.h"
#include "matmul/json.h"
#include "passes/pipeline/pipeline.h"
#include "passes/quantize/amaxes.h"
#include "runtime/plan/plan.h"

/* Joins the names of the amaxes. Returns NULL if memory runs out. */
static char *join(const json_t *names) {
    const char *key;
    const json_t *name;
    size_t size = 1;
    json_object_foreach((json_t *)names, key, name) size += json_string_length(name) + 1;
    char *list = hlo_malloc(size), *at = list;
    if (!list) return NULL;
    *list = '\0';
    json_object_foreach((json_t *)names, key, name) {
        if (at > list) *at++ = ',';
        at = stpcpy(at, json_string_value(name));
    }
    return list;
}

/* Adds the values of a run to the amaxes of earlier runs. */
static hlo_status add(json_t *amaxes, const json_t *names, const hlo_arrays *values,
                      const hlo_module *module, const hlo_diag_sink *sink) {
    const char *key;
    const json_t *name;
    json_object_foreach((json_t *)names, key, name) {
        const hlo_array *found = NULL;
        for (size_t i = 0; i < hlo_arrays_count(values) && !found; i++)
            if (strcmp(hlo_arrays_at(values, i)->name, json_string_value(name)) == 0)
                found = hlo_arrays_at(values, i);
        if (!found) continue; /* it did not run */
        const json_t *old = json_object_get(amaxes, key);
        json_t *list = found->rank ? json_array() : NULL;
        for (size_t k = 0; k < found->size / sizeof(float); k++) {
            double amax = (double)((const float *)found->data)[k];
            if (!isfinite(amax)) {
                json_decref(list);
                return hlo_diag_refuse(sink, HLO_DIAG_NONFINITE, module->file, 0, 0,
                                       "cannot record the amax of `%s`: it has a NaN or an "
                                       "infinity; hlo-fp8-run --check-nan reports its origin",
                                       key);
            }
            amax = fmax(amax, json_number_value(list ? json_array_get(old, k) : old));
            if (list)
                json_array_append_new(list, json_real(amax));
            else
                json_object_set_new(amaxes, key, json_real(amax));
        }
        if (list) json_object_set_new(amaxes, key, list);
    }
    return HLO_OK;
}

hlo_status hlo_module_record_amaxes(const hlo_module *module, const hlo_arrays *const *inputs,
                                    size_t count, const hlo_diag_sink *sink, hlo_writer writer) {
    HLO_IN_C_LOCALE;
    hlo_json_watch();
    hlo_module *own = NULL;
    hlo_plan *plan = NULL;
    hlo_plan_options how;
    hlo_plan_options_init(&how);
    json_t *names = json_object(), *amaxes = json_object();
    char *list = NULL;
    hlo_status status = names && amaxes ? hlo_module_clone(module, &own) : HLO_OUT_OF_MEMORY;
    if (status == HLO_OK) status = hlo_module_insert_amaxes(own, sink, names);
    if (status == HLO_OK && !(list = join(names))) status = HLO_OUT_OF_MEMORY;
    how.values = status == HLO_OK && *list ? list : NULL;
    if (how.values) status = hlo_plan_new(own, &how, sink, &plan);
    if (plan) plan->keeps_largest = true;
    for (size_t i = 0; i < count && plan && status == HLO_OK; i++) {
        hlo_arrays *outputs = NULL;
        status = hlo_plan_run(plan, inputs[i], sink, &outputs);
        hlo_arrays_free(outputs);
        if (status == HLO_OK) status = add(amaxes, names, hlo_plan_values(plan), module, sink);
    }
    if (status == HLO_OK && hlo_json_starved()) status = HLO_OUT_OF_MEMORY;
    FILE *out = status == HLO_OK ? hlo_writer_open(&writer) : NULL;
    if (status == HLO_OK && !out) status = HLO_OUT_OF_MEMORY;
    if (out) status = hlo_writer_close(out, hlo_amaxes_write(amaxes, module, out));
    hlo_plan_free(plan);
    hlo_module_free(own);
    hlo_free(list);
    json_decref(names);
    json_decref(amaxes);
    return status;
}
