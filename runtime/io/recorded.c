/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the inputs and outputs that a snapshot has in addition to its module to arrays. */
#include <string.h>

#include "grammar/proto/convert.h"
#include "ir/float/c_locale.h"
#include "ir/text/diag.h"
#include "runtime/io/arrays.h"

typedef struct recording {
    const hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_role role;
    hlo_leaves leaves;
    uint32_t devices; /* number of devices that have arrays */
    size_t count;     /* number of arrays of the last device */
    hlo_arrays *arrays;
} recording;

static hlo_status put_literal(recording *r, const hlo_literal *literal) {
    const hlo_shape *shape = literal->shape;
    hlo_status status = HLO_OK;
    if (shape->type == HLO_TYPE_TUPLE) {
        for (uint32_t i = 0; i < shape->rank && status == HLO_OK; i++)
            status = put_literal(r, literal->elements[i]);
        return status;
    }
    const hlo_shape *expected = r->count < r->leaves.count ? r->leaves.shapes[r->count] : NULL;
    if (!expected || !hlo_shape_compatible(shape, expected)) {
        char role[32], found[256], wanted[256] = "no such array";
        hlo_role_name(r->role, r->count, role, sizeof role);
        hlo_shape_format(shape, false, found, sizeof found);
        if (expected) hlo_shape_format(expected, false, wanted, sizeof wanted);
        return hlo_diag_refuse(r->sink, r->module->file, 0, 0,
                               "%s in the snapshot is %s, but the module has %s", role, found,
                               wanted);
    }
    r->count++;
    return hlo_arrays_append(r->arrays, hlo_types[shape->type].name, shape->rank, shape->dims,
                             literal->data);
}

static hlo_status check_count(const recording *r) {
    if (r->count == r->leaves.count) return HLO_OK;
    return hlo_diag_refuse(r->sink, r->module->file, 0, 0,
                           "the %s of the snapshot have %zu arrays, but those of the module %zu%s",
                           r->role == HLO_INPUTS ? "arguments" : "outputs", r->count,
                           r->leaves.count,
                           r->role == HLO_INPUTS ? ": run it with --inputs or --seed" : "");
}

static hlo_status put(void *user, uint32_t device, const hlo_literal *literal) {
    recording *r = user;
    if (device >= r->devices) {
        const hlo_status status = r->devices ? check_count(r) : HLO_OK;
        if (status != HLO_OK) return status;
        r->devices = device + 1;
        r->count = 0;
    }
    return literal ? put_literal(r, literal) : HLO_OK;
}

hlo_status hlo_arrays_recorded(const hlo_module *module, hlo_role role, uint32_t devices,
                               const hlo_diag_sink *sink, hlo_arrays **out) {
    HLO_IN_C_LOCALE;
    *out = NULL;
    recording r = {.module = module, .sink = sink, .role = role};
    hlo_status status = hlo_leaves_of(module, role, &r.leaves);
    if (status == HLO_OK) status = hlo_arrays_new(&r.arrays);
    if (status == HLO_OK) status = hlo_proto_recorded(module, role == HLO_OUTPUTS, sink, put, &r);
    if (status == HLO_OK && r.devices) status = check_count(&r);
    if (status == HLO_OK && r.devices > 1 && r.devices != devices)
        status = hlo_diag_refuse(sink, module->file, 0, 0,
                                 "the snapshot has the arguments of %u devices: run it with "
                                 "--devices=%u",
                                 r.devices, r.devices);
    hlo_leaves_free(&r.leaves);
    if (status == HLO_OK && r.devices) {
        *out = r.arrays;
        return HLO_OK;
    }
    hlo_arrays_free(r.arrays);
    return status;
}
