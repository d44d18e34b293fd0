/* SPDX-License-Identifier: Apache-2.0 */
/* Copies arrays to and from the devices of a plugin's client. */
#ifndef HLO_RUNTIME_PJRT_TRANSFER_H
#define HLO_RUNTIME_PJRT_TRANSFER_H

#include "ir/devices/device_groups.h"
#include "runtime/io/arrays.h"
#include "runtime/pjrt/plugin.h"

/* An input or output of a compiled module. */
typedef struct pjrt_leaf {
    const hlo_shape *shape;        /* shape of the whole array */
    const int64_t *minor_to_major; /* on the device; NULL: row-major */
    const int64_t *dims;           /* dimensions of a device's part */
    hlo_tiling tiling;
} pjrt_leaf;

/* Returns the number of an element type in the PJRT C API; 0 if it is not supported. */
int pjrt_type(hlo_type type);

/* Sets `dims`, in the arena, from the other members. Returns false if a dimension is not divided
 * evenly. */
bool pjrt_leaf_divide(hlo_arena *arena, pjrt_leaf *leaf);

/* Copies a device's part of `array` to a buffer on `device`, whose number is `number`. */
hlo_status pjrt_send(const pjrt_plugin *plugin, pjrt_client *client, const pjrt_leaf *leaf,
                     const hlo_array *array, pjrt_device *device, size_t number,
                     const hlo_diag_sink *sink, pjrt_buffer **out);
/* Copies a buffer of device `number` to its part of `array`. */
hlo_status pjrt_receive(const pjrt_plugin *plugin, pjrt_buffer *buffer, const pjrt_leaf *leaf,
                        hlo_array *array, size_t number, const hlo_diag_sink *sink);

#endif
