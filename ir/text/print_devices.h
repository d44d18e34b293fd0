/* SPDX-License-Identifier: Apache-2.0 */
/* Values that are read into structs, as text; ir/device_list.h has the structs. */
#ifndef HLO_IR_TEXT_PRINT_DEVICES_H
#define HLO_IR_TEXT_PRINT_DEVICES_H

#include "ir/device_list.h"
#include "ir/text/printer.h"

/* Writes an hlo_groups. */
void hlo_put_groups(hlo_printer *o, const void *groups);
/* Writes an hlo_sharding; its metadata as the printer's options say. */
void hlo_put_sharding(hlo_printer *o, const void *sharding);

/* Writes an hlo_alias. */
void hlo_put_alias(hlo_printer *o, const void *alias);
/* Writes hlo_aliases. */
void hlo_put_aliases(hlo_printer *o, const void *aliases);

#endif
