/* SPDX-License-Identifier: Apache-2.0 */
/* The edit of a module: its arguments, its checks, and the parser of new instructions. */
#ifndef HLO_API_EDIT_H
#define HLO_API_EDIT_H

#include "hlo/edit.h"
#include "ir/text/printer.h"

/* The arguments and results of an edit, and the memory that is freed when the edit ends. */
typedef struct edit {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_module *read; /* a module that the edit parsed from `text`, or NULL */
    hlo_printer text; /* the text of `read` */
    hlo_computation *comp;
    hlo_instruction *instr, *other;
    uint32_t index;
    const char *name, *value;
    const hlo_shape *shape;
    hlo_instruction_options options;
    hlo_instruction *made;
    hlo_computation *made_comp;
} edit;

typedef hlo_status edit_step(edit *e);

/* Returns a handle as an object that may be changed, because the caller has its module. */
static inline hlo_instruction *edit_own_instr(const hlo_instruction *instruction) {
    return (hlo_instruction *)(uintptr_t)instruction;
}
static inline hlo_computation *edit_own_comp(const hlo_computation *computation) {
    return (hlo_computation *)(uintptr_t)computation;
}

/* The parts of an instruction that is parsed. */
typedef struct fragment {
    const char *opcode;
    const char *shape, *attributes; /* NULL if absent */
    const hlo_literal *literal;     /* the elements of a constant */
    hlo_instruction *const *operands;
    uint32_t operand_count;
} fragment;

/* The parts of an instruction after parsing, copied to e->module. */
typedef struct fragment_parts {
    hlo_op op;
    const hlo_shape *shape;
    const hlo_attr *attrs;
    uint32_t attr_count;
} fragment_parts;

/* Emits an error at the source location of `at`, or without a location if `at` is NULL. Returns
 * HLO_INVALID_USAGE. */
hlo_status edit_refuse(const edit *e, const hlo_instruction *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Runs an edit of e->module, which must contain e->comp and e->instr unless they are NULL. If
 * memory runs out in the module's arena, marks the module as exhausted; an exhausted module rejects
 * all further edits. */
hlo_status edit_run(edit *e, edit_step *step);
/* Starts e->text as an empty text that can grow. Returns false if memory runs out. */
bool edit_open_text(edit *e);
/* True if `a` is before `b` in their common computation; walks from `a` in both directions. */
bool edit_is_before(const hlo_instruction *a, const hlo_instruction *b);
/* Checks that `value` can be an operand in e->comp of an instruction that is inserted before
 * `before` (NULL: at the end). The error calls the value `role`. */
hlo_status edit_check_operand(const edit *e, const hlo_instruction *value,
                              const hlo_instruction *before, const char *role);
/* Checks a single instruction. Emits an error and returns HLO_INVALID_INPUT if the instruction is
 * invalid. */
hlo_status edit_check_fault(const edit *e, const hlo_instruction *instr);

/* The first error that a parser reports within `text`, which is a part of what it parses; the rest
 * was composed and must not be reported. */
typedef struct kept_error {
    const char *text;
    char message[256]; /* begins with ": "; or "" */
} kept_error;
/* A sink for a kept_error. */
void edit_keep_error(void *error, const hlo_diag *diag);

/* Parses an instruction for e->comp. Emits errors and returns HLO_INVALID_INPUT if the instruction
 * is invalid. */
hlo_status edit_read(edit *e, const fragment *f, fragment_parts *out);
/* True if the strings and comments of `text` end in it, so that text can follow. A `//` comment
 * would end after it. */
bool edit_is_closed(const char *text);
/* True if the parser accepts the name. */
bool edit_is_name(const char *name);

/* Returns the source location for the new instruction: the location of `like`, or of the
 * instruction at which the new one is inserted. */
uint32_t edit_place_of(const edit *e);
/* Checks that an instruction can be inserted in e->comp before `before`, or that it is NULL. */
hlo_status edit_check_before(const edit *e, const hlo_instruction *before);
/* Checks that an instruction or a computation can have this name, or that it is NULL. */
hlo_status edit_check_name(const edit *e, const char *name);
/* Returns the shape of e->module that is equal to `shape`, which may belong to another module. */
const hlo_shape *edit_shape(edit *e, const hlo_shape *shape);
/* Runs an edit that creates an instruction. */
hlo_status edit_finish(edit *e, edit_step *step, const hlo_instruction **out);

#endif
