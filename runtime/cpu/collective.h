/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives between simulated devices (runtime/world.h). */
#ifndef HLO_RUNTIME_CPU_COLLECTIVE_H
#define HLO_RUNTIME_CPU_COLLECTIVE_H

#include "ir/devices/boundary.h"
#include "runtime/cpu/cpu.h"

/* True for instructions that these functions support: collectives and their starts, partition-id
 * and replica-id, and calls at the boundary of a manual region. */
bool cpu_is_collective(const hlo_instr *instr);
/* True if the last operand selects the member of the group that sends each other operand. */
static inline bool cpu_has_dynamic_root(const hlo_instr *instr) {
    return hlo_instr_int(instr, HLO_ATTR_HAS_DYNAMIC_ROOT, 0) != 0;
}
/* Returns why the device does not support a collective, or NULL. In the arena, or static. */
const char *cpu_collective_refusal(const cpu_device *cpu, const hlo_instr *instr, hlo_arena *arena);
/* Creates the job's state: the participants of the device's group. */
void cpu_collective_prepare(const cpu_device *cpu, hlo_job *job, hlo_arena *arena);
/* Waits for the other participants, and runs the job with them. */
hlo_status cpu_collective_execute(const cpu_device *cpu, const hlo_job *job, const char **why);

/* The state of a collective's job. */
typedef struct cpu_gathering {
    const cpu_device *cpu;
    const hlo_ints *members; /* device numbers, in the order of the group, or NULL */
    const hlo_ints *sources; /* collective-permute: the source of each member; -1: zeros */
    hlo_tiling *tilings;     /* at a boundary: the tiling of each operand */
} cpu_gathering;

/* exchange.c: runs the jobs of all members of a group together. */
hlo_meeting cpu_exchange;
/* exchange.c: copies the device's parts of whole arrays. */
void cpu_take_parts(const cpu_device *cpu, const hlo_job *job);

#endif
