/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in row-major order, which programs pass as inputs and receive as outputs. */
#include "runtime/io/arrays.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/float/float.h"
#include "ir/kernel/kernel.h"
#include "ir/memory.h"
#include "ir/text/diag.h"
#include "ir/text/options.h"
#include "runtime/grow.h"

hlo_status hlo_arrays_new(hlo_arrays **out) {
    *out = hlo_calloc(1, sizeof **out);
    return *out ? HLO_OK : HLO_OUT_OF_MEMORY;
}

static void free_array(hlo_array *array) {
    hlo_free((void *)array->dims);
    hlo_free(array->data);
    hlo_free(array->bound);
    hlo_free((void *)array->name);
}

void hlo_arrays_clear(hlo_arrays *arrays) {
    for (size_t i = 0; i < arrays->count; i++) free_array(&arrays->items[i]);
    hlo_free(arrays->items);
    *arrays = (hlo_arrays){0};
}

void hlo_arrays_free(hlo_arrays *arrays) {
    if (arrays) hlo_arrays_clear(arrays);
    hlo_free(arrays);
}

size_t hlo_arrays_count(const hlo_arrays *arrays) {
    return arrays->count;
}

const hlo_array *hlo_arrays_at(const hlo_arrays *arrays, size_t index) {
    return &arrays->items[index];
}

hlo_array *hlo_arrays_add(hlo_arrays *arrays, hlo_type type, uint32_t rank, const int64_t *dims,
                          bool bound) {
    hlo_shape shape = {.type = type, .rank = rank, .dims = dims};
    int64_t bytes = hlo_shape_bytes(&shape);
    if (bytes < 0) return NULL;
    if (!hlo_heap_grow(&arrays->items, arrays->count + 1, &arrays->capacity, sizeof *arrays->items))
        return NULL;
    hlo_array array = {.struct_size = sizeof array,
                       .type = type,
                       .rank = rank,
                       .size = (size_t)bytes,
                       .noise = {-1, -1}};
    int64_t *copy = hlo_calloc(rank ? rank : 1, sizeof *copy);
    if (copy && rank) memcpy(copy, dims, rank * sizeof *copy);
    array.dims = copy;
    array.data = hlo_calloc(array.size ? array.size : 1, 1);
    if (bound)
        array.bound =
            hlo_calloc(array.size ? array.size / hlo_types[type].bytes : 1, sizeof(float));
    if (!array.dims || !array.data || (bound && !array.bound)) {
        free_array(&array);
        return NULL;
    }
    arrays->items[arrays->count] = array;
    return &arrays->items[arrays->count++];
}

bool hlo_arrays_move(hlo_arrays *from, hlo_arrays *to) {
    if (!from->count) return true;
    if (!hlo_heap_grow(&to->items, to->count + from->count, &to->capacity, sizeof *to->items))
        return false;
    memcpy(to->items + to->count, from->items, from->count * sizeof *to->items);
    to->count += from->count;
    from->count = 0;
    return true;
}

size_t hlo_arrays_results(const hlo_arrays *arrays) {
    size_t count = 0;
    while (count < arrays->count && !arrays->items[count].name) count++;
    return count;
}

void hlo_array_extend(hlo_array *array) {
    hlo_type type = array->type;
    int unused = 8 - hlo_types[type].bits;
    if (unused <= 0 || type == HLO_TYPE_PRED) return;
    bool is_signed = hlo_types[type].class == HLO_CLASS_SIGNED;
    unsigned char *bytes = array->data;
    for (size_t i = 0; i < array->size; i++) {
        unsigned char high = (unsigned char)(bytes[i] << unused);
        const int low = is_signed ? (signed char)high >> unused : high >> unused;
        bytes[i] = (unsigned char)low;
    }
}

bool hlo_array_take(const hlo_array *given, hlo_array *out) {
    hlo_array_init(out);
    return hlo_options_take("hlo_array", out, sizeof *out, given, NULL) == HLO_OK &&
           hlo_element_type_bits(out->type);
}

hlo_status hlo_arrays_append(hlo_arrays *arrays, hlo_element_type type, uint32_t rank,
                             const int64_t *dims, const void *data) {
    if (!hlo_element_type_bits(type)) return HLO_INVALID_USAGE;
    for (uint32_t i = 0; i < rank; i++)
        if (dims[i] < 0) return HLO_INVALID_USAGE;
    hlo_array *array = hlo_arrays_add(arrays, type, rank, dims, false);
    if (!array) return HLO_OUT_OF_MEMORY;
    if (data) memcpy(array->data, data, array->size);
    hlo_array_extend(array);
    return HLO_OK;
}

void hlo_print_number(hlo_type type, const void *element, FILE *out) {
    union {
        int64_t s64;
        uint64_t u64;
        double part[2];
    } lane;
    switch (hlo_lane_of(type)) {
    case HLO_LANE_S64:
        hlo_lane_load(type, element, 0, 1, &lane);
        fprintf(out, "%" PRId64, lane.s64);
        break;
    case HLO_LANE_U64:
        hlo_lane_load(type, element, 0, 1, &lane);
        fprintf(out, "%" PRIu64, lane.u64);
        break;
    case HLO_LANE_C128:
        hlo_lane_load(type, element, 0, 1, &lane);
        fprintf(out, "(%.9g, %.9g)", lane.part[0], lane.part[1]);
        break;
    default: fprintf(out, "%.9g", hlo_number_load(type, element));
    }
}

static void put_leaves(const hlo_shape *shape, uint32_t owner, hlo_leaves *out) {
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank; i++) put_leaves(shape->elements[i], owner, out);
    } else if (hlo_types[shape->type].bytes) {
        out->owners[out->count] = owner;
        out->shapes[out->count++] = shape;
    }
}

hlo_status hlo_leaves_of(const hlo_module *module, hlo_role role, hlo_leaves *out) {
    const hlo_computation *entry = module->entry;
    uint32_t count = role == HLO_INPUTS ? entry->parameter_count : 1;
    hlo_instruction *const *instrs = role == HLO_INPUTS ? entry->parameters : &entry->root;
    size_t leaves = 0;
    for (uint32_t i = 0; i < count; i++) leaves += hlo_shape_leaf_count(instrs[i]->shape);
    *out = (hlo_leaves){.shapes = hlo_calloc(leaves + 1, sizeof *out->shapes),
                        .owners = hlo_calloc(leaves + 1, sizeof *out->owners)};
    if (!out->shapes || !out->owners) {
        hlo_leaves_free(out);
        return HLO_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; i++) put_leaves(instrs[i]->shape, i, out);
    return HLO_OK;
}

void hlo_leaves_free(hlo_leaves *leaves) {
    hlo_free(leaves->shapes);
    hlo_free(leaves->owners);
    *leaves = (hlo_leaves){0};
}

hlo_status hlo_leaf_check(const hlo_leaves *leaves, const hlo_module *module, size_t index,
                          const hlo_array *array, const hlo_diag_sink *sink) {
    const hlo_shape *shape = leaves->shapes[index];
    if (array->type == shape->type && array->rank == shape->rank &&
        (array->rank == 0 ||
         memcmp(array->dims, shape->dims, array->rank * sizeof *array->dims) == 0))
        return HLO_OK;
    const hlo_instruction *parameter = module->entry->parameters[leaves->owners[index]];
    char found[256], expected[256];
    size_t size = sizeof found;
    size_t used = (size_t)snprintf(found, size, "%s[", hlo_types[array->type].name);
    for (uint32_t i = 0; i < array->rank && used < size; i++)
        used += (size_t)snprintf(found + used, size - used, i ? ",%lld" : "%lld",
                                 (long long)array->dims[i]);
    if (used < size) snprintf(found + used, size - used, "]");
    hlo_shape_format(shape, false, expected, sizeof expected);
    hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_INPUT, parameter->offset,
                  strlen(parameter->name), "input %zu is %s, but %sparameter %s is %s", index,
                  found, parameter->shape->type == HLO_TYPE_TUPLE ? "this element of " : "",
                  parameter->name, expected);
    return HLO_INVALID_INPUT;
}

hlo_status hlo_leaves_check(const hlo_leaves *leaves, const hlo_module *module,
                            const hlo_arrays *inputs, const hlo_diag_sink *sink) {
    if (inputs->count != leaves->count) {
        hlo_diag_emit(module, sink, HLO_ERROR, HLO_DIAG_INPUT, module->entry->offset, 1,
                      "%zu inputs are given, but the entry computation has %zu", inputs->count,
                      leaves->count);
        return HLO_INVALID_INPUT;
    }
    hlo_status status = HLO_OK;
    for (size_t i = 0; i < inputs->count && status == HLO_OK; i++)
        status = hlo_leaf_check(leaves, module, i, &inputs->items[i], sink);
    return status;
}

int hlo_leaf_name(const hlo_instruction *instr, size_t leaf, char *out, size_t size) {
    const bool array = hlo_shape_is_array(instr->shape);
    return snprintf(out, size, array ? "%s" : "%s{%zu}", instr->name, leaf);
}

void hlo_role_name(hlo_role role, size_t index, char *out, size_t size) {
    snprintf(out, size, "%s %zu", role == HLO_INPUTS ? "parameter" : "output", index);
}
