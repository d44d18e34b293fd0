/* SPDX-License-Identifier: Apache-2.0 */
/* The frame of an edit. */
#ifndef HLO_API_EDIT_H
#define HLO_API_EDIT_H

#include "hlo/edit.h"
#include "ir/ir.h"
#include "ir/text/printer.h"

/* An edit: arguments, results, and memory to give back however it ends. */
typedef struct edit {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_module *read; /* a module that was read from text; NULL */
    hlo_printer text; /* its text */
    hlo_computation *comp;
    hlo_instr *instr, *other;
    uint32_t index;
    const char *name, *value;
    hlo_instruction_options options;
    hlo_instr *made;
    hlo_computation *made_comp;
} edit;

/* Does an edit. When memory runs out in the module's arena, the module is marked as exhausted,
 * which refuses all further edits. */
typedef hlo_status edit_step(edit *e);
hlo_status edit_run(edit *e, edit_step *step);

/* Empties e->text, which grows; false: there is no memory. */
bool edit_open_text(edit *e);

/* Emits an error at the place of `at`; NULL: at none. Returns HLO_INVALID_USAGE. */
hlo_status edit_refuse(const edit *e, const hlo_instr *at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True if `a` stands before `b`, of the same computation; walks from `a` in both directions. */
bool edit_is_before(const hlo_instr *a, const hlo_instr *b);
/* Checks that `value` can be an operand in e->comp, before `before` (NULL: at the end), and names
 * it by `role` if it cannot. */
hlo_status edit_check_operand(const edit *e, const hlo_instr *value, const hlo_instr *before,
                              const char *role);
/* Checks an instruction by itself. HLO_INVALID_INPUT, with an error. */
hlo_status edit_check_instr(const edit *e, const hlo_instr *instr);

/* Logs a replacement, if the module has a log. */
void edit_note_replaced(const edit *e, const hlo_instr *from, const hlo_instr *to);
/* Sets the module's entry_computation_layout. */
void edit_set_layout(const edit *e, const hlo_shapes *layout);

/* The parts of an instruction, as text where they are text. */
typedef struct fragment {
    const char *opcode;
    const char *shape, *attributes; /* NULL: none */
    const hlo_literal *literal;     /* of a constant */
    hlo_instr *const *operands;
    uint32_t operand_count;
} fragment;

/* An instruction that was read from text: its parts, copied to e->module. */
typedef struct fragment_parts {
    hlo_op op;
    const hlo_shape *shape;
    const hlo_attr *attrs;
    uint32_t attr_count;
} fragment_parts;

/* True if text can have the name. */
bool fragment_is_name(const char *name);
/* Reads an instruction of e->comp. HLO_INVALID_INPUT, with errors. */
hlo_status fragment_read(edit *e, const fragment *f, fragment_parts *out);

#endif
