/* Reads HLO text: the state that lexer, parser and actions share, and the readers of tokens.
 *
 * hlo.l cuts the text into tokens, hlo.y arranges them, the actions (grammar/text/actions.h) build
 * the IR. The files of this folder read tokens with an inside: shapes, integer lists, strings, raw
 * text, constants, and definitions read in one go. */
#ifndef HLO_GRAMMAR_SCAN_PARSER_H
#define HLO_GRAMMAR_SCAN_PARSER_H

#include <string.h>

#include "grammar/attr/notation.h"
#include "hlo/suggest.h"
#include "ir/ir.h"
#include "ir/text/file.h"

/* Bytes of the source. */
typedef struct hlo_span {
    uint32_t offset, length;
} hlo_span;

/* A growing array of equal items; lives in hlo_text.scratch. */
typedef struct hlo_stack {
    char *items;
    size_t used, capacity; /* in bytes */
} hlo_stack;

/* The kinds of attribute owners. */
typedef enum hlo_owner {
    HLO_OWNER_MODULE,
    HLO_OWNER_COMPUTATION,
    HLO_OWNER_INSTR,
    HLO_OWNER_METADATA,
    HLO_OWNER_WINDOW,
    HLO_OWNER_LOCATION,
    HLO_OWNER_FRAME
} hlo_owner;

/* An attribute owner that is being read. */
typedef struct hlo_frame {
    hlo_owner owner;
    hlo_attr_id nested; /* the attribute whose value this frame is */
    size_t attrs;       /* its first attribute in hlo_text.attrs, in bytes */
    bool broken;        /* an error was reported: no IR is made of it */
    hlo_span comma;     /* hlo_text.comma of the enclosing attribute */
    /* Of an instruction. */
    bool root;
    hlo_op op;
    hlo_op wrapped;   /* by the asynchronous `op`, as in negate-start; else HLO_OP_INVALID */
    const char *name; /* interned; NULL: nested in an operand list */
    hlo_span name_at, op_at;
    const hlo_shape *shape;     /* NULL: to be inferred */
    size_t operands;            /* its first operand in hlo_text.operands, in bytes */
    int64_t parameter;          /* -1: none */
    const hlo_literal *literal; /* of a constant */
} hlo_frame;

/* A computation that is being read; an inline one nests in the body whose attribute it is. */
typedef struct hlo_body {
    hlo_computation *comp;
    const char *name; /* as the text has it; NULL when it is inline */
    hlo_span at;
    uint32_t depth;                           /* of braces, inside the body */
    size_t frames, parameters, hidden, comps; /* sizes of the stacks when it began */
    const hlo_shape *result;                  /* as its signature says; NULL */
    hlo_span result_at;
    hlo_instr *explicit_root;
    hlo_span root_at; /* of its ROOT; empty: none yet */
    bool broken, entry;
    bool nameless; /* a definition without a known name was in error */
    bool bare;     /* of a single instruction: unknown operands become parameters */
} hlo_body;

/* Places at which reading resumes behind an error. */
typedef enum hlo_resume {
    HLO_RESUME_BODY,      /* the next definition, or the end of the body */
    HLO_RESUME_SIGNATURE, /* the body */
    HLO_RESUME_TOP,       /* the next computation */
    HLO_RESUME_HEADER     /* the next attribute, table or computation */
} hlo_resume;

/* Attributes and shapes that were read before, found by their text: a module repeats a few of them
 * in very many instructions. */
enum { HLO_REMEMBERED = 1 << 9 };
typedef struct hlo_known_attr {
    hlo_span at;
    uint32_t hash;
    hlo_attr attr;
} hlo_known_attr;
typedef struct hlo_known_shape {
    hlo_span at;
    const hlo_shape *shape; /* NULL: none */
} hlo_known_shape;

typedef struct hlo_text {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    char **scan_at;                  /* flex's: where the next token is looked for, */
    char *scan_hold;                 /* and the byte that stands there */
    void *scanner;                   /* flex's */
    hlo_module_parser *parse_module; /* of modules within attributes */
    char *source;                    /* module->source, with two NULs behind it */
    size_t size;
    uint32_t end;                /* of the last token */
    const hlo_shape *last_shape; /* in front of an opcode, or of a literal */
    unsigned errors;             /* reported */
    unsigned *errors_left;       /* that may still be reported */
    size_t searched;             /* bytes searched for forward references */
    unsigned depth;              /* of braces */
    unsigned inner;     /* the depth in an inline computation that is skipped; 0: none is */
    bool skipping;      /* tokens are dropped until one at which reading can go on */
    hlo_resume resume;  /* kind of the token at which reading can go on */
    bool quiet;         /* no errors up to the next computation: they follow from a reported one */
    bool lacks_open;    /* a missing `{` is given to the parser first, */
    size_t lacks_close; /* then this number of missing `}` */
    uint32_t closed;    /* the computation in front of which `}` are missing; UINT32_MAX: none */
    hlo_span overlong;  /* a token that goes on beyond its line by mistake; empty */
    hlo_span string;    /* the last string or braces that go on beyond their line; empty */
    bool nameless;      /* a computation without a known name was in error */
    hlo_attr_id attr;   /* the attribute whose name was read last, */
    hlo_span comma;     /* and the comma in front of it; empty: none */
    const char *def;    /* the name being defined, until the opcode is read; NULL: none */
    hlo_span def_at;
    bool def_root;
    hlo_attr known_attr;     /* the last KNOWN_ATTR, */
    uint32_t known_end;      /* and where its text ends */
    hlo_known_attr *known_attrs;   /* HLO_REMEMBERED of each, by a hash of their text */
    hlo_known_shape *known_shapes;
    hlo_stack frames, operands, attrs, bodies, parameters, shapes, comps, instrs, hidden, ints,
        literals;
    hlo_stack starts;  /* the async-start of each async-update, by instruction id */
    hlo_stack renamed; /* instructions of the outermost body with another name than in the text */
    bool threads;      /* a computation runs on another thread than the main one */
    bool names_later;  /* no instruction of the open bodies has its unique name yet */
    hlo_stack files, functions, locations, stack_frames;
    hlo_instr broken; /* bound to every name whose definition was in error: its uses are no errors
                         of their own */
} hlo_text;

enum { HLO_LARGEST_SOURCE = 1 << 30 };

/* ----------------------------------------------------------------------------- errors (state.c) */

/* Reports an error at `at`, unless *errors_left is 0. */
void hlo_text_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports another place that the last error is about, as a note, or legal HLO that may not have
 * been meant, as a warning. */
void hlo_text_say(hlo_text *text, hlo_severity severity, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define hlo_text_note(text, ...) hlo_text_say(text, HLO_NOTE, __VA_ARGS__)
#define hlo_text_warn(text, ...) hlo_text_say(text, HLO_WARNING, __VA_ARGS__)
/* Keeps an error for the verifier: XLA's reader takes the text, HLO forbids it. */
void hlo_text_defer_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the text of a span, clipped for a message, in scratch memory. */
const char *hlo_text_quote(hlo_text *text, hlo_span at);

/* ----------------------------------------------------------------------------- stacks (state.c) */

/* Makes room for one more item of `size` bytes. */
void hlo_stack_grow(hlo_text *text, hlo_stack *stack, size_t size);
/* Returns the last item of a stack that is not empty. */
static inline void *hlo_stack_top(const hlo_stack *stack, size_t size) {
    return stack->items + stack->used - size;
}
/* Copies an item onto the stack and returns its place. */
static inline void *hlo_stack_push(hlo_text *text, hlo_stack *stack, const void *item,
                                   size_t size) {
    if (stack->capacity - stack->used < size) hlo_stack_grow(text, stack, size);
    void *place = memcpy(stack->items + stack->used, item, size);
    stack->used += size;
    return place;
}

/* Returns the innermost frame. */
static inline hlo_frame *hlo_text_frame(const hlo_text *text) {
    return hlo_stack_top(&text->frames, sizeof(hlo_frame));
}
/* Returns the innermost body. */
static inline hlo_body *hlo_text_body(const hlo_text *text) {
    return hlo_stack_top(&text->bodies, sizeof(hlo_body));
}
/* Opens a frame for an owner without attributes or operands yet. */
hlo_frame *hlo_text_push_frame(hlo_text *text, hlo_owner owner);
/* Closes the innermost frame and drops its attributes and operands. */
void hlo_text_pop_frame(hlo_text *text);
/* Puts a shape onto text->shapes. */
void hlo_text_shape_push(hlo_text *text, const hlo_shape *shape);

/* Returns the number of attributes of the innermost frame. */
static inline uint32_t hlo_frame_attr_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->attrs.used - frame->attrs) / sizeof(hlo_attr));
}
/* Attributes of the innermost frame. */
static inline hlo_attr *hlo_frame_attrs(const hlo_text *text, const hlo_frame *frame) {
    return (hlo_attr *)(text->attrs.items + frame->attrs);
}
/* Returns the number of operands of the innermost frame. */
static inline uint32_t hlo_frame_operand_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->operands.used - frame->operands) / sizeof(hlo_instr *));
}
/* Operands of the innermost frame. */
static inline hlo_instr **hlo_frame_operands(const hlo_text *text, const hlo_frame *frame) {
    return (hlo_instr **)(text->operands.items + frame->operands);
}
/* Returns the opcode whose operands and attributes stand in the text. */
static inline hlo_op hlo_frame_op(const hlo_frame *frame) {
    return frame->op == HLO_OP_ASYNC_START && frame->wrapped != HLO_OP_INVALID ? frame->wrapped
                                                                               : frame->op;
}

/* ---------------------------------------------------------------------------- the scan position */

/* Moves the scan position to `at`: valid while the parser has not looked ahead. */
static inline void hlo_text_scan_from(hlo_text *text, const char *at) {
    *text->scan_at = text->source + (at - text->source);
    *text->scan_hold = *at;
}

/* ---------------------------------------------------------------------- white space (token.c) */

static inline bool hlo_text_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
/* Skips white space and comments. */
const char *hlo_text_behind_gap(const char *at);
/* Skips white space and comments, fast where there is one space or none. */
static inline const char *hlo_text_gap(const char *at) {
    while (*at == ' ') at++;
    return hlo_text_is_space(*at) || *at == '/' ? hlo_text_behind_gap(at) : at;
}
/* Finds the first of `stops`, which end with a `/`, outside of comments; else the text's end. */
const char *hlo_text_stop(const char *at, const char *stops);
/* Finds the end of the line. */
uint32_t hlo_text_line_end(const hlo_text *text, uint32_t offset);
/* True for the bytes of a name. */
static inline bool hlo_text_in_name(char c) {
    static const char in_name[] =
        "................................"
        ".............xx.xxxxxxxxxx......" /* - . 0-9 */
        ".xxxxxxxxxxxxxxxxxxxxxxxxxx....x" /* A-Z _ */
        ".xxxxxxxxxxxxxxxxxxxxxxxxxx....." /* a-z */
        "................................................................"
        "................................................................";
    return in_name[(unsigned char)c] == 'x';
}
/* True for the bytes that a name begins with. */
static inline bool hlo_text_begins_name(char c) {
    return hlo_text_in_name(c) && c > '9';
}

/* ----------------------------------------------------------------------------- tokens (token.c) */

/* Finds an attribute by its name; HLO_ATTR_INVALID when there is none. */
hlo_attr_id hlo_text_find_attr(hlo_text *text, const char *interned);
/* Reads a string at source + offset; returns its length in the text, *out NULL after an error. */
uint32_t hlo_text_string(hlo_text *text, uint32_t offset, const char **out);
/* Reads raw text in balanced brackets at source + offset; returns its length in the text,
 * *out NULL after an error. */
uint32_t hlo_text_raw(hlo_text *text, uint32_t offset, const char **out);
/* Reads the integer at `at`. */
bool hlo_text_int(hlo_text *text, hlo_span at, int64_t *out);
/* Reads digits at *at, and moves it past them. */
bool hlo_text_read_int(hlo_text *text, const char **at, int64_t *out);
/* Skips the gap and takes `wanted`, or reports an error. */
bool hlo_text_expect(hlo_text *text, const char **at, char wanted);
/* Returns the length of `{...}` without strings, names or braces inside; 0: it is none. */
uint32_t hlo_text_braces(const hlo_text *text, uint32_t offset);
/* Reads `{1,2}`. */
const hlo_ints *hlo_text_ints(hlo_text *text, hlo_span at);
/* Reads `{[0:4], [0:8:2]}`. */
const hlo_ints *hlo_text_slices(hlo_text *text, hlo_span at);
/* Reads `0_1x0_1_2`. */
const hlo_ints *hlo_text_padding(hlo_text *text, hlo_span at);

/* ----------------------------------------------------------------------------- shapes (shape.c) */

/* Reads a shape whose `type[` is `head`; returns its length, *out NULL after an error. */
uint32_t hlo_text_shape(hlo_text *text, hlo_span head, const hlo_shape **out);
/* Makes the buffer type `b(shape)`. */
const hlo_shape *hlo_text_buffer(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Takes the shapes from text->shapes, from byte `from` on, as a tuple. */
const hlo_shape *hlo_text_tuple(hlo_text *text, size_t from);
/* Reports a shape of too many tuples within each other, and replaces it by an empty tuple. Returns
 * false if it did. */
bool hlo_text_check_depth(hlo_text *text, hlo_span at, const hlo_shape **shape);
/* Takes the shapes from text->shapes, from byte `from` on, as a list. */
const hlo_shapes *hlo_text_shapes(hlo_text *text, size_t from);

/* --------------------------------------------------------------------------- numbers (number.c) */

/* True for one digit or more and nothing else. */
bool hlo_number_is_digits(const char *from, const char *to);
/* Reads an integer, cut to 64 bits from 2^63 on; false: it is none, or does not fit in 64 bits. */
bool hlo_number_read_int(const char *from, const char *to, int64_t *out);
/* Reads a decimal number, infinite where it exceeds a double; false: it is none. */
bool hlo_number_read_decimal(const char *from, const char *to, double *out);

/* ------------------------------------------------------------------------- literals (literal.c) */

/* Reads a constant's value; returns its length, *out NULL after an error and for shape NULL. */
uint32_t hlo_text_literal(hlo_text *text, uint32_t offset, const hlo_shape *shape,
                          const hlo_literal **out);
/* Takes the literals from text->literals, from byte `from` on, as a tuple. */
const hlo_literal *hlo_text_tuple_literal(hlo_text *text, size_t from);

/* ------------------------------------------- attributes, shapes, opcodes by text (attr_cache.c) */

/* Finds the attribute that was written `name={...}` or `name=1` before; returns its length, 0 when
 * there is none. */
uint32_t hlo_attr_cache_find(const hlo_text *text, hlo_span name, hlo_attr *out);
/* Remembers the attribute whose value ends at text->end. */
void hlo_attr_cache_insert(hlo_text *text, hlo_span name, hlo_attr attr);
/* ------------------------------------------------------------------------ recovery (recovery.c) */

/* True if a line begins at `offset`. */
static inline bool hlo_text_at_line(const hlo_text *text, uint32_t offset) {
    return !offset || text->source[offset - 1] == '\n' || text->source[offset - 1] == '\r';
}
/* True if the name or keyword at `offset` begins a computation. */
bool hlo_text_begins_computation(const hlo_text *text, uint32_t offset);
/* True if a computation's name may stand at `offset`, outside of a body, and no shape. */
bool hlo_text_begins_signature(const hlo_text *text, uint32_t offset);
/* True if only blanks stand before `offset` in its line. */
bool hlo_text_begins_line(const hlo_text *text, uint32_t offset);
/* True if the `{` at `offset` begins a computation's body. */
bool hlo_text_begins_body(const hlo_text *text, uint32_t offset);
/* True if the `}` at `offset` ends a computation's body. */
bool hlo_text_ends_body(const hlo_text *text, uint32_t offset);
/* True if the name at `at` would be a definition with an `=` behind it. */
bool hlo_text_lacks_equals(const hlo_text *text, hlo_span at);
/* True if the text ends behind `at`, without a line end: a word may be cut off. */
bool hlo_text_ends(const hlo_text *text, hlo_span at);
/* True if the text ends behind `at` inside a body, which is an error by itself. */
bool hlo_text_is_cut(hlo_text *text, hlo_span at);
/* Returns the cut-off attribute name behind the comma at `at`; else `at`. */
hlo_span hlo_text_cut(const hlo_text *text, hlo_span at);
/* Returns the number of bodies that are not closed; 0 if the text is a single instruction. */
size_t hlo_text_open_bodies(hlo_text *text);
/* Reports that bodies are open where a computation begins, and has them closed in front of it. */
void hlo_text_unclosed(hlo_text *text, hlo_span at);

/* ------------------------------------------------- names used before they stand (forward_ref.c) */

/* Finds the definition of the instruction `name` behind `from` in the computation. */
bool hlo_text_defined(hlo_text *text, uint32_t from, const char *name, hlo_span *out);
/* Finds the definition of the computation `name` behind `from`. */
bool hlo_text_defined_computation(hlo_text *text, uint32_t from, const char *name, hlo_span *out);
/* Returns the number of names to offer for an unknown one, which bounds the time of all searches.
 */
size_t hlo_text_offers(hlo_text *text);

/* True for the bytes that names are made of, behind their `%`. */
static inline bool hlo_is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

#endif
