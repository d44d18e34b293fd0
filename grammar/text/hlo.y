/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of HLO text. The actions (actions.h) build the IR in the order of the text.
 *
 * One token of lookahead is enough: the scanner distinguishes a definition from an operand by the
 * `=` after it, and the token of an attribute's name includes the comma before it. After a syntax
 * error in a body, parsing resumes at the next definition.
 *
 * Some actions require that the parser has no lookahead token: those that select what the scanner
 * reads next (hlo_text_want_literal(), and the shape before `constant(`), hlo_text_names() and
 * hlo_text_instr_part(). These actions occur where the parser has a single choice, and so needs no
 * lookahead. */
%code requires {
#include "grammar/text/actions.h"
}
%code {
#undef yylex
#define yylex hlo_text_next
/* The scratch arena frees the stacks. */
#define YYMALLOC(size) hlo_arena_alloc(text->scratch, size)
#define YYFREE(memory) ((void)(memory))
#define YYMAXDEPTH 4096 /* a nested operand takes one to three stack entries */

/* The location of a symbol is that of its first part. An empty symbol has the location of the
 * symbol before it. */
#define YYLLOC_DEFAULT(current, rhs, n)                                                 \
    if (n)                                                                              \
        (current) = YYRHSLOC(rhs, 1);                                                   \
    else                                                                                \
        (current) = YYRHSLOC(rhs, 0)

/* Resumes parsing at the next token of the kind `where`. */
#define RESUME(where)                                                                   \
    do {                                                                                \
        if (yychar == END || !*text->errors_left) YYABORT;                              \
        hlo_text_skip(text, yychar, yylloc, where);                                     \
        if (text->skipping) yyclearin;                                                  \
        yyerrok;                                                                        \
    } while (0)

static void yyerror(hlo_span *at, hlo_text *text, const char *message);
static hlo_attr shape_list(hlo_text *text, hlo_attr_id id, size_t from);
static void stray_comma(hlo_text *text, hlo_span at);
}

%define api.pure full
%define api.prefix {hlo_yy}
%define api.location.type {hlo_span}
%define parse.error custom
%define lr.default-reduction consistent
%locations
%expect 0
%param {hlo_text *text}

%union {
    int64_t i;
    double f;
    const char *str;
    const hlo_ints *ints;
    const hlo_shape *shape;
    const hlo_literal *literal;
    hlo_attr_id attr;
    hlo_computation *comp;
    hlo_instruction *instr;
    size_t from; /* where a list begins on its stack, in bytes */
}

%token END 0 "the end of the file"
%token HLO_MODULE "'HloModule'" FILE_NAMES "'FileNames'" FUNCTION_NAMES "'FunctionNames'"
%token FILE_LOCATIONS "'FileLocations'" STACK_FRAMES "'StackFrames'"
%token ENTRY "'ENTRY'" ROOT "'ROOT'" ARROW "'->'" BUFFER "'b('"
%token <str> NAME "a name" OPCODE CALL DEFINITION "a definition '%name ='" WORD "a word" STRING "a string"
%token <str> RAW "a value"
%token <i> INT "an integer" BOOL "'true' or 'false'"
%token <f> FLOAT "a number"
%token <ints> INTS "a list '{...}'"
%token <shape> SHAPE "a shape"
%token CONSTANT_OPEN "'constant('"
%token <literal> LITERAL "a constant value"
%token <attr> INT_ATTR "an attribute" BOOL_ATTR FLOAT_ATTR WORD_ATTR STRING_ATTR RAW_ATTR INTS_ATTR
%token <attr> COMPUTATION_ATTR COMPUTATIONS_ATTR INSTRS_ATTR SHAPES_ATTR SHAPE_ATTR LITERAL_ATTR
%token <attr> LAYOUT_ATTR ATTRS_ATTR
%token KNOWN_ATTR /* the name and the value of text->known_attr */
%token '{' '}' '(' ')' ',' '#' /* messages list expected tokens in the order of declaration */

/* An error after the attributes of the header counts as an error in these attributes. */
%precedence HEADER
%precedence error

%type <shape> shape
%type <shape> array
%type <literal> literal
%type <from> shapes shape_items literals called_list called_items
%type <comp> called inline
%type <instr> element
%type <i> entry
%type <str> module_name

%%

module:
  header tables computations
| { hlo_text_single_instr_begin(text, yylloc); } bare
                            { hlo_text_instr_end(text);
                              hlo_text_body_end(text, @2);
                              hlo_text_computation_done(text); }
;
bare:
  definition operation
| bare_call ')'
| bare_call INT ')'         { hlo_text_parameter(text, @2, $2); }
| bare_call operands ')'
| bare_constant LITERAL ')' { hlo_text_constant(text, $2); }
| bare attr
;
bare_call: /* begins with its shape, because a name would begin a computation */
  shape OPCODE              { hlo_text_instr_begin(text, @2, $1, $2); }
| shape NAME '('            { hlo_text_instr_begin(text, @2, $1, $2); }
;
bare_constant: shape CONSTANT_OPEN { hlo_text_instr_begin(text, @2, $1, NULL); };

header:
  %empty                    { hlo_text_header(text, NULL); hlo_text_header_done(text); }
| HLO_MODULE module_name    { hlo_text_header(text, $2); }
  header_attrs              %prec HEADER { hlo_text_header_done(text); }
;
module_name:
  NAME                      { hlo_text_reserved(text, @1, $1, false); $$ = $1; }
| error                     { $$ = NULL; RESUME(HLO_RESUME_HEADER); }
;
header_attrs:
  %empty
| header_attrs attr
| header_attrs error        { hlo_text_recover_header(text); RESUME(HLO_RESUME_HEADER); }
;

tables: %empty | tables table;
table:
  FILE_NAMES files | FUNCTION_NAMES functions | FILE_LOCATIONS locations | STACK_FRAMES frames;
files: %empty | files INT STRING         { hlo_text_file(text, @2, $2, $3); };
functions: %empty | functions INT STRING { hlo_text_function(text, @2, $2, $3); };
locations:
  %empty
| locations INT '{'         { hlo_text_push_frame(text, HLO_OWNER_LOCATION); }
  attrs '}'                 { hlo_text_row_end(text, @2, $2); }
;
frames:
  %empty
| frames INT '{'            { hlo_text_push_frame(text, HLO_OWNER_FRAME); }
  attrs '}'                 { hlo_text_row_end(text, @2, $2); }
;

computations: computation | computations computation;
computation:
  whole attrs               { hlo_text_computation_done(text); }
| error                     { hlo_text_recover_top(text, yylloc); RESUME(HLO_RESUME_TOP); }
;
whole:
  entry NAME                { hlo_text_body_begin(text, @2, $2, $1); }
  signature body '}'        { hlo_text_body_end(text, @6); }
;
entry: %empty { $$ = 0; } | ENTRY { $$ = 1; };
signature:
  '{'
| '(' parameters ')' ARROW shape { hlo_text_body_result(text, @5, $5); }
  opening
| error                     { hlo_text_recover(text, @1, NULL); RESUME(HLO_RESUME_SIGNATURE); }
  '{'
;
opening:
  '{'
| error                     { hlo_text_recover(text, @1, NULL); RESUME(HLO_RESUME_SIGNATURE); }
  '{'
;
parameters: %empty | parameter_list;
parameter_list: parameter | parameter_list ',' parameter;
parameter: NAME shape;

body: %empty | instructions;
instructions: /* the action of the last part of an instruction ends the instruction */
  definition operation      { hlo_text_instr_part(text); }
| instructions definition operation { hlo_text_instr_part(text); }
| instructions attr         { hlo_text_instr_part(text); }
| error                     { hlo_text_recover(text, yylloc, yychar == NAME ? yylval.str : NULL);
                              RESUME(HLO_RESUME_BODY); }
| instructions error        { hlo_text_recover(text, yylloc, yychar == NAME ? yylval.str : NULL);
                              RESUME(HLO_RESUME_BODY); }
;
definition:
  DEFINITION                { hlo_text_define(text, @1, $1, false); }
| ROOT DEFINITION           { hlo_text_define(text, @2, $2, true); }
;
operation:
  call ')'
| call INT ')'              { hlo_text_parameter(text, @2, $2); }
| call operands ')'
| constant LITERAL ')'      { hlo_text_constant(text, $2); }
;
call:
  CALL                      { hlo_text_instr_begin(text, @1, text->last_shape, $1);
                              hlo_text_names(text); }
| shape OPCODE              { hlo_text_instr_begin(text, @2, $1, $2); hlo_text_names(text); }
| shape NAME '('            { hlo_text_instr_begin(text, @2, $1, $2); }
| OPCODE                    { hlo_text_instr_begin(text, @1, NULL, $1); }
| NAME '('                  { hlo_text_instr_begin(text, @1, NULL, $1); }
;
constant:
  shape CONSTANT_OPEN       { hlo_text_instr_begin(text, @2, $1, NULL); }
| CONSTANT_OPEN             { hlo_text_instr_begin(text, @1, NULL, NULL); }
;
operands:
  operand
| ','                       { stray_comma(text, @1); }
| ',' operand               { stray_comma(text, @1); }
| operands ','              { stray_comma(text, @2); }
| operands ',' operand
;
operand:
  NAME                      { hlo_text_operand(text, @1, NULL, $1); }
| shape NAME                { hlo_text_operand(text, @2, $1, $2); }
| element                   { hlo_text_operand_shaped(text, @1, NULL, $1); }
| shape element             { hlo_text_operand_shaped(text, @2, $1, $2); }
| shape                     { if (!hlo_text_nameless(text, @1, $1)) YYERROR; }
| operation                 { hlo_text_operand_instr(text, hlo_text_instr_end(text)); }
;
element:
  NAME '#' INT              { hlo_instruction *named = hlo_text_named(text, @1, $1);
                              $$ = hlo_text_element(text, @1, named, $3); }
| element '#' INT           { $$ = hlo_text_element(text, @1, $1, $3); }
;

shape:
  SHAPE
| '(' shapes ')'            { $$ = hlo_text_tuple(text, $2); hlo_text_check_tuple(text, @1, &$$); }
| BUFFER shape ')'          { $$ = hlo_text_buffer(text, @1, $2); }
;
shapes: %empty              { $$ = text->shapes.used; } | shape_items;
shape_items:
  shape                     { $$ = text->shapes.used; hlo_text_shape_push(text, $1); }
| shape_items ',' shape     { $$ = $1; hlo_text_shape_push(text, $3); }
;

attrs: %empty | attrs attr;
attr:
  INT_ATTR INT         { hlo_text_int_attr(text, @1, $1, @2, $2); }
| BOOL_ATTR BOOL       { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.i = $2}); }
| FLOAT_ATTR FLOAT     { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.f = $2}); }
| WORD_ATTR WORD       { hlo_text_word_attr(text, @1, $1, @2, $2); }
| STRING_ATTR STRING   { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.str = $2}); }
| KNOWN_ATTR           { text->end = text->known_end;
                         hlo_text_attr(text, @1, text->known_attr); }
| RAW_ATTR RAW         { if (!hlo_text_raw_attr(text, @1, $1, @2, $2)) YYERROR; }
| INTS_ATTR INTS       { hlo_text_new_attr(text, @1, (hlo_attr){.id = $1, .u.ints = $2}); }
| COMPUTATION_ATTR called
                       { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.comp = $2}); }
| COMPUTATIONS_ATTR '{' called_list '}'
                       { hlo_text_attr(text, @1, hlo_text_comps(text, $1, $3)); }
| INSTRS_ATTR '{' name_items '}'
                       { hlo_text_attr(text, @1, hlo_text_instrs(text, $1)); }
| SHAPES_ATTR '{' shapes '}'
                       { hlo_text_attr(text, @1, shape_list(text, $1, $3)); }
| SHAPE_ATTR shape     { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.shape = $2}); }
| LITERAL_ATTR literal { hlo_text_attr(text, @1, (hlo_attr){.id = $1, .u.literal = $2}); }
| LAYOUT_ATTR '{' '(' shapes ')' ARROW shape '}'
                       { hlo_text_shape_push(text, $7);
                         hlo_text_attr(text, @1, shape_list(text, $1, $4)); }
| ATTRS_ATTR '{'       { hlo_text_nested_begin(text, $1); }
  attrs '}'            { hlo_text_nested_end(text, @1); }
;
literal:
  array                { hlo_text_want_literal(text, $1); }
  LITERAL              { $$ = $3; }
| '(' literals ')'     { $$ = hlo_text_tuple_literal(text, $2); }
;
array: SHAPE | BUFFER shape ')' { $$ = $2; };
literals:
  %empty               { $$ = text->literals.used; }
| literals literal     { $$ = $1; hlo_stack_push(text, &text->literals, &$2, sizeof $2); }
| literals literal ',' { $$ = $1; hlo_stack_push(text, &text->literals, &$2, sizeof $2); }
;
called: NAME           { $$ = hlo_text_called(text, @1, $1); } | inline;
inline:
  '{'                  { hlo_text_body_begin(text, @1, NULL, false); }
  body '}'             { hlo_text_body_end(text, @4); $$ = hlo_text_computation_done(text); }
;
called_list: %empty        { $$ = text->comps.used; } | called_items;
called_items:
  called                   { $$ = text->comps.used;
                             hlo_stack_push(text, &text->comps, &$1, sizeof $1); }
| called_items ',' called  { $$ = $1; hlo_stack_push(text, &text->comps, &$3, sizeof $3); }
;
name_items:
  NAME                 { hlo_text_instr_named(text, @1, $1); }
| name_items ',' NAME  { hlo_text_instr_named(text, @3, $3); }
;

%%

static hlo_attr shape_list(hlo_text *text, hlo_attr_id id, size_t from) {
    return (hlo_attr){.id = id, .u.shapes = hlo_text_shapes(text, from)};
}

/* Reports a comma of an operand list that lacks an operand on one side. */
static void stray_comma(hlo_text *text, hlo_span at) {
    hlo_text_defer_error(text, at, "this ',' does not separate operands");
}

/* Reports the only error of bison itself: stack overflow. */
static void yyerror(hlo_span *at, hlo_text *text, const char *message) {
    (void)message;
    hlo_text_error(text, *at, "nested too deeply");
}

enum { MAX_WANTED = 64, MAX_NAMED = 8 };

static bool is_attr(yysymbol_kind_t symbol) {
    return symbol >= YYSYMBOL_INT_ATTR && symbol <= YYSYMBOL_KNOWN_ATTR;
}

/* Returns ", expected A, B or C"; an empty string if there are too many tokens. Tokens that only
 * the parser distinguishes have the same name. */
static const char *expected_tokens(hlo_text *text, const yysymbol_kind_t *wanted, int count) {
    const char *names[MAX_NAMED + 1];
    int named = 0;
    for (int i = 0; i < count && named <= MAX_NAMED; i++) {
        yysymbol_kind_t symbol = wanted[i];
        if (is_attr(symbol)) symbol = YYSYMBOL_INT_ATTR;
        if (symbol == YYSYMBOL_BUFFER || symbol == YYSYMBOL_CALL) symbol = YYSYMBOL_SHAPE;
        if (symbol == YYSYMBOL_OPCODE) symbol = YYSYMBOL_NAME;
        if (symbol >= YYSYMBOL_FILE_NAMES && symbol <= YYSYMBOL_STACK_FRAMES)
            symbol = YYSYMBOL_HLO_MODULE;
        const char *name = yysymbol_name(symbol);
        bool known = false;
        for (int n = 0; n < named; n++) known |= names[n] == name;
        if (!known) names[named++] = name;
    }
    const char *list = "";
    for (int n = 0; n < named && named <= MAX_NAMED; n++) {
        const char *before = n == 0 ? ", expected " : n == named - 1 ? " or " : ", ";
        list = hlo_arena_format(text->scratch, "%s%s%s", list, before, names[n]);
    }
    return list;
}

static int yyreport_syntax_error(const yypcontext_t *context, hlo_text *text) {
    hlo_span at = *yypcontext_location(context);
    yysymbol_kind_t wanted[MAX_WANTED], found = yypcontext_token(context);
    /* After an unknown opcode, report nothing else on its line: its operands and attributes are
     * unknown, too. */
    const hlo_frame *frame = text->frames.used ? hlo_text_frame(text) : NULL;
    if (frame && frame->owner == HLO_OWNER_INSTR && frame->op == HLO_OP_INVALID &&
        hlo_text_line_end(text, frame->op_at.offset) >= at.offset)
        return 0;
    /* If a value from an earlier line ends on the line of `at`, report the value: it likely lacks
     * its own closing quote or brace. */
    const uint32_t end = text->string.offset + text->string.length;
    if (text->string.length && end <= at.offset && hlo_text_line_end(text, end) >= at.offset) {
        text->overlong = text->string;
        hlo_text_error(text, (hlo_span){text->string.offset, 1},
                       "this value does not end on its line");
        return 0;
    }
    const int count = yypcontext_expected_tokens(context, wanted, MAX_WANTED);
    bool definition = false;
    for (int i = 0; i < count; i++) definition |= wanted[i] == YYSYMBOL_DEFINITION;
    if (definition && found == YYSYMBOL_NAME && hlo_text_lacks_equals(text, at)) {
        hlo_text_error(text, at, "expected '=' after the name '%s'", hlo_text_quote(text, at));
        return 0;
    }
    if (text->source[at.offset] == '{' && !strchr(text->source + at.offset, '}')) {
        hlo_text_error(text, at, "this '{' is never closed");
        return 0;
    }
    at = hlo_text_cut(text, at);
    const char *ending = hlo_text_ends(text, at) ? " at the end of the text" : "";
    const char *list = expected_tokens(text, wanted, count);
    if (found == YYSYMBOL_YYEOF)
        hlo_text_error(text, at, "the text ends too early%s", list);
    else
        hlo_text_error(text, at, is_attr(found) ? "unexpected attribute '%s='%s%s" : "unexpected '%s'%s%s",
                       hlo_text_quote(text, at), ending, list);
    return 0;
}
