/* SPDX-License-Identifier: Apache-2.0 */
/* Saves values of a run, and checks values for NaNs and infinities. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/writer.h"
#include "runtime/exec/run.h"

enum { FOUND_NAN, FOUND_INFINITY, FOUND_KINDS };

/* A warning to emit when all devices are done. */
typedef struct warning {
    const hlo_instruction *instr;
    char *text;
} warning;

struct plan_look {
    hlo_arrays values;
    warning warnings[FOUND_KINDS];
    uint32_t warning_count;
    uint32_t *places; /* by instruction id: index of its first saved array, plus one; 0 if there is
                       * no value in this run */
    bool reported[FOUND_KINDS];
    void *staging[2]; /* a value in row-major order, and in its memory order */
    size_t staged;
};

hlo_status plan_look_new(hlo_plan *plan) {
    plan->look = hlo_calloc(1, sizeof *plan->look);
    if (plan->look)
        plan->look->places = hlo_calloc(plan->module->next_id + 1, sizeof *plan->look->places);
    return plan->look && plan->look->places ? HLO_OK : HLO_OUT_OF_MEMORY;
}

static void drop_warnings(plan_look *look) {
    while (look->warning_count) hlo_free(look->warnings[--look->warning_count].text);
}

void plan_look_free(plan_look *look) {
    if (!look) return;
    drop_warnings(look);
    hlo_arrays_clear(&look->values);
    hlo_free(look->places);
    hlo_free(look->staging[0]);
    hlo_free(look->staging[1]);
    hlo_free(look);
}

void plan_look_start(hlo_plan *plan) {
    for (uint32_t d = 0; d < plan->device_count; d++) {
        hlo_plan *own = plan->devices[d];
        drop_warnings(own->look);
        hlo_arrays_clear(&own->look->values);
        memset(own->look->places, 0, own->module->next_id * sizeof *own->look->places);
        memset(own->look->reported, 0, sizeof own->look->reported);
    }
}

static bool reserve(plan_look *look, size_t size) {
    if (size <= look->staged) return true;
    for (int i = 0; i < 2; i++) {
        void *memory = hlo_realloc(look->staging[i], size);
        if (!memory) return false;
        look->staging[i] = memory;
    }
    look->staged = size;
    return true;
}

/* The index of an array's first NaN, and of its first infinity, in row-major order; -1 if there is
 * no such element. */
typedef struct nonfinite {
    int64_t first[FOUND_KINDS];
} nonfinite;

static nonfinite find(const hlo_shape *shape, const char *data) {
    enum { CHUNK = 256 };
    nonfinite found = {{-1, -1}};
    const hlo_type_class class = (hlo_type_class)hlo_types[shape->type].class;
    const bool complex = class == HLO_CLASS_COMPLEX;
    if (!complex && !hlo_type_is_float(shape->type)) return found;
    const size_t parts = complex ? 2 : 1, width = hlo_types[shape->type].bytes / parts;
    const size_t count = (size_t)hlo_shape_count(shape) * parts;
    const hlo_type part = !complex ? shape->type : width == 4 ? HLO_TYPE_F32 : HLO_TYPE_F64;
    for (size_t at = 0; at < count; at += CHUNK) {
        double x[CHUNK];
        const size_t more = count - at < CHUNK ? count - at : CHUNK;
        if (hlo_types[part].bits <= 16) {
            float narrow[CHUNK];
            hlo_float_decode_row(part, data + at * width, (int64_t)width, (int64_t)more, narrow);
            for (size_t i = 0; i < more; i++) x[i] = (double)narrow[i];
        } else {
            for (size_t i = 0; i < more; i++) x[i] = hlo_number_load(part, data + (at + i) * width);
        }
        for (size_t i = 0; i < more; i++) {
            const int kind = isnan(x[i]) ? FOUND_NAN : FOUND_INFINITY;
            if (!isfinite(x[i]) && found.first[kind] < 0)
                found.first[kind] = (int64_t)((at + i) / parts);
        }
    }
    return found;
}

/* Copies leaf `leaf` of an inspected value to the staging memory, in row-major order, and returns
 * it. Returns NULL if memory runs out. */
static const char *stage(hlo_plan *plan, const plan_comp *comp, const plan_step *step,
                         uint32_t leaf) {
    plan_look *look = plan->look;
    const hlo_shape *shape = step->shapes[leaf];
    const size_t size = (size_t)hlo_shape_bytes(shape);
    if (!reserve(look, size)) return NULL;
    plan_fetch(plan, shape, hlo_types[shape->type].bytes, look->staging[0],
               comp->slots[step->operands[leaf]].place.data, size, look->staging[1]);
    return look->staging[0];
}

/* Writes the names of the first operands. For a scalar, and for an operand of an elementwise
 * instruction, also writes the element from which the result's element is computed. */
static hlo_status put_operands(hlo_plan *plan, const plan_comp *comp, const plan_step *step,
                               const hlo_shape *result, int64_t element, FILE *out) {
    enum { MAX = 4 };
    const hlo_instruction *instr = step->instr;
    uint32_t leaf = step->own;
    for (uint32_t o = 0; o < instr->operand_count && o < MAX; o++) {
        const hlo_instruction *operand = hlo_instr_operand(instr, o);
        const hlo_shape *shape = operand->shape;
        fprintf(out, "%s%%%s", o ? ", " : " from ", operand->name);
        const bool scalar = hlo_shape_is_array(shape) && hlo_shape_count(shape) == 1;
        const bool alike = hlo_op_is(instr->op, HLO_ELEMENTWISE) && hlo_shape_is_array(shape) &&
                           hlo_shape_same_dims(shape, result);
        const uint32_t place = leaf;
        leaf += hlo_shape_leaf_count(shape);
        if ((!scalar && !alike) || step->operands[place] == PLAN_NONE) continue;
        const char *data = stage(plan, comp, step, place);
        if (!data) return HLO_OUT_OF_MEMORY;
        const size_t at = scalar ? 0 : (size_t)element * hlo_types[shape->type].bytes;
        fputs(" = ", out);
        hlo_print_number(shape->type, data + at, out);
    }
    if (instr->operand_count > MAX) fputs(", ...", out);
    return HLO_OK;
}

static hlo_status report(hlo_plan *plan, const plan_comp *comp, const plan_step *step,
                         uint32_t leaf, int kind, int64_t element) {
    static const char *const made[] = {"a NaN", "an infinity"};
    const hlo_instruction *instr = step->instr;
    const char *op_name = hlo_instr_op_name(instr);
    char *text = NULL;
    size_t size;
    FILE *out = hlo_text_stream(&text, &size);
    if (!out) return HLO_OUT_OF_MEMORY;
    const bool input = instr->op == HLO_OP_PARAMETER;
    fprintf(out, "`%s` %s %s", hlo_ops[instr->op].name, input ? "has" : "produces", made[kind]);
    if (!hlo_shape_is_array(instr->shape)) fprintf(out, " in {%u}", leaf);
    const hlo_shape *shape = step->shapes[leaf];
    int64_t below = hlo_shape_count(shape);
    for (uint32_t d = 0; d < shape->rank; d++) {
        below /= shape->dims[d];
        fprintf(out, "%s%lld", d ? "," : " at [", (long long)(element / below % shape->dims[d]));
    }
    if (shape->rank) fputs("]", out);
    hlo_status status = put_operands(plan, comp, step, shape, element, out);
    if (op_name) fprintf(out, " (%s)", op_name);
    if (plan->seat.world) fprintf(out, ", on device %u", hlo_seat_number(&plan->seat));
    if (fclose(out) != 0) status = HLO_OUT_OF_MEMORY;
    plan_look *look = plan->look;
    look->reported[kind] = true;
    look->warnings[look->warning_count++] = (warning){instr, text};
    return status;
}

hlo_status plan_look_at(hlo_plan *plan, const plan_comp *comp, const plan_step *step) {
    /* Report a NaN if no operand has one, and an infinity if all operands are finite. */
    const bool *reported = plan->look->reported;
    for (uint32_t leaf = 0; step->checks && leaf < step->own; leaf++) {
        if (step->operands[leaf] == PLAN_NONE) continue;
        const char *data = stage(plan, comp, step, leaf);
        if (!data) return HLO_OUT_OF_MEMORY;
        const nonfinite found = find(step->shapes[leaf], data);
        const bool input = step->instr->op == HLO_OP_PARAMETER;
        bool news = false, has[FOUND_KINDS] = {false, input};
        for (int kind = 0; kind < FOUND_KINDS; kind++)
            news |= found.first[kind] >= 0 && !reported[kind];
        if (!news) continue;
        for (uint32_t i = step->own; i < step->operand_count; i++) {
            data = stage(plan, comp, step, i);
            if (!data) return HLO_OUT_OF_MEMORY;
            const nonfinite there = find(step->shapes[i], data);
            for (int kind = 0; kind < FOUND_KINDS; kind++) has[kind] |= there.first[kind] >= 0;
        }
        has[FOUND_INFINITY] |= has[FOUND_NAN];
        for (int kind = 0; kind < FOUND_KINDS; kind++) {
            if (found.first[kind] < 0 || reported[kind] || has[kind]) continue;
            hlo_status status = report(plan, comp, step, leaf, kind, found.first[kind]);
            if (status != HLO_OK) return status;
        }
    }
    if (!step->keeps) return HLO_OK;
    plan_look *look = plan->look;
    uint32_t *place = &look->places[step->instr->id];
    const bool first = !*place; /* the instruction had no value in this run */
    if (first) *place = (uint32_t)look->values.count + 1;
    for (uint32_t i = 0; i < step->own && first; i++) {
        enum { MAX_DIGITS = 12 };
        const hlo_shape *shape = step->shapes[i];
        hlo_array *array =
            hlo_arrays_add(&look->values, shape->type, shape->rank, shape->dims, false);
        const int length = hlo_leaf_name(step->instr, i, NULL, 0);
        char *name = array ? hlo_malloc((size_t)length + MAX_DIGITS) : NULL;
        if (!name) return HLO_OUT_OF_MEMORY;
        hlo_leaf_name(step->instr, i, name, (size_t)length + 1);
        if (plan->seat.world)
            snprintf(name + length, MAX_DIGITS, "@%u", hlo_seat_number(&plan->seat));
        array->name = name;
    }
    for (uint32_t i = 0; i < step->own; i++) {
        hlo_array *array = &look->values.items[*place - 1 + i];
        const hlo_shape *shape = step->shapes[i];
        if (plan->keeps_largest && !first) {
            const float *found = (const float *)(const void *)stage(plan, comp, step, i);
            float *largest = array->data;
            if (!found) return HLO_OUT_OF_MEMORY;
            for (size_t k = 0; k < array->size / sizeof *found; k++)
                if (isnan(found[k]) || found[k] > largest[k]) largest[k] = found[k];
            continue;
        }
        if (!reserve(look, array->size)) return HLO_OUT_OF_MEMORY;
        plan_fetch(plan, shape, hlo_types[shape->type].bytes, array->data,
                   comp->slots[step->operands[i]].place.data, array->size, look->staging[1]);
    }
    return HLO_OK;
}

hlo_status plan_look_end(hlo_plan *plan, const hlo_diag_sink *sink) {
    size_t count = 0;
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const hlo_plan *own = plan->devices[d];
        for (uint32_t i = 0; i < own->look->warning_count; i++) {
            const warning *w = &own->look->warnings[i];
            hlo_diag_emit(own->module, sink, HLO_WARNING, HLO_DIAG_NONFINITE, w->instr->offset,
                          strlen(w->instr->name), "%s", w->text);
        }
        for (const hlo_computation *c = own->module->first; c; c = c->next)
            for (const hlo_instruction *i = c->first; i; i = hlo_instr_next(i))
                if (plan_keeps(own, i) && !own->keeps_largest && !own->look->places[i->id])
                    hlo_diag_emit(own->module, sink, HLO_WARNING, HLO_DIAG_NAME, i->offset,
                                  strlen(i->name), "`%s` has no value because it did not run",
                                  i->name);
        count += own->look->values.count;
    }
    hlo_array *items = hlo_realloc(plan->values.items, (count + 1) * sizeof *items);
    if (!items) return HLO_OUT_OF_MEMORY;
    plan->values = (hlo_arrays){.items = items};
    for (uint32_t d = 0; d < plan->device_count; d++) {
        const hlo_arrays *values = &plan->devices[d]->look->values;
        if (values->count)
            memcpy(items + plan->values.count, values->items, values->count * sizeof *items);
        plan->values.count += values->count;
    }
    return HLO_OK;
}

const hlo_arrays *hlo_plan_values(const hlo_plan *plan) {
    return plan->kept && plan->look && plan->runs ? &plan->values : NULL;
}

unsigned hlo_plan_nonfinite(const hlo_plan *plan) {
    unsigned count = 0;
    for (uint32_t d = 0; plan->look && d < plan->device_count; d++)
        count += plan->devices[d]->look->warning_count;
    return count;
}
