/* SPDX-License-Identifier: Apache-2.0 */
/* Converts modules of several devices to modules of one device, which have a copy of every
 * instruction for each original device. Collectives are computed from the copies. */
#ifndef HLO_TESTS_RANDOM_CHECK_DEVICES_H
#define HLO_TESTS_RANDOM_CHECK_DEVICES_H

#include "ir/ir.h"

/* Returns a module that computes the entries of all devices of `module`. Its parameters are those
 * of the first device, with the same names, followed by those of the other devices, device by
 * device; a parameter annotated `{replicated}` is shared. The results are those of the first
 * device, followed by those of the other devices. Returns NULL if there is only one device, or if
 * devices communicate in an unsupported way (asynchronously, or within callees of the entry). The
 * caller frees it. */
hlo_module *on_one_device(const hlo_module *module);

#endif
