/* SPDX-License-Identifier: Apache-2.0 */
/* Generates collectives among four devices. */
#include "tests/random/module/gen.h"

/* Notations of replica groups, with the number of devices per group. */
typedef struct grouping {
    const char *text;
    int size;
} grouping;

static grouping draw_groups(gen *g, bool global) {
    static const grouping named[] = {
        {", replica_groups={{0,1,2,3}}, use_global_device_ids=true", 4},
        {", replica_groups=[1,4]<=[4], use_global_device_ids=true", 4},
        {", replica_groups={{3,1,0,2}}, use_global_device_ids=true", 4},
        {", replica_groups={{0,1},{2,3}}, use_global_device_ids=true", 2},
        {", replica_groups={{2,0},{1,3}}, use_global_device_ids=true", 2},
        {", replica_groups={{0}}", 4},
        {", replica_groups={}", 4}};
    static const grouping of_devices[] = {{", replica_groups={{0,1,2,3}}", 4},
                                          {", replica_groups={{3,1,0,2}}", 4},
                                          {", replica_groups={{0,1},{2,3}}", 2},
                                          {", replica_groups={{2,0},{1,3}}", 2}};
    return global ? DICE_PICK(&g->dice, named) : DICE_PICK(&g->dice, of_devices);
}

array gen_sent(gen *g, array shape, gen_maker *make, void *arg) {
    static const char *const pairs[] = {"{{0,1},{1,2},{2,3},{3,0}}", "{{0,1},{1,0},{2,3},{3,2}}",
                                        "{{0,1},{1,2},{2,3}}", "{{3,3},{0,2}}"};
    bool gathers = dice_chance(&g->dice, 60);
    grouping groups = draw_groups(g, gathers);
    int at = shape.rank ? dice_below(&g->dice, (size_t)shape.rank) : 0;
    int channel = ++g->channels;
    array in = shape;
    if (!shape.rank || shape.dims[at] % groups.size || dice_chance(&g->dice, 20)) {
        in = make(g, shape, arg);
        return gen_emit(g, shape, "collective-permute(%s), channel_id=%d, source_target_pairs=%s",
                        in.name, channel, DICE_PICK(&g->dice, pairs));
    }
    if (gathers) in.dims[at] /= groups.size;
    in = make(g, in, arg);
    return gen_emit(g, shape, "%s(%s), channel_id=%d%s, dimensions={%d}",
                    gathers ? "all-gather" : "all-to-all", in.name, channel, groups.text, at);
}

array gen_agreed(gen *g, array scalar) {
    grouping groups = draw_groups(g, true);
    return gen_emit(g, scalar, "all-reduce(%s), channel_id=%d%s, to_apply=%%max_%s", scalar.name,
                    ++g->channels, groups.text, scalar.type);
}

array gen_own(gen *g, array scalar) {
    array device = gen_emit(g, gen_shape("u32", 0, NULL), "partition-id()");
    array number = gen_convert(g, device, scalar.type);
    number = gen_binary(g, "add", number, gen_constant(g, scalar.type, 1), true);
    return gen_binary(g, "multiply", scalar, number, true);
}

array gen_called(gen *g, array scalar) {
    return gen_emit(g, scalar,
                    "call(%s), to_apply=%%twice_%s, frontend_attributes={inlineable=\"false\"}",
                    scalar.name, scalar.type);
}
