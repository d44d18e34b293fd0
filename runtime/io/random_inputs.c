/* SPDX-License-Identifier: Apache-2.0 */
/* Inputs from a seed. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/devices/boundary.h"
#include "ir/float/float.h"
#include "ir/text/diag.h"
#include "runtime/io/arrays.h"
#include "runtime/io/draw.h"
#include "runtime/io/random.h"

/* True if values of a parameter with this name are never negative: scales, maxima of absolute
 * values, second moments. */
static bool is_positive(const char *op_name) {
    if (!op_name) return false;
    if (strstr(op_name, "_scale") || strstr(op_name, "amax") || strstr(op_name, "['scale"))
        return true;
    for (const char *at = op_name; (at = strstr(at, ".nu")); at++)
        if (!isalnum((unsigned char)at[3]) && at[3] != '_') return true;
    return false;
}

static hlo_status draw_all(const hlo_module *module, const hlo_leaves *leaves, uint64_t seed,
                           hlo_draw kind, const hlo_diag_sink *sink, hlo_arrays *out) {
    hlo_random random;
    hlo_random_seed(&random, seed);
    for (size_t i = 0; i < leaves->count; i++) {
        const hlo_shape *shape = leaves->shapes[i];
        const hlo_instr *parameter = module->entry->parameters[leaves->owners[i]];
        const bool sized = hlo_shape_count(shape) >= 0;
        if (!sized || hlo_types[shape->type].class == HLO_CLASS_COMPLEX) {
            hlo_diag_emit(module, sink, HLO_ERROR, parameter->offset, 1,
                          "cannot generate random inputs %s",
                          sized ? "of complex type" : "of unknown size");
            return HLO_INVALID_INPUT;
        }
        hlo_array *array = hlo_arrays_add(out, shape->type, shape->rank, shape->dims, false);
        if (!array) return HLO_OUT_OF_MEMORY;
        hlo_draw_role role = kind == HLO_DRAW_REALISTIC
                                 ? hlo_draw_realistic(parameter, shape)
                                 : (hlo_draw_role){0, 1, is_positive(hlo_instr_op_name(parameter))};
        size_t width = hlo_types[shape->type].bytes;
        char *at = array->data;
        role.positive |= shape->type == HLO_TYPE_F8E8M0FNU; /* the type has no negative numbers */
        /* Types that numpy does not treat as integers are drawn like floats. */
        bool integer = shape->type == HLO_TYPE_PRED ||
                       (hlo_type_is_integer(shape->type) && hlo_types[shape->type].bits >= 8);
        for (size_t done = 0; done < array->size; done += width, at += width) {
            if (integer) {
                hlo_number_store(shape->type, at,
                                 hlo_random_below(&random, shape->type == HLO_TYPE_PRED ? 2 : 8));
            } else {
                float value = (float)(role.mean + role.deviation * hlo_random_normal(&random));
                hlo_number_store(shape->type, at, role.positive ? fabsf(value) : value);
            }
        }
    }
    return HLO_OK;
}

/* Draws the inputs of each device, and shares them between devices. */
static hlo_status draw_each(const hlo_module *module, const hlo_leaves *leaves, hlo_draw kind,
                            uint64_t seed, uint32_t devices, const hlo_diag_sink *sink,
                            hlo_arrays *out) {
    jmp_buf recover;
    hlo_status status = HLO_OK;
    for (uint32_t d = 0; d < devices && status == HLO_OK; d++)
        status = draw_all(module, leaves, seed + d, kind, sink, out);
    if (status != HLO_OK || devices == 1) return status;
    hlo_arena *arena = hlo_arena_new(&recover);
    if (!arena || setjmp(recover)) {
        hlo_arena_free(arena);
        return HLO_OUT_OF_MEMORY;
    }
    uint32_t *sources = hlo_arena_array(arena, devices * leaves->count + 1, sizeof *sources);
    /* Find the device whose inputs each device shares, leaf by leaf: [device * leaves + leaf]. */
    const hlo_instr *marked;
    const bool whole = hlo_devices_unpartitioned(module, &marked);
    for (size_t i = 0, first = 0; i < leaves->count; i++) {
        if (i && leaves->owners[i - 1] != leaves->owners[i]) first = i;
        const hlo_instr *parameter = module->entry->parameters[leaves->owners[i]];
        const hlo_sharding *sharding = whole ? NULL : hlo_instr_sharding(parameter);
        if (sharding && sharding->kind == HLO_SHARDING_TUPLE)
            sharding = i - first < sharding->count ? sharding->v[i - first] : NULL;
        const hlo_device_groups *groups =
            sharding ? hlo_device_groups_of_sharding(arena, sharding, HLO_GET) : NULL;
        for (uint32_t d = 0; d < devices; d++)
            sources[d * leaves->count + i] =
                groups && d < groups->count && groups->of[d] < devices ? groups->of[d] : 0;
    }
    for (size_t i = 0; i < devices * leaves->count; i++) {
        const hlo_array *from = &out->items[sources[i] * leaves->count + i % leaves->count];
        if (from != &out->items[i]) memcpy(out->items[i].data, from->data, from->size);
    }
    hlo_arena_free(arena);
    return HLO_OK;
}

hlo_status hlo_arrays_draw_each(const hlo_module *module, hlo_draw kind, uint64_t seed,
                                uint32_t devices, const hlo_diag_sink *sink, hlo_arrays **out) {
    *out = NULL;
    hlo_leaves leaves;
    hlo_status status = hlo_leaves_of(module, HLO_INPUTS, &leaves);
    if (status != HLO_OK) return status;
    status = hlo_arrays_new(out);
    if (status == HLO_OK) status = draw_each(module, &leaves, kind, seed, devices, sink, *out);
    hlo_leaves_free(&leaves);
    if (status == HLO_OK) return HLO_OK;
    hlo_arrays_free(*out);
    *out = NULL;
    return status;
}

hlo_status hlo_arrays_draw(const hlo_module *module, uint64_t seed, const hlo_diag_sink *sink,
                           hlo_arrays **out) {
    return hlo_arrays_draw_each(module, HLO_DRAW_NORMAL, seed, 1, sink, out);
}
