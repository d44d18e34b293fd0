/* SPDX-License-Identifier: Apache-2.0 */
/* Attribute values with specific notations: shardings, device groups, aliases, ... A reader parses
 * one notation and rejects malformed text. It either writes the canonical form that XLA prints,
 * which the IR stores, or fills a struct that is printed in canonical form. notation.def lists the
 * reader of each attribute. */
#ifndef HLO_GRAMMAR_ATTR_NOTATION_H
#define HLO_GRAMMAR_ATTR_NOTATION_H

#include "grammar/attr/bytes.h"
#include "ir/ir.h"

/* Parses HLO text like hlo_module_parse(), for modules within attributes. The caller of a reader
 * passes this function. */
typedef hlo_status hlo_module_parser(const char *text, size_t size, const char *name,
                                     const hlo_diag_sink *sink, hlo_module **out_module);

/* The state of reading a value. */
typedef struct hlo_notation {
    hlo_module *module;
    hlo_arena *scratch;
    hlo_module_parser *parse_module;
    const char *from, *at, *end; /* start of the text, scan position, end of the text */
    hlo_bytes out;               /* the canonical form; empty: the default */
    hlo_attr value;              /* the value read, if its kind is not FORM */
    const char *why;             /* the first error, or NULL */
    size_t fault, fault_length;  /* offset of the error from `from`, and its length */
} hlo_notation;

/* Reads interned text as the attribute `id`, which has a row in notation.def. The value of a FORM
 * is the interned canonical form, which is empty for the default. The module caches the attribute
 * by the text. Returns NULL if the text is malformed; `out_form` then contains the error, in
 * `scratch`, and its position. */
const hlo_attr *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                                const char *interned, hlo_module_parser *parse_module,
                                hlo_notation *out_form);

/* Implements hlo_module.read: calls hlo_notation_of() for values that contain no modules. */
const hlo_attr *hlo_notation_read(hlo_module *module, hlo_attr_id id, const char *interned);

/* True if the word is reserved: it cannot be a name that is written without `%`, such as a
 * module's. */
bool hlo_notation_is_keyword(const char *name);

/* The readers of tokens, which first skip white space and comments. A function named `take` returns
 * whether the token is next, and moves past it if so. Functions named `expect`, and those that read
 * a name or a value, also report an error if it is not next. */
void hlo_notation_skip(hlo_notation *f);
/* True if the next byte is `c`. */
bool hlo_notation_next(hlo_notation *f, char c);
/* True if a name may contain the byte. */
bool hlo_notation_in_name(char c);
bool hlo_notation_take(hlo_notation *f, const char *mark);
bool hlo_notation_expect(hlo_notation *f, const char *mark);
/* True if item number `count` of a list begins here: after a `,` or, for the first item, if the
 * list is not closed. */
bool hlo_notation_item(hlo_notation *f, char close, size_t count);
/* Takes `close`, or reports that it or a `,` is missing. */
bool hlo_notation_expect_end(hlo_notation *f, const char *close);
bool hlo_notation_take_word(hlo_notation *f, const char *word);
/* The next two functions take `name=`. */
bool hlo_notation_take_name(hlo_notation *f, const char *name);
bool hlo_notation_expect_name(hlo_notation *f, const char *name);
/* Takes any `name=` and returns the name, in scratch memory; NULL after an error. */
const char *hlo_notation_name(hlo_notation *f);
bool hlo_notation_int(hlo_notation *f, int64_t *out);
/* The number may have a point and an exponent. */
bool hlo_notation_number(hlo_notation *f, double *out);
bool hlo_notation_bool(hlo_notation *f, bool *out);
bool hlo_notation_string(hlo_notation *f, const char **out, size_t *out_size);

typedef struct hlo_notation_ints {
    int64_t *v;
    size_t count;
} hlo_notation_ints;
/* Copies the list to the module. */
const hlo_ints *hlo_notation_keep(hlo_notation *f, const hlo_notation_ints *list);
/* Takes at least `least` integers and the `close` after them. */
bool hlo_notation_int_list(hlo_notation *f, const char *close, size_t least,
                           hlo_notation_ints *out);
/* Takes integers like hlo_notation_int_list(), and adds them to a list. */
bool hlo_notation_more_ints(hlo_notation *f, const char *close, size_t least,
                            hlo_notation_ints *out);
/* Returns the list with space for one more item of `size` bytes. Items must have been added one by
 * one. */
void *hlo_notation_grow(hlo_notation *f, void *list, size_t count, size_t size);
void hlo_notation_add(hlo_notation *f, hlo_notation_ints *list, int64_t value);
/* Compares lists lexicographically, as XLA's maps do. Returns a negative number if `a` comes first.
 */
int hlo_notation_compare_ints(const hlo_notation_ints *a, const hlo_notation_ints *b);

/* The first member of items that hlo_notation_sort() sorts. */
typedef struct hlo_notation_link {
    struct hlo_notation_link *next;
} hlo_notation_link;
typedef int hlo_notation_order(const hlo_notation_link *a, const hlo_notation_link *b);
/* Sorts a list; the sort is stable. */
hlo_notation_link *hlo_notation_sort(hlo_notation_link *list, hlo_notation_order *order);

/* Sets f->value to attribute `id` with a copy of `value`, a struct of `size` bytes. A module stores
 * structs with equal text once. */
bool hlo_notation_made(hlo_notation *f, hlo_attr_id id, const hlo_parsed *value, size_t size);

void hlo_notation_put(hlo_notation *f, const char *text);
void hlo_notation_put_int(hlo_notation *f, int64_t value);
/* Writes a number with the digits that XLA prints, or more if the value needs them. */
void hlo_notation_put_double(hlo_notation *f, double value);
/* Writes `before`, then the list in braces. */
void hlo_notation_put_index(hlo_notation *f, const char *before, const hlo_notation_ints *list);

/* Reports an error at `at` unless one was reported before. Returns false. */
bool hlo_notation_fail(hlo_notation *f, const char *at, size_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Reports `expected WANTED, found ...` at the next token; suggests a word quoted in `wanted`. */
bool hlo_notation_unexpected(hlo_notation *f, const char *wanted);
/* Reports as hlo_notation_unexpected() does, and suggests the closest of the words quoted in
 * `words`. */
bool hlo_notation_unknown(hlo_notation *f, const char *wanted, const char *words);

/* Reads an attribute value in one notation. Returns false after an error. */
typedef bool hlo_notation_reader(hlo_notation *f);
#define HLO_NOTATION(attr, reader) hlo_notation_reader hlo_notation_##reader;
#include "grammar/attr/notation.def"
#undef HLO_NOTATION

/* Reads `{op_name="a" ...}` or a list of metadata in braces. Writes single metadata unchanged or,
 * with `list`, as a list (metadata.c). */
bool hlo_notation_metadata(hlo_notation *f, bool list);
/* Writes the text of a module as origin_recovery_table shows it (metadata.c). */
void hlo_notation_put_module(hlo_bytes *out, const char *text);

#endif
