/* SPDX-License-Identifier: Apache-2.0 */
/* Modules of several devices as modules of one: each device has its own copy of every instruction,
 * and collectives are computed from the copies. */
#ifndef HLO_TESTS_RANDOM_CHECK_DEVICES_H
#define HLO_TESTS_RANDOM_CHECK_DEVICES_H

#include "ir/ir.h"

/* A module that computes, for all devices of `module`, what the entry of each does: its parameters
 * are those of the first device, as they are named, and then those of the others, device by device;
 * one that is marked `{replicated}` is shared. The results are those of the first device, then
 * those of the others. NULL: there is but one device, or something goes from device to device in a
 * way that is not known here (asynchronously, or within what the entry calls). The caller frees it.
 */
hlo_module *on_one_device(const hlo_module *module);

#endif
