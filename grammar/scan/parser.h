/* Reading HLO text: the state that lexer, parser and the parser's actions share.
 *
 * hlo.l cuts the text into tokens, hlo.y arranges them, text.c builds the IR; value.c, shape.c and
 * literal.c read what is one token but has an inside: shapes, integer lists, strings, raw text,
 * constants. */
#ifndef HLO_GRAMMAR_TEXT_H
#define HLO_GRAMMAR_TEXT_H

#include <string.h>

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

/* What attributes may be written about. */
typedef enum hlo_owner {
    HLO_OWNER_MODULE,
    HLO_OWNER_COMPUTATION,
    HLO_OWNER_INSTR,
    HLO_OWNER_METADATA,
    HLO_OWNER_WINDOW,
    HLO_OWNER_LOCATION,
    HLO_OWNER_FRAME
} hlo_owner;

/* Something that is being read and has attributes: a module, an instruction, ... */
typedef struct hlo_frame {
    hlo_owner owner;
    hlo_attr_id nested; /* the attribute that this frame is the value of */
    size_t attrs;       /* where its attributes begin in hlo_text.attrs, in bytes */
    bool broken;        /* an error was reported: nothing is made of it */
    hlo_span comma;     /* hlo_text.comma of the attribute that it is in the value of */
    /* Of an instruction. */
    bool root;
    hlo_op op;
    hlo_op wrapped;   /* by the asynchronous `op`, as in negate-start; else HLO_OP_INVALID */
    const char *name; /* interned; NULL: nested in an operand list */
    hlo_span name_at, op_at;
    const hlo_shape *shape;     /* NULL: to be inferred */
    size_t operands;            /* where they begin in hlo_text.operands, in bytes */
    int64_t parameter;          /* -1: none */
    const hlo_literal *literal; /* of a constant */
} hlo_frame;

/* A computation that is being read; they nest when one stands in an attribute. */
typedef struct hlo_body {
    hlo_computation *comp;
    const char *name; /* as the text has it; NULL when it is inline */
    hlo_span at;
    uint32_t depth;                           /* of braces, inside the body */
    size_t frames, parameters, hidden, comps; /* sizes of the stacks when it began */
    const hlo_shape *result;                  /* as its signature says; NULL */
    hlo_span result_at;
    hlo_instr *explicit_root;
    hlo_span root_at; /* of the ROOT that was read; empty */
    bool broken, entry;
    bool nameless; /* a definition was in error whose name is not known */
    bool bare;     /* of a single instruction: unknown operands become parameters */
} hlo_body;

/* Where reading goes on behind an error. */
typedef enum hlo_resume {
    HLO_RESUME_BODY,      /* the next definition, or the end of the body */
    HLO_RESUME_SIGNATURE, /* the body */
    HLO_RESUME_TOP,       /* the next computation */
    HLO_RESUME_HEADER     /* the next attribute, table or computation */
} hlo_resume;

/* What was read of a definition in one go: all up to the `)` of its operands, and attributes as far
 * as grammar/text/fast_path.c reads them. */
typedef struct hlo_definition {
    const hlo_shape *shape;
    const char *opcode;
    hlo_span opcode_at;
    hlo_span operands_at;
    int64_t number;            /* of a parameter; -1: none */
    hlo_stack operands, attrs; /* see grammar/text/fast_path.c */
    uint32_t from, end;
    bool ended; /* for certain: no attribute follows */
} hlo_definition;

/* A name, and what stands behind it: see hlo_text_name(). */
typedef struct hlo_read_name {
    const char *name, *behind;
    uint32_t offset, length; /* with its `%`; 0: none was read */
    bool defined, whole;
} hlo_read_name;

typedef struct hlo_text {
    hlo_module *module;
    const hlo_diag_sink *sink;
    hlo_arena *scratch;
    void *scanner; /* flex's */
    char *source;  /* module->source, with two NULs behind it */
    size_t size;
    uint32_t end;                /* of the last token */
    const hlo_shape *last_shape; /* in front of an opcode, or of a literal */
    unsigned errors;             /* said */
    unsigned *errors_left;       /* that may still be said */
    size_t searched;             /* bytes; see hlo_text_search() */
    unsigned depth;              /* of braces */
    unsigned inner;    /* the depth in an inline computation that is skipped; 0: none is */
    bool skipping;     /* tokens are dropped until one at which reading can go on */
    hlo_resume resume; /* which that is */
    bool quiet;        /* until the next computation: a mistake was told that more follow from */
    bool lacks_open;   /* a `{`, and so many `}`, are given to the parser first */
    size_t lacks_close;
    uint32_t closed;   /* the computation in front of which they were; UINT32_MAX: none */
    hlo_span overlong; /* a token that goes on beyond its line by mistake; empty */
    hlo_span string;   /* the last string or braces that go on beyond their line; empty */
    bool nameless;     /* a computation was in error whose name is not known */
    hlo_attr_id attr;  /* whose name was read last, */
    hlo_span comma;    /* and the comma in front of it; empty */
    const char *def;   /* the definition that has begun, until its opcode was read; NULL */
    hlo_span def_at;
    bool def_root;
    hlo_definition line;     /* of the last INSTRUCTION or HEAD */
    hlo_read_name ahead;     /* the name where the lexer goes on, when it was read already */
    hlo_span next_name;      /* what is behind it, if that is a name, */
    uint32_t next_begun;     /* and its hlo_intern_begin() */
    hlo_attr known_attr;     /* the last KNOWN_ATTR, */
    uint32_t known_end;      /* and where its text ends */
    struct hlo_known *known; /* what was read, by its text */
    hlo_stack frames, operands, attrs, bodies, parameters, shapes, comps, instrs, hidden, ints,
        literals;
    hlo_stack starts;  /* by instruction id, of each async-update: its async-start */
    hlo_stack renamed; /* instructions of the outermost body that are not called as in the text */
    bool threads;      /* a computation is on another thread than the main one */
    bool names_later;  /* no instruction of the open bodies has its unique name yet */
    hlo_stack files, functions, locations, stack_frames;
    hlo_instr broken; /* stands for every name whose definition was in error: uses of it are not
                         errors of their own */
} hlo_text;

enum { HLO_LARGEST_SOURCE = 1 << 30 };

/* One error at those bytes; when *errors_left is 0 nothing is said any more. */
void hlo_text_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Another place that the last error is about. */
void hlo_text_note(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What HLO takes and may not have been meant. */
void hlo_text_warn(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What HLO's reader takes and HLO forbids: an error once the module is verified. */
void hlo_text_defer_error(hlo_text *text, hlo_span at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The text of a span, clipped, for a message: valid until the reading ends. */
const char *hlo_text_quote(hlo_text *text, hlo_span at);

/* How many of `wanted` bytes to look at for what may help to understand an error: fewer when much
 * was looked at for others already, which `searched` counts, so that all together take a time that
 * is bounded. */
size_t hlo_text_search(hlo_text *text, size_t wanted);
/* How many names to offer for one that is not known; they are counted as so many bytes. */
size_t hlo_text_offers(hlo_text *text);

void hlo_stack_grow(hlo_text *text, hlo_stack *stack, size_t size);
/* The last item of a stack that has one. */
void *hlo_stack_top(const hlo_stack *stack, size_t size);
static inline void *hlo_stack_push(hlo_text *text, hlo_stack *stack, const void *item,
                                   size_t size) {
    if (stack->capacity - stack->used < size) hlo_stack_grow(text, stack, size);
    void *place = memcpy(stack->items + stack->used, item, size);
    stack->used += size;
    return place;
}

/* value.c: each begins at source + offset and returns the length read. */
uint32_t hlo_text_string(hlo_text *text, uint32_t offset, const char **out);
uint32_t hlo_text_raw(hlo_text *text, uint32_t offset, const char **out);
bool hlo_text_int(hlo_text *text, hlo_span at, int64_t *out);
/* Digits at *at, which goes past them. */
bool hlo_text_read_int(hlo_text *text, const char **at, int64_t *out);
/* Digits, few enough to fit in any case; *at goes past them. False when none stand there. */
bool hlo_text_small_int(const char **at, int64_t *out);
/* What stands behind white space and comments. */
const char *hlo_text_behind_gap(const char *at);
static inline const char *hlo_text_gap(const char *at) {
    while (*at == ' ') at++;
    return *at == '\n' || *at == '\t' || *at == '\r' || *at == '/' ? hlo_text_behind_gap(at) : at;
}
/* The first of `stops`, which end with a `/`, outside of comments; the end of the text. */
const char *hlo_text_stop(const char *at, const char *stops);
/* That, and past it, is `wanted`; else an error. */
bool hlo_text_expect(hlo_text *text, const char **at, char wanted);
/* The length of `{...}` without strings, names or braces inside; 0 when it is not so. */
uint32_t hlo_text_braces(const hlo_text *text, uint32_t offset);
const hlo_ints *hlo_text_ints(hlo_text *text, hlo_span at);
const hlo_ints *hlo_text_slices(hlo_text *text, hlo_span at);
const hlo_ints *hlo_text_padding(hlo_text *text, hlo_span at);

/* shape.c: `head` is `type[`; returns the length of the whole, and *out NULL after an error. */
uint32_t hlo_text_shape(hlo_text *text, hlo_span head, const hlo_shape **out);
/* The same shape when one was written so before, and *at behind it; NULL. */
const hlo_shape *hlo_text_known_shape(hlo_text *text, const char **at);
/* Reads `shape,` again and again, or `name: shape,`, as far as the shapes were read before: what
 * stands before the last comma of a list. Those without names are pushed. */
void hlo_text_known_shapes(hlo_text *text, bool named);
/* Reads `(name: shape, name: shape) -> shape` if these shapes were all read before: the brace of
 * the body comes next. */
void hlo_text_known_signature(hlo_text *text);
/* Whether the brace that may stand at `at`, behind dimensions, is that of a layout. */
bool hlo_text_begins_layout(const char *at);
const hlo_shape *hlo_text_buffer(hlo_text *text, hlo_span at, const hlo_shape *shape);

/* literal.c: the value of a constant of that shape; NULL after an error, as when the shape is NULL.
 */
uint32_t hlo_text_literal(hlo_text *text, uint32_t offset, const hlo_shape *shape,
                          const hlo_literal **out);
/* Of those that were pushed to text->literals since its `used` was `from`; they are taken off. */
const hlo_literal *hlo_text_tuple_literal(hlo_text *text, size_t from);

/* grammar/text/forward_ref.c: where, behind `from`, an instruction of the same computation, or a
 * computation, is called so. */
bool hlo_text_defined(hlo_text *text, uint32_t from, const char *name, hlo_span *out);
bool hlo_text_defined_computation(hlo_text *text, uint32_t from, const char *name, hlo_span *out);

/* grammar/text/permissive.c: whether HLO's reader takes so many operands, though HLO forbids it;
 * and the shape that it infers where hlo_infer() does not, NULL when it does not either. */
bool hlo_text_permissive_count(hlo_op op, uint32_t count);
const hlo_shape *hlo_text_permissive_shape(hlo_text *text, hlo_op op, uint32_t count,
                                           hlo_instr *const *operands, uint32_t attr_count,
                                           const hlo_attr *attrs);

/* Gives the instruction the shape that HLO's reader gives it whatever the text says. */
void hlo_text_make_shape(hlo_text *text, hlo_frame *frame);

/* grammar/text/requirements.c: an error where an instruction, of whatever it is the asynchronous
 * form of an `op`, lacks what HLO's reader demands of it. */
void hlo_text_check_requirements(hlo_text *text, hlo_frame *frame, hlo_op op);

/* text.c: what the parser's actions call, in the order in which things stand in a text. */
void hlo_text_header(hlo_text *text, const char *name);
void hlo_text_header_done(hlo_text *text);
void hlo_text_file(hlo_text *text, hlo_span at, int64_t number, const char *name);
void hlo_text_function(hlo_text *text, hlo_span at, int64_t number, const char *name);
void hlo_text_row_begin(hlo_text *text, hlo_owner owner);
void hlo_text_row_end(hlo_text *text, hlo_span at, int64_t number);

void hlo_text_body_begin(hlo_text *text, hlo_span at, const char *name, bool entry);
void hlo_text_body_result(hlo_text *text, hlo_span at, const hlo_shape *shape);
void hlo_text_body_end(hlo_text *text, hlo_span at);
hlo_computation *hlo_text_computation_done(hlo_text *text);

/* Round a text that is a single instruction. */
void hlo_text_single_instr_begin(hlo_text *text, hlo_span at);
void hlo_text_single_instr_end(hlo_text *text, hlo_span at);

void hlo_text_define(hlo_text *text, hlo_span at, const char *name, bool root);
void hlo_text_instr_begin(hlo_text *text, hlo_span at, const hlo_shape *shape,
                          const char *opcode); /* NULL: constant */
hlo_instr *hlo_text_instr_end(hlo_text *text);
void hlo_text_operand(hlo_text *text, hlo_span at, const hlo_shape *shape, const char *name);
/* An operand that is a shape: a parameter, of a text that is one instruction; false elsewhere. */
bool hlo_text_nameless(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* `name#2`, and `name#2#0`: a get-tuple-element of what stands before, one for all uses; it is
 * called `name_2`. */
hlo_instr *hlo_text_named(hlo_text *text, hlo_span at, const char *name);
hlo_instr *hlo_text_element(hlo_text *text, hlo_span at, hlo_instr *tuple, int64_t index);
void hlo_text_operand_shaped(hlo_text *text, hlo_span at, const hlo_shape *shape, hlo_instr *instr);
void hlo_text_operand_instr(hlo_text *text, hlo_instr *instr);
void hlo_text_parameter(hlo_text *text, hlo_span at, int64_t number);
/* After a syntax error in a body, at a token that may be a name: forget what had begun. */
void hlo_text_recover(hlo_text *text, hlo_span at, const char *name);
/* False when the value is wrong. */
bool hlo_text_raw_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       const char *value);
/* The same in the header, whose other attributes stay; and between computations. */
void hlo_text_recover_header(hlo_text *text);
void hlo_text_recover_top(hlo_text *text, hlo_span at);
void hlo_text_constant(hlo_text *text, const hlo_literal *literal);

void hlo_text_shape_push(hlo_text *text, const hlo_shape *shape);
/* What was pushed since text->shapes.used was `from`; taken off. */
const hlo_shape *hlo_text_tuple(hlo_text *text, hlo_span at, size_t from);
const hlo_shapes *hlo_text_shapes(hlo_text *text, size_t from);

void hlo_text_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* The same, of one that is remembered by its text. */
void hlo_text_new_attr(hlo_text *text, hlo_span at, hlo_attr attr);
/* Of an integer, which some attributes hold in 32 bits; and of a word, which some have a list of.
 * The value stands at `value_at`. */
void hlo_text_int_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                       int64_t value);
void hlo_text_word_attr(hlo_text *text, hlo_span at, hlo_attr_id id, hlo_span value_at,
                        const char *word);
void hlo_text_nested_begin(hlo_text *text, hlo_attr_id id);
void hlo_text_nested_end(hlo_text *text, hlo_span at);
hlo_computation *hlo_text_called(hlo_text *text, hlo_span at, const char *name);
/* Those that were pushed to text->comps since its `used` was `from`; they are taken off. */
hlo_attr hlo_text_comps(hlo_text *text, hlo_attr_id id, size_t from);
hlo_attr hlo_text_instrs(hlo_text *text, hlo_attr_id id);
void hlo_text_instr_named(hlo_text *text, hlo_span at, const char *name);

/* attr.c. HLO_ATTR_INVALID when there is no such attribute. */
hlo_attr_id hlo_text_find_attr(hlo_text *text, const char *interned);
/* Reads an attribute between braces, when it is a small integer or a string without escapes, and
 * then *at is behind it; all of them, as far as they are and the rest can be left to the grammar.
 */
bool hlo_text_plain_attr(hlo_text *text, const char **at, hlo_span *out_name, hlo_attr *out);
void hlo_text_plain_attrs(hlo_text *text);
/* The value of an attribute of kind FORM, which was written as `raw` at `at`; NULL after an
 * error. Any other attribute's is `raw`. */
hlo_attr hlo_text_formed(hlo_text *text, hlo_span at, hlo_attr_id id, const char *raw);
/* Leaves out the attributes that say nothing on an `op`; HLO_OP_INVALID: of no instruction. */
void hlo_text_drop_defaults(hlo_text *text, const hlo_frame *frame, hlo_op op);
/* A comma in front of the attribute at `at` is an error: spaces separate the parts of a window. */
void hlo_text_no_comma(hlo_text *text, hlo_frame *frame);
/* The words of a window tell of equally many dimensions; those that say nothing go. */
void hlo_text_window(hlo_text *text, hlo_span at, hlo_frame *frame);
/* A map is along all dimensions, whatever the text says of it. */
void hlo_text_map_all(hlo_text *text, const hlo_frame *frame);
/* The attribute of an instruction that is being read; NULL. */
hlo_attr *hlo_text_given(const hlo_text *text, const hlo_frame *frame, hlo_attr_id id);
/* Adds the attributes that an `op` shows even when nobody gave them. */
void hlo_text_add_implied(hlo_text *text, const hlo_frame *frame, hlo_op op);

/* The innermost. */
hlo_frame *hlo_text_frame(hlo_text *text);
hlo_body *hlo_text_body(hlo_text *text);

/* grammar/text/names.c. Whether the name at `at` is a keyword; then that is an error. */
bool hlo_text_reserved(hlo_text *text, hlo_span at, const char *name, bool types_too);
/* What names are made of, and the operands that are names and nothing else. */
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
static inline bool hlo_text_begins_name(char c) {
    return hlo_text_in_name(c) && c > '9';
}
/* It is looked up when names behind it were read. */
typedef struct hlo_operand_name {
    hlo_span at;    /* `%` included */
    uint32_t begun; /* hlo_intern_begin() */
} hlo_operand_name;
/* Whether a name stands at `at`, and a comma or the end of the list behind it: *out_behind. */
bool hlo_text_operand_name(hlo_text *text, const char *at, hlo_operand_name *out,
                           const char **out_behind);
void hlo_text_take_operand(hlo_text *text, hlo_operand_name name);
/* Names become unique in the order in which computations end, an inline one before that in which it
 * stands, as XLA has it: that of the text up to the first inline one.
 * An instruction as the text calls it; an inline computation begins; a computation ends, which has
 * its name already when it is that of a single instruction. */
void hlo_text_give_name(hlo_text *text, hlo_instr *instr, const char *name);
void hlo_text_names_later(hlo_text *text);
void hlo_text_names_now(hlo_text *text, hlo_computation *comp, bool bare);
/* The operands that are names, behind `(`, as far as the rest can be left to the grammar. */
void hlo_text_operand_names(hlo_text *text);

/* grammar/text/fast_path.c. The name behind the `%` at source + offset, and where the text goes on:
 * behind the `=` that follows when it is defined there. When the definition was read in one go,
 * then all there was is in text->line. */
hlo_read_name hlo_text_name(hlo_text *text, uint32_t offset);
/* The same of a name that is written without `%`, and has the `=` before *behind. */
bool hlo_text_definition(hlo_text *text, hlo_span at, const char **out, const char **behind);
/* What the parser does with text->line, which ends there or goes on with attributes. */
void hlo_text_line(hlo_text *text, hlo_span at, const char *defined, bool root);
/* The same of one that ended, and of all behind it that do. */
void hlo_text_lines(hlo_text *text, hlo_span at, const char *defined, bool root);

/* known.c. The shape at *at, which goes past it, when one was kept that is written so; NULL. */
const hlo_shape *hlo_shape_cache_find(const hlo_text *text, const char **at);
void hlo_shape_cache_insert(hlo_text *text, hlo_span at, const hlo_shape *shape);
/* An opcode of one letter or more, interned. */
const char *hlo_text_opcode(hlo_text *text, const char *from, size_t length);
/* The length of `name={...}` or `name=1` when an attribute was written so before. */
uint32_t hlo_attr_cache_find(const hlo_text *text, hlo_span name, hlo_attr *out);
/* The attribute whose value ends at text->end. */
void hlo_attr_cache_insert(hlo_text *text, hlo_span name, hlo_attr attr);
struct hlo_known *hlo_attr_cache_new(hlo_arena *scratch);

/* recovery.c: whether the name or keyword there begins a computation; what stands there is the
 * first in its line; the brace there begins or ends a computation's body; the name there would be a
 * definition if it had its `=`. Where the line ends. */
bool hlo_text_begins_computation(const hlo_text *text, uint32_t offset);
/* Whether a computation's name may stand there, in no body, and no shape. */
bool hlo_text_begins_signature(const hlo_text *text, uint32_t offset);
bool hlo_text_begins_line(const hlo_text *text, uint32_t offset);
bool hlo_text_begins_body(const hlo_text *text, uint32_t offset);
bool hlo_text_ends_body(const hlo_text *text, uint32_t offset);
bool hlo_text_lacks_equals(const hlo_text *text, hlo_span at);
/* Whether nothing follows, not even the end of the line: a word may be what was left of another. */
bool hlo_text_ends(const hlo_text *text, hlo_span at);
/* Whether the text ends so inside a body, which is told in any case. */
bool hlo_text_is_cut(hlo_text *text, hlo_span at);
/* Such a word behind the comma at `at`, of an attribute; else `at`. */
hlo_span hlo_text_cut(const hlo_text *text, hlo_span at);
uint32_t hlo_text_line_end(const hlo_text *text, uint32_t offset);
/* Bodies whose `}` has not been read; none when the text is a single instruction. */
size_t hlo_text_open_bodies(hlo_text *text);
/* At a computation that begins although bodies are open: they are closed in front of it. */
void hlo_text_unclosed(hlo_text *text, hlo_span at);

/* async.c: `opcode-start`, `-update`, `-done`; HLO_OP_INVALID when `name` is none of them. */
hlo_op hlo_text_async_op(const char *name, hlo_op *out_wrapped);
/* Offers the names of them all. */
void hlo_text_async_suggest(hlo_text *text, hlo_suggestion *s);
/* Of an asynchronous operation: its shape, and what it goes on with. */
void hlo_text_async_check(hlo_text *text, hlo_frame *frame);
/* An error where an update or a done names another thread than its start does. */
void hlo_text_async_thread(hlo_text *text, hlo_frame *frame);
/* Its thread is that of the computations that it leads to. */
void hlo_text_async_begun(hlo_text *text, const hlo_instr *start);
/* Notes what has started the operation that this one goes on with. */
void hlo_text_async_updated(hlo_text *text, const hlo_instr *update);
/* Makes the computation of the operation `frame->wrapped`, with the attributes that are the
 * opcode's own, and sets the attribute that calls it. */
void hlo_text_async_wrap(hlo_text *text, hlo_frame *frame);

/* Reads a module from a text that begins in that line of its file; see hlo_module_parse(). Counts
 * *errors_left down. The module takes the content, see hlo_content_take(). */
hlo_status hlo_text_parse(hlo_content *content, const char *name, uint32_t line,
                          unsigned *errors_left, const hlo_diag_sink *sink,
                          hlo_module **out_module);

/* hlo.l */
void hlo_text_scan_begin(hlo_text *text);
/* The next token; after a syntax error, the next at which reading can go on. */
union HLO_YYSTYPE;
int hlo_text_next(union HLO_YYSTYPE *value, hlo_span *at, hlo_text *text);
/* A syntax error was found at `token`: drops tokens until one at which reading can go on. */
void hlo_text_skip(hlo_text *text, int token, hlo_span at, hlo_resume where);
/* In place of an INSTRUCTION or HEAD, which is an error: a DEFINITION, and the rest is read again.
 */
int hlo_text_split_token(hlo_text *text);
/* Where the next token is looked for, and that it is looked for from `at` on: only while the parser
 * has not looked ahead. */
const char *hlo_text_scan_place(const hlo_text *text);
void hlo_text_scan_from(hlo_text *text, const char *at);
/* The next token is a literal of that shape. */
void hlo_text_want_literal(hlo_text *text, const hlo_shape *shape);

#endif
