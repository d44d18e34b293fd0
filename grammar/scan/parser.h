/* SPDX-License-Identifier: Apache-2.0 */
/* The state that the scanner, the parser and the actions share, and the readers of tokens.
 *
 * hlo.l splits HLO text into tokens, hlo.y parses them, and the actions (grammar/text/actions.h)
 * build the IR. The files of this folder read structured tokens: shapes, integer lists, strings,
 * raw text and constants. */
#ifndef HLO_GRAMMAR_SCAN_PARSER_H
#define HLO_GRAMMAR_SCAN_PARSER_H

#include <string.h>

#include "grammar/attr/notation.h"
#include "ir/ir.h"
#include "ir/text/file.h"
#include "ir/text/suggest.h"

/* Bytes of the source. */
typedef struct hlo_span {
    uint32_t offset, length;
} hlo_span;

/* A growing array of items of one size, allocated in hlo_text.scratch. */
typedef struct hlo_stack {
    char *items;
    size_t used, capacity; /* sizes in bytes */
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

/* An attribute owner whose text is being parsed. */
typedef struct hlo_frame {
    hlo_owner owner;
    hlo_attr_id nested; /* the attribute whose value is the content of this frame */
    size_t attrs;       /* offset of the owner's first attribute in hlo_text.attrs, in bytes */
    bool broken;        /* an error was reported, so that no IR is built */
    hlo_span comma;     /* hlo_text.comma of the enclosing attribute */
    /* Only instructions use the members below. */
    bool root;
    hlo_op op;
    hlo_op wrapped;   /* the opcode that an asynchronous `op` wraps, as in negate-start; otherwise
                         HLO_OP_INVALID */
    const char *name; /* interned; NULL for an operation in an operand list */
    hlo_span name_at, op_at;
    const hlo_shape *shape;     /* NULL: to be inferred */
    size_t operands;            /* offset of the first operand in hlo_text.operands, in bytes */
    int64_t parameter;          /* number of a parameter, or -1 */
    const hlo_literal *literal; /* value of a constant */
} hlo_frame;

/* A computation whose text is being parsed. An inline computation is nested in the body of the
 * computation whose attribute contains it. */
typedef struct hlo_body {
    hlo_computation *comp;
    const char *name; /* name in the text; NULL for an inline computation */
    hlo_span at;
    uint32_t depth;                           /* number of open braces inside the body */
    size_t frames, parameters, hidden, comps; /* sizes of the stacks when the body began */
    const hlo_shape *result;                  /* result shape in the signature; NULL if absent */
    hlo_span result_at;
    hlo_instruction *explicit_root;
    hlo_span root_at; /* position of the ROOT; empty until it is read */
    bool broken, entry;
    bool nameless; /* a definition without a known name had an error */
    bool bare;     /* the text is a single instruction, whose unknown operands become parameters */
} hlo_body;

/* The places where parsing can resume after an error. */
typedef enum hlo_resume {
    HLO_RESUME_BODY,      /* at the next definition, or at the end of the body */
    HLO_RESUME_SIGNATURE, /* at the body */
    HLO_RESUME_TOP,       /* at the next computation */
    HLO_RESUME_HEADER     /* at the next attribute, table or computation */
} hlo_resume;

/* Caches of attributes and shapes, by their text. A module repeats a few attributes and shapes in
 * very many instructions. */
enum { HLO_REMEMBERED = 1 << 9 };
typedef struct hlo_known_attr {
    hlo_span at;
    uint32_t hash;
    hlo_attr attr;
} hlo_known_attr;
typedef struct hlo_known_shape {
    hlo_span at;
    const hlo_shape *shape; /* NULL in an empty slot */
} hlo_known_shape;

typedef struct hlo_text {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    hlo_module_parser *parse_module; /* parses modules within attributes */
    char *source;                    /* module->source, with two NULs after it */
    size_t size;

    /* The scanner. */
    void *scanner;               /* the state of flex */
    char **scan_at;              /* the position of flex in the source */
    char *scan_hold;             /* flex's copy of the byte at that position */
    uint32_t end;                /* end of the last token */
    unsigned depth;              /* number of open braces */
    const hlo_shape *last_shape; /* shape before an opcode, or of a literal */
    hlo_attr_id attr;            /* the attribute whose name was read last */
    hlo_span comma;              /* the comma before that attribute; empty if it has no comma */
    hlo_attr known_attr;         /* the value of the last KNOWN_ATTR token */
    uint32_t known_end;          /* the end of the text of that token */
    hlo_known_attr *known_attrs; /* HLO_REMEMBERED slots each, by a hash of the text */
    hlo_known_shape *known_shapes;

    /* Errors and recovery. */
    unsigned errors;       /* number of errors reported so far */
    unsigned *errors_left; /* number of errors that may still be reported */
    size_t searched;    /* bytes read ahead for recovery and messages; at most HLO_MAX_SEARCHED */
    bool skipping;      /* tokens are dropped up to a token where parsing can resume */
    hlo_resume resume;  /* the kind of place where parsing can resume */
    unsigned inner;     /* depth in an inline computation that is skipped, or 0 */
    bool quiet;         /* suppress errors up to the next computation: they would be consequences of
                         * a reported error */
    bool lacks_open;    /* a `{` is missing: the parser receives it next */
    size_t lacks_close; /* number of missing `}` that the parser receives next, after a missing
                         * `{` */
    uint32_t closed;    /* offset of the computation before which a `}` is missing, or UINT32_MAX */
    hlo_span overlong;  /* a token that continues after its line by mistake, or empty */
    hlo_span string;    /* the last string or braces that continue after their line, or empty */
    bool nameless;      /* a computation without a known name had an error */
    hlo_instruction broken; /* bound to names whose definition had an error, so that their uses
                             * cause no further errors */

    /* The IR that is being built. */
    const char *def; /* the name being defined, up to the opcode; otherwise NULL */
    hlo_span def_at;
    bool def_root;
    hlo_stack frames, operands, attrs, bodies, parameters, shapes, comps, instrs, hidden, ints,
        literals;
    hlo_stack starts;  /* the async-start of each async-update, by instruction id */
    hlo_stack renamed; /* instructions of the outermost body whose name differs from the text */
    bool threads;      /* a computation runs on another thread than the main thread */
    bool names_later;  /* the instructions of the open bodies do not have their unique names yet */
    hlo_stack files, functions, locations, stack_frames;
} hlo_text;

enum { HLO_LARGEST_SOURCE = 1 << 30, HLO_MAX_SEARCHED = 1 << 26 };

/* ----------------------------------------------------------------------------- errors (state.c) */

/* Reports an error at `at`, unless *errors_left is 0, or `skipping` or `quiet` is set. */
void hlo_text_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Reports a note about another position of the last error, or a warning about valid HLO that is
 * likely a mistake. */
void hlo_text_say(hlo_text *text, hlo_severity severity, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
#define hlo_text_note(text, ...) hlo_text_say(text, HLO_NOTE, __VA_ARGS__)
#define hlo_text_warn(text, ...) hlo_text_say(text, HLO_WARNING, __VA_ARGS__)
/* Records an error for the verifier: XLA's parser accepts the text, but HLO forbids it. */
void hlo_text_defer_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the text of a span, shortened for a message, in scratch memory. */
const char *hlo_text_quote(hlo_text *text, hlo_span at);

/* ----------------------------------------------------------------------------- stacks (state.c) */

/* Makes room for one more item of `size` bytes. */
void hlo_stack_grow(hlo_text *text, hlo_stack *stack, size_t size);
/* Returns the last item of a non-empty stack. */
static inline void *hlo_stack_top(const hlo_stack *stack, size_t size) {
    return stack->items + stack->used - size;
}
/* Pushes a copy of an item onto the stack and returns its address. */
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
/* Opens a frame without attributes and operands. */
hlo_frame *hlo_text_push_frame(hlo_text *text, hlo_owner owner);
/* Closes the innermost frame and drops its attributes and operands. */
void hlo_text_pop_frame(hlo_text *text);
/* Pushes a shape onto text->shapes. */
void hlo_text_shape_push(hlo_text *text, const hlo_shape *shape);

/* In this function and the next three, `frame` must be the innermost frame. */
static inline uint32_t hlo_frame_attr_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->attrs.used - frame->attrs) / sizeof(hlo_attr));
}
static inline hlo_attr *hlo_frame_attrs(const hlo_text *text, const hlo_frame *frame) {
    return (hlo_attr *)(text->attrs.items + frame->attrs);
}
static inline uint32_t hlo_frame_operand_count(const hlo_text *text, const hlo_frame *frame) {
    return (uint32_t)((text->operands.used - frame->operands) / sizeof(hlo_instruction *));
}
static inline hlo_instruction **hlo_frame_operands(const hlo_text *text, const hlo_frame *frame) {
    return (hlo_instruction **)(text->operands.items + frame->operands);
}
/* Returns the opcode whose operands and attributes are in the text. */
static inline hlo_op hlo_frame_op(const hlo_frame *frame) {
    return frame->op == HLO_OP_ASYNC_START && frame->wrapped != HLO_OP_INVALID ? frame->wrapped
                                                                               : frame->op;
}

/* Moves the position of the scanner to `at`. The parser must not have a lookahead token. */
static inline void hlo_text_scan_from(hlo_text *text, const char *at) {
    *text->scan_at = text->source + (at - text->source);
    *text->scan_hold = *at;
}

/* ------------------------------------------------------------------------- characters (token.c) */

static inline bool hlo_text_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}
/* Skips white space and comments. */
const char *hlo_text_skip_gap(const char *at);
/* Skips white space and comments; fast for spaces. */
static inline const char *hlo_text_gap(const char *at) {
    while (*at == ' ') at++;
    return hlo_text_is_space(*at) || *at == '/' ? hlo_text_skip_gap(at) : at;
}
/* Finds the first byte outside of comments that is in `stops`; otherwise the end of the text.
 * `stops` must end with a `/`. */
const char *hlo_text_stop(const char *at, const char *stops);
/* Finds the end of the line. */
uint32_t hlo_text_line_end(const hlo_text *text, uint32_t offset);
/* True if a name may contain the byte. */
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
/* True if a name may begin with the byte. */
static inline bool hlo_text_begins_name(char c) {
    return hlo_text_in_name(c) && c > '9';
}

/* ----------------------------------------------------------------------------- tokens (token.c) */

/* Finds an attribute by its name; returns HLO_ATTR_INVALID for an unknown name. */
hlo_attr_id hlo_text_find_attr(hlo_text *text, const char *interned);
/* Reads a string at source + offset and returns its length in the text. *out is NULL after an
 * error. */
uint32_t hlo_text_string(hlo_text *text, uint32_t offset, const char **out);
/* Reads raw text, with balanced brackets, at source + offset and returns its length in the text.
 * *out is NULL after an error. */
uint32_t hlo_text_raw(hlo_text *text, uint32_t offset, const char **out);
bool hlo_text_int(hlo_text *text, hlo_span at, int64_t *out);
/* Reads an integer at *at and moves *at past it. */
bool hlo_text_read_int(hlo_text *text, const char **at, int64_t *out);
/* Skips white space and comments, and then `wanted`. Reports an error if another byte follows. */
bool hlo_text_expect(hlo_text *text, const char **at, char wanted);
/* Returns the length of `{...}`; 0 if it contains `"`, `%`, `=` or braces. */
uint32_t hlo_text_braces(const hlo_text *text, uint32_t offset);
/* Reads `{1,2}`. */
const hlo_ints *hlo_text_ints(hlo_text *text, hlo_span at);
/* Reads `{[0:4], [0:8:2]}`. */
const hlo_ints *hlo_text_slices(hlo_text *text, hlo_span at);
/* Reads `0_1x0_1_2`. */
const hlo_ints *hlo_text_padding(hlo_text *text, hlo_span at);

/* ----------------------------------------------------------------------------- shapes (shape.c) */

/* Reads the shape that begins with the `type[` at `head`, and returns its length. *out is NULL
 * after an error. */
uint32_t hlo_text_shape(hlo_text *text, hlo_span head, const hlo_shape **out);
/* Returns the buffer type `b(shape)`. */
const hlo_shape *hlo_text_buffer(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* Removes the shapes at byte `from` and later from text->shapes, and returns a tuple of them. */
const hlo_shape *hlo_text_tuple(hlo_text *text, size_t from);
/* Reports a tuple that is nested too deeply or too large, and replaces it with an empty tuple.
 * Returns false after such an error. */
bool hlo_text_check_tuple(hlo_text *text, hlo_span at, const hlo_shape **shape);
/* Removes the shapes at byte `from` and later from text->shapes, and returns a list of them. */
const hlo_shapes *hlo_text_shapes(hlo_text *text, size_t from);

/* ------------------------------------------------------------------------- literals (literal.c) */

/* Reads the value of a constant and returns its length. *out is NULL after an error; a `shape` of
 * NULL is an error. */
uint32_t hlo_text_literal(hlo_text *text, uint32_t offset, const hlo_shape *shape,
                          const hlo_literal **out);
/* Removes the literals at byte `from` and later from text->literals, and returns a tuple of them.
 */
const hlo_literal *hlo_text_tuple_literal(hlo_text *text, size_t from);

/* ------------------------------------------------------------------------ recovery (recovery.c) */

/* True if a line begins at `offset`. */
static inline bool hlo_text_at_line(const hlo_text *text, uint32_t offset) {
    return !offset || text->source[offset - 1] == '\n' || text->source[offset - 1] == '\r';
}
/* True if the name or keyword at `offset` begins a computation. */
bool hlo_text_begins_computation(hlo_text *text, uint32_t offset);
/* True if a word at `offset` is the name of a computation, and not a part of a shape. */
bool hlo_text_begins_signature(const hlo_text *text, uint32_t offset);
/* True if only blanks precede `offset` in its line. */
bool hlo_text_begins_line(const hlo_text *text, uint32_t offset);
/* True if the `{` at `offset` begins a computation's body. */
bool hlo_text_begins_body(const hlo_text *text, uint32_t offset);
/* True if the `}` at `offset` ends a computation's body. */
bool hlo_text_ends_body(hlo_text *text, uint32_t offset);
/* True if the name at `at` is likely a definition that lacks its `=`. */
bool hlo_text_lacks_equals(const hlo_text *text, hlo_span at);
/* True if the text ends after `at`, without an end of line, so that the last word may be cut off.
 */
bool hlo_text_ends(const hlo_text *text, hlo_span at);
/* True if the text ends after `at` inside a body. The parser reports that end separately. */
bool hlo_text_is_cut(hlo_text *text, hlo_span at);
/* If the text ends within an attribute name after the comma at `at`, returns that name; otherwise
 * returns `at`. */
hlo_span hlo_text_cut(const hlo_text *text, hlo_span at);
/* Returns the number of open bodies; 0 if the text is a single instruction. */
size_t hlo_text_open_bodies(hlo_text *text);
/* Reports bodies that are still open where a computation begins. The scanner then closes them. */
void hlo_text_unclosed(hlo_text *text, hlo_span at);

#endif
