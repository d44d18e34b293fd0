/* The actions of hlo.y, which build the IR in the order of the text, and the checks that they call.
 */
#ifndef HLO_GRAMMAR_TEXT_ACTIONS_H
#define HLO_GRAMMAR_TEXT_ACTIONS_H

#include "grammar/scan/parser.h"

/* ------------------------------------------------------------------------ the module (header.c) */

/* Opens the header; `name` NULL: it has none. */
void hlo_text_header(hlo_text *text, const char *name);
/* Closes the header. */
void hlo_text_header_done(hlo_text *text);
/* Adds a row to FileNames. */
void hlo_text_file(hlo_text *text, hlo_span at, int64_t number, const char *name);
/* Adds a row to FunctionNames. */
void hlo_text_function(hlo_text *text, hlo_span at, int64_t number, const char *name);
/* Opens a row of FileLocations or StackFrames. */
void hlo_text_row_begin(hlo_text *text, hlo_owner owner);
/* Closes the row and adds it to its table. */
void hlo_text_row_end(hlo_text *text, hlo_span at, int64_t number);
/* Hands the tables to the module. */
void hlo_text_take_tables(hlo_text *text);

/* ---------------------------------------------------------------- computations (computations.c) */

/* Opens a computation; `name` NULL: an inline one. */
void hlo_text_body_begin(hlo_text *text, hlo_span at, const char *name, bool entry);
/* Keeps the result shape of the computation's signature. */
void hlo_text_body_result(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Closes the body; the computation's attributes follow. */
void hlo_text_body_end(hlo_text *text, hlo_span at);
/* Closes the computation and returns it. */
hlo_computation *hlo_text_computation_done(hlo_text *text);
/* Opens the module and computation around a text that is a single instruction. */
void hlo_text_single_instr_begin(hlo_text *text, hlo_span at);
/* Closes the computation and the module around a single instruction. */
void hlo_text_single_instr_end(hlo_text *text, hlo_span at);
/* Drops the open definition after a syntax error in a body; `undefined`: the name at `at`, which
 * is bound to &text->broken if only its `=` is missing. */
void hlo_text_recover(hlo_text *text, hlo_span at, const char *undefined);
/* Drops the open attribute after a syntax error in the header. */
void hlo_text_recover_header(hlo_text *text);
/* Drops the open computation after a syntax error between computations. */
void hlo_text_recover_top(hlo_text *text, hlo_span at);

/* ---------------------------------------------------------------- instructions (instructions.c) */

/* Keeps the name of the definition that begins. */
void hlo_text_define(hlo_text *text, hlo_span at, const char *name, bool root);
/* Opens an instruction at its opcode; `opcode` NULL: constant. */
void hlo_text_instr_begin(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *opcode);
/* Checks the instruction, makes it and closes its frame; &text->broken after an error. */
hlo_instr *hlo_text_instr_end(hlo_text *text);
/* Ends the instruction unless an attribute follows. The parser must not have looked ahead. */
void hlo_text_instr_part(hlo_text *text);
/* Adds the operand `name`; `shape` NULL: the text has none. */
void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name);
/* Adds an operand whose text may have a shape. */
void hlo_text_operand_shaped(hlo_text *text, hlo_span at, const hlo_shape *shape, hlo_instr *instr);
/* Adds an operand that has been checked. */
void hlo_text_operand_instr(hlo_text *text, hlo_instr *instr);
/* Adds an operand that is a shape alone: a parameter of a single instruction; false elsewhere. */
bool hlo_text_nameless(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Returns the get-tuple-element that `name#2` stands for, called `name_2`: one for all its uses. */
hlo_instr *hlo_text_element(hlo_text *text, hlo_span at, hlo_instr *tuple, int64_t index);
/* Sets the number of a parameter. */
void hlo_text_parameter(hlo_text *text, hlo_span at, int64_t number);
/* Sets the value of a constant. */
void hlo_text_constant(hlo_text *text, const hlo_literal *literal);

/* -------------------------------------------------------------------- attributes (attributes.c) */

/* Adds an attribute to the innermost frame, if its owner may have it. */
void hlo_text_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* Adds an attribute and remembers it by its text. */
void hlo_text_new_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* Adds an integer, which some attributes hold in 32 bits. */
void hlo_text_int_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       int64_t value);
/* Adds a word, if it is one of the attribute's values. */
void hlo_text_word_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                        const char *word);
/* Adds raw text, or the value that its notation gives; false when the text is malformed. */
bool hlo_text_raw_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       const char *value);
/* Opens metadata= or window=. */
void hlo_text_nested_begin(hlo_text *text, hlo_attr_id id);
/* Closes metadata= or window=, and adds it to the frame around it. */
void hlo_text_nested_end(hlo_text *text, hlo_span at);
/* Copies the innermost frame's attributes to the module's memory. */
const hlo_attr *hlo_text_take_attrs(hlo_text *text, const hlo_frame *frame);

/* ------------------------------------------------------- attributes in XLA's form (canonical.c) */

/* Reads the value of an attribute with a notation of its own, written `raw` at `at`; NULL after an
 * error. Every other attribute's value is `raw`. */
hlo_attr hlo_text_formed(hlo_text *text, hlo_span at, hlo_attr_id id, const char *raw);
/* Drops the attributes that equal the default of `op`; HLO_OP_INVALID: of no instruction. */
void hlo_text_drop_defaults(hlo_text *text, const hlo_frame *frame, hlo_op op);
/* Reports a comma in front of a part of a window: spaces separate them. */
void hlo_text_no_comma(hlo_text *text, hlo_frame *frame);
/* Checks that the parts of a window have one rank, and drops defaults. */
void hlo_text_window(hlo_text *text, hlo_span at, hlo_frame *frame);
/* Sets a map's dimensions to all of the result's, whatever the text says. */
void hlo_text_map_all(hlo_text *text, const hlo_frame *frame);
/* Finds an attribute of the innermost frame; NULL when it is not given. */
hlo_attr *hlo_text_given(const hlo_text *text, const hlo_frame *frame, hlo_attr_id id);
/* Adds the attributes that XLA prints for an `op` even when they are not given. */
void hlo_text_add_implied(hlo_text *text, const hlo_frame *frame, hlo_op op);

/* -------------------------------------------------------------------------- symbols (symbols.c) */

/* Finds the instruction `name` in the innermost computation; &text->broken after an error in
 * its definition; NULL when there is none. */
hlo_instr *hlo_text_find_instr(hlo_text *text, const char *name);
/* Finds the instruction that is used at `at`, or reports an error and returns &text->broken. */
hlo_instr *hlo_text_named(hlo_text *text, hlo_span at, const char *name);
/* Binds a name in the innermost computation. */
void hlo_text_bind(hlo_text *text, const char *name, hlo_instr *instr);
/* Restores the bindings that an inline computation has hidden since text->hidden.used was `from`.
 */
void hlo_text_unhide(hlo_text *text, size_t from);
/* Puts the instruction used at `at` onto text->instrs. */
void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name);
/* Takes text->instrs as an attribute. */
hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id);
/* Finds the computation that is called at `at`, or reports an error and returns NULL. */
hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name);
/* Takes the computations from text->comps, from byte `from` on, as an attribute. */
hlo_attr hlo_text_comps(hlo_text *text, hlo_attr_id id, size_t from);

/* ------------------------------------------------------------------------------ names (names.c) */

/* True, with an error, if the name at `at` is a keyword; `types_too`: or an element type. */
bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too);
/* Names an instruction as the text does. Names become unique in the order in which computations
 * end, an inline one before the one that it stands in, as in XLA. */
void hlo_text_give_name(hlo_text *text, hlo_instr *instr, const char *name);
/* Takes back the unique names of the open body: an inline computation begins. */
void hlo_text_names_later(hlo_text *text);
/* Makes the names of a computation that ends unique; `bare`: its own name is already. */
void hlo_text_names_now(hlo_text *text, hlo_computation *comp, bool bare);

/* ------------------------------- what XLA's reader takes and demands (permissive, requirements) */

/* True if XLA's reader takes `count` operands, though HLO forbids it. */
bool hlo_text_permissive_count(hlo_op op, uint32_t count);
/* Infers the shape that XLA's reader infers where hlo_infer() refuses; NULL when XLA's reader
 * refuses, too. */
const hlo_shape *hlo_text_permissive_shape(hlo_text *text, hlo_op op, uint32_t count,
                                           hlo_instr *const *operands, uint32_t attr_count,
                                           const hlo_attr *attrs);
/* Sets the shape that XLA's reader gives the instruction whatever the text says. */
void hlo_text_make_shape(hlo_text *text, hlo_frame *frame);
/* Reports each demand of XLA's reader on an `op`, or on its asynchronous form, that the instruction
 * does not meet. */
void hlo_text_check_requirements(hlo_text *text, hlo_frame *frame, hlo_op op);

/* --------------------------------------------------------------- asynchronous opcodes (async.c) */

/* Splits `opcode-start`, `-update`, `-done`; HLO_OP_INVALID when `name` is none of them. */
hlo_op hlo_text_async_op(const char *name, hlo_op *out_wrapped);
/* Offers the names of all asynchronous forms. */
void hlo_text_async_suggest(hlo_text *text, hlo_suggestion *s);
/* Checks the shape of a start, and the operand of an update or done. */
void hlo_text_async_check(hlo_text *text, hlo_frame *frame);
/* Reports an update or a done that names another thread than its start. */
void hlo_text_async_thread(hlo_text *text, hlo_frame *frame);
/* Sets the thread of the computations that the start calls, directly or through others. */
void hlo_text_async_begun(hlo_text *text, const hlo_instr *start);
/* Records the start of the operation that the update continues. */
void hlo_text_async_updated(hlo_text *text, const hlo_instr *update);
/* Makes the computation of the operation `frame->wrapped`, with the attributes of the wrapped
 * opcode, and sets the attribute that calls it. */
void hlo_text_async_wrap(hlo_text *text, hlo_frame *frame);

/* ---------------------------------------------------------------------------- the lexer (hlo.l) */

union HLO_YYSTYPE;
/* Attaches a lexer to text->source. */
void hlo_text_scan_begin(hlo_text *text);
/* Returns the next token; after a syntax error, the next at which reading can resume. */
int hlo_text_next(union HLO_YYSTYPE *value, hlo_span *at, hlo_text *text);
/* Drops tokens, from the syntax error at `token` on, up to one at which reading can resume. */
void hlo_text_skip(hlo_text *text, int token, hlo_span at, hlo_resume where);
/* Makes the next token a literal of shape `shape`. */
void hlo_text_want_literal(hlo_text *text, const hlo_shape *shape);

#endif
