/* SPDX-License-Identifier: Apache-2.0 */
/* Opcodes and element types, and their names in HLO text. An enumerator keeps its value; a patch
 * release may add enumerators at the end. */
#ifndef HLO_OPCODE_H
#define HLO_OPCODE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The opcode of an instruction. */
typedef enum hlo_opcode {
    HLO_OP_PARAMETER = 0,
    HLO_OP_CONSTANT = 1,
    HLO_OP_IOTA = 2,
    HLO_OP_ABS = 3,
    HLO_OP_ACOS = 4,
    HLO_OP_ACOSH = 5,
    HLO_OP_ASIN = 6,
    HLO_OP_ASINH = 7,
    HLO_OP_ATANH = 8,
    HLO_OP_CBRT = 9,
    HLO_OP_CEIL = 10,
    HLO_OP_COSINE = 11,
    HLO_OP_COSH = 12,
    HLO_OP_CLZ = 13,
    HLO_OP_ERF = 14,
    HLO_OP_EXP = 15,
    HLO_OP_EXPM1 = 16,
    HLO_OP_FLOOR = 17,
    HLO_OP_IMAG = 18,
    HLO_OP_IS_FINITE = 19,
    HLO_OP_LOG = 20,
    HLO_OP_LOG1P = 21,
    HLO_OP_LOGISTIC = 22,
    HLO_OP_NEGATE = 23,
    HLO_OP_NOT = 24,
    HLO_OP_POPCNT = 25,
    HLO_OP_REAL = 26,
    HLO_OP_ROUND_AFZ = 27,
    HLO_OP_ROUND_EVEN = 28,
    HLO_OP_RSQRT = 29,
    HLO_OP_SIGN = 30,
    HLO_OP_SINE = 31,
    HLO_OP_SINH = 32,
    HLO_OP_SQRT = 33,
    HLO_OP_TAN = 34,
    HLO_OP_TANH = 35,
    HLO_OP_CONVERT = 36,
    HLO_OP_BITCAST_CONVERT = 37,
    HLO_OP_REDUCE_PRECISION = 38,
    HLO_OP_ADD = 39,
    HLO_OP_AND = 40,
    HLO_OP_ATAN2 = 41,
    HLO_OP_COMPARE = 42,
    HLO_OP_COMPLEX = 43,
    HLO_OP_DIVIDE = 44,
    HLO_OP_MAXIMUM = 45,
    HLO_OP_MINIMUM = 46,
    HLO_OP_MULHI = 47,
    HLO_OP_MULTIPLY = 48,
    HLO_OP_OR = 49,
    HLO_OP_POWER = 50,
    HLO_OP_REMAINDER = 51,
    HLO_OP_SHIFT_LEFT = 52,
    HLO_OP_SHIFT_RIGHT_ARITHMETIC = 53,
    HLO_OP_SHIFT_RIGHT_LOGICAL = 54,
    HLO_OP_STOCHASTIC_CONVERT = 55,
    HLO_OP_SUBTRACT = 56,
    HLO_OP_XOR = 57,
    HLO_OP_CLAMP = 58,
    HLO_OP_SELECT = 59,
    HLO_OP_BITCAST = 60,
    HLO_OP_BROADCAST = 61,
    HLO_OP_CONCATENATE = 62,
    HLO_OP_COPY = 63,
    HLO_OP_DYNAMIC_RESHAPE = 64,
    HLO_OP_DYNAMIC_SLICE = 65,
    HLO_OP_DYNAMIC_UPDATE_SLICE = 66,
    HLO_OP_GATHER = 67,
    HLO_OP_PAD = 68,
    HLO_OP_RESHAPE = 69,
    HLO_OP_REVERSE = 70,
    HLO_OP_SLICE = 71,
    HLO_OP_TRANSPOSE = 72,
    HLO_OP_CONVOLUTION = 73,
    HLO_OP_DOT = 74,
    HLO_OP_RAGGED_DOT = 75,
    HLO_OP_SCALED_DOT = 76,
    HLO_OP_REDUCE = 77,
    HLO_OP_REDUCE_WINDOW = 78,
    HLO_OP_SELECT_AND_SCATTER = 79,
    HLO_OP_SCATTER = 80,
    HLO_OP_SORT = 81,
    HLO_OP_SCAN = 82,
    HLO_OP_MAP = 83,
    HLO_OP_TOPK = 84,
    HLO_OP_BATCH_NORM_TRAINING = 85,
    HLO_OP_BATCH_NORM_GRAD = 86,
    HLO_OP_BATCH_NORM_INFERENCE = 87,
    HLO_OP_CHOLESKY = 88,
    HLO_OP_TRIANGULAR_SOLVE = 89,
    HLO_OP_FFT = 90,
    HLO_OP_TUPLE = 91,
    HLO_OP_GET_TUPLE_ELEMENT = 92,
    HLO_OP_CALL = 93,
    HLO_OP_FUSION = 94,
    HLO_OP_WHILE = 95,
    HLO_OP_CONDITIONAL = 96,
    HLO_OP_CUSTOM_CALL = 97,
    HLO_OP_OPT_BARRIER = 98,
    HLO_OP_DOMAIN = 99,
    HLO_OP_ADD_DEPENDENCY = 100,
    HLO_OP_AFTER_ALL = 101,
    HLO_OP_GET_DIMENSION_SIZE = 102,
    HLO_OP_SET_DIMENSION_SIZE = 103,
    HLO_OP_RNG = 104,
    HLO_OP_RNG_BIT_GENERATOR = 105,
    HLO_OP_RNG_GET_AND_UPDATE_STATE = 106,
    HLO_OP_ALL_GATHER = 107,
    HLO_OP_ALL_GATHER_START = 108,
    HLO_OP_ALL_GATHER_DONE = 109,
    HLO_OP_ALL_REDUCE = 110,
    HLO_OP_ALL_REDUCE_START = 111,
    HLO_OP_ALL_REDUCE_DONE = 112,
    HLO_OP_REDUCE_SCATTER = 113,
    HLO_OP_ALL_TO_ALL = 114,
    HLO_OP_RAGGED_ALL_TO_ALL = 115,
    HLO_OP_COLLECTIVE_BROADCAST = 116,
    HLO_OP_COLLECTIVE_PERMUTE = 117,
    HLO_OP_COLLECTIVE_PERMUTE_START = 118,
    HLO_OP_COLLECTIVE_PERMUTE_DONE = 119,
    HLO_OP_PARTITION_ID = 120,
    HLO_OP_REPLICA_ID = 121,
    HLO_OP_SEND = 122,
    HLO_OP_SEND_DONE = 123,
    HLO_OP_RECV = 124,
    HLO_OP_RECV_DONE = 125,
    HLO_OP_INFEED = 126,
    HLO_OP_OUTFEED = 127,
    HLO_OP_ASYNC_START = 128,
    HLO_OP_ASYNC_UPDATE = 129,
    HLO_OP_ASYNC_DONE = 130,
    HLO_OP_COPY_START = 131,
    HLO_OP_COPY_DONE = 132,
    HLO_OP_COUNT,        /* The number of opcodes. A later version may have more. */
    HLO_OP_INVALID = 255 /* No opcode. */
} hlo_opcode;

/* Returns the name of an opcode as in HLO text, such as "dot" for HLO_OP_DOT, or NULL if the opcode
 * does not exist. The string is static. */
const char *hlo_opcode_name(hlo_opcode opcode);

/* Returns the opcode whose name in HLO text is `name`, or HLO_OP_INVALID if it does not exist. */
hlo_opcode hlo_opcode_parse(const char *name);

/* The element type of an array, or the kind of a shape that is not an array. */
typedef enum hlo_element_type {
    HLO_TYPE_PRED = 0,
    HLO_TYPE_S1 = 1,
    HLO_TYPE_S2 = 2,
    HLO_TYPE_S4 = 3,
    HLO_TYPE_S8 = 4,
    HLO_TYPE_S16 = 5,
    HLO_TYPE_S32 = 6,
    HLO_TYPE_S64 = 7,
    HLO_TYPE_U1 = 8,
    HLO_TYPE_U2 = 9,
    HLO_TYPE_U4 = 10,
    HLO_TYPE_U8 = 11,
    HLO_TYPE_U16 = 12,
    HLO_TYPE_U32 = 13,
    HLO_TYPE_U64 = 14,
    HLO_TYPE_F4E2M1FN = 15,
    HLO_TYPE_F6E2M3FN = 16,
    HLO_TYPE_F6E3M2FN = 17,
    HLO_TYPE_F8E3M4 = 18,
    HLO_TYPE_F8E4M3 = 19,
    HLO_TYPE_F8E4M3B11FNUZ = 20,
    HLO_TYPE_F8E4M3FN = 21,
    HLO_TYPE_F8E4M3FNUZ = 22,
    HLO_TYPE_F8E5M2 = 23,
    HLO_TYPE_F8E5M2FNUZ = 24,
    HLO_TYPE_F8E8M0FNU = 25,
    HLO_TYPE_F16 = 26,
    HLO_TYPE_BF16 = 27,
    HLO_TYPE_F32 = 28,
    HLO_TYPE_F64 = 29,
    HLO_TYPE_C64 = 30,
    HLO_TYPE_C128 = 31,
    HLO_TYPE_TOKEN = 32,
    HLO_TYPE_OPAQUE = 33,
    HLO_TYPE_TUPLE = 34,
    HLO_TYPE_COUNT,        /* The number of types. A later version may have more. */
    HLO_TYPE_INVALID = 255 /* No type. */
} hlo_element_type;

/* Returns the name of an element type as in HLO text, such as "f8e4m3fn" for HLO_TYPE_F8E4M3FN, or
 * NULL if the type does not exist. The string is static. */
const char *hlo_element_type_name(hlo_element_type type);

/* Returns the element type whose name in HLO text is `name`, or HLO_TYPE_INVALID if it does not
 * exist. */
hlo_element_type hlo_element_type_parse(const char *name);

/* Returns the number of bits of an element, or 0 for a type without elements, such as
 * HLO_TYPE_TUPLE. An element of fewer than 8 bits occupies one byte in memory. */
size_t hlo_element_type_bits(hlo_element_type type);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
