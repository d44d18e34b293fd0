/* Any message in protobuf's text format. */
#ifndef HLO_GRAMMAR_PBTXT_H
#define HLO_GRAMMAR_PBTXT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdio.h>

#include "ir/arena.h"

/* A line per field, in the order of their numbers; fields that have their default are left out, and
 * fields that the schema does not know stand by their number. False when writing fails. */
bool hlo_pbtxt_print(hlo_arena *scratch, const ProtobufCMessage *message, FILE *out);

#endif
