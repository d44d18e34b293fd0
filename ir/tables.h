/* SPDX-License-Identifier: Apache-2.0 */
/* Element types, opcodes and attributes: the tables of ir/table/ as enumerators and data. */
#ifndef HLO_IR_TABLES_H
#define HLO_IR_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hlo/opcode.h"

typedef hlo_element_type hlo_type;
typedef hlo_opcode hlo_op;

/* The positions of the rows, which are the values of the public enumerators (tables.c). */
enum {
#define HLO_TYPE(id, name, bits, class) HLO_TYPE_ROW_##id,
#include "ir/table/type.def"
#undef HLO_TYPE
    HLO_TYPE_ROW_COUNT
};
enum {
#define HLO_OP(id, name, min, max, infer, flags, required, allowed, eval) HLO_OP_ROW_##id,
#include "ir/table/op.def"
#undef HLO_OP
    HLO_OP_ROW_COUNT
};

typedef enum hlo_type_class {
    HLO_CLASS_NONE,
    HLO_CLASS_PRED,
    HLO_CLASS_SIGNED,
    HLO_CLASS_UNSIGNED,
    HLO_CLASS_FLOAT,
    HLO_CLASS_COMPLEX
} hlo_type_class;

typedef struct hlo_type_info {
    const char *name;
    uint8_t bits;  /* bits of an element */
    uint8_t bytes; /* bytes of an element in memory; 0 for types without elements */
    uint8_t class; /* hlo_type_class */
} hlo_type_info;

extern const hlo_type_info hlo_types[HLO_TYPE_COUNT];

/* Finds a type by name; HLO_TYPE_INVALID if not found. */
hlo_type hlo_type_find(const char *name, size_t length);
/* True for a real float of any width. */
bool hlo_type_is_float(hlo_type type);
/* True for a signed or an unsigned integer. */
bool hlo_type_is_integer(hlo_type type);
/* True for a float of 8 bits. */
bool hlo_type_is_fp8(hlo_type type);

/* Flags of op.def. The result of an opcode that moves elements (HLO_MOVEMENT) consists of elements
 * of operand 0, and of the padding value of a pad. Frequently used combinations of the flags of
 * movement have a name. */
enum {
    HLO_COMMUTES = 1,
    HLO_ELEMENTWISE = 2,
    HLO_SIDE_EFFECT = 4,
    HLO_COLLECTIVE = 8,
    HLO_NONDET = 16,
    HLO_TRANSCENDENTAL = 32,
    HLO_COPIES = 64,
    HLO_RESHAPES = 128, /* keeps the order of elements, in memory or row-major */
    HLO_REPEATS = 256,
    HLO_TRANSPOSES = 512,
    HLO_REVERSES = 1024,
    HLO_TAKES_PART = 2048,
    HLO_PADS = 4096,
    HLO_JOINS = 8192, /* each element is an element of one of several operands */
    HLO_SOLE_CALLER = 16384,
    HLO_REORDERS = HLO_COPIES | HLO_TRANSPOSES,
    HLO_KEEPS_ORDER = HLO_COPIES | HLO_RESHAPES,
    HLO_MOVES_DIMENSIONS =
        HLO_KEEPS_ORDER | HLO_REPEATS | HLO_TRANSPOSES, /* moves whole dimensions */
    HLO_REARRANGES = HLO_MOVES_DIMENSIONS | HLO_REVERSES | HLO_TAKES_PART, /* adds no element */
    HLO_MOVEMENT = HLO_REARRANGES | HLO_PADS
};

typedef enum hlo_attr_id {
#define HLO_ATTR(id, name, kind) HLO_ATTR_##id,
#include "ir/table/attr.def"
#undef HLO_ATTR
    HLO_ATTR_COUNT,
    HLO_ATTR_INVALID = HLO_ATTR_COUNT
} hlo_attr_id;

typedef enum hlo_attr_kind {
    HLO_KIND_INT,
    HLO_KIND_BOOL,
    HLO_KIND_FLOAT,
    HLO_KIND_WORD,
    HLO_KIND_STRING,
    HLO_KIND_FORM,
    HLO_KIND_GROUPS,
    HLO_KIND_SHARDING,
    HLO_KIND_ALIASES,
    HLO_KIND_RAW,
    HLO_KIND_INTS,
    HLO_KIND_SIZES,
    HLO_KIND_SLICES,
    HLO_KIND_PADDING,
    HLO_KIND_COMPUTATION,
    HLO_KIND_COMPUTATIONS,
    HLO_KIND_INSTRS,
    HLO_KIND_SHAPES,
    HLO_KIND_SHAPE,
    HLO_KIND_LITERAL,
    HLO_KIND_LAYOUT,
    HLO_KIND_ATTRS,
    HLO_KIND_BYTES
} hlo_attr_kind;

typedef struct hlo_attr_info {
    const char *name;
    hlo_attr_kind kind;
} hlo_attr_info;

extern const hlo_attr_info hlo_attrs_info[HLO_ATTR_COUNT];

/* Finds an attribute by name; HLO_ATTR_INVALID if not found. */
hlo_attr_id hlo_attr_find(const char *name, size_t length);
/* Finds the attribute of that name that `op` has, because slice_sizes names two. */
hlo_attr_id hlo_attr_find_of(hlo_op op, const char *name);

typedef struct hlo_op_info {
    const char *name;
    uint8_t min_operands;
    uint8_t max_operands; /* HLO_ANY: no upper bound */
    uint16_t flags;
    const uint8_t *required, *allowed; /* hlo_attr_id, terminated by HLO_ATTR_COUNT */
} hlo_op_info;

enum { HLO_ANY = 255 };

extern const hlo_op_info hlo_ops[HLO_OP_COUNT];

static inline bool hlo_op_is(hlo_op op, unsigned flags) {
    return (hlo_ops[op].flags & flags) != 0;
}

/* Finds an opcode by name; HLO_OP_INVALID if not found. */
hlo_op hlo_op_find(const char *name, size_t length);
/* Attributes that every instruction may have; terminated by HLO_ATTR_COUNT. */
extern const uint8_t hlo_common_attrs[];
/* True if `attr` is in the opcode's row of op.def, required or allowed. */
bool hlo_op_has(hlo_op op, hlo_attr_id attr);
/* True if an `op` may have `attr`: the attribute is required, allowed, or common to all
 * instructions. */
bool hlo_op_allows(hlo_op op, hlo_attr_id attr);
/* Returns the words that are values of the attribute on an `op` (ir/table/attr_value.def), each
 * preceded by a space. Returns NULL if HLO does not restrict the values. */
const char *hlo_attr_values(hlo_op op, hlo_attr_id attr);
/* True if `word` is in `words`, a list of hlo_attr_values(). */
bool hlo_word_in(const char *words, const char *word, size_t length);
/* True if `next` may be the user of a `start` (ir/table/async_pair.def). HLO_OP_INVALID stands for
 * any opcode: hlo_op_async_pair(op, HLO_OP_INVALID) is true if `op` is a start. */
bool hlo_op_async_pair(hlo_op start, hlo_op next);

#endif
