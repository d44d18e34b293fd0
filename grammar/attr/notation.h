/* Values of attributes that have a notation of their own: shardings, device groups, aliases, ... A
 * reader takes one apart, refuses what is malformed, and writes it in the one form in which XLA
 * prints it; that text is what the IR keeps. notation.def says which attribute has which reader. */
#ifndef HLO_GRAMMAR_FORM_H
#define HLO_GRAMMAR_FORM_H

#include "grammar/attr/bytes.h"
#include "ir/ir.h"

/* One value that is being read. */
typedef struct hlo_notation {
    hlo_arena *scratch;
    const char *from, *at, *end; /* the text; where reading is */
    hlo_bytes out;               /* the value as it is kept; empty: it says nothing */
    const char *why;             /* the first thing that is wrong; NULL: nothing */
    size_t fault, fault_length;  /* where, from `from` on */
} hlo_notation;

/* Reads interned text, once, as a value of attribute `id`, which has a row in notation.def. The
 * text to keep, interned: empty when the value says no more than no attribute would. NULL when it
 * is malformed; then `out_form` has `why`, in `scratch`, and where. */
const char *hlo_notation_of(hlo_module *module, hlo_arena *scratch, hlo_attr_id id,
                            const char *interned, hlo_notation *out_form);

/* What stands next: each skips space and comments before it. All but the `take`s make it an error,
 * and return false, when something else does. */
bool hlo_notation_take(hlo_notation *f, const char *mark);
bool hlo_notation_expect(hlo_notation *f, const char *mark);
/* `word`, and nothing that would make it a longer one. */
bool hlo_notation_take_word(hlo_notation *f, const char *word);
/* `name=`. */
bool hlo_notation_take_name(hlo_notation *f, const char *name);
bool hlo_notation_expect_name(hlo_notation *f, const char *name);
/* Any `name=`, the name in scratch memory; NULL where there is none, which is told. */
const char *hlo_notation_name(hlo_notation *f);
bool hlo_notation_int(hlo_notation *f, int64_t *out);
bool hlo_notation_string(hlo_notation *f, const char **out, size_t *out_size);
/* Whether the next byte is `c`. */
bool hlo_notation_next(hlo_notation *f, char c);

/* `close`, where a `,` could have stood as well. */
bool hlo_notation_expect_end(hlo_notation *f, const char *close);

/* A list of integers up to `close`, which is read too; at least `least` of them. */
typedef struct hlo_notation_ints {
    int64_t *v;
    size_t count;
} hlo_notation_ints;
bool hlo_notation_int_list(hlo_notation *f, const char *close, size_t least,
                           hlo_notation_ints *out);
void hlo_notation_put_ints(hlo_notation *f, const int64_t *v, size_t count);
void hlo_notation_put_int(hlo_notation *f, int64_t value);
/* `before`, then the list in braces. */
void hlo_notation_put_index(hlo_notation *f, const char *before, const hlo_notation_ints *list);

/* Negative when `a` comes before `b`, as lists do in XLA's maps. */
int hlo_notation_compare_ints(const hlo_notation_ints *a, const hlo_notation_ints *b);

/* What items begin with that are sorted: equal ones stay as they are. */
typedef struct hlo_notation_link {
    struct hlo_notation_link *next;
} hlo_notation_link;
typedef int hlo_notation_order(const hlo_notation_link *a, const hlo_notation_link *b);
hlo_notation_link *hlo_notation_sort(hlo_notation_link *list, hlo_notation_order *order);

/* Writes `text` to the value. */
void hlo_notation_put(hlo_notation *f, const char *text);

/* Makes what stands at `at`, `length` bytes, the error, unless there is one; returns false. */
bool hlo_notation_fail(hlo_notation *f, const char *at, size_t length, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same of the token that stands next: `expected WANTED, found ...`. */
bool hlo_notation_unexpected(hlo_notation *f, const char *wanted);
/* The same where a word was to stand. The one in quotes in `words` that is closest to what stands
 * there is suggested; hlo_notation_unexpected() takes those of `wanted`. */
bool hlo_notation_unknown(hlo_notation *f, const char *wanted, const char *words);

typedef bool hlo_notation_reader(hlo_notation *f);
#define HLO_NOTATION(attr, reader) hlo_notation_reader hlo_notation_##reader;
#include "grammar/attr/notation.def"
#undef HLO_NOTATION

/* `{{0,1},{2}}`: how groups of devices are listed. */
bool hlo_notation_listed(hlo_notation *f);
/* `"name" {0,1}}`, behind a brace: the origin of one array. Without a name there is none. */
typedef struct hlo_notation_array {
    const char *name;
    size_t size;
    hlo_notation_ints index;
} hlo_notation_array;
bool hlo_notation_origin_array(hlo_notation *f, hlo_notation_array *out);
void hlo_notation_put_array(hlo_notation *f, const hlo_notation_array *array);
/* Writes the text of a module as origin_recovery_table shows it. */
void hlo_notation_put_module(hlo_bytes *out, const char *text);
/* `{op_name="a" ...}` or a list of them in braces, as one of them or (`list`) always as a list. */
bool hlo_notation_metadata(hlo_notation *f, bool list);

#endif
