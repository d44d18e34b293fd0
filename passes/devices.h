/* Which values are the same on all devices that run the module, whatever the inputs are. */
#ifndef HLO_PASSES_DEVICES_H
#define HLO_PASSES_DEVICES_H

#include "ir/ir.h"

/* Replicas times partitions; 1 for a module of one device. */
int64_t hlo_devices_count(const hlo_module *module);
int64_t hlo_devices_partitions(const hlo_module *module);

/* Whether `value` is proved to be the same on all devices: a constant, a parameter of the entry
 * that is marked `sharding={replicated}`, an all-reduce over all devices, or computed, element by
 * element, by movement or by a reduction, from nothing but those. */
bool hlo_devices_agree(const hlo_instr *value);

/* Whether the module is for several partitions and XLA's partitioner has not split it yet: values
 * are marked as sharded, but nothing goes from device to device. `*out_marked` is such a value. */
bool hlo_devices_unpartitioned(const hlo_module *module, const hlo_instr **out_marked);

#endif
