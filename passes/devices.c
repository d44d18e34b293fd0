/* The devices of a module, and the groups of them that collectives are over. */
#include "passes/devices.h"

#include <string.h>

#include "ir/groups.h"

static int64_t header_int(const hlo_module *module, hlo_attr_id id) {
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == id) return module->attrs[i].u.i > 1 ? module->attrs[i].u.i : 1;
    return 1;
}

int64_t hlo_devices_partitions(const hlo_module *module) {
    return header_int(module, HLO_ATTR_NUM_PARTITIONS);
}

int64_t hlo_devices_replicas(const hlo_module *module) {
    return header_int(module, HLO_ATTR_REPLICA_COUNT);
}

/* --------------------------------------------------------------------------------------- groups */

/* Whether one group holds all devices, of which there are `all`; 1: the header does not say, and
 * groups hold every device between them. */
static bool one_group(const char *text, int64_t all) {
    hlo_groups groups = hlo_groups_read(text);
    if (!groups.count) return true;
    int64_t size = groups.count == 1 ? groups.size : 0;
    return size > 0 && (size == all || all == 1);
}

/* With global ids the groups are of devices; otherwise of replicas, and every group is over all
 * partitions when there is a channel, and within each partition when there is none. */
bool hlo_devices_over_all(const hlo_instr *collective) {
    const hlo_module *module = collective->parent->module;
    const char *groups = hlo_instr_str(collective, HLO_ATTR_REPLICA_GROUPS);
    int64_t partitions = hlo_devices_partitions(module), replicas = hlo_devices_replicas(module);
    if (hlo_instr_int(collective, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0))
        return one_group(groups, partitions * replicas);
    bool channel = hlo_instr_attr(collective, HLO_ATTR_CHANNEL_ID);
    return (channel || partitions == 1) && one_group(groups, replicas);
}

bool hlo_devices_manual(const hlo_instr *instr) {
    const char *target = hlo_instr_str(instr, HLO_ATTR_CUSTOM_CALL_TARGET);
    return instr->op == HLO_OP_CUSTOM_CALL && target &&
           (!strcmp(target, "xla.sdy.GlobalToLocalShape") ||
            !strcmp(target, "SPMDFullToShardShape"));
}

/* What the partitioner makes is called so. */
static bool called_spmd(const hlo_computation *comp) {
    static const char ending[] = "_spmd";
    size_t length = strlen(comp->name), size = sizeof ending - 1;
    return length >= size && !strcmp(comp->name + length - size, ending);
}

bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked) {
    const hlo_instr *marked = NULL;
    bool collective = false, manual = false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = i->next) {
            const char *sharding = hlo_instr_str(i, HLO_ATTR_SHARDING);
            collective |= hlo_ops[i->op].flags & HLO_COLLECTIVE;
            manual |= hlo_devices_manual(i);
            if (!marked && sharding && strstr(sharding, "devices=")) marked = i;
        }
    *out_marked = marked;
    return marked && !called_spmd(module->entry) && (manual || !collective);
}

int64_t hlo_devices_free_channel(const hlo_module *module) {
    int64_t most = 0;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = i->next) {
            int64_t channel = hlo_instr_int(i, HLO_ATTR_CHANNEL_ID, 0);
            if (channel > most) most = channel;
        }
    return most + 1;
}
