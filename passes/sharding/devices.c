/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of a module, and the groups that its collectives connect. */
#include "passes/sharding/devices.h"

#include <string.h>

#include "ir/device_list.h"
#include "ir/ir.h"

static int64_t header_int(const hlo_module *module, hlo_attr_id id) {
    int64_t count = hlo_module_int(module, id, 1);
    return count > 1 ? count : 1;
}

int64_t hlo_devices_partitions(const hlo_module *module) {
    return header_int(module, HLO_ATTR_NUM_PARTITIONS);
}

int64_t hlo_devices_replicas(const hlo_module *module) {
    return header_int(module, HLO_ATTR_REPLICA_COUNT);
}

const hlo_instr *hlo_devices_sender(const hlo_instr *instr) {
    while (hlo_op_async_pair(HLO_OP_INVALID, instr->op) && instr->operand_count)
        instr = hlo_instr_operand(instr, 0);
    if (instr->op != HLO_OP_ASYNC_START) return instr;
    const hlo_computation *called = hlo_instr_comp(instr, HLO_ATTR_CALLS);
    const hlo_instr *wrapped = called ? hlo_async_wrapped(called) : NULL;
    return wrapped ? wrapped : instr;
}

/* Returns the groups of a collective. An attribute of some collectives makes them name partitions
 * or devices; all others name replicas, and then span all partitions with a channel, and one
 * partition without. If the header does not have the number of devices, the named devices are all
 * devices; with channels the number of partitions is unknown. */
const hlo_device_groups *hlo_devices_among(hlo_arena *arena, const hlo_instr *collective) {
    collective = hlo_devices_sender(collective);
    const hlo_module *module = collective->parent->module;
    int64_t partitions = hlo_devices_partitions(module), replicas = hlo_devices_replicas(module);
    const hlo_groups *groups = hlo_instr_groups(collective, HLO_ATTR_REPLICA_GROUPS);
    bool channel = hlo_instr_attr(collective, HLO_ATTR_CHANNEL_ID);
    bool global = hlo_instr_int(collective, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0);
    bool told = partitions > 1 || replicas > 1;
    bool several = told ? partitions > 1 : module->attrs_seen[HLO_ATTR_CHANNEL_ID];
    if (several && !global && (!channel || replicas > 1)) return NULL;
    if (several && !global &&
        !(collective->op == HLO_OP_ALL_TO_ALL || collective->op == HLO_OP_COLLECTIVE_PERMUTE ||
          collective->op == HLO_OP_COLLECTIVE_PERMUTE_START))
        return told || !groups || groups->devices < 2 ? &hlo_device_groups_whole : NULL;
    int64_t devices = partitions * replicas > 1 ? partitions * replicas : 0;
    const hlo_groups *pairs = hlo_instr_groups(collective, HLO_ATTR_SOURCE_TARGET_PAIRS);
    if (pairs) return hlo_device_groups_of_pairs(arena, pairs, devices);
    return hlo_device_groups_of_lists(arena, groups, devices);
}

int64_t hlo_devices_free_channel(const hlo_module *module) {
    int64_t most = 0;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = hlo_instr_next(i)) {
            int64_t channel = hlo_instr_int(i, HLO_ATTR_CHANNEL_ID, 0);
            if (channel > most) most = channel;
        }
    return most + 1;
}
