/* SPDX-License-Identifier: Apache-2.0 */
/* Replica groups, and pairs of devices. */
#include "grammar/attr/devices.h"
#include "ir/text/print_devices.h"

bool hlo_groups_keep(hlo_notation *f, const char *from, hlo_groups groups) {
    int64_t devices = 1;
    for (uint32_t i = 0; groups.axes && i < groups.axes->count; i++)
        if (__builtin_mul_overflow(devices, groups.axes->v[i].size, &devices)) devices = INT64_MAX;
    if (groups.axes && devices <= 1)
        return hlo_notation_fail(f, from, (size_t)(f->at - from),
                                 "a group has %lld device%s, expected several", (long long)devices,
                                 devices == 1 ? "" : "s");
    if (!groups.sizes && !groups.axes) {
        hlo_axes *axes = hlo_arena_zero(f->module->arena, sizeof *axes + sizeof *axes->v);
        axes->count = 1;
        axes->v[0] = (hlo_axis){.axis = 1, .before = 1, .size = groups.mesh.devices.dims->v[1]};
        groups.axes = axes;
    }
    hlo_groups_measure(&groups, f->scratch);
    groups.parsed.text = hlo_print_interned(f->module, hlo_put_groups, &groups);
    return hlo_notation_made(f, f->value.id, &groups.parsed, sizeof groups);
}

/* Reads `{{0,1},{2}}`. */
static bool read_lists(hlo_notation *f) {
    const bool pair = f->value.id == HLO_ATTR_SOURCE_TARGET_PAIRS;
    hlo_notation_ints all = {0}, sizes = {0};
    if (!hlo_notation_expect(f, "{")) return false;
    bool more = !hlo_notation_next(f, '}');
    while (more) {
        const size_t before = all.count;
        if (!hlo_notation_expect(f, "{")) return false;
        const char *from = f->at - 1;
        if (!hlo_notation_more_ints(f, "}", 0, &all)) return false;
        const size_t size = all.count - before;
        if (pair && size != 2)
            return hlo_notation_fail(f, from, 1, "expected a pair, found %zu number%s", size,
                                     size == 1 ? "" : "s");
        hlo_notation_add(f, &sizes, (int64_t)size);
        more = hlo_notation_take(f, ",");
    }
    return hlo_notation_expect_end(f, "}") &&
           hlo_groups_keep(f, f->at,
                           (hlo_groups){.sizes = hlo_notation_keep(f, &sizes),
                                        .mesh.devices.listed = hlo_notation_keep(f, &all)});
}

/* Reads `['a'=2,'b'=2] {'a'}` after `mesh`. */
static bool read_axes(hlo_notation *f) {
    hlo_groups groups = {0};
    hlo_axis_ref *refs = NULL;
    if (!hlo_mesh_read(f, &groups.mesh)) return false;
    hlo_notation_skip(f);
    const char *from = f->at;
    return hlo_mesh_read_axes(f, &groups.mesh, &refs, false, false, &groups.axes) &&
           hlo_groups_keep(f, from, groups);
}

/* Reads `{{0,1},{2,3}}`, `[2,2]<=[4]` or `mesh['a'=2,'b'=2] {'a'}`. */
bool hlo_notation_groups(hlo_notation *f) {
    if (hlo_notation_next(f, '{') || f->value.id == HLO_ATTR_SOURCE_TARGET_PAIRS)
        return read_lists(f);
    if (hlo_notation_take_word(f, "mesh")) return read_axes(f);
    hlo_tiling t = {0};
    if (!hlo_notation_next(f, '[')) return hlo_notation_unexpected(f, "'{', '[' or 'mesh['");
    const char *from = f->at;
    if (!hlo_tiling_read(f, false, &t)) return false;
    if (t.dims.count != 2)
        return hlo_notation_fail(
            f, from, 1, "expected two dimensions, groups and devices, found %zu", t.dims.count);
    return hlo_groups_keep(f, from, (hlo_groups){.mesh.devices = hlo_tiling_keep(f, &t)});
}
