/* Devices in groups: what collectives send among, and what a sharding hands the same values to. */
#ifndef HLO_PASSES_DIVISION_H
#define HLO_PASSES_DIVISION_H

#include "ir/ir.h"

/* Lives in the arena that it was made in. */
typedef struct hlo_device_groups {
    uint32_t count; /* of devices that are told of, any other being alone; 0: all are one group */
    const uint32_t *of; /* by device: some device of its group, the same for all of these */
} hlo_device_groups;

/* All devices as one group. */
extern const hlo_device_groups hlo_device_groups_whole;

/* What a value of replica_groups says; NULL and `{}` are all devices. `devices`: how many there
 * are; 0: as many as it names. NULL: more than can be kept, or nothing that is read here. */
const hlo_device_groups *hlo_device_groups_of_lists(hlo_arena *arena, const char *groups,
                                                    int64_t devices);

/* Those that source_target_pairs connect. NULL as above. */
const hlo_device_groups *hlo_device_groups_of_pairs(hlo_arena *arena, const char *pairs,
                                                    int64_t devices);

/* Those to which a sharding of an array hands the same part. Where some dimensions are manual, each
 * device has an array of its own: it is asked for those that have the same one (HLO_HAVE), or for
 * those that would have, if the arrays were one (HLO_GET). NULL as above. */
typedef enum hlo_handed { HLO_HAVE, HLO_GET } hlo_handed;
const hlo_device_groups *hlo_device_groups_of_sharding(hlo_arena *arena, const char *sharding,
                                                       hlo_handed asked);

/* The same, HLO_GET, of the sharding of that number in Shardy's `#sdy.sharding_per_value<[...]>`.
 * `meshes`: what the module says of them, `{mesh = #sdy.mesh<["x"=2]>}`. NULL as above. */
const hlo_device_groups *hlo_device_groups_of_shardy(hlo_arena *arena, const char *meshes,
                                                     const char *shardings, uint32_t number);

/* Those along the axes `#sdy<manual_axes{"x"}>` of the mesh of such shardings. NULL as above. */
const hlo_device_groups *hlo_device_groups_of_axes(hlo_arena *arena, const char *meshes,
                                                   const char *shardings, const char *axes);

/* Whether each group of `a` is within one of `b`. */
bool hlo_device_groups_refine(const hlo_device_groups *a, const hlo_device_groups *b);

#endif
