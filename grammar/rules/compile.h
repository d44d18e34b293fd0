/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the syntax tree of a `.rules` file to tables: the steps, and their shared state. */
#ifndef HLO_GRAMMAR_RULES_COMPILE_H
#define HLO_GRAMMAR_RULES_COMPILE_H

#include "grammar/rules/ast.h"

/* MAX_TERMS: number of terms in a file, counted once for each path of a pattern to them, above
 * which no definition is expanded. A definition that expands into itself twice doubles at every
 * level. */
enum { MAX_DEPTH = 64, MAX_TERMS = 1 << 16 };

/* A growing table. */
typedef struct buffer {
    void *data;
    uint32_t count, capacity;
} buffer;

typedef struct slot_set {
    bool has[HLO_RULE_SLOTS];
} slot_set;

/* The tables so far, and the state of the current rule. */
struct rules_draft {
    buffer terms, args, attrs, ints, guards, actions, sets, roots, rules;
    const char *phase, *measure;
    uint16_t measure_code;
    /* State of the rule. */
    const char *slots[HLO_RULE_SLOTS];
    bool chain[HLO_RULE_SLOTS];
    int8_t holds[HLO_RULE_SLOTS]; /* HOLDS_VALUE, or the hlo_attr_kind of an attribute */
    slot_set partial;             /* variables that only some alternatives of the first root bind */
    bool acting; /* its actions are compiled, where partial variables are rejected */
    uint32_t slot_count, expansions, depth;
    uint32_t size; /* number of terms, counted once for each path of a pattern to them */
    bool full;     /* MAX_TERMS was reached and reported */
    bool apart;    /* arguments are compiled again, because one of their terms is extended */
};

enum { HOLDS_VALUE = -1 };

/* The term of a let's argument, shared by all uses of its parameter. */
typedef struct shared_term {
    uint32_t term, size; /* size 0: not compiled yet */
} shared_term;

/* The expansion of a let: its parameters stand for nodes of the caller's frame. */
typedef struct let_frame {
    const struct let_frame *caller;
    const let_node *let;
    const node *args;
    shared_term *made; /* by argument */
    uint32_t number;
} let_frame;

typedef enum term_mode { PATTERN, TEMPLATE, ARGUMENT } term_mode;

/* ----------------------------------------------------------------------------- tables (draft.c) */

/* Returns the interned text of a span. */
const char *rules_name(rules_parser *p, span s);
/* Adds a zeroed item to a table. */
void *rules_push(rules_parser *p, buffer *b, size_t size);
/* Finds a function of the vocabulary; -1 if not found. */
int rules_find_function(const rules_parser *p, const char *name);
/* Finds a word in a list; -1 if not found. */
int rules_find_word(const char *const *list, uint32_t count, const char *name);
/* Finds a definition; NULL if not found. */
const let_node *rules_find_let(rules_parser *p, span name);
/* Returns a term. The pointer is valid until the next term is added. */
hlo_rule_term *rules_term_at(rules_parser *p, uint32_t index);
/* Adds a term. */
uint32_t rules_new_term(rules_parser *p, hlo_term_kind kind);
/* True, after reporting an error, if `size` more terms exceed MAX_TERMS. */
bool rules_is_full(rules_parser *p, span where, uint32_t size);

/* ---------------------------------------------------------------------- variables (variables.c) */

/* Finds the argument of a let's parameter; NULL if `name` is not a parameter. */
const node *rules_parameter(rules_parser *p, const let_frame *f, const char *name,
                            uint32_t *out_index);
/* Finds the slot of a variable that holds a value or, by `holds`, an attribute. With `bind`, adds a
 * slot if it is missing. */
int16_t rules_slot_holding(rules_parser *p, const let_frame *f, span where, bool bind, int holds);
/* Finds the slot of a variable that holds a value. */
int16_t rules_slot(rules_parser *p, const let_frame *f, span where, bool bind);
/* Adds a slot for an unnamed root. */
int16_t rules_nameless_slot(rules_parser *p, span where);
/* Sets rules_draft.partial. */
void rules_find_partial(rules_parser *p, uint32_t first_root);

/* ------------------------------------------------------------------------------ terms (terms.c) */

/* Compiles a node. `f` is NULL outside of lets. */
uint32_t rules_lower(rules_parser *p, const let_frame *f, const node *n, term_mode m);
/* Compiles a list of arguments into adjacent rows of the table. */
uint32_t rules_push_args(rules_parser *p, const let_frame *f, const node *list, term_mode m,
                         uint32_t *out_count);
/* Checks the arguments of a function. */
void rules_check_call(rules_parser *p, span where, const hlo_rule_function *fn, uint32_t first,
                      uint32_t count);

/* ---------------------------------------------------------------------------- rules (compile.c) */

/* Returns the finished tables. */
const hlo_rules *rules_take(rules_parser *p);

#endif
