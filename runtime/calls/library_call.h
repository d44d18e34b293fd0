/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers of the functions that build the opcodes of a library's call. Such a function returns the
 * array that the call computes, or a tuple of arrays that are the first elements of the call's
 * result. It returns NULL after an error. */
#ifndef HLO_RUNTIME_CALLS_LIBRARY_CALL_H
#define HLO_RUNTIME_CALLS_LIBRARY_CALL_H

#include "ir/expand/expansion.h"
#include "matmul/json.h"

/* Variants of the calls that one function builds. For Fourier transforms, the variant is 1 if the
 * descriptor is dynamic. */
enum { CALL_BIASED = 1, CALL_BACKWARD = 2 };
typedef enum call_gradient { CALL_FORWARD, CALL_OF_INPUT, CALL_OF_KERNEL } call_gradient;

/* The call at x->build->at. */
typedef struct library_call {
    expansion *x;
    hlo_builder *b;
    const char *target;
    unsigned variant;
    const hlo_shape *want; /* shape of the first array that the call computes */
} library_call;

/* Reports the error "of "TARGET" TEXT" at the call. Returns NULL. */
void *call_refuse(const library_call *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
hlo_instruction *call_operand(const library_call *c, uint32_t index);
/* True for a static array of floats. */
bool call_is_float_array(const hlo_shape *shape);
/* Returns the type in which floats are computed: f64, or f32 for narrower types. */
hlo_type call_computed(hlo_type type);
hlo_instruction *call_widen(const library_call *c, hlo_instruction *value);
hlo_instruction *call_binary(const library_call *c, hlo_op op, hlo_instruction *x,
                             hlo_instruction *y);
hlo_instruction *call_with(const library_call *c, hlo_op op, hlo_instruction *x, double number);
/* Reduces `count` dimensions of x. The result has the other dimensions, in order. */
hlo_instruction *call_reduce(const library_call *c, hlo_op op, hlo_instruction *x, uint32_t count,
                             const int64_t *dims);
/* Reduces `count` dimensions of x, and broadcasts the result to the shape of x. */
hlo_instruction *call_reduce_along(const library_call *c, hlo_op op, hlo_instruction *x,
                                   uint32_t count, const int64_t *dims);
/* Broadcasts a value as numpy does: dimensions are aligned at the last one. Converts it to the type
 * of `like`. Returns NULL, without an error, if it is not an array of floats whose dimensions fit.
 */
hlo_instruction *call_broadcast(const library_call *c, hlo_instruction *value,
                                const hlo_shape *like);
/* Applies the activation of a name, in any case: relu, relu6, tanh, sigmoid, elu. Returns NULL,
 * without an error, for another name. */
hlo_instruction *call_activation(const library_call *c, const char *name, hlo_instruction *x);

/* Reads the backend_config. If it is not a JSON object, sets `*wrong` to `key`, the member that the
 * caller reads. The caller releases the value with json_decref() before it builds instructions: a
 * JSON object would leak if building runs out of memory. */
json_t *call_config(const library_call *c, const char *key, const char **wrong);
/* Read members of a JSON object. If a member has another type than expected, they set `*wrong` to
 * its key, and return the value of an absent member: NULL, 0 or false. JSON_TRUE is any flag.
 * Integers may be strings. */
const json_t *call_member(const char **wrong, const json_t *object, const char *key,
                          json_type type);
int64_t call_integer(const char **wrong, const json_t *object, const char *key);
double call_number(const char **wrong, const json_t *object, const char *key);
bool call_flag(const char **wrong, const json_t *object, const char *key);
/* Returns a dimension, which may be a string, or -1 if the value is another one. */
int64_t call_index(const json_t *value);
/* Returns the index of a word in `names`; the word may also be the index. */
uint32_t call_choice(const char **wrong, const json_t *object, const char *key, uint32_t count,
                     const char *const *names);
/* Returns false after an error if `wrong` is a key. */
bool call_config_fits(const library_call *c, const char *wrong);

hlo_instruction *call_convolution(const library_call *c);
hlo_instruction *call_convolution_fused(const library_call *c);
hlo_instruction *call_convolution_graph(const library_call *c);

/* Normalizes the last dimension of operand 0. Operands 1 and 2 are the scale and the shift. */
hlo_instruction *call_layer_norm(const library_call *c, double epsilon);
hlo_instruction *call_norm(const library_call *c);

hlo_instruction *call_attention(const library_call *c);

#endif
