/* SPDX-License-Identifier: Apache-2.0 */
/* The syntax tree of rules. The parser builds the tree of one rule at a time, and compile.c checks
 * and compiles the tree. */
#ifndef HLO_GRAMMAR_RULES_AST_H
#define HLO_GRAMMAR_RULES_AST_H

#include <math.h>
#include <stdlib.h>

#include "grammar/rules/rules.h"
#include "ir/text/diag.h"

/* Flex's names of bison's types. */
#define YYSTYPE RULES_YYSTYPE
#define YYLTYPE RULES_YYLTYPE

typedef struct span {
    size_t first, last; /* range of bytes in the source */
} span;

typedef enum node_kind {
    NODE_ANY,
    NODE_VAR,
    NODE_RESULT,
    NODE_APPLY, /* an opcode, a let or a function */
    NODE_CONSTANT,
    NODE_CHAIN,
    NODE_CHAIN1,
    NODE_SPLAT,
    NODE_ALT,
    NODE_DEFINE,
    NODE_NUMBER,
    NODE_WORD,
    NODE_NONE,
    NODE_REST /* `...`: more operands are allowed here */
} node_kind;

typedef struct ints {
    struct ints *next, *last;
    double value;
} ints;

typedef struct attr_node {
    struct attr_node *next, *last;
    span name; /* empty for `from %x` */
    hlo_rule_attr_kind kind;
    span word; /* word or variable */
    double number;
    ints *ints;
} attr_node;

typedef struct node {
    struct node *next,
        *last; /* the next argument; in the first argument, `last` is the last argument */
    node_kind kind;
    span where, name, field, bind, shape;
    bool like;
    double number;
    struct node *args;
    attr_node *attrs;
} node;

typedef struct guard_node {
    struct guard_node *next, *last;
    bool negate;
    node *call;
    span reason, at;
} guard_node;

typedef struct set_node {
    struct set_node *next, *last;
    span field;
    bool add;
    node *value;
} set_node;

typedef struct action_node {
    struct action_node *next, *last;
    hlo_rule_action_kind kind;
    span target, operand, reason;
    node *value;
    set_node *sets;
} action_node;

typedef struct root_node {
    struct root_node *next, *last;
    bool optional;
    node *pattern;
} root_node;

typedef struct let_node {
    struct let_node *next; /* the previous definition */
    span name;
    node *params;
    node *body;
} let_node;

typedef struct rules_parser {
    hlo_module *owner;
    const hlo_rule_vocabulary *words;
    const hlo_diag_sink *sink;
    hlo_error_budget faults;
    size_t position; /* position of the scanner in the source */
    size_t example;  /* start of the example that is being scanned */
    size_t counted;  /* position up to which line ends are counted */
    uint32_t lines;  /* number of line ends before `counted` */
    struct rules_draft *draft;
    let_node *lets;
} rules_parser;

/* Reports an error at `where`, unless the error limit is reached. */
void rules_fault(rules_parser *p, span where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns a zeroed object in the owner's arena. */
void *rules_new(rules_parser *p, size_t size);
node *rules_node(rules_parser *p, node_kind kind, size_t first, size_t last);
void rules_begin(rules_parser *p);
const hlo_rules *rules_take(rules_parser *p);
/* Adds a definition. Reports an error if its name is already used. */
void rules_let(rules_parser *p, span name, node *params, node *body);
void rules_phase(rules_parser *p, span name, span measure);
/* Compiles a rule of the open phase and adds it to the tables. */
void rules_rule(rules_parser *p, span name, span subject, root_node *roots, guard_node *guards,
                action_node *actions, span example);

#endif
