/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes with default values, which are equivalent to absent ones. */
#include <string.h>

#include "ir/intern.h"
#include "ir/ir.h"

static const struct {
    bool any;
    int8_t number;
    const char *text;
} defaults[HLO_ATTR_COUNT] = {
#define HLO_ATTR_DEFAULT(attr, number, text) [HLO_ATTR_##attr] = {true, number, text},
#include "ir/table/attr_default.def"
#undef HLO_ATTR_DEFAULT
};

const char *hlo_compare_default_type(const hlo_shape *operand) {
    switch ((hlo_type_class)hlo_types[operand->type].class) {
    case HLO_CLASS_SIGNED: return "SIGNED";
    case HLO_CLASS_FLOAT:
    case HLO_CLASS_COMPLEX: return "FLOAT";
    default: return "UNSIGNED";
    }
}

bool hlo_attr_is_default(const hlo_attr *attr, hlo_op op, const hlo_shape *operand) {
    hlo_attr_kind kind = hlo_attrs_info[attr->id].kind;
    if (attr->id == HLO_ATTR_TYPE && op == HLO_OP_COMPARE)
        return operand && strcmp(attr->u.str, hlo_compare_default_type(operand)) == 0;
    if (attr->id == HLO_ATTR_ALGORITHM && op == HLO_OP_DOT)
        return strcmp(attr->u.str, "unset") == 0;
    if (attr->id == HLO_ATTR_WINDOW && op == HLO_OP_CUSTOM_CALL) return false;
    if (attr->id == HLO_ATTR_MODE || /* both are parsed and dropped */
        (attr->id == HLO_ATTR_DIMENSIONS && op == HLO_OP_RAGGED_ALL_TO_ALL))
        return true;
    if (kind == HLO_KIND_FORM || kind == HLO_KIND_ALIASES)
        return hlo_intern_length(hlo_attr_text(attr)) == 0;
    if (!defaults[attr->id].any) return false;
    switch (kind) {
    case HLO_KIND_INT:
    case HLO_KIND_BOOL: return attr->u.i == defaults[attr->id].number;
    case HLO_KIND_WORD:
    case HLO_KIND_STRING: return strcmp(attr->u.str, defaults[attr->id].text) == 0;
    case HLO_KIND_INTS: return attr->u.ints->count == 0;
    case HLO_KIND_COMPUTATIONS: return attr->u.comps->count == 0;
    case HLO_KIND_ATTRS: return attr->u.attrs->count == 0;
    default: return false;
    }
}
