/* SPDX-License-Identifier: Apache-2.0 */
/* Copies parts of arrays to devices and back. */
#include "runtime/pjrt/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "ir/text/diag.h"

static const int types[HLO_TYPE_COUNT] = {
#define PJRT_TYPE(type, number) [HLO_TYPE_##type] = number,
#include "runtime/pjrt/type.def"
#undef PJRT_TYPE
};

int pjrt_type(hlo_type type) {
    return types[type];
}

bool pjrt_leaf_divide(hlo_arena *arena, pjrt_leaf *leaf) {
    const hlo_shape *shape = leaf->shape;
    int64_t *dims = hlo_arena_array(arena, shape->rank, sizeof *dims);
    leaf->dims = dims;
    for (uint32_t i = 0; i < shape->rank; i++) {
        const int64_t count = leaf->tiling.devices ? leaf->tiling.counts[i] : 1;
        if (shape->dims[i] % count) return false;
        dims[i] = shape->dims[i] / count;
    }
    return true;
}

static size_t part_size(const pjrt_leaf *leaf) {
    size_t size = hlo_types[leaf->shape->type].bytes;
    for (uint32_t i = 0; i < leaf->shape->rank; i++) size *= (size_t)leaf->dims[i];
    return size;
}

/* Copies rows between a part and its position in the whole array, both row-major. */
static void copy_part(const pjrt_leaf *leaf, size_t device, char *whole, char *part, bool out) {
    const hlo_shape *shape = leaf->shape;
    const uint32_t rank = shape->rank;
    const size_t width = hlo_types[shape->type].bytes, size = part_size(leaf);
    if (!size) return;
    const size_t row = rank ? (size_t)leaf->dims[rank - 1] * width : width;
    for (size_t done = 0; done < size; done += row) {
        size_t rest = done / row, at = 0, step = rank ? (size_t)shape->dims[rank - 1] : 1;
        for (uint32_t i = rank; i-- > 0;) {
            const size_t length = (size_t)leaf->dims[i];
            size_t index =
                leaf->tiling.devices ? (size_t)leaf->tiling.places[device * rank + i] * length : 0;
            if (i == rank - 1) {
                at += index;
                continue;
            }
            index += rest % length;
            rest /= length;
            at += index * step;
            step *= (size_t)shape->dims[i];
        }
        memcpy(out ? part + done : whole + at * width, out ? whole + at * width : part + done, row);
    }
}

static pjrt_layout layout_of(const pjrt_leaf *leaf, int64_t *row_major, bool host) {
    const uint32_t rank = leaf->shape->rank;
    for (uint32_t i = 0; i < rank; i++) row_major[i] = rank - 1 - i;
    pjrt_layout layout = {.size = sizeof layout};
    layout.tiled.size = sizeof layout.tiled;
    layout.tiled.minor_to_major = host || !leaf->minor_to_major ? row_major : leaf->minor_to_major;
    layout.tiled.minor_to_major_size = rank;
    return layout;
}

hlo_status pjrt_send(const pjrt_plugin *plugin, pjrt_client *client, const pjrt_leaf *leaf,
                     const hlo_array *array, pjrt_device *device, size_t number,
                     const hlo_diag_sink *sink, pjrt_buffer **out) {
    int64_t row_major[HLO_LARGEST_RANK];
    const pjrt_layout layout = layout_of(leaf, row_major, false);
    char *part = malloc(part_size(leaf) + 1);
    if (!part) return HLO_OUT_OF_MEMORY;
    copy_part(leaf, number, array->data, part, true);
    pjrt_buffer_from_host_args args = {.size = sizeof args,
                                       .client = client,
                                       .data = part,
                                       .type = pjrt_type(leaf->shape->type),
                                       .dims = leaf->dims,
                                       .dim_count = leaf->shape->rank,
                                       .semantics = 1,
                                       .device = device,
                                       .layout = leaf->minor_to_major ? &layout : NULL};
    hlo_status status =
        pjrt_plugin_call(plugin, PJRT_CLIENT_BUFFER_FROM_HOST, &args, "copy an input", sink);
    *out = args.buffer;
    if (status == HLO_OK) status = pjrt_plugin_await(plugin, args.done, "copy an input", sink);
    free(part);
    return status;
}

hlo_status pjrt_receive(const pjrt_plugin *plugin, pjrt_buffer *buffer, const pjrt_leaf *leaf,
                        hlo_array *array, size_t number, const hlo_diag_sink *sink) {
    int64_t row_major[HLO_LARGEST_RANK];
    const pjrt_layout layout = layout_of(leaf, row_major, true);
    const size_t size = part_size(leaf);
    pjrt_buffer_to_host_args args = {.size = sizeof args, .buffer = buffer, .layout = &layout};
    hlo_status status =
        pjrt_plugin_call(plugin, PJRT_BUFFER_TO_HOST, &args, "copy an output", sink);
    if (status != HLO_OK) return status;
    if (args.data_size != size)
        return hlo_diag_refuse(sink, plugin->path, 0, 0,
                               "an output has %zu bytes on device %zu, expected %zu",
                               args.data_size, number, size);
    char *part = malloc(size + 1);
    if (!part) return HLO_OUT_OF_MEMORY;
    args = (pjrt_buffer_to_host_args){
        .size = sizeof args, .buffer = buffer, .layout = &layout, .data = part, .data_size = size};
    status = pjrt_plugin_call(plugin, PJRT_BUFFER_TO_HOST, &args, "copy an output", sink);
    if (status == HLO_OK) status = pjrt_plugin_await(plugin, args.done, "copy an output", sink);
    if (status == HLO_OK) copy_part(leaf, number, array->data, part, false);
    hlo_array_extend(array);
    free(part);
    return status;
}
