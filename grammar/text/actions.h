/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of hlo.y, which build the IR in the order of the text, and the checks that they call.
 */
#ifndef HLO_GRAMMAR_TEXT_ACTIONS_H
#define HLO_GRAMMAR_TEXT_ACTIONS_H

#include "grammar/scan/parser.h"

/* ------------------------------------------------------------------ the module (computations.c) */

/* Opens the header. `name` is NULL if the text has none. */
void hlo_text_header(hlo_text *text, const char *name);
void hlo_text_header_done(hlo_text *text);
/* Adds a row to FileNames. */
void hlo_text_file(hlo_text *text, hlo_span at, int64_t number, const char *name);
/* Adds a row to FunctionNames. */
void hlo_text_function(hlo_text *text, hlo_span at, int64_t number, const char *name);
/* Closes the frame of a row of FileLocations or StackFrames, and adds the row to that table. */
void hlo_text_row_end(hlo_text *text, hlo_span at, int64_t number);

/* --------------------------------------------------------------------------------- computations */

/* Opens a computation. `name` is NULL for an inline one. */
void hlo_text_body_begin(hlo_text *text, hlo_span at, const char *name, bool entry);
/* Sets the result shape that the signature of the computation has. */
void hlo_text_body_result(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Closes the body. The attributes of the computation follow. */
void hlo_text_body_end(hlo_text *text, hlo_span at);
/* Closes the computation and returns it. */
hlo_computation *hlo_text_computation_done(hlo_text *text);
/* Opens the module and the computation around a text that is a single instruction. */
void hlo_text_single_instr_begin(hlo_text *text, hlo_span at);
/* Drops the open definition after a syntax error in a body. `undefined` is the name at `at`, or
 * NULL. If only its `=` is missing, binds the name to &text->broken. */
void hlo_text_recover(hlo_text *text, hlo_span at, const char *undefined);
/* Drops the open attribute after a syntax error in the header. */
void hlo_text_recover_header(hlo_text *text);
/* Drops the open computation after a syntax error between computations. */
void hlo_text_recover_top(hlo_text *text, hlo_span at);

/* ---------------------------------------------------------------- instructions (instructions.c) */

/* Sets the name of the next instruction. */
void hlo_text_define(hlo_text *text, hlo_span at, const char *name, bool root);
/* Opens an instruction at its opcode. `opcode` is NULL for a constant. `shape` is NULL if the text
 * has no shape. */
void hlo_text_instr_begin(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *opcode);
/* Checks the instruction, builds it and closes its frame. Returns &text->broken after an error. */
hlo_instruction *hlo_text_instr_end(hlo_text *text);
/* Calls hlo_text_instr_end() unless an attribute follows. The parser must not have a lookahead
 * token: the instruction must have ended before an error in the next token is reported. */
void hlo_text_instr_part(hlo_text *text);
/* Adds the operand `name`. `shape` is NULL if the text has no shape. */
void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name);
/* Adds operands from the position of the scanner on, as long as they are only names. Leaves a name
 * before any other operand to the parser. This is faster than a token for each name. The parser
 * must not have a lookahead token. */
void hlo_text_names(hlo_text *text);
/* Adds the operand `instr`, whose shape in the text must be that of its definition. */
void hlo_text_operand_shaped(hlo_text *text, hlo_span at, const hlo_shape *shape,
                             hlo_instruction *instr);
void hlo_text_operand_instr(hlo_text *text, hlo_instruction *instr);
/* Adds an operand of which the text has only the shape. If the text is a single instruction,
 * creates a parameter for the operand. In any other text, reports an error and returns false. */
bool hlo_text_nameless(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Returns the get-tuple-element for `name#2`, which is named `name_2` and shared by all uses. */
hlo_instruction *hlo_text_element(hlo_text *text, hlo_span at, hlo_instruction *tuple,
                                  int64_t index);
void hlo_text_parameter(hlo_text *text, hlo_span at, int64_t number);
void hlo_text_constant(hlo_text *text, const hlo_literal *literal);

/* -------------------------------------------------------------------- attributes (attributes.c) */

/* Adds an attribute to the innermost frame, or reports why its owner cannot have it. */
void hlo_text_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* Adds an attribute and caches it by its text. */
void hlo_text_new_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* Adds an integer. Some attributes have only 32 bits. */
void hlo_text_int_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       int64_t value);
/* Adds a word, or reports that it is not a value of the attribute. */
void hlo_text_word_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                        const char *word);
/* Adds raw text or, if the attribute has a notation, the value that the text represents. Returns
 * false for malformed text. */
bool hlo_text_raw_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       const char *value);
/* Opens metadata= or window=. */
void hlo_text_nested_begin(hlo_text *text, hlo_attr_id id);
/* Closes metadata= or window=, and adds it to the enclosing frame. */
void hlo_text_nested_end(hlo_text *text, hlo_span at);
/* Finds the attribute in the cache whose text, `name={...}` or `name=1`, begins at `name`. Returns
 * the length of the text; 0 if the cache does not have the attribute. */
uint32_t hlo_text_known_attr(const hlo_text *text, hlo_span name, hlo_attr *out);
/* Copies the attributes of the innermost frame to the memory of the module. */
const hlo_attr *hlo_text_take_attrs(hlo_text *text, const hlo_frame *frame);
/* Drops the attributes that equal their defaults for `op`. `op` is HLO_OP_INVALID unless the owner
 * is an instruction. */
void hlo_text_drop_defaults(hlo_text *text, const hlo_frame *frame, hlo_op op);
/* Sets the dimensions of a map to all dimensions of the result, as XLA does, regardless of the
 * text. */
void hlo_text_map_all(hlo_text *text, const hlo_frame *frame);
/* Finds an attribute of the innermost frame; NULL if it is not given. */
hlo_attr *hlo_text_given(const hlo_text *text, const hlo_frame *frame, hlo_attr_id id);
/* Adds the attributes that XLA prints for `op` even if they are not given. */
void hlo_text_add_implied(hlo_text *text, const hlo_frame *frame, hlo_op op);

/* ---------------------------------------------------------------------------- names (symbols.c) */

/* Reports a name that is a keyword or, with `types_too`, an element type. Returns true after such
 * an error. */
bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too);
/* Finds the instruction `name` in the innermost computation: &text->broken if its definition had an
 * error, NULL if not found. */
hlo_instruction *hlo_text_find_instr(hlo_text *text, const char *name);
/* Finds the instruction that is used at `at`. Reports an error and returns &text->broken if it is
 * not defined. */
hlo_instruction *hlo_text_named(hlo_text *text, hlo_span at, const char *name);
/* Binds a name in the innermost computation. */
void hlo_text_bind(hlo_text *text, const char *name, hlo_instruction *instr);
/* Restores the bindings that an inline computation has hidden since text->hidden.used was `from`.
 */
void hlo_text_unhide(hlo_text *text, size_t from);
/* Pushes the instruction that is used at `at` on text->instrs. */
void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name);
/* Moves text->instrs to an attribute. */
hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id);
/* Finds the computation that is called at `at`. Reports an error and returns NULL if it is not
 * defined. */
hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name);
/* Moves the computations at byte `from` and later from text->comps to an attribute. */
hlo_attr hlo_text_comps(hlo_text *text, hlo_attr_id id, size_t from);

/* Sets the name that the text has for an instruction. As in XLA, names become unique in the order
 * in which computations end: first in an inline computation, then in the computation around it. */
void hlo_text_give_name(hlo_text *text, hlo_instruction *instr, const char *name);
/* Reverts the unique names of the open body, because an inline computation begins. */
void hlo_text_names_later(hlo_text *text);
/* Makes the names of a computation unique at its end, except the name of the computation itself if
 * it is `bare`. */
void hlo_text_names_now(hlo_text *text, hlo_computation *comp, bool bare);

/* -------------------------------------------------------------------------- the scanner (hlo.l) */

union HLO_YYSTYPE;
/* Attaches a scanner to text->source. */
void hlo_text_scan_begin(hlo_text *text);
/* Returns the next token; after a syntax error, the next one where parsing can resume. */
int hlo_text_next(union HLO_YYSTYPE *value, hlo_span *at, hlo_text *text);
/* Drops tokens, from the syntax error at `token` up to one where parsing can resume. */
void hlo_text_skip(hlo_text *text, int token, hlo_span at, hlo_resume where);
/* Has the scanner read a literal of shape `shape` as the next token. */
void hlo_text_want_literal(hlo_text *text, const hlo_shape *shape);

#endif
