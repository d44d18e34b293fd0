/* The devices that run a module, and which values are the same on all of them, whatever the inputs
 * are.
 *
 *   devices.c  what a module says of its devices, and among which of them a collective sends
 *   replication.c    values that are the same
 *   manual.c   values that are split already, in a module that is not */
#ifndef HLO_PASSES_DEVICES_H
#define HLO_PASSES_DEVICES_H

#include "passes/context.h"
#include "passes/sharding/device_groups.h"

/* As the header says; 1 where it does not. */
int64_t hlo_devices_replicas(const hlo_module *module);
int64_t hlo_devices_partitions(const hlo_module *module);

/* The collective that an instruction is, or ends, or that it ends the wrapped computation of. */
const hlo_instr *hlo_devices_sender(const hlo_instr *instr);

/* Among which devices a collective, or one that `collective` ends, sends. The answer lives in
 * `arena`. NULL: it is not known. */
const hlo_device_groups *hlo_devices_among(hlo_arena *arena, const hlo_instr *collective);

/* Whether `value` is proved to be the same on all devices of each group that `collective` sends
 * among, in every execution. Anything that is not understood may differ (replication.c says what
 * is). */
bool hlo_devices_replicated(hlo_pass_context *context, const hlo_instr *value,
                            const hlo_instr *collective);

/* A channel id that no instruction has. */
int64_t hlo_devices_free_channel(const hlo_module *module);

#endif
