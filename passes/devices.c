/* What is the same on all devices. */
#include "passes/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_LIMIT = 256 };

static int64_t header_int(const hlo_module *module, hlo_attr_id id) {
    for (uint32_t i = 0; i < module->attr_count; i++)
        if (module->attrs[i].id == id) return module->attrs[i].u.i > 1 ? module->attrs[i].u.i : 1;
    return 1;
}

int64_t hlo_devices_partitions(const hlo_module *module) {
    return header_int(module, HLO_ATTR_NUM_PARTITIONS);
}

static int64_t replicas(const hlo_module *module) {
    return header_int(module, HLO_ATTR_REPLICA_COUNT);
}

int64_t hlo_devices_count(const hlo_module *module) {
    return hlo_devices_partitions(module) * replicas(module);
}

/* ------------------------------------------------------------------------------------------ groups
 */

/* mesh['x'=4,'y'=2] {'x'}: the extents of the axes in braces, multiplied; 0 for any other form. */
static int64_t mesh_group(const char *text) {
    const char *axes = strchr(text, '[');
    const char *at = axes ? strstr(axes, "] {") : NULL;
    if (!at) return 0;
    int64_t size = 1;
    for (at += 3; *at == '\''; at += *at == ',') {
        const char *end = strchr(at + 1, '\'');
        if (!end) return 0;
        size_t length = (size_t)(end + 1 - at);
        const char *axis = axes + 1;
        while (*axis == '\'' && (strncmp(axis, at, length) != 0 || axis[length] != '=')) {
            axis = strpbrk(axis, ",]");
            if (!axis || *axis == ']') return 0;
            axis++;
        }
        if (*axis != '\'') return 0;
        size *= strtoll(axis + length + 1, NULL, 10);
        at = end + 1;
    }
    return *at == '}' && !at[1] ? size : 0;
}

/* {{0,2,1}}: how many there are; 0 for several groups. */
static int64_t listed_group(const char *text) {
    if (strncmp(text, "{{", 2) != 0 || strchr(text + 2, '{')) return 0;
    int64_t size = 1;
    for (const char *at = strchr(text, ','); at; at = strchr(at + 1, ',')) size++;
    return size;
}

/* Whether one group holds as many devices as that. */
static bool one_group(const char *text, int64_t all) {
    long long many, each;
    if (!text || !strcmp(text, "{}")) return true;
    if (sscanf(text, "[%lld,%lld]", &many, &each) == 2) return many == 1 && each == all;
    return (strncmp(text, "mesh", 4) ? listed_group(text) : mesh_group(text)) == all;
}

/* With global ids the groups are of devices; otherwise of replicas, and every group is over all
 * partitions when there is a channel, and within each partition when there is none. */
static bool over_all(const hlo_instr *collective) {
    const hlo_module *module = collective->parent->module;
    const char *groups = hlo_instr_str(collective, HLO_ATTR_REPLICA_GROUPS);
    if (hlo_instr_int(collective, HLO_ATTR_USE_GLOBAL_DEVICE_IDS, 0))
        return one_group(groups, hlo_devices_count(module));
    bool channel = hlo_instr_attr(collective, HLO_ATTR_CHANNEL_ID);
    return (channel || hlo_devices_partitions(module) == 1) && one_group(groups, replicas(module));
}

/* ----------------------------------------------------------------------------------------- values
 */

static bool replicated(const hlo_instr *parameter) {
    const hlo_module *module = parameter->parent->module;
    const char *sharding = hlo_instr_str(parameter, HLO_ATTR_SHARDING);
    return parameter->parent == module->entry && replicas(module) == 1 && sharding &&
           !strcmp(sharding, "{replicated}");
}

static bool agree(const hlo_instr *value, unsigned *steps) {
    if ((*steps)++ == STEP_LIMIT) return false;
    switch (value->op) {
    case HLO_OP_CONSTANT: return true;
    case HLO_OP_PARAMETER: return replicated(value);
    case HLO_OP_ALL_REDUCE: return over_all(value);
    case HLO_OP_REDUCE: break;
    default:
        if (!(hlo_ops[value->op].flags & (HLO_ELEMENTWISE | HLO_MOVEMENT))) return false;
    }
    for (uint32_t i = 0; i < value->operand_count; i++)
        if (!agree(hlo_instr_operand(value, i), steps)) return false;
    return value->operand_count > 0;
}

bool hlo_devices_agree(const hlo_instr *value) {
    unsigned steps = 0;
    return hlo_devices_count(value->parent->module) == 1 || agree(value, &steps);
}

/* What the partitioner makes is called so. */
static bool called_spmd(const hlo_computation *comp) {
    static const char ending[] = "_spmd";
    size_t length = strlen(comp->name), size = sizeof ending - 1;
    return length >= size && !strcmp(comp->name + length - size, ending);
}

bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked) {
    const hlo_instr *marked = NULL;
    if (hlo_devices_partitions(module) == 1 || called_spmd(module->entry)) return false;
    for (const hlo_computation *comp = module->first; comp; comp = comp->next)
        for (const hlo_instr *i = comp->first; i; i = i->next) {
            const char *sharding = hlo_instr_str(i, HLO_ATTR_SHARDING);
            if (hlo_ops[i->op].flags & HLO_COLLECTIVE) return false;
            if (!marked && sharding && strstr(sharding, "devices=")) marked = i;
        }
    *out_marked = marked;
    return marked != NULL;
}
