/* SPDX-License-Identifier: Apache-2.0 */
/* Generates nested manual regions, one over 'y' in one over 'x', and their operands. The rest of
 * the module describes what each of four devices computes. */
#include <string.h>

#include "tests/random/module/gen.h"

const char *gen_mesh(const gen *g) {
    if (!g->regions || g->older) return "";
    return g->swapped ? ", frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"x\"=2, "
                        "\"y\"=2], device_ids=[0, 2, 1, 3]>}}"
                      : ", frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<[\"x\"=2, "
                        "\"y\"=2]>}}";
}

/* Writes `[{\"x\"}, {?}]` or, for HLO shardings, `[2,1,` */
static const char *dims_split(const gen *g, array of, int at, char axis, char *out, size_t size) {
    size_t end = (size_t)snprintf(out, size, "[");
    for (int i = 0; i < of.rank; i++) {
        if (g->older)
            end += (size_t)snprintf(out + end, size - end, "%d,", i == at ? 2 : 1);
        else if (i == at)
            end += (size_t)snprintf(out + end, size - end, "%s{\\\"%c\\\"}", i ? ", " : "", axis);
        else
            end += (size_t)snprintf(out + end, size - end, "%s{?}", i ? ", " : "");
    }
    if (!g->older) snprintf(out + end, size - end, "]");
    return out;
}

static array convert_view(gen *g, array value, array to, const char *which, char axis,
                          const char *dims) {
    return gen_emit(g, to,
                    "custom-call(%s), custom_call_target=\"xla.sdy.%sShape\", "
                    "custom_call_has_side_effect=true, frontend_attributes={xla.sdy.%s_shardings="
                    "\"#sdy.sharding_per_value<[<@mesh, %s>]>\",xla.sdy.manual_axes="
                    "\"#sdy<manual_axes{\\\"%c\\\"}>\"}",
                    value.name, which, *which == 'G' ? "in" : "out", dims, axis);
}

/* Passes a value into the region over that axis: split along dimension `at`, or whole (-1). */
static array entered(gen *g, array value, char axis, int at) {
    char dims[128], ones[128];
    array part = value;
    if (at >= 0) part.dims[at] /= 2;
    dims_split(g, value, at, axis, dims, sizeof dims);
    if (!g->older) return convert_view(g, value, part, "GlobalToLocal", axis, dims);
    dims_split(g, value, -1, axis, ones, sizeof ones);
    bool outer = axis == 'x';
    array marked = at < 0 && outer
                       ? gen_emit(g, value,
                                  "custom-call(%s), custom_call_target=\"Sharding\", "
                                  "sharding={replicated}",
                                  value.name)
                       : gen_emit(g, value,
                                  "custom-call(%s), custom_call_target=\"Sharding\", "
                                  "sharding={devices=%s2%s}",
                                  value.name, dims,
                                  outer    ? "]<=[4] last_tile_dim_replicate"
                                  : at < 0 ? ",2]<=[4] last_tile_dims={manual, replicated}"
                                           : "]<=[2,2]T(1,0) last_tile_dims={manual}");
    if (!outer)
        return gen_emit(g, part,
                        "custom-call(%s), custom_call_target=\"SPMDFullToShardShape\", "
                        "sharding={manual}",
                        marked.name);
    return gen_emit(g, part,
                    "custom-call(%s), custom_call_target=\"SPMDFullToShardShape\", "
                    "sharding={devices=%s2,2]<=[4] last_tile_dims={manual, replicated}}",
                    marked.name, ones);
}

static int some_dim(gen *g, array shape) {
    return shape.rank && dice_chance(&g->dice, 45) ? dice_below(&g->dice, (size_t)shape.rank) : -1;
}

array gen_handed(gen *g, array shape, array whole_parameter(gen *g, array shape, char prefix),
                 char prefix) {
    array whole = shape;
    bool of_many = !shape.rank && dice_chance(&g->dice, 70);
    if (of_many) whole = gen_shape(shape.type, 1, (const int[]){1});
    int x = some_dim(g, whole), y = some_dim(g, whole);
    if (x >= 0) whole.dims[x] *= 2;
    if (y >= 0) whole.dims[y] *= 2;
    array value = entered(g, whole_parameter(g, whole, prefix), 'x', x);
    if (!of_many) return entered(g, value, 'y', y);
    bool before = y < 0 && dice_chance(&g->dice, 50); /* the inner region receives a scalar */
    if (before) value = gen_emit(g, shape, "reshape(%s)", value.name);
    value = entered(g, value, 'y', y);
    return before ? value : gen_emit(g, shape, "reshape(%s)", value.name);
}

array gen_come_back(gen *g, array scalar) {
    char dims[128];
    array one = gen_shape(scalar.type, 1, (const int[]){1});
    array two = gen_shape(scalar.type, 1, (const int[]){2});
    bool whole = dice_chance(&g->dice, 50);
    array value = gen_emit(g, one, "reshape(%s)", scalar.name);
    if (g->older)
        value = gen_emit(g, two,
                         "custom-call(%s), custom_call_target=\"SPMDShardToFullShape\", "
                         "sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dims={manual}}",
                         value.name);
    else
        value = convert_view(g, value, two, "LocalToGlobal", 'y',
                             dims_split(g, two, 0, 'y', dims, sizeof dims));
    value = entered(g, value, 'y', whole ? -1 : 0);
    if (whole) value = gen_emit(g, one, "slice(%s), slice={[1:2]}", value.name);
    return gen_emit(g, scalar, "reshape(%s)", value.name);
}
