/* Devices in groups: what collectives send among, and what a sharding hands the same values to. */
#ifndef HLO_PASSES_DIVISION_H
#define HLO_PASSES_DIVISION_H

#include "ir/ir.h"

/* Lives in the arena that it was made in. */
typedef struct hlo_division {
    uint32_t count; /* of devices that are told of, any other being alone; 0: all are one group */
    const uint32_t *of; /* by device: some device of its group, the same for all of these */
} hlo_division;

/* All devices as one group. */
extern const hlo_division hlo_division_whole;

/* What a value of replica_groups says; NULL and `{}` are all devices. `devices`: how many there
 * are; 0: as many as it names. NULL: more than can be kept, or nothing that is read here. */
const hlo_division *hlo_division_of_groups(hlo_arena *arena, const char *groups, int64_t devices);

/* Those that source_target_pairs connect. NULL as above. */
const hlo_division *hlo_division_of_pairs(hlo_arena *arena, const char *pairs, int64_t devices);

/* Those to which a sharding of an array hands the same part. NULL as above. */
const hlo_division *hlo_division_of_sharding(hlo_arena *arena, const char *sharding);

/* Whether each group of `a` is within one of `b`. */
bool hlo_division_within(const hlo_division *a, const hlo_division *b);

#endif
