/* SPDX-License-Identifier: Apache-2.0 */
/* Interned strings and unique names; the string and shape tables of a module. */
#ifndef HLO_IR_INTERN_H
#define HLO_IR_INTERN_H

#include "ir/ir.h"

/* Returns the interned, NUL-terminated copy of `length` bytes. The bytes may contain NULs: compare
 * pointers, and use hlo_intern_length(). */
const char *hlo_intern(hlo_module *module, const char *bytes, size_t length);
const char *hlo_intern_string(hlo_module *module, const char *text);
size_t hlo_intern_length(const char *interned);

/* The instruction that a name is bound to while text is parsed. The scope of the binding is the id
 * of the instruction's computation plus one; 0: the name is not bound. The verifier, which runs
 * later, also uses bindings to find duplicate names. */
typedef struct hlo_symbol_binding {
    hlo_instruction *instr;
    uint32_t scope;
} hlo_symbol_binding;
hlo_symbol_binding hlo_intern_binding(const char *interned);
void hlo_intern_bind(const char *interned, hlo_symbol_binding binding);

/* Facts cached for an interned string; initially all zero. */
typedef struct hlo_string_cache {
    hlo_computation *comp;  /* the computation with that name in the text */
    const hlo_shape *shape; /* the shape with that text */
    const void *config;     /* the backend_config that matmul/ has parsed from the string */
    hlo_attr read;          /* the attribute that the string was last parsed as; all zero: it was
                             * not parsed */
    uint32_t suffix;        /* the last N that was tried for `name.N` */
    uint8_t op, attr; /* the opcode and the attribute with that name, each plus one; 0: not looked
                       * up yet */
} hlo_string_cache;
/* Returns the cache of a string, created on first use; valid until the module is freed. */
hlo_string_cache *hlo_intern_cache(hlo_module *module, const char *interned);

/* Namespaces: an instruction and a computation may share a name, two instructions may not. */
typedef enum hlo_namespace { HLO_NAME_INSTR, HLO_NAME_COMPUTATION } hlo_namespace;
/* Reserves a free name: `interned` itself or, if that is taken, `interned` with the next free `.N`
 * in place of its own ending. O(1). */
const char *hlo_unique_name(hlo_module *module, hlo_namespace space, const char *interned);
/* Frees a name that hlo_unique_name() derived from `interned`. Names from the same string must be
 * freed in reverse order. */
void hlo_name_release(hlo_module *module, hlo_namespace space, const char *name,
                      const char *interned);

/* Create and free the tables of a module, for module.c. hlo_strings_free() frees memory outside the
 * arena; NULL is allowed. */
struct hlo_strings *hlo_strings_new(hlo_arena *arena);
/* Reserves space for about `count` strings. More strings may be added. */
void hlo_strings_reserve(hlo_module *module, size_t count);
void hlo_strings_free(struct hlo_strings *strings);
/* Frees all names, after all instructions and computations are removed. */
void hlo_strings_free_names(struct hlo_strings *strings);
struct hlo_shapeset *hlo_shapeset_new(hlo_arena *arena);

#endif
