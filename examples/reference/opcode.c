/* SPDX-License-Identifier: Apache-2.0 */
/* Examples of opcode.h. */
#include "reference.h"

#include <string.h>

#include <hlo/opcode.h>

hlo_status example_opcode(void) {
    /* [opcodes] */
    const hlo_opcode opcode = hlo_opcode_parse("dot");
    if (opcode == HLO_OP_INVALID) return HLO_INVALID_INPUT;
    printf("opcode %d is %s\n", (int)opcode, hlo_opcode_name(opcode));
    /* [opcodes] */

    /* [types] */
    const hlo_element_type type = hlo_element_type_parse("f8e4m3fn");
    if (type == HLO_TYPE_INVALID) return HLO_INVALID_INPUT;
    printf("%s has %u bits\n", hlo_element_type_name(type), (unsigned)hlo_element_type_bits(type));
    /* [types] */
    return opcode == HLO_OP_DOT && type == HLO_TYPE_F8E4M3FN ? HLO_OK : HLO_INTERNAL;
}
