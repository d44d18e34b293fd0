/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of hlo_arrays, and the leaves of a module's signature. */
#ifndef HLO_RUNTIME_IO_ARRAYS_H
#define HLO_RUNTIME_IO_ARRAYS_H

#include "hlo/runtime.h"
#include "ir/ir.h"

struct hlo_arrays {
    hlo_array *items;
    size_t count, capacity;
    /* How a run on these inputs draws the values that the module reads from the host. */
    uint64_t seed;
    hlo_draw draw;
};

void hlo_arrays_clear(hlo_arrays *arrays);
/* Adds an array of zeros and returns it, or NULL if memory runs out or the size overflows. */
hlo_array *hlo_arrays_add(hlo_arrays *arrays, hlo_type type, uint32_t rank, const int64_t *dims,
                          bool bound);

/* Moves all arrays to the end of another list. Returns false if memory runs out. */
bool hlo_arrays_move(hlo_arrays *from, hlo_arrays *to);
/* Returns the number of arrays that are results of the entry computation. They precede the arrays
 * that the run sent to the host, which have names. */
size_t hlo_arrays_results(const hlo_arrays *arrays);

/* Draws leaf `leaf` of the `number`-th value that a device receives from the host: from the channel
 * of a `recv`, or with `channel` -1 from the infeed. The elements depend only on the arguments and
 * on inputs->seed and inputs->draw. */
void hlo_draw_received(const hlo_arrays *inputs, uint32_t device, int64_t channel, uint64_t number,
                       uint32_t leaf, hlo_type type, void *out, size_t size);
/* Returns the device whose array `device` has for leaf `leaf` of a value with this sharding, which
 * may be NULL. */
uint32_t hlo_draw_source(hlo_arena *arena, const hlo_sharding *sharding, size_t leaf,
                         uint32_t device, uint32_t devices);

/* Copies an array of the caller, whose struct may be smaller. Returns false if its struct_size or
 * its type is invalid. */
bool hlo_array_take(const hlo_array *given, hlo_array *out);

/* Extends elements of fewer than 8 bits, which another program wrote, to the form of a literal. The
 * upper bits of each byte then repeat the sign of a signed integer, or are 0. (ml_dtypes leaves
 * them 0.) */
void hlo_array_extend(hlo_array *array);

/* Prints an element: an integer with all digits, a complex number as (REAL, IMAGINARY). */
void hlo_print_number(hlo_type type, const void *element, FILE *out);

/* The array shapes in a list of shapes: the leaves of tuples in order, without tokens. */
typedef struct hlo_leaves {
    const hlo_shape **shapes; /* count entries */
    uint32_t *owners;         /* for each leaf, the index of its shape */
    size_t count;
} hlo_leaves;

/* Finds the leaves of the entry computation's parameters or result. The caller frees them with
 * hlo_leaves_free(). Returns HLO_OUT_OF_MEMORY if memory runs out. */
hlo_status hlo_leaves_of(const hlo_module *module, hlo_role role, hlo_leaves *out);
void hlo_leaves_free(hlo_leaves *leaves);

/* Checks `inputs` against the leaves of the parameters. If the number of arrays, or a type or
 * dimensions differ, emits an error to `sink` and returns HLO_INVALID_INPUT. */
hlo_status hlo_leaves_check(const hlo_leaves *leaves, const hlo_module *module,
                            const hlo_arrays *inputs, const hlo_diag_sink *sink);

/* Checks `array` against the leaf of input `index` in the same way. */
hlo_status hlo_leaf_check(const hlo_leaves *leaves, const hlo_module *module, size_t index,
                          const hlo_array *array, const hlo_diag_sink *sink);

/* Writes the name of leaf `leaf` of an instruction's value: the instruction's name or, for leaf 0
 * of a tuple, `NAME{0}`. Returns the length of the name, like snprintf(). */
int hlo_leaf_name(const hlo_instruction *instr, size_t leaf, char *out, size_t size);

/* Writes the name of an input or output for messages, "parameter 3" or "output 3". */
void hlo_role_name(hlo_role role, size_t index, char *out, size_t size);

#endif
