/* SPDX-License-Identifier: Apache-2.0 */
/* Printers of values that are parsed into structs (ir/device_list.h). */
#ifndef HLO_IR_TEXT_PRINT_DEVICES_H
#define HLO_IR_TEXT_PRINT_DEVICES_H

#include "ir/device_list.h"
#include "ir/text/printer.h"

/* Writes an hlo_groups. */
void hlo_put_groups(hlo_printer *o, const void *groups);
/* Writes an hlo_sharding, with its metadata according to the printer's options. */
void hlo_put_sharding(hlo_printer *o, const void *sharding);

/* Writes an hlo_alias. */
void hlo_put_alias(hlo_printer *o, const void *alias);
/* Writes hlo_aliases. */
void hlo_put_aliases(hlo_printer *o, const void *aliases);

#endif
